//! INSERT, UPDATE, DELETE, TRUNCATE: rows to changes, checks, RETURNING.
//!
//! A statement reads at the transaction's time with its own writes laid over, and buffers what it changes.

use super::query::{rows_response, Row};
use super::read_set::{key_bytes, ReadSet};
use super::{Response, Session};
use crate::catalog::Item;
use crate::coordinator::request::Request;
use expr::EvalCtx;
use plan::{Equivalence, Finishing, Id, Mir};
use repr::error::state;
use repr::text::to_text;
use repr::{Batch, Col, ColType, Deltas, Diff, GlobalId, RowCodec, SqlError, TextStyle, Value};
use sql::hir::{Hir, HirScalar};
use sql::plan::{ConflictPlan, ConflictPlanAction, DeletePlan, InsertPlan, ReturningPlan, RowChecks, UpdatePlan};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Changes in the making: rows with diffs.
pub(super) type Changes = Vec<(Row, Diff)>;

impl Session {
    pub(super) async fn insert(&mut self, plan: InsertPlan) -> Result<Response, SqlError> {
        let item = self.table(plan.table)?;
        let (_, ctx) = self.statement_ctx();
        let mut rows = self.collect(plan.source).await?;
        fill(&mut rows, &plan.late, &item.desc.types, &ctx)?;
        self.check_rows(&item, &mut rows, &plan.checks, &ctx)?;
        let (changes, affected) = match &plan.on_conflict {
            None => (rows.iter().map(|r| (r.clone(), 1)).collect(), rows),
            Some(c) => self.resolve_conflicts(&item, rows, c, &plan.checks, &ctx).await?,
        };
        self.write(&item, changes).await?;
        let count = affected.len();
        match plan.returning {
            Some(r) => self.returning(r, affected, &item.desc.types, &ctx, "INSERT 0"),
            None => Ok(Response::Tag(format!("INSERT 0 {count}"))),
        }
    }

    pub(super) async fn update(&mut self, plan: UpdatePlan) -> Result<Response, SqlError> {
        let item = self.table(plan.table)?;
        let (_, ctx) = self.statement_ctx();
        let mut types = item.desc.types.clone();
        types.extend(item.desc.types.iter().cloned());
        let row_types = plan.rows.types();
        let rows = self.collect_relation(plan.rows).await?;
        let mut rows = self.once_each(&item, plan.arity, rows, &row_types).await?;
        let mut new: Vec<Row> = rows.iter().map(|r| r[plan.arity..2 * plan.arity].to_vec()).collect();
        self.check_rows(&item, &mut new, &plan.checks, &ctx)?;
        for (row, new) in rows.iter_mut().zip(new) {
            row.splice(plan.arity..2 * plan.arity, new);
        }
        let mut changes: Changes = Vec::with_capacity(2 * rows.len());
        for r in &rows {
            changes.push((r[..plan.arity].to_vec(), -1));
            changes.push((r[plan.arity..2 * plan.arity].to_vec(), 1));
        }
        self.write(&item, changes).await?;
        let count = rows.len();
        match plan.returning {
            Some(r) => self.returning(r, rows, &row_types, &ctx, "UPDATE"),
            None => Ok(Response::Tag(format!("UPDATE {count}"))),
        }
    }

    pub(super) async fn delete(&mut self, plan: DeletePlan) -> Result<Response, SqlError> {
        let item = self.table(plan.table)?;
        let (_, ctx) = self.statement_ctx();
        let row_types = plan.rows.types();
        let rows = self.collect_relation(plan.rows).await?;
        let rows = self.once_each(&item, plan.arity, rows, &row_types).await?;
        let changes = rows.iter().map(|r| (r[..plan.arity].to_vec(), -1)).collect();
        self.write(&item, changes).await?;
        let count = rows.len();
        match plan.returning {
            Some(r) => self.returning(r, rows, &row_types, &ctx, "DELETE"),
            None => Ok(Response::Tag(format!("DELETE {count}"))),
        }
    }

    pub(super) async fn truncate(&mut self, tables: Vec<GlobalId>, restart_identity: bool) -> Result<Response, SqlError> {
        for id in tables {
            let item = self.table(id)?;
            if let (crate::catalog::ItemKind::Table(t), true) = (&item.kind, restart_identity) {
                self.restart(t.sequences.iter().map(|s| s.sequence));
            }
            let rows = self.collect_relation(get(&item)).await?;
            self.write(&item, rows.into_iter().map(|r| (r, -1)).collect()).await?;
        }
        Ok(Response::Tag("TRUNCATE TABLE".into()))
    }

    pub(super) fn table(&self, id: GlobalId) -> Result<Arc<Item>, SqlError> {
        self.catalog().item(id).cloned().ok_or_else(|| crate::vanished("the table"))
    }

    /// Buffers changes after a look at the table's keys.
    pub(super) async fn write(&mut self, item: &Item, changes: Changes) -> Result<(), SqlError> {
        self.write_deltas(item, to_deltas(&item.desc.types, &changes)?).await
    }

    /// As [`Session::write`], of changes that are columns already.
    pub(super) async fn write_deltas(&mut self, item: &Item, deltas: Deltas) -> Result<(), SqlError> {
        let watched = matches!(&item.kind, crate::catalog::ItemKind::Table(t) if t.primary_key.is_some() || !t.unique.is_empty());
        if watched && !deltas.is_empty() {
            let mut all: Vec<Deltas> = self.txn.writes().iter().filter(|w| w.0 == item.id).map(|w| w.1.clone()).collect();
            all.push(deltas.clone());
            let all = Deltas::concat(all);
            if self.made_here().contains(&item.id) {
                // Its rows are this transaction's alone.
                let mut keys = crate::coordinator::keys::Keys::default();
                keys.add(item);
                keys.check(&self.catalog(), item.id, &all)?;
            } else {
                self.shared.ask(|answer| Request::CheckKeys(item.id, all, answer)).await?;
            }
        }
        self.buffer_write(item.id, deltas);
        Ok(())
    }

    /// Generated columns, NOT NULL and CHECK.
    pub(super) fn check_rows(&self, item: &Item, rows: &mut [Row], checks: &RowChecks, ctx: &EvalCtx) -> Result<(), SqlError> {
        if !checks.generated.is_empty() {
            let exprs: Vec<HirScalar> = checks.generated.iter().map(|g| g.1.clone()).collect();
            let values = evaluate(&exprs, rows, &item.desc.types, ctx)?;
            for (row, values) in rows.iter_mut().zip(values) {
                for ((column, _), v) in checks.generated.iter().zip(values) {
                    row[*column] = v;
                }
            }
        }
        let failing =
            |row: &Row| format!("Failing row contains ({}).", row.iter().zip(&item.desc.types).map(|(v, t)| shown(v, t, ctx)).collect::<Vec<_>>().join(", "));
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
            let results = evaluate(std::slice::from_ref(check), rows, &item.desc.types, ctx)?;
            if let Some(i) = results.iter().position(|r| r[0] == Value::Bool(false)) {
                let m = format!("new row for relation \"{}\" violates check constraint \"{name}\"", item.name);
                let e = SqlError::new(state::CHECK_VIOLATION, m).with_detail(failing(&rows[i]));
                return Err(e.of_table(&item.schema, &item.name).of_constraint(name));
            }
        }
        Ok(())
    }

    fn returning(&self, plan: ReturningPlan, rows: Vec<Row>, types: &[ColType], ctx: &EvalCtx, tag: &'static str) -> Result<Response, SqlError> {
        let out = evaluate(&plan.exprs, &rows, types, ctx)?;
        Ok(rows_response(plan.desc, out, tag))
    }

    /// A joined UPDATE or DELETE may meet a row several times: each is changed once, by the least of what it met.
    /// Rows that a table without key holds several times stay as many.
    async fn once_each(&mut self, item: &Item, arity: usize, rows: Vec<Row>, types: &[ColType]) -> Result<Vec<Row>, SqlError> {
        let codec = RowCodec::new(types[..arity].to_vec());
        let rest = RowCodec::new(types[arity..].to_vec());
        let mut by_old: BTreeMap<Vec<u8>, Vec<(Vec<u8>, Row)>> = BTreeMap::new();
        let mut repeated = false;
        for row in rows {
            let (mut old, mut new) = (Vec::new(), Vec::new());
            codec.encode_row(&row[..arity], &mut old);
            rest.encode_row(&row[arity..], &mut new);
            let met = by_old.entry(old).or_default();
            repeated |= !met.is_empty();
            met.push((new, row));
        }
        let mut present: BTreeMap<Vec<u8>, usize> = BTreeMap::new();
        if repeated {
            for row in self.collect_relation(get(item)).await? {
                let mut bytes = Vec::new();
                codec.encode_row(&row, &mut bytes);
                if by_old.contains_key(&bytes) {
                    *present.entry(bytes).or_insert(0) += 1;
                }
            }
        }
        let mut out = Vec::new();
        for (old, mut met) in by_old {
            met.sort_by(|a, b| a.0.cmp(&b.0));
            let n = if met.len() == 1 { 1 } else { present.get(&old).copied().unwrap_or(1).min(met.len()) };
            let first = met.swap_remove(0).1;
            out.extend(std::iter::repeat_n(first, n));
        }
        Ok(out)
    }

    /// INSERT … ON CONFLICT: the changes, and the rows that were inserted or updated.
    async fn resolve_conflicts(
        &mut self,
        item: &Item,
        rows: Vec<Row>,
        plan: &ConflictPlan,
        checks: &RowChecks,
        ctx: &EvalCtx,
    ) -> Result<(Changes, Vec<Row>), SqlError> {
        let types = &item.desc.types;
        let crate::catalog::ItemKind::Table(table) = &item.kind else { return Err(SqlError::internal("ON CONFLICT on what is no table")) };
        let arbiters: Vec<Vec<usize>> = match &plan.key {
            Some(k) => vec![k.clone()],
            None => table.primary_key.iter().chain(&table.unique).map(|c| c.columns.clone()).collect(),
        };
        let key_of = |row: &Row, columns: &[usize]| -> Option<Vec<u8>> {
            let codec = RowCodec::new(columns.iter().map(|c| types[*c].clone()).collect());
            let key: Row = columns.iter().map(|c| row[*c].clone()).collect();
            let mut bytes = Vec::new();
            codec.encode_key(&key, &mut bytes);
            (!key.iter().any(Value::is_null)).then_some(bytes)
        };
        // What stands under each arbiter's key: the row, and whether this statement put it there.
        let mut existing: Vec<BTreeMap<Vec<u8>, (Row, bool)>> = Vec::new();
        for columns in &arbiters {
            let found = self.rows_with_keys(item, columns, &rows).await?;
            existing.push(found.into_iter().filter_map(|r| Some((key_of(&r, columns)?, (r, false)))).collect());
        }
        let mut changes: Changes = Vec::new();
        let mut affected = Vec::new();
        for row in rows {
            let hit = arbiters.iter().zip(&existing).find_map(|(columns, map)| map.get(&key_of(&row, columns)?).cloned());
            let Some((old, ours)) = hit else {
                for (columns, map) in arbiters.iter().zip(&mut existing) {
                    if let Some(k) = key_of(&row, columns) {
                        map.insert(k, (row.clone(), true));
                    }
                }
                changes.push((row.clone(), 1));
                affected.push(row);
                continue;
            };
            let ConflictPlanAction::Update { row: exprs, filter } = &plan.action else { continue };
            if ours {
                let e = SqlError::new(state::CARDINALITY_VIOLATION, "ON CONFLICT DO UPDATE command cannot affect row a second time");
                return Err(e.with_hint("Ensure that no rows proposed for insertion within the same command have duplicate constrained values."));
            }
            let both: Row = old.iter().chain(&row).cloned().collect();
            let both_types: Vec<ColType> = types.iter().chain(types).cloned().collect();
            if let Some(f) = filter {
                if evaluate(std::slice::from_ref(f), std::slice::from_ref(&both), &both_types, ctx)?[0][0] != Value::Bool(true) {
                    continue;
                }
            }
            let mut new = evaluate(exprs, std::slice::from_ref(&both), &both_types, ctx)?.remove(0);
            self.check_rows(item, std::slice::from_mut(&mut new), checks, ctx)?;
            for (columns, map) in arbiters.iter().zip(&mut existing) {
                if let Some(k) = key_of(&old, columns) {
                    map.remove(&k);
                }
                if let Some(k) = key_of(&new, columns) {
                    map.insert(k, (new.clone(), true));
                }
            }
            changes.push((old, -1));
            changes.push((new.clone(), 1));
            affected.push(new);
        }
        Ok((changes, affected))
    }

    /// The table's rows whose `columns` equal those of one of `rows`.
    async fn rows_with_keys(&mut self, item: &Item, columns: &[usize], rows: &[Row]) -> Result<Vec<Row>, SqlError> {
        let types = item.desc.types.clone();
        let key_types: Vec<ColType> = columns.iter().map(|c| types[*c].clone()).collect();
        let keys: Vec<Row> = rows.iter().map(|r| columns.iter().map(|c| r[*c].clone()).collect()).collect();
        let arity = types.len();
        let keys = Mir::constant(keys, key_types).distinct();
        let equal = |(i, c): (usize, &usize)| Equivalence::new(vec![expr::Scalar::Column(*c), expr::Scalar::Column(arity + i)]);
        let table = Mir::Get { id: Id::Global(item.id), types: types.clone(), keys: item.desc.keys.clone() };
        let join = Mir::Join { inputs: vec![table, keys], equivalences: columns.iter().enumerate().map(equal).collect() };
        let mir = join.project((0..arity).collect());
        let finishing = Finishing { order_by: vec![], limit: None, offset: 0, project: (0..arity).collect() };
        // Under the primary key the read is of these keys alone.
        let primary = matches!(&item.kind, crate::catalog::ItemKind::Table(t) if t.primary_key.as_ref().is_some_and(|k| k.columns == columns));
        let read = primary.then(|| ReadSet {
            keys: rows.iter().map(|r| columns.iter().map(|c| r[*c].clone()).collect::<Row>()).map(|k| (item.id, key_bytes(&k, columns, &types))).collect(),
            ..ReadSet::default()
        });
        self.collect_mir(mir, finishing, read).await
    }
}

/// Puts what defaults give into columns of rows that came without, row by row.
pub(super) fn fill(rows: &mut [Row], late: &[(usize, HirScalar)], types: &[ColType], ctx: &EvalCtx) -> Result<(), SqlError> {
    let exprs: Vec<HirScalar> = late.iter().map(|l| l.1.clone()).collect();
    if exprs.is_empty() || rows.is_empty() {
        return Ok(());
    }
    let made = evaluate(&exprs, &vec![vec![Value::Null; types.len()]; rows.len()], types, ctx)?;
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

/// Errors: 54000 if they take more than 2 GB in one column.
pub(super) fn to_deltas(types: &[ColType], changes: &Changes) -> Result<Deltas, SqlError> {
    let rows = Batch::try_from_rows(types, changes.iter().map(|c| c.0.as_slice()))?;
    Ok(Deltas { rows, diffs: Col::from_vec(changes.iter().map(|c| c.1).collect()) })
}

/// Values of expressions over rows (level 0), row by row.
pub(super) fn evaluate(exprs: &[HirScalar], rows: &[Row], types: &[ColType], ctx: &EvalCtx) -> Result<Vec<Row>, SqlError> {
    let input = Hir::Constant { rows: vec![], types: types.to_vec() };
    let hir = Hir::Map { input: Box::new(input), scalars: exprs.to_vec() };
    let scalars =
        crate::planner::row_exprs(&sql::lower(hir)?).ok_or_else(|| SqlError::unsupported("a subquery here", "use expressions over the row's columns"))?;
    let scalars = &scalars[types.len()..];
    let batch = Batch::try_from_rows(types, rows.iter().map(Vec::as_slice))?;
    let mut out: Vec<Row> = vec![Vec::with_capacity(scalars.len()); rows.len()];
    for s in scalars {
        let evaluated = expr::eval_whole(s, &batch, types, ctx);
        if let Some((_, e)) = evaluated.errors.into_iter().next() {
            return Err(e);
        }
        let ty = s.typ(types).ty;
        for (i, row) in out.iter_mut().enumerate() {
            row.push(repr::column::get(&evaluated.column, &ty, i));
        }
    }
    Ok(out)
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
