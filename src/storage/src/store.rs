//! The store that the committer owns: the tick log in front, memory, and folding behind.
//!
//! ```text
//!   append ─► log record, synced ─► memory (shards' tails, metadata) ─┬─► snapshot: files + tail, at a time
//!                                                                     └─► fold (own thread) ─► files, metadata store
//! ```
//!
//! Not here: the steps of a fold (`fold`), recovery (`recover`).

use crate::disk::Disk;
use crate::error::{io_error, DISK_FULL};
use crate::file::FileRef;
use crate::log::{AppendError, LogWriter};
use crate::merge::write_deltas;
use crate::meta::Meta;
use crate::recover;
use crate::reserve::Reserve;
use crate::snapshot::Snapshot;
use crate::state::{no_shard, State};
use crate::tick::TickRecord;
use parking_lot::Mutex;
use repr::column::physical;
use repr::error::state;
use repr::{ColType, Deltas, GlobalId, SqlError, Timestamp};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, SyncSender};
use std::sync::Arc;
use std::time::Duration;

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

/// Small ticks cost more memory than log: so many are folded, whatever their bytes.
const FOLD_TICKS: usize = 16_384;
/// So many times the fold size is folded at once when folding is behind.
const FOLD_FACTOR: u64 = 4;
/// When the log is this many times beyond the fold size, appends slow down to let folding catch up.
const THROTTLE_FACTOR: u64 = 8;
const THROTTLE: Duration = Duration::from_millis(20);
/// How often merges are considered without a fold, since `since` moves on.
const MERGE_PERIOD: Duration = Duration::from_secs(5);

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

/// What committer, readers and the folding thread share.
pub(crate) struct Shared {
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) shard_dir: PathBuf,
    pub(crate) meta_dir: PathBuf,
    pub(crate) temp_dir: PathBuf,
    pub(crate) meta: Box<dyn Meta>,
    pub(crate) state: Mutex<State>,
    /// Held by the one who folds or merges.
    pub(crate) folding: Mutex<()>,
    pub(crate) fatal: Mutex<Option<SqlError>>,
    pub(crate) reserve: Reserve,
    pub(crate) file_number: AtomicU64,
    /// Log that is folded at a time, unless one tick has more: its rows are sorted in memory.
    pub(crate) fold_bytes_max: u64,
}

impl Shared {
    pub(crate) fn next_file(&self) -> u64 {
        self.file_number.load(Ordering::Relaxed)
    }

    pub(crate) fn new_name(&self, shard: GlobalId) -> String {
        format!("{shard}-{:08x}.arrow", self.file_number.fetch_add(1, Ordering::Relaxed))
    }

    fn snapshot(&self, shard: GlobalId, as_of: Timestamp) -> Result<Snapshot, SqlError> {
        let state = self.state.lock();
        let s = state.shards.get(&shard).ok_or_else(|| no_shard(shard))?;
        if as_of < s.since || as_of >= state.upper {
            let message = format!("timestamp {as_of} is not valid for {shard}");
            let detail = match state.upper.checked_sub(1).filter(|last| s.since <= *last) {
                Some(last) => format!("It can be read at timestamps from {} to {last}.", s.since),
                None => "It cannot be read yet.".to_owned(),
            };
            return Err(SqlError::new(state::DATA_EXCEPTION, message).with_detail(detail));
        }
        Ok(Snapshot::of(s, as_of))
    }

    fn changes(&self, shard: GlobalId, after: Timestamp) -> Result<Vec<(Timestamp, Deltas)>, SqlError> {
        let s = {
            let state = self.state.lock();
            let s = state.shards.get(&shard).ok_or_else(|| no_shard(shard))?;
            if after < s.since {
                return Err(SqlError::new(repr::error::state::DATA_EXCEPTION, format!("changes of {shard} after {after} are not kept any more"))
                    .with_detail(format!("They are kept from {} on.", s.since)));
            }
            s.clone()
        };
        crate::history::changes(&s, after)
    }

    fn types(&self, shard: GlobalId) -> Result<Arc<[ColType]>, SqlError> {
        self.state.lock().shards.get(&shard).map(|s| s.types.clone()).ok_or_else(|| no_shard(shard))
    }

    fn stage(&self, shard: GlobalId, part: &Deltas) -> Result<String, SqlError> {
        self.stage_as(shard, &self.types(shard)?, part)
    }

    fn stage_as(&self, shard: GlobalId, types: &Arc<[ColType]>, part: &Deltas) -> Result<String, SqlError> {
        check_deltas(shard, types, part)?;
        let target = self.target(shard, types, 0, true, "stage-before-sync");
        let name = self.new_name(shard);
        let Some(file) = write_deltas(&target, name.clone(), &[(0, Arc::new(part.clone()))])? else {
            return Ok(name + NO_ROWS);
        };
        if let Err(e) = self.sync_shard_dir() {
            file.make_obsolete();
            return Err(e);
        }
        self.state.lock().staged.insert(name.clone(), file);
        crate::kill::kill_point("stage-after-sync");
        Ok(name)
    }

    fn unstage(&self, files: &[String]) {
        if self.fatal.lock().is_some() {
            // The tick that failed may have named them, and be durable.
            return;
        }
        let mut state = self.state.lock();
        let gone: Vec<Arc<FileRef>> = files.iter().filter_map(|f| state.staged.remove(f)).collect();
        drop(state);
        gone.iter().for_each(|f| f.make_obsolete());
    }

    fn staged(&self, unit: &StagedUnit) -> Result<Snapshot, SqlError> {
        self.parts(unit, self.types(unit.shard)?)
    }

    fn parts(&self, unit: &StagedUnit, types: Arc<[ColType]>) -> Result<Snapshot, SqlError> {
        let state = self.state.lock();
        let mut files = Vec::new();
        for name in unit.files.iter().filter(|f| !f.ends_with(NO_ROWS)) {
            let file = state.staged.get(name).or_else(|| state.named.get(name));
            files.push(file.cloned().ok_or_else(|| no_part(name))?);
        }
        Ok(Snapshot::new(types, Timestamp::MAX, files, Vec::new()))
    }

    fn stats(&self) -> StoreStats {
        let state = self.state.lock();
        let shards = state.shards.iter().map(|(id, s)| ShardStats {
            shard: *id,
            since: s.since,
            files: s.files().count() as u64,
            bytes: s.files().map(|f| f.meta.bytes).sum(),
            rows: s.files().map(|f| f.meta.rows).sum(),
        });
        StoreStats {
            log_bytes: state.segments.iter().map(|s| s.bytes).sum(),
            log_ticks: state.pending.len() as u64,
            folds: state.folds,
            merges: state.merges,
            shards: shards.collect(),
        }
    }
}

/// The durable state of one process. One writer: the committer.
pub struct Store {
    shared: Arc<Shared>,
    log: LogWriter,
    options: StoreOptions,
    worker: Option<Worker>,
    /// The data directory's lock; goes last.
    _lock: Box<dyn Send + Sync>,
}

struct Worker {
    wake: SyncSender<()>,
    thread: std::thread::JoinHandle<()>,
}

impl Store {
    /// Opens or creates the data directory, recovers.
    /// Errors: a second process holds the directory's lock; a referenced file is missing or damaged (names file, offset and shard).
    pub fn open(disk: Arc<dyn Disk>, dir: &Path, options: StoreOptions) -> Result<Store, SqlError> {
        let recover::Recovered { shared, log, lock } = recover::open(disk, dir, options.fold_bytes.saturating_mul(FOLD_FACTOR))?;
        let shared = Arc::new(shared);
        let mut store = Store { shared, log, options, worker: None, _lock: lock };
        if store.options.background {
            store.worker = Some(Worker::start(store.shared.clone())?);
            store.trigger_fold();
        }
        Ok(store)
    }

    /// All times below this are closed.
    pub fn upper(&self) -> Timestamp {
        self.shared.state.lock().upper
    }

    pub fn lease(&self) -> Timestamp {
        self.shared.state.lock().lease
    }

    /// Closes time through `t` without writing: nothing changed until then. `t` must not pass the durable lease.
    /// After `open` time is closed through the lease.
    pub fn close_through(&mut self, t: Timestamp) {
        let mut state = self.shared.state.lock();
        state.upper = state.upper.max(t.saturating_add(1));
    }

    /// All metadata entries whose key starts with `prefix`, in key order.
    pub fn meta_scan(&self, prefix: &[u8]) -> Vec<(Vec<u8>, Vec<u8>)> {
        let state = self.shared.state.lock();
        state.kv.range(prefix.to_vec()..).take_while(|(k, _)| k.starts_with(prefix)).map(|(k, v)| (k.clone(), v.clone())).collect()
    }

    pub fn meta_get(&self, key: &[u8]) -> Option<Vec<u8>> {
        self.shared.state.lock().kv.get(key).cloned()
    }

    /// All shards with their column types.
    pub fn shards(&self) -> Vec<(GlobalId, Arc<[ColType]>)> {
        self.shared.state.lock().shards.iter().map(|(id, s)| (*id, s.types.clone())).collect()
    }

    /// A handle for other threads: reading and staging while the committer appends.
    pub fn handle(&self) -> StoreHandle {
        StoreHandle { shared: self.shared.clone() }
    }

    /// How long the sync of the last tick took.
    pub fn last_sync(&self) -> Duration {
        self.log.last_sync()
    }

    /// Set once a sync of log or metadata failed: nothing may be acknowledged any more, the process must exit with this message.
    pub fn fatal(&self) -> Option<SqlError> {
        self.shared.fatal.lock().clone()
    }

    /// Makes a tick durable: returns after its fdatasync. On error nothing of it is visible, now or after a restart; if [`Store::fatal`]
    /// is set then, that is not known, and the process must exit without acknowledging anything.
    ///
    /// A tick that frees space finds room on a full disk: what is set aside for that ([`Reserve`]).
    ///
    /// Errors: 53100 or 58030 from the disk; XX000 for a tick that is not well formed (time not beyond all closed ones, unknown
    /// shard or part, columns of other types); 54000 for one that is too large and should have been staged.
    pub fn append(&mut self, tick: Tick) -> Result<(), SqlError> {
        if let Some(e) = self.fatal() {
            return Err(e);
        }
        let record = self.record(tick)?;
        let payload = {
            let state = self.shared.state.lock();
            record.encode(&|id| state.shards.get(&id).map(|s| s.types.clone()))?
        };
        let frees = !record.drop.is_empty() || record.meta.iter().any(|m| m.1.is_none());
        let (disk, reserve) = (&*self.shared.disk, &self.shared.reserve);
        if !frees && reserve.is_taken() {
            self.trigger_fold();
            return Err(SqlError::new(DISK_FULL, "the disk is full: what was dropped is being removed").with_hint("try again, or drop more"));
        }
        let seq = self.log.next_seq();
        let mut appended = self.log.append(&payload);
        let is_full = matches!(&appended, Err(AppendError::Abandoned(e)) if e.code == DISK_FULL);
        if is_full && frees && reserve.take(disk) {
            appended = self.log.append(&payload);
        }
        if is_full {
            // What was dropped before may be on the disk still.
            self.trigger_fold();
        }
        appended.map_err(|e| match e {
            AppendError::Abandoned(e) => e,
            AppendError::Fatal(e) => {
                *self.shared.fatal.lock() = Some(e.clone());
                e
            }
        })?;
        let bytes = payload.len() as u64;
        let (fold, behind) = {
            let mut state = self.shared.state.lock();
            if let Some(path) = self.log.segment_path() {
                state.note_segment(path, seq, self.log.segment_bytes());
            }
            state.apply(seq, record, bytes, &self.shared.disk, &self.shared.shard_dir)?;
            let fold = is_full || state.pending_bytes >= self.options.fold_bytes || state.pending.len() >= FOLD_TICKS;
            if fold || self.log.segment_bytes() >= self.options.segment_bytes {
                self.log.rotate();
                state.active = None;
            }
            (fold, state.pending_bytes / self.options.fold_bytes.max(1) >= THROTTLE_FACTOR)
        };
        if fold {
            self.trigger_fold();
            if behind && self.worker.is_some() {
                std::thread::sleep(THROTTLE);
            }
        }
        Ok(())
    }

    /// Notes that all that was appended so far is durable, so that damage to it can be told from an append that a crash cut. Call it when the
    /// log has been quiet for a moment, and at the end. Costs no sync.
    pub fn seal(&mut self) {
        self.log.seal();
    }

    /// Checks a tick and looks its staged parts up.
    fn record(&self, tick: Tick) -> Result<TickRecord, SqlError> {
        let state = self.shared.state.lock();
        if tick.t < state.upper {
            return Err(SqlError::internal(format!("tick at {} although time is closed through {}", tick.t, state.upper - 1)));
        }
        let mut record = TickRecord { t: tick.t, lease: tick.lease, drop: tick.drop, meta: tick.meta, ..TickRecord::default() };
        for (id, types) in tick.create {
            if state.shards.contains_key(&id) {
                return Err(SqlError::internal(format!("shard {id} exists already")));
            }
            record.create.push((id, types.into()));
        }
        let types_of = |id: GlobalId| {
            let new = record.create.iter().find(|c| c.0 == id).map(|c| &c.1);
            new.or_else(|| state.shards.get(&id).map(|s| &s.types)).ok_or_else(|| no_shard(id))
        };
        for (id, deltas) in tick.shards {
            check_deltas(id, types_of(id)?, &deltas)?;
            record.shards.push((id, Arc::new(deltas)));
        }
        for unit in tick.staged {
            types_of(unit.shard)?;
            for name in unit.files.iter().filter(|f| !f.ends_with(NO_ROWS)) {
                let file = state.staged.get(name).ok_or_else(|| no_part(name))?;
                if file.shard != unit.shard {
                    return Err(SqlError::internal(format!("part {name} was staged for {}, not for {}", file.shard, unit.shard)));
                }
                record.staged.push((unit.shard, file.at(tick.t).meta.clone()));
            }
        }
        Ok(record)
    }

    fn trigger_fold(&self) {
        if let Some(worker) = &self.worker {
            // Full: it will wake anyway.
            let _ = worker.wake.try_send(());
        }
    }

    /// Writes and syncs a part of a large unit; name the result in a later tick.
    pub fn stage(&self, shard: GlobalId, part: &Deltas) -> Result<String, SqlError> {
        self.shared.stage(shard, part)
    }

    /// Removes parts that no tick will name any more.
    pub fn unstage(&self, files: &[String]) {
        self.shared.unstage(files);
    }

    /// The rows of a staged unit, before the tick that names it or after it and before the next one (to hand them to dataflows without
    /// holding them in memory). Errors: a part is not known.
    pub fn staged(&self, unit: &StagedUnit) -> Result<Snapshot, SqlError> {
        self.shared.staged(unit)
    }

    /// The shard's content at `as_of`, to be read from any thread while appends go on.
    /// Errors: 22000 if `as_of` is outside `[since, upper)`.
    pub fn snapshot(&self, shard: GlobalId, as_of: Timestamp) -> Result<Snapshot, SqlError> {
        self.shared.snapshot(shard, as_of)
    }

    /// The first time at which the shard can be read; `None` if there is no such shard.
    pub fn since(&self, shard: GlobalId) -> Option<Timestamp> {
        self.shared.state.lock().shards.get(&shard).map(|s| s.since)
    }

    /// The shard's changes with times beyond `after`, in order of time.
    /// Errors: 22000 if `after` is below `since`; a file that is gone or damaged.
    pub fn changes(&self, shard: GlobalId, after: Timestamp) -> Result<Vec<(Timestamp, Deltas)>, SqlError> {
        self.shared.changes(shard, after)
    }

    /// Reads below `since` are no longer needed: compaction may advance times to it.
    pub fn allow_compaction(&mut self, shard: GlobalId, since: Timestamp) {
        if let Some(s) = self.shared.state.lock().shards.get_mut(&shard) {
            s.since = s.since.max(since);
        }
    }

    /// Folds the log as it stands and merges what is due, in the caller's thread.
    pub fn fold(&self) -> Result<(), SqlError> {
        self.shared.fold()?;
        self.shared.merge_due()
    }

    pub fn stats(&self) -> StoreStats {
        self.shared.stats()
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        if let Some(Worker { wake, thread }) = self.worker.take() {
            drop(wake);
            // A fold in progress ends first; nothing is lost by not folding more.
            let _ = thread.join();
        }
    }
}

impl Worker {
    fn start(shared: Arc<Shared>) -> Result<Worker, SqlError> {
        let (wake, woken) = std::sync::mpsc::sync_channel(1);
        let run = move || loop {
            shared.reserve.fill(&*shared.disk);
            let done = match woken.recv_timeout(MERGE_PERIOD) {
                Ok(()) => unless_panicked(|| shared.fold().and_then(|()| shared.merge_due())),
                Err(RecvTimeoutError::Timeout) => unless_panicked(|| shared.merge_due()),
                Err(RecvTimeoutError::Disconnected) => return,
            };
            if let Err(e) = done {
                if shared.fatal.lock().is_some() {
                    tracing::error!(error = %e, "the store cannot go on");
                    return;
                }
                // The log keeps everything; the next wake-up tries again.
                tracing::error!(error = %e, code = e.code.as_str(), "folding or merging failed and will be tried again");
                std::thread::sleep(Duration::from_secs(1));
            }
        };
        let thread = std::thread::Builder::new().name("storage-fold".into()).spawn(run);
        let thread = thread.map_err(|e| io_error("could not start the folding thread", Path::new(""), &e))?;
        Ok(Worker { wake, thread })
    }
}

/// A log that is never folded again would fill the disk in silence.
fn unless_panicked(work: impl FnOnce() -> Result<(), SqlError>) -> Result<(), SqlError> {
    let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
    done.unwrap_or_else(|_| Err(SqlError::internal("the folding thread panicked")))
}

/// What the name of a part ends with whose rows cancel out: it has no file.
const NO_ROWS: &str = ".none";

fn no_part(name: &str) -> SqlError {
    SqlError::internal(format!("part {name} is not staged"))
}

fn check_deltas(id: GlobalId, types: &[ColType], deltas: &Deltas) -> Result<(), SqlError> {
    let rows = &deltas.rows;
    let fits = rows.cols.len() == types.len()
        && deltas.diffs.len() == rows.len
        && rows.cols.iter().zip(types).all(|(c, t)| c.len() == rows.len && *c.data_type() == physical(&t.ty));
    if fits || (rows.len == 0 && rows.cols.is_empty()) {
        Ok(())
    } else {
        Err(SqlError::internal(format!("changes of shard {id} have other columns than the shard")))
    }
}

/// Reads and stages from any thread, and puts aside; usable as long as the store is open.
#[derive(Clone)]
pub struct StoreHandle {
    shared: Arc<Shared>,
}

impl StoreHandle {
    pub(crate) fn shared(&self) -> &Shared {
        &self.shared
    }
    /// As [`Store::snapshot`].
    pub fn snapshot(&self, shard: GlobalId, as_of: Timestamp) -> Result<Snapshot, SqlError> {
        self.shared.snapshot(shard, as_of)
    }
    /// As [`Store::stage`].
    pub fn stage(&self, shard: GlobalId, part: &Deltas) -> Result<String, SqlError> {
        self.shared.stage(shard, part)
    }
    /// As [`Store::stage`], for a shard that the tick that names the part may be the first to know. Errors: also XX000 for other columns.
    pub fn stage_as(&self, shard: GlobalId, types: &[ColType], part: &Deltas) -> Result<String, SqlError> {
        self.shared.stage_as(shard, &types.into(), part)
    }
    /// As [`Store::unstage`].
    pub fn unstage(&self, files: &[String]) {
        self.shared.unstage(files);
    }
    /// The rows of parts that no tick has named yet, whether their shard is there or not. Errors: a part is not known.
    pub fn unnamed(&self, unit: &StagedUnit, types: &[ColType]) -> Result<Snapshot, SqlError> {
        self.shared.parts(unit, types.into())
    }
    /// As [`Store::staged`].
    pub fn staged(&self, unit: &StagedUnit) -> Result<Snapshot, SqlError> {
        self.shared.staged(unit)
    }
    /// As [`Store::upper`].
    pub fn upper(&self) -> Timestamp {
        self.shared.state.lock().upper
    }
    /// As [`Store::stats`].
    pub fn stats(&self) -> StoreStats {
        self.shared.stats()
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
