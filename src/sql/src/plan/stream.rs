//! Connections, sources and sinks.

use super::scope::Clause;
use super::source::*;
use super::statement::{once, option_bool, option_text, plain_options};
use super::*;
use crate::ast::{self, DdlOption, FormatSpec, IncludeKind, ObjectKind, OptionValue, SourceFrom, SourceTables};
use crate::catalog::ObjectRef;
use crate::parse::ParsedStatement;
use repr::{ColType, RelDesc};

fn invalid(m: impl Into<String>) -> SqlError {
    SqlError::new(state::INVALID_PARAMETER_VALUE, m)
}

impl Binder<'_> {
    /// Option values with secrets and connections resolved.
    fn option_plans(&self, options: &[DdlOption]) -> Result<Vec<(String, OptionPlan)>, SqlError> {
        options
            .iter()
            .map(|o| {
                let v = match &o.value {
                    OptionValue::Secret(n) => OptionPlan::Secret(self.object(ObjectKind::Secret, n)?),
                    v => OptionPlan::Text(option_text(v)),
                };
                Ok((o.name.clone(), v))
            })
            .collect()
    }

    pub fn create_connection(&self, p: &ParsedStatement, c: &ast::CreateConnection) -> Result<Plan, SqlError> {
        if c.or_replace {
            return Err(SqlError::unsupported("CREATE OR REPLACE CONNECTION", "drop the connection first"));
        }
        let kind = match c.kind.as_str() {
            "kafka" => ConnectionKind::Kafka,
            "confluent schema registry" => ConnectionKind::SchemaRegistry,
            "postgres" => ConnectionKind::Postgres,
            "mysql" => ConnectionKind::MySql,
            other => return Err(SqlError::unsupported(format!("a connection to {other}"), "KAFKA, CONFLUENT SCHEMA REGISTRY, POSTGRES and MYSQL are known")),
        };
        let known: &[&str] = match kind {
            ConnectionKind::Kafka => &[
                "broker",
                "brokers",
                "security protocol",
                "sasl mechanisms",
                "sasl username",
                "sasl password",
                "ssl key",
                "ssl certificate",
                "ssl certificate authority",
                "progress topic",
            ],
            ConnectionKind::SchemaRegistry => &["url", "username", "password", "ssl key", "ssl certificate", "ssl certificate authority"],
            ConnectionKind::Postgres | ConnectionKind::MySql => {
                &["host", "port", "user", "password", "database", "ssl mode", "ssl key", "ssl certificate", "ssl certificate authority"]
            }
        };
        let required: &[&str] = match kind {
            ConnectionKind::Kafka => &[],
            ConnectionKind::SchemaRegistry => &["url"],
            ConnectionKind::Postgres => &["host", "database", "user"],
            ConnectionKind::MySql => &["host", "user"],
        };
        let options = self.option_plans(&c.options)?;
        for (o, raw) in options.iter().zip(&c.options) {
            if !known.contains(&o.0.as_str()) {
                return Err(invalid(format!("unknown {} connection option \"{}\"", c.kind, o.0)).at(raw.pos));
            }
        }
        once("option", &c.options)?;
        for r in required {
            if !options.iter().any(|o| o.0 == *r) {
                return Err(invalid(format!("{} connection option \"{r}\" is required", c.kind)));
            }
        }
        if kind == ConnectionKind::Kafka && !options.iter().any(|o| o.0 == "broker" || o.0 == "brokers") {
            return Err(invalid("kafka connection option \"broker\" is required"));
        }
        let mut validate = None;
        for o in &c.with {
            match o.name.as_str() {
                "validate" => validate = Some(option_bool(o)?),
                other => return Err(invalid(format!("unknown WITH option \"{other}\"")).at(o.pos)),
            }
        }
        let name = self.new_name(&c.name)?;
        Ok(Plan::CreateConnection(Box::new(CreateConnectionPlan { create_sql: p.text.clone(), name, if_not_exists: c.if_not_exists, kind, options, validate })))
    }

    pub fn create_source(&self, p: &ParsedStatement, c: &ast::CreateSource) -> Result<Plan, SqlError> {
        let name = self.new_name(&c.name)?;
        once("option", &c.with)?;
        if let SourceFrom::Kafka { options, .. } | SourceFrom::Postgres { options, .. } | SourceFrom::File { options } | SourceFrom::Generator { options, .. } =
            &c.from
        {
            once("option", options)?;
        }
        let (mut quarantine, mut options) = (true, Vec::new());
        for (o, (k, v)) in c.with.iter().zip(plain_options(&c.with)) {
            if k == "on error" {
                quarantine = match v.to_ascii_lowercase().as_str() {
                    "quarantine" => true,
                    "fail" => false,
                    other => return Err(invalid(format!("ON ERROR must be 'quarantine' or 'fail', not '{other}'")).at(o.pos)),
                };
            } else {
                options.push((k, v));
            }
        }
        if !options.is_empty() {
            let known = ["retain history", "timestamp interval", "max lag"];
            if let Some(o) = options.iter().find(|o| !known.contains(&o.0.as_str())) {
                return Err(invalid(format!("unknown source option \"{}\"", o.0)));
            }
        }
        let (connector, relation) = self.connector(p, c)?;
        let tables = self.source_tables(c, &name)?;
        let watermark = match &c.watermark {
            None => None,
            Some((column, e, span)) => {
                let Some(rel) = &relation else {
                    return Err(SqlError::unsupported("WATERMARK for this source", "declare it on a source that is one relation").at(column.pos));
                };
                let i = rel
                    .desc
                    .names
                    .iter()
                    .position(|n| *n == column.name)
                    .ok_or_else(|| SqlError::new(state::UNDEFINED_COLUMN, format!("column \"{}\" does not exist", column.name)).at(column.pos))?;
                let env = self.row_env(&name.name, &rel.desc, Clause::Check);
                let x = self.expr(e, &env)?;
                let t = x.typ().ty;
                if !matches!(t, SqlType::Timestamp | SqlType::TimestampTz) {
                    return Err(SqlError::new(state::DATATYPE_MISMATCH, format!("a watermark must be a timestamp, not {}", t.sql_name())).at(e.pos));
                }
                Some((i, x, p.slice(*span).to_owned()))
            }
        };
        Ok(Plan::CreateSource(Box::new(CreateSourcePlan {
            name,
            if_not_exists: c.if_not_exists,
            connector,
            relation,
            tables,
            watermark,
            quarantine,
            options,
            create_sql: p.text.clone(),
        })))
    }

    /// A table's name without schema is one in the source's schema.
    fn source_tables(&self, c: &ast::CreateSource, source: &FullName) -> Result<TablesPlan, SqlError> {
        Ok(match &c.tables {
            SourceTables::None => TablesPlan::None,
            SourceTables::All => TablesPlan::All,
            SourceTables::Schemas(s) => TablesPlan::Schemas(s.clone()),
            SourceTables::Tables(list) => TablesPlan::Tables(
                list.iter()
                    .map(|(upstream, here)| {
                        let name = match here {
                            Some(here) if here.parts.len() > 1 => self.new_name(here)?,
                            here => FullName { name: here.as_ref().unwrap_or(upstream).last().to_owned(), ..source.clone() },
                        };
                        Ok((upstream.clone(), name))
                    })
                    .collect::<Result<_, SqlError>>()?,
            ),
        })
    }

    fn format(&self, f: &FormatSpec, columns: usize) -> Result<FormatPlan, SqlError> {
        Ok(match f {
            FormatSpec::Json => FormatPlan::Json,
            FormatSpec::Text => FormatPlan::Text,
            FormatSpec::Bytes => FormatPlan::Bytes,
            FormatSpec::Csv { columns: n, header, delimiter } => {
                FormatPlan::Csv { delimiter: delimiter.and_then(|d| u8::try_from(d).ok()).unwrap_or(b','), header: *header, columns: n.unwrap_or(columns) }
            }
        })
    }

    fn connector(&self, p: &ParsedStatement, c: &ast::CreateSource) -> Result<(ConnectorPlan, Option<SourceRelation>), SqlError> {
        let envelope = match c.envelope.as_deref() {
            None | Some("none") => EnvelopePlan::None,
            Some("upsert") => EnvelopePlan::Upsert,
            Some("debezium") => EnvelopePlan::Debezium,
            Some(other) => return Err(invalid(format!("unknown envelope \"{other}\""))),
        };
        match &c.from {
            SourceFrom::Kafka { connection, options } => {
                let connection = self.object(ObjectKind::Connection, connection)?;
                let (mut topic, mut start, mut rest) = (None, KafkaStartPlan::Earliest, Vec::new());
                let mut starts = options.iter().filter(|o| o.name.starts_with("start"));
                if let (Some(first), Some(second)) = (starts.next(), starts.next()) {
                    let both = format!("{} and {} both say where to start", first.name.to_uppercase(), second.name.to_uppercase());
                    return Err(invalid(both).at(second.pos));
                }
                for o in options {
                    match o.name.as_str() {
                        "topic" => topic = Some(option_text(&o.value)),
                        "start offset" => start = KafkaStartPlan::Offsets(numbers(o)?),
                        "start timestamp" => {
                            start =
                                KafkaStartPlan::Timestamp(option_text(&o.value).parse().map_err(|_| invalid("START TIMESTAMP must be an integer").at(o.pos))?)
                        }
                        "start" => {
                            start = match option_text(&o.value).to_ascii_lowercase().as_str() {
                                "earliest" | "beginning" => KafkaStartPlan::Earliest,
                                "latest" | "end" => KafkaStartPlan::Latest,
                                other => return Err(invalid(format!("unknown START \"{other}\"")).at(o.pos)),
                            }
                        }
                        "group id prefix" | "group id" | "transactional id prefix" | "topic metadata refresh interval" => {
                            rest.push((o.name.clone(), OptionPlan::Text(option_text(&o.value))));
                        }
                        other => return Err(invalid(format!("unknown kafka source option \"{other}\"")).at(o.pos)),
                    }
                }
                let topic = topic.filter(|t| !t.is_empty()).ok_or_else(|| invalid("kafka source option \"topic\" is required"))?;
                if matches!(&start, KafkaStartPlan::Offsets(list) if list.iter().any(|o| *o < 0)) {
                    return Err(invalid("START OFFSET must not be negative").with_hint("Write START TIMESTAMP -60000 for the last minute."));
                }
                no_tables_to_choose(c)?;
                let Some(value) = &c.formats.value else { return Err(invalid("a kafka source requires FORMAT")) };
                let relation = self.source_relation(p, c, value, envelope)?;
                let n = relation.columns.iter().filter(|x| matches!(x, ColumnOrigin::Value(_))).count();
                let value_format = self.format(value, n)?;
                let key_format = match &c.formats.key {
                    Some(k) => Some(self.format(k, 1)?),
                    // Where nothing else is said, key columns are members of a JSON key, as those of JSON values are; a whole key is text.
                    None if relation.columns.iter().any(|c| matches!(c, ColumnOrigin::Key(_))) => {
                        let by_member = relation.columns.iter().any(|c| matches!(c, ColumnOrigin::Key(name) if !name.is_empty()));
                        Some(match &value_format {
                            FormatPlan::Json if by_member => FormatPlan::Json,
                            FormatPlan::Bytes => FormatPlan::Bytes,
                            _ => FormatPlan::Text,
                        })
                    }
                    None => None,
                };
                let connector = ConnectorPlan::Kafka { connection, topic, start, key_format, value_format, envelope, options: rest };
                Ok((connector, Some(relation)))
            }
            SourceFrom::Postgres { connection, options } => {
                let connection = self.object(ObjectKind::Connection, connection)?;
                refuse_record_clauses(c, "a postgres source", "the tables' columns and changes come from upstream")?;
                let (mut publication, mut rest) = (None, Vec::new());
                for (o, plan) in options.iter().zip(self.option_plans(options)?) {
                    match o.name.as_str() {
                        "publication" => publication = Some(option_text(&o.value)),
                        "text columns" | "exclude columns" => rest.push(plan),
                        other => return Err(invalid(format!("unknown postgres source option \"{other}\"")).at(o.pos)),
                    }
                }
                let publication = publication.ok_or_else(|| invalid("postgres source option \"publication\" is required"))?;
                Ok((ConnectorPlan::Postgres { connection, publication, options: rest }, None))
            }
            SourceFrom::MySql { .. } => Err(SqlError::unsupported("a mysql source", "KAFKA, POSTGRES, FILE and LOAD GENERATOR are known")),
            SourceFrom::File { options } => {
                let (mut path, mut tail) = (None, false);
                for o in options {
                    match o.name.as_str() {
                        "path" => path = Some(option_text(&o.value)),
                        "tail" => tail = option_bool(o)?,
                        other => return Err(invalid(format!("unknown file source option \"{other}\"")).at(o.pos)),
                    }
                }
                let path = path.ok_or_else(|| invalid("file source option \"path\" is required"))?;
                if envelope != EnvelopePlan::None {
                    return Err(SqlError::unsupported("an envelope for a file source", "files only append"));
                }
                if c.formats.key.is_some() {
                    return Err(SqlError::unsupported("KEY FORMAT of a file source", "a line has no key: write FORMAT"));
                }
                no_tables_to_choose(c)?;
                let Some(value) = &c.formats.value else { return Err(invalid("a file source requires FORMAT")) };
                let relation = self.source_relation(p, c, value, envelope)?;
                let n = relation.columns.iter().filter(|x| matches!(x, ColumnOrigin::Value(_))).count();
                Ok((ConnectorPlan::File { path, tail, format: self.format(value, n)? }, Some(relation)))
            }
            SourceFrom::Generator { kind, options } => {
                refuse_record_clauses(c, "a load generator", "its rows are made, not decoded")?;
                self.generator(kind, options)
            }
        }
    }

    fn generator(&self, kind: &str, options: &[DdlOption]) -> Result<(ConnectorPlan, Option<SourceRelation>), SqlError> {
        let plan = match kind {
            "COUNTER" => GeneratorPlan::Counter,
            "AUCTION" => GeneratorPlan::Auction,
            "KEY VALUE" => GeneratorPlan::KeyValue,
            other => return Err(SqlError::unsupported(format!("load generator {other}"), "COUNTER, AUCTION and KEY VALUE are known")),
        };
        let (mut tick_interval_ms, mut rest) = (1000, Vec::new());
        for o in options {
            if o.name == "tick interval" {
                tick_interval_ms = self.millis(&o.value, o.pos)?;
            } else {
                rest.push((o.name.clone(), option_text(&o.value)));
            }
        }
        // The columns of a generator are its own; tables of AUCTION are made from the source.
        let relation = match plan {
            GeneratorPlan::Counter => Some(relation_of(&[("counter", SqlType::Int8.not_null())])),
            GeneratorPlan::KeyValue => {
                let int = SqlType::Int8.not_null();
                let mut r = relation_of(&[("partition", int.clone()), ("key", int.clone()), ("offset", int), ("value", SqlType::Bytea.not_null())]);
                r.desc.keys = vec![vec![1]];
                Some(r)
            }
            GeneratorPlan::Auction => None,
        };
        Ok((ConnectorPlan::Generator { kind: plan, tick_interval_ms, options: rest }, relation))
    }

    /// An interval, or a number of milliseconds.
    fn millis(&self, v: &OptionValue, pos: Pos) -> Result<u64, SqlError> {
        let text = option_text(v);
        let out_of_range = || {
            let e = invalid(format!("invalid value for TICK INTERVAL: \"{text}\""));
            e.with_hint("It must be at least 1 millisecond and at most 1 day, without months.").at(pos)
        };
        const DAY_MS: i128 = 86_400_000;
        let in_range = |ms: i128| u64::try_from(ms).ok().filter(|_| (1..=DAY_MS).contains(&ms)).ok_or_else(out_of_range);
        if let Ok(n) = text.parse::<i64>() {
            return in_range(n.into());
        }
        let literal = crate::hir::HirScalar::Literal(Value::Text(text.clone()), SqlType::Unknown.not_null());
        match self.coerce(literal, &SqlType::Interval.nullable(), ::expr::catalog::CastContext::Explicit, pos)? {
            // A month has no length.
            crate::hir::HirScalar::Literal(Value::Interval(i), _) if i.months != 0 => Err(out_of_range()),
            crate::hir::HirScalar::Literal(Value::Interval(i), _) => in_range(i.span_micros() / 1000),
            _ => Err(invalid("an interval is expected").at(pos)),
        }
    }

    /// The columns of a source that is one relation.
    fn source_relation(&self, p: &ParsedStatement, c: &ast::CreateSource, value: &FormatSpec, envelope: EnvelopePlan) -> Result<SourceRelation, SqlError> {
        let mut desc;
        let mut columns = Vec::new();
        let mut key: Option<Vec<usize>> = None;
        if c.columns.is_empty() {
            // Without a list: one column for the value.
            let (name, ty) = match value {
                FormatSpec::Json => ("data", SqlType::Jsonb),
                FormatSpec::Text => ("text", SqlType::Text),
                FormatSpec::Bytes => ("data", SqlType::Bytea),
                FormatSpec::Csv { columns: Some(n), .. } => {
                    let cols: Vec<(String, ColType)> = (1..=*n).map(|i| (format!("column{i}"), SqlType::Text.nullable())).collect();
                    desc = RelDesc { names: cols.iter().map(|c| c.0.clone()).collect(), types: cols.into_iter().map(|c| c.1).collect(), keys: vec![] };
                    columns = desc.names.iter().map(|n| ColumnOrigin::Value(n.clone())).collect();
                    return self.include(c, desc, columns, key, envelope);
                }
                FormatSpec::Csv { header: true, .. } => return Err(invalid("FORMAT CSV WITH HEADER requires a column list")),
                FormatSpec::Csv { .. } => {
                    let e = invalid("FORMAT CSV does not say which columns there are");
                    return Err(e.with_hint("Write FORMAT CSV WITH n COLUMNS, or give the source a column list."));
                }
            };
            if envelope == EnvelopePlan::Debezium {
                return Err(invalid("ENVELOPE DEBEZIUM requires a column list"));
            }
            desc = RelDesc { names: vec![name.to_owned()], types: vec![ty.nullable()], keys: vec![] };
            columns.push(ColumnOrigin::Value(String::new()));
        } else {
            for col in &c.columns {
                if col.default.is_some() || !col.checks.is_empty() {
                    return Err(SqlError::unsupported("DEFAULT or CHECK in a source", "filter or fill in a view").at(col.name.pos));
                }
            }
            let shape = self.table_shape(p, c.name.last(), &c.columns, &c.constraints, None)?;
            if let Some(i) = shape.desc.types.iter().position(|t| t.ty.has_domain()) {
                let e = SqlError::unsupported("a domain as the type of a source's column", "cast to it in a view");
                return Err(e.at(c.columns[i].name.pos));
            }
            desc = shape.desc;
            key = shape.unique.iter().find(|u| u.2).map(|u| u.1.clone());
            if envelope == EnvelopePlan::None && !shape.unique.is_empty() {
                return Err(SqlError::unsupported("a key of a source whose records only append", "write ENVELOPE UPSERT, or make keys unique in a view"));
            }
            columns = desc.names.iter().map(|n| ColumnOrigin::Value(n.clone())).collect();
            desc.keys.clear();
        }
        self.include(c, desc, columns, key, envelope)
    }

    /// Adds INCLUDE columns, and the key columns that an envelope needs.
    fn include(
        &self,
        c: &ast::CreateSource,
        mut desc: RelDesc,
        mut columns: Vec<ColumnOrigin>,
        key: Option<Vec<usize>>,
        envelope: EnvelopePlan,
    ) -> Result<SourceRelation, SqlError> {
        let kafka = matches!(c.from, SourceFrom::Kafka { .. });
        let mut add = |name: &str, ty: ColType, from: ColumnOrigin, pos: Pos, desc: &mut RelDesc| -> Result<usize, SqlError> {
            if desc.names.iter().any(|n| n == name) {
                return Err(SqlError::new(state::DUPLICATE_COLUMN, format!("column \"{name}\" specified more than once"))
                    .with_hint("Give the INCLUDE column another name with AS.")
                    .at(pos));
            }
            desc.names.push(name.to_owned());
            desc.types.push(ty);
            columns.push(from);
            Ok(columns.len() - 1)
        };
        let mut key_columns = key;
        for i in &c.include {
            let alias = |d: &str| i.alias.as_ref().map_or_else(|| d.to_owned(), |a| a.name.clone());
            if !kafka && !matches!(i.what, IncludeKind::Offset | IncludeKind::Path) {
                return Err(SqlError::unsupported("this INCLUDE for a file source", "OFFSET and PATH are known").at(i.pos));
            }
            if kafka && i.what == IncludeKind::Path {
                return Err(SqlError::unsupported("INCLUDE PATH for a kafka source", "a record has no path").at(i.pos));
            }
            match &i.what {
                IncludeKind::Key => {
                    let ty = whole_key_type(c);
                    let upsert = envelope == EnvelopePlan::Upsert;
                    let at = add(&alias("key"), ty.nullable().with_nullable(!upsert), ColumnOrigin::Key(String::new()), i.pos, &mut desc)?;
                    if upsert && key_columns.is_none() {
                        key_columns = Some(vec![at]);
                    }
                }
                IncludeKind::Partition => {
                    add(&alias("partition"), SqlType::Int4.not_null(), ColumnOrigin::Partition, i.pos, &mut desc)?;
                }
                IncludeKind::Offset => {
                    add(&alias("offset"), SqlType::Int8.not_null(), ColumnOrigin::Offset, i.pos, &mut desc)?;
                }
                IncludeKind::Timestamp => {
                    add(&alias("timestamp"), SqlType::TimestampTz.nullable(), ColumnOrigin::Timestamp, i.pos, &mut desc)?;
                }
                IncludeKind::Headers => {
                    add(&alias("headers"), SqlType::Jsonb.nullable(), ColumnOrigin::Headers, i.pos, &mut desc)?;
                }
                IncludeKind::Header(h) => {
                    add(&alias(h), SqlType::Text.nullable(), ColumnOrigin::Header(h.clone()), i.pos, &mut desc)?;
                }
                IncludeKind::Path => {
                    add(&alias("path"), SqlType::Text.not_null(), ColumnOrigin::Path, i.pos, &mut desc)?;
                }
            }
        }
        match envelope {
            EnvelopePlan::None => {}
            EnvelopePlan::Upsert | EnvelopePlan::Debezium => {
                // PRIMARY KEY columns are the message key's fields; without them the whole key is a column.
                let key = match key_columns {
                    Some(k) => k,
                    None if envelope == EnvelopePlan::Upsert => {
                        vec![add("key", whole_key_type(c).not_null(), ColumnOrigin::Key(String::new()), 0, &mut desc)?]
                    }
                    None => {
                        return Err(
                            invalid("ENVELOPE DEBEZIUM requires a PRIMARY KEY").with_hint("Declare PRIMARY KEY (…) with the columns of the message key.")
                        )
                    }
                };
                for k in &key {
                    if let ColumnOrigin::Value(n) = &columns[*k] {
                        columns[*k] = ColumnOrigin::Key(n.clone());
                    }
                    desc.types[*k].nullable = false;
                }
                desc.keys = vec![key];
            }
        }
        Ok(SourceRelation { desc, columns })
    }

    pub fn table_from_source(&self, p: &ParsedStatement, c: &ast::CreateTableFromSource) -> Result<Plan, SqlError> {
        let name = self.new_name(&c.name)?;
        let source = self.object(ObjectKind::Source, &c.source)?;
        let relation = if c.columns.is_empty() {
            None
        } else {
            let shape = self.table_shape(p, &name.name, &c.columns, &[], None)?;
            let columns = shape.desc.names.iter().map(|n| ColumnOrigin::Value(n.clone())).collect();
            Some(SourceRelation { desc: shape.desc, columns })
        };
        Ok(Plan::CreateTableFromSource(Box::new(CreateTableFromSourcePlan {
            name,
            if_not_exists: c.if_not_exists,
            source,
            reference: c.reference.clone(),
            relation,
            options: plain_options(&c.options),
            create_sql: p.text.clone(),
        })))
    }

    pub fn create_sink(&self, p: &ParsedStatement, c: &ast::CreateSink) -> Result<Plan, SqlError> {
        let name = self.new_name(&c.name)?;
        let rel = self.resolve_relation(&c.from)?;
        let kind = match c.into.as_str() {
            "kafka" => ConnectionKind::Kafka,
            "postgres" => ConnectionKind::Postgres,
            other => return Err(SqlError::unsupported(format!("a sink into {other}"), "KAFKA and POSTGRES are known")),
        };
        let connection: ObjectRef = self.object(ObjectKind::Connection, &c.connection)?;
        let key = c
            .key
            .iter()
            .map(|k| {
                rel.desc
                    .names
                    .iter()
                    .position(|n| *n == k.name)
                    .ok_or_else(|| SqlError::new(state::UNDEFINED_COLUMN, format!("column \"{}\" does not exist", k.name)).at(k.pos))
            })
            .collect::<Result<Vec<_>, _>>()?;
        let n = rel.desc.arity();
        let format = c.formats.value.as_ref().map(|f| self.format(f, n)).transpose()?;
        let key_format = c.formats.key.as_ref().map(|f| self.format(f, key.len())).transpose()?;
        if let Some(e) = c.envelope.as_deref().filter(|e| !matches!(*e, "upsert" | "debezium")) {
            return Err(invalid(format!("unknown sink envelope \"{e}\"")));
        }
        if c.envelope.as_deref() == Some("upsert") && key.is_empty() {
            return Err(invalid("ENVELOPE UPSERT requires KEY (…)"));
        }
        Ok(Plan::CreateSink(Box::new(CreateSinkPlan {
            name,
            if_not_exists: c.if_not_exists,
            from: rel.id,
            desc: rel.desc.clone(),
            kind,
            connection,
            options: self.option_plans(&c.options)?,
            key,
            key_format,
            format,
            envelope: c.envelope.clone(),
            with: plain_options(&c.with),
            create_sql: p.text.clone(),
        })))
    }
}

/// Clauses that say how a record becomes a row, on a source that has no records.
fn refuse_record_clauses(c: &ast::CreateSource, source: &str, why: &str) -> Result<(), SqlError> {
    let given = [
        ("a column list", !c.columns.is_empty() || !c.constraints.is_empty()),
        ("FORMAT", c.formats.key.is_some() || c.formats.value.is_some()),
        ("INCLUDE", !c.include.is_empty()),
        ("ENVELOPE", c.envelope.as_deref().is_some_and(|e| e != "none")),
    ];
    match given.iter().find(|g| g.1) {
        Some((clause, _)) => Err(SqlError::unsupported(format!("{clause} for {source}"), why)),
        None => Ok(()),
    }
}

/// What a column for the whole key of a message is.
fn whole_key_type(c: &ast::CreateSource) -> SqlType {
    match (&c.formats.key, &c.formats.value) {
        (Some(FormatSpec::Json), _) => SqlType::Jsonb,
        (Some(FormatSpec::Bytes), _) | (None, Some(FormatSpec::Bytes)) => SqlType::Bytea,
        _ => SqlType::Text,
    }
}

fn no_tables_to_choose(c: &ast::CreateSource) -> Result<(), SqlError> {
    match c.tables {
        SourceTables::None => Ok(()),
        _ => Err(SqlError::unsupported("FOR TABLES of this source", "the source is itself one relation")),
    }
}

fn numbers(o: &DdlOption) -> Result<Vec<i64>, SqlError> {
    let one = |v: &OptionValue| option_text(v).parse::<i64>().map_err(|_| invalid(format!("\"{}\" must be integers", o.name)).at(o.pos));
    match &o.value {
        OptionValue::List(items) => items.iter().map(one).collect(),
        v => Ok(vec![one(v)?]),
    }
}

fn relation_of(cols: &[(&str, ColType)]) -> SourceRelation {
    let desc = RelDesc { names: cols.iter().map(|c| c.0.to_owned()).collect(), types: cols.iter().map(|c| c.1.clone()).collect(), keys: vec![] };
    let columns = desc.names.iter().map(|n| ColumnOrigin::Value(n.clone())).collect();
    SourceRelation { desc, columns }
}
