//! Casts: through text, between names for the same bytes, over arrays, lengths and precisions, strings and "char".
//!
//! Not here: numeric (`numeric`), dates and times (`datetime`), jsonb (`json`), integers and floats (`arith`, `float`).

use super::construct::element_type;
use super::lift::{at, fill, full_length, interrupted, on_values, Call};
use super::{by_oid, CallArgs, Entry, FuncDef, Kernel, Volatility};
use crate::ctx::EvalCtx;
use crate::{f1, val};
use arrow_array::ArrayRef;
use repr::error::state;
use repr::{column, text, ColType, ColumnBuilder, Numeric, SqlError, SqlType, TextStyle, Value};
use std::cell::RefCell;
use std::sync::Arc;

/// The settings from which a [`TextStyle`] was made, and it.
struct CachedStyle {
    timezone: String,
    catalog: Arc<dyn crate::CatalogView>,
    style: TextStyle,
}

/// Calls `f` with the context's text style, which is made again only when the context's settings change.
pub fn with_style<R>(ctx: &EvalCtx, f: impl FnOnce(&TextStyle) -> R) -> R {
    thread_local! {
        static CACHE: RefCell<Option<CachedStyle>> = const { RefCell::new(None) };
    }
    // Taken out while `f` runs, so that it may come here again.
    let cached = CACHE.take().filter(|c| {
        let s = &c.style;
        c.timezone == ctx.timezone
            && Arc::ptr_eq(&c.catalog, &ctx.catalog)
            && s.date_style == ctx.date_style
            && s.interval_style == ctx.interval_style
            && s.extra_float_digits == ctx.extra_float_digits
            && s.bytea_escape == ctx.bytea_escape
            && s.now_micros == ctx.now_micros
    });
    let cached = cached.unwrap_or_else(|| CachedStyle { timezone: ctx.timezone.clone(), catalog: ctx.catalog.clone(), style: ctx.text_style() });
    let out = f(&cached.style);
    CACHE.set(Some(cached));
    out
}

/// Whether the text form of a type's values depends on nothing but them: not on DateStyle, on names in the catalog and the like.
pub fn output_is_immutable(ty: &SqlType) -> bool {
    !matches!(
        ty.base(),
        SqlType::Date
            | SqlType::Timestamp
            | SqlType::TimestampTz
            | SqlType::Interval
            | SqlType::Money
            | SqlType::Array(_)
            | SqlType::Record(_)
            | SqlType::Range(_)
            | SqlType::Multirange(_)
            | SqlType::Enum(_)
            | SqlType::Reg(_)
    )
}

/// The same of reading the text form.
pub fn input_is_immutable(ty: &SqlType) -> bool {
    output_is_immutable(ty) && !matches!(ty.base(), SqlType::Time | SqlType::TimeTz)
}

/// A value's text form; empty for NULL.
pub fn text_out(v: &Value, ty: &SqlType, ctx: &EvalCtx) -> String {
    match v {
        Value::Text(s) => s.clone(),
        Value::Int4(i) => i.to_string(),
        Value::Int8(i) if *ty != SqlType::Money => i.to_string(),
        v => with_style(ctx, |style| text::to_text(v, ty, style)),
    }
}

/// Reads a value from its text form; of the modifier only an interval's counts (it says what a bare number means).
pub fn text_in(s: &str, ty: &ColType, ctx: &EvalCtx) -> Result<Value, SqlError> {
    let typmod = if ty.ty == SqlType::Interval { ty.typmod } else { -1 };
    let v = with_style(ctx, |style| text::from_text(s, &ty.ty, typmod, style))?;
    if let (SqlType::JsonPath, Value::Text(path)) = (&ty.ty, &v) {
        super::jsonpath::check_patterns(path)?;
    }
    Ok(v)
}

/// One value through its text form.
pub fn io_cast(v: &Value, from: &SqlType, to: &ColType, ctx: &EvalCtx) -> Result<Value, SqlError> {
    match v {
        Value::Null => Ok(Value::Null),
        Value::Text(s) => text_in(s, to, ctx),
        v => {
            let s = text_out(v, from, ctx);
            match to.ty {
                SqlType::Text | SqlType::Varchar | SqlType::Bpchar => Ok(Value::Text(s)),
                _ => text_in(&s, to, ctx),
            }
        }
    }
}

/// A column's text forms.
fn to_text_column(c: &mut CallArgs<'_>) -> ArrayRef {
    let ty = &c.arg_types[0].ty;
    let mut b = arrow_array::builder::StringBuilder::with_capacity(c.len, c.len * 8);
    let mut buf = String::new();
    with_style(c.ctx, |style| {
        for i in 0..c.len {
            let v = column::get(&c.args[0], ty, at(&c.args[0], c.len, i));
            if v.is_null() {
                b.append_null();
                continue;
            }
            buf.clear();
            text::write_text(&v, ty, style, &mut buf);
            if interrupted(c, i) {
                (i..c.len).for_each(|_| b.append_null());
                break;
            }
            if !column::has_room(b.values_slice().len(), buf.len()) {
                (i..c.len).for_each(|_| b.append_null());
                fill(c, i);
                break;
            }
            b.append_value(if c.ret.ty == SqlType::Name { text::truncate_name(&buf) } else { &buf });
        }
    });
    Arc::new(b.finish())
}

/// The same bits under another type.
pub fn relabel_value(v: Value, to: &SqlType) -> Value {
    match (v, to) {
        (Value::Int4(i), SqlType::Oid | SqlType::Reg(_) | SqlType::Xid | SqlType::UInt4) => Value::UInt4(i as u32),
        (Value::Int2(i), SqlType::Oid | SqlType::Reg(_) | SqlType::Xid) => Value::UInt4(i32::from(i) as u32),
        (Value::UInt4(i), SqlType::Int4) => Value::Int4(i as i32),
        (Value::Array(a), SqlType::Array(e)) => {
            let mut a = a;
            a.elems = a.elems.into_iter().map(|v| relabel_value(v, e)).collect();
            Value::Array(a)
        }
        (v, _) => v,
    }
}

fn relabel(c: &mut CallArgs<'_>) -> ArrayRef {
    let (from, to) = (&c.arg_types[0].ty, &c.ret.ty);
    if from == to {
        return full_length(c, 0);
    }
    let physical = column::physical(from);
    if physical == column::physical(to) && physical != arrow_schema::DataType::Binary {
        return full_length(c, 0);
    }
    on_values(c, true, |a, call| Ok(relabel_value(a[0].clone(), &call.ret.ty)))
}

/// Each element of an array through a cast function.
fn cast_array(args: &[Value], call: &Call<'_>) -> Result<Value, SqlError> {
    let Value::Array(a) = &args[1] else { return Ok(Value::Null) };
    let op = args[0].as_i64().unwrap_or(0);
    let (from, to) = (element_type(&call.arg_types[1].ty), element_type(&call.ret.ty));
    let target = ColType { ty: to.clone(), typmod: call.ret.typmod, nullable: true };
    let mut out = (**a).clone();
    match op {
        0 => {
            for e in &mut out.elems {
                *e = io_cast(e, from, &target, call.ctx)?;
            }
        }
        1 => out.elems = out.elems.into_iter().map(|v| relabel_value(v, to)).collect(),
        op => {
            let f = u32::try_from(op).ok().and_then(by_oid).ok_or_else(|| SqlError::internal(format!("cast function {op}")))?;
            // All elements in one call.
            let n = out.elems.len();
            let mut b = ColumnBuilder::new(from, n);
            out.elems.iter().for_each(|e| b.push(e));
            let mut cols = vec![b.finish()];
            let mut types = vec![from.clone().nullable()];
            for (v, t) in args[2..].iter().zip(&call.arg_types[2..]) {
                cols.push(column::repeat(v, &t.ty, n));
                types.push(t.clone());
            }
            if n > 0 {
                let mut errors = Vec::new();
                let result = (f.kernel)(&mut CallArgs { args: &cols, arg_types: &types, ret: &target, len: n, ctx: call.ctx, errors: &mut errors });
                if let Some((_, e)) = errors.into_iter().next() {
                    return Err(e);
                }
                // A function may return another type of the same bits: int2 becomes oid by way of int4.
                let made = crate::catalog::proc_by_oid(f.oid).and_then(|p| SqlType::from_oid(p.ret));
                let made = made.filter(|m| column::physical(m) != column::physical(to)).unwrap_or_else(|| to.clone());
                for (i, e) in out.elems.iter_mut().enumerate() {
                    *e = relabel_value(column::get(&result, &made, i), to);
                }
            }
        }
    }
    Ok(Value::Array(Box::new(out)))
}

/// What a value is padded to at most. The modifiers of types are bounded themselves, but anyone may call the functions.
const PADDED_MAX: i32 = 1 << 30;

/// `f(value, typmod [, explicit])`: a length coercion.
fn coerce(args: &[Value], call: &Call<'_>) -> Result<Value, SqlError> {
    let typmod = args[1].as_i64().and_then(|t| i32::try_from(t).ok()).unwrap_or(-1);
    let explicit = args.get(2) == Some(&Value::Bool(true));
    if typmod < 4 && matches!(call.ret.ty, SqlType::Varchar | SqlType::Bpchar) {
        return Ok(args[0].clone());
    }
    if typmod > PADDED_MAX && matches!(call.ret.ty, SqlType::Bpchar | SqlType::Bit) {
        return Err(SqlError::new(state::PROGRAM_LIMIT_EXCEEDED, "requested length too large"));
    }
    text::apply_typmod(args[0].clone(), &call.ret.ty, typmod, explicit)
}

/// A number of any type as another; the unsigned types have no conversions of their own in Postgres.
fn number_cast(args: &[Value], call: &Call<'_>) -> Result<Value, SqlError> {
    let v = &args[0];
    let to = &call.ret.ty;
    let range = || super::arith::out_of_range(&to.sql_name());
    let whole: Option<i128> = match v {
        Value::UInt8(u) => Some(i128::from(*u)),
        Value::Float4(f) => float_whole((*f).into()),
        Value::Float8(f) => float_whole(*f),
        Value::Numeric(n) => n.to_i128_rounded(),
        v => v.as_i64().map(i128::from),
    };
    let to_f64 = || match v {
        Value::Float4(f) => f64::from(*f),
        Value::Float8(f) => *f,
        Value::Numeric(n) => n.to_f64(),
        _ => whole.unwrap_or(0) as f64,
    };
    let w = || whole.ok_or_else(range);
    Ok(match to {
        SqlType::Int2 => Value::Int2(i16::try_from(w()?).map_err(|_| range())?),
        SqlType::Int4 => Value::Int4(i32::try_from(w()?).map_err(|_| range())?),
        SqlType::Int8 => Value::Int8(i64::try_from(w()?).map_err(|_| range())?),
        SqlType::UInt2 => Value::UInt2(u16::try_from(w()?).map_err(|_| range())?),
        SqlType::UInt4 => Value::UInt4(u32::try_from(w()?).map_err(|_| range())?),
        SqlType::UInt8 => Value::UInt8(u64::try_from(w()?).map_err(|_| range())?),
        SqlType::Float4 => Value::Float4(to_f64() as f32),
        SqlType::Float8 => Value::Float8(to_f64()),
        SqlType::Numeric => Value::Numeric(Numeric::from_i128(w()?)),
        other => return Err(SqlError::internal(format!("number cast to {other}"))),
    })
}

fn float_whole(f: f64) -> Option<i128> {
    let r = f.round_ties_even();
    (r.is_finite() && r.abs() < 1e30).then_some(r as i128)
}

const fn entry(name: &'static str, fallible: bool, strict: bool, kernel: Kernel) -> FuncDef {
    FuncDef { name, oid: 0, strict, volatility: Volatility::Immutable, fallible, kernel }
}

pub const INTERNAL: &[FuncDef] = &[
    entry("cast_io", true, true, |c| match c.ret.ty {
        SqlType::Text | SqlType::Varchar | SqlType::Bpchar => to_text_column(c),
        _ => on_values(c, true, |a, call| io_cast(&a[0], &call.arg_types[0].ty, call.ret, call.ctx)),
    }),
    entry("cast_to_text", false, true, to_text_column),
    entry("relabel", false, true, relabel),
    entry("cast_array", true, true, |c| on_values(c, true, cast_array)),
    entry("cast_array_total", false, true, |c| on_values(c, true, cast_array)),
];

pub const FUNCS: &[Entry] = &[
    val!(? ["bit", "varbit", "bpchar", "varchar", "numeric", "timestamp_scale", "timestamptz_scale", "time_scale", "timetz_scale", "interval_scale"], coerce),
    val!(? ["number_cast"], number_cast),
    f1!(["booltext"], bool => &'static str, |b| if b { "true" } else { "false" }),
    f1!(["char_text", "char_bpchar", "name_text", "name_bpchar"], super::lift::Str => String, str::to_owned),
    f1!(["text_name"], super::lift::Str => String, |s| text::truncate_name(s).to_owned()),
    f1!(["bpchar_name"], super::lift::Str => String, |s| text::truncate_name(s.trim_end_matches(' ')).to_owned()),
    f1!(["xid8toxid"], u64 => u32, |x| x as u32),
    f1!(["text_char"], super::lift::Str => String, text::first_byte),
    f1!(["chartoi4"], super::lift::Str => i32, |s| i32::from(text::char_byte(s) as i8)),
    f1!(? ["i4tochar"], i32 => String, |i| match i {
        0 => Ok(String::new()),
        1..=127 => Ok(char::from(i as u8).to_string()),
        -128..=-1 => Ok(format!("\\{:03o}", i as u8)),
        _ => Err(SqlError::new(state::NUMERIC_VALUE_OUT_OF_RANGE, "\"char\" out of range")),
    }),
    val!(? ["text_regclass"], |a, call| io_cast(&a[0], &SqlType::Text, call.ret, call.ctx)),
    // The input and output functions of types, called by name.
    val!(? ["uuid_in", "boolin", "int2in", "int4in", "int8in", "float4in", "float8in", "textin", "byteain", "jsonb_in", "json_in"], |a, call| {
        io_cast(&a[0], &call.arg_types[0].ty, call.ret, call.ctx)
    }),
    val!(["uuid_out", "boolout", "int2out", "int4out", "int8out", "float4out", "float8out", "textout", "byteaout", "jsonb_out", "json_out"], |a, call| {
        Ok(Value::Text(text_out(&a[0], &call.arg_types[0].ty, call.ctx)))
    }),
];
