//! Durable state: the tick log, shards as batch files, metadata; nothing acknowledged is lost.
//!
//! ```text
//!   append(tick) ──► tick log (one record, one fdatasync) ──fold──► shard batches (Arrow IPC) + metadata (sled) ──► log segments freed
//!   open: sled, then the log's tail, then unreferenced files removed
//! ```
//!
//! Not here: what the metadata means (`adapter`), who may read when.

/// All bytes go through this.
pub mod disk;
/// Named places at which a test may end the process.
pub mod kill;
/// The store that the committer owns.
pub mod store;

pub use disk::Disk;
pub use kill::kill_point;
pub use store::{Snapshot, StagedUnit, Store, StoreHandle, StoreOptions, StoreStats, Tick};
