//! Batches of rows and of changes.
//!
//! ```text
//!   Batch   len, columns (Arrow arrays of the physical types of `column`)
//!   Deltas  Batch + one diff a row                 what a source or a table transaction brings
//!   Col     a column that costs nothing while all its values are equal (times, diffs)
//! ```

use crate::column::{self, ColumnBuilder};
use crate::error::{state, SqlError};
use crate::ids::Diff;
use crate::types::ColType;
use crate::value::Value;
use arrow_array::{ArrayRef, UInt32Array};
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// Bytes of text and bytes after which an operator closes a batch or chunk that it makes, so that none comes near what 32-bit offsets
/// reach: a value alone is below 1 GB.
pub const PIECE_BYTES: usize = 16 << 20;
/// Rows of one piece of a batch at most.
const PIECE_ROWS: usize = 1 << 16;

/// Rows as columns of equal length. `len` stands apart since a relation may have no column.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    pub len: usize,
    pub cols: Vec<ArrayRef>,
}

impl Batch {
    pub fn new(len: usize, cols: Vec<ArrayRef>) -> Batch {
        debug_assert!(cols.iter().all(|c| c.len() == len), "columns of unequal length");
        Batch { len, cols }
    }

    pub fn empty(types: &[ColType]) -> Batch {
        Batch::from_rows(types, std::iter::empty::<&[Value]>())
    }

    /// Panics: if the rows take more than 2 GB in one column.
    pub fn from_rows<'a>(types: &[ColType], rows: impl IntoIterator<Item = &'a [Value]>) -> Batch {
        Batch::try_from_rows(types, rows).expect("at most 2 GB in one column")
    }

    /// Errors: 54000 if the rows take more than 2 GB in one column.
    pub fn try_from_rows<'a>(types: &[ColType], rows: impl IntoIterator<Item = &'a [Value]>) -> Result<Batch, SqlError> {
        let mut made = BatchBuilder::new(types);
        for row in rows {
            if !made.push(row) {
                let e = SqlError::new(state::PROGRAM_LIMIT_EXCEEDED, "rows that are needed together take more than 2 GB in one column");
                return Err(e.with_hint("make the values smaller, or the groups"));
            }
        }
        Ok(made.finish())
    }

    /// The rows in batches that are each closed as soon as they are [full](BatchBuilder::is_full). None for no rows.
    pub fn pieces_from_rows<'a>(types: &[ColType], rows: impl IntoIterator<Item = &'a [Value]>) -> Vec<Batch> {
        let (mut pieces, mut open) = (Vec::new(), BatchBuilder::new(types));
        for row in rows {
            assert!(open.push(row), "a value alone is below 1 GB");
            if open.is_full() {
                pieces.push(std::mem::replace(&mut open, BatchBuilder::new(types)).finish());
            }
        }
        if open.len > 0 {
            pieces.push(open.finish());
        }
        pieces
    }

    /// Row `i` as values.
    pub fn row(&self, types: &[ColType], i: usize) -> Vec<Value> {
        self.cols.iter().zip(types).map(|(c, t)| column::get(c, &t.ty, i)).collect()
    }

    /// The rows at `indices`, in that order.
    pub fn take(&self, indices: &UInt32Array) -> Batch {
        let cols = self.cols.iter().map(|c| arrow_select::take::take(c, indices, None).expect("indices lie inside the batch")).collect();
        Batch { len: indices.values().len(), cols }
    }

    pub fn slice(&self, offset: usize, len: usize) -> Batch {
        Batch { len, cols: self.cols.iter().map(|c| c.slice(offset, len)).collect() }
    }

    /// Bytes of text and bytes in row `i`.
    pub fn row_bytes(&self, i: usize) -> usize {
        self.cols.iter().map(|c| column::value_bytes(c, i)).sum()
    }

    /// The rows in pieces that hold about [`PIECE_BYTES`] of text and bytes at most, or one row, and a bounded number of rows.
    pub fn pieces(&self) -> Vec<Range<usize>> {
        let bytes: usize = self.cols.iter().map(|c| column::column_bytes(c)).sum();
        if bytes <= PIECE_BYTES {
            return (0..self.len).step_by(PIECE_ROWS).map(|from| from..self.len.min(from + PIECE_ROWS)).collect();
        }
        let (mut pieces, mut from, mut have) = (Vec::new(), 0, 0);
        for i in 0..self.len {
            have += self.row_bytes(i);
            if have >= PIECE_BYTES || i + 1 - from >= PIECE_ROWS || i + 1 == self.len {
                pieces.push(from..i + 1);
                (from, have) = (i + 1, 0);
            }
        }
        pieces
    }

    /// All rows of `batches`, which have the same columns.
    pub fn concat(batches: &[Batch]) -> Batch {
        match batches {
            [] => Batch::default(),
            [one] => one.clone(),
            _ => {
                let cols = (0..batches[0].cols.len())
                    .map(|c| {
                        let parts: Vec<&dyn arrow_array::Array> = batches.iter().map(|b| b.cols[c].as_ref()).collect();
                        arrow_select::concat::concat(&parts).expect("batches have the same column types")
                    })
                    .collect();
                Batch { len: batches.iter().map(|b| b.len).sum(), cols }
            }
        }
    }

    /// Bytes that the columns hold in memory, about.
    pub fn bytes(&self) -> usize {
        self.cols.iter().map(|c| c.get_array_memory_size()).sum()
    }
}

/// A batch in the making, row by row.
pub struct BatchBuilder {
    columns: Vec<ColumnBuilder>,
    len: usize,
}

impl BatchBuilder {
    pub fn new(types: &[ColType]) -> BatchBuilder {
        BatchBuilder { columns: types.iter().map(|t| ColumnBuilder::new(&t.ty, 0)).collect(), len: 0 }
    }

    /// Appends a row of the columns' types; false if a column cannot hold it, and then the builder is of no more use.
    pub fn push(&mut self, row: &[Value]) -> bool {
        debug_assert_eq!(row.len(), self.columns.len());
        self.len += 1;
        self.columns.iter_mut().zip(row).all(|(c, v)| c.push_if_fits(v))
    }

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Bytes of text and bytes.
    pub fn bytes(&self) -> usize {
        self.columns.iter().map(ColumnBuilder::bytes).sum()
    }

    /// Whether it is time to close the batch, so that none comes near what a column can hold.
    pub fn is_full(&self) -> bool {
        self.len >= PIECE_ROWS || self.bytes() >= PIECE_BYTES
    }

    pub fn finish(self) -> Batch {
        Batch { len: self.len, cols: self.columns.into_iter().map(ColumnBuilder::finish).collect() }
    }
}

/// Changes to a collection at one time: a batch with one diff a row.
#[derive(Clone, Debug, Default)]
pub struct Deltas {
    pub rows: Batch,
    pub diffs: Col<Diff>,
}

impl Deltas {
    pub fn inserts(rows: Batch) -> Deltas {
        let n = rows.len;
        Deltas { rows, diffs: Col::same(1, n) }
    }
    pub fn len(&self) -> usize {
        self.rows.len
    }
    pub fn is_empty(&self) -> bool {
        self.rows.len == 0
    }
    /// One of several with the same columns, in their order; not consolidated.
    pub fn concat(mut parts: Vec<Deltas>) -> Deltas {
        if parts.len() == 1 {
            return parts.remove(0);
        }
        parts.retain(|p| !p.is_empty());
        let mut diffs = Col::default();
        for p in &parts {
            diffs.extend(&p.diffs, 0, p.diffs.len());
        }
        let rows: Vec<Batch> = parts.into_iter().map(|p| p.rows).collect();
        Deltas { rows: Batch::concat(&rows), diffs }
    }
}

/// A column that stays one value while all its values are equal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Col<T> {
    Same(Option<T>, usize),
    Many(Vec<T>),
}

impl<T> Default for Col<T> {
    fn default() -> Self {
        Col::Same(None, 0)
    }
}

impl<T: Clone + PartialEq> Col<T> {
    pub fn same(value: T, len: usize) -> Self {
        if len == 0 {
            return Col::default();
        }
        Col::Same(Some(value), len)
    }
    pub fn from_vec(values: Vec<T>) -> Self {
        match values.first() {
            None => Col::default(),
            Some(first) if values.iter().all(|v| v == first) => Col::Same(Some(first.clone()), values.len()),
            Some(_) => Col::Many(values),
        }
    }
    #[inline]
    pub fn len(&self) -> usize {
        match self {
            Col::Same(_, n) => *n,
            Col::Many(v) => v.len(),
        }
    }
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Panics: if `i` is out of bounds.
    #[inline]
    pub fn get(&self, i: usize) -> &T {
        match self {
            Col::Same(Some(v), n) if i < *n => v,
            Col::Same(..) => panic!("index {i} beyond a column of {}", self.len()),
            Col::Many(v) => &v[i],
        }
    }
    #[inline]
    pub fn push(&mut self, value: T) {
        match self {
            Col::Many(v) => v.push(value),
            Col::Same(slot, n) => match slot {
                None => {
                    *slot = Some(value);
                    *n = 1;
                }
                Some(s) if *s == value => *n += 1,
                Some(s) => {
                    let mut v = Vec::with_capacity((*n + 1).next_power_of_two());
                    v.resize(*n, s.clone());
                    v.push(value);
                    *self = Col::Many(v);
                }
            },
        }
    }
    /// Appends entries `[lo, hi)` of `other`.
    pub fn extend(&mut self, other: &Col<T>, lo: usize, hi: usize) {
        if lo >= hi {
            return;
        }
        match (&mut *self, other) {
            (Col::Same(None, _), Col::Same(Some(b), _)) => *self = Col::Same(Some(b.clone()), hi - lo),
            (Col::Same(Some(a), n), Col::Same(Some(b), _)) if a == b => *n += hi - lo,
            (Col::Many(v), Col::Many(o)) => v.extend_from_slice(&o[lo..hi]),
            (Col::Many(v), Col::Same(Some(b), _)) => {
                let n = v.len();
                v.resize(n + hi - lo, b.clone());
            }
            _ => {
                for i in lo..hi {
                    let v = other.get(i).clone();
                    self.push(v);
                }
            }
        }
    }
    pub fn take(&self, indices: &[u32]) -> Col<T> {
        match self {
            Col::Same(Some(v), _) => Col::same(v.clone(), indices.len()),
            Col::Same(None, _) => Col::default(),
            Col::Many(v) => Col::Many(indices.iter().map(|i| v[*i as usize].clone()).collect()),
        }
    }
    pub fn slice(&self, offset: usize, len: usize) -> Col<T> {
        match self {
            Col::Same(Some(v), _) => Col::same(v.clone(), len),
            Col::Same(None, _) => Col::default(),
            Col::Many(v) => Col::Many(v[offset..offset + len].to_vec()),
        }
    }
    pub fn iter(&self) -> impl Iterator<Item = &T> + '_ {
        (0..self.len()).map(move |i| self.get(i))
    }
    /// Collapses to `Same` when possible, else trims the allocation.
    pub fn compact(&mut self) {
        if let Col::Many(v) = self {
            match v.first() {
                None => *self = Col::default(),
                Some(f) if v.iter().all(|x| x == f) => *self = Col::Same(Some(f.clone()), v.len()),
                Some(_) => v.shrink_to_fit(),
            }
        }
    }
    pub fn heap_bytes(&self) -> usize {
        match self {
            Col::Same(..) => 0,
            Col::Many(v) => v.capacity() * std::mem::size_of::<T>(),
        }
    }
}
