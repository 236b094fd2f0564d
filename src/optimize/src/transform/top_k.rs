//! First rows of groups: trivial limits, and numbered rows of which only the first are asked for.
//!
//! ```text
//!   Filter n <= 3                              Filter n <= 3
//!     Window n: row_number() over (p, o)   =>    Window n: row_number() over (p, o)
//!       r                                          TopK group p order o limit 3: r
//! ```

use super::{bottom_up, take};
use expr::{Scalar, WindowFunc};
use plan::Mir;
use repr::{SqlType, Value};

pub(super) fn simplify(mir: &mut Mir) {
    bottom_up(mir, &mut |m| match m {
        Mir::TopK { input, limit, offset, .. } => match literal_limit(limit.as_ref()) {
            Some(Some(0)) => *m = Mir::empty(input.types()),
            Some(None) if *offset == 0 => *m = take(input),
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
