//! Relations of pg_catalog, information_schema and rd_catalog.
//!
//! Every relation that PostgreSQL 15 has in its system schemas exists with its columns (`data/system_relations.tsv`, exported from
//! it); those that say something here are filled from the catalog, the others are empty. A query that reads one
//! gets its rows as a constant, as of the catalog that the statement is planned on.

/// Rows that are the same in every database.
mod copied;
/// Rows of pg_depend.
mod depend;
/// Rows of information_schema.
mod information;
/// Names by OID for functions over the catalog.
mod names;
/// What objects are called.
mod object;
/// Rows of pg_catalog.
mod pg;
/// Rows of `pg_constraint`, and definitions of constraints.
mod pg_constraint;
/// Rows of `pg_index`, and definitions of indexes.
mod pg_index;
/// Rows of pg_catalog that tell of sessions.
mod pg_session;
/// Rows of the statistics of relations.
mod pg_stat;
/// Rows of `pg_type`.
mod pg_type;
pub use pg::{key_of, namespace_oid, shown_expression};
pub use pg_constraint::foreign_definition;
/// Rows of rd_catalog: what runs, how far it is, what it holds.
mod rd;

pub use names::{quote_if_needed, Names};

use crate::catalog::{Catalog, ItemKind};
use crate::coordinator::request::Introspection;
use crate::planner::{SessionCatalog, DATABASE};
use repr::{ColType, GlobalId, Numeric, RelDesc, SqlError, SqlType, Value};
use sql::catalog::{FullName, Relation, RelationKind};
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

pub const SYSTEM_SCHEMAS: [&str; 3] = ["information_schema", "pg_catalog", "rd_catalog"];
/// `pg_namespace.oid` of rd_catalog.
pub const RD_NAMESPACE: u32 = 15_000;
/// `pg_namespace.oid` of public.
pub const PUBLIC_OID: u32 = 2_200;
/// The one role that owns everything: `pg_authid.oid`.
pub const OWNER: u32 = 10;
/// Its name.
pub const OWNER_NAME: &str = "riverdelta";
const RELATIONS: &str = include_str!("../../data/system_relations.tsv");

/// A system relation.
pub struct Def {
    pub schema: &'static str,
    pub name: &'static str,
    pub oid: u32,
    /// `r` or `v`.
    pub kind: char,
    pub desc: RelDesc,
}

/// A cursor as pg_cursors shows it.
pub struct SeenCursor {
    pub name: String,
    pub statement: String,
    pub held: bool,
    pub binary: bool,
    pub scrollable: bool,
    /// Microseconds since 2000.
    pub at: i64,
}

/// What the rows are made from.
pub struct BuiltinCtx<'a> {
    pub catalog: &'a Arc<Catalog>,
    pub introspection: &'a Introspection,
    pub settings: &'a crate::settings::Settings,
    pub user: &'a str,
    pub pid: i32,
    /// The session's prepared statements by name, and its cursors.
    pub prepared: &'a [(String, crate::client::Prepared)],
    pub cursors: &'a [SeenCursor],
    pub sequences: &'a crate::sequences::Sequences,
    /// Names and definitions as the session sees them.
    pub names: &'a Names,
    pub backends: &'a crate::activity::Backends,
    /// Advisory locks that are held.
    pub(crate) locks: &'a [crate::session::advisory::HeldLock],
}

struct Registry {
    defs: Vec<Def>,
    by_name: HashMap<(&'static str, &'static str), usize>,
    by_oid: HashMap<u32, usize>,
}

fn registry() -> &'static Registry {
    static REGISTRY: OnceLock<Registry> = OnceLock::new();
    REGISTRY.get_or_init(|| {
        let mut defs: Vec<Def> = RELATIONS.lines().filter_map(parse_def).collect();
        defs.extend(rd::defs());
        let by_name = defs.iter().enumerate().map(|(i, d)| ((d.schema, d.name), i)).collect();
        let by_oid = defs.iter().enumerate().map(|(i, d)| (d.oid, i)).collect();
        Registry { defs, by_name, by_oid }
    })
}

fn parse_def(line: &'static str) -> Option<Def> {
    let mut f = line.split('\t');
    let (schema, name, oid, kind, columns) = (f.next()?, f.next()?, f.next()?, f.next()?, f.next()?);
    let mut desc = RelDesc::default();
    for c in columns.split(',') {
        let (n, t) = c.split_once(':')?;
        desc.names.push(n.to_string());
        desc.types.push(column_type(t.trim_end_matches('!')).nullable().with_nullable(!t.ends_with('!')));
    }
    Some(Def { schema, name, oid: oid.parse().ok()?, kind: kind.chars().next()?, desc })
}

/// Types that are not ours to have are shown as text.
fn column_type(name: &str) -> SqlType {
    match name {
        "anyarray" | "_pg_statistic" => SqlType::Text.array_of(),
        other => SqlType::from_pg_name(other).unwrap_or(SqlType::Text),
    }
}

pub fn defs() -> &'static [Def] {
    &registry().defs
}

pub fn is_system_schema(name: &str) -> bool {
    SYSTEM_SCHEMAS.contains(&name)
}

/// The columns of a sequence that is read as a relation.
pub fn sequence_desc() -> RelDesc {
    let (names, types) = (["last_value", "log_cnt", "is_called"], [SqlType::Int8, SqlType::Int8, SqlType::Bool]);
    RelDesc { names: names.map(str::to_owned).to_vec(), types: types.map(|t| t.not_null()).to_vec(), keys: vec![vec![]] }
}

pub fn is_builtin(id: GlobalId) -> bool {
    id.0 < crate::catalog::FIRST_USER_ID
}

fn def(id: GlobalId) -> Option<&'static Def> {
    let r = registry();
    r.by_oid.get(&u32::try_from(id.0).ok()?).map(|i| &r.defs[*i])
}

/// `schema.name` of a system relation.
pub fn name_of(id: GlobalId) -> Option<String> {
    def(id).map(|d| format!("{}.{}", d.schema, d.name))
}

/// Whether the rows come from the coordinator's state.
pub fn needs_introspection(id: GlobalId) -> bool {
    def(id).is_some_and(|d| d.schema == "rd_catalog")
}

/// A system relation for name resolution.
pub fn relation(schema: &str, name: &str, _names: &SessionCatalog<'_>) -> Result<Option<Arc<Relation>>, SqlError> {
    let r = registry();
    let Some(d) = r.by_name.get(&(schema, name)).map(|i| &r.defs[*i]) else { return Ok(None) };
    Ok(Some(Arc::new(Relation {
        id: GlobalId(u64::from(d.oid)),
        oid: d.oid,
        row_type_oid: expr::catalog::type_by_name(d.name).filter(|t| t.relid == d.oid).map_or(0, |t| t.oid),
        name: FullName { database: DATABASE.into(), schema: d.schema.into(), name: d.name.into() },
        kind: RelationKind::Builtin,
        desc: d.desc.clone(),
        defaults: vec![],
        checks: vec![],
        unique: vec![],
        generated: vec![],
        def: sql::catalog::TableDef::default(),
        view: None,
        computed_keys: vec![],
    })))
}

/// Relations whose rows are those of this version: made once.
const FIXED: [&str; 8] = ["pg_aggregate", "pg_am", "pg_cast", "pg_collation", "pg_language", "pg_opclass", "pg_operator", "pg_proc"];

/// The rows of a system relation, or of a sequence, now.
pub fn rows(id: GlobalId, ctx: &BuiltinCtx<'_>) -> Cow<'static, [Vec<Value>]> {
    static MADE: [OnceLock<Vec<Vec<Value>>>; FIXED.len()] = [const { OnceLock::new() }; FIXED.len()];
    let Some(d) = def(id) else {
        let Some(ItemKind::Sequence(s)) = ctx.catalog.item(id).map(|i| &i.kind) else { return Cow::Owned(vec![]) };
        let at = ctx.sequences.position(id, s);
        return Cow::Owned(vec![vec![Value::Int8(at.value), Value::Int8(0), Value::Bool(at.called)]]);
    };
    match FIXED.iter().position(|n| d.schema == "pg_catalog" && *n == d.name) {
        Some(n) => Cow::Borrowed(MADE[n].get_or_init(|| made(d, ctx))),
        None => Cow::Owned(made(d, ctx)),
    }
}

fn made(d: &Def, ctx: &BuiltinCtx<'_>) -> Vec<Vec<Value>> {
    let mut rel = Rows { desc: &d.desc, rows: Vec::new(), places: Vec::new() };
    match d.schema {
        "pg_catalog" => pg::fill(d.name, &mut rel, ctx),
        "information_schema" => information::fill(d.name, &mut rel, ctx),
        _ => rd::fill(d.name, &mut rel, ctx),
    }
    rel.rows
}

/// Rows in the making. Columns that a row does not name get NULL or, where the column is NOT NULL, the zero of their type.
pub(crate) struct Rows<'a> {
    desc: &'a RelDesc,
    rows: Vec<Vec<Value>>,
    /// Where the values of the last row went: those of the next mostly go there too.
    places: Vec<usize>,
}

impl Rows<'_> {
    fn add(&mut self, values: Vec<(&str, Value)>) {
        let mut row: Vec<Value> = self.desc.types.iter().map(|t| if t.nullable { Value::Null } else { zero(&t.ty) }).collect();
        for (n, (name, value)) in values.into_iter().enumerate() {
            let again = self.places.get(n).copied().filter(|i| self.desc.names[*i] == name);
            let Some(i) = again.or_else(|| self.desc.names.iter().position(|x| x == name)) else {
                debug_assert!(false, "no column {name}");
                continue;
            };
            if again.is_none() {
                self.places.truncate(n);
                self.places.push(i);
            }
            row[i] = fit(value, &self.desc.types[i]);
        }
        self.rows.push(row);
    }
}

/// A value in the form of its column's type.
fn fit(value: Value, column: &ColType) -> Value {
    match (&column.ty, value) {
        (_, Value::Null) => Value::Null,
        (SqlType::Int2, v) => v.as_i64().and_then(|n| i16::try_from(n).ok()).map_or(Value::Null, Value::Int2),
        (SqlType::Int4, v) => v.as_i64().and_then(|n| i32::try_from(n).ok()).map_or(Value::Null, Value::Int4),
        (SqlType::Int8, v) => v.as_i64().map_or(Value::Null, Value::Int8),
        (SqlType::Oid | SqlType::Xid | SqlType::Cid | SqlType::Reg(_), v) => v.as_i64().and_then(|n| u32::try_from(n).ok()).map_or(Value::Null, Value::UInt4),
        (SqlType::Float4, Value::Float4(v)) => Value::Float4(v),
        (SqlType::Float4, v) => v.as_i64().map_or(Value::Null, |n| Value::Float4(n as f32)),
        (SqlType::Float8, v) => v.as_i64().map_or(Value::Null, |n| Value::Float8(n as f64)),
        (SqlType::Array(elem), Value::Array(mut a)) => {
            let elem = elem.as_ref().clone().nullable();
            a.elems = std::mem::take(&mut a.elems).into_iter().map(|v| fit(v, &elem)).collect();
            Value::Array(a)
        }
        (SqlType::Numeric, v) => v.as_i64().map_or(Value::Null, |n| Value::Numeric(Numeric::from(n))),
        (_, v) => v,
    }
}

fn zero(ty: &SqlType) -> Value {
    match ty {
        SqlType::Bool => Value::Bool(false),
        SqlType::Int2 => Value::Int2(0),
        SqlType::Int4 => Value::Int4(0),
        SqlType::Int8 => Value::Int8(0),
        SqlType::Oid | SqlType::Xid | SqlType::Cid | SqlType::Reg(_) => Value::UInt4(0),
        SqlType::Float4 => Value::Float4(0.0),
        SqlType::Float8 => Value::Float8(0.0),
        SqlType::Array(_) => Value::array(vec![]),
        SqlType::Int2Vector | SqlType::OidVector => vector(vec![]),
        SqlType::Text | SqlType::Name | SqlType::Varchar | SqlType::Char => Value::text(""),
        _ => Value::Null,
    }
}

/// An int2vector or oidvector: its elements count from 0.
pub(crate) fn vector(elems: Vec<Value>) -> Value {
    let dims = if elems.is_empty() { vec![] } else { vec![(elems.len() as i32, 0)] };
    Value::Array(Box::new(repr::ArrayValue { elems, dims }))
}

fn text(s: &str) -> Value {
    Value::text(s)
}
fn int(n: i64) -> Value {
    Value::Int8(n)
}
fn oid(n: u32) -> Value {
    Value::Int8(i64::from(n))
}
fn yes_no(b: bool) -> Value {
    Value::text(if b { "YES" } else { "NO" })
}
