//! What a query puts aside since it is too much for memory: runs of byte strings in `temp/`.
//!
//! ```text
//!   push, push, ... ─► block, block, ... ─► temp/<number>.arrow      columns: bytes, mark, rd_diff
//! ```
//!
//! A run is a batch file without times, written and read block by block, never synced, and named by nobody: it goes with its last handle, and
//! what a killed process left goes at the next start. Its entries stand in the order in which they were pushed.
//!
//! Not here: what the bytes mean, and how runs are merged (`adapter`, `session/sorter.rs`).

use crate::disk::Disk;
use crate::error::io_error;
use crate::file::{FileReader, FileRef, FileWriter, Updates};
use crate::store::StoreHandle;
use arrow_array::builder::{BinaryBuilder, UInt32Builder};
use arrow_array::cast::AsArray;
use arrow_array::types::UInt32Type;
use arrow_array::{BinaryArray, UInt32Array};
use repr::error::state;
use repr::{Batch, Col, ColType, Diff, GlobalId, SqlError, SqlType};
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::Arc;

/// Runs belong to no shard.
const NO_SHARD: GlobalId = GlobalId(0);
/// A block is read whole, and many runs are read at once.
const BLOCK_ROWS: usize = 8192;
const BLOCK_BYTES: usize = 256 << 10;

fn types() -> Arc<[ColType]> {
    [SqlType::Bytea.not_null(), SqlType::Oid.not_null()].into()
}

/// A run in the making; dropped before `finish`, it leaves nothing behind.
pub struct ScratchWriter {
    file: FileWriter,
    bytes: BinaryBuilder,
    marks: UInt32Builder,
    diffs: Vec<Diff>,
    block_bytes: usize,
}

impl ScratchWriter {
    /// Errors: 53100 or 58030 from the disk; 54000 for an entry of 2 GB or more.
    pub fn push(&mut self, bytes: &[u8], mark: u32, diff: Diff) -> Result<(), SqlError> {
        if self.diffs.len() >= BLOCK_ROWS || self.block_bytes + bytes.len() >= BLOCK_BYTES {
            self.flush()?;
        }
        if i32::try_from(bytes.len()).is_err() {
            return Err(SqlError::new(state::PROGRAM_LIMIT_EXCEEDED, "a row that is to be sorted takes more than 2 GB").with_hint("make the values smaller"));
        }
        self.bytes.append_value(bytes);
        self.marks.append_value(mark);
        self.diffs.push(diff);
        self.block_bytes += bytes.len();
        Ok(())
    }

    fn flush(&mut self) -> Result<(), SqlError> {
        let diffs = Col::from_vec(std::mem::take(&mut self.diffs));
        if diffs.is_empty() {
            return Ok(());
        }
        self.block_bytes = 0;
        let rows = Batch::new(diffs.len(), vec![Arc::new(self.bytes.finish()), Arc::new(self.marks.finish())]);
        self.file.write(&Updates { rows, times: Col::same(0, diffs.len()), diffs })
    }

    /// Errors: 53100 or 58030 from the disk.
    pub fn finish(mut self) -> Result<Scratch, SqlError> {
        self.flush()?;
        let file = self.file.finish_unsynced()?;
        file.make_obsolete();
        Ok(Scratch(file))
    }
}

/// A run; its file goes with the last handle and reader.
pub struct Scratch(Arc<FileRef>);

impl Scratch {
    /// Reads the run from its beginning. Errors: the file is gone or damaged.
    pub fn read(&self) -> Result<ScratchReader, SqlError> {
        let reader = FileReader::open(&self.0, &types())?;
        let mut read = ScratchReader { reader, next: 0, block: None, at: 0, _file: self.0.clone() };
        read.load()?;
        Ok(read)
    }
}

/// A run being read: stands on an entry, or at the end.
pub struct ScratchReader {
    reader: FileReader,
    /// The next block.
    next: usize,
    block: Option<(BinaryArray, UInt32Array, Col<Diff>)>,
    at: usize,
    /// Keeps the file on disk.
    _file: Arc<FileRef>,
}

impl ScratchReader {
    fn load(&mut self) -> Result<(), SqlError> {
        self.block = None;
        if self.next < self.reader.blocks() {
            let block = self.reader.block(self.next)?;
            let (bytes, marks) = (block.rows.cols[0].as_binary().clone(), block.rows.cols[1].as_primitive::<UInt32Type>().clone());
            self.block = Some((bytes, marks, block.diffs));
            (self.next, self.at) = (self.next + 1, 0);
        }
        Ok(())
    }

    /// The entry that it stands on: bytes, mark, diff. `None` at the end.
    pub fn get(&self) -> Option<(&[u8], u32, Diff)> {
        let (bytes, marks, diffs) = self.block.as_ref()?;
        Some((bytes.value(self.at), marks.value(self.at), *diffs.get(self.at)))
    }

    /// Goes to the next entry. Errors: the file is gone or damaged; it is at its end then.
    pub fn advance(&mut self) -> Result<(), SqlError> {
        self.at += 1;
        match &self.block {
            Some((bytes, ..)) if self.at >= arrow_array::Array::len(bytes) => self.load(),
            _ => Ok(()),
        }
    }
}

impl StoreHandle {
    /// Begins a run. Errors: 53100 or 58030 from the disk.
    pub fn scratch(&self) -> Result<ScratchWriter, SqlError> {
        let shared = self.shared();
        let name = format!("{:08x}.arrow", shared.file_number.fetch_add(1, Ordering::Relaxed));
        let file = FileWriter::create(shared.disk.clone(), &shared.temp_dir, name, NO_SHARD, types(), true)?;
        Ok(ScratchWriter { file, bytes: BinaryBuilder::new(), marks: UInt32Builder::new(), diffs: Vec::new(), block_bytes: 0 })
    }
}

/// Removes what an earlier process left.
pub(crate) fn clear(disk: &dyn Disk, temp_dir: &Path) -> Result<(), SqlError> {
    let left = disk.list(temp_dir).map_err(|e| io_error("could not read", temp_dir, &e))?;
    left.iter().map(|name| temp_dir.join(name)).try_for_each(|path| disk.remove(&path).map_err(|e| io_error("could not remove", &path, &e)))
}
