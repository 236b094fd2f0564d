//! Rows in order, and summed up, in bounded memory.
//!
//! ```text
//!   parts ─► bytes that order as ORDER BY does ─► buffer ─(full)─► sort ─► run in a temporary file
//!                                                   │                          │ k-way merge,
//!                                                   └──────────► sort ─────────┴─► equal rows added up ─► rows
//! ```
//!
//! Below [`BUFFER_BYTES`] nothing touches the disk. Rows of which retractions may follow come in any order and are added up in the merge. Where
//! only the first rows are wanted, and none of them can go again, the others are let go as soon as that is known.
//!
//! Not here: OFFSET, LIMIT and projection of what comes out (`query`), the files (`storage`, `scratch.rs`).

use super::query::Row;
use repr::error::state;
use repr::row::{OrderBy, OrderCodec};
use repr::{ColType, Deltas, Diff, SqlError};
use storage::{Scratch, ScratchReader, StoreHandle};

/// What is held in memory before it is written out.
const BUFFER_BYTES: usize = 32 << 20;
/// What a row takes beside its bytes.
const ROW_BYTES: usize = 48;
/// Runs merged at a time; more are merged in rounds.
const FAN_IN: usize = 128;
/// Entries that a step of a round merges.
const STEP_ROWS: usize = 65_536;
/// Below this it does not pay to look for rows to let go.
const KEPT_ROWS_MIN: u64 = 4_096;

/// Takes rows in.
pub(super) struct Sorter {
    codec: OrderCodec,
    store: StoreHandle,
    /// So many rows are wanted at most.
    wanted: Option<u64>,
    /// Rows beyond these bytes are not wanted.
    cut: Option<Vec<u8>>,
    buffer: Buffer,
    buffer_bytes_max: usize,
    runs: Vec<Scratch>,
    /// A round that is under way.
    round: Option<(Merge, storage::ScratchWriter)>,
}

/// The codec of an order over rows of these types.
fn codec(order: &[expr::ColumnOrder], types: &[ColType]) -> OrderCodec {
    OrderCodec::new(types.to_vec(), order.iter().map(|o| OrderBy { column: o.column, desc: o.desc, nulls_last: o.nulls_last }))
}

/// Sorts rows in memory, ties by row bytes.
pub(super) fn sort_rows(rows: &mut [(Row, Diff)], order: &[expr::ColumnOrder], types: &[ColType]) {
    let codec = codec(order, types);
    rows.sort_by_cached_key(|(row, _)| {
        let mut key = Vec::new();
        codec.encode_row(row, &mut key);
        key
    });
}

impl Sorter {
    /// `wanted`: only so many of the first rows are asked for; all diffs are positive then.
    pub(super) fn new(order: &[expr::ColumnOrder], types: &[ColType], wanted: Option<u64>, store: StoreHandle) -> Sorter {
        Sorter {
            codec: codec(order, types),
            store,
            wanted,
            cut: None,
            buffer: Buffer::default(),
            buffer_bytes_max: BUFFER_BYTES,
            runs: Vec::new(),
            round: None,
        }
    }

    /// Errors: 53100 or 58030 from the disk; 54000 for a row of 2 GB or more.
    pub(super) fn push(&mut self, part: &Deltas) -> Result<(), SqlError> {
        for piece in part.rows.pieces() {
            let rows = part.rows.slice(piece.start, piece.len());
            if rows.len == 1 && i32::try_from(rows.row_bytes(0)).is_err() {
                return Err(SqlError::new(state::PROGRAM_LIMIT_EXCEEDED, "a row that is to be sorted takes more than 2 GB"));
            }
            let Buffer { bytes, places } = &mut self.buffer;
            let (mut from, mut i) = (bytes.len(), piece.start);
            self.codec.encode(&rows.cols, rows.len, bytes, |bytes, split| {
                let diff = *part.diffs.get(i);
                i += 1;
                if self.cut.as_ref().is_some_and(|cut| bytes[from..] > cut[..]) {
                    bytes.truncate(from);
                } else {
                    places.push(Place { from, split, end: bytes.len(), diff });
                    from = bytes.len();
                }
            });
            self.make_room()?;
        }
        Ok(())
    }

    pub(super) fn push_rows(&mut self, rows: &[(Row, Diff)]) -> Result<(), SqlError> {
        for (row, diff) in rows {
            let from = self.buffer.bytes.len();
            let split = self.codec.encode_row(row, &mut self.buffer.bytes);
            self.buffer.places.push(Place { from, split, end: self.buffer.bytes.len(), diff: *diff });
            self.make_room()?;
        }
        Ok(())
    }

    fn make_room(&mut self) -> Result<(), SqlError> {
        let rows = self.buffer.places.len() as u64;
        let full = self.buffer.size() >= self.buffer_bytes_max;
        if let Some(n) = self.wanted.filter(|n| full || rows / 2 > (*n).max(KEPT_ROWS_MIN)) {
            self.cut = self.buffer.keep_first(n).or(self.cut.take());
        }
        if self.buffer.size() >= if full { self.buffer_bytes_max / 2 } else { self.buffer_bytes_max } {
            self.spill()?;
        }
        Ok(())
    }

    fn spill(&mut self) -> Result<(), SqlError> {
        let mut run = self.store.scratch()?;
        let mut sorted = Merge::new(vec![Source::Memory(std::mem::take(&mut self.buffer).sorted())]);
        while let Some(n) = sorted.next()? {
            if n != 0 {
                put(&mut run, &sorted, n)?;
            }
        }
        // The buffer's memory is used again.
        if let Some(Source::Memory(Sorted { mut buffer, .. })) = sorted.ended.pop() {
            buffer.bytes.clear();
            buffer.places.clear();
            self.buffer = buffer;
        }
        self.runs.push(run.finish()?);
        Ok(())
    }

    /// A step of merging what has become too many runs. True: there is no more to be done now.
    pub(super) fn merge_step(&mut self) -> Result<bool, SqlError> {
        if self.round.is_none() {
            if self.runs.len() < FAN_IN {
                return Ok(true);
            }
            let sources = self.runs.drain(..).map(|r| r.read().map(Source::Run)).collect::<Result<_, _>>()?;
            self.round = Some((Merge::new(sources), self.store.scratch()?));
        }
        let Some((merge, run)) = &mut self.round else { return Ok(true) };
        for _ in 0..STEP_ROWS {
            match merge.next()? {
                Some(0) => {}
                Some(n) => put(run, merge, n)?,
                None => {
                    if let Some((_, run)) = self.round.take() {
                        self.runs.insert(0, run.finish()?);
                    }
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// All rows are in.
    pub(super) fn finish(self) -> Result<Rows, SqlError> {
        let mut sources = self.runs.iter().map(|r| r.read().map(Source::Run)).collect::<Result<Vec<_>, _>>()?;
        sources.push(Source::Memory(self.buffer.sorted()));
        Ok(Rows { codec: self.codec, merge: Merge::new(sources) })
    }
}

/// A sum beyond 64 bits is several entries.
fn put(run: &mut storage::ScratchWriter, merge: &Merge, mut n: i128) -> Result<(), SqlError> {
    let mark = u32::try_from(merge.split).map_err(SqlError::internal)?;
    while n != 0 {
        let part = Diff::try_from(n).unwrap_or(if n < 0 { Diff::MIN } else { Diff::MAX });
        run.push(&merge.bytes, mark, part)?;
        n -= i128::from(part);
    }
    Ok(())
}

/// Gives rows out in order.
pub(super) struct Rows {
    codec: OrderCodec,
    merge: Merge,
}

impl Rows {
    /// How often the next row comes; 0 or less: see there. `None` at the end.
    pub(super) fn next(&mut self) -> Result<Option<i128>, SqlError> {
        self.merge.next()
    }
    /// The row that `next` was about.
    pub(super) fn row(&self) -> Row {
        let mut row = Row::new();
        self.codec.decode(&self.merge.bytes[self.merge.split..], &mut row);
        row
    }
    /// Its size, about.
    pub(super) fn row_bytes(&self) -> usize {
        self.merge.bytes.len() - self.merge.split
    }
}

#[derive(Default)]
struct Buffer {
    bytes: Vec<u8>,
    places: Vec<Place>,
}

/// A row in a buffer: `from..split` orders it, `split..end` is it.
#[derive(Clone, Copy)]
struct Place {
    from: usize,
    split: usize,
    end: usize,
    diff: Diff,
}

impl Buffer {
    fn size(&self) -> usize {
        self.bytes.len() + self.places.len() * ROW_BYTES
    }

    fn sorted(self) -> Sorted {
        // The first bytes decide mostly; beside them a row's place, so that the bytes are seldom looked up.
        let mut order: Vec<(u64, u32)> = Vec::with_capacity(self.places.len());
        for (i, p) in self.places.iter().enumerate() {
            let (mut first, bytes) = ([0; 8], &self.bytes[p.from..p.end]);
            let n = bytes.len().min(8);
            first[..n].copy_from_slice(&bytes[..n]);
            order.push((u64::from_be_bytes(first), i as u32));
        }
        let bytes = |i: u32| {
            let p = self.places[i as usize];
            &self.bytes[p.from..p.end]
        };
        order.sort_unstable_by(|a, b| a.0.cmp(&b.0).then_with(|| bytes(a.1).cmp(bytes(b.1))));
        let order = order.into_iter().map(|o| o.1).collect();
        Sorted { buffer: self, order, at: 0 }
    }

    /// Lets go all but the first `n` rows. Answers the bytes of the last one, if there are so many.
    fn keep_first(&mut self, n: u64) -> Option<Vec<u8>> {
        let sorted = std::mem::take(self).sorted();
        let mut left = n;
        for i in &sorted.order {
            if left == 0 {
                break;
            }
            let p = sorted.buffer.places[*i as usize];
            left = left.saturating_sub(p.diff.unsigned_abs());
            let from = self.bytes.len();
            self.bytes.extend_from_slice(&sorted.buffer.bytes[p.from..p.end]);
            self.places.push(Place { from, split: from + p.split - p.from, end: self.bytes.len(), diff: p.diff });
        }
        let last = self.places.last()?;
        (left == 0).then(|| self.bytes[last.from..last.end].to_vec())
    }
}

struct Sorted {
    buffer: Buffer,
    order: Vec<u32>,
    at: usize,
}

enum Source {
    Memory(Sorted),
    Run(ScratchReader),
}

impl Source {
    /// Bytes, where in them the row begins, and diff.
    fn get(&self) -> Option<(&[u8], usize, Diff)> {
        match self {
            Source::Memory(s) => {
                let p = s.buffer.places[*s.order.get(s.at)? as usize];
                Some((&s.buffer.bytes[p.from..p.end], p.split - p.from, p.diff))
            }
            Source::Run(r) => r.get().map(|(bytes, mark, diff)| (bytes, mark as usize, diff)),
        }
    }
    fn advance(&mut self) -> Result<(), SqlError> {
        match self {
            Source::Memory(s) => {
                s.at += 1;
                Ok(())
            }
            Source::Run(r) => r.advance(),
        }
    }
    fn is_before(&self, other: &Source) -> bool {
        self.get().map(|x| x.0) < other.get().map(|x| x.0)
    }
}

/// Sources merged, equal rows added up.
struct Merge {
    /// Those that are not at their end; the least first, as a heap.
    heap: Vec<Source>,
    ended: Vec<Source>,
    /// The row in hand.
    bytes: Vec<u8>,
    split: usize,
}

impl Merge {
    fn new(sources: Vec<Source>) -> Merge {
        let (heap, ended) = sources.into_iter().partition(|s: &Source| s.get().is_some());
        let mut merge = Merge { heap, ended, bytes: Vec::new(), split: 0 };
        for at in (0..merge.heap.len() / 2).rev() {
            merge.sift_down(at);
        }
        merge
    }

    /// Takes the next row in hand; the sum of its diffs.
    fn next(&mut self) -> Result<Option<i128>, SqlError> {
        let Some((bytes, split, _)) = self.heap.first().and_then(Source::get) else { return Ok(None) };
        self.bytes.clear();
        self.bytes.extend_from_slice(bytes);
        self.split = split;
        let mut sum = 0;
        while let Some((bytes, _, diff)) = self.heap.first().and_then(Source::get) {
            if bytes != self.bytes {
                break;
            }
            sum += i128::from(diff);
            self.heap[0].advance()?;
            if self.heap[0].get().is_none() {
                self.ended.push(self.heap.swap_remove(0));
            }
            self.sift_down(0);
        }
        Ok(Some(sum))
    }

    fn sift_down(&mut self, mut at: usize) {
        loop {
            let mut least = at;
            for child in [2 * at + 1, 2 * at + 2] {
                if child < self.heap.len() && self.heap[child].is_before(&self.heap[least]) {
                    least = child;
                }
            }
            if least == at {
                return;
            }
            self.heap.swap(at, least);
            at = least;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use repr::{Batch, Col, SqlType, Value};
    use std::collections::BTreeMap;
    use std::sync::Arc;
    use storage::sim::{Rng, SimDisk};
    use storage::{Disk, Store, StoreOptions};

    const TEMP: &str = "/d/temp";

    fn order(column: usize, desc: bool, nulls_last: bool) -> expr::ColumnOrder {
        expr::ColumnOrder { column, desc, nulls_last }
    }

    fn random_rows(rng: &mut Rng, n: u64) -> Vec<(Row, Diff)> {
        let numeric = |s: &str| repr::text::from_text(s, &SqlType::Numeric, -1, &repr::TextStyle::default()).unwrap();
        let mut row = || {
            let a = if rng.one_in(5) { Value::Null } else { Value::Int4(rng.below(12) as i32 - 5) };
            // Equal, but not identical.
            let b = numeric(["1.0", "1.00", "2", "-3.5"][rng.below(4) as usize]);
            let c = if rng.one_in(7) { Value::Null } else { Value::text("ab\u{e9}".repeat(rng.below(4) as usize)) };
            (vec![a, b, c], if rng.one_in(3) { -1 } else { 1 + rng.below(2) as Diff })
        };
        (0..n).map(|_| row()).collect()
    }

    /// Whatever is written out in between, rows come in order, each once, with the sum of its diffs; and no file is left.
    #[test]
    fn sorted_runs_give_what_sorting_in_memory_gives() {
        let types = vec![SqlType::Int4.nullable(), SqlType::Numeric.not_null(), SqlType::Text.nullable()];
        let disk = SimDisk::new();
        let store = Store::open(Arc::new(disk.clone()), std::path::Path::new("/d"), StoreOptions { background: false, ..Default::default() }).unwrap();
        let orders = [vec![], vec![order(0, false, true)], vec![order(1, true, true), order(0, false, false)], vec![order(2, true, false)]];
        for (seed, by) in (0..).zip(orders.iter().cycle().take(12)) {
            let mut rng = Rng::new(seed);
            let rows = random_rows(&mut rng, 3_000);
            let mut sums: BTreeMap<Vec<u8>, (Row, i128)> = BTreeMap::new();
            for (row, diff) in &rows {
                let mut key = Vec::new();
                codec(by, &types).encode_row(row, &mut key);
                sums.entry(key).or_insert_with(|| (row.clone(), 0)).1 += i128::from(*diff);
            }
            let mut sorter = Sorter::new(by, &types, None, store.handle());
            // Now all in memory, now in so many runs that they are merged in rounds.
            sorter.buffer_bytes_max = [1 << 20, 20_000, 900][seed as usize % 3];
            for part in rows.chunks(100) {
                let batch = Batch::from_rows(&types, part.iter().map(|r| r.0.as_slice()));
                match rng.one_in(2) {
                    true => sorter.push_rows(part).unwrap(),
                    false => sorter.push(&Deltas { rows: batch, diffs: Col::from_vec(part.iter().map(|r| r.1).collect()) }).unwrap(),
                }
                while !sorter.merge_step().unwrap() {}
            }
            let mut sorted = sorter.finish().unwrap();
            let mut got = Vec::new();
            while let Some(n) = sorted.next().unwrap() {
                got.push((sorted.row(), n));
            }
            // Sums of zero may be left out or told.
            let want: Vec<(Row, i128)> = sums.into_values().filter(|r| r.1 != 0).collect();
            got.retain(|r| r.1 != 0);
            assert!(got == want, "seed {seed}");
            drop(sorted);
            assert_eq!(disk.list(std::path::Path::new(TEMP)).unwrap().len(), 0, "seed {seed}");
        }
    }

    #[test]
    fn only_the_first_rows_are_kept_where_no_others_are_wanted() {
        let types = vec![SqlType::Int4.not_null(), SqlType::Text.not_null()];
        let disk = SimDisk::new();
        let store = Store::open(Arc::new(disk.clone()), std::path::Path::new("/d"), StoreOptions { background: false, ..Default::default() }).unwrap();
        for wanted in [1, 10, 5_000, 19_000] {
            let mut sorter = Sorter::new(&[order(0, true, false)], &types, Some(wanted), store.handle());
            sorter.buffer_bytes_max = 400_000;
            for part in 0..200 {
                let rows: Vec<(Row, Diff)> = (0..100).map(|i| (vec![Value::Int4((i * 200 + part) * 7919 % 20_011), Value::text("x")], 1)).collect();
                sorter.push_rows(&rows).unwrap();
            }
            let files = disk.list(std::path::Path::new(TEMP)).unwrap().len();
            assert_eq!(files > 0, wanted > 4_000, "{wanted}: {files}");
            let mut want: Vec<i32> = (0..20_000).map(|i| i * 7919 % 20_011).collect();
            want.sort_by(|a, b| b.cmp(a));
            let mut sorted = sorter.finish().unwrap();
            for w in &want[..wanted as usize] {
                assert_eq!(sorted.next().unwrap(), Some(1));
                assert_eq!(sorted.row()[0], Value::Int4(*w));
            }
        }
    }
}
