//! Columns that nothing reads are not evaluated, as in Postgres, so that nothing in them fails.
//!
//! ```text
//!   select a from (select a, 1 / b as x from t order by a limit 3) q       =>       select a from (select a, NULL as x from t order by a limit 3) q
//! ```
//!
//! A column that makes rows distinct is read, and so is one of a CTE. What gives another value each time is evaluated all the same.

use crate::hir::{Hir, HirAggregate, HirBound, HirScalar, HirWindow, HirWindowFunc};
use crate::plan::walk::{is_volatile, rewrite, rewrite_hir};
use repr::Value;
use std::collections::BTreeSet;

/// Of a relation all of whose columns are read.
pub(super) fn drop_unread(h: &mut Hir) {
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
                let is_plain = matches!(scalars[i], HirScalar::Literal(..) | HirScalar::Column(..));
                if !need.contains(&(n + i)) && !is_plain && !is_volatile(&scalars[i]) {
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
        Hir::RowsFrom { functions, .. } => functions.iter_mut().for_each(drop_unread),
        Hir::Let { value, body, .. } => {
            drop_unread(value);
            visit(body, want);
        }
        Hir::LetRec { bindings, body, .. } => {
            bindings.iter_mut().for_each(|b| drop_unread(&mut b.value));
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
            for (i, a) in aggregates.iter_mut().enumerate() {
                let read = want.contains(&(group_key.len() + i));
                aggregate(a, &mut |s| {
                    need.extend(columns(s).into_iter().filter(|_| read));
                    inside(s);
                });
            }
            visit(input, &need);
        }
        Hir::TopK { input, group_key, order_by, limit, offset, .. } => {
            let mut need = want.clone();
            need.extend(group_key.iter().copied().chain(order_by.iter().map(|o| o.column)));
            limit.iter_mut().chain(offset).for_each(inside);
            visit(input, &need);
        }
        Hir::Window { input, partition, order_by, exprs } => {
            let n = input.arity();
            let mut need: BTreeSet<usize> = want.range(..n).copied().collect();
            need.extend(partition.iter().copied().chain(order_by.iter().map(|o| o.column)));
            for (i, e) in exprs.iter_mut().enumerate() {
                let read = want.contains(&(n + i));
                window(e, &mut |s| {
                    need.extend(columns(s).into_iter().filter(|_| read));
                    inside(s);
                });
            }
            visit(input, &need);
        }
        Hir::Distinct { input } => drop_unread(input),
        Hir::Union { inputs } => inputs.iter_mut().for_each(|i| visit(i, want)),
        Hir::Intersect { left, right, .. } | Hir::Except { left, right, .. } => {
            drop_unread(left);
            drop_unread(right);
        }
    })
}

fn aggregate(a: &mut HirAggregate, each: &mut impl FnMut(&mut HirScalar)) {
    a.args.iter_mut().chain(&mut a.filter).chain(a.order_by.iter_mut().map(|o| &mut o.0)).for_each(each);
}

fn window(w: &mut HirWindow, each: &mut impl FnMut(&mut HirScalar)) {
    match &mut w.func {
        HirWindowFunc::RowNumber | HirWindowFunc::Rank | HirWindowFunc::DenseRank | HirWindowFunc::PercentRank | HirWindowFunc::CumeDist => {}
        HirWindowFunc::Ntile(s) | HirWindowFunc::FirstValue(s) | HirWindowFunc::LastValue(s) => each(s),
        HirWindowFunc::Lag { value, offset, default } | HirWindowFunc::Lead { value, offset, default } => {
            [value, offset, default].into_iter().for_each(&mut *each)
        }
        HirWindowFunc::NthValue(value, n) => [value, n].into_iter().for_each(&mut *each),
        HirWindowFunc::Aggregate(a) => aggregate(a, each),
    }
    for b in [&mut w.start, &mut w.end] {
        if let HirBound::Preceding(s) | HirBound::Following(s) = b {
            each(s);
        }
    }
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
            HirScalar::ArraySubquery { input, .. } => drop_unread(input),
            HirScalar::Quantified { input, .. } => drop_unread(input),
            _ => return true,
        }
        false
    });
}
