//! Data directories of every format version stay readable.
//!
//! `REWRITE=1 cargo test -p storage --test fixtures` writes the directory of the current version anew; do that only when the version
//! was raised, into a new directory.

use repr::{Batch, Col, ColType, Deltas, GlobalId, SqlType, Value};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use storage::{RealDisk, StagedUnit, Store, StoreOptions, Tick};

const FOLDED: GlobalId = GlobalId(1);
const LOGGED: GlobalId = GlobalId(2);

fn types() -> Vec<ColType> {
    use SqlType::*;
    [Bool, Int2, Int4, Int8, UInt4, Float8, Text, Bytea, Date, TimestampTz].map(SqlType::nullable).to_vec()
}

fn rows() -> Vec<Vec<Value>> {
    let row = vec![
        Value::Bool(true),
        Value::Int2(-2),
        Value::Int4(4),
        Value::Int8(i64::MIN),
        Value::UInt4(u32::MAX),
        Value::Float8(-0.0),
        Value::text("größer"),
        Value::Bytea(vec![0, 255]),
        Value::Date(-1),
        Value::TimestampTz(1),
    ];
    vec![row, vec![Value::Null; 10]]
}

fn deltas(diff: i64) -> Deltas {
    let rows = rows();
    Deltas { rows: Batch::from_rows(&types(), rows.iter().map(|r| &r[..])), diffs: Col::from_vec(vec![diff, 1]) }
}

fn options() -> StoreOptions {
    StoreOptions { background: false, ..StoreOptions::default() }
}

fn write(dir: &Path) {
    let mut store = Store::open(Arc::new(RealDisk), dir, options()).unwrap();
    store.append(Tick { t: 10, lease: 20, create: vec![(FOLDED, types()), (LOGGED, types()), (GlobalId(3), vec![])], ..Tick::default() }).unwrap();
    let part = store.stage(FOLDED, &deltas(1)).unwrap();
    let staged = vec![StagedUnit { shard: FOLDED, files: vec![part] }];
    let meta = vec![(b"folded".to_vec(), Some(b"1".to_vec())), (b"gone".to_vec(), Some(vec![]))];
    store.append(Tick { t: 30, lease: 40, staged, shards: vec![(FOLDED, deltas(2))], meta, ..Tick::default() }).unwrap();
    store.fold().unwrap();
    let meta = vec![(b"logged".to_vec(), Some(b"2".to_vec())), (b"gone".to_vec(), None)];
    store.append(Tick { t: 50, lease: 60, shards: vec![(LOGGED, deltas(3))], drop: vec![GlobalId(3)], meta, ..Tick::default() }).unwrap();
    let part = store.stage(LOGGED, &deltas(1)).unwrap();
    store.append(Tick { t: 51, lease: 60, staged: vec![StagedUnit { shard: LOGGED, files: vec![part] }], ..Tick::default() }).unwrap();
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// Sum of the diffs of each of the two rows.
fn counts(store: &Store, shard: GlobalId, as_of: u64) -> [i64; 2] {
    let mut out = [0; 2];
    for d in store.snapshot(shard, as_of).unwrap().read(0, 1) {
        let d = d.unwrap();
        for i in 0..d.len() {
            let row = d.rows.row(&types(), i);
            let which = rows().iter().position(|r| *r == row).unwrap_or_else(|| panic!("another row: {row:?}"));
            out[which] += d.diffs.get(i);
        }
    }
    out
}

#[test]
fn format_1_is_readable() {
    let fixture = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/format-1");
    if std::env::var_os("REWRITE").is_some() {
        let _ = std::fs::remove_dir_all(&fixture);
        write(&fixture);
    }
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path().join("data");
    copy(&fixture, &dir);
    for _ in 0..2 {
        let store = Store::open(Arc::new(RealDisk), &dir, options()).unwrap();
        assert_eq!((store.upper(), store.lease()), (61, 60));
        assert_eq!(store.meta_scan(b""), vec![(b"folded".to_vec(), b"1".to_vec()), (b"logged".to_vec(), b"2".to_vec())]);
        assert_eq!(store.shards().iter().map(|s| s.0).collect::<Vec<_>>(), vec![FOLDED, LOGGED]);
        assert_eq!(counts(&store, FOLDED, 60), [3, 2]);
        assert_eq!((counts(&store, LOGGED, 50), counts(&store, LOGGED, 51)), ([3, 1], [4, 2]));
        store.fold().unwrap();
        assert_eq!(counts(&store, LOGGED, 60), [4, 2]);
    }
}
