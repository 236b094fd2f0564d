//! The text form of `tsvector`, `'word':1A,3 'other'`, and the reading of words, which queries share.

use super::{syntax, too_large, Lexeme, Place, TsVector, POSITION_LIMIT, WORD_BYTES_MAX};
use crate::error::SqlError;

/// What separates words.
pub fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | '\r' | '\u{b}' | '\u{c}') || (c as u32 > 127 && c.is_whitespace() && c != '\u{a0}')
}

/// A word and where it stands.
pub struct Token {
    pub word: String,
    pub places: Vec<Place>,
}

/// Reads words one after another.
pub struct Tokens<'a> {
    all: &'a str,
    pub rest: &'a str,
    /// A query's words end at operators, and have no positions.
    query: bool,
    /// A query of a web search: quotes and backslashes mean nothing.
    web: bool,
}

fn is_operator(c: char) -> bool {
    matches!(c, '!' | '&' | '|' | '(' | ')' | '<')
}

impl<'a> Tokens<'a> {
    pub fn of_vector(all: &'a str) -> Tokens<'a> {
        Tokens { all, rest: all, query: false, web: false }
    }

    pub fn of_query(all: &'a str, rest: &'a str, web: bool) -> Tokens<'a> {
        Tokens { all, rest, query: true, web }
    }

    fn error(&self) -> SqlError {
        syntax(format!("syntax error in {}: \"{}\"", if self.query { "tsquery" } else { "tsvector" }, self.all))
    }

    fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }

    fn bump(&mut self) {
        let mut c = self.rest.chars();
        c.next();
        self.rest = c.as_str();
    }

    /// The character after a backslash.
    fn escaped(&mut self, word: &mut String) -> Result<(), SqlError> {
        self.bump();
        let c = self.peek().ok_or_else(|| syntax(format!("there is no escaped character: \"{}\"", self.all)))?;
        word.push(c);
        self.bump();
        Ok(())
    }

    /// The next word; `None` at the end. Errors: 42601.
    pub fn next_token(&mut self) -> Result<Option<Token>, SqlError> {
        self.rest = self.rest.trim_start_matches(is_blank);
        let Some(first) = self.peek() else { return Ok(None) };
        let mut word = String::new();
        let quoted = !self.web && first == '\'';
        if quoted {
            self.quoted(&mut word)?;
        } else if (self.query && is_operator(first)) || (self.web && first == '"') {
            return Err(self.error());
        } else {
            if !self.bare(&mut word)? {
                return Ok(Some(Token { word, places: Vec::new() }));
            }
            if self.query {
                return Ok(Some(Token { word, places: Vec::new() }));
            }
        }
        let mut places = Vec::new();
        if !self.query && self.peek() == Some(':') {
            self.places(&mut places)?;
        }
        Ok(Some(Token { word, places }))
    }

    /// A word in quotes, in which two quotes are one.
    fn quoted(&mut self, word: &mut String) -> Result<(), SqlError> {
        self.bump();
        loop {
            match self.peek().ok_or_else(|| self.error())? {
                '\'' => {
                    self.bump();
                    if self.peek() != Some('\'') {
                        break;
                    }
                    word.push('\'');
                    self.bump();
                }
                '\\' => self.escaped(word)?,
                c => {
                    word.push(c);
                    self.bump();
                }
            }
        }
        if word.is_empty() {
            return Err(self.error());
        }
        Ok(())
    }

    /// A word without quotes; true if it ended at a colon.
    fn bare(&mut self, word: &mut String) -> Result<bool, SqlError> {
        // The first character stands for itself, even a colon.
        match self.peek() {
            Some('\\') if !self.web => self.escaped(word)?,
            Some(c) => {
                word.push(c);
                self.bump();
            }
            None => {}
        }
        loop {
            match self.peek() {
                Some('\\') if !self.web => self.escaped(word)?,
                None => return Ok(false),
                Some(c) if is_blank(c) || (self.query && is_operator(c)) || (self.web && c == '"') => return Ok(false),
                Some(':') => return Ok(true),
                Some(c) => {
                    word.push(c);
                    self.bump();
                }
            }
        }
    }

    /// `:1A,2`, at whose colon the rest begins.
    fn places(&mut self, places: &mut Vec<Place>) -> Result<(), SqlError> {
        loop {
            self.bump();
            let n = self.rest.bytes().take_while(u8::is_ascii_digit).count();
            if n == 0 {
                return Err(self.error());
            }
            let pos = self.rest[..n].parse::<i64>().unwrap_or(i64::MAX).min(i64::from(POSITION_LIMIT) - 1) as u16;
            if pos == 0 {
                return Err(syntax(format!("wrong position info in tsvector: \"{}\"", self.all)));
            }
            self.rest = &self.rest[n..];
            let mut weight = 0;
            loop {
                match self.peek() {
                    Some(c @ ('a' | 'A' | '*' | 'b' | 'B' | 'c' | 'C' | 'd' | 'D')) => {
                        if weight != 0 {
                            return Err(self.error());
                        }
                        weight = match c.to_ascii_lowercase() {
                            'a' | '*' => 3,
                            'b' => 2,
                            'c' => 1,
                            _ => 0,
                        };
                        self.bump();
                    }
                    // Digits after a weight mean nothing.
                    Some(c) if c.is_ascii_digit() => self.bump(),
                    _ => break,
                }
            }
            places.push(Place { pos, weight });
            match self.peek() {
                Some(',') => {}
                None => return Ok(()),
                Some(c) if is_blank(c) => return Ok(()),
                Some(_) => return Err(self.error()),
            }
        }
    }
}

/// Appends a word in quotes.
pub(super) fn quote(word: &str, out: &mut String) {
    out.push('\'');
    for c in word.chars() {
        if matches!(c, '\'' | '\\') {
            out.push(c);
        }
        out.push(c);
    }
    out.push('\'');
}

impl TsVector {
    /// Errors: 42601, 54000.
    pub fn parse(text: &str) -> Result<TsVector, SqlError> {
        let mut tokens = Tokens::of_vector(text);
        let mut lexemes = Vec::new();
        while let Some(t) = tokens.next_token()? {
            if t.word.len() > WORD_BYTES_MAX {
                return Err(too_large(format!("word is too long ({} bytes, max {WORD_BYTES_MAX} bytes)", t.word.len())));
            }
            lexemes.push(Lexeme { word: t.word, places: t.places });
        }
        TsVector::of(lexemes)
    }

    pub fn print(&self, out: &mut String) {
        for (i, l) in self.0.iter().enumerate() {
            if i > 0 {
                out.push(' ');
            }
            quote(&l.word, out);
            for (j, p) in l.places.iter().enumerate() {
                out.push(if j == 0 { ':' } else { ',' });
                out.push_str(&p.pos.to_string());
                out.push_str(["", "C", "B", "A"][usize::from(p.weight & 3)]);
            }
        }
    }
}
