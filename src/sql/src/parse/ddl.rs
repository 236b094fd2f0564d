//! CREATE, DROP, COMMENT of what Postgres has too. Not here: ALTER (see `alter`).

use super::cursor::Parser;
use super::lex::Tok;
use crate::ast::*;
use repr::SqlError;

impl Parser<'_> {
    pub fn create(&mut self) -> Result<Statement, SqlError> {
        self.expect_kw("create")?;
        let or_replace = self.eat_kws(&["or", "replace"]);
        let temporary = self.eat_kw("temporary") || self.eat_kw("temp");
        if !temporary {
            self.eat_kw("unlogged");
        }
        let Tok::Word(w) = self.tok().clone() else { return Err(self.error()) };
        match w.as_str() {
            "view" | "materialized" => self.create_view(or_replace, temporary),
            "connection" => self.create_connection(or_replace),
            _ if or_replace => self.unsupported_object(&w),
            "table" => self.create_table(temporary),
            "sequence" => {
                self.next();
                let if_not_exists = self.if_not_exists()?;
                Ok(Statement::CreateSequence { name: self.object_name()?, if_not_exists, temporary, options: self.sequence_options()? })
            }
            _ if temporary => self.unsupported_object(&w),
            "index" | "unique" | "default" => self.create_index(),
            "schema" => self.create_schema(),
            "database" => {
                self.next();
                let if_not_exists = self.if_not_exists()?;
                Ok(Statement::CreateDatabase { name: self.col_id()?, if_not_exists })
            }
            "extension" => self.create_extension(),
            "type" => self.create_type(),
            "domain" => self.create_domain(),
            "secret" => {
                self.next();
                let if_not_exists = self.if_not_exists()?;
                let name = self.object_name()?;
                self.expect_kw("as")?;
                Ok(Statement::CreateSecret { name, if_not_exists, value: self.expr()? })
            }
            "source" => self.create_source(),
            "sink" => self.create_sink(),
            "subscription" => {
                self.next();
                let if_not_exists = self.if_not_exists()?;
                let name = self.object_name()?;
                self.expect_kw("for")?;
                let relation = self.object_name()?;
                let options = self.with_options()?;
                Ok(Statement::CreateSubscription { name, if_not_exists, relation, options })
            }
            _ => self.unsupported_object(&w),
        }
    }

    /// CREATE of something that Postgres has and we do not.
    fn unsupported_object(&mut self, w: &str) -> Result<Statement, SqlError> {
        const KNOWN: &[&str] = &[
            "function",
            "procedure",
            "trigger",
            "role",
            "user",
            "group",
            "aggregate",
            "operator",
            "cast",
            "rule",
            "policy",
            "publication",
            "server",
            "foreign",
            "language",
            "collation",
            "conversion",
            "event",
            "statistics",
            "tablespace",
            "text",
            "transform",
            "constraint",
            "cluster",
            "access",
            "materialized",
            "trusted",
        ];
        if !KNOWN.contains(&w) {
            return Err(self.error());
        }
        while !self.at_end() && !self.is_punct(";") {
            self.next();
        }
        Ok(Statement::Unsupported(format!("CREATE {}", w.to_uppercase())))
    }

    /// CREATE RECURSIVE VIEW as the CREATE VIEW that it stands for; `None`: another statement begins here.
    pub fn recursive_view(&mut self, sql: &str) -> Result<Option<String>, SqlError> {
        let mut words = 1;
        let replace = self.is_kw("create") && self.is_kw_at(1, "or") && self.is_kw_at(2, "replace");
        words += if replace { 2 } else { 0 };
        let temporary = self.is_kw_at(words, "temporary") || self.is_kw_at(words, "temp");
        words += usize::from(temporary);
        if !(self.is_kw("create") && self.is_kw_at(words, "recursive") && self.is_kw_at(words + 1, "view")) {
            return Ok(None);
        }
        for _ in 0..words + 2 {
            self.next();
        }
        let name = self.object_name()?;
        let columns: Vec<String> = self.col_id_list()?.iter().map(|c| super::quote_ident(&c.name)).collect();
        self.expect_kw("as")?;
        let from = self.span().start;
        self.query()?;
        let (columns, query) = (columns.join(", "), &sql[from..self.last_end()]);
        let full = name.parts.iter().map(|p| super::quote_ident(p)).collect::<Vec<_>>().join(".");
        let own = super::quote_ident(name.last());
        let (replace, temporary) = (if replace { " OR REPLACE" } else { "" }, if temporary { " TEMPORARY" } else { "" });
        let body = format!("WITH RECURSIVE {own} ({columns}) AS ({query}) SELECT {columns} FROM {own}");
        Ok(Some(format!("CREATE{replace}{temporary} VIEW {full} ({columns}) AS {body}")))
    }

    fn create_view(&mut self, or_replace: bool, temporary: bool) -> Result<Statement, SqlError> {
        let materialized = self.eat_kw("materialized");
        self.expect_kw("view")?;
        let if_not_exists = self.if_not_exists()?;
        let name = self.object_name()?;
        name.check_temp(temporary)?;
        let columns = if self.is_punct("(") { self.col_id_list()? } else { Vec::new() };
        let mut options = self.with_options()?;
        self.expect_kw("as")?;
        let query = Box::new(self.query()?);
        // It is filled and kept in any case.
        if materialized && !self.eat_kws(&["with", "no", "data"]) {
            self.eat_kws(&["with", "data"]);
        }
        let check = match () {
            () if materialized => None,
            () if self.eat_kws(&["with", "local", "check", "option"]) => Some("local"),
            () if self.eat_kws(&["with", "cascaded", "check", "option"]) || self.eat_kws(&["with", "check", "option"]) => Some("cascaded"),
            () => None,
        };
        if self.is_kw("with") {
            options.extend(self.with_options()?);
        }
        Ok(Statement::CreateView(Box::new(CreateView { name, materialized, or_replace, if_not_exists, temporary, columns, options, query, check })))
    }

    fn create_table(&mut self, temporary: bool) -> Result<Statement, SqlError> {
        self.expect_kw("table")?;
        let if_not_exists = self.if_not_exists()?;
        let name = self.object_name()?;
        name.check_temp(temporary)?;
        if self.eat_kws(&["from", "source"]) {
            return self.table_from_source(name, if_not_exists, Vec::new());
        }
        if self.is_kw("as") || self.is_kw("with") || self.is_kws(&["on", "commit"]) {
            return self.create_table_as(name.in_temp(temporary), if_not_exists, Vec::new(), temporary);
        }
        if self.is_kw("of") || self.is_kws(&["partition", "of"]) {
            return Err(SqlError::unsupported("CREATE TABLE OF", "list the columns").at(self.pos()));
        }
        // `t (a, b) AS …` has names only.
        if self.is_punct("(") && matches!(self.tok_at(2), Tok::Punct("," | ")")) && !self.is_punct_at(1, ")") {
            let columns = self.col_id_list()?;
            return self.create_table_as(name.in_temp(temporary), if_not_exists, columns, temporary);
        }
        let mut t = CreateTable {
            name,
            if_not_exists,
            temporary,
            columns: Vec::new(),
            constraints: Vec::new(),
            like: Vec::new(),
            options: Vec::new(),
            on_commit: OnCommit::Preserve,
        };
        self.expect_punct("(")?;
        if !self.is_punct(")") {
            self.comma_list(|p| p.table_element(&mut t.columns, &mut t.constraints, &mut t.like))?;
        }
        self.expect_punct(")")?;
        if self.eat_kws(&["from", "source"]) {
            return self.table_from_source(t.name, if_not_exists, t.columns);
        }
        for (words, hint) in [("inherits", "list the columns"), ("partition", "tables are not partitioned"), ("tablespace", "leave it out")] {
            if self.is_kw(words) {
                return Err(SqlError::unsupported(words.to_uppercase(), hint).at(self.pos()));
            }
        }
        t.options = self.with_options()?;
        // As older dumps have it.
        self.eat_kws(&["without", "oids"]);
        t.on_commit = self.on_commit(temporary)?;
        Ok(Statement::CreateTable(Box::new(t)))
    }

    fn create_table_as(&mut self, name: ObjectName, if_not_exists: bool, columns: Vec<Ident>, temporary: bool) -> Result<Statement, SqlError> {
        self.with_options()?;
        let on_commit = self.on_commit(temporary)?;
        self.expect_kw("as")?;
        if self.eat_kw("execute") {
            let query = (self.col_id()?, if self.is_punct("(") { self.parens(Self::expr_list)? } else { Vec::new() });
            let with_data = self.with_data();
            return Ok(Statement::CreateTableExecute(Box::new(CreateTableAs { name, if_not_exists, columns, query, with_data, on_commit })));
        }
        let query = Box::new(self.query()?);
        let with_data = self.with_data();
        Ok(Statement::CreateTableAs(Box::new(CreateTableAs { name, if_not_exists, columns, query, with_data, on_commit })))
    }

    /// WITH [NO] DATA.
    fn with_data(&mut self) -> bool {
        !self.eat_kws(&["with", "no", "data"]) && {
            self.eat_kws(&["with", "data"]);
            true
        }
    }

    /// CREATE SCHEMA, with what is made in it.
    fn create_schema(&mut self) -> Result<Statement, SqlError> {
        self.next();
        let if_not_exists = self.if_not_exists()?;
        let named = if self.is_kw("authorization") { None } else { Some(self.col_id()?) };
        let owner = if self.eat_kw("authorization") { Some(self.col_label()?) } else { None };
        let Some(name) = named.or_else(|| owner.clone()) else { return Err(self.error()) };
        let mut elements = Vec::new();
        while self.is_any_kw(&["create", "grant"]) {
            let pos = self.pos();
            if if_not_exists {
                let m = "CREATE SCHEMA IF NOT EXISTS cannot include schema elements";
                return Err(SqlError::new(repr::error::state::FEATURE_NOT_SUPPORTED, m).at(pos));
            }
            let start = self.span().start;
            let element = self.deeper(Self::statement)?;
            let of_schema = match &element {
                Statement::CreateView(v) => !v.materialized,
                Statement::CreateTable(_) | Statement::CreateIndex(_) | Statement::CreateSequence { .. } | Statement::Unsupported(_) => true,
                _ => false,
            };
            if !of_schema {
                return Err(SqlError::new(repr::error::state::SYNTAX_ERROR, "only tables, views, indexes and sequences are made within CREATE SCHEMA").at(pos));
            }
            elements.push((element, self.span_from(start)));
        }
        Ok(Statement::CreateSchema { name, if_not_exists, owner: owner.map(|o| o.name), elements })
    }

    /// A column, a constraint or LIKE.
    pub fn table_element(&mut self, columns: &mut Vec<ColumnDef>, constraints: &mut Vec<TableConstraint>, like: &mut Vec<Like>) -> Result<(), SqlError> {
        if self.eat_kw("like") {
            let name = self.object_name()?;
            let no = false;
            let mut l = Like { name, after: columns.len(), defaults: no, constraints: no, indexes: no, identity: no, generated: no, comments: no };
            while self.is_any_kw(&["including", "excluding"]) {
                let on = self.eat_kw("including");
                if !on {
                    self.next();
                }
                let word = self.col_label()?;
                match word.name.as_str() {
                    "all" => (l.defaults, l.constraints, l.indexes, l.identity, l.generated, l.comments) = (on, on, on, on, on, on),
                    "defaults" => l.defaults = on,
                    "constraints" => l.constraints = on,
                    "indexes" => l.indexes = on,
                    "identity" => l.identity = on,
                    "generated" => l.generated = on,
                    "comments" => l.comments = on,
                    // What there is nothing of to copy.
                    "storage" | "compression" | "statistics" => {}
                    _ => return Err(self.error()),
                }
            }
            like.push(l);
            return Ok(());
        }
        if self.is_any_kw(&["constraint", "check", "primary", "unique", "foreign", "exclude"]) && !self.is_plain_column() {
            constraints.push(self.table_constraint()?);
            return Ok(());
        }
        columns.push(self.column_def()?);
        Ok(())
    }

    /// `exclude int`: unreserved constraint words may be column names.
    pub(super) fn is_plain_column(&self) -> bool {
        self.is_kw("exclude") && !self.is_kw_at(1, "using") && !self.is_punct_at(1, "(")
    }

    pub fn table_constraint(&mut self) -> Result<TableConstraint, SqlError> {
        let pos = self.pos();
        let name = if self.eat_kw("constraint") { Some(self.col_id()?.name) } else { None };
        let mut kind = if self.eat_kw("check") {
            let start = self.span().end;
            let e = self.parens(Self::expr)?;
            let end = self.last_end() - 1;
            // Nothing inherits.
            self.eat_kws(&["no", "inherit"]);
            ConstraintKind::Check(e, Span { start, end })
        } else if self.eat_kws(&["primary", "key"]) {
            match self.eat_kws(&["using", "index"]) {
                true => ConstraintKind::UsingIndex(true, self.col_id()?),
                false => ConstraintKind::PrimaryKey(self.key_columns()?),
            }
        } else if self.eat_kws(&["unique", "using", "index"]) {
            ConstraintKind::UsingIndex(false, self.col_id()?)
        } else if self.eat_kw("unique") {
            let equal = self.equal_nulls()?;
            ConstraintKind::Unique(self.key_columns()?, equal)
        } else if self.eat_kws(&["foreign", "key"]) {
            let columns = self.col_id_list()?;
            ConstraintKind::ForeignKey(columns, Box::new(self.references()?))
        } else if self.is_kw("exclude") {
            return Err(SqlError::unsupported("EXCLUDE", "keep a view that counts violations").at(pos));
        } else {
            return Err(self.error());
        };
        let (mut when, not_valid) = self.constraint_attributes(true)?;
        if let ConstraintKind::ForeignKey(_, r) = &mut kind {
            when = ConstraintTime { deferrable: when.deferrable || r.when.deferrable, deferred: when.deferred || r.when.deferred };
            r.when = when;
        }
        let refused = |what: &str, how: &str| {
            let m = format!("{what} constraints cannot be marked {how}");
            Err(SqlError::new(repr::error::state::FEATURE_NOT_SUPPORTED, m))
        };
        match &kind {
            ConstraintKind::Check(..) if when.deferrable => return refused("CHECK", "DEFERRABLE"),
            ConstraintKind::PrimaryKey(_) | ConstraintKind::UsingIndex(true, _) if not_valid => return refused("PRIMARY KEY", "NOT VALID"),
            ConstraintKind::Unique(..) | ConstraintKind::UsingIndex(..) if not_valid => return refused("UNIQUE", "NOT VALID"),
            _ => {}
        }
        Ok(TableConstraint { name, kind, when, not_valid, pos })
    }

    /// The columns of a key and, behind INCLUDE, those that its index holds beside them.
    fn key_columns(&mut self) -> Result<KeyColumns, SqlError> {
        let columns = self.col_id_list()?;
        let include = if self.eat_kw("include") { self.col_id_list()? } else { Vec::new() };
        Ok(KeyColumns { columns, include })
    }

    /// NULLS [NOT] DISTINCT: whether NULLs are equal to each other.
    fn equal_nulls(&mut self) -> Result<bool, SqlError> {
        if !self.is_kw("nulls") || self.is_kw_at(1, "first") || self.is_kw_at(1, "last") {
            return Ok(false);
        }
        self.next();
        let not = self.eat_kw("not");
        self.expect_kw("distinct")?;
        Ok(not)
    }

    /// ON COMMIT of a temporary table.
    fn on_commit(&mut self, temporary: bool) -> Result<OnCommit, SqlError> {
        let pos = self.pos();
        if !self.eat_kws(&["on", "commit"]) {
            return Ok(OnCommit::Preserve);
        }
        if !temporary {
            return Err(SqlError::new(repr::error::state::INVALID_TABLE_DEFINITION, "ON COMMIT can only be used on temporary tables").at(pos));
        }
        if self.eat_kw("drop") {
            return Ok(OnCommit::Drop);
        }
        let delete = self.eat_kw("delete");
        if !delete {
            self.expect_kw("preserve")?;
        }
        self.expect_kw("rows")?;
        Ok(if delete { OnCommit::Delete } else { OnCommit::Preserve })
    }

    fn references(&mut self) -> Result<References, SqlError> {
        let pos = self.pos();
        self.expect_kw("references")?;
        let mut r = References {
            table: self.object_name()?,
            columns: if self.is_punct("(") { self.col_id_list()? } else { Vec::new() },
            full: false,
            on_delete: ForeignAction::NoAction,
            on_update: ForeignAction::NoAction,
            set_columns: Vec::new(),
            when: ConstraintTime::default(),
            pos,
        };
        loop {
            if self.is_kws(&["match", "partial"]) {
                return Err(SqlError::new(repr::error::state::FEATURE_NOT_SUPPORTED, "MATCH PARTIAL not yet implemented").at(self.pos()));
            } else if self.eat_kws(&["match", "full"]) {
                r.full = true;
            } else if self.eat_kws(&["match", "simple"]) {
                r.full = false;
            } else if self.eat_kws(&["on", "delete"]) {
                r.on_delete = self.foreign_action()?;
                if matches!(r.on_delete, ForeignAction::SetNull | ForeignAction::SetDefault) && self.is_punct("(") {
                    r.set_columns = self.col_id_list()?;
                }
            } else if self.eat_kws(&["on", "update"]) {
                r.on_update = self.foreign_action()?;
            } else {
                r.when = self.constraint_attributes(false)?.0;
                return Ok(r);
            }
        }
    }

    fn foreign_action(&mut self) -> Result<ForeignAction, SqlError> {
        let all = [
            (&["no", "action"][..], ForeignAction::NoAction),
            (&["restrict"], ForeignAction::Restrict),
            (&["cascade"], ForeignAction::Cascade),
            (&["set", "null"], ForeignAction::SetNull),
            (&["set", "default"], ForeignAction::SetDefault),
        ];
        match all.into_iter().find(|a| self.eat_kws(a.0)) {
            Some((_, action)) => Ok(action),
            None => Err(self.error()),
        }
    }

    /// DEFERRABLE, INITIALLY …; `whole`: behind a table's constraint, where NOT VALID (the second answer) and NO INHERIT may stand too.
    pub(super) fn constraint_attributes(&mut self, whole: bool) -> Result<(ConstraintTime, bool), SqlError> {
        let (mut deferrable, mut deferred, mut not_valid) = (None, None, false);
        loop {
            let pos = self.pos();
            let (given, other): (&mut Option<bool>, bool) = if self.eat_kws(&["not", "deferrable"]) {
                (&mut deferrable, false)
            } else if self.eat_kw("deferrable") {
                (&mut deferrable, true)
            } else if self.eat_kws(&["initially", "deferred"]) {
                (&mut deferred, true)
            } else if self.eat_kws(&["initially", "immediate"]) {
                (&mut deferred, false)
            } else if whole && self.eat_kws(&["not", "valid"]) {
                not_valid = true;
                continue;
            } else if whole && self.eat_kws(&["no", "inherit"]) {
                continue;
            } else {
                return Ok((ConstraintTime { deferrable: deferrable.or(deferred).unwrap_or(false), deferred: deferred.unwrap_or(false) }, not_valid));
            };
            let conflict = given.replace(other).is_some_and(|was| was != other);
            let wrong = |m: &str| Err(SqlError::new(repr::error::state::SYNTAX_ERROR, m).at(pos));
            if (deferrable, deferred) == (Some(false), Some(true)) {
                return wrong("constraint declared INITIALLY DEFERRED must be DEFERRABLE");
            }
            if conflict {
                return wrong("conflicting constraint properties");
            }
        }
    }

    pub fn column_def(&mut self) -> Result<ColumnDef, SqlError> {
        let name = self.col_id()?;
        let ty = self.type_name()?;
        let mut c = ColumnDef {
            name,
            ty,
            not_null: false,
            null: false,
            default: None,
            conflict: None,
            primary_key: false,
            unique: false,
            checks: Vec::new(),
            identity: None,
            generated: None,
            references: Vec::new(),
            primary_name: None,
            second_primary: None,
            unique_name: None,
            primary_when: ConstraintTime::default(),
            unique_when: ConstraintTime::default(),
            equal_nulls: false,
        };
        loop {
            let pos = self.pos();
            let constraint = if self.eat_kw("constraint") { Some(self.col_id()?.name) } else { None };
            let nulls = "conflicting NULL/NOT NULL declarations";
            if self.is_kw("not") && !self.is_kw_at(1, "deferrable") {
                self.next();
                self.expect_kw("null")?;
                c.contradict(c.null.then_some(nulls), pos);
                c.not_null = true;
            } else if self.eat_kw("null") {
                c.contradict((c.not_null || c.identity.is_some()).then_some(nulls), pos);
                c.null = true;
            } else if self.eat_kw("default") {
                c.contradict(c.default.is_some().then_some("multiple default values specified"), pos);
                let start = self.span().start;
                let e = self.b_expr()?;
                c.default = Some((e, self.span_from(start)));
            } else if self.eat_kws(&["primary", "key"]) {
                c.second_primary = c.second_primary.or(c.primary_key.then_some(pos));
                c.primary_key = true;
                c.primary_name = constraint;
                c.primary_when = self.constraint_attributes(false)?.0;
            } else if self.eat_kw("unique") {
                c.unique = true;
                c.unique_name = constraint;
                c.equal_nulls = self.equal_nulls()?;
                c.unique_when = self.constraint_attributes(false)?.0;
            } else if self.eat_kw("check") {
                let start = self.span().end;
                let e = self.parens(Self::expr)?;
                c.checks.push((constraint, e, Span { start, end: self.last_end() - 1 }));
                // Nothing inherits.
                self.eat_kws(&["no", "inherit"]);
            } else if self.eat_kw("generated") {
                let when = self.pos();
                let always = self.eat_kw("always");
                if !always {
                    self.expect_kws(&["by", "default"])?;
                }
                self.expect_kw("as")?;
                if self.eat_kw("identity") {
                    c.contradict(c.identity.is_some().then_some("multiple identity specifications"), pos);
                    c.contradict(c.null.then_some(nulls), pos);
                    c.identity = Some(Identity { always, options: self.identity_options()?, pos });
                } else {
                    let start = self.span().end;
                    let e = self.parens(Self::expr)?;
                    let span = Span { start, end: self.last_end() - 1 };
                    self.expect_kw("stored")?;
                    if !always {
                        let m = "for a generated column, GENERATED ALWAYS must be specified";
                        return Err(SqlError::new(repr::error::state::SYNTAX_ERROR, m).at(when));
                    }
                    c.contradict(c.generated.is_some().then_some("multiple generation clauses specified"), pos);
                    c.generated = Some((e, span));
                }
            } else if self.is_kw("references") {
                let r = self.references()?;
                c.references.push((constraint, r));
            } else if self.eat_kw("collate") {
                self.collation_of(&mut c.ty, pos)?;
            } else if constraint.is_some() {
                return Err(self.error());
            } else if self.is_any_kw(&["deferrable", "initially"]) || self.is_kws(&["not", "deferrable"]) {
                let what = if self.is_kw("initially") {
                    format!("INITIALLY {}", if self.is_kw_at(1, "deferred") { "DEFERRED" } else { "IMMEDIATE" })
                } else {
                    "DEFERRABLE".to_owned()
                };
                return Err(SqlError::new(repr::error::state::SYNTAX_ERROR, format!("misplaced {what} clause")).at(pos));
            } else {
                return Ok(c);
            }
            let both = match (&c.default, &c.identity, &c.generated) {
                (Some(_), Some(_), _) => Some("both default and identity specified"),
                (Some(_), _, Some(_)) => Some("both default and generation expression specified"),
                (_, Some(_), Some(_)) => Some("both identity and generation expression specified"),
                _ => None,
            };
            c.contradict(both, pos);
        }
    }

    /// `( … )` behind AS IDENTITY.
    pub(super) fn identity_options(&mut self) -> Result<SequenceOptions, SqlError> {
        if self.is_punct("(") {
            return self.parens(Self::sequence_options);
        }
        Ok(SequenceOptions::default())
    }

    pub(super) fn sequence_options(&mut self) -> Result<SequenceOptions, SqlError> {
        let mut o = SequenceOptions::default();
        while self.sequence_option(&mut o)? {}
        Ok(o)
    }

    /// Takes one option in; false if there is none. Errors: 42601 for one that is said twice.
    pub(super) fn sequence_option(&mut self, o: &mut SequenceOptions) -> Result<bool, SqlError> {
        let twice = SqlError::new(repr::error::state::SYNTAX_ERROR, "conflicting or redundant options").at(self.pos());
        let said;
        if self.eat_kw("as") {
            said = o.ty.replace(self.type_name()?).is_some();
        } else if self.eat_kw("increment") {
            self.eat_kw("by");
            said = o.increment.replace(self.signed_integer()?).is_some();
        } else if self.eat_kw("start") {
            self.eat_kw("with");
            said = o.start.replace(self.signed_integer()?).is_some();
        } else if self.eat_kw("restart") {
            let with = self.eat_kw("with") || matches!(self.tok(), Tok::Number(_)) || self.is_op("-");
            let n = if with { Some(self.signed_integer()?) } else { None };
            said = o.restart.replace(n).is_some();
        } else if self.eat_kw("minvalue") {
            said = o.min.replace(Some(self.signed_integer()?)).is_some();
        } else if self.eat_kw("maxvalue") {
            said = o.max.replace(Some(self.signed_integer()?)).is_some();
        } else if self.eat_kw("cache") {
            said = o.cache.replace(self.signed_integer()?).is_some();
        } else if self.eat_kw("cycle") {
            said = o.cycle.replace(true).is_some();
        } else if self.eat_kws(&["no", "minvalue"]) {
            said = o.min.replace(None).is_some();
        } else if self.eat_kws(&["no", "maxvalue"]) {
            said = o.max.replace(None).is_some();
        } else if self.eat_kws(&["no", "cycle"]) {
            said = o.cycle.replace(false).is_some();
        } else if self.eat_kws(&["owned", "by"]) {
            let owner = if self.eat_kw("none") { None } else { Some(self.object_name()?) };
            said = o.owned_by.replace(owner).is_some();
        } else if self.eat_kws(&["sequence", "name"]) {
            said = o.name.replace(self.object_name()?).is_some();
        } else {
            return Ok(false);
        }
        if said {
            return Err(twice);
        }
        Ok(true)
    }

    fn create_index(&mut self) -> Result<Statement, SqlError> {
        let default = self.eat_kw("default");
        let unique = !default && self.eat_kw("unique");
        self.expect_kw("index")?;
        let concurrently = self.eat_kw("concurrently");
        let if_not_exists = self.if_not_exists()?;
        // What is not to be there yet has a name.
        let named = !default && if_not_exists || !(self.is_kw("on") || self.is_kw("in"));
        let name = if named { Some(self.col_id()?) } else { None };
        if self.eat_kws(&["in", "cluster"]) {
            return Err(SqlError::unsupported("IN CLUSTER", "leave it out").at(self.pos()));
        }
        self.expect_kw("on")?;
        self.eat_kw("only");
        let on = self.object_name()?;
        let method = if self.eat_kw("using") { Some(self.col_id()?.name) } else { None };
        let (mut keys, mut opclasses) = (Vec::new(), Vec::new());
        let mut n = 0;
        if self.is_punct("(") {
            keys = self.parens(|p| {
                p.comma_list(|p| {
                    n += 1;
                    let start = p.span().start;
                    let expr = p.expr()?;
                    let span = p.span_from(start);
                    if matches!(p.tok(), Tok::Word(_)) && !p.is_any_kw(&["asc", "desc", "nulls"]) {
                        opclasses.push((n - 1, p.object_name()?));
                    }
                    let desc = p.eat_kw("desc");
                    if !desc {
                        p.eat_kw("asc");
                    }
                    let nulls_first = if p.eat_kws(&["nulls", "first"]) {
                        Some(true)
                    } else if p.eat_kws(&["nulls", "last"]) {
                        Some(false)
                    } else {
                        None
                    };
                    Ok((OrderBy { expr, desc, nulls_first, using: None }, span))
                })
            })?;
        } else if !default {
            return Err(self.error());
        }
        let include = if self.eat_kw("include") { self.col_id_list()? } else { Vec::new() };
        let equal_nulls = self.equal_nulls()?;
        let options = self.with_options()?;
        let mut filter = None;
        if self.eat_kw("where") {
            let start = self.span().start;
            let e = self.expr()?;
            filter = Some((e, self.span_from(start)));
        }
        Ok(Statement::CreateIndex(Box::new(CreateIndex {
            name,
            if_not_exists,
            concurrently,
            default,
            unique,
            on,
            method,
            keys,
            opclasses,
            include,
            equal_nulls,
            filter,
            options,
        })))
    }

    /// The kind of object that DROP, ALTER, COMMENT ON and SHOW CREATE name.
    pub fn object_kind(&mut self) -> Result<ObjectKind, SqlError> {
        let kind = match self.tok() {
            Tok::Word(w) => match w.as_str() {
                "table" => ObjectKind::Table,
                "view" => ObjectKind::View,
                "materialized" if self.is_kw_at(1, "view") => {
                    self.next();
                    ObjectKind::MaterializedView
                }
                "index" => ObjectKind::Index,
                "source" => ObjectKind::Source,
                "sink" => ObjectKind::Sink,
                "connection" => ObjectKind::Connection,
                "secret" => ObjectKind::Secret,
                "subscription" => ObjectKind::Subscription,
                "schema" => ObjectKind::Schema,
                "database" => ObjectKind::Database,
                "type" => ObjectKind::Type,
                "domain" => ObjectKind::Domain,
                "role" | "user" | "group" => ObjectKind::Role,
                "column" => ObjectKind::Column,
                "sequence" => ObjectKind::Sequence,
                "function" => ObjectKind::Function,
                "cluster" => ObjectKind::Cluster,
                _ => return Err(self.error()),
            },
            _ => return Err(self.error()),
        };
        self.next();
        Ok(kind)
    }

    /// `(int, IN b text)`: the types by which a function is told from others of its name; `(*)` of an aggregate without any.
    fn argument_types(&mut self) -> Result<Vec<TypeName>, SqlError> {
        self.expect_punct("(")?;
        if self.eat_punct(")") {
            return Ok(Vec::new());
        }
        let types = if self.eat_op("*") { Vec::new() } else { self.comma_list(Self::argument_type)? };
        self.expect_punct(")")?;
        Ok(types)
    }

    fn argument_type(&mut self) -> Result<TypeName, SqlError> {
        let _ = self.eat_kw("in") || self.eat_kw("inout") || self.eat_kw("out") || self.eat_kw("variadic");
        let named = matches!(self.tok_at(1), Tok::Word(w) if w != "precision" && w != "varying" && w != "with" && w != "without")
            || matches!(self.tok_at(1), Tok::Quoted(_));
        if named {
            self.next();
        }
        self.type_name()
    }

    pub fn drop_statement(&mut self) -> Result<Statement, SqlError> {
        self.next();
        if self.is_any_kw(&["extension", "trigger", "operator", "owned", "policy", "publication", "rule", "cast", "server"]) {
            let Tok::Word(w) = self.tok().clone() else { return Err(self.error()) };
            while !self.at_end() && !self.is_punct(";") {
                self.next();
            }
            return Ok(Statement::Unsupported(format!("DROP {}", w.to_uppercase())));
        }
        let routine = match self.tok() {
            Tok::Word(w) => match w.as_str() {
                "function" => Some(ObjectKind::Function),
                "procedure" => Some(ObjectKind::Procedure),
                "aggregate" => Some(ObjectKind::Aggregate),
                "routine" => Some(ObjectKind::Routine),
                _ => None,
            },
            _ => None,
        };
        let kind = match routine {
            Some(kind) => {
                self.next();
                kind
            }
            None => self.object_kind()?,
        };
        let concurrently = kind == ObjectKind::Index && self.eat_kw("concurrently");
        let if_exists = self.if_exists()?;
        let mut arguments = Vec::new();
        let names = self.comma_list(|p| {
            let name = p.object_name()?;
            if routine.is_some() {
                let told = kind == ObjectKind::Aggregate || p.is_punct("(");
                arguments.push(if told { Some(p.argument_types()?) } else { None });
            }
            Ok(name)
        })?;
        if kind == ObjectKind::Database && (self.eat_kw("with") || self.is_punct("(")) {
            self.parens(|p| p.expect_kw("force"))?;
        }
        let cascade = self.eat_kw("cascade");
        if !cascade {
            self.eat_kw("restrict");
        }
        Ok(Statement::Drop(Box::new(Drop { kind, names, arguments, if_exists, cascade, concurrently })))
    }

    pub fn comment(&mut self) -> Result<Statement, SqlError> {
        self.next();
        self.expect_kw("on")?;
        let others = ["aggregate", "cast", "collation", "conversion", "event", "foreign", "function", "large", "operator", "policy", "procedural", "procedure"];
        let more = ["publication", "routine", "rule", "server", "statistics", "subscription", "tablespace", "text", "transform", "trigger", "role"];
        if self.is_any_kw(&others) || self.is_any_kw(&more) {
            let Tok::Word(w) = self.tok() else { return Err(self.error()) };
            let what = format!("COMMENT ON {}", w.to_uppercase());
            return Err(SqlError::unsupported(what, "comment on schemas, relations, their columns, constraints and indexes, and on types").at(self.pos()));
        }
        let constraint = if self.eat_kw("constraint") {
            let name = self.col_id()?;
            self.expect_kw("on")?;
            Some(name)
        } else {
            None
        };
        let kind = match constraint {
            Some(_) if self.eat_kw("domain") => ObjectKind::Domain,
            Some(_) => ObjectKind::Table,
            None if self.eat_kw("extension") => {
                let name = self.col_id()?;
                return Err(SqlError::new(repr::error::state::UNDEFINED_OBJECT, format!("extension \"{}\" does not exist", name.name)));
            }
            None => self.object_kind()?,
        };
        let name = self.object_name()?;
        self.expect_kw("is")?;
        let text = if self.eat_kw("null") { None } else { Some(self.string()?) };
        Ok(Statement::Comment { kind, name, constraint, text })
    }
}
