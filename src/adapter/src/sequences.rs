//! What sequences have given out.
//!
//! ```text
//!   nextval ─► state in memory, marked changed ─► the next tick's metadata ─► disk
//!                                                  (a transaction that used a sequence makes one)
//! ```
//!
//! A value is durable with the transaction that used it: what a crash forgets was given to transactions that never committed, so nobody
//! has seen it in a row. Values are never given back, as in Postgres. Not here: definitions (the catalog has them).

use crate::catalog::{key, Catalog, ItemKind, Sequence};
use parking_lot::Mutex;
use repr::error::state;
use repr::{GlobalId, SqlError};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// Where a sequence stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    pub value: i64,
    /// `value` was given out; else it is the next one.
    pub called: bool,
}

#[derive(Default)]
pub struct Sequences {
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    positions: HashMap<GlobalId, Position>,
    changed: BTreeMap<GlobalId, Position>,
}

/// Positions on their way to the disk.
pub struct Changed(BTreeMap<GlobalId, Position>);

impl Changed {
    pub fn meta(&self) -> Vec<(Vec<u8>, Option<Vec<u8>>)> {
        self.0.iter().map(|(id, p)| (key::sequence(*id), Some(format!("{} {}", p.value, u8::from(p.called)).into_bytes()))).collect()
    }
}

impl Sequences {
    /// Takes in an entry of the metadata.
    pub fn load(&self, id: &[u8], entry: &[u8]) {
        let number = |b: &[u8]| std::str::from_utf8(b).ok().map(str::to_owned);
        let parsed = || {
            let id: u64 = number(id)?.parse().ok()?;
            let text = number(entry)?;
            let (value, called) = text.split_once(' ')?;
            Some((GlobalId(id), Position { value: value.parse().ok()?, called: called == "1" }))
        };
        if let Some((id, position)) = parsed() {
            self.inner.lock().positions.insert(id, position);
        }
    }

    pub fn take_changed(&self) -> Changed {
        Changed(std::mem::take(&mut self.inner.lock().changed))
    }

    /// They did not become durable. What has changed since stands.
    pub fn put_back(&self, changed: Changed) {
        let mut inner = self.inner.lock();
        for (id, p) in changed.0 {
            inner.changed.entry(id).or_insert(p);
        }
    }

    pub fn forget(&self, id: GlobalId) {
        let mut inner = self.inner.lock();
        inner.positions.remove(&id);
        inner.changed.remove(&id);
    }

    pub fn position(&self, id: GlobalId, s: &Sequence) -> Position {
        self.inner.lock().positions.get(&id).copied().unwrap_or(Position { value: s.start, called: false })
    }

    pub fn set(&self, id: GlobalId, position: Position) {
        let mut inner = self.inner.lock();
        inner.positions.insert(id, position);
        inner.changed.insert(id, position);
    }

    /// Errors: 2200H at the end of one that does not cycle.
    fn next(&self, id: GlobalId, name: &str, s: &Sequence) -> Result<i64, SqlError> {
        let mut inner = self.inner.lock();
        let at = inner.positions.get(&id).copied().unwrap_or(Position { value: s.start, called: false });
        let value = if at.called {
            let (end, first, what) = if s.increment > 0 { (s.max, s.min, "maximum") } else { (s.min, s.max, "minimum") };
            let next = at.value.checked_add(s.increment).filter(|n| if s.increment > 0 { *n <= end } else { *n >= end });
            match next {
                Some(n) => n,
                None if s.cycle => first,
                None => {
                    let m = format!("nextval: reached {what} value of sequence \"{name}\" ({end})");
                    return Err(SqlError::new(repr::SqlState::new("2200H"), m));
                }
            }
        } else {
            at.value
        };
        let position = Position { value, called: true };
        inner.positions.insert(id, position);
        inner.changed.insert(id, position);
        Ok(value)
    }
}

/// What a session has got from sequences.
#[derive(Default)]
pub struct Got {
    current: HashMap<GlobalId, i64>,
    last: Option<GlobalId>,
    /// Since the last commit.
    pub used: bool,
    /// The running statement's transaction may only read.
    pub read_only: bool,
}

/// A session's way to the sequences.
#[derive(Clone)]
pub struct Access {
    pub sequences: Arc<Sequences>,
    pub got: Arc<Mutex<Got>>,
}

impl Access {
    fn find<'c>(&self, catalog: &'c Catalog, oid: u32) -> Result<(GlobalId, &'c str, &'c Sequence), SqlError> {
        let id = GlobalId(u64::from(oid));
        match catalog.item(id).map(|i| (i, &i.kind)) {
            Some((item, ItemKind::Sequence(s))) => Ok((id, &item.name, s)),
            Some((item, _)) => Err(SqlError::new(state::WRONG_OBJECT_TYPE, format!("\"{}\" is not a sequence", item.name))),
            None => Err(SqlError::new(state::UNDEFINED_TABLE, format!("could not open relation with OID {oid}"))),
        }
    }

    /// Errors: 25006 in a read-only transaction, for a sequence that is not the session's own.
    fn check_writable(&self, catalog: &Catalog, id: GlobalId, what: &str) -> Result<(), SqlError> {
        let own = catalog.item(id).is_some_and(|i| i.schema.starts_with("pg_temp_"));
        match self.got.lock().read_only && !own {
            true => Err(SqlError::new(state::READ_ONLY_SQL_TRANSACTION, format!("cannot execute {what} in a read-only transaction"))),
            false => Ok(()),
        }
    }

    pub fn next(&self, catalog: &Catalog, oid: u32) -> Result<i64, SqlError> {
        let (id, name, s) = self.find(catalog, oid)?;
        self.check_writable(catalog, id, "nextval()")?;
        let value = self.sequences.next(id, name, s)?;
        let mut got = self.got.lock();
        got.current.insert(id, value);
        got.last = Some(id);
        got.used = true;
        Ok(value)
    }

    pub fn current(&self, catalog: &Catalog, oid: Option<u32>) -> Result<i64, SqlError> {
        let early = |m: String| SqlError::new(state::OBJECT_NOT_IN_PREREQUISITE_STATE, m);
        let got = self.got.lock();
        match oid {
            Some(oid) => {
                let (id, name, _) = self.find(catalog, oid)?;
                got.current.get(&id).copied().ok_or_else(|| early(format!("currval of sequence \"{name}\" is not yet defined in this session")))
            }
            None => {
                let last = got.last.filter(|id| catalog.item(*id).is_some()).and_then(|id| got.current.get(&id));
                last.copied().ok_or_else(|| early("lastval is not yet defined in this session".into()))
            }
        }
    }

    pub fn set(&self, catalog: &Catalog, oid: u32, value: i64, called: bool) -> Result<(), SqlError> {
        let (id, name, s) = self.find(catalog, oid)?;
        self.check_writable(catalog, id, "setval()")?;
        if value < s.min || value > s.max {
            let m = format!("setval: value {value} is out of bounds for sequence \"{name}\" ({}..{})", s.min, s.max);
            return Err(SqlError::new(state::NUMERIC_VALUE_OUT_OF_RANGE, m));
        }
        self.sequences.set(id, Position { value, called });
        let mut got = self.got.lock();
        if called {
            got.current.insert(id, value);
        }
        got.used = true;
        Ok(())
    }

    pub fn last(&self, catalog: &Catalog, oid: u32) -> Option<i64> {
        let (id, _, s) = self.find(catalog, oid).ok()?;
        Some(self.sequences.position(id, s)).filter(|p| p.called).map(|p| p.value)
    }
}
