//! Exact decimal numbers: Postgres's `numeric`, any precision, with the display scale kept a value.

/// Sums, products, quotients, comparison, integer functions.
mod arith;
/// Text in and out, modifiers, casts.
mod text;
/// Roots, powers, logarithms, exponentials.
mod transcendental;

use num_bigint::{BigInt, Sign};
use num_traits::ToPrimitive;
use serde::{Deserialize, Serialize};

pub use text::typmod_parts;

/// A `numeric`: `unscaled * 10^-scale`, or one of the special values. The scale is what is displayed: 1.0 is not identical to 1.00.
///
/// Invariant: a number whose unscaled part fits an `i128` is `Small`.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Numeric {
    Small { unscaled: i128, scale: u16 },
    Big(Box<(BigInt, u16)>),
    NaN,
    PosInf,
    NegInf,
}

impl From<i64> for Numeric {
    fn from(v: i64) -> Numeric {
        Numeric::Small { unscaled: i128::from(v), scale: 0 }
    }
}

/// `10^n`.
pub(crate) fn pow10(n: u32) -> BigInt {
    match 10i128.checked_pow(n) {
        Some(v) => BigInt::from(v),
        None => num_traits::pow(BigInt::from(10), n as usize),
    }
}

impl Numeric {
    /// `unscaled * 10^-scale`, as `Small` if it fits.
    pub fn from_big(unscaled: BigInt, scale: u16) -> Numeric {
        match unscaled.to_i128() {
            Some(unscaled) => Numeric::Small { unscaled, scale },
            None => Numeric::Big(Box::new((unscaled, scale))),
        }
    }

    pub fn is_finite(&self) -> bool {
        matches!(self, Numeric::Small { .. } | Numeric::Big(_))
    }

    /// The number of digits displayed after the point; 0 for special values.
    pub fn scale(&self) -> u16 {
        match self {
            Numeric::Small { scale, .. } => *scale,
            Numeric::Big(b) => b.1,
            _ => 0,
        }
    }

    /// The unscaled part; 0 for special values.
    pub fn unscaled(&self) -> BigInt {
        match self {
            Numeric::Small { unscaled, .. } => BigInt::from(*unscaled),
            Numeric::Big(b) => b.0.clone(),
            _ => BigInt::default(),
        }
    }

    /// `0.d1d2d3… * 10^exponent`, with the least scale that shows all digits.
    pub(crate) fn from_digits(negative: bool, digits: &[u8], exponent: i32) -> Numeric {
        let scale = (digits.len() as i32 - exponent).clamp(0, i32::from(u16::MAX) - 1);
        let zeros = (exponent - digits.len() as i32).max(0) as usize;
        if digits.len() + zeros <= 38 {
            let v = digits.iter().chain(std::iter::repeat_n(&0, zeros)).fold(0i128, |a, d| a * 10 + i128::from(*d));
            return Numeric::Small { unscaled: if negative { -v } else { v }, scale: scale as u16 };
        }
        let mut all = digits.to_vec();
        all.resize(digits.len() + zeros, 0);
        let sign = if negative { Sign::Minus } else { Sign::Plus };
        Numeric::from_big(BigInt::from_radix_be(sign, &all, 10).unwrap_or_default(), scale as u16)
    }

    /// The same number displayed with `scale` digits, which are not fewer than now.
    pub fn rescaled_up(&self, scale: u16) -> Numeric {
        let up = u32::from(scale.saturating_sub(self.scale()));
        match self {
            Numeric::Small { unscaled, .. } => match 10i128.checked_pow(up).and_then(|p| unscaled.checked_mul(p)) {
                Some(unscaled) => Numeric::Small { unscaled, scale },
                None => Numeric::from_big(BigInt::from(*unscaled) * pow10(up), scale),
            },
            Numeric::Big(b) => Numeric::from_big(&b.0 * pow10(up), scale),
            special => special.clone(),
        }
    }
}
