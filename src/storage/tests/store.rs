//! What a store promises, on a real disk and on a simulated one.

use repr::{Batch, Col, ColType, Deltas, GlobalId, SqlType, Value};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use storage::sim::{Fault, SimDisk};
use storage::{Disk, RealDisk, StagedUnit, Store, StoreOptions, Tick};

const SHARD: GlobalId = GlobalId(7);

fn types() -> Vec<ColType> {
    vec![SqlType::Int8.not_null(), SqlType::Text.nullable()]
}

fn deltas(rows: &[(i64, &str, i64)]) -> Deltas {
    let values: Vec<[Value; 2]> = rows.iter().map(|r| [Value::Int8(r.0), if r.1.is_empty() { Value::Null } else { Value::text(r.1) }]).collect();
    Deltas { rows: Batch::from_rows(&types(), values.iter().map(|r| &r[..])), diffs: Col::from_vec(rows.iter().map(|r| r.2).collect()) }
}

fn options() -> StoreOptions {
    StoreOptions { background: false, segment_bytes: 64 << 10, ..StoreOptions::default() }
}

fn open(disk: &SimDisk) -> Store {
    Store::open(Arc::new(disk.clone()), Path::new("/d"), options()).unwrap()
}

fn create(store: &mut Store) {
    store.append(Tick { t: 1, lease: 1, create: vec![(SHARD, types())], ..Tick::default() }).unwrap();
}

fn insert(store: &mut Store, t: u64, rows: &[(i64, &str, i64)]) {
    store.append(Tick { t, lease: t, shards: vec![(SHARD, deltas(rows))], ..Tick::default() }).unwrap();
}

/// The consolidated content at `as_of`, read in `parts`.
fn content(store: &Store, as_of: u64, parts: usize) -> BTreeMap<(i64, String), i64> {
    let snapshot = store.snapshot(SHARD, as_of).unwrap();
    let mut out = BTreeMap::new();
    for part in 0..parts {
        for d in snapshot.read(part, parts) {
            let d = d.unwrap();
            for i in 0..d.len() {
                let row = d.rows.row(&types(), i);
                let (Value::Int8(k), text) = (&row[0], row[1].as_str().unwrap_or("")) else { panic!("{row:?}") };
                *out.entry((*k, text.to_owned())).or_insert(0) += d.diffs.get(i);
            }
        }
    }
    out.retain(|_, n| *n != 0);
    out
}

fn rows(of: &[(i64, &str, i64)]) -> BTreeMap<(i64, String), i64> {
    of.iter().map(|r| ((r.0, r.1.to_owned()), r.2)).collect()
}

#[test]
fn real_disk_keeps_ticks_metadata_and_folds_across_reopening() {
    let dir = tempfile::tempdir().unwrap();
    let real = || -> Arc<dyn Disk> { Arc::new(RealDisk) };
    let mut store = Store::open(real(), dir.path(), options()).unwrap();
    assert_eq!(store.upper(), 0);
    create(&mut store);
    insert(&mut store, 5, &[(1, "a", 1), (2, "", 2)]);
    store
        .append(Tick { t: 6, lease: 900, meta: vec![(b"k1".to_vec(), Some(b"v1".to_vec())), (b"k2".to_vec(), Some(b"v2".to_vec()))], ..Tick::default() })
        .unwrap();
    drop(store);

    let mut store = Store::open(real(), dir.path(), options()).unwrap();
    assert_eq!((store.upper(), store.lease()), (901, 900), "time is closed through the lease");
    assert_eq!(content(&store, 900, 3), rows(&[(1, "a", 1), (2, "", 2)]));
    store.fold().unwrap();
    store.append(Tick { t: 901, lease: 950, shards: vec![(SHARD, deltas(&[(1, "a", -1)]))], meta: vec![(b"k1".to_vec(), None)], ..Tick::default() }).unwrap();
    drop(store);

    let store = Store::open(real(), dir.path(), options()).unwrap();
    assert_eq!(content(&store, 901, 1), rows(&[(2, "", 2)]));
    assert_eq!(content(&store, 900, 1), rows(&[(1, "a", 1), (2, "", 2)]));
    assert_eq!(store.meta_scan(b"k"), vec![(b"k2".to_vec(), b"v2".to_vec())]);
    assert_eq!(store.meta_get(b"k1"), None);
    let e = Store::open(real(), dir.path(), options()).map(|_| ()).unwrap_err();
    assert_eq!(e.message, format!("another riverdelta process (pid {}) is using data directory \"{}\"", std::process::id(), dir.path().display()));
}

#[test]
fn snapshots_are_exact_between_since_and_upper_only() {
    let mut store = open(&SimDisk::new());
    create(&mut store);
    insert(&mut store, 10, &[(1, "a", 1)]);
    insert(&mut store, 20, &[(1, "a", -1), (1, "b", 1)]);
    store.fold().unwrap();
    insert(&mut store, 30, &[(1, "b", -1), (1, "c", 1)]);
    for (as_of, text) in [(10, "a"), (19, "a"), (20, "b"), (29, "b"), (30, "c")] {
        assert_eq!(content(&store, as_of, 2), rows(&[(1, text, 1)]), "at {as_of}");
    }
    assert_eq!(content(&store, 9, 1), rows(&[]));
    let e = store.snapshot(SHARD, 31).map(|_| ()).unwrap_err();
    assert_eq!((e.code.as_str(), e.detail.as_deref()), ("22000", Some("It can be read at timestamps from 0 to 30.")));
    store.close_through(40);
    assert_eq!(content(&store, 40, 1), rows(&[(1, "c", 1)]));
    store.allow_compaction(SHARD, 20);
    store.fold().unwrap();
    assert!(store.snapshot(SHARD, 19).is_err());
    assert_eq!(content(&store, 20, 1), rows(&[(1, "b", 1)]));
}

#[test]
fn a_snapshot_outlives_merges_and_drops() {
    let disk = SimDisk::new();
    let mut store = open(&disk);
    create(&mut store);
    insert(&mut store, 10, &[(1, "a", 1)]);
    store.fold().unwrap();
    let snapshot = store.snapshot(SHARD, 10).unwrap();
    insert(&mut store, 20, &[(1, "a", -1)]);
    store.allow_compaction(SHARD, 20);
    store.fold().unwrap();
    assert_eq!(disk.list(Path::new("/d/shards")).unwrap().len(), 1, "the merged rows cancel out; the old file is still in use");
    store.append(Tick { t: 30, lease: 30, drop: vec![SHARD], ..Tick::default() }).unwrap();
    store.fold().unwrap();
    assert_eq!(snapshot.read(0, 1).map(|d| d.unwrap().len()).sum::<usize>(), 1);
    drop(snapshot);
    assert_eq!(disk.list(Path::new("/d/shards")).unwrap().len(), 0);
    assert!(store.snapshot(SHARD, 30).is_err());
}

#[test]
fn an_update_heavy_shard_costs_disk_in_proportion_to_its_contents() {
    let disk = SimDisk::new();
    let mut store = open(&disk);
    create(&mut store);
    let text = "x".repeat(40);
    let all: Vec<(i64, &str, i64)> = (0..2000).map(|k| (k, text.as_str(), 1)).collect();
    insert(&mut store, 2, &all);
    store.fold().unwrap();
    let first = disk.bytes();
    for round in 0..60u64 {
        let t = 10 + round * 2;
        let back: Vec<_> = all.iter().map(|r| (r.0, r.1, -1)).collect();
        insert(&mut store, t, &back);
        insert(&mut store, t + 1, &all);
        store.allow_compaction(SHARD, t);
        store.fold().unwrap();
    }
    assert_eq!(content(&store, 129, 1).len(), 2000);
    assert!(disk.bytes() < first * 4, "{} bytes for what took {first}", disk.bytes());
}

#[test]
fn columns_that_are_not_asked_for_are_left_out() {
    let disk = SimDisk::new();
    let mut store = open(&disk);
    create(&mut store);
    insert(&mut store, 2, &[(1, "a", 1), (2, "", 3), (3, "c", 1)]);
    store.fold().unwrap();
    let part = store.stage(SHARD, &deltas(&[(4, "d", 1), (5, "a", 2)])).unwrap();
    store.append(Tick { t: 3, lease: 3, staged: vec![StagedUnit { shard: SHARD, files: vec![part] }], ..Tick::default() }).unwrap();
    insert(&mut store, 4, &[(6, "f", 1), (3, "c", -1)]);
    let snapshot = store.snapshot(SHARD, 4).unwrap();
    let read = |wanted: Option<&[bool]>| {
        let (mut found, mut left_out) = (BTreeMap::new(), [0, 0]);
        for d in snapshot.read_columns(0, 1, wanted) {
            let d = d.unwrap();
            for i in 0..d.len() {
                let row = d.rows.row(&types(), i);
                left_out[0] += usize::from(row[0].is_null());
                left_out[1] += usize::from(row[1].is_null());
                let kept: Vec<Value> = row.into_iter().enumerate().filter(|(c, _)| wanted.is_none_or(|w| w[*c])).map(|(_, v)| v).collect();
                *found.entry(format!("{kept:?}")).or_insert(0) += d.diffs.get(i);
            }
        }
        found.retain(|_, n| *n != 0);
        (found, left_out)
    };
    let (all, nulls) = read(None);
    assert_eq!((all.len(), nulls), (5, [0, 1]));
    // Of the files' five rows there is no number any more, or no text; what is in memory comes as it is.
    let (texts, nulls) = read(Some(&[false, true]));
    assert_eq!((texts.len(), texts[&format!("{:?}", [Value::text("a")])], nulls), (4, 3, [5, 1]));
    let (numbers, nulls) = read(Some(&[true, false]));
    assert_eq!((numbers.len(), numbers[&format!("{:?}", [Value::Int8(2)])], nulls), (5, 3, [0, 5]));
    let (counts, _) = read(Some(&[false, false]));
    assert_eq!(counts[&"[]".to_owned()], 8);
}

#[test]
fn staged_parts_are_visible_from_their_tick_on() {
    let disk = SimDisk::new();
    let mut store = open(&disk);
    create(&mut store);
    let part = |n: i64| deltas(&[(n, "p", 1), (n + 1, "q", 2)]);
    let files = vec![store.stage(SHARD, &part(10)).unwrap(), store.handle().stage(SHARD, &part(20)).unwrap()];
    let left_over = store.stage(SHARD, &part(30)).unwrap();
    insert(&mut store, 5, &[(1, "a", 1)]);
    assert_eq!(content(&store, 5, 1), rows(&[(1, "a", 1)]));
    let unit = StagedUnit { shard: SHARD, files };
    assert_eq!(store.staged(&unit).unwrap().rows(), 4);
    store.append(Tick { t: 8, lease: 8, staged: vec![unit.clone()], ..Tick::default() }).unwrap();
    assert_eq!(store.staged(&unit).unwrap().read(0, 1).map(|d| d.unwrap().len()).sum::<usize>(), 4, "also after its tick");
    let another = Tick { t: 9, lease: 9, ..Tick::default() };
    store.append(another).unwrap();
    assert!(store.staged(&unit).is_err());
    let nothing = store.stage(SHARD, &deltas(&[(1, "x", 1), (1, "x", -1)])).unwrap();
    let empty = StagedUnit { shard: SHARD, files: vec![nothing] };
    assert_eq!(store.staged(&empty).unwrap().rows(), 0);
    store.append(Tick { t: 10, lease: 10, staged: vec![empty], ..Tick::default() }).unwrap();
    let unknown = StagedUnit { shard: SHARD, files: vec!["u7-0000ffff.arrow".into()] };
    assert!(store.staged(&unknown).is_err() && store.append(Tick { t: 11, staged: vec![unknown], ..Tick::default() }).is_err());
    let all = rows(&[(1, "a", 1), (10, "p", 1), (11, "q", 2), (20, "p", 1), (21, "q", 2)]);
    let check = |store: &Store| {
        assert_eq!(content(store, 7, 2), rows(&[(1, "a", 1)]));
        assert_eq!(content(store, 8, 2), all);
    };
    check(&store);
    drop(store);
    let store = open(&disk);
    assert!(!disk.list(Path::new("/d/shards")).unwrap().contains(&left_over), "a part that no tick names goes at the start");
    check(&store);
    store.fold().unwrap();
    check(&store);
    drop(store);
    let mut store = open(&disk);
    check(&store);
    store.allow_compaction(SHARD, 8);
    insert(&mut store, 12, &[(10, "p", -1)]);
    store.fold().unwrap();
    assert_eq!(content(&store, 8, 1), all);
    assert_eq!(content(&store, 12, 1).len(), 4);
}

#[test]
fn a_failed_append_leaves_nothing_and_a_failed_sync_is_final() {
    for (fault, code) in [(Fault::ShortWrite, "58030"), (Fault::DiskFull, "53100"), (Fault::Io, "58030")] {
        let disk = SimDisk::new();
        let mut store = open(&disk);
        create(&mut store);
        disk.fail(1, fault, false);
        let e = store.append(Tick { t: 5, lease: 5, shards: vec![(SHARD, deltas(&[(1, "lost", 1)]))], ..Tick::default() }).unwrap_err();
        assert_eq!((e.code.as_str(), store.fatal()), (code, None));
        insert(&mut store, 5, &[(1, "kept", 1)]);
        drop(store);
        assert_eq!(content(&open(&disk), 5, 1), rows(&[(1, "kept", 1)]));
    }
    let disk = SimDisk::new();
    let mut store = open(&disk);
    create(&mut store);
    disk.fail(2, Fault::Io, false);
    let tick = Tick { t: 5, lease: 5, ..Tick::default() };
    assert!(store.append(tick.clone()).is_err());
    assert!(store.fatal().is_some());
    assert!(store.append(tick).is_err(), "nothing is tried again on a file whose sync failed");
}

#[test]
fn a_failed_fold_is_tried_again() {
    let disk = SimDisk::new();
    let mut store = open(&disk);
    create(&mut store);
    insert(&mut store, 5, &[(1, "a", 1)]);
    disk.fail(1, Fault::DiskFull, true);
    assert_eq!(store.fold().unwrap_err().code.as_str(), "53100");
    disk.heal();
    assert_eq!(store.fatal(), None);
    insert(&mut store, 6, &[(2, "b", 1)]);
    store.fold().unwrap();
    assert_eq!(content(&store, 6, 1), rows(&[(1, "a", 1), (2, "b", 1)]));
    assert_eq!(disk.list(Path::new("/d/shards")).unwrap().len(), 1);
}

#[test]
fn malformed_ticks_are_refused() {
    let mut store = open(&SimDisk::new());
    create(&mut store);
    let bad = |store: &mut Store, tick: Tick| store.append(tick).unwrap_err().code.as_str().to_owned();
    assert_eq!(bad(&mut store, Tick { t: 1, ..Tick::default() }), "XX000");
    assert_eq!(bad(&mut store, Tick { t: 2, shards: vec![(GlobalId(99), deltas(&[(1, "", 1)]))], ..Tick::default() }), "XX000");
    let other = Deltas::inserts(Batch::from_rows(&[SqlType::Bool.nullable()], [&[Value::Bool(true)][..]]));
    assert_eq!(bad(&mut store, Tick { t: 2, shards: vec![(SHARD, other)], ..Tick::default() }), "XX000");
    assert_eq!(store.upper(), 2);
}

#[test]
fn damage_before_the_tail_is_fatal_and_says_where() {
    let build = || {
        let disk = SimDisk::new();
        let mut store = open(&disk);
        create(&mut store);
        insert(&mut store, 5, &[(1, "folded", 1)]);
        store.fold().unwrap();
        insert(&mut store, 6, &[(2, "logged", 1)]);
        insert(&mut store, 7, &[(3, "last", 1)]);
        disk
    };
    let try_open = |disk: &SimDisk| Store::open(Arc::new(disk.clone()), Path::new("/d"), options());
    let fails = |disk: &SimDisk, dir: &str, offset: u64, says: &str| {
        let name = disk.list(Path::new(dir)).unwrap().pop().unwrap();
        disk.flip_bit(&Path::new(dir).join(&name), offset);
        let e = match try_open(disk) {
            Err(e) => e,
            // Rows are checked when they are read.
            Ok(store) => store.snapshot(SHARD, 7).unwrap().read(0, 1).find_map(|d| d.err()).unwrap(),
        };
        assert_eq!(e.code.as_str(), "XX001", "{e}");
        assert!(e.message.contains(&name) && e.message.contains("offset") && e.message.contains(says), "{e}");
    };
    fails(&build(), "/d/log", 70, "checksum");
    fails(&build(), "/d/shards", 400, "shard u7");
    let disk = build();
    let name = disk.list(Path::new("/d/shards")).unwrap().pop().unwrap();
    disk.remove(&Path::new("/d/shards").join(&name)).unwrap();
    let e = try_open(&disk).map(|_| ()).unwrap_err();
    assert_eq!(e.code.as_str(), "58030");
    assert!(e.message.contains(&name) && e.message.contains("shard u7"), "{e}");
    // The last record may be torn: then, and only then, it is cut off.
    let disk = build();
    let log = disk.list(Path::new("/d/log")).unwrap().pop().unwrap();
    let path = Path::new("/d/log").join(log);
    let len = disk.open(&path).unwrap().len().unwrap();
    disk.flip_bit(&path, len - 1);
    let store = try_open(&disk).unwrap();
    assert_eq!(content(&store, 6, 1), rows(&[(1, "folded", 1), (2, "logged", 1)]));
}

#[test]
fn a_directory_that_is_something_else_is_refused() {
    let disk = SimDisk::new();
    disk.create(Path::new("/d/notes.txt")).unwrap();
    let e = Store::open(Arc::new(disk), Path::new("/d"), options()).map(|_| ()).unwrap_err();
    assert!(e.message.contains("notes.txt"));
    let disk = SimDisk::new();
    disk.write(Path::new("/d/FORMAT"), b"riverdelta data directory, format 99\n").unwrap();
    let e = Store::open(Arc::new(disk), Path::new("/d"), options()).map(|_| ()).unwrap_err();
    assert!(e.message.contains("format 99"));
}

#[test]
fn folding_in_the_background_disturbs_neither_appends_nor_readers() {
    let dir = tempfile::tempdir().unwrap();
    let options = StoreOptions { fold_bytes: 20_000, segment_bytes: 8_000, background: true };
    let mut store = Store::open(Arc::new(RealDisk), dir.path(), options.clone()).unwrap();
    create(&mut store);
    let handle = store.handle();
    let reader = std::thread::spawn(move || loop {
        // Every tick moves one row from n to n + 1: at each time there is exactly one.
        let upper = handle.upper();
        if upper > 2 {
            let snapshot = handle.snapshot(SHARD, upper - 1).unwrap();
            let sum: i64 = (0..2).flat_map(|part| snapshot.read(part, 2)).flat_map(|d| d.unwrap().diffs.iter().copied().collect::<Vec<_>>()).sum();
            assert_eq!(sum, 1, "at {}", upper - 1);
        }
        if upper > 600 {
            return handle.stats().folds;
        }
    });
    insert(&mut store, 2, &[(2, "row", 1)]);
    for t in 3..=600 {
        insert(&mut store, t, &[(t as i64 - 1, "row", -1), (t as i64, "row", 1)]);
        if t % 50 == 0 {
            store.allow_compaction(SHARD, t - 10);
        }
    }
    assert!(reader.join().unwrap() > 3);
    drop(store);
    let store = Store::open(Arc::new(RealDisk), dir.path(), options).unwrap();
    assert_eq!(content(&store, 600, 1), rows(&[(600, "row", 1)]));
    assert_eq!(content(&store, 595, 1), rows(&[(595, "row", 1)]));
}

/// The statistics in a file's footer are JSON, which has no infinite numbers.
#[test]
fn infinite_floats_are_read_back() {
    let dir = tempfile::tempdir().unwrap();
    let types = vec![SqlType::Float8.nullable(), SqlType::Float4.nullable()];
    let values: Vec<[Value; 2]> = [f64::INFINITY, f64::NEG_INFINITY, f64::NAN, -0.0, f64::MAX]
        .into_iter()
        .map(|v| [Value::Float8(v), Value::Float4(if v == f64::MAX { f32::INFINITY } else { v as f32 })])
        .collect();
    let open = || Store::open(Arc::new(RealDisk), dir.path(), options()).unwrap();
    let mut store = open();
    let all = Deltas::inserts(Batch::from_rows(&types, values.iter().map(|r| &r[..])));
    store.append(Tick { t: 1, lease: 1, create: vec![(SHARD, types.clone())], shards: vec![(SHARD, all)], ..Tick::default() }).unwrap();
    store.fold().unwrap();
    drop(store);
    let store = open();
    let rows: usize = store.snapshot(SHARD, 1).unwrap().read(0, 1).map(|d| d.unwrap().len()).sum();
    assert_eq!((rows, store.stats().log_ticks), (values.len(), 0));
}

/// What a later tick drops is still changed by the ticks before, which a fold that was behind leaves in the log.
#[test]
fn a_fold_that_is_behind_goes_in_parts() {
    let disk = SimDisk::new();
    let open = || Store::open(Arc::new(disk.clone()), Path::new("/d"), StoreOptions { background: false, fold_bytes: 100, ..options() }).unwrap();
    let mut store = open();
    create(&mut store);
    for t in 2..20 {
        insert(&mut store, t, &[(t as i64, "row", 1)]);
    }
    store.append(Tick { t: 20, lease: 20, drop: vec![SHARD], ..Tick::default() }).unwrap();
    let before = store.stats();
    // The metadata of the second part fail.
    disk.fail(12, Fault::Io, false);
    store.fold().unwrap_err();
    let after = store.stats();
    assert!(after.folds > before.folds && after.log_ticks > 1, "{after:?}");
    disk.heal();
    drop(store);
    let store = open();
    store.fold().unwrap();
    assert!(store.shards().is_empty() && store.stats().log_ticks == 0);
    assert!(disk.list(Path::new("/d/shards")).unwrap().is_empty());
}
