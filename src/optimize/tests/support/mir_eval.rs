//! MIR, node by node: joins by nested loops, groups by maps. Any error is the plan's error.

use super::{consolidate, ctx, key_bytes, order, peers, top_k, Outcome, Rows, Tables};
use expr::eval::eval_row;
use expr::{Scalar, WindowFunc};
use plan::{Id, LocalId, Mir};
use repr::{ColType, SqlError, Value};
use std::collections::BTreeMap;

pub fn eval(mir: &Mir, tables: &Tables) -> Outcome {
    run(mir, tables, &mut BTreeMap::new())
}

fn scalar(s: &Scalar, row: &[Value], types: &[ColType]) -> Result<Value, SqlError> {
    eval_row(s, row, types, &ctx())
}

fn run(mir: &Mir, tables: &Tables, locals: &mut BTreeMap<LocalId, Rows>) -> Outcome {
    let types = mir.types();
    let rows = match mir {
        Mir::Constant { rows, .. } => rows.clone()?,
        Mir::Get { id: Id::Global(g), .. } => tables[g].clone(),
        Mir::Get { id: Id::Local(l), .. } => locals.get(l).unwrap_or_else(|| panic!("unbound local {l:?}")).clone(),
        Mir::Let { id, value, body } => {
            let rows = run(value, tables, locals)?;
            locals.insert(*id, rows);
            run(body, tables, locals)?
        }
        Mir::LetRec { bindings, limit, body, .. } => {
            bindings.iter().for_each(|b| {
                locals.insert(b.id, vec![]);
            });
            for round in 0.. {
                let mut changed = false;
                for b in bindings {
                    let rows = run(&b.value, tables, locals)?;
                    changed |= locals.insert(b.id, rows.clone()) != Some(rows);
                }
                assert!(round < 100, "no fixed point");
                if !changed || limit.is_some_and(|l| round + 1 >= l) {
                    break;
                }
            }
            run(body, tables, locals)?
        }
        Mir::Project { input, outputs } => {
            let rows = run(input, tables, locals)?;
            rows.into_iter().map(|(r, d)| (outputs.iter().map(|o| r[*o].clone()).collect(), d)).collect()
        }
        Mir::Map { input, scalars } => {
            let mut out = Vec::new();
            for (mut r, d) in run(input, tables, locals)? {
                for s in scalars {
                    let v = scalar(s, &r, &types[..r.len()])?;
                    r.push(v);
                }
                out.push((r, d));
            }
            out
        }
        Mir::Filter { input, predicates } => {
            let mut out = Vec::new();
            'rows: for (r, d) in run(input, tables, locals)? {
                for p in predicates {
                    if scalar(p, &r, &types)? != Value::Bool(true) {
                        continue 'rows;
                    }
                }
                out.push((r, d));
            }
            out
        }
        Mir::FlatMap { input, func } => {
            let input_types = input.types();
            let mut out = Vec::new();
            for (r, d) in run(input, tables, locals)? {
                let args = func.args.iter().map(|a| scalar(a, &r, &input_types)).collect::<Result<Vec<_>, _>>()?;
                if func.func.strict && args.iter().any(Value::is_null) {
                    continue;
                }
                let arg_types: Vec<ColType> = func.args.iter().map(|a| a.typ(&input_types)).collect();
                let mut n = 0;
                (func.func.rows)(&args, &arg_types, &func.columns, &ctx(), &mut |values| {
                    n += 1;
                    let ordinal = func.with_ordinality.then_some(Value::Int8(n));
                    out.push((r.iter().cloned().chain(values).chain(ordinal).collect(), d));
                    true
                })?;
            }
            out
        }
        Mir::Join { inputs, equivalences } => {
            let mut so_far: Rows = vec![(vec![], 1)];
            for i in inputs {
                let rows = run(i, tables, locals)?;
                so_far = so_far.iter().flat_map(|(l, d)| rows.iter().map(move |(r, e)| (l.iter().chain(r).cloned().collect(), d * e))).collect();
            }
            let mut out = Vec::new();
            'pairs: for (r, d) in so_far {
                for e in equivalences {
                    let values = e.exprs.iter().map(|x| scalar(x, &r, &types)).collect::<Result<Vec<_>, _>>()?;
                    let ty = e.exprs[0].typ(&types);
                    let key = |v: &Value| key_bytes(std::slice::from_ref(v), std::slice::from_ref(&ty.clone().with_nullable(true)));
                    if values.iter().any(|v| key(v) != key(&values[0])) || (!e.null_safe && values[0].is_null()) {
                        continue 'pairs;
                    }
                }
                out.push((r, d));
            }
            out
        }
        Mir::Reduce { input, group_key, aggregates } => {
            let input_types = input.types();
            let rows = run(input, tables, locals)?;
            let key_types: Vec<ColType> = group_key.iter().map(|k| k.typ(&input_types)).collect();
            let mut groups: BTreeMap<Vec<u8>, (Vec<Value>, Rows)> = BTreeMap::new();
            for (r, d) in rows {
                let key = group_key.iter().map(|k| scalar(k, &r, &input_types)).collect::<Result<Vec<_>, _>>()?;
                let g = groups.entry(key_bytes(&key, &key_types)).or_insert((key.clone(), vec![]));
                // The least form of equal keys is shown.
                if super::row_bytes(&key, &key_types) < super::row_bytes(&g.0, &key_types) {
                    g.0 = key;
                }
                g.1.push((r, d));
            }
            let mut out = Vec::new();
            for (mut key, rows) in groups.into_values() {
                assert!(rows.iter().map(|r| r.1).sum::<i64>() > 0 && rows.iter().all(|r| r.1 > 0), "negative count under {mir:?}");
                for a in aggregates {
                    key.push(expr::agg::evaluate(a, &rows, &input_types, &ctx())?);
                }
                out.push((key, 1));
            }
            out
        }
        Mir::TopK { input, group_key, order_by, limit, offset, with_ties } => {
            let rows = run(input, tables, locals)?;
            let limit = match limit {
                Some(Scalar::Literal(v, _)) => v.as_i64(),
                Some(_) => panic!("a computed limit"),
                None => None,
            };
            top_k(rows, &types, group_key, order_by, limit, *offset as i64, *with_ties)
        }
        Mir::Window { input, partition, order_by, exprs } => {
            let input_types = input.types();
            let rows = run(input, tables, locals)?;
            windows(rows, &input_types, partition, order_by, &exprs.iter().map(|e| &e.func).collect::<Vec<_>>())
        }
        Mir::Negate { input } => run(input, tables, locals)?.into_iter().map(|(r, d)| (r, -d)).collect(),
        Mir::Threshold { input } => run(input, tables, locals)?.into_iter().filter(|(_, d)| *d > 0).collect(),
        Mir::Union { inputs } => {
            let mut out = Vec::new();
            for i in inputs {
                out.extend(run(i, tables, locals)?);
            }
            out
        }
    };
    Ok(consolidate(rows, &types))
}

/// row_number and rank, which is what planning itself uses.
pub fn windows(rows: Rows, types: &[ColType], partition: &[usize], order_by: &[expr::ColumnOrder], funcs: &[&WindowFunc]) -> Rows {
    let mut groups: BTreeMap<Vec<u8>, Vec<Vec<Value>>> = BTreeMap::new();
    let key_types: Vec<ColType> = partition.iter().map(|g| types[*g].clone()).collect();
    for (row, diff) in rows {
        let key: Vec<Value> = partition.iter().map(|g| row[*g].clone()).collect();
        let list = groups.entry(key_bytes(&key, &key_types)).or_default();
        (0..diff).for_each(|_| list.push(row.clone()));
    }
    let mut out = Vec::new();
    for mut list in groups.into_values() {
        list.sort_by(|a, b| order(a, b, order_by, types));
        let mut rank = 0;
        for (i, row) in list.iter().enumerate() {
            if i == 0 || peers(&list[i - 1], row, order_by, types).is_ne() {
                rank = i as i64 + 1;
            }
            let values = funcs.iter().map(|f| match f {
                WindowFunc::RowNumber => Value::Int8(i as i64 + 1),
                WindowFunc::Rank => Value::Int8(rank),
                other => panic!("{other:?} is not in this interpreter"),
            });
            out.push((row.iter().cloned().chain(values).collect(), 1));
        }
    }
    out
}
