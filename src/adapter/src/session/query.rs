//! SELECT: plans, peeks, finishing, streams.
//!
//! ```text
//!   HIR ─lower─► MIR ─system relations and own writes filled in─► optimize ─► PeekPlan ─► coordinator ─► parts ─┬──────────────┬─► client
//!                                                                                             order, sums (`sorter`) └─► runs ─┘
//! ```
//! What comes in no order and never takes rows back goes to the client as it comes.

use super::read_set::ReadSet;
use super::sorter::{self, Sorter};
use super::{guarded, now_micros, Cancel, Response, Session};
use crate::catalog::Catalog;
use crate::changes::Changes;
use crate::client::RowStream;
use crate::coordinator::request::{Introspection, Op, Own, ReadAt, ReadRequest, ReadStarted, Request};
use crate::coordinator::router::PeekMessage;
use crate::Shared;
use expr::{ColumnOrder, EvalCtx, Interrupt, Why};
use optimize::{OptimizeCtx, Peek};
use plan::{Finishing, Id, Mir, PeekPlan};
use repr::error::state;
use repr::memory::{Holder, Working};
use repr::{ColType, Deltas, Diff, GlobalId, RelDesc, SqlError, SqlType, Timestamp, Value};
use sql::hir::{Hir, HirScalar};
use sql::plan::{AsOfPlan, Late, SelectPlan};
use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use std::sync::Arc;
use storage::StoreHandle;
use tokio::sync::mpsc;
use tokio::time::Instant;

pub type Row = Vec<Value>;

/// Rows in one message to the client, and their bytes, about.
const CHUNK_ROWS: usize = 1_024;
const CHUNK_BYTES: usize = 1 << 20;
/// Rows that are passed over before others may run.
const YIELD_ROWS: usize = 16_384;

/// A one-off query under way.
pub(super) struct Running {
    source: RowSource,
    finishing: Finishing,
    types: Vec<ColType>,
    cancel: Arc<Cancel>,
    deadline: Option<Instant>,
    store: StoreHandle,
    stage: Stage,
    in_hand: Option<Held>,
    /// Rows to be left out, and rows still wanted after them.
    skip: u64,
    left: u64,
    /// What is computed over the rows as they are given out, and in which context.
    late: Option<(Late, EvalCtx)>,
    /// Of the statement.
    holder: Option<Holder>,
}

enum RowSource {
    Rows(Vec<(Row, Diff)>),
    /// The guard is held for its drop.
    Peek(ReadStarted, #[allow(dead_code)] EndRead),
}

/// Where rows are taken from.
enum Stage {
    New,
    /// As they come: a part, and the row in it.
    Parts(Part, usize),
    Sorted(sorter::Rows),
}

/// Rows that came together.
enum Part {
    Rows(Vec<(Row, Diff)>),
    Columns(Deltas, Came),
}

/// More rows are made once this is dropped.
struct Came {
    summed: bool,
    _credit: dataflow::flow::Credit,
}

/// A row, its size, and how often it is still to come.
struct Held {
    row: Row,
    bytes: usize,
    times: u64,
}

/// Tells the coordinator that a read is over, however it ends.
pub(super) struct EndRead {
    shared: Arc<Shared>,
    id: GlobalId,
    interrupt: Interrupt,
}

impl EndRead {
    pub(super) fn new(shared: Arc<Shared>, id: GlobalId, interrupt: Interrupt) -> EndRead {
        EndRead { shared, id, interrupt }
    }
}

impl Drop for EndRead {
    fn drop(&mut self) {
        // A worker may be in the middle of it, and would see that it is stopped only when the batch in hand is done.
        self.interrupt.set(Why::Asked);
        let _ = self.shared.send(Request::EndRead(self.id));
    }
}

impl Session {
    pub(super) async fn select(&mut self, plan: SelectPlan) -> Result<Response, SqlError> {
        let desc = plan.desc.clone();
        let running = self.start_select(plan).await?;
        Ok(Response::Rows { desc, rows: running.into_stream(), tag: "SELECT" })
    }

    /// All rows of a relation, in no order.
    pub(super) async fn collect_relation(&mut self, hir: Hir) -> Result<Vec<Row>, SqlError> {
        self.start_relation(hir).await?.collect().await
    }

    pub(super) async fn start_relation(&mut self, hir: Hir) -> Result<Running, SqlError> {
        self.start_ordered(hir, &[]).await
    }

    /// The rows of a relation, by these columns.
    pub(super) async fn start_ordered(&mut self, hir: Hir, by: &[usize]) -> Result<Running, SqlError> {
        let types = hir.types();
        let order_by = by.iter().map(|c| ColumnOrder { column: *c, desc: false, nulls_last: true }).collect();
        let finishing = Finishing { order_by, limit: None, offset: 0, project: (0..types.len()).collect() };
        self.start(hir, finishing, None).await
    }

    pub(super) async fn start_select(&mut self, mut plan: SelectPlan) -> Result<Running, SqlError> {
        let at = self.as_of(plan.as_of.as_ref())?;
        let late = plan.take_late().map(|l| (l, self.statement_ctx().1));
        let running = self.start(plan.hir, plan.finishing, at).await?;
        Ok(Running { late, ..running })
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
        mut mir: Mir,
        finishing: Finishing,
        mut as_of: Option<ReadAt>,
        read: Option<ReadSet>,
    ) -> Result<Running, SqlError> {
        crate::planner::with_source_errors(&catalog, &mut mir)?;
        let ctx = if self.effects(&mut mir).await? { self.statement_ctx().1 } else { ctx };
        let mut mir = self.fill_in(&catalog, mir, &ctx).await?;
        match &mut as_of {
            None => self.overlay(&catalog, &mut mir)?,
            // The past is as it was: without what the transaction is about to write.
            Some(at) => *at = self.past(&catalog, &mir, *at)?,
        }
        let own = if as_of.is_none() { self.own_parts(&mir) } else { vec![] };
        let made: Vec<GlobalId> = own.iter().filter(|o| o.made).map(|o| o.table).collect();
        let relations: Vec<GlobalId> = mir.global_ids().into_iter().filter(|id| !made.contains(id)).collect();
        let (peek, shown) = tokio::task::block_in_place(|| self.plan_peek(&catalog, mir, finishing, &ctx, &own))?;
        let Peek { plan, imports, finishing: rest } = peek;
        let types = match &plan {
            PeekPlan::Constant { types, .. } => types.clone(),
            PeekPlan::Arrangement { mfp, types, .. } => mfp.output_types(types),
            PeekPlan::Dataflow(lir) => lir.types.clone(),
        };
        if let PeekPlan::Constant { rows, types } = plan {
            return Running::new(RowSource::Rows(rows?), rest, types, self);
        }
        let at = match as_of {
            Some(at) => at,
            None if self.txn.in_block() => ReadAt::Block(self.fix_read_time(&relations).await?),
            None => ReadAt::Latest,
        };
        self.note_read(read.unwrap_or(shown));
        // Without an order any rows will do, so the workers may stop early.
        let limit = match (rest.order_by.is_empty(), rest.limit) {
            (true, Some(n)) => Some(n.saturating_add(rest.offset)),
            _ => None,
        };
        let interrupt = ctx.interrupt.part();
        let ctx = EvalCtx { interrupt: interrupt.clone(), ..ctx };
        let request = ReadRequest { plan, imports, relations, at, ctx: Arc::new(ctx), limit, own };
        let shared = self.shared.clone();
        let started = guarded(&self.cancel, self.deadline, shared.ask(|answer| Request::Read(request, answer))).await??;
        if !self.txn.in_block() {
            if let Some(o) = self.txn.open() {
                // What an implicit transaction has read must still hold when it commits its writes.
                o.validate_from = Some(o.validate_from.map_or(started.at, |t: Timestamp| t.min(started.at)));
            }
        }
        let end = EndRead::new(self.shared.clone(), started.id, interrupt);
        Running::new(RowSource::Peek(started, end), rest, types, self)
    }

    /// The catalog now, and the context that the statement's expressions are evaluated in.
    pub(super) fn statement_ctx(&self) -> (Arc<Catalog>, EvalCtx) {
        let names = self.names();
        let mut ctx = names.ctx;
        const MS_1970_TO_2000: i64 = 946_684_800_000;
        // After a restart the times of ticks run ahead of the clock for a moment.
        let clock = (now_micros() / 1_000 + MS_1970_TO_2000) as Timestamp;
        ctx.logical_now = Some(clock.max(self.shared.closed.load(Ordering::Relaxed)));
        (names.catalog, ctx)
    }

    /// How a query is answered, and what it reads as the optimized plan shows it.
    fn plan_peek(&self, catalog: &Arc<Catalog>, mir: Mir, finishing: Finishing, ctx: &EvalCtx, own: &[Own]) -> Result<(Peek, ReadSet), SqlError> {
        let names = |id: GlobalId| catalog.item(id).map_or_else(|| id.to_string(), |i| i.name.clone());
        let octx = OptimizeCtx { one_off: true, ctx, disable: !self.settings.optimizer_enabled(), names: &names, grows: &|_| false };
        let mir = optimize::optimize(mir, &octx)?;
        // Arrangements that run: the transaction's own do not yet.
        let running = self.shared.catalog();
        let young = self.young();
        let readable = |id| {
            // What the transaction is about to write is in no arrangement.
            let indexes = if own.iter().any(|o| o.table == id) { vec![] } else { self.shared.planner.indexes_on(&running, id) };
            indexes.into_iter().filter(|i| !young.contains(&i.0)).collect()
        };
        let read = ReadSet::of(catalog, &mir, ctx);
        Ok((optimize::plan_peek(&mir, finishing, &octx, &readable)?, read))
    }

    /// What runs now.
    pub(super) async fn introspect(&self) -> Result<Introspection, SqlError> {
        let (tx, rx) = tokio::sync::oneshot::channel();
        self.shared.send(Request::Introspect(tx))?;
        rx.await.map_err(|_| crate::shutting_down())
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

    /// The transaction's changes of the tables that a plan reads, where a part of them is in files.
    fn own_parts(&self, mir: &Mir) -> Vec<Own> {
        let (writes, made) = (self.txn.writes(), self.made_here());
        let of = |id: GlobalId| {
            let changes: Vec<Changes> = writes.iter().filter(|w| w.0 == id).map(|w| w.1.clone()).collect();
            changes.iter().any(Changes::has_parts).then(|| Own { table: id, changes, made: made.contains(&id) })
        };
        mir.global_ids().into_iter().filter_map(of).collect()
    }

    /// What others have made since the block's first read: not readable at its time.
    pub(super) fn young(&self) -> BTreeSet<GlobalId> {
        let Some(at) = self.txn.read_at() else { return BTreeSet::new() };
        self.shared.born.lock().iter().filter(|b| *b.1 > at).map(|b| *b.0).collect()
    }

    /// The time that AS OF means, over what the plan reads.
    /// Errors: 22023 for one before a relation was made; 0A000 over an object that the transaction has made.
    pub(super) fn past(&self, catalog: &Catalog, mir: &Mir, at: ReadAt) -> Result<ReadAt, SqlError> {
        let made = self.made_here();
        let relations = mir.global_ids();
        if let Some(i) = relations.iter().filter(|id| made.contains(id)).find_map(|id| catalog.item(*id)) {
            return Err(SqlError::unsupported(format!("AS OF over {} \"{}\" in the transaction that creates it", i.noun(), i.name), "commit first"));
        }
        let inputs = catalog.input_shards(relations);
        let Some(youngest) = inputs.iter().filter_map(|id| catalog.item(*id)).max_by_key(|i| i.created_at) else { return Ok(at) };
        match at {
            ReadAt::AsOf(t) if t < youngest.created_at => Err(SqlError::new(state::INVALID_PARAMETER_VALUE, format!("timestamp {t} is not readable"))
                .with_detail(format!("{} was made at {}", youngest.told(), youngest.created_at))),
            ReadAt::AtLeast(t) => Ok(ReadAt::AtLeast(t.max(youngest.created_at))),
            at => Ok(at),
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

fn is_table(item: &crate::catalog::Item) -> bool {
    matches!(item.kind, crate::catalog::ItemKind::Table(_))
}

/// Lays the transaction's changes over the tables that it has changed; those of which a part is in files are read with the tables.
fn add_writes(mir: &mut Mir, writes: &[(GlobalId, Changes)], made: &BTreeSet<GlobalId>) {
    if let Mir::Get { id: Id::Global(id), types, keys } = mir {
        let own = || writes.iter().filter(|w| w.0 == *id).map(|w| &w.1);
        if own().any(Changes::has_parts) {
            // The table's keys hold for the sum only.
            keys.clear();
            return;
        }
        let of = |d: &Deltas| (0..d.len()).map(|i| (d.rows.row(types, i), *d.diffs.get(i))).collect::<Vec<_>>();
        let rows: Vec<(Row, Diff)> = own().flat_map(Changes::rows).flat_map(of).collect();
        let wrote = !rows.is_empty();
        let own = Mir::Constant { rows: Ok(rows), types: types.clone() };
        if made.contains(id) {
            *mir = own;
        } else if wrote {
            let get = Mir::Get { id: Id::Global(*id), types: types.clone(), keys: vec![] };
            *mir = get.union(own);
        }
        return;
    }
    mir.children_mut().into_iter().for_each(|c| add_writes(c, writes, made));
}

impl Running {
    fn new(source: RowSource, finishing: Finishing, types: Vec<ColType>, session: &Session) -> Result<Running, SqlError> {
        let (skip, left) = (finishing.offset, finishing.limit.unwrap_or(u64::MAX));
        let (cancel, deadline, store) = (session.cancel.clone(), session.deadline, session.shared.store()?);
        let holder = session.holder.clone();
        Ok(Running { source, finishing, types, cancel, deadline, store, stage: Stage::New, in_hand: None, skip, left, late: None, holder })
    }

    /// Rows as they come, in a stream that holds a bounded number of them.
    pub(super) fn into_stream(mut self) -> RowStream {
        let (tx, receiver) = mpsc::channel(4);
        let holder = self.holder.take();
        let forward = async move {
            loop {
                let next = tokio::select! {
                    next = self.next() => next.transpose(),
                    // The client is gone.
                    () = tx.closed() => return,
                };
                let Some(part) = next else { return };
                let ends = part.is_err();
                match guarded(&self.cancel, self.deadline, tx.send(part)).await {
                    Ok(sent) if ends || sent.is_err() => return,
                    Ok(_) => {}
                    Err(e) => {
                        let _ = tx.send(Err(e)).await;
                        return;
                    }
                }
            }
        };
        match holder {
            // The rows are those of whoever collects them.
            Some(h) => tokio::spawn(async move { Working::new(&h, forward).await }),
            None => tokio::spawn(forward),
        };
        RowStream { receiver }
    }

    /// All rows.
    pub(super) async fn collect(mut self) -> Result<Vec<Row>, SqlError> {
        let mut rows = Vec::new();
        while let Some(mut part) = self.next().await? {
            rows.append(&mut part);
        }
        Ok(rows)
    }

    /// The next rows, in order (ties by row bytes), limited and projected; a row comes as often as its diff says. `None` at the end.
    pub(super) async fn next(&mut self) -> Result<Option<Vec<Row>>, SqlError> {
        let (cancel, deadline) = (self.cancel.clone(), self.deadline);
        guarded(&cancel, deadline, self.chunk()).await?
    }

    async fn chunk(&mut self) -> Result<Option<Vec<Row>>, SqlError> {
        loop {
            let Some(mut rows) = self.finished().await? else { return Ok(None) };
            let Some((late, ctx)) = &mut self.late else { return Ok(Some(rows)) };
            let exprs: Vec<_> = late.columns.iter().map(|c| c.1.clone()).collect();
            // Several calls are made row by row.
            let together = if exprs.len() == 1 { rows.len() } else { 1 };
            for part in rows.chunks_mut(together) {
                let values = super::write::evaluate_plain(&exprs, part, &late.types, ctx)?;
                for (row, values) in part.iter_mut().zip(values) {
                    late.columns.iter().zip(values).for_each(|(c, v)| row[c.0] = v);
                    row.truncate(late.keep);
                }
            }
            let skipped = late.skip.min(rows.len() as u64);
            late.skip -= skipped;
            rows.drain(..skipped as usize);
            if !rows.is_empty() {
                return Ok(Some(rows));
            }
        }
    }

    /// The next rows without what is computed late.
    async fn finished(&mut self) -> Result<Option<Vec<Row>>, SqlError> {
        let (mut rows, mut bytes) = (Vec::new(), 0);
        while self.left > 0 && rows.len() < CHUNK_ROWS && bytes < CHUNK_BYTES {
            let held = match self.in_hand.take() {
                Some(held) => held,
                None => match self.advance().await? {
                    Some(held) => held,
                    None => break,
                },
            };
            bytes += held.bytes;
            self.left -= 1;
            if held.times > 1 {
                self.in_hand = Some(Held { row: held.row.clone(), times: held.times - 1, ..held });
            }
            rows.push(held.row);
        }
        if rows.is_empty() {
            // Nothing more is wanted: what still makes rows stops.
            self.source = RowSource::Rows(vec![]);
            return Ok(None);
        }
        Ok(Some(rows))
    }

    /// The next row of which some are left after OFFSET.
    async fn advance(&mut self) -> Result<Option<Held>, SqlError> {
        let mut looked_at = 0;
        loop {
            let n = match &mut self.stage {
                Stage::New => {
                    self.begin().await?;
                    continue;
                }
                Stage::Parts(part, at) if *at < part.len() => i128::from(part.diff(*at)),
                Stage::Parts(..) => {
                    // What was read goes first: who makes the next may wait for it.
                    self.stage = Stage::Parts(Part::Rows(vec![]), 0);
                    let Some(part) = next_part(&mut self.source).await? else { return Ok(None) };
                    self.stage = Stage::Parts(part, 0);
                    continue;
                }
                Stage::Sorted(rows) => match rows.next()? {
                    Some(n) => n,
                    None => return Ok(None),
                },
            };
            if n < 0 {
                return Err(dataflow::errors::negative_count("the result"));
            }
            let n = u64::try_from(n).unwrap_or(u64::MAX);
            let skipped = n.min(self.skip);
            self.skip -= skipped;
            let held = (n > skipped).then(|| self.stage.row(&self.types, &self.finishing.project));
            if let Stage::Parts(_, at) = &mut self.stage {
                *at += 1;
            }
            if let Some((row, bytes)) = held {
                return Ok(Some(Held { row, bytes, times: n - skipped }));
            }
            looked_at += 1;
            if looked_at % YIELD_ROWS == 0 {
                tokio::task::yield_now().await;
            }
        }
    }

    /// Takes what comes until the first row can be told: all of it, where there is an order or rows may still be taken back.
    async fn begin(&mut self) -> Result<(), SqlError> {
        let Finishing { order_by, limit, offset, .. } = &self.finishing;
        let Some(first) = next_part(&mut self.source).await? else {
            self.stage = Stage::Parts(Part::Rows(vec![]), 0);
            return Ok(());
        };
        let summed = first.is_summed();
        if order_by.is_empty() && summed {
            self.stage = Stage::Parts(first, 0);
            return Ok(());
        }
        let wanted = limit.filter(|_| summed && !order_by.is_empty()).map(|n| n.saturating_add(*offset));
        let mut sorter = Sorter::new(order_by, &self.types, wanted, self.store.clone());
        let mut next = Some(first);
        while let Some(part) = next {
            tokio::task::block_in_place(|| match &part {
                Part::Rows(rows) => sorter.push_rows(rows),
                Part::Columns(deltas, _) => sorter.push(deltas),
            })?;
            drop(part);
            while !tokio::task::block_in_place(|| sorter.merge_step())? {
                tokio::task::yield_now().await;
            }
            next = next_part(&mut self.source).await?;
        }
        self.stage = Stage::Sorted(tokio::task::block_in_place(|| sorter.finish())?);
        Ok(())
    }
}

impl Stage {
    /// The row that it stands on, projected, and its size, about.
    fn row(&self, types: &[ColType], project: &[usize]) -> (Row, usize) {
        let (row, bytes) = match self {
            Stage::New => (vec![], 0),
            Stage::Parts(Part::Rows(rows), at) => (rows[*at].0.clone(), 0),
            Stage::Parts(Part::Columns(deltas, _), at) => (deltas.rows.row(types, *at), deltas.rows.row_bytes(*at)),
            Stage::Sorted(rows) => (rows.row(), rows.row_bytes()),
        };
        if project.iter().copied().eq(0..row.len()) {
            return (row, bytes);
        }
        (project.iter().map(|c| row[*c].clone()).collect(), bytes)
    }
}

impl Part {
    fn len(&self) -> usize {
        match self {
            Part::Rows(rows) => rows.len(),
            Part::Columns(deltas, _) => deltas.len(),
        }
    }
    fn diff(&self, i: usize) -> Diff {
        match self {
            Part::Rows(rows) => rows[i].1,
            Part::Columns(deltas, _) => *deltas.diffs.get(i),
        }
    }
    /// Whether no row of this part or a later one takes another back.
    fn is_summed(&self) -> bool {
        match self {
            Part::Rows(rows) => rows.iter().all(|r| r.1 >= 0),
            Part::Columns(_, came) => came.summed,
        }
    }
}

async fn next_part(source: &mut RowSource) -> Result<Option<Part>, SqlError> {
    match source {
        RowSource::Rows(rows) if rows.is_empty() => Ok(None),
        RowSource::Rows(rows) => Ok(Some(Part::Rows(std::mem::take(rows)))),
        RowSource::Peek(started, _) => match started.rows.recv().await {
            Some(PeekMessage::Rows { rows, summed, credit }) => {
                // The worker has handed them over: whoever reads holds them, and frees them.
                repr::memory::noted(rows.rows.bytes() as isize);
                Ok(Some(Part::Columns(rows, Came { summed, _credit: credit })))
            }
            Some(PeekMessage::Done(result)) => {
                *source = RowSource::Rows(vec![]);
                result.map(|()| None)
            }
            None => Err(crate::shutting_down()),
        },
    }
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
