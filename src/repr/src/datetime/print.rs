//! Dates and times to text, in the four DateStyles.

use super::calendar::*;
use super::zone::TimeZone;
use crate::style::{DateFormat, DateOrder, DateStyle};
use crate::value::TimeTz;
use std::fmt::Write;

const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
const DAYS: [&str; 7] = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];

/// A point and the digits of a second's fraction, trailing zeros cut; nothing for 0.
pub(crate) fn put_fraction(micros: u64, out: &mut String) {
    if micros == 0 {
        return;
    }
    let (mut v, mut width) = (micros, 6);
    while v % 10 == 0 {
        v /= 10;
        width -= 1;
    }
    let _ = write!(out, ".{v:0width$}");
}

fn put_clock(c: &Civil, out: &mut String) {
    let _ = write!(out, "{:02}:{:02}:{:02}", c.hour, c.minute, c.second);
    put_fraction(c.micros as u64, out);
}

/// The year as shown: 1 BC is astronomical 0.
fn shown_year(year: i32) -> i32 {
    if year > 0 {
        year
    } else {
        1 - year
    }
}

fn put_era(year: i32, out: &mut String) {
    if year <= 0 {
        out.push_str(" BC");
    }
}

/// `+hh[:mm[:ss]]`.
pub fn put_offset(east: i32, always_minutes: bool, out: &mut String) {
    let a = east.abs();
    let _ = write!(out, "{}{:02}", if east < 0 { '-' } else { '+' }, a / 3600);
    if a % 3600 != 0 || always_minutes {
        let _ = write!(out, ":{:02}", a / 60 % 60);
    }
    if a % 60 != 0 {
        let _ = write!(out, ":{:02}", a % 60);
    }
}

/// A date, `infinity` included.
pub fn print_date(days: i32, style: DateStyle, out: &mut String) {
    match days {
        DATE_POS_INF => return out.push_str("infinity"),
        DATE_NEG_INF => return out.push_str("-infinity"),
        _ => {}
    }
    let c = Civil::from_date(days);
    put_ymd(&c, style, out);
    put_era(c.year, out);
}

fn put_ymd(c: &Civil, style: DateStyle, out: &mut String) {
    let y = shown_year(c.year);
    let _ = match (style.format, style.order) {
        (DateFormat::Iso, _) => write!(out, "{y:04}-{:02}-{:02}", c.month, c.day),
        (DateFormat::Sql, DateOrder::Dmy) => write!(out, "{:02}/{:02}/{y:04}", c.day, c.month),
        (DateFormat::Sql, _) => write!(out, "{:02}/{:02}/{y:04}", c.month, c.day),
        (DateFormat::German, _) => write!(out, "{:02}.{:02}.{y:04}", c.day, c.month),
        (DateFormat::Postgres, DateOrder::Dmy) => write!(out, "{:02}-{:02}-{y:04}", c.day, c.month),
        (DateFormat::Postgres, _) => write!(out, "{:02}-{:02}-{y:04}", c.month, c.day),
    };
}

pub fn print_time(micros: i64, out: &mut String) {
    let mut c = Civil::default();
    c.set_time(micros);
    put_clock(&c, out);
}

pub fn print_timetz(t: TimeTz, out: &mut String) {
    print_time(t.micros, out);
    put_offset(-t.zone_secs, false, out);
}

/// A timestamp without zone.
pub fn print_timestamp(micros: i64, style: DateStyle, out: &mut String) {
    print_parts(micros, None, style, out);
}

/// An instant as the zone's clocks show it.
pub fn print_timestamptz(utc: i64, zone: &TimeZone, style: DateStyle, out: &mut String) {
    print_parts(utc, Some(zone), style, out);
}

fn print_parts(micros: i64, zone: Option<&TimeZone>, style: DateStyle, out: &mut String) {
    match micros {
        TS_POS_INF => return out.push_str("infinity"),
        TS_NEG_INF => return out.push_str("-infinity"),
        _ => {}
    }
    let east = zone.map_or(0, |z| z.offset_at(micros));
    let c = Civil::from_micros(micros.saturating_add(i64::from(east) * USECS_PER_SEC));
    // An abbreviation where the style shows one and the zone has one, else the offset.
    let abbreviation = || zone.and_then(|z| z.abbreviation_at(micros));
    match style.format {
        DateFormat::Iso => {
            put_ymd(&c, style, out);
            out.push(' ');
            put_clock(&c, out);
            if zone.is_some() {
                put_offset(east, false, out);
            }
        }
        DateFormat::Sql | DateFormat::German => {
            put_ymd(&c, style, out);
            out.push(' ');
            put_clock(&c, out);
            if zone.is_some() {
                match abbreviation() {
                    Some(a) => {
                        let _ = write!(out, " {a}");
                    }
                    None => put_offset(east, false, out),
                }
            }
        }
        DateFormat::Postgres => {
            let days = c.days();
            out.push_str(DAYS[weekday(days as i32) as usize]);
            let month = MONTHS[(c.month - 1) as usize];
            let _ = match style.order {
                DateOrder::Dmy => write!(out, " {:02} {month} ", c.day),
                _ => write!(out, " {month} {:02} ", c.day),
            };
            put_clock(&c, out);
            let _ = write!(out, " {:04}", shown_year(c.year));
            if zone.is_some() {
                match abbreviation() {
                    Some(a) => {
                        let _ = write!(out, " {a}");
                    }
                    None => {
                        out.push(' ');
                        put_offset(east, false, out);
                    }
                }
            }
        }
    }
    put_era(c.year, out);
}
