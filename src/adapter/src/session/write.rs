//! INSERT, UPDATE, DELETE, MERGE, TRUNCATE: rows to changes, checks, RETURNING.
//!
//! A statement reads at the transaction's time with its own writes laid over, and buffers what it changes.

use super::query::{Row, Running};
use super::read_set::{key_bytes, ReadSet};
use super::work::{Change, Done, Work};
use super::{Response, Session};
use crate::catalog::Item;
use crate::coordinator::keys::OwnKeys;
use crate::coordinator::request::Request;
use expr::EvalCtx;
use plan::{Equivalence, Finishing, Id, Mir};
use repr::batch::BatchBuilder;
use repr::error::state;
use repr::text::to_text;
use repr::{Batch, Col, ColType, Deltas, Diff, GlobalId, RowCodec, SqlError, TextStyle, Value};
use sql::hir::{Hir, HirScalar};
use sql::plan::{Arbiter, ConflictPlan, ConflictPlanAction, DeletePlan, InsertPlan, MergePlan, MergeStep, ReturningPlan, RowChecks, UpdatePlan};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Changes in the making: rows with diffs.
pub(super) type Changes = Vec<(Row, Diff)>;

impl Session {
    pub(super) async fn insert(&mut self, mut plan: InsertPlan, work: &mut Work) -> Result<Done, SqlError> {
        let item = self.table(plan.table)?;
        let (_, ctx) = self.statement_ctx();
        plan.source.hir = work.around(plan.source.hir);
        let source = self.start_select(plan.source).await?;
        if work.alone && plan.on_conflict.is_none() && plan.returning.is_none() && plan.checks.views.is_empty() {
            let count = self.insert_pieces(&item, source, &plan.late, &plan.checks, &ctx).await?;
            return Ok(Done { verb: "INSERT 0", count, returned: None });
        }
        let mut rows = source.collect().await?;
        fill(&mut rows, &plan.late, &item.desc.types, &ctx)?;
        if let Err((n, e)) = self.first_bad_row(&item, &mut rows, &plan.checks, &ctx) {
            rows.truncate(if plan.on_conflict.is_none() { n } else { 0 });
            return Err(self.after_rows(&item, &rows, e).await);
        }
        let (changes, affected): (Vec<Change>, _) = match &plan.on_conflict {
            None => (rows.iter().cloned().map(Change::insert).collect(), rows),
            Some(c) => self.resolve_conflicts(&item, rows, c, &plan.checks, &ctx, work).await?,
        };
        if let Err((n, e)) = self.check_views(&item, &affected, &plan.checks, &ctx, work).await? {
            return Err(self.after_changes(&item, &changes[..=n], e).await);
        }
        let done = self.done("INSERT 0", plan.returning, affected, &item.desc.types, &ctx, work).await?;
        work.change(&item, changes);
        Ok(done)
    }

    /// Inserts rows as they come; a bounded number of them is held. Answers how many.
    pub(super) async fn insert_pieces(
        &mut self,
        item: &Arc<Item>,
        mut source: Running,
        late: &[(usize, HirScalar)],
        checks: &RowChecks,
        ctx: &EvalCtx,
    ) -> Result<usize, SqlError> {
        let types = &item.desc.types;
        let (mut count, mut open) = (0, BatchBuilder::new(types));
        while let Some(mut rows) = source.next().await? {
            fill(&mut rows, late, types, ctx)?;
            if let Err((n, e)) = self.first_bad_row(item, &mut rows, checks, ctx) {
                self.write_piece(item, Deltas::inserts(open.finish())).await?;
                return Err(self.after_rows(item, &rows[..n], e).await);
            }
            count += rows.len();
            for row in rows {
                if !open.push(&row) {
                    return Err(SqlError::internal("a value alone is below 1 GB"));
                }
                if open.is_full() {
                    let full = std::mem::replace(&mut open, BatchBuilder::new(types)).finish();
                    self.write_piece(item, Deltas::inserts(full)).await?;
                }
            }
        }
        self.write_piece(item, Deltas::inserts(open.finish())).await?;
        self.end_pieces(item).await?;
        Ok(count)
    }

    pub(super) async fn update(&mut self, plan: UpdatePlan, work: &mut Work) -> Result<Done, SqlError> {
        let item = self.table(plan.table)?;
        let (_, ctx) = self.statement_ctx();
        let row_types = plan.rows.types();
        let rows = self.collect_relation(work.around(plan.rows)).await?;
        let mut rows = self.once_each(&item, plan.arity, rows, &row_types, work).await?;
        self.check_interrupt()?;
        let mut new: Vec<Row> = rows.iter().map(|r| r[plan.arity..2 * plan.arity].to_vec()).collect();
        self.check_rows(&item, &mut new, &plan.checks, &ctx)?;
        let views = self.check_views(&item, &new, &plan.checks, &ctx, work).await?;
        for (row, new) in rows.iter_mut().zip(new) {
            row.splice(plan.arity..2 * plan.arity, new);
        }
        let n = plan.arity;
        let changes: Vec<Change> = rows.iter().map(|r| Change { old: Some(r[..n].to_vec()), new: Some(r[n..2 * n].to_vec()) }).collect();
        if let Err((n, e)) = views {
            return Err(self.after_changes(&item, &changes[..=n], e).await);
        }
        let done = self.done("UPDATE", plan.returning, rows, &row_types, &ctx, work).await?;
        work.change(&item, changes);
        Ok(done)
    }

    pub(super) async fn delete(&mut self, plan: DeletePlan, work: &mut Work) -> Result<Done, SqlError> {
        let item = self.table(plan.table)?;
        let (_, ctx) = self.statement_ctx();
        let row_types = plan.rows.types();
        let rows = self.collect_relation(work.around(plan.rows)).await?;
        let rows = self.once_each(&item, plan.arity, rows, &row_types, work).await?;
        self.check_interrupt()?;
        let changes = rows.iter().map(|r| Change::delete(r[..plan.arity].to_vec())).collect();
        let done = self.done("DELETE", plan.returning, rows, &row_types, &ctx, work).await?;
        work.change(&item, changes);
        Ok(done)
    }

    pub(super) async fn merge(&mut self, plan: MergePlan, work: &mut Work) -> Result<Done, SqlError> {
        let item = self.table(plan.table)?;
        let (_, ctx) = self.statement_ctx();
        let n = plan.arity;
        let types = &item.desc.types;
        let codec = RowCodec::new(types.clone());
        let (mut old, mut deleted): (Vec<Row>, Vec<Row>) = (vec![], vec![]);
        let (mut new, mut inserted): (Vec<Row>, Vec<Vec<Row>>) = (vec![], vec![vec![]; plan.actions.len()]);
        for mut row in self.collect_relation(work.around(plan.rows)).await? {
            let made = row.split_off(n + 1);
            let Some(action) = row.pop().and_then(|a| a.as_i64()).and_then(|a| usize::try_from(a).ok()) else { continue };
            match plan.actions.get(action) {
                Some(MergeStep::Update) => {
                    old.push(row);
                    new.push(made);
                }
                Some(MergeStep::Delete) => deleted.push(row),
                Some(MergeStep::Insert { .. }) => inserted[action].push(made),
                Some(MergeStep::Nothing) | None => {}
            }
        }
        let count = old.len() + deleted.len() + inserted.iter().map(Vec::len).sum::<usize>();
        let mut met: BTreeMap<Vec<u8>, usize> = BTreeMap::new();
        for row in old.iter().chain(&deleted) {
            *met.entry(encoded(&codec, row)).or_default() += 1;
        }
        let taken = taken_out(work, &item, &codec);
        if met.iter().any(|(row, n)| *n > 1 || taken.contains_key(row)) {
            let present = self.present(&item, &codec, |row| met.contains_key(row)).await?;
            let too_often = |(row, n): (&Vec<u8>, &usize)| *n + taken.get(row).copied().unwrap_or(0) > present.get(row).copied().unwrap_or(0);
            if met.iter().any(too_often) {
                let e = SqlError::new(state::CARDINALITY_VIOLATION, "MERGE command cannot affect row a second time");
                return Err(e.with_hint("Ensure that not more than one source row matches any one target row."));
            }
        }
        for (step, mut rows) in plan.actions.iter().zip(inserted) {
            if let MergeStep::Insert { late } = step {
                fill(&mut rows, late, types, &ctx)?;
            }
            new.append(&mut rows);
        }
        self.check_rows(&item, &mut new, &plan.checks, &ctx)?;
        // Of the new rows the first have taken the place of old ones.
        let mut old = old.into_iter();
        let changes = new.into_iter().map(|row| Change { old: old.next(), new: Some(row) }).chain(deleted.into_iter().map(Change::delete));
        work.change(&item, changes.collect());
        Ok(Done { verb: "MERGE", count, returned: None })
    }

    pub(super) async fn truncate(&mut self, tables: Vec<GlobalId>, restart_identity: bool, cascade: bool) -> Result<Response, SqlError> {
        let mut emptied = Vec::new();
        for id in self.truncated(tables, cascade)? {
            let item = self.table(id)?;
            self.check_unused(id, "TRUNCATE")?;
            if let (crate::catalog::ItemKind::Table(t), true) = (&item.kind, restart_identity) {
                self.restart(t.sequences.iter().map(|s| s.sequence));
            }
            let mut rows = self.start_relation(get(&item)).await?;
            while let Some(part) = rows.next().await? {
                for deltas in to_deltas(&item.desc.types, &part.into_iter().map(|r| (r, -1)).collect()) {
                    self.write_piece(&item, deltas).await?;
                }
            }
            emptied.push(item);
        }
        // What refers to one of them is empty too.
        if let Some(item) = emptied.iter().find(|item| self.linked(item)) {
            self.end_pieces(item).await?;
        }
        Ok(Response::Tag("TRUNCATE TABLE".into()))
    }

    pub(super) fn table(&self, id: GlobalId) -> Result<Arc<Item>, SqlError> {
        self.catalog().item(id).cloned().ok_or_else(|| crate::vanished("the table"))
    }

    /// Buffers changes to several tables after a look at their keys, together.
    pub(super) async fn write_all(&mut self, writes: Vec<(Arc<Item>, Vec<Deltas>)>) -> Result<(), SqlError> {
        self.check_interrupt()?;
        if writes.iter().any(|w| !w.1.is_empty() && self.linked(&w.0)) {
            let more = writes.iter().map(|w| (w.0.id, w.1.iter().cloned().collect())).collect();
            self.check_writes(more).await?;
            writes.iter().for_each(|w| self.forget_keys(w.0.id));
        } else {
            for (item, deltas) in &writes {
                self.check_keys(item, deltas).await?;
            }
        }
        writes.into_iter().try_for_each(|(item, deltas)| self.buffer_write(&item, deltas))
    }

    /// A part of the changes of a statement that only adds rows, or only takes some away. Foreign keys are looked at when it is
    /// [over](Session::end_pieces).
    pub(super) async fn write_piece(&mut self, item: &Item, deltas: Deltas) -> Result<(), SqlError> {
        super::foreign::match_full(item, deltas.len(), |row, column| *deltas.diffs.get(row) > 0 && deltas.rows.cols[column].is_null(row))?;
        let deltas = vec![deltas];
        match self.linked(item) {
            true => self.forget_keys(item.id),
            false => self.check_keys(item, &deltas).await?,
        }
        self.buffer_write(item, deltas)
    }

    /// All pieces are written.
    pub(super) async fn end_pieces(&mut self, item: &Item) -> Result<(), SqlError> {
        match self.linked(item) {
            true => self.check_writes(vec![]).await,
            false => Ok(()),
        }
    }

    /// What is known of the keys that the transaction has changed in a table does not hold any more.
    fn forget_keys(&mut self, table: GlobalId) {
        if let Some(o) = self.txn.open() {
            o.keys.remove(&table);
        }
    }

    async fn check_keys(&mut self, item: &Item, deltas: &[Deltas]) -> Result<(), SqlError> {
        let watched =
            matches!(&item.kind, crate::catalog::ItemKind::Table(t) if t.primary_key.is_some() || !t.unique.is_empty() || !t.computed_keys.is_empty());
        if watched && deltas.iter().any(|d| !d.is_empty()) {
            let mut keys = crate::coordinator::keys::Keys::default();
            keys.add(&self.shared.planner, &self.catalog(), item)?;
            let deferred = self.deferred([item]);
            let known = self.txn.open().and_then(|o| o.keys.remove(&item.id));
            let own = known.map_or_else(|| self.own_keys(&keys, item.id), Ok)?;
            let own = if self.made_here().contains(&item.id) {
                // Its rows are this transaction's alone.
                keys.check(&self.catalog(), item.id, deltas, &deferred, own)?
            } else {
                let for_check = deltas.to_vec();
                self.shared.ask(|answer| Request::CheckKeys(item.id, for_check, deferred, own, answer)).await?
            };
            if let Some(o) = self.txn.open() {
                o.keys.insert(item.id, own);
            }
        }
        Ok(())
    }

    /// What the transaction has done to the keys of a table.
    fn own_keys(&self, keys: &crate::coordinator::keys::Keys, table: GlobalId) -> Result<OwnKeys, SqlError> {
        let mut own = OwnKeys::default();
        for (_, changes) in self.txn.writes().iter().filter(|w| w.0 == table) {
            changes.each(|deltas| {
                keys.take_in(table, std::slice::from_ref(deltas), &mut own)?;
                Ok(())
            })?;
        }
        Ok(own)
    }

    /// The error of an INSERT whose row after `rows` fails with `e`: a key that one of those repeats comes first.
    async fn after_rows(&mut self, item: &Item, rows: &[Row], e: SqlError) -> SqlError {
        let changes: Vec<Change> = rows.iter().cloned().map(Change::insert).collect();
        self.after_changes(item, &changes, e).await
    }

    /// The error of a statement that fails with `e` behind `changes`: a key that one of those repeats comes first.
    async fn after_changes(&mut self, item: &Item, changes: &[Change], e: SqlError) -> SqlError {
        let rows = |c: &Change| c.old.clone().map(|r| (r, -1)).into_iter().chain(c.new.clone().map(|r| (r, 1)));
        let before = changes.iter().flat_map(rows).collect();
        let checked = self.check_keys(item, &to_deltas(&item.desc.types, &before)).await;
        self.forget_keys(item.id);
        checked.err().unwrap_or(e)
    }

    /// As [`Session::check_rows`]; of several failing rows the first is told, with its number.
    fn first_bad_row(&self, item: &Item, rows: &mut [Row], checks: &RowChecks, ctx: &EvalCtx) -> Result<(), (usize, SqlError)> {
        let Err(mut e) = self.check_rows(item, rows, checks, ctx) else { return Ok(()) };
        // The least number of rows that fail together ends with the first that fails.
        let (mut good, mut bad) = (0, rows.len());
        while bad - good > 1 {
            let middle = good + (bad - good) / 2;
            match self.check_rows(item, &mut rows[good..middle], checks, ctx) {
                Ok(()) => good = middle,
                Err(sooner) => (bad, e) = (middle, sooner),
            }
        }
        if good > 0 {
            e = self.check_rows(item, &mut rows[good..bad], checks, ctx).err().unwrap_or(e);
        }
        Err((good, e))
    }

    /// Generated columns, NOT NULL and CHECK.
    pub(super) fn check_rows(&self, item: &Item, rows: &mut [Row], checks: &RowChecks, ctx: &EvalCtx) -> Result<(), SqlError> {
        if !checks.generated.is_empty() {
            let exprs: Vec<HirScalar> = checks.generated.iter().map(|g| g.1.clone()).collect();
            let values = evaluate_plain(&exprs, rows, &item.desc.types, ctx)?;
            for (row, values) in rows.iter_mut().zip(values) {
                for ((column, _), v) in checks.generated.iter().zip(values) {
                    row[*column] = v;
                }
            }
        }
        for test in &checks.domains {
            evaluate_plain(std::slice::from_ref(test), rows, &item.desc.types, ctx)?;
        }
        let failing = |row: &Row| failing_row(item, row, ctx);
        for row in rows.iter() {
            if let Some(c) = checks.not_null.iter().find(|c| row[**c].is_null()) {
                let m = format!("null value in column \"{}\" of relation \"{}\" violates not-null constraint", item.desc.names[*c], item.name);
                let e = SqlError::new(state::NOT_NULL_VIOLATION, m).with_detail(failing(row));
                return Err(e.of_table(&item.schema, &item.name).of_column(&item.desc.names[*c]));
            }
        }
        // In the order of their names, as Postgres goes through them.
        let mut in_order: Vec<&(String, HirScalar)> = checks.checks.iter().collect();
        in_order.sort_by(|a, b| a.0.cmp(&b.0));
        for (name, check) in in_order {
            let results = evaluate_plain(std::slice::from_ref(check), rows, &item.desc.types, ctx)?;
            if let Some(i) = results.iter().position(|r| r[0] == Value::Bool(false)) {
                let m = format!("new row for relation \"{}\" violates check constraint \"{name}\"", item.name);
                let e = SqlError::new(state::CHECK_VIOLATION, m).with_detail(failing(&rows[i]));
                return Err(e.of_table(&item.schema, &item.name).of_constraint(name));
            }
        }
        Ok(())
    }

    /// WITH CHECK OPTION of the views that rows are written through: 44000 for the first row of which it does not hold, and its number.
    async fn check_views(
        &mut self,
        item: &Item,
        rows: &[Row],
        checks: &RowChecks,
        ctx: &EvalCtx,
        work: &Work,
    ) -> Result<Result<(), (usize, SqlError)>, SqlError> {
        let mut computed: Vec<Vec<HirScalar>> = Vec::new();
        for step in &checks.views {
            if let (true, Some(filter)) = (step.checked, &step.filter) {
                let results = self.values_over(&computed, std::slice::from_ref(filter), rows, &item.desc.types, ctx, work).await?;
                if let Some(i) = results.iter().position(|r| r[0] != Value::Bool(true)) {
                    let e = SqlError::new(repr::SqlState::new("44000"), format!("new row violates check option for view \"{}\"", step.view));
                    return Ok(Err((i, e.with_detail(failing_row(item, &rows[i], ctx)))));
                }
            }
            if !step.computed.is_empty() {
                computed.push(step.computed.clone());
            }
        }
        Ok(Ok(()))
    }

    /// What RETURNING makes of the rows that were changed.
    async fn done(
        &mut self,
        verb: &'static str,
        returning: Option<ReturningPlan>,
        rows: Vec<Row>,
        types: &[ColType],
        ctx: &EvalCtx,
        work: &Work,
    ) -> Result<Done, SqlError> {
        let count = rows.len();
        let returned = match returning {
            Some(r) => Some((r.desc, self.values_over(&r.computed, &r.exprs, &rows, types, ctx, work).await?)),
            None => None,
        };
        Ok(Done { verb, count, returned })
    }

    /// A joined UPDATE or DELETE may meet a row several times: each is changed once, by the least of what it met.
    /// Rows that a table without key holds several times stay as many. What another part of the statement has changed already is left.
    async fn once_each(&mut self, item: &Item, arity: usize, rows: Vec<Row>, types: &[ColType], work: &Work) -> Result<Vec<Row>, SqlError> {
        let codec = RowCodec::new(types[..arity].to_vec());
        let taken = taken_out(work, item, &codec);
        let rest = RowCodec::new(types[arity..].to_vec());
        let mut by_old: BTreeMap<Vec<u8>, Vec<(Vec<u8>, Row)>> = BTreeMap::new();
        let mut repeated = false;
        let interrupt = self.cancel.statement();
        for row in rows {
            interrupt.check()?;
            let (mut old, mut new) = (Vec::new(), Vec::new());
            codec.encode_row(&row[..arity], &mut old);
            rest.encode_row(&row[arity..], &mut new);
            let met = by_old.entry(old).or_default();
            repeated |= !met.is_empty();
            met.push((new, row));
        }
        repeated |= taken.keys().any(|row| by_old.contains_key(row));
        let present = if repeated { self.present(item, &codec, |row| by_old.contains_key(row)).await? } else { BTreeMap::new() };
        let mut out = Vec::new();
        for (old, mut met) in by_old {
            met.sort_by(|a, b| a.0.cmp(&b.0));
            let left = present.get(&old).map_or(1, |n| n.saturating_sub(taken.get(&old).copied().unwrap_or(0)));
            let n = left.min(met.len());
            let first = met.swap_remove(0).1;
            out.extend(std::iter::repeat_n(first, n));
        }
        Ok(out)
    }

    /// How often the table holds each of the rows that `wanted` names by their bytes.
    async fn present(&mut self, item: &Item, codec: &RowCodec, wanted: impl Fn(&Vec<u8>) -> bool) -> Result<BTreeMap<Vec<u8>, usize>, SqlError> {
        let mut present = BTreeMap::new();
        for row in self.collect_relation(get(item)).await? {
            let bytes = encoded(codec, &row);
            if wanted(&bytes) {
                *present.entry(bytes).or_insert(0) += 1;
            }
        }
        Ok(present)
    }

    /// INSERT … ON CONFLICT: the changes, and the rows that were inserted or updated.
    async fn resolve_conflicts(
        &mut self,
        item: &Item,
        rows: Vec<Row>,
        plan: &ConflictPlan,
        checks: &RowChecks,
        ctx: &EvalCtx,
        work: &mut Work,
    ) -> Result<(Vec<Change>, Vec<Row>), SqlError> {
        let types = &item.desc.types;
        let crate::catalog::ItemKind::Table(table) = &item.kind else { return Err(SqlError::internal("ON CONFLICT on what is no table")) };
        let exprs = self.shared.planner.table_exprs(&self.catalog(), item)?;
        let columns = || table.primary_key.iter().chain(&table.unique);
        let asked = |k: &crate::catalog::Constraint| match &plan.arbiter {
            Arbiter::Columns(columns) => k.columns == *columns,
            Arbiter::Computed(_) => false,
            Arbiter::Any => true,
        };
        if let (Some(k), false) = (columns().find(|k| k.deferrable && asked(k)), rows.is_empty()) {
            let m = "ON CONFLICT does not support deferrable unique constraints/exclusion constraints as arbiters";
            return Err(SqlError::new(state::OBJECT_NOT_IN_PREREQUISITE_STATE, m).of_table(&item.schema, &item.name).of_constraint(&k.name));
        }
        let arbiters: Vec<KeyOf> = match &plan.arbiter {
            Arbiter::Columns(k) => columns().filter(|c| c.columns == *k).take(1).map(KeyOf::columns).collect(),
            Arbiter::Computed(name) => exprs.computed_keys.iter().filter(|k| k.name == *name).map(KeyOf::computed).collect(),
            Arbiter::Any => columns().map(KeyOf::columns).chain(exprs.computed_keys.iter().map(KeyOf::computed)).collect(),
        };
        work.arbiters.extend(arbiters.iter().map(|a| (item.id, a.name.clone())));
        // What stands under each arbiter's key: the row, and whether this statement put it there.
        let mut existing: Vec<BTreeMap<Vec<u8>, (Row, bool)>> = Vec::new();
        for arbiter in &arbiters {
            let found = self.rows_with_keys(item, arbiter, &rows, ctx).await?;
            let mut map: BTreeMap<Vec<u8>, (Row, bool)> = BTreeMap::new();
            for row in found {
                ctx.interrupt.check()?;
                map.extend(arbiter.bytes(&row, types, ctx)?.map(|k| (k, (row, false))));
            }
            // Other parts of the statement have put rows there, or taken them out.
            for change in work.changed(item.id) {
                let gone = change.old.as_ref().map(|old| arbiter.bytes(old, types, ctx)).transpose()?.flatten();
                gone.map(|k| map.remove(&k));
                if let Some(new) = &change.new {
                    map.extend(arbiter.bytes(new, types, ctx)?.map(|k| (k, (new.clone(), true))));
                }
            }
            existing.push(map);
        }
        let mut changes: Vec<Change> = Vec::new();
        let mut affected = Vec::new();
        for row in rows {
            ctx.interrupt.check()?;
            let keys = arbiters.iter().map(|a| a.bytes(&row, types, ctx)).collect::<Result<Vec<_>, _>>()?;
            let hit = keys.iter().zip(&existing).find_map(|(key, map)| map.get(key.as_ref()?).cloned());
            let Some((old, ours)) = hit else {
                for (key, map) in keys.into_iter().zip(&mut existing) {
                    map.extend(key.map(|k| (k, (row.clone(), true))));
                }
                changes.push(Change::insert(row.clone()));
                affected.push(row);
                continue;
            };
            let ConflictPlanAction::Update { computed, row: exprs, filter } = &plan.action else { continue };
            if ours {
                let e = SqlError::new(state::CARDINALITY_VIOLATION, "ON CONFLICT DO UPDATE command cannot affect row a second time");
                return Err(e.with_hint("Ensure that no rows proposed for insertion within the same command have duplicate constrained values."));
            }
            let both: Row = old.iter().chain(&row).cloned().collect();
            let both_types: Vec<ColType> = types.iter().chain(types).cloned().collect();
            if let Some(f) = filter {
                if self.values_over(computed, std::slice::from_ref(f), std::slice::from_ref(&both), &both_types, ctx, work).await?[0][0] != Value::Bool(true) {
                    continue;
                }
            }
            let mut new = self.values_over(computed, exprs, std::slice::from_ref(&both), &both_types, ctx, work).await?.remove(0);
            self.check_rows(item, std::slice::from_mut(&mut new), checks, ctx)?;
            for (arbiter, map) in arbiters.iter().zip(&mut existing) {
                arbiter.bytes(&old, types, ctx)?.map(|k| map.remove(&k));
                map.extend(arbiter.bytes(&new, types, ctx)?.map(|k| (k, (new.clone(), true))));
            }
            changes.push(Change { old: Some(old), new: Some(new.clone()) });
            affected.push(new);
        }
        Ok((changes, affected))
    }

    /// The table's rows that have the key of one of `rows`.
    async fn rows_with_keys(&mut self, item: &Item, arbiter: &KeyOf, rows: &[Row], ctx: &EvalCtx) -> Result<Vec<Row>, SqlError> {
        let types = &item.desc.types;
        // NULLs that equal each other no join finds.
        if arbiter.equal_nulls {
            return self.collect_relation(get(item)).await;
        }
        let Some(columns) = &arbiter.columns else {
            let keys = evaluate_plain(&arbiter.keys, rows, types, ctx)?.into_iter().filter(|k| !k.iter().any(Value::is_null)).collect();
            return self.rows_by(item, &arbiter.keys, arbiter.filter.as_ref(), keys, None).await;
        };
        let keys: Vec<Row> = rows.iter().map(|r| columns.iter().map(|c| r[*c].clone()).collect()).collect();
        // Under a constraint's key the read is of these keys alone, which the plan shows only where the key is one column.
        let constraint = match &item.kind {
            crate::catalog::ItemKind::Table(t) => t.constraints().position(|k| k.columns == *columns),
            _ => None,
        };
        let bytes = || keys.iter().map(|k| key_bytes(k, columns, types)).collect();
        let read = constraint.map(|n| ReadSet { keys: [((item.id, n), bytes())].into(), ..ReadSet::default() });
        self.rows_matching(item, columns, keys, read).await
    }

    /// The table's rows whose `columns` equal one of `keys`. `read`: what that reads, where the caller knows better than the plan shows.
    pub(super) async fn rows_matching(&mut self, item: &Item, columns: &[usize], keys: Vec<Row>, read: Option<ReadSet>) -> Result<Vec<Row>, SqlError> {
        let column = |c: &usize| HirScalar::Column(sql::ColumnRef { level: 0, column: *c }, item.desc.types[*c].clone());
        let exprs: Vec<HirScalar> = columns.iter().map(column).collect();
        self.rows_by(item, &exprs, None, keys, read).await
    }

    /// The table's rows for which `filter` holds and whose `exprs` equal one of `keys`.
    async fn rows_by(
        &mut self,
        item: &Item,
        exprs: &[HirScalar],
        filter: Option<&HirScalar>,
        keys: Vec<Row>,
        read: Option<ReadSet>,
    ) -> Result<Vec<Row>, SqlError> {
        let types = item.desc.types.clone();
        let arity = types.len();
        let over = Hir::Map { input: Box::new(get(item)), scalars: exprs.iter().chain(filter).cloned().collect() };
        let mut scalars =
            crate::planner::row_exprs(&sql::lower(over)?).ok_or_else(|| SqlError::internal("a key that is no expression over the row"))?.split_off(arity);
        let filter = if filter.is_some() { scalars.pop() } else { None };
        let key_types: Vec<ColType> = scalars.iter().map(|s| s.typ(&types)).collect();
        let keys = Mir::constant(keys, key_types).distinct();
        let equal = |(i, s): (usize, &expr::Scalar)| Equivalence::new(vec![s.clone(), expr::Scalar::Column(arity + i)]);
        let table = Mir::Get { id: Id::Global(item.id), types: types.clone(), keys: item.desc.keys.clone() }.filter(filter.into_iter().collect());
        let join = Mir::Join { inputs: vec![table, keys], equivalences: scalars.iter().enumerate().map(equal).collect() };
        let mir = join.project((0..arity).collect());
        let finishing = Finishing { order_by: vec![], limit: None, offset: 0, project: (0..arity).collect() };
        self.collect_mir(mir, finishing, read).await
    }
}

/// A unique key of a table: what it is made of, over the row.
struct KeyOf {
    name: String,
    /// Of a key of plain columns.
    columns: Option<Vec<usize>>,
    keys: Vec<HirScalar>,
    filter: Option<HirScalar>,
    equal_nulls: bool,
}

impl KeyOf {
    fn columns(c: &crate::catalog::Constraint) -> KeyOf {
        KeyOf { name: c.name.clone(), columns: Some(c.columns.clone()), keys: vec![], filter: None, equal_nulls: c.equal_nulls }
    }

    fn computed(k: &sql::catalog::ComputedKey) -> KeyOf {
        KeyOf { name: k.name.clone(), columns: None, keys: k.keys.clone(), filter: k.filter.clone(), equal_nulls: k.equal_nulls }
    }

    /// The row's key bytes; `None` where it has a NULL or the condition does not hold: nothing collides with it.
    fn bytes(&self, row: &Row, types: &[ColType], ctx: &EvalCtx) -> Result<Option<Vec<u8>>, SqlError> {
        let (mut key, key_types): (Row, Vec<ColType>) = match &self.columns {
            Some(columns) => columns.iter().map(|c| (row[*c].clone(), types[*c].clone())).unzip(),
            None => {
                let exprs: Vec<HirScalar> = self.keys.iter().chain(&self.filter).cloned().collect();
                let values = evaluate_plain(&exprs, std::slice::from_ref(row), types, ctx)?.swap_remove(0);
                (values, self.keys.iter().map(HirScalar::typ).collect())
            }
        };
        if self.filter.is_some() && key.pop() != Some(Value::Bool(true)) || !self.equal_nulls && key.iter().any(Value::is_null) {
            return Ok(None);
        }
        let mut bytes = Vec::new();
        RowCodec::new(key_types).encode_key(&key, &mut bytes);
        Ok(Some(bytes))
    }
}

/// Puts what defaults give into columns of rows that came without, row by row.
pub(super) fn fill(rows: &mut [Row], late: &[(usize, HirScalar)], types: &[ColType], ctx: &EvalCtx) -> Result<(), SqlError> {
    let exprs: Vec<HirScalar> = late.iter().map(|l| l.1.clone()).collect();
    if exprs.is_empty() || rows.is_empty() {
        return Ok(());
    }
    let made = evaluate_plain(&exprs, &vec![vec![Value::Null; types.len()]; rows.len()], types, ctx)?;
    for (row, values) in rows.iter_mut().zip(made) {
        for ((column, _), v) in late.iter().zip(values) {
            row[*column] = v;
        }
    }
    Ok(())
}

/// The table as a relation.
pub(super) fn get(item: &Item) -> Hir {
    Hir::Get { id: item.id, types: item.desc.types.clone(), keys: item.desc.keys.clone() }
}

/// Changes as columns, in pieces of bounded size.
pub(super) fn to_deltas(types: &[ColType], changes: &Changes) -> Vec<Deltas> {
    let mut diffs = changes.iter().map(|c| c.1);
    let piece = |rows: Batch| {
        let diffs = Col::from_vec(diffs.by_ref().take(rows.len).collect());
        Deltas { rows, diffs }
    };
    Batch::pieces_from_rows(types, changes.iter().map(|c| c.0.as_slice())).into_iter().map(piece).collect()
}

/// The relation with what `computed` makes of its rows, step by step.
pub(super) fn computed_over(hir: Hir, computed: &[Vec<HirScalar>]) -> Hir {
    computed.iter().fold(hir, |hir, step| Hir::Map { input: Box::new(hir), scalars: step.clone() })
}

/// How many of each row other parts of the statement have taken out of a table.
fn taken_out(work: &Work, item: &Item, codec: &RowCodec) -> BTreeMap<Vec<u8>, usize> {
    let mut out = BTreeMap::new();
    for row in work.changed(item.id).filter_map(|c| c.old.as_ref()) {
        *out.entry(encoded(codec, row)).or_default() += 1;
    }
    out
}

fn encoded(codec: &RowCodec, row: &Row) -> Vec<u8> {
    let mut bytes = Vec::new();
    codec.encode_row(row, &mut bytes);
    bytes
}

/// As [`evaluate`], of expressions that hold no subquery. Errors: 0A000 if one does.
pub(super) fn evaluate_plain(exprs: &[HirScalar], rows: &[Row], types: &[ColType], ctx: &EvalCtx) -> Result<Vec<Row>, SqlError> {
    evaluate(&[], exprs, rows, types, ctx)?.ok_or_else(|| SqlError::unsupported("a subquery here", "use expressions over the row's columns"))
}

fn failing_row(item: &Item, row: &Row, ctx: &EvalCtx) -> String {
    format!("Failing row contains ({}).", row.iter().zip(&item.desc.types).map(|(v, t)| shown(v, t, ctx)).collect::<Vec<_>>().join(", "))
}

/// Values of expressions over rows (level 0) followed by what `computed` makes of them, row by row; `None` if one holds a subquery.
pub(super) fn evaluate(computed: &[Vec<HirScalar>], exprs: &[HirScalar], rows: &[Row], types: &[ColType], ctx: &EvalCtx) -> Result<Option<Vec<Row>>, SqlError> {
    if exprs.iter().chain(computed.iter().flatten()).any(sql::has_subquery) {
        return Ok(None);
    }
    let hir = computed_over(Hir::Constant { rows: vec![], types: types.to_vec() }, computed);
    let n = hir.arity();
    let hir = Hir::Map { input: Box::new(hir), scalars: exprs.to_vec() };
    let Some(scalars) = crate::planner::row_exprs(&sql::lower(hir)?) else { return Ok(None) };
    let scalars = &scalars[n..];
    let batch = Batch::try_from_rows(types, rows.iter().map(Vec::as_slice))?;
    let mut out: Vec<Row> = vec![Vec::with_capacity(scalars.len()); rows.len()];
    for s in scalars {
        ctx.interrupt.check()?;
        let evaluated = expr::eval_whole(s, &batch, types, ctx);
        if let Some((_, e)) = evaluated.errors.into_iter().next() {
            return Err(e);
        }
        let ty = s.typ(types).ty;
        for (i, row) in out.iter_mut().enumerate() {
            row.push(repr::column::get(&evaluated.column, &ty, i));
        }
    }
    Ok(Some(out))
}

fn shown(value: &Value, ty: &ColType, ctx: &EvalCtx) -> String {
    if value.is_null() {
        return "null".into();
    }
    to_text(value, &ty.ty, &text_style(ctx))
}

/// The part of a context that text output needs.
pub(super) fn text_style(ctx: &EvalCtx) -> TextStyle {
    ctx.text_style()
}
