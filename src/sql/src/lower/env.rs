//! Outer relations: which enclosing columns are at hand, and which an expression asks for.

use crate::hir::{Hir, HirAggregate, HirBound, HirScalar, HirWindow, HirWindowFunc, JoinKind};
use plan::{LocalId, Mir};
use std::collections::{BTreeMap, BTreeSet};

/// A column of an enclosing row: scopes are counted from the outermost query, so the name holds at every depth.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct AbsRef {
    pub scope: usize,
    pub column: usize,
}

/// The outer relation that something is lowered against.
#[derive(Clone)]
pub(super) struct Env {
    /// Cheap to copy: a `Get` or the unit relation.
    pub outer: Mir,
    /// Number of outer columns.
    pub k: usize,
    pub map: BTreeMap<AbsRef, usize>,
    /// Number of enclosing rows: a reference of level l here is to scope `depth - l`.
    pub depth: usize,
    /// Whether no two outer rows are equal.
    pub set: bool,
    /// Whether the rows are those of a CASE branch or the like: a subquery that may fail is evaluated only if there are any.
    pub guarded: bool,
    /// Two environments with one number have the same outer relation.
    pub number: u64,
}

impl Env {
    pub fn unit(depth: usize) -> Env {
        Env { outer: Mir::unit(), k: 0, map: BTreeMap::new(), depth, set: true, guarded: false, number: 0 }
    }
    pub fn is_unit(&self) -> bool {
        self.number == 0
    }
    /// The scope that a reference of `level` names.
    pub fn scope(&self, level: usize) -> Option<usize> {
        self.depth.checked_sub(level)
    }
}

/// Collects references to scopes below `base`, and the outer columns that bindings in scope carry.
pub(super) struct Refs<'a> {
    pub base: usize,
    pub ctes: &'a BTreeMap<LocalId, super::Cte>,
    pub found: BTreeSet<AbsRef>,
}

impl Refs<'_> {
    pub fn relation(&mut self, h: &Hir, depth: usize) {
        match h {
            Hir::GetLocal { id, .. } => {
                if let Some(cte) = self.ctes.get(id) {
                    self.found.extend(cte.prefix.iter().copied().filter(|r| r.scope < self.base));
                }
            }
            Hir::Join { left, right, on, lateral, .. } => {
                self.relation(left, depth);
                self.relation(right, depth + usize::from(*lateral));
                self.scalar(on, depth);
            }
            _ => {
                for c in children(h) {
                    self.relation(c, depth);
                }
                for s in scalars(h) {
                    self.scalar(s, depth);
                }
            }
        }
    }

    pub fn scalar(&mut self, s: &HirScalar, depth: usize) {
        match s {
            HirScalar::Column(c, _) => {
                // A level that is too large is reported when the column is lowered.
                if let Some(scope) = depth.checked_sub(c.level).filter(|scope| c.level > 0 && *scope < self.base) {
                    self.found.insert(AbsRef { scope, column: c.column });
                }
            }
            HirScalar::Exists(h) | HirScalar::Subquery(h, _) | HirScalar::ArraySubquery { input: h, .. } => self.relation(h, depth + 1),
            HirScalar::Quantified { comparison, input, .. } => {
                self.relation(input, depth + 1);
                self.scalar(comparison, depth + 1);
            }
            _ => operands(s).into_iter().for_each(|x| self.scalar(x, depth)),
        }
    }
}

/// The relations directly below.
pub(crate) fn children(h: &Hir) -> Vec<&Hir> {
    match h {
        Hir::Constant { .. } | Hir::Get { .. } | Hir::GetLocal { .. } | Hir::CallTable { .. } => vec![],
        Hir::Let { value, body, .. } => vec![value, body],
        Hir::LetRec { bindings, body, .. } => bindings.iter().map(|b| &b.value).chain([&**body]).collect(),
        Hir::Project { input, .. }
        | Hir::Map { input, .. }
        | Hir::Filter { input, .. }
        | Hir::Reduce { input, .. }
        | Hir::Distinct { input }
        | Hir::TopK { input, .. }
        | Hir::Window { input, .. } => vec![input],
        Hir::RowsFrom { functions, .. } => functions.iter().collect(),
        Hir::Union { inputs } => inputs.iter().collect(),
        Hir::Join { left, right, .. } | Hir::Intersect { left, right, .. } | Hir::Except { left, right, .. } => vec![left, right],
    }
}

/// As [`children`], to change them.
pub(crate) fn children_mut(h: &mut Hir) -> Vec<&mut Hir> {
    match h {
        Hir::Constant { .. } | Hir::Get { .. } | Hir::GetLocal { .. } | Hir::CallTable { .. } => vec![],
        Hir::Let { value, body, .. } => vec![value, body],
        Hir::LetRec { bindings, body, .. } => bindings.iter_mut().map(|b| &mut b.value).chain([&mut **body]).collect(),
        Hir::Project { input, .. }
        | Hir::Map { input, .. }
        | Hir::Filter { input, .. }
        | Hir::Reduce { input, .. }
        | Hir::Distinct { input }
        | Hir::TopK { input, .. }
        | Hir::Window { input, .. } => vec![input],
        Hir::RowsFrom { functions, .. } => functions.iter_mut().collect(),
        Hir::Union { inputs } => inputs.iter_mut().collect(),
        Hir::Join { left, right, .. } | Hir::Intersect { left, right, .. } | Hir::Except { left, right, .. } => vec![left, right],
    }
}

/// The scalars of the node itself.
pub(super) fn scalars(h: &Hir) -> Vec<&HirScalar> {
    match h {
        Hir::Map { scalars, .. } => scalars.iter().collect(),
        Hir::Filter { predicates, .. } => predicates.iter().collect(),
        Hir::CallTable { args, .. } => args.iter().collect(),
        Hir::Join { on, .. } => vec![on],
        Hir::Reduce { aggregates, .. } => aggregates.iter().flat_map(aggregate_scalars).collect(),
        Hir::TopK { limit, offset, .. } => limit.iter().chain(offset).collect(),
        Hir::Window { exprs, .. } => exprs.iter().flat_map(window_scalars).collect(),
        _ => vec![],
    }
}

fn aggregate_scalars(a: &HirAggregate) -> Vec<&HirScalar> {
    a.args.iter().chain(&a.filter).chain(a.order_by.iter().map(|(s, _)| s)).collect()
}

fn window_scalars(w: &HirWindow) -> Vec<&HirScalar> {
    let mut v = match &w.func {
        HirWindowFunc::RowNumber | HirWindowFunc::Rank | HirWindowFunc::DenseRank | HirWindowFunc::PercentRank | HirWindowFunc::CumeDist => vec![],
        HirWindowFunc::Ntile(x) | HirWindowFunc::FirstValue(x) | HirWindowFunc::LastValue(x) => vec![x],
        HirWindowFunc::NthValue(x, y) => vec![x, y],
        HirWindowFunc::Lag { value, offset, default } | HirWindowFunc::Lead { value, offset, default } => vec![value, offset, default],
        HirWindowFunc::Aggregate(a) => aggregate_scalars(a),
    };
    for b in [&w.start, &w.end] {
        if let HirBound::Preceding(x) | HirBound::Following(x) = b {
            v.push(x);
        }
    }
    v
}

/// The scalars directly below, on the same row.
pub(super) fn operands(s: &HirScalar) -> Vec<&HirScalar> {
    match s {
        HirScalar::Call { args, .. } | HirScalar::And(args) | HirScalar::Or(args) | HirScalar::Coalesce(args, _) => args.iter().collect(),
        HirScalar::Case { branches, otherwise, .. } => branches.iter().flat_map(|(c, r)| [c, r]).chain([&**otherwise]).collect(),
        HirScalar::IsNull(x) | HirScalar::Not(x) => vec![x],
        _ => vec![],
    }
}

/// The subqueries in a scalar, nested ones not entered.
pub(super) fn subqueries(s: &HirScalar) -> Vec<&Hir> {
    match s {
        HirScalar::Exists(h) | HirScalar::Subquery(h, _) | HirScalar::ArraySubquery { input: h, .. } | HirScalar::Quantified { input: h, .. } => vec![h],
        _ => operands(s).into_iter().flat_map(subqueries).collect(),
    }
}

pub fn has_subquery(s: &HirScalar) -> bool {
    !subqueries(s).is_empty()
}

/// Whether evaluation of the scalar's subqueries can raise an error. May say yes when not.
pub(super) fn subquery_may_fail(s: &HirScalar) -> bool {
    match s {
        HirScalar::Exists(h) | HirScalar::ArraySubquery { input: h, .. } => relation_may_fail(h),
        HirScalar::Subquery(h, _) => !at_most_one_row(h) || relation_may_fail(h),
        HirScalar::Quantified { comparison, input, .. } => scalar_may_fail(comparison) || relation_may_fail(input),
        _ => operands(s).into_iter().any(subquery_may_fail),
    }
}

pub(super) fn scalar_may_fail(s: &HirScalar) -> bool {
    match s {
        HirScalar::Error(..) => true,
        HirScalar::Call { func, .. } if func.fallible => true,
        HirScalar::Exists(_) | HirScalar::Subquery(..) | HirScalar::ArraySubquery { .. } | HirScalar::Quantified { .. } => subquery_may_fail(s),
        _ => operands(s).into_iter().any(scalar_may_fail),
    }
}

pub(super) fn relation_may_fail(h: &Hir) -> bool {
    let own = match h {
        Hir::CallTable { func, .. } => func.fallible,
        // Sums overflow; counts, extrema and collecting aggregates do not.
        Hir::Reduce { aggregates, .. } => {
            aggregates.iter().any(|a| !matches!(a.func.name, "count" | "min" | "max" | "bool_and" | "bool_or" | "every" | "array_agg"))
        }
        Hir::Window { .. } | Hir::LetRec { .. } => true,
        Hir::TopK { limit, offset, .. } => limit.iter().chain(offset).any(|s| literal_count(s).is_none()),
        _ => false,
    };
    own || scalars(h).into_iter().any(scalar_may_fail) || children(h).into_iter().any(relation_may_fail)
}

/// A LIMIT or OFFSET that is a constant of zero or more: `Some(None)` for NULL.
pub(super) fn literal_count(s: &HirScalar) -> Option<Option<u64>> {
    match constant(s)? {
        v if v.is_null() => Some(None),
        v => v.as_i64().and_then(|n| u64::try_from(n).ok()).map(Some),
    }
}

/// The value of a scalar without columns that is the same whenever it is computed, if it has one.
pub(crate) fn constant(s: &HirScalar) -> Option<repr::Value> {
    if let HirScalar::Literal(v, _) = s {
        return Some(v.clone());
    }
    let HirScalar::Call { func, args, ty } = s else { return None };
    if func.volatility != expr::func::Volatility::Immutable {
        return None;
    }
    let literal = |a: &HirScalar| Some(expr::Scalar::Literal(constant(a)?, a.typ().with_nullable(true)));
    let args = args.iter().map(literal).collect::<Option<Vec<_>>>()?;
    expr::eval_const(&expr::Scalar::Call { func, args, ty: ty.clone() }, &expr::EvalCtx::default()).ok()
}

fn is_true(s: &HirScalar) -> bool {
    matches!(s, HirScalar::Literal(repr::Value::Bool(true), _)) || matches!(s, HirScalar::And(xs) if xs.iter().all(is_true))
}

/// Whether the relation has one row at every enclosing row.
pub(super) fn exactly_one_row(h: &Hir) -> bool {
    match h {
        Hir::Constant { rows, .. } => rows.len() == 1 && rows[0].1 == 1,
        Hir::Reduce { group_key, scalar, .. } => *scalar && group_key.is_empty(),
        Hir::Project { input, .. } | Hir::Map { input, .. } | Hir::Window { input, .. } | Hir::Distinct { input } => exactly_one_row(input),
        Hir::Let { body, .. } | Hir::LetRec { body, .. } => exactly_one_row(body),
        Hir::Join { left, right, on, kind, .. } => match kind {
            JoinKind::Inner => is_true(on) && exactly_one_row(left) && exactly_one_row(right),
            JoinKind::Left => exactly_one_row(left) && at_most_one_row(right),
            _ => false,
        },
        _ => false,
    }
}

/// Whether the relation has no more than one row at every enclosing row.
pub(super) fn at_most_one_row(h: &Hir) -> bool {
    match h {
        Hir::Constant { rows, .. } => rows.is_empty() || (rows.len() == 1 && rows[0].1 == 1),
        Hir::Get { keys, .. } => keys.iter().any(Vec::is_empty),
        Hir::Reduce { group_key, .. } => group_key.is_empty(),
        Hir::TopK { input, group_key, limit, with_ties, .. } => {
            let one = limit.as_ref().and_then(literal_count).flatten().is_some_and(|n| n <= 1);
            (one && group_key.is_empty() && !with_ties) || at_most_one_row(input)
        }
        Hir::Filter { input, .. } => keys(h).iter().any(Vec::is_empty) || at_most_one_row(input),
        Hir::Project { input, .. } | Hir::Map { input, .. } | Hir::Window { input, .. } | Hir::Distinct { input } => at_most_one_row(input),
        Hir::Let { body, .. } | Hir::LetRec { body, .. } => at_most_one_row(body),
        Hir::Join { left, right, kind, .. } => matches!(kind, JoinKind::Inner | JoinKind::Left) && at_most_one_row(left) && at_most_one_row(right),
        Hir::Except { left, .. } | Hir::Intersect { left, .. } => at_most_one_row(left),
        _ => false,
    }
}

/// Unique keys at one enclosing row, less the columns that filters bind to one value there.
fn keys(h: &Hir) -> Vec<Vec<usize>> {
    match h {
        Hir::Get { keys, .. } => keys.clone(),
        Hir::Map { input, .. } => keys(input),
        Hir::Project { input, outputs } => {
            let place = |c: &usize| outputs.iter().position(|o| o == c);
            keys(input).iter().filter_map(|k| k.iter().map(place).collect()).collect()
        }
        Hir::Filter { input, predicates } => {
            let mut bound = Vec::new();
            predicates.iter().for_each(|p| bound_columns(p, &mut bound));
            let mut keys = keys(input);
            keys.iter_mut().for_each(|k| k.retain(|c| !bound.contains(c)));
            keys
        }
        _ => vec![],
    }
}

/// Columns of the row that a predicate equates with something that is the same for all rows.
fn bound_columns(p: &HirScalar, bound: &mut Vec<usize>) {
    let is_fixed = |s: &HirScalar| !has_subquery(s) && !reads_row(s);
    match p {
        HirScalar::And(xs) => xs.iter().for_each(|x| bound_columns(x, bound)),
        HirScalar::Call { func, args, .. }
            if plan::equality::is_equality(func) || matches!(func.name, "int24eq" | "int42eq" | "int28eq" | "int82eq" | "int48eq" | "int84eq") =>
        {
            if let [a, b] = &args[..] {
                for (x, other) in [(a, b), (b, a)] {
                    match x {
                        HirScalar::Column(c, _) if c.level == 0 && is_fixed(other) => bound.push(c.column),
                        _ => {}
                    }
                }
            }
        }
        _ => {}
    }
}

/// Whether the scalar reads the row itself (subqueries not looked at).
fn reads_row(s: &HirScalar) -> bool {
    matches!(s, HirScalar::Column(c, _) if c.level == 0)
        || matches!(s, HirScalar::Call { func, .. } if func.volatility == expr::func::Volatility::Volatile)
        || operands(s).into_iter().any(reads_row)
}

/// The largest local id that the query uses.
pub(super) fn max_local(h: &Hir) -> u64 {
    let own = match h {
        Hir::GetLocal { id, .. } | Hir::Let { id, .. } => id.0,
        Hir::LetRec { bindings, .. } => bindings.iter().map(|b| b.id.0).max().unwrap_or(0),
        _ => 0,
    };
    let below = children(h).into_iter().map(max_local).max().unwrap_or(0);
    let inside = scalars(h).into_iter().flat_map(subqueries).map(max_local).max().unwrap_or(0);
    own.max(below).max(inside)
}
