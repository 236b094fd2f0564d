//! Requests and answers between sessions and the coordinator.

use super::foreign::Constraints;
use crate::catalog::{Catalog, Item};
use crate::changes::Changes;
use crate::coordinator::guard::Blamed;
use crate::coordinator::keys::OwnKeys;
use crate::coordinator::router::{PeekReceiver, SubscribeReceiver};
use crate::session::read_set::ReadSet;
use plan::{Mir, PeekPlan};
use repr::{Deltas, Diff, GlobalId, SqlError, Timestamp, Value};
use std::sync::Arc;
use tokio::sync::oneshot;

pub type Answer<T> = oneshot::Sender<Result<T, SqlError>>;

/// What the coordinator's thread is woken by.
pub enum Event {
    Request(Request),
    /// `done` is dropped when the event was taken in.
    Source {
        instance: u64,
        event: ingest::SourceEvent,
        done: crossbeam_channel::Sender<()>,
    },
    Frontier {
        index: GlobalId,
        upper: Timestamp,
        records: u64,
        bytes: u64,
    },
    /// Memory is short: a dataflow was told to let go of its own, or what is free is to go back to the system.
    Memory(Option<Blamed>),
    WorkerDied {
        worker: usize,
        message: String,
    },
}

pub enum Request {
    Read(ReadRequest, Answer<ReadStarted>),
    Subscribe(SubscribeRequest, Answer<SubscribeStarted>),
    EndRead(GlobalId),
    /// Keeps everything readable as it is now, or once these relations can be read, until released. Answers the time.
    Hold(Vec<GlobalId>, Answer<Timestamp>),
    ReleaseHold(Timestamp),
    Write(WriteTxn, Answer<Timestamp>),
    /// Whether these changes, with those that the transaction has made before, would break the table's keys. Answers with both together.
    CheckKeys(GlobalId, Vec<Deltas>, Constraints, OwnKeys, Answer<OwnKeys>),
    /// Whether these changes alone would break a key or a foreign key.
    CheckWrites(CheckWrites, Answer<()>),
    Introspect(oneshot::Sender<Introspection>),
    Shutdown(oneshot::Sender<()>),
}

/// What a transaction has written so far, to be looked at as if it were committed now.
pub struct CheckWrites {
    /// With the transaction's own changes.
    pub catalog: Arc<Catalog>,
    pub writes: Vec<(GlobalId, Changes)>,
    /// Tables whose foreign keys the transaction has changed: all their rows are looked at.
    pub altered: Vec<GlobalId>,
    pub deferred: Constraints,
    /// Those for which CASCADE and its like have changed rows.
    pub acted: Constraints,
}

/// A one-off query that needs the workers.
pub struct ReadRequest {
    pub plan: PeekPlan,
    /// What a dataflow of it imports.
    pub imports: Vec<plan::Import>,
    /// Relations that are read, for existence and readiness.
    pub relations: Vec<GlobalId>,
    pub at: ReadAt,
    pub ctx: Arc<expr::EvalCtx>,
    pub limit: Option<u64>,
    /// Changes of the reader's own transaction that are read with the relations.
    pub own: Vec<Own>,
}

/// A table's changes that no tick has named yet, to be read as if one had.
#[derive(Clone)]
pub struct Own {
    pub table: GlobalId,
    pub changes: Vec<Changes>,
    /// The transaction has made the table too: there is nothing else in it.
    pub made: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadAt {
    /// The latest closed time, which covers all that was acknowledged.
    Latest,
    /// Exactly this time.
    AsOf(Timestamp),
    /// The time at which the reader's block reads.
    Block(Timestamp),
    /// This time or, where that is no longer readable, the first that is.
    AtLeast(Timestamp),
}

pub struct ReadStarted {
    pub id: GlobalId,
    pub at: Timestamp,
    pub rows: PeekReceiver,
}

pub struct SubscribeRequest {
    pub mir: Mir,
    pub relations: Vec<GlobalId>,
    pub at: ReadAt,
    pub up_to: Option<Timestamp>,
    pub with_snapshot: bool,
    pub ctx: Arc<expr::EvalCtx>,
}

pub struct SubscribeStarted {
    pub id: GlobalId,
    pub as_of: Timestamp,
    pub updates: SubscribeReceiver,
}

/// A transaction's changes to the catalog and to tables, to be committed in one tick.
#[derive(Default)]
pub struct WriteTxn {
    /// Made before the writes.
    pub ddl: Vec<Op>,
    /// The version of the catalog that each of `ddl` was planned on: a change since to what it touches is a conflict. Those beyond the
    /// list conflict with nothing.
    pub ddl_bases: Vec<u64>,
    /// By table, in no order that matters: what counts is each table's sum.
    pub writes: Vec<(GlobalId, Changes)>,
    /// What was read, at `read_at`: a change to it since is a conflict.
    pub read_set: ReadSet,
    pub read_at: Option<Timestamp>,
    /// Foreign keys for which CASCADE and its like have changed rows.
    pub acted: Constraints,
}

/// One catalog change; several are applied in one tick.
#[derive(Clone)]
pub enum Op {
    CreateSchema {
        name: String,
        oid: u32,
    },
    CommentSchema {
        name: String,
        text: Option<String>,
    },
    CommentDatabase {
        text: Option<String>,
    },
    DropSchema {
        name: String,
    },
    /// `plan` for what is maintained: the optimized plan.
    Create {
        item: Box<Item>,
        plan: Option<Arc<Mir>>,
    },
    /// Drops these, in this order.
    Drop {
        ids: Vec<GlobalId>,
    },
    /// Replaces an entry by one with the same id (rename, comment, view text).
    Update {
        item: Box<Item>,
    },
}

#[derive(Clone, Debug, Default)]
pub struct Introspection {
    pub closed: Timestamp,
    pub indexes: Vec<IndexInfo>,
    pub sources: Vec<SourceInfo>,
}

#[derive(Clone, Debug)]
pub struct IndexInfo {
    pub id: GlobalId,
    pub on: GlobalId,
    pub since: Timestamp,
    pub upper: Timestamp,
    pub records: u64,
    pub bytes: u64,
    pub hydrated_ms: Option<u64>,
    /// Why it was stopped.
    pub stopped: Option<String>,
}

#[derive(Clone, Debug)]
pub struct SourceInfo {
    pub id: GlobalId,
    pub status: String,
    pub detail: Option<String>,
    pub position: Option<String>,
    pub rows: u64,
    pub statistics: Vec<(String, Value)>,
}

/// A row of a result with its multiplicity.
pub type CountedRow = (Vec<Value>, Diff);
