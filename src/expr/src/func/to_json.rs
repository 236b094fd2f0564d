//! SQL values as JSON, and JSON as SQL rows.
//!
//! ```text
//!   write_json / to_jsonb     value -> JSON      numbers and booleans as such, dates as ISO, arrays, records, json; all else as a string
//!   populate                  JSON -> value of a type, field by field
//! ```

use super::cast::{text_out, with_style};
use super::construct::element_type;
use super::json_text::{as_text, entries, items, kind, Kind};
use crate::ctx::EvalCtx;
use repr::error::state;
use repr::jsonb::{self, Jsonb};
use repr::value::ArrayValue;
use repr::{text, ColType, DateFormat, Numeric, SqlError, SqlType, TextStyle, Value};

/// The text of a date or timestamp in JSON: ISO 8601 whatever DateStyle says.
fn iso(v: &Value, ty: &SqlType, ctx: &EvalCtx) -> String {
    with_style(ctx, |style| iso_in(v, ty, style.clone()))
}

/// ISO 8601 in the style's time zone.
pub fn iso_in(v: &Value, ty: &SqlType, mut style: TextStyle) -> String {
    style.date_style.format = DateFormat::Iso;
    let t = text::to_text(v, ty, &style);
    match ty {
        SqlType::Timestamp => t.replacen(' ', "T", 1),
        SqlType::TimestampTz => with_minutes(t.replacen(' ', "T", 1)),
        SqlType::TimeTz => with_minutes(t),
        _ => t,
    }
}

/// The offset from UTC with its minutes.
fn with_minutes(t: String) -> String {
    match t.rfind(['+', '-']).filter(|i| t[..*i].contains(':') && t.len() - i == 3) {
        Some(_) => t + ":00",
        None => t,
    }
}

/// Appends a value as JSON text, as `to_json` prints it: no blanks.
pub fn write_json(v: &Value, ty: &SqlType, ctx: &EvalCtx, out: &mut String) {
    match v {
        Value::Null => out.push_str("null"),
        Value::Bool(b) => out.push_str(if *b { "true" } else { "false" }),
        Value::Numeric(n) if n.is_finite() => n.print(out),
        Value::Float4(f) if f.is_finite() => out.push_str(&text_out(v, ty, ctx)),
        Value::Float8(f) if f.is_finite() => out.push_str(&text_out(v, ty, ctx)),
        Value::Int2(_) | Value::Int4(_) | Value::Int8(_) | Value::UInt2(_) | Value::UInt8(_)
            if !matches!(ty, SqlType::Money | SqlType::Xid8 | SqlType::PgLsn) =>
        {
            out.push_str(&text_out(v, ty, ctx))
        }
        Value::UInt4(_) if *ty == SqlType::UInt4 => out.push_str(&text_out(v, ty, ctx)),
        Value::Jsonb(j) => j.print(out),
        Value::Text(s) if *ty == SqlType::Json => out.push_str(s),
        Value::Array(a) if !matches!(ty, SqlType::Int2Vector | SqlType::OidVector) => write_array(a, element_type(ty), ctx, out),
        Value::Record(fields) => {
            let SqlType::Record(r) = ty else { return out.push_str("{}") };
            out.push('{');
            for (i, v) in fields.iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                let name = r.fields.get(i).map_or_else(|| format!("f{}", i + 1), |f| f.0.clone());
                jsonb::escape_into(&name, out);
                out.push(':');
                write_json(v, r.fields.get(i).map_or(&SqlType::Text, |f| &f.1.ty), ctx, out);
            }
            out.push('}');
        }
        Value::Map(entries) => {
            let elem = match ty {
                SqlType::Map(e) => e,
                other => other,
            };
            out.push('{');
            for (i, (k, v)) in entries.iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                jsonb::escape_into(k, out);
                out.push(':');
                write_json(v, elem, ctx, out);
            }
            out.push('}');
        }
        Value::Date(_) | Value::Timestamp(_) | Value::TimestampTz(_) => jsonb::escape_into(&iso(v, ty, ctx), out),
        v => jsonb::escape_into(&text_out(v, ty, ctx), out),
    }
}

fn write_array(a: &ArrayValue, elem: &SqlType, ctx: &EvalCtx, out: &mut String) {
    fn level(a: &ArrayValue, depth: usize, at: &mut usize, elem: &SqlType, ctx: &EvalCtx, out: &mut String) {
        out.push('[');
        let n = a.dims.get(depth).map_or(0, |d| d.0);
        for i in 0..n {
            if i > 0 {
                out.push(',');
            }
            if depth + 1 < a.dims.len() {
                level(a, depth + 1, at, elem, ctx, out);
            } else {
                write_json(a.elems.get(*at).unwrap_or(&Value::Null), elem, ctx, out);
                *at += 1;
            }
        }
        out.push(']');
    }
    level(a, 0, &mut 0, elem, ctx, out);
}

/// A value as a document. Errors: 22P05 if a `json` text holds `\u0000`.
pub fn to_jsonb(v: &Value, ty: &SqlType, ctx: &EvalCtx) -> Result<Jsonb, SqlError> {
    Ok(match v {
        Value::Null => Jsonb::Null,
        Value::Bool(b) => Jsonb::Bool(*b),
        Value::Int2(_) | Value::Int4(_) | Value::Int8(_) | Value::UInt2(_) if *ty != SqlType::Money => Jsonb::Number(Numeric::from(v.as_i64().unwrap_or(0))),
        Value::Numeric(n) if n.is_finite() => Jsonb::Number(n.clone()),
        Value::Jsonb(j) => (**j).clone(),
        Value::Text(s) if *ty != SqlType::Json => Jsonb::String(s.clone()),
        v => {
            let mut out = String::new();
            write_json(v, ty, ctx, &mut out);
            jsonb::parse(&out)?
        }
    })
}

/// A value as the key of an object. Errors: 22023 for NULL and for values with parts.
pub fn object_key(v: &Value, ty: &SqlType, ctx: &EvalCtx) -> Result<String, SqlError> {
    let bad = |m: &str| Err(SqlError::new(state::INVALID_PARAMETER_VALUE, m));
    match (v, ty) {
        (Value::Null, _) => bad("field name must not be null"),
        (Value::Array(_) | Value::Record(_) | Value::Jsonb(_), _) | (_, SqlType::Json) => bad("key value must be scalar, not array, composite, or json"),
        (Value::Bool(b), _) => Ok(if *b { "true" } else { "false" }.into()),
        (Value::Date(_) | Value::Timestamp(_) | Value::TimestampTz(_), _) => Ok(iso(v, ty, ctx)),
        _ => Ok(text_out(v, ty, ctx)),
    }
}

/// JSON text of a json or jsonb value.
pub fn json_source(v: &Value) -> Option<String> {
    match v {
        Value::Text(s) => Some(s.clone()),
        Value::Jsonb(j) => {
            let mut out = String::new();
            j.print(&mut out);
            Some(out)
        }
        _ => None,
    }
}

/// A JSON value as a value of type `ty`; an object becomes a record, missing fields taken from `base`.
pub fn populate(json: &str, ty: &ColType, base: Option<&Value>, ctx: &EvalCtx) -> Result<Value, SqlError> {
    populate_named(json, ty, base, None, ctx)
}

/// `key`: the key of the object that the value is of, for errors.
fn populate_named(json: &str, ty: &ColType, base: Option<&Value>, key: Option<&str>, ctx: &EvalCtx) -> Result<Value, SqlError> {
    let k = kind(json);
    match &ty.ty {
        _ if k == Kind::Null => Ok(Value::Null),
        SqlType::Json => Ok(Value::text(json.trim())),
        SqlType::Jsonb => jsonb::parse(json).map(|j| Value::Jsonb(Box::new(j))),
        SqlType::Record(r) if k == Kind::Object => {
            let given = entries(json);
            let mut fields = Vec::with_capacity(r.fields.len());
            for (i, (name, t)) in r.fields.iter().enumerate() {
                // Of equal keys the last counts.
                let old = match base {
                    Some(Value::Record(b)) => b.get(i),
                    _ => None,
                };
                fields.push(match given.iter().rev().find(|e| e.0 == *name) {
                    Some((_, v)) => populate_named(v, t, old, Some(name), ctx)?,
                    None => old.cloned().unwrap_or(Value::Null),
                });
            }
            Ok(Value::Record(fields))
        }
        SqlType::Record(_) if k != Kind::String => {
            let what = if k == Kind::Array { "an array" } else { "a scalar" };
            Err(SqlError::new(state::INVALID_PARAMETER_VALUE, format!("cannot call populate_composite on {what}")))
        }
        SqlType::Array(e) if k == Kind::Array => {
            let mut out = ArrayValue { elems: Vec::new(), dims: Vec::new() };
            collect(json, &ColType { ty: (**e).clone(), typmod: ty.typmod, nullable: true }, key, &mut Vec::new(), &mut out, ctx)?;
            if out.elems.is_empty() {
                out.dims.clear();
            }
            Ok(Value::Array(Box::new(out)))
        }
        SqlType::Array(_) if k != Kind::String => Err(expected_array(key, &[])),
        _ => {
            let s = as_text(json)?.unwrap_or_default();
            with_style(ctx, |style| text::from_text(&s, &ty.ty, ty.typmod, style))
        }
    }
}

/// What is no array stands where the type wants one: at `path` inside the array of `key`.
fn expected_array(key: Option<&str>, path: &[usize]) -> SqlError {
    let e = SqlError::new(state::INVALID_TEXT_REPRESENTATION, "expected JSON array");
    let at: String = path.iter().map(|i| format!("[{i}]")).collect();
    match (key, path) {
        (Some(k), []) => e.with_hint(format!("See the value of key \"{k}\".")),
        (Some(k), _) => e.with_hint(format!("See the array element {at} of key \"{k}\".")),
        (None, []) => e,
        (None, _) => e.with_hint(format!("See the array element {at}.")),
    }
}

/// Collects nested JSON arrays into one array. `path`: where in the outermost one `json` stands.
fn collect(json: &str, elem: &ColType, key: Option<&str>, path: &mut Vec<usize>, out: &mut ArrayValue, ctx: &EvalCtx) -> Result<(), SqlError> {
    let parts = items(json);
    let depth = path.len();
    let ragged = || {
        SqlError::new(state::INVALID_TEXT_REPRESENTATION, "malformed JSON array")
            .with_detail("Multidimensional arrays must have sub-arrays with matching dimensions.")
    };
    match out.dims.get(depth) {
        None => out.dims.push((parts.len() as i32, 1)),
        Some(d) if d.0 != parts.len() as i32 => return Err(ragged()),
        Some(_) => {}
    }
    for (i, p) in parts.into_iter().enumerate() {
        // The first element that is no array says how deep they nest: further in, an array is an element.
        let deeper = out.dims.len() > depth + 1 || out.elems.is_empty();
        if deeper && kind(p) == Kind::Array {
            path.push(i);
            collect(p, elem, key, path, out, ctx)?;
            path.pop();
        } else if out.dims.len() > depth + 1 {
            path.push(i);
            return Err(expected_array(key, path));
        } else {
            out.elems.push(populate(p, elem, None, ctx)?);
        }
    }
    Ok(())
}
