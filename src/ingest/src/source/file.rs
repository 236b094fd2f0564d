//! Lines of files: a path or glob, read once or followed like `tail -F`.
//!
//! ```text
//!   without TAIL   all files to their ends ─ parts, one unit ─► snapshot ─► Finished
//!   TAIL           all files to their sizes at the start ─ parts, one unit ─► snapshot ─► what is appended, as it comes
//! ```
//! Following: new files that match, rotation by rename (the old file is read to its end, wherever it went; what was compressed then is skipped),
//! truncation (begins again at 0). A last line without newline waits for it; it counts as a record when the file ends for good
//! (no TAIL, or rotated away).
//! Position: a [`Mark`] for each file.

use super::follow::{find, find_inode, inode_of, Followed, Mark, RECORD_BYTES_MAX};
use super::{End, Feed};
use crate::decode::csv;
use crate::envelope::Pipeline;
use crate::record::Record;
use crate::spec::*;
use repr::error::state;
use repr::SqlError;
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Position {
    files: Vec<Mark>,
    /// Read to the end, once and for all (no TAIL).
    #[serde(default)]
    finished: bool,
}

/// Changes that are held before a part is handed over.
const PART_ROWS: usize = 50_000;
const PART_BYTES: usize = 8 << 20;
/// How often new files and rotations are looked for.
const RESCAN: Duration = Duration::from_millis(200);
/// How long a file that was rotated away is still read.
const GONE_GRACE: Duration = Duration::from_secs(3);
/// Pause between looks at files that do not grow: doubles from the first to the second.
const IDLE_MIN: Duration = Duration::from_millis(2);
const IDLE_MAX: Duration = Duration::from_millis(20);

/// A file that cannot be read during the snapshot is tried again so often.
const TRY_AGAIN: Duration = Duration::from_secs(1);
/// What is listed of a record that is too long.
const SHOWN_BYTES: usize = 1 << 20;

/// How compressed files begin: gzip, zstd, bzip2, xz.
const COMPRESSED: [&[u8]; 4] = [b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"BZh", b"\xfd7zXZ"];

fn is_compressed(first: &[u8]) -> bool {
    COMPRESSED.iter().any(|magic| first.starts_with(magic))
}

/// Checks that the files can be read.
/// Errors: no such file (58030 for one that cannot be read), a directory (42809), a pattern that is none, compressed files.
pub fn inspect(path: &str, tail: bool, format: &Format) -> Result<(), SqlError> {
    let files = find(path).map_err(|m| SqlError::new(state::INVALID_PARAMETER_VALUE, m))?;
    if Path::new(path).is_dir() {
        return Err(SqlError::new(state::WRONG_OBJECT_TYPE, format!("\"{path}\" is a directory"))
            .with_hint(format!("write a pattern for the files in it: \"{}/*\"", path.trim_end_matches('/'))));
    }
    let waits = tail && path.contains(['*', '?', '[']);
    if files.is_empty() && !waits {
        return Err(SqlError::new(state::UNDEFINED_OBJECT, format!("no file matches \"{path}\""))
            .with_hint("the path is on the server; with TAIL, a pattern may match files that come later"));
    }
    for f in &files {
        let failed = |e: std::io::Error| SqlError::new(state::IO_ERROR, format!("could not read file \"{}\": {e}", f.display()));
        let mut first = Vec::new();
        std::io::Read::read_to_end(&mut std::io::Read::take(std::fs::File::open(f).map_err(failed)?, 8), &mut first).map_err(failed)?;
        if is_compressed(&first) {
            return Err(SqlError::unsupported(format!("compressed file \"{}\"", f.display()), "decompress it first"));
        }
    }
    refuse_bytes(format)
}

fn refuse_bytes(format: &Format) -> Result<(), SqlError> {
    match format {
        Format::Bytes => Err(SqlError::unsupported("FORMAT BYTES of a FILE source", "use FORMAT TEXT: a record is a line")),
        _ => Ok(()),
    }
}

/// A pipeline for each output.
/// Errors: columns that the format or a file cannot bring.
pub(crate) fn pipelines(spec: &SourceSpec) -> Result<Vec<Pipeline>, SqlError> {
    let Connector::File { format, .. } = &spec.connector else {
        return Err(SqlError::internal("not a file source"));
    };
    refuse_bytes(format)?;
    let of_broker = |c: &ColumnSource| !matches!(c, ColumnSource::Value(_) | ColumnSource::Offset | ColumnSource::Path);
    if spec.outputs.iter().flat_map(|o| &o.columns).any(of_broker) {
        return Err(SqlError::new(state::INVALID_TABLE_DEFINITION, "a line of a file has no key, partition, timestamp or headers")
            .with_hint("INCLUDE OFFSET and PATH are there"));
    }
    Pipeline::of_source(spec, None, format, &Envelope::None)
}

pub(super) fn run(source: &StartSource, feed: &mut Feed) -> End {
    match Reader::start(source, feed) {
        Ok(end) | Err(end) => end,
    }
}

struct Reader<'a> {
    feed: &'a mut Feed,
    pattern: String,
    tail: bool,
    format: Format,
    outputs: Vec<repr::GlobalId>,
    pipelines: Vec<Pipeline>,
    files: Vec<Followed>,
    /// Which file's header the decoders know.
    header_of: Option<u64>,
    finished: bool,
    /// A file could not be opened or read since the last look for new ones.
    trouble: bool,
}

impl<'a> Reader<'a> {
    fn start(source: &StartSource, feed: &'a mut Feed) -> Result<End, End> {
        let Connector::File { path, tail, format } = &source.spec.connector else {
            return Err(End::Failed("internal error: not a file source".into()));
        };
        let pipelines = pipelines(&source.spec).map_err(|e| End::Failed(e.message))?;
        let position: Option<Position> = match &source.resume {
            Some(p) => Some(serde_json::from_str(p).map_err(|e| End::Failed(format!("the durable position cannot be read: {e}")))?),
            None => None,
        };
        if position.is_some() && source.spec.outputs.iter().any(|o| !o.snapshot_done) {
            return Err(End::Failed("a relation was added after the files had been read: create another source for it".into()));
        }
        let outputs = source.spec.outputs.iter().map(|o| o.id).collect();
        let mut reader = Reader {
            feed,
            pattern: path.clone(),
            tail: *tail,
            format: format.clone(),
            outputs,
            pipelines,
            files: Vec::new(),
            header_of: None,
            finished: false,
            trouble: false,
        };
        match position {
            Some(p) if p.finished => return Ok(End::Finished),
            Some(p) => {
                reader.reopen(&p.files)?;
                reader.discover()?;
            }
            None => {
                reader.discover()?;
                reader.snapshot()?;
            }
        }
        if !*tail {
            return Ok(End::Finished);
        }
        reader.feed.status(SourceStatus::Running)?;
        reader.follow()
    }

    /// Opens the files that the durable position names, where they are now.
    fn reopen(&mut self, marks: &[Mark]) -> Result<(), End> {
        for mark in marks {
            let path = Path::new(&mark.path);
            let now = if inode_of(path) == Some(mark.inode) { Some(path.to_path_buf()) } else { find_inode(&mark.path, mark.inode) };
            // A restored backup has other inodes: then path and first bytes decide.
            for candidate in now.into_iter().chain([path.to_path_buf()]) {
                let Ok(mut file) = Followed::open(&candidate) else { continue };
                if mark.offset > 0 && file.resume(mark).unwrap_or(false) {
                    self.files.push(file);
                    break;
                }
            }
        }
        Ok(())
    }

    /// Looks for new files, and for followed ones that are no longer where they were.
    fn discover(&mut self) -> Result<(), End> {
        let paths = find(&self.pattern).map_err(End::Failed)?;
        let mut seen: HashSet<u64> = HashSet::new();
        for path in &paths {
            let Some(inode) = inode_of(path) else { continue };
            seen.insert(inode);
            match self.files.iter_mut().find(|f| f.inode == inode) {
                Some(f) => {
                    f.gone_since = None;
                    if Path::new(&f.path) != path && inode_of(Path::new(&f.path)) != Some(inode) {
                        f.path = path.to_string_lossy().into_owned();
                    }
                }
                None => match Followed::open(path) {
                    Ok(f) if !self.files.iter().any(|o| o.inode == f.inode) => self.files.push(f),
                    Ok(_) => {}
                    Err(e) => {
                        self.trouble = true;
                        self.feed.status(SourceStatus::Stalled(format!("could not open file \"{}\": {e}", path.display())))?;
                    }
                },
            }
        }
        for f in self.files.iter_mut().filter(|f| !seen.contains(&f.inode)) {
            f.gone_since.get_or_insert_with(Instant::now);
        }
        self.feed.stats.set("files", self.files.len() as i64);
        Ok(())
    }

    /// All that stands in the files now, as one unit.
    fn snapshot(&mut self) -> Result<(), End> {
        self.feed.status(SourceStatus::Snapshotting { rows: 0 })?;
        if self.files.is_empty() && !self.tail {
            return Err(End::Failed(format!("no file matches \"{}\"", self.pattern)));
        }
        let mut rows = 0;
        // A file that is written faster than it is read must not hold the snapshot up: what comes later is followed.
        let ends: Vec<u64> = self.files.iter().map(|f| if self.tail { f.size().unwrap_or(u64::MAX) } else { u64::MAX }).collect();
        for (i, end) in ends.into_iter().enumerate() {
            // What is appended meanwhile may be read too; the loop ends at the first look that finds no more.
            loop {
                match self.read_some(i)? {
                    Some(0) => break,
                    Some(_) if self.files[i].reached() >= end => break,
                    Some(_) => {}
                    // Without its rest the snapshot would lack rows in silence.
                    None => self.feed.sleep(TRY_AGAIN)?,
                }
                if self.pending_rows() >= PART_ROWS || self.pending_bytes() >= PART_BYTES {
                    rows += self.stage(vec![], true)?;
                    self.feed.status(SourceStatus::Snapshotting { rows })?;
                }
                self.feed.check()?;
            }
            if !self.tail {
                self.last_record(i)?;
            }
        }
        self.finished = !self.tail;
        let done = self.outputs.clone();
        self.stage(done, false)?;
        Ok(())
    }

    fn follow(mut self) -> Result<End, End> {
        let mut idle = IDLE_MIN;
        let mut scanned = Instant::now();
        loop {
            let mut read = 0;
            for i in 0..self.files.len() {
                while self.pending_rows() < PART_ROWS && self.pending_bytes() < PART_BYTES {
                    match self.read_some(i)? {
                        Some(0) | None => break,
                        Some(n) => read += n,
                    }
                }
            }
            if scanned.elapsed() >= RESCAN {
                scanned = Instant::now();
                if !std::mem::take(&mut self.trouble) {
                    self.feed.status(SourceStatus::Running)?;
                }
                self.discover()?;
                self.let_go()?;
            }
            if self.pending_rows() > 0 {
                self.stage(vec![], false)?;
            }
            if read > 0 {
                idle = IDLE_MIN;
                self.feed.check()?;
            } else {
                self.feed.sleep(idle)?;
                idle = (idle * 2).min(IDLE_MAX);
            }
        }
    }

    /// Ends the files that were rotated away some time ago: their last line is whole now.
    fn let_go(&mut self) -> Result<(), End> {
        let old = |f: &Followed| f.gone_since.is_some_and(|t| t.elapsed() >= GONE_GRACE);
        while let Some(i) = self.files.iter().position(old) {
            if self.read_some(i)? != Some(0) {
                return Ok(());
            }
            self.last_record(i)?;
            self.files.remove(i);
            // Its mark goes from the position with the next unit.
        }
        Ok(())
    }

    fn pending_rows(&self) -> usize {
        self.pipelines.iter().map(Pipeline::len).sum()
    }
    fn pending_bytes(&self) -> usize {
        self.pipelines.iter().map(Pipeline::bytes).sum()
    }

    /// Hands over what is pending; returns the number of changes.
    fn stage(&mut self, snapshot_of: Vec<repr::GlobalId>, more: bool) -> Result<u64, End> {
        let deltas: Vec<_> = self.pipelines.iter_mut().flat_map(Pipeline::take).collect();
        let rows = deltas.iter().map(|d| d.1.len() as u64).sum();
        let errors = self.pipelines.iter().map(|p| p.error_count).sum();
        self.feed.stats.errors.store(errors, Ordering::Relaxed);
        let position = Position { files: self.files.iter().map(Followed::mark).collect(), finished: self.finished };
        self.feed.stage(deltas, serde_json::to_string(&position).unwrap_or_default(), snapshot_of, more)?;
        Ok(rows)
    }

    /// Reads a chunk of file `i` and takes in its whole records. Returns the bytes read; `None` if it cannot be read now, which is reported.
    fn read_some(&mut self, i: usize) -> Result<Option<usize>, End> {
        let f = &mut self.files[i];
        match f.read() {
            Ok(Ok(0)) => Ok(Some(0)),
            Ok(Ok(n)) if f.ignored => {
                f.consume(f.buf.len());
                Ok(Some(n))
            }
            Ok(Ok(n)) if f.at == 0 && is_compressed(&f.buf) => {
                let what = format!("file \"{}\" is compressed", f.path);
                if !self.tail {
                    return Err(End::Failed(format!("{what}: decompress it, then create the source again")));
                }
                tracing::warn!("{what}: it is skipped");
                f.ignored = true;
                f.consume(f.buf.len());
                Ok(Some(n))
            }
            Ok(Ok(n)) => {
                self.feed.stats.bytes.fetch_add(n as u64, Ordering::Relaxed);
                self.records(i)?;
                if self.files[i].buf.len() > RECORD_BYTES_MAX {
                    self.too_long(i);
                }
                Ok(Some(n))
            }
            Ok(Err(())) => {
                tracing::info!("file \"{}\" was truncated: it is read from its beginning", f.path);
                self.header_of = None;
                Ok(Some(0))
            }
            Err(e) => {
                let why = format!("could not read file \"{}\": {e}", f.path);
                self.trouble = true;
                self.feed.status(SourceStatus::Stalled(why))?;
                Ok(None)
            }
        }
    }

    /// Lists the record that fills file `i`'s buffer, and skips the rest of it.
    fn too_long(&mut self, i: usize) {
        let f = &mut self.files[i];
        let record = Record { value: Some(&f.buf[..SHOWN_BYTES]), path: &f.path, offset: i64::try_from(f.at).unwrap_or(i64::MAX), ..Default::default() };
        let reason = format!("the record is longer than {} MB: its first megabyte is here", RECORD_BYTES_MAX >> 20);
        self.pipelines.iter_mut().for_each(|p| p.quarantine(&record, &reason));
        self.feed.stats.messages.fetch_add(1, Ordering::Relaxed);
        f.skip = true;
        f.consume(f.buf.len());
    }

    /// Takes in the whole records of file `i`'s buffer.
    fn records(&mut self, i: usize) -> Result<(), End> {
        if !self.learn_header(i)? {
            return Ok(());
        }
        let f = &mut self.files[i];
        if f.skip {
            let end = memchr::memchr(b'\n', &f.buf);
            f.skip = end.is_none();
            f.consume(end.map_or(f.buf.len(), |n| n + 1));
        }
        let f = &self.files[i];
        let mut pos = 0;
        loop {
            let end = match self.format {
                Format::Csv { .. } => csv::record_end(&f.buf, pos),
                _ => memchr::memchr(b'\n', &f.buf[pos..]).map(|n| pos + n + 1),
            };
            let Some(end) = end else { break };
            let (line, at) = (&f.buf[pos..end - 1], f.at + pos as u64);
            take_in(&mut self.pipelines, self.feed, &self.format, &f.path, line, at);
            pos = end;
        }
        self.files[i].consume(pos);
        Ok(())
    }

    /// The file ended for good: what is left in the buffer is its last record.
    fn last_record(&mut self, i: usize) -> Result<(), End> {
        let rest = self.files[i].buf.len();
        if rest == 0 || !self.learn_header(i)? {
            return Ok(());
        }
        let f = &self.files[i];
        // Of a record that was too long, the rest is skipped.
        if !f.skip {
            take_in(&mut self.pipelines, self.feed, &self.format, &f.path, &f.buf, f.at);
        }
        self.files[i].consume(rest);
        Ok(())
    }

    /// Makes the decoders know the header of file `i`, reading it first if need be. False: it is not there yet.
    fn learn_header(&mut self, i: usize) -> Result<bool, End> {
        let Format::Csv { header: true, delimiter, .. } = self.format else { return Ok(true) };
        let f = &mut self.files[i];
        if self.header_of == Some(f.inode) && f.header.is_some() {
            return Ok(true);
        }
        if f.header.is_none() {
            let (bytes, fresh) = if f.at == 0 {
                (std::mem::take(&mut f.buf), true)
            } else {
                (f.beginning(1 << 20).map_err(|e| End::Failed(format!("could not read file \"{}\": {e}", f.path)))?, false)
            };
            let end = csv::record_end(&bytes, 0).or_else(|| (!self.tail && fresh && bytes.len() < super::follow::CHUNK_BYTES).then_some(bytes.len()));
            let names = end.map(|end| {
                let line = String::from_utf8_lossy(bytes[..end].strip_prefix(b"\xef\xbb\xbf").unwrap_or(&bytes[..end])).into_owned();
                csv::texts(line.trim_end_matches(['\r', '\n']), delimiter)
            });
            if fresh {
                f.buf = bytes;
            }
            let Some(names) = names else { return Ok(false) };
            match names {
                Ok(names) => f.header = Some(names),
                Err(why) => return self.ignore(i, fresh.then_some(end).flatten(), &why),
            }
        }
        let header = self.files[i].header.clone().unwrap_or_default();
        let known = self.pipelines.iter_mut().try_for_each(|p| p.decoder().set_header(&header));
        let f = &mut self.files[i];
        let end = (f.at == 0).then(|| csv::record_end(&f.buf, 0).unwrap_or(f.buf.len()));
        if let Err(why) = known {
            return self.ignore(i, end, &why);
        }
        f.consume(end.unwrap_or(0));
        self.header_of = Some(f.inode);
        Ok(true)
    }

    /// File `i` has a header that does not fit: that is an error row, and nothing of the file is read. `end`: where the header ends in the buffer.
    /// Errors: the file was read before, so its header did fit.
    fn ignore(&mut self, i: usize, end: Option<usize>, why: &str) -> Result<bool, End> {
        let f = &mut self.files[i];
        let Some(end) = end else {
            return Err(End::Failed(format!("the header of \"{}\" was changed: {why}", f.path)));
        };
        let record = Record { value: Some(&f.buf[..end]), path: &f.path, ..Default::default() };
        let reason = format!("the file is not read: {why}");
        self.pipelines.iter_mut().for_each(|p| p.quarantine(&record, &reason));
        (f.ignored, f.header, self.header_of) = (true, None, None);
        f.consume(f.buf.len());
        Ok(false)
    }
}

/// Takes in one record (without its newline).
fn take_in(pipelines: &mut [Pipeline], feed: &mut Feed, format: &Format, path: &str, line: &[u8], at: u64) {
    let mut line = line;
    if at == 0 {
        line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
    }
    if *format != Format::Text {
        line = line.strip_suffix(b"\r").unwrap_or(line);
        // A blank line is no record, except of one CSV column, where it is a NULL.
        if line.iter().all(u8::is_ascii_whitespace) && !matches!(format, Format::Csv { columns: 1, .. }) {
            return;
        }
    }
    feed.stats.messages.fetch_add(1, Ordering::Relaxed);
    let record = Record { value: Some(line), path, offset: i64::try_from(at).unwrap_or(i64::MAX), ..Default::default() };
    for p in pipelines {
        p.push(&record);
    }
}
