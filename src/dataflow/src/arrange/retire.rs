//! The driver of reduces in totally ordered time: resume, cut, stop, and work in slices.
//!
//! An interval is retired in slices of the fresh batches' lanes, as many an activation as its time allows; the slices'
//! outputs follow each other in order and make one batch. What a tactic must not do for that to be right: hold times back
//! from one retire to the next. In totally ordered time none does.

use super::driver::{restore, targets, QuietWriter};
use super::{Arr, ArrangeCtl, Body, Budget, RowB, RowChunk, RowSpine, Saved, Time, Weight};
use differential_dataflow::lattice::Lattice;
use differential_dataflow::operators::arrange::{Arranged, TraceAgent};
use differential_dataflow::operators::reduce::ReduceTactic;
use differential_dataflow::trace::chunk::{settle_all, ChunkBatch};
use differential_dataflow::trace::{Description, Span, Trace, TraceReader};
use repr::Diff;
use std::collections::VecDeque;
use std::rc::Rc;
use std::time::Duration;
use timely::dataflow::channels::pact::Pipeline;
use timely::dataflow::operators::generic::Operator;
use timely::dataflow::operators::CapabilitySet;
use timely::order::{PartialOrder, TotalOrder};
use timely::progress::frontier::Antichain;
use timely::progress::Stamp;

/// Time that an activation may take, one slice at least.
const BUDGET: Duration = Duration::from_millis(2);
/// Chunks of the largest fresh batch in one slice.
const SLICE: usize = 2;

/// An interval being retired.
struct Retire<T: Time, R: Weight> {
    caps: CapabilitySet<T>,
    fresh: Vec<RowB<T, R>>,
    prior: Vec<RowB<T, R>>,
    old: Vec<RowB<T, Diff>>,
    /// Lanes below are done.
    from: u64,
    chunks: Vec<RowChunk<T, Diff>>,
}

impl<T: Time, R: Weight> Retire<T, R> {
    /// Retires slices until the budget is spent; true when all is done.
    fn step(&mut self, tactic: &mut impl ReduceTactic<T, RowB<T, R>, RowB<T, Diff>>, lower: &Antichain<T>, upper: &Antichain<T>, budget: &mut Budget) -> bool {
        let held: Antichain<T> = self.caps.iter().map(|c| c.time().clone()).collect();
        while !budget.spent {
            let end = self.fresh.iter().filter_map(|b| slice_end(b, self.from)).max_by_key(|e| e.0).and_then(|e| e.1);
            let fresh: Vec<_> = self.fresh.iter().filter_map(|b| part(b, self.from, end)).collect();
            if !fresh.is_empty() {
                budget.charge(fresh.iter().map(RowB::updates).sum::<usize>().max(1024));
                let (made, pending) = tactic.retire(self.prior.clone(), self.old.clone(), fresh, lower, upper, &held);
                assert!(pending.is_empty(), "pending times under total order: {pending:?}");
                self.chunks.extend(made.and_then(|s| s.inner).map(|b| b.chunks.clone()).unwrap_or_default());
            }
            match end {
                Some(lane) => self.from = lane,
                None => return true,
            }
        }
        false
    }
}

/// For a batch with lanes at or beyond `from`: how many chunks are left, and the first lane after the slice (`None`: all of them).
fn slice_end<T: Time, R: Weight>(batch: &RowB<T, R>, from: u64) -> Option<(usize, Option<u64>)> {
    let first = batch.chunks.partition_point(|c| c.last_lane() < from);
    let left = batch.chunks.len() - first;
    let end = batch.chunks.get(first + SLICE - 1).filter(|_| left > SLICE).and_then(|c| c.last_lane().checked_add(1));
    (left > 0).then_some((left, end))
}

/// The updates of a batch with lanes in `[from, end)`. Chunks that lie inside are shared.
fn part<T: Time, R: Weight>(batch: &RowB<T, R>, from: u64, end: Option<u64>) -> Option<RowB<T, R>> {
    let first = batch.chunks.partition_point(|c| c.last_lane() < from);
    let mut chunks = Vec::new();
    for c in &batch.chunks[first..] {
        let b = c.body();
        let (lo, hi) = (b.lanes.partition_point(|l| *l < from), end.map_or(b.lanes.len(), |e| b.lanes.partition_point(|l| *l < e)));
        if hi == 0 {
            break;
        }
        if lo == 0 && hi == b.lanes.len() {
            chunks.push(c.clone());
        } else if lo < hi {
            let mut some = Body::default();
            some.append(b, lo, b.key_start(lo), b.key_start(hi));
            chunks.push(RowChunk::new(some));
        }
    }
    (!chunks.is_empty()).then(|| batch.with_chunks(chunks))
}

/// Reduces an arrangement in totally ordered time; the output is arranged by the same keys.
pub fn reduce<'s, T: Time + TotalOrder, R: Weight, A>(
    input: Arranged<'s, A>,
    name: &str,
    mut tactic: impl ReduceTactic<T, RowB<T, R>, RowB<T, Diff>> + 'static,
    resume: Option<Saved<T, Diff>>,
    ctl: ArrangeCtl<T, Diff>,
) -> Arr<'s, T, Diff>
where
    A: TraceReader<Time = T, Batch = RowB<T, R>> + 'static,
{
    let mut source = input.trace;
    let mut result = None;
    let result_out = &mut result;
    let scope = input.stream.scope();
    let stream = input.stream.unary_frontier(Pipeline, name, move |_, info| {
        let spine = RowSpine::<T, Diff>::new(info.clone(), None, Some(scope.activator_for(info.address.clone())));
        let activator = scope.activator_for(info.address.clone());
        let (mut out, mut writer) = TraceAgent::new(spine, info, None);
        let mut prev = Antichain::from_elem(T::minimum());
        if let Some(saved) = resume {
            restore(&mut out, &mut writer, &saved);
            prev = saved.upper;
        }
        *result_out = Some(out.clone());
        let trace = Rc::downgrade(&out.trace_box_unstable());
        let start = prev.clone();
        let mut writer = QuietWriter::new(writer, ctl.complete.clone());
        // Spans that wait, each with the capabilities of its message: one set for all would keep only the least.
        let mut queue: VecDeque<(CapabilitySet<T>, Span<T, RowB<T, R>>)> = VecDeque::new();
        let mut working: VecDeque<(Antichain<T>, bool)> = VecDeque::new();
        let mut retiring: Option<Retire<T, R>> = None;
        // Span bounds, not the input frontier: traces can be read only through those.
        let mut received = prev.clone();
        move |(input, _), output| {
            let w = writer.get();
            input.for_each(|cap, spans| {
                let fresh = spans.drain(..).filter(|b| !PartialOrder::less_equal(b.upper(), &start));
                queue.extend(fresh.map(|span| (cap.retain_stamp(0), span)));
                if let Some((_, last)) = queue.back() {
                    received.clone_from(last.upper());
                }
            });
            if ctl.stopped.get() {
                queue.clear();
                working.clear();
                retiring = None;
                return;
            }
            source.advance_upper(&mut received);
            let want = ctl.want.borrow().clone();
            if working.is_empty() {
                working.extend(targets(&prev, received.clone(), &want));
            }
            let mut budget = Budget::new(BUDGET);
            while let Some((target, cut)) = working.front().cloned() {
                if target != prev {
                    if retiring.is_none() {
                        let (mut fresh, mut caps) = (vec![], CapabilitySet::default());
                        while queue.front().is_some_and(|(_, b)| PartialOrder::less_equal(b.upper(), &target)) {
                            let Some((c, span)) = queue.pop_front() else { break };
                            fresh.extend(span.inner);
                            c.iter().for_each(|c| caps.insert(c.clone()));
                        }
                        if !fresh.is_empty() {
                            let prior = source.batches_through(prev.borrow()).expect("retired frontiers are span bounds");
                            let old = out.batches_through(prev.borrow()).expect("retired frontiers are span bounds");
                            retiring = Some(Retire { caps, fresh, prior, old, from: 0, chunks: vec![] });
                        }
                    }
                    if let Some(work) = &mut retiring {
                        if !work.step(&mut tactic, &prev, &target, &mut budget) {
                            activator.activate();
                            break;
                        }
                    }
                    if let Some(work) = retiring.take() {
                        let chunks = settle_all(work.chunks);
                        let batch = (!chunks.is_empty()).then(|| RowB::new(ChunkBatch::new(chunks)));
                        let span = Span::new(Description::new(prev.clone(), target.clone(), Antichain::from_elem(T::minimum())), batch);
                        output.session(&work.caps).give(span.clone());
                        w.insert(span, work.caps.iter().map(|c| c.time().clone()).collect::<Stamp<_>>());
                    }
                    w.seal(target.clone());
                    prev = target;
                    source.set_logical_compaction(prev.borrow());
                    source.set_physical_compaction(prev.borrow());
                    out.set_logical_compaction(prev.borrow());
                    out.set_physical_compaction(prev.borrow());
                }
                working.pop_front();
                if working.is_empty() && received != prev {
                    // More arrived while this was worked on.
                    activator.activate();
                }
                if cut {
                    *ctl.want.borrow_mut() = None;
                    let (mut spans, mut since) = (vec![], Antichain::from_elem(T::minimum()));
                    if let Some(trace) = trace.upgrade() {
                        trace.borrow().trace().map_spans(|s| {
                            since = since.join(s.desc.since());
                            spans.push(s.clone())
                        });
                    }
                    *ctl.got.borrow_mut() = Some(Saved { spans, since, upper: prev.clone(), pending: vec![] });
                }
            }
            if prev.is_empty() {
                ctl.complete.set(true);
            }
            w.exert();
        }
    });
    Arranged { stream, trace: result.expect("set at construction") }
}
