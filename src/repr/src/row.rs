//! Rows as order-preserving bytes.
//!
//! ```text
//!   row bytes   [canonical col 0][canonical col 1]...[suffix col 0][suffix col 1]...
//!   key bytes   [canonical col 0][canonical col 1]...
//!
//!   canonical   0x01 then the value's bytes, or 0x02 for NULL (so NULL sorts last, as in Postgres)
//!   suffix      only for types where equal is not identical: what the canonical bytes leave out
//!               (numeric: display scale; float: the sign of zero; char(n): trailing blanks; interval: months and days; jsonb: its numbers' scales)
//! ```
//!
//! Promise: comparing key bytes (memcmp) is comparing rows column by column in SQL order; key bytes are equal
//! exactly if all columns are equal in SQL; row bytes are equal exactly if the rows are identical. Every canonical
//! form is self-delimiting. The format is versioned by [`CODEC_VERSION`]: checkpoints carry it.

use crate::batch::Batch;
use crate::column::ColumnBuilder;
use crate::types::{ColType, SqlType};
use crate::value::Value;
use arrow_array::ArrayRef;

pub const CODEC_VERSION: u32 = 1;

/// Appends the canonical bytes of a value of type `ty`.
pub fn write_canonical(value: &Value, ty: &SqlType, out: &mut Vec<u8>) {
    let _ = (value, ty, out);
    unimplemented!("repr::row::write_canonical")
}

/// Encodes and decodes rows with these column types.
#[derive(Clone, Debug)]
pub struct RowCodec {
    types: Vec<ColType>,
}

impl RowCodec {
    pub fn new(types: Vec<ColType>) -> RowCodec {
        RowCodec { types }
    }
    pub fn types(&self) -> &[ColType] {
        &self.types
    }
    /// Appends row bytes of row `i` of each column to `bytes`, one row after another, and its end to `ends`.
    pub fn encode_rows(&self, cols: &[ArrayRef], len: usize, bytes: &mut Vec<u8>, ends: &mut Vec<u32>) {
        let _ = (cols, len, bytes, ends);
        unimplemented!()
    }
    /// As `encode_rows`, without the suffixes: key bytes.
    pub fn encode_keys(&self, cols: &[ArrayRef], len: usize, bytes: &mut Vec<u8>, ends: &mut Vec<u32>) {
        let _ = (cols, len, bytes, ends);
        unimplemented!()
    }
    pub fn encode_row(&self, row: &[Value], out: &mut Vec<u8>) {
        let _ = (row, out);
        unimplemented!()
    }
    pub fn encode_key(&self, row: &[Value], out: &mut Vec<u8>) {
        let _ = (row, out);
        unimplemented!()
    }
    /// Appends the row's columns with `want[i]` to `builders[i]`.
    pub fn decode_into(&self, row: &[u8], want: &[bool], builders: &mut [Option<ColumnBuilder>]) {
        let _ = (row, want, builders);
        unimplemented!()
    }
    /// Rows from row bytes (or, for types where equal is identical, from key bytes).
    pub fn decode<'a>(&self, rows: impl IntoIterator<Item = &'a [u8]>) -> Batch {
        let _ = rows.into_iter();
        unimplemented!()
    }
    pub fn decode_row(&self, row: &[u8]) -> Vec<Value> {
        let _ = row;
        unimplemented!()
    }
}
