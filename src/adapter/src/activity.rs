//! Who is connected and what they do: for `pg_stat_activity`, and so that anyone can stop a statement or end a session.
//!
//! Everybody is the same role here, so everybody sees, and may stop, everyone. Not here: how a statement or a connection ends
//! (`session::Cancel` is looked at wherever either waits).

use crate::client::{Peer, TransactionStatus};
use crate::session::Cancel;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::Arc;

/// Bytes of a statement's text that others see (Postgres's track_activity_query_size).
const QUERY_BYTES: usize = 1_024;

/// An open session.
pub struct Backend {
    pub pid: i32,
    secret: i32,
    pub user: String,
    pub peer: Peer,
    /// Microseconds since 2000, as all times here.
    pub started: i64,
    /// Ends the statement.
    pub cancel: Arc<Cancel>,
    /// Ends the session.
    pub end: Cancel,
    seen: Mutex<Seen>,
}

/// What a session does.
#[derive(Clone, Default)]
pub struct Seen {
    pub application: String,
    pub xact_start: Option<i64>,
    pub query_start: Option<i64>,
    pub state_change: i64,
    /// `active`, `idle`, `idle in transaction`, `idle in transaction (aborted)`; empty before its first word.
    pub state: &'static str,
    pub query: String,
}

impl Backend {
    /// (pid, secret), as the client knows it.
    pub fn key(&self) -> (i32, i32) {
        (self.pid, self.secret)
    }

    pub fn seen(&self) -> Seen {
        self.seen.lock().clone()
    }

    /// A statement begins.
    pub(crate) fn runs(&self, query: &str, application: String, xact_start: Option<i64>, now: i64) {
        let mut end = query.len().min(QUERY_BYTES - 1);
        while !query.is_char_boundary(end) {
            end -= 1;
        }
        let mut seen = self.seen.lock();
        seen.query.clear();
        seen.query.push_str(&query[..end]);
        (seen.application, seen.xact_start, seen.query_start) = (application, xact_start, Some(now));
        (seen.state, seen.state_change) = ("active", now);
    }

    /// The client is awaited.
    pub(crate) fn waits(&self, status: TransactionStatus, application: String, xact_start: Option<i64>, now: i64) {
        let mut seen = self.seen.lock();
        (seen.application, seen.xact_start, seen.state_change) = (application, xact_start, now);
        seen.state = match status {
            TransactionStatus::Idle => "idle",
            TransactionStatus::InBlock => "idle in transaction",
            TransactionStatus::Failed => "idle in transaction (aborted)",
        };
    }
}

/// All open sessions.
pub struct Backends {
    open: Mutex<BTreeMap<i32, Arc<Backend>>>,
    next_pid: AtomicI32,
}

impl Default for Backends {
    fn default() -> Backends {
        Backends { open: Default::default(), next_pid: AtomicI32::new(1) }
    }
}

impl Backends {
    pub(crate) fn add(&self, user: &str, peer: Peer, application: String, now: i64) -> Arc<Backend> {
        let pid = self.next_pid.fetch_add(1, Ordering::Relaxed);
        let seen = Mutex::new(Seen { application, state_change: now, ..Seen::default() });
        let (cancel, end) = (Arc::new(Cancel::default()), Cancel::default());
        let backend = Arc::new(Backend { pid, secret: rand::random(), user: user.to_owned(), peer, started: now, cancel, end, seen });
        self.open.lock().insert(pid, backend.clone());
        backend
    }

    pub(crate) fn remove(&self, pid: i32) {
        self.open.lock().remove(&pid);
    }

    /// In order of their process numbers.
    pub fn all(&self) -> Vec<Arc<Backend>> {
        self.open.lock().values().cloned().collect()
    }

    /// A cancel request from the wire: unknown keys are ignored.
    pub(crate) fn cancel(&self, key: (i32, i32)) {
        if let Some(b) = self.open.lock().get(&key.0).filter(|b| b.key() == key) {
            b.cancel.cancel();
        }
    }

    /// Stops the statement of a session, or the session. False if there is none of this number.
    pub(crate) fn signal(&self, pid: i32, end: bool) -> bool {
        let Some(b) = self.open.lock().get(&pid).cloned() else { return false };
        match end {
            // The connection cancels its statement, so that the client is told of the end and not of that.
            true => b.end.cancel(),
            false => b.cancel.cancel(),
        }
        true
    }
}

/// A session's way to itself and to the others.
#[derive(Clone)]
pub struct Access {
    pub all: Arc<Backends>,
    pub own: Arc<Backend>,
}
