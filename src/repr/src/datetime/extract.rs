//! `extract`, `date_part` and `date_trunc`: parts of dates, times and intervals, and cutting to them.
//!
//! A part is exact ([`Part::Int`] and a decimal scale); `extract` shows it as numeric, `date_part` as double. Errors: 0A000 for a
//! unit that the type does not have, 22023 for a word that is no unit.

use super::calendar::*;
use super::token::{self, Unit};
use super::zone::TimeZone;
use crate::error::{state, SqlError};
use crate::numeric::Numeric;
use crate::value::{Interval, TimeTz};

/// An extracted part.
#[derive(Clone, Debug, PartialEq)]
pub enum Part {
    /// `value * 10^-scale`.
    Int(i128, u16),
    /// Microseconds of the minute, in units of `10^scale` of them: as a float PostgreSQL adds whole seconds and fraction, each rounded.
    OfMinute(i64, u16),
    /// A Julian day: whole days and microseconds of the day.
    Julian(i64, i64),
    PosInf,
    NegInf,
    Null,
}

impl Part {
    /// As `extract` shows it; `None` is NULL.
    pub fn numeric(&self) -> Option<Numeric> {
        match self {
            Part::Int(v, scale) => Some(Numeric::Small { unscaled: *v, scale: *scale }),
            Part::OfMinute(v, scale) => Some(Numeric::Small { unscaled: (*v).into(), scale: *scale }),
            Part::Julian(day, micros) => {
                let fraction = Numeric::from(*micros).div(&Numeric::from(USECS_PER_DAY)).ok()?;
                Numeric::from(*day).add(&fraction).ok()
            }
            Part::PosInf => Some(Numeric::PosInf),
            Part::NegInf => Some(Numeric::NegInf),
            Part::Null => None,
        }
    }

    /// As `date_part` shows it; `None` is NULL.
    pub fn double(&self) -> Option<f64> {
        match self {
            Part::Int(v, scale) => Some(*v as f64 / 10f64.powi(i32::from(*scale))),
            Part::OfMinute(v, scale) => {
                let (seconds, fraction) = ((v / USECS_PER_SEC) as f64, (v % USECS_PER_SEC) as f64);
                Some(seconds * 10f64.powi(6 - i32::from(*scale)) + fraction / 10f64.powi(i32::from(*scale)))
            }
            Part::Julian(day, micros) => Some(*day as f64 + *micros as f64 / 86_400e6),
            Part::PosInf => Some(f64::INFINITY),
            Part::NegInf => Some(f64::NEG_INFINITY),
            Part::Null => None,
        }
    }
}

/// A unit of `extract`: those of intervals and some of its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Field {
    Unit(Unit),
    Epoch,
    Julian,
    Dow,
    IsoDow,
    Doy,
    IsoYear,
}

fn not_supported(unit: &str, ty: &str) -> SqlError {
    SqlError::new(state::FEATURE_NOT_SUPPORTED, format!("unit \"{unit}\" not supported for type {ty}"))
}

fn not_recognized(unit: &str, ty: &str) -> SqlError {
    SqlError::new(state::INVALID_PARAMETER_VALUE, format!("unit \"{unit}\" not recognized for type {ty}"))
}

fn field(unit: &str, ty: &str) -> Result<Field, SqlError> {
    let lower = unit.to_ascii_lowercase();
    Ok(match lower.as_str() {
        "epoch" => Field::Epoch,
        "julian" | "jd" | "j" => Field::Julian,
        "dow" => Field::Dow,
        "isodow" => Field::IsoDow,
        "doy" => Field::Doy,
        "isoyear" => Field::IsoYear,
        w => match token::unit(w) {
            // Words of dates are known where there is a date.
            Some(Unit::Ago | Unit::Ignore) | None if token::word(w).is_some() && (ty.starts_with("timestamp") || ty == "date") => {
                return Err(not_supported(&lower, ty))
            }
            Some(Unit::Ago | Unit::Ignore) | None => return Err(not_recognized(&lower, ty)),
            Some(u) => Field::Unit(u),
        },
    })
}

/// A unit to cut to; words that only `extract` knows are none.
fn unit_only(unit: &str, ty: &str) -> Result<Unit, SqlError> {
    let lower = unit.to_ascii_lowercase();
    token::unit(&lower).filter(|u| !matches!(u, Unit::Ago | Unit::Ignore)).ok_or_else(|| not_recognized(&lower, ty))
}

/// Years as shown: no year 0.
fn shown(year: i32) -> i32 {
    if year > 0 {
        year
    } else {
        year - 1
    }
}

fn decade(year: i32) -> i32 {
    if year >= 0 {
        year / 10
    } else {
        -((8 - (year - 1)) / 10)
    }
}

fn century(year: i32) -> i32 {
    if year > 0 {
        (year + 99) / 100
    } else {
        -((99 - (year - 1)) / 100)
    }
}

fn millennium(year: i32) -> i32 {
    if year > 0 {
        (year + 999) / 1000
    } else {
        -((999 - (year - 1)) / 1000)
    }
}

/// Parts that follow from the calendar day alone.
fn day_part(f: Field, days: i32) -> Option<i64> {
    let (year, month, day) = civil_from_days(days);
    Some(i64::from(match f {
        Field::Unit(Unit::Day) => day,
        Field::Unit(Unit::Month) => month,
        Field::Unit(Unit::Quarter) => (month - 1) / 3 + 1,
        Field::Unit(Unit::Week) => iso_week(days).1,
        Field::Unit(Unit::Year) => shown(year),
        Field::Unit(Unit::Decade) => decade(year),
        Field::Unit(Unit::Century) => century(year),
        Field::Unit(Unit::Millennium) => millennium(year),
        Field::IsoYear => {
            let y = iso_week(days).0;
            shown(y)
        }
        Field::Dow => weekday(days),
        Field::IsoDow => match weekday(days) {
            0 => 7,
            d => d,
        },
        Field::Doy => day_of_year(year, month, day),
        _ => return None,
    }))
}

/// Parts of an infinity: those that grow for ever are infinite, those that turn round are NULL.
fn infinite_part(f: Field, negative: bool) -> Part {
    match f {
        Field::Unit(Unit::Year | Unit::Decade | Unit::Century | Unit::Millennium) | Field::Julian | Field::IsoYear | Field::Epoch => {
            if negative {
                Part::NegInf
            } else {
                Part::PosInf
            }
        }
        _ => Part::Null,
    }
}

fn clock_part(f: Field, time: i64) -> Option<Part> {
    let sub_minute = time % USECS_PER_MINUTE;
    Some(match f {
        Field::Unit(Unit::Microsecond) => Part::OfMinute(sub_minute, 0),
        Field::Unit(Unit::Millisecond) => Part::OfMinute(sub_minute, 3),
        Field::Unit(Unit::Second) => Part::OfMinute(sub_minute, 6),
        Field::Unit(Unit::Minute) => Part::Int(i128::from(time / USECS_PER_MINUTE % 60), 0),
        Field::Unit(Unit::Hour) => Part::Int(i128::from(time / USECS_PER_HOUR), 0),
        _ => return None,
    })
}

fn zone_part(f: Field, east: i32) -> Option<Part> {
    let v = match f {
        Field::Unit(Unit::Timezone) => east,
        Field::Unit(Unit::TimezoneHour) => east / 3600,
        Field::Unit(Unit::TimezoneMinute) => east / 60 % 60,
        _ => return None,
    };
    Some(Part::Int(v.into(), 0))
}

/// A part of a timestamp; with a zone, of an instant.
pub fn timestamp_part(unit: &str, t: i64, zone: Option<&TimeZone>) -> Result<Part, SqlError> {
    let ty = if zone.is_some() { "timestamp with time zone" } else { "timestamp without time zone" };
    let f = field(unit, ty)?;
    let unsupported = || not_supported(&unit.to_ascii_lowercase(), ty);
    if !timestamp_is_finite(t) {
        return Ok(infinite_part(f, t == TS_NEG_INF));
    }
    let is_zone = matches!(f, Field::Unit(Unit::Timezone | Unit::TimezoneHour | Unit::TimezoneMinute));
    if is_zone && zone.is_none() {
        return Err(unsupported());
    }
    if f == Field::Epoch {
        return Ok(Part::Int(i128::from(t) - i128::from(UNIX_EPOCH_MICROS), 6));
    }
    let east = zone.map_or(0, |z| z.offset_at(t));
    let local = t.saturating_add(i64::from(east) * USECS_PER_SEC);
    let (days, time) = (local.div_euclid(USECS_PER_DAY) as i32, local.rem_euclid(USECS_PER_DAY));
    if f == Field::Julian {
        return Ok(Part::Julian(julian(days), time));
    }
    zone_part(f, east).or_else(|| clock_part(f, time)).or_else(|| day_part(f, days).map(|v| Part::Int(v.into(), 0))).ok_or_else(unsupported)
}

pub fn date_part(unit: &str, d: i32) -> Result<Part, SqlError> {
    let f = field(unit, "date")?;
    let int = match f {
        Field::Epoch => Some((i64::from(d) - i64::from(UNIX_EPOCH_DAYS)) * 86_400),
        Field::Julian => Some(julian(d)),
        f => day_part(f, if date_is_finite(d) { d } else { 0 }),
    };
    let int = int.ok_or_else(|| not_supported(&unit.to_ascii_lowercase(), "date"))?;
    Ok(if date_is_finite(d) { Part::Int(int.into(), 0) } else { infinite_part(f, d == DATE_NEG_INF) })
}

pub fn time_part(unit: &str, time: i64) -> Result<Part, SqlError> {
    let ty = "time without time zone";
    let f = field(unit, ty)?;
    match f {
        Field::Epoch => Ok(Part::Int(time.into(), 6)),
        f => clock_part(f, time).ok_or_else(|| not_supported(&unit.to_ascii_lowercase(), ty)),
    }
}

pub fn timetz_part(unit: &str, t: TimeTz) -> Result<Part, SqlError> {
    let ty = "time with time zone";
    let f = field(unit, ty)?;
    match f {
        Field::Epoch => Ok(Part::Int(i128::from(t.micros) + i128::from(t.zone_secs) * 1_000_000, 6)),
        f => zone_part(f, -t.zone_secs).or_else(|| clock_part(f, t.micros)).ok_or_else(|| not_supported(&unit.to_ascii_lowercase(), ty)),
    }
}

pub fn interval_part(unit: &str, i: &Interval) -> Result<Part, SqlError> {
    let f = field(unit, "interval")?;
    let (year, month) = (i.months / 12, i.months % 12);
    let int = |v: i32| Part::Int(v.into(), 0);
    Ok(match f {
        Field::Unit(Unit::Day) => int(i.days),
        Field::Unit(Unit::Month) => int(month),
        Field::Unit(Unit::Quarter) => int(month / 3 + 1),
        Field::Unit(Unit::Year) => int(year),
        Field::Unit(Unit::Decade) => int(year / 10),
        Field::Unit(Unit::Century) => int(year / 100),
        Field::Unit(Unit::Millennium) => int(year / 1000),
        Field::Epoch => {
            // A year has 365.25 days here.
            let quarter_days = i128::from(year) * 1461 + i128::from(month) * 120 + i128::from(i.days) * 4;
            Part::Int(quarter_days * (86_400 / 4) * 1_000_000 + i128::from(i.micros), 6)
        }
        f => match clock_part(f, i.micros) {
            Some(p) => p,
            None => return Err(not_supported(&unit.to_ascii_lowercase(), "interval")),
        },
    })
}

/// Cuts a local time to a unit; also whether the unit is a day or more.
fn trunc_local(unit: &str, local: i64, ty: &str) -> Result<(i64, bool), SqlError> {
    let u = unit_only(unit, ty)?;
    let days = local.div_euclid(USECS_PER_DAY) as i32;
    let cut = |unit: i64| (local.div_euclid(unit) * unit, false);
    let (year, month, _) = civil_from_days(days);
    let date = |y: i32, m: i32, d: i32| -> Result<(i64, bool), SqlError> {
        let t = days_from_civil(y.into(), m.into(), d.into()) * USECS_PER_DAY;
        match is_valid_timestamp(t) {
            true => Ok((t, true)),
            false => Err(timestamp_out_of_range()),
        }
    };
    match u {
        Unit::Microsecond => Ok((local, false)),
        Unit::Millisecond => Ok(cut(1000)),
        Unit::Second => Ok(cut(USECS_PER_SEC)),
        Unit::Minute => Ok(cut(USECS_PER_MINUTE)),
        Unit::Hour => Ok(cut(USECS_PER_HOUR)),
        Unit::Day => Ok((i64::from(days) * USECS_PER_DAY, true)),
        Unit::Week => {
            let monday = i64::from(days) - i64::from((weekday(days) + 6) % 7);
            match is_valid_timestamp(monday * USECS_PER_DAY) {
                true => Ok((monday * USECS_PER_DAY, true)),
                false => Err(timestamp_out_of_range()),
            }
        }
        Unit::Month => date(year, month, 1),
        Unit::Quarter => date(year, (month - 1) / 3 * 3 + 1, 1),
        Unit::Year => date(year, 1, 1),
        Unit::Decade => date(if year > 0 { year / 10 * 10 } else { -((8 - (year - 1)) / 10) * 10 }, 1, 1),
        Unit::Century => date(if year > 0 { (year + 99) / 100 * 100 - 99 } else { -((99 - (year - 1)) / 100) * 100 + 1 }, 1, 1),
        Unit::Millennium => date(if year > 0 { (year + 999) / 1000 * 1000 - 999 } else { -((999 - (year - 1)) / 1000) * 1000 + 1 }, 1, 1),
        _ => Err(not_supported(&unit.to_ascii_lowercase(), ty)),
    }
}

/// `date_trunc(unit, timestamp)`.
pub fn timestamp_trunc(unit: &str, t: i64) -> Result<i64, SqlError> {
    let ty = "timestamp without time zone";
    let (cut, _) = trunc_local(unit, if timestamp_is_finite(t) { t } else { 0 }, ty)?;
    Ok(if timestamp_is_finite(t) { cut } else { t })
}

/// `date_trunc(unit, timestamptz)` by the clocks of a zone.
pub fn timestamptz_trunc(unit: &str, t: i64, zone: &TimeZone) -> Result<i64, SqlError> {
    let ty = "timestamp with time zone";
    let local = if timestamp_is_finite(t) { zone.to_local(t) } else { 0 };
    let (cut, new_offset) = trunc_local(unit, local, ty)?;
    if !timestamp_is_finite(t) {
        return Ok(t);
    }
    // Below a day the offset stays that of the given time.
    Ok(if new_offset { zone.to_utc(cut) } else { cut - (local - t) })
}

/// `date_trunc(unit, interval)`.
pub fn interval_trunc(unit: &str, i: &Interval) -> Result<Interval, SqlError> {
    let unsupported = || not_supported(&unit.to_ascii_lowercase(), "interval");
    let u = unit_only(unit, "interval")?;
    let months = |n: i32| Interval { months: i.months / n * n, days: 0, micros: 0 };
    let micros = |n: i64| Interval { micros: i.micros / n * n, ..*i };
    Ok(match u {
        Unit::Millennium => months(12_000),
        Unit::Century => months(1200),
        Unit::Decade => months(120),
        Unit::Year => months(12),
        Unit::Quarter => months(3),
        Unit::Month => months(1),
        Unit::Day => Interval { micros: 0, ..*i },
        Unit::Hour => micros(USECS_PER_HOUR),
        Unit::Minute => micros(USECS_PER_MINUTE),
        Unit::Second => micros(USECS_PER_SEC),
        Unit::Millisecond => micros(1000),
        Unit::Microsecond => *i,
        Unit::Week => return Err(unsupported().with_detail("Months usually have fractional weeks.")),
        _ => return Err(unsupported()),
    })
}
