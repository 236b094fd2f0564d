//! Reading another dataflow's arrangement as of a time.
//!
//! The stream begins with the trace's spans at stamp `as_of` (times below it read as `as_of`) and ends at `until`.
//! The stock import would send history at the minimal stamp.

use super::{Agent, RowB, Spans, Time, Weight};
use crate::flow::Stopped;
use differential_dataflow::operators::arrange::{Arranged, TraceReplayInstruction};
use differential_dataflow::trace::{Span, TraceReader};
use std::rc::Rc;
use timely::dataflow::operators::generic::source;
use timely::dataflow::operators::CapabilitySet;
use timely::dataflow::Scope;
use timely::order::TotalOrder;
use timely::progress::frontier::{Antichain, AntichainRef};
use timely::scheduling::Activator;

/// A trace read as of a time.
pub struct AsOf<T: Time, R: Weight> {
    agent: Agent<T, R>,
    since: T,
    until: Option<T>,
}

impl<T: Time, R: Weight> Clone for AsOf<T, R> {
    fn clone(&self) -> Self {
        AsOf { agent: self.agent.clone(), since: self.since.clone(), until: self.until.clone() }
    }
}

impl<T: Time, R: Weight> AsOf<T, R> {
    fn view(&self, span: Span<T, RowB<T, R>>) -> Span<T, RowB<T, R>> {
        Span::new(span.desc, span.inner.map(|b| b.view(&self.since, &self.until)))
    }
}

impl<T: Time, R: Weight> TraceReader for AsOf<T, R> {
    type Time = T;
    type Batch = RowB<T, R>;
    fn spans_through(&mut self, upper: AntichainRef<T>) -> Option<Spans<T, R>> {
        let spans = self.agent.spans_through(upper)?;
        Some(spans.into_iter().map(|s| self.view(s)).collect())
    }
    fn set_logical_compaction(&mut self, frontier: AntichainRef<T>) {
        self.agent.set_logical_compaction(frontier)
    }
    fn get_logical_compaction(&mut self) -> AntichainRef<'_, T> {
        self.agent.get_logical_compaction()
    }
    fn set_physical_compaction(&mut self, frontier: AntichainRef<'_, T>) {
        self.agent.set_physical_compaction(frontier)
    }
    fn get_physical_compaction(&mut self) -> AntichainRef<'_, T> {
        self.agent.get_physical_compaction()
    }
    fn map_spans<F: FnMut(&Span<T, RowB<T, R>>)>(&self, mut f: F) {
        self.agent.map_spans(|s| f(&self.view(s.clone())))
    }
}

/// Imports `agent`'s trace as of `as_of`. Setting `stop` and activating the operator ends the stream; whatever reads it
/// must know that as stopped. `watch` sees each batch that the stream gets, and `None` once none will follow.
/// Errors: `since` of the trace, if it is beyond `as_of`.
pub fn import<'s, T: Time + TotalOrder, R: Weight>(
    agent: &Agent<T, R>,
    scope: Scope<'s, T>,
    name: &str,
    as_of: T,
    until: Option<T>,
    stop: Rc<Stopped>,
    mut watch: impl FnMut(Option<&RowB<T, R>>) + 'static,
) -> Result<(Arranged<'s, AsOf<T, R>>, Activator), Antichain<T>> {
    let mut agent = agent.clone();
    if !agent.get_logical_compaction().less_equal(&as_of) {
        return Err(agent.get_logical_compaction().to_owned());
    }
    agent.set_logical_compaction(AntichainRef::new(std::slice::from_ref(&as_of)));
    let trace = AsOf { agent: agent.clone(), since: as_of.clone(), until: until.clone() };
    let mut activator = None;
    let activator_out = &mut activator;
    let stream = source(scope, name, move |cap, info| {
        *activator_out = Some(scope.activator_for(info.address.clone()));
        let queue = agent.new_listener(scope.activator_for(info.address.clone()));
        drop(agent);
        let mut caps = CapabilitySet::from_elem(cap.delayed(&as_of));
        drop(cap);
        let mut ended = false;
        move |output| {
            if stop.get() {
                caps = CapabilitySet::new();
            }
            for instruction in queue.1.borrow_mut().drain(..) {
                if caps.is_empty() {
                    continue;
                }
                match instruction {
                    TraceReplayInstruction::Frontier(f) => {
                        let f: Antichain<T> = f.iter().map(|t| t.join(&as_of)).collect();
                        if until.as_ref().is_some_and(|end| f.iter().all(|t| end.less_equal(t))) {
                            caps = CapabilitySet::new();
                        } else {
                            caps.downgrade(&f.borrow()[..]);
                        }
                    }
                    TraceReplayInstruction::Span(s, hint) => {
                        if !hint.is_empty() && s.has_updates() {
                            let held = caps.delayed_stamp(&hint.map_pointwise(|t| t.join(&as_of)));
                            let seen = s.inner.map(|b| b.view(&as_of, &until));
                            seen.iter().for_each(|b| watch(Some(b)));
                            output.session(&held).give(Span::new(s.desc, seen));
                        }
                    }
                }
            }
            if caps.is_empty() && !std::mem::replace(&mut ended, true) {
                watch(None);
            }
        }
    });
    Ok((Arranged { stream, trace }, activator.expect("set at construction")))
}
