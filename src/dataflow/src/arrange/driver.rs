//! The arrange operator: blocks in, an arrangement out, with resume, cut and stop.
//!
//! Differs from differential's own in five ways:
//! - input is staged by stamp, so that the batcher holds only updates of closed ticks and a cut holds exactly those;
//! - sorting and merging go on in steps, while input arrives and after;
//! - it can start from a saved arrangement: saved spans are in the trace and not in the stream, and it is ahead of its
//!   input until that reaches the saved upper;
//! - a *stopped* source is not taken for a *finished* one: with `stopped` set the empty frontier is not passed on;
//! - its writer's drop does not claim completeness unless the input was complete.
//!
//! Not here: arranging inside recursion (partially ordered times), which takes differential's own.

use super::{Agent, Arr, Block, Budget, RowB, RowBatcher, RowChunk, RowSpine, Spans, Time, Weight};
use crate::flow::Stopped;
use differential_dataflow::batcher::{Batcher, Extract};
use differential_dataflow::lattice::Lattice;
use differential_dataflow::operators::arrange::{Arranged, TraceAgent, TraceWriter};
use differential_dataflow::trace::{Description, Span, Trace, TraceReader};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;
use std::time::Duration;
use timely::dataflow::channels::pact::ParallelizationContract;
use timely::dataflow::operators::generic::Operator;
use timely::dataflow::operators::{Capability, CapabilitySet};
use timely::dataflow::Stream;
use timely::order::{PartialOrder, TotalOrder};
use timely::progress::frontier::Antichain;
use timely::progress::Stamp;

/// Time that an activation merges for.
const BUDGET: Duration = Duration::from_millis(2);

/// An arrangement's content at a cut, and the updates beyond it that its batcher held.
#[derive(Clone)]
pub struct Saved<T: Time, R: Weight> {
    pub spans: Spans<T, R>,
    pub since: Antichain<T>,
    pub upper: Antichain<T>,
    pub pending: Vec<RowChunk<T, R>>,
}

/// The side channel of an arrange.
pub struct ArrangeCtl<T: Time, R: Weight> {
    /// Asks for a cut when the frontier passes this time.
    pub want: Rc<RefCell<Option<T>>>,
    /// Where the cut is left.
    pub got: Rc<RefCell<Option<Saved<T, R>>>>,
    /// Set by the operator once its input is truly finished.
    pub complete: Rc<Cell<bool>>,
    /// Set before sources are stopped: everything held is dropped, and completeness is not claimed.
    pub stopped: Rc<Stopped>,
}

impl<T: Time, R: Weight> Clone for ArrangeCtl<T, R> {
    fn clone(&self) -> Self {
        ArrangeCtl { want: self.want.clone(), got: self.got.clone(), complete: self.complete.clone(), stopped: self.stopped.clone() }
    }
}

impl<T: Time, R: Weight> ArrangeCtl<T, R> {
    pub fn new(stopped: Rc<Stopped>) -> Self {
        ArrangeCtl { want: Default::default(), got: Default::default(), complete: Default::default(), stopped }
    }
}

/// A trace writer whose drop does not seal the trace unless the input was complete.
pub(super) struct QuietWriter<Tr: Trace> {
    writer: Option<TraceWriter<Tr>>,
    complete: Rc<Cell<bool>>,
}

impl<Tr: Trace> QuietWriter<Tr> {
    pub(super) fn new(writer: TraceWriter<Tr>, complete: Rc<Cell<bool>>) -> Self {
        QuietWriter { writer: Some(writer), complete }
    }
    pub(super) fn get(&mut self) -> &mut TraceWriter<Tr> {
        self.writer.as_mut().expect("taken only on drop")
    }
}

impl<Tr: Trace> Drop for QuietWriter<Tr> {
    fn drop(&mut self) {
        if !self.complete.get() {
            // Leaks about a hundred bytes an arrangement.
            std::mem::forget(self.writer.take());
        }
    }
}

/// Puts saved spans into a new trace. Through the writer, whose private `upper` must follow; nothing is sent, since no listener exists yet.
pub(super) fn restore<T: Time, R: Weight>(agent: &mut Agent<T, R>, writer: &mut TraceWriter<RowSpine<T, R>>, saved: &Saved<T, R>) {
    assert!(PartialOrder::less_equal(&saved.since, &saved.upper), "saved arrangement compacted beyond its upper");
    for span in &saved.spans {
        writer.seal(span.lower().clone());
        writer.insert(span.clone(), Stamp::new());
    }
    writer.seal(saved.upper.clone());
    agent.set_logical_compaction(saved.since.borrow());
    agent.set_physical_compaction(saved.upper.borrow());
}

/// The frontiers to process up to: the wanted cut if it is due, then the input's own.
pub(super) fn targets<T: Time>(prev: &Antichain<T>, frontier: Antichain<T>, want: &Option<T>) -> Vec<(Antichain<T>, bool)> {
    let mut out = vec![];
    // A resumed operator is ahead of its input until that catches up.
    if !PartialOrder::less_equal(prev, &frontier) {
        return out;
    }
    if let Some(t) = want {
        let cut = Antichain::from_elem(t.clone());
        if PartialOrder::less_equal(prev, &cut) && PartialOrder::less_equal(&cut, &frontier) {
            out.push((cut, true));
        }
    }
    out.push((frontier, false));
    out
}

/// Arranges `stream`. The trace is held open by the returned agent's compaction frontiers.
pub fn arrange<'s, T: Time + TotalOrder, R: Weight>(
    stream: Stream<'s, T, Block<T, R>>,
    pact: impl ParallelizationContract<T, Block<T, R>>,
    name: &str,
    resume: Option<Saved<T, R>>,
    ctl: ArrangeCtl<T, R>,
) -> Arr<'s, T, R> {
    let mut reader = None;
    let reader_out = &mut reader;
    let scope = stream.scope();
    let stream = stream.unary_frontier(pact, name, move |capability, info| {
        let mut batcher = RowBatcher::<T, R>::default();
        let spine = RowSpine::<T, R>::new(info.clone(), None, Some(scope.activator_for(info.address.clone())));
        let activator = scope.activator_for(info.address.clone());
        let (mut agent, mut writer) = TraceAgent::new(spine, info, None);
        let mut caps = Antichain::<Capability<T>>::new();
        let mut prev = Antichain::from_elem(T::minimum());
        if let Some(saved) = resume {
            restore(&mut agent, &mut writer, &saved);
            for chunk in &saved.pending {
                for t in chunk.times.iter() {
                    caps.insert(capability.delayed(t));
                }
            }
            batcher.restore(saved.pending);
            prev = saved.upper;
        }
        let trace = Rc::downgrade(&agent.trace_box_unstable());
        let mut writer = QuietWriter::new(writer, ctl.complete.clone());
        *reader_out = Some(agent);
        drop(capability);
        // By stamp: what has arrived, sorted while more arrives.
        let mut waiting: BTreeMap<T, RowBatcher<T, R>> = BTreeMap::new();
        // The frontier up to which the batcher is being merged: begun once, finished in steps.
        let mut working: VecDeque<(Antichain<T>, bool)> = VecDeque::new();
        move |(input, frontier), output| {
            let w = writer.get();
            input.for_each(|cap, data| {
                if ctl.stopped.get() {
                    return;
                }
                let Some(t) = cap.stamp().least().cloned() else { return };
                assert!(prev.less_equal(&t), "data at {t:?} before the resumed frontier {prev:?}");
                for c in cap.retain_stamp(0).iter() {
                    caps.insert(c.clone());
                }
                waiting.entry(t).or_default().insert(data);
            });
            if ctl.stopped.get() {
                caps = Antichain::new();
                waiting.clear();
                working.clear();
                batcher = RowBatcher::default();
                return;
            }
            let mut budget = Budget::new(BUDGET);
            let want = ctl.want.borrow().clone();
            if working.is_empty() {
                working.extend(targets(&prev, frontier.frontier().to_owned(), &want));
            }
            while let Some((target, cut)) = working.front().cloned() {
                if target != prev {
                    while let Some(e) = waiting.first_entry() {
                        if target.less_equal(e.key()) {
                            break;
                        }
                        batcher.absorb(e.remove());
                    }
                    if !batcher.work(&mut budget) {
                        activator.activate();
                        break;
                    }
                    let retired = caps.elements().iter().filter(|c| !target.less_equal(c.time())).cloned().collect::<CapabilitySet<_>>();
                    if retired.is_empty() {
                        w.seal(target.clone());
                    } else {
                        let (batch, retained) = batcher.extract(target.borrow());
                        let mut keep: Vec<T> = retained.iter().cloned().collect();
                        keep.extend(waiting.keys().next().cloned());
                        let desc = Description::new(prev.clone(), target.clone(), Antichain::from_elem(T::minimum()));
                        let span = Span::new(desc, batch.map(RowB::new));
                        w.insert(span.clone(), retired.iter().map(|c| c.time().clone()).collect::<Stamp<_>>());
                        output.session(&retired).give(span);
                        let mut held = Antichain::new();
                        for t in keep {
                            held.insert(caps.elements().iter().find(|c| c.time().less_equal(&t)).expect("a capability for a retained time").delayed(&t));
                        }
                        caps = held;
                    }
                    prev = target;
                }
                working.pop_front();
                if working.is_empty() && *frontier.frontier() != *prev.borrow() {
                    // The frontier moved while this one was worked on.
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
                    *ctl.got.borrow_mut() = Some(Saved { spans, since, upper: prev.clone(), pending: batcher.snapshot() });
                }
            }
            for early in waiting.values_mut() {
                if !budget.spent {
                    early.work(&mut budget);
                }
            }
            if prev.is_empty() {
                ctl.complete.set(true);
            }
            w.exert();
        }
    });
    Arranged { stream, trace: reader.expect("set at construction") }
}
