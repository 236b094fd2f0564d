//! Set-returning functions over json and jsonb.
//!
//! Both types go through slices of their text, so `json` keeps its spelling. Functions that return `record` get one argument more:
//! a text[] with the names of the columns.

use super::{Emit, TableEntry};
use crate::ctx::EvalCtx;
use crate::func::json::no_row_type;
use crate::func::json_text::{as_text, entries, items, kind, Kind};
use crate::func::jsonpath::Options;
use crate::func::to_json::{json_source, populate};
use repr::error::state;
use repr::jsonb;
use repr::types::RecordType;
use repr::{ColType, SqlError, SqlType, Value};
use std::sync::Arc;

fn bad(message: impl Into<String>) -> SqlError {
    SqlError::new(state::INVALID_PARAMETER_VALUE, message)
}

/// A slice as a value of the argument's own type.
fn same_type(slice: &str, is_jsonb: bool) -> Result<Value, SqlError> {
    if is_jsonb {
        return jsonb::parse(slice).map(|j| Value::Jsonb(Box::new(j)));
    }
    Ok(Value::text(slice))
}

fn text_value(slice: &str) -> Result<Value, SqlError> {
    Ok(as_text(slice)?.map_or(Value::Null, Value::Text))
}

fn each(args: &[Value], name: &str, as_texts: bool, emit: Emit<'_>) -> Result<(), SqlError> {
    let Some(json) = json_source(&args[0]) else { return Ok(()) };
    let is_jsonb = matches!(args[0], Value::Jsonb(_));
    match kind(&json) {
        Kind::Object => {}
        _ if is_jsonb => return Err(bad(format!("cannot call {name} on a non-object"))),
        Kind::Array => return Err(bad("cannot deconstruct an array as an object")),
        _ => return Err(bad("cannot deconstruct a scalar")),
    }
    for (k, v) in entries(&json) {
        let v = if as_texts { text_value(v) } else { same_type(v, is_jsonb) }?;
        if !emit(vec![Value::Text(k), v]) {
            return Ok(());
        }
    }
    Ok(())
}

fn elements(args: &[Value], name: &str, as_texts: bool, emit: Emit<'_>) -> Result<(), SqlError> {
    let Some(json) = json_source(&args[0]) else { return Ok(()) };
    let is_jsonb = matches!(args[0], Value::Jsonb(_));
    match (kind(&json), is_jsonb) {
        (Kind::Array, _) => {}
        (Kind::Object, true) => return Err(bad("cannot extract elements from an object")),
        (_, true) => return Err(bad("cannot extract elements from a scalar")),
        (Kind::Object, false) => return Err(bad(format!("cannot call {name} on a non-array"))),
        (_, false) => return Err(bad(format!("cannot call {name} on a scalar"))),
    }
    for v in items(&json) {
        let v = if as_texts { text_value(v) } else { same_type(v, is_jsonb) }?;
        if !emit(vec![v]) {
            return Ok(());
        }
    }
    Ok(())
}

fn keys(args: &[Value], name: &str, emit: Emit<'_>) -> Result<(), SqlError> {
    let Some(json) = json_source(&args[0]) else { return Ok(()) };
    match kind(&json) {
        Kind::Object => {}
        Kind::Array => return Err(bad(format!("cannot call {name} on an array"))),
        _ => return Err(bad(format!("cannot call {name} on a scalar"))),
    }
    for (k, _) in entries(&json) {
        if !emit(vec![Value::Text(k)]) {
            return Ok(());
        }
    }
    Ok(())
}

/// One row of type `row` for each object of the array.
fn recordset(json: &Value, name: &str, row: &ColType, base: Option<&Value>, ctx: &EvalCtx, emit: Emit<'_>) -> Result<(), SqlError> {
    let Some(json) = json_source(json) else { return Ok(()) };
    match kind(&json) {
        Kind::Array => {}
        Kind::Object => return Err(bad(format!("cannot call {name} on an object"))),
        _ => return Err(bad(format!("cannot call {name} on a scalar"))),
    }
    for item in items(&json) {
        if kind(item) != Kind::Object {
            return Err(bad(format!("argument of {name} must be an array of objects")));
        }
        if let Value::Record(fields) = populate(item, row, base, ctx)? {
            if !emit(fields) {
                return Ok(());
            }
        }
    }
    Ok(())
}

/// The row type of columns whose names are the last argument.
fn named_row(names: Option<&Value>, columns: &[ColType]) -> ColType {
    let name = |i: usize| match names {
        Some(Value::Array(a)) => a.elems.get(i).and_then(Value::as_str).unwrap_or("").to_owned(),
        _ => String::new(),
    };
    let fields = columns.iter().enumerate().map(|(i, t)| (name(i), t.clone())).collect();
    SqlType::Record(Arc::new(RecordType { oid: repr::types::RECORD_OID, array_oid: 0, name: None, fields })).nullable()
}

fn populate_recordset(args: &[Value], name: &str, types: &[ColType], columns: &[ColType], ctx: &EvalCtx, emit: Emit<'_>) -> Result<(), SqlError> {
    let row = match &types[0].ty {
        SqlType::Record(r) if !r.fields.is_empty() => types[0].clone(),
        // The names of a column definition list come last.
        _ if !matches!(args.last(), Some(Value::Array(_))) => return Err(no_row_type(name)),
        _ => named_row(args.last(), columns),
    };
    recordset(&args[1], name, &row, Some(&args[0]), ctx, emit)
}

fn path_query(args: &[Value], zoned: bool, ctx: &EvalCtx, emit: Emit<'_>) -> Result<(), SqlError> {
    for j in crate::func::jsonpath::query(args, Options { silent: false, zoned }, ctx)? {
        if !emit(vec![Value::Jsonb(Box::new(j))]) {
            return Ok(());
        }
    }
    Ok(())
}

pub const ENTRIES: &[TableEntry] = &[
    TableEntry { names: &["jsonb_path_query"], fallible: true, rows: |a, _, _, ctx, emit| path_query(a, false, ctx, emit) },
    TableEntry { names: &["jsonb_path_query_tz"], fallible: true, rows: |a, _, _, ctx, emit| path_query(a, true, ctx, emit) },
    TableEntry { names: &["json_each"], fallible: true, rows: |a, _, _, _, emit| each(a, "json_each", false, emit) },
    TableEntry { names: &["jsonb_each"], fallible: true, rows: |a, _, _, _, emit| each(a, "jsonb_each", false, emit) },
    TableEntry { names: &["json_each_text"], fallible: true, rows: |a, _, _, _, emit| each(a, "json_each_text", true, emit) },
    TableEntry { names: &["jsonb_each_text"], fallible: true, rows: |a, _, _, _, emit| each(a, "jsonb_each_text", true, emit) },
    TableEntry { names: &["json_array_elements"], fallible: true, rows: |a, _, _, _, emit| elements(a, "json_array_elements", false, emit) },
    TableEntry { names: &["jsonb_array_elements"], fallible: true, rows: |a, _, _, _, emit| elements(a, "jsonb_array_elements", false, emit) },
    TableEntry { names: &["json_array_elements_text"], fallible: true, rows: |a, _, _, _, emit| elements(a, "json_array_elements_text", true, emit) },
    TableEntry { names: &["jsonb_array_elements_text"], fallible: true, rows: |a, _, _, _, emit| elements(a, "jsonb_array_elements_text", true, emit) },
    TableEntry { names: &["json_object_keys"], fallible: true, rows: |a, _, _, _, emit| keys(a, "json_object_keys", emit) },
    TableEntry { names: &["jsonb_object_keys"], fallible: true, rows: |a, _, _, _, emit| keys(a, "jsonb_object_keys", emit) },
    TableEntry {
        names: &["json_to_recordset"],
        fallible: true,
        rows: |a, _, c, ctx, emit| recordset(&a[0], "json_to_recordset", &named_row(a.get(1), c), None, ctx, emit),
    },
    TableEntry {
        names: &["jsonb_to_recordset"],
        fallible: true,
        rows: |a, _, c, ctx, emit| recordset(&a[0], "jsonb_to_recordset", &named_row(a.get(1), c), None, ctx, emit),
    },
    TableEntry {
        names: &["json_populate_recordset"],
        fallible: true,
        rows: |a, t, c, ctx, emit| populate_recordset(a, "json_populate_recordset", t, c, ctx, emit),
    },
    TableEntry {
        names: &["jsonb_populate_recordset"],
        fallible: true,
        rows: |a, t, c, ctx, emit| populate_recordset(a, "jsonb_populate_recordset", t, c, ctx, emit),
    },
];
