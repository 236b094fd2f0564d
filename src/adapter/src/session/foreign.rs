//! Foreign keys as statements meet them: CASCADE, SET NULL, SET DEFAULT, MATCH FULL, SET CONSTRAINTS.
//!
//! When all parts of a statement are done, each key that a row lost is looked for in the tables that refer to it, as they are with the
//! statement's changes, and what the constraint says is done there, which may take keys from further rows:
//!
//! ```text
//!   DELETE FROM a WHERE id = 1 ─► b (a_id) CASCADE: its rows go ─► c (b_id) SET NULL: its rows change
//! ```
//!
//! Not here: whether it all fits together then. That the coordinator looks at, after the statement or at commit (`coordinator::foreign`).

use super::query::Row;
use super::read_set::{key_bytes, ReadSet};
use super::transaction::by_table;
use super::work::{Change, Work};
use super::{Response, Session};
use crate::catalog::{ForeignKey, Item, ItemKind, Table};
use crate::changes::Changes;
use crate::coordinator::foreign::{as_type, Constraints};
use crate::coordinator::request::{CheckWrites, Op, Request};
use repr::error::state;
use repr::{ColType, GlobalId, RowCodec, SqlError, Value};
use sql::ast::ForeignAction;
use sql::plan::{ForeignPlan, RowChecks};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A key that a row lost, and the one that it has instead; `None`: the row is gone.
type Move = (Row, Option<Row>);

/// A foreign key as the catalog keeps it. `itself`: the table that refers.
pub(super) fn stored(p: &ForeignPlan, itself: GlobalId) -> ForeignKey {
    let letter = |a: ForeignAction| match a {
        ForeignAction::NoAction => 'a',
        ForeignAction::Restrict => 'r',
        ForeignAction::Cascade => 'c',
        ForeignAction::SetNull => 'n',
        ForeignAction::SetDefault => 'd',
    };
    ForeignKey {
        name: p.name.clone(),
        columns: p.columns.clone(),
        parent: p.parent.unwrap_or(itself),
        parent_columns: p.parent_columns.clone(),
        full: p.full,
        on_delete: letter(p.on_delete),
        on_update: letter(p.on_update),
        set_columns: p.set_columns.clone(),
        deferrable: p.deferrable,
        deferred: p.deferred,
    }
}

fn table_of(item: &Item) -> Option<&Table> {
    match &item.kind {
        ItemKind::Table(t) => Some(t),
        _ => None,
    }
}

/// A table's keys and foreign keys: name, whether it may be put off, whether it is without being asked.
fn deferral(table: &Table) -> impl Iterator<Item = (&String, bool, bool)> {
    let keys = table.constraints().filter(|k| !k.index).map(|k| (&k.name, k.deferrable, k.deferred));
    keys.chain(table.foreign.iter().map(|f| (&f.name, f.deferrable, f.deferred)))
}

impl Session {
    /// Whether the table refers to others or others to it.
    pub(super) fn linked(&self, item: &Item) -> bool {
        table_of(item).is_some_and(|t| !t.foreign.is_empty()) || !self.catalog().referring(item.id).is_empty()
    }

    /// Does what foreign keys say about the keys that the statement's rows lost.
    pub(super) async fn referential_actions(&mut self, work: &mut Work) -> Result<(), SqlError> {
        let catalog = self.catalog();
        let mut next = 0;
        while let Some((parent, changes)) = work.part(next) {
            let mut todo: Vec<(Arc<Item>, ForeignKey, Vec<Move>)> = Vec::new();
            for (child, key) in catalog.referring(parent.id) {
                let moves = lost(parent, key, changes);
                if !moves.is_empty() {
                    todo.push((child.clone(), key.clone(), moves));
                }
            }
            let parent = parent.clone();
            for (child, key, moves) in todo {
                let changes = self.act(&parent, &child, &key, moves, work).await?;
                work.change(&child, changes);
            }
            next += 1;
        }
        work.parts().try_for_each(|(item, changes)| {
            let new: Vec<&Row> = changes.iter().filter_map(|c| c.new.as_ref()).collect();
            match_full(item, new.len(), |row, column| new[row][column].is_null())
        })
    }

    /// What one foreign key does about keys that are gone.
    async fn act(&mut self, parent: &Item, child: &Item, key: &ForeignKey, moves: Vec<Move>, work: &Work) -> Result<Vec<Change>, SqlError> {
        let types = &child.desc.types;
        let key_types: Vec<ColType> = key.columns.iter().map(|c| types[*c].clone()).collect();
        // As values of the columns that refer.
        let here = |row: &Row| -> Option<Row> {
            let each = row.iter().zip(&key.parent_columns).zip(&key_types);
            each.map(|((v, p), to)| as_type(v, &parent.desc.types[*p].ty, &to.ty)).collect()
        };
        let codec = RowCodec::new(key_types.clone());
        let encoded = |row: &Row| {
            let mut bytes = Vec::new();
            codec.encode_key(row, &mut bytes);
            bytes
        };
        let mut by_key: BTreeMap<Vec<u8>, Option<Row>> = BTreeMap::new();
        let mut keys = Vec::new();
        for (old, new) in moves {
            let Some(old) = here(&old) else { continue };
            let new = match new {
                None => None,
                Some(n) => Some(here(&n).ok_or_else(|| SqlError::new(state::NUMERIC_VALUE_OUT_OF_RANGE, "integer out of range"))?),
            };
            by_key.insert(encoded(&old), new);
            keys.push(old);
        }
        let found = self.rows_matching(child, &key.columns, keys, Some(ReadSet::default())).await?;
        self.note_read(rows_read(child, &found));
        // As they are with what the statement has changed so far.
        let rows = RowCodec::new(types.clone());
        let mut present: BTreeMap<Vec<u8>, (Row, i64)> = BTreeMap::new();
        let pending = work.changed(child.id).flat_map(|c| c.old.iter().map(|r| (r, -1)).chain(c.new.iter().map(|r| (r, 1))));
        for (row, diff) in found.iter().map(|r| (r, 1)).chain(pending) {
            let mut bytes = Vec::new();
            rows.encode_row(row, &mut bytes);
            present.entry(bytes).or_insert_with(|| (row.clone(), 0)).1 += diff;
        }
        let (_, ctx) = self.statement_ctx();
        let catalog = self.catalog();
        let exprs = self.shared.planner.table_exprs(&catalog, child)?;
        let (mut changes, mut stays) = (Vec::new(), false);
        for (row, count) in present.into_values() {
            let refers: Row = key.columns.iter().map(|c| row[*c].clone()).collect();
            if refers.iter().any(Value::is_null) {
                continue;
            }
            let Some(new_key) = by_key.get(&encoded(&refers)) else { continue };
            let action = if new_key.is_none() { key.on_delete } else { key.on_update };
            let mut new = row.clone();
            let set = if new_key.is_none() && !key.set_columns.is_empty() { &key.set_columns } else { &key.columns };
            match (action, new_key) {
                ('c', Some(values)) => key.columns.iter().zip(values).for_each(|(c, v)| new[*c] = v.clone()),
                ('n', _) => set.iter().for_each(|c| new[*c] = Value::Null),
                ('d', _) => {
                    for c in set {
                        new[*c] = match exprs.defaults.get(*c).and_then(Option::as_ref) {
                            Some(d) => super::query::constant(d.clone(), &ctx)?,
                            None => Value::Null,
                        };
                    }
                }
                _ => {}
            }
            let new = (action != 'c' || new_key.is_some()).then_some(new);
            // A default may be the key that goes.
            stays |= new.as_ref().is_some_and(|n| encoded(&key.columns.iter().map(|c| n[*c].clone()).collect()) == encoded(&refers));
            for _ in 0..count.max(0) {
                changes.push(Change { old: Some(row.clone()), new: new.clone() });
            }
        }
        if let (Some(o), false) = (self.txn.open(), stays) {
            o.acted.insert((child.id, key.name.clone()));
        }
        let not_null = (0..types.len()).filter(|i| !types[*i].nullable).collect();
        let generated = exprs.generated.iter().enumerate().filter_map(|(i, g)| Some((i, g.clone()?))).collect();
        let domains = sql::plan::domain_tests(&child.desc, &key.columns, &self.names())?;
        let checks = RowChecks { not_null, checks: exprs.checks.clone(), generated, domains, ..RowChecks::default() };
        let mut new: Vec<Row> = changes.iter().filter_map(|c| c.new.clone()).collect();
        self.check_rows(child, &mut new, &checks, &ctx)?;
        let mut new = new.into_iter();
        changes.iter_mut().filter(|c| c.new.is_some()).for_each(|c| c.new = new.next());
        Ok(changes)
    }

    /// Whether the transaction with these writes too would be accepted, but for constraints that wait for the commit.
    pub(super) async fn check_writes(&mut self, more: Vec<(GlobalId, Changes)>) -> Result<(), SqlError> {
        // A key that was put off may have been taken before it was given up.
        let writes = by_table(self.txn.writes().iter().cloned().chain(more).collect());
        let altered = |op: &Op| match op {
            Op::Update { item } if matches!(item.kind, ItemKind::Table(_)) => Some(item.id),
            _ => None,
        };
        let altered = self.txn.ddl().iter().filter_map(altered).collect();
        let catalog = self.catalog();
        let (deferred, acted) = (self.deferred(catalog.items().map(|i| &**i)), self.txn.open().map(|o| o.acted.clone()).unwrap_or_default());
        let check = CheckWrites { catalog, writes, altered, deferred, acted };
        self.shared.ask(|answer| Request::CheckWrites(check, answer)).await
    }

    /// The constraints of these tables that wait for the commit.
    pub(super) fn deferred<'i>(&self, items: impl IntoIterator<Item = &'i Item>) -> Constraints {
        let mut out = Constraints::new();
        for item in items {
            for (name, _, deferred) in table_of(item).into_iter().flat_map(deferral).filter(|c| c.1) {
                let said = self.txn.deferral().iter().rev().find(|d| d.0.as_ref().is_none_or(|names| names.contains(name)));
                if said.map_or(deferred, |d| d.1) {
                    out.insert((item.id, name.clone()));
                }
            }
        }
        out
    }

    pub(super) async fn set_constraints(&mut self, names: Option<Vec<String>>, deferred: bool) -> Result<Response, SqlError> {
        let catalog = self.catalog();
        for name in names.iter().flatten() {
            let mut all = catalog.items().filter_map(|i| table_of(i)).flat_map(deferral).filter(|c| c.0 == name).peekable();
            if all.peek().is_none() {
                return Err(SqlError::new(state::UNDEFINED_OBJECT, format!("constraint \"{name}\" does not exist")));
            }
            if all.any(|c| !c.1) {
                return Err(SqlError::new(state::WRONG_OBJECT_TYPE, format!("constraint \"{name}\" is not deferrable")));
            }
        }
        if !self.txn.in_block() {
            self.notice("WARNING", SqlError::new(state::NO_ACTIVE_SQL_TRANSACTION, "SET CONSTRAINTS can only be used in transaction blocks"));
        }
        if let Some(o) = self.txn.open() {
            o.deferral.push((names, deferred));
        }
        if !deferred && !self.txn.writes().is_empty() {
            self.check_writes(vec![]).await?;
        }
        Ok(Response::Tag("SET CONSTRAINTS".into()))
    }

    /// The tables that TRUNCATE empties. Errors: 0A000 for a table that others refer to, unless they are emptied too.
    pub(super) fn truncated(&mut self, mut tables: Vec<GlobalId>, cascade: bool) -> Result<Vec<GlobalId>, SqlError> {
        let catalog = self.catalog();
        let mut next = 0;
        while let Some(parent) = tables.get(next).copied() {
            next += 1;
            for (child, _) in catalog.referring(parent) {
                if tables.contains(&child.id) {
                    continue;
                }
                if !cascade {
                    let name = catalog.item(parent).map_or_else(String::new, |p| p.name.clone());
                    let e = SqlError::new(state::FEATURE_NOT_SUPPORTED, "cannot truncate a table referenced in a foreign key constraint");
                    let e = e.with_detail(format!("Table \"{}\" references \"{name}\".", child.name));
                    return Err(e.with_hint(format!("Truncate table \"{}\" at the same time, or use TRUNCATE ... CASCADE.", child.name)));
                }
                self.notice("NOTICE", SqlError::new(repr::SqlState::new("00000"), format!("truncate cascades to table \"{}\"", child.name)));
                tables.push(child.id);
            }
        }
        Ok(tables)
    }
}

/// What the rows' keys are, where the table has a primary key; else the table.
fn rows_read(item: &Item, rows: &[Row]) -> ReadSet {
    let mut read = ReadSet::default();
    match table_of(item).and_then(|t| t.primary_key.as_ref()) {
        Some(k) => {
            let types = &item.desc.types;
            let bytes = |row: &Row| key_bytes(&k.columns.iter().map(|c| row[*c].clone()).collect::<Row>(), &k.columns, types);
            read.keys.insert((item.id, 0), rows.iter().map(bytes).collect());
        }
        None => drop(read.whole.insert(item.id)),
    }
    read
}

/// The keys that rows lost, where the constraint says that something becomes of those that refer to them.
fn lost(parent: &Item, key: &ForeignKey, changes: &[Change]) -> Vec<Move> {
    let codec = RowCodec::new(key.parent_columns.iter().map(|c| parent.desc.types[*c].clone()).collect());
    let of = |row: &Row| -> Row { key.parent_columns.iter().map(|c| row[*c].clone()).collect() };
    let encoded = |row: &Row| {
        let mut bytes = Vec::new();
        codec.encode_key(row, &mut bytes);
        bytes
    };
    let mut out = Vec::new();
    for change in changes {
        let Some(old) = change.old.as_ref().map(of).filter(|k| !k.iter().any(Value::is_null)) else { continue };
        let new = change.new.as_ref().map(of);
        let action = if new.is_none() { key.on_delete } else { key.on_update };
        if matches!(action, 'c' | 'n' | 'd') && new.as_ref().is_none_or(|n| encoded(n) != encoded(&old)) {
            out.push((old, new));
        }
    }
    out
}

/// Errors: 23503 for one of `rows` new rows that refers half, where MATCH FULL forbids it. `is_null`: of a row and a column.
pub(super) fn match_full(item: &Item, rows: usize, is_null: impl Fn(usize, usize) -> bool) -> Result<(), SqlError> {
    for key in table_of(item).into_iter().flat_map(|t| &t.foreign).filter(|f| f.full) {
        for row in 0..rows {
            let nulls = key.columns.iter().filter(|c| is_null(row, **c)).count();
            if nulls != 0 && nulls != key.columns.len() {
                let m = format!("insert or update on table \"{}\" violates foreign key constraint \"{}\"", item.name, key.name);
                let e = SqlError::new(repr::SqlState::new("23503"), m).with_detail("MATCH FULL does not allow mixing of null and nonnull key values.");
                return Err(e.of_table(&item.schema, &item.name).of_constraint(&key.name));
            }
        }
    }
    Ok(())
}
