//! Read times, peeks, subscribes.
//!
//! A relation fed by a source is readable from the tick of its snapshot; reads that come earlier wait here.

use super::request::{Answer, Own, ReadAt, ReadRequest, ReadStarted, SubscribeRequest, SubscribeStarted};
use super::Coordinator;
use crate::catalog::{Catalog, Item, ItemKind};
use crate::changes::Changes;
use dataflow::protocol::DataflowCtx;
use dataflow::{Command, PeekRequest, SnapshotReader};
use plan::{DataflowDesc, Export, Import, PeekPlan};
use repr::error::state;
use repr::{Deltas, GlobalId, SqlError, Timestamp};
use std::collections::BTreeMap;
use std::sync::Arc;

#[derive(Default)]
pub struct Reads {
    /// Reads and subscriptions that wait for a source's snapshot, or for their time to be closed.
    waiting: Vec<(ReadRequest, Answer<ReadStarted>)>,
    waiting_subscribes: Vec<(SubscribeRequest, Answer<SubscribeStarted>)>,
    waiting_holds: Vec<(Vec<GlobalId>, Answer<Timestamp>)>,
    /// The times that they wait for.
    timed: Vec<Timestamp>,
    /// Running reads by token: is it a dataflow, is it a subscription, and the relations read.
    running: BTreeMap<GlobalId, Running>,
    next_token: u64,
}

struct Running {
    kind: Kind,
    relations: Vec<GlobalId>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Peek,
    Dataflow,
    Subscribe,
}

/// Ids of one-off dataflows lie above all catalog ids.
const TOKEN_BASE: u64 = 1 << 48;

impl Reads {
    fn token(&mut self) -> GlobalId {
        self.next_token += 1;
        GlobalId(TOKEN_BASE + self.next_token)
    }
    /// Whether someone watches time go by.
    pub fn wants_time(&self) -> bool {
        self.running.values().any(|r| r.kind == Kind::Subscribe)
    }
    /// The next time at which a read wants to be answered that waits for it.
    pub fn awaited(&self) -> Option<Timestamp> {
        self.timed.iter().copied().min()
    }
}

/// A storage snapshot as the workers read it.
pub(super) struct ShardSnapshot(pub storage::Snapshot);

impl ShardSnapshot {
    pub(super) fn rows(&self) -> u64 {
        self.0.rows()
    }
}

impl SnapshotReader for ShardSnapshot {
    fn read(&self, part: usize, parts: usize, wanted: Option<&[bool]>) -> Box<dyn Iterator<Item = Result<Deltas, SqlError>> + Send> {
        self.0.read_columns(part, parts, wanted)
    }
    fn inserts_only(&self) -> bool {
        self.0.inserts_only()
    }
}

/// A table together with what a transaction is about to write to it.
struct WithOwn {
    table: Option<storage::Snapshot>,
    own: Vec<Changes>,
}

impl SnapshotReader for WithOwn {
    fn read(&self, part: usize, parts: usize, wanted: Option<&[bool]>) -> Box<dyn Iterator<Item = Result<Deltas, SqlError>> + Send> {
        let own: Vec<_> = self.own.iter().map(|c| c.read(part, parts)).collect();
        let table = self.table.iter().map(|t| t.read_columns(part, parts, wanted)).collect::<Vec<_>>();
        Box::new(table.into_iter().flatten().chain(own.into_iter().flatten()))
    }
    fn inserts_only(&self) -> bool {
        self.table.as_ref().is_none_or(storage::Snapshot::inserts_only) && !self.own.iter().any(Changes::removes)
    }
}

impl Coordinator {
    pub(super) fn start_read(&mut self, request: ReadRequest, answer: Answer<ReadStarted>) {
        if answer.is_closed() {
            return;
        }
        match self.is_ready(&request.relations, request.at) {
            Ok(true) => {
                let result = self.start_ready_read(&request);
                if let Err(Ok(started)) = answer.send(result) {
                    self.end_read(started.id);
                }
            }
            Ok(false) => self.reads.waiting.push((request, answer)),
            Err(e) => drop(answer.send(Err(e))),
        }
    }

    /// Whether every source below these relations has its snapshot, and time is closed through what is asked for.
    /// Errors: 42P01 if a relation is gone.
    fn is_ready(&mut self, relations: &[GlobalId], at: ReadAt) -> Result<bool, SqlError> {
        let catalog = self.catalog();
        for id in relations {
            if catalog.item(*id).is_none() {
                return Err(crate::vanished("a relation that the statement reads"));
            }
        }
        let mut ready = true;
        for shard in catalog.input_shards(relations.iter().copied()) {
            ready &= self.shard_is_ready(&catalog, shard)?;
        }
        if let ReadAt::AsOf(t) | ReadAt::Block(t) | ReadAt::AtLeast(t) = at {
            if t > self.closed {
                self.advance_time();
            }
            if t > self.closed {
                self.reads.timed.push(t);
                return Ok(false);
            }
        }
        Ok(ready)
    }

    /// Errors: 55000 if its source has failed before its snapshot.
    fn shard_is_ready(&self, catalog: &Catalog, shard: GlobalId) -> Result<bool, SqlError> {
        let Some(item) = catalog.item(shard) else { return Ok(true) };
        let Some(source) = source_of(item) else { return Ok(true) };
        if self.sources.snapshot_done(source, shard) {
            return Ok(true);
        }
        match self.sources.failure(source) {
            Some(why) => {
                Err(SqlError::new(state::OBJECT_NOT_IN_PREREQUISITE_STATE, format!("source of \"{}\" failed before its snapshot was complete", item.name))
                    .with_detail(why))
            }
            None => Ok(false),
        }
    }

    /// Starts the reads whose sources have become readable.
    pub(super) fn wake_reads(&mut self) {
        self.reads.timed.clear();
        for (request, answer) in std::mem::take(&mut self.reads.waiting_subscribes) {
            self.start_subscribe(request, answer);
        }
        for (relations, answer) in std::mem::take(&mut self.reads.waiting_holds) {
            self.start_hold(relations, answer);
        }
        for (request, answer) in std::mem::take(&mut self.reads.waiting) {
            self.start_read(request, answer);
        }
    }

    /// The time of a read of `relations`, of which everything that serves it is readable from `oldest` on.
    /// Errors: 22023 if it is not readable, 40001 if it is a block's and a source has got its snapshot since.
    fn read_time(&mut self, at: ReadAt, relations: &[GlobalId], oldest: Timestamp) -> Result<Timestamp, SqlError> {
        let (t, block) = match at {
            ReadAt::Latest => {
                if self.planner.any_temporal() {
                    self.advance_time();
                }
                return Ok(self.closed);
            }
            ReadAt::AtLeast(t) => return Ok(t.max(oldest).max(self.snapshot_of(relations).map_or(0, |s| s.0))),
            ReadAt::AsOf(t) => (t, false),
            ReadAt::Block(t) => (t, true),
        };
        let refused = || SqlError::new(state::INVALID_PARAMETER_VALUE, format!("timestamp {t} is not readable"));
        match self.snapshot_of(relations).filter(|s| t < s.0) {
            Some((_, what)) if block => {
                let e = SqlError::new(state::SERIALIZATION_FAILURE, format!("could not serialize access: {what} has got its first rows meanwhile"));
                Err(e.with_hint("The transaction might succeed if retried."))
            }
            Some((from, what)) => Err(refused().with_detail(format!("{what} has its first rows since {from}"))),
            None if t < oldest => Err(refused().with_detail(format!("times from {oldest} to {} can be read", self.closed))),
            None => Ok(t),
        }
    }

    /// The last time at which a snapshot became complete that these relations are made from, and of what: before it they would seem empty.
    fn snapshot_of(&self, relations: &[GlobalId]) -> Option<(Timestamp, String)> {
        let catalog = self.catalog();
        let shards = catalog.input_shards(relations.iter().copied());
        let items = shards.into_iter().filter_map(|id| catalog.item(id));
        let of = |i: &Arc<Item>| Some((self.sources.snapshot_at(source_of(i)?, i.id)?, i.told()));
        items.filter_map(of).max_by_key(|s| s.0)
    }

    /// Keeps everything readable as it is once these relations can be read: a source that has no snapshot yet would seem empty.
    pub(super) fn start_hold(&mut self, relations: Vec<GlobalId>, answer: Answer<Timestamp>) {
        if answer.is_closed() {
            return;
        }
        match self.is_ready(&relations, ReadAt::Latest) {
            Ok(true) => {
                let at = self.closed;
                *self.holds.entry(at).or_insert(0) += 1;
                if answer.send(Ok(at)).is_err() {
                    self.release_hold(at);
                }
            }
            Ok(false) => self.reads.waiting_holds.push((relations, answer)),
            Err(e) => drop(answer.send(Err(e))),
        }
    }

    /// The first time at which everything that `imports` name is readable.
    fn oldest(&self, imports: &[Import]) -> Timestamp {
        imports
            .iter()
            .map(|i| match i {
                Import::Shard { id, .. } => self.store.since(*id).unwrap_or(0),
                Import::Arrangement { index, .. } => self.indexes.get(index).map_or(0, |s| s.since),
            })
            .max()
            .unwrap_or(0)
    }

    fn start_ready_read(&mut self, request: &ReadRequest) -> Result<ReadStarted, SqlError> {
        let id = self.reads.token();
        let at;
        let kind;
        let rows;
        match &request.plan {
            PeekPlan::Constant { .. } => return Err(SqlError::internal("a constant needs no read")),
            PeekPlan::Arrangement { index, keys, mfp, types, .. } => {
                let since = self.indexes.get(index).map(|s| s.since).ok_or_else(|| crate::vanished("an index"))?;
                at = self.read_time(request.at, &request.relations, since)?;
                rows = self.router.add_peek(id);
                kind = Kind::Peek;
                self.cluster.send(Command::Peek(Arc::new(PeekRequest {
                    id,
                    index: *index,
                    at,
                    keys: keys.clone(),
                    mfp: mfp.clone(),
                    types: types.clone(),
                    limit: request.limit,
                    ctx: Arc::new(DataflowCtx((*request.ctx).clone())),
                })));
            }
            PeekPlan::Dataflow(lir) => {
                let (lir, imports) = (lir.clone(), request.imports.clone());
                self.check_imports(&imports)?;
                at = self.read_time(request.at, &request.relations, self.oldest(&imports))?;
                rows = self.router.add_peek(id);
                kind = Kind::Dataflow;
                let desc = DataflowDesc {
                    name: format!("peek {id}"),
                    as_of: at,
                    until: Some(at + 1),
                    imports,
                    builds: vec![(id, lir)],
                    exports: vec![Export::PeekOnce { id, on: id }],
                    ctx: request.ctx.clone(),
                    quarantine: vec![],
                };
                if let Err(e) = self.create_dataflow_with(id, desc, &request.own) {
                    self.router.remove(id);
                    return Err(e);
                }
            }
        }
        self.reads.running.insert(id, Running { kind, relations: request.relations.clone() });
        Ok(ReadStarted { id, at, rows })
    }

    /// Errors: the statement is to be planned again if an arrangement that the plan imports was dropped since.
    fn check_imports(&self, imports: &[Import]) -> Result<(), SqlError> {
        for import in imports {
            if let Import::Arrangement { index, .. } = import {
                if !self.indexes.contains_key(index) {
                    return Err(crate::vanished("an index"));
                }
            }
        }
        Ok(())
    }

    /// Arrangements of a relation that are complete enough to be imported: (index, key).
    pub(super) fn indexes_on(&self, on: GlobalId) -> Vec<(GlobalId, Vec<expr::Scalar>)> {
        self.indexes.iter().filter(|(_, s)| s.on == on).map(|(id, s)| (*id, s.key.clone())).collect()
    }

    /// Sends a dataflow to the workers with the snapshots of the shards it imports.
    pub(super) fn create_dataflow(&mut self, id: GlobalId, desc: DataflowDesc) -> Result<(), SqlError> {
        self.create_dataflow_with(id, desc, &[])
    }

    /// `own`: what a transaction is about to write to some of the shards.
    fn create_dataflow_with(&mut self, id: GlobalId, desc: DataflowDesc, own: &[Own]) -> Result<(), SqlError> {
        let mut shards: Vec<(GlobalId, Arc<dyn SnapshotReader>)> = Vec::new();
        let mut past: Vec<(Timestamp, GlobalId, Deltas)> = Vec::new();
        for import in &desc.imports {
            if let Import::Shard { id, .. } = import {
                if let Some(own) = own.iter().find(|o| o.table == *id) {
                    let table = if own.made { None } else { Some(self.store.snapshot(*id, desc.as_of)?) };
                    shards.push((*id, Arc::new(WithOwn { table, own: own.changes.clone() })));
                    continue;
                }
                let snapshot = self.store.snapshot(*id, desc.as_of)?;
                shards.push((*id, Arc::new(ShardSnapshot(snapshot))));
                // What went by since `as_of`; while the system starts, all ticks since are still to come.
                if self.hydrated && desc.as_of < self.closed {
                    past.extend(self.store.changes(*id, desc.as_of)?.into_iter().map(|(t, d)| (t, *id, d)));
                }
            }
        }
        if !past.is_empty() {
            past.sort_by_key(|p| p.0);
            self.cluster.send(Command::CatchUp { id, ticks: Arc::new(past) });
        }
        let statement = !desc.exports.iter().any(|e| matches!(e, Export::Arrangement { .. }));
        let holder = self.shared.guard.begins(id, statement, desc.as_of, desc.ctx.interrupt.clone());
        self.cluster.send(Command::CreateDataflow { id, desc: Arc::new(desc), shards, holder });
        Ok(())
    }

    pub(super) fn start_subscribe(&mut self, request: SubscribeRequest, answer: Answer<SubscribeStarted>) {
        if answer.is_closed() {
            return;
        }
        match self.is_ready(&request.relations, request.at) {
            Ok(true) => {
                let result = self.start_ready_subscribe(request);
                if let Err(Ok(started)) = answer.send(result) {
                    self.end_read(started.id);
                }
            }
            Ok(false) => self.reads.waiting_subscribes.push((request, answer)),
            Err(e) => drop(answer.send(Err(e))),
        }
    }

    fn start_ready_subscribe(&mut self, request: SubscribeRequest) -> Result<SubscribeStarted, SqlError> {
        let id = self.reads.token();
        let optimize::Dataflow { lir, imports, .. } = self.planner.physical(&self.catalog(), &request.mir, &request.ctx, &|id| self.indexes_on(id))?;
        let as_of = self.read_time(request.at, &request.relations, self.oldest(&imports))?;
        if let Some(end) = request.up_to.filter(|end| *end <= as_of) {
            let e = SqlError::new(state::INVALID_PARAMETER_VALUE, format!("the subscription would end (UP TO {end}) no later than it begins ({as_of})"));
            return Err(e.with_hint("without AS OF it begins now"));
        }
        let desc = DataflowDesc {
            name: format!("subscribe {id}"),
            as_of,
            until: request.up_to,
            imports,
            builds: vec![(id, lir)],
            exports: vec![Export::Subscribe { id, on: id, with_snapshot: request.with_snapshot, up_to: request.up_to }],
            ctx: request.ctx.clone(),
            quarantine: vec![],
        };
        let updates = self.router.add_subscriber(id);
        if let Err(e) = self.create_dataflow(id, desc) {
            self.router.remove(id);
            return Err(e);
        }
        self.reads.running.insert(id, Running { kind: Kind::Subscribe, relations: request.relations });
        Ok(SubscribeStarted { id, as_of, updates })
    }

    /// The session has its rows, or wants no more.
    pub(super) fn end_read(&mut self, id: GlobalId) {
        self.router.remove(id);
        match self.reads.running.remove(&id).map(|r| r.kind) {
            Some(Kind::Peek) => self.cluster.send(Command::CancelPeek { id }),
            Some(Kind::Dataflow | Kind::Subscribe) => self.end_dataflow(id),
            None => {}
        }
    }

    pub(super) fn end_dataflow(&mut self, id: GlobalId) {
        self.shared.guard.ends(id);
        self.cluster.send(Command::DropDataflow { id });
    }

    pub(super) fn is_running(&self, id: GlobalId) -> bool {
        self.reads.running.contains_key(&id)
    }

    /// Ends a read or subscription with an error.
    pub(super) fn fail_read(&mut self, token: GlobalId, e: SqlError) {
        self.router.end_subscriber(token, e.clone());
        self.router.end_peek(token, e);
        self.end_read(token);
    }

    /// Reads and subscriptions of these end with an error.
    pub(super) fn fail_reads_of(&mut self, ids: &[GlobalId], e: &SqlError) {
        let reads = |r: &Running| r.relations.iter().any(|id| ids.contains(id));
        let touched: Vec<GlobalId> = self.reads.running.iter().filter(|(_, r)| reads(r)).map(|r| *r.0).collect();
        touched.into_iter().for_each(|token| self.fail_read(token, e.clone()));
    }

    /// Objects go: subscriptions and reads of them end with a clear error.
    pub(super) fn end_reads_of(&mut self, dropped: &[GlobalId], catalog: &Catalog, after: &Catalog) {
        let touched: Vec<(GlobalId, GlobalId)> =
            self.reads.running.iter().filter_map(|(token, r)| Some((*token, *r.relations.iter().find(|id| dropped.contains(id))?))).collect();
        for (token, gone) in touched {
            let item = catalog.item(gone);
            let name = item.map_or_else(|| gone.to_string(), |i| format!("{} \"{}\"", i.noun(), i.name));
            // Altered or replaced: another object has its name.
            let anew = item.is_some_and(|i| after.find(&i.schema, i.namespace(), &i.name).is_some());
            let what = if anew { "altered or replaced, or what it is made from" } else { "dropped" };
            let e = SqlError::new(state::OBJECT_NOT_IN_PREREQUISITE_STATE, format!("{name} was {what}"));
            let e = if anew { e.with_hint("Subscribe again; the first rows are those that it has then.") } else { e };
            self.router.end_subscriber(token, e);
            self.router.end_peek(token, crate::vanished(&name));
            self.end_read(token);
        }
    }

    /// Ends what belonged to sessions that vanished.
    pub(super) fn end_idle_reads(&mut self) {
        let gone: Vec<GlobalId> = self.reads.running.keys().copied().filter(|id| self.router.is_abandoned(*id)).collect();
        for id in gone {
            self.end_read(id);
        }
        self.reads.waiting.retain(|(_, answer)| !answer.is_closed());
        self.reads.waiting_subscribes.retain(|(_, answer)| !answer.is_closed());
        self.reads.waiting_holds.retain(|(_, answer)| !answer.is_closed());
    }
}

/// The source that feeds a relation.
fn source_of(item: &Item) -> Option<GlobalId> {
    match &item.kind {
        ItemKind::SourceTable { source, .. } => Some(*source),
        ItemKind::Source(_) => Some(item.id),
        _ => None,
    }
}
