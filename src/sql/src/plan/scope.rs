//! Names in scope: relations of FROM, levels of enclosing queries, common table expressions.
//!
//! ```text
//!   Env ──► Node(level 0: this query's row) ──► Node(level 1) ──► …      a LATERAL item's left neighbours are a level too
//!             │ items: alias, columns with their position in the row
//!             │ calls: aggregates, windows, set-returning functions met while binding
//! ```
//!
//! Columns are found by name here and never again: everything downstream has positions.

use super::calls::Calls;
use super::{walk, Binder};
use crate::ast::{Ident, Pos};
use crate::catalog::Relation;
use crate::hir::{ColumnRef, HirScalar};
use expr::catalog::pseudo;
use expr::ColumnOrder;
use plan::LocalId;
use repr::error::state;
use repr::types::RecordType;
use repr::{ColType, GlobalId, SqlError, SqlType, Value};
use std::rc::Rc;
use std::sync::Arc;

/// The clause an expression stands in: what is allowed there, and the words of the error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clause {
    Select,
    Where,
    Having,
    GroupBy,
    OrderBy,
    DistinctOn,
    JoinOn,
    FromFunction,
    FromSubselect,
    Limit,
    Offset,
    Values,
    UpdateSet,
    MergeWhen,
    Returning,
    Filter,
    Check,
    CopyWhere,
    Default,
    Generated,
    Transform,
    Index,
    Constant,
}

impl Clause {
    /// As in `aggregate functions are not allowed in WHERE`.
    pub fn words(self) -> &'static str {
        match self {
            Clause::Select => "SELECT",
            Clause::Where => "WHERE",
            Clause::Having => "HAVING",
            Clause::GroupBy => "GROUP BY",
            Clause::OrderBy => "ORDER BY",
            Clause::DistinctOn => "DISTINCT ON",
            Clause::JoinOn => "JOIN conditions",
            Clause::FromFunction => "functions in FROM",
            Clause::FromSubselect => "FROM clause of their own query level",
            Clause::Limit => "LIMIT",
            Clause::Offset => "OFFSET",
            Clause::Values => "VALUES",
            Clause::UpdateSet => "UPDATE",
            Clause::MergeWhen => "MERGE WHEN conditions",
            Clause::Returning => "RETURNING",
            Clause::Filter => "FILTER",
            Clause::Check => "check constraints",
            Clause::CopyWhere => "COPY FROM WHERE conditions",
            Clause::Default => "DEFAULT expressions",
            Clause::Generated => "column generation expressions",
            Clause::Transform => "transform expressions",
            Clause::Index => "index expressions",
            Clause::Constant => "this statement",
        }
    }
}

#[derive(Clone, Debug)]
pub struct NsCol {
    pub name: String,
    pub pos: usize,
    pub ty: ColType,
    /// What a computed column of USING is computed from: a query that is grouped by that may read the column.
    pub whole: Option<HirScalar>,
}

/// A relation (or join) whose names are in scope.
#[derive(Clone, Debug)]
pub struct NsItem {
    /// The alias, or the relation's name; empty for a join without one.
    pub name: String,
    /// Set only for a relation without alias: `schema.rel.col` is allowed then.
    pub schema: Option<String>,
    pub cols: Vec<NsCol>,
    /// `name.col` and `name.*` work.
    pub rel_visible: bool,
    /// Unqualified columns work.
    pub cols_visible: bool,
    /// OID of the row type: a relation's own, or `record`.
    pub row_oid: u32,
    /// The names of the row type's fields, where the alias gives the columns others.
    pub row_names: Option<Vec<String>>,
    /// How many of the first columns have their names from the alias.
    pub aliased: usize,
    /// The relation's own name where an alias hides it.
    pub hidden: Option<String>,
    /// `pg_class.oid` of a relation: what `tableoid` reads; 0 otherwise.
    pub rel_oid: u32,
    /// The relation that the columns are, in its order.
    pub rel: Option<GlobalId>,
    /// A function that returns one plain column: its whole row is that column.
    pub scalar: bool,
    /// On the side of an outer join that NULLs may replace.
    pub null_extended: bool,
    /// Columns (indices into `cols`) of the primary key, for grouping by it.
    pub key: Option<Vec<usize>>,
}

/// One row that expressions see.
pub struct Level {
    pub items: Vec<NsItem>,
    pub calls: Calls,
    /// The order in which the row's relation was asked for.
    pub order: Vec<(HirScalar, ColumnOrder)>,
}

impl Level {
    pub fn new(items: Vec<NsItem>, clause: Clause) -> Level {
        Level { items, calls: Calls::new(clause), order: Vec::new() }
    }

    /// The column of a join without a name, as that of the relation in it that it is, if one can be named.
    pub fn named_owner<'i>(&'i self, item: &'i NsItem, i: usize) -> (&'i NsItem, usize) {
        let of = |o: &'i NsItem| {
            let same = |c: &NsCol| c.name == item.cols[i].name;
            let at = o.cols.iter().position(|c| same(c) && c.pos == item.cols[i].pos)?;
            (o.rel_visible && !o.name.is_empty() && o.cols.iter().filter(|c| same(c)).count() == 1).then_some((o, at))
        };
        if item.rel_visible && !item.name.is_empty() {
            return (item, i);
        }
        self.items.iter().find_map(of).unwrap_or((item, i))
    }
}

pub struct Node {
    pub level: Rc<Level>,
    /// A level that is counted but not looked into: LATERAL neighbours of a subquery without LATERAL.
    pub visible: bool,
    /// Neighbours in FROM rather than an enclosing query.
    pub lateral: bool,
    /// Neighbours in the FROM clause that is being bound: what its subqueries without LATERAL do not see.
    pub own: bool,
    pub parent: Env,
}

/// The chain of levels, innermost first, and the common table expressions in scope.
#[derive(Clone, Default)]
pub struct Env {
    node: Option<Rc<Node>>,
    pub ctes: Ctes,
}

impl Env {
    fn with(&self, node: Node) -> Env {
        Env { node: Some(Rc::new(node)), ctes: self.ctes.clone() }
    }
    /// The clause that expressions on the innermost row stand in.
    pub fn clause(&self) -> Option<Clause> {
        self.node.as_ref().map(|n| n.level.calls.clause.get())
    }
    pub fn push(&self, level: Rc<Level>) -> Env {
        self.with(Node { level, visible: true, lateral: false, own: false, parent: self.clone() })
    }
    pub fn push_lateral(&self, level: Rc<Level>) -> Env {
        self.with(Node { level, visible: true, lateral: true, own: true, parent: self.clone() })
    }
    /// The chain with the neighbours in the FROM clause that is being bound made invisible.
    pub fn masked(&self) -> Env {
        self.neighbours(false)
    }
    /// The chain at the beginning of another FROM clause, further in: what is visible here stays so.
    pub fn entered(&self) -> Env {
        self.neighbours(true)
    }
    fn neighbours(&self, visible: bool) -> Env {
        match &self.node {
            Some(n) if n.own => self.with(Node { level: n.level.clone(), visible, lateral: true, own: false, parent: n.parent.neighbours(visible) }),
            _ => self.clone(),
        }
    }
    pub fn with_cte(&self, e: CteEntry) -> Env {
        Env { node: self.node.clone(), ctes: self.ctes.push(e) }
    }
    pub fn nodes(&self) -> impl Iterator<Item = &Node> {
        std::iter::successors(self.node.as_deref(), |n| n.parent.node.as_deref())
    }
    pub fn level(&self) -> Option<&Level> {
        self.node.as_deref().map(|n| &*n.level)
    }
}

/// A common table expression in scope.
#[derive(Clone, Debug)]
pub struct CteEntry {
    pub name: String,
    pub id: LocalId,
    pub names: Vec<String>,
    /// Of the named columns, then of those that only the order needs.
    pub types: Vec<ColType>,
    /// The order of its rows, and whether no ORDER BY asks for it.
    pub order: (Vec<ColumnOrder>, bool),
    /// The item being defined in a place where it may not be used yet: the error to raise.
    pub forbidden: Option<(repr::SqlState, String)>,
    pub used: Rc<std::cell::Cell<bool>>,
}

/// Linked list of visible CTEs, newest first.
#[derive(Clone, Default)]
pub struct Ctes(Option<Rc<(CteEntry, Ctes)>>);

impl Ctes {
    pub fn push(&self, e: CteEntry) -> Ctes {
        Ctes(Some(Rc::new((e, self.clone()))))
    }
    pub fn find(&self, name: &str) -> Option<&CteEntry> {
        let mut at = self;
        while let Some(n) = &at.0 {
            if n.0.name == name {
                return Some(&n.0);
            }
            at = &n.1;
        }
        None
    }
}

/// The row type of a relation.
pub fn row_type_of(rel: &Relation) -> SqlType {
    let fields = rel.desc.names.iter().cloned().zip(rel.desc.types.iter().map(|t| t.clone().with_nullable(true))).collect();
    let oid = if rel.row_type_oid == 0 { pseudo::RECORD } else { rel.row_type_oid };
    SqlType::Record(Arc::new(RecordType::of_relation(oid, Some(rel.name.name.clone()), fields)))
}

/// Relations below this number are the system's.
const FIRST_USER_OID: u32 = 20_000;

/// Names that no column of a table may have.
pub const SYSTEM_COLUMNS: [&str; 6] = ["tableoid", "ctid", "xmin", "xmax", "cmin", "cmax"];

/// Errors: 42701 for a column that is to have the name of a system column.
pub fn check_column_name(name: &str) -> Result<(), SqlError> {
    match SYSTEM_COLUMNS.contains(&name) {
        true => Err(SqlError::new(state::DUPLICATE_COLUMN, format!("column name \"{name}\" conflicts with a system column name"))),
        false => Ok(()),
    }
}

/// The system column `tableoid`; a row that an outer join made up is not told apart.
fn table_oid(item: &NsItem) -> HirScalar {
    HirScalar::Literal(Value::UInt4(item.rel_oid), SqlType::Oid.not_null())
}

/// The error of a system column that rows here do not have.
fn system_column(name: &str, pos: Pos) -> Option<SqlError> {
    let known = SYSTEM_COLUMNS.contains(&name) && name != "tableoid";
    known.then(|| SqlError::unsupported(format!("system column \"{name}\""), "rows have no address and no version; use a key of the table").at(pos))
}

impl NsItem {
    pub fn column(&self, level: usize, i: usize) -> HirScalar {
        let c = &self.cols[i];
        if let Some(mut whole) = c.whole.clone() {
            walk::shift(&mut whole, 0, level as isize);
            return whole;
        }
        HirScalar::Column(ColumnRef { level, column: c.pos }, c.ty.clone())
    }
    pub fn shift(&mut self, by: usize) {
        for c in &mut self.cols {
            c.pos += by;
            if let Some(whole) = &mut c.whole {
                walk::rewrite(whole, 0, &mut |s, _| {
                    if let HirScalar::Column(r, _) = s {
                        r.column += by;
                    }
                    true
                });
            }
        }
    }
}

impl Binder<'_> {
    /// `xmin` of a system relation, whose rows are made as they are read: the number of the transaction that reads them. Tools that ask which
    /// rows are new since they last looked are given all of them.
    fn catalog_xmin(&self, item: &NsItem, column: &str) -> Result<Option<HirScalar>, SqlError> {
        const CURRENT: u32 = 5059;
        const XID_OF_XID8: u32 = 5071;
        if column != "xmin" || item.rel_oid == 0 || item.rel_oid >= FIRST_USER_OID {
            return Ok(None);
        }
        let number = self.call_oid(CURRENT, Vec::new(), SqlType::Xid8.not_null())?;
        self.call_oid(XID_OF_XID8, vec![number], SqlType::Xid.not_null()).map(Some)
    }

    /// A column reference of one to four parts, or a variable of the block that the statement stands in.
    pub fn resolve_column(&self, parts: &[Ident], env: &Env) -> Result<HirScalar, SqlError> {
        let found = self.column_in_scope(parts, env);
        let Some(v) = self.variables.iter().rev().find(|v| v.name == parts[0].name) else { return found };
        let pos = parts[0].pos;
        let x = HirScalar::Literal(v.value.clone(), v.ty.clone().nullable().without_domains().with_nullable(v.value.is_null()));
        match (found, parts) {
            (Ok(_), [name]) => Err(SqlError::new(state::AMBIGUOUS_COLUMN, format!("column reference \"{}\" is ambiguous", name.name))
                .with_detail("It could refer to either a PL/pgSQL variable or a table column.")
                .at(pos)),
            (Err(e), [_]) if e.code == state::UNDEFINED_COLUMN => Ok(x),
            (Err(e), [_, field]) if e.code == state::UNDEFINED_TABLE => self.field(x, field),
            (found, _) => found,
        }
    }

    fn column_in_scope(&self, parts: &[Ident], env: &Env) -> Result<HirScalar, SqlError> {
        let pos = parts[0].pos;
        match parts {
            [col] => {
                if let Some(c) = self.find_unqualified(&col.name, env, pos)? {
                    return Ok(c);
                }
                if let Some((level, item)) = self.find_item(None, &col.name, env, pos)? {
                    return self.whole_row(item, level);
                }
                if let Some([item]) = env.level().map(|l| l.items.as_slice()).filter(|i| i.len() == 1 && i[0].rel_oid != 0) {
                    if col.name == "tableoid" {
                        return Ok(table_oid(item));
                    }
                    if let Some(x) = self.catalog_xmin(item, &col.name)? {
                        return Ok(x);
                    }
                    if let Some(e) = system_column(&col.name, pos) {
                        return Err(e);
                    }
                }
                Err(SqlError::new(state::UNDEFINED_COLUMN, format!("column \"{}\" does not exist", col.name)).at(pos))
            }
            [rel, col] => self.qualified(None, &rel.name, col, env, pos),
            [schema, rel, col] => self.qualified(Some(&schema.name), &rel.name, col, env, pos),
            [db, schema, rel, col] => {
                if db.name != self.catalog.database() {
                    let written: Vec<&str> = parts.iter().map(|p| p.name.as_str()).collect();
                    return Err(
                        SqlError::new(state::FEATURE_NOT_SUPPORTED, format!("cross-database references are not implemented: {}", written.join("."))).at(pos)
                    );
                }
                self.qualified(Some(&schema.name), &rel.name, col, env, pos)
            }
            _ => Err(SqlError::new(state::SYNTAX_ERROR, "improper qualified name (too many dotted names)").at(pos)),
        }
    }

    pub(super) fn find_unqualified(&self, name: &str, env: &Env, pos: Pos) -> Result<Option<HirScalar>, SqlError> {
        for (level, node) in env.nodes().enumerate() {
            if !node.visible {
                continue;
            }
            let mut found: Option<(&NsItem, usize)> = None;
            for item in node.level.items.iter().filter(|i| i.cols_visible) {
                for (i, c) in item.cols.iter().enumerate() {
                    if c.name == name {
                        if found.is_some() {
                            return Err(SqlError::new(state::AMBIGUOUS_COLUMN, format!("column reference \"{name}\" is ambiguous")).at(pos));
                        }
                        found = Some((item, i));
                    }
                }
            }
            if let Some((item, i)) = found {
                let (item, i) = node.level.named_owner(item, i);
                // One relation's columns in its own query need none.
                let alone = level == 0 && node.level.items.len() == 1;
                let reachable = item.rel_visible && !item.name.is_empty() && !alone;
                let same = |other: &NsItem| std::ptr::eq(other, item);
                let qualifier = reachable && self.find_item(None, &item.name, env, pos).is_ok_and(|f| f.is_some_and(|f| same(f.1)));
                self.note_column(item, i, pos, qualifier.then_some(item.name.as_str()));
                return Ok(Some(item.column(level, i)));
            }
        }
        Ok(None)
    }

    /// The relation that a name means, and its level.
    pub fn find_item<'e>(&self, schema: Option<&str>, name: &str, env: &'e Env, pos: Pos) -> Result<Option<(usize, &'e NsItem)>, SqlError> {
        for (level, node) in env.nodes().enumerate() {
            if !node.visible {
                continue;
            }
            let mut found = None;
            for item in node.level.items.iter().filter(|i| i.rel_visible && i.name == name) {
                if schema.is_some() && item.schema.as_deref() != schema {
                    continue;
                }
                if found.is_some() {
                    return Err(SqlError::new(state::AMBIGUOUS_ALIAS, format!("table reference \"{name}\" is ambiguous")).at(pos));
                }
                found = Some((level, item));
            }
            if found.is_some() {
                return Ok(found);
            }
        }
        Ok(None)
    }

    pub(super) fn qualified(&self, schema: Option<&str>, rel: &str, column: &Ident, env: &Env, pos: Pos) -> Result<HirScalar, SqlError> {
        let col = column.name.as_str();
        let Some((level, item)) = self.find_item(schema, rel, env, pos)? else { return Err(self.missing_relation(schema, rel, env, pos)) };
        let mut found = None;
        for (i, c) in item.cols.iter().enumerate() {
            if c.name == col {
                if found.is_some() {
                    return Err(SqlError::new(state::AMBIGUOUS_COLUMN, format!("column reference \"{col}\" is ambiguous")).at(pos));
                }
                found = Some(i);
            }
        }
        match found {
            Some(i) => {
                self.note_column(item, i, column.pos, None);
                Ok(item.column(level, i))
            }
            None if col == "tableoid" && item.rel_oid != 0 => Ok(table_oid(item)),
            None => {
                if let Some(x) = self.catalog_xmin(item, col)? {
                    return Ok(x);
                }
                let of_table = (item.rel_oid != 0).then(|| system_column(col, pos)).flatten();
                Err(of_table.unwrap_or_else(|| SqlError::new(state::UNDEFINED_COLUMN, format!("column {rel}.{col} does not exist")).at(pos)))
            }
        }
    }

    pub fn missing_relation(&self, schema: Option<&str>, rel: &str, env: &Env, pos: Pos) -> SqlError {
        let hidden = env.nodes().any(|n| n.level.items.iter().any(|i| i.name == rel));
        let written = if hidden { rel.to_owned() } else { schema.map_or_else(|| rel.to_owned(), |s| format!("{s}.{rel}")) };
        let alias = env.nodes().find_map(|n| n.level.items.iter().find(|i| i.hidden.as_deref() == Some(rel)));
        if let (Some(a), false) = (alias, hidden) {
            return SqlError::new(state::UNDEFINED_TABLE, format!("invalid reference to FROM-clause entry for table \"{written}\""))
                .with_hint(format!("Perhaps you meant to reference the table alias \"{}\".", a.name))
                .at(pos);
        }
        if hidden {
            return SqlError::new(state::UNDEFINED_TABLE, format!("invalid reference to FROM-clause entry for table \"{written}\""))
                .with_hint(format!("There is an entry for table \"{rel}\", but it cannot be referenced from this part of the query."))
                .at(pos);
        }
        SqlError::new(state::UNDEFINED_TABLE, format!("missing FROM-clause entry for table \"{written}\"")).at(pos)
    }

    /// `SELECT t FROM t`: the row as a value. A row that an outer join made up is NULL as a whole.
    pub fn whole_row(&self, item: &NsItem, level: usize) -> Result<HirScalar, SqlError> {
        if item.scalar {
            self.note_whole(item);
            return Ok(item.column(level, 0));
        }
        let field = |(i, c): (usize, &NsCol)| (item.row_names.as_ref().map_or(&c.name, |n| &n[i]).clone(), c.ty.clone());
        let fields: Vec<(String, ColType)> = item.cols.iter().enumerate().map(field).collect();
        if item.row_oid == pseudo::RECORD {
            self.note_whole(item);
        }
        let name = (item.row_oid != pseudo::RECORD).then(|| item.hidden.clone().unwrap_or_else(|| item.name.clone()));
        let ty = SqlType::Record(Arc::new(RecordType::of_relation(item.row_oid, name, fields))).not_null();
        self.note_rows(&ty.ty);
        let cols: Vec<HirScalar> = (0..item.cols.len()).map(|i| item.column(level, i)).collect();
        let row = self.internal("row_construct", cols.clone(), ty.clone())?;
        if !item.null_extended || cols.is_empty() {
            return Ok(row);
        }
        let absent = HirScalar::And(cols.into_iter().map(|c| HirScalar::IsNull(Box::new(c))).collect());
        let ty = ty.with_nullable(true);
        Ok(HirScalar::Case { branches: vec![(absent, HirScalar::Literal(Value::Null, ty.clone()))], otherwise: Box::new(row), ty })
    }
}
