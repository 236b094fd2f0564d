//! Batch files: Arrow IPC files (LZ4) of updates, sorted by row identity and time.
//!
//! ```text
//!   ARROW1 header and schema | record batch, record batch, ... | footer with our key "riverdelta" | ARROW1
//!   columns: c0 ... cn, rd_time u64 (absent in a staged part: the tick that names it gives the time), rd_diff i64
//! ```
//!
//! The footer holds the checksum of each record batch and the columns' statistics; the checksum of the footer is in the file's
//! [`FileMeta`], which whoever names the file keeps (manifest or tick record). Every byte that is read is checked first.
//!
//! Not here: which files make up a shard (`manifest`), in which order rows come (`merge`).

use crate::codec::{self, record_batch};
use crate::disk::{Disk, DiskFile};
use crate::error::{arrow_error, damaged, io_error, missing};
use arrow_array::cast::AsArray;
use arrow_array::types::{Int64Type, UInt64Type};
use arrow_array::{new_null_array, Array, ArrayRef, Int64Array, UInt64Array};
use arrow_buffer::Buffer;
use arrow_ipc::reader::FileDecoder;
use arrow_ipc::writer::{FileWriter as IpcWriter, IpcWriteOptions};
use arrow_ipc::CompressionType;
use arrow_schema::{ArrowError, DataType};
use repr::column::physical;
use repr::{Batch, Col, ColType, Diff, GlobalId, SqlError, Timestamp};
use serde::{Deserialize, Serialize};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

use crate::stats::{ColumnStats, StatsBuilder};

/// Updates as columns.
#[derive(Clone, Debug)]
pub(crate) struct Updates {
    pub(crate) rows: Batch,
    pub(crate) times: Col<Timestamp>,
    pub(crate) diffs: Col<Diff>,
}

/// What the one who names a file knows of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FileMeta {
    pub(crate) name: String,
    pub(crate) rows: u64,
    /// Sum of the diffs: the number of rows, counted with multiplicity, that the file adds.
    pub(crate) sum: i64,
    pub(crate) bytes: u64,
    pub(crate) blocks: u32,
    pub(crate) footer_at: u64,
    pub(crate) footer_crc: u32,
    /// Least and greatest time; equal to each other and to the naming tick's time for a staged part.
    pub(crate) time_min: Timestamp,
    pub(crate) time_max: Timestamp,
    /// The file has no time column.
    pub(crate) staged: bool,
    /// No diff is negative. Unknown, hence false, of files that were written before this was noted.
    #[serde(default)]
    pub(crate) inserts_only: bool,
}

#[derive(Serialize, Deserialize)]
struct Footer {
    version: u32,
    shard: u64,
    crcs: Vec<u32>,
    /// For other tools and for whoever looks into a file; nothing here depends on them.
    #[serde(skip_deserializing)]
    stats: Vec<ColumnStats>,
}

const FOOTER_KEY: &str = "riverdelta";
const FILE_VERSION: u32 = 1;

/// A file, and the times of its updates.
pub(crate) struct FileRef {
    pub(crate) meta: FileMeta,
    pub(crate) shard: GlobalId,
    life: Arc<Life>,
}

/// A file on disk. When nobody uses it any more and no manifest names it, it goes.
struct Life {
    disk: Arc<dyn Disk>,
    path: PathBuf,
    obsolete: AtomicBool,
}

impl FileRef {
    pub(crate) fn new(disk: Arc<dyn Disk>, dir: &Path, shard: GlobalId, meta: FileMeta) -> Arc<FileRef> {
        let life = Life { disk, path: dir.join(&meta.name), obsolete: AtomicBool::new(false) };
        Arc::new(FileRef { meta, shard, life: Arc::new(life) })
    }

    /// The same file with the time of the tick that names it.
    pub(crate) fn at(&self, t: Timestamp) -> Arc<FileRef> {
        let meta = FileMeta { time_min: t, time_max: t, ..self.meta.clone() };
        Arc::new(FileRef { meta, shard: self.shard, life: self.life.clone() })
    }

    /// No manifest and no tick names this file: remove it once its last reader is done.
    pub(crate) fn make_obsolete(&self) {
        self.life.obsolete.store(true, Ordering::Release);
    }

    /// The file is there with the right length and footer. Errors: 58030 or XX001, naming file and shard.
    pub(crate) fn check(&self, types: &[ColType]) -> Result<(), SqlError> {
        FileReader::open(self, types).map(|_| ())
    }
}

impl Drop for Life {
    fn drop(&mut self) {
        if self.obsolete.load(Ordering::Acquire) {
            if let Err(e) = self.disk.remove(&self.path) {
                // The next start removes what nothing names.
                tracing::debug!(file = %self.path.display(), error = %e, "could not remove an obsolete file");
            }
        }
    }
}

/// Buffers what the Arrow writer sends and sums it.
struct Sink {
    file: Box<dyn DiskFile>,
    buf: Vec<u8>,
    crc: crc32fast::Hasher,
    len: u64,
}

const SINK_BYTES: usize = 1 << 20;

impl Sink {
    fn flush_buf(&mut self) -> io::Result<()> {
        if !self.buf.is_empty() {
            self.file.append(&self.buf)?;
            self.buf.clear();
        }
        Ok(())
    }
    fn take_crc(&mut self) -> u32 {
        std::mem::replace(&mut self.crc, crc32fast::Hasher::new()).finalize()
    }
}

impl io::Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.crc.update(bytes);
        self.len += bytes.len() as u64;
        self.buf.extend_from_slice(bytes);
        if self.buf.len() >= SINK_BYTES {
            self.flush_buf()?;
        }
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        self.flush_buf()
    }
}

/// Writes one batch file; dropped before `finish`, it leaves nothing behind.
pub(crate) struct FileWriter {
    disk: Arc<dyn Disk>,
    path: PathBuf,
    shard: GlobalId,
    types: Arc<[ColType]>,
    ipc: IpcWriter<Sink>,
    meta: FileMeta,
    sum: i128,
    crcs: Vec<u32>,
    stats: StatsBuilder,
    finished: bool,
}

impl FileWriter {
    pub(crate) fn create(disk: Arc<dyn Disk>, dir: &Path, name: String, shard: GlobalId, types: Arc<[ColType]>, staged: bool) -> Result<FileWriter, SqlError> {
        let path = dir.join(&name);
        let file = disk.create(&path).map_err(|e| io_error("could not create", &path, &e))?;
        let sink = Sink { file, buf: Vec::new(), crc: crc32fast::Hasher::new(), len: 0 };
        let options = IpcWriteOptions::default().try_with_compression(Some(CompressionType::LZ4_FRAME));
        let schema = codec::schema(&types, !staged, true);
        let mut ipc = options.and_then(|o| IpcWriter::try_new_with_options(sink, &schema, o)).map_err(|e| arrow_error("could not write", &path, e))?;
        ipc.get_mut().take_crc();
        let meta = FileMeta {
            name,
            rows: 0,
            sum: 0,
            bytes: 0,
            blocks: 0,
            footer_at: 0,
            footer_crc: 0,
            time_min: Timestamp::MAX,
            time_max: 0,
            staged,
            inserts_only: true,
        };
        let stats = StatsBuilder::new(types.len());
        Ok(FileWriter { disk, path, shard, types, ipc, meta, sum: 0, crcs: Vec::new(), stats, finished: false })
    }

    pub(crate) fn write(&mut self, updates: &Updates) -> Result<(), SqlError> {
        let len = updates.rows.len;
        let mut cols = updates.rows.cols.clone();
        self.stats.add(&cols);
        if !self.meta.staged {
            cols.push(Arc::new(UInt64Array::from_iter_values(updates.times.iter().copied())));
            for t in updates.times.iter() {
                self.meta.time_min = self.meta.time_min.min(*t);
                self.meta.time_max = self.meta.time_max.max(*t);
            }
        }
        cols.push(Arc::new(Int64Array::from_iter_values(updates.diffs.iter().copied())));
        self.sum += updates.diffs.iter().map(|d| i128::from(*d)).sum::<i128>();
        let written = record_batch(self.ipc.schema(), cols, len).and_then(|batch| self.ipc.write(&batch));
        written.map_err(|e| arrow_error("could not write", &self.path, e))?;
        self.crcs.push(self.ipc.get_mut().take_crc());
        self.meta.inserts_only &= updates.diffs.iter().all(|d| *d > 0);
        self.meta.rows += len as u64;
        self.meta.blocks += 1;
        Ok(())
    }

    /// Completes and syncs the file. Its name is not durable before the directory is synced too.
    pub(crate) fn finish(mut self, kill: &str) -> Result<Arc<FileRef>, SqlError> {
        self.complete()?;
        crate::kill::kill_point(kill);
        self.ipc.get_ref().file.sync().map_err(|e| io_error("could not sync", &self.path, &e))?;
        self.made()
    }

    /// Completes a file of which nothing is asked after a crash.
    pub(crate) fn finish_unsynced(mut self) -> Result<Arc<FileRef>, SqlError> {
        self.complete()?;
        self.made()
    }

    fn complete(&mut self) -> Result<(), SqlError> {
        let footer =
            Footer { version: FILE_VERSION, shard: self.shard.0, crcs: std::mem::take(&mut self.crcs), stats: std::mem::take(&mut self.stats).finish() };
        let footer = serde_json::to_string(&footer).map_err(SqlError::internal)?;
        self.ipc.write_metadata(FOOTER_KEY, footer);
        self.meta.footer_at = self.ipc.get_ref().len;
        self.ipc.finish().map_err(|e| arrow_error("could not write", &self.path, e))?;
        self.meta.footer_crc = self.ipc.get_mut().take_crc();
        self.meta.bytes = self.ipc.get_ref().len;
        self.meta.sum = i64::try_from(self.sum).unwrap_or(if self.sum < 0 { i64::MIN } else { i64::MAX });
        Ok(())
    }

    fn made(mut self) -> Result<Arc<FileRef>, SqlError> {
        self.finished = true;
        let dir = self.path.parent().unwrap_or(Path::new("."));
        let file = FileRef::new(self.disk.clone(), dir, self.shard, self.meta.clone());
        // What cannot be read back must not take the place of what the log holds.
        file.check(&self.types).inspect_err(|_| file.make_obsolete())?;
        Ok(file)
    }
}

impl Drop for FileWriter {
    fn drop(&mut self) {
        if !self.finished {
            let _ = self.disk.remove(&self.path);
        }
    }
}

/// Reads a batch file block by block.
pub(crate) struct FileReader {
    file: Box<dyn DiskFile>,
    path: PathBuf,
    shard: GlobalId,
    meta: FileMeta,
    blocks: Vec<arrow_ipc::Block>,
    crcs: Vec<u32>,
    decoder: FileDecoder,
    arity: usize,
    /// For each column, its physical type if it is not read.
    left_out: Vec<Option<DataType>>,
}

impl FileReader {
    pub(crate) fn open(file: &FileRef, types: &[ColType]) -> Result<FileReader, SqlError> {
        let (path, shard, meta) = (&file.life.path, file.shard, &file.meta);
        let open = file.life.disk.open(path).map_err(|e| missing(path, shard, &e))?;
        let bad = |why: &str| damaged(path, meta.footer_at, Some(shard), why);
        let len = open.len().map_err(|e| missing(path, shard, &e))?;
        if len != meta.bytes {
            return Err(damaged(path, len.min(meta.bytes), Some(shard), &format!("it has {len} bytes instead of {}", meta.bytes)));
        }
        let footer_len = usize::try_from(meta.bytes.saturating_sub(meta.footer_at)).map_err(|_| bad("the footer is too long"))?;
        let bytes = open.read_at(meta.footer_at, footer_len).map_err(|e| missing(path, shard, &e))?;
        if crc32fast::hash(&bytes) != meta.footer_crc {
            return Err(bad("the footer fails its checksum"));
        }
        let trailer = bytes.len().checked_sub(10).ok_or_else(|| bad("the footer is cut"))?;
        let mut last = [0; 10];
        last.copy_from_slice(&bytes[trailer..]);
        let size = arrow_ipc::reader::read_footer_length(last).map_err(|e| bad(&e.to_string()))?;
        let start = trailer.checked_sub(size).ok_or_else(|| bad("the footer is cut"))?;
        let footer = arrow_ipc::root_as_footer(&bytes[start..trailer]).map_err(|e| bad(&e.to_string()))?;
        let ours = footer.custom_metadata().and_then(|kvs| kvs.iter().find(|kv| kv.key() == Some(FOOTER_KEY)).and_then(|kv| kv.value()));
        let ours: Footer = serde_json::from_str(ours.unwrap_or("")).map_err(|e| bad(&e.to_string()))?;
        if ours.version != FILE_VERSION {
            return Err(bad(&format!("file format {} is not known to this version, which reads {FILE_VERSION}", ours.version)));
        }
        let blocks: Vec<arrow_ipc::Block> = footer.recordBatches().into_iter().flatten().copied().collect();
        if ours.shard != shard.0 || blocks.len() != ours.crcs.len() || blocks.len() != meta.blocks as usize {
            return Err(bad("the footer belongs to another file"));
        }
        let decoder = FileDecoder::new(codec::schema(types, !meta.staged, true), footer.version());
        Ok(FileReader {
            file: open,
            path: path.clone(),
            shard,
            meta: meta.clone(),
            blocks,
            crcs: ours.crcs,
            decoder,
            arity: types.len(),
            left_out: vec![None; types.len()],
        })
    }

    /// The same file, of which columns that are not `wanted` are not read: they are NULL throughout.
    pub(crate) fn only(self, wanted: &[bool], types: &[ColType]) -> FileReader {
        let stored = self.arity + usize::from(!self.meta.staged) + 1;
        let projection = (0..stored).filter(|i| wanted.get(*i).is_none_or(|w| *w)).collect();
        let left_out = types.iter().zip(wanted).map(|(t, w)| (!w).then(|| physical(&t.ty))).collect();
        FileReader { decoder: self.decoder.with_projection(projection), left_out, ..self }
    }

    pub(crate) fn blocks(&self) -> usize {
        self.blocks.len()
    }

    pub(crate) fn block(&self, i: usize) -> Result<Updates, SqlError> {
        let block = &self.blocks[i];
        let at = block.offset() as u64;
        let bad = |why: &str| damaged(&self.path, at, Some(self.shard), why);
        let len = i64::from(block.metaDataLength()) + block.bodyLength();
        let len = usize::try_from(len).map_err(|_| bad("a negative length"))?;
        let bytes = self.file.read_at(at, len).map_err(|e| io_error("could not read", &self.path, &e))?;
        if crc32fast::hash(&bytes) != self.crcs[i] {
            return Err(bad("the rows fail their checksum"));
        }
        let batch = self.decoder.read_record_batch(block, &Buffer::from_vec(bytes)).map_err(|e: ArrowError| bad(&e.to_string()))?;
        let batch = batch.ok_or_else(|| bad("no rows"))?;
        let (len, cols) = (batch.num_rows(), batch.columns());
        let read = self.left_out.iter().filter(|l| l.is_none()).count();
        let stored = read + usize::from(!self.meta.staged) + 1;
        if cols.len() != stored {
            return Err(bad("another number of columns"));
        }
        let times = match self.meta.staged {
            true => Col::same(self.meta.time_min, len),
            false => Col::from_vec(cols[read].as_primitive::<UInt64Type>().values().to_vec()),
        };
        let diffs: &ArrayRef = &cols[stored - 1];
        let diffs = Col::from_vec(diffs.as_primitive::<Int64Type>().values().to_vec());
        debug_assert!(cols.iter().all(|c| c.len() == len));
        let mut cols = cols[..read].iter().cloned();
        let rows = self.left_out.iter().filter_map(|l| l.as_ref().map_or_else(|| cols.next(), |ty| Some(new_null_array(ty, len)))).collect();
        Ok(Updates { rows: Batch::new(len, rows), times, diffs })
    }
}
