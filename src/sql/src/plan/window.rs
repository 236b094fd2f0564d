//! Window function calls.

use super::calls::{WindowCall, WindowSpecBound, WINDOWS};
use super::scope::{Clause, Env};
use super::Binder;
use crate::ast::*;
use crate::hir::{ColumnRef, HirBound, HirScalar, HirWindowFunc};
use expr::catalog::{CastContext, ProcKind};
use expr::{FrameExclude, FrameUnits};
use repr::error::state;
use repr::{ColType, SqlError, SqlType, Value};

impl Binder<'_> {
    pub fn window_call(&self, call: &FuncCall, name: &[&str], pos: Pos, env: &Env) -> Result<HirScalar, SqlError> {
        let Some(level) = env.level() else { return Err(self.windows_not_allowed(Clause::Constant, pos)) };
        let calls = &level.calls;
        if calls.in_window.get() {
            return Err(SqlError::new(state::WINDOWING_ERROR, "window function calls cannot be nested").at(pos));
        }
        if calls.in_aggregate.get() {
            return Err(SqlError::new(state::GROUPING_ERROR, "aggregate function calls cannot contain window function calls").at(pos));
        }
        match calls.clause.get() {
            Clause::Select | Clause::OrderBy | Clause::DistinctOn => {}
            c => return Err(self.windows_not_allowed(c, pos)),
        }
        calls.in_window.set(true);
        let r = self.window_inner(call, name, pos, env);
        calls.in_window.set(false);
        let w = r?;
        let ty = w.ty.clone();
        let mut list = calls.windows.borrow_mut();
        let i = match list.iter().position(|x| *x == w) {
            Some(i) => i,
            None => {
                list.push(w);
                list.len() - 1
            }
        };
        Ok(HirScalar::Column(ColumnRef { level: 0, column: WINDOWS + i }, ty))
    }

    fn windows_not_allowed(&self, c: Clause, pos: Pos) -> SqlError {
        SqlError::new(state::WINDOWING_ERROR, format!("window functions are not allowed in {}", c.words())).at(pos)
    }

    fn window_inner(&self, call: &FuncCall, name: &[&str], pos: Pos, env: &Env) -> Result<WindowCall, SqlError> {
        let spec = match &call.over {
            Some(Over::Name(n)) => WindowSpec { base: None, ..self.named_window(n, env)? },
            Some(Over::Spec(s)) => match &s.base {
                Some(b) => self.refine(s, &self.named_window(b, env)?, b)?,
                None => s.clone(),
            },
            None => return Err(SqlError::internal("window call without a window")),
        };
        let fname = *name.last().unwrap_or(&"");
        let kind = self.kind_of(name, call.within_group);
        let refused = call.distinct || !call.order_by.is_empty();
        if kind.is_some_and(|k| k != ProcKind::Aggregate || refused) {
            self.function_exists(call, name, pos, env)?;
        }
        let unknown = kind.is_none();
        if call.distinct && !unknown {
            return Err(SqlError::new(state::FEATURE_NOT_SUPPORTED, "DISTINCT is not implemented for window functions").at(pos));
        }
        if !call.order_by.is_empty() && !call.within_group && !unknown {
            return Err(SqlError::new(state::FEATURE_NOT_SUPPORTED, "aggregate ORDER BY is not implemented for window functions").at(pos));
        }
        if call.within_group && !unknown {
            return Err(SqlError::new(state::FEATURE_NOT_SUPPORTED, format!("OVER is not supported for ordered-set aggregate {fname}")).at(pos));
        }
        let (func, ty) = match kind {
            Some(ProcKind::Aggregate) => {
                let agg = self.aggregate_for_window(call, name, pos, env)?;
                let ty = agg.ty.clone();
                (HirWindowFunc::Aggregate(agg), ty)
            }
            Some(ProcKind::Window) => self.pure_window(call, name, fname, pos, env)?,
            Some(_) => {
                return Err(
                    SqlError::new(state::WRONG_OBJECT_TYPE, format!("OVER specified, but {fname} is not a window function nor an aggregate function")).at(pos)
                )
            }
            None => {
                self.function_exists(call, name, pos, env)?;
                return Err(SqlError::internal("window function without a row"));
            }
        };
        let mut values = func.clone();
        if super::walk::window_func_reads(&mut values, |c| matches!(super::calls::decode(c), super::calls::Virtual::Set(_))) {
            return Err(SqlError::new(state::FEATURE_NOT_SUPPORTED, "window function calls cannot contain set-returning function calls")
                .with_hint("You might be able to move the set-returning function into a LATERAL FROM item.")
                .at(pos));
        }
        let bound = self.window_spec(&spec, env)?;
        let (units, start, end, exclude) = self.frame(&spec, &bound, env, true)?;
        Ok(WindowCall { func, spec: bound, units, start, end, exclude, ty })
    }

    /// The arguments of an aggregate used as a window function may hold plain aggregates of the query.
    fn aggregate_for_window(&self, call: &FuncCall, name: &[&str], pos: Pos, env: &Env) -> Result<crate::hir::HirAggregate, SqlError> {
        let Some(level) = env.level() else { return Err(SqlError::internal("window outside a query")) };
        // `aggregate_call` marks the level as inside an aggregate; here inner aggregates are allowed, so the arguments are bound first.
        let inner = self.aggregate_call(call, name, pos, env);
        let _ = level;
        inner
    }

    fn pure_window(&self, call: &FuncCall, name: &[&str], fname: &str, pos: Pos, env: &Env) -> Result<(HirWindowFunc, ColType), SqlError> {
        if call.filter.is_some() {
            return Err(SqlError::new(state::FEATURE_NOT_SUPPORTED, "FILTER is not implemented for non-aggregate window functions").at(pos));
        }
        if call.star {
            return Err(SqlError::new(state::WRONG_OBJECT_TYPE, format!("{fname}(*) specified, but {fname} is not an aggregate function")).at(pos));
        }
        let (args, names, positions, variadic) = self.call_args(call, env)?;
        let types: Vec<SqlType> = args.iter().map(|a| a.typ().ty).collect();
        let r = self.function(name, &types, &names, variadic, pos)?;
        let mut args = self.coerce_args(&r, args, &positions)?.into_iter();
        let ret = r.ret.clone();
        let int = |n: i32| HirScalar::Literal(Value::Int4(n), SqlType::Int4.not_null());
        let mut arg = || args.next().ok_or_else(|| SqlError::internal("window function lacks an argument"));
        let func = match fname {
            "row_number" => HirWindowFunc::RowNumber,
            "rank" => HirWindowFunc::Rank,
            "dense_rank" => HirWindowFunc::DenseRank,
            "percent_rank" => HirWindowFunc::PercentRank,
            "cume_dist" => HirWindowFunc::CumeDist,
            "ntile" => HirWindowFunc::Ntile(arg()?),
            "lag" | "lead" => {
                let value = arg()?;
                let offset = if r.args.len() > 1 { arg()? } else { int(1) };
                let default = if r.args.len() > 2 { arg()? } else { HirScalar::Literal(Value::Null, value.typ().with_nullable(true)) };
                if fname == "lag" {
                    HirWindowFunc::Lag { value, offset, default }
                } else {
                    HirWindowFunc::Lead { value, offset, default }
                }
            }
            "first_value" => HirWindowFunc::FirstValue(arg()?),
            "last_value" => HirWindowFunc::LastValue(arg()?),
            "nth_value" => HirWindowFunc::NthValue(arg()?, arg()?),
            other => return Err(SqlError::unsupported(format!("window function {other}"), "see the list of window functions").at(pos)),
        };
        let nullable = !matches!(fname, "row_number" | "rank" | "dense_rank" | "percent_rank" | "cume_dist");
        Ok((func, ret.nullable().with_nullable(nullable)))
    }

    /// The WINDOW clause: what no call names is checked too, so its expressions are returned. Errors: 42P20 for a name that stands twice, and those of the
    /// definitions.
    pub fn window_definitions(&self, windows: &[(Ident, WindowSpec)], env: &Env) -> Result<Vec<HirScalar>, SqlError> {
        let mut exprs = Vec::new();
        let Some(level) = env.level() else { return Ok(exprs) };
        for (i, (name, spec)) in windows.iter().enumerate() {
            if windows[..i].iter().any(|w| w.0.name == name.name) {
                return Err(SqlError::new(state::WINDOWING_ERROR, format!("window \"{}\" is already defined", name.name)).at(spec.pos));
            }
            level.calls.in_window.set(true);
            let bound = (|| -> Result<_, SqlError> {
                let spec = self.named_window(name, env)?;
                let bound = self.window_spec(&spec, env)?;
                self.frame(&spec, &bound, env, false)?;
                Ok(bound)
            })();
            level.calls.in_window.set(false);
            let WindowSpecBound { partition, order } = bound?;
            exprs.extend(partition);
            exprs.extend(order.into_iter().map(|o| o.0));
        }
        Ok(exprs)
    }

    fn named_window(&self, n: &Ident, env: &Env) -> Result<WindowSpec, SqlError> {
        let undefined = || SqlError::new(state::UNDEFINED_OBJECT, format!("window \"{}\" does not exist", n.name)).at(n.pos);
        let level = env.level().ok_or_else(undefined)?;
        let spec = level.calls.named.borrow().iter().find(|w| w.0 == n.name).map(|w| w.1.clone()).ok_or_else(undefined)?;
        match &spec.base {
            Some(b) => {
                let base = self.named_window(b, env)?;
                self.refine(&spec, &base, b)
            }
            None => Ok(spec),
        }
    }

    /// `OVER (w ORDER BY …)`.
    fn refine(&self, s: &WindowSpec, base: &WindowSpec, name: &Ident) -> Result<WindowSpec, SqlError> {
        let bad = |m: String| Err(SqlError::new(state::WINDOWING_ERROR, m).at(name.pos));
        if !s.partition_by.is_empty() {
            return bad(format!("cannot override PARTITION BY clause of window \"{}\"", name.name));
        }
        if !s.order_by.is_empty() && !base.order_by.is_empty() {
            return bad(format!("cannot override ORDER BY clause of window \"{}\"", name.name));
        }
        if base.frame.is_some() {
            return bad(format!("cannot copy window \"{}\" because it has a frame clause", name.name));
        }
        Ok(WindowSpec {
            base: None,
            partition_by: base.partition_by.clone(),
            order_by: if s.order_by.is_empty() { base.order_by.clone() } else { s.order_by.clone() },
            frame: s.frame.clone(),
            pos: s.pos,
        })
    }

    fn window_spec(&self, s: &WindowSpec, env: &Env) -> Result<WindowSpecBound, SqlError> {
        let one = |e: &Expr| -> Result<HirScalar, SqlError> {
            let x = self.expr(e, env)?;
            self.text_if_unknown(x, e.pos)
        };
        let mut partition = Vec::new();
        for e in &s.partition_by {
            let x = one(e)?;
            let t = x.typ().ty;
            self.require_equality(&t, e.pos)?;
            if !partition.contains(&x) {
                partition.push(x);
            }
        }
        let mut order: Vec<(HirScalar, bool, bool)> = Vec::new();
        for o in &s.order_by {
            let x = one(&o.expr)?;
            self.require_order(&x.typ().ty, o.expr.pos)?;
            let c = super::agg::order_of(o, 0, o.expr.pos)?;
            if !order.iter().any(|k| k.0 == x) {
                order.push((x, c.desc, c.nulls_last));
            }
        }
        Ok(WindowSpecBound { partition, order })
    }

    fn frame(&self, s: &WindowSpec, bound: &WindowSpecBound, env: &Env, used: bool) -> Result<(FrameUnits, HirBound, HirBound, FrameExclude), SqlError> {
        let Some(f) = &s.frame else {
            return Ok((FrameUnits::Range, HirBound::UnboundedPreceding, HirBound::CurrentRow, FrameExclude::NoOthers));
        };
        if f.units == FrameUnits::Groups && bound.order.is_empty() {
            return Err(SqlError::new(state::WINDOWING_ERROR, "GROUPS mode requires an ORDER BY clause").at(f.pos));
        }
        let offset_edge = |e: &FrameEdge| matches!(e, FrameEdge::Preceding(_) | FrameEdge::Following(_));
        if f.units == FrameUnits::Range && (offset_edge(&f.start) || offset_edge(&f.end)) && bound.order.len() != 1 {
            return Err(SqlError::new(state::WINDOWING_ERROR, "RANGE with offset PRECEDING/FOLLOWING requires exactly one ORDER BY column").at(f.pos));
        }
        // A constant that no frame has is told whether the function asks for its frame or not, and of no rows too, but not of a window that no function names.
        let offset = |x: &Expr, which: &str| -> Result<HirScalar, SqlError> {
            let offset = self.frame_offset(x, f.units, bound, env)?;
            if !used {
                return Ok(offset);
            }
            match self.folded(offset.clone()) {
                HirScalar::Literal(Value::Null, _) => Err(SqlError::new(state::NULL_VALUE_NOT_ALLOWED, format!("frame {which} offset must not be null"))),
                HirScalar::Literal(v, _) if f.units != FrameUnits::Range && v.as_i64().is_some_and(|n| n < 0) => {
                    Err(SqlError::new(state::INVALID_PRECEDING_OR_FOLLOWING_SIZE, format!("frame {which} offset must not be negative")))
                }
                _ => Ok(offset),
            }
        };
        let edge = |e: &FrameEdge, which: &str| -> Result<HirBound, SqlError> {
            Ok(match e {
                FrameEdge::UnboundedPreceding => HirBound::UnboundedPreceding,
                FrameEdge::UnboundedFollowing => HirBound::UnboundedFollowing,
                FrameEdge::CurrentRow => HirBound::CurrentRow,
                FrameEdge::Preceding(x) => HirBound::Preceding(offset(x, which)?),
                FrameEdge::Following(x) => HirBound::Following(offset(x, which)?),
            })
        };
        Ok((f.units, edge(&f.start, "starting")?, edge(&f.end, "ending")?, f.exclude))
    }

    fn frame_offset(&self, e: &Expr, units: FrameUnits, bound: &WindowSpecBound, env: &Env) -> Result<HirScalar, SqlError> {
        let words = match units {
            FrameUnits::Rows => "ROWS",
            FrameUnits::Range => "RANGE",
            FrameUnits::Groups => "GROUPS",
        };
        let mut x = self.offset_of_type(e, units, words, bound, env)?;
        if super::walk::reads(&mut x, |_| true) {
            return Err(SqlError::new(state::INVALID_COLUMN_REFERENCE, format!("argument of {words} must not contain variables")).at(e.pos));
        }
        Ok(x)
    }

    /// The offset as the frame's units and the order want it.
    fn offset_of_type(&self, e: &Expr, units: FrameUnits, words: &str, bound: &WindowSpecBound, env: &Env) -> Result<HirScalar, SqlError> {
        let x = self.expr(e, env)?;
        if units != FrameUnits::Range {
            let from = x.typ().ty;
            return self.try_coerce(x, &SqlType::Int8.nullable(), CastContext::Assignment, e.pos)?.ok_or_else(|| {
                SqlError::new(state::DATATYPE_MISMATCH, format!("argument of {words} must be type bigint, not type {}", from.sql_name())).at(e.pos)
            });
        }
        let Some((key, _, _)) = bound.order.first() else { return Ok(x) };
        let kt = key.typ().ty;
        // The types in_range() knows for each ordering type, the first being the preferred one.
        let allowed: &[SqlType] = match kt {
            SqlType::Int2 | SqlType::Int4 | SqlType::Int8 => &[SqlType::Int8, SqlType::Int4, SqlType::Int2],
            SqlType::Float4 | SqlType::Float8 => &[SqlType::Float8],
            SqlType::Numeric => &[SqlType::Numeric],
            SqlType::Date | SqlType::Timestamp | SqlType::TimestampTz | SqlType::Time | SqlType::TimeTz | SqlType::Interval => &[SqlType::Interval],
            _ => {
                return Err(SqlError::new(
                    state::FEATURE_NOT_SUPPORTED,
                    format!("RANGE with offset PRECEDING/FOLLOWING is not supported for column type {}", kt.sql_name()),
                )
                .at(e.pos))
            }
        };
        let from = x.typ().ty;
        let target = if from == SqlType::Unknown {
            if matches!(kt, SqlType::Int2 | SqlType::Int4 | SqlType::Int8) {
                kt.clone()
            } else {
                allowed[0].clone()
            }
        } else {
            match allowed.iter().find(|t| **t == from).or_else(|| allowed.iter().find(|t| self.can_coerce(&from, t.oid(), CastContext::Implicit))) {
                Some(t) => t.clone(),
                None => {
                    return Err(SqlError::new(
                        state::FEATURE_NOT_SUPPORTED,
                        format!("RANGE with offset PRECEDING/FOLLOWING is not supported for column type {} and offset type {}", kt.sql_name(), from.sql_name()),
                    )
                    .with_hint("Cast the offset value to an appropriate type.")
                    .at(e.pos))
                }
            }
        };
        self.coerce_implicit(x, &target, e.pos)
    }
}
