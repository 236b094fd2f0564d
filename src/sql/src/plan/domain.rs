//! Domains: what makes a value of one tests it.
//!
//! A value has the domain's base type from then on, and so has a column; a table takes the domain's constraints over as its own. Not here:
//! arrays, fields and parameters of domain types (refused where a type is resolved).

use super::scope::Clause;
use super::*;
use crate::ast::{Expr, Span, TypeName};
use crate::hir::{ColumnRef, HirScalar};
use crate::parse::{self, ParsedStatement};
use repr::types::Domain;
use repr::{ColType, RelDesc};

impl Binder<'_> {
    /// The domain that a type name means.
    pub fn domain_of(&self, t: &TypeName) -> Option<std::sync::Arc<Domain>> {
        if t.dims > 0 || t.lists > 0 || t.setof || t.map_of.is_some() || !t.modifiers.is_empty() {
            return None;
        }
        let (id, domain) = self.catalog.resolve_domain(&t.names)?;
        self.depends_on.borrow_mut().insert(id);
        Some(domain)
    }

    /// `e`, which has the base type, if the domain admits it. Errors, when it is evaluated: 23502, 23514.
    pub fn in_domain(&self, e: HirScalar, d: &Domain) -> Result<HirScalar, SqlError> {
        let text = |s: &str| HirScalar::Literal(Value::Text(s.to_owned()), SqlType::Text.not_null());
        let ty = ColType { nullable: e.typ().nullable && !d.not_null, ..d.base.clone() };
        let mut out = e.clone();
        if d.not_null {
            out = self.internal("domain_not_null", vec![out, text(&d.name)], ty.clone())?;
        }
        for (name, sql) in &d.checks {
            let condition = self.domain_check(&parse::parse_expr(sql)?, &d.base, Some(&e))?;
            out = self.internal("domain_check", vec![out, condition, text(&d.name), text(name)], ty.clone())?;
        }
        Ok(out)
    }

    /// A check's condition: over VALUE, or over `value` in its place.
    pub fn domain_check(&self, e: &Expr, base: &ColType, value: Option<&HirScalar>) -> Result<HirScalar, SqlError> {
        let desc = RelDesc { names: vec!["value".into()], types: vec![base.clone().with_nullable(true)], keys: Vec::new() };
        let mut condition = self.condition(e, &self.row_env("", &desc, Clause::Check), "CHECK")?;
        if let Some(v) = value {
            walk::rewrite(&mut condition, 0, &mut |x, depth| match x {
                HirScalar::Column(ColumnRef { level, .. }, _) if *level == depth => {
                    *x = v.clone();
                    false
                }
                _ => true,
            });
        }
        Ok(condition)
    }

    /// CREATE DOMAIN.
    pub fn create_domain(
        &self,
        p: &ParsedStatement,
        name: &str,
        base: &TypeName,
        not_null: bool,
        default: Option<&(Expr, Span)>,
        checks: &[(Option<String>, Expr, Span)],
    ) -> Result<Domain, SqlError> {
        let mut d = match self.domain_of(base) {
            Some(parent) => (*parent).clone(),
            None => Domain { oid: 0, name: String::new(), base: self.resolve_type(base)?, not_null: false, default: None, checks: Vec::new() },
        };
        if matches!(&d.base.ty, SqlType::Unknown | SqlType::Void) || matches!(&d.base.ty, SqlType::Record(r) if r.name.is_none()) {
            return Err(SqlError::new(state::DATATYPE_MISMATCH, format!("\"{}\" is not a valid base type for a domain", d.base.ty.sql_name())).at(base.pos));
        }
        d.name = name.to_owned();
        d.not_null |= not_null;
        if let Some((e, span)) = default {
            let x = self.expr(e, &self.row_env("", &RelDesc::default(), Clause::Default))?;
            self.assign(x, name, &d.base, e.pos)?;
            d.default = Some(p.slice(*span).to_owned());
        }
        for (given, e, span) in checks {
            self.domain_check(e, &d.base, None)?;
            let check = given.clone().unwrap_or_else(|| ddl::numbered(&format!("{name}_check"), &|n| d.checks.iter().any(|c| c.0 == n)));
            d.checks.push((check, p.slice(*span).trim().to_owned()));
        }
        Ok(d)
    }

    /// A check of a domain as a check of a column of its type: VALUE is the column.
    pub fn check_of_column(&self, sql: &str, column: &str) -> Result<(Expr, String), SqlError> {
        let text = parse::replace_word(sql, "value", &parse::quote_ident(column))?;
        Ok((parse::parse_expr(&text)?, text))
    }
}
