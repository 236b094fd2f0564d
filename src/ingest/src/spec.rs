//! What a source is, and what it hands over: the seam between connectors and the committer.

use repr::{ColType, Deltas, GlobalId, RelDesc, SqlError, Value};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// A source as the catalog stores it, connection details resolved (secrets too: never log it).
#[derive(Clone, Debug)]
pub struct SourceSpec {
    pub id: GlobalId,
    pub name: String,
    pub connector: Connector,
    /// Relations that the source feeds. Kafka, file, generators: usually one. Postgres: one a table.
    pub outputs: Vec<OutputSpec>,
    /// Shard of `<source>_errors`; its columns are [`errors_desc`].
    pub errors: GlobalId,
    pub on_error: OnError,
}

#[derive(Clone, Debug)]
pub struct OutputSpec {
    pub id: GlobalId,
    /// What it is at the source: upstream `schema.table`, generator table name; empty if the source has one output.
    pub reference: String,
    /// Columns of the relation, metadata columns (INCLUDE ...) included, in order.
    pub desc: RelDesc,
    /// For each column where its value comes from.
    pub columns: Vec<ColumnSource>,
    /// Output existed before this start, so its snapshot is already durable.
    pub snapshot_done: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum ColumnSource {
    /// Field `.0` of the decoded value (JSON member, CSV column by position or header, upstream column name).
    Value(String),
    /// Field of the decoded key, or the whole key if empty.
    Key(String),
    Partition,
    Offset,
    Timestamp,
    Headers,
    Header(String),
    /// Position of the line in its file, and the file's path (FILE sources).
    Path,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum OnError {
    Quarantine,
    Fail,
}

#[derive(Clone, Debug)]
pub enum Connector {
    Kafka {
        /// librdkafka properties: bootstrap.servers, security.protocol, sasl.*, ...
        properties: Vec<(String, String)>,
        topic: String,
        start: KafkaStart,
        key_format: Option<Format>,
        value_format: Format,
        envelope: Envelope,
    },
    Postgres {
        host: String,
        port: u16,
        user: String,
        password: Option<String>,
        database: String,
        /// disable, allow, prefer, require, verify-ca, verify-full.
        ssl_mode: String,
        certificates: crate::source::postgres::tls::Certificates,
        publication: String,
        /// Replication slot, made by us, unique to the source.
        slot: String,
    },
    File {
        path: String,
        tail: bool,
        format: Format,
    },
    Generator {
        kind: Generator,
        tick_interval_ms: u64,
        options: Vec<(String, String)>,
    },
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum KafkaStart {
    Earliest,
    Latest,
    /// Offset a partition; partitions beyond the list start at the earliest.
    Offsets(Vec<i64>),
    /// Milliseconds since 1970; negative: before now.
    Timestamp(i64),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Format {
    /// Typed columns by member name, or one jsonb column named `data`.
    Json,
    Csv {
        delimiter: u8,
        header: bool,
        columns: usize,
    },
    Text,
    Bytes,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Envelope {
    None,
    /// Keyed by the message key; a null value deletes.
    Upsert,
    /// Debezium JSON, with or without the schema wrapper: upsert of `after` by key.
    Debezium,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Generator {
    Counter,
    Auction,
    KeyValue,
}

/// Columns of `<source>_errors`: position (text), key (bytea), value (bytea), headers (text), reason (text), relation (text), at (timestamptz).
pub fn errors_desc() -> RelDesc {
    use repr::SqlType::*;
    let cols: [(&str, ColType); 7] = [
        ("position", Text.not_null()),
        ("key", Bytea.nullable()),
        ("value", Bytea.nullable()),
        ("headers", Text.nullable()),
        ("reason", Text.not_null()),
        ("relation", Text.nullable()),
        ("at", TimestampTz.not_null()),
    ];
    RelDesc { names: cols.iter().map(|c| c.0.to_string()).collect(), types: cols.iter().map(|c| c.1.clone()).collect(), keys: vec![] }
}

/// One or more whole upstream units, ready to be committed: all of it becomes visible at one time.
#[derive(Debug)]
pub struct Staged {
    pub source: GlobalId,
    /// Changes by relation (an output, or the errors shard).
    pub deltas: Vec<(GlobalId, Deltas)>,
    /// Where to resume once this is durable: JSON, replaces the former position as a whole.
    pub position: String,
    /// Outputs whose snapshot this completes.
    pub snapshot_of: Vec<GlobalId>,
    /// More of the same upstream unit follows: nothing of it may become visible, nor the position durable, before the part with `more == false`.
    pub more: bool,
}

/// From a connector to the committer. The channel is bounded: a connector blocks while the committer is behind.
#[derive(Debug)]
pub enum SourceEvent {
    Staged(Staged),
    Status { source: GlobalId, status: SourceStatus },
}

#[derive(Clone, Debug, PartialEq)]
pub enum SourceStatus {
    Starting,
    Snapshotting {
        rows: u64,
    },
    Running,
    /// Retrying after an error of the world.
    Stalled(String),
    /// Will not go on by itself; says what to do.
    Failed(String),
    /// A finite source read to its end.
    Finished,
}

/// Reads back what the committer has durably of an output, for envelopes that keep the last row of each key.
pub trait StateReader: Send + Sync {
    /// Consolidated or not, in parts.
    fn read(&self, output: GlobalId) -> Result<Box<dyn Iterator<Item = Result<Deltas, SqlError>> + Send>, SqlError>;
}

/// A running source. Dropping it stops the connector.
pub trait SourceHandle: Send {
    /// Everything up to `position` is durable: upstream may forget it (Postgres slot feedback).
    fn acknowledge(&self, position: &str);
    /// Statistics as (name, value), for introspection.
    fn statistics(&self) -> Vec<(String, Value)>;
    /// The source was dropped: stops it and frees what it holds upstream, in the background. The handle is dropped next.
    fn forget(&self) {}
}

/// Everything that starting a source needs.
pub struct StartSource {
    pub spec: SourceSpec,
    /// The durable position; `None` on the first start.
    pub resume: Option<String>,
    pub state: Arc<dyn StateReader>,
    pub events: tokio::sync::mpsc::Sender<SourceEvent>,
    pub runtime: tokio::runtime::Handle,
}

/// Starts a source's connector; returns at once, problems are reported as status.
pub fn start(source: StartSource) -> Box<dyn SourceHandle> {
    crate::source::start(source)
}

/// Checks a source's definition without connecting: columns that its format or generator cannot bring, an envelope
/// without a key, options. What this accepts, [`start`] does not fail on.
/// Errors: 42P16, 42P17, 0A000, 22023.
pub fn validate(spec: &SourceSpec) -> Result<(), SqlError> {
    match &spec.connector {
        Connector::Kafka { .. } => crate::source::kafka::pipelines(spec).map(|_| ()),
        Connector::File { .. } => crate::source::file::pipelines(spec).map(|_| ()),
        Connector::Generator { kind, options, .. } => {
            crate::source::generator::inspect(*kind, options)?;
            crate::source::generator::outputs(spec, *kind).map(|_| ())
        }
        Connector::Postgres { .. } => Ok(()),
    }
}

/// Connects and checks what CREATE SOURCE and VALIDATE CONNECTION check: reachable, topic (unless its name is empty) or
/// publication exists, files readable, options known. For Postgres returns the upstream tables with their columns and
/// keys, for generators their tables; nothing for the others.
/// Errors: 08006 unreachable, 42704 no such topic or file, 22023 a bad option.
pub async fn inspect(connector: &Connector) -> Result<Vec<UpstreamTable>, SqlError> {
    match connector {
        Connector::Kafka { properties, topic, .. } => {
            let (properties, topic) = (properties.clone(), topic.clone());
            let checked = tokio::task::spawn_blocking(move || crate::source::kafka::inspect(&properties, &topic)).await;
            checked.map_err(SqlError::internal)??;
            Ok(Vec::new())
        }
        Connector::Postgres { .. } => crate::source::postgres::inspect(connector).await,
        Connector::File { path, tail, format } => crate::source::file::inspect(path, *tail, format).map(|_| Vec::new()),
        Connector::Generator { kind, options, .. } => crate::source::generator::inspect(*kind, options),
    }
}

/// Frees what the source holds upstream (a PostgreSQL replication slot), after DROP SOURCE: else upstream keeps its WAL for ever.
pub async fn forget(connector: &Connector) -> Result<(), SqlError> {
    match connector {
        Connector::Postgres { .. } => crate::source::postgres::forget(connector).await,
        _ => Ok(()),
    }
}

/// A table that a source can feed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct UpstreamTable {
    pub schema: String,
    pub name: String,
    pub desc: RelDesc,
}

impl UpstreamTable {
    /// Columns of its primary key; empty if it has none.
    pub fn key_names(&self) -> Vec<String> {
        self.desc.keys.first().into_iter().flatten().map(|i| self.desc.names[*i].clone()).collect()
    }
}
