//! Expressions that a table keeps: defaults, checks, and what columns are generated from.

use super::ddl::row_scalar;
use super::scope::Clause;
use super::walk::reads;
use super::*;
use crate::ast;
use crate::hir::HirScalar;
use ::expr::catalog::CastContext;
use repr::{ColType, RelDesc};

/// DEFAULT NULL is no default, but instead of a domain's; one that is fitted to the column's length is kept.
pub(super) fn is_no_default(e: &ast::Expr, ty: &ColType) -> bool {
    matches!(&*e.kind, ast::ExprKind::Null) && ty.typmod < 0 && !matches!(ty.ty, SqlType::Domain(_))
}

impl Binder<'_> {
    /// A check's text as it is kept and shown.
    pub fn check_text(&self, e: &ast::Expr, env: &super::scope::Env, written: &str, bound: &HirScalar) -> String {
        let text = self.deparsed(e, env, None, bound, &|e| self.condition(e, env, "CHECK"));
        text.unwrap_or_else(|| format!("({})", written.trim()))
    }

    /// A default's text as it is kept and shown, and what it is bound to.
    pub fn default_text(&self, column: &str, ty: &ColType, e: &ast::Expr, written: &str) -> Result<(String, HirScalar), SqlError> {
        let x = self.column_default(column, ty, e)?;
        let env = self.row_env("", &RelDesc::default(), Clause::Default);
        let text = self.deparsed(e, &env, Some(ty), &x, &|e| self.column_default(column, ty, e));
        Ok((text.unwrap_or_else(|| written.to_owned()), x))
    }

    /// DEFAULT: an expression without columns, as a value of the column.
    pub fn column_default(&self, column: &str, ty: &ColType, e: &ast::Expr) -> Result<HirScalar, SqlError> {
        let env = self.row_env("", &RelDesc::default(), Clause::Default);
        let x = self.expr(e, &env).map_err(|err| {
            if err.code == state::UNDEFINED_COLUMN {
                SqlError::new(state::FEATURE_NOT_SUPPORTED, "cannot use column reference in DEFAULT expression").at(e.pos)
            } else {
                err
            }
        })?;
        self.as_column(x, column, ty, "default", e.pos)
    }

    /// An expression that is kept, as a value of a column: one that is too long for it is an error of the rows that get it.
    pub(super) fn coerce_stored(&self, x: HirScalar, ty: &ColType, pos: Pos) -> Result<Option<HirScalar>, SqlError> {
        let of_any_length = ColType { typmod: -1, ..ty.clone() };
        match self.try_coerce(x.clone(), ty, CastContext::Assignment, pos) {
            Err(e) if ty.typmod >= 0 && matches!(self.try_coerce(x, &of_any_length, CastContext::Assignment, pos), Ok(Some(_))) => {
                Ok(Some(HirScalar::Error(Box::new(SqlError { position: None, ..e }), ty.clone())))
            }
            coerced => coerced,
        }
    }

    fn as_column(&self, x: HirScalar, column: &str, ty: &ColType, what: &str, pos: Pos) -> Result<HirScalar, SqlError> {
        let from = x.typ();
        self.coerce_stored(x, ty, pos)?.ok_or_else(|| {
            let m = format!("column \"{column}\" is of type {} but {what} expression is of type {}", ty.ty.sql_name(), from.ty.sql_name());
            SqlError::new(state::DATATYPE_MISMATCH, m).with_hint("You will need to rewrite or cast the expression.").at(pos)
        })
    }

    /// GENERATED ALWAYS AS: an immutable expression over columns that are not generated.
    pub(super) fn generation(
        &self,
        table: &str,
        desc: &RelDesc,
        column: usize,
        e: &ast::Expr,
        generated: &dyn Fn(usize) -> bool,
    ) -> Result<HirScalar, SqlError> {
        let x = self.expr(e, &self.row_env(table, desc, Clause::Generated))?;
        let mut x = self.as_column(x, &desc.names[column], &desc.types[column], "generation", e.pos)?;
        let Some(s) = row_scalar(&x) else {
            return Err(SqlError::new(state::FEATURE_NOT_SUPPORTED, "cannot use subquery in column generation expression").at(e.pos));
        };
        let mut other = None;
        reads(&mut x, |c| {
            other = other.or(Some(c).filter(|c| generated(*c)));
            false
        });
        if let Some(c) = other {
            let m = format!("cannot use generated column \"{}\" in column generation expression", desc.names[c]);
            let e = SqlError::new(state::INVALID_OBJECT_DEFINITION, m).at(e.pos);
            return Err(e.with_detail("A generated column cannot reference another generated column."));
        }
        if !s.is_immutable(&desc.types) {
            return Err(SqlError::new(state::INVALID_OBJECT_DEFINITION, "generation expression is not immutable"));
        }
        Ok(x)
    }
}
