//! Starting from a data directory: recovery, hydration, sources.
//!
//! Views hydrate at the oldest time that their inputs still hold and then follow the ticks since, so that a subscriber
//! can come back `AS OF` the progress it saw before the stop.

use super::edges::{Clock, Edges, Threads};
use super::request::Event;
use super::request::WriteTxn;
use super::{keys::Keys, reads::Reads, router::Router, sources::Sources, Coordinator, REPLAY_MS};
use crate::builtin::PUBLIC_OID;
use crate::catalog::{key, Catalog, Item, Schema, FIRST_USER_ID};
use dataflow::{Cluster, Command};
use repr::{Deltas, GlobalId, SqlError, Timestamp};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use storage::{RealDisk, Store, StoreOptions};

/// Opens the data directory and starts everything but the coordinator's loop.
/// Errors: the directory is locked, damaged or of an unknown version; the catalog cannot be read.
pub fn boot(
    data_dir: &Path,
    workers: usize,
    clock: Box<dyn Clock>,
    runtime: tokio::runtime::Handle,
    shared: Arc<crate::Shared>,
    events: crossbeam_channel::Sender<Event>,
) -> Result<Coordinator, SqlError> {
    let store = Store::open(Arc::new(RealDisk), data_dir, StoreOptions::default())?;
    let (tx, rx) = crossbeam_channel::unbounded();
    let cluster = Cluster::start(workers, tx);
    let router = shared.router.clone();
    let to_coordinator = events.clone();
    spawn("router", move || Router::run(&router, rx, to_coordinator));
    let watched = shared.clone();
    spawn("memory", move || super::guard::watch(&watched));
    let edges = Edges { engine: Box::new(cluster), connectors: Box::new(Threads { runtime, events }), clock, fatal: super::fatal };
    start(store, edges, shared)
}

/// A coordinator on a store that was opened: the catalog is loaded, views hydrate.
/// Errors: the catalog cannot be read, or a shard.
pub(super) fn start(store: Store, edges: Edges, shared: Arc<crate::Shared>) -> Result<Coordinator, SqlError> {
    let catalog = load_catalog(&store)?;
    let closed = store.upper().saturating_sub(1);
    let lease = store.lease();
    shared.next_id.store(catalog.next_id, std::sync::atomic::Ordering::SeqCst);
    for (k, v) in store.meta_scan(key::SEQUENCE) {
        shared.sequences.load(&k[key::SEQUENCE.len()..], &v);
    }
    *shared.catalog.write() = Arc::new(catalog);
    shared.closed.store(closed, std::sync::atomic::Ordering::Relaxed);
    shared.set_store(store.handle());
    let mut coordinator = Coordinator {
        store,
        cluster: edges.engine,
        clock: edges.clock,
        fatal: edges.fatal,
        catalog: shared.catalog.clone(),
        planner: shared.planner.clone(),
        router: shared.router.clone(),
        closed,
        lease,
        indexes: BTreeMap::new(),
        keys: Keys::default(),
        last_write: Default::default(),
        touched: Default::default(),
        changes: Default::default(),
        pending: Default::default(),
        holds: BTreeMap::new(),
        reads: Reads::default(),
        stopped: BTreeMap::new(),
        sources: Sources::new(edges.connectors),
        hydrated: false,
        shared,
        stopping: None,
    };
    coordinator.bootstrap()?;
    coordinator.hydrate()?;
    Ok(coordinator)
}

fn spawn(name: &str, f: impl FnOnce() + Send + 'static) {
    std::thread::Builder::new().name(name.into()).spawn(f).expect("a thread can be started");
}

fn load_catalog(store: &Store) -> Result<Catalog, SqlError> {
    let mut catalog = Catalog::default();
    catalog.next_id = FIRST_USER_ID;
    if let Some(n) = store.meta_get(key::NEXT_ID).and_then(|b| String::from_utf8(b).ok()).and_then(|s| s.parse().ok()) {
        catalog.next_id = n;
    }
    catalog.database_comment = store.meta_get(key::DATABASE).map(|text| String::from_utf8_lossy(&text).into_owned());
    for (k, v) in store.meta_scan(key::SCHEMA) {
        let name = String::from_utf8_lossy(&k[key::SCHEMA.len()..]).into_owned();
        catalog.put_schema(name, Schema::of_entry(&v));
    }
    for (k, v) in store.meta_scan(key::ITEM) {
        let item: Item =
            serde_json::from_slice(&v).map_err(|e| SqlError::internal(format!("catalog entry {} cannot be read: {e}", String::from_utf8_lossy(&k))))?;
        super::ddl::publish_labels(&item);
        catalog.put(item);
    }
    Ok(catalog)
}

impl Coordinator {
    /// The first start makes the schema `public`.
    fn bootstrap(&mut self) -> Result<(), SqlError> {
        if self.closed == 0 {
            self.set_closed(super::even(self.clock.now_ms()));
        }
        if !self.catalog().has_schema("public") {
            let public = super::request::Op::CreateSchema { name: "public".into(), oid: PUBLIC_OID };
            let comment = super::request::Op::CommentSchema { name: "public".into(), text: Some("standard public schema".into()) };
            self.ddl(WriteTxn { ddl: vec![public, comment], ..WriteTxn::default() })?;
        }
        // Temporary objects end with their session, also when that ended with the process.
        let catalog = self.catalog();
        for (schema, _) in catalog.schemas().filter(|s| s.0.starts_with("pg_temp_")) {
            let roots: Vec<GlobalId> = catalog.items_in(schema).iter().map(|i| i.id).collect();
            let ids = catalog.drop_order(&roots, true)?;
            let ddl = vec![super::request::Op::Drop { ids }, super::request::Op::DropSchema { name: schema.to_string() }];
            self.ddl(WriteTxn { ddl, ..WriteTxn::default() })?;
        }
        Ok(())
    }

    fn hydrate(&mut self) -> Result<(), SqlError> {
        let catalog = self.catalog();
        let shards: Vec<GlobalId> = catalog.items().filter(|i| i.has_shard()).map(|i| i.id).collect();
        // One as_of for everything: all arrangements of a dataflow and of what it imports agree.
        let since = shards.iter().filter_map(|s| self.store.since(*s)).max().unwrap_or(0);
        let as_of = self.closed.saturating_sub(REPLAY_MS).max(since).min(self.closed);
        for item in catalog.items() {
            self.created(&catalog, item, as_of)?;
            if self.keys.watches(item.id) {
                self.keys.load(item, &self.store.snapshot(item.id, self.closed)?)?;
            }
        }
        let mut ticks: BTreeMap<Timestamp, Vec<(GlobalId, Deltas)>> = BTreeMap::new();
        for shard in &shards {
            for (t, deltas) in self.store.changes(*shard, as_of)? {
                ticks.entry(t).or_default().push((*shard, deltas));
            }
        }
        for (t, shards) in ticks {
            self.cluster.send(Command::Tick { t, shards: Arc::new(shards), parts: vec![] });
        }
        self.cluster.send(Command::Tick { t: self.closed, shards: Arc::new(Vec::new()), parts: vec![] });
        self.hydrated = true;
        Ok(())
    }
}
