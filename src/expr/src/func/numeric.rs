//! `numeric`: arithmetic, mathematics, conversions. The numbers themselves are in `repr::numeric`.

use super::Entry;
use crate::{f1, f2, val};
use repr::error::state;
use repr::numeric::Numeric;
use repr::{SqlError, Value};

/// Digits that `round` and `trunc` take after or before the point.
/// The most digits before the point.
const WHOLE_DIGITS_MAX: i32 = 131_072;

/// Errors: 22003 where the rounded number has a digit more than there may be, which takes a scale below zero.
fn round(n: Numeric, scale: i32) -> Result<Numeric, SqlError> {
    let r = n.round(scale);
    if scale < 0 && r.is_finite() && !r.is_zero() && r.magnitude10() >= WHOLE_DIGITS_MAX {
        return Err(SqlError::new(state::NUMERIC_VALUE_OUT_OF_RANGE, "value overflows numeric format"));
    }
    Ok(r)
}

fn sign(n: Numeric) -> Numeric {
    match n {
        Numeric::NaN => Numeric::NaN,
        n if n.is_zero() => Numeric::from(0),
        n => Numeric::from(i64::from(n.signum())),
    }
}

/// The nearest float; 22003 where a finite number becomes infinite, or zero without being it.
fn to_f64(n: &Numeric, ty: &str, value: f64) -> Result<f64, SqlError> {
    match n.is_finite() && (value.is_infinite() || (value == 0.0 && !n.is_zero())) {
        true => Err(SqlError::new(state::NUMERIC_VALUE_OUT_OF_RANGE, format!("\"{n}\" is out of range for type {ty}"))),
        false => Ok(value),
    }
}

fn log10(n: Numeric) -> Result<Numeric, SqlError> {
    Numeric::from(10).log(&n)
}

/// `scale` and `min_scale` are NULL for NaN and the infinities.
fn scale_of(n: &Numeric, scale: u16) -> Option<i32> {
    n.is_finite().then_some(i32::from(scale))
}

pub const FUNCS: &[Entry] = &[
    f2!(? ["numeric_add"], Numeric, Numeric => Numeric, |a, b| a.add(&b)),
    f2!(? ["numeric_sub"], Numeric, Numeric => Numeric, |a, b| a.sub(&b)),
    f2!(? ["numeric_mul"], Numeric, Numeric => Numeric, |a, b| a.mul(&b)),
    f2!(? ["numeric_div"], Numeric, Numeric => Numeric, |a, b| a.div(&b)),
    f2!(? ["numeric_div_trunc"], Numeric, Numeric => Numeric, |a, b| a.div_trunc(&b)),
    f2!(? ["numeric_mod"], Numeric, Numeric => Numeric, |a, b| a.rem(&b)),
    f1!(["numeric_uminus"], Numeric => Numeric, |a| a.neg()),
    f1!(["numeric_uplus"], Numeric => Numeric, |a| a),
    f1!(["numeric_abs"], Numeric => Numeric, |a| a.abs()),
    f1!(["numeric_sign"], Numeric => Numeric, sign),
    f1!(["numeric_ceil"], Numeric => Numeric, |a| a.ceil()),
    f1!(["numeric_floor"], Numeric => Numeric, |a| a.floor()),
    f2!(? ["numeric_round"], Numeric, i32 => Numeric, round),
    f1!(["1708"], Numeric => Numeric, |a| a.round(0)),
    f2!(["numeric_trunc"], Numeric, i32 => Numeric, |a, n| a.trunc(n)),
    f1!(["1710"], Numeric => Numeric, |a| a.trunc(0)),
    f1!(? ["numeric_sqrt"], Numeric => Numeric, |a| a.sqrt()),
    f1!(? ["numeric_exp"], Numeric => Numeric, |a| a.exp()),
    f1!(? ["numeric_ln"], Numeric => Numeric, |a| a.ln()),
    f2!(? ["numeric_log"], Numeric, Numeric => Numeric, |a, b| a.log(&b)),
    f1!(? ["1741", "1481"], Numeric => Numeric, log10),
    f2!(? ["numeric_power"], Numeric, Numeric => Numeric, |a, b| a.power(&b)),
    f2!(? ["numeric_gcd"], Numeric, Numeric => Numeric, |a, b| a.gcd(&b)),
    f2!(? ["numeric_lcm"], Numeric, Numeric => Numeric, |a, b| a.lcm(&b)),
    f1!(? ["numeric_fac"], i64 => Numeric, Numeric::factorial),
    f1!(? ["numeric_inc"], Numeric => Numeric, |a| a.add(&Numeric::from(1))),
    f1!(["numeric_scale"], Numeric => Option<i32>, |a| scale_of(&a, a.scale())),
    f1!(["numeric_min_scale"], Numeric => Option<i32>, |a| scale_of(&a, a.min_scale())),
    f1!(["numeric_trim_scale"], Numeric => Numeric, |a| a.trim_scale()),
    val!(? ["width_bucket_numeric"], |args, _| match args {
        [Value::Numeric(x), Value::Numeric(low), Value::Numeric(high), Value::Int4(n)] => x.width_bucket(low, high, *n).map(Value::Int4),
        _ => Err(SqlError::internal("width_bucket of other types")),
    }),
    // Comparison without key bytes, since filters and joins on numeric are frequent.
    f2!(["numeric_eq"], Numeric, Numeric => bool, |a, b| a.cmp(&b).is_eq()),
    f2!(["numeric_ne"], Numeric, Numeric => bool, |a, b| a.cmp(&b).is_ne()),
    f2!(["numeric_lt"], Numeric, Numeric => bool, |a, b| a.cmp(&b).is_lt()),
    f2!(["numeric_le"], Numeric, Numeric => bool, |a, b| a.cmp(&b).is_le()),
    f2!(["numeric_gt"], Numeric, Numeric => bool, |a, b| a.cmp(&b).is_gt()),
    f2!(["numeric_ge"], Numeric, Numeric => bool, |a, b| a.cmp(&b).is_ge()),
    // Conversions.
    f1!(["int2_numeric"], i16 => Numeric, |a| Numeric::from(i64::from(a))),
    f1!(["int4_numeric"], i32 => Numeric, |a| Numeric::from(i64::from(a))),
    f1!(["int8_numeric"], i64 => Numeric, Numeric::from),
    f1!(["float4_numeric"], f32 => Numeric, Numeric::from_f32),
    f1!(["float8_numeric"], f64 => Numeric, Numeric::from_f64),
    f1!(? ["numeric_int2"], Numeric => i16, |a| a.to_int("smallint")),
    f1!(? ["numeric_int4"], Numeric => i32, |a| a.to_int("integer")),
    f1!(? ["numeric_int8"], Numeric => i64, |a| a.to_int("bigint")),
    f1!(? ["numeric_float8"], Numeric => f64, |a| to_f64(&a, "double precision", a.to_f64())),
    f1!(? ["numeric_float4"], Numeric => f32, |a| {
        let v = if a.is_finite() { a.to_string().parse().unwrap_or(f32::NAN) } else { a.to_f64() as f32 };
        to_f64(&a, "real", v.into()).map(|_| v)
    }),
];
