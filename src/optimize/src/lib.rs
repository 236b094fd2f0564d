//! MIR to MIR, MIR to LIR, EXPLAIN text.
//!
//! ```text
//!   MIR ──optimize──► MIR ──plan_dataflow──► LIR + imports + notices
//!                        └─plan_peek──────► constant | look-up | scan | dataflow at one time
//! ```
//!
//! Promise: an optimized plan has the same rows as the plan it was made from at every time, and no error that the other
//! has not. With `disable` only what is needed for a plan to run at all is done; tests compare the two.
//!
//! Not here: names and SQL (`sql`), how a node runs (`dataflow`).

/// Map, filter and project chains as one `Mfp`.
pub mod chain;
/// Plans as text.
pub mod explain;
/// Column sets on which no two rows agree.
pub mod keys;
/// Relations that only get more rows.
mod monotonic;
/// MIR to LIR: fused nodes, join order, reduce kinds, imports.
pub mod physical;

/// Which rows of a relation a plan depends on.
pub mod reads;
/// Conditions on the time.
pub mod temporal;
/// MIR to MIR.
mod transform;

pub use monotonic::only_grows;
pub use physical::{plan_dataflow, plan_peek, Dataflow, Peek};

use expr::EvalCtx;
use plan::Mir;
use repr::{GlobalId, SqlError};

/// What the optimizer may know.
pub struct OptimizeCtx<'a> {
    /// A query that is answered once: `now()` is a constant of `ctx`. Else the plan is maintained.
    pub one_off: bool,
    pub ctx: &'a EvalCtx,
    pub names: &'a dyn Fn(GlobalId) -> String,
    /// Whether a catalog relation never takes a row back.
    pub grows: &'a dyn Fn(GlobalId) -> bool,
    /// Only the mandatory steps.
    pub disable: bool,
}

/// Arrangements at hand: of a relation, the index's id and the key expressions over its columns.
pub type Indexes<'a> = &'a dyn Fn(GlobalId) -> Vec<(GlobalId, Vec<expr::Scalar>)>;

/// Improves a plan.
pub fn optimize(mut mir: Mir, ctx: &OptimizeCtx) -> Result<Mir, SqlError> {
    transform::inner_recursions(&mut mir);
    if ctx.disable {
        return Ok(mir);
    }
    transform::run(mir, ctx)
}
