//! How a relation's rows become the keys and vals of an arrangement, and come back.
//!
//! ```text
//!   row      a        b          c            key: [b, a+1]
//!   key      canonical(b) canonical(a+1)      equal exactly if the key columns are equal in SQL
//!   val      row bytes of the columns that the key does not give back:
//!            a (no key column itself), c, and b too if b's type has values that are equal but not identical
//! ```

use super::{Body, Slab, Upd};
use crate::eval::eval_columns;
use expr::{EvalCtx, Scalar};
use repr::{Batch, ColType, ColumnBuilder, Diff, RowCodec, SqlError, Value};
use std::hash::{BuildHasher, Hasher};

/// The lane of a key. Stored data is ordered and exchanged by it: a change of hash is a change of format.
#[inline]
pub fn lane_of(key: &[u8]) -> u64 {
    let mut h = foldhash::fast::FixedState::with_seed(0x5EED).build_hasher();
    h.write(key);
    h.finish()
}

/// The worker that owns a lane.
#[inline]
pub fn route(lane: u64, peers: usize) -> usize {
    ((u128::from(lane) * peers as u128) >> 64) as usize
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Place {
    Key(usize),
    Val(usize),
}

/// The form of one arrangement: key expressions over a relation's columns, and where each column is kept.
#[derive(Clone, Debug)]
pub struct Layout {
    pub types: Vec<ColType>,
    pub key: Vec<Scalar>,
    key_codec: RowCodec,
    val_codec: RowCodec,
    val_cols: Vec<usize>,
    places: Vec<Place>,
}

impl Layout {
    pub fn new(types: Vec<ColType>, key: Vec<Scalar>) -> Layout {
        let key_codec = RowCodec::new(key.iter().map(|k| k.typ(&types)).collect());
        let mut val_cols = Vec::new();
        let places = (0..types.len())
            .map(|i| match key.iter().position(|k| *k == Scalar::Column(i)) {
                Some(k) if !types[i].ty.equal_is_not_identical() => Place::Key(k),
                _ => {
                    val_cols.push(i);
                    Place::Val(val_cols.len() - 1)
                }
            })
            .collect();
        let val_codec = RowCodec::new(val_cols.iter().map(|i| types[*i].clone()).collect());
        Layout { types, key, key_codec, val_codec, val_cols, places }
    }

    /// Keyed by all columns: what consolidation of whole rows uses.
    pub fn whole(types: Vec<ColType>) -> Layout {
        let key = (0..types.len()).map(Scalar::Column).collect();
        Layout::new(types, key)
    }

    pub fn key_codec(&self) -> &RowCodec {
        &self.key_codec
    }

    /// Encodes updates. Rows whose key fails to evaluate are left out and given back as errors (row, error).
    /// With `drop_null_keys` rows with a NULL in the key are left out too (`null_safe` columns excepted).
    pub fn encode<T: Clone + PartialEq>(&self, upd: &Upd<T>, ctx: &EvalCtx, keep_null: &[bool]) -> (Body<T, Diff>, Vec<(u32, SqlError)>) {
        let (key_cols, errors) = eval_columns(&self.key, &upd.batch, &self.types, ctx);
        let skip_null = keep_null.iter().any(|k| !k) && key_cols.iter().zip(keep_null).any(|(c, k)| !k && c.null_count() > 0);
        if !errors.is_empty() || skip_null {
            let mut failed = errors.iter().map(|e| e.0).peekable();
            let kept: Vec<u32> = (0..upd.len() as u32)
                .filter(|i| {
                    let bad = failed.next_if_eq(i).is_some();
                    !(bad || skip_null && key_cols.iter().zip(keep_null).any(|(c, k)| !k && c.is_null(*i as usize)))
                })
                .collect();
            let some = upd.take(kept.clone());
            let key_batch = Batch::new(upd.len(), key_cols).take(&kept.into());
            return (self.encode_with(&some, &key_batch), errors);
        }
        (self.encode_with(upd, &Batch { len: upd.len(), cols: key_cols }), errors)
    }

    /// The val bytes of rows; `None` if no column is kept in vals.
    pub fn vals_of(&self, batch: &Batch) -> Option<Slab> {
        (!self.val_cols.is_empty()).then(|| {
            let cols: Vec<_> = self.val_cols.iter().map(|i| batch.cols[*i].clone()).collect();
            let mut vals = Slab::default();
            self.val_codec.encode_rows(&cols, batch.len, &mut vals.bytes, &mut vals.ends);
            vals
        })
    }

    fn encode_with<T: Clone + PartialEq>(&self, upd: &Upd<T>, key: &Batch) -> Body<T, Diff> {
        let n = upd.len();
        let mut keys = Slab::default();
        self.key_codec.encode_keys(&key.cols, n, &mut keys.bytes, &mut keys.ends);
        let vals = self.vals_of(&upd.batch);
        let lanes = (0..n).map(|i| lane_of(keys.get(i))).collect();
        Body::from_rows(lanes, keys, vals, upd.times.clone(), upd.diffs.clone())
    }

    /// The key bytes of a look-up.
    pub fn encode_key(&self, key: &[Value]) -> Vec<u8> {
        let mut out = Vec::new();
        self.key_codec.encode_key(key, &mut out);
        out
    }

    /// Appends the val bytes of a row.
    pub fn encode_val(&self, row: &[Value], out: &mut Vec<u8>) {
        let kept: Vec<Value> = self.val_cols.iter().map(|i| row[*i].clone()).collect();
        self.val_codec.encode_row(&kept, out);
    }

    /// One row.
    pub fn decode_row(&self, key: &[u8], val: &[u8]) -> Vec<Value> {
        let from_val = self.val_codec.decode_row(val);
        let from_key = if self.places.iter().any(|p| matches!(p, Place::Key(_))) { self.key_codec.decode_row(key) } else { Vec::new() };
        self.places
            .iter()
            .map(|p| match p {
                Place::Key(k) => from_key[*k].clone(),
                Place::Val(v) => from_val[*v].clone(),
            })
            .collect()
    }

    /// The columns of rows, in the relation's order. Columns not in `want` are NULL throughout.
    pub fn decode(&self, keys: &[&[u8]], vals: &[&[u8]], want: impl Fn(usize) -> bool) -> Batch {
        let n = keys.len();
        let builder = |t: &ColType, wanted: bool| wanted.then(|| ColumnBuilder::new(&t.ty, n));
        let wanted = |p: Place| self.places.iter().enumerate().any(|(i, q)| *q == p && want(i));
        let key_want: Vec<bool> = (0..self.key.len()).map(|k| wanted(Place::Key(k))).collect();
        let val_want: Vec<bool> = (0..self.val_cols.len()).map(|v| wanted(Place::Val(v))).collect();
        let mut key_out: Vec<_> = self.key_codec.types().iter().zip(&key_want).map(|(t, w)| builder(t, *w)).collect();
        let mut val_out: Vec<_> = self.val_codec.types().iter().zip(&val_want).map(|(t, w)| builder(t, *w)).collect();
        if key_want.contains(&true) {
            keys.iter().for_each(|k| self.key_codec.decode_into(k, &key_want, &mut key_out));
        }
        if val_want.contains(&true) {
            vals.iter().for_each(|v| self.val_codec.decode_into(v, &val_want, &mut val_out));
        }
        let key_out: Vec<_> = key_out.into_iter().map(|b| b.map(ColumnBuilder::finish)).collect();
        let val_out: Vec<_> = val_out.into_iter().map(|b| b.map(ColumnBuilder::finish)).collect();
        let cols = self
            .places
            .iter()
            .zip(&self.types)
            .map(|(p, t)| {
                let col = match p {
                    Place::Key(k) => &key_out[*k],
                    Place::Val(v) => &val_out[*v],
                };
                col.clone().unwrap_or_else(|| arrow_array::new_null_array(&repr::column::physical(&t.ty), n))
            })
            .collect();
        Batch { len: n, cols }
    }
}
