//! Floating-point arithmetic and mathematics, with Postgres's checks for overflow, underflow and domain.

use super::arith::division_by_zero;
use super::lift::prim2;
use super::Entry;
use crate::{f1, f2, kernel};
use arrow_array::types::*;
use repr::error::state;
use repr::SqlError;

fn overflow() -> SqlError {
    SqlError::new(state::NUMERIC_VALUE_OUT_OF_RANGE, "value out of range: overflow")
}
fn underflow() -> SqlError {
    SqlError::new(state::NUMERIC_VALUE_OUT_OF_RANGE, "value out of range: underflow")
}
fn bad_input() -> SqlError {
    SqlError::new(state::NUMERIC_VALUE_OUT_OF_RANGE, "input is out of range")
}

fn add(a: f64, b: f64) -> Result<f64, SqlError> {
    let r = a + b;
    if r.is_infinite() && !a.is_infinite() && !b.is_infinite() {
        return Err(overflow());
    }
    Ok(r)
}
fn sub(a: f64, b: f64) -> Result<f64, SqlError> {
    add(a, -b)
}
fn mul(a: f64, b: f64) -> Result<f64, SqlError> {
    let r = a * b;
    if r.is_infinite() && !a.is_infinite() && !b.is_infinite() {
        return Err(overflow());
    }
    if r == 0.0 && a != 0.0 && b != 0.0 {
        return Err(underflow());
    }
    Ok(r)
}
fn div(a: f64, b: f64) -> Result<f64, SqlError> {
    if b == 0.0 && !a.is_nan() {
        return Err(division_by_zero());
    }
    let r = a / b;
    if r.is_infinite() && !a.is_infinite() {
        return Err(overflow());
    }
    if r == 0.0 && a != 0.0 && !b.is_infinite() {
        return Err(underflow());
    }
    Ok(r)
}

/// float4 operations are done in double and rounded: for one operation that is the same as rounding once.
fn single(a: f32, b: f32, f: fn(f64, f64) -> Result<f64, SqlError>) -> Result<f32, SqlError> {
    narrow_from(f(a.into(), b.into())?, a.is_infinite() || b.is_infinite())
}
fn narrow_from(r: f64, from_infinite: bool) -> Result<f32, SqlError> {
    let n = r as f32;
    if n.is_infinite() && !r.is_infinite() && !from_infinite {
        return Err(overflow());
    }
    if n == 0.0 && r != 0.0 {
        return Err(underflow());
    }
    Ok(n)
}

fn checked(r: f64, from_infinite: bool) -> Result<f64, SqlError> {
    if r.is_infinite() && !from_infinite {
        return Err(overflow());
    }
    Ok(r)
}

fn sqrt(a: f64) -> Result<f64, SqlError> {
    if a < 0.0 {
        return Err(SqlError::new(state::INVALID_ARGUMENT_FOR_POWER, "cannot take square root of a negative number"));
    }
    Ok(a.sqrt())
}

/// `dpow`: the special cases stand in Postgres's order.
pub fn pow(a: f64, b: f64) -> Result<f64, SqlError> {
    if a.is_nan() {
        return Ok(if b == 0.0 { 1.0 } else { f64::NAN });
    }
    if b.is_nan() {
        return Ok(if a == 1.0 { 1.0 } else { f64::NAN });
    }
    if a == 0.0 && b < 0.0 {
        return Err(SqlError::new(state::INVALID_ARGUMENT_FOR_POWER, "zero raised to a negative power is undefined"));
    }
    if a < 0.0 && b.floor() != b {
        return Err(SqlError::new(state::INVALID_ARGUMENT_FOR_POWER, "a negative number raised to a non-integer power yields a complex result"));
    }
    let r = a.powf(b);
    if r.is_infinite() && !a.is_infinite() && !b.is_infinite() {
        return Err(overflow());
    }
    if r == 0.0 && a != 0.0 && !a.is_infinite() && !b.is_infinite() {
        return Err(underflow());
    }
    Ok(r)
}

fn exp(a: f64) -> Result<f64, SqlError> {
    let r = a.exp();
    if r.is_infinite() && !a.is_infinite() {
        return Err(overflow());
    }
    if r == 0.0 && !a.is_infinite() {
        return Err(underflow());
    }
    Ok(r)
}

fn log_domain(a: f64) -> Result<(), SqlError> {
    let what = match a {
        0.0 => "zero",
        a if a < 0.0 => "a negative number",
        _ => return Ok(()),
    };
    Err(SqlError::new(state::INVALID_ARGUMENT_FOR_LOG, format!("cannot take logarithm of {what}")))
}

fn trig(a: f64, f: fn(f64) -> f64) -> Result<f64, SqlError> {
    if a.is_nan() {
        return Ok(a);
    }
    if a.is_infinite() {
        return Err(bad_input());
    }
    checked(f(a), false)
}

fn within_one(a: f64, f: fn(f64) -> f64) -> Result<f64, SqlError> {
    if a.is_nan() {
        return Ok(a);
    }
    if !(-1.0..=1.0).contains(&a) {
        return Err(bad_input());
    }
    Ok(f(a))
}

const RADIANS_PER_DEGREE: f64 = 0.017_453_292_519_943_295;
/// Beyond this, the square in the usual formulas has no digit left of the 1 that is added.
const LARGE: f64 = 268_435_456.0;

/// Trigonometry in degrees, exact at the multiples of 30 and 45 as Postgres makes it.
mod degrees {
    fn sin30(x: f64) -> f64 {
        x.to_radians().sin() / 30f64.to_radians().sin() / 2.0
    }
    fn cos60(x: f64) -> f64 {
        1.0 - (1.0 - x.to_radians().cos()) / (1.0 - 60f64.to_radians().cos()) / 2.0
    }
    fn sin_q1(x: f64) -> f64 {
        if x <= 30.0 {
            sin30(x)
        } else {
            cos60(90.0 - x)
        }
    }
    fn cos_q1(x: f64) -> f64 {
        if x <= 60.0 {
            cos60(x)
        } else {
            sin30(90.0 - x)
        }
    }
    pub fn cosd(x: f64) -> f64 {
        let (mut x, mut sign) = ((x % 360.0).abs(), 1.0);
        if x > 180.0 {
            x = 360.0 - x;
        }
        if x > 90.0 {
            x = 180.0 - x;
            sign = -sign;
        }
        sign * cos_q1(x)
    }
    pub fn sind(x: f64) -> f64 {
        let (mut x, mut sign) = (x % 360.0, 1.0);
        if x < 0.0 {
            x = -x;
            sign = -sign;
        }
        if x > 180.0 {
            x = 360.0 - x;
            sign = -sign;
        }
        if x > 90.0 {
            x = 180.0 - x;
        }
        sign * sin_q1(x)
    }
    /// The argument in the first quadrant, and the sign of tangent and cotangent.
    fn quadrant(x: f64) -> (f64, f64) {
        let (mut x, mut sign) = (x % 360.0, 1.0);
        if x < 0.0 {
            x = -x;
            sign = -sign;
        }
        if x > 180.0 {
            x = 360.0 - x;
            sign = -sign;
        }
        if x > 90.0 {
            x = 180.0 - x;
            sign = -sign;
        }
        (x, sign)
    }
    pub fn tand(x: f64) -> f64 {
        let (x, sign) = quadrant(x);
        let r = sign * ((sin_q1(x) / cos_q1(x)) / (sin_q1(45.0) / cos_q1(45.0)));
        if r == 0.0 {
            0.0
        } else {
            r
        }
    }
    pub fn cotd(x: f64) -> f64 {
        let (x, sign) = quadrant(x);
        let r = sign * ((cos_q1(x) / sin_q1(x)) / (cos_q1(45.0) / sin_q1(45.0)));
        if r == 0.0 {
            0.0
        } else {
            r
        }
    }
    pub fn asind(x: f64) -> f64 {
        let q1 = |x: f64| if x <= 0.5 { x.asin() / 0.5f64.asin() * 30.0 } else { 90.0 - x.acos() / 0.5f64.acos() * 60.0 };
        if x >= 0.0 {
            q1(x)
        } else {
            -q1(-x)
        }
    }
    pub fn acosd(x: f64) -> f64 {
        let q1 = |x: f64| if x <= 0.5 { 90.0 - x.asin() / 0.5f64.asin() * 30.0 } else { x.acos() / 0.5f64.acos() * 60.0 };
        if x >= 0.0 {
            q1(x)
        } else {
            90.0 + asind(-x)
        }
    }
    pub fn atand(x: f64) -> f64 {
        x.atan() / 1f64.atan() * 45.0
    }
    pub fn atan2d(y: f64, x: f64) -> f64 {
        y.atan2(x) / 1f64.atan() * 45.0
    }
}

fn sign(a: f64) -> f64 {
    if a > 0.0 {
        1.0
    } else if a < 0.0 {
        -1.0
    } else {
        0.0
    }
}

/// Bucket of `x` among `n` equal ones between `lo` and `hi`.
fn width_bucket(x: f64, lo: f64, hi: f64, n: i32) -> Result<i32, SqlError> {
    let bad = |m: &str| Err(SqlError::new(state::INVALID_ARGUMENT_FOR_WIDTH_BUCKET, m));
    if n <= 0 {
        return bad("count must be greater than zero");
    }
    if x.is_nan() || lo.is_nan() || hi.is_nan() {
        return bad("operand, lower bound, and upper bound cannot be NaN");
    }
    if lo.is_infinite() || hi.is_infinite() {
        return bad("lower and upper bounds must be finite");
    }
    if lo == hi {
        return bad("lower bound cannot equal upper bound");
    }
    let (below, above, frac) = if lo < hi { (x < lo, x >= hi, (x - lo) / (hi - lo)) } else { (x > lo, x <= hi, (lo - x) / (lo - hi)) };
    if below {
        return Ok(0);
    }
    if above {
        return n.checked_add(1).ok_or_else(|| super::arith::out_of_range("integer"));
    }
    Ok(((f64::from(n) * frac) as i32).min(n - 1) + 1)
}

pub const FUNCS: &[Entry] = &[
    f2!(? ["float8pl"], f64, f64 => f64, add),
    f2!(? ["float8mi"], f64, f64 => f64, sub),
    f2!(? ["float8mul"], f64, f64 => f64, mul),
    f2!(? ["float8div"], f64, f64 => f64, div),
    f2!(? ["float4pl"], f32, f32 => f32, |a, b| single(a, b, add)),
    f2!(? ["float4mi"], f32, f32 => f32, |a, b| single(a, b, sub)),
    f2!(? ["float4mul"], f32, f32 => f32, |a, b| single(a, b, mul)),
    f2!(? ["float4div"], f32, f32 => f32, |a, b| single(a, b, div)),
    f2!(? ["float48pl"], f32, f64 => f64, |a, b| add(a.into(), b)),
    f2!(? ["float48mi"], f32, f64 => f64, |a, b| sub(a.into(), b)),
    f2!(? ["float48mul"], f32, f64 => f64, |a, b| mul(a.into(), b)),
    f2!(? ["float48div"], f32, f64 => f64, |a, b| div(a.into(), b)),
    f2!(? ["float84pl"], f64, f32 => f64, |a, b| add(a, b.into())),
    f2!(? ["float84mi"], f64, f32 => f64, |a, b| sub(a, b.into())),
    f2!(? ["float84mul"], f64, f32 => f64, |a, b| mul(a, b.into())),
    f2!(? ["float84div"], f64, f32 => f64, |a, b| div(a, b.into())),
    f1!(["float8um"], f64 => f64, |a| -a),
    f1!(["float4um"], f32 => f32, |a| -a),
    f1!(["float8up"], f64 => f64, |a| a),
    f1!(["float4up"], f32 => f32, |a| a),
    f1!(["float8abs"], f64 => f64, f64::abs),
    f1!(["float4abs"], f32 => f32, f32::abs),
    kernel!(["float8larger"], |c| prim2::<Float64Type, Float64Type, Float64Type>(c, |a, b| if super::cmp::float_cmp(a, b).is_gt() { a } else { b })),
    kernel!(["float8smaller"], |c| prim2::<Float64Type, Float64Type, Float64Type>(c, |a, b| if super::cmp::float_cmp(a, b).is_lt() { a } else { b })),
    f2!(["float4larger"], f32, f32 => f32, |a, b| if super::cmp::float_cmp(a.into(), b.into()).is_gt() { a } else { b }),
    f2!(["float4smaller"], f32, f32 => f32, |a, b| if super::cmp::float_cmp(a.into(), b.into()).is_lt() { a } else { b }),
    f1!(? ["dtof"], f64 => f32, |a| narrow_from(a, false)),
    f1!(["dround"], f64 => f64, f64::round_ties_even),
    f1!(["dtrunc"], f64 => f64, f64::trunc),
    f1!(["dceil"], f64 => f64, f64::ceil),
    f1!(["dfloor"], f64 => f64, f64::floor),
    f1!(["dsign"], f64 => f64, sign),
    f1!(? ["dsqrt"], f64 => f64, sqrt),
    f1!(["dcbrt"], f64 => f64, f64::cbrt),
    f2!(? ["dpow"], f64, f64 => f64, pow),
    f1!(? ["dexp"], f64 => f64, exp),
    f1!(? ["dlog1"], f64 => f64, |a| log_domain(a).map(|()| a.ln())),
    f1!(? ["dlog10"], f64 => f64, |a| log_domain(a).map(|()| a.log10())),
    f1!(? ["dsin"], f64 => f64, |a| trig(a, f64::sin)),
    f1!(? ["dcos"], f64 => f64, |a| trig(a, f64::cos)),
    f1!(? ["dtan"], f64 => f64, |a| if a.is_infinite() { Err(bad_input()) } else { Ok(a.tan()) }),
    f1!(? ["dcot"], f64 => f64, |a| if a.is_infinite() { Err(bad_input()) } else { Ok(1.0 / a.tan()) }),
    f1!(? ["dasin"], f64 => f64, |a| within_one(a, f64::asin)),
    f1!(? ["dacos"], f64 => f64, |a| within_one(a, f64::acos)),
    f1!(["datan"], f64 => f64, f64::atan),
    f2!(["datan2"], f64, f64 => f64, f64::atan2),
    f1!(? ["dsind"], f64 => f64, |a| trig(a, degrees::sind)),
    f1!(? ["dcosd"], f64 => f64, |a| trig(a, degrees::cosd)),
    f1!(? ["dtand"], f64 => f64, |a| if a.is_infinite() { Err(bad_input()) } else { Ok(degrees::tand(a)) }),
    f1!(? ["dcotd"], f64 => f64, |a| if a.is_infinite() { Err(bad_input()) } else { Ok(degrees::cotd(a)) }),
    f1!(? ["dasind"], f64 => f64, |a| within_one(a, degrees::asind)),
    f1!(? ["dacosd"], f64 => f64, |a| within_one(a, degrees::acosd)),
    f1!(["datand"], f64 => f64, degrees::atand),
    f2!(["datan2d"], f64, f64 => f64, degrees::atan2d),
    f1!(["dsinh"], f64 => f64, f64::sinh),
    f1!(["dcosh"], f64 => f64, f64::cosh),
    f1!(["dtanh"], f64 => f64, f64::tanh),
    f1!(["dasinh"], f64 => f64, |a| if a.abs() > LARGE { (a.abs().ln() + std::f64::consts::LN_2).copysign(a) } else { a.asinh() }),
    f1!(? ["dacosh"], f64 => f64, |a| if a < 1.0 { Err(bad_input()) } else { Ok(if a > LARGE { a.ln() + std::f64::consts::LN_2 } else { a.acosh() }) }),
    f1!(? ["datanh"], f64 => f64, |a| if (-1.0..=1.0).contains(&a) || a.is_nan() { Ok(a.atanh()) } else { Err(bad_input()) }),
    f1!(? ["degrees"], f64 => f64, |a| div(a, RADIANS_PER_DEGREE)),
    f1!(? ["radians"], f64 => f64, |a| mul(a, RADIANS_PER_DEGREE)),
    kernel!(["dpi"], |c| super::lift::constant(c, |_| Ok(repr::Value::Float8(std::f64::consts::PI)))),
    kernel!(? ["width_bucket_float8"], |c| super::lift::on_values(c, true, |a, _| match a {
        [repr::Value::Float8(x), repr::Value::Float8(lo), repr::Value::Float8(hi), repr::Value::Int4(n)] => {
            width_bucket(*x, *lo, *hi, *n).map(repr::Value::Int4)
        }
        _ => Err(SqlError::internal("width_bucket on other types")),
    })),
];
