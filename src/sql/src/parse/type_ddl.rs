//! CREATE and ALTER of types and domains, CREATE EXTENSION. Not here: DROP (see `ddl`), type names in expressions (see `types`).

use super::Parser;
use crate::ast::*;
use repr::SqlError;

impl Parser<'_> {
    pub fn create_type(&mut self) -> Result<Statement, SqlError> {
        self.next();
        let name = self.object_name()?;
        if self.at_end() || self.is_punct(";") || self.is_punct("(") {
            return Err(SqlError::unsupported("a shell or base type", "CREATE TYPE … AS ENUM, AS RANGE and AS (…) are known").at(self.pos()));
        }
        self.expect_kw("as")?;
        let body = if self.eat_kw("range") {
            TypeBody::Range(self.parens(|p| {
                p.comma_list(|p| {
                    let n = p.col_label()?;
                    if !p.eat_op("=") {
                        return Err(p.error());
                    }
                    Ok((n, p.type_name()?))
                })
            })?)
        } else if self.eat_kw("enum") {
            TypeBody::Enum(self.parens(|p| if p.is_punct(")") { Ok(Vec::new()) } else { p.comma_list(Self::string) })?)
        } else if self.is_punct("(") {
            TypeBody::Composite(self.parens(|p| if p.is_punct(")") { Ok(Vec::new()) } else { p.comma_list(Self::attribute) })?)
        } else {
            return Err(self.error());
        };
        Ok(Statement::CreateType(Box::new(CreateType { name, body })))
    }

    pub fn create_domain(&mut self) -> Result<Statement, SqlError> {
        self.next();
        let name = self.object_name()?;
        self.eat_kw("as");
        let mut base = self.type_name()?;
        let (mut not_null, mut null, mut default, mut checks) = (false, false, None, Vec::new());
        loop {
            let pos = self.pos();
            let constraint = if self.eat_kw("constraint") { Some(self.col_id()?.name) } else { None };
            let refused = |m: &str| Err(SqlError::new(repr::error::state::SYNTAX_ERROR, m).at(pos));
            if self.is_kws(&["not", "null"]) || self.is_kw("null") {
                if self.eat_kw("not") {
                    not_null = true;
                } else {
                    null = true;
                }
                self.eat_kw("null");
                if not_null && null {
                    return refused("conflicting NULL/NOT NULL constraints");
                }
            } else if self.eat_kw("unique") {
                return refused("unique constraints not possible for domains");
            } else if self.eat_kws(&["primary", "key"]) {
                return refused("primary key constraints not possible for domains");
            } else if self.eat_kw("references") {
                return refused("foreign key constraints not possible for domains");
            } else if self.eat_kw("check") {
                let start = self.span().end;
                let e = self.parens(Self::expr)?;
                checks.push((constraint, e, Span { start, end: self.last_end() - 1 }));
            } else if self.eat_kw("default") {
                let start = self.span().start;
                let e = self.b_expr()?;
                if default.replace((e, self.span_from(start))).is_some() {
                    return refused("multiple default expressions");
                }
            } else if constraint.is_some() {
                return Err(self.error());
            } else if self.eat_kw("collate") {
                self.collation_of(&mut base, pos)?;
            } else {
                let body = TypeBody::Domain { base, not_null, default, checks };
                return Ok(Statement::CreateType(Box::new(CreateType { name, body })));
            }
        }
    }

    /// CREATE EXTENSION, from its name on: WITH, SCHEMA, VERSION and CASCADE say nothing of what is there anyway.
    pub(super) fn create_extension(&mut self) -> Result<Statement, SqlError> {
        self.next();
        let if_not_exists = self.if_not_exists()?;
        let name = self.col_id()?;
        while !self.at_end() && !self.is_punct(";") {
            self.next();
        }
        Ok(Statement::CreateExtension { name, if_not_exists })
    }

    /// A field of a composite type.
    fn attribute(&mut self) -> Result<(Ident, TypeName), SqlError> {
        let n = self.col_id()?;
        let ty = self.collated_type()?;
        Ok((n, ty))
    }

    /// ALTER TYPE and ALTER DOMAIN, behind these words.
    pub fn alter_type(&mut self, kind: ObjectKind) -> Result<Statement, SqlError> {
        let name = self.object_name()?;
        let action = if kind == ObjectKind::Domain { self.alter_domain_action()? } else { self.alter_type_action()? };
        Ok(Statement::AlterType(Box::new(AlterType { kind, name, action })))
    }

    /// What types and domains have in common.
    fn alter_any_type(&mut self) -> Result<Option<AlterTypeAction>, SqlError> {
        Ok(Some(if self.eat_kws(&["rename", "to"]) {
            AlterTypeAction::Rename(self.col_id()?)
        } else if self.eat_kws(&["owner", "to"]) {
            AlterTypeAction::OwnerTo(self.col_label()?.name)
        } else if self.eat_kws(&["set", "schema"]) {
            AlterTypeAction::SetSchema(self.col_id()?)
        } else {
            return Ok(None);
        }))
    }

    fn alter_type_action(&mut self) -> Result<AlterTypeAction, SqlError> {
        if let Some(a) = self.alter_any_type()? {
            return Ok(a);
        }
        if self.eat_kws(&["add", "value"]) {
            let if_not_exists = self.if_not_exists()?;
            let label = self.string()?;
            let place = if self.eat_kw("before") {
                Some((true, self.string()?))
            } else if self.eat_kw("after") {
                Some((false, self.string()?))
            } else {
                None
            };
            return Ok(AlterTypeAction::AddValue { label, if_not_exists, place });
        }
        if self.eat_kws(&["rename", "value"]) {
            let from = self.string()?;
            self.expect_kw("to")?;
            return Ok(AlterTypeAction::RenameValue { from, to: self.string()? });
        }
        if self.eat_kws(&["rename", "attribute"]) {
            let from = self.col_id()?;
            self.expect_kw("to")?;
            let to = self.col_id()?;
            if !self.eat_kw("cascade") {
                self.eat_kw("restrict");
            }
            return Ok(AlterTypeAction::RenameAttribute { from, to });
        }
        let mut changes = vec![self.attribute_change()?];
        while self.eat_punct(",") {
            changes.push(self.attribute_change()?);
        }
        Ok(AlterTypeAction::Attributes(changes))
    }

    fn attribute_change(&mut self) -> Result<AttributeAction, SqlError> {
        let change = if self.eat_kws(&["add", "attribute"]) {
            let (name, ty) = self.attribute()?;
            AttributeAction::Add(name, ty)
        } else if self.eat_kws(&["drop", "attribute"]) {
            let if_exists = self.if_exists()?;
            AttributeAction::Drop { name: self.col_id()?, if_exists }
        } else if self.eat_kws(&["alter", "attribute"]) {
            let name = self.col_id()?;
            self.eat_kws(&["set", "data"]);
            self.expect_kw("type")?;
            let ty = self.collated_type()?;
            AttributeAction::Type(name, ty)
        } else {
            return Err(self.error());
        };
        // Tables that are declared to have a type's columns, which these words are about, are not there.
        if !self.eat_kw("cascade") {
            self.eat_kw("restrict");
        }
        Ok(change)
    }

    fn alter_domain_action(&mut self) -> Result<AlterTypeAction, SqlError> {
        if let Some(a) = self.alter_any_type()? {
            return Ok(a);
        }
        Ok(if self.eat_kws(&["set", "not", "null"]) {
            AlterTypeAction::NotNull(true)
        } else if self.eat_kws(&["drop", "not", "null"]) {
            AlterTypeAction::NotNull(false)
        } else if self.eat_kws(&["drop", "default"]) {
            AlterTypeAction::Default(None)
        } else if self.eat_kws(&["set", "default"]) {
            let start = self.span().start;
            let e = self.expr()?;
            AlterTypeAction::Default(Some((e, self.span_from(start))))
        } else if self.eat_kw("add") {
            let name = if self.eat_kw("constraint") { Some(self.col_id()?.name) } else { None };
            self.expect_kw("check")?;
            let start = self.span().end;
            let e = self.parens(Self::expr)?;
            let span = Span { start, end: self.last_end() - 1 };
            let valid = !self.eat_kws(&["not", "valid"]);
            AlterTypeAction::AddCheck { name, check: e, span, valid }
        } else if self.eat_kws(&["drop", "constraint"]) {
            let if_exists = self.if_exists()?;
            let name = self.col_id()?;
            if !self.eat_kw("cascade") {
                self.eat_kw("restrict");
            }
            AlterTypeAction::DropCheck { name, if_exists }
        } else if self.eat_kws(&["rename", "constraint"]) {
            let from = self.col_id()?;
            self.expect_kw("to")?;
            AlterTypeAction::RenameCheck { from, to: self.col_id()? }
        } else if self.eat_kws(&["validate", "constraint"]) {
            AlterTypeAction::Validate(self.col_id()?)
        } else {
            return Err(self.error());
        })
    }
}
