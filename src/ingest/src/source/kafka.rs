//! Topics of a Kafka broker, every partition assigned by us: no consumer group, offsets live in the durable position.
//!
//! ```text
//!   position   {"partitions": {"0": {"next": 12, "seen": [11, 1700000000000, 34]}, …}}
//!                                     └ first offset not taken in     └ last record taken in: offset, time, size
//! ```
//! Exactly once: the position is made durable with the rows it stands for, and reading resumes at `next`. With
//! `isolation.level = read_committed` records of aborted transactions and control records never appear.
//! A topic that was deleted and made again is told by its end lying before `next`, by fewer partitions, or by the
//! record at `seen` being another one: then the source fails instead of mixing two topics.
//! Offsets that retention removed before they were read are a failure too, never a silent gap.
//! Not here: decoding (`decode`), what messages mean (`envelope`).

use super::{End, Feed, Stats};
use crate::envelope::Pipeline;
use crate::record::Record;
use crate::spec::*;
use parking_lot::Mutex;
use rdkafka::client::ClientContext;
use rdkafka::config::{ClientConfig, RDKafkaLogLevel};
use rdkafka::consumer::{BaseConsumer, Consumer, ConsumerContext};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::{BorrowedMessage, Headers, Message};
use rdkafka::metadata::Metadata;
use rdkafka::statistics::Statistics;
use rdkafka::{Offset, TopicPartitionList};
use repr::error::state;
use repr::{GlobalId, SqlError};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What is durable of a partition.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Mark {
    next: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    seen: Option<(i64, i64, u64)>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Position {
    partitions: BTreeMap<i32, Mark>,
}

/// A batch is handed over when it has so many rows or bytes, or its first record waited so long while more came.
const BATCH_ROWS: usize = 50_000;
const BATCH_BYTES: usize = 8 << 20;
const BATCH_AGE: Duration = Duration::from_millis(4);
/// How long a poll waits, which bounds how long stopping takes.
const POLL: Duration = Duration::from_millis(100);
/// How often new partitions are looked for.
const REFRESH: Duration = Duration::from_secs(3);
/// How long one request to the broker may take.
const REQUEST: Duration = Duration::from_secs(5);
const RETRY_MAX: Duration = Duration::from_secs(5);

/// Why a session with the broker ends.
enum Broken {
    End(End),
    /// Connect again, and verify that the topic is still the one we know.
    Retry(String),
}

impl From<super::Stopped> for Broken {
    fn from(_: super::Stopped) -> Broken {
        Broken::End(End::Stopped)
    }
}

/// Takes what librdkafka reports beside messages.
struct Context {
    stats: Option<Arc<Stats>>,
    topic: String,
    /// Why the last connection failed, in words.
    reason: Mutex<Option<String>>,
}

impl ClientContext for Context {
    fn log(&self, _level: RDKafkaLogLevel, fac: &str, message: &str) {
        tracing::debug!(target: "kafka", "{fac}: {message}");
    }

    fn error(&self, error: KafkaError, reason: &str) {
        // "All brokers are down" follows the reason why, and says less.
        let code = error.rdkafka_error_code();
        if !matches!(code, Some(RDKafkaErrorCode::AllBrokersDown | RDKafkaErrorCode::PartitionEOF)) {
            tracing::debug!(target: "kafka", "{error}: {reason}");
            *self.reason.lock() = Some(reason.to_owned());
        }
    }

    fn stats(&self, statistics: Statistics) {
        let (Some(stats), Some(topic)) = (&self.stats, statistics.topics.get(&self.topic)) else { return };
        for (id, p) in topic.partitions.iter().filter(|p| *p.0 >= 0 && p.1.hi_offset >= 0) {
            let end = if p.ls_offset >= 0 { p.ls_offset.min(p.hi_offset) } else { p.hi_offset };
            // Beyond the last record only control records can stand, which are never handed out.
            let at = p.app_offset.max(if p.fetchq_cnt == 0 { p.next_offset } else { -1 });
            stats.set(format!("partition_{id}_lag"), if at < 0 { 0 } else { (end - at).max(0) });
        }
    }
}

impl ConsumerContext for Context {}

type Client = BaseConsumer<Context>;

fn client(properties: &[(String, String)], name: &str, topic: &str, stats: Option<Arc<Stats>>) -> Result<Client, String> {
    let mut config = ClientConfig::new();
    config
        .set("group.id", format!("riverdelta-{name}"))
        .set("client.id", "riverdelta")
        .set("queued.max.messages.kbytes", "65536")
        .set("fetch.queue.backoff.ms", "20")
        // A record of one partition may have to wait for a fetch that asks for another and finds nothing.
        .set("fetch.wait.max.ms", "20")
        .set("fetch.error.backoff.ms", "100")
        .set("reconnect.backoff.max.ms", "2000")
        .set("socket.nagle.disable", "true")
        .set("statistics.interval.ms", "1000");
    for (k, v) in properties {
        config.set(k, v);
    }
    // What correctness rests on cannot be set from outside.
    config
        .set("enable.auto.commit", "false")
        .set("enable.auto.offset.store", "false")
        .set("auto.offset.reset", "error")
        .set("enable.partition.eof", "true")
        .set("isolation.level", "read_committed")
        .set("allow.auto.create.topics", "false");
    config.create_with_context(Context { stats, topic: topic.to_owned(), reason: Mutex::new(None) }).map_err(|e| format!("invalid Kafka connection: {e}"))
}

/// Number of partitions of a topic.
/// Errors: `Ok(None)` if the topic does not exist; else why the broker cannot be asked.
fn partition_count(client: &Client, topic: &str, timeout: Duration) -> Result<Option<i32>, String> {
    let metadata = client.fetch_metadata(Some(topic), timeout).map_err(|e| {
        let why = client.context().reason.lock().clone().unwrap_or_else(|| plain(&e));
        format!("could not reach the Kafka broker: {why}")
    })?;
    partitions_in(&metadata, topic)
}

fn partitions_in(metadata: &Metadata, topic: &str) -> Result<Option<i32>, String> {
    let Some(t) = metadata.topics().iter().find(|t| t.name() == topic) else { return Ok(None) };
    match t.error().map(RDKafkaErrorCode::from) {
        None => Ok(Some(t.partitions().len() as i32).filter(|n| *n > 0)),
        Some(RDKafkaErrorCode::UnknownTopicOrPartition | RDKafkaErrorCode::UnknownTopic) => Ok(None),
        Some(code) => Err(format!("topic \"{topic}\": {code}")),
    }
}

/// The client library's words without its wrapping.
fn plain(e: &KafkaError) -> String {
    e.rdkafka_error_code().map_or_else(|| e.to_string(), |c| c.to_string())
}

/// Checks that the broker answers and, unless `topic` is empty, that the topic exists.
/// Errors: 08006, 42704. Blocks.
pub fn inspect(properties: &[(String, String)], topic: &str) -> Result<(), SqlError> {
    let failure = |m: String| SqlError::new(state::CONNECTION_FAILURE, m);
    let client = client(properties, "inspect", topic, None).map_err(|m| SqlError::new(state::INVALID_PARAMETER_VALUE, m))?;
    // Short requests, so that a refused connection is told at once and not when the time is up.
    let began = Instant::now();
    let metadata = loop {
        let asked = client.fetch_metadata(Some(topic).filter(|t| !t.is_empty()), Duration::from_millis(500));
        let e = match asked {
            Ok(m) => break m,
            Err(e) => e,
        };
        let mut hopeless = began.elapsed() >= REQUEST;
        while let Some(event) = client.poll(Duration::ZERO) {
            let code = event.err().and_then(|e| e.rdkafka_error_code());
            hopeless |=
                matches!(code, Some(RDKafkaErrorCode::AllBrokersDown | RDKafkaErrorCode::Resolve | RDKafkaErrorCode::Authentication | RDKafkaErrorCode::SSL));
        }
        if hopeless {
            let why = client.context().reason.lock().clone().unwrap_or_else(|| plain(&e));
            return Err(failure(format!("could not reach the Kafka broker: {why}")));
        }
    };
    if topic.is_empty() {
        return Ok(());
    }
    match partitions_in(&metadata, topic).map_err(failure)? {
        Some(_) => Ok(()),
        None => Err(SqlError::new(state::UNDEFINED_OBJECT, format!("topic \"{topic}\" does not exist"))),
    }
}

/// A pipeline for each output.
/// Errors: columns that the format cannot bring, an envelope without a key.
pub(crate) fn pipelines(spec: &SourceSpec) -> Result<Vec<Pipeline>, SqlError> {
    let Connector::Kafka { key_format, value_format, envelope, .. } = &spec.connector else {
        return Err(SqlError::internal("not a Kafka source"));
    };
    if matches!(value_format, Format::Csv { header: true, .. }) || matches!(key_format, Some(Format::Csv { header: true, .. })) {
        return Err(SqlError::unsupported("CSV WITH HEADER of a Kafka source", "a message has no header: write CSV WITH n COLUMNS"));
    }
    Pipeline::of_source(spec, key_format.as_ref(), value_format, envelope)
}

pub(super) fn run(source: &StartSource, feed: &mut Feed) -> End {
    let mut reader = match Reader::new(source, feed.stats.clone()) {
        Ok(r) => r,
        Err(why) => return End::Failed(why),
    };
    let mut pause = Duration::from_millis(100);
    loop {
        let before = reader.records;
        match reader.session(feed) {
            Broken::End(end) => return end,
            Broken::Retry(why) => {
                if feed.status(SourceStatus::Stalled(why)).is_err() {
                    return End::Stopped;
                }
                if reader.records > before {
                    pause = Duration::from_millis(100);
                }
                if feed.sleep(pause).is_err() {
                    return End::Stopped;
                }
                pause = (pause * 2).min(RETRY_MAX);
            }
        }
    }
}

/// A partition in this session.
#[derive(Debug, Default)]
struct Partition {
    mark: Mark,
    /// The partition's end when the session began: the snapshot is complete when all are reached.
    target: i64,
    /// Its end was reported; nothing but control records may lie between `next` and `target`.
    at_end: bool,
    /// What lies behind the last record was looked at: control records there are in the position.
    settled: bool,
    /// The record at `mark.seen` must be met first.
    verify: bool,
}

struct Reader<'a> {
    properties: &'a [(String, String)],
    topic: &'a str,
    start: &'a KafkaStart,
    name: String,
    stats: Arc<Stats>,
    pipelines: Vec<Pipeline>,
    restored: bool,
    source: &'a StartSource,
    partitions: BTreeMap<i32, Partition>,
    /// The position was resolved (and partitions hold it), now or in an earlier life.
    positioned: bool,
    /// Outputs that wait for the snapshot's end.
    waiting: Vec<GlobalId>,
    records: u64,
}

impl<'a> Reader<'a> {
    fn new(source: &'a StartSource, stats: Arc<Stats>) -> Result<Reader<'a>, String> {
        let Connector::Kafka { properties, topic, start, .. } = &source.spec.connector else {
            return Err("internal error: not a Kafka source".into());
        };
        let pipelines = pipelines(&source.spec).map_err(|e| e.message)?;
        let position: Option<Position> = match &source.resume {
            Some(p) => Some(serde_json::from_str(p).map_err(|e| format!("the durable position cannot be read: {e}"))?),
            None => None,
        };
        let positioned = position.is_some();
        let partitions = position.unwrap_or_default().partitions.into_iter().map(|(id, mark)| (id, Partition { mark, ..Default::default() })).collect();
        Ok(Reader {
            properties,
            topic,
            start,
            name: source.spec.id.to_string(),
            stats,
            pipelines,
            restored: false,
            source,
            partitions,
            positioned,
            waiting: source.spec.outputs.iter().filter(|o| !o.snapshot_done).map(|o| o.id).collect(),
            records: 0,
        })
    }

    /// Connects, reads until something breaks.
    fn session(&mut self, feed: &mut Feed) -> Broken {
        match self.session_inner(feed) {
            Ok(never) => match never {},
            Err(broken) => broken,
        }
    }

    fn session_inner(&mut self, feed: &mut Feed) -> Result<std::convert::Infallible, Broken> {
        if !self.restored {
            for p in &mut self.pipelines {
                p.restore(&*self.source.state).map_err(|e| Broken::End(End::Failed(format!("the durable rows cannot be read: {}", e.message))))?;
            }
            self.restored = true;
        }
        let client = client(self.properties, &self.name, self.topic, Some(self.stats.clone())).map_err(|e| Broken::End(End::Failed(e)))?;
        self.find_partitions(&client)?;
        self.assign(&client)?;
        feed.check()?;
        feed.status(if self.waiting.is_empty() { SourceStatus::Running } else { SourceStatus::Snapshotting { rows: 0 } })?;
        self.read(&client, feed)
    }

    /// Resolves where to read each partition from; checks that the topic is the one that the position speaks of.
    fn find_partitions(&mut self, client: &Client) -> Result<(), Broken> {
        let failed = |why: String| Broken::End(End::Failed(why));
        let count = match partition_count(client, self.topic, REQUEST).map_err(Broken::Retry)? {
            Some(n) => n,
            None => return Err(Broken::Retry(format!("topic \"{}\" does not exist", self.topic))),
        };
        if let Some((last, _)) = self.partitions.iter().next_back() {
            if *last >= count {
                return Err(failed(format!(
                    "topic \"{}\" has fewer partitions than before: it was made again; drop the source and create it anew",
                    self.topic
                )));
            }
        }
        let times = match self.start {
            KafkaStart::Timestamp(ms) if !self.positioned => Some(self.offsets_at(client, count, *ms)?),
            _ => None,
        };
        for id in 0..count {
            let (low, high) = client
                .fetch_watermarks(self.topic, id, REQUEST)
                .map_err(|e| Broken::Retry(format!("could not read the offsets of partition {id}: {}", plain(&e))))?;
            let known = self.partitions.contains_key(&id);
            let p = self.partitions.entry(id).or_default();
            p.target = high;
            (p.at_end, p.settled) = (false, false);
            if !known {
                p.mark.next = match self.start {
                    // A partition that came later holds only what was written since.
                    _ if self.positioned => low,
                    KafkaStart::Earliest => low,
                    KafkaStart::Latest => high,
                    KafkaStart::Offsets(list) => match list.get(id as usize) {
                        Some(o) if *o > high => return Err(failed(format!("START OFFSET {o} of partition {id} lies beyond its end {high}"))),
                        Some(o) => (*o).max(low),
                        None => low,
                    },
                    KafkaStart::Timestamp(_) => times.as_ref().and_then(|t| t.get(&id).copied()).unwrap_or(high),
                };
                continue;
            }
            let next = p.mark.next;
            if next > high {
                return Err(failed(format!(
                    "partition {id} of topic \"{}\" ends at offset {high}, but {next} was reached: the topic was made again; drop the source and create it anew",
                    self.topic
                )));
            }
            if next < low {
                return Err(failed(format!(
                    "offsets {next} to {low} of partition {id} of topic \"{}\" were removed before they were read; drop the source and create it anew",
                    self.topic
                )));
            }
            p.verify = p.mark.seen.is_some_and(|s| s.0 >= low);
        }
        self.positioned = true;
        Ok(())
    }

    /// Offset of the first record at or after a time, for each partition that has one.
    fn offsets_at(&self, client: &Client, count: i32, ms: i64) -> Result<BTreeMap<i32, i64>, Broken> {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |d| d.as_millis() as i64);
        let at = if ms < 0 { now.saturating_add(ms).max(0) } else { ms };
        let mut list = TopicPartitionList::new();
        for id in 0..count {
            list.add_partition_offset(self.topic, id, Offset::Offset(at)).map_err(|e| Broken::Retry(plain(&e)))?;
        }
        let found = client.offsets_for_times(list, REQUEST).map_err(|e| Broken::Retry(format!("could not look up START TIMESTAMP: {}", plain(&e))))?;
        let offset = |o: Offset| if let Offset::Offset(n) = o { Some(n) } else { None };
        Ok(found.elements().iter().filter_map(|e| offset(e.offset()).map(|o| (e.partition(), o))).collect())
    }

    fn assign(&self, client: &Client) -> Result<(), Broken> {
        let mut list = TopicPartitionList::new();
        for (id, p) in &self.partitions {
            let from = match p.mark.seen {
                Some((seen, _, _)) if p.verify => seen,
                _ => p.mark.next,
            };
            list.add_partition_offset(self.topic, *id, Offset::Offset(from)).map_err(|e| Broken::Retry(plain(&e)))?;
        }
        client.assign(&list).map_err(|e| Broken::Retry(plain(&e)))
    }

    fn read(&mut self, client: &Client, feed: &mut Feed) -> Result<std::convert::Infallible, Broken> {
        let mut first: Option<Instant> = None;
        let mut refreshed = Instant::now();
        let mut reported = Instant::now();
        // The start of an empty topic is a position too.
        self.hand_over_snapshot(feed)?;
        loop {
            let polled = client.poll(if first.is_some() { Duration::ZERO } else { POLL });
            let drained = polled.is_none();
            match polled {
                None => {}
                Some(Ok(message)) => {
                    self.take_in(&message)?;
                    first.get_or_insert_with(Instant::now);
                }
                Some(Err(KafkaError::PartitionEOF(id))) => {
                    if let Some(p) = self.partitions.get_mut(&id) {
                        p.at_end = true;
                        // All records below the end that was asked for earlier have come: what is left are control records, which
                        // retention may remove before anything follows them.
                        if p.mark.next < p.target {
                            p.mark.next = p.target;
                            first.get_or_insert_with(Instant::now);
                        }
                        self.hand_over_snapshot(feed)?;
                        if self.waiting.is_empty() {
                            feed.status(SourceStatus::Running)?;
                        }
                    }
                }
                Some(Err(e)) => self.trouble(client, e, feed)?,
            }
            if let Some(since) = first {
                let (rows, bytes) = self.pending();
                let full = rows >= BATCH_ROWS || bytes >= BATCH_BYTES;
                // While the committer is behind, a larger batch costs less than a queue of small ones.
                if full || ((drained || since.elapsed() >= BATCH_AGE) && feed.has_room()) {
                    self.flush(feed)?;
                    first = None;
                    if !self.waiting.is_empty() {
                        if reported.elapsed() >= Duration::from_secs(1) {
                            reported = Instant::now();
                            feed.status(SourceStatus::Snapshotting { rows: self.records })?;
                        }
                    } else {
                        feed.status(SourceStatus::Running)?;
                    }
                } else if drained {
                    std::thread::sleep(Duration::from_micros(200));
                }
            }
            if drained || first.is_none() {
                feed.check()?;
            }
            if refreshed.elapsed() >= REFRESH {
                refreshed = Instant::now();
                if first.is_none() {
                    self.refresh(client, feed)?;
                }
            }
        }
    }

    fn pending(&self) -> (usize, usize) {
        self.pipelines.iter().fold((0, 0), |(r, b), p| (r + p.len(), b + p.bytes()))
    }

    fn take_in(&mut self, m: &BorrowedMessage<'_>) -> Result<(), Broken> {
        let (id, offset) = (m.partition(), m.offset());
        let timestamp_ms = m.timestamp().to_millis();
        let size = (m.key_len() + m.payload_len()) as u64;
        let Some(p) = self.partitions.get_mut(&id) else { return Ok(()) };
        let seen = (offset, timestamp_ms.unwrap_or(0), size);
        if p.verify {
            p.verify = false;
            if let Some(known) = p.mark.seen.filter(|k| k.0 == offset && *k != seen) {
                let why = format!(
                    "the record at offset {} of partition {id} of topic \"{}\" is not the one that was read before: the topic was made again; drop the source and create it anew",
                    known.0, self.topic
                );
                return Err(Broken::End(End::Failed(why)));
            }
        }
        if offset < p.mark.next {
            return Ok(());
        }
        let mut headers: Vec<(&str, Option<&[u8]>)> = Vec::new();
        headers.extend(m.headers().into_iter().flat_map(|h| h.iter()).map(|h| (h.key, h.value)));
        let record = Record { key: m.key(), value: m.payload(), headers: &headers, partition: id, offset, timestamp_ms, path: "" };
        for pipeline in &mut self.pipelines {
            let before = pipeline.error_count;
            pipeline.push(&record);
            if pipeline.error_count > before {
                self.stats.errors.fetch_add(1, Ordering::Relaxed);
            }
        }
        p.mark.next = offset + 1;
        p.mark.seen = Some(seen);
        (p.at_end, p.settled) = (false, false);
        self.records += 1;
        self.stats.messages.fetch_add(1, Ordering::Relaxed);
        self.stats.bytes.fetch_add(size, Ordering::Relaxed);
        Ok(())
    }

    fn position(&self) -> String {
        let partitions = self.partitions.iter().map(|(id, p)| (*id, p.mark.clone())).collect();
        serde_json::to_string(&Position { partitions }).unwrap_or_default()
    }

    /// Whether all records that were there when the session began are taken in.
    fn snapshot_reached(&self) -> bool {
        !self.waiting.is_empty() && self.partitions.values().all(|p| p.at_end || p.mark.next >= p.target)
    }

    fn flush(&mut self, feed: &mut Feed) -> Result<(), Broken> {
        let deltas: Vec<_> = self.pipelines.iter_mut().flat_map(Pipeline::take).collect();
        let (rows, bytes) = self.pipelines.iter().map(Pipeline::state_size).fold((0, 0), |a, b| (a.0 + b.0, a.1 + b.1));
        self.stats.state_rows.store(rows as u64, Ordering::Relaxed);
        self.stats.state_bytes.store(bytes as u64, Ordering::Relaxed);
        let done = if self.snapshot_reached() { std::mem::take(&mut self.waiting) } else { Vec::new() };
        feed.stage(deltas, self.position(), done, false)?;
        Ok(())
    }

    /// Completes the snapshot, if it is: also when no record follows its last one.
    fn hand_over_snapshot(&mut self, feed: &mut Feed) -> Result<(), Broken> {
        if self.snapshot_reached() {
            self.flush(feed)?;
        }
        Ok(())
    }

    /// Asks for the ends of partitions that came to rest since: if one lies beyond the last record, reading there again tells whether only
    /// control records are between (then the end of the partition is reported again).
    fn settle(&mut self, client: &Client) -> Result<(), Broken> {
        for (id, p) in self.partitions.iter_mut().filter(|(_, p)| p.at_end && !p.settled) {
            // The end for readers of committed transactions: what an open one holds is not below it.
            let Ok((_, high)) = client.fetch_watermarks(self.topic, *id, Duration::from_secs(1)) else { return Ok(()) };
            p.settled = true;
            if high > p.mark.next {
                (p.target, p.at_end) = (high, false);
                client.seek(self.topic, *id, Offset::Offset(p.mark.next), Duration::from_secs(1)).map_err(|e| Broken::Retry(plain(&e)))?;
            }
        }
        Ok(())
    }

    /// New partitions, a topic that vanished, control records at the end.
    fn refresh(&mut self, client: &Client, feed: &mut Feed) -> Result<(), Broken> {
        self.settle(client)?;
        match partition_count(client, self.topic, Duration::from_secs(1)) {
            Ok(Some(n)) if n as usize == self.partitions.len() => Ok(()),
            Ok(Some(_)) => {
                // New partitions are read from their start; the others go on where they are. No snapshot target moves back.
                self.find_partitions(client)?;
                self.assign(client)
            }
            Ok(None) => Err(Broken::Retry(format!("topic \"{}\" does not exist", self.topic))),
            Err(why) => Ok(feed.status(SourceStatus::Stalled(why))?),
        }
    }

    /// An error that the client reports between messages.
    fn trouble(&mut self, client: &Client, e: KafkaError, feed: &mut Feed) -> Result<(), Broken> {
        match e.rdkafka_error_code() {
            // Connecting again tells which of the two it is: retention or a new topic.
            Some(RDKafkaErrorCode::OffsetOutOfRange | RDKafkaErrorCode::AutoOffsetReset) => Err(Broken::Retry("an offset is out of range".into())),
            Some(
                RDKafkaErrorCode::UnknownTopicOrPartition
                | RDKafkaErrorCode::UnknownTopic
                | RDKafkaErrorCode::UnknownPartition
                | RDKafkaErrorCode::UnknownTopicId,
            ) => Err(Broken::Retry(format!("topic \"{}\" does not exist", self.topic))),
            _ if matches!(e, KafkaError::MessageConsumptionFatal(_)) => Err(Broken::Retry(format!("Kafka: {}", plain(&e)))),
            // The client goes on trying by itself.
            _ => {
                let why = client.context().reason.lock().clone().unwrap_or_else(|| plain(&e));
                Ok(feed.status(SourceStatus::Stalled(format!("Kafka: {why}")))?)
            }
        }
    }
}
