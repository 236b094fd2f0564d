//! What the store knows in memory: shards, metadata, and the ticks that are in the log only.
//!
//! Everything here changes in two ways: a durable tick is applied (by an append or by recovery), and a fold or merge replaces what
//! was in the log or in several files by new files.

use crate::disk::Disk;
use crate::file::FileRef;
use crate::log::Segment;
use crate::meta::MetaChange;
use crate::shard::{Shard, TailData, TailEntry};
use crate::tick::TickRecord;
use repr::{GlobalId, SqlError, Timestamp};
use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A tick that is not folded yet, without its rows.
pub(crate) struct PendingTick {
    pub(crate) seq: u64,
    pub(crate) t: Timestamp,
    pub(crate) lease: Timestamp,
    pub(crate) meta: Vec<MetaChange>,
    pub(crate) drop: Vec<GlobalId>,
    /// Payload bytes in the log.
    pub(crate) bytes: u64,
}

#[derive(Default)]
pub(crate) struct State {
    /// Closed: all times below.
    pub(crate) upper: Timestamp,
    pub(crate) lease: Timestamp,
    pub(crate) kv: BTreeMap<Vec<u8>, Vec<u8>>,
    pub(crate) shards: BTreeMap<GlobalId, Shard>,
    /// Dropped, but still in a manifest: (tick that dropped it, shard).
    pub(crate) dropped: Vec<(u64, GlobalId, Shard)>,
    pub(crate) pending: VecDeque<PendingTick>,
    pub(crate) folded_seq: u64,
    pub(crate) folded_t: Timestamp,
    pub(crate) folded_lease: Timestamp,
    pub(crate) segments: Vec<Segment>,
    /// The segment that the log goes on writing; never freed.
    pub(crate) active: Option<PathBuf>,
    /// Payload bytes of pending ticks.
    pub(crate) pending_bytes: u64,
    /// Staged parts that no tick names yet.
    pub(crate) staged: BTreeMap<String, Arc<FileRef>>,
    /// Parts that the last tick named: readable until the next one, whatever is merged in between.
    pub(crate) named: BTreeMap<String, Arc<FileRef>>,
    pub(crate) folds: u64,
    pub(crate) merges: u64,
}

impl State {
    /// Makes a durable tick visible.
    pub(crate) fn apply(&mut self, seq: u64, tick: TickRecord, bytes: u64, disk: &Arc<dyn Disk>, shard_dir: &Path) -> Result<(), SqlError> {
        for (id, types) in tick.create {
            self.shards.insert(id, Shard::new(types, seq));
        }
        for (id, deltas) in tick.shards {
            if !deltas.is_empty() {
                self.shard_mut(id)?.tail.push(TailEntry { seq, t: tick.t, data: TailData::Deltas(deltas) });
            }
        }
        self.named.clear();
        for (id, meta) in tick.staged {
            let name = meta.name.clone();
            let known = self.staged.remove(&name);
            let file = known.map_or_else(|| FileRef::new(disk.clone(), shard_dir, id, meta), |f| f.at(tick.t));
            self.named.insert(name, file.clone());
            self.shard_mut(id)?.tail.push(TailEntry { seq, t: tick.t, data: TailData::Staged(file) });
        }
        for id in &tick.drop {
            if let Some(shard) = self.shards.remove(id) {
                self.dropped.push((seq, *id, shard));
            }
        }
        for (key, value) in &tick.meta {
            match value {
                Some(v) => self.kv.insert(key.clone(), v.clone()),
                None => self.kv.remove(key),
            };
        }
        self.pending.push_back(PendingTick { seq, t: tick.t, lease: tick.lease, meta: tick.meta, drop: tick.drop, bytes });
        self.pending_bytes += bytes;
        self.upper = self.upper.max(tick.t.saturating_add(1));
        self.lease = self.lease.max(tick.lease);
        Ok(())
    }

    fn shard_mut(&mut self, id: GlobalId) -> Result<&mut Shard, SqlError> {
        self.shards.get_mut(&id).ok_or_else(|| no_shard(id))
    }

    /// The shard, dropped or not.
    pub(crate) fn any_shard_mut(&mut self, id: GlobalId) -> Option<&mut Shard> {
        let dropped = self.dropped.iter_mut().find(|d| d.1 == id).map(|d| &mut d.2);
        self.shards.get_mut(&id).or(dropped)
    }

    /// The segment at `path` now ends with `seq`.
    pub(crate) fn note_segment(&mut self, path: &Path, last_seq: u64, bytes: u64) {
        self.active = Some(path.to_owned());
        match self.segments.last_mut().filter(|s| s.path == path) {
            Some(s) => (s.last_seq, s.bytes) = (last_seq, bytes),
            None => self.segments.push(Segment { path: PathBuf::from(path), last_seq, bytes }),
        }
    }
}

pub(crate) fn no_shard(id: GlobalId) -> SqlError {
    SqlError::internal(format!("shard {id} does not exist"))
}
