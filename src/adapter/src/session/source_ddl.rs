//! CREATE SECRET, CREATE CONNECTION, VALIDATE CONNECTION, CREATE SOURCE, CREATE TABLE … FROM SOURCE.

use super::{guarded, query::constant, Response, Session};
use crate::catalog::{Connection, Item, ItemKind, Namespace, Source, SourceConnector, Text};
use crate::coordinator::request::Op;
use crate::coordinator::sources::{connector, source_spec};
use crate::planner::qualified;
use ingest::{ColumnSource, Connector, Envelope, Format, Generator, KafkaStart, UpstreamTable};
use repr::error::state;
use repr::{GlobalId, RelDesc, SqlError, Value};
use sql::catalog::{FullName, ObjectRef};
use sql::hir::HirScalar;
use sql::plan::source::{
    ColumnOrigin, ConnectorPlan, CreateSourcePlan, CreateTableFromSourcePlan, EnvelopePlan, FormatPlan, GeneratorPlan, KafkaStartPlan, SourceRelation,
    TablesPlan,
};
use sql::plan::{ConnectionKind, CreateConnectionPlan, OptionPlan};

impl Session {
    pub(super) async fn create_secret(&mut self, name: FullName, if_not_exists: bool, value: HirScalar) -> Result<Response, SqlError> {
        let tag = Response::Tag("CREATE SECRET".into());
        if self.exists(&name, Namespace::Secret, if_not_exists)? {
            return Ok(tag);
        }
        let (_, ctx) = self.statement_ctx();
        let value = match constant(value, &ctx)? {
            Value::Text(s) => s,
            Value::Bytea(b) => String::from_utf8(b).map_err(|_| SqlError::new(state::CHARACTER_NOT_IN_REPERTOIRE, "a secret must be valid UTF-8"))?,
            _ => return Err(SqlError::new(state::INVALID_PARAMETER_VALUE, "a secret is a text that is not NULL")),
        };
        let sql = format!("CREATE SECRET {} AS '********'", qualified(&name.schema, &name.name));
        let item = self.item(self.shared.allocate_id(), &name, ItemKind::Secret { value }, RelDesc::default(), sql, vec![]);
        self.apply(vec![Op::Create { item: Box::new(item), plan: None }])?;
        Ok(tag)
    }

    pub(super) async fn create_connection(&mut self, p: CreateConnectionPlan) -> Result<Response, SqlError> {
        let tag = Response::Tag("CREATE CONNECTION".into());
        if self.exists(&p.name, Namespace::Connection, p.if_not_exists)? {
            return Ok(tag);
        }
        let mut deps = Vec::new();
        let connection = match p.kind {
            ConnectionKind::Kafka => kafka_connection(&p.options, &mut deps)?,
            ConnectionKind::Postgres => postgres_connection(&p.options, &mut deps)?,
            ConnectionKind::SchemaRegistry => return Err(SqlError::unsupported("connections to a schema registry", "use FORMAT JSON, CSV, TEXT or BYTES")),
            ConnectionKind::MySql => return Err(SqlError::unsupported("connections to MySQL", "use a Kafka topic that Debezium writes")),
        };
        let item = self.item(self.shared.allocate_id(), &p.name, ItemKind::Connection(connection), RelDesc::default(), p.create_sql, deps);
        if p.validate == Some(true) {
            self.validate_item(&item).await?;
        }
        self.apply(vec![Op::Create { item: Box::new(item), plan: None }])?;
        Ok(tag)
    }

    pub(super) async fn validate_connection(&mut self, connection: &ObjectRef) -> Result<Response, SqlError> {
        let item = self.table(connection.id)?;
        self.validate_item(&item).await?;
        Ok(Response::Tag("VALIDATE CONNECTION".into()))
    }

    async fn validate_item(&mut self, item: &Item) -> Result<(), SqlError> {
        let ItemKind::Connection(c) = &item.kind else { return Err(SqlError::new(state::WRONG_OBJECT_TYPE, format!("\"{}\" is not a connection", item.name))) };
        // A connector without topic or publication: only what the connection itself says is checked.
        let source = match c {
            Connection::Kafka { .. } => SourceConnector::Kafka {
                topic: String::new(),
                start: KafkaStart::Earliest,
                key_format: None,
                value_format: Format::Bytes,
                envelope: Envelope::None,
            },
            Connection::Postgres { .. } => SourceConnector::Postgres { publication: String::new(), slot: String::new() },
        };
        let mut catalog = (*self.catalog()).clone();
        catalog.put(item.clone());
        let connector = connector(&catalog, Some(item.id), &source)?;
        self.inspect(&connector).await.map(|_| ())
    }

    async fn inspect(&mut self, connector: &Connector) -> Result<Vec<UpstreamTable>, SqlError> {
        guarded(&self.cancel, self.deadline, ingest::inspect(connector)).await?
    }

    pub(super) async fn create_source(&mut self, p: CreateSourcePlan) -> Result<Response, SqlError> {
        let tag = Response::Tag("CREATE SOURCE".into());
        if self.exists(&p.name, Namespace::Relation, p.if_not_exists)? {
            return Ok(tag);
        }
        if let Some((name, _)) = p.options.first() {
            return Err(SqlError::unsupported(format!("the source option {name}"), "ON ERROR is the one there is"));
        }
        if p.watermark.is_some() {
            return Err(SqlError::unsupported("WATERMARK", "leave it out: late rows update results"));
        }
        let id = self.shared.allocate_id();
        let errors = self.shared.allocate_id();
        let (connection, source) = source_connector(&p.connector, id)?;
        let catalog = self.catalog();
        let c = connector(&catalog, connection, &source)?;
        let upstream = self.inspect(&c).await?;
        let tables = self.subsources(&p, &upstream)?;
        let desc = p.relation.as_ref().map(|r| r.desc.clone()).unwrap_or_default();
        let self_output = p.relation.as_ref().map(|r| r.columns.iter().map(column_source).collect());
        let kind = ItemKind::Source(Source { connection, connector: source, self_output, errors, fail_on_error: !p.quarantine, watermark: None });
        let item = self.item(id, &p.name, kind, desc, p.create_sql.clone(), connection.into_iter().collect());
        let errors_name = FullName { name: format!("{}_errors", p.name.name), ..p.name.clone() };
        let mut ops = vec![Op::Create { item: Box::new(item), plan: None }];
        let e = self.item(errors, &errors_name, ItemKind::Errors { source: id }, ingest::errors_desc(), String::new(), vec![id]);
        ops.push(Op::Create { item: Box::new(e), plan: None });
        for (name, reference, relation) in tables {
            let sql =
                format!("CREATE TABLE {} FROM SOURCE {} (REFERENCE {reference})", qualified(&name.schema, &name.name), qualified(&p.name.schema, &p.name.name));
            let columns = relation.columns.iter().map(column_source).collect();
            let kind = ItemKind::SourceTable { source: id, reference, columns, with_source: true };
            let t = self.item(self.shared.allocate_id(), &name, kind, relation.desc, sql, vec![id]);
            ops.push(Op::Create { item: Box::new(t), plan: None });
        }
        // What the connector cannot do is refused here, not found out when it runs.
        let mut next = (*catalog).clone();
        for op in &ops {
            if let Op::Create { item, .. } = op {
                next.put((**item).clone());
            }
        }
        ingest::validate(&source_spec(&next, id, &Default::default())?)?;
        self.apply(ops)?;
        Ok(tag)
    }

    /// The tables that FOR ALL TABLES / TABLES / SCHEMAS makes: name here, name at the source, columns.
    fn subsources(&self, p: &CreateSourcePlan, upstream: &[UpstreamTable]) -> Result<Vec<(FullName, String, SourceRelation)>, SqlError> {
        let here = |name: &str| FullName { name: name.to_string(), ..p.name.clone() };
        if let ConnectorPlan::Generator { kind, .. } = &p.connector {
            let all = ingest::generator_tables(generator(*kind));
            return match &p.tables {
                TablesPlan::None => Ok(vec![]),
                TablesPlan::All => Ok(all.into_iter().map(|t| (here(&t.name), t.name.clone(), by_value(t.desc))).collect()),
                _ => Err(SqlError::unsupported("choosing tables of a load generator", "write FOR ALL TABLES")),
            };
        }
        let chosen: Vec<(FullName, &UpstreamTable)> = match &p.tables {
            TablesPlan::None => vec![],
            TablesPlan::All => upstream.iter().map(|t| (here(&t.name), t)).collect(),
            TablesPlan::Schemas(schemas) => upstream.iter().filter(|t| schemas.contains(&t.schema)).map(|t| (here(&t.name), t)).collect(),
            TablesPlan::Tables(list) => {
                list.iter().map(|(reference, name)| Ok((name.clone(), find_upstream(upstream, &reference.parts)?))).collect::<Result<_, SqlError>>()?
            }
        };
        if chosen.is_empty() && !matches!(p.tables, TablesPlan::None) {
            return Err(SqlError::new(state::UNDEFINED_TABLE, format!("source \"{}\" would have no table", p.name.name))
                .with_hint("add tables to the publication, or name those that it has"));
        }
        let mut names = std::collections::BTreeSet::new();
        for (name, t) in &chosen {
            if !names.insert(name.clone()) {
                let e = SqlError::new(state::DUPLICATE_TABLE, format!("two upstream tables would be called \"{}\"", name.name));
                return Err(e.with_hint(format!("write FOR TABLES ({}.{} AS another_name, ...)", t.schema, t.name)));
            }
        }
        Ok(chosen.into_iter().map(|(name, t)| (name, format!("{}.{}", t.schema, t.name), by_value(t.desc.clone()))).collect())
    }

    pub(super) async fn create_table_from_source(&mut self, p: CreateTableFromSourcePlan) -> Result<Response, SqlError> {
        let tag = Response::Tag("CREATE TABLE".into());
        if self.exists(&p.name, Namespace::Relation, p.if_not_exists)? {
            return Ok(tag);
        }
        if let Some((name, _)) = p.options.first() {
            return Err(SqlError::unsupported(format!("the option {name}"), "leave it out"));
        }
        if p.relation.is_some() {
            return Err(SqlError::unsupported("a column list in CREATE TABLE ... FROM SOURCE", "leave it out: the table has upstream's columns"));
        }
        let source = self.table(p.source.id)?;
        let ItemKind::Source(s) = &source.kind else { return Err(SqlError::new(state::WRONG_OBJECT_TYPE, format!("\"{}\" is not a source", source.name))) };
        let Some(reference) = p.reference.as_ref().map(|r| r.parts.clone()) else {
            return Err(SqlError::new(state::SYNTAX_ERROR, "CREATE TABLE ... FROM SOURCE does not say which of the source's tables")
                .with_hint(format!("write FROM SOURCE {} (REFERENCE schema.table)", source.name)));
        };
        let (reference, relation) = match &s.connector {
            SourceConnector::Postgres { .. } => {
                let c = connector(&self.catalog(), s.connection, &s.connector)?;
                let upstream = self.inspect(&c).await?;
                let t = find_upstream(&upstream, &reference)?;
                (format!("{}.{}", t.schema, t.name), by_value(t.desc.clone()))
            }
            SourceConnector::Generator { kind, .. } => {
                let wanted = reference.last().cloned().unwrap_or_default();
                let t = ingest::generator_tables(*kind).into_iter().find(|t| t.name == wanted).ok_or_else(|| missing_upstream(&reference))?;
                (t.name, by_value(t.desc))
            }
            _ => return Err(SqlError::unsupported("CREATE TABLE ... FROM SOURCE for this source", "the source is itself a relation: select from it")),
        };
        let columns = relation.columns.iter().map(column_source).collect();
        let kind = ItemKind::SourceTable { source: source.id, reference, columns, with_source: false };
        let item = self.item(self.shared.allocate_id(), &p.name, kind, relation.desc, p.create_sql, vec![source.id]);
        self.apply(vec![Op::Create { item: Box::new(item), plan: None }])?;
        Ok(tag)
    }
}

fn missing_upstream(parts: &[String]) -> SqlError {
    SqlError::new(state::UNDEFINED_TABLE, format!("the source has no table \"{}\"", parts.join(".")))
        .with_hint("check the spelling, and that the publication contains it")
}

/// An upstream table by `[schema.]name`; a bare name must be unambiguous.
fn find_upstream<'a>(upstream: &'a [UpstreamTable], parts: &[String]) -> Result<&'a UpstreamTable, SqlError> {
    let fits = |t: &&UpstreamTable| match parts {
        [name] => t.name == *name,
        [.., schema, name] => t.schema == *schema && t.name == *name,
        [] => false,
    };
    let found: Vec<&UpstreamTable> = upstream.iter().filter(fits).collect();
    match found.as_slice() {
        [one] => Ok(one),
        [] => Err(missing_upstream(parts)),
        _ => Err(SqlError::new(state::AMBIGUOUS_ALIAS, format!("the source has several tables \"{}\"", parts.join("."))).with_hint("write it with its schema")),
    }
}

/// Columns that come from upstream's columns of the same names.
fn by_value(desc: RelDesc) -> SourceRelation {
    let columns = desc.names.iter().map(|n| ColumnOrigin::Value(n.clone())).collect();
    SourceRelation { desc, columns }
}

fn column_source(origin: &ColumnOrigin) -> ColumnSource {
    match origin {
        ColumnOrigin::Value(n) => ColumnSource::Value(n.clone()),
        ColumnOrigin::Key(n) => ColumnSource::Key(n.clone()),
        ColumnOrigin::Partition => ColumnSource::Partition,
        ColumnOrigin::Offset => ColumnSource::Offset,
        ColumnOrigin::Timestamp => ColumnSource::Timestamp,
        ColumnOrigin::Headers => ColumnSource::Headers,
        ColumnOrigin::Header(n) => ColumnSource::Header(n.clone()),
        ColumnOrigin::Path => ColumnSource::Path,
    }
}

fn format(f: &FormatPlan) -> Format {
    match f {
        FormatPlan::Json => Format::Json,
        FormatPlan::Csv { delimiter, header, columns } => Format::Csv { delimiter: *delimiter, header: *header, columns: *columns },
        FormatPlan::Text => Format::Text,
        FormatPlan::Bytes => Format::Bytes,
    }
}

fn generator(kind: GeneratorPlan) -> Generator {
    match kind {
        GeneratorPlan::Counter => Generator::Counter,
        GeneratorPlan::Auction => Generator::Auction,
        GeneratorPlan::KeyValue => Generator::KeyValue,
    }
}

fn source_connector(plan: &ConnectorPlan, id: GlobalId) -> Result<(Option<GlobalId>, SourceConnector), SqlError> {
    Ok(match plan {
        ConnectorPlan::Kafka { connection, topic, start, key_format, value_format, envelope, options } => {
            if let Some((name, _)) = options.first() {
                return Err(SqlError::unsupported(format!("the Kafka option {name}"), "leave it out"));
            }
            let start = match start {
                KafkaStartPlan::Earliest => KafkaStart::Earliest,
                KafkaStartPlan::Latest => KafkaStart::Latest,
                KafkaStartPlan::Offsets(o) => KafkaStart::Offsets(o.clone()),
                KafkaStartPlan::Timestamp(t) => KafkaStart::Timestamp(*t),
            };
            let envelope = match envelope {
                EnvelopePlan::None => Envelope::None,
                EnvelopePlan::Upsert => Envelope::Upsert,
                EnvelopePlan::Debezium => Envelope::Debezium,
            };
            (
                Some(connection.id),
                SourceConnector::Kafka {
                    topic: topic.clone(),
                    start,
                    key_format: key_format.as_ref().map(format),
                    value_format: format(value_format),
                    envelope,
                },
            )
        }
        ConnectorPlan::Postgres { connection, publication, options } => {
            if let Some((name, _)) = options.first() {
                return Err(SqlError::unsupported(format!("the Postgres option {name}"), "leave it out"));
            }
            let unique = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |d| d.as_nanos());
            (Some(connection.id), SourceConnector::Postgres { publication: publication.clone(), slot: format!("riverdelta_{}_{unique:x}", id.0) })
        }
        ConnectorPlan::File { path, tail, format: f } => (None, SourceConnector::File { path: path.clone(), tail: *tail, format: format(f) }),
        ConnectorPlan::Generator { kind, tick_interval_ms, options } => {
            (None, SourceConnector::Generator { kind: generator(*kind), tick_interval_ms: *tick_interval_ms, options: options.clone() })
        }
    })
}

fn text(option: &OptionPlan, name: &str, deps: &mut Vec<GlobalId>) -> Result<Text, SqlError> {
    match option {
        OptionPlan::Text(s) => Ok(Text::Plain(s.clone())),
        OptionPlan::Secret(s) => {
            deps.push(s.id);
            Ok(Text::Secret(s.id))
        }
        OptionPlan::Connection(_) => Err(SqlError::unsupported(format!("a connection for {}", name.to_uppercase()), "write a text or SECRET name")),
    }
}

fn kafka_connection(options: &[(String, OptionPlan)], deps: &mut Vec<GlobalId>) -> Result<Connection, SqlError> {
    let mut properties = Vec::new();
    for (name, value) in options {
        let property = match name.as_str() {
            "broker" | "brokers" => "bootstrap.servers",
            "security protocol" => "security.protocol",
            "sasl mechanisms" | "sasl mechanism" => "sasl.mechanisms",
            "sasl username" => "sasl.username",
            "sasl password" => "sasl.password",
            "ssl certificate authority" => "ssl.ca.pem",
            "ssl certificate" => "ssl.certificate.pem",
            "ssl key" => "ssl.key.pem",
            other => {
                return Err(SqlError::unsupported(
                    format!("the Kafka connection option {}", other.to_uppercase()),
                    "BROKER, SECURITY PROTOCOL, SASL ... and SSL ... are there",
                ))
            }
        };
        properties.push((property.to_string(), text(value, name, deps)?));
    }
    if !properties.iter().any(|p| p.0 == "bootstrap.servers") {
        return Err(SqlError::new(state::INVALID_PARAMETER_VALUE, "a Kafka connection needs BROKER").with_hint("write BROKER 'host:9092'"));
    }
    Ok(Connection::Kafka { properties })
}

fn postgres_connection(options: &[(String, OptionPlan)], deps: &mut Vec<GlobalId>) -> Result<Connection, SqlError> {
    let (mut host, mut port, mut user, mut password, mut database, mut ssl_mode) = (None, 5432, None, None, None, "prefer".to_string());
    let mut ssl = crate::catalog::SslText::default();
    for (name, value) in options {
        let plain = |v: &OptionPlan| match v {
            OptionPlan::Text(s) => Ok(s.clone()),
            _ => Err(SqlError::unsupported(format!("a secret for {}", name.to_uppercase()), "write a text")),
        };
        match name.as_str() {
            "host" => host = Some(plain(value)?),
            "port" => {
                let s = plain(value)?;
                port = s.parse().map_err(|_| SqlError::new(state::INVALID_PARAMETER_VALUE, format!("invalid port \"{s}\"")))?;
            }
            "user" => user = Some(text(value, name, deps)?),
            "password" => password = Some(text(value, name, deps)?),
            "database" => database = Some(plain(value)?),
            "ssl mode" | "sslmode" => ssl_mode = plain(value)?.to_lowercase(),
            "ssl certificate authority" => ssl.authority = Some(text(value, name, deps)?),
            "ssl certificate" => ssl.certificate = Some(text(value, name, deps)?),
            "ssl key" => ssl.key = Some(text(value, name, deps)?),
            other => {
                return Err(SqlError::unsupported(
                    format!("the Postgres connection option {}", other.to_uppercase()),
                    "HOST, PORT, USER, PASSWORD, DATABASE, SSL MODE, SSL CERTIFICATE AUTHORITY, SSL CERTIFICATE and SSL KEY are there",
                ))
            }
        }
    }
    let need = |what: &str| SqlError::new(state::INVALID_PARAMETER_VALUE, format!("a Postgres connection needs {what}"));
    Ok(Connection::Postgres {
        host: host.ok_or_else(|| need("HOST"))?,
        port,
        user: user.ok_or_else(|| need("USER"))?,
        password,
        database: database.ok_or_else(|| need("DATABASE"))?,
        ssl_mode,
        ssl,
    })
}
