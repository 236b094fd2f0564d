//! Collections into arrangements and back.

use super::collection::{map_fallible, map_many, Updates};
use super::{Env, RenderTime};
use crate::arrange::{exchange, Arr, AsOf, Block, Budget, Layout, RowB, Upd};
use crate::errors;
use crate::eval::{in_pieces, note_errors};
use crate::flow::Throttle;
use differential_dataflow::operators::arrange::Arranged;
use differential_dataflow::trace::Span;
use expr::Scalar;
use repr::batch::PIECE_BYTES;
use repr::{Batch, Col, Diff, SqlError};
use std::collections::VecDeque;
use std::rc::Rc;
use std::time::Duration;
use timely::container::NoopBuilder;
use timely::dataflow::channels::pact::Pipeline;
use timely::dataflow::operators::generic::builder_rc::OperatorBuilder;
use timely::dataflow::operators::generic::OutputBuilder;
use timely::dataflow::operators::CapabilitySet;
use timely::dataflow::Stream;

/// First byte of a val that stands for an error: no row's bytes begin with it.
pub const ERROR_TAG: u8 = 0xFF;
/// Rows that one container of a flattened arrangement holds; wide rows are bounded by [`PIECE_BYTES`].
const FLAT_ROWS: usize = 4096;
/// Time an activation of a yielding operator may take.
pub const STEP: Duration = Duration::from_millis(2);

/// An arrangement to join with: of this dataflow, or imported.
pub enum Traced<'s, T: RenderTime> {
    Local(Arr<'s, T, Diff>),
    Imported(Arranged<'s, AsOf<T, Diff>>),
}

impl<T: RenderTime> Clone for Traced<'_, T> {
    fn clone(&self) -> Self {
        match self {
            Traced::Local(a) => Traced::Local(a.clone()),
            Traced::Imported(a) => Traced::Imported(a.clone()),
        }
    }
}

impl<'s, T: RenderTime> Traced<'s, T> {
    pub fn stream(&self) -> Stream<'s, T, Vec<Span<T, RowB<T, Diff>>>> {
        match self {
            Traced::Local(a) => a.stream.clone(),
            Traced::Imported(a) => a.stream.clone(),
        }
    }
}

/// Encodes updates by `layout`; errors of key expressions go to the second stream. Rows with a NULL in a key column that
/// is not in `keep_null` are left out.
pub fn encode<'s, T: RenderTime>(
    stream: Updates<'s, T>,
    layout: Rc<Layout>,
    keep_null: Vec<bool>,
    env: &Rc<Env>,
) -> (Stream<'s, T, Block<T, Diff>>, Option<Updates<'s, T>>) {
    let ctx = env.ctx.clone();
    // A key that is computed can lack room even where it cannot fail.
    if layout.key.iter().any(|k| !matches!(k, Scalar::Column(_))) {
        let (blocks, errs) = map_fallible(stream, "Encode", move |upd: Upd<T>, out| {
            in_pieces(upd, |upd| {
                let (body, failed) = layout.encode(upd, &ctx, &keep_null);
                note_errors(upd, failed, &mut out.errs)?;
                if !body.is_empty() {
                    out.oks.push(Block(body));
                }
                Ok(())
            });
        });
        return (blocks, Some(errs));
    }
    let encode = move |upd: Upd<T>| {
        let (layout, ctx, keep_null) = (layout.clone(), ctx.clone(), keep_null.clone());
        upd.pieces().map(move |upd| Block(layout.encode(&upd, &ctx, &keep_null).0))
    };
    (map_many(stream, "Encode", encode), None)
}

/// Arranges updates by `layout`, each on the worker that owns its key.
pub fn arrange<'s, T: RenderTime>(
    stream: Updates<'s, T>,
    layout: Rc<Layout>,
    keep_null: Vec<bool>,
    name: &str,
    env: &Rc<Env>,
) -> (Arr<'s, T, Diff>, Option<Updates<'s, T>>) {
    let (blocks, errs) = encode(stream, layout, keep_null, env);
    (T::arrange(blocks, exchange(), name, env), errs)
}

/// Updates of a stream of spans, by `visit(key, val, time, diff)` in the order of the batches, a bounded number an activation.
///
/// `decode` is given up to 4096 (key, val) pairs at a time, with their times and diffs, and puts out containers.
fn spans<'s, T: RenderTime>(
    stream: Stream<'s, T, Vec<Span<T, RowB<T, Diff>>>>,
    name: &str,
    env: &Rc<Env>,
    mut decode: impl FnMut(&[&[u8]], &[&[u8]], Col<T>, Col<Diff>, &mut Vec<(SqlError, T, Diff)>) -> Upd<T> + 'static,
) -> (Updates<'s, T>, Updates<'s, T>) {
    let scope = stream.scope();
    let mut builder = OperatorBuilder::new(name.to_owned(), scope);
    let address = builder.operator_info().address;
    let throttle = Throttle::new(env.gate.clone(), scope.worker(), &address);
    let activator = scope.activator_for(address);
    let mut input = builder.new_input(stream, Pipeline);
    let (oks, oks_stream) = builder.new_output();
    let (errs, errs_stream) = builder.new_output();
    let (mut oks, mut errs) = (OutputBuilder::<T, NoopBuilder<Upd<T>>>::from(oks), OutputBuilder::<T, NoopBuilder<Upd<T>>>::from(errs));
    let env = env.clone();
    builder.build(move |_| {
        // Batches with their capabilities and the position: chunk, key, update.
        let mut queue: VecDeque<(CapabilitySet<T>, CapabilitySet<T>, RowB<T, Diff>, (usize, usize, usize))> = VecDeque::new();
        move |_| {
            input.for_each(|cap, data| {
                for batch in data.drain(..).filter_map(|s| s.inner) {
                    queue.push_back((cap.retain_stamp(0), cap.retain_stamp(1), batch, (0, 0, 0)));
                }
            });
            if env.stopped.get() {
                queue.clear();
                return;
            }
            let (mut oks, mut errs) = (oks.activate(), errs.activate());
            let mut budget = Budget::new(STEP);
            let mut failed = Vec::new();
            while !budget.spent {
                if !queue.is_empty() && throttle.holds() {
                    return;
                }
                let Some((ok_cap, err_cap, batch, (c, k, u))) = queue.front_mut() else { break };
                let (mut keys, mut vals): (Vec<&[u8]>, Vec<&[u8]>) = Default::default();
                let (mut times, mut diffs) = (Col::default(), Col::default());
                let mut bytes = 0;
                while keys.len() < FLAT_ROWS && bytes < PIECE_BYTES && *c < batch.chunks.len() {
                    let x = batch.chunks[*c].body();
                    if *u >= x.len() {
                        (*c, *k, *u) = (*c + 1, 0, 0);
                        continue;
                    }
                    while x.key_ends[*k] as usize <= *u {
                        *k += 1;
                    }
                    if let Some(t) = batch.time(x, *u) {
                        let (key, val) = (x.keys.get(*k), x.val(*u));
                        bytes += key.len() + val.len();
                        keys.push(key);
                        vals.push(val);
                        times.push(t);
                        diffs.push(*x.diffs.get(*u));
                    }
                    *u += 1;
                }
                budget.charge(keys.len().max(1024));
                if !keys.is_empty() {
                    let mut upd = decode(&keys, &vals, times, diffs, &mut failed);
                    if !upd.is_empty() {
                        oks.session_with_builder(&*ok_cap).give_container(&mut upd);
                        budget.spent |= throttle.by_container();
                    }
                    if !failed.is_empty() {
                        errs.session_with_builder(&*err_cap).give_containers(errors::to_updates(std::mem::take(&mut failed)).iter_mut());
                    }
                }
                if *c >= batch.chunks.len() {
                    queue.pop_front();
                }
            }
            if !queue.is_empty() {
                activator.activate();
            }
        }
    });
    (oks_stream, errs_stream)
}

/// The rows of an arrangement as updates.
pub fn flatten<'s, T: RenderTime>(input: &Traced<'s, T>, layout: Rc<Layout>, env: &Rc<Env>) -> Updates<'s, T> {
    spans(input.stream(), "Flatten", env, move |keys, vals, times, diffs, _| Upd { batch: layout.decode(keys, vals, |_| true), times, diffs }).0
}

/// As `flatten`, for the output of a reduce, whose vals may stand for errors. `decode` gives the rows of keys and other vals.
pub fn flatten_reduced<'s, T: RenderTime>(
    stream: Stream<'s, T, Vec<Span<T, RowB<T, Diff>>>>,
    env: &Rc<Env>,
    decode: impl Fn(&[&[u8]], &[&[u8]]) -> Batch + 'static,
) -> (Updates<'s, T>, Updates<'s, T>) {
    spans(stream, "FlattenReduced", env, move |keys, vals, times, diffs, failed| {
        if vals.iter().all(|v| v.first() != Some(&ERROR_TAG)) {
            return Upd { batch: decode(keys, vals), times, diffs };
        }
        let mut kept = Vec::new();
        for (i, v) in vals.iter().enumerate() {
            match v.split_first() {
                Some((&ERROR_TAG, bytes)) => failed.push((errors::from_bytes(bytes), times.get(i).clone(), *diffs.get(i))),
                _ => kept.push(i as u32),
            }
        }
        let kept_keys: Vec<&[u8]> = kept.iter().map(|i| keys[*i as usize]).collect();
        let kept_vals: Vec<&[u8]> = kept.iter().map(|i| vals[*i as usize]).collect();
        Upd { batch: decode(&kept_keys, &kept_vals), times: times.take(&kept), diffs: diffs.take(&kept) }
    })
}

/// Decodes by `layout` what a reduce made.
pub fn rows_of(layout: Rc<Layout>) -> impl Fn(&[&[u8]], &[&[u8]]) -> Batch {
    move |keys, vals| layout.decode(keys, vals, |_| true)
}

/// Sums up equal rows of one time: an arrangement without a trace.
pub fn consolidate<'s, T: RenderTime>(stream: Updates<'s, T>, types: Vec<repr::ColType>, env: &Rc<Env>) -> Updates<'s, T> {
    let layout = Rc::new(Layout::whole(types));
    let keep = vec![true; layout.key.len()];
    let (arranged, _) = arrange(stream, layout.clone(), keep, "Consolidate", env);
    flatten(&Traced::Local(Arranged { stream: arranged.stream, trace: arranged.trace }), layout, env)
}

/// One row for each row with a positive count: what exported errs are.
pub fn distinct_errors<'s, T: RenderTime>(stream: Updates<'s, T>, env: &Rc<Env>) -> Arr<'s, T, Diff> {
    let layout = Rc::new(Layout::whole(errors::error_types()));
    let keep = vec![true; layout.key.len()];
    let (arranged, _) = arrange(stream, layout, keep, "Errors", env);
    T::reduce(
        arranged,
        "DistinctErrors",
        |_: &[u8], vals: &[(&[u8], Diff)], out: &mut crate::arrange::Outputs| {
            for (v, n) in vals {
                if *n > 0 {
                    out.push(1, |b| b.extend_from_slice(v));
                }
            }
        },
        env,
    )
}

/// Parts errors into those that stay errors, and those that data caused, as rows of [`errors::quarantine_types`], each once.
pub fn quarantine<'s, T: RenderTime>(errs: Updates<'s, T>, env: &Rc<Env>) -> (Updates<'s, T>, Updates<'s, T>) {
    fn part<T: Clone + PartialEq>(upd: Upd<T>, of_data: bool) -> Upd<T> {
        let types = errors::error_types();
        let wanted: Vec<u32> = (0..upd.batch.len)
            .filter(|i| {
                let code = repr::column::get(&upd.batch.cols[0], &types[0].ty, *i);
                errors::is_of_data(code.as_str().unwrap_or_default()) == of_data
            })
            .map(|i| i as u32)
            .collect();
        Upd { batch: upd.batch.take(&wanted.clone().into()), times: upd.times.take(&wanted), diffs: upd.diffs.take(&wanted) }
    }
    let layout = Rc::new(Layout::whole(errors::error_types()));
    let distinct = distinct_errors(super::map(errs.clone(), "OfData", |u| part(u, true)), env);
    let rows = flatten(&Traced::Local(Arranged { stream: distinct.stream, trace: distinct.trace }), layout, env);
    let rows = super::map(rows, "ErrorRows", |mut u: Upd<T>| {
        u.batch.cols.truncate(errors::QUARANTINE_COLUMNS);
        u
    });
    (super::map(errs, "OfTheSystem", |u| part(u, false)), rows)
}

/// A stream that never carries anything, of a scope.
pub fn empty<'s, T: RenderTime>(scope: timely::dataflow::Scope<'s, T>) -> Updates<'s, T> {
    timely::dataflow::operators::generic::source::<_, NoopBuilder<Upd<T>>, _, _>(scope, "Empty", |cap, _| {
        drop(cap);
        |_: &mut timely::dataflow::operators::generic::OutputBuilderSession<'_, T, NoopBuilder<Upd<T>>>| {}
    })
}
