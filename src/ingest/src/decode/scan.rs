//! A JSON scanner over one record: finds members, numbers and strings in place, and checks every byte.
//!
//! Accepts exactly RFC 8259 (lone surrogates refused, as Postgres and serde_json do). Nothing is built: a value is a
//! range of the record, a string with escapes is unescaped into the scratch string.
//! Not here: what a value means in a column (`json`).

use super::cell::Place;

/// Nesting that is accepted; a record beyond it is undecodable, not a stack overflow.
const DEPTH_MAX: usize = 512;

pub struct Scanner<'a> {
    text: &'a str,
    b: &'a [u8],
    pub pos: usize,
    /// Where the record itself lies, for the ranges that are given out.
    place: Place,
}

/// A piece of text in one of the buffers.
pub type Span = (Place, u32, u32);

impl<'a> Scanner<'a> {
    pub fn new(text: &'a str, place: Place, pos: usize) -> Scanner<'a> {
        Scanner { text, b: text.as_bytes(), pos, place }
    }

    pub fn text(&self) -> &'a str {
        self.text
    }

    pub fn span(&self, start: usize, end: usize) -> Span {
        (self.place, start as u32, end as u32)
    }

    /// The text of a span of this record or of `scratch`.
    pub fn resolve<'s>(&self, span: Span, scratch: &'s str) -> &'s str
    where
        'a: 's,
    {
        let range = span.1 as usize..span.2 as usize;
        if span.0 == Place::Scratch {
            &scratch[range]
        } else {
            &self.text[range]
        }
    }

    pub fn error(&self, what: &str) -> String {
        if self.pos >= self.b.len() {
            format!("invalid JSON: it ends where {what} is expected")
        } else {
            format!("invalid JSON at byte {}: expected {what}", self.pos)
        }
    }

    #[inline]
    pub fn space(&mut self) {
        while let Some(b' ' | b'\n' | b'\t' | b'\r') = self.b.get(self.pos) {
            self.pos += 1;
        }
    }

    /// The next byte that is not space, not consumed.
    #[inline]
    pub fn peek(&mut self) -> Option<u8> {
        self.space();
        self.b.get(self.pos).copied()
    }

    /// Consumes `byte` if it is next.
    #[inline]
    pub fn eat(&mut self, byte: u8) -> bool {
        let hit = self.peek() == Some(byte);
        self.pos += usize::from(hit);
        hit
    }

    pub fn expect(&mut self, byte: u8, what: &str) -> Result<(), String> {
        if self.eat(byte) {
            Ok(())
        } else {
            Err(self.error(what))
        }
    }

    /// Nothing but space may follow.
    pub fn end(&mut self) -> Result<(), String> {
        match self.peek() {
            None => Ok(()),
            Some(_) => Err(self.error("the end of the record")),
        }
    }

    /// After a member's name and colon, or an element: whether another one follows. `close` ends it.
    #[inline]
    pub fn another(&mut self, close: u8) -> Result<bool, String> {
        match self.peek() {
            Some(b',') => {
                self.pos += 1;
                Ok(true)
            }
            Some(c) if c == close => {
                self.pos += 1;
                Ok(false)
            }
            _ => Err(self.error(if close == b'}' { "\",\" or \"}\"" } else { "\",\" or \"]\"" })),
        }
    }

    /// A string at the cursor, unescaped: in place if it has no escapes.
    pub fn string(&mut self, scratch: &mut String) -> Result<Span, String> {
        self.expect(b'"', "a string")?;
        let start = self.pos;
        self.plain_run();
        if self.b.get(self.pos) == Some(&b'"') {
            self.pos += 1;
            return Ok(self.span(start, self.pos - 1));
        }
        let at = scratch.len();
        scratch.push_str(&self.text[start..self.pos]);
        loop {
            match self.b.get(self.pos) {
                Some(b'"') => {
                    self.pos += 1;
                    return Ok((Place::Scratch, at as u32, scratch.len() as u32));
                }
                Some(b'\\') => scratch.push(self.escape()?),
                _ => return Err(self.error("a character of a string")),
            }
            let run = self.pos;
            self.plain_run();
            scratch.push_str(&self.text[run..self.pos]);
        }
    }

    /// Moves over characters that need no care.
    #[inline]
    fn plain_run(&mut self) {
        while let Some(eight) = self.b[self.pos..].first_chunk::<8>() {
            let special = special(u64::from_le_bytes(*eight));
            if special != 0 {
                self.pos += special.trailing_zeros() as usize / 8;
                return;
            }
            self.pos += 8;
        }
        while let Some(c) = self.b.get(self.pos) {
            if *c < 0x20 || *c == b'"' || *c == b'\\' {
                return;
            }
            self.pos += 1;
        }
    }

    fn skip_string(&mut self) -> Result<(), String> {
        self.pos += 1;
        loop {
            self.plain_run();
            match self.b.get(self.pos) {
                Some(b'"') => {
                    self.pos += 1;
                    return Ok(());
                }
                Some(b'\\') => {
                    self.escape()?;
                }
                _ => return Err(self.error("a character of a string")),
            }
        }
    }

    /// One escape sequence, with the cursor at its backslash.
    fn escape(&mut self) -> Result<char, String> {
        let c = match self.b.get(self.pos + 1) {
            Some(b'"') => '"',
            Some(b'\\') => '\\',
            Some(b'/') => '/',
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => {
                let high = self.hex4(self.pos + 2)?;
                self.pos += 6;
                if !(0xd800..0xe000).contains(&high) {
                    return char::from_u32(high).ok_or_else(|| self.error("a Unicode character"));
                }
                if high >= 0xdc00 || self.b.get(self.pos) != Some(&b'\\') || self.b.get(self.pos + 1) != Some(&b'u') {
                    return Err("invalid JSON: a surrogate stands alone in a string".into());
                }
                let low = self.hex4(self.pos + 2)?;
                if !(0xdc00..0xe000).contains(&low) {
                    return Err("invalid JSON: a surrogate stands alone in a string".into());
                }
                self.pos += 6;
                let code = 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00);
                return char::from_u32(code).ok_or_else(|| self.error("a Unicode character"));
            }
            _ => {
                self.pos += 1;
                return Err(self.error("an escape sequence"));
            }
        };
        self.pos += 2;
        Ok(c)
    }

    fn hex4(&self, at: usize) -> Result<u32, String> {
        let mut v = 0;
        for i in 0..4 {
            let digit = self.b.get(at + i).and_then(|c| (*c as char).to_digit(16)).ok_or("invalid JSON: \\u is not followed by four hexadecimal digits")?;
            v = v * 16 + digit;
        }
        Ok(v)
    }

    /// A number at the cursor: its end is the cursor's new place; true if it is an integer without fraction and exponent.
    pub fn number(&mut self) -> Result<bool, String> {
        let digits = |s: &mut Self| {
            let from = s.pos;
            while s.b.get(s.pos).is_some_and(u8::is_ascii_digit) {
                s.pos += 1;
            }
            s.pos > from
        };
        self.pos += usize::from(self.b.get(self.pos) == Some(&b'-'));
        if self.b.get(self.pos) == Some(&b'0') {
            self.pos += 1;
        } else if !digits(self) {
            return Err(self.error("a value"));
        }
        let mut integer = true;
        if self.b.get(self.pos) == Some(&b'.') {
            integer = false;
            self.pos += 1;
            if !digits(self) {
                return Err(self.error("a digit"));
            }
        }
        if matches!(self.b.get(self.pos), Some(b'e' | b'E')) {
            integer = false;
            self.pos += 1;
            self.pos += usize::from(matches!(self.b.get(self.pos), Some(b'+' | b'-')));
            if !digits(self) {
                return Err(self.error("a digit"));
            }
        }
        Ok(integer)
    }

    /// `true`, `false` or `null` at the cursor.
    pub fn literal(&mut self, word: &str) -> Result<(), String> {
        if self.b[self.pos..].starts_with(word.as_bytes()) {
            self.pos += word.len();
            Ok(())
        } else {
            Err(self.error("a value"))
        }
    }

    /// Any value: returns its span.
    pub fn value(&mut self) -> Result<Span, String> {
        self.space();
        let start = self.pos;
        self.skip(0)?;
        Ok(self.span(start, self.pos))
    }

    fn skip(&mut self, depth: usize) -> Result<(), String> {
        if depth > DEPTH_MAX {
            return Err(format!("JSON is nested deeper than {DEPTH_MAX} levels"));
        }
        match self.peek() {
            Some(b'"') => self.skip_string(),
            Some(b'{') => {
                self.pos += 1;
                if self.eat(b'}') {
                    return Ok(());
                }
                loop {
                    if self.peek() != Some(b'"') {
                        return Err(self.error("a member's name"));
                    }
                    self.skip_string()?;
                    self.expect(b':', "\":\"")?;
                    self.skip(depth + 1)?;
                    if !self.another(b'}')? {
                        return Ok(());
                    }
                }
            }
            Some(b'[') => {
                self.pos += 1;
                if self.eat(b']') {
                    return Ok(());
                }
                loop {
                    self.skip(depth + 1)?;
                    if !self.another(b']')? {
                        return Ok(());
                    }
                }
            }
            Some(b't') => self.literal("true"),
            Some(b'f') => self.literal("false"),
            Some(b'n') => self.literal("null"),
            Some(b'-' | b'0'..=b'9') => self.number().map(|_| ()),
            _ => Err(self.error("a value")),
        }
    }

    /// The members of the object at the cursor, by `visit(name, scanner)`, which consumes the value.
    pub fn object(&mut self, scratch: &mut String, mut visit: impl FnMut(&mut Self, Span, &mut String) -> Result<(), String>) -> Result<(), String> {
        self.expect(b'{', "an object")?;
        if self.eat(b'}') {
            return Ok(());
        }
        loop {
            if self.peek() != Some(b'"') {
                return Err(self.error("a member's name"));
            }
            let name = self.string(scratch)?;
            self.expect(b':', "\":\"")?;
            visit(self, name, scratch)?;
            if !self.another(b'}')? {
                return Ok(());
            }
        }
    }
}

/// The high bit of the first of eight bytes (the lowest first) that ends a run of plain characters, and maybe others behind it; 0 if none does.
#[inline]
fn special(eight: u64) -> u64 {
    const ONES: u64 = u64::MAX / 255;
    let below = |x: u64, n: u64| x.wrapping_sub(ONES * n) & !x;
    let is = |byte: u8| below(eight ^ (ONES * u64::from(byte)), 1);
    (below(eight, 0x20) | is(b'"') | is(b'\\')) & (ONES * 128)
}

/// Spans of the named members of an object: the last one of each name. `None` if the value at `pos` is `null`.
/// Errors: not an object, invalid JSON up to its end.
pub fn members<const N: usize>(scanner: &mut Scanner<'_>, scratch: &mut String, names: [&str; N]) -> Result<Option<[Option<Span>; N]>, String> {
    if scanner.peek() == Some(b'n') {
        scanner.literal("null")?;
        return Ok(None);
    }
    let mut found = [None; N];
    scanner.object(scratch, |s, name, scratch| {
        let hit = names.iter().position(|n| *n == s.resolve(name, scratch));
        let value = s.value()?;
        if let Some(i) = hit {
            found[i] = Some(value);
        }
        Ok(())
    })?;
    Ok(Some(found))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_of_plain_characters_ends_at_the_first_that_is_not() {
        let end = |text: &str| {
            let mut s = Scanner::new(text, Place::Value, 0);
            s.plain_run();
            s.pos
        };
        for before in 0..20 {
            for c in (0..128u8).map(char::from) {
                for filler in ["a", "\u{7f}", "\u{e9}", "\u{a0}"] {
                    let text = format!("{}{c}{}", filler.repeat(before), "\u{1f}\"x".repeat(5));
                    let expected = text.bytes().position(|b| b < 0x20 || b == b'"' || b == b'\\').unwrap_or(text.len());
                    assert_eq!(end(&text), expected, "{text:?}");
                }
            }
        }
        assert_eq!(end("nothing special at all"), 22);
    }
}
