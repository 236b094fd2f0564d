//! A recursion inside another's rule, if it reads nothing of the other: computed once, before it, with the bindings it reads.
//!
//! ```text
//!   LetRec outer = f(LetRec inner = ... in b)  in c     =>     Let i = (LetRec inner = ... in b)  in  LetRec outer = f(i) in c
//! ```
//!
//! A rule that reads the outer one's bindings stays where it is, and goes its rounds anew in each round of the outer.

use super::take;
use plan::{Id, LocalId, Mir};
use std::collections::BTreeSet;

pub(crate) fn inner_recursions(mir: &mut Mir) {
    let mut next = largest(mir) + 1;
    walk(mir, &mut next);
}

fn walk(mir: &mut Mir, next: &mut u64) {
    for c in mir.children_mut() {
        walk(c, next);
    }
    let Mir::LetRec { bindings, .. } = mir else { return };
    if !bindings.iter().any(|b| has_recursion(&b.value)) {
        return;
    }
    let mut inside: BTreeSet<LocalId> = bindings.iter().map(|b| b.id).collect();
    let mut hoisted = Vec::new();
    for b in bindings {
        pull(&mut b.value, &mut inside, next, &mut hoisted);
    }
    for (id, value) in hoisted.into_iter().rev() {
        *mir = Mir::Let { id, value: Box::new(value), body: Box::new(take(mir)) };
    }
}

fn has_recursion(mir: &Mir) -> bool {
    matches!(mir, Mir::LetRec { .. }) || mir.children().into_iter().any(has_recursion)
}

/// Takes closed bindings and closed recursions out of a rule, leaving reads of what they will be bound to. `inside`: bindings that
/// exist only in the rule.
fn pull(mir: &mut Mir, inside: &mut BTreeSet<LocalId>, next: &mut u64, out: &mut Vec<(LocalId, Mir)>) {
    while let Mir::Let { id, value, body } = mir {
        pull(value, inside, next, out);
        if !is_closed(value, inside) {
            inside.insert(*id);
            break;
        }
        out.push((*id, take(value)));
        *mir = take(body);
    }
    if matches!(mir, Mir::LetRec { .. }) && is_closed(mir, inside) {
        let id = LocalId(*next);
        *next += 1;
        let get = Mir::Get { id: Id::Local(id), types: mir.types(), keys: vec![] };
        out.push((id, std::mem::replace(mir, get)));
        return;
    }
    // One whose rule is closed, though what is asked of it is not: its binding alone.
    if let Mir::LetRec { bindings, limit, return_at_limit, body } = mir {
        if let [b] = &bindings[..] {
            if !free(&b.value, &mut BTreeSet::from([b.id])).iter().any(|l| inside.contains(l)) {
                let id = LocalId(*next);
                *next += 1;
                let own = Mir::Get { id: Id::Local(b.id), types: b.types.clone(), keys: vec![] };
                rename(body, b.id, id);
                let (limit, return_at_limit, rest) = (*limit, *return_at_limit, take(body));
                out.push((id, Mir::LetRec { bindings: std::mem::take(bindings), limit, return_at_limit, body: Box::new(own) }));
                *mir = rest;
                return pull(mir, inside, next, out);
            }
        }
        inside.extend(bindings.iter().map(|b| b.id));
    }
    for c in mir.children_mut() {
        pull(c, inside, next, out);
    }
}

/// Reads of one binding become reads of another.
fn rename(mir: &mut Mir, from: LocalId, to: LocalId) {
    if let Mir::Get { id: Id::Local(l), .. } = mir {
        if *l == from {
            *l = to;
        }
    }
    mir.children_mut().into_iter().for_each(|c| rename(c, from, to));
}

fn is_closed(mir: &Mir, inside: &BTreeSet<LocalId>) -> bool {
    free(mir, &mut BTreeSet::new()).is_disjoint(inside)
}

/// Bindings that are read but not made inside.
fn free(mir: &Mir, bound: &mut BTreeSet<LocalId>) -> BTreeSet<LocalId> {
    let mut found = BTreeSet::new();
    match mir {
        Mir::Get { id: Id::Local(l), .. } if !bound.contains(l) => {
            found.insert(*l);
        }
        Mir::Let { id, value, body } => {
            found.append(&mut free(value, bound));
            let fresh = bound.insert(*id);
            found.append(&mut free(body, bound));
            if fresh {
                bound.remove(id);
            }
        }
        Mir::LetRec { bindings, body, .. } => {
            let fresh: Vec<LocalId> = bindings.iter().map(|b| b.id).filter(|id| bound.insert(*id)).collect();
            for b in bindings {
                found.append(&mut free(&b.value, bound));
            }
            found.append(&mut free(body, bound));
            for id in fresh {
                bound.remove(&id);
            }
        }
        _ => mir.children().into_iter().for_each(|c| found.append(&mut free(c, bound))),
    }
    found
}

fn largest(mir: &Mir) -> u64 {
    let own = match mir {
        Mir::Let { id, .. } | Mir::Get { id: Id::Local(id), .. } => id.0,
        Mir::LetRec { bindings, .. } => bindings.iter().map(|b| b.id.0).max().unwrap_or(0),
        _ => 0,
    };
    mir.children().into_iter().map(largest).max().unwrap_or(0).max(own)
}

#[cfg(test)]
mod tests {
    use super::*;
    use plan::mir::RecBinding;
    use repr::SqlType;

    fn rec(id: u64, value: Mir, body: Mir) -> Mir {
        let types = vec![SqlType::Int4.nullable()];
        Mir::LetRec { bindings: vec![RecBinding { id: LocalId(id), types, value }], limit: None, return_at_limit: false, body: Box::new(body) }
    }
    fn get(id: u64) -> Mir {
        Mir::Get { id: Id::Local(LocalId(id)), types: vec![SqlType::Int4.nullable()], keys: vec![] }
    }

    #[test]
    fn a_closed_inner_recursion_moves_out_and_an_open_one_stays() {
        let mut closed = rec(1, get(1).union(rec(2, get(2), get(2))), get(1));
        inner_recursions(&mut closed);
        let Mir::Let { id, value, body } = &closed else { panic!("{closed:?}") };
        assert_eq!(**value, rec(2, get(2), get(2)));
        assert_eq!(**body, rec(1, get(1).union(get(id.0)), get(1)));

        let open = rec(1, rec(2, get(2).union(get(1)), get(2)), get(1));
        let mut after = open.clone();
        inner_recursions(&mut after);
        assert_eq!(after, open);
    }

    #[test]
    fn what_reads_an_inner_recursion_stays_with_it() {
        let read = Mir::Let { id: LocalId(3), value: get(2).boxed(), body: get(3).boxed() };
        let open = rec(1, rec(2, get(2).union(get(1)), read), get(1));
        let mut after = open.clone();
        inner_recursions(&mut after);
        assert_eq!(after, open);
    }
}
