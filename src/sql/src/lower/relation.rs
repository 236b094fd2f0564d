//! Relational operators, each against its outer relation.

use super::env::{exactly_one_row, literal_count, relation_may_fail, AbsRef, Env, Refs};
use super::scalar::Row;
use super::{cross, function, join_on, Cte, Lowerer};
use crate::hir::{Hir, HirRec, HirScalar, JoinKind};
use expr::{ColumnOrder, Frame, FrameBound, FrameExclude, FrameUnits, Scalar, TableFunc, WindowExpr, WindowFunc};
use plan::mir::RecBinding;
use plan::{Id, LocalId, Mir};
use repr::error::state;
use repr::{SqlError, SqlType, Value};
use std::collections::BTreeSet;

impl Lowerer {
    /// The outer columns that `h`, at the depth of `env`, refers to.
    pub(super) fn refs(&self, h: &Hir, depth: usize) -> BTreeSet<AbsRef> {
        let mut r = Refs { base: depth, ctes: &self.ctes, found: BTreeSet::new() };
        r.relation(h, depth);
        r.found
    }

    /// Outer columns, then the relation's.
    pub(super) fn relation(&mut self, h: Hir, env: &Env) -> Result<Mir, SqlError> {
        let only_if_reached = env.guarded && env.set && relation_may_fail(&h);
        if !env.is_unit() && !only_if_reached && self.refs(&h, env.depth).is_empty() {
            let alone = self.relation(h, &Env::unit(env.depth))?;
            return Ok(cross(env.outer.clone(), alone));
        }
        match h {
            Hir::Constant { rows, types } => Ok(Mir::Constant { rows: Ok(rows), types }),
            Hir::Get { id, types, keys } => Ok(Mir::Get { id: Id::Global(id), types, keys }),
            Hir::GetLocal { id, .. } => self.get_local(id, env),
            Hir::Let { id, value, body } => self.cte(id, *value, *body, env),
            Hir::LetRec { bindings, limit, return_at_limit, body } => self.recursive(bindings, limit, return_at_limit, *body, env),
            Hir::Project { input, outputs } => {
                let input = self.relation(*input, env)?;
                Ok(input.project((0..env.k).chain(outputs.into_iter().map(|o| env.k + o)).collect()))
            }
            Hir::Map { input, scalars } => {
                let mut row = self.row(*input, env)?;
                self.map(&mut row, scalars, env)?;
                Ok(row.finish())
            }
            Hir::Filter { input, predicates } => {
                let mut row = self.row(*input, env)?;
                self.filter(&mut row, predicates, env)?;
                Ok(row.finish())
            }
            Hir::CallTable { func, args, columns, with_ordinality } => self.call_table(func, args, columns, with_ordinality, env),
            Hir::RowsFrom { functions, with_ordinality } => self.rows_from(functions, with_ordinality, env),
            Hir::Join { left, right, on, kind, lateral } => self.join(*left, *right, on, kind, lateral, env),
            Hir::Reduce { input, group_key, aggregates, scalar } => {
                let mut row = self.row(*input, env)?;
                let aggregates = aggregates.into_iter().map(|a| self.aggregate(a, &mut row, env)).collect::<Result<Vec<_>, _>>()?;
                let one_row = scalar && group_key.is_empty();
                let group_key = (0..env.k).chain(group_key.into_iter().map(|c| row.cols[c])).map(Scalar::Column).collect();
                let default = |a: &expr::Aggregate| match expr::agg::empty_error(a) {
                    Some(e) => Scalar::Error(Box::new(e), a.ty.clone()),
                    None => Scalar::Literal(expr::agg::empty_value(a), a.ty.clone()),
                };
                let defaults: Vec<Scalar> = aggregates.iter().map(default).collect();
                let groups = Mir::Reduce { input: row.mir.boxed(), group_key, aggregates };
                if !one_row {
                    return Ok(groups);
                }
                let (get, binding) = self.bind(groups);
                let absent = env.outer.clone().union(get.clone().project((0..env.k).collect()).negate());
                Ok(binding.around(get.union(absent.map(defaults))))
            }
            Hir::Distinct { input } => Ok(self.relation(*input, env)?.distinct()),
            Hir::TopK { input, group_key, order_by, limit, offset, with_ties } => self.top_k(*input, group_key, order_by, limit, offset, with_ties, env),
            Hir::Window { input, partition, order_by, exprs } => {
                let mut row = self.row(*input, env)?;
                let exprs = exprs.into_iter().map(|e| self.window(e, &mut row, env)).collect::<Result<Vec<_>, _>>()?;
                let partition = (0..env.k).chain(partition.into_iter().map(|c| row.cols[c])).collect();
                let order_by = order_by.into_iter().map(|o| ColumnOrder { column: row.cols[o.column], ..o }).collect();
                let n = row.mir.arity();
                row.cols.extend(n..n + exprs.len());
                row.mir = Mir::Window { input: row.mir.boxed(), partition, order_by, exprs };
                Ok(row.finish())
            }
            Hir::Union { inputs } => Ok(Mir::Union { inputs: inputs.into_iter().map(|i| self.relation(i, env)).collect::<Result<_, _>>()? }),
            Hir::Intersect { left, right, all } => self.intersect(*left, *right, all, env),
            Hir::Except { left, right, all } => self.except(*left, *right, all, env),
        }
    }

    /// A relation as rows on which scalars can be lowered.
    pub(super) fn row(&mut self, input: Hir, env: &Env) -> Result<Row, SqlError> {
        let mir = self.relation(input, env)?;
        Ok(Row { k: env.k, cols: (env.k..mir.arity()).collect(), mir })
    }

    fn get_local(&mut self, id: LocalId, env: &Env) -> Result<Mir, SqlError> {
        let cte = self.ctes.get(&id).ok_or_else(|| SqlError::internal(format!("binding {} is not in scope", id.0)))?.clone();
        let k = cte.prefix.len();
        let get = Mir::Get { id: Id::Local(cte.id), types: cte.types, keys: vec![] };
        if k == 0 || cte.env == env.number {
            return Ok(get);
        }
        let mut on = Vec::new();
        for (j, r) in cte.prefix.iter().enumerate() {
            on.push((*env.map.get(r).ok_or_else(|| SqlError::internal("an outer column of a binding is out of reach"))?, j));
        }
        let n = get.arity();
        Ok(join_on(env.outer.clone(), get, on).project((0..env.k).chain(env.k + k..env.k + n).collect()))
    }

    /// The columns of an outer relation, in order, by name. All are nameable in a relation of distinct outer rows.
    fn prefix(env: &Env) -> Vec<AbsRef> {
        let mut named: Vec<(usize, AbsRef)> = env.map.iter().map(|(r, i)| (*i, *r)).collect();
        named.sort_unstable();
        named.into_iter().map(|(_, r)| r).collect()
    }

    fn cte(&mut self, id: LocalId, value: Hir, body: Hir, env: &Env) -> Result<Mir, SqlError> {
        let value_env = if self.refs(&value, env.depth).is_empty() { Env::unit(env.depth) } else { env.clone() };
        let value = self.relation(value, &value_env)?;
        let local = self.fresh();
        let cte = Cte { id: local, env: value_env.number, prefix: Self::prefix(&value_env), types: value.types() };
        let shadowed = self.ctes.insert(id, cte);
        let body = self.relation(body, env);
        self.unbind(id, shadowed);
        Ok(Mir::Let { id: local, value: value.boxed(), body: body?.boxed() })
    }

    fn unbind(&mut self, id: LocalId, shadowed: Option<Cte>) {
        match shadowed {
            Some(cte) => self.ctes.insert(id, cte),
            None => self.ctes.remove(&id),
        };
    }

    fn recursive(&mut self, bindings: Vec<HirRec>, limit: Option<u64>, return_at_limit: bool, body: Hir, env: &Env) -> Result<Mir, SqlError> {
        let correlated = bindings.iter().any(|b| !self.refs(&b.value, env.depth).is_empty());
        let value_env = if correlated { env.clone() } else { Env::unit(env.depth) };
        let outer_types = value_env.outer.types();
        let mut shadowed = Vec::new();
        let mut ids = Vec::new();
        for b in &bindings {
            let id = self.fresh();
            let types = outer_types.iter().chain(&b.types).cloned().collect();
            ids.push(id);
            shadowed.push((b.id, self.ctes.insert(b.id, Cte { id, env: value_env.number, prefix: Self::prefix(&value_env), types })));
        }
        let mut lowered = Vec::new();
        let mut failed = None;
        for (b, id) in bindings.into_iter().zip(ids) {
            let types = outer_types.iter().chain(&b.types).cloned().collect();
            match self.relation(b.value, &value_env) {
                Ok(value) => lowered.push(RecBinding { id, types, value }),
                Err(e) => failed = failed.or(Some(e)),
            }
        }
        let body = self.relation(body, env);
        for (id, old) in shadowed.into_iter().rev() {
            self.unbind(id, old);
        }
        match failed {
            Some(e) => Err(e),
            None => Ok(Mir::LetRec { bindings: lowered, limit, return_at_limit, body: body?.boxed() }),
        }
    }

    fn call_table(
        &mut self,
        func: &'static expr::TableFuncDef,
        args: Vec<HirScalar>,
        columns: Vec<repr::ColType>,
        with_ordinality: bool,
        env: &Env,
    ) -> Result<Mir, SqlError> {
        let mut row = Row { mir: env.outer.clone(), k: env.k, cols: vec![] };
        let args = args.into_iter().map(|a| self.scalar(a, &mut row, env)).collect::<Result<Vec<_>, _>>()?;
        let before = row.mir.arity();
        let called = Mir::FlatMap { input: row.mir.boxed(), func: TableFunc { func, args, columns, with_ordinality } };
        if before == env.k {
            return Ok(called);
        }
        let n = called.arity();
        Ok(called.project((0..env.k).chain(before..n).collect()))
    }

    /// Functions side by side: the union of their row numbers is the spine, to which each is joined from the left.
    fn rows_from(&mut self, functions: Vec<Hir>, with_ordinality: bool, env: &Env) -> Result<Mir, SqlError> {
        let k = env.k;
        let mut bindings = Vec::new();
        let mut numbered = Vec::new();
        for f in functions {
            let Hir::CallTable { func, args, columns, with_ordinality: inner } = f else {
                return Err(SqlError::internal("ROWS FROM holds functions only"));
            };
            let mut called = self.call_table(func, args, columns, true, env)?;
            if inner {
                // A function's own ordinality is a column of its own, which may be padded.
                let n = called.arity();
                called = called.project((0..n).chain([n - 1]).collect());
            }
            let (get, b) = self.bind(called);
            bindings.push(b);
            numbered.push(get);
        }
        let numbers = numbered.iter().map(|f| {
            let n = f.arity();
            f.clone().project((0..k).chain([n - 1]).collect())
        });
        let (spine, spine_binding) = self.bind(Mir::Union { inputs: numbers.collect() }.distinct());
        bindings.push(spine_binding);
        let mut result = spine.clone();
        let mut outputs: Vec<usize> = (0..k).collect();
        for f in numbered {
            let n = f.arity();
            let key = (0..k).map(|i| (i, i)).chain([(k, n - 1)]);
            let matched = join_on(spine.clone(), f.clone(), key).project((0..=k).chain(k + 1 + k..k + 1 + n - 1).collect());
            let types = f.types();
            let padding = types[k..n - 1].iter().map(|t| Scalar::Literal(Value::Null, t.clone().with_nullable(true))).collect();
            let present = f.project((0..k).chain([n - 1]).collect());
            let absent = spine.clone().union(present.negate()).map(padding);
            let part = matched.union(absent);
            let before = result.arity();
            let width = n - 1 - k;
            result = join_on(result, part, (0..=k).map(|i| (i, i)));
            outputs.extend(before + k + 1..before + k + 1 + width);
        }
        if with_ordinality {
            outputs.push(k);
        }
        let result = result.project(outputs);
        Ok(bindings.into_iter().rev().fold(result, |body, b| b.around(body)))
    }

    #[allow(clippy::too_many_arguments)] // the fields of one node
    fn top_k(
        &mut self,
        input: Hir,
        group_key: Vec<usize>,
        order_by: Vec<ColumnOrder>,
        limit: Option<HirScalar>,
        offset: Option<HirScalar>,
        with_ties: bool,
        env: &Env,
    ) -> Result<Mir, SqlError> {
        let k = env.k;
        let literal_limit = limit.as_ref().map_or(Some(None), literal_count);
        let literal_offset = offset.as_ref().map_or(Some(None), literal_count);
        if let (Some(limit), Some(offset)) = (literal_limit, literal_offset) {
            let input = self.relation(input, env)?;
            let offset = offset.unwrap_or(0);
            if limit.is_none() && offset == 0 {
                return Ok(input);
            }
            return Ok(Mir::TopK {
                input: input.boxed(),
                group_key: (0..k).chain(group_key.into_iter().map(|c| k + c)).collect(),
                order_by: order_by.into_iter().map(|o| ColumnOrder { column: k + o.column, ..o }).collect(),
                limit: limit.map(|n| Scalar::literal(Value::Int8(i64::try_from(n).unwrap_or(i64::MAX)), SqlType::Int8)),
                offset,
                with_ties,
            });
        }
        self.computed_top_k(input, group_key, order_by, limit, offset, with_ties, env)
    }

    /// A limit or offset that is computed: both are columns of each outer row; the rows are numbered and compared with them.
    #[allow(clippy::too_many_arguments)] // the fields of one node
    fn computed_top_k(
        &mut self,
        input: Hir,
        group_key: Vec<usize>,
        order_by: Vec<ColumnOrder>,
        limit: Option<HirScalar>,
        offset: Option<HirScalar>,
        with_ties: bool,
        env: &Env,
    ) -> Result<Mir, SqlError> {
        let k = env.k;
        let null = Scalar::null(SqlType::Int8);
        let zero = Scalar::literal(Value::Int8(0), SqlType::Int8);
        // The bounds of each outer row, checked even where there are no rows.
        let mut row = Row { mir: env.outer.clone(), k, cols: vec![] };
        let limit = limit.map_or(Ok(null), |l| self.scalar(l, &mut row, env))?;
        let offset = offset.map_or(Ok(zero.clone()), |o| self.scalar(o, &mut row, env))?;
        let n = row.mir.arity();
        let bounds = row.mir.map(vec![limit, Scalar::Coalesce(vec![offset, zero.clone()], SqlType::Int8.not_null())]);
        let bounds = bounds.project((0..k).chain([n, n + 1]).collect());
        let less =
            |a: Scalar, b: Scalar| -> Result<Scalar, SqlError> { Ok(Scalar::Call { func: function(469)?, args: vec![a, b], ty: SqlType::Bool.nullable() }) };
        let negative = |c: usize, code, what: &str| -> Result<(Scalar, Scalar), SqlError> {
            let e = SqlError::new(code, format!("{what} must not be negative"));
            Ok((less(Scalar::Column(c), zero.clone())?, Scalar::Error(Box::new(e), SqlType::Bool.not_null())))
        };
        let checked = Scalar::Case {
            branches: vec![negative(k + 1, state::INVALID_ROW_COUNT_IN_OFFSET, "OFFSET")?, negative(k, state::INVALID_ROW_COUNT_IN_LIMIT, "LIMIT")?],
            otherwise: Box::new(Scalar::bool(true)),
            ty: SqlType::Bool.not_null(),
        };
        let bounds = bounds.filter(vec![checked]);

        let input = self.relation(input, env)?;
        let width = input.arity();
        let joined = join_on(input, bounds, (0..k).map(|i| (i, i)));
        let (limit, offset) = (Scalar::Column(width + k), Scalar::Column(width + k + 1));
        let frame =
            Frame { units: FrameUnits::Rows, start: FrameBound::UnboundedPreceding, end: FrameBound::UnboundedFollowing, exclude: FrameExclude::NoOthers };
        let number = |func| WindowExpr { func, frame: frame.clone(), ty: SqlType::Int8.not_null() };
        let n = joined.arity();
        let numbered = Mir::Window {
            input: joined.boxed(),
            partition: (0..k).chain(group_key.into_iter().map(|c| k + c)).collect(),
            order_by: order_by.into_iter().map(|o| ColumnOrder { column: k + o.column, ..o }).collect(),
            exprs: vec![number(WindowFunc::RowNumber), number(if with_ties { WindowFunc::Rank } else { WindowFunc::RowNumber })],
        };
        // offset < number, and number - offset <= limit: the difference cannot overflow, the sum could.
        let beyond = Scalar::Call { func: function(464)?, args: vec![Scalar::Column(n + 1), offset.clone()], ty: SqlType::Int8.not_null() };
        let kept = Scalar::Or(vec![Scalar::IsNull(Box::new(limit.clone())), Scalar::Not(Box::new(less(limit, beyond)?))]);
        Ok(numbered.filter(vec![less(offset, Scalar::Column(n))?, kept]).project((0..width).collect()))
    }

    /// Whether `h`, evaluated against an outer relation that is no set, gives for each outer row its own rows: row by row work only.
    /// Parts that refer to nothing outside may be anything.
    pub(super) fn is_linear(&self, h: &Hir, depth: usize) -> bool {
        if self.refs(h, depth).is_empty() {
            return true;
        }
        match h {
            Hir::GetLocal { .. } | Hir::CallTable { .. } => true,
            Hir::Project { input, .. } | Hir::Map { input, .. } | Hir::Filter { input, .. } => self.is_linear(input, depth),
            Hir::Let { value, body, .. } => self.refs(value, depth).is_empty() && self.is_linear(body, depth),
            Hir::Join { left, right, kind: JoinKind::Inner, lateral, .. } => {
                self.is_linear(left, depth) && self.is_linear(right, depth + usize::from(*lateral))
            }
            Hir::Union { inputs } => inputs.iter().all(|i| self.is_linear(i, depth)),
            _ => false,
        }
    }

    /// Whether a scalar subquery is just an expression over the enclosing row.
    pub(super) fn is_expression(&self, h: &Hir, depth: usize) -> bool {
        exactly_one_row(h) && self.is_linear(h, depth)
    }
}
