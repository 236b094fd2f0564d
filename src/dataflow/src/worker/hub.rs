//! Where the workers' answers meet: each answer of the cluster is the merge of its workers' parts.
//!
//! ```text
//!   peeks       rows pass through; done when every worker is done, with the least error
//!   subscribes  updates wait until every worker's frontier has passed them
//!   frontiers   the minimum over the workers; sizes are sums
//! ```

use crate::flow::{Credit, Gate};
use crate::protocol::{Response, RowUpdate};
use crossbeam_channel::Sender;
use parking_lot::Mutex;
use repr::{Deltas, Diff, GlobalId, SqlError, Timestamp};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

/// Set when a peek is cancelled; polled by whatever works on it.
pub type Cancel = Arc<AtomicBool>;

pub struct Hub {
    peers: usize,
    out: Sender<Response>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    peeks: BTreeMap<GlobalId, Peek>,
    subscribes: BTreeMap<GlobalId, Subscribe>,
    frontiers: BTreeMap<GlobalId, Frontiers>,
}

#[derive(Default)]
struct Peek {
    done: usize,
    error: Option<SqlError>,
    cancel: Cancel,
    gate: Arc<Gate>,
    /// Rows still wanted.
    left: Option<u64>,
    /// Whether its rows come with positive diffs: the workers that have not told yet, and what the others said.
    untold: usize,
    summed: bool,
    /// Rows that came before that was known.
    held: Vec<(Deltas, Credit)>,
}

struct Subscribe {
    uppers: Vec<Timestamp>,
    lower: Timestamp,
    updates: BTreeMap<Timestamp, Vec<RowUpdate>>,
    errors: BTreeMap<Timestamp, Vec<(SqlError, Diff)>>,
    standing: BTreeMap<SqlError, Diff>,
    with_snapshot: bool,
    as_of: Timestamp,
    ended: bool,
}

#[derive(Clone, Copy, Default, PartialEq)]
pub struct Size {
    pub records: u64,
    pub bytes: u64,
}

struct Frontiers {
    uppers: Vec<Timestamp>,
    sizes: Vec<Size>,
    sent: Timestamp,
}

impl Hub {
    pub fn new(peers: usize, out: Sender<Response>) -> Hub {
        Hub { peers, out, state: Mutex::default() }
    }

    /// A send fails only when the coordinator is gone, and then nobody listens.
    pub fn send(&self, r: Response) {
        let _ = self.out.send(r);
    }

    /// The cancel flag and the gate of a peek of an arrangement; the first worker to ask announces it.
    pub fn open_peek(&self, id: GlobalId, limit: Option<u64>) -> (Cancel, Arc<Gate>) {
        let mut state = self.state.lock();
        let peek = state.peeks.entry(id).or_insert_with(|| Peek { left: limit, summed: true, ..Peek::default() });
        (peek.cancel.clone(), peek.gate.clone())
    }

    /// The gate of a one-off result of a dataflow. Each worker then tells whether its part [comes summed](Hub::comes_summed).
    pub fn open_result(&self, id: GlobalId) -> Arc<Gate> {
        let mut state = self.state.lock();
        let peek = state.peeks.entry(id).or_insert_with(|| Peek { summed: true, untold: self.peers, ..Peek::default() });
        peek.gate.clone()
    }

    /// A worker tells whether what it reads makes positive diffs only. Rows go out once all workers have told.
    pub fn comes_summed(&self, id: GlobalId, summed: bool) {
        let mut state = self.state.lock();
        let Some(peek) = state.peeks.get_mut(&id) else { return };
        peek.untold = peek.untold.saturating_sub(1);
        peek.summed &= summed;
        if peek.untold == 0 {
            let (summed, held) = (peek.summed, std::mem::take(&mut peek.held));
            for (rows, credit) in held {
                self.send(Response::PeekRows { id, rows, summed, credit });
            }
            self.end_peek(&mut state, id);
        }
    }

    /// Answers a peek once all its parts are over and their rows sent.
    fn end_peek(&self, state: &mut State, id: GlobalId) {
        if let Some(peek) = state.peeks.get_mut(&id).filter(|p| p.done == self.peers && p.untold == 0) {
            let error = peek.error.take();
            state.peeks.remove(&id);
            self.send(Response::PeekDone { id, result: error.map_or(Ok(()), Err) });
        }
    }

    pub fn cancel_peek(&self, id: GlobalId) {
        let gate = self.state.lock().peeks.get(&id).map(|p| {
            p.cancel.store(true, Ordering::Relaxed);
            p.gate.clone()
        });
        if let Some(gate) = gate {
            gate.free();
        }
    }

    /// Passes rows on; false when no more are wanted.
    pub fn peek_rows(&self, id: GlobalId, mut rows: Deltas) -> bool {
        let mut state = self.state.lock();
        let Some(peek) = state.peeks.get_mut(&id) else { return false };
        if peek.cancel.load(Ordering::Relaxed) || peek.error.is_some() {
            return false;
        }
        if let Some(left) = &mut peek.left {
            let mut kept = 0;
            while kept < rows.len() && *left > 0 {
                *left = left.saturating_sub(rows.diffs.get(kept).unsigned_abs());
                kept += 1;
            }
            if kept < rows.len() {
                rows = Deltas { rows: rows.rows.slice(0, kept), diffs: rows.diffs.slice(0, kept) };
            }
        }
        let more = peek.left != Some(0);
        let credit = peek.gate.charge(rows.rows.bytes());
        if rows.is_empty() {
            return more;
        }
        if peek.untold > 0 {
            peek.held.push((rows, credit));
            return more;
        }
        let summed = peek.summed;
        drop(state);
        self.send(Response::PeekRows { id, rows, summed, credit });
        more
    }

    /// A worker's part of a peek is over.
    pub fn peek_done(&self, id: GlobalId, result: Result<(), SqlError>) {
        let mut state = self.state.lock();
        let Some(peek) = state.peeks.get_mut(&id) else { return };
        peek.done += 1;
        if let Err(e) = result {
            peek.error = Some(match peek.error.take() {
                Some(old) if old < e => old,
                _ => e,
            });
        }
        self.end_peek(&mut state, id);
    }

    pub fn open_subscribe(&self, id: GlobalId, as_of: Timestamp, with_snapshot: bool) {
        self.state.lock().subscribes.entry(id).or_insert_with(|| Subscribe {
            uppers: vec![as_of; self.peers],
            lower: as_of,
            updates: BTreeMap::new(),
            errors: BTreeMap::new(),
            standing: BTreeMap::new(),
            with_snapshot,
            as_of,
            ended: false,
        });
    }

    pub fn subscribe_updates(&self, id: GlobalId, updates: Vec<RowUpdate>) {
        let mut state = self.state.lock();
        if let Some(s) = state.subscribes.get_mut(&id).filter(|s| !s.ended) {
            for u in updates {
                if s.with_snapshot || u.1 > s.as_of {
                    s.updates.entry(u.1).or_default().push(u);
                }
            }
        }
    }

    pub fn subscribe_errors(&self, id: GlobalId, errors: Vec<(SqlError, Timestamp, Diff)>) {
        let mut state = self.state.lock();
        if let Some(s) = state.subscribes.get_mut(&id).filter(|s| !s.ended) {
            for (e, t, d) in errors {
                s.errors.entry(t).or_default().push((e, d));
            }
        }
    }

    /// A worker's part is complete below `upper` (`None`: for good).
    pub fn subscribe_upper(&self, id: GlobalId, worker: usize, upper: Option<Timestamp>) {
        let mut state = self.state.lock();
        let Some(s) = state.subscribes.get_mut(&id).filter(|s| !s.ended) else { return };
        s.uppers[worker] = upper.unwrap_or(Timestamp::MAX);
        let least = s.uppers.iter().copied().min().unwrap_or(Timestamp::MAX);
        if least <= s.lower {
            return;
        }
        // The first time below `least` at which an error stands.
        let mut failed = None;
        while let Some(e) = s.errors.first_entry().filter(|e| *e.key() < least) {
            let (t, changes) = e.remove_entry();
            for (e, d) in changes {
                *s.standing.entry(e).or_default() += d;
            }
            s.standing.retain(|_, d| *d != 0);
            if s.standing.values().any(|d| *d > 0) {
                failed = Some(t);
                break;
            }
        }
        let end = failed.unwrap_or(least);
        let later = s.updates.split_off(&end);
        let updates: Vec<RowUpdate> = std::mem::replace(&mut s.updates, later).into_values().flatten().collect();
        let finished = failed.is_none() && least == Timestamp::MAX;
        let (lower, upper) = (s.lower, (!finished).then_some(end));
        s.lower = end;
        s.ended = finished || failed.is_some();
        if finished || end > lower || !updates.is_empty() {
            self.send(Response::Subscribe { id, lower, upper, updates: Ok(updates) });
        }
        if failed.is_some() {
            let least_error = s.standing.iter().find(|(_, d)| **d > 0).map(|(e, _)| e.clone());
            let e = least_error.unwrap_or_else(|| SqlError::internal("an error that does not stand"));
            self.send(Response::Subscribe { id, lower: end, upper: None, updates: Err(e) });
        }
    }

    pub fn drop_subscribe(&self, id: GlobalId) {
        self.state.lock().subscribes.remove(&id);
    }

    pub fn frontier(&self, index: GlobalId, worker: usize, upper: Timestamp, size: Size) {
        let mut state = self.state.lock();
        let f = state.frontiers.entry(index).or_insert_with(|| Frontiers { uppers: vec![0; self.peers], sizes: vec![Size::default(); self.peers], sent: 0 });
        f.uppers[worker] = upper;
        f.sizes[worker] = size;
        let upper = f.uppers.iter().copied().min().unwrap_or(0);
        if upper > f.sent {
            f.sent = upper;
            let records = f.sizes.iter().map(|s| s.records).sum();
            let bytes = f.sizes.iter().map(|s| s.bytes).sum();
            self.send(Response::Frontier { index, upper, records, bytes });
        }
    }

    /// A worker has dropped its part of an arrangement. Another of the same id may have begun on others.
    pub fn drop_frontier(&self, index: GlobalId, worker: usize) {
        let mut state = self.state.lock();
        if let Some(f) = state.frontiers.get_mut(&index) {
            (f.uppers[worker], f.sizes[worker], f.sent) = (0, Size::default(), 0);
            if f.uppers.iter().all(|u| *u == 0) {
                state.frontiers.remove(&index);
            }
        }
    }
}
