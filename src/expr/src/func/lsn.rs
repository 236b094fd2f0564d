//! `pg_lsn`: a place in a log, an unsigned number of 8 bytes. Not here: text form (`repr`), comparison (`cmp`).

use super::Entry;
use crate::{f1, f2};
use num_traits::ToPrimitive;
use repr::error::state;
use repr::{Numeric, SqlError};

fn nan(what: &str) -> SqlError {
    SqlError::new(state::FEATURE_NOT_SUPPORTED, format!("cannot {what} pg_lsn"))
}

fn range() -> SqlError {
    SqlError::new(state::INVALID_PARAMETER_VALUE, "pg_lsn out of range")
}

/// The place that a number counts in bytes.
fn place(n: &Numeric) -> Result<u64, SqlError> {
    n.to_i128_rounded().and_then(|v| v.to_u64()).ok_or_else(range)
}

fn moved(lsn: u64, n: Numeric, back: bool) -> Result<u64, SqlError> {
    if matches!(n, Numeric::NaN) {
        return Err(nan(if back { "subtract NaN from" } else { "add NaN to" }));
    }
    let base = Numeric::Small { unscaled: lsn.into(), scale: 0 };
    place(&if back { base.sub(&n)? } else { base.add(&n)? })
}

pub const FUNCS: &[Entry] = &[
    f2!(["pg_lsn_mi", "pg_wal_lsn_diff"], u64, u64 => Numeric, |a, b| Numeric::Small { unscaled: i128::from(a) - i128::from(b), scale: 0 }),
    f2!(? ["pg_lsn_pli"], u64, Numeric => u64, |a, n| moved(a, n, false)),
    f2!(? ["5023"], Numeric, u64 => u64, |n, a| moved(a, n, false)),
    f2!(? ["pg_lsn_mii"], u64, Numeric => u64, |a, n| moved(a, n, true)),
    f1!(? ["numeric_pg_lsn"], Numeric => u64, |n| match n {
        Numeric::NaN => Err(nan("convert NaN to")),
        n => place(&n),
    }),
];
