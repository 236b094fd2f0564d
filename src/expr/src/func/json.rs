//! `json` and `jsonb`: access, change, construction. The documents themselves are in `repr::jsonb`.
//!
//! `json` values keep their spelling; what is built as `json` is spelt as Postgres spells it (`{"a" : 1}` by json_build_object,
//! `{"a":1}` by row_to_json). Not here: jsonpath (`jsonpath`), values as JSON (`to_json`), functions that return rows (`table`).

use super::json_text::{as_text, entries, items, kind, Kind};
use super::lift::{Call, Str};
use super::to_json::{json_source, object_key, populate, to_jsonb, write_json};
use super::Entry;
use crate::{f1, f2, val, vals};
use repr::error::state;
use repr::jsonb::{self, Change, Jsonb};
use repr::{ColType, Numeric, SqlError, SqlType, Value};

fn invalid(message: impl Into<String>) -> SqlError {
    SqlError::new(state::INVALID_PARAMETER_VALUE, message)
}

/// A value of an object, as it is spelled; of equal keys the last counts.
fn field<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    match kind(text) {
        Kind::Object => entries(text).into_iter().rev().find(|e| e.0 == key).map(|e| e.1),
        _ => None,
    }
}

/// An element of an array, as it is spelled; negative indexes count from the end.
fn element(text: &str, index: i64) -> Option<&str> {
    match kind(text) {
        Kind::Array => {
            let all = items(text);
            let i = if index < 0 { index + all.len() as i64 } else { index };
            all.get(usize::try_from(i).ok()?).copied()
        }
        _ => None,
    }
}

/// What stands at a path of keys and indexes.
fn at_path<'a>(text: &'a str, path: &[String]) -> Option<&'a str> {
    path.iter().try_fold(text, |t, p| match kind(t) {
        Kind::Object => field(t, p),
        Kind::Array => element(t, p.trim_start().parse::<i32>().ok()?.into()),
        _ => None,
    })
}

/// `json_typeof`.
fn type_name(text: &str) -> &'static str {
    match kind(text) {
        Kind::Object => "object",
        Kind::Array => "array",
        Kind::String => "string",
        Kind::Null => "null",
        Kind::Scalar if text.trim_start().starts_with(['t', 'f']) => "boolean",
        Kind::Scalar => "number",
    }
}

/// A value as JSON text. `pretty`: a line for each field or element of the outermost level.
fn json_of(v: &Value, ty: &SqlType, call: &Call<'_>, pretty: bool) -> Value {
    let mut out = String::new();
    write_json(v, ty, call.ctx, &mut out);
    if !pretty {
        return Value::Text(out);
    }
    let parts: Vec<String> = match kind(&out) {
        Kind::Object => {
            let spelled = |(k, v): &(String, &str)| {
                let mut s = String::new();
                jsonb::escape_into(k, &mut s);
                s + ":" + v
            };
            entries(&out).iter().map(spelled).collect()
        }
        _ => items(&out).into_iter().map(str::to_owned).collect(),
    };
    let (open, close) = if kind(&out) == Kind::Object { ("{", "}") } else { ("[", "]") };
    Value::Text(format!("{open}{}{close}", parts.join(",\n ")))
}

fn doc(j: Jsonb) -> Value {
    Value::Jsonb(Box::new(j))
}

/// The path that a `text[]` or the rest of the arguments give; NULL elements are `None`.
fn path_of(args: &[Value]) -> Vec<Option<String>> {
    let one = |v: &Value| v.as_str().map(str::to_owned);
    match args {
        [Value::Array(a)] => a.elems.iter().map(one).collect(),
        many => many.iter().map(one).collect(),
    }
}

/// A list of keys. Errors: 2202E for an array of several dimensions.
fn keys_of(list: &Value) -> Result<Vec<Option<String>>, SqlError> {
    match list {
        Value::Array(a) if a.dims.len() > 1 => Err(SqlError::new(state::ARRAY_SUBSCRIPT_ERROR, "wrong number of array subscripts")),
        list => Ok(path_of(std::slice::from_ref(list))),
    }
}

/// A path for reading; `None` if it holds NULL, which finds nothing.
fn full_path(args: &[Value]) -> Option<Vec<String>> {
    path_of(args).into_iter().collect()
}

fn text_list(v: &Value) -> Vec<&str> {
    match v {
        Value::Array(a) => a.elems.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

fn jsonb_path(args: &[Value]) -> Option<Jsonb> {
    let (Value::Jsonb(j), Some(path)) = (&args[0], full_path(&args[1..])) else { return None };
    j.path(&path).cloned()
}

fn json_path(args: &[Value]) -> Option<&str> {
    let (Value::Text(s), Some(path)) = (&args[0], full_path(&args[1..])) else { return None };
    at_path(s, &path)
}

fn set(args: &[Value], change: Change) -> Result<Value, SqlError> {
    let [Value::Jsonb(j), path, rest @ ..] = args else { return Err(SqlError::internal("jsonb_set of other types")) };
    let new = match rest.first() {
        Some(Value::Jsonb(n)) => Some(&**n),
        _ => None,
    };
    (**j).clone().set_path(&keys_of(path)?, new, change).map(doc)
}

fn flag(args: &[Value], i: usize, default: bool) -> bool {
    match args.get(i) {
        Some(Value::Bool(b)) => *b,
        _ => default,
    }
}

fn set_lax(args: &[Value], _: &Call<'_>) -> Result<Value, SqlError> {
    // NULL in any argument but the new value is NULL, before the treatment is looked at.
    if args[0].is_null() || args[1].is_null() || args.get(3).is_some_and(Value::is_null) {
        return Ok(Value::Null);
    }
    let treatment = match args.get(4) {
        None => "use_json_null",
        Some(Value::Text(t)) => t,
        Some(_) => {
            let m = "null_value_treatment must be \"delete_key\", \"return_target\", \"use_json_null\", or \"raise_exception\"";
            return Err(invalid(m));
        }
    };
    let change = if flag(args, 3, true) { Change::Create } else { Change::Replace };
    if !args[2].is_null() {
        return set(&args[..3], change);
    }
    match treatment {
        "raise_exception" => Err(SqlError::new(state::NULL_VALUE_NOT_ALLOWED, "JSON value must not be null")
            .with_detail("Exception was raised because null_value_treatment is \"raise_exception\".")
            .with_hint("To avoid, either change the null_value_treatment argument or ensure that an SQL NULL is not passed.")),
        "use_json_null" => set(&[args[0].clone(), args[1].clone(), doc(Jsonb::Null)], change),
        "delete_key" => set(&args[..2], Change::Delete),
        "return_target" => Ok(args[0].clone()),
        _ => Err(invalid("null_value_treatment must be \"delete_key\", \"return_target\", \"use_json_null\", or \"raise_exception\"")),
    }
}

/// The arguments of a `VARIADIC "any"` call and their types.
fn variadic<'a>(args: &'a [Value], call: &'a Call<'_>) -> impl Iterator<Item = (&'a Value, &'a ColType)> {
    args.iter().zip(call.arg_types)
}

fn even(args: &[Value], function: &str) -> Result<(), SqlError> {
    match args.len() % 2 {
        0 => Ok(()),
        _ => Err(invalid("argument list must have even number of elements")
            .with_hint(format!("The arguments of {function}() must consist of alternating keys and values."))),
    }
}

fn build_jsonb_object(args: &[Value], call: &Call<'_>) -> Result<Value, SqlError> {
    even(args, "jsonb_build_object")?;
    let mut out = Vec::with_capacity(args.len() / 2);
    let all: Vec<_> = variadic(args, call).collect();
    for (i, pair) in all.chunks(2).enumerate() {
        let [(k, kt), (v, vt)] = pair else { continue };
        if k.is_null() {
            return Err(invalid(format!("argument {}: key must not be null", i * 2 + 1)));
        }
        out.push((object_key(k, &kt.ty, call.ctx)?, to_jsonb(v, &vt.ty, call.ctx)?));
    }
    Ok(doc(Jsonb::object(out)))
}

fn build_json_object(args: &[Value], call: &Call<'_>) -> Result<Value, SqlError> {
    even(args, "json_build_object")?;
    let mut out = String::from("{");
    let all: Vec<_> = variadic(args, call).collect();
    for (i, pair) in all.chunks(2).enumerate() {
        let [(k, kt), (v, vt)] = pair else { continue };
        if k.is_null() {
            return Err(invalid(format!("argument {} cannot be null", i * 2 + 1)).with_hint("Object keys should be text."));
        }
        if i > 0 {
            out.push_str(", ");
        }
        jsonb::escape_into(&object_key(k, &kt.ty, call.ctx)?, &mut out);
        out.push_str(" : ");
        write_json(v, &vt.ty, call.ctx, &mut out);
    }
    out.push('}');
    Ok(Value::Text(out))
}

fn build_jsonb_array(args: &[Value], call: &Call<'_>) -> Result<Value, SqlError> {
    variadic(args, call).map(|(v, t)| to_jsonb(v, &t.ty, call.ctx)).collect::<Result<_, _>>().map(|a| doc(Jsonb::Array(a)))
}

fn build_json_array(args: &[Value], call: &Call<'_>) -> Result<Value, SqlError> {
    let mut out = String::from("[");
    for (i, (v, t)) in variadic(args, call).enumerate() {
        if i > 0 {
            out.push_str(", ");
        }
        write_json(v, &t.ty, call.ctx, &mut out);
    }
    out.push(']');
    Ok(Value::Text(out))
}

/// `json_object` of one or two arrays of text: keys and values.
fn object_pairs(args: &[Value]) -> Result<Vec<(String, Option<String>)>, SqlError> {
    let wrong = || SqlError::new(state::ARRAY_SUBSCRIPT_ERROR, "wrong number of array subscripts");
    let null_key = || SqlError::new(state::NULL_VALUE_NOT_ALLOWED, "null value not allowed for object key");
    let text = |v: &Value| v.as_str().map(str::to_owned);
    let pair = |k: &Value, v: &Value| text(k).map(|k| (k, text(v))).ok_or_else(null_key);
    match args {
        [Value::Array(a)] => {
            match a.dims[..] {
                [] => return Ok(Vec::new()),
                [(n, _)] if n % 2 != 0 => {
                    return Err(SqlError::new(state::ARRAY_SUBSCRIPT_ERROR, "array must have even number of elements"));
                }
                [_] | [_, (2, _)] => {}
                [_, _] => return Err(SqlError::new(state::ARRAY_SUBSCRIPT_ERROR, "array must have two columns")),
                _ => return Err(wrong()),
            }
            a.elems.chunks(2).map(|c| pair(&c[0], &c[1])).collect()
        }
        [Value::Array(k), Value::Array(v)] => {
            if k.dims.len() > 1 || k.dims.len() != v.dims.len() {
                return Err(wrong());
            }
            if k.elems.len() != v.elems.len() {
                return Err(SqlError::new(state::ARRAY_SUBSCRIPT_ERROR, "mismatched array dimensions"));
            }
            k.elems.iter().zip(&v.elems).map(|(k, v)| pair(k, v)).collect()
        }
        _ => Err(SqlError::internal("json_object of other types")),
    }
}

fn json_object(args: &[Value], _: &Call<'_>) -> Result<Value, SqlError> {
    let mut out = String::from("{");
    for (i, (k, v)) in object_pairs(args)?.iter().enumerate() {
        if i > 0 {
            out.push_str(", ");
        }
        jsonb::escape_into(k, &mut out);
        out.push_str(" : ");
        match v {
            Some(v) => jsonb::escape_into(v, &mut out),
            None => out.push_str("null"),
        }
    }
    out.push('}');
    Ok(Value::Text(out))
}

fn jsonb_object(args: &[Value], _: &Call<'_>) -> Result<Value, SqlError> {
    let pairs = object_pairs(args)?;
    Ok(doc(Jsonb::object(pairs.into_iter().map(|(k, v)| (k, v.map_or(Jsonb::Null, Jsonb::String))).collect())))
}

fn array_length(j: &Jsonb) -> Result<i32, SqlError> {
    match j {
        Jsonb::Array(a) => Ok(a.len() as i32),
        Jsonb::Object(_) => Err(invalid("cannot get array length of a non-array")),
        _ => Err(invalid("cannot get array length of a scalar")),
    }
}

fn json_array_length(s: &str) -> Result<i32, SqlError> {
    match kind(s) {
        Kind::Array => Ok(items(s).len() as i32),
        Kind::Object => Err(invalid("cannot get array length of a non-array")),
        _ => Err(invalid("cannot get array length of a scalar")),
    }
}

/// `json_strip_nulls`: spelt without blanks.
fn json_strip_nulls(s: &str) -> String {
    fn go(s: &str, out: &mut String) {
        match kind(s) {
            Kind::Object => {
                out.push('{');
                let mut first = true;
                for (k, v) in entries(s) {
                    if kind(v) == Kind::Null {
                        continue;
                    }
                    if !first {
                        out.push(',');
                    }
                    first = false;
                    jsonb::escape_into(&k, out);
                    out.push(':');
                    go(v, out);
                }
                out.push('}');
            }
            Kind::Array => {
                out.push('[');
                for (i, v) in items(s).into_iter().enumerate() {
                    if i > 0 {
                        out.push(',');
                    }
                    go(v, out);
                }
                out.push(']');
            }
            Kind::String => jsonb::escape_into(&super::json_text::unquote(s.trim()), out),
            _ => out.push_str(s.trim()),
        }
    }
    let mut out = String::new();
    go(s, &mut out);
    out
}

/// What a record without fields is told that has no column definition list either.
pub fn no_row_type(name: &str) -> SqlError {
    SqlError::new(state::FEATURE_NOT_SUPPORTED, format!("could not determine row type for result of {name}"))
        .with_hint("Provide a non-null record argument, or call the function in the FROM clause using a column definition list.")
}

/// The row that a JSON object populates; columns that it lacks are the base's.
fn populate_record(args: &[Value], call: &Call<'_>) -> Result<Value, SqlError> {
    if !matches!(call.ret.ty.base(), SqlType::Record(_)) {
        let name = if call.arg_types.get(1).is_some_and(|t| t.ty == SqlType::Jsonb) { "jsonb_populate_record" } else { "json_populate_record" };
        return Err(SqlError::new(state::DATATYPE_MISMATCH, format!("first argument of {name} must be a row type")));
    }
    if args[0].is_null() && matches!(&call.ret.ty, SqlType::Record(r) if r.fields.is_empty()) {
        let name = if matches!(args.get(1), Some(Value::Jsonb(_))) { "jsonb_populate_record" } else { "json_populate_record" };
        return Err(no_row_type(name));
    }
    let Some(json) = args.get(1).and_then(json_source) else { return Ok(args[0].clone()) };
    record_of(&json, call.ret, Some(&args[0]), call)
}

fn record_of(json: &str, ty: &ColType, base: Option<&Value>, call: &Call<'_>) -> Result<Value, SqlError> {
    match kind(json) {
        Kind::Object => populate(json, ty, base, call.ctx),
        Kind::Array => Err(invalid("cannot call populate_composite on an array")),
        _ => Err(invalid("cannot call populate_composite on a scalar")),
    }
}

pub const FUNCS: &[Entry] = &[
    // Access.
    f2!(["jsonb_object_field"], Jsonb, Str => Option<Jsonb>, |j, k| j.field(k).cloned()),
    f2!(["jsonb_object_field_text"], Jsonb, Str => Option<String>, |j, k| j.field(k).and_then(Jsonb::as_text)),
    f2!(["jsonb_array_element"], Jsonb, i32 => Option<Jsonb>, |j, i| j.element(i.into()).cloned()),
    f2!(["jsonb_array_element_text"], Jsonb, i32 => Option<String>, |j, i| j.element(i.into()).and_then(Jsonb::as_text)),
    val!(["jsonb_extract_path"], |a, _| Ok(jsonb_path(a).map_or(Value::Null, doc))),
    val!(["jsonb_extract_path_text"], |a, _| Ok(jsonb_path(a).and_then(|j| j.as_text()).map_or(Value::Null, Value::Text))),
    f2!(["json_object_field"], Str, Str => Option<String>, |j, k| field(j, k).map(str::to_owned)),
    f2!(? ["json_object_field_text"], Str, Str => Option<String>, |j, k| field(j, k).map_or(Ok(None), as_text)),
    f2!(["json_array_element"], Str, i32 => Option<String>, |j, i| element(j, i.into()).map(str::to_owned)),
    f2!(? ["json_array_element_text"], Str, i32 => Option<String>, |j, i| element(j, i.into()).map_or(Ok(None), as_text)),
    val!(["json_extract_path"], |a, _| Ok(json_path(a).map_or(Value::Null, Value::text))),
    val!(? ["json_extract_path_text"], |a, _| Ok(json_path(a).map_or(Ok(None), as_text)?.map_or(Value::Null, Value::Text))),
    f1!(["jsonb_typeof"], Jsonb => &'static str, |j| j.type_name()),
    f1!(["json_typeof"], Str => &'static str, type_name),
    f1!(? ["jsonb_array_length"], Jsonb => i32, |j| array_length(&j)),
    f1!(? ["json_array_length"], Str => i32, json_array_length),
    f2!(["jsonb_exists"], Jsonb, Str => bool, |j, k| j.exists(k)),
    val!(["jsonb_exists_any"], |a, _| match &a[0] {
        Value::Jsonb(j) => Ok(Value::Bool(text_list(&a[1]).iter().any(|k| j.exists(k)))),
        _ => Ok(Value::Null),
    }),
    val!(["jsonb_exists_all"], |a, _| match &a[0] {
        Value::Jsonb(j) => Ok(Value::Bool(text_list(&a[1]).iter().all(|k| j.exists(k)))),
        _ => Ok(Value::Null),
    }),
    f2!(["jsonb_contains"], Jsonb, Jsonb => bool, |a, b| a.contains(&b)),
    f2!(["jsonb_contained"], Jsonb, Jsonb => bool, |a, b| b.contains(&a)),
    // Change.
    f2!(["jsonb_concat"], Jsonb, Jsonb => Jsonb, |a, b| a.concat(b)),
    f2!(? ["jsonb_delete"], Jsonb, Str => Jsonb, |j, k| j.delete_keys(&[k])),
    f2!(? ["jsonb_delete_idx"], Jsonb, i32 => Jsonb, |j, i| j.delete_index(i.into())),
    val!(? ["jsonb_delete_array"], |a, _| {
        let Value::Jsonb(j) = &a[0] else { return Ok(Value::Null) };
        let keys = keys_of(&a[1])?;
        let keys: Vec<&str> = keys.iter().flatten().map(String::as_str).collect();
        (**j).clone().delete_keys(&keys).map(doc)
    }),
    val!(? ["jsonb_delete_path"], |a, _| set(a, Change::Delete)),
    val!(? ["jsonb_set"], |a, _| set(&a[..3], if flag(a, 3, true) { Change::Create } else { Change::Replace })),
    vals!(? ["jsonb_set_lax"], set_lax),
    val!(? ["jsonb_insert"], |a, _| set(&a[..3], if flag(a, 3, false) { Change::InsertAfter } else { Change::InsertBefore })),
    f1!(["jsonb_strip_nulls"], Jsonb => Jsonb, |j| j.strip_nulls()),
    f1!(["json_strip_nulls"], Str => String, json_strip_nulls),
    f1!(["jsonb_pretty"], Jsonb => String, |j| j.pretty()),
    // Construction.
    val!(? ["to_jsonb"], |a, call| to_jsonb(&a[0], &call.arg_types[0].ty, call.ctx).map(doc)),
    val!(["to_json", "row_to_json", "array_to_json"], |a, call| Ok(json_of(&a[0], &call.arg_types[0].ty, call, false))),
    val!(["row_to_json_pretty", "array_to_json_pretty"], |a, call| Ok(json_of(&a[0], &call.arg_types[0].ty, call, flag(a, 1, false)))),
    vals!(? ["jsonb_build_object", "jsonb_build_object_noargs"], build_jsonb_object),
    vals!(? ["jsonb_build_array", "jsonb_build_array_noargs"], build_jsonb_array),
    vals!(? ["json_build_object", "json_build_object_noargs"], build_json_object),
    vals!(["json_build_array", "json_build_array_noargs"], build_json_array),
    val!(? ["json_object", "json_object_two_arg"], json_object),
    val!(? ["jsonb_object", "jsonb_object_two_arg"], jsonb_object),
    vals!(? ["json_populate_record", "jsonb_populate_record"], populate_record),
    val!(? ["json_to_record", "jsonb_to_record"], |a, call| {
        if matches!(&call.ret.ty, SqlType::Record(r) if r.fields.is_empty()) {
            return Err(no_row_type(if matches!(a[0], Value::Jsonb(_)) { "jsonb_to_record" } else { "json_to_record" }));
        }
        record_of(&json_source(&a[0]).unwrap_or_default(), call.ret, None, call)
    }),
    // Casts.
    f1!(? ["jsonb_bool"], Jsonb => bool, |j| j.cast_bool()),
    f1!(? ["jsonb_numeric"], Jsonb => Numeric, |j| j.cast_number("numeric").cloned()),
    f1!(? ["jsonb_int2"], Jsonb => i16, |j| j.cast_number("smallint")?.to_int("smallint")),
    f1!(? ["jsonb_int4"], Jsonb => i32, |j| j.cast_number("integer")?.to_int("integer")),
    f1!(? ["jsonb_int8"], Jsonb => i64, |j| j.cast_number("bigint")?.to_int("bigint")),
    f1!(? ["jsonb_float4"], Jsonb => f32, |j| repr::text::parse_f32(&j.cast_number("real")?.to_string())),
    f1!(? ["jsonb_float8"], Jsonb => f64, |j| repr::text::parse_f64(&j.cast_number("double precision")?.to_string())),
];
