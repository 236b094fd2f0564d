//! Times as the engine counts them: milliseconds since 1970, for the bounds of temporal filters.

use super::lift::map1;
use super::{FuncDef, Kernel, Volatility};
use repr::Numeric;

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

/// The first whole number at or after a number (`next`: after it); what is beyond those of 8 bytes is the least or the greatest.
fn whole(n: &Numeric, next: bool) -> i64 {
    let end = if matches!(n, Numeric::NaN) || n.signum() > 0 { i64::MAX } else { i64::MIN };
    let whole = if next { n.floor() } else { n.ceil() };
    whole.to_int::<i64>("bigint").map_or(end, |v| if next { v.saturating_add(1) } else { v })
}

/// [`whole`] of a float, which is greatest if it is no number.
fn whole_float(f: f64, next: bool) -> i64 {
    match f {
        _ if f.is_nan() => i64::MAX,
        _ if next => (f.floor() as i64).saturating_add(if f < i64::MIN as f64 { 0 } else { 1 }),
        _ => f.ceil() as i64,
    }
}

pub const INTERNAL: &[FuncDef] = &[
    entry("millis_at_or_after", |c| map1::<i64, i64>(c, at_or_after)),
    entry("millis_after", |c| map1::<i64, i64>(c, after)),
    entry("int8_after", |c| map1::<i64, i64>(c, |t| t.saturating_add(1))),
    entry("numeric_at_or_after", |c| map1::<Numeric, i64>(c, |n| whole(&n, false))),
    entry("numeric_after", |c| map1::<Numeric, i64>(c, |n| whole(&n, true))),
    entry("float8_at_or_after", |c| map1::<f64, i64>(c, |f| whole_float(f, false))),
    entry("float8_after", |c| map1::<f64, i64>(c, |f| whole_float(f, true))),
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

    #[test]
    fn numbers_become_whole_or_the_end() {
        for (text, at, after) in
            [("5", 5, 6), ("5.5", 6, 6), ("-5.5", -5, -5), ("1e30", i64::MAX, i64::MAX), ("-1e30", i64::MIN, i64::MIN), ("NaN", i64::MAX, i64::MAX)]
        {
            let n = Numeric::parse(text).unwrap();
            assert_eq!((whole(&n, false), whole(&n, true)), (at, after), "{text}");
            let f = text.parse().unwrap();
            assert_eq!((whole_float(f, false), whole_float(f, true)), (at, after), "{text}");
        }
    }
}
