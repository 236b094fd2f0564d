//! Upsert: the last message of a key is its row, a null value deletes it.
//!
//! ```text
//!   offset   key  value        state            the batch's changes (10..13 in one batch)
//!   10       a    1            a: 1
//!   11       a    2            a: 2
//!   12       b    9            a: 2, b: 9       (a,2) +1   (b,9) +1
//!   13       c    null         a: 2, b: 9
//! ```
//! State: one row a live key ([`KeyedRows`]), read back from the durable output at a start, so a restart needs no second store.
//! A column that a message left out because it did not change (Debezium, long values) is taken from the key's row; then what came before is
//! settled first, so that this row is known.
//! A value that cannot be decoded leaves the old row; a null or undecodable key changes nothing: both are the caller's error row.

use crate::decode::{Decoder, Rows};
use crate::record::Record;
use repr::batch::Col;
use repr::keyed::Loading;
use repr::{Batch, ColType, Deltas, Diff, KeyedRows, RowCodec, SqlError, Value};
use std::collections::HashMap;

type Bytes = Box<[u8]>;

pub struct Upsert {
    key: Vec<usize>,
    codec: RowCodec,
    key_codec: RowCodec,
    state: KeyedRows,
    rows: Rows,
    /// For each of `rows`, whether it deletes its key (its other columns are NULL then).
    deletes: Vec<bool>,
    /// Changes of messages before those in `rows`: the state has them already.
    settled: Vec<Deltas>,
    /// One row, for looking up its key.
    probe: Rows,
    /// Messages that gave their key a row, or took it.
    pub taken: u64,
}

impl Upsert {
    /// `key`: the key's columns.
    pub fn new(types: Vec<ColType>, key: Vec<usize>) -> Upsert {
        let key_types = key.iter().map(|i| types[*i].clone()).collect();
        Upsert {
            state: KeyedRows::new(types.clone(), key.clone()),
            key,
            rows: Rows::new(&types),
            probe: Rows::new(&types),
            settled: Vec::new(),
            taken: 0,
            codec: RowCodec::new(types),
            key_codec: RowCodec::new(key_types),
            deletes: Vec::new(),
        }
    }

    pub fn pending(&self) -> usize {
        self.rows.len() + self.settled.iter().map(Deltas::len).sum::<usize>()
    }
    pub fn pending_bytes(&self) -> usize {
        self.rows.bytes() + self.settled.iter().map(|d| d.rows.bytes()).sum::<usize>()
    }
    /// Rows that are kept, and the bytes they take in memory.
    pub fn state_size(&self) -> (usize, usize) {
        (self.state.len(), self.state.bytes())
    }

    /// Reads the state back from what is durable. Parts need not be consolidated: a row counts as often as its diffs say.
    /// Errors: a part that cannot be read; a key with two rows (damage).
    pub fn restore(&mut self, parts: impl Iterator<Item = Result<Deltas, SqlError>>) -> Result<(), SqlError> {
        let mut loading = Loading::new(self.codec.types().to_vec(), self.key.clone());
        for part in parts {
            let part = part?;
            let mut rows = Encoded::default();
            self.codec.encode_rows(&part.rows.cols, part.len(), &mut rows.bytes, &mut rows.ends);
            (0..part.len()).for_each(|i| loading.add(rows.get(i), *part.diffs.get(i)));
        }
        self.state = loading.finish().ok_or_else(|| {
            let m = "the durable rows of a source with ENVELOPE UPSERT or DEBEZIUM do not have unique keys";
            SqlError::new(repr::error::state::DATA_CORRUPTED, m)
        })?;
        Ok(())
    }

    /// Takes in a message. Errors: why it cannot be; nothing is taken in then.
    pub fn push(&mut self, decoder: &mut Decoder, record: &Record<'_>) -> Result<(), String> {
        let key = record.key.ok_or("the message has no key")?;
        decoder.begin();
        match record.value {
            Some(value) => {
                decoder.value(value, None)?;
                decoder.key(key, None)?;
                self.put(decoder, record)
            }
            None => {
                decoder.key(key, None)?;
                self.delete(decoder, record)
            }
        }
    }

    /// The decoder's current cells are the key's new row.
    pub fn put(&mut self, decoder: &mut Decoder, record: &Record<'_>) -> Result<(), String> {
        decoder.meta(record);
        decoder.check_key(&self.key)?;
        if let Some(column) = decoder.unchanged() {
            let why = format!("column \"{column}\" was left out as unchanged in a row that is not known");
            let old = self.row_before(decoder, record).ok_or(why)?;
            decoder.fill_unchanged(old);
        }
        decoder.push(record, &mut self.rows)?;
        self.deletes.push(false);
        self.taken += 1;
        Ok(())
    }

    /// The key in the decoder's current cells has no row any more.
    pub fn delete(&mut self, decoder: &mut Decoder, record: &Record<'_>) -> Result<(), String> {
        decoder.push_key(record, &self.key, &mut self.rows)?;
        self.deletes.push(true);
        self.taken += 1;
        Ok(())
    }

    /// The row that the key in the decoder's current cells has now.
    fn row_before(&mut self, decoder: &Decoder, record: &Record<'_>) -> Option<Vec<Value>> {
        let settled = self.settle();
        if !settled.is_empty() {
            self.settled.push(settled);
        }
        let key = self.key(decoder, record);
        self.state.get(&key).map(|row| self.codec.decode_row(row))
    }

    /// The key in the decoder's current cells.
    pub fn key(&mut self, decoder: &Decoder, record: &Record<'_>) -> Box<[u8]> {
        decoder.append(record, &mut self.probe);
        let probe = self.probe.take();
        self.encode(&probe).0.get(0).into()
    }

    /// The key in the decoder's current cells, unless a part of it is NULL.
    pub fn checked_key(&mut self, decoder: &Decoder, record: &Record<'_>) -> Option<Box<[u8]>> {
        decoder.check_key(&self.key).ok()?;
        Some(self.key(decoder, record))
    }

    /// The changes since the last call, by key, keys in the order of their first message.
    pub fn take(&mut self) -> Deltas {
        let last = self.settle();
        if self.settled.is_empty() {
            return last;
        }
        let mut parts = std::mem::take(&mut self.settled);
        parts.push(last);
        Deltas::concat(parts)
    }

    /// Brings the state up to the last message. Answers with the net changes.
    fn settle(&mut self) -> Deltas {
        let deletes = std::mem::take(&mut self.deletes);
        let batch = self.rows.take();
        if batch.len == 0 {
            return Deltas::default();
        }
        let (keys, rows) = self.encode(&batch);
        let mut last: HashMap<&[u8], u32, foldhash::fast::RandomState> = HashMap::with_capacity_and_hasher(batch.len, Default::default());
        let mut order: Vec<u32> = Vec::new();
        for i in 0..batch.len {
            if last.insert(keys.get(i), i as u32).is_none() {
                order.push(i as u32);
            }
        }
        let mut removed: Vec<Bytes> = Vec::new();
        let mut added: Vec<u32> = Vec::new();
        for first in order {
            let key = keys.get(first as usize);
            let i = last[key];
            if deletes[i as usize] {
                removed.extend(self.state.remove(key));
                continue;
            }
            let row = rows.get(i as usize);
            if self.state.get(key) != Some(row) {
                removed.extend(self.state.insert(key, row));
                added.push(i);
            }
        }
        drop(last);
        let new = if added.len() == batch.len { batch } else { batch.take(&added.clone().into()) };
        if removed.is_empty() {
            return Deltas::inserts(new);
        }
        let old = self.codec.decode(removed.iter().map(|r| &**r));
        let mut diffs: Col<Diff> = Col::same(-1, old.len);
        let plus: Col<Diff> = Col::same(1, new.len);
        diffs.extend(&plus, 0, new.len);
        let rows = if new.len == 0 { old } else { Batch::concat(&[old, new]) };
        Deltas { rows, diffs }
    }

    fn encode(&self, batch: &Batch) -> (Encoded, Encoded) {
        let key_cols: Vec<_> = self.key.iter().map(|i| batch.cols[*i].clone()).collect();
        let (mut keys, mut rows) = (Encoded::default(), Encoded::default());
        self.key_codec.encode_keys(&key_cols, batch.len, &mut keys.bytes, &mut keys.ends);
        self.codec.encode_rows(&batch.cols, batch.len, &mut rows.bytes, &mut rows.ends);
        (keys, rows)
    }
}

/// Byte strings one after another.
#[derive(Default)]
struct Encoded {
    bytes: Vec<u8>,
    ends: Vec<u32>,
}

impl Encoded {
    fn get(&self, i: usize) -> &[u8] {
        let start = if i == 0 { 0 } else { self.ends[i - 1] as usize };
        &self.bytes[start..self.ends[i] as usize]
    }
}
