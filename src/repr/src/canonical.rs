//! The canonical bytes of one value, and the suffix that they leave out.
//!
//! ```text
//!   canonical   0x02 for NULL, else 0x01 and
//!     bool, ints, dates, times   big endian, sign bit flipped
//!     floats                     bits made monotone; -0 is 0, every NaN is one and greatest
//!     numeric                    class, exponent, decimal digits in pairs, 0x00 (all complemented if negative)
//!     strings                    bytes, 0x00 (U+0000 cannot occur)       bytea   bytes with 00 -> 00 FF, then 00 00
//!     interval                   the span that comparison uses, 10 bytes  timetz  UTC micros, zone
//!     inet                       family, prefix bits with continuation bits, address
//!     array                      canonical elements, 0x00, dimensions     record  canonical fields
//!     range                      0 | 1 lower upper                        jsonb   type, count, parts
//!   suffix      numeric: display scale; float zero: its sign; char(n): number of trailing blanks;
//!               interval: months, days; tsquery: weights and prefixes; nested types: the suffixes of their parts in order. NULL has none.
//! ```
//!
//! Promise: canonical forms are self-delimiting, their bytes order as SQL orders the values, equal bytes are equal
//! values. Reading damaged bytes gives some value, never a panic.

use crate::jsonb::Jsonb;
use crate::numeric::Numeric;
use crate::types::{RecordType, SqlType};
use crate::value::{ArrayValue, InetValue, Interval, RangeValue, TimeTz, Value};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

pub(crate) const PRESENT: u8 = 0x01;
pub(crate) const NULL: u8 = 0x02;

const DAY_MICROS: i128 = 86_400_000_000;

/// A cursor over bytes that reads zeros beyond the end.
#[derive(Clone, Copy)]
pub(crate) struct Bytes<'a>(pub &'a [u8]);

impl<'a> Bytes<'a> {
    #[inline]
    pub fn take(&mut self, n: usize) -> &'a [u8] {
        let (head, tail) = self.0.split_at(n.min(self.0.len()));
        self.0 = tail;
        head
    }
    #[inline]
    pub fn fixed<const N: usize>(&mut self) -> [u8; N] {
        if let Some((head, tail)) = self.0.split_first_chunk::<N>() {
            self.0 = tail;
            return *head;
        }
        let mut out = [0; N];
        let rest = self.take(N);
        out[..rest.len()].copy_from_slice(rest);
        out
    }
    #[inline]
    pub fn u8(&mut self) -> u8 {
        self.fixed::<1>()[0]
    }
    pub fn varint(&mut self) -> u64 {
        let (mut out, mut shift) = (0u64, 0);
        loop {
            let b = self.u8();
            if shift < 64 {
                out |= u64::from(b & 0x7f) << shift;
            }
            shift += 7;
            if b & 0x80 == 0 {
                return out;
            }
        }
    }
    pub fn signed_varint(&mut self) -> i64 {
        let v = self.varint();
        (v >> 1) as i64 ^ -((v & 1) as i64)
    }
    /// Bytes before the next 0x00, which is consumed.
    #[inline]
    pub fn until_zero(&mut self) -> &'a [u8] {
        let n = self.0.iter().position(|b| *b == 0).unwrap_or(self.0.len());
        let head = self.take(n);
        self.take(1);
        head
    }
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

pub(crate) fn put_varint(mut v: u64, out: &mut Vec<u8>) {
    while v >= 0x80 {
        out.push(v as u8 | 0x80);
        v >>= 7;
    }
    out.push(v as u8);
}

pub(crate) fn put_signed_varint(v: i64, out: &mut Vec<u8>) {
    put_varint(((v << 1) ^ (v >> 63)) as u64, out);
}

pub(crate) fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[inline]
pub(crate) fn f64_key(v: f64) -> u64 {
    if v.is_nan() {
        return u64::MAX;
    }
    let bits = if v == 0.0 { 0 } else { v.to_bits() };
    if bits >> 63 == 1 {
        !bits
    } else {
        bits | 1 << 63
    }
}

#[inline]
pub(crate) fn f64_from_key(k: u64) -> f64 {
    match k {
        u64::MAX => f64::NAN,
        k if k >> 63 == 1 => f64::from_bits(k & !(1 << 63)),
        k => f64::from_bits(!k),
    }
}

#[inline]
pub(crate) fn f32_key(v: f32) -> u32 {
    if v.is_nan() {
        return u32::MAX;
    }
    let bits = if v == 0.0 { 0 } else { v.to_bits() };
    if bits >> 31 == 1 {
        !bits
    } else {
        bits | 1 << 31
    }
}

#[inline]
pub(crate) fn f32_from_key(k: u32) -> f32 {
    match k {
        u32::MAX => f32::NAN,
        k if k >> 31 == 1 => f32::from_bits(k & !(1 << 31)),
        k => f32::from_bits(!k),
    }
}

/// `char(n)` text without its trailing blanks.
pub(crate) fn trim_blanks(s: &str) -> &str {
    s.trim_end_matches(' ')
}

pub(crate) fn put_bytea(v: &[u8], out: &mut Vec<u8>) {
    for b in v {
        out.push(*b);
        if *b == 0 {
            out.push(0xff);
        }
    }
    out.extend_from_slice(&[0, 0]);
}

/// The type of a value where no better one is known (fields of an anonymous record).
pub fn type_of(value: &Value) -> SqlType {
    match value {
        Value::Null | Value::Text(_) => SqlType::Text,
        Value::Bool(_) => SqlType::Bool,
        Value::Int2(_) => SqlType::Int2,
        Value::Int4(_) => SqlType::Int4,
        Value::Int8(_) => SqlType::Int8,
        Value::UInt2(_) => SqlType::UInt2,
        Value::UInt4(_) => SqlType::Oid,
        Value::UInt8(_) => SqlType::UInt8,
        Value::Float4(_) => SqlType::Float4,
        Value::Float8(_) => SqlType::Float8,
        Value::Numeric(_) => SqlType::Numeric,
        Value::Bytea(_) => SqlType::Bytea,
        Value::Date(_) => SqlType::Date,
        Value::Time(_) => SqlType::Time,
        Value::TimeTz(_) => SqlType::TimeTz,
        Value::Timestamp(_) => SqlType::Timestamp,
        Value::TimestampTz(_) => SqlType::TimestampTz,
        Value::Interval(_) => SqlType::Interval,
        Value::Uuid(_) => SqlType::Uuid,
        Value::Jsonb(_) => SqlType::Jsonb,
        Value::Inet(_) => SqlType::Inet,
        Value::Array(a) => SqlType::Array(Box::new(a.elems.iter().find(|e| !e.is_null()).map_or(SqlType::Text, type_of))),
        Value::Record(_) => any_record(),
        Value::Range(r) => SqlType::Range(Box::new(range_elem(std::slice::from_ref(r)))),
        Value::Multirange(rs) => SqlType::Multirange(Box::new(range_elem(rs))),
        Value::Map(m) => SqlType::Map(Box::new(m.iter().map(|e| &e.1).find(|e| !e.is_null()).map_or(SqlType::Text, type_of))),
    }
}

fn any_record() -> SqlType {
    SqlType::Record(std::sync::Arc::new(RecordType { oid: crate::types::RECORD_OID, array_oid: 0, name: None, fields: Vec::new() }))
}

fn range_elem<R: std::borrow::Borrow<RangeValue>>(ranges: &[R]) -> SqlType {
    let bound = ranges.iter().find_map(|r| match r.borrow() {
        RangeValue::Span { lower: Some(v), .. } | RangeValue::Span { upper: Some(v), .. } => Some(type_of(v)),
        _ => None,
    });
    bound.unwrap_or(SqlType::Int4)
}

/// The element type of a type that has elements.
pub(crate) fn elem_type(ty: &SqlType) -> Option<&SqlType> {
    match ty.base() {
        SqlType::Array(e) | SqlType::List(e) | SqlType::Map(e) | SqlType::Range(e) | SqlType::Multirange(e) => Some(e),
        SqlType::UserRange(r) | SqlType::UserMultirange(r) => Some(&r.subtype),
        SqlType::Int2Vector => Some(&SqlType::Int2),
        SqlType::OidVector => Some(&SqlType::Oid),
        _ => None,
    }
}

/// Calls `f` with each field of a record and its type.
fn for_fields(fields: &[Value], ty: &SqlType, mut f: impl FnMut(&Value, &SqlType)) {
    let ty = ty.base();
    match ty {
        SqlType::Record(r) if !r.fields.is_empty() => {
            for (i, (_, t)) in r.fields.iter().enumerate() {
                f(fields.get(i).unwrap_or(&Value::Null), &t.ty);
            }
        }
        _ => fields.iter().for_each(|v| f(v, &type_of(v))),
    }
}

/// Appends the canonical bytes of a value of type `ty`.
pub fn write_canonical(value: &Value, ty: &SqlType, out: &mut Vec<u8>) {
    let ty = ty.base();
    if value.is_null() {
        return out.push(NULL);
    }
    out.push(PRESENT);
    match value {
        Value::Null => {}
        Value::Bool(v) => out.push(u8::from(*v)),
        Value::Int2(v) => out.extend_from_slice(&((*v as u16) ^ 1 << 15).to_be_bytes()),
        Value::Int4(v) | Value::Date(v) => out.extend_from_slice(&((*v as u32) ^ 1 << 31).to_be_bytes()),
        Value::Int8(v) | Value::Time(v) | Value::Timestamp(v) | Value::TimestampTz(v) => out.extend_from_slice(&((*v as u64) ^ 1 << 63).to_be_bytes()),
        Value::UInt2(v) => out.extend_from_slice(&v.to_be_bytes()),
        Value::UInt4(v) => out.extend_from_slice(&v.to_be_bytes()),
        Value::UInt8(v) => out.extend_from_slice(&v.to_be_bytes()),
        Value::Float4(v) => out.extend_from_slice(&f32_key(*v).to_be_bytes()),
        Value::Float8(v) => out.extend_from_slice(&f64_key(*v).to_be_bytes()),
        Value::Numeric(n) => put_numeric(n, out),
        Value::Text(s) => {
            out.extend_from_slice(if *ty == SqlType::Bpchar { trim_blanks(s) } else { s }.as_bytes());
            out.push(0);
        }
        Value::Bytea(v) if *ty == SqlType::TsQuery => put_bytea(crate::tsearch::split_query(v).0, out),
        Value::Bytea(v) => put_bytea(v, out),
        Value::TimeTz(t) => {
            let utc = t.micros.wrapping_add(i64::from(t.zone_secs) * 1_000_000);
            out.extend_from_slice(&((utc as u64) ^ 1 << 63).to_be_bytes());
            out.extend_from_slice(&((t.zone_secs as u32) ^ 1 << 31).to_be_bytes());
        }
        Value::Interval(i) => out.extend_from_slice(&((i.span_micros() + (1 << 79)) as u128).to_be_bytes()[6..]),
        Value::Uuid(u) => out.extend_from_slice(u),
        Value::Jsonb(j) => put_jsonb(j, true, out),
        Value::Inet(i) => put_inet(i, out),
        Value::Array(a) => put_array(a, ty, out),
        Value::Record(fields) => match ty {
            SqlType::Record(r) if !r.fields.is_empty() => for_fields(fields, ty, |v, t| write_canonical(v, t, out)),
            _ => {
                out.extend_from_slice(&(fields.len() as u32).to_be_bytes());
                for v in fields {
                    let t = type_of(v);
                    out.extend_from_slice(&t.oid().to_be_bytes());
                    write_canonical(v, &t, out);
                }
            }
        },
        Value::Range(r) => put_range(r, elem_type(ty).unwrap_or(&range_elem(std::slice::from_ref(r))), out),
        Value::Multirange(rs) => {
            for r in rs {
                out.push(1);
                put_range(r, elem_type(ty).unwrap_or(&range_elem(rs)), out);
            }
            out.push(0);
        }
        Value::Map(entries) => {
            for (k, v) in entries {
                out.push(1);
                out.extend_from_slice(k.as_bytes());
                out.push(0);
                write_canonical(v, elem_type(ty).unwrap_or(&type_of(v)), out);
            }
            out.push(0);
        }
    }
}

/// Appends what [`write_canonical`] left out; nothing for NULL and for types where equal is identical.
pub(crate) fn write_suffix(value: &Value, ty: &SqlType, out: &mut Vec<u8>) {
    let ty = ty.base();
    match value {
        Value::Float4(v) if *v == 0.0 => out.push(u8::from(v.is_sign_negative())),
        Value::Float8(v) if *v == 0.0 => out.push(u8::from(v.is_sign_negative())),
        Value::Numeric(n) => put_scale(n, out),
        Value::Text(s) if *ty == SqlType::Bpchar => put_varint((s.len() - trim_blanks(s).len()) as u64, out),
        Value::Bytea(v) if *ty == SqlType::TsQuery => {
            let tail = crate::tsearch::split_query(v).1;
            put_varint(tail.len() as u64, out);
            out.extend_from_slice(tail);
        }
        Value::Interval(i) => {
            put_signed_varint(i64::from(i.months), out);
            put_signed_varint(i64::from(i.days), out);
        }
        Value::Jsonb(j) => j.for_numbers(&mut |n| put_scale(n, out)),
        Value::Array(a) => {
            if let Some(e) = elem_type(ty).filter(|e| e.equal_is_not_identical()) {
                a.elems.iter().for_each(|v| write_suffix(v, e, out));
            }
        }
        Value::Record(fields) => for_fields(fields, ty, |v, t| write_suffix(v, t, out)),
        Value::Range(r) => range_bounds(r).for_each(|v| write_suffix(v, elem_type(ty).unwrap_or(&SqlType::Text), out)),
        Value::Multirange(rs) => rs.iter().flat_map(range_bounds).for_each(|v| write_suffix(v, elem_type(ty).unwrap_or(&SqlType::Text), out)),
        Value::Map(entries) => entries.iter().for_each(|(_, v)| write_suffix(v, elem_type(ty).unwrap_or(&SqlType::Text), out)),
        _ => {}
    }
}

/// Gives a value that was read by [`read_canonical`] its own form back.
pub(crate) fn apply_suffix(value: &mut Value, ty: &SqlType, b: &mut Bytes<'_>) {
    let ty = ty.base();
    match value {
        Value::Float4(v) if *v == 0.0 => *v = if b.u8() == 1 { -0.0 } else { 0.0 },
        Value::Float8(v) if *v == 0.0 => *v = if b.u8() == 1 { -0.0 } else { 0.0 },
        Value::Numeric(n) => take_scale(n, b),
        Value::Text(s) if *ty == SqlType::Bpchar => {
            let n = b.varint().min(10_485_760); // the longest char(n)
            s.extend(std::iter::repeat_n(' ', n as usize));
        }
        Value::Bytea(v) if *ty == SqlType::TsQuery => {
            let n = b.varint() as usize;
            v.extend_from_slice(b.take(n));
        }
        Value::Interval(i) => {
            let span = i.span_micros();
            let (months, days) = (b.signed_varint() as i32, b.signed_varint() as i32);
            let rest = span - (i128::from(months) * 30 + i128::from(days)) * DAY_MICROS;
            *i = Interval { months, days, micros: rest as i64 };
        }
        Value::Jsonb(j) => j.for_numbers_mut(&mut |n| take_scale(n, b)),
        Value::Array(a) => {
            if let Some(e) = elem_type(ty).filter(|e| e.equal_is_not_identical()) {
                a.elems.iter_mut().for_each(|v| apply_suffix(v, e, b));
            }
        }
        Value::Record(fields) => match ty {
            SqlType::Record(r) if !r.fields.is_empty() => fields.iter_mut().zip(&r.fields).for_each(|(v, f)| apply_suffix(v, &f.1.ty, b)),
            _ => fields.iter_mut().for_each(|v| apply_suffix(v, &type_of(v), b)),
        },
        Value::Range(r) => range_apply(r, ty, b),
        Value::Multirange(rs) => rs.iter_mut().for_each(|r| range_apply(r, ty, b)),
        Value::Map(entries) => entries.iter_mut().for_each(|(_, v)| apply_suffix(v, elem_type(ty).unwrap_or(&SqlType::Text), b)),
        _ => {}
    }
}

fn range_bounds(r: &RangeValue) -> impl Iterator<Item = &Value> {
    let (l, u) = match r {
        RangeValue::Empty => (None, None),
        RangeValue::Span { lower, upper, .. } => (lower.as_deref(), upper.as_deref()),
    };
    l.into_iter().chain(u)
}

fn range_apply(r: &mut RangeValue, ty: &SqlType, b: &mut Bytes<'_>) {
    if let RangeValue::Span { lower, upper, .. } = r {
        let elem = elem_type(ty).unwrap_or(&SqlType::Text);
        lower.iter_mut().chain(upper.iter_mut()).for_each(|v| apply_suffix(v, elem, b));
    }
}

fn put_scale(n: &Numeric, out: &mut Vec<u8>) {
    if n.is_finite() {
        put_varint(u64::from(n.scale()), out);
    }
}

fn take_scale(n: &mut Numeric, b: &mut Bytes<'_>) {
    if n.is_finite() {
        let scale = (b.varint() & 0xffff) as u16;
        if scale > n.scale() {
            *n = n.rescaled_up(scale);
        }
    }
}

const NEG_INF: u8 = 0x10;
const NEGATIVE: u8 = 0x20;
const ZERO: u8 = 0x30;
const POSITIVE: u8 = 0x40;
const POS_INF: u8 = 0x50;
const NAN: u8 = 0x60;

/// Class, exponent, pairs of decimal digits from the first one on. `n = 0.d1d2d3… * 10^exponent`.
pub(crate) fn put_numeric(n: &Numeric, out: &mut Vec<u8>) {
    match n {
        Numeric::NaN => out.push(NAN),
        Numeric::PosInf => out.push(POS_INF),
        Numeric::NegInf => out.push(NEG_INF),
        Numeric::Small { unscaled: 0, .. } => out.push(ZERO),
        Numeric::Small { unscaled, scale } => {
            let mut buf = [0u8; 40];
            let mut at = buf.len();
            let mut v = unscaled.unsigned_abs();
            while v > u128::from(u64::MAX) {
                buf[at - 1] = (v % 10) as u8;
                at -= 1;
                v /= 10;
            }
            let mut v = v as u64;
            while v > 0 {
                buf[at - 1] = (v % 10) as u8;
                at -= 1;
                v /= 10;
            }
            put_digits(*unscaled < 0, &buf[at..], i32::from(*scale), out);
        }
        Numeric::Big(b) => {
            let digits = b.0.magnitude().to_radix_be(10);
            put_digits(b.0.sign() == num_bigint::Sign::Minus, &digits, i32::from(b.1), out);
        }
    }
}

fn put_digits(negative: bool, digits: &[u8], scale: i32, out: &mut Vec<u8>) {
    let start = out.len();
    let exponent = digits.len() as i32 - scale;
    match exponent {
        -64..=63 => out.push(0x40 + (exponent + 64) as u8),
        e if e > 0 => {
            out.push(0xf0);
            out.extend_from_slice(&e.to_be_bytes());
        }
        e => {
            out.push(0x10);
            out.extend_from_slice(&((e as u32) ^ 1 << 31).to_be_bytes());
        }
    }
    let len = digits.iter().rposition(|d| *d != 0).map_or(0, |p| p + 1);
    for pair in digits[..len].chunks(2) {
        out.push(pair[0] * 10 + pair.get(1).copied().unwrap_or(0) + 1);
    }
    out.push(0);
    if negative {
        out[start..].iter_mut().for_each(|b| *b = !*b);
    }
    out.insert(start, if negative { NEGATIVE } else { POSITIVE });
}

fn read_numeric(b: &mut Bytes<'_>) -> Numeric {
    let negative = match b.u8() {
        NEG_INF => return Numeric::NegInf,
        POS_INF => return Numeric::PosInf,
        NAN => return Numeric::NaN,
        NEGATIVE => true,
        POSITIVE => false,
        _ => return Numeric::from(0),
    };
    let flip = if negative { 0xff } else { 0 };
    let exponent = match b.u8() ^ flip {
        e @ 0x40..=0xbf => i32::from(e) - 0x80,
        tag => {
            let raw = b.fixed::<4>().map(|x| x ^ flip);
            let e = if tag == 0xf0 { i32::from_be_bytes(raw) } else { (u32::from_be_bytes(raw) ^ 1 << 31) as i32 };
            e.clamp(-200_000, 200_000)
        }
    };
    let mut digits: smallvec::SmallVec<[u8; 64]> = smallvec::SmallVec::new();
    loop {
        if b.is_empty() {
            break;
        }
        let pair = (b.u8() ^ flip).wrapping_sub(1);
        if pair > 99 {
            break;
        }
        digits.push(pair / 10);
        digits.push(pair % 10);
    }
    if digits.last() == Some(&0) {
        digits.pop();
    }
    Numeric::from_digits(negative, &digits, exponent)
}

fn skip_numeric(b: &mut Bytes<'_>) {
    let flip = match b.u8() {
        NEGATIVE => 0xff,
        POSITIVE => 0,
        _ => return,
    };
    if !(0x40..=0xbf).contains(&(b.u8() ^ flip)) {
        b.take(4);
    }
    let n = b.0.iter().position(|x| *x == flip).map_or(b.0.len(), |p| p + 1);
    b.take(n);
}

// jsonb: Null < String < Number < Bool < Array < Object; but a top-level empty array is least of all.
const J_EMPTY: u8 = 0x01;
const J_NULL: u8 = 0x10;
const J_STRING: u8 = 0x20;
const J_NUMBER: u8 = 0x30;
const J_FALSE: u8 = 0x40;
const J_TRUE: u8 = 0x41;
const J_ARRAY: u8 = 0x50;
const J_OBJECT: u8 = 0x60;

fn put_jsonb(j: &Jsonb, top: bool, out: &mut Vec<u8>) {
    match j {
        Jsonb::Null => out.push(J_NULL),
        Jsonb::Bool(v) => out.push(if *v { J_TRUE } else { J_FALSE }),
        Jsonb::Number(n) => {
            out.push(J_NUMBER);
            put_numeric(n, out);
        }
        Jsonb::String(s) => {
            out.push(J_STRING);
            out.extend_from_slice(s.as_bytes());
            out.push(0);
        }
        Jsonb::Array(a) if top && a.is_empty() => out.push(J_EMPTY),
        Jsonb::Array(a) => {
            out.push(J_ARRAY);
            out.extend_from_slice(&(a.len() as u32).to_be_bytes());
            a.iter().for_each(|e| put_jsonb(e, false, out));
        }
        Jsonb::Object(o) => {
            out.push(J_OBJECT);
            out.extend_from_slice(&(o.len() as u32).to_be_bytes());
            for (k, v) in o {
                out.extend_from_slice(k.as_bytes());
                out.push(0);
                put_jsonb(v, false, out);
            }
        }
    }
}

fn read_jsonb(b: &mut Bytes<'_>) -> Jsonb {
    match b.u8() {
        J_EMPTY => Jsonb::Array(Vec::new()),
        J_STRING => Jsonb::String(lossy(b.until_zero())),
        J_NUMBER => Jsonb::Number(read_numeric(b)),
        J_FALSE => Jsonb::Bool(false),
        J_TRUE => Jsonb::Bool(true),
        J_ARRAY => {
            let n = u32::from_be_bytes(b.fixed());
            let mut out = Vec::new();
            for _ in 0..n {
                if b.is_empty() {
                    break;
                }
                out.push(read_jsonb(b));
            }
            Jsonb::Array(out)
        }
        J_OBJECT => {
            let n = u32::from_be_bytes(b.fixed());
            let mut out = Vec::new();
            for _ in 0..n {
                if b.is_empty() {
                    break;
                }
                let k = lossy(b.until_zero());
                out.push((k, read_jsonb(b)));
            }
            Jsonb::Object(out)
        }
        _ => Jsonb::Null,
    }
}

/// Family; each prefix bit as the two bits 1b, then 00 and zeros up to a byte; then the whole address. So a prefix
/// sorts before what it contains, as Postgres has it.
fn put_inet(i: &InetValue, out: &mut Vec<u8>) {
    let mut put = |family: u8, addr: &[u8]| {
        out.push(family);
        let prefix = usize::from(i.bits).min(addr.len() * 8);
        let mut acc = 0u8;
        for k in 0..prefix {
            acc = acc << 2 | 2 | (addr[k / 8] >> (7 - k % 8) & 1);
            if k % 4 == 3 {
                out.push(acc);
                acc = 0;
            }
        }
        out.push(acc << ((8 - prefix % 4 * 2) as u32 % 8));
        out.extend_from_slice(addr);
    };
    match i.addr {
        IpAddr::V4(a) => put(4, &a.octets()),
        IpAddr::V6(a) => put(6, &a.octets()),
    }
}

fn read_inet(b: &mut Bytes<'_>) -> InetValue {
    let family = b.u8();
    let mut bits = 0u8;
    'prefix: loop {
        let byte = b.u8();
        for shift in [6, 4, 2, 0] {
            if byte >> shift & 2 == 0 {
                break 'prefix;
            }
            bits = bits.saturating_add(1);
        }
    }
    let addr = if family == 6 { IpAddr::V6(Ipv6Addr::from(b.fixed::<16>())) } else { IpAddr::V4(Ipv4Addr::from(b.fixed::<4>())) };
    InetValue { addr, bits }
}

fn put_array(a: &ArrayValue, ty: &SqlType, out: &mut Vec<u8>) {
    if *ty == SqlType::OidVector {
        out.extend_from_slice(&(a.elems.len() as u32).to_be_bytes());
    }
    match elem_type(ty) {
        Some(e) => a.elems.iter().for_each(|v| write_canonical(v, e, out)),
        None => a.elems.iter().for_each(|v| write_canonical(v, &type_of(v), out)),
    }
    out.push(0);
    out.push(a.dims.len() as u8);
    if a.dims.len() > 1 {
        a.dims.iter().for_each(|(n, _)| out.extend_from_slice(&n.to_be_bytes()));
    }
    a.dims.iter().for_each(|(_, lb)| out.extend_from_slice(&((*lb as u32) ^ 1 << 31).to_be_bytes()));
}

fn read_array(elem: &SqlType, b: &mut Bytes<'_>) -> ArrayValue {
    let mut elems = Vec::new();
    while matches!(b.0.first(), Some(&(PRESENT | NULL))) {
        elems.push(read_canonical(elem, b));
    }
    b.take(1);
    let ndims = b.u8().min(6); // Postgres's MAXDIM
    let mut dims: Vec<(i32, i32)> = match ndims {
        0 | 1 => vec![(elems.len() as i32, 1); usize::from(ndims)],
        n => (0..n).map(|_| (i32::from_be_bytes(b.fixed()), 1)).collect(),
    };
    dims.iter_mut().for_each(|d| d.1 = (u32::from_be_bytes(b.fixed()) ^ 1 << 31) as i32);
    ArrayValue { elems, dims }
}

fn put_range(r: &RangeValue, elem: &SqlType, out: &mut Vec<u8>) {
    let RangeValue::Span { lower, upper, lower_inc, upper_inc } = r else { return out.push(0) };
    out.push(1);
    match lower {
        None => out.push(0),
        Some(v) => {
            out.push(1);
            write_canonical(v, elem, out);
            out.push(u8::from(!lower_inc));
        }
    }
    match upper {
        None => out.push(2),
        Some(v) => {
            out.push(1);
            write_canonical(v, elem, out);
            out.push(u8::from(*upper_inc));
        }
    }
}

fn read_range(elem: &SqlType, b: &mut Bytes<'_>) -> RangeValue {
    if b.u8() == 0 {
        return RangeValue::Empty;
    }
    let (mut lower, mut upper, mut lower_inc, mut upper_inc) = (None, None, false, false);
    if b.u8() == 1 {
        lower = Some(Box::new(read_canonical(elem, b)));
        lower_inc = b.u8() == 0;
    }
    if b.u8() == 1 {
        upper = Some(Box::new(read_canonical(elem, b)));
        upper_inc = b.u8() == 1;
    }
    RangeValue::Span { lower, upper, lower_inc, upper_inc }
}

pub(crate) fn read_bytea(b: &mut Bytes<'_>, out: &mut Vec<u8>) {
    while let Some(p) = b.0.iter().position(|x| *x == 0) {
        out.extend_from_slice(b.take(p));
        b.take(1);
        if b.u8() != 0xff {
            return;
        }
        out.push(0);
    }
    out.extend_from_slice(b.take(usize::MAX));
}

fn read_interval(b: &mut Bytes<'_>) -> Interval {
    let mut raw = [0u8; 16];
    raw[6..].copy_from_slice(&b.fixed::<10>());
    let span = u128::from_be_bytes(raw) as i128 - (1 << 79);
    // Months only where days alone do not reach; clamped, since the extreme spans need all three fields at their ends.
    let days = span / DAY_MICROS;
    let months = if i32::try_from(days).is_ok() { 0 } else { clamp_i32(days / 30) };
    let days = clamp_i32(days - i128::from(months) * 30);
    let micros = span - (i128::from(months) * 30 + i128::from(days)) * DAY_MICROS;
    Interval { months, days, micros: micros as i64 }
}

fn clamp_i32(v: i128) -> i32 {
    v.clamp(i128::from(i32::MIN), i128::from(i32::MAX)) as i32
}

/// The value whose canonical bytes stand at `b`: of the equal ones the plainest, until [`apply_suffix`] is called.
pub(crate) fn read_canonical(ty: &SqlType, b: &mut Bytes<'_>) -> Value {
    match b.u8() {
        PRESENT => read_present(ty, b),
        _ => Value::Null,
    }
}

fn read_present(ty: &SqlType, b: &mut Bytes<'_>) -> Value {
    match ty {
        SqlType::Domain(d) => read_present(&d.base.ty, b),
        SqlType::Bool => Value::Bool(b.u8() != 0),
        SqlType::Int2 => Value::Int2(read_i16(b)),
        SqlType::Int4 => Value::Int4(read_i32(b)),
        SqlType::Date => Value::Date(read_i32(b)),
        SqlType::Int8 | SqlType::Money => Value::Int8(read_i64(b)),
        SqlType::Time => Value::Time(read_i64(b)),
        SqlType::Timestamp => Value::Timestamp(read_i64(b)),
        SqlType::TimestampTz => Value::TimestampTz(read_i64(b)),
        SqlType::UInt2 => Value::UInt2(u16::from_be_bytes(b.fixed())),
        SqlType::UInt4 | SqlType::Oid | SqlType::Xid | SqlType::Cid | SqlType::Reg(_) | SqlType::Enum(_) => Value::UInt4(u32::from_be_bytes(b.fixed())),
        SqlType::UInt8 | SqlType::Xid8 | SqlType::Tid | SqlType::PgLsn => Value::UInt8(u64::from_be_bytes(b.fixed())),
        SqlType::Float4 => Value::Float4(f32_from_key(u32::from_be_bytes(b.fixed()))),
        SqlType::Float8 => Value::Float8(f64_from_key(u64::from_be_bytes(b.fixed()))),
        SqlType::Numeric => Value::Numeric(read_numeric(b)),
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
        | SqlType::Void => Value::Text(lossy(b.until_zero())),
        SqlType::TsQuery => {
            let mut head = Vec::new();
            read_bytea(b, &mut head);
            Value::Bytea(crate::tsearch::join_query(&head, &[]))
        }
        SqlType::Bytea | SqlType::MacAddr | SqlType::MacAddr8 | SqlType::Geo(_) | SqlType::TsVector => {
            let mut out = Vec::new();
            read_bytea(b, &mut out);
            Value::Bytea(out)
        }
        SqlType::TimeTz => {
            let (utc, zone_secs) = (read_i64(b), read_i32(b));
            Value::TimeTz(TimeTz { micros: utc.wrapping_sub(i64::from(zone_secs) * 1_000_000), zone_secs })
        }
        SqlType::Interval => Value::Interval(read_interval(b)),
        SqlType::Uuid => Value::Uuid(b.fixed()),
        SqlType::Jsonb => Value::Jsonb(Box::new(read_jsonb(b))),
        SqlType::Inet | SqlType::Cidr => Value::Inet(read_inet(b)),
        SqlType::OidVector => {
            b.take(4);
            Value::Array(Box::new(read_array(&SqlType::Oid, b)))
        }
        SqlType::Int2Vector => Value::Array(Box::new(read_array(&SqlType::Int2, b))),
        SqlType::Array(e) | SqlType::List(e) => Value::Array(Box::new(read_array(e, b))),
        SqlType::Record(r) if !r.fields.is_empty() => Value::Record(r.fields.iter().map(|f| read_canonical(&f.1.ty, b)).collect()),
        SqlType::Record(_) => {
            let n = u32::from_be_bytes(b.fixed());
            let mut fields = Vec::new();
            for _ in 0..n {
                if b.is_empty() {
                    break;
                }
                let t = SqlType::from_oid(u32::from_be_bytes(b.fixed())).unwrap_or(SqlType::Text);
                fields.push(read_canonical(&t, b));
            }
            Value::Record(fields)
        }
        SqlType::Range(_) | SqlType::UserRange(_) => Value::Range(Box::new(read_range(elem_type(ty).unwrap_or(&SqlType::Int4), b))),
        SqlType::Multirange(_) | SqlType::UserMultirange(_) => {
            let e = elem_type(ty).unwrap_or(&SqlType::Int4);
            let mut out = Vec::new();
            while b.u8() == 1 {
                out.push(read_range(e, b));
            }
            Value::Multirange(out)
        }
        SqlType::Map(e) => {
            let mut out = Vec::new();
            while b.u8() == 1 {
                let k = lossy(b.until_zero());
                out.push((k, read_canonical(e, b)));
            }
            Value::Map(out)
        }
    }
}

#[inline]
pub(crate) fn read_i16(b: &mut Bytes<'_>) -> i16 {
    (u16::from_be_bytes(b.fixed()) ^ 1 << 15) as i16
}
#[inline]
pub(crate) fn read_i32(b: &mut Bytes<'_>) -> i32 {
    (u32::from_be_bytes(b.fixed()) ^ 1 << 31) as i32
}
#[inline]
pub(crate) fn read_i64(b: &mut Bytes<'_>) -> i64 {
    (u64::from_be_bytes(b.fixed()) ^ 1 << 63) as i64
}

/// Moves past one canonical form.
pub(crate) fn skip_canonical(ty: &SqlType, b: &mut Bytes<'_>) {
    let ty = ty.base();
    if b.0.first() != Some(&PRESENT) {
        b.take(1);
        return;
    }
    let fixed = match ty {
        SqlType::Bool => 1,
        SqlType::Int2 | SqlType::UInt2 => 2,
        SqlType::Int4 | SqlType::Date | SqlType::UInt4 | SqlType::Oid | SqlType::Xid | SqlType::Cid | SqlType::Reg(_) | SqlType::Enum(_) | SqlType::Float4 => 4,
        SqlType::Int8
        | SqlType::Time
        | SqlType::Timestamp
        | SqlType::TimestampTz
        | SqlType::UInt8
        | SqlType::Xid8
        | SqlType::Tid
        | SqlType::PgLsn
        | SqlType::Money
        | SqlType::Float8 => 8,
        SqlType::TimeTz => 12,
        SqlType::Interval => 10,
        SqlType::Uuid => 16,
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
        | SqlType::Void => {
            b.take(1);
            b.until_zero();
            return;
        }
        SqlType::Numeric => {
            b.take(1);
            skip_numeric(b);
            return;
        }
        _ => {
            read_canonical(ty, b);
            return;
        }
    };
    b.take(1 + fixed);
}
