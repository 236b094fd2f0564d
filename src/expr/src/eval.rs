//! Evaluation over batches.

use crate::ctx::EvalCtx;
use crate::scalar::Scalar;
use arrow_array::ArrayRef;
use repr::{Batch, ColType, SqlError, Value};

/// A column of results; rows that failed are NULL in it and listed, by position, once each, in order.
pub struct Evaluated {
    pub column: ArrayRef,
    pub errors: Vec<(u32, SqlError)>,
}

/// Evaluates `expr` on every row of `batch`, whose columns have `types`.
pub fn eval(expr: &Scalar, batch: &Batch, types: &[ColType], ctx: &EvalCtx) -> Evaluated {
    let _ = (expr, batch, types, ctx);
    unimplemented!("expr::eval")
}

/// Evaluates an expression that reads no column.
pub fn eval_const(expr: &Scalar, ctx: &EvalCtx) -> Result<Value, SqlError> {
    let _ = (expr, ctx);
    unimplemented!("expr::eval_const")
}
