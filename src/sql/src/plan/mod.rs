//! Statements with every name and type resolved.
//!
//! ```text
//!   Statement + SqlCatalog ──describe──► parameter types, result columns
//!   Statement + SqlCatalog + parameter values ──plan──► Plan
//! ```
//!
//! A [`Plan`] is data: what is to be done, in ids and HIR. Not here: doing it, and everything that depends on a session's state
//! (open cursors, prepared statements, the transaction).

/// Sources as data.
pub mod source;
/// Plans as data.
mod types;

pub use types::*;
