//! Dates and times inside a path: `.datetime()`, their order, and how they leave a path.
//!
//! A comparison that needs the session's time zone is refused (0A000) outside the `_tz` functions.

use super::Fault;
use crate::ctx::EvalCtx;
use crate::func::cast::with_style;
use crate::func::formatting::Standard;
use crate::func::to_json::iso_in;
use repr::datetime::{arith, TimeZone};
use repr::error::state;
use repr::value::TimeTz;
use repr::{SqlError, SqlState, SqlType, Value};
use std::cmp::Ordering;

/// A date or time, and the offset from UTC that its text named, in seconds east.
#[derive(Clone, Debug)]
pub struct Moment {
    pub value: Value,
    pub east: i32,
}

/// What `.datetime()` tries: dates, times and timestamps of ISO 8601, with a blank or T between.
const FORMATS: [&str; 19] = [
    "yyyy-mm-dd",
    "HH24:MI:SS.USTZH:TZM",
    "HH24:MI:SS.USTZH",
    "HH24:MI:SSTZH:TZM",
    "HH24:MI:SSTZH",
    "HH24:MI:SS.US",
    "HH24:MI:SS",
    "yyyy-mm-dd HH24:MI:SS.USTZH:TZM",
    "yyyy-mm-dd HH24:MI:SS.USTZH",
    "yyyy-mm-dd HH24:MI:SSTZH:TZM",
    "yyyy-mm-dd HH24:MI:SSTZH",
    "yyyy-mm-dd\"T\"HH24:MI:SS.USTZH:TZM",
    "yyyy-mm-dd\"T\"HH24:MI:SS.USTZH",
    "yyyy-mm-dd\"T\"HH24:MI:SSTZH:TZM",
    "yyyy-mm-dd\"T\"HH24:MI:SSTZH",
    "yyyy-mm-dd HH24:MI:SS.US",
    "yyyy-mm-dd HH24:MI:SS",
    "yyyy-mm-dd\"T\"HH24:MI:SS.US",
    "yyyy-mm-dd\"T\"HH24:MI:SS",
];

fn invalid(m: String) -> SqlError {
    SqlError::new(SqlState::new("22031"), m)
}

pub fn not_text() -> Fault {
    Fault::Soft(invalid("jsonpath item method .datetime() can only be applied to a string".into()))
}

/// Reads a text by a template, or by the first of [`FORMATS`] that fits. A template that is none is a fault of the path.
pub fn read(text: &str, template: Option<&str>) -> Result<Moment, Fault> {
    let made = |(value, east)| Moment { value, east };
    if let Some(t) = template {
        let standard = Standard::new(t).map_err(Fault::Hard)?;
        return standard.read(text).map(made).map_err(Fault::Soft);
    }
    thread_local! {
        static KNOWN: Vec<Standard> = FORMATS.iter().filter_map(|f| Standard::new(f).ok()).collect();
    }
    KNOWN.with(|known| known.iter().find_map(|f| f.read(text).ok())).map(made).ok_or_else(|| {
        let hint = "Use a datetime template argument to specify the input data format.";
        Fault::Soft(invalid(format!("datetime format is not recognized: \"{text}\"")).with_hint(hint))
    })
}

impl Moment {
    /// What `.type()` says.
    pub fn type_name(&self) -> &'static str {
        match self.value {
            Value::Date(_) => "date",
            Value::Time(_) => "time without time zone",
            Value::TimeTz(_) => "time with time zone",
            Value::Timestamp(_) => "timestamp without time zone",
            _ => "timestamp with time zone",
        }
    }

    /// The text that stands in JSON: ISO 8601, with the offset that was read.
    pub fn text(&self, ctx: &EvalCtx) -> String {
        let ty = match self.value {
            Value::Date(_) => SqlType::Date,
            Value::Time(_) => SqlType::Time,
            Value::TimeTz(_) => SqlType::TimeTz,
            Value::Timestamp(_) => SqlType::Timestamp,
            _ => SqlType::TimestampTz,
        };
        with_style(ctx, |style| {
            let mut style = style.clone();
            style.timezone = TimeZone::Fixed(self.east, "".into());
            iso_in(&self.value, &ty, style)
        })
    }
}

/// The order of two moments; `None` for a day beside a time of day.
pub fn compare(a: &Moment, b: &Moment, zoned: bool, ctx: &EvalCtx) -> Result<Option<Ordering>, Fault> {
    let needs_zone = |from: &str, to: &str| match zoned {
        true => Ok(()),
        false => Err(Fault::Hard(
            SqlError::new(state::FEATURE_NOT_SUPPORTED, format!("cannot convert value from {from} to {to} without time zone usage"))
                .with_hint("Use *_tz() function for time zone support."),
        )),
    };
    let zone = || TimeZone::parse(&ctx.timezone).unwrap_or(TimeZone::UTC);
    let by = |x: &Value, y: &Value, ty: &SqlType| x.sql_cmp(y, ty);
    // What lies beyond the range of the other type is greater than all of it.
    let instants = |x: Result<i64, SqlError>, y: i64| x.map_or(Ordering::Greater, |x| x.cmp(&y));
    Ok(Some(match (&a.value, &b.value) {
        (Value::Date(x), Value::Date(y)) => x.cmp(y),
        (Value::Date(x), Value::Timestamp(y)) => instants(arith::date_to_timestamp(*x), *y),
        (Value::Date(x), Value::TimestampTz(y)) => {
            needs_zone("date", "timestamptz")?;
            instants(arith::date_to_timestamptz(*x, &zone()), *y)
        }
        (Value::Time(x), Value::Time(y)) => x.cmp(y),
        (Value::Time(x), Value::TimeTz(_)) => {
            needs_zone("time", "timetz")?;
            let now = ctx.now().map_err(Fault::Hard)?;
            let x = TimeTz { micros: *x, zone_secs: -zone().offset_at(now) };
            by(&Value::TimeTz(x), &b.value, &SqlType::TimeTz)
        }
        (Value::TimeTz(_), Value::TimeTz(_)) => by(&a.value, &b.value, &SqlType::TimeTz),
        (Value::Timestamp(x), Value::Timestamp(y)) | (Value::TimestampTz(x), Value::TimestampTz(y)) => x.cmp(y),
        (Value::Timestamp(x), Value::TimestampTz(y)) => {
            needs_zone("timestamp", "timestamptz")?;
            instants(arith::to_utc(*x, &zone()), *y)
        }
        (Value::Timestamp(_) | Value::TimestampTz(_), Value::Date(_)) | (Value::TimeTz(_), Value::Time(_)) | (Value::TimestampTz(_), Value::Timestamp(_)) => {
            return Ok(compare(b, a, zoned, ctx)?.map(Ordering::reverse))
        }
        _ => return Ok(None),
    }))
}
