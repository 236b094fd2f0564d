//! What a query has read, as finely as its plan shows: the rows under given unique keys, or a whole relation.
//!
//! A transaction that writes conflicts only with changes to what it has read. Without this, two clients that update different rows
//! of one table would conflict. A key that no row has is read all the same: the row that comes under it is a conflict.
//! Not here: which keys a plan binds (`optimize::reads`), the check (`coordinator::committer`).

use crate::catalog::{Catalog, ItemKind, Table};
use expr::EvalCtx;
use plan::Mir;
use repr::{ColType, GlobalId, RowCodec, Value};
use std::collections::{BTreeMap, BTreeSet};

/// A unique constraint: its table, and its place among [`Table::constraints`].
pub type KeyOf = (GlobalId, usize);

/// Shards read whole, and single keys (as key bytes) of constraints.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReadSet {
    pub whole: BTreeSet<GlobalId>,
    pub keys: BTreeMap<KeyOf, BTreeSet<Vec<u8>>>,
}

/// Keys of one constraint beyond which the table counts as read whole.
const KEYS_MAX: usize = 100_000;

impl ReadSet {
    /// What an optimized plan reads.
    pub fn of(catalog: &Catalog, mir: &Mir, ctx: &EvalCtx) -> ReadSet {
        let mut set = ReadSet::default();
        let unique = |id| table(catalog, id).map_or_else(Vec::new, |t| t.constraints().map(|c| c.columns.clone()).collect());
        for (id, read) in optimize::reads::reads(mir, ctx, &unique) {
            let (Some(keys), Some(table), Some(item)) = (read, table(catalog, id), catalog.item(id)) else {
                set.whole.extend(catalog.input_shards([id]));
                continue;
            };
            for (n, constraint) in table.constraints().enumerate() {
                if let Some(rows) = keys.get(&constraint.columns) {
                    let bytes = rows.iter().map(|r| key_bytes(r, &constraint.columns, &item.desc.types));
                    set.keys.entry((id, n)).or_default().extend(bytes);
                }
            }
        }
        set
    }

    /// Adds what `other` has.
    pub fn extend(&mut self, mut other: ReadSet) {
        self.whole.append(&mut other.whole);
        for (of, mut keys) in other.keys {
            let all = self.keys.entry(of).or_default();
            all.append(&mut keys);
            if all.len() > KEYS_MAX {
                self.keys.remove(&of);
                self.whole.insert(of.0);
            }
        }
    }
}

fn table(catalog: &Catalog, id: GlobalId) -> Option<&Table> {
    match &catalog.item(id)?.kind {
        ItemKind::Table(t) => Some(t),
        _ => None,
    }
}

/// The key bytes of key column values.
pub fn key_bytes(values: &[Value], key: &[usize], types: &[ColType]) -> Vec<u8> {
    let codec = RowCodec::new(key.iter().map(|k| types[*k].clone()).collect());
    let mut bytes = Vec::new();
    codec.encode_key(values, &mut bytes);
    bytes
}
