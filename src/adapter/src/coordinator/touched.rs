//! Unique keys whose rows came, went or changed: in the tick that is being made, and lately.
//!
//! Bounded: a transaction that touches very many keys of a table counts as one that touches them all, and of old changes only
//! the time is remembered before which they were forgotten. Either may find a conflict where there is none, never the other way.
//! Not here: whether a key is taken (`keys`).

use super::keys::Keys;
use crate::changes::Changes;
use crate::session::read_set::KeyOf;
use repr::{Deltas, GlobalId, Timestamp};
use std::collections::{BTreeSet, HashMap, HashSet};

/// Rows of one table in a transaction beyond which all its keys count as touched.
const ROWS_MAX: usize = 100_000;
/// Keys remembered before the older half is forgotten.
const KEYS_MAX: usize = 1_000_000;

/// What the transactions of one tick have touched.
#[derive(Default)]
pub struct Touched {
    keys: HashMap<KeyOf, HashSet<Vec<u8>>>,
    whole: HashSet<GlobalId>,
}

impl Touched {
    /// Adds a transaction's changes.
    pub fn add(&mut self, table: GlobalId, changes: &Changes, keys: &Keys) {
        if changes.has_parts() || changes.rows().iter().map(Deltas::len).sum::<usize>() > ROWS_MAX {
            self.whole.insert(table);
            return;
        }
        for (n, keys) in changes.rows().iter().flat_map(|deltas| keys.touched(table, deltas).into_iter().enumerate()) {
            self.keys.entry((table, n)).or_default().extend(keys);
        }
    }

    /// Whether one of `keys` is touched.
    pub fn meets(&self, of: KeyOf, keys: &BTreeSet<Vec<u8>>) -> bool {
        self.whole.contains(&of.0) || self.keys.get(&of).is_some_and(|touched| keys.iter().any(|k| touched.contains(k)))
    }
}

/// When keys were last touched, as far back as a transaction is likely to have begun.
#[derive(Default)]
pub struct LastTouched {
    keys: HashMap<KeyOf, HashMap<Vec<u8>, Timestamp>>,
    count: usize,
    whole: HashMap<GlobalId, Timestamp>,
    /// What was touched before is forgotten: a transaction that read earlier conflicts.
    floor: Timestamp,
}

impl LastTouched {
    /// A tick's, at its time.
    pub fn note(&mut self, tick: Touched, t: Timestamp) {
        self.whole.extend(tick.whole.into_iter().map(|table| (table, t)));
        for (of, keys) in tick.keys {
            let last = self.keys.entry(of).or_default();
            let before = last.len();
            last.extend(keys.into_iter().map(|k| (k, t)));
            self.count += last.len() - before;
        }
        if self.count > KEYS_MAX {
            let mut times: Vec<Timestamp> = self.keys.values().flat_map(HashMap::values).copied().collect();
            let middle = times.len() / 2;
            let floor = *times.select_nth_unstable(middle).1;
            self.floor = floor;
            self.keys.values_mut().for_each(|last| last.retain(|_, t| *t > floor));
            self.keys.retain(|_, last| !last.is_empty());
            self.count = self.keys.values().map(HashMap::len).sum();
        }
    }

    /// Whether one of `keys` was touched after `t`.
    pub fn changed_since(&self, of: KeyOf, keys: &BTreeSet<Vec<u8>>, t: Timestamp) -> bool {
        let later = |last: Option<&Timestamp>| last.is_some_and(|last| *last > t);
        t < self.floor || later(self.whole.get(&of.0)) || self.keys.get(&of).is_some_and(|last| keys.iter().any(|k| later(last.get(k))))
    }

    /// A table that was dropped is read by nobody.
    pub fn forget(&mut self, table: GlobalId) {
        self.whole.remove(&table);
        self.keys.retain(|of, _| of.0 != table);
        self.count = self.keys.values().map(HashMap::len).sum();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const T: GlobalId = GlobalId(7);

    fn tick(keys: std::ops::Range<u32>) -> Touched {
        let keys = keys.map(|k| k.to_be_bytes().to_vec()).collect();
        Touched { keys: [((T, 0), keys)].into(), ..Touched::default() }
    }

    fn one(key: u32) -> BTreeSet<Vec<u8>> {
        [key.to_be_bytes().to_vec()].into()
    }

    #[test]
    fn keys_conflict_with_later_changes_only() {
        let mut last = LastTouched::default();
        last.note(tick(0..10), 100);
        assert!(last.changed_since((T, 0), &one(3), 98));
        assert!(!last.changed_since((T, 0), &one(3), 100));
        assert!(!last.changed_since((T, 0), &one(30), 98));
        assert!(!last.changed_since((T, 1), &one(3), 98));
        last.note(Touched { whole: [T].into(), ..Touched::default() }, 200);
        assert!(last.changed_since((T, 1), &one(30), 198));
        assert!(!last.changed_since((T, 1), &one(30), 200));
    }

    #[test]
    fn what_is_forgotten_conflicts() {
        let mut last = LastTouched::default();
        let n = u32::try_from(KEYS_MAX).expect("a small number");
        last.note(tick(0..n), 100);
        last.note(tick(n..n + n / 2), 200);
        assert!(last.count <= KEYS_MAX && last.keys.values().map(HashMap::len).sum::<usize>() == last.count);
        assert!(last.changed_since((T, 0), &one(3 * n), 98), "a reader from before the floor");
        assert!(!last.changed_since((T, 0), &one(3 * n), 100));
        assert!(last.changed_since((T, 0), &one(n + 1), 100));
    }
}
