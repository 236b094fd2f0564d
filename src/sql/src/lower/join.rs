//! Joins: inner, outer, lateral.
//!
//! ```text
//!   left join  =  J                                   J = pairs on which ON is true
//!           union (L minus L semijoin J's left rows) padded with NULL
//! ```
//!
//! Which left rows have a partner is asked of all their columns; if ON is an equality of columns and conditions on the
//! other side alone, of those columns only, so that no more than the keys need be kept.

use super::env::{has_subquery, Env};
use super::scalar::Row;
use super::{cross, join_on, Lowerer};
use crate::hir::{Hir, HirScalar, JoinKind};
use expr::Scalar;
use plan::equality::equality_sides;
use plan::Mir;
use repr::{ColType, SqlError, Value};

impl Lowerer {
    pub(super) fn join(&mut self, left: Hir, right: Hir, on: HirScalar, kind: JoinKind, lateral: bool, env: &Env) -> Result<Mir, SqlError> {
        match kind {
            JoinKind::Inner => {
                let left = self.row(left, env)?;
                let (mut row, bindings) = self.append(left, right, lateral, env)?;
                self.filter(&mut row, vec![on], env)?;
                Ok(bindings.into_iter().rev().fold(row.finish(), |body, b| b.around(body)))
            }
            JoinKind::Left if lateral => self.left_lateral(left, right, on, env),
            _ if lateral => Err(SqlError::internal("RIGHT and FULL JOIN have no LATERAL")),
            _ => self.outer(left, right, on, kind, env),
        }
    }

    /// Joins `right` to each row: uncorrelated as it is, row-by-row work straight, anything else by way of the distinct
    /// columns it refers to. The result reads the bindings given with it.
    fn append(&mut self, mut row: Row, right: Hir, lateral: bool, env: &Env) -> Result<(Row, Vec<super::Binding>), SqlError> {
        let depth = env.depth + usize::from(lateral);
        if self.refs(&right, depth).is_empty() {
            let right = self.relation(right, &Env::unit(depth))?;
            let n = row.mir.arity();
            row.cols.extend(n..n + right.arity());
            row.mir = cross(row.mir, right);
            return Ok((row, vec![]));
        }
        if self.is_linear(&right, depth) {
            let (inner, binding) = self.row_env(&mut row, env, lateral);
            let n = inner.k;
            row.mir = self.relation(right, &inner)?;
            row.cols.extend(n..row.mir.arity());
            return Ok((row, vec![binding]));
        }
        let refs = self.refs(&right, depth);
        let keyed = self.keyed(&mut row, refs, env, depth, false)?;
        let right = self.relation(right, &keyed.env)?;
        let (n, k, width) = (keyed.rows.arity(), keyed.env.k, right.arity());
        let joined = join_on(keyed.rows, right, keyed.positions.iter().copied().zip(0..));
        row.cols.extend(n..n + width - k);
        row.mir = joined.project((0..n).chain(n + k..n + width).collect());
        Ok((row, keyed.bindings))
    }

    /// LEFT JOIN LATERAL.
    fn left_lateral(&mut self, left: Hir, right: Hir, on: HirScalar, env: &Env) -> Result<Mir, SqlError> {
        let mut row = self.row(left, env)?;
        let (x, x_binding) = self.bind(row.mir);
        let n = x.arity();
        row.mir = x.clone();
        let right_types = right.types();
        let (mut pairs, bindings) = self.append(row, right, true, env)?;
        self.filter(&mut pairs, vec![on], env)?;
        let (j, j_binding) = self.bind(pairs.finish());
        let with_partner = j.clone().project((0..n).collect()).distinct();
        let unmatched = anti(x, with_partner, (0..n).map(|i| (i, i)).collect()).map(nulls(&right_types));
        let result = j_binding.around(j.union(unmatched));
        Ok(x_binding.around(bindings.into_iter().rev().fold(result, |body, b| b.around(body))))
    }

    /// LEFT, RIGHT, FULL without LATERAL.
    fn outer(&mut self, left: Hir, right: Hir, on: HirScalar, kind: JoinKind, env: &Env) -> Result<Mir, SqlError> {
        let k = env.k;
        // For a left join, a right side without references needs no outer columns.
        let alone = kind == JoinKind::Left && self.refs(&right, env.depth).is_empty();
        let left = self.relation(left, env)?;
        let right = self.relation(right, &if alone { Env::unit(env.depth) } else { env.clone() })?;
        let rk = if alone { 0 } else { k };
        let (x, x_binding) = self.bind(left);
        let (y, y_binding) = self.bind(right);
        let (n, m) = (x.arity(), y.arity());
        let (l, r) = (n - k, m - rk);

        let paired = join_on(x.clone(), y.clone(), (0..rk).map(|i| (i, i))).project((0..n).chain(n + rk..n + m).collect());
        let mut pairs = Row { k, cols: (k..n + r).collect(), mir: paired };
        let keys = if has_subquery(&on) { None } else { self.equi_keys(&on, &pairs, n, env)? };
        self.filter(&mut pairs, vec![on], env)?;
        let (j, j_binding) = self.bind(pairs.finish());

        let mut parts = vec![j.clone()];
        if matches!(kind, JoinKind::Left | JoinKind::Full) {
            let unmatched = match &keys {
                Some(keys) if keys.left_only.is_empty() => {
                    let partners = shifted(&keys.right, n, rk);
                    let only = shifted(&keys.right_only, n, rk);
                    anti_by_keys(x.clone(), &keys.left, y.clone().filter(only), &partners, rk)
                }
                _ => anti(x.clone(), j.clone().project((0..n).collect()).distinct(), (0..n).map(|i| (i, i)).collect()),
            };
            parts.push(unmatched.map(nulls(&y.types()[rk..])));
        }
        if matches!(kind, JoinKind::Right | JoinKind::Full) {
            let unmatched = match &keys {
                Some(keys) if keys.right_only.is_empty() => {
                    let own = shifted(&keys.right, n, rk);
                    anti_by_keys(y.clone(), &own, x.clone().filter(keys.left_only.clone()), &keys.left, k)
                }
                _ => {
                    let with_partner = j.clone().project((0..k).chain(n..n + r).collect()).distinct();
                    anti(y.clone(), with_partner, (0..m).map(|i| (i, i)).collect())
                }
            };
            let padded = unmatched.map(nulls(&x.types()[k..]));
            parts.push(padded.project((0..k).chain(m..m + l).chain(k..m).collect()));
        }
        let result = j_binding.around(Mir::Union { inputs: parts });
        Ok(x_binding.around(y_binding.around(result)))
    }

    /// ON taken apart, if it is a conjunction of equalities between the sides and of conditions on one side that cannot fail.
    fn equi_keys(&mut self, on: &HirScalar, pairs: &Row, n: usize, env: &Env) -> Result<Option<EquiKeys>, SqlError> {
        let mut scratch = Row { mir: pairs.mir.clone(), k: pairs.k, cols: pairs.cols.clone() };
        let types = scratch.mir.types();
        let lowered = self.scalar(on.clone(), &mut scratch, env)?;
        let mut keys = EquiKeys::default();
        let on_left = |s: &Scalar| s.support().iter().all(|c| *c < n);
        // The outer columns are the left side's.
        let on_right = |s: &Scalar| s.support().iter().all(|c| *c >= n);
        for p in conjuncts(lowered) {
            match equality_sides(&p, &types) {
                Some((a, b)) if on_left(a) && on_right(b) && !b.support().is_empty() && !a.support().is_empty() => {
                    keys.left.push(a.clone());
                    keys.right.push(b.clone());
                    continue;
                }
                Some((b, a)) if on_left(a) && on_right(b) && !b.support().is_empty() && !a.support().is_empty() => {
                    keys.left.push(a.clone());
                    keys.right.push(b.clone());
                    continue;
                }
                _ => {}
            }
            if p.can_fail() {
                return Ok(None);
            }
            if on_right(&p) {
                keys.right_only.push(p);
            } else if on_left(&p) {
                keys.left_only.push(p);
            } else {
                return Ok(None);
            }
        }
        Ok(if keys.left.is_empty() { None } else { Some(keys) })
    }
}

/// Over the columns of left ++ right.
#[derive(Default)]
struct EquiKeys {
    left: Vec<Scalar>,
    right: Vec<Scalar>,
    left_only: Vec<Scalar>,
    right_only: Vec<Scalar>,
}

pub(super) fn conjuncts(s: Scalar) -> Vec<Scalar> {
    match s {
        Scalar::And(xs) => xs.into_iter().flat_map(conjuncts).collect(),
        Scalar::Literal(Value::Bool(true), _) => vec![],
        other => vec![other],
    }
}

/// Scalars over the right side's columns in left ++ right, over the right relation itself (`rk` outer columns in front).
fn shifted(scalars: &[Scalar], n: usize, rk: usize) -> Vec<Scalar> {
    let mut out = scalars.to_vec();
    out.iter_mut().for_each(|s| s.permute(&|c| c - n + rk));
    out
}

pub(super) fn nulls(types: &[ColType]) -> Vec<Scalar> {
    types.iter().map(|t| Scalar::Literal(Value::Null, t.clone().with_nullable(true))).collect()
}

/// Rows of `x` that match no row of the set `partners`, NULL matching NULL.
pub(super) fn anti(x: Mir, partners: Mir, on: Vec<(usize, usize)>) -> Mir {
    let n = x.arity();
    let matched = join_on(x.clone(), partners, on).project((0..n).collect());
    x.union(matched.negate())
}

/// Rows of `x` for which no row of `y` has equal, non-null keys. The first `k` columns of both are the outer ones.
fn anti_by_keys(x: Mir, x_keys: &[Scalar], y: Mir, y_keys: &[Scalar], k: usize) -> Mir {
    let n = x.arity();
    let m = y.arity();
    let partners = y.map(y_keys.to_vec()).project((0..k).chain(m..m + y_keys.len()).collect()).distinct();
    let mut matched = join_on(x.clone(), partners, (0..k).map(|i| (i, i)));
    if let Mir::Join { equivalences, .. } = &mut matched {
        let key = |i: usize| plan::Equivalence::new(vec![x_keys[i].clone(), Scalar::Column(n + k + i)]);
        equivalences.extend((0..x_keys.len()).map(key));
    }
    x.union(matched.project((0..n).collect()).negate())
}
