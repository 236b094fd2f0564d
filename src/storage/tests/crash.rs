//! Crashes and faults at any point: what is recovered is exactly what was acknowledged, or that and the tick in flight.
//!
//! `SIM_SEED=17 cargo test -p storage --test crash` runs one seed; `SIM_SEEDS=100000` that many from 0 on.

use repr::{Batch, Col, ColType, Deltas, GlobalId, SqlType, Value};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use storage::sim::{Fault, Rng, SimDisk};
use storage::{StagedUnit, Store, StoreOptions, Tick};

type Row = (i64, Option<String>);
type Update = (Row, u64, i64);

/// What the store must hold.
#[derive(Clone, Default, Debug, PartialEq)]
struct Model {
    shards: BTreeMap<u64, Vec<Update>>,
    since: BTreeMap<u64, u64>,
    kv: BTreeMap<Vec<u8>, Vec<u8>>,
    t: u64,
    lease: u64,
    ticks: u64,
    next_shard: u64,
}

fn types() -> Vec<ColType> {
    vec![SqlType::Int8.not_null(), SqlType::Text.nullable()]
}

fn deltas(rows: &[(Row, i64)]) -> Deltas {
    let values: Vec<[Value; 2]> = rows.iter().map(|((k, s), _)| [Value::Int8(*k), s.clone().map_or(Value::Null, Value::Text)]).collect();
    Deltas { rows: Batch::from_rows(&types(), values.iter().map(|v| &v[..])), diffs: Col::from_vec(rows.iter().map(|r| r.1).collect()) }
}

fn random_rows(rng: &mut Rng) -> Vec<(Row, i64)> {
    let n = if rng.one_in(10) { rng.below(300) } else { rng.below(5) };
    (0..n)
        .map(|_| {
            let text = match rng.below(4) {
                0 => None,
                1 => Some(String::new()),
                _ => Some("v".repeat(rng.below(20) as usize)),
            };
            ((rng.below(20) as i64, text), [1, 1, 1, 2, -1, -1][rng.below(6) as usize])
        })
        .collect()
}

/// The next tick, and the model after it. Staged parts are written here: `None` if that failed.
fn random_tick(rng: &mut Rng, store: &Store, model: &Model) -> Option<(Tick, Model)> {
    let mut after = model.clone();
    let t = store.upper() + rng.below(3);
    let mut tick = Tick { t, lease: t + rng.below(20), ..Tick::default() };
    (after.t, after.lease, after.ticks) = (t, model.lease.max(tick.lease), model.ticks + 1);
    if after.shards.is_empty() || rng.one_in(8) {
        let id = after.next_shard;
        after.next_shard += 1;
        after.shards.insert(id, Vec::new());
        after.since.insert(id, 0);
        tick.create.push((GlobalId(id), types()));
    }
    let ids: Vec<u64> = after.shards.keys().copied().collect();
    for id in &ids {
        if rng.one_in(2) {
            let rows = random_rows(rng);
            after.shards.get_mut(id).unwrap().extend(rows.iter().map(|(r, d)| (r.clone(), t, *d)));
            tick.shards.push((GlobalId(*id), deltas(&rows)));
        }
        if rng.one_in(10) && model.shards.contains_key(id) {
            let mut files = Vec::new();
            for _ in 0..1 + rng.below(3) {
                let rows = random_rows(rng);
                files.push(store.stage(GlobalId(*id), &deltas(&rows)).ok()?);
                if rng.one_in(5) {
                    // Changed its mind.
                    store.unstage(&files.split_off(files.len() - 1));
                } else {
                    after.shards.get_mut(id).unwrap().extend(rows.iter().map(|(r, d)| (r.clone(), t, *d)));
                }
            }
            tick.staged.push(StagedUnit { shard: GlobalId(*id), files });
        }
    }
    if ids.len() > 2 && rng.one_in(4) {
        let id = ids[rng.below(ids.len() as u64) as usize];
        after.shards.remove(&id);
        after.since.remove(&id);
        tick.drop.push(GlobalId(id));
    }
    for _ in 0..rng.below(3) {
        let key = vec![b'a' + rng.below(6) as u8];
        let value = (!rng.one_in(3)).then(|| vec![rng.below(256) as u8; rng.below(30) as usize]);
        match &value {
            Some(v) => after.kv.insert(key.clone(), v.clone()),
            None => after.kv.remove(&key),
        };
        tick.meta.push((key, value));
    }
    Some((tick, after))
}

fn content_at(updates: &[Update], as_of: u64) -> BTreeMap<Row, i64> {
    let mut out = BTreeMap::new();
    for (row, _, diff) in updates.iter().filter(|u| u.1 <= as_of) {
        *out.entry(row.clone()).or_insert(0) += diff;
    }
    out.retain(|_, n| *n != 0);
    out
}

fn read(store: &Store, id: u64, as_of: u64, parts: usize) -> Result<BTreeMap<Row, i64>, String> {
    let snapshot = store.snapshot(GlobalId(id), as_of).map_err(|e| e.message)?;
    let mut out = BTreeMap::new();
    for part in 0..parts {
        for d in snapshot.read(part, parts) {
            let d = d.map_err(|e| e.message)?;
            for i in 0..d.len() {
                let row = d.rows.row(&types(), i);
                let Value::Int8(k) = row[0] else { return Err(format!("{row:?}")) };
                *out.entry((k, row[1].as_str().map(str::to_owned))).or_insert(0) += d.diffs.get(i);
            }
        }
    }
    out.retain(|_, n| *n != 0);
    Ok(out)
}

/// Whether the store holds exactly this.
fn check(store: &Store, model: &Model, rng: &mut Rng) -> Result<(), String> {
    let kv: BTreeMap<_, _> = store.meta_scan(b"").into_iter().collect();
    if kv != model.kv {
        return Err(format!("metadata {kv:?} instead of {:?}", model.kv));
    }
    let ids: Vec<u64> = store.shards().iter().map(|s| s.0 .0).collect();
    if ids != model.shards.keys().copied().collect::<Vec<_>>() {
        return Err(format!("shards {ids:?}"));
    }
    if model.ticks > 0 && store.upper() <= model.t {
        return Err(format!("upper {} after a tick at {}", store.upper(), model.t));
    }
    for (id, updates) in &model.shards {
        let since = model.since[id];
        let upper = store.upper();
        let mut times = vec![upper - 1, since.min(upper - 1)];
        times.extend((0..2).map(|_| since + rng.below((upper - since).max(1))).filter(|t| *t < upper));
        for as_of in times {
            let (got, want) = (read(store, *id, as_of, 1 + rng.below(3) as usize)?, content_at(updates, as_of));
            if got != want {
                return Err(format!("shard {id} at {as_of}: {got:?} instead of {want:?}"));
            }
        }
    }
    Ok(())
}

fn open(disk: &SimDisk) -> Result<Store, repr::SqlError> {
    let options = StoreOptions { background: false, segment_bytes: 3000, fold_bytes: 300 };
    Store::open(Arc::new(disk.clone()), Path::new("/d"), options)
}

/// Works until the disk fails. What is acknowledged, and what perhaps is durable too.
fn work(rng: &mut Rng, disk: &SimDisk, mut model: Model, ops: u64) -> (Model, Option<Model>) {
    let Ok(mut store) = open(disk) else {
        return (model, None);
    };
    for _ in 0..ops {
        match rng.below(10) {
            0 | 1 => {
                disk.fail_read(rng.one_in(4).then(|| 1 + rng.below(12)));
                let folded = store.fold();
                disk.fail_read(None);
                if folded.is_err() && store.fatal().is_some() {
                    return (model, None);
                }
            }
            2 => {
                let upper = store.upper();
                for (id, since) in &mut model.since {
                    if rng.one_in(2) && upper > *since {
                        *since += rng.below(upper - *since);
                        store.allow_compaction(GlobalId(*id), *since);
                    }
                }
            }
            3 => {
                check(&store, &model, rng).expect("a running store holds what was acknowledged");
            }
            _ => {
                let Some((tick, after)) = random_tick(rng, &store, &model) else {
                    continue;
                };
                if rng.one_in(3) {
                    store.seal();
                }
                match store.append(tick) {
                    Ok(()) => model = after,
                    Err(_) if store.fatal().is_some() => return (model, Some(after)),
                    Err(_) => {}
                }
            }
        }
    }
    (model, None)
}

fn run(seed: u64) {
    let mut rng = Rng::new(seed);
    let mut disk = SimDisk::new();
    let mut model = Model { next_shard: 1, ..Model::default() };
    for _ in 0..1 + rng.below(4) {
        match rng.below(4) {
            0 => {}
            1 => {
                let fault = [Fault::Io, Fault::ShortWrite, Fault::DiskFull][rng.below(3) as usize];
                disk.fail(1 + rng.below(120), fault, rng.one_in(3));
            }
            _ => disk.power_off_after(1 + rng.below(160)),
        }
        let ops = 5 + rng.below(50);
        let (acknowledged, perhaps) = work(&mut rng, &disk, model, ops);
        // Sometimes only the process ends, and the disk keeps all that was written.
        disk = if rng.one_in(4) {
            disk.heal();
            disk.power_on();
            disk
        } else {
            disk.crash(rng.below(u64::MAX))
        };
        if rng.one_in(4) {
            // A start that cannot read something changes nothing that the next one needs.
            disk.fail_read(Some(1 + rng.below(30)));
            drop(open(&disk));
            disk.fail_read(None);
        }
        let store = open(&disk).unwrap_or_else(|e| panic!("cannot recover: {e}"));
        model = match (check(&store, &acknowledged, &mut rng), perhaps) {
            (Ok(()), _) => acknowledged,
            (Err(first), Some(p)) => {
                check(&store, &p, &mut rng).unwrap_or_else(|e| panic!("neither what was acknowledged ({first}) nor that and the tick in flight ({e})"));
                p
            }
            (Err(e), None) => panic!("{e}"),
        };
        // Nothing is left on disk that nothing names.
        store.fold().unwrap();
        check(&store, &model, &mut rng).unwrap();
        let named: u64 = store.stats().shards.iter().map(|s| s.files).sum();
        let there = storage::Disk::list(&disk, Path::new("/d/shards")).unwrap().len() as u64;
        assert_eq!(named, there, "batch files");
    }
}

#[test]
fn recovery_is_exactly_the_acknowledged_prefix() {
    let number = |name: &str| std::env::var(name).ok().and_then(|v| v.parse::<u64>().ok());
    let seeds = match number("SIM_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("SIM_SEEDS").unwrap_or(150),
    };
    for seed in seeds {
        let run = std::panic::catch_unwind(|| run(seed));
        if let Err(panic) = run {
            eprintln!("SIM_SEED={seed} cargo test -p storage --test crash");
            std::panic::resume_unwind(panic);
        }
    }
}

/// Damage to the end of the log that came after it was sealed is told; without the seal it is a torn append.
#[test]
fn a_damaged_end_of_the_log_is_told() {
    for sealed in [false, true] {
        for harm in 0..3 {
            let dir = tempfile::tempdir().unwrap();
            let options = || StoreOptions { background: false, ..StoreOptions::default() };
            let open = || Store::open(Arc::new(storage::RealDisk), dir.path(), options());
            let mut store = open().unwrap();
            store.append(Tick { t: 1, lease: 1, create: vec![(GlobalId(1), types())], ..Tick::default() }).unwrap();
            store.append(Tick { t: 2, lease: 2, shards: vec![(GlobalId(1), deltas(&[((7, None), 1)]))], ..Tick::default() }).unwrap();
            if sealed {
                store.seal();
            }
            drop(store);
            let log =
                std::fs::read_dir(dir.path().join("log")).unwrap().map(|e| e.unwrap().path()).find(|p| p.extension().is_some_and(|e| e == "log")).unwrap();
            let mut bytes = std::fs::read(&log).unwrap();
            match harm {
                0 => *bytes.last_mut().unwrap() ^= 1,
                1 => bytes.truncate(bytes.len() - 1),
                _ => bytes.clear(),
            }
            if harm == 2 && sealed {
                std::fs::remove_file(&log).unwrap();
            } else {
                std::fs::write(&log, bytes).unwrap();
            }
            match (open(), sealed) {
                (Ok(store), false) => assert!(store.upper() <= 3, "the damaged tick is gone"),
                (Err(e), true) => assert_eq!(e.code.as_str(), "XX001", "{e}"),
                (Ok(_), true) => panic!("harm {harm} was not told"),
                (Err(e), false) => panic!("harm {harm}: {e}"),
            }
        }
    }
}
