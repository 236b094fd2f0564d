//! Bit strings (`bit`, `bit varying`): a value is its digits as text, so `i`th bit is `i`th byte.
//!
//! Not here: comparison (`cmp`: the order of the digits is the order of the bits), text and wire forms (`repr`), lengths (`cast`).

use super::lift::Str;
use super::Entry;
use crate::{f1, f2, f3, val};
use repr::error::state;
use repr::text::plain::BITS_MAX;
use repr::{SqlError, Value};

fn combine(a: &str, b: &str, what: &str, f: fn(u8, u8) -> u8) -> Result<String, SqlError> {
    if a.len() != b.len() {
        return Err(SqlError::new(state::STRING_DATA_LENGTH_MISMATCH, format!("cannot {what} bit strings of different sizes")));
    }
    Ok(a.bytes().zip(b.bytes()).map(|(x, y)| char::from(b'0' + (f(x, y) & 1))).collect())
}

/// `a & b`. Errors: 22026 for lengths that differ, as its two siblings.
pub fn and(a: &str, b: &str) -> Result<String, SqlError> {
    combine(a, b, "AND", |x, y| x & y)
}
pub fn or(a: &str, b: &str) -> Result<String, SqlError> {
    combine(a, b, "OR", |x, y| x | y)
}
pub fn xor(a: &str, b: &str) -> Result<String, SqlError> {
    combine(a, b, "XOR", |x, y| x ^ y)
}

/// Shifted right by `n`, left if it is negative; the length stays.
fn shift(s: &str, n: i64) -> String {
    let by = usize::try_from(n.unsigned_abs()).unwrap_or(usize::MAX).min(s.len());
    let zeros = "0".repeat(by);
    if n >= 0 {
        zeros + &s[..s.len() - by]
    } else {
        s[by..].to_owned() + &zeros
    }
}

fn cat(a: &str, b: &str) -> Result<String, SqlError> {
    let n = a.len() + b.len();
    if n > BITS_MAX {
        return Err(SqlError::new(state::PROGRAM_LIMIT_EXCEEDED, format!("bit string length exceeds the maximum allowed ({BITS_MAX})")));
    }
    Ok([a, b].concat())
}

/// `n` bits from position `from` (from 1) on, those that exist; to the end without `n`. Errors: 22011.
fn substr(s: &str, from: i32, n: Option<i32>) -> Result<&str, SqlError> {
    let start = i64::from(from) - 1;
    let end = match n {
        None => i64::MAX,
        Some(n) if n < 0 => return Err(SqlError::new(state::SUBSTRING_ERROR, "negative substring length not allowed")),
        Some(n) => start + i64::from(n),
    };
    let at = |p: i64| usize::try_from(p.max(0)).unwrap_or(0).min(s.len());
    Ok(s.get(at(start)..at(end)).unwrap_or(""))
}

fn overlay(s: &str, new: &str, from: i32, n: i32) -> Result<String, SqlError> {
    if from <= 0 {
        return Err(SqlError::new(state::SUBSTRING_ERROR, "negative substring length not allowed"));
    }
    let after = from.checked_add(n).ok_or_else(|| SqlError::new(state::NUMERIC_VALUE_OUT_OF_RANGE, "integer out of range"))?;
    Ok([substr(s, 1, Some(from - 1))?, new, substr(s, after, None)?].concat())
}

fn index(s: &str, i: i32) -> Result<usize, SqlError> {
    usize::try_from(i).ok().filter(|i| *i < s.len()).ok_or_else(|| {
        let last = s.len() as i64 - 1;
        SqlError::new(state::ARRAY_SUBSCRIPT_ERROR, format!("bit index {i} out of valid range (0..{last})"))
    })
}

fn set_bit(s: &str, i: i32, bit: i32) -> Result<String, SqlError> {
    let i = index(s, i)?;
    let digit = match bit {
        0 => "0",
        1 => "1",
        _ => return Err(SqlError::new(state::INVALID_PARAMETER_VALUE, "new bit must be 0 or 1")),
    };
    Ok([&s[..i], digit, &s[i + 1..]].concat())
}

/// The low `n` bits of a number, its sign extended.
fn from_int(v: i64, n: i32) -> String {
    let n = usize::try_from(n).ok().filter(|n| (1..=BITS_MAX).contains(n)).unwrap_or(1);
    (0..n).rev().map(|i| if v >> i.min(63) & 1 == 1 { '1' } else { '0' }).collect()
}

/// The number that `bits` are, at most `width` of them.
fn to_int(s: &str, width: usize, ty: &str) -> Result<i64, SqlError> {
    if s.len() > width {
        return Err(super::arith::out_of_range(ty));
    }
    Ok(s.bytes().fold(0i64, |v, b| v << 1 | i64::from(b & 1)))
}

pub const FUNCS: &[Entry] = &[
    f2!(? ["bit_and"], Str, Str => String, and),
    f2!(? ["bit_or"], Str, Str => String, or),
    f2!(? ["bitxor"], Str, Str => String, xor),
    f1!(["bitnot"], Str => String, |s| s.bytes().map(|b| if b == b'0' { '1' } else { '0' }).collect()),
    f2!(["bitshiftleft"], Str, i32 => String, |s, n| shift(s, -i64::from(n))),
    f2!(["bitshiftright"], Str, i32 => String, |s, n| shift(s, n.into())),
    f2!(? ["bitcat"], Str, Str => String, cat),
    f3!(? ["bitsubstr"], Str, i32, i32 => String, |s, a, n| substr(s, a, Some(n)).map(str::to_owned)),
    f2!(? ["bitsubstr_no_len"], Str, i32 => String, |s, a| substr(s, a, None).map(str::to_owned)),
    f2!(["bitposition"], Str, Str => i32, |s, sub| match s.find(sub) {
        // Nothing is found in nothing.
        Some(_) if s.is_empty() => 0,
        Some(i) => i as i32 + 1,
        None => 0,
    }),
    val!(? ["bitoverlay"], |a, _| match a {
        [Value::Text(s), Value::Text(new), Value::Int4(at), Value::Int4(n)] => overlay(s, new, *at, *n).map(Value::Text),
        _ => Ok(Value::Null),
    }),
    f3!(? ["bitoverlay_no_len"], Str, Str, i32 => String, |s, new, at| overlay(s, new, at, new.len() as i32)),
    f1!(["bitlength", "1812"], Str => i32, |s| s.len() as i32),
    f1!(["bitoctetlength"], Str => i32, |s| s.len().div_ceil(8) as i32),
    f1!(["bit_bit_count"], Str => i64, |s| s.bytes().map(|b| i64::from(b & 1)).sum()),
    f2!(? ["bitgetbit"], Str, i32 => i32, |s, i| index(s, i).map(|i| i32::from(s.as_bytes()[i] & 1))),
    f3!(? ["bitsetbit"], Str, i32, i32 => String, set_bit),
    f2!(["bitfromint4"], i32, i32 => String, |v, n| from_int(v.into(), n)),
    f2!(["bitfromint8"], i64, i32 => String, from_int),
    f1!(? ["bittoint4"], Str => i32, |s| to_int(s, 32, "integer").map(|v| v as i32)),
    f1!(? ["bittoint8"], Str => i64, |s| to_int(s, 64, "bigint")),
];
