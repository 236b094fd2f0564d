//! Aggregate functions.
//!
//! ```text
//!   kind         state in the engine                                cost of a change
//!   Accumulable  one `Accum` a group, kept in the diff              O(1)
//!   Extremum     min/max over order-preserving bytes                O(log group)
//!   Basic        the group's rows, re-aggregated by `evaluate`      O(group)
//! ```
//!
//! [`evaluate`] computes any aggregate of any kind from a group's input rows: FILTER, DISTINCT and ORDER BY included.

use crate::catalog::{self, ProcKind};
use crate::ctx::EvalCtx;
use crate::eval::eval_whole;
use crate::scalar::{ColumnOrder, Scalar};
use repr::{column, Batch, ColType, Diff, RowCodec, SqlError, Value};
use std::collections::HashMap;
use std::sync::OnceLock;

/// The invertible states.
mod accum;
/// string_agg, array_agg, bit_and and their like.
mod basic;
/// Numeric division and square root at Postgres's scales.
mod decimal;
/// Exact sums of integers and floats.
mod exact;
/// Aggregates that build JSON.
mod json;
/// Ordered-set and hypothetical-set aggregates.
mod ordered;

pub use accum::{Accum, ArgReader, Pack, Packing};

/// An aggregate in a query.
#[derive(Clone, Debug, PartialEq)]
pub struct Aggregate {
    pub func: &'static AggDef,
    /// Arguments; for ordered-set aggregates first the direct ones (`direct` of them), then the WITHIN GROUP ones. Empty for `count(*)`.
    pub args: Vec<Scalar>,
    pub direct: usize,
    pub distinct: bool,
    pub filter: Option<Scalar>,
    /// ORDER BY inside the call (or WITHIN GROUP): expressions over the input row, and for each its direction; `column` is the position in the list.
    pub order_by: Vec<(Scalar, ColumnOrder)>,
    pub ty: ColType,
}

pub struct AggDef {
    pub name: &'static str,
    /// pg_proc.oid of the aggregate.
    pub oid: u32,
    pub kind: AggKind,
}

pub enum AggKind {
    /// Invertible: the state adds, subtracts and scales (DECISIONS 10: exact, so order-free).
    Accumulable(AccumKind),
    Extremum {
        max: bool,
    },
    Basic(BasicAgg),
}

/// Computes the aggregate of one group.
pub type BasicAgg = fn(&BasicCall<'_>) -> Result<Value, SqlError>;

/// What a [`BasicAgg`] sees.
pub struct BasicCall<'a> {
    /// Argument tuples (direct ones included) with their multiplicities (> 0), in the aggregate's ORDER BY order, ties broken by the tuple's
    /// bytes. With DISTINCT each tuple comes once. Tuples with NULLs are here too.
    pub rows: &'a [(Vec<Value>, Diff)],
    /// The arguments' types.
    pub types: &'a [ColType],
    pub agg: &'a Aggregate,
    pub ctx: &'a EvalCtx,
}

/// What an accumulator of [`Accum`] keeps and how it ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AccumKind {
    CountStar,
    /// Rows whose argument is not NULL.
    Count,
    /// Result types by Postgres: int2/int4 to int8, int8 to numeric, float4 to float4, float8 to float8, numeric to numeric, interval, money.
    Sum,
    Avg,
    VarPop,
    VarSamp,
    StddevPop,
    StddevSamp,
    BoolAnd,
    BoolOr,
    /// regr_* and corr, covar_*: two arguments. `Regr(name)` is decided by `AggDef::name`.
    Regr,
}

impl std::fmt::Debug for AggDef {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

impl PartialEq for AggDef {
    fn eq(&self, other: &AggDef) -> bool {
        self.oid == other.oid && self.name == other.name
    }
}

/// The aggregate with this pg_proc OID, if it is implemented.
pub fn by_oid(oid: u32) -> Option<&'static AggDef> {
    static DEFS: OnceLock<HashMap<u32, AggDef>> = OnceLock::new();
    let defs = DEFS.get_or_init(|| {
        let aggregates = catalog::procs().iter().filter(|p| p.kind == ProcKind::Aggregate);
        aggregates.filter_map(|p| kind_of(p).map(|kind| (p.oid, AggDef { name: p.name, oid: p.oid, kind }))).collect()
    });
    defs.get(&oid)
}

/// Types without values here: xml, tid.
const NO_TYPES: [u32; 2] = [142, 27];

fn kind_of(p: &catalog::PgProc) -> Option<AggKind> {
    use AggKind::{Accumulable, Basic, Extremum};
    if p.args.iter().any(|a| NO_TYPES.contains(a)) {
        return None;
    }
    Some(match p.name {
        "count" if p.args.is_empty() => Accumulable(AccumKind::CountStar),
        "count" => Accumulable(AccumKind::Count),
        "sum" => Accumulable(AccumKind::Sum),
        "avg" => Accumulable(AccumKind::Avg),
        "var_pop" => Accumulable(AccumKind::VarPop),
        "var_samp" | "variance" => Accumulable(AccumKind::VarSamp),
        "stddev_pop" => Accumulable(AccumKind::StddevPop),
        "stddev_samp" | "stddev" => Accumulable(AccumKind::StddevSamp),
        "bool_and" | "every" => Accumulable(AccumKind::BoolAnd),
        "bool_or" => Accumulable(AccumKind::BoolOr),
        n if n.starts_with("regr_") || n == "corr" || n.starts_with("covar_") => Accumulable(AccumKind::Regr),
        "min" => Extremum { max: false },
        "max" => Extremum { max: true },
        "bit_and" => Basic(basic::bit_and),
        "bit_or" => Basic(basic::bit_or),
        "bit_xor" => Basic(basic::bit_xor),
        "string_agg" => Basic(basic::string_agg),
        "array_agg" => Basic(basic::array_agg),
        "json_agg" => Basic(json::json_agg),
        "jsonb_agg" => Basic(json::jsonb_agg),
        "json_object_agg" => Basic(json::json_object_agg),
        "jsonb_object_agg" => Basic(json::jsonb_object_agg),
        "range_agg" => Basic(basic::range_agg),
        "range_intersect_agg" => Basic(basic::range_intersect_agg),
        "mode" => Basic(ordered::mode),
        "percentile_cont" => Basic(ordered::percentile_cont),
        "percentile_disc" => Basic(ordered::percentile_disc),
        "rank" => Basic(ordered::rank),
        "dense_rank" => Basic(ordered::dense_rank),
        "percent_rank" => Basic(ordered::percent_rank),
        "cume_dist" => Basic(ordered::cume_dist),
        _ => return None,
    })
}

/// The value of an aggregate over no rows: 0 for counts, the first place for hypothetical rows, else NULL.
pub fn empty_value(agg: &Aggregate) -> Value {
    match agg.func.name {
        "count" | "regr_count" => Value::Int8(0),
        "rank" | "dense_rank" => Value::Int8(1),
        "percent_rank" => Value::Float8(0.0),
        "cume_dist" => Value::Float8(1.0),
        _ => Value::Null,
    }
}

/// The error of an aggregate over no rows, if there is one.
pub fn empty_error(agg: &Aggregate) -> Option<SqlError> {
    ordered::wrong_percentile(agg)
}

/// Appends bytes by which memcmp orders values as ORDER BY does.
pub fn write_order_key(value: &Value, ty: &repr::SqlType, order: &ColumnOrder, out: &mut Vec<u8>) {
    if value.is_null() {
        out.push(if order.nulls_last { 2 } else { 0 });
        return;
    }
    out.push(1);
    let start = out.len();
    repr::row::write_canonical(value, ty, out);
    if order.desc {
        out[start..].iter_mut().for_each(|b| *b = !*b);
    }
}

/// The value of `agg` over `rows` of types `types`, with multiplicities. Rows whose multiplicity is not positive do not count.
///
/// Errors: the first of a row's FILTER, argument or ORDER BY expressions, in the order of `rows`; else the aggregate's own.
pub fn evaluate(agg: &Aggregate, rows: &[(Vec<Value>, Diff)], types: &[ColType], ctx: &EvalCtx) -> Result<Value, SqlError> {
    let batch = Batch::try_from_rows(types, rows.iter().map(|r| r.0.as_slice()))?;
    let diffs: Vec<Diff> = rows.iter().map(|r| r.1).collect();
    evaluate_batch(agg, &batch, &diffs, types, ctx)
}

/// As [`evaluate`], over columns.
pub fn evaluate_batch(agg: &Aggregate, batch: &Batch, diffs: &[Diff], types: &[ColType], ctx: &EvalCtx) -> Result<Value, SqlError> {
    let mut keep: Vec<u32> = (0..batch.len as u32).filter(|i| diffs[*i as usize] > 0).collect();
    let column_of = |x: &Scalar, batch: &Batch| {
        let v = eval_whole(x, batch, types, ctx);
        match v.errors.into_iter().next() {
            Some((_, e)) => Err(e),
            None => Ok(v.column),
        }
    };
    let mut batch = batch.take(&keep.clone().into());
    if let Some(filter) = &agg.filter {
        let pass = column_of(filter, &batch)?;
        let bool_type = repr::SqlType::Bool;
        let yes: Vec<u32> = (0..batch.len as u32).filter(|i| column::get(&pass, &bool_type, *i as usize) == Value::Bool(true)).collect();
        keep = yes.iter().map(|i| keep[*i as usize]).collect();
        batch = batch.take(&yes.into());
    }
    let arg_types: Vec<ColType> = agg.args.iter().map(|a| a.typ(types)).collect();
    let args = agg.args.iter().map(|a| column_of(a, &batch)).collect::<Result<Vec<_>, _>>()?;
    if let (AggKind::Accumulable(_), false) = (&agg.func.kind, agg.distinct) {
        let reader = ArgReader::open(&args, &arg_types);
        let mut acc = Accum::new(agg.func);
        for (i, row) in keep.iter().enumerate() {
            acc.update(&reader, i, diffs[*row as usize]);
        }
        return acc.finalize(agg);
    }
    let order: Vec<_> = agg.order_by.iter().map(|(x, o)| column_of(x, &batch).map(|c| (c, x.typ(types), *o))).collect::<Result<_, _>>()?;
    let args = Batch { len: batch.len, cols: args };
    let codec = RowCodec::new(arg_types.clone());
    let mut sorted: Vec<(Vec<u8>, Vec<Value>, Diff)> = (0..batch.len)
        .map(|i| {
            let mut key = Vec::new();
            for (col, ty, o) in &order {
                write_order_key(&column::get(col, &ty.ty, i), &ty.ty, o, &mut key);
            }
            let tuple = args.row(&arg_types, i);
            codec.encode_row(&tuple, &mut key);
            (key, tuple, diffs[keep[i] as usize])
        })
        .collect();
    sorted.sort_by(|a, b| a.0.cmp(&b.0));
    let mut tuples: Vec<(Vec<Value>, Diff)> = Vec::with_capacity(sorted.len());
    let mut seen = std::collections::HashSet::new();
    for (_, tuple, diff) in sorted {
        if agg.distinct {
            let mut key = Vec::new();
            codec.encode_key(&tuple, &mut key);
            if !seen.insert(key) {
                continue;
            }
            tuples.push((tuple, 1));
        } else {
            tuples.push((tuple, diff));
        }
    }
    of_tuples(agg, &tuples, &arg_types, ctx)
}

/// The value of `agg` over argument tuples that are filtered, distinct and ordered as [`BasicCall::rows`] says.
pub fn of_tuples(agg: &Aggregate, rows: &[(Vec<Value>, Diff)], types: &[ColType], ctx: &EvalCtx) -> Result<Value, SqlError> {
    match &agg.func.kind {
        AggKind::Accumulable(_) => {
            let mut acc = Accum::new(agg.func);
            for (tuple, diff) in rows {
                acc.update_values(tuple, *diff);
            }
            acc.finalize(agg)
        }
        AggKind::Extremum { max } => {
            let mut best: Option<&Value> = None;
            for (tuple, _) in rows {
                let v = &tuple[0];
                let better = !v.is_null()
                    && best.is_none_or(|b| {
                        let o = v.sql_cmp(b, &types[0].ty);
                        if *max {
                            o.is_gt()
                        } else {
                            o.is_lt()
                        }
                    });
                if better {
                    best = Some(v);
                }
            }
            Ok(best.cloned().unwrap_or(Value::Null))
        }
        AggKind::Basic(f) => f(&BasicCall { rows, types, agg, ctx }),
    }
}
