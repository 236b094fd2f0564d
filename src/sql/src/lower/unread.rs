//! Subqueries in columns that nothing reads: they are not evaluated, as in Postgres, so that nothing in them fails.
//!
//! ```text
//!   select a from (select a, (select b from u) as x from t) q       =>       select a from (select a, NULL as x from t) q
//! ```
//!
//! A column that decides ties (LIMIT, windows) or makes rows distinct is read.

use super::env::has_subquery;
use crate::hir::{Hir, HirScalar};
use crate::plan::walk::{rewrite, rewrite_hir};
use repr::Value;
use std::collections::BTreeSet;

/// Of a relation all of whose columns are read.
pub(super) fn drop_subqueries(h: &mut Hir) {
    let all = (0..h.arity()).collect();
    visit(h, &all);
}

fn visit(h: &mut Hir, want: &BTreeSet<usize>) {
    stacker::maybe_grow(64 * 1024, 1024 * 1024, || match h {
        Hir::Constant { .. } | Hir::Get { .. } | Hir::GetLocal { .. } => {}
        Hir::Project { input, outputs } => visit(input, &want.iter().map(|i| outputs[*i]).collect()),
        Hir::Map { input, scalars } => {
            let n = input.arity();
            let mut need = want.clone();
            for i in (0..scalars.len()).rev() {
                if !need.contains(&(n + i)) && has_subquery(&scalars[i]) {
                    scalars[i] = HirScalar::Literal(Value::Null, scalars[i].typ().with_nullable(true));
                }
                need.extend(columns(&mut scalars[i]));
                inside(&mut scalars[i]);
            }
            visit(input, &need.range(..n).copied().collect());
        }
        Hir::Filter { input, predicates } => {
            let mut need = want.clone();
            for p in predicates {
                need.extend(columns(p));
                inside(p);
            }
            visit(input, &need);
        }
        Hir::CallTable { args, .. } => args.iter_mut().for_each(inside),
        Hir::RowsFrom { functions, .. } => functions.iter_mut().for_each(drop_subqueries),
        Hir::Let { value, body, .. } => {
            drop_subqueries(value);
            visit(body, want);
        }
        Hir::LetRec { bindings, body, .. } => {
            bindings.iter_mut().for_each(|b| drop_subqueries(&mut b.value));
            visit(body, want);
        }
        Hir::Join { left, right, on, lateral, .. } => {
            let n = left.arity();
            let mut need = want.clone();
            need.extend(columns(on));
            inside(on);
            if *lateral {
                rewrite_hir(right, 0, &mut |s, d| {
                    if let HirScalar::Column(c, _) = s {
                        need.extend((c.level == d + 1).then_some(c.column));
                    }
                    true
                });
            }
            visit(left, &need.range(..n).copied().collect());
            visit(right, &need.range(n..).map(|c| c - n).collect());
        }
        Hir::Reduce { input, group_key, aggregates, .. } => {
            let mut need: BTreeSet<usize> = group_key.iter().copied().collect();
            for a in aggregates {
                for s in a.args.iter_mut().chain(&mut a.filter).chain(a.order_by.iter_mut().map(|o| &mut o.0)) {
                    need.extend(columns(s));
                    inside(s);
                }
            }
            visit(input, &need);
        }
        Hir::Distinct { input } | Hir::TopK { input, .. } | Hir::Window { input, .. } => drop_subqueries(input),
        Hir::Union { inputs } => inputs.iter_mut().for_each(|i| visit(i, want)),
        Hir::Intersect { left, right, .. } | Hir::Except { left, right, .. } => {
            drop_subqueries(left);
            drop_subqueries(right);
        }
    })
}

/// The columns of its own row that a scalar reads, subqueries in it included.
fn columns(s: &mut HirScalar) -> BTreeSet<usize> {
    let mut found = BTreeSet::new();
    rewrite(s, 0, &mut |s, d| {
        if let HirScalar::Column(c, _) = s {
            found.extend((c.level == d).then_some(c.column));
        }
        true
    });
    found
}

/// The subqueries of a scalar.
fn inside(s: &mut HirScalar) {
    rewrite(s, 0, &mut |s, _| {
        match s {
            HirScalar::Exists(h) => visit(h, &BTreeSet::new()),
            HirScalar::Subquery(h, _) => visit(h, &BTreeSet::from([0])),
            HirScalar::ArraySubquery { input, .. } => drop_subqueries(input),
            HirScalar::Quantified { input, .. } => drop_subqueries(input),
            _ => return true,
        }
        false
    });
}
