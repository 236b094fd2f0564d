//! Documents and queries of text search: `tsvector`, `tsquery`.
//!
//! Their bytes order as Postgres orders the values:
//!
//! ```text
//!   tsvector   Postgres's own size u32, count u32, then each lexeme: 1 if it has no positions else 0, word, 0x00,
//!              and with positions: !count u16, (!position u16, !weight u8) each
//!   tsquery    length of the head u32, the head, then per operand a byte: weights, prefix (they do not count in comparisons)
//!     head     items u32, Postgres's own size u32, the tree, right operand first (numbers complemented, since the greater come first):
//!              operator 1, its number, operands, of a phrase the distance u16    operand 2, checksum i32, word, 0x00
//! ```
//!
//! Promise: [`TsVector::read`] and [`TsQuery::read`] of written bytes give the same value; of damaged bytes some value.
//! Not here: the making of documents from text, matching and ranking (`expr`).

mod query_text;
mod vector_text;

pub use query_text::{parse_query, Source};
pub use vector_text::{is_blank, Token, Tokens};

use crate::canonical::Bytes;
use crate::error::{state, SqlError};

/// The longest word.
pub const WORD_BYTES_MAX: usize = 2047;
/// Positions lie below this.
pub const POSITION_LIMIT: u16 = 1 << 14;
/// More positions than these a lexeme does not keep.
pub const POSITIONS_MAX: usize = 256;
/// All words and positions of a document.
const VECTOR_BYTES_MAX: usize = (1 << 20) - 1;
/// How deep a query may nest and, since a chain of operators nests too, how many operators its text may have: walking it, and dropping it,
/// is safe on any stack.
pub const QUERY_DEPTH_MAX: usize = 1_000;

/// Where a word stands: position (from 1) and weight, 3 for A down to 0 for D.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Place {
    pub pos: u16,
    pub weight: u8,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Lexeme {
    pub word: String,
    /// Sorted, each position once.
    pub places: Vec<Place>,
}

/// A document: its lexemes, sorted by their bytes, each once.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TsVector(pub Vec<Lexeme>);

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Operand {
    pub word: String,
    /// Bit 3 for A down to bit 0 for D; 0: any.
    pub weights: u8,
    pub prefix: bool,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Node {
    Val(Operand),
    Not(Box<Node>),
    And(Box<(Node, Node)>),
    Or(Box<(Node, Node)>),
    /// The right operand stands so many positions after the left one.
    Phrase(Box<(Node, Node)>, u16),
}

/// A query; `None` matches nothing.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TsQuery(pub Option<Node>);

pub(crate) fn syntax(what: impl Into<String>) -> SqlError {
    SqlError::new(state::SYNTAX_ERROR, what)
}

pub fn query_too_large() -> SqlError {
    too_large("tsquery is too large".into())
}

pub fn too_large(what: String) -> SqlError {
    SqlError::new(state::PROGRAM_LIMIT_EXCEEDED, what)
}

impl Bytes<'_> {
    fn u16(&mut self) -> u16 {
        u16::from_be_bytes(self.fixed())
    }
    fn word(&mut self) -> String {
        let n = self.0.iter().position(|b| *b == 0).unwrap_or(self.0.len());
        let (head, tail) = self.0.split_at(n);
        self.0 = tail.get(1..).unwrap_or(&[]);
        String::from_utf8_lossy(head).into_owned()
    }
}

/// Sorts positions, keeps each once with its greatest weight, and no more than Postgres keeps.
pub fn tidy_places(places: &mut Vec<Place>) {
    places.sort_by_key(|p| p.pos);
    let mut kept: Vec<Place> = Vec::with_capacity(places.len());
    for p in places.iter() {
        let full = kept.len() >= POSITIONS_MAX || kept.last().is_some_and(|l| l.pos == POSITION_LIMIT - 1);
        match kept.last_mut() {
            Some(last) if last.pos == p.pos => last.weight = last.weight.max(p.weight),
            _ if full => break,
            _ => kept.push(*p),
        }
    }
    *places = kept;
}

impl TsVector {
    /// A document of lexemes in any order, those of one word made one. Errors: 54000 if it is too large.
    pub fn of(mut lexemes: Vec<Lexeme>) -> Result<TsVector, SqlError> {
        lexemes.sort_by(|a, b| a.word.as_bytes().cmp(b.word.as_bytes()));
        let mut out: Vec<Lexeme> = Vec::with_capacity(lexemes.len());
        for l in lexemes {
            match out.last_mut() {
                Some(last) if last.word == l.word => last.places.extend(l.places),
                _ => out.push(l),
            }
        }
        out.iter_mut().for_each(|l| tidy_places(&mut l.places));
        let v = TsVector(out);
        let size = v.size() - 8 - 4 * v.0.len();
        if size > VECTOR_BYTES_MAX {
            return Err(too_large(format!("string is too long for tsvector ({size} bytes, max {VECTOR_BYTES_MAX} bytes)")));
        }
        Ok(v)
    }

    /// Bytes that Postgres needs for it: what comes first in its order.
    fn size(&self) -> usize {
        let mut n = 0;
        for l in &self.0 {
            n += l.word.len();
            if !l.places.is_empty() {
                n += n % 2 + 2 + 2 * l.places.len();
            }
        }
        8 + 4 * self.0.len() + n
    }

    pub fn get(&self, word: &str) -> Option<&Lexeme> {
        self.0.binary_search_by(|l| l.word.as_bytes().cmp(word.as_bytes())).ok().map(|i| &self.0[i])
    }

    /// The lexemes that begin so.
    pub fn with_prefix<'a>(&'a self, prefix: &'a str) -> impl Iterator<Item = &'a Lexeme> {
        let from = self.0.partition_point(|l| l.word.as_bytes() < prefix.as_bytes());
        self.0[from..].iter().take_while(move |l| l.word.starts_with(prefix))
    }

    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.size());
        out.extend_from_slice(&(self.size() as u32).to_be_bytes());
        out.extend_from_slice(&(self.0.len() as u32).to_be_bytes());
        for l in &self.0 {
            out.push(u8::from(l.places.is_empty()));
            out.extend_from_slice(l.word.as_bytes());
            out.push(0);
            if !l.places.is_empty() {
                out.extend_from_slice(&(!(l.places.len() as u16)).to_be_bytes());
                for p in &l.places {
                    out.extend_from_slice(&(!p.pos).to_be_bytes());
                    out.push(!p.weight);
                }
            }
        }
        out
    }

    pub fn read(bytes: &[u8]) -> TsVector {
        let mut c = Bytes(bytes);
        c.fixed::<8>();
        let mut out = Vec::new();
        while !c.0.is_empty() {
            let bare = c.u8() == 1;
            let word = c.word();
            let n = if bare { 0 } else { !c.u16() };
            let places = (0..n).map_while(|_| (!c.0.is_empty()).then(|| Place { pos: !c.u16(), weight: !c.u8() & 3 })).collect();
            out.push(Lexeme { word, places });
        }
        TsVector(out)
    }

    /// Bytes for a client.
    pub fn to_wire(&self) -> Vec<u8> {
        let mut out = (self.0.len() as u32).to_be_bytes().to_vec();
        for l in &self.0 {
            out.extend_from_slice(l.word.as_bytes());
            out.push(0);
            out.extend_from_slice(&(l.places.len() as u16).to_be_bytes());
            l.places.iter().for_each(|p| out.extend_from_slice(&(p.pos | u16::from(p.weight) << 14).to_be_bytes()));
        }
        out
    }

    /// A document from a client's bytes, all of them. Errors: 22P03, 08P01.
    pub fn from_wire(bytes: &[u8]) -> Result<TsVector, SqlError> {
        let mut c = Wire(bytes);
        let n = c.u32()?;
        let mut out = Vec::new();
        for _ in 0..n {
            let word = c.word()?;
            if word.len() > WORD_BYTES_MAX {
                return Err(bad("invalid tsvector: lexeme too long"));
            }
            let npos = c.u16()?;
            if usize::from(npos) > POSITIONS_MAX {
                return Err(bad("unexpected number of tsvector positions"));
            }
            let mut places: Vec<Place> = Vec::new();
            for _ in 0..npos {
                let raw = c.u16()?;
                let p = Place { pos: raw & (POSITION_LIMIT - 1), weight: (raw >> 14) as u8 };
                if places.last().is_some_and(|l| l.pos >= p.pos) {
                    return Err(bad("position information is misordered"));
                }
                places.push(p);
            }
            out.push(Lexeme { word, places });
        }
        c.end()?;
        TsVector::of(out)
    }
}

fn bad(what: &str) -> SqlError {
    SqlError::new(state::INVALID_BINARY_REPRESENTATION, what)
}

/// A client's bytes.
struct Wire<'a>(&'a [u8]);

impl Wire<'_> {
    fn bytes<const N: usize>(&mut self) -> Result<[u8; N], SqlError> {
        let (head, tail) = self.0.split_first_chunk::<N>().ok_or_else(|| SqlError::new(state::PROTOCOL_VIOLATION, "insufficient data left in message"))?;
        self.0 = tail;
        Ok(*head)
    }
    fn u32(&mut self) -> Result<u32, SqlError> {
        self.bytes().map(u32::from_be_bytes)
    }
    fn u16(&mut self) -> Result<u16, SqlError> {
        self.bytes().map(u16::from_be_bytes)
    }
    fn u8(&mut self) -> Result<u8, SqlError> {
        self.bytes().map(|b: [u8; 1]| b[0])
    }
    fn word(&mut self) -> Result<String, SqlError> {
        let n = self.0.iter().position(|b| *b == 0).ok_or_else(|| SqlError::new(state::PROTOCOL_VIOLATION, "invalid string in message"))?;
        let (head, tail) = self.0.split_at(n);
        self.0 = &tail[1..];
        let invalid = |_| SqlError::new(state::CHARACTER_NOT_IN_REPERTOIRE, "invalid byte sequence for encoding \"UTF8\"");
        String::from_utf8(head.to_vec()).map_err(invalid)
    }
    fn end(&self) -> Result<(), SqlError> {
        if self.0.is_empty() {
            Ok(())
        } else {
            Err(bad("incorrect binary data format"))
        }
    }
}

/// Numbers of the operators in bytes and on the wire.
const NOT: u8 = 1;
const AND: u8 = 2;
const OR: u8 = 3;
const PHRASE: u8 = 4;

/// The checksum by which Postgres orders operands: CRC-32 by a table of the reversed kind, applied the other way.
fn checksum(word: &str) -> i32 {
    let table = |mut v: u32| {
        for _ in 0..8 {
            v = if v & 1 == 1 { v >> 1 ^ 0xedb8_8320 } else { v >> 1 };
        }
        v
    };
    !word.bytes().fold(u32::MAX, |crc, b| table((crc >> 24 ^ u32::from(b)) & 0xff) ^ crc << 8) as i32
}

impl Node {
    /// Both operands, the right one first; the operand of NOT alone.
    fn operands(&self) -> Vec<&Node> {
        match self {
            Node::Val(_) => Vec::new(),
            Node::Not(n) => vec![n],
            Node::And(p) | Node::Or(p) | Node::Phrase(p, _) => vec![&p.1, &p.0],
        }
    }

    fn number(&self) -> u8 {
        match self {
            Node::Val(_) => 0,
            Node::Not(_) => NOT,
            Node::And(_) => AND,
            Node::Or(_) => OR,
            Node::Phrase(..) => PHRASE,
        }
    }

    /// Operators and operands in it.
    pub fn items(&self) -> usize {
        1 + self.operands().into_iter().map(Node::items).sum::<usize>()
    }

    /// Calls `f` with each operand, from right to left.
    pub fn for_operands<'a>(&'a self, f: &mut dyn FnMut(&'a Operand)) {
        match self {
            Node::Val(o) => f(o),
            _ => self.operands().into_iter().for_each(|n| n.for_operands(f)),
        }
    }

    /// Postgres's order of trees puts this first.
    fn put(&self, head: &mut Vec<u8>, tail: &mut Vec<u8>) {
        match self {
            Node::Val(o) => {
                head.push(2);
                head.extend_from_slice(&(!((checksum(&o.word) as u32) ^ 1 << 31)).to_be_bytes());
                head.extend_from_slice(o.word.as_bytes());
                head.push(0);
                tail.push(o.weights << 1 | u8::from(o.prefix));
            }
            _ => {
                head.extend_from_slice(&[1, !self.number()]);
                self.operands().into_iter().for_each(|n| n.put(head, tail));
                if let Node::Phrase(_, d) = self {
                    head.extend_from_slice(&(!d).to_be_bytes());
                }
            }
        }
    }

    fn take(c: &mut Bytes<'_>, tail: &mut Bytes<'_>, depth: usize) -> Node {
        if depth > QUERY_DEPTH_MAX || c.u8() != 1 {
            c.fixed::<4>();
            let word = c.word();
            let flags = tail.u8();
            return Node::Val(Operand { word, weights: flags >> 1 & 15, prefix: flags & 1 == 1 });
        }
        let op = !c.u8();
        let right = Node::take(c, tail, depth + 1);
        if op == NOT {
            return Node::Not(Box::new(right));
        }
        let both = Box::new((Node::take(c, tail, depth + 1), right));
        match op {
            AND => Node::And(both),
            PHRASE => Node::Phrase(both, !c.u16()),
            _ => Node::Or(both),
        }
    }

    /// How deep it nests.
    pub fn depth(&self) -> usize {
        1 + self.operands().into_iter().map(Node::depth).max().unwrap_or(0)
    }

    fn put_wire(&self, out: &mut Vec<u8>) {
        match self {
            Node::Val(o) => {
                out.extend_from_slice(&[1, o.weights, u8::from(o.prefix)]);
                out.extend_from_slice(o.word.as_bytes());
                out.push(0);
            }
            _ => {
                out.extend_from_slice(&[2, self.number()]);
                if let Node::Phrase(_, d) = self {
                    out.extend_from_slice(&d.to_be_bytes());
                }
                self.operands().into_iter().for_each(|n| n.put_wire(out));
            }
        }
    }

    fn take_wire(c: &mut Wire<'_>, left: &mut u32, depth: usize) -> Result<Node, SqlError> {
        if depth > QUERY_DEPTH_MAX {
            return Err(too_large("tsquery is too large".into()));
        }
        *left = left.checked_sub(1).ok_or_else(|| bad("malformed tsquery: operand not found"))?;
        match c.u8()? {
            1 => {
                let (weights, prefix) = (c.u8()?, c.u8()? != 0);
                let word = c.word()?;
                if weights > 15 {
                    return Err(bad("invalid tsquery: invalid weight bitmap"));
                }
                if word.len() > WORD_BYTES_MAX {
                    return Err(bad("invalid tsquery: operand too long"));
                }
                Ok(Node::Val(Operand { word, weights, prefix }))
            }
            2 => {
                let op = c.u8()?;
                if !(NOT..=PHRASE).contains(&op) {
                    return Err(bad(&format!("invalid tsquery: unrecognized operator type {op}")));
                }
                let distance = if op == PHRASE { c.u16()? } else { 0 };
                let right = Node::take_wire(c, left, depth + 1)?;
                if op == NOT {
                    return Ok(Node::Not(Box::new(right)));
                }
                let both = Box::new((Node::take_wire(c, left, depth + 1)?, right));
                Ok(match op {
                    AND => Node::And(both),
                    OR => Node::Or(both),
                    _ => Node::Phrase(both, distance),
                })
            }
            other => Err(bad(&format!("unrecognized tsquery node type: {other}"))),
        }
    }
}

impl TsQuery {
    /// Errors: 54000 if it nests too deep.
    pub fn checked(self) -> Result<TsQuery, SqlError> {
        match &self.0 {
            Some(n) if n.depth() > QUERY_DEPTH_MAX => Err(query_too_large()),
            _ => Ok(self),
        }
    }

    pub fn to_bytes(&self) -> Vec<u8> {
        let (mut head, mut tail) = (Vec::new(), Vec::new());
        let mut words = 0;
        if let Some(n) = &self.0 {
            n.for_operands(&mut |o| words += o.word.len() + 1);
        }
        let items = self.0.as_ref().map_or(0, Node::items);
        head.extend_from_slice(&(items as u32).to_be_bytes());
        head.extend_from_slice(&((8 + 12 * items + words) as u32).to_be_bytes());
        if let Some(n) = &self.0 {
            n.put(&mut head, &mut tail);
        }
        join_query(&head, &tail)
    }

    pub fn read(bytes: &[u8]) -> TsQuery {
        let (head, tail) = split_query(bytes);
        let mut c = Bytes(head);
        let items = u32::from_be_bytes(c.fixed());
        c.fixed::<4>();
        TsQuery((items > 0).then(|| Node::take(&mut c, &mut Bytes(tail), 0)))
    }

    /// Bytes for a client.
    pub fn to_wire(&self) -> Vec<u8> {
        let mut out = (self.0.as_ref().map_or(0, Node::items) as u32).to_be_bytes().to_vec();
        if let Some(n) = &self.0 {
            n.put_wire(&mut out);
        }
        out
    }

    /// A query from a client's bytes, all of them. Errors: 22P03, 08P01, 54000.
    pub fn from_wire(bytes: &[u8]) -> Result<TsQuery, SqlError> {
        let mut c = Wire(bytes);
        let mut left = c.u32()?;
        let node = if left == 0 { None } else { Some(Node::take_wire(&mut c, &mut left, 0)?) };
        if left > 0 {
            return Err(bad("malformed tsquery: extra nodes"));
        }
        c.end()?;
        Ok(TsQuery(node))
    }
}

/// A query's bytes in two: what comparisons see, and what they do not.
pub(crate) fn split_query(bytes: &[u8]) -> (&[u8], &[u8]) {
    let Some((n, rest)) = bytes.split_first_chunk::<4>() else { return (&[], &[]) };
    rest.split_at((u32::from_be_bytes(*n) as usize).min(rest.len()))
}

pub(crate) fn join_query(head: &[u8], tail: &[u8]) -> Vec<u8> {
    [&(head.len() as u32).to_be_bytes(), head, tail].concat()
}
