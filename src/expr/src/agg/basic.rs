//! string_agg, array_agg, bit_and, bit_or, bit_xor: computed from the group's ordered rows.

use super::BasicCall;
use repr::error::state;
use repr::value::ArrayValue;
use repr::{Diff, SqlError, SqlType, Value};

/// Calls `f` for each row as often as its multiplicity says: a join without a condition has rows that come a million million times.
/// Errors: 57014 once the statement is to end.
pub(super) fn each<'a>(c: &BasicCall<'a>, mut f: impl FnMut(&'a [Value]) -> Result<(), SqlError>) -> Result<(), SqlError> {
    const PIECE: usize = 1 << 14;
    let mut done = 0;
    for (tuple, n) in c.rows {
        for _ in 0..(*n).max(0) {
            if done % PIECE == 0 {
                c.ctx.interrupt.check()?;
            }
            done += 1;
            f(tuple)?;
        }
    }
    Ok(())
}

/// What the rows have together, each as often as it comes.
/// Errors: 54000 if that is more than one value can be: of elements no more than Postgres's array of pointers holds, of bytes a gigabyte.
pub(super) fn fits(c: &BasicCall<'_>, elements: impl Fn(&[Value]) -> usize, bytes: impl Fn(&[Value]) -> usize) -> Result<(), SqlError> {
    const ELEMENTS_MAX: usize = 1 << 26;
    let sum = |f: &dyn Fn(&[Value]) -> usize| c.rows.iter().map(|(t, n)| f(t).saturating_mul((*n).max(0) as usize)).fold(0, usize::saturating_add);
    let (elements, bytes) = (sum(&elements), sum(&bytes));
    if elements <= ELEMENTS_MAX && bytes <= TEXT_MAX {
        return Ok(());
    }
    let e = SqlError::new(state::PROGRAM_LIMIT_EXCEEDED, format!("{} would make a value that is too large", c.agg.func.name));
    Err(e.with_detail(format!("It would have {elements} elements, with {bytes} bytes of text; at most {ELEMENTS_MAX} and {TEXT_MAX} fit.")))
}

/// Bytes of text in a tuple.
pub(super) fn text_bytes(tuple: &[Value]) -> usize {
    tuple.iter().map(Value::text_bytes).sum()
}

/// The most bytes of one value, as in Postgres.
pub(super) const TEXT_MAX: usize = 1 << 30;

/// The error of a value that would be longer than that.
pub(super) fn too_long(len: usize) -> SqlError {
    SqlError::new(state::PROGRAM_LIMIT_EXCEEDED, "out of memory").with_detail(format!("Cannot enlarge string buffer of {len} bytes."))
}

/// `again`: whether a value counts more than once.
fn bits(c: &BasicCall<'_>, again: bool, f: fn(i64, i64) -> i64, strings: fn(&str, &str) -> Result<String, SqlError>) -> Result<Value, SqlError> {
    let counts = |n: Diff| if again { n % 2 == 1 } else { n > 0 };
    let values = || c.rows.iter().filter(|(t, _)| !t[0].is_null()).map(|(t, n)| (&t[0], *n));
    if matches!(c.types[0].ty, SqlType::Bit) {
        let mut acc: Option<String> = None;
        for (v, n) in values() {
            let Value::Text(s) = v else { continue };
            acc = Some(match &acc {
                None if counts(n) => s.clone(),
                // An even number of the first.
                None => strings(s, s)?,
                Some(a) if counts(n) => strings(a, s)?,
                Some(a) => strings(&strings(a, s)?, s)?,
            });
        }
        return Ok(acc.map_or(Value::Null, Value::Text));
    }
    let Some((first, _)) = values().next() else { return Ok(Value::Null) };
    let all = values().filter(|(_, n)| counts(*n)).filter_map(|(v, _)| v.as_i64());
    let v = all.reduce(f).unwrap_or(0);
    // The operations keep the type's width: the sign bits above it agree.
    Ok(match first {
        Value::Int2(_) => Value::Int2(v as i16),
        Value::Int4(_) => Value::Int4(v as i32),
        _ => Value::Int8(v),
    })
}

pub fn bit_and(c: &BasicCall<'_>) -> Result<Value, SqlError> {
    bits(c, false, |a, b| a & b, crate::func::bits::and)
}
pub fn bit_or(c: &BasicCall<'_>) -> Result<Value, SqlError> {
    bits(c, false, |a, b| a | b, crate::func::bits::or)
}
pub fn bit_xor(c: &BasicCall<'_>) -> Result<Value, SqlError> {
    bits(c, true, |a, b| a ^ b, crate::func::bits::xor)
}

/// The first value's delimiter is not used.
pub fn string_agg(c: &BasicCall<'_>) -> Result<Value, SqlError> {
    fits(c, |_| 0, |t| if t[0].is_null() { 0 } else { text_bytes(&t[..1]) })?;
    let mut out: Option<Vec<u8>> = None;
    let mut binary = false;
    let bytes = |v: &Value| match v {
        Value::Text(s) => s.as_bytes().to_vec(),
        Value::Bytea(b) => b.clone(),
        _ => Vec::new(),
    };
    each(c, |t| {
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
    fits(c, |t| if let (true, Value::Array(a)) = (nested, &t[0]) { a.elems.len() } else { 1 }, |t| t[0].text_bytes())?;
    let mut elems = Vec::new();
    if !nested {
        each(c, |t| {
            elems.push(t[0].clone());
            Ok(())
        })?;
        return Ok(Value::array(elems));
    }
    let (mut dims, mut count) = (None, 0);
    each(c, |t| {
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
