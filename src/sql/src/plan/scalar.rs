//! Scalar expressions: from the tree to HIR with every type known.
//!
//! A literal stays of type unknown until something says what it is. Calls of aggregates, window functions and set-returning
//! functions become virtual columns of their level (see `calls`).

use super::scope::Env;
use super::Binder;
use crate::ast::*;
use crate::hir::HirScalar;
use expr::catalog::{pseudo, CastContext, ProcKind};
use repr::error::state;
use repr::{ColType, SqlError, SqlType, Value};

impl Binder<'_> {
    pub fn expr(&self, e: &Expr, env: &Env) -> Result<HirScalar, SqlError> {
        stacker::maybe_grow(128 * 1024, 2 * 1024 * 1024, || self.expr_inner(e, env))
    }

    /// A boolean condition.
    pub fn condition(&self, e: &Expr, env: &Env, what: &str) -> Result<HirScalar, SqlError> {
        let x = self.expr(e, env)?;
        self.coerce_bool(x, what, e.pos)
    }

    fn expr_inner(&self, e: &Expr, env: &Env) -> Result<HirScalar, SqlError> {
        let pos = e.pos;
        match &*e.kind {
            ExprKind::Column(parts) => self.resolve_column(parts, env),
            ExprKind::Param(n) => self.parameter(*n, pos),
            ExprKind::Null => Ok(HirScalar::Literal(Value::Null, SqlType::Unknown.nullable())),
            ExprKind::Bool(b) => Ok(HirScalar::Literal(Value::Bool(*b), SqlType::Bool.not_null())),
            ExprKind::Number(n) => self.number(n, pos),
            ExprKind::String(s) => Ok(HirScalar::Literal(Value::Text(s.clone()), SqlType::Unknown.not_null())),
            ExprKind::BitString(bits) => Ok(HirScalar::Literal(Value::Text(bits.clone()), SqlType::Bit.not_null())),
            ExprKind::Unary { op, arg } => {
                let x = self.expr(arg, env)?;
                self.prefix(op, x, arg.pos)
            }
            ExprKind::Binary { op, left, right } => self.binary(op, left, right, env),
            ExprKind::And(xs) => self.connective(xs, env, "AND").map(HirScalar::And),
            ExprKind::Or(xs) => self.connective(xs, env, "OR").map(HirScalar::Or),
            ExprKind::Not(x) => Ok(HirScalar::Not(Box::new(self.condition(x, env, "NOT")?))),
            ExprKind::IsNull { arg, not } => {
                let x = self.expr(arg, env)?;
                let x = self.untyped_or_text(x, arg.pos)?;
                if matches!(x.typ().ty.base(), SqlType::Record(_)) {
                    let x = self.without_domain(x)?;
                    let name = if *not { "record_is_not_null" } else { "record_is_null" };
                    return self.internal(name, vec![x], SqlType::Bool.not_null());
                }
                let test = HirScalar::IsNull(Box::new(x));
                Ok(if *not { HirScalar::Not(Box::new(test)) } else { test })
            }
            ExprKind::IsBool { arg, test, not } => {
                let words = match (test, not) {
                    (BoolTest::True, false) => "IS TRUE",
                    (BoolTest::True, true) => "IS NOT TRUE",
                    (BoolTest::False, false) => "IS FALSE",
                    (BoolTest::False, true) => "IS NOT FALSE",
                    (BoolTest::Unknown, false) => "IS UNKNOWN",
                    (BoolTest::Unknown, true) => "IS NOT UNKNOWN",
                };
                let x = self.condition(arg, env, words)?;
                let name = match (test, not) {
                    (BoolTest::Unknown, _) => {
                        let t = HirScalar::IsNull(Box::new(x));
                        return Ok(if *not { HirScalar::Not(Box::new(t)) } else { t });
                    }
                    (BoolTest::True, false) => "is_true",
                    (BoolTest::True, true) => "is_not_true",
                    (BoolTest::False, false) => "is_false",
                    (BoolTest::False, true) => "is_not_false",
                };
                self.internal(name, vec![x], SqlType::Bool.not_null())
            }
            ExprKind::IsDistinct { left, right, not } => self.is_distinct(left, right, *not, pos, env),
            ExprKind::Like { op, arg, pattern } => {
                let op = OpName { schema: None, name: (*op).into(), pos };
                self.binary(&op, arg, pattern, env)
            }
            ExprKind::Between { arg, low, high, not, symmetric } => self.between(arg, low, high, *not, *symmetric, pos, env),
            ExprKind::InList { arg, list, not } => self.in_list(arg, list, *not, pos, env),
            ExprKind::InSubquery { arg, query, not } => self.in_subquery(arg, query, *not, pos, env),
            ExprKind::Quantified { arg, op, all, rhs } => self.quantified(arg, op, *all, rhs, env),
            ExprKind::Exists(q) => self.exists(q, env),
            ExprKind::Subquery(q) => self.scalar_subquery(q, env, pos),
            ExprKind::ArraySubquery(q) => self.array_subquery(q, env, pos),
            ExprKind::Array(elems) => self.array(elems, None, pos, env),
            ExprKind::Row { fields, .. } => {
                let mut out = Vec::new();
                for f in fields {
                    self.row_field(f, env, &mut out)?;
                }
                self.row(out)
            }
            ExprKind::Func(call) => self.call(call, pos, env),
            ExprKind::Case { operand, branches, otherwise } => self.case(operand.as_ref(), branches, otherwise.as_ref(), pos, env),
            ExprKind::Coalesce(args) => {
                let (args, ty) = self.common_args(args, "COALESCE", env)?;
                let nullable = args.iter().all(|a| a.typ().nullable);
                let typmod = common_typmod(args.iter());
                Ok(HirScalar::Coalesce(args, ColType { ty, typmod, nullable }))
            }
            ExprKind::MinMax { greatest, args } => {
                let name = if *greatest { "GREATEST" } else { "LEAST" };
                let (args, ty) = self.common_args(args, name, env)?;
                self.require_order(&ty, pos).map_err(|_| {
                    SqlError::new(state::UNDEFINED_FUNCTION, format!("could not identify a comparison function for type {}", ty.sql_name())).at(pos)
                })?;
                let nullable = args.iter().all(|a| a.typ().nullable);
                let typmod = common_typmod(args.iter());
                self.internal(if *greatest { "greatest" } else { "least" }, args, ColType { ty, typmod, nullable })
            }
            ExprKind::NullIf(a, b) => {
                let (x, y) = (self.expr(a, env)?, self.expr(b, env)?);
                let op = OpName { schema: None, name: "=".into(), pos };
                let (o, l, r, _) = self.operator(&op, Some(&x.typ().ty), &y.typ().ty).map_err(|e| SqlError { position: Some(pos), ..e })?;
                let lt = l.unwrap_or(SqlType::Text);
                let x = self.coerce_implicit(x, &lt, a.pos)?;
                let y = self.coerce_implicit(y, &r, b.pos)?;
                let ty = x.typ().with_nullable(true);
                self.internal_with("nullif", o.func, vec![x, y], ty)
            }
            ExprKind::Cast { arg, ty } => self.cast(arg, ty, pos, env),
            ExprKind::Collate { arg, collation } => {
                let x = self.expr(arg, env)?;
                let x = self.text_if_unknown(x, arg.pos)?;
                self.check_collation(&x.typ().ty, collation, pos)?;
                let name = collation.last().map_or("", String::as_str);
                if super::types_of::is_own_order(name) {
                    return Err(SqlError::unsupported(format!("collation \"{name}\""), "collation \"C\" orders by code point").at(pos));
                }
                Ok(x)
            }
            ExprKind::Indirection { arg, path } => self.indirection(arg, path, env),
            ExprKind::SqlValue(what, precision) => self.sql_value(*what, *precision, pos),
            ExprKind::Grouping(args) => self.grouping(args, env, pos),
            ExprKind::Star(parts) => {
                // `count(t.*)`, `ROW(t.*)` elsewhere: the row as a value.
                if let Some(rel) = parts.last() {
                    let schema = parts.len().checked_sub(2).map(|i| parts[i].name.as_str());
                    return match self.find_item(schema, &rel.name, env, pos)? {
                        Some((level, item)) => self.whole_row(item, level),
                        None => Err(self.missing_relation(schema, &rel.name, env, pos)),
                    };
                }
                Err(SqlError::new(state::SYNTAX_ERROR, "row expansion via \"*\" is not supported here").at(pos))
            }
            ExprKind::Default => Err(SqlError::new(state::SYNTAX_ERROR, "DEFAULT is not allowed in this context").at(pos)),
        }
    }

    fn parameter(&self, n: usize, pos: Pos) -> Result<HirScalar, SqlError> {
        let given = self.params.borrow().values.as_ref().map(|values| values.get(n - 1).cloned());
        match given {
            _ if self.params.borrow().none => return Err(SqlError::new(state::UNDEFINED_PARAMETER, format!("there is no parameter ${n}")).at(pos)),
            Some(Some((v, t))) => {
                let plain = t.clone().nullable().without_domains();
                let x = HirScalar::Literal(v.clone(), plain.with_nullable(v.is_null()));
                return if t.has_domain() { self.coerce(x, &t.nullable(), CastContext::Assignment, pos) } else { Ok(x) };
            }
            Some(None) => return Err(SqlError::new(state::UNDEFINED_PARAMETER, format!("there is no parameter ${n}")).at(pos)),
            None => {}
        }
        let mut p = self.params.borrow_mut();
        if n > p.types.len() {
            if n > 65_535 {
                return Err(SqlError::new(state::UNDEFINED_PARAMETER, format!("there is no parameter ${n}")).at(pos));
            }
            p.types.resize(n, None);
        }
        let ty = p.types[n - 1].clone().unwrap_or(SqlType::Unknown);
        Ok(HirScalar::Parameter(n - 1, ty.nullable()))
    }

    /// Integers are int4, else int8, else numeric.
    fn number(&self, n: &str, pos: Pos) -> Result<HirScalar, SqlError> {
        if let Ok(v) = n.parse::<i32>() {
            return Ok(HirScalar::Literal(Value::Int4(v), SqlType::Int4.not_null()));
        }
        if let Ok(v) = n.parse::<i64>() {
            return Ok(HirScalar::Literal(Value::Int8(v), SqlType::Int8.not_null()));
        }
        let text = HirScalar::Literal(Value::Text(n.to_owned()), SqlType::Unknown.not_null());
        self.coerce(text, &SqlType::Numeric.not_null(), CastContext::Explicit, pos)
    }

    /// As [`Binder::text_if_unknown`], where a parameter gets no type: another place must give it one, and before.
    pub fn untyped_or_text(&self, e: HirScalar, pos: Pos) -> Result<HirScalar, SqlError> {
        if let HirScalar::Parameter(n, t) = &e {
            if t.ty == SqlType::Unknown {
                self.params.borrow_mut().untyped.push((*n, pos));
                return Ok(e);
            }
        }
        self.text_if_unknown(e, pos)
    }

    /// A literal that nothing else gives a type is text.
    pub fn text_if_unknown(&self, e: HirScalar, pos: Pos) -> Result<HirScalar, SqlError> {
        if e.typ().ty == SqlType::Unknown {
            return self.coerce_implicit(e, &SqlType::Text, pos);
        }
        Ok(e)
    }

    fn connective(&self, xs: &[Expr], env: &Env, what: &str) -> Result<Vec<HirScalar>, SqlError> {
        xs.iter().map(|x| self.condition(x, env, what)).collect()
    }

    fn prefix(&self, op: &OpName, x: HirScalar, pos: Pos) -> Result<HirScalar, SqlError> {
        let (o, _, r, ret) = self.operator(op, None, &x.typ().ty)?;
        let x = self.coerce_implicit(x, &r, pos)?;
        self.call_oid(o.func, vec![x], ret.nullable())
    }

    fn binary(&self, op: &OpName, left: &Expr, right: &Expr, env: &Env) -> Result<HirScalar, SqlError> {
        // Row comparison is field by field; `x = NULL` is not special.
        if is_row(left) && is_row(right) {
            return self.row_comparison(op, left, right, env);
        }
        if let (ExprKind::Row { fields, .. }, ExprKind::Subquery(q)) = (&*left.kind, &*right.kind) {
            return self.row_subquery(op, fields, q, env);
        }
        let x = self.expr(left, env)?;
        let y = self.expr(right, env)?;
        self.apply_binary(op, x, left.pos, y, right.pos)
    }

    pub fn apply_binary(&self, op: &OpName, x: HirScalar, lpos: Pos, y: HirScalar, rpos: Pos) -> Result<HirScalar, SqlError> {
        let (x, y) = (self.logical_time(x, &y)?, y);
        let y = self.logical_time(y, &x)?;
        if let Some(e) = self.collection_operator(op, &x, lpos, &y, rpos)? {
            return Ok(e);
        }
        let (o, l, r, ret) = self.operator(op, Some(&x.typ().ty), &y.typ().ty)?;
        let x = self.coerce_implicit(x, &l.unwrap_or(SqlType::Text), lpos)?;
        let y = self.coerce_implicit(y, &r, rpos)?;
        if o.left == pseudo::RECORD && o.right == pseudo::RECORD {
            similar_rows(&x.typ().ty, &y.typ().ty).map_err(|e| e.at(op.pos))?;
            let what = match o.name {
                "=" | "<>" => "an equality operator",
                "<" | "<=" | ">" | ">=" => "a comparison function",
                _ => "",
            };
            if let (Some(t), false) = (x.typ().ty.unordered().or(y.typ().ty.unordered()), what.is_empty()) {
                return Err(SqlError::new(state::UNDEFINED_FUNCTION, format!("could not identify {what} for type {}", t.sql_name())));
            }
        }
        self.call_oid(o.func, vec![x, y], ret.nullable())
    }

    /// `mz_now()` beside a timestamp is the same instant as `now()`.
    fn logical_time(&self, e: HirScalar, other: &HirScalar) -> Result<HirScalar, SqlError> {
        let logical = matches!(&e, HirScalar::Call { func, args, .. } if func.name == "mz_now" && args.is_empty());
        if logical && matches!(other.typ().ty, SqlType::Timestamp | SqlType::TimestampTz | SqlType::Date | SqlType::Interval) {
            let now = self.function(&["pg_catalog", "now"], &[], &[], false, 0)?;
            return self.call_oid(now.proc.oid, Vec::new(), SqlType::TimestampTz.not_null());
        }
        Ok(e)
    }

    fn is_distinct(&self, left: &Expr, right: &Expr, not: bool, pos: Pos, env: &Env) -> Result<HirScalar, SqlError> {
        let name = if not { "is_not_distinct" } else { "is_distinct" };
        if let (ExprKind::Row { fields: a, .. }, ExprKind::Row { fields: b, .. }) = (&*left.kind, &*right.kind) {
            if a.len() != b.len() {
                return Err(SqlError::new(state::SYNTAX_ERROR, "unequal number of entries in row expressions").at(pos));
            }
            let parts: Vec<HirScalar> = a.iter().zip(b).map(|(x, y)| self.is_distinct(x, y, not, pos, env)).collect::<Result<_, _>>()?;
            return Ok(if not { HirScalar::And(parts) } else { HirScalar::Or(parts) });
        }
        let (x, y) = (self.expr(left, env)?, self.expr(right, env)?);
        // IS DISTINCT FROM NULL is a NULL test.
        for (literal, other) in [(&x, &y), (&y, &x)] {
            if matches!(literal, HirScalar::Literal(Value::Null, t) if t.ty == SqlType::Unknown) && !matches!(other.typ().ty, SqlType::Record(_)) {
                let test = HirScalar::IsNull(Box::new(self.untyped_or_text(other.clone(), pos)?));
                return Ok(if not { test } else { HirScalar::Not(Box::new(test)) });
            }
        }
        let op = OpName { schema: None, name: "=".into(), pos };
        let (o, l, r, _) = self.operator(&op, Some(&x.typ().ty), &y.typ().ty)?;
        let x = self.coerce_implicit(x, &l.unwrap_or(SqlType::Text), left.pos)?;
        let y = self.coerce_implicit(y, &r, right.pos)?;
        self.internal_with(name, o.func, vec![x, y], SqlType::Bool.not_null())
    }

    #[allow(clippy::too_many_arguments)]
    fn between(&self, arg: &Expr, low: &Expr, high: &Expr, not: bool, symmetric: bool, pos: Pos, env: &Env) -> Result<HirScalar, SqlError> {
        let (ge, le, lt, gt) = (op_at(">=", pos), op_at("<=", pos), op_at("<", pos), op_at(">", pos));
        let inside = |lo: &Expr, hi: &Expr| -> Result<HirScalar, SqlError> {
            Ok(if not {
                HirScalar::Or(vec![self.binary(&lt, arg, lo, env)?, self.binary(&gt, arg, hi, env)?])
            } else {
                HirScalar::And(vec![self.binary(&ge, arg, lo, env)?, self.binary(&le, arg, hi, env)?])
            })
        };
        let one = inside(low, high)?;
        if !symmetric {
            return Ok(one);
        }
        let two = inside(high, low)?;
        Ok(if not { HirScalar::And(vec![one, two]) } else { HirScalar::Or(vec![one, two]) })
    }

    /// Arguments brought to their common type.
    pub fn common_args(&self, args: &[Expr], what: &str, env: &Env) -> Result<(Vec<HirScalar>, SqlType), SqlError> {
        let bound: Vec<HirScalar> = args.iter().map(|a| self.expr_no_sets(a, env, what)).collect::<Result<_, _>>()?;
        let types: Vec<(SqlType, Pos)> = bound.iter().zip(args).map(|(b, a)| (b.typ().ty, a.pos)).collect();
        let ty = self.common_type(&types, what)?;
        let out = bound.into_iter().zip(args).map(|(b, a)| self.coerce_common(b, &ty, what, a.pos)).collect::<Result<_, _>>()?;
        Ok((out, ty))
    }

    /// An expression in which a set-returning function is not allowed: a branch that may not be evaluated.
    fn expr_no_sets(&self, e: &Expr, env: &Env, what: &str) -> Result<HirScalar, SqlError> {
        let Some(level) = env.level() else { return self.expr(e, env) };
        let words = match what {
            "CASE" => "CASE",
            "COALESCE" => "COALESCE",
            _ => return self.expr(e, env),
        };
        let before = level.calls.no_sets.replace(Some(words));
        let r = self.expr(e, env);
        level.calls.no_sets.set(before);
        r
    }

    fn case(&self, operand: Option<&Expr>, branches: &[(Expr, Expr)], otherwise: Option<&Expr>, pos: Pos, env: &Env) -> Result<HirScalar, SqlError> {
        let operand = match operand {
            Some(o) => {
                let x = self.expr_no_sets(o, env, "CASE")?;
                Some((self.text_if_unknown(x, o.pos)?, o.pos))
            }
            None => None,
        };
        let mut conds = Vec::with_capacity(branches.len());
        for (c, _) in branches {
            let cond = match &operand {
                Some((x, xpos)) => {
                    let y = self.expr_no_sets(c, env, "CASE")?;
                    let e = self.apply_binary(&op_at("=", c.pos), x.clone(), *xpos, y, c.pos)?;
                    self.coerce_bool(e, "CASE/WHEN", c.pos)?
                }
                None => {
                    let y = self.expr_no_sets(c, env, "CASE")?;
                    self.coerce_bool(y, "CASE/WHEN", c.pos)?
                }
            };
            conds.push(cond);
        }
        // Postgres puts ELSE first when it chooses the type.
        let null = Expr::new(ExprKind::Null, pos);
        let else_expr = otherwise.unwrap_or(&null);
        let mut results = vec![self.expr_no_sets(else_expr, env, "CASE")?];
        let mut positions = vec![else_expr.pos];
        for (_, r) in branches {
            results.push(self.expr_no_sets(r, env, "CASE")?);
            positions.push(r.pos);
        }
        let types: Vec<(SqlType, Pos)> = results.iter().zip(&positions).map(|(r, p)| (r.typ().ty, *p)).collect();
        let ty = self.common_type(&types, "CASE")?;
        let mut out = Vec::with_capacity(results.len());
        for (r, p) in results.into_iter().zip(&positions) {
            let what = if out.is_empty() { "CASE/ELSE" } else { "CASE/WHEN" };
            out.push(self.coerce_common(r, &ty, what, *p)?);
        }
        let nullable = out.iter().any(|e| e.typ().nullable);
        let typmod = common_typmod(out.iter());
        let otherwise = Box::new(out.remove(0));
        Ok(HirScalar::Case { branches: conds.into_iter().zip(out).collect(), otherwise, ty: ColType { ty, typmod, nullable } })
    }

    /// ARRAY[…]; `target` is the array type that a cast around it asks for.
    fn array(&self, elems: &[Expr], target: Option<&SqlType>, pos: Pos, env: &Env) -> Result<HirScalar, SqlError> {
        let elem_target = match target {
            Some(SqlType::Array(e)) => Some((**e).clone()),
            _ => None,
        };
        if elems.is_empty() {
            return match target {
                Some(t) => self.internal("array_construct", Vec::new(), t.clone().not_null()),
                None => Err(SqlError::new(state::INDETERMINATE_DATATYPE, "cannot determine type of empty array")
                    .with_hint("Explicitly cast to the desired type, for example ARRAY[]::integer[].")
                    .at(pos)),
            };
        }
        let mut bound = Vec::with_capacity(elems.len());
        let mut nested = false;
        for e in elems {
            let x = match &*e.kind {
                ExprKind::Array(inner) => {
                    nested = true;
                    self.array(inner, target, e.pos, env)?
                }
                _ => self.expr(e, env)?,
            };
            nested |= matches!(x.typ().ty, SqlType::Array(_));
            bound.push(x);
        }
        let types: Vec<(SqlType, Pos)> = bound.iter().zip(elems).map(|(b, e)| (b.typ().ty, e.pos)).collect();
        let ty = match (&elem_target, nested) {
            (Some(t), false) => t.clone(),
            (Some(t), true) => t.clone().array_of(),
            (None, _) => self.common_type(&types, "ARRAY")?,
        };
        let context = if target.is_some() { CastContext::Explicit } else { CastContext::Implicit };
        let mut out = Vec::with_capacity(bound.len());
        for (b, e) in bound.into_iter().zip(elems) {
            let from = b.typ().ty;
            let c = self.try_coerce(b, &ty.clone().nullable(), context, e.pos)?;
            out.push(c.ok_or_else(|| match target {
                Some(_) => self.cannot_cast(&from, &ty, e.pos),
                None => SqlError::new(state::CANNOT_COERCE, format!("ARRAY could not convert type {} to {}", from.sql_name(), ty.sql_name())).at(e.pos),
            })?);
        }
        let array = match &ty {
            SqlType::Array(e) => SqlType::Array(e.clone()),
            SqlType::Domain(_) if matches!(ty.base(), SqlType::Array(_)) => {
                return Err(
                    SqlError::unsupported(format!("an array of {}, which is over an array", ty.sql_name()), "use a row type with an array in it").at(pos)
                );
            }
            t if t.array_oid() == 0 => {
                return Err(SqlError::new(state::UNDEFINED_OBJECT, format!("could not find array type for data type {}", t.sql_name())).at(pos))
            }
            t => t.clone().array_of(),
        };
        self.internal("array_construct", out, array.not_null())
    }

    fn cast(&self, arg: &Expr, ty: &TypeName, pos: Pos, env: &Env) -> Result<HirScalar, SqlError> {
        let to = self.resolve_type(ty)?;
        if let (ExprKind::Array(elems), SqlType::Array(_)) = (&*arg.kind, to.ty.base()) {
            let a = self.array(elems, Some(to.ty.base()), arg.pos, env)?;
            return self.coerce(a, &to, CastContext::Explicit, pos);
        }
        if let Some(x) = self.empty_collection(arg, &to.ty)? {
            return Ok(x);
        }
        let x = self.expr(arg, env)?;
        // Errors in a literal point at the literal.
        let at = if matches!(&x, HirScalar::Literal(_, t) if t.ty == SqlType::Unknown) { arg.pos } else { pos };
        self.coerce(x, &to, CastContext::Explicit, at)
    }

    fn indirection(&self, arg: &Expr, path: &[Indirection], env: &Env) -> Result<HirScalar, SqlError> {
        let (mut x, mut i) = match self.column_of_row(arg, path, env)? {
            Some(column) => (column, 1),
            None => (self.expr(arg, env)?, 0),
        };
        while i < path.len() {
            match &path[i] {
                Indirection::Field(f) => {
                    x = self.field(x, f)?;
                    i += 1;
                }
                Indirection::Star => return Err(SqlError::new(state::SYNTAX_ERROR, "row expansion via \"*\" is not supported here").at(arg.pos)),
                Indirection::Index(_) | Indirection::Slice(..) => {
                    let start = i;
                    while matches!(path.get(i), Some(Indirection::Index(_) | Indirection::Slice(..))) {
                        i += 1;
                    }
                    x = self.subscript(x, &path[start..i], arg.pos, env)?;
                }
            }
        }
        Ok(x)
    }

    /// `(t).x` of a relation in FROM: its column by the name that it has there, which need not be its row type's.
    fn column_of_row(&self, arg: &Expr, path: &[Indirection], env: &Env) -> Result<Option<HirScalar>, SqlError> {
        let (ExprKind::Column(parts), Some(Indirection::Field(f))) = (&*arg.kind, path.first()) else { return Ok(None) };
        let [rel] = parts.as_slice() else { return Ok(None) };
        if self.find_unqualified(&rel.name, env, arg.pos)?.is_some() {
            return Ok(None);
        }
        match self.find_item(None, &rel.name, env, arg.pos)? {
            Some((_, item)) if !item.scalar => self.qualified(None, &rel.name, f, env, arg.pos).map(Some),
            _ => Ok(None),
        }
    }

    pub fn field(&self, x: HirScalar, f: &Ident) -> Result<HirScalar, SqlError> {
        let x = self.without_domain(x)?;
        let ty = x.typ().ty;
        let SqlType::Record(r) = &ty else {
            return Err(SqlError::new(
                state::WRONG_OBJECT_TYPE,
                format!("column notation .{} applied to type {}, which is not a composite type", f.name, ty.sql_name()),
            )
            .at(f.pos));
        };
        match r.fields.iter().position(|x| x.0 == f.name) {
            Some(i) => {
                self.note_field(r, i, Some(f.pos));
                self.field_select(x, i)
            }
            None if r.name.is_none() => {
                Err(SqlError::new(state::UNDEFINED_COLUMN, format!("could not identify column \"{}\" in record data type", f.name)).at(f.pos))
            }
            None => Err(SqlError::new(state::UNDEFINED_COLUMN, format!("column \"{}\" not found in data type {}", f.name, ty.sql_name())).at(f.pos)),
        }
    }

    pub fn subscript(&self, x: HirScalar, path: &[Indirection], pos: Pos, env: &Env) -> Result<HirScalar, SqlError> {
        let x = self.without_domain(x)?;
        let ty = x.typ().ty;
        if ty == SqlType::Jsonb {
            let mut args = vec![x];
            for p in path {
                let Indirection::Index(e) = p else {
                    return Err(SqlError::new(state::DATATYPE_MISMATCH, "jsonb subscript does not support slices").at(pos));
                };
                let s = self.expr(e, env)?;
                let st = s.typ().ty;
                let s = match st {
                    SqlType::Int4 | SqlType::Text => s,
                    SqlType::Unknown => self.coerce_implicit(s, &SqlType::Text, e.pos)?,
                    _ if self.can_coerce(&st, SqlType::Int4.oid(), CastContext::Implicit) => self.coerce_implicit(s, &SqlType::Int4, e.pos)?,
                    _ if self.can_coerce(&st, SqlType::Text.oid(), CastContext::Implicit) => self.coerce_implicit(s, &SqlType::Text, e.pos)?,
                    _ => {
                        return Err(SqlError::new(state::DATATYPE_MISMATCH, format!("subscript type {} is not supported", st.sql_name()))
                            .with_hint("jsonb subscript must be coercible to either integer or text.")
                            .at(e.pos))
                    }
                };
                args.push(s);
            }
            return self.internal("jsonb_subscript", args, SqlType::Jsonb.nullable());
        }
        if matches!(ty, SqlType::List(_) | SqlType::Map(_)) {
            return self.collection_subscript(x, path, pos, env);
        }
        let elem = match &ty {
            SqlType::Array(e) => (**e).clone(),
            SqlType::Int2Vector => SqlType::Int2,
            SqlType::OidVector => SqlType::Oid,
            SqlType::Name if path.iter().all(|p| matches!(p, Indirection::Index(_))) => SqlType::Char,
            SqlType::Geo(kind) if expr::func::geo::part_type(*kind).is_some() => expr::func::geo::part_type(*kind).unwrap_or(SqlType::Float8),
            other => {
                return Err(SqlError::new(
                    state::DATATYPE_MISMATCH,
                    format!("cannot subscript type {} because it does not support subscripting", other.sql_name()),
                )
                .at(pos))
            }
        };
        let index = |e: &Expr| -> Result<HirScalar, SqlError> {
            let i = self.expr(e, env)?;
            let from = i.typ().ty;
            self.try_coerce(i, &SqlType::Int4.nullable(), CastContext::Assignment, e.pos)?
                .ok_or_else(|| SqlError::new(state::DATATYPE_MISMATCH, format!("array subscript must have type integer, not {}", from.sql_name())).at(e.pos))
        };
        if path.len() > 6 {
            return Err(SqlError::new(state::PROGRAM_LIMIT_EXCEEDED, format!("number of array dimensions ({}) exceeds the maximum allowed (6)", path.len())));
        }
        if path.iter().all(|p| matches!(p, Indirection::Index(_))) {
            let typmod = x.typ().typmod;
            let mut args = vec![x];
            for p in path {
                if let Indirection::Index(e) = p {
                    args.push(index(e)?);
                }
            }
            return self.internal("array_subscript", args, elem.nullable().with_typmod(typmod));
        }
        if matches!(ty, SqlType::Geo(_)) {
            return Err(SqlError::new(state::FEATURE_NOT_SUPPORTED, "slices of fixed-length arrays not implemented"));
        }
        // Slices: a plain subscript among them is 1:i.
        let result = x.typ().with_nullable(true);
        let int = |n: i32| HirScalar::Literal(Value::Int4(n), SqlType::Int4.not_null());
        let (mut mask, mut bounds) = (0, Vec::new());
        for (k, p) in path.iter().enumerate() {
            match p {
                Indirection::Index(e) => {
                    bounds.push(int(1));
                    bounds.push(index(e)?);
                }
                Indirection::Slice(lo, hi) => {
                    for (side, b) in [lo, hi].into_iter().enumerate() {
                        match b {
                            Some(e) => bounds.push(index(e)?),
                            None => {
                                mask |= 1 << (2 * k + side);
                                bounds.push(int(0));
                            }
                        }
                    }
                }
                _ => return Err(SqlError::internal("subscript of another kind")),
            }
        }
        let mut args = vec![x, int(mask)];
        args.extend(bounds);
        self.internal("array_slice", args, result)
    }

    fn sql_value(&self, what: SqlValue, precision: Option<i32>, _pos: Pos) -> Result<HirScalar, SqlError> {
        let (name, ty) = match what {
            SqlValue::CurrentDate => ("current_date", SqlType::Date),
            SqlValue::CurrentTime => ("current_time", SqlType::TimeTz),
            SqlValue::CurrentTimestamp => ("current_timestamp", SqlType::TimestampTz),
            SqlValue::LocalTime => ("localtime", SqlType::Time),
            SqlValue::LocalTimestamp => ("localtimestamp", SqlType::Timestamp),
            SqlValue::CurrentUser | SqlValue::CurrentRole | SqlValue::User => return self.niladic("current_user", &SqlType::Name),
            SqlValue::SessionUser => return self.niladic("session_user", &SqlType::Name),
            SqlValue::CurrentCatalog => return self.niladic("current_database", &SqlType::Name),
            SqlValue::CurrentSchema => return self.niladic("current_schema", &SqlType::Name),
        };
        let typmod = precision.map_or(-1, |p| p.min(6));
        let args = precision.map(|p| HirScalar::Literal(Value::Int4(p.min(6)), SqlType::Int4.not_null())).into_iter().collect();
        self.internal(name, args, ty.not_null().with_typmod(typmod))
    }

    fn niladic(&self, name: &str, ty: &SqlType) -> Result<HirScalar, SqlError> {
        let r = self.function(&["pg_catalog", name], &[], &[], false, 0)?;
        self.call_oid(r.proc.oid, Vec::new(), ty.clone().not_null())
    }

    /// A function call of any kind.
    fn call(&self, call: &FuncCall, pos: Pos, env: &Env) -> Result<HirScalar, SqlError> {
        let name: Vec<&str> = call.name.iter().map(|n| n.name.as_str()).collect();
        // `(f(x)).y` aside, `rel.col` written as `col(rel)` and types used as functions: int4(x), text(x).
        let kind = self.kind_of(&name, call.within_group);
        if call.args.len() > 100 {
            return Err(SqlError::new(state::TOO_MANY_ARGUMENTS, "cannot pass more than 100 arguments to a function").at(pos));
        }
        let aggregate_like = call.over.is_none() && kind == Some(ProcKind::Aggregate);
        if aggregate_like {
            return self.aggregate(call, &name, pos, env);
        }
        if call.over.is_some() {
            return self.window_call(call, &name, pos, env);
        }
        if kind == Some(ProcKind::Window) {
            self.function_exists(call, &name, pos, env)?;
            return Err(SqlError::new(state::WRONG_OBJECT_TYPE, format!("window function {} requires an OVER clause", name.last().unwrap_or(&""))).at(pos));
        }
        let fname = *name.last().unwrap_or(&"");
        if call.star {
            self.function(&name, &[], &[], false, pos)?;
            return Err(SqlError::new(state::WRONG_OBJECT_TYPE, format!("{fname}(*) specified, but {fname} is not an aggregate function")).at(pos));
        }
        for (given, words) in [
            (call.distinct, "DISTINCT"),
            (call.within_group, "WITHIN GROUP"),
            (!call.within_group && !call.order_by.is_empty(), "ORDER BY"),
            (call.filter.is_some(), "FILTER"),
        ] {
            if given && kind.is_some() {
                self.function_exists(call, &name, pos, env)?;
                return Err(SqlError::new(state::WRONG_OBJECT_TYPE, format!("{words} specified, but {fname} is not an aggregate function")).at(pos));
            }
        }
        let (args, names, positions, variadic) = self.call_args(call, env)?;
        if call.within_group {
            self.function_exists(call, &name, pos, env)?;
        }
        let types: Vec<SqlType> = args.iter().map(|a| a.typ().ty).collect();
        // A type's name with one argument is a cast, where no function of that name takes exactly this type.
        let exact = |t: &SqlType| expr::catalog::procs_by_name(fname).any(|p| p.args == [t.oid()]);
        if types.len() == 1 && names == [None] && !variadic && !exact(&types[0]) {
            if let Some(x) = self.as_cast(&name, &args, &positions, pos)? {
                return Ok(x);
            }
        }
        if names.iter().all(Option::is_none) {
            if let Some(x) = self.collection_call(call, &args, pos, env)? {
                return Ok(x);
            }
            if let Some(x) = self.range_constructor(&name, &args, variadic, &positions)? {
                return Ok(x);
            }
        }
        let resolved = match self.function(&name, &types, &names, variadic, pos) {
            Ok(r) => r,
            Err(e) => match self.as_field(&name, &args, pos)? {
                Some(x) => return Ok(x),
                None => return Err(e),
            },
        };
        if resolved.proc.name == "pg_typeof" && types == [SqlType::Unknown] && matches!(args[0], HirScalar::Literal(..)) {
            let regtype = SqlType::Reg(repr::types::RegKind::Type).not_null();
            return Ok(HirScalar::Literal(Value::UInt4(pseudo::UNKNOWN), regtype));
        }
        if resolved.proc.returns_set {
            return self.set_call(resolved, args, &positions, pos, env);
        }
        self.plain_call(resolved, args, &positions)
    }

    /// Errors: there is no function of these arguments, which is said before what else is wrong with the call.
    pub fn function_exists(&self, call: &FuncCall, name: &[&str], pos: Pos, env: &Env) -> Result<(), SqlError> {
        let (args, mut names, _, variadic) = self.call_args(call, env)?;
        let mut types: Vec<SqlType> = args.iter().map(|a| a.typ().ty).collect();
        for key in call.order_by.iter().filter(|_| call.within_group) {
            types.push(self.expr(&key.expr, env)?.typ().ty);
            names.push(None);
        }
        self.function(name, &types, &names, variadic, pos).map(|_| ())
    }

    pub fn plain_call(&self, r: super::func::Resolved, args: Vec<HirScalar>, positions: &[Pos]) -> Result<HirScalar, SqlError> {
        let mut args = self.coerce_args(&r, args, positions)?;
        let types: Vec<SqlType> = args.iter().map(|a| a.typ().ty).collect();
        let ret = self.return_type(r.proc, &r.ret, &types);
        if r.spread {
            match (types.last(), args.last()) {
                // VARIADIC ARRAY[a, b] is a, b.
                (_, Some(HirScalar::Call { func, args: elems, .. }))
                    if func.name == "array_construct" && elems.first().is_some_and(|e| !matches!(e.typ().ty, SqlType::Array(_))) =>
                {
                    let elems = elems.clone();
                    args.pop();
                    args.extend(elems);
                }
                (Some(SqlType::Array(_)), _) => return self.internal_with("variadic_any", r.proc.oid, args, ret.nullable()),
                _ => {
                    return Err(SqlError::new(state::DATATYPE_MISMATCH, "VARIADIC argument must be an array").at(positions.last().copied().unwrap_or(0)));
                }
            }
        }
        if let ("pg_typeof", true) = (r.proc.name, types.iter().any(SqlType::has_domain)) {
            // The kernel sees no domains.
            args.push(HirScalar::Literal(Value::UInt4(types[0].oid()), SqlType::Oid.not_null()));
            return self.internal("type_of_domain", args, ret.not_null());
        }
        if ret.has_domain() && matches!(r.proc.name, "json_populate_record" | "jsonb_populate_record") {
            // What it makes has not been tested.
            let made = self.call_oid(r.proc.oid, args, ret.without_domains().nullable())?;
            return self.coerce_implicit(made, &ret, positions.first().copied().unwrap_or(0));
        }
        let nullable = !(r.proc.strict && args.iter().all(|a| !a.typ().nullable) && never_null(r.proc.name));
        self.call_oid(r.proc.oid, args, ret.nullable().with_nullable(nullable))
    }

    /// The type of a call with arguments of types `args`; functions with OUT parameters return a record of them.
    pub fn return_type(&self, p: &expr::catalog::PgProc, ret: &SqlType, args: &[SqlType]) -> SqlType {
        const ANYELEMENT: u32 = 2283;
        let element = args.first().map(|t| match t {
            SqlType::Array(e) => (**e).clone(),
            SqlType::Int2Vector => SqlType::Int2,
            SqlType::OidVector => SqlType::Oid,
            other => other.clone(),
        });
        if let (SqlType::Record(r), Some(modes), Some(all)) = (ret, &p.modes, &p.all_args) {
            if r.fields.is_empty() {
                let fields: Vec<(String, ColType)> = modes
                    .iter()
                    .zip(all)
                    .enumerate()
                    .filter(|(_, (m, _))| matches!(m, 'o' | 'b' | 't'))
                    .filter_map(|(i, (_, t))| {
                        let name = p.arg_names.get(i).copied().unwrap_or("");
                        let ty = if *t == ANYELEMENT { element.clone() } else { self.type_by_oid(*t) };
                        Some((name.to_owned(), ty?.nullable()))
                    })
                    .collect();
                if !fields.is_empty() {
                    return SqlType::Record(std::sync::Arc::new(repr::types::RecordType { oid: r.oid, array_oid: 0, name: None, fields }));
                }
            }
        }
        ret.clone()
    }

    /// Arguments bound: values, names, positions, and whether the last one is VARIADIC.
    #[allow(clippy::type_complexity)]
    pub fn call_args<'c>(&self, call: &'c FuncCall, env: &Env) -> Result<(Vec<HirScalar>, Vec<Option<&'c str>>, Vec<Pos>, bool), SqlError> {
        let mut args = Vec::with_capacity(call.args.len());
        let mut named = false;
        for a in &call.args {
            named |= a.name.is_some();
            if a.name.is_some() && args.len() != call.args.iter().position(|b| b.name == a.name).unwrap_or(0) {
                let name = a.name.as_deref().unwrap_or_default();
                return Err(SqlError::new(state::SYNTAX_ERROR, format!("argument name \"{name}\" used more than once")).at(a.expr.pos));
            }
            if named && a.name.is_none() {
                return Err(SqlError::new(state::SYNTAX_ERROR, "positional argument cannot follow named argument").at(a.expr.pos));
            }
            let mut x = self.expr(&a.expr, env)?;
            // A list is the array that unnest() takes.
            if let (SqlType::List(e), [.., f]) = (x.typ().ty, call.name.as_slice()) {
                if f.name == "unnest" {
                    x = self.internal("relabel", vec![x], SqlType::Array(e).nullable())?;
                }
            }
            args.push(x);
        }
        let names = call.args.iter().map(|a| a.name.as_deref()).collect();
        let positions: Vec<Pos> = call.args.iter().map(|a| a.expr.pos).collect();
        let variadic = call.args.last().is_some_and(|a| a.variadic);
        Ok((args, names, positions, variadic))
    }

    /// What the functions of this name are; `None`: there are none. `rank` and its kind are window functions and, with WITHIN GROUP,
    /// aggregates.
    pub fn kind_of(&self, name: &[&str], within_group: bool) -> Option<ProcKind> {
        kind_of(name, within_group)
    }

    fn as_cast(&self, name: &[&str], args: &[HirScalar], positions: &[Pos], pos: Pos) -> Result<Option<HirScalar>, SqlError> {
        let [arg] = args else { return Ok(None) };
        let t = TypeName::named(name.iter().map(|s| (*s).to_owned()).collect(), pos);
        let Ok(to) = self.resolve_type(&t) else { return Ok(None) };
        let from = arg.typ().ty;
        // As Postgres: an unknown literal, or a cast that needs no function or goes through text; not to a row type.
        use super::coerce::Pathway;
        let ok = !matches!(to.ty.base(), SqlType::Record(_))
            && (from == SqlType::Unknown
                || match self.pathway(&from, &to.ty, CastContext::Explicit) {
                    Some(Pathway::Relabel) => true,
                    Some(Pathway::Io) => !(matches!(from, SqlType::Record(_)) && self.category(&to.ty) == 'S'),
                    _ => false,
                });
        if !ok {
            return Ok(None);
        }
        self.coerce(arg.clone(), &to, CastContext::Explicit, positions.first().copied().unwrap_or(pos)).map(Some)
    }

    /// `f(row)` is `row.f`.
    fn as_field(&self, name: &[&str], args: &[HirScalar], pos: Pos) -> Result<Option<HirScalar>, SqlError> {
        let ([n], [arg]) = (name, args) else { return Ok(None) };
        let arg = self.without_domain(arg.clone())?;
        let SqlType::Record(r) = &arg.typ().ty else { return Ok(None) };
        match r.fields.iter().position(|f| f.0 == *n) {
            Some(i) => {
                self.note_field(r, i, Some(pos));
                self.field_select(arg, i).map(Some)
            }
            None => Ok(None),
        }
    }
}

/// Functions that return NULL for no argument that is not NULL; a hint for the optimizer, so it may be short.
pub fn kind_of(name: &[&str], within_group: bool) -> Option<ProcKind> {
    let last = name.last()?;
    let kinds: Vec<ProcKind> = expr::catalog::procs_by_name(last).map(|p| p.kind).collect();
    let wanted =
        if within_group { [ProcKind::Aggregate, ProcKind::Function, ProcKind::Window] } else { [ProcKind::Function, ProcKind::Window, ProcKind::Aggregate] };
    wanted.into_iter().find(|k| kinds.contains(k))
}

fn never_null(name: &str) -> bool {
    matches!(name, "lower" | "upper" | "length" | "abs" | "int4pl" | "int8pl" | "int4mi" | "int8mi" | "int4mul" | "int8mul" | "textcat")
}

pub fn op_at(name: &str, pos: Pos) -> OpName {
    OpName { schema: None, name: name.into(), pos }
}

/// Rows are compared column by column, each with one of its type. Errors: 42804, which Postgres gives when it evaluates.
fn similar_rows(a: &SqlType, b: &SqlType) -> Result<(), SqlError> {
    let (SqlType::Record(a), SqlType::Record(b)) = (a, b) else { return Ok(()) };
    if a.fields.is_empty() || b.fields.is_empty() {
        return Ok(());
    }
    for (i, (x, y)) in a.fields.iter().zip(&b.fields).enumerate() {
        let (x, y) = (&x.1.ty, &y.1.ty);
        if x != y && !(x.is_string() && y.is_string()) {
            let m = format!("cannot compare dissimilar column types {} and {} at record column {}", x.sql_name(), y.sql_name(), i + 1);
            return Err(SqlError::new(state::DATATYPE_MISMATCH, m));
        }
    }
    if a.fields.len() != b.fields.len() {
        return Err(SqlError::new(state::DATATYPE_MISMATCH, "cannot compare record types with different numbers of columns"));
    }
    Ok(())
}

fn is_row(e: &Expr) -> bool {
    matches!(&*e.kind, ExprKind::Row { .. })
}

/// The modifier that all of them have, else none.
pub fn common_typmod<'x>(mut xs: impl Iterator<Item = &'x HirScalar>) -> i32 {
    let Some(first) = xs.next() else { return -1 };
    let m = first.typ().typmod;
    if xs.all(|x| x.typ().typmod == m) {
        m
    } else {
        -1
    }
}
