//! Vectorised evaluation of an [`Mfp`]: shared by the operator, joins and peeks.

use crate::eval::eval_column;
use arrow_array::cast::AsArray;
use arrow_array::{new_null_array, Array, ArrayRef};
use expr::{EvalCtx, Scalar};
use plan::Mfp;
use repr::{Batch, ColType, SqlError};
use std::sync::Arc;

/// An Mfp ready to be applied.
pub struct MfpEval {
    mfp: Mfp,
    /// Of the inputs and maps.
    types: Vec<ColType>,
    /// For `n` existing columns, which of them are still to be read.
    needed: Vec<Vec<bool>>,
    ctx: Arc<EvalCtx>,
}

/// What an application left.
pub struct Applied {
    /// Positions, in the input, of the rows that passed; `None`: all of them.
    pub rows: Option<Vec<u32>>,
    /// The passed rows with inputs and maps as columns; columns that nobody reads any more may be NULL.
    pub full: Batch,
    /// By position in the input.
    pub errors: Vec<(u32, SqlError)>,
}

impl MfpEval {
    pub fn new(mfp: Mfp, input: &[ColType], ctx: Arc<EvalCtx>) -> MfpEval {
        debug_assert_eq!(mfp.input_arity, input.len(), "mfp over a relation of another arity");
        let mut types = input.to_vec();
        for m in &mfp.maps {
            let t = m.typ(&types);
            types.push(t);
        }
        let arity = mfp.input_arity;
        let needed = (arity..=types.len())
            .map(|n| {
                let mut need = vec![false; n];
                let mut mark = |s: &Scalar| s.support().into_iter().filter(|c| *c < n).for_each(|c| need[c] = true);
                mfp.maps[n - arity..].iter().for_each(&mut mark);
                mfp.predicates.iter().filter(|p| p.0 > n).for_each(|p| mark(&p.1));
                mfp.lower.iter().chain(&mfp.upper).for_each(&mut mark);
                mfp.project.iter().filter(|c| **c < n).for_each(|c| need[*c] = true);
                need
            })
            .collect();
        MfpEval { mfp, types, needed, ctx }
    }

    pub fn mfp(&self) -> &Mfp {
        &self.mfp
    }
    pub fn is_identity(&self) -> bool {
        self.mfp.is_identity()
    }
    /// Whether the input column is read at all.
    pub fn reads(&self, col: usize) -> bool {
        self.needed[0][col] || self.mfp.predicates.iter().any(|p| p.1.support().contains(&col))
    }

    /// Evaluates maps and predicates (not the temporal bounds).
    pub fn apply(&self, batch: Batch) -> Applied {
        let mut rows: Option<Vec<u32>> = None;
        let mut errors = Vec::new();
        let Batch { mut len, mut cols } = batch;
        for n in self.mfp.input_arity..=self.types.len() {
            for (_, p) in self.mfp.predicates.iter().filter(|p| p.0 == n) {
                let mut failed = Vec::new();
                let current = Batch { len, cols };
                let verdict = eval_column(p, &current, &self.types[..n], &self.ctx, &mut failed);
                cols = current.cols;
                let verdict = verdict.as_boolean();
                let keep: Vec<u32> = if verdict.null_count() == 0 && verdict.true_count() == len {
                    continue;
                } else {
                    (0..len).filter(|i| verdict.is_valid(*i) && verdict.value(*i)).map(|i| i as u32).collect()
                };
                note(&mut errors, failed, &rows);
                // Predicates of the same n that are still to come may read any column.
                let more = self.mfp.predicates.iter().filter(|q| q.0 == n).count() > 1;
                self.filter(&mut rows, &mut len, &mut cols, &keep, (!more).then_some(n));
            }
            if let Some(m) = self.mfp.maps.get(n - self.mfp.input_arity) {
                let mut failed = Vec::new();
                let current = Batch { len, cols };
                let col = eval_column(m, &current, &self.types[..n], &self.ctx, &mut failed);
                cols = current.cols;
                cols.push(col);
                if !failed.is_empty() {
                    let mut bad = failed.iter().map(|e| e.0).peekable();
                    let keep: Vec<u32> = (0..len as u32).filter(|i| bad.next_if_eq(i).is_none()).collect();
                    note(&mut errors, failed, &rows);
                    self.filter(&mut rows, &mut len, &mut cols, &keep, None);
                }
            }
        }
        Applied { rows, full: Batch { len, cols }, errors }
    }

    fn filter(&self, rows: &mut Option<Vec<u32>>, len: &mut usize, cols: &mut [ArrayRef], keep: &[u32], existing: Option<usize>) {
        let indices = arrow_array::UInt32Array::from(keep.to_vec());
        for (i, c) in cols.iter_mut().enumerate() {
            let needed = existing.is_none_or(|n| self.needed[n - self.mfp.input_arity][i]);
            *c = if needed {
                arrow_select::take::take(c, &indices, None).expect("indices lie inside the batch")
            } else {
                new_null_array(c.data_type(), keep.len())
            };
        }
        *rows = Some(match rows.take() {
            None => keep.to_vec(),
            Some(r) => keep.iter().map(|i| r[*i as usize]).collect(),
        });
        *len = keep.len();
    }

    /// The output columns of applied rows.
    pub fn project(&self, full: &Batch) -> Batch {
        Batch { len: full.len, cols: self.mfp.project.iter().map(|c| full.cols[*c].clone()).collect() }
    }

    /// For each applied row the times at which it is present: `[from, to)`; `None`: never. `to` `None`: for ever.
    /// Bounds are rounded up to even times: ticks have these only, so no reader of a closed time can tell, and between two ticks nothing changes.
    pub fn bounds(&self, full: &Batch, errors: &mut Vec<(u32, SqlError)>) -> Vec<Option<(i64, Option<i64>)>> {
        let mut out = vec![Some((i64::MIN, None::<i64>)); full.len];
        for (exprs, is_lower) in [(&self.mfp.lower, true), (&self.mfp.upper, false)] {
            for e in exprs {
                let col = eval_column(e, full, &self.types, &self.ctx, errors);
                let col = col.as_primitive::<arrow_array::types::Int64Type>();
                for (i, slot) in out.iter_mut().enumerate() {
                    if col.is_null(i) {
                        *slot = None;
                    }
                    let Some((from, to)) = slot else { continue };
                    if is_lower {
                        *from = (*from).max(col.value(i));
                    } else {
                        *to = Some(to.map_or(col.value(i), |t| t.min(col.value(i))));
                    }
                }
            }
        }
        let even = |t: i64| t.saturating_add(t & 1);
        out.iter_mut().for_each(|s| {
            *s = s.map(|(from, to)| (even(from), to.map(even)));
            if s.is_some_and(|(from, to)| to.is_some_and(|t| t <= from)) {
                *s = None;
            }
        });
        out
    }
}

/// Errors by position among the rows that are left, put down by position in the input.
fn note(errors: &mut Vec<(u32, SqlError)>, failed: Vec<(u32, SqlError)>, rows: &Option<Vec<u32>>) {
    errors.extend(failed.into_iter().map(|(i, e)| (rows.as_ref().map_or(i, |r| r[i as usize]), e)));
}
