//! A shard in memory: its batches (files) and the tail of the log that is not folded yet; and its manifest, the durable form.
//!
//! ```text
//!   batches   [0, 10) [10, 25) ...   each: files, since          tail   (seq 7, t 25, deltas) (seq 9, t 31, staged file) ...
//! ```
//!
//! Batches abut: the lower of each is the upper of the one before. A fold that changes nothing in a shard writes nothing, so the last
//! upper may lie below the store's: nothing changed in between.

use crate::file::{FileMeta, FileRef};
use repr::{ColType, Deltas, Timestamp};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Updates with times in `[lower, upper)`, those below `since` advanced to it.
#[derive(Clone)]
pub(crate) struct ShardBatch {
    pub(crate) lower: Timestamp,
    pub(crate) upper: Timestamp,
    pub(crate) since: Timestamp,
    pub(crate) files: Vec<Arc<FileRef>>,
}

impl ShardBatch {
    pub(crate) fn bytes(&self) -> u64 {
        self.files.iter().map(|f| f.meta.bytes).sum()
    }
    pub(crate) fn rows(&self) -> u64 {
        self.files.iter().map(|f| f.meta.rows).sum()
    }
    /// Rows it adds, counted with multiplicity.
    pub(crate) fn sum(&self) -> i128 {
        self.files.iter().map(|f| i128::from(f.meta.sum)).sum()
    }
    pub(crate) fn time_max(&self) -> Timestamp {
        self.files.iter().map(|f| f.meta.time_max).max().unwrap_or(0)
    }
}

#[derive(Clone)]
pub(crate) enum TailData {
    Deltas(Arc<Deltas>),
    Staged(Arc<FileRef>),
}

#[derive(Clone)]
pub(crate) struct TailEntry {
    pub(crate) seq: u64,
    pub(crate) t: Timestamp,
    pub(crate) data: TailData,
}

#[derive(Clone)]
pub(crate) struct Shard {
    pub(crate) types: Arc<[ColType]>,
    /// Tick that created it; 0 once that is folded.
    pub(crate) created_seq: u64,
    pub(crate) since: Timestamp,
    pub(crate) batches: Vec<ShardBatch>,
    pub(crate) tail: Vec<TailEntry>,
}

impl Shard {
    pub(crate) fn new(types: Arc<[ColType]>, created_seq: u64) -> Shard {
        Shard { types, created_seq, since: 0, batches: Vec::new(), tail: Vec::new() }
    }

    pub(crate) fn manifest(&self) -> Manifest {
        Manifest {
            version: MANIFEST_VERSION,
            types: self.types.to_vec(),
            batches: self
                .batches
                .iter()
                .map(|b| BatchManifest { lower: b.lower, upper: b.upper, since: b.since, files: b.files.iter().map(|f| f.meta.clone()).collect() })
                .collect(),
        }
    }

    pub(crate) fn files(&self) -> impl Iterator<Item = &Arc<FileRef>> {
        let tail = self.tail.iter().filter_map(|e| match &e.data {
            TailData::Staged(f) => Some(f),
            TailData::Deltas(_) => None,
        });
        self.batches.iter().flat_map(|b| &b.files).chain(tail)
    }
}

pub(crate) const MANIFEST_VERSION: u32 = 1;

/// What the metadata store holds of a shard, as JSON.
#[derive(Serialize, Deserialize)]
pub(crate) struct Manifest {
    pub(crate) version: u32,
    pub(crate) types: Vec<ColType>,
    pub(crate) batches: Vec<BatchManifest>,
}

#[derive(Serialize, Deserialize)]
pub(crate) struct BatchManifest {
    pub(crate) lower: Timestamp,
    pub(crate) upper: Timestamp,
    pub(crate) since: Timestamp,
    pub(crate) files: Vec<FileMeta>,
}

/// Through which tick log and metadata are folded, as JSON.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Folded {
    pub(crate) seq: u64,
    pub(crate) t: Timestamp,
    pub(crate) lease: Timestamp,
    /// File numbers below this were used.
    pub(crate) next_file: u64,
}
