//! Time zones: IANA rules, fixed offsets, POSIX forms.
//!
//! Offsets are seconds **east** of UTC. Local times that do not exist take the offset before the gap, those that
//! occur twice the later (standard) one, as Postgres does. Rules are followed beyond their tables by mapping far
//! years to near ones with the same calendar.

use super::abbrev::{self, Abbrev};
use super::calendar::{days_from_civil, is_leap, weekday, Civil, USECS_PER_DAY, USECS_PER_SEC};
use chrono::{DateTime, Offset, TimeZone as _};
use chrono_tz::{OffsetName, Tz};

/// A time zone as `SET timezone` and `AT TIME ZONE` take it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TimeZone {
    Named(Tz),
    /// Seconds east of UTC, and the name that is shown.
    Fixed(i32, Box<str>),
}

impl TimeZone {
    pub const UTC: TimeZone = TimeZone::Named(Tz::UTC);

    /// A zone by IANA name (in any case), POSIX form (`EST5`, `<+03>-03`, `UTC+3`) or offset (`-7`, `+05:30`; an unsigned or signed
    /// number counts hours east).
    pub fn parse(name: &str) -> Option<TimeZone> {
        let name = name.trim();
        if let Ok(tz) = name.parse::<Tz>() {
            return Some(TimeZone::Named(tz));
        }
        if let Some(tz) = chrono_tz::TZ_VARIANTS.iter().find(|t| t.name().eq_ignore_ascii_case(name)) {
            return Some(TimeZone::Named(*tz));
        }
        if name.eq_ignore_ascii_case("default") || name.eq_ignore_ascii_case("local") {
            return Some(TimeZone::UTC);
        }
        if let Some(hours) = name.parse::<f64>().ok().filter(|h| h.is_finite() && h.abs() < 168.0) {
            return Some(TimeZone::fixed((hours * 3600.0) as i32));
        }
        if name.starts_with(['+', '-']) {
            return parse_hms(&name[1..]).map(|s| TimeZone::fixed(if name.starts_with('-') { -s } else { s }));
        }
        parse_posix(name)
    }

    /// A zone by IANA name (in any case) or POSIX form, whose offsets count **west**: what `AT TIME ZONE` and dates name.
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
        }
    }

    /// The offset in force at an instant, in microseconds since 2000-01-01 UTC.
    pub fn offset_at(&self, utc_micros: i64) -> i32 {
        match self {
            TimeZone::Fixed(east, _) => *east,
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
            TimeZone::Fixed(_, name) => name.strip_prefix('<').and_then(|n| n.split('>').next()).or(Some(name)).map(str::to_owned),
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
        let TimeZone::Named(tz) = self else { return self.offset_at(0) };
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

/// POSIX: a name, then the offset **west**; `<+03>-03` or `ABC3` or `ABC3DEF` without rules of its own.
fn parse_posix(s: &str) -> Option<TimeZone> {
    let (_, rest) = match s.strip_prefix('<') {
        Some(r) => r.split_once('>')?,
        None => s.split_at(s.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(s.len())),
    };
    if rest.is_empty() {
        return None;
    }
    let (sign, digits) = match rest.as_bytes()[0] {
        b'-' => (1, &rest[1..]),
        b'+' => (-1, &rest[1..]),
        _ => (-1, rest),
    };
    Some(TimeZone::Fixed(sign * parse_hms(digits)?, s.into()))
}
