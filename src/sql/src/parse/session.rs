//! Transactions, settings, prepared statements, cursors, EXPLAIN, SHOW.

use super::cursor::Parser;
use super::lex::Tok;
use crate::ast::*;
use repr::SqlError;

impl Parser<'_> {
    /// A statement about the session that `w` begins.
    pub fn session_statement(&mut self, w: &str) -> Result<Option<Statement>, SqlError> {
        let s = match w {
            "begin" => {
                self.next();
                let _ = self.eat_kw("work") || self.eat_kw("transaction");
                Statement::Begin("BEGIN", self.transaction_modes()?)
            }
            "start" => {
                self.next();
                self.expect_kw("transaction")?;
                Statement::Begin("START TRANSACTION", self.transaction_modes()?)
            }
            "commit" | "end" => {
                self.next();
                if w == "commit" && self.eat_kw("prepared") {
                    return Ok(Some(Statement::FinishPrepared { word: "COMMIT PREPARED", name: self.string()? }));
                }
                Statement::Commit { chain: self.chain()? }
            }
            "rollback" | "abort" => {
                self.next();
                if w == "rollback" && self.eat_kw("prepared") {
                    return Ok(Some(Statement::FinishPrepared { word: "ROLLBACK PREPARED", name: self.string()? }));
                }
                let _ = self.eat_kw("work") || self.eat_kw("transaction");
                if self.eat_kw("to") {
                    self.eat_kw("savepoint");
                    Statement::RollbackTo(self.col_id()?)
                } else {
                    Statement::Rollback { chain: self.chain()? }
                }
            }
            "savepoint" => {
                self.next();
                Statement::Savepoint(self.col_id()?)
            }
            "release" => {
                self.next();
                self.eat_kw("savepoint");
                Statement::ReleaseSavepoint(self.col_id()?)
            }
            "set" => self.set()?,
            "reset" => {
                self.next();
                if self.eat_kw("all") {
                    Statement::Reset(None)
                } else if self.eat_kws(&["time", "zone"]) {
                    Statement::Reset(Some("timezone".into()))
                } else if self.eat_kws(&["session", "authorization"]) {
                    Statement::Reset(Some("session_authorization".into()))
                } else {
                    Statement::Reset(Some(self.variable_name()?))
                }
            }
            "discard" => {
                self.next();
                Statement::Discard(match self.next() {
                    Tok::Word(w) if w == "all" => DiscardKind::All,
                    Tok::Word(w) if w == "plans" => DiscardKind::Plans,
                    Tok::Word(w) if w == "sequences" => DiscardKind::Sequences,
                    Tok::Word(w) if w == "temp" || w == "temporary" => DiscardKind::Temp,
                    _ => return Err(self.error()),
                })
            }
            "show" => self.show()?,
            "prepare" => {
                self.next();
                if self.is_kw("transaction") && matches!(self.tok_at(1), Tok::String(_)) {
                    self.next();
                    self.string()?;
                    return Ok(Some(Statement::PrepareTransaction));
                }
                let name = self.col_id()?;
                let types = if self.is_punct("(") { self.parens(|p| p.comma_list(Self::type_name))? } else { Vec::new() };
                self.expect_kw("as")?;
                let start = self.span().start;
                let statement = Box::new(self.deeper(Self::statement)?);
                Statement::Prepare(Box::new(Prepare { name, types, statement, span: self.span_from(start) }))
            }
            "execute" => {
                self.next();
                let name = self.col_id()?;
                let args = if self.is_punct("(") { self.parens(Self::expr_list)? } else { Vec::new() };
                Statement::Execute { name, args }
            }
            "deallocate" => {
                self.next();
                self.eat_kw("prepare");
                Statement::Deallocate(if self.eat_kw("all") { None } else { Some(self.col_id()?) })
            }
            "declare" => self.declare()?,
            "fetch" | "move" => self.fetch(w == "move")?,
            "close" => {
                self.next();
                Statement::Close(if self.eat_kw("all") { None } else { Some(self.col_id()?) })
            }
            "explain" => self.explain()?,
            "do" => {
                self.next();
                let (mut code, mut language) = (None, None);
                loop {
                    match self.tok().clone() {
                        Tok::String(s) if code.is_none() => {
                            self.next();
                            code = Some(s);
                        }
                        Tok::Word(w) if w == "language" && language.is_none() => {
                            self.next();
                            language = Some(self.col_id()?);
                        }
                        _ => break,
                    }
                }
                Statement::Do { code: code.ok_or_else(|| self.error())?, language }
            }
            _ => return Ok(None),
        };
        Ok(Some(s))
    }

    fn chain(&mut self) -> Result<bool, SqlError> {
        let _ = self.eat_kw("work") || self.eat_kw("transaction");
        if self.eat_kws(&["and", "no", "chain"]) {
            return Ok(false);
        }
        Ok(self.eat_kws(&["and", "chain"]))
    }

    fn transaction_modes(&mut self) -> Result<Vec<TransactionMode>, SqlError> {
        let mut modes = Vec::new();
        loop {
            let mode = if self.eat_kws(&["isolation", "level"]) {
                let level = ["strict serializable", "serializable", "repeatable read", "read committed", "read uncommitted"]
                    .into_iter()
                    .find(|l| self.eat_kws(&l.split(' ').collect::<Vec<_>>()));
                TransactionMode::Isolation(level.ok_or_else(|| self.error())?.to_owned())
            } else if self.eat_kws(&["read", "only"]) {
                TransactionMode::ReadOnly
            } else if self.eat_kws(&["read", "write"]) {
                TransactionMode::ReadWrite
            } else if self.eat_kw("deferrable") {
                TransactionMode::Deferrable(true)
            } else if self.eat_kws(&["not", "deferrable"]) {
                TransactionMode::Deferrable(false)
            } else {
                return Ok(modes);
            };
            modes.push(mode);
            self.eat_punct(",");
        }
    }

    fn set(&mut self) -> Result<Statement, SqlError> {
        self.next();
        let local = self.eat_kw("local");
        if self.eat_kws(&["session", "characteristics", "as", "transaction"]) {
            return Ok(Statement::SetTransaction { session: true, modes: self.transaction_modes()? });
        }
        if self.is_kw("session") && !self.is_kw_at(1, "authorization") {
            self.next();
        }
        if self.is_kw("transaction") && !matches!(self.tok_at(1), Tok::Op(_)) && !self.is_kw_at(1, "to") {
            self.next();
            if self.eat_kw("snapshot") {
                return Err(SqlError::unsupported("SET TRANSACTION SNAPSHOT", "read at a time with AS OF").at(self.pos()));
            }
            return Ok(Statement::SetTransaction { session: false, modes: self.transaction_modes()? });
        }
        let special = |name: &str| Some(name.to_owned());
        let name = if self.eat_kws(&["time", "zone"]) {
            let value = self.time_zone_value()?;
            return Ok(Statement::Set { local, name: "timezone".into(), value });
        } else if self.eat_kw("names") {
            special("client_encoding")
        } else if self.eat_kw("role") {
            special("role")
        } else if self.eat_kws(&["session", "authorization"]) {
            special("session_authorization")
        } else if self.eat_kw("schema") {
            special("search_path")
        } else {
            None
        };
        if name.is_none() && self.eat_kw("constraints") {
            let names = if self.eat_kw("all") { None } else { Some(self.comma_list(Self::object_name)?) };
            let deferred = self.eat_kw("deferred");
            if !deferred {
                self.expect_kw("immediate")?;
            }
            return Ok(Statement::SetConstraints { names, deferred });
        }
        let name = match name {
            Some(n) => n,
            None => {
                let n = self.variable_name()?;
                if !self.eat_op("=") {
                    self.expect_kw("to")?;
                }
                n
            }
        };
        if self.eat_kw("default") {
            return Ok(Statement::Set { local, name, value: SetValue::Default });
        }
        let value = SetValue::List(self.comma_list(Self::set_value)?);
        Ok(Statement::Set { local, name, value })
    }

    fn time_zone_value(&mut self) -> Result<SetValue, SqlError> {
        if self.eat_kw("default") || self.eat_kw("local") {
            return Ok(SetValue::Default);
        }
        if self.is_kw("interval") {
            // INTERVAL '-08:00' HOUR TO MINUTE: the text names the offset.
            self.next();
            let text = self.string()?;
            self.interval_fields()?;
            let posix = match text.strip_prefix('-') {
                Some(t) => format!("<{text}>+{t}"),
                None => {
                    let offset = text.strip_prefix('+').unwrap_or(&text);
                    format!("<+{offset}>-{offset}")
                }
            };
            return Ok(SetValue::List(vec![posix]));
        }
        Ok(SetValue::List(vec![self.set_value()?]))
    }

    fn set_value(&mut self) -> Result<String, SqlError> {
        let negative = self.eat_op("-");
        if !negative {
            self.eat_op("+");
        }
        let pos_error = self.error();
        match self.next() {
            Tok::Number(n) => Ok(if negative { format!("-{n}") } else { n }),
            Tok::String(s) | Tok::Quoted(s) | Tok::Word(s) if !negative => Ok(s),
            _ => Err(pos_error),
        }
    }

    pub fn variable_name(&mut self) -> Result<String, SqlError> {
        let mut name = self.col_id()?.name;
        while self.eat_punct(".") {
            name = format!("{name}.{}", self.col_label()?.name);
        }
        Ok(name)
    }

    fn show(&mut self) -> Result<Statement, SqlError> {
        self.next();
        if self.eat_kws(&["time", "zone"]) {
            return Ok(Statement::ShowVariable("timezone".into()));
        }
        if self.eat_kws(&["transaction", "isolation", "level"]) {
            return Ok(Statement::ShowVariable("transaction_isolation".into()));
        }
        if self.eat_kws(&["session", "authorization"]) {
            return Ok(Statement::ShowVariable("session_authorization".into()));
        }
        if self.eat_kw("all") {
            return Ok(Statement::ShowVariable("all".into()));
        }
        if self.eat_kw("create") {
            let kind = self.object_kind()?;
            return Ok(Statement::ShowCreate { kind, name: self.object_name()? });
        }
        let mark = self.mark();
        self.eat_kw("full");
        let kind = match self.next() {
            Tok::Word(w) => match w.as_str() {
                "sources" => Some(ShowKind::Sources),
                "tables" => Some(ShowKind::Tables),
                "views" => Some(ShowKind::Views),
                "materialized" if self.eat_kw("views") => Some(ShowKind::MaterializedViews),
                "indexes" | "indices" => Some(ShowKind::Indexes),
                "sinks" => Some(ShowKind::Sinks),
                "schemas" => Some(ShowKind::Schemas),
                "databases" => Some(ShowKind::Databases),
                "connections" => Some(ShowKind::Connections),
                "secrets" => Some(ShowKind::Secrets),
                "columns" => Some(ShowKind::Columns),
                "objects" => Some(ShowKind::Objects),
                "subscriptions" => Some(ShowKind::Subscriptions),
                "types" => Some(ShowKind::Types),
                _ => None,
            },
            _ => None,
        };
        let Some(kind) = kind else {
            self.reset(mark);
            return Ok(Statement::ShowVariable(self.variable_name()?));
        };
        let mut show = ShowObjects { kind, from: None, like: None, filter: None };
        if self.eat_kw("from") || self.eat_kw("in") || self.eat_kw("on") {
            show.from = Some(self.object_name()?);
        }
        if self.eat_kw("like") {
            show.like = Some(self.string()?);
        } else if self.is_kw("where") {
            show.filter = Some(self.pos());
            self.next();
            self.expr()?;
        }
        Ok(Statement::ShowObjects(Box::new(show)))
    }

    fn declare(&mut self) -> Result<Statement, SqlError> {
        self.next();
        let name = self.col_id()?;
        let (mut binary, mut scroll) = (false, None);
        loop {
            if self.eat_kw("binary") {
                binary = true;
            } else if self.eat_kws(&["no", "scroll"]) {
                scroll = Some(false);
            } else if self.eat_kw("scroll") {
                scroll = Some(true);
            } else if !self.eat_kw("insensitive") && !self.eat_kw("asensitive") {
                break;
            }
        }
        self.expect_kw("cursor")?;
        let hold = if self.eat_kws(&["with", "hold"]) {
            true
        } else {
            self.eat_kws(&["without", "hold"]);
            false
        };
        self.expect_kw("for")?;
        let start = self.span().start;
        let statement = if self.is_kw("subscribe") { Statement::Subscribe(Box::new(self.subscribe()?)) } else { Statement::Select(Box::new(self.query()?)) };
        Ok(Statement::Declare(Box::new(Declare { name, hold, scroll, binary, statement: Box::new(statement), span: self.span_from(start) })))
    }

    pub(super) fn fetch(&mut self, is_move: bool) -> Result<Statement, SqlError> {
        self.next();
        use FetchDirection::*;
        let direction = match self.tok().clone() {
            Tok::Number(_) | Tok::Op(_) => by_count(self.signed_integer()?),
            Tok::Word(w) => match w.as_str() {
                "next" => self.took(Forward(1)),
                "prior" => self.took(Backward(1)),
                "first" => self.took(Absolute(1)),
                "last" => self.took(Absolute(-1)),
                "all" => self.took(ForwardAll),
                "absolute" => {
                    self.next();
                    Absolute(self.signed_integer()?)
                }
                "relative" => {
                    self.next();
                    Relative(self.signed_integer()?)
                }
                "forward" | "backward" => {
                    self.next();
                    let forward = w == "forward";
                    if self.eat_kw("all") {
                        if forward {
                            ForwardAll
                        } else {
                            BackwardAll
                        }
                    } else if matches!(self.tok(), Tok::Number(_) | Tok::Op(_)) {
                        match (self.signed_integer()?, forward) {
                            (n, true) => by_count(n),
                            (n, false) if n < 0 => Forward(n.unsigned_abs()),
                            (n, false) => Backward(n.unsigned_abs()),
                        }
                    } else if forward {
                        Forward(1)
                    } else {
                        Backward(1)
                    }
                }
                _ => Forward(1),
            },
            _ => Forward(1),
        };
        let _ = self.eat_kw("from") || self.eat_kw("in");
        let name = self.col_id()?;
        let options = if self.is_kw("with") {
            self.next();
            self.option_list()?
        } else {
            Vec::new()
        };
        Ok(Statement::Fetch(Box::new(Fetch { name, direction, is_move, options })))
    }

    fn took(&mut self, d: FetchDirection) -> FetchDirection {
        self.next();
        d
    }

    fn explain(&mut self) -> Result<Statement, SqlError> {
        self.next();
        let mut analyze = self.eat_kw("analyze") || self.eat_kw("analyse");
        let mut options = Vec::new();
        if self.eat_kw("verbose") {
            options.push(DdlOption { name: "verbose".into(), value: OptionValue::None, pos: self.pos() });
        }
        let stage = match self.tok() {
            Tok::Word(w) if w == "raw" => Some(ExplainStage::Raw),
            Tok::Word(w) if w == "decorrelated" => Some(ExplainStage::Decorrelated),
            Tok::Word(w) if w == "optimized" => Some(ExplainStage::Optimized),
            Tok::Word(w) if w == "physical" => Some(ExplainStage::Physical),
            Tok::Word(w) if w == "timestamp" => Some(ExplainStage::Timestamp),
            _ => None,
        };
        let mut named = stage.is_some();
        if named {
            self.next();
        }
        if self.is_kw("plan") {
            named = true;
            self.next();
        }
        if self.is_punct("(") && !self.at_query(0) {
            for o in self.option_list()? {
                if o.name == "analyze" {
                    analyze = !matches!(&o.value, OptionValue::Bool(false)) && !matches!(&o.value, OptionValue::Word(w) if w == "off");
                }
                options.push(o);
            }
        }
        if self.is_kw("with") && self.is_punct_at(1, "(") {
            self.next();
            options.extend(self.option_list()?);
        }
        if self.eat_kw("as") {
            let pos = self.pos();
            let Tok::Word(format) = self.next() else { return Err(self.error()) };
            options.push(DdlOption { name: "format".into(), value: OptionValue::Word(format), pos });
        }
        if named {
            self.eat_kw("for");
        }
        let start = self.span().start;
        let target = if named && self.is_kw("view") {
            self.next();
            ExplainTarget::View(self.object_name()?)
        } else if named && self.is_kws(&["materialized", "view"]) {
            self.next();
            self.next();
            ExplainTarget::MaterializedView(self.object_name()?)
        } else if named && self.is_kw("index") {
            self.next();
            ExplainTarget::Index(self.object_name()?)
        } else {
            ExplainTarget::Statement(Box::new(self.deeper(Self::statement)?))
        };
        let stage = stage.unwrap_or(if named { ExplainStage::Optimized } else { ExplainStage::Default });
        Ok(Statement::Explain(Box::new(Explain { stage, analyze, options, target, span: self.span_from(start) })))
    }
}

/// FETCH n, where n may be negative.
fn by_count(n: i64) -> FetchDirection {
    if n < 0 {
        FetchDirection::Backward(n.unsigned_abs())
    } else {
        FetchDirection::Forward(n.unsigned_abs())
    }
}
