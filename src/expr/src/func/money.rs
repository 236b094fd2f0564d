//! `money`: cents in 64 bits. What leaves their range is 22003.
//!
//! Not here: text form (`repr`), comparison (`cmp`).

use super::arith::out_of_range;
use super::Entry;
use crate::{f1, f2};
use num_traits::ToPrimitive;
use repr::error::state;
use repr::{Numeric, SqlError};

fn by_zero() -> SqlError {
    SqlError::new(state::DIVISION_BY_ZERO, "division by zero")
}

fn range() -> SqlError {
    SqlError::new(state::NUMERIC_VALUE_OUT_OF_RANGE, "money out of range")
}

/// To whole cents, halves to the even one, as rint does.
fn cents(f: f64) -> Result<i64, SqlError> {
    let c = f.round_ties_even();
    // The greatest float below 2^63 fits, 2^63 does not.
    if (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&c) {
        Ok(c as i64)
    } else {
        Err(range())
    }
}

fn mul_float(c: i64, f: f64) -> Result<i64, SqlError> {
    cents(c as f64 * f)
}

fn mul_int(c: i64, i: i64) -> Result<i64, SqlError> {
    c.checked_mul(i).ok_or_else(range)
}

fn div_float(c: i64, f: f64) -> Result<i64, SqlError> {
    if f == 0.0 {
        return Err(by_zero());
    }
    let q = c as f64 / f;
    if q.is_infinite() && !f.is_infinite() {
        return Err(SqlError::new(state::NUMERIC_VALUE_OUT_OF_RANGE, "value out of range: overflow"));
    }
    cents(q)
}

fn div_int(c: i64, i: i64) -> Result<i64, SqlError> {
    match i {
        0 => Err(by_zero()),
        i => c.checked_div(i).ok_or_else(range),
    }
}

fn from_int(i: i64) -> Result<i64, SqlError> {
    i.checked_mul(100).ok_or_else(|| out_of_range("bigint"))
}

fn from_numeric(n: Numeric) -> Result<i64, SqlError> {
    if matches!(n, Numeric::NaN | Numeric::PosInf | Numeric::NegInf) {
        let what = if matches!(n, Numeric::NaN) { "NaN" } else { "infinity" };
        return Err(SqlError::new(state::FEATURE_NOT_SUPPORTED, format!("cannot convert {what} to bigint")));
    }
    let whole = n.mul(&Numeric::from(100))?.to_i128_rounded().and_then(|v| v.to_i64());
    whole.ok_or_else(|| out_of_range("bigint"))
}

const SMALL: [&str; 28] = [
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
    "twenty",
    "thirty",
    "forty",
    "fifty",
    "sixty",
    "seventy",
    "eighty",
    "ninety",
];

/// A number below 1,000.
fn number_words(n: usize) -> String {
    let below = |n: usize| match n {
        0..=20 => SMALL[n].to_owned(),
        n if n % 10 == 0 => SMALL[18 + n / 10].to_owned(),
        n => format!("{} {}", SMALL[18 + n / 10], SMALL[n % 10]),
    };
    match (n / 100, n % 100) {
        (0, rest) => below(rest),
        (h, 0) => format!("{} hundred", SMALL[h]),
        // "and" stands before what one word says, but not before ten's multiples.
        (h, rest) if rest < 20 && !(rest > 10 && rest % 10 == 0) => format!("{} hundred and {}", SMALL[h], below(rest)),
        (h, rest) => format!("{} hundred {}", SMALL[h], below(rest)),
    }
}

/// `Twelve dollars and fifty cents`.
fn words(cents: i64) -> String {
    let n = cents.unsigned_abs();
    let group = |unit: u64| (n / 100 / unit % 1000) as usize;
    let mut out = String::new();
    for (unit, name) in [
        (1_000_000_000_000_000, " quadrillion "),
        (1_000_000_000_000, " trillion "),
        (1_000_000_000, " billion "),
        (1_000_000, " million "),
        (1000, " thousand "),
    ] {
        if group(unit) != 0 {
            out += &(number_words(group(unit)) + name);
        }
    }
    if group(1) != 0 {
        out += &number_words(group(1));
    }
    if out.is_empty() {
        out += "zero";
    }
    out += if n / 100 == 1 { " dollar and " } else { " dollars and " };
    out += &number_words((n % 100) as usize);
    out += if n % 100 == 1 { " cent" } else { " cents" };
    if cents < 0 {
        out.insert_str(0, "minus ");
    }
    out[..1].to_ascii_uppercase() + &out[1..]
}

pub const FUNCS: &[Entry] = &[
    f2!(? ["cash_pl"], i64, i64 => i64, |a, b| a.checked_add(b).ok_or_else(range)),
    f2!(? ["cash_mi"], i64, i64 => i64, |a, b| a.checked_sub(b).ok_or_else(range)),
    f2!(? ["cash_mul_flt8"], i64, f64 => i64, mul_float),
    f2!(? ["cash_mul_flt4"], i64, f32 => i64, |c, f| mul_float(c, f.into())),
    f2!(? ["flt8_mul_cash"], f64, i64 => i64, |f, c| mul_float(c, f)),
    f2!(? ["flt4_mul_cash"], f32, i64 => i64, |f, c| mul_float(c, f.into())),
    f2!(? ["cash_mul_int8"], i64, i64 => i64, mul_int),
    f2!(? ["cash_mul_int4"], i64, i32 => i64, |c, i| mul_int(c, i.into())),
    f2!(? ["cash_mul_int2"], i64, i16 => i64, |c, i| mul_int(c, i.into())),
    f2!(? ["int8_mul_cash"], i64, i64 => i64, |i, c| mul_int(c, i)),
    f2!(? ["int4_mul_cash"], i32, i64 => i64, |i, c| mul_int(c, i.into())),
    f2!(? ["int2_mul_cash"], i16, i64 => i64, |i, c| mul_int(c, i.into())),
    f2!(? ["cash_div_flt8"], i64, f64 => i64, div_float),
    f2!(? ["cash_div_flt4"], i64, f32 => i64, |c, f| div_float(c, f.into())),
    f2!(? ["cash_div_int8"], i64, i64 => i64, div_int),
    f2!(? ["cash_div_int4"], i64, i32 => i64, |c, i| div_int(c, i.into())),
    f2!(? ["cash_div_int2"], i64, i16 => i64, |c, i| div_int(c, i.into())),
    f2!(? ["cash_div_cash"], i64, i64 => f64, |a, b| if b == 0 { Err(by_zero()) } else { Ok(a as f64 / b as f64) }),
    f1!(["cash_numeric"], i64 => Numeric, |c| Numeric::Small { unscaled: c.into(), scale: 2 }),
    f1!(["cash_words"], i64 => String, words),
    f1!(? ["numeric_cash"], Numeric => i64, from_numeric),
    f1!(? ["int4_cash"], i32 => i64, |i| from_int(i.into())),
    f1!(? ["int8_cash"], i64 => i64, from_int),
];
