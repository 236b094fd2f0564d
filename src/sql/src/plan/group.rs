//! GROUP BY, grouping sets, HAVING's row.
//!
//! ```text
//!   FROM row ─Map group expressions─► Reduce ─► [group keys, aggregates, groupings]
//! ```
//!
//! An expression above the Reduce may hold group expressions, aggregates, and columns that depend on a grouped primary key; anything
//! else is 42803. Several grouping sets are one Reduce each over the shared input, NULL in the place of the keys a set leaves out.

use super::calls::{decode, Virtual};
use super::query::TargetItem;
use super::scope::{Clause, Env, Level};
use super::walk::{reads, rewrite, rewrite_aggregate, shift};
use super::Binder;
use crate::ast::*;
use crate::hir::{ColumnRef, Hir, HirAggregate, HirBound, HirScalar, HirWindowFunc};
use repr::error::state;
use repr::{SqlError, SqlType, Value};

/// What GROUP BY says.
pub struct GroupKeys {
    keys: Vec<GroupKey>,
    /// The grouping sets, as positions among the keys.
    sets: Vec<Vec<usize>>,
}

#[derive(PartialEq)]
struct GroupKey {
    expr: HirScalar,
    /// The item of the select list that it is, where several sets may leave one label of an expression out and keep another.
    target: Option<usize>,
}

impl GroupKeys {
    pub fn has(&self, e: &HirScalar) -> bool {
        self.keys.iter().any(|k| k.expr == *e)
    }
}

impl Binder<'_> {
    /// Binds GROUP BY.
    pub fn group_keys(&self, s: &Select, level: &Level, env: &Env, targets: &[TargetItem]) -> Result<GroupKeys, SqlError> {
        level.calls.clause.set(Clause::GroupBy);
        let mut keys: Vec<GroupKey> = Vec::new();
        let labelled = s.group_by.iter().any(|i| !matches!(i, GroupItem::Expr(_) | GroupItem::List(_)));
        let mut sets: Vec<Vec<usize>> = vec![Vec::new()];
        for item in &s.group_by {
            let alternatives = self.group_item(item, env, targets, labelled, &mut keys)?;
            let mut next = Vec::with_capacity(sets.len() * alternatives.len());
            for a in &sets {
                for b in &alternatives {
                    let mut u = a.clone();
                    u.extend(b.iter().copied().filter(|x| !a.contains(x)));
                    next.push(u);
                }
            }
            if next.len() > 4096 {
                return Err(SqlError::new(state::STATEMENT_TOO_COMPLEX, "too many grouping sets present (maximum 4096)"));
            }
            sets = next;
        }
        if s.group_distinct {
            let mut seen: Vec<Vec<usize>> = Vec::new();
            sets.retain(|x| {
                let mut k = x.clone();
                k.sort_unstable();
                let new = !seen.contains(&k);
                seen.push(k);
                new
            });
        }
        for k in &keys {
            self.require_equality(&k.expr.typ().ty, 0)?;
        }
        Ok(GroupKeys { keys, sets })
    }

    /// Groups `hir` and rewrites `all`, which begin with the select list, and `having` to the grouped row.
    pub fn group(&self, by: GroupKeys, mut hir: Hir, level: &Level, all: &mut [&mut HirScalar], having: &mut Option<HirScalar>) -> Result<Hir, SqlError> {
        level.calls.clause.set(Clause::Select);
        let GroupKeys { keys, mut sets } = by;
        let (mut exprs, labels): (Vec<HirScalar>, Vec<Option<usize>>) = keys.into_iter().map(|k| (k.expr, k.target)).unzip();
        let has = |kind: Virtual| exprs.iter().any(|e| reads(&mut e.clone(), |c| std::mem::discriminant(&decode(c)) == std::mem::discriminant(&kind)));
        if has(Virtual::Aggregate(0)) {
            return Err(SqlError::new(state::GROUPING_ERROR, "aggregate functions are not allowed in GROUP BY"));
        }
        if has(Virtual::Window(0)) {
            return Err(SqlError::new(state::WINDOWING_ERROR, "window functions are not allowed in GROUP BY"));
        }
        if has(Virtual::Set(0)) {
            // A set-returning function that is grouped by runs below the grouping.
            let wanted = exprs.clone();
            let mut below: Vec<&mut HirScalar> = all.iter_mut().map(|e| &mut **e).collect();
            below.extend(exprs.iter_mut());
            hir = self.set_returning_below(hir, level, &wanted, &mut below)?;
        }
        let mut aggregates: Vec<HirAggregate> = level.calls.aggregates.take();
        self.check_direct_arguments(&aggregates, &exprs, level)?;
        self.add_dependent_columns(level, &mut exprs, &mut sets, all, having);
        // The group keys as columns.
        let arity = hir.arity();
        let mut extra = Vec::new();
        let keys: Vec<usize> = exprs
            .iter()
            .map(|e| match e {
                HirScalar::Column(ColumnRef { level: 0, column }, _) if matches!(decode(*column), Virtual::Real(_)) => *column,
                _ => {
                    extra.push(e.clone());
                    arity + extra.len() - 1
                }
            })
            .collect();
        if !extra.is_empty() {
            hir = Hir::Map { input: Box::new(hir), scalars: extra };
        }
        let groupings = level.calls.groupings.take();
        let calls = groupings.iter().map(|args| self.grouping_args(args, &exprs)).collect::<Result<Vec<_>, _>>()?;
        let (nkeys, naggs) = (keys.len(), aggregates.len());
        let single = sets.len() == 1 && sets[0].len() == nkeys;
        // Columns that are NULL in some set.
        let types = hir.types();
        let key_types: Vec<_> = keys.iter().map(|k| if single { types[*k].clone() } else { types[*k].clone().with_nullable(true) }).collect();
        let agg_types: Vec<_> = aggregates.iter().map(|a| a.ty.clone()).collect();
        let result = if single {
            // Without keys there is one group, also of no rows: GROUP BY () says the same as no GROUP BY.
            let scalar = keys.is_empty();
            let reduce = Hir::Reduce { input: Box::new(hir), group_key: keys, aggregates: std::mem::take(&mut aggregates), scalar };
            with_groupings(reduce, calls.iter().map(|_| 0))
        } else {
            let id = self.fresh_local();
            let input_types = types.clone();
            let branches = sets
                .iter()
                .map(|set| {
                    let input = Hir::GetLocal { id, types: input_types.clone() };
                    let reduce = Hir::Reduce {
                        input: Box::new(input),
                        group_key: set.iter().map(|i| keys[*i]).collect(),
                        aggregates: aggregates.iter().map(|a| of_set(a, &exprs, set)).collect(),
                        scalar: set.is_empty(),
                    };
                    // NULLs for the keys that the set leaves out.
                    let width = set.len() + naggs;
                    let mut scalars = Vec::new();
                    let mut outputs: Vec<usize> = (0..nkeys)
                        .map(|k| match set.iter().position(|i| *i == k) {
                            Some(p) => p,
                            None => {
                                scalars.push(HirScalar::Literal(Value::Null, key_types[k].clone()));
                                width + scalars.len() - 1
                            }
                        })
                        .collect();
                    outputs.extend(set.len()..width);
                    let mapped = if scalars.is_empty() { reduce } else { Hir::Map { input: Box::new(reduce), scalars } };
                    let projected = super::query::project(mapped, outputs);
                    with_groupings(projected, calls.iter().map(|args| grouping_bits(args, set)))
                })
                .collect();
            Hir::Let { id, value: Box::new(hir), body: Box::new(Hir::Union { inputs: branches }) }
        };
        let above = Above { level, exprs: &exprs, key_types: &key_types, agg_types: &agg_types, nkeys, naggs };
        for (i, e) in all.iter_mut().enumerate() {
            match labels.iter().position(|l| *l == Some(i)) {
                Some(column) => **e = HirScalar::Column(ColumnRef { level: 0, column }, key_types[column].clone()),
                None => above.rewrite(e)?,
            }
        }
        if let Some(h) = having {
            above.rewrite(h)?;
        }
        for w in level.calls.windows.borrow_mut().iter_mut() {
            above.window(w)?;
        }
        for c in level.calls.sets.borrow_mut().iter_mut() {
            for a in &mut c.args {
                above.rewrite(a)?;
            }
        }
        Ok(result)
    }

    /// The alternatives that one item of GROUP BY stands for; new keys are added to `keys`.
    fn group_item(&self, item: &GroupItem, env: &Env, targets: &[TargetItem], labelled: bool, keys: &mut Vec<GroupKey>) -> Result<Vec<Vec<usize>>, SqlError> {
        let mut list = |es: &[Expr]| -> Result<Vec<usize>, SqlError> {
            let mut out = Vec::new();
            for e in es {
                let (expr, target) = self.group_expr(e, env, targets)?;
                let target = target.or_else(|| targets.iter().position(|t| t.expr == expr)).filter(|_| labelled);
                let key = GroupKey { expr, target };
                let i = match keys.iter().position(|g| *g == key) {
                    Some(i) => i,
                    None => {
                        keys.push(key);
                        keys.len() - 1
                    }
                };
                if !out.contains(&i) {
                    out.push(i);
                }
            }
            Ok(out)
        };
        Ok(match item {
            GroupItem::Expr(e) => vec![list(std::slice::from_ref(e))?],
            GroupItem::List(es) => vec![list(es)?],
            GroupItem::Empty => vec![Vec::new()],
            GroupItem::Rollup(items) => {
                let parts = self.simple_items(items, &mut list)?;
                (0..=parts.len()).rev().map(|n| union(&parts[..n])).collect()
            }
            GroupItem::Cube(items) => {
                if items.len() > 12 {
                    return Err(SqlError::new(state::TOO_MANY_COLUMNS, "CUBE is limited to 12 elements"));
                }
                let parts = self.simple_items(items, &mut list)?;
                let n = parts.len();
                (0..1usize << n)
                    .rev()
                    .map(|mask| {
                        let chosen: Vec<Vec<usize>> = (0..n).filter(|i| mask >> (n - 1 - i) & 1 == 1).map(|i| parts[i].clone()).collect();
                        union(&chosen)
                    })
                    .collect()
            }
            GroupItem::Sets(items) => {
                let mut out = Vec::new();
                for i in items {
                    out.extend(self.group_item(i, env, targets, labelled, keys)?);
                }
                out
            }
        })
    }

    fn simple_items(&self, items: &[GroupItem], list: &mut impl FnMut(&[Expr]) -> Result<Vec<usize>, SqlError>) -> Result<Vec<Vec<usize>>, SqlError> {
        items
            .iter()
            .map(|i| match i {
                GroupItem::Expr(e) => list(std::slice::from_ref(e)),
                GroupItem::List(es) => list(es),
                _ => Ok(Vec::new()),
            })
            .collect()
    }

    /// An input column, else an output name, a position, or any expression; of a name or position the item of the select list.
    fn group_expr(&self, e: &Expr, env: &Env, targets: &[TargetItem]) -> Result<(HirScalar, Option<usize>), SqlError> {
        match &*e.kind {
            ExprKind::Column(parts) if parts.len() == 1 => {
                let input = self.resolve_column(parts, env);
                let own = matches!(&input, Ok(HirScalar::Column(c, _)) if c.level == 0);
                if own || matches!(&input, Err(x) if x.code != state::UNDEFINED_COLUMN) {
                    return Ok((input?, None));
                }
                let mut hits = targets.iter().enumerate().filter(|(_, t)| t.name == parts[0].name);
                match hits.next() {
                    Some((i, t)) => {
                        if hits.any(|(_, o)| o.expr != t.expr) {
                            return Err(SqlError::new(state::AMBIGUOUS_COLUMN, format!("GROUP BY \"{}\" is ambiguous", t.name)).at(e.pos));
                        }
                        Ok((self.text_if_unknown(t.expr.clone(), e.pos)?, Some(i)))
                    }
                    None => Ok((input?, None)),
                }
            }
            _ => match super::order::position_of(e, targets.len(), "GROUP BY")? {
                Some(i) => Ok((self.text_if_unknown(targets[i].expr.clone(), e.pos)?, Some(i))),
                None => {
                    let x = self.expr(e, env)?;
                    Ok((self.text_if_unknown(x, e.pos)?, None))
                }
            },
        }
    }

    fn grouping_args(&self, args: &[HirScalar], exprs: &[HirScalar]) -> Result<Vec<usize>, SqlError> {
        args.iter()
            .map(|a| {
                exprs
                    .iter()
                    .position(|e| e == a)
                    .ok_or_else(|| SqlError::new(state::GROUPING_ERROR, "arguments to GROUPING must be grouping expressions of the associated query level"))
            })
            .collect()
    }

    /// The direct arguments of an ordered-set aggregate stand above the grouping.
    fn check_direct_arguments(&self, aggregates: &[HirAggregate], exprs: &[HirScalar], level: &Level) -> Result<(), SqlError> {
        let key_types: Vec<_> = exprs.iter().map(HirScalar::typ).collect();
        let above = Above { level, exprs, key_types: &key_types, agg_types: &[], nkeys: exprs.len(), naggs: 0 };
        for direct in aggregates.iter().flat_map(|a| &a.args[..a.direct]) {
            above.rewrite(&mut direct.clone())?;
        }
        Ok(())
    }

    /// Columns of a table whose whole primary key is in every grouping set are grouped by too.
    fn add_dependent_columns(&self, level: &Level, exprs: &mut Vec<HirScalar>, sets: &mut [Vec<usize>], all: &[&mut HirScalar], having: &Option<HirScalar>) {
        let grouped: Vec<usize> = exprs
            .iter()
            .enumerate()
            .filter_map(|(i, e)| match e {
                HirScalar::Column(ColumnRef { level: 0, column }, _) if sets.iter().all(|s| s.contains(&i)) => Some(*column),
                _ => None,
            })
            .collect();
        let mut wanted: Vec<(usize, repr::ColType)> = Vec::new();
        for item in &level.items {
            let Some(key) = &item.key else { continue };
            if !key.iter().all(|k| grouped.contains(&item.cols[*k].pos)) {
                continue;
            }
            for c in &item.cols {
                let used = |e: &HirScalar| {
                    let mut found = false;
                    rewrite(&mut e.clone(), 0, &mut |s, d| {
                        found |= matches!(s, HirScalar::Column(r, _) if r.level == d && r.column == c.pos);
                        !found
                    });
                    found
                };
                let windows = level
                    .calls
                    .windows
                    .borrow()
                    .iter()
                    .any(|w| w.spec.partition.iter().any(used) || w.spec.order.iter().any(|o| used(&o.0)) || window_args(&w.func).into_iter().any(used));
                if !grouped.contains(&c.pos) && (windows || all.iter().any(|e| used(e)) || having.as_ref().is_some_and(used)) {
                    self.rests_on.borrow_mut().extend(item.rel);
                    wanted.push((c.pos, c.ty.clone()));
                }
            }
        }
        for (pos, ty) in wanted {
            sets.iter_mut().for_each(|s| s.push(exprs.len()));
            exprs.push(HirScalar::Column(ColumnRef { level: 0, column: pos }, ty));
        }
    }
}

/// The aggregate in one grouping set: its direct arguments stand above the grouping, where the keys that the set leaves out are NULL.
fn of_set(a: &HirAggregate, exprs: &[HirScalar], set: &[usize]) -> HirAggregate {
    let mut a = a.clone();
    for direct in &mut a.args[..a.direct] {
        rewrite(direct, 0, &mut |s, d| {
            let key = exprs.iter().position(|g| same_at(s, g, d));
            if key.is_some_and(|k| !set.contains(&k)) {
                *s = HirScalar::Literal(Value::Null, s.typ().with_nullable(true));
            }
            key.is_none()
        });
    }
    a
}

fn window_args(f: &HirWindowFunc) -> Vec<&HirScalar> {
    match f {
        HirWindowFunc::Ntile(x) | HirWindowFunc::FirstValue(x) | HirWindowFunc::LastValue(x) => vec![x],
        HirWindowFunc::Lag { value, offset, default } | HirWindowFunc::Lead { value, offset, default } => vec![value, offset, default],
        HirWindowFunc::NthValue(a, b) => vec![a, b],
        HirWindowFunc::Aggregate(a) => a.args.iter().chain(&a.filter).chain(a.order_by.iter().map(|o| &o.0)).collect(),
        _ => Vec::new(),
    }
}

fn union(parts: &[Vec<usize>]) -> Vec<usize> {
    let mut out: Vec<usize> = Vec::new();
    for p in parts {
        out.extend(p.iter().filter(|x| !out.contains(x)).copied().collect::<Vec<_>>());
    }
    out
}

/// The value of GROUPING for a set: a bit for each argument that is not in it, the first argument highest.
fn grouping_bits(args: &[usize], set: &[usize]) -> i32 {
    args.iter().fold(0, |bits, a| bits << 1 | i32::from(!set.contains(a)))
}

fn with_groupings(hir: Hir, values: impl Iterator<Item = i32>) -> Hir {
    let scalars: Vec<HirScalar> = values.map(|v| HirScalar::Literal(Value::Int4(v), SqlType::Int4.not_null())).collect();
    if scalars.is_empty() {
        return hir;
    }
    Hir::Map { input: Box::new(hir), scalars }
}

/// Rewriting expressions to the grouped row.
struct Above<'a> {
    level: &'a Level,
    exprs: &'a [HirScalar],
    key_types: &'a [repr::ColType],
    agg_types: &'a [repr::ColType],
    nkeys: usize,
    naggs: usize,
}

impl Above<'_> {
    fn rewrite(&self, e: &mut HirScalar) -> Result<(), SqlError> {
        self.run(|f| rewrite(e, 0, f))
    }

    fn window(&self, w: &mut super::calls::WindowCall) -> Result<(), SqlError> {
        for p in &mut w.spec.partition {
            self.rewrite(p)?;
        }
        for (o, _, _) in &mut w.spec.order {
            self.rewrite(o)?;
        }
        for b in [&mut w.start, &mut w.end] {
            if let HirBound::Preceding(x) | HirBound::Following(x) = b {
                self.rewrite(x)?;
            }
        }
        match &mut w.func {
            HirWindowFunc::Ntile(x) | HirWindowFunc::FirstValue(x) | HirWindowFunc::LastValue(x) => self.rewrite(x),
            HirWindowFunc::Lag { value, offset, default } | HirWindowFunc::Lead { value, offset, default } => {
                self.rewrite(value)?;
                self.rewrite(offset)?;
                self.rewrite(default)
            }
            HirWindowFunc::NthValue(a, b) => {
                self.rewrite(a)?;
                self.rewrite(b)
            }
            HirWindowFunc::Aggregate(a) => self.run(|f| rewrite_aggregate(a, 0, f)),
            _ => Ok(()),
        }
    }

    fn run(&self, walk: impl FnOnce(&mut dyn FnMut(&mut HirScalar, usize) -> bool)) -> Result<(), SqlError> {
        let mut error = None;
        walk(&mut |s, d| {
            if error.is_some() {
                return false;
            }
            for (i, g) in self.exprs.iter().enumerate() {
                if same_at(s, g, d) {
                    *s = HirScalar::Column(ColumnRef { level: d, column: i }, self.key_types[i].clone());
                    return false;
                }
            }
            if let HirScalar::Column(c, t) = s {
                if c.level == d {
                    match decode(c.column) {
                        Virtual::Aggregate(i) => {
                            *t = self.agg_types[i].clone();
                            c.column = self.nkeys + i;
                        }
                        Virtual::Grouping(i) => c.column = self.nkeys + self.naggs + i,
                        Virtual::Real(p) => error = Some(self.ungrouped(p, d)),
                        Virtual::Window(_) | Virtual::Set(_) => {}
                    }
                }
            }
            true
        });
        error.map_or(Ok(()), Err)
    }

    fn ungrouped(&self, column: usize, depth: usize) -> SqlError {
        let named = self.level.items.iter().filter(|i| !i.name.is_empty()).find_map(|i| i.cols.iter().find(|c| c.pos == column).map(|c| (i, c)));
        let any = self.level.items.iter().find_map(|i| i.cols.iter().find(|c| c.pos == column).map(|c| c.name.clone()));
        let name = named.map_or_else(|| any.unwrap_or_default(), |(i, c)| format!("{}.{}", i.name, c.name));
        let m = if depth == 0 {
            format!("column \"{name}\" must appear in the GROUP BY clause or be used in an aggregate function")
        } else {
            format!("subquery uses ungrouped column \"{name}\" from outer query")
        };
        SqlError::new(state::GROUPING_ERROR, m)
    }
}

/// Is `e`, found `depth` levels in, the expression `g` of the grouping level?
fn same_at(e: &HirScalar, g: &HirScalar, depth: usize) -> bool {
    if std::mem::discriminant(e) != std::mem::discriminant(g) {
        return false;
    }
    if let (HirScalar::Column(a, _), HirScalar::Column(b, _)) = (e, g) {
        return a.column == b.column && a.level == b.level + depth;
    }
    if depth == 0 {
        return e == g;
    }
    let mut g = g.clone();
    shift(&mut g, 0, depth as isize);
    *e == g
}
