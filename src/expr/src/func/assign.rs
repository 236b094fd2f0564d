//! Values with a part replaced: what `SET a[2] = …`, `SET a[1:2] = …` and `SET j['k'] = …` give the column.
//!
//! Not here: fields of composite types, which are built anew (`row_construct`).

use super::lift::Call;
use repr::error::state;
use repr::jsonb::Jsonb;
use repr::value::ArrayValue;
use repr::{SqlError, SqlType, Value};

/// The most elements of an array.
const ELEMENTS_MAX: i64 = 134_217_727;

fn subscript_error(message: impl Into<String>) -> SqlError {
    SqlError::new(state::ARRAY_SUBSCRIPT_ERROR, message)
}

fn no_null() -> SqlError {
    SqlError::new(state::NULL_VALUE_NOT_ALLOWED, "array subscript in assignment must not be null")
}

/// A dimension: its first and last index. Errors: 54000 where it is too long.
fn extent(first: i64, last: i64) -> Result<(i32, i32), SqlError> {
    let len = last - first + 1;
    if len > ELEMENTS_MAX || last >= i64::from(i32::MAX) {
        return Err(SqlError::new(state::PROGRAM_LIMIT_EXCEEDED, format!("array size exceeds the maximum allowed ({ELEMENTS_MAX})")));
    }
    Ok((i32::try_from(len).unwrap_or(i32::MAX), i32::try_from(first).unwrap_or(i32::MIN)))
}

/// Arguments: array, value, mask (NULL: one element), then subscripts or pairs of bounds.
pub fn array(args: &[Value], call: &Call<'_>) -> Result<Value, SqlError> {
    if matches!(call.ret.ty, SqlType::Geo(_)) {
        // NULL has no parts to replace.
        return match &args[0] {
            Value::Bytea(shape) => super::geo::with_part(shape, &args[1], &args[3..]),
            _ => Ok(Value::Null),
        };
    }
    let a = match &args[0] {
        Value::Array(a) => (**a).clone(),
        _ => ArrayValue { elems: Vec::new(), dims: Vec::new() },
    };
    match args[2].as_i64() {
        None => element(a, &args[1], &args[3..]),
        Some(mask) => match &args[1] {
            // NULL assigned to a slice changes nothing.
            Value::Array(new) => slice(a, new, mask, &args[3..]),
            _ => Ok(args[0].clone()),
        },
    }
}

fn element(mut a: ArrayValue, new: &Value, subscripts: &[Value]) -> Result<Value, SqlError> {
    let at: Vec<i64> = subscripts.iter().map(|s| s.as_i64().ok_or_else(no_null)).collect::<Result<_, _>>()?;
    if a.dims.is_empty() {
        a.dims = at.iter().map(|i| extent(*i, *i)).collect::<Result<_, _>>()?;
        a.elems = vec![new.clone()];
        return Ok(Value::Array(Box::new(a)));
    }
    if a.dims.len() != at.len() {
        return Err(subscript_error("wrong number of array subscripts"));
    }
    if let ([(len, lower)], [i]) = (a.dims.as_slice(), at.as_slice()) {
        let (first, last) = (i64::from(*lower), i64::from(*lower) + i64::from(*len) - 1);
        a.dims = vec![extent(first.min(*i), last.max(*i))?];
        grow(&mut a.elems, first - i, i - last);
        let k = usize::try_from(i - first.min(*i)).unwrap_or(0);
        a.elems[k] = new.clone();
        return Ok(Value::Array(Box::new(a)));
    }
    let mut flat = 0;
    for ((len, lower), i) in a.dims.iter().zip(&at) {
        let k = i - i64::from(*lower);
        if k < 0 || k >= i64::from(*len) {
            return Err(subscript_error("array subscript out of range"));
        }
        flat = flat * i64::from(*len) + k;
    }
    a.elems[usize::try_from(flat).unwrap_or(0)] = new.clone();
    Ok(Value::Array(Box::new(a)))
}

/// NULLs before and after, where the counts are above zero.
fn grow(elems: &mut Vec<Value>, before: i64, after: i64) {
    let n = |k: i64| usize::try_from(k.max(0)).unwrap_or(0);
    elems.splice(0..0, std::iter::repeat_n(Value::Null, n(before)));
    elems.extend(std::iter::repeat_n(Value::Null, n(after)));
}

fn slice(mut a: ArrayValue, new: &ArrayValue, mask: i64, bounds: &[Value]) -> Result<Value, SqlError> {
    let n = bounds.len() / 2;
    let given = |k: usize, side: usize| -> Result<Option<i64>, SqlError> {
        match mask & (1 << (2 * k + side)) {
            0 => bounds[2 * k + side].as_i64().map(Some).ok_or_else(no_null),
            _ => Ok(None),
        }
    };
    let upside_down = || subscript_error("upper bound cannot be less than lower bound");
    if a.dims.is_empty() {
        let mut dims = Vec::with_capacity(n);
        for k in 0..n {
            let (Some(lo), Some(hi)) = (given(k, 0)?, given(k, 1)?) else {
                let detail = "When assigning to a slice of an empty array value, slice boundaries must be fully specified.";
                return Err(subscript_error("array slice subscript must provide both boundaries").with_detail(detail));
            };
            if lo > hi {
                return Err(upside_down());
            }
            dims.push(extent(lo, hi)?);
        }
        let total = total(&dims)?;
        let elems = new.elems.get(..total).ok_or_else(|| subscript_error("source array too small"))?.to_vec();
        return Ok(Value::Array(Box::new(ArrayValue { elems, dims })));
    }
    if a.dims.len() < n {
        return Err(subscript_error("wrong number of array subscripts"));
    }
    let mut ranges = Vec::with_capacity(a.dims.len());
    for (k, (len, lower)) in a.dims.iter().enumerate() {
        let (first, last) = (i64::from(*lower), i64::from(*lower) + i64::from(*len) - 1);
        let (lo, hi) = if k < n { (given(k, 0)?.unwrap_or(first), given(k, 1)?.unwrap_or(last)) } else { (first, last) };
        if lo > hi {
            return Err(upside_down());
        }
        if a.dims.len() > 1 && (lo < first || hi > last) {
            return Err(subscript_error("array subscript out of range"));
        }
        ranges.push((lo, hi));
    }
    let wanted: Vec<(i32, i32)> = ranges.iter().map(|(lo, hi)| extent(*lo, *hi)).collect::<Result<_, _>>()?;
    let count = total(&wanted)?;
    let source = new.elems.get(..count).ok_or_else(|| subscript_error("source array too small"))?;
    if let ([(len, lower)], [(lo, hi)]) = (a.dims.as_slice(), ranges.as_slice()) {
        let (first, last) = (i64::from(*lower), i64::from(*lower) + i64::from(*len) - 1);
        a.dims = vec![extent(first.min(*lo), last.max(*hi))?];
        grow(&mut a.elems, first - lo, hi - last);
        let start = usize::try_from(lo - first.min(*lo)).unwrap_or(0);
        a.elems[start..start + count].clone_from_slice(source);
        return Ok(Value::Array(Box::new(a)));
    }
    for (flat, v) in source.iter().enumerate() {
        let (mut rest, mut index, mut stride) = (flat, 0usize, 1usize);
        for ((len, lower), (lo, hi)) in a.dims.iter().zip(&ranges).rev() {
            let width = usize::try_from(hi - lo + 1).unwrap_or(1);
            index += (usize::try_from(lo - i64::from(*lower)).unwrap_or(0) + rest % width) * stride;
            rest /= width;
            stride *= usize::try_from(*len).unwrap_or(1);
        }
        a.elems[index] = v.clone();
    }
    Ok(Value::Array(Box::new(a)))
}

fn total(dims: &[(i32, i32)]) -> Result<usize, SqlError> {
    let n = dims.iter().try_fold(1i64, |n, d| n.checked_mul(d.0.into()).filter(|n| *n <= ELEMENTS_MAX));
    let n = n.ok_or_else(|| SqlError::new(state::PROGRAM_LIMIT_EXCEEDED, format!("array size exceeds the maximum allowed ({ELEMENTS_MAX})")))?;
    Ok(usize::try_from(n).unwrap_or(0))
}

/// Arguments: document, new part, subscripts. Objects and arrays that are missing on the way are made; NULL is an empty document.
pub fn jsonb(args: &[Value], _: &Call<'_>) -> Result<Value, SqlError> {
    let steps = &args[2..];
    let new = match &args[1] {
        Value::Jsonb(j) => (**j).clone(),
        _ => Jsonb::Null,
    };
    let empty = |step: &Value| if step.as_i64().is_some() { Jsonb::Array(Vec::new()) } else { Jsonb::Object(Vec::new()) };
    let mut doc = match &args[0] {
        Value::Jsonb(j) => (**j).clone(),
        _ => empty(&steps[0]),
    };
    let mut at = &mut doc;
    for (k, step) in steps.iter().enumerate() {
        if step.is_null() {
            return Err(SqlError::new(state::NULL_VALUE_NOT_ALLOWED, "jsonb subscript in assignment must not be null"));
        }
        // The next level, where there is none yet.
        let fresh = steps.get(k + 1).map_or(Jsonb::Null, empty);
        at = match at {
            Jsonb::Object(fields) => {
                let key = step.as_str().map_or_else(|| step.as_i64().unwrap_or(0).to_string(), str::to_owned);
                let i = match fields.iter().position(|f| f.0 == key) {
                    Some(i) => i,
                    None => {
                        let i = fields.partition_point(|f| repr::jsonb::key_order(&f.0, &key).is_lt());
                        fields.insert(i, (key, fresh));
                        i
                    }
                };
                &mut fields[i].1
            }
            Jsonb::Array(items) => {
                let index = step.as_i64().or_else(|| step.as_str().and_then(|s| s.trim().parse().ok())).ok_or_else(|| {
                    let text = step.as_str().unwrap_or_default();
                    SqlError::new(state::INVALID_TEXT_REPRESENTATION, format!("path element at position {} is not an integer: \"{text}\"", k + 1))
                })?;
                let i = if index < 0 { index + items.len() as i64 } else { index };
                let i = usize::try_from(i)
                    .map_err(|_| SqlError::new(state::INVALID_PARAMETER_VALUE, format!("path element at position {} is out of range: {index}", k + 1)))?;
                if i as i64 > ELEMENTS_MAX {
                    return Err(SqlError::new(state::PROGRAM_LIMIT_EXCEEDED, "array size exceeds the maximum allowed"));
                }
                while items.len() < i {
                    items.push(Jsonb::Null);
                }
                if items.len() == i {
                    items.push(fresh);
                }
                &mut items[i]
            }
            _ => {
                let message = "cannot replace existing key".to_owned();
                return Err(
                    SqlError::new(state::INVALID_PARAMETER_VALUE, message).with_detail("The path assumes key is a composite object, but it is a scalar value.")
                );
            }
        };
    }
    *at = new;
    Ok(Value::Jsonb(Box::new(doc)))
}
