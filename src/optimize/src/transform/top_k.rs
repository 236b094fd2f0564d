//! First rows of groups: trivial limits, and numbered rows of which only the first are asked for.
//!
//! ```text
//!   Filter n <= 3                              Filter n <= 3
//!     Window n: row_number() over (p, o)   =>    Window n: row_number() over (p, o)
//!       r                                          TopK group p order o limit 3: r
//! ```
//!
//! A recursion of which only some rows are asked for, once, need not end: each of its rounds but the last adds a row.

use super::{bottom_up, take};
use crate::chain::Chain;
use crate::monotonic::is_monotonic;
use expr::{Scalar, WindowFunc};
use plan::mir::RecBinding;
use plan::{Id, LocalId, Mir};
use repr::{SqlType, Value};

pub(super) fn simplify(mir: &mut Mir, one_off: bool) {
    bottom_up(mir, &mut |m| match m {
        Mir::LetRec { bindings, limit: limit @ None, return_at_limit, body } if one_off && grows(bindings) => {
            *limit = rows_asked_for(body, bindings[0].id);
            *return_at_limit = limit.is_some();
        }
        Mir::TopK { input, limit, offset, group_key, order_by, with_ties } => match literal_limit(limit.as_ref()) {
            Some(Some(0)) => *m = Mir::empty(input.types()),
            Some(None) if *offset == 0 => *m = take(input),
            Some(Some(n)) if one_off && group_key.is_empty() && order_by.is_empty() && !*with_ties => {
                let enough = u64::try_from(n).ok().and_then(|n| n.checked_add(*offset));
                if let (Some((bound, return_at_limit)), Some(n)) = (recursion_below(input), enough) {
                    (*bound, *return_at_limit) = (Some(n), true);
                }
            }
            _ => {}
        },
        Mir::Filter { input, predicates } => numbered(input, predicates),
        _ => {}
    });
}

/// The limit if it is known now: `Some(None)` is no limit.
pub(super) fn literal_limit(limit: Option<&Scalar>) -> Option<Option<i64>> {
    match limit {
        None | Some(Scalar::Literal(Value::Null, _)) => Some(None),
        Some(Scalar::Literal(v, _)) => v.as_i64().map(Some),
        Some(_) => None,
    }
}

/// Whether each round of the recursion but the last adds a row.
fn grows(bindings: &[RecBinding]) -> bool {
    matches!(bindings, [b] if is_monotonic(&b.value, &[b.id].into(), &|_| true))
}

/// The bound of a recursion all of whose rows are the relation's, if it has none yet.
fn recursion_below(mir: &mut Mir) -> Option<(&mut Option<u64>, &mut bool)> {
    match mir {
        Mir::Map { input, .. } | Mir::Project { input, .. } => recursion_below(input),
        Mir::LetRec { bindings, limit: limit @ None, return_at_limit, body } if grows(bindings) => match Chain::peel(body) {
            (Mir::Get { id: Id::Local(l), .. }, chain) if *l == bindings[0].id && !chain.has_predicates() => Some((limit, return_at_limit)),
            _ => None,
        },
        _ => None,
    }
}

/// How many rows of a binding are enough, if only LIMITs without an order read it.
fn rows_asked_for(mir: &Mir, id: LocalId) -> Option<u64> {
    match mir {
        Mir::Get { id: Id::Local(l), .. } if *l == id => None,
        Mir::TopK { input, group_key, order_by, limit: Some(Scalar::Literal(n, _)), offset, with_ties: false }
            if group_key.is_empty() && order_by.is_empty() =>
        {
            let (base, chain) = Chain::peel(input);
            match base {
                Mir::Get { id: Id::Local(l), .. } if *l == id && !chain.has_predicates() => {
                    u64::try_from(n.as_i64()?).ok()?.checked_add(*offset).map(|n| n.max(1))
                }
                _ => rows_asked_for(input, id),
            }
        }
        other => other.children().into_iter().try_fold(0, |most, c| rows_asked_for(c, id).map(|n| n.max(most))),
    }
}

fn numbered(window: &mut Mir, predicates: &[Scalar]) {
    let Mir::Window { input, partition, order_by, exprs } = window else { return };
    let n = input.arity();
    let ranks = |f: &WindowFunc| matches!(f, WindowFunc::RowNumber | WindowFunc::Rank | WindowFunc::DenseRank);
    if !exprs.iter().all(|e| ranks(&e.func)) {
        return;
    }
    for (i, e) in exprs.iter().enumerate() {
        let with_ties = match e.func {
            WindowFunc::RowNumber => false,
            WindowFunc::Rank => true,
            _ => continue,
        };
        let Some(k) = predicates.iter().filter_map(|p| upper_bound(p, n + i)).min().filter(|k| *k > 0) else { continue };
        let limit = Some(Scalar::literal(Value::Int8(k), SqlType::Int8));
        let top = Mir::TopK { input: Box::new(take(input)), group_key: partition.clone(), order_by: order_by.clone(), limit, offset: 0, with_ties };
        // Once is enough.
        if let Mir::TopK { input: below, .. } = &top {
            if matches!((&**below, &top), (Mir::TopK { limit: a, group_key: g, order_by: o, offset: 0, .. }, Mir::TopK { limit: b, group_key: h, order_by: p, .. }) if a == b && g == h && o == p)
            {
                let Mir::TopK { input: below, .. } = top else { return };
                *input = below;
                return;
            }
        }
        **input = top;
        return;
    }
}

/// The greatest value of column `c` that satisfies a comparison with a literal.
fn upper_bound(p: &Scalar, c: usize) -> Option<i64> {
    let Scalar::Call { func, args, .. } = p else { return None };
    match (&args[..], func.name) {
        ([Scalar::Column(x), Scalar::Literal(v, _)], name) if *x == c => match name {
            "int8le" | "int84le" | "int82le" | "int8eq" | "int84eq" | "int82eq" => v.as_i64(),
            "int8lt" | "int84lt" | "int82lt" => v.as_i64()?.checked_sub(1),
            _ => None,
        },
        ([Scalar::Literal(v, _), Scalar::Column(x)], name) if *x == c => match name {
            "int8ge" | "int48ge" | "int28ge" | "int8eq" | "int48eq" | "int28eq" => v.as_i64(),
            "int8gt" | "int48gt" | "int28gt" => v.as_i64()?.checked_sub(1),
            _ => None,
        },
        _ => None,
    }
}
