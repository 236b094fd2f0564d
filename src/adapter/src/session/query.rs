//! SELECT: plans, peeks, finishing, streams.
//!
//! ```text
//!   HIR ─lower─► MIR ─system relations and own writes filled in─► optimize ─► PeekPlan ─► coordinator ─► rows ─finish─► client
//! ```

use super::read_set::ReadSet;
use super::{guarded, now_micros, Cancel, Response, Session};
use crate::catalog::Catalog;
use crate::client::RowStream;
use crate::coordinator::request::{Introspection, Op, ReadAt, ReadRequest, ReadStarted, Request};
use crate::coordinator::router::PeekMessage;
use crate::Shared;
use expr::EvalCtx;
use optimize::{OptimizeCtx, Peek};
use plan::{Finishing, Id, Mir, PeekPlan};
use repr::error::state;
use repr::{ColType, Deltas, Diff, GlobalId, RelDesc, RowCodec, SqlError, SqlType, Timestamp, Value};
use sql::hir::{Hir, HirScalar};
use sql::plan::{AsOfPlan, SelectPlan};
use std::collections::BTreeSet;
use std::sync::Arc;
use tokio::sync::mpsc;
use tokio::time::Instant;

pub type Row = Vec<Value>;

/// Rows in one message to the client.
const CHUNK_ROWS: usize = 1_024;

/// A one-off query under way.
pub(super) struct Running {
    source: RowSource,
    finishing: Finishing,
    types: Vec<ColType>,
    cancel: Arc<Cancel>,
    deadline: Option<Instant>,
}

enum RowSource {
    Rows(Vec<(Row, Diff)>),
    /// The guard is held for its drop.
    Peek(ReadStarted, #[allow(dead_code)] EndRead),
}

/// Tells the coordinator that a read is over, however it ends.
pub(super) struct EndRead {
    shared: Arc<Shared>,
    id: GlobalId,
}

impl EndRead {
    pub(super) fn new(shared: Arc<Shared>, id: GlobalId) -> EndRead {
        EndRead { shared, id }
    }
}

impl Drop for EndRead {
    fn drop(&mut self) {
        let _ = self.shared.send(Request::EndRead(self.id));
    }
}

impl Session {
    pub(super) async fn select(&mut self, plan: SelectPlan) -> Result<Response, SqlError> {
        let desc = plan.desc.clone();
        let running = self.start_select(plan).await?;
        Ok(Response::Rows { desc, rows: running.into_stream(), tag: "SELECT" })
    }

    /// All rows of a query, finished.
    pub(super) async fn collect(&mut self, plan: SelectPlan) -> Result<Vec<Row>, SqlError> {
        let running = self.start_select(plan).await?;
        running.collect().await
    }

    /// All rows of a relation, in no order.
    pub(super) async fn collect_relation(&mut self, hir: Hir) -> Result<Vec<Row>, SqlError> {
        let types = hir.types();
        let finishing = Finishing { order_by: vec![], limit: None, offset: 0, project: (0..types.len()).collect() };
        let running = self.start(hir, finishing, None).await?;
        running.collect().await
    }

    pub(super) async fn start_select(&mut self, plan: SelectPlan) -> Result<Running, SqlError> {
        let at = self.as_of(plan.as_of.as_ref())?;
        self.start(plan.hir, plan.finishing, at).await
    }

    async fn start(&mut self, hir: Hir, finishing: Finishing, as_of: Option<ReadAt>) -> Result<Running, SqlError> {
        let (catalog, ctx) = self.statement_ctx();
        let mir = tokio::task::block_in_place(|| sql::lower(hir))?;
        self.start_mir(catalog, ctx, mir, finishing, as_of, None).await
    }

    /// All rows of a plan, finished. `read`: what it reads, where the caller knows better than the plan shows.
    pub(super) async fn collect_mir(&mut self, mir: Mir, finishing: Finishing, read: Option<ReadSet>) -> Result<Vec<Row>, SqlError> {
        let (catalog, ctx) = self.statement_ctx();
        self.start_mir(catalog, ctx, mir, finishing, None, read).await?.collect().await
    }

    async fn start_mir(
        &mut self,
        catalog: Arc<Catalog>,
        ctx: EvalCtx,
        mir: Mir,
        finishing: Finishing,
        as_of: Option<ReadAt>,
        read: Option<ReadSet>,
    ) -> Result<Running, SqlError> {
        let mut mir = mir;
        crate::planner::with_source_errors(&catalog, &mut mir)?;
        let ctx = if self.effects(&mut mir).await? { self.statement_ctx().1 } else { ctx };
        let mut mir = self.fill_in(&catalog, mir).await?;
        match as_of {
            None => self.overlay(&catalog, &mut mir)?,
            // The past is as it was: without what the transaction is about to write.
            Some(_) => self.has_past(&catalog, &mir)?,
        }
        let relations = mir.global_ids();
        let read = match read {
            Some(r) => r,
            None => {
                let mut r = ReadSet::default();
                r.add(&catalog, &mir);
                r
            }
        };
        let Peek { plan, imports, finishing: rest } = tokio::task::block_in_place(|| self.plan_peek(&catalog, mir, finishing, &ctx))?;
        let types = match &plan {
            PeekPlan::Constant { types, .. } => types.clone(),
            PeekPlan::Arrangement { mfp, types, .. } => mfp.output_types(types),
            PeekPlan::Dataflow(lir) => lir.types.clone(),
        };
        let (cancel, deadline) = (self.cancel.clone(), self.deadline);
        if let PeekPlan::Constant { rows, types } = plan {
            return Ok(Running { source: RowSource::Rows(rows?), finishing: rest, types, cancel, deadline });
        }
        let at = match as_of {
            Some(at) => at,
            None if self.txn.in_block() => ReadAt::AsOf(self.fix_read_time().await?),
            None => ReadAt::Latest,
        };
        self.note_read(read);
        // Without an order any rows will do, so the workers may stop early.
        let limit = match (rest.order_by.is_empty(), rest.limit) {
            (true, Some(n)) => Some(n.saturating_add(rest.offset)),
            _ => None,
        };
        let request = ReadRequest { plan, imports, relations, at, ctx: Arc::new(ctx), limit };
        let shared = self.shared.clone();
        let started = guarded(&cancel, deadline, shared.ask(|answer| Request::Read(request, answer))).await??;
        if !self.txn.in_block() {
            if let Some(o) = self.txn.open() {
                // What an implicit transaction has read must still hold when it commits its writes.
                o.validate_from = Some(o.validate_from.map_or(started.at, |t: Timestamp| t.min(started.at)));
            }
        }
        let end = EndRead::new(self.shared.clone(), started.id);
        Ok(Running { source: RowSource::Peek(started, end), finishing: rest, types, cancel, deadline })
    }

    /// The catalog now, and the context that the statement's expressions are evaluated in.
    pub(super) fn statement_ctx(&self) -> (Arc<Catalog>, EvalCtx) {
        let names = self.names();
        let mut ctx = names.ctx;
        const MS_1970_TO_2000: i64 = 946_684_800_000;
        ctx.logical_now = Some((now_micros() / 1_000 + MS_1970_TO_2000) as u64);
        (names.catalog, ctx)
    }

    fn plan_peek(&self, catalog: &Arc<Catalog>, mir: Mir, finishing: Finishing, ctx: &EvalCtx) -> Result<Peek, SqlError> {
        let names = |id: GlobalId| catalog.item(id).map_or_else(|| id.to_string(), |i| i.name.clone());
        let octx = OptimizeCtx { one_off: true, ctx, disable: !self.settings.optimizer_enabled(), names: &names };
        let mir = optimize::optimize(mir, &octx)?;
        // Arrangements that run: the transaction's own do not yet.
        let running = self.shared.catalog();
        let young = self.young();
        let readable = |id| self.shared.planner.indexes_on(&running, id).into_iter().filter(|i| !young.contains(&i.0)).collect();
        optimize::plan_peek(&mir, finishing, &octx, &readable)
    }

    /// System relations become constants.
    pub(super) async fn fill_in(&mut self, catalog: &Arc<Catalog>, mut mir: Mir) -> Result<Mir, SqlError> {
        let builtin: Vec<GlobalId> = mir.global_ids().into_iter().filter(|id| crate::builtin::is_builtin(*id)).collect();
        if builtin.is_empty() {
            return Ok(mir);
        }
        let introspection = if builtin.iter().any(|id| crate::builtin::needs_introspection(*id)) {
            let (tx, rx) = tokio::sync::oneshot::channel();
            self.shared.send(Request::Introspect(tx))?;
            rx.await.map_err(|_| crate::shutting_down())?
        } else {
            Introspection::default()
        };
        let settings = self.settings.all();
        let prepared: Vec<(String, String)> = self
            .prepared
            .iter()
            .filter(|(n, _)| !n.is_empty())
            .map(|(n, p)| (n.clone(), p.statement.as_ref().map_or_else(String::new, |s| s.text.clone())))
            .collect();
        let ctx = crate::builtin::BuiltinCtx {
            catalog,
            introspection: &introspection,
            settings: &settings,
            user: &self.user,
            pid: self.pid,
            prepared: &prepared,
            sequences: &self.shared.sequences,
        };
        replace_builtins(&mut mir, &ctx);
        Ok(mir)
    }

    /// A transaction sees its own writes and objects: tables it has changed are read together with the changes, views over them and
    /// those that it has made by their queries.
    pub(super) fn overlay(&self, catalog: &Arc<Catalog>, mir: &mut Mir) -> Result<(), SqlError> {
        let writes = self.txn.writes();
        let made = self.made_here();
        let young = self.young();
        if writes.is_empty() && made.is_empty() && young.is_empty() {
            return Ok(());
        }
        let touched = |id| writes.iter().any(|w| w.0 == id) || made.contains(&id) || young.contains(&id);
        self.shared.planner.expand(catalog, mir, &touched)?;
        // A table that took another's place has no rows before that.
        if let Some(id) = mir.global_ids().into_iter().find(|id| young.contains(id) && !made.contains(id)) {
            let what = catalog.item(id).map_or_else(|| "a table".to_owned(), |i| i.told());
            return Err(SqlError::new(state::SERIALIZATION_FAILURE, format!("could not serialize access: {what} was altered meanwhile"))
                .with_hint("The transaction might succeed if retried."));
        }
        if let Some(item) = mir.global_ids().into_iter().filter(|id| made.contains(id)).filter_map(|id| catalog.item(id)).find(|i| !is_table(i)) {
            return Err(SqlError::unsupported(format!("reading {} \"{}\" in the transaction that creates it", item.noun(), item.name), "commit first"));
        }
        add_writes(mir, writes, &made);
        Ok(())
    }

    /// What others have made since the block's first read: not readable at its time.
    fn young(&self) -> BTreeSet<GlobalId> {
        let Some(at) = self.txn.read_at() else { return BTreeSet::new() };
        self.shared.born.lock().iter().filter(|b| *b.1 > at).map(|b| *b.0).collect()
    }

    /// Errors: 0A000 for AS OF over an object that the transaction has made.
    fn has_past(&self, catalog: &Catalog, mir: &Mir) -> Result<(), SqlError> {
        let made = self.made_here();
        match mir.global_ids().into_iter().filter(|id| made.contains(id)).find_map(|id| catalog.item(id)) {
            Some(i) => Err(SqlError::unsupported(format!("AS OF over {} \"{}\" in the transaction that creates it", i.noun(), i.name), "commit first")),
            None => Ok(()),
        }
    }

    /// Objects that the open transaction has made.
    pub(super) fn made_here(&self) -> BTreeSet<GlobalId> {
        self.txn.ddl().iter().filter_map(|op| if let Op::Create { item, .. } = op { Some(item.id) } else { None }).collect()
    }

    /// The time that AS OF names.
    pub(super) fn as_of(&self, plan: Option<&AsOfPlan>) -> Result<Option<ReadAt>, SqlError> {
        let Some(p) = plan else { return Ok(None) };
        let t = self.timestamp(p.time.clone())?;
        Ok(Some(if p.at_least { ReadAt::AtLeast(t) } else { ReadAt::AsOf(t) }))
    }

    /// A constant expression of type numeric, timestamp or timestamptz as a time of the timeline.
    pub(super) fn timestamp(&self, time: HirScalar) -> Result<Timestamp, SqlError> {
        const MS_1970_TO_2000: i64 = 946_684_800_000;
        let (_, ctx) = self.statement_ctx();
        let value = constant(time, &ctx)?;
        let bad = || SqlError::new(state::INVALID_PARAMETER_VALUE, "AS OF and UP TO need milliseconds since 1970, or a timestamp");
        let ms = match value {
            Value::Timestamp(us) | Value::TimestampTz(us) => us.div_euclid(1_000).checked_add(MS_1970_TO_2000).ok_or_else(bad)?,
            Value::Numeric(n) => n.to_i128_rounded().and_then(|n| i64::try_from(n).ok()).ok_or_else(bad)?,
            other => other.as_i64().ok_or_else(bad)?,
        };
        u64::try_from(ms).map_err(|_| bad())
    }
}

/// The value of an expression that reads nothing.
pub(super) fn constant(scalar: HirScalar, ctx: &EvalCtx) -> Result<Value, SqlError> {
    let ty = scalar.typ();
    let hir = Hir::Map { input: Box::new(Hir::Constant { rows: vec![(vec![], 1)], types: vec![] }), scalars: vec![scalar] };
    match crate::planner::row_exprs(&sql::lower(hir)?).as_deref() {
        Some([one]) => expr::eval_const(one, ctx),
        _ => Err(SqlError::unsupported(format!("a subquery here (type {})", ty.ty), "use a constant expression")),
    }
}

fn replace_builtins(mir: &mut Mir, ctx: &crate::builtin::BuiltinCtx<'_>) {
    if let Mir::Get { id: Id::Global(id), types, .. } = mir {
        if crate::builtin::is_builtin(*id) {
            *mir = Mir::constant(crate::builtin::rows(*id, ctx), types.clone());
        }
        return;
    }
    mir.children_mut().into_iter().for_each(|c| replace_builtins(c, ctx));
}

fn is_table(item: &crate::catalog::Item) -> bool {
    matches!(item.kind, crate::catalog::ItemKind::Table(_))
}

fn add_writes(mir: &mut Mir, writes: &[(GlobalId, Deltas)], made: &BTreeSet<GlobalId>) {
    if let Mir::Get { id: Id::Global(id), types, .. } = mir {
        let rows: Vec<(Row, Diff)> =
            writes.iter().filter(|w| w.0 == *id).flat_map(|(_, d)| (0..d.len()).map(|i| (d.rows.row(types, i), *d.diffs.get(i))).collect::<Vec<_>>()).collect();
        let wrote = !rows.is_empty();
        let own = Mir::Constant { rows: Ok(rows), types: types.clone() };
        if made.contains(id) {
            *mir = own;
        } else if wrote {
            // The table's keys hold for the sum only.
            let get = Mir::Get { id: Id::Global(*id), types: types.clone(), keys: vec![] };
            *mir = get.union(own);
        }
        return;
    }
    mir.children_mut().into_iter().for_each(|c| add_writes(c, writes, made));
}

impl Running {
    /// Rows as they come, in a stream that holds a bounded number of them.
    pub(super) fn into_stream(self) -> RowStream {
        let (tx, receiver) = mpsc::channel(4);
        tokio::spawn(async move {
            let (cancel, deadline) = (self.cancel.clone(), self.deadline);
            let result = match guarded(&cancel, deadline, self.send_to(&tx)).await {
                Ok(r) => r,
                Err(e) => Err(e),
            };
            if let Err(e) = result {
                let _ = tx.send(Err(e)).await;
            }
        });
        RowStream { receiver }
    }

    async fn send_to(self, tx: &mpsc::Sender<Result<Vec<Row>, SqlError>>) -> Result<(), SqlError> {
        if self.finishing.order_by.is_empty() {
            return self.send_unordered(tx).await;
        }
        for chunk in self.collect_ordered().await?.chunks(CHUNK_ROWS) {
            if tx.send(Ok(chunk.to_vec())).await.is_err() {
                return Ok(());
            }
        }
        Ok(())
    }

    async fn send_unordered(self, tx: &mpsc::Sender<Result<Vec<Row>, SqlError>>) -> Result<(), SqlError> {
        let Finishing { limit, offset, project, .. } = self.finishing;
        let (mut skip, mut left) = (offset, limit.unwrap_or(u64::MAX));
        let mut chunk: Vec<Row> = Vec::new();
        let mut source = self.source;
        while let Some(rows) = next_part(&mut source, &self.types).await? {
            for (row, diff) in rows {
                let mut n = diff.max(0) as u64;
                let skipped = n.min(skip);
                skip -= skipped;
                n = (n - skipped).min(left);
                left -= n;
                for _ in 0..n {
                    chunk.push(project.iter().map(|c| row[*c].clone()).collect());
                    if chunk.len() >= CHUNK_ROWS && tx.send(Ok(std::mem::take(&mut chunk))).await.is_err() {
                        return Ok(());
                    }
                }
            }
            if left == 0 {
                break;
            }
        }
        if !chunk.is_empty() {
            let _ = tx.send(Ok(chunk)).await;
        }
        Ok(())
    }

    pub(super) async fn collect(self) -> Result<Vec<Row>, SqlError> {
        let (cancel, deadline) = (self.cancel.clone(), self.deadline);
        guarded(&cancel, deadline, self.collect_ordered()).await?
    }

    async fn collect_ordered(self) -> Result<Vec<Row>, SqlError> {
        let Finishing { order_by, limit, offset, .. } = &self.finishing;
        let wanted = limit.and_then(|n| usize::try_from(n.saturating_add(*offset)).ok()).filter(|_| !order_by.is_empty());
        let mut rows: Vec<(Row, Diff)> = Vec::new();
        let mut source = self.source;
        while let Some(mut part) = next_part(&mut source, &self.types).await? {
            rows.append(&mut part);
            // Only the first rows are ever wanted: the others need not be held.
            if let Some(n) = wanted.filter(|n| rows.len() / 2 > (*n).max(CHUNK_ROWS)) {
                tokio::task::block_in_place(|| sort_rows(&mut rows, order_by, &self.types));
                rows.truncate(n);
            }
        }
        Ok(tokio::task::block_in_place(|| finish(rows, &self.finishing, &self.types)))
    }
}

async fn next_part(source: &mut RowSource, types: &[ColType]) -> Result<Option<Vec<(Row, Diff)>>, SqlError> {
    match source {
        RowSource::Rows(rows) if rows.is_empty() => Ok(None),
        RowSource::Rows(rows) => Ok(Some(std::mem::take(rows))),
        RowSource::Peek(started, _) => match started.rows.recv().await {
            Some(PeekMessage::Rows(d, _credit)) => Ok(Some((0..d.len()).map(|i| (d.rows.row(types, i), *d.diffs.get(i))).collect())),
            Some(PeekMessage::Done(result)) => result.map(|()| None),
            None => Err(crate::shutting_down()),
        },
    }
}

/// Order (ties by row bytes), offset, limit, projection; a row comes as often as its diff says.
pub(super) fn finish(mut rows: Vec<(Row, Diff)>, finishing: &Finishing, types: &[ColType]) -> Vec<Row> {
    if !finishing.order_by.is_empty() {
        sort_rows(&mut rows, &finishing.order_by, types);
    }
    let expanded = rows.into_iter().flat_map(|(row, diff)| std::iter::repeat_n(row, diff.max(0) as usize));
    let limit = finishing.limit.map_or(usize::MAX, |n| usize::try_from(n).unwrap_or(usize::MAX));
    let offset = usize::try_from(finishing.offset).unwrap_or(usize::MAX);
    expanded.skip(offset).take(limit).map(|row| finishing.project.iter().map(|c| row[*c].clone()).collect()).collect()
}

pub(super) fn sort_rows(rows: &mut [(Row, Diff)], order: &[expr::ColumnOrder], types: &[ColType]) {
    let codec = RowCodec::new(types.to_vec());
    rows.sort_by_cached_key(|(row, _)| {
        let mut key = Vec::new();
        for o in order {
            let v = &row[o.column];
            // NULL sorts last in the canonical form; `desc` turns values around, `nulls_last` says where NULLs go.
            key.push(u8::from(v.is_null() == o.nulls_last));
            if !v.is_null() {
                let start = key.len();
                repr::row::write_canonical(v, &types[o.column].ty, &mut key);
                if o.desc {
                    key[start..].iter_mut().for_each(|b| *b = !*b);
                }
            }
        }
        codec.encode_row(row, &mut key);
        key
    });
}

/// Rows known at once, as a response.
pub(super) fn rows_response(desc: RelDesc, rows: Vec<Row>, tag: &'static str) -> Response {
    Response::Rows { desc, rows: rows_stream(rows), tag }
}

pub(super) fn rows_stream(rows: Vec<Row>) -> RowStream {
    let (tx, receiver) = mpsc::channel(rows.len() / CHUNK_ROWS + 1);
    for chunk in rows.chunks(CHUNK_ROWS) {
        let _ = tx.try_send(Ok(chunk.to_vec()));
    }
    RowStream { receiver }
}

/// A description of columns that are never NULL-checked: (name, type).
pub(super) fn columns(columns: &[(&str, SqlType)]) -> RelDesc {
    RelDesc { names: columns.iter().map(|c| c.0.to_string()).collect(), types: columns.iter().map(|c| c.1.clone().nullable()).collect(), keys: vec![] }
}
