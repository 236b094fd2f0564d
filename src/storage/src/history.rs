//! A shard's changes after a time, tick by tick: for views that hydrate in the past and then follow.

use crate::file::{FileReader, Updates};
use crate::shard::{Shard, TailData};
use arrow_array::UInt32Array;
use repr::{Deltas, SqlError, Timestamp};
use std::collections::BTreeMap;

/// So many rows of one time are one entry.
const ROWS_TOGETHER: usize = 10_000;

/// Changes with times beyond `after`, in order of time, not consolidated. A time has several entries if it is large: one could not hold them.
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
    let mut out = Vec::with_capacity(by_time.len());
    for (t, parts) in by_time {
        match parts.iter().map(Deltas::len).sum::<usize>() <= ROWS_TOGETHER {
            true => out.push((t, Deltas::concat(parts))),
            false => out.extend(parts.into_iter().map(|p| (t, p))),
        }
    }
    Ok(out)
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
