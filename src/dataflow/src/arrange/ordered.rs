//! A reduce for totally ordered time that reads a group's vals in order and stops when it has enough.
//!
//! ```text
//!   runs of the group      v1 v4 v7 ...        merged by val, summed over time; zero sums are passed over
//!                          v2 v4 ...
//!   fresh (times <= t)     v3                  start: the least output so far or the least fresh val, found by search
//! ```
//!
//! Where the least output is the group's least live val (a minimum, a top-k without offset), everything below it is dead
//! and is skipped by search: a change costs O(k + log n), also when a queue's head is taken again and again.
//!
//! Output vals are input vals, so that the search knows where to start.

use super::diff::{Changed, DiffLogic, GroupChanges, Runs};
use super::reduce::Outputs;
use super::Time;
use differential_dataflow::consolidation::consolidate;
use repr::Diff;
use timely::order::TotalOrder;

/// What is computed from a group's vals in order.
pub trait OrderedLogic: 'static {
    /// Whether the least output val is always the least live val.
    fn starts_least(&self) -> bool;
    /// `vals`: with non-zero counts, in byte order. Output vals are input vals, or errors.
    fn run(&mut self, key: &[u8], vals: &mut dyn Iterator<Item = (&[u8], Diff)>, out: &mut Outputs);
    /// Whether an output val stands for an error: then nothing is known about the group's least val.
    fn is_error(&self, val: &[u8]) -> bool;
}

/// [`OrderedLogic`] as changes of a group.
pub struct Ordered<L>(pub L);

impl<T: Time + TotalOrder, L: OrderedLogic> DiffLogic<T> for Ordered<L> {
    fn run(&mut self, group: &Changed<'_, T>, changes: &mut GroupChanges<T>) {
        let updates = group.updates();
        let least = updates.iter().map(|u| u.1).min();
        let mut times: Vec<T> = updates.into_iter().map(|u| u.0).collect();
        times.dedup();
        let runs = Runs::new(&group.fresh, &group.source);
        let mut current: Vec<(Vec<u8>, Diff)> = vec![];
        for (b, at) in &group.output {
            at.each(b, |_, u, x| current.push((x.val(u).to_vec(), *x.diffs.get(u))));
        }
        consolidate(&mut current);
        let mut made = Outputs::default();
        for t in times {
            let known = self.0.starts_least() && !current.iter().any(|c| self.0.is_error(&c.0));
            let start = current.first().map(|c| c.0.as_slice()).into_iter().chain(least).min();
            let mut place = match start.filter(|_| known) {
                Some(start) => runs.seek(start),
                None => runs.start(),
            };
            made.clear();
            let live = std::iter::from_fn(|| loop {
                let found = runs.next(&mut place, &t)?;
                if found.at != 0 {
                    return Some((found.val, found.at));
                }
            });
            self.0.run(group.key, &mut { live }, &mut made);
            let mut next: Vec<(Vec<u8>, Diff)> = made.rows().map(|(v, d)| (v.to_vec(), d)).collect();
            consolidate(&mut next);
            changes.extend(next.iter().map(|(v, d)| ((v.clone(), t.clone()), *d)));
            changes.extend(std::mem::replace(&mut current, next).into_iter().map(|(v, d)| ((v, t.clone()), -d)));
        }
    }
}
