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
//! Not here: the bytes of one value (`canonical`).

use crate::batch::Batch;
use crate::canonical::{self, apply_suffix, read_canonical, skip_canonical, write_suffix, Bytes, NULL, PRESENT};
use crate::column::{self, ColumnBuilder};
use crate::types::{ColType, SqlType};
use crate::value::Value;
use arrow_array::cast::AsArray;
use arrow_array::types::*;
use arrow_array::{Array, ArrayRef, BinaryArray, BooleanArray, PrimitiveArray, StringArray};
use smallvec::SmallVec;

pub use crate::canonical::write_canonical;

pub const CODEC_VERSION: u32 = 1;

/// Encodes and decodes rows with these column types.
#[derive(Clone, Debug)]
pub struct RowCodec {
    types: Vec<ColType>,
    /// Columns whose type has a suffix.
    suffixed: Vec<bool>,
    any_suffix: bool,
}

/// A column, downcast once, so that a value costs one predictable branch.
enum Reader<'a> {
    Bool(&'a BooleanArray),
    I16(&'a PrimitiveArray<Int16Type>),
    I32(&'a PrimitiveArray<Int32Type>),
    I64(&'a PrimitiveArray<Int64Type>),
    U16(&'a PrimitiveArray<UInt16Type>),
    U32(&'a PrimitiveArray<UInt32Type>),
    U64(&'a PrimitiveArray<UInt64Type>),
    F32(&'a PrimitiveArray<Float32Type>),
    F64(&'a PrimitiveArray<Float64Type>),
    Text(&'a StringArray),
    Bpchar(&'a StringArray),
    Bytea(&'a BinaryArray),
    Other(&'a BinaryArray, &'a SqlType),
}

impl<'a> Reader<'a> {
    fn new(col: &'a ArrayRef, ty: &'a SqlType) -> Reader<'a> {
        let ty = ty.base();
        use arrow_schema::DataType::*;
        match col.data_type() {
            Boolean => Reader::Bool(col.as_boolean()),
            Int16 => Reader::I16(col.as_primitive()),
            Int32 => Reader::I32(col.as_primitive()),
            Int64 => Reader::I64(col.as_primitive()),
            UInt16 => Reader::U16(col.as_primitive()),
            UInt32 => Reader::U32(col.as_primitive()),
            UInt64 => Reader::U64(col.as_primitive()),
            Float32 => Reader::F32(col.as_primitive()),
            Float64 => Reader::F64(col.as_primitive()),
            Utf8 if *ty == SqlType::Bpchar => Reader::Bpchar(col.as_string()),
            Utf8 => Reader::Text(col.as_string()),
            _ if *ty == SqlType::Bytea => Reader::Bytea(col.as_binary()),
            _ => Reader::Other(col.as_binary(), ty),
        }
    }

    /// Appends the canonical bytes of the value at `i`, which is not NULL.
    #[inline]
    fn canonical(&self, i: usize, out: &mut Vec<u8>) {
        #[inline]
        fn tagged<const N: usize>(bytes: [u8; N], out: &mut Vec<u8>) {
            out.push(PRESENT);
            out.extend_from_slice(&bytes);
        }
        match self {
            Reader::Bool(a) => tagged([u8::from(a.value(i))], out),
            Reader::I16(a) => tagged(((a.value(i) as u16) ^ 1 << 15).to_be_bytes(), out),
            Reader::I32(a) => tagged(((a.value(i) as u32) ^ 1 << 31).to_be_bytes(), out),
            Reader::I64(a) => tagged(((a.value(i) as u64) ^ 1 << 63).to_be_bytes(), out),
            Reader::U16(a) => tagged(a.value(i).to_be_bytes(), out),
            Reader::U32(a) => tagged(a.value(i).to_be_bytes(), out),
            Reader::U64(a) => tagged(a.value(i).to_be_bytes(), out),
            Reader::F32(a) => tagged(canonical::f32_key(a.value(i)).to_be_bytes(), out),
            Reader::F64(a) => tagged(canonical::f64_key(a.value(i)).to_be_bytes(), out),
            Reader::Text(a) => {
                out.push(PRESENT);
                out.extend_from_slice(a.value(i).as_bytes());
                out.push(0);
            }
            Reader::Bpchar(a) => {
                out.push(PRESENT);
                out.extend_from_slice(canonical::trim_blanks(a.value(i)).as_bytes());
                out.push(0);
            }
            Reader::Bytea(a) => {
                out.push(PRESENT);
                canonical::put_bytea(a.value(i), out);
            }
            Reader::Other(a, ty) => write_canonical(&column::decode_value(ty, a.value(i)), ty, out),
        }
    }

    /// Appends the suffix of the value at `i`, which is not NULL.
    #[inline]
    fn suffix(&self, i: usize, out: &mut Vec<u8>) {
        match self {
            Reader::F32(a) if a.value(i) == 0.0 => out.push(u8::from(a.value(i).is_sign_negative())),
            Reader::F64(a) if a.value(i) == 0.0 => out.push(u8::from(a.value(i).is_sign_negative())),
            Reader::Bpchar(a) => {
                let s = a.value(i);
                canonical::put_varint((s.len() - canonical::trim_blanks(s).len()) as u64, out);
            }
            Reader::Other(a, ty) => write_suffix(&column::decode_value(ty, a.value(i)), ty, out),
            _ => {}
        }
    }
}

impl RowCodec {
    pub fn new(types: Vec<ColType>) -> RowCodec {
        let suffixed: Vec<bool> = types.iter().map(|t| t.ty.equal_is_not_identical()).collect();
        let any_suffix = suffixed.contains(&true);
        RowCodec { types, suffixed, any_suffix }
    }

    pub fn types(&self) -> &[ColType] {
        &self.types
    }

    /// Whether key bytes give every column's value back.
    pub fn key_is_row(&self) -> bool {
        !self.any_suffix
    }

    /// Appends row bytes of row `i` of each column to `bytes`, one row after another, and its end to `ends`.
    pub fn encode_rows(&self, cols: &[ArrayRef], len: usize, bytes: &mut Vec<u8>, ends: &mut Vec<u32>) {
        self.encode(cols, len, self.any_suffix, bytes, ends);
    }

    /// As `encode_rows`, without the suffixes: key bytes.
    pub fn encode_keys(&self, cols: &[ArrayRef], len: usize, bytes: &mut Vec<u8>, ends: &mut Vec<u32>) {
        self.encode(cols, len, false, bytes, ends);
    }

    fn encode(&self, cols: &[ArrayRef], len: usize, with_suffix: bool, bytes: &mut Vec<u8>, ends: &mut Vec<u32>) {
        let readers: SmallVec<[(Reader<'_>, Option<&arrow_buffer::NullBuffer>); 8]> =
            cols.iter().zip(&self.types).map(|(c, t)| (Reader::new(c, &t.ty), c.nulls().filter(|n| n.null_count() > 0))).collect();
        ends.reserve(len);
        for i in 0..len {
            for (reader, nulls) in &readers {
                match nulls {
                    Some(n) if n.is_null(i) => bytes.push(NULL),
                    _ => reader.canonical(i, bytes),
                }
            }
            if with_suffix {
                for ((reader, nulls), _) in readers.iter().zip(&self.suffixed).filter(|(_, s)| **s) {
                    match nulls {
                        Some(n) if n.is_null(i) => {}
                        _ => reader.suffix(i, bytes),
                    }
                }
            }
            ends.push(u32::try_from(bytes.len()).expect("callers encode less than 4 GiB at a time"));
        }
    }

    pub fn encode_row(&self, row: &[Value], out: &mut Vec<u8>) {
        self.encode_key(row, out);
        if self.any_suffix {
            for ((v, t), _) in row.iter().zip(&self.types).zip(&self.suffixed).filter(|(_, s)| **s) {
                write_suffix(v, &t.ty, out);
            }
        }
    }

    pub fn encode_key(&self, row: &[Value], out: &mut Vec<u8>) {
        for (v, t) in row.iter().zip(&self.types) {
            write_canonical(v, &t.ty, out);
        }
    }

    /// Appends the row's columns with `want[i]` to `builders[i]`.
    pub fn decode_into(&self, row: &[u8], want: &[bool], builders: &mut [Option<ColumnBuilder>]) {
        let mut b = Bytes(row);
        if !self.any_suffix {
            let last = want.iter().rposition(|w| *w).map_or(0, |p| p + 1);
            for (i, t) in self.types[..last].iter().enumerate() {
                match &mut builders[i] {
                    Some(builder) if want[i] => push_canonical(&t.ty, &mut b, builder),
                    _ => skip_canonical(&t.ty, &mut b),
                }
            }
            return;
        }
        // Columns with a suffix wait for it; the others go straight to their builders.
        let mut waiting: SmallVec<[(usize, Value); 8]> = SmallVec::new();
        for (i, t) in self.types.iter().enumerate() {
            match &mut builders[i] {
                _ if self.suffixed[i] => waiting.push((i, read_canonical(&t.ty, &mut b))),
                Some(builder) if want[i] => push_canonical(&t.ty, &mut b, builder),
                _ => skip_canonical(&t.ty, &mut b),
            }
        }
        let with_suffix = !b.is_empty();
        for (i, mut value) in waiting {
            if with_suffix {
                apply_suffix(&mut value, &self.types[i].ty, &mut b);
            }
            if let (true, Some(builder)) = (want[i], &mut builders[i]) {
                builder.push(&value);
            }
        }
    }

    /// Rows from row bytes (or, for types where equal is identical, from key bytes).
    pub fn decode<'a>(&self, rows: impl IntoIterator<Item = &'a [u8]>) -> Batch {
        let rows = rows.into_iter();
        let want = vec![true; self.types.len()];
        let mut builders: Vec<Option<ColumnBuilder>> = self.types.iter().map(|t| Some(ColumnBuilder::new(&t.ty, rows.size_hint().0))).collect();
        let mut len = 0;
        for row in rows {
            self.decode_into(row, &want, &mut builders);
            len += 1;
        }
        Batch { len, cols: builders.into_iter().flatten().map(ColumnBuilder::finish).collect() }
    }

    /// The row's values; of key bytes, for types where equal is not identical, plain representatives.
    pub fn decode_row(&self, row: &[u8]) -> Vec<Value> {
        let mut out = Vec::with_capacity(self.types.len());
        self.decode_row_into(row, &mut out);
        out
    }

    /// As [`RowCodec::decode_row`], appending to `out`.
    pub fn decode_row_into(&self, row: &[u8], out: &mut Vec<Value>) {
        let mut b = Bytes(row);
        let start = out.len();
        out.extend(self.types.iter().map(|t| read_canonical(&t.ty, &mut b)));
        if self.any_suffix && !b.is_empty() {
            for ((v, t), _) in out[start..].iter_mut().zip(&self.types).zip(&self.suffixed).filter(|(_, s)| **s) {
                apply_suffix(v, &t.ty, &mut b);
            }
        }
    }

    /// Column `col` of a row. Reads no further than it must.
    pub fn decode_column(&self, row: &[u8], col: usize) -> Value {
        let mut b = Bytes(row);
        if self.suffixed[col] {
            return self.decode_row(row).swap_remove(col);
        }
        self.types[..col].iter().for_each(|t| skip_canonical(&t.ty, &mut b));
        read_canonical(&self.types[col].ty, &mut b)
    }

    /// Appends the key bytes of columns `cols`, in this order, of row bytes or key bytes.
    pub fn key_of(&self, row: &[u8], cols: &[usize], out: &mut Vec<u8>) {
        let mut b = Bytes(row);
        let mut ends: SmallVec<[usize; 16]> = SmallVec::new();
        for t in &self.types[..cols.iter().max().map_or(0, |m| m + 1)] {
            skip_canonical(&t.ty, &mut b);
            ends.push(row.len() - b.0.len());
        }
        for c in cols {
            out.extend_from_slice(&row[if *c == 0 { 0 } else { ends[*c - 1] }..ends[*c]]);
        }
    }

    /// Whether a column of `cols`, in ascending order, is NULL, in row bytes or key bytes.
    pub fn any_null(&self, row: &[u8], cols: &[usize]) -> bool {
        let (mut b, mut at) = (Bytes(row), 0);
        cols.iter().any(|c| {
            self.types[at..*c].iter().for_each(|t| skip_canonical(&t.ty, &mut b));
            at = *c;
            b.0.first() == Some(&NULL)
        })
    }

    /// Length of the key part of row bytes: where the suffixes begin.
    pub fn key_len(&self, row: &[u8]) -> usize {
        if !self.any_suffix {
            return row.len();
        }
        let mut b = Bytes(row);
        self.types.iter().for_each(|t| skip_canonical(&t.ty, &mut b));
        row.len() - b.0.len()
    }
}

/// A column that rows are ordered by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrderBy {
    pub column: usize,
    pub desc: bool,
    pub nulls_last: bool,
}

/// Rows as bytes that order as an ORDER BY does, ties by row bytes.
///
/// ```text
///   [NULL or not, canonical (complemented if descending)] for each ordered column, then the row bytes
/// ```
#[derive(Clone, Debug)]
pub struct OrderCodec {
    rows: RowCodec,
    order: Vec<OrderBy>,
}

impl OrderCodec {
    pub fn new(types: Vec<ColType>, order: impl IntoIterator<Item = OrderBy>) -> OrderCodec {
        let mut order: Vec<OrderBy> = order.into_iter().collect();
        // Row bytes alone are in the order of the first columns.
        if order.iter().enumerate().all(|(i, o)| o.column == i && !o.desc && o.nulls_last) {
            order.clear();
        }
        OrderCodec { rows: RowCodec::new(types), order }
    }

    /// Calls `each` with the bytes of every row, one after another in `bytes`, and where in them its row bytes begin.
    pub fn encode(&self, cols: &[ArrayRef], len: usize, bytes: &mut Vec<u8>, mut each: impl FnMut(&mut Vec<u8>, usize)) {
        let mut rows = (Vec::new(), Vec::with_capacity(len));
        self.rows.encode_rows(cols, len, &mut rows.0, &mut rows.1);
        let readers: Vec<Reader<'_>> = self.order.iter().map(|o| Reader::new(&cols[o.column], &self.rows.types[o.column].ty)).collect();
        let mut from = 0;
        for (i, end) in rows.1.into_iter().enumerate() {
            for (o, reader) in self.order.iter().zip(&readers) {
                self.put(o, cols[o.column].is_null(i), bytes, |out| reader.canonical(i, out));
            }
            let split = bytes.len();
            bytes.extend_from_slice(&rows.0[from..end as usize]);
            from = end as usize;
            each(bytes, split);
        }
    }

    /// Appends the bytes of one row; answers where in them its row bytes begin.
    pub fn encode_row(&self, row: &[Value], out: &mut Vec<u8>) -> usize {
        for o in &self.order {
            let (v, ty) = (&row[o.column], &self.rows.types[o.column].ty);
            self.put(o, v.is_null(), out, |out| write_canonical(v, ty, out));
        }
        let split = out.len();
        self.rows.encode_row(row, out);
        split
    }

    fn put(&self, o: &OrderBy, is_null: bool, out: &mut Vec<u8>, canonical: impl FnOnce(&mut Vec<u8>)) {
        out.push(u8::from(is_null == o.nulls_last));
        if !is_null {
            let start = out.len();
            canonical(out);
            if o.desc {
                out[start..].iter_mut().for_each(|b| *b = !*b);
            }
        }
    }

    /// Appends the values of row bytes to `out`.
    pub fn decode(&self, row: &[u8], out: &mut Vec<Value>) {
        self.rows.decode_row_into(row, out);
    }
}

/// Reads one canonical form into a builder, without a `Value` for the simple types.
#[inline]
fn push_canonical(ty: &SqlType, b: &mut Bytes<'_>, builder: &mut ColumnBuilder) {
    if b.0.first() != Some(&PRESENT) {
        b.take(1);
        return builder.push_null();
    }
    match builder {
        ColumnBuilder::Bool(x) => x.append_value(tail::<1>(b)[0] != 0),
        ColumnBuilder::Int2(x) => x.append_value((u16::from_be_bytes(tail(b)) ^ 1 << 15) as i16),
        ColumnBuilder::Int4(x) => x.append_value((u32::from_be_bytes(tail(b)) ^ 1 << 31) as i32),
        ColumnBuilder::Int8(x) => x.append_value((u64::from_be_bytes(tail(b)) ^ 1 << 63) as i64),
        ColumnBuilder::UInt2(x) => x.append_value(u16::from_be_bytes(tail(b))),
        ColumnBuilder::UInt4(x) => x.append_value(u32::from_be_bytes(tail(b))),
        ColumnBuilder::UInt8(x) => x.append_value(u64::from_be_bytes(tail(b))),
        ColumnBuilder::Float4(x) => x.append_value(canonical::f32_from_key(u32::from_be_bytes(tail(b)))),
        ColumnBuilder::Float8(x) => x.append_value(canonical::f64_from_key(u64::from_be_bytes(tail(b)))),
        ColumnBuilder::Text(x) => {
            b.take(1);
            let raw = b.until_zero();
            match std::str::from_utf8(raw) {
                Ok(s) => x.append_value(s),
                Err(_) => x.append_value(canonical::lossy(raw)),
            }
        }
        ColumnBuilder::Binary(..) => builder.push(&read_canonical(ty, b)),
    }
}

/// The `N` bytes after the mark.
#[inline]
fn tail<const N: usize>(b: &mut Bytes<'_>) -> [u8; N] {
    b.take(1);
    b.fixed()
}
