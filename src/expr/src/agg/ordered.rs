//! Ordered-set aggregates (mode, percentiles) and hypothetical-set ones (rank and its like).
//!
//! Tuples hold the direct arguments first, then the WITHIN GROUP ones, and come in the WITHIN GROUP order.

use super::{write_order_key, Aggregate, BasicCall};
use crate::ctx::EvalCtx;
use crate::eval_const;
use repr::error::state;
use repr::value::ArrayValue;
use repr::{Interval, SqlError, Value};

/// The most frequent value; of several, the first in order.
pub fn mode(c: &BasicCall<'_>) -> Result<Value, SqlError> {
    let ty = &c.types[c.agg.direct].ty;
    let mut best: Option<(&Value, i64)> = None;
    let mut run: Option<(&Value, i64)> = None;
    for (t, n) in c.rows {
        let v = &t[c.agg.direct];
        if v.is_null() {
            continue;
        }
        run = match run {
            Some((r, m)) if r.sql_cmp(v, ty).is_eq() => Some((r, m + n)),
            _ => Some((v, *n)),
        };
        if run.map_or(0, |r| r.1) > best.map_or(0, |b| b.1) {
            best = run;
        }
    }
    Ok(best.map_or(Value::Null, |b| b.0.clone()))
}

/// The ordered values that are not NULL, with the number of values up to and including each.
struct Ordered<'a> {
    values: Vec<(&'a Value, i64)>,
}

impl<'a> Ordered<'a> {
    fn new(c: &BasicCall<'a>) -> Ordered<'a> {
        let mut total = 0;
        let values = c.rows.iter().filter(|(t, _)| !t[c.agg.direct].is_null()).map(|(t, n)| {
            total += n;
            (&t[c.agg.direct], total)
        });
        Ordered { values: values.collect() }
    }
    fn total(&self) -> i64 {
        self.values.last().map_or(0, |v| v.1)
    }
    /// Value number `i`, from 0.
    fn at(&self, i: i64) -> &'a Value {
        let k = self.values.partition_point(|v| v.1 <= i).min(self.values.len() - 1);
        self.values[k].0
    }
}

fn fraction(v: &Value) -> Result<Option<f64>, SqlError> {
    match v {
        Value::Float8(f) if !(0.0..=1.0).contains(f) => {
            Err(SqlError::new(state::NUMERIC_VALUE_OUT_OF_RANGE, format!("percentile value {f} is not between 0 and 1")))
        }
        Value::Float8(f) => Ok(Some(*f)),
        _ => Ok(None),
    }
}

/// What is wrong with a percentile that is a constant: it is looked at also where there are no rows.
pub fn wrong_percentile(agg: &Aggregate) -> Option<SqlError> {
    let percentile = matches!(agg.func.name, "percentile_cont" | "percentile_disc");
    let asked = agg.args.first().filter(|a| percentile && a.support().is_empty() && a.is_immutable(&[]))?;
    match eval_const(asked, &EvalCtx::default()) {
        Ok(v) => fraction(&v).err(),
        Err(_) => None,
    }
}

/// Applies `f` to the direct argument, a fraction or an array of fractions.
fn percentiles(c: &BasicCall<'_>, f: impl Fn(&Ordered<'_>, f64) -> Result<Value, SqlError>) -> Result<Value, SqlError> {
    let ordered = Ordered::new(c);
    let Some((first, _)) = c.rows.first() else { return wrong_percentile(c.agg).map_or(Ok(Value::Null), Err) };
    match &first[0] {
        Value::Array(a) => {
            let one = |v: &Value| match fraction(v)? {
                Some(p) if ordered.total() > 0 => f(&ordered, p),
                _ => Ok(Value::Null),
            };
            if ordered.total() == 0 {
                return Ok(Value::Null);
            }
            let elems = a.elems.iter().map(one).collect::<Result<Vec<_>, _>>()?;
            Ok(Value::Array(Box::new(ArrayValue { elems, dims: a.dims.clone() })))
        }
        v => match fraction(v)? {
            Some(p) if ordered.total() > 0 => f(&ordered, p),
            _ => Ok(Value::Null),
        },
    }
}

pub fn percentile_disc(c: &BasicCall<'_>) -> Result<Value, SqlError> {
    percentiles(c, |o, p| {
        let row = (p * o.total() as f64).ceil() as i64;
        Ok(o.at((row - 1).max(0)).clone())
    })
}

pub fn percentile_cont(c: &BasicCall<'_>) -> Result<Value, SqlError> {
    percentiles(c, |o, p| {
        let place = p * (o.total() - 1) as f64;
        let (lo, hi) = (o.at(place.floor() as i64), o.at(place.ceil() as i64));
        let part = place - place.floor();
        Ok(match (lo, hi) {
            (Value::Float8(a), Value::Float8(b)) if place.floor() != place.ceil() => Value::Float8(a + part * (b - a)),
            (Value::Interval(a), Value::Interval(b)) if place.floor() != place.ceil() => Value::Interval(between(*a, *b, part)),
            (v, _) => v.clone(),
        })
    })
}

/// `a + part * (b - a)` with Postgres's carrying of fractions.
fn between(a: Interval, b: Interval, part: f64) -> Interval {
    let round = |x: f64| (x * 1e6).round_ties_even() / 1e6;
    let diff = Interval { months: b.months.wrapping_sub(a.months), days: b.days.wrapping_sub(a.days), micros: b.micros.wrapping_sub(a.micros) };
    let (months, days) = (f64::from(diff.months) * part, f64::from(diff.days) * part);
    let rest_days = round((months - months.trunc()) * 30.0);
    let mut rest_secs = round((days - days.trunc() + rest_days - rest_days.trunc()) * 86400.0);
    let mut whole_days = days as i32 + rest_days as i32;
    if rest_secs.abs() >= 86400.0 {
        whole_days += (rest_secs / 86400.0) as i32;
        rest_secs %= 86400.0;
    }
    let micros = (diff.micros as f64 * part + rest_secs * 1e6).round_ties_even() as i64;
    Interval { months: a.months.wrapping_add(months as i32), days: a.days.wrapping_add(whole_days), micros: a.micros.wrapping_add(micros) }
}

/// How many rows come before the hypothetical one, how many are its peers, how many distinct ones come before, and all.
struct Place {
    before: i64,
    peers: i64,
    distinct_before: i64,
    total: i64,
}

fn place(c: &BasicCall<'_>) -> Place {
    let mut p = Place { before: 0, peers: 0, distinct_before: 0, total: 0 };
    let n = c.agg.direct;
    let key = |values: &[Value]| {
        let mut out = Vec::new();
        for ((v, t), (_, o)) in values.iter().zip(&c.types[n..]).zip(&c.agg.order_by) {
            write_order_key(v, &t.ty, o, &mut out);
        }
        out
    };
    let Some((first, _)) = c.rows.first() else { return p };
    let mine = key(&first[..n]);
    let mut last: Option<Vec<u8>> = None;
    for (t, m) in c.rows {
        let theirs = key(&t[n..]);
        p.total += m;
        if theirs < mine {
            p.before += m;
            if last.as_ref() != Some(&theirs) {
                p.distinct_before += 1;
                last = Some(theirs);
            }
        } else if theirs == mine {
            p.peers += m;
        }
    }
    p
}

pub fn rank(c: &BasicCall<'_>) -> Result<Value, SqlError> {
    Ok(Value::Int8(place(c).before + 1))
}
pub fn dense_rank(c: &BasicCall<'_>) -> Result<Value, SqlError> {
    Ok(Value::Int8(place(c).distinct_before + 1))
}
pub fn percent_rank(c: &BasicCall<'_>) -> Result<Value, SqlError> {
    let p = place(c);
    Ok(Value::Float8(if p.total == 0 { 0.0 } else { p.before as f64 / p.total as f64 }))
}
pub fn cume_dist(c: &BasicCall<'_>) -> Result<Value, SqlError> {
    let p = place(c);
    Ok(Value::Float8((p.before + p.peers + 1) as f64 / (p.total + 1) as f64))
}
