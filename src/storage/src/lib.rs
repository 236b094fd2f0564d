//! Durable state: the tick log, shards as batch files, metadata; nothing acknowledged is lost.
//!
//! ```text
//!   append(tick) ──► tick log (one record, one fdatasync) ──fold──► shard batches (Arrow IPC) + metadata (sled) ──► log segments freed
//!   open: sled, then the log's tail, then unreferenced files removed
//! ```
//!
//! Not here: what the metadata means (`adapter`), who may read when.

/// Numbers, strings and deltas as bytes.
mod codec;
/// All bytes go through this.
pub mod disk;
/// The world's errors as SQL errors.
mod error;
/// Batch files.
mod file;
/// Log into shards; batches into fewer.
mod fold;
/// A shard's changes after a time.
mod history;
/// Row identity as bytes.
mod identity;
/// Named places at which a test may end the process.
pub mod kill;
/// The tick log's segments.
mod log;
/// Sorted runs, merged and consolidated.
mod merge;
/// Metadata: small keys and values in transactions.
pub mod meta;
/// Opening a data directory.
mod recover;
/// Room to free a full disk.
mod reserve;
/// What queries put aside.
mod scratch;
/// A shard's batches and tail; its manifest.
mod shard;
/// A disk in memory that crashes and fails on demand.
pub mod sim;
/// A shard's content at one time.
mod snapshot;
/// What is known in memory.
mod state;
/// Column statistics of a batch file.
mod stats;
/// The store that the committer owns.
pub mod store;
/// A tick as a log record.
mod tick;

pub use disk::{Disk, RealDisk};
pub use kill::kill_point;
pub use scratch::{Scratch, ScratchReader, ScratchWriter};
pub use snapshot::Snapshot;
pub use store::{ShardStats, StagedUnit, Store, StoreHandle, StoreOptions, StoreStats, Tick};
