//! EXPLAIN: the plan of a query or of an object at one stage; EXPLAIN ANALYZE: what the statement brought, and how long it took, too.

use super::query::{columns, rows_response};
use super::{Response, Session};
use crate::catalog::ItemKind;
use optimize::explain::{explain_lir, explain_mir, explain_peek, Names};
use optimize::{OptimizeCtx, Peek};
use plan::{Finishing, Import, PeekPlan};
use repr::error::state;
use repr::{GlobalId, SqlError, SqlType, Value};
use sql::ast::ExplainStage;
use sql::hir::Hir;
use sql::plan::{ExplainPlan, ExplainPlanTarget, Plan, WithItem, WithPlan};
use std::time::Instant;

impl Session {
    pub(super) async fn explain(&mut self, mut p: ExplainPlan) -> Result<Response, SqlError> {
        let Options { summary, json } = check_options(&p)?;
        let summary = summary.unwrap_or(p.analyze);
        if let ExplainPlanTarget::Plan(plan) = &p.target {
            if let Plan::Execute { name, args } = &**plan {
                p.target = ExplainPlanTarget::Plan(Box::new(self.prepared_plan(name, args.clone())?));
            }
        }
        let analyzed = match (&p.target, p.analyze) {
            (_, false) => None,
            (ExplainPlanTarget::Plan(plan), true) if !matches!(**plan, Plan::Subscribe(_) | Plan::CreateView(_) | Plan::CreateMaterializedView(_)) => {
                Some((**plan).clone())
            }
            _ => {
                let hint = "leave ANALYZE out; what is maintained is shown in rd_catalog.arrangements";
                return Err(SqlError::unsupported("EXPLAIN ANALYZE of what does not come to an end", hint));
            }
        };
        let begun = Instant::now();
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
        // What was measured: rows, then milliseconds.
        let (mut actual, mut times) = (None, Vec::new());
        let millis = |begun: Instant| begun.elapsed().as_secs_f64() * 1e3;
        if summary {
            times.push(("Planning Time", millis(begun)));
        }
        if let Some(plan) = analyzed {
            let begun = Instant::now();
            actual = Some(rows_of(Box::pin(self.run(plan)).await?).await?);
            if summary {
                times.push(("Execution Time", millis(begun)));
            }
        }
        if json {
            let told = as_json(&text, actual, &times);
            return Ok(rows_response(columns(&[("QUERY PLAN", SqlType::Json)]), vec![vec![Value::text(told)]], "EXPLAIN"));
        }
        let mut lines: Vec<String> = text.trim_end().lines().map(str::to_owned).collect();
        lines.extend(actual.map(|rows| format!("Actual Rows: {rows}")));
        lines.extend(times.iter().map(|(what, ms)| format!("{what}: {ms:.3} ms")));
        let rows = lines.into_iter().map(|l| vec![Value::text(l)]).collect();
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

/// What the options ask for; of SUMMARY, if it is said.
struct Options {
    summary: Option<bool>,
    json: bool,
}

/// Checks the options. Errors: 42601, 22023, and 0A000 for forms other than text and JSON.
fn check_options(p: &ExplainPlan) -> Result<Options, SqlError> {
    let (mut summary, mut json) = (None, false);
    for (name, value) in &p.options {
        let value = value.to_ascii_lowercase();
        let on = match value.as_str() {
            "" | "true" | "on" | "1" => Some(true),
            "false" | "off" | "0" => Some(false),
            _ => None,
        };
        match name.as_str() {
            "format" => match value.as_str() {
                "text" => json = false,
                "json" => json = true,
                "xml" | "yaml" => return Err(SqlError::unsupported(format!("EXPLAIN (FORMAT {})", value.to_uppercase()), "plans are printed as text or JSON")),
                _ => {
                    let m = format!("unrecognized value for EXPLAIN option \"format\": \"{value}\"");
                    return Err(SqlError::new(state::INVALID_PARAMETER_VALUE, m));
                }
            },
            "analyze" | "verbose" | "costs" | "settings" | "buffers" | "wal" | "timing" | "summary" => {
                let on = on.ok_or_else(|| SqlError::new(state::SYNTAX_ERROR, format!("{name} requires a Boolean value")))?;
                if on && !p.analyze && matches!(name.as_str(), "wal" | "timing") {
                    let m = format!("EXPLAIN option {} requires ANALYZE", name.to_uppercase());
                    return Err(SqlError::new(state::INVALID_PARAMETER_VALUE, m));
                }
                if name == "summary" {
                    summary = Some(on);
                }
            }
            _ => return Err(SqlError::new(state::SYNTAX_ERROR, format!("unrecognized EXPLAIN option \"{name}\""))),
        }
    }
    Ok(Options { summary, json })
}

/// The plan's text as JSON of PostgreSQL's shape: each line is a node, what stands deeper are its `Plans`.
fn as_json(text: &str, actual: Option<usize>, times: &[(&str, f64)]) -> String {
    use serde_json::{json, Map};
    let (plan, used) = text.split_once("\nUsed indexes:\n").unwrap_or((text, ""));
    let lines: Vec<(usize, &str)> = plan.lines().filter(|l| !l.trim().is_empty()).map(|l| (l.len() - l.trim_start().len(), l.trim())).collect();
    let mut at = 0;
    let mut nodes = nodes(&lines, &mut at, 0, 0);
    // Several at the top are parts of one plan.
    let mut root = match nodes.len() {
        1 => nodes.remove(0),
        _ => json!({ "Node Type": "Plan", "Plans": nodes }),
    };
    if let (Some(rows), Some(root)) = (actual, root.as_object_mut()) {
        root.insert("Actual Rows".into(), json!(rows));
    }
    let mut whole = Map::new();
    whole.insert("Plan".into(), root);
    if !used.is_empty() {
        whole.insert("Used Indexes".into(), json!(used.lines().map(str::trim).collect::<Vec<_>>()));
    }
    whole.extend(times.iter().map(|(what, ms)| ((*what).to_owned(), json!((ms * 1e3).round() / 1e3))));
    serde_json::to_string_pretty(&json!([whole])).unwrap_or_default()
}

const NESTED_MAX: usize = 500; // what readers of JSON take, and the stack

/// The lines from `at` on that stand at `depth` or deeper, as trees; those beyond [`NESTED_MAX`] side by side.
fn nodes(lines: &[(usize, &str)], at: &mut usize, depth: usize, level: usize) -> Vec<serde_json::Value> {
    let mut out = Vec::new();
    while let Some((indent, line)) = lines.get(*at).filter(|l| l.0 >= depth) {
        *at += 1;
        let (kind, rest) = line.split_once(' ').unwrap_or((line, ""));
        let mut node = serde_json::Map::new();
        node.insert("Node Type".into(), kind.into());
        if !rest.is_empty() {
            node.insert(if kind == "Get" { "Relation Name" } else { "Detail" }.into(), rest.into());
        }
        let plans = if level < NESTED_MAX { nodes(lines, at, indent + 1, level + 1) } else { Vec::new() };
        if !plans.is_empty() {
            node.insert("Plans".into(), plans.into());
        }
        out.push(node.into());
    }
    out
}

/// How many rows a statement has brought or changed.
async fn rows_of(response: Response) -> Result<usize, SqlError> {
    match response {
        Response::Rows { mut rows, .. } => {
            let mut count = 0;
            while let Some(some) = rows.next().await {
                count += some?.len();
            }
            Ok(count)
        }
        Response::Tag(tag) => Ok(tag.rsplit(' ').next().and_then(|n| n.parse().ok()).unwrap_or(0)),
        _ => Ok(0),
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
