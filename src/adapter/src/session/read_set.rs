//! What a query has read, as finely as its plan shows: the rows of given primary keys, or a whole relation.
//!
//! A transaction that writes conflicts only with changes to what it has read. Without this, two clients that update different rows
//! of one table would conflict.

use crate::catalog::{Catalog, ItemKind};
use expr::Scalar;
use plan::{Id, Mir};
use repr::{ColType, GlobalId, RowCodec, Value};
use std::collections::BTreeSet;

/// Shards read whole, and single keys of tables with a primary key (as key bytes).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReadSet {
    pub whole: BTreeSet<GlobalId>,
    pub keys: BTreeSet<(GlobalId, Vec<u8>)>,
}

impl ReadSet {
    pub fn is_empty(&self) -> bool {
        self.whole.is_empty() && self.keys.is_empty()
    }

    /// Adds what `mir` reads.
    pub fn add(&mut self, catalog: &Catalog, mir: &Mir) {
        for id in mir.global_ids() {
            match bound_keys(catalog, mir, id) {
                Some(keys) => self.keys.extend(keys.into_iter().map(|k| (id, k))),
                None => self.whole.extend(catalog.input_shards([id])),
            }
        }
    }
}

/// The primary keys that every read of table `id` in the plan is restricted to; `None` if some read is not.
fn bound_keys(catalog: &Catalog, mir: &Mir, id: GlobalId) -> Option<Vec<Vec<u8>>> {
    let item = catalog.item(id)?;
    let ItemKind::Table(table) = &item.kind else { return None };
    let key = &table.primary_key.as_ref()?.columns;
    let mut found = Vec::new();
    walk(mir, id, key, &item.desc.types, &mut found).then_some(found)
}

/// Collects keys; false if a read is not bound.
fn walk(mir: &Mir, id: GlobalId, key: &[usize], types: &[ColType], found: &mut Vec<Vec<u8>>) -> bool {
    match mir {
        Mir::Filter { input, predicates } if is_get(input, id) => match filter_key(predicates, key, types) {
            Some(k) => {
                found.push(k);
                true
            }
            None => false,
        },
        m if is_get(m, id) => false,
        m => m.children().into_iter().all(|c| walk(c, id, key, types, found)),
    }
}

fn is_get(mir: &Mir, id: GlobalId) -> bool {
    matches!(mir, Mir::Get { id: Id::Global(g), .. } if *g == id)
}

fn filter_key(predicates: &[Scalar], key: &[usize], types: &[ColType]) -> Option<Vec<u8>> {
    let mut conjuncts = Vec::new();
    predicates.iter().for_each(|p| flatten(p, &mut conjuncts));
    let values: Vec<Value> = key
        .iter()
        .map(|k| {
            conjuncts.iter().find_map(|c| match c {
                Scalar::Call { func, args, .. } if func.name.ends_with("eq") => match args.as_slice() {
                    [Scalar::Column(c), Scalar::Literal(v, t)] | [Scalar::Literal(v, t), Scalar::Column(c)]
                        if c == k && t.ty == types[*k].ty && !v.is_null() =>
                    {
                        Some(v.clone())
                    }
                    _ => None,
                },
                _ => None,
            })
        })
        .collect::<Option<_>>()?;
    Some(key_bytes(&values, key, types))
}

fn flatten<'a>(p: &'a Scalar, out: &mut Vec<&'a Scalar>) {
    match p {
        Scalar::And(xs) => xs.iter().for_each(|x| flatten(x, out)),
        x => out.push(x),
    }
}

/// The key bytes of key column values.
pub fn key_bytes(values: &[Value], key: &[usize], types: &[ColType]) -> Vec<u8> {
    let codec = RowCodec::new(key.iter().map(|k| types[*k].clone()).collect());
    let mut bytes = Vec::new();
    codec.encode_key(values, &mut bytes);
    bytes
}
