//! Dates, times, intervals: operators and functions. What they compute is in `repr::datetime`.
//!
//! Functions that read the session's zone find it once a call, not once a row.

use super::lift::{at, rows, Arg, Ret, Str};
use super::{CallArgs, Entry};
use crate::{f1, f2, f3, kernel, val, vals};
use arrow_array::ArrayRef;
use repr::datetime::calendar::{date_is_finite, timestamp_is_finite, USECS_PER_DAY, USECS_PER_SEC};
use repr::datetime::{arith, extract, interval, Abbrev, TimeZone};
use repr::error::state;
use repr::{Interval, Numeric, SqlError, TimeTz, Value};
use std::cmp::Ordering;

/// The session's zone and time.
pub(super) struct Session {
    pub zone: TimeZone,
    /// Microseconds since 2000-01-01 UTC; 0 where no time is known.
    pub now: i64,
}

fn session(c: &CallArgs<'_>) -> Session {
    Session { zone: TimeZone::parse(&c.ctx.timezone).unwrap_or(TimeZone::UTC), now: c.ctx.now_micros.unwrap_or(0) }
}

/// Lifts a strict function of one argument and the session.
pub(super) fn in_session1<A: Arg, R: Ret>(c: &mut CallArgs<'_>, f: for<'x> fn(A::In<'x>, &Session) -> Result<R, SqlError>) -> ArrayRef {
    let (args, types, len) = (c.args, c.arg_types, c.len);
    let (a, s) = (A::open(&args[0], &types[0].ty), session(c));
    rows(c, |i| f(A::get(&a, at(&args[0], len, i)), &s))
}

/// Lifts a strict function of two arguments and the session.
pub(super) fn in_session2<A: Arg, B: Arg, R: Ret>(c: &mut CallArgs<'_>, f: for<'x, 'y> fn(A::In<'x>, B::In<'y>, &Session) -> Result<R, SqlError>) -> ArrayRef {
    let (args, types, len) = (c.args, c.arg_types, c.len);
    let (a, b, s) = (A::open(&args[0], &types[0].ty), B::open(&args[1], &types[1].ty), session(c));
    rows(c, |i| f(A::get(&a, at(&args[0], len, i)), B::get(&b, at(&args[1], len, i)), &s))
}

fn negated(i: &Interval) -> Result<Interval, SqlError> {
    interval::neg(i)
}

/// A zone as SQL names it: an abbreviation, an IANA name, a POSIX form.
fn zone_named(name: &str) -> Result<TimeZone, SqlError> {
    TimeZone::parse_any(name).ok_or_else(|| SqlError::new(state::INVALID_PARAMETER_VALUE, format!("time zone \"{name}\" not recognized")))
}

/// A zone given as an interval, in seconds east.
fn zone_interval(i: &Interval) -> Result<i64, SqlError> {
    if i.months != 0 || i.days != 0 {
        let mut text = String::new();
        repr::datetime::print_interval(i, repr::IntervalStyle::Postgres, &mut text);
        let m = format!("interval time zone \"{text}\" must not include months or days");
        return Err(SqlError::new(state::INVALID_PARAMETER_VALUE, m));
    }
    Ok(i.micros / USECS_PER_SEC)
}

/// A timestamp moved by a zone given as an interval; infinities do not look at it.
fn shift(zone: &Interval, t: i64, sign: i64) -> Result<i64, SqlError> {
    match timestamp_is_finite(t) {
        true => arith::shift(t, sign * zone_interval(zone)?),
        false => Ok(t),
    }
}

/// The zone of `make_timestamptz`: a signed offset or a name.
fn zone_sane(name: &str) -> Result<TimeZone, SqlError> {
    let bad = |m: String| SqlError::new(state::INVALID_PARAMETER_VALUE, m);
    if name.starts_with(|c: char| c.is_ascii_digit()) {
        return Err(bad(format!("invalid input syntax for type numeric time zone: \"{name}\""))
            .with_hint("Numeric time zones must have \"-\" or \"+\" as first character."));
    }
    if let Some(digits) = name.strip_prefix(['+', '-']) {
        // A part that is left out is 0.
        let parts: Option<Vec<i32>> = digits.trim_start().split(':').map(|p| if p.is_empty() { Some(0) } else { p.parse().ok() }).collect();
        let (h, m, s) = match parts.as_deref() {
            Some([h]) if digits.trim_start().len() <= 2 => (*h, 0, 0),
            Some([h]) => (h / 100, h % 100, 0),
            Some([h, m]) => (*h, *m, 0),
            Some([h, m, s]) => (*h, *m, *s),
            _ => return zone_named(name),
        };
        let secs = (i64::from(h) * 60 + i64::from(m)) * 60 + i64::from(s);
        if !(0..16 * 3600).contains(&secs) || !(0..60).contains(&m) || !(0..60).contains(&s) {
            return Err(bad(format!("numeric time zone \"{name}\" out of range")));
        }
        return Ok(TimeZone::fixed(if name.starts_with('-') { -secs } else { secs } as i32));
    }
    zone_named(name)
}

fn numeric_part(p: extract::Part) -> Option<Numeric> {
    p.numeric()
}

fn make_interval(args: &[Value]) -> Result<Value, SqlError> {
    let [Value::Int4(years), Value::Int4(months), Value::Int4(weeks), Value::Int4(days), Value::Int4(hours), Value::Int4(mins), Value::Float8(secs)] = args
    else {
        return Err(SqlError::internal("make_interval of other types"));
    };
    let out_of_range = repr::datetime::calendar::interval_out_of_range;
    if !secs.is_finite() {
        return Err(out_of_range());
    }
    let months = years.checked_mul(12).and_then(|m| m.checked_add(*months));
    let days = weeks.checked_mul(7).and_then(|d| d.checked_add(*days));
    let micros = (secs * 1e6).round_ties_even();
    let clock = (i64::from(*hours) * 3600 + i64::from(*mins) * 60) * USECS_PER_SEC;
    let micros = if micros.abs() < 9.2e18 { clock.checked_add(micros as i64) } else { None };
    match (months, days, micros) {
        (Some(months), Some(days), Some(micros)) => Ok(Value::Interval(Interval { months, days, micros })),
        _ => Err(out_of_range()),
    }
}

fn make_timestamp(args: &[Value]) -> Result<i64, SqlError> {
    match args {
        [Value::Int4(y), Value::Int4(mo), Value::Int4(d), Value::Int4(h), Value::Int4(mi), Value::Float8(s), ..] => {
            arith::make_timestamp(*y, *mo, *d, *h, *mi, *s)
        }
        _ => Err(SqlError::internal("make_timestamp of other types")),
    }
}

/// `(s1, e1) OVERLAPS (s2, e2)`; `cmp` orders two values that are not NULL. Ends may come first, and one of each pair may be NULL.
fn overlaps(args: &[Value], cmp: impl Fn(&Value, &Value) -> Ordering) -> Value {
    let [s1, e1, s2, e2] = args else { return Value::Null };
    // The lesser of each pair first; a NULL goes last.
    let ordered = |s: &Value, e: &Value| -> Option<(Value, Value)> {
        match (s.is_null(), e.is_null()) {
            (true, true) => None,
            (true, false) => Some((e.clone(), Value::Null)),
            (false, true) => Some((s.clone(), Value::Null)),
            (false, false) if cmp(s, e) == Ordering::Greater => Some((e.clone(), s.clone())),
            (false, false) => Some((s.clone(), e.clone())),
        }
    };
    let (Some((s1, e1)), Some((s2, e2))) = (ordered(s1, e1), ordered(s2, e2)) else { return Value::Null };
    let (late_s, early_e, late_e) = match cmp(&s1, &s2) {
        Ordering::Equal => {
            // Equal starts overlap, unless an unknown end leaves it open.
            return if e1.is_null() || e2.is_null() { Value::Null } else { Value::Bool(true) };
        }
        Ordering::Greater => (s1, e2, e1),
        Ordering::Less => (s2, e1, e2),
    };
    if early_e.is_null() {
        return Value::Null;
    }
    if cmp(&late_s, &early_e) == Ordering::Less {
        return Value::Bool(true);
    }
    if late_e.is_null() {
        Value::Null
    } else {
        Value::Bool(false)
    }
}

fn cmp_i64(a: &Value, b: &Value) -> Ordering {
    match (a, b) {
        (Value::Timestamp(x) | Value::TimestampTz(x) | Value::Time(x), Value::Timestamp(y) | Value::TimestampTz(y) | Value::Time(y)) => x.cmp(y),
        _ => Ordering::Equal,
    }
}

/// The forms of OVERLAPS whose ends are intervals: each end becomes its start plus it.
fn overlaps_intervals(args: &[Value], zone: &TimeZone) -> Result<Value, SqlError> {
    let end = |start: &Value, end: &Value| -> Result<Value, SqlError> {
        Ok(match (start, end) {
            (_, Value::Null) => Value::Null,
            (Value::Null, Value::Interval(_)) => Value::Null,
            (Value::Timestamp(t), Value::Interval(i)) => Value::Timestamp(arith::timestamp_add(*t, i)?),
            (Value::TimestampTz(t), Value::Interval(i)) => Value::TimestampTz(arith::timestamptz_add(*t, i, zone)?),
            (Value::Time(t), Value::Interval(i)) => Value::Time(arith::time_add(*t, i.micros)),
            (_, e) => e.clone(),
        })
    };
    let [s1, e1, s2, e2] = args else { return Ok(Value::Null) };
    Ok(overlaps(&[s1.clone(), end(s1, e1)?, s2.clone(), end(s2, e2)?], cmp_i64))
}

/// The order of a date, timestamp or instant against one of another of these types.
fn mixed_cmp(a: &Value, b: &Value, zone: &TimeZone) -> Ordering {
    // All as 128-bit microseconds, since a date may lie beyond all timestamps.
    let local = |v: &Value| -> i128 {
        match v {
            Value::Date(i32::MIN) => i128::MIN,
            Value::Date(i32::MAX) => i128::MAX,
            Value::Date(d) => i128::from(*d) * i128::from(USECS_PER_DAY),
            Value::Timestamp(i64::MIN) | Value::TimestampTz(i64::MIN) => i128::MIN,
            Value::Timestamp(i64::MAX) | Value::TimestampTz(i64::MAX) => i128::MAX,
            Value::Timestamp(t) | Value::TimestampTz(t) => i128::from(*t),
            _ => 0,
        }
    };
    let instant = |v: &Value| -> i128 {
        match (v, local(v)) {
            (Value::TimestampTz(_), t) => t,
            (_, t) => match i64::try_from(t) {
                Ok(t) => i128::from(zone.to_utc(t)),
                Err(_) => t,
            },
        }
    };
    let zoned = matches!(a, Value::TimestampTz(_)) || matches!(b, Value::TimestampTz(_));
    match zoned {
        true => instant(a).cmp(&instant(b)),
        false => local(a).cmp(&local(b)),
    }
}

/// Comparison of two of the types date, timestamp, timestamptz.
macro_rules! mixed {
    ($($pair:literal: $eq:literal $ne:literal $lt:literal $le:literal $gt:literal $ge:literal $cmp:literal;)*) => { &[ $(
        kernel!([$eq], |c| compare(c, Ordering::is_eq)),
        kernel!([$ne], |c| compare(c, Ordering::is_ne)),
        kernel!([$lt], |c| compare(c, Ordering::is_lt)),
        kernel!([$le], |c| compare(c, Ordering::is_le)),
        kernel!([$gt], |c| compare(c, Ordering::is_gt)),
        kernel!([$ge], |c| compare(c, Ordering::is_ge)),
        kernel!([$cmp], |c| in_session2::<super::lift::Val, super::lift::Val, i32>(c, |a, b, s| Ok(mixed_cmp(&a, &b, &s.zone) as i32))),
    )* ] };
}

fn compare(c: &mut CallArgs<'_>, test: fn(Ordering) -> bool) -> ArrayRef {
    use super::lift::Val;
    let (args, types, len) = (c.args, c.arg_types, c.len);
    let (a, b, s) = (Val::open(&args[0], &types[0].ty), Val::open(&args[1], &types[1].ty), session(c));
    rows(c, |i| Ok(test(mixed_cmp(&Val::get(&a, at(&args[0], len, i)), &Val::get(&b, at(&args[1], len, i)), &s.zone))))
}

pub const MIXED: &[Entry] = mixed! {
    "date, timestamp": "date_eq_timestamp" "date_ne_timestamp" "date_lt_timestamp" "date_le_timestamp" "date_gt_timestamp" "date_ge_timestamp" "date_cmp_timestamp";
    "timestamp, date": "timestamp_eq_date" "timestamp_ne_date" "timestamp_lt_date" "timestamp_le_date" "timestamp_gt_date" "timestamp_ge_date" "timestamp_cmp_date";
    "date, timestamptz": "date_eq_timestamptz" "date_ne_timestamptz" "date_lt_timestamptz" "date_le_timestamptz" "date_gt_timestamptz" "date_ge_timestamptz" "date_cmp_timestamptz";
    "timestamptz, date": "timestamptz_eq_date" "timestamptz_ne_date" "timestamptz_lt_date" "timestamptz_le_date" "timestamptz_gt_date" "timestamptz_ge_date" "timestamptz_cmp_date";
    "timestamp, timestamptz": "timestamp_eq_timestamptz" "timestamp_ne_timestamptz" "timestamp_lt_timestamptz" "timestamp_le_timestamptz" "timestamp_gt_timestamptz" "timestamp_ge_timestamptz" "timestamp_cmp_timestamptz";
    "timestamptz, timestamp": "timestamptz_eq_timestamp" "timestamptz_ne_timestamp" "timestamptz_lt_timestamp" "timestamptz_le_timestamp" "timestamptz_gt_timestamp" "timestamptz_ge_timestamp" "timestamptz_cmp_timestamp";
};

pub const FUNCS: &[Entry] = &[
    // Dates.
    f2!(? ["date_pli"], i32, i32 => i32, arith::date_add),
    f2!(? ["2550"], i32, i32 => i32, |n, d| arith::date_add(d, n)),
    f2!(? ["date_mii"], i32, i32 => i32, |d, n| match n.checked_neg() {
        Some(n) => arith::date_add(d, n),
        None => Err(repr::datetime::calendar::date_out_of_range()),
    }),
    f2!(? ["date_mi"], i32, i32 => i32, arith::date_sub),
    f2!(? ["date_pl_interval"], i32, Interval => i64, |d, i| arith::timestamp_add(arith::date_to_timestamp(d)?, &i)),
    f2!(? ["2546"], Interval, i32 => i64, |i, d| arith::timestamp_add(arith::date_to_timestamp(d)?, &i)),
    f2!(? ["date_mi_interval"], i32, Interval => i64, |d, i| arith::timestamp_add(arith::date_to_timestamp(d)?, &negated(&i)?)),
    f1!(? ["date_timestamp"], i32 => i64, arith::date_to_timestamp),
    kernel!(? ["date_timestamptz"], |c| in_session1::<i32, i64>(c, |d, s| arith::date_to_timestamptz(d, &s.zone))),
    f2!(? ["datetime_timestamp"], i32, i64 => i64, arith::date_time),
    f2!(? ["1296"], i64, i32 => i64, |t, d| arith::date_time(d, t)),
    f2!(? ["datetimetz_timestamptz"], i32, TimeTz => i64, arith::date_timetz),
    f2!(? ["1298"], TimeTz, i32 => i64, |t, d| arith::date_timetz(d, t)),
    kernel!(? ["1176"], |c| in_session2::<i32, i64, i64>(c, |d, t, s| arith::to_utc(arith::date_time(d, t)?, &s.zone))),
    f1!(["date_finite"], i32 => bool, date_is_finite),
    f3!(? ["make_date"], i32, i32, i32 => i32, arith::make_date),
    // Timestamps.
    f2!(? ["timestamp_pl_interval"], i64, Interval => i64, |t, i| arith::timestamp_add(t, &i)),
    f2!(? ["2548"], Interval, i64 => i64, |i, t| arith::timestamp_add(t, &i)),
    f2!(? ["timestamp_mi_interval"], i64, Interval => i64, |t, i| arith::timestamp_add(t, &negated(&i)?)),
    f2!(? ["timestamp_mi"], i64, i64 => Interval, arith::timestamp_sub),
    kernel!(? ["timestamptz_pl_interval"], |c| in_session2::<i64, Interval, i64>(c, |t, i, s| arith::timestamptz_add(t, &i, &s.zone))),
    kernel!(? ["2549"], |c| in_session2::<Interval, i64, i64>(c, |i, t, s| arith::timestamptz_add(t, &i, &s.zone))),
    kernel!(? ["timestamptz_mi_interval"], |c| in_session2::<i64, Interval, i64>(c, |t, i, s| arith::timestamptz_add(t, &negated(&i)?, &s.zone))),
    f1!(["timestamp_date"], i64 => i32, arith::timestamp_to_date),
    kernel!(? ["timestamptz_date"], |c| in_session1::<i64, i32>(c, |t, s| Ok(arith::timestamp_to_date(s.zone.to_local(t))))),
    f1!(["timestamp_time"], i64 => Option<i64>, |t| timestamp_is_finite(t).then(|| t.rem_euclid(USECS_PER_DAY))),
    kernel!(["timestamptz_time"], |c| in_session1::<i64, Option<i64>>(c, |t, s| {
        Ok(timestamp_is_finite(t).then(|| s.zone.to_local(t).rem_euclid(USECS_PER_DAY)))
    })),
    kernel!(["timestamptz_timetz"], |c| in_session1::<i64, Option<TimeTz>>(c, |t, s| {
        let local = s.zone.to_local(t);
        Ok(timestamp_is_finite(t).then(|| TimeTz { micros: local.rem_euclid(USECS_PER_DAY), zone_secs: -s.zone.offset_at(t) }))
    })),
    kernel!(? ["timestamp_timestamptz"], |c| in_session1::<i64, i64>(c, |t, s| arith::to_utc(t, &s.zone))),
    kernel!(? ["timestamptz_timestamp"], |c| in_session1::<i64, i64>(c, |t, s| arith::to_local(t, &s.zone))),
    f1!(["timestamp_finite"], i64 => bool, timestamp_is_finite),
    f1!(["interval_finite"], Interval => bool, |_| true),
    f2!(? ["timestamp_age"], i64, i64 => Interval, arith::age),
    kernel!(? ["timestamptz_age"], |c| in_session2::<i64, i64, Interval>(c, |a, b, s| arith::age(s.zone.to_local(a), s.zone.to_local(b)))),
    kernel!(? ["2059"], |c| in_session1::<i64, Interval>(c, |t, s| arith::age(today(s), t))),
    kernel!(? ["1386"], |c| in_session1::<i64, Interval>(c, |t, s| arith::age(today(s), s.zone.to_local(t)))),
    f3!(? ["timestamp_bin", "timestamptz_bin"], Interval, i64, i64 => i64, |i, t, origin| arith::bin(&i, t, origin)),
    f1!(? ["float8_timestamptz"], f64 => i64, arith::from_unix_seconds),
    val!(? ["make_timestamp"], |a, _| make_timestamp(a).map(Value::Timestamp)),
    val!(? ["make_timestamptz"], |a, call| {
        let zone = TimeZone::parse(&call.ctx.timezone).unwrap_or(TimeZone::UTC);
        arith::to_utc(make_timestamp(a)?, &zone).map(Value::TimestampTz)
    }),
    val!(? ["make_timestamptz_at_timezone"], |a, _| {
        let zone = zone_sane(a.last().and_then(Value::as_str).unwrap_or(""))?;
        arith::to_utc(make_timestamp(a)?, &zone).map(Value::TimestampTz)
    }),
    f3!(? ["make_time"], i32, i32, f64 => i64, arith::make_time),
    val!(? ["make_interval"], |a, _| make_interval(a)),
    // AT TIME ZONE.
    f2!(? ["timestamp_zone"], Str, i64 => i64, |z, t| {
        let lower = z.to_ascii_lowercase();
        match repr::datetime::abbreviation(&lower) {
            // Of a zone whose offset has changed: the one that the abbreviation meant then.
            Some(a @ Abbrev::Zone(_)) if timestamp_is_finite(t) => arith::shift(t, -i64::from(TimeZone::abbrev_offset(a, &lower, t))),
            _ => arith::to_utc(t, &zone_named(z)?),
        }
    }),
    f2!(? ["timestamptz_zone"], Str, i64 => i64, |z, t| arith::to_local(t, &zone_named(z)?)),
    f2!(? ["timestamp_izone"], Interval, i64 => i64, |z, t| shift(&z, t, -1)),
    f2!(? ["timestamptz_izone"], Interval, i64 => i64, |z, t| shift(&z, t, 1)),
    kernel!(? ["timetz_zone"], |c| in_session2::<Str, TimeTz, TimeTz>(c, |z, t, s| {
        Ok(arith::timetz_in_zone(t, -zone_named(z)?.offset_at(s.now)))
    })),
    f2!(? ["timetz_izone"], Interval, TimeTz => TimeTz, |z, t| Ok(arith::timetz_in_zone(t, -zone_interval(&z)? as i32))),
    // Times.
    f2!(["time_pl_interval"], i64, Interval => i64, |t, i| arith::time_add(t, i.micros)),
    f2!(["1848"], Interval, i64 => i64, |i, t| arith::time_add(t, i.micros)),
    f2!(["time_mi_interval"], i64, Interval => i64, |t, i| arith::time_add(arith::time_add(0, i.micros).wrapping_neg(), t)),
    f2!(["time_mi_time"], i64, i64 => Interval, |a, b| Interval { months: 0, days: 0, micros: a - b }),
    f2!(["timetz_pl_interval"], TimeTz, Interval => TimeTz, |t, i| TimeTz { micros: arith::time_add(t.micros, i.micros), ..t }),
    f2!(["2547"], Interval, TimeTz => TimeTz, |i, t| TimeTz { micros: arith::time_add(t.micros, i.micros), ..t }),
    f2!(["timetz_mi_interval"], TimeTz, Interval => TimeTz, |t, i| {
        TimeTz { micros: arith::time_add(arith::time_add(0, i.micros).wrapping_neg(), t.micros), ..t }
    }),
    f1!(["time_interval"], i64 => Interval, |t| Interval { months: 0, days: 0, micros: t }),
    f1!(["interval_time"], Interval => i64, |i| arith::time_add(0, i.micros)),
    kernel!(["time_timetz"], |c| in_session1::<i64, TimeTz>(c, |t, s| Ok(TimeTz { micros: t, zone_secs: -s.zone.offset_at(s.now) }))),
    f1!(["timetz_time"], TimeTz => i64, |t| t.micros),
    // Intervals.
    f2!(? ["interval_pl"], Interval, Interval => Interval, |a, b| interval::add(&a, &b)),
    f2!(? ["interval_mi"], Interval, Interval => Interval, |a, b| interval::sub(&a, &b)),
    f1!(? ["interval_um"], Interval => Interval, |a| negated(&a)),
    f2!(? ["interval_mul"], Interval, f64 => Interval, |a, f| interval::mul(&a, f)),
    f2!(? ["mul_d_interval"], f64, Interval => Interval, |f, a| interval::mul(&a, f)),
    f2!(? ["interval_div"], Interval, f64 => Interval, |a, f| interval::div(&a, f)),
    f1!(? ["interval_justify_interval"], Interval => Interval, |a| interval::justify(&a)),
    f1!(? ["interval_justify_hours"], Interval => Interval, |a| interval::justify_hours(&a)),
    f1!(? ["interval_justify_days"], Interval => Interval, |a| interval::justify_days(&a)),
    // Parts.
    f2!(? ["extract_date"], Str, i32 => Option<Numeric>, |u, d| extract::date_part(u, d).map(numeric_part)),
    f2!(? ["extract_time"], Str, i64 => Option<Numeric>, |u, t| extract::time_part(u, t).map(numeric_part)),
    f2!(? ["extract_timetz"], Str, TimeTz => Option<Numeric>, |u, t| extract::timetz_part(u, t).map(numeric_part)),
    f2!(? ["extract_timestamp"], Str, i64 => Option<Numeric>, |u, t| extract::timestamp_part(u, t, None).map(numeric_part)),
    kernel!(? ["extract_timestamptz"], |c| in_session2::<Str, i64, Option<Numeric>>(c, |u, t, s| {
        extract::timestamp_part(u, t, Some(&s.zone)).map(numeric_part)
    })),
    f2!(? ["extract_interval"], Str, Interval => Option<Numeric>, |u, i| extract::interval_part(u, &i).map(numeric_part)),
    f2!(? ["time_part"], Str, i64 => Option<f64>, |u, t| extract::time_part(u, t).map(|p| p.double())),
    f2!(? ["timetz_part"], Str, TimeTz => Option<f64>, |u, t| extract::timetz_part(u, t).map(|p| p.double())),
    f2!(? ["timestamp_part"], Str, i64 => Option<f64>, |u, t| extract::timestamp_part(u, t, None).map(|p| p.double())),
    f2!(? ["1384"], Str, i32 => Option<f64>, |u, d| extract::timestamp_part(u, arith::date_to_timestamp(d)?, None).map(|p| p.double())),
    kernel!(? ["timestamptz_part"], |c| in_session2::<Str, i64, Option<f64>>(c, |u, t, s| {
        extract::timestamp_part(u, t, Some(&s.zone)).map(|p| p.double())
    })),
    f2!(? ["interval_part"], Str, Interval => Option<f64>, |u, i| extract::interval_part(u, &i).map(|p| p.double())),
    f2!(? ["timestamp_trunc"], Str, i64 => i64, extract::timestamp_trunc),
    kernel!(? ["timestamptz_trunc"], |c| in_session2::<Str, i64, i64>(c, |u, t, s| extract::timestamptz_trunc(u, t, &s.zone))),
    f3!(? ["timestamptz_trunc_zone"], Str, i64, Str => i64, |u, t, z| extract::timestamptz_trunc(u, t, &zone_named(z)?)),
    f2!(? ["interval_trunc"], Str, Interval => Interval, |u, i| extract::interval_trunc(u, &i)),
    // OVERLAPS.
    vals!(["overlaps_timestamp", "overlaps_time"], |a, _| Ok(overlaps(a, cmp_i64))),
    vals!(["overlaps_timetz"], |a, _| Ok(overlaps(a, |x, y| x.sql_cmp(y, &repr::SqlType::TimeTz)))),
    vals!(? ["1305", "1306", "1307", "1309", "1310", "1311", "2042", "2043", "2044"], |a, call| {
        overlaps_intervals(a, &TimeZone::parse(&call.ctx.timezone).unwrap_or(TimeZone::UTC))
    }),
];

/// Midnight of the session's day, local.
fn today(s: &Session) -> i64 {
    s.zone.to_local(s.now).div_euclid(USECS_PER_DAY) * USECS_PER_DAY
}
