//! Streams to the coordinator: one-off results and subscriptions.

use super::hub::Hub;
use crate::arrange::{Layout, Upd};
use crate::errors;
use crate::render::{arrange, error_layout, flatten, Collection, Env, Traced, Updates};
use repr::memory;
use repr::{ColType, Deltas, Diff, GlobalId, SqlError, Timestamp};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use timely::container::NoopBuilder;
use timely::dataflow::channels::pact::Pipeline;
use timely::dataflow::operators::generic::builder_rc::OperatorBuilder;
use timely::dataflow::operators::generic::OutputBuilder;
use timely::progress::frontier::MutableAntichain;

/// Equal rows of one time as one, each on one worker.
fn consolidated<'s>(stream: Updates<'s, Timestamp>, layout: Rc<Layout>, env: &Rc<Env>) -> Updates<'s, Timestamp> {
    let keep = vec![true; layout.key.len()];
    let (arranged, _) = arrange(stream, layout.clone(), keep, "Consolidate", env);
    flatten(&Traced::Local(arranged), layout, env)
}

type Frontiers<'a> = &'a [MutableAntichain<Timestamp>];

/// An operator that eats a collection: `logic` sees oks, errs and then the two frontiers.
fn sink<'s>(
    c: Collection<'s, Timestamp>,
    name: &str,
    mut oks: impl FnMut(Upd<Timestamp>) + 'static,
    mut errs: impl FnMut(Upd<Timestamp>) + 'static,
    mut then: impl FnMut(Frontiers<'_>) + 'static,
) {
    let mut builder = OperatorBuilder::new(name.to_owned(), c.oks.scope());
    let mut ok_input = builder.new_input(c.oks, Pipeline);
    let mut err_input = builder.new_input(c.errs, Pipeline);
    let (output, _) = builder.new_output();
    let _unused = OutputBuilder::<Timestamp, NoopBuilder<Upd<Timestamp>>>::from(output);
    builder.build(move |_| {
        move |frontiers| {
            ok_input.for_each(|_, data| oks(std::mem::take(data)));
            err_input.for_each(|_, data| errs(std::mem::take(data)));
            then(frontiers);
        }
    });
}

/// The least time that may still come on any input; `None`: nothing more.
fn upper(frontiers: Frontiers<'_>) -> Option<Timestamp> {
    frontiers.iter().filter_map(|f| f.frontier().first().copied()).min()
}

/// The collection's content at `as_of`, once, as it comes: the reader adds up what does not come summed. `done` is set when this worker's part
/// is over.
pub fn peek_once(c: Collection<'_, Timestamp>, id: GlobalId, hub: Arc<Hub>, env: &Rc<Env>, done: Rc<Cell<bool>>) {
    let c = Collection::new(c.oks, consolidated(c.errs, error_layout(), env));
    let error: Rc<RefCell<Option<SqlError>>> = Default::default();
    let (errs_worst, out) = (error.clone(), hub.clone());
    let note = |slot: &RefCell<Option<SqlError>>, e: SqlError| {
        let mut slot = slot.borrow_mut();
        if slot.as_ref().is_none_or(|old| e < *old) {
            *slot = Some(e);
        }
    };
    let (env, holder) = (env.clone(), env.stopped.holder().clone());
    sink(
        c,
        "PeekOnce",
        move |upd| {
            holder.hands_over(upd.batch.bytes());
            out.peek_rows(id, Deltas { rows: upd.batch, diffs: upd.diffs });
        },
        move |upd| {
            for i in 0..upd.len() {
                if *upd.diffs.get(i) > 0 {
                    note(&errs_worst, errors::from_row(&upd.batch.row(&errors::error_types(), i)));
                }
            }
        },
        move |frontiers| {
            if env.stopped.get() || done.get() {
                return;
            }
            if upper(frontiers).is_none_or(|t| t > env.as_of) {
                done.set(true);
                hub.peek_done(id, error.borrow_mut().take().map_or(Ok(()), Err));
            }
        },
    );
}

/// Changes of the collection, as its frontier passes them.
pub fn subscribe(c: Collection<'_, Timestamp>, types: &[ColType], id: GlobalId, with_snapshot: bool, hub: Arc<Hub>, env: &Rc<Env>, done: Rc<Cell<bool>>) {
    hub.open_subscribe(id, env.as_of, with_snapshot);
    let c = Collection::new(consolidated(c.oks, Rc::new(Layout::whole(types.to_vec())), env), consolidated(c.errs, error_layout(), env));
    let (ok_hub, err_hub, types) = (hub.clone(), hub.clone(), types.to_vec());
    let (env, as_of) = (env.clone(), env.as_of);
    let mut sent = Some(env.as_of);
    let worker = env.worker;
    sink(
        c,
        "Subscribe",
        move |upd| {
            // The rows are the reader's.
            memory::rest();
            let mut bad: BTreeMap<Timestamp, Diff> = BTreeMap::new();
            let updates = (0..upd.len())
                .map(|i| {
                    let (t, d) = (*upd.times.get(i), *upd.diffs.get(i));
                    if t == as_of && d < 0 {
                        *bad.entry(t).or_default() += 1;
                    }
                    (upd.batch.row(&types, i), t, d)
                })
                .collect();
            ok_hub.subscribe_updates(id, updates);
            if let Some(n) = bad.get(&as_of) {
                ok_hub.subscribe_errors(id, vec![(errors::negative_count("the result"), as_of, *n)]);
            }
        },
        move |upd| {
            let row = |i| (errors::from_row(&upd.batch.row(&errors::error_types(), i)), *upd.times.get(i), *upd.diffs.get(i));
            err_hub.subscribe_errors(id, (0..upd.len()).map(row).collect());
        },
        move |frontiers| {
            if env.stopped.get() || sent.is_none() {
                return;
            }
            let now = upper(frontiers);
            if now != sent {
                sent = now;
                hub.subscribe_upper(id, worker, now);
                done.set(now.is_none());
            }
        },
    );
}
