//! Ranges: canonical form, order of bounds, sets of them.
//!
//! Ranges over int4, int8 and date are kept as `[a,b)`. Multiranges are sorted, without empty, touching or overlapping members.

use crate::datetime::calendar::{date_is_finite, date_out_of_range, is_valid_date};
use crate::error::{state, SqlError};
use crate::types::SqlType;
use crate::value::{RangeValue, Value};
use std::cmp::Ordering;

/// A bound: `None` is infinite.
#[derive(Clone, Debug, PartialEq)]
pub struct Bound {
    pub value: Option<Value>,
    pub inclusive: bool,
}

/// Compares two bounds of one side or of different sides, where `lower` says which side each is of.
pub fn cmp_bounds(elem: &SqlType, a: &Bound, a_lower: bool, b: &Bound, b_lower: bool) -> Ordering {
    match (&a.value, &b.value) {
        (None, None) if a_lower == b_lower => Ordering::Equal,
        (None, _) => {
            if a_lower {
                Ordering::Less
            } else {
                Ordering::Greater
            }
        }
        (_, None) => {
            if b_lower {
                Ordering::Greater
            } else {
                Ordering::Less
            }
        }
        (Some(x), Some(y)) => x.sql_cmp(y, elem).then_with(|| {
            // An excluded bound lies just inside the value.
            let inside = |inclusive: bool, lower: bool| match (inclusive, lower) {
                (true, _) => 0,
                (false, true) => 1,
                (false, false) => -1,
            };
            inside(a.inclusive, a_lower).cmp(&inside(b.inclusive, b_lower))
        }),
    }
}

/// The bounds of a range that is not empty.
pub fn bounds(r: &RangeValue) -> Option<(Bound, Bound)> {
    match r {
        RangeValue::Empty => None,
        RangeValue::Span { lower, upper, lower_inc, upper_inc } => {
            Some((Bound { value: lower.as_deref().cloned(), inclusive: *lower_inc }, Bound { value: upper.as_deref().cloned(), inclusive: *upper_inc }))
        }
    }
}

/// A range of a range type, or of a multirange type's ranges, in canonical form; user-defined types have none.
/// Errors: 22000 if the lower bound is greater than the upper; 22003 or 22008 where `[a,b]` cannot become `[a,b+1)`.
pub fn make(ty: &SqlType, lower: Bound, upper: Bound) -> Result<RangeValue, SqlError> {
    let elem = ty.range_elem().or(ty.multirange_elem()).unwrap_or(ty);
    if let (Some(l), Some(u)) = (&lower.value, &upper.value) {
        match l.sql_cmp(u, elem) {
            Ordering::Greater => return Err(SqlError::new(state::DATA_EXCEPTION, "range lower bound must be less than or equal to range upper bound")),
            Ordering::Equal if !(lower.inclusive && upper.inclusive) => return Ok(RangeValue::Empty),
            _ => {}
        }
    }
    let mut lower_inc = lower.inclusive && lower.value.is_some();
    let mut upper_inc = upper.inclusive && upper.value.is_some();
    let (mut lower, mut upper) = (lower.value, upper.value);
    let discrete = matches!(elem, SqlType::Int4 | SqlType::Int8 | SqlType::Date);
    if discrete && matches!(ty, SqlType::Range(_) | SqlType::Multirange(_)) {
        if let (Some(v), false) = (&mut lower, lower_inc) {
            lower_inc |= next(v)?;
        }
        if let (Some(v), true) = (&mut upper, upper_inc) {
            upper_inc = !next(v)?;
        }
        if let (Some(l), Some(u)) = (&lower, &upper) {
            if l.sql_cmp(u, elem) != Ordering::Less && !(lower_inc && upper_inc) {
                return Ok(RangeValue::Empty);
            }
        }
    }
    Ok(RangeValue::Span { lower: lower.map(Box::new), upper: upper.map(Box::new), lower_inc, upper_inc })
}

/// Moves a discrete value one on; `false` where it stays (an infinite date).
fn next(v: &mut Value) -> Result<bool, SqlError> {
    let out_of = |ty: &str| SqlError::new(state::NUMERIC_VALUE_OUT_OF_RANGE, format!("{ty} out of range"));
    match v {
        Value::Int4(x) => *x = x.checked_add(1).ok_or_else(|| out_of("integer"))?,
        Value::Int8(x) => *x = x.checked_add(1).ok_or_else(|| out_of("bigint"))?,
        Value::Date(d) if !date_is_finite(*d) => return Ok(false),
        Value::Date(d) => {
            *d += 1;
            if !is_valid_date(*d) {
                return Err(date_out_of_range());
            }
        }
        _ => {}
    }
    Ok(true)
}

fn span(lower: Bound, upper: Bound) -> RangeValue {
    RangeValue::Span { lower_inc: lower.inclusive, upper_inc: upper.inclusive, lower: lower.value.map(Box::new), upper: upper.value.map(Box::new) }
}

/// Whether no value lies between an upper and a lower bound, and none is in both.
pub fn adjacent(elem: &SqlType, upper: &Bound, lower: &Bound) -> bool {
    match (&upper.value, &lower.value) {
        (Some(u), Some(l)) => u.sql_cmp(l, elem) == Ordering::Equal && upper.inclusive != lower.inclusive,
        _ => false,
    }
}

/// A multirange of these ranges.
pub fn make_multi(elem: &SqlType, ranges: Vec<RangeValue>) -> Vec<RangeValue> {
    let mut all: Vec<(Bound, Bound)> = ranges.iter().filter_map(bounds).collect();
    all.sort_by(|a, b| cmp_bounds(elem, &a.0, true, &b.0, true).then_with(|| cmp_bounds(elem, &a.1, false, &b.1, false)));
    let mut out: Vec<(Bound, Bound)> = Vec::new();
    for (l, u) in all {
        match out.last_mut() {
            Some(last) if cmp_bounds(elem, &l, true, &last.1, false) != Ordering::Greater || adjacent(elem, &last.1, &l) => {
                if cmp_bounds(elem, &u, false, &last.1, false) == Ordering::Greater {
                    last.1 = u;
                }
            }
            _ => out.push((l, u)),
        }
    }
    out.into_iter().map(|(l, u)| span(l, u)).collect()
}
