//! Finding keys in bodies and batches.
//!
//! Order is (lane, key bytes); lanes are hashes, so a sparse seek interpolates before it searches.

use super::{Body, RowChunk, Time, Weight, NOTHING};
use differential_dataflow::trace::chunk::ChunkBatch;

/// The first key index `>= start` whose key is `>= (lane, key)`, for seeks that go a short way.
#[inline]
pub fn gallop_key<T, R>(b: &Body<T, R>, start: usize, lane: u64, key: &[u8]) -> usize {
    let n = b.lanes.len();
    let less = |i: usize| {
        let l = b.lanes[i];
        l < lane || (l == lane && b.keys.get(i) < key)
    };
    let mut pos = start;
    if pos < n && less(pos) {
        let mut step = 1;
        while pos + step < n && less(pos + step) {
            pos += step;
            step <<= 1;
        }
        step >>= 1;
        while step > 0 {
            if pos + step < n && less(pos + step) {
                pos += step;
            }
            step >>= 1;
        }
        pos += 1;
    }
    pos
}

/// As [`gallop_key`], for sparse seeks: interpolates on the lane.
#[inline]
pub fn find_key<T, R>(b: &Body<T, R>, start: usize, lane: u64, key: &[u8]) -> usize {
    let lanes = &b.lanes[..];
    let n = lanes.len();
    let mut i = start;
    let near = (start + 4).min(n);
    while i < near && lanes[i] < lane {
        i += 1;
    }
    if i == near && i < n && lanes[i] < lane {
        if lanes[n - 1] < lane {
            return n;
        }
        let span = u128::from(lanes[n - 1] - lanes[i]) + 1;
        let guess = i + (u128::from(lane - lanes[i]) * (n - 1 - i) as u128 / span) as usize;
        // Invariant: lanes[lo] < lane <= lanes[hi].
        let (mut lo, mut hi) = (i, n - 1);
        let mut step = 4;
        if lanes[guess] < lane {
            lo = guess;
            while lo + step < hi && lanes[lo + step] < lane {
                lo += step;
                step <<= 1;
            }
            hi = hi.min(lo + step);
        } else {
            hi = guess;
            while hi > lo + step && lanes[hi - step] >= lane {
                hi -= step;
                step <<= 1;
            }
            if hi > lo + step {
                lo = hi - step;
            }
        }
        i = lo + 1 + lanes[lo + 1..=hi].partition_point(|l| *l < lane);
    }
    while i < n && lanes[i] == lane && b.keys.get(i) < key {
        i += 1;
    }
    i
}

/// A forward-seeking position in a batch: chunk and key.
#[derive(Clone, Copy, Default, Debug)]
pub struct At {
    pub chunk: usize,
    pub key: usize,
}

impl At {
    /// Moves to the first key `>= (lane, key)`; true when it is equal.
    #[inline]
    pub fn seek<T: Time, R: Weight>(&mut self, b: &ChunkBatch<RowChunk<T, R>>, lane: u64, key: &[u8]) -> bool {
        let chunks = &b.chunks;
        let less = |c: usize| {
            let last = chunks[c].last_lane();
            last < lane || (last == lane && chunks[c].keys.get(chunks[c].keys.len() - 1) < key)
        };
        if self.chunk < chunks.len() && less(self.chunk) {
            let mut step = 1;
            let mut lo = self.chunk;
            while lo + step < chunks.len() && less(lo + step) {
                lo += step;
                step <<= 1;
            }
            let (mut a, mut z) = (lo + 1, (lo + step).min(chunks.len()));
            while a < z {
                let m = (a + z) / 2;
                if less(m) {
                    a = m + 1
                } else {
                    z = m
                }
            }
            self.chunk = a;
            self.key = 0;
        }
        let Some(x) = chunks.get(self.chunk) else { return false };
        self.key = find_key(x, self.key, lane, key);
        x.lanes[self.key] == lane && x.keys.get(self.key) == key
    }

    /// Moves to the first key with this lane or a greater one; true when a key has the lane.
    pub fn seek_lane<T: Time, R: Weight>(&mut self, b: &ChunkBatch<RowChunk<T, R>>, lane: u64) -> bool {
        self.seek(b, lane, NOTHING) || b.chunks.get(self.chunk).is_some_and(|c| c.lanes[self.key] == lane)
    }

    /// Visits all updates of the current key, across chunk boundaries, without moving. A key's updates may straddle chunks.
    #[inline]
    pub fn each<'a, T: Time, R: Weight>(&self, b: &'a ChunkBatch<RowChunk<T, R>>, mut f: impl FnMut(usize, usize, &'a Body<T, R>)) {
        let x = b.chunks[self.chunk].body();
        let (lane, key) = x.key(self.key);
        for u in x.key_start(self.key)..x.key_ends[self.key] as usize {
            f(self.chunk, u, x);
        }
        if self.key + 1 == x.lanes.len() {
            for c in self.chunk + 1..b.chunks.len() {
                let y = b.chunks[c].body();
                if y.key(0) != (lane, key) {
                    break;
                }
                for u in 0..y.key_ends[0] as usize {
                    f(c, u, y);
                }
                if y.lanes.len() > 1 {
                    break;
                }
            }
        }
    }

    /// Visits all updates of all keys with `lane` from here, and returns the position after them.
    pub fn each_lane<'a, T: Time, R: Weight>(&self, b: &'a ChunkBatch<RowChunk<T, R>>, lane: u64, mut f: impl FnMut(&'a [u8], usize, &'a Body<T, R>)) -> At {
        let mut p = *self;
        while p.chunk < b.chunks.len() {
            let x = b.chunks[p.chunk].body();
            while p.key < x.lanes.len() {
                if x.lanes[p.key] != lane {
                    return p;
                }
                let key = x.keys.get(p.key);
                for u in x.key_start(p.key)..x.key_ends[p.key] as usize {
                    f(key, u, x);
                }
                p.key += 1;
            }
            p.chunk += 1;
            p.key = 0;
        }
        p
    }
}
