//! Set-returning functions: each row with each row that the function returns for it.

use super::collection::{map_fallible, Collection};
use super::{Env, RenderTime};
use crate::arrange::Upd;
use crate::eval::eval_columns;
use expr::TableFunc;
use repr::error::state;
use repr::{column, Batch, Col, ColType, ColumnBuilder, SqlError, Value};
use std::rc::Rc;

/// Rows in an output container.
const OUT_ROWS: usize = 8192;
/// Rows that one call may return: it is one step of the worker, and its rows are held in memory.
const CALL_ROWS_MAX: usize = 20_000_000;

fn too_many(name: &str) -> SqlError {
    SqlError::new(state::PROGRAM_LIMIT_EXCEEDED, format!("{name} would return more than {CALL_ROWS_MAX} rows")).with_hint("narrow its arguments")
}

pub fn render<'s, T: RenderTime>(input: Collection<'s, T>, types: Vec<ColType>, func: TableFunc, env: &Rc<Env>) -> Collection<'s, T> {
    let ctx = env.ctx.clone();
    let arg_types: Vec<ColType> = func.args.iter().map(|a| a.typ(&types)).collect();
    let mut out_types = func.columns.clone();
    if func.with_ordinality {
        out_types.push(repr::SqlType::Int8.not_null());
    }
    let (oks, errs) = map_fallible(input.oks, "FlatMap", move |upd: Upd<T>, out| {
        let (args, failed) = eval_columns(&func.args, &upd.batch, &types, &ctx);
        let mut bad = failed.iter().map(|e| e.0).peekable();
        let mut made = Made { rows: Vec::new(), builders: builders(&out_types) };
        for i in 0..upd.len() {
            if bad.next_if_eq(&(i as u32)).is_some() {
                continue;
            }
            let values: Vec<Value> = args.iter().zip(&arg_types).map(|(c, t)| column::get(c, &t.ty, i)).collect();
            if func.func.strict && values.iter().any(Value::is_null) {
                continue;
            }
            // The rows of a call that fails half way are taken back: an error is all that it gives.
            // Many rows become columns as they come.
            let (mut full, mut rows, mut count): (Vec<Upd<T>>, Vec<Vec<Value>>, usize) = (Vec::new(), Vec::new(), 0);
            let result = (func.func.rows)(&values, &arg_types, &func.columns, &ctx, &mut |mut row| {
                count += 1;
                if count > CALL_ROWS_MAX {
                    return false;
                }
                if func.with_ordinality {
                    row.push(Value::Int8(count as i64));
                }
                rows.push(row);
                if rows.len() >= OUT_ROWS {
                    let mut chunk = Made { rows: Vec::new(), builders: builders(&out_types) };
                    rows.drain(..).for_each(|r| chunk.push(i, &r));
                    full.push(chunk.finish(&upd));
                }
                true
            });
            let result = if count > CALL_ROWS_MAX { Err(too_many(func.func.name)) } else { result };
            if let Err(e) = result {
                out.errs.push((e, upd.times.get(i).clone(), *upd.diffs.get(i)));
                continue;
            }
            out.oks.append(&mut full);
            for row in rows {
                made.push(i, &row);
                if made.rows.len() >= OUT_ROWS {
                    let full = std::mem::replace(&mut made, Made { rows: Vec::new(), builders: builders(&out_types) });
                    out.oks.push(full.finish(&upd));
                }
            }
        }
        if !made.rows.is_empty() {
            out.oks.push(made.finish(&upd));
        }
        out.errs.extend(failed.into_iter().map(|(i, e)| (e, upd.times.get(i as usize).clone(), *upd.diffs.get(i as usize))));
    });
    Collection::new(oks, input.errs).with_errs(errs)
}

fn builders(types: &[ColType]) -> Vec<ColumnBuilder> {
    types.iter().map(|t| ColumnBuilder::new(&t.ty, 0)).collect()
}

/// Output rows in the making: the input row of each, and the new columns.
struct Made {
    rows: Vec<u32>,
    builders: Vec<ColumnBuilder>,
}

impl Made {
    fn push(&mut self, input_row: usize, row: &[Value]) {
        self.rows.push(input_row as u32);
        self.builders.iter_mut().zip(row).for_each(|(b, v)| b.push(v));
    }

    fn finish<T: Clone + PartialEq>(self, upd: &Upd<T>) -> Upd<T> {
        let (times, diffs): (Col<T>, _) = (upd.times.take(&self.rows), upd.diffs.take(&self.rows));
        let Batch { len, mut cols } = upd.batch.take(&self.rows.into());
        cols.extend(self.builders.into_iter().map(ColumnBuilder::finish));
        Upd { batch: Batch { len, cols }, times, diffs }
    }
}
