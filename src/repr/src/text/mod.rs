//! Text input and output of each type, as Postgres writes it.
//!
//! ```text
//!   to_text / write_text   value -> text      scalar     numbers, bool, uuid, bytea, inet, "char"
//!   from_text              text -> value      nested     arrays, records, ranges, maps
//!   apply_typmod           length, precision and scale
//! ```
//!
//! Errors carry Postgres's SQLSTATE and wording. Not here: casts between types (`expr`), names of catalog objects (a
//! [`RegNames`] gives them).

/// What a role may do.
pub mod acl;
/// Arrays, records, ranges, maps.
mod nested;
/// Types without parts.
/// Money, hardware addresses, bit strings, transaction numbers.
pub mod plain;
mod scalar;
/// Which transactions a reader sees.
pub mod snapshot;

use crate::datetime;
use crate::error::{state, SqlError};
use crate::jsonb;
use crate::numeric::Numeric;
use crate::style::TextStyle;
use crate::tsearch::{TsQuery, TsVector};
use crate::types::SqlType;
use crate::value::Value;

pub use scalar::{parse_bool, parse_bytea, parse_f32, parse_f64, parse_inet, parse_int, print_bytea, print_f32, print_f64, print_inet, print_uuid};

/// A value as text; NULL is empty.
pub fn to_text(value: &Value, ty: &SqlType, style: &TextStyle) -> String {
    let mut out = String::new();
    write_text(value, ty, style, &mut out);
    out
}

/// Appends a value's text; nothing for NULL.
pub fn write_text(value: &Value, ty: &SqlType, style: &TextStyle, out: &mut String) {
    let ty = ty.base();
    match value {
        Value::Null => {}
        Value::Bool(v) => out.push(if *v { 't' } else { 'f' }),
        Value::Int2(v) => scalar::put(v, out),
        Value::Int4(v) => scalar::put(v, out),
        Value::Int8(v) if *ty == SqlType::Money => plain::print_money(*v, out),
        Value::Int8(v) => scalar::put(v, out),
        Value::UInt2(v) => scalar::put(v, out),
        Value::UInt4(v) => match ty {
            SqlType::Enum(e) => out.push_str(&e.label(*v)),
            SqlType::Reg(kind) => match style.reg_names.as_ref().and_then(|n| n.reg_name(*kind, *v)) {
                Some(name) => out.push_str(&name),
                None => scalar::print_reg(*kind, *v, out),
            },
            _ => scalar::put(v, out),
        },
        Value::UInt8(v) if *ty == SqlType::PgLsn => plain::print_lsn(*v, out),
        Value::UInt8(v) if *ty == SqlType::Tid => out.push_str(&format!("({},{})", v >> 16, v & 0xffff)),
        Value::UInt8(v) => scalar::put(v, out),
        Value::Float4(v) => print_f32(*v, style.extra_float_digits, out),
        Value::Float8(v) => print_f64(*v, style.extra_float_digits, out),
        Value::Numeric(n) => n.print(out),
        Value::Text(s) => out.push_str(s),
        Value::Bytea(b) if matches!(ty, SqlType::MacAddr | SqlType::MacAddr8) => plain::print_mac(b, out),
        Value::Bytea(b) => match ty {
            SqlType::Geo(kind) => crate::geo::print(*kind, b, style.extra_float_digits, out),
            SqlType::TsVector => TsVector::read(b).print(out),
            SqlType::TsQuery => TsQuery::read(b).print(out),
            _ => print_bytea(b, style.bytea_escape, out),
        },
        Value::Date(d) => datetime::print_date(*d, style.date_style, out),
        Value::Time(t) => datetime::print_time(*t, out),
        Value::TimeTz(t) => datetime::print_timetz(*t, out),
        Value::Timestamp(t) => datetime::print_timestamp(*t, style.date_style, out),
        Value::TimestampTz(t) => datetime::print_timestamptz(*t, &style.timezone, style.date_style, out),
        Value::Interval(i) => datetime::print_interval(i, style.interval_style, out),
        Value::Uuid(u) => print_uuid(u, out),
        Value::Jsonb(j) => j.print(out),
        Value::Inet(i) => print_inet(i, *ty == SqlType::Cidr, out),
        Value::Array(_) | Value::Record(_) | Value::Range(_) | Value::Multirange(_) | Value::Map(_) => nested::write(value, ty, style, out),
    }
}

/// Reads a value of type `ty`, with its modifier applied as input functions do (blanks beyond `varchar(n)` are cut, other text refused).
/// Errors: Postgres's, by type.
pub fn from_text(text: &str, ty: &SqlType, typmod: i32, style: &TextStyle) -> Result<Value, SqlError> {
    if let SqlType::Domain(d) = ty {
        return from_text(text, &d.base.ty, d.base.typmod, style);
    }
    let value = match ty {
        SqlType::Bool => Value::Bool(parse_bool(text)?),
        SqlType::Int2 => Value::Int2(parse_int(text, "smallint")?),
        SqlType::Int4 => Value::Int4(parse_int(text, "integer")?),
        SqlType::Int8 => Value::Int8(parse_int(text, "bigint")?),
        SqlType::UInt2 => Value::UInt2(parse_int(text, "uint2")?),
        SqlType::UInt4 => Value::UInt4(parse_int(text, "uint4")?),
        SqlType::UInt8 => Value::UInt8(parse_int(text, "uint8")?),
        SqlType::Oid => Value::UInt4(scalar::parse_oid(text, "oid")?),
        SqlType::Xid | SqlType::Cid => Value::UInt4(plain::parse_xid(text) as u32),
        SqlType::Tid => Value::UInt8(plain::parse_tid(text)?),
        SqlType::Snapshot | SqlType::TxidSnapshot => Value::Text(snapshot::Snapshot::parse(text)?.to_string()),
        SqlType::AclItem => Value::Text(acl::AclItem::parse(text, style)?.print(style)),
        SqlType::Xid8 => Value::UInt8(plain::parse_xid(text)),
        SqlType::PgLsn => Value::UInt8(plain::parse_lsn(text)?),
        SqlType::Money => Value::Int8(plain::parse_money(text)?),
        SqlType::MacAddr => Value::Bytea(plain::parse_mac(text)?.to_vec()),
        SqlType::MacAddr8 => Value::Bytea(plain::parse_mac8(text)?.to_vec()),
        SqlType::Geo(kind) => Value::Bytea(crate::geo::parse(*kind, text)?),
        SqlType::TsVector => Value::Bytea(TsVector::parse(text)?.to_bytes()),
        SqlType::TsQuery => Value::Bytea(TsQuery::parse(text)?.to_bytes()),
        SqlType::Bit | SqlType::VarBit => Value::Text(plain::parse_bits(text)?),
        SqlType::Reg(kind) => Value::UInt4(scalar::parse_reg(*kind, text, style)?),
        SqlType::Float4 => Value::Float4(parse_f32(text)?),
        SqlType::Float8 => Value::Float8(parse_f64(text)?),
        SqlType::Numeric => Value::Numeric(Numeric::parse(text)?),
        SqlType::Text | SqlType::Varchar | SqlType::Bpchar | SqlType::Unknown | SqlType::RefCursor => Value::text(text),
        SqlType::JsonPath => Value::Text(crate::jsonpath::parse(text)?.to_string()),
        SqlType::Void => Value::text(""),
        SqlType::Char => Value::Text(first_byte(text)),
        SqlType::Name => Value::text(truncate_name(text)),
        SqlType::Bytea => Value::Bytea(parse_bytea(text)?),
        SqlType::Date => Value::Date(datetime::parse_date(text, style)?),
        SqlType::Time => Value::Time(datetime::parse_time(text, style)?),
        SqlType::TimeTz => Value::TimeTz(datetime::parse_timetz(text, style)?),
        SqlType::Timestamp => Value::Timestamp(datetime::parse_timestamp(text, style)?),
        SqlType::TimestampTz => Value::TimestampTz(datetime::parse_timestamptz(text, style)?),
        SqlType::Interval => return datetime::parse_interval(text, style.interval_style, typmod).map(Value::Interval),
        SqlType::Uuid => Value::Uuid(scalar::parse_uuid(text)?),
        SqlType::Json => {
            jsonb::check(text)?;
            Value::text(text)
        }
        SqlType::Jsonb => Value::Jsonb(Box::new(jsonb::parse(text)?)),
        SqlType::Inet => Value::Inet(parse_inet(text, false)?),
        SqlType::Cidr => Value::Inet(parse_inet(text, true)?),
        SqlType::Enum(e) => match e.code(text) {
            Some(code) => Value::UInt4(code),
            None => return Err(SqlError::new(state::INVALID_TEXT_REPRESENTATION, format!("invalid input value for enum {}: \"{text}\"", e.name))),
        },
        SqlType::Array(_)
        | SqlType::Int2Vector
        | SqlType::OidVector
        | SqlType::Range(_)
        | SqlType::Multirange(_)
        | SqlType::UserRange(_)
        | SqlType::UserMultirange(_)
        | SqlType::Record(_)
        | SqlType::List(_)
        | SqlType::Domain(_)
        | SqlType::Map(_) => return nested::read(text, ty, typmod, style),
    };
    apply_typmod(value, ty, typmod, false)
}

/// A value of the type "char": one byte; beyond ASCII it is kept as the octal escape that it prints as, which it can be read from.
pub fn first_byte(text: &str) -> String {
    if let [b'\\', digits @ ..] = text.as_bytes() {
        if digits.len() == 3 && digits.iter().all(|d| (b'0'..=b'7').contains(d)) {
            return char_of_byte(char_byte(text));
        }
    }
    char_of_byte(text.bytes().next().unwrap_or(0))
}

/// The byte that a value of the type "char" is, 0 for the empty one.
pub fn char_byte(value: &str) -> u8 {
    match value.as_bytes() {
        [b'\\', digits @ ..] if digits.len() == 3 => digits.iter().fold(0u32, |v, d| v * 8 + u32::from(d.wrapping_sub(b'0') & 7)) as u8,
        bytes => bytes.first().copied().unwrap_or(0),
    }
}

/// The value of the type "char" that a byte is.
pub fn char_of_byte(byte: u8) -> String {
    match byte {
        0 => String::new(),
        1..128 => char::from(byte).to_string(),
        _ => format!("\\{byte:03o}"),
    }
}

/// A name cut to Postgres's 63 bytes, at a character.
pub fn truncate_name(text: &str) -> &str {
    let mut n = text.len().min(63);
    while !text.is_char_boundary(n) {
        n -= 1;
    }
    &text[..n]
}

/// Applies a modifier: rounds, pads, or refuses. `explicit`: a cast was written, so text is cut rather than refused.
/// Errors: 22001 for text that is too long, 22003 for a numeric that does not fit.
pub fn apply_typmod(value: Value, ty: &SqlType, typmod: i32, explicit: bool) -> Result<Value, SqlError> {
    if typmod < 0 {
        return Ok(value);
    }
    Ok(match (ty, value) {
        (SqlType::Varchar, Value::Text(s)) => Value::Text(fit_length(s, typmod - 4, explicit, "character varying", false)?),
        (SqlType::Bpchar, Value::Text(s)) => Value::Text(fit_length(s, typmod - 4, explicit, "character", true)?),
        (SqlType::Bit | SqlType::VarBit, Value::Text(s)) => Value::Text(plain::fit_bits(s, typmod, explicit, *ty == SqlType::Bit)?),
        (SqlType::Numeric, Value::Numeric(n)) => Value::Numeric(n.apply_typmod(typmod)?),
        (SqlType::Time, Value::Time(t)) => Value::Time(datetime::round_micros(t, typmod as u32)),
        (SqlType::TimeTz, Value::TimeTz(mut t)) => {
            t.micros = datetime::round_micros(t.micros, typmod as u32);
            Value::TimeTz(t)
        }
        (SqlType::Timestamp, Value::Timestamp(t)) => Value::Timestamp(round_timestamp(t, typmod)),
        (SqlType::TimestampTz, Value::TimestampTz(t)) => Value::TimestampTz(round_timestamp(t, typmod)),
        (SqlType::Interval, Value::Interval(i)) => Value::Interval(datetime::interval::apply_typmod(i, typmod)?),
        (SqlType::Array(e), Value::Array(mut a)) => {
            for v in &mut a.elems {
                *v = apply_typmod(std::mem::replace(v, Value::Null), e, typmod, explicit)?;
            }
            Value::Array(a)
        }
        (_, v) => v,
    })
}

/// Not checked for range: Postgres rounds beyond it too.
fn round_timestamp(t: i64, typmod: i32) -> i64 {
    match datetime::calendar::timestamp_is_finite(t) {
        true => datetime::round_micros(t, typmod as u32),
        false => t,
    }
}

fn fit_length(mut s: String, n: i32, explicit: bool, ty: &str, pad: bool) -> Result<String, SqlError> {
    let n = n.max(0) as usize;
    let chars = if s.len() <= n && !pad { return Ok(s) } else { s.chars().count() };
    if chars > n {
        let cut = s.char_indices().nth(n).map_or(s.len(), |(i, _)| i);
        if !explicit && !s[cut..].bytes().all(|b| b == b' ') {
            return Err(SqlError::new(state::STRING_DATA_RIGHT_TRUNCATION, format!("value too long for type {ty}({n})")));
        }
        s.truncate(cut);
    } else if pad {
        s.extend(std::iter::repeat_n(' ', n - chars));
    }
    Ok(s)
}
