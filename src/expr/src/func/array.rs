//! Array functions, and those of enumerations.
//!
//! Elements are compared by the order of their type; `array_position` and its like find NULL too, `@>` and `&&` never match it.

use super::cast::text_out;
use super::construct::element_type;
use super::lift::{Call, Val};
use super::Entry;
use crate::{f1, f2, val, vals};
use repr::error::state;
use repr::interrupt::Pace;
use repr::value::ArrayValue;
use repr::{SqlError, SqlType, Value};

fn out(elems: Vec<Value>, dims: Vec<(i32, i32)>) -> Value {
    if elems.is_empty() {
        return Value::array(Vec::new());
    }
    Value::Array(Box::new(ArrayValue { elems, dims }))
}

fn wrong_dims() -> SqlError {
    SqlError::new(state::DATA_EXCEPTION, "argument must be empty or one-dimensional array")
}

/// The elements of a one-dimensional (or NULL, or empty) array, and its lower bound.
fn one_dim(v: &Value) -> Result<(Vec<Value>, i32), SqlError> {
    match v {
        Value::Array(a) if a.dims.len() > 1 => Err(wrong_dims()),
        Value::Array(a) => Ok((a.elems.clone(), a.dims.first().map_or(1, |d| d.1))),
        _ => Ok((Vec::new(), 1)),
    }
}

fn append(a: &[Value], _: &Call<'_>) -> Result<Value, SqlError> {
    let (mut elems, lower) = one_dim(&a[0])?;
    elems.push(a[1].clone());
    let n = elems.len() as i32;
    Ok(out(elems, vec![(n, lower)]))
}

fn prepend(a: &[Value], _: &Call<'_>) -> Result<Value, SqlError> {
    let (mut elems, lower) = one_dim(&a[1])?;
    elems.insert(0, a[0].clone());
    let n = elems.len() as i32;
    Ok(out(elems, vec![(n, lower)]))
}

fn cat(a: &[Value], _: &Call<'_>) -> Result<Value, SqlError> {
    let (x, y) = match (&a[0], &a[1]) {
        (Value::Array(x), Value::Array(y)) => (x, y),
        (Value::Null, other) => return Ok(other.clone()),
        (other, _) => return Ok(other.clone()),
    };
    if x.elems.is_empty() {
        return Ok(a[1].clone());
    }
    if y.elems.is_empty() {
        return Ok(a[0].clone());
    }
    let incompatible = |detail: &str| Err(SqlError::new(state::ARRAY_SUBSCRIPT_ERROR, "cannot concatenate incompatible arrays").with_detail(detail));
    let (nx, ny) = (x.dims.len(), y.dims.len());
    let dims = if nx == ny {
        if x.dims[1..] != y.dims[1..] {
            return incompatible("Arrays with differing element dimensions are not compatible for concatenation.");
        }
        let mut d = x.dims.clone();
        d[0].0 += y.dims[0].0;
        d
    } else if nx + 1 == ny {
        if x.dims != y.dims[1..] {
            return incompatible("Arrays with differing dimensions are not compatible for concatenation.");
        }
        let mut d = y.dims.clone();
        d[0].0 += 1;
        d
    } else if nx == ny + 1 {
        if x.dims[1..] != y.dims {
            return incompatible("Arrays with differing dimensions are not compatible for concatenation.");
        }
        let mut d = x.dims.clone();
        d[0].0 += 1;
        d
    } else {
        return incompatible(&format!("Arrays of {nx} and {ny} dimensions are not compatible for concatenation."));
    };
    Ok(out([x.elems.as_slice(), y.elems.as_slice()].concat(), dims))
}

/// The length and lower bound of dimension `n` (from 1).
fn dim(v: &Value, n: i32) -> Option<(i32, i32)> {
    match v {
        Value::Array(a) => usize::try_from(n).ok().and_then(|n| n.checked_sub(1)).and_then(|n| a.dims.get(n).copied()),
        _ => None,
    }
}

fn elems(v: &Value) -> &[Value] {
    match v {
        Value::Array(a) => &a.elems,
        _ => &[],
    }
}

/// IS NOT DISTINCT FROM.
fn same(a: &Value, b: &Value, ty: &SqlType) -> bool {
    match (a.is_null(), b.is_null()) {
        (false, false) => a.sql_cmp(b, ty).is_eq(),
        (x, y) => x && y,
    }
}

/// Beyond so many pairs, elements are looked up in order instead of one by one.
const PAIRS_MAX: usize = 1 << 12;

/// Which of `sought` are elements, in their order. NULL is none.
fn found<'a>(elems: &'a [Value], sought: &'a [Value], ty: &'a SqlType) -> Box<dyn Iterator<Item = bool> + 'a> {
    if elems.len().saturating_mul(sought.len()) <= PAIRS_MAX {
        return Box::new(sought.iter().map(move |s| !s.is_null() && elems.iter().any(|e| !e.is_null() && e.sql_cmp(s, ty).is_eq())));
    }
    let mut sorted: Vec<&Value> = elems.iter().filter(|e| !e.is_null()).collect();
    sorted.sort_unstable_by(|a, b| a.sql_cmp(b, ty));
    let pace = Pace::default();
    Box::new(sought.iter().take_while(move |_| !pace.stop(64)).map(move |s| !s.is_null() && sorted.binary_search_by(|e| e.sql_cmp(s, ty)).is_ok()))
}

/// `@>`: whether all of `part` are elements.
pub fn contains(whole: &[Value], part: &[Value], ty: &SqlType) -> bool {
    found(whole, part, ty).all(|f| f)
}

fn overlaps(a: &[Value], b: &[Value], ty: &SqlType) -> bool {
    found(a, b, ty).any(|f| f)
}

fn search_dims(what: &str) -> SqlError {
    SqlError::new(state::FEATURE_NOT_SUPPORTED, what)
}

fn position(a: &[Value], call: &Call<'_>) -> Result<Value, SqlError> {
    let Value::Array(arr) = &a[0] else { return Ok(Value::Null) };
    if arr.dims.len() > 1 {
        return Err(search_dims("searching for elements in multidimensional arrays is not supported"));
    }
    let lower = arr.dims.first().map_or(1, |d| d.1);
    let from = match a.get(2) {
        Some(Value::Null) => return Err(SqlError::new(state::NULL_VALUE_NOT_ALLOWED, "initial position must not be null")),
        Some(v) => v.as_i64().unwrap_or(1),
        None => i64::from(lower),
    };
    let ty = element_type(&call.arg_types[0].ty);
    let found = arr.elems.iter().enumerate().find(|(i, e)| *i as i64 + i64::from(lower) >= from && same(e, &a[1], ty));
    Ok(found.map_or(Value::Null, |(i, _)| Value::Int4(i as i32 + lower)))
}

fn positions(a: &[Value], call: &Call<'_>) -> Result<Value, SqlError> {
    let Value::Array(arr) = &a[0] else { return Ok(Value::Null) };
    if arr.dims.len() > 1 {
        return Err(search_dims("searching for elements in multidimensional arrays is not supported"));
    }
    let lower = arr.dims.first().map_or(1, |d| d.1);
    let ty = element_type(&call.arg_types[0].ty);
    let hits = arr.elems.iter().enumerate().filter(|(_, e)| same(e, &a[1], ty)).map(|(i, _)| Value::Int4(i as i32 + lower));
    Ok(Value::array(hits.collect()))
}

fn remove(a: &[Value], call: &Call<'_>) -> Result<Value, SqlError> {
    let Value::Array(arr) = &a[0] else { return Ok(Value::Null) };
    if arr.dims.len() > 1 {
        return Err(search_dims("removing elements from multidimensional arrays is not supported"));
    }
    let ty = element_type(&call.arg_types[0].ty);
    let kept: Vec<Value> = arr.elems.iter().filter(|e| !same(e, &a[1], ty)).cloned().collect();
    let n = kept.len() as i32;
    Ok(out(kept, vec![(n, arr.dims.first().map_or(1, |d| d.1))]))
}

fn replace(a: &[Value], call: &Call<'_>) -> Result<Value, SqlError> {
    let Value::Array(arr) = &a[0] else { return Ok(Value::Null) };
    let ty = element_type(&call.arg_types[0].ty);
    let elems = arr.elems.iter().map(|e| if same(e, &a[1], ty) { a[2].clone() } else { e.clone() });
    Ok(out(elems.collect(), arr.dims.clone()))
}

/// Elements that an array may have.
const ELEMS_MAX: i64 = 134_217_727;

fn fill(a: &[Value], _: &Call<'_>) -> Result<Value, SqlError> {
    let null = |m: &str| Err(SqlError::new(state::NULL_VALUE_NOT_ALLOWED, m));
    let ints = |v: &Value| -> Result<Vec<i32>, SqlError> {
        elems(v)
            .iter()
            .map(|e| match e {
                Value::Int4(i) => Ok(*i),
                _ => Err(SqlError::new(state::NULL_VALUE_NOT_ALLOWED, "dimension values cannot be null")),
            })
            .collect()
    };
    if a[1].is_null() || a.get(2).is_some_and(Value::is_null) {
        return null("dimension array or low bound array cannot be null");
    }
    for (v, what) in a[1..].iter().zip(["Dimension", "Low bound"]) {
        if matches!(v, Value::Array(d) if d.dims.len() > 1) {
            return Err(
                SqlError::new(state::ARRAY_SUBSCRIPT_ERROR, "wrong number of array subscripts").with_detail(format!("{what} array must be one dimensional."))
            );
        }
    }
    let lens = ints(&a[1])?;
    let lowers = match a.get(2) {
        Some(l) => ints(l)?,
        None => vec![1; lens.len()],
    };
    if lowers.len() != lens.len() {
        return Err(SqlError::new(state::ARRAY_SUBSCRIPT_ERROR, "wrong number of array subscripts")
            .with_detail("Low bound array has different size than dimensions array."));
    }
    if lens.len() > 6 {
        return Err(SqlError::new(state::PROGRAM_LIMIT_EXCEEDED, format!("number of array dimensions ({}) exceeds the maximum allowed (6)", lens.len())));
    }
    let mut total = 1i64;
    for n in &lens {
        total = total.saturating_mul(i64::from(*n));
        if *n < 0 || total > ELEMS_MAX {
            return Err(SqlError::new(state::PROGRAM_LIMIT_EXCEEDED, format!("array size exceeds the maximum allowed ({ELEMS_MAX})")));
        }
    }
    if lens.is_empty() {
        total = 0;
    }
    Ok(out(vec![a[0].clone(); total as usize], lens.into_iter().zip(lowers).collect()))
}

fn trim(a: &[Value], _: &Call<'_>) -> Result<Value, SqlError> {
    let (Value::Array(arr), Some(n)) = (&a[0], a[1].as_i64()) else { return Ok(Value::Null) };
    let len = arr.dims.first().map_or(0, |d| d.0);
    if n < 0 || n > i64::from(len) {
        return Err(SqlError::new(state::ARRAY_SUBSCRIPT_ERROR, format!("number of elements to trim must be between 0 and {len}")));
    }
    let keep = len - n as i32;
    let width = if len == 0 { 0 } else { arr.elems.len() / len as usize };
    let mut dims: Vec<(i32, i32)> = arr.dims.iter().map(|d| (d.0, 1)).collect();
    if let Some(d) = dims.first_mut() {
        d.0 = keep;
    }
    Ok(out(arr.elems[..keep as usize * width].to_vec(), dims))
}

fn to_text(a: &[Value], call: &Call<'_>) -> Result<Value, SqlError> {
    let (Value::Array(arr), Value::Text(sep)) = (&a[0], &a[1]) else { return Ok(Value::Null) };
    let null = a.get(2).and_then(Value::as_str);
    let ty = element_type(&call.arg_types[0].ty);
    let parts = arr.elems.iter().filter_map(|e| if e.is_null() { null.map(str::to_owned) } else { Some(text_out(e, ty, call.ctx)) });
    Ok(Value::Text(parts.collect::<Vec<_>>().join(sep)))
}

fn dims_text(v: Value) -> Option<String> {
    match v {
        Value::Array(a) if !a.dims.is_empty() => Some(a.dims.iter().map(|(n, lower)| format!("[{lower}:{}]", lower + n - 1)).collect()),
        _ => None,
    }
}

fn width_bucket(a: &[Value], call: &Call<'_>) -> Result<Value, SqlError> {
    let Value::Array(arr) = &a[1] else { return Ok(Value::Null) };
    if arr.dims.len() > 1 {
        return Err(SqlError::new(state::ARRAY_SUBSCRIPT_ERROR, "thresholds must be one-dimensional array"));
    }
    if arr.elems.iter().any(Value::is_null) {
        return Err(SqlError::new(state::NULL_VALUE_NOT_ALLOWED, "thresholds array must not contain NULLs"));
    }
    Ok(Value::Int4(arr.elems.partition_point(|t| t.sql_cmp(&a[0], &call.arg_types[0].ty).is_le()) as i32))
}

/// The codes of an enumeration's labels, in order.
fn codes(call: &Call<'_>) -> Result<Vec<u32>, SqlError> {
    match &call.arg_types[0].ty {
        SqlType::Enum(e) => Ok(e.labels().iter().map(|l| l.0).collect()),
        other => Err(SqlError::internal(format!("{other} is not an enum"))),
    }
}

fn enum_range(a: &[Value], call: &Call<'_>) -> Result<Value, SqlError> {
    let bound = |i: usize| a.get(i).and_then(Value::as_i64);
    let (lo, hi) = if a.len() == 2 { (bound(0), bound(1)) } else { (None, None) };
    let inside = |c: &u32| lo.is_none_or(|l| i64::from(*c) >= l) && hi.is_none_or(|h| i64::from(*c) <= h);
    Ok(Value::array(codes(call)?.into_iter().filter(inside).map(Value::UInt4).collect()))
}

pub const FUNCS: &[Entry] = &[
    vals!(? ["array_append"], append),
    vals!(? ["array_prepend"], prepend),
    vals!(? ["array_cat"], cat),
    f2!(["array_length"], Val, i32 => Option<i32>, |a, n| dim(&a, n).map(|d| d.0)),
    f2!(["array_lower"], Val, i32 => Option<i32>, |a, n| dim(&a, n).map(|d| d.1)),
    f2!(["array_upper"], Val, i32 => Option<i32>, |a, n| dim(&a, n).map(|d| d.1 + d.0 - 1)),
    f1!(["array_ndims"], Val => Option<i32>, |a| match a {
        Value::Array(a) if !a.dims.is_empty() => Some(a.dims.len() as i32),
        _ => None,
    }),
    f1!(["array_dims"], Val => Option<String>, dims_text),
    f1!(["array_cardinality"], Val => i32, |a| elems(&a).len() as i32),
    vals!(? ["array_position", "array_position_start"], position),
    vals!(? ["array_positions"], positions),
    vals!(? ["array_remove"], remove),
    vals!(["array_replace"], replace),
    vals!(? ["array_fill", "array_fill_with_lower_bounds"], fill),
    val!(? ["trim_array"], trim),
    val!(["arraycontains"], |a, call| Ok(Value::Bool(contains(elems(&a[0]), elems(&a[1]), element_type(&call.arg_types[0].ty))))),
    val!(["arraycontained"], |a, call| Ok(Value::Bool(contains(elems(&a[1]), elems(&a[0]), element_type(&call.arg_types[0].ty))))),
    val!(["arrayoverlap"], |a, call| Ok(Value::Bool(overlaps(elems(&a[0]), elems(&a[1]), element_type(&call.arg_types[0].ty))))),
    val!(["array_to_text"], to_text),
    vals!(["array_to_text_null"], to_text),
    val!(? ["width_bucket_array"], width_bucket),
    vals!(? ["enum_first"], |_, call| codes(call).map(|c| c.first().map_or(Value::Null, |v| Value::UInt4(*v)))),
    vals!(? ["enum_last"], |_, call| codes(call).map(|c| c.last().map_or(Value::Null, |v| Value::UInt4(*v)))),
    vals!(? ["enum_range_all", "enum_range_bounds"], enum_range),
];
