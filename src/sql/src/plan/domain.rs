//! Domains: what makes a value of one tests it.
//!
//! Every coercion to a domain, and to an array or row type that has one in it, is the coercion to what it is over and then the test, as
//! calls; so assignments, parameters and casts need nothing of their own. Where a domain's values are used as such they are relabelled.
//! Below the binder there are no domains (`lower::erase`). Not here: COPY, whose values no expression makes (see `dml`).

use super::scope::Clause;
use super::*;
use crate::ast::{Expr, Span, TypeName};
use crate::hir::{ColumnRef, HirScalar};
use crate::parse::{self, ParsedStatement};
use ::expr::catalog::CastContext;
use repr::types::Domain;
use repr::{ColType, RelDesc};
use std::sync::Arc;

impl Binder<'_> {
    /// The value as one of the type that its domain is over; itself if it is of no domain.
    pub fn without_domain(&self, e: HirScalar) -> Result<HirScalar, SqlError> {
        let ty = e.typ();
        match &ty.ty {
            SqlType::Domain(_) => self.internal("relabel", vec![e], ty.base()),
            _ => Ok(e),
        }
    }

    /// The definition of a domain. Objects that make values of it depend on it.
    fn definition(&self, oid: u32) -> Result<Arc<Domain>, SqlError> {
        let (id, domain) = self.catalog.domain_by_oid(oid).ok_or_else(|| SqlError::internal("a type of a domain that is gone"))?;
        self.depends_on.borrow_mut().insert(id);
        Ok(domain)
    }

    /// Coercion to a type that is a domain or has one in it: first as if it were none, then its test.
    pub fn coerce_to_domain(&self, e: HirScalar, to: &ColType, ctx: CastContext, pos: Pos) -> Result<Option<HirScalar>, SqlError> {
        let mut e = e;
        if let HirScalar::Parameter(n, t) = &e {
            if t.ty == SqlType::Unknown {
                self.set_parameter(*n, &to.ty, pos)?;
                e = HirScalar::Parameter(*n, to.ty.clone().nullable().without_domains());
            }
        }
        match (&e.typ().ty, &to.ty) {
            (_, SqlType::Domain(d)) => {
                let d = self.definition(d.oid)?;
                let Some(x) = self.try_coerce(e, &d.base, ctx, pos)? else { return Ok(None) };
                self.in_domain(x, &d).map(Some)
            }
            (SqlType::Record(_), SqlType::Record(_)) => self.coerce_record(e, to, ctx, pos),
            _ => {
                let mut plain = to.without_domains();
                if let SqlType::Array(elem) = &to.ty {
                    plain.typmod = elem.as_ref().clone().nullable().base().typmod;
                }
                if plain.ty.has_domain() {
                    // Arrays of a domain over arrays, which nothing makes.
                    return Ok(None);
                }
                let Some(x) = self.try_coerce(e, &plain, ctx, pos)? else { return Ok(None) };
                self.tested(x, to, ctx, pos).map(Some)
            }
        }
    }

    /// `e`, which differs from `to` in domains only, as a value of `to`.
    fn tested(&self, e: HirScalar, to: &ColType, ctx: CastContext, pos: Pos) -> Result<HirScalar, SqlError> {
        match &to.ty {
            SqlType::Array(elem) => {
                let SqlType::Domain(d) = &**elem else {
                    return Err(SqlError::unsupported(format!("a value of type {}", to.ty.sql_name()), "make it of single values").at(pos));
                };
                let definition = self.definition(d.oid)?;
                let oid = self.published(&definition)?;
                let ty = ColType { nullable: e.typ().nullable, ..to.clone() };
                self.internal("domain_elements", vec![e, oid], ty)
            }
            SqlType::Record(_) => {
                let made = self.coerce_record(e, to, ctx, pos)?;
                made.ok_or_else(|| SqlError::internal("a row that does not fit its own type"))
            }
            SqlType::Domain(d) => {
                let d = self.definition(d.oid)?;
                self.in_domain(e, &d)
            }
            other => Err(SqlError::unsupported(format!("a value of type {}", other.sql_name()), "make it of single values").at(pos)),
        }
    }

    /// `e`, which has the base type, if the domain admits it. Errors, when it is evaluated: 23502, 23514.
    fn in_domain(&self, e: HirScalar, d: &Domain) -> Result<HirScalar, SqlError> {
        // Every condition has the value in it, which must be one value.
        if walk::is_volatile(&e) && (d.parent.is_some() || !d.checks.is_empty()) {
            let ty = ColType { ty: d.as_type(), typmod: -1, nullable: e.typ().nullable };
            return self.internal("domain_value", vec![e, self.published(d)?], ty);
        }
        self.admitted(e, d, &d.name)
    }

    /// The number under which kernels find the domain's test.
    fn published(&self, d: &Domain) -> Result<HirScalar, SqlError> {
        let base = d.base.without_domains().with_nullable(true);
        let value = HirScalar::Column(ColumnRef { level: 0, column: 0 }, base.clone());
        let test = ddl::row_scalar(&self.admitted(value, d, &d.name)?).ok_or_else(|| SqlError::internal("a domain's test with a subquery"))?;
        ::expr::domain::publish(d.oid, test, base);
        Ok(HirScalar::Literal(Value::UInt4(d.oid), SqlType::Oid.not_null()))
    }

    /// As [`Binder::in_domain`]; `name`: of the domain that is coerced to, which errors name even if it is one that this one is under.
    fn admitted(&self, e: HirScalar, d: &Domain, name: &str) -> Result<HirScalar, SqlError> {
        let text = |s: &str| HirScalar::Literal(Value::Text(s.to_owned()), SqlType::Text.not_null());
        let ty = ColType { ty: d.as_type(), typmod: -1, nullable: e.typ().nullable && !d.not_null };
        let mut out = e.clone();
        if let Some(parent) = d.parent {
            let parent = self.definition(parent)?;
            out = self.admitted(out, &parent, name)?;
        }
        if d.not_null {
            out = self.internal("domain_not_null", vec![out, text(name)], ty.clone())?;
        }
        let mut checks: Vec<&(String, String)> = d.checks.iter().collect();
        checks.sort_by(|a, b| a.0.cmp(&b.0));
        for (check, sql) in checks {
            let condition = self.domain_check(&parse::parse_expr(sql)?, &d.base, Some(&e))?;
            out = self.internal("domain_check", vec![out, condition, text(name), text(check)], ty.clone())?;
        }
        match out.typ().ty == ty.ty {
            true => Ok(out),
            false => self.internal("relabel", vec![out], ty),
        }
    }

    /// What a check sees.
    pub(super) fn value_env(&self, base: &ColType) -> super::scope::Env {
        let desc = RelDesc { names: vec!["value".into()], types: vec![base.clone().with_nullable(true)], keys: Vec::new() };
        self.row_env("", &desc, Clause::Check)
    }

    /// A check as it is kept and shown. Errors: those of its condition.
    pub fn domain_check_text(&self, e: &Expr, base: &ColType, written: &str) -> Result<String, SqlError> {
        let bound = self.domain_check(e, base, None)?;
        Ok(self.check_text(e, &self.value_env(base), written, &bound))
    }

    /// A check's condition: over VALUE, or over `value` in its place.
    pub fn domain_check(&self, e: &Expr, base: &ColType, value: Option<&HirScalar>) -> Result<HirScalar, SqlError> {
        let mut condition = self.condition(e, &self.value_env(base), "CHECK")?;
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
        let over = self.resolve_type(base)?;
        let mut d = match &over.ty {
            SqlType::Domain(parent) => {
                let parent = self.definition(parent.oid)?;
                Domain { parent: Some(parent.oid), not_null: false, checks: Vec::new(), ..(*parent).clone() }
            }
            _ => Domain { oid: 0, array_oid: 0, name: String::new(), base: over, parent: None, not_null: false, default: None, checks: Vec::new() },
        };
        if matches!(&d.base.ty, SqlType::Unknown | SqlType::Void) || matches!(&d.base.ty, SqlType::Record(r) if r.name.is_none()) {
            return Err(SqlError::new(state::DATATYPE_MISMATCH, format!("\"{}\" is not a valid base type for a domain", d.base.ty.sql_name())).at(base.pos));
        }
        d.name = name.to_owned();
        d.not_null |= not_null;
        if let Some((e, span)) = default {
            let x = self.expr(e, &self.row_env("", &RelDesc::default(), Clause::Default))?;
            self.assign(x, name, &d.base, e.pos)?;
            d.default = Some(self.default_text(name, &d.base, e, p.slice(*span))?.0);
        }
        for (given, e, span) in checks {
            let text = self.domain_check_text(e, &d.base, p.slice(*span))?;
            let check = given.clone().unwrap_or_else(|| naming::object_name(name, None, "check", &|n| d.checks.iter().any(|c| c.0 == n)));
            if d.checks.iter().any(|c| c.0 == check) {
                return Err(SqlError::new(state::DUPLICATE_OBJECT, format!("constraint \"{check}\" for domain \"{name}\" already exists")));
            }
            d.checks.push((check, text));
        }
        Ok(d)
    }
}

/// The value that a test of a domain is about; itself if it is no test.
pub fn untested(mut e: HirScalar) -> HirScalar {
    while let HirScalar::Call { func, args, ty } = &e {
        let tests = matches!(func.name, "domain_check" | "domain_not_null" | "domain_value" | "relabel");
        if !tests || !matches!(ty.ty, SqlType::Domain(_)) {
            break;
        }
        e = args[0].clone();
    }
    e
}
