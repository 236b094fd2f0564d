//! Who holds memory.
//!
//! ```text
//!   allocator ──noted(±bytes)──► this thread's count ──(each MiB, and when the thread turns to another)──► the holder that it works for
//! ```
//!
//! A thread works for one [`Holder`] at a time, or for nobody. What it allocates meanwhile counts as that holder's, what it frees no longer does: also
//! what another had allocated. So the sum over the threads that work for a holder is right as long as values stay among them, and drifts by what comes and
//! goes for good; whoever hands values on says so ([`Holder::hands_over`]). A holder can be told to let go ([`Watch::end`]); whoever works for it asks.
//!
//! Not here: the allocator that notes (`server`), and what is done about it (`adapter`, `coordinator/guard.rs`).

use parking_lot::Mutex;
use std::cell::Cell;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicIsize, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::task::{Context, Poll};

/// Holders at a time; those beyond are not told apart from nobody.
const HOLDERS_MAX: usize = 1 << 16;
/// A thread's count is added to the holder's once it is so large.
const FLUSH_BYTES: usize = 1 << 20;

/// Counts by holder. The first is nobody's.
static HELD: [AtomicIsize; HOLDERS_MAX] = [const { AtomicIsize::new(0) }; HOLDERS_MAX];
static SLOTS: Mutex<Slots> = Mutex::new(Slots { next: 1, given_back: Vec::new() });

struct Slots {
    next: usize,
    given_back: Vec<usize>,
}

// Without destructors, so that the allocator may use them at any time of a thread's life.
thread_local! {
    static COUNT: Cell<isize> = const { Cell::new(0) };
    static FOR: Cell<usize> = const { Cell::new(0) };
}

/// The allocator has given out so many bytes, or taken them back where negative. Allocates nothing.
#[inline]
pub fn noted(bytes: isize) {
    let sum = COUNT.get().wrapping_add(bytes);
    COUNT.set(sum);
    if sum.unsigned_abs() >= FLUSH_BYTES {
        flush();
    }
}

fn flush() {
    HELD[FOR.get()].fetch_add(COUNT.replace(0), Ordering::Relaxed);
}

#[inline]
fn turn_to(slot: usize) {
    if FOR.get() != slot {
        flush();
        FOR.set(slot);
    }
}

static COLLECT: OnceLock<fn()> = OnceLock::new();

/// How a thread gives back to the system what it has freed. Said once.
pub fn collect_by(collect: fn()) {
    let _ = COLLECT.set(collect);
}

/// Gives back to the system what this thread has freed, where it is known how.
pub fn give_back() {
    if let Some(collect) = COLLECT.get() {
        collect();
    }
}

/// From here on the thread works for nobody.
pub fn rest() {
    turn_to(0);
}

/// Something that holds memory, such as a dataflow on all its workers. Clones are the same holder; its count ends with the last.
#[derive(Clone, Debug)]
pub struct Holder(Arc<Slot>);

#[derive(Debug)]
struct Slot {
    index: usize,
    ended: AtomicBool,
}

impl Holder {
    /// From here on this thread works for it.
    #[inline]
    pub fn works(&self) {
        turn_to(self.0.index);
    }

    /// So many of its bytes are freed by others from now on.
    pub fn hands_over(&self, bytes: usize) {
        HELD[self.0.index].fetch_sub(bytes as isize, Ordering::Relaxed);
    }

    /// Bytes that it holds, to a mebibyte for each thread. Negative where it has freed more of others' than it holds.
    pub fn bytes(&self) -> isize {
        HELD[self.0.index].load(Ordering::Relaxed)
    }

    /// Whether it was told to let go of what it holds.
    #[inline]
    pub fn is_ended(&self) -> bool {
        self.0.ended.load(Ordering::Relaxed)
    }

    /// Looks at the holder without keeping it.
    pub fn watch(&self) -> Watch {
        Watch(Arc::downgrade(&self.0))
    }
}

impl Default for Holder {
    fn default() -> Holder {
        let mut slots = SLOTS.lock();
        let index = slots.given_back.pop().unwrap_or_else(|| {
            let next = slots.next;
            slots.next = (next + 1).min(HOLDERS_MAX);
            next % HOLDERS_MAX
        });
        if index != 0 {
            HELD[index].store(0, Ordering::Relaxed);
        }
        Holder(Arc::new(Slot { index, ended: AtomicBool::new(false) }))
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        if self.index != 0 {
            SLOTS.lock().given_back.push(self.index);
        }
    }
}

/// A future that works for a holder, whatever threads carry it out.
pub struct Working<'a, T> {
    holder: &'a Holder,
    work: Pin<Box<dyn Future<Output = T> + Send + 'a>>,
}

impl<'a, T> Working<'a, T> {
    pub fn new(holder: &'a Holder, work: impl Future<Output = T> + Send + 'a) -> Working<'a, T> {
        Working { holder, work: Box::pin(work) }
    }
}

impl<T> Future for Working<'_, T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        /// The thread rests also where the work panics.
        struct Rest;
        impl Drop for Rest {
            fn drop(&mut self) {
                rest();
            }
        }
        let _rest = Rest;
        self.holder.works();
        self.work.as_mut().poll(cx)
    }
}

/// A [`Holder`] seen from outside.
#[derive(Clone, Debug)]
pub struct Watch(Weak<Slot>);

impl Watch {
    /// As [`Holder::bytes`]; `None` once it has gone.
    pub fn bytes(&self) -> Option<isize> {
        self.0.upgrade().map(|slot| Holder(slot).bytes())
    }

    /// Tells those who work for it to let go.
    pub fn end(&self) {
        if let Some(slot) = self.0.upgrade() {
            slot.ended.store(true, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_counts_for_whom_it_works() {
        let (a, b) = (Holder::default(), Holder::default());
        a.works();
        noted(3 * FLUSH_BYTES as isize);
        assert_eq!(a.bytes(), 3 * FLUSH_BYTES as isize);
        noted(10);
        assert_eq!(a.bytes(), 3 * FLUSH_BYTES as isize, "small counts wait");
        b.works();
        noted(-7);
        assert_eq!(a.bytes(), 3 * FLUSH_BYTES as isize + 10);
        rest();
        noted(100);
        assert_eq!(b.bytes(), -7);
        a.hands_over(FLUSH_BYTES);
        assert_eq!(a.bytes(), 2 * FLUSH_BYTES as isize + 10);
    }

    #[test]
    fn a_future_counts_for_its_holder_on_any_thread() {
        let a = Holder::default();
        let mut polled = 0;
        let mut work = Working::new(&a, async move {
            std::future::poll_fn(|cx| {
                noted(FLUSH_BYTES as isize);
                polled += 1;
                cx.waker().wake_by_ref();
                if polled < 3 {
                    Poll::Pending
                } else {
                    Poll::Ready(())
                }
            })
            .await
        });
        let mut poll = || {
            let polled = Pin::new(&mut work).poll(&mut Context::from_waker(std::task::Waker::noop()));
            noted(FLUSH_BYTES as isize);
            polled.is_ready()
        };
        assert!(!poll() && !std::thread::scope(|s| s.spawn(&mut poll).join().unwrap()) && poll());
        assert_eq!(a.bytes(), 3 * FLUSH_BYTES as isize, "what the threads do beside it does not count");
    }

    #[test]
    fn threads_that_work_for_one_add_up_and_the_count_ends_with_it() {
        let a = Holder::default();
        let threads = (0..4).map(|_| {
            let a = a.clone();
            std::thread::spawn(move || {
                a.works();
                noted(1000);
                rest();
            })
        });
        threads.collect::<Vec<_>>().into_iter().for_each(|t| t.join().unwrap());
        let watch = a.watch();
        assert_eq!(watch.bytes(), Some(4000));
        assert!(!a.is_ended());
        watch.end();
        assert!(a.is_ended());
        drop(a);
        assert_eq!(watch.bytes(), None);
    }
}
