//! Folding the log into shards and metadata, and merging batches.
//!
//! ```text
//!   fold    batch files written, synced ─► directory synced ─► one metadata transaction, synced ─► memory switched ─► segments freed
//!   merge   one file from several, same order ─► memory switched ─► the old files go with their last reader
//! ```
//!
//! Both run in one thread at a time and never hold the state's lock while they read or write.

use crate::error::{io_error, DISK_FULL};
use crate::file::FileRef;
use crate::kill::kill_point;
use crate::merge::{merge_files, write_deltas, Target};
use crate::meta::MetaChange;
use crate::shard::{Folded, Shard, ShardBatch, TailData};
use crate::store::Shared;
use repr::{ColType, Deltas, GlobalId, SqlError, Timestamp};
use std::collections::BTreeMap;
use std::sync::Arc;

pub(crate) const KEY_FOLDED: &[u8] = b"f";
pub(crate) const KEY_MANIFEST: u8 = b'm';
pub(crate) const KEY_USER: u8 = b'k';

pub(crate) fn manifest_key(id: GlobalId) -> Vec<u8> {
    [&[KEY_MANIFEST], &id.0.to_be_bytes()[..]].concat()
}

pub(crate) fn user_key(key: &[u8]) -> Vec<u8> {
    [&[KEY_USER], key].concat()
}

/// Log that is folded at a time on a full disk.
const SCARCE_BYTES: u64 = 1 << 20;
/// What a transaction of the metadata store may need of the disk.
pub(crate) const META_BYTES: u64 = 256 << 10;

/// A shard that a fold changes.
struct Work {
    id: GlobalId,
    types: Arc<[ColType]>,
    since: Timestamp,
    deltas: Vec<(Timestamp, Arc<Deltas>)>,
    staged: Vec<Arc<FileRef>>,
    /// As it was when the fold began; its tail is not used.
    before: Shard,
}

/// New files of an operation that is not committed yet: they go if it fails.
#[derive(Default)]
struct Uncommitted(Vec<Arc<FileRef>>);

impl Uncommitted {
    fn keep(mut self) {
        self.0.clear();
    }
}

impl Drop for Uncommitted {
    fn drop(&mut self) {
        self.0.iter().for_each(|f| f.make_obsolete());
    }
}

impl Shared {
    /// Folds all ticks that are in the log now, so many at a time that their rows fit one batch in memory.
    /// Errors: the fold is given up and can be tried again, unless [`Shared::fatal`] is set.
    pub(crate) fn fold(&self) -> Result<(), SqlError> {
        let Some(last) = self.state.lock().pending.back().map(|p| p.seq) else {
            return Ok(());
        };
        let mut bytes_max = self.fold_bytes_max;
        while self.state.lock().folded_seq < last {
            match self.fold_part(bytes_max) {
                // What was dropped goes from the disk at the end.
                Err(e) if e.code == DISK_FULL && !self.state.lock().dropped.is_empty() && self.reserve.take(&*self.disk) => {}
                // Log segments go as soon as they are folded, which makes room for more.
                Err(e) if e.code == DISK_FULL && bytes_max > SCARCE_BYTES => bytes_max = SCARCE_BYTES,
                done => done?,
            }
        }
        Ok(())
    }

    fn fold_part(&self, bytes_max: u64) -> Result<(), SqlError> {
        let _one = self.folding.lock();
        let Some((seq, t, lease, mut changes, works)) = self.begin_fold(bytes_max) else {
            return Ok(());
        };
        let mut fresh = Uncommitted::default();
        let mut batches = Vec::new();
        for work in works {
            let (change, batch) = self.fold_shard(&work, t, &mut fresh)?;
            changes.push(change);
            batches.push((work.id, batch));
        }
        if !fresh.0.is_empty() {
            self.sync_shard_dir()?;
        }
        kill_point("fold-after-batches");
        let folded = Folded { seq, t, lease, next_file: self.next_file() };
        changes.push((KEY_FOLDED.to_vec(), Some(serde_json::to_vec(&folded).map_err(SqlError::internal)?)));
        self.meta_has_room()?;
        // From here on the files may be named, even if the commit reports an error.
        fresh.keep();
        self.commit_meta(&changes)?;
        kill_point("fold-after-meta");

        let freed = {
            let mut state = self.state.lock();
            for (id, batch) in batches {
                if let Some(shard) = state.any_shard_mut(id) {
                    shard.tail.retain(|e| e.seq > seq);
                    shard.batches.extend(batch);
                }
            }
            let (gone, left) = std::mem::take(&mut state.dropped).into_iter().partition(|d| d.0 <= seq);
            state.dropped = left;
            let gone: Vec<(u64, GlobalId, Shard)> = gone;
            gone.iter().flat_map(|d| d.2.files()).for_each(|f| f.make_obsolete());
            let folded = state.pending.iter().take_while(|p| p.seq <= seq).count();
            let bytes: u64 = state.pending.drain(..folded).map(|p| p.bytes).sum();
            state.pending_bytes -= bytes;
            (state.folded_seq, state.folded_t, state.folded_lease) = (seq, t, lease);
            state.folds += 1;
            let active = state.active.clone();
            let (free, keep) = std::mem::take(&mut state.segments).into_iter().partition(|s| s.last_seq <= seq && active.as_ref() != Some(&s.path));
            state.segments = keep;
            let free: Vec<crate::log::Segment> = free;
            (free, gone)
        };
        for segment in &freed.0 {
            if let Err(e) = self.disk.remove(&segment.path) {
                // Its records are folded: the next start removes it.
                tracing::debug!(file = %segment.path.display(), error = %e, "could not free a log segment");
            }
        }
        kill_point("fold-after-free");
        Ok(())
    }

    /// What to fold: through which tick, the metadata changes without manifests, the shards. `None`: no tick waits.
    #[allow(clippy::type_complexity)]
    fn begin_fold(&self, bytes_max: u64) -> Option<(u64, Timestamp, Timestamp, Vec<MetaChange>, Vec<Work>)> {
        let state = self.state.lock();
        let (mut seq, mut t, mut lease, mut bytes) = (0, 0, state.folded_lease, 0);
        let mut kv: BTreeMap<&[u8], Option<&Vec<u8>>> = BTreeMap::new();
        let mut changes: Vec<MetaChange> = Vec::new();
        for tick in &state.pending {
            bytes += tick.bytes;
            if seq > 0 && bytes > bytes_max {
                break;
            }
            (seq, t, lease) = (tick.seq, tick.t, lease.max(tick.lease));
            for (key, value) in &tick.meta {
                kv.insert(key, value.as_ref());
            }
            changes.extend(tick.drop.iter().map(|id| (manifest_key(*id), None)));
        }
        if seq == 0 {
            return None;
        }
        changes.extend(kv.into_iter().map(|(k, v)| (user_key(k), v.cloned())));
        let mut works = Vec::new();
        // What a later tick drops is still there at `t`: the ticks between, which stay in the log, may change it.
        let dropped_later = state.dropped.iter().filter(|d| d.0 > seq).map(|d| (&d.1, &d.2));
        for (id, shard) in state.shards.iter().chain(dropped_later) {
            let tail = || shard.tail.iter().take_while(|e| e.seq <= seq);
            let is_new = shard.created_seq > state.folded_seq && shard.created_seq <= seq;
            if tail().next().is_none() && !is_new {
                continue;
            }
            let (mut deltas, mut staged) = (Vec::new(), Vec::new());
            for entry in tail() {
                match &entry.data {
                    TailData::Deltas(d) => deltas.push((entry.t, d.clone())),
                    TailData::Staged(f) => staged.push(f.clone()),
                }
            }
            let before = Shard { tail: Vec::new(), ..shard.clone() };
            works.push(Work { id: *id, types: shard.types.clone(), since: shard.since.min(t), deltas, staged, before });
        }
        Some((seq, t, lease, changes, works))
    }

    /// Writes a shard's deltas as a batch. Its manifest, and the batch if the deltas do not cancel out.
    fn fold_shard(&self, work: &Work, t: Timestamp, fresh: &mut Uncommitted) -> Result<(MetaChange, Option<ShardBatch>), SqlError> {
        let mut files = work.staged.clone();
        if !work.deltas.is_empty() {
            let target = self.target(work.id, &work.types, work.since, false, "fold-before-sync");
            if let Some(file) = write_deltas(&target, self.new_name(work.id), &work.deltas)? {
                fresh.0.push(file.clone());
                files.push(file);
            }
        }
        let mut after = work.before.clone();
        let batch = (!files.is_empty()).then(|| {
            let lower = after.batches.last().map_or(0, |b| b.upper);
            ShardBatch { lower, upper: t + 1, since: work.since, files }
        });
        after.batches.extend(batch.clone());
        Ok((self.manifest_change(work.id, &after)?, batch))
    }

    fn manifest_change(&self, id: GlobalId, shard: &Shard) -> Result<MetaChange, SqlError> {
        Ok((manifest_key(id), Some(serde_json::to_vec(&shard.manifest()).map_err(SqlError::internal)?)))
    }

    pub(crate) fn target<'a>(&'a self, shard: GlobalId, types: &'a Arc<[ColType]>, since: Timestamp, staged: bool, kill: &'a str) -> Target<'a> {
        Target { disk: &self.disk, dir: &self.shard_dir, shard, types, staged, since, kill }
    }

    pub(crate) fn sync_shard_dir(&self) -> Result<(), SqlError> {
        self.disk.sync_dir(&self.shard_dir).map_err(|e| io_error("could not sync", &self.shard_dir, &e))
    }

    /// A full disk is told before it ends the process: the metadata store does not survive a write that fails.
    fn meta_has_room(&self) -> Result<(), SqlError> {
        match self.disk.free_bytes(&self.meta_dir) {
            Ok(free) if free < META_BYTES => Err(io_error("could not write", &self.meta_dir, &std::io::ErrorKind::StorageFull.into())),
            _ => Ok(()),
        }
    }

    /// A failure leaves open what is durable, so it is final.
    fn commit_meta(&self, changes: &[MetaChange]) -> Result<(), SqlError> {
        if let Some(e) = self.fatal.lock().clone() {
            return Err(e);
        }
        self.meta.commit(changes).map_err(|e| {
            let error = io_error("could not sync", &self.meta_dir, &e);
            *self.fatal.lock() = Some(error.clone());
            error
        })
    }

    /// Merges batches wherever that pays: see [`due`].
    pub(crate) fn merge_due(&self) -> Result<(), SqlError> {
        let _one = self.folding.lock();
        let ids: Vec<GlobalId> = self.state.lock().shards.keys().copied().collect();
        for id in ids {
            loop {
                let shard = self.state.lock().shards.get(&id).map(|s| Shard { tail: Vec::new(), ..s.clone() });
                match shard.and_then(|s| due(&s).map(|from| (s, from))) {
                    Some((shard, from)) => self.merge(id, shard, from)?,
                    None => break,
                }
            }
        }
        Ok(())
    }

    /// Replaces the batches from number `from` on by one.
    fn merge(&self, id: GlobalId, mut shard: Shard, from: usize) -> Result<(), SqlError> {
        let old = shard.batches.split_off(from);
        let (Some(first), Some(last)) = (old.first(), old.last()) else {
            return Ok(());
        };
        let since = shard.since.min(last.upper - 1).max(last.since);
        let files: Vec<Arc<FileRef>> = old.iter().flat_map(|b| &b.files).cloned().collect();
        let mut fresh = Uncommitted::default();
        let target = self.target(id, &shard.types, since, false, "compact-before-sync");
        if let Some(file) = merge_files(&target, &mut || self.new_name(id), &files)? {
            fresh.0.push(file);
            self.sync_shard_dir()?;
        }
        kill_point("compact-after-files");
        let merged = ShardBatch { lower: first.lower, upper: last.upper, since, files: fresh.0.clone() };
        shard.batches.push(merged);
        let change = self.manifest_change(id, &shard)?;
        self.meta_has_room()?;
        fresh.keep();
        self.commit_meta(&[change])?;
        kill_point("compact-after-meta");
        let mut state = self.state.lock();
        state.merges += 1;
        // A fold cannot have come in between, a drop can.
        if let Some(now) = state.any_shard_mut(id) {
            now.batches = shard.batches;
        }
        drop(state);
        files.iter().for_each(|f| f.make_obsolete());
        Ok(())
    }
}

/// Below this many rows garbage does no harm.
const GARBAGE_ROWS_MIN: u64 = 1000;

/// From which batch on the shard's batches should be merged into one.
///
/// - Sizes grow geometrically with age: a batch no larger than all younger ones together is merged with them. So a row is rewritten a
///   logarithmic number of times.
/// - When more than a third of the rows are changes that cancel out, and no reader needs the times that keep them apart, all are.
fn due(shard: &Shard) -> Option<usize> {
    let batches = &shard.batches;
    let last = batches.last()?;
    let rows: u64 = batches.iter().map(ShardBatch::rows).sum();
    let sum: i128 = batches.iter().map(ShardBatch::sum).sum();
    let garbage = i128::from(rows) - sum;
    let is_fresh = batches.len() > 1 || last.files.len() > 1 || last.since < last.time_max();
    if rows >= GARBAGE_ROWS_MIN && garbage * 3 > i128::from(rows) && shard.since >= last.time_max() && is_fresh {
        return Some(0);
    }
    let mut younger = 0;
    let mut from = None;
    for (i, batch) in batches.iter().enumerate().rev() {
        if i + 1 < batches.len() && batch.bytes() <= younger {
            from = Some(i);
        }
        younger += batch.bytes();
    }
    from
}
