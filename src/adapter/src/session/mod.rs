//! Statements of one connection: planning, transactions, execution.
//!
//! ```text
//!   prepare: statement ─describe─► parameter and result types
//!   execute: statement + values ─plan─► Plan ─► read | write | DDL | settings | cursor
//! ```
//!
//! A session plans on the catalog as it is when the statement starts; if an object vanishes before the coordinator
//! gets to it, the coordinator says so. Not here: the wire (`server`), order between sessions (`coordinator`).

/// Advisory locks.
pub(crate) mod advisory;
/// ALTER TABLE: rows and what depends on them.
mod alter;
/// DO.
mod block;
/// COPY in and out.
pub mod copy;
/// DECLARE, FETCH, CLOSE.
mod cursor;
/// CREATE, DROP, ALTER, COMMENT.
mod ddl;
/// Functions whose point is their effect.
mod effects;
/// EXPLAIN.
mod explain;
/// Foreign keys.
mod foreign;
/// Indexes of tables.
mod index;
/// Counters for Prometheus.
pub mod metrics;
/// SELECT: plans, peeks, finishing, streams.
mod query;
/// What a transaction has read.
pub mod read_set;
/// Other names.
mod rename;
/// SHOW.
mod show;
/// Rows in order, in bounded memory.
mod sorter;
/// CREATE SOURCE, CREATE CONNECTION.
mod source_ddl;
/// SUBSCRIBE: from updates to rows.
mod subscribe;
/// System relations in a query.
mod system;
/// BEGIN, COMMIT, ROLLBACK, savepoints, what a transaction has read and written.
mod transaction;
/// CREATE and ALTER of types and domains.
mod type_ddl;
/// Statements that write, part by part.
mod work;
/// INSERT, UPDATE, DELETE, MERGE, TRUNCATE.
mod write;

use crate::activity::{self, Backend};
use crate::client::{Notice, Prepared, PreparedSeen, Response, Startup, Statement, TransactionStatus};
use crate::coordinator::request::Request;
use crate::planner::{session_ctx, Handle, SessionCatalog, DATABASE};
use crate::settings::Settings;
use crate::Shared;
use cursor::Cursor;
use expr::{EvalCtx, Interrupt, Why};
use repr::error::state;
use repr::{RelDesc, SqlError, SqlType, Value};
use sql::plan::Plan;
use sql::ParsedStatement;
use std::collections::{BTreeMap, HashMap};
use std::future::Future;
use std::sync::atomic::Ordering;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;
use transaction::Transaction;

/// A session: one at a time uses it. Dropping it releases everything it holds.
pub struct Session {
    pub(crate) shared: Arc<Shared>,
    user: String,
    pid: i32,
    cancel: Arc<Cancel>,
    backend: Arc<Backend>,
    settings: Settings,
    /// What the client was last told of each reported setting.
    told: BTreeMap<String, String>,
    notices: Vec<Notice>,
    txn: Transaction,
    prepared: HashMap<String, Prepared>,
    cursors: HashMap<String, Cursor>,
    /// Cursors that were ever declared.
    cursors_declared: u64,
    /// Statements since the last sync that are not the last: they share one implicit transaction.
    last_in_batch: bool,
    /// When the statement in hand must have ended.
    deadline: Option<Instant>,
    /// What the statement in hand holds counts here, if there is a limit.
    holder: Option<repr::memory::Holder>,
    xact_locks: advisory::XactLocks,
    /// After `setseed`.
    random: Option<Arc<expr::Random>>,
    temp_schema: Option<String>,
    /// What the session has got from sequences.
    sequences: crate::sequences::Access,
    /// The shared catalog as the statement in hand sees it from its planning to its end: what others commit meanwhile is found at its commit.
    pinned: Option<Arc<crate::catalog::Catalog>>,
    /// The catalog with the open transaction's changes, made on the shared one of this version.
    overlay: parking_lot::Mutex<Option<(u64, Arc<crate::catalog::Catalog>)>>,
}

/// Set by a cancel request; looked at wherever the session waits.
#[derive(Default)]
pub struct Cancel {
    /// Of the statement in hand.
    statement: parking_lot::Mutex<Interrupt>,
    notify: tokio::sync::Notify,
}

impl Cancel {
    pub fn cancel(&self) {
        self.statement().set(Why::Asked);
        self.wake();
    }
    /// Whoever waits looks at the interrupt.
    pub(crate) fn wake(&self) {
        self.notify.notify_waiters();
    }
    /// What the statement in hand evaluates under.
    fn statement(&self) -> Interrupt {
        self.statement.lock().clone()
    }
    /// Another statement begins: what is left of the one before keeps its own.
    fn next_statement(&self) -> Interrupt {
        let mut statement = self.statement.lock();
        *statement = Interrupt::default();
        statement.clone()
    }
    /// Returns once the statement is cancelled, with the reason.
    pub async fn cancelled(&self) -> SqlError {
        loop {
            let notified = self.notify.notified();
            if let Err(e) = self.statement().check() {
                return e;
            }
            notified.await;
        }
    }
}

/// A client was told of a prepared statement's columns once: what it gets later must be the same.
/// Errors: 0A000 where the relations behind it have changed.
fn same_result(prepared: &Prepared, response: &Response) -> Result<(), SqlError> {
    match (response, &prepared.result) {
        (Response::Rows { desc, .. }, Some(told)) => same_columns(told, desc),
        _ => Ok(()),
    }
}

fn same_columns(told: &RelDesc, desc: &RelDesc) -> Result<(), SqlError> {
    let types = |d: &RelDesc| d.types.iter().map(|t| (t.ty.clone(), t.typmod)).collect::<Vec<_>>();
    match told.names == desc.names && types(told) == types(desc) {
        true => Ok(()),
        false => Err(SqlError::new(state::FEATURE_NOT_SUPPORTED, crate::PLAN_CHANGED).with_hint("prepare the statement again")),
    }
}

/// Waits for `f` unless the statement is cancelled or its time is over.
pub(crate) async fn guarded<T>(cancel: &Cancel, deadline: Option<Instant>, f: impl Future<Output = T>) -> Result<T, SqlError> {
    // Something may be ready each time.
    cancel.statement().check()?;
    let timeout = async {
        match deadline {
            Some(d) => tokio::time::sleep_until(d).await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        biased;
        r = f => Ok(r),
        e = cancel.cancelled() => Err(e),
        () = timeout => Err(SqlError::timed_out()),
    }
}

/// Microseconds since 2000-01-01, from the wall clock.
pub(crate) fn now_micros() -> i64 {
    const UNIX_TO_2000_SECS: i64 = 946_684_800;
    let since_1970 = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |d| d.as_micros() as i64);
    since_1970 - UNIX_TO_2000_SECS * 1_000_000
}

impl Session {
    pub(crate) fn open(shared: Arc<Shared>, startup: Startup) -> Result<Session, SqlError> {
        if startup.database != DATABASE && startup.database != startup.user {
            let e = SqlError::new(state::INVALID_CATALOG_NAME, format!("database \"{}\" does not exist", startup.database));
            return Err(e.with_hint(format!("there is one database, \"{DATABASE}\"")));
        }
        let mut settings = Settings::default();
        settings.force("session_authorization", &startup.user);
        for (name, value) in &startup.params {
            match name.as_str() {
                "options" => {
                    for (n, v) in parse_options(value)? {
                        settings.set_at_startup(&n, &v)?;
                    }
                }
                "replication" => {
                    if !matches!(value.as_str(), "false" | "off" | "no" | "0") {
                        return Err(SqlError::unsupported("replication connections", "connect without the replication parameter"));
                    }
                }
                n if n.starts_with("_pq_.") => {}
                n => settings.set_at_startup(n, value)?,
            }
        }
        let application = settings.get("application_name").unwrap_or_default();
        let backend = shared.backends.add(&startup.user, startup.peer, application, now_micros());
        shared.metrics.sessions.inc();
        let told = settings.reported().into_iter().collect();
        let sequences = crate::sequences::Access { sequences: shared.sequences.clone(), got: Default::default() };
        Ok(Session {
            shared,
            sequences,
            user: startup.user,
            pid: backend.pid,
            cancel: backend.cancel.clone(),
            backend,
            settings,
            told,
            notices: Vec::new(),
            txn: Transaction::None,
            prepared: HashMap::new(),
            cursors: HashMap::new(),
            cursors_declared: 0,
            last_in_batch: false,
            pinned: None,
            deadline: None,
            holder: None,
            xact_locks: Vec::new(),
            random: None,
            temp_schema: None,
            overlay: Default::default(),
        })
    }

    /// (pid, secret) for BackendKeyData.
    pub fn backend_key(&self) -> (i32, i32) {
        self.backend.key()
    }

    /// All reported parameters, for the start; afterwards `take_changed_parameters`.
    pub fn parameters(&self) -> Vec<(String, String)> {
        self.settings.reported()
    }

    pub fn take_changed_parameters(&mut self) -> Vec<(String, String)> {
        let now: BTreeMap<String, String> = self.settings.reported().into_iter().collect();
        let changed = now.iter().filter(|(k, v)| self.told.get(*k) != Some(v)).map(|(k, v)| (k.clone(), v.clone())).collect();
        self.told = now;
        changed
    }

    pub fn take_notices(&mut self) -> Vec<Notice> {
        std::mem::take(&mut self.notices)
    }

    fn notice(&mut self, severity: &'static str, error: SqlError) {
        // The client is always told what INFO says.
        const LEVELS: [&str; 6] = ["DEBUG", "LOG", "NOTICE", "WARNING", "ERROR", "INFO"];
        let wanted = self.settings.get("client_min_messages").unwrap_or_default().to_uppercase();
        let wanted = LEVELS.iter().position(|l| wanted.starts_with(l)).unwrap_or(0);
        if LEVELS.iter().position(|l| *l == severity).is_none_or(|l| l >= wanted) {
            self.notices.push(Notice { severity, error });
        }
    }

    pub fn transaction_status(&self) -> TransactionStatus {
        self.txn.status()
    }

    /// Settings that value text depends on (TimeZone, DateStyle, IntervalStyle, bytea_output, extra_float_digits).
    pub fn text_context(&self) -> EvalCtx {
        session_ctx(&self.settings, &self.catalog(), self.handle(), now_micros(), now_micros())
    }

    /// What functions of the session's statements reach beside the catalog.
    fn handle(&self) -> Handle<'_> {
        let backends = activity::Access { all: self.shared.backends.clone(), own: self.backend.clone() };
        Handle { user: &self.user, sequences: self.sequences.clone(), temp_schema: self.temp_schema.as_deref(), backends }
    }

    /// The session as others see it; its `end` is set when it is to end.
    pub fn backend(&self) -> Arc<Backend> {
        self.backend.clone()
    }

    /// The answer is out, and the client is awaited.
    pub fn waits(&self) {
        let application = self.settings.get("application_name").unwrap_or_default();
        let xact_start = self.txn.started_micros().map(|t| t.max(self.backend.started));
        self.backend.waits(self.txn.status(), application, xact_start, now_micros());
    }

    /// How long the session may idle in its present state before it is ended with 25P03: `None` is for ever.
    pub fn idle_timeout(&self) -> Option<Duration> {
        if self.txn.has_written() {
            self.settings.idle_in_transaction_timeout()
        } else {
            None
        }
    }

    /// Splits and parses a query string. An empty string gives no statement.
    pub fn parse(&self, sql: &str) -> Result<Vec<Statement>, SqlError> {
        Ok(sql::parse(sql)?.into_iter().map(|p| Statement { text: p.text.clone(), ast: Arc::new(p) }).collect())
    }

    /// Resolves a statement's parameter and result types. `params`: types the client fixed (`None`: infer).
    pub async fn prepare(&mut self, statement: Option<Statement>, params: Vec<Option<SqlType>>) -> Result<Prepared, SqlError> {
        let Some(statement) = statement else {
            return Ok(Prepared { statement: None, params: vec![], result: None, seen: Default::default(), origins: vec![], made_for: vec![] });
        };
        let parsed = parsed(&statement)?;
        if self.txn.is_failed() && !transaction::ends(parsed) {
            return Err(transaction::in_failed_block());
        }
        self.check_before_names(&parsed.statement)?;
        let cut = parsed.notices.clone();
        cut.into_iter().for_each(|n| self.notice("NOTICE", n));
        let described = sql::plan::describe(parsed, &self.names(), &params)?;
        let result = match self.known_result(parsed) {
            Some(desc) => Some(desc),
            None => described.result,
        };
        let catalog = self.catalog();
        // A column of a view is the view's own, not the one below it.
        let through_view = described.depends_on.iter().filter_map(|id| catalog.item(*id)).any(|i| matches!(i.kind, crate::catalog::ItemKind::View { .. }));
        let origin =
            |o: &Option<(repr::GlobalId, usize)>| o.and_then(|(id, c)| Some((u32::try_from(id.0).ok()?, i16::try_from(c + 1).ok()?))).unwrap_or((0, 0));
        let origins = if through_view { vec![] } else { described.origins.iter().map(origin).collect() };
        let seen = PreparedSeen { at: now_micros(), ..PreparedSeen::default() };
        let made_for = described.depends_on.into_iter().filter(|id| catalog.item(*id).is_some()).collect();
        Ok(Prepared { statement: Some(statement), params: described.params, result, seen, origins, made_for })
    }

    /// Whether a prepared statement still has the result that it was made with. Errors: 0A000 if it has other columns, and those of preparing it again.
    pub fn check_result(&self, prepared: &Prepared) -> Result<(), SqlError> {
        let (Some(statement), Some(told)) = (&prepared.statement, &prepared.result) else { return Ok(()) };
        let catalog = self.catalog();
        if prepared.made_for.iter().all(|id| catalog.item(*id).is_some()) {
            return Ok(());
        }
        let parsed = parsed(statement)?;
        if self.txn.is_failed() && !transaction::ends(parsed) {
            return Err(transaction::in_failed_block());
        }
        let types: Vec<Option<SqlType>> = prepared.params.iter().cloned().map(Some).collect();
        match sql::plan::describe(parsed, &self.names(), &types)?.result {
            Some(desc) => same_columns(told, &desc),
            None => Ok(()),
        }
    }

    /// The result columns of EXECUTE and FETCH, which only the session knows.
    fn known_result(&self, parsed: &ParsedStatement) -> Option<RelDesc> {
        match &parsed.statement {
            sql::ast::Statement::Execute { name, .. } => self.prepared.get(&name.name).and_then(|p| p.result.clone()),
            sql::ast::Statement::Fetch(f) if !f.is_move => self.cursors.get(&f.name.name).map(|c| c.desc().clone()),
            _ => None,
        }
    }

    /// The columns of an open cursor: cursors and protocol-level portals share a namespace.
    pub fn cursor_columns(&self, name: &str) -> Option<RelDesc> {
        self.cursors.get(name).map(|c| c.desc().clone())
    }

    /// Protocol-level named statements share the namespace of PREPARE. Errors: 42P05 if a named one exists.
    pub fn set_prepared(&mut self, name: String, prepared: Prepared) -> Result<(), SqlError> {
        if !name.is_empty() && self.prepared.contains_key(&name) {
            return Err(SqlError::new(state::DUPLICATE_PREPARED_STATEMENT, format!("prepared statement \"{name}\" already exists")));
        }
        self.prepared.insert(name, prepared);
        Ok(())
    }

    /// Errors: 26000.
    pub fn get_prepared(&self, name: &str) -> Result<Prepared, SqlError> {
        self.prepared.get(name).cloned().ok_or_else(|| {
            let what =
                if name.is_empty() { "unnamed prepared statement does not exist".into() } else { format!("prepared statement \"{name}\" does not exist") };
            SqlError::new(state::INVALID_SQL_STATEMENT_NAME, what)
        })
    }

    pub fn remove_prepared(&mut self, name: &str) {
        self.prepared.remove(name);
    }

    /// The next statement is the last before a sync: outside a block it commits by itself, and is run again on a conflict.
    pub fn expect_sync(&mut self) {
        self.last_in_batch = true;
    }

    /// Executes. Statements outside a block run in an implicit transaction that [`Session::sync`] ends: call it at the
    /// end of a simple query string and at Sync.
    /// Errors: any; the transaction, if one is open, is failed then. 25P02 in a failed block.
    pub async fn execute(&mut self, prepared: &Prepared, params: Vec<Value>) -> Result<Response, SqlError> {
        let last = std::mem::take(&mut self.last_in_batch);
        let interrupt = self.cancel.next_statement();
        let shared = self.shared.clone();
        let statement = shared.guard.statement(&self.cancel, &interrupt);
        self.holder = statement.as_ref().map(|s| s.holder());
        self.deadline = self.settings.statement_timeout().map(|d| Instant::now() + d);
        // What the session itself evaluates is ended from beside it.
        let timer = self.deadline.map(|d| {
            tokio::spawn(async move {
                tokio::time::sleep_until(d).await;
                interrupt.set(Why::TimedOut);
            })
        });
        self.shared.metrics.statements.inc();
        let started = std::time::Instant::now();
        let work = self.execute_inner(prepared, params, last);
        let result = match &statement {
            Some(s) => s.counts(work).await,
            None => work.await,
        };
        self.holder = None;
        self.pinned = None;
        if let Some(t) = timer {
            t.abort();
        }
        self.shared.metrics.statement_seconds.observe(started.elapsed().as_secs_f64());
        if result.is_err() {
            self.shared.metrics.errors.inc();
            self.txn.fail();
        }
        result
    }

    async fn execute_inner(&mut self, prepared: &Prepared, params: Vec<Value>, last: bool) -> Result<Response, SqlError> {
        let Some(statement) = &prepared.statement else { return Ok(Response::Empty) };
        let parsed = parsed(statement)?;
        if self.txn.is_failed() && !transaction::ends(parsed) {
            return Err(transaction::in_failed_block());
        }
        self.check_before_names(&parsed.statement)?;
        prepared.seen.runs.fetch_add(1, Ordering::Relaxed);
        let typed: Vec<(Value, SqlType)> = params.into_iter().zip(prepared.params.iter().cloned()).collect();
        self.txn.begin_implicit(now_micros());
        let application = self.settings.get("application_name").unwrap_or_default();
        self.backend.runs(&statement.text, application, self.txn.started_micros(), now_micros());
        let autocommit = last && self.txn.is_implicit_and_fresh();
        let (mut attempts, notices) = (0, self.notices.len());
        loop {
            self.pinned = Some(self.shared.catalog());
            self.notices.truncate(notices);
            let plan = {
                let names = self.names();
                tokio::task::block_in_place(|| sql::plan::plan(parsed, &names, &typed))?
            };
            let is_write = transaction::writes(&plan);
            let response = match Box::pin(self.run(plan)).await {
                // Another session has dropped or altered what the plan was made for: its name may mean something new.
                Err(e) if autocommit && crate::is_vanished(&e) && attempts < 10 => {
                    attempts += 1;
                    self.rollback();
                    self.txn.begin_implicit(now_micros());
                    continue;
                }
                // Rows came to refer to what the statement has taken away: it is run again, over what is there now.
                Err(e) if autocommit && is_write && e.code == state::SERIALIZATION_FAILURE && attempts < 1_000 => {
                    attempts += 1;
                    self.rollback();
                    self.txn.begin_implicit(now_micros());
                    continue;
                }
                r => r?,
            };
            same_result(prepared, &response)?;
            if !(autocommit && is_write) {
                return Ok(response);
            }
            match self.commit().await {
                Ok(()) => return Ok(response),
                // Nothing was sent yet: the statement is simply run again.
                Err(e) if e.code == state::SERIALIZATION_FAILURE && attempts < 1_000 => {
                    attempts += 1;
                    self.check_interrupt()?;
                    self.txn.begin_implicit(now_micros());
                }
                Err(e) => return Err(e),
            }
        }
    }

    /// Ends the implicit transaction, if there is one: commits it, or rolls back if it failed.
    pub async fn sync(&mut self) -> Result<(), SqlError> {
        self.last_in_batch = false;
        if !self.txn.is_implicit() {
            return Ok(());
        }
        if self.txn.is_failed() {
            self.rollback();
            return Ok(());
        }
        self.commit().await
    }

    /// An error arose outside [`Session::execute`] (a parameter that does not decode, a row stream, the protocol): the open
    /// transaction, explicit or implicit, is failed.
    pub fn fail(&mut self) {
        self.txn.fail();
    }

    /// Errors: that of a statement that was cancelled, or has no time or memory left.
    fn check_interrupt(&self) -> Result<(), SqlError> {
        self.cancel.statement().check()
    }

    /// The catalog as a statement sees it.
    pub(crate) fn names(&self) -> SessionCatalog<'_> {
        let catalog = self.catalog();
        let now = self.txn.started_micros().unwrap_or_else(now_micros);
        let mut ctx = session_ctx(&self.settings, &catalog, self.handle(), now, now_micros());
        ctx.random = self.random.clone();
        ctx.interrupt = self.cancel.statement();
        SessionCatalog {
            catalog,
            planner: &self.shared.planner,
            search_path: self.settings.search_path(),
            temp_schema: self.temp_schema.clone(),
            opaque: None,
            ctx,
        }
    }

    /// Carries out a plan.
    async fn run(&mut self, plan: Plan) -> Result<Response, SqlError> {
        self.check_allowed(&plan)?;
        if let (Some(o), true) = (self.txn.open(), transaction::queries(&plan)) {
            o.queried = true;
        }
        match plan {
            Plan::Select(p) => self.select(*p).await,
            Plan::Subscribe(p) => self.subscribe(*p).await,
            Plan::Insert(_) | Plan::Update(_) | Plan::Delete(_) | Plan::Merge(_) | Plan::With(_) => self.write_statement(plan).await,
            Plan::Truncate { tables, restart_identity, cascade } => self.truncate(tables, restart_identity, cascade).await,
            Plan::SetConstraints { names, deferred } => self.set_constraints(names, deferred).await,
            Plan::CopyTo(p) => self.copy_to(*p).await,
            Plan::CopyFrom(p) => self.copy_from(*p).await,
            Plan::Begin(tag, modes) => self.begin(tag, &modes),
            Plan::SetTransaction { session, modes } => self.set_transaction(session, &modes),
            Plan::Commit { chain } => self.commit_statement(chain).await,
            Plan::Rollback { chain } => self.rollback_statement(chain),
            Plan::PrepareTransaction => self.prepare_transaction(),
            Plan::Savepoint(name) => self.savepoint(name),
            Plan::ReleaseSavepoint(name) => self.release_savepoint(&name),
            Plan::RollbackTo(name) => self.rollback_to(&name),
            Plan::SetVariable { local, name, value } => self.set_variable(local, &name, value.as_deref()),
            Plan::ResetVariable(name) => self.set_variable(false, &name, None).map(|_| Response::Tag("RESET".into())),
            Plan::ResetAll => {
                self.settings.reset_all();
                Ok(Response::Tag("RESET".into()))
            }
            Plan::Discard(kind) => self.discard(kind).await,
            Plan::ShowVariable(name) => self.show_variable(&name),
            Plan::ShowAll => Ok(self.show_all()),
            Plan::Show(p) => self.show(p).await,
            Plan::ShowCreate { object, .. } => self.show_create(&object),
            Plan::Prepare { text, name, types, statement } => self.prepare_statement(text, name, types, statement).await,
            Plan::Execute { name, args } => self.execute_prepared(&name, args).await,
            Plan::CreateTableExecute { create, args } => self.create_table_execute(*create, args).await,
            Plan::Deallocate(name) => self.deallocate(name.as_deref()),
            Plan::Declare { text, name, hold, scroll, binary, query } => {
                self.declare_statement(name, cursor::Declared { text, hold, scroll, binary }, *query).await
            }
            Plan::Fetch { name, direction, is_move, timeout_micros } => self.fetch(&name, direction, is_move, timeout_micros).await,
            Plan::Lock => self.lock_table(),
            Plan::Do(block) => self.run_block(&block).await,
            Plan::Close(name) => self.close(name.as_deref()),
            Plan::Explain(p) => self.explain(*p).await,
            Plan::Nothing { tag, notice } => {
                if let Some(n) = notice {
                    self.notice("NOTICE", n);
                }
                Ok(Response::Tag(tag.into()))
            }
            ddl => self.ddl(ddl).await,
        }
    }

    async fn prepare_statement(&mut self, text: String, name: String, types: Vec<Option<SqlType>>, statement: ParsedStatement) -> Result<Response, SqlError> {
        let statement = Statement { text: statement.text.clone(), ast: Arc::new(statement) };
        let mut prepared = self.prepare(Some(statement), types).await?;
        prepared.seen.from_sql = Some(text);
        self.set_prepared(name, prepared)?;
        Ok(Response::Tag("PREPARE".into()))
    }

    async fn execute_prepared(&mut self, name: &str, args: Vec<sql::HirScalar>) -> Result<Response, SqlError> {
        let (prepared, typed) = self.prepared_with(name, args)?;
        let Some(statement) = &prepared.statement else { return Ok(Response::Empty) };
        prepared.seen.runs.fetch_add(1, Ordering::Relaxed);
        let plan = sql::plan::plan(parsed(statement)?, &self.names(), &typed)?;
        let response = Box::pin(self.run(plan)).await?;
        same_result(&prepared, &response)?;
        Ok(response)
    }

    /// What a prepared statement does with these arguments.
    fn prepared_plan(&self, name: &str, args: Vec<sql::HirScalar>) -> Result<Plan, SqlError> {
        let (prepared, typed) = self.prepared_with(name, args)?;
        let statement = prepared.statement.as_ref().ok_or_else(|| SqlError::unsupported("EXPLAIN of nothing", "prepare a statement"))?;
        sql::plan::plan(parsed(statement)?, &self.names(), &typed)
    }

    /// CREATE TABLE AS EXECUTE: as if the prepared query stood there.
    async fn create_table_execute(&mut self, create: sql::ast::CreateTableAs<String>, args: Vec<sql::HirScalar>) -> Result<Response, SqlError> {
        let (prepared, typed) = self.prepared_with(&create.query, args)?;
        let not_a_query = || SqlError::new(state::WRONG_OBJECT_TYPE, "prepared statement is not a SELECT");
        let statement = parsed(prepared.statement.as_ref().ok_or_else(not_a_query)?)?;
        let sql::ast::Statement::Select(query) = &statement.statement else { return Err(not_a_query()) };
        let sql::ast::CreateTableAs { name, if_not_exists, columns, with_data, on_commit, .. } = create;
        let create = sql::ast::CreateTableAs { name, if_not_exists, columns, query: query.clone(), with_data, on_commit };
        let whole = ParsedStatement { statement: sql::ast::Statement::CreateTableAs(Box::new(create)), notices: Vec::new(), ..statement.clone() };
        let plan = sql::plan::plan(&whole, &self.names(), &typed)?;
        Box::pin(self.run(plan)).await
    }

    /// A prepared statement, and its arguments as values of its parameters' types.
    #[allow(clippy::type_complexity)]
    fn prepared_with(&self, name: &str, args: Vec<sql::HirScalar>) -> Result<(Prepared, Vec<(Value, SqlType)>), SqlError> {
        let prepared = self.get_prepared(name)?;
        if args.len() != prepared.params.len() {
            let e = SqlError::new(state::SYNTAX_ERROR, format!("wrong number of parameters for prepared statement \"{name}\""));
            return Err(e.with_detail(format!("Expected {} parameters but got {}.", prepared.params.len(), args.len())));
        }
        let names = self.names();
        let mut typed = Vec::new();
        for (arg, ty) in args.into_iter().zip(&prepared.params) {
            let cast = sql::plan::coerce_argument(arg, ty, typed.len() + 1, &names)?;
            typed.push((query::constant(cast, &names.ctx)?, ty.clone()));
        }
        Ok((prepared, typed))
    }

    fn deallocate(&mut self, name: Option<&str>) -> Result<Response, SqlError> {
        match name {
            None => {
                self.prepared.clear();
                Ok(Response::Tag("DEALLOCATE ALL".into()))
            }
            Some(n) => {
                self.get_prepared(n)?;
                self.prepared.remove(n);
                Ok(Response::Tag("DEALLOCATE".into()))
            }
        }
    }

    fn set_variable(&mut self, local: bool, name: &str, value: Option<&str>) -> Result<Response, SqlError> {
        if local && !self.txn.in_block() {
            self.notice("WARNING", SqlError::new(state::NO_ACTIVE_SQL_TRANSACTION, "SET LOCAL can only be used in transaction blocks"));
        }
        if self.txn.in_block() && name.eq_ignore_ascii_case("transaction_read_only") {
            let mut checked = self.settings.clone();
            checked.set(name, value, true)?;
            let mode = if checked.get(name)? == "on" { sql::ast::TransactionMode::ReadOnly } else { sql::ast::TransactionMode::ReadWrite };
            return self.set_transaction(false, &[mode]);
        }
        self.settings.set(name, value, local)?;
        Ok(Response::Tag("SET".into()))
    }

    async fn discard(&mut self, kind: sql::ast::DiscardKind) -> Result<Response, SqlError> {
        use sql::ast::DiscardKind;
        let tag = match kind {
            DiscardKind::All => {
                if self.txn.in_block() {
                    return Err(SqlError::new(state::ACTIVE_SQL_TRANSACTION, "DISCARD ALL cannot run inside a transaction block"));
                }
                self.cursors.clear();
                self.prepared.clear();
                self.settings.reset_all();
                self.drop_temp()?;
                *self.sequences.got.lock() = Default::default();
                "DISCARD ALL"
            }
            DiscardKind::Plans => "DISCARD PLANS",
            DiscardKind::Sequences => {
                *self.sequences.got.lock() = Default::default();
                "DISCARD SEQUENCES"
            }
            DiscardKind::Temp => {
                self.drop_temp()?;
                "DISCARD TEMP"
            }
        };
        Ok(Response::Tag(tag.into()))
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.shared.backends.remove(self.pid);
        self.shared.metrics.sessions.dec();
        self.cancel.cancel();
        self.shared.locks.end(self.pid);
        let (at, ddl) = self.txn.release();
        if let Some(at) = at {
            let _ = self.shared.send(Request::ReleaseHold(at));
        }
        self.forget_ddl(&ddl);
        self.drop_temp_in_background();
    }
}

/// The parsed form that [`Session::parse`] put into a statement.
pub(crate) fn parsed(statement: &Statement) -> Result<&ParsedStatement, SqlError> {
    statement.ast.downcast_ref::<ParsedStatement>().ok_or_else(|| SqlError::internal("a statement that was not parsed here"))
}

/// `-c name=value` and `--name=value` of the startup parameter `options`.
fn parse_options(text: &str) -> Result<Vec<(String, String)>, SqlError> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => word.extend(chars.next()),
            c if c.is_whitespace() => {
                if !word.is_empty() {
                    words.push(std::mem::take(&mut word));
                }
            }
            c => word.push(c),
        }
    }
    if !word.is_empty() {
        words.push(word);
    }
    let bad = || SqlError::new(state::SYNTAX_ERROR, format!("invalid command-line argument for server process: {text}"));
    let mut out = Vec::new();
    let mut it = words.into_iter();
    while let Some(w) = it.next() {
        let pair = if w == "-c" {
            it.next().ok_or_else(bad)?
        } else if let Some(rest) = w.strip_prefix("-c").or_else(|| w.strip_prefix("--")) {
            rest.to_string()
        } else {
            return Err(bad());
        };
        let (n, v) = pair.split_once('=').ok_or_else(bad)?;
        out.push((n.replace('-', "_"), v.to_string()));
    }
    Ok(out)
}
