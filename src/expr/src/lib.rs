//! Scalar expressions, the function library, aggregates, window functions, table functions.
//!
//! ```text
//!   pg_proc / pg_operator / pg_cast (data/)  ──►  registry: FuncDef by pg_proc OID  ──►  Scalar::Call
//!   Scalar + Batch + EvalCtx  ──eval──►  column + errors per row
//! ```
//!
//! Which function a name and argument types mean is Postgres's own data (`catalog`); what a function does is one
//! entry in `func/`, keyed by the pg_proc OID.
//!
//! Not here: name resolution and implicit casts (`sql`), relational operators (`plan`).

/// Aggregate functions.
pub mod agg;
/// Postgres's pg_type, pg_cast, pg_operator, pg_proc, pg_aggregate, as exported from PostgreSQL 15.
pub mod catalog;
/// What an evaluation may know beside its arguments.
pub mod ctx;
/// Tests of domains.
pub mod domain;
/// Evaluation over batches.
pub mod eval;
/// Function entries and their lifting over columns.
pub mod func;
/// `random()` after `setseed`.
mod random;
/// The expression tree.
pub mod scalar;
/// Set-returning functions.
pub mod table;
/// Window functions over one ordered partition.
pub mod window;

pub use agg::{Accum, AggDef, AggKind, Aggregate};
pub use ctx::{Backend, CatalogView, EvalCtx, ObjectName};
pub use eval::{call_values, eval, eval_const, eval_row, eval_whole, Evaluated};
pub use func::FuncDef;
pub use random::Random;
pub use repr::interrupt::{Interrupt, Why};
pub use scalar::{ColumnOrder, Scalar};
pub use table::{TableFunc, TableFuncDef};
pub use window::{Frame, FrameBound, FrameExclude, FrameUnits, WindowExpr, WindowFunc};
