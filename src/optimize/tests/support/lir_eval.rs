//! LIR, node by node, with the promises of its documentation.

use super::{consolidate, ctx, key_bytes, mir_eval, Outcome, Rows, Tables};
use expr::eval::eval_row;
use expr::{Aggregate, Scalar};
use plan::lir::ReduceKind;
use plan::{Id, Lir, LirKind, LocalId, Mfp, Mir};
use repr::{ColType, Value};
use std::collections::BTreeMap;

pub fn eval(lir: &Lir, tables: &Tables) -> Outcome {
    run(lir, tables, &mut BTreeMap::new())
}

fn mfp(rows: Rows, types: &[ColType], mfp: &Mfp) -> Outcome {
    assert_eq!(mfp.input_arity, types.len());
    assert!(!mfp.is_temporal());
    let mut all = types.to_vec();
    for m in &mfp.maps {
        let t = m.typ(&all);
        all.push(t);
    }
    let mut out = Vec::new();
    'rows: for (mut r, d) in rows {
        for i in 0..=mfp.maps.len() {
            let n = mfp.input_arity + i;
            for (_, p) in mfp.predicates.iter().filter(|(at, _)| *at == n) {
                if eval_row(p, &r, &all[..n], &ctx())? != Value::Bool(true) {
                    continue 'rows;
                }
            }
            if let Some(m) = mfp.maps.get(i) {
                let v = eval_row(m, &r, &all[..n], &ctx())?;
                r.push(v);
            }
        }
        assert!(mfp.predicates.iter().all(|(at, _)| (mfp.input_arity..=all.len()).contains(at)));
        out.push((mfp.project.iter().map(|c| r[*c].clone()).collect(), d));
    }
    Ok(out)
}

/// The other nodes mean what their MIR namesakes mean.
fn as_mir(mir: Mir, tables: &Tables, input: Rows) -> Outcome {
    let mut tables = tables.clone();
    tables.insert(SLOT, input);
    mir_eval::eval(&mir, &tables)
}

const SLOT: repr::GlobalId = repr::GlobalId(u64::MAX);

fn slot(types: &[ColType]) -> Box<Mir> {
    Box::new(Mir::Get { id: Id::Global(SLOT), types: types.to_vec(), keys: vec![] })
}

fn run(lir: &Lir, tables: &Tables, locals: &mut BTreeMap<LocalId, Rows>) -> Outcome {
    let rows = match &lir.kind {
        LirKind::Constant { rows } => rows.clone()?,
        LirKind::Get { id: Id::Global(g) } => tables[g].clone(),
        LirKind::Get { id: Id::Local(l) } => locals[l].clone(),
        LirKind::Let { id, value, body } => {
            let rows = run(value, tables, locals)?;
            locals.insert(*id, rows);
            run(body, tables, locals)?
        }
        LirKind::LetRec { bindings, body, .. } => {
            bindings.iter().for_each(|(id, _)| {
                locals.insert(*id, vec![]);
            });
            loop {
                let mut changed = false;
                for (id, value) in bindings {
                    let rows = run(value, tables, locals)?;
                    changed |= locals.insert(*id, rows.clone()) != Some(rows);
                }
                if !changed {
                    break;
                }
            }
            run(body, tables, locals)?
        }
        LirKind::Mfp { input, mfp: m } => {
            let rows = run(input, tables, locals)?;
            mfp(rows, &input.types, m)?
        }
        LirKind::FlatMap { input, func } => {
            let rows = run(input, tables, locals)?;
            as_mir(Mir::FlatMap { input: slot(&input.types), func: func.clone() }, tables, rows)?
        }
        LirKind::Join { inputs, start, stages } => {
            let mut sides = Vec::new();
            for i in inputs {
                sides.push(run(i, tables, locals)?);
            }
            let mut rows = sides[*start].clone();
            let mut types = inputs[*start].types.clone();
            for s in stages {
                let other = &inputs[s.lookup].types;
                let mut pairs = Vec::new();
                for (l, d) in &rows {
                    'right: for (r, e) in &sides[s.lookup] {
                        for ((a, b), safe) in s.stream_key.iter().zip(&s.lookup_key).zip(&s.null_safe) {
                            let (x, y) = (eval_row(a, l, &types, &ctx())?, eval_row(b, r, other, &ctx())?);
                            let ty = a.typ(&types).with_nullable(true);
                            assert!(plan::equality::same_keys(&ty.ty, &b.typ(other).ty));
                            let key = |v: &Value| key_bytes(std::slice::from_ref(v), std::slice::from_ref(&ty));
                            if key(&x) != key(&y) || (!safe && x.is_null()) {
                                continue 'right;
                            }
                        }
                        pairs.push((l.iter().chain(r).cloned().collect(), d * e));
                    }
                }
                types.extend(other.iter().cloned());
                rows = mfp(pairs, &types, &s.mfp)?;
                types = s.mfp.output_types(&types);
            }
            rows
        }
        LirKind::Reduce { input, group_key, kind } => {
            let rows = run(input, tables, locals)?;
            let mut placed: Vec<Option<Aggregate>> = Vec::new();
            place(kind, &mut placed, None);
            let aggregates: Vec<Aggregate> = placed.into_iter().map(|a| a.expect("each position has an aggregate")).collect();
            as_mir(Mir::Reduce { input: slot(&input.types), group_key: group_key.clone(), aggregates }, tables, rows)?
        }
        LirKind::TopK { input, group_key, order_by, limit, offset, with_ties, .. } => {
            let rows = run(input, tables, locals)?;
            let (group_key, order_by) = (group_key.clone(), order_by.clone());
            let limit: Option<Scalar> = limit.clone();
            as_mir(Mir::TopK { input: slot(&input.types), group_key, order_by, limit, offset: *offset, with_ties: *with_ties }, tables, rows)?
        }
        LirKind::Window { input, partition, order_by, exprs } => {
            let rows = run(input, tables, locals)?;
            let (partition, order_by, exprs) = (partition.clone(), order_by.clone(), exprs.clone());
            as_mir(Mir::Window { input: slot(&input.types), partition, order_by, exprs }, tables, rows)?
        }
        LirKind::Negate { input } => run(input, tables, locals)?.into_iter().map(|(r, d)| (r, -d)).collect(),
        LirKind::Threshold { input } => run(input, tables, locals)?.into_iter().filter(|(_, d)| *d > 0).collect(),
        LirKind::Union { inputs } => {
            let mut out = Vec::new();
            for i in inputs {
                out.extend(run(i, tables, locals)?);
            }
            out
        }
    };
    assert!(rows.iter().all(|r| r.0.len() == lir.types.len()), "arity of {lir:?}");
    Ok(consolidate(rows, &lir.types))
}

fn place(kind: &ReduceKind, out: &mut Vec<Option<Aggregate>>, at: Option<&[usize]>) {
    let list = match kind {
        ReduceKind::Distinct => return,
        ReduceKind::Accumulable(a) | ReduceKind::Basic(a) | ReduceKind::Hierarchical(a) | ReduceKind::Monotonic(a) => a,
        ReduceKind::Collated(parts) => {
            parts.iter().for_each(|(at, k)| place(k, out, Some(at)));
            return;
        }
    };
    for (i, a) in list.iter().enumerate() {
        let i = at.map_or(i, |at| at[i]);
        if out.len() <= i {
            out.resize(i + 1, None);
        }
        out[i] = Some(a.clone());
    }
}
