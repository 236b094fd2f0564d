//! Sessions, catalog, coordinator: what stands between a connection and the engine.
//!
//! Not here: the wire protocol (`server`), rendering (`dataflow`), files (`storage`).

/// What a connection holds: the seam to `server`.
pub mod client;

pub use client::*;
