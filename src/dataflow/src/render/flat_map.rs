//! Set-returning functions: each row with each row that the function returns for it.

use super::collection::{map_fallible, Collection};
use super::{Env, RenderTime};
use crate::arrange::Upd;
use crate::eval::eval_columns;
use expr::TableFunc;
use repr::{column, Batch, Col, ColType, ColumnBuilder, Value};
use std::rc::Rc;

/// Rows in an output container.
const OUT_ROWS: usize = 8192;

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
            let mut rows: Vec<Vec<Value>> = Vec::new();
            let result = (func.func.rows)(&values, &arg_types, &func.columns, &ctx, &mut |row| {
                rows.push(row);
                true
            });
            if let Err(e) = result {
                out.errs.push((e, upd.times.get(i).clone(), *upd.diffs.get(i)));
                continue;
            }
            for (n, mut row) in rows.into_iter().enumerate() {
                if func.with_ordinality {
                    row.push(Value::Int8(n as i64 + 1));
                }
                made.rows.push(i as u32);
                made.builders.iter_mut().zip(&row).for_each(|(b, v)| b.push(v));
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
    fn finish<T: Clone + PartialEq>(self, upd: &Upd<T>) -> Upd<T> {
        let (times, diffs): (Col<T>, _) = (upd.times.take(&self.rows), upd.diffs.take(&self.rows));
        let Batch { len, mut cols } = upd.batch.take(&self.rows.into());
        cols.extend(self.builders.into_iter().map(ColumnBuilder::finish));
        Upd { batch: Batch { len, cols }, times, diffs }
    }
}
