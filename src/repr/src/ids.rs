//! Identifiers, timestamps, diffs.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Milliseconds since 1970 on the one timeline. A plain integer, since the engine needs its own
/// traits on the time type and this crate knows no engine.
pub type Timestamp = u64;

/// The multiplicity that an update adds to a row.
pub type Diff = i64;

/// The id of a catalog object, and of the shard or arrangement that belongs to it. Never reused.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct GlobalId(pub u64);

impl fmt::Debug for GlobalId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "u{}", self.0)
    }
}

impl fmt::Display for GlobalId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "u{}", self.0)
    }
}
