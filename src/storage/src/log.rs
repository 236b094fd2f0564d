//! The tick log: segment files of checksummed records, one record and one sync a tick.
//!
//! ```text
//!   segment   "RDELTLOG" | version u32 | number u64 | first sequence u64 | salt u64 | crc u32 of all before
//!   record    "RDTK" | length u32 | sequence u64 | crc u32 of salt, length, sequence, payload | payload
//! ```
//!
//! Sequence numbers have no gaps. The salt is the segment's own, so that no payload can look like a record. A record that is cut
//! or fails its checksum is the torn tail of the last append if it is in the last segment and no record follows it; it is then cut
//! off. Anywhere else it is damage.
//!
//! Not here: what a payload is (`tick`), which segments are still needed (`fold`).

use crate::disk::{Disk, DiskFile};
use crate::error::{damaged, io_error};
use crate::kill::kill_point;
use repr::error::state;
use repr::SqlError;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

const SEGMENT_MAGIC: &[u8; 8] = b"RDELTLOG";
const RECORD_MAGIC: &[u8; 4] = b"RDTK";
pub(crate) const LOG_VERSION: u32 = 1;
const SEGMENT_HEADER: usize = 40;
const RECORD_HEADER: usize = 20;
/// Positions inside a record are u32; a larger unit is staged.
const PAYLOAD_MAX: usize = 1 << 30;

/// Why an append failed.
pub(crate) enum AppendError {
    /// Nothing of the record is on disk.
    Abandoned(SqlError),
    /// The disk's state is not known: the process must exit.
    Fatal(SqlError),
}

/// A segment that may still be needed.
#[derive(Clone, Debug)]
pub(crate) struct Segment {
    pub(crate) path: PathBuf,
    pub(crate) last_seq: u64,
    pub(crate) bytes: u64,
}

pub(crate) struct LogWriter {
    disk: Arc<dyn Disk>,
    dir: PathBuf,
    number: u64,
    next_seq: u64,
    /// What [`SEAL`] says, or did when this process began.
    sealed: u64,
    active: Option<Active>,
    buf: Vec<u8>,
    last_sync: Duration,
}

struct Active {
    file: Box<dyn DiskFile>,
    path: PathBuf,
    salt: u64,
    len: u64,
}

fn segment_path(dir: &Path, number: u64) -> PathBuf {
    dir.join(format!("{number:016x}.log"))
}

/// Names how far the log was durable at some time: the last record alone could not be told from a torn append if it were damaged later.
const SEAL: &str = "SEAL";

/// The sequence number of a record that was durable, 0 if nothing says so.
/// Errors: the file cannot be read, for another reason than that it is not there.
pub(crate) fn read_seal(disk: &dyn Disk, dir: &Path) -> Result<u64, SqlError> {
    let path = dir.join(SEAL);
    let bytes = match disk.read(&path) {
        Ok(bytes) => bytes,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(0),
        Err(e) => return Err(io_error("could not read", &path, &e)),
    };
    // It is not synced, so a crash may have left any part of it.
    match bytes.split_first_chunk::<8>() {
        Some((seq, crc)) if *crc == crc32fast::hash(seq).to_le_bytes() => Ok(u64::from_le_bytes(*seq)),
        _ => Ok(0),
    }
}

fn record_crc(salt: u64, len: u32, seq: u64, payload: &[u8]) -> u32 {
    let mut crc = crc32fast::Hasher::new();
    crc.update(&salt.to_le_bytes());
    crc.update(&len.to_le_bytes());
    crc.update(&seq.to_le_bytes());
    crc.update(payload);
    crc.finalize()
}

fn new_salt() -> u64 {
    use std::hash::{BuildHasher, Hasher};
    std::collections::hash_map::RandomState::new().build_hasher().finish()
}

impl LogWriter {
    /// Continues behind what [`replay`] found: always in a new segment, so that the old ones are never written again.
    pub(crate) fn new(disk: Arc<dyn Disk>, dir: PathBuf, last_number: u64, next_seq: u64) -> LogWriter {
        LogWriter { disk, dir, number: last_number, next_seq, sealed: next_seq - 1, active: None, buf: Vec::new(), last_sync: Duration::ZERO }
    }

    pub(crate) fn next_seq(&self) -> u64 {
        self.next_seq
    }

    /// How long the last sync of a record took.
    pub(crate) fn last_sync(&self) -> Duration {
        self.last_sync
    }

    /// Notes that everything so far is durable, if that is news. A failure is harmless: then the note is older, or there is none.
    pub(crate) fn seal(&mut self) {
        let seq = self.next_seq - 1;
        if seq == self.sealed {
            return;
        }
        self.sealed = seq;
        let seq = seq.to_le_bytes();
        let note = [&seq[..], &crc32fast::hash(&seq).to_le_bytes()].concat();
        if let Err(e) = self.disk.create(&self.dir.join(SEAL)).and_then(|file| file.append(&note)) {
            tracing::debug!(error = %e, "could not note how far the log is durable");
        }
    }

    /// Bytes in the segment that is being written.
    pub(crate) fn segment_bytes(&self) -> u64 {
        self.active.as_ref().map_or(0, |a| a.len)
    }

    pub(crate) fn segment_path(&self) -> Option<&Path> {
        self.active.as_ref().map(|a| a.path.as_path())
    }

    /// The next append begins a new segment.
    pub(crate) fn rotate(&mut self) {
        self.active = None;
    }

    fn begin_segment(&mut self) -> Result<(), SqlError> {
        // A number is used once even if this fails: what a failed attempt left behind has no record in it.
        self.number += 1;
        let path = segment_path(&self.dir, self.number);
        let salt = new_salt();
        let mut header = Vec::with_capacity(SEGMENT_HEADER);
        header.extend_from_slice(SEGMENT_MAGIC);
        header.extend_from_slice(&LOG_VERSION.to_le_bytes());
        header.extend_from_slice(&self.number.to_le_bytes());
        header.extend_from_slice(&self.next_seq.to_le_bytes());
        header.extend_from_slice(&salt.to_le_bytes());
        header.extend_from_slice(&crc32fast::hash(&header).to_le_bytes());
        let begin = || {
            let file = self.disk.create(&path)?;
            file.append(&header)?;
            file.sync()?;
            self.disk.sync_dir(&self.dir)?;
            Ok(file)
        };
        match begin() {
            Ok(file) => {
                self.active = Some(Active { file, path, salt, len: SEGMENT_HEADER as u64 });
                Ok(())
            }
            Err(e) => {
                // Recovery ignores a segment without a record, so a failed removal does no harm.
                let _ = self.disk.remove(&path);
                Err(io_error("could not create", &path, &e))
            }
        }
    }

    /// Appends and syncs one record; its sequence number is [`Self::next_seq`] as it was before.
    pub(crate) fn append(&mut self, payload: &[u8]) -> Result<(), AppendError> {
        if payload.len() > PAYLOAD_MAX {
            let message = format!("a tick of {} bytes exceeds the log's limit of {PAYLOAD_MAX} bytes", payload.len());
            return Err(AppendError::Abandoned(SqlError::new(state::PROGRAM_LIMIT_EXCEEDED, message)));
        }
        if self.active.is_none() {
            self.begin_segment().map_err(AppendError::Abandoned)?;
        }
        let active = self.active.as_mut().expect("made above");
        let len = payload.len() as u32;
        self.buf.clear();
        self.buf.extend_from_slice(RECORD_MAGIC);
        self.buf.extend_from_slice(&len.to_le_bytes());
        self.buf.extend_from_slice(&self.next_seq.to_le_bytes());
        self.buf.extend_from_slice(&record_crc(active.salt, len, self.next_seq, payload).to_le_bytes());
        self.buf.extend_from_slice(payload);
        if let Err(e) = active.file.append(&self.buf) {
            let error = io_error("could not write", &active.path, &e);
            // The cut is synced too: else a power cut could bring back the record of a tick that was reported as failed.
            return match active.file.truncate(active.len).and_then(|()| active.file.sync()) {
                Ok(()) => Err(AppendError::Abandoned(error)),
                Err(e) => Err(AppendError::Fatal(io_error("could not cut back", &active.path, &e).with_detail(error.message))),
            };
        }
        kill_point("append-before-sync");
        let began = Instant::now();
        if let Err(e) = active.file.sync() {
            return Err(AppendError::Fatal(io_error("could not sync", &active.path, &e)));
        }
        self.last_sync = began.elapsed();
        kill_point("append-after-sync");
        active.len += self.buf.len() as u64;
        self.next_seq += 1;
        if self.buf.capacity() > 16 << 20 {
            self.buf = Vec::new();
        }
        Ok(())
    }
}

/// What [`replay`] found.
pub(crate) struct Replayed {
    pub(crate) segments: Vec<Segment>,
    /// Segments without a record that is still needed.
    pub(crate) stale: Vec<PathBuf>,
    pub(crate) last_number: u64,
    pub(crate) next_seq: u64,
}

/// Reads all records behind `folded_seq` in order, cuts a torn tail off and syncs what is left.
/// `apply` gets sequence number, payload, and for messages the file and offset.
/// Errors: damage before the tail, a missing segment, a newer format, and whatever `apply` reports.
pub(crate) fn replay(
    disk: &dyn Disk,
    dir: &Path,
    folded_seq: u64,
    mut apply: impl FnMut(u64, &[u8], &Path, u64) -> Result<(), SqlError>,
) -> Result<Replayed, SqlError> {
    let sealed = read_seal(disk, dir)?;
    let mut files: Vec<(u64, PathBuf)> = Vec::new();
    for name in disk.list(dir).map_err(|e| io_error("could not read", dir, &e))? {
        if let Some(number) = name.strip_suffix(".log").and_then(|n| u64::from_str_radix(n, 16).ok()) {
            files.push((number, dir.join(name)));
        }
    }
    files.sort();
    let mut out = Replayed { segments: Vec::new(), stale: Vec::new(), last_number: files.last().map_or(0, |f| f.0), next_seq: folded_seq + 1 };
    let last_with_records = files.len();
    for (i, (number, path)) in files.into_iter().enumerate() {
        let last = i + 1 == last_with_records;
        let bytes = disk.read(&path).map_err(|e| io_error("could not read", &path, &e))?;
        let Some((first_seq, salt)) = segment_header(&bytes, number, &path)? else {
            out.stale.push(path);
            continue;
        };
        let mut at = SEGMENT_HEADER;
        let mut seq = first_seq;
        while at < bytes.len() {
            match record_at(&bytes, at, salt, seq) {
                Ok(payload) => {
                    if seq > folded_seq {
                        if seq != out.next_seq {
                            return Err(gap(&path, out.next_seq, seq));
                        }
                        apply(seq, payload, &path, at as u64)?;
                        out.next_seq += 1;
                    }
                    at += RECORD_HEADER + payload.len();
                    seq += 1;
                }
                Err(why) if last && seq > sealed && !record_follows(&bytes, at + 1, salt, seq) => {
                    tracing::warn!(file = %path.display(), offset = at, bytes = bytes.len() - at, why, "cutting the torn tail of the log off");
                    break;
                }
                Err(why) => return Err(damaged(&path, at as u64, None, why)),
            }
        }
        if last && out.next_seq <= sealed {
            return Err(damaged(&path, at as u64, None, &ends_early(out.next_seq, sealed)));
        }
        if last {
            // Records that were written but not synced before a crash may be in memory only; nothing may rest on them before they are durable.
            let settle = || {
                let file = disk.open(&path)?;
                if at < bytes.len() {
                    file.truncate(at as u64)?;
                }
                file.sync()
            };
            settle().map_err(|e| io_error("could not sync", &path, &e))?;
        }
        if seq == first_seq || seq <= folded_seq + 1 {
            out.stale.push(path);
        } else {
            out.segments.push(Segment { path, last_seq: seq - 1, bytes: at as u64 });
        }
    }
    if out.next_seq <= sealed {
        return Err(damaged(dir, 0, None, &ends_early(out.next_seq, sealed)));
    }
    Ok(out)
}

fn ends_early(next_seq: u64, sealed: u64) -> String {
    format!("the log ends with tick {}, but ticks through {sealed} were durable", next_seq - 1)
}

fn gap(path: &Path, wanted: u64, found: u64) -> SqlError {
    damaged(path, SEGMENT_HEADER as u64, None, &format!("it begins with tick {found}, but tick {wanted} is in no file of the log"))
}

/// First sequence number and salt; `None` if the header was never completed, so that no record can have followed.
fn segment_header(bytes: &[u8], number: u64, path: &Path) -> Result<Option<(u64, u64)>, SqlError> {
    let word = |at: usize| {
        let mut b = [0; 8];
        b.copy_from_slice(&bytes[at..at + 8]);
        u64::from_le_bytes(b)
    };
    if bytes.len() < SEGMENT_HEADER {
        return Ok(None);
    }
    let crc = crc32fast::hash(&bytes[..SEGMENT_HEADER - 4]).to_le_bytes();
    if crc != bytes[SEGMENT_HEADER - 4..SEGMENT_HEADER] || &bytes[..8] != SEGMENT_MAGIC {
        return if bytes.len() == SEGMENT_HEADER { Ok(None) } else { Err(damaged(path, 0, None, "the segment's header fails its checksum")) };
    }
    let version = u32::from_le_bytes([bytes[8], bytes[9], bytes[10], bytes[11]]);
    if version != LOG_VERSION {
        return Err(damaged(path, 8, None, &format!("log format {version} is not known to this version, which reads {LOG_VERSION}")));
    }
    if word(12) != number {
        return Err(damaged(path, 12, None, "it is another segment under this name"));
    }
    Ok(Some((word(20), word(28))))
}

/// The payload of the record with number `seq` at `at`, or why there is none.
fn record_at(bytes: &[u8], at: usize, salt: u64, seq: u64) -> Result<&[u8], &'static str> {
    let (found, payload) = any_record_at(bytes, at, salt)?;
    if found == seq {
        Ok(payload)
    } else {
        Err("a record with another sequence number")
    }
}

fn any_record_at(bytes: &[u8], at: usize, salt: u64) -> Result<(u64, &[u8]), &'static str> {
    let header = bytes.get(at..at + RECORD_HEADER).ok_or("the record's header is cut")?;
    if &header[..4] != RECORD_MAGIC {
        return Err("no record begins here");
    }
    let len = u32::from_le_bytes([header[4], header[5], header[6], header[7]]);
    let mut seq = [0; 8];
    seq.copy_from_slice(&header[8..16]);
    let seq = u64::from_le_bytes(seq);
    let crc = u32::from_le_bytes([header[16], header[17], header[18], header[19]]);
    let payload = bytes.get(at + RECORD_HEADER..at + RECORD_HEADER + len as usize).ok_or("the record is cut")?;
    if crc != record_crc(salt, len, seq, payload) {
        return Err("the record fails its checksum");
    }
    Ok((seq, payload))
}

/// Whether a whole record with a number beyond `seq` lies anywhere behind `from`: then what is broken was acknowledged.
fn record_follows(bytes: &[u8], from: usize, salt: u64, seq: u64) -> bool {
    let mut at = from;
    while let Some(hit) = bytes.get(at..).and_then(|rest| rest.windows(4).position(|w| w == RECORD_MAGIC)) {
        at += hit;
        if any_record_at(bytes, at, salt).is_ok_and(|(s, _)| s > seq) {
            return true;
        }
        at += 1;
    }
    false
}
