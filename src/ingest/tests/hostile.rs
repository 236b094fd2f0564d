//! Hostile bytes: whatever a broker, a file or an upstream sends, a decoder answers with rows or with a reason, never with a panic.
//!
//! Messages that are right are damaged: bytes changed, cut, repeated, spliced with others. `HOSTILE_SEED=7 cargo test -p ingest --test hostile` runs one seed,
//! `HOSTILE_ROUNDS=1000000` more of them.

mod common;

use common::{output, relation, ERRORS, OUTPUT};
use ingest::envelope::{Pipeline, PipelineSpec};
use ingest::record::Record;
use ingest::source::postgres::engine::{Engine, Halt};
use ingest::source::postgres::lsn::Lsn;
use ingest::*;
use repr::{ColType, SqlType, SqlType::*};

struct Rng(u64);

impl Rng {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % n.max(1) as u64) as usize
    }

    fn damage(&mut self, bytes: &[u8], others: &[Vec<u8>]) -> Vec<u8> {
        const TOKENS: [&[u8]; 24] = [
            b"\"",
            b"\\",
            b"{",
            b"}",
            b"[",
            b"]",
            b",",
            b":",
            b"null",
            b"true",
            b"-",
            b"1e400",
            b"1e-999999999",
            b"99999999999999999999",
            b"\\u0000",
            b"\\ud800",
            b"\xff",
            b"\0",
            b"infinity",
            b"NaN",
            b"9999-99-99",
            b"{{",
            b"\"schema\"",
            b"\"payload\"",
        ];
        let mut out = bytes.to_vec();
        for _ in 0..1 + self.below(4) {
            let at = self.below(out.len() + 1);
            match self.below(7) {
                0 if !out.is_empty() => {
                    let i = at.min(out.len() - 1);
                    out[i] = self.below(256) as u8;
                }
                1 => out.truncate(at),
                2 => {
                    let token = TOKENS[self.below(TOKENS.len())];
                    out.splice(at..at, token.iter().copied());
                }
                3 => {
                    let other = &others[self.below(others.len())];
                    let from = self.below(other.len() + 1);
                    out.truncate(at);
                    out.extend_from_slice(&other[from..]);
                }
                4 => {
                    let to = (at + self.below(20)).min(out.len());
                    let part = out[at..to].to_vec();
                    for _ in 0..self.below(4) {
                        out.splice(at..at, part.iter().copied());
                    }
                }
                5 => {
                    let to = (at + self.below(8)).min(out.len());
                    out.drain(at..to);
                }
                _ if !out.is_empty() => {
                    let i = at.min(out.len() - 1);
                    out[i] ^= 1 << self.below(8);
                }
                _ => {}
            }
        }
        out
    }
}

fn rounds(default: usize) -> (u64, usize) {
    let number = |name: &str| std::env::var(name).ok().and_then(|v| v.parse::<u64>().ok());
    (number("HOSTILE_SEED").unwrap_or(1), number("HOSTILE_ROUNDS").map_or(default, |n| n as usize))
}

fn every_type() -> Vec<(&'static str, ColType)> {
    let array = |t: SqlType| Array(Box::new(t));
    [
        ("b", Bool),
        ("i2", Int2),
        ("i4", Int4),
        ("i8", Int8),
        ("f4", Float4),
        ("f8", Float8),
        ("n", Numeric),
        ("t", Text),
        ("by", Bytea),
        ("d", Date),
        ("ti", Time),
        ("tz", TimeTz),
        ("ts", Timestamp),
        ("tt", TimestampTz),
        ("iv", Interval),
        ("u", Uuid),
        ("j", Json),
        ("jb", Jsonb),
        ("ai", array(Int4)),
        ("at", array(Text)),
        ("aj", array(Jsonb)),
        ("inet", Inet),
    ]
    .into_iter()
    .map(|(n, t)| (n, t.nullable()))
    .collect()
}

fn json_messages() -> Vec<Vec<u8>> {
    let row = r#"{"id":7,"b":true,"i2":1,"i4":-2,"i8":9007199254740993,"f4":1.5,"f8":1e-300,"n":123456789012345678901234567890.5,"t":"h\u00e9\ud83d\ude00\n","by":"\\x00ff","d":"2024-02-29",
        "ti":"23:59:59.999999","tz":"12:00:00+05:30","ts":"infinity","tt":1704067200000,"iv":"1 year 2 mons -3 days 04:05:06.7","u":"00000000-0000-0000-0000-000000000007","j":{"a":[1,2]},"jb":[1.50,null,{}],
        "ai":[1,null,3],"at":["a","b"],"aj":[{"x":1}],"inet":"10.0.0.1/8"}"#;
    let mut all = vec![row.to_owned(), r#"{"id":7,"d":19782,"ts":1704067200000000,"ai":[[1,2],[3,4]],"j":"text","u":null,"n":"NaN","f8":"Infinity"}"#.into()];
    all.push(format!(r#"{{"before":null,"after":{row},"op":"c","ts_ms":1,"source":{{"lsn":5}}}}"#));
    all.push(r#"{"before":{"id":7},"after":null,"op":"d"}"#.into());
    all.push(
        r#"{"schema":{"type":"struct","fields":[{"field":"after","type":"struct","fields":[{"field":"id","type":"int32"},{"field":"d","type":"int32","name":"io.debezium.time.Date"},
        {"field":"n","type":"bytes","name":"org.apache.kafka.connect.data.Decimal","parameters":{"scale":"2"}},{"field":"ts","type":"int64","name":"io.debezium.time.MicroTimestamp"},
        {"field":"by","type":"bytes"}]}]},"payload":{"before":null,"after":{"id":1,"d":19782,"n":"AMk=","ts":1704067200000000,"by":"AP8="},"op":"u"}}"#
            .into(),
    );
    all.push(r#"{"schema":null,"payload":{"id":7}}"#.into());
    all.push("7".into());
    all.into_iter().map(String::into_bytes).collect()
}

#[test]
fn records_of_every_format() {
    let (seed, rounds) = rounds(3_000);
    let mut rng = Rng(seed);
    let typed: Vec<(&str, ColType)> = std::iter::once(("id", Int4.not_null())).chain(every_type()).collect();
    let keyed: Vec<(&str, ColType, ColumnSource)> = typed
        .iter()
        .map(|(n, t)| (*n, t.clone(), if *n == "id" { ColumnSource::Key("id".into()) } else { ColumnSource::Value(n.to_string()) }))
        .chain([("hs", Jsonb.nullable(), ColumnSource::Headers), ("h", Text.nullable(), ColumnSource::Header("h".into()))])
        .collect();
    let one = |ty: ColType| output(OUTPUT, "", &[("data", ty, ColumnSource::Value(String::new()))], &[]);
    let csv = |columns| Format::Csv { delimiter: b',', header: false, columns };
    let mut pipelines = Vec::new();
    let cases = [
        (relation(&typed, &[]), Format::Json, Envelope::None),
        (output(OUTPUT, "", &keyed, &[0]), Format::Json, Envelope::Upsert),
        (output(OUTPUT, "", &keyed, &[0]), Format::Json, Envelope::Debezium),
        (one(Jsonb.nullable()), Format::Json, Envelope::None),
        (one(Text.nullable()), Format::Text, Envelope::None),
        (one(Bytea.nullable()), Format::Bytes, Envelope::None),
        (relation(&typed, &[]), csv(typed.len()), Envelope::None),
    ];
    for (output, format, envelope) in &cases {
        let key_format = (*envelope != Envelope::None).then_some(&Format::Json);
        let spec = PipelineSpec { output, errors: ERRORS, relation: "s".into(), on_error: OnError::Quarantine, key_format, value_format: format, envelope };
        pipelines.push(Pipeline::new(spec).unwrap());
    }
    let mut messages = json_messages();
    messages.push(b"7,t,1,2,3,1.5,2.5,1.50,\"a,\"\"b\"\"\",\\x00ff,2024-01-01,12:00,12:00+01,infinity,2024-01-01 00:00+00,1 day,00000000-0000-0000-0000-000000000007,{},[],\"{1,2}\",\"{a}\",\"{}\",::1".to_vec());
    let keys: Vec<Vec<u8>> = [&br#"{"id":7}"#[..], br#"{"schema":{},"payload":{"id":8}}"#, b"7", b"\"x\"", b"null"].iter().map(|k| k.to_vec()).collect();
    let (mut taken, mut refused) = (0, 0);
    for round in 0..rounds {
        let value = rng.damage(&messages[round % messages.len()], &messages);
        let key = if rng.below(3) == 0 { rng.damage(&keys[round % keys.len()], &keys) } else { keys[rng.below(keys.len())].clone() };
        let header = rng.damage(b"header", &keys);
        let headers = [("h", Some(header.as_slice())), ("none", None)];
        let record = Record {
            key: (rng.below(8) > 0).then_some(key.as_slice()),
            value: (rng.below(12) > 0).then_some(value.as_slice()),
            headers: &headers,
            offset: round as i64,
            timestamp_ms: [None, Some(i64::MIN), Some(i64::MAX), Some(0)][rng.below(4)],
            ..Default::default()
        };
        for p in &mut pipelines {
            p.push(&record);
        }
        if round % 97 == 0 {
            for (id, deltas) in pipelines.iter_mut().flat_map(Pipeline::take) {
                *(if id == ERRORS { &mut refused } else { &mut taken }) += deltas.len();
            }
        }
    }
    assert!(taken > rounds / 10 && refused > rounds / 10, "{taken} taken, {refused} refused: the damage is too little or too much");
}

/// Messages of pgoutput: a relation of three columns, rows with text, null and unchanged cells, old rows, truncation.
fn pgoutput_messages() -> Vec<Vec<u8>> {
    let relation = |identity: u8| {
        let mut m = b"R\0\0\0\x05public\0t\0".to_vec();
        m.extend([identity, 0, 3]);
        for (key, name, oid) in [(1u8, "id", 23u32), (0, "v", 25), (0, "n", 1700)] {
            m.push(key);
            m.extend(name.as_bytes());
            m.push(0);
            m.extend(oid.to_be_bytes());
            m.extend(u32::MAX.to_be_bytes());
        }
        m
    };
    let text = |s: &str| [&b"t"[..], &(s.len() as u32).to_be_bytes(), s.as_bytes()].concat();
    let tuple = |cells: &[Vec<u8>]| [&(cells.len() as u16).to_be_bytes()[..], &cells.concat()].concat();
    let row = |id: &str| tuple(&[text(id), text("value"), text("1.50")]);
    let toast = tuple(&[text("1"), b"u".to_vec(), b"n".to_vec()]);
    let message = |kind: &[u8], parts: &[&[u8]]| [kind, &[0, 0, 0, 5], &parts.concat()].concat();
    vec![
        relation(b'd'),
        relation(b'f'),
        message(b"I", &[b"N", &row("1")]),
        message(b"I", &[b"N", &row("2")]),
        message(b"U", &[b"N", &row("1")]),
        message(b"U", &[b"N", &toast]),
        message(b"U", &[b"K", &tuple(&[text("1"), b"n".to_vec(), b"n".to_vec()]), b"N", &row("3")]),
        message(b"U", &[b"O", &row("1"), b"N", &toast]),
        message(b"D", &[b"K", &tuple(&[text("1"), b"n".to_vec(), b"n".to_vec()])]),
        message(b"D", &[b"O", &row("2")]),
        [&b"T\0\0\0\x01\0"[..], &[0, 0, 0, 5]].concat(),
        b"Y\0\0\0\x11public\0mood\0".to_vec(),
        b"O\0\0\0\0\0\0\0\x01origin\0".to_vec(),
    ]
}

#[test]
fn messages_of_the_replication_stream() {
    let (seed, rounds) = rounds(20_000);
    let mut rng = Rng(seed);
    let columns: [(&str, ColType); 3] = [("id", Int4.not_null()), ("v", Text.nullable()), ("n", Numeric.nullable())];
    let mut out = relation(&columns, &[0]);
    out.reference = "public.t".into();
    out.snapshot_done = true;
    let connector = Connector::Postgres {
        host: String::new(),
        port: 1,
        user: String::new(),
        password: None,
        database: String::new(),
        ssl_mode: "disable".into(),
        certificates: Default::default(),
        publication: String::new(),
        slot: String::new(),
    };
    let spec = common::spec(connector, vec![out]);
    let messages = pgoutput_messages();
    let fresh = || {
        let mut engine = Engine::new(&spec, Lsn(0)).unwrap();
        engine.begin(Lsn(1), 1);
        engine
    };
    let mut engine = fresh();
    let mut failed = 0;
    for round in 0..rounds {
        let whole = &messages[rng.below(messages.len())];
        let bytes = if rng.below(4) > 0 { whole.clone() } else { rng.damage(whole, &messages) };
        loop {
            match engine.change(Lsn(round as u64), &bytes) {
                Ok(()) => break,
                Err(Halt::NeedsState(table)) if engine.tables[table].load(std::iter::empty()).is_ok() => {}
                // The source ends here (keys that are not unique are among the reasons); the next one begins anew.
                Err(_) => {
                    failed += 1;
                    engine = fresh();
                    break;
                }
            }
        }
        if round % 50 == 0 {
            engine.take(rng.below(2) == 0);
        }
    }
    assert!(failed > rounds / 100 && failed < rounds * 3 / 4, "{failed} of {rounds} failed");
}
