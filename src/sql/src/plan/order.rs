//! ORDER BY, DISTINCT, LIMIT: the last stages of a query.

use super::agg::order_of;
use super::query::{project, Bound, TargetItem};
use super::scope::{Clause, Env, Level, NsCol, NsItem};
use super::Binder;
use crate::ast::*;
use crate::hir::{ColumnRef, Hir, HirScalar};
use expr::catalog::pseudo;
use expr::ColumnOrder;
use repr::error::state;
use repr::{SqlError, SqlType, Value};
use std::rc::Rc;

/// One ORDER BY item; `order.column` is set when the columns are laid out.
pub struct SortItem {
    pub expr: HirScalar,
    pub order: ColumnOrder,
    pub pos: Pos,
    /// The item of the select list that it names.
    pub target: Option<usize>,
    /// ORDER BY says it; the others follow from FROM or from set-returning functions.
    pub written: bool,
}

/// `ORDER BY 2`: the position, from 0. Errors: out of range, or a constant that is no integer.
pub fn position_of(e: &Expr, n: usize, clause: &str) -> Result<Option<usize>, SqlError> {
    match &*e.kind {
        ExprKind::Number(text) => match text.parse::<usize>() {
            Ok(i) if i >= 1 && i <= n => Ok(Some(i - 1)),
            _ if text.contains(['.', 'e', 'E']) => Err(SqlError::new(state::SYNTAX_ERROR, format!("non-integer constant in {clause}")).at(e.pos)),
            _ => Err(SqlError::new(state::INVALID_COLUMN_REFERENCE, format!("{clause} position {text} is not in select list")).at(e.pos)),
        },
        ExprKind::String(_) | ExprKind::Null | ExprKind::Bool(_) | ExprKind::BitString(_) => {
            Err(SqlError::new(state::SYNTAX_ERROR, format!("non-integer constant in {clause}")).at(e.pos))
        }
        _ => Ok(None),
    }
}

/// The first items of the order must be the DISTINCT ON expressions, in any order.
fn matches_initial_order(sorted: &[usize], on: &[usize]) -> Result<(), SqlError> {
    for (k, c) in sorted.iter().enumerate() {
        if k < on.len() && !on.contains(c) || k >= on.len() && on.iter().any(|o| !sorted[..k].contains(o)) {
            return Err(SqlError::new(state::INVALID_COLUMN_REFERENCE, "SELECT DISTINCT ON expressions must match initial ORDER BY expressions"));
        }
    }
    Ok(())
}

impl Binder<'_> {
    /// The item of the select list that an output name or a position means.
    fn output(&self, e: &Expr, targets: &[TargetItem], clause: &str) -> Result<Option<usize>, SqlError> {
        if let ExprKind::Column(parts) = &*e.kind {
            if let [name] = parts.as_slice() {
                let mut hits = targets.iter().enumerate().filter(|(_, t)| t.name == name.name);
                if let Some((i, t)) = hits.next() {
                    if hits.any(|(_, o)| o.expr != t.expr) {
                        return Err(SqlError::new(state::AMBIGUOUS_COLUMN, format!("{clause} \"{}\" is ambiguous", name.name)).at(e.pos));
                    }
                    return Ok(Some(i));
                }
            }
        }
        position_of(e, targets.len(), clause)
    }

    /// An output name, a position, or an expression over the input.
    pub fn output_or_input(&self, e: &Expr, targets: &[TargetItem], env: &Env, clause: &str) -> Result<HirScalar, SqlError> {
        if let Some(i) = self.output(e, targets, clause)? {
            return Ok(targets[i].expr.clone());
        }
        let x = self.expr(e, env)?;
        self.text_if_unknown(x, e.pos)
    }

    pub fn sort_item(&self, o: &OrderBy, targets: &[TargetItem], env: &Env) -> Result<SortItem, SqlError> {
        let target = self.output(&o.expr, targets, "ORDER BY")?;
        let expr = self.output_or_input(&o.expr, targets, env, "ORDER BY")?;
        let expr = self.text_if_unknown(expr, o.expr.pos)?;
        self.require_order(&expr.typ().ty, o.expr.pos)?;
        Ok(SortItem { expr, order: order_of(o, 0, o.expr.pos)?, pos: o.expr.pos, target, written: true })
    }

    pub fn require_equality(&self, ty: &SqlType, pos: Pos) -> Result<(), SqlError> {
        if matches!(ty, SqlType::Record(_) | SqlType::Enum(_) | SqlType::List(_) | SqlType::Map(_)) && ty.has_order() {
            return Ok(());
        }
        let ty = if ty.oid() == pseudo::RECORD { ty.unordered().unwrap_or(ty) } else { ty };
        if ty.has_order() && self.comparison("=", ty, pos).is_ok() {
            return Ok(());
        }
        Err(SqlError::new(state::UNDEFINED_FUNCTION, format!("could not identify an equality operator for type {}", ty.sql_name())).at(pos))
    }

    /// As [`Binder::require_equality`], of the key of an index or constraint.
    pub fn require_index_class(&self, ty: &SqlType, pos: Pos) -> Result<(), SqlError> {
        self.require_equality(ty, pos).map_err(|_| {
            let message = format!("data type {} has no default operator class for access method \"btree\"", ty.sql_name());
            let hint = "You must specify an operator class for the index or define a default operator class for the data type.";
            SqlError::new(state::UNDEFINED_OBJECT, message).with_hint(hint).at(pos)
        })
    }

    /// Lays out the result: the select list's columns, then those of the order; applies DISTINCT.
    pub fn finish_select(
        &self,
        distinct: &Distinct,
        hir: Hir,
        targets: Vec<TargetItem>,
        sort: Vec<SortItem>,
        distinct_on: Vec<HirScalar>,
        literals: Vec<Option<HirScalar>>,
    ) -> Result<Bound, SqlError> {
        let names: Vec<String> = targets.iter().map(|t| t.name.clone()).collect();
        let n = targets.len();
        let mut layout: Vec<HirScalar> = targets.iter().map(|t| t.expr.clone()).collect();
        let place = |e: &HirScalar, layout: &mut Vec<HirScalar>| match layout.iter().position(|x| x == e) {
            Some(i) => i,
            None => {
                layout.push(e.clone());
                layout.len() - 1
            }
        };
        let mut order: Vec<ColumnOrder> = Vec::new();
        let mut sorted: Vec<usize> = Vec::new();
        let mut written = 0;
        for i in &sort {
            let c = place(&i.expr, &mut layout);
            if c >= n && matches!(distinct, Distinct::Distinct) {
                return Err(SqlError::new(state::INVALID_COLUMN_REFERENCE, "for SELECT DISTINCT, ORDER BY expressions must appear in select list").at(i.pos));
            }
            if !sorted.contains(&c) {
                sorted.push(c);
                written += usize::from(i.written);
                order.push(ColumnOrder { column: c, ..i.order });
            }
        }
        let on: Vec<usize> = distinct_on.iter().map(|e| place(e, &mut layout)).collect();
        let arity = hir.arity();
        let mut scalars = Vec::new();
        let outputs: Vec<usize> = layout
            .iter()
            .map(|e| match e {
                HirScalar::Column(ColumnRef { level: 0, column }, _) => *column,
                _ => {
                    scalars.push(e.clone());
                    arity + scalars.len() - 1
                }
            })
            .collect();
        let hir = if scalars.is_empty() { hir } else { Hir::Map { input: Box::new(hir), scalars } };
        let mut hir = project(hir, outputs);
        match distinct {
            Distinct::All => {}
            Distinct::Distinct => {
                for t in &targets {
                    self.require_equality(&t.expr.typ().ty, t.pos)?;
                }
                hir = Hir::Distinct { input: Box::new(hir) };
            }
            Distinct::On(_) => {
                matches_initial_order(&sorted[..written], &on)?;
                for e in &distinct_on {
                    self.require_equality(&e.typ().ty, 0)?;
                }
                let one = HirScalar::Literal(Value::Int8(1), SqlType::Int8.not_null());
                hir = Hir::TopK { input: Box::new(hir), group_key: on, order_by: order.clone(), limit: Some(one), offset: None, with_ties: false };
            }
        }
        Ok(Bound { hir, names, visible: n, order, natural: true, system: false, limit: None, offset: None, with_ties: false, literals })
    }

    /// DISTINCT ON before the set-returning functions of the select list: all columns of `hir` stay.
    pub fn first_rows(&self, hir: Hir, sort: &[SortItem], on: Vec<HirScalar>) -> Result<Hir, SqlError> {
        let (arity, types) = (hir.arity(), hir.types());
        let mut layout: Vec<HirScalar> = types.iter().enumerate().map(|(column, t)| HirScalar::Column(ColumnRef { level: 0, column }, t.clone())).collect();
        let mut place = |e: &HirScalar| match (e, layout.iter().position(|x| x == e)) {
            (HirScalar::Column(ColumnRef { level: 0, column }, _), _) => *column,
            (_, Some(i)) => i,
            _ => {
                layout.push(e.clone());
                layout.len() - 1
            }
        };
        let order_by: Vec<ColumnOrder> = sort.iter().map(|i| ColumnOrder { column: place(&i.expr), ..i.order }).collect();
        let group_key: Vec<usize> = on.iter().map(place).collect();
        let written: Vec<usize> = order_by.iter().zip(sort).filter(|(_, i)| i.written).map(|(o, _)| o.column).collect();
        matches_initial_order(&written, &group_key)?;
        for e in &on {
            self.require_equality(&e.typ().ty, 0)?;
        }
        let scalars = layout.split_off(arity);
        let input = if scalars.is_empty() { hir } else { Hir::Map { input: Box::new(hir), scalars } };
        let limit = Some(HirScalar::Literal(Value::Int8(1), SqlType::Int8.not_null()));
        Ok(Hir::TopK { input: Box::new(input), group_key, order_by, limit, offset: None, with_ties: false })
    }

    /// ORDER BY of a set operation or VALUES: by output names and positions; VALUES knows expressions over its columns too.
    pub fn order_output(&self, mut b: Bound, order_by: &[OrderBy], env: &Env, what: &str, with_ties: bool) -> Result<Bound, SqlError> {
        if order_by.is_empty() {
            return Ok(b);
        }
        let natural = std::mem::take(&mut b.order);
        b.natural = false;
        let types = b.types();
        let cols: Vec<NsCol> =
            b.names.iter().cloned().zip(types.iter().cloned()).enumerate().map(|(pos, (name, ty))| NsCol { name, pos, ty, whole: None }).collect();
        let item = NsItem {
            name: String::new(),
            schema: None,
            cols,
            rel_visible: false,
            cols_visible: true,
            row_oid: pseudo::RECORD,
            row_names: None,
            aliased: 0,
            hidden: None,
            rel_oid: 0,
            rel: None,
            scalar: false,
            null_extended: false,
            key: None,
        };
        let targets: Vec<TargetItem> = (0..b.visible)
            .map(|i| TargetItem { name: b.names[i].clone(), expr: HirScalar::Column(ColumnRef { level: 0, column: i }, types[i].clone()), pos: 0 })
            .collect();
        let level = Rc::new(Level::new(vec![item], Clause::OrderBy));
        let here = env.push(level);
        let mut scalars = Vec::new();
        for o in order_by {
            let i = self.sort_item(o, &targets, &here)?;
            let column = match &i.expr {
                HirScalar::Column(ColumnRef { level: 0, column }, _) => *column,
                _ if what != "VALUES" => {
                    return Err(SqlError::new(state::FEATURE_NOT_SUPPORTED, format!("invalid {what} ORDER BY clause"))
                        .with_detail("Only result column names can be used, not expressions or functions.")
                        .with_hint("Add the expression/function to every SELECT, or move the UNION into a FROM clause.")
                        .at(i.pos))
                }
                other => {
                    scalars.push(other.clone());
                    b.hir.arity() + scalars.len() - 1
                }
            };
            b.order.push(ColumnOrder { column, ..i.order });
        }
        if !scalars.is_empty() {
            b.hir = Hir::Map { input: Box::new(b.hir), scalars };
        }
        if !with_ties {
            b.order.extend(natural);
        }
        Ok(b)
    }

    pub fn limits(&self, b: &mut Bound, q: &Query, env: &Env) -> Result<(), SqlError> {
        let at = |clause| env.push(Rc::new(Level::new(Vec::new(), clause)));
        let null = |e: &HirScalar| matches!(e, HirScalar::Literal(Value::Null, _));
        if let Some(o) = &q.offset {
            let e = self.row_count(o, &at(Clause::Offset), "OFFSET")?;
            b.offset = (!null(&e)).then_some(e);
        }
        if let Some(l) = &q.limit {
            let e = self.row_count(l, &at(Clause::Limit), "LIMIT")?;
            if q.with_ties && null(&e) {
                return Err(SqlError::new(state::INVALID_ROW_COUNT_IN_LIMIT, "row count cannot be null in FETCH FIRST ... WITH TIES clause"));
            }
            b.limit = (!null(&e)).then_some(e);
            b.with_ties = q.with_ties;
        }
        Ok(())
    }
}
