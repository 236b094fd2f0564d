//! Bindings: one that is read once, or that costs nothing to repeat, is put where it is read; one that nobody reads goes.
//!
//! A binding outside a recursion stays outside: inside, it would be computed in each round.

use super::take;
use expr::Scalar;
use plan::{Id, LocalId, Mir};
use repr::ColType;
use std::collections::BTreeSet;

pub(super) fn simplify(mir: &mut Mir) {
    inline(mir);
    wrap(mir);
}

/// Moves all bindings to the top, in order, so that nothing stands between operators. Those in a recursion stay in it.
fn hoist(mut mir: Mir, out: &mut Vec<(LocalId, Mir)>) -> Mir {
    match mir {
        Mir::Let { id, value, body } => {
            let value = hoist(*value, out);
            out.push((id, value));
            hoist(*body, out)
        }
        Mir::LetRec { mut bindings, limit, return_at_limit, mut body } => {
            bindings.iter_mut().for_each(|b| wrap(&mut b.value));
            wrap(&mut body);
            Mir::LetRec { bindings, limit, return_at_limit, body }
        }
        _ => {
            for c in mir.children_mut() {
                *c = hoist(take(c), out);
            }
            mir
        }
    }
}

fn wrap(mir: &mut Mir) {
    let mut bindings = Vec::new();
    let body = hoist(take(mir), &mut bindings);
    *mir = bindings.into_iter().rev().fold(body, |body, (id, value)| Mir::Let { id, value: Box::new(value), body: Box::new(body) });
}

fn inline(mir: &mut Mir) {
    if let Mir::Let { id, value, body } = mir {
        inline(value);
        let (count, in_loop) = uses(body, *id, false);
        let cheap = is_cheap(value);
        if count == 0 {
            *mir = take(body);
            inline(mir);
            return;
        }
        if cheap || (count == 1 && !in_loop) {
            let value = take(value);
            let id = *id;
            let mut body = take(body);
            replace(&mut body, id, &value);
            *mir = body;
            inline(mir);
            return;
        }
        inline(body);
        return;
    }
    mir.children_mut().into_iter().for_each(inline);
}

fn is_cheap(value: &Mir) -> bool {
    match value {
        Mir::Get { .. } => true,
        Mir::Constant { rows, .. } => rows.as_ref().map_or(true, |r| r.len() <= 1),
        Mir::Project { input, .. } => is_cheap(input),
        Mir::Map { input, scalars } => scalars.iter().all(|s| matches!(s, Scalar::Literal(..))) && is_cheap(input),
        // Each reader has its own conditions on the pairs, which make different joins of them. Such bindings made of each other, as those of
        // many scalar subqueries are, would double the plan with each.
        Mir::Join { inputs, equivalences } => equivalences.is_empty() && inputs.len() > 1 && !inputs.iter().any(binds) && size(value) <= REPEATED_NODES_MAX,
        _ => false,
    }
}

/// Of a binding that is repeated where it is read.
const REPEATED_NODES_MAX: usize = 64;

fn size(mir: &Mir) -> usize {
    1 + mir.children().into_iter().map(size).sum::<usize>()
}

/// A binding may not be repeated: its name is bound once.
fn binds(mir: &Mir) -> bool {
    matches!(mir, Mir::Let { .. } | Mir::LetRec { .. }) || mir.children().into_iter().any(binds)
}

/// How often a binding is read, and whether inside a recursion.
pub(super) fn uses(mir: &Mir, id: LocalId, in_loop: bool) -> (usize, bool) {
    let add = |a: (usize, bool), b: (usize, bool)| (a.0 + b.0, a.1 | b.1);
    match mir {
        Mir::Get { id: Id::Local(l), .. } if *l == id => (1, in_loop),
        Mir::LetRec { bindings, body, .. } => {
            let inside = bindings.iter().map(|b| uses(&b.value, id, true)).fold((0, false), add);
            add(inside, uses(body, id, in_loop))
        }
        _ => mir.children().into_iter().map(|c| uses(c, id, in_loop)).fold((0, false), add),
    }
}

/// Puts `value` where the binding is read.
pub(super) fn replace(mir: &mut Mir, id: LocalId, value: &Mir) {
    if matches!(mir, Mir::Get { id: Id::Local(l), .. } if *l == id) {
        *mir = value.clone();
        return;
    }
    mir.children_mut().into_iter().for_each(|c| replace(c, id, value));
}

/// Adapts the readers of a binding to a value that kept only the columns `read`, whose types are given.
pub(super) fn narrow(mir: &mut Mir, id: LocalId, read: &BTreeSet<usize>, kept: &[ColType]) {
    let place = |c: usize| read.range(..c).count();
    if let Mir::Get { id: Id::Local(l), types, keys } = mir {
        if *l == id {
            *types = kept.to_vec();
            keys.retain(|k| k.iter().all(|c| read.contains(c)));
            keys.iter_mut().flatten().for_each(|c| *c = place(*c));
        }
        return;
    }
    if let Mir::Project { input, outputs } = mir {
        if matches!(**input, Mir::Get { id: Id::Local(l), .. } if l == id) {
            outputs.iter_mut().for_each(|o| *o = place(*o));
        }
    }
    mir.children_mut().into_iter().for_each(|c| narrow(c, id, read, kept));
}
