//! Dates, times, intervals: calendar, zones, text, arithmetic.
//!
//! ```text
//!   calendar   days and microseconds since 2000-01-01  <->  year, month, day, clock
//!   zone       IANA rules, fixed offsets               abbrev   Postgres's abbreviations
//!   token      words and fields of a text              parse    date, time, timestamp from text
//!   interval   intervals: text, modifiers, arithmetic  print    dates and times to text
//!   arith      dates and times plus intervals, age     extract  parts, and cutting to them
//! ```
//!
//! Not here: SQL functions (`expr`), the session's settings (`style`).

mod abbrev;
pub mod arith;
pub mod calendar;
pub mod extract;
pub mod interval;
mod parse;
mod print;
mod token;
mod zone;

pub use abbrev::{all_at as abbreviations_at, lookup as abbreviation, Abbrev};
pub use interval::{parse_interval, print_interval, round_micros};
pub use parse::{parse_date, parse_time, parse_timestamp, parse_timestamptz, parse_timetz};
pub use print::{print_date, print_time, print_timestamp, print_timestamptz, print_timetz, put_offset};
pub use token::{unit, Unit};
pub use zone::TimeZone;
