//! `to_char`, `to_date`, `to_timestamp`, `to_number`: values by templates.
//!
//! ```text
//!   template  a date template cut into fields and text       print  to_char of dates, timestamps, intervals
//!   parse     to_date, to_timestamp                          number to_char and to_number of numbers
//! ```
//!
//! Names of months and days are English: the locale is C.

mod number;
mod parse;
pub mod print;
mod template;

pub use parse::Standard;

use super::datetime::{in_session2, Session};
use super::lift::Str;
use super::Entry;
use crate::{f2, kernel};
use repr::datetime::calendar::{timestamp_is_finite, Civil};
use repr::{Interval, Numeric, SqlError};

/// NULL for an empty template, as Postgres has it, and for infinities.
fn timestamp(t: i64, template: &str) -> Option<String> {
    if template.is_empty() || !timestamp_is_finite(t) {
        return None;
    }
    Some(print::timestamp(&Civil::from_micros(t), None, template))
}

fn timestamptz(t: i64, template: &str, s: &Session) -> Result<Option<String>, SqlError> {
    if template.is_empty() || !timestamp_is_finite(t) {
        return Ok(None);
    }
    let zone = print::Zone { east_secs: s.zone.offset_at(t), name: s.zone.abbreviation_at(t).unwrap_or_default() };
    Ok(Some(print::timestamp(&Civil::from_micros(s.zone.to_local(t)), Some(zone), template)))
}

pub const FUNCS: &[Entry] = &[
    f2!(["timestamp_to_char"], i64, Str => Option<String>, timestamp),
    kernel!(["timestamptz_to_char"], |c| in_session2::<i64, Str, Option<String>>(c, timestamptz)),
    f2!(? ["interval_to_char"], Interval, Str => Option<String>, |i, t| {
        if t.is_empty() { Ok(None) } else { print::interval(&i, t).map(Some) }
    }),
    kernel!(? ["to_timestamp"], |c| in_session2::<Str, Str, i64>(c, |s, t, session| parse::timestamp(s, t, &session.zone))),
    f2!(? ["to_date"], Str, Str => i32, parse::date),
    f2!(? ["numeric_to_char"], Numeric, Str => String, |n, t| number::numeric(&n, t)),
    f2!(? ["int4_to_char"], i32, Str => String, number::int4),
    f2!(? ["int8_to_char"], i64, Str => String, number::integer),
    f2!(? ["float4_to_char"], f32, Str => String, |n, t| number::float(n.into(), 6, t)),
    f2!(? ["float8_to_char"], f64, Str => String, |n, t| number::float(n, 15, t)),
    f2!(? ["numeric_to_number"], Str, Str => Option<Numeric>, number::parse),
];
