//! Assignment to a column or to a part of one: `SET a[2] = 1`, `SET p.x.y = 1`, `INSERT INTO t (p.x, a[1])`.
//!
//! A part's new value makes a new value of the whole column: `row_construct` of the other fields as they are, `array_assign`, `jsonb_assign`.
//! Several parts of one column are assigned one after the other.

use super::scope::Env;
use super::*;
use crate::ast::{AssignTarget, Expr, Ident, Indirection};
use crate::catalog::Relation;
use crate::hir::HirScalar;
use ::expr::catalog::CastContext;
use repr::ColType;

impl Binder<'_> {
    /// Position of the target's column and the type that a value assigned to it must have.
    pub fn target_type(&self, rel: &Relation, t: &AssignTarget) -> Result<(usize, ColType), SqlError> {
        let column = self.column_of(rel, &t.column)?;
        Ok((column, self.part_type(rel.desc.types[column].clone(), t)?))
    }

    /// The type of the part that a target names of a whole of type `ty`.
    pub fn part_type(&self, mut ty: ColType, t: &AssignTarget) -> Result<ColType, SqlError> {
        let mut path = t.path.as_slice();
        while let Some(first) = path.first() {
            match first {
                Indirection::Field(f) => {
                    ty = self.part_field(&t.column, f, &ty)?.1;
                    path = &path[1..];
                }
                Indirection::Star => return Err(SqlError::new(state::SYNTAX_ERROR, "row expansion via \"*\" is not supported here").at(t.column.pos)),
                _ => {
                    let (here, rest) = split_subscripts(path);
                    let sliced = here.iter().any(|p| matches!(p, Indirection::Slice(..)));
                    let ty_base = ty.base();
                    ty = match &ty_base.ty {
                        SqlType::Jsonb => SqlType::Jsonb.nullable(),
                        SqlType::Array(_) | SqlType::Int2Vector | SqlType::OidVector if sliced => ty_base,
                        SqlType::Array(e) => ColType { ty: (**e).clone(), ..ty_base },
                        SqlType::Geo(kind) if expr::func::geo::part_type(*kind).is_some() => {
                            if sliced {
                                return Err(SqlError::new(state::FEATURE_NOT_SUPPORTED, "slices of fixed-length arrays not implemented").at(t.column.pos));
                            }
                            expr::func::geo::part_type(*kind).unwrap_or(SqlType::Float8).nullable()
                        }
                        SqlType::Int2Vector => SqlType::Int2.nullable(),
                        SqlType::OidVector => SqlType::Oid.nullable(),
                        other => {
                            let message = format!("cannot subscript type {} because it does not support subscripting", other.sql_name());
                            return Err(SqlError::new(state::DATATYPE_MISMATCH, message).at(t.column.pos));
                        }
                    };
                    path = rest;
                }
            }
        }
        Ok(ty)
    }

    /// The field of a composite type: its position and type.
    fn part_field(&self, column: &Ident, field: &Ident, ty: &ColType) -> Result<(usize, ColType), SqlError> {
        let what = format!("cannot assign to field \"{}\" of column \"{}\"", field.name, column.name);
        let SqlType::Record(r) = ty.ty.base() else {
            let message = format!("{what} because its type {} is not a composite type", ty.ty.sql_name());
            return Err(SqlError::new(state::DATATYPE_MISMATCH, message).at(field.pos));
        };
        match r.fields.iter().position(|f| f.0 == field.name) {
            Some(i) => Ok((i, r.fields[i].1.clone())),
            None => {
                let message = format!("{what} because there is no such column in data type {}", ty.ty.sql_name());
                Err(SqlError::new(state::UNDEFINED_COLUMN, message).at(field.pos))
            }
        }
    }

    /// The whole of type `ty` after `value`, which has the part's type, is put at `path` of `whole`.
    pub fn with_part(
        &self,
        whole: HirScalar,
        ty: &ColType,
        t: &AssignTarget,
        path: &[Indirection],
        value: HirScalar,
        env: &Env,
    ) -> Result<HirScalar, SqlError> {
        let Some(first) = path.first() else { return Ok(value) };
        if let SqlType::Domain(_) = &ty.ty {
            // The domain tests what all parts of the statement make together.
            let whole = self.without_domain(super::domain::untested(whole))?;
            let whole = self.with_part(whole, &ty.base(), t, path, value, env)?;
            return self.coerce(whole, ty, CastContext::Assignment, t.column.pos);
        }
        if let Indirection::Field(f) = first {
            let (at, field_type) = self.part_field(&t.column, f, ty)?;
            let SqlType::Record(r) = &ty.ty else { return Err(SqlError::internal("a field of no record")) };
            let mut fields = (0..r.fields.len()).map(|i| self.field_select(whole.clone(), i)).collect::<Result<Vec<_>, _>>()?;
            fields[at] = self.with_part(fields[at].clone(), &field_type, t, &path[1..], value, env)?;
            return self.internal("row_construct", fields, ty.clone().with_nullable(false));
        }
        let (here, rest) = split_subscripts(path);
        let value = match rest {
            [] => value,
            _ => {
                let part = self.subscript(whole.clone(), here, t.column.pos, env)?;
                let part_type = part.typ();
                self.with_part(part, &part_type, t, rest, value, env)?
            }
        };
        // The arguments that read the part are those that write it.
        let (name, result) = match &ty.ty {
            SqlType::Jsonb => ("jsonb_assign", SqlType::Jsonb.nullable()),
            _ => ("array_assign", ty.clone().with_nullable(true)),
        };
        match self.subscript(whole, here, t.column.pos, env)? {
            HirScalar::Call { func, mut args, .. } => {
                if func.name == "array_subscript" {
                    args.insert(1, HirScalar::Literal(Value::Null, SqlType::Int4.nullable()));
                }
                args.insert(1, value);
                self.internal(name, args, result)
            }
            _ => Err(SqlError::internal("a subscript that is no call")),
        }
    }

    /// A value assigned to a target: coerced to the part's type, put into `whole`.
    pub fn assign_to(&self, whole: HirScalar, rel: &Relation, t: &AssignTarget, value: HirScalar, pos: Pos, env: &Env) -> Result<(usize, HirScalar), SqlError> {
        let (column, ty) = self.target_type(rel, t)?;
        let value = self.assign(value, &t.column.name, &ty, pos)?;
        let whole_type = rel.desc.types[column].clone();
        Ok((column, self.with_part(whole, &whole_type, t, &t.path, value, env)?))
    }

    /// A value to be assigned, `None` for DEFAULT. All values of a row are bound before the first is assigned, since a parameter gets its type where it is assigned.
    pub fn assigned_value(&self, e: &Expr, env: &Env) -> Result<Option<HirScalar>, SqlError> {
        match &*e.kind {
            crate::ast::ExprKind::Default => Ok(None),
            _ => self.expr(e, env).map(Some),
        }
    }

    /// DEFAULT assigned to a column. Errors: 0A000 for a part of one.
    pub fn assign_default(&self, rel: &Relation, t: &AssignTarget, pos: Pos) -> Result<(usize, HirScalar), SqlError> {
        let column = self.column_of(rel, &t.column)?;
        match t.path.as_slice() {
            [] => Ok((column, self.default_of(rel, column))),
            [Indirection::Field(_), ..] => Err(SqlError::new(state::FEATURE_NOT_SUPPORTED, "cannot set a subfield to DEFAULT").at(pos)),
            _ => Err(SqlError::new(state::FEATURE_NOT_SUPPORTED, "cannot set an array element to DEFAULT").at(pos)),
        }
    }
}

/// The subscripts at the beginning of a path, and the rest.
fn split_subscripts(path: &[Indirection]) -> (&[Indirection], &[Indirection]) {
    let n = path.iter().take_while(|p| matches!(p, Indirection::Index(_) | Indirection::Slice(..))).count();
    path.split_at(n)
}
