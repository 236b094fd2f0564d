//! string_agg, array_agg, bit_and, bit_or, bit_xor: computed from the group's ordered rows.

use super::BasicCall;
use repr::error::state;
use repr::value::ArrayValue;
use repr::{Diff, SqlError, SqlType, Value};

/// Calls `f` for each row as often as its multiplicity says.
pub(super) fn each<'a>(rows: &'a [(Vec<Value>, Diff)], mut f: impl FnMut(&'a [Value]) -> Result<(), SqlError>) -> Result<(), SqlError> {
    for (tuple, n) in rows {
        for _ in 0..(*n).max(0) {
            f(tuple)?;
        }
    }
    Ok(())
}

/// The most bytes of one value, as in Postgres.
pub(super) const TEXT_MAX: usize = 1 << 30;

/// The error of a value that would be longer than that.
pub(super) fn too_long(len: usize) -> SqlError {
    SqlError::new(state::PROGRAM_LIMIT_EXCEEDED, "out of memory").with_detail(format!("Cannot enlarge string buffer of {len} bytes."))
}

fn bits(c: &BasicCall<'_>, f: fn(i64, i64) -> i64, strings: fn(&str, &str) -> Result<String, SqlError>) -> Result<Value, SqlError> {
    if matches!(c.types[0].ty, SqlType::Bit) {
        let mut acc: Option<String> = None;
        each(c.rows, |t| {
            if let Value::Text(s) = &t[0] {
                acc = Some(match &acc {
                    None => s.clone(),
                    Some(a) => strings(a, s)?,
                });
            }
            Ok(())
        })?;
        return Ok(acc.map_or(Value::Null, Value::Text));
    }
    let mut acc: Option<i64> = None;
    each(c.rows, |t| {
        if let Some(v) = t[0].as_i64() {
            acc = Some(acc.map_or(v, |a| f(a, v)));
        }
        Ok(())
    })?;
    let Some(v) = acc else { return Ok(Value::Null) };
    // The operations keep the type's width: the sign bits above it agree.
    Ok(match c.rows.iter().map(|r| &r.0[0]).find(|v| !v.is_null()) {
        Some(Value::Int2(_)) => Value::Int2(v as i16),
        Some(Value::Int4(_)) => Value::Int4(v as i32),
        _ => Value::Int8(v),
    })
}

pub fn bit_and(c: &BasicCall<'_>) -> Result<Value, SqlError> {
    bits(c, |a, b| a & b, crate::func::bits::and)
}
pub fn bit_or(c: &BasicCall<'_>) -> Result<Value, SqlError> {
    bits(c, |a, b| a | b, crate::func::bits::or)
}
pub fn bit_xor(c: &BasicCall<'_>) -> Result<Value, SqlError> {
    bits(c, |a, b| a ^ b, crate::func::bits::xor)
}

/// The first value's delimiter is not used.
pub fn string_agg(c: &BasicCall<'_>) -> Result<Value, SqlError> {
    let mut out: Option<Vec<u8>> = None;
    let mut binary = false;
    let bytes = |v: &Value| match v {
        Value::Text(s) => s.as_bytes().to_vec(),
        Value::Bytea(b) => b.clone(),
        _ => Vec::new(),
    };
    each(c.rows, |t| {
        if t[0].is_null() {
            return Ok(());
        }
        binary = matches!(t[0], Value::Bytea(_));
        match &mut out {
            None => out = Some(bytes(&t[0])),
            Some(o) => {
                o.extend(bytes(&t[1]));
                o.extend(bytes(&t[0]));
                if o.len() > TEXT_MAX {
                    return Err(too_long(o.len()));
                }
            }
        }
        Ok(())
    })?;
    Ok(match out {
        None => Value::Null,
        Some(o) if binary => Value::Bytea(o),
        Some(o) => Value::Text(String::from_utf8(o).map_err(|_| SqlError::internal("string_agg of invalid text"))?),
    })
}

pub fn array_agg(c: &BasicCall<'_>) -> Result<Value, SqlError> {
    if c.rows.is_empty() {
        return Ok(Value::Null);
    }
    let nested = c.types[0].ty == c.agg.ty.ty;
    let mut elems = Vec::new();
    if !nested {
        each(c.rows, |t| {
            elems.push(t[0].clone());
            Ok(())
        })?;
        return Ok(Value::array(elems));
    }
    let (mut dims, mut count) = (None, 0);
    each(c.rows, |t| {
        let Value::Array(a) = &t[0] else { return Err(SqlError::new(state::NULL_VALUE_NOT_ALLOWED, "cannot accumulate null arrays")) };
        if a.elems.is_empty() {
            return Err(SqlError::new(state::ARRAY_SUBSCRIPT_ERROR, "cannot accumulate empty arrays"));
        }
        if dims.get_or_insert_with(|| a.dims.clone()) != &a.dims {
            return Err(SqlError::new(state::ARRAY_SUBSCRIPT_ERROR, "cannot accumulate arrays of different dimensionality"));
        }
        elems.extend(a.elems.iter().cloned());
        count += 1;
        Ok(())
    })?;
    let mut all = vec![(count, 1)];
    all.extend(dims.unwrap_or_default());
    Ok(Value::Array(Box::new(ArrayValue { elems, dims: all })))
}

pub fn range_agg(c: &BasicCall<'_>) -> Result<Value, SqlError> {
    let values: Vec<&Value> = c.rows.iter().map(|r| &r.0[0]).filter(|v| !v.is_null()).collect();
    let ty = &c.types[0].ty;
    let elem = ty.range_elem().or(ty.multirange_elem()).ok_or_else(|| SqlError::internal(format!("range_agg over {ty}")))?;
    Ok(if values.is_empty() { Value::Null } else { crate::func::range::union_all(&values, elem) })
}

pub fn range_intersect_agg(c: &BasicCall<'_>) -> Result<Value, SqlError> {
    let values: Vec<&Value> = c.rows.iter().map(|r| &r.0[0]).filter(|v| !v.is_null()).collect();
    Ok(if values.is_empty() { Value::Null } else { crate::func::range::intersect_all(&values, &c.types[0].ty) })
}
