//! A shard as a dataflow input: its content at `as_of`, then the ticks.
//!
//! The snapshot is read in bounded steps, and so are ticks that come as parts in files; later ticks wait in the queue meanwhile. The input's frontier follows the ticks and
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
    /// Changes that are read as they are needed.
    Parts(Timestamp, Snapshot),
    /// Complete below this time.
    Closed(Timestamp),
}

/// The worker's end of an input.
pub struct ShardInput {
    queue: Rc<RefCell<VecDeque<Event>>>,
    activator: Activator,
    as_of: Timestamp,
    /// The columns that the dataflow reads; `None`: all.
    pub wanted: Option<Vec<bool>>,
}

impl ShardInput {
    /// This worker's slice of the changes at `t`.
    pub fn push(&self, t: Timestamp, deltas: Deltas) {
        if t > self.as_of && !deltas.is_empty() {
            self.queue.borrow_mut().push_back(Event::Data(t, deltas));
        }
    }
    /// As [`ShardInput::push`], of changes that are too many to be held.
    pub fn push_parts(&self, t: Timestamp, parts: Snapshot) {
        if t > self.as_of {
            self.queue.borrow_mut().push_back(Event::Parts(t, parts));
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
    wanted: Option<Vec<bool>>,
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
    // `as_of` is a closed time of the shard.
    let queue = Rc::new(RefCell::new(VecDeque::from([Event::Closed(env.as_of + 1)])));
    let events = queue.clone();
    let env = env.clone();
    let as_of = env.as_of;
    builder.build(move |mut caps| {
        caps.iter_mut().for_each(|c| c.downgrade(&as_of));
        let mut err_cap = caps.pop();
        let mut cap = caps.pop();
        // What is being read, and its time.
        let mut reading = snapshot.map(|parts| (as_of, parts));
        again.activate();
        move |_| {
            if env.stopped.get() {
                (cap, err_cap, reading) = (None, None, None);
            }
            let (mut oks, mut errs) = (oks.activate(), errs.activate());
            let until = env.until.unwrap_or(Timestamp::MAX);
            let mut budget = Budget::new(STEP);
            while let (Some(c), Some(ec)) = (&mut cap, &mut err_cap) {
                if let Some((t, parts)) = &mut reading {
                    match parts.next() {
                        Some(Ok(deltas)) => {
                            budget.charge(deltas.len().max(1024));
                            let mut session = oks.session_with_builder(&*c);
                            Upd::of(deltas, t).for_each(|mut upd| session.give_container(&mut upd));
                            budget.spent |= throttle.by_container();
                        }
                        Some(Err(e)) => {
                            errs.session_with_builder(&*ec).give_containers(crate::errors::to_updates(vec![(e, *t, 1)]).iter_mut());
                            reading = None;
                        }
                        None => reading = None,
                    }
                    if reading.is_some() && throttle.holds() {
                        return;
                    }
                    if budget.spent && reading.is_some() {
                        again.activate();
                        return;
                    }
                    continue;
                }
                let Some(event) = events.borrow_mut().pop_front() else { return };
                let (Event::Data(t, _) | Event::Parts(t, _) | Event::Closed(t)) = &event;
                let t = *t;
                if t >= until {
                    (cap, err_cap) = (None, None);
                    break;
                }
                if t > *c.time() {
                    c.downgrade(&t);
                    ec.downgrade(&t);
                }
                match event {
                    Event::Data(_, deltas) => {
                        let mut session = oks.session_with_builder(&*c);
                        Upd::of(deltas, &t).for_each(|mut upd| session.give_container(&mut upd));
                    }
                    Event::Parts(_, parts) => reading = Some((t, parts)),
                    Event::Closed(_) => {}
                }
            }
            events.borrow_mut().clear();
        }
    });
    (ShardInput { queue, activator, as_of, wanted }, oks_stream, errs_stream)
}
