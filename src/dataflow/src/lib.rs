//! The engine: LIR rendered on timely and differential, arrangements of row chunks, workers and their protocol.
//!
//! Not here: SQL text, sessions, durability. The coordinator (`adapter`) orders everything; workers obey one totally
//! ordered stream of commands.

/// Commands and responses between the coordinator and the workers.
pub mod protocol;

pub use protocol::{Cluster, Command, PeekRequest, Response, RowUpdate, SnapshotReader};
