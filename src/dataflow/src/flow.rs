//! What all operators of a dataflow ask: whether to go on, for whom, and, for one-off results, whether the reader is behind.
//!
//! ```text
//!   generator ──► .. ──► hub ─(charge)─► Response::PeekRows { credit } ──► session, which drops the credit
//!       ▲                                                                      │
//!       └──────────── woken when half of the bound is free again ◄─────────────┘
//! ```
//!
//! Generators are what makes many rows of few: shards, arrangements that are read out, joins, set-returning functions, scans by
//! the reader threads. They look at the gate between steps of bounded work and otherwise go on to other work, so a result
//! holds about [`QUEUED_BYTES_MAX`] and what one step makes, however slow its reader is, and nobody else waits for it.

use parking_lot::Mutex;
use repr::memory::Holder;
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use timely::scheduling::SyncActivator;
use timely::worker::Worker;

/// Whether a dataflow is stopped, on one worker. Each operator asks as it begins.
#[derive(Default)]
pub struct Stopped {
    set: Cell<bool>,
    holder: Holder,
}

impl Stopped {
    /// Of a dataflow whose memory is `holder`'s.
    pub fn new(holder: Holder) -> Stopped {
        Stopped { set: Cell::new(false), holder }
    }

    /// Once it is, or its memory is wanted back, everything lets go of its data and capabilities. What the thread allocates after it has asked is the dataflow's.
    #[inline]
    pub fn get(&self) -> bool {
        self.holder.works();
        self.set.get() || self.holder.is_ended()
    }

    pub fn set(&self) {
        self.set.set(true);
    }

    pub fn holder(&self) -> &Holder {
        &self.holder
    }
}

/// Bytes of a result that may be on their way.
pub const QUEUED_BYTES_MAX: usize = 8 << 20;

type Wake = Box<dyn FnOnce() + Send>;

/// The gate of one result.
#[derive(Default)]
pub struct Gate {
    closed: AtomicBool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    queued: usize,
    /// Nobody reads any more: those who waited run on and see that.
    free: bool,
    waiting: Vec<Wake>,
}

impl Gate {
    /// Notes bytes that go out; they count until the credit is dropped.
    pub fn charge(self: &Arc<Self>, bytes: usize) -> Credit {
        let mut state = self.state.lock();
        state.queued += bytes;
        if state.queued >= QUEUED_BYTES_MAX && !state.free {
            self.closed.store(true, Ordering::Release);
        }
        Credit { gate: self.clone(), bytes }
    }

    pub fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// Calls `wake` once the gate is open, which may be now.
    pub fn when_open(&self, wake: impl FnOnce() + Send + 'static) {
        {
            let mut state = self.state.lock();
            if self.is_closed() {
                state.waiting.push(Box::new(wake));
                return;
            }
        }
        wake();
    }

    /// Opens the gate for good.
    pub fn free(&self) {
        let waiting = {
            let mut state = self.state.lock();
            state.free = true;
            self.closed.store(false, Ordering::Release);
            std::mem::take(&mut state.waiting)
        };
        waiting.into_iter().for_each(|wake| wake());
    }

    fn give_back(&self, bytes: usize) {
        let waiting = {
            let mut state = self.state.lock();
            state.queued -= bytes;
            if state.queued > QUEUED_BYTES_MAX / 2 {
                return;
            }
            self.closed.store(false, Ordering::Release);
            std::mem::take(&mut state.waiting)
        };
        waiting.into_iter().for_each(|wake| wake());
    }
}

/// Bytes of a result on their way.
pub struct Credit {
    gate: Arc<Gate>,
    bytes: usize,
}

impl Drop for Credit {
    fn drop(&mut self) {
        self.gate.give_back(self.bytes);
    }
}

impl std::fmt::Debug for Credit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Credit({} bytes)", self.bytes)
    }
}

/// An operator's view of the gate, if its dataflow has one.
pub struct Throttle(Option<(Arc<Gate>, Arc<Waiter>)>);

struct Waiter {
    activator: SyncActivator,
    waiting: AtomicBool,
}

impl Throttle {
    /// Of the operator at `address`.
    pub fn new(gate: Option<Arc<Gate>>, worker: &Worker, address: &[usize]) -> Throttle {
        Throttle(gate.map(|g| (g, Arc::new(Waiter { activator: worker.sync_activator_for(address.to_vec()), waiting: AtomicBool::new(false) }))))
    }

    /// Whether the operator must let others work after each container: what it makes in a step may grow on its way to the reader.
    pub fn by_container(&self) -> bool {
        self.0.is_some()
    }

    /// Whether the operator must make no rows now; it is activated when it may.
    pub fn holds(&self) -> bool {
        let Some((gate, waiter)) = self.0.as_ref().filter(|t| t.0.is_closed()) else { return false };
        if !waiter.waiting.swap(true, Ordering::AcqRel) {
            let waiter = waiter.clone();
            gate.when_open(move || {
                waiter.waiting.store(false, Ordering::Release);
                // A worker that is gone runs nothing any more.
                let _ = waiter.activator.activate();
            });
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;

    #[test]
    fn a_closed_gate_opens_when_half_is_read_and_wakes_each_waiter_once() {
        let (gate, woken) = (Arc::new(Gate::default()), Arc::new(AtomicUsize::new(0)));
        let wait = |gate: &Gate| {
            let woken = woken.clone();
            gate.when_open(move || {
                woken.fetch_add(1, Ordering::SeqCst);
            });
        };
        let part = QUEUED_BYTES_MAX / 4;
        let mut credits: Vec<Credit> = (0..3).map(|_| gate.charge(part)).collect();
        assert!(!gate.is_closed());
        wait(&gate);
        assert_eq!(woken.load(Ordering::SeqCst), 1);
        credits.push(gate.charge(part));
        assert!(gate.is_closed());
        wait(&gate);
        wait(&gate);
        drop(credits.pop());
        assert!(gate.is_closed());
        assert_eq!(woken.load(Ordering::SeqCst), 1);
        drop(credits.pop());
        assert!(!gate.is_closed());
        assert_eq!(woken.load(Ordering::SeqCst), 3);
    }

    #[test]
    fn a_freed_gate_lets_everything_pass() {
        let gate = Arc::new(Gate::default());
        let _credit = gate.charge(QUEUED_BYTES_MAX);
        assert!(gate.is_closed());
        gate.free();
        let _more = gate.charge(QUEUED_BYTES_MAX);
        assert!(!gate.is_closed());
    }
}
