//! Load generators: data from a seed, resumable exactly.
//!
//! ```text
//!   COUNTER     counter int8: one row a tick, 1, 2, 3, …; MAX CARDINALITY n takes back the row n ticks older
//!   AUCTION     organizations, users, accounts at tick 0; then an auction each 11 ticks and a bid in each of the others
//!   KEY VALUE   key, partition, "offset", value: a snapshot of all keys, then BATCH SIZE keys a tick get a new value
//! ```
//! Every row is a function of seed, start time and tick number, so the position is just these, and a retraction is the
//! old row computed again. A relation that joins later gets all its former rows as its snapshot, as one unit.

use super::{End, Feed};
use crate::decode::cell::EPOCH_SHIFT_MICROS;
use crate::envelope::now_micros;
use crate::spec::*;
use repr::batch::Col;
use repr::error::state;
use repr::{Batch, Deltas, Diff, GlobalId, RelDesc, SqlError, SqlType, Value};
use serde::{Deserialize, Serialize};
use std::time::{Duration, Instant};

/// Where a generator stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Position {
    /// The next tick.
    tick: u64,
    /// Milliseconds since 1970 of tick 0.
    start_ms: i64,
    /// Rows are told by it, so it may not change with the options.
    seed: u64,
}

/// What a generator makes at a tick, with diffs.
type Made = Vec<(Vec<Value>, Diff)>;

#[derive(Clone, Debug)]
enum Load {
    Counter { max: Option<u64> },
    Auction,
    KeyValue { keys: u64, partitions: u64, value_size: usize, batch: u64, rounds: u64, updates: bool },
}

/// The tables of a generator.
pub fn tables(kind: Generator) -> Vec<UpstreamTable> {
    use SqlType::*;
    let table = |schema: &str, name: &str, cols: &[(&str, SqlType)], key: Vec<usize>| UpstreamTable {
        schema: schema.into(),
        name: name.into(),
        desc: RelDesc {
            names: cols.iter().map(|c| c.0.to_string()).collect(),
            types: cols.iter().map(|c| c.1.clone().not_null()).collect(),
            keys: if key.is_empty() { vec![] } else { vec![key] },
        },
    };
    match kind {
        Generator::Counter => vec![table("counter", "counter", &[("counter", Int8)], vec![0])],
        Generator::KeyValue => {
            vec![table("key_value", "key_value", &[("partition", Int8), ("key", Int8), ("offset", Int8), ("value", Bytea)], vec![1])]
        }
        Generator::Auction => vec![
            table("auction", "organizations", &[("id", Int8), ("name", Text)], vec![0]),
            table("auction", "users", &[("id", Int8), ("org_id", Int8), ("name", Text)], vec![0]),
            table("auction", "accounts", &[("id", Int8), ("org_id", Int8), ("balance", Int8)], vec![0]),
            table("auction", "auctions", &[("id", Int8), ("seller", Int8), ("item", Text), ("end_time", TimestampTz)], vec![0]),
            table("auction", "bids", &[("id", Int8), ("buyer", Int8), ("auction_id", Int8), ("amount", Int4), ("bid_time", TimestampTz)], vec![0]),
        ],
    }
}

/// What a row of KEY VALUE takes beside its value.
const KEY_VALUE_ROW_BYTES: u128 = 40;
/// Beyond these a generator would only fill memory.
const KEYS_BYTES_MAX: u128 = 16 << 30;
const BATCH_BYTES_MAX: u128 = 1 << 30;

/// Checks a generator's options.
/// Errors: an unknown option, a value out of range.
pub fn inspect(kind: Generator, options: &[(String, String)]) -> Result<Vec<UpstreamTable>, SqlError> {
    load(kind, options)?;
    Ok(tables(kind))
}

/// Whether the generator never takes back a row.
pub fn only_appends(kind: Generator, options: &[(String, String)]) -> bool {
    match load(kind, options) {
        Ok((Load::Counter { max }, _)) => max.is_none(),
        Ok((Load::Auction, _)) => true,
        Ok((Load::KeyValue { rounds, updates, .. }, _)) => rounds <= 1 && !updates,
        Err(_) => false,
    }
}

fn load(kind: Generator, options: &[(String, String)]) -> Result<(Load, u64), SqlError> {
    let mut seed = 0;
    let mut load = match kind {
        Generator::Counter => Load::Counter { max: None },
        Generator::Auction => Load::Auction,
        Generator::KeyValue => Load::KeyValue { keys: 1000, partitions: 1, value_size: 64, batch: 1, rounds: 1, updates: true },
    };
    for (name, value) in options {
        let name = name.to_uppercase().replace('_', " ");
        let number = |lo: u64, hi: u64| {
            value.trim().parse::<u64>().ok().filter(|v| (lo..=hi).contains(v)).ok_or_else(|| {
                SqlError::new(state::INVALID_PARAMETER_VALUE, format!("invalid value for {name}: \"{value}\""))
                    .with_hint(format!("a whole number from {lo} to {hi}"))
            })
        };
        const BIG: u64 = 1 << 40;
        match (name.as_str(), &mut load) {
            ("SEED", _) => seed = number(0, u64::MAX)?,
            ("TICK INTERVAL", _) => {}
            ("MAX CARDINALITY", Load::Counter { max }) => *max = Some(number(1, BIG)?),
            ("KEYS", Load::KeyValue { keys, .. }) => *keys = number(1, BIG)?,
            ("PARTITIONS", Load::KeyValue { partitions, .. }) => *partitions = number(1, 1 << 20)?,
            ("VALUE SIZE", Load::KeyValue { value_size, .. }) => *value_size = number(0, 1 << 20)? as usize,
            ("BATCH SIZE", Load::KeyValue { batch, .. }) => *batch = number(1, 1 << 24)?,
            ("SNAPSHOT ROUNDS", Load::KeyValue { rounds, .. }) => *rounds = number(0, 1 << 20)?,
            ("UPDATES", Load::KeyValue { updates, .. }) => {
                *updates = match value.trim().to_ascii_lowercase().as_str() {
                    "true" | "on" | "1" | "yes" | "t" => true,
                    "false" | "off" | "0" | "no" | "f" => false,
                    _ => {
                        let e = SqlError::new(state::INVALID_PARAMETER_VALUE, format!("invalid value for UPDATES: \"{value}\""));
                        return Err(e.with_hint("true or false"));
                    }
                }
            }
            _ => {
                return Err(SqlError::new(state::INVALID_PARAMETER_VALUE, format!("load generator option {name} does not exist")).with_hint(
                    "COUNTER: MAX CARDINALITY; KEY VALUE: KEYS, PARTITIONS, VALUE SIZE, BATCH SIZE, SNAPSHOT ROUNDS, UPDATES; all: TICK INTERVAL, SEED",
                ))
            }
        }
    }
    if let Load::KeyValue { keys, value_size, batch, .. } = &load {
        // All keys' rows are kept; a batch is made at once.
        for (what, rows, max) in [("KEYS", *keys, KEYS_BYTES_MAX), ("BATCH SIZE", *batch.min(keys), BATCH_BYTES_MAX)] {
            let bytes = u128::from(rows) * (*value_size as u128 + KEY_VALUE_ROW_BYTES);
            if bytes > max {
                let message = format!("{what} times VALUE SIZE is too large: about {} GB, the most is {} GB", bytes >> 30, max >> 30);
                return Err(SqlError::new(state::INVALID_PARAMETER_VALUE, message));
            }
        }
    }
    Ok((load, seed))
}

/// SplitMix64: a well mixed number for each (seed, stream, n).
fn mix(seed: u64, stream: u64, n: u64) -> u64 {
    let mut z = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ stream.wrapping_mul(0xd1b5_4a32_d192_ed03) ^ n.wrapping_mul(0x8cb9_2ba7_2f3d_8dd7);
    z = z.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

fn pick<'a>(list: &[&'a str], r: u64) -> &'a str {
    list[(r % list.len() as u64) as usize]
}

const ORGS: u64 = 16;
const USERS: u64 = 1024;
/// An auction and its bids.
const AUCTION_TICKS: u64 = 11;
const AUCTION_MS: i64 = 10_000;

const FIRST: &[&str] = &["Ada", "Ben", "Carla", "Dev", "Elena", "Farid", "Grace", "Hiro", "Ines", "Jonas", "Kofi", "Lena", "Mina", "Nils", "Olga", "Pablo"];
const LAST: &[&str] =
    &["Abe", "Berg", "Costa", "Diaz", "Eriksen", "Fischer", "Garcia", "Haddad", "Ito", "Jansen", "Khan", "Lopez", "Meyer", "Nowak", "Okafor", "Petrov"];
const ITEMS: &[&str] =
    &["Signed Memorabilia", "City Bar Crawl", "Best Pizza in Town", "Gift Basket", "Custom Art", "Weekend at the Lake", "Vintage Bicycle", "Concert Tickets"];
const TOWNS: &[&str] =
    &["Amber", "Birch", "Cedar", "Delta", "Elm", "Fjord", "Granite", "Harbor", "Iris", "Juniper", "Kestrel", "Laurel", "Maple", "North", "Opal", "Pine"];

impl Load {
    /// The rows of relation `table` (its place in [`tables`]) at a tick. `step_ms` is the time between ticks.
    fn make(&self, table: usize, p: Position, step_ms: u64) -> Made {
        let Position { tick, start_ms, seed } = p;
        let int = |v: u64| Value::Int8(i64::try_from(v).unwrap_or(i64::MAX));
        let plus = |row: Vec<Value>| (row, 1);
        match self {
            Load::Counter { max } => {
                let mut out = vec![plus(vec![int(tick + 1)])];
                if let Some(old) = max.and_then(|m| tick.checked_sub(m)) {
                    out.insert(0, (vec![int(old + 1)], -1));
                }
                out
            }
            Load::Auction if tick == 0 => match table {
                0 => (0..ORGS).map(|i| plus(vec![int(i + 1), Value::text(format!("{} Works", TOWNS[i as usize]))])).collect(),
                1 => (0..USERS)
                    .map(|i| {
                        let r = mix(seed, 1, i);
                        let name = format!("{} {}", pick(FIRST, r), pick(LAST, r >> 16));
                        plus(vec![int(i + 1), int(r % ORGS + 1), Value::text(name)])
                    })
                    .collect(),
                2 => (0..ORGS).map(|i| plus(vec![int(i + 1), int(i + 1), int(10_000 + mix(seed, 2, i) % 90_000)])).collect(),
                _ => Vec::new(),
            },
            Load::Auction => {
                let n = tick - 1;
                let (auction, bid) = (n / AUCTION_TICKS, n % AUCTION_TICKS);
                let at = |tick: u64| start_ms.saturating_add(i64::try_from(tick.saturating_mul(step_ms)).unwrap_or(i64::MAX)).min(8_000_000_000_000_000);
                let time = |ms: i64| Value::TimestampTz(ms.saturating_mul(1000).saturating_sub(EPOCH_SHIFT_MICROS));
                let r = mix(seed, 3, n);
                match (table, bid) {
                    (3, 0) => vec![plus(vec![int(auction + 1), int(r % USERS + 1), Value::text(pick(ITEMS, r >> 20)), time(at(tick) + AUCTION_MS)])],
                    (4, 1..) => {
                        let id = auction * (AUCTION_TICKS - 1) + bid;
                        let amount = Value::Int4(((r >> 32) as i32 & 0x7f) | 1);
                        vec![plus(vec![int(id), int(r % USERS + 1), int(auction + 1), amount, time(at(tick))])]
                    }
                    _ => Vec::new(),
                }
            }
            Load::KeyValue { keys, partitions, value_size, batch, rounds, updates } => {
                let row = |key: u64, version: u64| {
                    let mut value = Vec::with_capacity(value_size + 8);
                    let mut n = 0;
                    while value.len() < *value_size {
                        value.extend_from_slice(&mix(seed, 4 + key, version << 20 | n).to_le_bytes());
                        n += 1;
                    }
                    value.truncate(*value_size);
                    // Versions of one key are its offsets times the number of keys of the partition, about; what counts is that they rise.
                    vec![int(key % partitions), int(key), int(version * keys + key), Value::Bytea(value)]
                };
                let per_round = keys.div_ceil(*batch);
                let first = (tick % per_round) * batch;
                let version = tick / per_round;
                if version >= (*rounds).max(1) && !updates {
                    return Vec::new();
                }
                let mut out = Vec::with_capacity(*batch as usize * 2);
                for key in first..(first + batch).min(*keys) {
                    if version > 0 {
                        out.push((row(key, version - 1), -1));
                    }
                    out.push((row(key, version), 1));
                }
                out
            }
        }
    }

    /// Ticks whose rows are the snapshot: made at once, as one unit.
    fn snapshot_ticks(&self) -> u64 {
        match self {
            Load::Counter { .. } => 0,
            Load::Auction => 1,
            Load::KeyValue { keys, batch, rounds, .. } => keys.div_ceil(*batch) * rounds,
        }
    }
}

/// An output with its place in [`tables`].
pub(crate) struct Out {
    id: GlobalId,
    table: usize,
    types: Vec<repr::ColType>,
    /// For each column of the relation, the generator's column.
    columns: Vec<usize>,
    snapshot_done: bool,
}

pub(super) fn run(source: &StartSource, feed: &mut Feed) -> End {
    match run_inner(source, feed) {
        Ok(end) | Err(end) => end,
    }
}

/// Changes of one unit that are held before a part is handed over.
const PART_ROWS: usize = 50_000;

fn run_inner(source: &StartSource, feed: &mut Feed) -> Result<End, End> {
    let Connector::Generator { kind, tick_interval_ms, options } = &source.spec.connector else {
        return Err(End::Failed("internal error: not a generator".into()));
    };
    let (load, seed) = load(*kind, options).map_err(|e| End::Failed(e.message))?;
    let outs = outputs(&source.spec, *kind).map_err(|e| End::Failed(e.message))?;
    let step = (*tick_interval_ms).max(1);
    let resume = match &source.resume {
        Some(p) => Some(serde_json::from_str::<Position>(p).map_err(|e| End::Failed(format!("the durable position cannot be read: {e}")))?),
        None => None,
    };
    let now_ms = (now_micros() + EPOCH_SHIFT_MICROS) / 1000;
    let mut p = resume.unwrap_or(Position { tick: 0, start_ms: now_ms, seed });
    let text = |p: &Position| serde_json::to_string(p).unwrap_or_default();

    // Snapshot of outputs that are new: all ticks so far, and on the first start the generator's own snapshot.
    let fresh = outs.iter().any(|o| !o.snapshot_done);
    if fresh {
        feed.status(SourceStatus::Snapshotting { rows: 0 })?;
        let end = if resume.is_some() { p.tick } else { load.snapshot_ticks() };
        let mut pending = Pending::new(&outs);
        let mut rows = 0;
        for tick in 0..end {
            pending.add(&load, Position { tick, ..p }, step, |o| !o.snapshot_done);
            if pending.rows >= PART_ROWS {
                rows += pending.rows as u64;
                feed.stage(pending.take(), String::new(), vec![], true)?;
                feed.status(SourceStatus::Snapshotting { rows })?;
            }
            if tick % 1024 == 0 {
                feed.check()?;
            }
        }
        p.tick = p.tick.max(end);
        let done = outs.iter().filter(|o| !o.snapshot_done).map(|o| o.id).collect();
        feed.stage(pending.take(), text(&p), done, false)?;
    }
    feed.status(SourceStatus::Running)?;

    // Ticks follow the clock of this start; a committer that is behind makes them fewer and larger, never lost.
    let began = Instant::now();
    let base = p.tick;
    let mut pending = Pending::new(&outs);
    loop {
        let due = base + u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX) / step;
        while p.tick < due && pending.rows < PART_ROWS {
            pending.add(&load, p, step, |_| true);
            p.tick += 1;
        }
        if pending.ticks > 0 {
            feed.stats.messages.fetch_add(pending.rows as u64, std::sync::atomic::Ordering::Relaxed);
            feed.stage(pending.take(), text(&p), vec![], false)?;
        }
        if p.tick >= due {
            let next = began + Duration::from_millis((p.tick + 1 - base).saturating_mul(step));
            feed.sleep(next.saturating_duration_since(Instant::now()).max(Duration::from_micros(100)))?;
        }
    }
}

/// The outputs with their generator tables.
/// Errors: 42P01 for a table that there is not, 42703 for a column, 42804 for a column of another type.
pub(crate) fn outputs(spec: &SourceSpec, kind: Generator) -> Result<Vec<Out>, SqlError> {
    let tables = tables(kind);
    let out = |o: &OutputSpec| {
        let name = o.reference.rsplit('.').next().unwrap_or_default();
        let missing = || SqlError::new(state::UNDEFINED_TABLE, format!("the load generator has no table \"{}\"", o.reference));
        let table = if name.is_empty() { 0 } else { tables.iter().position(|t| t.name == name).ok_or_else(missing)? };
        let t = &tables[table];
        let column = |(i, c): (usize, &ColumnSource)| {
            let name = if let ColumnSource::Value(n) = c { n.as_str() } else { "" };
            let missing = || SqlError::new(state::UNDEFINED_COLUMN, format!("table \"{}\" of the load generator has no column \"{name}\"", t.name));
            let at = t.desc.names.iter().position(|n| n == name).ok_or_else(missing)?;
            let (here, there) = (&o.desc.types[i].ty, &t.desc.types[at].ty);
            if repr::column::physical(here) != repr::column::physical(there) {
                return Err(SqlError::new(state::DATATYPE_MISMATCH, format!("column \"{name}\" of the load generator is of type {there}")));
            }
            Ok(at)
        };
        let columns = o.columns.iter().enumerate().map(column).collect::<Result<_, SqlError>>()?;
        Ok(Out { id: o.id, table, types: o.desc.types.clone(), columns, snapshot_done: o.snapshot_done })
    };
    spec.outputs.iter().map(out).collect()
}

/// Rows of each output that wait to be handed over.
struct Pending<'a> {
    outs: &'a [Out],
    made: Vec<(Vec<Vec<Value>>, Vec<Diff>)>,
    rows: usize,
    ticks: usize,
}

impl<'a> Pending<'a> {
    fn new(outs: &'a [Out]) -> Pending<'a> {
        Pending { outs, made: outs.iter().map(|_| Default::default()).collect(), rows: 0, ticks: 0 }
    }

    fn add(&mut self, load: &Load, p: Position, step_ms: u64, want: impl Fn(&Out) -> bool) {
        self.ticks += 1;
        for (o, made) in self.outs.iter().zip(&mut self.made).filter(|(o, _)| want(o)) {
            for (row, diff) in load.make(o.table, p, step_ms) {
                made.0.push(o.columns.iter().map(|c| row[*c].clone()).collect());
                made.1.push(diff);
                self.rows += 1;
            }
        }
    }

    fn take(&mut self) -> Vec<(GlobalId, Deltas)> {
        self.rows = 0;
        self.ticks = 0;
        let mut out = Vec::new();
        for (o, made) in self.outs.iter().zip(&mut self.made) {
            let (rows, diffs) = std::mem::take(made);
            if !rows.is_empty() {
                let rows = Batch::from_rows(&o.types, rows.iter().map(|r| r.as_slice()));
                out.push((o.id, Deltas { rows, diffs: Col::from_vec(diffs) }));
            }
        }
        out
    }
}
