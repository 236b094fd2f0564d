//! Literal rows, present from the start.

use super::arranged::empty;
use super::collection::{Collection, Updates};
use super::{Env, RenderTime};
use crate::arrange::Upd;
use crate::errors;
use repr::{Batch, Col, ColType, Diff, SqlError, Value};
use std::rc::Rc;
use timely::container::NoopBuilder;
use timely::dataflow::operators::generic::{source, OutputBuilderSession};
use timely::dataflow::Scope;

pub fn render<'s, T: RenderTime>(scope: Scope<'s, T>, rows: &Result<Vec<(Vec<Value>, Diff)>, SqlError>, types: &[ColType], env: &Rc<Env>) -> Collection<'s, T> {
    let start = T::at(env.as_of);
    match rows {
        Ok(rows) => {
            let mut diffs = rows.iter().map(|r| r.1);
            let pieces = Batch::pieces_from_rows(types, rows.iter().map(|r| r.0.as_slice())).into_iter();
            let pieces =
                pieces.map(|batch| Upd { times: Col::same(start.clone(), batch.len), diffs: Col::from_vec(diffs.by_ref().take(batch.len).collect()), batch });
            Collection::new(once(scope, pieces.collect(), env), empty(scope))
        }
        Err(e) => Collection::new(empty(scope), once(scope, errors::to_updates(vec![(e.clone(), start, 1)]), env)),
    }
}

/// The updates, from the first worker.
fn once<'s, T: RenderTime>(scope: Scope<'s, T>, updates: Vec<Upd<T>>, env: &Rc<Env>) -> Updates<'s, T> {
    if updates.is_empty() {
        return empty(scope);
    }
    let first = env.worker == 0;
    let start = T::at(env.as_of);
    source::<_, NoopBuilder<Upd<T>>, _, _>(scope, "Constant", move |cap, info| {
        let activator = scope.activator_for(info.address);
        activator.activate();
        let mut pending = first.then(|| (cap.delayed(&start), updates));
        drop(cap);
        move |output: &mut OutputBuilderSession<'_, T, NoopBuilder<Upd<T>>>| {
            if let Some((cap, mut updates)) = pending.take() {
                output.session_with_builder(&cap).give_containers(updates.iter_mut());
            }
        }
    })
}
