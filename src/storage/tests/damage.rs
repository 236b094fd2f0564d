//! Any one file of a data directory that is cut, changed or gone, the metadata store's own among them: a start finds what was there or says what is
//! wrong. It never finds less in silence, and never panics.

use repr::{Batch, ColType, Deltas, GlobalId, SqlType, Value};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use storage::sim::Rng;
use storage::{RealDisk, Store, StoreOptions, Tick};

fn types() -> Vec<ColType> {
    vec![SqlType::Int8.not_null(), SqlType::Text.nullable()]
}

fn open(dir: &Path) -> Result<Store, repr::SqlError> {
    Store::open(Arc::new(RealDisk), dir, StoreOptions { background: false, fold_bytes: 2000, segment_bytes: 1500 })
}

/// A directory with files, metadata and a log that was sealed.
fn fill(dir: &Path) {
    let mut store = open(dir).unwrap();
    let create = vec![(GlobalId(1), types()), (GlobalId(2), types())];
    store.append(Tick { t: 1, lease: 1, create, ..Tick::default() }).unwrap();
    for t in 2..60_u64 {
        let rows: Vec<[Value; 2]> = (0..5).map(|i| [Value::Int8((t * 10 + i) as i64), Value::text("a text that is compressed, perhaps")]).collect();
        let rows = Deltas::inserts(Batch::from_rows(&types(), rows.iter().map(|r| &r[..])));
        let meta = vec![(vec![b'k', (t % 7) as u8], Some(vec![t as u8; 40]))];
        store.append(Tick { t, lease: t, shards: vec![(GlobalId(1 + t % 2), rows)], meta, ..Tick::default() }).unwrap();
        if t % 12 == 0 {
            store.fold().unwrap();
        }
    }
    store.seal();
}

type Content = (BTreeMap<Vec<u8>, Vec<u8>>, u64, Vec<Vec<i64>>);

/// Errors: what the store says.
fn content(dir: &Path) -> Result<Content, String> {
    let store = open(dir).map_err(|e| e.message)?;
    let kv = store.meta_scan(b"").into_iter().collect();
    let mut shards = Vec::new();
    for (id, _) in store.shards() {
        let mut keys = Vec::new();
        for part in store.snapshot(id, store.upper() - 1).map_err(|e| e.message)?.read(0, 1) {
            let part = part.map_err(|e| e.message)?;
            keys.extend((0..part.len()).map(|i| part.rows.row(&types(), i)[0].as_i64().unwrap()));
        }
        keys.sort_unstable();
        shards.push(keys);
    }
    Ok((kv, store.upper(), shards))
}

fn files(dir: &Path, out: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(dir).unwrap().map(|e| e.unwrap().path()) {
        if entry.is_dir() {
            files(&entry, out);
        } else {
            out.push(entry);
        }
    }
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().map(|e| e.unwrap()) {
        let to = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &to);
        } else {
            std::fs::copy(entry.path(), to).unwrap();
        }
    }
}

#[test]
fn damage_is_told_or_does_no_harm() {
    let dir = tempfile::tempdir().unwrap();
    let whole = dir.path().join("whole");
    fill(&whole);
    let wanted = content(&whole).unwrap();
    let seeds = std::env::var("DAMAGE_SEEDS").ok().and_then(|v| v.parse().ok()).unwrap_or(60);
    for seed in 0..seeds {
        let mut rng = Rng::new(seed);
        let harmed = dir.path().join("harmed");
        copy(&whole, &harmed);
        let mut all = Vec::new();
        files(&harmed, &mut all);
        all.retain(|f| !f.ends_with("LOCK") && !f.ends_with("SEAL"));
        all.sort();
        let file = &all[rng.below(all.len() as u64) as usize];
        let mut bytes = std::fs::read(file).unwrap();
        // Most of the metadata store's file is empty.
        let used = bytes.iter().rposition(|b| *b != 0).map_or(0, |p| p + 1);
        let what = match rng.below(4) {
            0 => {
                std::fs::remove_file(file).unwrap();
                "gone".to_owned()
            }
            1 => {
                let n = rng.below(used as u64) as usize;
                bytes.truncate(n);
                std::fs::write(file, &bytes).unwrap();
                format!("cut to {n}")
            }
            2 => {
                let from = rng.below(used as u64) as usize;
                let to = bytes.len().min(from + 1 + rng.below(4096) as usize);
                bytes[from..to].fill(0);
                std::fs::write(file, &bytes).unwrap();
                format!("zeros at {from} to {to}")
            }
            _ => {
                let at = rng.below(used.max(1) as u64) as usize;
                if let Some(b) = bytes.get_mut(at) {
                    *b ^= 1 << rng.below(8);
                }
                std::fs::write(file, &bytes).unwrap();
                format!("a bit at {at}")
            }
        };
        let name = file.strip_prefix(&harmed).unwrap().display().to_string();
        if let Ok(found) = content(&harmed) {
            assert!(found == wanted, "seed {seed}: {name}, {what}: less was found in silence");
        }
        std::fs::remove_dir_all(&harmed).unwrap();
    }
}
