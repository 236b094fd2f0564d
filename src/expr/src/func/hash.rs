//! Hash functions of the hash operator classes (`hashtext`, `hashint4`, `hash_array`, ... and their `extended` kin), bit for bit Postgres's.
//!
//! People partition by `hashtext(x) % n`, so the values matter. The mixing is Bob Jenkins's lookup3, read as little-endian words. One entry
//! serves every type; what a type hashes is told by its value. Types without a hash class (money, bit, json) are 42883. An enum hashes its
//! code, which is ours. Not here: the engine's own hashing of rows.

use super::construct::element_type;
use super::lift::Call;
use super::Entry;
use crate::val;
use repr::error::state;
use repr::{RangeValue, SqlError, SqlType, Value};
use std::net::IpAddr;

/// `None`: the 32-bit hash; `Some`: the 64-bit one with this seed.
type Seed = Option<u64>;

struct Mix {
    a: u32,
    b: u32,
    c: u32,
}

impl Mix {
    fn new(len: u32, seed: Seed) -> Mix {
        let start = 0x9e37_79b9u32.wrapping_add(len).wrapping_add(3_923_095);
        let mut m = Mix { a: start, b: start, c: start };
        if let Some(s) = seed.filter(|s| *s != 0) {
            m.a = m.a.wrapping_add((s >> 32) as u32);
            m.b = m.b.wrapping_add(s as u32);
            m.mix();
        }
        m
    }

    fn mix(&mut self) {
        let Mix { a, b, c } = self;
        for (ra, rb, rc) in [(4, 6, 8), (16, 19, 4)] {
            *a = a.wrapping_sub(*c) ^ c.rotate_left(ra);
            *c = c.wrapping_add(*b);
            *b = b.wrapping_sub(*a) ^ a.rotate_left(rb);
            *a = a.wrapping_add(*c);
            *c = c.wrapping_sub(*b) ^ b.rotate_left(rc);
            *b = b.wrapping_add(*a);
        }
    }

    fn finish(mut self, seed: Seed) -> u64 {
        let Mix { a, b, c } = &mut self;
        let step = |x: &mut u32, y: u32, r: u32| *x = (*x ^ y).wrapping_sub(y.rotate_left(r));
        step(c, *b, 14);
        step(a, *c, 11);
        step(b, *a, 25);
        step(c, *b, 16);
        step(a, *c, 4);
        step(b, *a, 14);
        step(c, *b, 24);
        match seed {
            None => u64::from(*c),
            Some(_) => u64::from(*b) << 32 | u64::from(*c),
        }
    }
}

fn bytes(k: &[u8], seed: Seed) -> u64 {
    let mut m = Mix::new(k.len() as u32, seed);
    let word = |w: &[u8]| w.iter().rev().fold(0u32, |v, b| v << 8 | u32::from(*b));
    let mut chunks = k.chunks_exact(12);
    for w in &mut chunks {
        m.a = m.a.wrapping_add(word(&w[..4]));
        m.b = m.b.wrapping_add(word(&w[4..8]));
        m.c = m.c.wrapping_add(word(&w[8..]));
        m.mix();
    }
    let rest = chunks.remainder();
    let part = |from: usize| word(&rest[from.min(rest.len())..(from + 4).min(rest.len())]);
    m.a = m.a.wrapping_add(part(0));
    m.b = m.b.wrapping_add(part(4));
    // The lowest byte of the third word belongs to the length.
    m.c = m.c.wrapping_add(part(8) << 8);
    m.finish(seed)
}

fn word(k: u32, seed: Seed) -> u64 {
    let mut m = Mix::new(4, seed);
    m.a = m.a.wrapping_add(k);
    m.finish(seed)
}

/// So that an int8 hashes as the int4 or int2 that is equal to it.
fn int8(v: i64, seed: Seed) -> u64 {
    let high = (v >> 32) as u32;
    word(v as u32 ^ if v >= 0 { high } else { !high }, seed)
}

fn float8(v: f64, seed: Seed) -> u64 {
    if v == 0.0 {
        return seed.unwrap_or(0);
    }
    bytes(&if v.is_nan() { f64::NAN } else { v }.to_le_bytes(), seed)
}

fn numeric(v: &Value, seed: Seed) -> u64 {
    let b = repr::binary::to_binary(v, &SqlType::Numeric);
    let short = |i: usize| u16::from_be_bytes([b[2 * i], b[2 * i + 1]]);
    // Sign words above a negative number's: NaN and the infinities.
    if short(2) > 0x4000 {
        return seed.unwrap_or(0);
    }
    let digits = usize::from(short(0));
    if digits == 0 {
        return seed.map_or(u64::from(u32::MAX), |s| s.wrapping_sub(1));
    }
    let le: Vec<u8> = (0..digits).flat_map(|i| short(4 + i).to_le_bytes()).collect();
    let weight = i64::from(short(1) as i16);
    bytes(&le, seed) ^ if seed.is_some() { weight as u64 } else { u64::from(weight as u32) }
}

fn no_hash(ty: &SqlType, seed: Seed) -> SqlError {
    let what = if seed.is_some() { "an extended hash" } else { "a hash" };
    SqlError::new(state::UNDEFINED_FUNCTION, format!("could not identify {what} function for type {}", ty.sql_name()))
}

/// Whether the type has no hash class.
fn has_none(ty: &SqlType) -> bool {
    use SqlType::*;
    matches!(ty, Money | Bit | VarBit | Json | JsonPath | Jsonb | List(_) | Map(_) | Geo(_))
}

/// `31 h + x` in the hash's width.
fn chain(h: u64, x: u64, seed: Seed) -> u64 {
    let r = (h << 5).wrapping_sub(h).wrapping_add(x);
    if seed.is_some() {
        r
    } else {
        r & u64::from(u32::MAX)
    }
}

fn range(r: &RangeValue, elem: &SqlType, seed: Seed) -> Result<u64, SqlError> {
    let (flags, lower, upper) = match r {
        RangeValue::Empty => (1, None, None),
        RangeValue::Span { lower, upper, lower_inc, upper_inc } => {
            let f = u32::from(*lower_inc) << 1 | u32::from(*upper_inc) << 2 | u32::from(lower.is_none()) << 3 | u32::from(upper.is_none()) << 4;
            (f, lower.as_deref(), upper.as_deref())
        }
    };
    let part = |v: Option<&Value>| v.map_or(Ok(0), |v| value(v, elem, seed));
    let h = word(flags, seed) ^ part(lower)?;
    let rotated = match seed {
        None => u64::from((h as u32).rotate_left(1)),
        // Each half by itself.
        Some(_) => (h << 1) & 0xffff_fffe_ffff_fffe | (h >> 31) & 0x1_0000_0001,
    };
    Ok(rotated ^ part(upper)?)
}

fn value(v: &Value, ty: &SqlType, seed: Seed) -> Result<u64, SqlError> {
    if has_none(ty) {
        return Err(no_hash(ty, seed));
    }
    Ok(match v {
        Value::Null => 0,
        Value::Bool(b) => word(u32::from(*b), seed),
        Value::Int2(i) => word(i32::from(*i) as u32, seed),
        Value::Int4(i) | Value::Date(i) => word(*i as u32, seed),
        Value::Int8(i) | Value::Time(i) | Value::Timestamp(i) | Value::TimestampTz(i) => int8(*i, seed),
        Value::UInt2(i) => word((*i).into(), seed),
        Value::UInt4(i) => word(*i, seed),
        Value::UInt8(i) => int8(*i as i64, seed),
        Value::Float4(f) => float8((*f).into(), seed),
        Value::Float8(f) => float8(*f, seed),
        Value::Numeric(_) => numeric(v, seed),
        Value::Text(s) if *ty == SqlType::Char => word(s.bytes().next().map_or(0, |b| i32::from(b as i8)) as u32, seed),
        Value::Text(s) if *ty == SqlType::Bpchar => bytes(s.trim_end_matches(' ').as_bytes(), seed),
        Value::Text(s) => bytes(s.as_bytes(), seed),
        Value::Bytea(b) => bytes(b, seed),
        Value::TimeTz(t) => int8(t.micros, seed) ^ word(t.zone_secs as u32, seed),
        Value::Interval(i) => int8(i.span_micros() as i64, seed),
        Value::Uuid(u) => bytes(u, seed),
        Value::Inet(i) => {
            let (family, addr) = match i.addr {
                IpAddr::V4(a) => (2, a.octets().to_vec()),
                IpAddr::V6(a) => (3, a.octets().to_vec()),
            };
            bytes(&[&[family, i.bits], addr.as_slice()].concat(), seed)
        }
        Value::Array(a) if *ty == SqlType::OidVector => {
            let le: Vec<u8> = a.elems.iter().flat_map(|e| (e.as_i64().unwrap_or(0) as u32).to_le_bytes()).collect();
            bytes(&le, seed)
        }
        Value::Array(a) => {
            let elem = element_type(ty);
            // Refused for an empty array too.
            if has_none(elem) {
                return Err(no_hash(elem, seed));
            }
            a.elems.iter().try_fold(1, |h, e| value(e, elem, seed).map(|x| chain(h, x, seed)))?
        }
        Value::Record(fields) => {
            let mut h = 0;
            for (i, f) in fields.iter().enumerate() {
                let x = match ty {
                    SqlType::Record(r) if i < r.fields.len() => value(f, &r.fields[i].1.ty, seed)?,
                    _ => value(f, &repr::canonical::type_of(f), seed)?,
                };
                h = chain(h, x, seed);
            }
            h
        }
        Value::Range(r) => range(r, element_type(ty), seed)?,
        Value::Multirange(rs) => rs.iter().try_fold(1, |h, r| range(r, element_type(ty), seed).map(|x| chain(h, x, seed)))?,
        Value::Jsonb(_) | Value::Map(_) => return Err(no_hash(ty, seed)),
    })
}

fn short(a: &[Value], call: &Call<'_>) -> Result<Value, SqlError> {
    value(&a[0], &call.arg_types[0].ty, None).map(|h| Value::Int4(h as u32 as i32))
}

fn extended(a: &[Value], call: &Call<'_>) -> Result<Value, SqlError> {
    let seed = a[1].as_i64().unwrap_or(0) as u64;
    value(&a[0], &call.arg_types[0].ty, Some(seed)).map(|h| Value::Int8(h as i64))
}

pub const FUNCS: &[Entry] = &[
    val!(
        ? [
            "hashchar", "hashint2", "hashint4", "hashint8", "hashoid", "hashenum", "hashfloat4", "hashfloat8", "hashoidvector", "hashname", "hashtext",
            "hashvarlena", "hashbpchar", "time_hash", "timetz_hash", "timestamp_hash", "interval_hash", "uuid_hash", "hashmacaddr", "hashmacaddr8",
            "hashinet", "hash_numeric", "hash_array", "hash_record", "hash_range", "hash_multirange", "pg_lsn_hash",
        ],
        short
    ),
    val!(
        ? [
            "hashcharextended", "hashint2extended", "hashint4extended", "hashint8extended", "hashoidextended", "hashenumextended", "hashfloat4extended",
            "hashfloat8extended", "hashoidvectorextended", "hashnameextended", "hashtextextended", "hashvarlenaextended", "hashbpcharextended",
            "time_hash_extended", "timetz_hash_extended", "timestamp_hash_extended", "interval_hash_extended", "uuid_hash_extended",
            "hashmacaddrextended", "hashmacaddr8extended", "hashinetextended", "hash_numeric_extended", "hash_array_extended", "hash_record_extended",
            "hash_range_extended", "hash_multirange_extended", "pg_lsn_hash_extended",
        ],
        extended
    ),
];
