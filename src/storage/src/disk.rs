//! All bytes go through this: real, simulated (`sim`), faulty.
//!
//! What is asked of a disk: bytes appended before a `sync` that returned are there after a power cut; names created, renamed or
//! removed before a `sync_dir` that returned are as they were left; a rename is whole or did not happen. Nothing is asked about
//! what was not synced: any part of it may be there, torn or not.
//!
//! Not here: what the bytes mean. The metadata store's own files are behind [`Meta`], which a disk opens.

use crate::meta::{Meta, SledMeta};
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

/// An open file that only grows, except by `truncate`.
pub trait DiskFile: Send + Sync {
    /// Appends all of `bytes`. On error any prefix of them may have been written.
    fn append(&self, bytes: &[u8]) -> io::Result<()>;
    /// Exactly `len` bytes at `offset`; `UnexpectedEof` if the file is shorter.
    fn read_at(&self, offset: u64, len: usize) -> io::Result<Vec<u8>>;
    /// Makes contents and length durable.
    fn sync(&self) -> io::Result<()>;
    fn truncate(&self, len: u64) -> io::Result<()>;
    fn len(&self) -> io::Result<u64>;
    fn is_empty(&self) -> io::Result<bool> {
        Ok(self.len()? == 0)
    }
}

/// What came of asking for a lock.
pub enum Lock {
    /// Held until this is dropped.
    Held(Box<dyn Send + Sync>),
    /// Another process holds it; the text it left in the lock file.
    Busy(String),
}

pub trait Disk: Send + Sync {
    /// Creates the directory and its parents.
    fn create_dir(&self, path: &Path) -> io::Result<()>;
    /// A new empty file; an old one of that name is emptied.
    fn create(&self, path: &Path) -> io::Result<Box<dyn DiskFile>>;
    fn open(&self, path: &Path) -> io::Result<Box<dyn DiskFile>>;
    fn sync_dir(&self, path: &Path) -> io::Result<()>;
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    fn remove(&self, path: &Path) -> io::Result<()>;
    /// Names in a directory, sorted.
    fn list(&self, path: &Path) -> io::Result<Vec<String>>;
    fn exists(&self, path: &Path) -> io::Result<bool>;
    /// Takes the lock file `path` for this process and writes `text` into it.
    fn lock(&self, path: &Path, text: &str) -> io::Result<Lock>;
    /// Bytes that may still be written where `path` lies.
    fn free_bytes(&self, path: &Path) -> io::Result<u64>;
    /// Makes a file that takes `bytes` of the disk and holds nothing of meaning, or makes it so large.
    fn set_aside(&self, path: &Path, bytes: u64) -> io::Result<()>;
    /// The metadata store in directory `path`.
    fn open_meta(self: Arc<Self>, path: &Path) -> io::Result<Box<dyn Meta>>;

    /// The whole file.
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        let file = self.open(path)?;
        let len = usize::try_from(file.len()?).map_err(|_| io::Error::from(io::ErrorKind::FileTooLarge))?;
        file.read_at(0, len)
    }
    /// Writes the whole file under another name, syncs it and renames it: after a crash `path` is as before or complete.
    fn write(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let temp = path.with_extension("tmp");
        let file = self.create(&temp)?;
        file.append(bytes)?;
        file.sync()?;
        self.rename(&temp, path)?;
        path.parent().map_or(Ok(()), |dir| self.sync_dir(dir))
    }
}

/// The operating system's files.
#[derive(Default)]
pub struct RealDisk;

struct RealFile(File);

impl DiskFile for RealFile {
    fn append(&self, bytes: &[u8]) -> io::Result<()> {
        (&self.0).write_all(bytes)
    }
    fn read_at(&self, offset: u64, len: usize) -> io::Result<Vec<u8>> {
        let mut out = vec![0; len];
        self.0.read_exact_at(&mut out, offset)?;
        Ok(out)
    }
    fn sync(&self) -> io::Result<()> {
        self.0.sync_data()
    }
    fn truncate(&self, len: u64) -> io::Result<()> {
        self.0.set_len(len)
    }
    fn len(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }
}

impl Disk for RealDisk {
    fn create_dir(&self, path: &Path) -> io::Result<()> {
        std::fs::create_dir_all(path)
    }
    fn create(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        let file = OpenOptions::new().create(true).append(true).read(true).open(path)?;
        file.set_len(0)?;
        Ok(Box::new(RealFile(file)))
    }
    fn open(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        Ok(Box::new(RealFile(OpenOptions::new().append(true).read(true).open(path)?)))
    }
    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        File::open(path)?.sync_all()
    }
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        std::fs::rename(from, to)
    }
    fn remove(&self, path: &Path) -> io::Result<()> {
        std::fs::remove_file(path)
    }
    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in std::fs::read_dir(path)? {
            names.push(entry?.file_name().to_string_lossy().into_owned());
        }
        names.sort();
        Ok(names)
    }
    fn exists(&self, path: &Path) -> io::Result<bool> {
        path.try_exists()
    }
    fn lock(&self, path: &Path, text: &str) -> io::Result<Lock> {
        let mut file = OpenOptions::new().create(true).truncate(false).read(true).write(true).open(path)?;
        match file.try_lock() {
            Ok(()) => {
                file.set_len(0)?;
                file.rewind()?;
                file.write_all(text.as_bytes())?;
                Ok(Lock::Held(Box::new(file)))
            }
            Err(TryLockError::WouldBlock) => {
                let mut holder = String::new();
                file.read_to_string(&mut holder)?;
                Ok(Lock::Busy(holder))
            }
            Err(TryLockError::Error(e)) => Err(e),
        }
    }
    fn free_bytes(&self, path: &Path) -> io::Result<u64> {
        let at = rustix::fs::statvfs(path.parent().unwrap_or(path))?;
        Ok(at.f_bavail.saturating_mul(at.f_frsize))
    }
    fn set_aside(&self, path: &Path, bytes: u64) -> io::Result<()> {
        let file = OpenOptions::new().create(true).truncate(false).write(true).open(path)?;
        Ok(rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), 0, bytes)?)
    }
    fn open_meta(self: Arc<Self>, path: &Path) -> io::Result<Box<dyn Meta>> {
        Ok(Box::new(SledMeta::open(path)?))
    }
}
