//! Unique keys: column sets on which no two rows of a relation agree, so that every row is there once.
//!
//! The empty set is a key of a relation of at most one row. NULLs agree with each other here.

use crate::chain::Chain;
use expr::Scalar;
use plan::{Equivalence, Id, LocalId, Mir};
use repr::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Keys of bindings in scope.
pub type LocalKeys = BTreeMap<LocalId, Vec<Vec<usize>>>;

const KEYS_MAX: usize = 8; // more keys than this help nobody and make joins of many relations slow to plan

/// Keys of the relation, each sorted, none containing another.
pub fn unique_keys(mir: &Mir, locals: &LocalKeys) -> Vec<Vec<usize>> {
    let keys = match mir {
        Mir::Constant { rows, .. } => match rows {
            Ok(rows) if rows.iter().all(|r| r.1 > 0) && rows.iter().map(|r| r.1).sum::<i64>() <= 1 => vec![vec![]],
            _ => vec![],
        },
        Mir::Get { id, keys, .. } => {
            let mut keys = keys.clone();
            if let Id::Local(l) = id {
                keys.extend(locals.get(l).into_iter().flatten().cloned());
            }
            keys
        }
        Mir::Let { id, value, body } => {
            let mut inner = locals.clone();
            inner.insert(*id, unique_keys(value, locals));
            unique_keys(body, &inner)
        }
        Mir::LetRec { bindings, body, .. } => {
            let mut inner = locals.clone();
            bindings.iter().for_each(|b| {
                inner.remove(&b.id);
            });
            unique_keys(body, &inner)
        }
        Mir::Project { input, outputs } => {
            let place = |c: &usize| outputs.iter().position(|o| o == c);
            unique_keys(input, locals).iter().filter_map(|k| k.iter().map(place).collect()).collect()
        }
        Mir::Map { input, .. } | Mir::Window { input, .. } => unique_keys(input, locals),
        Mir::Threshold { input } => unique_keys(input, locals),
        Mir::Filter { input, predicates } => {
            let fixed: BTreeSet<usize> = predicates.iter().filter_map(fixed_column).collect();
            let mut keys = unique_keys(input, locals);
            keys.iter_mut().for_each(|k| k.retain(|c| !fixed.contains(c)));
            keys
        }
        Mir::FlatMap { input, func } => {
            let last = mir.arity() - 1;
            if func.with_ordinality {
                unique_keys(input, locals).into_iter().map(|k| k.into_iter().chain([last]).collect()).collect()
            } else {
                vec![]
            }
        }
        Mir::Join { inputs, equivalences } => join_keys(inputs, equivalences, locals),
        Mir::Reduce { input, group_key, .. } => {
            let mut keys = vec![(0..group_key.len()).collect::<Vec<_>>()];
            let place = |c: &usize| group_key.iter().position(|g| *g == Scalar::Column(*c));
            keys.extend(unique_keys(input, locals).iter().filter_map(|k| k.iter().map(place).collect::<Option<Vec<_>>>()));
            keys
        }
        Mir::TopK { input, group_key, limit, with_ties, .. } => {
            let mut keys = unique_keys(input, locals);
            if let Some(Scalar::Literal(Value::Int8(0 | 1), _)) = limit {
                if !with_ties {
                    keys.push(group_key.clone());
                }
            }
            keys
        }
        Mir::Negate { .. } => vec![],
        Mir::Union { inputs } => match &inputs[..] {
            [one] => unique_keys(one, locals),
            [groups, rest] => with_defaults(groups, rest, locals).into_iter().collect(),
            _ => vec![],
        },
    };
    minimal(keys)
}

/// Groups by key, and a row of defaults for each key of a set that has no group: `G union map (K minus keys of G)`.
fn with_defaults(groups: &Mir, rest: &Mir, locals: &LocalKeys) -> Option<Vec<usize>> {
    let (base, chain) = Chain::peel(rest);
    let Mir::Union { inputs } = base else { return None };
    let (set, minus) = match &inputs[..] {
        [set, Mir::Negate { input }] | [Mir::Negate { input }, set] => (set, input),
        _ => return None,
    };
    let (below, outputs) = match &**minus {
        Mir::Project { input, outputs } => (&**input, outputs.clone()),
        other => (other, (0..other.arity()).collect()),
    };
    let set_keys = unique_keys(set, locals);
    let group_keys = unique_keys(groups, locals);
    let is_key = |k: &[usize], keys: &[Vec<usize>]| keys.iter().any(|u| u.iter().all(|c| k.contains(c)));
    let every: Vec<usize> = (0..set.arity()).collect();
    // The same columns of the union are the key in both parts.
    let aligned = outputs.iter().enumerate().all(|(i, o)| chain.project.get(*o) == Some(&i));
    let fits = below == groups && !chain.has_predicates() && aligned && is_key(&every, &set_keys) && is_key(&outputs, &group_keys);
    fits.then_some(outputs)
}

fn minimal(keys: Vec<Vec<usize>>) -> Vec<Vec<usize>> {
    let mut sets: Vec<BTreeSet<usize>> = keys.into_iter().map(|k| k.into_iter().collect()).collect();
    sets.sort_by_key(|s| (s.len(), s.iter().copied().collect::<Vec<_>>()));
    let mut kept: Vec<BTreeSet<usize>> = Vec::new();
    for s in sets {
        if kept.len() < KEYS_MAX && !kept.iter().any(|k| k.is_subset(&s)) {
            kept.push(s);
        }
    }
    kept.into_iter().map(|s| s.into_iter().collect()).collect()
}

/// The column that a predicate binds to one value (or to NULL).
fn fixed_column(p: &Scalar) -> Option<usize> {
    match p {
        Scalar::IsNull(x) => match **x {
            Scalar::Column(c) => Some(c),
            _ => None,
        },
        Scalar::Call { func, args, .. } if plan::equality::is_equality(func) => match &args[..] {
            [Scalar::Column(c), Scalar::Literal(..)] | [Scalar::Literal(..), Scalar::Column(c)] => Some(*c),
            _ => None,
        },
        _ => None,
    }
}

/// Starts from a key of one input and follows the classes: an input one of whose keys is known is known altogether.
/// Where nothing follows any more, a key of the next input is added.
fn join_keys(inputs: &[Mir], equivalences: &[Equivalence], locals: &LocalKeys) -> Vec<Vec<usize>> {
    let mut offset = 0;
    let mut input_keys: Vec<Vec<Vec<usize>>> = Vec::new();
    let mut ranges = Vec::new();
    for i in inputs {
        let keys = unique_keys(i, locals);
        if keys.is_empty() {
            return vec![];
        }
        input_keys.push(keys.into_iter().map(|k| k.into_iter().map(|c| c + offset).collect()).collect());
        ranges.push(offset..offset + i.arity());
        offset += i.arity();
    }
    let mut found = Vec::new();
    for (start, keys) in input_keys.iter().enumerate() {
        for key in keys {
            let mut chosen: BTreeSet<usize> = key.iter().copied().collect();
            let mut known = chosen.clone();
            let mut done = vec![false; inputs.len()];
            loop {
                let before = (known.len(), done.iter().filter(|d| **d).count());
                for e in equivalences {
                    if e.exprs.iter().any(|x| x.support().iter().all(|c| known.contains(c))) {
                        known.extend(e.exprs.iter().filter_map(|x| if let Scalar::Column(c) = x { Some(*c) } else { None }));
                    }
                }
                for (i, keys) in input_keys.iter().enumerate() {
                    if !done[i] && keys.iter().any(|k| k.iter().all(|c| known.contains(c))) {
                        done[i] = true;
                        known.extend(ranges[i].clone());
                    }
                }
                if done.iter().all(|d| *d) {
                    break;
                }
                if before == (known.len(), done.iter().filter(|d| **d).count()) {
                    // Deterministic: the inputs after the start in turn.
                    let next = (0..inputs.len()).map(|i| (start + i) % inputs.len()).find(|i| !done[*i]);
                    if let Some(k) = next.and_then(|i| input_keys[i].first()) {
                        chosen.extend(k.iter().copied());
                        known.extend(k.iter().copied());
                    }
                }
            }
            found.push(chosen.into_iter().collect());
        }
    }
    found
}
