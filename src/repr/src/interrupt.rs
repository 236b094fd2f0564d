//! Ends evaluation from another thread.
//!
//! An [`Interrupt`] is set once, by whoever no longer waits. Evaluation looks at it between calls and between rows; a function that may work long on one
//! value enters nothing and is handed nothing: whoever evaluates has entered the interrupt for the thread, and the function's loop asks [`stop`] now and
//! then (see [`Pace`]). What a function returns once it was told to stop does not matter, since the caller looks at the interrupt before it looks at the value.

use crate::error::state;
use crate::SqlError;
use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::Arc;

/// Why an evaluation is to end.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Why {
    Asked = 1,
    TimedOut = 2,
    /// The server has come to its memory limit.
    Memory = 3,
}

/// Set from outside when nobody waits for the results any more.
#[derive(Clone, Debug, Default)]
pub struct Interrupt(Arc<State>);

#[derive(Debug, Default)]
struct State {
    own: AtomicU8,
    /// Of the statement that this is one read of.
    whole: Option<Interrupt>,
}

impl Interrupt {
    /// One that ends with this one, and can be set without it.
    pub fn part(&self) -> Interrupt {
        Interrupt(Arc::new(State { own: AtomicU8::default(), whole: Some(self.clone()) }))
    }

    pub fn set(&self, why: Why) {
        // The first reason stays.
        let _ = self.0.own.compare_exchange(0, why as u8, Ordering::Relaxed, Ordering::Relaxed);
    }

    #[inline]
    fn state(&self) -> u8 {
        match (self.0.own.load(Ordering::Relaxed), &self.0.whole) {
            (0, Some(whole)) => whole.state(),
            (own, _) => own,
        }
    }

    #[inline]
    pub fn is_set(&self) -> bool {
        self.state() != 0
    }

    /// Errors: 57014 once it is set, 53200 for memory.
    #[inline]
    pub fn check(&self) -> Result<(), SqlError> {
        match self.state() {
            0 => Ok(()),
            n if n == Why::TimedOut as u8 => Err(SqlError::timed_out()),
            n if n == Why::Memory as u8 => Err(SqlError::new(state::OUT_OF_MEMORY, "out of memory")),
            _ => Err(SqlError::canceled()),
        }
    }

    /// Makes it the one that [`stop`] looks at in this thread, until the guard goes.
    pub fn enter(&self) -> Entered {
        CURRENT.with_borrow_mut(|current| {
            // Evaluation within evaluation.
            if current.as_ref().is_some_and(|c| Arc::ptr_eq(&c.0, &self.0)) {
                return Entered(None);
            }
            Entered(Some(current.replace(self.clone())))
        })
    }
}

thread_local! {
    static CURRENT: RefCell<Option<Interrupt>> = const { RefCell::new(None) };
}

/// While it lives, its interrupt is the thread's; then the one before it is again.
#[must_use]
pub struct Entered(Option<Option<Interrupt>>);

impl Drop for Entered {
    fn drop(&mut self) {
        if let Some(before) = self.0.take() {
            CURRENT.set(before);
        }
    }
}

/// Whether the evaluation that this thread is in is to end.
pub fn stop() -> bool {
    CURRENT.with_borrow(|c| c.as_ref().is_some_and(Interrupt::is_set))
}

/// Looks at the interrupt each million units of work: bytes, elements, comparisons.
#[derive(Default)]
pub struct Pace(Cell<usize>);

impl Pace {
    const UNITS: usize = 1 << 20;
    const STOPPED: usize = usize::MAX;

    /// Counts work. Whether to end here, with whatever value; once it says so, it goes on saying so.
    #[inline]
    pub fn stop(&self, work: usize) -> bool {
        let done = self.0.get().saturating_add(work);
        let stopped = done >= Pace::UNITS && (done == Pace::STOPPED || stop());
        self.0.set(if stopped { Pace::STOPPED } else { done % Pace::UNITS });
        stopped
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_innermost_entered_one_is_asked() {
        let (outer, inner) = (Interrupt::default(), Interrupt::default());
        assert!(!stop());
        let a = outer.enter();
        outer.set(Why::Asked);
        assert!(stop());
        {
            let _b = inner.enter();
            let _again = inner.enter();
            assert!(!stop());
            let part = inner.part();
            let _c = part.enter();
            inner.set(Why::TimedOut);
            assert!(stop());
            assert_eq!(part.check().unwrap_err().message, SqlError::timed_out().message);
        }
        assert!(stop(), "the outer one is back");
        drop(a);
        assert!(!stop());
    }

    #[test]
    fn work_is_counted() {
        let interrupt = Interrupt::default();
        let _in = interrupt.enter();
        let pace = Pace::default();
        assert!(!pace.stop(Pace::UNITS));
        interrupt.set(Why::Asked);
        assert!(!pace.stop(Pace::UNITS / 2), "it is asked again only after as much again");
        assert!(pace.stop(Pace::UNITS / 2));
        assert!(pace.stop(1), "and then the answer stays");
    }
}
