//! Unions, negations, thresholds, empty relations, and steps that do nothing.

use super::{bottom_up, is_empty, take};
use expr::Scalar;
use plan::Mir;

pub(super) fn simplify(mir: &mut Mir) {
    bottom_up(mir, &mut node);
}

fn node(mir: &mut Mir) {
    let types = match mir {
        Mir::Constant { .. } | Mir::Get { .. } | Mir::Let { .. } | Mir::LetRec { .. } => return,
        Mir::Union { inputs } => {
            union(inputs);
            return match inputs.len() {
                0 => *mir = Mir::empty(vec![]),
                1 => *mir = inputs.remove(0),
                _ => {}
            };
        }
        Mir::Join { ref inputs, .. } if inputs.iter().any(is_empty) => mir.types(),
        ref other if other.children().len() == 1 && is_empty(other.children()[0]) && !matches!(other, Mir::Join { .. }) => other.types(),
        other => {
            step(other);
            return;
        }
    };
    *mir = Mir::empty(types);
}

fn step(mir: &mut Mir) {
    match mir {
        Mir::Project { input, outputs } => {
            if let Mir::Project { input: below, outputs: inner } = &mut **input {
                let fused = outputs.iter().map(|o| inner[*o]).collect();
                *mir = take(below).project(fused);
                step(mir);
            } else if outputs.iter().copied().eq(0..input.arity()) {
                *mir = take(input);
            }
        }
        Mir::Map { input, scalars } => {
            if scalars.is_empty() {
                *mir = take(input);
            } else if let Mir::Map { input: below, scalars: inner } = &mut **input {
                inner.append(scalars);
                let (below, scalars) = (take(below), std::mem::take(inner));
                *mir = below.map(scalars);
                step(mir);
            } else if scalars.iter().any(|s| matches!(s, Scalar::Column(_))) {
                renamed(mir);
            }
        }
        Mir::Filter { input, predicates } => {
            if predicates.is_empty() {
                *mir = take(input);
            } else if let Mir::Filter { input: below, predicates: inner } = &mut **input {
                inner.append(predicates);
                let (below, predicates) = (take(below), std::mem::take(inner));
                *mir = below.filter(predicates);
            }
        }
        Mir::Negate { input } => match &mut **input {
            Mir::Negate { input: below } => *mir = take(below),
            Mir::Constant { rows: Ok(rows), .. } => {
                rows.iter_mut().for_each(|r| r.1 = -r.1);
                *mir = take(input);
            }
            _ => {}
        },
        Mir::Threshold { input } if matches!(&**input, Mir::Constant { rows: Ok(rows), .. } if rows.len() <= CONSTANT_MAX) => {
            if let Mir::Constant { rows: Ok(rows), .. } = &mut **input {
                consolidate(rows);
                rows.retain(|r| r.1 > 0);
            }
            *mir = take(input);
        }
        Mir::Threshold { input } if never_negative(input) => *mir = take(input),
        _ => {}
    }
}

/// Maps that repeat a column become a projection.
fn renamed(mir: &mut Mir) {
    let Mir::Map { input, scalars } = mir else { return };
    let n = input.arity();
    let mut place: Vec<usize> = (0..n).collect();
    let mut kept = Vec::new();
    for s in std::mem::take(scalars) {
        let mut s = s;
        s.permute(&|c| place[c]);
        match s {
            Scalar::Column(c) => place.push(c),
            s => {
                place.push(n + kept.len());
                kept.push(s);
            }
        }
    }
    *mir = take(input).map(kept).project(place);
}

/// Flattens, drops empty parts, and pairs that cancel out.
fn union(inputs: &mut Vec<Mir>) {
    let types = inputs.first().map(Mir::types).unwrap_or_default();
    let mut flat: Vec<Mir> = Vec::new();
    for i in std::mem::take(inputs) {
        match i {
            Mir::Union { inputs } => flat.extend(inputs),
            Mir::Negate { input } => match *input {
                Mir::Union { inputs } => flat.extend(inputs.into_iter().map(Mir::negate)),
                other => flat.push(other.negate()),
            },
            other => flat.push(other),
        }
    }
    let mut kept: Vec<Mir> = Vec::new();
    for i in flat {
        let opposite = match &i {
            Mir::Negate { input } => kept.iter().position(|k| *k == **input),
            other => kept.iter().position(|k| matches!(k, Mir::Negate { input } if **input == *other)),
        };
        match (opposite, i) {
            (Some(at), _) => {
                kept.remove(at);
            }
            (None, Mir::Constant { rows: Ok(mut rows), types }) => {
                if rows.is_empty() {
                    continue;
                }
                let other = kept.iter_mut().find_map(|k| match k {
                    Mir::Constant { rows: Ok(rows), types: t } if *t == types => Some(rows),
                    _ => None,
                });
                match other {
                    Some(other) => {
                        other.append(&mut rows);
                        consolidate(other);
                    }
                    None => kept.push(Mir::Constant { rows: Ok(rows), types }),
                }
            }
            (None, i) if is_empty(&i) => {}
            (None, Mir::Negate { input }) if is_empty(&input) => {}
            (None, i) => kept.push(i),
        }
    }
    if kept.is_empty() {
        kept.push(Mir::empty(types));
    }
    *inputs = kept;
}

/// Adds up rows that are the same, drops those that are not there.
fn consolidate(rows: &mut Vec<(Vec<repr::Value>, i64)>) {
    if rows.len() > CONSTANT_MAX {
        return;
    }
    let mut sums: Vec<(Vec<repr::Value>, i64)> = Vec::new();
    for (row, diff) in std::mem::take(rows) {
        match sums.iter_mut().find(|s| s.0 == row) {
            Some(s) => s.1 += diff,
            None => sums.push((row, diff)),
        }
    }
    sums.retain(|s| s.1 != 0);
    *rows = sums;
}

const CONSTANT_MAX: usize = 100; // rows that are compared with each other at planning time

/// Whether no row can have a negative count. May say no when it is so.
pub(super) fn never_negative(mir: &Mir) -> bool {
    match mir {
        Mir::Constant { rows, .. } => rows.as_ref().is_ok_and(|r| r.iter().all(|r| r.1 >= 0)),
        // Bindings hold whole relations of the query, counted as such.
        Mir::Get { id, .. } => matches!(id, plan::Id::Global(_)),
        Mir::Negate { .. } | Mir::Let { .. } | Mir::LetRec { .. } => false,
        Mir::Reduce { .. } | Mir::Threshold { .. } | Mir::TopK { .. } => true,
        other => other.children().into_iter().all(never_negative),
    }
}
