//! Integer arithmetic and bit operations, conversions between integers, floats, bool and oid.
//!
//! Overflow is 22003 with the result type's name, as in Postgres. Not here: floats (`float`), numeric (`numeric`), comparison (`cmp`).

use super::lift::{prim2, try_prim2};
use super::Entry;
use crate::{f1, f2, kernel};
use arrow_array::types::*;
use repr::error::state;
use repr::SqlError;

/// 22003 "<type> out of range".
pub fn out_of_range(ty: &str) -> SqlError {
    SqlError::new(state::NUMERIC_VALUE_OUT_OF_RANGE, format!("{ty} out of range"))
}

/// 22012.
pub fn division_by_zero() -> SqlError {
    SqlError::new(state::DIVISION_BY_ZERO, "division by zero")
}

fn small() -> SqlError {
    out_of_range("smallint")
}
fn int() -> SqlError {
    out_of_range("integer")
}
fn big() -> SqlError {
    out_of_range("bigint")
}

/// The four operations on one integer type, over value buffers.
macro_rules! same {
    ($arrow:ty, $native:ty, $err:ident, $add:literal, $sub:literal, $mul:literal, $div:literal, $rem:literal, $and:literal, $or:literal, $xor:literal) => {
        &[
            kernel!(? [$add], |c| try_prim2::<$arrow, $arrow, $arrow>(c, |a, b| a.checked_add(b), |_| $err())),
            kernel!(? [$sub], |c| try_prim2::<$arrow, $arrow, $arrow>(c, |a, b| a.checked_sub(b), |_| $err())),
            kernel!(? [$mul], |c| try_prim2::<$arrow, $arrow, $arrow>(c, |a, b| a.checked_mul(b), |_| $err())),
            kernel!(? [$div], |c| try_prim2::<$arrow, $arrow, $arrow>(c, |a, b| a.checked_div(b), |b| if b == 0 { division_by_zero() } else { $err() })),
            kernel!(? [$rem], |c| {
                try_prim2::<$arrow, $arrow, $arrow>(c, |a: $native, b: $native| if b == 0 { None } else { Some(a.wrapping_rem(b)) }, |_| division_by_zero())
            }),
            kernel!([$and], |c| prim2::<$arrow, $arrow, $arrow>(c, |a, b| a & b)),
            kernel!([$or], |c| prim2::<$arrow, $arrow, $arrow>(c, |a, b| a | b)),
            kernel!([$xor], |c| prim2::<$arrow, $arrow, $arrow>(c, |a, b| a ^ b)),
        ]
    };
}

/// The four operations on two integer types, computed in the wider.
macro_rules! mixed {
    ($a:ty, $b:ty => $r:ty, $err:ident, $add:literal, $sub:literal, $mul:literal, $div:literal) => {
        &[
            f2!(? [$add], $a, $b => $r, |a, b| <$r>::from(a).checked_add(<$r>::from(b)).ok_or_else($err)),
            f2!(? [$sub], $a, $b => $r, |a, b| <$r>::from(a).checked_sub(<$r>::from(b)).ok_or_else($err)),
            f2!(? [$mul], $a, $b => $r, |a, b| <$r>::from(a).checked_mul(<$r>::from(b)).ok_or_else($err)),
            f2!(? [$div], $a, $b => $r, |a, b| {
                if b == 0 {
                    return Err(division_by_zero());
                }
                <$r>::from(a).checked_div(<$r>::from(b)).ok_or_else($err)
            }),
        ]
    };
}

pub const INT2: &[Entry] = same!(Int16Type, i16, small, "int2pl", "int2mi", "int2mul", "int2div", "int2mod", "int2and", "int2or", "int2xor");
pub const INT4: &[Entry] = same!(Int32Type, i32, int, "int4pl", "int4mi", "int4mul", "int4div", "int4mod", "int4and", "int4or", "int4xor");
pub const INT8: &[Entry] = same!(Int64Type, i64, big, "int8pl", "int8mi", "int8mul", "int8div", "int8mod", "int8and", "int8or", "int8xor");
pub const UINT2: &[Entry] = same!(UInt16Type, u16, uint2, "uint2pl", "uint2mi", "uint2mul", "uint2div", "uint2mod", "uint2and", "uint2or", "uint2xor");
pub const UINT4: &[Entry] = same!(UInt32Type, u32, uint4, "uint4pl", "uint4mi", "uint4mul", "uint4div", "uint4mod", "uint4and", "uint4or", "uint4xor");
pub const UINT8: &[Entry] = same!(UInt64Type, u64, uint8, "uint8pl", "uint8mi", "uint8mul", "uint8div", "uint8mod", "uint8and", "uint8or", "uint8xor");
pub const INT24: &[Entry] = mixed!(i16, i32 => i32, int, "int24pl", "int24mi", "int24mul", "int24div");
pub const INT42: &[Entry] = mixed!(i32, i16 => i32, int, "int42pl", "int42mi", "int42mul", "int42div");
pub const INT28: &[Entry] = mixed!(i16, i64 => i64, big, "int28pl", "int28mi", "int28mul", "int28div");
pub const INT82: &[Entry] = mixed!(i64, i16 => i64, big, "int82pl", "int82mi", "int82mul", "int82div");
pub const INT48: &[Entry] = mixed!(i32, i64 => i64, big, "int48pl", "int48mi", "int48mul", "int48div");
pub const INT84: &[Entry] = mixed!(i64, i32 => i64, big, "int84pl", "int84mi", "int84mul", "int84div");

fn uint2() -> SqlError {
    out_of_range("uint2")
}
fn uint4() -> SqlError {
    out_of_range("uint4")
}
fn uint8() -> SqlError {
    out_of_range("uint8")
}

/// gcd on magnitudes; the result may not fit the signed type (gcd(MIN, 0)).
fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

fn lcm(a: i64, b: i64) -> Option<u64> {
    if a == 0 || b == 0 {
        return Some(0);
    }
    let g = gcd(a.unsigned_abs(), b.unsigned_abs());
    (a.unsigned_abs() / g).checked_mul(b.unsigned_abs())
}

/// A float rounded half to even, if it lies in `[lo, hi)`.
fn rounded(v: f64, lo: f64, hi: f64) -> Option<f64> {
    let r = v.round_ties_even();
    (r >= lo && r < hi).then_some(r)
}

const P15: f64 = 32768.0;
const P31: f64 = 2147483648.0;
const P63: f64 = 9223372036854775808.0;

fn to_i2(v: f64) -> Result<i16, SqlError> {
    rounded(v, -P15, P15).map(|r| r as i16).ok_or_else(small)
}
fn to_i4(v: f64) -> Result<i32, SqlError> {
    rounded(v, -P31, P31).map(|r| r as i32).ok_or_else(int)
}
fn to_i8(v: f64) -> Result<i64, SqlError> {
    rounded(v, -P63, P63).map(|r| r as i64).ok_or_else(big)
}

pub const FUNCS: &[Entry] = &[
    // signs
    f1!(? ["int2um"], i16 => i16, |a| a.checked_neg().ok_or_else(small)),
    f1!(? ["int4um"], i32 => i32, |a| a.checked_neg().ok_or_else(int)),
    f1!(? ["int8um"], i64 => i64, |a| a.checked_neg().ok_or_else(big)),
    f1!(["int2up"], i16 => i16, |a| a),
    f1!(["int4up"], i32 => i32, |a| a),
    f1!(["int8up"], i64 => i64, |a| a),
    f1!(? ["int2abs"], i16 => i16, |a| a.checked_abs().ok_or_else(small)),
    f1!(? ["int4abs"], i32 => i32, |a| a.checked_abs().ok_or_else(int)),
    f1!(? ["int8abs"], i64 => i64, |a| a.checked_abs().ok_or_else(big)),
    f1!(? ["int4inc"], i32 => i32, |a| a.checked_add(1).ok_or_else(int)),
    f1!(? ["int8inc"], i64 => i64, |a| a.checked_add(1).ok_or_else(big)),
    f1!(? ["int8dec"], i64 => i64, |a| a.checked_sub(1).ok_or_else(big)),
    // bits; a shift count is taken modulo the width, as the processors do on which Postgres runs
    f1!(["int2not"], i16 => i16, |a| !a),
    f1!(["int4not"], i32 => i32, |a| !a),
    f1!(["int8not"], i64 => i64, |a| !a),
    f2!(["int2shl"], i16, i32 => i16, |a, n| i32::from(a).wrapping_shl(n as u32) as i16),
    f2!(["int2shr"], i16, i32 => i16, |a, n| i32::from(a).wrapping_shr(n as u32) as i16),
    f2!(["int4shl"], i32, i32 => i32, |a, n| a.wrapping_shl(n as u32)),
    f2!(["int4shr"], i32, i32 => i32, |a, n| a.wrapping_shr(n as u32)),
    f2!(["int8shl"], i64, i32 => i64, |a, n| a.wrapping_shl(n as u32)),
    f2!(["int8shr"], i64, i32 => i64, |a, n| a.wrapping_shr(n as u32)),
    // greatest of two, as the aggregates' transition functions
    f2!(["int2larger"], i16, i16 => i16, |a, b| a.max(b)),
    f2!(["int2smaller"], i16, i16 => i16, |a, b| a.min(b)),
    f2!(["int4larger"], i32, i32 => i32, |a, b| a.max(b)),
    f2!(["int4smaller"], i32, i32 => i32, |a, b| a.min(b)),
    f2!(["int8larger"], i64, i64 => i64, |a, b| a.max(b)),
    f2!(["int8smaller"], i64, i64 => i64, |a, b| a.min(b)),
    f2!(? ["int4gcd"], i32, i32 => i32, |a, b| i32::try_from(gcd(a.unsigned_abs().into(), b.unsigned_abs().into())).map_err(|_| int())),
    f2!(? ["int8gcd"], i64, i64 => i64, |a, b| i64::try_from(gcd(a.unsigned_abs(), b.unsigned_abs())).map_err(|_| big())),
    f2!(? ["int4lcm"], i32, i32 => i32, |a, b| lcm(a.into(), b.into()).and_then(|v| i32::try_from(v).ok()).ok_or_else(int)),
    f2!(? ["int8lcm"], i64, i64 => i64, |a, b| lcm(a, b).and_then(|v| i64::try_from(v).ok()).ok_or_else(big)),
    // conversions
    f1!(["i2toi4"], i16 => i32, i32::from),
    f1!(["int28"], i16 => i64, i64::from),
    f1!(["int48"], i32 => i64, i64::from),
    f1!(? ["i4toi2"], i32 => i16, |a| i16::try_from(a).map_err(|_| small())),
    f1!(? ["int82"], i64 => i16, |a| i16::try_from(a).map_err(|_| small())),
    f1!(? ["int84"], i64 => i32, |a| i32::try_from(a).map_err(|_| int())),
    f1!(["i2tod"], i16 => f64, f64::from),
    f1!(["i2tof"], i16 => f32, f32::from),
    f1!(["i4tod"], i32 => f64, f64::from),
    f1!(["i4tof"], i32 => f32, |a| a as f32),
    f1!(["i8tod"], i64 => f64, |a| a as f64),
    f1!(["i8tof"], i64 => f32, |a| a as f32),
    f1!(? ["dtoi2"], f64 => i16, to_i2),
    f1!(? ["dtoi4"], f64 => i32, to_i4),
    f1!(? ["dtoi8"], f64 => i64, to_i8),
    f1!(? ["ftoi2"], f32 => i16, |v| to_i2(v.into())),
    f1!(? ["ftoi4"], f32 => i32, |v| to_i4(v.into())),
    f1!(? ["ftoi8"], f32 => i64, |v| to_i8(v.into())),
    f1!(["ftod"], f32 => f64, f64::from),
    f1!(? ["i8tooid"], i64 => u32, |a| u32::try_from(a).map_err(|_| out_of_range("OID"))),
    f1!(["oidtoi8"], u32 => i64, i64::from),
    f1!(["int4_bool"], i32 => bool, |a| a != 0),
    f1!(["bool_int4"], bool => i32, i32::from),
];
