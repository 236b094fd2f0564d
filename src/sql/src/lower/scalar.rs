//! Scalars on rows, and the subqueries in them.
//!
//! A subquery in a scalar becomes a column: the rows gain it by a join with the subquery's result for each combination of the
//! columns it refers to. In a WHERE, where only "true" matters, EXISTS, IN, ANY and ALL become semijoins and antijoins.

use super::env::{self, at_most_one_row, exactly_one_row, has_subquery, subquery_may_fail, AbsRef, Env, Refs};
use super::join::nulls;
use super::{aggregate, function, join_on, Binding, Lowerer};
use crate::hir::{Hir, HirAggregate, HirBound, HirScalar, HirWindow, HirWindowFunc, Quantifier};
use expr::{Aggregate, ColumnOrder, Frame, FrameBound, Scalar, WindowExpr, WindowFunc};
use plan::equality::is_equality;
use plan::Mir;
use repr::error::state;
use repr::{ColType, SqlError, SqlType, Value};
use std::collections::BTreeSet;

/// Rows under work: `k` outer columns first, then the relation's own at `cols`; columns between are by-products.
pub(super) struct Row {
    pub mir: Mir,
    pub k: usize,
    pub cols: Vec<usize>,
}

impl Row {
    /// Drops by-products.
    pub fn finish(self) -> Mir {
        let outputs: Vec<usize> = (0..self.k).chain(self.cols).collect();
        if outputs.iter().copied().eq(0..self.mir.arity()) {
            return self.mir;
        }
        self.mir.project(outputs)
    }

    fn append(&mut self, scalar: Scalar) -> usize {
        let at = self.mir.arity();
        let mir = std::mem::replace(&mut self.mir, Mir::unit());
        self.mir = match mir {
            Mir::Map { input, mut scalars } => {
                scalars.push(scalar);
                Mir::Map { input, scalars }
            }
            other => other.map(vec![scalar]),
        };
        at
    }
}

/// Rows bound to be read twice, and the distinct values of some of their columns as an outer relation.
pub(super) struct Keyed {
    pub rows: Mir,
    pub env: Env,
    /// Where the outer relation's columns are in `rows`.
    pub positions: Vec<usize>,
    pub bindings: Vec<Binding>,
}

/// What a comparison must be for a row of the subquery to count.
#[derive(Clone, Copy)]
enum Counts {
    True,
    False,
    NotTrue,
    NotFalse,
}

impl Lowerer {
    /// Binds the rows, and makes them the outer relation themselves.
    pub(super) fn row_env(&mut self, row: &mut Row, env: &Env, deeper: bool) -> (Env, Binding) {
        let (get, binding) = self.bind(std::mem::replace(&mut row.mir, Mir::unit()));
        row.mir = get.clone();
        let mut map = env.map.clone();
        if deeper {
            map.extend(row.cols.iter().enumerate().map(|(column, at)| (AbsRef { scope: env.depth, column }, *at)));
        }
        self.next_env += 1;
        let k = get.arity();
        (Env { outer: get, k, map, depth: env.depth + usize::from(deeper), set: false, guarded: env.guarded, number: self.next_env }, binding)
    }

    /// Binds the rows, and makes the distinct values of the columns `refs` an outer relation of depth `depth`.
    pub(super) fn keyed(&mut self, row: &mut Row, refs: BTreeSet<AbsRef>, env: &Env, depth: usize, reached: bool) -> Result<Keyed, SqlError> {
        let (rows, binding) = self.bind(std::mem::replace(&mut row.mir, Mir::unit()));
        if refs.is_empty() && !reached {
            return Ok(Keyed { rows, env: Env { guarded: env.guarded, ..Env::unit(depth) }, positions: vec![], bindings: vec![binding] });
        }
        let mut positions = Vec::new();
        for r in &refs {
            let at = if r.scope == env.depth { row.cols.get(r.column) } else { env.map.get(r) };
            positions.push(*at.ok_or_else(|| SqlError::internal(format!("outer column {r:?} is out of reach")))?);
        }
        let (outer, outer_binding) = self.bind(rows.clone().project(positions.clone()).distinct());
        self.next_env += 1;
        let inner = Env { outer, k: positions.len(), map: refs.into_iter().zip(0..).collect(), depth, set: true, guarded: env.guarded, number: self.next_env };
        Ok(Keyed { rows, env: inner, positions, bindings: vec![binding, outer_binding] })
    }

    /// Appends columns to the row; later scalars see the earlier ones' columns.
    pub(super) fn map(&mut self, row: &mut Row, scalars: Vec<HirScalar>, env: &Env) -> Result<(), SqlError> {
        for s in scalars {
            let s = self.scalar(s, row, env)?;
            let at = row.append(s);
            row.cols.push(at);
        }
        Ok(())
    }

    /// Keeps the rows on which all predicates are true. Conjuncts without subqueries go first: they are cheap, and may
    /// keep rows from a subquery that fails on them.
    pub(super) fn filter(&mut self, row: &mut Row, predicates: Vec<HirScalar>, env: &Env) -> Result<(), SqlError> {
        let (costly, cheap): (Vec<_>, Vec<_>) = predicates.into_iter().flat_map(conjuncts).partition(has_subquery);
        let cheap = cheap.into_iter().map(|p| self.scalar(p, row, env)).collect::<Result<Vec<_>, _>>()?;
        row.mir = std::mem::replace(&mut row.mir, Mir::unit()).filter(cheap);
        for p in costly {
            self.keep_true(row, p, env)?;
        }
        Ok(())
    }

    fn keep_true(&mut self, row: &mut Row, predicate: HirScalar, env: &Env) -> Result<(), SqlError> {
        match predicate {
            HirScalar::Exists(h) => self.semijoin(row, *h, None, false, env),
            HirScalar::Quantified { quantifier, comparison, input } => match quantifier {
                Quantifier::Any => self.semijoin(row, *input, Some((*comparison, Counts::True)), false, env),
                Quantifier::All => self.semijoin(row, *input, Some((*comparison, Counts::NotTrue)), true, env),
            },
            HirScalar::Not(x) => match *x {
                HirScalar::Not(y) => self.keep_true(row, *y, env),
                HirScalar::Exists(h) => self.semijoin(row, *h, None, true, env),
                HirScalar::Quantified { quantifier, comparison, input } => match quantifier {
                    Quantifier::Any => self.semijoin(row, *input, Some((*comparison, Counts::NotFalse)), true, env),
                    Quantifier::All => self.semijoin(row, *input, Some((*comparison, Counts::False)), false, env),
                },
                other => self.keep_column(row, HirScalar::Not(Box::new(other)), env),
            },
            other => self.keep_column(row, other, env),
        }
    }

    fn keep_column(&mut self, row: &mut Row, predicate: HirScalar, env: &Env) -> Result<(), SqlError> {
        let s = self.scalar(predicate, row, env)?;
        row.mir = std::mem::replace(&mut row.mir, Mir::unit()).filter(vec![s]);
        Ok(())
    }

    /// Keeps the rows for which `sub` has a row that counts, or with `anti` those for which it has none.
    fn semijoin(&mut self, row: &mut Row, sub: Hir, comparison: Option<(HirScalar, Counts)>, anti: bool, env: &Env) -> Result<(), SqlError> {
        let keyed = self.keyed_for(row, &sub, comparison.as_ref().map(|c| &c.0), env)?;
        let k = keyed.env.k;
        let mut inner = self.row(sub, &keyed.env)?;
        // What makes a row count; any one of several.
        let mut alternatives = vec![];
        match comparison {
            None => {}
            Some((c, Counts::True)) => self.filter(&mut inner, vec![c], &keyed.env)?,
            Some((c, counts)) => {
                let c = self.scalar(c, &mut inner, &keyed.env)?;
                let types = inner.mir.types();
                alternatives = match counts {
                    Counts::True => vec![c],
                    Counts::False => vec![Scalar::Not(Box::new(c))],
                    Counts::NotTrue => or_null(Scalar::Not(Box::new(c.clone())), &c, &types),
                    Counts::NotFalse => or_null(c.clone(), &c, &types),
                };
            }
        }
        let (present, binding) = self.keys_of(inner.mir, alternatives, k);
        let n = keyed.rows.arity();
        let matched = join_on(keyed.rows.clone(), present, keyed.positions.iter().copied().zip(0..)).project((0..n).collect());
        let kept = if anti { keyed.rows.union(matched.negate()) } else { matched };
        row.mir = keyed.bindings.into_iter().chain(binding).rev().fold(kept, |body, b| b.around(body));
        Ok(())
    }

    /// The distinct outer columns of the rows on which one of the predicates is true (all rows if there are none given).
    fn keys_of(&mut self, inner: Mir, alternatives: Vec<Scalar>, k: usize) -> (Mir, Option<Binding>) {
        let keys = |m: Mir| m.project((0..k).collect());
        if alternatives.len() < 2 {
            return (keys(inner.filter(alternatives)).distinct(), None);
        }
        let (get, binding) = self.bind(inner);
        let parts = alternatives.into_iter().map(|p| keys(get.clone().filter(vec![p]))).collect();
        (Mir::Union { inputs: parts }.distinct(), Some(binding))
    }

    fn keyed_for(&mut self, row: &mut Row, sub: &Hir, comparison: Option<&HirScalar>, env: &Env) -> Result<Keyed, SqlError> {
        let depth = env.depth + 1;
        let mut refs = Refs { base: depth, ctes: &self.ctes, found: BTreeSet::new() };
        refs.relation(sub, depth);
        if let Some(c) = comparison {
            refs.scalar(c, depth);
        }
        let found = refs.found;
        let reached = env.guarded && (env::relation_may_fail(sub) || comparison.is_some_and(env::scalar_may_fail));
        self.keyed(row, found, env, depth, reached)
    }

    /// The scalar over the columns of `row.mir`, which gains columns for subqueries.
    pub(super) fn scalar(&mut self, s: HirScalar, row: &mut Row, env: &Env) -> Result<Scalar, SqlError> {
        Ok(match s {
            HirScalar::Column(c, _) => Scalar::Column(self.column(c, row, env)?),
            HirScalar::Parameter(i, _) => return Err(SqlError::new(state::UNDEFINED_PARAMETER, format!("there is no parameter ${}", i + 1))),
            HirScalar::Literal(v, t) => Scalar::Literal(v, t),
            HirScalar::Error(e, t) => Scalar::Error(e, t),
            HirScalar::Call { func, args, ty } => Scalar::Call { func, args: self.scalars(args, row, env)?, ty },
            HirScalar::IsNull(x) => Scalar::IsNull(Box::new(self.scalar(*x, row, env)?)),
            HirScalar::Not(x) => Scalar::Not(Box::new(self.scalar(*x, row, env)?)),
            HirScalar::And(xs) => self.decided(xs, Decided::And, row, env)?,
            HirScalar::Or(xs) => self.decided(xs, Decided::Or, row, env)?,
            HirScalar::Coalesce(xs, t) => self.decided(xs, Decided::Coalesce(t), row, env)?,
            HirScalar::Case { branches, otherwise, ty } => self.case(branches, *otherwise, ty, row, env)?,
            HirScalar::Exists(h) => self.exists(*h, row, env)?,
            HirScalar::Subquery(h, ty) => self.subquery(*h, ty, row, env)?,
            HirScalar::ArraySubquery { input, order_by, column, ty } => self.array_subquery(*input, order_by, column, ty, row, env)?,
            HirScalar::Quantified { quantifier, comparison, input } => self.quantified(quantifier, *comparison, *input, row, env)?,
        })
    }

    pub(super) fn scalars(&mut self, xs: Vec<HirScalar>, row: &mut Row, env: &Env) -> Result<Vec<Scalar>, SqlError> {
        xs.into_iter().map(|x| self.scalar(x, row, env)).collect()
    }

    fn column(&self, c: crate::hir::ColumnRef, row: &Row, env: &Env) -> Result<usize, SqlError> {
        let at = match c.level {
            0 => row.cols.get(c.column).copied(),
            level => env.scope(level).and_then(|scope| env.map.get(&AbsRef { scope, column: c.column }).copied()),
        };
        at.ok_or_else(|| SqlError::internal(format!("column {} of level {} is out of reach", c.column, c.level)))
    }

    /// AND, OR, COALESCE: where a later operand has a subquery that may fail, only the rows that the earlier ones leave
    /// undecided reach it.
    fn decided(&mut self, xs: Vec<HirScalar>, kind: Decided, row: &mut Row, env: &Env) -> Result<Scalar, SqlError> {
        if !xs.iter().skip(1).any(subquery_may_fail) {
            return Ok(kind.build(self.scalars(xs, row, env)?));
        }
        let mut xs = xs.into_iter();
        let Some(first) = xs.next() else { return Ok(kind.build(vec![])) };
        let first = self.scalar(first, row, env)?;
        let first = Scalar::Column(row.append(first));
        let rest: Vec<HirScalar> = xs.collect();
        let is_decided = match &kind {
            Decided::And => Scalar::Not(Box::new(first.clone())),
            Decided::Or => first.clone(),
            Decided::Coalesce(_) => Scalar::Not(Box::new(Scalar::IsNull(Box::new(first.clone())))),
        };
        let own = first.clone();
        let undecided = |l: &mut Lowerer, row: &mut Row, env: &Env| {
            let rest = l.decided(rest, kind.clone(), row, env)?;
            Ok(kind.build(vec![first, rest]))
        };
        self.split(row, is_decided, |_, _, _| Ok(own), undecided, env)
    }

    fn case(&mut self, branches: Vec<(HirScalar, HirScalar)>, otherwise: HirScalar, ty: ColType, row: &mut Row, env: &Env) -> Result<Scalar, SqlError> {
        let guarded =
            branches.iter().any(|(_, r)| subquery_may_fail(r)) || branches.iter().skip(1).any(|(c, _)| subquery_may_fail(c)) || subquery_may_fail(&otherwise);
        if !guarded {
            let mut lowered = Vec::new();
            for (c, r) in branches {
                lowered.push((self.scalar(c, row, env)?, self.scalar(r, row, env)?));
            }
            return Ok(Scalar::Case { branches: lowered, otherwise: Box::new(self.scalar(otherwise, row, env)?), ty });
        }
        let mut branches = branches.into_iter();
        let Some((condition, result)) = branches.next() else { return self.scalar(otherwise, row, env) };
        let condition = self.scalar(condition, row, env)?;
        let rest: Vec<_> = branches.collect();
        // A CASE around either side keeps the declared type.
        let typed = |s: Scalar, ty: &ColType| Scalar::Case { branches: vec![], otherwise: Box::new(s), ty: ty.clone() };
        let (t1, t2) = (ty.clone(), ty);
        self.split(
            row,
            condition,
            |l, row, env| Ok(typed(l.scalar(result, row, env)?, &t1)),
            |l, row, env| if rest.is_empty() { Ok(typed(l.scalar(otherwise, row, env)?, &t2)) } else { l.case(rest, otherwise, t2.clone(), row, env) },
            env,
        )
    }

    /// Rows on which `condition` is true get the one value, all others the other; each is lowered on its rows alone.
    fn split(
        &mut self,
        row: &mut Row,
        condition: Scalar,
        then: impl FnOnce(&mut Lowerer, &mut Row, &Env) -> Result<Scalar, SqlError>,
        otherwise: impl FnOnce(&mut Lowerer, &mut Row, &Env) -> Result<Scalar, SqlError>,
        env: &Env,
    ) -> Result<Scalar, SqlError> {
        let n = row.mir.arity();
        let c = row.append(condition);
        let (rows, binding) = self.bind(std::mem::replace(&mut row.mir, Mir::unit()));
        let guarded = Env { guarded: true, ..env.clone() };
        let is_true = Scalar::Column(c);
        let is_not = Scalar::Or(vec![Scalar::Not(Box::new(is_true.clone())), Scalar::IsNull(Box::new(is_true.clone()))]);
        let part = |predicate: Scalar| Row { mir: rows.clone().filter(vec![predicate]), k: row.k, cols: row.cols.clone() };
        let keep = |mut r: Row, s: Scalar| {
            let at = r.append(s);
            r.mir.project((0..n).chain([at]).collect())
        };
        let mut yes = part(is_true);
        let value = then(self, &mut yes, &guarded)?;
        let yes = keep(yes, value);
        let mut no = part(is_not);
        let value = otherwise(self, &mut no, &guarded)?;
        let no = keep(no, value);
        row.mir = binding.around(yes.union(no));
        Ok(Scalar::Column(n))
    }

    /// Joins `result` (outer columns, then one value, one row an outer row) to the rows: the value's column.
    fn attach(&mut self, row: &mut Row, keyed: Keyed, inner: Vec<Binding>, result: Mir) -> Scalar {
        let (n, k) = (keyed.rows.arity(), keyed.env.k);
        let joined = join_on(keyed.rows, result, keyed.positions.iter().copied().zip(0..));
        let joined = joined.project((0..n).chain([n + k]).collect());
        row.mir = keyed.bindings.into_iter().chain(inner).rev().fold(joined, |body, b| b.around(body));
        Scalar::Column(n)
    }

    /// A column that is true or false.
    fn exists(&mut self, sub: Hir, row: &mut Row, env: &Env) -> Result<Scalar, SqlError> {
        let keyed = self.keyed_for(row, &sub, None, env)?;
        let k = keyed.env.k;
        let inner = self.relation(sub, &keyed.env)?;
        let (present, binding) = self.bind(inner.project((0..k).collect()).distinct());
        let absent = keyed.env.outer.clone().union(present.clone().negate());
        let result = present.map(vec![Scalar::bool(true)]).union(absent.map(vec![Scalar::bool(false)]));
        Ok(self.attach(row, keyed, vec![binding], result))
    }

    /// ANY is true if one comparison is, else NULL if one is NULL, else false; ALL dually.
    fn quantified(&mut self, quantifier: Quantifier, comparison: HirScalar, sub: Hir, row: &mut Row, env: &Env) -> Result<Scalar, SqlError> {
        let keyed = self.keyed_for(row, &sub, Some(&comparison), env)?;
        let k = keyed.env.k;
        let mut inner = self.row(sub, &keyed.env)?;
        let c = self.scalar(comparison, &mut inner, &keyed.env)?;
        let at = inner.append(c);
        let (compared, compared_binding) = self.bind(inner.mir.project((0..k).chain([at]).collect()));
        let c = Scalar::Column(k);
        // What decides: one true comparison for ANY, one false comparison for ALL.
        let decisive = match quantifier {
            Quantifier::Any => c.clone(),
            Quantifier::All => Scalar::Not(Box::new(c.clone())),
        };
        let keys = |p: Scalar| compared.clone().filter(vec![p]).project((0..k).collect());
        let nullable = compared.types()[k].nullable;
        let (decided, decided_binding) = self.bind(keys(decisive).distinct());
        let open = decided.clone().union(keys(Scalar::IsNull(Box::new(c)))).distinct();
        let (not_settled, open_binding) = self.bind(if nullable { open } else { decided.clone() });
        let value = quantifier == Quantifier::Any;
        let unknown = not_settled.clone().union(decided.clone().negate()).map(vec![Scalar::null(SqlType::Bool)]);
        let settled = keyed.env.outer.clone().union(not_settled.negate()).map(vec![Scalar::bool(!value)]);
        let mut parts = vec![decided.map(vec![Scalar::bool(value)]), settled];
        if nullable {
            parts.push(unknown);
        }
        let result = Mir::Union { inputs: parts };
        Ok(self.attach(row, keyed, vec![compared_binding, decided_binding, open_binding], result))
    }

    fn subquery(&mut self, sub: Hir, ty: ColType, row: &mut Row, env: &Env) -> Result<Scalar, SqlError> {
        if self.is_expression(&sub, env.depth + 1) {
            let (inner, binding) = self.row_env(row, env, true);
            let n = inner.k;
            row.mir = binding.around(self.relation(sub, &inner)?);
            return Ok(Scalar::Column(n));
        }
        let (one, at_most_one) = (exactly_one_row(&sub), at_most_one_row(&sub));
        let keyed = self.keyed_for(row, &sub, None, env)?;
        let k = keyed.env.k;
        let value = self.relation(sub, &keyed.env)?;
        if one {
            return Ok(self.attach(row, keyed, vec![], value));
        }
        let null = nulls(std::slice::from_ref(&ty));
        if at_most_one {
            // A left join: a look-up then needs no distinct outer rows.
            let (value, binding) = if binds(&value) {
                let (get, b) = self.bind(value);
                (get, Some(b))
            } else {
                (value, None)
            };
            let n = keyed.rows.arity();
            let on = || keyed.positions.iter().copied().zip(0..);
            let found = join_on(keyed.rows.clone(), value.clone(), on()).project((0..n).chain([n + k]).collect());
            let keys = value.project((0..k).collect());
            let with_value = join_on(keyed.rows.clone(), keys, on()).project((0..n).collect());
            let without = keyed.rows.clone().union(with_value.negate()).map(null);
            row.mir = keyed.bindings.into_iter().chain(binding).rev().fold(found.union(without), |body, b| b.around(body));
            return Ok(Scalar::Column(n));
        }
        let (value, value_binding) = self.bind(value);
        let int8 = SqlType::Int8.not_null();
        let count = Aggregate { func: aggregate(2803)?, args: vec![], direct: 0, distinct: false, filter: None, order_by: vec![], ty: int8 };
        let group_key = (0..k).map(Scalar::Column).collect();
        let (counts, count_binding) = self.bind(Mir::Reduce { input: value.clone().boxed(), group_key, aggregates: vec![count] });
        let more =
            Scalar::Call { func: function(470)?, args: vec![Scalar::Column(k), Scalar::literal(Value::Int8(1), SqlType::Int8)], ty: SqlType::Bool.not_null() };
        let error = SqlError::new(state::CARDINALITY_VIOLATION, "more than one row returned by a subquery used as an expression");
        // The error stands in a filter, so that it is raised even if nobody reads the value: the rows of such a group would
        // be repeated. And it is the value, so that no condition on the value takes the branch for empty.
        let value_error = Scalar::Error(Box::new(error.clone()), ty);
        let error = Scalar::Error(Box::new(error), SqlType::Bool.not_null());
        let only_keys: Vec<usize> = (0..k).collect();
        let mut too_many = counts.clone().filter(vec![more]);
        if k == 0 {
            // Where no row asks, it is no error.
            too_many = super::cross(too_many, keyed.rows.clone().project(vec![]).distinct());
        }
        let too_many = too_many.filter(vec![error]).project(only_keys.clone()).map(vec![value_error]);
        let absent = keyed.env.outer.clone().union(counts.project(only_keys).negate()).map(null);
        let result = Mir::Union { inputs: vec![value, absent, too_many] };
        Ok(self.attach(row, keyed, vec![value_binding, count_binding], result))
    }

    fn array_subquery(&mut self, sub: Hir, order_by: Vec<ColumnOrder>, column: usize, ty: ColType, row: &mut Row, env: &Env) -> Result<Scalar, SqlError> {
        let keyed = self.keyed_for(row, &sub, None, env)?;
        let k = keyed.env.k;
        let inner = self.relation(sub, &keyed.env)?;
        let element = inner.types().get(k + column).cloned().ok_or_else(|| SqlError::internal("ARRAY(subquery) has no such column"))?;
        let of_arrays = matches!(element.ty, SqlType::Array(_));
        let collect = Aggregate {
            func: aggregate(if of_arrays { 4053 } else { 2335 })?,
            args: vec![Scalar::Column(k + column)],
            direct: 0,
            distinct: false,
            filter: None,
            order_by: order_by.into_iter().enumerate().map(|(i, o)| (Scalar::Column(k + o.column), ColumnOrder { column: i, ..o })).collect(),
            ty: ty.clone(),
        };
        let group_key = (0..k).map(Scalar::Column).collect();
        let (arrays, binding) = self.bind(Mir::Reduce { input: inner.boxed(), group_key, aggregates: vec![collect] });
        let absent = keyed.env.outer.clone().union(arrays.clone().project((0..k).collect()).negate());
        let result = arrays.union(absent.map(vec![Scalar::Literal(Value::array(vec![]), ty)]));
        Ok(self.attach(row, keyed, vec![binding], result))
    }

    pub(super) fn aggregate(&mut self, a: HirAggregate, row: &mut Row, env: &Env) -> Result<Aggregate, SqlError> {
        let args = self.scalars(a.args, row, env)?;
        let filter = a.filter.map(|f| self.scalar(f, row, env)).transpose()?;
        let mut order_by = Vec::new();
        for (i, (s, o)) in a.order_by.into_iter().enumerate() {
            order_by.push((self.scalar(s, row, env)?, ColumnOrder { column: i, ..o }));
        }
        Ok(Aggregate { func: a.func, args, direct: a.direct, distinct: a.distinct, filter, order_by, ty: a.ty })
    }

    pub(super) fn window(&mut self, w: HirWindow, row: &mut Row, env: &Env) -> Result<WindowExpr, SqlError> {
        let func = match w.func {
            HirWindowFunc::RowNumber => WindowFunc::RowNumber,
            HirWindowFunc::Rank => WindowFunc::Rank,
            HirWindowFunc::DenseRank => WindowFunc::DenseRank,
            HirWindowFunc::PercentRank => WindowFunc::PercentRank,
            HirWindowFunc::CumeDist => WindowFunc::CumeDist,
            HirWindowFunc::Ntile(x) => WindowFunc::Ntile(self.scalar(x, row, env)?),
            HirWindowFunc::Lag { value, offset, default } => {
                WindowFunc::Lag { value: self.scalar(value, row, env)?, offset: self.scalar(offset, row, env)?, default: self.scalar(default, row, env)? }
            }
            HirWindowFunc::Lead { value, offset, default } => {
                WindowFunc::Lead { value: self.scalar(value, row, env)?, offset: self.scalar(offset, row, env)?, default: self.scalar(default, row, env)? }
            }
            HirWindowFunc::FirstValue(x) => WindowFunc::FirstValue(self.scalar(x, row, env)?),
            HirWindowFunc::LastValue(x) => WindowFunc::LastValue(self.scalar(x, row, env)?),
            HirWindowFunc::NthValue(x, n) => WindowFunc::NthValue(self.scalar(x, row, env)?, self.scalar(n, row, env)?),
            HirWindowFunc::Aggregate(a) => WindowFunc::Aggregate(self.aggregate(a, row, env)?),
        };
        let start = self.bound(w.start, row, env)?;
        let end = self.bound(w.end, row, env)?;
        Ok(WindowExpr { func, frame: Frame { units: w.units, start, end, exclude: w.exclude }, ty: w.ty })
    }

    fn bound(&mut self, b: HirBound, row: &mut Row, env: &Env) -> Result<FrameBound, SqlError> {
        Ok(match b {
            HirBound::UnboundedPreceding => FrameBound::UnboundedPreceding,
            HirBound::Preceding(x) => FrameBound::Preceding(self.scalar(x, row, env)?),
            HirBound::CurrentRow => FrameBound::CurrentRow,
            HirBound::Following(x) => FrameBound::Following(self.scalar(x, row, env)?),
            HirBound::UnboundedFollowing => FrameBound::UnboundedFollowing,
        })
    }
}

/// A construct whose earlier operands can decide the value.
#[derive(Clone)]
enum Decided {
    And,
    Or,
    Coalesce(ColType),
}

impl Decided {
    fn build(&self, xs: Vec<Scalar>) -> Scalar {
        match self {
            Decided::And => Scalar::And(xs),
            Decided::Or => Scalar::Or(xs),
            Decided::Coalesce(t) => Scalar::Coalesce(xs, t.clone()),
        }
    }
}

/// Whether a binding is inside: such a relation is not repeated, since its names are bound once.
fn binds(mir: &Mir) -> bool {
    matches!(mir, Mir::Let { .. } | Mir::LetRec { .. }) || mir.children().into_iter().any(binds)
}

/// `decisive`, or `c` is NULL, as predicates of which one must hold. A comparison is NULL where a side is: apart, equality
/// stays an equality that can be looked up.
fn or_null(decisive: Scalar, c: &Scalar, types: &[ColType]) -> Vec<Scalar> {
    let is_null = |x: &Scalar| Scalar::IsNull(Box::new(x.clone()));
    match c {
        Scalar::Call { func, args, .. } if is_equality(func) && !c.can_fail() => {
            let nullable = args.iter().filter(|a| a.typ(types).nullable);
            std::iter::once(decisive).chain(nullable.map(is_null)).collect()
        }
        c => vec![Scalar::Or(vec![decisive, is_null(c)])],
    }
}

fn conjuncts(s: HirScalar) -> Vec<HirScalar> {
    match s {
        HirScalar::And(xs) => xs.into_iter().flat_map(conjuncts).collect(),
        other => vec![other],
    }
}
