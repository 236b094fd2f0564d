//! Lists and maps of the Materialize dialect. They have no rows in pg_proc: all are our own entries, and the binder knows their types.
//!
//! | name | arguments | result |
//! |---|---|---|
//! | `list_construct` | `(e1, .., en)` | `LIST[..]` |
//! | `list_append`, `list_prepend` | `(list, e)`, `(e, list)` | a list with an element more; NULL is an empty list |
//! | `list_cat` | `(list, list)` | the other, if one is NULL |
//! | `list_remove` | `(list, e)` | without the elements that are `e` |
//! | `list_length`, `list_length_max` | `(list)`, `(list, layer int8)` | of the list; the longest of a layer, from 1 |
//! | `list_subscript` | `(list, i1 int8, .., in)` | an element, through layers; NULL outside |
//! | `list_slice` | `(list, mask int4, lo int8, hi int8)` | bit 0: `lo` was omitted, bit 1: `hi` |
//! | `list_contains` | `(list, list)` | whether each element of the second is in the first |
//! | `map_construct` | `(k1 text, v1, .., kn, vn)` | `MAP[..]`; of equal keys the last counts |
//! | `map_build` | `(records of key and value as a list or array)` | a map; a NULL key or record is left out |
//! | `map_get`, `map_has` | `(map, key text)` | |
//! | `map_has_all`, `map_has_any` | `(map, text[])` | |
//! | `map_contains` | `(map, map)` | whether the second's entries are all in the first |
//! | `map_length` | `(map)` | |
//!
//! A list is kept as an array of one dimension, whatever its elements are; a map's entries by key, sorted.

use super::lift::{on_values, Call, ValueFn};
use super::{FuncDef, Kernel, Volatility};
use repr::error::state;
use repr::value::ArrayValue;
use repr::{SqlError, SqlType, Value};

const fn entry(name: &'static str, strict: bool, fallible: bool, kernel: Kernel) -> FuncDef {
    FuncDef { name, oid: 0, strict, volatility: Volatility::Immutable, fallible, kernel }
}

macro_rules! entries {
    ($($name:literal, $strict:literal, $fallible:literal, $f:expr;)*) => {
        &[$(entry($name, $strict, $fallible, |c| {
            const F: ValueFn = $f;
            on_values(c, $strict, F)
        })),*]
    };
}

fn elems(v: &Value) -> &[Value] {
    match v {
        Value::Array(a) => &a.elems,
        _ => &[],
    }
}

fn list(elems: Vec<Value>) -> Value {
    Value::Array(Box::new(ArrayValue::one_dim(elems)))
}

fn element(ty: &SqlType) -> &SqlType {
    match ty {
        SqlType::List(e) | SqlType::Map(e) | SqlType::Array(e) => e,
        other => other,
    }
}

fn same(a: &Value, b: &Value, ty: &SqlType) -> bool {
    a.is_null() == b.is_null() && (a.is_null() || a.sql_cmp(b, ty).is_eq())
}

fn with(front: &[Value], back: &[Value]) -> Value {
    list([front, back].concat())
}

fn cat(a: &[Value], _: &Call<'_>) -> Result<Value, SqlError> {
    Ok(match (&a[0], &a[1]) {
        (Value::Null, other) | (other, Value::Null) => other.clone(),
        (x, y) => with(elems(x), elems(y)),
    })
}

fn remove(a: &[Value], call: &Call<'_>) -> Result<Value, SqlError> {
    if a[0].is_null() {
        return Ok(Value::Null);
    }
    let ty = element(&call.arg_types[0].ty);
    Ok(list(elems(&a[0]).iter().filter(|e| !same(e, &a[1], ty)).cloned().collect()))
}

fn length_max(a: &[Value], call: &Call<'_>) -> Result<Value, SqlError> {
    fn longest(v: &Value, layer: i64) -> Option<i64> {
        match layer {
            1 => (!v.is_null()).then(|| elems(v).len() as i64),
            n => elems(v).iter().filter_map(|e| longest(e, n - 1)).max(),
        }
    }
    let layers = std::iter::successors(Some(&call.arg_types[0].ty), |t| Some(element(t)).filter(|e| matches!(e, SqlType::List(_)))).count() as i64;
    let layer = a[1].as_i64().unwrap_or(0);
    if !(1..=layers).contains(&layer) {
        let m = format!("invalid layer: {layer}; must use value within [1, {layers}]");
        return Err(SqlError::new(state::INVALID_PARAMETER_VALUE, m));
    }
    Ok(longest(&a[0], layer).map_or(Value::Null, Value::Int8))
}

fn subscript(a: &[Value], _: &Call<'_>) -> Result<Value, SqlError> {
    let mut v = &a[0];
    for i in &a[1..] {
        let at = i.as_i64().and_then(|i| usize::try_from(i.checked_sub(1)?).ok());
        match at.and_then(|i| elems(v).get(i)) {
            Some(e) => v = e,
            None => return Ok(Value::Null),
        }
    }
    Ok(v.clone())
}

fn slice(a: &[Value], _: &Call<'_>) -> Result<Value, SqlError> {
    let all = elems(&a[0]);
    let mask = a[1].as_i64().unwrap_or(0);
    let len = all.len() as i64;
    let lo = if mask & 1 != 0 { 1 } else { a[2].as_i64().unwrap_or(1) }.max(1);
    let hi = if mask & 2 != 0 { len } else { a[3].as_i64().unwrap_or(len) }.min(len);
    Ok(list(if lo > hi { Vec::new() } else { all[(lo - 1) as usize..hi as usize].to_vec() }))
}

fn contains(a: &[Value], call: &Call<'_>) -> Result<Value, SqlError> {
    Ok(Value::Bool(super::array::contains(elems(&a[0]), elems(&a[1]), element(&call.arg_types[0].ty))))
}

/// Sorts by key; of equal keys the last stays.
fn map(mut entries: Vec<(String, Value)>) -> Value {
    entries.reverse();
    entries.sort_by(|a, b| a.0.cmp(&b.0));
    entries.dedup_by(|later, first| later.0 == first.0);
    Value::Map(entries)
}

fn map_construct(a: &[Value], _: &Call<'_>) -> Result<Value, SqlError> {
    let mut out = Vec::with_capacity(a.len() / 2);
    for pair in a.chunks(2) {
        match pair {
            [Value::Text(k), v] => out.push((k.clone(), v.clone())),
            _ => return Err(SqlError::new(state::NULL_VALUE_NOT_ALLOWED, "map key cannot be null")),
        }
    }
    Ok(map(out))
}

fn map_build(a: &[Value], _: &Call<'_>) -> Result<Value, SqlError> {
    if a[0].is_null() {
        return Ok(Value::Null);
    }
    let entry = |e: &Value| match e {
        Value::Record(f) => match f.as_slice() {
            [Value::Text(k), v] => Some((k.clone(), v.clone())),
            _ => None,
        },
        _ => None,
    };
    Ok(map(elems(&a[0]).iter().filter_map(entry).collect()))
}

fn entries(v: &Value) -> &[(String, Value)] {
    match v {
        Value::Map(e) => e,
        _ => &[],
    }
}

fn get<'a>(m: &'a Value, key: &Value) -> Option<&'a Value> {
    let key = key.as_str()?;
    entries(m).binary_search_by(|e| e.0.as_str().cmp(key)).ok().map(|i| &entries(m)[i].1)
}

fn map_contains(a: &[Value], call: &Call<'_>) -> Result<Value, SqlError> {
    let ty = element(&call.arg_types[0].ty);
    Ok(Value::Bool(entries(&a[1]).iter().all(|(k, v)| get(&a[0], &Value::text(k.as_str())).is_some_and(|x| same(x, v, ty)))))
}

pub const INTERNAL: &[FuncDef] = entries! {
    "list_construct", false, false, |a, _| Ok(list(a.to_vec()));
    "list_append", false, false, |a, _| Ok(with(elems(&a[0]), &a[1..]));
    "list_prepend", false, false, |a, _| Ok(with(&a[..1], elems(&a[1])));
    "list_cat", false, false, cat;
    "list_remove", false, false, remove;
    "list_length", true, false, |a, _| Ok(Value::Int4(elems(&a[0]).len() as i32));
    "list_length_max", true, true, length_max;
    "list_subscript", true, false, subscript;
    "list_slice", true, false, slice;
    "list_contains", true, false, contains;
    "map_construct", false, true, map_construct;
    "map_build", false, false, map_build;
    "map_get", true, false, |a, _| Ok(get(&a[0], &a[1]).cloned().unwrap_or(Value::Null));
    "map_has", true, false, |a, _| Ok(Value::Bool(get(&a[0], &a[1]).is_some()));
    "map_has_all", true, false, |a, _| Ok(Value::Bool(elems(&a[1]).iter().all(|k| get(&a[0], k).is_some())));
    "map_has_any", true, false, |a, _| Ok(Value::Bool(elems(&a[1]).iter().any(|k| get(&a[0], k).is_some())));
    "map_contains", true, false, map_contains;
    "map_length", true, false, |a, _| Ok(Value::Int4(entries(&a[0]).len() as i32));
};
