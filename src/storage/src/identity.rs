//! Row identity: bytes that are equal exactly if two rows of a shard are the same row, display form included.
//!
//! They order the rows of a batch file, so that files merge as sorted runs. They are made from the physical (Arrow) columns, whose
//! Binary forms are exact, so no SQL type is decoded here. They are never stored.
//!
//! ```text
//!   NULL 0x00 | value 0x01 then: integers big endian with the sign flipped, floats in total order (one NaN), length u32 + bytes
//! ```

use arrow_array::cast::AsArray;
use arrow_array::types::*;
use arrow_array::{Array, ArrayRef, BinaryArray, BooleanArray, PrimitiveArray, StringArray};
use arrow_schema::DataType;

enum Column<'a> {
    Bool(&'a BooleanArray),
    Int2(&'a PrimitiveArray<Int16Type>),
    Int4(&'a PrimitiveArray<Int32Type>),
    Int8(&'a PrimitiveArray<Int64Type>),
    UInt2(&'a PrimitiveArray<UInt16Type>),
    UInt4(&'a PrimitiveArray<UInt32Type>),
    UInt8(&'a PrimitiveArray<UInt64Type>),
    Float4(&'a PrimitiveArray<Float32Type>),
    Float8(&'a PrimitiveArray<Float64Type>),
    Text(&'a StringArray),
    Binary(&'a BinaryArray),
}

impl Column<'_> {
    fn of(array: &ArrayRef) -> Column<'_> {
        match array.data_type() {
            DataType::Boolean => Column::Bool(array.as_boolean()),
            DataType::Int16 => Column::Int2(array.as_primitive()),
            DataType::Int32 => Column::Int4(array.as_primitive()),
            DataType::Int64 => Column::Int8(array.as_primitive()),
            DataType::UInt16 => Column::UInt2(array.as_primitive()),
            DataType::UInt32 => Column::UInt4(array.as_primitive()),
            DataType::UInt64 => Column::UInt8(array.as_primitive()),
            DataType::Float32 => Column::Float4(array.as_primitive()),
            DataType::Float64 => Column::Float8(array.as_primitive()),
            DataType::Utf8 => Column::Text(array.as_string()),
            _ => Column::Binary(array.as_binary()),
        }
    }

    fn put(&self, i: usize, out: &mut Vec<u8>) {
        match self {
            Column::Bool(a) => out.push(u8::from(a.value(i))),
            Column::Int2(a) => out.extend_from_slice(&(a.value(i) ^ i16::MIN).to_be_bytes()),
            Column::Int4(a) => out.extend_from_slice(&(a.value(i) ^ i32::MIN).to_be_bytes()),
            Column::Int8(a) => out.extend_from_slice(&(a.value(i) ^ i64::MIN).to_be_bytes()),
            Column::UInt2(a) => out.extend_from_slice(&a.value(i).to_be_bytes()),
            Column::UInt4(a) => out.extend_from_slice(&a.value(i).to_be_bytes()),
            Column::UInt8(a) => out.extend_from_slice(&a.value(i).to_be_bytes()),
            Column::Float4(a) => {
                let v = a.value(i);
                let bits = if v.is_nan() { f32::NAN.to_bits() & (u32::MAX >> 1) } else { v.to_bits() };
                out.extend_from_slice(&(if bits >> 31 == 1 { !bits } else { bits | 1 << 31 }).to_be_bytes());
            }
            Column::Float8(a) => {
                let v = a.value(i);
                let bits = if v.is_nan() { f64::NAN.to_bits() & (u64::MAX >> 1) } else { v.to_bits() };
                out.extend_from_slice(&(if bits >> 63 == 1 { !bits } else { bits | 1 << 63 }).to_be_bytes());
            }
            Column::Text(a) => put_slice(a.value(i).as_bytes(), out),
            Column::Binary(a) => put_slice(a.value(i), out),
        }
    }

    fn is_null(&self, i: usize) -> bool {
        match self {
            Column::Bool(a) => a.is_null(i),
            Column::Int2(a) => a.is_null(i),
            Column::Int4(a) => a.is_null(i),
            Column::Int8(a) => a.is_null(i),
            Column::UInt2(a) => a.is_null(i),
            Column::UInt4(a) => a.is_null(i),
            Column::UInt8(a) => a.is_null(i),
            Column::Float4(a) => a.is_null(i),
            Column::Float8(a) => a.is_null(i),
            Column::Text(a) => a.is_null(i),
            Column::Binary(a) => a.is_null(i),
        }
    }
}

fn put_slice(bytes: &[u8], out: &mut Vec<u8>) {
    // Arrow's own offsets are i32, so a value is shorter than this.
    out.extend_from_slice(&(bytes.len() as u32).to_be_bytes());
    out.extend_from_slice(bytes);
}

/// The identity bytes of rows, one after another.
#[derive(Default)]
pub(crate) struct Identities {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Identities {
    pub(crate) fn of(cols: &[ArrayRef], len: usize) -> Identities {
        let mut out = Identities { bytes: Vec::new(), ends: Vec::with_capacity(len) };
        let cols: Vec<Column> = cols.iter().map(Column::of).collect();
        for i in 0..len {
            for c in &cols {
                if c.is_null(i) {
                    out.bytes.push(0);
                } else {
                    out.bytes.push(1);
                    c.put(i, &mut out.bytes);
                }
            }
            out.ends.push(out.bytes.len());
        }
        out
    }

    pub(crate) fn get(&self, i: usize) -> &[u8] {
        let start = if i == 0 { 0 } else { self.ends[i - 1] };
        &self.bytes[start..self.ends[i]]
    }
}
