//! A reduce for totally ordered time that reads sums: the weights of a group are all that its row depends on.
//!
//! For each key of a fresh batch the sum before it is looked up in the trace (a few updates, since spans consolidate), and
//! the fresh weights are added time by time. No output trace is kept: the row before a change is computed from the sum
//! before it. Cost of a change: O(log n) to find the key, O(1) to add.
//!
//! Works through large batches in steps of a time budget. Not for recursion: `TotalOrder` is asked for.

use super::{At, Budget, RowB, Time, Weight};
use crate::flow::Stopped;
use differential_dataflow::operators::arrange::Arranged;
use differential_dataflow::trace::{Span, TraceReader};
use repr::batch::PIECE_BYTES;
use repr::Diff;
use std::collections::VecDeque;
use std::rc::Rc;
use std::time::Duration;
use timely::container::NoopBuilder;
use timely::dataflow::channels::pact::Pipeline;
use timely::dataflow::operators::generic::builder_rc::OperatorBuilder;
use timely::dataflow::operators::generic::OutputBuilder;
use timely::dataflow::operators::CapabilitySet;
use timely::dataflow::Stream;
use timely::order::{PartialOrder, TotalOrder};
use timely::progress::frontier::Antichain;
use timely::Container;

/// Changed rows in an output container.
const OUT_ROWS: usize = 4096;

/// Rows that changed, with the keys they belong to.
pub struct Changes<'a, T, O> {
    pub keys: Vec<&'a [u8]>,
    pub rows: Vec<(O, T, Diff)>,
    /// Of the keys.
    bytes: usize,
}

/// A batch being worked through.
struct Unit<T: Time, R: Weight> {
    caps: [CapabilitySet<T>; 2],
    span: Span<T, RowB<T, R>>,
    prior: Option<(Vec<RowB<T, R>>, Vec<At>)>,
    pos: At,
}

/// Reduces an arrangement to at most one row a key. `resume`: the input is restored through it, and
/// nothing below is emitted. `row` gets the vals with their sums (none zero); `emit` turns changed
/// rows into a container for each of two outputs.
pub fn reduce_totals<'s, T: Time + TotalOrder, R: Weight, A, O: PartialEq + Clone + 'static, C: Container, D: Container>(
    input: Arranged<'s, A>,
    name: &str,
    budget: Duration,
    stopped: Rc<Stopped>,
    resume: Option<Antichain<T>>,
    mut row: impl FnMut(&[u8], &[(&[u8], R)]) -> Option<O> + 'static,
    mut emit: impl FnMut(Changes<'_, T, O>) -> (C, Vec<D>) + 'static,
) -> (Stream<'s, T, C>, Stream<'s, T, D>)
where
    A: TraceReader<Time = T, Batch = RowB<T, R>> + 'static,
{
    let mut trace = input.trace;
    let scope = input.stream.scope();
    let mut builder = OperatorBuilder::new(name.to_owned(), scope);
    let activator = scope.activator_for(builder.operator_info().address);
    let mut spans = builder.new_input(input.stream, Pipeline);
    let (first, first_stream) = builder.new_output();
    let (second, second_stream) = builder.new_output();
    let (mut first, mut second) = (OutputBuilder::<T, NoopBuilder<C>>::from(first), OutputBuilder::<T, NoopBuilder<D>>::from(second));
    builder.build(move |_| {
        let mut queue: VecDeque<Unit<T, R>> = VecDeque::new();
        let start = resume.unwrap_or_else(|| Antichain::from_elem(T::minimum()));
        let mut received = start.clone();
        move |_| {
            spans.for_each(|cap, data| {
                for span in data.drain(..).filter(|s| !PartialOrder::less_equal(s.upper(), &start)) {
                    received.clone_from(span.upper());
                    queue.push_back(Unit { caps: [cap.retain_stamp(0), cap.retain_stamp(1)], span, prior: None, pos: At::default() });
                }
            });
            if stopped.get() {
                queue.clear();
                return;
            }
            trace.advance_upper(&mut received);
            let (mut first, mut second) = (first.activate(), second.activate());
            let mut budget = Budget::new(budget);
            while !budget.spent {
                let Some(unit) = queue.front_mut() else { break };
                let Some(batch) = unit.span.inner.clone() else {
                    queue.pop_front();
                    continue;
                };
                let (prior, at) = unit.prior.get_or_insert_with(|| {
                    let prior = trace.batches_through(unit.span.lower().borrow()).expect("a span's lower bounds the spans before it");
                    let at = vec![At::default(); prior.len()];
                    (prior, at)
                });
                let mut changes = Changes { keys: vec![], rows: vec![], bytes: 0 };
                while changes.rows.len() < OUT_ROWS && changes.bytes < PIECE_BYTES && !budget.spent && unit.pos.chunk < batch.chunks.len() {
                    unit.pos = group(&batch, unit.pos, prior, at, &mut row, &mut changes, &mut budget);
                }
                if !changes.rows.is_empty() {
                    budget.charge(changes.rows.len());
                    let (mut c, mut d) = emit(changes);
                    first.session_with_builder(&unit.caps[0]).give_container(&mut c);
                    if !d.is_empty() {
                        second.session_with_builder(&unit.caps[1]).give_containers(d.iter_mut());
                    }
                }
                if unit.pos.chunk >= batch.chunks.len() {
                    queue.pop_front();
                }
            }
            if !queue.is_empty() {
                activator.activate();
            }
            // What waits still reads the trace below its lower.
            let done = queue.front().map_or(received.clone(), |u| u.span.lower().clone());
            if PartialOrder::less_equal(&trace.get_logical_compaction(), &done.borrow()) {
                trace.set_logical_compaction(done.borrow());
            }
            if PartialOrder::less_equal(&trace.get_physical_compaction(), &done.borrow()) {
                trace.set_physical_compaction(done.borrow());
            }
        }
    });
    (first_stream, second_stream)
}

/// Adds `r` to the sum of `val`, keeping vals in order and without zeros.
fn add<'a, R: Weight>(sums: &mut Vec<(&'a [u8], R)>, val: &'a [u8], r: &R) {
    match sums.binary_search_by(|s| s.0.cmp(val)) {
        Ok(i) => {
            sums[i].1.plus_equals(r);
            if sums[i].1.is_zero() {
                sums.remove(i);
            }
        }
        Err(i) => sums.insert(i, (val, r.clone())),
    }
}

/// One key of the fresh batch; returns the position after it.
fn group<'a, T: Time + TotalOrder, R: Weight, O: PartialEq + Clone>(
    batch: &'a RowB<T, R>,
    pos: At,
    prior: &[RowB<T, R>],
    at: &mut [At],
    row: &mut impl FnMut(&[u8], &[(&[u8], R)]) -> Option<O>,
    changes: &mut Changes<'a, T, O>,
    budget: &mut Budget,
) -> At {
    let (lane, key) = batch.chunks[pos.chunk].body().key(pos.key);
    let mut fresh: Vec<(T, &[u8], R)> = vec![];
    let mut last = pos;
    pos.each(batch, |c, u, x| {
        last.chunk = c;
        if let Some(t) = batch.time(x, u) {
            fresh.push((t, x.val(u), x.diffs.get(u).clone()));
        }
    });
    let next = match last.chunk == pos.chunk {
        true => At { chunk: pos.chunk, key: pos.key + 1 },
        false => At { chunk: last.chunk, key: 1 },
    };
    let next = if next.key >= batch.chunks[next.chunk].body().lanes.len() { At { chunk: next.chunk + 1, key: 0 } } else { next };
    fresh.sort_by(|a, b| a.0.cmp(&b.0));
    let mut sums: Vec<(&[u8], R)> = vec![];
    for (p, a) in prior.iter().zip(at) {
        if a.seek(p, lane, key) {
            a.each(p, |_, u, x| {
                if p.time(x, u).is_some() {
                    add(&mut sums, x.val(u), x.diffs.get(u));
                }
                budget.charge(1);
            });
        }
    }
    budget.charge(1 + fresh.len());
    let mut before = if sums.is_empty() { None } else { row(key, &sums) };
    let mut i = 0;
    while i < fresh.len() {
        let t = fresh[i].0.clone();
        while i < fresh.len() && fresh[i].0 == t {
            add(&mut sums, fresh[i].1, &fresh[i].2);
            i += 1;
        }
        let after = if sums.is_empty() { None } else { row(key, &sums) };
        if before != after {
            for (o, d) in before.into_iter().map(|o| (o, -1)).chain(after.clone().map(|o| (o, 1))) {
                changes.bytes += key.len();
                changes.keys.push(key);
                changes.rows.push((o, t.clone(), d));
            }
        }
        before = after;
    }
    next
}
