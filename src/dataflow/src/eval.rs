//! Evaluation of scalars over batches, with per-row errors gathered.
//!
//! Columns and literals are answered here without the evaluator: they are most of what keys and projections hold.

use arrow_array::ArrayRef;
use expr::{EvalCtx, Scalar};
use repr::{Batch, ColType, SqlError};

/// Columns of `exprs` over `batch`, and the first error of each failed row, in row order.
pub fn eval_columns(exprs: &[Scalar], batch: &Batch, types: &[ColType], ctx: &EvalCtx) -> (Vec<ArrayRef>, Vec<(u32, SqlError)>) {
    let mut errors = Vec::new();
    let cols = exprs.iter().map(|e| eval_column(e, batch, types, ctx, &mut errors)).collect();
    // Stable: the first expression's error of a row stays first.
    errors.sort_by_key(|e: &(u32, SqlError)| e.0);
    errors.dedup_by_key(|e| e.0);
    (cols, errors)
}

/// One column; errors are appended.
pub fn eval_column(e: &Scalar, batch: &Batch, types: &[ColType], ctx: &EvalCtx, errors: &mut Vec<(u32, SqlError)>) -> ArrayRef {
    match e {
        Scalar::Column(i) => batch.cols[*i].clone(),
        Scalar::Literal(v, t) if repr::column::can_repeat(v, batch.len) => repr::column::repeat(v, &t.ty, batch.len),
        Scalar::Literal(_, t) => {
            errors.extend((0..batch.len as u32).map(|i| (i, repr::column::too_large())));
            repr::column::repeat(&repr::Value::Null, &t.ty, batch.len)
        }
        _ => {
            let r = expr::eval(e, batch, types, ctx);
            errors.extend(r.errors);
            r.column
        }
    }
}
