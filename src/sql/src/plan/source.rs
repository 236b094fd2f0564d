//! CREATE SOURCE and CREATE TABLE … FROM SOURCE as data.
//!
//! Names of upstream tables and their columns are not known here: for Postgres the executor asks the server (`ingest::inspect`) and completes `outputs`.

use super::types::OptionPlan;
use crate::ast::ObjectName;
use crate::catalog::{FullName, ObjectRef};
use repr::RelDesc;

#[derive(Clone, Debug)]
pub struct CreateSourcePlan {
    pub name: FullName,
    pub if_not_exists: bool,
    pub connector: ConnectorPlan,
    /// The source's own relation with all its columns, INCLUDE columns at the end; None where its tables are relations (Postgres).
    /// The key is the upsert key, where the envelope has one.
    pub relation: Option<SourceRelation>,
    pub tables: TablesPlan,
    /// WATERMARK FOR column AS expression: the column, the expression over the relation's row, its text.
    pub watermark: Option<(usize, crate::hir::HirScalar, String)>,
    /// `quarantine` (default) or `fail`.
    pub quarantine: bool,
    /// Further WITH options.
    pub options: Vec<(String, String)>,
    pub create_sql: String,
}

#[derive(Clone, Debug)]
pub struct SourceRelation {
    pub desc: RelDesc,
    /// Where each column comes from.
    pub columns: Vec<ColumnOrigin>,
}

/// Mirrors `ingest::spec::ColumnSource`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ColumnOrigin {
    Value(String),
    Key(String),
    Partition,
    Offset,
    Timestamp,
    Headers,
    Header(String),
    Path,
}

/// Mirrors `ingest::spec::Connector`, with connections by reference.
#[derive(Clone, Debug)]
pub enum ConnectorPlan {
    Kafka {
        connection: ObjectRef,
        topic: String,
        start: KafkaStartPlan,
        key_format: Option<FormatPlan>,
        value_format: FormatPlan,
        envelope: EnvelopePlan,
        /// Other options in the list (GROUP ID PREFIX, …).
        options: Vec<(String, OptionPlan)>,
    },
    Postgres {
        connection: ObjectRef,
        publication: String,
        options: Vec<(String, OptionPlan)>,
    },
    File {
        path: String,
        tail: bool,
        format: FormatPlan,
    },
    Generator {
        kind: GeneratorPlan,
        tick_interval_ms: u64,
        options: Vec<(String, String)>,
    },
}

#[derive(Clone, Debug, PartialEq)]
pub enum KafkaStartPlan {
    Earliest,
    Latest,
    /// Offset a partition; partitions beyond the list start at the earliest.
    Offsets(Vec<i64>),
    /// Milliseconds since 1970; negative: before now.
    Timestamp(i64),
}

#[derive(Clone, Debug, PartialEq)]
pub enum FormatPlan {
    Json,
    Csv { delimiter: u8, header: bool, columns: usize },
    Text,
    Bytes,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EnvelopePlan {
    None,
    Upsert,
    Debezium,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GeneratorPlan {
    Counter,
    Auction,
    KeyValue,
}

#[derive(Clone, Debug, PartialEq)]
pub enum TablesPlan {
    /// The source is one relation, or has its tables added by CREATE TABLE … FROM SOURCE.
    None,
    All,
    Schemas(Vec<String>),
    /// (upstream name, full name here).
    Tables(Vec<(ObjectName, FullName)>),
}

#[derive(Clone, Debug)]
pub struct CreateTableFromSourcePlan {
    pub name: FullName,
    pub if_not_exists: bool,
    pub source: ObjectRef,
    /// `schema.table` at the source; None: its only one.
    pub reference: Option<ObjectName>,
    /// Columns written down; None: those of upstream.
    pub relation: Option<SourceRelation>,
    pub options: Vec<(String, String)>,
    pub create_sql: String,
}
