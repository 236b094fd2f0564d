//! MIR and LIR as data: what `sql` makes, `optimize` changes, `dataflow` renders.
//!
//! ```text
//!   sql: HIR (subqueries inside scalars) ──lower──► MIR ──optimize──► MIR ──► LIR ──render──► operators
//! ```
//!
//! Not here: any logic beyond types and walking.

/// Equality of key bytes.
pub mod equality;
/// Physical plans: one node, one operator.
pub mod lir;
/// Fused map, filter and project, with temporal bounds.
pub mod mfp;
/// Logical relations, decorrelated.
pub mod mir;

pub use lir::{DataflowDesc, Export, Import, Lir, LirKind, PeekPlan};
pub use mfp::Mfp;
pub use mir::{Equivalence, Id, LocalId, Mir};

use expr::ColumnOrder;

/// What is done once with a query's complete result: order, limit, offset, and which columns are sent.
#[derive(Clone, Debug, PartialEq)]
pub struct Finishing {
    pub order_by: Vec<ColumnOrder>,
    pub limit: Option<u64>,
    pub offset: u64,
    pub project: Vec<usize>,
}
