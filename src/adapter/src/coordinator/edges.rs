//! What the coordinator acts on: workers, connectors, the clock, the end of the process.
//!
//! ```text
//!   events, in their order ──► Coordinator ──► Edges (and the disk below the store)
//! ```
//! All else that it does is a function of the events it is given and of what these answer. So whoever owns them owns its time, and may stop it at
//! any of its effects: the simulation (`sim`) does.

use super::request::Event;
use dataflow::{Cluster, Command};
use ingest::{SourceEvent, SourceHandle, SourceSpec, StartSource, StateReader};
use repr::{SqlError, Timestamp};
use std::sync::Arc;

/// Wall clock.
pub trait Clock: Send {
    /// Milliseconds since 1970.
    fn now_ms(&self) -> Timestamp;
}

pub struct SystemClock;

impl Clock for SystemClock {
    fn now_ms(&self) -> Timestamp {
        std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |d| d.as_millis() as u64)
    }
}

/// The workers.
pub(crate) trait Engine: Send {
    fn send(&self, command: Command);
}

impl Engine for Cluster {
    fn send(&self, command: Command) {
        Cluster::send(self, command);
    }
}

/// A connector to start.
pub(crate) struct NewSource {
    pub spec: SourceSpec,
    /// The durable position; `None` on the first start.
    pub resume: Option<String>,
    pub state: Arc<dyn StateReader>,
}

pub(crate) trait Connectors: Send {
    /// Starts a connector, whose events come under the number `instance`.
    fn start(&mut self, instance: u64, source: NewSource) -> Result<Box<dyn SourceHandle>, SqlError>;
}

/// Connectors on threads of their own.
pub(crate) struct Threads {
    pub runtime: tokio::runtime::Handle,
    /// Gets what they hand over.
    pub events: crossbeam_channel::Sender<Event>,
}

impl Connectors for Threads {
    fn start(&mut self, instance: u64, source: NewSource) -> Result<Box<dyn SourceHandle>, SqlError> {
        let events = self.events.clone();
        let (tx, mut rx) = tokio::sync::mpsc::channel::<SourceEvent>(16);
        let forward = move || {
            while let Some(event) = rx.blocking_recv() {
                // The next one is taken when this one was looked at: a connector waits while the committer is behind.
                let (done, taken) = crossbeam_channel::bounded(1);
                if events.send(Event::Source { instance, event, done }).is_err() || taken.recv().is_err() {
                    return;
                }
            }
        };
        std::thread::Builder::new().name("source-events".into()).spawn(forward).map_err(SqlError::internal)?;
        let NewSource { spec, resume, state } = source;
        Ok(ingest::start(StartSource { spec, resume, state, events: tx, runtime: self.runtime.clone() }))
    }
}

pub(crate) struct Edges {
    pub engine: Box<dyn Engine>,
    pub connectors: Box<dyn Connectors>,
    pub clock: Box<dyn Clock>,
    /// Ends the process: durable state is right, memory may not be.
    pub fatal: fn(&str) -> !,
}
