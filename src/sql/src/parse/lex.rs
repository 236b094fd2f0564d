//! Tokens, by the rules of Postgres's scanner.
//!
//! ```text
//!   'a''b'  E'\n\u0041'  U&'\0041' UESCAPE '!'  $tag$…$tag$  N'…'      String; pieces that only a line break separates are one
//!   B'01'  X'1F'        BitString            "a""b"  U&"\0061"         Quoted
//!   12  1.5  .5  1e-3   Number               $1                        Param
//!   word                Word, in lower case (ASCII only)
//!   the longest run of operator characters, which may end in + or - only if it holds one of `~!@#^&|?%` or a backquote: Op
//! ```
//!
//! Names are cut to 63 bytes. Comments nest. Not here: which words are keywords (`keywords`).

use crate::ast::{Pos, Span};
use repr::error::state;
use repr::SqlError;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tok {
    /// An unquoted word, in lower case.
    Word(String),
    /// A quoted identifier.
    Quoted(String),
    Number(String),
    String(String),
    /// The bits of `B'…'` or `X'…'`, as 0 and 1.
    BitString(String),
    Param(usize),
    Op(String),
    /// `( ) [ ] , ; . : ..` and `::`, `:=`, `=>`.
    Punct(&'static str),
    Eof,
}

#[derive(Clone, Debug)]
pub struct Lexed {
    pub tok: Tok,
    pub pos: Pos,
    pub span: Span,
}

const OP_CHARS: &[u8] = b"+-*/<>=~!@#%^&|`?";

/// All tokens of `sql`, ended by [`Tok::Eof`].
/// Errors: 42601 with the position for what is no token, 22021 and 22025 for escapes that give no text, 22P02 for bits that are none.
/// Names that are cut give a notice each, with the byte at which they stand.
pub fn lex(sql: &str) -> Result<(Vec<Lexed>, Vec<(usize, SqlError)>), SqlError> {
    if sql.contains('\0') {
        return Err(not_utf8(0));
    }
    let mut s = Scanner { sql, b: sql.as_bytes(), at: 0, lines: Lines::new(sql), out: Vec::new(), notices: Vec::new() };
    while s.blank()? {
        s.token()?;
    }
    let end = sql.len();
    let pos = s.lines.position(end);
    s.out.push(Lexed { tok: Tok::Eof, pos, span: Span { start: end, end } });
    Ok((s.out, s.notices))
}

/// `{what} at or near "{text}"`.
pub fn syntax(what: &str, text: &str, pos: Pos) -> SqlError {
    SqlError::new(state::SYNTAX_ERROR, format!("{what} at or near \"{text}\"")).at(pos)
}

fn not_utf8(byte: u8) -> SqlError {
    SqlError::new(state::CHARACTER_NOT_IN_REPERTOIRE, format!("invalid byte sequence for encoding \"UTF8\": 0x{byte:02x}"))
}

fn is_ident_start(b: u8) -> bool {
    b.is_ascii_alphabetic() || b == b'_' || b >= 0x80
}

fn is_ident(b: u8) -> bool {
    is_ident_start(b) || b.is_ascii_digit() || b == b'$'
}

fn is_space(b: u8) -> bool {
    matches!(b, b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c)
}

struct Scanner<'a> {
    sql: &'a str,
    b: &'a [u8],
    at: usize,
    lines: Lines<'a>,
    out: Vec<Lexed>,
    notices: Vec<(usize, SqlError)>,
}

impl Scanner<'_> {
    fn byte(&self, at: usize) -> u8 {
        self.b.get(at).copied().unwrap_or(0)
    }
    fn is_at(&self, text: &str) -> bool {
        self.b[self.at..].starts_with(text.as_bytes())
    }
    /// The first byte from `at` on that does not satisfy `f`.
    fn run(&self, at: usize, f: impl Fn(u8) -> bool) -> usize {
        at + self.b[at..].iter().take_while(|b| f(**b)).count()
    }
    /// An error about the text from `start` to where the scanner stands.
    fn error(&mut self, what: &str, start: usize) -> SqlError {
        let mut end = self.at.clamp(start, self.sql.len());
        while !self.sql.is_char_boundary(end) {
            end += 1;
        }
        syntax(what, &self.sql[start..end], self.lines.position(start))
    }
    fn unterminated(&mut self, what: &str, start: usize) -> SqlError {
        self.at = self.sql.len();
        self.error(&format!("unterminated {what}"), start)
    }

    /// NAMEDATALEN - 1 bytes of a name, whole characters.
    fn truncate(&mut self, name: String, start: usize) -> String {
        if name.len() <= 63 {
            return name;
        }
        let mut n = 63;
        while !name.is_char_boundary(n) {
            n -= 1;
        }
        let message = format!("identifier \"{name}\" will be truncated to \"{}\"", &name[..n]);
        self.notices.push((start, SqlError::new(state::NAME_TOO_LONG, message)));
        name[..n].to_owned()
    }

    fn push(&mut self, tok: Tok, start: usize) {
        let pos = self.lines.position(start);
        self.out.push(Lexed { tok, pos, span: Span { start, end: self.at } });
    }

    /// Skips blanks and comments; whether anything follows.
    fn blank(&mut self) -> Result<bool, SqlError> {
        loop {
            self.at = self.run(self.at, is_space);
            if self.is_at("--") {
                self.at = self.run(self.at, |b| b != b'\n' && b != b'\r');
            } else if self.is_at("/*") {
                let start = self.at;
                let mut depth = 0usize;
                loop {
                    if self.is_at("/*") {
                        (depth, self.at) = (depth + 1, self.at + 2);
                    } else if self.is_at("*/") {
                        (depth, self.at) = (depth - 1, self.at + 2);
                    } else if self.at < self.b.len() {
                        self.at += 1;
                    } else {
                        return Err(self.unterminated("/* comment", start));
                    }
                    if depth == 0 {
                        break;
                    }
                }
            } else {
                return Ok(self.at < self.b.len());
            }
        }
    }

    fn token(&mut self) -> Result<(), SqlError> {
        let start = self.at;
        let (c, next, third) = (self.byte(start), self.byte(start + 1), self.byte(start + 2));
        let tok = match (c, next, third) {
            (b'\'', ..) => Tok::String(self.quoted(start + 1, start, "quoted string")?),
            (b'e' | b'E', b'\'', _) => {
                let raw = self.escaped(start + 2, start)?;
                Tok::String(String::from_utf8(raw).map_err(|e| not_utf8(e.as_bytes()[e.utf8_error().valid_up_to()]).at(self.lines.position(start)))?)
            }
            (b'b' | b'B', b'\'', _) => {
                let digits = self.quoted(start + 2, start, "bit string literal")?;
                match digits.chars().find(|d| !matches!(d, '0' | '1')) {
                    Some(d) => return Err(bad_digit(d, "binary").at(self.lines.position(start))),
                    None => Tok::BitString(digits),
                }
            }
            (b'x' | b'X', b'\'', _) => {
                let digits = self.quoted(start + 2, start, "hexadecimal string literal")?;
                let bits = digits.chars().map(|d| d.to_digit(16).map(|v| format!("{v:04b}")).ok_or_else(|| bad_digit(d, "hexadecimal")));
                Tok::BitString(bits.collect::<Result<String, SqlError>>().map_err(|e| e.at(self.lines.position(start)))?)
            }
            (b'n' | b'N', b'\'', _) => {
                // N'…' is NCHAR '…'.
                self.push(Tok::Word("nchar".into()), start);
                Tok::String(self.quoted(start + 2, start, "quoted string")?)
            }
            (b'u' | b'U', b'&', b'\'') => {
                let raw = self.quoted(start + 3, start, "quoted string")?;
                Tok::String(self.unicode(&raw, start)?)
            }
            (b'u' | b'U', b'&', b'"') => {
                let raw = self.name(start + 3, start)?;
                let name = self.unicode(&raw, start)?;
                Tok::Quoted(self.truncate(name, start))
            }
            (b'"', ..) => {
                let name = self.name(start + 1, start)?;
                Tok::Quoted(self.truncate(name, start))
            }
            (b'$', ..) => self.dollar(start)?,
            _ if c.is_ascii_digit() || c == b'.' && next.is_ascii_digit() => self.number(start)?,
            _ if is_ident_start(c) => {
                self.at = self.run(start, is_ident);
                Tok::Word(self.truncate(self.sql[start..self.at].to_ascii_lowercase(), start))
            }
            _ => match self.operator(start) {
                Some(tok) => tok,
                None => {
                    self.at += 1;
                    return Err(self.error("syntax error", start));
                }
            },
        };
        self.push(tok, start);
        Ok(())
    }

    /// After a closing quote: the start of the next piece, if only blanks with a line break (and `--` comments) lie between.
    fn continued(&self, from: usize) -> Option<usize> {
        let (mut at, mut newline) = (from, false);
        loop {
            match self.byte(at) {
                b'\n' | b'\r' => (newline, at) = (true, at + 1),
                b if is_space(b) => at += 1,
                b'-' if self.byte(at + 1) == b'-' => at = self.run(at, |b| b != b'\n' && b != b'\r'),
                b'\'' if newline => return Some(at + 1),
                _ => return None,
            }
        }
    }

    /// The text of a quoted literal whose quote was just taken, without escapes but `''`.
    fn quoted(&mut self, mut at: usize, start: usize, what: &str) -> Result<String, SqlError> {
        let mut text = String::new();
        loop {
            let Some(n) = self.b[at.min(self.b.len())..].iter().position(|b| *b == b'\'') else { return Err(self.unterminated(what, start)) };
            text.push_str(&self.sql[at..at + n]);
            at += n + 1;
            if self.byte(at) == b'\'' {
                text.push('\'');
                at += 1;
            } else if let Some(next) = self.continued(at) {
                at = next;
            } else {
                self.at = at;
                return Ok(text);
            }
        }
    }

    /// A quoted name, its quote taken.
    fn name(&mut self, mut at: usize, start: usize) -> Result<String, SqlError> {
        let mut text = String::new();
        loop {
            let Some(n) = self.b[at..].iter().position(|b| *b == b'"') else { return Err(self.unterminated("quoted identifier", start)) };
            text.push_str(&self.sql[at..at + n]);
            at += n + 1;
            self.at = at;
            if self.byte(at) != b'"' {
                break;
            }
            text.push('"');
            at += 1;
        }
        if text.is_empty() {
            return Err(self.error("zero-length delimited identifier", start));
        }
        Ok(text)
    }

    /// The bytes of `E'…'`, its quote taken.
    fn escaped(&mut self, mut at: usize, start: usize) -> Result<Vec<u8>, SqlError> {
        let mut out = Vec::new();
        let mut high: Option<u32> = None;
        loop {
            let c = self.byte(at);
            let is_unicode = c == b'\\' && matches!(self.byte(at + 1), b'u' | b'U');
            if high.is_some() && !is_unicode {
                self.at = at;
                return Err(self.error("invalid Unicode surrogate pair", start));
            }
            if at >= self.b.len() {
                return Err(self.unterminated("quoted string", start));
            }
            if c == b'\'' {
                at += 1;
                if self.byte(at) == b'\'' {
                    out.push(b'\'');
                    at += 1;
                } else if let Some(next) = self.continued(at) {
                    at = next;
                } else {
                    self.at = at;
                    return Ok(out);
                }
                continue;
            }
            if c != b'\\' {
                out.push(c);
                at += 1;
                continue;
            }
            let e = self.byte(at + 1);
            at += 2;
            match e {
                b'b' => out.push(8),
                b'f' => out.push(12),
                b'n' => out.push(b'\n'),
                b'r' => out.push(b'\r'),
                b't' => out.push(b'\t'),
                b'v' => out.push(11),
                b'0'..=b'7' => {
                    let end = self.run(at, |b| (b'0'..=b'7').contains(&b)).min(at + 2);
                    let value = self.b[at - 1..end].iter().fold(0u32, |v, d| v * 8 + u32::from(d - b'0'));
                    out.push(self.escape_byte(value, start)?);
                    at = end;
                }
                b'x' if self.byte(at).is_ascii_hexdigit() => {
                    let end = self.run(at, |b| b.is_ascii_hexdigit()).min(at + 2);
                    let value = u32::from_str_radix(&self.sql[at..end], 16).unwrap_or(0);
                    out.push(self.escape_byte(value, start)?);
                    at = end;
                }
                b'u' | b'U' => {
                    let width = if e == b'u' { 4 } else { 8 };
                    let end = self.run(at, |b| b.is_ascii_hexdigit()).min(at + width);
                    if end < at + width {
                        let pos = self.lines.position(at - 2);
                        let hint = "Unicode escapes must be \\uXXXX or \\UXXXXXXXX.";
                        return Err(SqlError::new(state::INVALID_ESCAPE_SEQUENCE, "invalid Unicode escape").with_hint(hint).at(pos));
                    }
                    let value = u32::from_str_radix(&self.sql[at..end], 16).unwrap_or(0);
                    self.at = end;
                    if let Some(c) = self.code_point(value, &mut high, start)? {
                        out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
                    }
                    at = end;
                }
                0 if at > self.b.len() => return Err(self.unterminated("quoted string", start)),
                other => out.push(other),
            }
        }
    }

    /// A byte that an escape names. Errors: 22021 for zero.
    fn escape_byte(&mut self, value: u32, start: usize) -> Result<u8, SqlError> {
        match value as u8 {
            0 => Err(not_utf8(0).at(self.lines.position(start))),
            b => Ok(b),
        }
    }

    /// The character of an escape; a high surrogate waits in `high` for its low half.
    fn code_point(&mut self, value: u32, high: &mut Option<u32>, start: usize) -> Result<Option<char>, SqlError> {
        let value = match (high.take(), value) {
            (Some(h), 0xdc00..=0xdfff) => 0x10000 + ((h - 0xd800) << 10) + (value - 0xdc00),
            (None, 0xd800..=0xdbff) => {
                *high = Some(value);
                return Ok(None);
            }
            (Some(_), _) | (None, 0xdc00..=0xdfff) => return Err(self.error("invalid Unicode surrogate pair", start)),
            (None, v) => v,
        };
        match char::from_u32(value) {
            Some(c) if c != '\0' => Ok(Some(c)),
            _ => Err(self.error("invalid Unicode escape value", start)),
        }
    }

    /// The meaning of the text of `U&'…'` or `U&"…"`, with the UESCAPE that may follow.
    fn unicode(&mut self, raw: &str, start: usize) -> Result<String, SqlError> {
        let mut escape = '\\';
        let end = self.at;
        self.blank()?;
        let word = self.run(self.at, is_ident);
        if self.sql[self.at..word].eq_ignore_ascii_case("uescape") {
            self.at = word;
            self.blank()?;
            let quote = self.at;
            if self.byte(quote) != b'\'' {
                return Err(self.error("UESCAPE must be followed by a simple string literal", quote));
            }
            let text = self.quoted(quote + 1, quote, "quoted string")?;
            let mut chars = text.chars();
            escape = match (chars.next(), chars.next()) {
                (Some(c), None) if !(c.is_ascii_hexdigit() || matches!(c, '+' | '\'' | '"') || c.is_ascii() && is_space(c as u8)) => c,
                _ => return Err(self.error("invalid Unicode escape character", quote)),
            };
        } else {
            self.at = end;
        }
        let mut out = String::with_capacity(raw.len());
        let mut high = None;
        let mut rest = raw;
        while let Some(c) = rest.chars().next() {
            let after = &rest[c.len_utf8()..];
            let doubled = after.starts_with(escape);
            if high.is_some() && (c != escape || doubled) {
                return Err(self.error("invalid Unicode surrogate pair", start));
            }
            if c != escape || doubled {
                out.push(c);
                rest = if c == escape { &after[c.len_utf8()..] } else { after };
                continue;
            }
            let (skip, width) = if after.starts_with('+') { (1, 6) } else { (0, 4) };
            let digits = after.get(skip..skip + width).filter(|d| d.bytes().all(|b| b.is_ascii_hexdigit()));
            let Some(value) = digits.and_then(|d| u32::from_str_radix(d, 16).ok()) else {
                let pos = self.lines.position(start);
                let hint = "Unicode escapes must be \\XXXX or \\+XXXXXX.";
                return Err(SqlError::new(state::SYNTAX_ERROR, "invalid Unicode escape").with_hint(hint).at(pos));
            };
            out.extend(self.code_point(value, &mut high, start)?);
            rest = &after[skip + width..];
        }
        if high.is_some() {
            return Err(self.error("invalid Unicode surrogate pair", start));
        }
        Ok(out)
    }

    /// `$1`, or a dollar-quoted string.
    fn dollar(&mut self, start: usize) -> Result<Tok, SqlError> {
        let first = self.byte(start + 1);
        if first.is_ascii_digit() {
            self.at = self.run(start + 1, |b| b.is_ascii_digit());
            let digits = &self.sql[start + 1..self.at];
            if is_ident_start(self.byte(self.at)) {
                self.at = self.run(self.at, is_ident);
                return Err(self.error("trailing junk after parameter", start));
            }
            return match digits.parse::<usize>() {
                Ok(n) if n > 0 => Ok(Tok::Param(n)),
                _ => Err(SqlError::new(state::UNDEFINED_PARAMETER, format!("there is no parameter ${digits}")).at(self.lines.position(start))),
            };
        }
        let tag_end = if is_ident_start(first) { self.run(start + 1, |b| is_ident(b) && b != b'$') } else { start + 1 };
        if self.byte(tag_end) != b'$' {
            self.at = start + 1;
            return Err(self.error("syntax error", start));
        }
        let tag = &self.sql[start..=tag_end];
        let body = tag_end + 1;
        match self.sql[body..].find(tag) {
            Some(n) => {
                self.at = body + n + tag.len();
                Ok(Tok::String(self.sql[body..body + n].to_owned()))
            }
            None => Err(self.unterminated("dollar-quoted string", start)),
        }
    }

    fn number(&mut self, start: usize) -> Result<Tok, SqlError> {
        let digits = |s: &Self, at: usize| s.run(at, |b| b.is_ascii_digit());
        let mut at = digits(self, start);
        // `1..2` is a number and two dots.
        if self.byte(at) == b'.' && self.byte(at + 1) != b'.' {
            at = digits(self, at + 1);
        }
        if matches!(self.byte(at), b'e' | b'E') {
            let sign = usize::from(matches!(self.byte(at + 1), b'+' | b'-'));
            let end = digits(self, at + 1 + sign);
            if end > at + 1 + sign {
                at = end;
            } else {
                self.at = self.run(at, is_ident) + sign;
                return Err(self.error("trailing junk after numeric literal", start));
            }
        }
        self.at = at;
        if is_ident_start(self.byte(at)) {
            self.at = self.run(at, is_ident);
            return Err(self.error("trailing junk after numeric literal", start));
        }
        Ok(Tok::Number(self.sql[start..at].to_owned()))
    }

    fn operator(&mut self, start: usize) -> Option<Tok> {
        for p in ["::", ":=", "..", "(", ")", "[", "]", ",", ";", ".", ":"] {
            if self.is_at(p) {
                self.at = start + p.len();
                return Some(Tok::Punct(p));
            }
        }
        let mut n = self.run(start, |b| OP_CHARS.contains(&b)) - start;
        let text = &self.sql[start..start + n];
        if let Some(comment) = [text.find("--"), text.find("/*")].into_iter().flatten().min() {
            n = comment;
        }
        let op = &self.b[start..start + n];
        if n > 1 && matches!(op[n - 1], b'+' | b'-') && !op[..n - 1].iter().any(|c| b"~!@#^&|`?%".contains(c)) {
            while n > 1 && matches!(op[n - 1], b'+' | b'-') {
                n -= 1;
            }
        }
        if n == 0 {
            return None;
        }
        self.at = start + n;
        Some(Tok::Op(match &self.sql[start..self.at] {
            "=>" => return Some(Tok::Punct("=>")),
            "!=" => "<>".into(),
            other => other.to_owned(),
        }))
    }
}

fn bad_digit(digit: char, what: &str) -> SqlError {
    SqlError::new(state::INVALID_TEXT_REPRESENTATION, format!("\"{digit}\" is not a valid {what} digit"))
}

/// From byte offsets, asked in rising order, to positions in characters.
struct Lines<'a> {
    sql: &'a str,
    byte: usize,
    chars: Pos,
}

impl<'a> Lines<'a> {
    fn new(sql: &'a str) -> Lines<'a> {
        Lines { sql, byte: 0, chars: 1 }
    }
    fn position(&mut self, byte: usize) -> Pos {
        let byte = byte.min(self.sql.len());
        if byte < self.byte {
            (self.byte, self.chars) = (0, 1);
        }
        self.chars += u32::try_from(self.sql[self.byte..byte].chars().count()).unwrap_or(u32::MAX);
        self.byte = byte;
        self.chars
    }
}
