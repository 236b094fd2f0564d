//! Envelopes: what messages mean, in any batching, across a restart.

mod common;

use common::{output, relation, show, ERRORS, OUTPUT};
use ingest::envelope::{Pipeline, PipelineSpec};
use ingest::record::Record;
use ingest::*;
use proptest::prelude::*;
use repr::{ColType, Deltas, GlobalId, SqlError, SqlType, SqlType::*};
use std::collections::BTreeMap;

fn pipeline(output: &OutputSpec, envelope: Envelope) -> Pipeline {
    let spec = PipelineSpec {
        output,
        errors: ERRORS,
        relation: "s".into(),
        on_error: OnError::Quarantine,
        key_format: None,
        value_format: &Format::Json,
        envelope: &envelope,
    };
    Pipeline::new(spec).unwrap()
}

type Message<'a> = (Option<&'a str>, Option<&'a str>);

fn push(p: &mut Pipeline, offset: i64, m: Message<'_>) {
    p.push(&Record { key: m.0.map(str::as_bytes), value: m.1.map(str::as_bytes), offset, ..Default::default() });
}

/// Changes as text: `+row`, `-row`, `! reason`.
fn changes(deltas: &[(GlobalId, Deltas)], output: &OutputSpec) -> Vec<String> {
    let mut out = Vec::new();
    for (id, d) in deltas {
        for i in 0..d.len() {
            if *id == ERRORS {
                out.push(format!("! {}", show(&d.rows.row(&errors_desc().types, i)[4])));
            } else {
                let row = d.rows.row(&output.desc.types, i).iter().map(show).collect::<Vec<_>>().join("|");
                out.push(format!("{:+} {row}", d.diffs.get(i)));
            }
        }
    }
    out
}

fn people() -> OutputSpec {
    relation(&[("id", Int4.not_null()), ("name", Text.not_null())], &[0])
}

struct Durable(Vec<Deltas>);
impl StateReader for Durable {
    fn read(&self, _: GlobalId) -> Result<Box<dyn Iterator<Item = Result<Deltas, SqlError>> + Send>, SqlError> {
        Ok(Box::new(self.0.clone().into_iter().map(Ok)))
    }
}

#[test]
fn upsert_keeps_the_last_of_a_key() {
    let output = people();
    let mut p = pipeline(&output, Envelope::Upsert);
    let batch =
        [(Some("1"), Some(r#"{"name":"a"}"#)), (Some(r#"{"id":1}"#), Some(r#"{"name":"b"}"#)), (Some("2"), Some(r#"{"id":2,"name":"c"}"#)), (Some("3"), None)];
    batch.iter().enumerate().for_each(|(i, m)| push(&mut p, i as i64, *m));
    assert_eq!(changes(&p.take(), &output), ["+1 1|b", "+1 2|c"]);
    push(&mut p, 4, (Some("1"), Some(r#"{"name":"b"}"#)));
    push(&mut p, 5, (Some("2"), None));
    assert_eq!(changes(&p.take(), &output), ["-1 2|c"]);
    assert_eq!(p.state_size().0, 1);
}

#[test]
fn upsert_bad_records_change_nothing() {
    let output = people();
    let mut p = pipeline(&output, Envelope::Upsert);
    push(&mut p, 0, (Some("1"), Some(r#"{"name":"a"}"#)));
    for m in [
        (None, Some(r#"{"name":"x"}"#)),
        (Some("1"), Some("{")),
        (Some("x"), None),
        (Some("null"), None),
        (Some("1"), Some(r#"{"name":null}"#)),
        (Some("{}"), None),
    ] {
        push(&mut p, 1, m);
    }
    let expected = [
        "+1 1|a",
        "! the message has no key",
        "! invalid JSON: it ends where a member's name is expected",
        "! key: invalid input syntax for type integer: \"x\"",
        "! the key column \"id\" is null",
        "! null value in column \"name\" violates not-null constraint",
        "! the key column \"id\" is null",
    ];
    assert_eq!(changes(&p.take(), &output), expected);
}

#[test]
fn upsert_goes_on_from_what_is_durable() {
    let output = people();
    let mut p = pipeline(&output, Envelope::Upsert);
    let mut durable = Vec::new();
    for m in [(Some("1"), Some(r#"{"name":"a"}"#)), (Some("2"), Some(r#"{"name":"b"}"#)), (Some("1"), Some(r#"{"name":"c"}"#)), (Some("2"), None)] {
        push(&mut p, 0, m);
        durable.extend(p.take().into_iter().map(|d| d.1));
    }
    // Parts in any order: a retraction may come before its insertion.
    durable.reverse();
    let mut again = pipeline(&output, Envelope::Upsert);
    again.restore(&Durable(durable)).unwrap();
    assert_eq!(again.state_size().0, 1);
    push(&mut again, 9, (Some("1"), Some(r#"{"name":"d"}"#)));
    assert_eq!(changes(&again.take(), &output), ["-1 1|c", "+1 1|d"]);
}

#[test]
fn upsert_with_included_key_column() {
    let columns = [("k", Text.not_null(), ColumnSource::Key(String::new())), ("n", Int4.nullable(), ColumnSource::Value("n".into()))];
    let output = output(OUTPUT, "", &columns, &[]);
    let mut p = pipeline(&output, Envelope::Upsert);
    push(&mut p, 0, (Some("\"a\""), Some(r#"{"n":1}"#)));
    push(&mut p, 1, (Some("\"b\""), Some(r#"{}"#)));
    push(&mut p, 2, (Some("\"a\""), None));
    // No KEY FORMAT was written: a key that is no JSON is its text.
    push(&mut p, 3, (Some("plain key"), Some(r#"{"n":2}"#)));
    push(&mut p, 4, (Some(r#"{"x": 1}"#), Some(r#"{"n":3}"#)));
    assert_eq!(changes(&p.take(), &output), ["+1 b|NULL", "+1 plain key|2", r#"+1 {"x": 1}|3"#]);
}

#[test]
fn upsert_without_key_is_refused() {
    let output = relation(&[("a", Int4.nullable())], &[]);
    let spec = PipelineSpec {
        output: &output,
        errors: ERRORS,
        relation: "s".into(),
        on_error: OnError::Fail,
        key_format: None,
        value_format: &Format::Json,
        envelope: &Envelope::Upsert,
    };
    let e = Pipeline::new(spec).err().unwrap();
    assert_eq!(e.code.as_str(), "42P17");
    assert!(e.hint.is_some());
}

#[test]
fn debezium_with_and_without_schema() {
    let output = relation(&[("id", Int4.not_null()), ("at", Timestamp.nullable()), ("price", Numeric.nullable())], &[0]);
    let mut p = pipeline(&output, Envelope::Debezium);
    // 2000-01-01 in microseconds and in milliseconds: told by their size.
    push(&mut p, 0, (Some(r#"{"id":1}"#), Some(r#"{"before":null,"after":{"id":1,"at":946684800000000,"price":"1.50"},"op":"c"}"#)));
    push(&mut p, 1, (Some(r#"{"id":2}"#), Some(r#"{"op":"r","after":{"id":2,"at":946684800000}}"#)));
    let schema = r#"{"type":"struct","fields":[{"field":"before"},{"field":"after","fields":[{"field":"id","type":"int32"},
        {"field":"at","type":"int64","name":"io.debezium.time.NanoTimestamp"},
        {"field":"price","type":"bytes","name":"org.apache.kafka.connect.data.Decimal","parameters":{"scale":"2"}}]}]}"#;
    let wrapped = format!(r#"{{"schema":{schema},"payload":{{"before":{{"id":9}},"after":{{"id":3,"at":946684800000001000,"price":"ASw="}},"op":"u"}}}}"#);
    push(&mut p, 2, (Some(r#"{"schema":{"type":"struct"},"payload":{"id":3}}"#), Some(&wrapped)));
    assert_eq!(changes(&p.take(), &output), ["+1 1|t0|150e-2", "+1 2|t0|NULL", "+1 3|t1|300e-2"]);
    // A delete, its tombstone, a duplicate of the delete, a message that is none of the table.
    push(&mut p, 3, (Some(r#"{"id":1}"#), Some(r#"{"before":{"id":1},"after":null,"op":"d"}"#)));
    push(&mut p, 4, (Some(r#"{"id":1}"#), None));
    push(&mut p, 5, (Some(r#"{"id":1}"#), Some(r#"{"before":{"id":1},"op":"d"}"#)));
    push(&mut p, 6, (Some("{}"), Some(r#"{"op":"m","message":{}}"#)));
    push(&mut p, 7, (Some(r#"{"id":2}"#), Some(r#"{"op":"r","after":{"id":2,"at":946684800000}}"#)));
    assert_eq!(changes(&p.take(), &output), ["-1 1|t0|150e-2"]);
}

#[test]
fn debezium_bad_events() {
    let output = people();
    let mut p = pipeline(&output, Envelope::Debezium);
    for m in [
        (Some("1"), r#"{"id":1}"#),
        (Some("1"), r#"{"op":"x"}"#),
        (None, r#"{"op":"t"}"#),
        (None, r#"{"op":"c","after":{"id":1,"name":"a"}}"#),
        (Some("1"), r#"{"op":"u","after":null}"#),
    ] {
        push(&mut p, 0, (m.0, Some(m.1)));
    }
    let expected = [
        "! not a Debezium change event: it has no \"op\"",
        "! unknown operation \"x\" of a Debezium change event",
        "! the table was truncated upstream: a truncation names no key and cannot be followed",
        "! the message has no key",
        "! the change event has no \"after\"",
    ];
    assert_eq!(changes(&p.take(), &output), expected);
}

/// Every encoding that Debezium has for a type, with the schema that names it and as far as it can be told without.
#[test]
fn debezium_encodings() {
    let list = |ty: SqlType| Array(Box::new(ty)).nullable();
    let bits = ColType { typmod: 5, ..Bit.nullable() };
    // Column, type, the field's schema, JSON, text of the value with the schema, and without (None: an error).
    let cases: Vec<(ColType, &str, &str, &str, Option<&str>)> = vec![
        (Numeric.nullable(), r#""bytes","name":"org.apache.kafka.connect.data.Decimal","parameters":{"scale":"-2"}"#, r#""Bw==""#, "700", None),
        (Numeric.nullable(), r#""struct","name":"io.debezium.data.VariableScaleDecimal""#, r#"{"scale":3,"value":"AeJA"}"#, "123.456", Some("123.456")),
        (Numeric.nullable(), r#""string""#, r#""12.50""#, "12.50", Some("12.50")),
        (
            list(Numeric),
            r#""array","items":{"type":"bytes","name":"org.apache.kafka.connect.data.Decimal","parameters":{"scale":"2"}}"#,
            r#"["AJY=",null]"#,
            "{1.50,NULL}",
            None,
        ),
        (Interval.nullable(), r#""int64","name":"io.debezium.time.MicroDuration""#, "90061000001", "25:01:01.000001", Some("25:01:01.000001")),
        (Interval.nullable(), r#""string","name":"io.debezium.time.Interval""#, r#""P1DT1S""#, "1 day 00:00:01", Some("1 day 00:00:01")),
        (
            list(Timestamp),
            r#""array","items":{"type":"int64","name":"io.debezium.time.MicroTimestamp"}"#,
            "[946684800000001]",
            r#"{"2000-01-01 00:00:00.000001"}"#,
            Some(r#"{"2000-01-01 00:00:00.000001"}"#),
        ),
        (Time.nullable(), r#""int64","name":"io.debezium.time.NanoTime""#, "3600000001000", "01:00:00.000001", Some("01:00:00.000001")),
        (Jsonb.nullable(), r#""string","name":"io.debezium.data.Json""#, r#""{\"a\": [1, 2]}""#, r#"{"a": [1, 2]}"#, Some(r#"{"a": [1, 2]}"#)),
        (Jsonb.nullable(), r#""string""#, r#""no document""#, r#""no document""#, Some(r#""no document""#)),
        (bits, r#""bytes","name":"io.debezium.data.Bits","parameters":{"length":"5"}"#, r#""BQ==""#, "00101", Some("00101")),
        (ColType { typmod: 1, ..Bit.nullable() }, r#""boolean""#, "true", "1", Some("1")),
        (Bytea.nullable(), r#""bytes""#, r#""AP9h""#, "\\x00ff61", Some("\\x00ff61")),
    ];
    for (ty, schema, json, with, without) in cases {
        let output = relation(&[("id", Int4.not_null()), ("v", ty.clone())], &[0]);
        let text = |deltas: &[(GlobalId, Deltas)]| -> Option<String> {
            let (_, d) = deltas.iter().find(|d| d.0 == OUTPUT)?;
            Some(repr::text::to_text(&d.rows.row(&output.desc.types, 0)[1], &ty.ty, &repr::style::TextStyle::default()))
        };
        let mut p = pipeline(&output, Envelope::Debezium);
        let event = format!(r#"{{"op":"c","after":{{"id":1,"v":{json}}}}}"#);
        let wrapper = format!(r#"{{"fields":[{{"field":"after","fields":[{{"field":"id","type":"int32"}},{{"field":"v","type":{schema}}}]}}]}}"#);
        push(&mut p, 0, (Some("1"), Some(&format!(r#"{{"schema":{wrapper},"payload":{event}}}"#))));
        assert_eq!(text(&p.take()).as_deref(), Some(with), "{schema} {json}");
        let mut p = pipeline(&output, Envelope::Debezium);
        push(&mut p, 0, (Some("1"), Some(&event)));
        assert_eq!(text(&p.take()).as_deref(), without, "{json} without schema");
    }
}

/// A long value that did not change is left out by Debezium: the row keeps the one it has, in the same batch and in a later one.
#[test]
fn debezium_values_left_out() {
    let output = relation(&[("id", Int4.not_null()), ("big", Text.not_null()), ("raw", Bytea.nullable()), ("n", Int4.nullable())], &[0]);
    let mut p = pipeline(&output, Envelope::Debezium);
    let left_out =
        |n: i32| format!(r#"{{"op":"u","after":{{"id":1,"big":"__debezium_unavailable_value","raw":"X19kZWJleml1bV91bmF2YWlsYWJsZV92YWx1ZQ==","n":{n}}}}}"#);
    push(&mut p, 0, (Some("1"), Some(&left_out(0))));
    push(&mut p, 1, (Some("1"), Some(r#"{"op":"c","after":{"id":1,"big":"long","raw":"AP9h","n":1}}"#)));
    push(&mut p, 2, (Some("1"), Some(&left_out(2))));
    let known = changes(&p.take(), &output);
    assert_eq!(
        known,
        [
            "+1 1|long|\0\u{fffd}a|1",
            "-1 1|long|\0\u{fffd}a|1",
            "+1 1|long|\0\u{fffd}a|2",
            "! column \"big\" was left out as unchanged in a row that is not known"
        ]
    );
    push(&mut p, 3, (Some("1"), Some(&left_out(3))));
    assert_eq!(changes(&p.take(), &output), ["-1 1|long|\0\u{fffd}a|2", "+1 1|long|\0\u{fffd}a|3"]);
}

/// Under `ON ERROR = 'fail'` a key is in error from a message that cannot be decoded until the next one that can, also across a restart.
#[test]
fn keys_in_error_heal() {
    let output = people();
    for (envelope, bad, good) in
        [(Envelope::Upsert, r#"{"name":1"#, r#"{"name":"b"}"#), (Envelope::Debezium, r#"{"op":"x"}"#, r#"{"op":"u","after":{"id":1,"name":"b"}}"#)]
    {
        let make = || {
            let spec = PipelineSpec {
                output: &output,
                errors: ERRORS,
                relation: "s".into(),
                on_error: OnError::Fail,
                key_format: None,
                value_format: &Format::Json,
                envelope: &envelope,
            };
            Pipeline::new(spec).unwrap()
        };
        let listed = |deltas: &[(GlobalId, Deltas)]| -> i64 { deltas.iter().filter(|d| d.0 == ERRORS).map(|d| d.1.diffs.iter().sum::<i64>()).sum() };
        let mut p = make();
        push(&mut p, 0, (Some(r#"{"id":1}"#), Some(bad)));
        push(&mut p, 1, (Some(r#"{"id":1}"#), Some(bad)));
        push(&mut p, 2, (Some(r#"{"id":2}"#), Some(bad)));
        push(&mut p, 3, (None, Some(bad)));
        let durable = p.take();
        assert_eq!(listed(&durable), 4);
        let errors: Vec<Deltas> = durable.into_iter().filter(|d| d.0 == ERRORS).map(|d| d.1).collect();
        let mut p = make();
        p.restore(&Lists(errors)).unwrap();
        push(&mut p, 4, (Some(r#"{"id":1}"#), Some(good)));
        assert_eq!(listed(&p.take()), -2);
        push(&mut p, 5, (Some(r#"{"id":2}"#), Some(bad)));
        if envelope == Envelope::Upsert {
            push(&mut p, 6, (Some(r#"{"id":2}"#), None));
        } else {
            push(&mut p, 6, (Some(r#"{"id":2}"#), Some(r#"{"op":"d"}"#)));
        }
        // Listed and taken off in one batch, and the one from before the restart.
        assert_eq!(listed(&p.take()), -1);
    }
}

/// What is durable of the errors relation; no rows.
struct Lists(Vec<Deltas>);
impl StateReader for Lists {
    fn read(&self, id: GlobalId) -> Result<Box<dyn Iterator<Item = Result<Deltas, SqlError>> + Send>, SqlError> {
        Ok(Box::new(if id == ERRORS { self.0.clone() } else { Vec::new() }.into_iter().map(Ok)))
    }
}

proptest! {
    /// Cutting the same messages into any batches, with a restart anywhere, gives the same collection, each key at most once.
    #[test]
    fn batching_is_invisible(messages in proptest::collection::vec((0u8..5, proptest::option::of(0u8..4)), 1..40), cuts in proptest::collection::vec(any::<(bool, bool)>(), 40)) {
        let output = people();
        let mut p = pipeline(&output, Envelope::Upsert);
        let mut durable: Vec<Deltas> = Vec::new();
        let mut model: BTreeMap<u8, u8> = BTreeMap::new();
        for (i, (k, v)) in messages.iter().enumerate() {
            let (key, value) = (k.to_string(), v.map(|v| format!(r#"{{"name":"n{v}"}}"#)));
            push(&mut p, i as i64, (Some(&key), value.as_deref()));
            match v {
                Some(v) => model.insert(*k, *v),
                None => model.remove(k),
            };
            if cuts[i].0 || i + 1 == messages.len() {
                durable.extend(p.take().into_iter().map(|d| d.1));
                if cuts[i].1 {
                    p = pipeline(&output, Envelope::Upsert);
                    p.restore(&Durable(durable.clone())).unwrap();
                }
                let mut sums: BTreeMap<String, i64> = BTreeMap::new();
                for d in &durable {
                    for r in 0..d.len() {
                        *sums.entry(d.rows.row(&output.desc.types, r).iter().map(show).collect::<Vec<_>>().join("|")).or_default() += d.diffs.get(r);
                    }
                }
                sums.retain(|_, n| *n != 0);
                let expected: BTreeMap<String, i64> = model.iter().map(|(k, v)| (format!("{k}|n{v}"), 1)).collect();
                prop_assert_eq!(sums, expected);
            }
        }
    }
}
