//! Intervals: text in and out, modifiers, arithmetic on the three fields.
//!
//! Read: `1 year 2 mons 3 days 04:05:06`, verbose (`@ 1 year ago`), SQL standard (`1-2 3 4:05:06`), ISO 8601
//! (`P1Y2M3DT4H5M6S`, `P0001-02-03T04:05:06`). Printed in the four IntervalStyles. Fractions of a unit go down to the next
//! smaller ones by Postgres's rules (a month has 30 days, a year 12 months).

use super::calendar::*;
use super::parse::{parse_clock, Fault};
use super::token::{self, Kind, Unit};
use crate::error::{state, SqlError};
use crate::style::IntervalStyle;
use crate::value::Interval;
use std::fmt::Write;

/// Bits of the range part of an interval's type modifier (`interval day to second`).
pub mod range {
    pub const MONTH: i32 = 1 << 1;
    pub const YEAR: i32 = 1 << 2;
    pub const DAY: i32 = 1 << 3;
    pub const HOUR: i32 = 1 << 10;
    pub const MINUTE: i32 = 1 << 11;
    pub const SECOND: i32 = 1 << 12;
    pub const FULL: i32 = 0x7fff;
}

/// The range and precision of a modifier; `None` precision: six digits.
fn typmod_parts(typmod: i32) -> (i32, Option<u32>) {
    if typmod < 0 {
        return (range::FULL, None);
    }
    let precision = (typmod & 0xffff) as u32;
    ((typmod >> 16) & 0x7fff, (precision <= 6).then_some(precision))
}

/// Fields while they are read; wide, so that overflow shows at the end.
#[derive(Clone, Copy, Default)]
struct Sum {
    years: i64,
    months: i64,
    days: i64,
    micros: i64,
}

impl Sum {
    fn add_micros(&mut self, v: i64, fraction: f64, unit: i64) -> Result<(), Fault> {
        self.micros = v.checked_mul(unit).and_then(|x| self.micros.checked_add(x)).ok_or(Fault::Range)?;
        self.add_fraction_micros(fraction, unit)
    }
    fn add_fraction_micros(&mut self, fraction: f64, unit: i64) -> Result<(), Fault> {
        if fraction == 0.0 {
            return Ok(());
        }
        let exact = fraction * unit as f64;
        let mut whole = exact as i64;
        let rest = exact - whole as f64;
        if rest > 0.5 {
            whole += 1;
        } else if rest < -0.5 {
            whole -= 1;
        }
        self.micros = self.micros.checked_add(whole).ok_or(Fault::Range)?;
        Ok(())
    }
    fn add_days(&mut self, v: i64, unit: i64) -> Result<(), Fault> {
        self.days = v.checked_mul(unit).and_then(|x| self.days.checked_add(x)).filter(|d| fits(*d)).ok_or(Fault::Range)?;
        Ok(())
    }
    fn add_fraction_days(&mut self, fraction: f64, unit: i64) -> Result<(), Fault> {
        if fraction == 0.0 {
            return Ok(());
        }
        let exact = fraction * unit as f64;
        let whole = exact as i32;
        self.add_days(whole.into(), 1)?;
        self.add_fraction_micros(exact - f64::from(whole), USECS_PER_DAY)
    }
    fn add_months(&mut self, v: i64) -> Result<(), Fault> {
        self.months = self.months.checked_add(v).filter(|m| fits(*m)).ok_or(Fault::Range)?;
        Ok(())
    }
    fn add_years(&mut self, v: i64, fraction: f64, unit: i64) -> Result<(), Fault> {
        self.years = v.checked_mul(unit).and_then(|x| self.years.checked_add(x)).filter(|y| fits(*y)).ok_or(Fault::Range)?;
        self.add_months((fraction * unit as f64 * 12.0).round_ties_even() as i64)
    }
    fn negate(&mut self) -> Result<(), Fault> {
        let negated = |v: i64| Some(-v).filter(|v| fits(*v)).ok_or(Fault::Range);
        (self.years, self.months, self.days) = (negated(self.years)?, negated(self.months)?, negated(self.days)?);
        self.micros = self.micros.checked_neg().ok_or(Fault::Range)?;
        Ok(())
    }
    fn finish(self) -> Result<Interval, SqlError> {
        let months = self.years.checked_mul(12).and_then(|m| m.checked_add(self.months)).and_then(|m| i32::try_from(m).ok());
        match (months, i32::try_from(self.days)) {
            (Some(months), Ok(days)) => Ok(Interval { months, days, micros: self.micros }),
            _ => Err(interval_out_of_range()),
        }
    }
}

fn fits(v: i64) -> bool {
    i32::try_from(v).is_ok()
}

/// Reads an interval and applies its modifier.
pub fn parse_interval(text: &str, style: IntervalStyle, typmod: i32) -> Result<Interval, SqlError> {
    let (range, _) = typmod_parts(typmod);
    let sum = match parse_fields(text, style, range) {
        Err(Fault::Format) => parse_iso(text.trim()),
        other => other,
    };
    let sum = sum.map_err(|f| if f == Fault::Range { Fault::IntervalRange } else { f }.error(text, "interval"))?;
    apply_typmod(sum.finish()?, typmod)
}

const MASK_SECOND: u32 = 1 << 6;
const MASK_ALL_SECS: u32 = 0b111 << 6;
const MASK_TIME: u32 = 0b111 << 4 | MASK_ALL_SECS;

fn unit_mask(u: Unit) -> u32 {
    match u {
        Unit::Year => 1,
        Unit::Month => 2,
        Unit::Day => 4,
        Unit::Week => 8,
        Unit::Hour => 1 << 4,
        Unit::Minute => 1 << 5,
        Unit::Second => MASK_SECOND,
        Unit::Millisecond => 1 << 7,
        Unit::Microsecond => 1 << 8,
        Unit::Decade => 1 << 10,
        Unit::Century => 1 << 11,
        Unit::Millennium => 1 << 12,
        _ => 0,
    }
}

/// The traditional and SQL standard forms. Fields are read from the last to the first, so that a number knows its unit.
fn parse_fields(text: &str, style: IntervalStyle, range: i32) -> Result<Sum, Fault> {
    let fields = token::split(text).ok_or(Fault::Format)?;
    let mut sum = Sum::default();
    let mut seen = 0;
    let mut unit: Option<Unit> = None;
    let mut ago = false;
    let minute_to_second = range == range::MINUTE | range::SECOND;
    // In the SQL standard a leading sign counts for all fields, if it is the only one.
    let signed = |f: &token::Field| f.0.starts_with(['-', '+']);
    let negative = style == IntervalStyle::SqlStandard && fields.first().is_some_and(|f| f.0.starts_with('-')) && !fields[1..].iter().any(signed);
    for (text, kind) in fields.iter().rev() {
        let got = match kind {
            Kind::Word | Kind::Special => {
                match token::unit(text).ok_or(Fault::Format)? {
                    Unit::Ignore => continue,
                    Unit::Ago => ago = true,
                    u => unit = Some(u),
                }
                0
            }
            Kind::Time => {
                unit = Some(Unit::Day);
                add_clock(&mut sum, text, if negative { -1 } else { 1 }, minute_to_second)?
            }
            Kind::Tz if text.contains(':') && parse_clock(&text[1..], minute_to_second).is_ok() => {
                unit = Some(Unit::Day);
                add_clock(&mut sum, &text[1..], if text.starts_with('-') { -1 } else { 1 }, minute_to_second)?
            }
            Kind::Tz | Kind::Date | Kind::Number => {
                let u = unit.unwrap_or_else(|| rightmost_unit(range));
                if u == Unit::Hour {
                    // `1 2` with hours last are days and hours.
                    unit = Some(Unit::Day);
                }
                add_number(&mut sum, text, u, negative)?
            }
        };
        if seen & got != 0 {
            return Err(Fault::Format);
        }
        seen |= got;
    }
    if seen == 0 {
        return Err(Fault::Format);
    }
    if ago {
        sum.negate()?;
    }
    Ok(sum)
}

fn rightmost_unit(r: i32) -> Unit {
    use range::*;
    if r == FULL || r & SECOND != 0 {
        Unit::Second
    } else if r & MINUTE != 0 {
        Unit::Minute
    } else if r & HOUR != 0 {
        Unit::Hour
    } else if r & DAY != 0 {
        Unit::Day
    } else if r & MONTH != 0 {
        Unit::Month
    } else if r & YEAR != 0 {
        Unit::Year
    } else {
        Unit::Second
    }
}

fn add_clock(sum: &mut Sum, text: &str, sign: i64, minute_to_second: bool) -> Result<u32, Fault> {
    let c = parse_clock(text, minute_to_second)?;
    let rest = (i64::from(c.minute) * 60 + i64::from(c.second)) * USECS_PER_SEC + i64::from(c.micros);
    let t = c.hour.checked_mul(USECS_PER_HOUR).and_then(|h| h.checked_add(rest)).ok_or(Fault::Range)?;
    sum.micros = sum.micros.checked_add(sign * t).ok_or(Fault::Range)?;
    Ok(MASK_TIME)
}

fn add_number(sum: &mut Sum, text: &str, unit: Unit, negative: bool) -> Result<u32, Fault> {
    let negative = negative || text.starts_with('-');
    let body = text.strip_prefix(['-', '+']).unwrap_or(text);
    let digits = body.bytes().take_while(u8::is_ascii_digit).count();
    let (whole, rest) = body.split_at(digits);
    // With its sign, so that the least number can be read.
    let sign = if negative { "-" } else { "" };
    let value: i64 = if whole.is_empty() { 0 } else { format!("{sign}{whole}").parse().map_err(|_| Fault::Range)? };
    let mut fraction = 0.0;
    if let Some(months) = rest.strip_prefix('-') {
        // `years-months`
        if months.is_empty() || !months.bytes().all(|b| b.is_ascii_digit()) || digits == 0 {
            return Err(Fault::Format);
        }
        let m: i64 = months.parse().map_err(|_| Fault::Range)?;
        if m >= 12 {
            return Err(Fault::Range);
        }
        let total = value.checked_mul(12).and_then(|v| v.checked_add(if negative { -m } else { m })).ok_or(Fault::Range)?;
        sum.add_months(total)?;
        return Ok(unit_mask(Unit::Month));
    } else if let Some(f) = rest.strip_prefix('.') {
        if !f.bytes().all(|b| b.is_ascii_digit()) || (f.is_empty() && digits == 0) {
            return Err(Fault::Format);
        }
        fraction = format!("0.{f}0").parse::<f64>().map_err(|_| Fault::Format)?;
        if negative {
            fraction = -fraction;
        }
    } else if !rest.is_empty() || digits == 0 {
        return Err(Fault::Format);
    }
    match unit {
        Unit::Microsecond => sum.add_micros(value, fraction, 1)?,
        Unit::Millisecond => sum.add_micros(value, fraction, 1000)?,
        Unit::Second => {
            sum.add_micros(value, fraction, USECS_PER_SEC)?;
            return Ok(if fraction == 0.0 { MASK_SECOND } else { MASK_ALL_SECS });
        }
        Unit::Minute => sum.add_micros(value, fraction, USECS_PER_MINUTE)?,
        Unit::Hour => sum.add_micros(value, fraction, USECS_PER_HOUR)?,
        Unit::Day => {
            sum.add_days(value, 1)?;
            sum.add_fraction_micros(fraction, USECS_PER_DAY)?;
        }
        Unit::Week => {
            sum.add_days(value, 7)?;
            sum.add_fraction_days(fraction, 7)?;
        }
        Unit::Month => {
            sum.add_months(value)?;
            sum.add_fraction_days(fraction, 30)?;
        }
        Unit::Year => sum.add_years(value, fraction, 1)?,
        Unit::Decade => sum.add_years(value, fraction, 10)?,
        Unit::Century => sum.add_years(value, fraction, 100)?,
        Unit::Millennium => sum.add_years(value, fraction, 1000)?,
        _ => return Err(Fault::Format),
    }
    Ok(unit_mask(unit))
}

/// `P…`: designators (`1Y2M`) or the alternative form (`0001-02-03T04:05:06`).
fn parse_iso(text: &str) -> Result<Sum, Fault> {
    let mut rest = text.strip_prefix('P').filter(|r| !r.is_empty()).ok_or(Fault::Format)?;
    let mut sum = Sum::default();
    let mut date_part = true;
    let mut any = false;
    while !rest.is_empty() {
        if let Some(r) = rest.strip_prefix('T') {
            if !date_part {
                return Err(Fault::Format);
            }
            date_part = false;
            any = false;
            rest = r;
            continue;
        }
        let (value, fraction, digits, after) = iso_number(rest)?;
        let unit = after.chars().next();
        if date_part {
            match unit {
                Some('Y') => sum.add_years(value, fraction, 1)?,
                Some('M') => {
                    sum.add_months(value)?;
                    sum.add_fraction_days(fraction, 30)?;
                }
                Some('W') => {
                    sum.add_days(value, 7)?;
                    sum.add_fraction_days(fraction, 7)?;
                }
                Some('D') => {
                    sum.add_days(value, 1)?;
                    sum.add_fraction_micros(fraction, USECS_PER_DAY)?;
                }
                None | Some('T') if digits == 8 && !any && fraction == 0.0 => {
                    // `19990108`
                    sum.add_years(value / 10_000, 0.0, 1)?;
                    sum.add_months(value / 100 % 100)?;
                    sum.add_days(value % 100, 1)?;
                    any = true;
                    rest = after;
                    continue;
                }
                None | Some('T') | Some('-') if !any => {
                    // `1999-01-08`
                    sum.add_years(value, fraction, 1)?;
                    rest = after;
                    for part in ["month", "day"] {
                        let Some(r) = rest.strip_prefix('-') else { break };
                        let (v, f, _, after) = iso_number(r)?;
                        if part == "month" {
                            sum.add_months(v)?;
                            sum.add_fraction_days(f, 30)?;
                        } else {
                            sum.add_days(v, 1)?;
                            sum.add_fraction_micros(f, USECS_PER_DAY)?;
                        }
                        rest = after;
                    }
                    if !(rest.is_empty() || rest.starts_with('T')) {
                        return Err(Fault::Format);
                    }
                    any = true;
                    continue;
                }
                _ => return Err(Fault::Format),
            }
        } else {
            match unit {
                Some('H') => sum.add_micros(value, fraction, USECS_PER_HOUR)?,
                Some('M') => sum.add_micros(value, fraction, USECS_PER_MINUTE)?,
                Some('S') => sum.add_micros(value, fraction, USECS_PER_SEC)?,
                None if digits == 6 && !any => {
                    // `040506`
                    sum.add_micros(value / 10_000, 0.0, USECS_PER_HOUR)?;
                    sum.add_micros(value / 100 % 100, 0.0, USECS_PER_MINUTE)?;
                    sum.add_micros(value % 100, 0.0, USECS_PER_SEC)?;
                    sum.add_fraction_micros(fraction, 1)?;
                    return Ok(sum);
                }
                None | Some(':') if !any => {
                    // `04:05:06`
                    sum.add_micros(value, fraction, USECS_PER_HOUR)?;
                    rest = after;
                    for unit in [USECS_PER_MINUTE, USECS_PER_SEC] {
                        let Some(r) = rest.strip_prefix(':') else { break };
                        let (v, f, _, after) = iso_number(r)?;
                        sum.add_micros(v, f, unit)?;
                        rest = after;
                    }
                    return if rest.is_empty() { Ok(sum) } else { Err(Fault::Format) };
                }
                _ => return Err(Fault::Format),
            }
        }
        any = true;
        rest = &after[1..];
    }
    Ok(sum)
}

/// Value, fraction, number of digits before the point, and what follows. Read as a double, which is how precise Postgres is here.
fn iso_number(s: &str) -> Result<(i64, f64, usize, &str), Fault> {
    let count = |t: &str| t.bytes().take_while(u8::is_ascii_digit).count();
    let mut len = usize::from(s.starts_with('-'));
    let digits = count(&s[len..]);
    len += digits;
    let mut any = digits;
    if s[len..].starts_with('.') {
        let f = count(&s[len + 1..]);
        any += f;
        len += 1 + f;
    }
    if any == 0 {
        return Err(Fault::Format);
    }
    if let Some(e) = s[len..].strip_prefix(['e', 'E']) {
        let sign = usize::from(e.starts_with(['-', '+']));
        let n = count(&e[sign..]);
        if n > 0 {
            len += 1 + sign + n;
        }
    }
    let value: f64 = s[..len].parse().map_err(|_| Fault::Format)?;
    if !(-1e15..=1e15).contains(&value) {
        return Err(Fault::Range);
    }
    let whole = value.trunc();
    Ok((whole as i64, value - whole, digits, &s[len..]))
}

/// Cuts an interval to its modifier's range and rounds it to its precision.
pub fn apply_typmod(mut i: Interval, typmod: i32) -> Result<Interval, SqlError> {
    let (r, precision) = typmod_parts(typmod);
    use range::*;
    let cut = |v: i64, unit: i64| v / unit * unit;
    if r != FULL {
        if r == YEAR {
            i = Interval { months: i.months / 12 * 12, days: 0, micros: 0 };
        } else if r == MONTH || r == YEAR | MONTH {
            i = Interval { months: i.months, days: 0, micros: 0 };
        } else if r == DAY {
            i.micros = 0;
        } else if r & SECOND != 0 {
            // Seconds and their fraction stay.
        } else if r & MINUTE != 0 {
            i.micros = cut(i.micros, USECS_PER_MINUTE);
        } else if r & HOUR != 0 {
            i.micros = cut(i.micros, USECS_PER_HOUR);
        }
    }
    if let Some(p) = precision {
        i.micros = round_micros(i.micros, p);
    }
    Ok(i)
}

/// Rounds microseconds to `precision` digits of a second, halves away from zero.
pub fn round_micros(micros: i64, precision: u32) -> i64 {
    if precision >= 6 {
        return micros;
    }
    let unit = 10i64.pow(6 - precision);
    let half = if micros >= 0 { unit / 2 } else { -(unit / 2) };
    micros.saturating_add(half) / unit * unit
}

/// Prints an interval in a style.
pub fn print_interval(i: &Interval, style: IntervalStyle, out: &mut String) {
    let (year, month) = (i.months / 12, i.months % 12);
    let day = i.days;
    let (hour, rest) = (i.micros / USECS_PER_HOUR, i.micros % USECS_PER_HOUR);
    let (minute, rest) = (rest / USECS_PER_MINUTE, rest % USECS_PER_MINUTE);
    let (second, micros) = (rest / USECS_PER_SEC, rest % USECS_PER_SEC);
    match style {
        IntervalStyle::Postgres => {
            let mut plain = Plain { out, zero: true, before: false };
            plain.part(year.into(), "year");
            plain.part(month.into(), "mon");
            plain.part(day.into(), "day");
            let (zero, before) = (plain.zero, plain.before);
            if zero || i.micros != 0 {
                let sign = if i.micros < 0 {
                    "-"
                } else if before {
                    "+"
                } else {
                    ""
                };
                let space = if zero { "" } else { " " };
                let _ = write!(out, "{space}{sign}{:02}:{:02}:", hour.abs(), minute.abs());
                put_seconds(second, micros, true, out);
            }
        }
        IntervalStyle::PostgresVerbose => verbose(i, (year, month), (hour, minute, second, micros), out),
        IntervalStyle::SqlStandard => sql_standard(i, (year, month), (hour, minute, second, micros), out),
        IntervalStyle::Iso8601 => {
            if *i == Interval::default() {
                return out.push_str("PT0S");
            }
            out.push('P');
            for (v, c) in [(year, 'Y'), (month, 'M'), (day, 'D')] {
                if v != 0 {
                    let _ = write!(out, "{v}{c}");
                }
            }
            if i.micros != 0 {
                out.push('T');
                for (v, c) in [(hour, 'H'), (minute, 'M')] {
                    if v != 0 {
                        let _ = write!(out, "{v}{c}");
                    }
                }
                if second != 0 || micros != 0 {
                    if second < 0 || micros < 0 {
                        out.push('-');
                    }
                    put_seconds(second, micros, false, out);
                    out.push('S');
                }
            }
        }
    }
}

/// Seconds and fraction without their sign, trailing zeros of the fraction cut.
fn put_seconds(second: i64, micros: i64, pad: bool, out: &mut String) {
    let _ = if pad { write!(out, "{:02}", second.abs()) } else { write!(out, "{}", second.abs()) };
    super::print::put_fraction(micros.unsigned_abs(), out);
}

struct Plain<'a> {
    out: &'a mut String,
    zero: bool,
    before: bool,
}

impl Plain<'_> {
    fn part(&mut self, v: i64, unit: &str) {
        if v == 0 {
            return;
        }
        let space = if self.zero { "" } else { " " };
        let sign = if self.before && v > 0 { "+" } else { "" };
        let _ = write!(self.out, "{space}{sign}{v} {unit}{}", if v == 1 { "" } else { "s" });
        // Each part's sign decides whether the next positive one needs a `+`.
        self.before = v < 0;
        self.zero = false;
    }
}

fn verbose(i: &Interval, (year, month): (i32, i32), (hour, minute, second, micros): (i64, i64, i64, i64), out: &mut String) {
    out.push('@');
    let (mut zero, mut before) = (true, false);
    let mut part = |v: i64, unit: &str, out: &mut String| {
        if v == 0 {
            return;
        }
        // The first part's sign becomes `ago`; the others are shown relative to it.
        let shown = if zero {
            before = v < 0;
            v.abs()
        } else if before {
            -v
        } else {
            v
        };
        let _ = write!(out, " {shown} {unit}{}", if shown == 1 { "" } else { "s" });
        zero = false;
    };
    part(year.into(), "year", out);
    part(month.into(), "mon", out);
    part(i.days.into(), "day", out);
    part(hour, "hour", out);
    part(minute, "min", out);
    if second != 0 || micros != 0 {
        out.push(' ');
        if second < 0 || (second == 0 && micros < 0) {
            if zero {
                before = true;
            } else if !before {
                out.push('-');
            }
        } else if before {
            out.push('-');
        }
        put_seconds(second, micros, false, out);
        out.push_str(if second.abs() != 1 || micros != 0 { " secs" } else { " sec" });
        zero = false;
    }
    if zero {
        out.push_str(" 0");
    }
    if before {
        out.push_str(" ago");
    }
}

fn sql_standard(i: &Interval, (year, month): (i32, i32), (hour, minute, second, micros): (i64, i64, i64, i64), out: &mut String) {
    let has_negative = i.months < 0 || i.days < 0 || i.micros < 0;
    let has_positive = i.months > 0 || i.days > 0 || i.micros > 0;
    let has_year_month = i.months != 0;
    let has_day_time = i.days != 0 || i.micros != 0;
    let standard = !(has_negative && has_positive || has_year_month && has_day_time);
    if has_negative && standard {
        out.push('-');
    }
    if !has_negative && !has_positive {
        out.push('0');
    } else if !standard {
        // Forced signs, so that it can be read back.
        let sign = |neg: bool| if neg { '-' } else { '+' };
        let _ = write!(
            out,
            "{}{}-{} {}{} {}{}:{:02}:",
            sign(i.months < 0),
            year.abs(),
            month.abs(),
            sign(i.days < 0),
            i64::from(i.days).abs(),
            sign(i.micros < 0),
            hour.abs(),
            minute.abs()
        );
        put_seconds(second, micros, true, out);
    } else if has_year_month {
        let _ = write!(out, "{}-{}", year.abs(), month.abs());
    } else {
        if i.days != 0 {
            let _ = write!(out, "{} ", i64::from(i.days).abs());
        }
        let _ = write!(out, "{}:{:02}:", hour.abs(), minute.abs());
        put_seconds(second, micros, true, out);
    }
}

/// `a + b`, field by field.
pub fn add(a: &Interval, b: &Interval) -> Result<Interval, SqlError> {
    match (a.months.checked_add(b.months), a.days.checked_add(b.days), a.micros.checked_add(b.micros)) {
        (Some(months), Some(days), Some(micros)) => Ok(Interval { months, days, micros }),
        _ => Err(interval_out_of_range()),
    }
}

/// `a - b`, field by field.
pub fn sub(a: &Interval, b: &Interval) -> Result<Interval, SqlError> {
    match (a.months.checked_sub(b.months), a.days.checked_sub(b.days), a.micros.checked_sub(b.micros)) {
        (Some(months), Some(days), Some(micros)) => Ok(Interval { months, days, micros }),
        _ => Err(interval_out_of_range()),
    }
}

pub fn neg(a: &Interval) -> Result<Interval, SqlError> {
    sub(&Interval::default(), a)
}

/// `a * factor`; fractions of a month become days, fractions of a day microseconds.
pub fn mul(a: &Interval, factor: f64) -> Result<Interval, SqlError> {
    scale(a, |v| v * factor)
}

/// `a / divisor`.
pub fn div(a: &Interval, divisor: f64) -> Result<Interval, SqlError> {
    if divisor == 0.0 {
        return Err(SqlError::new(state::DIVISION_BY_ZERO, "division by zero"));
    }
    scale(a, |v| v / divisor)
}

fn scale(a: &Interval, by: impl Fn(f64) -> f64) -> Result<Interval, SqlError> {
    // Rounded to microseconds' worth, as Postgres does against the noise of binary fractions.
    let round6 = |x: f64| (x * 1e6).round_ties_even() / 1e6;
    let whole = |x: f64| -> Result<i32, SqlError> {
        match x.is_nan() || x > f64::from(i32::MAX) || x < f64::from(i32::MIN) {
            true => Err(interval_out_of_range()),
            false => Ok(x as i32),
        }
    };
    let (months_f, days_f) = (by(a.months.into()), by(a.days.into()));
    let (months, mut days) = (whole(months_f)?, whole(days_f)?);
    let month_rest_days = round6((months_f - f64::from(months)) * 30.0);
    let mut secs = round6((days_f - f64::from(days) + month_rest_days - (month_rest_days as i64) as f64) * 86_400.0);
    // Fractions may add up to a whole day.
    if secs.abs() >= 86_400.0 {
        let extra = (secs / 86_400.0) as i32;
        days = days.checked_add(extra).ok_or_else(interval_out_of_range)?;
        secs -= f64::from(extra) * 86_400.0;
    }
    days = days.checked_add(month_rest_days as i32).ok_or_else(interval_out_of_range)?;
    let micros = (by(a.micros as f64) + secs * 1e6).round_ties_even();
    if micros.is_nan() || !(-9.223_372_036_854_776e18..9.223_372_036_854_776e18).contains(&micros) {
        return Err(interval_out_of_range());
    }
    Ok(Interval { months, days, micros: micros as i64 })
}

/// Days of 24 hours out of the time, months of 30 days out of the days, all of one sign.
pub fn justify(a: &Interval) -> Result<Interval, SqlError> {
    let mut r = *a;
    let err = interval_out_of_range;
    if (r.days > 0 && r.micros > 0) || (r.days < 0 && r.micros < 0) {
        let whole = r.days / 30;
        r.days -= whole * 30;
        r.months = r.months.checked_add(whole).ok_or_else(err)?;
    }
    let whole = r.micros / USECS_PER_DAY;
    r.micros -= whole * USECS_PER_DAY;
    r.days = r.days.checked_add(whole as i32).ok_or_else(err)?;
    let whole = r.days / 30;
    r.days -= whole * 30;
    r.months = r.months.checked_add(whole).ok_or_else(err)?;
    if r.months > 0 && (r.days < 0 || (r.days == 0 && r.micros < 0)) {
        r.days += 30;
        r.months -= 1;
    } else if r.months < 0 && (r.days > 0 || (r.days == 0 && r.micros > 0)) {
        r.days -= 30;
        r.months += 1;
    }
    if r.days > 0 && r.micros < 0 {
        r.micros += USECS_PER_DAY;
        r.days -= 1;
    } else if r.days < 0 && r.micros > 0 {
        r.micros -= USECS_PER_DAY;
        r.days += 1;
    }
    Ok(r)
}

/// Whole days out of the time.
pub fn justify_hours(a: &Interval) -> Result<Interval, SqlError> {
    let mut r = *a;
    let whole = r.micros / USECS_PER_DAY;
    r.micros -= whole * USECS_PER_DAY;
    r.days = r.days.checked_add(whole as i32).ok_or_else(interval_out_of_range)?;
    if r.days > 0 && r.micros < 0 {
        r.micros += USECS_PER_DAY;
        r.days -= 1;
    } else if r.days < 0 && r.micros > 0 {
        r.micros -= USECS_PER_DAY;
        r.days += 1;
    }
    Ok(r)
}

/// Whole months of 30 days out of the days.
pub fn justify_days(a: &Interval) -> Result<Interval, SqlError> {
    let mut r = *a;
    let whole = r.days / 30;
    r.days -= whole * 30;
    r.months = r.months.checked_add(whole).ok_or_else(interval_out_of_range)?;
    if r.months > 0 && r.days < 0 {
        r.days += 30;
        r.months -= 1;
    } else if r.months < 0 && r.days > 0 {
        r.days -= 30;
        r.months += 1;
    }
    Ok(r)
}
