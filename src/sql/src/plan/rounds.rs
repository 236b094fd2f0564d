//! Recursive terms that look at several rows at once.
//!
//! Postgres runs the recursive term on the rows of the last round alone. A term that goes row by row may as well see all rows so far; one with
//! DISTINCT, LIMIT, window functions or the like may not. Its rows carry the number of their round:
//!
//! ```text
//!   r(cols) = base UNION ALL term(r)    =>    n(round, cols) = (0, base) UNION ALL (i + 1, term(rows of n with round = i)) for each round i of n
//!                                             r(cols) = n without its round
//! ```
//!
//! UNION keeps of equal rows the one of the first round.

use super::query::project;
use super::walk::shift_hir;
use crate::hir::{ColumnRef, Hir, HirScalar, JoinKind};
use expr::ColumnOrder;
use plan::LocalId;
use repr::{ColType, SqlError, SqlType, Value};

/// Whether the term takes the rows of binding `id` one by one.
pub fn goes_row_by_row(term: &Hir, id: LocalId) -> bool {
    if !reads(term, id) {
        return true;
    }
    match term {
        Hir::GetLocal { .. } => true,
        Hir::Project { input, .. } | Hir::Map { input, .. } | Hir::Filter { input, .. } => goes_row_by_row(input, id),
        Hir::Join { left, right, .. } => goes_row_by_row(left, id) && goes_row_by_row(right, id),
        Hir::Union { inputs } => inputs.iter().all(|i| goes_row_by_row(i, id)),
        _ => false,
    }
}

/// The numbered rows `n` of a recursion, and what `r` is of them.
pub struct Numbered {
    pub types: Vec<ColType>,
    pub value: Hir,
    pub rows: Hir,
}

/// The recursion of binding `id` as one of numbered rows, which will be bound to `numbered`.
pub fn number(base: Hir, mut term: Hir, id: LocalId, numbered: LocalId, types: &[ColType], all: bool) -> Result<Numbered, SqlError> {
    let int8 = SqlType::Int8.not_null();
    let all_types: Vec<ColType> = std::iter::once(int8.clone()).chain(types.iter().cloned()).collect();
    let n = types.len();
    let get = || Hir::GetLocal { id: numbered, types: all_types.clone() };
    // The round is one more row around the term.
    shift_hir(&mut term, 1, 1);
    let equal = crate::lower::function(467)?;
    let of_round = |depth: usize| {
        let column = |level, column| HirScalar::Column(ColumnRef { level, column }, int8.clone());
        let same = HirScalar::Call { func: equal, args: vec![column(0, 0), column(1 + depth, 0)], ty: SqlType::Bool.not_null() };
        project(Hir::Filter { input: Box::new(get()), predicates: vec![same] }, (1..=n).collect())
    };
    replace(&mut term, id, 0, &of_round);
    let rounds = Hir::Distinct { input: Box::new(project(get(), vec![0])) };
    let on = super::from::true_();
    let step = Hir::Join { left: Box::new(rounds), right: Box::new(term), on, kind: JoinKind::Inner, lateral: true };
    let one = HirScalar::Literal(Value::Int8(1), int8.clone());
    let round = HirScalar::Column(ColumnRef { level: 0, column: 0 }, int8.clone());
    let later = HirScalar::Call { func: crate::lower::function(463)?, args: vec![round, one], ty: int8.clone() };
    let step = project(Hir::Map { input: Box::new(step), scalars: vec![later] }, std::iter::once(n + 1).chain(1..=n).collect());
    let zero = HirScalar::Literal(Value::Int8(0), int8);
    let base = project(Hir::Map { input: Box::new(base), scalars: vec![zero] }, std::iter::once(n).chain(0..n).collect());
    let mut value = Hir::Union { inputs: vec![base, step] };
    if !all {
        value = Hir::TopK {
            input: Box::new(value),
            group_key: (1..=n).collect(),
            order_by: vec![ColumnOrder { column: 0, desc: false, nulls_last: true }],
            limit: Some(HirScalar::Literal(Value::Int8(1), SqlType::Int8.not_null())),
            offset: None,
            with_ties: false,
        };
    }
    let rows = project(get(), (1..=n).collect());
    Ok(Numbered { types: all_types, value, rows })
}

fn reads(h: &Hir, id: LocalId) -> bool {
    matches!(h, Hir::GetLocal { id: l, .. } if *l == id) || crate::lower::children(h).into_iter().any(|c| reads(c, id))
}

/// Puts `with` in the place of reads of the binding. Scalars hold none: the recursive term names itself in FROM only.
fn replace(h: &mut Hir, id: LocalId, depth: usize, with: &dyn Fn(usize) -> Hir) {
    match h {
        Hir::GetLocal { id: l, .. } if *l == id => *h = with(depth),
        Hir::Join { left, right, lateral, .. } => {
            replace(left, id, depth, with);
            replace(right, id, depth + usize::from(*lateral), with);
        }
        h => crate::lower::children_mut(h).into_iter().for_each(|c| replace(c, id, depth, with)),
    }
}
