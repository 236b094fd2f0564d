//! Statements of our own: connections, sources, sinks, SUBSCRIBE, and the option lists they share.

use super::cursor::Parser;
use super::lex::Tok;
use crate::ast::*;
use repr::SqlError;

/// As many as a table can have.
const CSV_COLUMNS_MAX: usize = 1600;

impl Parser<'_> {
    /// WITH (…), if it is there.
    pub fn with_options(&mut self) -> Result<Vec<DdlOption>, SqlError> {
        if self.is_kw("with") && self.is_punct_at(1, "(") {
            self.next();
            return self.option_list();
        }
        Ok(Vec::new())
    }

    /// `(NAME [=] value, …)`; names may be several words.
    pub fn option_list(&mut self) -> Result<Vec<DdlOption>, SqlError> {
        self.parens(|p| if p.is_punct(")") { Ok(Vec::new()) } else { p.comma_list(Self::option) })
    }

    fn option(&mut self) -> Result<DdlOption, SqlError> {
        let pos = self.pos();
        let mut name = self.col_label()?.name;
        while self.eat_punct(".") {
            name = format!("{name}.{}", self.col_label()?.name);
        }
        // Words go on being the name until a value, `=`, or the end; the last word before the end is a value.
        while let Tok::Word(w) = self.tok().clone() {
            let ends = matches!(self.tok_at(1), Tok::Punct(")" | "," | "."));
            if name_continues(&name, &w) {
                self.next();
                name = format!("{name} {w}");
                continue;
            }
            if ends || matches!(w.as_str(), "true" | "false" | "secret" | "interval" | "on" | "off" | "default") {
                break;
            }
            self.next();
            name = format!("{name} {w}");
        }
        let eq = self.eat_op("=") || self.eat_punct("=>");
        let value = if !eq && (self.is_punct(")") || self.is_punct(",")) { OptionValue::None } else { self.option_value()? };
        Ok(DdlOption { name: name.to_lowercase(), value, pos })
    }

    pub(super) fn option_value(&mut self) -> Result<OptionValue, SqlError> {
        let err = self.error();
        Ok(match self.tok().clone() {
            Tok::String(s) => {
                self.next();
                OptionValue::String(s)
            }
            Tok::Number(n) => {
                self.next();
                OptionValue::Number(n)
            }
            Tok::Op(o) if o == "-" || o == "+" => {
                self.next();
                match self.next() {
                    Tok::Number(n) => OptionValue::Number(if o == "-" { format!("-{n}") } else { n }),
                    _ => return Err(err),
                }
            }
            Tok::Op(o) if o == "*" => {
                self.next();
                OptionValue::Word("*".into())
            }
            Tok::Punct("(") => OptionValue::List(self.parens(|p| p.comma_list(Self::option_value))?),
            Tok::Punct("[") => {
                self.next();
                let list = if self.is_punct("]") { Vec::new() } else { self.comma_list(Self::option_value)? };
                self.expect_punct("]")?;
                OptionValue::List(list)
            }
            Tok::Word(w) => match w.as_str() {
                "true" => {
                    self.next();
                    OptionValue::Bool(true)
                }
                "false" => {
                    self.next();
                    OptionValue::Bool(false)
                }
                "on" | "off" => {
                    self.next();
                    OptionValue::Word(w)
                }
                "secret" if matches!(self.tok_at(1), Tok::Word(_) | Tok::Quoted(_)) => {
                    self.next();
                    OptionValue::Secret(self.object_name()?)
                }
                // RETAIN HISTORY = FOR '1 h'.
                "for" if matches!(self.tok_at(1), Tok::String(_)) => {
                    self.next();
                    OptionValue::Interval(self.string()?)
                }
                "interval" if matches!(self.tok_at(1), Tok::String(_)) => {
                    self.next();
                    let text = self.string()?;
                    self.interval_fields()?;
                    OptionValue::Interval(text)
                }
                _ => self.word_value()?,
            },
            Tok::Quoted(_) => self.word_value()?,
            _ => return Err(err),
        })
    }

    fn word_value(&mut self) -> Result<OptionValue, SqlError> {
        let (pos, start) = (self.pos(), self.span().start);
        let mut parts = vec![self.col_label()?.name];
        while self.eat_punct(".") {
            parts.push(self.col_label()?.name);
        }
        if parts.len() == 1 && !self.is_punct(",") && !self.is_punct(")") && !self.is_punct("]") {
            // Several bare words make one value.
            let mut words = parts.remove(0);
            while let Tok::Word(w) = self.tok().clone() {
                self.next();
                words = format!("{words} {w}");
            }
            return Ok(OptionValue::Word(words));
        }
        if parts.len() == 1 {
            return Ok(OptionValue::Word(parts.remove(0)));
        }
        Ok(OptionValue::Name(ObjectName { parts, pos, span: self.span_from(start) }))
    }

    pub fn create_connection(&mut self, or_replace: bool) -> Result<Statement, SqlError> {
        self.next();
        let if_not_exists = self.if_not_exists()?;
        let name = self.object_name()?;
        let _ = self.eat_kw("to") || self.eat_kw("for");
        let kind = if self.eat_kws(&["confluent", "schema", "registry"]) { "confluent schema registry".to_owned() } else { self.col_label()?.name };
        let options = self.option_list()?;
        let with = self.with_options()?;
        Ok(Statement::CreateConnection(Box::new(CreateConnection { name, if_not_exists, or_replace, kind, options, with })))
    }

    pub fn create_source(&mut self) -> Result<Statement, SqlError> {
        self.next();
        let if_not_exists = self.if_not_exists()?;
        let name = self.object_name()?;
        if self.is_kws(&["in", "cluster"]) {
            return Err(SqlError::unsupported("IN CLUSTER", "leave it out").at(self.pos()));
        }
        let (mut columns, mut constraints, mut watermark) = (Vec::new(), Vec::new(), None);
        if self.is_punct("(") {
            self.parens(|p| {
                p.comma_list(|p| {
                    if p.is_kw("watermark") && p.is_kw_at(1, "for") {
                        p.next();
                        p.next();
                        let column = p.col_id()?;
                        p.expect_kw("as")?;
                        let start = p.span().start;
                        let e = p.expr()?;
                        watermark = Some((column, e, p.span_from(start)));
                        return Ok(());
                    }
                    // A source's columns may be given without types for formats that have their own.
                    p.table_element(&mut columns, &mut constraints, &mut Vec::new())
                })
            })?;
        }
        self.expect_kw("from")?;
        let from = self.source_from()?;
        let mut s = CreateSource {
            name,
            if_not_exists,
            columns,
            constraints,
            watermark,
            from,
            formats: Formats::default(),
            include: Vec::new(),
            envelope: None,
            tables: SourceTables::None,
            with: Vec::new(),
        };
        self.source_clauses(&mut s)?;
        Ok(Statement::CreateSource(Box::new(s)))
    }

    fn source_from(&mut self) -> Result<SourceFrom, SqlError> {
        let pos = self.pos();
        if self.eat_kws(&["load", "generator"]) {
            let mut kind = self.col_label()?.name;
            while let Tok::Word(w) = self.tok().clone() {
                if matches!(w.as_str(), "for" | "include" | "envelope" | "with" | "format") {
                    break;
                }
                self.next();
                kind = format!("{kind} {w}");
            }
            let options = if self.is_punct("(") { self.option_list()? } else { Vec::new() };
            return Ok(SourceFrom::Generator { kind: kind.to_uppercase(), options });
        }
        if self.eat_kw("file") {
            return Ok(SourceFrom::File { options: self.option_list()? });
        }
        if self.eat_kw("webhook") {
            return Err(SqlError::unsupported("a webhook source", "KAFKA, POSTGRES, FILE and LOAD GENERATOR are known").at(pos));
        }
        let kind = self.col_label()?.name;
        if !matches!(kind.as_str(), "kafka" | "postgres" | "mysql") {
            return Err(super::lex::syntax("syntax error", &kind, pos));
        }
        self.expect_kw("connection")?;
        let connection = self.object_name()?;
        let options = if self.is_punct("(") { self.option_list()? } else { Vec::new() };
        Ok(match kind.as_str() {
            "kafka" => SourceFrom::Kafka { connection, options },
            "postgres" => SourceFrom::Postgres { connection, options },
            _ => SourceFrom::MySql { connection, options },
        })
    }

    fn source_clauses(&mut self, s: &mut CreateSource) -> Result<(), SqlError> {
        loop {
            let (pos, formats, envelope) = (self.pos(), s.formats.value.is_some(), s.envelope.is_some());
            let twice = |what: &str, already: bool| match already {
                true => Err(SqlError::new(repr::error::state::SYNTAX_ERROR, format!("{what} specified more than once")).at(pos)),
                false => Ok(()),
            };
            if self.eat_kws(&["key", "format"]) {
                twice("FORMAT", formats)?;
                s.formats.key = Some(self.format_spec()?);
                self.expect_kws(&["value", "format"])?;
                s.formats.value = Some(self.format_spec()?);
            } else if self.eat_kw("format") {
                twice("FORMAT", formats)?;
                s.formats.value = Some(self.format_spec()?);
            } else if self.eat_kw("include") {
                s.include.extend(self.comma_list(Self::include)?);
            } else if self.eat_kw("envelope") {
                twice("ENVELOPE", envelope)?;
                s.envelope = Some(self.envelope_word()?);
            } else if self.is_kw("check") {
                return Err(SqlError::unsupported("CHECK of a source", "filter in a view").at(self.pos()));
            } else if self.eat_kw("for") {
                s.tables = self.source_tables()?;
            } else if self.is_kw("with") {
                s.with.extend(self.with_options()?);
            } else if self.is_kw("expose") {
                return Err(SqlError::unsupported("EXPOSE PROGRESS", "progress is in rd_catalog").at(self.pos()));
            } else {
                return Ok(());
            }
        }
    }

    fn envelope_word(&mut self) -> Result<String, SqlError> {
        let w = self.col_label()?.name;
        if self.is_punct("(") {
            return Err(SqlError::unsupported("envelope options", "leave them out").at(self.pos()));
        }
        Ok(w)
    }

    fn source_tables(&mut self) -> Result<SourceTables, SqlError> {
        if self.eat_kws(&["all", "tables"]) {
            return Ok(SourceTables::All);
        }
        if self.eat_kw("schemas") {
            return Ok(SourceTables::Schemas(self.parens(|p| p.comma_list(|p| Ok(p.col_id()?.name)))?));
        }
        self.expect_kw("tables")?;
        Ok(SourceTables::Tables(self.parens(|p| {
            p.comma_list(|p| {
                let upstream = p.object_name()?;
                let here = if p.eat_kw("as") || p.is_col_id() { Some(p.object_name()?) } else { None };
                Ok((upstream, here))
            })
        })?))
    }

    fn include(&mut self) -> Result<Include, SqlError> {
        let pos = self.pos();
        let what = match self.next() {
            Tok::Word(w) => match w.as_str() {
                "key" => IncludeKind::Key,
                "partition" => IncludeKind::Partition,
                "offset" => IncludeKind::Offset,
                "timestamp" => IncludeKind::Timestamp,
                "headers" => IncludeKind::Headers,
                "header" => IncludeKind::Header(self.string()?),
                "path" => IncludeKind::Path,
                _ => return Err(super::lex::syntax("syntax error", &w, pos)),
            },
            _ => return Err(self.error()),
        };
        let alias = if self.eat_kw("as") { Some(self.col_id()?) } else { None };
        if matches!(what, IncludeKind::Header(_)) && self.is_kw("bytes") {
            return Err(SqlError::unsupported("a header as BYTES", "INCLUDE HEADERS has all of them; bytes that are no UTF-8 are hex there").at(self.pos()));
        }
        Ok(Include { what, alias, pos })
    }

    fn format_spec(&mut self) -> Result<FormatSpec, SqlError> {
        let pos = self.pos();
        let Tok::Word(w) = self.next() else { return Err(self.error()) };
        Ok(match w.as_str() {
            "json" => FormatSpec::Json,
            "text" => FormatSpec::Text,
            "bytes" => FormatSpec::Bytes,
            "csv" => {
                let (mut columns, mut header) = (None, false);
                // Without WITH … the column list says how many there are; the options of the source begin with WITH too.
                if self.eat_kws(&["with", "header"]) {
                    header = true;
                    if self.is_punct("(") {
                        return Err(SqlError::unsupported("names after CSV WITH HEADER", "write them as the source's column list").at(self.pos()));
                    }
                } else if self.is_kw("with") && !self.is_punct_at(1, "(") {
                    self.next();
                    let at = self.pos();
                    let n = self.integer()?;
                    columns = Some(usize::try_from(n).ok().filter(|n| (1..=CSV_COLUMNS_MAX).contains(n)).ok_or_else(|| {
                        let message = format!("a CSV record has between 1 and {CSV_COLUMNS_MAX} columns, not {n}");
                        SqlError::new(repr::error::state::INVALID_PARAMETER_VALUE, message).at(at)
                    })?);
                    self.expect_kw("columns")?;
                }
                let mut delimiter = None;
                if self.eat_kw("delimited") {
                    self.expect_kw("by")?;
                    let s = self.string()?;
                    let mut chars = s.chars();
                    delimiter = chars.next();
                    if delimiter.is_none_or(|c| !c.is_ascii()) || chars.next().is_some() {
                        return Err(SqlError::new(repr::error::state::INVALID_PARAMETER_VALUE, "CSV delimiter must be a single one-byte character").at(pos));
                    }
                }
                FormatSpec::Csv { columns, header, delimiter }
            }
            // Whatever follows.
            "avro" | "protobuf" => {
                let what = format!("FORMAT {}", w.to_uppercase());
                return Err(SqlError::unsupported(what, "FORMAT JSON, CSV, TEXT and BYTES are known").at(pos));
            }
            _ => return Err(super::lex::syntax("syntax error", &w, pos)),
        })
    }

    pub fn table_from_source(&mut self, name: ObjectName, if_not_exists: bool, columns: Vec<ColumnDef>) -> Result<Statement, SqlError> {
        let source = self.object_name()?;
        let mut reference = None;
        if self.eat_punct("(") {
            self.expect_kw("reference")?;
            self.eat_op("=");
            reference = Some(self.object_name()?);
            self.expect_punct(")")?;
        }
        let options = self.with_options()?;
        Ok(Statement::CreateTableFromSource(Box::new(CreateTableFromSource { name, if_not_exists, columns, source, reference, options })))
    }

    pub fn create_sink(&mut self) -> Result<Statement, SqlError> {
        self.next();
        let if_not_exists = self.if_not_exists()?;
        let name = self.object_name()?;
        self.expect_kw("from")?;
        let from = self.object_name()?;
        self.expect_kw("into")?;
        let into = self.col_label()?.name;
        self.expect_kw("connection")?;
        let connection = self.object_name()?;
        let options = if self.is_punct("(") { self.option_list()? } else { Vec::new() };
        let mut s =
            CreateSink { name, if_not_exists, from, into, connection, options, key: Vec::new(), formats: Formats::default(), envelope: None, with: Vec::new() };
        loop {
            if self.eat_kws(&["key", "format"]) {
                s.formats.key = Some(self.format_spec()?);
                self.expect_kws(&["value", "format"])?;
                s.formats.value = Some(self.format_spec()?);
            } else if self.is_kw("key") {
                self.next();
                s.key = self.col_id_list()?;
                self.eat_kws(&["not", "enforced"]);
            } else if self.eat_kw("format") {
                s.formats.value = Some(self.format_spec()?);
            } else if self.eat_kw("envelope") {
                s.envelope = Some(self.envelope_word()?);
            } else if self.is_kw("with") {
                s.with = self.with_options()?;
            } else {
                return Ok(Statement::CreateSink(Box::new(s)));
            }
        }
    }

    pub fn subscribe(&mut self) -> Result<Subscribe, SqlError> {
        let pos = self.pos();
        self.next();
        self.eat_kw("to");
        let from = if self.is_punct("(") {
            SubscribeFrom::Query(Box::new(self.parens(Self::query)?))
        } else if self.at_query_word() {
            SubscribeFrom::Query(Box::new(self.query()?))
        } else {
            SubscribeFrom::Relation(self.object_name()?)
        };
        let mut s = Subscribe { from, as_of: None, up_to: None, options: Vec::new(), output: SubscribeOutput::Diffs, pos };
        loop {
            if self.is_kws(&["as", "of"]) {
                s.as_of = self.as_of_opt()?;
            } else if self.eat_kws(&["up", "to"]) {
                s.up_to = Some(self.expr()?);
            } else if self.is_kw("with") {
                self.next();
                s.options = if self.is_punct("(") { self.option_list()? } else { self.comma_list(Self::bare_option)? };
            } else if self.eat_kws(&["within", "timestamp", "order", "by"]) {
                s.output = SubscribeOutput::WithinTimestampOrderBy(self.order_by_list()?);
            } else if self.eat_kws(&["envelope", "upsert"]) {
                s.output = SubscribeOutput::EnvelopeUpsert(self.envelope_key()?);
            } else if self.eat_kws(&["envelope", "debezium"]) {
                s.output = SubscribeOutput::EnvelopeDebezium(self.envelope_key()?);
            } else {
                return Ok(s);
            }
        }
    }

    /// `WITH SNAPSHOT`, `WITH PROGRESS = true`.
    fn bare_option(&mut self) -> Result<DdlOption, SqlError> {
        let pos = self.pos();
        let name = self.col_label()?.name;
        let value = if self.eat_op("=") { self.option_value()? } else { OptionValue::None };
        Ok(DdlOption { name, value, pos })
    }

    fn envelope_key(&mut self) -> Result<Vec<Ident>, SqlError> {
        self.parens(|p| {
            p.expect_kw("key")?;
            p.col_id_list()
        })
    }
}

/// Whether a last word belongs to the option's name (`IGNORE KEYS`) rather than being its value.
fn name_continues(name: &str, word: &str) -> bool {
    matches!(
        (name, word),
        ("ignore", "keys")
            | ("start", "offset" | "timestamp")
            | ("text" | "exclude", "columns")
            | ("force", "quote" | "null")
            | ("not", "null")
            | ("tick" | "timestamp" | "topic metadata refresh", "interval")
            | ("on", "error")
    )
}
