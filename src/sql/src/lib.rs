//! SQL text to plans: parse, resolve, plan (HIR), lower (MIR).
//!
//! ```text
//!   text ─parse─► Statement ─plan─► Plan (HIR inside) ─lower─► MIR
//! ```
//!
//! Columns are (level, position), never names. Not here: the catalog's contents (a trait gives them), execution.

/// Relational expressions with correlation: subqueries inside scalars, references to outer rows.
pub mod hir;

/// HIR to MIR: decorrelation.
pub mod lower;

pub use hir::{ColumnRef, Hir, HirScalar};
pub use lower::lower;
