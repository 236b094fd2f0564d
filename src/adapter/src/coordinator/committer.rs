//! Ticks: validation of writes, durability, distribution.
//!
//! What is ready from tables and sources goes into one tick: one record, one fdatasync, one time. Transactions are
//! validated in the order they came (optimistic, first committer wins): a conflict is 40001, a key met twice 23505.

use super::reads::ShardSnapshot;
use super::request::{Answer, WriteTxn};
use super::touched::Touched;
use super::{Coordinator, LEASE_MS};
use crate::catalog::key;
use crate::changes::Changes;
use crate::session::read_set::KeyOf;
use dataflow::{Command, SnapshotReader};
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
        let mut staged_units = Vec::new();
        // Parts live at least until the tick names them.
        let mut with_parts: Vec<Changes> = Vec::new();

        let mut rest = std::mem::take(&mut self.pending.writes).into_iter();
        for (txn, answer) in rest.by_ref() {
            bytes += txn.writes.iter().map(|w| w.1.bytes()).sum::<usize>();
            if bytes > TICK_BYTES_MAX && !answers.is_empty() {
                self.pending.writes.push((txn, answer));
                break;
            }
            let checked = self.validate(&txn, &changes, &touched).and_then(|()| {
                for (table, changes) in &txn.writes {
                    if catalog.item(*table).is_none() {
                        let m = "could not serialize access: the table was dropped or altered meanwhile";
                        return Err(SqlError::new(state::SERIALIZATION_FAILURE, m).with_hint("The transaction might succeed if retried."));
                    }
                    self.keys.apply(&catalog, *table, changes, &Default::default(), &mut undo)?;
                }
                self.keys.foreign.check((&catalog, &catalog), &self.keys, &txn.writes, &Default::default(), &txn.acted)
            });
            match checked {
                Ok(()) => {
                    undo.commit_txn();
                    for (table, written) in txn.writes {
                        touched.add(table, &written, &self.keys);
                        changes.entry(table).or_default().extend(written.rows().iter().cloned());
                        if written.has_parts() {
                            staged_units.extend(written.staged());
                            with_parts.push(written);
                        }
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
        let mut rows = 0;
        let mut rest = std::mem::take(&mut self.pending.staged).into_iter().peekable();
        // The first always fits: what is large of a unit was staged.
        while let Some(mut unit) = rest.next_if(|unit| with_sources && (taken.is_empty() || bytes + unit.bytes() <= TICK_BYTES_MAX)) {
            rows += unit.rows();
            bytes += unit.bytes();
            for (shard, deltas) in &unit.deltas {
                if catalog.item(*shard).is_some() {
                    changes.entry(*shard).or_default().push(deltas.clone());
                }
            }
            staged_units.extend(unit.files.iter().filter(|u| catalog.item(u.shard).is_some()).cloned());
            self.sources.date(&mut unit, t);
            meta.push((key::source(unit.source), Some(unit.durable_state())));
            taken.push(unit);
            if rows >= TICK_ROWS_MAX {
                break;
            }
        }
        self.pending.staged = rest.collect();

        let shards: Vec<(GlobalId, Deltas)> =
            changes.into_iter().flat_map(|(id, parts)| parts.into_iter().map(move |d| (id, d))).filter(|d| !d.1.is_empty()).collect();
        if shards.is_empty() && meta.is_empty() && staged_units.is_empty() {
            // Transactions that changed nothing: they are as of the closed time.
            for answer in answers {
                let _ = answer.send(Ok(self.closed));
            }
            return true;
        }
        let started = std::time::Instant::now();
        let tick = storage::Tick { t, lease: t + LEASE_MS, staged: staged_units.clone(), meta, ..Default::default() };
        let appended = self.append_changes(tick, shards);
        drop(with_parts);
        let shards = match appended {
            Ok(shards) => shards,
            Err(e) => {
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
        };
        storage::kill_point("tick-after-append");
        let parts = self.read_back(&staged_units);
        let metrics = &self.shared.metrics;
        metrics.ticks.inc();
        metrics.tick_seconds.observe(started.elapsed().as_secs_f64());
        metrics.log_sync_seconds.observe(self.store.last_sync().as_secs_f64());
        metrics.rows_ingested.inc_by(shards.iter().map(|s| s.1.len() as u64).chain(parts.iter().map(|p| p.1.rows())).sum());
        self.touched.note(touched, t);
        self.distribute(t, shards, parts);
        for answer in answers {
            let _ = answer.send(Ok(t));
        }
        for unit in taken {
            self.sources.committed(&unit);
        }
        self.wake_reads();
        true
    }

    /// Makes a tick with these changes durable; those that would not fit one log record are written as parts first, as a source's large unit is.
    /// Answers with the changes, one or several for each shard. Errors: as for `append`; nothing is left staged then.
    pub(super) fn append_changes(&mut self, mut tick: storage::Tick, changes: Vec<(GlobalId, Deltas)>) -> Result<Vec<(GlobalId, Deltas)>, SqlError> {
        let mut by_shard: BTreeMap<GlobalId, Vec<Deltas>> = BTreeMap::new();
        for (shard, deltas) in changes {
            by_shard.entry(shard).or_default().push(deltas);
        }
        let handle = self.store.handle();
        let (mut all, mut large) = (Vec::new(), Vec::new());
        for (shard, parts) in by_shard {
            if parts.iter().map(|d| d.rows.bytes()).sum::<usize>() < RECORD_BYTES_MAX {
                let one = Deltas::concat(parts);
                tick.shards.push((shard, one.clone()));
                all.push((shard, one));
                continue;
            }
            let known = self.store.shards().into_iter().find(|s| s.0 == shard).map(|s| s.1.to_vec());
            let types = known.or_else(|| tick.create.iter().find(|c| c.0 == shard).map(|c| c.1.clone()));
            let mut changes: Changes = parts.iter().cloned().collect();
            changes.stage(&handle, shard, &types.unwrap_or_default())?;
            tick.staged.extend(changes.staged());
            // Parts live at least until the tick names them.
            large.push(changes);
            all.extend(parts.into_iter().map(|d| (shard, d)));
        }
        self.append(tick)?;
        Ok(all)
    }

    /// Parts that a tick has just named, as the workers read them. They are in the files: what cannot be read now ends the process.
    pub(super) fn read_back(&self, units: &[storage::StagedUnit]) -> Vec<(GlobalId, Arc<ShardSnapshot>)> {
        let read = |unit: &storage::StagedUnit| match self.store.staged(unit) {
            Ok(parts) => (unit.shard, Arc::new(ShardSnapshot(parts))),
            Err(e) => (self.fatal)(&format!("staged part of shard {} cannot be read back: {e}", unit.shard)),
        };
        units.iter().map(read).collect()
    }

    /// Hands a durable tick to the workers: its time is closed.
    pub(super) fn distribute(&mut self, t: Timestamp, shards: Vec<(GlobalId, Deltas)>, parts: Vec<(GlobalId, Arc<ShardSnapshot>)>) {
        for id in shards.iter().map(|s| s.0).chain(parts.iter().map(|p| p.0)) {
            self.last_write.insert(id, t);
        }
        self.set_closed(t);
        let parts = parts.into_iter().map(|(id, reader)| (id, reader as Arc<dyn SnapshotReader>)).collect();
        // Before hydration nothing could follow: views begin at an earlier time, and take in the ticks since then.
        if self.hydrated {
            self.cluster.send(Command::Tick { t, shards: Arc::new(shards), parts });
        }
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
