//! LIMIT, OFFSET and DISTINCT ON in each group of equal key columns.
//!
//! The arrangement keeps each group's rows in ORDER BY order (see `order`), ties broken by row bytes.

use super::arranged::flatten_reduced;
use super::collection::{map_fallible, Collection};
use super::reduce::push_error;
use super::{order, Context, RenderTime};
use crate::arrange::{exchange, Block, GroupLogic, Layout, Outputs, Upd};
use crate::errors;
use crate::eval::eval_column;
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
}

pub fn render<'s, T: RenderTime>(cx: &Context<'s, T>, input: Collection<'s, T>, types: &[ColType], spec: TopK) -> Collection<'s, T> {
    let key = spec.group_key.iter().map(|c| Scalar::Column(*c)).collect();
    let layout = Rc::new(Layout::new(types.to_vec(), key));
    let (encode_layout, order_by, ctx) = (layout.clone(), spec.order_by.clone(), cx.env.ctx.clone());
    let (blocks, failed) = map_fallible(input.oks, "EncodeOrdered", move |upd: Upd<T>, out| {
        let (body, failed) = order::encode(&encode_layout, &order_by, &upd, &ctx);
        out.errs.extend(failed.into_iter().map(|(i, e)| (e, upd.times.get(i as usize).clone(), *upd.diffs.get(i as usize))));
        if !body.is_empty() {
            out.oks.push(Block(body));
        }
    });
    let arranged = T::arrange(blocks, exchange(), "ArrangeTopK", &cx.env);
    let reduced = T::reduce(arranged, "TopK", logic(spec, layout.clone(), cx.env.ctx.clone()), &cx.env);
    let (oks, errs) = flatten_reduced(reduced.stream, layout, &cx.env);
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

/// Hands out the rows that a group keeps, from its vals in order.
pub fn select<'a>(spec: &TopK, limit: Option<u64>, vals: impl Iterator<Item = (&'a [u8], Diff)>, mut keep: impl FnMut(&'a [u8], Diff)) {
    let end = limit.map(|l| spec.offset.saturating_add(l));
    let mut seen: u64 = 0;
    let mut last_sort: Option<&[u8]> = None;
    for (val, n) in vals {
        let (sort, row) = order::split(val);
        let n = n.unsigned_abs();
        let (from, to) = (seen, seen.saturating_add(n));
        seen = to;
        let lo = from.max(spec.offset);
        let hi = end.map_or(to, |e| to.min(e));
        let tied = spec.with_ties && end.is_some_and(|e| from >= e) && last_sort == Some(sort);
        let spills = spec.with_ties && end.is_some_and(|e| from < e && to > e && e > spec.offset);
        if tied {
            keep(row, n as Diff);
        } else if spills {
            keep(row, (to - lo) as Diff);
            last_sort = Some(sort);
        } else if hi > lo {
            keep(row, (hi - lo) as Diff);
            last_sort = Some(sort);
        } else if end.is_some_and(|e| from >= e) {
            return;
        }
    }
}

fn logic(spec: TopK, layout: Rc<Layout>, ctx: Arc<EvalCtx>) -> impl GroupLogic<Diff> {
    move |key: &[u8], vals: &[(&[u8], Diff)], out: &mut Outputs| {
        let Some((first, _)) = vals.first() else { return };
        if vals.iter().any(|v| v.1 < 0) {
            return push_error(out, &errors::negative_count("a LIMIT"));
        }
        match limit_of(&spec.limit, || layout.decode_row(key, order::split(first).1), &layout.types, &ctx) {
            Err(e) => push_error(out, &e),
            Ok(limit) => select(&spec, limit, vals.iter().copied(), |row, n| out.push(n, |b| b.extend_from_slice(row))),
        }
    }
}
