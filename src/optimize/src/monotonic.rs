//! Relations that only grow: nothing is ever retracted from them, so a group's extremum or first rows need no memory of
//! the rows that lost.

use expr::Scalar;
use plan::{Id, LocalId, Mir};
use repr::GlobalId;
use std::collections::BTreeSet;

/// Whether no row is ever retracted from the relation, given which catalog relations and bindings only grow.
pub fn is_monotonic(mir: &Mir, append_only: &dyn Fn(GlobalId) -> bool, locals: &BTreeSet<LocalId>) -> bool {
    let go = |m: &Mir| is_monotonic(m, append_only, locals);
    // A predicate over the time lets rows expire.
    let timeless = |s: &[Scalar]| !s.iter().any(crate::temporal::reads_time);
    match mir {
        Mir::Constant { rows, .. } => rows.as_ref().is_ok_and(|rows| rows.iter().all(|r| r.1 > 0)),
        Mir::Get { id: Id::Global(id), .. } => append_only(*id),
        Mir::Get { id: Id::Local(id), .. } => locals.contains(id),
        Mir::Let { id, value, body } => {
            let mut inner = locals.clone();
            if go(value) {
                inner.insert(*id);
            } else {
                inner.remove(id);
            }
            is_monotonic(body, append_only, &inner)
        }
        Mir::Project { input, .. } | Mir::Threshold { input } | Mir::FlatMap { input, .. } => go(input),
        Mir::Map { input, .. } => go(input),
        Mir::Filter { input, predicates } => timeless(predicates) && go(input),
        Mir::Join { inputs, .. } | Mir::Union { inputs } => inputs.iter().all(go),
        Mir::Reduce { input, aggregates, .. } => aggregates.is_empty() && go(input),
        Mir::LetRec { .. } | Mir::TopK { .. } | Mir::Window { .. } | Mir::Negate { .. } => false,
    }
}
