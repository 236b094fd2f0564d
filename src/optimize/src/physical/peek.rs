//! One-off queries: a constant, a look-up or scan of an arrangement, or a dataflow at one time.

use super::{Dataflow, Planner};
use crate::chain::Chain;
use crate::{Indexes, OptimizeCtx};
use expr::eval::eval_row;
use expr::{EvalCtx, Scalar};
use plan::equality::{equality_sides, is_equality, same_keys};
use plan::{Finishing, Id, Import, Mfp, Mir, PeekPlan};
use repr::{ColType, Diff, GlobalId, SqlError, SqlType, Value};

/// How a query is answered, and what it reads.
#[derive(Clone, Debug, PartialEq)]
pub struct Peek {
    pub plan: PeekPlan,
    pub imports: Vec<Import>,
    pub finishing: Finishing,
}

/// Plans a query that is answered once. Expects an optimized plan.
pub fn plan_peek(mir: &Mir, finishing: Finishing, ctx: &OptimizeCtx, indexes: Indexes) -> Result<Peek, SqlError> {
    if let Mir::Constant { rows, types } = mir {
        return Ok(Peek { plan: PeekPlan::Constant { rows: rows.clone(), types: types.clone() }, imports: vec![], finishing });
    }
    let (base, chain) = Chain::peel(mir);
    if let Mir::Constant { rows, types } = base {
        let rows = rows.clone().and_then(|rows| computed(rows, types, &chain.finish(), ctx.ctx));
        return Ok(Peek { plan: PeekPlan::Constant { rows, types: mir.types() }, imports: vec![], finishing });
    }
    if let Mir::Get { id: Id::Global(object), types, .. } = base {
        let found = indexes(*object);
        if let Some(plan) = arrangement(*object, types, &chain, &found) {
            let PeekPlan::Arrangement { index, .. } = &plan else { return Err(SqlError::internal("not an arrangement")) };
            let key = found.iter().find(|(i, _)| i == index).map(|(_, k)| k.clone()).unwrap_or_default();
            let imports = vec![Import::Arrangement { object: *object, index: *index, key, types: types.clone() }];
            return Ok(Peek { plan, imports, finishing });
        }
    }
    let mut p = Planner::new(ctx, indexes);
    let lir = p.node(mir)?;
    let Dataflow { lir, imports, .. } = Dataflow { imports: p.imports(), lir, notices: vec![] };
    Ok(Peek { plan: PeekPlan::Dataflow(lir), imports, finishing })
}

/// Row by row, as the engine would do it: what planning may not fold (errors, random numbers) is computed once, now.
fn computed(rows: Vec<(Vec<Value>, Diff)>, types: &[ColType], mfp: &Mfp, ctx: &EvalCtx) -> Result<Vec<(Vec<Value>, Diff)>, SqlError> {
    let mut all = types.to_vec();
    for m in &mfp.maps {
        let t = m.typ(&all);
        all.push(t);
    }
    let mut out = Vec::new();
    'rows: for (mut row, diff) in rows {
        for n in mfp.input_arity..=all.len() {
            for (_, p) in mfp.predicates.iter().filter(|(at, _)| *at == n) {
                if eval_row(p, &row, &all[..n], ctx)? != Value::Bool(true) {
                    continue 'rows;
                }
            }
            if let Some(m) = mfp.maps.get(n - mfp.input_arity) {
                let v = eval_row(m, &row, &all[..n], ctx)?;
                row.push(v);
            }
        }
        out.push((mfp.project.iter().map(|c| row[*c].clone()).collect(), diff));
    }
    Ok(out)
}

/// A look-up in the index with the longest key that the predicates bind completely, else a scan of the first.
fn arrangement(object: GlobalId, types: &[ColType], chain: &Chain, indexes: &[(GlobalId, Vec<Scalar>)]) -> Option<PeekPlan> {
    let mfp = chain.finish();
    if mfp.is_temporal() {
        return None;
    }
    let arity = mfp.input_arity;
    let predicates: Vec<&Scalar> = mfp.predicates.iter().filter(|(at, _)| *at == arity).map(|(_, p)| p).collect();
    let best = indexes.iter().filter_map(|(index, key)| Some((index, key.len(), bound_keys(key, &predicates, types)?))).max_by_key(|(_, n, _)| *n);
    let (index, keys) = match best {
        Some((index, _, keys)) => (*index, Some(keys)),
        None => (indexes.first()?.0, None),
    };
    Some(PeekPlan::Arrangement { object, index, keys, mfp, types: types.to_vec() })
}

const LOOKUPS_MAX: usize = 10_000; // combinations of IN lists; beyond it a scan is cheaper than the list

/// The key values that the predicates allow, if they bind every expression of the key to literals. The predicates stay
/// in the plan, so a value too many does no harm.
fn bound_keys(key: &[Scalar], predicates: &[&Scalar], types: &[ColType]) -> Option<Vec<Vec<Value>>> {
    let mut rows: Vec<Vec<Value>> = vec![vec![]];
    if key.is_empty() {
        return None;
    }
    for k in key {
        let values = predicates.iter().find_map(|p| literals_of(p, k, types))?;
        if rows.len() * values.len() > LOOKUPS_MAX {
            return None;
        }
        rows = rows.iter().flat_map(|r| values.iter().map(|v| r.iter().cloned().chain([v.clone()]).collect())).collect();
    }
    let mut unique: Vec<Vec<Value>> = Vec::new();
    let key_types: Vec<ColType> = key.iter().map(|k| k.typ(types)).collect();
    let same = |a: &[Value], b: &[Value]| a.iter().zip(b).zip(&key_types).all(|((x, y), t)| x.sql_cmp(y, &t.ty).is_eq());
    rows.sort_by(|a, b| {
        let by = a.iter().zip(b).zip(&key_types).map(|((x, y), t)| x.sql_cmp(y, &t.ty));
        by.fold(std::cmp::Ordering::Equal, std::cmp::Ordering::then)
    });
    for r in rows {
        if unique.last().is_none_or(|u| !same(u, &r)) {
            unique.push(r);
        }
    }
    Some(unique)
}

/// The literals to which a predicate binds `key`: `key = l`, or a disjunction of such.
pub(crate) fn literals_of(p: &Scalar, key: &Scalar, types: &[ColType]) -> Option<Vec<Value>> {
    match p {
        Scalar::Or(xs) => {
            let mut all = Vec::new();
            for x in xs {
                all.extend(literals_of(x, key, types)?);
            }
            Some(all)
        }
        // x = ANY (array literal)
        Scalar::Call { func, args, .. } if func.name == "any_op" || func.name == "any_op_total" => match &args[..] {
            [Scalar::Literal(Value::UInt4(op), _), k, Scalar::Literal(Value::Array(a), t)] if k == key => {
                let by_keys = expr::func::by_oid(*op).is_some_and(is_equality) && matches!(&t.ty, SqlType::Array(e) if same_keys(e, &k.typ(types).ty));
                by_keys.then(|| a.elems.iter().filter(|v| !v.is_null()).cloned().collect())
            }
            _ => None,
        },
        // One conjunct that binds the key is enough.
        Scalar::And(xs) => xs.iter().find_map(|x| literals_of(x, key, types)),
        Scalar::Literal(Value::Bool(false), _) => Some(vec![]),
        _ => match equality_sides(p, types)? {
            (k, Scalar::Literal(v, _)) | (Scalar::Literal(v, _), k) if k == key => Some(if v.is_null() { vec![] } else { vec![v.clone()] }),
            _ => None,
        },
    }
}
