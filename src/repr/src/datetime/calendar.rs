//! The proleptic Gregorian calendar: days since 2000-01-01 and fields.
//!
//! Years are astronomical here: year 0 is 1 BC. Ranges are Postgres's: dates from 4713 BC to 5874897, timestamps to
//! 294276. Not here: time zones (`zone`), text (`parse`, `print`).

use crate::error::{state, SqlError};

pub const USECS_PER_SEC: i64 = 1_000_000;
pub const USECS_PER_MINUTE: i64 = 60 * USECS_PER_SEC;
pub const USECS_PER_HOUR: i64 = 3600 * USECS_PER_SEC;
pub const USECS_PER_DAY: i64 = 24 * USECS_PER_HOUR;
/// Julian day of 2000-01-01.
pub const EPOCH_JULIAN: i32 = 2_451_545;
/// 1970-01-01 in days and microseconds since 2000-01-01.
pub const UNIX_EPOCH_DAYS: i32 = -10_957;
pub const UNIX_EPOCH_MICROS: i64 = UNIX_EPOCH_DAYS as i64 * USECS_PER_DAY;
/// First timestamp, 4714-11-24 BC, and the first beyond the last.
pub const MIN_TIMESTAMP: i64 = -211_813_488_000_000_000;
pub const END_TIMESTAMP: i64 = 9_223_371_331_200_000_000;
/// First date and the first beyond the last, in days since 2000-01-01.
pub const MIN_DATE: i32 = -EPOCH_JULIAN;
pub const END_DATE: i32 = 2_147_483_494 - EPOCH_JULIAN;
/// The first date that is beyond all timestamps.
pub const TIMESTAMP_END_DATE: i32 = 109_203_528 - EPOCH_JULIAN;

pub const DATE_NEG_INF: i32 = i32::MIN;
pub const DATE_POS_INF: i32 = i32::MAX;
pub const TS_NEG_INF: i64 = i64::MIN;
pub const TS_POS_INF: i64 = i64::MAX;

/// A date and time of day, without a zone.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Civil {
    /// Astronomical: 0 is 1 BC.
    pub year: i32,
    pub month: i32,
    pub day: i32,
    pub hour: i32,
    pub minute: i32,
    pub second: i32,
    pub micros: i32,
}

pub fn is_leap(year: i32) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

pub fn days_in_month(year: i32, month: i32) -> i32 {
    match month {
        2 => 28 + i32::from(is_leap(year)),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days since 2000-01-01. The month may lie outside 1..=12 and the day outside the month; both carry.
pub fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = year + (month - 1).div_euclid(12);
    let month = (month - 1).rem_euclid(12) + 1;
    // Years that begin in March put the leap day last.
    let y = if month <= 2 { year - 1 } else { year };
    let era = y.div_euclid(400);
    let yoe = y.rem_euclid(400);
    let doy = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let doe = yoe * 365 + yoe / 4 - yoe / 100 + doy;
    era * 146_097 + doe - 730_425
}

/// Year, month, day of a number of days since 2000-01-01.
pub fn civil_from_days(days: i32) -> (i32, i32, i32) {
    let z = i64::from(days) + 730_425;
    let era = z.div_euclid(146_097);
    let doe = z.rem_euclid(146_097);
    let yoe = (doe - doe / 1460 + doe / 36_524 - doe / 146_096) / 365;
    let doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
    let mp = (5 * doy + 2) / 153;
    let day = doy - (153 * mp + 2) / 5 + 1;
    let month = if mp < 10 { mp + 3 } else { mp - 9 };
    let year = yoe + era * 400 + i64::from(month <= 2);
    (year as i32, month as i32, day as i32)
}

/// Days since 2000-01-01 of a valid date, if in the range of `date`.
pub fn date_from_civil(year: i32, month: i32, day: i32) -> Option<i32> {
    let d = days_from_civil(i64::from(year), i64::from(month), i64::from(day));
    i32::try_from(d).ok().filter(|d| is_valid_date(*d))
}

pub fn is_valid_date(days: i32) -> bool {
    (MIN_DATE..END_DATE).contains(&days)
}

pub fn is_valid_timestamp(micros: i64) -> bool {
    (MIN_TIMESTAMP..END_TIMESTAMP).contains(&micros)
}

pub fn date_is_finite(d: i32) -> bool {
    d != DATE_NEG_INF && d != DATE_POS_INF
}

pub fn timestamp_is_finite(t: i64) -> bool {
    t != TS_NEG_INF && t != TS_POS_INF
}

pub fn timestamp_out_of_range() -> SqlError {
    SqlError::new(state::DATETIME_FIELD_OVERFLOW, "timestamp out of range")
}

pub fn interval_out_of_range() -> SqlError {
    SqlError::new(state::DATETIME_FIELD_OVERFLOW, "interval out of range")
}

pub fn date_out_of_range() -> SqlError {
    SqlError::new(state::DATETIME_FIELD_OVERFLOW, "date out of range")
}

/// Day of week of a number of days since 2000-01-01: 0 is Sunday.
pub fn weekday(days: i32) -> i32 {
    ((i64::from(days) + 6).rem_euclid(7)) as i32
}

/// Day of the year, from 1.
pub fn day_of_year(year: i32, month: i32, day: i32) -> i32 {
    (days_from_civil(year.into(), month.into(), day.into()) - days_from_civil(year.into(), 1, 1)) as i32 + 1
}

/// ISO 8601 week year (astronomical) and week.
pub fn iso_week(days: i32) -> (i32, i32) {
    // The week's Thursday decides to which year it belongs.
    let iso_dow = (weekday(days) + 6) % 7; // Monday 0
    let thursday = i64::from(days) - i64::from(iso_dow) + 3;
    let (year, _, _) = civil_from_days(thursday as i32);
    let first = days_from_civil(year.into(), 1, 1);
    (year, ((thursday - first) / 7) as i32 + 1)
}

/// Days since 2000-01-01 of the Monday of an ISO week.
pub fn iso_week_start(year: i32, week: i32) -> i64 {
    let jan4 = days_from_civil(year.into(), 1, 4);
    let dow = (jan4 + 5).rem_euclid(7); // Monday 0
    jan4 - dow + (i64::from(week) - 1) * 7
}

/// Julian day number of a date, as `to_char(.., 'J')` and `extract(julian)` have it.
pub fn julian(days: i32) -> i64 {
    i64::from(days) + i64::from(EPOCH_JULIAN)
}

impl Civil {
    /// Fields of microseconds since 2000-01-01.
    pub fn from_micros(t: i64) -> Civil {
        let days = t.div_euclid(USECS_PER_DAY);
        let (year, month, day) = civil_from_days(days as i32);
        let mut c = Civil { year, month, day, ..Civil::default() };
        c.set_time(t.rem_euclid(USECS_PER_DAY));
        c
    }

    pub fn from_date(days: i32) -> Civil {
        let (year, month, day) = civil_from_days(days);
        Civil { year, month, day, ..Civil::default() }
    }

    /// Sets the time of day from microseconds since midnight.
    pub fn set_time(&mut self, micros: i64) {
        self.hour = (micros / USECS_PER_HOUR) as i32;
        self.minute = (micros / USECS_PER_MINUTE % 60) as i32;
        self.second = (micros / USECS_PER_SEC % 60) as i32;
        self.micros = (micros % USECS_PER_SEC) as i32;
    }

    pub fn time_micros(&self) -> i64 {
        (i64::from(self.hour) * 3600 + i64::from(self.minute) * 60 + i64::from(self.second)) * USECS_PER_SEC + i64::from(self.micros)
    }

    pub fn days(&self) -> i64 {
        days_from_civil(self.year.into(), self.month.into(), self.day.into())
    }

    /// Microseconds since 2000-01-01; `None` outside the range of `timestamp`.
    pub fn to_micros(&self) -> Option<i64> {
        self.days().checked_mul(USECS_PER_DAY)?.checked_add(self.time_micros()).filter(|t| is_valid_timestamp(*t))
    }
}
