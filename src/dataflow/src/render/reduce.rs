//! Grouping: one output row a group of SQL-equal keys.
//!
//! ```text
//!   input ──► [group key columns, what each aggregate reads] ──arrange by the key columns──► reduce ──► rows
//! ```
//!
//! The key columns of the output are a member's own: where several display forms meet, the least (DECISIONS 9).
//! Errors of a group (an overflow, a negative count) take the place of its row and heal with it.

use super::arranged::{arrange, flatten_reduced, ERROR_TAG};
use super::collection::{map_fallible, Collection, Updates};
use super::group::{AggInput, Group};
use super::{Context, RenderTime};
use crate::arrange::{GroupLogic, Layout, Outputs, Upd};
use crate::errors;
use crate::eval::eval_columns;
use expr::{Aggregate, Scalar};
use plan::lir::ReduceKind;
use repr::{Batch, ColType, Diff, SqlError};
use std::rc::Rc;

/// Puts an error in the place of a group's row.
pub fn push_error(out: &mut Outputs, e: &SqlError) {
    out.push(1, |b| {
        b.push(ERROR_TAG);
        errors::write_bytes(e, b);
    });
}

pub fn render<'s, T: RenderTime>(
    cx: &mut Context<'s, T>,
    input: Collection<'s, T>,
    types: &[ColType],
    group_key: &[Scalar],
    kind: &ReduceKind,
    out_types: &[ColType],
) -> Collection<'s, T> {
    let aggregates = aggregates(kind, out_types.len() - group_key.len());
    // The wide row: key columns, then what the aggregates read.
    let mut exprs: Vec<Scalar> = group_key.to_vec();
    let mut wide: Vec<ColType> = group_key.iter().map(|k| k.typ(types)).collect();
    let inputs: Vec<AggInput> = aggregates.iter().map(|a| AggInput::new(a, types, &mut exprs, &mut wide)).collect();
    let ctx = cx.env.ctx.clone();
    let in_types = types.to_vec();
    let (rows, failed) = map_fallible(input.oks, "GroupInput", move |upd: Upd<T>, out| {
        let (cols, failed) = eval_columns(&exprs, &upd.batch, &in_types, &ctx);
        let whole = Upd { batch: Batch { len: upd.len(), cols }, times: upd.times, diffs: upd.diffs };
        if failed.is_empty() {
            out.oks.push(whole);
            return;
        }
        let mut bad = failed.iter().map(|e| e.0).peekable();
        let kept = (0..whole.len() as u32).filter(|i| bad.next_if_eq(i).is_none()).collect();
        out.oks.push(whole.take(kept));
        out.errs.extend(failed.into_iter().map(|(i, e)| (e, whole.times.get(i as usize).clone(), *whole.diffs.get(i as usize))));
    });
    let arity = group_key.len();
    let key: Vec<Scalar> = (0..arity).map(Scalar::Column).collect();
    let in_layout = Rc::new(Layout::new(wide, key.clone()));
    let out_layout = Rc::new(Layout::new(out_types.to_vec(), key));
    let (oks, errs) = if aggregates.is_empty() {
        let (arranged, _) = arrange(rows, in_layout, vec![true; arity], "ArrangeDistinct", &cx.env);
        flatten_reduced(T::reduce(arranged, "Distinct", distinct_logic(), &cx.env).stream, out_layout, &cx.env)
    } else {
        parts(cx, rows, in_layout, out_layout, arity, inputs)
    };
    Collection::new(oks, input.errs).with_errs(failed).with_errs(errs)
}

/// Each aggregate by its best form.
fn parts<'s, T: RenderTime>(
    cx: &Context<'s, T>,
    rows: Updates<'s, T>,
    in_layout: Rc<Layout>,
    out_layout: Rc<Layout>,
    arity: usize,
    inputs: Vec<AggInput>,
) -> (Updates<'s, T>, Updates<'s, T>) {
    let (mut rows, mut inputs) = (rows, inputs);
    if inputs.iter().all(AggInput::accumulates) {
        match T::accumulate(rows, in_layout.clone(), arity, inputs, &out_layout.types, &cx.env) {
            Ok(done) => return done,
            Err(back) => (rows, inputs) = back,
        }
    }
    let (arranged, _) = arrange(rows, in_layout.clone(), vec![true; arity], "ArrangeGroup", &cx.env);
    let logic = group_logic(Group::new(in_layout, arity, inputs, cx.env.ctx.clone()), out_layout.clone());
    flatten_reduced(T::reduce(arranged, "Reduce", logic, &cx.env).stream, out_layout, &cx.env)
}

/// The aggregates in output order, whatever their kinds.
fn aggregates(kind: &ReduceKind, n: usize) -> Vec<Aggregate> {
    fn place(kind: &ReduceKind, at: &[usize], out: &mut [Option<Aggregate>]) {
        match kind {
            ReduceKind::Distinct => {}
            ReduceKind::Accumulable(aggs) | ReduceKind::Basic(aggs) | ReduceKind::Hierarchical { aggregates: aggs, .. } => {
                for (a, i) in aggs.iter().zip(at) {
                    out[*i] = Some(a.clone());
                }
            }
            ReduceKind::Collated(parts) => parts.iter().for_each(|(positions, part)| {
                let at: Vec<usize> = positions.iter().map(|p| at[*p]).collect();
                place(part, &at, out)
            }),
        }
    }
    let mut out = vec![None; n];
    place(kind, &(0..n).collect::<Vec<_>>(), &mut out);
    out.into_iter().flatten().collect()
}

/// The least display form of a key that is present.
fn distinct_logic() -> impl GroupLogic<Diff> {
    |_: &[u8], vals: &[(&[u8], Diff)], out: &mut Outputs| {
        if vals.iter().any(|v| v.1 < 0) {
            return push_error(out, &errors::negative_count("DISTINCT"));
        }
        if let Some((val, _)) = vals.iter().find(|v| v.1 > 0) {
            out.push(1, |b| b.extend_from_slice(val));
        }
    }
}

fn group_logic(group: Group, out_layout: Rc<Layout>) -> impl GroupLogic<Diff> {
    move |key: &[u8], vals: &[(&[u8], Diff)], out: &mut Outputs| {
        if vals.iter().any(|v| v.1 < 0) {
            return push_error(out, &errors::negative_count("an aggregation"));
        }
        if vals.is_empty() {
            return;
        }
        match group.row(key, vals) {
            Ok(row) => out.push(1, |b| out_layout.encode_val(&row, b)),
            Err(e) => push_error(out, &e),
        }
    }
}
