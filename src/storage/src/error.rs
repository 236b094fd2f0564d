//! The world's errors as SQL errors: which file, which shard, where.

use arrow_schema::ArrowError;
use repr::error::state;
use repr::{GlobalId, SqlError, SqlState};
use std::io;
use std::path::Path;

pub(crate) const DISK_FULL: SqlState = SqlState::new("53100");
const IO_ERROR: SqlState = SqlState::new("58030");
const LOCK_FILE_EXISTS: SqlState = SqlState::new("F0001");

/// `what`: "could not write", "could not sync", ...
pub(crate) fn io_error(what: &str, path: &Path, e: &io::Error) -> SqlError {
    let code = match e.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => DISK_FULL,
        _ => IO_ERROR,
    };
    SqlError::new(code, format!("{what} file \"{}\": {e}", path.display()))
}

/// Errors of the Arrow reader and writer; those that come from below keep their kind.
pub(crate) fn arrow_error(what: &str, path: &Path, e: ArrowError) -> SqlError {
    match e {
        ArrowError::IoError(_, e) => io_error(what, path, &e),
        e => SqlError::new(state::DATA_CORRUPTED, format!("{what} file \"{}\": {e}", path.display())),
    }
}

pub(crate) fn damaged(path: &Path, offset: u64, shard: Option<GlobalId>, why: &str) -> SqlError {
    let of = shard.map(|s| format!(" of shard {s}")).unwrap_or_default();
    SqlError::new(state::DATA_CORRUPTED, format!("file \"{}\"{of} is damaged at offset {offset}: {why}", path.display()))
        .with_hint("restore the data directory from a backup; nothing was changed")
}

pub(crate) fn missing(path: &Path, shard: GlobalId, e: &io::Error) -> SqlError {
    SqlError::new(IO_ERROR, format!("could not open file \"{}\" of shard {shard}: {e}", path.display()))
        .with_hint("restore the data directory from a backup; nothing was changed")
}

pub(crate) fn in_use(dir: &Path, holder: &str) -> SqlError {
    SqlError::new(LOCK_FILE_EXISTS, format!("another riverdelta process (pid {}) is using data directory \"{}\"", holder.trim(), dir.display()))
}
