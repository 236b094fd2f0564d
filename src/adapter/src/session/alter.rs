//! ALTER TABLE, CREATE and ALTER SEQUENCE: rows, and what depends on what is changed.
//!
//! A table whose columns or constraints change is made anew, under its name, in the transaction that changes it:
//!
//! ```text
//!   rows of the old table ─change by change─► rows of the new one ─► its keys and checks
//!   indexes and views on the old one ─────────► the same texts, bound to the new one
//!   Drop {views, indexes, old}, Create {new}, Create {indexes, views}, the rows: one tick
//! ```
//!
//! Rows go through all changes some thousands at a time, once everything else is known to be possible. Writers that planned on the old table
//! are told to try again, whatever a view's plan took for granted is looked at again, and a crash leaves the one or the other.
//! Not here: binding of the changes (`sql::plan::alter`), renames (see `rename`).

use super::ddl::{table_sql, user_types};
use super::query::{Row, Running};
use super::write::{evaluate_plain, fill, get, to_deltas};
use super::{Response, Session};
use crate::builtin::quote_if_needed;
use crate::catalog::{Constraint, ForeignKey, Item, ItemKind, Namespace, OwnedSequence, Sequence, Table};
use crate::coordinator::request::Op;
use crate::planner::{draft_relation, full_name, qualified};
use crate::sequences::Position;
use expr::EvalCtx;
use repr::error::state;
use repr::{ColType, GlobalId, RelDesc, SqlError, SqlType, Value};
use sql::ast::TableAction;
use sql::catalog::FullName;
use sql::hir::HirScalar;
use sql::plan::alter::TableStep;
use sql::plan::text::{columns_read, reshaped};
use sql::plan::{AlterSequencePlan, AlterTablePlan, ColumnSequence, CreateSequencePlan, RowChecks};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What a change does to some rows, all of which have gone through those before it.
type RowStep = Box<dyn Fn(&mut Vec<Row>, &EvalCtx) -> Result<(), SqlError> + Send + Sync>;

/// A table in the making.
pub(super) struct Draft {
    pub(super) item: Item,
    pub(super) table: Table,
    /// Position in the old table of each column that was there.
    origin: Vec<Option<usize>>,
    /// What the changes do to the rows, one after the other.
    steps: Vec<RowStep>,
    /// Columns, keys or checks have changed: it is made anew.
    pub(super) anew: bool,
    lost: Lost,
    /// A foreign key was added: all rows are to be looked at.
    linked: bool,
    /// A column with a sequence was added.
    numbered: bool,
    ops: Vec<Op>,
}

/// What the old table had and the new one has not: what needs it cannot stay.
#[derive(Default)]
struct Lost {
    /// Columns that are gone or have another type.
    dropped: BTreeSet<usize>,
    retyped: BTreeSet<usize>,
    /// The primary key: views may rest on it.
    key: Option<String>,
    /// Indexes that have become keys.
    indexes: Vec<String>,
    cascade: bool,
    /// What CASCADE takes along, as its notice tells it.
    also: Vec<String>,
}

impl Session {
    pub(super) async fn alter_table(&mut self, p: AlterTablePlan) -> Result<Response, SqlError> {
        let old = self.table(p.table.id)?;
        self.check_unused(old.id, "ALTER TABLE")?;
        let mut draft = Draft::of(&old)?;
        let mut at = 0;
        while at < p.actions.len() {
            // New types are made from the rows as they were before any of them.
            let retyped = |a: &TableAction| matches!(a, TableAction::SetType { .. });
            let together = p.actions[at..].iter().take_while(|a| retyped(a)).count().max(1);
            let steps = {
                let names = self.names();
                let relation = draft_relation(&names.catalog, &draft.item, &draft.table);
                let bind = |a| sql::plan::alter::bind(a, &p.statement, &relation, &names);
                p.actions[at..at + together].iter().map(bind).collect::<Result<Vec<_>, _>>()?
            };
            at += together;
            let (mut casts, types) = (Vec::new(), draft.item.desc.types.clone());
            for step in steps {
                if let TableStep::Type { column, using, .. } = &step {
                    casts.retain(|c: &(usize, HirScalar)| c.0 != *column);
                    if draft.item.desc.types[*column] != types[*column] {
                        let m = format!("cannot alter type of column \"{}\" twice", draft.item.desc.names[*column]);
                        return Err(SqlError::new(state::FEATURE_NOT_SUPPORTED, m));
                    }
                    casts.push((*column, using.clone()));
                }
                self.alter_step(&old, &mut draft, step)?;
            }
            if !casts.is_empty() {
                let (columns, casts): (Vec<usize>, Vec<HirScalar>) = casts.into_iter().unzip();
                draft.steps.push(Box::new(move |rows, ctx| {
                    let made = evaluate_plain(&casts, rows, &types, ctx)?;
                    for (row, values) in rows.iter_mut().zip(made) {
                        columns.iter().zip(values).for_each(|(c, v)| row[*c] = v);
                    }
                    Ok(())
                }));
            }
        }
        self.finish_alter(&old, draft).await?;
        Ok(Response::Tag("ALTER TABLE".into()))
    }

    fn alter_step(&mut self, old: &Item, draft: &mut Draft, step: TableStep) -> Result<(), SqlError> {
        match step {
            TableStep::Nothing(notice) => self.notice("NOTICE", notice),
            TableStep::Default { column, text } => draft.table.defaults[column] = text,
            TableStep::NotNull { column, set } => {
                draft.anew |= draft.item.desc.types[column].nullable == set;
                draft.item.desc.types[column].nullable = !set;
            }
            TableStep::DropConstraint { name, cascade } => {
                draft.lost.cascade |= cascade;
                let others = draft.table.foreign.len();
                draft.table.foreign.retain(|f| f.name != name);
                draft.table.unchecked.retain(|n| *n != name);
                if draft.table.foreign.len() < others {
                    return Ok(());
                }
                draft.anew = true;
                draft.table.checks.retain(|c| c.0 != name);
                draft.table.unique.retain(|c| c.name != name);
                draft.lost.key = draft.table.primary_key.take_if(|k| k.name == name).map(|k| k.name).or(draft.lost.key.take());
            }
            TableStep::Validate { name } => {
                let before = draft.table.unchecked.len();
                draft.table.unchecked.retain(|n| *n != name);
                if draft.table.unchecked.len() < before {
                    // Rows go through a check as the table is made anew, so that none comes by a transaction that did not know of it.
                    draft.anew |= draft.table.checks.iter().any(|c| c.0 == name);
                    draft.linked |= draft.table.foreign.iter().any(|f| f.name == name);
                }
            }
            TableStep::Foreign { name, when } => {
                let keys = draft.table.foreign.iter_mut().filter(|f| f.name == name);
                keys.for_each(|f| (f.deferrable, f.deferred) = (when.deferrable, when.deferred));
            }
            TableStep::DropColumn { column, cascade } => {
                let name = draft.item.desc.names[column].clone();
                while let Some(other) = self.generated_from(draft, draft.item.desc.names.iter().position(|n| *n == name).unwrap_or(column))? {
                    if !cascade {
                        return Err(blocked(
                            &format!("column {name} of table {}", old.name),
                            &[format!("column {} of table {} depends on column {name} of table {}", draft.item.desc.names[other], old.name, old.name)],
                        ));
                    }
                    self.drop_column(draft, other, true)?;
                }
                let column = draft.item.desc.names.iter().position(|n| *n == name).unwrap_or(column);
                self.drop_column(draft, column, cascade)?;
            }
            TableStep::Type { column, ty, collation, .. } => {
                draft.table.collations.retain(|c| c.0 != column);
                draft.table.collations.extend(collation.map(|name| (column, name)));
                if let Some(other) = self.generated_from(draft, column)? {
                    let e = SqlError::new(state::FEATURE_NOT_SUPPORTED, "cannot alter type of a column used by a generated column");
                    let (a, b) = (&draft.item.desc.names[column], &draft.item.desc.names[other]);
                    return Err(e.with_detail(format!("Column \"{a}\" is used by generated column \"{b}\".")));
                }
                if draft.item.desc.types[column] != ty {
                    draft.lost.retyped.extend(draft.origin[column]);
                }
                if draft.table.sequences.iter().any(|s| s.column == column && s.identity.is_some()) {
                    self.alter_identity(draft, column, &Default::default(), Some(ty.ty.clone()))?;
                }
                draft.item.desc.types[column] = ty;
                draft.anew = true;
            }
            TableStep::Extend(shape) => self.extend(draft, *shape)?,
            TableStep::AddIdentity(s) => self.add_sequence_to(draft, &s),
            TableStep::SetIdentity { column, always, options } => {
                if let Some(owned) = draft.table.sequences.iter_mut().find(|s| s.column == column) {
                    owned.identity = always.or(owned.identity);
                }
                self.alter_identity(draft, column, &options, None)?;
            }
            TableStep::DropIdentity { column } => {
                let owned = draft.table.sequences.iter().position(|s| s.column == column);
                if let Some(owned) = owned.map(|i| draft.table.sequences.remove(i)) {
                    draft.table.defaults[column] = None;
                    draft.item.deps.retain(|d| *d != owned.sequence);
                    draft.ops.push(Op::Drop { ids: vec![owned.sequence] });
                }
            }
            TableStep::DropExpression { column } => draft.table.generated[column] = None,
            TableStep::Storage(options) => {
                for (name, value) in options {
                    draft.item.options.retain(|o| o.0 != name);
                    draft.item.options.extend(value.map(|v| (name, v)));
                }
            }
        }
        Ok(())
    }

    /// Changes the sequence that an identity column owns, to the type `ty` if there is one.
    fn alter_identity(&mut self, draft: &mut Draft, column: usize, options: &sql::ast::SequenceOptions, ty: Option<SqlType>) -> Result<(), SqlError> {
        let Some(owned) = draft.table.sequences.iter().find(|s| s.column == column) else { return Ok(()) };
        let catalog = self.catalog();
        let item = catalog.item(owned.sequence).ok_or_else(|| crate::vanished("the sequence"))?;
        draft.ops.push(self.alter_sequence_item(item, options, ty)?);
        Ok(())
    }

    /// A generated column that is computed from `column`.
    fn generated_from(&self, draft: &Draft, column: usize) -> Result<Option<usize>, SqlError> {
        let name = qualified(&draft.item.schema, &draft.item.name);
        for (i, text) in draft.table.generated.iter().enumerate() {
            let Some(text) = text else { continue };
            // Bound over the old table, in which the column has its old place.
            let reads = columns_read(("SELECT ", &format!(" FROM {name}")), text, &self.names()).unwrap_or_default();
            let old = draft.origin[column];
            if i != column && old.is_some_and(|c| reads.contains(&(draft.item.id, c))) {
                return Ok(Some(i));
            }
        }
        Ok(None)
    }

    fn drop_column(&mut self, draft: &mut Draft, column: usize, cascade: bool) -> Result<(), SqlError> {
        draft.steps.push(Box::new(move |rows, _| {
            rows.iter_mut().for_each(|r| drop(r.remove(column)));
            Ok(())
        }));
        draft.lost.cascade |= cascade;
        draft.anew = true;
        let name = qualified(&draft.item.schema, &draft.item.name);
        // Indexes that hold the column beside their keys go with it too.
        let held = &draft.item.desc.names[column];
        let indexes = self.catalog().dependants(draft.item.id).filter(|d| matches!(d.kind, ItemKind::Index { .. })).map(|d| d.name.clone()).collect::<Vec<_>>();
        let covering: Vec<String> = indexes.into_iter().filter(|i| self.included(draft.item.id, i).contains(held)).collect();
        let mut checks = Vec::new();
        for (n, text) in std::mem::take(&mut draft.table.checks) {
            let reads = columns_read(("SELECT ", &format!(" FROM {name}")), &text, &self.names()).unwrap_or_default();
            // A check that reads the column goes with it.
            if !draft.origin[column].is_some_and(|c| reads.contains(&(draft.item.id, c))) {
                checks.push((n, text));
            }
        }
        draft.table.checks = checks;
        let mut computed = Vec::new();
        for k in std::mem::take(&mut draft.table.computed_keys) {
            let all: Vec<&str> = k.keys.iter().chain(&k.filter).map(String::as_str).collect();
            let reads = columns_read(("SELECT ", &format!(" FROM {name}")), &all.join(", "), &self.names()).unwrap_or_default();
            if !draft.origin[column].is_some_and(|c| reads.contains(&(draft.item.id, c))) {
                computed.push(k);
            }
        }
        computed.retain(|k| !covering.contains(&k.name));
        draft.table.computed_keys = computed;
        draft.lost.indexes.extend(covering.iter().cloned());
        draft.lost.dropped.extend(draft.origin.remove(column));
        draft.item.desc.names.remove(column);
        draft.item.desc.types.remove(column);
        draft.table.defaults.remove(column);
        if column < draft.table.generated.len() {
            draft.table.generated.remove(column);
        }
        draft.table.collations.retain(|c| c.0 != column);
        draft.table.collations.iter_mut().filter(|c| c.0 > column).for_each(|c| c.0 -= 1);
        // Keys with the column go with it, the others move.
        let moved = |c: &mut Constraint| {
            let stays = !(c.columns.contains(&column) || c.include.contains(&column) || c.index && covering.contains(&c.name));
            c.columns.iter_mut().chain(&mut c.include).filter(|x| **x > column).for_each(|x| *x -= 1);
            stays
        };
        draft.table.unique.retain_mut(moved);
        draft.table.primary_key = draft.table.primary_key.take().and_then(|mut k| moved(&mut k).then_some(k));
        draft.table.foreign.retain_mut(|f| {
            let stays = !f.columns.contains(&column);
            let moved = |c: &mut Vec<usize>| c.iter_mut().filter(|x| **x > column).for_each(|x| *x -= 1);
            moved(&mut f.columns);
            moved(&mut f.set_columns);
            stays
        });
        for owned in draft.table.sequences.iter().filter(|s| s.column == column) {
            draft.item.deps.retain(|d| *d != owned.sequence);
            draft.ops.push(Op::Drop { ids: vec![owned.sequence] });
        }
        draft.table.sequences.retain(|s| s.column != column);
        draft.table.sequences.iter_mut().filter(|s| s.column > column).for_each(|s| s.column -= 1);
        draft.item.comments.retain(|c| c.0 as usize != column + 1);
        draft.item.comments.iter_mut().filter(|c| c.0 as usize > column + 1).for_each(|c| c.0 -= 1);
        Ok(())
    }

    /// New columns with their values in the rows that are there, new keys and checks.
    fn extend(&mut self, draft: &mut Draft, shape: sql::plan::TableShape) -> Result<(), SqlError> {
        let first = draft.item.desc.arity();
        let types: Vec<ColType> = shape.desc.types.clone();
        let itself = draft.item.id;
        draft.table.foreign.extend(shape.foreign.iter().map(|f| super::foreign::stored(f, itself)));
        draft.linked |= !shape.foreign.is_empty();
        self.check_lasting(&draft.table, draft.table.temporary)?;
        draft.table.unchecked.extend(shape.unchecked.iter().cloned());
        // A foreign key alone leaves the table as it is, and so does a check that says nothing of the rows that are there.
        let says_nothing = shape.checks.iter().all(|c| shape.unchecked.contains(&c.0));
        if types.len() == first && shape.unique.is_empty() && says_nothing {
            draft.table.checks.extend(shape.checks.into_iter().map(|c| (c.0, c.1)));
            return Ok(());
        }
        draft.anew = true;
        draft.numbered |= !shape.sequences.is_empty();
        draft.item.desc = shape.desc;
        draft.table.collations.extend(shape.collations);
        draft.origin.resize(types.len(), None);
        draft.table.generated.resize(types.len(), None);
        for (i, (default, generated)) in shape.defaults.iter().zip(&shape.generated).enumerate() {
            draft.table.defaults.push(default.as_ref().map(|d| d.0.clone()));
            draft.table.generated[first + i] = generated.as_ref().map(|g| g.0.clone());
        }
        for s in &shape.sequences {
            self.add_sequence_to(draft, s);
        }
        // The sequences are to be known before their values are asked for. Those that go do so with the old table.
        let (gone, made) = std::mem::take(&mut draft.ops).into_iter().partition(|op| matches!(op, Op::Drop { .. }));
        draft.ops = gone;
        self.apply(made)?;
        let mut late: Vec<(usize, HirScalar)> = shape.defaults.into_iter().enumerate().filter_map(|(i, d)| Some((first + i, d?.1))).collect();
        for (column, ty) in types.iter().enumerate().skip(first) {
            let given = late.iter().any(|l| l.0 == column) || shape.sequences.iter().any(|s| s.column == column);
            if let (false, Some(implied)) = (given, sql::plan::implied_default(ty, &self.names())?) {
                late.push((column, implied));
            }
        }
        for s in &shape.sequences {
            let text = draft.table.defaults[s.column].clone().unwrap_or_default();
            late.push((s.column, sql::plan::bind_scalar(&format!("CAST({text} AS {})", types[s.column].ty.sql_name()), &RelDesc::default(), &self.names())?));
        }
        let computed = shape.generated.into_iter().enumerate().filter_map(|(i, g)| Some((first + i, g?.1)));
        let (columns, exprs): (Vec<usize>, Vec<HirScalar>) = computed.unzip();
        draft.steps.push(Box::new(move |rows, ctx| {
            rows.iter_mut().for_each(|r| r.resize(types.len(), Value::Null));
            fill(rows, &late, &types, ctx)?;
            let values = if exprs.is_empty() { vec![] } else { evaluate_plain(&exprs, rows, &types, ctx)? };
            for (row, values) in rows.iter_mut().zip(values) {
                columns.iter().zip(values).for_each(|(c, v)| row[*c] = v);
            }
            Ok(())
        }));
        for (name, columns, primary) in shape.unique {
            let mut equal_nulls = shape.equal_nulls.contains(&name);
            let mut include: Vec<usize> = shape.include.iter().filter(|k| k.0 == name).flat_map(|k| k.1.clone()).collect();
            if let Some(index) = &shape.from_index {
                // The index is the constraint's from now on, and no object of its own.
                let words = |order: &String| order.split_whitespace().any(|w| matches!(w, "DESC" | "NULLS"));
                if let Some(n) = self.index_def(draft.item.id, index).and_then(|d| d.order.iter().position(words)) {
                    let m = format!("index \"{index}\" column number {} does not have default sorting behavior", n + 1);
                    let e = SqlError::new(state::WRONG_OBJECT_TYPE, m);
                    return Err(e.with_detail("Cannot create a primary key or unique constraint using such an index."));
                }
                equal_nulls = draft.table.unique.iter().any(|u| u.name == *index && u.equal_nulls);
                draft.table.unique.retain(|u| u.name != *index);
                include = self.included(draft.item.id, index).iter().filter_map(|n| draft.item.desc.names.iter().position(|x| x == n)).collect();
                draft.lost.indexes.push(index.clone());
                if *index != name {
                    let m = format!("ALTER TABLE / ADD CONSTRAINT USING INDEX will rename index \"{index}\" to \"{name}\"");
                    self.notice("NOTICE", SqlError::new(repr::SqlState::new("00000"), m));
                }
            }
            let deferral = shape.deferral.iter().find(|d| d.0 == name);
            let (deferrable, deferred) = (deferral.is_some(), deferral.is_some_and(|d| d.1));
            let c = Constraint { name, columns, include, index: false, equal_nulls, deferrable, deferred };
            match primary {
                true => draft.table.primary_key = Some(c),
                false => draft.table.unique.push(c),
            }
        }
        draft.table.checks.extend(shape.checks.into_iter().map(|c| (c.0, c.1)));
        Ok(())
    }

    pub(super) async fn finish_alter(&mut self, old: &Item, draft: Draft) -> Result<GlobalId, SqlError> {
        let Draft { mut item, mut table, origin, steps, anew, mut lost, linked, numbered, ops } = draft;
        item.sql = table_sql(&full_name(&item), &item.desc, &table);
        table.unchecked =
            table.unchecked.iter().filter(|n| table.checks.iter().any(|c| c.0 == **n) || table.foreign.iter().any(|f| f.name == **n)).cloned().collect();
        let keys = table.constraints().filter(|k| !k.deferrable).map(|k| k.columns.clone());
        item.desc.keys = keys.filter(|k| k.iter().all(|c| !item.desc.types[*c].nullable)).collect();
        let catalog = self.catalog();
        item.deps.retain(|d| catalog.item(*d).is_some_and(|i| !matches!(i.kind, ItemKind::Sequence(_))));
        item.deps.extend(user_types(&self.catalog(), &item.desc));
        item.deps.extend(table.sequences.iter().map(|s| s.sequence));
        item.deps.extend(self.sequences_named(&table.defaults));
        item.deps.sort();
        item.deps.dedup();
        if anew {
            item.id = self.shared.allocate_id();
            relink(old, &item, &mut table, &origin, &lost)?;
        }
        let children = if anew { self.relinked_children(old, &item, &table, &origin, &mut lost)? } else { vec![] };
        item.kind = ItemKind::Table(table);
        item.forget_comments();
        if !anew {
            let mut all: Vec<Op> = ops.iter().filter(|op| !matches!(op, Op::Drop { .. })).cloned().collect();
            all.push(Op::Update { item: Box::new(item) });
            all.extend(ops.into_iter().filter(|op| matches!(op, Op::Drop { .. })));
            self.apply(all)?;
            self.shared.planner.forget_text(old.id);
            if linked {
                let now = self.table(old.id)?;
                let mut source = self.start_relation(get(&now)).await?;
                while let Some(rows) = source.next().await? {
                    super::foreign::match_full(&now, rows.len(), |row, column| rows[row][column].is_null())?;
                }
                self.check_writes(vec![]).await?;
            }
            return Ok(old.id);
        }
        let dependants = self.kept_dependants(old, &mut lost)?;
        let dependants = dependants.into_iter().map(|d| self.reshaped(old, d, &origin, &item.desc.names)).collect::<Result<Vec<_>, _>>()?;
        self.tell_cascade(&lost.also);
        let mut gone: Vec<GlobalId> = self.all_dependants(old.id).into_iter().map(|i| i.id).rev().collect();
        gone.push(old.id);
        // What was written to the old table is in the rows. Sequences number them by the key.
        let by = match &old.kind {
            ItemKind::Table(Table { primary_key: Some(k), .. }) if numbered => k.columns.clone(),
            _ => vec![],
        };
        let rows = self.start_ordered(get(old), &by).await?;
        if let Some(o) = self.txn.open() {
            o.rewrites = true;
        }
        let mut first = vec![Op::Drop { ids: gone }];
        first.extend(ops.iter().filter(|op| matches!(op, Op::Drop { .. })).cloned());
        first.extend(ops.into_iter().filter(|op| !matches!(op, Op::Drop { .. })));
        first.push(Op::Create { item: Box::new(item.clone()), plan: None });
        first.extend(children);
        self.apply(first)?;
        let item = Arc::new(item);
        // Keys are tested now, whatever waits for the commit.
        if let Some(o) = self.txn.open() {
            o.deferral.push((None, false));
        }
        let written = self.write_altered(&item, rows, &steps).await;
        if let Some(o) = self.txn.open() {
            o.deferral.pop();
        }
        written?;
        let mut ids: BTreeMap<GlobalId, GlobalId> = BTreeMap::from([(old.id, item.id)]);
        for d in dependants {
            self.recreate(old, &d, &mut ids)?;
        }
        Ok(item.id)
    }

    /// The other tables that refer to a table, now that it is another one.
    /// Errors: 2BP01 for a foreign key to what is no key any more, unless `cascade`.
    fn relinked_children(&mut self, old: &Item, new: &Item, table: &Table, origin: &[Option<usize>], lost: &mut Lost) -> Result<Vec<Op>, SqlError> {
        let catalog = self.catalog();
        let mut children: BTreeMap<GlobalId, Item> = BTreeMap::new();
        for (child, key) in catalog.referring(old.id).into_iter().filter(|c| c.0.id != old.id) {
            let item = children.entry(child.id).or_insert_with(|| (**child).clone());
            let ItemKind::Table(t) = &mut item.kind else { continue };
            match moved_key(key, origin, table) {
                Some(columns) => t.foreign.iter_mut().filter(|f| f.name == key.name).for_each(|f| (f.parent, f.parent_columns) = (new.id, columns.clone())),
                None if lost.cascade => {
                    t.foreign.retain(|f| f.name != key.name);
                    lost.also.push(format!("drop cascades to constraint {} on {}", quote_if_needed(&key.name), child.told()));
                }
                None => return Err(needed_by(old, child, key, lost)),
            }
        }
        Ok(children.into_values().map(|item| Op::Update { item: Box::new(item) }).collect())
    }

    /// Changes the rows, tests them and writes them to the new table.
    async fn write_altered(&mut self, item: &Arc<Item>, mut source: Running, steps: &[RowStep]) -> Result<(), SqlError> {
        let (catalog, ctx) = self.statement_ctx();
        let exprs = self.shared.planner.table_exprs(&catalog, item)?;
        let not_null = (0..item.desc.arity()).filter(|i| !item.desc.types[*i].nullable).collect();
        let unchecked: &[String] = if let ItemKind::Table(t) = &item.kind { &t.unchecked } else { &[] };
        let checks = exprs.checks.iter().filter(|c| !unchecked.contains(&c.0)).cloned().collect();
        let checks = RowChecks { not_null, checks, ..RowChecks::default() };
        while let Some(mut rows) = source.next().await? {
            steps.iter().try_for_each(|step| step(&mut rows, &ctx))?;
            self.check_rows(item, &mut rows, &checks, &ctx).map_err(|e| of_old_rows(e, item))?;
            for deltas in to_deltas(&item.desc.types, &rows.into_iter().map(|r| (r, 1)).collect()) {
                self.write_piece(item, deltas).await.map_err(|e| of_old_rows(e, item))?;
            }
        }
        self.end_pieces(item).await.map_err(|e| of_old_rows(e, item))
    }

    /// All that depends on an object, what depends on it after it.
    pub(super) fn all_dependants(&self, id: GlobalId) -> Vec<Arc<Item>> {
        let catalog = self.catalog();
        let mut seen = BTreeSet::new();
        let mut todo = vec![id];
        while let Some(id) = todo.pop() {
            todo.extend(catalog.dependants(id).map(|d| d.id).filter(|d| seen.insert(*d)));
        }
        // Ids grow: what an object is made from has a smaller one.
        seen.into_iter().filter_map(|id| catalog.item(id).cloned()).collect()
    }

    /// What depends on the table and can be made again.
    /// Errors: 2BP01 for what reads a dropped column or rests on a dropped key, unless CASCADE; 0A000 for what reads a column of another type.
    fn kept_dependants(&mut self, old: &Item, lost: &mut Lost) -> Result<Vec<Arc<Item>>, SqlError> {
        let (mut kept, mut gone, mut blockers) = (Vec::new(), BTreeSet::new(), Vec::new());
        let from = format!(" FROM {}", qualified(&old.schema, &old.name));
        for d in self.all_dependants(old.id) {
            if matches!(d.kind, ItemKind::Index { on, .. } if on == old.id) && lost.indexes.contains(&d.name) {
                continue;
            }
            let reads = {
                let names = self.names();
                match &d.kind {
                    ItemKind::View { query, .. } | ItemKind::MaterializedView { query, .. } => columns_read(("", ""), query, &names)?,
                    ItemKind::Index { on, key, def } if *on == old.id => {
                        let all: Vec<&str> = key.iter().chain(&def.filter).map(String::as_str).collect();
                        columns_read(("SELECT ", &from), &all.join(", "), &names)?
                    }
                    ItemKind::Index { .. } | ItemKind::ViewErrors { .. } => BTreeSet::new(),
                    _ => {
                        let what = format!("ALTER TABLE of what {} {} depends on", d.noun(), d.name);
                        return Err(SqlError::unsupported(what, "drop it and create it again afterwards"));
                    }
                }
            };
            let column = |set: &BTreeSet<usize>| set.iter().find(|c| reads.contains(&(old.id, **c))).copied();
            let above = d.deps.iter().any(|x| gone.contains(x));
            let keyless = lost.key.as_ref().filter(|_| d.rests_on.contains(&old.id));
            if let Some(c) = column(&lost.dropped).filter(|_| !above) {
                if matches!(d.kind, ItemKind::Index { .. }) {
                    continue;
                }
                let name = &old.desc.names[c];
                blockers.push(format!("{} depends on column {} of {}", d.told(), quote_if_needed(name), old.told()));
            } else if let (Some(key), false) = (keyless, above) {
                blockers.push(format!("{} depends on constraint {} on {}", d.told(), quote_if_needed(key), old.told()));
            }
            let below = d.deps.iter().find(|x| gone.contains(*x)).and_then(|x| self.catalog().item(*x).cloned());
            if let (Some(below), ItemKind::View { .. } | ItemKind::MaterializedView { .. }) = (below, &d.kind) {
                blockers.push(format!("{} depends on {}", d.told(), below.told()));
            }
            if above || column(&lost.dropped).is_some() || keyless.is_some() {
                if !matches!(d.kind, ItemKind::Index { .. } | ItemKind::ViewErrors { .. }) {
                    lost.also.push(format!("drop cascades to {}", d.told()));
                }
                gone.insert(d.id);
                continue;
            }
            if let (Some(c), false) = (column(&lost.retyped), matches!(d.kind, ItemKind::Index { .. })) {
                let e = SqlError::new(state::FEATURE_NOT_SUPPORTED, "cannot alter type of a column used by a view or rule");
                return Err(e.with_detail(format!("rule _RETURN on {} depends on column \"{}\"", d.told(), old.desc.names[c])));
            }
            kept.push(d);
        }
        if !blockers.is_empty() && !lost.cascade {
            return Err(blocked(&lost.told(old), &blockers));
        }
        Ok(kept)
    }

    /// What depends on a table or view, its text as it reads over other columns. `origin`: the old place of each of `now`.
    pub(super) fn reshaped(&self, old: &Item, d: Arc<Item>, origin: &[Option<usize>], now: &[String]) -> Result<Arc<Item>, SqlError> {
        let (ItemKind::View { query, .. } | ItemKind::MaterializedView { query, .. }, true) = (&d.kind, d.deps.contains(&old.id)) else { return Ok(d) };
        let text = reshaped(query, old.id, origin, now, &self.names())?;
        if text == *query {
            return Ok(d);
        }
        let mut new = (*d).clone();
        new.set_query(text);
        Ok(Arc::new(new))
    }

    /// Makes again what depends on a table or view, now that that is another one. What is known of its rows (keys, NULLs) is looked at anew.
    pub(super) fn recreate(&mut self, old: &Item, d: &Item, ids: &mut BTreeMap<GlobalId, GlobalId>) -> Result<(), SqlError> {
        let mut item = d.clone();
        item.id = self.shared.allocate_id();
        ids.insert(d.id, item.id);
        item.deps.iter_mut().chain(&mut item.rests_on).for_each(|x| *x = ids.get(x).copied().unwrap_or(*x));
        if let ItemKind::Index { on, .. } = &mut item.kind {
            *on = ids.get(on).copied().unwrap_or(*on);
        }
        if let ItemKind::ViewErrors { view } = &mut item.kind {
            *view = ids.get(view).copied().unwrap_or(*view);
        }
        let catalog = self.catalog();
        let planner = self.shared.planner.clone();
        let bound = tokio::task::block_in_place(|| match &item.kind {
            ItemKind::MaterializedView { .. } => {
                let mir = planner.view_mir(&catalog, &item)?;
                planner.view_hir(&catalog, &item).map(|h| Some((h.types(), optimize::keys::unique_keys(&mir, &Default::default()))))
            }
            ItemKind::View { .. } => planner.view_hir(&catalog, &item).map(|h| Some((h.types(), vec![]))),
            ItemKind::Index { .. } => planner.index_key(&catalog, &item).map(|_| None),
            _ => Ok(None),
        });
        let needs = |why: SqlError| {
            let (code, verb) = match old.kind {
                ItemKind::Table(_) => (state::DEPENDENT_OBJECTS_STILL_EXIST, "alter"),
                _ => (why.code, "replace"),
            };
            let e = SqlError::new(code, format!("cannot {verb} {} because {} cannot be made from it any more: {}", old.told(), d.told(), why.message));
            e.with_hint(format!("Drop {} first.", d.told()))
        };
        let bound = bound.map_err(|e| {
            planner.forget(item.id);
            needs(e)
        })?;
        if let Some((types, keys)) = bound {
            // A whole row of what changes is what it is now.
            fn rows(a: &SqlType, b: &SqlType) -> bool {
                match (a, b) {
                    (SqlType::Record(a), SqlType::Record(b)) => a.name.is_some() && a.name == b.name,
                    (SqlType::Array(a), SqlType::Array(b)) => rows(a, b),
                    _ => false,
                }
            }
            let same = types.len() == d.desc.arity() && types.iter().zip(&d.desc.types).all(|(a, b)| a.ty == b.ty || rows(&a.ty, &b.ty));
            if !same {
                planner.forget(item.id);
                let m = format!("the columns of {} {} would change", d.noun(), d.name);
                return Err(needs(SqlError::new(state::INVALID_TABLE_DEFINITION, m)));
            }
            item.desc.types.iter_mut().zip(&types).for_each(|(t, now)| (t.ty, t.nullable) = (now.ty.clone(), now.nullable));
            item.desc.keys = keys;
        }
        self.apply(vec![Op::Create { item: Box::new(item), plan: None }])
    }

    fn add_sequence_to(&self, draft: &mut Draft, s: &ColumnSequence) {
        let name = full_name(&draft.item);
        self.add_sequence(&name, &draft.item.desc.names, &mut draft.table, s, &mut draft.ops);
    }

    /// A sequence for a column of a table: its own object, the column's default.
    pub(super) fn add_sequence(&self, table_name: &FullName, columns: &[String], table: &mut Table, s: &ColumnSequence, ops: &mut Vec<Op>) {
        let catalog = self.catalog();
        let taken = |n: &str| {
            let here = |op: &Op| matches!(op, Op::Create { item, .. } if item.name == n);
            catalog.find(&table_name.schema, Namespace::Relation, n).is_some() || ops.iter().any(here)
        };
        let free = || sql::plan::object_name(&table_name.name, Some(&columns[s.column]), "seq", &taken);
        let name = s.name.clone().unwrap_or_else(|| FullName { name: free(), ..table_name.clone() });
        let sequence = self.sequence_item(&name, s.spec.clone().into());
        table.defaults[s.column] = Some(nextval(&name.schema, &name.name));
        table.sequences.push(OwnedSequence { column: s.column, sequence: sequence.id, identity: s.identity });
        ops.push(Op::Create { item: Box::new(sequence), plan: None });
    }

    /// The sequences that defaults call `nextval` of.
    pub(super) fn sequences_named(&self, defaults: &[Option<String>]) -> Vec<GlobalId> {
        let (_, ctx) = self.statement_ctx();
        let catalog = self.catalog();
        let named = |text: &String| {
            let rest = text.get(text.to_ascii_lowercase().find("nextval('")? + "nextval('".len()..)?;
            let name = rest.split('\'').next()?;
            let parts: Vec<String> = sql::parse::parse_expr(name).ok().and_then(|e| e.name_parts()).unwrap_or_default();
            let id = GlobalId(u64::from(ctx.catalog.relation_oid(&parts)?));
            catalog.item(id).filter(|i| matches!(i.kind, ItemKind::Sequence(_))).map(|i| i.id)
        };
        defaults.iter().flatten().filter_map(named).collect()
    }

    fn sequence_item(&self, name: &FullName, s: Sequence) -> Item {
        let sql = format!("CREATE SEQUENCE {}", qualified(&name.schema, &name.name));
        self.item(self.shared.allocate_id(), name, ItemKind::Sequence(s), RelDesc::default(), sql, vec![])
    }

    pub(super) fn create_sequence(&mut self, mut p: CreateSequencePlan) -> Result<Response, SqlError> {
        let mut ops = Vec::new();
        if p.temporary || p.name.schema == "pg_temp" {
            p.name.schema = self.temp_schema(&mut ops);
        }
        if self.exists(&p.name, Namespace::Relation, p.if_not_exists)? {
            return Ok(Response::Tag("CREATE SEQUENCE".into()));
        }
        let item = self.sequence_item(&p.name, p.spec.into());
        let id = item.id;
        ops.push(Op::Create { item: Box::new(item), plan: None });
        self.apply(ops)?;
        if let Some(owner) = p.owner {
            self.set_owner(id, Some(owner))?;
        }
        Ok(Response::Tag("CREATE SEQUENCE".into()))
    }

    pub(super) fn alter_sequence(&mut self, p: AlterSequencePlan) -> Result<Response, SqlError> {
        let item = self.existing(&p.sequence)?;
        if !matches!(item.kind, ItemKind::Sequence(_)) {
            return Err(SqlError::new(state::WRONG_OBJECT_TYPE, format!("\"{}\" is not a sequence", item.name)));
        }
        let op = self.alter_sequence_item(&item, &p.options, p.ty)?;
        self.apply(vec![op])?;
        if let Some(owner) = p.owner {
            self.set_owner(item.id, owner)?;
        }
        Ok(Response::Tag("ALTER SEQUENCE".into()))
    }

    fn alter_sequence_item(&self, item: &Item, options: &sql::ast::SequenceOptions, ty: Option<SqlType>) -> Result<Op, SqlError> {
        let ItemKind::Sequence(s) = &item.kind else { return Err(SqlError::internal("no sequence")) };
        let ty = ty.unwrap_or_else(|| s.ty.clone());
        let new: Sequence = sql::plan::sequence::altered(Some(&s.spec()), options, ty)?.into();
        let at = self.shared.sequences.position(item.id, s);
        let position = match options.restart {
            Some(n) => Position { value: n.unwrap_or(new.start), called: false },
            None => at,
        };
        if position.value < new.min || position.value > new.max {
            let (which, bound, least) = if position.value < new.min { ("less", new.min, "MINVALUE") } else { ("greater", new.max, "MAXVALUE") };
            let m = format!("RESTART value ({}) cannot be {which} than {least} ({bound})", position.value);
            return Err(SqlError::new(state::INVALID_PARAMETER_VALUE, m));
        }
        if options.restart.is_some() {
            self.shared.sequences.set(item.id, position);
        }
        Ok(Op::Update { item: Box::new(Item { kind: ItemKind::Sequence(new), ..item.clone() }) })
    }

    /// OWNED BY: the column takes the sequence with it when it goes.
    fn set_owner(&mut self, sequence: GlobalId, owner: Option<(GlobalId, usize)>) -> Result<(), SqlError> {
        let catalog = self.catalog();
        let mut ops = Vec::new();
        if let Some((table, owned)) = catalog.owner_of(sequence) {
            if owned.identity.is_some() {
                let e = SqlError::new(state::FEATURE_NOT_SUPPORTED, "cannot change ownership of identity sequence");
                return Err(e.with_detail(format!("The sequence is linked to table \"{}\".", table.name)));
            }
            let mut table = (**table).clone();
            if let ItemKind::Table(t) = &mut table.kind {
                t.sequences.retain(|s| s.sequence != sequence);
            }
            ops.push(Op::Update { item: Box::new(table) });
        }
        self.apply(ops)?;
        if let Some((id, column)) = owner {
            let mut table = (*self.table(id)?).clone();
            if let ItemKind::Table(t) = &mut table.kind {
                t.sequences.push(OwnedSequence { column, sequence, identity: None });
            }
            if !table.deps.contains(&sequence) {
                table.deps.push(sequence);
            }
            self.apply(vec![Op::Update { item: Box::new(table) }])?;
        }
        Ok(())
    }

    /// TRUNCATE … RESTART IDENTITY.
    pub(super) fn restart(&self, sequences: impl Iterator<Item = GlobalId>) {
        let catalog = self.catalog();
        for id in sequences {
            if let Some(ItemKind::Sequence(s)) = catalog.item(id).map(|i| &i.kind) {
                self.shared.sequences.set(id, Position { value: s.start, called: false });
                self.sequences.got.lock().used = true;
            }
        }
    }
}

impl Lost {
    /// What the change takes from the table, as errors tell it.
    fn told(&self, old: &Item) -> String {
        match (self.dropped.first(), &self.key) {
            (Some(c), _) => format!("column {} of {}", quote_if_needed(&old.desc.names[*c]), old.told()),
            (None, Some(key)) => format!("constraint {} on {}", quote_if_needed(key), old.told()),
            (None, None) => format!("the key of {}", old.told()),
        }
    }
}

impl Draft {
    pub(super) fn of(item: &Item) -> Result<Draft, SqlError> {
        let ItemKind::Table(table) = &item.kind else {
            return Err(SqlError::new(state::WRONG_OBJECT_TYPE, format!("\"{}\" is not a table", item.name)));
        };
        Ok(Draft {
            item: item.clone(),
            table: table.clone(),
            origin: (0..item.desc.arity()).map(Some).collect(),
            steps: Vec::new(),
            anew: false,
            lost: Lost::default(),
            linked: false,
            numbered: false,
            ops: Vec::new(),
        })
    }
}

/// An error that a row causes which was there before its table was altered, as Postgres words it then.
fn of_old_rows(mut e: SqlError, item: &Item) -> SqlError {
    let about = e.fields.clone().unwrap_or_default();
    match (e.code, about.column, about.constraint) {
        (state::NOT_NULL_VIOLATION, Some(c), _) => {
            e.message = format!("column \"{c}\" of relation \"{}\" contains null values", item.name);
            e.detail = None;
        }
        (state::CHECK_VIOLATION, _, Some(c)) => {
            e.message = format!("check constraint \"{c}\" of relation \"{}\" is violated by some row", item.name);
            e.detail = None;
        }
        (state::UNIQUE_VIOLATION, _, Some(c)) => {
            e.message = format!("could not create unique index \"{c}\"");
            e.detail = e.detail.map(|d| d.replace("already exists", "is duplicated"));
        }
        _ => {}
    }
    e
}

/// The default of a column with a sequence.
pub(super) fn nextval(schema: &str, name: &str) -> String {
    let name = format!("{}.{}", sql::plan::quote_ident(schema), sql::plan::quote_ident(name));
    format!("nextval('{}'::regclass)", name.replace('\'', "''"))
}

/// The table's foreign keys to itself, now that it is another one. Errors: 2BP01 for one to what is no key any more, unless CASCADE.
fn relink(old: &Item, new: &Item, table: &mut Table, origin: &[Option<usize>], lost: &Lost) -> Result<(), SqlError> {
    let key = table.clone();
    let mut kept = Vec::new();
    for mut f in std::mem::take(&mut table.foreign) {
        // One that was just added knows the table as it will be.
        if f.parent == old.id && table_has(old, &f.name) {
            match moved_key(&f, origin, &key) {
                Some(columns) => f.parent_columns = columns,
                None if lost.cascade => continue,
                None => return Err(needed_by(old, old, &f, lost)),
            }
        }
        if f.parent == old.id {
            f.parent = new.id;
        }
        kept.push(f);
    }
    table.foreign = kept;
    Ok(())
}

/// Where the columns that a foreign key refers to are, if they still are a key. `origin`: the old place of each column.
fn moved_key(f: &ForeignKey, origin: &[Option<usize>], table: &Table) -> Option<Vec<usize>> {
    let columns = f.parent_columns.iter().map(|c| origin.iter().position(|o| o == &Some(*c))).collect::<Option<Vec<usize>>>()?;
    let is_key = |k: &Constraint| k.columns.len() == columns.len() && k.columns.iter().all(|c| columns.contains(c));
    table.primary_key.iter().chain(&table.unique).any(is_key).then_some(columns)
}

fn table_has(item: &Item, foreign: &str) -> bool {
    matches!(&item.kind, ItemKind::Table(t) if t.foreign.iter().any(|f| f.name == foreign))
}

fn needed_by(table: &Item, child: &Item, key: &ForeignKey, lost: &Lost) -> SqlError {
    let needs = match &lost.key {
        Some(key) => format!("index {}", quote_if_needed(key)),
        None => format!("the key of {}", table.told()),
    };
    blocked(&lost.told(table), &[format!("constraint {} on {} depends on {needs}", quote_if_needed(&key.name), child.told())])
}

fn blocked(what: &str, by: &[String]) -> SqlError {
    let e = SqlError::new(state::DEPENDENT_OBJECTS_STILL_EXIST, format!("cannot drop {what} because other objects depend on it"));
    e.with_detail(by.join("\n")).with_hint("Use DROP ... CASCADE to drop the dependent objects too.")
}
