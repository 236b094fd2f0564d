//! A shard as a dataflow input: its content at `as_of`, then the ticks.
//!
//! The snapshot is read in bounded steps; ticks wait in the queue meanwhile. The input's frontier follows the ticks and
//! ends at `until`.

use crate::arrange::{Budget, Upd};
use crate::flow::Throttle;
use crate::render::{Env, Updates, STEP};
use repr::{Deltas, SqlError, Timestamp};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use timely::container::NoopBuilder;
use timely::dataflow::operators::generic::builder_rc::OperatorBuilder;
use timely::dataflow::operators::generic::OutputBuilder;
use timely::dataflow::Scope;
use timely::scheduling::Activator;

/// A worker's slice of a shard's content.
pub type Snapshot = Box<dyn Iterator<Item = Result<Deltas, SqlError>> + Send>;

enum Event {
    Data(Timestamp, Deltas),
    /// Complete below this time.
    Closed(Timestamp),
}

/// The worker's end of an input.
pub struct ShardInput {
    queue: Rc<RefCell<VecDeque<Event>>>,
    activator: Activator,
    as_of: Timestamp,
}

impl ShardInput {
    /// This worker's slice of the changes at `t`.
    pub fn push(&self, t: Timestamp, deltas: Deltas) {
        if t > self.as_of && !deltas.is_empty() {
            self.queue.borrow_mut().push_back(Event::Data(t, deltas));
        }
    }
    /// Nothing more comes below `upper`.
    pub fn close(&self, upper: Timestamp) {
        let mut queue = self.queue.borrow_mut();
        match queue.back_mut() {
            Some(Event::Closed(t)) => *t = upper.max(*t),
            _ => queue.push_back(Event::Closed(upper)),
        }
        drop(queue);
        self.activator.activate();
    }
    pub fn wake(&self) {
        self.activator.activate();
    }
}

/// Renders the input; the updates, and what fails to be read.
pub fn render<'s>(
    scope: Scope<'s, Timestamp>,
    name: &str,
    snapshot: Option<Snapshot>,
    env: &Rc<Env>,
) -> (ShardInput, Updates<'s, Timestamp>, Updates<'s, Timestamp>) {
    let mut builder = OperatorBuilder::new(name.to_owned(), scope);
    let address = builder.operator_info().address;
    let activator = scope.activator_for(address.clone());
    let throttle = Throttle::new(env.gate.clone(), scope.worker(), &address);
    let again = scope.activator_for(address);
    let (oks, oks_stream) = builder.new_output();
    let (errs, errs_stream) = builder.new_output();
    let (mut oks, mut errs) = (OutputBuilder::<_, NoopBuilder<Upd<Timestamp>>>::from(oks), OutputBuilder::<_, NoopBuilder<Upd<Timestamp>>>::from(errs));
    let queue: Rc<RefCell<VecDeque<Event>>> = Default::default();
    let events = queue.clone();
    let env = env.clone();
    let as_of = env.as_of;
    builder.build(move |mut caps| {
        caps.iter_mut().for_each(|c| c.downgrade(&as_of));
        let mut err_cap = caps.pop();
        let mut cap = caps.pop();
        let mut snapshot = snapshot;
        again.activate();
        move |_| {
            if env.stopped.get() {
                (cap, err_cap, snapshot) = (None, None, None);
                events.borrow_mut().clear();
                return;
            }
            let (mut oks, mut errs) = (oks.activate(), errs.activate());
            let Some(c) = cap.as_mut() else {
                events.borrow_mut().clear();
                return;
            };
            let mut budget = Budget::new(STEP);
            while let Some(parts) = snapshot.as_mut() {
                match parts.next() {
                    Some(Ok(deltas)) => {
                        budget.charge(deltas.len().max(1024));
                        let mut session = oks.session_with_builder(&*c);
                        Upd::of(deltas, &as_of).for_each(|mut upd| session.give_container(&mut upd));
                        budget.spent |= throttle.by_container();
                    }
                    Some(Err(e)) => {
                        if let Some(ec) = &err_cap {
                            errs.session_with_builder(ec).give_containers(crate::errors::to_updates(vec![(e, as_of, 1)]).iter_mut());
                        }
                        snapshot = None;
                    }
                    None => snapshot = None,
                }
                if snapshot.is_some() && throttle.holds() {
                    return;
                }
                if budget.spent && snapshot.is_some() {
                    again.activate();
                    return;
                }
            }
            err_cap = None;
            let until = env.until.unwrap_or(Timestamp::MAX);
            let advance = |c: &mut timely::dataflow::operators::Capability<Timestamp>, t: Timestamp| {
                if t > *c.time() && t < until {
                    c.downgrade(&t);
                }
                t >= until
            };
            // `as_of` is a closed time of the shard.
            let mut ended = advance(c, as_of + 1);
            for event in events.borrow_mut().drain(..) {
                if ended {
                    break;
                }
                match event {
                    Event::Data(t, deltas) => {
                        ended = advance(c, t);
                        if !ended {
                            let mut session = oks.session_with_builder(&*c);
                            Upd::of(deltas, &t).for_each(|mut upd| session.give_container(&mut upd));
                        }
                    }
                    Event::Closed(t) => ended = advance(c, t),
                }
            }
            if ended {
                cap = None;
            }
        }
    });
    (ShardInput { queue, activator, as_of }, oks_stream, errs_stream)
}
