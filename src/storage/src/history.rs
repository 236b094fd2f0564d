//! A shard's changes after a time, tick by tick: for views that hydrate in the past and then follow.

use crate::file::{FileReader, Updates};
use crate::shard::{Shard, TailData};
use arrow_array::UInt32Array;
use repr::{Batch, Col, Deltas, SqlError, Timestamp};
use std::collections::BTreeMap;

/// Changes with times beyond `after`, in order of time, one entry a time (not consolidated).
/// Holds the changes in memory: what the retention keeps, not the shard.
pub(crate) fn changes(shard: &Shard, after: Timestamp) -> Result<Vec<(Timestamp, Deltas)>, SqlError> {
    let mut by_time: BTreeMap<Timestamp, Vec<Deltas>> = BTreeMap::new();
    for batch in &shard.batches {
        for file in batch.files.iter().filter(|f| f.meta.time_max > after) {
            let reader = FileReader::open(file, &shard.types)?;
            for block in 0..reader.blocks() {
                split(reader.block(block)?, after, &mut by_time);
            }
        }
    }
    for entry in shard.tail.iter().filter(|e| e.t > after) {
        match &entry.data {
            TailData::Deltas(d) => by_time.entry(entry.t).or_default().push((**d).clone()),
            TailData::Staged(file) => {
                let reader = FileReader::open(file, &shard.types)?;
                for block in 0..reader.blocks() {
                    let updates = reader.block(block)?;
                    by_time.entry(entry.t).or_default().push(Deltas { rows: updates.rows, diffs: updates.diffs });
                }
            }
        }
    }
    Ok(by_time.into_iter().map(|(t, parts)| (t, concat(parts))).collect())
}

fn split(updates: Updates, after: Timestamp, by_time: &mut BTreeMap<Timestamp, Vec<Deltas>>) {
    let mut rows: BTreeMap<Timestamp, Vec<u32>> = BTreeMap::new();
    for (i, t) in updates.times.iter().enumerate().filter(|(_, t)| **t > after) {
        rows.entry(*t).or_default().push(i as u32);
    }
    for (t, rows) in rows {
        let diffs = updates.diffs.take(&rows);
        by_time.entry(t).or_default().push(Deltas { rows: updates.rows.take(&UInt32Array::from(rows)), diffs });
    }
}

fn concat(parts: Vec<Deltas>) -> Deltas {
    let mut diffs = Col::default();
    for p in &parts {
        diffs.extend(&p.diffs, 0, p.diffs.len());
    }
    let rows: Vec<Batch> = parts.into_iter().map(|p| p.rows).collect();
    Deltas { rows: Batch::concat(&rows), diffs }
}
