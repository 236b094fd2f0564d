//! Decoding: which bytes become which row, and what is said of the others.

mod common;

use common::{output, relation, show, ERRORS, OUTPUT};
use ingest::envelope::{Pipeline, PipelineSpec};
use ingest::record::Record;
use ingest::*;
use proptest::prelude::*;
use repr::{ColType, SqlType::*};

fn pipeline(output: &OutputSpec, value: Format) -> Pipeline {
    let spec = PipelineSpec {
        output,
        errors: ERRORS,
        relation: "s".into(),
        on_error: OnError::Quarantine,
        key_format: None,
        value_format: &value,
        envelope: &Envelope::None,
    };
    Pipeline::new(spec).unwrap()
}

/// Row or reason of one record.
fn decode(output: &OutputSpec, format: Format, value: &[u8]) -> String {
    let mut p = pipeline(output, format);
    p.push(&Record { value: Some(value), ..Default::default() });
    let taken = p.take();
    let (id, deltas) = &taken[0];
    assert_eq!((taken.len(), deltas.len()), (1, 1));
    if *id == OUTPUT {
        deltas.rows.row(&output.desc.types, 0).iter().map(show).collect::<Vec<_>>().join("|")
    } else {
        format!("! {}", show(&deltas.rows.row(&errors_desc().types, 0)[4]))
    }
}

#[track_caller]
fn golden(columns: &[(&str, ColType)], format: Format, cases: &[(&str, &str)]) {
    let output = relation(columns, &[]);
    for (input, expected) in cases {
        assert_eq!(decode(&output, format.clone(), input.as_bytes()), *expected, "for {input}");
    }
}

#[test]
fn json_members_by_name() {
    let columns = [("id", Int8.not_null()), ("name", Text.nullable()), ("on", Bool.nullable()), ("f", Float8.nullable())];
    let cases = [
        (r#"{"id":1,"name":"a","on":true,"f":1.5}"#, "1|a|true|1.5"),
        (r#" { "f" : 2 , "on":false, "name" : "b", "id" : -7 } "#, "-7|b|false|2"),
        (r#"{"id":1,"other":{"id":[2,{"id":3}]},"name":null}"#, "1|NULL|NULL|NULL"),
        (r#"{"id":1,"id":2}"#, "2|NULL|NULL|NULL"),
        (r#"{"id":"12","name":12.50,"on":"t","f":"1e3"}"#, "12|12.50|true|1000"),
        (r#"{"id":1,"name":{"a": [1, 2]}}"#, r#"1|{"a": [1, 2]}|NULL|NULL"#),
        (r#"{"id":1,"name":"\u00e9\n\"\ud83d\ude00\/"}"#, "1|é\n\"😀/|NULL|NULL"),
        (r#"{"\u0069d":5}"#, "5|NULL|NULL|NULL"),
        (r#"{"id":9223372036854775807}"#, "9223372036854775807|NULL|NULL|NULL"),
    ];
    golden(&columns, Format::Json, &cases);
}

#[test]
fn json_that_is_refused_says_why() {
    let columns = [("id", Int4.not_null()), ("name", Text.nullable())];
    let cases = [
        (r#"{"name":"a"}"#, "! null value in column \"id\" violates not-null constraint"),
        (r#"{"id":null}"#, "! null value in column \"id\" violates not-null constraint"),
        (r#"{"id":2147483648}"#, "! column \"id\": value \"2147483648\" is out of range for type integer"),
        (r#"{"id":1,"name":"a\u0000b"}"#, "! column \"name\": the character U+0000 cannot be stored as text"),
        (r#"{"id":[1]}"#, "! column \"id\": a JSON array is not a value of type integer"),
        (r#"{"id":1"#, "! invalid JSON: it ends where \",\" or \"}\" is expected"),
        (r#"{"id":1} x"#, "! invalid JSON at byte 9: expected the end of the record"),
        (r#"{"id":01}"#, "! invalid JSON at byte 7: expected \",\" or \"}\""),
        (r#"[1]"#, "! invalid JSON at byte 0: expected an object"),
        ("", "! the record is empty where a JSON object is expected"),
        (r#"{"id":1,"x":"\ud800"}"#, "! invalid JSON: a surrogate stands alone in a string"),
    ];
    golden(&columns, Format::Json, &cases);
    let bad = [b"{\"id\":1,\"name\":\"a\xff\"}".as_slice()];
    assert_eq!(decode(&relation(&columns, &[]), Format::Json, bad[0]), "! invalid byte sequence for encoding \"UTF8\": 0xff");
    let deep = format!("{{\"x\":{}", "[".repeat(100_000));
    assert!(decode(&relation(&columns, &[]), Format::Json, deep.as_bytes()).contains("nested deeper"));
}

#[test]
fn json_numbers_and_times_are_exact() {
    let columns = [("n", Numeric.nullable()), ("t", Timestamp.nullable()), ("z", TimestampTz.nullable()), ("d", Date.nullable())];
    let cases = [
        (r#"{"n":0.10}"#, "10e-2|NULL|NULL|NULL"),
        (r#"{"n":123456789012345678901234567890.000001}"#, "123456789012345678901234567890000001e-6|NULL|NULL|NULL"),
        (r#"{"n":"-1.5"}"#, "-15e-1|NULL|NULL|NULL"),
        (r#"{"t":946684800000,"z":946684800001,"d":10957}"#, "NULL|t0|t1000|d0"),
        (r#"{"t":"2000-01-01T00:00:01.5Z","z":"2000-01-01 02:00:00+02","d":"2000-03-01"}"#, "NULL|t1500000|t0|d60"),
        (r#"{"z":"1999-12-31T23:59:59.999999-00:30"}"#, "NULL|NULL|t1799999999|NULL"),
    ];
    golden(&columns, Format::Json, &cases);
}

#[test]
fn json_arrays_and_whole_records() {
    let columns = [("a", Int4.array_of().nullable()), ("j", Jsonb.nullable())];
    let cases = [
        (r#"{"a":[1,null,3]}"#, "[3]{1,NULL,3}|NULL"),
        (r#"{"a":[[1,2],[3,4]]}"#, "[2, 2]{1,2,3,4}|NULL"),
        (r#"{"a":[]}"#, "[]{}|NULL"),
        (r#"{"a":[[1,2],[3]]}"#, "! column \"a\": malformed JSON array: its arrays are not of equal length and depth"),
        (r#"{"a":[[1],2]}"#, "! column \"a\": malformed JSON array: its arrays are not of equal length and depth"),
        (r#"{"a":["x"]}"#, "! column \"a\": invalid input syntax for type integer: \"x\""),
    ];
    golden(&columns, Format::Json, &cases);
    let whole = [("data", Jsonb.nullable())];
    golden(&whole, Format::Json, &[("[1, true]", "Jsonb(Array([Number(Small { unscaled: 1, scale: 0 }), Bool(true)]))"), ("null", "Jsonb(Null)")]);
    assert!(decode(&relation(&whole, &[]), Format::Json, b"{").starts_with("! invalid JSON"));
}

#[test]
fn csv_as_copy_reads_it() {
    let columns = [("id", Int4.nullable()), ("name", Text.nullable())];
    let csv = Format::Csv { delimiter: b',', header: false, columns: 2 };
    let cases = [
        ("1,a", "1|a"),
        ("1,", "1|NULL"),
        ("1,\"\"", "1|"),
        ("1,\"a \"\"b\"\"\nc,d\"", "1|a \"b\"\nc,d"),
        ("1,x\"y,z\"w", "1|xy,zw"),
        (",é", "NULL|é"),
        ("1", "! the CSV record has 1 fields, 2 are expected"),
        ("1,2,3", "! the CSV record has 3 fields, 2 are expected"),
        ("1,\"a", "! unterminated CSV quoted field"),
        ("x,a", "! column \"id\": invalid input syntax for type integer: \"x\""),
        ("1,a\n2,b", "! the record holds more than one line of CSV"),
        ("1,a\r\n", "1|a"),
    ];
    golden(&columns, csv, &cases);
}

#[test]
fn text_and_bytes() {
    golden(&[("t", Text.nullable())], Format::Text, &[("a b", "a b"), ("", "")]);
    assert!(decode(&relation(&[("t", Text.nullable())], &[]), Format::Text, b"\xff").starts_with("! invalid byte sequence"));
    assert_eq!(decode(&relation(&[("t", Text.nullable())], &[]), Format::Text, b"a\0b"), "! the character U+0000 cannot be stored as text");
    assert_eq!(decode(&relation(&[("b", Bytea.nullable())], &[]), Format::Bytes, b"a\0b"), "a\0b");
}

#[test]
fn metadata_columns() {
    let columns = [
        ("v", Text.nullable(), ColumnSource::Value("v".into())),
        ("k", Text.nullable(), ColumnSource::Key(String::new())),
        ("p", Int4.not_null(), ColumnSource::Partition),
        ("o", Int8.not_null(), ColumnSource::Offset),
        ("t", TimestampTz.nullable(), ColumnSource::Timestamp),
        ("h", Text.nullable(), ColumnSource::Headers),
        ("x", Bytea.nullable(), ColumnSource::Header("x".into())),
    ];
    let output = output(OUTPUT, "", &columns, &[]);
    let mut p = pipeline(&output, Format::Text);
    let headers = [("x", Some(b"1".as_slice())), ("y", None)];
    let record = Record { key: Some(b"kk"), value: Some(b"vv"), headers: &headers, partition: 3, offset: 9, timestamp_ms: Some(946684800001), path: "" };
    p.push(&record);
    let row = p.take()[0].1.rows.row(&output.desc.types, 0);
    let shown: Vec<String> = row.iter().map(show).collect();
    assert_eq!(shown.join("|"), r#"vv|kk|3|9|t1000|[{"key":"x","value":"1"},{"key":"y","value":null}]|1"#);
}

#[test]
fn definitions_are_validated() {
    let code = |connector: Connector, o: OutputSpec| validate(&common::spec(connector, vec![o])).map_err(|e| e.code.as_str().to_string());
    let file = |format: Format| Connector::File { path: "x".into(), tail: false, format };
    let kafka = |envelope: Envelope| Connector::Kafka {
        properties: vec![],
        topic: "t".into(),
        start: KafkaStart::Earliest,
        key_format: None,
        value_format: Format::Json,
        envelope,
    };
    let two = || relation(&[("a", Text.nullable()), ("b", Text.nullable())], &[]);
    assert_eq!(code(file(Format::Json), two()), Ok(()));
    assert_eq!(code(file(Format::Text), two()), Err("42P16".into()));
    assert_eq!(code(file(Format::Bytes), two()), Err("0A000".into()));
    assert_eq!(code(file(Format::Csv { delimiter: b',', header: false, columns: 1 }), two()), Err("42P16".into()));
    assert_eq!(code(file(Format::Text), output(OUTPUT, "", &[("k", Text.nullable(), ColumnSource::Key(String::new()))], &[])), Err("42P16".into()));
    assert_eq!(code(kafka(Envelope::Upsert), two()), Err("42P17".into()));
    let counter = Connector::Generator { kind: Generator::Counter, tick_interval_ms: 1, options: vec![] };
    assert_eq!(code(counter.clone(), relation(&[("counter", Int8.not_null())], &[])), Ok(()));
    assert_eq!(code(counter.clone(), relation(&[("counter", Int4.not_null())], &[])), Err("42804".into()));
    assert_eq!(code(counter, two()), Err("42703".into()));
}

proptest! {
    /// The scanner takes exactly the JSON that serde_json takes.
    #[test]
    fn scanner_accepts_what_serde_json_accepts(text in r#"[\[\]{},:"\\ truefalsn0-9.eE+\-u\n]{0,24}"#) {
        use ingest::decode::{cell::Place, scan::Scanner};
        let mut s = Scanner::new(&text, Place::Value, 0);
        let ours = s.value().and_then(|_| s.end()).is_ok();
        prop_assert_eq!(ours, serde_json::from_str::<serde::de::IgnoredAny>(&text).is_ok(), "{}", text);
    }

    /// What is written as JSON or CSV is read back.
    #[test]
    fn text_survives(s in any::<String>().prop_filter("U+0000", |s| !s.contains('\0')), n in any::<i64>()) {
        let output = relation(&[("n", Int8.nullable()), ("s", Text.nullable())], &[]);
        let json = serde_json::json!({ "n": n, "s": s }).to_string();
        prop_assert_eq!(decode(&output, Format::Json, json.as_bytes()), format!("{n}|{s}"));
        let csv = format!("{n},\"{}\"", s.replace('"', "\"\""));
        prop_assert_eq!(decode(&output, Format::Csv { delimiter: b',', header: false, columns: 2 }, csv.as_bytes()), format!("{n}|{s}"));
    }

    /// Any bytes are a row or an error row.
    #[test]
    fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
        let output = relation(&[("n", Int8.nullable()), ("s", Text.nullable())], &[]);
        for f in [Format::Json, Format::Csv { delimiter: b',', header: false, columns: 2 }] {
            decode(&output, f, &bytes);
        }
    }
}
