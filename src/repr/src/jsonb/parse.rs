//! JSON text to documents, with Postgres's errors.
//!
//! Errors: 22P02 `invalid input syntax for type json` with a detail that names the token; 22P05 for `\u0000`; 54001 for deep nesting.

use super::Jsonb;
use crate::error::{state, SqlError};
use crate::interrupt::Pace;
use crate::numeric::Numeric;

/// Arrays and objects inside one another; bounded by the stack of every thread that walks a document.
const DEPTH_MAX: usize = 1000;

/// Parses a document.
pub fn parse(text: &str) -> Result<Jsonb, SqlError> {
    let mut p = Parser { text, s: text.as_bytes(), at: 0, build: true, pace: Pace::default() };
    let out = p.value(0)?;
    p.end()?;
    Ok(out)
}

/// Checks that a text is JSON, without building it. `\u0000` is allowed, as in type `json`.
pub fn check(text: &str) -> Result<(), SqlError> {
    let mut p = Parser { text, s: text.as_bytes(), at: 0, build: false, pace: Pace::default() };
    p.value(0)?;
    p.end()
}

#[derive(Clone, Copy)]
enum Expect {
    Value,
    ObjectFirst,
    ObjectNext,
    ArrayNext,
    Key,
    Colon,
    End,
}

struct Parser<'a> {
    text: &'a str,
    s: &'a [u8],
    at: usize,
    build: bool,
    pace: Pace,
}

fn invalid(detail: String) -> SqlError {
    SqlError::new(state::INVALID_TEXT_REPRESENTATION, "invalid input syntax for type json").with_detail(detail)
}

impl Parser<'_> {
    fn blanks(&mut self) {
        while matches!(self.s.get(self.at), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn peek(&mut self) -> Option<u8> {
        self.blanks();
        self.s.get(self.at).copied()
    }

    fn end(&mut self) -> Result<(), SqlError> {
        match self.peek() {
            None => Ok(()),
            Some(_) => Err(self.unexpected(Expect::End)),
        }
    }

    /// The error for the token that stands here.
    fn unexpected(&mut self, expect: Expect) -> SqlError {
        self.blanks();
        let start = self.at;
        if start >= self.s.len() {
            return invalid("The input string ended unexpectedly.".into());
        }
        // A token that is none by itself is reported as such.
        let token = match self.s[start] {
            b'{' | b'}' | b'[' | b']' | b',' | b':' => &self.text[start..start + 1],
            b'"' => {
                if let Err(e) = self.string() {
                    return e;
                }
                &self.text[start..self.at]
            }
            b'-' | b'0'..=b'9' => match self.number() {
                Err(e) => return e,
                Ok(t) => t,
            },
            _ => {
                let t = self.word();
                if !matches!(t, "true" | "false" | "null") {
                    return invalid(format!("Token \"{t}\" is invalid."));
                }
                t
            }
        };
        let what = match expect {
            Expect::Value => "JSON value",
            Expect::ObjectFirst => "string or \"}\"",
            Expect::ObjectNext => "\",\" or \"}\"",
            Expect::ArrayNext => "\",\" or \"]\"",
            Expect::Key => "string",
            Expect::Colon => "\":\"",
            Expect::End => "end of input",
        };
        invalid(format!("Expected {what}, but found \"{token}\"."))
    }

    /// The run of word characters here, at least one character.
    fn word(&mut self) -> &str {
        let start = self.at;
        while self.at < self.s.len() && (self.s[self.at].is_ascii_alphanumeric() || self.s[self.at] == b'_' || self.s[self.at] >= 0x80) {
            self.at += 1;
        }
        if self.at == start {
            self.at += self.text[start..].chars().next().map_or(1, char::len_utf8);
        }
        &self.text[start..self.at]
    }

    fn value(&mut self, depth: usize) -> Result<Jsonb, SqlError> {
        if depth > DEPTH_MAX {
            return Err(SqlError::new(state::STATEMENT_TOO_COMPLEX, "stack depth limit exceeded"));
        }
        if self.pace.stop(32) {
            return Err(SqlError::canceled());
        }
        match self.peek() {
            Some(b'{') => self.object(depth),
            Some(b'[') => self.array(depth),
            Some(b'"') => self.string().map(Jsonb::String),
            Some(b'-' | b'0'..=b'9') => {
                let build = self.build;
                let t = self.number()?;
                if build {
                    Numeric::parse(t).map(Jsonb::Number)
                } else {
                    Ok(Jsonb::Null)
                }
            }
            Some(c) if c.is_ascii_alphabetic() => {
                let start = self.at;
                match self.word() {
                    "true" => Ok(Jsonb::Bool(true)),
                    "false" => Ok(Jsonb::Bool(false)),
                    "null" => Ok(Jsonb::Null),
                    _ => {
                        self.at = start;
                        Err(self.unexpected(Expect::Value))
                    }
                }
            }
            _ => Err(self.unexpected(Expect::Value)),
        }
    }

    fn array(&mut self, depth: usize) -> Result<Jsonb, SqlError> {
        self.at += 1;
        let mut out = Vec::new();
        if self.peek() == Some(b']') {
            self.at += 1;
            return Ok(Jsonb::Array(out));
        }
        loop {
            let v = self.value(depth + 1)?;
            if self.build {
                out.push(v);
            }
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b']') => {
                    self.at += 1;
                    return Ok(Jsonb::Array(out));
                }
                _ => return Err(self.unexpected(Expect::ArrayNext)),
            }
        }
    }

    fn object(&mut self, depth: usize) -> Result<Jsonb, SqlError> {
        self.at += 1;
        let mut out = Vec::new();
        if self.peek() == Some(b'}') {
            self.at += 1;
            return Ok(Jsonb::Object(out));
        }
        let mut expect = Expect::ObjectFirst;
        loop {
            if self.peek() != Some(b'"') {
                return Err(self.unexpected(expect));
            }
            let key = self.string()?;
            if self.peek() != Some(b':') {
                return Err(self.unexpected(Expect::Colon));
            }
            self.at += 1;
            let v = self.value(depth + 1)?;
            if self.build {
                out.push((key, v));
            }
            expect = Expect::Key;
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b'}') => {
                    self.at += 1;
                    return Ok(Jsonb::object(out));
                }
                _ => return Err(self.unexpected(Expect::ObjectNext)),
            }
        }
    }

    fn number(&mut self) -> Result<&str, SqlError> {
        let start = self.at;
        let digit = |p: &Self| p.s.get(p.at).is_some_and(u8::is_ascii_digit);
        let mut ok = true;
        if self.s[self.at] == b'-' {
            self.at += 1;
        }
        if self.s.get(self.at) == Some(&b'0') {
            self.at += 1;
        } else if digit(self) {
            while digit(self) {
                self.at += 1;
            }
        } else {
            ok = false;
        }
        if ok && self.s.get(self.at) == Some(&b'.') {
            self.at += 1;
            ok = digit(self);
            while digit(self) {
                self.at += 1;
            }
        }
        if ok && matches!(self.s.get(self.at), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.s.get(self.at), Some(b'+' | b'-')) {
                self.at += 1;
            }
            ok = digit(self);
            while digit(self) {
                self.at += 1;
            }
        }
        // What runs on belongs to the token.
        let end = self.at;
        while self.at < self.s.len() && (self.s[self.at].is_ascii_alphanumeric() || b"_-+.".contains(&self.s[self.at]) || self.s[self.at] >= 0x80) {
            self.at += 1;
        }
        if !ok || self.at != end {
            return Err(invalid(format!("Token \"{}\" is invalid.", &self.text[start..self.at])));
        }
        Ok(&self.text[start..end])
    }

    fn string(&mut self) -> Result<String, SqlError> {
        let start = self.at;
        self.at += 1;
        let mut out = String::new();
        let mut high: Option<u32> = None;
        let ended = |p: &Self| invalid(format!("Token \"{}\" is invalid.", &p.text[start..]));
        let escape_bad = |d: String| invalid(d);
        loop {
            let Some(&c) = self.s.get(self.at) else { return Err(ended(self)) };
            if high.is_some() && !(c == b'\\' && self.s.get(self.at + 1) == Some(&b'u')) {
                return Err(escape_bad("Unicode low surrogate must follow a high surrogate.".into()));
            }
            match c {
                b'"' => {
                    self.at += 1;
                    return Ok(out);
                }
                b'\\' => {
                    self.at += 1;
                    let Some(&e) = self.s.get(self.at) else { return Err(ended(self)) };
                    self.at += 1;
                    match e {
                        b'"' | b'\\' | b'/' => out.push(e as char),
                        b'b' => out.push('\x08'),
                        b'f' => out.push('\x0c'),
                        b'n' => out.push('\n'),
                        b'r' => out.push('\r'),
                        b't' => out.push('\t'),
                        b'u' => {
                            let Some(code) = self.text.get(self.at..self.at + 4).and_then(|h| u32::from_str_radix(h, 16).ok()) else {
                                if self.at + 4 > self.s.len() {
                                    return Err(ended(self));
                                }
                                return Err(escape_bad("\"\\u\" must be followed by four hexadecimal digits.".into()));
                            };
                            self.at += 4;
                            self.code_unit(code, &mut high, &mut out)?;
                        }
                        _ => {
                            let at = self.at - 1;
                            let ch = self.text[at..].chars().next().unwrap_or('?');
                            return Err(escape_bad(format!("Escape sequence \"\\{ch}\" is invalid.")));
                        }
                    }
                }
                0..=0x1f => return Err(invalid(format!("Character with value 0x{c:02x} must be escaped."))),
                _ => {
                    let n = self.text[self.at..].bytes().take_while(|b| *b != b'"' && *b != b'\\' && *b >= 0x20).count();
                    out.push_str(&self.text[self.at..self.at + n]);
                    self.at += n;
                }
            }
        }
    }

    fn code_unit(&self, code: u32, high: &mut Option<u32>, out: &mut String) -> Result<(), SqlError> {
        let bad = |d: &str| Err(invalid(d.into()));
        match (code, high.take()) {
            (0xd800..=0xdbff, Some(_)) => bad("Unicode high surrogate must not follow a high surrogate."),
            (0xd800..=0xdbff, None) => {
                *high = Some(code);
                Ok(())
            }
            (0xdc00..=0xdfff, Some(h)) => {
                out.extend(char::from_u32(0x10000 + ((h - 0xd800) << 10) + (code - 0xdc00)));
                Ok(())
            }
            (0xdc00..=0xdfff, None) | (_, Some(_)) => bad("Unicode low surrogate must follow a high surrogate."),
            (0, None) if self.build => {
                Err(SqlError::new(state::UNTRANSLATABLE_CHARACTER, "unsupported Unicode escape sequence").with_detail("\\u0000 cannot be converted to text."))
            }
            (code, None) => {
                out.extend(char::from_u32(code));
                Ok(())
            }
        }
    }
}
