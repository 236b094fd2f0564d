//! DISTINCT inside sums and counts: distinct rows first, then the plain aggregate.
//!
//! ```text
//!   Reduce key, [sum(a), count(DISTINCT b) FILTER (WHERE f)]
//!     =>  Join on key (NULLs match)
//!           Reduce key, [sum(a)]                        over the input
//!           Reduce key, [count(b) FILTER (WHERE f)]     over the distinct (key, f, b)
//! ```
//!
//! A change then costs a look at one row's count, not at the whole group. An argument that can fail stays behind its FILTER: such an
//! aggregate is left as it is.

use super::{bottom_up, take};
use expr::agg::AggKind;
use expr::{Aggregate, Scalar};
use plan::{Equivalence, Mir};

pub(super) fn aggregates(mir: &mut Mir) {
    bottom_up(mir, &mut |m| {
        if let Mir::Reduce { aggregates, .. } = m {
            if aggregates.iter().any(applies) {
                let old = take(m);
                *m = split(old);
            }
        }
    });
}

fn applies(a: &Aggregate) -> bool {
    let guarded = a.filter.as_ref().is_some_and(|f| f.can_fail() || a.args.iter().any(Scalar::can_fail));
    a.distinct && matches!(a.func.kind, AggKind::Accumulable(_)) && !a.args.is_empty() && !guarded
}

fn split(mir: Mir) -> Mir {
    let Mir::Reduce { input, group_key, aggregates } = mir else { return mir };
    let keys = group_key.len();
    // Aggregates over the same arguments and filter share their distinct rows; those that stay come first.
    let mut groups: Vec<(Option<(Vec<Scalar>, Option<Scalar>)>, Vec<usize>)> = Vec::new();
    for (i, a) in aggregates.iter().enumerate() {
        let over = applies(a).then(|| (a.args.clone(), a.filter.clone()));
        match groups.iter_mut().find(|g| g.0 == over) {
            Some(g) => g.1.push(i),
            None => groups.push((over, vec![i])),
        }
    }
    groups.sort_by_key(|g| g.0.is_some());
    let part = |over: &Option<(Vec<Scalar>, Option<Scalar>)>, which: &[usize]| -> Mir {
        let some = which.iter().map(|i| aggregates[*i].clone());
        let Some((args, filter)) = over else {
            return Mir::Reduce { input: input.clone(), group_key: group_key.clone(), aggregates: some.collect() };
        };
        let arity = input.arity();
        let columns: Vec<Scalar> = group_key.iter().chain(args).chain(filter).cloned().collect();
        let width = columns.len();
        let rows = (*input).clone().map(columns).project((arity..arity + width).collect()).distinct();
        let over_rows = some
            .map(|a| Aggregate {
                args: (keys..keys + args.len()).map(Scalar::Column).collect(),
                filter: filter.as_ref().map(|_| Scalar::Column(keys + args.len())),
                distinct: false,
                order_by: vec![],
                ..a
            })
            .collect();
        Mir::Reduce { input: Box::new(rows), group_key: (0..keys).map(Scalar::Column).collect(), aggregates: over_rows }
    };
    if let [(over, which)] = groups.as_slice() {
        return part(over, which);
    }
    let inputs: Vec<Mir> = groups.iter().map(|(over, which)| part(over, which)).collect();
    let mut starts = Vec::new();
    let mut outputs: Vec<usize> = (0..keys).chain(std::iter::repeat_n(0, aggregates.len())).collect();
    let mut at = 0;
    for (input, (_, which)) in inputs.iter().zip(&groups) {
        starts.push(at);
        for (n, i) in which.iter().enumerate() {
            outputs[keys + i] = at + keys + n;
        }
        at += input.arity();
    }
    let equivalences = (0..keys).map(|k| Equivalence::null_safe(starts.iter().map(|s| Scalar::Column(s + k)).collect())).collect();
    Mir::Join { inputs, equivalences }.project(outputs)
}
