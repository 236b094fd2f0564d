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
use repr::{ColType, Deltas, GlobalId, KeyedRows, RowCodec, SqlError, SqlType, Value};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

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
pub struct OwnKeys(Vec<HashMap<Box<[u8]>, i64>>);

/// What to take back: changes of the transaction in hand, and of those accepted in this tick.
#[derive(Default)]
pub struct Undo {
    txn: Vec<(GlobalId, usize, Box<[u8]>, bool)>,
    tick: Vec<(GlobalId, usize, Box<[u8]>, bool)>,
    counted: Vec<Counted>,
    counted_tick: Vec<Counted>,
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
        set.into_iter().flat_map(|s| s.net(deltas).unwrap_or_default()).filter(|n| n.1 < 0).map(|n| n.0).collect()
    }

    /// Takes in rows that are there already.
    /// Errors: a key that cannot be computed.
    pub fn load(&mut self, id: GlobalId, deltas: &Deltas) -> Result<(), SqlError> {
        self.foreign.load(id, None, deltas);
        let Some(sets) = self.tables.get_mut(&id) else { return Ok(()) };
        for set in sets {
            for (key, net) in set.net(deltas)? {
                if net > 0 {
                    set.live.insert(&key, &key);
                } else if net < 0 {
                    set.live.remove(&key);
                }
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
            let net = |key: &[u8]| own.get(key).copied().unwrap_or(0);
            let shared: HashMap<Box<[u8]>, i64> = touched.into_iter().map(|k| (set.times(&k, net(&k)), k)).filter(|k| k.0 > 1).map(|(n, k)| (k, n)).collect();
            // Of several failing rows the first is told, and of its constraints the first.
            if let Some((row, key)) = set.first_to_share(deltas, shared)? {
                if first.as_ref().is_none_or(|f| row < f.0) {
                    first = set.check(catalog, id, &key, net(&key)).err().map(|e| (row, e));
                }
            }
        }
        first.map_or(Ok(own), |f| Err(f.1))
    }

    /// Adds changes to those that a transaction has made. The keys that they touch, for each constraint, in order.
    /// Errors: those of the expressions that keys are of.
    pub fn take_in(&self, id: GlobalId, deltas: &[Deltas], own: &mut OwnKeys) -> Result<Vec<BTreeSet<Box<[u8]>>>, SqlError> {
        let sets = self.tables.get(&id).map_or(&[][..], |s| s);
        own.0.resize_with(sets.len().max(own.0.len()), HashMap::new);
        let take = |(set, own): (&KeySet, &mut HashMap<Box<[u8]>, i64>)| {
            let mut touched = BTreeSet::new();
            for d in deltas {
                for (key, net) in set.net(d)? {
                    *own.entry(key.clone()).or_default() += net;
                    touched.insert(key);
                }
            }
            Ok(touched)
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
            let tested = !deferred.contains(&(id, set.name.clone()));
            if !changes.removes() {
                // Piece by piece, since nothing makes room for what came before it.
                changes.each(|deltas| set.net(deltas)?.into_iter().try_for_each(|(key, net)| set.take(tested.then_some(catalog), id, n, key, net, undo)))?;
                continue;
            }
            let mut all: BTreeMap<Box<[u8]>, i64> = BTreeMap::new();
            changes.each(|deltas| {
                set.net(deltas)?.into_iter().for_each(|(key, net)| *all.entry(key).or_default() += net);
                Ok(())
            })?;
            all.into_iter().try_for_each(|(key, net)| set.take(tested.then_some(catalog), id, n, key, net, undo))?;
        }
        Ok(())
    }

    /// The keys that changes touch, by constraint, also where a row keeps its key.
    pub fn touched(&self, id: GlobalId, deltas: &Deltas) -> Vec<Vec<Vec<u8>>> {
        let keys = |set: &KeySet| set.net(deltas).unwrap_or_default().into_keys().map(|k| k.into_vec()).collect();
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

    fn revert(&mut self, entries: Vec<(GlobalId, usize, Box<[u8]>, bool)>) {
        for (id, n, key, inserted) in entries.into_iter().rev() {
            let Some(set) = self.tables.get_mut(&id).and_then(|s| s.get_mut(n)) else { continue };
            if inserted {
                set.live.remove(&key);
            } else {
                set.live.insert(&key, &key);
            }
        }
    }
}

impl KeySet {
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

    /// Net multiplicity of each key that the changes touch, in order of key bytes; keys with a NULL are left out.
    /// Errors: of an expression that cannot be computed for some row.
    fn net(&self, deltas: &Deltas) -> Result<BTreeMap<Box<[u8]>, i64>, SqlError> {
        let mut net: BTreeMap<Box<[u8]>, i64> = BTreeMap::new();
        self.each_key(deltas, |i, key| *net.entry(key.into()).or_insert(0) += *deltas.diffs.get(i))?;
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
    fn take(&mut self, tested: Option<&Catalog>, id: GlobalId, n: usize, key: Box<[u8]>, net: i64, undo: &mut Undo) -> Result<(), SqlError> {
        tested.map_or(Ok(()), |catalog| self.check(catalog, id, &key, net))?;
        if net > 0 && self.live.insert(&key, &key).is_none() {
            undo.txn.push((id, n, key, true));
        } else if net < 0 && self.live.remove(&key).is_some() {
            undo.txn.push((id, n, key, false));
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
