//! Window functions: a touched partition is evaluated again, and only differences are sent.

use super::arranged::flatten_reduced;
use super::collection::{map_fallible, Collection};
use super::reduce::push_error;
use super::{order, Context, RenderTime};
use crate::arrange::{exchange, Block, GroupLogic, Layout, Outputs, Upd};
use crate::errors;
use expr::window::{evaluate, Partition};
use expr::{ColumnOrder, EvalCtx, Scalar, WindowExpr};
use repr::{ColType, Diff, Value};
use std::rc::Rc;
use std::sync::Arc;

pub fn render<'s, T: RenderTime>(
    cx: &Context<'s, T>,
    input: Collection<'s, T>,
    types: &[ColType],
    partition: &[usize],
    order_by: &[ColumnOrder],
    exprs: &[WindowExpr],
    out_types: &[ColType],
) -> Collection<'s, T> {
    let key: Vec<Scalar> = partition.iter().map(|c| Scalar::Column(*c)).collect();
    let in_layout = Rc::new(Layout::new(types.to_vec(), key.clone()));
    let out_layout = Rc::new(Layout::new(out_types.to_vec(), key));
    let (encode_layout, encode_order, ctx) = (in_layout.clone(), order_by.to_vec(), cx.env.ctx.clone());
    let (blocks, failed) = map_fallible(input.oks, "EncodePartition", move |upd: Upd<T>, out| {
        let (body, failed) = order::encode(&encode_layout, &encode_order, &upd, &ctx);
        out.errs.extend(failed.into_iter().map(|(i, e)| (e, upd.times.get(i as usize).clone(), *upd.diffs.get(i as usize))));
        if !body.is_empty() {
            out.oks.push(Block(body));
        }
    });
    let arranged = T::arrange(blocks, exchange(), "ArrangePartition", &cx.env);
    let logic = logic(in_layout, out_layout.clone(), order_by.to_vec(), exprs.to_vec(), cx.env.ctx.clone());
    let reduced = T::reduce(arranged, "Window", logic, &cx.env);
    let (oks, errs) = flatten_reduced(reduced.stream, out_layout, |val| val, &cx.env);
    Collection::new(oks, input.errs).with_errs(failed).with_errs(errs)
}

fn logic(in_layout: Rc<Layout>, out_layout: Rc<Layout>, order: Vec<ColumnOrder>, exprs: Vec<WindowExpr>, ctx: Arc<EvalCtx>) -> impl GroupLogic<Diff> {
    move |key: &[u8], vals: &[(&[u8], Diff)], out: &mut Outputs| {
        if vals.iter().any(|v| v.1 < 0) {
            return push_error(out, &errors::negative_count("a window function"));
        }
        let (mut rows, mut peers): (Vec<Vec<Value>>, Vec<usize>) = Default::default();
        let (mut last, mut peer) = (None, 0);
        for (val, n) in vals {
            let (sort, row) = order::split(val);
            if last.is_some_and(|l| l != sort) {
                peer += 1;
            }
            last = Some(sort);
            let row = in_layout.decode_row(key, row);
            for _ in 0..*n {
                rows.push(row.clone());
                peers.push(peer);
            }
        }
        let partition = Partition { rows: &rows, types: &in_layout.types, peers: &peers, order: &order };
        match evaluate(&partition, &exprs, &ctx) {
            Err(e) => push_error(out, &e),
            Ok(values) => {
                for (mut row, more) in rows.into_iter().zip(values) {
                    row.extend(more);
                    out.push(1, |b| out_layout.encode_val(&row, b));
                }
            }
        }
    }
}
