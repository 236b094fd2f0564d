//! How well a document fits a query: by frequency (`ts_rank`), by how close together its words stand (`ts_rank_cd`).
//!
//! The sums are made in the widths and order in which Postgres makes them, so that digits agree.

use super::matching::{holds, Document, Known};
use repr::error::state;
use repr::interrupt::Pace;
use repr::tsearch::{Lexeme, Node, Operand, Place, TsQuery, TsVector, POSITION_LIMIT};
use repr::SqlError;

/// Weights of D, C, B, A.
pub type Weights = [f32; 4];

pub const DEFAULT: Weights = [0.1, 0.2, 0.4, 1.0];

/// Weights that a call gives; those below 0 are the default ones. Errors: 2202E, 22004, 22023.
pub fn weights(given: &[Option<f32>], dims: usize) -> Result<Weights, SqlError> {
    if dims != 1 {
        return Err(SqlError::new(state::ARRAY_SUBSCRIPT_ERROR, "array of weight must be one-dimensional"));
    }
    if given.len() < 4 {
        return Err(SqlError::new(state::ARRAY_SUBSCRIPT_ERROR, "array of weight is too short"));
    }
    if given.iter().any(Option::is_none) {
        return Err(SqlError::new(state::NULL_VALUE_NOT_ALLOWED, "array of weight must not contain nulls"));
    }
    let mut out = DEFAULT;
    for (slot, w) in out.iter_mut().zip(given) {
        let w = w.unwrap_or(-1.0);
        *slot = if w >= 0.0 { w } else { *slot };
        if *slot > 1.0 {
            return Err(SqlError::new(state::INVALID_PARAMETER_VALUE, "weight out of range"));
        }
    }
    Ok(out)
}

/// Bits of the argument `normalization`.
const LOG_LENGTH: i32 = 1;
const LENGTH: i32 = 2;
const EXTENT_DISTANCE: i32 = 4;
const UNIQUE: i32 = 8;
const LOG_UNIQUE: i32 = 16;
const PLUS_ONE: i32 = 32;

/// Words of a document, each as often as it occurs.
fn length(v: &TsVector) -> usize {
    v.0.iter().map(|l| l.places.len().max(1)).sum()
}

/// The query's operands, each word once, in order.
fn operands(n: &Node) -> Vec<&Operand> {
    let mut out: Vec<&Operand> = Vec::new();
    n.for_operands(&mut |o| out.push(o));
    out.sort_by(|a, b| a.word.as_bytes().cmp(b.word.as_bytes()));
    out.dedup_by(|a, b| a.word == b.word);
    out
}

fn entries<'a>(v: &'a TsVector, o: &'a Operand) -> Vec<&'a Lexeme> {
    if o.prefix {
        v.with_prefix(&o.word).collect()
    } else {
        v.get(&o.word).into_iter().collect()
    }
}

/// Stands for the positions of a lexeme that has none.
const NOWHERE: [Place; 1] = [Place { pos: POSITION_LIMIT - 1, weight: 0 }];

/// A lexeme's positions, and whether they stand for none.
fn places(l: &Lexeme) -> (&[Place], bool) {
    if l.places.is_empty() {
        (&NOWHERE, true)
    } else {
        (&l.places, false)
    }
}

fn word_distance(d: i32) -> f32 {
    if d > 100 {
        return 1e-30;
    }
    (1.0 / (1.005 + 0.05 * (f64::from(d as f32 / 1.5 - 2.0)).exp())) as f32
}

fn rank_or(w: &Weights, v: &TsVector, n: &Node) -> f32 {
    let items = operands(n);
    let mut res = 0f32;
    for o in &items {
        for l in entries(v, o) {
            let (mut sum, mut best, mut at) = (0f32, -1f32, 0usize);
            for (j, p) in places(l).0.iter().enumerate() {
                let weight = w[usize::from(p.weight)];
                sum += weight / ((j + 1) * (j + 1)) as f32;
                if weight > best {
                    (best, at) = (weight, j);
                }
            }
            // The sum of all 1/n² is π²/6.
            let part = best + sum - best / ((at + 1) * (at + 1)) as f32;
            res = (f64::from(res) + f64::from(part) / 1.64493406685) as f32;
        }
    }
    if items.is_empty() {
        res
    } else {
        res / items.len() as f32
    }
}

fn rank_and(w: &Weights, v: &TsVector, n: &Node) -> f32 {
    let items = operands(n);
    if items.len() < 2 {
        return rank_or(w, v, n);
    }
    let mut res = -1f32;
    // Of each operand the last lexeme's positions.
    let mut seen: Vec<Option<(&[Place], bool)>> = vec![None; items.len()];
    for i in 0..items.len() {
        for l in entries(v, items[i]) {
            let own = places(l);
            seen[i] = Some(own);
            for other in seen[..i].iter().flatten() {
                for p in own.0 {
                    for q in other.0 {
                        let mut d = (i32::from(p.pos) - i32::from(q.pos)).abs();
                        if d == 0 && !own.1 && !other.1 {
                            continue;
                        }
                        if d == 0 {
                            d = i32::from(POSITION_LIMIT);
                        }
                        let product = w[usize::from(p.weight)] * w[usize::from(q.weight)] * word_distance(d);
                        let now = f64::from(product).sqrt() as f32;
                        res = if res < 0.0 { now } else { (1.0 - (1.0 - f64::from(res)) * (1.0 - f64::from(now))) as f32 };
                    }
                }
            }
        }
    }
    res
}

/// Rank by frequency.
pub fn rank(w: &Weights, v: &TsVector, q: &TsQuery, method: i32) -> f32 {
    let Some(n) = q.0.as_ref().filter(|_| !v.0.is_empty()) else { return 0.0 };
    let mut res = match n {
        Node::And(_) | Node::Phrase(..) => rank_and(w, v, n),
        _ => rank_or(w, v, n),
    };
    if res < 0.0 {
        res = 1e-20;
    }
    let (len, size) = (length(v), v.0.len());
    if method & LOG_LENGTH != 0 {
        res = (f64::from(res) / (((len + 1) as f64).ln() / 2f64.ln())) as f32;
    }
    if method & LENGTH != 0 && len > 0 {
        res /= len as f32;
    }
    if method & UNIQUE != 0 {
        res /= size as f32;
    }
    if method & LOG_UNIQUE != 0 {
        res = (f64::from(res) / (((size + 1) as f64).ln() / 2f64.ln())) as f32;
    }
    if method & PLUS_ONE != 0 {
        res /= res + 1.0;
    }
    res
}

/// A position of the document at which operands of the query stand.
struct Spot<'a> {
    place: Place,
    operands: Vec<&'a Operand>,
}

/// The part of a document between two spots.
struct Window<'d, 'a>(&'d [Spot<'a>]);

impl Document for Window<'_, '_> {
    fn find(&self, operand: &Operand, places: Option<&mut Vec<u16>>) -> Known {
        let mut hits = self.0.iter().filter(|s| s.operands.contains(&operand)).peekable();
        let any = hits.peek().is_some();
        if let Some(out) = places {
            out.extend(hits.map(|s| s.place.pos));
            out.dedup();
        }
        if any {
            Known::Yes
        } else {
            Known::No
        }
    }
}

fn spots<'a>(v: &'a TsVector, n: &'a Node) -> Vec<Spot<'a>> {
    let mut own: Vec<&Operand> = Vec::new();
    n.for_operands(&mut |o| {
        if !own.contains(&o) {
            own.push(o);
        }
    });
    let mut found: Vec<Spot<'a>> = Vec::new();
    for o in own {
        for l in entries(v, o) {
            found.extend(l.places.iter().filter(|p| o.weights == 0 || o.weights >> p.weight & 1 == 1).map(|p| Spot { place: *p, operands: vec![o] }));
        }
    }
    found.sort_by_key(|s| (s.place.pos, s.place.weight));
    let mut out: Vec<Spot<'a>> = Vec::new();
    for s in found {
        match out.last_mut() {
            Some(last) if last.place == s.place => last.operands.extend(s.operands),
            _ => out.push(s),
        }
    }
    out
}

/// The next cover from spot `from` on: a shortest run of spots in which the query holds; its first and last spot.
fn cover(doc: &[Spot<'_>], from: usize, n: &Node, pace: &Pace) -> Option<(usize, usize)> {
    let holds = |begin: usize, end: usize| pace.stop(64 + end - begin) || holds(n, &Window(&doc[begin..=end]));
    let end = (from..doc.len()).find(|end| holds(from, *end))?;
    let begin = (from..=end).rev().find(|begin| holds(*begin, end))?;
    Some((begin, end))
}

/// Rank by the covers of the query.
pub fn rank_cover(w: &Weights, v: &TsVector, q: &TsQuery, method: i32) -> f32 {
    let Some(n) = &q.0 else { return 0.0 };
    let doc = spots(v, n);
    let (mut rank, mut sum_distance, mut extents, mut previous, mut from) = (0f64, 0f64, 0u32, 0f64, 0usize);
    let pace = Pace::default();
    while let Some((begin, end)) = cover(&doc, from, n, &pace) {
        from = begin + 1;
        let inverse: f64 = doc[begin..=end].iter().map(|s| 1.0 / f64::from(w[usize::from(s.place.weight)])).sum();
        let (p, q) = (i32::from(doc[begin].place.pos), i32::from(doc[end].place.pos));
        let spots = (end - begin) as i32;
        let mut noise = q - p - spots;
        if noise < 0 {
            noise = spots / 2;
        }
        rank += f64::from(spots + 1) / inverse / f64::from(1 + noise);
        let middle = f64::from(q + p) / 2.0;
        if extents > 0 && middle > previous {
            sum_distance += 1.0 / (middle - previous);
        }
        previous = middle;
        extents += 1;
    }
    let (len, size) = (length(v), v.0.len());
    if method & LOG_LENGTH != 0 && size > 0 {
        rank /= ((len + 1) as f64).ln();
    }
    if method & LENGTH != 0 && len > 0 {
        rank /= len as f64;
    }
    if method & EXTENT_DISTANCE != 0 && extents > 0 && sum_distance > 0.0 {
        rank /= f64::from(extents) / sum_distance;
    }
    if method & UNIQUE != 0 && size > 0 {
        rank /= size as f64;
    }
    if method & LOG_UNIQUE != 0 && size > 0 {
        rank /= ((size + 1) as f64).ln() / 2f64.ln();
    }
    if method & PLUS_ONE != 0 {
        rank /= rank + 1.0;
    }
    rank as f32
}
