//! Sources: connectors, decoding, envelopes. Produces staged changes with positions; sees neither engine nor catalog.
//!
//! ```text
//!   connector (kafka, postgres, file, generator) ─► decode (columns) ─► envelope (row, ±1) ─► Staged ─► committer
//! ```
//!
//! Not here: assigning times (the committer's tick does that), durability (`storage`), SQL (`sql`).

/// Bytes of records into columns.
pub mod decode;
/// What a message means as a change.
pub mod envelope;
/// A record as a connector hands it over.
pub mod record;
/// Connectors.
pub mod source;
/// What a source is, and what it hands over.
pub mod spec;

pub use source::generator::{only_appends as generator_only_appends, tables as generator_tables};
pub use source::postgres::tls::Certificates;
pub use spec::*;
