//! SUBSCRIBE: from updates to rows.
//!
//! ```text
//!   time 10: (a,1) +1                 mz_timestamp  [mz_progressed]  mz_diff | mz_state   columns
//!   progress to 20                    20            t                NULL                 NULL ...
//! ```
//!
//! The updates of one time are sent together, progress after all updates below it: the sum of what was sent equals the
//! relation at every progress time.

use super::query::EndRead;
use super::{guarded, query, Response, Session};
use crate::catalog::ItemKind;
use crate::client::RowStream;
use crate::coordinator::request::{ReadAt, Request, SubscribeRequest, SubscribeStarted};
use crate::coordinator::router::SubscribeMessage;
use dataflow::RowUpdate;
use query::Row;
use repr::{ColType, Diff, Numeric, RowCodec, SqlError, SqlType, Timestamp, Value};
use sql::plan::{SubscribeForm, SubscribePlan};
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::sync::mpsc;

/// How updates become rows.
pub(super) struct Shape {
    form: SubscribeForm,
    types: Vec<ColType>,
    progress: bool,
    width: usize,
}

impl Session {
    pub(super) async fn subscribe(&mut self, plan: SubscribePlan) -> Result<Response, SqlError> {
        let desc = plan.result.clone();
        let rows = self.start_subscribe(plan).await?;
        Ok(Response::Rows { desc, rows, tag: "SUBSCRIBE" })
    }

    /// The rows of a subscription, as a stream that ends when dropped.
    pub(super) async fn start_subscribe(&mut self, plan: SubscribePlan) -> Result<RowStream, SqlError> {
        let at = self.as_of(plan.as_of.as_ref())?;
        let up_to = plan.up_to.clone().map(|t| self.timestamp(t)).transpose()?;
        let (catalog, ctx) = self.statement_ctx();
        let (mir, notices) = self.shared.planner.maintained(&catalog, plan.query.clone(), &ctx)?;
        for n in notices {
            self.notice("NOTICE", SqlError::new(repr::SqlState::new("00000"), n));
        }
        let mut relations = mir.global_ids();
        let made = self.made_here();
        if let Some(item) = relations.iter().filter(|id| made.contains(id)).find_map(|id| catalog.item(*id)) {
            return Err(SqlError::unsupported(format!("subscribing to {} \"{}\" in the transaction that creates it", item.noun(), item.name), "commit first"));
        }
        // It ends with the views that it names too, though their queries stand in its plan.
        relations.extend(plan.depends_on.iter().filter(|id| catalog.item(**id).is_some_and(|i| matches!(i.kind, ItemKind::View { .. }))));
        let at = at.map(|at| self.past(&catalog, &mir, at)).transpose()?.unwrap_or(ReadAt::Latest);
        let shape = Shape { form: plan.output, types: plan.desc.types.clone(), progress: plan.progress, width: plan.result.arity() };
        let interrupt = ctx.interrupt.part();
        let ctx = expr::EvalCtx { interrupt: interrupt.clone(), ..ctx };
        let request = SubscribeRequest { mir, relations, at, up_to, with_snapshot: plan.snapshot, ctx: Arc::new(ctx) };
        let started = guarded(&self.cancel, self.deadline, self.shared.ask(|answer| Request::Subscribe(request, answer))).await??;
        let (tx, receiver) = mpsc::channel(16);
        let (cancel, deadline, shared) = (self.cancel.clone(), self.deadline, self.shared.clone());
        tokio::spawn(async move {
            let end = EndRead::new(shared, started.id, interrupt);
            let result = match guarded(&cancel, deadline, forward(started, &shape, &tx)).await {
                Ok(r) => r,
                Err(e) => Err(e),
            };
            if let Err(e) = result {
                let _ = tx.send(Err(e)).await;
            }
            drop(end);
        });
        Ok(RowStream { receiver })
    }
}

async fn forward(mut started: SubscribeStarted, shape: &Shape, tx: &mpsc::Sender<Result<Vec<Row>, SqlError>>) -> Result<(), SqlError> {
    let mut progress = started.as_of;
    if shape.progress && tx.send(Ok(vec![shape.progress_row(started.as_of)])).await.is_err() {
        return Ok(());
    }
    loop {
        let message = tokio::select! {
            m = started.updates.recv() => m,
            // The reader has gone while nothing happens.
            () = tx.closed() => return Ok(()),
        };
        let Some(SubscribeMessage { upper, updates, .. }) = message else { return Err(crate::shutting_down()) };
        let mut rows = shape.rows(updates?);
        if let (true, Some(open)) = (shape.progress, upper.map(reported).filter(|u| *u > progress)) {
            progress = open;
            rows.push(shape.progress_row(open));
        }
        for chunk in rows.chunks(1_024) {
            if tx.send(Ok(chunk.to_vec())).await.is_err() {
                return Ok(());
            }
        }
        if upper.is_none() {
            return Ok(());
        }
    }
}

/// The progress that is told when all below `upper` is complete: odd, so that no change ever comes at it (see `coordinator::even`) and a
/// reader may come back `AS OF` it. A tick whose changes are not here yet can leave `upper` even; nothing lies between the two.
fn reported(upper: Timestamp) -> Timestamp {
    upper.saturating_sub(1) | 1
}

fn time(t: Timestamp) -> Value {
    Value::Numeric(Numeric::from(i64::try_from(t).unwrap_or(i64::MAX)))
}

impl Shape {
    fn progress_row(&self, t: Timestamp) -> Row {
        let mut row = vec![time(t), Value::Bool(true)];
        row.resize(self.width, Value::Null);
        row
    }

    fn start(&self, t: Timestamp) -> Row {
        let mut row = Vec::with_capacity(self.width);
        row.push(time(t));
        if self.progress {
            row.push(Value::Bool(false));
        }
        row
    }

    /// Rows of updates whose times may be mixed: in order of time, then as the form says.
    fn rows(&self, updates: Vec<RowUpdate>) -> Vec<Row> {
        let mut by_time: BTreeMap<Timestamp, Vec<(Row, Diff)>> = BTreeMap::new();
        for (row, t, diff) in updates {
            by_time.entry(t).or_default().push((row, diff));
        }
        let mut out = Vec::new();
        for (t, changes) in by_time {
            match &self.form {
                SubscribeForm::Diffs => self.diffs(t, changes, &[], &mut out),
                SubscribeForm::WithinTimestampOrderBy(order) => self.diffs(t, changes, order, &mut out),
                SubscribeForm::Upsert { key } => self.keyed(t, changes, key, false, &mut out),
                SubscribeForm::Debezium { key } => self.keyed(t, changes, key, true, &mut out),
            }
        }
        out
    }

    fn diffs(&self, t: Timestamp, changes: Vec<(Row, Diff)>, order: &[expr::ColumnOrder], out: &mut Vec<Row>) {
        let mut rows: Vec<(Row, Diff)> = changes.into_iter().map(|(row, d)| (std::iter::once(Value::Int8(d)).chain(row).collect(), 1)).collect();
        if !order.is_empty() {
            let mut types = vec![SqlType::Int8.not_null()];
            types.extend(self.types.iter().cloned());
            super::sorter::sort_rows(&mut rows, order, &types);
        }
        out.extend(rows.into_iter().map(|(row, _)| self.start(t).into_iter().chain(row).collect()));
    }

    /// ENVELOPE UPSERT and DEBEZIUM: one row a key and time.
    fn keyed(&self, t: Timestamp, changes: Vec<(Row, Diff)>, key: &[usize], debezium: bool, out: &mut Vec<Row>) {
        let rest: Vec<usize> = (0..self.types.len()).filter(|c| !key.contains(c)).collect();
        let codec = RowCodec::new(key.iter().map(|k| self.types[*k].clone()).collect());
        #[derive(Default)]
        struct Change {
            before: Vec<Row>,
            after: Vec<Row>,
        }
        let mut keys: BTreeMap<Vec<u8>, Change> = BTreeMap::new();
        for (row, diff) in changes {
            let mut bytes = Vec::new();
            codec.encode_key(&key.iter().map(|k| row[*k].clone()).collect::<Row>(), &mut bytes);
            let change = keys.entry(bytes).or_default();
            let side = if diff < 0 { &mut change.before } else { &mut change.after };
            side.extend(std::iter::repeat_n(row, diff.unsigned_abs() as usize));
        }
        let pick = |row: Option<&Row>| -> Row { rest.iter().map(|c| row.map_or(Value::Null, |r| r[*c].clone())).collect() };
        for change in keys.into_values() {
            let Some(shown) = change.after.first().or(change.before.first()) else { continue };
            let mut row = self.start(t);
            let violation = change.after.len() > 1 || change.before.len() > 1;
            let state = match (change.before.is_empty(), change.after.is_empty()) {
                _ if violation => "key_violation",
                (true, false) if debezium => "insert",
                (_, false) => "upsert",
                (_, true) => "delete",
            };
            row.push(Value::text(state));
            row.extend(key.iter().map(|k| shown[*k].clone()));
            let (before, after) = if violation { (None, None) } else { (change.before.first(), change.after.first()) };
            if debezium {
                row.extend(pick(before));
            }
            row.extend(pick(after));
            out.push(row);
        }
    }
}
