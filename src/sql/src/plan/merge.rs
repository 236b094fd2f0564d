//! MERGE: one join of source and target says for each pair which action it takes and what the new row is.
//!
//! ```text
//!   (target, true) JOIN source ON …            RIGHT, if rows of the source without a match are acted upon, else INNER
//!     action  = CASE WHEN matched AND condition THEN 0 … END
//!     new row = CASE action WHEN 0 THEN … END, column by column
//! ```

use super::dml::{is_volatile, row_checks, target_item};
use super::from::{true_, Part};
use super::query::project;
use super::scope::{Clause, Env, Level, NsItem};
use super::*;
use crate::ast::{self, MergeAction};
use crate::catalog::{Relation, RelationKind};
use crate::hir::{ColumnRef, Hir, HirScalar, JoinKind};
use ::expr::catalog::CastContext;
use repr::ColType;
use std::rc::Rc;

impl Binder<'_> {
    pub fn merge(&self, m: &ast::Merge, env: &Env) -> Result<Plan, SqlError> {
        if let Some(w) = m.with.as_ref().filter(|w| w.recursive) {
            let pos = w.ctes.first().map_or(m.pos, |c| c.name.pos);
            return Err(SqlError::new(state::SYNTAX_ERROR, "WITH RECURSIVE is not supported for MERGE statement").at(pos));
        }
        let rel = self.merge_target(&m.table)?;
        check_reachable(&m.when)?;
        let name = m.alias.as_ref().map_or(&rel.name.name, |a| &a.name).clone();
        let n = rel.desc.arity();
        let inserts = m.when.iter().any(|w| !w.matched);
        let Part { hir: source, items: mut others, .. } = self.from_list(std::slice::from_ref(&m.source), env)?;
        if others.iter().any(|o| o.rel_visible && o.name == name) {
            return Err(SqlError::new(state::DUPLICATE_ALIAS, format!("name \"{name}\" specified more than once"))
                .with_detail("The name is used both as MERGE target table and data source."));
        }
        let marked = Hir::Map { input: Box::new(self.relation_hir(&rel, 0)?), scalars: vec![true_()] };
        others.iter_mut().for_each(|o| o.shift(n + 1));
        let target = target_item(&name, &rel, m.alias.is_some());
        let both: Vec<NsItem> = std::iter::once(target.clone()).chain(others.iter().cloned()).collect();
        let on_level = Rc::new(Level::new(both.clone(), Clause::JoinOn));
        let on = self.condition(&m.on, &env.push(on_level), "JOIN/ON")?;
        let kind = if inserts { JoinKind::Right } else { JoinKind::Inner };
        let join = Hir::Join { left: Box::new(marked), right: Box::new(source), on, kind, lateral: false };
        let types = join.types();
        let unmatched = HirScalar::IsNull(Box::new(column(n, &types[n])));

        // A row that is not matched has no target.
        let mut absent = target;
        (absent.rel_visible, absent.cols_visible) = (false, false);
        let without: Vec<NsItem> = std::iter::once(absent).chain(others).collect();
        let scope = |matched: bool, clause: Clause| {
            let level = Rc::new(Level::new(if matched { both.clone() } else { without.clone() }, clause));
            (level.clone(), env.push(level))
        };
        let int4 = |i: usize| HirScalar::Literal(Value::Int4(i32::try_from(i).unwrap_or(i32::MAX)), SqlType::Int4.not_null());
        let (mut branches, mut steps, mut rows) = (Vec::new(), Vec::new(), Vec::new());
        for (i, w) in m.when.iter().enumerate() {
            let mut all = vec![if w.matched { HirScalar::Not(Box::new(unmatched.clone())) } else { unmatched.clone() }];
            if let Some(c) = &w.condition {
                let (_, here) = scope(w.matched, Clause::MergeWhen);
                all.push(self.condition(c, &here, "WHEN")?);
            }
            branches.push((if all.len() == 1 { all.remove(0) } else { HirScalar::And(all) }, int4(i)));
            let (_, here) = scope(w.matched, if w.matched { Clause::UpdateSet } else { Clause::Values });
            let (step, row) = self.merge_step(&w.action, &rel, &here)?;
            steps.push(step);
            rows.push(row);
        }
        let null = |ty: &ColType| Box::new(HirScalar::Literal(Value::Null, ty.clone().with_nullable(true)));
        let int = SqlType::Int4.nullable();
        let width = types.len();
        let action = HirScalar::Case { branches, otherwise: null(&int), ty: int.clone() };
        let mut hir = Hir::Map { input: Box::new(join), scalars: vec![action] };
        let chosen = column(width, &int);
        let mut new = Vec::with_capacity(n);
        for (c, ty) in rel.desc.types.iter().enumerate() {
            let mut branches = Vec::new();
            for (i, row) in rows.iter().enumerate() {
                let Some(row) = row else { continue };
                branches.push((self.apply_binary(&scalar::op_at("=", 0), chosen.clone(), 0, int4(i), 0)?, row[c].clone()));
            }
            new.push(HirScalar::Case { branches, otherwise: null(ty), ty: ty.clone().with_nullable(true) });
        }
        let acted = HirScalar::Not(Box::new(HirScalar::IsNull(Box::new(chosen))));
        hir = Hir::Filter { input: Box::new(hir), predicates: vec![acted] };
        hir = Hir::Map { input: Box::new(hir), scalars: new };
        let rows = project(hir, (0..n).chain(width..=width).chain(width + 1..width + 1 + n).collect());
        let plan = MergePlan { table: rel.id, arity: n, rows, actions: steps, checks: row_checks(&rel), depends_on: self.depends_on() };
        Ok(Plan::Merge(Box::new(plan)))
    }

    /// Errors: 0A000 for what is no table.
    fn merge_target(&self, name: &ast::ObjectName) -> Result<Rc<Relation>, SqlError> {
        let rel = self.resolve_relation(name)?;
        let kinds = match rel.kind {
            RelationKind::Table | RelationKind::Builtin => return self.writable(name, "merge into"),
            RelationKind::View(_) => "views",
            RelationKind::MaterializedView => "materialized views",
            RelationKind::Source | RelationKind::Tables => "sources",
            RelationKind::Sequence => "sequences",
            RelationKind::Other => "indexes",
        };
        let e = SqlError::new(state::FEATURE_NOT_SUPPORTED, format!("cannot execute MERGE on relation \"{}\"", rel.name.name)).at(name.pos);
        Err(e.with_detail(format!("This operation is not supported for {kinds}.")))
    }

    fn merge_step(&self, action: &MergeAction, rel: &Relation, here: &Env) -> Result<(MergeStep, Option<Vec<HirScalar>>), SqlError> {
        Ok(match action {
            MergeAction::Nothing => (MergeStep::Nothing, None),
            MergeAction::Delete => (MergeStep::Delete, None),
            MergeAction::Update(set) => (MergeStep::Update, Some(self.assignments(set, rel, here)?)),
            MergeAction::Insert { columns, overriding, values } => {
                let targets = self.insert_targets(rel, columns)?;
                let values = values.as_deref().unwrap_or_default();
                let pos = values.first().map_or(0, |e| e.pos);
                self.check_count(values.len(), targets.len(), columns, pos)?;
                let cells = self.insert_cells(values, rel, &targets, *overriding, here)?;
                let mut late = Vec::new();
                let mut row = Vec::with_capacity(cells.len());
                for (c, cell) in cells.into_iter().enumerate() {
                    let ty = rel.desc.types[c].clone().with_nullable(true);
                    row.push(match cell {
                        Some(x) => x,
                        // Made row by row, in the order in which rows go in.
                        None if rel.defaults.get(c).and_then(Option::as_ref).is_some_and(is_volatile) => {
                            late.push((c, self.default_of(rel, c)));
                            HirScalar::Literal(Value::Null, ty)
                        }
                        None => self.coerce(self.default_of(rel, c), &ty, CastContext::Assignment, 0)?,
                    });
                }
                (MergeStep::Insert { late }, Some(row))
            }
        })
    }

    /// What an INSERT gives for each column of a row; `None`: the default.
    pub fn insert_cells(
        &self,
        row: &[ast::Expr],
        rel: &Relation,
        targets: &[ast::AssignTarget],
        overriding: Option<bool>,
        here: &Env,
    ) -> Result<Vec<Option<HirScalar>>, SqlError> {
        let mut cells: Vec<Option<HirScalar>> = vec![None; rel.desc.arity()];
        let values = row.iter().map(|e| self.assigned_value(e, here)).collect::<Result<Vec<_>, _>>()?;
        for ((value, e), t) in values.into_iter().zip(row).zip(targets) {
            let column = self.column_of(rel, &t.column)?;
            let x = match value {
                None if t.path.is_empty() => continue,
                None => self.assign_default(rel, t, e.pos)?.1,
                Some(value) => {
                    self.check_insertable(rel, &t.column, overriding, e.pos)?;
                    if self.ignores(rel, &t.column, overriding) {
                        continue;
                    }
                    let null = HirScalar::Literal(Value::Null, rel.desc.types[column].clone().with_nullable(true));
                    let whole = cells[column].take().unwrap_or(null);
                    self.assign_to(whole, rel, t, value, e.pos, here)?.1
                }
            };
            cells[column] = Some(self.folded(x));
        }
        Ok(cells)
    }
}

/// Errors: 42601 for a WHEN after one of its kind that takes all.
fn check_reachable(when: &[ast::MergeWhen]) -> Result<(), SqlError> {
    for matched in [true, false] {
        let mut of_kind = when.iter().filter(|w| w.matched == matched).skip_while(|w| w.condition.is_some()).skip(1);
        if let Some(w) = of_kind.next() {
            return Err(SqlError::new(state::SYNTAX_ERROR, "unreachable WHEN clause specified after unconditional WHEN clause").at(w.pos));
        }
    }
    Ok(())
}

fn column(i: usize, ty: &ColType) -> HirScalar {
    HirScalar::Column(ColumnRef { level: 0, column: i }, ty.clone())
}
