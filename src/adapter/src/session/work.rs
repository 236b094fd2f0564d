//! One statement that writes: what the items of its WITH gave, and what its parts have changed so far.
//!
//! ```text
//!   WITH a AS (DELETE … RETURNING …), b AS (SELECT …) INSERT … SELECT … FROM a, b
//!     part by part: rows read as they were before the statement ─► changes, kept here ─► RETURNING, in scope of later parts
//!     at the end:   keys checked, changes buffered in the transaction
//! ```
//!
//! No part sees what another has changed, except through RETURNING. A row that one part has taken out, no other part changes again.

use super::query::{rows_response, Row};
use super::write::{computed_over, evaluate, to_deltas, Changes};
use super::{Response, Session};
use crate::catalog::Item;
use expr::EvalCtx;
use plan::Finishing;
use repr::error::state;
use repr::{ColType, GlobalId, RelDesc, SqlError, SqlType, Value};
use sql::hir::{Hir, HirRec, HirScalar};
use sql::plan::{Plan, WithItem, WithPlan};
use std::collections::BTreeSet;
use std::sync::Arc;

/// A statement under way.
#[derive(Default)]
pub(super) struct Work {
    changes: Vec<(Arc<Item>, Vec<Change>)>,
    scope: Vec<InScope>,
    /// The statement has one part, which only adds rows: they may be written as they come.
    pub alone: bool,
    /// Constraints whose keys ON CONFLICT has looked for.
    pub arbiters: BTreeSet<(GlobalId, String)>,
}

/// What becomes of a row: `old` None: it is new; `new` None: it goes.
#[derive(Clone, Debug)]
pub(super) struct Change {
    pub old: Option<Row>,
    pub new: Option<Row>,
}

impl Change {
    pub(super) fn insert(new: Row) -> Change {
        Change { old: None, new: Some(new) }
    }
    pub(super) fn delete(old: Row) -> Change {
        Change { old: Some(old), new: None }
    }
}

/// A WITH item as later parts see it.
enum InScope {
    Relation(plan::LocalId, Hir),
    Recursive { bindings: Vec<HirRec>, limit: Option<u64>, return_at_limit: bool },
}

/// What a part has done.
pub(super) struct Done {
    /// The command tag up to the count.
    pub verb: &'static str,
    pub count: usize,
    pub returned: Option<(RelDesc, Vec<Row>)>,
}

impl Done {
    pub(super) fn response(self) -> Response {
        match self.returned {
            Some((desc, rows)) => rows_response(desc, rows, self.verb),
            None => Response::Tag(format!("{} {}", self.verb, self.count)),
        }
    }
}

impl Work {
    pub(super) fn change(&mut self, item: &Arc<Item>, changes: Vec<Change>) {
        if !changes.is_empty() {
            self.changes.push((item.clone(), changes));
        }
    }

    /// What the parts before have changed in a table.
    pub(super) fn changed(&self, table: GlobalId) -> impl Iterator<Item = &Change> {
        self.changes.iter().filter(move |c| c.0.id == table).flat_map(|c| &c.1)
    }

    /// The changes in the order in which they were made.
    pub(super) fn parts(&self) -> impl Iterator<Item = (&Arc<Item>, &[Change])> {
        self.changes.iter().map(|c| (&c.0, c.1.as_slice()))
    }
    pub(super) fn part(&self, n: usize) -> Option<(&Arc<Item>, &[Change])> {
        self.changes.get(n).map(|c| (&c.0, c.1.as_slice()))
    }

    /// The relation in the sight of the WITH items.
    pub(super) fn around(&self, hir: Hir) -> Hir {
        self.scope.iter().rev().fold(hir, |body, item| match item {
            InScope::Relation(id, value) => Hir::Let { id: *id, value: Box::new(value.clone()), body: Box::new(body) },
            InScope::Recursive { bindings, limit, return_at_limit } => {
                Hir::LetRec { bindings: bindings.clone(), limit: *limit, return_at_limit: *return_at_limit, body: Box::new(body) }
            }
        })
    }
}

impl Session {
    /// Carries out a statement that writes.
    pub(super) async fn write_statement(&mut self, plan: Plan) -> Result<Response, SqlError> {
        Ok(self.written(plan).await?.response())
    }

    pub(super) async fn written(&mut self, plan: Plan) -> Result<Done, SqlError> {
        let mut work = Work { alone: matches!(plan, Plan::Insert(_)), ..Work::default() };
        let done = self.part(plan, &mut work).await?;
        self.settle(work).await?;
        Ok(done)
    }

    async fn part(&mut self, plan: Plan, work: &mut Work) -> Result<Done, SqlError> {
        match plan {
            Plan::Insert(p) => self.insert(*p, work).await,
            Plan::Update(p) => self.update(*p, work).await,
            Plan::Delete(p) => self.delete(*p, work).await,
            Plan::Merge(p) => self.merge(*p, work).await,
            Plan::With(p) => Box::pin(self.with(*p, work)).await,
            Plan::Select(mut p) => {
                p.hir = work.around(p.hir);
                let desc = p.desc.clone();
                let rows = self.start_select(*p).await?.collect().await?;
                Ok(Done { verb: "SELECT", count: rows.len(), returned: Some((desc, rows)) })
            }
            Plan::CreateTableAs(mut p) => {
                p.query.hir = work.around(p.query.hir);
                let count = self.create_table_as(*p).await?.unwrap_or(0);
                Ok(Done { verb: "SELECT", count, returned: None })
            }
            other => Err(SqlError::internal(format!("no way to write with {other:?}"))),
        }
    }

    async fn with(&mut self, plan: WithPlan, work: &mut Work) -> Result<Done, SqlError> {
        let outer = work.scope.len();
        for item in plan.items {
            match item {
                WithItem::Query { id, value, volatile: false } => work.scope.push(InScope::Relation(id, value)),
                WithItem::Query { id, value, volatile: true } => {
                    let types = value.types();
                    let rows = self.collect_relation(work.around(value)).await?;
                    work.scope.push(InScope::Relation(id, constant(rows, types)));
                }
                WithItem::Recursive { bindings, limit, return_at_limit } => work.scope.push(InScope::Recursive { bindings, limit, return_at_limit }),
                WithItem::Modify { id, plan } => {
                    let done = Box::pin(self.part(plan, work)).await?;
                    if let Some((desc, rows)) = done.returned {
                        work.scope.push(InScope::Relation(id, constant(rows, desc.types)));
                    }
                }
            }
        }
        let done = Box::pin(self.part(plan.body, work)).await?;
        work.scope.truncate(outer);
        Ok(done)
    }

    /// The statement is done: its changes become the transaction's.
    async fn settle(&mut self, mut work: Work) -> Result<(), SqlError> {
        self.referential_actions(&mut work).await?;
        let mut by_table: Vec<(Arc<Item>, Changes)> = Vec::new();
        for (item, changes) in std::mem::take(&mut work.changes) {
            let mut rows: Changes = Vec::with_capacity(2 * changes.len());
            for c in changes {
                rows.extend(c.old.map(|r| (r, -1)));
                rows.extend(c.new.map(|r| (r, 1)));
            }
            match by_table.iter_mut().find(|t| t.0.id == item.id) {
                Some(t) => t.1.append(&mut rows),
                None => by_table.push((item, rows)),
            }
        }
        let of = |(item, changes): (Arc<Item>, Changes)| (item.clone(), to_deltas(&item.desc.types, &changes));
        let writes: Vec<(Arc<Item>, Vec<repr::Deltas>)> = by_table.into_iter().map(of).collect();
        let tables: Vec<(String, GlobalId)> = writes.iter().map(|w| (w.0.name.clone(), w.0.id)).collect();
        self.write_all(writes).await.map_err(|e| {
            let about = e.fields.clone().unwrap_or_default();
            let of = |t: &(String, GlobalId)| {
                about.table.as_ref() == Some(&t.0) && about.constraint.as_ref().is_some_and(|c| work.arbiters.contains(&(t.1, c.clone())))
            };
            match e.code == state::UNIQUE_VIOLATION && tables.iter().any(of) {
                // The key was free when it was looked for.
                true => SqlError::new(state::SERIALIZATION_FAILURE, "could not serialize access due to concurrent update")
                    .with_hint("The transaction might succeed if retried."),
                false => e,
            }
        })
    }

    /// Values of expressions over rows (level 0) followed by what `computed` makes of them, row by row; they may hold subqueries and read WITH items.
    pub(super) async fn values_over(
        &mut self,
        computed: &[Vec<HirScalar>],
        exprs: &[HirScalar],
        rows: &[Row],
        types: &[ColType],
        ctx: &EvalCtx,
        work: &Work,
    ) -> Result<Vec<Row>, SqlError> {
        if rows.is_empty() {
            return Ok(vec![]);
        }
        if let Some(values) = evaluate(computed, exprs, rows, types, ctx)? {
            return Ok(values);
        }
        // As a query over the rows, each with its number.
        let mut numbered: Vec<ColType> = types.to_vec();
        numbered.push(SqlType::Int8.not_null());
        let own = types.len();
        let input: Vec<Row> =
            rows.iter().enumerate().map(|(i, row)| row.iter().cloned().chain([Value::Int8(i64::try_from(i).unwrap_or(i64::MAX))]).collect()).collect();
        let behind = |exprs: &[HirScalar]| -> Vec<HirScalar> {
            let mut exprs = exprs.to_vec();
            exprs.iter_mut().for_each(|e| sql::plan::shift_columns(e, own, 1));
            exprs
        };
        let computed: Vec<Vec<HirScalar>> = computed.iter().map(|c| behind(c)).collect();
        let hir = computed_over(constant(input, numbered), &computed);
        let n = hir.arity();
        let hir = Hir::Map { input: Box::new(hir), scalars: behind(exprs) };
        let mir = tokio::task::block_in_place(|| sql::lower(work.around(hir)))?;
        let order_by = vec![expr::ColumnOrder { column: own, desc: false, nulls_last: true }];
        let finishing = Finishing { order_by, limit: None, offset: 0, project: (n..n + exprs.len()).collect() };
        self.collect_mir(mir, finishing, None).await
    }
}

fn constant(rows: Vec<Row>, types: Vec<ColType>) -> Hir {
    Hir::Constant { rows: rows.into_iter().map(|r| (r, 1)).collect(), types }
}
