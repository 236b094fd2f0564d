//! bytea, encodings and digests, uuid.

use super::lift::{constant, Bytes, Str};
use super::Entry;
use crate::{f1, f2, f3, kernel, val};
use base64::Engine;
use repr::encoding::Encoding;
use repr::error::state;
use repr::interrupt::Pace;
use repr::{SqlError, Value};
use sha2::{Digest, Sha224, Sha256, Sha384, Sha512};

fn substr(b: &[u8], start: i32, count: Option<i32>) -> Result<Vec<u8>, SqlError> {
    let end = match count {
        Some(n) if n < 0 => return Err(SqlError::new(state::SUBSTRING_ERROR, "negative substring length not allowed")),
        Some(n) => start.checked_add(n).map_or(b.len(), |e| (e.saturating_sub(1).max(0) as usize).min(b.len())),
        None => b.len(),
    };
    let from = ((start.max(1) - 1) as usize).min(b.len());
    Ok(if from < end { b[from..end].to_vec() } else { Vec::new() })
}

fn overlay(b: &[u8], new: &[u8], start: i32, count: i32) -> Result<Vec<u8>, SqlError> {
    if start <= 0 {
        return Err(SqlError::new(state::SUBSTRING_ERROR, "negative substring length not allowed"));
    }
    let end = start.checked_add(count).ok_or_else(|| super::arith::out_of_range("integer"))?;
    let mut out = substr(b, 1, Some(start - 1))?;
    out.extend_from_slice(new);
    out.extend(substr(b, end, None)?);
    Ok(out)
}

fn position(b: &[u8], needle: &[u8]) -> i32 {
    memchr::memmem::find(b, needle).map_or(0, |i| i as i32 + 1)
}

fn index(i: i64, len: usize) -> Result<usize, SqlError> {
    usize::try_from(i)
        .ok()
        .filter(|k| *k < len)
        .ok_or_else(|| SqlError::new(state::ARRAY_SUBSCRIPT_ERROR, format!("index {i} out of valid range, 0..{}", len as i64 - 1)))
}

fn set_bit(b: &[u8], n: i64, bit: i32) -> Result<Vec<u8>, SqlError> {
    let k = index(n, b.len() * 8)?;
    if bit != 0 && bit != 1 {
        return Err(SqlError::new(state::INVALID_PARAMETER_VALUE, "new bit must be 0 or 1"));
    }
    let mut out = b.to_vec();
    out[k / 8] = (out[k / 8] & !(1 << (k % 8))) | ((bit as u8) << (k % 8));
    Ok(out)
}

/// Trims bytes of `set`.
fn trim(b: &[u8], set: &[u8], left: bool, right: bool) -> Vec<u8> {
    let pace = Pace::default();
    let kept = |x: &u8| pace.stop(set.len()) || !set.contains(x);
    let from = if left { b.iter().position(kept).unwrap_or(b.len()) } else { 0 };
    let to = if right { b.iter().rposition(kept).map_or(0, |i| i + 1) } else { b.len() };
    if from < to {
        b[from..to].to_vec()
    } else {
        Vec::new()
    }
}

/// A digest of bytes, a megabyte at a time.
pub fn digest<D: Digest>(b: &[u8]) -> Vec<u8> {
    let (mut d, pace) = (D::new(), Pace::default());
    b.chunks(1 << 20).take_while(|c| !pace.stop(c.len())).for_each(|c| d.update(c));
    d.finalize().to_vec()
}

fn encode(b: &[u8], format: &str) -> Result<String, SqlError> {
    match format.to_ascii_lowercase().as_str() {
        "hex" => Ok(hex::encode(b)),
        "base64" => {
            // Lines of 76 characters.
            let all = base64::engine::general_purpose::STANDARD.encode(b);
            let lines: Vec<&str> = (0..all.len()).step_by(76).map(|i| &all[i..(i + 76).min(all.len())]).collect();
            Ok(lines.join("\n"))
        }
        "escape" => {
            let (mut out, pace) = (String::new(), Pace::default());
            for x in b.iter().take_while(|_| !pace.stop(8)) {
                match x {
                    b'\\' => out.push_str("\\\\"),
                    0 | 0x80..=0xff => out.push_str(&format!("\\{x:03o}")),
                    x => out.push(char::from(*x)),
                }
            }
            Ok(out)
        }
        _ => Err(unknown_format(format)),
    }
}

fn unknown_format(format: &str) -> SqlError {
    SqlError::new(state::INVALID_PARAMETER_VALUE, format!("unrecognized encoding: \"{format}\""))
}

fn bad(message: impl Into<String>) -> SqlError {
    SqlError::new(state::INVALID_PARAMETER_VALUE, message)
}

fn decode(s: &str, format: &str) -> Result<Vec<u8>, SqlError> {
    match format.to_ascii_lowercase().as_str() {
        "hex" => {
            let mut out = Vec::with_capacity(s.len() / 2);
            let mut high = None;
            let pace = Pace::default();
            for c in s.chars().take_while(|_| !pace.stop(4)) {
                // Blanks stand between pairs of digits.
                if high.is_none() && matches!(c, ' ' | '\n' | '\t' | '\r') {
                    continue;
                }
                let d = c.to_digit(16).ok_or_else(|| bad(format!("invalid hexadecimal digit: \"{c}\"")))? as u8;
                high = match high {
                    None => Some(d),
                    Some(h) => {
                        out.push(h << 4 | d);
                        None
                    }
                };
            }
            match high {
                None => Ok(out),
                Some(_) => Err(bad("invalid hexadecimal data: odd number of digits")),
            }
        }
        "base64" => {
            let clean: Vec<u8> = s.bytes().filter(|b| !b.is_ascii_whitespace()).collect();
            if let Some(c) = s.chars().find(|c| !(c.is_ascii_alphanumeric() || matches!(c, '+' | '/' | '=') || c.is_ascii_whitespace())) {
                return Err(bad(format!("invalid symbol \"{c}\" found while decoding base64 sequence")));
            }
            base64::engine::general_purpose::STANDARD
                .decode(clean)
                .map_err(|_| bad("invalid base64 end sequence").with_hint("Input data is missing padding, is truncated, or is otherwise corrupted."))
        }
        "escape" => {
            let b = s.as_bytes();
            let wrong = || SqlError::new(state::INVALID_TEXT_REPRESENTATION, "invalid input syntax for type bytea");
            let (mut out, mut i) = (Vec::with_capacity(b.len()), 0);
            while i < b.len() {
                if b[i] != b'\\' {
                    out.push(b[i]);
                    i += 1;
                } else if b.get(i + 1) == Some(&b'\\') {
                    out.push(b'\\');
                    i += 2;
                } else {
                    let digits = b.get(i + 1..i + 4).filter(|d| matches!(d[0], b'0'..=b'3') && d[1..].iter().all(|x| matches!(x, b'0'..=b'7')));
                    let d = digits.ok_or_else(wrong)?;
                    out.push((d[0] - b'0') << 6 | (d[1] - b'0') << 3 | (d[2] - b'0'));
                    i += 4;
                }
            }
            Ok(out)
        }
        _ => Err(unknown_format(format)),
    }
}

fn encoding(name: &str, which: &str) -> Result<Encoding, SqlError> {
    Encoding::parse(name)?.ok_or_else(|| bad(format!("invalid {which} encoding name \"{name}\"")))
}

fn convert_from(b: &[u8], name: &str) -> Result<String, SqlError> {
    Ok(encoding(name, "source")?.decode(b)?.into_owned())
}

fn convert_to(s: &str, name: &str) -> Result<Vec<u8>, SqlError> {
    Ok(encoding(name, "destination")?.encode(s)?.into_owned())
}

/// A random (version 4) uuid.
fn random_uuid() -> [u8; 16] {
    let mut b: [u8; 16] = rand::random();
    b[6] = b[6] & 0x0f | 0x40;
    b[8] = b[8] & 0x3f | 0x80;
    b
}

pub const FUNCS: &[Entry] = &[
    f1!(["byteaoctetlen"], Bytes => i32, |b| b.len() as i32),
    f3!(? ["bytea_substr"], Bytes, i32, i32 => Vec<u8>, |b, a, n| substr(b, a, Some(n))),
    f2!(["bytea_substr_no_len"], Bytes, i32 => Vec<u8>, |b, a| substr(b, a, None).unwrap_or_default()),
    val!(? ["byteaoverlay"], |a, _| match a {
        [Value::Bytea(b), Value::Bytea(new), Value::Int4(at), Value::Int4(n)] => overlay(b, new, *at, *n).map(Value::Bytea),
        _ => Ok(Value::Null),
    }),
    f3!(? ["byteaoverlay_no_len"], Bytes, Bytes, i32 => Vec<u8>, |b, new, at| overlay(b, new, at, new.len() as i32)),
    f2!(["byteapos"], Bytes, Bytes => i32, position),
    val!(
        [
            "array_send",
            "bit_send",
            "boolsend",
            "bpcharsend",
            "byteasend",
            "cash_send",
            "charsend",
            "cidr_send",
            "date_send",
            "enum_send",
            "float4send",
            "float8send",
            "inet_send",
            "int2send",
            "int2vectorsend",
            "int4send",
            "int8send",
            "interval_send",
            "json_send",
            "jsonb_send",
            "jsonpath_send",
            "macaddr8_send",
            "macaddr_send",
            "multirange_send",
            "namesend",
            "numeric_send",
            "oidsend",
            "oidvectorsend",
            "pg_lsn_send",
            "range_send",
            "record_send",
            "regclasssend",
            "regcollationsend",
            "regconfigsend",
            "regdictionarysend",
            "regnamespacesend",
            "regoperatorsend",
            "regopersend",
            "regproceduresend",
            "regprocsend",
            "regrolesend",
            "regtypesend",
            "textsend",
            "time_send",
            "timestamp_send",
            "timestamptz_send",
            "timetz_send",
            "unknownsend",
            "uuid_send",
            "varbit_send",
            "varcharsend",
            "xid8send",
            "xidsend",
        ],
        |a, call| Ok(Value::Bytea(repr::binary::to_binary(&a[0], &call.arg_types[0].ty)))
    ),
    f2!(["byteacat"], Bytes, Bytes => Vec<u8>, |a, b| [a, b].concat()),
    f2!(? ["byteaGetByte"], Bytes, i32 => i32, |b, i| index(i.into(), b.len()).map(|k| b[k].into())),
    f2!(? ["byteaGetBit"], Bytes, i64 => i32, |b, i| index(i, b.len() * 8).map(|k| i32::from(b[k / 8] >> (k % 8) & 1))),
    f3!(? ["byteaSetByte"], Bytes, i32, i32 => Vec<u8>, |b, i, v| {
        let k = index(i.into(), b.len())?;
        let mut out = b.to_vec();
        out[k] = v as u8;
        Ok(out)
    }),
    f3!(? ["byteaSetBit"], Bytes, i64, i32 => Vec<u8>, set_bit),
    f2!(["byteatrim"], Bytes, Bytes => Vec<u8>, |b, s| trim(b, s, true, true)),
    f2!(["bytealtrim"], Bytes, Bytes => Vec<u8>, |b, s| trim(b, s, true, false)),
    f2!(["byteartrim"], Bytes, Bytes => Vec<u8>, |b, s| trim(b, s, false, true)),
    f1!(["bytea_bit_count"], Bytes => i64, |b| b.iter().map(|x| i64::from(x.count_ones())).sum()),
    f1!(["sha224_bytea"], Bytes => Vec<u8>, digest::<Sha224>),
    f1!(["sha256_bytea"], Bytes => Vec<u8>, digest::<Sha256>),
    f1!(["sha384_bytea"], Bytes => Vec<u8>, digest::<Sha384>),
    f1!(["sha512_bytea"], Bytes => Vec<u8>, digest::<Sha512>),
    f2!(? ["binary_encode"], Bytes, Str => String, encode),
    f2!(? ["binary_decode"], Str, Str => Vec<u8>, decode),
    f2!(? ["pg_convert_from"], Bytes, Str => String, convert_from),
    f2!(? ["length_in_encoding"], Bytes, Str => i32, |b, from| convert_from(b, from).map(|s| s.chars().count() as i32)),
    f2!(? ["pg_convert_to"], Str, Str => Vec<u8>, convert_to),
    f3!(? ["pg_convert"], Bytes, Str, Str => Vec<u8>, |b, from, to| convert_to(&convert_from(b, from)?, to)),
    // A new one on each row.
    kernel!(["gen_random_uuid"], |c| {
        let rows: Vec<Value> = (0..c.len).map(|_| Value::Uuid(random_uuid())).collect();
        let mut b = repr::ColumnBuilder::new(&c.ret.ty, c.len);
        rows.iter().for_each(|v| b.push(v));
        b.finish()
    }),
    kernel!(["getdatabaseencoding"], |c| constant(c, |_| Ok(Value::text("UTF8")))),
    kernel!(["pg_client_encoding"], |c| constant(c, |ctx| Ok(Value::Text(ctx.catalog.setting("client_encoding").unwrap_or_else(|| "UTF8".into()))))),
];
