//! Constants: what reads no column is computed now.
//!
//! An expression that fails is folded into an error in its place: a maintained plan raises it on the rows that reach it, or not at all,
//! a one-off query has ended with it before (see [`super::failing`]).

use super::{compare, is_false_or_null, is_true, take};
use crate::temporal::{is_session, is_time};
use crate::OptimizeCtx;
use expr::func::Volatility;
use expr::{EvalCtx, Scalar};
use plan::Mir;
use repr::{ColType, SqlType, Value};

const ROWS_MAX: usize = 1000; // of a constant that is carried through maps and filters at planning time

/// Folds scalars, and evaluates Map, Filter, Project and table functions over constants.
pub(super) fn constants(mir: &mut Mir, ctx: &OptimizeCtx) {
    for c in mir.children_mut() {
        constants(c, ctx);
    }
    let fold = |s: &mut Scalar, types: &[ColType]| {
        let old = std::mem::replace(s, Scalar::Column(0));
        *s = scalar(old, types, ctx);
    };
    match mir {
        Mir::Map { input, scalars } => {
            let mut types = input.types();
            for s in scalars.iter_mut() {
                fold(s, &types);
                let t = s.typ(&types);
                types.push(t);
            }
            if let Some(rows) = mapped(input, scalars, ctx) {
                *mir = Mir::Constant { rows: Ok(rows), types };
            }
        }
        Mir::Filter { input, predicates } => {
            let types = input.types();
            predicates.iter_mut().for_each(|p| fold(p, &types));
            let mut kept = Vec::new();
            for p in std::mem::take(predicates).into_iter().flat_map(super::conjuncts) {
                if is_false_or_null(&p) {
                    *mir = Mir::empty(types);
                    return;
                }
                if !kept.contains(&p) {
                    kept.push(p);
                }
            }
            if kept.is_empty() {
                *mir = take(input);
            } else if let Some(rows) = filtered(input, &kept, ctx) {
                *mir = Mir::Constant { rows: Ok(rows), types };
            } else {
                *predicates = kept;
            }
        }
        Mir::Project { input, outputs } => {
            if let Mir::Constant { rows: Ok(rows), types } = &**input {
                let pick = |r: &[Value]| outputs.iter().map(|o| r[*o].clone()).collect::<Vec<_>>();
                let rows = rows.iter().map(|(r, d)| (pick(r), *d)).collect();
                *mir = Mir::Constant { rows: Ok(rows), types: outputs.iter().map(|o| types[*o].clone()).collect() };
            }
        }
        Mir::FlatMap { input, func } => {
            let types = input.types();
            func.args.iter_mut().for_each(|a| fold(a, &types));
            if let Some(rows) = called(input, func, ctx) {
                *mir = Mir::Constant { rows: Ok(rows), types: mir.types() };
            }
        }
        Mir::Reduce { input, group_key, aggregates } => {
            let types = input.types();
            group_key.iter_mut().for_each(|k| fold(k, &types));
            for a in aggregates.iter_mut() {
                a.args.iter_mut().for_each(|x| fold(x, &types));
                a.order_by.iter_mut().for_each(|(x, _)| fold(x, &types));
                if let Some(f) = &mut a.filter {
                    fold(f, &types);
                    if is_true(f) {
                        a.filter = None;
                    }
                }
            }
        }
        Mir::TopK { input, limit: Some(limit), .. } => fold(limit, &input.types()),
        Mir::Join { inputs, equivalences } => {
            let types: Vec<ColType> = inputs.iter().flat_map(Mir::types).collect();
            equivalences.iter_mut().flat_map(|e| &mut e.exprs).for_each(|x| fold(x, &types));
        }
        _ => {}
    }
}

/// A row's value of a scalar, if it can be had without error.
fn value(s: &Scalar, row: &[Value], types: &[ColType], ctx: &OptimizeCtx) -> Option<Value> {
    let literals: Vec<Scalar> = row.iter().zip(types).map(|(v, t)| Scalar::Literal(v.clone(), t.clone())).collect();
    let mut s = s.clone();
    s.substitute(&literals);
    match scalar(s, &[], ctx) {
        Scalar::Literal(v, _) => Some(v),
        _ => None,
    }
}

fn constant_rows(input: &Mir) -> Option<(&Vec<(Vec<Value>, i64)>, &Vec<ColType>)> {
    match input {
        Mir::Constant { rows: Ok(rows), types } if rows.len() <= ROWS_MAX => Some((rows, types)),
        _ => None,
    }
}

fn mapped(input: &Mir, scalars: &[Scalar], ctx: &OptimizeCtx) -> Option<Vec<(Vec<Value>, i64)>> {
    let (rows, types) = constant_rows(input)?;
    let mut out = Vec::with_capacity(rows.len());
    for (row, diff) in rows {
        let (mut row, mut types) = (row.clone(), types.clone());
        for s in scalars {
            let t = s.typ(&types);
            row.push(value(s, &row, &types, ctx)?);
            types.push(t);
        }
        out.push((row, *diff));
    }
    Some(out)
}

fn filtered(input: &Mir, predicates: &[Scalar], ctx: &OptimizeCtx) -> Option<Vec<(Vec<Value>, i64)>> {
    let (rows, types) = constant_rows(input)?;
    let mut out = Vec::new();
    'rows: for (row, diff) in rows {
        for p in predicates {
            if value(p, row, types, ctx)? != Value::Bool(true) {
                continue 'rows;
            }
        }
        out.push((row.clone(), *diff));
    }
    Some(out)
}

fn called(input: &Mir, func: &expr::TableFunc, ctx: &OptimizeCtx) -> Option<Vec<(Vec<Value>, i64)>> {
    let (rows, types) = constant_rows(input)?;
    if !func.args.iter().all(|a| foldable(a, ctx)) {
        return None;
    }
    let arg_types: Vec<ColType> = func.args.iter().map(|a| a.typ(types)).collect();
    let mut out = Vec::new();
    for (row, diff) in rows {
        let args = func.args.iter().map(|a| value(a, row, types, ctx)).collect::<Option<Vec<_>>>()?;
        if func.func.strict && args.iter().any(Value::is_null) {
            continue;
        }
        let mut number = 0;
        let mut full = false;
        let mut emit = |values: Vec<Value>| {
            number += 1;
            let ordinal = func.with_ordinality.then_some(Value::Int8(number));
            out.push((row.iter().cloned().chain(values).chain(ordinal).collect(), *diff));
            full = out.len() > ROWS_MAX;
            !full
        };
        (func.func.rows)(&args, &arg_types, &func.columns, ctx.ctx, &mut emit).ok()?;
        if full {
            return None;
        }
    }
    Some(out)
}

/// Whether all functions in it give the same value now and whenever the plan runs.
fn foldable(s: &Scalar, ctx: &OptimizeCtx) -> bool {
    let mut yes = true;
    s.visit(&mut |x| {
        if let Scalar::Call { func, .. } = x {
            yes &= match func.volatility {
                Volatility::Immutable => true,
                // The session's settings and time are those of the one answer.
                Volatility::Stable => ctx.one_off,
                Volatility::Volatile => false,
            };
        }
    });
    yes
}

/// Simplifies a scalar over columns of `types`.
pub(crate) fn scalar(mut s: Scalar, types: &[ColType], ctx: &OptimizeCtx) -> Scalar {
    for c in s.children_mut() {
        let old = std::mem::replace(c, Scalar::Column(0));
        *c = scalar(old, types, ctx);
    }
    match s {
        Scalar::Call { func, args, ty } => call(func, args, ty, types, ctx),
        Scalar::And(xs) => decided(xs, true),
        Scalar::Or(xs) => decided(xs, false),
        Scalar::Not(x) => match *x {
            Scalar::Literal(Value::Bool(b), _) => Scalar::bool(!b),
            Scalar::Literal(Value::Null, t) => Scalar::Literal(Value::Null, t),
            Scalar::Not(y) => *y,
            Scalar::And(xs) => decided(xs.into_iter().map(|x| scalar(Scalar::Not(Box::new(x)), types, ctx)).collect(), false),
            Scalar::Or(xs) => decided(xs.into_iter().map(|x| scalar(Scalar::Not(Box::new(x)), types, ctx)).collect(), true),
            other => Scalar::Not(Box::new(other)),
        },
        Scalar::IsNull(x) => match &*x {
            Scalar::Literal(v, _) => Scalar::bool(v.is_null()),
            Scalar::Error(..) => Scalar::IsNull(x),
            other if !other.can_fail() && !other.typ(types).nullable => Scalar::bool(false),
            _ => Scalar::IsNull(x),
        },
        Scalar::Case { branches, otherwise, ty } => case(branches, *otherwise, ty),
        Scalar::Coalesce(xs, ty) => coalesce(xs, ty, types),
        other => other,
    }
}

fn call(func: &'static expr::FuncDef, args: Vec<Scalar>, ty: ColType, types: &[ColType], ctx: &OptimizeCtx) -> Scalar {
    let (func, args) = compare::of_one_type(func, args, types);
    if func.strict && args.iter().any(|a| matches!(a, Scalar::Literal(Value::Null, _))) && func.volatility != Volatility::Volatile {
        return Scalar::Literal(Value::Null, ty.with_nullable(true));
    }
    let whole = Scalar::Call { func, args, ty };
    let Scalar::Call { args, ty, .. } = &whole else { return whole };
    if !args.iter().all(|a| matches!(a, Scalar::Literal(..))) || func.volatility == Volatility::Volatile {
        return whole;
    }
    let settled = func.volatility == Volatility::Immutable || ctx.one_off || !(is_time(func) || is_session(func));
    if !settled {
        return whole;
    }
    evaluated(&whole, ty.clone(), func.volatility, ctx.ctx).unwrap_or(whole)
}

fn evaluated(whole: &Scalar, ty: ColType, volatility: Volatility, ctx: &EvalCtx) -> Option<Scalar> {
    match expr::eval_const(whole, ctx) {
        Ok(v) => {
            let nullable = v.is_null();
            Some(Scalar::Literal(v, ty.with_nullable(nullable)))
        }
        // What a setting makes fail may not fail where the plan runs.
        Err(e) if volatility == Volatility::Immutable => Some(Scalar::Error(Box::new(e), ty)),
        Err(_) => None,
    }
}

/// AND (`unit` true) and OR (`unit` false).
fn decided(xs: Vec<Scalar>, unit: bool) -> Scalar {
    let mut kept: Vec<Scalar> = Vec::new();
    for x in xs {
        let parts = match x {
            Scalar::And(ys) if unit => ys,
            Scalar::Or(ys) if !unit => ys,
            x => vec![x],
        };
        for p in parts {
            match p {
                Scalar::Literal(Value::Bool(b), _) if b == unit => {}
                Scalar::Literal(Value::Bool(b), _) => return Scalar::bool(b),
                p if kept.contains(&p) => {}
                p => kept.push(p),
            }
        }
    }
    match kept.len() {
        0 => Scalar::bool(unit),
        1 => kept.remove(0),
        _ if unit => Scalar::And(kept),
        _ => factored(kept),
    }
}

/// `(c and x) or (c and y)` is `c and (x or y)`: a join's equality comes out of a disjunction.
fn factored(xs: Vec<Scalar>) -> Scalar {
    let parts: Vec<Vec<Scalar>> = xs.iter().map(|x| if let Scalar::And(ys) = x { ys.clone() } else { vec![x.clone()] }).collect();
    let common: Vec<Scalar> = parts[0].iter().filter(|p| super::is_movable(p) && parts[1..].iter().all(|other| other.contains(p))).cloned().collect();
    if common.is_empty() {
        return Scalar::Or(xs);
    }
    let rest = parts.into_iter().map(|p| decided(p.into_iter().filter(|x| !common.contains(x)).collect(), true)).collect();
    decided(common.into_iter().chain([decided(rest, false)]).collect(), true)
}

fn case(branches: Vec<(Scalar, Scalar)>, mut otherwise: Scalar, ty: ColType) -> Scalar {
    let mut kept = Vec::new();
    for (c, r) in branches {
        if is_false_or_null(&c) {
            continue;
        }
        if is_true(&c) {
            otherwise = r;
            break;
        }
        kept.push((c, r));
    }
    if kept.is_empty() {
        return otherwise;
    }
    // CASE WHEN c THEN true ELSE false END and its kind are conditions.
    if ty.ty == SqlType::Bool && kept.len() == 1 {
        if let (Scalar::Literal(Value::Bool(true), _), Scalar::Literal(Value::Bool(false), _)) = (&kept[0].1, &otherwise) {
            let (c, _) = kept.remove(0);
            return Scalar::Coalesce(vec![c, Scalar::bool(false)], SqlType::Bool.not_null());
        }
    }
    Scalar::Case { branches: kept, otherwise: Box::new(otherwise), ty }
}

fn coalesce(xs: Vec<Scalar>, ty: ColType, types: &[ColType]) -> Scalar {
    let mut kept = Vec::new();
    for x in xs {
        match &x {
            Scalar::Literal(Value::Null, _) => continue,
            Scalar::Error(..) => kept.push(x),
            _ => {
                let last = !x.typ(types).nullable;
                kept.push(x);
                if last {
                    break;
                }
            }
        }
    }
    match kept.len() {
        0 => Scalar::Literal(Value::Null, ty.with_nullable(true)),
        1 => kept.remove(0),
        _ => Scalar::Coalesce(kept, ty),
    }
}
