//! Which statement begins here; INSERT, UPDATE, DELETE, COPY.

use super::cursor::Parser;
use super::lex::Tok;
use crate::ast::*;
use repr::SqlError;

impl Parser<'_> {
    pub fn statement(&mut self) -> Result<Statement, SqlError> {
        let Tok::Word(w) = self.tok().clone() else {
            if self.is_punct("(") && self.at_query(0) {
                return Ok(Statement::Select(Box::new(self.query()?)));
            }
            return Err(self.error());
        };
        match w.as_str() {
            "select" | "values" | "table" => Ok(Statement::Select(Box::new(self.query()?))),
            "with" => self.with_statement(),
            "insert" => Ok(Statement::Insert(Box::new(self.insert(None)?))),
            "update" => Ok(Statement::Update(Box::new(self.update(None)?))),
            "delete" => Ok(Statement::Delete(Box::new(self.delete(None)?))),
            "merge" => Ok(Statement::Merge(Box::new(self.merge(None)?))),
            "checkpoint" => {
                self.next();
                Ok(Statement::Checkpoint)
            }
            "reindex" => self.reindex(),
            "lock" => {
                self.next();
                self.lock()
            }
            "truncate" => {
                self.next();
                self.eat_kw("table");
                let names = self.comma_list(Self::inherited_name)?;
                let restart_identity = self.eat_kws(&["restart", "identity"]);
                if !restart_identity {
                    self.eat_kws(&["continue", "identity"]);
                }
                let cascade = self.eat_kw("cascade");
                if !cascade {
                    self.eat_kw("restrict");
                }
                Ok(Statement::Truncate { names, restart_identity, cascade })
            }
            "refresh" => {
                self.next();
                self.expect_kws(&["materialized", "view"])?;
                let concurrently = self.eat_kw("concurrently");
                let name = self.object_name()?;
                if self.is_kws(&["with", "no", "data"]) {
                    if concurrently {
                        let m = "CONCURRENTLY and WITH NO DATA options cannot be used together";
                        return Err(SqlError::new(repr::error::state::SYNTAX_ERROR, m));
                    }
                    return Err(SqlError::unsupported("REFRESH … WITH NO DATA", "a materialized view is always kept up to date").at(self.pos()));
                }
                self.eat_kws(&["with", "data"]);
                Ok(Statement::Refresh(name))
            }
            "subscribe" | "tail" => Ok(Statement::Subscribe(Box::new(self.subscribe()?))),
            "copy" => self.copy(),
            "create" => self.create(),
            "drop" => self.drop_statement(),
            "alter" => self.alter(),
            "comment" => self.comment(),
            "validate" => {
                self.next();
                self.expect_kw("connection")?;
                Ok(Statement::ValidateConnection(self.object_name()?))
            }
            "replay" => {
                self.next();
                self.expect_kws(&["errors", "for"])?;
                Ok(Statement::ReplayErrors(self.object_name()?))
            }
            "acknowledge" => {
                self.next();
                let name = self.object_name()?;
                self.expect_kw("at")?;
                Ok(Statement::Acknowledge { name, at: self.expr()? })
            }
            _ => match self.session_statement(&w)? {
                Some(s) => Ok(s),
                None => self.unsupported(&w),
            },
        }
    }

    /// `LOCK` was read: `[TABLE] name, … [IN mode MODE] [NOWAIT]`.
    fn lock(&mut self) -> Result<Statement, SqlError> {
        const MODES: [&[&str]; 8] = [
            &["access", "share"],
            &["row", "share"],
            &["row", "exclusive"],
            &["share", "update", "exclusive"],
            &["share", "row", "exclusive"],
            &["share"],
            &["exclusive"],
            &["access", "exclusive"],
        ];
        self.eat_kw("table");
        let names = self.comma_list(Self::inherited_name)?;
        if self.eat_kw("in") {
            if !MODES.iter().any(|mode| self.eat_kws(mode)) {
                return Err(self.error());
            }
            self.expect_kw("mode")?;
        }
        self.eat_kw("nowait");
        Ok(Statement::Lock(names))
    }

    fn reindex(&mut self) -> Result<Statement, SqlError> {
        self.next();
        let mut concurrently = false;
        if self.is_punct("(") {
            self.parens(|p| {
                p.comma_list(|p| {
                    let option = p.col_label()?;
                    let value = if p.is_punct(",") || p.is_punct(")") { OptionValue::None } else { p.option_value()? };
                    let off = match &value {
                        OptionValue::Bool(on) => !on,
                        OptionValue::Word(w) | OptionValue::String(w) | OptionValue::Number(w) => matches!(w.as_str(), "off" | "false" | "0"),
                        _ => false,
                    };
                    match option.name.as_str() {
                        "verbose" | "tablespace" => {}
                        "concurrently" => concurrently = !off,
                        other => {
                            let m = format!("unrecognized REINDEX option \"{other}\"");
                            return Err(SqlError::new(repr::error::state::SYNTAX_ERROR, m).at(option.pos));
                        }
                    }
                    Ok(())
                })
            })?;
        }
        let kind = match self.next() {
            Tok::Word(w) if w == "index" => Some(ObjectKind::Index),
            Tok::Word(w) if w == "table" => Some(ObjectKind::Table),
            Tok::Word(w) if w == "schema" => Some(ObjectKind::Schema),
            Tok::Word(w) if w == "database" => Some(ObjectKind::Database),
            Tok::Word(w) if w == "system" => None,
            _ => return Err(self.error()),
        };
        concurrently |= self.eat_kw("concurrently");
        let name = self.object_name()?;
        Ok(Statement::Reindex(Box::new(Reindex { kind, name, concurrently })))
    }

    /// A statement that Postgres has and we do not; anything else is a syntax error.
    fn unsupported(&mut self, w: &str) -> Result<Statement, SqlError> {
        const KNOWN: &[&str] =
            &["analyze", "analyse", "vacuum", "grant", "revoke", "listen", "notify", "unlisten", "cluster", "call", "load", "security", "import", "reassign"];
        if !KNOWN.contains(&w) {
            return Err(self.error());
        }
        while !self.at_end() && !self.is_punct(";") {
            self.next();
        }
        Ok(Statement::Unsupported(w.to_uppercase()))
    }

    fn with_statement(&mut self) -> Result<Statement, SqlError> {
        let mark = self.mark();
        let with = self.with()?;
        match self.tok() {
            Tok::Word(w) if w == "insert" => Ok(Statement::Insert(Box::new(self.insert(Some(with))?))),
            Tok::Word(w) if w == "update" => Ok(Statement::Update(Box::new(self.update(Some(with))?))),
            Tok::Word(w) if w == "delete" => Ok(Statement::Delete(Box::new(self.delete(Some(with))?))),
            Tok::Word(w) if w == "merge" => Ok(Statement::Merge(Box::new(self.merge(Some(with))?))),
            _ => {
                self.reset(mark);
                Ok(Statement::Select(Box::new(self.query()?)))
            }
        }
    }

    fn insert(&mut self, with: Option<With>) -> Result<Insert, SqlError> {
        self.expect_kws(&["insert", "into"])?;
        let table = self.object_name()?;
        let alias = if self.eat_kw("as") { Some(self.col_id()?) } else { None };
        let mut columns = Vec::new();
        if self.is_punct("(") && !self.at_query(0) {
            columns = self.parens(|p| p.comma_list(Self::assign_target))?;
        }
        let overriding = self.overriding_opt()?;
        let source = if self.eat_kws(&["default", "values"]) { InsertSource::DefaultValues } else { InsertSource::Query(Box::new(self.query()?)) };
        let on_conflict = self.on_conflict_opt()?;
        let returning = self.returning_opt()?;
        Ok(Insert { with, table, alias, columns, overriding, source, on_conflict, returning })
    }

    /// OVERRIDING SYSTEM VALUE (true) or USER VALUE.
    fn overriding_opt(&mut self) -> Result<Option<bool>, SqlError> {
        if !self.eat_kw("overriding") {
            return Ok(None);
        }
        let system = self.eat_kw("system");
        if !system {
            self.expect_kw("user")?;
        }
        self.expect_kw("value")?;
        Ok(Some(system))
    }

    fn on_conflict_opt(&mut self) -> Result<Option<OnConflict>, SqlError> {
        let pos = self.pos();
        if !self.eat_kws(&["on", "conflict"]) {
            return Ok(None);
        }
        let (mut target, mut constraint, mut key_filter) = (Vec::new(), None, None);
        if self.is_punct("(") {
            target = self.parens(|p| {
                p.comma_list(|p| {
                    let e = p.expr()?;
                    // An operator class tells keys apart as the key's own does.
                    if matches!(p.tok(), Tok::Word(_)) {
                        p.object_name()?;
                    }
                    Ok(e)
                })
            })?;
            if self.eat_kw("where") {
                key_filter = Some(self.expr()?);
            }
        } else if self.eat_kws(&["on", "constraint"]) {
            constraint = Some(self.col_id()?);
        }
        self.expect_kw("do")?;
        if self.eat_kw("nothing") {
            return Ok(Some(OnConflict { target, filter: key_filter, constraint, action: ConflictAction::Nothing, pos }));
        }
        self.expect_kws(&["update", "set"])?;
        let set = self.comma_list(Self::assignment)?;
        let filter = if self.eat_kw("where") { Some(self.expr()?) } else { None };
        Ok(Some(OnConflict { target, filter: key_filter, constraint, action: ConflictAction::Update { set, filter }, pos }))
    }

    fn returning_opt(&mut self) -> Result<Vec<Target>, SqlError> {
        if self.eat_kw("returning") {
            return self.comma_list(Self::target);
        }
        Ok(Vec::new())
    }

    pub(super) fn assign_target(&mut self) -> Result<AssignTarget, SqlError> {
        Ok(AssignTarget { column: self.col_id()?, path: self.indirection()? })
    }

    fn assignment(&mut self) -> Result<Assignment, SqlError> {
        let multi = self.is_punct("(");
        let columns = if multi { self.parens(|p| p.comma_list(Self::assign_target))? } else { vec![self.assign_target()?] };
        if !self.eat_op("=") {
            return Err(self.error());
        }
        let value = self.value_field()?;
        Ok(Assignment { columns, multi, value })
    }

    /// `[ONLY] name [*]`: nothing inherits, so both mean the same.
    pub(super) fn inherited_name(&mut self) -> Result<ObjectName, SqlError> {
        self.eat_kw("only");
        let name = self.object_name()?;
        self.eat_op("*");
        Ok(name)
    }

    fn target_table(&mut self) -> Result<(ObjectName, Option<Ident>), SqlError> {
        let table = self.inherited_name()?;
        let alias = if self.eat_kw("as") {
            Some(self.col_id()?)
        } else if self.is_col_id() && !self.is_kw("set") {
            Some(self.col_id()?)
        } else {
            None
        };
        Ok((table, alias))
    }

    fn where_opt(&mut self) -> Result<Option<Expr>, SqlError> {
        if !self.eat_kw("where") {
            return Ok(None);
        }
        if self.is_kws(&["current", "of"]) {
            return Err(SqlError::unsupported("WHERE CURRENT OF", "name the row by its key").at(self.pos()));
        }
        Ok(Some(self.expr()?))
    }

    fn update(&mut self, with: Option<With>) -> Result<Update, SqlError> {
        self.expect_kw("update")?;
        let (table, alias) = self.target_table()?;
        self.expect_kw("set")?;
        let set = self.comma_list(Self::assignment)?;
        let from = if self.eat_kw("from") { self.comma_list(Self::table_ref)? } else { Vec::new() };
        let filter = self.where_opt()?;
        let returning = self.returning_opt()?;
        Ok(Update { with, table, alias, set, from, filter, returning })
    }

    fn delete(&mut self, with: Option<With>) -> Result<Delete, SqlError> {
        self.expect_kws(&["delete", "from"])?;
        let (table, alias) = self.target_table()?;
        let using = if self.eat_kw("using") { self.comma_list(Self::table_ref)? } else { Vec::new() };
        let filter = self.where_opt()?;
        let returning = self.returning_opt()?;
        Ok(Delete { with, table, alias, using, filter, returning })
    }

    fn merge(&mut self, with: Option<With>) -> Result<Merge, SqlError> {
        let pos = self.pos();
        self.expect_kws(&["merge", "into"])?;
        let table = self.inherited_name()?;
        let alias = match self.eat_kw("as") || self.is_col_id() && !self.is_kw("using") {
            true => Some(self.col_id()?),
            false => None,
        };
        self.expect_kw("using")?;
        let source = self.table_ref()?;
        self.expect_kw("on")?;
        let on = self.expr()?;
        let mut when = Vec::new();
        while self.is_kw("when") {
            when.push(self.merge_when()?);
        }
        if when.is_empty() {
            return Err(self.error());
        }
        Ok(Merge { with, table, alias, source, on, when, pos })
    }

    fn merge_when(&mut self) -> Result<MergeWhen, SqlError> {
        let pos = self.pos();
        self.expect_kw("when")?;
        let matched = !self.eat_kw("not");
        self.expect_kw("matched")?;
        let condition = if self.eat_kw("and") { Some(self.expr()?) } else { None };
        self.expect_kw("then")?;
        let action = if self.eat_kws(&["do", "nothing"]) {
            MergeAction::Nothing
        } else if matched && self.eat_kw("delete") {
            MergeAction::Delete
        } else if matched {
            self.expect_kws(&["update", "set"])?;
            MergeAction::Update(self.comma_list(Self::assignment)?)
        } else {
            self.merge_insert()?
        };
        Ok(MergeWhen { matched, condition, action, pos })
    }

    fn merge_insert(&mut self) -> Result<MergeAction, SqlError> {
        self.expect_kw("insert")?;
        let columns = if self.is_punct("(") { self.parens(|p| p.comma_list(Self::assign_target))? } else { Vec::new() };
        let overriding = self.overriding_opt()?;
        if columns.is_empty() && overriding.is_none() && self.eat_kws(&["default", "values"]) {
            return Ok(MergeAction::Insert { columns, overriding, values: None });
        }
        self.expect_kw("values")?;
        let values = self.parens(|p| p.comma_list(Self::value_field))?;
        Ok(MergeAction::Insert { columns, overriding, values: Some(values) })
    }

    fn copy(&mut self) -> Result<Statement, SqlError> {
        let pos = self.pos();
        self.expect_kw("copy")?;
        self.eat_kw("binary");
        let from = if self.is_punct("(") {
            self.parens(|p| {
                let pos = p.pos();
                if p.is_kw("subscribe") {
                    return Ok(CopyFrom::Subscribe(Box::new(p.subscribe()?)));
                }
                if p.is_kw("merge") {
                    return Err(SqlError::new(repr::error::state::FEATURE_NOT_SUPPORTED, "MERGE not supported in COPY"));
                }
                if p.is_any_kw(&["insert", "update", "delete", "with"]) {
                    return Ok(match p.statement()? {
                        Statement::Select(q) => CopyFrom::Query(q),
                        s => CopyFrom::Modify(Box::new(s), pos),
                    });
                }
                Ok(CopyFrom::Query(Box::new(p.query()?)))
            })?
        } else {
            let name = self.object_name()?;
            let columns = if self.is_punct("(") { self.col_id_list()? } else { Vec::new() };
            CopyFrom::Table(name, columns)
        };
        let to = if self.eat_kw("to") {
            true
        } else if matches!(from, CopyFrom::Table(..)) {
            self.expect_kw("from")?;
            false
        } else {
            return Err(self.error());
        };
        let target = if self.eat_kw("stdin") {
            CopyTarget::Stdin
        } else if self.eat_kw("stdout") {
            CopyTarget::Stdout
        } else if self.eat_kw("program") {
            self.string()?;
            CopyTarget::Program
        } else {
            CopyTarget::File(self.string()?)
        };
        let mut options = Vec::new();
        self.eat_kw("with");
        if self.is_punct("(") {
            options = self.option_list()?;
        } else {
            self.legacy_copy_options(&mut options)?;
        }
        let filter = self.where_opt()?;
        Ok(Statement::Copy(Box::new(Copy { from, to, target, options, filter, pos })))
    }

    /// CSV HEADER DELIMITER ',' NULL '' and their like, without parentheses.
    fn legacy_copy_options(&mut self, options: &mut Vec<DdlOption>) -> Result<(), SqlError> {
        loop {
            let pos = self.pos();
            let Tok::Word(w) = self.tok().clone() else { return Ok(()) };
            let opt = |name: &str, value: OptionValue| DdlOption { name: name.into(), value, pos };
            match w.as_str() {
                "csv" | "binary" => {
                    self.next();
                    options.push(opt("format", OptionValue::Word(w)));
                }
                "header" => {
                    self.next();
                    options.push(opt("header", OptionValue::Bool(true)));
                }
                "freeze" => {
                    self.next();
                }
                "delimiter" | "delimiters" | "null" | "quote" | "escape" | "encoding" => {
                    self.next();
                    self.eat_kw("as");
                    let name = if w == "delimiters" { "delimiter" } else { &w };
                    options.push(opt(name, OptionValue::String(self.string()?)));
                }
                "force" => {
                    self.next();
                    let name = if self.eat_kws(&["not", "null"]) {
                        "force_not_null"
                    } else if self.eat_kw("null") {
                        "force_null"
                    } else {
                        self.expect_kw("quote")?;
                        "force_quote"
                    };
                    let list = if self.eat_op("*") {
                        OptionValue::Word("*".into())
                    } else {
                        OptionValue::List(self.comma_list(|p| Ok(OptionValue::Word(p.col_id()?.name)))?)
                    };
                    options.push(opt(name, list));
                }
                _ => return Ok(()),
            }
        }
    }
}
