//! Subqueries in expressions, rows, IN, ANY, ALL.
//!
//! In a quantified comparison the subquery's row is level 0 and the enclosing row level 1, so what was bound on the enclosing row
//! is shifted by one.

use super::query::Bound;
use super::scalar::op_at;
use super::scope::{Clause, Env};
use super::walk::{renumber_locals, shift};
use super::Binder;
use crate::ast::*;
use crate::hir::{ColumnRef, Hir, HirScalar, Quantifier};
use ::plan::LocalId;
use expr::catalog::{pseudo, CastContext};
use repr::error::state;
use repr::types::RecordType;
use repr::{ColType, SqlError, SqlType};
use std::sync::Arc;

/// Beyond all ids that are given out one by one.
const OWN_LOCALS: u64 = 1 << 32;

impl Binder<'_> {
    /// A query inside an expression on `env`'s innermost row. Its own bindings are numbered from one start, so that equal queries are
    /// equal expressions, as GROUP BY asks.
    fn sub(&self, q: &Query, env: &Env) -> Result<Bound, SqlError> {
        let place = match env.clause() {
            Some(Clause::Check) => Some("check constraint"),
            Some(Clause::Default) => Some("DEFAULT expression"),
            Some(Clause::CopyWhere) => Some("COPY FROM WHERE condition"),
            Some(Clause::Index) => Some("index expression"),
            _ => None,
        };
        if let Some(place) = place {
            return Err(SqlError::new(state::FEATURE_NOT_SUPPORTED, format!("cannot use subquery in {place}")));
        }
        let mut b = self.query(q, env, true)?;
        let mut next = OWN_LOCALS;
        renumber_locals(&mut b.hir, &mut || {
            next += 1;
            LocalId(next)
        });
        Ok(b)
    }

    pub fn exists(&self, q: &Query, env: &Env) -> Result<HirScalar, SqlError> {
        Ok(HirScalar::Exists(Box::new(self.sub(q, env)?.into_relation())))
    }

    pub fn scalar_subquery(&self, q: &Query, env: &Env, pos: Pos) -> Result<HirScalar, SqlError> {
        let b = self.sub(q, env)?;
        self.one_column(&b, pos)?;
        self.subquery_names.borrow_mut().insert(q, b.names[0].clone());
        let hir = b.into_relation();
        let ty = hir.types().remove(0).with_nullable(true);
        Ok(HirScalar::Subquery(Box::new(hir), ty))
    }

    fn one_column(&self, b: &Bound, pos: Pos) -> Result<(), SqlError> {
        if b.visible == 1 {
            return Ok(());
        }
        Err(SqlError::new(state::SYNTAX_ERROR, "subquery must return only one column").at(pos))
    }

    pub fn array_subquery(&self, q: &Query, env: &Env, pos: Pos) -> Result<HirScalar, SqlError> {
        let b = self.sub(q, env)?;
        self.one_column(&b, pos)?;
        let order_by = b.order.clone();
        let input = Box::new(b.limited());
        let elem = input.types().swap_remove(0).ty;
        let ty = match elem {
            SqlType::Array(e) => SqlType::Array(e),
            e if e.array_oid() == 0 => {
                return Err(SqlError::new(state::UNDEFINED_OBJECT, format!("could not find array type for data type {}", e.sql_name())).at(pos))
            }
            e => e.array_of(),
        };
        Ok(HirScalar::ArraySubquery { input, order_by, column: 0, ty: ty.not_null() })
    }

    pub fn in_list(&self, arg: &Expr, list: &[Expr], not: bool, pos: Pos, env: &Env) -> Result<HirScalar, SqlError> {
        let negate = |e: HirScalar| if not { HirScalar::Not(Box::new(e)) } else { e };
        let eq = op_at("=", pos);
        if matches!(&*arg.kind, ExprKind::Row { .. }) {
            let parts = list
                .iter()
                .map(|e| match &*e.kind {
                    ExprKind::Row { .. } => self.row_comparison(&eq, arg, e, env),
                    _ => {
                        let (x, y) = (self.expr(arg, env)?, self.expr(e, env)?);
                        self.apply_binary(&eq, x, arg.pos, y, e.pos)
                    }
                })
                .collect::<Result<Vec<_>, _>>()?;
            return Ok(negate(one_or(parts)));
        }
        let x = self.expr(arg, env)?;
        let items: Vec<HirScalar> = list.iter().map(|e| self.expr(e, env)).collect::<Result<_, _>>()?;
        // One comparison with a common type, if there is one; else each item by itself.
        let mut types = vec![(x.typ().ty, arg.pos)];
        types.extend(items.iter().zip(list).map(|(i, e)| (i.typ().ty, e.pos)));
        let common = if items.len() > 1 { self.common_type(&types, "IN").ok() } else { None };
        let fits = |t: &SqlType| t.array_oid() != 0 && types.iter().all(|(from, _)| self.can_coerce(from, t.oid(), CastContext::Implicit));
        let common = common.filter(|t| matches!(t, SqlType::Record(_)) || fits(t));
        // A literal beside rows of a named type is one of them.
        let row = common.as_ref().filter(|t| matches!(t, SqlType::Record(r) if r.name.is_some()));
        let of_row = |i: HirScalar, pos: Pos| match row {
            Some(ty) if i.typ().ty == SqlType::Unknown => self.coerce_common(i, ty, "IN", pos),
            _ => Ok(i),
        };
        let x = of_row(x, arg.pos)?;
        let items: Vec<HirScalar> = items.into_iter().zip(list).map(|(i, e)| of_row(i, e.pos)).collect::<Result<_, _>>()?;
        if let Some(ty) = common.filter(|t| !matches!(t, SqlType::Record(_))) {
            let (o, l, r, _) = self.operator(&eq, Some(&types[0].0), &ty)?;
            let l = l.unwrap_or_else(|| ty.clone());
            let x = self.coerce_implicit(x, &l, arg.pos)?;
            let mut out = Vec::with_capacity(items.len());
            for (i, e) in items.into_iter().zip(list) {
                let i = self.coerce_common(i, &ty, "IN", e.pos)?;
                out.push(self.coerce_implicit(i, &r, e.pos)?);
            }
            let constant = out.iter().all(|e| matches!(e, HirScalar::Literal(..)));
            if constant && out.len() > 16 && r.array_oid() != 0 {
                let array = self.fold(self.internal("array_construct", out, r.array_of().not_null())?)?;
                return Ok(negate(self.internal_with("any_op", o.func, vec![x, array], SqlType::Bool.nullable())?));
            }
            let parts = out.into_iter().map(|i| self.call_oid(o.func, vec![x.clone(), i], SqlType::Bool.nullable())).collect::<Result<Vec<_>, _>>()?;
            return Ok(negate(one_or(parts)));
        }
        let parts = items.into_iter().zip(list).map(|(i, e)| self.apply_binary(&eq, x.clone(), arg.pos, i, e.pos)).collect::<Result<Vec<_>, _>>()?;
        Ok(negate(one_or(parts)))
    }

    pub fn in_subquery(&self, arg: &Expr, q: &Query, not: bool, pos: Pos, env: &Env) -> Result<HirScalar, SqlError> {
        let e = self.any_subquery(arg, &op_at("=", pos), Quantifier::Any, q, env)?;
        Ok(if not { HirScalar::Not(Box::new(e)) } else { e })
    }

    fn any_subquery(&self, arg: &Expr, op: &OpName, quantifier: Quantifier, q: &Query, env: &Env) -> Result<HirScalar, SqlError> {
        let left: Vec<(HirScalar, Pos)> = match &*arg.kind {
            ExprKind::Row { fields, .. } => {
                let mut out = Vec::new();
                for f in fields {
                    match &*f.kind {
                        ExprKind::Star(parts) => out.extend(self.expand_star(parts, env, f.pos, &|_| false)?.into_iter().map(|(_, e, _)| (e, f.pos))),
                        _ => out.push((self.expr(f, env)?, f.pos)),
                    }
                }
                out
            }
            // A row constructor stays one when it is cast to a type of rows.
            ExprKind::Cast { arg: row, .. } if matches!(&*row.kind, ExprKind::Row { .. }) => match self.expr(arg, env)? {
                HirScalar::Call { func, args, .. } if func.name == "row_construct" => args.into_iter().map(|e| (e, arg.pos)).collect(),
                e => vec![(e, arg.pos)],
            },
            _ => vec![(self.expr(arg, env)?, arg.pos)],
        };
        let b = self.sub(q, env)?;
        if b.visible < left.len() {
            return Err(SqlError::new(state::SYNTAX_ERROR, "subquery has too few columns").at(op.pos));
        }
        if b.visible > left.len() {
            return Err(SqlError::new(state::SYNTAX_ERROR, "subquery has too many columns").at(op.pos));
        }
        let input = b.into_relation();
        let types = input.types();
        let right: Vec<(HirScalar, Pos)> =
            types.into_iter().enumerate().map(|(i, t)| (HirScalar::Column(ColumnRef { level: 0, column: i }, t), op.pos)).collect();
        let left = left
            .into_iter()
            .map(|(mut e, p)| {
                shift(&mut e, 0, 1);
                (e, p)
            })
            .collect();
        let comparison = self.compare_rows(op, left, right)?;
        if comparison.typ().ty != SqlType::Bool {
            let word = if quantifier == Quantifier::Any { "ANY/ALL" } else { "ANY/ALL" };
            return Err(SqlError::new(state::WRONG_OBJECT_TYPE, format!("op {word} (subquery) requires operator to yield boolean")).at(op.pos));
        }
        Ok(HirScalar::Quantified { quantifier, comparison: Box::new(comparison), input: Box::new(input) })
    }

    pub fn quantified(&self, arg: &Expr, op: &OpName, all: bool, rhs: &QuantifiedRhs, env: &Env) -> Result<HirScalar, SqlError> {
        match rhs {
            QuantifiedRhs::Query(q) => self.any_subquery(arg, op, if all { Quantifier::All } else { Quantifier::Any }, q, env),
            QuantifiedRhs::Array(a) => {
                let x = self.expr(arg, env)?;
                let array = self.expr(a, env)?;
                let array = self.without_domain(array)?;
                let xt = x.typ().ty;
                let at = array.typ().ty;
                let elem = match &at {
                    SqlType::Array(e) | SqlType::List(e) => (**e).clone(),
                    SqlType::Int2Vector => SqlType::Int2,
                    SqlType::OidVector => SqlType::Oid,
                    SqlType::Unknown => SqlType::Unknown,
                    _ => return Err(SqlError::new(state::WRONG_OBJECT_TYPE, "op ANY/ALL (array) requires array on right side").at(op.pos)),
                };
                let elem = elem.base().clone();
                let (o, l, r, ret) = self.operator(op, Some(&xt), &elem)?;
                if ret != SqlType::Bool {
                    return Err(SqlError::new(state::WRONG_OBJECT_TYPE, "op ANY/ALL (array) requires operator to yield boolean").at(op.pos));
                }
                let x = self.coerce_implicit(x, &l.unwrap_or(SqlType::Text), arg.pos)?;
                if r.array_oid() == 0 {
                    return Err(SqlError::new(state::UNDEFINED_OBJECT, format!("could not find array type for data type {}", r.sql_name())).at(op.pos));
                }
                // Only if the elements need it: the array keeps its own type otherwise.
                let array = if elem == r { array } else { self.coerce_implicit(array, &r.array_of(), a.pos)? };
                self.internal_with(if all { "all_op" } else { "any_op" }, o.func, vec![x, array], SqlType::Bool.nullable())
            }
        }
    }

    /// One field of a row constructor; `t.*` gives several.
    pub fn row_field(&self, f: &Expr, env: &Env, out: &mut Vec<(String, HirScalar)>) -> Result<(), SqlError> {
        if let ExprKind::Star(parts) = &*f.kind {
            for (name, e, _) in self.expand_star(parts, env, f.pos, &|_| false)? {
                out.push((name, e));
            }
            return Ok(());
        }
        let e = self.expr(f, env)?;
        // A literal stays of unknown type, so that a row takes its target's types.
        let e = if matches!(e, HirScalar::Literal(..)) { e } else { self.untyped_or_text(e, f.pos)? };
        out.push((format!("f{}", out.len() + 1), e));
        Ok(())
    }

    pub fn row(&self, fields: Vec<(String, HirScalar)>) -> Result<HirScalar, SqlError> {
        let types = fields.iter().enumerate().map(|(i, (_, e))| (format!("f{}", i + 1), e.typ())).collect();
        let ty = SqlType::Record(Arc::new(RecordType { oid: pseudo::RECORD, array_oid: 0, name: None, fields: types }));
        self.internal("row_construct", fields.into_iter().map(|f| f.1).collect(), ty.not_null())
    }

    /// `(a, b) op (c, d)`.
    pub fn row_comparison(&self, op: &OpName, left: &Expr, right: &Expr, env: &Env) -> Result<HirScalar, SqlError> {
        let (ExprKind::Row { fields: a, .. }, ExprKind::Row { fields: b, .. }) = (&*left.kind, &*right.kind) else {
            return Err(SqlError::internal("row comparison of no rows"));
        };
        let bind = |fs: &[Expr]| -> Result<Vec<(HirScalar, Pos)>, SqlError> {
            let mut out = Vec::new();
            for f in fs {
                if let ExprKind::Star(parts) = &*f.kind {
                    out.extend(self.expand_star(parts, env, f.pos, &|_| false)?.into_iter().map(|(_, e, _)| (e, f.pos)));
                } else {
                    out.push((self.expr(f, env)?, f.pos));
                }
            }
            Ok(out)
        };
        self.compare_rows(op, bind(a)?, bind(b)?)
    }

    pub fn compare_rows(&self, op: &OpName, left: Vec<(HirScalar, Pos)>, right: Vec<(HirScalar, Pos)>) -> Result<HirScalar, SqlError> {
        if left.len() != right.len() {
            return Err(SqlError::new(state::SYNTAX_ERROR, "unequal number of entries in row expressions").at(op.pos));
        }
        if left.is_empty() {
            return Err(SqlError::new(state::FEATURE_NOT_SUPPORTED, "cannot compare rows of zero length").at(op.pos));
        }
        let mut pairs: Vec<_> = left.into_iter().zip(right).collect();
        let apply = |name: &OpName, ((x, xp), (y, yp)): ((HirScalar, Pos), (HirScalar, Pos))| self.apply_binary(name, x, xp, y, yp);
        if pairs.len() == 1 {
            return pairs.pop().map_or_else(|| Err(SqlError::internal("row without a field")), |p| apply(op, p));
        }
        match op.name.as_str() {
            "=" => Ok(HirScalar::And(pairs.into_iter().map(|p| apply(op, p)).collect::<Result<_, _>>()?)),
            "<>" => Ok(HirScalar::Or(pairs.into_iter().map(|p| apply(op, p)).collect::<Result<_, _>>()?)),
            "<" | "<=" | ">" | ">=" | "~<~" | "~<=~" | "~>~" | "~>=~" => {
                // a < c OR (a = c AND (b < d OR …)); the last pair decides whether equality is enough.
                let strict = OpName { name: op.name.replace('=', ""), ..op.clone() };
                let eq = OpName { name: "=".into(), ..op.clone() };
                let mut tail = match pairs.pop() {
                    Some(p) => apply(op, p)?,
                    None => return Err(SqlError::internal("row without a field")),
                };
                while let Some(p) = pairs.pop() {
                    let less = apply(&strict, p.clone())?;
                    let same = apply(&eq, p)?;
                    tail = HirScalar::Or(vec![less, HirScalar::And(vec![same, tail])]);
                }
                Ok(tail)
            }
            other => {
                // Each pair needs the operator, whatever it would mean for rows.
                for p in pairs {
                    apply(op, p)?;
                }
                Err(SqlError::new(state::FEATURE_NOT_SUPPORTED, format!("could not determine interpretation of row comparison operator {other}"))
                    .with_hint("Row comparison operators must be associated with btree operator families.")
                    .at(op.pos))
            }
        }
    }

    /// `(a, b) = (SELECT x, y …)`.
    pub fn row_subquery(&self, op: &OpName, fields: &[Expr], q: &Query, env: &Env) -> Result<HirScalar, SqlError> {
        let b = self.sub(q, env)?;
        if b.visible != fields.len() {
            let word = if b.visible > fields.len() { "many" } else { "few" };
            return Err(SqlError::new(state::SYNTAX_ERROR, format!("subquery has too {word} columns")).at(op.pos));
        }
        let row = self.subquery_row(b)?;
        let mut left = Vec::new();
        for f in fields {
            left.push((self.expr(f, env)?, f.pos));
        }
        let right = (0..left.len()).map(|i| Ok((self.field_select(row.clone(), i)?, op.pos))).collect::<Result<_, SqlError>>()?;
        self.compare_rows(op, left, right)
    }

    /// A subquery of several columns as one value of a row type.
    pub fn subquery_row(&self, b: Bound) -> Result<HirScalar, SqlError> {
        let names = b.names.clone();
        let input = b.into_relation();
        let types = input.types();
        let n = types.len();
        let cols: Vec<(String, HirScalar)> =
            names.into_iter().zip(types.iter().enumerate().map(|(i, t)| HirScalar::Column(ColumnRef { level: 0, column: i }, t.clone()))).collect();
        let row = self.row(cols)?;
        let ty: ColType = row.typ().with_nullable(true);
        let hir = Hir::Project { input: Box::new(Hir::Map { input: Box::new(input), scalars: vec![row] }), outputs: vec![n] };
        Ok(HirScalar::Subquery(Box::new(hir), ty))
    }

    /// The number of rows LIMIT and OFFSET ask for.
    pub fn row_count(&self, e: &Expr, env: &Env, what: &str) -> Result<HirScalar, SqlError> {
        let x = self.expr(e, env)?;
        let from = x.typ().ty;
        self.try_coerce(x, &SqlType::Int8.nullable(), CastContext::Assignment, e.pos)?
            .ok_or_else(|| SqlError::new(state::DATATYPE_MISMATCH, format!("argument of {what} must be type bigint, not type {}", from.sql_name())).at(e.pos))
    }
}

fn one_or(mut parts: Vec<HirScalar>) -> HirScalar {
    if parts.len() == 1 {
        parts.swap_remove(0)
    } else {
        HirScalar::Or(parts)
    }
}
