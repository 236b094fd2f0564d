//! Equal parts computed once: a join, group or the like that occurs twice becomes a binding.

use super::take;
use plan::{Id, LocalId, Mir};
use std::collections::BTreeMap;

pub(super) fn subplans(mir: &mut Mir) {
    let mut next = largest(mir) + 1;
    for _ in 0..ROUNDS_MAX {
        let mut seen: BTreeMap<String, (usize, usize)> = BTreeMap::new();
        count(mir, &mut seen);
        // The largest first: its parts are then shared with it.
        let Some(text) = seen.into_iter().filter(|(_, (n, _))| *n > 1).max_by_key(|(_, (_, size))| *size).map(|(t, _)| t) else { return };
        let id = LocalId(next);
        next += 1;
        bind(mir, &text, id);
    }
}

const ROUNDS_MAX: usize = 50; // shared parts of one plan; more would make planning slow

fn is_worthwhile(mir: &Mir) -> bool {
    matches!(mir, Mir::Join { .. } | Mir::Reduce { .. } | Mir::TopK { .. } | Mir::Window { .. } | Mir::Threshold { .. } | Mir::FlatMap { .. })
}

/// How often each worthwhile part occurs, and its size. Recursions are left as they are.
fn count(mir: &Mir, seen: &mut BTreeMap<String, (usize, usize)>) -> usize {
    if matches!(mir, Mir::LetRec { .. }) {
        return 1;
    }
    let size = 1 + mir.children().into_iter().map(|c| count(c, seen)).sum::<usize>();
    if is_worthwhile(mir) {
        seen.entry(format!("{mir:?}")).or_insert((0, size)).0 += 1;
    }
    size
}

fn contains(mir: &Mir, text: &str) -> bool {
    if matches!(mir, Mir::LetRec { .. }) {
        return false;
    }
    (is_worthwhile(mir) && format!("{mir:?}") == text) || mir.children().into_iter().any(|c| contains(c, text))
}

/// Binds the part before the first binding that holds it; all that it refers to is bound by then.
fn bind(mir: &mut Mir, text: &str, id: LocalId) {
    if let Mir::Let { value, body, .. } = mir {
        if !contains(value, text) {
            bind(body, text, id);
            return;
        }
    }
    let mut value = None;
    replace(mir, text, id, &mut value);
    if let Some(value) = value {
        *mir = Mir::Let { id, value: Box::new(value), body: Box::new(take(mir)) };
    }
}

fn replace(mir: &mut Mir, text: &str, id: LocalId, value: &mut Option<Mir>) {
    if matches!(mir, Mir::LetRec { .. }) {
        return;
    }
    if is_worthwhile(mir) && format!("{mir:?}") == text {
        let types = mir.types();
        let part = std::mem::replace(mir, Mir::Get { id: Id::Local(id), types, keys: vec![] });
        value.get_or_insert(part);
        return;
    }
    mir.children_mut().into_iter().for_each(|c| replace(c, text, id, value));
}

/// The largest local id in the plan.
fn largest(mir: &Mir) -> u64 {
    let own = match mir {
        Mir::Get { id: Id::Local(l), .. } | Mir::Let { id: l, .. } => l.0,
        Mir::LetRec { bindings, .. } => bindings.iter().map(|b| b.id.0).max().unwrap_or(0),
        _ => 0,
    };
    mir.children().into_iter().map(largest).fold(own, u64::max)
}
