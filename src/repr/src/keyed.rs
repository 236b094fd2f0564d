//! Rows by key, at most one a key, packed: what a source keeps to find the old row of a change.
//!
//! ```text
//!   index   hash of key bytes ──► place (5 bytes)          slabs   [len][row bytes] [len][row bytes] ...   64 KiB each
//! ```
//!
//! A key is not stored: its bytes are pieces of the row bytes. A row costs its bytes, one or two for their length, and about ten in the index.
//! Slabs that are less than half alive are emptied into others, so memory stays in proportion to what is kept whatever changes.
//!
//! Not here: where rows come from; what keys mean.

use crate::ids::Diff;
use crate::row::RowCodec;
use crate::types::ColType;
use hashbrown::hash_table::{Entry, HashTable};
use std::collections::HashMap;
use std::hash::BuildHasher;

/// Slab and offset in it.
type Place = [u8; 5];

/// An offset takes two bytes.
const SLAB_BYTES: usize = 1 << 16;
/// A slab's number takes three: a terabyte in all.
const SLABS_MAX: usize = 1 << 24;

fn place(slab: usize, offset: usize) -> Place {
    let (s, o) = (slab as u32, offset as u16);
    [s as u8, (s >> 8) as u8, (s >> 16) as u8, o as u8, (o >> 8) as u8]
}

fn parts(p: Place) -> (usize, usize) {
    (usize::from(p[0]) | usize::from(p[1]) << 8 | usize::from(p[2]) << 16, usize::from(p[3]) | usize::from(p[4]) << 8)
}

#[derive(Default)]
struct Slab {
    bytes: Vec<u8>,
    /// Bytes of records that the index names.
    live: usize,
}

/// The record at `offset`: its row and its end.
fn record(bytes: &[u8], offset: usize) -> (&[u8], usize) {
    let (mut len, mut shift, mut at) = (0, 0, offset);
    loop {
        let b = bytes[at];
        at += 1;
        len |= usize::from(b & 0x7f) << shift;
        if b < 0x80 {
            return (&bytes[at..at + len], at + len);
        }
        shift += 7;
    }
}

fn put_record(row: &[u8], out: &mut Vec<u8>) {
    crate::canonical::put_varint(row.len() as u64, out);
    out.extend_from_slice(row);
}

fn record_len(row: &[u8]) -> usize {
    let bits = usize::BITS as usize - (row.len() | 1).leading_zeros() as usize;
    bits.div_ceil(7) + row.len()
}

struct Packed {
    codec: RowCodec,
    key: Vec<usize>,
    /// The key's columns come first and in order, so key bytes are a prefix of row bytes.
    is_prefix: bool,
    /// The key is all columns in order: key bytes are row bytes.
    is_row: bool,
    hasher: foldhash::fast::RandomState,
    slabs: Vec<Slab>,
    /// Numbers of slabs that hold nothing.
    free: Vec<usize>,
    /// The slab that is being filled.
    open: Option<usize>,
    /// Slabs to be emptied.
    sparse: Vec<usize>,
    /// Bytes that the slabs take.
    held: usize,
}

impl Packed {
    fn row(&self, p: Place) -> &[u8] {
        let (slab, offset) = parts(p);
        record(&self.slabs[slab].bytes, offset).0
    }

    fn hash(&self, key: &[u8]) -> u64 {
        self.hasher.hash_one(key)
    }

    fn hash_row(&self, row: &[u8]) -> u64 {
        if self.is_row {
            return self.hash(row);
        }
        let mut key = Vec::new();
        self.codec.key_of(row, &self.key, &mut key);
        self.hash(&key)
    }

    fn has_key(&self, p: Place, key: &[u8]) -> bool {
        let row = self.row(p);
        if self.is_row {
            return row == key;
        }
        if self.is_prefix {
            return row.starts_with(key);
        }
        let mut of = Vec::new();
        self.codec.key_of(row, &self.key, &mut of);
        of == key
    }

    /// The place of a key in the index, taken or free.
    fn entry<'i>(&self, index: &'i mut HashTable<Place>, key: &[u8]) -> Entry<'i, Place> {
        index.entry(self.hash(key), |p| self.has_key(*p, key), |p| self.hash_row(self.row(*p)))
    }

    fn new_slab(&mut self, bytes: usize) -> usize {
        let slab = Slab { bytes: Vec::with_capacity(bytes), live: 0 };
        self.held += slab.bytes.capacity();
        match self.free.pop() {
            Some(number) => {
                self.slabs[number] = slab;
                number
            }
            None => {
                assert!(self.slabs.len() < SLABS_MAX, "a terabyte of rows in memory");
                self.slabs.push(slab);
                self.slabs.len() - 1
            }
        }
    }

    fn push(&mut self, row: &[u8]) -> Place {
        let len = record_len(row);
        let number = match self.open {
            _ if len > SLAB_BYTES => self.new_slab(len),
            Some(n) if self.slabs[n].bytes.len() + len <= SLAB_BYTES => n,
            full => {
                // The first of all grows as it must: many tables are small.
                let n = self.new_slab(if full.is_some() { SLAB_BYTES } else { 0 });
                self.open = Some(n);
                full.into_iter().for_each(|full| self.note_sparse(full));
                n
            }
        };
        let slab = &mut self.slabs[number];
        let (offset, capacity) = (slab.bytes.len(), slab.bytes.capacity());
        put_record(row, &mut slab.bytes);
        slab.live += len;
        self.held += slab.bytes.capacity() - capacity;
        place(number, offset)
    }

    fn note_sparse(&mut self, number: usize) {
        let slab = &self.slabs[number];
        if slab.live * 2 < slab.bytes.len() && self.open != Some(number) && !self.sparse.contains(&number) {
            self.sparse.push(number);
        }
    }

    /// Nothing names the record any more.
    fn release(&mut self, p: Place) {
        let (number, offset) = parts(p);
        let slab = &mut self.slabs[number];
        slab.live -= record(&slab.bytes, offset).1 - offset;
        self.note_sparse(number);
    }

    /// Writes `row` over the record, if that has its length.
    fn overwrite(&mut self, p: Place, row: &[u8]) -> bool {
        let (number, offset) = parts(p);
        let bytes = &mut self.slabs[number].bytes;
        let (old, end) = record(bytes, offset);
        let fits = old.len() == row.len();
        if fits {
            bytes[end - row.len()..end].copy_from_slice(row);
        }
        fits
    }
}

/// See the module.
pub struct KeyedRows {
    index: HashTable<Place>,
    rows: Packed,
}

impl KeyedRows {
    /// For rows of these types, `key` being their key's columns, in the order in which key bytes have them. Where rows are key bytes
    /// themselves (types whose equal values may differ), they are kept as such.
    pub fn new(types: Vec<ColType>, key: Vec<usize>) -> KeyedRows {
        let is_prefix = key.iter().enumerate().all(|(i, c)| i == *c);
        let all = key.len() == types.len();
        let codec = RowCodec::new(types);
        let is_row = is_prefix && all && codec.key_is_row();
        let (hasher, slabs, free, open, sparse, held) = Default::default();
        let rows = Packed { codec, key, is_prefix, is_row, hasher, slabs, free, open, sparse, held };
        KeyedRows { index: HashTable::new(), rows }
    }

    pub fn len(&self) -> usize {
        self.index.len()
    }

    pub fn is_empty(&self) -> bool {
        self.index.is_empty()
    }

    /// Bytes of memory.
    pub fn bytes(&self) -> usize {
        self.index.allocation_size() + self.rows.held
    }

    /// The row bytes that `key` (key bytes) has.
    pub fn get(&self, key: &[u8]) -> Option<&[u8]> {
        let rows = &self.rows;
        self.index.find(rows.hash(key), |p| rows.has_key(*p, key)).map(|p| rows.row(*p))
    }

    pub fn contains(&self, key: &[u8]) -> bool {
        self.get(key).is_some()
    }

    /// `row` is now what `key` has. Answers with the row that it had.
    pub fn insert(&mut self, key: &[u8], row: &[u8]) -> Option<Box<[u8]>> {
        let rows = &mut self.rows;
        debug_assert!({
            let mut of = Vec::new();
            rows.codec.key_of(row, &rows.key, &mut of);
            of == key
        });
        let old = match rows.entry(&mut self.index, key) {
            Entry::Occupied(mut found) => {
                let p = found.get_mut();
                let old: Box<[u8]> = rows.row(*p).into();
                if !rows.overwrite(*p, row) {
                    let before = std::mem::replace(p, rows.push(row));
                    rows.release(before);
                }
                Some(old)
            }
            Entry::Vacant(free) => {
                free.insert(rows.push(row));
                None
            }
        };
        self.tidy();
        old
    }

    /// `row` is what `key` has from now on, if it has none: whether it had none.
    pub fn insert_new(&mut self, key: &[u8], row: &[u8]) -> bool {
        let rows = &mut self.rows;
        let Entry::Vacant(free) = rows.entry(&mut self.index, key) else { return false };
        free.insert(rows.push(row));
        // A slab that is full now may be one to be emptied.
        self.tidy();
        true
    }

    /// Makes room in the index for as many keys more.
    pub fn reserve(&mut self, keys: usize) {
        let rows = &self.rows;
        self.index.reserve(keys, |p| rows.hash_row(rows.row(*p)));
    }

    /// `key` has no row any more. Answers with the row that it had.
    pub fn remove(&mut self, key: &[u8]) -> Option<Box<[u8]>> {
        let rows = &mut self.rows;
        let found = self.index.find_entry(rows.hash(key), |p| rows.has_key(*p, key)).ok()?;
        let (p, _) = found.remove();
        let old = rows.row(p).into();
        rows.release(p);
        self.tidy();
        Some(old)
    }

    /// All rows, in no order.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        self.index.iter().map(|p| self.rows.row(*p))
    }

    pub fn clear(&mut self) {
        self.index = HashTable::new();
        (self.rows.slabs, self.rows.free, self.rows.open, self.rows.held) = (Vec::new(), Vec::new(), None, 0);
    }

    /// Empties slabs of which little is alive.
    fn tidy(&mut self) {
        while let Some(number) = self.rows.sparse.pop() {
            let slab = std::mem::take(&mut self.rows.slabs[number]);
            let mut offset = 0;
            while offset < slab.bytes.len() {
                let (row, end) = record(&slab.bytes, offset);
                let here = place(number, offset);
                if let Some(p) = self.index.find_mut(self.rows.hash_row(row), |p| *p == here) {
                    *p = self.rows.push(row);
                }
                offset = end;
            }
            self.rows.held -= slab.bytes.capacity();
            self.rows.free.push(number);
        }
    }
}

/// Takes in updates of rows in any order, of which in the end at most one row a key is left.
pub struct Loading {
    rows: KeyedRows,
    /// Rows whose other half has not come yet.
    open: HashMap<Box<[u8]>, Diff, foldhash::fast::RandomState>,
    key: Vec<u8>,
}

impl Loading {
    /// As [`KeyedRows::new`].
    pub fn new(types: Vec<ColType>, key: Vec<usize>) -> Loading {
        Loading { rows: KeyedRows::new(types, key), open: HashMap::default(), key: Vec::new() }
    }

    pub fn add(&mut self, row: &[u8], diff: Diff) {
        if !self.open.is_empty() {
            if let Some(sum) = self.open.get_mut(row) {
                *sum += diff;
                if *sum == 0 {
                    self.open.remove(row);
                }
                return;
            }
        }
        if !self.settle(row, diff) {
            self.open.insert(row.into(), diff);
        }
    }

    fn settle(&mut self, row: &[u8], diff: Diff) -> bool {
        let packed = &self.rows.rows;
        self.key.clear();
        packed.codec.key_of(row, &packed.key, &mut self.key);
        match (self.rows.get(&self.key), diff) {
            (None, 1) => self.rows.insert(&self.key, row).is_none(),
            (Some(has), -1) if has == row => self.rows.remove(&self.key).is_some(),
            _ => false,
        }
    }

    /// `None`: a key has two rows, or a row more or less than once.
    pub fn finish(mut self) -> Option<KeyedRows> {
        let mut open: Vec<(Box<[u8]>, Diff)> = std::mem::take(&mut self.open).into_iter().collect();
        // What goes makes room for what comes.
        open.sort_unstable_by_key(|(_, diff)| *diff);
        open.iter().all(|(row, diff)| self.settle(row, *diff)).then_some(self.rows)
    }
}
