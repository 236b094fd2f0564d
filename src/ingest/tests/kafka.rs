//! Kafka sources against a real broker, which the test starts (`tests/harness/kafka.sh`: needs Java 17 and Maven, so it
//! is ignored by default): `cargo test -p ingest --test kafka -- --ignored`.

mod common;

use common::{output, relation, spec, Run, OUTPUT};
use ingest::*;
use rdkafka::admin::{AdminClient, AdminOptions, NewPartitions, NewTopic, TopicReplication};
use rdkafka::client::DefaultClientContext;
use rdkafka::message::{Header, OwnedHeaders};
use rdkafka::producer::{BaseRecord, FutureProducer, FutureRecord, Producer, ThreadedProducer};
use rdkafka::ClientConfig;
use repr::{ColType, SqlType::*};
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

/// A broker; stopped at the end.
struct Broker {
    dir: tempfile::TempDir,
    port: u16,
    runtime: tokio::runtime::Runtime,
}

fn script(args: &[&str]) {
    let path: PathBuf = [env!("CARGO_MANIFEST_DIR"), "..", "..", "tests", "harness", "kafka.sh"].iter().collect();
    let status = Command::new(path).args(args).status().expect("kafka.sh can be run");
    assert!(status.success(), "kafka.sh {args:?}");
}

impl Broker {
    fn start() -> Broker {
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let broker = Broker { dir: tempfile::tempdir().unwrap(), port, runtime: tokio::runtime::Runtime::new().unwrap() };
        broker.up();
        broker
    }
    fn path(&self) -> &str {
        self.dir.path().to_str().unwrap()
    }
    fn up(&self) {
        script(&["start", &self.port.to_string(), self.path()]);
    }
    fn down(&self) {
        script(&["kill", self.path()]);
    }
    fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }
    fn config(&self) -> ClientConfig {
        let mut c = ClientConfig::new();
        c.set("bootstrap.servers", self.address()).set("linger.ms", "0");
        c
    }
    fn admin(&self) -> AdminClient<DefaultClientContext> {
        self.config().create().unwrap()
    }
    fn create(&self, topic: &str, partitions: i32) {
        let new = NewTopic::new(topic, partitions, TopicReplication::Fixed(1));
        let made = self.runtime.block_on(self.admin().create_topics([&new], &AdminOptions::new())).unwrap();
        made[0].as_ref().unwrap();
        std::thread::sleep(Duration::from_millis(200));
    }
    fn delete(&self, topic: &str) {
        self.runtime.block_on(self.admin().delete_topics(&[topic], &AdminOptions::new())).unwrap()[0].as_ref().unwrap();
        std::thread::sleep(Duration::from_millis(500));
    }
    /// Sends (partition, key, value) in order.
    fn send(&self, topic: &str, messages: &[(i32, Option<&str>, Option<&str>)]) {
        let producer: FutureProducer = self.config().create().unwrap();
        for (partition, key, value) in messages {
            let mut r: FutureRecord<'_, str, str> = FutureRecord::to(topic).partition(*partition).timestamp(946684800000 + i64::from(*partition));
            if let Some(k) = key {
                r = r.key(*k);
            }
            if let Some(v) = value {
                r = r.payload(*v);
            }
            self.runtime
                .block_on(producer.send(r.headers(OwnedHeaders::new().insert(Header { key: "h", value: Some("x") })), Duration::from_secs(10)))
                .unwrap();
        }
    }
    fn source(&self, topic: &str, start: KafkaStart, envelope: Envelope, outputs: Vec<OutputSpec>) -> SourceSpec {
        let properties = vec![("bootstrap.servers".into(), self.address())];
        let connector = Connector::Kafka { properties, topic: topic.into(), start, key_format: None, value_format: Format::Json, envelope };
        spec(connector, outputs)
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        script(&["kill", self.path()]);
    }
}

fn numbers() -> OutputSpec {
    relation(&[("n", Int8.not_null())], &[])
}

fn n(i: i64) -> String {
    format!("{{\"n\":{i}}}")
}

fn failed(r: &Run, word: &str) -> bool {
    matches!(&r.status, SourceStatus::Failed(why) if why.contains(word))
}

/// One broker for all, since its start takes seconds; each part has its own topic.
#[test]
#[ignore = "starts a Kafka broker: needs Java 17, and Maven the first time"]
fn kafka() {
    let broker = Broker::start();
    type Part = (&'static str, fn(&Broker));
    let parts: [Part; 8] = [
        ("append_only_with_metadata", append_only_with_metadata),
        ("start_points", start_points),
        ("upsert_across_a_crash", upsert_across_a_crash),
        ("transactions", transactions),
        ("partitions_and_recreation", partitions_and_recreation),
        ("broker_down", broker_down),
        ("inspection", inspection),
        ("throughput", throughput),
    ];
    let only = std::env::var("KAFKA_TEST_PART").ok();
    for (name, part) in parts.into_iter().filter(|p| only.as_deref().is_none_or(|o| o == p.0)) {
        let began = Instant::now();
        part(&broker);
        println!("{name}: {:.1} s", began.elapsed().as_secs_f64());
    }
}

fn append_only_with_metadata(b: &Broker) {
    b.create("meta", 2);
    b.send("meta", &[(0, Some("\"a\""), Some(&n(1))), (1, None, Some(&n(2))), (0, None, Some("{")), (0, None, Some(&n(3)))]);
    let columns: Vec<(&str, ColType, ColumnSource)> = vec![
        ("n", Int8.nullable(), ColumnSource::Value("n".into())),
        ("k", Text.nullable(), ColumnSource::Key(String::new())),
        ("p", Int4.not_null(), ColumnSource::Partition),
        ("o", Int8.not_null(), ColumnSource::Offset),
        ("t", Timestamp.not_null(), ColumnSource::Timestamp),
        ("h", Text.nullable(), ColumnSource::Header("h".into())),
    ];
    let spec = b.source("meta", KafkaStart::Earliest, Envelope::None, vec![output(OUTPUT, "", &columns, &[])]);
    let mut run = Run::start(spec.clone());
    run.until("the snapshot", |r| r.snapshot_done());
    assert_eq!(run.rows(), ["1|a|0|0|t0|x", "2|NULL|1|0|t1000|x", "3|NULL|0|2|t0|x"]);
    assert_eq!(run.errors(), ["0:1: invalid JSON: it ends where a member's name is expected"]);
    // Latency of one message from the broker's acknowledgement to the committer.
    let began = Instant::now();
    b.send("meta", &[(1, None, Some(&n(4)))]);
    run.until("a message", |r| r.rows().len() == 4);
    assert!(began.elapsed() < Duration::from_secs(2));
    let durable = run.crash();
    b.send("meta", &[(0, None, Some(&n(5)))]);
    let mut run = Run::resume(spec, durable);
    run.until("a message after the crash", |r| r.rows().len() == 5);
    run.settle(Duration::from_millis(500));
    assert_eq!(run.rows().len(), 5);
    assert_eq!(run.errors().len(), 1);
}

fn start_points(b: &Broker) {
    b.create("start", 2);
    b.send("start", &[(0, None, Some(&n(1))), (0, None, Some(&n(2))), (1, None, Some(&n(3))), (1, None, Some(&n(4)))]);
    let rows = |start: KafkaStart| {
        let mut run = Run::start(b.source("start", start, Envelope::None, vec![numbers()]));
        run.until("the snapshot", |r| r.snapshot_done());
        run.rows()
    };
    assert_eq!(rows(KafkaStart::Offsets(vec![1])), ["2", "3", "4"]);
    assert_eq!(rows(KafkaStart::Offsets(vec![2, 1])), ["4"]);
    assert_eq!(rows(KafkaStart::Latest), [] as [String; 0]);
    // Records of partition 0 are of the very millisecond before those of partition 1.
    assert_eq!(rows(KafkaStart::Timestamp(946684800001)), ["3", "4"]);
    let mut run = Run::start(b.source("start", KafkaStart::Offsets(vec![7]), Envelope::None, vec![numbers()]));
    run.until("failure", |r| failed(r, "beyond its end"));
}

fn upsert_across_a_crash(b: &Broker) {
    b.create("up", 1);
    let relation = relation(&[("id", Int4.not_null()), ("v", Text.nullable())], &[0]);
    let spec = b.source("up", KafkaStart::Earliest, Envelope::Upsert, vec![relation]);
    b.send("up", &[(0, Some("1"), Some(r#"{"v":"a"}"#)), (0, Some("2"), Some(r#"{"v":"b"}"#)), (0, Some("1"), Some(r#"{"v":"c"}"#))]);
    let mut run = Run::start(spec.clone());
    run.until("the snapshot", |r| r.snapshot_done());
    assert_eq!(run.rows(), ["1|c", "2|b"]);
    let durable = run.crash();
    b.send("up", &[(0, Some("2"), None), (0, Some("1"), Some(r#"{"v":"d"}"#))]);
    let mut run = Run::resume(spec, durable);
    run.until("changes", |r| r.rows() == ["1|d"]);
    assert_eq!(run.statistic("state_rows"), Some(1));
}

fn transactions(b: &Broker) {
    b.create("tx", 1);
    let producer = |id: &str| -> ThreadedProducer<rdkafka::producer::DefaultProducerContext> {
        let p: ThreadedProducer<_> = b.config().set("transactional.id", id).create().unwrap();
        p.init_transactions(Duration::from_secs(20)).unwrap();
        p
    };
    let p = producer("t1");
    let send = |p: &ThreadedProducer<_>, i: i64| p.send(BaseRecord::<str, str>::to("tx").payload(&n(i)).partition(0)).map_err(|e| e.0).unwrap();
    p.begin_transaction().unwrap();
    send(&p, 1);
    p.commit_transaction(Duration::from_secs(10)).unwrap();
    p.begin_transaction().unwrap();
    send(&p, 100);
    p.flush(Duration::from_secs(5)).unwrap();
    p.abort_transaction(Duration::from_secs(10)).unwrap();
    let spec = b.source("tx", KafkaStart::Earliest, Envelope::None, vec![numbers()]);
    // The topic ends with control records: the snapshot is complete all the same.
    let mut run = Run::start(spec.clone());
    run.until("the snapshot", |r| r.snapshot_done());
    assert_eq!(run.rows(), ["1"]);
    let mut run = Run::resume(spec, run.crash());
    p.begin_transaction().unwrap();
    send(&p, 2);
    p.flush(Duration::from_secs(5)).unwrap();
    run.settle(Duration::from_millis(500));
    assert_eq!(run.rows(), ["1"], "an open transaction is not seen");
    p.commit_transaction(Duration::from_secs(10)).unwrap();
    run.until("the committed record", |r| r.rows() == ["1", "2"]);
}

fn partitions_and_recreation(b: &Broker) {
    b.create("grow", 1);
    b.send("grow", &[(0, None, Some(&n(1)))]);
    let spec = b.source("grow", KafkaStart::Latest, Envelope::None, vec![numbers()]);
    let mut run = Run::start(spec.clone());
    run.until("the snapshot", |r| r.snapshot_done());
    b.runtime.block_on(b.admin().create_partitions(&[NewPartitions::new("grow", 3)], &AdminOptions::new())).unwrap()[0].as_ref().unwrap();
    std::thread::sleep(Duration::from_millis(500));
    b.send("grow", &[(2, None, Some(&n(2))), (0, None, Some(&n(3)))]);
    run.until("records of the new partition", |r| r.rows() == ["2", "3"]);
    let durable = run.crash();
    // The same name, more records than before: told by the record at the position.
    b.delete("grow");
    b.create("grow", 3);
    let many: Vec<(i32, Option<&str>, Option<&str>)> = (0..9).map(|i| (i % 3, Some("\"other\""), Some("{\"n\":0}"))).collect();
    b.send("grow", &many);
    let mut run = Run::resume(spec.clone(), durable.clone());
    run.until("failure", |r| failed(r, "made again"));
    b.delete("grow");
    b.create("grow", 3);
    let mut run = Run::resume(spec.clone(), durable.clone());
    run.until("failure", |r| failed(r, "made again"));
    b.delete("grow");
    b.create("grow", 1);
    let mut run = Run::resume(spec, durable);
    run.until("failure", |r| failed(r, "made again"));
}

fn broker_down(b: &Broker) {
    b.create("down", 1);
    b.send("down", &[(0, None, Some(&n(1)))]);
    let mut run = Run::start(b.source("down", KafkaStart::Earliest, Envelope::None, vec![numbers()]));
    run.until("the snapshot", |r| r.snapshot_done());
    b.down();
    let down = Instant::now();
    run.until("stalled", |r| matches!(r.status, SourceStatus::Stalled(_)));
    let told = down.elapsed();
    b.up();
    b.send("down", &[(0, None, Some(&n(2)))]);
    let up = Instant::now();
    run.until("the record after the broker came back", |r| r.rows() == ["1", "2"]);
    run.until("running", |r| r.status == SourceStatus::Running);
    println!("broker down: told after {:.1} s, going on {:.1} s after it came back", told.as_secs_f64(), up.elapsed().as_secs_f64());
}

fn inspection(b: &Broker) {
    let check = |address: &str, topic: &str| {
        let mut spec = b.source(topic, KafkaStart::Earliest, Envelope::None, vec![]);
        if let Connector::Kafka { properties, .. } = &mut spec.connector {
            properties[0].1 = address.into();
        }
        b.runtime.block_on(inspect(&spec.connector)).map(|_| ()).map_err(|e| e.code.as_str().to_string())
    };
    assert_eq!(check(&b.address(), "down"), Ok(()));
    assert_eq!(check(&b.address(), ""), Ok(()));
    assert_eq!(check(&b.address(), "nothing"), Err("42704".into()));
    let began = Instant::now();
    assert_eq!(check("127.0.0.1:1", "down"), Err("08006".into()));
    assert!(began.elapsed() < Duration::from_secs(5), "a refused connection is told at once");
}

/// Prints the rate; a guard against collapse only, since the profile may be debug.
fn throughput(b: &Broker) {
    const MESSAGES: i64 = 200_000;
    b.create("many", 2);
    let producer: ThreadedProducer<rdkafka::producer::DefaultProducerContext> =
        b.config().set("linger.ms", "20").set("queue.buffering.max.messages", "1000000").create().unwrap();
    for i in 0..MESSAGES {
        producer
            .send(
                BaseRecord::<str, str>::to("many")
                    .partition((i % 2) as i32)
                    .payload(&format!("{{\"n\":{i},\"name\":\"some name\",\"at\":\"2024-01-01 00:00:00\"}}")),
            )
            .map_err(|e| e.0)
            .unwrap();
    }
    producer.flush(Duration::from_secs(30)).unwrap();
    let relation = relation(&[("n", Int8.not_null()), ("name", Text.nullable()), ("at", Timestamp.nullable())], &[]);
    let began = Instant::now();
    let mut run = Run::start(b.source("many", KafkaStart::Earliest, Envelope::None, vec![relation]));
    run.until("the snapshot", |r| r.snapshot_done());
    println!("{:.0} messages/s, {} units", MESSAGES as f64 / began.elapsed().as_secs_f64(), run.staged);
    assert_eq!(run.durable.rows[&OUTPUT].len(), MESSAGES as usize);
    assert!(began.elapsed() < Duration::from_secs(20));
}
