//! Times inside a recursion: the outer time, and the rounds of the recursions around.
//!
//! ```text
//!   WITH RECURSIVE a AS (… WITH RECURSIVE b AS (… a … b …) … b …)        (t, [round of a, round of b within it])
//! ```
//!
//! Recursions that stand one in another share a scope of timely's: the inner one starts at its round 0 in every round of the outer, and
//! what leaves it forgets its rounds. So operators are compiled for one time inside recursions, whether one or [`DEPTH`] deep.

use super::collection::Updates;
use crate::arrange::WireTime;
use differential_dataflow::collection::containers::ResultsIn;
use differential_dataflow::lattice::Lattice;
use serde::{Deserialize, Serialize};
use timely::container::NoopBuilder;
use timely::dataflow::channels::pact::Pipeline;
use timely::dataflow::operators::generic::builder_rc::OperatorBuilder;
use timely::dataflow::operators::generic::OutputBuilder;
use timely::dataflow::operators::CapabilitySet;
use timely::order::{PartialOrder, Product};
use timely::progress::{Antichain, PathSummary, Timestamp};

/// Recursions that may stand one in another.
pub const DEPTH: usize = 2;

/// The time of an iteration.
pub type Round = Product<u64, Rounds>;

/// Rounds of the recursions around, outermost first; 0 for those that are not entered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Rounds(pub [u32; DEPTH]);

/// What a way through the dataflow does to rounds: forgets those of recursions that are `kept` deep and deeper, then adds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    kept: usize,
    more: [u32; DEPTH],
}

impl Default for Step {
    fn default() -> Self {
        Step { kept: DEPTH, more: [0; DEPTH] }
    }
}

impl Step {
    /// One more round of the recursion that is `level` deep (0: the outermost). Those in it are left before.
    pub fn next(level: usize) -> Step {
        let mut more = [0; DEPTH];
        more[level] = 1;
        Step { kept: DEPTH, more }
    }

    /// Out of the recursion that is `level` deep.
    pub fn leave(level: usize) -> Step {
        Step { kept: level, more: [0; DEPTH] }
    }
}

impl PartialOrder for Rounds {
    fn less_equal(&self, other: &Self) -> bool {
        self.0.iter().zip(&other.0).all(|(a, b)| a <= b)
    }
}

impl PartialOrder for Step {
    /// Whether `self` leads to no later rounds than `other`, from wherever: rounds that it keeps must be kept by the other too.
    fn less_equal(&self, other: &Self) -> bool {
        self.kept <= other.kept && self.more.iter().zip(&other.more).all(|(a, b)| a <= b)
    }
}

impl PathSummary<Rounds> for Step {
    fn results_in(&self, at: &Rounds) -> Option<Rounds> {
        let mut out = self.more;
        for (to, from) in out.iter_mut().zip(&at.0).take(self.kept) {
            *to = to.checked_add(*from)?;
        }
        Some(Rounds(out))
    }

    fn followed_by(&self, then: &Self) -> Option<Self> {
        let mut more = then.more;
        for (to, from) in more.iter_mut().zip(&self.more).take(then.kept) {
            *to = to.checked_add(*from)?;
        }
        Some(Step { kept: self.kept.min(then.kept), more })
    }
}

impl Timestamp for Rounds {
    type Summary = Step;
    fn minimum() -> Self {
        Rounds::default()
    }
}

impl Lattice for Rounds {
    fn join(&self, other: &Self) -> Self {
        Rounds(std::array::from_fn(|i| self.0[i].max(other.0[i])))
    }
    fn meet(&self, other: &Self) -> Self {
        Rounds(std::array::from_fn(|i| self.0[i].min(other.0[i])))
    }
}

impl WireTime for Rounds {
    fn write(&self, out: &mut Vec<u8>) {
        self.0.iter().for_each(|r| u64::from(*r).write(out));
    }
    fn read(bytes: &mut &[u8]) -> Self {
        Rounds(std::array::from_fn(|_| u64::read(bytes) as u32))
    }
}

/// What leaves the recursion that is `level` deep, within the scope of all.
pub fn leave<'s>(stream: Updates<'s, Round>, level: usize) -> Updates<'s, Round> {
    let step = Product::new(0, Step::leave(level));
    let mut builder = OperatorBuilder::new("LeaveRounds".to_owned(), stream.scope());
    let (output, left) = builder.new_output();
    let mut output = OutputBuilder::<_, NoopBuilder<_>>::from(output);
    let mut input = builder.new_input_connection(stream, Pipeline, [(0, Antichain::from_elem(step))]);
    builder.build(move |_| {
        move |_| {
            let mut output = output.activate();
            input.for_each(|cap, data| {
                let times = cap.stamp().iter().filter_map(|t| step.results_in(t));
                let caps: CapabilitySet<_> = times.map(|t| cap.delayed(&t, 0)).collect();
                output.session_with_builder(&caps).give_container(&mut std::mem::take(data).results_in(&step));
            });
        }
    });
    left
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> Vec<Step> {
        let mut out = vec![];
        for kept in 0..=DEPTH {
            for a in 0..3 {
                for b in 0..3 {
                    out.push(Step { kept, more: [a, b] });
                }
            }
        }
        out
    }

    fn rounds() -> Vec<Rounds> {
        (0..4).flat_map(|a| (0..4).map(move |b| Rounds([a, b]))).collect()
    }

    #[test]
    fn steps_compose_as_they_are_taken() {
        for s in all() {
            for t in all() {
                let both = s.followed_by(&t).unwrap();
                for r in rounds() {
                    assert_eq!(both.results_in(&r), s.results_in(&r).and_then(|x| t.results_in(&x)), "{s:?} {t:?} {r:?}");
                }
            }
        }
    }

    #[test]
    fn a_lesser_step_never_leads_further() {
        for s in all() {
            for t in all().into_iter().filter(|t| s.less_equal(t)) {
                assert!(rounds().iter().all(|r| s.results_in(r).unwrap().less_equal(&t.results_in(r).unwrap())), "{s:?} {t:?}");
            }
            for (a, b) in rounds().into_iter().flat_map(|a| rounds().into_iter().map(move |b| (a, b))).filter(|(a, b)| a.less_equal(b)) {
                assert!(s.results_in(&a).unwrap().less_equal(&s.results_in(&b).unwrap()), "{s:?} {a:?} {b:?}");
            }
        }
    }

    #[test]
    fn rounds_that_do_not_fit_are_no_rounds() {
        assert_eq!(Step::next(0).results_in(&Rounds([u32::MAX, 0])), None);
        assert_eq!(Step::next(1).results_in(&Rounds([u32::MAX, 7])), Some(Rounds([u32::MAX, 8])));
        assert_eq!(Step::leave(1).results_in(&Rounds([5, 7])), Some(Rounds([5, 0])));
    }
}
