//! What an object of the catalog is called: `pg_describe_object` and its kin. Not here: the names (`adapter`).

use super::lift::Call;
use super::system::oid_of;
use super::Entry;
use crate::val;
use repr::error::state;
use repr::{SqlError, Value};

fn text_or_null(s: Option<String>) -> Value {
    s.map_or(Value::Null, Value::Text)
}

fn texts(all: Vec<String>) -> Value {
    Value::array(all.into_iter().map(Value::Text).collect())
}

fn place(a: &[Value]) -> (u32, u32, i32) {
    (oid_of(&a[0]), oid_of(&a[1]), a[2].as_i64().and_then(|n| i32::try_from(n).ok()).unwrap_or(0))
}

fn describe(a: &[Value], call: &Call<'_>) -> Result<Value, SqlError> {
    let (class, oid, column) = place(a);
    if class == 0 && oid == 0 {
        return Ok(Value::Null);
    }
    Ok(text_or_null(call.ctx.catalog.object(class, oid, column)?.1.map(|o| o.description)))
}

fn identify(a: &[Value], call: &Call<'_>) -> Result<Value, SqlError> {
    let (class, oid, column) = place(a);
    let (kind, found) = call.ctx.catalog.object(class, oid, column)?;
    Ok(Value::Record(match found {
        Some(o) => vec![Value::text(kind), text_or_null(o.schema), text_or_null(o.name), Value::Text(o.identity)],
        None => vec![Value::text(kind), Value::Null, Value::Null, Value::Null],
    }))
}

fn identify_as_address(a: &[Value], call: &Call<'_>) -> Result<Value, SqlError> {
    let (class, oid, column) = place(a);
    let (kind, found) = call.ctx.catalog.object(class, oid, column)?;
    Ok(Value::Record(match found {
        Some(o) => vec![Value::text(kind), texts(o.names), texts(o.args)],
        None => vec![Value::text(kind), Value::Null, Value::Null],
    }))
}

fn address(a: &[Value], call: &Call<'_>) -> Result<Value, SqlError> {
    let list = |v: &Value| match v {
        Value::Array(a) => a.elems.iter().map(|e| e.as_str().map(str::to_owned)).collect::<Option<Vec<String>>>(),
        _ => Some(Vec::new()),
    };
    let nulls = || SqlError::new(state::INVALID_PARAMETER_VALUE, "name or argument lists may not contain nulls");
    let (names, args) = (list(&a[1]).ok_or_else(nulls)?, list(&a[2]).ok_or_else(nulls)?);
    let (class, oid, column) = call.ctx.catalog.object_address(a[0].as_str().unwrap_or(""), &names, &args)?;
    Ok(Value::Record(vec![Value::UInt4(class), Value::UInt4(oid), Value::Int4(column)]))
}

pub const FUNCS: &[Entry] = &[
    val!(? ["pg_describe_object"], describe),
    val!(? ["pg_identify_object"], identify),
    val!(? ["pg_identify_object_as_address"], identify_as_address),
    val!(? ["pg_get_object_address"], address),
    val!(? ["pg_sequence_parameters"], |a, call| call.ctx.catalog.sequence_parameters(oid_of(&a[0])).map(Value::Record)),
];
