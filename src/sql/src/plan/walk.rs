//! Walking HIR: which columns of which level an expression reads, and renumbering them.
//!
//! `depth` counts the levels entered since the walk began: at depth `d` a column of level `d` is one of the row the walk began on, a
//! column of level `d + 1` one of the next enclosing row.

use crate::hir::{ColumnRef, Hir, HirAggregate, HirBound, HirScalar, HirWindow, HirWindowFunc};
use plan::LocalId;
use std::collections::HashMap;

const RED_ZONE: usize = 64 * 1024;
const STACK: usize = 1024 * 1024;

/// Whether the value is a matter of chance.
pub fn is_volatile(e: &HirScalar) -> bool {
    let mut found = false;
    rewrite(&mut e.clone(), 0, &mut |s, _| {
        found |= matches!(s, HirScalar::Call { func, .. } if func.volatility == expr::func::Volatility::Volatile);
        !found
    });
    found
}

/// As [`is_volatile`], of a relation.
pub fn is_volatile_hir(h: &Hir) -> bool {
    let mut found = false;
    rewrite_hir(&mut h.clone(), 0, &mut |s, _| {
        found |= matches!(s, HirScalar::Call { func, .. } if func.volatility == expr::func::Volatility::Volatile);
        !found
    });
    found
}

/// Pre-order rewriting: `f` says whether to go into the (possibly replaced) node's children.
pub fn rewrite(e: &mut HirScalar, depth: usize, f: &mut dyn FnMut(&mut HirScalar, usize) -> bool) {
    stacker::maybe_grow(RED_ZONE, STACK, || {
        if !f(e, depth) {
            return;
        }
        match e {
            HirScalar::Column(..) | HirScalar::Parameter(..) | HirScalar::Literal(..) | HirScalar::Error(..) => {}
            HirScalar::Call { args, .. } => args.iter_mut().for_each(|a| rewrite(a, depth, f)),
            HirScalar::And(xs) | HirScalar::Or(xs) | HirScalar::Coalesce(xs, _) => xs.iter_mut().for_each(|a| rewrite(a, depth, f)),
            HirScalar::Case { branches, otherwise, .. } => {
                for (c, r) in branches {
                    rewrite(c, depth, f);
                    rewrite(r, depth, f);
                }
                rewrite(otherwise, depth, f);
            }
            HirScalar::IsNull(x) | HirScalar::Not(x) => rewrite(x, depth, f),
            HirScalar::Exists(h) | HirScalar::Subquery(h, _) => rewrite_hir(h, depth + 1, f),
            HirScalar::ArraySubquery { input, .. } => rewrite_hir(input, depth + 1, f),
            HirScalar::Quantified { comparison, input, .. } => {
                rewrite(comparison, depth + 1, f);
                rewrite_hir(input, depth + 1, f);
            }
        }
    })
}

/// As [`rewrite`], for every scalar in a relation.
pub fn rewrite_hir(h: &mut Hir, depth: usize, f: &mut dyn FnMut(&mut HirScalar, usize) -> bool) {
    stacker::maybe_grow(RED_ZONE, STACK, || match h {
        Hir::Constant { .. } | Hir::Get { .. } | Hir::GetLocal { .. } => {}
        Hir::Let { value, body, .. } => {
            rewrite_hir(value, depth, f);
            rewrite_hir(body, depth, f);
        }
        Hir::LetRec { bindings, body, .. } => {
            bindings.iter_mut().for_each(|b| rewrite_hir(&mut b.value, depth, f));
            rewrite_hir(body, depth, f);
        }
        Hir::Project { input, .. } | Hir::Distinct { input } => rewrite_hir(input, depth, f),
        Hir::Map { input, scalars } => {
            rewrite_hir(input, depth, f);
            scalars.iter_mut().for_each(|s| rewrite(s, depth, f));
        }
        Hir::Filter { input, predicates } => {
            rewrite_hir(input, depth, f);
            predicates.iter_mut().for_each(|s| rewrite(s, depth, f));
        }
        Hir::CallTable { args, .. } => args.iter_mut().for_each(|s| rewrite(s, depth, f)),
        Hir::RowsFrom { functions, .. } => functions.iter_mut().for_each(|h| rewrite_hir(h, depth, f)),
        Hir::Join { left, right, on, lateral, .. } => {
            rewrite_hir(left, depth, f);
            rewrite_hir(right, depth + usize::from(*lateral), f);
            rewrite(on, depth, f);
        }
        Hir::Reduce { input, aggregates, .. } => {
            rewrite_hir(input, depth, f);
            aggregates.iter_mut().for_each(|a| rewrite_aggregate(a, depth, f));
        }
        Hir::TopK { input, limit, offset, .. } => {
            rewrite_hir(input, depth, f);
            limit.iter_mut().chain(offset.iter_mut()).for_each(|s| rewrite(s, depth, f));
        }
        Hir::Window { input, exprs, .. } => {
            rewrite_hir(input, depth, f);
            exprs.iter_mut().for_each(|w| rewrite_window(w, depth, f));
        }
        Hir::Union { inputs } => inputs.iter_mut().for_each(|h| rewrite_hir(h, depth, f)),
        Hir::Intersect { left, right, .. } | Hir::Except { left, right, .. } => {
            rewrite_hir(left, depth, f);
            rewrite_hir(right, depth, f);
        }
    })
}

pub fn rewrite_aggregate(a: &mut HirAggregate, depth: usize, f: &mut dyn FnMut(&mut HirScalar, usize) -> bool) {
    a.args.iter_mut().for_each(|s| rewrite(s, depth, f));
    a.filter.iter_mut().for_each(|s| rewrite(s, depth, f));
    a.order_by.iter_mut().for_each(|(s, _)| rewrite(s, depth, f));
}

pub fn rewrite_window(w: &mut HirWindow, depth: usize, f: &mut dyn FnMut(&mut HirScalar, usize) -> bool) {
    rewrite_window_func(&mut w.func, depth, f);
    for b in [&mut w.start, &mut w.end] {
        if let HirBound::Preceding(x) | HirBound::Following(x) = b {
            rewrite(x, depth, f);
        }
    }
}

fn rewrite_window_func(w: &mut HirWindowFunc, depth: usize, f: &mut dyn FnMut(&mut HirScalar, usize) -> bool) {
    match w {
        HirWindowFunc::RowNumber | HirWindowFunc::Rank | HirWindowFunc::DenseRank | HirWindowFunc::PercentRank | HirWindowFunc::CumeDist => {}
        HirWindowFunc::Ntile(x) | HirWindowFunc::FirstValue(x) | HirWindowFunc::LastValue(x) => rewrite(x, depth, f),
        HirWindowFunc::Lag { value, offset, default } | HirWindowFunc::Lead { value, offset, default } => {
            [value, offset, default].into_iter().for_each(|x| rewrite(x, depth, f));
        }
        HirWindowFunc::NthValue(a, b) => {
            rewrite(a, depth, f);
            rewrite(b, depth, f);
        }
        HirWindowFunc::Aggregate(a) => rewrite_aggregate(a, depth, f),
    }
}

/// As [`reads`], for the arguments of a window function.
pub fn window_func_reads(w: &mut HirWindowFunc, mut f: impl FnMut(usize) -> bool) -> bool {
    let mut found = false;
    rewrite_window_func(w, 0, &mut |s, d| {
        found |= matches!(s, HirScalar::Column(c, _) if c.level == d && f(c.column));
        !found
    });
    found
}

/// Adds `by` to the level of columns `from` or more levels out, where the relation's own rows are level 0.
pub fn shift_hir(h: &mut Hir, from: usize, by: isize) {
    rewrite_hir(h, 0, &mut |s, d| shift_one(s, d, from, by));
}

pub fn shift(e: &mut HirScalar, from: usize, by: isize) {
    rewrite(e, 0, &mut |s, d| shift_one(s, d, from, by));
}

pub fn shift_one(s: &mut HirScalar, depth: usize, from: usize, by: isize) -> bool {
    if let HirScalar::Column(c, _) = s {
        if c.level >= depth + from {
            c.level = c.level.saturating_add_signed(by);
        }
    }
    true
}

/// Does the relation read the row `level` levels out?
pub fn hir_reads_level(h: &mut Hir, level: usize) -> bool {
    let mut found = false;
    rewrite_hir(h, 0, &mut |s, d| {
        found |= matches!(s, HirScalar::Column(c, _) if c.level == d + level);
        !found
    });
    found
}

/// Moves the columns from `from` on of the relation's own row by `by`.
pub fn shift_columns(e: &mut HirScalar, from: usize, by: usize) {
    rewrite(e, 0, &mut |s, d| {
        if let HirScalar::Column(c, _) = s {
            if c.level == d && c.column >= from {
                c.column += by;
            }
        }
        true
    });
}

/// The least number of levels out that `e` reads; `None` if it reads no column.
pub fn least_level(e: &mut HirScalar) -> Option<usize> {
    let mut least: Option<usize> = None;
    rewrite(e, 0, &mut |s, d| {
        if let HirScalar::Column(c, _) = s {
            if c.level >= d {
                least = Some(least.map_or(c.level - d, |l| l.min(c.level - d)));
            }
        }
        true
    });
    least
}

/// Does `e` read a column of its own row for which `f` holds?
pub fn reads(e: &mut HirScalar, mut f: impl FnMut(usize) -> bool) -> bool {
    let mut found = false;
    rewrite(e, 0, &mut |s, d| {
        if let HirScalar::Column(ColumnRef { level, column }, _) = s {
            found |= *level == d && f(*column);
        }
        !found
    });
    found
}

/// Gives the local bindings of an inlined view fresh ids.
pub fn renumber_locals(h: &mut Hir, fresh: &mut dyn FnMut() -> LocalId) {
    let mut map = HashMap::new();
    renumber(h, &mut map, fresh);
}

fn renumber(h: &mut Hir, map: &mut HashMap<LocalId, LocalId>, fresh: &mut dyn FnMut() -> LocalId) {
    stacker::maybe_grow(RED_ZONE, STACK, || {
        match h {
            Hir::GetLocal { id, .. } => {
                if let Some(new) = map.get(id) {
                    *id = *new;
                }
            }
            Hir::Let { id, .. } => {
                let new = fresh();
                map.insert(*id, new);
                *id = new;
            }
            Hir::LetRec { bindings, .. } => {
                for b in bindings {
                    let new = fresh();
                    map.insert(b.id, new);
                    b.id = new;
                }
            }
            _ => {}
        }
        // Relations directly below; those inside scalars are reached through the scalars.
        match h {
            Hir::Let { value, body, .. } => {
                renumber(value, map, fresh);
                renumber(body, map, fresh);
            }
            Hir::LetRec { bindings, body, .. } => {
                bindings.iter_mut().for_each(|b| renumber(&mut b.value, map, fresh));
                renumber(body, map, fresh);
            }
            Hir::Project { input, .. } | Hir::Distinct { input } => renumber(input, map, fresh),
            Hir::Map { input, scalars } | Hir::Filter { input, predicates: scalars } => {
                renumber(input, map, fresh);
                scalars.iter_mut().for_each(|s| renumber_scalar(s, map, fresh));
            }
            Hir::CallTable { args, .. } => args.iter_mut().for_each(|s| renumber_scalar(s, map, fresh)),
            Hir::RowsFrom { functions, .. } | Hir::Union { inputs: functions } => functions.iter_mut().for_each(|x| renumber(x, map, fresh)),
            Hir::Join { left, right, on, .. } => {
                renumber(left, map, fresh);
                renumber(right, map, fresh);
                renumber_scalar(on, map, fresh);
            }
            Hir::Reduce { input, aggregates, .. } => {
                renumber(input, map, fresh);
                for a in aggregates {
                    rewrite_aggregate(a, 0, &mut |s, _| renumber_leaf(s, map, fresh));
                }
            }
            Hir::TopK { input, limit, offset, .. } => {
                renumber(input, map, fresh);
                limit.iter_mut().chain(offset.iter_mut()).for_each(|s| renumber_scalar(s, map, fresh));
            }
            Hir::Window { input, exprs, .. } => {
                renumber(input, map, fresh);
                for w in exprs {
                    rewrite_window(w, 0, &mut |s, _| renumber_leaf(s, map, fresh));
                }
            }
            Hir::Intersect { left, right, .. } | Hir::Except { left, right, .. } => {
                renumber(left, map, fresh);
                renumber(right, map, fresh);
            }
            Hir::Constant { .. } | Hir::Get { .. } | Hir::GetLocal { .. } => {}
        }
    })
}

fn renumber_scalar(e: &mut HirScalar, map: &mut HashMap<LocalId, LocalId>, fresh: &mut dyn FnMut() -> LocalId) {
    rewrite(e, 0, &mut |s, _| renumber_leaf(s, map, fresh));
}

fn renumber_leaf(s: &mut HirScalar, map: &mut HashMap<LocalId, LocalId>, fresh: &mut dyn FnMut() -> LocalId) -> bool {
    match s {
        HirScalar::Exists(h) | HirScalar::Subquery(h, _) => renumber(h, map, fresh),
        HirScalar::ArraySubquery { input, .. } => renumber(input, map, fresh),
        HirScalar::Quantified { comparison, input, .. } => {
            renumber_scalar(comparison, map, fresh);
            renumber(input, map, fresh);
        }
        _ => return true,
    }
    false
}
