//! The batch handle: shared across threads, with its own view of time.
//!
//! A [`RowB`] is an `Arc` to an immutable batch of chunks. An import gives out handles with `since` and `until`: times
//! below `since` read as `since`, times at or beyond `until` are not to be seen. Every reader takes times through
//! [`RowB::time`]. A handle keeps its chunks alive, so a reader on another thread needs no read hold once it has it.

use super::{Body, RowChunk, Time, Weight};
use differential_dataflow::operators::arrange::{Arranged, TraceAgent};
use differential_dataflow::trace::chunk::{ChunkBatch, ChunkBatchMerger};
use differential_dataflow::trace::implementations::spine_fueled::{Merger, Spine, SpineBatch};
use differential_dataflow::trace::Span;
use repr::Col;
use std::ops::Deref;
use std::sync::Arc;
use timely::progress::frontier::AntichainRef;

/// A shared batch, seen from `since` on and until `until`.
pub struct RowB<T: Time, R: Weight> {
    batch: Arc<ChunkBatch<RowChunk<T, R>>>,
    since: Option<T>,
    until: Option<T>,
}

impl<T: Time, R: Weight> Clone for RowB<T, R> {
    fn clone(&self) -> Self {
        RowB { batch: Arc::clone(&self.batch), since: self.since.clone(), until: self.until.clone() }
    }
}

impl<T: Time, R: Weight> RowB<T, R> {
    pub fn new(batch: ChunkBatch<RowChunk<T, R>>) -> Self {
        RowB { batch: Arc::new(batch), since: None, until: None }
    }
    /// Other chunks under the same view of time.
    pub(super) fn with_chunks(&self, chunks: Vec<RowChunk<T, R>>) -> Self {
        RowB { batch: Arc::new(ChunkBatch::new(chunks)), since: self.since.clone(), until: self.until.clone() }
    }
    /// The same batch as an import sees it.
    pub fn view(mut self, since: &T, until: &Option<T>) -> Self {
        self.since = Some(since.clone());
        self.until.clone_from(until);
        self
    }
    /// The time of update `u` of one of the batch's chunks as this handle shows it; `None` if it is not to be seen.
    #[inline]
    pub fn time(&self, body: &Body<T, R>, u: usize) -> Option<T> {
        let t = body.times.get(u);
        if self.until.as_ref().is_some_and(|e| e.less_equal(t)) {
            return None;
        }
        Some(match &self.since {
            Some(s) => t.join(s),
            None => t.clone(),
        })
    }
    /// Visits every update: lane, key, val, time, diff.
    pub fn for_each(&self, mut f: impl FnMut(u64, &[u8], &[u8], T, &R)) {
        for chunk in &self.chunks {
            let b = chunk.body();
            for k in 0..b.lanes.len() {
                let (lane, key) = b.key(k);
                for u in b.key_start(k)..b.key_ends[k] as usize {
                    if let Some(t) = self.time(b, u) {
                        f(lane, key, b.val(u), t, b.diffs.get(u));
                    }
                }
            }
        }
    }
    /// Whether an update that is to be seen takes back what others add.
    pub fn retracts(&self) -> bool
    where
        R: PartialOrd + Default,
    {
        let zero = R::default();
        self.chunks.iter().map(|c| c.body()).any(|b| match &b.diffs {
            Col::Same(Some(d), n) if *d < zero => (0..*n).any(|u| self.time(b, u).is_some()),
            Col::Same(..) => false,
            Col::Many(diffs) => diffs.iter().enumerate().any(|(u, d)| *d < zero && self.time(b, u).is_some()),
        })
    }
    pub fn updates(&self) -> usize {
        self.chunks.iter().map(|c| c.body().len()).sum()
    }
    pub fn heap_bytes(&self) -> usize {
        self.chunks.iter().map(|c| c.body().heap_bytes()).sum()
    }
}

impl<T: Time, R: Weight> Deref for RowB<T, R> {
    type Target = ChunkBatch<RowChunk<T, R>>;
    fn deref(&self) -> &Self::Target {
        &self.batch
    }
}

impl<T: Time, R: Weight> From<ChunkBatch<RowChunk<T, R>>> for RowB<T, R> {
    fn from(batch: ChunkBatch<RowChunk<T, R>>) -> Self {
        RowB::new(batch)
    }
}

impl<T: Time, R: Weight> SpineBatch for RowB<T, R> {
    type Time = T;
    type Merger = RowMerger<T, R>;
    fn len(&self) -> usize {
        SpineBatch::len(&*self.batch)
    }
}

/// Merges two batches of a spine in steps.
pub struct RowMerger<T: Time, R: Weight>(ChunkBatchMerger<RowChunk<T, R>>);

impl<T: Time, R: Weight> Merger<RowB<T, R>> for RowMerger<T, R> {
    fn new(a: &RowB<T, R>, b: &RowB<T, R>, compaction: AntichainRef<T>) -> Self {
        assert!(a.since.is_none() && b.since.is_none(), "an imported view inside a spine");
        RowMerger(Merger::new(&*a.batch, &*b.batch, compaction))
    }
    fn work(&mut self, a: &RowB<T, R>, b: &RowB<T, R>, fuel: &mut isize) {
        self.0.work(&a.batch, &b.batch, fuel)
    }
    fn done(self) -> Option<RowB<T, R>> {
        self.0.done().map(RowB::new)
    }
}

pub type RowSpine<T, R> = Spine<RowB<T, R>>;
pub type Agent<T, R> = TraceAgent<RowSpine<T, R>>;
/// An arrangement inside a dataflow.
pub type Arr<'s, T, R> = Arranged<'s, Agent<T, R>>;
pub type Spans<T, R> = Vec<Span<T, RowB<T, R>>>;
