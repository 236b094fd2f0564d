//! Reading an arrangement at a time, beside the workers.
//!
//! A worker hands over (spans, at); a reader consolidates at `at`, applies the Mfp and sends rows. The batch handles keep
//! the chunks alive, so no read hold is needed from then on. A scan whose reader is behind is put aside with its position and
//! goes on when the gate opens.

use super::hub::{Cancel, Hub};
use crate::arrange::{lane_of, route, At, Layout, RowB, Upd};
use crate::errors;
use crate::eval::{in_pieces, Full};
use crate::flow::Gate;
use crate::mfp_eval::MfpEval;
use crate::protocol::PeekRequest;
use crossbeam_channel::{unbounded, Sender};
use repr::batch::PIECE_BYTES;
use repr::{Col, Deltas, Diff, SqlError, Timestamp};
use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use std::sync::Arc;

pub type Batches = Vec<RowB<Timestamp, Diff>>;

/// Rows in a part of an answer; wide rows are bounded by [`PIECE_BYTES`].
const PART_ROWS: usize = 4096;

/// What a reader is given.
pub struct Job {
    pub request: Arc<PeekRequest>,
    pub oks: Batches,
    pub errs: Batches,
    pub layout: Arc<Layout>,
    pub worker: usize,
    pub peers: usize,
    pub cancel: Cancel,
    pub gate: Arc<Gate>,
}

/// A job with its position.
struct Task {
    job: Job,
    /// `None`: not begun.
    scans: Option<Scans>,
    /// Rows sent so far.
    sent: u64,
    /// Where it goes on.
    queue: Sender<Task>,
}

/// Threads that answer peeks.
#[derive(Clone)]
pub struct Readers {
    tasks: Sender<Task>,
}

impl Readers {
    /// The threads end when the last handle is dropped.
    pub fn start(threads: usize, hub: Arc<Hub>) -> Readers {
        let (tasks, queue) = unbounded::<Task>();
        for i in 0..threads {
            let (queue, hub) = (queue.clone(), hub.clone());
            let run = move || {
                while let Ok(mut task) = queue.recv() {
                    let id = task.job.request.id;
                    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| go_on(&mut task, &hub)));
                    match result.unwrap_or_else(|_| Err(SqlError::internal("a reader failed"))) {
                        Ok(false) => put_aside(task),
                        result => {
                            // Batches first, so that nothing of the arrangement is held once the answer is out.
                            drop(task);
                            hub.peek_done(id, result.map(|_| ()));
                        }
                    }
                }
            };
            // Without a thread peeks wait for the others; without any the process cannot work at all.
            if let Err(e) = std::thread::Builder::new().name(format!("reader-{i}")).spawn(run) {
                tracing::error!("cannot start a reader: {e}");
            }
        }
        Readers { tasks }
    }
    pub fn give(&self, job: Job) {
        // Readers outlive the workers: the queue's receiver is never dropped before.
        let _ = self.tasks.send(Task { job, scans: None, sent: 0, queue: self.tasks.clone() });
    }
}

/// The task is taken up again when its reader has caught up.
fn put_aside(task: Task) {
    let (gate, queue) = (task.job.gate.clone(), task.queue.clone());
    gate.when_open(move || drop(queue.send(task)));
}

/// Sends rows until all are sent or the reader is behind; false in the latter case.
fn go_on(task: &mut Task, hub: &Hub) -> Result<bool, SqlError> {
    let Task { job, scans, sent, .. } = task;
    let scans = match scans {
        Some(s) => s,
        None => match least_error(job) {
            Some(e) => return Err(e),
            None => scans.insert(Scans::new(job)),
        },
    };
    let mut part = Part::new(job, hub, *sent);
    let mut all = false;
    while !part.stops() {
        let Some(merge) = scans.merge(job) else {
            part.flush();
            all = true;
            break;
        };
        if merge.run(&job.oks, job.request.at, &mut |key, val, n| part.add(key, val, n)) {
            scans.next();
        }
    }
    *sent = part.sent;
    match part.failed {
        Some(e) => Err(e),
        None => Ok(all || part.done),
    }
}

/// The least error that stands at the time of the read.
fn least_error(job: &Job) -> Option<SqlError> {
    let mut least: Option<SqlError> = None;
    Merge::all(&job.errs).run(&job.errs, job.request.at, &mut |key, _, n| {
        if n > 0 {
            // Of an error's columns none is equal without being identical: the key gives them all back.
            let e = errors::from_bytes(key);
            if least.as_ref().is_none_or(|old| e < *old) {
                least = Some(e);
            }
        }
        true
    });
    least
}

/// What is left to be read: everything, or the keys that are looked up and live here.
struct Scans {
    keys: Option<std::collections::btree_set::IntoIter<Vec<u8>>>,
    merge: Option<Merge>,
}

impl Scans {
    fn new(job: &Job) -> Scans {
        let unique = |keys: &Vec<Vec<repr::Value>>| keys.iter().map(|k| job.layout.encode_key(k)).collect::<BTreeSet<_>>().into_iter();
        let keys = job.request.keys.as_ref().map(unique);
        let merge = keys.is_none().then(|| Merge::all(&job.oks));
        Scans { keys, merge }
    }
    /// The merge in hand; `None`: everything is read.
    fn merge(&mut self, job: &Job) -> Option<&mut Merge> {
        while self.merge.is_none() {
            let key = self.keys.as_mut()?.next()?;
            let lane = lane_of(&key);
            if route(lane, job.peers) == job.worker {
                self.merge = Some(Merge::of(&job.oks, lane, key));
            }
        }
        self.merge.as_mut()
    }
    fn next(&mut self) {
        self.merge = None;
        self.keys.get_or_insert_default();
    }
}

/// A position in a batch while scanning.
struct Head {
    batch: usize,
    chunk: usize,
    key: usize,
    update: usize,
}

impl Head {
    fn get<'a>(&self, batches: &'a Batches) -> Option<(u64, &'a [u8], &'a [u8])> {
        let x = batches[self.batch].chunks.get(self.chunk)?.body();
        let (lane, key) = x.key(self.key);
        Some((lane, key, x.val(self.update)))
    }
    fn step(&mut self, batches: &Batches) {
        let Some(x) = batches[self.batch].chunks.get(self.chunk) else { return };
        self.update += 1;
        if self.update >= x.key_ends[self.key] as usize {
            self.key += 1;
        }
        if self.key >= x.lanes.len() {
            (self.chunk, self.key, self.update) = (self.chunk + 1, 0, 0);
        }
    }
    /// The diff of the update here, if it is visible at `at`.
    fn diff(&self, batches: &Batches, at: Timestamp) -> Diff {
        let batch = &batches[self.batch];
        let x = batch.chunks[self.chunk].body();
        match batch.time(x, self.update) {
            Some(t) if t <= at => *x.diffs.get(self.update),
            _ => 0,
        }
    }
}

/// Batches merged in order from where they stand: all keys, or one.
struct Merge {
    only: Option<(u64, Vec<u8>)>,
    heads: Vec<Head>,
}

impl Merge {
    fn all(batches: &Batches) -> Merge {
        Merge { only: None, heads: (0..batches.len()).map(|batch| Head { batch, chunk: 0, key: 0, update: 0 }).collect() }
    }
    fn of(batches: &Batches, lane: u64, key: Vec<u8>) -> Merge {
        let mut heads = Vec::new();
        for (batch, b) in batches.iter().enumerate() {
            let mut at = At::default();
            if at.seek(b, lane, &key) {
                heads.push(Head { batch, chunk: at.chunk, key: at.key, update: b.chunks[at.chunk].key_start(at.key) });
            }
        }
        Merge { only: Some((lane, key)), heads }
    }
    /// All (key, val) with non-zero counts at `at`, in order, until `f` says stop. True at the end.
    fn run(&mut self, batches: &Batches, at: Timestamp, f: &mut impl FnMut(&[u8], &[u8], Diff) -> bool) -> bool {
        loop {
            let Some(least) = self.heads.iter().filter_map(|h| h.get(batches)).min() else { return true };
            if self.only.as_ref().is_some_and(|(lane, key)| (*lane, key.as_slice()) != (least.0, least.1)) {
                return true;
            }
            let mut n: Diff = 0;
            for h in &mut self.heads {
                while h.get(batches) == Some(least) {
                    n += h.diff(batches, at);
                    h.step(batches);
                }
            }
            if n != 0 && !f(least.1, least.2, n) {
                return false;
            }
        }
    }
}

/// Rows on their way out.
struct Part<'a> {
    job: &'a Job,
    hub: &'a Hub,
    eval: MfpEval,
    keys: Vec<u8>,
    key_ends: Vec<usize>,
    vals: Vec<u8>,
    val_ends: Vec<usize>,
    diffs: Vec<Diff>,
    sent: u64,
    failed: Option<SqlError>,
    /// No more rows are wanted.
    done: bool,
    /// The reader is behind.
    paused: bool,
}

impl<'a> Part<'a> {
    fn new(job: &'a Job, hub: &'a Hub, sent: u64) -> Self {
        let ctx = Arc::new(job.request.ctx.0.clone());
        let eval = MfpEval::new(job.request.mfp.clone(), &job.request.types, ctx);
        Part { job, hub, eval, keys: vec![], key_ends: vec![], vals: vec![], val_ends: vec![], diffs: vec![], sent, failed: None, done: false, paused: false }
    }

    fn stops(&self) -> bool {
        self.done || self.paused
    }

    /// False when no more rows are wanted now.
    fn add(&mut self, key: &[u8], val: &[u8], n: Diff) -> bool {
        if n < 0 {
            self.failed = Some(errors::negative_count("the object"));
            return false;
        }
        self.keys.extend_from_slice(key);
        self.key_ends.push(self.keys.len());
        self.vals.extend_from_slice(val);
        self.val_ends.push(self.vals.len());
        self.diffs.push(n);
        // A small limit is looked at early.
        let enough = self.job.request.limit.is_some_and(|l| self.sent + self.diffs.len() as u64 >= l.max(64));
        if self.diffs.len() >= PART_ROWS || self.keys.len() + self.vals.len() >= PIECE_BYTES || enough {
            self.flush();
        }
        !self.stops()
    }

    fn flush(&mut self) {
        if self.job.cancel.load(Ordering::Relaxed) {
            self.failed = Some(SqlError::canceled());
        }
        if self.diffs.is_empty() || self.failed.is_some() {
            self.done |= self.failed.is_some();
            return;
        }
        let (keys, vals) = (slices(&self.keys, &self.key_ends), slices(&self.vals, &self.val_ends));
        let batch = self.job.layout.decode(&keys, &vals, |c| self.eval.reads(c));
        let diffs = Col::from_vec(std::mem::take(&mut self.diffs));
        let times = Col::same(self.job.request.at, batch.len);
        in_pieces(Upd { batch, times, diffs }, |upd| if self.done { Ok(()) } else { self.send(upd) });
        self.paused = self.job.gate.is_closed();
        self.keys.clear();
        self.key_ends.clear();
        self.vals.clear();
        self.val_ends.clear();
    }

    fn send(&mut self, upd: &Upd<Timestamp>) -> Result<(), Full> {
        let diffs = &upd.diffs;
        let applied = self.eval.apply(upd.batch.clone());
        let mut worst = Full::unless(upd.len(), applied.errors)?.into_iter().map(|e| e.1).min();
        let (mut rows, mut diffs) = (self.eval.project(&applied.full), applied.rows.map_or(diffs.clone(), |r| diffs.take(&r)));
        if self.eval.mfp().is_temporal() {
            let mut bound_errors = Vec::new();
            let at = self.job.request.at as i64;
            let bounds = self.eval.bounds(&applied.full, &mut bound_errors);
            worst = worst.into_iter().chain(bound_errors.into_iter().map(|e| e.1)).min();
            let kept: Vec<u32> =
                (0..rows.len as u32).filter(|i| bounds[*i as usize].is_some_and(|(from, to)| from <= at && to.is_none_or(|t| at < t))).collect();
            diffs = diffs.take(&kept);
            rows = rows.take(&kept.into());
        }
        if let Some(e) = worst {
            self.failed = Some(e);
            self.done = true;
            return Ok(());
        }
        self.sent += diffs.iter().map(|d| d.unsigned_abs()).sum::<u64>();
        if rows.len > 0 {
            self.done |= !self.hub.peek_rows(self.job.request.id, Deltas { rows, diffs });
        }
        self.done |= self.job.request.limit.is_some_and(|l| self.sent >= l);
        Ok(())
    }
}

fn slices<'a>(bytes: &'a [u8], ends: &[usize]) -> Vec<&'a [u8]> {
    let mut from = 0;
    ends.iter().map(|to| &bytes[std::mem::replace(&mut from, *to)..*to]).collect()
}
