//! Aggregates and GROUPING in expressions.
//!
//! An aggregate belongs to the innermost query whose row its arguments read; inside a subquery that may be an enclosing one. It is
//! registered there and stands in the expression as a virtual column of that level.

use super::calls::{AGGREGATES, GROUPINGS};
use super::scope::{Clause, Env, Level};
use super::walk::{least_level, rewrite_aggregate, shift_one};
use super::Binder;
use crate::ast::*;
use crate::hir::{ColumnRef, HirAggregate, HirScalar};
use expr::catalog::{self, CastContext};
use expr::ColumnOrder;
use repr::error::state;
use repr::{ColType, SqlError, SqlType};

impl Binder<'_> {
    pub fn aggregate(&self, call: &FuncCall, name: &[&str], pos: Pos, env: &Env) -> Result<HirScalar, SqlError> {
        let agg = self.aggregate_call(call, name, pos, env)?;
        self.register_aggregate(agg, pos, env)
    }

    /// The call bound on the innermost level's row, not yet registered.
    pub fn aggregate_call(&self, call: &FuncCall, name: &[&str], pos: Pos, env: &Env) -> Result<HirAggregate, SqlError> {
        let level = env.level();
        let was = level.map(|l| l.calls.in_aggregate.replace(true));
        let r = self.aggregate_inner(call, name, pos, env);
        if let (Some(l), Some(was)) = (level, was) {
            l.calls.in_aggregate.set(was);
        }
        r
    }

    fn aggregate_inner(&self, call: &FuncCall, name: &[&str], pos: Pos, env: &Env) -> Result<HirAggregate, SqlError> {
        let fname = *name.last().unwrap_or(&"");
        let (mut args, names, mut positions, variadic) = self.call_args(call, env)?;
        let direct = args.len();
        let mut order_by = Vec::new();
        let mut order_exprs = Vec::new();
        if call.within_group {
            for o in &call.order_by {
                args.push(self.expr(&o.expr, env)?);
                positions.push(o.expr.pos);
            }
        } else {
            for o in &call.order_by {
                let e = self.expr(&o.expr, env)?;
                order_exprs.push((self.text_if_unknown(e, o.expr.pos)?, o));
            }
        }
        let types: Vec<SqlType> = args.iter().map(|a| a.typ().ty).collect();
        let mut all_names = names;
        all_names.resize(args.len(), None);
        let star = call.star;
        let resolved = if star && fname != "count" {
            return Err(SqlError::new(state::UNDEFINED_FUNCTION, format!("function {fname}() does not exist")).at(pos));
        } else {
            self.function(name, &types, &all_names, variadic, pos)?
        };
        let row = catalog::aggregate_by_oid(resolved.proc.oid);
        let kind = row.map_or('n', |r| r.kind);
        if kind == 'n' && call.within_group {
            return Err(SqlError::new(state::WRONG_OBJECT_TYPE, format!("{fname} is not an ordered-set aggregate, so it cannot have WITHIN GROUP")).at(pos));
        }
        if kind != 'n' && !call.within_group {
            return Err(SqlError::new(state::WRONG_OBJECT_TYPE, format!("WITHIN GROUP is required for ordered-set aggregate {fname}")).at(pos));
        }
        if fname == "count" && !star && args.is_empty() {
            return Err(SqlError::new(state::WRONG_OBJECT_TYPE, "count(*) must be used to call a parameterless aggregate function").at(pos));
        }
        if kind == 'h' && direct * 2 != args.len() {
            let hint = format!(
                "To use the hypothetical-set aggregate {fname}, the number of hypothetical direct arguments (here {direct}) must match the number of ordering columns (here {}).",
                args.len() - direct
            );
            let spelled = types.iter().map(SqlType::sql_name).collect::<Vec<_>>().join(", ");
            return Err(SqlError::new(state::UNDEFINED_FUNCTION, format!("function {fname}({spelled}) does not exist")).with_hint(hint).at(pos));
        }
        let is_any = resolved.proc.variadic == catalog::pseudo::ANY;
        let as_written = args.clone();
        let mut args = if kind == 'h' && is_any { self.unify_hypothetical(args, direct, &positions)? } else { self.coerce_args(&resolved, args, &positions)? };
        if kind == 'h' && is_any {
            args = args.into_iter().zip(&positions).map(|(a, p)| self.text_if_unknown(a, *p)).collect::<Result<_, _>>()?;
        }
        if call.within_group {
            for (k, o) in call.order_by.iter().enumerate() {
                let e = args[direct + k].clone();
                order_by.push((e, order_of(o, k, o.expr.pos)?));
            }
        } else {
            for (k, (mut e, o)) in order_exprs.into_iter().enumerate() {
                // An argument is the same with and without the cast that its function asks for.
                match as_written.iter().position(|a| *a == e) {
                    Some(i) if call.distinct => e = args[i].clone(),
                    None if call.distinct => {
                        let m = "in an aggregate with DISTINCT, ORDER BY expressions must appear in argument list";
                        return Err(SqlError::new(state::INVALID_COLUMN_REFERENCE, m).at(o.expr.pos));
                    }
                    _ => {}
                }
                order_by.push((e, order_of(o, k, o.expr.pos)?));
            }
        }
        if order_by.is_empty() && !call.distinct && call.over.is_none() && order_matters(fname) {
            if let Some(l) = env.level() {
                order_by.extend(l.order.iter().cloned().enumerate().map(|(k, (e, o))| (e, ColumnOrder { column: k, ..o })));
            }
        }
        for (e, _) in &order_by {
            self.require_order(&e.typ().ty, pos)?;
        }
        if call.distinct {
            for a in &args {
                let t = a.typ().ty;
                self.require_equality(&t, pos)?;
            }
        }
        let filter = match &call.filter {
            Some(f) => {
                let level = env.level();
                let was = level.map(|l| l.calls.clause.replace(Clause::Filter));
                let r = self.condition(f, env, "FILTER");
                if let (Some(l), Some(was)) = (level, was) {
                    l.calls.clause.set(was);
                }
                Some(r?)
            }
            None => None,
        };
        let def = expr::agg::by_oid(resolved.proc.oid).ok_or_else(|| {
            SqlError::unsupported(format!("aggregate function {}", self.proc_signature(resolved.proc)), "see the list of aggregates in the documentation")
        })?;
        let nullable = !matches!(fname, "count" | "regr_count");
        let mut ty = ColType { ty: resolved.ret.clone(), typmod: -1, nullable };
        // min and max keep the modifier of their argument? Postgres: no modifier for any function.
        if matches!(ty.ty, SqlType::Unknown) {
            ty.ty = SqlType::Text;
        }
        Ok(HirAggregate { func: def, args, direct: if call.within_group { direct } else { 0 }, distinct: call.distinct, filter, order_by, ty })
    }

    /// Each direct argument of rank(…) WITHIN GROUP takes the type of its ordering column.
    fn unify_hypothetical(&self, args: Vec<HirScalar>, direct: usize, positions: &[Pos]) -> Result<Vec<HirScalar>, SqlError> {
        let mut out = args;
        for i in 0..direct {
            let j = direct + i;
            let types = [(out[i].typ().ty, positions[i]), (out[j].typ().ty, positions[j])];
            let ty = self.common_type(&types, "WITHIN GROUP")?;
            for k in [i, j] {
                let e = out[k].clone();
                out[k] = self.coerce_common(e, &ty, "WITHIN GROUP", positions[k])?;
            }
        }
        Ok(out)
    }

    pub fn require_order(&self, ty: &SqlType, pos: Pos) -> Result<(), SqlError> {
        if matches!(ty, SqlType::Record(_) | SqlType::Enum(_) | SqlType::List(_) | SqlType::Map(_)) && ty.has_order() {
            return Ok(());
        }
        let ty = if ty.oid() == catalog::pseudo::RECORD { ty.unordered().unwrap_or(ty) } else { ty };
        if ty.has_order() && self.comparison("<", ty, pos).is_ok() {
            return Ok(());
        }
        Err(SqlError::new(state::UNDEFINED_FUNCTION, format!("could not identify an ordering operator for type {}", ty.sql_name()))
            .with_hint("Use an explicit ordering operator or modify the query.")
            .at(pos))
    }

    /// Puts the aggregate where it belongs and returns the column that stands for it.
    fn register_aggregate(&self, mut agg: HirAggregate, pos: Pos, env: &Env) -> Result<HirScalar, SqlError> {
        let direct = agg.direct;
        let own = agg.args.iter_mut().skip(direct).chain(agg.filter.iter_mut()).chain(agg.order_by.iter_mut().map(|o| &mut o.0));
        let least = own.filter_map(least_level).min();
        let n = least.or_else(|| agg.args.iter_mut().filter_map(least_level).min()).unwrap_or(0);
        let Some(node) = env.nodes().nth(n) else {
            return Err(self.not_allowed("aggregate functions", Clause::Constant, pos));
        };
        let level = &node.level;
        if node.lateral {
            return Err(self.not_allowed("aggregate functions", Clause::FromSubselect, pos));
        }
        self.check_aggregate_allowed(level, n, pos)?;
        if reads_virtual(&mut agg, super::calls::Virtual::Aggregate(0), n) {
            return Err(SqlError::new(state::GROUPING_ERROR, "aggregate function calls cannot be nested").at(pos));
        }
        if reads_virtual(&mut agg, super::calls::Virtual::Window(0), n) {
            return Err(SqlError::new(state::GROUPING_ERROR, "aggregate function calls cannot contain window function calls").at(pos));
        }
        if reads_virtual(&mut agg, super::calls::Virtual::Set(0), n) {
            return Err(SqlError::new(state::FEATURE_NOT_SUPPORTED, "aggregate function calls cannot contain set-returning function calls")
                .with_hint("You might be able to move the set-returning function into a LATERAL FROM item.")
                .at(pos));
        }
        if n > 0 {
            rewrite_aggregate(&mut agg, 0, &mut |s, d| shift_one(s, d, n, -(n as isize)));
        }
        let mut list = level.calls.aggregates.borrow_mut();
        let i = match list.iter().position(|a| *a == agg) {
            Some(i) => i,
            None => {
                list.push(agg);
                list.len() - 1
            }
        };
        Ok(HirScalar::Column(ColumnRef { level: n, column: AGGREGATES + i }, list[i].ty.clone()))
    }

    fn check_aggregate_allowed(&self, level: &Level, n: usize, pos: Pos) -> Result<(), SqlError> {
        if level.calls.in_aggregate.get() && n > 0 {
            return Err(SqlError::new(state::GROUPING_ERROR, "aggregate function calls cannot be nested").at(pos));
        }
        match level.calls.clause.get() {
            Clause::Select | Clause::Having | Clause::OrderBy | Clause::DistinctOn => Ok(()),
            c => Err(self.not_allowed("aggregate functions", c, pos)),
        }
    }

    pub fn not_allowed(&self, what: &str, c: Clause, pos: Pos) -> SqlError {
        SqlError::new(state::GROUPING_ERROR, format!("{what} are not allowed in {}", c.words())).at(pos)
    }

    /// GROUPING(a, b).
    pub fn grouping(&self, args: &[Expr], env: &Env, pos: Pos) -> Result<HirScalar, SqlError> {
        if args.len() > 31 {
            return Err(SqlError::new(state::TOO_MANY_ARGUMENTS, "GROUPING must have fewer than 32 arguments").at(pos));
        }
        let bound: Vec<HirScalar> = args.iter().map(|a| self.expr(a, env)).collect::<Result<_, _>>()?;
        // Like an aggregate it belongs to the innermost query whose row its arguments read.
        let mut bound = bound;
        let n = bound.iter_mut().filter_map(least_level).min().unwrap_or(0);
        let Some(node) = env.nodes().nth(n) else { return Err(self.not_allowed("grouping operations", Clause::Constant, pos)) };
        let level = &node.level;
        match level.calls.clause.get() {
            Clause::Select | Clause::Having | Clause::OrderBy | Clause::DistinctOn => {}
            c => return Err(self.not_allowed("grouping operations", c, pos)),
        }
        bound.iter_mut().for_each(|e| super::walk::shift(e, n, -(n as isize)));
        let mut list = level.calls.groupings.borrow_mut();
        list.push(bound);
        Ok(HirScalar::Column(ColumnRef { level: n, column: GROUPINGS + list.len() - 1 }, SqlType::Int4.not_null()))
    }

    /// A set-returning function in a select list and the like.
    pub fn set_call(&self, r: super::func::Resolved, args: Vec<HirScalar>, positions: &[Pos], pos: Pos, env: &Env) -> Result<HirScalar, SqlError> {
        use super::calls::SETS;
        let Some(level) = env.level() else {
            return Err(SqlError::new(state::FEATURE_NOT_SUPPORTED, "set-returning functions are not allowed here").at(pos));
        };
        if let Some(word) = level.calls.no_sets.get() {
            return Err(SqlError::new(state::FEATURE_NOT_SUPPORTED, format!("set-returning functions are not allowed in {word}"))
                .with_hint("You might be able to move the set-returning function into a LATERAL FROM item.")
                .at(pos));
        }
        match level.calls.clause.get() {
            Clause::Select | Clause::OrderBy | Clause::GroupBy | Clause::DistinctOn => {}
            Clause::FromFunction => {
                return Err(SqlError::new(state::FEATURE_NOT_SUPPORTED, "set-returning functions must appear at top level of FROM").at(pos));
            }
            c => return Err(SqlError::new(state::FEATURE_NOT_SUPPORTED, format!("set-returning functions are not allowed in {}", c.words())).at(pos)),
        }
        let call = self.table_call(&r, args, positions, pos)?;
        let (mut columns, names) = (call.1.clone(), call.2);
        let is_row = columns.len() != 1 || matches!(r.ret.base(), SqlType::Record(_));
        if is_row {
            columns.push(SqlType::Int8.nullable());
        }
        let mut list = level.calls.sets.borrow_mut();
        // The same call twice is one, so that what is grouped or sorted by is what is selected.
        let same = |c: &&super::calls::SetCall| std::ptr::eq(c.func, call.0) && c.args == call.3 && c.columns == columns;
        let known = list.iter().find(same).filter(|_| !call.3.iter().any(super::walk::is_volatile)).map(|c| c.first);
        let first = known.unwrap_or_else(|| list.last().map_or(0, |c| c.first + c.columns.len()));
        if known.is_none() {
            list.push(super::calls::SetCall { func: call.0, args: call.3, columns: columns.clone(), first, numbered: is_row });
        }
        let col = |i: usize| HirScalar::Column(ColumnRef { level: 0, column: SETS + first + i }, columns[i].clone().with_nullable(true));
        if !is_row {
            return Ok(col(0));
        }
        columns.pop();
        // Several columns are one value of a row type.
        let fields: Vec<(String, ColType)> = names.into_iter().zip(columns.iter().map(|c| c.clone().with_nullable(true))).collect();
        let ty = match r.ret.base() {
            SqlType::Record(named) if named.name.is_some() => r.ret.base().clone(),
            _ => SqlType::Record(std::sync::Arc::new(repr::types::RecordType { oid: catalog::pseudo::RECORD, array_oid: 0, name: None, fields })),
        };
        let n = columns.len();
        let absent = HirScalar::IsNull(Box::new(HirScalar::Column(ColumnRef { level: 0, column: SETS + first + n }, SqlType::Int8.nullable())));
        let col = |i: usize| HirScalar::Column(ColumnRef { level: 0, column: SETS + first + i }, columns[i].clone().with_nullable(true));
        let row = self.internal("row_construct", (0..n).map(col).collect(), ty.clone().not_null())?;
        let (row, ty) = match &r.ret {
            // What the function makes has not been tested.
            SqlType::Domain(_) => (self.coerce(row, &r.ret.clone().nullable(), CastContext::Implicit, pos)?, r.ret.clone().nullable()),
            _ => (row, ty.nullable()),
        };
        Ok(HirScalar::Case { branches: vec![(absent, HirScalar::Literal(repr::Value::Null, ty.clone()))], otherwise: Box::new(row), ty })
    }

    /// A set-returning function's entry, its columns with their names, and its arguments coerced.
    #[allow(clippy::type_complexity)]
    pub fn table_call(
        &self,
        r: &super::func::Resolved,
        args: Vec<HirScalar>,
        positions: &[Pos],
        pos: Pos,
    ) -> Result<(&'static expr::TableFuncDef, Vec<ColType>, Vec<String>, Vec<HirScalar>), SqlError> {
        let arg_types: Vec<SqlType> = args.iter().map(|a| a.typ().ty).collect();
        let args = self.coerce_args(r, args, positions)?;
        let def = expr::table::by_oid(r.proc.oid).ok_or_else(|| {
            SqlError::unsupported(format!("set-returning function {}", self.proc_signature(r.proc)), "docs/sql/README.md says what there is").at(pos)
        })?;
        let ret = self.return_type(r.proc, &r.ret, &arg_types);
        // Rows of a domain over a row type are made as rows of that type.
        let ret = if matches!(ret.base(), SqlType::Record(_)) { ret.base().clone() } else { ret };
        let (names, columns): (Vec<String>, Vec<ColType>) = match &ret {
            SqlType::Record(t) if !t.fields.is_empty() => {
                let mut out = (Vec::new(), Vec::new());
                for f in &t.fields {
                    out.0.push(f.0.clone());
                    out.1.push(f.1.clone());
                }
                out
            }
            t => {
                // A single OUT parameter names the column; else the function's name does.
                let out_name =
                    r.proc.modes.as_ref().and_then(|m| m.iter().position(|c| matches!(c, 'o' | 't' | 'b'))).and_then(|i| r.proc.arg_names.get(i).copied());
                let name = out_name.filter(|n| !n.is_empty()).unwrap_or(r.proc.name);
                (vec![name.to_owned()], vec![t.clone().nullable()])
            }
        };
        Ok((def, columns, names, args))
    }
}

/// Whether an aggregate reads a virtual column of the given kind at `level`.
fn reads_virtual(agg: &mut HirAggregate, kind: super::calls::Virtual, level: usize) -> bool {
    let mut found = false;
    rewrite_aggregate(agg, 0, &mut |s, d| {
        if let HirScalar::Column(c, _) = s {
            if c.level == d + level {
                found |= std::mem::discriminant(&super::calls::decode(c.column)) == std::mem::discriminant(&kind);
            }
        }
        !found
    });
    found
}

/// Aggregates whose result follows the order of their input.
fn order_matters(name: &str) -> bool {
    matches!(name, "array_agg" | "string_agg" | "json_agg" | "jsonb_agg" | "json_object_agg" | "jsonb_object_agg")
}

/// Direction and place of NULLs of one ORDER BY item.
pub fn order_of(o: &OrderBy, column: usize, pos: Pos) -> Result<ColumnOrder, SqlError> {
    let desc = match o.using.as_deref() {
        None => o.desc,
        Some("<") => false,
        Some(">") => true,
        Some(other) => {
            return Err(SqlError::new(state::WRONG_OBJECT_TYPE, format!("operator {other} is not a valid ordering operator"))
                .with_hint("Ordering operators must be \"<\" or \">\" members of btree operator families.")
                .at(pos))
        }
    };
    Ok(ColumnOrder { column, desc, nulls_last: !o.nulls_first.unwrap_or(desc) })
}
