//! A process that aborts at each kill point, on the real disk with the real metadata store: the next one finds what was acknowledged.

use repr::{Batch, ColType, Deltas, GlobalId, SqlType, Value};
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use storage::{RealDisk, StagedUnit, Store, StoreOptions, Tick};

const SHARD: GlobalId = GlobalId(1);
const POINTS: [&str; 12] = [
    "append-before-sync",
    "append-after-sync",
    "stage-before-sync",
    "stage-after-sync",
    "fold-before-sync",
    "fold-after-batches",
    "fold-after-meta",
    "fold-after-free",
    "compact-before-sync",
    "compact-after-files",
    "compact-after-meta",
    "",
];

fn types() -> Vec<ColType> {
    vec![SqlType::Int8.not_null()]
}

fn row(n: u64) -> Deltas {
    Deltas::inserts(Batch::from_rows(&types(), [&[Value::Int8(n as i64)][..]]))
}

fn open(dir: &Path, background: bool) -> Store {
    Store::open(Arc::new(RealDisk), dir, StoreOptions { fold_bytes: 4000, segment_bytes: 2000, background }).unwrap()
}

/// Runs in a process of its own: appends row t at time t, says so, folds now and then.
#[test]
fn child() {
    let Some(dir) = std::env::var_os("KILL_TEST_DIR") else {
        return;
    };
    let mut store = open(Path::new(&dir), false);
    let from = store.upper();
    if from == 0 {
        store.append(Tick { t: 0, create: vec![(SHARD, types())], ..Tick::default() }).unwrap();
    }
    for t in from.max(1)..from + 60 {
        let mut tick = Tick { t, meta: vec![(b"last".to_vec(), Some(t.to_be_bytes().to_vec()))], ..Tick::default() };
        if t % 5 == 0 {
            let file = store.stage(SHARD, &row(t)).unwrap();
            tick.staged.push(StagedUnit { shard: SHARD, files: vec![file] });
        } else {
            tick.shards.push((SHARD, row(t)));
        }
        store.append(tick).unwrap();
        println!("acknowledged {t}");
        if t % 7 == 0 {
            store.fold().unwrap();
            store.allow_compaction(SHARD, t);
        }
    }
}

#[test]
fn every_kill_point_keeps_what_was_acknowledged() {
    for point in POINTS {
        let dir = tempfile::tempdir().unwrap();
        let mut acknowledged = 0;
        for nth in [1, 3] {
            let mut child = Command::new(std::env::current_exe().unwrap())
                .args(["--exact", "child", "--nocapture"])
                .env("KILL_TEST_DIR", dir.path())
                .env("RIVERDELTA_KILL_AT", format!("{point}:{nth}"))
                .stdout(Stdio::piped())
                .stderr(Stdio::null())
                .spawn()
                .unwrap();
            for line in BufReader::new(child.stdout.take().unwrap()).lines() {
                if let Some(t) = line.unwrap().split("acknowledged ").nth(1) {
                    acknowledged = t.parse().unwrap();
                }
            }
            assert_eq!(child.wait().unwrap().success(), point.is_empty(), "killed at {point}");
            let store = open(dir.path(), nth == 3);
            let upper = store.upper();
            if acknowledged == 0 && upper <= 1 {
                continue;
            }
            let mut rows = BTreeSet::new();
            for d in store.snapshot(SHARD, upper - 1).unwrap().read(0, 1) {
                let d = d.unwrap();
                assert!(d.diffs.iter().all(|n| *n == 1));
                rows.extend((0..d.len()).map(|i| d.rows.row(&types(), i)[0].as_i64().unwrap() as u64));
            }
            let last = rows.iter().next_back().copied().unwrap_or(0);
            assert!(last == acknowledged || last == acknowledged + 1, "{point}:{nth}: {last} after {acknowledged} was acknowledged");
            assert_eq!(rows, (1..=last).collect(), "{point}:{nth}");
            assert_eq!(store.meta_get(b"last").map_or(0, |b| u64::from_be_bytes(b.try_into().unwrap())), last);
            acknowledged = last;
        }
    }
}
