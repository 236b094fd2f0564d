//! The functions that `information_schema` is made with: what a type with its modifier is, as the standard counts it.

use super::lift::Call;
use super::system::{format_type, oid_of};
use super::Entry;
use crate::val;
use repr::{SqlError, SqlType, Value};

/// The type, and its modifier if it has one.
fn given(a: &[Value]) -> (Option<SqlType>, Option<i64>) {
    (SqlType::from_oid(oid_of(&a[0])), a[1].as_i64().filter(|m| *m != -1))
}

fn number(n: Option<i64>) -> Result<Value, SqlError> {
    Ok(n.and_then(|n| i32::try_from(n).ok()).map_or(Value::Null, Value::Int4))
}

fn max_length(ty: Option<&SqlType>, typmod: Option<i64>) -> Option<i64> {
    match ty? {
        SqlType::Bpchar | SqlType::Varchar => typmod.map(|m| m - 4),
        SqlType::Bit | SqlType::VarBit => typmod,
        _ => None,
    }
}

fn octet_length(a: &[Value]) -> Option<i64> {
    const UNBOUNDED: i64 = 1 << 30;
    const BYTES_OF_A_CHARACTER: i64 = 4;
    let (ty, typmod) = given(a);
    match ty.as_ref()? {
        SqlType::Text | SqlType::Bpchar | SqlType::Varchar if typmod.is_none() => Some(UNBOUNDED),
        SqlType::Bpchar | SqlType::Varchar => max_length(ty.as_ref(), typmod).map(|n| n * BYTES_OF_A_CHARACTER),
        _ => None,
    }
}

fn precision(a: &[Value]) -> Option<i64> {
    let (ty, typmod) = given(a);
    match ty? {
        SqlType::Int2 => Some(16),
        SqlType::Int4 => Some(32),
        SqlType::Int8 => Some(64),
        SqlType::Numeric => typmod.map(|m| (m - 4) >> 16 & 0xffff),
        SqlType::Float4 => Some(24),
        SqlType::Float8 => Some(53),
        _ => None,
    }
}

fn radix(a: &[Value]) -> Option<i64> {
    match given(a).0? {
        SqlType::Int2 | SqlType::Int4 | SqlType::Int8 | SqlType::Float4 | SqlType::Float8 => Some(2),
        SqlType::Numeric => Some(10),
        _ => None,
    }
}

fn scale(a: &[Value]) -> Option<i64> {
    let (ty, typmod) = given(a);
    match ty? {
        SqlType::Int2 | SqlType::Int4 | SqlType::Int8 => Some(0),
        SqlType::Numeric => typmod.map(|m| (m - 4) & 0xffff),
        _ => None,
    }
}

fn datetime_precision(a: &[Value]) -> Option<i64> {
    let (ty, typmod) = given(a);
    match ty? {
        SqlType::Date => Some(0),
        SqlType::Time | SqlType::TimeTz | SqlType::Timestamp | SqlType::TimestampTz => Some(typmod.filter(|m| *m >= 0).unwrap_or(6)),
        SqlType::Interval => Some(typmod.filter(|m| *m >= 0).map(|m| m & 0xffff).filter(|p| *p != 0xffff).unwrap_or(6)),
        _ => None,
    }
}

/// The fields that an interval is limited to.
fn interval_type(a: &[Value], call: &Call<'_>) -> Result<Value, SqlError> {
    let (ty, typmod) = given(a);
    if ty != Some(SqlType::Interval) {
        return Ok(Value::Null);
    }
    let shown = format_type(oid_of(&a[0]), typmod.and_then(|m| i32::try_from(m).ok()), &*call.ctx.catalog);
    let fields = shown.strip_prefix("interval").unwrap_or("").trim_start_matches(|c: char| c.is_ascii_digit() || matches!(c, '(' | ')'));
    Ok(fields.strip_prefix(' ').map_or(Value::Null, |f| Value::Text(f.to_uppercase())))
}

/// A column of a domain's type is told as of the type that the domain is over: a field of `pg_type` then, else one of `pg_attribute`.
fn true_type(a: &[Value], call: &Call<'_>, of_domain: &str, own: &str) -> Result<Value, SqlError> {
    let field = |n: usize, name: &str| match (&a[n], &call.arg_types[n].ty) {
        (Value::Record(fields), SqlType::Record(r)) => r.fields.iter().position(|f| f.0 == name).and_then(|i| fields.get(i).cloned()),
        _ => None,
    };
    let is_domain = field(1, "typtype").is_some_and(|t| t.as_str() == Some("d"));
    Ok(if is_domain { field(1, of_domain) } else { field(0, own) }.unwrap_or(Value::Null))
}

pub const FUNCS: &[Entry] = &[
    val!(? ["13210"], |a, call| true_type(a, call, "typbasetype", "atttypid")),
    val!(? ["13211"], |a, call| true_type(a, call, "typtypmod", "atttypmod")),
    val!(? ["13212"], |a, _| {
        let (ty, typmod) = given(a);
        number(max_length(ty.as_ref(), typmod))
    }),
    val!(? ["13213"], |a, _| number(octet_length(a))),
    val!(? ["13215"], |a, _| number(precision(a))),
    val!(? ["13216"], |a, _| number(radix(a))),
    val!(? ["13217"], |a, _| number(scale(a))),
    val!(? ["13218"], |a, _| number(datetime_precision(a))),
    val!(? ["13219"], interval_type),
    val!(? ["13209"], |a, call| {
        let (index, column) = (oid_of(&a[0]), a[1].as_i64());
        number(call.ctx.catalog.index_columns(index).iter().position(|c| Some(i64::from(*c)) == column).map(|n| n as i64 + 1))
    }),
];
