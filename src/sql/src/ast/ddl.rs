//! CREATE, ALTER, DROP as written.

use super::{Expr, Ident, ObjectName, OrderBy, Pos, Query, Span, TypeName};

#[derive(Clone, Debug, PartialEq)]
pub struct CreateTable {
    pub name: ObjectName,
    pub if_not_exists: bool,
    pub temporary: bool,
    pub columns: Vec<ColumnDef>,
    pub constraints: Vec<TableConstraint>,
    pub like: Vec<Like>,
    pub options: Vec<DdlOption>,
    pub on_commit: OnCommit,
}

/// What becomes of a temporary table's rows when the transaction commits, or of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum OnCommit {
    #[default]
    Preserve,
    Delete,
    Drop,
}

#[derive(Clone, Debug, PartialEq)]
pub struct ColumnDef {
    pub name: Ident,
    pub ty: TypeName,
    pub not_null: bool,
    /// NULL was written.
    pub null: bool,
    pub default: Option<(Expr, Span)>,
    /// The first of its constraints that does not go with those before it: what is wrong, and where.
    pub conflict: Option<(&'static str, Pos)>,
    pub primary_key: bool,
    pub unique: bool,
    pub checks: Vec<(Option<String>, Expr, Span)>,
    /// GENERATED … AS IDENTITY.
    pub identity: Option<Identity>,
    /// GENERATED ALWAYS AS (…) STORED.
    pub generated: Option<(Expr, Span)>,
    /// REFERENCES, each with the constraint's name.
    pub references: Vec<(Option<String>, References)>,
    /// Names given to the column's PRIMARY KEY and UNIQUE.
    pub primary_name: Option<String>,
    /// Where PRIMARY KEY is said a second time.
    pub second_primary: Option<Pos>,
    pub unique_name: Option<String>,
    pub primary_when: ConstraintTime,
    pub unique_when: ConstraintTime,
    /// UNIQUE NULLS NOT DISTINCT.
    pub equal_nulls: bool,
}

impl ColumnDef {
    /// Notes what is wrong, if anything is and nothing was before.
    pub fn contradict(&mut self, what: Option<&'static str>, pos: Pos) {
        self.conflict = self.conflict.or(what.map(|w| (w, pos)));
    }
}

/// `LIKE other INCLUDING …`.
#[derive(Clone, Debug, PartialEq)]
pub struct Like {
    pub name: ObjectName,
    /// Columns that are written before it.
    pub after: usize,
    pub defaults: bool,
    pub constraints: bool,
    pub indexes: bool,
    pub identity: bool,
    pub generated: bool,
    pub comments: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Identity {
    /// GENERATED ALWAYS, else BY DEFAULT.
    pub always: bool,
    pub options: SequenceOptions,
    pub pos: Pos,
}

/// What CREATE and ALTER SEQUENCE and identity columns say, each if it is said.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct SequenceOptions {
    pub ty: Option<TypeName>,
    pub increment: Option<i64>,
    pub start: Option<i64>,
    /// `Some(None)`: NO MINVALUE.
    pub min: Option<Option<i64>>,
    pub max: Option<Option<i64>>,
    pub cycle: Option<bool>,
    pub cache: Option<i64>,
    /// RESTART [WITH n].
    pub restart: Option<Option<i64>>,
    /// `Some(None)`: OWNED BY NONE; else a column's full name.
    pub owned_by: Option<Option<ObjectName>>,
    pub name: Option<ObjectName>,
}

/// One change of ALTER TABLE.
#[derive(Clone, Debug, PartialEq)]
pub enum TableAction {
    AddColumn {
        column: ColumnDef,
        if_not_exists: bool,
    },
    DropColumn {
        column: Ident,
        if_exists: bool,
        cascade: bool,
    },
    AddConstraint(TableConstraint),
    ValidateConstraint(Ident),
    AlterConstraint(Ident, ConstraintTime),
    DropConstraint {
        name: Ident,
        if_exists: bool,
        cascade: bool,
    },
    SetDefault(Ident, Expr, Span),
    DropDefault(Ident),
    SetNotNull(Ident),
    DropNotNull(Ident),
    SetType {
        column: Ident,
        ty: TypeName,
        using: Option<Expr>,
    },
    AddIdentity(Ident, Identity),
    /// SET GENERATED ALWAYS or BY DEFAULT, and changes to the sequence.
    SetIdentity {
        column: Ident,
        always: Option<bool>,
        options: SequenceOptions,
    },
    DropIdentity {
        column: Ident,
        if_exists: bool,
    },
    DropExpression {
        column: Ident,
        if_exists: bool,
    },
    /// How rows lie in PostgreSQL's files, which means nothing here.
    Storage(StorageChange),
}

/// What a change of storage names: it must be there.
#[derive(Clone, Debug, PartialEq)]
pub enum StorageChange {
    /// SET STATISTICS and options of a column.
    Column(Ident),
    /// SET STORAGE, or (true) COMPRESSION, and what it is to be.
    Stored(Ident, bool, String),
    /// CLUSTER ON.
    Index(Ident),
    /// REPLICA IDENTITY USING INDEX.
    Identity(Ident),
    Tablespace(Ident),
    /// SET (parameters).
    Parameters(Vec<DdlOption>),
    /// RESET (parameters).
    Reset(Vec<String>),
    /// SET WITHOUT CLUSTER or OIDS, LOGGED, UNLOGGED, REPLICA IDENTITY of other kinds.
    Bare,
}

#[derive(Clone, Debug, PartialEq)]
pub struct AlterTable {
    /// ALTER VIEW.
    pub of_view: bool,
    pub name: ObjectName,
    pub if_exists: bool,
    pub actions: Vec<TableAction>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct TableConstraint {
    pub name: Option<String>,
    pub kind: ConstraintKind,
    pub when: ConstraintTime,
    /// NOT VALID: the rows that are there are not looked at.
    pub not_valid: bool,
    pub pos: Pos,
}

/// When a constraint is tested: after each statement, or, if it may be put off, at the commit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConstraintTime {
    pub deferrable: bool,
    /// INITIALLY DEFERRED.
    pub deferred: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub enum ConstraintKind {
    PrimaryKey(KeyColumns),
    /// With NULLS NOT DISTINCT, if it says so.
    Unique(KeyColumns, bool),
    /// PRIMARY KEY (true) or UNIQUE, by an index that there is.
    UsingIndex(bool, Ident),
    Check(Expr, Span),
    ForeignKey(Vec<Ident>, Box<References>),
    Exclude,
}

/// `(columns) [INCLUDE (columns)]` of a key.
#[derive(Clone, Debug, PartialEq)]
pub struct KeyColumns {
    pub columns: Vec<Ident>,
    /// What its index holds beside the key.
    pub include: Vec<Ident>,
}

/// REFERENCES of a foreign key.
#[derive(Clone, Debug, PartialEq)]
pub struct References {
    pub table: ObjectName,
    /// Empty: its primary key.
    pub columns: Vec<Ident>,
    pub full: bool,
    pub on_delete: ForeignAction,
    pub on_update: ForeignAction,
    /// ON DELETE SET NULL (…): only these columns.
    pub set_columns: Vec<Ident>,
    pub when: ConstraintTime,
    pub pos: Pos,
}

/// What becomes of rows that refer to a key which goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ForeignAction {
    NoAction,
    Restrict,
    Cascade,
    SetNull,
    SetDefault,
}

/// `NAME [=] value` in WITH (…), connection and source option lists.
#[derive(Clone, Debug, PartialEq)]
pub struct DdlOption {
    /// Lower case, words separated by one blank: `start offset`.
    pub name: String,
    pub value: OptionValue,
    pub pos: Pos,
}

#[derive(Clone, Debug, PartialEq)]
pub enum OptionValue {
    None,
    String(String),
    Number(String),
    Bool(bool),
    Word(String),
    Secret(ObjectName),
    Name(ObjectName),
    List(Vec<OptionValue>),
    Interval(String),
}

/// `query`: what follows AS.
#[derive(Clone, Debug, PartialEq)]
pub struct CreateTableAs<Q = Box<Query>> {
    pub name: ObjectName,
    pub if_not_exists: bool,
    pub columns: Vec<Ident>,
    pub query: Q,
    pub with_data: bool,
    pub on_commit: OnCommit,
}

#[derive(Clone, Debug, PartialEq)]
pub struct CreateView {
    pub name: ObjectName,
    pub materialized: bool,
    pub or_replace: bool,
    pub if_not_exists: bool,
    pub temporary: bool,
    pub columns: Vec<Ident>,
    pub options: Vec<DdlOption>,
    pub query: Box<Query>,
    /// WITH CHECK OPTION: LOCAL or CASCADED.
    pub check: Option<&'static str>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct CreateIndex {
    pub name: Option<Ident>,
    pub if_not_exists: bool,
    pub concurrently: bool,
    pub default: bool,
    pub unique: bool,
    pub on: ObjectName,
    /// Only `btree` and `arrangement` are known.
    pub method: Option<String>,
    /// Empty for a default index.
    pub keys: Vec<(OrderBy, Span)>,
    /// Operator classes that keys name: all find equal rows alike.
    pub opclasses: Vec<(usize, ObjectName)>,
    pub include: Vec<Ident>,
    pub equal_nulls: bool,
    pub filter: Option<(Expr, Span)>,
    pub options: Vec<DdlOption>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct CreateType {
    pub name: ObjectName,
    pub body: TypeBody,
}

#[derive(Clone, Debug, PartialEq)]
pub enum TypeBody {
    Enum(Vec<String>),
    Composite(Vec<(Ident, TypeName)>),
    /// `subtype = int4` and its like; every value reads as a type's name.
    Range(Vec<(Ident, TypeName)>),
    Domain {
        base: TypeName,
        not_null: bool,
        default: Option<(Expr, Span)>,
        checks: Vec<(Option<String>, Expr, Span)>,
    },
}

#[derive(Clone, Debug, PartialEq)]
pub struct CreateConnection {
    pub name: ObjectName,
    pub if_not_exists: bool,
    pub or_replace: bool,
    /// `kafka`, `confluent schema registry`, `postgres`, `mysql`.
    pub kind: String,
    pub options: Vec<DdlOption>,
    pub with: Vec<DdlOption>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct CreateSource {
    pub name: ObjectName,
    pub if_not_exists: bool,
    pub columns: Vec<ColumnDef>,
    pub constraints: Vec<TableConstraint>,
    /// WATERMARK FOR column AS expression.
    pub watermark: Option<(Ident, Expr, Span)>,
    pub from: SourceFrom,
    pub formats: Formats,
    pub include: Vec<Include>,
    pub envelope: Option<String>,
    pub tables: SourceTables,
    pub with: Vec<DdlOption>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum SourceFrom {
    Kafka {
        connection: ObjectName,
        options: Vec<DdlOption>,
    },
    Postgres {
        connection: ObjectName,
        options: Vec<DdlOption>,
    },
    MySql {
        connection: ObjectName,
        options: Vec<DdlOption>,
    },
    /// Upper-case name of the generator with words separated by blanks.
    Generator {
        kind: String,
        options: Vec<DdlOption>,
    },
    File {
        options: Vec<DdlOption>,
    },
}

#[derive(Clone, Debug, PartialEq, Default)]
pub struct Formats {
    pub key: Option<FormatSpec>,
    pub value: Option<FormatSpec>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum FormatSpec {
    Json,
    Text,
    Bytes,
    Csv { columns: Option<usize>, header: bool, delimiter: Option<char> },
}

/// INCLUDE KEY | PARTITION | OFFSET | TIMESTAMP | HEADERS | HEADER 'x' [AS name].
#[derive(Clone, Debug, PartialEq)]
pub struct Include {
    pub what: IncludeKind,
    pub alias: Option<Ident>,
    pub pos: Pos,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IncludeKind {
    Key,
    Partition,
    Offset,
    Timestamp,
    Headers,
    Header(String),
    Path,
}

/// Which upstream tables become relations with the source.
#[derive(Clone, Debug, PartialEq)]
pub enum SourceTables {
    None,
    All,
    Schemas(Vec<String>),
    /// (upstream name, name here).
    Tables(Vec<(ObjectName, Option<ObjectName>)>),
}

#[derive(Clone, Debug, PartialEq)]
pub struct CreateTableFromSource {
    pub name: ObjectName,
    pub if_not_exists: bool,
    pub columns: Vec<ColumnDef>,
    pub source: ObjectName,
    pub reference: Option<ObjectName>,
    pub options: Vec<DdlOption>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct CreateSink {
    pub name: ObjectName,
    pub if_not_exists: bool,
    pub from: ObjectName,
    /// `kafka` or `postgres`.
    pub into: String,
    pub connection: ObjectName,
    pub options: Vec<DdlOption>,
    pub key: Vec<Ident>,
    pub formats: Formats,
    pub envelope: Option<String>,
    pub with: Vec<DdlOption>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ObjectKind {
    Table,
    View,
    MaterializedView,
    Index,
    Source,
    Sink,
    Connection,
    Secret,
    Subscription,
    Schema,
    Database,
    Type,
    Domain,
    Role,
    Column,
    Sequence,
    Function,
    Procedure,
    Aggregate,
    Routine,
    Cluster,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Drop {
    pub kind: ObjectKind,
    pub names: Vec<ObjectName>,
    /// Of functions and their like, the argument types of each that tells them.
    pub arguments: Vec<Option<Vec<TypeName>>>,
    pub if_exists: bool,
    pub cascade: bool,
    pub concurrently: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Alter {
    pub kind: ObjectKind,
    pub name: ObjectName,
    pub if_exists: bool,
    pub action: AlterAction,
}

/// ALTER TYPE and ALTER DOMAIN.
#[derive(Clone, Debug, PartialEq)]
pub struct AlterType {
    pub kind: ObjectKind,
    pub name: ObjectName,
    pub action: AlterTypeAction,
}

/// A change to the attributes of a composite type.
#[derive(Clone, Debug, PartialEq)]
pub enum AttributeAction {
    Add(Ident, TypeName),
    Drop { name: Ident, if_exists: bool },
    Type(Ident, TypeName),
}

#[derive(Clone, Debug, PartialEq)]
pub enum AlterTypeAction {
    Rename(Ident),
    SetSchema(Ident),
    OwnerTo(String),
    /// `place`: before (or after) which label; else last.
    AddValue {
        label: String,
        if_not_exists: bool,
        place: Option<(bool, String)>,
    },
    RenameValue {
        from: String,
        to: String,
    },
    RenameAttribute {
        from: Ident,
        to: Ident,
    },
    Attributes(Vec<AttributeAction>),
    NotNull(bool),
    Default(Option<(Expr, Span)>),
    /// `valid`: the values that there are must satisfy it.
    AddCheck {
        name: Option<String>,
        check: Expr,
        span: Span,
        valid: bool,
    },
    DropCheck {
        name: Ident,
        if_exists: bool,
    },
    RenameCheck {
        from: Ident,
        to: Ident,
    },
    Validate(Ident),
}

#[derive(Clone, Debug, PartialEq)]
pub enum AlterAction {
    Rename(Ident),
    RenameColumn(Ident, Ident),
    SetSchema(Ident),
    SetOptions(Vec<DdlOption>),
    ResetOptions(Vec<String>),
    OwnerTo(String),
    RenameConstraint(Ident, Ident),
    SetSecret(String),
    Other(Pos),
}
