//! States as bytes: groups lie in memory by the million, and most states are a few small numbers.
//!
//! ```text
//!   integer    zigzag, seven bits a byte, the least first
//!   Wide       u8 n and n bytes, the least first, with sign; from 128 bits on 255, integer n, n bytes
//!   option     u8 0, or u8 1 and the value
//!   list       integer n, n values
//!   Accum      u8 kind, its parts in order
//! ```

use super::{Accum, FloatSums, IntSquares, IntervalSums, NumericSums, RegrSums, Specials};
use crate::agg::exact::{Exact, Wide};
use num_bigint::BigInt;
use smallvec::SmallVec;

/// Bytes in the making.
pub type Packing = SmallVec<[u8; 64]>;

/// What has a packed form. `unpack` reads what `pack` wrote, and nothing else.
pub trait Pack {
    fn pack(&self, out: &mut Packing);
    fn unpack(from: &mut &[u8]) -> Self;
}

fn take<'a>(from: &mut &'a [u8], n: usize) -> &'a [u8] {
    let (head, rest) = from.split_at(n);
    *from = rest;
    head
}

impl Pack for u8 {
    fn pack(&self, out: &mut Packing) {
        out.push(*self);
    }
    fn unpack(from: &mut &[u8]) -> u8 {
        take(from, 1)[0]
    }
}

impl Pack for i64 {
    fn pack(&self, out: &mut Packing) {
        let mut left = ((self << 1) ^ (self >> 63)).cast_unsigned();
        while left >= 128 {
            out.push(left as u8 | 128);
            left >>= 7;
        }
        out.push(left as u8);
    }
    fn unpack(from: &mut &[u8]) -> i64 {
        let (mut bits, mut at) = (0u64, 0);
        loop {
            let byte = u8::unpack(from);
            bits |= u64::from(byte & 127) << at;
            at += 7;
            if byte < 128 {
                return (bits >> 1).cast_signed() ^ -(bits & 1).cast_signed();
            }
        }
    }
}

impl Pack for i32 {
    fn pack(&self, out: &mut Packing) {
        i64::from(*self).pack(out);
    }
    fn unpack(from: &mut &[u8]) -> i32 {
        i64::unpack(from) as i32
    }
}

impl Pack for u16 {
    fn pack(&self, out: &mut Packing) {
        i64::from(*self).pack(out);
    }
    fn unpack(from: &mut &[u8]) -> u16 {
        i64::unpack(from) as u16
    }
}

/// The first byte of an integer that does not fit 128 bits.
const BIG: u8 = 255;

impl Pack for i128 {
    fn pack(&self, out: &mut Packing) {
        // Bits that repeat the sign are left out.
        let bits = 129 - (self ^ (self >> 127)).leading_zeros();
        let n = if *self == 0 { 0 } else { bits.div_ceil(8) as usize };
        out.push(n as u8);
        out.extend_from_slice(&self.to_le_bytes()[..n]);
    }
    fn unpack(from: &mut &[u8]) -> i128 {
        let n = usize::from(u8::unpack(from));
        let bytes = take(from, n);
        let sign = if bytes.last().is_some_and(|b| *b >= 128) { 255 } else { 0 };
        let mut all = [sign; 16];
        all[..n].copy_from_slice(bytes);
        i128::from_le_bytes(all)
    }
}

impl Pack for Wide {
    fn pack(&self, out: &mut Packing) {
        match self {
            Wide::Small(n) => n.pack(out),
            Wide::Big(n) => {
                out.push(BIG);
                n.to_signed_bytes_le().into_boxed_slice().pack(out);
            }
        }
    }
    fn unpack(from: &mut &[u8]) -> Wide {
        if from[0] != BIG {
            return Wide::Small(i128::unpack(from));
        }
        take(from, 1);
        Wide::Big(Box::new(BigInt::from_signed_bytes_le(&Box::<[u8]>::unpack(from))))
    }
}

impl Pack for Box<[u8]> {
    fn pack(&self, out: &mut Packing) {
        (self.len() as i64).pack(out);
        out.extend_from_slice(self);
    }
    fn unpack(from: &mut &[u8]) -> Box<[u8]> {
        let n = i64::unpack(from) as usize;
        take(from, n).into()
    }
}

impl<A: Pack> Pack for Option<A> {
    fn pack(&self, out: &mut Packing) {
        u8::from(self.is_some()).pack(out);
        self.iter().for_each(|a| a.pack(out));
    }
    fn unpack(from: &mut &[u8]) -> Option<A> {
        (u8::unpack(from) != 0).then(|| A::unpack(from))
    }
}

impl<A: Pack, B: Pack> Pack for Vec<(A, B)> {
    fn pack(&self, out: &mut Packing) {
        (self.len() as i64).pack(out);
        for (a, b) in self {
            a.pack(out);
            b.pack(out);
        }
    }
    fn unpack(from: &mut &[u8]) -> Vec<(A, B)> {
        (0..i64::unpack(from))
            .map(|_| {
                let a = A::unpack(from);
                (a, B::unpack(from))
            })
            .collect()
    }
}

macro_rules! parts {
    ($ty:ident: $($part:ident),*) => {
        impl Pack for $ty {
            fn pack(&self, out: &mut Packing) {
                $(self.$part.pack(out);)*
            }
            fn unpack(from: &mut &[u8]) -> $ty {
                $(let $part = Pack::unpack(from);)*
                $ty { $($part),* }
            }
        }
    };
}

parts!(Exact: mantissa, exponent);
parts!(Specials: nan, pos, neg);
parts!(IntSquares: count, sum, squares);
parts!(FloatSums: count, specials, sum, squares);
parts!(NumericSums: count, specials, scale, sum, squares, scales);
parts!(IntervalSums: count, months, days, micros);
parts!(RegrSums: count, x_specials, y_specials, x, y, xx, yy, xy);

const COUNT: u8 = 0;
const BOOL: u8 = 1;
const INT: u8 = 2;
const INT_SQUARES: u8 = 3;
const FLOAT: u8 = 4;
const NUMERIC: u8 = 5;
const INTERVAL: u8 = 6;
const REGR: u8 = 7;

impl Accum {
    /// The first byte of packed states is less than this.
    pub const KINDS: u8 = 8;
}

impl Pack for Accum {
    fn pack(&self, out: &mut Packing) {
        fn parts(kind: u8, parts: &impl Pack, out: &mut Packing) {
            out.push(kind);
            parts.pack(out);
        }
        match self {
            Accum::Count(n) => parts(COUNT, n, out),
            Accum::Bool { trues, falses } => {
                parts(BOOL, trues, out);
                falses.pack(out);
            }
            Accum::Int { count, sum } => {
                parts(INT, count, out);
                sum.pack(out);
            }
            Accum::IntSquares(s) => parts(INT_SQUARES, &**s, out),
            Accum::Float(s) => parts(FLOAT, &**s, out),
            Accum::Numeric(s) => parts(NUMERIC, &**s, out),
            Accum::Interval(s) => parts(INTERVAL, &**s, out),
            Accum::Regr(s) => parts(REGR, &**s, out),
        }
    }
    fn unpack(from: &mut &[u8]) -> Accum {
        match u8::unpack(from) {
            COUNT => Accum::Count(i64::unpack(from)),
            BOOL => {
                let trues = i64::unpack(from);
                Accum::Bool { trues, falses: i64::unpack(from) }
            }
            INT => {
                let count = i64::unpack(from);
                Accum::Int { count, sum: Wide::unpack(from) }
            }
            INT_SQUARES => Accum::IntSquares(Box::new(Pack::unpack(from))),
            FLOAT => Accum::Float(Box::new(Pack::unpack(from))),
            NUMERIC => Accum::Numeric(Box::new(Pack::unpack(from))),
            INTERVAL => Accum::Interval(Box::new(Pack::unpack(from))),
            REGR => Accum::Regr(Box::new(Pack::unpack(from))),
            other => unreachable!("a packed state begins with its kind, not with {other}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packed(x: &impl Pack) -> Packing {
        let mut out = Packing::new();
        x.pack(&mut out);
        out
    }

    #[test]
    fn integers_of_any_size_come_back() {
        let edges = (0..63).flat_map(|b| [1i64 << b, (1 << b) - 1, -(1 << b), -(1 << b) - 1]).chain([i64::MAX, i64::MIN]);
        for n in edges {
            assert_eq!(i64::unpack(&mut &packed(&n)[..]), n);
        }
        assert_eq!(packed(&63i64).len(), 1);
        let edges = (0..127).flat_map(|b| [1i128 << b, (1 << b) - 1, -(1 << b), -(1 << b) - 1]).chain([i128::MAX, i128::MIN]);
        for n in edges {
            let bytes = packed(&Wide::Small(n));
            let mut left = &bytes[..];
            assert_eq!(Wide::unpack(&mut left), Wide::Small(n), "{n}");
            assert!(left.is_empty());
        }
        assert_eq!(packed(&Wide::Small(-128)).as_slice(), [1, 128]);
        let big: [BigInt; 2] = [BigInt::from(i128::MAX) * 2, BigInt::from(i128::MIN) * 1_000_000_007];
        for n in big {
            assert_eq!(Wide::unpack(&mut &packed(&Wide::from(n.clone()))[..]).to_big(), n);
        }
    }
}
