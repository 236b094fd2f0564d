//! Sessions, catalog, coordinator: what stands between a connection and the engine.
//!
//! ```text
//!   server ─► Session ──plan on a catalog snapshot──► Request ─► coordinator ─► Store, Cluster, sources
//!                ▲                                                   │
//!                └────────── rows, changes (router) ◄── workers ◄────┘
//! ```
//!
//! Not here: the wire protocol (`server`), rendering (`dataflow`), files (`storage`).

/// Who is connected, and what they do.
pub mod activity;
/// Relations of pg_catalog, information_schema and rd_catalog.
pub mod builtin;
/// Objects by id and by name.
pub mod catalog;
/// Changes to tables on their way to the commit.
pub mod changes;
/// What a connection holds: the seam to `server`.
pub mod client;
/// One thread that orders everything.
pub mod coordinator;
/// Plans of catalog objects, and what planning asks of the catalog.
pub mod planner;
/// What sequences have given out.
pub mod sequences;
/// Statements of one connection.
pub mod session;
/// Session settings.
pub mod settings;

pub use client::*;

use crate::catalog::Catalog;
use crate::coordinator::guard::Guard;
use crate::coordinator::request::{Event, Request};
use crate::coordinator::router::Router;
use crate::planner::Planner;
use parking_lot::RwLock;
use repr::error::state;
use repr::SqlError;
use std::collections::HashMap;
use std::sync::atomic::AtomicU64;
use std::sync::Arc;
use tokio::sync::oneshot;

/// What sessions and the coordinator share.
pub struct Shared {
    pub(crate) requests: crossbeam_channel::Sender<Event>,
    pub(crate) catalog: Arc<RwLock<Arc<Catalog>>>,
    pub(crate) router: Arc<Router>,
    pub(crate) planner: Arc<Planner>,
    pub(crate) backends: Arc<activity::Backends>,
    pub(crate) locks: session::advisory::Locks,
    /// Ids are reserved here by sessions and made durable with the objects that get them.
    pub(crate) next_id: AtomicU64,
    pub(crate) metrics: session::metrics::Metrics,
    pub(crate) guard: Guard,
    pub(crate) sequences: Arc<sequences::Sequences>,
    /// The last closed time: what is read next is read at it or later.
    pub(crate) closed: AtomicU64,
    /// When what this process has made became readable: arrangements, and tables that took another's place.
    pub(crate) born: parking_lot::Mutex<HashMap<repr::GlobalId, repr::Timestamp>>,
    /// Where sessions put aside what is too much for memory; set at start.
    store: std::sync::OnceLock<storage::StoreHandle>,
}

impl Shared {
    /// `memory_limit`: resident bytes.
    pub(crate) fn new(requests: crossbeam_channel::Sender<Event>, memory_limit: Option<u64>) -> Shared {
        Shared {
            requests,
            catalog: Arc::new(RwLock::new(Arc::new(Catalog::default()))),
            router: Arc::new(Router::default()),
            planner: Arc::new(Planner::default()),
            backends: Default::default(),
            locks: Default::default(),
            next_id: AtomicU64::new(0),
            metrics: session::metrics::Metrics::default(),
            guard: Guard::new(memory_limit),
            sequences: Default::default(),
            closed: AtomicU64::new(0),
            born: Default::default(),
            store: Default::default(),
        }
    }

    pub(crate) fn set_store(&self, store: storage::StoreHandle) {
        // There is one store a process.
        let _ = self.store.set(store);
    }

    /// Errors: 57P01 before the start.
    pub(crate) fn store(&self) -> Result<storage::StoreHandle, SqlError> {
        self.store.get().cloned().ok_or_else(shutting_down)
    }

    pub(crate) fn catalog(&self) -> Arc<Catalog> {
        self.catalog.read().clone()
    }

    pub(crate) fn send(&self, request: Request) -> Result<(), SqlError> {
        self.requests.send(Event::Request(request)).map_err(|_| shutting_down())
    }

    /// Sends a request and waits for its answer.
    pub(crate) async fn ask<T>(&self, request: impl FnOnce(oneshot::Sender<Result<T, SqlError>>) -> Request) -> Result<T, SqlError> {
        let (tx, rx) = oneshot::channel();
        self.send(request(tx))?;
        rx.await.map_err(|_| shutting_down())?
    }
}

const VANISHED: &str = "was dropped or altered meanwhile";

/// What a statement was planned on is there no more. The statement may be planned again.
pub(crate) fn vanished(what: &str) -> SqlError {
    SqlError::new(state::UNDEFINED_TABLE, format!("{what} {VANISHED}"))
}

pub(crate) fn is_vanished(e: &SqlError) -> bool {
    e.code == state::UNDEFINED_TABLE && e.message.ends_with(VANISHED)
}

pub(crate) fn shutting_down() -> SqlError {
    SqlError::new(state::ADMIN_SHUTDOWN, "terminating connection due to administrator command")
}
