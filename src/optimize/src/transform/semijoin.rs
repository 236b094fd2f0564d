//! Distinct outer rows that a join back makes needless.
//!
//! Decorrelation evaluates a subquery for the distinct values `Y` of the outer rows' columns, and joins the result back on
//! them. Where the subquery itself binds all these columns by equality, `Y` only keeps away rows that the join back drops:
//!
//! ```text
//!   Join X.k = D.k                           Join X.k = D.k
//!     X                                  =>    X
//!     D = distinct k of                        D = distinct u.k of
//!       Join Y.k = u.k: Y = distinct X.k, u      u, u.k not null
//! ```
//!
//! And where `Y` stands in the same join as the rows it was made from, each row meets exactly one of it.

use super::take;
use crate::chain::Chain;
use expr::Scalar;
use plan::equality::equal_is_identical;
use plan::{Equivalence, Id, LocalId, Mir};
use repr::ColType;
use std::collections::BTreeMap;

type Bindings = BTreeMap<LocalId, Mir>;

pub(super) fn outer_rows(mir: &mut Mir) {
    walk(mir, &mut Bindings::new());
}

fn walk(mir: &mut Mir, bound: &mut Bindings) {
    if let Mir::Let { id, value, body } = mir {
        walk(value, bound);
        bound.insert(*id, (**value).clone());
        walk(body, bound);
        return;
    }
    mir.children_mut().into_iter().for_each(|c| walk(c, bound));
    if matches!(mir, Mir::Join { .. }) {
        beside(mir, bound);
    }
    if matches!(mir, Mir::Join { .. }) {
        inside(mir, bound);
    }
}

/// What a set of distinct columns was made from.
struct DistinctOf {
    base: Mir,
    columns: Vec<usize>,
}

/// Recognizes `distinct columns of base`, by way of a binding too. The base is a `Get`.
fn distinct_of(mir: &Mir, bound: &Bindings) -> Option<DistinctOf> {
    match mir {
        Mir::Get { id: Id::Local(l), .. } => bound.get(l).and_then(|v| distinct_of(v, bound)),
        Mir::Reduce { input, group_key, aggregates } if aggregates.is_empty() => {
            let (base, trace) = traced(input)?;
            let columns = group_key.iter().map(|k| if let Scalar::Column(c) = k { trace[*c] } else { None }).collect::<Option<Vec<_>>>()?;
            (!Chain::peel(input).1.has_predicates()).then(|| DistinctOf { base: base.clone(), columns })
        }
        _ => None,
    }
}

/// The `Get` below Maps, Filters and Projects, and which of its columns each column is.
fn traced(mir: &Mir) -> Option<(&Mir, Vec<Option<usize>>)> {
    let (base, chain) = Chain::peel(mir);
    let n = base.arity();
    matches!(base, Mir::Get { .. }).then(|| (base, chain.project.iter().map(|c| (*c < n).then_some(*c)).collect()))
}

fn starts(inputs: &[Mir]) -> Vec<usize> {
    let mut at = vec![0];
    for i in inputs {
        at.push(at[at.len() - 1] + i.arity());
    }
    at
}

/// For each of the columns `at..` of a distinct set, the column of another input that it was made from and is equated with;
/// all of one input, whose rows are some of the set's base.
fn partners(inputs: &[Mir], classes: &[Equivalence], own: usize, at: &[usize], made_from: &DistinctOf) -> Option<Vec<usize>> {
    let starts = starts(inputs);
    'inputs: for (i, input) in inputs.iter().enumerate() {
        let Some((base, trace)) = traced(input).filter(|_| i != own) else { continue };
        if *base != made_from.base {
            continue;
        }
        let mut found = Vec::new();
        for (column, wanted) in at.iter().zip(&made_from.columns) {
            let class = classes.iter().find(|e| e.exprs.contains(&Scalar::Column(*column)));
            let partner = class.and_then(|e| {
                let is_source = |c: &usize| *c >= starts[i] && *c < starts[i + 1] && trace[*c - starts[i]] == Some(*wanted);
                let columns = e.exprs.iter().filter_map(|x| if let Scalar::Column(c) = x { Some(*c) } else { None });
                // If NULLs do not match, the class that stays keeps them away as before.
                columns.into_iter().find(is_source)
            });
            match partner {
                Some(p) => found.push(p),
                None => continue 'inputs,
            }
        }
        return Some(found);
    }
    None
}

/// Drops a distinct set that stands beside the rows it was made from.
fn beside(mir: &mut Mir, bound: &Bindings) {
    let Mir::Join { inputs, equivalences } = mir else { return };
    let starts = starts(inputs);
    for own in 0..inputs.len() {
        let Some(made_from) = distinct_of(&inputs[own], bound) else { continue };
        let at: Vec<usize> = (starts[own]..starts[own + 1]).collect();
        let Some(partners) = partners(inputs, equivalences, own, &at, &made_from) else { continue };
        let width = at.len();
        let (from, to) = (starts[own], starts[own + 1]);
        let place = move |c: usize| if c < from { c } else { c - width };
        let source = |c: usize| if (from..to).contains(&c) { partners[c - from] } else { c };
        for e in equivalences.iter_mut() {
            e.exprs.iter_mut().for_each(|x| x.permute(&|c| place(source(c))));
        }
        let outputs: Vec<usize> = (0..starts[inputs.len()]).map(|c| place(source(c))).collect();
        inputs.remove(own);
        let (classes, not_null) = super::pushdown::merged(std::mem::take(equivalences));
        *equivalences = classes;
        let mut joined = take(mir);
        if let Mir::Join { inputs, equivalences } = &mut joined {
            if inputs.len() == 1 && equivalences.is_empty() {
                joined = inputs.remove(0);
            }
        }
        *mir = joined.filter(not_null).project(outputs);
        return;
    }
}

/// Drops a distinct set inside a distinct that is joined back to the rows the set was made from.
fn inside(mir: &mut Mir, bound: &Bindings) {
    let Mir::Join { inputs, equivalences } = mir else { return };
    let starts = starts(inputs);
    for own in 0..inputs.len() {
        let Mir::Reduce { input, group_key, aggregates } = &inputs[own] else { continue };
        if !aggregates.is_empty() {
            continue;
        }
        let (base, chain) = Chain::peel(input);
        let Mir::Join { inputs: inner, equivalences: inner_classes } = base else { continue };
        for y in 0..inner.len() {
            let Some(made_from) = distinct_of(&inner[y], bound) else { continue };
            let inner_starts = self::starts(inner);
            let set = inner_starts[y]..inner_starts[y + 1];
            // Where in the distinct's key the set's columns are.
            let keyed: Option<Vec<usize>> =
                set.clone().map(|c| group_key.iter().position(|k| matches!(k, Scalar::Column(o) if chain.project[*o] == c)).map(|p| starts[own] + p)).collect();
            let Some(at) = keyed else { continue };
            let Some(partners) = partners(inputs, equivalences, own, &at, &made_from) else { continue };
            let Some(input) = without_set(inner, inner_classes, y, set, chain.clone()) else { continue };
            let group_key = group_key.clone();
            inputs[own] = Mir::Reduce { input: input.boxed(), group_key, aggregates: vec![] };
            // The key columns show the outer rows' form of equal values, as before.
            let total = starts[inputs.len()];
            let outputs: Vec<usize> = (0..total).map(|c| at.iter().position(|a| *a == c).map_or(c, |i| partners[i])).collect();
            *mir = take(mir).project(outputs);
            return;
        }
    }
}

/// The chain over the join without its input `y`, whose columns are replaced by what they are equated with.
fn without_set(inputs: &[Mir], classes: &[Equivalence], y: usize, set: std::ops::Range<usize>, chain: Chain) -> Option<Mir> {
    let types: Vec<ColType> = inputs.iter().flat_map(Mir::types).collect();
    let n = types.len();
    let outside = |x: &Scalar| x.support().iter().all(|c| !set.contains(c)) && !x.support().is_empty();
    let mut columns: Vec<Scalar> = (0..n).map(Scalar::Column).collect();
    let mut not_null = Vec::new();
    for c in set.clone() {
        let class = classes.iter().find(|e| e.exprs.contains(&Scalar::Column(c)))?;
        let other = class.exprs.iter().find(|x| outside(x) && !x.can_fail())?;
        if !class.null_safe && other.typ(&types).nullable {
            not_null.push(Scalar::Not(Box::new(Scalar::IsNull(Box::new(other.clone())))));
        }
        // Beside keys and classes nothing may read a column whose equals differ.
        if !equal_is_identical(&types[c].ty) && chain.reads(c) {
            return None;
        }
        columns[c] = other.clone();
    }
    let width = set.len();
    let place = |c: usize| if c < set.start { c } else { c - width };
    let mut kept: Vec<Mir> = inputs.to_vec();
    kept.remove(y);
    let mut classes: Vec<Equivalence> = classes.to_vec();
    for e in &mut classes {
        if !equal_is_identical(&e.exprs[0].typ(&types).ty)
            && e.exprs.iter().any(|x| !matches!(x, Scalar::Column(_)) && x.support().iter().any(|c| set.contains(c)))
        {
            return None;
        }
        for x in &mut e.exprs {
            x.substitute(&columns);
            x.permute(&place);
        }
    }
    let (classes, more) = super::pushdown::merged(classes);
    not_null.iter_mut().for_each(|p| p.permute(&place));
    not_null.extend(more);
    let joined = if kept.len() == 1 && classes.is_empty() { kept.remove(0) } else { Mir::Join { inputs: kept, equivalences: classes } };
    let mut scalars: Vec<Scalar> = columns;
    scalars.iter_mut().for_each(|s| s.permute(&place));
    // The old columns, in the old order, then the chain as it was.
    let m = n - width;
    let old = joined.filter(not_null).map(scalars).project((m..m + n).collect());
    Some(chain.apply(old))
}
