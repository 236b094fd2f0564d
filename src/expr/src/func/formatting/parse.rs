//! `to_date` and `to_timestamp`: a text read by a template. [`Standard`] is the SQL standard's reading, of jsonpath's `.datetime()`: separators and
//! text must be there as they are in the template, which decides the type too.
//!
//! Without `FX`, blanks and separators are matched loosely. Errors: 22007 for text that a field does not take and for fields that
//! contradict each other, 22008 for values out of range.

use super::template::{split, split_with, Node, DAYS, MONTHS, ROMAN};
use repr::datetime::calendar::*;
use repr::datetime::{arith, round_micros, TimeZone};
use repr::error::state;
use repr::value::TimeTz;
use repr::{SqlError, SqlState, Value};

#[derive(Default)]
struct Read {
    clock12: bool,
    pm: bool,
    hour: i32,
    minute: i32,
    second: i32,
    seconds_of_day: i32,
    weekday: i32,
    day: i32,
    day_of_year: i32,
    month: i32,
    millis: i32,
    year: i32,
    year_digits: i32,
    bc: bool,
    week: i32,
    week_of_month: i32,
    century: i32,
    julian: i32,
    micros: i32,
    zone_sign: i32,
    zone_hour: i32,
    zone_minute: i32,
    /// Digits of `FFn`.
    precision: Option<u32>,
    iso: Option<bool>,
}

fn format_error(m: impl Into<String>) -> SqlError {
    SqlError::new(state::INVALID_DATETIME_FORMAT, m)
}

const FM_HINT: &str = "If your source string is not fixed-width, try using the \"FM\" modifier.";

struct Reader<'a> {
    rest: &'a str,
    fixed: bool,
    /// Blanks skipped beyond what the template has.
    extra: i32,
    /// The character that [`Reader::advance`] passed last.
    passed: Option<char>,
}

impl<'a> Reader<'a> {
    fn skip_blanks(&mut self) {
        let t = self.rest.trim_start_matches(|c: char| c.is_ascii_whitespace());
        self.extra += (self.rest.len() - t.len()) as i32;
        self.rest = t;
    }

    fn advance(&mut self) {
        let mut c = self.rest.chars();
        self.passed = c.next();
        self.rest = c.as_str();
    }

    /// An integer of up to `len` characters; all digits there are if `greedy`.
    fn int(&mut self, len: usize, greedy: bool, key: &str, slot: &mut i32) -> Result<usize, SqlError> {
        self.rest = self.rest.trim_start_matches(|c: char| c.is_ascii_whitespace());
        let start = self.rest;
        let cut = start.char_indices().nth(len).map_or(start.len(), |(i, _)| i);
        let source = if greedy { start } else { &start[..cut] };
        let copy = &start[..cut];
        let sign = usize::from(source.starts_with(['+', '-']));
        let digits = source[sign..].bytes().take_while(u8::is_ascii_digit).count();
        let used = if digits == 0 { 0 } else { sign + digits };
        if !greedy {
            if copy.len() < len {
                return Err(format_error(format!("source string too short for \"{key}\" formatting field"))
                    .with_detail(format!("Field requires {len} characters, but only {} remain.", copy.len()))
                    .with_hint(FM_HINT));
            }
            if used > 0 && used < len {
                return Err(format_error(format!("invalid value \"{copy}\" for \"{key}\""))
                    .with_detail(format!("Field requires {len} characters, but only {used} could be parsed."))
                    .with_hint(FM_HINT));
            }
        }
        if used == 0 {
            return Err(format_error(format!("invalid value \"{copy}\" for \"{key}\"")).with_detail("Value must be an integer."));
        }
        let value: i32 = source[..used].parse().map_err(|_| {
            SqlError::new(state::DATETIME_FIELD_OVERFLOW, format!("value for \"{key}\" in source string is out of range"))
                .with_detail("Value must be in the range -2147483648 to 2147483647.")
        })?;
        self.rest = &start[used..];
        if *slot != 0 && *slot != value {
            return Err(format_error(format!("conflicting values for \"{key}\" field in formatting string"))
                .with_detail("This value contradicts a previous setting for the same field type."));
        }
        *slot = value;
        Ok(used)
    }

    /// One of `words`, in any case.
    fn word(&mut self, words: &[&str], key: &str) -> Result<usize, SqlError> {
        let hit = words.iter().enumerate().find(|(_, w)| self.rest.get(..w.len()).is_some_and(|r| r.eq_ignore_ascii_case(w)));
        match hit {
            Some((i, w)) => {
                self.rest = &self.rest[w.len()..];
                Ok(i)
            }
            None => {
                let shown: String = self.rest.chars().take_while(|c| !c.is_ascii_whitespace()).collect();
                Err(format_error(format!("invalid value \"{shown}\" for \"{key}\""))
                    .with_detail("The given value did not match any of the allowed values for this field."))
            }
        }
    }
}

/// Whether a field's digits may run on: what follows is no digit.
fn runs_on(nodes: &[Node], i: usize) -> bool {
    if matches!(nodes[i], Node::Field { ordinal: Some(_), .. } | Node::Field { fill: true, .. }) {
        return true;
    }
    match nodes.get(i + 1) {
        None => true,
        Some(Node::Field { key, .. }) => {
            let letters = ["a", "b", "p", "month", "mon", "day", "dy", "rm", "tz", "tzh", "of"];
            let lower = key.to_ascii_lowercase();
            letters.iter().any(|l| if l.len() == 1 { lower.starts_with(l) } else { lower == *l }) || lower == "fx"
        }
        Some(Node::Char(c) | Node::Separator(c)) => !c.is_ascii_digit(),
        Some(Node::Space(_)) => true,
    }
}

/// A year of fewer than four digits, near 2020.
fn near_2020(y: i32) -> i32 {
    match y {
        i32::MIN..=69 => y + 2000,
        70..=99 => y + 1900,
        100..=519 => y + 2000,
        520..=999 => y + 1000,
        _ => y,
    }
}

fn read(text: &str, template: &str) -> Result<Read, SqlError> {
    read_nodes(text, &split(template), false)
}

fn read_nodes(text: &str, nodes: &[Node], standard: bool) -> Result<Read, SqlError> {
    let mut out = Read::default();
    let mut r = Reader { rest: text, fixed: standard, extra: 0, passed: None };
    for (i, node) in nodes.iter().enumerate() {
        if r.rest.is_empty() {
            if standard {
                return Err(format_error("input string is too short for datetime format"));
            }
            break;
        }
        if !r.fixed && (i == 0 || matches!(node, Node::Field { .. })) {
            r.skip_blanks();
        }
        let due = match node {
            Node::Space(_) => Some((' ', "separator")),
            Node::Separator(c) => Some((*c, "separator")),
            Node::Char(c) => Some((*c, "character")),
            Node::Field { .. } => None,
        };
        if let Some((c, kind)) = due.filter(|(c, _)| standard && !r.rest.starts_with(*c)) {
            return Err(format_error(format!("unmatched format {kind} \"{c}\"")));
        }
        match node {
            Node::Space(_) | Node::Separator(_) if r.fixed => r.advance(),
            Node::Space(_) | Node::Separator(_) => {
                r.extra -= 1;
                if r.rest.starts_with(|c: char| c.is_ascii_whitespace() || c.is_ascii_punctuation()) {
                    r.advance();
                    r.extra += 1;
                }
            }
            Node::Char(_) if !r.fixed && r.extra > 0 => r.extra -= 1,
            Node::Char(_) => r.advance(),
            Node::Field { key, ordinal, .. } => {
                read_field(&mut r, key, runs_on(nodes, i), &mut out)?;
                if ordinal.is_some() {
                    r.advance();
                    r.advance();
                }
                if !r.fixed {
                    r.extra = 0;
                    r.skip_blanks();
                }
            }
        }
    }
    if standard && !r.rest.trim_start_matches(|c: char| c.is_ascii_whitespace()).is_empty() {
        return Err(format_error("trailing characters remain in input string after datetime format"));
    }
    Ok(out)
}

fn read_field(r: &mut Reader<'_>, key: &'static str, greedy: bool, out: &mut Read) -> Result<(), SqlError> {
    let lower = key.to_ascii_lowercase();
    let iso = matches!(lower.as_str(), "iddd" | "id" | "iw" | "iyyy" | "iyy" | "iy" | "i");
    let gregorian =
        matches!(lower.as_str(), "ddd" | "dd" | "d" | "ww" | "w" | "mm" | "mon" | "month" | "y,yyy" | "yyyy" | "yyy" | "yy" | "y" | "rm" | "day" | "dy");
    if iso || gregorian {
        if out.iso.is_some_and(|m| m != iso) && !matches!(lower.as_str(), "day" | "dy") {
            return Err(format_error("invalid combination of date conventions")
                .with_hint("Do not mix Gregorian and ISO week date conventions in a formatting template."));
        }
        if !matches!(lower.as_str(), "day" | "dy") {
            out.iso = Some(iso);
        }
    }
    let mut unused = 0;
    match lower.as_str() {
        "fx" => r.fixed = true,
        "a.m." | "p.m." => {
            out.pm = r.word(&["a.m.", "p.m."], key)? == 1;
            out.clock12 = true;
        }
        "am" | "pm" => {
            out.pm = r.word(&["am", "pm"], key)? == 1;
            out.clock12 = true;
        }
        "hh" | "hh12" => {
            r.int(2, greedy, key, &mut out.hour)?;
            out.clock12 = true;
        }
        "hh24" => {
            r.int(2, greedy, key, &mut out.hour)?;
        }
        "mi" => {
            r.int(2, greedy, key, &mut out.minute)?;
        }
        "ss" => {
            r.int(2, greedy, key, &mut out.second)?;
        }
        "ms" => {
            let n = r.int(3, greedy, key, &mut out.millis)?;
            out.millis = out.millis.saturating_mul(10i32.pow(3usize.saturating_sub(n) as u32));
        }
        "us" | "ff1" | "ff2" | "ff3" | "ff4" | "ff5" | "ff6" => {
            let len = if lower == "us" { 6 } else { usize::from(lower.as_bytes()[2] - b'0') };
            if lower != "us" {
                out.precision = Some(len as u32);
            }
            let n = r.int(len, greedy, key, &mut out.micros)?;
            out.micros = out.micros.saturating_mul(10i32.pow(6usize.saturating_sub(n) as u32));
        }
        "ssss" | "sssss" => {
            r.int(lower.len(), greedy, key, &mut out.seconds_of_day)?;
        }
        "tz" | "of" => {
            let m = format!("formatting field \"{key}\" is only supported in to_char");
            return Err(SqlError::new(state::FEATURE_NOT_SUPPORTED, m));
        }
        "tzh" => {
            // A separator of the template may have taken the sign.
            out.zone_sign = if r.extra > 0 && r.passed == Some('-') { -1 } else { 1 };
            if r.rest.starts_with(['+', '-', ' ']) {
                out.zone_sign = if r.rest.starts_with('-') { -1 } else { 1 };
                r.advance();
            }
            r.int(2, greedy, key, &mut out.zone_hour)?;
        }
        "tzm" => {
            if out.zone_sign == 0 {
                out.zone_sign = 1;
            }
            r.int(2, greedy, key, &mut out.zone_minute)?;
        }
        "a.d." | "b.c." => out.bc = r.word(&["a.d.", "b.c."], key)? == 1,
        "ad" | "bc" => out.bc = r.word(&["ad", "bc"], key)? == 1,
        "month" => set(&mut out.month, r.word(&MONTHS, key)? as i32 + 1, key)?,
        "mon" => set(&mut out.month, r.word(&MONTHS.map(|m| &m[..3]), key)? as i32 + 1, key)?,
        "rm" => {
            // The longest first, since some begin with others.
            let order = [7, 2, 6, 11, 1, 3, 5, 8, 10, 0, 4, 9];
            let words = order.map(|i| ROMAN[i]);
            let hit = r.word(&words, key)?;
            set(&mut out.month, order[hit] as i32 + 1, key)?;
        }
        "mm" => {
            r.int(2, greedy, key, &mut out.month)?;
        }
        "day" | "dy" => {
            let day = if lower == "day" { r.word(&DAYS, key)? } else { r.word(&DAYS.map(|d| &d[..3]), key)? };
            // Checked as the number from 0 and kept as that from 1, as in Postgres: the same day twice is a conflict.
            set(&mut out.weekday, day as i32, key)?;
            out.weekday += 1;
        }
        "ddd" | "iddd" => {
            r.int(3, greedy, key, &mut out.day_of_year)?;
        }
        "dd" => {
            r.int(2, greedy, key, &mut out.day)?;
        }
        "d" => {
            r.int(1, greedy, key, &mut out.weekday)?;
        }
        "id" => {
            r.int(1, greedy, key, &mut out.weekday)?;
            // Sunday is 1 inside.
            out.weekday = if out.weekday >= 7 { 1 } else { out.weekday + 1 };
        }
        "ww" | "iw" => {
            r.int(2, greedy, key, &mut out.week)?;
        }
        "q" => {
            // Read, but it decides nothing.
            r.int(1, greedy, key, &mut unused)?;
        }
        "cc" => {
            r.int(2, greedy, key, &mut out.century)?;
        }
        "y,yyy" => {
            let bad = || format_error("invalid input string for \"Y,YYY\"");
            let (thousands, rest) = r.rest.split_once(',').ok_or_else(bad)?;
            let digits = rest.bytes().take(3).take_while(u8::is_ascii_digit).count();
            let (t, y): (i32, i32) = (thousands.trim().parse().map_err(|_| bad())?, rest[..digits].parse().map_err(|_| bad())?);
            r.rest = &rest[digits..];
            let year = t.checked_mul(1000).and_then(|t| t.checked_add(y)).ok_or_else(bad)?;
            set(&mut out.year, year, key)?;
            out.year_digits = 4;
        }
        "yyyy" | "iyyy" => {
            r.int(4, greedy, key, &mut out.year)?;
            out.year_digits = 4;
        }
        "yyy" | "iyy" | "yy" | "iy" | "y" | "i" => {
            let len = lower.len();
            let n = r.int(len, greedy, key, &mut out.year)?;
            if n < 4 {
                out.year = near_2020(out.year);
            }
            out.year_digits = len as i32;
        }
        "w" => {
            r.int(1, greedy, key, &mut out.week_of_month)?;
        }
        "j" => {
            let len = r.rest.bytes().take_while(u8::is_ascii_digit).count().max(1);
            r.int(len, true, key, &mut out.julian)?;
        }
        _ => {}
    }
    Ok(())
}

fn set(slot: &mut i32, value: i32, key: &str) -> Result<(), SqlError> {
    if *slot != 0 && *slot != value {
        return Err(format_error(format!("conflicting values for \"{key}\" field in formatting string"))
            .with_detail("This value contradicts a previous setting for the same field type."));
    }
    *slot = value;
    Ok(())
}

/// The date and time that the fields make, and the zone's offset in seconds east.
fn resolve(mut f: Read, text: &str) -> Result<(Civil, Option<i32>), SqlError> {
    let overflow = || SqlError::new(state::DATETIME_FIELD_OVERFLOW, format!("date/time field value out of range: \"{text}\""));
    let mut c = Civil { month: 1, day: 1, ..Civil::default() };
    if f.seconds_of_day != 0 {
        let s = f.seconds_of_day;
        (c.hour, c.minute, c.second) = (s / 3600, s / 60 % 60, s % 60);
    }
    for (slot, v) in [(&mut c.second, f.second), (&mut c.minute, f.minute), (&mut c.hour, f.hour)] {
        if v != 0 {
            *slot = v;
        }
    }
    if f.clock12 {
        if !(1..=12).contains(&c.hour) {
            return Err(format_error(format!("hour \"{}\" is invalid for the 12-hour clock", c.hour))
                .with_hint("Use the 24-hour clock, or give an hour between 1 and 12."));
        }
        match (f.pm, c.hour) {
            (true, h) if h < 12 => c.hour += 12,
            (false, 12) => c.hour = 0,
            _ => {}
        }
    }
    if f.year != 0 {
        if f.century != 0 && f.year_digits <= 2 {
            let cc = if f.bc { -f.century } else { f.century };
            c.year = f.year % 100;
            c.year = match (c.year, cc >= 0) {
                (0, true) => cc.saturating_mul(100),
                (0, false) => cc.saturating_mul(100) + 1,
                (y, true) => y + (cc - 1).saturating_mul(100),
                (y, false) => (cc + 1).saturating_mul(100) - y + 1,
            };
        } else {
            c.year = if f.bc { -f.year } else { f.year };
            if c.year < 0 {
                c.year += 1;
            }
        }
    } else if f.century != 0 {
        let cc = if f.bc { -f.century } else { f.century };
        c.year = if cc >= 0 { (cc - 1).saturating_mul(100) + 1 } else { cc.saturating_mul(100) + 1 };
    }
    let to_date = |days: i64| i32::try_from(days).map(civil_from_days).map_err(|_| overflow());
    if f.julian != 0 {
        (c.year, c.month, c.day) = to_date(i64::from(f.julian) - i64::from(EPOCH_JULIAN))?;
    }
    if f.week != 0 {
        if f.iso == Some(true) {
            // Without a day of the week, its Monday.
            let day = match f.weekday {
                0 => 0,
                1 => 6,
                d => d - 2,
            };
            (c.year, c.month, c.day) = to_date(iso_week_start(c.year, f.week) + i64::from(day))?;
        } else {
            f.day_of_year = (f.week - 1).saturating_mul(7) + 1;
        }
    }
    if f.week_of_month != 0 {
        f.day = (f.week_of_month - 1).saturating_mul(7) + 1;
    }
    if f.day != 0 {
        c.day = f.day;
    }
    if f.month != 0 {
        c.month = f.month;
    }
    if f.day_of_year != 0 && (c.month <= 1 || c.day <= 1) {
        if c.year == 0 && !f.bc {
            return Err(format_error("cannot calculate day of year without year information"));
        }
        if f.iso == Some(true) {
            (c.year, c.month, c.day) = to_date(iso_week_start(c.year, 1) + i64::from(f.day_of_year) - 1)?;
        } else {
            let (_, month, day) = to_date(days_from_civil(c.year.into(), 1, 1) + i64::from(f.day_of_year) - 1)?;
            if !(1..=365 + i32::from(is_leap(c.year))).contains(&f.day_of_year) {
                return Err(overflow());
            }
            (c.month, c.day) = (if c.month <= 1 { month } else { c.month }, if c.day <= 1 { day } else { c.day });
        }
    }
    let micros = f.millis.saturating_mul(1000).saturating_add(f.micros);
    c.micros = micros;
    if !(1..=12).contains(&c.month) || c.day < 1 || c.day > days_in_month(c.year, c.month) {
        return Err(overflow());
    }
    if !(0..24).contains(&c.hour) || !(0..60).contains(&c.minute) || !(0..60).contains(&c.second) || !(0..1_000_000).contains(&micros) {
        return Err(overflow());
    }
    let zone = match f.zone_sign {
        0 => None,
        s => {
            if !(0..=15).contains(&f.zone_hour) || !(0..60).contains(&f.zone_minute) {
                return Err(SqlError::new(SqlState::new("22009"), format!("time zone displacement out of range: \"{text}\"")));
            }
            Some(s * (f.zone_hour * 3600 + f.zone_minute * 60))
        }
    };
    if let Some(p) = f.precision {
        c.micros = (round_micros(micros.into(), p)) as i32;
    }
    Ok((c, zone))
}

pub fn timestamp(text: &str, template: &str, session: &TimeZone) -> Result<i64, SqlError> {
    let (c, zone) = resolve(read(text, template)?, text)?;
    let out_of_range = |_| SqlError::new(state::DATETIME_FIELD_OVERFLOW, "timestamp out of range");
    let local = c.to_micros().ok_or(()).map_err(out_of_range)?;
    match zone {
        Some(east) => arith::shift(local, -i64::from(east)),
        None => arith::to_utc(local, session),
    }
}

pub fn date(text: &str, template: &str) -> Result<i32, SqlError> {
    let (c, _) = resolve(read(text, template)?, text)?;
    date_from_civil(c.year, c.month, c.day).ok_or_else(|| SqlError::new(state::DATETIME_FIELD_OVERFLOW, format!("date out of range: \"{text}\"")))
}

/// A template of the SQL standard.
pub struct Standard {
    nodes: Vec<Node>,
}

impl Standard {
    /// Errors: 22007 for a separator that the standard has not.
    pub fn new(template: &str) -> Result<Standard, SqlError> {
        let mut bad = None;
        let nodes = split_with(template, |c| {
            if !"-./,':; ".contains(c) {
                bad.get_or_insert(c);
            }
        });
        match bad {
            Some(c) => Err(format_error(format!("invalid datetime format separator: \"{c}\""))),
            None => Ok(Standard { nodes }),
        }
    }

    /// A date, time or timestamp, with or without time zone, as the template's fields decide; and the zone's offset in seconds east.
    pub fn read(&self, text: &str) -> Result<(Value, i32), SqlError> {
        let fields = read_nodes(text, &self.nodes, true)?;
        let (mut dated, mut timed, mut zoned) = (false, false, false);
        for n in &self.nodes {
            let Node::Field { key, .. } = n else { continue };
            match key.to_ascii_lowercase().as_str() {
                "fx" => {}
                "a.m." | "p.m." | "am" | "pm" | "hh" | "hh12" | "hh24" | "mi" | "ss" | "ms" | "us" | "ssss" | "sssss" => timed = true,
                f if f.starts_with("ff") => timed = true,
                "tzh" | "tzm" => zoned = true,
                // As in Postgres, an ISO week alone makes no date.
                "iw" => {}
                _ => dated = true,
            }
        }
        let (c, east) = resolve(fields, text)?;
        let local = || c.to_micros().ok_or_else(|| SqlError::new(state::DATETIME_FIELD_OVERFLOW, "timestamp out of range"));
        let east_secs = east.unwrap_or(0);
        let value = match (dated, timed, zoned) {
            (true, true, true) => Value::TimestampTz(arith::shift(local()?, -i64::from(east_secs))?),
            (true, true, false) => Value::Timestamp(local()?),
            (true, false, false) => {
                let out = || SqlError::new(state::DATETIME_FIELD_OVERFLOW, format!("date out of range: \"{text}\""));
                Value::Date(date_from_civil(c.year, c.month, c.day).ok_or_else(out)?)
            }
            (true, false, true) => return Err(format_error("datetime format is zoned but not timed")),
            (false, true, true) => Value::TimeTz(TimeTz { micros: c.time_micros(), zone_secs: -east_secs }),
            (false, true, false) => Value::Time(c.time_micros()),
            (false, false, _) => return Err(format_error("datetime format is not dated and not timed")),
        };
        Ok((value, east_secs))
    }
}
