//! The coordinator: one thread that orders everything.
//!
//! ```text
//!   sessions ──Request──┐                       ┌──► Store::append (one fdatasync)     the linearization point
//!   sources ──Staged────┼──► handle ──► tick ───┼──► Cluster::send(Tick)
//!   workers ──Frontier──┘                       └──► answers to writers, acknowledgements to sources
//! ```
//!
//! Promise: times that ticks carry increase; a read is given a time that covers every tick acknowledged before it; what
//! is answered as committed is durable. Peek and subscribe data do not pass through here: the router hands them to the sessions.
//!
//! Not here: SQL (sessions plan), files (`storage`), rendering (`dataflow`).

/// Starting from a data directory.
pub mod boot;
/// Ticks: validation of writes, durability, distribution.
mod committer;
/// Catalog changes and what they start and stop.
pub(crate) mod ddl;
/// What the coordinator acts on.
mod edges;
/// Foreign keys.
pub mod foreign;
/// The process's memory.
pub mod guard;
/// Primary keys of tables.
pub(crate) mod keys;
/// Read times, peeks, subscribes.
mod reads;
/// Requests and answers.
pub mod request;
/// From workers to sessions.
pub mod router;
/// Running sources.
pub(crate) mod sources;
/// Keys that were changed lately.
mod touched;

/// The coordinator, the committer and the store through crashes, under a seed.
#[cfg(test)]
mod sim;

use crate::catalog::{Catalog, Item, ItemKind};
use crate::planner::Planner;
use crossbeam_channel::{Receiver, RecvTimeoutError};
use dataflow::Command;
use edges::Engine;
pub use edges::{Clock, SystemClock};
use expr::Interrupt;
use parking_lot::RwLock;
use repr::{GlobalId, SqlError, Timestamp};
use request::{Event, Request};
use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::Ordering;
use std::sync::Arc;
use std::time::{Duration, Instant};
use storage::Store;

/// How long history stays readable: `AS OF` reaches back this far.
pub const RETAIN_MS: u64 = 60_000;
/// How far back views hydrate at a restart, so that subscribers can go on where they stopped: every tick since is run again, so not the whole retention.
pub const REPLAY_MS: u64 = 15_000;
/// The lease is this far ahead: recovery closes time through it before the first read.
const LEASE_MS: u64 = 1_000;
/// So far ticks may run ahead of the clock before they are paced.
const AHEAD_MS_MAX: u64 = 100;
/// How long one tick waits then.
const PACE: Duration = Duration::from_millis(2);
/// How often compaction, lazy frontiers and temporal filters are looked after.
const UPKEEP: Duration = Duration::from_millis(1_000);

/// Ticks have even times, and so have changes that come with time itself (`dataflow` rounds them up). A subscription's progress, the first
/// time that is still open, is odd then: a reader may come back `AS OF` its last progress or one before it, and misses nothing either way.
fn even(t: Timestamp) -> Timestamp {
    t & !1
}

/// An arrangement that others may read: the default one of a materialized view, or an index.
pub(crate) struct IndexState {
    /// The relation whose rows it holds.
    pub on: GlobalId,
    pub key: Vec<expr::Scalar>,
    pub since: Timestamp,
    /// Complete below this.
    pub upper: Timestamp,
    pub records: u64,
    pub bytes: u64,
    pub as_of: Timestamp,
    pub created: Instant,
    pub hydrated: Option<Duration>,
    /// Ends what the workers compute of it when it is dropped: of a materialized view, whose dependants go with it.
    pub interrupt: Option<Interrupt>,
}

pub struct Coordinator {
    store: Store,
    cluster: Box<dyn Engine>,
    clock: Box<dyn Clock>,
    fatal: fn(&str) -> !,
    /// The catalog that sessions plan on; replaced by DDL.
    catalog: Arc<RwLock<Arc<Catalog>>>,
    planner: Arc<Planner>,
    router: Arc<router::Router>,
    /// The last time handed to the workers as closed. A read at it sees every committed tick.
    closed: Timestamp,
    /// Durable promise not to have given out times beyond it.
    lease: Timestamp,
    indexes: BTreeMap<GlobalId, IndexState>,
    keys: keys::Keys,
    /// Per shard, the time of its last change.
    last_write: HashMap<GlobalId, Timestamp>,
    touched: touched::LastTouched,
    changes: ddl::LastChanged,
    pending: committer::Pending,
    holds: BTreeMap<Timestamp, usize>,
    reads: reads::Reads,
    /// Views that were stopped, each with the error that its readers get.
    stopped: BTreeMap<GlobalId, SqlError>,
    sources: sources::Sources,
    /// Views are created and the ticks since their `as_of` sent.
    hydrated: bool,
    shared: Arc<crate::Shared>,
    /// Answered once everything has stopped.
    stopping: Option<tokio::sync::oneshot::Sender<()>>,
}

impl Coordinator {
    pub(crate) fn catalog(&self) -> Arc<Catalog> {
        self.catalog.read().clone()
    }

    /// Runs until shut down. A fatal storage error ends the process: nobody is acknowledged, recovery decides by checksum.
    pub fn run(mut self, events: Receiver<Event>) {
        self.start_all_sources();
        let mut last_upkeep = Instant::now();
        loop {
            let mut wait = UPKEEP.saturating_sub(last_upkeep.elapsed());
            if let Some(t) = self.reads.awaited() {
                wait = wait.min(Duration::from_millis(t.saturating_sub(self.clock.now_ms())));
            }
            if !self.pending.staged.is_empty() {
                wait = wait.min(Duration::from_millis(committer::RETRY_MS));
            }
            let first = match events.recv_timeout(wait.max(Duration::from_millis(1))) {
                Ok(e) => Some(e),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => break,
            };
            if let Some(e) = first {
                self.handle(e);
                // What has queued up meanwhile shares the tick; bounded so that answers are not held back for ever.
                for _ in 0..1_000 {
                    match events.try_recv() {
                        Ok(e) => self.handle(e),
                        Err(_) => break,
                    }
                }
            }
            self.pace(&events);
            self.settle();
            if last_upkeep.elapsed() >= UPKEEP {
                last_upkeep = Instant::now();
                self.upkeep();
            }
            if let Some(done) = self.stopping.take() {
                self.sources.stop_all();
                self.cluster.send(Command::Shutdown);
                self.store.seal();
                drop(self.store);
                let _ = done.send(());
                return;
            }
        }
    }

    /// Commits what waits, and answers reads that wait for a time that has come.
    fn settle(&mut self) {
        self.commit_pending();
        if self.reads.awaited().is_some_and(|t| t <= self.clock.now_ms()) {
            self.advance_time();
            self.wake_reads();
        }
    }

    /// A tick takes two milliseconds of time, whatever it takes: where ticks come faster for long, the next one waits, and gathers what comes
    /// meanwhile, so that time does not run away from the clock.
    fn pace(&mut self, events: &Receiver<Event>) {
        let began = Instant::now();
        while self.pending.waits(self.clock.now_ms()) && self.closed > self.clock.now_ms() + AHEAD_MS_MAX && began.elapsed() < PACE {
            if let Ok(e) = events.recv_timeout(PACE - began.elapsed().min(PACE)) {
                self.handle(e);
            }
        }
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Request(r) => self.request(r),
            Event::Source { instance, event, done } => {
                self.source_event(instance, event);
                let _ = done.send(());
            }
            Event::Frontier { index, upper, records, bytes } => {
                if let Some(s) = self.indexes.get_mut(&index) {
                    self.shared.guard.reaches(index, upper);
                    s.upper = s.upper.max(upper);
                    s.records = records;
                    s.bytes = bytes;
                    if s.hydrated.is_none() && s.upper > s.as_of {
                        s.hydrated = Some(s.created.elapsed());
                    }
                }
            }
            Event::Memory(Some(blamed)) => self.relieve(blamed),
            Event::Memory(None) => self.cluster.send(Command::GiveBack),
            Event::WorkerDied { worker, message } => (self.fatal)(&format!("dataflow worker {worker} stopped: {message}")),
        }
    }

    fn request(&mut self, request: Request) {
        match request {
            Request::Read(r, answer) => self.start_read(r, answer),
            Request::Subscribe(r, answer) => self.start_subscribe(r, answer),
            Request::EndRead(token) => self.end_read(token),
            Request::Hold(relations, answer) => self.start_hold(relations, answer),
            Request::ReleaseHold(at) => self.release_hold(at),
            Request::Write(w, answer) if w.ddl.is_empty() => self.pending.writes.push((w, answer)),
            Request::Write(w, answer) => {
                // Writes that came before it belong before it.
                self.commit_pending();
                let result = self.ddl(w);
                let _ = answer.send(result);
            }
            Request::CheckWrites(check, answer) => {
                let result = self.check_writes(check);
                let _ = answer.send(result);
            }
            Request::CheckKeys(table, deltas, deferred, own, answer) => {
                let _ = answer.send(self.keys.check(&self.catalog(), table, &deltas, &deferred, own));
            }
            Request::Introspect(answer) => {
                let _ = answer.send(self.introspect());
            }
            Request::Shutdown(done) => self.stopping = Some(done),
        }
    }

    /// A time that no tick has had, for the next one.
    fn next_time(&self) -> Timestamp {
        even(self.clock.now_ms()).max(even(self.closed) + 2)
    }

    /// Moves closed time on without data: for temporal filters, and so that progress is seen on an idle system.
    fn advance_time(&mut self) {
        let now = even(self.clock.now_ms());
        if now <= self.closed {
            return;
        }
        if now >= self.lease {
            if let Err(e) = self.append(storage::Tick { t: now, lease: now + LEASE_MS, ..Default::default() }) {
                tracing::warn!("time does not advance: {e}");
                return;
            }
        }
        self.store.close_through(now);
        self.set_closed(now);
        self.cluster.send(Command::Tick { t: now, shards: Arc::new(Vec::new()), parts: vec![] });
    }

    fn set_closed(&mut self, t: Timestamp) {
        self.closed = t;
        self.shared.closed.store(t, Ordering::Relaxed);
    }

    fn upkeep(&mut self) {
        self.store.seal();
        if self.reads.wants_time() || self.planner.any_temporal() {
            self.advance_time();
        }
        let hold = self.holds.keys().next().copied().unwrap_or(Timestamp::MAX);
        let since = hold.min(self.closed.saturating_sub(RETAIN_MS));
        for (index, state) in &mut self.indexes {
            if since > state.since {
                state.since = since;
                self.cluster.send(Command::AllowCompaction { index: *index, since });
            }
        }
        for item in self.catalog().items() {
            if item.has_shard() {
                self.store.allow_compaction(item.id, since);
            }
        }
        self.end_idle_reads();
        self.measure();
    }

    /// Brings the gauges of sources and arrangements up to date; those of objects that went vanish.
    fn measure(&self) {
        let catalog = self.catalog();
        let metrics = &self.shared.metrics;
        let clamp = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
        let labels = |item: &Item, what: &str| vec![item.schema.clone(), item.name.clone(), what.to_owned()];
        let (mut sources, mut status) = (Vec::new(), Vec::new());
        for s in self.sources.info() {
            let Some(item) = catalog.item(s.id) else { continue };
            sources.push((labels(item, "committed_rows"), clamp(s.rows)));
            sources.extend(s.statistics.iter().filter_map(|(name, value)| Some((labels(item, name), value.as_i64()?))));
            status.push((labels(item, &s.status), 1));
        }
        metrics.sources.show(sources);
        metrics.source_status.show(status);
        let mut arrangements = Vec::new();
        for (id, s) in &self.indexes {
            let Some(item) = catalog.item(*id) else { continue };
            let lag_ms = (self.closed + 1).saturating_sub(s.upper);
            for (measure, n) in [("records", s.records), ("bytes", s.bytes), ("lag_ms", lag_ms), ("hydrated", u64::from(s.hydrated.is_some()))] {
                arrangements.push((labels(item, measure), clamp(n)));
            }
        }
        metrics.arrangements.show(arrangements);
        let store = self.store.stats();
        let sum = |of: fn(&storage::ShardStats) -> u64| store.shards.iter().map(of).sum();
        let measures = [
            ("log_bytes", store.log_bytes),
            ("log_ticks", store.log_ticks),
            ("folds", store.folds),
            ("merges", store.merges),
            ("files", sum(|s| s.files)),
            ("file_bytes", sum(|s| s.bytes)),
            ("file_rows", sum(|s| s.rows)),
        ];
        metrics.storage.show(measures.map(|(measure, n)| (vec![measure.to_owned()], clamp(n))).to_vec());
    }

    fn release_hold(&mut self, at: Timestamp) {
        if let Some(n) = self.holds.get_mut(&at) {
            *n -= 1;
            if *n == 0 {
                self.holds.remove(&at);
            }
        }
    }

    fn introspect(&self) -> request::Introspection {
        let catalog = self.catalog();
        let gone = self.stopped.iter().filter(|s| !self.indexes.contains_key(s.0)).filter_map(|(id, why)| {
            let item = catalog.item(*id)?;
            let ItemKind::Index { on, .. } = &item.kind else { return None };
            let stopped = Some(why.message.clone());
            Some(request::IndexInfo { id: *id, on: *on, since: 0, upper: 0, records: 0, bytes: 0, hydrated_ms: None, stopped })
        });
        request::Introspection {
            closed: self.closed,
            indexes: self
                .indexes
                .iter()
                .map(|(id, s)| request::IndexInfo {
                    id: *id,
                    on: s.on,
                    since: s.since,
                    upper: s.upper,
                    records: s.records,
                    bytes: s.bytes,
                    hydrated_ms: s.hydrated.map(|d| d.as_millis() as u64),
                    stopped: self.stopped.get(id).map(|e| e.message.clone()),
                })
                .chain(gone)
                .collect(),
            sources: self.sources.info(),
        }
    }
}

/// Ends the process: durable state is right, memory may not be.
pub(crate) fn fatal(message: &str) -> ! {
    tracing::error!("fatal: {message}");
    eprintln!("riverdelta: fatal: {message}");
    std::process::exit(70);
}
