//! The join operator: gathers matches in bulk, stops anywhere, resumes, can be cancelled.
//!
//! The fresh span of one input drives seeks into the other input's spans; matches are collected as (key, val, val) bytes
//! and handed out as containers of at most [`OUT_ROWS`] rows, or about [`PIECE_BYTES`]. A unit of work keeps its position down to one update of
//! one key, so an activation ends when its time budget does.
//!
//! `ordered` (top level only): spans of both inputs are taken in time order, and only when the other input's frontier has
//! reached them; otherwise an output would carry a stamp below and a time beyond a cut, and would be both saved as pending
//! and recomputed. Spans that wait for their order hold the other trace's compaction.

use super::{At, Body, RowB, Time};
use crate::flow::{Gate, Stopped, Throttle};
use differential_dataflow::operators::arrange::Arranged;
use differential_dataflow::trace::{Span, TraceReader};
use repr::batch::PIECE_BYTES;
use repr::{Col, Diff};
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};
use timely::container::NoopBuilder;
use timely::dataflow::channels::pact::Pipeline;
use timely::dataflow::operators::generic::{Operator, OutputBuilderSession};
use timely::dataflow::operators::CapabilitySet;
use timely::dataflow::Stream;
use timely::order::PartialOrder;
use timely::progress::frontier::{Antichain, AntichainRef};
use timely::Container;

/// Rows in an output container.
const OUT_ROWS: usize = 4096;
/// Updates of the other side loaded before the clock is looked at.
const LOAD_ROWS: usize = 1024;

/// What is left of an activation.
pub struct Budget {
    end: Option<Instant>,
    charged: usize,
    pub spent: bool,
}

impl Budget {
    pub fn new(d: Duration) -> Self {
        Budget { end: Some(Instant::now() + d), charged: 0, spent: false }
    }
    /// A budget that is never spent.
    pub fn endless() -> Self {
        Budget { end: None, charged: 0, spent: false }
    }
    /// Looks at the clock once per 1024 units charged.
    #[inline]
    pub fn charge(&mut self, units: usize) {
        self.charged += units;
        if self.charged >= 1024 {
            self.charged = 0;
            self.spent = self.spent || self.end.is_some_and(|end| Instant::now() >= end);
        }
    }
}

/// Matching rows as bytes, left before right.
pub struct Matches<'a, T> {
    pub keys: Vec<&'a [u8]>,
    pub left: Vec<&'a [u8]>,
    pub right: Vec<&'a [u8]>,
    pub times: Col<T>,
    pub diffs: Col<Diff>,
}

pub struct JoinCfg<T> {
    /// Both traces are restored through this frontier: nothing below it is emitted.
    pub resume: Option<Antichain<T>>,
    /// The least time of the dataflow.
    pub start: T,
    pub ordered: bool,
    /// Time an activation may take.
    pub budget: Duration,
    pub cancel: Rc<Stopped>,
    /// Closed while no rows are to be made.
    pub gate: Option<Arc<Gate>>,
    /// Keys that match nothing although both sides have them.
    pub unmatched: Option<Unmatched>,
}

/// Of key bytes: whether rows of this key match nothing.
pub type Unmatched = Rc<dyn Fn(&[u8]) -> bool>;

enum Step<C> {
    Out(C),
    Yield,
    Done,
}

/// An update of the other side under the driver's current key.
struct Hit<T> {
    batch: u32,
    chunk: u32,
    update: u32,
    time: T,
    diff: Diff,
}

/// One unit of join work: a fresh batch against the other side's batches.
struct Gather<T: Time> {
    driver: RowB<T, Diff>,
    others: Vec<RowB<T, Diff>>,
    driver_is_right: bool,
    /// A lower bound of the output times: the other side's times are advanced to it.
    meet: T,
    chunk: usize,
    key: usize,
    update: usize,
    hit: usize,
    at: Vec<At>,
    loading: usize,
    load_pos: Option<(usize, usize, usize)>,
    loaded: bool,
    hits: Vec<Hit<T>>,
    unmatched: Option<Unmatched>,
}

impl<T: Time> Gather<T> {
    fn new(driver: RowB<T, Diff>, others: Vec<RowB<T, Diff>>, driver_is_right: bool, meet: T, unmatched: Option<Unmatched>) -> Self {
        let at = vec![At::default(); others.len()];
        let (hits, load_pos) = (vec![], None);
        Gather { driver, others, driver_is_right, meet, chunk: 0, key: 0, update: 0, hit: 0, at, loading: 0, load_pos, loaded: false, hits, unmatched }
    }

    /// Loads the other side's updates of the current key; false if the budget ran out before all were loaded.
    fn load(&mut self, x: &Body<T, Diff>, budget: &mut Budget) -> bool {
        let (lane, key) = x.key(self.key);
        budget.charge(1);
        if self.loading == 0 && !self.loaded && self.unmatched.as_ref().is_some_and(|u| u(key)) {
            self.loading = self.others.len();
        }
        while self.loading < self.others.len() {
            let (b, at) = (&self.others[self.loading], &mut self.at[self.loading]);
            let (c, k, u) = match self.load_pos {
                Some(p) => p,
                None if at.seek(b, lane, key) => (at.chunk, at.key, b.chunks[at.chunk].key_start(at.key)),
                None => {
                    self.loading += 1;
                    continue;
                }
            };
            let y = b.chunks[c].body();
            let end = y.key_ends[k] as usize;
            let stop = end.min(u + LOAD_ROWS);
            for i in u..stop {
                if let Some(t) = b.time(y, i) {
                    let time = t.join(&self.meet);
                    self.hits.push(Hit { batch: self.loading as u32, chunk: c as u32, update: i as u32, time, diff: *y.diffs.get(i) });
                }
            }
            budget.charge(stop - u);
            let goes_on = k + 1 == y.lanes.len() && b.chunks.get(c + 1).is_some_and(|n| n.body().key(0) == (lane, key));
            if stop < end {
                self.load_pos = Some((c, k, stop));
            } else if goes_on {
                self.load_pos = Some((c + 1, 0, 0));
            } else {
                self.load_pos = None;
                self.loading += 1;
            }
            if budget.spent {
                return false;
            }
        }
        if !self.loaded {
            self.loaded = true;
            self.update = x.key_start(self.key);
            self.hit = 0;
            // Long lists are left as they are: more output, the same sum.
            if self.hits.len() > 1 && self.hits.len() <= OUT_ROWS {
                let others = &self.others;
                let val = |h: &Hit<T>| others[h.batch as usize].chunks[h.chunk as usize].body().val(h.update as usize);
                self.hits.sort_by(|a, b| val(a).cmp(val(b)).then_with(|| a.time.cmp(&b.time)));
                self.hits.dedup_by(|b, a| {
                    let same = val(a) == val(b) && a.time == b.time;
                    if same {
                        a.diff += b.diff;
                    }
                    same
                });
                self.hits.retain(|h| h.diff != 0);
            }
        }
        true
    }

    fn step<C>(&mut self, budget: &mut Budget, emit: &mut impl FnMut(Matches<'_, T>) -> C) -> Step<C> {
        let (driver, others) = (self.driver.clone(), self.others.clone());
        let (mut keys, mut mine, mut theirs): (Vec<&[u8]>, Vec<&[u8]>, Vec<&[u8]>) = Default::default();
        let (mut times, mut diffs) = (Col::default(), Col::default());
        let mut bytes = 0;
        'fill: while self.chunk < driver.chunks.len() {
            let x = driver.chunks[self.chunk].body();
            while self.key < x.lanes.len() {
                if budget.spent || keys.len() >= OUT_ROWS || bytes >= PIECE_BYTES || !self.load(x, budget) {
                    break 'fill;
                }
                let end = if self.hits.is_empty() { 0 } else { x.key_ends[self.key] as usize };
                while self.update < end {
                    if let Some(t) = driver.time(x, self.update) {
                        let diff = x.diffs.get(self.update);
                        while self.hit < self.hits.len() {
                            if keys.len() >= OUT_ROWS || bytes >= PIECE_BYTES {
                                break 'fill;
                            }
                            let h = &self.hits[self.hit];
                            keys.push(x.keys.get(self.key));
                            mine.push(x.val(self.update));
                            theirs.push(others[h.batch as usize].chunks[h.chunk as usize].body().val(h.update as usize));
                            bytes += keys[keys.len() - 1].len() + mine[mine.len() - 1].len() + theirs[theirs.len() - 1].len();
                            times.push(h.time.join(&t));
                            diffs.push(h.diff.saturating_mul(*diff));
                            self.hit += 1;
                        }
                    }
                    self.hit = 0;
                    self.update += 1;
                }
                self.key += 1;
                self.loading = 0;
                self.loaded = false;
                if self.hits.capacity() > 1 << 16 {
                    self.hits = vec![];
                } else {
                    self.hits.clear();
                }
            }
            self.chunk += 1;
            self.key = 0;
        }
        if !keys.is_empty() {
            budget.charge(keys.len().max(1024));
            let (left, right) = if self.driver_is_right { (theirs, mine) } else { (mine, theirs) };
            Step::Out(emit(Matches { keys, left, right, times, diffs }))
        } else if self.chunk >= driver.chunks.len() {
            Step::Done
        } else {
            Step::Yield
        }
    }
}

/// A span that waits for its turn, with the capabilities of its message.
struct Waiting<T: Time> {
    caps: CapabilitySet<T>,
    span: Span<T, RowB<T, Diff>>,
}

/// One input's spans in order, and how far they were taken.
struct Side<T: Time> {
    queue: VecDeque<Waiting<T>>,
    acknowledged: Antichain<T>,
    /// Spans below were already in the trace at the start.
    preloaded: Antichain<T>,
    todo: VecDeque<(CapabilitySet<T>, Gather<T>)>,
}

impl<T: Time> Side<T> {
    fn new(acknowledged: Antichain<T>) -> Self {
        Side { queue: VecDeque::new(), preloaded: acknowledged.clone(), acknowledged, todo: VecDeque::new() }
    }
    fn receive(&mut self, caps: CapabilitySet<T>, spans: &mut Vec<Span<T, RowB<T, Diff>>>) {
        self.queue.extend(spans.drain(..).map(|span| Waiting { caps: caps.clone(), span }));
    }
    /// Takes the first waiting span, pairing it with the other trace's content.
    fn take<Tr: TraceReader<Time = T, Batch = RowB<T, Diff>>>(
        &mut self,
        other: &mut Option<Tr>,
        other_acknowledged: &Antichain<T>,
        is_right: bool,
        unmatched: &Option<Unmatched>,
    ) {
        let Some(Waiting { caps, span }) = self.queue.pop_front() else { return };
        let below = PartialOrder::less_equal(span.upper(), &self.preloaded);
        assert!(below || PartialOrder::less_equal(&self.preloaded, span.lower()), "span across the start frontier");
        if below {
            return;
        }
        let (lower, upper) = (span.lower().clone(), span.upper().clone());
        if let Some(batch) = span.inner {
            let meet = caps.iter().map(|c| c.time().clone()).reduce(|a, b| a.meet(&b));
            if let (Some(meet), Some(other)) = (meet, other.as_mut()) {
                let others = other.batches_through(other_acknowledged.borrow()).expect("acknowledged frontiers are span bounds");
                if !others.is_empty() {
                    self.todo.push_back((caps, Gather::new(batch, others, is_right, meet, unmatched.clone())));
                }
            }
        }
        if PartialOrder::less_equal(&self.acknowledged, &lower) {
            self.acknowledged = upper;
        }
    }
    /// The frontier to which the other trace may compact: this input's, and what waits here.
    fn holds(&self, frontier: AntichainRef<T>) -> Antichain<T> {
        let mut a = frontier.to_owned();
        for w in &self.queue {
            for t in w.span.lower().iter() {
                a.insert(t.clone());
            }
        }
        a
    }
    /// Works until the budget is spent.
    fn work<C: Container>(
        &mut self,
        mut budget: Budget,
        by_container: bool,
        output: &mut OutputBuilderSession<'_, T, NoopBuilder<C>>,
        emit: &mut impl FnMut(Matches<'_, T>) -> C,
    ) {
        while !budget.spent {
            let Some((caps, unit)) = self.todo.front_mut() else { break };
            match unit.step(&mut budget, emit) {
                Step::Out(mut container) => {
                    output.session_with_builder(&*caps).give_container(&mut container);
                    budget.spent |= by_container;
                }
                Step::Yield => {}
                Step::Done => {
                    self.todo.pop_front();
                }
            }
        }
    }
}

/// Joins two arrangements on equal key bytes; `emit` turns matches into a container.
pub fn join<'s, T: Time, A, B, C>(
    left: Arranged<'s, A>,
    right: Arranged<'s, B>,
    name: &str,
    cfg: JoinCfg<T>,
    mut emit: impl FnMut(Matches<'_, T>) -> C + 'static,
) -> Stream<'s, T, C>
where
    A: TraceReader<Time = T, Batch = RowB<T, Diff>> + 'static,
    B: TraceReader<Time = T, Batch = RowB<T, Diff>> + 'static,
    C: Container,
{
    let (mut t0, mut t1) = (left.trace, right.trace);
    let scope = left.stream.scope();
    left.stream.binary_frontier(right.stream, Pipeline, Pipeline, name, move |capability, info| {
        let throttle = Throttle::new(cfg.gate.clone(), scope.worker(), &info.address);
        let activator = scope.activator_for(info.address);
        let (mut upper0, mut upper1) = (Antichain::new(), Antichain::new());
        t0.read_upper(&mut upper0);
        t1.read_upper(&mut upper1);
        let mut first = VecDeque::new();
        if let Some(u) = &cfg.resume {
            assert!(PartialOrder::less_equal(u, &upper0) && PartialOrder::less_equal(u, &upper1), "traces not restored through {u:?}");
            upper0.clone_from(u);
            upper1.clone_from(u);
        } else {
            let (all0, all1) = (t0.batches_through(upper0.borrow()).unwrap_or_default(), t1.batches_through(upper1.borrow()).unwrap_or_default());
            if !all0.is_empty() {
                let cap = CapabilitySet::from_elem(capability.delayed(&cfg.start));
                for batch in all1 {
                    first.push_back((cap.clone(), Gather::new(batch, all0.clone(), true, cfg.start.clone(), cfg.unmatched.clone())));
                }
            }
        }
        drop(capability);
        let (mut s0, mut s1) = (Side::new(upper0), Side::new(upper1));
        s1.todo = first;
        let (mut t0, mut t1) = (Some(t0), Some(t1));
        if !s1.todo.is_empty() {
            activator.activate();
        }
        move |(i0, f0), (i1, f1), output: &mut OutputBuilderSession<'_, T, NoopBuilder<C>>| {
            if cfg.cancel.get() {
                for s in [&mut s0, &mut s1] {
                    s.queue.clear();
                    s.todo.clear();
                }
                (t0, t1) = (None, None);
                i0.for_each(|_, _| ());
                i1.for_each(|_, _| ());
                return;
            }
            i0.for_each(|cap, data| s0.receive(cap.retain_stamp(0), data));
            i1.for_each(|cap, data| s1.receive(cap.retain_stamp(0), data));
            loop {
                let left_first = match (s0.queue.front(), s1.queue.front()) {
                    (None, None) => break,
                    (Some(_), None) => true,
                    (None, Some(_)) => false,
                    (Some(a), Some(b)) => PartialOrder::less_equal(a.span.lower(), b.span.lower()),
                };
                let (side, other_frontier) = if left_first { (&s0, f1.frontier()) } else { (&s1, f0.frontier()) };
                let due = side.queue.front().is_some_and(|w| PartialOrder::less_equal(&w.span.lower().borrow(), &other_frontier));
                if cfg.ordered && !due {
                    break;
                }
                if left_first {
                    s0.take(&mut t1, &s1.acknowledged, false, &cfg.unmatched);
                } else {
                    s1.take(&mut t0, &s0.acknowledged, true, &cfg.unmatched);
                }
            }
            if let Some(t) = t0.as_mut() {
                t.advance_upper(&mut s0.acknowledged);
            }
            if let Some(t) = t1.as_mut() {
                t.advance_upper(&mut s1.acknowledged);
            }
            if (!s0.todo.is_empty() || !s1.todo.is_empty()) && !throttle.holds() {
                for s in [&mut s0, &mut s1] {
                    s.work(Budget::new(cfg.budget / 2), throttle.by_container(), output, &mut emit);
                }
                if !s0.todo.is_empty() || !s1.todo.is_empty() {
                    activator.activate();
                }
            }
            if f1.is_empty() && s1.queue.is_empty() {
                t0 = None;
            }
            if f0.is_empty() && s0.queue.is_empty() {
                t1 = None;
            }
            if let Some(t) = t0.as_mut() {
                t.set_logical_compaction(s1.holds(f1.frontier()).borrow());
                t.set_physical_compaction(s0.acknowledged.borrow());
            }
            if let Some(t) = t1.as_mut() {
                t.set_logical_compaction(s0.holds(f0.frontier()).borrow());
                t.set_physical_compaction(s1.acknowledged.borrow());
            }
        }
    })
}
