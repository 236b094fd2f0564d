//! `to_char` of timestamps and intervals.

use super::template::{ordinal, split, Node, DAYS, MONTHS, ROMAN};
use repr::datetime::calendar::{day_of_year, iso_week, iso_week_start, julian, weekday, Civil, USECS_PER_HOUR, USECS_PER_MINUTE, USECS_PER_SEC};
use repr::error::state;
use repr::{Interval, SqlError};
use std::fmt::Write;

pub struct Zone {
    pub east_secs: i32,
    pub name: String,
}

/// The fields that a template may show. An interval has no calendar.
struct Fields {
    year: i64,
    month: i32,
    day: i32,
    hour: i64,
    minute: i32,
    second: i32,
    micros: i32,
    day_of_year: i32,
    /// Days since 2000-01-01; `None` for an interval.
    days: Option<i32>,
    zone: Option<Zone>,
}

pub fn timestamp(c: &Civil, zone: Option<Zone>, template: &str) -> String {
    let f = Fields {
        year: c.year.into(),
        month: c.month,
        day: c.day,
        hour: c.hour.into(),
        minute: c.minute,
        second: c.second,
        micros: c.micros,
        day_of_year: day_of_year(c.year, c.month, c.day),
        days: Some(c.days() as i32),
        zone,
    };
    // A field that only an interval lacks cannot fail here.
    print(&f, template).unwrap_or_default()
}

/// Errors: 22007 for fields that need a calendar.
pub fn interval(i: &Interval, template: &str) -> Result<String, SqlError> {
    let rest = i.micros % USECS_PER_HOUR;
    let f = Fields {
        year: i64::from(i.months / 12),
        month: i.months % 12,
        day: i.days,
        hour: i.micros / USECS_PER_HOUR,
        minute: (rest / USECS_PER_MINUTE) as i32,
        second: (rest % USECS_PER_MINUTE / USECS_PER_SEC) as i32,
        micros: (rest % USECS_PER_SEC) as i32,
        day_of_year: i.months.saturating_mul(30).saturating_add(i.days),
        days: None,
        zone: None,
    };
    print(&f, template)
}

/// Digits padded with zeros; the sign takes a place of its own.
fn padded(v: i64, width: usize, fill: bool) -> String {
    if fill {
        return v.to_string();
    }
    let width = if v < 0 { width + 1 } else { width };
    format!("{v:0width$}")
}

/// A name in the field's spelling: capitals, small letters or as it is.
fn cased(name: &str, key: &str) -> String {
    let b = key.as_bytes();
    if b[0].is_ascii_lowercase() {
        name.to_ascii_lowercase()
    } else if b.get(1).is_some_and(u8::is_ascii_lowercase) {
        name.to_owned()
    } else {
        name.to_ascii_uppercase()
    }
}

fn print(f: &Fields, template: &str) -> Result<String, SqlError> {
    let mut out = String::new();
    for node in split(template) {
        match node {
            Node::Char(c) | Node::Separator(c) | Node::Space(c) => out.push(c),
            Node::Field { key, fill, translate, ordinal: suffix } => {
                let (text, number) = field(f, key, fill, translate)?;
                out.push_str(&text);
                if let (Some(upper), true) = (suffix, number) {
                    out.push_str(ordinal(&text, upper));
                }
            }
        }
    }
    Ok(out)
}

/// A field's text, and whether it is a number that takes an ordinal suffix.
fn field(f: &Fields, key: &str, fill: bool, translate: bool) -> Result<(String, bool), SqlError> {
    let calendar = || {
        f.days.ok_or_else(|| {
            SqlError::new(state::INVALID_DATETIME_FORMAT, "invalid format specification for an interval value")
                .with_hint("Intervals are not tied to specific calendar dates.")
        })
    };
    let name = |full: &str, width: usize, key: &str| {
        let text = cased(full, key);
        if fill || translate {
            text
        } else {
            format!("{text:width$}")
        }
    };
    let num = |v: i64, width: usize| Ok((padded(v, width, fill), true));
    // In some fields the sign takes one of the places.
    let narrow = |v: i64, width: usize| Ok((if fill { v.to_string() } else { format!("{v:0width$}") }, true));
    // An interval's fields taken for a date, as Postgres does for weeks.
    let days_of = || f.days.unwrap_or_else(|| (interval_julian(f) - i64::from(repr::datetime::calendar::EPOCH_JULIAN)) as i32);
    // Years as shown: 1 BC is 0 inside.
    let shown = |y: i64| if f.days.is_some() && y <= 0 { 1 - y } else { y };
    let lower = key.to_ascii_lowercase();
    match lower.as_str() {
        "am" | "pm" | "a.m." | "p.m." => {
            let pm = f.hour.rem_euclid(24) >= 12 && f.hour >= 0;
            let text = match (lower.contains('.'), pm) {
                (true, true) => "P.M.",
                (true, false) => "A.M.",
                (false, true) => "PM",
                (false, false) => "AM",
            };
            Ok((if key.starts_with(char::is_lowercase) { text.to_lowercase() } else { text.into() }, false))
        }
        "ad" | "bc" | "a.d." | "b.c." => {
            calendar()?;
            let text = match (lower.contains('.'), f.year <= 0) {
                (true, true) => "B.C.",
                (true, false) => "A.D.",
                (false, true) => "BC",
                (false, false) => "AD",
            };
            Ok((if key.starts_with(char::is_lowercase) { text.to_lowercase() } else { text.into() }, false))
        }
        "hh" | "hh12" => {
            let h = f.hour % 12;
            let width = if f.hour < 0 && h == 0 { 3 } else { 2 };
            num(if h == 0 { 12 } else { h }, width)
        }
        "hh24" => num(f.hour, 2),
        "mi" => num(f.minute.into(), 2),
        "ss" => num(f.second.into(), 2),
        "ff1" | "ff2" | "ff3" | "ff4" | "ff5" | "ff6" | "ms" | "us" => {
            let digits = match lower.as_str() {
                "ms" => 3,
                "us" => 6,
                ff => usize::from(ff.as_bytes()[2] - b'0'),
            };
            let v = f.micros / 10i32.pow(6 - digits as u32);
            Ok((format!("{v:0digits$}"), true))
        }
        "sssss" | "ssss" => Ok(((f.hour * 3600 + i64::from(f.minute) * 60 + i64::from(f.second)).to_string(), true)),
        "tz" => {
            calendar()?;
            let zone = f.zone.as_ref().map_or("", |z| &z.name);
            Ok((if key == "tz" { zone.to_lowercase() } else { zone.to_uppercase() }, false))
        }
        "tzh" | "tzm" | "of" => {
            calendar()?;
            let east = f.zone.as_ref().map_or(0, |z| z.east_secs);
            let (sign, hours, minutes) = (if east < 0 { '-' } else { '+' }, east.abs() / 3600, east.abs() % 3600 / 60);
            let text = match lower.as_str() {
                "tzh" => format!("{sign}{hours:02}"),
                "tzm" => format!("{minutes:02}"),
                _ => {
                    let mut t = if fill { format!("{sign}{hours}") } else { format!("{sign}{hours:02}") };
                    if minutes != 0 {
                        let _ = write!(t, ":{minutes:02}");
                    }
                    t
                }
            };
            Ok((text, false))
        }
        "month" | "mon" => {
            calendar()?;
            let full = MONTHS[(f.month - 1).clamp(0, 11) as usize];
            Ok((if lower == "mon" { cased(&full[..3], key) } else { name(full, 9, key) }, false))
        }
        "day" | "dy" => {
            let full = DAYS[weekday(calendar()?) as usize];
            Ok((if lower == "dy" { cased(&full[..3], key) } else { name(full, 9, key) }, false))
        }
        "mm" => num(f.month.into(), 2),
        "ddd" => narrow(f.day_of_year.into(), 3),
        "iddd" => {
            let days = days_of();
            let (year, _) = iso_week(days);
            narrow(i64::from(days) - iso_week_start(year, 1) + 1, 3)
        }
        "dd" => narrow(f.day.into(), 2),
        "d" => Ok(((weekday(calendar()?) + 1).to_string(), true)),
        "id" => {
            let d = weekday(calendar()?);
            Ok((if d == 0 { 7 } else { d }.to_string(), true))
        }
        "ww" => narrow(i64::from((f.day_of_year - 1) / 7 + 1), 2),
        "iw" => narrow(iso_week(days_of()).1.into(), 2),
        "q" => Ok(if f.month == 0 { (String::new(), false) } else { (((f.month - 1) / 3 + 1).to_string(), true) }),
        "cc" => {
            let c = match f.days {
                None => f.year / 100,
                Some(_) if f.year > 0 => (f.year - 1) / 100 + 1,
                Some(_) => f.year / 100 - 1,
            };
            num(c, 2)
        }
        "y,yyy" => {
            let y = shown(f.year);
            Ok((format!("{},{:03}", y / 1000, y % 1000), true))
        }
        "yyyy" => num(shown(f.year), 4),
        "yyy" => num(shown(f.year) % 1000, 3),
        "yy" => num(shown(f.year) % 100, 2),
        "y" => num(shown(f.year) % 10, 1),
        "iyyy" | "iyy" | "iy" | "i" => {
            let y = shown(iso_week(days_of()).0.into());
            // Room for a sign is made by the sign of the calendar year, which an interval's ISO year need not have.
            let less = usize::from(y < 0 && f.year >= 0);
            match lower.len() {
                4 => num(y, 4 - less),
                3 => num(y % 1000, 3 - less),
                2 => num(y % 100, 2 - less),
                _ => num(y % 10, 1 - less),
            }
        }
        "rm" => {
            if f.month == 0 && f.year == 0 {
                return Ok((String::new(), false));
            }
            let i = match f.month {
                0 if f.year >= 0 => 11,
                0 => 0,
                // Months before the year's start count back from XII.
                m if m < 0 => 12 + m,
                m => m - 1,
            };
            let text = ROMAN[i.clamp(0, 11) as usize];
            let text = if key == "rm" { text.to_lowercase() } else { text.to_owned() };
            Ok((if fill { text } else { format!("{text:4}") }, false))
        }
        "w" => Ok((((f.day - 1) / 7 + 1).to_string(), true)),
        "j" => {
            let days = match f.days {
                Some(d) => julian(d),
                None => interval_julian(f),
            };
            Ok((days.to_string(), true))
        }
        // FX
        _ => Ok((String::new(), false)),
    }
}

/// The Julian day of an interval's year, month and day, by the formula that takes any.
fn interval_julian(f: &Fields) -> i64 {
    let (month, year) = if f.month > 2 { (f.month + 1, f.year + 4800) } else { (f.month + 13, f.year + 4799) };
    year * 365 - 32_167 + year / 4 - year / 100 + year / 400 + i64::from(7834 * month / 256) + i64::from(f.day)
}
