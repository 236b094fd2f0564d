//! The grammar of jsonpath, by recursive descent.
//!
//! Errors: 42601 `syntax error at or near "x" of jsonpath input`, as Postgres words it.

use super::{Expr, Method, Op, Path, Step};
use crate::error::{state, SqlError};
use crate::numeric::Numeric;

/// Nesting that the stack bears.
const DEPTH_MAX: usize = 200;

#[derive(Clone, Debug, PartialEq)]
enum Token {
    /// A bare word: a key, a keyword or a method.
    Word(String),
    String(String),
    Variable(String),
    Number(String),
    Sym(&'static str),
}

fn syntax(near: Option<&str>) -> SqlError {
    at("syntax error", near.unwrap_or(""))
}

const SYMBOLS: &[&str] = &[
    "**", "&&", "||", "==", "!=", "<>", "<=", ">=", "<", ">", "!", "$", "@", ".", "*", "[", "]", "(", ")", "{", "}", ",", "?", "+", "-", "/", "%", "|", "&",
    "=", "#", ":",
];

/// An error that names the text where it is, or the end.
fn at(message: &str, near: &str) -> SqlError {
    let place = if near.is_empty() { "at end".to_owned() } else { format!("at or near \"{near}\"") };
    SqlError::new(state::SYNTAX_ERROR, format!("{message} {place} of jsonpath input"))
}

fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | '\r' | '\x0c')
}

/// What a bare word consists of: all that means nothing else.
fn in_word(c: char) -> bool {
    !is_blank(c) && !"?%$.[]{}()|&!=<>@#,*:-+/\\\"".contains(c)
}

fn lex(text: &str) -> Result<Vec<Token>, SqlError> {
    let mut out = Vec::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        if is_blank(c) {
            rest = &rest[1..];
        } else if rest.starts_with("/*") {
            let end = rest[2..].find("*/").ok_or_else(|| at("unexpected end of comment", ""))?;
            rest = &rest[2 + end + 2..];
        } else if c == '"' {
            let (s, n) = quoted(rest)?;
            out.push(Token::String(s));
            rest = &rest[n..];
        } else if c == '$' && rest[1..].starts_with('"') {
            let (s, n) = quoted(&rest[1..])?;
            out.push(Token::Variable(s));
            rest = &rest[1 + n..];
        } else if c == '$' && rest[1..].starts_with(in_word) {
            let n = word_len(&rest[1..]);
            out.push(Token::Variable(rest[1..1 + n].to_owned()));
            rest = &rest[1 + n..];
        } else if let Some((token, n)) = number(rest)? {
            out.push(token);
            rest = &rest[n..];
        } else if in_word(c) || c == '\\' {
            let mut word = String::new();
            loop {
                let n = word_len(rest);
                word.push_str(&rest[..n]);
                rest = &rest[n..];
                if !rest.starts_with('\\') {
                    break;
                }
                rest = &rest[escape(rest, &mut word)?..];
            }
            out.push(Token::Word(word));
        } else if let Some(sym) = SYMBOLS.iter().find(|s| rest.starts_with(**s)) {
            out.push(Token::Sym(if *sym == "<>" { "!=" } else { sym }));
            rest = &rest[sym.len()..];
        } else {
            return Err(syntax(Some(&rest[..c.len_utf8()])));
        }
    }
    Ok(out)
}

fn word_len(s: &str) -> usize {
    s.find(|c: char| !in_word(c)).unwrap_or(s.len())
}

/// A number at the start of `s`, and its length. As in Postgres the longest reading wins: `000` is a word, and `00` a number with junk behind it.
fn number(s: &str) -> Result<Option<(Token, usize)>, SqlError> {
    let b = s.as_bytes();
    let digits = |from: usize| from + b.get(from..).unwrap_or_default().iter().take_while(|d| d.is_ascii_digit()).count();
    // A zero begins no longer integer.
    let integer = if b.first() == Some(&b'0') { 1 } else { digits(0) };
    let decimal = match (b.get(integer), digits(integer + 1)) {
        (Some(b'.'), end) if integer > 0 || end > 1 => end,
        _ => 0,
    };
    let mantissa = decimal.max(integer);
    if mantissa == 0 {
        return Ok(None);
    }
    let mut end = mantissa;
    if matches!(b.get(mantissa), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(b.get(mantissa + 1), Some(b'+' | b'-')));
        let exponent = digits(mantissa + 1 + sign);
        if exponent > mantissa + 1 + sign {
            end = exponent;
        } else if sign == 1 {
            return Err(at("invalid numeric literal", &s[..mantissa + 2]));
        }
    }
    let junk = s[end..].chars().next().filter(|c| in_word(*c)).map_or(0, char::len_utf8);
    let word = word_len(s);
    match () {
        _ if word > end + junk => Ok(None),
        _ if junk > 0 => Err(at("trailing junk after numeric literal", &s[..end + junk])),
        _ => Ok(Some((Token::Number(s[..end].to_owned()), end))),
    }
}

fn unpaired(detail: &str) -> SqlError {
    SqlError::new(state::INVALID_TEXT_REPRESENTATION, "invalid input syntax for type jsonpath").with_detail(detail)
}

/// Adds what a code point stands for.
fn push_code(code: u32, out: &mut String) -> Result<(), SqlError> {
    match char::from_u32(code) {
        Some('\0') => {
            Err(SqlError::new(state::UNTRANSLATABLE_CHARACTER, "unsupported Unicode escape sequence").with_detail("\\u0000 cannot be converted to text."))
        }
        Some(c) => {
            out.push(c);
            Ok(())
        }
        None => Err(SqlError::new(state::SYNTAX_ERROR, "invalid Unicode code point")),
    }
}

/// The code of `\uHHHH` or `\u{H}` at the start of `s`, and the escape's length.
fn unicode(s: &str) -> Result<Option<(u32, usize)>, SqlError> {
    let Some(rest) = s.strip_prefix("\\u") else { return Ok(None) };
    let bad = |used: usize| at("invalid unicode sequence", &s[..used]);
    let (skip, max) = if rest.starts_with('{') { (1, 6) } else { (0, 4) };
    let n = rest[skip..].bytes().take(max).take_while(u8::is_ascii_hexdigit).count();
    let closed = if skip == 1 { n > 0 && rest[skip + n..].starts_with('}') } else { n == 4 };
    match u32::from_str_radix(&rest[skip..skip + n], 16) {
        Ok(code) if closed => Ok(Some((code, 2 + skip + n + skip))),
        _ => Err(bad(2 + skip + n)),
    }
}

/// Adds what the escape at the start of `s` stands for, and tells its length. Escapes are those of JSON and `\v`, `\xHH`, `\u{H}`; any other
/// character stands for itself. Surrogates come in pairs, one after the other.
fn escape(s: &str, out: &mut String) -> Result<usize, SqlError> {
    let mut used = 0;
    let mut high: Option<u32> = None;
    while let Some((code, n)) = unicode(&s[used..])? {
        used += n;
        match (code, high.take()) {
            (0xd800..=0xdbff, None) => high = Some(code),
            (0xd800..=0xdbff, Some(_)) => return Err(unpaired("Unicode high surrogate must not follow a high surrogate.")),
            (0xdc00..=0xdfff, Some(h)) => push_code(0x10000 + ((h - 0xd800) << 10) + (code - 0xdc00), out)?,
            (0xdc00..=0xdfff, None) | (_, Some(_)) => return Err(unpaired("Unicode low surrogate must follow a high surrogate.")),
            (code, None) => push_code(code, out)?,
        }
    }
    if high.is_some() {
        return Err(unpaired("Unicode low surrogate must follow a high surrogate."));
    }
    if used > 0 {
        return Ok(used);
    }
    let c = s[1..].chars().next().filter(|c| *c != '\n').ok_or_else(|| at("unexpected end after backslash", "\\"))?;
    out.push(match c {
        'b' => '\x08',
        'f' => '\x0c',
        'n' => '\n',
        'r' => '\r',
        't' => '\t',
        'v' => '\x0b',
        'x' => {
            let n = s[2..].bytes().take(2).take_while(u8::is_ascii_hexdigit).count();
            return match u32::from_str_radix(&s[2..2 + n], 16) {
                Ok(code) if n == 2 => push_code(code, out).map(|()| 4),
                _ => Err(at("invalid hex character sequence", &s[..2 + n])),
            };
        }
        c => c,
    });
    Ok(1 + c.len_utf8())
}

/// A string literal at the start of `s`: its contents and length.
fn quoted(s: &str) -> Result<(String, usize), SqlError> {
    let mut out = String::new();
    let mut used = 1;
    loop {
        let rest = &s[used..];
        let Some(n) = rest.find(['"', '\\']) else { return Err(at("unexpected end of quoted string", "")) };
        out.push_str(&rest[..n]);
        used += n;
        if rest[n..].starts_with('"') {
            return Ok((out, used + 1));
        }
        used += escape(&s[used..], &mut out)?;
    }
}

struct Parser {
    tokens: Vec<Token>,
    at: usize,
    depth: usize,
    /// Filters and subscripts around the cursor: where `@` and `last` mean something.
    filters: usize,
    subscripts: usize,
}

fn is_predicate(e: &Expr) -> bool {
    match e {
        Expr::Binary(op, ..) => !matches!(op, Op::Add | Op::Sub | Op::Mul | Op::Div | Op::Mod),
        Expr::Not(_) | Expr::IsUnknown(_) | Expr::Exists(_) | Expr::LikeRegex { .. } => true,
        _ => false,
    }
}

/// Parses a path.
pub fn parse(text: &str) -> Result<Path, SqlError> {
    let tokens = lex(text)?;
    if tokens.is_empty() {
        return Err(SqlError::new(state::INVALID_TEXT_REPRESENTATION, format!("invalid input syntax for type jsonpath: \"{text}\"")));
    }
    let mut p = Parser { tokens, at: 0, depth: 0, filters: 0, subscripts: 0 };
    let strict = p.word("strict");
    if !strict {
        p.word("lax");
    }
    let expr = p.or()?;
    match p.at == p.tokens.len() {
        true => Ok(Path { strict, expr }),
        false => Err(p.unexpected()),
    }
}

impl Parser {
    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.at)
    }

    fn unexpected(&self) -> SqlError {
        syntax(match self.peek() {
            None => None,
            Some(Token::Word(w) | Token::String(w) | Token::Variable(w) | Token::Number(w)) => Some(w),
            Some(Token::Sym(s)) => Some(s),
        })
    }

    fn peek_sym(&self, s: &str) -> bool {
        matches!(self.peek(), Some(Token::Sym(t)) if *t == s)
    }

    fn sym(&mut self, s: &str) -> bool {
        let hit = self.peek_sym(s);
        self.at += usize::from(hit);
        hit
    }

    fn expect(&mut self, s: &str) -> Result<(), SqlError> {
        match self.sym(s) {
            true => Ok(()),
            false => Err(self.unexpected()),
        }
    }

    fn word(&mut self, w: &str) -> bool {
        let hit = matches!(self.peek(), Some(Token::Word(t)) if t.eq_ignore_ascii_case(w));
        self.at += usize::from(hit);
        hit
    }

    fn binary(op: Op, l: Expr, r: Expr) -> Expr {
        Expr::Binary(op, Box::new(l), Box::new(r))
    }

    fn or(&mut self) -> Result<Expr, SqlError> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(SqlError::new(state::STATEMENT_TOO_COMPLEX, "stack depth limit exceeded"));
        }
        let mut l = self.and()?;
        while self.peek_sym("||") {
            l = self.connective(Op::Or, l, Self::and)?;
        }
        self.depth -= 1;
        Ok(l)
    }

    fn and(&mut self) -> Result<Expr, SqlError> {
        let mut l = self.not()?;
        while self.peek_sym("&&") {
            l = self.connective(Op::And, l, Self::not)?;
        }
        Ok(l)
    }

    /// The sign of AND or OR and its right side; both sides must be predicates.
    fn connective(&mut self, op: Op, left: Expr, right: fn(&mut Parser) -> Result<Expr, SqlError>) -> Result<Expr, SqlError> {
        if !is_predicate(&left) {
            return Err(self.unexpected());
        }
        self.at += 1;
        let right = right(self)?;
        match is_predicate(&right) {
            true => Ok(Self::binary(op, left, right)),
            false => Err(self.unexpected()),
        }
    }

    fn not(&mut self) -> Result<Expr, SqlError> {
        if self.sym("!") {
            // Only a predicate in parentheses or EXISTS can be negated.
            if !matches!(self.peek(), Some(Token::Sym("("))) && !matches!(self.peek(), Some(Token::Word(w)) if w.eq_ignore_ascii_case("exists")) {
                return Err(self.unexpected());
            }
            let inner = if self.sym("(") {
                let e = self.or()?;
                if !is_predicate(&e) {
                    return Err(self.unexpected());
                }
                self.expect(")")?;
                e
            } else {
                self.exists()?
            };
            return Ok(Expr::Not(Box::new(inner)));
        }
        self.compare()
    }

    fn exists(&mut self) -> Result<Expr, SqlError> {
        self.word("exists");
        self.expect("(")?;
        let e = self.value()?;
        self.expect(")")?;
        Ok(Expr::Exists(Box::new(e)))
    }

    /// A value: what [`Parser::add`] reads, unless it is a predicate.
    fn value(&mut self) -> Result<Expr, SqlError> {
        let e = self.add()?;
        match is_predicate(&e) {
            true => Err(self.unexpected()),
            false => Ok(e),
        }
    }

    fn compare(&mut self) -> Result<Expr, SqlError> {
        let l = self.add()?;
        if is_predicate(&l) {
            return Ok(l);
        }
        for (s, op) in [("==", Op::Eq), ("!=", Op::Ne), ("<=", Op::Le), (">=", Op::Ge), ("<", Op::Lt), (">", Op::Gt)] {
            if self.sym(s) {
                return Ok(Self::binary(op, l, self.value()?));
            }
        }
        if self.word("starts") {
            if !self.word("with") {
                return Err(self.unexpected());
            }
            let r = match self.peek() {
                Some(Token::String(_) | Token::Variable(_)) => self.primary()?,
                _ => return Err(self.unexpected()),
            };
            return Ok(Self::binary(Op::StartsWith, l, r));
        }
        if self.word("like_regex") {
            let Some(Token::String(pattern)) = self.peek().cloned() else { return Err(self.unexpected()) };
            self.at += 1;
            let mut flags = String::new();
            if self.word("flag") {
                let Some(Token::String(f)) = self.peek().cloned() else { return Err(self.unexpected()) };
                self.at += 1;
                for c in f.chars() {
                    if !"ismxq".contains(c) {
                        let m = "invalid input syntax for type jsonpath";
                        return Err(SqlError::new(state::SYNTAX_ERROR, m).with_detail(format!("Unrecognized flag character \"{c}\" in LIKE_REGEX predicate.")));
                    }
                }
                // With q the others but i mean nothing.
                if f.contains('x') && !f.contains('q') {
                    let m = "XQuery \"x\" flag (expanded regular expressions) is not implemented";
                    return Err(SqlError::new(state::FEATURE_NOT_SUPPORTED, m));
                }
                // In one order, each once.
                flags = "ismxq".chars().filter(|c| f.contains(*c)).collect();
            }
            return Ok(Expr::LikeRegex { value: Box::new(l), pattern, flags });
        }
        Ok(l)
    }

    fn add(&mut self) -> Result<Expr, SqlError> {
        let mut l = self.mul()?;
        loop {
            if is_predicate(&l) {
                return Ok(l);
            }
            let op = match () {
                _ if self.sym("+") => Op::Add,
                _ if self.sym("-") => Op::Sub,
                _ => return Ok(l),
            };
            let r = self.mul()?;
            if is_predicate(&r) {
                return Err(self.unexpected());
            }
            l = Self::binary(op, l, r);
        }
    }

    fn mul(&mut self) -> Result<Expr, SqlError> {
        let mut l = self.unary()?;
        loop {
            if is_predicate(&l) {
                return Ok(l);
            }
            let op = match () {
                _ if self.sym("*") => Op::Mul,
                _ if self.sym("/") => Op::Div,
                _ if self.sym("%") => Op::Mod,
                _ => return Ok(l),
            };
            let r = self.unary()?;
            if is_predicate(&r) {
                return Err(self.unexpected());
            }
            l = Self::binary(op, l, r);
        }
    }

    fn unary(&mut self) -> Result<Expr, SqlError> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(SqlError::new(state::STATEMENT_TOO_COMPLEX, "stack depth limit exceeded"));
        }
        let out = if self.sym("-") {
            match self.unary()? {
                Expr::Number(n) => Expr::Number(n.neg()),
                e if is_predicate(&e) => return Err(self.unexpected()),
                e => Expr::Neg(Box::new(e)),
            }
        } else if self.sym("+") {
            match self.unary()? {
                Expr::Number(n) => Expr::Number(n),
                e if is_predicate(&e) => return Err(self.unexpected()),
                e => Expr::Pos(Box::new(e)),
            }
        } else {
            self.accessors()?
        };
        self.depth -= 1;
        Ok(out)
    }

    fn primary(&mut self) -> Result<Expr, SqlError> {
        let token = self.peek().cloned();
        let out = match token {
            Some(Token::Sym("$")) => Expr::Root,
            Some(Token::Sym("@")) if self.filters == 0 => return Err(SqlError::new(state::SYNTAX_ERROR, "@ is not allowed in root expressions")),
            Some(Token::Sym("@")) => Expr::Current,
            Some(Token::Variable(v)) => Expr::Variable(v),
            Some(Token::String(s)) => Expr::String(s),
            Some(Token::Number(n)) => Expr::Number(Numeric::parse(&n)?),
            Some(Token::Word(w)) if matches!(w.as_str(), "null" | "true" | "false") => match w.as_str() {
                "null" => Expr::Null,
                w => Expr::Bool(w == "true"),
            },
            Some(Token::Word(w)) => match w.to_ascii_lowercase().as_str() {
                "last" if self.subscripts == 0 => {
                    return Err(SqlError::new(state::SYNTAX_ERROR, "LAST is allowed only in array subscripts"));
                }
                "last" => Expr::Last,
                "exists" => return self.exists(),
                _ => return Err(self.unexpected()),
            },
            Some(Token::Sym("(")) => {
                self.at += 1;
                let e = self.or()?;
                self.expect(")")?;
                if is_predicate(&e) && self.word("is") {
                    if !self.word("unknown") {
                        return Err(self.unexpected());
                    }
                    return Ok(Expr::IsUnknown(Box::new(e)));
                }
                return Ok(e);
            }
            _ => return Err(self.unexpected()),
        };
        self.at += 1;
        Ok(out)
    }

    fn accessors(&mut self) -> Result<Expr, SqlError> {
        let head = self.primary()?;
        let mut steps = Vec::new();
        loop {
            if self.sym(".") {
                if self.sym("**") {
                    steps.push(self.descend()?);
                } else if self.sym("*") {
                    steps.push(Step::AnyKey);
                } else {
                    steps.push(self.member()?);
                }
            } else if self.sym("[") {
                if self.sym("*") {
                    self.expect("]")?;
                    steps.push(Step::AnyElement);
                    continue;
                }
                let mut list = Vec::new();
                self.subscripts += 1;
                loop {
                    let from = self.value()?;
                    let to = if self.word("to") { Some(self.value()?) } else { None };
                    list.push((from, to));
                    if !self.sym(",") {
                        break;
                    }
                }
                self.subscripts -= 1;
                self.expect("]")?;
                steps.push(Step::Elements(list));
            } else if self.sym("?") {
                self.expect("(")?;
                self.filters += 1;
                let p = self.or()?;
                self.filters -= 1;
                if !is_predicate(&p) {
                    return Err(self.unexpected());
                }
                self.expect(")")?;
                steps.push(Step::Filter(p));
            } else {
                break;
            }
        }
        Ok(match (head, steps.is_empty()) {
            (head, true) => head,
            (Expr::Chain(h, mut before), false) => {
                before.extend(steps);
                Expr::Chain(h, before)
            }
            (head, false) => Expr::Chain(Box::new(head), steps),
        })
    }

    /// A key or a method.
    fn member(&mut self) -> Result<Step, SqlError> {
        let name = match self.peek().cloned() {
            Some(Token::String(s)) => {
                self.at += 1;
                return Ok(Step::Key(s));
            }
            Some(Token::Word(w)) => w,
            _ => return Err(self.unexpected()),
        };
        self.at += 1;
        if !matches!(self.peek(), Some(Token::Sym("("))) {
            return Ok(Step::Key(name));
        }
        let method = match name.to_ascii_lowercase().as_str() {
            "abs" => Method::Abs,
            "size" => Method::Size,
            "type" => Method::Type,
            "floor" => Method::Floor,
            "double" => Method::Double,
            "ceiling" => Method::Ceiling,
            "keyvalue" => Method::KeyValue,
            "datetime" => {
                self.expect("(")?;
                let template = match self.peek().cloned() {
                    Some(Token::String(s)) => {
                        self.at += 1;
                        Some(s)
                    }
                    _ => None,
                };
                self.expect(")")?;
                return Ok(Step::Datetime(template));
            }
            _ => return Err(self.unexpected()),
        };
        self.expect("(")?;
        self.expect(")")?;
        Ok(Step::Method(method))
    }

    fn descend(&mut self) -> Result<Step, SqlError> {
        if !self.sym("{") {
            return Ok(Step::Descend(Some(0), None));
        }
        let from = self.level()?;
        let to = if self.word("to") { self.level()? } else { from };
        self.expect("}")?;
        Ok(Step::Descend(from, to))
    }

    /// A depth; `None` is `last`.
    fn level(&mut self) -> Result<Option<u32>, SqlError> {
        if self.word("last") {
            return Ok(None);
        }
        match self.peek() {
            Some(Token::Number(n)) => {
                if !n.bytes().all(|b| b.is_ascii_digit()) {
                    return Err(self.unexpected());
                }
                let level: i32 =
                    n.parse().map_err(|_| SqlError::new(state::NUMERIC_VALUE_OUT_OF_RANGE, format!("value \"{n}\" is out of range for type integer")))?;
                self.at += 1;
                Ok(Some(level.unsigned_abs()))
            }
            _ => Err(self.unexpected()),
        }
    }
}
