//! Rates of decoding and envelopes on one core: `cargo test --release -p ingest --test rates -- --ignored --nocapture`.

mod common;

use common::{relation, ERRORS};
use ingest::envelope::{Pipeline, PipelineSpec};
use ingest::record::Record;
use ingest::*;
use repr::SqlType::*;
use std::time::Instant;

const RECORDS: usize = 500_000;

fn rate(name: &str, output: &OutputSpec, format: Format, envelope: Envelope, record: impl Fn(usize) -> (String, String)) {
    let spec = PipelineSpec {
        output,
        errors: ERRORS,
        relation: "s".into(),
        on_error: OnError::Quarantine,
        key_format: None,
        value_format: &format,
        envelope: &envelope,
    };
    let mut p = Pipeline::new(spec).unwrap();
    let records: Vec<(String, String)> = (0..RECORDS).map(record).collect();
    let bytes: usize = records.iter().map(|r| r.1.len()).sum();
    let began = Instant::now();
    for (i, (k, v)) in records.iter().enumerate() {
        p.push(&Record { key: Some(k.as_bytes()), value: Some(v.as_bytes()), offset: i as i64, ..Default::default() });
        if i % 20_000 == 19_999 {
            p.take();
        }
    }
    p.take();
    let s = began.elapsed().as_secs_f64();
    assert_eq!(p.error_count, 0);
    println!("{name:24} {:9.0} records/s {:6.0} MB/s", RECORDS as f64 / s, bytes as f64 / s / 1e6);
}

#[test]
#[ignore = "prints rates"]
fn rates() {
    let bids =
        [("auction", Int8.not_null()), ("bidder", Int8.not_null()), ("price", Int8.not_null()), ("channel", Text.nullable()), ("at", Timestamp.not_null())];
    let json = |i: usize| {
        let v =
            format!("{{\"auction\":{},\"bidder\":{},\"price\":{},\"channel\":\"Google\",\"at\":\"2024-01-01 00:00:{:02}.123\"}}", i % 1000, i, i * 7, i % 60);
        ((i % 100_000).to_string(), v)
    };
    rate("json, five columns", &relation(&bids, &[]), Format::Json, Envelope::None, json);
    let csv = |i: usize| (String::new(), format!("{},{},{},Google,2024-01-01 00:00:{:02}.123", i % 1000, i, i * 7, i % 60));
    rate("csv, five columns", &relation(&bids, &[]), Format::Csv { delimiter: b',', header: false, columns: 5 }, Envelope::None, csv);
    let money = [("id", Int8.not_null()), ("amount", Numeric.nullable()), ("rate", Float8.nullable()), ("ok", Bool.nullable())];
    rate("json, numeric and float", &relation(&money, &[]), Format::Json, Envelope::None, |i| {
        (String::new(), format!("{{\"id\":{i},\"amount\":{}.{:02},\"rate\":0.{i},\"ok\":true}}", i, i % 100))
    });
    rate("json, one jsonb", &relation(&[("data", Jsonb.nullable())], &[]), Format::Json, Envelope::None, json);
    rate("text", &relation(&[("line", Text.nullable())], &[]), Format::Text, Envelope::None, json);
    let keyed = [("id", Int8.not_null()), ("auction", Int8.not_null()), ("price", Int8.not_null()), ("channel", Text.nullable())];
    rate("upsert, 100,000 keys", &relation(&keyed, &[0]), Format::Json, Envelope::Upsert, json);
    rate("debezium, 100,000 keys", &relation(&keyed, &[0]), Format::Json, Envelope::Debezium, |i| {
        let id = i % 100_000;
        (
            format!("{{\"id\":{id}}}"),
            format!("{{\"before\":null,\"after\":{{\"id\":{id},\"auction\":{i},\"price\":7,\"channel\":\"x\"}},\"op\":\"u\",\"ts_ms\":1}}"),
        )
    });
}
