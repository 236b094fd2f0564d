//! Relations that only get more rows: of a recursion whose rule does, each round but the last has rows that the one before had not, and the
//! extrema of such a relation need none of its rows.

use expr::Scalar;
use plan::{Id, LocalId, Mir};
use repr::{ColType, GlobalId};
use std::collections::BTreeSet;

/// Whether the relation only gets more rows when the relations and bindings that it reads do; `locals` are the bindings that may, `globals` the catalog's relations.
///
/// Rows count as equal if SQL says so: of a group that is made distinct another member may come to be shown.
pub fn is_monotonic(mir: &Mir, locals: &BTreeSet<LocalId>, globals: &dyn Fn(GlobalId) -> bool) -> bool {
    let go = |m: &Mir| is_monotonic(m, locals, globals);
    // A predicate over the time lets rows expire.
    let timeless = |s: &[Scalar]| !s.iter().any(crate::temporal::reads_time);
    match mir {
        Mir::Constant { rows, .. } => rows.as_ref().is_ok_and(|rows| rows.iter().all(|r| r.1 > 0)),
        Mir::Get { id: Id::Global(id), .. } => globals(*id),
        Mir::Get { id: Id::Local(id), .. } => locals.contains(id),
        Mir::Let { id, value, body } => {
            let mut inner = locals.clone();
            if go(value) {
                inner.insert(*id);
            } else {
                inner.remove(id);
            }
            is_monotonic(body, &inner, globals)
        }
        Mir::Project { input, .. } | Mir::Threshold { input } | Mir::FlatMap { input, .. } => go(input),
        Mir::Map { input, .. } => go(input),
        Mir::Filter { input, predicates } => timeless(predicates) && go(input),
        Mir::Join { inputs, .. } | Mir::Union { inputs } => inputs.iter().all(go),
        Mir::Reduce { input, aggregates, .. } => aggregates.is_empty() && go(input),
        Mir::LetRec { .. } | Mir::TopK { .. } | Mir::Window { .. } | Mir::Negate { .. } => false,
    }
}

/// As [`is_monotonic`] for rows as they are shown: none is ever taken back.
pub fn only_grows(mir: &Mir, locals: &BTreeSet<LocalId>, globals: &dyn Fn(GlobalId) -> bool) -> bool {
    is_monotonic(mir, locals, globals) && shows_first_forms(mir)
}

/// Whether no node chooses which of several equal forms is shown.
fn shows_first_forms(mir: &Mir) -> bool {
    let identical = |types: Vec<ColType>| !types.iter().any(|t| t.ty.equal_is_not_identical());
    let here = !matches!(mir, Mir::Reduce { .. } | Mir::Threshold { .. }) || identical(mir.types());
    here && mir.children().into_iter().all(shows_first_forms)
}
