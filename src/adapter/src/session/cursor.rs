//! DECLARE, FETCH, MOVE, CLOSE.
//!
//! A cursor holds a running query or subscription and the rows that it has received and may be asked for again. FETCH of a query waits for
//! its rows; of a subscription it waits for at least one row (or the timeout) and then takes what is there.
//!
//! ```text
//!   number      1  2  3  4  5  6        rows 1 to 6 have been received
//!               ╰kept╯  ▲               at = 4: the row that the last FETCH ended with; 0 is before the first row
//! ```
//!
//! A SCROLL cursor keeps all rows that it has passed, up to a bound; one that was declared without a word, few; NO SCROLL, the one it
//! stands on. Portals of the protocol are lent to the session while a statement names them.

use super::{guarded, query::rows_response, Response, Session};
use crate::client::{Portal, Prepared, RowStream};
use repr::error::state;
use repr::{RelDesc, SqlError};
use sql::ast::{FetchDirection, Statement};
use sql::plan::Plan;
use std::collections::VecDeque;
use std::time::Duration;
use tokio::time::Instant;

type Row = super::query::Row;

/// Bytes that a SCROLL cursor may keep.
const SCROLL_BYTES_MAX: usize = 1 << 30;
/// Bytes that a cursor of unsaid kind keeps before it forgets what it has passed.
const UNSAID_BYTES_MAX: usize = 1 << 20;
/// What a value takes beside its text.
const VALUE_BYTES: usize = 32;

pub(super) struct Cursor {
    desc: RelDesc,
    stream: RowStream,
    rows: VecDeque<Row>,
    /// The number of the first of `rows`, from 1.
    first: u64,
    /// The number of the row it stands on: 0 before the first, one more than the last after it.
    at: u64,
    bytes: usize,
    keeps: Keeps,
    ended: bool,
    subscription: bool,
    binary: bool,
    held: bool,
    /// What pg_cursors tells of it: the statement, whether it reads backward, and when it was declared, in microseconds since 2000.
    seen: Option<(String, bool, i64)>,
    /// A held cursor outlives its transaction only if that commits.
    committed: bool,
    /// What its query reads.
    reads: Vec<repr::GlobalId>,
    /// Its place in the order in which the session declared cursors.
    serial: u64,
}

/// Which rows it has passed are kept.
#[derive(Clone, Copy, PartialEq)]
enum Keeps {
    All,
    /// All while they are few.
    Few,
    None,
}

impl Cursor {
    pub(super) fn desc(&self) -> &RelDesc {
        &self.desc
    }

    /// Whether it goes on after its transaction, which has committed or not.
    pub(super) fn outlives(&mut self, committed: bool) -> bool {
        self.committed |= committed && self.held;
        self.committed
    }

    /// As pg_cursors shows it; `None`: a portal that was lent.
    pub(super) fn seen(&self, name: &str) -> Option<crate::builtin::SeenCursor> {
        let (statement, scrollable, at) = self.seen.clone()?;
        Some(crate::builtin::SeenCursor { name: name.to_owned(), statement, held: self.held, binary: self.binary, scrollable, at })
    }

    pub(super) fn serial(&self) -> u64 {
        self.serial
    }

    fn last_received(&self) -> u64 {
        self.first + self.rows.len() as u64 - 1
    }

    fn take_in(&mut self, rows: Vec<Row>) {
        if self.keeps != Keeps::None {
            self.bytes += rows.iter().map(bytes_of).sum::<usize>();
        }
        self.rows.extend(rows);
    }

    async fn more(&mut self) -> Result<(), SqlError> {
        match self.stream.next().await {
            Some(rows) => self.take_in(rows?),
            None => self.ended = true,
        }
        Ok(())
    }

    /// Waits until row `target` has come, there are no more, or it is time to stop waiting.
    async fn receive(&mut self, target: u64, until: Option<Instant>) -> Result<(), SqlError> {
        let timer = async move {
            match until {
                Some(t) => tokio::time::sleep_until(t).await,
                None => std::future::pending().await,
            }
        };
        tokio::pin!(timer);
        while !self.ended && self.last_received() < target {
            if self.subscription && self.last_received() > self.at {
                // What has arrived already is taken without waiting.
                match self.stream.receiver.try_recv() {
                    Ok(rows) => self.take_in(rows?),
                    Err(_) => break,
                }
                continue;
            }
            tokio::select! {
                r = self.more() => r?,
                () = &mut timer => break,
            }
            if self.keeps == Keeps::All && self.bytes > SCROLL_BYTES_MAX {
                return Err(SqlError::new(state::PROGRAM_LIMIT_EXCEEDED, format!("a SCROLL cursor keeps at most {SCROLL_BYTES_MAX} bytes of rows"))
                    .with_hint("Declare it with NO SCROLL and read forward."));
            }
        }
        Ok(())
    }

    /// Rows by their numbers, as far as they are kept.
    fn numbered(&self, from: u64, to: u64) -> impl DoubleEndedIterator<Item = &Row> {
        let skip = usize::try_from(from.saturating_sub(self.first)).unwrap_or(usize::MAX).min(self.rows.len());
        let end = usize::try_from((to + 1).saturating_sub(self.first)).unwrap_or(usize::MAX).clamp(skip, self.rows.len());
        self.rows.range(skip..end)
    }

    /// Errors: 55000 if a row from `number` on is not kept.
    fn check_kept(&self, number: u64) -> Result<(), SqlError> {
        let kept = self.keeps != Keeps::None && number.max(1) >= self.first;
        match kept {
            true => Ok(()),
            false => Err(SqlError::new(state::OBJECT_NOT_IN_PREREQUISITE_STATE, "cursor can only scan forward")
                .with_hint("Declare it with SCROLL option to enable backward scan.")),
        }
    }

    async fn fetch(&mut self, direction: FetchDirection, is_move: bool, until: Option<Instant>) -> Result<Vec<Row>, SqlError> {
        use FetchDirection::*;
        let rows = match direction {
            Forward(0) | Backward(0) | Relative(0) => {
                let standing = self.at > 0 && self.at <= self.last_received();
                // The row is read again; MOVE only says whether there is one.
                if !is_move && (standing || matches!(direction, Backward(_))) {
                    self.check_kept(self.at)?;
                }
                self.numbered(self.at, self.at).cloned().collect()
            }
            Forward(n) => self.forward(n, until).await?,
            ForwardAll => self.forward(u64::MAX, until).await?,
            Backward(n) => self.backward(n)?,
            BackwardAll if is_move && self.at == 0 => vec![],
            BackwardAll => self.backward(u64::MAX)?,
            Absolute(n) if n >= 0 => self.go_to(n.unsigned_abs(), until).await?,
            Absolute(n) => {
                self.check_kept(self.at)?;
                self.receive(u64::MAX, until).await?;
                self.go_to((self.last_received() + 1).saturating_sub(n.unsigned_abs()), until).await?
            }
            Relative(n) => {
                let to = self.at.saturating_add_signed(n);
                if n < 0 {
                    self.check_kept(to)?;
                }
                self.go_to(to, until).await?
            }
        };
        self.forget();
        Ok(rows)
    }

    async fn forward(&mut self, count: u64, until: Option<Instant>) -> Result<Vec<Row>, SqlError> {
        let target = self.at.saturating_add(count);
        if self.keeps == Keeps::None {
            return self.take(target, until).await;
        }
        self.receive(target, until).await?;
        let end = target.min(self.last_received());
        let rows = self.numbered(self.at + 1, end).cloned().collect();
        self.at = if target > end && self.ended { end + 1 } else { end.max(self.at) };
        Ok(rows)
    }

    /// As `forward` where nothing is kept but the last row.
    async fn take(&mut self, target: u64, until: Option<Instant>) -> Result<Vec<Row>, SqlError> {
        self.receive(target, until).await?;
        let end = target.min(self.last_received());
        let passed = usize::try_from((self.at + 1).saturating_sub(self.first)).unwrap_or(usize::MAX).min(self.rows.len());
        self.rows.drain(..passed);
        self.first += passed as u64;
        let n = usize::try_from((end + 1).saturating_sub(self.first)).unwrap_or(usize::MAX).min(self.rows.len());
        let rows: Vec<Row> = self.rows.drain(..n).collect();
        self.first += n as u64;
        if let Some(last) = rows.last() {
            self.rows.push_front(last.clone());
            self.first -= 1;
        }
        self.at = if target > end && self.ended { end + 1 } else { end.max(self.at) };
        Ok(rows)
    }

    fn backward(&mut self, count: u64) -> Result<Vec<Row>, SqlError> {
        let to = self.at.saturating_sub(count);
        // One that goes forward alone is not told to go back, also where nothing lies there.
        self.check_kept(to)?;
        if self.at == 0 {
            return Ok(vec![]);
        }
        let rows = self.numbered(to.max(1), self.at - 1).rev().cloned().collect();
        self.at = to;
        Ok(rows)
    }

    /// To the row of that number, and the row.
    async fn go_to(&mut self, number: u64, until: Option<Instant>) -> Result<Vec<Row>, SqlError> {
        if number <= self.at && self.at > 0 {
            self.check_kept(number)?;
        }
        if number > self.at {
            // What lies between is passed.
            self.forward(number - self.at - 1, until).await?;
            return self.forward(1, until).await;
        }
        self.at = number;
        Ok(self.numbered(number, number).filter(|_| number > 0).cloned().collect())
    }

    /// Lets go of what need not be kept.
    fn forget(&mut self) {
        if self.keeps == Keeps::Few && self.bytes > UNSAID_BYTES_MAX {
            self.keeps = Keeps::None;
        }
        if self.keeps == Keeps::None {
            while self.first < self.at && self.rows.pop_front().is_some() {
                self.first += 1;
            }
        }
    }
}

fn bytes_of(row: &Row) -> usize {
    row.iter().map(|v| VALUE_BYTES + v.as_str().map_or(0, str::len)).sum()
}

/// What DECLARE says of a cursor.
pub(super) struct Declared {
    pub text: String,
    pub hold: bool,
    pub scroll: Option<bool>,
    pub binary: bool,
}

impl Session {
    /// DECLARE. Errors: 25P01 outside a block, where the cursor would end with its statement.
    pub(super) async fn declare_statement(&mut self, name: String, declared: Declared, plan: Plan) -> Result<Response, SqlError> {
        if !declared.hold && !self.txn.in_block() {
            return Err(SqlError::new(state::NO_ACTIVE_SQL_TRANSACTION, "DECLARE CURSOR can only be used in transaction blocks"));
        }
        self.declare(name, declared, plan).await
    }

    pub(super) async fn declare(&mut self, name: String, declared: Declared, plan: Plan) -> Result<Response, SqlError> {
        let Declared { text, hold, scroll, binary } = declared;
        if self.cursors.contains_key(&name) {
            return Err(SqlError::new(state::DUPLICATE_CURSOR, format!("cursor \"{name}\" already exists")));
        }
        let (subscription, locks) = match &plan {
            Plan::Select(p) => (false, p.locking),
            Plan::Subscribe(_) => (true, None),
            _ => return Err(SqlError::new(state::INVALID_CURSOR_STATE, "a cursor needs a query or a subscription")),
        };
        let kinds = [(hold, "DECLARE CURSOR WITH HOLD ...", "Holdable"), (scroll == Some(true), "DECLARE SCROLL CURSOR ...", "Scrollable")];
        if let (Some(verb), Some((_, declaration, kind))) = (locks, kinds.iter().find(|k| k.0)) {
            return Err(SqlError::new(state::FEATURE_NOT_SUPPORTED, format!("{declaration} {verb} is not supported"))
                .with_detail(format!("{kind} cursors must be READ ONLY.")));
        }
        if subscription && scroll == Some(true) {
            return Err(SqlError::unsupported("SCROLL over a subscription", "declare the cursor without SCROLL and read forward"));
        }
        // The cursor outlives the statement, and with it the statement's time limit.
        let deadline = self.deadline.take();
        let reads = match &plan {
            Plan::Select(p) => p.depends_on.clone(),
            _ => vec![],
        };
        let (desc, stream) = match plan {
            Plan::Select(p) => (p.desc.clone(), self.start_select(*p).await.map(|r| r.into_stream())),
            Plan::Subscribe(p) => (p.result.clone(), self.start_subscribe(*p).await),
            _ => return Err(SqlError::internal("a cursor over no query")),
        };
        self.deadline = deadline;
        let keeps = match scroll {
            _ if subscription => Keeps::None,
            Some(true) => Keeps::All,
            // A cursor that locks rows reads forward only.
            None if locks.is_none() => Keeps::Few,
            _ => Keeps::None,
        };
        let cursor = self.cursor(Portal { desc, rows: stream?, pending: VecDeque::new(), ended: false }, keeps);
        let seen = Some((text, matches!(keeps, Keeps::All | Keeps::Few), super::now_micros()));
        self.cursors.insert(name, Cursor { subscription, binary, held: hold, seen, reads, ..cursor });
        Ok(Response::Tag("DECLARE CURSOR".into()))
    }

    /// What the open cursors read, but for those that outlive the block which declared them.
    pub(super) fn read_by_cursors(&self) -> impl Iterator<Item = repr::GlobalId> + '_ {
        self.cursors.values().filter(|c| !c.committed).flat_map(|c| c.reads.iter().copied())
    }

    fn cursor(&mut self, portal: Portal, keeps: Keeps) -> Cursor {
        let Portal { desc, rows: stream, pending: rows, ended } = portal;
        self.cursors_declared += 1;
        let serial = self.cursors_declared;
        Cursor {
            desc,
            stream,
            rows,
            first: 1,
            at: 0,
            bytes: 0,
            keeps,
            ended,
            subscription: false,
            binary: false,
            held: false,
            seen: None,
            committed: false,
            reads: vec![],
            serial,
        }
    }

    pub(super) async fn fetch(&mut self, name: &str, direction: FetchDirection, is_move: bool, timeout_micros: Option<i64>) -> Result<Response, SqlError> {
        let (cancel, deadline) = (self.cancel.clone(), self.deadline);
        let cursor = self.cursors.get_mut(name).ok_or_else(|| missing(name))?;
        let until = timeout_micros.map(|us| Instant::now() + Duration::from_micros(u64::try_from(us).unwrap_or(0)));
        let rows = guarded(&cancel, deadline, cursor.fetch(direction, is_move, until)).await??;
        if is_move {
            return Ok(Response::Tag(format!("MOVE {}", rows.len())));
        }
        Ok(rows_response(cursor.desc.clone(), rows, "FETCH"))
    }

    pub(super) fn close(&mut self, name: Option<&str>) -> Result<Response, SqlError> {
        match name {
            None => {
                self.cursors.clear();
                Ok(Response::Tag("CLOSE CURSOR ALL".into()))
            }
            Some(n) => {
                self.cursors.remove(n).ok_or_else(|| missing(n))?;
                Ok(Response::Tag("CLOSE CURSOR".into()))
            }
        }
    }

    /// The cursor or portal that a statement names: FETCH, MOVE, CLOSE.
    pub fn names_portal(&self, prepared: &Prepared) -> Option<String> {
        match &super::parsed(prepared.statement.as_ref()?).ok()?.statement {
            Statement::Fetch(f) => Some(f.name.name.clone()),
            Statement::Close(name) => name.as_ref().map(|n| n.name.clone()),
            _ => None,
        }
    }

    /// Whether a statement returns rows of the portal that it names.
    pub fn fetches(&self, prepared: &Prepared) -> bool {
        let parsed = prepared.statement.as_ref().and_then(|s| super::parsed(s).ok());
        matches!(parsed.map(|p| &p.statement), Some(Statement::Fetch(f)) if !f.is_move)
    }

    /// Whether a cursor of this name is open, or a portal was lent under it.
    pub fn has_cursor(&self, name: &str) -> bool {
        self.cursors.contains_key(name)
    }

    /// Whether rows of this cursor are to be sent in binary form.
    pub fn is_binary_cursor(&self, name: &str) -> bool {
        self.cursors.get(name).is_some_and(|c| c.binary)
    }

    /// Lends a portal of the protocol, so that a statement can fetch from it by its name.
    pub fn lend_portal(&mut self, name: &str, portal: Portal) {
        let cursor = self.cursor(portal, Keeps::None);
        self.cursors.insert(name.to_owned(), cursor);
    }

    /// Takes a lent portal back; `None`: it was closed.
    pub fn take_portal_back(&mut self, name: &str) -> Option<Portal> {
        let mut c = self.cursors.remove(name)?;
        let passed = usize::try_from((c.at + 1).saturating_sub(c.first)).unwrap_or(usize::MAX).min(c.rows.len());
        c.rows.drain(..passed);
        Some(Portal { desc: c.desc, rows: c.stream, pending: c.rows, ended: c.ended })
    }
}

fn missing(name: &str) -> SqlError {
    SqlError::new(state::INVALID_CURSOR_NAME, format!("cursor \"{name}\" does not exist"))
}
