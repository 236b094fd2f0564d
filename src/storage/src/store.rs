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
    /// Fold and merge in a thread of the store's own. Without it (simulation) they run when [`Store::fold`] is called.
    pub background: bool,
}

impl Default for StoreOptions {
    fn default() -> Self {
        StoreOptions { fold_bytes: 64 << 20, segment_bytes: 16 << 20, background: true }
    }
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
    /// Removes parts that no tick will name any more.
    pub fn unstage(&self, files: &[String]) {
        let _ = files;
    }
    /// The rows of a staged unit, before or after the tick that names it (to hand them to dataflows without holding them in memory).
    pub fn staged(&self, unit: &StagedUnit) -> Result<Snapshot, SqlError> {
        let _ = unit;
        unimplemented!()
    }
    /// Closes time through `t` without writing: nothing changed until then. `t` must not pass the durable lease.
    /// After `open` time is closed through the lease.
    pub fn close_through(&mut self, t: Timestamp) {
        let _ = t;
    }
    pub fn meta_get(&self, key: &[u8]) -> Option<Vec<u8>> {
        let _ = key;
        unimplemented!()
    }
    /// All shards with their column types.
    pub fn shards(&self) -> Vec<(GlobalId, Arc<[ColType]>)> {
        unimplemented!()
    }
    /// A handle for other threads: reading and staging while the committer appends.
    pub fn handle(&self) -> StoreHandle {
        unimplemented!()
    }
    /// Set once a sync of log or metadata failed: nothing may be acknowledged any more, the process must exit with this message.
    pub fn fatal(&self) -> Option<SqlError> {
        unimplemented!()
    }
    /// Folds the log as it stands and merges what is due, in the caller's thread.
    pub fn fold(&self) -> Result<(), SqlError> {
        unimplemented!()
    }
    pub fn stats(&self) -> StoreStats {
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
    /// Rows to be read, before consolidation: for progress.
    pub fn rows(&self) -> u64 {
        unimplemented!()
    }
}

/// Reads and stages from any thread; the store outlives the committer's borrow of it.
#[derive(Clone)]
pub struct StoreHandle {
    _private: (),
}

impl StoreHandle {
    /// As [`Store::snapshot`].
    pub fn snapshot(&self, shard: GlobalId, as_of: Timestamp) -> Result<Snapshot, SqlError> {
        let _ = (shard, as_of);
        unimplemented!()
    }
    /// As [`Store::stage`].
    pub fn stage(&self, shard: GlobalId, part: &Deltas) -> Result<String, SqlError> {
        let _ = (shard, part);
        unimplemented!()
    }
    /// As [`Store::unstage`].
    pub fn unstage(&self, files: &[String]) {
        let _ = files;
    }
    /// As [`Store::upper`].
    pub fn upper(&self) -> Timestamp {
        unimplemented!()
    }
    /// As [`Store::stats`].
    pub fn stats(&self) -> StoreStats {
        unimplemented!()
    }
}

/// For metrics.
#[derive(Clone, Debug, Default)]
pub struct StoreStats {
    pub log_bytes: u64,
    pub log_ticks: u64,
    pub folds: u64,
    pub merges: u64,
    pub shards: Vec<ShardStats>,
}

#[derive(Clone, Debug)]
pub struct ShardStats {
    pub shard: GlobalId,
    pub since: Timestamp,
    pub files: u64,
    /// Bytes and rows of its batch files; the log's tail is not in them.
    pub bytes: u64,
    pub rows: u64,
}
