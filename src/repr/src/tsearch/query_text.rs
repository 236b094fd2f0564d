//! The text form of `tsquery`, `'a' & !'b':*A <2> 'c'`, and the reading of queries from what people type.
//!
//! Operators bind `!`, `<n>`, `&`, `|` from tight to loose. Where words become lexemes (`to_tsquery`), [`Source::operand`] says
//! what a word stands for: a tree, or nothing for a stop word, in which case the operators around it are mended.

use super::vector_text::{is_blank, quote, Tokens};
use super::{query_too_large, syntax, too_large, Node, Operand, TsQuery, POSITION_LIMIT, QUERY_DEPTH_MAX, WORD_BYTES_MAX};
use crate::error::{state, SqlError};

/// What a word of a query's text stands for.
pub trait Source {
    /// The tree for a word; `None` for a word that is passed over. `phrase`: it stood in quotes in a web search.
    fn operand(&mut self, word: &str, weights: u8, prefix: bool) -> Result<Option<Node>, SqlError>;
}

/// Words are taken as they are.
struct AsIs<'a>(&'a str);

impl Source for AsIs<'_> {
    fn operand(&mut self, word: &str, weights: u8, prefix: bool) -> Result<Option<Node>, SqlError> {
        if word.len() >= WORD_BYTES_MAX {
            return Err(too_large(format!("word is too long in tsquery: \"{}\"", self.0)));
        }
        Ok(Some(Node::Val(Operand { word: word.to_owned(), weights, prefix })))
    }
}

/// A tree in which words may be missing.
enum Part {
    Stop,
    Val(Node),
    Not(Box<Part>),
    And(Box<(Part, Part)>),
    Or(Box<(Part, Part)>),
    Phrase(Box<(Part, Part)>, u16),
}

struct Parser<'a, 's> {
    all: &'a str,
    rest: &'a str,
    source: &'s mut dyn Source,
    depth: usize,
    operators: usize,
}

impl Parser<'_, '_> {
    fn error(&self) -> SqlError {
        syntax(format!("syntax error in tsquery: \"{}\"", self.all))
    }

    fn blanks(&mut self) {
        self.rest = self.rest.trim_start_matches(is_blank);
    }

    /// `<->` or `<n>` at the rest. Errors: 22023 for a distance that is too great.
    fn phrase_operator(&mut self) -> Result<Option<u16>, SqlError> {
        let Some(inner) = self.rest.strip_prefix('<') else { return Ok(None) };
        let (distance, after) = match inner.strip_prefix('-') {
            Some(after) => (1, after),
            None => {
                let n = inner.bytes().take_while(u8::is_ascii_digit).count();
                if n == 0 {
                    return Ok(None);
                }
                let limit = i64::from(POSITION_LIMIT);
                let d = inner[..n].parse::<i64>().ok().filter(|d| *d <= limit).ok_or_else(|| {
                    let what = format!("distance in phrase operator must be an integer value between zero and {limit} inclusive");
                    SqlError::new(state::INVALID_PARAMETER_VALUE, what)
                })?;
                (d as u16, &inner[n..])
            }
        };
        let Some(after) = after.strip_prefix('>') else { return Ok(None) };
        if after.is_empty() {
            return Ok(None);
        }
        self.rest = after;
        Ok(Some(distance))
    }

    /// An operand and what binds it tighter than `above`: 1 `|`, 2 `&`, 3 `<n>`.
    fn binary(&mut self, above: u8) -> Result<Part, SqlError> {
        let mut left = self.unary()?;
        loop {
            self.blanks();
            let before = self.rest;
            let (priority, distance) = match self.rest.chars().next() {
                Some('|') => (1, 0),
                Some('&') => (2, 0),
                Some('<') => match self.phrase_operator()? {
                    Some(d) => (3, d),
                    None => return Err(self.error()),
                },
                _ => return Ok(left),
            };
            if priority <= above {
                self.rest = before;
                return Ok(left);
            }
            if priority < 3 {
                self.rest = &self.rest[1..];
            }
            self.operators += 1;
            if self.operators > QUERY_DEPTH_MAX {
                return Err(query_too_large());
            }
            let right = self.binary(priority)?;
            let both = Box::new((left, right));
            left = match priority {
                1 => Part::Or(both),
                2 => Part::And(both),
                _ => Part::Phrase(both, distance),
            };
        }
    }

    fn unary(&mut self) -> Result<Part, SqlError> {
        self.depth += 1;
        if self.depth > QUERY_DEPTH_MAX {
            return Err(query_too_large());
        }
        self.blanks();
        let part = match self.rest.chars().next() {
            Some('!') => {
                self.rest = &self.rest[1..];
                Part::Not(Box::new(self.unary()?))
            }
            Some('(') => {
                self.rest = &self.rest[1..];
                let inner = self.binary(0)?;
                self.blanks();
                self.rest = self.rest.strip_prefix(')').ok_or_else(|| self.error())?;
                inner
            }
            Some(':') => return Err(self.error()),
            None => return Err(syntax(format!("no operand in tsquery: \"{}\"", self.all))),
            Some(_) => self.word()?,
        };
        self.depth -= 1;
        Ok(part)
    }

    fn word(&mut self) -> Result<Part, SqlError> {
        let mut tokens = Tokens::of_query(self.all, self.rest, false);
        let token = tokens.next_token()?.ok_or_else(|| syntax(format!("no operand in tsquery: \"{}\"", self.all)))?;
        self.rest = tokens.rest;
        let (mut weights, mut prefix) = (0, false);
        if let Some(mut after) = self.rest.strip_prefix(':') {
            loop {
                match after.bytes().next().map(|b| b.to_ascii_lowercase()) {
                    Some(b'*') => prefix = true,
                    Some(b @ b'a'..=b'd') => weights |= 1 << (b'd' - b),
                    _ => break,
                }
                after = &after[1..];
            }
            self.rest = after;
        }
        Ok(self.source.operand(&token.word, weights, prefix)?.map_or(Part::Stop, Part::Val))
    }
}

/// A tree without its missing words, and by how much positions right of it (or of its place) move: on the left side, on the right.
fn mend(part: Part) -> (Option<Node>, u16, u16) {
    let both = |p: Box<(Part, Part)>, make: fn(Box<(Node, Node)>) -> Node| {
        let ((l, ..), (r, ..)) = (mend(p.0), mend(p.1));
        match (l, r) {
            (Some(l), Some(r)) => Some(make(Box::new((l, r)))),
            (l, r) => l.or(r),
        }
    };
    match part {
        Part::Stop => (None, 0, 0),
        Part::Val(n) => (Some(n), 0, 0),
        Part::Not(p) => {
            let (n, ..) = mend(*p);
            (n.map(|n| Node::Not(Box::new(n))), 0, 0)
        }
        Part::And(p) => (both(p, Node::And), 0, 0),
        Part::Or(p) => (both(p, Node::Or), 0, 0),
        Part::Phrase(p, distance) => {
            let (l, l_left, l_right) = mend(p.0);
            let (r, r_left, r_right) = mend(p.1);
            let sum = |parts: &[u16]| parts.iter().fold(0u16, |a, b| a.saturating_add(*b)).min(POSITION_LIMIT);
            match (l, r) {
                // All gone: the distance, by which the places at both sides move apart.
                (None, None) => {
                    let d = sum(&[distance, l_left, r_left]);
                    (None, d, d)
                }
                (None, Some(r)) => (Some(r), sum(&[distance, l_left, r_left]), r_right),
                (Some(l), None) => (Some(l), l_left, sum(&[distance, l_right, r_right])),
                (Some(l), Some(r)) => {
                    let d = sum(&[distance, l_right, r_left]);
                    (Some(Node::Phrase(Box::new((l, r)), d)), l_left, r_right)
                }
            }
        }
    }
}

/// Reads a query with operators; what words stand for, `source` says. Errors: 42601, 22023, 54000, the source's.
pub fn parse_query(text: &str, source: &mut dyn Source) -> Result<TsQuery, SqlError> {
    let mut p = Parser { all: text, rest: text, source, depth: 0, operators: 0 };
    p.blanks();
    if p.rest.is_empty() {
        return Ok(TsQuery(None));
    }
    let part = p.binary(0)?;
    p.blanks();
    if !p.rest.is_empty() {
        return Err(p.error());
    }
    TsQuery(mend(part).0).checked()
}

fn priority(n: &Node) -> u8 {
    match n {
        Node::Or(_) => 1,
        Node::And(_) => 2,
        Node::Phrase(..) => 3,
        Node::Not(_) => 4,
        Node::Val(_) => 5,
    }
}

fn print(n: &Node, above: u8, right_of_phrase: bool, out: &mut String) {
    let own = priority(n);
    let phrase = matches!(n, Node::Phrase(..));
    let brackets = own < above || (phrase && right_of_phrase);
    match n {
        Node::Val(o) => {
            quote(&o.word, out);
            if o.weights != 0 || o.prefix {
                out.push(':');
                if o.prefix {
                    out.push('*');
                }
                for (bit, letter) in [(3, 'A'), (2, 'B'), (1, 'C'), (0, 'D')] {
                    if o.weights >> bit & 1 == 1 {
                        out.push(letter);
                    }
                }
            }
        }
        Node::Not(inner) => {
            out.push_str(if brackets { "( !" } else { "!" });
            print(inner, own, false, out);
            out.push_str(if brackets { " )" } else { "" });
        }
        Node::And(p) | Node::Or(p) | Node::Phrase(p, _) => {
            out.push_str(if brackets { "( " } else { "" });
            print(&p.0, own, false, out);
            match n {
                Node::And(_) => out.push_str(" & "),
                Node::Or(_) => out.push_str(" | "),
                Node::Phrase(_, 1) => out.push_str(" <-> "),
                Node::Phrase(_, d) => out.push_str(&format!(" <{d}> ")),
                _ => {}
            }
            print(&p.1, own, phrase, out);
            out.push_str(if brackets { " )" } else { "" });
        }
    }
}

impl TsQuery {
    /// Errors: 42601, 22023, 54000.
    pub fn parse(text: &str) -> Result<TsQuery, SqlError> {
        parse_query(text, &mut AsIs(text))
    }

    pub fn print(&self, out: &mut String) {
        if let Some(n) = &self.0 {
            print(n, 0, false, out);
        }
    }
}

impl Node {
    /// Its text form.
    pub fn print(&self, out: &mut String) {
        print(self, 0, false, out);
    }
}
