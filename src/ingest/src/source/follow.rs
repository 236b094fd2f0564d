//! The files of a FILE source: finding them, recognising them again, reading them on.
//!
//! A file is its inode, not its path, so `mv app.log app.log.1` goes on where it was and the new `app.log` is a new
//! file. Since inodes are used again, and a file may be emptied and filled beyond where it was read while nobody looks, the first bytes and those
//! before the place that was reached are part of a file's identity ([`Mark::head`], [`Mark::tail`]).
//!
//! ```text
//!   at ──────────────┐ (start of the first record not handed out)
//!   file  |  read    | buf: whole records … | partial record |   not read yet   |
//! ```

use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Bytes of a file's beginning that tell it from another file with its inode.
const HEAD_BYTES: usize = 256;
/// Bytes read at once.
pub const CHUNK_BYTES: usize = 1 << 20;
/// Bytes before a place that tell whether it is still the place that was reached.
const TAIL_BYTES: usize = 64;
/// A longer record is listed as an error.
pub const RECORD_BYTES_MAX: usize = 64 << 20;

/// How far a file has been read, durably.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mark {
    pub path: String,
    pub inode: u64,
    /// Next byte.
    pub offset: u64,
    /// Length and hash of the file's first bytes.
    pub head: (u64, u64),
    /// Length and hash of the bytes before `offset`; none in older positions.
    #[serde(default)]
    pub tail: (u64, u64),
    /// `offset` lies in a record that was too long: it goes on to the next newline.
    #[serde(default)]
    pub skip: bool,
    /// Nothing of the file is a record: it is compressed, or its header is another one.
    #[serde(default)]
    pub ignored: bool,
}

/// A file that is being read.
pub struct Followed {
    pub path: String,
    pub inode: u64,
    file: File,
    /// Offset of `buf[0]`.
    pub at: u64,
    pub buf: Vec<u8>,
    head: Vec<u8>,
    /// The last bytes before `at`.
    tail: Vec<u8>,
    /// See [`Mark::skip`].
    pub skip: bool,
    /// See [`Mark::ignored`].
    pub ignored: bool,
    /// The CSV header, once it was read.
    pub header: Option<Vec<String>>,
    /// When its path was first found to be another file or none.
    pub gone_since: Option<Instant>,
}

impl Followed {
    /// Opens a file at its beginning.
    pub fn open(path: &Path) -> io::Result<Followed> {
        let file = File::open(path)?;
        let inode = file.metadata()?.ino();
        let path = path.to_string_lossy().into_owned();
        Ok(Followed {
            path,
            inode,
            file,
            at: 0,
            buf: Vec::new(),
            head: Vec::new(),
            tail: Vec::new(),
            skip: false,
            ignored: false,
            header: None,
            gone_since: None,
        })
    }

    /// Goes on at `mark` if this is the marked file.
    pub fn resume(&mut self, mark: &Mark) -> io::Result<bool> {
        let mut head = vec![0; usize::try_from(mark.head.0).unwrap_or(0).min(HEAD_BYTES)];
        let mut tail = vec![0; usize::try_from(mark.tail.0.min(mark.offset)).unwrap_or(0).min(TAIL_BYTES)];
        let before = mark.offset - tail.len() as u64;
        let same = self.file.metadata()?.len() >= mark.offset
            && self.file.read_exact_at(&mut head, 0).is_ok()
            && hash(&head) == mark.head.1
            && self.file.read_exact_at(&mut tail, before).is_ok()
            && (tail.is_empty() || hash(&tail) == mark.tail.1);
        if same {
            (self.at, self.skip, self.ignored) = (mark.offset, mark.skip, mark.ignored);
            (self.head, self.tail) = (head, tail);
        }
        Ok(same)
    }

    pub fn mark(&self) -> Mark {
        let known = |bytes: &[u8]| (bytes.len() as u64, hash(bytes));
        Mark {
            path: self.path.clone(),
            inode: self.inode,
            offset: self.at,
            head: known(&self.head),
            tail: known(&self.tail),
            skip: self.skip,
            ignored: self.ignored,
        }
    }

    /// Reads on, at most `CHUNK_BYTES`. Returns the number of bytes read; 0 at the end of the file.
    /// A file that became shorter than what was read, or that grew behind other bytes, was truncated: it begins again, which `Err(())` inside says.
    pub fn read(&mut self) -> io::Result<Result<usize, ()>> {
        let have = self.buf.len();
        let offset = self.reached();
        let len = self.size()?;
        if len < offset || (len > offset && !self.is_same_before(offset)?) {
            (self.at, self.skip, self.ignored) = (0, false, false);
            self.buf.clear();
            self.head.clear();
            self.tail.clear();
            self.header = None;
            return Ok(Err(()));
        }
        // Looking at a file that did not grow costs no buffer.
        let more = usize::try_from(len - offset).unwrap_or(CHUNK_BYTES).min(CHUNK_BYTES);
        self.buf.resize(have + more, 0);
        let n = loop {
            match self.file.read_at(&mut self.buf[have..], offset) {
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                r => break r,
            }
        };
        self.buf.truncate(have + *n.as_ref().unwrap_or(&0));
        Ok(Ok(n?))
    }

    /// Bytes that the file has now.
    pub fn size(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    /// How far it was read, whole records or not.
    pub fn reached(&self) -> u64 {
        self.at + self.buf.len() as u64
    }

    fn is_same_before(&self, offset: u64) -> io::Result<bool> {
        let mut known: Vec<u8> = self.tail.clone();
        known.extend_from_slice(&self.buf[self.buf.len().saturating_sub(TAIL_BYTES)..]);
        let known = &known[known.len().saturating_sub(TAIL_BYTES)..];
        let mut now = [0; TAIL_BYTES];
        let now = &mut now[..known.len()];
        match self.file.read_exact_at(now, offset - known.len() as u64) {
            Ok(()) => Ok(now == known),
            // Cut off at this moment.
            Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
            Err(e) => Err(e),
        }
    }

    /// Reads the first `n` bytes again, for a header.
    pub fn beginning(&self, n: usize) -> io::Result<Vec<u8>> {
        let mut out = vec![0; n];
        let mut have = 0;
        while have < n {
            match self.file.read_at(&mut out[have..], have as u64)? {
                0 => break,
                k => have += k,
            }
        }
        out.truncate(have);
        Ok(out)
    }

    /// The first `n` bytes of the buffer were handed out.
    pub fn consume(&mut self, n: usize) {
        if self.head.len() < HEAD_BYTES && self.at == self.head.len() as u64 {
            let more = n.min(HEAD_BYTES - self.head.len());
            self.head.extend_from_slice(&self.buf[..more]);
        }
        self.tail.extend_from_slice(&self.buf[n.saturating_sub(TAIL_BYTES)..n]);
        self.tail.drain(..self.tail.len().saturating_sub(TAIL_BYTES));
        self.buf.drain(..n);
        self.at += n as u64;
    }
}

fn hash(bytes: &[u8]) -> u64 {
    // FNV-1a: stable across versions, since it is part of positions.
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |h, b| (h ^ u64::from(*b)).wrapping_mul(0x0000_0100_0000_01b3))
}

/// Files that match a path or glob, in the order of their names; directories are left out.
/// Errors: the pattern is not one.
pub fn find(pattern: &str) -> Result<Vec<PathBuf>, String> {
    let exact = Path::new(pattern);
    if exact.is_file() {
        return Ok(vec![exact.to_path_buf()]);
    }
    let options = glob::MatchOptions { require_literal_leading_dot: true, ..Default::default() };
    let paths = glob::glob_with(pattern, options).map_err(|e| format!("invalid file pattern \"{pattern}\": {e}"))?;
    let mut out: Vec<PathBuf> = paths.filter_map(Result::ok).filter(|p| p.is_file()).collect();
    out.sort();
    Ok(out)
}

/// Where the file with this inode is now, if it is still in the directory of `path`: a file that was rotated away
/// while nobody followed it.
pub fn find_inode(path: &str, inode: u64) -> Option<PathBuf> {
    let dir = Path::new(path).parent()?;
    let dir = if dir.as_os_str().is_empty() { Path::new(".") } else { dir };
    std::fs::read_dir(dir).ok()?.filter_map(Result::ok).map(|e| e.path()).find(|p| inode_of(p) == Some(inode))
}

pub fn inode_of(path: &Path) -> Option<u64> {
    std::fs::metadata(path).ok().filter(|m| m.is_file()).map(|m| m.ino())
}
