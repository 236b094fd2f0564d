//! Time zones: IANA rules, fixed offsets, POSIX forms.
//!
//! Offsets are seconds **east** of UTC. Local times that do not exist take the offset before the gap, those that
//! occur twice the later (standard) one, as Postgres does. Rules are followed beyond their tables by mapping far
//! years to near ones with the same calendar.

use super::abbrev::{self, Abbrev};
use super::calendar::{days_from_civil, days_in_month, is_leap, weekday, Civil, USECS_PER_DAY, USECS_PER_SEC};
use chrono::{DateTime, Offset, TimeZone as _};
use chrono_tz::{OffsetName, Tz};

/// A time zone as `SET timezone` and `AT TIME ZONE` take it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TimeZone {
    Named(Tz),
    /// Seconds east of UTC, and the name that is shown.
    Fixed(i32, Box<str>),
    /// Standard and daylight saving time by rules of its own: `CET-1CEST,M3.5.0,M10.5.0/3`.
    Posix(Box<Posix>),
}

/// A POSIX zone with daylight saving time. Offsets are seconds east; a rule's time is seconds of that day.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Posix {
    text: String,
    standard: (String, i32),
    saving: (String, i32),
    start: (RuleDay, i32),
    end: (RuleDay, i32),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RuleDay {
    /// Month, week (5: the last), weekday.
    Month(i32, i32, i32),
    /// Day of the year from 1, 29 February never counted.
    Julian(i32),
    /// Day of the year from 0.
    Day(i32),
}

impl RuleDay {
    /// Days since 2000-01-01.
    fn in_year(self, year: i32) -> i64 {
        let first = days_from_civil(year.into(), 1, 1);
        match self {
            RuleDay::Day(n) => first + i64::from(n),
            RuleDay::Julian(n) => first + i64::from(n) - 1 + i64::from(is_leap(year) && n >= 60),
            RuleDay::Month(m, week, day) => {
                let first = days_from_civil(year.into(), m.into(), 1);
                let mut at = first + i64::from((day - weekday(first as i32)).rem_euclid(7)) + 7 * i64::from(week - 1);
                while at >= first + i64::from(days_in_month(year, m)) {
                    at -= 7;
                }
                at
            }
        }
    }
}

impl Posix {
    fn saves_at(&self, utc_micros: i64) -> bool {
        let year = Civil::from_micros(utc_micros.saturating_add(i64::from(self.standard.1) * USECS_PER_SEC)).year;
        let at = |(day, time): (RuleDay, i32), east: i32| day.in_year(year) * USECS_PER_DAY + i64::from(time - east) * USECS_PER_SEC;
        let (start, end) = (at(self.start, self.standard.1), at(self.end, self.saving.1));
        if start < end {
            (start..end).contains(&utc_micros)
        } else {
            !(end..start).contains(&utc_micros)
        }
    }
    fn at(&self, utc_micros: i64) -> &(String, i32) {
        if self.saves_at(utc_micros) {
            &self.saving
        } else {
            &self.standard
        }
    }
}

impl TimeZone {
    pub const UTC: TimeZone = TimeZone::Named(Tz::UTC);

    /// What `SET timezone` takes: a number of hours **east**, else [`TimeZone::named`].
    pub fn parse(name: &str) -> Option<TimeZone> {
        let name = name.trim();
        if name.eq_ignore_ascii_case("default") || name.eq_ignore_ascii_case("local") {
            return Some(TimeZone::UTC);
        }
        if let Some(hours) = name.parse::<f64>().ok().filter(|h| h.is_finite() && h.abs() < 168.0) {
            return Some(TimeZone::fixed((hours * 3600.0) as i32));
        }
        TimeZone::named(name)
    }

    /// A zone by IANA name (in any case) or POSIX form (`EST5`, `<+03>-03`, `+05:30`, `PST8PDT,M3.2.0,M11.1.0`), whose offsets count
    /// **west**: what `AT TIME ZONE` and dates name.
    pub fn named(name: &str) -> Option<TimeZone> {
        if let Ok(tz) = name.parse::<Tz>() {
            return Some(TimeZone::Named(tz));
        }
        match chrono_tz::TZ_VARIANTS.iter().find(|t| t.name().eq_ignore_ascii_case(name)) {
            Some(tz) => Some(TimeZone::Named(*tz)),
            None => parse_posix(name),
        }
    }

    /// What `AT TIME ZONE` accepts: an abbreviation, else [`TimeZone::named`].
    pub fn parse_any(name: &str) -> Option<TimeZone> {
        let lower = name.to_ascii_lowercase();
        match abbrev::lookup(&lower) {
            Some(Abbrev::Fixed(east)) => Some(TimeZone::Fixed(east, name.to_ascii_uppercase().into())),
            Some(Abbrev::Zone(z)) => z.parse::<Tz>().ok().map(TimeZone::Named),
            None => TimeZone::named(name),
        }
    }

    /// A fixed offset, named as Postgres names it: `<+05:30>-05:30`.
    pub fn fixed(east_secs: i32) -> TimeZone {
        let show = |secs: i32, sign: char| {
            let a = secs.abs();
            let mut s = format!("{sign}{:02}", a / 3600);
            if a % 3600 != 0 {
                s.push_str(&format!(":{:02}", a / 60 % 60));
            }
            if a % 60 != 0 {
                s.push_str(&format!(":{:02}", a % 60));
            }
            s
        };
        let (a, b) = if east_secs < 0 { ('-', '+') } else { ('+', '-') };
        TimeZone::Fixed(east_secs, format!("<{}>{}", show(east_secs, a), show(east_secs, b)).into())
    }

    /// The name that `SHOW timezone` prints.
    pub fn name(&self) -> &str {
        match self {
            TimeZone::Named(tz) => tz.name(),
            TimeZone::Fixed(_, name) => name,
            TimeZone::Posix(p) => &p.text,
        }
    }

    /// The offset in force at an instant, in microseconds since 2000-01-01 UTC.
    pub fn offset_at(&self, utc_micros: i64) -> i32 {
        match self {
            TimeZone::Fixed(east, _) => *east,
            TimeZone::Posix(p) => p.at(utc_micros).1,
            TimeZone::Named(Tz::UTC) => 0,
            TimeZone::Named(tz) => {
                let t = chrono_utc(near(utc_micros));
                tz.offset_from_utc_datetime(&t).fix().local_minus_utc()
            }
        }
    }

    /// The abbreviation in force at an instant (`PST`), if the zone has one.
    pub fn abbreviation_at(&self, utc_micros: i64) -> Option<String> {
        match self {
            TimeZone::Fixed(_, name) => posix_name(name).map(|n| n.0.to_owned()),
            TimeZone::Posix(p) => Some(p.at(utc_micros).0.clone()),
            TimeZone::Named(tz) => {
                let t = chrono_utc(near(utc_micros));
                // Zones without letters are told by their offset: +1030, -03.
                let numeric = || {
                    let east = self.offset_at(utc_micros);
                    let (sign, minutes) = (if east < 0 { '-' } else { '+' }, east.abs() / 60);
                    let rest = if minutes % 60 == 0 { String::new() } else { format!("{:02}", minutes % 60) };
                    format!("{sign}{:02}{rest}", minutes / 60)
                };
                Some(tz.offset_from_utc_datetime(&t).abbreviation().map_or_else(numeric, str::to_owned))
            }
        }
    }

    /// The offset that a local time has (microseconds since 2000-01-01, local).
    pub fn offset_of_local(&self, local_micros: i64) -> i32 {
        let tz = match self {
            TimeZone::Fixed(east, _) => return *east,
            TimeZone::Posix(p) => {
                // Standard time where it may be either, or neither.
                let saving = local_micros.saturating_sub(i64::from(p.saving.1) * USECS_PER_SEC);
                let standard = local_micros.saturating_sub(i64::from(p.standard.1) * USECS_PER_SEC);
                return if p.saves_at(standard) && p.saves_at(saving) { p.saving.1 } else { p.standard.1 };
            }
            TimeZone::Named(tz) => tz,
        };
        if *tz == Tz::UTC {
            return 0;
        }
        let t = chrono_utc(near(local_micros));
        match tz.offset_from_local_datetime(&t) {
            chrono::LocalResult::Single(o) => o.fix().local_minus_utc(),
            chrono::LocalResult::Ambiguous(a, b) => a.fix().local_minus_utc().min(b.fix().local_minus_utc()),
            // In a gap: the offset of the day before.
            chrono::LocalResult::None => self.offset_at(local_micros - USECS_PER_DAY),
        }
    }

    /// Whether the zone has had one offset at all times.
    pub fn is_constant(&self) -> bool {
        // Days since 2000 in 1830 and around each time at which zones were set up or changed.
        let first = self.offset_at(-62_000 * USECS_PER_DAY);
        (-40_000..10_000).step_by(91).all(|d| self.offset_at(d * USECS_PER_DAY) == first)
    }

    /// Local microseconds of an instant. Infinities stay.
    pub fn to_local(&self, utc_micros: i64) -> i64 {
        if utc_micros == i64::MIN || utc_micros == i64::MAX {
            return utc_micros;
        }
        utc_micros.saturating_add(i64::from(self.offset_at(utc_micros)) * USECS_PER_SEC)
    }

    /// The instant of a local time. Infinities stay.
    pub fn to_utc(&self, local_micros: i64) -> i64 {
        if local_micros == i64::MIN || local_micros == i64::MAX {
            return local_micros;
        }
        local_micros.saturating_sub(i64::from(self.offset_of_local(local_micros)) * USECS_PER_SEC)
    }

    /// The offset of an abbreviation at a local time.
    pub fn abbrev_offset(abbrev: Abbrev, name_lower: &str, local_micros: i64) -> i32 {
        match abbrev {
            Abbrev::Fixed(east) => east,
            Abbrev::Zone(z) => {
                let Some(zone) = TimeZone::named(z) else { return 0 };
                // The abbreviation picks among the offsets near that time; if none bears it, the local time's own is taken.
                let around = [0i64, -12, 12].map(|h| {
                    local_micros.saturating_sub(i64::from(zone.offset_of_local(local_micros)) * USECS_PER_SEC).saturating_add(h * 3600 * USECS_PER_SEC)
                });
                for t in around {
                    if zone.abbreviation_at(t).is_some_and(|a| a.eq_ignore_ascii_case(name_lower)) {
                        return zone.offset_at(t);
                    }
                }
                zone.offset_of_local(local_micros)
            }
        }
    }
}

/// Maps years after 2065 to one of 2038..=2065 with the same calendar, so that rules go on; very early ones to a year that chrono has.
fn near(micros: i64) -> i64 {
    const FIRST_MAPPED: i64 = 24_107 * USECS_PER_DAY; // 2066-01-01; the tables end with 2100
    const EARLY: i64 = -80_000_000 * USECS_PER_DAY / 1000;
    if micros < FIRST_MAPPED {
        return micros.max(EARLY);
    }
    let c = Civil::from_micros(micros);
    let first = |y: i32| days_from_civil(y.into(), 1, 1);
    let (leap, dow) = (is_leap(c.year), weekday(first(c.year) as i32));
    let year = (2038..=2065).find(|y| is_leap(*y) == leap && weekday(first(*y) as i32) == dow).unwrap_or(2065);
    micros - (first(c.year) - first(year)) * USECS_PER_DAY
}

fn chrono_utc(micros: i64) -> chrono::NaiveDateTime {
    let unix = micros.saturating_add(946_684_800 * USECS_PER_SEC);
    DateTime::from_timestamp(unix.div_euclid(USECS_PER_SEC), 0).map_or(DateTime::UNIX_EPOCH, |d| d).naive_utc()
}

/// `hh[:mm[:ss]]` in seconds.
fn parse_hms(s: &str) -> Option<i32> {
    let mut total = 0;
    let mut unit = 3600;
    for part in s.split(':') {
        if unit == 0 || part.is_empty() || part.len() > 3 || !part.bytes().all(|b| b.is_ascii_digit()) {
            return None;
        }
        let n: i32 = part.parse().ok()?;
        if (unit == 3600 && n > 167) || (unit < 3600 && n > 59) {
            return None;
        }
        total += n * unit;
        unit /= 60;
    }
    Some(total)
}

/// A POSIX zone's name, which may be empty, and what follows.
fn posix_name(s: &str) -> Option<(&str, &str)> {
    match s.strip_prefix('<') {
        Some(r) => r.split_once('>'),
        None => Some(s.split_at(s.find(|c: char| c.is_ascii_digit() || matches!(c, ',' | '-' | '+')).unwrap_or(s.len()))),
    }
}

/// Splits off a signed `hh[:mm[:ss]]`, in seconds.
fn posix_time(s: &str) -> Option<(i32, &str)> {
    let (sign, rest) = match s.as_bytes().first()? {
        b'-' => (-1, &s[1..]),
        b'+' => (1, &s[1..]),
        _ => (1, s),
    };
    let (time, rest) = rest.split_at(rest.find(|c: char| !c.is_ascii_digit() && c != ':').unwrap_or(rest.len()));
    Some((sign * parse_hms(time)?, rest))
}

/// A rule's day and time: `M3.2.0/2`, `J60`, `59`.
fn posix_rule(s: &str) -> Option<(RuleDay, i32)> {
    let (day, time) = match s.split_once('/') {
        Some((day, time)) => (day, posix_time(time).filter(|t| t.1.is_empty())?.0),
        None => (s, 7200),
    };
    let number = |s: &str, range: std::ops::RangeInclusive<i32>| s.parse::<i32>().ok().filter(|n| range.contains(n));
    let day = match (day.strip_prefix('M'), day.strip_prefix('J')) {
        (Some(m), _) => {
            let mut parts = m.splitn(3, '.');
            RuleDay::Month(number(parts.next()?, 1..=12)?, number(parts.next()?, 1..=5)?, number(parts.next()?, 0..=6)?)
        }
        (_, Some(n)) => RuleDay::Julian(number(n, 1..=365)?),
        _ => RuleDay::Day(number(day, 0..=365)?),
    };
    Some((day, time))
}

/// POSIX: a name, then the offset **west**, then perhaps daylight saving time: `<+03>-03`, `ABC3`, `ABC3DEF`, `ABC3DEF,M3.5.0,M10.5.0`.
/// Without rules those of the United States hold.
fn parse_posix(s: &str) -> Option<TimeZone> {
    let (name, rest) = posix_name(s)?;
    let (west, rest) = posix_time(rest)?;
    if rest.is_empty() {
        return Some(TimeZone::Fixed(-west, s.into()));
    }
    let (saving, rest) = posix_name(rest).filter(|n| !n.0.is_empty())?;
    let (saving_west, rest) = match rest.as_bytes().first() {
        None | Some(b',') => (west - 3600, rest),
        _ => posix_time(rest)?,
    };
    let (start, end) = if rest.is_empty() { "M3.2.0,M11.1.0" } else { rest.strip_prefix(',')? }.split_once(',')?;
    Some(TimeZone::Posix(Box::new(Posix {
        text: s.to_owned(),
        standard: (name.to_owned(), -west),
        saving: (saving.to_owned(), -saving_west),
        start: posix_rule(start)?,
        end: posix_rule(end)?,
    })))
}
