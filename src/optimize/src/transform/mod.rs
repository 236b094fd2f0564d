//! The pipeline: one transform a file, each small and true by itself.
//!
//! ```text
//!   normalize, to a fixed point:   fold  lets  pushdown  flatten  relations  semijoin  elide  top_k
//!   once:                          prune, then normalize again;  share
//! ```
//!
//! Rules that all keep: rows and their counts stay the same at every time; an expression that can fail is evaluated on no
//! row on which the plan before did not, but for the sides of a join's equalities (see `pushdown`); ties are broken by whole rows, so no column leaves a TopK's or Window's input.

/// Comparisons of two types as comparisons of one.
mod compare;
/// Reduces and distincts that keys make needless.
mod elide;
/// Constants that fail.
mod failing;
/// Nested joins as one.
mod flatten;
/// Constants.
mod fold;
/// Recursions inside recursions.
mod hoist;
pub(crate) use hoist::inner_recursions;
/// Bindings read once, or cheap.
mod lets;
/// Padding NULLs and what rejects them.
mod nulls;
/// Columns that nobody reads.
mod prune;
/// Filters to where rows come from; join classes.
mod pushdown;
/// Unions, negations, thresholds, empty relations.
mod relations;
/// Distinct outer rows that a join back makes needless.
mod semijoin;
/// Equal parts computed once.
mod share;
/// First rows of groups.
mod top_k;

use crate::OptimizeCtx;
use expr::Scalar;
use plan::equality::{equal_is_identical, is_equality};
use plan::Mir;
use repr::{ColType, SqlError, Value};

const ROUNDS_MAX: usize = 20; // each round does what the last made possible; deep view stacks took 6

/// Runs the pipeline.
/// Errors: 57014 once the statement is to end. Of a one-off query, what a constant in it fails with (see [`failing`]).
pub(crate) fn run(mut mir: Mir, ctx: &OptimizeCtx) -> Result<Mir, SqlError> {
    if ctx.one_off {
        failing::constants(&mir, ctx.ctx)?;
    }
    normalize(&mut mir, ctx)?;
    mir = prune::columns(mir);
    normalize(&mut mir, ctx)?;
    mir = prune::columns(mir);
    normalize(&mut mir, ctx)?;
    share::subplans(&mut mir);
    Ok(mir)
}

fn normalize(mir: &mut Mir, ctx: &OptimizeCtx) -> Result<(), SqlError> {
    for _ in 0..ROUNDS_MAX {
        ctx.ctx.interrupt.check()?;
        let before = mir.clone();
        fold::constants(mir, ctx);
        lets::simplify(mir);
        pushdown::filters(mir)?;
        flatten::joins(mir);
        relations::simplify(mir);
        semijoin::outer_rows(mir);
        elide::by_keys(mir);
        top_k::simplify(mir, ctx.one_off);
        if *mir == before {
            break;
        }
    }
    Ok(())
}

/// Calls `f` on every node, inputs first.
fn bottom_up(mir: &mut Mir, f: &mut impl FnMut(&mut Mir)) {
    for c in mir.children_mut() {
        bottom_up(c, f);
    }
    f(mir);
}

/// Takes the node out, leaving an empty relation for a moment.
fn take(mir: &mut Mir) -> Mir {
    std::mem::replace(mir, Mir::empty(vec![]))
}

fn is_true(s: &Scalar) -> bool {
    matches!(s, Scalar::Literal(Value::Bool(true), _))
}

fn is_false_or_null(s: &Scalar) -> bool {
    matches!(s, Scalar::Literal(Value::Bool(false) | Value::Null, _))
}

fn is_empty(mir: &Mir) -> bool {
    matches!(mir, Mir::Constant { rows: Ok(rows), .. } if rows.is_empty())
}

fn conjuncts(p: Scalar) -> Vec<Scalar> {
    match p {
        Scalar::And(xs) => xs.into_iter().flat_map(conjuncts).collect(),
        p if is_true(&p) => vec![],
        p => vec![p],
    }
}

/// Whether a predicate may be evaluated on other rows than the plan says: it raises no errors and is no matter of chance.
pub(crate) fn is_movable(p: &Scalar) -> bool {
    !is_volatile(p) && !p.can_fail()
}

/// Whether its value is a matter of chance.
fn is_volatile(p: &Scalar) -> bool {
    let mut volatile = false;
    p.visit(&mut |x| {
        if let Scalar::Call { func, .. } = x {
            volatile |= func.volatility == expr::func::Volatility::Volatile;
        }
    });
    volatile
}

const COMPARISONS: &[&str] = &["eq", "ne", "lt", "le", "gt", "ge"];

/// Whether the scalar has one value for all rows that are equal in its columns: columns whose equal values may differ are
/// only compared with `=`, `<` and their like, or tested for NULL.
fn respects_equality(s: &Scalar, types: &[ColType]) -> bool {
    fn operand(s: &Scalar, types: &[ColType]) -> bool {
        matches!(s, Scalar::Column(_)) || respects_equality(s, types)
    }
    match s {
        Scalar::Column(c) => equal_is_identical(&types[*c].ty),
        Scalar::Call { func, args, .. } => {
            let compares =
                is_equality(func) || COMPARISONS.iter().any(|c| func.name.ends_with(c) && func.oid != 0 && args.len() == 2 && is_comparison(func.name));
            args.iter().all(|a| if compares { operand(a, types) } else { respects_equality(a, types) })
        }
        Scalar::IsNull(x) => operand(x, types),
        _ => s.children().into_iter().all(|c| respects_equality(c, types)),
    }
}

/// `int4lt`, `numeric_lt`, `date_ge` and so on.
fn is_comparison(name: &str) -> bool {
    let Some(stem) = name.get(..name.len().saturating_sub(2)) else { return false };
    let stem = stem.trim_end_matches('_');
    matches!(
        stem,
        "bool"
            | "int2"
            | "int4"
            | "int8"
            | "int24"
            | "int28"
            | "int42"
            | "int48"
            | "int82"
            | "int84"
            | "float4"
            | "float8"
            | "float48"
            | "float84"
            | "numeric"
            | "text"
            | "bpchar"
            | "char"
            | "name"
            | "bytea"
            | "date"
            | "time"
            | "timetz"
            | "timestamp"
            | "timestamptz"
            | "interval"
            | "uuid"
            | "jsonb"
            | "oid"
            | "network"
            | "array"
            | "record"
            | "enum"
            | "range"
            | "multirange"
            | "uint2"
            | "uint4"
            | "uint8"
    )
}
