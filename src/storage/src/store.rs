//! The store that the committer owns.

use crate::disk::Disk;
use repr::{ColType, Deltas, GlobalId, SqlError, Timestamp};
use std::path::Path;
use std::sync::Arc;

#[derive(Clone, Debug)]
pub struct StoreOptions {
    /// Fold the log into batches once it holds so many bytes.
    pub fold_bytes: u64,
    pub segment_bytes: u64,
}

/// What one tick makes durable, all or nothing.
#[derive(Clone, Debug, Default)]
pub struct Tick {
    pub t: Timestamp,
    /// Recovery closes time through this before the first read.
    pub lease: Timestamp,
    /// Changes at `t`. A shard must have been created in this or an earlier tick.
    pub shards: Vec<(GlobalId, Deltas)>,
    /// Staged units that become visible at `t`.
    pub staged: Vec<StagedUnit>,
    pub create: Vec<(GlobalId, Vec<ColType>)>,
    pub drop: Vec<GlobalId>,
    /// Metadata changes: catalog entries, source positions, holds. `None` removes.
    pub meta: Vec<(Vec<u8>, Option<Vec<u8>>)>,
}

/// Part files of a unit too large for one tick: written and synced, invisible until a tick names them.
#[derive(Clone, Debug)]
pub struct StagedUnit {
    pub shard: GlobalId,
    pub files: Vec<String>,
}

/// The durable state of one process. One writer: the committer.
pub struct Store {
    _private: (),
}

impl Store {
    /// Opens or creates the data directory, recovers.
    /// Errors: a second process holds the directory's lock; a referenced file is missing or damaged (names file, offset and shard).
    pub fn open(disk: Arc<dyn Disk>, dir: &Path, options: StoreOptions) -> Result<Store, SqlError> {
        let _ = (disk, dir, options);
        unimplemented!()
    }
    /// All times below this are closed.
    pub fn upper(&self) -> Timestamp {
        unimplemented!()
    }
    pub fn lease(&self) -> Timestamp {
        unimplemented!()
    }
    /// All metadata entries whose key starts with `prefix`, in key order.
    pub fn meta_scan(&self, prefix: &[u8]) -> Vec<(Vec<u8>, Vec<u8>)> {
        let _ = prefix;
        unimplemented!()
    }
    /// Makes a tick durable: returns after its fdatasync. On error nothing of it is visible, now or after a restart; a failed sync is final: the process must exit.
    pub fn append(&mut self, tick: Tick) -> Result<(), SqlError> {
        let _ = tick;
        unimplemented!()
    }
    /// Writes and syncs a part of a large unit; name the result in a later tick.
    pub fn stage(&self, shard: GlobalId, part: &Deltas) -> Result<String, SqlError> {
        let _ = (shard, part);
        unimplemented!()
    }
    /// The shard's content at `as_of`, to be read from any thread while appends go on.
    /// Errors: `as_of` outside `[since, upper)`.
    pub fn snapshot(&self, shard: GlobalId, as_of: Timestamp) -> Result<Snapshot, SqlError> {
        let _ = (shard, as_of);
        unimplemented!()
    }
    /// Reads below `since` are no longer needed: compaction may advance times to it.
    pub fn allow_compaction(&mut self, shard: GlobalId, since: Timestamp) {
        let _ = (shard, since);
    }
}

/// A readable snapshot; keeps its files alive.
pub struct Snapshot {
    _private: (),
}

impl Snapshot {
    /// Rows of slice `part` of `parts` with their diffs (not consolidated across batches).
    pub fn read(&self, part: usize, parts: usize) -> Box<dyn Iterator<Item = Result<Deltas, SqlError>> + Send> {
        let _ = (part, parts);
        unimplemented!()
    }
}
