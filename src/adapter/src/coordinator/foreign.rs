//! Foreign keys: how many rows refer to each key, so that the committer's check is exact.
//!
//! ```text
//!   child (pid)  1 1 2 NULL        counts of child_pid_fkey: 1 -> 2, 2 -> 1
//!   a change counts up   the key must be live in the parent      else 23503 (insert or update on the child)
//!   a key goes           its count must be 0                      else 23503 (update or delete on the parent)
//! ```
//!
//! Looked at when all of a transaction is taken in, so that what it brings together fits together. Keys are those of the parent's
//! constraint, in its order and of its types; a value that has no equal there counts under bytes that no key has.
//! Not here: what CASCADE and its like do (`session`), which have done it when the committer looks.

use super::keys::Keys;
use crate::catalog::{Catalog, ForeignKey, Item, ItemKind};
use crate::changes::Changes;
use repr::datetime::arith::{date_to_timestamp, timestamp_to_date};
use repr::error::state;
use repr::{ColType, Deltas, GlobalId, RowCodec, SqlError, SqlType, Tally, Value};
use std::collections::{BTreeMap, HashMap};

/// A constraint: the table that refers, and its name.
pub type ForeignId = (GlobalId, String);

/// Some foreign keys.
pub type Constraints = std::collections::BTreeSet<ForeignId>;

#[derive(Default)]
pub struct Foreign {
    all: BTreeMap<ForeignId, Referring>,
}

/// One foreign key.
struct Referring {
    key: ForeignKey,
    /// The columns that refer, in the order of the parent's key.
    columns: Vec<usize>,
    types: Vec<ColType>,
    parent: GlobalId,
    parent_key: Vec<usize>,
    codec: RowCodec,
    counts: HashMap<Box<[u8]>, i64, foldhash::fast::RandomState>,
}

/// Counts of a foreign key that were changed: by how much.
pub type Counted = (ForeignId, Tally);

/// Foreign keys of a table that were replaced.
pub struct Replaced {
    table: GlobalId,
    old: Vec<(ForeignId, Referring)>,
}

impl Replaced {
    pub fn table(&self) -> GlobalId {
        self.table
    }
}

impl Foreign {
    /// Begins to watch a table's foreign keys.
    pub fn add(&mut self, catalog: &Catalog, item: &Item) {
        let ItemKind::Table(table) = &item.kind else { return };
        for key in &table.foreign {
            if let Some(r) = Referring::of(catalog, item, key) {
                self.all.insert((item.id, key.name.clone()), r);
            }
        }
    }

    pub fn remove(&mut self, table: GlobalId) {
        self.all.retain(|id, _| id.0 != table);
    }

    pub fn watches(&self, table: GlobalId) -> bool {
        self.all.keys().any(|id| id.0 == table)
    }

    /// Watches a table's foreign keys as a new catalog has them. What stays as it was keeps its counts; the names of the others are returned,
    /// whose rows must be loaded.
    pub fn replace(&mut self, catalog: &Catalog, item: &Item) -> (Replaced, Vec<String>) {
        let ids: Vec<ForeignId> = self.all.keys().filter(|id| id.0 == item.id).cloned().collect();
        let old: Vec<(ForeignId, Referring)> = ids.into_iter().filter_map(|id| self.all.remove_entry(&id)).collect();
        self.add(catalog, item);
        let mut fresh = Vec::new();
        for (id, new) in self.all.iter_mut().filter(|r| r.0 .0 == item.id) {
            match old.iter().find(|o| o.1.columns == new.columns && o.1.codec.types() == new.codec.types() && o.1.types == new.types) {
                Some((_, o)) => new.counts = o.counts.clone(),
                None => fresh.push(id.1.clone()),
            }
        }
        (Replaced { table: item.id, old }, fresh)
    }

    pub fn restore(&mut self, replaced: Replaced) {
        self.remove(replaced.table);
        self.all.extend(replaced.old);
    }

    /// Takes in rows that are there already, for the constraints of these names.
    pub fn load(&mut self, table: GlobalId, names: Option<&[String]>, deltas: &Deltas) {
        for (_, r) in self.all.iter_mut().filter(|(id, _)| id.0 == table && names.is_none_or(|n| n.contains(&id.1))) {
            r.count(&r.net(deltas), 1);
        }
    }

    /// The columns of a table that its foreign keys read.
    pub fn columns(&self, table: GlobalId) -> impl Iterator<Item = &usize> {
        self.all.iter().filter(move |r| r.0 .0 == table).flat_map(|r| &r.1.columns)
    }

    /// Takes changes in, noting how to go back.
    pub fn apply(&mut self, table: GlobalId, deltas: &Deltas, undo: &mut Vec<Counted>) {
        for (id, r) in self.all.iter_mut().filter(|r| r.0 .0 == table) {
            let net = r.net(deltas);
            r.count(&net, 1);
            undo.push((id.clone(), net));
        }
    }

    pub fn revert(&mut self, undo: Vec<Counted>) {
        for (id, net) in undo {
            if let Some(r) = self.all.get_mut(&id) {
                r.count(&net, -1);
            }
        }
    }

    /// Whether what these changes, taken in already, have touched fits together. `deferred`: those that are not looked at yet; `acted`: those
    /// for which CASCADE or its like has changed all rows that there were.
    /// `before`: the catalog without the transaction's changes. Errors: 23503; 40001 where a row came after CASCADE had done its work.
    pub fn check(
        &self,
        (before, catalog): (&Catalog, &Catalog),
        keys: &Keys,
        writes: &[(GlobalId, Changes)],
        deferred: &Constraints,
        acted: &Constraints,
    ) -> Result<(), SqlError> {
        for (id, r) in self.all.iter().filter(|r| !deferred.contains(r.0)) {
            // What a key that is NOT VALID let stand stands on when its table is made anew.
            let altered = unchecked(catalog, id).and_then(|i| before.find(&i.schema, i.namespace(), &i.name)).filter(|old| old.id != id.0);
            let was = altered.and_then(|old| self.all.get(&(old.id, id.1.clone())));
            let stood = |key: &[u8]| was.is_some_and(|w| r.counts.get(key) <= w.counts.get(key));
            let lost = |key: &[u8]| r.refers(key) && !keys.has(r.parent, &r.parent_key, key) && !stood(key);
            // The transaction itself has made rows that refer to what it had taken away.
            let added = |key: &[u8]| {
                let mut found = false;
                for (_, changes) in writes.iter().filter(|w| w.0 == id.0) {
                    changes.each(|deltas| {
                        found |= r.net(deltas).iter().any(|n| n.0 == key && n.1 > 0);
                        Ok(())
                    })?;
                }
                Ok::<bool, SqlError>(found)
            };
            for (table, changes) in writes.iter().filter(|w| w.0 == id.0 || w.0 == r.parent) {
                changes.each(|deltas| {
                    if *table == id.0 {
                        if let Some((key, _)) = r.net(deltas).iter().find(|n| n.1 > 0 && lost(n.0)) {
                            return Err(r.missing(catalog, id, key));
                        }
                    }
                    if *table == r.parent {
                        if let Some(key) = keys.taken(r.parent, &r.parent_key, deltas).into_iter().find(|key| lost(key)) {
                            let acted = acted.contains(id);
                            return Err(if acted && added(&key)? { r.missing(catalog, id, &key) } else { r.referred_to(catalog, id, &key, acted) });
                        }
                    }
                    Ok(())
                })?;
            }
        }
        Ok(())
    }

    /// Whether all rows of a table refer to something. Errors: 23503.
    pub fn check_all(&self, catalog: &Catalog, keys: &Keys, table: GlobalId) -> Result<(), SqlError> {
        for (id, r) in self.all.iter().filter(|r| r.0 .0 == table && unchecked(catalog, r.0).is_none()) {
            let lost = r.counts.iter().filter(|(key, n)| **n > 0 && !keys.has(r.parent, &r.parent_key, key)).map(|c| c.0).min();
            if let Some(key) = lost {
                return Err(r.missing(catalog, id, key));
            }
        }
        Ok(())
    }
}

impl Referring {
    fn of(catalog: &Catalog, item: &Item, key: &ForeignKey) -> Option<Referring> {
        let parent = if key.parent == item.id { item } else { catalog.item(key.parent)? };
        let ItemKind::Table(table) = &parent.kind else { return None };
        let all_of = |k: &[usize]| k.len() == key.parent_columns.len() && k.iter().all(|c| key.parent_columns.contains(c));
        let parent_key = table.primary_key.iter().chain(&table.unique).map(|k| &k.columns).find(|k| all_of(k))?.clone();
        let columns: Vec<usize> = parent_key.iter().filter_map(|p| key.parent_columns.iter().position(|c| c == p)).map(|i| key.columns[i]).collect();
        Some(Referring {
            key: key.clone(),
            types: columns.iter().map(|c| item.desc.types[*c].clone()).collect(),
            columns,
            parent: parent.id,
            codec: RowCodec::new(parent_key.iter().map(|c| parent.desc.types[*c].clone()).collect()),
            parent_key,
            counts: HashMap::default(),
        })
    }

    fn refers(&self, key: &[u8]) -> bool {
        self.counts.get(key).is_some_and(|n| *n > 0)
    }

    /// Adds each sum of keys, so many times.
    fn count(&mut self, net: &Tally, times: i64) {
        for (key, n) in net.iter().filter(|n| n.1 != 0) {
            match self.counts.get_mut(key) {
                Some(count) if *count + n * times == 0 => drop(self.counts.remove(key)),
                Some(count) => *count += n * times,
                None => drop(self.counts.insert(key.into(), n * times)),
            }
        }
    }

    /// Net count of each key that the changes refer to; rows with a NULL refer to nothing.
    fn net(&self, deltas: &Deltas) -> Tally {
        let cols: Vec<_> = self.columns.iter().map(|c| deltas.rows.cols[*c].clone()).collect();
        let mut net = Tally::default();
        let same = self.types.iter().zip(self.codec.types()).all(|(from, to)| from.ty == to.ty);
        let (mut bytes, mut ends) = (Vec::new(), Vec::new());
        if same {
            self.codec.encode_keys(&cols, deltas.len(), &mut bytes, &mut ends);
        }
        for i in (0..deltas.len()).filter(|i| cols.iter().all(|c| !c.is_null(*i))) {
            let n = *deltas.diffs.get(i);
            if same {
                net.add(&bytes[i.checked_sub(1).map_or(0, |before| ends[before] as usize)..ends[i] as usize], n);
                continue;
            }
            let row: Vec<Value> = cols.iter().zip(&self.types).map(|(c, t)| repr::column::get(c, &t.ty, i)).collect();
            net.add(&self.encoded(&row), n);
        }
        net
    }

    fn encoded(&self, row: &[Value]) -> Box<[u8]> {
        let mut bytes = Vec::new();
        let same: Option<Vec<Value>> = row.iter().zip(&self.types).zip(self.codec.types()).map(|((v, from), to)| as_type(v, &from.ty, &to.ty)).collect();
        match same {
            Some(row) => self.codec.encode_key(&row, &mut bytes),
            None => {
                bytes.extend(NO_KEY);
                RowCodec::new(self.types.clone()).encode_key(row, &mut bytes);
            }
        }
        bytes.into()
    }

    /// The key as errors show it: names of the columns and values, in the order of the constraint.
    fn shown(&self, names: &[String], columns: &[usize], key: &[u8]) -> String {
        let (key, types) = match key.strip_prefix(NO_KEY) {
            Some(own) => (own, self.types.clone()),
            None => (key, self.codec.types().to_vec()),
        };
        let values = RowCodec::new(types.clone()).decode_row(key);
        let style = repr::TextStyle::default();
        let place = |i: usize| self.columns.iter().position(|c| *c == self.key.columns[i]).unwrap_or(i);
        let text = |i: usize| repr::text::to_text(&values[place(i)], &types[place(i)].ty, &style);
        let shown: Vec<String> = (0..columns.len()).map(text).collect();
        let names: Vec<&str> = columns.iter().map(|c| names.get(*c).map_or("", String::as_str)).collect();
        format!("({})=({})", names.join(", "), shown.join(", "))
    }

    fn missing(&self, catalog: &Catalog, id: &ForeignId, key: &[u8]) -> SqlError {
        let (Some(child), Some(parent)) = (catalog.item(id.0), catalog.item(self.parent)) else { return crate::vanished("the table") };
        let m = format!("insert or update on table \"{}\" violates foreign key constraint \"{}\"", child.name, id.1);
        let shown = self.shown(&child.desc.names, &self.key.columns, key);
        let e = SqlError::new(FOREIGN_KEY_VIOLATION, m).with_detail(format!("Key {shown} is not present in table \"{}\".", parent.name));
        e.of_table(&child.schema, &child.name).of_constraint(&id.1)
    }

    fn referred_to(&self, catalog: &Catalog, id: &ForeignId, key: &[u8], acted: bool) -> SqlError {
        let (Some(child), Some(parent)) = (catalog.item(id.0), catalog.item(self.parent)) else { return crate::vanished("the table") };
        if acted {
            // What the session saw it has changed: this one came since.
            let e = SqlError::new(state::SERIALIZATION_FAILURE, "could not serialize access due to concurrent update");
            return e.with_hint("The transaction might succeed if retried.");
        }
        let m = format!("update or delete on table \"{}\" violates foreign key constraint \"{}\" on table \"{}\"", parent.name, id.1, child.name);
        let shown = self.shown(&parent.desc.names, &self.key.parent_columns, key);
        let e = SqlError::new(FOREIGN_KEY_VIOLATION, m).with_detail(format!("Key {shown} is still referenced from table \"{}\".", child.name));
        e.of_table(&child.schema, &child.name).of_constraint(&id.1)
    }
}

/// The table of a foreign key that is NOT VALID.
fn unchecked<'c>(catalog: &'c Catalog, id: &ForeignId) -> Option<&'c std::sync::Arc<Item>> {
    catalog.item(id.0).filter(|i| matches!(&i.kind, ItemKind::Table(t) if t.unchecked.contains(&id.1)))
}

const FOREIGN_KEY_VIOLATION: repr::SqlState = repr::SqlState::new("23503");

/// Key bytes begin otherwise.
const NO_KEY: &[u8] = &[0xff, 0xff, 0xff, 0xff];

/// The value that equals this one in another type; `None`: there is none.
pub fn as_type(value: &Value, from: &SqlType, to: &SqlType) -> Option<Value> {
    let (from, to) = (from.base(), to.base());
    if from == to {
        return Some(value.clone());
    }
    match (value, to) {
        // Of char(n) the blanks at the end are none of it.
        (Value::Text(s), _) if *from == SqlType::Bpchar => return Some(Value::text(s.trim_end_matches(' '))),
        (Value::Text(_), _) => return Some(value.clone()),
        (Value::Float4(f), SqlType::Float8) => return Some(Value::Float8(f64::from(*f))),
        (Value::Float8(f), SqlType::Float4) => return Some(*f as f32).filter(|g| f64::from(*g) == *f || f.is_nan()).map(Value::Float4),
        (Value::Date(d), SqlType::Timestamp) => return date_to_timestamp(*d).ok().map(Value::Timestamp),
        (Value::Timestamp(t), SqlType::Date) => return Some(timestamp_to_date(*t)).filter(|d| date_to_timestamp(*d) == Ok(*t)).map(Value::Date),
        _ => {}
    }
    let whole = match value {
        Value::Numeric(n) => {
            let whole = n.to_i128_rounded()?;
            if repr::Numeric::from_i128(whole) != *n {
                return None;
            }
            whole
        }
        other => i128::from(other.as_i64()?),
    };
    match to {
        SqlType::Int2 => i16::try_from(whole).ok().map(Value::Int2),
        SqlType::Int4 => i32::try_from(whole).ok().map(Value::Int4),
        SqlType::Int8 => i64::try_from(whole).ok().map(Value::Int8),
        // Integers refer to these.
        SqlType::Float4 => Some(Value::Float4(whole as f32)),
        SqlType::Float8 => Some(Value::Float8(whole as f64)),
        SqlType::Numeric => Some(Value::Numeric(repr::Numeric::from_i128(whole))),
        _ => None,
    }
}
