//! Rules that only add rows: of a recursion whose rule does, each round but the last has rows that the one before had not.

use expr::Scalar;
use plan::{Id, LocalId, Mir};
use std::collections::BTreeSet;

/// Whether the relation only gets more rows when the relations and bindings that it reads do; `locals` are the bindings that may.
pub fn is_monotonic(mir: &Mir, locals: &BTreeSet<LocalId>) -> bool {
    let go = |m: &Mir| is_monotonic(m, locals);
    // A predicate over the time lets rows expire.
    let timeless = |s: &[Scalar]| !s.iter().any(crate::temporal::reads_time);
    match mir {
        Mir::Constant { rows, .. } => rows.as_ref().is_ok_and(|rows| rows.iter().all(|r| r.1 > 0)),
        Mir::Get { id: Id::Global(_), .. } => true,
        Mir::Get { id: Id::Local(id), .. } => locals.contains(id),
        Mir::Let { id, value, body } => {
            let mut inner = locals.clone();
            if go(value) {
                inner.insert(*id);
            } else {
                inner.remove(id);
            }
            is_monotonic(body, &inner)
        }
        Mir::Project { input, .. } | Mir::Threshold { input } | Mir::FlatMap { input, .. } => go(input),
        Mir::Map { input, .. } => go(input),
        Mir::Filter { input, predicates } => timeless(predicates) && go(input),
        Mir::Join { inputs, .. } | Mir::Union { inputs } => inputs.iter().all(go),
        Mir::Reduce { input, aggregates, .. } => aggregates.is_empty() && go(input),
        Mir::LetRec { .. } | Mir::TopK { .. } | Mir::Window { .. } | Mir::Negate { .. } => false,
    }
}
