//! A reduce for totally ordered time that reads a group's vals in order and stops when it has enough.
//!
//! ```text
//!   spans of the group     v1 v4 v7 ...        merged by val, summed over time; zero sums are passed over
//!                          v2 v4 ...
//!   fresh (times <= t)     v3                  start: the least output so far or the least fresh val, found by search
//! ```
//!
//! Where the least output is the group's least live val (a minimum, a top-k without offset), everything below it is dead
//! and is skipped by search: a change costs O(k + log n), also when a queue's head is taken again and again.
//!
//! Output vals are input vals, so that the search knows where to start.

use super::reduce::Outputs;
use super::{At, Body, RowB, RowChunk, Time, TARGET};
use differential_dataflow::consolidation::consolidate;
use differential_dataflow::operators::reduce::ReduceTactic;
use differential_dataflow::trace::chunk::{settle_all, ChunkBatch};
use differential_dataflow::trace::{Description, Span};
use repr::Diff;
use timely::order::TotalOrder;
use timely::progress::frontier::Antichain;

/// What is computed from a group's vals in order.
pub trait OrderedLogic: 'static {
    /// Whether the least output val is always the least live val.
    fn starts_least(&self) -> bool;
    /// `vals`: with non-zero counts, in byte order. Output vals are input vals, or errors.
    fn run(&mut self, key: &[u8], vals: &mut dyn Iterator<Item = (&[u8], Diff)>, out: &mut Outputs);
    /// Whether an output val stands for an error: then nothing is known about the group's least val.
    fn is_error(&self, val: &[u8]) -> bool;
}

/// Runs [`OrderedLogic`] under the reduce driver.
pub struct OrderedTactic<L>(pub L);

/// A position among the updates of one key in one batch.
struct Cursor<'a, T: Time> {
    batch: &'a RowB<T, Diff>,
    chunk: usize,
    update: usize,
    end: usize,
    lane: u64,
    key: &'a [u8],
}

impl<'a, T: Time> Cursor<'a, T> {
    fn new(batch: &'a RowB<T, Diff>, at: At) -> Self {
        let x = batch.chunks[at.chunk].body();
        let (lane, key) = x.key(at.key);
        Cursor { batch, chunk: at.chunk, update: x.key_start(at.key), end: x.key_ends[at.key] as usize, lane, key }
    }
    fn body(&self) -> &'a Body<T, Diff> {
        self.batch.chunks[self.chunk].body()
    }
    fn val(&self) -> Option<&'a [u8]> {
        (self.update < self.end).then(|| self.body().val(self.update))
    }
    /// To the next chunk's part of the group, if there is one.
    fn next_chunk(&mut self) -> bool {
        let whole = self.end == self.body().len();
        match self.batch.chunks.get(self.chunk + 1).map(RowChunk::body) {
            Some(y) if whole && y.key(0) == (self.lane, self.key) => {
                (self.chunk, self.update, self.end) = (self.chunk + 1, 0, y.key_ends[0] as usize);
                true
            }
            _ => false,
        }
    }
    fn step(&mut self) {
        self.update += 1;
        if self.update >= self.end {
            self.next_chunk();
        }
    }
    /// To the first update whose val is not below `val`.
    fn seek(&mut self, val: &[u8]) {
        while self.update < self.end && self.body().val(self.end - 1) < val {
            if !self.next_chunk() {
                self.update = self.end;
                return;
            }
        }
        let x = self.body();
        let (mut lo, mut hi) = (self.update, self.end);
        while lo < hi {
            let m = (lo + hi) / 2;
            if x.val(m) < val {
                lo = m + 1
            } else {
                hi = m
            }
        }
        self.update = lo;
    }
}

/// Vals of one group with their counts at `at`, merged over cursors.
struct Merged<'a, 'c, T: Time> {
    cursors: &'c mut [Cursor<'a, T>],
    at: &'c T,
}

impl<'a, T: Time> Iterator for Merged<'a, '_, T> {
    type Item = (&'a [u8], Diff);
    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let least = self.cursors.iter().filter_map(Cursor::val).min()?;
            let mut n: Diff = 0;
            for c in self.cursors.iter_mut() {
                while c.val() == Some(least) {
                    if c.batch.time(c.body(), c.update).is_some_and(|t| t.less_equal(self.at)) {
                        n += *c.body().diffs.get(c.update);
                    }
                    c.step();
                }
            }
            if n != 0 {
                return Some((least, n));
            }
        }
    }
}

/// Chunks in the making.
struct Writer<T> {
    body: Body<T, Diff>,
    chunks: Vec<RowChunk<T, Diff>>,
}

impl<T: Time> Writer<T> {
    fn push(&mut self, lane: u64, key: &[u8], val: &[u8], t: T, d: Diff) {
        self.body.push(lane, key, val, t, d);
        if self.body.len() >= TARGET {
            self.flush();
        }
    }
    fn flush(&mut self) {
        if !self.body.is_empty() {
            let mut body = std::mem::take(&mut self.body);
            body.compact();
            self.chunks.push(RowChunk::new(body));
        }
    }
}

impl<T: Time + TotalOrder, L: OrderedLogic> ReduceTactic<T, RowB<T, Diff>, RowB<T, Diff>> for OrderedTactic<L> {
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
        let mut writer = Writer { body: Body::default(), chunks: vec![] };
        let mut made = Outputs::default();
        loop {
            let keys = heads.iter().zip(&fresh).filter_map(|(h, b)| b.chunks.get(h.chunk).map(|c| c.body().key(h.key)));
            let Some((lane, key)) = keys.min() else { break };
            // The fresh updates' times and least val, and where the group is in each batch.
            let (mut times, mut least): (Vec<T>, Option<&[u8]>) = Default::default();
            let mut places: Vec<(&RowB<T, Diff>, At)> = vec![];
            for (h, b) in heads.iter_mut().zip(&fresh) {
                if b.chunks.get(h.chunk).is_none_or(|c| c.body().key(h.key) != (lane, key)) {
                    continue;
                }
                places.push((b, *h));
                let mut last = h.chunk;
                h.each(b, |c, u, x| {
                    last = c;
                    if let Some(t) = b.time(x, u) {
                        times.push(t);
                    }
                    let v = x.val(u);
                    if least.is_none_or(|l| v < l) {
                        least = Some(v);
                    }
                });
                *h = if last == h.chunk { At { key: h.key + 1, ..*h } } else { At { chunk: last, key: 1 } };
                if h.key >= b.chunks[h.chunk].body().lanes.len() {
                    *h = At { chunk: h.chunk + 1, key: 0 };
                }
            }
            for (at, b) in at_source.iter_mut().zip(&source) {
                if at.seek(b, lane, key) {
                    places.push((b, *at));
                }
            }
            times.sort();
            times.dedup();
            let mut current: Vec<(Vec<u8>, Diff)> = vec![];
            for (at, b) in at_output.iter_mut().zip(&output) {
                if at.seek(b, lane, key) {
                    at.each(b, |_, u, x| current.push((x.val(u).to_vec(), *x.diffs.get(u))));
                }
            }
            consolidate(&mut current);
            let mut changes: Vec<((Vec<u8>, T), Diff)> = vec![];
            for t in times {
                let mut cursors: Vec<Cursor<'_, T>> = places.iter().map(|(b, at)| Cursor::new(b, *at)).collect();
                if self.0.starts_least() && !current.iter().any(|c| self.0.is_error(&c.0)) {
                    let start = current.first().map(|c| c.0.as_slice()).into_iter().chain(least).min();
                    if let Some(start) = start {
                        cursors.iter_mut().for_each(|c| c.seek(start));
                    }
                }
                made.clear();
                self.0.run(key, &mut Merged { cursors: &mut cursors, at: &t }, &mut made);
                let mut next: Vec<(Vec<u8>, Diff)> = made.rows().map(|(v, d)| (v.to_vec(), d)).collect();
                consolidate(&mut next);
                let mut delta: Vec<(Vec<u8>, Diff)> = std::mem::take(&mut current).into_iter().map(|(v, d)| (v, -d)).chain(next.iter().cloned()).collect();
                consolidate(&mut delta);
                changes.extend(delta.into_iter().map(|(v, d)| ((v, t.clone()), d)));
                current = next;
            }
            changes.sort();
            for ((v, t), d) in changes {
                writer.push(lane, key, &v, t, d);
            }
        }
        writer.flush();
        let chunks = settle_all(writer.chunks);
        let batch = (!chunks.is_empty()).then(|| RowB::new(ChunkBatch::new(chunks)));
        let desc = Description::new(lower.clone(), upper.clone(), Antichain::from_elem(T::minimum()));
        (Some(Span::new(desc, batch)), Antichain::new())
    }
}
