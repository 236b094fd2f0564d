//! Nested joins as one, so that their order is free.
//!
//! Maps, filters and projections between two joins are lifted above the outer one if they cannot fail; a projection on any
//! input is lifted, since the join does not care where a column stands.

use super::{bottom_up, is_movable, take};
use crate::chain::Chain;
use expr::Scalar;
use plan::{Equivalence, Mir};
use repr::Value;

pub(super) fn joins(mir: &mut Mir) {
    bottom_up(mir, &mut |m| {
        if matches!(m, Mir::Join { .. }) {
            flatten(m);
        }
    });
}

fn flatten(mir: &mut Mir) {
    let Mir::Join { inputs, equivalences } = mir else { return };
    if !inputs.iter().any(|i| is_nested(i) || is_literal(i)) && inputs.len() > 1 {
        return;
    }
    let (inputs, classes) = (std::mem::take(inputs), std::mem::take(equivalences));
    let mut flat: Vec<Mir> = Vec::new();
    let mut inner_classes: Vec<Equivalence> = Vec::new();
    // What each column of the old join is: over the columns of `flat`, then of the lifted maps.
    let mut columns: Vec<Scalar> = Vec::new();
    let mut predicates: Vec<Scalar> = Vec::new();
    let mut at = 0;
    for input in inputs {
        if let Some(row) = literal_row(&input) {
            columns.extend(row);
            continue;
        }
        if !is_nested(&input) {
            let n = input.arity();
            columns.extend((at..at + n).map(Scalar::Column));
            at += n;
            flat.push(input);
            continue;
        }
        let (base, chain) = Chain::peel(&input);
        let Mir::Join { inputs: below, equivalences: own } = base else { continue };
        let n = base.arity();
        let mfp = chain.finish();
        let mut local: Vec<Scalar> = (at..at + n).map(Scalar::Column).collect();
        for m in &mfp.maps {
            let mut m = m.clone();
            m.substitute(&local);
            local.push(m);
        }
        for (_, p) in &mfp.predicates {
            let mut p = p.clone();
            p.substitute(&local);
            predicates.push(p);
        }
        columns.extend(mfp.project.iter().map(|c| local[*c].clone()));
        for e in own {
            let mut e = e.clone();
            e.exprs.iter_mut().for_each(|x| x.permute(&|c| c + at));
            inner_classes.push(e);
        }
        flat.extend(below.iter().cloned());
        at += n;
    }
    for mut e in classes {
        e.exprs.iter_mut().for_each(|x| x.substitute(&columns));
        inner_classes.push(e);
    }
    let (inner_classes, not_null) = super::pushdown::merged(inner_classes);
    predicates.extend(not_null);
    let joined = match flat.len() {
        0 if inner_classes.is_empty() => Mir::unit(),
        // Classes of constants are left to become predicates.
        0 => Mir::Join { inputs: vec![Mir::unit()], equivalences: inner_classes },
        1 if inner_classes.is_empty() => flat.remove(0),
        _ => Mir::Join { inputs: flat, equivalences: inner_classes },
    };
    let filtered = joined.filter(predicates);
    let mut outputs = Vec::new();
    let mut maps = Vec::new();
    for c in columns {
        match c {
            Scalar::Column(c) => outputs.push(c),
            s => {
                outputs.push(at + maps.len());
                maps.push(s);
            }
        }
    }
    *mir = filtered.map(maps);
    if !outputs.iter().copied().eq(0..mir.arity()) {
        *mir = take(mir).project(outputs);
    }
}

/// Joins below steps that cannot fail, and joins below nothing.
fn is_nested(mir: &Mir) -> bool {
    let (base, chain) = Chain::peel(mir);
    if !matches!(base, Mir::Join { .. }) {
        return false;
    }
    let mfp = chain.finish();
    mfp.predicates.iter().all(|(_, p)| is_movable(p)) && mfp.maps.iter().all(is_movable)
}

fn is_literal(mir: &Mir) -> bool {
    literal_row(mir).is_some()
}

/// The columns of a relation of one constant row.
fn literal_row(mir: &Mir) -> Option<Vec<Scalar>> {
    match mir {
        Mir::Constant { rows: Ok(rows), types } => match &rows[..] {
            [(row, 1)] => Some(row.iter().zip(types).map(|(v, t)| Scalar::Literal(v.clone(), t.clone().with_nullable(v == &Value::Null))).collect()),
            _ => None,
        },
        _ => None,
    }
}
