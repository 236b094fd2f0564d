//! Numeric division and square root with the scales that Postgres gives to averages and variances.

use num_bigint::BigInt;
use num_traits::{Signed, ToPrimitive, Zero};
use repr::Numeric;

fn pow10(n: u32) -> BigInt {
    num_traits::pow(BigInt::from(10), n as usize)
}

/// Weight in base 10000 and the leading base-10000 digit of `u * 10^-scale`.
fn leading(u: &BigInt, scale: u32) -> (i64, i64) {
    if u.is_zero() {
        return (0, 0);
    }
    let digits = u.magnitude().to_string();
    let top = digits.len() as i64 - 1 - i64::from(scale); // exponent of the first decimal digit
    let weight = top.div_euclid(4);
    let width = (top - 4 * weight + 1) as usize;
    let mut head: String = digits.chars().take(width).collect();
    while head.len() < width {
        head.push('0');
    }
    (weight, head.parse().unwrap_or(0))
}

/// Postgres's `select_div_scale`: at least 16 significant digits, and not fewer than either operand shows.
pub fn div_scale(a: &BigInt, a_scale: u32, b: &BigInt, b_scale: u32) -> u32 {
    let ((wa, da), (wb, db)) = (leading(a, a_scale), leading(b, b_scale));
    let mut weight = wa - wb;
    if da <= db {
        weight -= 1;
    }
    (16 - weight * 4).max(i64::from(a_scale)).max(i64::from(b_scale)).clamp(0, 1000) as u32
}

/// `a / b` at `scale` digits, halves away from zero. `b` is not 0.
pub fn div_at(a: &BigInt, a_scale: u32, b: &BigInt, b_scale: u32, scale: u32) -> BigInt {
    // a/10^as / (b/10^bs) * 10^scale
    let (mut num, mut den) = (a * pow10(scale + b_scale), b * pow10(a_scale));
    if den.is_negative() {
        num = -num;
        den = -den;
    }
    let twice = num.magnitude() * 2u32 + den.magnitude();
    let q = BigInt::from(twice / (den.magnitude() * 2u32));
    if num.is_negative() {
        -q
    } else {
        q
    }
}

/// `a / b` as Postgres's numeric division gives it.
pub fn div(a: &BigInt, a_scale: u32, b: &BigInt, b_scale: u32) -> Numeric {
    let scale = div_scale(a, a_scale, b, b_scale);
    number(div_at(a, a_scale, b, b_scale, scale), scale)
}

/// The square root of `u * 10^-scale` at the same scale, rounded to nearest.
pub fn sqrt(u: &BigInt, scale: u32) -> BigInt {
    let n = u * pow10(scale);
    let r = n.sqrt();
    // (r + 1/2)^2 = r^2 + r + 1/4: round up if n > r^2 + r
    if n > &r * &r + &r {
        r + 1
    } else {
        r
    }
}

pub fn number(u: BigInt, scale: u32) -> Numeric {
    let scale = u16::try_from(scale).unwrap_or(u16::MAX);
    match u.to_i128() {
        Some(unscaled) => Numeric::Small { unscaled, scale },
        None => Numeric::Big(Box::new((u, scale))),
    }
}
