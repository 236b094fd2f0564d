//! A shard's content at one time, read in parts by any thread.

use crate::file::{FileReader, FileRef, Updates};
use crate::shard::{Shard, TailData};
use arrow_array::UInt32Array;
use repr::{Batch, Col, ColType, Deltas, SqlError, Timestamp};
use std::collections::VecDeque;
use std::sync::Arc;

/// Ticks of the tail are mostly small; they are handed out together up to this many rows.
const CHUNK_ROWS: usize = 8192;

/// A readable snapshot; keeps its files alive.
pub struct Snapshot {
    types: Arc<[ColType]>,
    as_of: Timestamp,
    files: Vec<Arc<FileRef>>,
    tail: Vec<Arc<Deltas>>,
    rows: u64,
}

impl Snapshot {
    pub(crate) fn of(shard: &Shard, as_of: Timestamp) -> Snapshot {
        let mut files: Vec<Arc<FileRef>> = shard.batches.iter().flat_map(|b| &b.files).cloned().collect();
        let mut tail = Vec::new();
        for entry in shard.tail.iter().take_while(|e| e.t <= as_of) {
            match &entry.data {
                TailData::Deltas(d) => tail.push(d.clone()),
                TailData::Staged(f) => files.push(f.clone()),
            }
        }
        files.retain(|f| f.meta.time_min <= as_of);
        Snapshot::new(shard.types.clone(), as_of, files, tail)
    }

    pub(crate) fn new(types: Arc<[ColType]>, as_of: Timestamp, files: Vec<Arc<FileRef>>, tail: Vec<Arc<Deltas>>) -> Snapshot {
        let rows = files.iter().map(|f| f.meta.rows).sum::<u64>() + tail.iter().map(|d| d.len() as u64).sum::<u64>();
        Snapshot { types, as_of, files, tail, rows }
    }

    /// Rows to be read, before consolidation: for progress.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Whether no update read has a negative diff.
    pub fn inserts_only(&self) -> bool {
        self.files.iter().all(|f| f.meta.inserts_only) && self.tail.iter().all(|d| d.diffs.iter().all(|n| *n > 0))
    }

    /// Rows of slice `part` of `parts` with their diffs (not consolidated across batches). Slices are disjoint and together complete.
    /// Reads block by block. Errors: a file that is gone or damaged; nothing follows an error.
    pub fn read(&self, part: usize, parts: usize) -> Box<dyn Iterator<Item = Result<Deltas, SqlError>> + Send> {
        self.read_columns(part, parts, None)
    }

    /// As [`Snapshot::read`], where only the columns that are `wanted` are asked for (`None`: all): others may be NULL throughout.
    pub fn read_columns(&self, part: usize, parts: usize, wanted: Option<&[bool]>) -> Box<dyn Iterator<Item = Result<Deltas, SqlError>> + Send> {
        let parts = parts.max(1);
        let mut blocks = VecDeque::new();
        let mut number = 0;
        for file in &self.files {
            let mine: Vec<usize> = (0..file.meta.blocks as usize).filter(|i| (number + i) % parts == part).collect();
            number += file.meta.blocks as usize;
            if !mine.is_empty() {
                blocks.push_back((file.clone(), mine));
            }
        }
        let tail = self
            .tail
            .iter()
            .map(|d| {
                let (lo, hi) = (d.len() * part / parts, d.len() * (part + 1) / parts);
                (d.clone(), lo, hi)
            })
            .filter(|(_, lo, hi)| lo < hi)
            .collect();
        let wanted = wanted.map(<[bool]>::to_vec);
        Box::new(Reading { types: self.types.clone(), wanted, as_of: self.as_of, blocks, open: None, tail, failed: false })
    }
}

struct Reading {
    types: Arc<[ColType]>,
    wanted: Option<Vec<bool>>,
    as_of: Timestamp,
    blocks: VecDeque<(Arc<FileRef>, Vec<usize>)>,
    open: Option<OpenFile>,
    tail: VecDeque<(Arc<Deltas>, usize, usize)>,
    failed: bool,
}

struct OpenFile {
    /// Keeps the file on disk.
    file: Arc<FileRef>,
    reader: FileReader,
    blocks: std::vec::IntoIter<usize>,
}

impl Reading {
    fn step(&mut self) -> Result<Option<Deltas>, SqlError> {
        loop {
            if let Some(open) = &mut self.open {
                let Some(block) = open.blocks.next() else {
                    self.open = None;
                    continue;
                };
                let updates = open.reader.block(block)?;
                let deltas =
                    if open.file.meta.time_max <= self.as_of { Deltas { rows: updates.rows, diffs: updates.diffs } } else { until(updates, self.as_of) };
                if !deltas.is_empty() {
                    return Ok(Some(deltas));
                }
            } else if let Some((file, blocks)) = self.blocks.pop_front() {
                let mut reader = FileReader::open(&file, &self.types)?;
                if let Some(wanted) = &self.wanted {
                    reader = reader.only(wanted, &self.types);
                }
                self.open = Some(OpenFile { file, reader, blocks: blocks.into_iter() });
            } else {
                return Ok(self.tail_chunk());
            }
        }
    }

    fn tail_chunk(&mut self) -> Option<Deltas> {
        let (mut rows, mut diffs) = (Vec::new(), Col::default());
        let mut len = 0;
        while let Some((deltas, lo, hi)) = self.tail.pop_front() {
            let end = hi.min(lo + CHUNK_ROWS - len);
            rows.push(deltas.rows.slice(lo, end - lo));
            diffs.extend(&deltas.diffs, lo, end);
            len += end - lo;
            if end < hi {
                self.tail.push_front((deltas, end, hi));
            }
            if len >= CHUNK_ROWS {
                break;
            }
        }
        (len > 0).then(|| Deltas { rows: Batch::concat(&rows), diffs })
    }
}

fn until(updates: Updates, as_of: Timestamp) -> Deltas {
    let wanted: Vec<u32> = (0..updates.rows.len as u32).filter(|i| *updates.times.get(*i as usize) <= as_of).collect();
    if wanted.len() == updates.rows.len {
        return Deltas { rows: updates.rows, diffs: updates.diffs };
    }
    let diffs = updates.diffs.take(&wanted);
    Deltas { rows: updates.rows.take(&UInt32Array::from(wanted)), diffs }
}

impl Iterator for Reading {
    type Item = Result<Deltas, SqlError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        let item = self.step().transpose();
        self.failed = matches!(item, Some(Err(_)));
        item
    }
}
