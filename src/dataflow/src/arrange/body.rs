//! Sorted or staged updates as contiguous bytes.
//!
//! ```text
//!   lanes      l0        l1     l2           one u64 hash a distinct key
//!   keys       k0........k1.....k2......     one slab entry a distinct key
//!   key_ends   3         4      6            end of each key's updates
//!   vals       v0 v1 v2  v3     v4 v5        one slab entry an update (none at all while every val is empty)
//!   times      t0 t1 t2  t3     t4 t5        costs nothing while constant
//!   diffs      r0 r1 r2  r3     r4 r5        costs nothing while constant
//! ```
//!
//! A [`Body`] inside a chunk is sorted by (lane, key, val, time) and consolidated; inside a [`super::Block`] it is neither.
//! Offsets are `u32`: a body stays far below 4 GiB since chunks and blocks are bounded in rows and in [bytes](repr::batch::PIECE_BYTES).

use super::TARGET;
use repr::batch::PIECE_BYTES;
use repr::Col;

/// No bytes, at an address that can be read: comparing empty slices that dangle costs hundreds of cycles a time, since vectorised
/// comparison reads under a mask and the processor has to find out that the page is not there.
pub const NOTHING: &[u8] = {
    static PLACE: [u8; 64] = [0; 64];
    PLACE.split_at(0).0
};

/// An end in a slab. One that does not fit would make other rows of these.
#[inline]
fn offset(end: usize) -> u32 {
    u32::try_from(end).expect("chunks and blocks are bounded in bytes")
}

/// Concatenated byte strings.
#[derive(Clone, Default, Debug)]
pub struct Slab {
    pub bytes: Vec<u8>,
    pub ends: Vec<u32>,
}

impl Slab {
    #[inline]
    pub fn len(&self) -> usize {
        self.ends.len()
    }
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }
    #[inline]
    pub fn start(&self, i: usize) -> usize {
        if i == 0 {
            0
        } else {
            self.ends[i - 1] as usize
        }
    }
    #[inline]
    pub fn get(&self, i: usize) -> &[u8] {
        let (start, end) = (self.start(i), self.ends[i] as usize);
        if start == end {
            NOTHING
        } else {
            &self.bytes[start..end]
        }
    }
    #[inline]
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        self.ends.push(offset(self.bytes.len()));
    }
    /// Appends entries `[lo, hi)` of `other` in bulk.
    pub fn extend(&mut self, other: &Slab, lo: usize, hi: usize) {
        if lo >= hi {
            return;
        }
        let (start, end) = (other.start(lo), other.ends[hi - 1] as usize);
        let shift = (self.bytes.len() as u32).wrapping_sub(start as u32);
        self.bytes.extend_from_slice(&other.bytes[start..end]);
        offset(self.bytes.len());
        self.ends.extend(other.ends[lo..hi].iter().map(|e| e.wrapping_add(shift)));
    }
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }
    pub fn shrink(&mut self) {
        self.bytes.shrink_to_fit();
        self.ends.shrink_to_fit();
    }
    pub fn heap_bytes(&self) -> usize {
        self.bytes.capacity() + self.ends.capacity() * 4
    }
}

/// Updates: see the picture above.
#[derive(Clone, Debug)]
pub struct Body<T, R> {
    pub lanes: Vec<u64>,
    pub keys: Slab,
    pub key_ends: Vec<u32>,
    pub vals: Slab,
    /// Every val is empty, and `vals` has no entries.
    pub no_vals: bool,
    /// Read through [`super::RowB::time`] wherever a batch may be an import: its view of time differs.
    pub(super) times: Col<T>,
    pub diffs: Col<R>,
}

impl<T, R> Default for Body<T, R> {
    fn default() -> Self {
        Body { lanes: vec![], keys: Slab::default(), key_ends: vec![], vals: Slab::default(), no_vals: true, times: Col::default(), diffs: Col::default() }
    }
}

impl<T, R> Body<T, R> {
    /// The number of updates.
    #[inline]
    pub fn len(&self) -> usize {
        self.key_ends.last().map_or(0, |x| *x as usize)
    }
    pub fn is_empty(&self) -> bool {
        self.lanes.is_empty()
    }
    /// Bytes of keys and vals.
    #[inline]
    pub fn bytes(&self) -> usize {
        self.keys.bytes.len() + self.vals.bytes.len()
    }
    /// Whether a chunk in the making is to be closed.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.len() >= TARGET || self.bytes() >= PIECE_BYTES
    }
    /// The first update of key `k`.
    #[inline]
    pub fn key_start(&self, k: usize) -> usize {
        if k == 0 {
            0
        } else {
            self.key_ends[k - 1] as usize
        }
    }
    #[inline]
    pub fn val(&self, u: usize) -> &[u8] {
        if self.no_vals {
            NOTHING
        } else {
            self.vals.get(u)
        }
    }
    /// The time of update `u`, for blocks: batches are read through [`super::RowB::time`].
    #[inline]
    pub fn time_at(&self, u: usize) -> &T
    where
        T: Clone + PartialEq,
    {
        self.times.get(u)
    }
    #[inline]
    pub fn key(&self, k: usize) -> (u64, &[u8]) {
        (self.lanes[k], self.keys.get(k))
    }
    /// The key that update `u` belongs to.
    #[inline]
    pub fn key_of(&self, u: usize) -> usize {
        self.key_ends.partition_point(|e| (*e as usize) <= u)
    }
}

impl<T: Clone + PartialEq, R: Clone + PartialEq> Body<T, R> {
    /// From parts with one key an update.
    pub fn from_rows(lanes: Vec<u64>, keys: Slab, vals: Option<Slab>, times: Col<T>, diffs: Col<R>) -> Self {
        let n = lanes.len() as u32;
        let no_vals = vals.is_none();
        Body { lanes, keys, key_ends: (1..=n).collect(), vals: vals.unwrap_or_default(), no_vals, times, diffs }
    }

    /// Appends one update.
    pub fn push(&mut self, lane: u64, key: &[u8], val: &[u8], time: T, diff: R) {
        let n = self.len();
        match (self.lanes.last(), self.key_ends.last_mut()) {
            (Some(l), Some(end)) if *l == lane && self.keys.get(self.keys.len() - 1) == key => *end += 1,
            _ => {
                self.lanes.push(lane);
                self.keys.push(key);
                self.key_ends.push(n as u32 + 1);
            }
        }
        if self.no_vals && !val.is_empty() {
            self.start_vals(n);
        }
        if !self.no_vals {
            self.vals.push(val);
        }
        self.times.push(time);
        self.diffs.push(diff);
    }

    /// The first `n` vals were empty and are now written out.
    fn start_vals(&mut self, n: usize) {
        self.no_vals = false;
        self.vals.ends.resize(n, 0);
    }

    /// Appends updates `[u0, u1)` of `other`, the first of which belongs to key `k0`.
    pub fn append(&mut self, other: &Body<T, R>, k0: usize, u0: usize, u1: usize) {
        if u0 + 1 == u1 {
            // Sorting and merging mostly take one update here, one there.
            self.push(other.lanes[k0], other.keys.get(k0), other.val(u0), other.times.get(u0).clone(), other.diffs.get(u0).clone());
        } else if u0 < u1 {
            self.append_untimed(other, k0, u0, u1);
            self.times.extend(&other.times, u0, u1);
        }
    }

    /// As `append`, but leaves the times to the caller.
    pub(super) fn append_untimed(&mut self, other: &Body<T, R>, mut k0: usize, u0: usize, u1: usize) {
        if u0 >= u1 {
            return;
        }
        let n = self.len();
        let same_key = self.lanes.last().is_some_and(|l| *l == other.lanes[k0] && self.keys.get(self.keys.len() - 1) == other.keys.get(k0));
        if same_key {
            let end = (other.key_ends[k0] as usize).min(u1);
            if let Some(last) = self.key_ends.last_mut() {
                *last += (end - u0) as u32;
            }
            k0 += 1;
        }
        if k0 < other.key_ends.len() && other.key_start(k0) < u1 {
            let mut k1 = k0 + 1;
            if (other.key_ends[k1 - 1] as usize) < u1 {
                k1 += other.key_ends[k1..].partition_point(|e| (*e as usize) < u1);
                if (other.key_ends[k1 - 1] as usize) < u1 {
                    k1 += 1;
                }
            }
            self.lanes.extend_from_slice(&other.lanes[k0..k1]);
            self.keys.extend(&other.keys, k0, k1);
            let shift = (n as u32).wrapping_sub(u0 as u32);
            self.key_ends.extend(other.key_ends[k0..k1].iter().map(|e| (*e).min(u1 as u32).wrapping_add(shift)));
        }
        if self.no_vals && !other.no_vals {
            self.start_vals(n);
        }
        if !self.no_vals {
            if other.no_vals {
                let end = self.vals.bytes.len() as u32;
                let len = self.vals.ends.len() + u1 - u0;
                self.vals.ends.resize(len, end);
            } else {
                self.vals.extend(&other.vals, u0, u1);
            }
        }
        self.diffs.extend(&other.diffs, u0, u1);
    }

    /// Empties the body, keeping allocations.
    pub fn clear(&mut self) {
        self.lanes.clear();
        self.keys.clear();
        self.key_ends.clear();
        self.vals.clear();
        self.no_vals = true;
        self.times = Col::default();
        self.diffs = Col::default();
    }

    /// Trims allocations, and collapses constant times and diffs.
    pub fn compact(&mut self) {
        self.lanes.shrink_to_fit();
        self.keys.shrink();
        self.key_ends.shrink_to_fit();
        self.vals.shrink();
        self.times.compact();
        self.diffs.compact();
    }

    /// An empty body with room for about as much as `other` holds.
    pub fn with_room_of(other: &Body<T, R>) -> Self {
        let mut b = Body::default();
        b.lanes.reserve(other.lanes.len());
        b.key_ends.reserve(other.key_ends.len());
        b.keys.bytes.reserve(other.keys.bytes.len());
        b.keys.ends.reserve(other.keys.ends.len());
        b.vals.bytes.reserve(other.vals.bytes.len());
        b.vals.ends.reserve(other.vals.ends.len());
        b
    }

    pub fn heap_bytes(&self) -> usize {
        self.lanes.capacity() * 8
            + self.keys.heap_bytes()
            + self.key_ends.capacity() * 4
            + self.vals.heap_bytes()
            + self.times.heap_bytes()
            + self.diffs.heap_bytes()
    }
}
