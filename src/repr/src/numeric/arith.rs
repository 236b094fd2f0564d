//! Arithmetic: sums, products, quotients with Postgres's result scales, comparison, integer functions.
//!
//! Numbers that fit 128 bits stay in machine arithmetic. NaN and the infinities follow Postgres: Inf - Inf is NaN, 0 * Inf is NaN,
//! x / Inf is 0; NaN equals itself and is greatest. Errors: 22012 for division by zero, 22003 beyond the format.

use super::text::{overflow, SCALE_MAX, WHOLE_DIGITS_MAX};
use super::{pow10, Numeric};
use crate::error::{state, SqlError};
use num_bigint::BigInt;
use num_integer::Integer;
use num_traits::{Signed, ToPrimitive, Zero};
use std::cmp::Ordering;

/// Significant digits that a quotient or root has at least, and the most digits it shows after the point.
pub(crate) const SIG_DIGITS_MIN: i32 = 16;
pub(crate) const DISPLAY_SCALE_MAX: i32 = 1000;

pub(crate) fn division_by_zero() -> SqlError {
    SqlError::new(state::DIVISION_BY_ZERO, "division by zero")
}

/// The unscaled parts at the greater of the two scales.
fn align(a: &Numeric, b: &Numeric) -> (BigInt, BigInt, u16) {
    let scale = a.scale().max(b.scale());
    (a.rescaled_up(scale).unscaled(), b.rescaled_up(scale).unscaled(), scale)
}

/// As [`align`] in machine arithmetic, where it fits.
#[inline]
fn align_small(a: &Numeric, b: &Numeric) -> Option<(i128, i128, u16)> {
    let (Numeric::Small { unscaled: x, scale: s }, Numeric::Small { unscaled: y, scale: t }) = (a, b) else { return None };
    match s.cmp(t) {
        Ordering::Equal => Some((*x, *y, *s)),
        Ordering::Less => Some((x.checked_mul(10i128.checked_pow(u32::from(t - s))?)?, *y, *t)),
        Ordering::Greater => Some((*x, y.checked_mul(10i128.checked_pow(u32::from(s - t))?)?, *s)),
    }
}

impl Numeric {
    /// A number within the format's limits.
    pub(crate) fn checked(self) -> Result<Numeric, SqlError> {
        match &self {
            Numeric::Big(_) if i64::from(self.magnitude10()) >= WHOLE_DIGITS_MAX => Err(overflow()),
            _ => Ok(self),
        }
    }

    pub fn add(&self, other: &Numeric) -> Result<Numeric, SqlError> {
        if let Some((x, y, scale)) = align_small(self, other) {
            if let Some(unscaled) = x.checked_add(y) {
                return Ok(Numeric::Small { unscaled, scale });
            }
        }
        match (self, other) {
            (Numeric::NaN, _) | (_, Numeric::NaN) => Ok(Numeric::NaN),
            (Numeric::PosInf, Numeric::NegInf) | (Numeric::NegInf, Numeric::PosInf) => Ok(Numeric::NaN),
            (inf @ (Numeric::PosInf | Numeric::NegInf), _) | (_, inf @ (Numeric::PosInf | Numeric::NegInf)) => Ok(inf.clone()),
            _ => {
                let (x, y, scale) = align(self, other);
                Numeric::from_big(x + y, scale).checked()
            }
        }
    }

    pub fn sub(&self, other: &Numeric) -> Result<Numeric, SqlError> {
        if let Some((x, y, scale)) = align_small(self, other) {
            if let Some(unscaled) = x.checked_sub(y) {
                return Ok(Numeric::Small { unscaled, scale });
            }
        }
        self.add(&other.neg())
    }

    pub fn neg(&self) -> Numeric {
        match self {
            Numeric::Small { unscaled, scale } => match unscaled.checked_neg() {
                Some(unscaled) => Numeric::Small { unscaled, scale: *scale },
                None => Numeric::from_big(-BigInt::from(*unscaled), *scale),
            },
            Numeric::Big(b) => Numeric::from_big(-&b.0, b.1),
            Numeric::NaN => Numeric::NaN,
            Numeric::PosInf => Numeric::NegInf,
            Numeric::NegInf => Numeric::PosInf,
        }
    }

    pub fn abs(&self) -> Numeric {
        if self.is_negative() {
            self.neg()
        } else {
            self.clone()
        }
    }

    /// The product; its scale is the sum of the scales.
    pub fn mul(&self, other: &Numeric) -> Result<Numeric, SqlError> {
        if let (Numeric::Small { unscaled: x, scale: s }, Numeric::Small { unscaled: y, scale: t }) = (self, other) {
            if let (Some(unscaled), Some(scale)) = (x.checked_mul(*y), s.checked_add(*t).filter(|s| i64::from(*s) <= SCALE_MAX)) {
                return Ok(Numeric::Small { unscaled, scale });
            }
        }
        match (self, other) {
            (Numeric::NaN, _) | (_, Numeric::NaN) => return Ok(Numeric::NaN),
            _ if self.is_finite() && other.is_finite() => {}
            _ if self.is_zero() || other.is_zero() => return Ok(Numeric::NaN),
            _ => return Ok(if self.is_negative() == other.is_negative() { Numeric::PosInf } else { Numeric::NegInf }),
        }
        let scale = u32::from(self.scale()) + u32::from(other.scale());
        let product = self.unscaled() * other.unscaled();
        if i64::from(scale) <= SCALE_MAX {
            return Numeric::from_big(product, scale as u16).checked();
        }
        // More digits than the format has behind the point: rounded away.
        let scale_max = SCALE_MAX as u32;
        let q = round_div(&product, &pow10(scale - scale_max));
        Numeric::from_big(q, scale_max as u16).checked()
    }

    /// Weight and value of the first base-10000 digit, on which result scales rest.
    pub(crate) fn first_digit(&self) -> (i32, i32) {
        if self.is_zero() || !self.is_finite() {
            return (0, 0);
        }
        let m = self.magnitude10();
        let weight = m.div_euclid(4);
        let take = m.rem_euclid(4) + 1;
        let digits = match self {
            Numeric::Small { unscaled, .. } => unscaled.unsigned_abs().to_string(),
            _ => self.unscaled().magnitude().to_str_radix(10),
        };
        let mut first = 0;
        let mut it = digits.bytes();
        for _ in 0..take {
            first = first * 10 + i32::from(it.next().unwrap_or(b'0') - b'0');
        }
        (weight, first)
    }

    /// The scale of a quotient: at least 16 significant digits, and no less than either operand shows.
    pub fn div_scale(&self, other: &Numeric) -> i32 {
        let ((w1, d1), (w2, d2)) = (self.first_digit(), other.first_digit());
        let weight = w1 - w2 - i32::from(d1 <= d2);
        (SIG_DIGITS_MIN - weight * 4).max(self.scale().into()).max(other.scale().into()).clamp(0, DISPLAY_SCALE_MAX)
    }

    /// The quotient, rounded to [`Numeric::div_scale`].
    pub fn div(&self, other: &Numeric) -> Result<Numeric, SqlError> {
        match (self, other) {
            (Numeric::NaN, _) | (_, Numeric::NaN) => return Ok(Numeric::NaN),
            _ if !self.is_finite() && !other.is_finite() => return Ok(Numeric::NaN),
            _ if other.is_zero() => return Err(division_by_zero()),
            _ if !self.is_finite() => return Ok(if self.is_negative() == other.is_negative() { Numeric::PosInf } else { Numeric::NegInf }),
            _ if !other.is_finite() => return Ok(Numeric::from(0)),
            _ => {}
        }
        self.div_to_scale(other, self.div_scale(other))
    }

    /// The quotient of finite numbers, rounded to `scale` digits. The divisor is not zero.
    pub fn div_to_scale(&self, other: &Numeric, scale: i32) -> Result<Numeric, SqlError> {
        // (a / 10^s) / (b / 10^t) * 10^scale = a * 10^(t - s + scale) / b
        let shift = i32::from(other.scale()) - i32::from(self.scale()) + scale;
        if let (Numeric::Small { unscaled: a, .. }, Numeric::Small { unscaled: b, .. }) = (self, other) {
            if let Some(up) = u32::try_from(shift).ok().and_then(|s| 10i128.checked_pow(s)).and_then(|p| a.checked_mul(p)) {
                let (q, r) = (up / b, up % b);
                let round = r.unsigned_abs() >= b.unsigned_abs() - r.unsigned_abs();
                let away = if (*a < 0) == (*b < 0) { 1 } else { -1 };
                return Ok(Numeric::Small { unscaled: q + if round { away } else { 0 }, scale: scale as u16 });
            }
        }
        let (mut a, mut b) = (self.unscaled(), other.unscaled());
        if shift >= 0 {
            a *= pow10(shift as u32);
        } else {
            b *= pow10(-shift as u32);
        }
        Numeric::from_big(round_div(&a, &b), scale as u16).checked()
    }

    /// `div(a, b)`: the quotient cut to an integer.
    pub fn div_trunc(&self, other: &Numeric) -> Result<Numeric, SqlError> {
        if !self.is_finite() || !other.is_finite() || other.is_zero() {
            return self.div(other);
        }
        if let Some((x, y, _)) = align_small(self, other) {
            if let Some(unscaled) = x.checked_div(y) {
                return Ok(Numeric::Small { unscaled, scale: 0 });
            }
        }
        let (x, y, _) = align(self, other);
        Numeric::from_big(x / y, 0).checked()
    }

    /// The remainder, with the dividend's sign.
    pub fn rem(&self, other: &Numeric) -> Result<Numeric, SqlError> {
        if let Some((x, y, scale)) = align_small(self, other) {
            if let Some(unscaled) = x.checked_rem(y) {
                return Ok(Numeric::Small { unscaled, scale });
            }
        }
        match (self, other) {
            (Numeric::NaN, _) | (_, Numeric::NaN) => Ok(Numeric::NaN),
            _ if other.is_zero() => Err(division_by_zero()),
            _ if !self.is_finite() => Ok(Numeric::NaN),
            _ if !other.is_finite() => Ok(self.clone()),
            _ => {
                let (x, y, scale) = align(self, other);
                Numeric::from_big(x % y, scale).checked()
            }
        }
    }

    pub fn ceil(&self) -> Numeric {
        let t = self.trunc(0);
        match self.is_finite() && self > &t {
            true => t.add(&Numeric::from(1)).unwrap_or(t),
            false => t,
        }
    }

    pub fn floor(&self) -> Numeric {
        let t = self.trunc(0);
        match self.is_finite() && self < &t {
            true => t.sub(&Numeric::from(1)).unwrap_or(t),
            false => t,
        }
    }

    /// Whether the number has no fraction. The infinities have none.
    pub fn is_integral(&self) -> bool {
        match self {
            Numeric::NaN => false,
            Numeric::PosInf | Numeric::NegInf => true,
            n => n.min_scale() == 0,
        }
    }

    pub fn gcd(&self, other: &Numeric) -> Result<Numeric, SqlError> {
        if !self.is_finite() || !other.is_finite() {
            return Ok(Numeric::NaN);
        }
        let (x, y, scale) = align(self, other);
        Numeric::from_big(x.gcd(&y), scale).checked()
    }

    pub fn lcm(&self, other: &Numeric) -> Result<Numeric, SqlError> {
        if !self.is_finite() || !other.is_finite() {
            return Ok(Numeric::NaN);
        }
        let (x, y, scale) = align(self, other);
        if x.is_zero() || y.is_zero() {
            return Ok(Numeric::Small { unscaled: 0, scale });
        }
        let g = x.gcd(&y);
        Numeric::from_big((x / g * y).abs(), scale).checked()
    }

    /// `n!`. Errors: 22003 for a negative argument and beyond the format.
    pub fn factorial(n: i64) -> Result<Numeric, SqlError> {
        if n < 0 {
            return Err(SqlError::new(state::NUMERIC_VALUE_OUT_OF_RANGE, "factorial of a negative number is undefined"));
        }
        // The first factorial with more than 131072 digits is that of 32178.
        if n > 32_177 {
            return Err(overflow());
        }
        let mut out = BigInt::from(1);
        let mut part: u64 = 1;
        for k in 2..=n as u64 {
            part = match part.checked_mul(k) {
                Some(p) => p,
                None => {
                    out *= part;
                    k
                }
            };
        }
        Ok(Numeric::from_big(out * part, 0))
    }

    /// `width_bucket`. Errors: 2201G.
    pub fn width_bucket(&self, low: &Numeric, high: &Numeric, count: i32) -> Result<i32, SqlError> {
        let bad = |m: &str| Err(SqlError::new(state::INVALID_ARGUMENT_FOR_WIDTH_BUCKET, m));
        if count <= 0 {
            return bad("count must be greater than zero");
        }
        if [self, low, high].iter().any(|n| **n == Numeric::NaN) {
            return bad("operand, lower bound, and upper bound cannot be NaN");
        }
        if !low.is_finite() || !high.is_finite() {
            return bad("lower and upper bounds must be finite");
        }
        let out_of_range = || SqlError::new(state::NUMERIC_VALUE_OUT_OF_RANGE, "integer out of range");
        let above = || count.checked_add(1).ok_or_else(out_of_range);
        let order = low.cmp(high);
        if order == Ordering::Equal {
            return bad("lower bound cannot equal upper bound");
        }
        let rising = order == Ordering::Less;
        let (before, at_end) = if rising { (self < low, self >= high) } else { (self > low, self <= high) };
        if before {
            return Ok(0);
        }
        if at_end {
            return above();
        }
        let (x, l, _) = align(&self.sub(low)?, &high.sub(low)?);
        let q = (x * count) / l;
        q.to_i32().and_then(|b| b.checked_add(1)).ok_or_else(out_of_range)
    }

    /// The number as an integer, rounded. `ty` is named in errors: 22003 out of range, 0A000 for NaN and the infinities.
    pub fn to_int<T: TryFrom<i128>>(&self, ty: &str) -> Result<T, SqlError> {
        let special = |what: &str| Err(SqlError::new(state::FEATURE_NOT_SUPPORTED, format!("cannot convert {what} to {ty}")));
        match self {
            Numeric::NaN => return special("NaN"),
            Numeric::PosInf | Numeric::NegInf => return special("infinity"),
            _ => {}
        }
        let out_of_range = || SqlError::new(state::NUMERIC_VALUE_OUT_OF_RANGE, format!("{ty} out of range"));
        self.to_i128_rounded().and_then(|v| T::try_from(v).ok()).ok_or_else(out_of_range)
    }
}

/// Rounds half away from zero.
pub(crate) fn round_div(a: &BigInt, b: &BigInt) -> BigInt {
    let (q, r) = a.div_rem(b);
    match r.magnitude() * 2u32 >= *b.magnitude() {
        true => q + if a.is_negative() == b.is_negative() { 1 } else { -1 },
        false => q,
    }
}

/// The order of SQL: by value, NaN greatest and equal to itself. `1.0` and `1.00` compare equal here, while `==` tells them apart.
impl Ord for Numeric {
    fn cmp(&self, other: &Numeric) -> Ordering {
        if let Some((x, y, _)) = align_small(self, other) {
            return x.cmp(&y);
        }
        let rank = |n: &Numeric| match n {
            Numeric::NegInf => 0,
            Numeric::PosInf => 2,
            Numeric::NaN => 3,
            _ => 1,
        };
        match (rank(self), rank(other)) {
            (1, 1) => {
                let (x, y, _) = align(self, other);
                x.cmp(&y)
            }
            (a, b) => a.cmp(&b),
        }
    }
}

impl PartialOrd for Numeric {
    fn partial_cmp(&self, other: &Numeric) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
