//! Binary input and output of each type, as Postgres's wire protocol writes it.
//!
//! Big endian throughout. Shapes beyond plain numbers:
//!
//! ```text
//!   numeric    digits i16, weight i16, sign u16, scale i16, base-10000 digits
//!   interval   micros i64, days i32, months i32             timetz  micros i64, seconds west i32
//!   array      dims i32, has NULLs i32, element oid u32, (length i32, lower bound i32) each; elements with length, -1 for NULL
//!   record     fields i32, (oid u32, length i32, bytes) each
//!   range      flags u8, bounds with length                 multirange  count i32, ranges with length
//!   jsonb      version 1, text                              inet  family, bits, is cidr, length, address
//! ```
//!
//! Errors: 22P03 for bytes that are no value of the type, 08P01 for too few or too many.

use crate::canonical::elem_type;
use crate::datetime::calendar::{date_is_finite, is_valid_date, is_valid_timestamp, timestamp_is_finite, USECS_PER_DAY};
use crate::error::{state, SqlError};
use crate::jsonb;
use crate::numeric::Numeric;
use crate::range::{self, Bound};
use crate::style::TextStyle;
use crate::text::{self, snapshot::Snapshot};
use crate::tsearch::{TsQuery, TsVector};
use crate::types::SqlType;
use crate::value::{ArrayValue, InetValue, Interval, RangeValue, TimeTz, Value};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

const NUMERIC_POSITIVE: u16 = 0x0000;
const NUMERIC_NEGATIVE: u16 = 0x4000;
const NUMERIC_NAN: u16 = 0xc000;
const NUMERIC_POS_INF: u16 = 0xd000;
const NUMERIC_NEG_INF: u16 = 0xf000;

const RANGE_EMPTY: u8 = 0x01;
const RANGE_LOWER_INC: u8 = 0x02;
const RANGE_UPPER_INC: u8 = 0x04;
const RANGE_LOWER_INF: u8 = 0x08;
const RANGE_UPPER_INF: u8 = 0x10;

/// Family bytes of `inet` on the wire (Postgres's own numbers).
const FAMILY_V4: u8 = 2;
const FAMILY_V6: u8 = 3;

/// Whether the binary form of a type has text in it, which is in the client's encoding.
pub fn has_text(ty: &SqlType) -> bool {
    match ty.base() {
        SqlType::Text
        | SqlType::Varchar
        | SqlType::Bpchar
        | SqlType::Name
        | SqlType::Char
        | SqlType::Unknown
        | SqlType::Json
        | SqlType::Jsonb
        | SqlType::RefCursor => true,
        SqlType::JsonPath | SqlType::Enum(_) | SqlType::TsVector | SqlType::TsQuery | SqlType::Map(_) => true,
        SqlType::Record(r) => r.fields.is_empty() || r.fields.iter().any(|f| has_text(&f.1.ty)),
        other => elem_type(other).is_some_and(has_text),
    }
}

/// Whether that text stands among other bytes.
pub fn has_parts(ty: &SqlType) -> bool {
    let base = ty.base();
    matches!(base, SqlType::TsVector | SqlType::TsQuery | SqlType::Record(_)) || !matches!(base, SqlType::Map(_)) && elem_type(base).is_some()
}

/// A value's bytes; NULL has none (the protocol marks it by its length).
pub fn to_binary(value: &Value, ty: &SqlType) -> Vec<u8> {
    let mut out = Vec::new();
    write_binary(value, ty, &mut out);
    out
}

/// Appends a value's bytes.
pub fn write_binary(value: &Value, ty: &SqlType, out: &mut Vec<u8>) {
    let ty = ty.base();
    match value {
        Value::Null => {}
        Value::Bool(v) => out.push(u8::from(*v)),
        Value::Int2(v) => out.extend_from_slice(&v.to_be_bytes()),
        Value::Int4(v) | Value::Date(v) => out.extend_from_slice(&v.to_be_bytes()),
        Value::Int8(v) | Value::Time(v) | Value::Timestamp(v) | Value::TimestampTz(v) => out.extend_from_slice(&v.to_be_bytes()),
        Value::UInt2(v) => out.extend_from_slice(&v.to_be_bytes()),
        Value::UInt4(v) => match ty {
            SqlType::Enum(e) => out.extend_from_slice(e.label(*v).as_bytes()),
            _ => out.extend_from_slice(&v.to_be_bytes()),
        },
        Value::UInt8(v) if *ty == SqlType::Tid => out.extend_from_slice(&v.to_be_bytes()[2..]),
        Value::UInt8(v) => out.extend_from_slice(&v.to_be_bytes()),
        Value::Float4(v) => out.extend_from_slice(&v.to_be_bytes()),
        Value::Float8(v) => out.extend_from_slice(&v.to_be_bytes()),
        Value::Numeric(n) => put_numeric(n, out),
        Value::Text(s) => {
            if matches!(ty, SqlType::Snapshot | SqlType::TxidSnapshot) {
                let s = Snapshot::parse(s).unwrap_or_default();
                put_i32(s.xip.len() as i32, out);
                return [s.xmin, s.xmax].iter().chain(&s.xip).for_each(|x| out.extend_from_slice(&x.to_be_bytes()));
            }
            if *ty == SqlType::JsonPath {
                out.push(1);
            }
            if matches!(ty, SqlType::Bit | SqlType::VarBit) {
                put_i32(s.len() as i32, out);
                return out.extend(text::plain::pack_bits(s));
            }
            if *ty == SqlType::Char {
                return out.push(text::char_byte(s));
            }
            out.extend_from_slice(s.as_bytes());
        }
        Value::Bytea(b) => match ty {
            SqlType::TsVector => out.extend_from_slice(&TsVector::read(b).to_wire()),
            SqlType::TsQuery => out.extend_from_slice(&TsQuery::read(b).to_wire()),
            _ => out.extend_from_slice(b),
        },
        Value::TimeTz(t) => {
            out.extend_from_slice(&t.micros.to_be_bytes());
            out.extend_from_slice(&t.zone_secs.to_be_bytes());
        }
        Value::Interval(i) => {
            out.extend_from_slice(&i.micros.to_be_bytes());
            out.extend_from_slice(&i.days.to_be_bytes());
            out.extend_from_slice(&i.months.to_be_bytes());
        }
        Value::Uuid(u) => out.extend_from_slice(u),
        Value::Jsonb(j) => {
            let mut s = String::new();
            j.print(&mut s);
            out.push(1);
            out.extend_from_slice(s.as_bytes());
        }
        Value::Inet(i) => {
            let cidr = u8::from(*ty == SqlType::Cidr);
            match i.addr {
                IpAddr::V4(a) => {
                    out.extend_from_slice(&[FAMILY_V4, i.bits, cidr, 4]);
                    out.extend_from_slice(&a.octets());
                }
                IpAddr::V6(a) => {
                    out.extend_from_slice(&[FAMILY_V6, i.bits, cidr, 16]);
                    out.extend_from_slice(&a.octets());
                }
            }
        }
        Value::Array(a) => {
            let elem = elem_type(ty).cloned().unwrap_or_else(|| a.elems.first().map_or(SqlType::Text, crate::canonical::type_of));
            put_i32(a.dims.len() as i32, out);
            put_i32(i32::from(a.elems.iter().any(Value::is_null)), out);
            out.extend_from_slice(&elem.oid().to_be_bytes());
            for (n, lb) in &a.dims {
                put_i32(*n, out);
                put_i32(*lb, out);
            }
            a.elems.iter().for_each(|v| put_part(v, &elem, out));
        }
        Value::Record(fields) => {
            put_i32(fields.len() as i32, out);
            for (i, v) in fields.iter().enumerate() {
                let t = match ty {
                    SqlType::Record(r) if i < r.fields.len() => r.fields[i].1.ty.clone(),
                    _ => crate::canonical::type_of(v),
                };
                out.extend_from_slice(&t.oid().to_be_bytes());
                put_part(v, &t, out);
            }
        }
        Value::Range(r) => put_range(r, elem_type(ty).unwrap_or(&SqlType::Int4), out),
        Value::Multirange(rs) => {
            put_i32(rs.len() as i32, out);
            for r in rs {
                with_length(out, |out| put_range(r, elem_type(ty).unwrap_or(&SqlType::Int4), out));
            }
        }
        // Maps have no binary form of their own: their text.
        Value::Map(_) => {
            let mut s = String::new();
            text::write_text(value, ty, &TextStyle::default(), &mut s);
            out.extend_from_slice(s.as_bytes());
        }
    }
}

fn put_i32(v: i32, out: &mut Vec<u8>) {
    out.extend_from_slice(&v.to_be_bytes());
}

/// Writes what `f` writes, with its length in front.
fn with_length(out: &mut Vec<u8>, f: impl FnOnce(&mut Vec<u8>)) {
    let at = out.len();
    put_i32(0, out);
    f(out);
    let n = (out.len() - at - 4) as i32;
    out[at..at + 4].copy_from_slice(&n.to_be_bytes());
}

fn put_part(v: &Value, ty: &SqlType, out: &mut Vec<u8>) {
    match v {
        Value::Null => put_i32(-1, out),
        v => with_length(out, |out| write_binary(v, ty, out)),
    }
}

fn put_range(r: &RangeValue, elem: &SqlType, out: &mut Vec<u8>) {
    let RangeValue::Span { lower, upper, lower_inc, upper_inc } = r else { return out.push(RANGE_EMPTY) };
    let flag = |on: bool, f: u8| if on { f } else { 0 };
    out.push(
        flag(*lower_inc, RANGE_LOWER_INC) | flag(*upper_inc, RANGE_UPPER_INC) | flag(lower.is_none(), RANGE_LOWER_INF) | flag(upper.is_none(), RANGE_UPPER_INF),
    );
    [lower, upper].into_iter().flatten().for_each(|v| put_part(v, elem, out));
}

fn put_numeric(n: &Numeric, out: &mut Vec<u8>) {
    // Postgres leaves a bit in the scale of infinities; clients ignore it, byte comparisons do not.
    let special = |sign: u16, out: &mut Vec<u8>| {
        out.extend_from_slice(&[0; 4]);
        out.extend_from_slice(&sign.to_be_bytes());
        out.extend_from_slice(&if sign == NUMERIC_NAN { [0; 2] } else { [0, 0x20] });
    };
    match n {
        Numeric::NaN => return special(NUMERIC_NAN, out),
        Numeric::PosInf => return special(NUMERIC_POS_INF, out),
        Numeric::NegInf => return special(NUMERIC_NEG_INF, out),
        _ => {}
    }
    // Groups of four around the point.
    let scale = n.scale();
    let pad = (4 - scale % 4) % 4;
    let mut groups: Vec<u16> = Vec::new();
    match n {
        Numeric::Small { unscaled, .. } if unscaled.unsigned_abs() < u128::MAX / 1000 => {
            let mut v = unscaled.unsigned_abs() * 10u128.pow(pad.into());
            while v > 0 {
                groups.push((v % 10_000) as u16);
                v /= 10_000;
            }
        }
        _ => {
            let v = n.unscaled().magnitude() * 10u32.pow(pad.into());
            let digits = v.to_radix_le(10);
            groups.extend(digits.chunks(4).map(|c| c.iter().rev().fold(0u16, |a, d| a * 10 + u16::from(*d))));
        }
    }
    let weight = groups.len() as i32 - i32::from((scale + pad) / 4) - 1;
    groups.reverse();
    while groups.last() == Some(&0) {
        groups.pop();
    }
    let weight = if groups.is_empty() { 0 } else { weight };
    out.extend_from_slice(&(groups.len() as u16).to_be_bytes());
    out.extend_from_slice(&(weight as i16).to_be_bytes());
    out.extend_from_slice(&if n.is_negative() { NUMERIC_NEGATIVE } else { NUMERIC_POSITIVE }.to_be_bytes());
    out.extend_from_slice(&scale.to_be_bytes());
    groups.iter().for_each(|g| out.extend_from_slice(&g.to_be_bytes()));
}

/// A cursor over a message's bytes.
struct Reader<'a>(&'a [u8]);

fn short() -> SqlError {
    SqlError::new(state::PROTOCOL_VIOLATION, "insufficient data left in message")
}

fn bad(what: &str) -> SqlError {
    SqlError::new(state::INVALID_BINARY_REPRESENTATION, what.to_owned())
}

impl<'a> Reader<'a> {
    fn fixed<const N: usize>(&mut self) -> Result<[u8; N], SqlError> {
        let (head, tail) = self.0.split_first_chunk::<N>().ok_or_else(short)?;
        self.0 = tail;
        Ok(*head)
    }
    fn take(&mut self, n: usize) -> Result<&'a [u8], SqlError> {
        if n > self.0.len() {
            return Err(short());
        }
        let (head, tail) = self.0.split_at(n);
        self.0 = tail;
        Ok(head)
    }
    fn i32(&mut self) -> Result<i32, SqlError> {
        self.fixed().map(i32::from_be_bytes)
    }
    fn i64(&mut self) -> Result<i64, SqlError> {
        self.fixed().map(i64::from_be_bytes)
    }
    fn u32(&mut self) -> Result<u32, SqlError> {
        self.fixed().map(u32::from_be_bytes)
    }
    fn u16(&mut self) -> Result<u16, SqlError> {
        self.fixed().map(u16::from_be_bytes)
    }
    fn u8(&mut self) -> Result<u8, SqlError> {
        self.fixed::<1>().map(|b| b[0])
    }
    /// A value with its length in front, -1 for NULL.
    fn part(&mut self, ty: &SqlType) -> Result<Value, SqlError> {
        match self.i32()? {
            -1 => Ok(Value::Null),
            n if n < 0 => Err(short()),
            n => from_binary(self.take(n as usize)?, ty),
        }
    }
    /// The rest, as text.
    fn text(&mut self) -> Result<&'a str, SqlError> {
        let s = std::str::from_utf8(self.take(self.0.len())?);
        s.ok().filter(|s| !s.contains('\0')).ok_or_else(|| SqlError::new(state::CHARACTER_NOT_IN_REPERTOIRE, "invalid byte sequence for encoding \"UTF8\""))
    }
}

/// Reads a value of type `ty`; modifiers are the caller's.
pub fn from_binary(bytes: &[u8], ty: &SqlType) -> Result<Value, SqlError> {
    let mut r = Reader(bytes);
    let value = read(&mut r, ty)?;
    match (r.0.is_empty(), ty.base()) {
        (true, _) => Ok(value),
        (false, SqlType::Range(_) | SqlType::Multirange(_) | SqlType::UserRange(_) | SqlType::UserMultirange(_)) => {
            Err(SqlError::new(state::PROTOCOL_VIOLATION, "invalid message format"))
        }
        (false, _) => Err(bad("incorrect binary data format")),
    }
}

fn read(r: &mut Reader<'_>, ty: &SqlType) -> Result<Value, SqlError> {
    Ok(match ty {
        SqlType::Domain(d) => read(r, &d.base.ty)?,
        SqlType::Bool => Value::Bool(r.u8()? != 0),
        SqlType::Int2 => Value::Int2(r.fixed().map(i16::from_be_bytes)?),
        SqlType::Int4 => Value::Int4(r.i32()?),
        SqlType::Int8 => Value::Int8(r.i64()?),
        SqlType::UInt2 => Value::UInt2(r.u16()?),
        SqlType::UInt4 | SqlType::Oid | SqlType::Xid | SqlType::Cid | SqlType::Reg(_) => Value::UInt4(r.u32()?),
        SqlType::Tid => Value::UInt8(u64::from(r.u32()?) << 16 | u64::from(r.u16()?)),
        SqlType::MacAddr => Value::Bytea(r.fixed::<6>()?.to_vec()),
        SqlType::MacAddr8 => Value::Bytea(r.fixed::<8>()?.to_vec()),
        SqlType::Money => Value::Int8(r.i64()?),
        SqlType::Geo(kind) => {
            let (value, rest) = crate::geo::from_wire(*kind, r.0)?;
            r.0 = rest;
            Value::Bytea(value)
        }
        SqlType::TsVector => Value::Bytea(TsVector::from_wire(r.take(r.0.len())?)?.to_bytes()),
        SqlType::TsQuery => Value::Bytea(TsQuery::from_wire(r.take(r.0.len())?)?.to_bytes()),
        SqlType::Bit | SqlType::VarBit => {
            let n = usize::try_from(r.i32()?).ok().filter(|n| *n <= text::plain::BITS_MAX);
            let n = n.ok_or_else(|| SqlError::new(state::INVALID_BINARY_REPRESENTATION, "invalid length in external bit string"))?;
            Value::Text(text::plain::unpack_bits(r.take(n.div_ceil(8))?, n))
        }
        SqlType::UInt8 | SqlType::Xid8 | SqlType::PgLsn => Value::UInt8(r.fixed().map(u64::from_be_bytes)?),
        SqlType::Float4 => Value::Float4(r.fixed().map(f32::from_be_bytes)?),
        SqlType::Float8 => Value::Float8(r.fixed().map(f64::from_be_bytes)?),
        SqlType::Numeric => Value::Numeric(read_numeric(r)?),
        SqlType::Bytea => Value::Bytea(r.take(r.0.len())?.to_vec()),
        SqlType::Date => Value::Date(Some(r.i32()?).filter(|d| !date_is_finite(*d) || is_valid_date(*d)).ok_or_else(|| range_error("date"))?),
        SqlType::Time => Value::Time(Some(r.i64()?).filter(|t| (0..=USECS_PER_DAY).contains(t)).ok_or_else(|| range_error("time"))?),
        SqlType::TimeTz => {
            let (micros, zone_secs) = (r.i64()?, r.i32()?);
            if !(0..=USECS_PER_DAY).contains(&micros) {
                return Err(range_error("time"));
            }
            if zone_secs.unsigned_abs() >= 16 * 3600 {
                return Err(SqlError::new(state::INVALID_TIME_ZONE_DISPLACEMENT, "time zone displacement out of range"));
            }
            Value::TimeTz(TimeTz { micros, zone_secs })
        }
        SqlType::Timestamp => Value::Timestamp(timestamp(r)?),
        SqlType::TimestampTz => Value::TimestampTz(timestamp(r)?),
        SqlType::Interval => {
            let (micros, days, months) = (r.i64()?, r.i32()?, r.i32()?);
            Value::Interval(Interval { months, days, micros })
        }
        SqlType::Uuid => Value::Uuid(r.fixed()?),
        SqlType::Jsonb => {
            let version = r.u8()?;
            if version != 1 {
                return Err(SqlError::internal(format!("unsupported jsonb version number {version}")));
            }
            Value::Jsonb(Box::new(jsonb::parse(r.text()?)?))
        }
        SqlType::JsonPath => {
            let version = r.u8()?;
            if version != 1 {
                return Err(SqlError::internal(format!("unsupported jsonpath version number: {version}")));
            }
            text::from_text(r.text()?, ty, -1, &TextStyle::default())?
        }
        SqlType::Char => Value::text(text::char_of_byte(r.u8()?)),
        SqlType::Text | SqlType::Varchar | SqlType::Bpchar | SqlType::Unknown | SqlType::Void | SqlType::RefCursor => Value::text(r.text()?),
        SqlType::AclItem => return Err(SqlError::new(state::UNDEFINED_FUNCTION, "no binary input function available for type aclitem")),
        SqlType::Snapshot | SqlType::TxidSnapshot => {
            let bad = || SqlError::new(state::INVALID_BINARY_REPRESENTATION, "invalid external pg_snapshot data");
            let n = r.i32()?;
            let (xmin, xmax) = (r.fixed().map(u64::from_be_bytes)?, r.fixed().map(u64::from_be_bytes)?);
            let xip = (0..n).map(|_| r.fixed().map(u64::from_be_bytes)).collect::<Result<Vec<_>, _>>()?;
            Value::Text(Snapshot::new(xmin, xmax, xip).filter(|_| n >= 0).ok_or_else(bad)?.to_string())
        }
        SqlType::Name | SqlType::Json | SqlType::Enum(_) | SqlType::Map(_) => text::from_text(r.text()?, ty, -1, &TextStyle::default())?,
        SqlType::Inet | SqlType::Cidr => read_inet(r, ty)?,
        SqlType::Array(e) | SqlType::List(e) => read_array(r, e)?,
        SqlType::Int2Vector => read_array(r, &SqlType::Int2)?,
        SqlType::OidVector => read_array(r, &SqlType::Oid)?,
        SqlType::Record(rec) => {
            let n = r.i32()?;
            if n < 0 || (!rec.fields.is_empty() && n as usize != rec.fields.len()) {
                let message = format!("wrong number of columns: {n}, expected {}", rec.fields.len());
                return Err(SqlError::new(state::DATATYPE_MISMATCH, message));
            }
            let mut fields = Vec::new();
            for i in 0..n as usize {
                let oid = r.u32()?;
                let t = match rec.fields.get(i) {
                    Some((_, t)) if t.ty.oid() == oid => t.ty.clone(),
                    Some((_, t)) => {
                        let m = format!("binary data has type {oid} instead of expected {} in record column {}", t.ty.oid(), i + 1);
                        return Err(SqlError::new(state::DATATYPE_MISMATCH, m));
                    }
                    None => SqlType::from_oid(oid).ok_or_else(|| bad("record with a column of unknown type"))?,
                };
                fields.push(r.part(&t)?);
            }
            Value::Record(fields)
        }
        SqlType::Range(_) | SqlType::UserRange(_) => Value::Range(Box::new(read_range(r, ty)?)),
        SqlType::Multirange(_) | SqlType::UserMultirange(_) => {
            let e = elem_type(ty).unwrap_or(&SqlType::Int4);
            let n = r.u32()?;
            if n > 134_217_727 {
                return Err(SqlError::new(state::PROGRAM_LIMIT_EXCEEDED, format!("invalid memory allocation request size 8 * {n}")));
            }
            let mut out = Vec::new();
            for _ in 0..n {
                let len = r.i32()?;
                let mut part = Reader(r.take(usize::try_from(len).map_err(|_| short())?)?);
                out.push(read_range(&mut part, ty)?);
            }
            Value::Multirange(range::make_multi(e, out))
        }
    })
}

fn range_error(ty: &str) -> SqlError {
    SqlError::new(state::DATETIME_FIELD_OVERFLOW, format!("{ty} out of range"))
}

fn timestamp(r: &mut Reader<'_>) -> Result<i64, SqlError> {
    Some(r.i64()?).filter(|t| !timestamp_is_finite(*t) || is_valid_timestamp(*t)).ok_or_else(|| range_error("timestamp"))
}

fn read_numeric(r: &mut Reader<'_>) -> Result<Numeric, SqlError> {
    let (n, weight, sign, scale) = (r.u16()?, r.u16()? as i16, r.u16()?, r.u16()?);
    let special = match sign {
        NUMERIC_NAN => Some(Numeric::NaN),
        NUMERIC_POS_INF => Some(Numeric::PosInf),
        NUMERIC_NEG_INF => Some(Numeric::NegInf),
        NUMERIC_POSITIVE | NUMERIC_NEGATIVE => None,
        _ => return Err(bad("invalid sign in external \"numeric\" value")),
    };
    if scale > 0x3fff {
        return Err(bad("invalid scale in external \"numeric\" value"));
    }
    let mut digits: Vec<u8> = Vec::with_capacity(usize::from(n) * 4);
    for _ in 0..n {
        let d = r.u16()?;
        if d > 9999 {
            return Err(bad("invalid digit in external \"numeric\" value"));
        }
        digits.extend_from_slice(&[(d / 1000) as u8, (d / 100 % 10) as u8, (d / 10 % 10) as u8, (d % 10) as u8]);
    }
    if let Some(special) = special {
        return Ok(special);
    }
    let exponent = (i32::from(weight) + 1) * 4;
    while digits.last() == Some(&0) {
        digits.pop();
    }
    let v = Numeric::from_digits(sign == NUMERIC_NEGATIVE, &digits, exponent);
    // Digits beyond the scale are cut, as Postgres does.
    Ok(if v.scale() > scale { v.trunc(scale.into()) } else { v.rescaled_up(scale) })
}

fn read_inet(r: &mut Reader<'_>, ty: &SqlType) -> Result<Value, SqlError> {
    let name = if *ty == SqlType::Cidr { "cidr" } else { "inet" };
    let (family, bits, _, len) = (r.u8()?, r.u8()?, r.u8()?, r.u8()?);
    let addr = match (family, len) {
        (FAMILY_V4, 4) => IpAddr::V4(Ipv4Addr::from(r.fixed::<4>()?)),
        (FAMILY_V6, 16) => IpAddr::V6(Ipv6Addr::from(r.fixed::<16>()?)),
        (FAMILY_V4 | FAMILY_V6, _) => return Err(bad(&format!("invalid length in external \"{name}\" value"))),
        _ => return Err(bad(&format!("invalid address family in external \"{name}\" value"))),
    };
    if bits > len * 8 {
        return Err(bad(&format!("invalid bits in external \"{name}\" value")));
    }
    Ok(Value::Inet(InetValue { addr, bits }))
}

fn read_array(r: &mut Reader<'_>, elem: &SqlType) -> Result<Value, SqlError> {
    let (ndims, flags, oid) = (r.i32()?, r.i32()?, r.u32()?);
    if ndims < 0 {
        return Err(bad(&format!("invalid number of dimensions: {ndims}")));
    }
    if ndims > 6 {
        let m = format!("number of array dimensions ({ndims}) exceeds the maximum allowed (6)");
        return Err(SqlError::new(state::PROGRAM_LIMIT_EXCEEDED, m));
    }
    if !matches!(flags, 0 | 1) {
        return Err(bad("invalid array flags"));
    }
    if oid != elem.oid() {
        let m = format!("binary data has array element type {oid} instead of expected {}", elem.oid());
        return Err(SqlError::new(state::DATATYPE_MISMATCH, m));
    }
    let mut dims = Vec::new();
    let mut count: i64 = i64::from(ndims > 0);
    for _ in 0..ndims {
        let (n, lb) = (r.i32()?, r.i32()?);
        if n < 0 {
            return Err(SqlError::new(state::PROGRAM_LIMIT_EXCEEDED, "array size exceeds the maximum allowed (134217727)"));
        }
        if n > 0 && lb.checked_add(n).is_none() {
            return Err(SqlError::new(state::PROGRAM_LIMIT_EXCEEDED, format!("array lower bound is too large: {lb}")));
        }
        count = count.saturating_mul(n.into());
        dims.push((n, lb));
    }
    // One that is longer than what is left is told in another way than a message that ends.
    let mut element = || match r.i32()? {
        -1 => Ok(Value::Null),
        n if usize::try_from(n).is_ok_and(|n| n <= r.0.len()) => from_binary(r.take(n as usize)?, elem),
        _ => Err(bad("insufficient data left in message")),
    };
    let elems = (0..count).map(|_| element()).collect::<Result<Vec<_>, _>>()?;
    let dims = if elems.is_empty() { Vec::new() } else { dims };
    Ok(Value::Array(Box::new(ArrayValue { elems, dims })))
}

fn read_range(r: &mut Reader<'_>, ty: &SqlType) -> Result<RangeValue, SqlError> {
    let elem = elem_type(ty).unwrap_or(&SqlType::Int4);
    let flags = r.u8()?;
    if flags & RANGE_EMPTY != 0 {
        return Ok(RangeValue::Empty);
    }
    let mut bound = |infinite: u8| -> Result<Option<Value>, SqlError> {
        match flags & infinite != 0 {
            true => Ok(None),
            false => r.part(elem).map(Some),
        }
    };
    let (lower, upper) = (bound(RANGE_LOWER_INF)?, bound(RANGE_UPPER_INF)?);
    let lower = Bound { value: lower, inclusive: flags & RANGE_LOWER_INC != 0 };
    range::make(ty, lower, Bound { value: upper, inclusive: flags & RANGE_UPPER_INC != 0 })
}
