//! Conditions of WHERE on the preserved side of a join whose ON has a subquery: they are asked before the join.
//!
//! ```text
//!   a left join b on b.x = (select … a …) where a.k = 1       =>       (a where a.k = 1) left join b on b.x = (select … a …)
//! ```
//!
//! Such a join reads its left side several times, so that no later step could tell that all of them ask for the same rows; the subquery would be
//! computed for all of `a`. What WHERE leaves out can no longer fail in ON, as in Postgres.

use super::env::{children_mut, has_subquery};
use crate::hir::{Hir, HirScalar, JoinKind};
use crate::plan::walk::{is_volatile, reads};

pub(super) fn filter_sooner(h: &mut Hir) {
    stacker::maybe_grow(64 * 1024, 1024 * 1024, || {
        if let Hir::Filter { input, predicates } = h {
            for p in std::mem::take(predicates) {
                predicates.extend(below(input, p));
            }
        }
        children_mut(h).into_iter().for_each(filter_sooner);
    })
}

/// Asks the condition below the join that `h` is, if that has a subquery in ON; else it is handed back.
fn below(h: &mut Hir, mut p: HirScalar) -> Option<HirScalar> {
    let Hir::Join { left, kind: JoinKind::Left, .. } = &*h else { return Some(p) };
    let n = left.arity();
    let mut read = false;
    let of_left = !reads(&mut p, |c| {
        read = true;
        c >= n
    });
    if !of_left || !read || !asks(h) || has_subquery(&p) || is_volatile(&p) {
        return Some(p);
    }
    let Hir::Join { left, .. } = h else { return Some(p) };
    if let Some(p) = below(left, p) {
        match &mut **left {
            Hir::Filter { predicates, .. } => predicates.push(p),
            other => {
                *other = Hir::Filter { input: Box::new(std::mem::replace(other, Hir::Constant { rows: Vec::new(), types: Vec::new() })), predicates: vec![p] }
            }
        }
    }
    None
}

/// Whether ON of the join, or of one that its left side is, has a subquery.
fn asks(h: &Hir) -> bool {
    matches!(h, Hir::Join { left, on, kind: JoinKind::Left, .. } if has_subquery(on) || asks(left))
}
