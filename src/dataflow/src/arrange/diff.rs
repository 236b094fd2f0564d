//! A reduce for totally ordered time that works out a group's changes itself, from the group's updates in order.
//!
//! ```text
//!   fresh batches ──► groups that changed ──► logic: reads runs of the source and of the output, leaves changes by time
//! ```
//!
//! What is read is up to the logic; so a change can cost less than its group. See `ordered` and `render::window`.

use super::{At, Body, RowB, RowChunk, Time};
use differential_dataflow::operators::reduce::ReduceTactic;
use differential_dataflow::trace::chunk::{settle_all, ChunkBatch};
use differential_dataflow::trace::{Description, Span};
use repr::Diff;
use timely::order::TotalOrder;
use timely::progress::frontier::Antichain;

/// A group with fresh updates, and where it is in each batch.
pub struct Changed<'a, T: Time> {
    pub lane: u64,
    pub key: &'a [u8],
    pub fresh: Vec<(&'a RowB<T, Diff>, At)>,
    /// What came before, without the fresh updates.
    pub source: Vec<(&'a RowB<T, Diff>, At)>,
    /// The output so far.
    pub output: Vec<(&'a RowB<T, Diff>, At)>,
}

impl<'a, T: Time> Changed<'a, T> {
    /// The fresh updates, by time and val.
    pub fn updates(&self) -> Vec<(T, &'a [u8])> {
        let mut all = vec![];
        for (b, at) in &self.fresh {
            at.each(b, |_, u, x| all.extend(b.time(x, u).map(|t| (t, x.val(u)))));
        }
        all.sort();
        all
    }
}

/// Output changes of one group: val and time with a difference, in any order. Equal ones add up.
pub type GroupChanges<T> = Vec<((Vec<u8>, T), Diff)>;

/// Works out the changes of a group's output.
pub trait DiffLogic<T: Time>: 'static {
    fn run(&mut self, group: &Changed<'_, T>, changes: &mut GroupChanges<T>);
}

/// Runs [`DiffLogic`] under the reduce driver.
pub struct DiffTactic<L>(pub L);

impl<T: Time + TotalOrder, L: DiffLogic<T>> ReduceTactic<T, RowB<T, Diff>, RowB<T, Diff>> for DiffTactic<L> {
    fn retire(
        &mut self,
        source: Vec<RowB<T, Diff>>,
        output: Vec<RowB<T, Diff>>,
        fresh: Vec<RowB<T, Diff>>,
        lower: &Antichain<T>,
        upper: &Antichain<T>,
        _held: &Antichain<T>,
    ) -> (Option<Span<T, RowB<T, Diff>>>, Antichain<T>) {
        let mut heads = vec![At::default(); fresh.len()];
        let (mut at_source, mut at_output) = (vec![At::default(); source.len()], vec![At::default(); output.len()]);
        let (mut body, mut chunks) = (Body::default(), vec![]);
        let mut flush = |body: &mut Body<T, Diff>, last: bool| {
            if body.is_full() || last && !body.is_empty() {
                let mut full = std::mem::take(body);
                full.compact();
                chunks.push(RowChunk::new(full));
            }
        };
        let mut changes = GroupChanges::new();
        loop {
            let keys = heads.iter().zip(&fresh).filter_map(|(h, b)| b.chunks.get(h.chunk).map(|c| c.body().key(h.key)));
            let Some((lane, key)) = keys.min() else { break };
            let mut group = Changed { lane, key, fresh: vec![], source: vec![], output: vec![] };
            for (h, b) in heads.iter_mut().zip(&fresh) {
                if b.chunks.get(h.chunk).is_some_and(|c| c.body().key(h.key) == (lane, key)) {
                    group.fresh.push((b, *h));
                    *h = after(b, *h);
                }
            }
            let found = |ats: &mut [At], of: &'_ [RowB<T, Diff>]| -> Vec<usize> {
                ats.iter_mut().zip(of).enumerate().filter_map(|(i, (at, b))| at.seek(b, lane, key).then_some(i)).collect()
            };
            group.source.extend(found(&mut at_source, &source).into_iter().map(|i| (&source[i], at_source[i])));
            group.output.extend(found(&mut at_output, &output).into_iter().map(|i| (&output[i], at_output[i])));
            self.0.run(&group, &mut changes);
            // Logic that reads in order writes nearly in order, which this sort makes use of.
            changes.sort();
            for same in changes.chunk_by(|a, b| a.0 == b.0) {
                let ((val, t), d) = (&same[0].0, same.iter().map(|c| c.1).sum());
                if d != 0 {
                    body.push(lane, key, val, t.clone(), d);
                    flush(&mut body, false);
                }
            }
            changes.clear();
        }
        flush(&mut body, true);
        let chunks = settle_all(chunks);
        let batch = (!chunks.is_empty()).then(|| RowB::new(ChunkBatch::new(chunks)));
        let desc = Description::new(lower.clone(), upper.clone(), Antichain::from_elem(T::minimum()));
        (Some(Span::new(desc, batch)), Antichain::new())
    }
}

/// The position after the key at `at`, whose updates may straddle chunks.
fn after<T: Time>(b: &RowB<T, Diff>, at: At) -> At {
    let mut last = at.chunk;
    at.each(b, |c, _, _| last = c);
    let next = if last == at.chunk { At { key: at.key + 1, ..at } } else { At { chunk: last, key: 1 } };
    if next.key >= b.chunks[next.chunk].body().lanes.len() {
        At { chunk: next.chunk + 1, key: 0 }
    } else {
        next
    }
}

/// One group's updates in one batch, by position.
#[derive(Clone)]
struct Run<'a, T: Time> {
    batch: &'a RowB<T, Diff>,
    /// Part of the trace: before every fresh time, even where compaction has brought its times up to the first of them.
    prior: bool,
    /// The group's part of each chunk: (body, its first update, positions up to its end).
    parts: Vec<(&'a Body<T, Diff>, usize, usize)>,
}

impl<'a, T: Time> Run<'a, T> {
    fn new(batch: &'a RowB<T, Diff>, at: At, prior: bool) -> Self {
        let x = batch.chunks[at.chunk].body();
        let key = x.key(at.key);
        let start = x.key_start(at.key);
        let mut len = x.key_ends[at.key] as usize - start;
        let mut parts = vec![(x, start, len)];
        let mut whole = at.key + 1 == x.lanes.len();
        for c in &batch.chunks[at.chunk + 1..] {
            let y = c.body();
            if !whole || y.key(0) != key {
                break;
            }
            len += y.key_ends[0] as usize;
            parts.push((y, 0, len));
            whole = y.lanes.len() == 1;
        }
        Run { batch, prior, parts }
    }
    fn len(&self) -> usize {
        self.parts.last().map_or(0, |p| p.2)
    }
    fn at(&self, i: usize) -> (&'a Body<T, Diff>, usize) {
        if let [(body, first, _)] = self.parts[..] {
            return (body, first + i);
        }
        let p = self.parts.partition_point(|p| p.2 <= i);
        let (body, first, _) = self.parts[p];
        let before = if p == 0 { 0 } else { self.parts[p - 1].2 };
        (body, first + i - before)
    }
    fn val(&self, i: usize) -> &'a [u8] {
        let (x, u) = self.at(i);
        x.val(u)
    }
    /// The first position whose val is not below `val`.
    fn seek(&self, val: &[u8]) -> usize {
        let (mut lo, mut hi) = (0, self.len());
        while lo < hi {
            let m = (lo + hi) / 2;
            if self.val(m) < val {
                lo = m + 1
            } else {
                hi = m
            }
        }
        lo
    }
}

/// A val of a group with its count before a time and at it.
#[derive(Clone, Copy, Debug)]
pub struct Counted<'a> {
    pub val: &'a [u8],
    pub before: Diff,
    pub at: Diff,
}

/// One group's updates in several batches, merged by val.
pub struct Runs<'a, T: Time>(Vec<Run<'a, T>>);

/// A place between two vals of [`Runs`].
#[derive(Clone)]
pub struct Place(Vec<usize>);

impl<'a, T: Time> Runs<'a, T> {
    /// Of a group's fresh updates, and of those before them.
    pub fn new(fresh: &[(&'a RowB<T, Diff>, At)], prior: &[(&'a RowB<T, Diff>, At)]) -> Self {
        let runs = |from: &[(&'a RowB<T, Diff>, At)], p: bool| from.iter().map(|(b, at)| Run::new(b, *at, p)).collect::<Vec<_>>();
        Runs([runs(fresh, false), runs(prior, true)].concat())
    }
    /// The number of updates.
    pub fn updates(&self) -> usize {
        self.0.iter().map(Run::len).sum()
    }
    /// The place before the first val.
    pub fn start(&self) -> Place {
        Place(vec![0; self.0.len()])
    }
    /// The place before the first val that is not below `val`.
    pub fn seek(&self, val: &[u8]) -> Place {
        Place(self.0.iter().map(|r| r.seek(val)).collect())
    }
    /// The place behind all updates of `val`.
    pub fn after(&self, val: &[u8]) -> Place {
        let mut place = self.seek(val);
        for (r, p) in self.0.iter().zip(&mut place.0) {
            while *p < r.len() && r.val(*p) == val {
                *p += 1;
            }
        }
        place
    }
    fn count(&self, run: &Run<'a, T>, i: usize, t: &T, into: &mut Counted<'a>) {
        let (x, u) = run.at(i);
        if let Some(time) = run.batch.time(x, u) {
            if run.prior || time.less_equal(t) {
                let d = *x.diffs.get(u);
                into.at = into.at.saturating_add(d);
                if run.prior || time != *t {
                    into.before = into.before.saturating_add(d);
                }
            }
        }
    }
    /// Steps over the next val that counts before `t` or at it.
    pub fn next(&self, place: &mut Place, t: &T) -> Option<Counted<'a>> {
        loop {
            let heads = self.0.iter().zip(&place.0).filter(|(r, p)| **p < r.len());
            let val = heads.map(|(r, p)| r.val(*p)).min()?;
            let mut found = Counted { val, before: 0, at: 0 };
            for (r, p) in self.0.iter().zip(&mut place.0) {
                while *p < r.len() && r.val(*p) == val {
                    self.count(r, *p, t, &mut found);
                    *p += 1;
                }
            }
            if found.before != 0 || found.at != 0 {
                return Some(found);
            }
        }
    }
    /// Steps over the next update, whatever its time.
    pub fn next_untimed(&self, place: &mut Place) -> Option<(&'a [u8], Diff)> {
        let heads = self.0.iter().zip(&place.0).enumerate().filter(|(_, (r, p))| **p < r.len());
        let (i, (run, p)) = heads.min_by_key(|(_, (r, p))| r.val(**p))?;
        let (x, u) = run.at(*p);
        place.0[i] += 1;
        Some((x.val(u), *x.diffs.get(u)))
    }
    /// Steps back over the val before that counts before `t` or at it.
    pub fn prev(&self, place: &mut Place, t: &T) -> Option<Counted<'a>> {
        loop {
            let heads = self.0.iter().zip(&place.0).filter(|(_, p)| **p > 0);
            let val = heads.map(|(r, p)| r.val(*p - 1)).max()?;
            let mut found = Counted { val, before: 0, at: 0 };
            for (r, p) in self.0.iter().zip(&mut place.0) {
                while *p > 0 && r.val(*p - 1) == val {
                    *p -= 1;
                    self.count(r, *p, t, &mut found);
                }
            }
            if found.before != 0 || found.at != 0 {
                return Some(found);
            }
        }
    }
}
