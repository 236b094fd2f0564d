//! LIMIT, OFFSET and DISTINCT ON in each group of equal key columns.
//!
//! The arrangement keeps each group's rows in ORDER BY order (see `order`), ties broken by row bytes.

use super::arranged::{flatten_reduced, ERROR_TAG};
use super::collection::{map_fallible, Collection};
use super::reduce::push_error;
use super::{order, Context, RenderTime};
use crate::arrange::{exchange, Block, Layout, OrderedLogic, Outputs, Upd};
use crate::errors;
use crate::eval::{eval_column, in_pieces, note_errors};
use expr::{ColumnOrder, EvalCtx, Scalar};
use repr::{column, ColType, Diff, SqlError, Value};
use std::rc::Rc;
use std::sync::Arc;

/// What a group keeps.
#[derive(Clone)]
pub struct TopK {
    pub group_key: Vec<usize>,
    pub order_by: Vec<ColumnOrder>,
    pub limit: Option<Scalar>,
    pub offset: u64,
    pub with_ties: bool,
    /// What an error calls it.
    pub name: &'static str,
}

pub fn render<'s, T: RenderTime>(cx: &Context<'s, T>, input: Collection<'s, T>, types: &[ColType], spec: TopK) -> Collection<'s, T> {
    let key = spec.group_key.iter().map(|c| Scalar::Column(*c)).collect();
    let layout = Rc::new(Layout::new(types.to_vec(), key));
    let (encode_layout, order_by, ctx) = (layout.clone(), spec.order_by.clone(), cx.env.ctx.clone());
    let (blocks, failed) = map_fallible(input.oks, "EncodeOrdered", move |upd: Upd<T>, out| {
        in_pieces(upd, |upd| {
            let (body, failed) = order::encode(&encode_layout, &order_by, upd, &ctx);
            note_errors(upd, failed, &mut out.errs)?;
            if !body.is_empty() {
                out.oks.push(Block(body));
            }
            Ok(())
        });
    });
    let arranged = T::arrange(blocks, exchange(), "ArrangeTopK", &cx.env);
    let logic = Select { spec, layout: layout.clone(), ctx: cx.env.ctx.clone() };
    let reduced = T::reduce_ordered(arranged, "TopK", logic, &cx.env);
    let (oks, errs) = flatten_reduced(reduced.stream, &cx.env, move |keys, vals| {
        let vals: Vec<&[u8]> = vals.iter().map(|v| order::split(v).1).collect();
        layout.decode(keys, &vals, |_| true)
    });
    Collection::new(oks, input.errs).with_errs(failed).with_errs(errs)
}

/// The limit of a group whose key columns are those of `row`; `None`: no limit.
pub fn limit_of(limit: &Option<Scalar>, row: impl FnOnce() -> Vec<Value>, types: &[ColType], ctx: &EvalCtx) -> Result<Option<u64>, SqlError> {
    let value = match limit {
        None => return Ok(None),
        Some(Scalar::Literal(v, _)) => v.clone(),
        Some(e) => {
            let row = row();
            let batch = repr::Batch::from_rows(types, [row.as_slice()]);
            let mut failed = Vec::new();
            let col = eval_column(e, &batch, types, ctx, &mut failed);
            if let Some((_, e)) = failed.pop() {
                return Err(e);
            }
            column::get(&col, &e.typ(types).ty, 0)
        }
    };
    match value.as_i64() {
        None => Ok(None),
        Some(n) => u64::try_from(n).map(Some).map_err(|_| SqlError::new(repr::error::state::INVALID_ROW_COUNT_IN_LIMIT, "LIMIT must not be negative")),
    }
}

/// Keeps vals as they are, sort key included.
struct Select {
    spec: TopK,
    layout: Rc<Layout>,
    ctx: Arc<EvalCtx>,
}

impl OrderedLogic for Select {
    fn starts_least(&self) -> bool {
        self.spec.offset == 0
    }
    fn is_error(&self, val: &[u8]) -> bool {
        val.first() == Some(&ERROR_TAG)
    }
    fn run(&mut self, key: &[u8], vals: &mut dyn Iterator<Item = (&[u8], Diff)>, out: &mut Outputs) {
        let mut vals = vals.peekable();
        let Some((first, _)) = vals.peek() else { return };
        let limit = limit_of(&self.spec.limit, || self.layout.decode_row(key, order::split(first).1), &self.layout.types, &self.ctx);
        let end = match limit {
            Err(e) => return push_error(out, &e),
            Ok(limit) => limit.map(|l| self.spec.offset.saturating_add(l)),
        };
        if end == Some(self.spec.offset) {
            return;
        }
        let mut seen: u64 = 0;
        let mut last: &[u8] = &[];
        for (val, n) in vals {
            if n < 0 {
                out.clear();
                return push_error(out, &errors::negative_count(self.spec.name));
            }
            let sort = order::split(val).0;
            let full = end.is_some_and(|e| seen >= e);
            if full && !(self.spec.with_ties && sort == last) {
                return;
            }
            let (from, to) = (seen.max(self.spec.offset), seen.saturating_add(n.unsigned_abs()));
            seen = to;
            let to = if self.spec.with_ties { to } else { end.map_or(to, |e| to.min(e)) };
            if to > from {
                out.push((to - from) as Diff, |b| b.extend_from_slice(val));
                last = sort;
            }
        }
    }
}
