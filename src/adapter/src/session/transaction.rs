//! BEGIN, COMMIT, ROLLBACK, savepoints, what a transaction has read and written.
//!
//! A block reads at one time, fixed at its first read and held until its end; its writes are buffered and committed in one
//! tick, where everything it read is checked for changes (DECISIONS 7).

use super::read_set::ReadSet;
use super::{guarded, Response, Session};
use crate::catalog::{Item, ItemKind, OnCommit};
use crate::changes::Changes;
use crate::client::TransactionStatus;
use crate::coordinator::foreign::Constraints;
use crate::coordinator::keys::OwnKeys;
use crate::coordinator::request::{Op, Request, WriteTxn};
use repr::error::state;
use repr::{ColType, Deltas, GlobalId, SqlError, Timestamp};
use sql::ast::{ObjectKind, Statement, TransactionMode};
use sql::plan::{CopySource, Plan, WithItem};
use std::collections::BTreeMap;
use storage::StoreHandle;

/// What a transaction holds in memory of its changes.
const HELD_BYTES_MAX: usize = 64 << 20;

pub enum Transaction {
    None,
    Open(Open),
}

/// A transaction under way.
#[derive(Default)]
pub struct Open {
    pub explicit: bool,
    pub failed: bool,
    pub read_only: bool,
    /// A statement ran before which isolation and access are to be set.
    pub queried: bool,
    /// Wall clock at its start, for now().
    pub started_micros: i64,
    /// The first time an implicit transaction read at: what it read must still hold when it commits.
    pub validate_from: Option<Timestamp>,
    /// The time it reads at, held.
    pub read_at: Option<Timestamp>,
    pub read_set: ReadSet,
    /// Changes by table, in order. Those that were staged together stand in the first of them.
    pub writes: Vec<(GlobalId, Changes)>,
    /// Bytes of them that are in memory.
    pub held_bytes: usize,
    /// What they do to the keys of tables that have any; made anew from them where it is missing.
    pub keys: BTreeMap<GlobalId, OwnKeys>,
    /// Foreign keys for which CASCADE and its like have changed rows.
    pub acted: Constraints,
    /// SET CONSTRAINTS so far: names (None: ALL), and whether they wait for the commit.
    pub deferral: Vec<(Option<Vec<String>>, bool)>,
    /// Changes to the catalog, in order.
    pub ddl: Vec<Op>,
    /// The version of the catalog that each was planned on.
    pub ddl_bases: Vec<u64>,
    pub savepoints: Vec<Savepoint>,
    /// What AND CHAIN has begun it with.
    pub chained: Option<NextInChain>,
    /// Catalog changes were made from what was read: it must still hold.
    pub rewrites: bool,
    /// A statement ran that cannot share a transaction with writes.
    pub statements: usize,
}

/// What AND CHAIN hands on.
#[derive(Clone)]
pub struct NextInChain {
    read_only: bool,
    isolation: String,
    deferrable: String,
}

/// Where ROLLBACK TO goes back to: how much of everything there was.
pub struct Savepoint {
    name: String,
    writes: usize,
    ddl: usize,
    deferral: usize,
    /// Cursors that the session had ever declared.
    cursors: u64,
    settings: usize,
    locks: usize,
    read_only: bool,
}

/// Whether a statement takes a snapshot in PostgreSQL: all but those of transactions, settings and cursors' moves.
pub fn queries(plan: &Plan) -> bool {
    !matches!(
        plan,
        Plan::Begin(..)
            | Plan::SetTransaction { .. }
            | Plan::Commit { .. }
            | Plan::Rollback { .. }
            | Plan::Savepoint(_)
            | Plan::ReleaseSavepoint(_)
            | Plan::RollbackTo(_)
            | Plan::SetVariable { .. }
            | Plan::ResetVariable(_)
            | Plan::ResetAll
            | Plan::ShowVariable(_)
            | Plan::ShowAll
            | Plan::SetConstraints { .. }
            | Plan::Fetch { .. }
            | Plan::Lock
    )
}

/// Whether a statement may run in a failed block.
pub fn ends(parsed: &sql::ParsedStatement) -> bool {
    matches!(parsed.statement, Statement::Commit { .. } | Statement::Rollback { .. } | Statement::RollbackTo(_) | Statement::PrepareTransaction)
}

pub fn in_failed_block() -> SqlError {
    SqlError::new(state::IN_FAILED_SQL_TRANSACTION, "current transaction is aborted, commands ignored until end of transaction block")
}

impl Transaction {
    pub fn open(&mut self) -> Option<&mut Open> {
        match self {
            Transaction::Open(o) => Some(o),
            Transaction::None => None,
        }
    }
    fn get(&self) -> Option<&Open> {
        match self {
            Transaction::Open(o) => Some(o),
            Transaction::None => None,
        }
    }
    pub fn status(&self) -> TransactionStatus {
        match self.get() {
            Some(o) if o.explicit && o.failed => TransactionStatus::Failed,
            Some(o) if o.explicit => TransactionStatus::InBlock,
            _ => TransactionStatus::Idle,
        }
    }
    pub fn in_block(&self) -> bool {
        self.get().is_some_and(|o| o.explicit)
    }
    pub fn is_implicit(&self) -> bool {
        self.get().is_some_and(|o| !o.explicit)
    }
    pub fn is_implicit_and_fresh(&self) -> bool {
        self.get().is_some_and(|o| !o.explicit && o.writes.is_empty() && o.ddl.is_empty() && o.statements == 1)
    }
    pub fn is_failed(&self) -> bool {
        self.get().is_some_and(|o| o.failed)
    }
    pub fn has_written(&self) -> bool {
        self.get().is_some_and(|o| o.explicit && !(o.writes.is_empty() && o.ddl.is_empty()))
    }
    pub fn started_micros(&self) -> Option<i64> {
        self.get().map(|o| o.started_micros)
    }
    pub fn writes(&self) -> &[(GlobalId, Changes)] {
        self.get().map_or(&[], |o| &o.writes)
    }
    pub fn deferral(&self) -> &[(Option<Vec<String>>, bool)] {
        self.get().map_or(&[], |o| &o.deferral)
    }
    /// The time at which a block reads, once it does.
    pub fn read_at(&self) -> Option<Timestamp> {
        self.get().and_then(|o| o.read_at)
    }
    pub fn ddl(&self) -> &[Op] {
        self.get().map_or(&[], |o| &o.ddl)
    }
    pub fn begin_implicit(&mut self, now: i64) {
        match self {
            Transaction::None => *self = Transaction::Open(Open { started_micros: now, statements: 1, ..Open::default() }),
            Transaction::Open(o) => o.statements += 1,
        }
    }
    pub fn fail(&mut self) {
        if let Transaction::Open(o) = self {
            o.failed = true;
            if o.savepoints.is_empty() {
                // Nothing of it will be committed.
                (o.writes, o.held_bytes) = (Vec::new(), 0);
                o.keys.clear();
            }
        }
    }
    /// Forgets everything; returns the held time, which the caller gives back, and the catalog changes that are not to be.
    pub fn release(&mut self) -> (Option<Timestamp>, Vec<Op>) {
        match std::mem::replace(self, Transaction::None) {
            Transaction::Open(o) => (o.read_at, o.ddl),
            Transaction::None => (None, vec![]),
        }
    }
}

impl Session {
    /// Errors: 25006 for writes in a read-only transaction.
    pub(super) fn check_allowed(&self, plan: &Plan) -> Result<(), SqlError> {
        let read_only = self.reads_only();
        self.sequences.got.lock().read_only = read_only;
        if let (true, Some(what)) = (read_only && !self.writes_own(plan), write_verb(plan)) {
            return Err(SqlError::new(state::READ_ONLY_SQL_TRANSACTION, format!("cannot execute {what} in a read-only transaction")));
        }
        if let (Plan::Select(s), true) = (plan, read_only) {
            if let Some(verb) = s.locking {
                return Err(SqlError::new(state::READ_ONLY_SQL_TRANSACTION, format!("cannot execute SELECT {verb} in a read-only transaction")));
            }
        }
        Ok(())
    }

    /// What PostgreSQL refuses before it looks a name up. Errors: 25001 for what stands alone, 25006 for DDL in a read-only transaction.
    pub(super) fn check_before_names(&self, s: &Statement) -> Result<(), SqlError> {
        let alone = match s {
            Statement::CreateIndex(i) if i.concurrently => "CREATE INDEX CONCURRENTLY",
            Statement::Drop(d) if d.concurrently => "DROP INDEX CONCURRENTLY",
            Statement::FinishPrepared { word, .. } => word,
            Statement::Reindex(r) => match r.kind {
                _ if r.concurrently => "REINDEX CONCURRENTLY",
                Some(ObjectKind::Schema) => "REINDEX SCHEMA",
                Some(ObjectKind::Database) => "REINDEX DATABASE",
                None => "REINDEX SYSTEM",
                _ => "",
            },
            _ => "",
        };
        if !alone.is_empty() && self.txn.in_block() {
            return Err(SqlError::new(state::ACTIVE_SQL_TRANSACTION, format!("{alone} cannot run inside a transaction block")));
        }
        let what = match s {
            Statement::Drop(d) => format!("DROP {}", super::ddl::drop_word(d.kind)),
            Statement::Alter(a) => format!("ALTER {}", super::ddl::drop_word(a.kind)),
            Statement::AlterTable(_) => "ALTER TABLE".into(),
            Statement::Comment { .. } => "COMMENT".into(),
            _ => return Ok(()),
        };
        match self.reads_only() {
            true => Err(SqlError::new(state::READ_ONLY_SQL_TRANSACTION, format!("cannot execute {what} in a read-only transaction"))),
            false => Ok(()),
        }
    }

    /// Whether what runs now is in a read-only transaction.
    fn reads_only(&self) -> bool {
        match &self.txn {
            Transaction::Open(o) if o.explicit => o.read_only || self.settings.get("transaction_read_only").is_ok_and(|v| v == "on"),
            _ => self.settings.get("default_transaction_read_only").is_ok_and(|v| v == "on"),
        }
    }

    /// Whether all that the statement writes is the session's own temporary tables, which a read-only transaction may.
    fn writes_own(&self, plan: &Plan) -> bool {
        let catalog = self.catalog();
        let own = |id| catalog.item(id).is_some_and(|i| matches!(&i.kind, ItemKind::Table(t) if t.temporary));
        match plan {
            Plan::Insert(p) => own(p.table),
            Plan::Update(p) => own(p.table),
            Plan::Delete(p) => own(p.table),
            Plan::Merge(p) => own(p.table),
            Plan::CopyFrom(p) => own(p.table),
            Plan::With(w) => {
                let item = |i: &WithItem| !matches!(i, WithItem::Modify { plan, .. } if !self.writes_own(plan));
                w.items.iter().all(item) && (matches!(w.body, Plan::Select(_)) || self.writes_own(&w.body))
            }
            _ => false,
        }
    }

    pub(super) fn begin(&mut self, tag: &str, modes: &[TransactionMode]) -> Result<Response, SqlError> {
        if self.txn.in_block() {
            self.notice("WARNING", SqlError::new(state::ACTIVE_SQL_TRANSACTION, "there is already a transaction in progress"));
        }
        let read_only = self.settings.get("default_transaction_read_only").is_ok_and(|v| v == "on");
        if let Some(o) = self.txn.open() {
            o.explicit = true;
            o.read_only |= read_only;
        }
        if read_only {
            self.settings.set("transaction_read_only", Some("on"), true)?;
        }
        self.apply_modes(modes)?;
        Ok(Response::Tag(tag.into()))
    }

    pub(super) fn set_transaction(&mut self, session: bool, modes: &[TransactionMode]) -> Result<Response, SqlError> {
        if session {
            for m in modes {
                match m {
                    TransactionMode::Isolation(level) => self.settings.set("default_transaction_isolation", Some(level), false)?,
                    TransactionMode::ReadOnly => self.settings.set("default_transaction_read_only", Some("on"), false)?,
                    TransactionMode::ReadWrite => self.settings.set("default_transaction_read_only", Some("off"), false)?,
                    TransactionMode::Deferrable(d) => self.settings.set("default_transaction_deferrable", Some(if *d { "on" } else { "off" }), false)?,
                }
            }
            return Ok(Response::Tag("SET".into()));
        }
        if !self.txn.in_block() {
            self.notice("WARNING", SqlError::new(state::NO_ACTIVE_SQL_TRANSACTION, "SET TRANSACTION can only be used in transaction blocks"));
        }
        self.apply_modes(modes)?;
        Ok(Response::Tag("SET".into()))
    }

    /// Errors: 25001 for what must stand before the block's first query.
    fn apply_modes(&mut self, modes: &[TransactionMode]) -> Result<(), SqlError> {
        let began = self.txn.open().is_some_and(|o| o.queried);
        let late = |what: &str| {
            Err(SqlError::new(
                state::ACTIVE_SQL_TRANSACTION,
                format!("{what} must be {} before any query", if what.starts_with("SET") { "called" } else { "set" }),
            ))
        };
        for m in modes {
            let (setting, value) = match m {
                TransactionMode::Isolation(level) => {
                    if began && !self.settings.get("transaction_isolation")?.eq_ignore_ascii_case(level) {
                        return late("SET TRANSACTION ISOLATION LEVEL");
                    }
                    ("transaction_isolation", level.as_str())
                }
                TransactionMode::ReadOnly => {
                    if let Some(o) = self.txn.open() {
                        o.read_only = true;
                    }
                    ("transaction_read_only", "on")
                }
                TransactionMode::ReadWrite => {
                    if let Some(o) = self.txn.open() {
                        if o.read_only && !o.savepoints.is_empty() {
                            let m = "cannot set transaction read-write mode inside a read-only transaction";
                            return Err(SqlError::new(state::ACTIVE_SQL_TRANSACTION, m));
                        }
                        if o.read_only && began {
                            return late("transaction read-write mode");
                        }
                        o.read_only = false;
                    }
                    ("transaction_read_only", "off")
                }
                TransactionMode::Deferrable(yes) => ("transaction_deferrable", if *yes { "on" } else { "off" }),
            };
            self.settings.set(setting, Some(value), true)?;
        }
        Ok(())
    }

    pub(super) async fn commit_statement(&mut self, chain: bool) -> Result<Response, SqlError> {
        if !self.txn.in_block() {
            if chain {
                return Err(SqlError::new(state::NO_ACTIVE_SQL_TRANSACTION, "COMMIT AND CHAIN can only be used in transaction blocks"));
            }
            self.notice("WARNING", SqlError::new(state::NO_ACTIVE_SQL_TRANSACTION, "there is no transaction in progress"));
            self.commit().await?;
            return Ok(Response::Tag("COMMIT".into()));
        }
        let next = self.next_in_chain(chain);
        if self.txn.is_failed() {
            self.rollback();
            self.chain(next)?;
            return Ok(Response::Tag("ROLLBACK".into()));
        }
        self.commit().await?;
        self.chain(next)?;
        Ok(Response::Tag("COMMIT".into()))
    }

    /// PREPARE TRANSACTION, as where none may be prepared: what it would have kept is undone.
    pub(super) fn prepare_transaction(&mut self) -> Result<Response, SqlError> {
        let open = self.txn.in_block() && !self.txn.is_failed();
        let tag = self.rollback_statement(false)?;
        if !open {
            return Ok(tag);
        }
        let e = SqlError::new(state::OBJECT_NOT_IN_PREREQUISITE_STATE, "prepared transactions are disabled");
        Err(e.with_hint("Set max_prepared_transactions to a nonzero value."))
    }

    pub(super) fn rollback_statement(&mut self, chain: bool) -> Result<Response, SqlError> {
        if !self.txn.in_block() {
            if chain {
                return Err(SqlError::new(state::NO_ACTIVE_SQL_TRANSACTION, "ROLLBACK AND CHAIN can only be used in transaction blocks"));
            }
            self.notice("WARNING", SqlError::new(state::NO_ACTIVE_SQL_TRANSACTION, "there is no transaction in progress"));
        }
        let next = self.next_in_chain(chain);
        self.rollback();
        self.chain(next)?;
        Ok(Response::Tag("ROLLBACK".into()))
    }

    /// What the transaction hands on to the one that AND CHAIN begins: its settings, which may differ from the session's. One that has failed
    /// as a whole has forgotten what it was told, not what it was begun with.
    fn next_in_chain(&mut self, chain: bool) -> Option<NextInChain> {
        let said = |name: &str| self.settings.get(name).unwrap_or_default();
        let now = (said("transaction_isolation"), said("transaction_deferrable"));
        let always = (said("default_transaction_isolation"), said("default_transaction_deferrable"));
        let read_only = said("default_transaction_read_only") == "on";
        let open = self.txn.open().filter(|_| chain)?;
        let ((isolation, deferrable), read_only) = match open.failed && open.savepoints.is_empty() {
            true if open.chained.is_some() => return open.chained.clone(),
            true => (always, read_only),
            false => (now, open.read_only),
        };
        Some(NextInChain { read_only, isolation, deferrable })
    }

    fn chain(&mut self, next: Option<NextInChain>) -> Result<(), SqlError> {
        let Some(next) = next else { return Ok(()) };
        let NextInChain { read_only, isolation, deferrable } = next.clone();
        self.txn.begin_implicit(super::now_micros());
        if let Some(o) = self.txn.open() {
            o.explicit = true;
            o.read_only = read_only;
            o.chained = Some(next);
        }
        self.settings.set("transaction_read_only", Some(if read_only { "on" } else { "off" }), true)?;
        self.settings.set("transaction_deferrable", Some(&deferrable), true)?;
        self.settings.set("transaction_isolation", Some(&isolation), true)
    }

    /// ON COMMIT of temporary tables: rows that the transaction has written go again, or the tables.
    fn end_temporary(&mut self) -> Result<(), SqlError> {
        let Some(schema) = self.temp_schema.clone() else { return Ok(()) };
        if self.txn.writes().is_empty() && self.txn.ddl().is_empty() {
            return Ok(());
        }
        let catalog = self.catalog();
        for item in catalog.items_in(&schema) {
            let ItemKind::Table(table) = &item.kind else { continue };
            match table.on_commit {
                OnCommit::Preserve => {}
                // There were none before.
                OnCommit::Delete => {
                    if let Some(o) = self.txn.open() {
                        o.writes.retain(|w| w.0 != item.id);
                        o.keys.remove(&item.id);
                    }
                }
                OnCommit::Drop => {
                    let ids = catalog.drop_order(&[item.id], true)?;
                    self.apply(vec![Op::Drop { ids }])?;
                }
            }
        }
        Ok(())
    }

    /// Commits what the transaction wrote and ends it. On an error it is rolled back.
    pub(super) async fn commit(&mut self) -> Result<(), SqlError> {
        self.end_temporary()?;
        let Transaction::Open(open) = std::mem::replace(&mut self.txn, Transaction::None) else { return Ok(()) };
        self.pinned = None;
        // What sequences have given out is durable with the transaction that asked.
        let sequences = std::mem::take(&mut self.sequences.got.lock().used);
        let result = if open.writes.is_empty() && open.ddl.is_empty() && !sequences {
            Ok(())
        } else {
            // Changes to the catalog alone do not depend on rows.
            let read_at = open.read_at.or(open.validate_from).filter(|_| !open.writes.is_empty() || open.rewrites);
            let writes = by_table(open.writes);
            let write = WriteTxn { ddl: open.ddl.clone(), ddl_bases: open.ddl_bases, writes, read_set: open.read_set, read_at, acted: open.acted };
            // From here on the commit stands even if the client vanishes: no cancel.
            self.shared.ask(|answer| Request::Write(write, answer)).await.map(|_| ())
        };
        if !open.ddl.is_empty() {
            *self.overlay.lock() = None;
            if result.is_err() {
                self.forget_ddl(&open.ddl);
            }
        }
        if let Some(at) = open.read_at {
            let _ = self.shared.send(Request::ReleaseHold(at));
        }
        self.cursors.retain(|_, c| c.outlives(result.is_ok()));
        self.settings.end_transaction(result.is_ok());
        self.release_xact_locks();
        result
    }

    pub(super) fn rollback(&mut self) {
        self.release_xact_locks();
        self.pinned = None;
        let (at, ddl) = self.txn.release();
        if let Some(at) = at {
            let _ = self.shared.send(Request::ReleaseHold(at));
        }
        if !ddl.is_empty() {
            self.forget_ddl(&ddl);
        }
        self.cursors.retain(|_, c| c.outlives(false));
        self.settings.end_transaction(false);
    }

    /// LOCK TABLE. There is nothing to wait for: a block that writes is validated as if it had been alone with the table, whatever it locked.
    pub(super) fn lock_table(&self) -> Result<Response, SqlError> {
        match self.txn.in_block() {
            true => Ok(Response::Tag("LOCK TABLE".into())),
            false => Err(SqlError::new(state::NO_ACTIVE_SQL_TRANSACTION, "LOCK TABLE can only be used in transaction blocks")),
        }
    }

    pub(super) fn savepoint(&mut self, name: String) -> Result<Response, SqlError> {
        if !self.txn.in_block() {
            return Err(SqlError::new(state::NO_ACTIVE_SQL_TRANSACTION, "SAVEPOINT can only be used in transaction blocks"));
        }
        self.set_savepoint(name);
        Ok(Response::Tag("SAVEPOINT".into()))
    }

    /// Sets a savepoint, which outside a block only the session itself can; its number.
    pub(super) fn set_savepoint(&mut self, name: String) -> usize {
        let (cursors, settings, locks) = (self.cursors_declared, self.settings.changes(), self.xact_locks.len());
        match self.txn.open() {
            Some(o) => {
                let (writes, ddl, deferral, read_only) = (o.writes.len(), o.ddl.len(), o.deferral.len(), o.read_only);
                o.savepoints.push(Savepoint { name, writes, ddl, deferral, cursors, settings, locks, read_only });
                o.savepoints.len() - 1
            }
            None => 0,
        }
    }

    fn find_savepoint(&mut self, name: &str, verb: &str) -> Result<(usize, &mut Open), SqlError> {
        if !self.txn.in_block() {
            return Err(SqlError::new(state::NO_ACTIVE_SQL_TRANSACTION, format!("{verb} can only be used in transaction blocks")));
        }
        let missing = || SqlError::new(repr::SqlState::new("3B001"), format!("savepoint \"{name}\" does not exist"));
        let open = self.txn.open().ok_or_else(missing)?;
        let n = open.savepoints.iter().rposition(|s| s.name == name).ok_or_else(missing)?;
        Ok((n, open))
    }

    pub(super) fn release_savepoint(&mut self, name: &str) -> Result<Response, SqlError> {
        let (n, _) = self.find_savepoint(name, "RELEASE SAVEPOINT")?;
        self.end_savepoint(n)?;
        Ok(Response::Tag("RELEASE".into()))
    }

    /// Forgets savepoint `n` and those after it.
    pub(super) fn end_savepoint(&mut self, n: usize) -> Result<(), SqlError> {
        let Some(open) = self.txn.open().filter(|o| n < o.savepoints.len()) else { return Ok(()) };
        // READ ONLY is the subtransaction's own, unlike other settings.
        let before = open.savepoints[n].read_only;
        let changed = std::mem::replace(&mut open.read_only, before) != before;
        open.savepoints.truncate(n);
        if changed {
            self.settings.set("transaction_read_only", Some(if before { "on" } else { "off" }), true)?;
        }
        Ok(())
    }

    pub(super) fn rollback_to(&mut self, name: &str) -> Result<Response, SqlError> {
        let (n, _) = self.find_savepoint(name, "ROLLBACK TO SAVEPOINT")?;
        self.go_back_to(n);
        Ok(Response::Tag("ROLLBACK".into()))
    }

    /// Undoes what was done since savepoint `n` was set. It stays.
    pub(super) fn go_back_to(&mut self, n: usize) {
        let Some(open) = self.txn.open().filter(|o| n < o.savepoints.len()) else { return };
        let Savepoint { writes, ddl, deferral, cursors, settings, locks, read_only, .. } = open.savepoints[n];
        open.savepoints.truncate(n + 1);
        open.read_only = read_only;
        open.writes.truncate(writes);
        open.held_bytes = open.writes.iter().map(|w| w.1.bytes()).sum();
        open.keys.clear();
        open.deferral.truncate(deferral);
        open.failed = false;
        let undone = open.ddl.split_off(ddl);
        open.ddl_bases.truncate(ddl);
        self.cursors.retain(|_, c| c.serial() <= cursors);
        self.settings.go_back(settings);
        self.release_xact_locks_from(locks);
        if !undone.is_empty() {
            self.forget_ddl(&undone);
        }
    }

    /// The time at which the transaction reads; a block fixes and holds it at its first read, once what that reads is there.
    pub(super) async fn fix_read_time(&mut self, relations: &[GlobalId]) -> Result<Timestamp, SqlError> {
        if let Some(at) = self.txn.open().and_then(|o| o.read_at) {
            return Ok(at);
        }
        let (answer, mut held) = tokio::sync::oneshot::channel();
        self.shared.send(Request::Hold(relations.to_vec(), answer))?;
        let waited = guarded(&self.cancel, self.deadline, &mut held).await;
        if waited.is_err() {
            // It may have come at this very moment.
            held.close();
            if let Ok(Ok(at)) = held.try_recv() {
                self.shared.send(Request::ReleaseHold(at))?;
            }
        }
        let at = waited?.map_err(|_| crate::shutting_down())??;
        match self.txn.open() {
            Some(o) => o.read_at = Some(at),
            None => drop(self.shared.send(Request::ReleaseHold(at))),
        }
        Ok(at)
    }

    /// Notes what the transaction has read (for the check at commit).
    pub(super) fn note_read(&mut self, read: ReadSet) {
        if let Some(o) = self.txn.open() {
            o.read_set.extend(read);
        }
    }

    /// Buffers changes of a statement; in files, once the transaction holds too much. Errors: 53100 or 58030 from the disk.
    pub(super) fn buffer_write(&mut self, item: &Item, deltas: Vec<Deltas>) -> Result<(), SqlError> {
        let store = self.shared.store()?;
        let catalog = self.catalog();
        let Some(o) = self.txn.open() else { return Ok(()) };
        let changes: Changes = deltas.into_iter().filter(|d| !d.is_empty()).collect();
        if changes.is_empty() {
            return Ok(());
        }
        o.held_bytes += changes.bytes();
        o.writes.push((item.id, changes));
        if o.held_bytes >= HELD_BYTES_MAX {
            let types = |id: GlobalId| catalog.item(id).map(|i| i.desc.types.clone());
            tokio::task::block_in_place(|| o.stage(&store, types))?;
        }
        Ok(())
    }
}

/// What several statements have changed, together for each table.
pub(super) fn by_table(writes: Vec<(GlobalId, Changes)>) -> Vec<(GlobalId, Changes)> {
    let mut all: BTreeMap<GlobalId, Changes> = BTreeMap::new();
    writes.into_iter().for_each(|(table, changes)| all.entry(table).or_default().append(changes));
    all.into_iter().collect()
}

impl Open {
    /// Writes the changes held in memory to files. What belongs to a savepoint stays behind it.
    fn stage(&mut self, store: &StoreHandle, types: impl Fn(GlobalId) -> Option<Vec<ColType>>) -> Result<(), SqlError> {
        let mut ends: Vec<usize> = self.savepoints.iter().map(|s| s.writes.min(self.writes.len())).chain([self.writes.len()]).collect();
        ends.dedup();
        let mut from = 0;
        for end in ends {
            let between = &mut self.writes[from..end];
            let mut first: BTreeMap<GlobalId, usize> = BTreeMap::new();
            for i in 0..between.len() {
                let at = *first.entry(between[i].0).or_insert(i);
                if at < i {
                    let more = std::mem::take(&mut between[i].1);
                    between[at].1.append(more);
                }
            }
            for (table, at) in first {
                // Of a table that is gone nothing will be committed.
                if let Some(types) = types(table) {
                    between[at].1.stage(store, table, &types)?;
                }
            }
            from = end;
        }
        self.held_bytes = self.writes.iter().map(|w| w.1.bytes()).sum();
        Ok(())
    }
}

/// Whether the statement may change rows of tables or the catalog: outside a block it commits by itself, and is run again on a conflict.
pub fn writes(plan: &Plan) -> bool {
    match plan {
        Plan::Insert(_) | Plan::Update(_) | Plan::Delete(_) | Plan::Merge(_) | Plan::With(_) => true,
        Plan::Truncate { .. } | Plan::Do(_) => true,
        Plan::Explain(e) => analyzed(e).is_some_and(writes),
        Plan::CopyTo(c) => matches!(c.source, CopySource::Modify(_)),
        other => !ddl_verb(other).is_empty(),
    }
}

/// What EXPLAIN ANALYZE carries out.
fn analyzed(e: &sql::plan::ExplainPlan) -> Option<&Plan> {
    match &e.target {
        sql::plan::ExplainPlanTarget::Plan(plan) => Some(&**plan).filter(|_| e.analyze),
        sql::plan::ExplainPlanTarget::Object(_) => None,
    }
}

/// What an error calls a statement that a read-only transaction may not run.
fn write_verb(plan: &Plan) -> Option<&'static str> {
    Some(match plan {
        Plan::Insert(_) => "INSERT",
        Plan::Update(_) => "UPDATE",
        Plan::Delete(_) => "DELETE",
        Plan::Merge(_) => "MERGE",
        Plan::With(w) if matches!(w.body, Plan::Select(_)) => "SELECT",
        Plan::With(w) => return write_verb(&w.body),
        Plan::CopyTo(c) => match &c.source {
            CopySource::Modify(p) => return write_verb(p),
            _ => return None,
        },
        Plan::Truncate { .. } => "TRUNCATE TABLE",
        Plan::CopyFrom(_) => "COPY FROM",
        Plan::Explain(e) => return analyzed(e).and_then(write_verb),
        other => return Some(ddl_verb(other)).filter(|v| !v.is_empty()),
    })
}

/// What an error calls a statement that changes the catalog; empty for others.
fn ddl_verb(plan: &Plan) -> &'static str {
    match plan {
        Plan::CreateTable(_) | Plan::CreateTableFromSource(_) => "CREATE TABLE",
        Plan::CreateTableAs(_) | Plan::CreateTableExecute { .. } => "CREATE TABLE AS",
        Plan::CreateView(_) => "CREATE VIEW",
        Plan::CreateMaterializedView(_) => "CREATE MATERIALIZED VIEW",
        Plan::CreateIndex(_) => "CREATE INDEX",
        Plan::CreateSchema { .. } => "CREATE SCHEMA",
        Plan::CreateDatabase { .. } => "CREATE DATABASE",
        Plan::CreateType { .. } => "CREATE TYPE",
        Plan::CreateSequence(_) => "CREATE SEQUENCE",
        Plan::AlterSequence(_) => "ALTER SEQUENCE",
        Plan::AlterTable(_) => "ALTER TABLE",
        Plan::CreateSecret { .. } => "CREATE SECRET",
        Plan::CreateConnection(_) => "CREATE CONNECTION",
        Plan::CreateSource(_) => "CREATE SOURCE",
        Plan::CreateSink(_) => "CREATE SINK",
        Plan::CreateSubscription { .. } => "CREATE SUBSCRIPTION",
        Plan::Drop(_) => "DROP",
        Plan::AlterRename { .. }
        | Plan::AlterType(_)
        | Plan::AlterRenameSchema { .. }
        | Plan::AlterRenameColumn { .. }
        | Plan::AlterRenameConstraint { .. }
        | Plan::AlterSetSchema { .. }
        | Plan::AlterOptions { .. }
        | Plan::AlterViewOptions { .. }
        | Plan::AlterViewDefaults { .. }
        | Plan::AlterSecret { .. }
        | Plan::AlterOwner { .. } => "ALTER",
        Plan::Comment { .. } => "COMMENT",
        _ => "",
    }
}
