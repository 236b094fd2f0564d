//! Ranges and multiranges: constructors, bounds, containment, set operations.
//!
//! A range is handled as a multirange of at most one member, so each operator is written once, for sets.
//! Not here: canonical form and the order of bounds (`repr::range`).

use super::lift::{on_values, Call};
use super::{Entry, FuncDef, Volatility};
use crate::{val, vals};
use repr::error::state;
use repr::range::{adjacent, bounds, cmp_bounds, make, make_multi, Bound};
use repr::{RangeValue, SqlError, SqlType, Value};
use std::cmp::Ordering;

type Span = (Bound, Bound);

/// The type over which a range or multirange type ranges.
fn subtype(ty: &SqlType) -> &SqlType {
    ty.range_elem().or(ty.multirange_elem()).unwrap_or(ty)
}

/// The members of a range, multirange, or single element.
fn spans(v: &Value) -> Vec<Span> {
    match v {
        Value::Range(r) => bounds(r).into_iter().collect(),
        Value::Multirange(rs) => rs.iter().filter_map(bounds).collect(),
        Value::Null => Vec::new(),
        v => {
            let b = Bound { value: Some(v.clone()), inclusive: true };
            vec![(b.clone(), b)]
        }
    }
}

fn elem_of<'a>(call: &'a Call<'_>) -> &'a SqlType {
    let is_range = |t: &&repr::ColType| t.ty.range_elem().or(t.ty.multirange_elem()).is_some();
    call.arg_types.iter().find(is_range).map_or_else(|| subtype(&call.ret.ty), |t| subtype(&t.ty))
}

fn lower(e: &SqlType, a: &Span, b: &Span) -> Ordering {
    cmp_bounds(e, &a.0, true, &b.0, true)
}
fn upper(e: &SqlType, a: &Span, b: &Span) -> Ordering {
    cmp_bounds(e, &a.1, false, &b.1, false)
}

fn contains_span(e: &SqlType, a: &Span, b: &Span) -> bool {
    lower(e, a, b).is_le() && upper(e, a, b).is_ge()
}
fn overlaps_span(e: &SqlType, a: &Span, b: &Span) -> bool {
    cmp_bounds(e, &a.0, true, &b.1, false).is_le() && cmp_bounds(e, &b.0, true, &a.1, false).is_le()
}

fn contains(e: &SqlType, a: &[Span], b: &[Span]) -> bool {
    b.iter().all(|y| a.iter().any(|x| contains_span(e, x, y)))
}
fn overlaps(e: &SqlType, a: &[Span], b: &[Span]) -> bool {
    a.iter().any(|x| b.iter().any(|y| overlaps_span(e, x, y)))
}
/// All of `a` lies before all of `b`.
fn before(e: &SqlType, a: &[Span], b: &[Span]) -> bool {
    match (a.last(), b.first()) {
        (Some(x), Some(y)) => cmp_bounds(e, &x.1, false, &y.0, true).is_lt(),
        _ => false,
    }
}
fn overleft(e: &SqlType, a: &[Span], b: &[Span]) -> bool {
    matches!((a.last(), b.last()), (Some(x), Some(y)) if upper(e, x, y).is_le())
}
fn overright(e: &SqlType, a: &[Span], b: &[Span]) -> bool {
    matches!((a.first(), b.first()), (Some(x), Some(y)) if lower(e, x, y).is_ge())
}
fn touches(e: &SqlType, a: &[Span], b: &[Span]) -> bool {
    match (a.first(), a.last(), b.first(), b.last()) {
        (Some(a0), Some(a1), Some(b0), Some(b1)) => adjacent(e, &a1.1, &b0.0) || adjacent(e, &b1.1, &a0.0),
        _ => false,
    }
}

fn to_range(s: Span) -> RangeValue {
    RangeValue::Span { lower_inc: s.0.inclusive, upper_inc: s.1.inclusive, lower: s.0.value.map(Box::new), upper: s.1.value.map(Box::new) }
}

fn intersect(e: &SqlType, a: &[Span], b: &[Span]) -> Vec<Span> {
    let mut out = Vec::new();
    for x in a {
        for y in b.iter().filter(|y| overlaps_span(e, x, y)) {
            let lo = if lower(e, x, y).is_ge() { x.0.clone() } else { y.0.clone() };
            let hi = if upper(e, x, y).is_le() { x.1.clone() } else { y.1.clone() };
            out.push((lo, hi));
        }
    }
    out
}

fn minus(e: &SqlType, a: &[Span], b: &[Span]) -> Vec<Span> {
    let mut left: Vec<Span> = a.to_vec();
    for y in b {
        let mut next = Vec::new();
        for x in left {
            if !overlaps_span(e, &x, y) {
                next.push(x);
                continue;
            }
            let flip = |b: &Bound| Bound { value: b.value.clone(), inclusive: !b.inclusive };
            if lower(e, &x, y).is_lt() {
                next.push((x.0.clone(), flip(&y.0)));
            }
            if upper(e, &x, y).is_gt() {
                next.push((flip(&y.1), x.1.clone()));
            }
        }
        left = next;
    }
    left
}

fn merge(a: &[Span], b: &[Span], e: &SqlType) -> Option<Span> {
    let all: Vec<&Span> = a.iter().chain(b).collect();
    let lo = all.iter().min_by(|x, y| lower(e, x, y))?;
    let hi = all.iter().max_by(|x, y| upper(e, x, y))?;
    Some((lo.0.clone(), hi.1.clone()))
}

/// A set as the call's type: a multirange, or a range if it is one piece.
fn give(call: &Call<'_>, spans: Vec<Span>, not_contiguous: &str) -> Result<Value, SqlError> {
    let e = elem_of(call);
    let set = make_multi(e, spans.into_iter().map(to_range).collect());
    if call.ret.ty.multirange_elem().is_some() {
        return Ok(Value::Multirange(set));
    }
    match set.len() {
        0 => Ok(Value::Range(Box::new(RangeValue::Empty))),
        1 => {
            let (lo, hi) = bounds(&set[0]).ok_or_else(|| SqlError::internal("empty member of a multirange"))?;
            make(&call.ret.ty, lo, hi).map(|r| Value::Range(Box::new(r)))
        }
        _ => Err(SqlError::new(state::DATA_EXCEPTION, not_contiguous)),
    }
}

type Test = fn(&SqlType, &[Span], &[Span]) -> bool;

fn test(a: &[Value], call: &Call<'_>, f: Test) -> Result<Value, SqlError> {
    Ok(Value::Bool(f(elem_of(call), &spans(&a[0]), &spans(&a[1]))))
}

/// Emptiness makes a range contained in everything, also where its element type has no values.
fn construct(a: &[Value], call: &Call<'_>) -> Result<Value, SqlError> {
    let flags = match a.get(2) {
        None => "[)",
        Some(Value::Text(f)) => f.as_str(),
        _ => return Err(SqlError::new(state::DATA_EXCEPTION, "range constructor flags argument must not be null")),
    };
    let (lo, hi) = match flags {
        "[)" => (true, false),
        "[]" => (true, true),
        "()" => (false, false),
        "(]" => (false, true),
        _ => return Err(SqlError::new(state::SYNTAX_ERROR, "invalid range bound flags").with_hint("Valid values are \"[]\", \"[)\", \"(]\", and \"()\".")),
    };
    let bound = |v: &Value, inclusive| Bound { value: (!v.is_null()).then(|| v.clone()), inclusive };
    make(&call.ret.ty, bound(&a[0], lo), bound(&a[1], hi)).map(|r| Value::Range(Box::new(r)))
}

fn multi_construct(a: &[Value], call: &Call<'_>) -> Result<Value, SqlError> {
    let mut all = Vec::new();
    for v in a {
        match v {
            Value::Range(r) => all.push((**r).clone()),
            Value::Array(arr) => {
                for e in &arr.elems {
                    match e {
                        Value::Range(r) => all.push((**r).clone()),
                        _ => return Err(SqlError::new(state::NULL_VALUE_NOT_ALLOWED, "multirange values cannot contain null members")),
                    }
                }
            }
            _ => {}
        }
    }
    Ok(Value::Multirange(make_multi(subtype(&call.ret.ty), all)))
}

/// A bound's property; `None` for an empty range.
fn edge(a: &[Value], low: bool) -> Option<Bound> {
    let s = spans(&a[0]);
    if low {
        s.into_iter().next().map(|s| s.0)
    } else {
        s.into_iter().next_back().map(|s| s.1)
    }
}

fn value_of(b: Option<Bound>) -> Result<Value, SqlError> {
    Ok(b.and_then(|b| b.value).unwrap_or(Value::Null))
}

fn range_minus(a: &[Value], call: &Call<'_>) -> Result<Value, SqlError> {
    let set = minus(elem_of(call), &spans(&a[0]), &spans(&a[1]));
    give(call, set, "result of range difference would not be contiguous")
}

fn range_union(a: &[Value], call: &Call<'_>) -> Result<Value, SqlError> {
    let mut set = spans(&a[0]);
    set.extend(spans(&a[1]));
    give(call, set, "result of range union would not be contiguous")
}

fn range_intersect(a: &[Value], call: &Call<'_>) -> Result<Value, SqlError> {
    let set = intersect(elem_of(call), &spans(&a[0]), &spans(&a[1]));
    give(call, set, "result of range intersection would not be contiguous")
}

/// Constructors of user-defined range types, which have no row in pg_proc.
pub const INTERNAL: &[FuncDef] = &[
    FuncDef { name: "range_construct", oid: 0, strict: false, volatility: Volatility::Immutable, fallible: true, kernel: |c| on_values(c, false, construct) },
    FuncDef {
        name: "multirange_construct",
        oid: 0,
        strict: true,
        volatility: Volatility::Immutable,
        fallible: true,
        kernel: |c| on_values(c, true, multi_construct),
    },
];

pub const FUNCS: &[Entry] = &[
    vals!(? ["range_constructor2", "range_constructor3"], construct),
    val!(["multirange_constructor0"], multi_construct),
    val!(? ["multirange_constructor1", "multirange_constructor2"], multi_construct),
    val!(["range_lower", "multirange_lower"], |a, _| value_of(edge(a, true))),
    val!(["range_upper", "multirange_upper"], |a, _| value_of(edge(a, false))),
    val!(["range_empty", "multirange_empty"], |a, _| Ok(Value::Bool(spans(&a[0]).is_empty()))),
    val!(["range_lower_inc", "multirange_lower_inc"], |a, _| Ok(Value::Bool(edge(a, true).is_some_and(|b| b.inclusive)))),
    val!(["range_upper_inc", "multirange_upper_inc"], |a, _| Ok(Value::Bool(edge(a, false).is_some_and(|b| b.inclusive)))),
    val!(["range_lower_inf", "multirange_lower_inf"], |a, _| Ok(Value::Bool(edge(a, true).is_some_and(|b| b.value.is_none())))),
    val!(["range_upper_inf", "multirange_upper_inf"], |a, _| Ok(Value::Bool(edge(a, false).is_some_and(|b| b.value.is_none())))),
    val!(
        [
            "range_contains",
            "range_contains_elem",
            "range_contains_multirange",
            "multirange_contains_elem",
            "multirange_contains_multirange",
            "multirange_contains_range"
        ],
        |a, call| test(a, call, contains)
    ),
    val!(
        [
            "range_contained_by",
            "elem_contained_by_range",
            "range_contained_by_multirange",
            "elem_contained_by_multirange",
            "multirange_contained_by_multirange",
            "multirange_contained_by_range"
        ],
        |a, call| test(a, call, |e, x, y| contains(e, y, x))
    ),
    val!(["range_overlaps", "range_overlaps_multirange", "multirange_overlaps_multirange", "multirange_overlaps_range"], |a, call| test(a, call, overlaps)),
    val!(["range_before", "range_before_multirange", "multirange_before_multirange", "multirange_before_range"], |a, call| test(a, call, before)),
    val!(["range_after", "range_after_multirange", "multirange_after_multirange", "multirange_after_range"], |a, call| {
        test(a, call, |e, x, y| before(e, y, x))
    }),
    val!(["range_overleft", "range_overleft_multirange", "multirange_overleft_multirange", "multirange_overleft_range"], |a, call| test(a, call, overleft)),
    val!(["range_overright", "range_overright_multirange", "multirange_overright_multirange", "multirange_overright_range"], |a, call| {
        test(a, call, overright)
    }),
    val!(["range_adjacent", "range_adjacent_multirange", "multirange_adjacent_multirange", "multirange_adjacent_range"], |a, call| test(a, call, touches)),
    val!(? ["range_union"], range_union),
    val!(? ["multirange_union"], range_union),
    val!(? ["range_intersect", "multirange_intersect"], range_intersect),
    val!(? ["range_minus", "multirange_minus"], range_minus),
    val!(["range_merge", "range_merge_from_multirange"], |a, call| {
        let (x, y) = (spans(&a[0]), a.get(1).map(spans).unwrap_or_default());
        Ok(Value::Range(Box::new(merge(&x, &y, elem_of(call)).map_or(RangeValue::Empty, to_range))))
    }),
];

/// `range_agg`: the union of ranges.
pub fn union_all(values: &[&Value], elem: &SqlType) -> Value {
    let all = values.iter().flat_map(|v| spans(v)).map(to_range).collect();
    Value::Multirange(make_multi(elem, all))
}

/// `range_intersect_agg`: the intersection of ranges or of multiranges, in the form of the first.
pub fn intersect_all(values: &[&Value], ty: &SqlType) -> Value {
    let e = subtype(ty);
    let mut it = values.iter();
    let Some(first) = it.next() else { return Value::Null };
    let set = it.fold(spans(first), |acc, v| intersect(e, &acc, &spans(v)));
    match ty {
        _ if ty.multirange_elem().is_some() => Value::Multirange(make_multi(e, set.into_iter().map(to_range).collect())),
        _ => Value::Range(Box::new(set.into_iter().next().map_or(RangeValue::Empty, to_range))),
    }
}
