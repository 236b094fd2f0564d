//! EXPLAIN: the plan of a query or of an object at one stage.

use super::query::{columns, rows_response};
use super::{Response, Session};
use crate::catalog::ItemKind;
use optimize::explain::{explain_lir, explain_mir, explain_peek, Names};
use optimize::{OptimizeCtx, Peek};
use plan::{Finishing, Import, PeekPlan};
use repr::{GlobalId, SqlError, SqlType, Value};
use sql::ast::ExplainStage;
use sql::hir::Hir;
use sql::plan::{ExplainPlan, ExplainPlanTarget, Plan, WithItem, WithPlan};

impl Session {
    pub(super) fn explain(&mut self, p: ExplainPlan) -> Result<Response, SqlError> {
        if p.analyze {
            return Err(SqlError::unsupported("EXPLAIN ANALYZE", "leave ANALYZE out; sizes are in rd_catalog.arrangements"));
        }
        if let Some((name, _)) =
            p.options.iter().find(|o| !matches!((o.0.as_str(), o.1.to_ascii_lowercase().as_str()), ("format", "text") | ("costs" | "verbose" | "timing", _)))
        {
            return Err(SqlError::unsupported(format!("the EXPLAIN option {name}"), "plans are printed as text"));
        }
        let (hir, finishing, one_off) = match p.target {
            ExplainPlanTarget::Plan(plan) => self.explained(*plan)?,
            ExplainPlanTarget::Object(o) => {
                let catalog = self.catalog();
                let item = catalog.item(o.id).ok_or_else(|| SqlError::internal("the object is gone"))?;
                let hir = match &item.kind {
                    ItemKind::View { .. } | ItemKind::MaterializedView { .. } => (*self.shared.planner.view_hir(&catalog, item)?).clone(),
                    ItemKind::Index { on, .. } => {
                        let base = catalog.item(*on).ok_or_else(|| SqlError::internal("the relation is gone"))?;
                        Hir::Get { id: *on, types: base.desc.types.clone(), keys: base.desc.keys.clone() }
                    }
                    _ => Hir::Get { id: o.id, types: item.desc.types.clone(), keys: item.desc.keys.clone() },
                };
                (hir, None, false)
            }
        };
        let text = self.explain_text(hir, finishing, one_off, p.stage)?;
        let rows = text.lines().map(|l| vec![Value::text(l)]).collect();
        Ok(rows_response(columns(&[("QUERY PLAN", SqlType::Text)]), rows, "EXPLAIN"))
    }

    fn explained(&self, plan: Plan) -> Result<(Hir, Option<Finishing>, bool), SqlError> {
        Ok(match plan {
            Plan::Select(s) => (s.hir, Some(s.finishing), true),
            Plan::Subscribe(s) => (s.query, None, false),
            Plan::CreateView(v) | Plan::CreateMaterializedView(v) => (v.hir, None, false),
            Plan::Insert(i) => (i.source.hir, Some(i.source.finishing), true),
            Plan::Update(u) => (u.rows, None, true),
            Plan::Delete(d) => (d.rows, None, true),
            Plan::Merge(m) => (m.rows, None, true),
            Plan::With(w) => {
                let WithPlan { items, body } = *w;
                let (hir, finishing, one_off) = self.explained(body)?;
                (items.into_iter().rev().fold(hir, in_sight), finishing, one_off)
            }
            _ => {
                return Err(SqlError::unsupported(
                    "EXPLAIN of this statement",
                    "queries, views, subscriptions, INSERT, UPDATE, DELETE and MERGE can be explained",
                ))
            }
        })
    }

    fn explain_text(&self, hir: Hir, finishing: Option<Finishing>, one_off: bool, stage: ExplainStage) -> Result<String, SqlError> {
        let (catalog, ctx) = self.statement_ctx();
        let names = |id: GlobalId| match crate::builtin::name_of(id) {
            Some(n) => n,
            None => catalog.item(id).map_or_else(|| id.to_string(), |i| format!("{}.{}", i.schema, i.name)),
        };
        let columns = |id: GlobalId| match catalog.item(id) {
            Some(i) => i.desc.names.clone(),
            None => crate::builtin::defs().iter().find(|d| u64::from(d.oid) == id.0).map(|d| d.desc.names.clone()).unwrap_or_default(),
        };
        let shown = Names { relation: &names, columns: &columns };
        if stage == ExplainStage::Raw {
            return Ok(format!("{hir:#?}"));
        }
        let mut mir = sql::lower(hir)?;
        crate::planner::with_source_errors(&catalog, &mut mir)?;
        if stage == ExplainStage::Decorrelated {
            return Ok(explain_mir(&mir, &shown));
        }
        let grows = |id| self.shared.planner.grows(&catalog, id);
        let octx = OptimizeCtx { one_off, ctx: &ctx, disable: !self.settings.optimizer_enabled(), names: &names, grows: &grows };
        let optimized = optimize::optimize(mir, &octx)?;
        match stage {
            ExplainStage::Timestamp => Err(SqlError::unsupported("EXPLAIN TIMESTAMP", "reads are at the latest closed time")),
            ExplainStage::Physical => {
                let indexes = |id| self.shared.planner.indexes_on(&catalog, id);
                match finishing {
                    Some(f) => {
                        let Peek { plan, imports, finishing } = optimize::plan_peek(&optimized, f, &octx, &indexes)?;
                        Ok(finishing_text(&finishing) + &explain_peek(&plan, &imports, &shown))
                    }
                    None => {
                        let planned = optimize::plan_dataflow(&optimized, &octx, &indexes)?;
                        Ok(explain_lir(&planned.lir, &planned.imports, &shown))
                    }
                }
            }
            _ => {
                let text = explain_mir(&optimized, &shown);
                let running = self.shared.catalog();
                match finishing {
                    Some(f) => {
                        let peek = optimize::plan_peek(&optimized, f, &octx, &|id| self.shared.planner.indexes_on(&running, id))?;
                        Ok(finishing_text(&peek.finishing) + &text + &used_arrangements(&peek, &names))
                    }
                    None => Ok(text),
                }
            }
        }
    }
}

/// The relation in the sight of a WITH item; what an item that writes returns is not known before.
fn in_sight(body: Hir, item: WithItem) -> Hir {
    let body = Box::new(body);
    match item {
        WithItem::Query { id, value, .. } => Hir::Let { id, value: Box::new(value), body },
        WithItem::Recursive { bindings, limit, return_at_limit } => Hir::LetRec { bindings, limit, return_at_limit, body },
        WithItem::Modify { id, plan } => {
            let types = sql::plan::result_of(&plan).unwrap_or_default().types;
            Hir::Let { id, value: Box::new(Hir::Constant { rows: vec![], types }), body }
        }
    }
}

/// Which arrangements a one-off query reads, and how; nothing if it reads none.
fn used_arrangements(peek: &Peek, names: &dyn Fn(GlobalId) -> String) -> String {
    let lines: Vec<String> = peek
        .imports
        .iter()
        .filter_map(|i| match i {
            Import::Arrangement { object, index, .. } => {
                let how = match &peek.plan {
                    PeekPlan::Arrangement { keys: Some(keys), .. } => format!("look-up of {} key{}", keys.len(), if keys.len() == 1 { "" } else { "s" }),
                    PeekPlan::Arrangement { .. } => "scan".to_owned(),
                    _ => "import".to_owned(),
                };
                let what = if index == object { names(*index) } else { format!("{} on {}", names(*index), names(*object)) };
                Some(format!("  {what} ({how})\n"))
            }
            Import::Shard { .. } => None,
        })
        .collect();
    if lines.is_empty() {
        String::new()
    } else {
        format!("\nUsed indexes:\n{}", lines.concat())
    }
}

/// What is done with the complete result.
fn finishing_text(f: &Finishing) -> String {
    let mut parts = Vec::new();
    if !f.order_by.is_empty() {
        let columns = f.order_by.iter().map(|o| {
            format!(
                "#{}{}{}",
                o.column,
                if o.desc { " desc" } else { "" },
                if o.nulls_last == o.desc {
                    if o.nulls_last {
                        " nulls last"
                    } else {
                        " nulls first"
                    }
                } else {
                    ""
                }
            )
        });
        parts.push(format!("order by {}", columns.collect::<Vec<_>>().join(", ")));
    }
    parts.extend(f.limit.map(|n| format!("limit {n}")));
    if f.offset > 0 {
        parts.push(format!("offset {}", f.offset));
    }
    if parts.is_empty() {
        return String::new();
    }
    format!("Finish {}\n", parts.join(", "))
}
