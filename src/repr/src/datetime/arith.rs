//! Arithmetic on dates, times and timestamps.
//!
//! Months are added to the calendar month, the day cut to the month's end; days are calendar days (in a zone: of its local time);
//! the rest is exact time. Infinities stay. Errors: 22008 out of range.

use super::calendar::*;
use super::zone::TimeZone;
use crate::error::{state, SqlError};
use crate::value::{Interval, TimeTz};

fn error(message: impl Into<String>) -> SqlError {
    SqlError::new(state::DATETIME_FIELD_OVERFLOW, message)
}

fn checked(t: Option<i64>) -> Result<i64, SqlError> {
    t.filter(|t| is_valid_timestamp(*t)).ok_or_else(timestamp_out_of_range)
}

/// `local` moved by calendar months and days.
fn add_calendar(local: i64, months: i32, days: i32) -> Result<i64, SqlError> {
    let mut t = local;
    if months != 0 {
        let mut c = Civil::from_micros(t);
        let total = i64::from(c.year) * 12 + i64::from(c.month) - 1 + i64::from(months);
        c.year = i32::try_from(total.div_euclid(12)).map_err(|_| timestamp_out_of_range())?;
        c.month = total.rem_euclid(12) as i32 + 1;
        c.day = c.day.min(days_in_month(c.year, c.month));
        t = checked(c.to_micros())?;
    }
    if days != 0 {
        // The days alone may be more microseconds than 64 bits count.
        t = checked(i64::try_from(i128::from(days) * i128::from(USECS_PER_DAY) + i128::from(t)).ok())?;
    }
    Ok(t)
}

/// `timestamp + interval`.
pub fn timestamp_add(t: i64, i: &Interval) -> Result<i64, SqlError> {
    if !timestamp_is_finite(t) {
        return Ok(t);
    }
    let t = add_calendar(t, i.months, i.days)?;
    checked(t.checked_add(i.micros))
}

/// `timestamptz + interval`, months and days by the zone's calendar.
pub fn timestamptz_add(t: i64, i: &Interval, zone: &TimeZone) -> Result<i64, SqlError> {
    if !timestamp_is_finite(t) {
        return Ok(t);
    }
    let mut t = t;
    // One after the other, since each local time has to exist.
    if i.months != 0 {
        t = checked(Some(zone.to_utc(add_calendar(zone.to_local(t), i.months, 0)?)))?;
    }
    if i.days != 0 {
        t = checked(Some(zone.to_utc(add_calendar(zone.to_local(t), 0, i.days)?)))?;
    }
    checked(t.checked_add(i.micros))
}

/// `timestamp - timestamp`: days and time.
pub fn timestamp_sub(a: i64, b: i64) -> Result<Interval, SqlError> {
    if !timestamp_is_finite(a) || !timestamp_is_finite(b) {
        return Err(error("cannot subtract infinite timestamps"));
    }
    let micros = a.checked_sub(b).ok_or_else(interval_out_of_range)?;
    Ok(Interval { months: 0, days: (micros / USECS_PER_DAY) as i32, micros: micros % USECS_PER_DAY })
}

/// `date + integer`.
pub fn date_add(d: i32, days: i32) -> Result<i32, SqlError> {
    if !date_is_finite(d) {
        return Ok(d);
    }
    d.checked_add(days).filter(|d| is_valid_date(*d)).ok_or_else(date_out_of_range)
}

/// `date - date` in days.
pub fn date_sub(a: i32, b: i32) -> Result<i32, SqlError> {
    if !date_is_finite(a) || !date_is_finite(b) {
        return Err(error("cannot subtract infinite dates"));
    }
    a.checked_sub(b).ok_or_else(date_out_of_range)
}

/// A date as midnight.
pub fn date_to_timestamp(d: i32) -> Result<i64, SqlError> {
    match d {
        DATE_NEG_INF => Ok(TS_NEG_INF),
        DATE_POS_INF => Ok(TS_POS_INF),
        d if d >= TIMESTAMP_END_DATE => Err(error("date out of range for timestamp")),
        d => Ok(i64::from(d) * USECS_PER_DAY),
    }
}

/// A date as midnight in a zone.
pub fn date_to_timestamptz(d: i32, zone: &TimeZone) -> Result<i64, SqlError> {
    let t = date_to_timestamp(d)?;
    if !timestamp_is_finite(t) {
        return Ok(t);
    }
    Some(zone.to_utc(t)).filter(|t| is_valid_timestamp(*t)).ok_or_else(|| error("date out of range for timestamp"))
}

/// A date and a time of day.
pub fn date_time(d: i32, time: i64) -> Result<i64, SqlError> {
    let t = date_to_timestamp(d)?;
    if !timestamp_is_finite(t) {
        return Ok(t);
    }
    checked(t.checked_add(time))
}

/// A date and a time with zone, as an instant.
pub fn date_timetz(d: i32, time: TimeTz) -> Result<i64, SqlError> {
    let t = date_to_timestamp(d)?;
    if !timestamp_is_finite(t) {
        return Ok(t);
    }
    let utc = t.checked_add(time.micros + i64::from(time.zone_secs) * USECS_PER_SEC);
    utc.filter(|t| is_valid_timestamp(*t)).ok_or_else(|| error("date out of range for timestamp"))
}

pub fn timestamp_to_date(t: i64) -> i32 {
    match t {
        TS_NEG_INF => DATE_NEG_INF,
        TS_POS_INF => DATE_POS_INF,
        t => t.div_euclid(USECS_PER_DAY) as i32,
    }
}

/// The local time of an instant, in range.
pub fn to_local(t: i64, zone: &TimeZone) -> Result<i64, SqlError> {
    if !timestamp_is_finite(t) {
        return Ok(t);
    }
    checked(Some(zone.to_local(t)))
}

/// The instant of a local time, in range.
pub fn to_utc(t: i64, zone: &TimeZone) -> Result<i64, SqlError> {
    if !timestamp_is_finite(t) {
        return Ok(t);
    }
    checked(Some(zone.to_utc(t)))
}

/// A timestamp moved by seconds.
pub fn shift(t: i64, secs: i64) -> Result<i64, SqlError> {
    if !timestamp_is_finite(t) {
        return Ok(t);
    }
    checked(t.checked_add(secs * USECS_PER_SEC))
}

/// A time of day moved by an interval's time, round the clock.
pub fn time_add(time: i64, micros: i64) -> i64 {
    (i128::from(time) + i128::from(micros)).rem_euclid(i128::from(USECS_PER_DAY)) as i64
}

/// A time with zone as another zone shows it, in seconds west.
pub fn timetz_in_zone(t: TimeTz, west: i32) -> TimeTz {
    let micros = (t.micros + i64::from(t.zone_secs - west) * USECS_PER_SEC).rem_euclid(USECS_PER_DAY);
    TimeTz { micros, zone_secs: west }
}

/// `age(a, b)`: the difference field by field, of one sign.
pub fn age(a: i64, b: i64) -> Result<Interval, SqlError> {
    if !timestamp_is_finite(a) || !timestamp_is_finite(b) {
        return Err(timestamp_out_of_range());
    }
    let (x, y) = (Civil::from_micros(a), Civil::from_micros(b));
    let sign = if a < b { -1 } else { 1 };
    let mut year = (x.year - y.year) * sign;
    let mut month = (x.month - y.month) * sign;
    let mut day = (x.day - y.day) * sign;
    let mut micros = (x.time_micros() - y.time_micros()) * i64::from(sign);
    if micros < 0 {
        micros += USECS_PER_DAY;
        day -= 1;
    }
    // A borrowed month is that of the earlier time.
    let earlier = if a < b { x } else { y };
    while day < 0 {
        day += days_in_month(earlier.year, earlier.month);
        month -= 1;
    }
    while month < 0 {
        month += 12;
        year -= 1;
    }
    Ok(Interval { months: (year * 12 + month) * sign, days: day * sign, micros: micros * i64::from(sign) })
}

/// `date_bin(stride, t, origin)`.
pub fn bin(stride: &Interval, t: i64, origin: i64) -> Result<i64, SqlError> {
    if !timestamp_is_finite(t) {
        return Ok(t);
    }
    if !timestamp_is_finite(origin) {
        return Err(error("origin out of range"));
    }
    if stride.months != 0 {
        let m = "timestamps cannot be binned into intervals containing months or years";
        return Err(SqlError::new(state::FEATURE_NOT_SUPPORTED, m));
    }
    let width = i64::from(stride.days).checked_mul(USECS_PER_DAY).and_then(|d| d.checked_add(stride.micros)).ok_or_else(interval_out_of_range)?;
    if width <= 0 {
        return Err(error("stride must be greater than zero"));
    }
    let from_origin = t.checked_sub(origin).ok_or_else(interval_out_of_range)?;
    let delta = from_origin.div_euclid(width).checked_mul(width).ok_or_else(interval_out_of_range)?;
    checked(origin.checked_add(delta))
}

/// `%02g` of seconds in messages.
fn show_secs(s: f64) -> String {
    let text = general(s);
    if text.len() < 2 {
        format!("0{text}")
    } else {
        text
    }
}

/// `%g`.
fn general(v: f64) -> String {
    let mut text = String::new();
    crate::text::print_f64(v, -9, &mut text);
    text
}

/// Days of a date given by fields; a negative year is BC.
pub fn make_date(year: i32, month: i32, day: i32) -> Result<i32, SqlError> {
    let shown = if year < 0 { year + 1 } else { year };
    let bad = || error(format!("date field value out of range: {shown}-{month:02}-{day:02}"));
    // There is no year 0.
    let y = match year {
        0 => return Err(bad()),
        y if y < 0 => y.checked_add(1).ok_or_else(bad)?,
        y => y,
    };
    if !(1..=12).contains(&month) || day < 1 || day > days_in_month(y, month) {
        return Err(bad());
    }
    date_from_civil(y, month, day).ok_or_else(|| error(format!("date out of range: {year}-{month:02}-{day:02}")))
}

/// Microseconds of a time of day given by fields; 24:00:00 is the last.
pub fn make_time(hour: i32, minute: i32, secs: f64) -> Result<i64, SqlError> {
    let bad = || error(format!("time field value out of range: {hour}:{minute:02}:{}", show_secs(secs)));
    if !(0..=24).contains(&hour) || !(0..60).contains(&minute) || secs.is_nan() {
        return Err(bad());
    }
    let micros = (secs * 1e6).round_ties_even();
    if !(0.0..=60e6).contains(&micros) {
        return Err(bad());
    }
    let total = (i64::from(hour) * 60 + i64::from(minute)) * USECS_PER_MINUTE + micros as i64;
    match total > USECS_PER_DAY {
        true => Err(bad()),
        false => Ok(total),
    }
}

/// A timestamp given by fields.
pub fn make_timestamp(year: i32, month: i32, day: i32, hour: i32, minute: i32, secs: f64) -> Result<i64, SqlError> {
    let days = make_date(year, month, day).or_else(|e| match (year, month) {
        // Beyond the last date Postgres still knows the calendar for half a year.
        (5_874_898, ..6) if day <= days_in_month(year, month) => Ok(END_DATE),
        _ => Err(e),
    })?;
    let time = make_time(hour, minute, secs)?;
    let t = i64::from(days).checked_mul(USECS_PER_DAY).and_then(|d| d.checked_add(time)).filter(|t| is_valid_timestamp(*t));
    t.ok_or_else(|| error(format!("timestamp out of range: {year}-{month:02}-{day:02} {hour}:{minute:02}:{}", show_secs(secs))))
}

/// `to_timestamp(seconds since 1970)`.
pub fn from_unix_seconds(secs: f64) -> Result<i64, SqlError> {
    if secs.is_nan() {
        return Err(error("timestamp cannot be NaN"));
    }
    if secs.is_infinite() {
        return Ok(if secs < 0.0 { TS_NEG_INF } else { TS_POS_INF });
    }
    let shifted = (secs + UNIX_EPOCH_MICROS as f64 / 1e6) * 1e6;
    let out_of_range = || error(format!("timestamp out of range: \"{}\"", general(secs)));
    if shifted.abs() > 9.3e18 {
        return Err(out_of_range());
    }
    Some(shifted.round_ties_even() as i64).filter(|t| is_valid_timestamp(*t)).ok_or_else(out_of_range)
}
