//! Types without parts: numbers, bool, uuid, bytea, inet, names of catalog objects.

use crate::error::{state, SqlError};
use crate::style::TextStyle;
use crate::types::{RegKind, SqlType};
use crate::value::InetValue;
use std::fmt::{Display, Write};
use std::net::{IpAddr, Ipv4Addr};

fn invalid(ty: &str, text: &str) -> SqlError {
    SqlError::new(state::INVALID_TEXT_REPRESENTATION, format!("invalid input syntax for type {ty}: \"{text}\""))
}

fn out_of_range(ty: &str, text: &str) -> SqlError {
    SqlError::new(state::NUMERIC_VALUE_OUT_OF_RANGE, format!("value \"{text}\" is out of range for type {ty}"))
}

pub(super) fn put(v: &impl Display, out: &mut String) {
    let _ = write!(out, "{v}");
}

fn trim(text: &str) -> &str {
    text.trim_matches(|c: char| c.is_ascii_whitespace() || c == '\x0b')
}

/// An integer, blanks around it allowed; `ty` is named in errors.
pub fn parse_int<T: TryFrom<i128>>(text: &str, ty: &str) -> Result<T, SqlError> {
    let s = trim(text);
    let digits = s.strip_prefix(['+', '-']).unwrap_or(s);
    let n = digits.bytes().take_while(u8::is_ascii_digit).count();
    if n == 0 {
        return Err(invalid(ty, text));
    }
    // A number that is too large is told before what follows it is looked at.
    let v = s[..s.len() - digits.len() + n].parse::<i128>().ok().and_then(|v| T::try_from(v).ok()).ok_or_else(|| out_of_range(ty, text))?;
    if n < digits.len() {
        return Err(invalid(ty, text));
    }
    Ok(v)
}

/// An OID: unsigned, but -1 is 4294967295, as Postgres reads it.
pub(super) fn parse_oid(text: &str, ty: &str) -> Result<u32, SqlError> {
    let v: i64 = parse_int(text, ty)?;
    match v {
        v if (0..=i64::from(u32::MAX)).contains(&v) => Ok(v as u32),
        v if (i64::from(i32::MIN)..0).contains(&v) => Ok(v as i32 as u32),
        _ => Err(out_of_range(ty, text)),
    }
}

pub fn parse_bool(text: &str) -> Result<bool, SqlError> {
    let s = trim(text).to_ascii_lowercase();
    // Any unambiguous start of a word.
    let starts = |w: &str| !s.is_empty() && w.starts_with(&s);
    match s.as_str() {
        "1" | "on" => Ok(true),
        "0" | "of" | "off" => Ok(false),
        _ if starts("true") || starts("yes") => Ok(true),
        _ if starts("false") || starts("no") => Ok(false),
        _ => Err(SqlError::new(state::INVALID_TEXT_REPRESENTATION, format!("invalid input syntax for type boolean: \"{text}\""))),
    }
}

fn float_parts(text: &str, ty: &str) -> Result<f64, SqlError> {
    let s = trim(text);
    let (sign, body) = match s.as_bytes().first() {
        Some(b'-') => (-1.0, &s[1..]),
        Some(b'+') => (1.0, &s[1..]),
        _ => (1.0, s),
    };
    match body.to_ascii_lowercase().as_str() {
        "nan" => return Ok(f64::NAN),
        "inf" | "infinity" => return Ok(sign * f64::INFINITY),
        _ => {}
    }
    if let Some(hex) = body.strip_prefix("0x").or_else(|| body.strip_prefix("0X")) {
        return hex_float(hex).map(|v| sign * v).ok_or_else(|| invalid(ty, text));
    }
    let plain = body.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'.' | b'e' | b'E' | b'+' | b'-'));
    if !plain || body.starts_with(['+', '-']) {
        return Err(invalid(ty, text));
    }
    body.parse::<f64>().map(|v| sign * v).map_err(|_| invalid(ty, text))
}

/// `1f.8p3`, as C reads it behind `0x`.
fn hex_float(s: &str) -> Option<f64> {
    let (mantissa, exponent) = s.split_once(['p', 'P']).unwrap_or((s, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    if whole.len() + fraction.len() == 0 || exponent.len() > 6 {
        return None;
    }
    let digits = whole.chars().chain(fraction.chars()).try_fold(0.0, |a, c| c.to_digit(16).map(|d| a * 16.0 + f64::from(d)))?;
    Some(digits * 2f64.powi(exponent.parse::<i32>().ok()? - 4 * fraction.len() as i32))
}

fn float_range(text: &str, ty: &str) -> SqlError {
    SqlError::new(state::NUMERIC_VALUE_OUT_OF_RANGE, format!("\"{}\" is out of range for type {ty}", trim(text)))
}

/// Whether a mantissa has a digit other than 0, and no infinity was written.
fn has_digits(text: &str) -> bool {
    trim(text).bytes().take_while(|b| !matches!(b, b'e' | b'E')).any(|b| (b'1'..=b'9').contains(&b))
}

pub fn parse_f64(text: &str) -> Result<f64, SqlError> {
    let v = float_parts(text, "double precision")?;
    match has_digits(text) && (v.is_infinite() || v == 0.0) {
        true => Err(float_range(text, "double precision")),
        false => Ok(v),
    }
}

pub fn parse_f32(text: &str) -> Result<f32, SqlError> {
    let wide = float_parts(text, "real")?;
    // Parsed anew, since rounding twice could differ.
    let v = if wide.is_nan() || wide.is_infinite() { wide as f32 } else { trim(text).parse::<f32>().unwrap_or(wide as f32) };
    match has_digits(text) && (v.is_infinite() || v == 0.0) {
        true => Err(float_range(text, "real")),
        false => Ok(v),
    }
}

/// The shortest digits that read back as the same number, or with `extra_digits` below 1 that many fewer than full.
pub fn print_f64(v: f64, extra_digits: i32, out: &mut String) {
    if special(v, out) {
        return;
    }
    match extra_digits {
        1.. if (9e15..1e40).contains(&v.abs()) => shortest(&inside(v), 15, out),
        1.. => shortest(&even(format!("{v:e}"), 16, |n| format!("{v:.n$e}"), |s| s.parse() == Ok(v)), 15, out),
        n => general(v, (15 + n).max(1) as usize, out),
    }
}

/// As [`print_f64`] for `real`.
pub fn print_f32(v: f32, extra_digits: i32, out: &mut String) {
    if special(v.into(), out) {
        return;
    }
    match extra_digits {
        1.. if (1.6e7..1e20).contains(&v.abs()) => shortest(&inside_f32(v), 6, out),
        1.. => shortest(&even(format!("{v:e}"), 7, |n| format!("{v:.n$e}"), |s| s.parse() == Ok(v)), 6, out),
        n => general(v.into(), (6 + n).max(1) as usize, out),
    }
}

/// Of two shortest forms that are equally near, the one with an even last digit. Only among those of many digits is there such a pair.
fn even(shortest: String, many: usize, at: impl Fn(usize) -> String, reads_back: impl Fn(&str) -> bool) -> String {
    let digits = shortest.bytes().take_while(|b| *b != b'e').filter(u8::is_ascii_digit).count();
    if digits < many {
        return shortest;
    }
    let s = at(digits - 1);
    match reads_back(&s) {
        true => s,
        false => shortest,
    }
}

/// The shortest digits strictly inside the interval that reads back as `v`: Postgres does not take its ends, even where rounding to even
/// would let it. Only among large numbers do ends have few digits.
fn inside(v: f64) -> String {
    let shortest = format!("{v:e}");
    // Neighbours' middles in units of half the spacing.
    let (bits, exponent) = (v.to_bits() & ((1 << 52) - 1) | 1 << 52, (v.to_bits() >> 52 & 0x7ff) as i32 - 1075);
    let end = |digits: &str| is_middle(digits, bits, exponent);
    if !end(&shortest) {
        return shortest;
    }
    (0..17).map(|n| format!("{v:.n$e}")).find(|s| s.parse() == Ok(v) && !end(s)).unwrap_or(shortest)
}

fn inside_f32(v: f32) -> String {
    let shortest = format!("{v:e}");
    let (bits, exponent) = (u64::from(v.to_bits() & ((1 << 23) - 1) | 1 << 23), (v.to_bits() >> 23 & 0xff) as i32 - 150);
    let end = |digits: &str| is_middle(digits, bits, exponent);
    if !end(&shortest) {
        return shortest;
    }
    (0..9).map(|n| format!("{v:.n$e}")).find(|s| s.parse() == Ok(v) && !end(s)).unwrap_or(shortest)
}

/// Whether `d.ddde±x` is `(bits ± 1/2) * 2^exponent`, for a positive exponent.
fn is_middle(scientific: &str, bits: u64, exponent: i32) -> bool {
    let (mantissa, e) = scientific.split_once('e').unwrap_or((scientific, "0"));
    let digits: String = mantissa.chars().filter(char::is_ascii_digit).collect();
    let (Ok(d), Ok(e)) = (digits.parse::<u64>(), e.parse::<i32>()) else { return false };
    let (Ok(power), Ok(half)) = (u32::try_from(e + 1 - digits.len() as i32), u32::try_from(exponent - 1)) else { return false };
    let value = num_bigint::BigUint::from(d) * num_bigint::BigUint::from(10u32).pow(power);
    [bits * 2 - 1, bits * 2 + 1].iter().any(|m| value == num_bigint::BigUint::from(*m) << half)
}

fn special(v: f64, out: &mut String) -> bool {
    match v {
        v if v.is_nan() => out.push_str("NaN"),
        f64::INFINITY => out.push_str("Infinity"),
        f64::NEG_INFINITY => out.push_str("-Infinity"),
        _ => return false,
    }
    true
}

/// Lays out `d.ddde±x`: fixed for exponents from -4 up to `fixed_below`, else scientific with two digits of exponent.
fn shortest(scientific: &str, fixed_below: i32, out: &mut String) {
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let (sign, mantissa) = mantissa.strip_prefix('-').map_or(("", mantissa), |m| ("-", m));
    out.push_str(sign);
    if !(-4..fixed_below).contains(&exponent) {
        let _ = write!(out, "{mantissa}e{}{:02}", if exponent < 0 { '-' } else { '+' }, exponent.abs());
        return;
    }
    let digits: String = mantissa.chars().filter(char::is_ascii_digit).collect();
    if exponent < 0 {
        out.push_str("0.");
        out.extend(std::iter::repeat_n('0', (-exponent - 1) as usize));
        out.push_str(&digits);
        return;
    }
    let whole = exponent as usize + 1;
    if digits.len() <= whole {
        out.push_str(&digits);
        out.extend(std::iter::repeat_n('0', whole - digits.len()));
    } else {
        let _ = write!(out, "{}.{}", &digits[..whole], &digits[whole..]);
    }
}

/// C's `%.*g`.
fn general(v: f64, digits: usize, out: &mut String) {
    let text = format!("{v:.*e}", digits - 1);
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let mantissa = if mantissa.contains('.') { mantissa.trim_end_matches('0').trim_end_matches('.') } else { mantissa };
    shortest(&format!("{mantissa}e{exponent}"), digits as i32, out);
}

pub fn print_uuid(u: &[u8; 16], out: &mut String) {
    for (i, b) in u.iter().enumerate() {
        if matches!(i, 4 | 6 | 8 | 10) {
            out.push('-');
        }
        let _ = write!(out, "{b:02x}");
    }
}

pub(super) fn parse_uuid(text: &str) -> Result<[u8; 16], SqlError> {
    let bad = || invalid("uuid", text);
    let body = match text.strip_prefix('{') {
        Some(b) => b.strip_suffix('}').ok_or_else(bad)?,
        None => text,
    };
    let mut out = [0u8; 16];
    let mut s = body.as_bytes();
    for (i, byte) in out.iter_mut().enumerate() {
        let pair = s.get(..2).filter(|p| p.iter().all(u8::is_ascii_hexdigit)).ok_or_else(bad)?;
        *byte = std::str::from_utf8(pair).ok().and_then(|p| u8::from_str_radix(p, 16).ok()).ok_or_else(bad)?;
        s = &s[2..];
        // A hyphen may stand behind every fourth digit.
        if i % 2 == 1 && i < 15 && s.first() == Some(&b'-') {
            s = &s[1..];
        }
    }
    match s.is_empty() {
        true => Ok(out),
        false => Err(bad()),
    }
}

pub fn print_bytea(b: &[u8], escape: bool, out: &mut String) {
    if !escape {
        out.push_str("\\x");
        out.push_str(&hex::encode(b));
        return;
    }
    for c in b {
        match c {
            b'\\' => out.push_str("\\\\"),
            0x20..=0x7e => out.push(*c as char),
            c => {
                let _ = write!(out, "\\{c:03o}");
            }
        }
    }
}

pub fn parse_bytea(text: &str) -> Result<Vec<u8>, SqlError> {
    if let Some(hex) = text.strip_prefix("\\x") {
        let bad_digit = |c: char| SqlError::new(state::INVALID_PARAMETER_VALUE, format!("invalid hexadecimal digit: \"{c}\""));
        let odd = || SqlError::new(state::INVALID_PARAMETER_VALUE, "invalid hexadecimal data: odd number of digits");
        let mut out = Vec::with_capacity(hex.len() / 2);
        let mut chars = hex.chars();
        while let Some(c) = chars.next() {
            // Blanks may stand between pairs.
            if matches!(c, ' ' | '\n' | '\t' | '\r') {
                continue;
            }
            let hi = c.to_digit(16).ok_or_else(|| bad_digit(c))?;
            let c = chars.next().ok_or_else(odd)?;
            let lo = c.to_digit(16).ok_or_else(|| bad_digit(c))?;
            out.push((hi << 4 | lo) as u8);
        }
        return Ok(out);
    }
    let s = text.as_bytes();
    let mut out = Vec::with_capacity(s.len());
    let mut i = 0;
    while i < s.len() {
        if s[i] != b'\\' {
            out.push(s[i]);
            i += 1;
            continue;
        }
        match s.get(i + 1..) {
            Some([b'\\', ..]) => {
                out.push(b'\\');
                i += 2;
            }
            Some([a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', ..]) => {
                out.push((a - b'0') << 6 | (b - b'0') << 3 | (c - b'0'));
                i += 4;
            }
            _ => return Err(SqlError::new(state::INVALID_TEXT_REPRESENTATION, "invalid input syntax for type bytea")),
        }
    }
    Ok(out)
}

pub fn print_inet(i: &InetValue, cidr: bool, out: &mut String) {
    let full = if i.addr.is_ipv4() { 32 } else { 128 };
    match i.addr {
        // Addresses that hold an IPv4 one show it.
        IpAddr::V6(a) if a.segments()[..6] == [0; 6] && a.segments()[6] != 0 => {
            let _ = write!(out, "::{}", Ipv4Addr::from(u128::from(a) as u32));
        }
        a => put(&a, out),
    }
    if cidr || i.bits != full {
        let _ = write!(out, "/{}", i.bits);
    }
}

/// An address with an optional prefix length; for `cidr` IPv4 octets may be left out and no bits may stand behind the prefix.
pub fn parse_inet(text: &str, cidr: bool) -> Result<InetValue, SqlError> {
    let ty = if cidr { "cidr" } else { "inet" };
    let bad = || invalid(ty, text);
    let (addr, prefix) = match text.split_once('/') {
        Some((a, p)) => (a, Some(p)),
        None => (text, None),
    };
    let prefix: Option<u8> = match prefix {
        Some(p) if p.is_empty() || p.len() > 3 || !p.bytes().all(|b| b.is_ascii_digit()) => return Err(bad()),
        Some(p) => Some(p.parse().map_err(|_| bad())?),
        None => None,
    };
    let (addr, mut bits) = if addr.contains(':') {
        (IpAddr::V6(addr.parse().map_err(|_| bad())?), 128)
    } else {
        let parts: Vec<&str> = addr.split('.').collect();
        let short = parts.len() < 4;
        if parts.len() > 4 || (short && !cidr && prefix.is_none()) {
            return Err(bad());
        }
        let mut octets = [0u8; 4];
        for (o, p) in octets.iter_mut().zip(&parts) {
            if p.is_empty() || p.len() > 3 || !p.bytes().all(|b| b.is_ascii_digit()) {
                return Err(bad());
            }
            *o = p.parse().map_err(|_| bad())?;
        }
        // Without a prefix the class of a network or the octets given decide.
        let class = match octets[0] {
            0..=127 => 8,
            128..=191 => 16,
            192..=223 => 24,
            224..=239 if parts.len() == 1 => 4,
            224..=239 => 8,
            _ => 32,
        };
        let bits = match short {
            true if class == 4 => 4,
            true => (parts.len() as u8 * 8).max(class),
            false => 32,
        };
        (IpAddr::V4(Ipv4Addr::from(octets)), bits)
    };
    let full = if addr.is_ipv4() { 32 } else { 128 };
    if let Some(p) = prefix {
        if p > full {
            return Err(bad());
        }
        bits = p;
    }
    if cidr && host_bits(&addr, bits) {
        return Err(
            SqlError::new(state::INVALID_TEXT_REPRESENTATION, format!("invalid cidr value: \"{text}\"")).with_detail("Value has bits set to right of mask.")
        );
    }
    Ok(InetValue { addr, bits })
}

fn host_bits(addr: &IpAddr, bits: u8) -> bool {
    match addr {
        IpAddr::V4(a) => u32::from(*a).checked_shl(bits.into()).unwrap_or(0) != 0,
        IpAddr::V6(a) => u128::from(*a).checked_shl(bits.into()).unwrap_or(0) != 0,
    }
}

/// A catalog object without a catalog: types by their built-in names, others by number.
pub(super) fn print_reg(kind: RegKind, oid: u32, out: &mut String) {
    match (kind, SqlType::from_oid(oid)) {
        (_, _) if oid == 0 => out.push('-'),
        (RegKind::Type, Some(t)) => out.push_str(&t.sql_name()),
        _ => put(&oid, out),
    }
}

pub(super) fn parse_reg(kind: RegKind, text: &str, style: &TextStyle) -> Result<u32, SqlError> {
    if text == "-" {
        return Ok(0);
    }
    if !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()) {
        return parse_oid(text, "oid");
    }
    if let Some(names) = &style.reg_names {
        return names.reg_oid(kind, text);
    }
    match (kind, builtin_type(text.trim())) {
        (RegKind::Type, Some(t)) => Ok(t.oid()),
        (RegKind::Type, None) => Err(SqlError::new(state::UNDEFINED_OBJECT, format!("type \"{text}\" does not exist"))),
        _ => Err(SqlError::new(state::UNDEFINED_TABLE, format!("relation \"{text}\" does not exist"))),
    }
}

/// A built-in type by its catalog or SQL name, arrays included.
fn builtin_type(name: &str) -> Option<SqlType> {
    if let Some(elem) = name.strip_suffix("[]") {
        return builtin_type(elem.trim_end()).map(SqlType::array_of);
    }
    let lower = name.to_ascii_lowercase();
    let alias = match lower.as_str() {
        "int" | "integer" => "int4",
        "smallint" => "int2",
        "bigint" => "int8",
        "real" => "float4",
        "double precision" | "float" => "float8",
        "boolean" => "bool",
        "decimal" => "numeric",
        "character varying" => "varchar",
        "character" | "char" => "bpchar",
        "timestamp without time zone" => "timestamp",
        "timestamp with time zone" => "timestamptz",
        "time without time zone" => "time",
        "time with time zone" => "timetz",
        other => other,
    };
    SqlType::from_pg_name(alias)
}
