//! Load generators: deterministic, resumable exactly.

mod common;

use common::{output, spec, Durable, Run, OUTPUT};
use ingest::*;
use repr::GlobalId;
use std::time::Duration;

fn generator(kind: Generator, tick_interval_ms: u64, options: &[(&str, &str)], references: &[&str]) -> SourceSpec {
    let outputs = references
        .iter()
        .enumerate()
        .map(|(i, r)| {
            let table = generator_tables(kind).into_iter().find(|t| r.is_empty() || t.name == *r).unwrap();
            let columns: Vec<_> =
                table.desc.names.iter().zip(&table.desc.types).map(|(n, t)| (n.as_str(), t.clone(), ColumnSource::Value(n.clone()))).collect();
            output(GlobalId(OUTPUT.0 + i as u64), r, &columns, &[])
        })
        .collect();
    let options = options.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect();
    spec(Connector::Generator { kind, tick_interval_ms, options }, outputs)
}

#[test]
fn counter_counts_across_a_crash() {
    let spec = generator(Generator::Counter, 1, &[], &[""]);
    let mut run = Run::start(spec.clone());
    run.until("100 rows", |r| r.rows().len() >= 100);
    let durable = run.crash();
    let n = durable.rows[&OUTPUT].len();
    let mut run = Run::resume(spec, durable);
    run.until("100 more", |r| r.rows().len() >= n + 100);
    let mut numbers: Vec<i64> = run.rows().iter().map(|r| r.parse().unwrap()).collect();
    numbers.sort_unstable();
    assert_eq!(numbers, (1..=numbers.len() as i64).collect::<Vec<_>>());
}

#[test]
fn counter_with_max_cardinality() {
    let mut run = Run::start(generator(Generator::Counter, 1, &[("MAX CARDINALITY", "3")], &[""]));
    run.until("many changes", |r| r.durable.rows.get(&OUTPUT).map_or(0, Vec::len) > 50);
    let rows = run.rows();
    assert_eq!(rows.len(), 3);
    let mut numbers: Vec<i64> = rows.iter().map(|r| r.parse().unwrap()).collect();
    numbers.sort_unstable();
    assert_eq!(numbers[2] - numbers[0], 2);
}

#[test]
fn auction_tables_agree_and_a_later_table_catches_up() {
    let mut spec = generator(Generator::Auction, 1, &[("seed", "7")], &["auctions", "bids", "users", "organizations", "accounts"]);
    let bids = spec.outputs.remove(1);
    let users = GlobalId(OUTPUT.0 + 2);
    let mut run = Run::start(spec.clone());
    run.until("five auctions", |r| r.table(OUTPUT).len() >= 5);
    assert_eq!(run.table(users).len(), 1024);
    let durable = run.crash();
    let bids_id = bids.id;
    spec.outputs.push(bids);
    let mut run = Run::resume(spec, durable);
    run.until("the snapshot of bids", |r| r.durable.snapshots.contains(&bids_id));
    let (auctions, bids) = (run.table(OUTPUT).len(), run.table(bids_id).len());
    assert!(bids >= (auctions - 1) * 10 && bids <= auctions * 10, "{auctions} auctions, {bids} bids");
    run.until("more of both", |r| r.table(OUTPUT).len() > auctions + 3);
    let (auctions, bids) = (run.table(OUTPUT).len(), run.table(bids_id).len());
    assert!(bids >= (auctions - 1) * 10 && bids <= auctions * 10);
}

#[test]
fn key_value_is_one_row_a_key() {
    let options = [("KEYS", "20"), ("BATCH SIZE", "3"), ("VALUE SIZE", "9"), ("PARTITIONS", "4")];
    let mut run = Run::start(generator(Generator::KeyValue, 1, &options, &[""]));
    run.until("the snapshot", |r| r.snapshot_done());
    assert_eq!(run.rows().len(), 20);
    let before = run.rows();
    run.until("updates", |r| r.durable.rows[&OUTPUT].len() > 100);
    let durable: Durable = run.durable.clone();
    assert_eq!(run.rows().len(), 20);
    assert_ne!(run.rows(), before);
    let spec = generator(Generator::KeyValue, 1, &options, &[""]);
    let mut run = Run::resume(spec, durable);
    run.settle(Duration::from_millis(100));
    assert_eq!(run.rows().len(), 20);
    assert_eq!(run.durable.rows[&OUTPUT].iter().map(|r| r.1).sum::<i64>(), 20);
}

#[test]
fn options_are_checked() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let check = |options: &[(&str, &str)]| {
        let spec = generator(Generator::Counter, 1, options, &[""]);
        runtime.block_on(inspect(&spec.connector)).map(|t| t.len()).map_err(|e| e.code.as_str().to_string())
    };
    assert_eq!(check(&[]), Ok(1));
    assert_eq!(check(&[("max cardinality", "0")]), Err("22023".into()));
    assert_eq!(check(&[("KEYS", "1")]), Err("22023".into()));
}
