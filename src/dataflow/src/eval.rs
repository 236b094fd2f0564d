//! Evaluation of scalars over batches, with per-row errors gathered.
//!
//! Columns and literals are answered here without the evaluator: they are most of what keys and projections hold.

use crate::arrange::Upd;
use arrow_array::ArrayRef;
use expr::{EvalCtx, Scalar};
use repr::{column, Batch, ColType, Diff, SqlError};

/// Computed columns had room for this many rows of a piece.
pub struct Full(usize);

impl Full {
    /// The errors of a piece of `rows` rows, unless it is to be computed again in smaller ones.
    pub fn unless(rows: usize, failed: Vec<(u32, SqlError)>) -> Result<Vec<(u32, SqlError)>, Full> {
        let fit = if rows > 1 { failed.iter().filter(|e| column::is_too_large(&e.1)).map(|e| e.0).min() } else { None };
        fit.map_or(Ok(failed), |fit| Err(Full(fit as usize)))
    }
}

/// Computes over `upd` in pieces for which there is room. `work` may be called for a piece again, for fewer of its rows: where it gives
/// back [`Full`] it has left nothing behind.
pub fn in_pieces<T: Clone + PartialEq>(upd: Upd<T>, mut work: impl FnMut(&Upd<T>) -> Result<(), Full>) {
    for piece in upd.pieces() {
        let (mut from, mut rows) = (0, piece.len());
        while from < piece.len() {
            let some = if rows == piece.len() { piece.clone() } else { piece.slice(from, rows) };
            match work(&some) {
                Err(Full(fit)) => rows = fit.clamp(1, rows.saturating_sub(1).max(1)),
                Ok(()) => {
                    from += rows;
                    rows = (2 * rows).min(piece.len() - from);
                }
            }
        }
    }
}

/// Puts down the errors of a piece's rows, unless it is to be computed again in smaller ones.
pub fn note_errors<T: Clone + PartialEq>(upd: &Upd<T>, failed: Vec<(u32, SqlError)>, errs: &mut Vec<(SqlError, T, Diff)>) -> Result<(), Full> {
    let failed = Full::unless(upd.len(), failed)?;
    errs.extend(failed.into_iter().map(|(i, e)| (e, upd.times.get(i as usize).clone(), *upd.diffs.get(i as usize))));
    Ok(())
}

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
        Scalar::Literal(v, t) => {
            let (col, fit) = column::spread(&column::repeat(v, &t.ty, 1), batch.len);
            errors.extend((fit as u32..batch.len as u32).map(|i| (i, column::too_large())));
            col
        }
        _ => {
            let r = expr::eval(e, batch, types, ctx);
            errors.extend(r.errors);
            r.column
        }
    }
}
