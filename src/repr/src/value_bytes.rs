//! What Binary columns hold for a value: compact, exact, not ordered.
//!
//! ```text
//!   numeric    scale u16, unscaled two's complement of 8, 16 or more bytes; specials: scale 0xffff and a code
//!   interval   months i32, days i32, micros i64        timetz   micros i64, zone i32       uuid   16 bytes
//!   array      number of dims, (length, lower bound) each, elements
//!   record     fields                                  map      n, (key, value) each
//!   range      flags, bounds                           jsonb    tag, then the value
//!   a part     0 for NULL, else 1 and the value, with its length (u32) in front where that varies
//! ```
//!
//! All numbers are little endian. Reading damaged bytes gives some value, never a panic.

use crate::canonical::{elem_type, lossy, put_varint, type_of, Bytes};
use crate::jsonb::Jsonb;
use crate::numeric::Numeric;
use crate::types::SqlType;
use crate::value::{ArrayValue, InetValue, Interval, RangeValue, TimeTz, Value};
use num_bigint::BigInt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

const SPECIAL: u16 = 0xffff;

/// Appends the bytes that a Binary column holds for `value`: compact, exact (display form included), not ordered.
/// Strings, numbers and the like inside arrays and records have a length in front.
pub fn encode_value(value: &Value, ty: &SqlType, out: &mut Vec<u8>) {
    let ty = ty.base();
    match value {
        Value::Null => {}
        Value::Bool(v) => out.push(u8::from(*v)),
        Value::Int2(v) => out.extend_from_slice(&v.to_le_bytes()),
        Value::Int4(v) | Value::Date(v) => out.extend_from_slice(&v.to_le_bytes()),
        Value::Int8(v) | Value::Time(v) | Value::Timestamp(v) | Value::TimestampTz(v) => out.extend_from_slice(&v.to_le_bytes()),
        Value::UInt2(v) => out.extend_from_slice(&v.to_le_bytes()),
        Value::UInt4(v) => out.extend_from_slice(&v.to_le_bytes()),
        Value::UInt8(v) => out.extend_from_slice(&v.to_le_bytes()),
        Value::Float4(v) => out.extend_from_slice(&v.to_le_bytes()),
        Value::Float8(v) => out.extend_from_slice(&v.to_le_bytes()),
        Value::Numeric(n) => encode_numeric(n, out),
        Value::Text(s) => out.extend_from_slice(s.as_bytes()),
        Value::Bytea(v) => out.extend_from_slice(v),
        Value::TimeTz(t) => {
            out.extend_from_slice(&t.micros.to_le_bytes());
            out.extend_from_slice(&t.zone_secs.to_le_bytes());
        }
        Value::Interval(i) => {
            out.extend_from_slice(&i.months.to_le_bytes());
            out.extend_from_slice(&i.days.to_le_bytes());
            out.extend_from_slice(&i.micros.to_le_bytes());
        }
        Value::Uuid(u) => out.extend_from_slice(u),
        Value::Jsonb(j) => encode_jsonb(j, out),
        Value::Inet(i) => {
            out.push(i.bits);
            match i.addr {
                IpAddr::V4(a) => out.extend_from_slice(&a.octets()),
                IpAddr::V6(a) => out.extend_from_slice(&a.octets()),
            }
        }
        Value::Array(a) => {
            out.push(a.dims.len() as u8);
            for (n, lb) in &a.dims {
                out.extend_from_slice(&n.to_le_bytes());
                out.extend_from_slice(&lb.to_le_bytes());
            }
            match elem_type(ty) {
                Some(e) => a.elems.iter().for_each(|v| put_part(v, e, out)),
                None => a.elems.iter().for_each(|v| put_part(v, &type_of(v), out)),
            }
        }
        Value::Record(fields) => match ty {
            SqlType::Record(r) if !r.fields.is_empty() => {
                for (i, (_, t)) in r.fields.iter().enumerate() {
                    put_part(fields.get(i).unwrap_or(&Value::Null), &t.ty, out);
                }
            }
            _ => {
                for v in fields {
                    let t = type_of(v);
                    out.extend_from_slice(&t.oid().to_le_bytes());
                    put_part(v, &t, out);
                }
            }
        },
        Value::Range(r) => put_range(r, elem_type(ty).unwrap_or(&SqlType::Int4), out),
        Value::Multirange(rs) => rs.iter().for_each(|r| put_range(r, elem_type(ty).unwrap_or(&SqlType::Int4), out)),
        Value::Map(entries) => {
            for (k, v) in entries {
                put_varint(k.len() as u64, out);
                out.extend_from_slice(k.as_bytes());
                put_part(v, elem_type(ty).unwrap_or(&type_of(v)), out);
            }
        }
    }
}

/// The value that [`encode_value`] wrote for a value of type `ty`.
pub fn decode_value(ty: &SqlType, bytes: &[u8]) -> Value {
    let mut b = Bytes(bytes);
    match ty {
        SqlType::Domain(d) => decode_value(&d.base.ty, bytes),
        SqlType::Bool => Value::Bool(b.u8() != 0),
        SqlType::Int2 => Value::Int2(i16::from_le_bytes(b.fixed())),
        SqlType::Int4 => Value::Int4(i32::from_le_bytes(b.fixed())),
        SqlType::Date => Value::Date(i32::from_le_bytes(b.fixed())),
        SqlType::Int8 | SqlType::Money => Value::Int8(i64::from_le_bytes(b.fixed())),
        SqlType::Time => Value::Time(i64::from_le_bytes(b.fixed())),
        SqlType::Timestamp => Value::Timestamp(i64::from_le_bytes(b.fixed())),
        SqlType::TimestampTz => Value::TimestampTz(i64::from_le_bytes(b.fixed())),
        SqlType::UInt2 => Value::UInt2(u16::from_le_bytes(b.fixed())),
        SqlType::UInt4 | SqlType::Oid | SqlType::Xid | SqlType::Cid | SqlType::Reg(_) | SqlType::Enum(_) => Value::UInt4(u32::from_le_bytes(b.fixed())),
        SqlType::UInt8 | SqlType::Xid8 | SqlType::Tid | SqlType::PgLsn => Value::UInt8(u64::from_le_bytes(b.fixed())),
        SqlType::Float4 => Value::Float4(f32::from_le_bytes(b.fixed())),
        SqlType::Float8 => Value::Float8(f64::from_le_bytes(b.fixed())),
        SqlType::Numeric => Value::Numeric(decode_numeric(bytes)),
        SqlType::Text
        | SqlType::Varchar
        | SqlType::Bpchar
        | SqlType::Char
        | SqlType::Name
        | SqlType::Bit
        | SqlType::VarBit
        | SqlType::Json
        | SqlType::JsonPath
        | SqlType::Snapshot
        | SqlType::TxidSnapshot
        | SqlType::AclItem
        | SqlType::RefCursor
        | SqlType::Unknown
        | SqlType::Void => Value::Text(lossy(bytes)),
        SqlType::Bytea | SqlType::MacAddr | SqlType::MacAddr8 | SqlType::Geo(_) | SqlType::TsVector | SqlType::TsQuery => Value::Bytea(bytes.to_vec()),
        SqlType::TimeTz => Value::TimeTz(TimeTz { micros: i64::from_le_bytes(b.fixed()), zone_secs: i32::from_le_bytes(b.fixed()) }),
        SqlType::Interval => {
            Value::Interval(Interval { months: i32::from_le_bytes(b.fixed()), days: i32::from_le_bytes(b.fixed()), micros: i64::from_le_bytes(b.fixed()) })
        }
        SqlType::Uuid => Value::Uuid(b.fixed()),
        SqlType::Jsonb => Value::Jsonb(Box::new(decode_jsonb(&mut b))),
        SqlType::Inet | SqlType::Cidr => {
            let bits = b.u8();
            let addr = if b.0.len() > 4 { IpAddr::V6(Ipv6Addr::from(b.fixed::<16>())) } else { IpAddr::V4(Ipv4Addr::from(b.fixed::<4>())) };
            Value::Inet(InetValue { addr, bits })
        }
        SqlType::Array(_) | SqlType::List(_) | SqlType::Int2Vector | SqlType::OidVector => {
            let elem = elem_type(ty).expect("these types have elements");
            let dims = (0..b.u8().min(6)).map(|_| (i32::from_le_bytes(b.fixed()), i32::from_le_bytes(b.fixed()))).collect();
            let mut elems = Vec::new();
            while !b.is_empty() {
                elems.push(take_part(elem, &mut b));
            }
            Value::Array(Box::new(ArrayValue { elems, dims }))
        }
        SqlType::Record(r) if !r.fields.is_empty() => Value::Record(r.fields.iter().map(|f| take_part(&f.1.ty, &mut b)).collect()),
        SqlType::Record(_) => {
            let mut fields = Vec::new();
            while !b.is_empty() {
                let t = SqlType::from_oid(u32::from_le_bytes(b.fixed())).unwrap_or(SqlType::Text);
                fields.push(take_part(&t, &mut b));
            }
            Value::Record(fields)
        }
        SqlType::Range(_) | SqlType::UserRange(_) => Value::Range(Box::new(take_range(elem_type(ty).unwrap_or(&SqlType::Int4), &mut b))),
        SqlType::Multirange(_) | SqlType::UserMultirange(_) => {
            let e = elem_type(ty).unwrap_or(&SqlType::Int4);
            let mut out = Vec::new();
            while !b.is_empty() {
                out.push(take_range(e, &mut b));
            }
            Value::Multirange(out)
        }
        SqlType::Map(e) => {
            let mut out = Vec::new();
            while !b.is_empty() {
                let n = b.varint() as usize;
                let k = lossy(b.take(n));
                out.push((k, take_part(e, &mut b)));
            }
            Value::Map(out)
        }
    }
}

/// Bytes of a value of this type inside another; `None` if they vary.
fn part_len(ty: &SqlType) -> Option<usize> {
    match ty.base() {
        SqlType::Bool => Some(1),
        SqlType::Int2 | SqlType::UInt2 => Some(2),
        SqlType::Int4 | SqlType::Date | SqlType::UInt4 | SqlType::Oid | SqlType::Xid | SqlType::Cid | SqlType::Reg(_) | SqlType::Enum(_) | SqlType::Float4 => {
            Some(4)
        }
        SqlType::Int8
        | SqlType::Time
        | SqlType::Timestamp
        | SqlType::TimestampTz
        | SqlType::UInt8
        | SqlType::Xid8
        | SqlType::Tid
        | SqlType::PgLsn
        | SqlType::Money
        | SqlType::Float8 => Some(8),
        SqlType::TimeTz => Some(12),
        SqlType::Interval | SqlType::Uuid => Some(16),
        _ => None,
    }
}

fn put_part(value: &Value, ty: &SqlType, out: &mut Vec<u8>) {
    if value.is_null() {
        return out.push(0);
    }
    out.push(1);
    if part_len(ty).is_some() {
        return encode_value(value, ty, out);
    }
    let at = out.len();
    out.extend_from_slice(&[0; 4]);
    encode_value(value, ty, out);
    let n = (out.len() - at - 4) as u32;
    out[at..at + 4].copy_from_slice(&n.to_le_bytes());
}

fn take_part(ty: &SqlType, b: &mut Bytes<'_>) -> Value {
    if b.u8() == 0 {
        return Value::Null;
    }
    let n = part_len(ty).unwrap_or_else(|| u32::from_le_bytes(b.fixed()) as usize);
    decode_value(ty, b.take(n))
}

fn put_range(r: &RangeValue, elem: &SqlType, out: &mut Vec<u8>) {
    let RangeValue::Span { lower, upper, lower_inc, upper_inc } = r else { return out.push(4) };
    out.push(u8::from(*lower_inc) | u8::from(*upper_inc) << 1);
    for bound in [lower, upper] {
        put_part(bound.as_deref().unwrap_or(&Value::Null), elem, out);
    }
}

fn take_range(elem: &SqlType, b: &mut Bytes<'_>) -> RangeValue {
    let flags = b.u8();
    if flags & 4 != 0 {
        return RangeValue::Empty;
    }
    let mut bound = || Some(take_part(elem, b)).filter(|v| !v.is_null()).map(Box::new);
    let (lower, upper) = (bound(), bound());
    RangeValue::Span { lower, upper, lower_inc: flags & 1 != 0, upper_inc: flags & 2 != 0 }
}

/// Appends the column bytes of a number.
#[inline]
pub fn encode_numeric(n: &Numeric, out: &mut Vec<u8>) {
    match n {
        Numeric::Small { unscaled, scale } => {
            out.extend_from_slice(&scale.to_le_bytes());
            match i64::try_from(*unscaled) {
                Ok(v) => out.extend_from_slice(&v.to_le_bytes()),
                Err(_) => out.extend_from_slice(&unscaled.to_le_bytes()),
            }
        }
        Numeric::Big(b) => {
            out.extend_from_slice(&b.1.to_le_bytes());
            out.extend_from_slice(&b.0.to_signed_bytes_le());
        }
        special => {
            out.extend_from_slice(&SPECIAL.to_le_bytes());
            out.push(match special {
                Numeric::PosInf => 1,
                Numeric::NegInf => 2,
                _ => 0,
            });
        }
    }
}

/// The number that [`encode_numeric`] wrote.
#[inline]
pub fn decode_numeric(bytes: &[u8]) -> Numeric {
    let mut b = Bytes(bytes);
    let scale = u16::from_le_bytes(b.fixed());
    if scale == SPECIAL {
        return match b.u8() {
            1 => Numeric::PosInf,
            2 => Numeric::NegInf,
            _ => Numeric::NaN,
        };
    }
    match b.0.len() {
        0..=8 => Numeric::Small { unscaled: i128::from(i64::from_le_bytes(b.fixed())), scale },
        9..=16 => Numeric::Small { unscaled: i128::from_le_bytes(b.fixed()), scale },
        _ => Numeric::from_big(BigInt::from_signed_bytes_le(b.0), scale),
    }
}

fn encode_jsonb(j: &Jsonb, out: &mut Vec<u8>) {
    match j {
        Jsonb::Null => out.push(0),
        Jsonb::Bool(v) => out.push(1 + u8::from(*v)),
        Jsonb::Number(n) => {
            out.push(3);
            let at = out.len();
            out.push(0);
            encode_numeric(n, out);
            let len = out.len() - at - 1;
            match u8::try_from(len) {
                Ok(l) if l < 0xff => out[at] = l,
                _ => {
                    out[at] = 0xff;
                    let body = out.split_off(at + 1);
                    put_varint(len as u64, out);
                    out.extend_from_slice(&body);
                }
            }
        }
        Jsonb::String(s) => {
            out.push(4);
            put_str(s, out);
        }
        Jsonb::Array(a) => {
            out.push(5);
            put_varint(a.len() as u64, out);
            a.iter().for_each(|e| encode_jsonb(e, out));
        }
        Jsonb::Object(o) => {
            out.push(6);
            put_varint(o.len() as u64, out);
            for (k, v) in o {
                put_str(k, out);
                encode_jsonb(v, out);
            }
        }
    }
}

fn put_str(s: &str, out: &mut Vec<u8>) {
    put_varint(s.len() as u64, out);
    out.extend_from_slice(s.as_bytes());
}

fn take_str(b: &mut Bytes<'_>) -> String {
    let n = b.varint() as usize;
    lossy(b.take(n))
}

fn decode_jsonb(b: &mut Bytes<'_>) -> Jsonb {
    match b.u8() {
        1 => Jsonb::Bool(false),
        2 => Jsonb::Bool(true),
        3 => {
            let n = match b.u8() {
                0xff => b.varint() as usize,
                n => usize::from(n),
            };
            Jsonb::Number(decode_numeric(b.take(n)))
        }
        4 => Jsonb::String(take_str(b)),
        5 => {
            let n = b.varint();
            let mut out = Vec::new();
            for _ in 0..n {
                if b.is_empty() {
                    break;
                }
                out.push(decode_jsonb(b));
            }
            Jsonb::Array(out)
        }
        6 => {
            let n = b.varint();
            let mut out = Vec::new();
            for _ in 0..n {
                if b.is_empty() {
                    break;
                }
                let k = take_str(b);
                out.push((k, decode_jsonb(b)));
            }
            Jsonb::Object(out)
        }
        _ => Jsonb::Null,
    }
}
