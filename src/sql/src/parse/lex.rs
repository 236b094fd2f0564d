//! Tokens: sqlparser's tokenizer, seen through Postgres's rules.
//!
//! sqlparser splits the text into words, strings, numbers and comments and says where they stand. Operators are cut again from the text
//! by Postgres's rule (the longest run of operator characters, which may end in + or - only if it holds one of `~!@#^&|?%` or a backquote),
//! so that `a<-1` and `@-1` mean what they mean there. Strings that only a line break separates are one.

use crate::ast::{Pos, Span};
use repr::error::state;
use repr::SqlError;
use sqlparser::dialect::PostgreSqlDialect;
use sqlparser::tokenizer::{Location, Token, Tokenizer, Whitespace};

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tok {
    /// An unquoted word, in lower case.
    Word(String),
    /// A quoted identifier.
    Quoted(String),
    Number(String),
    String(String),
    /// The digits after `b` or `x`.
    BitString(String),
    Param(usize),
    Op(String),
    /// `( ) [ ] , ; . :` and `::`, `:=`, `=>`.
    Punct(&'static str),
    Eof,
}

#[derive(Clone, Debug)]
pub struct Lexed {
    pub tok: Tok,
    pub pos: Pos,
    pub span: Span,
}

const OP_CHARS: &str = "+-*/<>=~!@#%^&|`?";

/// All tokens of `sql`, ended by [`Tok::Eof`].
pub fn lex(sql: &str) -> Result<Vec<Lexed>, SqlError> {
    if sql.contains('\0') {
        return Err(SqlError::new(state::CHARACTER_NOT_IN_REPERTOIRE, "invalid byte sequence for encoding \"UTF8\": 0x00"));
    }
    let mut lines = Lines::new(sql);
    let mut out: Vec<Lexed> = Vec::new();
    let mut base = 0;
    while let Some(next) = lex_part(sql, base, &mut lines, &mut out)? {
        base = next;
    }
    let end = sql.len();
    out.push(Lexed { tok: Tok::Eof, pos: lines.position(end), span: Span { start: end, end } });
    Ok(out)
}

/// Lexes from byte `base`; sqlparser takes what follows `COPY … FROM STDIN;` for data, so we go on behind the semicolon ourselves.
fn lex_part(sql: &str, base: usize, lines: &mut Lines<'_>, out: &mut Vec<Lexed>) -> Result<Option<usize>, SqlError> {
    let mut locations = Locations::new(&sql[base..]);
    let dialect = PostgreSqlDialect {};
    let mut raw = Vec::new();
    let result = Tokenizer::new(&dialect, &sql[base..]).with_unescape(true).tokenize_with_location_into_buf(&mut raw);
    let mut skip_to = base;
    let mut last = base;
    let mut newline = false;
    for t in raw {
        let start = base + locations.byte(t.span.start);
        let end = base + locations.byte(t.span.end);
        last = end;
        if start < skip_to {
            continue;
        }
        let text = &sql[start..end];
        let tok = match t.token {
            Token::Whitespace(w) => {
                let breaks = matches!(w, Whitespace::Newline | Whitespace::SingleLineComment { .. }) || text.contains('\n');
                newline |= breaks;
                continue;
            }
            Token::CopyData { .. } => {
                // It began right behind the semicolon.
                let semi = out.iter().rev().find(|l| l.tok == Tok::Punct(";")).map_or(start, |l| l.span.end);
                return Ok(Some(semi));
            }
            Token::EOF => break,
            Token::Word(w) if w.quote_style == Some('"') => {
                if w.value.is_empty() {
                    return Err(syntax("zero-length delimited identifier", text, lines.position(start)));
                }
                Tok::Quoted(w.value)
            }
            Token::Word(w) => Tok::Word(fold(&w.value)),
            Token::DoubleQuotedString(s) => Tok::Quoted(s),
            Token::Number(n, _) => Tok::Number(n.replace('_', "")),
            Token::NationalStringLiteral(s) => {
                // N'…' is NCHAR '…'.
                out.push(Lexed { tok: Tok::Word("nchar".into()), pos: lines.position(start), span: Span { start, end: start } });
                Tok::String(s)
            }
            Token::SingleQuotedString(s) | Token::EscapedStringLiteral(s) | Token::UnicodeStringLiteral(s) => {
                if let (Some(Lexed { tok: Tok::String(last), span, .. }), true, b'\'') = (out.last_mut(), newline, sql.as_bytes()[start]) {
                    last.push_str(&s);
                    span.end = end;
                    newline = false;
                    continue;
                }
                Tok::String(s)
            }
            Token::DollarQuotedString(s) => Tok::String(s.value),
            Token::SingleQuotedByteStringLiteral(s) => Tok::BitString(format!("b{s}")),
            Token::HexStringLiteral(s) => Tok::BitString(format!("x{s}")),
            Token::Placeholder(p) if p.starts_with('$') => match p[1..].parse::<usize>() {
                Ok(n) if n > 0 => Tok::Param(n),
                _ => return Err(SqlError::new(state::UNDEFINED_PARAMETER, format!("there is no parameter {p}")).at(lines.position(start))),
            },
            _ => match op_or_punct(sql, start) {
                Some((tok, end)) => {
                    skip_to = end;
                    out.push(Lexed { tok, pos: lines.position(start), span: Span { start, end } });
                    newline = false;
                    continue;
                }
                None => return Err(syntax("syntax error", text, lines.position(start))),
            },
        };
        newline = false;
        out.push(Lexed { tok, pos: lines.position(start), span: Span { start, end } });
    }
    match result {
        Ok(()) => Ok(None),
        // An operator that Postgres knows and sqlparser does not: we take it and go on behind it.
        Err(e) if e.message.contains("binary operator") => {
            let start = last.max(skip_to);
            match op_or_punct(sql, start) {
                Some((tok, end)) => {
                    out.push(Lexed { tok, pos: lines.position(start), span: Span { start, end } });
                    Ok(Some(end))
                }
                None => Err(syntax("syntax error", &sql[start..], lines.position(start))),
            }
        }
        Err(e) => {
            let start = base + locations.byte(e.location);
            let rest = &sql[start.min(sql.len())..];
            let what = if e.message.to_lowercase().contains("dollar") {
                "unterminated dollar-quoted string"
            } else if e.message.contains("comment") {
                "unterminated /* comment"
            } else if e.message.contains("identifier") || rest.starts_with('"') || e.message.contains("'\"'") {
                "unterminated quoted identifier"
            } else if e.message.contains("string") || e.message.contains("delimiter") {
                "unterminated quoted string"
            } else {
                "syntax error"
            };
            Err(syntax(what, rest, lines.position(start)))
        }
    }
}

/// `{what} at or near "{text}"`.
pub fn syntax(what: &str, text: &str, pos: Pos) -> SqlError {
    SqlError::new(state::SYNTAX_ERROR, format!("{what} at or near \"{text}\"")).at(pos)
}

/// Identifiers are folded in ASCII only, as in a UTF-8 database.
fn fold(word: &str) -> String {
    let mut w = word.to_ascii_lowercase();
    if w.len() > 63 {
        truncate(&mut w);
    }
    w
}

/// NAMEDATALEN - 1 bytes, whole characters.
fn truncate(w: &mut String) {
    let mut n = 63;
    while !w.is_char_boundary(n) {
        n -= 1;
    }
    w.truncate(n);
}

/// The operator or punctuation at byte `start`, and its end.
fn op_or_punct(sql: &str, start: usize) -> Option<(Tok, usize)> {
    let rest = &sql[start..];
    for p in ["::", ":=", "=>", "(", ")", "[", "]", ",", ";", ".", ":"] {
        // `=>` is punctuation only if no longer operator begins here.
        if rest.starts_with(p) && (p != "=>" || !rest[2..].starts_with(|c| OP_CHARS.contains(c))) {
            return Some((Tok::Punct(p), start + p.len()));
        }
    }
    let mut n = rest.bytes().take_while(|b| OP_CHARS.contains(char::from(*b))).count();
    if let Some(comment) = [rest[..n].find("--"), rest[..n].find("/*")].into_iter().flatten().min() {
        n = comment;
    }
    let op = &rest.as_bytes()[..n];
    if n > 1 && matches!(op[n - 1], b'+' | b'-') && !op[..n - 1].iter().any(|c| b"~!@#^&|`?%".contains(c)) {
        while n > 1 && matches!(op[n - 1], b'+' | b'-') {
            n -= 1;
        }
    }
    if n == 0 {
        return None;
    }
    let text = match &rest[..n] {
        "!=" => "<>",
        other => other,
    };
    Some((Tok::Op(text.to_owned()), start + n))
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

/// From sqlparser's (line, column) to byte offsets; asked in rising order mostly.
struct Locations<'a> {
    text: &'a str,
    starts: Vec<usize>,
    last: (Location, usize),
}

impl<'a> Locations<'a> {
    fn new(text: &'a str) -> Locations<'a> {
        let starts = std::iter::once(0).chain(text.bytes().enumerate().filter(|(_, b)| *b == b'\n').map(|(i, _)| i + 1)).collect();
        Locations { text, starts, last: (Location { line: 1, column: 1 }, 0) }
    }
    fn byte(&mut self, at: Location) -> usize {
        let line = usize::try_from(at.line.max(1) - 1).unwrap_or(usize::MAX);
        let Some(start) = self.starts.get(line).copied() else { return self.text.len() };
        let (from, skip) = if self.last.0.line == at.line && self.last.0.column <= at.column {
            (self.last.1, at.column - self.last.0.column)
        } else {
            (start, at.column.saturating_sub(1))
        };
        let skip = usize::try_from(skip).unwrap_or(usize::MAX);
        let byte = self.text[from..].char_indices().nth(skip).map_or(self.text.len(), |(i, _)| from + i);
        self.last = (at, byte);
        byte
    }
}
