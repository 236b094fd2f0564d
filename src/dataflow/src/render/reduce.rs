//! Grouping: one output row a group of SQL-equal keys.
//!
//! ```text
//!   input ──► [group key columns, what each aggregate reads] ──arrange by the key columns──► reduce ──► rows
//! ```
//!
//! The key columns of the output are a member's own: where several display forms meet, the least (DECISIONS 9).
//! Errors of a group (an overflow, a negative count) take the place of its row and heal with it.

use super::arranged::{arrange, flatten_reduced, rows_of, ERROR_TAG};
use super::collection::{concat, map, map_fallible, Collection, Updates};
use super::group::{AggInput, Group};
use super::top_k::{self, TopK};
use super::{Context, Env, RenderTime};
use crate::arrange::{GroupLogic, Layout, Outputs, Upd};
use crate::errors;
use crate::eval::{eval_columns, in_pieces, note_errors};
use arrow_array::builder::BinaryBuilder;
use arrow_array::Int32Array;
use expr::{Aggregate, ColumnOrder, Scalar};
use plan::lir::ReduceKind;
use repr::error::state;
use repr::{Batch, ColType, Diff, RowCodec, SqlError, SqlType, Value};
use std::rc::Rc;
use std::sync::Arc;

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
        in_pieces(upd, |upd| {
            let (cols, failed) = eval_columns(&exprs, &upd.batch, &in_types, &ctx);
            let whole = upd.with_batch(Batch { len: upd.len(), cols });
            let bad: Vec<u32> = failed.iter().map(|e| e.0).collect();
            note_errors(upd, failed, &mut out.errs)?;
            if bad.is_empty() {
                out.oks.push(whole);
                return Ok(());
            }
            let mut bad = bad.into_iter().peekable();
            out.oks.push(whole.take((0..whole.len() as u32).filter(|i| bad.next_if_eq(i).is_none()).collect()));
            Ok(())
        });
    });
    let (arity, grows) = (group_key.len(), grows(kind));
    let key: Vec<Scalar> = (0..arity).map(Scalar::Column).collect();
    let in_layout = Rc::new(Layout::new(wide, key.clone()));
    let out_layout = Rc::new(Layout::new(out_types.to_vec(), key));
    let (oks, errs) = if aggregates.is_empty() { distinct(rows, in_layout, &cx.env) } else { parts(cx, rows, in_layout, out_layout, arity, inputs, grows) };
    Collection::new(oks, input.errs).with_errs(failed).with_errs(errs)
}

/// How some of a reduce's aggregates are computed.
enum Part {
    /// States that add up, extrema of an input that only grows among them; also what chooses the key's display form. Positions of the aggregates.
    Sums(Vec<usize>),
    /// A minimum or maximum: the first row in its order.
    First(usize),
    /// States that add up, over the distinct arguments of a group.
    DistinctSums(usize),
    /// From all rows of the group.
    General(Vec<usize>),
}

/// The parts of a reduce: one if possible.
fn split(inputs: &[AggInput], key_types: &[ColType], sums_serve: bool, grows: bool) -> Vec<Part> {
    let positions = |f: &dyn Fn(&AggInput) -> bool| -> Vec<usize> { (0..inputs.len()).filter(|i| f(&inputs[*i])).collect() };
    if !sums_serve {
        return vec![Part::General(positions(&|_| true))];
    }
    let sums = positions(&|i| i.accumulates() || grows && i.extremum().is_some());
    let distinct = positions(&|i| i.accumulates_distinct());
    let general = positions(&|i| !i.accumulates() && !i.accumulates_distinct() && i.extremum().is_none());
    let firsts = positions(&|i| !grows && i.extremum().is_some());
    let forms_differ = key_types.iter().any(|t| t.ty.equal_is_not_identical());
    let mut parts = Vec::new();
    // The first row of a group in an aggregate's order does not show the key's least form.
    if !sums.is_empty() || (forms_differ && !firsts.is_empty()) {
        parts.push(Part::Sums(sums));
    }
    if !general.is_empty() {
        parts.push(Part::General(general));
    }
    parts.extend(distinct.into_iter().map(Part::DistinctSums));
    parts.extend(firsts.into_iter().map(Part::First));
    parts
}

/// Whether the plan says that rows are never taken back.
fn grows(kind: &ReduceKind) -> bool {
    match kind {
        ReduceKind::Monotonic(_) => true,
        ReduceKind::Collated(parts) => parts.iter().any(|(_, k)| grows(k)),
        _ => false,
    }
}

/// Each aggregate by its best form; several parts are put together by key.
fn parts<'s, T: RenderTime>(
    cx: &Context<'s, T>,
    rows: Updates<'s, T>,
    in_layout: Rc<Layout>,
    out_layout: Rc<Layout>,
    arity: usize,
    inputs: Vec<AggInput>,
    grows: bool,
) -> (Updates<'s, T>, Updates<'s, T>) {
    let wide = in_layout.types.clone();
    let parts = split(&inputs, &wide[..arity], T::TOTAL, grows);
    let single = parts.len() == 1;
    let (mut made, mut errs, mut values) = (Vec::new(), Vec::new(), Vec::new());
    for part in parts {
        let (positions, types, (oks, failed)) = match part {
            Part::Sums(at) => {
                let types = part_types(&out_layout.types, arity, &at);
                let some = at.iter().map(|i| inputs[*i].clone()).collect();
                let done = T::accumulate(rows.clone(), in_layout.clone(), arity, some, &types, &cx.env);
                (at, types, done)
            }
            Part::General(at) => {
                let types = part_types(&out_layout.types, arity, &at);
                let some = at.iter().map(|i| inputs[*i].clone()).collect();
                let done = general(rows.clone(), in_layout.clone(), arity, some, &types, &cx.env);
                (at, types, done)
            }
            Part::DistinctSums(at) => {
                let types = part_types(&out_layout.types, arity, &[at]);
                let done = distinct_sums(cx, rows.clone(), &wide, arity, &inputs[at], &types);
                (vec![at], types, done)
            }
            Part::First(at) => {
                let types = part_types(&out_layout.types, arity, &[at]);
                (vec![at], types, first(cx, rows.clone(), &wide, arity, &inputs[at]))
            }
        };
        errs.push(failed);
        made.push(oks);
        values.push((positions, types[arity..].to_vec()));
    }
    let oks = if single { made.remove(0) } else { assemble(cx, made, values, out_layout, arity, &mut errs) };
    (oks, concat(errs))
}

/// One row for all that are equal, in the least display form that is present. `layout`: keyed by all columns.
///
/// In totally ordered time that is an aggregation without aggregates: rows are counted before they are sent, and counts are all that is kept.
fn distinct<'s, T: RenderTime>(rows: Updates<'s, T>, layout: Rc<Layout>, env: &Rc<Env>) -> (Updates<'s, T>, Updates<'s, T>) {
    let (arity, types) = (layout.types.len(), layout.types.clone());
    if T::TOTAL {
        return T::accumulate(rows, layout, arity, vec![], &types, env);
    }
    let (arranged, _) = arrange(rows, layout.clone(), vec![true; arity], "ArrangeDistinct", env);
    flatten_reduced(T::reduce(arranged, "Distinct", distinct_logic(), env).stream, env, rows_of(layout))
}

/// Every aggregate anew from the rows of a touched group.
pub fn general<'s, T: RenderTime>(
    rows: Updates<'s, T>,
    in_layout: Rc<Layout>,
    arity: usize,
    inputs: Vec<AggInput>,
    out_types: &[ColType],
    env: &Rc<Env>,
) -> (Updates<'s, T>, Updates<'s, T>) {
    let (arranged, _) = arrange(rows, in_layout.clone(), vec![true; arity], "ArrangeGroup", env);
    let out_layout = Rc::new(Layout::new(out_types.to_vec(), (0..arity).map(Scalar::Column).collect()));
    let logic = group_logic(Group::new(in_layout, arity, inputs, env.ctx.clone()), out_layout.clone());
    flatten_reduced(T::reduce(arranged, "Reduce", logic, env).stream, env, rows_of(out_layout))
}

/// Key columns, then the aggregates at `positions`.
fn part_types(out: &[ColType], arity: usize, positions: &[usize]) -> Vec<ColType> {
    out[..arity].iter().cloned().chain(positions.iter().map(|p| out[arity + p].clone())).collect()
}

/// The distinct (key, arguments), summed up. Rows that the filter rejects have NULL arguments: they keep their group alive.
fn distinct_sums<'s, T: RenderTime>(
    cx: &Context<'s, T>,
    rows: Updates<'s, T>,
    wide: &[ColType],
    arity: usize,
    input: &AggInput,
    out_types: &[ColType],
) -> (Updates<'s, T>, Updates<'s, T>) {
    let args = input.args.clone();
    let types: Vec<ColType> = wide[..arity].iter().chain(&wide[args.clone()]).cloned().collect();
    let narrowed = map(rows, "DistinctArguments", move |upd: Upd<T>| {
        let mut cols = upd.batch.cols[..arity].to_vec();
        cols.extend_from_slice(&upd.batch.cols[args.clone()]);
        upd.with_batch(Batch { len: upd.len(), cols })
    });
    let whole = Rc::new(Layout::whole(types.clone()));
    let (oks, failed) = distinct(narrowed, whole, &cx.env);
    let mut agg = input.agg.clone();
    (agg.distinct, agg.filter) = (false, None);
    let input = AggInput { agg, args: arity..types.len(), filter: None, order: vec![], types: types[arity..].to_vec() };
    let layout = Rc::new(Layout::new(types, (0..arity).map(Scalar::Column).collect()));
    let (oks, errs) = T::accumulate(oks, layout, arity, vec![input], out_types, &cx.env);
    (oks, concat(vec![failed, errs]))
}

/// A minimum or maximum: NULLs last, the least bytes among equals, as the first of its group in order.
fn first<'s, T: RenderTime>(cx: &Context<'s, T>, rows: Updates<'s, T>, wide: &[ColType], arity: usize, input: &AggInput) -> (Updates<'s, T>, Updates<'s, T>) {
    let (arg, desc) = (input.args.start, input.extremum() == Some(true));
    let types: Vec<ColType> = wide[..arity].iter().chain([&wide[arg]]).cloned().collect();
    let narrowed = map(rows, "Extremum", move |upd: Upd<T>| {
        let mut cols = upd.batch.cols[..arity].to_vec();
        cols.push(upd.batch.cols[arg].clone());
        upd.with_batch(Batch { len: upd.len(), cols })
    });
    let spec = TopK {
        group_key: (0..arity).collect(),
        order_by: vec![ColumnOrder { column: arity, desc, nulls_last: true }],
        limit: Some(Scalar::literal(Value::Int8(1), SqlType::Int8)),
        offset: 0,
        with_ties: false,
        name: "an aggregation",
    };
    let none = cx.nothing();
    let done = top_k::render(cx, Collection::new(narrowed, none), &types, spec);
    (done.oks, done.errs)
}

/// Puts the rows of parts together: a group's row is there once every part has given its own.
///
/// Each part's row becomes (key columns, part, bytes of its values); the first part's key columns are shown.
fn assemble<'s, T: RenderTime>(
    cx: &Context<'s, T>,
    parts: Vec<Updates<'s, T>>,
    values: Vec<(Vec<usize>, Vec<ColType>)>,
    out_layout: Rc<Layout>,
    arity: usize,
    errs: &mut Vec<Updates<'s, T>>,
) -> Updates<'s, T> {
    let mut types: Vec<ColType> = out_layout.types[..arity].to_vec();
    types.extend([SqlType::Int4.not_null(), SqlType::Bytea.not_null()]);
    let codecs: Vec<RowCodec> = values.iter().map(|(_, t)| RowCodec::new(t.clone())).collect();
    let tagged = parts.into_iter().zip(&codecs).enumerate().map(|(n, (part, codec))| {
        let codec = codec.clone();
        map(part, "Tag", move |upd: Upd<T>| {
            let len = upd.len();
            let (mut bytes, mut ends) = (Vec::new(), Vec::new());
            codec.encode_rows(&upd.batch.cols[arity..], len, &mut bytes, &mut ends);
            let mut payload = BinaryBuilder::with_capacity(len, bytes.len());
            let mut from = 0;
            for end in ends {
                payload.append_value(&bytes[from..end as usize]);
                from = end as usize;
            }
            let mut cols = upd.batch.cols[..arity].to_vec();
            cols.push(Arc::new(Int32Array::from(vec![n as i32; len])));
            cols.push(Arc::new(payload.finish()));
            upd.with_batch(Batch { len, cols })
        })
    });
    let tagged = concat(tagged.collect());
    let in_layout = Rc::new(Layout::new(types, out_layout.key.clone()));
    let (arranged, _) = arrange(tagged, in_layout.clone(), vec![true; arity], "ArrangeParts", &cx.env);
    let (layout, width) = (out_layout.clone(), out_layout.types.len());
    let logic = move |key: &[u8], vals: &[(&[u8], Diff)], out: &mut Outputs| {
        let mut row = vec![Value::Null; width];
        let mut seen = vec![false; codecs.len()];
        for (val, n) in vals.iter().filter(|v| v.1 > 0) {
            let mut part = in_layout.decode_row(key, val);
            let (Some(Value::Bytea(payload)), Some(Value::Int4(index))) = (part.pop(), part.pop()) else { continue };
            let index = index as usize;
            if *n != 1 || std::mem::replace(&mut seen[index], true) {
                return;
            }
            if index == 0 {
                row.iter_mut().zip(part).for_each(|(slot, v)| *slot = v);
            }
            for (at, v) in values[index].0.iter().zip(codecs[index].decode_row(&payload)) {
                row[arity + at] = v;
            }
        }
        if seen.iter().all(|s| *s) {
            out.push(1, |b| layout.encode_val(&row, b));
        }
    };
    let (oks, failed) = flatten_reduced(T::reduce(arranged, "Assemble", logic, &cx.env).stream, &cx.env, rows_of(out_layout));
    errs.push(failed);
    oks
}

/// The aggregates in output order, whatever their kinds.
pub fn aggregates(kind: &ReduceKind, n: usize) -> Vec<Aggregate> {
    fn place(kind: &ReduceKind, at: &[usize], out: &mut [Option<Aggregate>]) {
        match kind {
            ReduceKind::Distinct => {}
            ReduceKind::Accumulable(aggs) | ReduceKind::Basic(aggs) | ReduceKind::Hierarchical(aggs) | ReduceKind::Monotonic(aggs) => {
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

/// The most bytes of one group's aggregates together.
const ROW_BYTES_MAX: usize = 1 << 30;

fn group_logic(group: Group, out_layout: Rc<Layout>) -> impl GroupLogic<Diff> {
    move |key: &[u8], vals: &[(&[u8], Diff)], out: &mut Outputs| {
        if vals.iter().any(|v| v.1 < 0) {
            return push_error(out, &errors::negative_count("an aggregation"));
        }
        if vals.is_empty() {
            return;
        }
        let mut bytes = Vec::new();
        match group.row(key, vals) {
            Ok(row) => out_layout.encode_val(&row, &mut bytes),
            Err(e) => return push_error(out, &e),
        }
        if bytes.len() > ROW_BYTES_MAX {
            let e = SqlError::new(state::PROGRAM_LIMIT_EXCEEDED, format!("the aggregates of one group take more than {} MB", ROW_BYTES_MAX >> 20));
            return push_error(out, &e.with_hint("aggregate less, or in smaller groups"));
        }
        out.push(1, |b| b.extend_from_slice(&bytes));
    }
}
