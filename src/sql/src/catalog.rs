//! What name resolution asks of the catalog.
//!
//! The catalog's owner implements [`SqlCatalog`] for a session: its search path, its database, its settings. Nothing
//! here changes the catalog; answers are owned or `Arc`ed, so that binding holds no lock.

use crate::hir::{Hir, HirScalar};
use expr::EvalCtx;
use repr::types::Domain;
use repr::{GlobalId, RelDesc, SqlError, SqlType};
use std::sync::Arc;

/// The names and settings of a session.
pub trait SqlCatalog {
    /// The relation that a possibly qualified name (`[[database.]schema.]name`) means under the session's search path.
    /// `None`: there is none. Errors: a wrong database (0A000), anything else that should end the statement.
    fn resolve_relation(&self, parts: &[String]) -> Result<Option<Arc<Relation>>, SqlError>;

    /// Any object that is not a relation (connection, secret, sink, index, subscription), or a relation by its kind, with its id and full name.
    fn resolve_object(&self, kind: crate::ast::ObjectKind, parts: &[String]) -> Option<ObjectRef>;

    /// A user-defined type (enum, composite) by a possibly qualified name. Built-in types are never asked for.
    fn resolve_type(&self, parts: &[String]) -> Option<SqlType>;

    /// A domain by a possibly qualified name, with its id.
    fn resolve_domain(&self, _: &[String]) -> Option<(GlobalId, Arc<Domain>)> {
        None
    }

    /// A domain by its OID.
    fn domain_by_oid(&self, _: u32) -> Option<(GlobalId, Arc<Domain>)> {
        None
    }

    /// A user-defined type by the OID of the type or of its array.
    fn type_by_oid(&self, oid: u32) -> Option<SqlType>;

    fn schema_exists(&self, schema: &str) -> bool;

    fn database(&self) -> &str;

    /// The schema in which an unqualified CREATE makes its object. Errors: 3F000 if the search path names none that exists.
    fn creation_schema(&self) -> Result<String, SqlError>;

    /// Settings for folding literals (`'today'::date` and time zones need them).
    fn eval_ctx(&self) -> &EvalCtx;
}

/// `database.schema.name`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FullName {
    pub database: String,
    pub schema: String,
    pub name: String,
}

impl std::fmt::Display for FullName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.schema, self.name)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectRef {
    pub id: GlobalId,
    pub name: FullName,
}

/// A relation as name resolution sees it.
#[derive(Clone, Debug)]
pub struct Relation {
    pub id: GlobalId,
    /// `pg_class.oid` and the OID of its row type (0 if it has none: 2249 is used then).
    pub oid: u32,
    pub row_type_oid: u32,
    pub name: FullName,
    pub kind: RelationKind,
    /// Names, types, keys: the first key of a table is its primary key.
    pub desc: RelDesc,
    /// Of a table, for each column its default; empty for other relations.
    pub defaults: Vec<Option<HirScalar>>,
    /// CHECK constraints of a table: name, and the condition over the table's row at level 0.
    pub checks: Vec<(String, HirScalar)>,
    /// Unique constraints of a table, the primary key first: name and columns.
    pub unique: Vec<(String, Vec<usize>)>,
    /// Unique indexes of a table that have an expression or a condition.
    pub computed_keys: Vec<ComputedKey>,
    /// Of a table, for each column what computes it; empty if none is computed.
    pub generated: Vec<Option<HirScalar>>,
    /// What a table's definition says in words.
    pub def: TableDef,
    /// Of a plain view.
    pub view: Option<ViewDef>,
}

/// A unique index on expressions, or of some rows: all over the table's row at level 0.
#[derive(Clone, Debug, PartialEq)]
pub struct ComputedKey {
    pub name: String,
    pub keys: Vec<HirScalar>,
    pub filter: Option<HirScalar>,
    /// NULLS NOT DISTINCT.
    pub equal_nulls: bool,
}

/// A plain view as it is stored.
#[derive(Clone, Debug)]
pub struct ViewDef {
    /// Its query, names in full.
    pub query: String,
    pub check: Option<CheckOption>,
    /// Defaults of its columns, as texts.
    pub defaults: Vec<Option<String>>,
}

/// WITH CHECK OPTION: whether the conditions of the views below count too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckOption {
    Local,
    Cascaded,
}

/// A table's definition as it is stored; empty for other relations.
#[derive(Clone, Debug, Default)]
pub struct TableDef {
    /// By column, as `Relation::defaults` is.
    pub defaults: Vec<Option<String>>,
    pub generated: Vec<Option<String>>,
    /// Columns with a COLLATE of their own, and its name.
    pub collations: Vec<(usize, String)>,
    pub checks: Vec<(String, String)>,
    /// Identity columns: ALWAYS (true) or BY DEFAULT, and the sequence.
    pub identity: Vec<Option<(bool, SequenceSpec)>>,
    /// Names of the foreign keys.
    pub foreign: Vec<String>,
    /// The first of `Relation::unique` is the primary key.
    pub has_primary_key: bool,
    /// Those of `Relation::unique` that are DEFERRABLE, and whether INITIALLY DEFERRED.
    pub deferral: Vec<(String, bool)>,
    /// Those of `Relation::unique` that INCLUDE columns, and which.
    pub include: Vec<(String, Vec<usize>)>,
    /// Those of `Relation::unique` that are indexes of their own, not constraints.
    pub unique_indexes: Vec<String>,
    /// Unique indexes on expressions, or (true) of some rows.
    pub computed_indexes: Vec<(String, bool)>,
    /// All indexes on it that are objects of their own.
    pub indexes: Vec<GlobalId>,
    /// Names of columns' and of other comments, by column from 1; 0 is the table.
    pub comments: Vec<(u32, String)>,
}

/// What a sequence gives out.
#[derive(Clone, Debug, PartialEq)]
pub struct SequenceSpec {
    pub ty: SqlType,
    pub start: i64,
    pub increment: i64,
    pub min: i64,
    pub max: i64,
    pub cycle: bool,
    /// Only shown: values are given out one by one.
    pub cache: i64,
}

impl Relation {
    /// Columns of the primary key, if rows have it at all times.
    pub fn primary_key(&self) -> Option<&Vec<usize>> {
        let (name, columns) = self.unique.first().filter(|_| self.def.has_primary_key)?;
        (!self.is_deferrable(name)).then_some(columns)
    }
    /// Whether a key may be broken until the commit.
    pub fn is_deferrable(&self, key: &str) -> bool {
        self.def.deferral.iter().any(|d| d.0 == key)
    }
    /// Whether the column is GENERATED … AS IDENTITY, and if so ALWAYS.
    pub fn identity(&self, column: usize) -> Option<bool> {
        self.def.identity.get(column)?.as_ref().map(|i| i.0)
    }
    /// Whether the column is GENERATED ALWAYS AS an expression.
    pub fn is_generated(&self, column: usize) -> bool {
        self.def.generated.get(column).is_some_and(Option::is_some)
    }
}

#[derive(Clone, Debug)]
pub enum RelationKind {
    Table,
    /// A source that is itself a relation, or a table that a source feeds: no INSERT.
    Source,
    /// A source whose tables are relations, not the source itself.
    Tables,
    MaterializedView,
    /// A plain view: what it stands for, with `desc`'s columns in order. The binder inlines it.
    View(Arc<Hir>),
    /// Relations of pg_catalog, information_schema, rd_catalog that the system keeps.
    Builtin,
    /// A sequence: one row that says where it stands.
    Sequence,
    /// An index or another object that cannot be selected from.
    Other,
}

impl RelationKind {
    /// The word error messages use.
    pub fn word(&self) -> &'static str {
        match self {
            RelationKind::Table => "table",
            RelationKind::Source | RelationKind::Tables => "source",
            RelationKind::MaterializedView => "materialized view",
            RelationKind::View(_) => "view",
            RelationKind::Builtin => "system relation",
            RelationKind::Sequence => "sequence",
            RelationKind::Other => "index",
        }
    }
}

/// A catalog without any object: constant queries, tests.
pub struct EmptyCatalog {
    ctx: EvalCtx,
}

impl EmptyCatalog {
    pub fn new() -> EmptyCatalog {
        EmptyCatalog { ctx: EvalCtx::default() }
    }
}

impl Default for EmptyCatalog {
    fn default() -> EmptyCatalog {
        EmptyCatalog::new()
    }
}

impl SqlCatalog for EmptyCatalog {
    fn resolve_relation(&self, _: &[String]) -> Result<Option<Arc<Relation>>, SqlError> {
        Ok(None)
    }
    fn resolve_object(&self, _: crate::ast::ObjectKind, _: &[String]) -> Option<ObjectRef> {
        None
    }
    fn resolve_type(&self, _: &[String]) -> Option<SqlType> {
        None
    }
    fn type_by_oid(&self, _: u32) -> Option<SqlType> {
        None
    }
    fn schema_exists(&self, schema: &str) -> bool {
        schema == "public"
    }
    fn database(&self) -> &str {
        "riverdelta"
    }
    fn creation_schema(&self) -> Result<String, SqlError> {
        Ok("public".into())
    }
    fn eval_ctx(&self) -> &EvalCtx {
        &self.ctx
    }
}
