//! Reading an arrangement at a time, beside the workers.
//!
//! A worker hands over (spans, at); a reader consolidates at `at`, applies the Mfp and sends rows. The batch handles keep
//! the chunks alive, so no read hold is needed from then on.

use super::hub::{Cancel, Hub};
use crate::arrange::{lane_of, route, At, Layout, RowB};
use crate::errors;
use crate::mfp_eval::MfpEval;
use crate::protocol::PeekRequest;
use crossbeam_channel::{unbounded, Sender};
use repr::error::state;
use repr::{Col, Deltas, Diff, SqlError, Timestamp};
use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use std::sync::Arc;

pub type Batches = Vec<RowB<Timestamp, Diff>>;

/// Rows in a part of an answer.
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
}

/// Threads that answer peeks.
#[derive(Clone)]
pub struct Readers {
    jobs: Sender<Job>,
}

impl Readers {
    /// The threads end when the last handle is dropped.
    pub fn start(threads: usize, hub: Arc<Hub>) -> Readers {
        let (jobs, queue) = unbounded::<Job>();
        for i in 0..threads {
            let (queue, hub) = (queue.clone(), hub.clone());
            let run = move || {
                while let Ok(job) = queue.recv() {
                    let id = job.request.id;
                    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| answer(&job, &hub)));
                    let result = result.unwrap_or_else(|_| Err(SqlError::internal("a reader failed")));
                    // Batches first, so that nothing of the arrangement is held once the answer is out.
                    drop(job);
                    hub.peek_done(id, result);
                }
            };
            // Without a thread peeks wait for the others; without any the process cannot work at all.
            if let Err(e) = std::thread::Builder::new().name(format!("reader-{i}")).spawn(run) {
                tracing::error!("cannot start a reader: {e}");
            }
        }
        Readers { jobs }
    }
    pub fn give(&self, job: Job) {
        // Readers outlive the workers: the queue's receiver is never dropped before.
        let _ = self.jobs.send(job);
    }
}

fn cancelled() -> SqlError {
    SqlError::new(state::QUERY_CANCELED, "canceling statement due to user request")
}

fn answer(job: &Job, hub: &Hub) -> Result<(), SqlError> {
    let mut least: Option<SqlError> = None;
    scan(&job.errs, job.request.at, &mut |key, _, n| {
        if n > 0 {
            // Of an error's columns none is equal without being identical: the key gives them all back.
            let e = errors::from_bytes(key);
            if least.as_ref().is_none_or(|old| e < *old) {
                least = Some(e);
            }
        }
        true
    });
    if let Some(e) = least {
        return Err(e);
    }
    let mut part = Part::new(job, hub);
    match &job.request.keys {
        Some(keys) => {
            let unique: BTreeSet<Vec<u8>> = keys.iter().map(|k| job.layout.encode_key(k)).collect();
            for key in unique {
                let lane = lane_of(&key);
                if route(lane, job.peers) == job.worker && !look_up(&job.oks, lane, &key, job.request.at, &mut |val, n| part.add(&key, val, n)) {
                    break;
                }
            }
        }
        None => scan(&job.oks, job.request.at, &mut |key, val, n| part.add(key, val, n)),
    }
    part.flush();
    match part.failed {
        Some(e) => Err(e),
        None => Ok(()),
    }
}

/// The vals of one key at `at`, in order, with non-zero counts, until `f` says stop.
fn look_up(batches: &Batches, lane: u64, key: &[u8], at: Timestamp, f: &mut impl FnMut(&[u8], Diff) -> bool) -> bool {
    let mut found: Vec<(&[u8], Diff)> = Vec::new();
    for b in batches {
        let mut pos = At::default();
        if pos.seek(b, lane, key) {
            pos.each(b, |_, u, x| {
                if b.time(x, u).is_some_and(|t| t <= at) {
                    found.push((x.val(u), *x.diffs.get(u)));
                }
            });
        }
    }
    differential_dataflow::consolidation::consolidate(&mut found);
    found.into_iter().all(|(v, n)| f(v, n))
}

/// A position in a batch while scanning.
struct Head<'a> {
    batch: &'a RowB<Timestamp, Diff>,
    chunk: usize,
    key: usize,
    update: usize,
}

impl<'a> Head<'a> {
    fn get(&self) -> Option<(u64, &'a [u8], &'a [u8])> {
        let x = self.batch.chunks.get(self.chunk)?.body();
        let (lane, key) = x.key(self.key);
        Some((lane, key, x.val(self.update)))
    }
    fn step(&mut self) {
        let Some(x) = self.batch.chunks.get(self.chunk) else { return };
        self.update += 1;
        if self.update >= x.key_ends[self.key] as usize {
            self.key += 1;
        }
        if self.key >= x.lanes.len() {
            (self.chunk, self.key, self.update) = (self.chunk + 1, 0, 0);
        }
    }
    /// The diff of the update here, if it is visible at `at`.
    fn diff(&self, at: Timestamp) -> Diff {
        let x = self.batch.chunks[self.chunk].body();
        match self.batch.time(x, self.update) {
            Some(t) if t <= at => *x.diffs.get(self.update),
            _ => 0,
        }
    }
}

/// All (key, val) with non-zero counts at `at`, in order, until `f` says stop.
fn scan(batches: &Batches, at: Timestamp, f: &mut impl FnMut(&[u8], &[u8], Diff) -> bool) {
    let mut heads: Vec<Head<'_>> = batches.iter().map(|batch| Head { batch, chunk: 0, key: 0, update: 0 }).collect();
    loop {
        let Some(least) = heads.iter().filter_map(Head::get).min() else { return };
        let mut n: Diff = 0;
        for h in &mut heads {
            while h.get() == Some(least) {
                n += h.diff(at);
                h.step();
            }
        }
        if n != 0 && !f(least.1, least.2, n) {
            return;
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
    done: bool,
}

impl<'a> Part<'a> {
    fn new(job: &'a Job, hub: &'a Hub) -> Self {
        let ctx = Arc::new(job.request.ctx.0.clone());
        let eval = MfpEval::new(job.request.mfp.clone(), &job.request.types, ctx);
        Part { job, hub, eval, keys: vec![], key_ends: vec![], vals: vec![], val_ends: vec![], diffs: vec![], sent: 0, failed: None, done: false }
    }

    /// False when no more rows are wanted.
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
        if self.diffs.len() >= PART_ROWS || enough {
            self.flush();
        }
        !self.done
    }

    fn flush(&mut self) {
        if self.job.cancel.load(Ordering::Relaxed) {
            self.failed = Some(cancelled());
        }
        if self.diffs.is_empty() || self.failed.is_some() {
            self.done |= self.failed.is_some();
            return;
        }
        let (keys, vals) = (slices(&self.keys, &self.key_ends), slices(&self.vals, &self.val_ends));
        let batch = self.job.layout.decode(&keys, &vals, |c| self.eval.reads(c));
        let diffs = Col::from_vec(std::mem::take(&mut self.diffs));
        let mut applied = self.eval.apply(batch);
        let mut worst = applied.errors.drain(..).map(|e| e.1).min();
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
            return;
        }
        self.sent += diffs.iter().map(|d| d.unsigned_abs()).sum::<u64>();
        if rows.len > 0 {
            self.done |= !self.hub.peek_rows(self.job.request.id, Deltas { rows, diffs });
        }
        self.done |= self.job.request.limit.is_some_and(|l| self.sent >= l);
        self.keys.clear();
        self.key_ends.clear();
        self.vals.clear();
        self.val_ends.clear();
    }
}

fn slices<'a>(bytes: &'a [u8], ends: &[usize]) -> Vec<&'a [u8]> {
    let mut from = 0;
    ends.iter().map(|to| &bytes[std::mem::replace(&mut from, *to)..*to]).collect()
}
