//! Sources: connectors, decoding, envelopes. Produces staged changes with positions; sees neither engine nor catalog.
//!
//! ```text
//!   connector (kafka, postgres, file, generator) ─► decode (columns) ─► envelope (row, ±1) ─► Staged ─► committer
//! ```
//!
//! Not here: assigning times (the committer's tick does that), durability (`storage`), SQL (`sql`).

/// What a source is, and what it hands over.
pub mod spec;

pub use spec::*;
