//! Which dataflows a tick touches, and when the others are brought up.
//!
//! A tick reaches at once: dataflows that read a changed shard, dataflows with temporal filters, those that a waiting peek
//! reads; from these on everything downstream, and of all of those everything upstream (an output is complete only when
//! all inputs are). The others are brought up after [`LAZY`] at most, or as soon as somebody waits for them.

use super::{slice, State};
use crate::protocol::SnapshotReader;
use repr::{Deltas, GlobalId, Timestamp};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long a dataflow without changes may lag behind the ticks.
const LAZY: Duration = Duration::from_millis(200);

impl State<'_> {
    pub(super) fn tick(&mut self, t: Timestamp, shards: &[(GlobalId, Deltas)], parts: &[(GlobalId, Arc<dyn SnapshotReader>)]) {
        self.closed = self.closed.max(t + 1);
        let changed: BTreeSet<GlobalId> = shards.iter().filter(|s| !s.1.is_empty()).map(|s| s.0).chain(parts.iter().map(|p| p.0)).collect();
        let peeked: BTreeSet<GlobalId> = self.waiting.iter().filter_map(|w| self.owners.get(&w.request.index).copied()).collect();
        let touched = self.dataflows.iter().filter(|(id, d)| d.temporal || peeked.contains(id) || d.inputs.iter().any(|i| changed.contains(&i.0)));
        let touched = self.closure(touched.map(|d| *d.0).collect());
        for id in &touched {
            if let Some(d) = self.dataflows.get(id) {
                for (shard, input) in &d.inputs {
                    for (_, deltas) in shards.iter().filter(|s| s.0 == *shard) {
                        input.push(t, slice(deltas, self.index, self.peers));
                    }
                    for (_, reader) in parts.iter().filter(|p| p.0 == *shard) {
                        input.push_parts(t, reader.read(self.index, self.peers, input.wanted.as_deref()));
                    }
                }
            }
        }
        self.bring_up(touched.into_iter());
        if self.sweep_at.is_none() && self.dataflows.values().any(|d| d.told < self.closed) {
            self.sweep_at = Some(Instant::now() + LAZY);
        }
    }

    /// Tells dataflows how far the shards are complete.
    fn bring_up(&mut self, ids: impl Iterator<Item = GlobalId>) {
        for id in ids {
            if let Some(d) = self.dataflows.get_mut(&id).filter(|d| d.told < self.closed) {
                d.told = self.closed;
                d.inputs.iter().for_each(|i| i.1.close(self.closed));
            }
        }
    }

    /// Brings up a dataflow that somebody waits for, and all that it reads.
    pub(super) fn catch_up(&mut self, id: GlobalId) {
        let all = self.upstream([id].into());
        self.bring_up(all.into_iter());
    }

    /// Brings up everything that is due; the time until something next is.
    pub(super) fn sweep(&mut self) -> Option<Duration> {
        let left = self.sweep_at?.saturating_duration_since(Instant::now());
        if !left.is_zero() {
            return Some(left);
        }
        self.sweep_at = None;
        let all: Vec<GlobalId> = self.dataflows.keys().copied().collect();
        self.bring_up(all.into_iter());
        None
    }

    /// Everything downstream, and of that everything upstream.
    fn closure(&self, mut set: BTreeSet<GlobalId>) -> BTreeSet<GlobalId> {
        loop {
            let reads = |imports: &[GlobalId]| imports.iter().any(|i| self.owners.get(i).is_some_and(|o| set.contains(o)));
            let more: Vec<GlobalId> = self.dataflows.iter().filter(|(id, d)| !set.contains(id) && reads(&d.imports)).map(|d| *d.0).collect();
            if more.is_empty() {
                return self.upstream(set);
            }
            set.extend(more);
        }
    }

    fn upstream(&self, set: BTreeSet<GlobalId>) -> BTreeSet<GlobalId> {
        let mut todo: Vec<GlobalId> = set.iter().copied().collect();
        let mut all = set;
        while let Some(id) = todo.pop() {
            let imports = self.dataflows.get(&id).map(|d| d.imports.clone()).unwrap_or_default();
            for owner in imports.iter().filter_map(|i| self.owners.get(i)) {
                if all.insert(*owner) {
                    todo.push(*owner);
                }
            }
        }
        all
    }
}
