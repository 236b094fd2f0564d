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

fn syntax(at: Option<&str>) -> SqlError {
    let m = match at {
        Some(t) => format!("syntax error at or near \"{t}\" of jsonpath input"),
        None => "syntax error at end of jsonpath input".to_owned(),
    };
    SqlError::new(state::SYNTAX_ERROR, m)
}

const SYMBOLS: &[&str] =
    &["**", "&&", "||", "==", "!=", "<>", "<=", ">=", "<", ">", "!", "$", "@", ".", "*", "[", "]", "(", ")", "{", "}", ",", "?", "+", "-", "/", "%"];

fn lex(text: &str) -> Result<Vec<Token>, SqlError> {
    let mut out = Vec::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        if c.is_ascii_whitespace() {
            rest = &rest[1..];
        } else if rest.starts_with("/*") {
            let end = rest.find("*/").ok_or_else(|| SqlError::new(state::SYNTAX_ERROR, "unexpected end of comment at end of jsonpath input"))?;
            rest = &rest[end + 2..];
        } else if c == '"' {
            let (s, n) = quoted(rest)?;
            out.push(Token::String(s));
            rest = &rest[n..];
        } else if c == '$' && rest[1..].starts_with('"') {
            let (s, n) = quoted(&rest[1..])?;
            out.push(Token::Variable(s));
            rest = &rest[1 + n..];
        } else if c == '$' && rest[1..].starts_with(|c: char| c.is_alphanumeric() || c == '_') {
            let n = word_len(&rest[1..]);
            out.push(Token::Variable(rest[1..1 + n].to_owned()));
            rest = &rest[1 + n..];
        } else if c.is_ascii_digit() || (c == '.' && rest[1..].starts_with(|c: char| c.is_ascii_digit())) {
            let n = number_len(rest);
            if rest[n..].starts_with(|c: char| c.is_alphanumeric() || c == '_') {
                let end = n + word_len(&rest[n..]);
                return Err(SqlError::new(
                    state::SYNTAX_ERROR,
                    format!("trailing junk after numeric literal at or near \"{}\" of jsonpath input", &rest[..end]),
                ));
            }
            out.push(Token::Number(rest[..n].to_owned()));
            rest = &rest[n..];
        } else if let Some(sym) = SYMBOLS.iter().find(|s| rest.starts_with(**s)) {
            out.push(Token::Sym(if *sym == "<>" { "!=" } else { sym }));
            rest = &rest[sym.len()..];
        } else if c.is_alphanumeric() || c == '_' || c == '\\' {
            let n = word_len(rest);
            if n == 0 {
                return Err(syntax(Some(&rest[..c.len_utf8()])));
            }
            out.push(Token::Word(rest[..n].to_owned()));
            rest = &rest[n..];
        } else {
            return Err(syntax(Some(&rest[..c.len_utf8()])));
        }
    }
    Ok(out)
}

fn word_len(s: &str) -> usize {
    s.find(|c: char| !(c.is_alphanumeric() || c == '_' || c == '$')).unwrap_or(s.len())
}

fn number_len(s: &str) -> usize {
    let b = s.as_bytes();
    let digits = |mut i: usize| {
        while b.get(i).is_some_and(u8::is_ascii_digit) {
            i += 1;
        }
        i
    };
    let mut n = digits(0);
    if b.get(n) == Some(&b'.') && b.get(n + 1) != Some(&b'.') {
        n = digits(n + 1);
    }
    if matches!(b.get(n), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(b.get(n + 1), Some(b'+' | b'-')));
        if b.get(n + 1 + sign).is_some_and(u8::is_ascii_digit) {
            n = digits(n + 1 + sign);
        }
    }
    n
}

/// A string literal at the start of `s`: its contents and length. Escapes are those of JSON and `\v`, `\xHH`, `\u{H}`, `\'`.
fn quoted(s: &str) -> Result<(String, usize), SqlError> {
    let ended = || SqlError::new(state::SYNTAX_ERROR, "unexpected end of quoted string at end of jsonpath input");
    let mut out = String::new();
    let mut high: Option<u32> = None;
    let mut it = s.char_indices().skip(1).peekable();
    while let Some((i, c)) = it.next() {
        match c {
            '"' => return Ok((out, i + 1)),
            '\\' => {
                let (_, e) = it.next().ok_or_else(ended)?;
                let mut hex = |n: usize| -> Result<u32, SqlError> {
                    let mut v = 0;
                    for _ in 0..n {
                        let d = it.next().and_then(|(_, c)| c.to_digit(16));
                        v = v * 16
                            + d.ok_or_else(|| SqlError::new(state::SYNTAX_ERROR, "invalid Unicode escape sequence at or near \"\\u\" of jsonpath input"))?;
                    }
                    Ok(v)
                };
                match e {
                    'b' => out.push('\x08'),
                    'f' => out.push('\x0c'),
                    'n' => out.push('\n'),
                    'r' => out.push('\r'),
                    't' => out.push('\t'),
                    'v' => out.push('\x0b'),
                    'x' => {
                        let v = hex(2)?;
                        out.extend(char::from_u32(v));
                    }
                    'u' => {
                        let v = hex(4)?;
                        match (v, high.take()) {
                            (0, _) => {
                                return Err(SqlError::new(state::UNTRANSLATABLE_CHARACTER, "unsupported Unicode escape sequence")
                                    .with_detail("\\u0000 cannot be converted to text."))
                            }
                            (0xd800..=0xdbff, None) => high = Some(v),
                            (0xdc00..=0xdfff, Some(h)) => out.extend(char::from_u32(0x10000 + ((h - 0xd800) << 10) + (v - 0xdc00))),
                            (v, _) => out.extend(char::from_u32(v)),
                        }
                    }
                    other => out.push(other),
                }
            }
            c => out.push(c),
        }
    }
    Err(ended())
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
    if text.trim().is_empty() {
        return Err(SqlError::new(state::INVALID_TEXT_REPRESENTATION, format!("invalid input syntax for type jsonpath: \"{text}\"")));
    }
    let mut p = Parser { tokens: lex(text)?, at: 0, depth: 0, filters: 0, subscripts: 0 };
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
        let e = self.or()?;
        self.expect(")")?;
        Ok(Expr::Exists(Box::new(e)))
    }

    fn compare(&mut self) -> Result<Expr, SqlError> {
        let l = self.add()?;
        for (s, op) in [("==", Op::Eq), ("!=", Op::Ne), ("<=", Op::Le), (">=", Op::Ge), ("<", Op::Lt), (">", Op::Gt)] {
            if self.sym(s) {
                return Ok(Self::binary(op, l, self.add()?));
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
                    if c == 'x' {
                        let m = "XQuery \"x\" flag (expanded regular expressions) is not implemented";
                        return Err(SqlError::new(state::FEATURE_NOT_SUPPORTED, m));
                    }
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
            let op = match () {
                _ if self.sym("+") => Op::Add,
                _ if self.sym("-") => Op::Sub,
                _ => return Ok(l),
            };
            l = Self::binary(op, l, self.mul()?);
        }
    }

    fn mul(&mut self) -> Result<Expr, SqlError> {
        let mut l = self.unary()?;
        loop {
            let op = match () {
                _ if self.sym("*") => Op::Mul,
                _ if self.sym("/") => Op::Div,
                _ if self.sym("%") => Op::Mod,
                _ => return Ok(l),
            };
            l = Self::binary(op, l, self.unary()?);
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
                e => Expr::Neg(Box::new(e)),
            }
        } else if self.sym("+") {
            match self.unary()? {
                Expr::Number(n) => Expr::Number(n),
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
            Some(Token::Word(w)) => match w.to_ascii_lowercase().as_str() {
                "null" => Expr::Null,
                "true" => Expr::Bool(true),
                "false" => Expr::Bool(false),
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
                if self.word("is") {
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
                    let from = self.add()?;
                    let to = if self.word("to") { Some(self.add()?) } else { None };
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
        let method = match name.as_str() {
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
                let v = n.parse().map_err(|_| self.unexpected())?;
                self.at += 1;
                Ok(Some(v))
            }
            _ => Err(self.unexpected()),
        }
    }
}
