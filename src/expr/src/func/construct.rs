//! Our own entries: constructors, accessors, quantified comparison over arrays, tests of truth, guards.
//!
//! Their argument conventions are in the module above. Entries that take an inner function (`op`) come in two forms, `x` and `x_total`,
//! the second for inner functions that cannot fail.

use super::lift::{at, full_length, on_values, Call};
use super::{by_oid, CallArgs, FuncDef, Kernel, Volatility};
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, BooleanArray, UInt32Array};
use arrow_buffer::BooleanBuffer;
use arrow_select::take::take;
use repr::error::state;
use repr::value::ArrayValue;
use repr::{column, ColType, ColumnBuilder, RowCodec, SqlError, SqlType, Value};
use std::sync::Arc;

const fn entry(name: &'static str, strict: bool, fallible: bool, kernel: Kernel) -> FuncDef {
    FuncDef { name, oid: 0, strict, volatility: Volatility::Immutable, fallible, kernel }
}

/// The array's element type, or a planner bug's stand-in.
pub fn element_type(ty: &SqlType) -> &SqlType {
    match ty {
        SqlType::Array(e) | SqlType::List(e) => e,
        SqlType::Int2Vector => &SqlType::Int2,
        SqlType::OidVector => &SqlType::Oid,
        other => other,
    }
}

/// The inner function that the literal in argument 0 names.
fn inner(c: &CallArgs<'_>) -> Result<&'static FuncDef, SqlError> {
    let oid = column::get(&c.args[0], &c.arg_types[0].ty, 0).as_i64().and_then(|o| u32::try_from(o).ok()).unwrap_or(0);
    by_oid(oid).ok_or_else(|| SqlError::internal(format!("function {oid} inside {} is not implemented", c.arg_types[0].ty)))
}

/// All rows fail with the same error.
fn all_fail(c: &mut CallArgs<'_>, e: SqlError) -> ArrayRef {
    c.errors.extend((0..c.len as u32).map(|i| (i, e.clone())));
    arrow_array::new_null_array(&column::physical(&c.ret.ty), c.len)
}

/// Calls `f` on columns of `len` rows; a strict function's NULL rows are left to its kernel.
fn call_inner(f: &FuncDef, args: &[ArrayRef], types: &[ColType], ret: &ColType, len: usize, c: &CallArgs<'_>) -> (ArrayRef, Vec<(u32, SqlError)>) {
    let mut errors = Vec::new();
    let out = (f.kernel)(&mut CallArgs { args, arg_types: types, ret, len, ctx: c.ctx, errors: &mut errors });
    (out, errors)
}

/// Pairs of `x op ANY/ALL (array)` that one inner call compares, and bytes of their values.
const PAIRS: usize = 1 << 16;
const PAIRS_BYTES: usize = 64 << 20;

/// `x op ANY/ALL (array)`: elements of many rows in one inner call.
fn quantified(c: &mut CallArgs<'_>, any: bool) -> ArrayRef {
    let f = match inner(c) {
        Ok(f) => f,
        Err(e) => return all_fail(c, e),
    };
    let elem = element_type(&c.arg_types[2].ty).clone();
    let types = [c.arg_types[1].clone(), elem.clone().nullable()];
    let mut answers = Answers { any, result: vec![Some(!any); c.len], decided: vec![false; c.len] };
    let mut pairs: Vec<u32> = Vec::new();
    let (mut elems, mut bytes) = (ColumnBuilder::new(&elem, 0), 0);
    let mut failed = Vec::new();
    let mut compare = |pairs: &mut Vec<u32>, elems: ColumnBuilder, answers: &mut Answers| {
        let rows: UInt32Array = pairs.iter().map(|i| at(&c.args[1], c.len, *i as usize) as u32).collect();
        let left = take(&c.args[1], &rows, None).expect("rows of the argument");
        let (out, errors) = call_inner(f, &[left, elems.finish()], &types, &SqlType::Bool.nullable(), pairs.len(), c);
        answers.take_in(pairs, out.as_boolean(), errors, &mut failed);
        pairs.clear();
    };
    // An array that stands for all rows is read once.
    let array = |i: usize| column::get(&c.args[2], &c.arg_types[2].ty, i);
    let shared = (c.len > 0 && c.args[2].len() == 1).then(|| array(0));
    for i in 0..c.len {
        let own = if shared.is_none() { array(i) } else { Value::Null };
        let Value::Array(a) = shared.as_ref().unwrap_or(&own) else {
            answers.result[i] = None;
            continue;
        };
        for e in &a.elems {
            if answers.decided[i] {
                break;
            }
            bytes += column::value_bytes(&c.args[1], at(&c.args[1], c.len, i)) + e.text_bytes();
            pairs.push(i as u32);
            elems.push(e);
            if pairs.len() >= PAIRS || bytes >= PAIRS_BYTES {
                bytes = 0;
                compare(&mut pairs, std::mem::replace(&mut elems, ColumnBuilder::new(&elem, 0)), &mut answers);
            }
        }
    }
    if !pairs.is_empty() {
        compare(&mut pairs, elems, &mut answers);
    }
    c.errors.extend(failed);
    Arc::new(BooleanArray::from(answers.result))
}

/// The answers of a quantified comparison, by row.
struct Answers {
    any: bool,
    result: Vec<Option<bool>>,
    /// No later element changes the answer.
    decided: Vec<bool>,
}

impl Answers {
    /// Takes in the comparisons of the rows `pairs`, in the order of their elements.
    fn take_in(&mut self, pairs: &[u32], bools: &BooleanArray, errors: Vec<(u32, SqlError)>, failed: &mut Vec<(u32, SqlError)>) {
        let mut errors = errors.into_iter().peekable();
        for (k, row) in pairs.iter().enumerate() {
            let error = errors.next_if(|(r, _)| *r as usize == k);
            let i = *row as usize;
            if self.decided[i] {
                continue;
            }
            if let Some((_, e)) = error {
                failed.push((*row, e));
                (self.result[i], self.decided[i]) = (None, true);
            } else if bools.is_null(k) {
                self.result[i] = None;
            } else if bools.value(k) == self.any {
                (self.result[i], self.decided[i]) = (Some(self.any), true);
            }
        }
    }
}

/// IS [NOT] DISTINCT FROM.
fn distinct(c: &mut CallArgs<'_>, negated: bool) -> ArrayRef {
    let f = match inner(c) {
        Ok(f) => f,
        Err(e) => return all_fail(c, e),
    };
    let (out, errors) = call_inner(f, &c.args[1..], &c.arg_types[1..], &SqlType::Bool.nullable(), c.len, c);
    let eq = out.as_boolean();
    let bits = BooleanBuffer::collect_bool(c.len, |i| {
        let (x, y) = (c.args[1].is_null(at(&c.args[1], c.len, i)), c.args[2].is_null(at(&c.args[2], c.len, i)));
        let same = if x || y { x && y } else { eq.is_valid(i) && eq.value(i) };
        same == negated
    });
    c.errors.extend(errors);
    Arc::new(BooleanArray::new(bits, None))
}

/// Whether two values of a type without an equality operator have the same key bytes.
fn same_image(args: &[Value], call: &Call<'_>) -> Result<Value, SqlError> {
    let codec = RowCodec::new(vec![call.arg_types[0].clone()]);
    let bytes = |v: &Value| {
        let mut out = Vec::new();
        codec.encode_key(std::slice::from_ref(v), &mut out);
        out
    };
    Ok(Value::Bool(bytes(&args[0]) == bytes(&args[1])))
}

/// `nullif(a, b)`.
fn nullif(c: &mut CallArgs<'_>) -> ArrayRef {
    let f = match inner(c) {
        Ok(f) => f,
        Err(e) => return all_fail(c, e),
    };
    let (out, errors) = call_inner(f, &c.args[1..], &c.arg_types[1..], &SqlType::Bool.nullable(), c.len, c);
    let eq = out.as_boolean();
    let rows: UInt32Array = (0..c.len as u32).map(|i| (!(eq.is_valid(i as usize) && eq.value(i as usize))).then_some(i)).collect();
    let left = full_length(c, 1);
    c.errors.extend(errors);
    c.errors.sort_by_key(|e| e.0);
    c.errors.dedup_by_key(|e| e.0);
    take(&left, &rows, None).expect("rows of the argument")
}

fn extreme(args: &[Value], call: &Call<'_>, greatest: bool) -> Result<Value, SqlError> {
    let mut best: Option<&Value> = None;
    for v in args.iter().filter(|v| !v.is_null()) {
        let better = best.is_none_or(|b| {
            let o = v.sql_cmp(b, &call.ret.ty);
            if greatest {
                o.is_gt()
            } else {
                o.is_lt()
            }
        });
        if better {
            best = Some(v);
        }
    }
    Ok(best.cloned().unwrap_or(Value::Null))
}

/// Truth tests: what NULL gives, what true gives.
fn truth(c: &mut CallArgs<'_>, on_true: bool, on_false: bool, on_null: bool) -> ArrayRef {
    let b = c.args[0].as_boolean();
    let bits = BooleanBuffer::collect_bool(c.len, |i| {
        let i = at(&c.args[0], c.len, i);
        if b.is_null(i) {
            on_null
        } else if b.value(i) {
            on_true
        } else {
            on_false
        }
    });
    Arc::new(BooleanArray::new(bits, None))
}

fn mismatched_dims() -> SqlError {
    SqlError::new(state::ARRAY_SUBSCRIPT_ERROR, "multidimensional arrays must have array expressions with matching dimensions")
}

/// `ARRAY[...]`.
fn array_construct(args: &[Value], call: &Call<'_>) -> Result<Value, SqlError> {
    let nested = call.arg_types.first().is_some_and(|t| t.ty == call.ret.ty);
    if !nested {
        return Ok(Value::array(args.to_vec()));
    }
    // NULL and empty parts: all must be, then the result is empty.
    let mut parts: Vec<&ArrayValue> = Vec::new();
    let mut empty = 0;
    for a in args {
        match a {
            Value::Array(a) if !a.elems.is_empty() => parts.push(a),
            _ => empty += 1,
        }
    }
    let Some(first) = parts.first() else { return Ok(Value::array(Vec::new())) };
    if empty > 0 || parts.iter().any(|p| p.dims != first.dims) {
        return Err(mismatched_dims());
    }
    if first.dims.len() >= 6 {
        return Err(SqlError::new(state::PROGRAM_LIMIT_EXCEEDED, "number of array dimensions (7) exceeds the maximum allowed (6)"));
    }
    let mut dims = vec![(parts.len() as i32, 1)];
    dims.extend(first.dims.iter().copied());
    let elems = parts.iter().flat_map(|p| p.elems.iter().cloned()).collect();
    Ok(Value::Array(Box::new(ArrayValue { elems, dims })))
}

fn array_subscript(args: &[Value], call: &Call<'_>) -> Result<Value, SqlError> {
    // A name has 64 bytes, counted from 0; those behind its end are zero.
    if let Value::Text(name) = &args[0] {
        let at = args[1].as_i64().filter(|i| (0..64).contains(i) && args.len() == 2).and_then(|i| usize::try_from(i).ok());
        let byte = |i: usize| name.as_bytes().get(i).copied().filter(u8::is_ascii).map_or(String::new(), |b| char::from(b).to_string());
        return Ok(at.map_or(Value::Null, |i| Value::Text(byte(i))));
    }
    if let Value::Bytea(shape) = &args[0] {
        return Ok(super::geo::part(shape, &args[1..], &call.ret.ty));
    }
    let Value::Array(a) = &args[0] else { return Ok(Value::Null) };
    if a.dims.len() != args.len() - 1 {
        return Ok(Value::Null);
    }
    let mut at = 0usize;
    for ((len, lower), i) in a.dims.iter().zip(&args[1..]) {
        let Some(i) = i.as_i64() else { return Ok(Value::Null) };
        let k = i - i64::from(*lower);
        if k < 0 || k >= i64::from(*len) {
            return Ok(Value::Null);
        }
        at = at * *len as usize + k as usize;
    }
    Ok(a.elems.get(at).cloned().unwrap_or(Value::Null))
}

fn array_slice(args: &[Value], _: &Call<'_>) -> Result<Value, SqlError> {
    let Value::Array(a) = &args[0] else { return Ok(Value::Null) };
    let mask = args[1].as_i64().unwrap_or(0);
    let bounds = &args[2..];
    let n = bounds.len() / 2;
    if n > a.dims.len() || a.dims.is_empty() {
        return Ok(Value::array(Vec::new()));
    }
    let mut ranges = Vec::with_capacity(a.dims.len());
    for (k, (len, lower)) in a.dims.iter().enumerate() {
        let (first, last) = (i64::from(*lower), i64::from(*lower) + i64::from(*len) - 1);
        if k >= n {
            ranges.push((first, last, first, *len));
            continue;
        }
        let bound = |side: usize, open: i64| match &bounds[2 * k + side] {
            _ if mask & (1 << (2 * k + side)) != 0 => Some(open),
            v => v.as_i64(),
        };
        let (Some(lo), Some(hi)) = (bound(0, first), bound(1, last)) else { return Ok(Value::Null) };
        let (lo, hi) = (lo.max(first), hi.min(last));
        if lo > hi {
            return Ok(Value::array(Vec::new()));
        }
        ranges.push((lo, hi, first, *len));
    }
    let dims: Vec<(i32, i32)> = ranges.iter().map(|(lo, hi, _, _)| ((hi - lo + 1) as i32, 1)).collect();
    let total: usize = dims.iter().map(|d| d.0 as usize).product();
    let mut elems = Vec::with_capacity(total);
    for flat in 0..total {
        let (mut rest, mut index, mut stride) = (flat, 0usize, 1usize);
        for (lo, hi, first, len) in ranges.iter().rev() {
            let width = (hi - lo + 1) as usize;
            index += ((lo - first) as usize + rest % width) * stride;
            rest /= width;
            stride *= *len as usize;
        }
        elems.push(a.elems[index].clone());
    }
    Ok(Value::Array(Box::new(ArrayValue { elems, dims })))
}

fn jsonb_subscript(args: &[Value], _: &Call<'_>) -> Result<Value, SqlError> {
    use repr::jsonb::Jsonb;
    let Value::Jsonb(root) = &args[0] else { return Ok(Value::Null) };
    let mut at: &Jsonb = root;
    for step in &args[1..] {
        let next = match (at, step) {
            (_, Value::Null) => None,
            (Jsonb::Object(fields), step) => {
                let key = match step {
                    Value::Text(s) => s.clone(),
                    other => other.as_i64().map(|i| i.to_string()).unwrap_or_default(),
                };
                fields.iter().find(|f| f.0 == key).map(|f| &f.1)
            }
            (Jsonb::Array(items), step) => {
                let i = step.as_i64().or_else(|| step.as_str().and_then(|s| s.parse().ok()));
                i.and_then(|i| usize::try_from(if i < 0 { i + items.len() as i64 } else { i }).ok()).and_then(|i| items.get(i))
            }
            _ => None,
        };
        match next {
            Some(n) => at = n,
            None => return Ok(Value::Null),
        }
    }
    Ok(Value::Jsonb(Box::new(at.clone())))
}

/// Calls a function with the elements of the last argument, an array, as arguments.
fn variadic_any(args: &[Value], call: &Call<'_>) -> Result<Value, SqlError> {
    let func = args[0].as_i64().and_then(|o| u32::try_from(o).ok()).and_then(crate::func::by_oid);
    let func = func.ok_or_else(|| SqlError::internal("a function that does not exist"))?;
    let (fixed, last) = (&args[1..args.len() - 1], &args[args.len() - 1]);
    let elems: &[Value] = match last {
        Value::Array(a) => &a.elems,
        // format() takes NULL for no arguments.
        _ if func.name == "format" => &[],
        _ => return Ok(Value::Null),
    };
    let elem = element_type(&call.arg_types[args.len() - 1].ty).clone().nullable();
    let mut types = call.arg_types[1..args.len() - 1].to_vec();
    types.extend(std::iter::repeat_n(elem, elems.len()));
    let columns: Vec<ArrayRef> = fixed.iter().chain(elems).zip(&types).map(|(v, t)| column::repeat(v, &t.ty, 1)).collect();
    let mut errors = Vec::new();
    let made = (func.kernel)(&mut CallArgs { args: &columns, arg_types: &types, ret: call.ret, len: 1, ctx: call.ctx, errors: &mut errors });
    match errors.into_iter().next() {
        Some((_, e)) => Err(e),
        None => Ok(column::get(&made, &call.ret.ty, 0)),
    }
}

fn guard(args: &[Value], bad: impl Fn(i64) -> bool, code: repr::SqlState, message: &str) -> Result<(), SqlError> {
    match args[0].as_i64() {
        Some(n) if bad(n) => Err(SqlError::new(code, message)),
        _ => Ok(()),
    }
}

pub const INTERNAL: &[FuncDef] = &[
    entry("any_op", false, true, |c| quantified(c, true)),
    entry("any_op_total", false, false, |c| quantified(c, true)),
    entry("all_op", false, true, |c| quantified(c, false)),
    entry("all_op_total", false, false, |c| quantified(c, false)),
    entry("is_distinct", false, true, |c| distinct(c, false)),
    entry("is_distinct_total", false, false, |c| distinct(c, false)),
    entry("is_not_distinct", false, true, |c| distinct(c, true)),
    entry("is_not_distinct_total", false, false, |c| distinct(c, true)),
    entry("same_image", true, false, |c| on_values(c, true, same_image)),
    entry("nullif", false, true, nullif),
    entry("nullif_total", false, false, nullif),
    entry("greatest", false, false, |c| on_values(c, false, |a, call| extreme(a, call, true))),
    entry("least", false, false, |c| on_values(c, false, |a, call| extreme(a, call, false))),
    entry("is_true", false, false, |c| truth(c, true, false, false)),
    entry("is_not_true", false, false, |c| truth(c, false, true, true)),
    entry("is_false", false, false, |c| truth(c, false, true, false)),
    entry("is_not_false", false, false, |c| truth(c, true, false, true)),
    entry("array_construct", false, true, |c| on_values(c, false, array_construct)),
    entry("variadic_any", false, true, |c| on_values(c, false, variadic_any)),
    entry("row_construct", false, false, |c| on_values(c, false, |a, _| Ok(Value::Record(a.to_vec())))),
    entry("field_select", true, false, |c| {
        on_values(c, true, |a, _| match (&a[0], a[1].as_i64()) {
            (Value::Record(f), Some(i)) => Ok(usize::try_from(i).ok().and_then(|i| f.get(i)).cloned().unwrap_or(Value::Null)),
            _ => Ok(Value::Null),
        })
    }),
    entry("record_is_null", false, false, |c| {
        on_values(c, false, |a, _| match &a[0] {
            Value::Record(f) => Ok(Value::Bool(f.iter().all(Value::is_null))),
            v => Ok(Value::Bool(v.is_null())),
        })
    }),
    entry("record_is_not_null", false, false, |c| {
        on_values(c, false, |a, _| match &a[0] {
            Value::Record(f) => Ok(Value::Bool(!f.iter().any(Value::is_null))),
            v => Ok(Value::Bool(!v.is_null())),
        })
    }),
    entry("array_subscript", true, false, |c| on_values(c, true, array_subscript)),
    entry("array_slice", true, false, |c| on_values(c, true, array_slice)),
    entry("array_assign", false, true, |c| on_values(c, false, super::assign::array)),
    entry("jsonb_assign", false, true, |c| on_values(c, false, super::assign::jsonb)),
    entry("jsonb_subscript", true, false, |c| on_values(c, true, jsonb_subscript)),
    entry("domain_not_null", false, true, |c| {
        on_values(c, false, |a, _| match &a[0] {
            Value::Null => {
                let domain = a[1].as_str().unwrap_or_default();
                Err(SqlError::new(state::NOT_NULL_VIOLATION, format!("domain {domain} does not allow null values")).of_datatype(domain))
            }
            v => Ok(v.clone()),
        })
    }),
    entry("domain_check", false, true, |c| {
        on_values(c, false, |a, _| match &a[1] {
            Value::Bool(false) => {
                let (domain, check) = (a[2].as_str().unwrap_or_default(), a[3].as_str().unwrap_or_default());
                let e = SqlError::new(state::CHECK_VIOLATION, format!("value for domain {domain} violates check constraint \"{check}\""));
                Err(e.of_datatype(domain).of_constraint(check))
            }
            _ => Ok(a[0].clone()),
        })
    }),
    // An array whose elements are of the domain with this number.
    entry("domain_elements", false, true, |c| {
        on_values(c, false, |a, call| match (&a[0], &a[1]) {
            (Value::Array(array), Value::UInt4(domain)) => {
                for v in &array.elems {
                    crate::domain::admit(*domain, v.clone(), call.ctx)?;
                }
                Ok(a[0].clone())
            }
            _ => Ok(a[0].clone()),
        })
    }),
    entry("type_of_domain", false, false, |c| on_values(c, false, |a, _| Ok(a[1].clone()))),
    // A value of the domain with this number, evaluated once for all of its conditions.
    entry("domain_value", false, true, |c| {
        on_values(c, false, |a, call| match &a[1] {
            Value::UInt4(domain) => crate::domain::admit(*domain, a[0].clone(), call.ctx),
            _ => Ok(a[0].clone()),
        })
    }),
    entry("record_error", false, true, |c| {
        on_values(c, false, |a, _| {
            let text = |i: usize| a[i].as_str().unwrap_or_default();
            let message = format!("record {} of source \"{}\" cannot be decoded: {}", text(0), text(2), text(1));
            Err(SqlError::new(state::DATA_EXCEPTION, message).with_hint(
                "under ON ERROR = 'fail' an undecodable record makes the source unreadable until its key is replaced; it is in the source's _errors relation",
            ))
        })
    }),
    entry("single_row_guard", true, true, |c| {
        on_values(c, true, |a, _| {
            guard(a, |n| n > 1, state::CARDINALITY_VIOLATION, "more than one row returned by a subquery used as an expression").map(|()| Value::Bool(true))
        })
    }),
    entry("limit_guard", true, true, |c| {
        on_values(c, true, |a, _| guard(a, |n| n < 0, state::INVALID_ROW_COUNT_IN_LIMIT, "LIMIT must not be negative").map(|()| a[0].clone()))
    }),
    entry("offset_guard", true, true, |c| {
        on_values(c, true, |a, _| guard(a, |n| n < 0, state::INVALID_ROW_COUNT_IN_OFFSET, "OFFSET must not be negative").map(|()| a[0].clone()))
    }),
];
