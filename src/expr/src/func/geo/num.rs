//! Numbers of geometry: comparison within [`EPSILON`], arithmetic that says when it leaves the range of doubles.
//!
//! An overflow is 22003 unless an operand was infinite already; a division by zero is 22012.

use repr::error::state;
pub use repr::geo::{float_less, EPSILON};
use repr::SqlError;

pub type Res<T> = Result<T, SqlError>;

pub fn zero(a: f64) -> bool {
    a.abs() <= EPSILON
}
pub fn eq(a: f64, b: f64) -> bool {
    a == b || (a - b).abs() <= EPSILON
}
/// False for NaN, as [`eq`] is.
pub fn ne(a: f64, b: f64) -> bool {
    a != b && (a - b).abs() > EPSILON
}
pub fn lt(a: f64, b: f64) -> bool {
    b - a > EPSILON
}
pub fn le(a: f64, b: f64) -> bool {
    a <= b + EPSILON
}
pub fn gt(a: f64, b: f64) -> bool {
    a - b > EPSILON
}
pub fn ge(a: f64, b: f64) -> bool {
    a + EPSILON >= b
}

/// Equality in which NaN equals itself.
pub fn exact(a: f64, b: f64) -> bool {
    a == b || (a.is_nan() && b.is_nan())
}

pub fn min(a: f64, b: f64) -> f64 {
    if float_less(a, b) {
        a
    } else {
        b
    }
}

pub fn max(a: f64, b: f64) -> f64 {
    if float_less(b, a) {
        a
    } else {
        b
    }
}

fn overflow() -> SqlError {
    SqlError::new(state::NUMERIC_VALUE_OUT_OF_RANGE, "value out of range: overflow")
}

fn underflow() -> SqlError {
    SqlError::new(state::NUMERIC_VALUE_OUT_OF_RANGE, "value out of range: underflow")
}

/// `r` unless it became infinite though no operand was.
fn finite(r: f64, a: f64, b: f64) -> Res<f64> {
    if r.is_infinite() && !a.is_infinite() && !b.is_infinite() {
        return Err(overflow());
    }
    Ok(r)
}

pub fn add(a: f64, b: f64) -> Res<f64> {
    finite(a + b, a, b)
}

pub fn sub(a: f64, b: f64) -> Res<f64> {
    finite(a - b, a, b)
}

pub fn mul(a: f64, b: f64) -> Res<f64> {
    let r = finite(a * b, a, b)?;
    if r == 0.0 && a != 0.0 && b != 0.0 {
        return Err(underflow());
    }
    Ok(r)
}

pub fn div(a: f64, b: f64) -> Res<f64> {
    if b == 0.0 && !a.is_nan() {
        return Err(SqlError::new(state::DIVISION_BY_ZERO, "division by zero"));
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

/// The length of the diagonal of a rectangle, computed as Postgres does, so that last digits agree.
pub fn hypot(x: f64, y: f64) -> Res<f64> {
    if x.is_infinite() || y.is_infinite() {
        return Ok(f64::INFINITY);
    }
    if x.is_nan() || y.is_nan() {
        return Ok(f64::NAN);
    }
    let (x, y) = (x.abs(), y.abs());
    let (long, short) = if x < y { (y, x) } else { (x, y) };
    if short == 0.0 {
        return Ok(long);
    }
    let ratio = short / long;
    let r = long * (1.0 + ratio * ratio).sqrt();
    if r.is_infinite() {
        return Err(overflow());
    }
    if r == 0.0 {
        return Err(underflow());
    }
    Ok(r)
}
