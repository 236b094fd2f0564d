//! Queries from text, and what is made of queries.
//!
//! ```text
//!   to_tsquery         operators and words       plainto_tsquery    words, all of them wanted
//!   phraseto_tsquery   words in this order       websearch_to_tsquery   words, "phrases", -not, or
//! ```

use super::dict::{Config, Words};
use repr::error::state;
use repr::tsearch::{is_blank, parse_query, query_too_large, Node, Operand, Source, Tokens, TsQuery, POSITION_LIMIT, QUERY_DEPTH_MAX, WORD_BYTES_MAX};
use repr::SqlError;

/// How the words that one operand gives are joined.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Join {
    And,
    Phrase,
}

/// Makes words lexemes of a configuration.
pub struct Lexemes(pub Config);

/// The tree for a text: its words joined. Stop words between others widen a phrase.
fn words_tree(config: Config, text: &str, join: Join, weights: u8, prefix: bool) -> Result<Option<Node>, SqlError> {
    let mut words = Words::default();
    words.add(config, text);
    if words.list.len() > QUERY_DEPTH_MAX {
        return Err(query_too_large());
    }
    let mut tree: Option<Node> = None;
    let mut last = 0;
    for (word, pos) in words.list {
        if word.len() >= WORD_BYTES_MAX {
            return Err(repr::tsearch::too_large(format!("word is too long in tsquery: \"{text}\"")));
        }
        let leaf = Node::Val(Operand { word, weights, prefix });
        tree = Some(match tree {
            None => leaf,
            Some(left) => {
                let both = Box::new((left, leaf));
                match join {
                    Join::And => Node::And(both),
                    Join::Phrase => Node::Phrase(both, pos.saturating_sub(last).max(1)),
                }
            }
        });
        last = pos;
    }
    Ok(tree)
}

impl Source for Lexemes {
    fn operand(&mut self, word: &str, weights: u8, prefix: bool) -> Result<Option<Node>, SqlError> {
        words_tree(self.0, word, Join::Phrase, weights, prefix)
    }
}

pub fn to_query(config: Config, text: &str) -> Result<TsQuery, SqlError> {
    parse_query(text, &mut Lexemes(config))
}

/// A text without operators.
pub fn plain(config: Config, text: &str, join: Join) -> Result<TsQuery, SqlError> {
    TsQuery(words_tree(config, text, join, 0, false)?).checked()
}

/// Operators of other queries mean nothing in a web search.
fn is_operator(c: char) -> bool {
    matches!(c, '!' | '&' | '|' | '(' | ')' | '<')
}

/// Whether `or` begins here and something follows it.
fn or_operator(s: &str) -> Option<&str> {
    let rest = s.get(2..).filter(|_| s[..2].eq_ignore_ascii_case("or"))?;
    let next = rest.chars().next()?;
    if matches!(next, '-' | '_') || next.is_alphanumeric() {
        return None;
    }
    let after = rest.trim_start_matches(is_blank);
    (!after.is_empty()).then_some(after)
}

/// A query as people type it. Never a syntax error.
pub fn web(config: Config, text: &str) -> Result<TsQuery, SqlError> {
    // OR of ANDs; a word that is passed over is `None`.
    let mut any: Vec<Vec<Option<Node>>> = vec![Vec::new()];
    let mut rest = text;
    let mut negations = 0;
    loop {
        rest = rest.trim_start_matches(is_blank);
        let Some(c) = rest.chars().next() else { break };
        let operand = match c {
            '-' => {
                rest = &rest[1..];
                negations += 1;
                if negations > QUERY_DEPTH_MAX {
                    return Err(query_too_large());
                }
                continue;
            }
            '"' => {
                let body = &rest[1..];
                let end = body.find('"').unwrap_or(body.len());
                rest = body.get(end + 1..).unwrap_or("");
                words_tree(config, &body[..end], Join::Phrase, 0, false)?
            }
            c if is_operator(c) => {
                rest = &rest[1..];
                continue;
            }
            _ => {
                let mut tokens = Tokens::of_query(text, rest, true);
                let token = tokens.next_token()?;
                rest = tokens.rest;
                match token {
                    Some(t) => words_tree(config, &t.word, Join::Phrase, 0, false)?,
                    None => break,
                }
            }
        };
        let operand = (0..negations).fold(operand, |n, _| n.map(|n| Node::Not(Box::new(n))));
        negations = 0;
        if let Some(all) = any.last_mut() {
            all.push(operand);
        }
        rest = rest.trim_start_matches(|c| is_blank(c) || is_operator(c));
        if let Some(after) = or_operator(rest) {
            rest = after;
            any.push(Vec::new());
        }
    }
    let joined = |list: Vec<Option<Node>>, make: fn(Box<(Node, Node)>) -> Node| list.into_iter().flatten().reduce(|l, r| make(Box::new((l, r))));
    if any.iter().map(Vec::len).sum::<usize>() > QUERY_DEPTH_MAX {
        return Err(query_too_large());
    }
    let alternatives = any.into_iter().map(|all| joined(all, Node::And)).collect();
    TsQuery(joined(alternatives, Node::Or)).checked()
}

/// Joins two queries; an empty one gives the other.
pub fn both(a: TsQuery, b: TsQuery, make: impl FnOnce(Box<(Node, Node)>) -> Node) -> Result<TsQuery, SqlError> {
    TsQuery(match (a.0, b.0) {
        (Some(a), Some(b)) => Some(make(Box::new((a, b)))),
        (a, b) => a.or(b),
    })
    .checked()
}

pub fn not(q: TsQuery) -> Result<TsQuery, SqlError> {
    TsQuery(q.0.map(|n| Node::Not(Box::new(n)))).checked()
}

/// `a <n> b`. Errors: 22023 for a distance beyond positions.
pub fn phrase(a: TsQuery, b: TsQuery, distance: i32) -> Result<TsQuery, SqlError> {
    let d = u16::try_from(distance).ok().filter(|d| *d <= POSITION_LIMIT).ok_or_else(|| {
        let what = format!("distance in phrase operator must be an integer value between zero and {POSITION_LIMIT} inclusive");
        SqlError::new(state::INVALID_PARAMETER_VALUE, what)
    })?;
    both(a, b, |p| Node::Phrase(p, d))
}

/// The words of a query, sorted, each once.
fn word_set(q: &TsQuery) -> Vec<&str> {
    let mut out: Vec<&str> = Vec::new();
    if let Some(n) = &q.0 {
        n.for_operands(&mut |o| out.push(&o.word));
    }
    out.sort_unstable();
    out.dedup();
    out
}

/// Whether all words of `b` occur in `a`.
pub fn contains(a: &TsQuery, b: &TsQuery) -> bool {
    let words = word_set(a);
    word_set(b).iter().all(|w| words.binary_search(w).is_ok())
}

/// The part of a query that an index could use: without negations. `None`: it would have to look everywhere.
fn indexable(n: &Node) -> Option<Node> {
    match n {
        Node::Val(_) => Some(n.clone()),
        Node::Not(_) => None,
        Node::And(p) => match (indexable(&p.0), indexable(&p.1)) {
            (Some(l), Some(r)) => Some(Node::And(Box::new((l, r)))),
            (l, r) => l.or(r),
        },
        // A negation in a phrase makes the whole of it unusable on that side.
        Node::Phrase(p, d) => match (indexable(&p.0), indexable(&p.1)) {
            (Some(l), Some(r)) => Some(Node::Phrase(Box::new((l, r)), *d)),
            (l, r) => l.or(r),
        },
        Node::Or(p) => Some(Node::Or(Box::new((indexable(&p.0)?, indexable(&p.1)?)))),
    }
}

pub fn query_tree(q: &TsQuery) -> String {
    let mut out = String::new();
    match &q.0 {
        None => {}
        Some(n) => match indexable(n) {
            Some(n) => n.print(&mut out),
            None => out.push('T'),
        },
    }
    out
}

/// Operands of one and the same associative operator, flattened.
fn flatten(n: Node, out: &mut Vec<Node>, and: bool) {
    match n {
        Node::And(p) if and => {
            flatten(p.0, out, and);
            flatten(p.1, out, and);
        }
        Node::Or(p) if !and => {
            flatten(p.0, out, and);
            flatten(p.1, out, and);
        }
        n => out.push(n),
    }
}

fn key(n: &Node) -> Vec<u8> {
    TsQuery(Some(normal(n.clone()))).to_bytes()
}

/// What trees are ordered by.
fn order(n: &Node) -> Vec<u8> {
    // Without the sizes in front.
    TsQuery(Some(n.clone())).to_bytes().split_off(12)
}

/// Trees that differ only in the order of AND and OR become the same.
fn normal(n: Node) -> Node {
    match n {
        Node::Val(_) => n,
        Node::Not(i) => Node::Not(Box::new(normal(*i))),
        Node::Phrase(p, d) => Node::Phrase(Box::new((normal(p.0), normal(p.1))), d),
        Node::And(_) | Node::Or(_) => {
            let and = matches!(n, Node::And(_));
            let mut parts = Vec::new();
            flatten(n, &mut parts, and);
            let mut parts: Vec<Node> = parts.into_iter().map(normal).collect();
            // The order and the nesting are those that Postgres leaves behind.
            parts.sort_by_cached_key(order);
            let make: fn(Box<(Node, Node)>) -> Node = if and { Node::And } else { Node::Or };
            let mut parts = parts.into_iter();
            let (Some(first), Some(second)) = (parts.next(), parts.next()) else {
                return Node::Val(Operand { word: String::new(), weights: 0, prefix: false });
            };
            parts.rev().fold(make(Box::new((second, first))), |right, left| make(Box::new((left, right))))
        }
    }
}

/// What becomes of a tree in which `target` is replaced; `None`: nothing is left.
fn replaced(n: Node, target: &Node, substitute: Option<&Node>) -> Option<Node> {
    if key(&n) == key(target) {
        return substitute.cloned();
    }
    match n {
        Node::Val(_) => Some(n),
        Node::Not(i) => replaced(*i, target, substitute).map(|n| Node::Not(Box::new(n))),
        Node::Phrase(p, d) => {
            let (l, r) = *p;
            match (replaced(l, target, substitute), replaced(r, target, substitute)) {
                (Some(l), Some(r)) => Some(Node::Phrase(Box::new((l, r)), d)),
                (l, r) => l.or(r),
            }
        }
        Node::And(_) | Node::Or(_) => {
            let and = matches!(n, Node::And(_));
            let make: fn(Box<(Node, Node)>) -> Node = if and { Node::And } else { Node::Or };
            let mut parts = Vec::new();
            flatten(n, &mut parts, and);
            // A part of the operands may be the target.
            let mut wanted = Vec::new();
            flatten(target.clone(), &mut wanted, and);
            let keys: Vec<Vec<u8>> = wanted.iter().map(key).collect();
            let own: Vec<Vec<u8>> = parts.iter().map(key).collect();
            let same_operator = if and { matches!(target, Node::And(_)) } else { matches!(target, Node::Or(_)) };
            let mut out: Vec<Node> = Vec::new();
            if same_operator && keys.iter().all(|k| own.contains(k)) {
                out.extend(substitute.cloned());
                parts = parts.into_iter().zip(own).filter(|(_, k)| !keys.contains(k)).map(|(p, _)| p).collect();
            }
            out.splice(0..0, parts.into_iter().filter_map(|p| replaced(p, target, substitute)));
            out.into_iter().reduce(|l, r| make(Box::new((l, r))))
        }
    }
}

pub fn rewrite(q: TsQuery, target: &TsQuery, substitute: &TsQuery) -> Result<TsQuery, SqlError> {
    let (Some(n), Some(t)) = (q.0.clone(), &target.0) else { return Ok(q) };
    TsQuery(replaced(normal(n), t, substitute.0.as_ref()).map(normal)).checked()
}
