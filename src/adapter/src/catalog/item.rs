//! Catalog entries as they are stored: one JSON value an object.

use crate::settings::CapturedSettings;
use repr::{GlobalId, RelDesc, SqlType};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The version of the entries' form; a change comes with a migration.
pub const ITEM_VERSION: u32 = 1;

/// A named object.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Item {
    pub version: u32,
    pub id: GlobalId,
    pub schema: String,
    pub name: String,
    pub kind: ItemKind,
    /// Columns of a relation; empty for other objects.
    pub desc: RelDesc,
    /// The CREATE statement as `SHOW CREATE` prints it.
    pub sql: String,
    /// Objects that this one is made from: they cannot be dropped before it.
    pub deps: Vec<GlobalId>,
    /// Of a view: the tables whose primary key it rests on, since it shows columns that its GROUP BY does not name.
    #[serde(default)]
    pub rests_on: Vec<GlobalId>,
    pub captured: CapturedSettings,
    /// COMMENT ON: (column from 1 or 0 for the object, text).
    pub comments: Vec<(u32, String)>,
    #[serde(default)]
    pub constraint_comments: Vec<ConstraintComment>,
    /// Of a view, what `pg_class.reloptions` shows beside `check_option`, of a table its storage parameters: names and values as written.
    #[serde(default)]
    pub options: Vec<(String, String)>,
    /// The tick that made it: it cannot be read before. 0 in older catalogs.
    #[serde(default)]
    pub created_at: repr::Timestamp,
}

/// COMMENT ON CONSTRAINT, or ON INDEX of a key's index.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConstraintComment {
    pub name: String,
    pub index: bool,
    pub text: String,
}

fn yes() -> bool {
    true
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum ItemKind {
    Table(Table),
    /// A relation that a source feeds: an upstream table, a generator's table.
    SourceTable {
        source: GlobalId,
        reference: String,
        columns: Vec<ingest::ColumnSource>,
        /// The source's own statement made it (FOR ALL TABLES and the like), so it goes with the source. Catalogs that do not say had
        /// all tables go.
        #[serde(default = "yes")]
        with_source: bool,
    },
    /// A source; it is itself a relation if `self_output` is set.
    Source(Source),
    /// `<source>_errors`.
    Errors {
        source: GlobalId,
    },
    View {
        query: String,
        #[serde(default)]
        check: Option<CheckOption>,
        /// What its columns are where a row that is inserted through it has none, by column; empty: nothing is said.
        #[serde(default)]
        defaults: Vec<Option<String>>,
    },
    MaterializedView {
        query: String,
        quarantine: bool,
    },
    /// `<view>_errors` of a materialized view with ON ERROR = 'quarantine'.
    ViewErrors {
        view: GlobalId,
    },
    /// An arrangement of `on` by the expressions of `key` (SQL text).
    Index {
        on: GlobalId,
        key: Vec<String>,
        #[serde(default)]
        def: IndexDef,
    },
    Connection(Connection),
    Secret {
        value: String,
    },
    /// What it has given out is kept beside the catalog ([`crate::sequences`]).
    Sequence(Sequence),
    Type(SqlType),
    Domain(Arc<repr::types::Domain>),
}

/// WITH CHECK OPTION of a view.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum CheckOption {
    Local,
    Cascaded,
}

impl CheckOption {
    pub fn word(self) -> &'static str {
        match self {
            CheckOption::Local => "local",
            CheckOption::Cascaded => "cascaded",
        }
    }
}

impl From<CheckOption> for sql::catalog::CheckOption {
    fn from(c: CheckOption) -> Self {
        match c {
            CheckOption::Local => Self::Local,
            CheckOption::Cascaded => Self::Cascaded,
        }
    }
}

impl From<sql::catalog::CheckOption> for CheckOption {
    fn from(c: sql::catalog::CheckOption) -> Self {
        match c {
            sql::catalog::CheckOption::Local => Self::Local,
            sql::catalog::CheckOption::Cascaded => Self::Cascaded,
        }
    }
}

/// A table that clients write.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Table {
    /// DEFAULT expressions as SQL text, by column.
    pub defaults: Vec<Option<String>>,
    pub primary_key: Option<Constraint>,
    pub unique: Vec<Constraint>,
    /// CHECK constraints: name and SQL text.
    pub checks: Vec<(String, String)>,
    /// Session that owns a temporary table.
    pub temporary: bool,
    /// By column, the text of what computes it.
    #[serde(default)]
    pub generated: Vec<Option<String>>,
    /// Sequences that go with a column.
    #[serde(default)]
    pub sequences: Vec<OwnedSequence>,
    #[serde(default)]
    pub foreign: Vec<ForeignKey>,
    /// Of CREATE UNIQUE INDEX on expressions, or with WHERE.
    #[serde(default)]
    pub computed_keys: Vec<ComputedKey>,
    #[serde(default)]
    pub on_commit: OnCommit,
    /// Columns with a COLLATE of their own, and its name. All order alike; it is shown again.
    #[serde(default)]
    pub collations: Vec<(usize, String)>,
    /// Names of checks and foreign keys that are NOT VALID: rows that were there before them may break them.
    #[serde(default)]
    pub unchecked: Vec<String>,
}

/// A unique index that has an expression or a condition, as texts. The index is an object of its own, of this name.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ComputedKey {
    pub name: String,
    pub keys: Vec<String>,
    pub filter: Option<String>,
    /// NULLS NOT DISTINCT.
    #[serde(default)]
    pub equal_nulls: bool,
}

/// What an index says beyond its keys. It finds rows by the value of its key, so this is for how it is shown alone.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct IndexDef {
    /// Behind each key: operator class, DESC, NULLS FIRST.
    pub order: Vec<String>,
    pub include: Vec<String>,
    pub filter: Option<String>,
    pub hash: bool,
    #[serde(default)]
    pub equal_nulls: bool,
}

/// FOREIGN KEY. The table referred to is no dependency as others are, since tables may refer to each other.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForeignKey {
    pub name: String,
    pub columns: Vec<usize>,
    pub parent: GlobalId,
    /// For each of `columns` the parent's column; together they are a unique key.
    pub parent_columns: Vec<usize>,
    /// MATCH FULL.
    pub full: bool,
    /// As `pg_constraint.confdeltype` says it: `a` no action, `r` restrict, `c` cascade, `n` set null, `d` set default.
    pub on_delete: char,
    pub on_update: char,
    /// What SET NULL and SET DEFAULT set on delete; empty: all of `columns`.
    pub set_columns: Vec<usize>,
    pub deferrable: bool,
    pub deferred: bool,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct OwnedSequence {
    pub column: usize,
    pub sequence: GlobalId,
    /// GENERATED ALWAYS (true) or BY DEFAULT AS IDENTITY; None: serial, OWNED BY.
    pub identity: Option<bool>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Sequence {
    pub ty: SqlType,
    pub start: i64,
    pub increment: i64,
    pub min: i64,
    pub max: i64,
    pub cycle: bool,
    /// How many a session may take at once. One by one is as good: it is only shown.
    #[serde(default = "one")]
    pub cache: i64,
}

fn one() -> i64 {
    1
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Constraint {
    pub name: String,
    pub columns: Vec<usize>,
    /// Columns that its index holds beside the key. Those of CREATE UNIQUE INDEX are told by the index.
    #[serde(default)]
    pub include: Vec<usize>,
    /// Of CREATE UNIQUE INDEX: the index is an object of its own, of this name.
    #[serde(default)]
    pub index: bool,
    /// NULLS NOT DISTINCT.
    #[serde(default)]
    pub equal_nulls: bool,
    /// It may be broken until the commit, if a transaction asks for that.
    #[serde(default)]
    pub deferrable: bool,
    /// INITIALLY DEFERRED: without being asked.
    #[serde(default)]
    pub deferred: bool,
}

/// How a constraint that may be put off says so.
pub fn deferral_words(deferrable: bool, deferred: bool) -> &'static str {
    match (deferrable, deferred) {
        (_, true) => " DEFERRABLE INITIALLY DEFERRED",
        (true, false) => " DEFERRABLE",
        (false, false) => "",
    }
}

/// What becomes of a temporary table, or of its rows, at commit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum OnCommit {
    #[default]
    Preserve,
    Delete,
    Drop,
}

impl From<sql::ast::OnCommit> for OnCommit {
    fn from(c: sql::ast::OnCommit) -> OnCommit {
        match c {
            sql::ast::OnCommit::Preserve => OnCommit::Preserve,
            sql::ast::OnCommit::Delete => OnCommit::Delete,
            sql::ast::OnCommit::Drop => OnCommit::Drop,
        }
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Source {
    pub connection: Option<GlobalId>,
    pub connector: SourceConnector,
    /// Where the columns of the source's own relation come from; `None` if it only feeds `SourceTable`s.
    pub self_output: Option<Vec<ingest::ColumnSource>>,
    pub errors: GlobalId,
    pub fail_on_error: bool,
    pub watermark: Option<String>,
}

/// What is specific to the kind of source; the connection's part is resolved at start.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum SourceConnector {
    Kafka { topic: String, start: ingest::KafkaStart, key_format: Option<ingest::Format>, value_format: ingest::Format, envelope: ingest::Envelope },
    Postgres { publication: String, slot: String },
    File { path: String, tail: bool, format: ingest::Format },
    Generator { kind: ingest::Generator, tick_interval_ms: u64, options: Vec<(String, String)> },
}

impl SourceConnector {
    /// Whether rows that came are never taken back; nor are those of `<source>_errors`.
    pub fn only_appends(&self) -> bool {
        match self {
            SourceConnector::Kafka { envelope, .. } => *envelope == ingest::Envelope::None,
            SourceConnector::Postgres { .. } => false,
            SourceConnector::File { .. } => true,
            SourceConnector::Generator { kind, options, .. } => ingest::generator_only_appends(*kind, options),
        }
    }
}

/// Where a source finds its upstream. Values that are secrets are stored as references.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Connection {
    Kafka {
        properties: Vec<(String, Text)>,
    },
    Postgres {
        host: String,
        port: u16,
        user: Text,
        password: Option<Text>,
        database: String,
        ssl_mode: String,
        #[serde(default)]
        ssl: SslText,
    },
}

/// Certificates of a connection, as PEM.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct SslText {
    pub authority: Option<Text>,
    pub certificate: Option<Text>,
    pub key: Option<Text>,
}

/// Text given in place, or by a secret.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Text {
    Plain(String),
    Secret(GlobalId),
}

impl Table {
    /// The primary key, then the others; a table keeps them as long as it keeps its id.
    pub fn constraints(&self) -> impl Iterator<Item = &Constraint> {
        self.primary_key.iter().chain(&self.unique)
    }
}

impl Sequence {
    pub fn spec(&self) -> sql::catalog::SequenceSpec {
        let Sequence { ty, start, increment, min, max, cycle, cache } = self.clone();
        sql::catalog::SequenceSpec { ty, start, increment, min, max, cycle, cache }
    }
}

impl From<sql::catalog::SequenceSpec> for Sequence {
    fn from(s: sql::catalog::SequenceSpec) -> Sequence {
        Sequence { ty: s.ty, start: s.start, increment: s.increment, min: s.min, max: s.max, cycle: s.cycle, cache: s.cache }
    }
}

impl Item {
    /// [`Item::texts`], to be changed; of a view the query comes first.
    pub fn texts_mut(&mut self) -> Vec<&mut String> {
        match &mut self.kind {
            ItemKind::View { query, defaults, .. } => std::iter::once(query).chain(defaults.iter_mut().flatten()).collect(),
            ItemKind::MaterializedView { query, .. } => vec![query],
            ItemKind::Index { key, def, .. } => key.iter_mut().chain(&mut def.filter).collect(),
            ItemKind::Table(t) => {
                let computed = t.computed_keys.iter_mut().flat_map(|k| k.keys.iter_mut().chain(&mut k.filter));
                let of_columns = t.defaults.iter_mut().flatten().chain(t.generated.iter_mut().flatten());
                of_columns.chain(t.checks.iter_mut().map(|c| &mut c.1)).chain(computed).collect()
            }
            ItemKind::Domain(d) => {
                let d = std::sync::Arc::make_mut(d);
                d.default.iter_mut().chain(d.checks.iter_mut().map(|c| &mut c.1)).collect()
            }
            _ => Vec::new(),
        }
    }

    /// The texts of expressions and queries that it is made of.
    pub fn texts(&self) -> Box<dyn Iterator<Item = &str> + '_> {
        match &self.kind {
            ItemKind::View { query, defaults, .. } => Box::new(std::iter::once(query.as_str()).chain(defaults.iter().flatten().map(String::as_str))),
            ItemKind::MaterializedView { query, .. } => Box::new(std::iter::once(query.as_str())),
            ItemKind::Index { key, def, .. } => Box::new(key.iter().chain(&def.filter).map(String::as_str)),
            ItemKind::Table(t) => {
                let computed = t.computed_keys.iter().flat_map(|k| k.keys.iter().chain(&k.filter));
                let of_columns = t.defaults.iter().flatten().chain(t.generated.iter().flatten());
                Box::new(of_columns.chain(t.checks.iter().map(|c| &c.1)).chain(computed).map(String::as_str))
            }
            ItemKind::Domain(d) => Box::new(d.default.iter().chain(d.checks.iter().map(|c| &c.1)).map(String::as_str)),
            _ => Box::new(std::iter::empty()),
        }
    }

    /// Whether a table or domain has a constraint of this name.
    pub fn has_constraint(&self, name: &str) -> bool {
        match &self.kind {
            ItemKind::Table(t) => {
                t.constraints().any(|k| !k.index && k.name == name) || t.checks.iter().any(|c| c.0 == name) || t.foreign.iter().any(|f| f.name == name)
            }
            ItemKind::Domain(d) => d.checks.iter().any(|c| c.0 == name),
            _ => false,
        }
    }

    /// Gives a view another text of its query.
    pub fn set_query(&mut self, text: String) {
        if let ItemKind::View { query, .. } | ItemKind::MaterializedView { query, .. } = &mut self.kind {
            if let Some(head) = self.sql.strip_suffix(query.as_str()) {
                self.sql = format!("{head}{text}");
            }
            *query = text;
        }
    }

    /// Takes out the comments on constraints that are there no more.
    pub fn forget_comments(&mut self) {
        let mut comments = std::mem::take(&mut self.constraint_comments);
        comments.retain(|c| self.has_constraint(&c.name));
        self.constraint_comments = comments;
    }

    /// `pg_class.oid` and the like.
    pub fn oid(&self) -> u32 {
        self.id.0 as u32
    }

    /// `pg_type.oid` of the relation's row type; above all objects' ids.
    pub fn row_type_oid(&self) -> u32 {
        repr::types::ROW_TYPES + self.oid()
    }

    /// `pg_type.oid` of arrays of it.
    pub fn row_array_oid(&self) -> u32 {
        self.row_type().map_or(0, |t| t.array_oid())
    }

    /// The names it is found by: a range type's multirange is one with it.
    pub fn names(&self) -> Vec<&str> {
        match &self.kind {
            ItemKind::Type(repr::SqlType::UserRange(r)) => vec![&self.name, &r.multirange_name],
            _ => vec![&self.name],
        }
    }

    /// The type of the relation's rows; `None` for what has none.
    pub fn row_type(&self) -> Option<SqlType> {
        if !self.is_relation() {
            return None;
        }
        let fields = self.desc.names.iter().cloned().zip(self.desc.types.iter().map(|t| t.clone().with_nullable(true))).collect();
        Some(SqlType::Record(std::sync::Arc::new(repr::types::RecordType::of_relation(self.row_type_oid(), Some(self.name.clone()), fields))))
    }

    /// Whether the object can stand in FROM.
    pub fn is_relation(&self) -> bool {
        match &self.kind {
            ItemKind::Table(_)
            | ItemKind::SourceTable { .. }
            | ItemKind::Errors { .. }
            | ItemKind::View { .. }
            | ItemKind::MaterializedView { .. }
            | ItemKind::ViewErrors { .. } => true,
            ItemKind::Source(s) => s.self_output.is_some(),
            ItemKind::Index { .. } | ItemKind::Sequence(_) | ItemKind::Connection(_) | ItemKind::Secret { .. } => false,
            ItemKind::Type(_) | ItemKind::Domain(_) => false,
        }
    }

    /// Whether the object's rows are durable in a shard of its own.
    pub fn has_shard(&self) -> bool {
        match &self.kind {
            ItemKind::Table(_) | ItemKind::SourceTable { .. } | ItemKind::Errors { .. } => true,
            ItemKind::Source(s) => s.self_output.is_some(),
            _ => false,
        }
    }

    /// How error messages tell it: the word, and the name quoted where it must be.
    pub fn told(&self) -> String {
        format!("{} {}", self.noun(), crate::builtin::quote_if_needed(&self.name))
    }

    /// The word that error messages use.
    pub fn noun(&self) -> &'static str {
        match &self.kind {
            ItemKind::Table(_) | ItemKind::SourceTable { .. } => "table",
            ItemKind::Source(_) | ItemKind::Errors { .. } => "source",
            ItemKind::View { .. } => "view",
            ItemKind::MaterializedView { .. } | ItemKind::ViewErrors { .. } => "materialized view",
            ItemKind::Index { .. } => "index",
            ItemKind::Sequence(_) => "sequence",
            ItemKind::Connection(_) => "connection",
            ItemKind::Secret { .. } => "secret",
            ItemKind::Type(_) | ItemKind::Domain(_) => "type",
        }
    }

    /// Names of relations, of types and of connections and secrets do not collide with each other.
    pub fn namespace(&self) -> Namespace {
        match &self.kind {
            ItemKind::Type(_) | ItemKind::Domain(_) => Namespace::Type,
            ItemKind::Connection(_) => Namespace::Connection,
            ItemKind::Secret { .. } => Namespace::Secret,
            _ => Namespace::Relation,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Namespace {
    Relation,
    Type,
    Connection,
    Secret,
}
