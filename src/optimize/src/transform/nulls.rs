//! Predicates that reject NULL, and NULLs that wait for them: an outer join whose padded rows are filtered away is an inner join.
//!
//! A padded row is a branch of a union that maps literal NULLs. A strict comparison of such a column with anything is not
//! true, so the branch can go, even if the comparison itself must stay where it is: `not null` is pushed down in its stead.

use expr::func::Volatility;
use expr::Scalar;
use plan::Mir;
use repr::Value;
use std::collections::BTreeSet;

/// Columns that are not NULL on any row on which `p` is true.
pub(super) fn rejected(p: &Scalar) -> BTreeSet<usize> {
    match p {
        Scalar::And(xs) => xs.iter().flat_map(rejected).collect(),
        Scalar::Or(xs) => {
            let mut all = xs.iter().map(rejected);
            let first = all.next().unwrap_or_default();
            all.fold(first, |a, b| a.intersection(&b).copied().collect())
        }
        Scalar::Not(x) => match &**x {
            Scalar::IsNull(y) => strict(y),
            x => strict(x),
        },
        p => strict(p),
    }
}

/// Columns that make the scalar NULL when they are.
pub(super) fn strict(s: &Scalar) -> BTreeSet<usize> {
    match s {
        Scalar::Column(c) => BTreeSet::from([*c]),
        Scalar::Call { func, args, .. } if func.strict && func.volatility != Volatility::Volatile => args.iter().flat_map(strict).collect(),
        Scalar::Not(x) => strict(x),
        _ => BTreeSet::new(),
    }
}

/// Whether the column is a padding NULL on some branch below, which a test for NULL could reach.
pub(super) fn is_padded(mir: &Mir, column: usize) -> bool {
    match mir {
        Mir::Project { input, outputs } => is_padded(input, outputs[column]),
        Mir::Filter { input, .. } => is_padded(input, column),
        Mir::Map { input, scalars } => {
            let n = input.arity();
            match column.checked_sub(n).map(|i| &scalars[i]) {
                None => is_padded(input, column),
                Some(Scalar::Literal(Value::Null, _)) => true,
                Some(s) => strict(s).into_iter().any(|c| is_padded(mir, c)),
            }
        }
        Mir::Union { inputs } => inputs.iter().any(|i| is_padded(i, column)),
        Mir::Join { inputs, .. } => {
            let mut at = 0;
            for i in inputs {
                let end = at + i.arity();
                if column < end {
                    return is_padded(i, column - at);
                }
                at = end;
            }
            false
        }
        _ => false,
    }
}

pub(super) fn not_null(column: usize) -> Scalar {
    Scalar::Not(Box::new(Scalar::IsNull(Box::new(Scalar::Column(column)))))
}
