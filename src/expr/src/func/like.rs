//! LIKE, ILIKE, and the patterns of SIMILAR TO.
//!
//! `%` is any text, `_` one character, `\` takes the next character literally (ESCAPE is rewritten to that first).

use super::lift::{Bytes, Str};
use super::text::lower;
use super::Entry;
use crate::{f1, f2, vals};
use repr::error::state;
use repr::interrupt::Pace;
use repr::{SqlError, Value};

fn ends_with_escape() -> SqlError {
    SqlError::new(state::INVALID_ESCAPE_SEQUENCE, "LIKE pattern must not end with escape character")
}

/// Whether a pattern is well-formed: no lone `\` at its end.
pub fn is_valid(pattern: &str) -> bool {
    pattern.bytes().rev().take_while(|b| *b == b'\\').count() % 2 == 0
}

/// Bytes of the character that starts at `i`.
fn char_len(s: &[u8], i: usize, utf8: bool) -> usize {
    match s[i] {
        _ if !utf8 => 1,
        b if b < 0xc0 => 1,
        b if b < 0xe0 => 2,
        b if b < 0xf0 => 3,
        _ => 4,
    }
}

/// Matches in time O(text * pattern): only the last `%` is ever taken back.
pub fn matches(s: &[u8], p: &[u8], utf8: bool) -> Result<bool, SqlError> {
    let (mut i, mut j) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    let pace = Pace::default();
    while i < s.len() {
        let step = match p.get(j) {
            Some(b'%') => {
                star = Some((i, j + 1));
                j += 1;
                continue;
            }
            Some(b'_') => Some((char_len(s, i, utf8), 1)),
            Some(b'\\') => match p.get(j + 1) {
                None => return Err(ends_with_escape()),
                Some(c) => (*c == s[i]).then_some((1, 2)),
            },
            Some(c) => (*c == s[i]).then_some((1, 1)),
            None => None,
        };
        match (step, star) {
            (Some((di, dj)), _) => {
                i += di;
                j += dj;
            }
            (None, Some((from, after))) => {
                if pace.stop(i - from + 1) {
                    return Ok(false);
                }
                i = from + char_len(s, from, utf8);
                j = after;
                star = Some((i, after));
            }
            (None, None) => return Ok(false),
        }
    }
    while p.get(j) == Some(&b'%') {
        j += 1;
    }
    Ok(j == p.len())
}

fn like(s: &str, p: &str) -> Result<bool, SqlError> {
    matches(s.as_bytes(), p.as_bytes(), true)
}

fn ilike(s: &str, p: &str) -> Result<bool, SqlError> {
    like(&lower(s), &lower(p))
}

/// A pattern with another escape character, rewritten to use `\`. `width`: the bytes of the character at an index.
fn like_escape(p: &[u8], esc: &[u8], width: fn(&[u8], usize) -> usize) -> Result<Vec<u8>, SqlError> {
    if !esc.is_empty() && width(esc, 0) != esc.len() {
        return Err(SqlError::new(state::INVALID_ESCAPE_SEQUENCE, "invalid escape string").with_hint("Escape string must be empty or one character."));
    }
    let mut out = Vec::with_capacity(p.len());
    let mut literal = false;
    let mut i = 0;
    while i < p.len() {
        let c = &p[i..(i + width(p, i)).min(p.len())];
        i += c.len();
        if !esc.is_empty() && c == esc && !literal {
            literal = true;
            out.push(b'\\');
            continue;
        }
        if c == b"\\" && esc != b"\\" && !literal {
            out.push(b'\\');
        }
        out.extend_from_slice(c);
        literal = false;
    }
    Ok(out)
}

fn like_escape_text(p: &str, esc: &str) -> Result<String, SqlError> {
    let out = like_escape(p.as_bytes(), esc.as_bytes(), |s, i| char_len(s, i, true))?;
    String::from_utf8(out).map_err(|_| SqlError::internal("a pattern that is no text"))
}

/// A SIMILAR TO pattern as a regular expression: `^(?:...)$`. `None`: the escape is `\`; empty: there is none.
fn similar_escape(p: &str, esc: Option<&str>) -> Result<String, SqlError> {
    let mut e = esc.unwrap_or("\\").chars();
    let escape = match (e.next(), e.next()) {
        (c, None) => c,
        _ => return Err(SqlError::new(state::INVALID_ESCAPE_SEQUENCE, "invalid escape string").with_hint("Escape string must be empty or one character.")),
    };
    let mut out = String::from("^(?:");
    let (mut after_escape, mut in_class, mut quotes) = (false, false, 0);
    for c in p.chars() {
        if after_escape {
            if c == '"' && !in_class {
                // substring(x similar '..#"..#"..' escape '#'): the part between the marks is what is wanted.
                match quotes {
                    0 => out.push_str("){1,1}?("),
                    1 => out.push_str("){1,1}(?:"),
                    _ => {
                        return Err(SqlError::new(
                            repr::SqlState::new("2200C"),
                            "SQL regular expression may not contain more than two escape-double-quote separators",
                        ))
                    }
                }
                quotes += 1;
            } else {
                out.push('\\');
                out.push(c);
            }
            after_escape = false;
        } else if Some(c) == escape {
            after_escape = true;
        } else if in_class {
            if c == '\\' {
                out.push('\\');
            }
            out.push(c);
            in_class = c != ']';
        } else {
            match c {
                '[' => {
                    out.push('[');
                    in_class = true;
                }
                '%' => out.push_str(".*"),
                '_' => out.push('.'),
                '(' => out.push_str("(?:"),
                '\\' | '.' | '^' | '$' => {
                    out.push('\\');
                    out.push(c);
                }
                c => out.push(c),
            }
        }
    }
    out.push_str(")$");
    Ok(out)
}

pub const FUNCS: &[Entry] = &[
    f2!(? ["textlike", "namelike"], Str, Str => bool, like),
    f2!(? ["textnlike", "namenlike"], Str, Str => bool, |s, p| like(s, p).map(|b| !b)),
    f2!(? ["texticlike", "nameiclike"], Str, Str => bool, ilike),
    f2!(? ["texticnlike", "nameicnlike"], Str, Str => bool, |s, p| ilike(s, p).map(|b| !b)),
    f2!(? ["bytealike"], Bytes, Bytes => bool, |s, p| matches(s, p, false)),
    f2!(? ["byteanlike"], Bytes, Bytes => bool, |s, p| matches(s, p, false).map(|b| !b)),
    f2!(? ["like_escape"], Str, Str => String, like_escape_text),
    f2!(? ["like_escape_bytea"], Bytes, Bytes => Vec<u8>, |p, e| like_escape(p, e, |_, _| 1)),
    f2!(? ["similar_to_escape_2"], Str, Str => String, |p, e| similar_escape(p, Some(e))),
    f1!(? ["similar_to_escape_1"], Str => String, |p| similar_escape(p, None)),
    vals!(? ["similar_escape"], |a, _| match (&a[0], &a[1]) {
        (Value::Text(p), e) => similar_escape(p, e.as_str()).map(Value::Text),
        _ => Ok(Value::Null),
    }),
];
