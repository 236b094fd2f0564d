//! Roots, powers, logarithms and exponentials, digit for digit as Postgres shows them.
//!
//! Postgres chooses the scale of a result from an estimate of its size (at least 16 significant digits, never fewer than the operands
//! show) and computes with digits to spare, so the digits are those of the true value, rounded. Here the value is computed in binary
//! fixed point with 64 bits to spare and rounded to the same scale.

use super::arith::{division_by_zero, DISPLAY_SCALE_MAX, SIG_DIGITS_MIN};
use super::text::overflow;
use super::{pow10, Numeric};
use crate::error::{state, SqlError};
use crate::interrupt::Pace;
use num_bigint::{BigInt, BigUint, Sign};
use num_traits::{One, Signed, ToPrimitive, Zero};
use std::cmp::Ordering;

/// Twice the largest precision that can be declared: Postgres's bound for exponents.
const RESULT_SCALE_MAX: i32 = 2000;
const GUARD_BITS: u64 = 64;
#[allow(clippy::approx_constant)] // the digits that PostgreSQL estimates with
const LOG10_E: f64 = 0.434_294_481_903_252;

fn log_error(m: &str) -> SqlError {
    SqlError::new(state::INVALID_ARGUMENT_FOR_LOG, m)
}

fn power_error(m: &str) -> SqlError {
    SqlError::new(state::INVALID_ARGUMENT_FOR_POWER, m)
}

/// Bits that hold `digits` decimal digits.
fn bits_of(digits: i64) -> u64 {
    (digits.max(0) as u64 * 3322).div_ceil(1000) + GUARD_BITS
}

/// `x` in fixed point with `bits` bits after the point.
fn to_fixed(x: &Numeric, bits: u64) -> BigInt {
    (x.unscaled() << bits) / pow10(x.scale().into())
}

/// A fixed-point number rounded to a decimal scale.
fn from_fixed(v: &BigInt, bits: u64, scale: i32) -> Numeric {
    let scaled: BigInt = v * pow10(scale as u32);
    let half = BigInt::one() << (bits - 1);
    let q = if scaled.is_negative() { -((-scaled + half) >> bits) } else { (scaled + half) >> bits };
    Numeric::from_big(q, scale as u16)
}

fn mul_fixed(a: &BigInt, b: &BigInt, bits: u64) -> BigInt {
    (a * b) >> bits
}

/// `2 * atanh(y)` for a small `y`.
fn atanh2(y: &BigInt, bits: u64) -> BigInt {
    let y2 = mul_fixed(y, y, bits);
    let (mut term, mut sum, mut k) = (y.clone(), y.clone(), 3u32);
    let pace = Pace::default();
    loop {
        term = mul_fixed(&term, &y2, bits);
        let t = &term / k;
        if t.is_zero() || t == BigInt::from(-1) || pace.stop(bits as usize) {
            return sum << 1;
        }
        sum += t;
        k += 2;
    }
}

fn ln2(bits: u64) -> BigInt {
    atanh2(&((BigInt::one() << bits) / 3), bits)
}

/// Natural logarithm of a positive number, in fixed point.
fn ln_fixed(x: &Numeric, bits: u64) -> BigInt {
    // x = m * 2^k with m in [1, 2)
    let (num, den) = (x.unscaled(), pow10(x.scale().into()));
    let mut k = num.bits() as i64 - den.bits() as i64;
    let mantissa = |k: i64| -> BigInt {
        let shift = bits as i64 - k;
        if shift >= 0 {
            (&num << shift as u64) / &den
        } else {
            (&num >> (-shift) as u64) / &den
        }
    };
    let one = BigInt::one() << bits;
    let mut m = mantissa(k);
    if m < one {
        k -= 1;
        m = mantissa(k);
    }
    // Roots bring m near 1, where the series is short.
    let roots = (bits as f64).sqrt() as u32 / 2;
    let pace = Pace::default();
    for _ in (0..roots).take_while(|_| !pace.stop(8 * bits as usize)) {
        m = (m << bits).sqrt();
    }
    let y = ((&m - &one) << bits) / (&m + &one);
    (atanh2(&y, bits) << roots) + ln2(bits) * k
}

/// `e^x` for a fixed-point `x`, and the power of two by which the result is to be multiplied.
fn exp_fixed(x: &BigInt, bits: u64) -> (BigInt, i64) {
    let l2 = ln2(bits);
    let k = num_integer::Integer::div_floor(x, &l2).to_i64().unwrap_or(0);
    let mut r: BigInt = x - &l2 * k;
    let halvings = (bits as f64).sqrt() as u64 / 2;
    r >>= halvings;
    let one = BigInt::one() << bits;
    let (mut sum, mut term, mut n) = (one.clone() + &r, r.clone(), 2u32);
    let pace = Pace::default();
    loop {
        term = mul_fixed(&term, &r, bits) / n;
        if term.is_zero() || pace.stop(bits as usize) {
            break;
        }
        sum += &term;
        n += 1;
    }
    for _ in (0..halvings).take_while(|_| !pace.stop(bits as usize)) {
        sum = mul_fixed(&sum, &sum, bits);
    }
    (sum, k)
}

/// `e^x` rounded to `scale`. Errors: 22003 where the result overflows.
fn exp_to_scale(x: &BigInt, bits_in: u64, approx: f64, scale: i32) -> Result<Numeric, SqlError> {
    if approx.abs() >= f64::from(RESULT_SCALE_MAX * 3) {
        return if approx > 0.0 { Err(overflow()) } else { Ok(Numeric::Small { unscaled: 0, scale: scale as u16 }) };
    }
    let digits = i64::from(scale) + (approx * LOG10_E).max(0.0) as i64 + 5;
    // Squaring loses a bit each time.
    let bits = bits_of(digits) + 64;
    let x = if bits_in >= bits { x >> (bits_in - bits) } else { x << (bits - bits_in) };
    let (v, k) = exp_fixed(&x, bits);
    let scaled = v * pow10(scale as u32);
    let shift = bits as i64 - k;
    let q = if shift > 0 {
        let half = BigInt::one() << (shift - 1) as u64;
        (scaled + half) >> shift as u64
    } else {
        scaled << (-shift) as u64
    };
    Numeric::from_big(q, scale as u16).checked()
}

/// A number's first digits and the power of ten behind them, as Postgres estimates with.
fn leading(n: &Numeric, base_digits: usize) -> (f64, i32) {
    let (weight, _) = n.first_digit();
    let digits = n.unscaled().magnitude().to_str_radix(10);
    // The digits stand in groups of four, of which the first is filled up to its weight.
    let lead = (n.magnitude10().rem_euclid(4) + 1) as usize;
    let significant = digits.trim_end_matches('0').len().max(1);
    let groups = (significant.saturating_sub(lead)).div_ceil(4) + 1;
    let groups = groups.min(base_digits);
    let take = lead + (groups - 1) * 4;
    let mut f = 0.0;
    for i in 0..take {
        f = f * 10.0 + f64::from(digits.as_bytes().get(i).copied().unwrap_or(b'0') - b'0');
    }
    (f, (weight - (groups as i32 - 1)) * 4)
}

/// About the decimal weight of `ln(x)`.
fn ln_weight(x: &Numeric) -> i32 {
    if x.signum() <= 0 || x.is_zero() {
        return 0;
    }
    let near = |unscaled| Numeric::Small { unscaled, scale: 1 };
    if x.cmp(&near(9)) != Ordering::Less && x.cmp(&near(11)) != Ordering::Greater {
        let Ok(d) = x.sub(&Numeric::from(1)) else { return 0 };
        if d.is_zero() {
            return 0;
        }
        let (weight, first) = d.first_digit();
        return weight * 4 + f64::from(first).log10() as i32;
    }
    let (digits, weight) = leading(x, 2);
    let ln = digits.ln() + f64::from(weight) * std::f64::consts::LN_10;
    ln.abs().log10() as i32
}

/// A result's scale from its decimal weight.
fn scale_for(weight: i32, shown: &[u16]) -> i32 {
    let most = shown.iter().copied().max().unwrap_or(0);
    (SIG_DIGITS_MIN - weight).max(most.into()).clamp(0, DISPLAY_SCALE_MAX)
}

impl Numeric {
    /// Errors: 2201F for a negative number.
    pub fn sqrt(&self) -> Result<Numeric, SqlError> {
        if matches!(self, Numeric::NaN | Numeric::PosInf) {
            return Ok(self.clone());
        }
        if self.is_negative() {
            return Err(power_error("cannot take square root of a negative number"));
        }
        let (weight, _) = self.first_digit();
        let scale = scale_for((weight + 1) * 4 / 2 - 1, &[self.scale()]);
        // One digit more, from which to round: a root is exact or irrational.
        let shift = 2 * (scale + 1) - i32::from(self.scale());
        let v = self.unscaled() * pow10(shift.max(0) as u32) / pow10((-shift).max(0) as u32);
        let root = v.magnitude().sqrt();
        let q = (root + 5u32) / 10u32;
        Numeric::from_big(BigInt::from_biguint(Sign::Plus, q), scale as u16).checked()
    }

    /// Errors: 22003 where the result overflows.
    pub fn exp(&self) -> Result<Numeric, SqlError> {
        match self {
            Numeric::NaN | Numeric::PosInf => return Ok(self.clone()),
            Numeric::NegInf => return Ok(Numeric::from(0)),
            _ => {}
        }
        let approx = self.to_f64();
        let weight = (approx * LOG10_E).clamp(-f64::from(RESULT_SCALE_MAX), f64::from(RESULT_SCALE_MAX)) as i32;
        let scale = scale_for(weight, &[self.scale()]);
        if approx.abs() >= f64::from(RESULT_SCALE_MAX * 3) {
            return exp_to_scale(&BigInt::zero(), 0, approx, scale);
        }
        let bits = bits_of(i64::from(scale) + (approx * LOG10_E).max(0.0) as i64 + 10) + 80;
        exp_to_scale(&to_fixed(self, bits), bits, approx, scale)
    }

    /// Natural logarithm. Errors: 2201E for zero and negative numbers.
    pub fn ln(&self) -> Result<Numeric, SqlError> {
        match self {
            Numeric::NaN | Numeric::PosInf => return Ok(self.clone()),
            n => check_log(n)?,
        }
        Ok(self.ln_to_scale(scale_for(ln_weight(self), &[self.scale()])))
    }

    /// `ln` of a positive number, rounded to `scale`.
    fn ln_to_scale(&self, scale: i32) -> Numeric {
        let bits = bits_of(i64::from(scale) + 8) + 32;
        from_fixed(&ln_fixed(self, bits), bits, scale)
    }

    /// The logarithm of `x` to the base `self`. Errors: 2201E; 22012 for base 1.
    pub fn log(&self, x: &Numeric) -> Result<Numeric, SqlError> {
        if *self == Numeric::NaN || *x == Numeric::NaN {
            return Ok(Numeric::NaN);
        }
        if (!self.is_finite() || !x.is_finite()) && (self.is_negative() || x.is_negative()) {
            return Err(log_error("cannot take logarithm of a negative number"));
        }
        check_log(self)?;
        check_log(x)?;
        match (self, x) {
            (Numeric::PosInf, Numeric::PosInf) => return Ok(Numeric::NaN),
            (Numeric::PosInf, _) => return Ok(Numeric::from(0)),
            (_, Numeric::PosInf) => return Ok(Numeric::PosInf),
            _ => {}
        }
        let (base_weight, x_weight) = (ln_weight(self), ln_weight(x));
        let weight = x_weight - base_weight;
        let scale = scale_for(weight, &[self.scale(), x.scale()]);
        let digits = i64::from(scale) + i64::from(weight.abs()) + i64::from(base_weight.abs()) + i64::from(x_weight.abs()) + 16;
        let bits = bits_of(digits) + 32;
        let base_ln = ln_fixed(self, bits);
        // Only ln(1) is 0; what is smaller than the spare digits is that.
        if self.cmp(&Numeric::from(1)) == Ordering::Equal {
            return Err(division_by_zero());
        }
        let q = (ln_fixed(x, bits) << bits) / base_ln;
        from_fixed(&q, bits, scale).checked()
    }

    /// Errors: 2201F for zero to a negative power and for a negative number to a power that is no integer; 22003 on overflow.
    pub fn power(&self, exp: &Numeric) -> Result<Numeric, SqlError> {
        if !self.is_finite() || !exp.is_finite() {
            return self.power_special(exp);
        }
        self.check_power(exp)?;
        if exp.is_integral() {
            if let Some(n) = exp.to_i64_exact().and_then(|n| i32::try_from(n).ok()) {
                return self.power_int(n);
            }
        }
        if self.is_zero() {
            return Ok(Numeric::Small { unscaled: 0, scale: SIG_DIGITS_MIN as u16 });
        }
        let base = self.abs();
        let negative = self.is_negative() && exp.trunc(0).unscaled().bit(0);
        let ln_w = ln_weight(&base);
        let rough = base.ln_to_scale((8 - ln_w).max(0)).mul(exp)?.to_f64();
        if rough.abs() > f64::from(RESULT_SCALE_MAX) * 3.01 {
            return if rough > 0.0 { Err(overflow()) } else { Ok(Numeric::Small { unscaled: 0, scale: DISPLAY_SCALE_MAX as u16 }) };
        }
        let weight = (rough * LOG10_E) as i32;
        let scale = scale_for(weight, &[self.scale(), exp.scale()]);
        let digits = i64::from(scale) + i64::from(weight.max(0)) + i64::from(exp.magnitude10().max(0)) + 20;
        let bits = bits_of(digits) + 80;
        let product = (ln_fixed(&base, bits) * exp.unscaled()) / pow10(exp.scale().into());
        let out = exp_to_scale(&product, bits, rough, scale)?;
        Ok(if negative { out.neg() } else { out })
    }

    fn check_power(&self, exp: &Numeric) -> Result<(), SqlError> {
        if self.is_zero() && exp.is_negative() {
            return Err(power_error("zero raised to a negative power is undefined"));
        }
        if self.is_negative() && !exp.is_integral() {
            return Err(power_error("a negative number raised to a non-integer power yields a complex result"));
        }
        Ok(())
    }

    /// Powers with NaN or an infinity, by POSIX's rules.
    fn power_special(&self, exp: &Numeric) -> Result<Numeric, SqlError> {
        let one = Numeric::from(1);
        let is_one = |n: &Numeric| n.is_finite() && n.cmp(&Numeric::from(1)) == Ordering::Equal;
        if *self == Numeric::NaN {
            return Ok(if exp.is_zero() { one } else { Numeric::NaN });
        }
        if *exp == Numeric::NaN {
            return Ok(if is_one(self) { one } else { Numeric::NaN });
        }
        self.check_power(exp)?;
        if is_one(self) || exp.is_zero() {
            return Ok(one);
        }
        if self.is_zero() {
            return Ok(Numeric::from(0));
        }
        if !exp.is_finite() {
            return Ok(match if self.is_finite() { self.abs().cmp(&one) } else { Ordering::Greater } {
                Ordering::Equal => one,
                order if (order == Ordering::Greater) != exp.is_negative() => Numeric::PosInf,
                _ => Numeric::from(0),
            });
        }
        if exp.is_negative() {
            return Ok(Numeric::from(0));
        }
        let odd = exp.trunc(0).unscaled().bit(0);
        Ok(if *self == Numeric::NegInf && odd { Numeric::NegInf } else { Numeric::PosInf })
    }

    fn power_int(&self, n: i32) -> Result<Numeric, SqlError> {
        let weight = if self.is_zero() {
            0.0
        } else {
            let (f, p) = leading(self, 4);
            f64::from(n) * (f.log10() + f64::from(p))
        };
        if weight > (32_767.0 + 1.0) * 4.0 {
            return Err(overflow());
        }
        // An integer power shows 16 digits after the point, whatever its size.
        let scale = scale_for(0, &[self.scale()]);
        if n.unsigned_abs() > 2 && weight + 1.0 < -f64::from(scale) {
            return Ok(Numeric::Small { unscaled: 0, scale: scale as u16 });
        }
        match n {
            0 => return Ok(Numeric::from(1).rescaled_up(scale as u16)),
            _ if self.is_zero() => return Ok(Numeric::Small { unscaled: 0, scale: scale as u16 }),
            1 => return Ok(self.round(scale)),
            -1 => return Numeric::from(1).div_to_scale(self, scale),
            _ => {}
        }
        // Powers of the digits, cut to the digits that the result needs and some to spare. value = mantissa * 10^exponent.
        let keep = (i64::from(scale) + weight.max(0.0) as i64 + 40).max(60) as u64;
        let cut = |m: &mut BigUint, e: &mut i64| {
            let digits = m.bits() * 1000 / 3322;
            if digits > keep + 20 {
                let drop = digits - keep;
                *m /= pow10(drop as u32).magnitude();
                *e += drop as i64;
            }
        };
        let (mut m, mut e) = (BigUint::one(), 0i64);
        let (mut square, mut square_e) = (self.unscaled().magnitude().clone(), -i64::from(self.scale()));
        let mut bits = n.unsigned_abs();
        while bits > 0 {
            if bits & 1 == 1 {
                m *= &square;
                e += square_e;
                cut(&mut m, &mut e);
            }
            bits >>= 1;
            if bits > 0 {
                square = &square * &square;
                square_e *= 2;
                cut(&mut square, &mut square_e);
            }
        }
        let m = BigInt::from_biguint(if self.is_negative() && n % 2 != 0 { Sign::Minus } else { Sign::Plus }, m);
        let out = if n > 0 {
            let shift = e + i64::from(scale);
            match shift {
                s if (0..=200_000).contains(&s) => m * pow10(s as u32),
                s if s > 0 => return Err(overflow()),
                s => super::arith::round_div(&m, &pow10(s.unsigned_abs() as u32)),
            }
        } else {
            // 10^scale / (m * 10^e)
            let shift = i64::from(scale) - e;
            if shift >= 0 {
                super::arith::round_div(&pow10(shift as u32), &m)
            } else {
                BigInt::zero()
            }
        };
        Numeric::from_big(out, scale as u16).checked()
    }
}

fn check_log(n: &Numeric) -> Result<(), SqlError> {
    match n {
        n if n.is_negative() => Err(log_error("cannot take logarithm of a negative number")),
        n if n.is_zero() => Err(log_error("cannot take logarithm of zero")),
        _ => Ok(()),
    }
}
