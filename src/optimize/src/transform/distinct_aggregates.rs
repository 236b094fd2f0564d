//! DISTINCT aggregates as plain aggregates of distinct rows.
//!
//! ```text
//!   Reduce by g: count(distinct x), sum(y)      =>      Join on g is g
//!     r                                                   Reduce by g: sum(y)
//!                                                           r
//!                                                         Reduce by g: count(x)
//!                                                           Distinct g, x: r
//! ```
//!
//! An aggregate that accumulates costs the size of the change; with DISTINCT inside it would be computed anew from the whole
//! group. FILTER becomes a NULL argument, which these aggregates pass over, so that no group is lost.

use super::take;
use expr::agg::{AccumKind, AggKind};
use expr::{Aggregate, Scalar};
use plan::{Equivalence, Id, LocalId, Mir};
use repr::Value;

pub(super) fn separate(mir: &mut Mir) {
    let mut next = super::share::largest(mir) + 1;
    super::bottom_up(mir, &mut |m| node(m, &mut next));
}

/// Whether the aggregate accumulates over one argument whose NULLs it passes over, and is DISTINCT.
fn is_separable(a: &Aggregate) -> bool {
    let accumulates = matches!(a.func.kind, AggKind::Accumulable(k) if k != AccumKind::CountStar && k != AccumKind::Regr);
    a.distinct && accumulates && a.args.len() == 1
}

fn node(mir: &mut Mir, next: &mut u64) {
    let Mir::Reduce { input, group_key, aggregates } = mir else { return };
    if !aggregates.iter().any(is_separable) {
        return;
    }
    let types = input.types();
    let k = group_key.len();
    // Arguments, each with the positions of its aggregates.
    let mut arguments: Vec<(Scalar, Vec<usize>)> = Vec::new();
    let mut plain = Vec::new();
    for (i, a) in aggregates.iter().enumerate() {
        if !is_separable(a) {
            plain.push(i);
            continue;
        }
        let x = match &a.filter {
            None => a.args[0].clone(),
            Some(f) => {
                let ty = a.args[0].typ(&types).with_nullable(true);
                Scalar::Case { branches: vec![(f.clone(), a.args[0].clone())], otherwise: Box::new(Scalar::Literal(Value::Null, ty.clone())), ty }
            }
        };
        match arguments.iter_mut().find(|(y, _)| *y == x) {
            Some((_, at)) => at.push(i),
            None => arguments.push((x, vec![i])),
        }
    }
    let (input, group_key, aggregates) = (take(input), std::mem::take(group_key), std::mem::take(aggregates));
    let parts = arguments.len() + usize::from(!plain.is_empty());
    let id = LocalId(*next);
    let source = if parts == 1 { input.clone() } else { Mir::Get { id: Id::Local(id), types: types.clone(), keys: vec![] } };
    let keys = || (0..k).map(Scalar::Column).collect::<Vec<_>>();
    let mut reduced: Vec<(Mir, Vec<usize>)> = Vec::new();
    if !plain.is_empty() {
        let kept = plain.iter().map(|i| aggregates[*i].clone()).collect();
        reduced.push((Mir::Reduce { input: source.clone().boxed(), group_key: group_key.clone(), aggregates: kept }, plain));
    }
    for (x, at) in arguments {
        let n = types.len();
        let columns: Vec<Scalar> = group_key.iter().cloned().chain([x]).collect();
        let rows = source.clone().map(columns).project((n..n + k + 1).collect()).distinct();
        let over_distinct = |a: &Aggregate| Aggregate { args: vec![Scalar::Column(k)], distinct: false, filter: None, order_by: vec![], ..a.clone() };
        let kept = at.iter().map(|i| over_distinct(&aggregates[*i])).collect();
        reduced.push((Mir::Reduce { input: rows.boxed(), group_key: keys(), aggregates: kept }, at));
    }
    if parts == 1 {
        *mir = reduced.remove(0).0;
        return;
    }
    *next += 1;
    // Every part has the same groups.
    let mut place = vec![0; aggregates.len()];
    let mut starts = Vec::new();
    let mut width = 0;
    for (part, at) in &reduced {
        at.iter().enumerate().for_each(|(i, a)| place[*a] = width + k + i);
        starts.push(width);
        width += part.arity();
    }
    let equivalences = (0..k).map(|c| Equivalence::null_safe(starts.iter().map(|s| Scalar::Column(s + c)).collect())).collect();
    let joined = Mir::Join { inputs: reduced.into_iter().map(|r| r.0).collect(), equivalences };
    let body = joined.project((0..k).chain(place).collect());
    *mir = Mir::Let { id, value: input.boxed(), body: body.boxed() };
}
