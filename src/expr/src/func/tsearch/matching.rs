//! Whether a document satisfies a query.
//!
//! A phrase is decided by sets of positions: those at which a part of the query ends, or, for a negated part, those at which it does not.
//! Where a document has no positions, whether a phrase is in it is not known, and not known counts as no.

use repr::tsearch::{Node, Operand, TsQuery, TsVector};

/// What is known of an operand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Known {
    No,
    Maybe,
    Yes,
}

/// Where operands are looked up. With `places` their positions are added there, in ascending order.
pub trait Document {
    fn find(&self, operand: &Operand, places: Option<&mut Vec<u16>>) -> Known;
}

impl Document for TsVector {
    fn find(&self, o: &Operand, mut places: Option<&mut Vec<u16>>) -> Known {
        let one = if o.prefix { None } else { self.get(&o.word) };
        let many = o.prefix.then(|| self.with_prefix(&o.word)).into_iter().flatten();
        let mut known = Known::No;
        for l in one.into_iter().chain(many) {
            let found = if l.places.is_empty() {
                // Weights of a lexeme without positions are not known.
                if places.is_some() {
                    Known::Maybe
                } else {
                    Known::Yes
                }
            } else {
                let mut hits = l.places.iter().filter(|p| o.weights == 0 || o.weights >> p.weight & 1 == 1).peekable();
                let any = hits.peek().is_some();
                if let Some(out) = places.as_deref_mut() {
                    out.extend(hits.map(|p| p.pos));
                }
                if any {
                    Known::Yes
                } else {
                    Known::No
                }
            };
            known = match (known, found) {
                (Known::Maybe, _) | (_, Known::Maybe) if places.is_some() => Known::Maybe,
                (Known::Yes, _) | (_, Known::Yes) => Known::Yes,
                (k, _) => k,
            };
        }
        if let Some(out) = places {
            out.sort_unstable();
            out.dedup();
        }
        known
    }
}

/// Where a part of a phrase ends; `except`: everywhere else.
#[derive(Default)]
struct Ends {
    at: Vec<u16>,
    except: bool,
    /// How many positions before its end it begins.
    width: u16,
}

/// Which positions two sets, moved apart, give: those of both, of the left alone, of the right alone.
fn merge(l: (&[u16], u16), r: (&[u16], u16), both: bool, left: bool, right: bool) -> Vec<u16> {
    let mut out = Vec::new();
    let (mut i, mut j) = (0, 0);
    let value = |s: &(&[u16], u16), i: usize| s.0.get(i).map(|v| u32::from(*v) + u32::from(s.1));
    loop {
        let (x, y) = (value(&l, i), value(&r, j));
        let (v, keep) = match (x, y) {
            (None, None) => return out,
            (Some(x), Some(y)) if x == y => {
                i += 1;
                j += 1;
                (x, both)
            }
            (Some(x), y) if y.is_none_or(|y| x < y) => {
                i += 1;
                (x, left)
            }
            (_, Some(y)) => {
                j += 1;
                (y, right)
            }
            (Some(_), None) => return out,
        };
        if keep {
            out.push(u16::try_from(v).unwrap_or(u16::MAX));
        }
    }
}

fn phrase(n: &Node, doc: &dyn Document) -> (Known, Ends) {
    let found = |ends: Ends| (if ends.at.is_empty() && !ends.except { Known::No } else { Known::Yes }, ends);
    match n {
        Node::Val(o) => {
            let mut at = Vec::new();
            let known = doc.find(o, Some(&mut at));
            (known, Ends { at, ..Ends::default() })
        }
        Node::Not(inner) => {
            let (known, ends) = phrase(inner, doc);
            match known {
                Known::No => (Known::Yes, Ends { at: Vec::new(), except: true, width: 0 }),
                Known::Maybe => (known, Ends::default()),
                Known::Yes if !ends.at.is_empty() => (Known::Yes, Ends { except: !ends.except, ..ends }),
                Known::Yes => (Known::No, Ends { except: false, ..ends }),
            }
        }
        Node::Phrase(p, _) | Node::And(p) => {
            let (lk, l) = phrase(&p.0, doc);
            if lk == Known::No {
                return (Known::No, Ends::default());
            }
            let (rk, r) = phrase(&p.1, doc);
            if rk == Known::No {
                return (Known::No, Ends::default());
            }
            if lk == Known::Maybe || rk == Known::Maybe {
                return (Known::Maybe, Ends::default());
            }
            let (lo, ro, width) = match n {
                Node::Phrase(_, d) => (d.saturating_add(r.width), 0, d.saturating_add(l.width).saturating_add(r.width)),
                _ => {
                    let w = l.width.max(r.width);
                    (w - l.width, w - r.width, w)
                }
            };
            let set = |both, left, right| merge((&l.at, lo), (&r.at, ro), both, left, right);
            match (l.except, r.except) {
                (true, true) => (Known::Yes, Ends { at: set(true, true, true), except: true, width }),
                (true, false) => found(Ends { at: set(false, false, true), except: false, width }),
                (false, true) => found(Ends { at: set(false, true, false), except: false, width }),
                (false, false) => found(Ends { at: set(true, false, false), except: false, width }),
            }
        }
        Node::Or(p) => {
            let ((lk, mut l), (rk, mut r)) = (phrase(&p.0, doc), phrase(&p.1, doc));
            if lk == Known::No && rk == Known::No {
                return (Known::No, Ends::default());
            }
            if lk == Known::Maybe || rk == Known::Maybe {
                return (Known::Maybe, Ends::default());
            }
            for (known, side) in [(lk, &mut l), (rk, &mut r)] {
                if known == Known::No {
                    *side = Ends::default();
                }
            }
            let width = l.width.max(r.width);
            let set = |both, left, right| merge((&l.at, width - l.width), (&r.at, width - r.width), both, left, right);
            match (l.except, r.except) {
                (true, true) => (Known::Yes, Ends { at: set(true, false, false), except: true, width }),
                (true, false) => (Known::Yes, Ends { at: set(false, true, false), except: true, width }),
                (false, true) => (Known::Yes, Ends { at: set(false, false, true), except: true, width }),
                (false, false) => found(Ends { at: set(true, true, true), except: false, width }),
            }
        }
    }
}

/// Whether a tree holds of a document.
pub fn holds(n: &Node, doc: &dyn Document) -> bool {
    match n {
        Node::Val(o) => doc.find(o, None) != Known::No,
        Node::Not(inner) => !holds(inner, doc),
        Node::And(p) => holds(&p.0, doc) && holds(&p.1, doc),
        Node::Or(p) => holds(&p.0, doc) || holds(&p.1, doc),
        Node::Phrase(..) => phrase(n, doc).0 == Known::Yes,
    }
}

/// An empty query matches nothing.
pub fn matches(v: &TsVector, q: &TsQuery) -> bool {
    q.0.as_ref().is_some_and(|n| holds(n, v))
}
