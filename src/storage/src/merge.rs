//! Sorted runs of updates: made from deltas, merged, consolidated, written as batch files.
//!
//! ```text
//!   deltas ─ sort by (identity, time) ─┐
//!   file ─ block, block, ... ──────────┼─ k-way merge ─► times advanced to since, equal (row, time) added up, zeros dropped ─► file
//!   file ─ block, block, ... ──────────┘
//! ```
//!
//! A merge holds one block of each input and one of output, so memory does not grow with the shard. Deltas are sorted where they are.

use crate::disk::Disk;
use crate::error::arrow_error;
use crate::file::{FileReader, FileRef, FileWriter, Updates};
use crate::identity::{Identities, Rows};
use arrow_array::{Array, ArrayRef, UInt32Array};
use repr::{Batch, Col, ColType, Deltas, Diff, GlobalId, SqlError, Timestamp};
use std::cmp::Ordering;
use std::path::Path;
use std::sync::Arc;

const BLOCK_ROWS: usize = 8192;
/// A block is read whole, so wide rows make shorter blocks.
const BLOCK_BYTES: usize = 1 << 20;
/// Inputs merged at a time; more are merged in rounds.
pub(crate) const FAN_IN: usize = 32;

/// Where output goes.
pub(crate) struct Target<'a> {
    pub(crate) disk: &'a Arc<dyn Disk>,
    pub(crate) dir: &'a Path,
    pub(crate) shard: GlobalId,
    pub(crate) types: &'a Arc<[ColType]>,
    /// A part without times of its own.
    pub(crate) staged: bool,
    pub(crate) since: Timestamp,
    /// Kill point before the sync.
    pub(crate) kill: &'a str,
}

/// Identity, time, diff, and place as (block, row).
type Current = (Vec<u8>, Timestamp, Diff, (usize, usize));

/// A file that is there once it has a block.
struct Output<'a> {
    target: &'a Target<'a>,
    name: String,
    file: Option<FileWriter>,
}

impl<'a> Output<'a> {
    fn new(target: &'a Target<'a>, name: String) -> Output<'a> {
        Output { target, name, file: None }
    }

    fn write(&mut self, updates: &Updates) -> Result<(), SqlError> {
        let file = match &mut self.file {
            Some(file) => file,
            None => {
                let t = self.target;
                self.file.insert(FileWriter::create(t.disk.clone(), t.dir, self.name.clone(), t.shard, t.types.clone(), t.staged)?)
            }
        };
        file.write(updates)
    }

    fn finish(self) -> Result<Option<Arc<FileRef>>, SqlError> {
        self.file.map(|f| f.finish(self.target.kill)).transpose()
    }
}

/// Takes updates in (identity, time) order, consolidates them and writes blocks.
struct RunWriter<'a> {
    out: Output<'a>,
    /// Blocks that pending rows lie in.
    blocks: Vec<Arc<Updates>>,
    pending: Vec<(usize, usize)>,
    pending_bytes: usize,
    times: Vec<Timestamp>,
    diffs: Vec<Diff>,
    /// The row that is being added up.
    current: Option<Current>,
    spare: Vec<u8>,
}

impl<'a> RunWriter<'a> {
    fn new(target: &'a Target<'a>, name: String) -> RunWriter<'a> {
        RunWriter {
            out: Output::new(target, name),
            blocks: Vec::new(),
            pending: Vec::new(),
            pending_bytes: 0,
            times: Vec::new(),
            diffs: Vec::new(),
            current: None,
            spare: Vec::new(),
        }
    }

    /// Rows come by their index in a block that was added here; the number returned stays right until the next push.
    fn add_block(&mut self, block: Arc<Updates>) -> usize {
        self.blocks.push(block);
        self.blocks.len() - 1
    }

    fn push(&mut self, identity: &[u8], block: usize, row: usize) -> Result<(), SqlError> {
        let time = (*self.blocks[block].times.get(row)).max(self.out.target.since);
        let diff = *self.blocks[block].diffs.get(row);
        if let Some((id, t, d, _)) = &mut self.current {
            if *t == time && id.as_slice() == identity {
                // A sum beyond 64 bits stays as two updates.
                if let Some(sum) = d.checked_add(diff) {
                    *d = sum;
                    return Ok(());
                }
            }
        }
        self.settle();
        let mut id = std::mem::take(&mut self.spare);
        id.clear();
        id.extend_from_slice(identity);
        self.current = Some((id, time, diff, (block, row)));
        Ok(())
    }

    fn settle(&mut self) {
        if let Some((id, time, diff, place)) = self.current.take() {
            if diff != 0 {
                self.pending.push(place);
                self.pending_bytes += id.len();
                self.times.push(time);
                self.diffs.push(diff);
            }
            self.spare = id;
        }
    }

    fn is_full(&self) -> bool {
        self.pending.len() >= BLOCK_ROWS || self.pending_bytes >= BLOCK_BYTES || self.blocks.len() >= 4 * FAN_IN
    }

    /// Writes what is pending. Afterwards all blocks must be added anew.
    fn flush(&mut self) -> Result<(), SqlError> {
        // The row being added up may go on in a later block; its place would be lost, so it is taken out as a block of its own.
        let carried = self.current.take();
        if !self.pending.is_empty() {
            let rows = gather(&self.blocks, &self.pending).map_err(|e| arrow_error("could not write", self.out.target.dir, e))?;
            let updates = Updates { rows, times: Col::from_vec(std::mem::take(&mut self.times)), diffs: Col::from_vec(std::mem::take(&mut self.diffs)) };
            self.pending.clear();
            self.pending_bytes = 0;
            self.out.write(&updates)?;
        }
        let kept = carried.map(|(id, time, diff, (block, row))| {
            let from = &self.blocks[block];
            let one = Updates { rows: from.rows.slice(row, 1), times: Col::same(time, 1), diffs: Col::same(diff, 1) };
            (id, time, diff, Arc::new(one))
        });
        self.blocks.clear();
        if let Some((id, time, diff, block)) = kept {
            self.blocks.push(block);
            self.current = Some((id, time, diff, (0, 0)));
        }
        Ok(())
    }

    fn finish(mut self) -> Result<Option<Arc<FileRef>>, SqlError> {
        self.settle();
        self.flush()?;
        self.out.finish()
    }
}

fn gather(blocks: &[Arc<Updates>], places: &[(usize, usize)]) -> Result<Batch, arrow_schema::ArrowError> {
    let arity = blocks.first().map_or(0, |b| b.rows.cols.len());
    let cols = (0..arity)
        .map(|c| {
            let parts: Vec<&dyn Array> = blocks.iter().map(|b| b.rows.cols[c].as_ref()).collect();
            arrow_select::interleave::interleave(&parts, places)
        })
        .collect::<Result<Vec<ArrayRef>, _>>()?;
    Ok(Batch::new(places.len(), cols))
}

/// Writes deltas in memory as one sorted, consolidated file. `None`: they cancel out.
pub(crate) fn write_deltas(target: &Target, name: String, parts: &[(Timestamp, Arc<Deltas>)]) -> Result<Option<Arc<FileRef>>, SqlError> {
    let mut rows = Vec::with_capacity(parts.len());
    let (mut times, mut diffs) = (Vec::new(), Vec::new());
    for (t, deltas) in parts.iter().filter(|(_, d)| !d.is_empty()) {
        rows.push(deltas.rows.clone());
        times.resize(times.len() + deltas.len(), *t);
        diffs.extend(deltas.diffs.iter().copied());
    }
    let all = Batch::concat(&rows);
    let rows = Rows::of(&all.cols, all.len);
    let (heads, whole) = rows.heads();
    let mut order: Vec<(u128, u32)> = heads.into_iter().zip(0..).collect();
    let same = |a: u32, b: u32| whole || rows.cmp(a as usize, b as usize).is_eq();
    order.sort_unstable_by(|a, b| {
        let tied = || if whole { Ordering::Equal } else { rows.cmp(a.1 as usize, b.1 as usize) };
        a.0.cmp(&b.0).then_with(tied).then_with(|| times[a.1 as usize].cmp(&times[b.1 as usize]))
    });
    let mut out = Output::new(target, name);
    let (mut picked, mut bytes, mut block_times, mut block_diffs): (Vec<u32>, usize, Vec<Timestamp>, Vec<Diff>) = Default::default();
    let mut updates = order.iter().map(|(head, i)| (*head, *i, times[*i as usize].max(target.since), diffs[*i as usize])).peekable();
    while let Some((head, row, time, mut diff)) = updates.next() {
        // A sum beyond 64 bits stays as two updates.
        while let Some(sum) = updates.peek().filter(|u| u.0 == head && u.2 == time && same(row, u.1)).and_then(|u| diff.checked_add(u.3)) {
            diff = sum;
            updates.next();
        }
        if diff != 0 {
            picked.push(row);
            bytes += rows.bytes(row as usize);
            block_times.push(time);
            block_diffs.push(diff);
        }
        if picked.len() >= BLOCK_ROWS || bytes >= BLOCK_BYTES || updates.peek().is_none() && !picked.is_empty() {
            let times = Col::from_vec(std::mem::take(&mut block_times));
            out.write(&Updates { rows: pick(&all, std::mem::take(&mut picked)), times, diffs: Col::from_vec(std::mem::take(&mut block_diffs)) })?;
            bytes = 0;
        }
    }
    out.finish()
}

/// The rows at `indices`, in that order. Rows that lie in it already are not copied.
fn pick(rows: &Batch, indices: Vec<u32>) -> Batch {
    match indices.first() {
        Some(first) if indices.iter().zip(*first..).all(|(i, n)| *i == n) => rows.slice(*first as usize, indices.len()),
        _ => rows.take(&UInt32Array::from(indices)),
    }
}

/// One input of a merge.
struct Run {
    reader: FileReader,
    next: usize,
    block: Arc<Updates>,
    ids: Identities,
    at: usize,
    /// The block's number in the writer, if it was added since the last flush.
    number: Option<usize>,
}

impl Run {
    fn open(file: &FileRef, types: &[ColType]) -> Result<Option<Run>, SqlError> {
        let reader = FileReader::open(file, types)?;
        let empty = Arc::new(Updates { rows: Batch::default(), times: Col::default(), diffs: Col::default() });
        let mut run = Run { reader, next: 0, block: empty, ids: Identities::default(), at: 0, number: None };
        Ok(run.load()?.then_some(run))
    }

    /// Goes to the next block that has rows.
    fn load(&mut self) -> Result<bool, SqlError> {
        while self.next < self.reader.blocks() {
            let block = self.reader.block(self.next)?;
            self.next += 1;
            if block.rows.len > 0 {
                self.ids = Identities::of(&block.rows.cols, block.rows.len);
                (self.block, self.at, self.number) = (Arc::new(block), 0, None);
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn advance(&mut self) -> Result<bool, SqlError> {
        self.at += 1;
        if self.at < self.block.rows.len {
            return Ok(true);
        }
        self.load()
    }

    fn less(&self, other: &Run) -> bool {
        let (a, b) = (self.ids.get(self.at), other.ids.get(other.at));
        a.cmp(b).then_with(|| self.block.times.get(self.at).cmp(other.block.times.get(other.at))).is_lt()
    }
}

/// Restores the heap order of `heap` (least run first) below `at`.
fn sift_down(heap: &mut [Run], mut at: usize) {
    loop {
        let (left, right) = (2 * at + 1, 2 * at + 2);
        let mut least = at;
        for child in [left, right] {
            if child < heap.len() && heap[child].less(&heap[least]) {
                least = child;
            }
        }
        if least == at {
            return;
        }
        heap.swap(at, least);
        at = least;
    }
}

/// Merges files of one shard into one. `None`: they cancel out. `name` gives names for the result and for files of rounds between.
pub(crate) fn merge_files(target: &Target, name: &mut dyn FnMut() -> String, files: &[Arc<FileRef>]) -> Result<Option<Arc<FileRef>>, SqlError> {
    if files.len() > FAN_IN {
        let mut round = Vec::new();
        for chunk in files.chunks(FAN_IN) {
            if let Some(file) = merge_files(target, name, chunk)? {
                // Temporary: goes when this call is done.
                file.make_obsolete();
                round.push(file);
            }
        }
        return merge_files(target, name, &round);
    }
    let mut heap = Vec::with_capacity(files.len());
    for file in files {
        heap.extend(Run::open(file, target.types)?);
    }
    for at in (0..heap.len() / 2).rev() {
        sift_down(&mut heap, at);
    }
    let mut out = RunWriter::new(target, name());
    while let Some(run) = heap.first_mut() {
        let number = match run.number {
            Some(n) => n,
            None => {
                let n = out.add_block(run.block.clone());
                run.number = Some(n);
                n
            }
        };
        out.push(run.ids.get(run.at), number, run.at)?;
        if !run.advance()? {
            heap.swap_remove(0);
        }
        sift_down(&mut heap, 0);
        if out.is_full() {
            out.flush()?;
            heap.iter_mut().for_each(|r| r.number = None);
        }
    }
    out.finish()
}
