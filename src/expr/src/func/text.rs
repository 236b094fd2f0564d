//! Text functions: lengths, parts, padding, case, search, quoting, concatenation.
//!
//! Positions count characters, from 1. Case mapping is one character to one, as in PostgreSQL's C.UTF-8.
//! Not here: LIKE (`like`), regular expressions (`regex`), bytea (`bytes`), `to_char` and its like (`formatting`).

use super::bytes::digest;
use super::cast::text_out;
use super::lift::{Call, Str};
use super::Entry;
use crate::{f1, f2, f3, val, vals};
use md5::Md5;
use repr::error::state;
use repr::interrupt::Pace;
use repr::{SqlError, Value};

/// Bytes that a text value may have: Postgres's limit on one allocation.
const BYTES_MAX: usize = (1 << 30) - 1;

fn too_long() -> SqlError {
    SqlError::new(state::PROGRAM_LIMIT_EXCEEDED, "requested length too large")
}

fn len(s: &str) -> i32 {
    if s.is_ascii() {
        s.len() as i32
    } else {
        s.chars().count() as i32
    }
}

/// Byte offset of character `n` (from 0), or the end.
fn offset(s: &str, n: usize) -> usize {
    if s.is_ascii() {
        return n.min(s.len());
    }
    s.char_indices().nth(n).map_or(s.len(), |(i, _)| i)
}

fn negative_length() -> SqlError {
    SqlError::new(state::SUBSTRING_ERROR, "negative substring length not allowed")
}

/// Characters `[start, start + count)`, positions from 1.
pub fn substr(s: &str, start: i32, count: Option<i32>) -> Result<&str, SqlError> {
    let end = match count {
        Some(n) if n < 0 => return Err(negative_length()),
        Some(n) => start.checked_add(n),
        None => None,
    };
    let from = offset(s, start.saturating_sub(1).max(0) as usize);
    let to = match end {
        Some(e) if e <= 1 => return Ok(""),
        Some(e) => offset(s, (e - 1) as usize),
        None => s.len(),
    };
    Ok(if from < to { &s[from..to] } else { "" })
}

fn overlay(s: &str, new: &str, start: i32, count: i32) -> Result<String, SqlError> {
    if start <= 0 {
        return Err(negative_length());
    }
    let end = start.checked_add(count).ok_or_else(|| super::arith::out_of_range("integer"))?;
    Ok(format!("{}{new}{}", substr(s, 1, Some(start - 1))?, substr(s, end, None)?))
}

/// Position of `needle`, from 1; 0 if absent.
pub fn position(s: &str, needle: &str) -> i32 {
    s.find(needle).map_or(0, |i| len(&s[..i]) + 1)
}

fn pad(s: &str, width: i32, fill: &str, left: bool) -> Result<String, SqlError> {
    let width = width.max(0) as usize;
    if width.saturating_mul(4) > BYTES_MAX {
        return Err(too_long());
    }
    let have = len(s) as usize;
    if have >= width || fill.is_empty() {
        return Ok(s[..offset(s, width)].to_owned());
    }
    let filler: String = fill.chars().cycle().take(width - have).collect();
    Ok(if left { filler + s } else { s.to_owned() + &filler })
}

fn trim_set(set: &str) -> impl Fn(char) -> bool + '_ {
    let pace = Pace::default();
    move |c| set.contains(c) && !pace.stop(set.len())
}

fn repeat(s: &str, n: i32) -> Result<String, SqlError> {
    let n = n.max(0) as usize;
    if s.len().saturating_mul(n) > BYTES_MAX {
        return Err(too_long());
    }
    Ok(s.repeat(n))
}

fn replace(s: &str, from: &str, to: &str) -> String {
    if from.is_empty() {
        return s.to_owned();
    }
    let (mut out, mut done, pace) = (String::with_capacity(s.len()), 0, Pace::default());
    for (at, _) in s.match_indices(from) {
        // What has no room is refused by whoever keeps it.
        if pace.stop(16 + at - done) || !repr::column::fits(out.len()) {
            break;
        }
        out.push_str(&s[done..at]);
        out.push_str(to);
        done = at + from.len();
    }
    out.push_str(&s[done..]);
    out
}

fn translate(s: &str, from: &str, to: &str) -> String {
    let mut to = to.chars();
    let mut becomes: Vec<(char, Option<char>)> = from.chars().map(|c| (c, to.next())).collect();
    // Of a character that is named twice, the first counts.
    becomes.sort_by_key(|b| b.0);
    becomes.dedup_by_key(|b| b.0);
    let pace = Pace::default();
    let one = |c: char| becomes.binary_search_by_key(&c, |b| b.0).map_or(Some(c), |i| becomes[i].1);
    s.chars().take_while(|_| !pace.stop(8)).filter_map(one).collect()
}

fn split_part(s: &str, sep: &str, n: i32) -> Result<String, SqlError> {
    if n == 0 {
        return Err(SqlError::new(state::INVALID_PARAMETER_VALUE, "field position must not be zero"));
    }
    if sep.is_empty() {
        return Ok(if n == 1 || n == -1 { s.to_owned() } else { String::new() });
    }
    let part = if n > 0 {
        s.split(sep).nth(n as usize - 1)
    } else {
        // From the end; the separators are still found from the left.
        let parts: Vec<&str> = s.split(sep).collect();
        parts.len().checked_sub(n.unsigned_abs() as usize).map(|i| parts[i])
    };
    Ok(part.unwrap_or("").to_owned())
}

fn upper_char(c: char) -> char {
    let mut u = c.to_uppercase();
    match (u.next(), u.next()) {
        (Some(u), None) => u,
        // Greek with iota subscript has a title form of one character; others stay.
        _ => match c {
            '\u{1f80}'..='\u{1f87}' | '\u{1f90}'..='\u{1f97}' | '\u{1fa0}'..='\u{1fa7}' => char::from_u32(c as u32 + 8).unwrap_or(c),
            '\u{1fb3}' | '\u{1fc3}' | '\u{1ff3}' => char::from_u32(c as u32 + 9).unwrap_or(c),
            _ => c,
        },
    }
}

fn lower_char(c: char) -> char {
    c.to_lowercase().next().unwrap_or(c)
}

pub fn upper(s: &str) -> String {
    if s.is_ascii() {
        return s.to_ascii_uppercase();
    }
    let pace = Pace::default();
    s.chars().take_while(|_| !pace.stop(8)).map(upper_char).collect()
}

pub fn lower(s: &str) -> String {
    if s.is_ascii() {
        return s.to_ascii_lowercase();
    }
    let pace = Pace::default();
    s.chars().take_while(|_| !pace.stop(8)).map(lower_char).collect()
}

fn initcap(s: &str) -> String {
    let mut inside = false;
    let pace = Pace::default();
    s.chars()
        .take_while(|_| !pace.stop(8))
        .map(|c| {
            let out = if inside { lower_char(c) } else { upper_char(c) };
            inside = c.is_alphanumeric();
            out
        })
        .collect()
}

fn chr(n: i32) -> Result<String, SqlError> {
    let limit = |m: String| Err(SqlError::new(state::PROGRAM_LIMIT_EXCEEDED, m));
    match n {
        n if n < 0 => Err(SqlError::new(state::INVALID_PARAMETER_VALUE, "character number must be positive")),
        0 => limit("null character not permitted".into()),
        n if n > 0x10ffff => limit(format!("requested character too large for encoding: {n}")),
        n => match char::from_u32(n as u32) {
            Some(c) => Ok(c.to_string()),
            None => limit(format!("requested character not valid for encoding: {n}")),
        },
    }
}

/// Keywords that are not "unreserved": identifiers of these names are quoted.
#[rustfmt::skip]
const KEYWORDS: &[&str] = &[
    "all", "analyse", "analyze", "and", "any", "array", "as", "asc", "asymmetric", "authorization", "between", "bigint", "binary", "bit", "boolean",
    "both", "case", "cast", "char", "character", "check", "coalesce", "collate", "collation", "column", "concurrently", "constraint", "create", "cross",
    "current_catalog", "current_date", "current_role", "current_schema", "current_time", "current_timestamp", "current_user", "dec", "decimal",
    "default", "deferrable", "desc", "distinct", "do", "else", "end", "except", "exists", "extract", "false", "fetch", "float", "for", "foreign",
    "freeze", "from", "full", "grant", "greatest", "group", "grouping", "having", "ilike", "in", "initially", "inner", "inout", "int", "integer",
    "intersect", "interval", "into", "is", "isnull", "join", "lateral", "leading", "least", "left", "like", "limit", "localtime", "localtimestamp",
    "national", "natural", "nchar", "none", "normalize", "not", "notnull", "null", "nullif", "numeric", "offset", "on", "only", "or", "order", "out",
    "outer", "overlaps", "overlay", "placing", "position", "precision", "primary", "real", "references", "returning", "right", "row", "select",
    "session_user", "setof", "similar", "smallint", "some", "substring", "symmetric", "table", "tablesample", "then", "time", "timestamp", "to",
    "trailing", "treat", "trim", "true", "union", "unique", "user", "using", "values", "varchar", "variadic", "verbose", "when", "where", "window",
    "with", "xmlattributes", "xmlconcat", "xmlelement", "xmlexists", "xmlforest", "xmlnamespaces", "xmlparse", "xmlpi", "xmlroot", "xmlserialize",
    "xmltable",
];

/// An identifier as it must be written in SQL.
pub fn quote_ident(s: &str) -> String {
    let plain = s.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
        && s.bytes().next().is_some_and(|b| !b.is_ascii_digit())
        && KEYWORDS.binary_search(&s).is_err();
    if plain {
        s.to_owned()
    } else {
        format!("\"{}\"", s.replace('"', "\"\""))
    }
}

/// A string literal.
pub fn quote_literal(s: &str) -> String {
    let quoted = s.replace('\'', "''");
    if s.contains('\\') {
        format!("E'{}'", quoted.replace('\\', "\\\\"))
    } else {
        format!("'{quoted}'")
    }
}

fn concat(args: &[Value], call: &Call<'_>, first: usize, sep: &str) -> Value {
    let mut out = String::new();
    let mut any = false;
    for (v, t) in args.iter().zip(call.arg_types).skip(first).filter(|(v, _)| !v.is_null()) {
        if any {
            out.push_str(sep);
        }
        any = true;
        out.push_str(&text_out(v, &t.ty, call.ctx));
    }
    Value::Text(out)
}

/// A value cast to text, which for a few types is not its output form.
fn as_text(v: &Value, ty: &repr::SqlType, ctx: &crate::EvalCtx) -> String {
    match (v, ty) {
        (Value::Bool(b), _) => b.to_string(),
        (Value::Text(s), repr::SqlType::Bpchar) => s.trim_end_matches(' ').to_owned(),
        (Value::Inet(i), _) => super::inet::show(*i),
        _ => text_out(v, ty, ctx),
    }
}

fn normalize(s: &str, form: &str) -> Result<String, SqlError> {
    use unicode_normalization::UnicodeNormalization;
    let pace = Pace::default();
    let s = || s.chars().take_while(|_| !pace.stop(16));
    Ok(match form.to_ascii_uppercase().as_str() {
        "NFC" => s().nfc().collect(),
        "NFD" => s().nfd().collect(),
        "NFKC" => s().nfkc().collect(),
        "NFKD" => s().nfkd().collect(),
        _ => return Err(SqlError::new(state::INVALID_PARAMETER_VALUE, format!("invalid normalization form: {form}"))),
    })
}

fn bad_format(m: impl Into<String>) -> SqlError {
    SqlError::new(state::INVALID_PARAMETER_VALUE, m)
}

/// `format(fmt, ...)`: `%[position$][-][width]type` with type s, I, L.
fn format_text(args: &[Value], call: &Call<'_>) -> Result<Value, SqlError> {
    let Value::Text(fmt) = &args[0] else { return Ok(Value::Null) };
    let unterminated = || bad_format("unterminated format() type specifier").with_hint("For a single \"%\" use \"%%\".");
    let mut out = String::new();
    let mut next = 1usize;
    let mut it = fmt.chars().peekable();
    let arg_at = |i: usize| -> Result<(&Value, &repr::SqlType), SqlError> {
        if i >= args.len() {
            return Err(bad_format("too few arguments for format()"));
        }
        Ok((&args[i], &call.arg_types[i].ty))
    };
    let number = |it: &mut std::iter::Peekable<std::str::Chars<'_>>| -> Result<Option<i64>, SqlError> {
        let mut n: Option<i64> = None;
        while let Some(d) = it.peek().and_then(|c| c.to_digit(10)) {
            it.next();
            n = Some(n.unwrap_or(0) * 10 + i64::from(d));
            if n > Some(i64::from(i32::MAX)) {
                return Err(SqlError::new(state::NUMERIC_VALUE_OUT_OF_RANGE, "number is out of range"));
            }
        }
        Ok(n)
    };
    while let Some(c) = it.next() {
        if c != '%' {
            out.push(c);
            continue;
        }
        if it.next_if_eq(&'%').is_some() {
            out.push('%');
            continue;
        }
        let (mut position, mut width, mut left) = (None, 0i64, false);
        let first = number(&mut it)?;
        if first.is_some() && it.next_if_eq(&'$').is_some() {
            if first == Some(0) {
                return Err(bad_format("format specifies argument 0, but arguments are numbered from 1"));
            }
            position = first;
        } else if let Some(w) = first {
            width = w;
        }
        if first.is_none() || position.is_some() {
            while it.next_if_eq(&'-').is_some() {
                left = true;
            }
            if it.next_if_eq(&'*').is_some() {
                let which = match number(&mut it)? {
                    Some(n) => {
                        if it.next_if_eq(&'$').is_none() {
                            return Err(bad_format("width argument position must be ended by \"$\""));
                        }
                        if n == 0 {
                            return Err(bad_format("format specifies argument 0, but arguments are numbered from 1"));
                        }
                        n as usize
                    }
                    None => next,
                };
                // The value is the argument behind the width's, if it has no position of its own.
                next = which + 1;
                let (v, t) = arg_at(which)?;
                width = match v {
                    Value::Null => 0,
                    v => match v.as_i64() {
                        Some(n) => n,
                        None => i64::from(repr::text::parse_int::<i32>(&text_out(v, t, call.ctx), "integer")?),
                    },
                };
                if width < 0 {
                    left = true;
                    width = -width;
                }
            } else if let Some(w) = number(&mut it)? {
                width = w;
            }
        }
        let kind = it.next().ok_or_else(unterminated)?;
        if !matches!(kind, 's' | 'I' | 'L') {
            return Err(bad_format(format!("unrecognized format() type specifier \"{kind}\"")).with_hint("For a single \"%\" use \"%%\"."));
        }
        let which = match position {
            Some(p) => p as usize,
            None => next,
        };
        next = which + 1;
        let (v, t) = arg_at(which)?;
        let text = match (kind, v) {
            ('s', Value::Null) => String::new(),
            ('L', Value::Null) => "NULL".into(),
            (_, Value::Null) => return Err(SqlError::new(state::NULL_VALUE_NOT_ALLOWED, "null values cannot be formatted as an SQL identifier")),
            ('s', v) => text_out(v, t, call.ctx),
            ('I', v) => quote_ident(&text_out(v, t, call.ctx)),
            (_, v) => quote_literal(&text_out(v, t, call.ctx)),
        };
        let fill = (width as usize).saturating_sub(len(&text) as usize);
        if fill > BYTES_MAX {
            return Err(too_long());
        }
        if left {
            out.push_str(&text);
            out.extend(std::iter::repeat_n(' ', fill));
        } else {
            out.extend(std::iter::repeat_n(' ', fill));
            out.push_str(&text);
        }
    }
    Ok(Value::Text(out))
}

fn string_to_array(args: &[Value], _: &Call<'_>) -> Result<Value, SqlError> {
    let Value::Text(s) = &args[0] else { return Ok(Value::Null) };
    let null = args.get(2).and_then(Value::as_str);
    if s.is_empty() {
        return Ok(Value::array(Vec::new()));
    }
    Ok(Value::array(split_text(s, args[1].as_str(), null)))
}

/// The parts of `s`: by characters without a delimiter, whole with an empty one; parts equal to `null` are NULL.
pub fn split_text(s: &str, delimiter: Option<&str>, null: Option<&str>) -> Vec<Value> {
    let value = |p: &str| if Some(p) == null { Value::Null } else { Value::text(p) };
    let pace = Pace::default();
    match delimiter {
        None => s.chars().take_while(|_| !pace.stop(64)).map(|c| value(c.encode_utf8(&mut [0; 4]))).collect(),
        Some("") => vec![value(s)],
        Some(d) => s.split(d).take_while(|p| !pace.stop(64 + p.len())).map(value).collect(),
    }
}

fn unistr(s: &str) -> Result<String, SqlError> {
    let bad = || SqlError::new(state::SYNTAX_ERROR, "invalid Unicode escape").with_hint("Unicode escapes must be \\XXXX, \\+XXXXXX, \\uXXXX, or \\UXXXXXXXX.");
    let mut out = String::new();
    let mut rest = s;
    let mut high: Option<u32> = None;
    while let Some(c) = rest.chars().next() {
        if c != '\\' {
            if high.is_some() {
                return Err(SqlError::new(state::SYNTAX_ERROR, "invalid Unicode surrogate pair"));
            }
            out.push(c);
            rest = &rest[c.len_utf8()..];
            continue;
        }
        if rest[1..].starts_with('\\') {
            out.push('\\');
            rest = &rest[2..];
            continue;
        }
        let (skip, digits) = match rest[1..].chars().next() {
            Some('+') => (2, 6),
            Some('u') => (2, 4),
            Some('U') => (2, 8),
            _ => (1, 4),
        };
        let hex = rest.get(skip..skip + digits).ok_or_else(bad)?;
        let code = u32::from_str_radix(hex, 16).map_err(|_| bad())?;
        rest = &rest[skip + digits..];
        match (high.take(), code) {
            (None, 0xd800..=0xdbff) => high = Some(code),
            (Some(h), 0xdc00..=0xdfff) => out.extend(char::from_u32(0x10000 + ((h - 0xd800) << 10) + (code - 0xdc00))),
            (None, code) => out.push(
                char::from_u32(code)
                    .filter(|c| *c != '\0')
                    .ok_or_else(|| SqlError::new(state::INVALID_PARAMETER_VALUE, format!("invalid Unicode code point: {code:04X}")))?,
            ),
            _ => return Err(SqlError::new(state::SYNTAX_ERROR, "invalid Unicode surrogate pair")),
        }
    }
    if high.is_some() {
        return Err(SqlError::new(state::SYNTAX_ERROR, "invalid Unicode surrogate pair"));
    }
    Ok(out)
}

/// The parts of a qualified name: unquoted ones folded to lower case.
pub fn parse_ident(s: &str, strict: bool) -> Result<Vec<String>, SqlError> {
    let invalid = |detail: Option<String>| {
        let e = SqlError::new(state::INVALID_PARAMETER_VALUE, format!("string is not a valid identifier: \"{s}\""));
        match detail {
            Some(d) => e.with_detail(d),
            None => e,
        }
    };
    let mut parts = Vec::new();
    let mut rest = s.trim_start();
    let mut after_dot = false;
    loop {
        if let Some(quoted) = rest.strip_prefix('"') {
            let mut part = String::new();
            let mut tail = quoted;
            loop {
                let i = tail.find('"').ok_or_else(|| invalid(Some("String has unclosed double quotes.".into())))?;
                part.push_str(&tail[..i]);
                tail = &tail[i + 1..];
                match tail.strip_prefix('"') {
                    Some(t) => {
                        part.push('"');
                        tail = t;
                    }
                    None => break,
                }
            }
            if part.is_empty() {
                return Err(invalid(Some("Quoted identifier must not be empty.".into())));
            }
            parts.push(part);
            rest = tail;
        } else {
            let starts = |c: char| c.is_ascii_alphabetic() || c == '_' || !c.is_ascii();
            let continues = |c: char| starts(c) || c.is_ascii_digit() || c == '$';
            if !rest.starts_with(starts) {
                return Err(match (rest.starts_with('.'), after_dot) {
                    (true, _) => invalid(Some("No valid identifier before \".\".".into())),
                    (_, true) => invalid(Some("No valid identifier after \".\".".into())),
                    _ => invalid(None),
                });
            }
            let end = rest.find(|c| !continues(c)).unwrap_or(rest.len());
            parts.push(rest[..end].to_ascii_lowercase());
            rest = &rest[end..];
        }
        rest = rest.trim_start();
        match rest.strip_prefix('.') {
            Some(t) => {
                after_dot = true;
                rest = t.trim_start();
            }
            None if rest.is_empty() || !strict => return Ok(parts),
            None => return Err(invalid(None)),
        }
    }
}

fn md5(bytes: &[u8]) -> String {
    hex::encode(digest::<Md5>(bytes))
}

fn left_right(s: &str, n: i32, left: bool) -> String {
    let total = i64::from(len(s));
    // Negating the least integer overflows in Postgres and keeps all on the right.
    if n == i32::MIN && !left {
        return s.to_owned();
    }
    let n = i64::from(n);
    let keep = if n < 0 { (total + n).max(0) } else { n.min(total) };
    if left {
        s[..offset(s, keep as usize)].to_owned()
    } else {
        s[offset(s, (total - keep) as usize)..].to_owned()
    }
}

pub const FUNCS: &[Entry] = &[
    f1!(["textlen"], Str => i32, len),
    f1!(["bpcharlen"], Str => i32, |s| len(s.trim_end_matches(' '))),
    f1!(["textoctetlen", "bpcharoctetlen"], Str => i32, |s| s.len() as i32),
    f1!(["1811"], Str => i32, |s| (s.len() * 8) as i32),
    f1!(["1810"], super::lift::Bytes => i32, |b| (b.len() * 8) as i32),
    f3!(? ["text_substr"], Str, i32, i32 => String, |s, a, n| substr(s, a, Some(n)).map(str::to_owned)),
    f2!(["text_substr_no_len"], Str, i32 => String, |s, a| substr(s, a, None).unwrap_or("").to_owned()),
    f2!(["textpos"], Str, Str => i32, position),
    val!(? ["textoverlay"], |a, _| match a {
        [Value::Text(s), Value::Text(new), Value::Int4(at), Value::Int4(n)] => overlay(s, new, *at, *n).map(Value::Text),
        _ => Ok(Value::Null),
    }),
    f3!(? ["textoverlay_no_len"], Str, Str, i32 => String, |s, new, at| overlay(s, new, at, len(new))),
    f2!(["btrim"], Str, Str => String, |s, set| s.trim_matches(trim_set(set)).to_owned()),
    f2!(["ltrim"], Str, Str => String, |s, set| s.trim_start_matches(trim_set(set)).to_owned()),
    f2!(["rtrim"], Str, Str => String, |s, set| s.trim_end_matches(trim_set(set)).to_owned()),
    f1!(["btrim1"], Str => String, |s| s.trim_matches(' ').to_owned()),
    f1!(["ltrim1"], Str => String, |s| s.trim_start_matches(' ').to_owned()),
    f1!(["rtrim1"], Str => String, |s| s.trim_end_matches(' ').to_owned()),
    f3!(? ["lpad"], Str, i32, Str => String, |s, n, fill| pad(s, n, fill, true)),
    f3!(? ["rpad"], Str, i32, Str => String, |s, n, fill| pad(s, n, fill, false)),
    f2!(? ["879"], Str, i32 => String, |s, n| pad(s, n, " ", true)),
    f2!(? ["880"], Str, i32 => String, |s, n| pad(s, n, " ", false)),
    f3!(["replace_text"], Str, Str, Str => String, replace),
    f3!(["translate"], Str, Str, Str => String, translate),
    f3!(? ["split_part"], Str, Str, i32 => String, split_part),
    f2!(? ["repeat"], Str, i32 => String, repeat),
    f1!(["text_reverse"], Str => String, |s| {
        let pace = Pace::default();
        s.chars().rev().take_while(|_| !pace.stop(8)).collect()
    }),
    f1!(["upper"], Str => String, upper),
    f1!(["lower"], Str => String, lower),
    f1!(["initcap"], Str => String, initcap),
    f1!(["ascii"], Str => i32, |s| s.chars().next().map_or(0, |c| c as i32)),
    f1!(? ["chr"], i32 => String, chr),
    f2!(["text_left"], Str, i32 => String, |s, n| left_right(s, n, true)),
    f2!(["text_right"], Str, i32 => String, |s, n| left_right(s, n, false)),
    f2!(["text_starts_with"], Str, Str => bool, |s, p| s.starts_with(p)),
    f1!(["to_hex32"], i32 => String, |n| format!("{n:x}")),
    f1!(["to_hex64"], i64 => String, |n| format!("{n:x}")),
    f1!(["md5_text"], Str => String, |s| md5(s.as_bytes())),
    f1!(["md5_bytea"], super::lift::Bytes => String, md5),
    f1!(["quote_ident"], Str => String, quote_ident),
    f1!(["quote_literal"], Str => String, quote_literal),
    val!(["1285"], |a, call| Ok(Value::Text(quote_literal(&as_text(&a[0], &call.arg_types[0].ty, call.ctx))))),
    vals!(["quote_nullable"], |a, _| Ok(Value::Text(a[0].as_str().map_or_else(|| "NULL".into(), quote_literal)))),
    vals!(["1290"], |a, call| {
        Ok(Value::Text(if a[0].is_null() { "NULL".into() } else { quote_literal(&text_out(&a[0], &call.arg_types[0].ty, call.ctx)) }))
    }),
    f2!(["textcat"], Str, Str => String, |a, b| [a, b].concat()),
    val!(["2003", "2004"], |a, call| { Ok(Value::Text(as_text(&a[0], &call.arg_types[0].ty, call.ctx) + &as_text(&a[1], &call.arg_types[1].ty, call.ctx))) }),
    f2!(? ["unicode_normalize_func"], Str, Str => String, normalize),
    f2!(? ["unicode_is_normalized"], Str, Str => bool, |s, form| normalize(s, form).map(|n| n == s)),
    vals!(["pg_num_nulls"], |a, _| Ok(Value::Int4(a.iter().filter(|v| v.is_null()).count() as i32))),
    vals!(["pg_num_nonnulls"], |a, _| Ok(Value::Int4(a.iter().filter(|v| !v.is_null()).count() as i32))),
    vals!(["text_concat"], |a, call| Ok(concat(a, call, 0, ""))),
    vals!(["text_concat_ws"], |a, call| Ok(match &a[0] {
        Value::Text(sep) => concat(a, call, 1, sep),
        _ => Value::Null,
    })),
    vals!(? ["text_format", "text_format_nv"], format_text),
    vals!(["text_to_array", "text_to_array_null"], string_to_array),
    f1!(? ["unistr"], Str => String, unistr),
    f2!(? ["parse_ident"], Str, bool => Value, |s, strict| parse_ident(s, strict).map(|p| Value::array(p.into_iter().map(Value::Text).collect()))),
];
