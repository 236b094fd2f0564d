//! Row identity: bytes that are equal exactly if two rows of a shard are the same row, display form included.
//!
//! They order the rows of a batch file, so that files merge as sorted runs. They are made from the physical (Arrow) columns, whose
//! Binary forms are exact, so no SQL type is decoded here. They are never stored. Rows that are in memory anyway are ordered without
//! making them: most rows differ in the few bits of them that tell these rows apart ([`Rows::heads`]).
//!
//! ```text
//!   NULL 0x00 | value 0x01 then: integers big endian with the sign flipped, floats in total order (one NaN), length u32 + bytes
//! ```

use arrow_array::cast::AsArray;
use arrow_array::types::*;
use arrow_array::{Array, ArrayRef, BinaryArray, BooleanArray, PrimitiveArray, StringArray};
use arrow_schema::DataType;
use std::cmp::Ordering;

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

    /// A value of fixed width as a number in the order of its bytes; `None` for text and bytes, which `slice` gives.
    fn number(&self, i: usize) -> Option<u64> {
        Some(match self {
            Column::Bool(a) => u64::from(a.value(i)),
            Column::Int2(a) => u64::from((a.value(i) ^ i16::MIN).cast_unsigned()),
            Column::Int4(a) => u64::from((a.value(i) ^ i32::MIN).cast_unsigned()),
            Column::Int8(a) => (a.value(i) ^ i64::MIN).cast_unsigned(),
            Column::UInt2(a) => u64::from(a.value(i)),
            Column::UInt4(a) => u64::from(a.value(i)),
            Column::UInt8(a) => a.value(i),
            Column::Float4(a) => {
                let v = a.value(i);
                let bits = if v.is_nan() { f32::NAN.to_bits() & (u32::MAX >> 1) } else { v.to_bits() };
                u64::from(if bits >> 31 == 1 { !bits } else { bits | 1 << 31 })
            }
            Column::Float8(a) => {
                let v = a.value(i);
                let bits = if v.is_nan() { f64::NAN.to_bits() & (u64::MAX >> 1) } else { v.to_bits() };
                if bits >> 63 == 1 {
                    !bits
                } else {
                    bits | 1 << 63
                }
            }
            Column::Text(_) | Column::Binary(_) => return None,
        })
    }

    fn slice(&self, i: usize) -> &[u8] {
        match self {
            Column::Text(a) => a.value(i).as_bytes(),
            Column::Binary(a) => a.value(i),
            _ => &[],
        }
    }

    /// Bytes of a value of fixed width; 0 for text and bytes.
    fn width(&self) -> usize {
        match self {
            Column::Bool(_) => 1,
            Column::Int2(_) | Column::UInt2(_) => 2,
            Column::Int4(_) | Column::UInt4(_) | Column::Float4(_) => 4,
            Column::Int8(_) | Column::UInt8(_) | Column::Float8(_) => 8,
            Column::Text(_) | Column::Binary(_) => 0,
        }
    }

    fn put(&self, i: usize, out: &mut Vec<u8>) {
        match self.number(i) {
            Some(n) => out.extend_from_slice(&n.to_be_bytes()[8 - self.width()..]),
            None => put_slice(self.slice(i), out),
        }
    }

    /// How many bytes all these values of text or bytes begin with alike.
    fn shared(&self, mut rows: impl Iterator<Item = usize>) -> usize {
        let Some(first) = rows.next() else { return 0 };
        let mut same = self.slice(first);
        for i in rows {
            let value = self.slice(i);
            if !value.starts_with(same) {
                same = &same[..same.iter().zip(value).take_while(|(a, b)| a == b).count()];
            }
        }
        same.len()
    }

    fn cmp(&self, i: usize, j: usize) -> Ordering {
        match (self.is_null(i), self.is_null(j)) {
            (false, false) => {}
            (x, y) => return y.cmp(&x),
        }
        let lengths_first = || {
            let (x, y) = (self.slice(i), self.slice(j));
            x.len().cmp(&y.len()).then_with(|| x.cmp(y))
        };
        self.number(i).cmp(&self.number(j)).then_with(lengths_first)
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

/// Rows in memory, ordered as their identities are.
pub(crate) struct Rows<'a> {
    cols: Vec<Column<'a>>,
    len: usize,
}

/// Bits of a head.
const HEAD: u32 = u128::BITS;

impl<'a> Rows<'a> {
    pub(crate) fn of(cols: &'a [ArrayRef], len: usize) -> Rows<'a> {
        Rows { cols: cols.iter().map(Column::of).collect(), len }
    }

    pub(crate) fn cmp(&self, i: usize, j: usize) -> Ordering {
        self.cols.iter().map(|c| c.cmp(i, j)).find(|o| o.is_ne()).unwrap_or(Ordering::Equal)
    }

    /// Bytes of the identity of row `i`.
    pub(crate) fn bytes(&self, i: usize) -> usize {
        let of = |c: &Column| match c.width() {
            _ if c.is_null(i) => 1,
            0 => 5 + c.slice(i).len(),
            n => 1 + n,
        };
        self.cols.iter().map(of).sum()
    }

    /// For each row a number made of the first bits in which identities of these rows differ: where two numbers differ rows order as they
    /// do. The flag: rows with equal numbers are equal.
    pub(crate) fn heads(&self) -> (Vec<u128>, bool) {
        let (mut heads, mut room) = (vec![0; self.len], HEAD);
        for c in &self.cols {
            let valid = || (0..self.len).filter(|i| !c.is_null(*i));
            let nulls = u128::from((0..self.len).any(|i| c.is_null(i)));
            // Of text and bytes the length comes first.
            let number = |i: usize| c.number(i).unwrap_or_else(|| c.slice(i).len() as u64);
            let (least, most) = valid().map(number).fold((u64::MAX, 0), |(a, b), n| (a.min(n), b.max(n)));
            let span = u128::from(most.saturating_sub(least)) + nulls;
            let placed = |i: usize| if c.is_null(i) { 0 } else { u128::from(number(i) - least) + nulls };
            if !append(&mut heads, &mut room, HEAD - span.leading_zeros(), placed) {
                return (heads, false);
            }
            if c.width() == 0 {
                let same = c.shared(valid());
                let bits = most.saturating_sub(same as u64).saturating_mul(8);
                let Ok(bits) = u32::try_from(bits.min(u64::from(HEAD) + 1)) else { return (heads, false) };
                let text = |i: usize| {
                    let mut first = [0; 16];
                    let rest = if c.is_null(i) { &[][..] } else { &c.slice(i)[same..] };
                    let n = rest.len().min(16);
                    first[..n].copy_from_slice(&rest[..n]);
                    u128::from_be_bytes(first) >> (HEAD - bits.clamp(1, HEAD))
                };
                // What is longer than a head gives its first bytes.
                let whole = bits <= HEAD;
                if !(append(&mut heads, &mut room, bits.min(HEAD), text) && whole) {
                    return (heads, false);
                }
            }
        }
        (heads, true)
    }
}

/// Appends `bits` of `number` to each head, as many as there is room for; true if all found room.
fn append(heads: &mut [u128], room: &mut u32, bits: u32, number: impl Fn(usize) -> u128) -> bool {
    let some = bits.min(*room);
    if some > 0 {
        for (i, h) in heads.iter_mut().enumerate() {
            *h = h.checked_shl(some).unwrap_or(0) | number(i) >> (bits - some);
        }
    }
    *room -= some;
    some == bits
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::{Float64Array, Int16Array, Int64Array};
    use std::sync::Arc;

    /// Columns whose values differ late, early, in length, in being there, and not at all.
    fn batches() -> Vec<(Vec<ArrayRef>, usize)> {
        let ints: ArrayRef = Arc::new(Int64Array::from(vec![Some(5), None, Some(i64::MIN), Some(i64::MAX), Some(5), Some(-1), None, Some(5)]));
        let few: ArrayRef = Arc::new(Int64Array::from(vec![7, 9, 7, 8, 7, 9, 9, 7]));
        let small: ArrayRef = Arc::new(Int16Array::from(vec![3, -3, 3, 3, 3, 0, -3, 3]));
        let flags: ArrayRef = Arc::new(BooleanArray::from(vec![Some(true), Some(false), None, Some(true), Some(true), None, Some(false), Some(true)]));
        let floats: ArrayRef = Arc::new(Float64Array::from(vec![0.0, -0.0, f64::NAN, -f64::NAN, 0.0, f64::NEG_INFINITY, -0.0, 0.0]));
        let texts: ArrayRef = Arc::new(StringArray::from(vec![
            Some("prefix-a"),
            Some("prefix-"),
            Some("prefix-b"),
            None,
            Some("prefix-a"),
            Some("prefix-aa"),
            Some(""),
            Some("prefix-c"),
        ]));
        let long: Vec<String> = (0..8).map(|i| format!("{}{}", "x".repeat(40), i % 3)).collect();
        let long: ArrayRef = Arc::new(StringArray::from(long));
        let wide: Vec<Option<Vec<u8>>> = [1, 2, 3, 1, 1, 0, 2, 1].iter().map(|n| (*n > 0).then(|| [vec![*n], vec![9; 30]].concat())).collect();
        let wide: ArrayRef = Arc::new(BinaryArray::from_iter(wide));
        let same: ArrayRef = Arc::new(StringArray::from(vec!["constant"; 8]));
        let all = [&ints, &few, &small, &flags, &floats, &texts, &long, &wide, &same];
        let mut out: Vec<(Vec<ArrayRef>, usize)> = vec![(vec![], 8), (vec![few.slice(0, 0)], 0)];
        for a in all {
            out.push((vec![a.clone()], 8));
            for b in all {
                out.push((vec![a.clone(), b.clone()], 8));
                out.push((vec![few.clone(), a.clone(), b.clone(), ints.clone(), floats.clone()], 8));
            }
        }
        out
    }

    #[test]
    fn heads_and_comparisons_order_rows_as_identities_do() {
        let mut exact = 0;
        for (cols, len) in batches() {
            let (ids, rows) = (Identities::of(&cols, len), Rows::of(&cols, len));
            let (heads, whole) = rows.heads();
            assert_eq!(heads.len(), len);
            exact += usize::from(whole);
            for i in 0..len {
                assert_eq!(rows.bytes(i), ids.get(i).len());
                for j in 0..len {
                    let order = ids.get(i).cmp(ids.get(j));
                    assert_eq!(rows.cmp(i, j), order, "rows {i} and {j} of {cols:?}");
                    match heads[i].cmp(&heads[j]) {
                        Ordering::Equal => assert!(!whole || order.is_eq(), "equal heads of rows {i} and {j} of {cols:?}"),
                        head => assert_eq!(head, order, "heads of rows {i} and {j} of {cols:?}"),
                    }
                }
            }
        }
        assert!(exact > 40, "{exact} times the heads said all");
    }
}
