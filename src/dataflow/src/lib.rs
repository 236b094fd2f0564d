//! The engine: LIR rendered on timely and differential, arrangements of row chunks, workers and their protocol.
//!
//! Not here: SQL text, sessions, durability. The coordinator (`adapter`) orders everything; workers obey one totally
//! ordered stream of commands.

// Streams of spans of batches have long types; an alias for each would hide what flows.
#![allow(clippy::type_complexity)]

/// Arrangements of row chunks, and the drivers that build and read them.
pub mod arrange;
/// Errors as rows.
pub mod errors;
/// Evaluation of scalars over batches.
mod eval;
/// Flow control of one-off results.
pub mod flow;
/// Vectorised evaluation of map, filter and project.
pub mod mfp_eval;
/// Commands and responses between the coordinator and the workers.
pub mod protocol;
/// LIR to operators.
pub mod render;
/// Worker threads.
mod worker;

pub use protocol::{Cluster, Command, PeekRequest, Response, RowUpdate, SnapshotReader};
