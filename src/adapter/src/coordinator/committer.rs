//! Ticks: validation of writes, durability, distribution.
//!
//! What is ready from tables and sources goes into one tick: one record, one fdatasync, one time. Transactions are
//! validated in the order they came (optimistic, first committer wins): a conflict is 40001, a key met twice 23505.

use super::request::{Answer, WriteTxn};
use super::touched::Touched;
use super::{Coordinator, LEASE_MS};
use crate::catalog::key;
use crate::session::read_set::KeyOf;
use dataflow::Command;
use repr::error::state;
use repr::{Deltas, GlobalId, SqlError, Timestamp};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What waits for the next tick.
#[derive(Default)]
pub struct Pending {
    pub writes: Vec<(WriteTxn, Answer<Timestamp>)>,
    pub staged: Vec<super::sources::ReadyUnit>,
    /// A tick failed: what sources brought is tried again then, and not before, so that a full disk keeps nobody from reading.
    pub retry_at: Timestamp,
}

impl Pending {
    /// Whether something waits that can be tried at `now`.
    pub fn waits(&self, now: Timestamp) -> bool {
        !self.writes.is_empty() || self.sources_wait(now)
    }

    fn sources_wait(&self, now: Timestamp) -> bool {
        // A clock that went back does not hold them up for longer.
        !self.staged.is_empty() && (self.retry_at <= now || self.retry_at > now + RETRY_MS)
    }
}

/// Changes of a shard beyond this are staged.
const RECORD_BYTES_MAX: usize = 128 << 20;
/// So large are the parts, about.
const PART_BYTES: usize = 32 << 20;
/// How long what sources brought waits after a tick that failed.
pub(super) const RETRY_MS: u64 = 100;
/// Rows a tick takes from sources before the rest waits for the next one.
const TICK_ROWS_MAX: usize = 500_000;
/// Bytes a tick takes before the rest waits: of one table they become one batch, which 32-bit offsets bound.
const TICK_BYTES_MAX: usize = 512 << 20;

impl Coordinator {
    /// Makes a tick durable. A fatal error ends the process.
    pub(super) fn append(&mut self, tick: storage::Tick) -> Result<(), SqlError> {
        let lease = tick.lease;
        let result = self.store.append(tick);
        if let Some(e) = self.store.fatal() {
            (self.fatal)(&format!("{e}; nothing that was not acknowledged before is promised, restart to recover"));
        }
        result?;
        self.lease = self.lease.max(lease);
        Ok(())
    }

    /// Commits everything that waits, in as few ticks as the bound allows. What a failed tick leaves is tried again later.
    pub(super) fn commit_pending(&mut self) {
        while self.pending.waits(self.clock.now_ms()) && self.tick() {}
    }

    /// One tick. Answers whether it went well.
    fn tick(&mut self) -> bool {
        let with_sources = self.pending.sources_wait(self.clock.now_ms());
        let t = self.next_time();
        let catalog = self.catalog();
        let mut changes: BTreeMap<GlobalId, Vec<Deltas>> = BTreeMap::new();
        let mut answers = Vec::new();
        let mut undo = super::keys::Undo::default();
        let mut touched = Touched::default();

        let mut bytes = 0;
        let mut rest = std::mem::take(&mut self.pending.writes).into_iter();
        while let Some((txn, answer)) = rest.next() {
            bytes += txn.writes.iter().map(|w| w.1.rows.bytes()).sum::<usize>();
            if bytes > TICK_BYTES_MAX && !answers.is_empty() {
                self.pending.writes.push((txn, answer));
                break;
            }
            let checked = self.validate(&txn, &changes, &touched).and_then(|()| {
                for (table, deltas) in &txn.writes {
                    if catalog.item(*table).is_none() {
                        let m = "could not serialize access: the table was dropped or altered meanwhile";
                        return Err(SqlError::new(state::SERIALIZATION_FAILURE, m).with_hint("The transaction might succeed if retried."));
                    }
                    self.keys.apply(&catalog, *table, deltas, &mut undo)?;
                }
                self.keys.foreign.check(&catalog, &self.keys, &txn.writes, &Default::default(), &txn.acted)
            });
            match checked {
                Ok(()) => {
                    undo.commit_txn();
                    for (table, deltas) in &txn.writes {
                        touched.add(*table, deltas, &self.keys);
                    }
                    for (table, deltas) in txn.writes {
                        changes.entry(table).or_default().push(deltas);
                    }
                    answers.push(answer);
                }
                Err(e) => {
                    self.keys.undo_txn(&mut undo);
                    let _ = answer.send(Err(e));
                }
            }
        }

        self.pending.writes.extend(rest);

        let sequences = self.shared.sequences.take_changed();
        let mut meta = sequences.meta();
        let mut taken = Vec::new();
        let mut staged_units = Vec::new();
        let mut rows = 0;
        let mut rest = std::mem::take(&mut self.pending.staged).into_iter().peekable();
        // The first always fits: what is large of a unit was staged.
        while let Some(unit) = rest.next_if(|unit| with_sources && (taken.is_empty() || bytes + unit.bytes() <= TICK_BYTES_MAX)) {
            rows += unit.rows();
            bytes += unit.bytes();
            for (shard, deltas) in &unit.deltas {
                if catalog.item(*shard).is_some() {
                    changes.entry(*shard).or_default().push(deltas.clone());
                }
            }
            staged_units.extend(unit.files.iter().filter(|u| catalog.item(u.shard).is_some()).cloned());
            meta.push((key::source(unit.source), Some(unit.durable_state())));
            taken.push(unit);
            if rows >= TICK_ROWS_MAX {
                break;
            }
        }
        self.pending.staged = rest.collect();

        let mut shards: Vec<(GlobalId, Deltas)> = changes.into_iter().map(|(id, parts)| (id, Deltas::concat(parts))).filter(|(_, d)| !d.is_empty()).collect();
        if shards.is_empty() && meta.is_empty() && staged_units.is_empty() {
            // Transactions that changed nothing: they are as of the closed time.
            for answer in answers {
                let _ = answer.send(Ok(self.closed));
            }
            return true;
        }
        let started = std::time::Instant::now();
        let appended = self.stage_large(&shards).and_then(|(small, large)| {
            let staged = staged_units.iter().chain(&large).cloned().collect();
            let tick = storage::Tick { t, lease: t + LEASE_MS, shards: small, staged, meta, ..Default::default() };
            self.append(tick).inspect_err(|_| large.iter().for_each(|unit| self.store.unstage(&unit.files)))
        });
        if let Err(e) = appended {
            self.keys.undo_tick(undo);
            self.shared.sequences.put_back(sequences);
            for answer in answers {
                let _ = answer.send(Err(e.clone()));
            }
            // Sources keep their place: the same units are tried again, after a pause that lets the disk recover.
            tracing::warn!("tick {t} was abandoned: {e}");
            self.shared.metrics.ticks_abandoned.inc();
            taken.append(&mut self.pending.staged);
            self.pending.staged = taken;
            self.pending.retry_at = self.clock.now_ms() + RETRY_MS;
            return false;
        }
        storage::kill_point("tick-after-append");
        for unit in &staged_units {
            // Part by part: a unit may be larger than one batch can be.
            let parts: Result<Vec<Deltas>, SqlError> = self.store.staged(unit).and_then(|parts| parts.read(0, 1).collect());
            match parts {
                Ok(parts) => shards.extend(parts.into_iter().map(|part| (unit.shard, part))),
                Err(e) => (self.fatal)(&format!("staged part of shard {} cannot be read back: {e}", unit.shard)),
            }
        }
        let metrics = &self.shared.metrics;
        metrics.ticks.inc();
        metrics.tick_seconds.observe(started.elapsed().as_secs_f64());
        metrics.log_sync_seconds.observe(self.store.last_sync().as_secs_f64());
        metrics.rows_ingested.inc_by(shards.iter().map(|s| s.1.len() as u64).sum());
        for (id, _) in &shards {
            self.last_write.insert(*id, t);
        }
        self.touched.note(touched, t);
        self.closed = t;
        self.cluster.send(Command::Tick { t, shards: Arc::new(shards) });
        for answer in answers {
            let _ = answer.send(Ok(t));
        }
        for unit in taken {
            self.sources.committed(&unit);
        }
        self.wake_reads();
        true
    }

    /// A transaction whose changes would not fit one log record is written as parts, as a source's large unit is. Answers with what stays for the
    /// record and what was staged. Errors: the disk's; nothing is left staged then.
    fn stage_large(&self, shards: &[(GlobalId, Deltas)]) -> Result<(Vec<(GlobalId, Deltas)>, Vec<storage::StagedUnit>), SqlError> {
        let (mut small, mut large) = (Vec::new(), Vec::<storage::StagedUnit>::new());
        for (shard, deltas) in shards {
            if deltas.rows.bytes() < RECORD_BYTES_MAX {
                small.push((*shard, deltas.clone()));
                continue;
            }
            let mut unit = storage::StagedUnit { shard: *shard, files: Vec::new() };
            let rows = (deltas.len() * PART_BYTES / deltas.rows.bytes()).max(1);
            for from in (0..deltas.len()).step_by(rows) {
                let n = rows.min(deltas.len() - from);
                let part = Deltas { rows: deltas.rows.slice(from, n), diffs: deltas.diffs.slice(from, n) };
                match self.store.stage(*shard, &part) {
                    Ok(file) => unit.files.push(file),
                    Err(e) => {
                        large.push(unit);
                        large.iter().for_each(|unit| self.store.unstage(&unit.files));
                        return Err(e);
                    }
                }
            }
            large.push(unit);
        }
        Ok((small, large))
    }

    /// Errors: 40001 if what the transaction read has changed since, in a tick or earlier in this one.
    pub(super) fn validate(&self, txn: &WriteTxn, changes: &BTreeMap<GlobalId, Vec<Deltas>>, touched: &Touched) -> Result<(), SqlError> {
        let Some(read_at) = txn.read_at else { return Ok(()) };
        let changed = |id: &GlobalId| self.last_write.get(id).is_some_and(|w| *w > read_at) || changes.contains_key(id);
        let key_changed = |(of, keys): (&KeyOf, &BTreeSet<Vec<u8>>)| touched.meets(*of, keys) || self.touched.changed_since(*of, keys, read_at);
        if txn.read_set.whole.iter().any(changed) || txn.read_set.keys.iter().any(key_changed) {
            return Err(SqlError::new(state::SERIALIZATION_FAILURE, "could not serialize access due to concurrent update")
                .with_hint("The transaction might succeed if retried."));
        }
        Ok(())
    }
}
