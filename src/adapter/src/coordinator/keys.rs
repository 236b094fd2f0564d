//! Primary keys and unique constraints of tables: the keys that live rows have, as key bytes.
//!
//! The committer is the only writer, so a set of keys decides. It is rebuilt from the shards at start.
//! A NULL in a unique (not primary) key never collides, unless it says NULLS NOT DISTINCT.

use super::foreign::{Constraints, Counted, Foreign};
use crate::builtin::{shown_expression, Names};
use crate::catalog::{Catalog, Item, ItemKind};
use crate::changes::Changes;
use crate::planner::Planner;
use expr::{EvalCtx, Scalar};
use repr::error::state;
use repr::{ColType, Deltas, GlobalId, KeyedRows, RowCodec, SqlError, SqlType, Tally, Value};
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use storage::Snapshot;

/// One constraint's keys.
struct KeySet {
    name: String,
    columns: Vec<usize>,
    equal_nulls: bool,
    codec: RowCodec,
    /// The keys are the rows.
    live: KeyedRows,
    /// Of a unique index on expressions, or of some rows: `columns` is empty then.
    computed: Option<Computed>,
}

/// How a key is made from the table's row.
struct Computed {
    keys: Vec<Scalar>,
    filter: Option<Scalar>,
    texts: Vec<String>,
    types: Vec<ColType>,
    ctx: EvalCtx,
}

#[derive(Default)]
pub struct Keys {
    tables: HashMap<GlobalId, Vec<KeySet>>,
    pub foreign: Foreign,
}

/// The keys that a transaction under way has changed in one table, by constraint: how many rows more have each.
#[derive(Default)]
pub struct OwnKeys(Vec<Tally>);

/// What to take back: changes of the transaction in hand, and of those accepted in this tick.
#[derive(Default)]
pub struct Undo {
    txn: Steps,
    tick: Steps,
    counted: Vec<Counted>,
    counted_tick: Vec<Counted>,
}

/// Keys that came or went, in order.
#[derive(Default)]
struct Steps {
    all: Vec<Step>,
    /// Their keys, one after the other.
    bytes: Vec<u8>,
}

struct Step {
    table: GlobalId,
    set: u32,
    inserted: bool,
    /// Where the key ends.
    end: usize,
}

impl Steps {
    fn push(&mut self, table: GlobalId, set: usize, key: &[u8], inserted: bool) {
        self.bytes.extend_from_slice(key);
        self.all.push(Step { table, set: set as u32, inserted, end: self.bytes.len() });
    }

    fn append(&mut self, other: &mut Steps) {
        let before = self.bytes.len();
        self.bytes.append(&mut other.bytes);
        self.all.extend(other.all.drain(..).map(|s| Step { end: s.end + before, ..s }));
    }
}

impl Undo {
    pub fn commit_txn(&mut self) {
        self.tick.append(&mut self.txn);
        self.counted_tick.append(&mut self.counted);
    }
}

impl Keys {
    /// Begins to watch a table's constraints.
    /// Errors: a stored text that cannot be bound.
    pub fn add(&mut self, planner: &Planner, catalog: &Arc<Catalog>, item: &Item) -> Result<(), SqlError> {
        let ItemKind::Table(table) = &item.kind else { return Ok(()) };
        self.foreign.add(catalog, item);
        let mut sets: Vec<KeySet> = table
            .constraints()
            .map(|c| {
                let types: Vec<_> = c.columns.iter().map(|i| item.desc.types[*i].clone()).collect();
                KeySet {
                    name: c.name.clone(),
                    columns: c.columns.clone(),
                    equal_nulls: c.equal_nulls,
                    live: KeyedRows::new(types.clone(), (0..types.len()).collect()),
                    codec: RowCodec::new(types),
                    computed: None,
                }
            })
            .collect();
        let names = Names::new(catalog.clone(), item.captured.search_path.clone(), Vec::new());
        let shown = |text: &String| match item.desc.names.iter().any(|n| text.trim_matches('"') == n) {
            true => text.clone(),
            false => shown_expression(text, item.oid(), &names, true),
        };
        for k in &table.computed_keys {
            let (keys, filter, ctx) = planner.computed_key(catalog, item, k)?;
            let types = item.desc.types.clone();
            let key_types: Vec<_> = keys.iter().map(|s| s.typ(&types)).collect();
            sets.push(KeySet {
                name: k.name.clone(),
                columns: vec![],
                equal_nulls: k.equal_nulls,
                live: KeyedRows::new(key_types.clone(), (0..key_types.len()).collect()),
                codec: RowCodec::new(key_types),
                computed: Some(Computed { keys, filter, texts: k.keys.iter().map(shown).collect(), types, ctx }),
            });
        }
        if !sets.is_empty() {
            self.tables.insert(item.id, sets);
        }
        Ok(())
    }

    /// Calls a table's constraints and unique indexes what they are called now.
    pub fn rename(&mut self, item: &Item) {
        let (ItemKind::Table(table), Some(sets)) = (&item.kind, self.tables.get_mut(&item.id)) else { return };
        let names = table.constraints().map(|c| &c.name).chain(table.computed_keys.iter().map(|k| &k.name));
        sets.iter_mut().zip(names).for_each(|(set, name)| set.name.clone_from(name));
    }

    pub fn remove(&mut self, id: GlobalId) {
        self.tables.remove(&id);
        self.foreign.remove(id);
    }

    pub fn watches(&self, id: GlobalId) -> bool {
        self.tables.contains_key(&id) || self.foreign.watches(id)
    }

    /// Whether a row of the table has the key, of its constraint on these columns.
    pub fn has(&self, id: GlobalId, columns: &[usize], key: &[u8]) -> bool {
        self.tables.get(&id).into_iter().flatten().any(|s| s.computed.is_none() && s.columns == columns && s.live.contains(key))
    }

    /// The keys of a constraint, on these columns, that changes take from rows.
    pub fn taken(&self, id: GlobalId, columns: &[usize], deltas: &Deltas) -> Vec<Box<[u8]>> {
        let set = self.tables.get(&id).into_iter().flatten().find(|s| s.computed.is_none() && s.columns == columns);
        let net = set.and_then(|s| s.net(deltas).ok()).unwrap_or_default();
        net.iter().filter(|n| n.1 < 0).map(|n| n.0.into()).collect()
    }

    /// Takes in the rows that a table has.
    /// Errors: a file that cannot be read; a key that cannot be computed.
    pub fn load(&mut self, item: &Item, rows: &Snapshot) -> Result<(), SqlError> {
        let sets = self.tables.get_mut(&item.id).map_or(&mut [][..], |s| s);
        let mut wanted = vec![sets.iter().any(|s| s.computed.is_some()); item.desc.arity()];
        sets.iter().flat_map(|s| &s.columns).chain(self.foreign.columns(item.id)).for_each(|c| wanted[*c] = true);
        if rows.inserts_only() {
            sets.iter_mut().for_each(|s| s.live.reserve(rows.rows() as usize));
        }
        // A key may come again before its old row goes.
        let mut open: Vec<HashMap<Box<[u8]>, i64>> = vec![HashMap::new(); sets.len()];
        for part in rows.read_columns(0, 1, Some(&wanted)) {
            let part = part?;
            self.foreign.load(item.id, None, &part);
            for (set, open) in sets.iter_mut().zip(&mut open) {
                set.load(&part, open)?;
            }
        }
        Ok(())
    }

    /// Errors: 23505 if a statement's changes, with what its transaction did before, would make two rows share a key, but for those that wait
    /// for the commit. Changes nothing but `own`.
    pub fn check(&self, catalog: &Catalog, id: GlobalId, deltas: &[Deltas], deferred: &Constraints, mut own: OwnKeys) -> Result<OwnKeys, SqlError> {
        let sets = self.tables.get(&id).map_or(&[][..], |s| s);
        let mut first: Option<(usize, SqlError)> = None;
        for (n, touched) in self.take_in(id, deltas, &mut own)?.into_iter().enumerate() {
            let (Some(set), Some(own)) = (sets.get(n), own.0.get(n)) else { continue };
            if deferred.contains(&(id, set.name.clone())) {
                continue;
            }
            let entries = touched.into_iter().map(|n| own.entry(n)).filter(|(_, net)| *net > 0);
            let shared: HashMap<Box<[u8]>, i64> = entries.map(|(k, net)| (k, set.times(k, net))).filter(|k| k.1 > 1).map(|(k, n)| (k.into(), n)).collect();
            // Of several failing rows the first is told, and of its constraints the first.
            if let Some((row, key)) = set.first_to_share(deltas, shared)? {
                if first.as_ref().is_none_or(|f| row < f.0) {
                    first = set.check(catalog, id, &key, own.sum(&key)).err().map(|e| (row, e));
                }
            }
        }
        first.map_or(Ok(own), |f| Err(f.1))
    }

    /// Adds changes to those that a transaction has made. The entries of the keys that they touch, for each constraint, each once.
    /// Errors: those of the expressions that keys are of.
    pub fn take_in(&self, id: GlobalId, deltas: &[Deltas], own: &mut OwnKeys) -> Result<Vec<Vec<usize>>, SqlError> {
        let sets = self.tables.get(&id).map_or(&[][..], |s| s);
        own.0.resize_with(sets.len().max(own.0.len()), Tally::default);
        let take = |(set, own): (&KeySet, &mut Tally)| {
            let (before, mut again) = (own.len(), BTreeSet::new());
            own.reserve(deltas.iter().map(Deltas::len).sum());
            for d in deltas {
                set.each_key(d, |i, key| {
                    let n = own.add(key, *d.diffs.get(i));
                    if n < before {
                        again.insert(n);
                    }
                })?;
            }
            Ok(again.into_iter().chain(before..own.len()).collect())
        };
        sets.iter().zip(&mut own.0).map(take).collect()
    }

    /// Takes a transaction's changes in, noting in `undo` how to go back. Errors: 23505 as for `check`; a part cannot be read.
    /// `deferred`: constraints that are not looked at yet; more rows than one may have a key of theirs until `undo` takes it all back.
    pub fn apply(&mut self, catalog: &Catalog, id: GlobalId, changes: &Changes, deferred: &Constraints, undo: &mut Undo) -> Result<(), SqlError> {
        if self.foreign.watches(id) {
            changes.each(|deltas| {
                self.foreign.apply(id, deltas, &mut undo.counted);
                Ok(())
            })?;
        }
        let Some(sets) = self.tables.get_mut(&id) else { return Ok(()) };
        for (n, set) in sets.iter_mut().enumerate() {
            let tested = (!deferred.contains(&(id, set.name.clone()))).then_some(catalog);
            if !changes.removes() {
                // Piece by piece, since nothing makes room for what came before it.
                set.live.reserve(changes.len());
                changes.each(|deltas| set.net(deltas)?.iter().try_for_each(|(key, net)| set.take(tested, id, n, key, net, undo)))?;
                continue;
            }
            let mut all = Tally::default();
            changes.each(|deltas| {
                set.each_key(deltas, |i, key| {
                    all.add(key, *deltas.diffs.get(i));
                })
            })?;
            all.iter().try_for_each(|(key, net)| set.take(tested, id, n, key, net, undo))?;
        }
        Ok(())
    }

    /// The keys that changes touch, by constraint, also where a row keeps its key.
    pub fn touched(&self, id: GlobalId, deltas: &Deltas) -> Vec<Vec<Vec<u8>>> {
        let keys = |set: &KeySet| set.net(deltas).unwrap_or_default().iter().map(|k| k.0.to_vec()).collect();
        self.tables.get(&id).map_or_else(Vec::new, |sets| sets.iter().map(keys).collect())
    }

    pub fn undo_txn(&mut self, undo: &mut Undo) {
        self.revert(std::mem::take(&mut undo.txn));
        self.foreign.revert(std::mem::take(&mut undo.counted));
    }

    pub fn undo_tick(&mut self, mut undo: Undo) {
        self.undo_txn(&mut undo);
        self.revert(undo.tick);
        self.foreign.revert(undo.counted_tick);
    }

    fn revert(&mut self, steps: Steps) {
        for (i, step) in steps.all.iter().enumerate().rev() {
            let Some(set) = self.tables.get_mut(&step.table).and_then(|s| s.get_mut(step.set as usize)) else { continue };
            let key = &steps.bytes[i.checked_sub(1).map_or(0, |before| steps.all[before].end)..step.end];
            if step.inserted {
                set.live.remove(key);
            } else {
                set.live.insert_new(key, key);
            }
        }
    }
}

impl KeySet {
    /// Takes in rows that are there, in any order. `open`: keys of which more or fewer rows came than one; in the end there are none.
    fn load(&mut self, deltas: &Deltas, open: &mut HashMap<Box<[u8]>, i64>) -> Result<(), SqlError> {
        for (key, net) in self.net(deltas)?.iter().filter(|n| n.1 != 0) {
            if net == 1 && open.is_empty() && self.live.insert_new(key, key) {
                continue;
            }
            let net = net + open.remove(key).unwrap_or(0) + i64::from(self.live.contains(key));
            match net {
                1 => drop(self.live.insert_new(key, key)),
                _ => drop(self.live.remove(key)),
            }
            if net != 0 && net != 1 {
                open.insert(key.into(), net);
            }
        }
        Ok(())
    }

    /// How many rows would have the key.
    fn times(&self, key: &[u8], net: i64) -> i64 {
        net + i64::from(self.live.contains(key))
    }

    /// The first of the added rows that takes a key which another has, and that key. `shared`: keys that more rows than one would have, and how many.
    fn first_to_share(&self, deltas: &[Deltas], mut shared: HashMap<Box<[u8]>, i64>) -> Result<Option<(usize, Box<[u8]>)>, SqlError> {
        if shared.is_empty() {
            return Ok(None);
        }
        let adds = |d: &Deltas, i: usize| *d.diffs.get(i) > 0;
        for d in deltas {
            self.each_key(d, |i, k| {
                if let (true, Some(n)) = (adds(d, i), shared.get_mut(k)) {
                    *n -= 1
                }
            })?;
        }
        // What is left are the rows that have the key whatever is added: with none of them, one of the added rows may.
        let (mut first, mut row) = (None, 0);
        for d in deltas {
            self.each_key(d, |i, k| {
                if let (true, None, Some(n)) = (adds(d, i), &first, shared.get_mut(k)) {
                    *n += 1;
                    if *n > 1 {
                        first = Some((row + i, k.into()));
                    }
                }
            })?;
            row += d.len();
        }
        // The rows were added before these.
        Ok(first.or_else(|| shared.into_keys().min().map(|k| (row, k))))
    }

    /// Net multiplicity of each key that the changes touch; keys with a NULL are left out.
    /// Errors: of an expression that cannot be computed for some row.
    fn net(&self, deltas: &Deltas) -> Result<Tally, SqlError> {
        let mut net = Tally::default();
        net.reserve(deltas.len());
        self.each_key(deltas, |i, key| {
            net.add(key, *deltas.diffs.get(i));
        })?;
        Ok(net)
    }

    /// Calls `f` with each row that has a key, and with that.
    /// Errors: of an expression that cannot be computed for some row.
    fn each_key(&self, deltas: &Deltas, mut f: impl FnMut(usize, &[u8])) -> Result<(), SqlError> {
        let mut holds = None;
        let cols: Vec<_> = match &self.computed {
            None => self.columns.iter().map(|c| deltas.rows.cols[*c].clone()).collect(),
            Some(c) => {
                let one = |s: &Scalar| {
                    let evaluated = expr::eval_whole(s, &deltas.rows, &c.types, &c.ctx);
                    match evaluated.errors.into_iter().next() {
                        Some((_, e)) => Err(e),
                        None => Ok(evaluated.column),
                    }
                };
                holds = c.filter.as_ref().map(one).transpose()?;
                c.keys.iter().map(one).collect::<Result<_, _>>()?
            }
        };
        let (mut bytes, mut ends) = (Vec::new(), Vec::new());
        self.codec.encode_keys(&cols, deltas.len(), &mut bytes, &mut ends);
        let mut start = 0;
        for (i, end) in ends.iter().enumerate() {
            let key = &bytes[start..*end as usize];
            start = *end as usize;
            if !self.equal_nulls && cols.iter().any(|c| c.is_null(i))
                || holds.as_ref().is_some_and(|h| repr::column::get(h, &SqlType::Bool, i) != Value::Bool(true))
            {
                continue;
            }
            f(i, key);
        }
        Ok(())
    }

    /// Checks a key's change, if `tested` by the catalog, and takes it in.
    fn take(&mut self, tested: Option<&Catalog>, id: GlobalId, n: usize, key: &[u8], net: i64, undo: &mut Undo) -> Result<(), SqlError> {
        if net > 0 {
            let is_new = self.live.insert_new(key, key);
            if is_new {
                undo.txn.push(id, n, key, true);
            }
            // It is live by now: this is one of the rows that would have it.
            let more = net - i64::from(is_new);
            return tested.map_or(Ok(()), |catalog| self.check(catalog, id, key, more));
        }
        if net < 0 && self.live.remove(key).is_some() {
            undo.txn.push(id, n, key, false);
        }
        Ok(())
    }

    fn check(&self, catalog: &Catalog, id: GlobalId, key: &[u8], net: i64) -> Result<(), SqlError> {
        if self.times(key, net) <= 1 {
            return Ok(());
        }
        let item = catalog.item(id);
        let names = match (&self.computed, item) {
            (Some(c), _) => c.texts.join(", "),
            (None, Some(i)) => self.columns.iter().map(|c| i.desc.names[*c].clone()).collect::<Vec<_>>().join(", "),
            (None, None) => String::new(),
        };
        let style = repr::TextStyle::default();
        let values = self.codec.decode_row(key);
        let shown: Vec<String> = values.iter().zip(self.codec.types()).map(|(v, t)| repr::text::to_text(v, &t.ty, &style)).collect();
        let e = SqlError::new(state::UNIQUE_VIOLATION, format!("duplicate key value violates unique constraint \"{}\"", self.name));
        let e = e.with_detail(format!("Key ({names})=({}) already exists.", shown.join(", "))).of_constraint(&self.name);
        Err(match item {
            Some(i) => e.of_table(&i.schema, &i.name),
            None => e,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use repr::{Batch, Col};

    fn set() -> KeySet {
        let types = vec![SqlType::Int8.nullable()];
        KeySet {
            name: "t_id_key".into(),
            columns: vec![1],
            equal_nulls: false,
            live: KeyedRows::new(types.clone(), vec![0]),
            codec: RowCodec::new(types),
            computed: None,
        }
    }

    /// Changes of a table (text, key).
    fn deltas(changes: &[(&str, Option<i64>, i64)]) -> Deltas {
        let row = |c: &(&str, Option<i64>, i64)| [Value::Text(c.0.into()), c.1.map_or(Value::Null, Value::Int8)];
        let rows: Vec<_> = changes.iter().map(row).collect();
        let types = [SqlType::Text.not_null(), SqlType::Int8.nullable()];
        Deltas { rows: Batch::from_rows(&types, rows.iter().map(|r| &r[..])), diffs: Col::from_vec(changes.iter().map(|c| c.2).collect()) }
    }

    fn key(id: i64) -> Vec<u8> {
        let mut bytes = Vec::new();
        RowCodec::new(vec![SqlType::Int8.nullable()]).encode_key(&[Value::Int8(id)], &mut bytes);
        bytes
    }

    #[test]
    fn rows_load_in_any_order() {
        // Key 1 keeps its row, 2 gets another one, 3 goes and comes back, 4 goes, NULL is no key.
        let all = [
            ("a", Some(1), 1),
            ("old", Some(2), 1),
            ("old", Some(2), -1),
            ("new", Some(2), 1),
            ("x", Some(3), 1),
            ("x", Some(3), -1),
            ("y", Some(3), 1),
            ("z", Some(4), 1),
            ("z", Some(4), -1),
            ("n", None, 1),
            ("n", None, 1),
        ];
        for turn in 0..all.len() {
            for step in [1, 2, 3, 5, 7] {
                let order = (0..all.len()).map(|i| all[(turn + i * step) % all.len()]).collect::<Vec<_>>();
                for part in [1, 3, all.len()] {
                    let (mut set, mut open) = (set(), HashMap::new());
                    order.chunks(part).for_each(|c| set.load(&deltas(c), &mut open).unwrap());
                    let live: Vec<bool> = (1..5).map(|id| set.live.contains(&key(id))).collect();
                    assert_eq!((live, set.live.len(), open.len()), (vec![true, true, true, false], 3, 0), "{order:?} by {part}");
                }
            }
        }
    }

    #[test]
    fn what_is_taken_back_is_as_it_was() {
        let (table, mut keys) = (GlobalId(7), Keys::default());
        keys.tables.insert(table, vec![set()]);
        let catalog = Catalog::default();
        let mut undo = Undo::default();
        let apply = |keys: &mut Keys, changes: &[(&str, Option<i64>, i64)], undo: &mut Undo| {
            let done = keys.apply(&catalog, table, &deltas(changes).into(), &Constraints::default(), undo);
            done.map_err(|e| e.code.as_str().to_owned())
        };
        let live = |keys: &Keys| (1..6).filter(|id| keys.has(table, &[1], &key(*id))).collect::<Vec<_>>();
        apply(&mut keys, &[("a", Some(1), 1), ("b", Some(2), 1), ("n", None, 1), ("n", None, 1)], &mut undo).unwrap();
        undo.commit_txn();
        let mut tick = std::mem::take(&mut undo);
        // A key that moves, one that goes, one that keeps its place.
        apply(&mut keys, &[("a", Some(1), -1), ("a", Some(3), 1), ("b", Some(2), -1), ("c", Some(2), 1)], &mut undo).unwrap();
        assert_eq!(live(&keys), [2, 3]);
        // Twice within the changes, and once beside what is there: nothing of the transaction stays.
        for twice in [[("x", Some(5), 1), ("y", Some(5), 1)], [("x", Some(4), 1), ("y", Some(2), 1)]] {
            let mut later = Undo::default();
            assert_eq!(apply(&mut keys, &twice, &mut later), Err("23505".to_owned()));
            keys.undo_txn(&mut later);
            assert_eq!(live(&keys), [2, 3]);
        }
        tick.txn = std::mem::take(&mut undo.txn);
        keys.undo_txn(&mut tick);
        assert_eq!(live(&keys), [1, 2]);
        keys.undo_tick(tick);
        assert_eq!(live(&keys), [0i64; 0]);
    }
}
