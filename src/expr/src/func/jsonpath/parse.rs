//! The jsonpath language: text to tree.
//!
//! ```text
//!   path      [lax | strict] expr
//!   expr      or ( || ), and ( && ), ! ( .. ), comparison, + - * / %, unary, primary accessor*
//!   primary   $  @  $name  last  literal  ( expr )  exists ( expr )
//!   accessor  .key  ."key"  .*  .**{m to n}  [*]  [a to b, ..]  .method()  ? ( filter )
//! ```
//!
//! Errors: 42601, in Postgres's words.

use crate::func::json_text::unquote;
use repr::error::state;
use repr::{Numeric, SqlError};

/// A parsed path.
#[derive(Clone, Debug)]
pub struct Path {
    pub strict: bool,
    pub root: Node,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cmp {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
}

#[derive(Clone, Debug)]
pub enum Node {
    Root,
    Current,
    Variable(String),
    Last,
    Null,
    Bool(bool),
    Number(Numeric),
    Text(String),
    /// Accessors applied to a base, in order.
    Chain(Box<Node>, Vec<Step>),
    Negate(Box<Node>),
    Plus(Box<Node>),
    Arith(char, Box<Node>, Box<Node>),
    Compare(Cmp, Box<Node>, Box<Node>),
    And(Box<Node>, Box<Node>),
    Or(Box<Node>, Box<Node>),
    Not(Box<Node>),
    Exists(Box<Node>),
    IsUnknown(Box<Node>),
    StartsWith(Box<Node>, Box<Node>),
    /// Pattern and flags.
    LikeRegex(Box<Node>, String, String),
}

#[derive(Clone, Debug)]
pub enum Step {
    Key(String),
    AnyKey,
    /// Levels `from` to `to`; `None` is the last.
    AnyDepth(Option<u32>, Option<u32>),
    AllItems,
    /// Subscripts, each one or a range.
    Items(Vec<(Node, Option<Node>)>),
    Method(String),
    Filter(Node),
}

#[derive(Clone, PartialEq, Debug)]
enum Tok {
    Word(String),
    Quoted(String),
    Number(String),
    Variable(String),
    Sym(&'static str),
    End,
}

/// Longer ones first.
const SYMBOLS: [&str; 28] =
    ["**", "==", "!=", "<>", "<=", ">=", "&&", "||", "$", "@", ".", "*", "[", "]", "(", ")", "{", "}", ",", "?", "!", "<", ">", "+", "-", "/", "%", "="];

fn syntax(near: &str) -> SqlError {
    let m = match near {
        "" => "syntax error at end of jsonpath input".to_owned(),
        n => format!("syntax error at or near \"{n}\" of jsonpath input"),
    };
    SqlError::new(state::SYNTAX_ERROR, m)
}

fn tokens(text: &str) -> Result<Vec<Tok>, SqlError> {
    let mut out = Vec::new();
    let mut rest = text;
    loop {
        rest = rest.trim_start();
        let Some(c) = rest.chars().next() else {
            out.push(Tok::End);
            return Ok(out);
        };
        if let Some(comment) = rest.strip_prefix("/*") {
            rest = comment.split_once("*/").ok_or_else(|| syntax(""))?.1;
            continue;
        }
        if c == '"' {
            let end = string_end(rest).ok_or_else(|| syntax(""))?;
            out.push(Tok::Quoted(unquote(&rest[..end])));
            rest = &rest[end..];
            continue;
        }
        if c == '$' && rest[1..].starts_with('"') {
            let end = string_end(&rest[1..]).ok_or_else(|| syntax(""))?;
            out.push(Tok::Variable(unquote(&rest[1..=end])));
            rest = &rest[1 + end..];
            continue;
        }
        let word_char = |c: char| c.is_alphanumeric() || c == '_' || !c.is_ascii();
        if c == '$' && rest[1..].starts_with(word_char) {
            let end = rest[1..].find(|c| !word_char(c)).map_or(rest.len(), |i| i + 1);
            out.push(Tok::Variable(rest[1..end].to_owned()));
            rest = &rest[end..];
            continue;
        }
        if c.is_ascii_digit() || (c == '.' && rest[1..].starts_with(|d: char| d.is_ascii_digit())) {
            let b = rest.as_bytes();
            let mut i = 0;
            while i < b.len()
                && (b[i].is_ascii_digit() || b[i] == b'.' || (matches!(b[i], b'+' | b'-') && matches!(b[i - 1], b'e' | b'E')) || matches!(b[i], b'e' | b'E'))
            {
                // `1.type()`: the dot begins an accessor.
                if b[i] == b'.' && b.get(i + 1).is_some_and(|n| !n.is_ascii_digit() && !matches!(n, b'e' | b'E')) {
                    break;
                }
                i += 1;
            }
            out.push(Tok::Number(rest[..i].to_owned()));
            rest = &rest[i..];
            continue;
        }
        if let Some(s) = SYMBOLS.iter().find(|s| rest.starts_with(**s)) {
            out.push(Tok::Sym(s));
            rest = &rest[s.len()..];
            continue;
        }
        if word_char(c) || c == '\\' {
            let end = rest.find(|c| !word_char(c) && c != '\\').unwrap_or(rest.len());
            out.push(Tok::Word(unquote(&format!("\"{}\"", &rest[..end]))));
            rest = &rest[end..];
            continue;
        }
        return Err(syntax(&c.to_string()));
    }
}

/// Bytes of the string literal that `s` begins with.
fn string_end(s: &str) -> Option<usize> {
    let b = s.as_bytes();
    let mut i = 1;
    while i < b.len() {
        match b[i] {
            b'\\' => i += 2,
            b'"' => return Some(i + 1),
            _ => i += 1,
        }
    }
    None
}

struct Parser {
    toks: Vec<Tok>,
    at: usize,
    depth: usize,
}

/// Parses a path.
pub fn parse(text: &str) -> Result<Path, SqlError> {
    if text.trim().is_empty() {
        return Err(SqlError::new(state::INVALID_TEXT_REPRESENTATION, format!("invalid input syntax for type jsonpath: \"{text}\"")));
    }
    let mut p = Parser { toks: tokens(text)?, at: 0, depth: 0 };
    let strict = p.word("strict");
    if !strict {
        p.word("lax");
    }
    let root = p.or()?;
    match p.peek() {
        Tok::End => Ok(Path { strict, root }),
        _ => Err(p.unexpected()),
    }
}

impl Parser {
    fn peek(&self) -> &Tok {
        self.toks.get(self.at).unwrap_or(&Tok::End)
    }
    fn unexpected(&self) -> SqlError {
        match self.peek() {
            Tok::End => syntax(""),
            Tok::Word(w) | Tok::Number(w) => syntax(w),
            Tok::Quoted(w) => syntax(w),
            Tok::Variable(w) => syntax(&format!("${w}")),
            Tok::Sym(s) => syntax(s),
        }
    }
    fn sym(&mut self, s: &str) -> bool {
        let hit = matches!(self.peek(), Tok::Sym(t) if *t == s);
        self.at += usize::from(hit);
        hit
    }
    fn word(&mut self, w: &str) -> bool {
        let hit = matches!(self.peek(), Tok::Word(t) if t == w);
        self.at += usize::from(hit);
        hit
    }
    fn need(&mut self, s: &str) -> Result<(), SqlError> {
        if self.sym(s) {
            return Ok(());
        }
        Err(self.unexpected())
    }

    fn or(&mut self) -> Result<Node, SqlError> {
        self.depth += 1;
        if self.depth > 200 {
            return Err(SqlError::new(state::STATEMENT_TOO_COMPLEX, "jsonpath nests too deep"));
        }
        let mut left = self.and()?;
        while self.sym("||") {
            left = Node::Or(left.into(), self.and()?.into());
        }
        self.depth -= 1;
        Ok(left)
    }
    fn and(&mut self) -> Result<Node, SqlError> {
        let mut left = self.not()?;
        while self.sym("&&") {
            left = Node::And(left.into(), self.not()?.into());
        }
        Ok(left)
    }
    fn not(&mut self) -> Result<Node, SqlError> {
        if self.sym("!") {
            return Ok(Node::Not(self.not()?.into()));
        }
        self.comparison()
    }
    fn comparison(&mut self) -> Result<Node, SqlError> {
        let left = self.sum()?;
        let ops = [("==", Cmp::Eq), ("=", Cmp::Eq), ("!=", Cmp::Ne), ("<>", Cmp::Ne), ("<=", Cmp::Le), (">=", Cmp::Ge), ("<", Cmp::Lt), (">", Cmp::Gt)];
        for (s, op) in ops {
            if self.sym(s) {
                return Ok(Node::Compare(op, left.into(), self.sum()?.into()));
            }
        }
        if self.word("starts") {
            if !self.word("with") {
                return Err(self.unexpected());
            }
            return Ok(Node::StartsWith(left.into(), self.primary()?.into()));
        }
        if self.word("like_regex") {
            let Tok::Quoted(pattern) = self.peek().clone() else { return Err(self.unexpected()) };
            self.at += 1;
            let mut flags = String::new();
            if self.word("flag") {
                let Tok::Quoted(f) = self.peek().clone() else { return Err(self.unexpected()) };
                self.at += 1;
                flags = f;
            }
            return Ok(Node::LikeRegex(left.into(), pattern, flags));
        }
        if self.word("is") {
            if !self.word("unknown") {
                return Err(self.unexpected());
            }
            return Ok(Node::IsUnknown(left.into()));
        }
        Ok(left)
    }
    fn sum(&mut self) -> Result<Node, SqlError> {
        let mut left = self.product()?;
        loop {
            let op = match self.peek() {
                Tok::Sym("+") => '+',
                Tok::Sym("-") => '-',
                _ => return Ok(left),
            };
            self.at += 1;
            left = Node::Arith(op, left.into(), self.product()?.into());
        }
    }
    fn product(&mut self) -> Result<Node, SqlError> {
        let mut left = self.unary()?;
        loop {
            let op = match self.peek() {
                Tok::Sym("*") => '*',
                Tok::Sym("/") => '/',
                Tok::Sym("%") => '%',
                _ => return Ok(left),
            };
            self.at += 1;
            left = Node::Arith(op, left.into(), self.unary()?.into());
        }
    }
    fn unary(&mut self) -> Result<Node, SqlError> {
        if self.sym("-") {
            return Ok(Node::Negate(self.unary()?.into()));
        }
        if self.sym("+") {
            return Ok(Node::Plus(self.unary()?.into()));
        }
        self.chain()
    }

    fn primary(&mut self) -> Result<Node, SqlError> {
        let node = match self.peek().clone() {
            Tok::Sym("$") => Node::Root,
            Tok::Sym("@") => Node::Current,
            Tok::Variable(v) => Node::Variable(v),
            Tok::Quoted(s) => Node::Text(s),
            Tok::Number(n) => Node::Number(Numeric::parse(&n).map_err(|_| syntax(&n))?),
            Tok::Sym("(") => {
                self.at += 1;
                let inner = self.or()?;
                self.need(")")?;
                return Ok(inner);
            }
            Tok::Word(w) => match w.as_str() {
                "null" => Node::Null,
                "true" => Node::Bool(true),
                "false" => Node::Bool(false),
                "last" => Node::Last,
                "exists" => {
                    self.at += 1;
                    self.need("(")?;
                    let inner = self.or()?;
                    self.need(")")?;
                    return Ok(Node::Exists(inner.into()));
                }
                _ => return Err(self.unexpected()),
            },
            _ => return Err(self.unexpected()),
        };
        self.at += 1;
        Ok(node)
    }

    fn chain(&mut self) -> Result<Node, SqlError> {
        let base = self.primary()?;
        let mut steps = Vec::new();
        loop {
            if self.sym(".") {
                steps.push(self.member()?);
            } else if self.sym("[") {
                steps.push(self.subscripts()?);
            } else if self.sym("?") {
                self.need("(")?;
                let p = self.or()?;
                self.need(")")?;
                steps.push(Step::Filter(p));
            } else if steps.is_empty() {
                return Ok(base);
            } else {
                return Ok(Node::Chain(base.into(), steps));
            }
        }
    }

    fn level(&mut self) -> Result<Option<u32>, SqlError> {
        if self.word("last") {
            return Ok(None);
        }
        match self.peek().clone() {
            Tok::Number(n) => {
                self.at += 1;
                n.parse().map(Some).map_err(|_| syntax(&n))
            }
            _ => Err(self.unexpected()),
        }
    }

    fn member(&mut self) -> Result<Step, SqlError> {
        if self.sym("**") {
            if !self.sym("{") {
                return Ok(Step::AnyDepth(Some(0), None));
            }
            let from = self.level()?;
            let to = if self.word("to") { self.level()? } else { from };
            self.need("}")?;
            return Ok(Step::AnyDepth(from, to));
        }
        if self.sym("*") {
            return Ok(Step::AnyKey);
        }
        match self.peek().clone() {
            Tok::Quoted(k) => {
                self.at += 1;
                Ok(Step::Key(k))
            }
            Tok::Word(k) => {
                self.at += 1;
                let method = matches!(k.as_str(), "type" | "size" | "double" | "ceiling" | "floor" | "abs" | "keyvalue" | "datetime");
                if method && self.sym("(") {
                    if k == "datetime" {
                        return Err(SqlError::unsupported("jsonpath method .datetime()", "cast the text of the item instead"));
                    }
                    self.need(")")?;
                    return Ok(Step::Method(k));
                }
                Ok(Step::Key(k))
            }
            _ => Err(self.unexpected()),
        }
    }

    fn subscripts(&mut self) -> Result<Step, SqlError> {
        if self.sym("*") {
            self.need("]")?;
            return Ok(Step::AllItems);
        }
        let mut out = Vec::new();
        loop {
            let from = self.sum()?;
            let to = if self.word("to") { Some(self.sum()?) } else { None };
            out.push((from, to));
            if self.sym("]") {
                return Ok(Step::Items(out));
            }
            self.need(",")?;
        }
    }
}
