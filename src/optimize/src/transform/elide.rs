//! Distincts, groupings and first rows that unique keys make needless.

use super::{take, top_k};
use crate::keys::{unique_keys, LocalKeys};
use expr::{Aggregate, Scalar};
use plan::{LocalId, Mir};
use repr::{SqlType, Value};

pub(super) fn by_keys(mir: &mut Mir) {
    walk(mir, &mut LocalKeys::new());
}

fn walk(mir: &mut Mir, locals: &mut LocalKeys) {
    match mir {
        Mir::Let { id, value, body } => {
            walk(value, locals);
            let keys = unique_keys(value, locals);
            let shadowed = locals.insert(*id, keys);
            walk(body, locals);
            restore(locals, *id, shadowed);
            return;
        }
        Mir::LetRec { .. } => {}
        _ => {}
    }
    mir.children_mut().into_iter().for_each(|c| walk(c, locals));
    node(mir, locals);
}

fn restore(locals: &mut LocalKeys, id: LocalId, old: Option<Vec<Vec<usize>>>) {
    match old {
        Some(keys) => locals.insert(id, keys),
        None => locals.remove(&id),
    };
}

fn node(mir: &mut Mir, locals: &LocalKeys) {
    match mir {
        Mir::Reduce { input, group_key, aggregates } => {
            if aggregates.is_empty() {
                without_inner_distinct(input);
            }
            let in_group = |c: &usize| group_key.contains(&Scalar::Column(*c));
            if !unique_keys(input, locals).iter().any(|k| k.iter().all(in_group)) {
                return;
            }
            // Every group is one row.
            let types = input.types();
            let Some(values) = aggregates.iter().map(|a| of_one_row(a, &types)).collect::<Option<Vec<_>>>() else { return };
            let n = types.len();
            let scalars: Vec<Scalar> = group_key.iter().cloned().chain(values).collect();
            let outputs = (n..n + scalars.len()).collect();
            *mir = take(input).map(scalars).project(outputs);
        }
        Mir::TopK { input, group_key, limit, offset, .. } => {
            let Some(limit) = top_k::literal_limit(limit.as_ref()) else { return };
            let single = || unique_keys(input, locals).iter().any(|k| k.iter().all(|c| group_key.contains(c)));
            if limit.is_none_or(|n| n > 0) && single() {
                *mir = if *offset == 0 { take(input) } else { Mir::empty(input.types()) };
            }
        }
        Mir::Threshold { input } if !unique_keys(input, locals).is_empty() => *mir = take(input),
        _ => {}
    }
}

/// The aggregate of a single row, if it can be written down.
fn of_one_row(a: &Aggregate, types: &[repr::ColType]) -> Option<Scalar> {
    let guarded = |value: Scalar, empty: Value| match &a.filter {
        None => value,
        Some(f) => {
            Scalar::Case { branches: vec![(f.clone(), value)], otherwise: Box::new(Scalar::Literal(empty, a.ty.clone().with_nullable(true))), ty: a.ty.clone() }
        }
    };
    let number = |n| Scalar::literal(Value::Int8(n), SqlType::Int8);
    match (a.func.name, &a.args[..]) {
        ("count", []) => Some(guarded(number(1), Value::Int8(0))),
        ("count", [x]) => {
            let counted = Scalar::Case { branches: vec![(Scalar::IsNull(Box::new(x.clone())), number(0))], otherwise: Box::new(number(1)), ty: a.ty.clone() };
            Some(guarded(counted, Value::Int8(0)))
        }
        ("min" | "max" | "bool_and" | "bool_or" | "every", [x]) if x.typ(types).ty == a.ty.ty => Some(guarded(x.clone(), Value::Null)),
        _ => None,
    }
}

/// A distinct below a distinct, with only row-by-row steps and unions between.
fn without_inner_distinct(mir: &mut Mir) {
    match mir {
        Mir::Project { input, .. } | Mir::Map { input, .. } | Mir::Filter { input, .. } => without_inner_distinct(input),
        Mir::Union { inputs } => inputs.iter_mut().for_each(without_inner_distinct),
        Mir::Reduce { input, group_key, aggregates } if aggregates.is_empty() && !has_negation(input) && !group_key.is_empty() => {
            let n = input.arity();
            let outputs = (n..n + group_key.len()).collect();
            let keys = std::mem::take(group_key);
            *mir = take(input).map(keys).project(outputs);
            without_inner_distinct(mir);
        }
        _ => {}
    }
}

fn has_negation(mir: &Mir) -> bool {
    matches!(mir, Mir::Negate { .. }) || mir.children().into_iter().any(has_negation)
}
