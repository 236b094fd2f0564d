//! The metadata store: small keys and values, changed in transactions.
//!
//! It is always behind the tick log: a fold commits here and only then frees log segments.
//!
//! Not here: what the entries mean (`manifest`).

use std::io;
use std::path::{Path, PathBuf};

/// A change: key, and its new value or `None` to remove it.
pub type MetaChange = (Vec<u8>, Option<Vec<u8>>);

pub trait Meta: Send + Sync {
    /// All entries, in key order.
    fn load(&self) -> io::Result<Vec<(Vec<u8>, Vec<u8>)>>;
    /// All changes or none; durable when it returns. After an error either may be the case: the process must exit.
    fn commit(&self, changes: &[MetaChange]) -> io::Result<()>;
}

/// `sled` in a directory of its own.
pub struct SledMeta {
    db: sled::Db,
    path: PathBuf,
}

fn io_error(e: sled::Error) -> io::Error {
    match e {
        sled::Error::Io(e) => e,
        other => io::Error::other(other.to_string()),
    }
}

impl SledMeta {
    pub fn open(path: &Path) -> io::Result<SledMeta> {
        // A damaged database can make sled panic while it recovers; here that is an error like any other.
        let opened = std::panic::catch_unwind(|| sled::Config::new().path(path).flush_every_ms(None).cache_capacity(16 << 20).open());
        match opened {
            Ok(db) => Ok(SledMeta { db: db.map_err(io_error)?, path: path.to_owned() }),
            Err(_) => Err(io::Error::new(io::ErrorKind::InvalidData, "the metadata database is damaged")),
        }
    }
}

impl Meta for SledMeta {
    fn load(&self) -> io::Result<Vec<(Vec<u8>, Vec<u8>)>> {
        self.db.iter().map(|e| e.map(|(k, v)| (k.to_vec(), v.to_vec())).map_err(io_error)).collect()
    }

    fn commit(&self, changes: &[MetaChange]) -> io::Result<()> {
        let mut batch = sled::Batch::default();
        for (key, value) in changes {
            match value {
                Some(v) => batch.insert(key.as_slice(), v.as_slice()),
                None => batch.remove(key.as_slice()),
            }
        }
        self.db.apply_batch(batch).map_err(io_error)?;
        self.db.flush().map_err(io_error)?;
        // sled's flush writes with sync_file_range on Linux, which does not reach the platter.
        sync_tree(&self.path)
    }
}

fn sync_tree(dir: &Path) -> io::Result<()> {
    for entry in std::fs::read_dir(dir)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            sync_tree(&entry.path())?;
        } else {
            match std::fs::File::open(entry.path()) {
                Ok(file) => file.sync_all()?,
                // sled replaces its snapshot files by itself.
                Err(e) if e.kind() == io::ErrorKind::NotFound => {}
                Err(e) => return Err(e),
            }
        }
    }
    std::fs::File::open(dir)?.sync_all()
}
