//! Statements as written.

use super::*;

#[derive(Clone, Debug, PartialEq)]
pub enum Statement {
    Select(Box<Query>),
    Insert(Box<Insert>),
    Update(Box<Update>),
    Delete(Box<Delete>),
    Merge(Box<Merge>),
    Truncate {
        names: Vec<ObjectName>,
        restart_identity: bool,
        cascade: bool,
    },
    /// REFRESH MATERIALIZED VIEW.
    Refresh(ObjectName),
    /// LOCK TABLE, in whatever mode.
    Lock(Vec<ObjectName>),
    Subscribe(Box<Subscribe>),
    Copy(Box<Copy>),
    CreateTable(Box<CreateTable>),
    CreateTableAs(Box<CreateTableAs>),
    /// AS EXECUTE: the prepared statement, and its arguments.
    CreateTableExecute(Box<CreateTableAs<(Ident, Vec<Expr>)>>),
    CreateView(Box<CreateView>),
    CreateIndex(Box<CreateIndex>),
    CreateSchema {
        name: Ident,
        if_not_exists: bool,
        /// AUTHORIZATION.
        owner: Option<String>,
        /// What is made in it, each a CREATE.
        elements: Vec<(Statement, Span)>,
    },
    CreateDatabase {
        name: Ident,
        if_not_exists: bool,
    },
    CreateExtension {
        name: Ident,
        if_not_exists: bool,
    },
    CreateType(Box<CreateType>),
    CreateSecret {
        name: ObjectName,
        if_not_exists: bool,
        value: Expr,
    },
    CreateConnection(Box<CreateConnection>),
    CreateSource(Box<CreateSource>),
    CreateTableFromSource(Box<CreateTableFromSource>),
    CreateSink(Box<CreateSink>),
    CreateSubscription {
        name: ObjectName,
        if_not_exists: bool,
        relation: ObjectName,
        options: Vec<DdlOption>,
    },
    ValidateConnection(ObjectName),
    ReplayErrors(ObjectName),
    Acknowledge {
        name: ObjectName,
        at: Expr,
    },
    Drop(Box<Drop>),
    Alter(Box<Alter>),
    AlterTable(Box<AlterTable>),
    CreateSequence {
        name: ObjectName,
        if_not_exists: bool,
        temporary: bool,
        options: SequenceOptions,
    },
    AlterSequence {
        name: ObjectName,
        if_exists: bool,
        options: SequenceOptions,
    },
    AlterType(Box<AlterType>),
    Comment {
        kind: ObjectKind,
        name: ObjectName,
        /// COMMENT ON CONSTRAINT: which one of the table, or domain, that is named.
        constraint: Option<Ident>,
        text: Option<String>,
    },
    /// With the tag: `BEGIN` or `START TRANSACTION`.
    Begin(&'static str, Vec<TransactionMode>),
    SetTransaction {
        session: bool,
        modes: Vec<TransactionMode>,
    },
    /// `names` None: ALL.
    SetConstraints {
        names: Option<Vec<ObjectName>>,
        deferred: bool,
    },
    Commit {
        chain: bool,
    },
    Rollback {
        chain: bool,
    },
    PrepareTransaction,
    /// COMMIT PREPARED and ROLLBACK PREPARED.
    FinishPrepared {
        word: &'static str,
        name: String,
    },
    Checkpoint,
    Reindex(Box<Reindex>),
    Savepoint(Ident),
    ReleaseSavepoint(Ident),
    RollbackTo(Ident),
    Set {
        local: bool,
        name: String,
        value: SetValue,
    },
    ShowVariable(String),
    ShowObjects(Box<ShowObjects>),
    ShowCreate {
        kind: ObjectKind,
        name: ObjectName,
    },
    Reset(Option<String>),
    Discard(DiscardKind),
    Prepare(Box<Prepare>),
    Execute {
        name: Ident,
        args: Vec<Expr>,
    },
    Deallocate(Option<Ident>),
    Declare(Box<Declare>),
    Fetch(Box<Fetch>),
    Close(Option<Ident>),
    Explain(Box<Explain>),
    /// `DO [LANGUAGE language] code`.
    Do {
        code: String,
        language: Option<Ident>,
    },
    /// A statement that Postgres has and we do not: its name.
    Unsupported(String),
}

#[derive(Clone, Debug, PartialEq)]
pub struct Insert {
    pub with: Option<With>,
    pub table: ObjectName,
    pub alias: Option<Ident>,
    pub columns: Vec<AssignTarget>,
    /// OVERRIDING SYSTEM VALUE (true) or USER VALUE.
    pub overriding: Option<bool>,
    pub source: InsertSource,
    pub on_conflict: Option<OnConflict>,
    pub returning: Vec<Target>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum InsertSource {
    DefaultValues,
    Query(Box<Query>),
}

#[derive(Clone, Debug, PartialEq)]
pub struct OnConflict {
    /// What the key is made of; empty if nothing is said.
    pub target: Vec<Expr>,
    /// WHERE of a partial index.
    pub filter: Option<Expr>,
    pub constraint: Option<Ident>,
    pub action: ConflictAction,
    pub pos: Pos,
}

#[derive(Clone, Debug, PartialEq)]
pub enum ConflictAction {
    Nothing,
    Update { set: Vec<Assignment>, filter: Option<Expr> },
}

/// A column, or a part of one: `a[2]`, `p.x`.
#[derive(Clone, Debug, PartialEq)]
pub struct AssignTarget {
    pub column: Ident,
    pub path: Vec<Indirection>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Assignment {
    pub columns: Vec<AssignTarget>,
    /// For several columns: a row or a subquery.
    pub multi: bool,
    pub value: Expr,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Update {
    pub with: Option<With>,
    pub table: ObjectName,
    pub alias: Option<Ident>,
    pub set: Vec<Assignment>,
    pub from: Vec<TableRef>,
    pub filter: Option<Expr>,
    pub returning: Vec<Target>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Delete {
    pub with: Option<With>,
    pub table: ObjectName,
    pub alias: Option<Ident>,
    pub using: Vec<TableRef>,
    pub filter: Option<Expr>,
    pub returning: Vec<Target>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Merge {
    pub with: Option<With>,
    pub table: ObjectName,
    pub alias: Option<Ident>,
    pub source: TableRef,
    pub on: Expr,
    pub when: Vec<MergeWhen>,
    pub pos: Pos,
}

/// WHEN [NOT] MATCHED [AND condition] THEN action.
#[derive(Clone, Debug, PartialEq)]
pub struct MergeWhen {
    pub matched: bool,
    pub condition: Option<Expr>,
    pub action: MergeAction,
    pub pos: Pos,
}

#[derive(Clone, Debug, PartialEq)]
pub enum MergeAction {
    Nothing,
    Update(Vec<Assignment>),
    Delete,
    /// `values` None: DEFAULT VALUES.
    Insert {
        columns: Vec<AssignTarget>,
        overriding: Option<bool>,
        values: Option<Vec<Expr>>,
    },
}

#[derive(Clone, Debug, PartialEq)]
pub struct Subscribe {
    pub from: SubscribeFrom,
    pub as_of: Option<AsOf>,
    pub up_to: Option<Expr>,
    pub options: Vec<DdlOption>,
    pub output: SubscribeOutput,
    pub pos: Pos,
}

#[derive(Clone, Debug, PartialEq)]
pub enum SubscribeFrom {
    Relation(ObjectName),
    Query(Box<Query>),
}

#[derive(Clone, Debug, PartialEq)]
pub enum SubscribeOutput {
    Diffs,
    WithinTimestampOrderBy(Vec<OrderBy>),
    EnvelopeUpsert(Vec<Ident>),
    EnvelopeDebezium(Vec<Ident>),
}

#[derive(Clone, Debug, PartialEq)]
pub struct Copy {
    pub from: CopyFrom,
    pub to: bool,
    pub target: CopyTarget,
    pub options: Vec<DdlOption>,
    pub filter: Option<Expr>,
    pub pos: Pos,
}

#[derive(Clone, Debug, PartialEq)]
pub enum CopyFrom {
    Table(ObjectName, Vec<Ident>),
    Query(Box<Query>),
    Subscribe(Box<Subscribe>),
    /// A statement that writes, with its place: its RETURNING is copied.
    Modify(Box<Statement>, Pos),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CopyTarget {
    Stdin,
    Stdout,
    File(String),
    Program,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TransactionMode {
    /// `serializable`, `repeatable read`, `read committed`, `read uncommitted`, `strict serializable`.
    Isolation(String),
    ReadOnly,
    ReadWrite,
    Deferrable(bool),
}

#[derive(Clone, Debug, PartialEq)]
pub enum SetValue {
    Default,
    /// Words, strings and numbers as text, in a list.
    List(Vec<String>),
}

#[derive(Clone, Debug, PartialEq)]
pub struct ShowObjects {
    pub kind: ShowKind,
    /// IN or FROM schema, ON or FROM relation.
    pub from: Option<ObjectName>,
    pub like: Option<String>,
    pub filter: Option<Pos>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShowKind {
    Sources,
    Tables,
    Views,
    MaterializedViews,
    Indexes,
    Sinks,
    Schemas,
    Databases,
    Connections,
    Secrets,
    Columns,
    Objects,
    Subscriptions,
    Types,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiscardKind {
    All,
    Plans,
    Sequences,
    Temp,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Prepare {
    pub name: Ident,
    pub types: Vec<TypeName>,
    pub statement: Box<Statement>,
    pub span: Span,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Declare {
    pub name: Ident,
    pub hold: bool,
    pub scroll: Option<bool>,
    pub binary: bool,
    pub statement: Box<Statement>,
    pub span: Span,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Fetch {
    pub name: Ident,
    pub direction: FetchDirection,
    /// MOVE: no rows are returned.
    pub is_move: bool,
    pub options: Vec<DdlOption>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FetchDirection {
    /// Forward by n rows.
    Forward(u64),
    ForwardAll,
    /// Backward, absolute and relative positions: only scrollable cursors have them.
    Backward(u64),
    BackwardAll,
    Absolute(i64),
    Relative(i64),
}

#[derive(Clone, Debug, PartialEq)]
pub struct Explain {
    pub stage: ExplainStage,
    pub analyze: bool,
    pub options: Vec<DdlOption>,
    pub target: ExplainTarget,
    pub span: Span,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExplainStage {
    Raw,
    Decorrelated,
    Optimized,
    Physical,
    Timestamp,
    /// Plain EXPLAIN.
    Default,
}

#[derive(Clone, Debug, PartialEq)]
pub enum ExplainTarget {
    Statement(Box<Statement>),
    View(ObjectName),
    MaterializedView(ObjectName),
    Index(ObjectName),
}

/// `REINDEX kind [CONCURRENTLY] name`. `kind`: an index, a table, a schema, a database; None for SYSTEM.
#[derive(Clone, Debug, PartialEq)]
pub struct Reindex {
    pub kind: Option<ObjectKind>,
    pub name: ObjectName,
    pub concurrently: bool,
}
