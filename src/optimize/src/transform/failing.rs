//! What a query's constants fail with, whether a row asks for them or not.
//!
//! Postgres computes constant parts of expressions when it plans (`eval_const_expressions`), so `SELECT 1 / 0 FROM t` fails over an empty
//! table too. What it computes is followed exactly: calls of immutable functions whose arguments are constants, in the order of the
//! arguments; of AND, OR, CASE and COALESCE what constants before do not decide; and no column that nobody reads. What a domain refuses is
//! asked of each row.

use crate::temporal::scalars;
use expr::func::call_is_immutable;
use expr::{EvalCtx, FrameBound, Scalar};
use plan::Mir;
use repr::error::state;
use repr::{SqlError, SqlType, Value};

/// Errors: of the first constant in `mir`, a query as it is written, that fails.
pub(super) fn constants(mir: &Mir, ctx: &EvalCtx) -> Result<(), SqlError> {
    let mut read = mir.clone();
    super::lets::simplify(&mut read);
    below(&super::prune::columns(read), ctx)
}

fn below(mir: &Mir, ctx: &EvalCtx) -> Result<(), SqlError> {
    for s in scalars(mir) {
        constant(s, ctx)?;
    }
    match mir {
        Mir::Filter { predicates, .. } => drop(connective(predicates, true, ctx)?),
        Mir::Window { exprs, .. } => {
            for bound in exprs.iter().flat_map(|e| [&e.frame.start, &e.frame.end]) {
                if let FrameBound::Preceding(x) | FrameBound::Following(x) = bound {
                    constant(x, ctx)?;
                }
            }
        }
        _ => {}
    }
    mir.children().into_iter().try_for_each(|c| below(c, ctx))
}

/// The value of an expression, if constants alone make it. Errors: of a constant part that fails.
pub(crate) fn constant(s: &Scalar, ctx: &EvalCtx) -> Result<Option<Value>, SqlError> {
    Ok(match s {
        Scalar::Literal(v, _) => Some(v.clone()),
        Scalar::Column(_) | Scalar::Error(..) => None,
        Scalar::Call { func, args, ty } => {
            let values = args.iter().map(|a| constant(a, ctx)).collect::<Result<Vec<_>, _>>()?;
            if func.strict && values.iter().any(|v| matches!(v, Some(Value::Null))) {
                return Ok(Some(Value::Null));
            }
            let Some(values) = values.into_iter().collect::<Option<Vec<_>>>() else { return Ok(None) };
            // A condition that is decided may have columns in what did not decide it.
            let ty_of = |a: &Scalar| match a {
                Scalar::And(_) | Scalar::Or(_) | Scalar::Not(_) => SqlType::Bool.nullable(),
                other => other.typ(&[]).with_nullable(true),
            };
            let literals = values.into_iter().zip(args).map(|(v, a)| Scalar::Literal(v, ty_of(a))).collect::<Vec<_>>();
            if !call_is_immutable(func, &literals, &ty.ty, &[]) {
                return Ok(None);
            }
            match expr::eval_const(&Scalar::Call { func, args: literals, ty: ty.clone() }, ctx) {
                Ok(v) => Some(v),
                Err(e) if e.code == state::CHECK_VIOLATION || e.code == state::NOT_NULL_VIOLATION => None,
                Err(e) => return Err(e),
            }
        }
        Scalar::And(xs) => connective(xs, true, ctx)?,
        Scalar::Or(xs) => connective(xs, false, ctx)?,
        Scalar::Not(x) => match constant(x, ctx)? {
            Some(Value::Bool(b)) => Some(Value::Bool(!b)),
            other => other,
        },
        Scalar::IsNull(x) => constant(x, ctx)?.map(|v| Value::Bool(v.is_null())),
        Scalar::Case { branches, otherwise, .. } => {
            let mut open = false;
            for (condition, result) in branches {
                match constant(condition, ctx)? {
                    Some(Value::Bool(true)) => return Ok(constant(result, ctx)?.filter(|_| !open)),
                    Some(_) => {}
                    None => {
                        open = true;
                        constant(result, ctx)?;
                    }
                }
            }
            constant(otherwise, ctx)?.filter(|_| !open)
        }
        Scalar::Coalesce(xs, _) => {
            let mut open = false;
            for x in xs {
                match constant(x, ctx)? {
                    Some(Value::Null) => {}
                    Some(v) => return Ok(Some(v).filter(|_| !open)),
                    None => open = true,
                }
            }
            (!open).then_some(Value::Null)
        }
    })
}

/// AND (`unit` true) and OR (`unit` false).
fn connective(xs: &[Scalar], unit: bool, ctx: &EvalCtx) -> Result<Option<Value>, SqlError> {
    let (mut open, mut null) = (false, false);
    for x in xs {
        match constant(x, ctx)? {
            Some(Value::Bool(b)) if b != unit => return Ok(Some(Value::Bool(b))),
            Some(v) => null |= v.is_null(),
            None => open = true,
        }
    }
    Ok((!open).then_some(if null { Value::Null } else { Value::Bool(unit) }))
}
