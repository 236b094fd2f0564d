//! Times as the engine counts them: milliseconds since 1970, for the bounds of temporal filters.

use super::lift::map1;
use super::{FuncDef, Kernel, Volatility};

/// Microseconds from 1970 to 2000, from which timestamps count.
const EPOCH_MICROS: i64 = 946_684_800_000_000;

const fn entry(name: &'static str, kernel: Kernel) -> FuncDef {
    FuncDef { name, oid: 0, strict: true, volatility: Volatility::Immutable, fallible: false, kernel }
}

/// The first millisecond at or after a timestamp. The infinities stay the least and the greatest.
fn at_or_after(micros: i64) -> i64 {
    match micros {
        i64::MIN | i64::MAX => micros,
        // -floor(-x) is the ceiling.
        _ => -(-(i128::from(micros) + i128::from(EPOCH_MICROS))).div_euclid(1000) as i64,
    }
}

/// The first millisecond after a timestamp.
fn after(micros: i64) -> i64 {
    match micros {
        i64::MIN | i64::MAX => micros,
        _ => ((i128::from(micros) + i128::from(EPOCH_MICROS)).div_euclid(1000) + 1) as i64,
    }
}

pub const INTERNAL: &[FuncDef] = &[
    entry("millis_at_or_after", |c| map1::<i64, i64>(c, at_or_after)),
    entry("millis_after", |c| map1::<i64, i64>(c, after)),
    entry("int8_after", |c| map1::<i64, i64>(c, |t| t.saturating_add(1))),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn milliseconds_round_up() {
        // 2000-01-01 00:00:00.000001
        assert_eq!(at_or_after(1), 946_684_800_001);
        assert_eq!(at_or_after(0), 946_684_800_000);
        assert_eq!(after(0), 946_684_800_001);
        assert_eq!(after(999), 946_684_800_001);
        assert_eq!(at_or_after(-1), 946_684_800_000);
        assert_eq!(after(-1), 946_684_800_000);
        assert_eq!(at_or_after(i64::MAX), i64::MAX);
    }
}
