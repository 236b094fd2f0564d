//! Updates between operators, and their encoded form on the way to an arrangement.

use super::wire::WireTime;
use super::{route, Body, Weight};
use differential_dataflow::collection::containers::{Enter, Leave, Negate, ResultsIn};
use repr::batch::PIECE_BYTES;
use repr::{Batch, Col, Deltas, Diff};
use timely::communication::Push;
use timely::dataflow::channels::pact::DistributorPact;
use timely::dataflow::channels::pushers::exchange::Distributor;
use timely::dataflow::channels::Message;
use timely::progress::{timestamp::Refines, PathSummary, Stamp, Timestamp};
use timely::Accountable;

/// Changes to a collection: rows, and for each its time and diff.
#[derive(Clone, Debug)]
pub struct Upd<T> {
    pub batch: Batch,
    pub times: Col<T>,
    pub diffs: Col<Diff>,
}

impl<T> Default for Upd<T> {
    fn default() -> Self {
        Upd { batch: Batch::default(), times: Col::default(), diffs: Col::default() }
    }
}

impl<T: Clone + PartialEq> Upd<T> {
    /// The updates at `indices`.
    pub fn take(&self, indices: Vec<u32>) -> Upd<T> {
        let (times, diffs) = (self.times.take(&indices), self.diffs.take(&indices));
        Upd { batch: self.batch.take(&indices.into()), times, diffs }
    }
    /// Changes at one time, in [pieces](Batch::pieces).
    pub fn of(deltas: Deltas, time: &T) -> impl Iterator<Item = Upd<T>> + use<T> {
        let Deltas { rows, diffs } = deltas;
        let times = Col::same(time.clone(), rows.len);
        Upd { batch: rows, times, diffs }.pieces()
    }
    /// The updates in [pieces](Batch::pieces) of their rows.
    pub fn pieces(self) -> impl Iterator<Item = Upd<T>> {
        self.batch.pieces().into_iter().map(move |r| {
            if r.len() == self.len() {
                return self.clone();
            }
            self.slice(r.start, r.len())
        })
    }
    pub fn slice(&self, at: usize, len: usize) -> Upd<T> {
        Upd { batch: self.batch.slice(at, len), times: self.times.slice(at, len), diffs: self.diffs.slice(at, len) }
    }
    pub fn with_batch(&self, batch: Batch) -> Upd<T> {
        Upd { batch, times: self.times.clone(), diffs: self.diffs.clone() }
    }
    pub fn len(&self) -> usize {
        self.batch.len
    }
    pub fn is_empty(&self) -> bool {
        self.batch.len == 0
    }
}

impl<T> Accountable for Upd<T> {
    fn record_count(&self) -> i64 {
        self.batch.len as i64
    }
}

fn map_col<T, U: Clone + PartialEq>(col: Col<T>, mut f: impl FnMut(T) -> U) -> Col<U> {
    match col {
        Col::Same(v, n) => Col::Same(v.map(f), n),
        Col::Many(v) => Col::from_vec(v.into_iter().map(&mut f).collect()),
    }
}

impl<T> Negate for Upd<T> {
    fn negate(mut self) -> Self {
        self.diffs = map_col(self.diffs, |d| -d);
        self
    }
}

impl<T1: Timestamp, T2: Refines<T1>> Enter<T1, T2> for Upd<T1> {
    type InnerContainer = Upd<T2>;
    fn enter(self) -> Upd<T2> {
        Upd { batch: self.batch, times: map_col(self.times, T2::to_inner), diffs: self.diffs }
    }
}

impl<T1: Refines<T2>, T2: Timestamp> Leave<T1, T2> for Upd<T1> {
    type OuterContainer = Upd<T2>;
    fn leave(self) -> Upd<T2> {
        Upd { batch: self.batch, times: map_col(self.times, T1::to_outer), diffs: self.diffs }
    }
}

impl<T: Timestamp> ResultsIn<T::Summary> for Upd<T> {
    fn results_in(self, step: &T::Summary) -> Self {
        let times: Vec<Option<T>> = self.times.iter().map(|t| step.results_in(t)).collect();
        if times.iter().all(Option::is_some) {
            return Upd { times: Col::from_vec(times.into_iter().flatten().collect()), ..self };
        }
        let kept: Vec<u32> = (0..times.len() as u32).filter(|i| times[*i as usize].is_some()).collect();
        let mut out = self.take(kept);
        out.times = Col::from_vec(times.into_iter().flatten().collect());
        out
    }
}

/// Encoded updates on their way to an arrangement: unsorted, one key an update.
#[derive(Clone)]
pub struct Block<T, R>(pub Body<T, R>);

impl<T, R> Default for Block<T, R> {
    fn default() -> Self {
        Block(Body::default())
    }
}

impl<T, R> Accountable for Block<T, R> {
    fn record_count(&self) -> i64 {
        self.0.len() as i64
    }
}

/// Rows that a distributor gathers for one worker before it sends them.
const SEND: usize = 8192;

/// Sends each update to the worker that owns its lane.
pub struct BlockDistributor<T, R>(Vec<Block<T, R>>);

impl<T: Clone + PartialEq, R: Clone + PartialEq> Distributor<Block<T, R>> for BlockDistributor<T, R> {
    fn partition<U: Clone, P: Push<Message<U, Block<T, R>>>>(&mut self, block: &mut Block<T, R>, stamp: &Stamp<U>, pushers: &mut [P]) {
        let b = std::mem::take(&mut block.0);
        // What is for one worker only goes as it is.
        if let Some(p) = b.lanes.first().map(|l| route(*l, pushers.len())) {
            if b.lanes.iter().all(|l| route(*l, pushers.len()) == p) {
                Message::push_at(&mut Block(b), stamp.clone(), &mut pushers[p]);
                return;
            }
        }
        for k in 0..b.lanes.len() {
            let p = route(b.lanes[k], pushers.len());
            self.0[p].0.append(&b, k, b.key_start(k), b.key_ends[k] as usize);
            if self.0[p].0.len() >= SEND || self.0[p].0.bytes() >= PIECE_BYTES {
                Message::push_at(&mut self.0[p], stamp.clone(), &mut pushers[p]);
                self.0[p] = Block::default();
            }
        }
    }
    fn flush<U: Clone, P: Push<Message<U, Block<T, R>>>>(&mut self, stamp: &Stamp<U>, pushers: &mut [P]) {
        for (b, p) in self.0.iter_mut().zip(pushers) {
            if !b.0.is_empty() {
                Message::push_at(b, stamp.clone(), p);
                *b = Block::default();
            }
        }
    }
}

/// The pact by which blocks go to the workers that own their lanes.
pub fn exchange<T: Timestamp + WireTime, R: Weight + WireTime>() -> DistributorPact<impl FnOnce(usize) -> BlockDistributor<T, R>> {
    DistributorPact(|peers| BlockDistributor((0..peers).map(|_| Block::default()).collect()))
}
