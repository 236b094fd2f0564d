//! UNION, INTERSECT, EXCEPT and VALUES.

use super::query::{project, Bound};
use super::scope::{Clause, Env, Level};
use super::Binder;
use crate::ast::*;
use crate::hir::{ColumnRef, Hir, HirScalar};
use expr::catalog::CastContext;
use expr::ColumnOrder;
use repr::error::state;
use repr::{ColType, SqlError, SqlType, Value};
use std::rc::Rc;

impl Binder<'_> {
    /// A chain of set operations is bound from its first operand on, in a loop: unions may have thousands of branches.
    pub fn set_op(&self, q: &Query, env: &Env) -> Result<Bound, SqlError> {
        let mut chain = Vec::new();
        let mut first = q;
        while let QueryBody::SetOp { op, all, left, right } = &first.body {
            chain.push((*op, *all, &**left, &**right));
            if !is_bare(left) {
                break;
            }
            first = left;
        }
        let Some((_, _, left, _)) = chain.last() else { return Err(SqlError::internal("not a set operation")) };
        let mut so_far = Operands::new(self.query(left, env, false)?, left.pos);
        for (op, all, left, right) in chain.into_iter().rev() {
            let word = match op {
                SetOp::Union => "UNION",
                SetOp::Intersect => "INTERSECT",
                SetOp::Except => "EXCEPT",
            };
            let mut r = self.query(right, env, false)?;
            if so_far.types.len() != r.visible {
                return Err(SqlError::new(state::SYNTAX_ERROR, format!("each {word} query must have the same number of columns")).at(right.pos));
            }
            let mut types = Vec::with_capacity(r.visible);
            for (a, b) in so_far.types.iter().zip(r.types()) {
                let ty = self.common_type(&[(a.ty.clone(), left.pos), (b.ty.clone(), right.pos)], word)?;
                let typmod = if a.ty == b.ty && a.typmod == b.typmod { a.typmod } else { -1 };
                if !(all && op == SetOp::Union) {
                    self.require_equality(&ty, left.pos)?;
                }
                types.push(ColType { ty, typmod, nullable: a.nullable || b.nullable });
            }
            // What has no type yet gets that of its operation, whatever follows.
            if let ([(first, pos)], true) = (&mut so_far.parts[..], so_far.types.iter().any(|t| t.ty == SqlType::Unknown)) {
                self.settle(first, &types, word, *pos)?;
            }
            self.settle(&mut r, &types, word, right.pos)?;
            so_far.types = types;
            match op {
                // Rows that are made distinct in the end need not be so before.
                SetOp::Union if !all || !so_far.distinct => so_far.distinct = !all,
                SetOp::Union => so_far = self.sealed(so_far, word)?,
                SetOp::Intersect | SetOp::Except => {
                    let (names, types) = (so_far.names.clone(), so_far.types.clone());
                    let left_side = Box::new(self.united(so_far, word)?);
                    let right_side = Box::new(self.coerce_columns(r, &types, word, right.pos)?);
                    let hir = match op {
                        SetOp::Intersect => Hir::Intersect { left: left_side, right: right_side, all },
                        _ => Hir::Except { left: left_side, right: right_side, all },
                    };
                    so_far = Operands::new(Bound::new(hir, names), left.pos);
                    continue;
                }
            }
            so_far.parts.push((r, right.pos));
        }
        let (names, word) = (so_far.names.clone(), "UNION");
        if so_far.distinct || so_far.parts.len() < 2 {
            return Ok(Bound::new(self.united(so_far, word)?, names));
        }
        // UNION ALL: the rows of one operand after those of the other.
        let mut inputs = Vec::with_capacity(so_far.parts.len());
        for (i, (part, pos)) in so_far.parts.into_iter().enumerate() {
            let input = Box::new(self.coerce_columns(part, &so_far.types, word, pos)?);
            inputs.push(Hir::Map { input, scalars: vec![row_number(i)] });
        }
        let order = vec![ColumnOrder { column: names.len(), desc: false, nulls_last: true }];
        Ok(Bound { order, ..Bound::new(Hir::Union { inputs }, names) })
    }

    /// Untyped literals and parameters of an operand become of the common types.
    fn settle(&self, b: &mut Bound, types: &[ColType], word: &str, pos: Pos) -> Result<(), SqlError> {
        for (literal, t) in b.literals.iter_mut().zip(types) {
            if let Some(e) = literal.take_if(|e| e.typ().ty == SqlType::Unknown) {
                *literal = Some(self.coerce_common(e, &t.ty, word, pos)?);
            }
        }
        Ok(())
    }

    /// The operands as one relation of their common types.
    fn united(&self, operands: Operands, word: &str) -> Result<Hir, SqlError> {
        let mut inputs = Vec::with_capacity(operands.parts.len());
        for (part, pos) in operands.parts {
            inputs.push(self.coerce_columns(part, &operands.types, word, pos)?);
        }
        let all = if inputs.len() == 1 { inputs.remove(0) } else { Hir::Union { inputs } };
        Ok(if operands.distinct { Hir::Distinct { input: Box::new(all) } } else { all })
    }

    /// The operands as the first one of what follows.
    fn sealed(&self, operands: Operands, word: &str) -> Result<Operands, SqlError> {
        let (names, types) = (operands.names.clone(), operands.types.clone());
        let pos = operands.parts.first().map_or(0, |p| p.1);
        Ok(Operands { parts: vec![(Bound::new(self.united(operands, word)?, names.clone()), pos)], names, types, distinct: false })
    }

    /// The bound query as a relation whose columns have `types`.
    pub fn coerce_columns(&self, b: Bound, types: &[ColType], what: &str, pos: Pos) -> Result<Hir, SqlError> {
        let literals = b.literals.clone();
        let hir = b.into_relation();
        let have = hir.types();
        let mut scalars = Vec::new();
        let mut outputs = Vec::with_capacity(types.len());
        for (i, (h, t)) in have.iter().zip(types).enumerate() {
            let column = HirScalar::Column(ColumnRef { level: 0, column: i }, h.clone());
            if h.ty == t.ty {
                outputs.push(i);
                continue;
            }
            let e = literals.get(i).cloned().flatten().unwrap_or(column);
            let e = self.coerce_common(e, &t.ty, what, pos)?;
            scalars.push(e);
            outputs.push(have.len() + scalars.len() - 1);
        }
        let hir = if scalars.is_empty() { hir } else { Hir::Map { input: Box::new(hir), scalars } };
        Ok(project(hir, outputs))
    }

    /// VALUES: the rows' types are unified column by column.
    pub fn values(&self, rows: &[Vec<Expr>], env: &Env) -> Result<Bound, SqlError> {
        let level = Rc::new(Level::new(Vec::new(), Clause::Values));
        let here = env.push(level);
        let n = rows.first().map_or(0, Vec::len);
        let mut bound: Vec<Vec<(HirScalar, Pos)>> = Vec::with_capacity(rows.len());
        for row in rows {
            let mut out = Vec::with_capacity(n);
            for e in row {
                if let ExprKind::Star(parts) = &*e.kind {
                    out.extend(self.expand_star(parts, &here, e.pos, &|_| false)?.into_iter().map(|(_, x, _)| (x, e.pos)));
                } else {
                    out.push((self.expr(e, &here)?, e.pos));
                }
            }
            if out.len() != bound.first().map_or(out.len(), Vec::len) {
                let pos = row.first().map_or(0, |e| e.pos);
                return Err(SqlError::new(state::SYNTAX_ERROR, "VALUES lists must all be the same length").at(pos));
            }
            bound.push(out);
        }
        let width = bound.first().map_or(0, Vec::len);
        for c in 0..width {
            let types: Vec<(SqlType, Pos)> = bound.iter().map(|r| (r[c].0.typ().ty, r[c].1)).collect();
            let ty = self.common_type(&types, "VALUES")?;
            for r in &mut bound {
                let (e, pos) = r[c].clone();
                r[c].0 = self.coerce_common(e, &ty, "VALUES", pos)?;
            }
        }
        // The last column is the row's number: the order of the list.
        let rows: Vec<Vec<HirScalar>> = bound.into_iter().enumerate().map(|(i, r)| r.into_iter().map(|x| x.0).chain([row_number(i)]).collect()).collect();
        let mut b = Bound::new(rows_to_hir(rows), (1..=width).map(|i| format!("column{i}")).collect());
        b.order = vec![ColumnOrder { column: width, desc: false, nulls_last: true }];
        Ok(b)
    }

    /// For assignment: each column becomes the target's type (INSERT … SELECT).
    pub fn assign_columns(&self, b: Bound, targets: &[(String, ColType)], positions: Pos) -> Result<Hir, SqlError> {
        let (hir, outputs) = self.assigned(b, targets, positions)?;
        Ok(project(hir, outputs))
    }

    /// As [`Binder::assign_columns`], with the columns that only the order needs; and which columns are the targets'.
    pub fn assigned(&self, b: Bound, targets: &[(String, ColType)], positions: Pos) -> Result<(Hir, Vec<usize>), SqlError> {
        let literals = b.literals.clone();
        let hir = b.limited();
        let have = hir.types();
        let mut scalars = Vec::new();
        let mut outputs = Vec::with_capacity(targets.len());
        for (i, (h, (name, t))) in have.iter().zip(targets).enumerate() {
            if h.ty == t.ty && (t.typmod < 0 || t.typmod == h.typmod) {
                outputs.push(i);
                continue;
            }
            let column = HirScalar::Column(ColumnRef { level: 0, column: i }, h.clone());
            let e = literals.get(i).cloned().flatten().unwrap_or(column);
            scalars.push(self.assign(e, name, t, positions)?);
            outputs.push(have.len() + scalars.len() - 1);
        }
        let hir = if scalars.is_empty() { hir } else { Hir::Map { input: Box::new(hir), scalars } };
        Ok((hir, outputs))
    }

    /// One value assigned to a column: 42804 if its type does not fit.
    pub fn assign(&self, e: HirScalar, column: &str, to: &ColType, pos: Pos) -> Result<HirScalar, SqlError> {
        let from = e.typ();
        self.try_coerce(e, to, CastContext::Assignment, pos)?.ok_or_else(|| {
            SqlError::new(
                state::DATATYPE_MISMATCH,
                format!("column \"{column}\" is of type {} but expression is of type {}", to.ty.sql_name(), from.ty.sql_name()),
            )
            .with_hint("You will need to rewrite or cast the expression.")
            .at(pos)
        })
    }
}

/// Rows of expressions that read no own column: a constant if all are literals.
pub fn rows_to_hir(rows: Vec<Vec<HirScalar>>) -> Hir {
    let width = rows.first().map_or(0, Vec::len);
    let constant = rows.iter().flatten().all(|e| matches!(e, HirScalar::Literal(..)));
    if constant {
        let types: Vec<ColType> = (0..width)
            .map(|c| {
                let mut t = rows[0][c].typ();
                for r in &rows {
                    let u = r[c].typ();
                    t.nullable |= u.nullable;
                    if u.typmod != t.typmod {
                        t.typmod = -1;
                    }
                }
                t
            })
            .collect();
        let rows = rows
            .into_iter()
            .map(|r| {
                let values = r
                    .into_iter()
                    .map(|e| match e {
                        HirScalar::Literal(v, _) => v,
                        _ => Value::Null,
                    })
                    .collect();
                (values, 1)
            })
            .collect();
        return Hir::Constant { rows, types };
    }
    let mut inputs: Vec<Hir> = rows.into_iter().map(|r| Hir::Map { input: Box::new(super::from::unit()), scalars: r }).collect();
    if inputs.len() == 1 {
        return inputs.swap_remove(0);
    }
    Hir::Union { inputs }
}

fn row_number(i: usize) -> HirScalar {
    HirScalar::Literal(Value::Int8(i64::try_from(i).unwrap_or(i64::MAX)), SqlType::Int8.not_null())
}

/// Whether the query is a set operation and nothing more.
fn is_bare(q: &Query) -> bool {
    matches!(q.body, QueryBody::SetOp { .. }) && q.with.is_none() && q.order_by.is_empty() && q.limit.is_none() && q.offset.is_none() && q.as_of.is_none()
}

/// What a chain of set operations has gathered: a union of operands that still have their own types.
struct Operands {
    parts: Vec<(Bound, Pos)>,
    names: Vec<String>,
    /// The common types so far.
    types: Vec<ColType>,
    distinct: bool,
}

impl Operands {
    fn new(first: Bound, pos: Pos) -> Operands {
        Operands { names: first.names.clone(), types: first.types(), parts: vec![(first, pos)], distinct: false }
    }
}
