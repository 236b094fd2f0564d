//! Set-returning functions: each row with each row that the function returns for it.
//!
//! A call is one step; its rows wait here as columns and go out a container at a time, within the step's time and while the
//! reader of a one-off result keeps up. A series is made in parts, each from the last value of the part before: a reader that wants
//! its first rows alone need not wait for the others.

use super::arranged::STEP;
use super::collection::Collection;
use super::{Env, RenderTime};
use crate::arrange::{Budget, Upd};
use crate::errors::to_updates;
use crate::eval::{eval_columns, in_pieces, Full};
use crate::flow::Throttle;
use arrow_array::ArrayRef;
use expr::{EvalCtx, TableFunc};
use repr::batch::{BatchBuilder, PIECE_BYTES};
use repr::error::state;
use repr::{column, Batch, Col, ColType, SqlError, Value};
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;
use timely::container::NoopBuilder;
use timely::dataflow::channels::pact::Pipeline;
use timely::dataflow::operators::generic::builder_rc::OperatorBuilder;
use timely::dataflow::operators::generic::OutputBuilder;
use timely::dataflow::operators::CapabilitySet;
use timely::progress::operate::FrontierInterest;

/// Rows in an output container; wide rows are bounded by [`PIECE_BYTES`].
const OUT_ROWS: usize = 8192;
/// Rows that one call may return: it is one step of the worker, and its rows are held in memory.
const CALL_ROWS_MAX: usize = 20_000_000;

fn too_many(name: &str) -> SqlError {
    SqlError::new(state::PROGRAM_LIMIT_EXCEEDED, format!("{name} would return more than {CALL_ROWS_MAX} rows")).with_hint("narrow its arguments")
}

/// An input container, and how far it is.
struct Work<T: RenderTime> {
    caps: (CapabilitySet<T>, CapabilitySet<T>),
    upd: Upd<T>,
    args: Vec<ArrayRef>,
    /// Rows whose arguments failed, in order.
    failed: VecDeque<(u32, SqlError)>,
    next: usize,
    made: Made,
    /// A series that goes on: its arguments from the last value on, and how many rows there were.
    rest: Option<(Vec<Value>, usize)>,
}

pub fn render<'s, T: RenderTime>(input: Collection<'s, T>, types: Vec<ColType>, func: TableFunc, env: &Rc<Env>) -> Collection<'s, T> {
    let scope = input.oks.scope();
    let mut builder = OperatorBuilder::new("FlatMap".to_owned(), scope);
    let address = builder.operator_info().address;
    let throttle = Throttle::new(env.gate.clone(), scope.worker(), &address);
    let activator = scope.activator_for(address);
    let mut rows_in = builder.new_input(input.oks, Pipeline);
    builder.set_notify_for(0, FrontierInterest::Never);
    let (oks, oks_stream) = builder.new_output();
    let (errs, errs_stream) = builder.new_output();
    let (mut oks, mut errs) = (OutputBuilder::<T, NoopBuilder<Upd<T>>>::from(oks), OutputBuilder::<T, NoopBuilder<Upd<T>>>::from(errs));
    let env = env.clone();
    builder.build(move |_| {
        let calls = Calls::new(func, types, env.ctx.clone());
        let mut queue: VecDeque<Work<T>> = VecDeque::new();
        // Containers of the first in the queue that are to be sent before it goes on.
        let mut ready: VecDeque<Upd<T>> = VecDeque::new();
        move |_| {
            rows_in.for_each(|cap, data| {
                let caps = (cap.retain_stamp(0), cap.retain_stamp(1));
                in_pieces(std::mem::take(data), |upd| {
                    queue.push_back(calls.begin(caps.clone(), upd)?);
                    Ok(())
                });
            });
            if env.stopped.get() {
                queue.clear();
                ready.clear();
                return;
            }
            let (mut oks, mut errs) = (oks.activate(), errs.activate());
            let mut budget = Budget::new(STEP);
            while let Some(work) = queue.front_mut() {
                if throttle.holds() {
                    return;
                }
                if budget.spent {
                    activator.activate();
                    return;
                }
                if let Some(mut upd) = ready.pop_front() {
                    budget.charge(upd.len().max(1024));
                    oks.session_with_builder(&work.caps.0).give_container(&mut upd);
                    budget.spent |= throttle.by_container();
                } else if work.next < work.upd.len() {
                    budget.charge(1);
                    let i = work.next;
                    let called = calls.call(work, i, &mut ready);
                    work.next += usize::from(work.rest.is_none());
                    if let Err(e) = called {
                        let failed = vec![(e, work.upd.times.get(i).clone(), *work.upd.diffs.get(i))];
                        errs.session_with_builder(&work.caps.1).give_containers(to_updates(failed).iter_mut());
                    }
                } else {
                    let last = std::mem::replace(&mut work.made, calls.nothing());
                    if !last.rows.is_empty() {
                        oks.session_with_builder(&work.caps.0).give_container(&mut last.finish(&work.upd));
                    }
                    queue.pop_front();
                }
            }
        }
    });
    Collection::new(oks_stream, input.errs).with_errs(errs_stream)
}

/// The function with what its calls need.
struct Calls {
    func: TableFunc,
    types: Vec<ColType>,
    arg_types: Vec<ColType>,
    out_types: Vec<ColType>,
    ctx: Arc<EvalCtx>,
}

impl Calls {
    fn new(func: TableFunc, types: Vec<ColType>, ctx: Arc<EvalCtx>) -> Calls {
        let arg_types: Vec<ColType> = func.args.iter().map(|a| a.typ(&types)).collect();
        let mut out_types = func.columns.clone();
        if func.with_ordinality {
            out_types.push(repr::SqlType::Int8.not_null());
        }
        Calls { func, types, arg_types, out_types, ctx }
    }

    fn nothing(&self) -> Made {
        Made { rows: Vec::new(), inputs: 0, columns: BatchBuilder::new(&self.out_types) }
    }

    fn begin<T: RenderTime>(&self, caps: (CapabilitySet<T>, CapabilitySet<T>), upd: &Upd<T>) -> Result<Work<T>, Full> {
        let (args, failed) = eval_columns(&self.func.args, &upd.batch, &self.types, &self.ctx);
        let failed = Full::unless(upd.len(), failed)?;
        Ok(Work { caps, upd: upd.clone(), args, failed: failed.into(), next: 0, made: self.nothing(), rest: None })
    }

    /// Calls the function for row `i`. Full containers go to `ready`, the rest stays in `work.made`. The rows of a call, or of the part of
    /// a series, that fails half way are taken back.
    fn call<T: RenderTime>(&self, work: &mut Work<T>, i: usize, ready: &mut VecDeque<Upd<T>>) -> Result<(), SqlError> {
        if work.failed.front().is_some_and(|f| f.0 as usize == i) {
            return work.failed.pop_front().map_or(Ok(()), |f| Err(f.1));
        }
        let (func, rest) = (&self.func, work.rest.take());
        self.ctx.interrupt.check()?;
        let _entered = self.ctx.interrupt.enter();
        let before = rest.as_ref().map_or(0, |r| r.1);
        let mut values: Vec<Value> = match rest {
            Some((values, _)) => values,
            None => work.args.iter().zip(&self.arg_types).map(|(c, t)| column::get(c, &t.ty, i)).collect(),
        };
        if func.func.strict && values.iter().any(Value::is_null) {
            return Ok(());
        }
        let in_parts = func.func.name.starts_with("generate_series");
        // A part begins with the last value of the one before.
        let mut repeated = before > 0;
        // Many rows become columns as they come.
        let (mut full, mut rows, mut count): (Vec<Upd<T>>, Vec<Vec<Value>>, usize) = (Vec::new(), Vec::new(), before);
        let mut last = None;
        let upd = &work.upd;
        let (own, mut bytes) = (upd.batch.row_bytes(i), 0);
        let result = (func.func.rows)(&values, &self.arg_types, &func.columns, &self.ctx, &mut |mut row| {
            if std::mem::take(&mut repeated) {
                return true;
            }
            count += 1;
            if count > CALL_ROWS_MAX || self.ctx.interrupt.is_set() {
                return false;
            }
            if in_parts && count - before == OUT_ROWS {
                last = row.first().cloned();
            }
            if func.with_ordinality {
                row.push(Value::Int8(count as i64));
            }
            bytes += own + row.iter().map(Value::text_bytes).sum::<usize>();
            rows.push(row);
            if rows.len() >= OUT_ROWS || bytes >= PIECE_BYTES {
                bytes = 0;
                let mut chunk = self.nothing();
                for row in rows.drain(..) {
                    chunk.push(i, &row, own);
                    if chunk.is_full() {
                        full.push(std::mem::replace(&mut chunk, self.nothing()).finish(upd));
                    }
                }
                full.push(chunk.finish(upd));
            }
            last.is_none()
        });
        if count > CALL_ROWS_MAX {
            return Err(too_many(func.func.name));
        }
        self.ctx.interrupt.check()?;
        result?;
        ready.extend(full);
        if let (Some(last), Some(from)) = (last, values.first_mut()) {
            *from = last;
            work.rest = Some((values, count));
        }
        for row in rows {
            work.made.push(i, &row, own);
            if work.made.is_full() {
                let made = std::mem::replace(&mut work.made, self.nothing());
                ready.push_back(made.finish(&work.upd));
            }
        }
        Ok(())
    }
}

/// Output rows in the making: the input row of each, and the new columns.
struct Made {
    rows: Vec<u32>,
    /// Bytes of the input rows.
    inputs: usize,
    columns: BatchBuilder,
}

impl Made {
    /// `own`: the bytes of the input row.
    fn push(&mut self, input_row: usize, row: &[Value], own: usize) {
        self.inputs += own;
        self.rows.push(input_row as u32);
        assert!(self.columns.push(row), "a value alone is below 1 GB");
    }

    fn is_full(&self) -> bool {
        self.rows.len() >= OUT_ROWS || self.inputs + self.columns.bytes() >= PIECE_BYTES
    }

    fn finish<T: Clone + PartialEq>(self, upd: &Upd<T>) -> Upd<T> {
        let (times, diffs): (Col<T>, _) = (upd.times.take(&self.rows), upd.diffs.take(&self.rows));
        let Batch { len, mut cols } = upd.batch.take(&self.rows.into());
        cols.extend(self.columns.finish().cols);
        Upd { batch: Batch { len, cols }, times, diffs }
    }
}
