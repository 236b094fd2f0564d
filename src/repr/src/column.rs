//! Columns: the physical (Arrow) form of each type, reading one value, building from values.
//!
//! | SQL type | Arrow array |
//! |---|---|
//! | bool | Boolean |
//! | int2, int4, int8, money | Int16, Int32, Int64 |
//! | date; time, timestamp, timestamptz | Int32; Int64 |
//! | uint2, uint4, uint8, xid8; oid, xid, reg*, enum | UInt16, UInt32, UInt64; UInt32 |
//! | float4, float8 | Float32, Float64 |
//! | text, varchar, char(n), name, "char", bit, varbit, json, jsonpath, unknown | Utf8 |
//! | all others | Binary, the bytes of [`encode_value`] |
//!
//! Not here: key bytes (`row`), the bytes in Binary columns (`value_bytes`).

use crate::error::{state, SqlError};
use crate::types::SqlType;
use crate::value::Value;
use arrow_array::builder::*;
use arrow_array::cast::AsArray;
use arrow_array::types::*;
use arrow_array::{Array, ArrayRef, UInt32Array};
use arrow_schema::DataType;
use std::sync::Arc;

pub use crate::value_bytes::{decode_numeric, decode_value, encode_numeric, encode_value};

/// The Arrow type that holds `ty`.
pub fn physical(ty: &SqlType) -> DataType {
    let ty = ty.base();
    match ty {
        SqlType::Bool => DataType::Boolean,
        SqlType::Int2 => DataType::Int16,
        SqlType::Int4 | SqlType::Date => DataType::Int32,
        SqlType::Int8 | SqlType::Money | SqlType::Time | SqlType::Timestamp | SqlType::TimestampTz => DataType::Int64,
        SqlType::UInt2 => DataType::UInt16,
        SqlType::UInt4 | SqlType::Oid | SqlType::Xid | SqlType::Cid | SqlType::Reg(_) | SqlType::Enum(_) => DataType::UInt32,
        SqlType::UInt8 | SqlType::Xid8 | SqlType::Tid | SqlType::PgLsn => DataType::UInt64,
        SqlType::Float4 => DataType::Float32,
        SqlType::Float8 => DataType::Float64,
        SqlType::Text
        | SqlType::Varchar
        | SqlType::Bpchar
        | SqlType::Char
        | SqlType::Name
        | SqlType::Bit
        | SqlType::VarBit
        | SqlType::Json
        | SqlType::JsonPath
        | SqlType::Snapshot
        | SqlType::TxidSnapshot
        | SqlType::AclItem
        | SqlType::RefCursor
        | SqlType::Unknown
        | SqlType::Void => DataType::Utf8,
        _ => DataType::Binary,
    }
}

/// Value `i` of a column of type `ty`.
pub fn get(col: &ArrayRef, ty: &SqlType, i: usize) -> Value {
    let ty = ty.base();
    if col.is_null(i) {
        return Value::Null;
    }
    match ty {
        SqlType::Bool => Value::Bool(col.as_boolean().value(i)),
        SqlType::Int2 => Value::Int2(col.as_primitive::<Int16Type>().value(i)),
        SqlType::Int4 => Value::Int4(col.as_primitive::<Int32Type>().value(i)),
        SqlType::Date => Value::Date(col.as_primitive::<Int32Type>().value(i)),
        SqlType::Int8 | SqlType::Money => Value::Int8(col.as_primitive::<Int64Type>().value(i)),
        SqlType::Time => Value::Time(col.as_primitive::<Int64Type>().value(i)),
        SqlType::Timestamp => Value::Timestamp(col.as_primitive::<Int64Type>().value(i)),
        SqlType::TimestampTz => Value::TimestampTz(col.as_primitive::<Int64Type>().value(i)),
        SqlType::UInt2 => Value::UInt2(col.as_primitive::<UInt16Type>().value(i)),
        SqlType::UInt4 | SqlType::Oid | SqlType::Xid | SqlType::Cid | SqlType::Reg(_) | SqlType::Enum(_) => {
            Value::UInt4(col.as_primitive::<UInt32Type>().value(i))
        }
        SqlType::UInt8 | SqlType::Xid8 | SqlType::Tid | SqlType::PgLsn => Value::UInt8(col.as_primitive::<UInt64Type>().value(i)),
        SqlType::Float4 => Value::Float4(col.as_primitive::<Float32Type>().value(i)),
        SqlType::Float8 => Value::Float8(col.as_primitive::<Float64Type>().value(i)),
        SqlType::Bytea | SqlType::MacAddr | SqlType::MacAddr8 | SqlType::Geo(_) | SqlType::TsVector | SqlType::TsQuery => {
            Value::Bytea(col.as_binary::<i32>().value(i).to_vec())
        }
        _ => match col.data_type() {
            DataType::Utf8 => Value::Text(col.as_string::<i32>().value(i).to_owned()),
            _ => decode_value(ty, col.as_binary::<i32>().value(i)),
        },
    }
}

/// A column in the making.
pub enum ColumnBuilder {
    Bool(BooleanBuilder),
    Int2(Int16Builder),
    Int4(Int32Builder),
    Int8(Int64Builder),
    UInt2(UInt16Builder),
    UInt4(UInt32Builder),
    UInt8(UInt64Builder),
    Float4(Float32Builder),
    Float8(Float64Builder),
    Text(StringBuilder),
    Binary(BinaryBuilder, SqlType, Vec<u8>),
}

impl ColumnBuilder {
    pub fn new(ty: &SqlType, capacity: usize) -> ColumnBuilder {
        match physical(ty) {
            DataType::Boolean => ColumnBuilder::Bool(BooleanBuilder::with_capacity(capacity)),
            DataType::Int16 => ColumnBuilder::Int2(Int16Builder::with_capacity(capacity)),
            DataType::Int32 => ColumnBuilder::Int4(Int32Builder::with_capacity(capacity)),
            DataType::Int64 => ColumnBuilder::Int8(Int64Builder::with_capacity(capacity)),
            DataType::UInt16 => ColumnBuilder::UInt2(UInt16Builder::with_capacity(capacity)),
            DataType::UInt32 => ColumnBuilder::UInt4(UInt32Builder::with_capacity(capacity)),
            DataType::UInt64 => ColumnBuilder::UInt8(UInt64Builder::with_capacity(capacity)),
            DataType::Float32 => ColumnBuilder::Float4(Float32Builder::with_capacity(capacity)),
            DataType::Float64 => ColumnBuilder::Float8(Float64Builder::with_capacity(capacity)),
            DataType::Utf8 => ColumnBuilder::Text(StringBuilder::with_capacity(capacity, capacity * 8)),
            _ => ColumnBuilder::Binary(BinaryBuilder::with_capacity(capacity, capacity * 8), ty.base().clone(), Vec::new()),
        }
    }

    pub fn push_null(&mut self) {
        match self {
            ColumnBuilder::Bool(b) => b.append_null(),
            ColumnBuilder::Int2(b) => b.append_null(),
            ColumnBuilder::Int4(b) => b.append_null(),
            ColumnBuilder::Int8(b) => b.append_null(),
            ColumnBuilder::UInt2(b) => b.append_null(),
            ColumnBuilder::UInt4(b) => b.append_null(),
            ColumnBuilder::UInt8(b) => b.append_null(),
            ColumnBuilder::Float4(b) => b.append_null(),
            ColumnBuilder::Float8(b) => b.append_null(),
            ColumnBuilder::Text(b) => b.append_null(),
            ColumnBuilder::Binary(b, _, _) => b.append_null(),
        }
    }

    /// Appends a value of the column's type.
    /// Panics: if the value's variant does not belong to the column's type (a planner bug), or there is no room for it
    /// (see [`ColumnBuilder::try_push`], for where values come from a computation).
    pub fn push(&mut self, value: &Value) {
        assert!(self.push_if_fits(value), "more than 2 GB in a column of one batch");
    }

    /// Appends a computed value of the column's type if there is [room](has_room) for it.
    /// Panics: if the value's variant does not belong to the column's type (a planner bug).
    pub fn try_push(&mut self, value: &Value) -> bool {
        self.push_where(value, has_room)
    }

    /// Appends a value of the column's type if the column can hold it at all.
    pub fn push_if_fits(&mut self, value: &Value) -> bool {
        self.push_where(value, |have, more| fits(have.saturating_add(more)))
    }

    fn push_where(&mut self, value: &Value, has_room: impl Fn(usize, usize) -> bool) -> bool {
        match (self, value) {
            (s, Value::Null) => s.push_null(),
            (ColumnBuilder::Bool(b), Value::Bool(v)) => b.append_value(*v),
            (ColumnBuilder::Int2(b), Value::Int2(v)) => b.append_value(*v),
            (ColumnBuilder::Int4(b), Value::Int4(v) | Value::Date(v)) => b.append_value(*v),
            (ColumnBuilder::Int8(b), Value::Int8(v) | Value::Time(v) | Value::Timestamp(v) | Value::TimestampTz(v)) => b.append_value(*v),
            (ColumnBuilder::UInt2(b), Value::UInt2(v)) => b.append_value(*v),
            (ColumnBuilder::UInt4(b), Value::UInt4(v)) => b.append_value(*v),
            (ColumnBuilder::UInt8(b), Value::UInt8(v)) => b.append_value(*v),
            (ColumnBuilder::Float4(b), Value::Float4(v)) => b.append_value(*v),
            (ColumnBuilder::Float8(b), Value::Float8(v)) => b.append_value(*v),
            (ColumnBuilder::Text(b), Value::Text(v)) => {
                if !has_room(b.values_slice().len(), v.len()) {
                    return false;
                }
                b.append_value(v);
            }
            (ColumnBuilder::Binary(b, _, _), Value::Bytea(v)) => {
                if !has_room(b.values_slice().len(), v.len()) {
                    return false;
                }
                b.append_value(v);
            }
            (ColumnBuilder::Binary(b, ty, buf), v) => {
                buf.clear();
                encode_value(v, ty, buf);
                if !has_room(b.values_slice().len(), buf.len()) {
                    return false;
                }
                b.append_value(&*buf);
            }
            (_, v) => panic!("value {v:?} in a column of another type"),
        }
        true
    }

    /// Bytes of text and bytes that the column holds.
    pub fn bytes(&self) -> usize {
        match self {
            ColumnBuilder::Text(b) => b.values_slice().len(),
            ColumnBuilder::Binary(b, _, _) => b.values_slice().len(),
            _ => 0,
        }
    }

    pub fn finish(self) -> ArrayRef {
        match self {
            ColumnBuilder::Bool(mut b) => Arc::new(b.finish()),
            ColumnBuilder::Int2(mut b) => Arc::new(b.finish()),
            ColumnBuilder::Int4(mut b) => Arc::new(b.finish()),
            ColumnBuilder::Int8(mut b) => Arc::new(b.finish()),
            ColumnBuilder::UInt2(mut b) => Arc::new(b.finish()),
            ColumnBuilder::UInt4(mut b) => Arc::new(b.finish()),
            ColumnBuilder::UInt8(mut b) => Arc::new(b.finish()),
            ColumnBuilder::Float4(mut b) => Arc::new(b.finish()),
            ColumnBuilder::Float8(mut b) => Arc::new(b.finish()),
            ColumnBuilder::Text(mut b) => Arc::new(b.finish()),
            ColumnBuilder::Binary(mut b, _, _) => Arc::new(b.finish()),
        }
    }
}

/// Bytes that a column of text or bytes can hold at all: offsets are 32 bits wide.
const OFFSET_MAX: usize = i32::MAX as usize;
/// Bytes of text or bytes that a computed column of several rows holds. Whoever computes a longer one does so in pieces.
const ROOM: usize = 64 << 20;

/// Whether a computed column that holds `have` bytes can take `more`. A value alone always has room, up to 2 GB.
#[inline]
pub fn has_room(have: usize, more: usize) -> bool {
    match have {
        0 => more <= OFFSET_MAX,
        _ => have.saturating_add(more) <= ROOM,
    }
}

/// Whether a column can hold so many bytes of text or bytes at all.
pub fn fits(bytes: usize) -> bool {
    bytes <= OFFSET_MAX
}

const TOO_LARGE: &str = "a value takes more than 2 GB";

/// The error of a row for which a computed column has no room. One row alone means it; of several rows the first
/// that has it says where the next piece begins.
pub fn too_large() -> SqlError {
    SqlError::new(state::PROGRAM_LIMIT_EXCEEDED, TOO_LARGE).with_hint("make the value smaller")
}

/// Whether an error is [`too_large`].
pub fn is_too_large(e: &SqlError) -> bool {
    e.message == TOO_LARGE
}

/// Bytes that row `i` takes in a column of text or bytes; 0 in others.
#[inline]
pub fn value_bytes(col: &dyn Array, i: usize) -> usize {
    match col.data_type() {
        DataType::Utf8 => col.as_string::<i32>().value_length(i) as usize,
        DataType::Binary => col.as_binary::<i32>().value_length(i) as usize,
        _ => 0,
    }
}

/// Bytes of text and bytes in a column.
pub fn column_bytes(col: &dyn Array) -> usize {
    let of = |offsets: &[i32]| offsets.last().zip(offsets.first()).map_or(0, |(to, from)| (to - from) as usize);
    match col.data_type() {
        DataType::Utf8 => of(col.as_string::<i32>().value_offsets()),
        DataType::Binary => of(col.as_binary::<i32>().value_offsets()),
        _ => 0,
    }
}

/// `len` copies of a column's one row, or as many as there is room for: the rows after them are NULL, and their number comes back.
pub fn spread(col: &ArrayRef, len: usize) -> (ArrayRef, usize) {
    let bytes = value_bytes(col, 0);
    let fit = if bytes.saturating_mul(len) <= ROOM { len } else { len.min((ROOM / bytes).max(1)) };
    let rows: UInt32Array = (0..len).map(|i| (i < fit).then_some(0)).collect();
    (arrow_select::take::take(col, &rows, None).expect("the column has one row"), fit)
}

/// The rows of `parts` that `source` names as (part, row), or as many of the first as there is room for: the rows after them come
/// from `(0, 0)`, and their number comes back.
pub fn interleave(parts: &[&dyn Array], source: &[(usize, usize)]) -> (ArrayRef, usize) {
    let mut have = 0usize;
    let fit = source
        .iter()
        .position(|(p, row)| {
            let more = value_bytes(parts[*p], *row);
            let full = !has_room(have, more);
            have += more;
            full
        })
        .unwrap_or(source.len());
    let made = if fit == source.len() {
        arrow_select::interleave::interleave(parts, source)
    } else {
        let cut: Vec<(usize, usize)> = source.iter().enumerate().map(|(i, s)| if i < fit { *s } else { (0, 0) }).collect();
        arrow_select::interleave::interleave(parts, &cut)
    };
    (made.expect("the parts are of one type"), fit)
}

/// A column of `len` copies of `value`.
pub fn repeat(value: &Value, ty: &SqlType, len: usize) -> ArrayRef {
    let mut b = ColumnBuilder::new(ty, len);
    for _ in 0..len {
        b.push(value);
    }
    b.finish()
}
