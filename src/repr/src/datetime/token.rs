//! The words and fields that dates, times and intervals are made of.
//!
//! `split` cuts a text into typed fields as Postgres does; `word` and `unit` look words up. Not here: what the fields mean together (`parse`, `interval`).

/// The kind of a field.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    Number,
    /// Digits with `-`, `/` or `.`, or a word with punctuation: a date, or a zone's name.
    Date,
    /// Digits with `:`.
    Time,
    /// A sign and digits: a zone's offset, or a signed number.
    Tz,
    Word,
    /// A sign and a word.
    Special,
}

pub type Field = (String, Kind);

/// What a word of a date means.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Word {
    Ignore,
    Month(i32),
    Weekday,
    Am,
    Pm,
    Ad,
    Bc,
    /// `dst`: one hour more.
    DstModifier,
    IsoTime,
    Julian,
    /// A unit in front of a number, as in `y2001m02d04`.
    Part(Part),
    Now,
    Today,
    Tomorrow,
    Yesterday,
    Zulu,
    Epoch,
    Infinity,
    NegInfinity,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Part {
    Year,
    Month,
    Day,
    Hour,
    Minute,
    Second,
    /// Known to the grammar, refused as a label.
    Other,
}

/// Looks up a word in lower case.
pub fn word(w: &str) -> Option<Word> {
    Some(match w {
        "-infinity" => Word::NegInfinity,
        "infinity" => Word::Infinity,
        "ad" => Word::Ad,
        "bc" => Word::Bc,
        "allballs" => Word::Zulu,
        "am" => Word::Am,
        "pm" => Word::Pm,
        "at" | "on" => Word::Ignore,
        "jan" | "january" => Word::Month(1),
        "feb" | "february" => Word::Month(2),
        "mar" | "march" => Word::Month(3),
        "apr" | "april" => Word::Month(4),
        "may" => Word::Month(5),
        "jun" | "june" => Word::Month(6),
        "jul" | "july" => Word::Month(7),
        "aug" | "august" => Word::Month(8),
        "sep" | "sept" | "september" => Word::Month(9),
        "oct" | "october" => Word::Month(10),
        "nov" | "november" => Word::Month(11),
        "dec" | "december" => Word::Month(12),
        "sun" | "sunday" | "mon" | "monday" | "tue" | "tues" | "tuesday" | "wed" | "weds" | "wednesday" | "thu" | "thur" | "thurs" | "thursday" | "fri"
        | "friday" | "sat" | "saturday" => Word::Weekday,
        "dst" => Word::DstModifier,
        "t" => Word::IsoTime,
        "j" | "jd" | "julian" => Word::Julian,
        "y" => Word::Part(Part::Year),
        "m" => Word::Part(Part::Month),
        "d" => Word::Part(Part::Day),
        "h" => Word::Part(Part::Hour),
        "mm" => Word::Part(Part::Minute),
        "s" => Word::Part(Part::Second),
        "dow" | "doy" | "isodow" | "isoyear" => Word::Part(Part::Other),
        "now" => Word::Now,
        "today" => Word::Today,
        "tomorrow" => Word::Tomorrow,
        "yesterday" => Word::Yesterday,
        "epoch" => Word::Epoch,
        _ => return None,
    })
}

/// A unit of an interval, of `extract` and of `date_trunc`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unit {
    Microsecond,
    Millisecond,
    Second,
    Minute,
    Hour,
    Day,
    Week,
    Month,
    Quarter,
    Year,
    Decade,
    Century,
    Millennium,
    Timezone,
    TimezoneHour,
    TimezoneMinute,
    Ago,
    Ignore,
}

/// Looks up a unit in lower case. Ten characters count, as in Postgres: `microsecond` and `microseconds` are one.
pub fn unit(w: &str) -> Option<Unit> {
    let w = w.get(..10).unwrap_or(w);
    Some(match w {
        "@" => Unit::Ignore,
        "ago" => Unit::Ago,
        "c" | "cent" | "centuries" | "century" => Unit::Century,
        "d" | "day" | "days" => Unit::Day,
        "dec" | "decade" | "decades" | "decs" => Unit::Decade,
        "h" | "hour" | "hours" | "hr" | "hrs" => Unit::Hour,
        "m" | "min" | "mins" | "minute" | "minutes" => Unit::Minute,
        "microsecon" | "us" | "usec" | "usecond" | "useconds" | "usecs" => Unit::Microsecond,
        "mil" | "millennia" | "millennium" | "mils" => Unit::Millennium,
        "millisecon" | "ms" | "msec" | "msecond" | "mseconds" | "msecs" => Unit::Millisecond,
        "mon" | "mons" | "month" | "months" => Unit::Month,
        "qtr" | "quarter" => Unit::Quarter,
        "s" | "sec" | "second" | "seconds" | "secs" => Unit::Second,
        "timezone" => Unit::Timezone,
        "timezone_h" => Unit::TimezoneHour,
        "timezone_m" => Unit::TimezoneMinute,
        "w" | "week" | "weeks" => Unit::Week,
        "y" | "year" | "years" | "yr" | "yrs" => Unit::Year,
        _ => return None,
    })
}

/// Cuts a text into fields. `None`: a character that no date contains, or too many fields.
pub fn split(text: &str) -> Option<Vec<Field>> {
    const FIELDS_MAX: usize = 25; // Postgres's MAXDATEFIELDS
    const LEN_MAX: usize = 128 + 25; // and about its MAXDATELEN
    let s = text.as_bytes();
    if s.len() > LEN_MAX {
        return None;
    }
    let mut out: Vec<Field> = Vec::new();
    let mut i = 0;
    let at = |i: usize| s.get(i).copied().unwrap_or(0);
    while i < s.len() {
        if s[i].is_ascii_whitespace() || s[i] == 0x0b {
            i += 1;
            continue;
        }
        let start = i;
        let run = |i: &mut usize, ok: &dyn Fn(u8) -> bool| {
            while *i < s.len() && ok(s[*i]) {
                *i += 1;
            }
        };
        let kind;
        let mut field = None;
        if s[i].is_ascii_digit() {
            run(&mut i, &|c| c.is_ascii_digit());
            match at(i) {
                b':' => {
                    kind = Kind::Time;
                    run(&mut i, &|c| c.is_ascii_digit() || c == b':' || c == b'.');
                }
                delim @ (b'-' | b'/' | b'.') => {
                    i += 1;
                    if at(i).is_ascii_digit() {
                        run(&mut i, &|c| c.is_ascii_digit());
                        // A third part must stand behind the same delimiter.
                        if at(i) == delim {
                            kind = Kind::Date;
                            run(&mut i, &|c| c.is_ascii_digit() || c == delim);
                        } else {
                            kind = if delim == b'.' { Kind::Number } else { Kind::Date };
                        }
                    } else {
                        kind = Kind::Date;
                        run(&mut i, &|c| c.is_ascii_alphanumeric() || c == delim);
                    }
                }
                _ => kind = Kind::Number,
            }
        } else if s[i] == b'.' {
            i += 1;
            run(&mut i, &|c| c.is_ascii_digit());
            kind = Kind::Number;
        } else if s[i].is_ascii_alphabetic() {
            run(&mut i, &|c| c.is_ascii_alphabetic());
            let embedded = match at(i) {
                b'-' | b'/' | b'.' => true,
                // Punctuation belongs to the word unless the word is a keyword.
                c if c == b'+' || c.is_ascii_digit() => word(&text[start..i].to_ascii_lowercase()).is_none(),
                _ => false,
            };
            if embedded {
                kind = Kind::Date;
                run(&mut i, &|c| c.is_ascii_alphanumeric() || b"+-/_.:".contains(&c));
            } else {
                kind = Kind::Word;
            }
        } else if s[i] == b'+' || s[i] == b'-' {
            let sign = s[i] as char;
            i += 1;
            run(&mut i, &|c| c.is_ascii_whitespace());
            let body = i;
            if at(i).is_ascii_digit() {
                kind = Kind::Tz;
                run(&mut i, &|c| c.is_ascii_digit() || b":.-".contains(&c));
            } else if at(i).is_ascii_alphabetic() {
                kind = Kind::Special;
                run(&mut i, &|c| c.is_ascii_alphabetic());
            } else {
                return None;
            }
            field = Some(format!("{sign}{}", text[body..i].to_ascii_lowercase()));
        } else if s[i].is_ascii_punctuation() {
            i += 1;
            continue;
        } else {
            return None;
        }
        if out.len() >= FIELDS_MAX {
            return None;
        }
        out.push((field.unwrap_or_else(|| text[start..i].to_ascii_lowercase()), kind));
    }
    Some(out)
}
