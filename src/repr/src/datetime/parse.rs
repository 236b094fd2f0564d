//! Dates and times from text, in all forms that Postgres reads.
//!
//! A text is cut into fields (`token`); each field claims parts of a date (year, month, day, time, zone), none twice. What a lone number
//! is depends on what is known so far and on DateStyle's order. Special words: `now`, `today`, `tomorrow`, `yesterday`, `epoch`,
//! `infinity`, `allballs`. Errors: 22007 for a form, 22008 for a value out of range, 22009 for a zone's offset.
//! Not here: intervals (`interval`), printing (`print`).

use super::abbrev::{self, Abbrev};
use super::calendar::*;
use super::token::{self, Field, Kind, Part, Word};
use super::zone::TimeZone;
use crate::error::{state, SqlError};
use crate::style::{DateOrder, TextStyle};
use crate::value::TimeTz;

/// Why a text is no date, time or interval.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    Format,
    Range,
    /// A month or day out of range: perhaps another DateStyle was meant.
    MonthDay,
    IntervalRange,
    ZoneRange,
    UnknownZone(String),
    /// `now` and its kin where no time is given.
    NoNow,
}

impl Fault {
    /// The error Postgres raises for `text` read as `ty`.
    pub fn error(self, text: &str, ty: &str) -> SqlError {
        let range = || SqlError::new(state::DATETIME_FIELD_OVERFLOW, format!("date/time field value out of range: \"{text}\""));
        match self {
            Fault::Format => SqlError::new(state::INVALID_DATETIME_FORMAT, format!("invalid input syntax for type {ty}: \"{text}\"")),
            Fault::Range => range(),
            Fault::MonthDay => range().with_hint("Perhaps you need a different \"datestyle\" setting."),
            Fault::IntervalRange => SqlError::new(state::INTERVAL_FIELD_OVERFLOW, format!("interval field value out of range: \"{text}\"")),
            Fault::ZoneRange => SqlError::new(state::INVALID_TIME_ZONE_DISPLACEMENT, format!("time zone displacement out of range: \"{text}\"")),
            Fault::UnknownZone(z) => SqlError::new(state::INVALID_PARAMETER_VALUE, format!("time zone \"{z}\" not recognized")),
            Fault::NoNow => SqlError::unsupported(
                format!("\"{text}\" here"),
                "in a maintained object, compare now() with an expression over columns in WHERE: a temporal filter",
            ),
        }
    }
}

const YEAR: u32 = 1;
const MONTH: u32 = 2;
const DAY: u32 = 4;
const DATE: u32 = YEAR | MONTH | DAY;
const DOY: u32 = 8;
const TIME: u32 = 16;
const ZONE: u32 = 32;
const DST: u32 = 64;
const WEEKDAY: u32 = 128;
const MERIDIEM: u32 = 256;
const ERA: u32 = 512;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Meridiem {
    Am,
    Pm,
}

/// A zone as the text named it.
#[derive(Clone)]
enum Zone {
    East(i32),
    Abbrev(Abbrev, String),
    Named(TimeZone),
}

/// What the special words stand for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Special {
    Infinity,
    NegInfinity,
    Epoch,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Pending {
    Time,
    Julian,
    Part(Part),
}

struct Parser<'a> {
    style: &'a TextStyle,
    time_only: bool,
    seen: u32,
    civil: Civil,
    year: i64,
    day_of_year: i32,
    two_digits: bool,
    text_month: bool,
    bc: bool,
    julian: bool,
    meridiem: Option<Meridiem>,
    zone: Option<Zone>,
    dst_modifier: bool,
    special: Option<Special>,
    pending: Option<Pending>,
    /// `now` or its kin was read, and no time is known.
    no_now: bool,
}

/// A parsed text, before it becomes a value of one type.
enum Parsed {
    Special(Special),
    /// Fields, whether there is a date, and the zone.
    Fields(Civil, bool, Option<Zone>),
}

fn parse(text: &str, style: &TextStyle, time_only: bool) -> Result<Parsed, Fault> {
    let fields = token::split(text).ok_or(Fault::Format)?;
    let mut p = Parser {
        style,
        time_only,
        seen: 0,
        civil: Civil::default(),
        year: 0,
        day_of_year: 0,
        two_digits: false,
        text_month: false,
        bc: false,
        julian: false,
        meridiem: None,
        zone: None,
        dst_modifier: false,
        special: None,
        pending: None,
        no_now: false,
    };
    for i in 0..fields.len() {
        p.field(&fields, i)?;
    }
    p.finish()
}

impl Parser<'_> {
    /// Takes one field; the parts that it claims must be free.
    fn field(&mut self, fields: &[Field], i: usize) -> Result<(), Fault> {
        let (text, kind) = (&fields[i].0, fields[i].1);
        let got = match kind {
            Kind::Date => self.date_field(fields, i, text)?,
            Kind::Time => {
                if self.pending.take().is_some_and(|p| p != Pending::Time) {
                    return Err(Fault::Format);
                }
                self.time(text)?;
                TIME
            }
            Kind::Tz => {
                self.zone = Some(Zone::East(parse_offset(text)?));
                ZONE
            }
            Kind::Number => self.number_field(fields, i, text)?,
            Kind::Word | Kind::Special => match self.word_field(fields, i, text)? {
                Some(got) => got,
                None => return Ok(()),
            },
        };
        // A second zone may only be the daylight saving modifier's.
        if self.seen & got != 0 {
            return Err(Fault::Format);
        }
        self.seen |= got;
        Ok(())
    }

    fn date_field(&mut self, fields: &[Field], i: usize, text: &str) -> Result<u32, Fault> {
        if self.pending == Some(Pending::Julian) {
            // `J2451187-08:00`: a Julian day and a zone.
            self.pending = None;
            let cut = text.find('-').ok_or(Fault::Format)?;
            self.julian_day(text[..cut].parse().map_err(|_| Fault::Range)?)?;
            self.zone = Some(Zone::East(parse_offset(&text[cut..])?));
            return Ok(DATE | TIME | ZONE);
        }
        let digit = text.as_bytes()[0].is_ascii_digit();
        if self.time_only {
            let date_here = i == 0 && fields.len() >= 2 && (fields[fields.len() - 1].1 == Kind::Date || fields[1].1 == Kind::Time);
            if date_here {
                return self.date(text);
            }
        } else if self.seen & (MONTH | DAY) != MONTH | DAY && self.pending.is_none() {
            return self.date(text);
        }
        if digit || self.pending.is_some() {
            // `hhmmss-zz`: a time run together with a zone.
            if self.pending.take().is_some_and(|p| p != Pending::Time) || self.seen & TIME != 0 {
                return Err(Fault::Format);
            }
            let cut = text.find('-').ok_or(Fault::Format)?;
            self.zone = Some(Zone::East(parse_offset(&text[cut..])?));
            let seen = if self.time_only { self.seen | DATE } else { self.seen };
            return Ok(self.run_together(&text[..cut], seen)? | ZONE);
        }
        let zone = TimeZone::named(text).ok_or_else(|| Fault::UnknownZone(text.to_owned()))?;
        self.zone = Some(Zone::Named(zone));
        Ok(ZONE)
    }

    fn number_field(&mut self, fields: &[Field], i: usize, text: &str) -> Result<u32, Fault> {
        if let Some(p) = self.pending.take() {
            return self.labelled_number(p, text);
        }
        let len = text.len();
        let point = text.find('.');
        if self.time_only {
            return match point {
                Some(_) if i == 0 && fields.len() >= 2 && fields[fields.len() - 1].1 == Kind::Date => self.date(text),
                Some(p) if p > 2 => self.run_together(text, self.seen | DATE),
                Some(_) => Err(Fault::Format),
                None if len > 4 => self.run_together(text, self.seen | DATE),
                None => self.number(text, self.seen | DATE, false),
            };
        }
        match point {
            Some(_) if self.seen & DATE == 0 => self.date(text),
            Some(p) if p > 2 => self.run_together(text, self.seen),
            _ if len >= 6 && (self.seen & DATE == 0 || self.seen & TIME == 0) => self.run_together(text, self.seen),
            _ => self.number(text, self.seen, self.text_month),
        }
    }

    /// A number behind a label: `J2451187`, `T040506`, `y2001`.
    fn labelled_number(&mut self, label: Pending, text: &str) -> Result<u32, Fault> {
        let (whole, fraction) = match text.split_once('.') {
            Some((w, f)) => (w, Some(f)),
            None => (text, None),
        };
        let value: i32 = if whole.is_empty() { 0 } else { whole.parse().map_err(|_| Fault::Range)? };
        let fraction_micros = |f: &str, unit: i64| -> Result<i64, Fault> {
            if f.is_empty() {
                return Ok(0);
            }
            let f: f64 = format!("0.{f}").parse().map_err(|_| Fault::Format)?;
            Ok((f * unit as f64).round_ties_even() as i64)
        };
        match label {
            Pending::Julian => {
                self.julian_day(value)?;
                match fraction {
                    Some(f) => {
                        let t = fraction_micros(f, USECS_PER_DAY)?;
                        self.civil.set_time(t);
                        Ok(DATE | TIME)
                    }
                    None => Ok(DATE),
                }
            }
            Pending::Time => match self.run_together(text, self.seen | DATE)? {
                TIME => Ok(TIME),
                _ => Err(Fault::Format),
            },
            Pending::Part(part) => {
                if fraction.is_some() && part != Part::Second {
                    return Err(Fault::Format);
                }
                // The parts of the time are told apart by the label, so only the last of them claims the time.
                match part {
                    Part::Year => {
                        self.year = value.into();
                        Ok(YEAR)
                    }
                    // `m` after an hour is the minute.
                    Part::Month if self.seen & MONTH != 0 => {
                        self.civil.minute = value;
                        Ok(0)
                    }
                    Part::Month => {
                        self.civil.month = value;
                        Ok(MONTH)
                    }
                    Part::Day => {
                        self.civil.day = value;
                        Ok(DAY)
                    }
                    Part::Hour => {
                        self.civil.hour = value;
                        Ok(0)
                    }
                    Part::Minute => {
                        self.civil.minute = value;
                        Ok(0)
                    }
                    Part::Second => {
                        self.civil.second = value;
                        self.civil.micros = fraction.map_or(Ok(0), |f| fraction_micros(f, USECS_PER_SEC))? as i32;
                        Ok(TIME)
                    }
                    Part::Other => Err(Fault::Format),
                }
            }
        }
    }

    /// A word; `None` if it claims nothing.
    fn word_field(&mut self, fields: &[Field], i: usize, text: &str) -> Result<Option<u32>, Fault> {
        if let Some(a) = abbrev::lookup(text) {
            self.zone = Some(match a {
                Abbrev::Fixed(east) => Zone::East(east),
                Abbrev::Zone(_) => Zone::Abbrev(a, text.to_owned()),
            });
            return Ok(Some(ZONE));
        }
        let Some(word) = token::word(text) else {
            let zone = TimeZone::named(text).filter(|_| text.bytes().all(|b| b.is_ascii_alphabetic())).ok_or(Fault::Format)?;
            self.zone = Some(Zone::Named(zone));
            return Ok(Some(ZONE));
        };
        let got = match word {
            Word::Ignore => return Ok(None),
            Word::Now => {
                let now = self.now();
                let local = self.style.timezone.to_local(now);
                self.zone = Some(Zone::East(self.style.timezone.offset_at(now)));
                if self.time_only {
                    self.civil.set_time(local.rem_euclid(USECS_PER_DAY));
                    // The zone stays free: `now` names only the time.
                    TIME
                } else {
                    self.set_date(local);
                    self.civil.set_time(local.rem_euclid(USECS_PER_DAY));
                    DATE | TIME | ZONE
                }
            }
            Word::Today | Word::Tomorrow | Word::Yesterday if self.time_only => return Err(Fault::Format),
            Word::Today | Word::Tomorrow | Word::Yesterday => {
                let shift = match word {
                    Word::Tomorrow => USECS_PER_DAY,
                    Word::Yesterday => -USECS_PER_DAY,
                    _ => 0,
                };
                let local = self.style.timezone.to_local(self.now());
                self.set_date(local + shift);
                DATE
            }
            Word::Zulu => {
                self.civil.set_time(0);
                self.zone = Some(Zone::East(0));
                TIME | ZONE
            }
            Word::Epoch | Word::Infinity | Word::NegInfinity if self.time_only => return Err(Fault::Format),
            Word::Epoch | Word::Infinity | Word::NegInfinity => {
                self.special = Some(match word {
                    Word::Epoch => Special::Epoch,
                    Word::Infinity => Special::Infinity,
                    _ => Special::NegInfinity,
                });
                DATE | TIME | ZONE
            }
            Word::Month(_) if self.time_only => return Err(Fault::Format),
            Word::Month(m) => {
                // A number taken for the month before was the day.
                let mut got = MONTH;
                if self.seen & MONTH != 0 && !self.text_month && self.seen & DAY == 0 && (1..=31).contains(&self.civil.month) {
                    self.civil.day = self.civil.month;
                    got = DAY;
                }
                self.text_month = true;
                self.civil.month = m;
                got
            }
            Word::Weekday if self.time_only => return Err(Fault::Format),
            Word::Weekday => WEEKDAY,
            Word::Am | Word::Pm => {
                self.meridiem = Some(if word == Word::Am { Meridiem::Am } else { Meridiem::Pm });
                MERIDIEM
            }
            Word::Ad | Word::Bc => {
                self.bc = word == Word::Bc;
                ERA
            }
            Word::DstModifier => {
                self.dst_modifier = true;
                if let Some(Zone::East(e)) = &mut self.zone {
                    *e += 3600;
                }
                DST
            }
            Word::IsoTime => {
                let next_ok = fields.get(i + 1).is_some_and(|f| matches!(f.1, Kind::Number | Kind::Time | Kind::Date));
                if (!self.time_only && self.seen & DATE != DATE) || !next_ok {
                    return Err(Fault::Format);
                }
                self.pending = Some(Pending::Time);
                return Ok(None);
            }
            Word::Julian => {
                self.pending = Some(Pending::Julian);
                return Ok(None);
            }
            Word::Part(_) if self.time_only => return Err(Fault::Format),
            Word::Part(p) => {
                self.pending = Some(Pending::Part(p));
                return Ok(None);
            }
        };
        Ok(Some(got))
    }

    /// The transaction's time. Where there is none, other faults of the text are found first.
    fn now(&mut self) -> i64 {
        self.no_now |= self.style.now_micros.is_none();
        self.style.now_micros.unwrap_or(0)
    }

    fn set_date(&mut self, local_micros: i64) {
        let c = Civil::from_micros(local_micros);
        self.year = if c.year <= 0 { i64::from(1 - c.year) } else { c.year.into() };
        self.bc = c.year <= 0;
        (self.civil.month, self.civil.day) = (c.month, c.day);
    }

    fn julian_day(&mut self, jd: i32) -> Result<(), Fault> {
        if jd < 0 {
            return Err(Fault::Range);
        }
        let (y, m, d) = civil_from_days((i64::from(jd) - i64::from(EPOCH_JULIAN)) as i32);
        self.julian = true;
        self.year = y.into();
        (self.civil.month, self.civil.day) = (m, d);
        Ok(())
    }

    /// A date with delimiters.
    fn date(&mut self, text: &str) -> Result<u32, Fault> {
        let parts: Vec<&str> = split_date(text).ok_or(Fault::Format)?;
        let mut got = 0;
        let mut numbers: Vec<&str> = Vec::new();
        let mut text_month = false;
        // Words first, since they are unambiguous months.
        for p in parts {
            if p.as_bytes()[0].is_ascii_digit() {
                numbers.push(p);
                continue;
            }
            match token::word(p) {
                Some(Word::Ignore) => {}
                Some(Word::Month(m)) if (self.seen | got) & MONTH == 0 => {
                    self.civil.month = m;
                    text_month = true;
                    got |= MONTH;
                }
                _ => return Err(Fault::Format),
            }
        }
        for n in numbers {
            let part = self.number(n, self.seen | got, text_month)?;
            if (self.seen | got) & part != 0 {
                return Err(Fault::Format);
            }
            got |= part;
        }
        match (self.seen | got) & !(DOY | ZONE) == DATE {
            true => Ok(got),
            false => Err(Fault::Format),
        }
    }

    /// A lone number: which part it is follows from what is known.
    fn number(&mut self, text: &str, seen: u32, text_month: bool) -> Result<u32, Fault> {
        let (whole, fraction) = match text.split_once('.') {
            Some((w, f)) => (w, Some(f)),
            None => (text, None),
        };
        if whole.is_empty() || !whole.bytes().all(|b| b.is_ascii_digit()) {
            return Err(Fault::Format);
        }
        if let Some(f) = fraction {
            if whole.len() > 2 {
                return self.run_together(text, seen | DATE);
            }
            self.civil.micros = fraction_of_second(f)?;
        }
        let value: i32 = whole.parse().map_err(|_| Fault::Range)?;
        let len = text.len();
        if len == 3 && seen & DATE == YEAR && (1..=366).contains(&value) {
            self.day_of_year = value;
            return Ok(DOY | MONTH | DAY);
        }
        let ymd = self.style.date_style.order == DateOrder::Ymd;
        let part = match (seen & DATE, text_month) {
            (0, _) if len >= 3 || ymd => YEAR,
            (0, _) if self.style.date_style.order == DateOrder::Dmy => DAY,
            (0, _) => MONTH,
            (YEAR, _) => MONTH,
            (MONTH, true) if len >= 3 || ymd => YEAR,
            (MONTH, _) => DAY,
            (x, true) if x == YEAR | MONTH && len >= 3 && self.two_digits => {
                // The first number was the day after all.
                self.civil.day = self.year as i32;
                self.year = value.into();
                self.two_digits = false;
                return Ok(DAY);
            }
            (x, _) if x == YEAR | MONTH => DAY,
            (DAY, _) => MONTH,
            (x, _) if x == MONTH | DAY => YEAR,
            (DATE, _) => return self.run_together(text, seen),
            _ => return Err(Fault::Format),
        };
        match part {
            YEAR => {
                self.year = value.into();
                self.two_digits = len <= 2;
            }
            MONTH => self.civil.month = value,
            _ => self.civil.day = value,
        }
        Ok(part)
    }

    /// `yyyymmdd`, `hhmmss[.fff]`, `hhmm`.
    fn run_together(&mut self, text: &str, seen: u32) -> Result<u32, Fault> {
        let (whole, fraction) = match text.split_once('.') {
            Some((w, f)) => (w, Some(f)),
            None => (text, None),
        };
        if !whole.bytes().all(|b| b.is_ascii_digit()) {
            return Err(Fault::Format);
        }
        let len = whole.len();
        let num = |a: usize, b: usize| whole[a..b].parse::<i32>().map_err(|_| Fault::Range);
        match fraction {
            Some(f) => self.civil.micros = fraction_of_second(f)?,
            None if seen & DATE != DATE && len >= 6 => {
                self.civil.day = num(len - 2, len)?;
                self.civil.month = num(len - 4, len - 2)?;
                self.year = num(0, len - 4)?.into();
                self.two_digits = len - 4 == 2;
                return Ok(DATE);
            }
            None => {}
        }
        if seen & TIME == 0 && (len == 6 || len == 4) {
            self.civil.hour = num(0, 2)?;
            self.civil.minute = num(2, 4)?;
            self.civil.second = if len == 6 { num(4, 6)? } else { 0 };
            return Ok(TIME);
        }
        Err(Fault::Format)
    }

    fn time(&mut self, text: &str) -> Result<(), Fault> {
        let t = parse_clock(text, false)?;
        (self.civil.hour, self.civil.minute, self.civil.second, self.civil.micros) =
            (i32::try_from(t.hour).map_err(|_| Fault::Range)?, t.minute, t.second, t.micros);
        check_day(&self.civil)
    }

    fn finish(mut self) -> Result<Parsed, Fault> {
        let no_now = self.no_now;
        let parsed = self.complete()?;
        match no_now {
            true => Err(Fault::NoNow),
            false => Ok(parsed),
        }
    }

    fn complete(&mut self) -> Result<Parsed, Fault> {
        if let Some(s) = self.special {
            return Ok(Parsed::Special(s));
        }
        self.check_date()?;
        match self.meridiem {
            Some(_) if self.civil.hour > 12 => return Err(Fault::Range),
            Some(Meridiem::Am) if self.civil.hour == 12 => self.civil.hour = 0,
            Some(Meridiem::Pm) if self.civil.hour != 12 => self.civil.hour += 12,
            _ => {}
        }
        if self.seen & TIME != 0 {
            check_day(&self.civil)?;
            if self.civil.hour < 0 || self.civil.minute > 59 || self.civil.second > 60 {
                return Err(Fault::Range);
            }
        }
        if self.time_only && self.seen & TIME == 0 {
            return Err(Fault::Format);
        }
        let has_date = self.seen & DATE == DATE;
        if !self.time_only && !has_date {
            return Err(Fault::Format);
        }
        if self.dst_modifier && !matches!(self.zone, Some(Zone::East(_))) {
            return Err(Fault::Format);
        }
        Ok(Parsed::Fields(self.civil, has_date, self.zone.take()))
    }

    /// Era, two-digit years, day of year, and the ranges of month and day.
    fn check_date(&mut self) -> Result<(), Fault> {
        if self.seen & YEAR != 0 && !self.julian {
            if self.bc {
                if self.year <= 0 {
                    return Err(Fault::Range);
                }
                self.year = -(self.year - 1);
            } else if self.two_digits {
                self.year += if self.year < 70 {
                    2000
                } else if self.year < 100 {
                    1900
                } else {
                    0
                };
            } else if self.year <= 0 {
                return Err(Fault::Range);
            }
        }
        self.civil.year = i32::try_from(self.year).map_err(|_| Fault::Range)?;
        if self.seen & DOY != 0 {
            let d = days_from_civil(self.year, 1, 1) + i64::from(self.day_of_year) - 1;
            let (y, m, d) = civil_from_days(i32::try_from(d).map_err(|_| Fault::Range)?);
            (self.civil.year, self.civil.month, self.civil.day) = (y, m, d);
        }
        if self.seen & MONTH != 0 && !(1..=12).contains(&self.civil.month) {
            return Err(Fault::MonthDay);
        }
        if self.seen & DAY != 0 && !(1..=31).contains(&self.civil.day) {
            return Err(Fault::MonthDay);
        }
        if self.seen & DATE == DATE && self.civil.day > days_in_month(self.civil.year, self.civil.month) {
            return Err(Fault::Range);
        }
        Ok(())
    }
}

/// No time beyond 24:00:00.
fn check_day(c: &Civil) -> Result<(), Fault> {
    match c.hour < 0 || c.time_micros() > USECS_PER_DAY {
        true => Err(Fault::Range),
        false => Ok(()),
    }
}

/// Cuts a date at everything that is no letter or digit, and between letters and digits.
fn split_date(text: &str) -> Option<Vec<&str>> {
    let s = text.as_bytes();
    let mut out = Vec::new();
    let mut i = 0;
    while i < s.len() {
        while i < s.len() && !s[i].is_ascii_alphanumeric() {
            i += 1;
        }
        if i == s.len() {
            return None;
        }
        let start = i;
        let digits = s[i].is_ascii_digit();
        while i < s.len() && s[i].is_ascii_alphanumeric() && s[i].is_ascii_digit() == digits {
            i += 1;
        }
        out.push(&text[start..i]);
        // One delimiter goes with each part; a part that ends where the other kind begins loses that character, as in Postgres.
        if i < s.len() {
            i += 1;
        }
    }
    Some(out)
}

pub(super) struct Clock {
    pub hour: i64,
    pub minute: i32,
    pub second: i32,
    pub micros: i32,
}

/// `hh:mm[:ss[.fff]]` or `mm:ss.fff`; with `minute_to_second`, two fields are minutes and seconds.
pub(super) fn parse_clock(text: &str, minute_to_second: bool) -> Result<Clock, Fault> {
    let mut parts = text.split(':');
    let number = |s: &str| -> Result<i64, Fault> {
        if s.is_empty() || !s.bytes().all(|b| b.is_ascii_digit()) {
            return Err(Fault::Format);
        }
        s.parse().map_err(|_| Fault::Range)
    };
    let small = |s: &str| number(s).and_then(|v| i32::try_from(v).map_err(|_| Fault::Range));
    let with_fraction = |s: &str| -> Result<(i32, i32), Fault> {
        match s.split_once('.') {
            Some((w, f)) => Ok((small(w)?, fraction_of_second(f)?)),
            None => Ok((small(s)?, 0)),
        }
    };
    let first = number(parts.next().unwrap_or(""))?;
    let second = parts.next().ok_or(Fault::Format)?;
    let clock = match parts.next() {
        Some(third) => {
            if parts.next().is_some() {
                return Err(Fault::Format);
            }
            let (second_v, micros) = with_fraction(third)?;
            Clock { hour: first, minute: small(second)?, second: second_v, micros }
        }
        None if second.contains('.') || minute_to_second => {
            let (s, micros) = with_fraction(second)?;
            Clock { hour: 0, minute: i32::try_from(first).map_err(|_| Fault::Range)?, second: s, micros }
        }
        None => Clock { hour: first, minute: small(second)?, second: 0, micros: 0 },
    };
    match clock.minute > 59 || clock.second > 60 {
        true => Err(Fault::Range),
        false => Ok(clock),
    }
}

/// Digits after a point, as microseconds, rounded.
pub(super) fn fraction_of_second(digits: &str) -> Result<i32, Fault> {
    if digits.is_empty() {
        return Ok(0);
    }
    if !digits.bytes().all(|b| b.is_ascii_digit()) {
        return Err(Fault::Format);
    }
    let f: f64 = format!("0.{digits}").parse().map_err(|_| Fault::Format)?;
    Ok((f * 1e6).round_ties_even() as i32)
}

/// `+hh[:mm[:ss]]` or `+hhmm`, in seconds east.
fn parse_offset(text: &str) -> Result<i32, Fault> {
    let negative = match text.as_bytes().first() {
        Some(b'+') => false,
        Some(b'-') => true,
        _ => return Err(Fault::Format),
    };
    let body = &text[1..];
    // Hours come first: too many of them are told before what follows is looked at (`-1996-09-14`).
    let hours = body.find(|c: char| !c.is_ascii_digit()).filter(|n| *n > 0 && !body[*n..].starts_with(':'));
    if hours.is_some_and(|n| body[..n].parse::<u32>().map_or(true, |h| h > 15)) {
        return Err(Fault::ZoneRange);
    }
    let parts: Vec<&str> = body.split(':').collect();
    if parts.len() > 3 || parts.iter().any(|p| p.is_empty() || !p.bytes().all(|b| b.is_ascii_digit())) {
        return Err(Fault::Format);
    }
    let n = |s: &str| s.parse::<i32>().map_err(|_| Fault::ZoneRange);
    let (mut h, mut m, mut s) = (n(parts[0])?, 0, 0);
    match parts.len() {
        1 if body.len() > 2 => (h, m) = (h / 100, h % 100),
        1 => {}
        k => {
            m = n(parts[1])?;
            s = if k == 3 { n(parts[2])? } else { 0 };
        }
    }
    if h > 15 || m > 59 || s > 59 {
        return Err(Fault::ZoneRange);
    }
    let total = (h * 60 + m) * 60 + s;
    Ok(if negative { -total } else { total })
}

impl Zone {
    /// Seconds east at a local time.
    fn east(&self, local_micros: i64) -> i32 {
        match self {
            Zone::East(e) => *e,
            Zone::Abbrev(a, name) => TimeZone::abbrev_offset(*a, name, local_micros),
            Zone::Named(z) => z.offset_of_local(local_micros),
        }
    }
}

/// Days since 2000-01-01.
pub fn parse_date(text: &str, style: &TextStyle) -> Result<i32, SqlError> {
    match parse(text, style, false).map_err(|f| f.error(text, "date"))? {
        Parsed::Special(Special::Infinity) => Ok(DATE_POS_INF),
        Parsed::Special(Special::NegInfinity) => Ok(DATE_NEG_INF),
        Parsed::Special(Special::Epoch) => Ok(UNIX_EPOCH_DAYS),
        Parsed::Fields(c, ..) => {
            date_from_civil(c.year, c.month, c.day).ok_or_else(|| SqlError::new(state::DATETIME_FIELD_OVERFLOW, format!("date out of range: \"{text}\"")))
        }
    }
}

/// Microseconds since 2000-01-01, without regard to a zone in the text.
pub fn parse_timestamp(text: &str, style: &TextStyle) -> Result<i64, SqlError> {
    match parse(text, style, false).map_err(|f| f.error(text, "timestamp"))? {
        Parsed::Special(s) => Ok(special_timestamp(s)),
        Parsed::Fields(c, ..) => c.to_micros().ok_or_else(|| timestamp_range(text)),
    }
}

/// Microseconds since 2000-01-01 UTC; without a zone in the text, the session's is taken.
pub fn parse_timestamptz(text: &str, style: &TextStyle) -> Result<i64, SqlError> {
    match parse(text, style, false).map_err(|f| f.error(text, "timestamp with time zone"))? {
        Parsed::Special(s) => Ok(special_timestamp(s)),
        Parsed::Fields(c, _, zone) => {
            let local = c.days().checked_mul(USECS_PER_DAY).and_then(|d| d.checked_add(c.time_micros())).ok_or_else(|| timestamp_range(text))?;
            let east = zone.map_or_else(|| style.timezone.offset_of_local(local), |z| z.east(local));
            let t = local.checked_sub(i64::from(east) * USECS_PER_SEC).filter(|t| is_valid_timestamp(*t));
            t.ok_or_else(|| timestamp_range(text))
        }
    }
}

fn special_timestamp(s: Special) -> i64 {
    match s {
        Special::Infinity => TS_POS_INF,
        Special::NegInfinity => TS_NEG_INF,
        Special::Epoch => UNIX_EPOCH_MICROS,
    }
}

fn timestamp_range(text: &str) -> SqlError {
    SqlError::new(state::DATETIME_FIELD_OVERFLOW, format!("timestamp out of range: \"{text}\""))
}

/// Microseconds since midnight.
pub fn parse_time(text: &str, style: &TextStyle) -> Result<i64, SqlError> {
    parse_time_zone(text, style, "time").map(|t| t.micros)
}

pub fn parse_timetz(text: &str, style: &TextStyle) -> Result<TimeTz, SqlError> {
    parse_time_zone(text, style, "time with time zone")
}

fn parse_time_zone(text: &str, style: &TextStyle, ty: &str) -> Result<TimeTz, SqlError> {
    match parse(text, style, true).map_err(|f| f.error(text, ty))? {
        Parsed::Special(_) => Err(Fault::Format.error(text, ty)),
        Parsed::Fields(c, has_date, zone) => {
            let today = || style.timezone.to_local(style.now_micros.unwrap_or(0)).div_euclid(USECS_PER_DAY) * USECS_PER_DAY;
            let day = if has_date { c.days() * USECS_PER_DAY } else { today() };
            let local = day + c.time_micros();
            let east = match zone {
                // A zone whose offset ever changed needs a date.
                Some(Zone::Named(z)) if !has_date && !z.is_constant() => {
                    return Err(Fault::Format.error(text, ty));
                }
                Some(z) => z.east(local),
                None => style.timezone.offset_of_local(local),
            };
            Ok(TimeTz { micros: c.time_micros(), zone_secs: -east })
        }
    }
}
