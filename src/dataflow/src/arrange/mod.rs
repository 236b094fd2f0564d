//! Arrangements: batches of row chunks, spines, and the drivers that build and read them.
//!
//! ```text
//!   Upd (Arrow columns, times, diffs) ──Layout──► Block (staged bytes) ──exchange by lane──► RowBatcher ──► RowB in a spine
//!   join, reduce, peek read spans of RowB and give Upd again
//! ```
//!
//! Everything that touches differential's young traits (`Chunk`, `SpineBatch`, `ReduceTactic`) is here.
//!
//! Not here: what is arranged and why (`render`).

mod batch;
mod batcher;
mod body;
mod chunk;
mod diff;
mod driver;
mod import;
mod join;
mod layout;
mod ordered;
mod reduce;
mod retire;
mod seek;
mod totals;
mod update;
mod wire;

pub use batch::{Agent, Arr, RowB, RowSpine, Spans};
pub use batcher::{sort_blocks, RowBatcher};
pub use body::{Body, Slab, NOTHING};
pub use chunk::{RowChunk, TARGET};
pub use diff::{Changed, Counted, DiffLogic, DiffTactic, GroupChanges, Place, Runs};
pub use driver::{arrange, ArrangeCtl, Saved};
pub use import::{import, AsOf};
pub use join::{join, Budget, JoinCfg, Matches, Unmatched};
pub use layout::{lane_of, route, Layout};
pub use ordered::{Ordered, OrderedLogic};
pub use reduce::{tactic, GroupLogic, Outputs};
pub use retire::reduce;
pub use seek::{find_key, gallop_key, At};
pub use totals::{reduce_totals, Changes};
pub use update::{exchange, Block, BlockDistributor, Upd};
pub use wire::WireTime;

use differential_dataflow::difference::Semigroup;
use differential_dataflow::lattice::Lattice;
use timely::progress::Timestamp;

/// What an arrangement keeps per update: `i64`, or accumulators.
pub trait Weight: Semigroup + Clone + PartialEq + 'static {}
impl<R: Semigroup + Clone + PartialEq + 'static> Weight for R {}

/// A time of an arrangement: `u64` at the top, a product inside recursion.
pub trait Time: Lattice + Timestamp {}
impl<T: Lattice + Timestamp> Time for T {}
