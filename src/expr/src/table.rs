//! Set-returning functions: generate_series, unnest, json_each and their like.

use crate::catalog;
use crate::ctx::EvalCtx;
use crate::func::regex::{self, Flags};
use crate::func::text::split_text;
use crate::scalar::Scalar;
use num_bigint::BigInt;
use repr::error::state;
use repr::{ColType, Numeric, SqlError, SqlType, Value};
use std::collections::HashMap;
use std::sync::OnceLock;

/// Functions over json and jsonb.
mod json;
/// Functions over the system.
mod system;
pub use system::{build_settings, time_zones, zone_abbreviations};
/// Functions of text search.
mod tsearch;

/// A call of a set-returning function on each input row.
#[derive(Clone, Debug, PartialEq)]
pub struct TableFunc {
    pub func: &'static TableFuncDef,
    pub args: Vec<Scalar>,
    /// Types of the columns it returns (without ordinality).
    pub columns: Vec<ColType>,
    /// Adds a last column of int8: 1, 2, 3, ...
    pub with_ordinality: bool,
}

pub struct TableFuncDef {
    pub name: &'static str,
    pub oid: u32,
    /// NULL arguments give no rows.
    pub strict: bool,
    pub fallible: bool,
    pub rows: TableKernel,
}

/// Calls `emit` with each row; `emit` returns false when no more rows are wanted. Functions declared to return `record` get
/// one argument more: a text[] literal with the names of `columns`.
pub type TableKernel =
    fn(args: &[Value], types: &[ColType], columns: &[ColType], ctx: &EvalCtx, emit: &mut dyn FnMut(Vec<Value>) -> bool) -> Result<(), SqlError>;

impl std::fmt::Debug for TableFuncDef {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

impl PartialEq for TableFuncDef {
    fn eq(&self, other: &TableFuncDef) -> bool {
        self.oid == other.oid && self.name == other.name
    }
}

/// One line of a table of set-returning functions, keyed like `func::Entry`.
pub struct TableEntry {
    pub names: &'static [&'static str],
    pub fallible: bool,
    pub rows: TableKernel,
}

/// The set-returning function with this pg_proc OID, if it is implemented.
pub fn by_oid(oid: u32) -> Option<&'static TableFuncDef> {
    static DEFS: OnceLock<HashMap<u32, TableFuncDef>> = OnceLock::new();
    let defs = DEFS.get_or_init(|| {
        let entries: HashMap<&str, &TableEntry> = TABLES.iter().flat_map(|t| t.iter()).flat_map(|e| e.names.iter().map(move |n| (*n, e))).collect();
        let mut defs = HashMap::new();
        for p in catalog::procs().iter().filter(|p| p.returns_set) {
            if let Some(e) = entries.get(p.oid.to_string().as_str()).or_else(|| entries.get(p.src)) {
                defs.insert(p.oid, TableFuncDef { name: p.name, oid: p.oid, strict: p.strict, fallible: e.fallible, rows: e.rows });
            }
        }
        defs
    });
    defs.get(&oid)
}

impl TableFunc {
    /// The rows for one tuple of arguments, ordinality included. Strict functions have none for NULL arguments.
    ///
    /// Errors: the function's; rows emitted before it do not count.
    pub fn rows(&self, args: &[Value], types: &[ColType], ctx: &EvalCtx, emit: &mut dyn FnMut(Vec<Value>) -> bool) -> Result<(), SqlError> {
        if self.func.strict && args.iter().any(Value::is_null) {
            return Ok(());
        }
        let _entered = ctx.interrupt.enter();
        let mut n = 0;
        let result = (self.func.rows)(args, types, &self.columns, ctx, &mut |mut row| {
            if self.with_ordinality {
                n += 1;
                row.push(Value::Int8(n));
            }
            !ctx.interrupt.is_set() && emit(row)
        });
        ctx.interrupt.check()?;
        result
    }
}

type Emit<'a> = &'a mut dyn FnMut(Vec<Value>) -> bool;

fn step_zero() -> SqlError {
    SqlError::new(state::INVALID_PARAMETER_VALUE, "step size cannot equal zero")
}

/// generate_series over int4 and int8; it ends where the type ends.
fn series_int(args: &[Value], types: &[ColType], _: &[ColType], _: &EvalCtx, emit: Emit<'_>) -> Result<(), SqlError> {
    let at = |i: usize| args.get(i).and_then(Value::as_i64);
    let (Some(from), Some(to)) = (at(0), at(1)) else { return Ok(()) };
    let step = at(2).unwrap_or(1);
    if step == 0 {
        return Err(step_zero());
    }
    let narrow = types[0].ty == SqlType::Int4;
    let mut v = from;
    while if step > 0 { v <= to } else { v >= to } {
        let value = if narrow { Value::Int4(v as i32) } else { Value::Int8(v) };
        if !emit(vec![value]) {
            return Ok(());
        }
        match v.checked_add(step) {
            Some(n) => v = n,
            None => return Ok(()),
        }
    }
    Ok(())
}

fn series_numeric(args: &[Value], _: &[ColType], _: &[ColType], _: &EvalCtx, emit: Emit<'_>) -> Result<(), SqlError> {
    let mut parts = Vec::new();
    for (v, what) in args.iter().zip(["start", "stop", "step size"]) {
        match v {
            Value::Numeric(n) if n.is_finite() => parts.push(n.clone()),
            Value::Numeric(Numeric::NaN) => {
                return Err(SqlError::new(state::INVALID_PARAMETER_VALUE, format!("{what} value cannot be NaN").replace("size value", "size")))
            }
            _ => return Err(SqlError::new(state::INVALID_PARAMETER_VALUE, format!("{what} value cannot be infinity").replace("size value", "size"))),
        }
    }
    let step = parts.get(2).cloned().unwrap_or_else(|| Numeric::from(1));
    // All at the largest scale; the start and step's scale is what is shown.
    let shown = parts[0].scale().max(step.scale());
    let scale = shown.max(parts[1].scale());
    let up = |n: &Numeric| n.rescaled_up(scale).unscaled();
    let (mut v, to, by) = (up(&parts[0]), up(&parts[1]), up(&step));
    let zero = BigInt::default();
    if by == zero {
        return Err(step_zero());
    }
    let down = num_traits::pow(BigInt::from(10), usize::from(scale - shown));
    // The first value has its own scale, the sums the larger of both.
    let mut first = Some(parts[0].clone());
    while if by > zero { v <= to } else { v >= to } {
        let value = first.take().unwrap_or_else(|| Numeric::from_big(&v / &down, shown));
        if !emit(vec![Value::Numeric(value)]) {
            return Ok(());
        }
        v += &by;
    }
    Ok(())
}

/// generate_series over timestamps: each value is the one before plus the interval, as Postgres adds it.
fn series_time(args: &[Value], _: &[ColType], _: &[ColType], ctx: &EvalCtx, emit: Emit<'_>) -> Result<(), SqlError> {
    let (oid, with_zone) = match args[0] {
        Value::TimestampTz(_) => (1189, true),
        _ => (2032, false),
    };
    let Value::Interval(step) = &args[2] else { return Ok(()) };
    let sign = step.span_micros().signum();
    if sign == 0 {
        return Err(step_zero());
    }
    let add = crate::func::by_oid(oid).ok_or_else(|| SqlError::unsupported("generate_series over timestamps", "timestamp + interval is missing"))?;
    let ty = if with_zone { SqlType::TimestampTz } else { SqlType::Timestamp };
    let types = [ty.clone().nullable(), SqlType::Interval.nullable()];
    let micros = |v: &Value| match v {
        Value::Timestamp(t) | Value::TimestampTz(t) => *t,
        _ => 0,
    };
    let end = micros(&args[1]);
    let mut v = args[0].clone();
    while if sign > 0 { micros(&v) <= end } else { micros(&v) >= end } {
        if !emit(vec![v.clone()]) {
            return Ok(());
        }
        v = crate::eval::call_values(add, &[v, args[2].clone()], &types, &types[0], ctx)?;
    }
    Ok(())
}

/// Elements in row-major order; of composite elements, their fields.
fn expand_array(args: &[Value], _: &[ColType], _: &[ColType], _: &EvalCtx, emit: Emit<'_>) -> Result<(), SqlError> {
    if let Value::Array(a) = &args[0] {
        for (e, n) in a.elems.iter().zip(1..) {
            if !emit(vec![e.clone(), Value::Int4(n)]) {
                return Ok(());
            }
        }
    }
    Ok(())
}

fn unnest(args: &[Value], _: &[ColType], columns: &[ColType], _: &EvalCtx, emit: Emit<'_>) -> Result<(), SqlError> {
    match &args[0] {
        Value::Array(a) => {
            for e in &a.elems {
                let row = match e {
                    Value::Record(f) if columns.len() > 1 || !matches!(columns[0].ty, SqlType::Record(_)) => f.clone(),
                    Value::Null if columns.len() > 1 => vec![Value::Null; columns.len()],
                    e => vec![e.clone()],
                };
                if !emit(row) {
                    return Ok(());
                }
            }
        }
        Value::Multirange(rs) => {
            for r in rs {
                if !emit(vec![Value::Range(Box::new(r.clone()))]) {
                    return Ok(());
                }
            }
        }
        _ => {}
    }
    Ok(())
}

fn subscripts(args: &[Value], _: &[ColType], _: &[ColType], _: &EvalCtx, emit: Emit<'_>) -> Result<(), SqlError> {
    let (Value::Array(a), Some(n)) = (&args[0], args[1].as_i64()) else { return Ok(()) };
    let Some((len, lower)) = usize::try_from(n - 1).ok().and_then(|i| a.dims.get(i)) else { return Ok(()) };
    let all: Vec<i32> = (*lower..lower + len).collect();
    let backward = args.get(2) == Some(&Value::Bool(true));
    for i in 0..all.len() {
        let k = if backward { all.len() - 1 - i } else { i };
        if !emit(vec![Value::Int4(all[k])]) {
            return Ok(());
        }
    }
    Ok(())
}

fn flags_of(args: &[Value], i: usize) -> Result<Flags, SqlError> {
    Flags::parse(args.get(i).and_then(Value::as_str).unwrap_or(""))
}

fn regexp_matches(args: &[Value], _: &[ColType], _: &[ColType], _: &EvalCtx, emit: Emit<'_>) -> Result<(), SqlError> {
    let (Some(s), Some(p)) = (args[0].as_str(), args[1].as_str()) else { return Ok(()) };
    let mut flags = flags_of(args, 2)?;
    let global = std::mem::take(&mut flags.global);
    regex::compile(p, flags)?.find_all(s, 0, global, |g| emit(vec![regex::groups_array(s, &g)]))
}

fn regexp_split(args: &[Value], _: &[ColType], _: &[ColType], _: &EvalCtx, emit: Emit<'_>) -> Result<(), SqlError> {
    let (Some(s), Some(p)) = (args[0].as_str(), args[1].as_str()) else { return Ok(()) };
    let flags = flags_of(args, 2)?;
    if flags.global {
        return Err(SqlError::new(state::INVALID_PARAMETER_VALUE, "regexp_split_to_table() does not support the \"global\" option"));
    }
    for part in regex::split(s, p, flags)? {
        if !emit(vec![part]) {
            return Ok(());
        }
    }
    Ok(())
}

fn string_to_table(args: &[Value], _: &[ColType], _: &[ColType], _: &EvalCtx, emit: Emit<'_>) -> Result<(), SqlError> {
    let Some(s) = args[0].as_str().filter(|s| !s.is_empty()) else { return Ok(()) };
    for part in split_text(s, args[1].as_str(), args.get(2).and_then(Value::as_str)) {
        if !emit(vec![part]) {
            return Ok(());
        }
    }
    Ok(())
}

const ENTRIES: &[TableEntry] = &[
    TableEntry {
        names: &["generate_series_int4", "generate_series_step_int4", "generate_series_int8", "generate_series_step_int8"],
        fallible: true,
        rows: series_int,
    },
    TableEntry { names: &["generate_series_numeric", "generate_series_step_numeric"], fallible: true, rows: series_numeric },
    TableEntry { names: &["generate_series_timestamp", "generate_series_timestamptz"], fallible: true, rows: series_time },
    TableEntry { names: &["array_unnest", "multirange_unnest"], fallible: false, rows: unnest },
    // information_schema._pg_expandarray, which drivers ask for the columns of keys: elements with their numbers.
    TableEntry { names: &["13208"], fallible: false, rows: expand_array },
    TableEntry { names: &["generate_subscripts", "generate_subscripts_nodir"], fallible: false, rows: subscripts },
    TableEntry { names: &["regexp_matches", "regexp_matches_no_flags"], fallible: true, rows: regexp_matches },
    TableEntry { names: &["regexp_split_to_table", "regexp_split_to_table_no_flags"], fallible: true, rows: regexp_split },
    TableEntry { names: &["text_to_table", "text_to_table_null"], fallible: false, rows: string_to_table },
];

/// The files' tables.
const TABLES: &[&[TableEntry]] = &[ENTRIES, json::ENTRIES, system::ENTRIES, tsearch::ENTRIES];
