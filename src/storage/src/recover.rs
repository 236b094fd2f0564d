//! Opening a data directory: lock, format, metadata, the log's tail, and what nothing names removed.
//!
//! ```text
//!   LOCK      pid of the process that holds it           log/     tick log segments
//!   FORMAT    "riverdelta data directory, format 1"      shards/  batch files
//!   temp/     what queries put aside, emptied            meta/    metadata store
//! ```

use crate::disk::{Disk, Lock};
use crate::error::{damaged, in_use, io_error};
use crate::file::FileRef;
use crate::fold::{manifest_key, KEY_FOLDED, KEY_MANIFEST, KEY_USER, META_BYTES};
use crate::log::{self, LogWriter};
use crate::reserve::Reserve;
use crate::shard::{Folded, Manifest, Shard, ShardBatch, MANIFEST_VERSION};
use crate::state::State;
use crate::store::Shared;
use crate::tick::TickRecord;
use parking_lot::Mutex;
use repr::{GlobalId, SqlError};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::AtomicU64;
use std::sync::Arc;

pub(crate) const FORMAT: u32 = 1;
const FORMAT_PREFIX: &str = "riverdelta data directory, format ";

pub(crate) struct Recovered {
    pub(crate) shared: Shared,
    pub(crate) log: LogWriter,
    pub(crate) lock: Box<dyn Send + Sync>,
}

pub(crate) fn open(disk: Arc<dyn Disk>, dir: &Path, fold_bytes_max: u64) -> Result<Recovered, SqlError> {
    let (log_dir, shard_dir, meta_dir, temp_dir) = (dir.join("log"), dir.join("shards"), dir.join("meta"), dir.join("temp"));
    disk.create_dir(dir).map_err(|e| io_error("could not create", dir, &e))?;
    let lock_path = dir.join("LOCK");
    let lock = match disk.lock(&lock_path, &std::process::id().to_string()).map_err(|e| io_error("could not lock", &lock_path, &e))? {
        Lock::Held(lock) => lock,
        Lock::Busy(holder) => return Err(in_use(dir, &holder)),
    };
    check_format(&*disk, dir)?;
    let made = [&log_dir, &shard_dir, &temp_dir].into_iter().try_for_each(|d| disk.create_dir(d)).and_then(|()| disk.sync_dir(dir));
    made.map_err(|e| io_error("could not create", dir, &e))?;
    crate::scratch::clear(&*disk, &temp_dir)?;

    let reserve = Reserve::new(&*disk, dir);
    if disk.free_bytes(&meta_dir).is_ok_and(|free| free < META_BYTES) {
        // The metadata store writes when it is opened, though little.
        reserve.take(&*disk);
    }
    let meta = disk.clone().open_meta(&meta_dir).map_err(|e| io_error("could not open", &meta_dir, &e))?;
    let entries = meta.load().map_err(|e| io_error("could not read", &meta_dir, &e))?;
    let mut state = State::default();
    let mut folded = Folded::default();
    for (key, value) in entries {
        match key.split_first() {
            Some((&KEY_USER, user)) => {
                state.kv.insert(user.to_vec(), value);
            }
            Some((&KEY_MANIFEST, _)) => {
                let (id, shard) = load_shard(&disk, &shard_dir, &meta_dir, &key, &value)?;
                state.shards.insert(id, shard);
            }
            _ if key == KEY_FOLDED => {
                folded = serde_json::from_slice(&value).map_err(|e| damaged(&meta_dir, 0, None, &e.to_string()))?;
            }
            _ => return Err(damaged(&meta_dir, 0, None, &format!("unknown metadata key {key:?}"))),
        }
    }
    (state.folded_seq, state.folded_t, state.folded_lease) = (folded.seq, folded.t, folded.lease);
    state.lease = folded.lease;
    if folded.seq > 0 {
        state.upper = folded.t + 1;
    }

    let replayed = log::replay(&*disk, &log_dir, folded.seq, |seq, payload, path, offset| {
        let tick = TickRecord::decode(payload, &|id| state.shards.get(&id).map(|s| s.types.clone()));
        let tick = tick.map_err(|why| damaged(path, offset, None, &why))?;
        state.apply(seq, tick, payload.len() as u64, &disk, &shard_dir)
    })?;
    state.segments = replayed.segments;
    state.named.clear();
    if replayed.next_seq > 1 {
        state.upper = state.upper.max(state.lease.saturating_add(1));
    }

    let dropped = state.dropped.iter().map(|d| &d.2);
    let mut named = BTreeSet::new();
    for shard in state.shards.values().chain(dropped) {
        for file in shard.files() {
            file.check(&shard.types)?;
            named.insert(file.meta.name.clone());
        }
    }
    let mut next_file = folded.next_file;
    let mut unnamed = replayed.stale;
    for name in disk.list(&shard_dir).map_err(|e| io_error("could not read", &shard_dir, &e))? {
        let number = name.strip_suffix(".arrow").and_then(|n| n.rsplit_once('-')).and_then(|n| u64::from_str_radix(n.1, 16).ok());
        next_file = next_file.max(number.map_or(0, |n| n + 1));
        if !named.contains(&name) {
            unnamed.push(shard_dir.join(&name));
        }
    }
    if !unnamed.is_empty() {
        // What was read may be in the page cache only, if the process died while it committed: a power cut would bring back metadata
        // that name what is removed here.
        meta.commit(&[]).map_err(|e| io_error("could not sync", &meta_dir, &e))?;
    }
    for path in &unnamed {
        remove(&*disk, path)?;
    }

    let log = LogWriter::new(disk.clone(), log_dir, replayed.last_number, replayed.next_seq);
    reserve.put_back(&*disk);
    let shared = Shared {
        reserve,
        disk,
        shard_dir,
        meta_dir,
        temp_dir,
        meta,
        state: Mutex::new(state),
        folding: Mutex::new(()),
        fatal: Mutex::new(None),
        file_number: AtomicU64::new(next_file),
        fold_bytes_max,
    };
    Ok(Recovered { shared, log, lock })
}

fn remove(disk: &dyn Disk, path: &Path) -> Result<(), SqlError> {
    tracing::debug!(file = %path.display(), "removing a file that nothing names");
    disk.remove(path).map_err(|e| io_error("could not remove", path, &e))
}

/// Writes the format file into a new directory, checks it in an old one.
fn check_format(disk: &dyn Disk, dir: &Path) -> Result<(), SqlError> {
    let path = dir.join("FORMAT");
    let cannot_read = |e| io_error("could not read", &path, &e);
    if !disk.exists(&path).map_err(cannot_read)? {
        let others = disk.list(dir).map_err(cannot_read)?;
        if let Some(other) = others.iter().find(|n| !["LOCK", "FORMAT.tmp", "lost+found"].contains(&n.as_str())) {
            let m = format!("\"{}\" is no data directory of riverdelta: it holds \"{other}\", but no file FORMAT", dir.display());
            return Err(SqlError::new(repr::error::state::DATA_CORRUPTED, m).with_hint("name an empty directory"));
        }
        let text = format!("{FORMAT_PREFIX}{FORMAT}\n");
        return disk.write(&path, text.as_bytes()).map_err(|e| io_error("could not write", &path, &e));
    }
    let bytes = disk.read(&path).map_err(cannot_read)?;
    let text = String::from_utf8_lossy(&bytes);
    let version = text.trim_end().strip_prefix(FORMAT_PREFIX).and_then(|v| v.parse::<u32>().ok());
    match version {
        Some(FORMAT) => Ok(()),
        Some(other) => {
            let m = format!("data directory \"{}\" has format {other}, this version reads format {FORMAT}", dir.display());
            Err(SqlError::new(repr::error::state::DATA_CORRUPTED, m).with_hint("use the version of riverdelta that wrote it"))
        }
        None => Err(damaged(&path, 0, None, "it does not name a format")),
    }
}

fn load_shard(disk: &Arc<dyn Disk>, shard_dir: &Path, meta_dir: &Path, key: &[u8], value: &[u8]) -> Result<(GlobalId, Shard), SqlError> {
    let bad = |why: &str| damaged(meta_dir, 0, None, &format!("manifest {key:?}: {why}"));
    let id = key[1..].try_into().map(|b| GlobalId(u64::from_be_bytes(b))).map_err(|_| bad("not a shard"))?;
    debug_assert_eq!(manifest_key(id), key);
    let manifest: Manifest = serde_json::from_slice(value).map_err(|e| bad(&e.to_string()))?;
    if manifest.version != MANIFEST_VERSION {
        return Err(bad(&format!("version {} is not known to this version, which reads {MANIFEST_VERSION}", manifest.version)));
    }
    let mut shard = Shard::new(manifest.types.into(), 0);
    let mut upper = 0;
    for b in manifest.batches {
        if b.lower != upper || b.upper <= b.lower {
            return Err(bad(&format!("batch [{}, {}) does not abut at {upper}", b.lower, b.upper)));
        }
        upper = b.upper;
        shard.since = shard.since.max(b.since);
        let files = b.files.into_iter().map(|meta| FileRef::new(disk.clone(), shard_dir, id, meta)).collect();
        shard.batches.push(ShardBatch { lower: b.lower, upper: b.upper, since: b.since, files });
    }
    Ok((id, shard))
}
