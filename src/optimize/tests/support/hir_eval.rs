//! HIR by nested loops, with a stack of enclosing rows: what a query means, without any decorrelation.

use super::{consolidate, ctx, key_bytes, row_bytes, top_k, Outcome, Rows, Tables};
use expr::eval::call_values;
use plan::LocalId;
use repr::{ColType, SqlError, Value};
use sql::hir::{Hir, HirAggregate, HirScalar, HirWindowFunc, JoinKind, Quantifier};
use std::collections::BTreeMap;

type Locals = BTreeMap<LocalId, Rows>;
/// Enclosing rows, the innermost last.
type Stack = Vec<Vec<Value>>;

pub fn eval(h: &Hir, tables: &Tables) -> Outcome {
    relation(h, tables, &mut vec![], &mut Locals::new())
}

fn relation(h: &Hir, tables: &Tables, stack: &mut Stack, locals: &mut Locals) -> Outcome {
    let types = h.types();
    let rows = match h {
        Hir::Constant { rows, .. } => rows.clone(),
        Hir::Get { id, .. } => tables[id].clone(),
        Hir::GetLocal { id, .. } => locals[id].clone(),
        Hir::Let { id, value, body } => {
            let rows = relation(value, tables, stack, locals)?;
            let old = locals.insert(*id, rows);
            let result = relation(body, tables, stack, locals);
            if let Some(old) = old {
                locals.insert(*id, old);
            }
            result?
        }
        Hir::LetRec { bindings, body, .. } => {
            bindings.iter().for_each(|b| {
                locals.insert(b.id, vec![]);
            });
            for round in 0.. {
                let mut changed = false;
                for b in bindings {
                    let rows = relation(&b.value, tables, stack, locals)?;
                    changed |= locals.insert(b.id, rows.clone()) != Some(rows);
                }
                assert!(round < 100, "no fixed point");
                if !changed {
                    break;
                }
            }
            relation(body, tables, stack, locals)?
        }
        Hir::Project { input, outputs } => {
            let rows = relation(input, tables, stack, locals)?;
            rows.into_iter().map(|(r, d)| (outputs.iter().map(|o| r[*o].clone()).collect(), d)).collect()
        }
        Hir::Map { input, scalars } => {
            let mut out = Vec::new();
            for (mut r, d) in relation(input, tables, stack, locals)? {
                for s in scalars {
                    let v = scalar(s, &r, tables, stack, locals)?;
                    r.push(v);
                }
                out.push((r, d));
            }
            out
        }
        Hir::Filter { input, predicates } => {
            let mut out = Vec::new();
            for (r, d) in relation(input, tables, stack, locals)? {
                if holds(predicates, &r, tables, stack, locals)? {
                    out.push((r, d));
                }
            }
            out
        }
        Hir::CallTable { .. } | Hir::RowsFrom { .. } => {
            let (functions, with_ordinality) = match h {
                Hir::RowsFrom { functions, with_ordinality } => (functions.iter().collect::<Vec<_>>(), *with_ordinality),
                Hir::CallTable { with_ordinality, .. } => (vec![h], *with_ordinality),
                _ => unreachable!("matched above"),
            };
            let mut columns: Vec<(usize, Vec<Vec<Value>>)> = Vec::new();
            for f in functions {
                let Hir::CallTable { func, args, columns: types, .. } = f else { panic!("not a function") };
                let values = args.iter().map(|a| scalar(a, &[], tables, stack, locals)).collect::<Result<Vec<_>, _>>()?;
                let arg_types: Vec<ColType> = args.iter().map(HirScalar::typ).collect();
                let mut rows = Vec::new();
                if !(func.strict && values.iter().any(Value::is_null)) {
                    (func.rows)(&values, &arg_types, types, &ctx(), &mut |r| {
                        rows.push(r);
                        true
                    })?;
                }
                columns.push((types.len(), rows));
            }
            let n = columns.iter().map(|c| c.1.len()).max().unwrap_or(0);
            (0..n)
                .map(|i| {
                    let values = columns.iter().flat_map(|(w, rows)| rows.get(i).cloned().unwrap_or(vec![Value::Null; *w]));
                    (values.chain(with_ordinality.then_some(Value::Int8(i as i64 + 1))).collect(), 1)
                })
                .collect()
        }
        Hir::Join { left, right, on, kind, lateral } => {
            let lefts = relation(left, tables, stack, locals)?;
            let (l, r) = (left.arity(), right.arity());
            let mut out = Vec::new();
            let mut right_matched: BTreeMap<Vec<u8>, bool> = BTreeMap::new();
            let right_types = right.types();
            let alone = if *lateral { vec![] } else { relation(right, tables, stack, locals)? };
            for (a, d) in &lefts {
                let rights = if *lateral {
                    stack.push(a.clone());
                    let rows = relation(right, tables, stack, locals);
                    stack.pop();
                    rows?
                } else {
                    alone.clone()
                };
                let mut matched = false;
                for (b, e) in &rights {
                    let pair: Vec<Value> = a.iter().chain(b).cloned().collect();
                    if holds(std::slice::from_ref(on), &pair, tables, stack, locals)? {
                        matched = true;
                        right_matched.insert(row_bytes(b, &right_types), true);
                        out.push((pair, d * e));
                    }
                }
                if !matched && matches!(kind, JoinKind::Left | JoinKind::Full) {
                    out.push((a.iter().cloned().chain(vec![Value::Null; r]).collect(), *d));
                }
            }
            if matches!(kind, JoinKind::Right | JoinKind::Full) {
                for (b, e) in &alone {
                    if !right_matched.contains_key(&row_bytes(b, &right_types)) {
                        out.push((vec![Value::Null; l].into_iter().chain(b.iter().cloned()).collect(), *e));
                    }
                }
            }
            out
        }
        Hir::Reduce { input, group_key, aggregates, scalar: one } => {
            let rows = relation(input, tables, stack, locals)?;
            let input_types = input.types();
            let key_types: Vec<ColType> = group_key.iter().map(|k| input_types[*k].clone()).collect();
            let mut groups: BTreeMap<Vec<u8>, (Vec<Value>, Rows)> = BTreeMap::new();
            if *one && group_key.is_empty() {
                groups.insert(key_bytes(&[], &[]), (vec![], vec![]));
            }
            for (r, d) in rows {
                let key: Vec<Value> = group_key.iter().map(|k| r[*k].clone()).collect();
                groups.entry(key_bytes(&key, &key_types)).or_insert((key, vec![])).1.push((r, d));
            }
            let mut out = Vec::new();
            for (mut key, rows) in groups.into_values() {
                for a in aggregates {
                    key.push(aggregate(a, &rows, tables, stack, locals)?);
                }
                out.push((key, 1));
            }
            out
        }
        Hir::Distinct { input } => relation(input, tables, stack, locals)?.into_iter().map(|(r, _)| (r, 1)).collect(),
        Hir::TopK { input, group_key, order_by, limit, offset, with_ties } => {
            let mut count = |s: &Option<HirScalar>| match s {
                Some(s) => scalar(s, &[], tables, stack, locals).map(|v| v.as_i64()),
                None => Ok(None),
            };
            let (limit, offset) = (count(limit)?, count(offset)?.unwrap_or(0));
            top_k(relation(input, tables, stack, locals)?, &types, group_key, order_by, limit, offset, *with_ties)
        }
        Hir::Window { input, partition, order_by, exprs } => {
            let funcs: Vec<expr::WindowFunc> = exprs
                .iter()
                .map(|e| match e.func {
                    HirWindowFunc::RowNumber => expr::WindowFunc::RowNumber,
                    HirWindowFunc::Rank => expr::WindowFunc::Rank,
                    _ => panic!("only row_number and rank here"),
                })
                .collect();
            super::mir_eval::windows(relation(input, tables, stack, locals)?, &input.types(), partition, order_by, &funcs.iter().collect::<Vec<_>>())
        }
        Hir::Union { inputs } => {
            let mut out = Vec::new();
            for i in inputs {
                out.extend(relation(i, tables, stack, locals)?);
            }
            out
        }
        Hir::Intersect { left, right, all } | Hir::Except { left, right, all } => {
            let a = relation(left, tables, stack, locals)?;
            let b = relation(right, tables, stack, locals)?;
            let in_b = |r: &Vec<Value>| b.iter().find(|x| x.0 == *r).map_or(0, |x| x.1);
            let intersect = matches!(h, Hir::Intersect { .. });
            a.iter()
                .map(|(r, n)| {
                    let m = in_b(r);
                    let count = match (intersect, all) {
                        (true, true) => m.min(*n),
                        (true, false) => m.min(1),
                        (false, true) => (n - m).max(0),
                        (false, false) => i64::from(m == 0),
                    };
                    (r.clone(), count)
                })
                .collect()
        }
    };
    Ok(consolidate(rows, &types))
}

fn conjuncts<'a>(p: &'a HirScalar, out: &mut Vec<&'a HirScalar>) {
    match p {
        HirScalar::And(xs) => xs.iter().for_each(|x| conjuncts(x, out)),
        p => out.push(p),
    }
}

fn has_subquery(s: &HirScalar) -> bool {
    format!("{s:?}").contains("input")
}

/// Conjuncts without subqueries first, the rest only if those are true.
fn holds(predicates: &[HirScalar], row: &[Value], tables: &Tables, stack: &mut Stack, locals: &mut Locals) -> Result<bool, SqlError> {
    let mut all = Vec::new();
    predicates.iter().for_each(|p| conjuncts(p, &mut all));
    all.sort_by_key(|p| has_subquery(p));
    for p in all {
        if scalar(p, row, tables, stack, locals)? != Value::Bool(true) {
            return Ok(false);
        }
    }
    Ok(true)
}

fn aggregate(a: &HirAggregate, rows: &Rows, tables: &Tables, stack: &mut Stack, locals: &mut Locals) -> Result<Value, SqlError> {
    // Arguments are computed here, so that they may be anything; the aggregate then sees them as columns.
    let types: Vec<ColType> = a.args.iter().map(HirScalar::typ).collect();
    let mut tuples = Vec::new();
    for (r, d) in rows {
        if let Some(f) = &a.filter {
            if scalar(f, r, tables, stack, locals)? != Value::Bool(true) {
                continue;
            }
        }
        let args = a.args.iter().map(|x| scalar(x, r, tables, stack, locals)).collect::<Result<Vec<_>, _>>()?;
        tuples.push((args, *d));
    }
    let plain = expr::Aggregate {
        func: a.func,
        args: (0..types.len()).map(expr::Scalar::Column).collect(),
        direct: a.direct,
        distinct: a.distinct,
        filter: None,
        order_by: vec![],
        ty: a.ty.clone(),
    };
    if tuples.is_empty() {
        return Ok(expr::agg::empty_value(&plain));
    }
    expr::agg::evaluate(&plain, &tuples, &types, &ctx())
}

fn scalar(s: &HirScalar, row: &[Value], tables: &Tables, stack: &mut Stack, locals: &mut Locals) -> Result<Value, SqlError> {
    let mut sub = |h: &Hir| {
        stack.push(row.to_vec());
        let rows = relation(h, tables, stack, locals);
        stack.pop();
        rows
    };
    Ok(match s {
        HirScalar::Column(c, _) if c.level == 0 => row[c.column].clone(),
        HirScalar::Column(c, _) => stack[stack.len() - c.level][c.column].clone(),
        HirScalar::Parameter(..) => panic!("a parameter"),
        HirScalar::Literal(v, _) => v.clone(),
        HirScalar::Error(e, _) => return Err((**e).clone()),
        HirScalar::Call { func, args, ty } => {
            let values = args.iter().map(|a| scalar(a, row, tables, stack, locals)).collect::<Result<Vec<_>, _>>()?;
            let types: Vec<ColType> = args.iter().map(|a| a.typ().with_nullable(true)).collect();
            call_values(func, &values, &types, &ty.clone().with_nullable(true), &ctx())?
        }
        HirScalar::And(xs) | HirScalar::Or(xs) => {
            let stop = Value::Bool(matches!(s, HirScalar::Or(_)));
            let mut null = false;
            for x in xs {
                let v = scalar(x, row, tables, stack, locals)?;
                if v == stop {
                    return Ok(v);
                }
                null |= v.is_null();
            }
            if null {
                Value::Null
            } else {
                Value::Bool(stop == Value::Bool(false))
            }
        }
        HirScalar::Case { branches, otherwise, .. } => {
            for (c, r) in branches {
                if scalar(c, row, tables, stack, locals)? == Value::Bool(true) {
                    return scalar(r, row, tables, stack, locals);
                }
            }
            scalar(otherwise, row, tables, stack, locals)?
        }
        HirScalar::Coalesce(xs, _) => {
            for x in xs {
                let v = scalar(x, row, tables, stack, locals)?;
                if !v.is_null() {
                    return Ok(v);
                }
            }
            Value::Null
        }
        HirScalar::IsNull(x) => Value::Bool(scalar(x, row, tables, stack, locals)?.is_null()),
        HirScalar::Not(x) => match scalar(x, row, tables, stack, locals)? {
            Value::Bool(b) => Value::Bool(!b),
            v => v,
        },
        HirScalar::Exists(h) => Value::Bool(!sub(h)?.is_empty()),
        HirScalar::Subquery(h, _) => {
            let rows = sub(h)?;
            match rows.iter().map(|r| r.1).sum::<i64>() {
                0 => Value::Null,
                1 => rows[0].0[0].clone(),
                _ => return Err(SqlError::new(repr::error::state::CARDINALITY_VIOLATION, "more than one row")),
            }
        }
        HirScalar::ArraySubquery { input, order_by, column, .. } => {
            let types = input.types();
            let mut rows: Vec<Vec<Value>> = sub(input)?.into_iter().flat_map(|(r, d)| (0..d).map(move |_| r.clone())).collect();
            // Of equals, the element's bytes decide.
            rows.sort_by(|a, b| {
                let element = |r: &[Value]| row_bytes(&r[*column..=*column], &types[*column..=*column]);
                super::peers(a, b, order_by, &types).then_with(|| element(a).cmp(&element(b)))
            });
            Value::array(rows.into_iter().map(|mut r| r.swap_remove(*column)).collect())
        }
        HirScalar::Quantified { quantifier, comparison, input } => {
            let rows = sub(input)?;
            stack.push(row.to_vec());
            let mut values = Vec::new();
            for (r, _) in &rows {
                values.push(scalar(comparison, r, tables, stack, locals));
            }
            stack.pop();
            let values = values.into_iter().collect::<Result<Vec<_>, _>>()?;
            let decisive = Value::Bool(*quantifier == Quantifier::Any);
            if values.contains(&decisive) {
                decisive
            } else if values.contains(&Value::Null) {
                Value::Null
            } else {
                Value::Bool(*quantifier == Quantifier::All)
            }
        }
    })
}
