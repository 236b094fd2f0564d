//! Connectors: each is a thread of its own that reads upstream, decodes, and hands over staged changes.
//!
//! ```text
//!   connector thread ── Feed::stage / Feed::status ──► bounded channel ──► committer
//!        ▲ stop (handle dropped)                            blocks while the committer is behind
//! ```
//! Not here: what an upstream is (`kafka`, `file`, `generator`, `postgres`), decoding (`decode`), envelopes.

/// Lines of files.
pub mod file;
/// The files of a FILE source: finding them, following them.
pub mod follow;
/// Load generators.
pub mod generator;
/// Topics of a Kafka broker.
pub mod kafka;
/// Change data capture from PostgreSQL.
pub mod postgres;

use crate::spec::*;
use parking_lot::Mutex;
use repr::{GlobalId, Value};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::Arc;
use std::time::Duration;

/// Starts the connector of a source.
pub(crate) fn start(source: StartSource) -> Box<dyn SourceHandle> {
    match &source.spec.connector {
        Connector::Kafka { .. } => spawn(source, kafka::run),
        Connector::File { .. } => spawn(source, file::run),
        Connector::Generator { .. } => spawn(source, generator::run),
        Connector::Postgres { .. } => postgres::start(source),
    }
}

/// The handle is gone: the connector ends.
#[derive(Debug)]
pub struct Stopped;

/// Why a connector ends by itself.
#[derive(Debug)]
pub enum End {
    Stopped,
    /// Will not go on; what to do.
    Failed(String),
    Finished,
}

impl From<Stopped> for End {
    fn from(_: Stopped) -> End {
        End::Stopped
    }
}

/// Runs a connector on a thread of its own.
fn spawn(source: StartSource, run: fn(&StartSource, &mut Feed) -> End) -> Box<dyn SourceHandle> {
    let (stop, stopped) = tokio::sync::watch::channel(false);
    let (waker, wake) = crossbeam_channel::bounded(0);
    let flag = Arc::new(AtomicBool::new(false));
    let stats = Arc::new(Stats::default());
    let mut feed = Feed {
        source: source.spec.id,
        events: source.events.clone(),
        runtime: source.runtime.clone(),
        stopped,
        wake,
        flag: Arc::clone(&flag),
        stats: Arc::clone(&stats),
        status: None,
    };
    let name = format!("source-{}", source.spec.id);
    let spawned = std::thread::Builder::new().name(name).spawn(move || {
        let _ = feed.status(SourceStatus::Starting);
        let last = match std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| run(&source, &mut feed))) {
            Ok(End::Stopped) => return,
            Ok(End::Failed(why)) => SourceStatus::Failed(why),
            Ok(End::Finished) => SourceStatus::Finished,
            Err(_) => SourceStatus::Failed("internal error: the connector's thread panicked".into()),
        };
        let _ = feed.status(last);
    });
    if let Err(e) = spawned {
        tracing::error!("cannot start the thread of a source: {e}");
    }
    Box::new(Handle { _stop: stop, _waker: waker, flag, stats })
}

/// A running connector. Dropping it stops it.
struct Handle {
    /// Dropping it wakes a connector that waits for the committer.
    _stop: tokio::sync::watch::Sender<bool>,
    /// Dropping it wakes a connector that sleeps.
    _waker: crossbeam_channel::Sender<()>,
    flag: Arc<AtomicBool>,
    stats: Arc<Stats>,
}

impl SourceHandle for Handle {
    fn acknowledge(&self, _position: &str) {}
    fn statistics(&self) -> Vec<(String, Value)> {
        self.stats.list()
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.flag.store(true, Ordering::Release);
    }
}

/// A connector's way out: events to the committer, and whether to stop.
pub struct Feed {
    source: GlobalId,
    events: tokio::sync::mpsc::Sender<SourceEvent>,
    runtime: tokio::runtime::Handle,
    stopped: tokio::sync::watch::Receiver<bool>,
    /// Disconnected when the handle is dropped.
    wake: crossbeam_channel::Receiver<()>,
    flag: Arc<AtomicBool>,
    pub stats: Arc<Stats>,
    status: Option<SourceStatus>,
}

impl Feed {
    pub fn is_stopped(&self) -> bool {
        self.flag.load(Ordering::Acquire)
    }

    /// Whether the committer has room for another event now.
    pub fn has_room(&self) -> bool {
        self.events.capacity() > 0
    }

    /// Errors: the handle was dropped.
    pub fn check(&self) -> Result<(), Stopped> {
        if self.is_stopped() {
            Err(Stopped)
        } else {
            Ok(())
        }
    }

    /// Hands over changes; blocks while the committer is behind.
    pub fn stage(&mut self, deltas: Vec<(GlobalId, repr::Deltas)>, position: String, snapshot_of: Vec<GlobalId>, more: bool) -> Result<(), Stopped> {
        let rows: usize = deltas.iter().map(|d| d.1.len()).sum();
        self.stats.rows.fetch_add(rows as u64, Ordering::Relaxed);
        self.send(SourceEvent::Staged(Staged { source: self.source, deltas, position, snapshot_of, more }))
    }

    /// Reports a status if it is another one than the last.
    pub fn status(&mut self, status: SourceStatus) -> Result<(), Stopped> {
        if self.status.as_ref() == Some(&status) {
            return Ok(());
        }
        self.status = Some(status.clone());
        self.send(SourceEvent::Status { source: self.source, status })
    }

    fn send(&mut self, event: SourceEvent) -> Result<(), Stopped> {
        self.check()?;
        let event = match self.events.try_send(event) {
            Ok(()) => return Ok(()),
            Err(tokio::sync::mpsc::error::TrySendError::Full(e)) => e,
            Err(tokio::sync::mpsc::error::TrySendError::Closed(_)) => return Err(Stopped),
        };
        let (events, stopped) = (&self.events, &mut self.stopped);
        self.runtime.block_on(async {
            tokio::select! {
                sent = events.send(event) => sent.map_err(|_| Stopped),
                // Nothing is ever sent: it resolves when the handle drops its end.
                _ = stopped.changed() => Err(Stopped),
            }
        })
    }

    /// Waits; ends early if the handle is dropped.
    pub fn sleep(&mut self, time: Duration) -> Result<(), Stopped> {
        match self.wake.recv_timeout(time) {
            Err(crossbeam_channel::RecvTimeoutError::Timeout) => self.check(),
            _ => Err(Stopped),
        }
    }
}

/// What a connector counts since its start.
#[derive(Default)]
pub struct Stats {
    pub messages: AtomicU64,
    pub bytes: AtomicU64,
    /// Changes handed over, error rows included.
    pub rows: AtomicU64,
    pub errors: AtomicU64,
    /// Rows that are kept by key, and the memory they take.
    pub state_rows: AtomicU64,
    pub state_bytes: AtomicU64,
    /// Others by name: lag of a partition, files.
    gauges: Mutex<BTreeMap<String, i64>>,
}

impl Stats {
    pub fn set(&self, name: impl Into<String>, value: i64) {
        self.gauges.lock().insert(name.into(), value);
    }

    pub fn list(&self) -> Vec<(String, Value)> {
        let counters = [
            ("messages", &self.messages),
            ("bytes", &self.bytes),
            ("rows", &self.rows),
            ("errors", &self.errors),
            ("state_rows", &self.state_rows),
            ("state_bytes", &self.state_bytes),
        ];
        let number = |v: u64| Value::Int8(i64::try_from(v).unwrap_or(i64::MAX));
        let mut out: Vec<(String, Value)> = counters.iter().map(|(n, c)| ((*n).to_owned(), number(c.load(Ordering::Relaxed)))).collect();
        out.extend(self.gauges.lock().iter().map(|(n, v)| (n.clone(), Value::Int8(*v))));
        out
    }
}
