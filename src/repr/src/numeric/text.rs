//! Numbers as text, with their modifiers, and from and to other number types.

use super::{pow10, Numeric};
use crate::error::{state, SqlError};
use num_bigint::{BigInt, Sign};
use num_integer::Integer;
use num_traits::{Signed, ToPrimitive, Zero};
use std::fmt::Write;

/// Digits before the point that a number may have, and after it.
pub const WHOLE_DIGITS_MAX: i64 = 131_072;
pub const SCALE_MAX: i64 = 16_383;

pub(crate) fn overflow() -> SqlError {
    SqlError::new(state::NUMERIC_VALUE_OUT_OF_RANGE, "value overflows numeric format")
}

/// A modifier's precision and scale; `None` if there is none.
pub fn typmod_parts(typmod: i32) -> Option<(i32, i32)> {
    if typmod < 4 {
        return None;
    }
    let t = typmod - 4;
    // The scale is signed, in 11 bits.
    Some(((t >> 16) & 0xffff, ((t & 0x7ff) ^ 1024) - 1024))
}

impl Numeric {
    /// Reads a number, blanks around it allowed.
    /// Errors: 22P02 for the form, 22003 beyond 131072 digits before or 16383 after the point.
    pub fn parse(text: &str) -> Result<Numeric, SqlError> {
        let bad = || SqlError::new(state::INVALID_TEXT_REPRESENTATION, format!("invalid input syntax for type numeric: \"{text}\""));
        let s = text.trim_matches(|c: char| c.is_ascii_whitespace() || c == '\x0b');
        let (negative, body) = match s.as_bytes().first() {
            Some(b'-') => (true, &s[1..]),
            Some(b'+') => (false, &s[1..]),
            _ => (false, s),
        };
        if !body.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
            return match body.to_ascii_lowercase().as_str() {
                "nan" if body.len() == s.len() => Ok(Numeric::NaN),
                "inf" | "infinity" => Ok(if negative { Numeric::NegInf } else { Numeric::PosInf }),
                _ => Err(bad()),
            };
        }
        let (mantissa, exponent) = match body.find(['e', 'E']) {
            Some(p) => (&body[..p], Some(&body[p + 1..])),
            None => (body, None),
        };
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let digits = |d: &str| d.bytes().all(|b| b.is_ascii_digit());
        if whole.len() + fraction.len() == 0 || !digits(whole) || !digits(fraction) {
            return Err(bad());
        }
        let exponent: i64 = match exponent {
            None => 0,
            Some(e) => {
                let unsigned = e.strip_prefix(['+', '-']).unwrap_or(e);
                if unsigned.is_empty() || !digits(unsigned) {
                    return Err(bad());
                }
                e.parse::<i64>().ok().filter(|v| v.abs() < i64::from(i32::MAX) / 2).ok_or_else(overflow)?
            }
        };
        let scale = fraction.len() as i64 - exponent;
        if scale > SCALE_MAX {
            return Err(overflow());
        }
        let zero = whole.bytes().chain(fraction.bytes()).all(|b| b == b'0');
        let zeros = (-scale).max(0);
        if zero {
            return Ok(Numeric::Small { unscaled: 0, scale: scale.max(0) as u16 });
        }
        if whole.trim_start_matches('0').len() as i64 + exponent > WHOLE_DIGITS_MAX {
            return Err(overflow());
        }
        if whole.len() as i64 + fraction.len() as i64 + zeros <= 38 {
            let v = whole.bytes().chain(fraction.bytes()).chain(std::iter::repeat_n(b'0', zeros as usize));
            let v = v.fold(0i128, |a, b| a * 10 + i128::from(b - b'0'));
            return Ok(Numeric::Small { unscaled: if negative { -v } else { v }, scale: scale.max(0) as u16 });
        }
        let mut all = String::with_capacity(whole.len() + fraction.len() + zeros as usize);
        all.push_str(whole);
        all.push_str(fraction);
        all.extend(std::iter::repeat_n('0', zeros as usize));
        let v: BigInt = all.parse().map_err(|_| bad())?;
        Ok(Numeric::from_big(if negative { -v } else { v }, scale.max(0) as u16))
    }

    /// Appends the number's text, with its scale's digits.
    pub fn print(&self, out: &mut String) {
        match self {
            Numeric::NaN => out.push_str("NaN"),
            Numeric::PosInf => out.push_str("Infinity"),
            Numeric::NegInf => out.push_str("-Infinity"),
            Numeric::Small { unscaled, scale: 0 } => {
                let _ = write!(out, "{unscaled}");
            }
            Numeric::Small { unscaled, scale } => {
                let start = out.len();
                let _ = write!(out, "{}", unscaled.unsigned_abs());
                put_point(out, start, usize::from(*scale), *unscaled < 0);
            }
            Numeric::Big(b) => {
                let start = out.len();
                out.push_str(&b.0.magnitude().to_str_radix(10));
                put_point(out, start, usize::from(b.1), b.0.is_negative());
            }
        }
    }

    pub fn is_negative(&self) -> bool {
        match self {
            Numeric::Small { unscaled, .. } => *unscaled < 0,
            Numeric::Big(b) => b.0.is_negative(),
            Numeric::NegInf => true,
            _ => false,
        }
    }

    pub fn is_zero(&self) -> bool {
        matches!(self, Numeric::Small { unscaled: 0, .. })
    }

    /// Rounds to `scale` digits after the point, halves away from zero; a negative scale rounds before the point.
    pub fn round(&self, scale: i32) -> Numeric {
        self.rescale(scale, true)
    }

    /// Cuts to `scale` digits after the point.
    pub fn trunc(&self, scale: i32) -> Numeric {
        self.rescale(scale, false)
    }

    fn rescale(&self, scale: i32, round: bool) -> Numeric {
        if !self.is_finite() {
            return self.clone();
        }
        // One more than a number may have digits: all of them may round up.
        let scale = scale.clamp(-WHOLE_DIGITS_MAX as i32 - 1, SCALE_MAX as i32);
        let down = i32::from(self.scale()) - scale;
        if down <= 0 {
            return self.rescaled_up(scale as u16);
        }
        let shown = scale.max(0) as u16;
        if let (Numeric::Small { unscaled, .. }, Some(p)) = (self, 10i128.checked_pow(down as u32)) {
            let (q, r) = (unscaled / p, unscaled % p);
            // Halves away from zero, without doubling `r`.
            let up = round && r.unsigned_abs() >= (p as u128).div_ceil(2);
            let q = q + if up { unscaled.signum() } else { 0 };
            return match if scale < 0 { 10i128.checked_pow(-scale as u32).and_then(|z| q.checked_mul(z)) } else { Some(q) } {
                Some(unscaled) => Numeric::Small { unscaled, scale: shown },
                None => Numeric::from_big(BigInt::from(q) * pow10(-scale as u32), shown),
            };
        }
        if self.scale() == 0 && down as i64 > WHOLE_DIGITS_MAX {
            return Numeric::from(0);
        }
        let p = pow10(down as u32);
        let (mut q, r) = self.unscaled().div_rem(&p);
        if round && r.magnitude() * 2u32 >= *p.magnitude() {
            q += if self.is_negative() { -1 } else { 1 };
        }
        if scale < 0 {
            q *= pow10(-scale as u32);
        }
        Numeric::from_big(q, shown)
    }

    /// Rounds to a modifier's scale and checks its precision.
    /// Errors: 22003, with Postgres's detail.
    pub fn apply_typmod(&self, typmod: i32) -> Result<Numeric, SqlError> {
        let Some((precision, scale)) = typmod_parts(typmod) else { return Ok(self.clone()) };
        let field_overflow = || SqlError::new(state::NUMERIC_VALUE_OUT_OF_RANGE, "numeric field overflow");
        if matches!(self, Numeric::PosInf | Numeric::NegInf) {
            return Err(field_overflow().with_detail(format!("A field with precision {precision}, scale {scale} cannot hold an infinite value.")));
        }
        let rounded = self.round(scale);
        let whole_max = precision - scale;
        if rounded.is_finite() && !rounded.is_zero() && i64::from(rounded.magnitude10()) + 1 > i64::from(whole_max) {
            let limit = if whole_max == 0 { "1".to_owned() } else { format!("10^{whole_max}") };
            return Err(
                field_overflow().with_detail(format!("A field with precision {precision}, scale {scale} must round to an absolute value less than {limit}."))
            );
        }
        Ok(rounded)
    }

    /// `floor(log10(|x|))` of a finite number that is not zero.
    pub fn magnitude10(&self) -> i32 {
        let digits = match self {
            Numeric::Small { unscaled, .. } => unscaled.unsigned_abs().checked_ilog10().unwrap_or(0) as i32 + 1,
            Numeric::Big(b) => b.0.magnitude().to_str_radix(10).len() as i32,
            _ => 1,
        };
        digits - 1 - i32::from(self.scale())
    }

    /// The number rounded to an integer; `None` beyond `i128` and for special values.
    pub fn to_i128_rounded(&self) -> Option<i128> {
        match self.round(0) {
            Numeric::Small { unscaled, .. } => Some(unscaled),
            _ => None,
        }
    }

    /// The nearest double.
    pub fn to_f64(&self) -> f64 {
        match self {
            Numeric::NaN => f64::NAN,
            Numeric::PosInf => f64::INFINITY,
            Numeric::NegInf => f64::NEG_INFINITY,
            Numeric::Small { unscaled, scale } if unscaled.unsigned_abs() < 1 << 53 && *scale <= 22 => {
                // Both are exact, so the division rounds once.
                *unscaled as f64 / 10f64.powi(i32::from(*scale))
            }
            _ => self.to_string().parse().unwrap_or(f64::NAN),
        }
    }

    /// From a double, by its 15 significant digits, as Postgres casts it.
    pub fn from_f64(v: f64) -> Numeric {
        Numeric::from_float(v, 14)
    }

    /// From a float, by its 6 significant digits.
    pub fn from_f32(v: f32) -> Numeric {
        Numeric::from_float(f64::from(v), 5)
    }

    fn from_float(v: f64, digits: usize) -> Numeric {
        if v.is_nan() {
            return Numeric::NaN;
        }
        if v.is_infinite() {
            return if v > 0.0 { Numeric::PosInf } else { Numeric::NegInf };
        }
        let text = format!("{v:.digits$e}");
        let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let exponent: i32 = exponent.parse().unwrap_or(0);
        // `%g` drops trailing zeros, and with them the scale.
        let digits: String = mantissa.chars().filter(char::is_ascii_digit).collect();
        let digits = digits.trim_end_matches('0');
        if digits.is_empty() {
            return Numeric::from(0);
        }
        let raw: Vec<u8> = digits.bytes().map(|b| b - b'0').collect();
        Numeric::from_digits(v < 0.0, &raw, exponent + 1)
    }

    pub fn from_i128(v: i128) -> Numeric {
        Numeric::Small { unscaled: v, scale: 0 }
    }

    /// Without trailing zeros after the point.
    pub fn trim_scale(&self) -> Numeric {
        self.rescale(i32::from(self.min_scale()), false)
    }

    /// The least scale that shows all digits.
    pub fn min_scale(&self) -> u16 {
        match self {
            Numeric::Small { unscaled: 0, .. } => 0,
            Numeric::Small { unscaled, scale } => {
                let (mut v, mut s) = (*unscaled, *scale);
                while s > 0 && v % 10 == 0 {
                    v /= 10;
                    s -= 1;
                }
                s
            }
            Numeric::Big(b) => {
                let digits = b.0.magnitude().to_radix_be(10);
                let zeros = digits.iter().rev().take_while(|d| **d == 0).count() as u16;
                b.1 - zeros.min(b.1)
            }
            _ => 0,
        }
    }

    /// Sign: -1, 0, 1; NaN has 1.
    pub fn signum(&self) -> i32 {
        match self {
            Numeric::Small { unscaled, .. } => unscaled.signum() as i32,
            Numeric::Big(b) if b.0.sign() == Sign::Minus => -1,
            Numeric::NegInf => -1,
            _ => 1,
        }
    }

    /// The value as a `usize` where one is wanted and small.
    pub fn to_i64_exact(&self) -> Option<i64> {
        let p = pow10(self.scale().into());
        let (q, r) = self.unscaled().div_rem(&p);
        (self.is_finite() && r.is_zero()).then(|| q.to_i64()).flatten()
    }
}

/// Sets the point and the sign into digits written from `start` on.
fn put_point(out: &mut String, start: usize, scale: usize, negative: bool) {
    if scale > 0 {
        let digits = out.len() - start;
        if digits <= scale {
            out.insert_str(start, &"0".repeat(scale + 1 - digits));
        }
        out.insert(out.len() - scale, '.');
    }
    if negative {
        out.insert(start, '-');
    }
}

impl std::fmt::Display for Numeric {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut s = String::new();
        self.print(&mut s);
        f.write_str(&s)
    }
}
