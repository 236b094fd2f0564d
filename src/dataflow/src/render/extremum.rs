//! Minima and maxima of groups that never lose a row: of a group the best value is kept, and no row.
//!
//! ```text
//!   Number    int, date, time ...: the value, complemented for max        the least of a group
//!   Bytes     [canonical, complemented for max][row bytes][u32 length]    is the best
//! ```
//!
//! As [`super::order`] has it: NULLs are passed over, and of values that are equal but print differently the one with the least row bytes is shown.

use super::group::AggInput;
use arrow_array::cast::AsArray;
use arrow_array::types::{Int16Type, Int32Type, Int64Type};
use arrow_array::{Array, ArrayRef, PrimitiveArray};
use expr::agg::{write_order_key, Accum, Pack, Packing};
use expr::ColumnOrder;
use repr::error::state;
use repr::{column, Diff, RowCodec, SqlError, SqlType, Value};

/// The best value of some rows. They add up, but cannot be subtracted.
#[derive(Clone, PartialEq, Debug, Default)]
pub enum Best {
    #[default]
    None,
    Number(i64),
    Bytes(Box<[u8]>),
    /// A row was taken back, though the plan says that none ever is.
    TakenBack,
}

impl Best {
    pub fn plus_equals(&mut self, other: &Best) {
        match (&*self, other) {
            (_, Best::None) | (Best::TakenBack, _) => {}
            (Best::Number(a), Best::Number(b)) if a <= b => {}
            (Best::Bytes(a), Best::Bytes(b)) if a <= b => {}
            _ => self.clone_from(other),
        }
    }

    /// The aggregate's value. Errors: XX000 if a row was taken back.
    pub fn finalize(&self, input: &AggInput) -> Result<Value, SqlError> {
        let max = input.extremum() == Some(true);
        let ty = &input.types[0];
        match self {
            Best::None => Ok(Value::Null),
            Best::Number(n) => Ok(from_number(if max { !n } else { *n }, &ty.ty)),
            Best::Bytes(b) => {
                let (_, row) = super::order::split(b);
                Ok(RowCodec::new(vec![ty.clone()]).decode_column(row, 0))
            }
            Best::TakenBack => Err(SqlError::new(state::INTERNAL_ERROR, "a row was taken back from a relation that only grows")),
        }
    }
}

const NONE: u8 = Accum::KINDS;
const NUMBER: u8 = Accum::KINDS + 1;
const BYTES: u8 = Accum::KINDS + 2;
const TAKEN_BACK: u8 = Accum::KINDS + 3;

/// Told from a packed [`Accum`] by the first byte.
impl Pack for Best {
    fn pack(&self, out: &mut Packing) {
        match self {
            Best::None => out.push(NONE),
            Best::Number(n) => {
                out.push(NUMBER);
                n.pack(out);
            }
            Best::Bytes(b) => {
                out.push(BYTES);
                b.pack(out);
            }
            Best::TakenBack => out.push(TAKEN_BACK),
        }
    }
    fn unpack(from: &mut &[u8]) -> Best {
        match u8::unpack(from) {
            NUMBER => Best::Number(i64::unpack(from)),
            BYTES => Best::Bytes(Pack::unpack(from)),
            TAKEN_BACK => Best::TakenBack,
            _ => Best::None,
        }
    }
}

/// An argument column opened for reading.
pub enum Reader<'a> {
    Int2(&'a PrimitiveArray<Int16Type>),
    Int4(&'a PrimitiveArray<Int32Type>),
    Int8(&'a PrimitiveArray<Int64Type>),
    Other(&'a ArrayRef, &'a SqlType, RowCodec),
}

impl<'a> Reader<'a> {
    pub fn open(col: &'a ArrayRef, input: &'a AggInput) -> Reader<'a> {
        let ty = &input.types[0];
        match ty.ty.base() {
            SqlType::Int2 => Reader::Int2(col.as_primitive()),
            SqlType::Int4 | SqlType::Date => Reader::Int4(col.as_primitive()),
            SqlType::Int8 | SqlType::Money | SqlType::Time | SqlType::Timestamp | SqlType::TimestampTz => Reader::Int8(col.as_primitive()),
            _ => Reader::Other(col, &ty.ty, RowCodec::new(vec![ty.clone()])),
        }
    }

    /// Adds row `i`.
    pub fn add(&self, i: usize, diff: Diff, max: bool, into: &mut Best) {
        if diff < 0 {
            *into = Best::TakenBack;
            return;
        }
        let number = match self {
            Reader::Int2(c) if c.is_valid(i) => i64::from(c.value(i)),
            Reader::Int4(c) if c.is_valid(i) => i64::from(c.value(i)),
            Reader::Int8(c) if c.is_valid(i) => c.value(i),
            Reader::Other(col, ty, codec) if col.is_valid(i) => {
                let value = column::get(col, ty, i);
                let mut bytes = Vec::new();
                write_order_key(&value, ty, &ColumnOrder { column: 0, desc: max, nulls_last: true }, &mut bytes);
                let len = bytes.len() as u32;
                codec.encode_row(std::slice::from_ref(&value), &mut bytes);
                bytes.extend_from_slice(&len.to_le_bytes());
                return match into {
                    Best::Bytes(b) if **b <= *bytes => {}
                    Best::TakenBack => {}
                    _ => *into = Best::Bytes(bytes.into()),
                };
            }
            _ => return,
        };
        let number = if max { !number } else { number };
        match into {
            Best::Number(n) => *n = number.min(*n),
            Best::TakenBack => {}
            _ => *into = Best::Number(number),
        }
    }
}

/// The value of a type that is kept as a number.
fn from_number(n: i64, ty: &SqlType) -> Value {
    match ty.base() {
        SqlType::Int2 => Value::Int2(n as i16),
        SqlType::Int4 => Value::Int4(n as i32),
        SqlType::Date => Value::Date(n as i32),
        SqlType::Time => Value::Time(n),
        SqlType::Timestamp => Value::Timestamp(n),
        SqlType::TimestampTz => Value::TimestampTz(n),
        _ => Value::Int8(n),
    }
}
