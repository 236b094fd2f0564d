//! Running sources: starting them, taking in what they hand over, acknowledging what is durable.

use super::edges::{Connectors, NewSource};
use super::request::SourceInfo;
use super::Coordinator;
use crate::catalog::{Catalog, Connection, Item, ItemKind, SourceConnector, Text};
use ingest::{Connector, OnError, OutputSpec, SourceEvent, SourceHandle, SourceSpec, SourceStatus, Staged, StateReader};
use repr::error::state;
use repr::{Deltas, GlobalId, SqlError, Timestamp};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What is durable of a source beside its rows.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct DurableState {
    pub position: String,
    /// Outputs whose snapshot is complete.
    pub snapshots: BTreeSet<GlobalId>,
    /// The ticks that made them so, as far as they are known: older states say nothing of them.
    #[serde(default)]
    pub snapshot_at: BTreeMap<GlobalId, Timestamp>,
}

/// A whole upstream unit, ready for a tick.
pub struct ReadyUnit {
    pub source: GlobalId,
    pub deltas: Vec<(GlobalId, Deltas)>,
    pub files: Vec<storage::StagedUnit>,
    pub state: DurableState,
}

impl ReadyUnit {
    pub fn rows(&self) -> usize {
        self.deltas.iter().map(|d| d.1.len()).sum()
    }
    pub fn bytes(&self) -> usize {
        self.deltas.iter().map(|d| d.1.rows.bytes()).sum()
    }
    /// The state as the tick makes it durable.
    pub fn durable_state(&self) -> Vec<u8> {
        serde_json::to_vec(&self.state).unwrap_or_default()
    }
}

struct Running {
    instance: u64,
    handle: Option<Box<dyn SourceHandle>>,
    status: SourceStatus,
    state: DurableState,
    /// Parts of a unit that is not complete yet.
    parts: Vec<(GlobalId, Deltas)>,
    part_rows: usize,
    part_bytes: usize,
    files: BTreeMap<GlobalId, Vec<String>>,
    rows: u64,
    snapshots: BTreeSet<GlobalId>,
}

/// Rows of an unfinished unit, and their bytes, that are held in memory before they are staged in files.
const STAGE_ROWS: usize = 200_000;
const STAGE_BYTES: usize = 64 << 20;

pub struct Sources {
    running: BTreeMap<GlobalId, Running>,
    connectors: Box<dyn Connectors>,
    /// Counts starts: what a connector still sends after it was replaced is not its successor's.
    instances: u64,
}

impl Sources {
    pub(super) fn new(connectors: Box<dyn Connectors>) -> Sources {
        Sources { running: BTreeMap::new(), connectors, instances: 0 }
    }

    pub fn snapshot_done(&self, source: GlobalId, output: GlobalId) -> bool {
        self.running.get(&source).is_some_and(|r| r.state.snapshots.contains(&output))
    }

    /// When the output's snapshot became complete, if that is known.
    pub fn snapshot_at(&self, source: GlobalId, output: GlobalId) -> Option<Timestamp> {
        self.running.get(&source)?.state.snapshot_at.get(&output).copied()
    }

    /// The unit is about to be committed at `t`: snapshots that it completes are as of then.
    pub fn date(&self, unit: &mut ReadyUnit, t: Timestamp) {
        let Some(r) = self.running.get(&unit.source) else { return };
        unit.state.snapshot_at = r.state.snapshot_at.clone();
        let new = unit.state.snapshots.difference(&r.state.snapshots);
        unit.state.snapshot_at.extend(new.map(|id| (*id, t)));
    }

    /// Why a source will not go on by itself.
    pub fn failure(&self, source: GlobalId) -> Option<String> {
        match &self.running.get(&source)?.status {
            SourceStatus::Failed(why) => Some(why.clone()),
            _ => None,
        }
    }

    /// A unit is durable.
    pub fn committed(&mut self, unit: &ReadyUnit) {
        let Some(r) = self.running.get_mut(&unit.source) else { return };
        r.state = unit.state.clone();
        storage::kill_point("source-before-acknowledge");
        if let Some(h) = &r.handle {
            h.acknowledge(&unit.state.position);
        }
    }

    /// The source was dropped.
    pub fn stop(&mut self, source: GlobalId) {
        if let Some(handle) = self.running.remove(&source).and_then(|r| r.handle) {
            handle.forget();
        }
    }
    pub fn stop_all(&mut self) {
        self.running.clear();
    }

    pub fn info(&self) -> Vec<SourceInfo> {
        self.running
            .iter()
            .map(|(id, r)| {
                let (status, detail) = match &r.status {
                    SourceStatus::Starting => ("starting", None),
                    SourceStatus::Snapshotting { rows } => ("snapshotting", Some(format!("{rows} rows"))),
                    SourceStatus::Running => ("running", None),
                    SourceStatus::Stalled(why) => ("stalled", Some(why.clone())),
                    SourceStatus::Failed(why) => ("failed", Some(why.clone())),
                    SourceStatus::Finished => ("finished", None),
                };
                SourceInfo {
                    id: *id,
                    status: status.into(),
                    detail,
                    position: (!r.state.position.is_empty()).then(|| r.state.position.clone()),
                    rows: r.rows,
                    statistics: r.handle.as_ref().map(|h| h.statistics()).unwrap_or_default(),
                }
            })
            .collect()
    }
}

/// Reads back outputs from the store.
struct Outputs(storage::StoreHandle);

impl StateReader for Outputs {
    fn read(&self, output: GlobalId) -> Result<Box<dyn Iterator<Item = Result<Deltas, SqlError>> + Send>, SqlError> {
        let at = self.0.upper().saturating_sub(1);
        Ok(self.0.snapshot(output, at)?.read(0, 1))
    }
}

impl Coordinator {
    pub(super) fn start_all_sources(&mut self) {
        let ids: Vec<GlobalId> = self.catalog().items().filter(|i| matches!(i.kind, ItemKind::Source(_))).map(|i| i.id).collect();
        for id in ids {
            self.start_source(id);
        }
    }

    /// Starts (or starts again, with new outputs) a source from its durable position.
    pub(super) fn start_source(&mut self, id: GlobalId) {
        // What the old connector had not handed over whole is read again from the durable position.
        if let Some(old) = self.sources.running.remove(&id) {
            for (shard, files) in old.files {
                tracing::debug!("unstaging {} parts of {shard}", files.len());
                self.store.unstage(&files);
            }
        }
        let (stale, rest) = std::mem::take(&mut self.pending.staged).into_iter().partition(|u| u.source == id);
        self.pending.staged = rest;
        let stale: Vec<ReadyUnit> = stale;
        for part in stale.iter().flat_map(|u| &u.files) {
            self.store.unstage(&part.files);
        }
        let state: DurableState = self.store.meta_get(&crate::catalog::key::source(id)).and_then(|b| serde_json::from_slice(&b).ok()).unwrap_or_default();
        let catalog = self.catalog();
        self.sources.instances += 1;
        let instance = self.sources.instances;
        let mut running = Running {
            instance,
            handle: None,
            status: SourceStatus::Starting,
            state: state.clone(),
            parts: Vec::new(),
            part_rows: 0,
            part_bytes: 0,
            files: BTreeMap::new(),
            rows: 0,
            snapshots: BTreeSet::new(),
        };
        let resume = (!state.position.is_empty()).then_some(state.position);
        let new = source_spec(&catalog, id, &state.snapshots).map(|spec| NewSource { spec, resume, state: Arc::new(Outputs(self.store.handle())) });
        match new.and_then(|new| self.sources.connectors.start(instance, new)) {
            Ok(handle) => running.handle = Some(handle),
            Err(e) => running.status = SourceStatus::Failed(e.to_string()),
        }
        self.sources.running.insert(id, running);
    }

    pub(super) fn source_event(&mut self, instance: u64, event: SourceEvent) {
        let source = match &event {
            SourceEvent::Staged(s) => s.source,
            SourceEvent::Status { source, .. } => *source,
        };
        if self.sources.running.get(&source).is_none_or(|r| r.instance != instance) {
            return;
        }
        match event {
            SourceEvent::Status { source, status } => {
                if let Some(r) = self.sources.running.get_mut(&source) {
                    if let SourceStatus::Stalled(why) | SourceStatus::Failed(why) = &status {
                        tracing::warn!("source {source}: {why}");
                    }
                    r.status = status;
                    // Reads that wait for a source that failed are told so.
                    self.wake_reads();
                }
            }
            SourceEvent::Staged(staged) => self.staged(staged),
        }
    }

    fn staged(&mut self, staged: Staged) {
        let Some(r) = self.sources.running.get_mut(&staged.source) else { return };
        for (shard, deltas) in staged.deltas {
            r.part_rows += deltas.len();
            r.part_bytes += deltas.rows.bytes();
            r.rows += deltas.len() as u64;
            if !deltas.is_empty() {
                r.parts.push((shard, deltas));
            }
        }
        r.snapshots.extend(staged.snapshot_of);
        if staged.more {
            if r.part_rows >= STAGE_ROWS || r.part_bytes >= STAGE_BYTES {
                for (shard, deltas) in std::mem::take(&mut r.parts) {
                    match self.store.stage(shard, &deltas) {
                        Ok(file) => r.files.entry(shard).or_default().push(file),
                        Err(e) => {
                            // The unit cannot become whole: begin again from the durable position.
                            tracing::warn!("staging for source {} failed: {e}", staged.source);
                            self.start_source(staged.source);
                            return;
                        }
                    }
                }
                (r.part_rows, r.part_bytes) = (0, 0);
            }
            return;
        }
        storage::kill_point("source-unit-complete");
        // The durable state goes on from what is pending, not only from what is durable already.
        let mut snapshots =
            self.pending.staged.iter().rev().find(|u| u.source == staged.source).map_or_else(|| r.state.snapshots.clone(), |u| u.state.snapshots.clone());
        snapshots.append(&mut r.snapshots);
        let files = std::mem::take(&mut r.files).into_iter().map(|(shard, files)| storage::StagedUnit { shard, files }).collect();
        (r.part_rows, r.part_bytes) = (0, 0);
        let unit = ReadyUnit {
            source: staged.source,
            deltas: std::mem::take(&mut r.parts),
            files,
            state: DurableState { position: staged.position, snapshots, ..Default::default() },
        };
        self.pending.staged.push(unit);
    }
}

/// A source's definition with its connection and secrets resolved.
pub fn source_spec(catalog: &Catalog, id: GlobalId, snapshots: &BTreeSet<GlobalId>) -> Result<SourceSpec, SqlError> {
    let item = catalog.item(id).ok_or_else(|| SqlError::internal("source without catalog entry"))?;
    let ItemKind::Source(source) = &item.kind else { return Err(SqlError::internal("not a source")) };
    let connector = connector(catalog, source.connection, &source.connector)?;
    let output = |i: &Item, reference: &str, columns: &[ingest::ColumnSource]| OutputSpec {
        id: i.id,
        reference: reference.to_string(),
        desc: i.desc.clone(),
        columns: columns.to_vec(),
        snapshot_done: snapshots.contains(&i.id),
    };
    let mut outputs: Vec<OutputSpec> = source.self_output.iter().map(|c| output(item, "", c)).collect();
    for d in catalog.dependants(id) {
        if let ItemKind::SourceTable { source: of, reference, columns, .. } = &d.kind {
            if *of == id {
                outputs.push(output(d, reference, columns));
            }
        }
    }
    let on_error = if source.fail_on_error { OnError::Fail } else { OnError::Quarantine };
    Ok(SourceSpec { id, name: item.name.clone(), connector, outputs, errors: source.errors, on_error })
}

/// A connector with its connection's properties and secrets filled in.
pub fn connector(catalog: &Catalog, connection: Option<GlobalId>, source: &SourceConnector) -> Result<Connector, SqlError> {
    let connection = match connection {
        Some(id) => match catalog.item(id).map(|i| &i.kind) {
            Some(ItemKind::Connection(c)) => Some(c),
            _ => return Err(SqlError::internal("connection without catalog entry")),
        },
        None => None,
    };
    Ok(match (source, connection) {
        (SourceConnector::Kafka { topic, start, key_format, value_format, envelope }, Some(Connection::Kafka { properties })) => Connector::Kafka {
            properties: properties.iter().map(|(k, v)| Ok((k.clone(), resolve(catalog, v)?))).collect::<Result<_, SqlError>>()?,
            topic: topic.clone(),
            start: start.clone(),
            key_format: key_format.clone(),
            value_format: value_format.clone(),
            envelope: envelope.clone(),
        },
        (SourceConnector::Postgres { publication, slot }, Some(Connection::Postgres { host, port, user, password, database, ssl_mode, ssl })) => {
            let text = |t: &Option<Text>| t.as_ref().map(|t| resolve(catalog, t)).transpose();
            Connector::Postgres {
                host: host.clone(),
                port: *port,
                user: resolve(catalog, user)?,
                password: password.as_ref().map(|p| resolve(catalog, p)).transpose()?,
                database: database.clone(),
                ssl_mode: ssl_mode.clone(),
                certificates: ingest::Certificates { authority: text(&ssl.authority)?, certificate: text(&ssl.certificate)?, key: text(&ssl.key)? },
                publication: publication.clone(),
                slot: slot.clone(),
            }
        }
        (SourceConnector::File { path, tail, format }, _) => Connector::File { path: path.clone(), tail: *tail, format: format.clone() },
        (SourceConnector::Generator { kind, tick_interval_ms, options }, _) => {
            Connector::Generator { kind: *kind, tick_interval_ms: *tick_interval_ms, options: options.clone() }
        }
        _ => return Err(SqlError::new(state::WRONG_OBJECT_TYPE, "the connection is of another kind than the source")),
    })
}

fn resolve(catalog: &Catalog, text: &Text) -> Result<String, SqlError> {
    match text {
        Text::Plain(s) => Ok(s.clone()),
        Text::Secret(id) => match catalog.item(*id).map(|i| &i.kind) {
            Some(ItemKind::Secret { value }) => Ok(value.clone()),
            _ => Err(SqlError::internal("secret without catalog entry")),
        },
    }
}
