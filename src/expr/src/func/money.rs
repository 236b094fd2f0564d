//! `money`: cents in 64 bits. What leaves their range is 22003.
//!
//! Not here: text form (`repr`), comparison (`cmp`).

use super::arith::out_of_range;
use super::Entry;
use crate::{f1, f2};
use num_traits::ToPrimitive;
use repr::error::state;
use repr::{Numeric, SqlError};

fn by_zero() -> SqlError {
    SqlError::new(state::DIVISION_BY_ZERO, "division by zero")
}

fn range() -> SqlError {
    SqlError::new(state::NUMERIC_VALUE_OUT_OF_RANGE, "money out of range")
}

/// To whole cents, halves to the even one, as rint does.
fn cents(f: f64) -> Result<i64, SqlError> {
    let c = f.round_ties_even();
    // The greatest float below 2^63 fits, 2^63 does not.
    if (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&c) {
        Ok(c as i64)
    } else {
        Err(range())
    }
}

fn mul_float(c: i64, f: f64) -> Result<i64, SqlError> {
    cents(c as f64 * f)
}

fn mul_int(c: i64, i: i64) -> Result<i64, SqlError> {
    c.checked_mul(i).ok_or_else(range)
}

fn div_float(c: i64, f: f64) -> Result<i64, SqlError> {
    if f == 0.0 {
        return Err(by_zero());
    }
    let q = c as f64 / f;
    if q.is_infinite() && !f.is_infinite() {
        return Err(SqlError::new(state::NUMERIC_VALUE_OUT_OF_RANGE, "value out of range: overflow"));
    }
    cents(q)
}

fn div_int(c: i64, i: i64) -> Result<i64, SqlError> {
    match i {
        0 => Err(by_zero()),
        i => c.checked_div(i).ok_or_else(range),
    }
}

fn from_int(i: i64) -> Result<i64, SqlError> {
    i.checked_mul(100).ok_or_else(|| out_of_range("bigint"))
}

fn from_numeric(n: Numeric) -> Result<i64, SqlError> {
    if matches!(n, Numeric::NaN | Numeric::PosInf | Numeric::NegInf) {
        let what = if matches!(n, Numeric::NaN) { "NaN" } else { "infinity" };
        return Err(SqlError::new(state::FEATURE_NOT_SUPPORTED, format!("cannot convert {what} to bigint")));
    }
    let whole = n.mul(&Numeric::from(100))?.to_i128_rounded().and_then(|v| v.to_i64());
    whole.ok_or_else(|| out_of_range("bigint"))
}

pub const FUNCS: &[Entry] = &[
    f2!(? ["cash_pl"], i64, i64 => i64, |a, b| a.checked_add(b).ok_or_else(range)),
    f2!(? ["cash_mi"], i64, i64 => i64, |a, b| a.checked_sub(b).ok_or_else(range)),
    f2!(? ["cash_mul_flt8"], i64, f64 => i64, mul_float),
    f2!(? ["cash_mul_flt4"], i64, f32 => i64, |c, f| mul_float(c, f.into())),
    f2!(? ["flt8_mul_cash"], f64, i64 => i64, |f, c| mul_float(c, f)),
    f2!(? ["flt4_mul_cash"], f32, i64 => i64, |f, c| mul_float(c, f.into())),
    f2!(? ["cash_mul_int8"], i64, i64 => i64, mul_int),
    f2!(? ["cash_mul_int4"], i64, i32 => i64, |c, i| mul_int(c, i.into())),
    f2!(? ["cash_mul_int2"], i64, i16 => i64, |c, i| mul_int(c, i.into())),
    f2!(? ["int8_mul_cash"], i64, i64 => i64, |i, c| mul_int(c, i)),
    f2!(? ["int4_mul_cash"], i32, i64 => i64, |i, c| mul_int(c, i.into())),
    f2!(? ["int2_mul_cash"], i16, i64 => i64, |i, c| mul_int(c, i.into())),
    f2!(? ["cash_div_flt8"], i64, f64 => i64, div_float),
    f2!(? ["cash_div_flt4"], i64, f32 => i64, |c, f| div_float(c, f.into())),
    f2!(? ["cash_div_int8"], i64, i64 => i64, div_int),
    f2!(? ["cash_div_int4"], i64, i32 => i64, |c, i| div_int(c, i.into())),
    f2!(? ["cash_div_int2"], i64, i16 => i64, |c, i| div_int(c, i.into())),
    f2!(? ["cash_div_cash"], i64, i64 => f64, |a, b| if b == 0 { Err(by_zero()) } else { Ok(a as f64 / b as f64) }),
    f1!(["cash_numeric"], i64 => Numeric, |c| Numeric::Small { unscaled: c.into(), scale: 2 }),
    f1!(? ["numeric_cash"], Numeric => i64, from_numeric),
    f1!(? ["int4_cash"], i32 => i64, |i| from_int(i.into())),
    f1!(? ["int8_cash"], i64 => i64, from_int),
];
