//! Exact sums: integers of any size with a fast path, and floats as integers at a binary exponent.
//!
//! A sum of floats is an integer times a power of two, so it has no rounding until it is read, is the same in any order, and
//! takes retractions exactly.

use num_bigint::BigInt;
use num_traits::{Signed, ToPrimitive, Zero};

/// An integer that leaves 128 bits only when it must.
#[derive(Clone, Debug)]
pub enum Wide {
    Small(i128),
    Big(Box<BigInt>),
}

impl Default for Wide {
    fn default() -> Wide {
        Wide::Small(0)
    }
}

impl PartialEq for Wide {
    fn eq(&self, other: &Wide) -> bool {
        match (self, other) {
            (Wide::Small(a), Wide::Small(b)) => a == b,
            _ => self.to_big() == other.to_big(),
        }
    }
}

impl From<BigInt> for Wide {
    fn from(v: BigInt) -> Wide {
        v.to_i128().map_or_else(|| Wide::Big(Box::new(v)), Wide::Small)
    }
}

impl Wide {
    pub fn to_big(&self) -> BigInt {
        match self {
            Wide::Small(v) => BigInt::from(*v),
            Wide::Big(v) => (**v).clone(),
        }
    }
    pub fn is_zero(&self) -> bool {
        match self {
            Wide::Small(v) => *v == 0,
            Wide::Big(v) => v.is_zero(),
        }
    }
    pub fn add(&mut self, other: &Wide) {
        if let (Wide::Small(a), Wide::Small(b)) = (&*self, other) {
            if let Some(s) = a.checked_add(*b) {
                *self = Wide::Small(s);
                return;
            }
        }
        *self = Wide::from(self.to_big() + other.to_big());
    }
    /// Adds `a * b`.
    pub fn add_product(&mut self, a: i128, b: i128) {
        match a.checked_mul(b) {
            Some(p) => self.add(&Wide::Small(p)),
            None => self.add(&Wide::from(BigInt::from(a) * b)),
        }
    }
    pub fn scale(&mut self, by: i128) {
        *self = match &*self {
            Wide::Small(v) => v.checked_mul(by).map_or_else(|| Wide::from(BigInt::from(*v) * by), Wide::Small),
            Wide::Big(v) => Wide::from(&**v * by),
        };
    }
    fn shl(&mut self, bits: u32) {
        if let Wide::Small(v) = &*self {
            if *v == 0 || bits < v.unsigned_abs().leading_zeros().saturating_sub(1) {
                *self = Wide::Small(if bits < 128 { *v << bits } else { 0 });
                return;
            }
        }
        *self = Wide::from(self.to_big() << bits);
    }
}

/// An exact sum of finite floats: `mantissa * 2^exponent`.
#[derive(Clone, Debug, Default)]
pub struct Exact {
    pub(super) mantissa: Wide,
    pub(super) exponent: i32,
}

impl PartialEq for Exact {
    fn eq(&self, other: &Exact) -> bool {
        let (mut a, mut b) = (self.clone(), other.clone());
        a.align(&mut b);
        a.mantissa == b.mantissa
    }
}

/// A finite float as `m * 2^e`.
fn decompose(x: f64) -> (i64, i32) {
    let bits = x.to_bits();
    let exp = ((bits >> 52) & 0x7ff) as i32;
    let frac = (bits & ((1 << 52) - 1)) as i64;
    let (m, e) = if exp == 0 { (frac, -1074) } else { (frac | 1 << 52, exp - 1075) };
    (if x < 0.0 { -m } else { m }, e)
}

impl Exact {
    pub fn is_zero(&self) -> bool {
        self.mantissa.is_zero()
    }

    fn align(&mut self, other: &mut Exact) {
        if self.mantissa.is_zero() {
            self.exponent = other.exponent;
        } else if other.mantissa.is_zero() {
            other.exponent = self.exponent;
        } else if self.exponent > other.exponent {
            self.mantissa.shl((self.exponent - other.exponent) as u32);
            self.exponent = other.exponent;
        } else if other.exponent > self.exponent {
            other.mantissa.shl((other.exponent - self.exponent) as u32);
            other.exponent = self.exponent;
        }
    }

    pub fn add(&mut self, other: &Exact) {
        let mut other = other.clone();
        self.align(&mut other);
        self.mantissa.add(&other.mantissa);
        if self.mantissa.is_zero() {
            self.exponent = 0;
        }
    }

    /// Adds `x * times` for a finite `x`.
    pub fn add_float(&mut self, x: f64, times: i64) {
        if x == 0.0 {
            return;
        }
        let (mut m, mut e) = decompose(x);
        let zeros = m.trailing_zeros();
        m >>= zeros;
        e += zeros as i32;
        self.add_scaled(i128::from(m) * i128::from(times), e);
    }

    /// Adds `x * y * times` for finite `x` and `y`.
    pub fn add_product(&mut self, x: f64, y: f64, times: i64) {
        if x == 0.0 || y == 0.0 {
            return;
        }
        let ((a, d), (b, e)) = (decompose(x), decompose(y));
        let (za, zb) = (a.trailing_zeros(), b.trailing_zeros());
        let p = i128::from(a >> za) * i128::from(b >> zb);
        let e = d + e + za as i32 + zb as i32;
        match p.checked_mul(i128::from(times)) {
            Some(m) => self.add_scaled(m, e),
            None => self.add(&Exact { mantissa: Wide::from(BigInt::from(p) * times), exponent: e }),
        }
    }

    fn add_scaled(&mut self, m: i128, e: i32) {
        self.add(&Exact { mantissa: Wide::Small(m), exponent: e });
    }

    pub fn scale(&mut self, by: i64) {
        self.mantissa.scale(i128::from(by));
    }

    /// `self * n - a * b`, exactly.
    pub fn times_minus(&self, n: i64, a: &Exact, b: &Exact) -> Exact {
        let mut left = self.clone();
        left.scale(n);
        let product = Exact { mantissa: Wide::from(-(a.mantissa.to_big() * b.mantissa.to_big())), exponent: a.exponent + b.exponent };
        left.add(&product);
        left
    }

    /// The nearest double, ties to even; infinite beyond the range.
    pub fn to_f64(&self) -> f64 {
        self.round(53, -1022)
    }

    /// The nearest single, rounded once.
    pub fn to_f32(&self) -> f32 {
        self.round(24, -126) as f32
    }

    /// Rounds to `precision` bits, fewer below the exponent `min_exp` of normal numbers.
    fn round(&self, precision: i64, min_exp: i64) -> f64 {
        let big = self.mantissa.to_big();
        let negative = big.is_negative();
        let mag = big.magnitude();
        if mag.is_zero() {
            return 0.0;
        }
        let bits = mag.bits() as i64;
        let exp = i64::from(self.exponent);
        let top = bits - 1 + exp;
        let keep = if top < min_exp { precision - (min_exp - top) } else { precision };
        let drop = bits - keep;
        let (mut q, mut e) = (0u64, exp);
        if drop <= 0 {
            q = mag.to_u64().unwrap_or(u64::MAX);
        } else if keep >= 0 {
            let drop = drop as u64;
            let head = mag >> drop;
            q = head.to_u64().unwrap_or(u64::MAX);
            let half = mag.bit(drop - 1);
            let rest = mag.trailing_zeros().unwrap_or(0) < drop - 1;
            if half && (rest || q & 1 == 1) {
                q += 1;
            }
            e = exp + drop as i64;
        }
        let mut r = q as f64;
        while e > 0 && r.is_finite() {
            let step = e.min(1000);
            r *= 2f64.powi(step as i32);
            e -= step;
        }
        while e < 0 && r != 0.0 {
            let step = (-e).min(1000);
            r *= 2f64.powi(-(step as i32));
            e += step;
        }
        if negative {
            -r
        } else {
            r
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_exact_and_invertible() {
        let xs = [1e308, 1.0, -1e308, 1e-300, 0.1, 0.2, 5e-324, -2.5];
        let mut s = Exact::default();
        xs.iter().for_each(|x| s.add_float(*x, 3));
        xs.iter().filter(|x| **x != 0.1).for_each(|x| s.add_float(*x, -3));
        s.add_float(0.1, -2);
        assert_eq!(s.to_f64(), 0.1);
        s.add_float(0.1, -1);
        assert!(s.is_zero());
    }

    #[test]
    fn rounding() {
        let one = |x: f64| {
            let mut s = Exact::default();
            s.add_float(x, 1);
            s.to_f64()
        };
        for x in [0.1, 5e-324, 1.5e-310, f64::MAX, -3.7, 2.2250738585072014e-308] {
            assert_eq!(one(x), x);
        }
        let mut s = Exact::default();
        s.add_float(f64::MAX, 2);
        assert_eq!(s.to_f64(), f64::INFINITY);
        let mut s = Exact::default();
        s.add_float(1.0, 1);
        s.add_float(2f64.powi(-53), 1); // exactly half an ulp: to even
        assert_eq!(s.to_f64(), 1.0);
        s.add_float(1e-300, 1);
        assert_eq!(s.to_f64(), 1.0 + f64::EPSILON);
    }
}
