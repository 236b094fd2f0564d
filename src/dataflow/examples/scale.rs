//! How long the common shapes take at size: `cargo run --release -p dataflow --example scale -- [rows] [workers]`.
//!
//! For each: hydration from a snapshot of `rows` rows, then ticks of 1000 changed rows each, until the view's frontier follows.

#[path = "../tests/common/mod.rs"]
mod common;
use common::*;
use plan::lir::ReduceKind;
use plan::{Lir, Mfp};
use std::time::{Duration, Instant};

fn shape(name: &str, rows: i64, workers: usize, make: impl Fn(&mut Db) -> (Lir, Vec<repr::GlobalId>)) {
    let mut db = Db::new(workers);
    let (lir, shards) = make(&mut db);
    let keys = rows / 10 + 1;
    let content = |k: i64| row(&[(k.wrapping_mul(2_654_435_761)).rem_euclid(keys), k]);
    db.tick(shards.iter().map(|s| (*s, (0..rows).map(|k| (content(k), 1)).collect())).collect());
    let arity = lir.types.len();
    let began = Instant::now();
    let (_, _, index) = db.view(lir, vec![0]);
    let at = db.now;
    db.wait(index, at + 1);
    let hydrated = began.elapsed();
    let mut took: Vec<Duration> = (0..50)
        .map(|tick| {
            let range = tick * 500..(tick + 1) * 500;
            let changes = shards.iter().map(|s| (*s, range.clone().flat_map(|k| [(content(k), -1), (content(k + rows), 1)]).collect()));
            let changes = changes.collect();
            let began = Instant::now();
            let t = db.tick(changes);
            db.wait(index, t + 1);
            began.elapsed()
        })
        .collect();
    took.sort();
    let began = Instant::now();
    let n = db.peek(index, &int8(arity), db.now, None, Mfp { project: vec![], ..Mfp::identity(arity) }).map(|b| b.values().sum::<i64>());
    println!("{name:24} hydrate {hydrated:>10.2?}  tick p50 {:>9.2?} p98 {:>9.2?}  scan {:>9.2?} of {n:?} rows", took[25], took[48], began.elapsed());
}

fn main() {
    let arg = |n: usize| std::env::args().nth(n).and_then(|x| x.parse::<i64>().ok());
    let (rows, workers) = (arg(1).unwrap_or(500_000), arg(2).unwrap_or(2) as usize);
    shape("index", rows, workers, |db| {
        let a = db.shard(int8(2));
        (get(a, 2), vec![a])
    });
    shape("count by key", rows, workers, |db| {
        let a = db.shard(int8(2));
        (reduce(get(a, 2), &[0], ReduceKind::Accumulable(vec![agg(def(2803), None)]), 1), vec![a])
    });
    shape("max by key", rows, workers, |db| {
        let a = db.shard(int8(2));
        (reduce(get(a, 2), &[0], ReduceKind::Hierarchical(vec![agg(def(2115), Some(1))]), 1), vec![a])
    });
    shape("max of all", rows, workers, |db| {
        let a = db.shard(int8(2));
        (reduce(project(get(a, 2), &[1]), &[], ReduceKind::Hierarchical(vec![agg(def(2115), Some(0))]), 1), vec![a])
    });
    shape("top 3 by key", rows, workers, |db| {
        let a = db.shard(int8(2));
        (top_k(get(a, 2), &[0], &[(1, true)], Some(3), 0, false), vec![a])
    });
    shape("distinct", rows, workers, |db| {
        let a = db.shard(int8(2));
        (distinct(get(a, 2)), vec![a])
    });
    shape("join", rows, workers, |db| {
        let (a, b) = (db.shard(int8(2)), db.shard(int8(2)));
        (project(join(get(a, 2), &[1], get(b, 2), &[1]), &[0, 1, 3]), vec![a, b])
    });
}
