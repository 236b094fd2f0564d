//! Filters to where rows come from, and equalities into join classes.
//!
//! ```text
//!   Filter a.k = b.k, a.k > 5          Join a.k = b.k
//!     Join                        =>     Filter a.k > 5: a
//!       a, b                             Filter b.k > 5: b      implied through the class
//! ```
//!
//! A predicate that can fail stays where it is; so does one on a column whose equal values differ, where rows stand for
//! their equals (group keys). An equality between two inputs of a join is a class even if a side of it can fail: that side is
//! then evaluated on every row of its input, as the key of a hash join is, and not on pairs, of which there are too many.

use super::nulls::{is_padded, not_null, rejected, strict};
use super::{conjuncts, is_movable, is_volatile, respects_equality, take};
use expr::Scalar;
use plan::equality::{class_sides, equal_is_identical, equality};
use plan::{Equivalence, Mir};
use repr::{ColType, SqlError};
use std::collections::BTreeSet;

pub(super) fn filters(mir: &mut Mir) -> Result<(), SqlError> {
    let plan = take(mir);
    *mir = push(plan, vec![])?;
    Ok(())
}

/// `mir` with `predicates`, all movable, applied as far down as they go.
fn push(mir: Mir, predicates: Vec<Scalar>) -> Result<Mir, SqlError> {
    match mir {
        Mir::Filter { mut input, predicates: own } => {
            let (mut movable, fixed): (Vec<_>, Vec<_>) = own.into_iter().flat_map(conjuncts).partition(is_movable);
            for p in predicates {
                if !movable.contains(&p) {
                    movable.push(p);
                }
            }
            let fixed: Vec<Scalar> = fixed.into_iter().filter_map(|p| absorbed(&mut input, p)).collect();
            for c in fixed.iter().flat_map(rejected) {
                if is_padded(&input, c) && !movable.contains(&not_null(c)) {
                    movable.push(not_null(c));
                }
            }
            Ok(push(*input, movable)?.filter(fixed))
        }
        Mir::Project { input, outputs } => {
            let mut down = predicates;
            down.iter_mut().for_each(|p| p.permute(&|c| outputs[c]));
            Ok(push(*input, down)?.project(outputs))
        }
        Mir::Map { input, scalars } => {
            let n = input.arity();
            // What each column is in terms of the input; a column that can fail is no basis for a predicate below.
            let mut columns: Vec<Scalar> = (0..n).map(Scalar::Column).collect();
            for s in &scalars {
                let mut s = s.clone();
                s.substitute(&columns);
                columns.push(s);
            }
            let (mut down, mut stay) = (Vec::new(), Vec::new());
            for p in predicates {
                let mut q = p.clone();
                q.substitute(&columns);
                if is_movable(&q) && size(&q) <= SIZE_MAX {
                    down.push(q);
                } else {
                    stay.push(p);
                }
            }
            // What stays may still keep padding NULLs away, by way of what the columns are made of.
            for c in stay.iter().flat_map(rejected) {
                for below in strict(&columns[c]) {
                    if is_padded(&input, below) && !down.contains(&not_null(below)) {
                        down.push(not_null(below));
                    }
                }
            }
            Ok(push(*input, down)?.map(scalars).filter(stay))
        }
        Mir::FlatMap { input, func } => {
            let n = input.arity();
            let (down, stay): (Vec<_>, Vec<_>) = predicates.into_iter().partition(|p| p.support().iter().all(|c| *c < n));
            let called = Mir::FlatMap { input: push(*input, down)?.boxed(), func };
            Ok(called.filter(stay))
        }
        Mir::Join { inputs, equivalences } => join(inputs, equivalences, predicates),
        Mir::Reduce { input, group_key, aggregates } => {
            let types = input.types();
            let key_types: Vec<ColType> = group_key.iter().map(|k| k.typ(&types)).collect();
            let on_key = |p: &Scalar| !group_key.is_empty() && p.support().iter().all(|c| *c < group_key.len()) && respects_equality(p, &key_types);
            let (mut down, mut stay) = (Vec::new(), Vec::new());
            for p in predicates {
                let mut q = p.clone();
                if on_key(&p) {
                    q.substitute(&group_key);
                    if is_movable(&q) {
                        down.push(q);
                        continue;
                    }
                }
                stay.push(p);
            }
            let reduced = Mir::Reduce { input: push(*input, down)?.boxed(), group_key, aggregates };
            Ok(reduced.filter(stay))
        }
        Mir::TopK { input, group_key, order_by, limit, offset, with_ties } => {
            let types = input.types();
            let (down, stay) = by_columns(predicates, &group_key, &types);
            let top = Mir::TopK { input: push(*input, down)?.boxed(), group_key, order_by, limit, offset, with_ties };
            Ok(top.filter(stay))
        }
        Mir::Window { input, partition, order_by, exprs } => {
            let types = input.types();
            let (down, stay) = by_columns(predicates, &partition, &types);
            let window = Mir::Window { input: push(*input, down)?.boxed(), partition, order_by, exprs };
            Ok(window.filter(stay))
        }
        Mir::Negate { input } => Ok(push(*input, predicates)?.negate()),
        Mir::Threshold { input } => Ok(push(*input, predicates)?.threshold()),
        Mir::Union { inputs } => {
            let inputs = inputs.into_iter().map(|i| push(i, predicates.clone())).collect::<Result<_, _>>()?;
            Ok(Mir::Union { inputs })
        }
        Mir::Let { id, value, body } => {
            let value = push(*value, vec![])?.boxed();
            Ok(Mir::Let { id, value, body: push(*body, predicates)?.boxed() })
        }
        Mir::LetRec { mut bindings, limit, return_at_limit, body } => {
            for b in &mut bindings {
                b.value = push(take(&mut b.value), vec![])?;
            }
            Ok(Mir::LetRec { bindings, limit, return_at_limit, body: push(*body, predicates)?.boxed() })
        }
        leaf @ (Mir::Constant { .. } | Mir::Get { .. }) => Ok(leaf.filter(predicates)),
    }
}

/// Makes an equality that can fail a class of the join below that it is about; what cannot be one is given back.
fn absorbed(mir: &mut Mir, p: Scalar) -> Option<Scalar> {
    match mir {
        Mir::Filter { input, .. } => absorbed(input, p),
        Mir::Project { input, outputs } => {
            let mut below = p.clone();
            below.permute(&|c| outputs[c]);
            absorbed(input, below).map(|_| p)
        }
        Mir::Join { inputs, equivalences } if inputs.len() > 1 && !is_volatile(&p) => {
            let types: Vec<ColType> = inputs.iter().flat_map(Mir::types).collect();
            let mut side_of = Vec::new();
            for (i, input) in inputs.iter().enumerate() {
                side_of.resize(side_of.len() + input.arity(), i);
            }
            let side = |s: &Scalar| {
                let support = s.support();
                let first = side_of[*support.first()?];
                support.iter().all(|c| side_of[*c] == first).then_some(first)
            };
            let Some((a, b, null_safe)) = class_sides(&p, &types) else { return Some(p) };
            match (side(a), side(b)) {
                (Some(i), Some(j)) if i != j => equivalences.push(Equivalence { exprs: vec![a.clone(), b.clone()], null_safe }),
                _ => return Some(p),
            }
            None
        }
        _ => Some(p),
    }
}

const SIZE_MAX: usize = 200; // nodes of a predicate after columns were replaced by what they stand for

fn size(s: &Scalar) -> usize {
    let mut n = 0;
    s.visit(&mut |_| n += 1);
    n
}

/// Predicates over `columns` alone, true of all rows of a group or of none; and the others.
fn by_columns(predicates: Vec<Scalar>, columns: &[usize], types: &[ColType]) -> (Vec<Scalar>, Vec<Scalar>) {
    let on = |p: &Scalar| !columns.is_empty() && p.support().iter().all(|c| columns.contains(c)) && respects_equality(p, types);
    predicates.into_iter().partition(on)
}

fn join(inputs: Vec<Mir>, mut classes: Vec<Equivalence>, predicates: Vec<Scalar>) -> Result<Mir, SqlError> {
    let types: Vec<ColType> = inputs.iter().flat_map(Mir::types).collect();
    let mut starts = vec![0];
    for i in &inputs {
        starts.push(starts[starts.len() - 1] + i.arity());
    }
    let side_of = |c: usize| starts.partition_point(|s| *s <= c) - 1;
    let side = |s: &Scalar| -> Option<usize> {
        let support = s.support();
        let first = side_of(*support.first()?);
        support.iter().all(|c| side_of(*c) == first).then_some(first)
    };

    // A class that contains a constant is a comparison with it.
    let mut predicates = predicates;
    for class in &mut classes {
        let Some(at) = class.exprs.iter().position(|x| x.support().is_empty() && is_movable(x)) else { continue };
        let constant = class.exprs.remove(at);
        for x in class.exprs.iter().filter(|x| is_movable(x)) {
            predicates.push(equality(x.clone(), constant.clone(), &constant.typ(&types).ty, class.null_safe)?);
        }
        if class.exprs.iter().any(|x| !is_movable(x)) {
            class.exprs.insert(at, constant);
        }
    }
    classes.retain(|c| c.exprs.len() > 1);

    let mut down: Vec<Vec<Scalar>> = vec![vec![]; inputs.len()];
    let mut stay = Vec::new();
    for p in predicates {
        match (side(&p), class_sides(&p, &types)) {
            (Some(i), _) => down[i].push(p),
            (None, Some((a, b, null_safe))) if !a.support().is_empty() && !b.support().is_empty() && inputs.len() > 1 => {
                classes.push(Equivalence { exprs: vec![a.clone(), b.clone()], null_safe });
            }
            _ => stay.push(p),
        }
    }
    let (classes, of_itself) = merged(classes);
    for p in of_itself {
        match side(&p) {
            Some(i) if is_movable(&p) && !down[i].contains(&p) => down[i].push(p),
            Some(_) if is_movable(&p) => {}
            _ => stay.push(p),
        }
    }

    // Predicates on one column hold for its equals.
    let mut implied: Vec<(usize, Scalar)> = Vec::new();
    for p in down.iter().flatten() {
        let support = p.support();
        let Some(&c) = support.first().filter(|_| support.len() == 1) else { continue };
        for class in classes.iter().filter(|e| e.exprs.contains(&Scalar::Column(c))) {
            for x in &class.exprs {
                let Scalar::Column(d) = x else { continue };
                let same = types[c].ty == types[*d].ty && (equal_is_identical(&types[c].ty) || respects_equality(p, &types));
                if *d != c && side_of(*d) != side_of(c) && same {
                    let mut q = p.clone();
                    q.permute(&|_| *d);
                    implied.push((side_of(*d), q));
                }
            }
        }
    }
    for (i, q) in implied {
        if !down[i].contains(&q) {
            down[i].push(q);
        }
    }

    // Columns that a class or a predicate above asks to be something keep padding NULLs away.
    let in_classes = classes.iter().filter(|e| !e.null_safe).flat_map(|e| &e.exprs).flat_map(strict);
    for c in in_classes.chain(stay.iter().flat_map(rejected)).collect::<BTreeSet<_>>() {
        let i = side_of(c);
        if is_padded(&inputs[i], c - starts[i]) && !down[i].contains(&not_null(c)) {
            down[i].push(not_null(c));
        }
    }

    // Members of a class that belong to one input are compared there.
    let mut kept = Vec::new();
    for class in classes {
        let mut exprs: Vec<Scalar> = Vec::new();
        for x in class.exprs {
            let twin = side(&x).and_then(|i| exprs.iter().find(|y| side(y) == Some(i)).map(|y| (i, y.clone())));
            match twin {
                Some((i, y)) if !x.can_fail() && !y.can_fail() => {
                    let check = equality(y, x.clone(), &x.typ(&types).ty, class.null_safe)?;
                    if !down[i].contains(&check) {
                        down[i].push(check);
                    }
                }
                _ => exprs.push(x),
            }
        }
        if exprs.len() > 1 {
            kept.push(Equivalence { exprs, null_safe: class.null_safe });
        }
    }

    let mut pushed = Vec::new();
    for (i, (input, mut own)) in inputs.into_iter().zip(down).enumerate() {
        own.iter_mut().for_each(|p| p.permute(&|c| c - starts[i]));
        pushed.push(push(input, own)?);
    }
    Ok(Mir::Join { inputs: pushed, equivalences: kept }.filter(stay))
}

/// Classes with a common member are one; NULLs match in it only if they do in all its parts. Of `x = x` there remains that
/// `x` is not null: the second result.
pub(super) fn merged(classes: Vec<Equivalence>) -> (Vec<Equivalence>, Vec<Scalar>) {
    let mut out: Vec<Equivalence> = Vec::new();
    for mut class in classes {
        class.exprs = class.exprs.into_iter().fold(vec![], |mut v, x| {
            if !v.contains(&x) {
                v.push(x);
            }
            v
        });
        while let Some(i) = out.iter().position(|o| o.exprs.iter().any(|x| class.exprs.contains(x))) {
            let other = out.remove(i);
            class.null_safe &= other.null_safe;
            let extra: Vec<Scalar> = class.exprs.into_iter().filter(|x| !other.exprs.contains(x)).collect();
            class.exprs = other.exprs.into_iter().chain(extra).collect();
        }
        out.push(class);
    }
    let (single, several): (Vec<_>, Vec<_>) = out.into_iter().partition(|e| e.exprs.len() < 2);
    let not_null = single.into_iter().filter(|e| !e.null_safe).flat_map(|e| e.exprs).map(|x| Scalar::Not(Box::new(Scalar::IsNull(Box::new(x))))).collect();
    (several, not_null)
}
