//! Advisory locks: `pg_advisory_lock` and its kin. Migration tools take one so that only one of them runs.
//!
//! The locks of all sessions stand in one table of the server, by key; they guard nothing here by themselves, and go with their session or,
//! those of `xact`, with the transaction. A session may hold a key several times, and gives it back as often.

use super::{guarded, Session};
use repr::{SqlError, SqlState, Value};
use std::collections::HashMap;
use std::time::Duration;

/// `(false, n, 0)` for one bigint, `(true, a, b)` for two integers: they are different locks.
pub(crate) type Key = (bool, i64, i64);

/// How often one session holds a key: exclusively, shared.
#[derive(Clone, Copy, Default)]
struct Held {
    exclusive: u32,
    shared: u32,
}

/// Who holds what, by key and process number.
#[derive(Default)]
pub(crate) struct Locks(parking_lot::Mutex<HashMap<Key, HashMap<i32, Held>>>);

/// One lock that a session holds, as `pg_locks` shows it.
pub(crate) struct HeldLock {
    pub key: Key,
    pub pid: i32,
    pub shared: bool,
}

impl Locks {
    pub(crate) fn held(&self) -> Vec<HeldLock> {
        let all = self.0.lock();
        let mut out: Vec<HeldLock> = Vec::new();
        for (key, holders) in all.iter() {
            for (pid, held) in holders {
                let modes = [(held.exclusive, false), (held.shared, true)];
                out.extend(modes.into_iter().filter(|m| m.0 > 0).map(|(_, shared)| HeldLock { key: *key, pid: *pid, shared }));
            }
        }
        out.sort_by_key(|l| (l.pid, l.key, l.shared));
        out
    }

    fn try_take(&self, key: Key, pid: i32, shared: bool) -> bool {
        let mut all = self.0.lock();
        let holders = all.entry(key).or_default();
        let blocked = holders.iter().any(|(p, h)| *p != pid && (h.exclusive > 0 || !shared && h.shared > 0));
        if !blocked {
            let held = holders.entry(pid).or_default();
            *(if shared { &mut held.shared } else { &mut held.exclusive }) += 1;
        }
        !blocked
    }

    /// Whether it was held.
    fn give_back(&self, key: Key, pid: i32, shared: bool) -> bool {
        let mut all = self.0.lock();
        let Some(holders) = all.get_mut(&key) else { return false };
        let Some(held) = holders.get_mut(&pid) else { return false };
        let count = if shared { &mut held.shared } else { &mut held.exclusive };
        let had = *count > 0;
        *count = count.saturating_sub(1);
        if held.shared == 0 && held.exclusive == 0 {
            holders.remove(&pid);
        }
        if holders.is_empty() {
            all.remove(&key);
        }
        had
    }

    /// Gives all back that the session holds.
    pub(crate) fn end(&self, pid: i32) {
        self.0.lock().retain(|_, holders| {
            holders.remove(&pid);
            !holders.is_empty()
        });
    }
}

impl Session {
    /// Carries out a call; `None`: it is no function of advisory locks.
    pub(super) async fn advisory(&mut self, name: &str, args: &[Value]) -> Result<Option<Value>, SqlError> {
        let Some(rest) = name.strip_prefix("pg_").map(|n| n.strip_prefix("try_").unwrap_or(n)).and_then(|n| n.strip_prefix("advisory_")) else {
            return Ok(None);
        };
        if rest == "unlock_all" {
            self.shared.locks.end(self.pid);
            self.xact_locks.clear();
            return Ok(Some(Value::text("")));
        }
        let key = match args {
            [Value::Int8(n)] => (false, *n, 0),
            [Value::Int4(a), Value::Int4(b)] => (true, (*a).into(), (*b).into()),
            _ => return Ok(Some(Value::Null)),
        };
        let shared = rest.ends_with("_shared");
        if rest.starts_with("unlock") {
            let had = self.shared.locks.give_back(key, self.pid, shared);
            if !had {
                let mode = if shared { "ShareLock" } else { "ExclusiveLock" };
                self.notice("WARNING", SqlError::new(SqlState::new("01000"), format!("you don't own a lock of type {mode}")));
            }
            return Ok(Some(Value::Bool(had)));
        }
        let tries = name.starts_with("pg_try");
        let mut taken = self.shared.locks.try_take(key, self.pid, shared);
        while !taken && !tries {
            guarded(&self.cancel, self.deadline, tokio::time::sleep(Duration::from_millis(10))).await?;
            taken = self.shared.locks.try_take(key, self.pid, shared);
        }
        if taken && rest.starts_with("xact") {
            self.xact_locks.push((key, shared));
        }
        Ok(Some(if tries { Value::Bool(taken) } else { Value::text("") }))
    }

    /// The transaction is over.
    pub(super) fn release_xact_locks(&mut self) {
        self.release_xact_locks_from(0);
    }

    /// What it took after its first `n` is given back.
    pub(super) fn release_xact_locks_from(&mut self, n: usize) {
        for (key, shared) in self.xact_locks.split_off(n.min(self.xact_locks.len())) {
            self.shared.locks.give_back(key, self.pid, shared);
        }
    }
}

/// What a session holds until its transaction ends.
pub(super) type XactLocks = Vec<(Key, bool)>;
