//! SQL text to plans: parse, resolve, plan (HIR), lower (MIR).
//!
//! ```text
//!   text ─parse─► Statement ─plan─► Plan (HIR inside) ─lower─► MIR
//! ```
//!
//! Columns are (level, position), never names. Not here: the catalog's contents (a trait gives them), execution.

/// The syntax tree.
pub mod ast;
/// What name resolution asks of the catalog.
pub mod catalog;
/// Relational expressions with correlation: subqueries inside scalars, references to outer rows.
pub mod hir;
/// SQL text to statements.
pub mod parse;
/// Statements with names and types resolved.
pub mod plan;

/// HIR to MIR: decorrelation.
pub mod lower;

pub use catalog::{Relation, RelationKind, SqlCatalog};
pub use hir::{ColumnRef, Hir, HirScalar};
pub use lower::{has_subquery, lower};
pub use parse::{parse, ParsedStatement};
pub use plan::Plan;
