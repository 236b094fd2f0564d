//! Exact decimal numbers: Postgres's `numeric`, any precision, with the display scale kept a value.

use num_bigint::BigInt;
use serde::{Deserialize, Serialize};

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
