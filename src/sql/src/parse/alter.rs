//! ALTER of everything but types and domains (see `type_ddl`).

use super::cursor::Parser;
use super::lex::Tok;
use crate::ast::*;
use repr::SqlError;

impl Parser<'_> {
    pub fn alter(&mut self) -> Result<Statement, SqlError> {
        self.next();
        if self.is_kw("system") || self.is_kw("default") || self.is_kw("extension") {
            let Tok::Word(w) = self.next() else { return Err(self.error()) };
            while !self.at_end() && !self.is_punct(";") {
                self.next();
            }
            return Ok(Statement::Unsupported(format!("ALTER {}", w.to_uppercase())));
        }
        let kind = self.object_kind()?;
        if matches!(kind, ObjectKind::Type | ObjectKind::Domain) {
            return self.alter_type(kind);
        }
        let if_exists = self.if_exists()?;
        let name = self.inherited_name()?;
        let stored = kind == ObjectKind::Table && self.is_storage_change();
        let alters = stored || self.is_any_kw(&["add", "drop", "alter", "validate"]);
        if matches!(kind, ObjectKind::Table | ObjectKind::View | ObjectKind::MaterializedView) && alters && !self.is_kws(&["alter", "system"]) {
            let actions = self.comma_list(Self::table_action)?;
            return Ok(Statement::AlterTable(Box::new(AlterTable { of_view: kind == ObjectKind::View, name, if_exists, actions })));
        }
        if kind == ObjectKind::Sequence && !self.is_any_kw(&["rename", "set"]) && !(self.is_kw("owner")) {
            return Ok(Statement::AlterSequence { name, if_exists, options: self.sequence_options()? });
        }
        let action = self.alter_action(kind)?;
        Ok(Statement::Alter(Box::new(Alter { kind, name, if_exists, action })))
    }

    fn is_storage_change(&self) -> bool {
        let word = |w: &str| self.is_kw_at(1, w);
        let set = self.is_kw("set") && (self.is_punct_at(1, "(") || ["without", "logged", "unlogged", "tablespace"].into_iter().any(word));
        set || self.is_kw("reset") && self.is_punct_at(1, "(") || self.is_kw("cluster") && word("on") || self.is_kw("replica") && word("identity")
    }

    fn storage_change(&mut self) -> Result<StorageChange, SqlError> {
        if self.eat_kws(&["cluster", "on"]) {
            return Ok(StorageChange::Index(self.col_id()?));
        }
        if self.eat_kws(&["replica", "identity"]) {
            if self.eat_kws(&["using", "index"]) {
                return Ok(StorageChange::Identity(self.col_id()?));
            }
            return match self.is_any_kw(&["default", "full", "nothing"]) {
                true => {
                    self.next();
                    Ok(StorageChange::Bare)
                }
                false => Err(self.error()),
            };
        }
        if self.eat_kws(&["set", "tablespace"]) {
            return Ok(StorageChange::Tablespace(self.col_id()?));
        }
        let bare = self.eat_kws(&["set", "without", "cluster"]) || self.eat_kws(&["set", "without", "oids"]);
        if bare || self.eat_kws(&["set", "logged"]) || self.eat_kws(&["set", "unlogged"]) {
            return Ok(StorageChange::Bare);
        }
        let reset = self.eat_kw("reset");
        if !reset {
            self.next();
        }
        let options = self.option_list()?;
        Ok(match reset {
            true => StorageChange::Reset(options.into_iter().map(|o| o.name).collect()),
            false => StorageChange::Parameters(options),
        })
    }

    fn table_action(&mut self) -> Result<TableAction, SqlError> {
        if self.is_storage_change() {
            return Ok(TableAction::Storage(self.storage_change()?));
        }
        if self.eat_kw("add") {
            if self.is_any_kw(&["constraint", "check", "primary", "unique", "foreign", "exclude"]) && !self.is_plain_column() {
                return Ok(TableAction::AddConstraint(self.table_constraint()?));
            }
            self.eat_kw("column");
            let if_not_exists = self.if_not_exists()?;
            return Ok(TableAction::AddColumn { column: self.column_def()?, if_not_exists });
        }
        if self.eat_kw("drop") {
            let constraint = self.eat_kw("constraint");
            if !constraint {
                self.eat_kw("column");
            }
            let if_exists = self.if_exists()?;
            let name = self.col_id()?;
            let cascade = self.eat_kw("cascade");
            if !cascade {
                self.eat_kw("restrict");
            }
            return Ok(match constraint {
                true => TableAction::DropConstraint { name, if_exists, cascade },
                false => TableAction::DropColumn { column: name, if_exists, cascade },
            });
        }
        if self.eat_kws(&["validate", "constraint"]) {
            return Ok(TableAction::ValidateConstraint(self.col_id()?));
        }
        self.expect_kw("alter")?;
        if self.eat_kw("constraint") {
            let name = self.col_id()?;
            return Ok(TableAction::AlterConstraint(name, self.constraint_attributes(false)?.0));
        }
        self.eat_kw("column");
        let column = self.col_id()?;
        let pos = self.pos();
        if self.eat_kws(&["set", "default"]) {
            let start = self.span().start;
            let e = self.expr()?;
            return Ok(TableAction::SetDefault(column, e, self.span_from(start)));
        }
        if self.eat_kws(&["drop", "default"]) {
            return Ok(TableAction::DropDefault(column));
        }
        if self.eat_kws(&["set", "not", "null"]) {
            return Ok(TableAction::SetNotNull(column));
        }
        if self.eat_kws(&["drop", "not", "null"]) {
            return Ok(TableAction::DropNotNull(column));
        }
        if self.eat_kws(&["drop", "identity"]) {
            return Ok(TableAction::DropIdentity { column, if_exists: self.if_exists()? });
        }
        if self.eat_kws(&["drop", "expression"]) {
            return Ok(TableAction::DropExpression { column, if_exists: self.if_exists()? });
        }
        if self.eat_kws(&["set", "data", "type"]) || self.eat_kw("type") {
            let ty = self.collated_type()?;
            let using = if self.eat_kw("using") { Some(self.expr()?) } else { None };
            return Ok(TableAction::SetType { column, ty, using });
        }
        if self.eat_kws(&["add", "generated"]) {
            let always = self.eat_kw("always");
            if !always {
                self.expect_kws(&["by", "default"])?;
            }
            self.expect_kws(&["as", "identity"])?;
            return Ok(TableAction::AddIdentity(column, Identity { always, options: self.identity_options()?, pos }));
        }
        let (mut always, mut options, mut any) = (None, SequenceOptions::default(), false);
        loop {
            let of_sequence = ["increment", "start", "minvalue", "maxvalue", "no", "cycle", "cache"].iter().any(|w| self.is_kw_at(1, w));
            if self.eat_kws(&["set", "generated"]) {
                let a = self.eat_kw("always");
                if !a {
                    self.expect_kws(&["by", "default"])?;
                }
                always = Some(a);
            } else if self.is_kw("restart") {
                self.sequence_option(&mut options)?;
            } else if self.is_kw("set") && of_sequence {
                self.next();
                self.sequence_option(&mut options)?;
            } else {
                break;
            }
            any = true;
        }
        if !any {
            let options = self.is_any_kw(&["set", "reset"]) && self.is_punct_at(1, "(");
            let of_storage = ["statistics", "storage", "compression"].into_iter().any(|w| self.is_kw_at(1, w));
            if !(options || self.is_kw("set") && of_storage) {
                return Err(self.error());
            }
            self.next();
            if options {
                self.option_list()?;
            } else if self.eat_kw("statistics") {
                self.signed_integer()?;
            } else {
                let compression = self.is_kw("compression");
                self.next();
                let word = if self.eat_kw("default") { "default".to_owned() } else { self.col_id()?.name };
                return Ok(TableAction::Storage(StorageChange::Stored(column, compression, word)));
            }
            return Ok(TableAction::Storage(StorageChange::Column(column)));
        }
        Ok(TableAction::SetIdentity { column, always, options })
    }

    fn alter_action(&mut self, kind: ObjectKind) -> Result<AlterAction, SqlError> {
        let pos = self.pos();
        if self.eat_kw("rename") {
            if self.eat_kw("to") {
                return Ok(AlterAction::Rename(self.col_id()?));
            }
            if self.is_kw("constraint") && !self.is_kw_at(1, "to") {
                self.next();
                let from = self.col_id()?;
                self.expect_kw("to")?;
                return Ok(AlterAction::RenameConstraint(from, self.col_id()?));
            }
            self.eat_kw("column");
            let from = self.col_id()?;
            self.expect_kw("to")?;
            return Ok(AlterAction::RenameColumn(from, self.col_id()?));
        }
        if self.eat_kws(&["owner", "to"]) {
            return Ok(AlterAction::OwnerTo(self.col_label()?.name));
        }
        if self.eat_kws(&["set", "schema"]) {
            return Ok(AlterAction::SetSchema(self.col_id()?));
        }
        if self.is_kw("set") && self.is_punct_at(1, "(") {
            self.next();
            return Ok(AlterAction::SetOptions(self.option_list()?));
        }
        if self.is_kw("reset") && self.is_punct_at(1, "(") {
            self.next();
            return Ok(AlterAction::ResetOptions(self.option_list()?.into_iter().map(|o| o.name).collect()));
        }
        if kind == ObjectKind::Secret && self.eat_kw("as") {
            return Ok(AlterAction::SetSecret(self.string()?));
        }
        if !matches!(self.tok(), Tok::Word(_)) {
            return Err(self.error());
        }
        while !self.at_end() && !self.is_punct(";") {
            self.next();
        }
        Ok(AlterAction::Other(pos))
    }
}
