//! Queries: SELECT stage by stage, and what a bound query is.
//!
//! ```text
//!   FROM ─ WHERE ─ [set-returning calls in GROUP BY] ─ GROUP BY ─ HAVING ─ windows ─ set-returning calls ─ select list ─ DISTINCT ─ ORDER BY, LIMIT
//! ```
//!
//! Expressions are bound once, on the FROM row, in Postgres's order, since of two errors the first is told: select list, WHERE, HAVING,
//! ORDER BY, GROUP BY, DISTINCT ON. Each stage then replaces the virtual columns that it computes (see `calls`).

use super::calls::{decode, SetCall, Virtual, WindowCall};
use super::order::SortItem;
use super::scope::{Clause, Env, Level, NsItem};
use super::walk::{reads, rewrite, shift};
use super::Binder;
use crate::ast::*;
use crate::hir::{ColumnRef, Hir, HirBound, HirScalar, HirWindow, HirWindowFunc, JoinKind};
use expr::{ColumnOrder, FrameExclude, FrameUnits};
use repr::error::state;
use repr::{ColType, SqlError, SqlType};
use std::rc::Rc;

/// A bound query: the result's columns come first, then columns that only the order needs.
pub struct Bound {
    pub hir: Hir,
    pub names: Vec<String>,
    pub visible: usize,
    pub order: Vec<ColumnOrder>,
    /// No ORDER BY asks for the order: it is the one in which FROM has its rows.
    pub natural: bool,
    /// FROM has only system relations, whose order programs rely on.
    pub system: bool,
    pub limit: Option<HirScalar>,
    pub offset: Option<HirScalar>,
    pub with_ties: bool,
    /// Untyped literals and parameters among the result's columns, so that a set operation or INSERT may still type them.
    pub literals: Vec<Option<HirScalar>>,
}

impl Bound {
    pub fn new(hir: Hir, names: Vec<String>) -> Bound {
        let visible = names.len();
        Bound {
            hir,
            literals: vec![None; visible],
            names,
            visible,
            order: Vec::new(),
            natural: true,
            system: false,
            limit: None,
            offset: None,
            with_ties: false,
        }
    }

    /// With LIMIT and OFFSET applied; all columns are still there.
    pub fn limited(self) -> Hir {
        if self.limit.is_none() && self.offset.is_none() {
            return self.hir;
        }
        Hir::TopK { input: Box::new(self.hir), group_key: Vec::new(), order_by: self.order, limit: self.limit, offset: self.offset, with_ties: self.with_ties }
    }

    /// As a relation of exactly the result's columns.
    pub fn into_relation(self) -> Hir {
        let n = self.visible;
        project(self.limited(), (0..n).collect())
    }

    pub fn types(&self) -> Vec<ColType> {
        let mut t = self.hir.types();
        t.truncate(self.visible);
        t
    }
}

/// Errors: 42601 or 42P01 for a name after OF that names nothing in FROM, 42809 for what has no rows to lock. What a block reads is checked at its commit whether it was
/// locked or not (DECISIONS 7), so nothing else is to be done for FOR UPDATE.
fn locked_names(locking: &[Locking], from: &[TableRef], items: &[NsItem], catalog: &dyn ::expr::CatalogView, env: &Env) -> Result<(), SqlError> {
    for lock in locking {
        for name in &lock.of {
            let [one] = &name.parts[..] else {
                return Err(SqlError::new(state::SYNTAX_ERROR, format!("{} must specify unqualified relation names", lock.verb)).at(name.pos));
            };
            if !items.iter().any(|i| i.name == *one && i.rel_visible) {
                let message = format!("relation \"{one}\" in {} clause not found in FROM clause", lock.verb);
                return Err(SqlError::new(state::UNDEFINED_TABLE, message).at(name.pos));
            }
            if let Some(what) = from.iter().find_map(|t| without_rows(t, one, env)) {
                return Err(SqlError::new(state::FEATURE_NOT_SUPPORTED, format!("{} cannot be applied to {what}", lock.verb)).at(name.pos));
            }
        }
        for item in items.iter().filter(|i| i.rel_oid != 0 && (lock.of.is_empty() || lock.of.iter().any(|n| n.parts.last() == Some(&i.name)))) {
            let kind = match (catalog.is_materialized_view(item.rel_oid), catalog.is_sequence(item.rel_oid)) {
                (true, _) => "materialized view",
                (_, true) => "sequence",
                _ => continue,
            };
            let name = item.hidden.as_ref().unwrap_or(&item.name);
            return Err(SqlError::new(state::WRONG_OBJECT_TYPE, format!("cannot lock rows in {kind} \"{name}\"")));
        }
    }
    Ok(())
}

/// What a name in FROM means that has no rows of its own to lock.
fn without_rows(t: &TableRef, name: &str, env: &Env) -> Option<&'static str> {
    let called = |alias: &Option<Alias>, own: Option<&str>| alias.as_ref().map_or(own == Some(name), |a| a.name.name == name);
    match t {
        TableRef::Relation { name: n, alias } if called(alias, Some(n.last())) => {
            (n.parts.len() == 1 && env.ctes.find(n.last()).is_some()).then_some("a WITH query")
        }
        TableRef::Function { functions, alias, .. } => {
            let own = functions.first().and_then(|f| match &*f.0.kind {
                ExprKind::Func(f) => f.name.last().map(|n| n.name.as_str()),
                _ => None,
            });
            called(alias, own).then_some("a function")
        }
        TableRef::Join { alias, cond, .. } if called(alias, None) || matches!(cond, JoinCond::Using(_, Some(a)) if a.name == name) => Some("a join"),
        TableRef::Join { left, right, .. } => without_rows(left, name, env).or_else(|| without_rows(right, name, env)),
        _ => None,
    }
}

/// An error about an ungrouped column, with the place where the column is named outside aggregates.
fn at_ungrouped(e: SqlError, s: &Select, order_by: &[OrderBy]) -> SqlError {
    let name = e.message.strip_prefix("column \"").and_then(|m| m.split_once("\" must appear in the GROUP BY clause")).map(|m| m.0.to_owned());
    let (Some(name), None) = (name, e.position) else { return e };
    let last = name.rsplit('.').next().unwrap_or(&name);
    let mut found = None;
    let exprs = s.targets.iter().map(|t| &t.expr).chain(&s.having).chain(order_by.iter().map(|o| &o.expr));
    for expr in exprs {
        walk::visit(expr, &mut |x| {
            match &*x.kind {
                ExprKind::Column(parts) if parts.last().is_some_and(|p| p.name == last) => found = found.or(Some(x.pos)),
                ExprKind::Star(_) => found = found.or(Some(x.pos)),
                ExprKind::Func(f) => {
                    let name = f.name.last().map_or("", |n| &n.name);
                    return f.over.is_some() || ::expr::catalog::procs_by_name(name).all(|p| p.kind != ::expr::catalog::ProcKind::Aggregate);
                }
                _ => {}
            }
            true
        });
    }
    match found {
        Some(pos) => e.at(pos),
        None => e,
    }
}

/// Keeps `outputs`; nothing if that is all.
pub fn project(hir: Hir, outputs: Vec<usize>) -> Hir {
    if outputs.len() == hir.arity() && outputs.iter().enumerate().all(|(i, o)| i == *o) {
        return hir;
    }
    Hir::Project { input: Box::new(hir), outputs }
}

/// An item of the select list.
pub struct TargetItem {
    pub name: String,
    pub expr: HirScalar,
    pub pos: Pos,
}

impl Binder<'_> {
    /// `typed`: literals of unknown type become text.
    pub fn query(&self, q: &Query, env: &Env, typed: bool) -> Result<Bound, SqlError> {
        stacker::maybe_grow(256 * 1024, 4 * 1024 * 1024, || self.query_inner(q, env, typed))
    }

    fn query_inner(&self, q: &Query, env: &Env, typed: bool) -> Result<Bound, SqlError> {
        if let Some(a) = &q.as_of {
            return Err(SqlError::new(state::SYNTAX_ERROR, "AS OF is allowed only at the end of a statement").at(a.time.pos));
        }
        match &q.with {
            Some(w) => self.with(w, env, |b, env| b.query_body(q, env, typed)),
            None => self.query_body(q, env, typed),
        }
    }

    /// Without WITH and AS OF.
    pub fn query_body(&self, q: &Query, env: &Env, typed: bool) -> Result<Bound, SqlError> {
        let mut b = match &q.body {
            QueryBody::Select(s) => {
                if let Some(into) = &s.into {
                    return Err(SqlError::new(state::SYNTAX_ERROR, "SELECT ... INTO is not allowed here").at(into.pos));
                }
                self.select(s, q, env, typed)?
            }
            QueryBody::Values(_) | QueryBody::SetOp { .. } if !q.locking.is_empty() => {
                let what = if matches!(q.body, QueryBody::Values(_)) { "cannot be applied to VALUES" } else { "is not allowed with UNION/INTERSECT/EXCEPT" };
                return Err(SqlError::new(state::FEATURE_NOT_SUPPORTED, format!("{} {what}", q.locking[0].verb)));
            }
            QueryBody::Values(rows) => {
                let b = self.values(rows, env)?;
                self.order_output(b, &q.order_by, env, "VALUES", q.with_ties)?
            }
            QueryBody::SetOp { .. } => {
                let b = self.set_op(q, env)?;
                self.order_output(b, &q.order_by, env, "UNION/INTERSECT/EXCEPT", q.with_ties)?
            }
        };
        self.limits(&mut b, q, env)?;
        Ok(b)
    }

    fn select(&self, s: &Select, q: &Query, env: &Env, typed: bool) -> Result<Bound, SqlError> {
        let order_by = &q.order_by;
        let part = self.from_list(&s.from, env)?;
        locked_names(&q.locking, &s.from, &part.items, &*self.catalog.eval_ctx().catalog, env)?;
        let mut level = Level::new(part.items, Clause::Where);
        let (from_is_natural, system) = (part.natural, part.system);
        level.order = part.order.iter().map(|o| (HirScalar::Column(ColumnRef { level: 0, column: o.column }, part.types[o.column].clone()), *o)).collect();
        let level = Rc::new(level);
        let here = env.push(level.clone());
        for (name, spec) in &s.windows {
            level.calls.named.borrow_mut().push((name.name.clone(), spec.clone()));
        }
        let mut hir = part.hir;
        level.calls.clause.set(Clause::Select);
        let mut targets = Vec::new();
        for t in &s.targets {
            self.target(t, &here, &mut targets)?;
        }
        if targets.len() > 1664 {
            return Err(SqlError::new(state::TOO_MANY_COLUMNS, "target lists can have at most 1664 entries"));
        }
        let untyped = |t: &TargetItem| t.expr.typ().ty == SqlType::Unknown && matches!(t.expr, HirScalar::Literal(..) | HirScalar::Parameter(..));
        let mut literals: Vec<Option<HirScalar>> = targets.iter().map(|t| (!typed && untyped(t)).then(|| t.expr.clone())).collect();
        if let Some(w) = &s.filter {
            level.calls.clause.set(Clause::Where);
            let p = self.condition(w, &here, "WHERE")?;
            hir = Hir::Filter { input: Box::new(hir), predicates: conjuncts(p) };
        }
        let having = match &s.having {
            Some(h) => {
                level.calls.clause.set(Clause::Having);
                Some((self.condition(h, &here, "HAVING")?, h.pos))
            }
            None => None,
        };
        level.calls.clause.set(Clause::OrderBy);
        let mut sort: Vec<SortItem> = order_by.iter().map(|o| self.sort_item(o, &targets, &here)).collect::<Result<_, _>>()?;
        let keys = self.group_keys(s, &level, &here, &targets)?;
        level.calls.clause.set(Clause::DistinctOn);
        let mut distinct_on: Vec<HirScalar> = match &s.distinct {
            Distinct::On(es) => es.iter().map(|e| self.output_or_input(e, &targets, &here, "DISTINCT ON")).collect::<Result<_, _>>()?,
            _ => Vec::new(),
        };
        let on: Vec<bool> = targets.iter().map(|t| distinct_on.contains(&t.expr)).collect();
        for d in distinct_on.iter_mut().filter(|d| d.typ().ty == SqlType::Unknown) {
            *d = self.text_if_unknown(d.clone(), q.pos)?;
        }
        // What the result is ordered, grouped or made distinct by has a type of its own, whatever is around the query.
        let compared = |i: usize, e: &HirScalar| matches!(s.distinct, Distinct::Distinct) || sort.iter().any(|k| k.target == Some(i)) || keys.has(e) || on[i];
        for (i, t) in targets.iter_mut().enumerate().filter(|(_, t)| t.expr.typ().ty == SqlType::Unknown) {
            let text = match &t.expr {
                HirScalar::Parameter(n, _) => HirScalar::Parameter(*n, SqlType::Text.nullable()),
                e => self.text_if_unknown(e.clone(), t.pos)?,
            };
            if typed || literals[i].is_some() && compared(i, &text) {
                (t.expr, literals[i]) = (self.text_if_unknown(t.expr.clone(), t.pos)?, None);
            }
        }
        for (e, what) in [(&q.offset, "OFFSET"), (&q.limit, "LIMIT")] {
            if let Some(e) = e {
                self.no_variables(e, &level, env, what)?;
            }
        }
        self.limits(&mut Bound::new(super::from::unit(), Vec::new()), q, env)?;
        level.calls.clause.set(Clause::Select);
        let mut definitions = self.window_definitions(&s.windows, &here)?;
        let mut qualify = match &s.qualify {
            Some(e) => {
                level.calls.clause.set(Clause::OrderBy);
                Some(self.condition(&self.with_labels(e, s, &here), &here, "QUALIFY")?)
            }
            None => None,
        };
        let grouped = !s.group_by.is_empty() || having.is_some() || !level.calls.aggregates.borrow().is_empty() || !level.calls.groupings.borrow().is_empty();
        let mut all: Vec<&mut HirScalar> = Vec::new();
        let mut having_expr = having.as_ref().map(|h| h.0.clone());
        let (selected, ordered_by): (usize, Vec<Option<usize>>) = (targets.len(), sort.iter().map(|i| i.target).collect());
        all.extend(targets.iter_mut().map(|t| &mut t.expr));
        all.extend(sort.iter_mut().map(|t| &mut t.expr));
        all.extend(distinct_on.iter_mut());
        all.extend(qualify.iter_mut());
        all.extend(definitions.iter_mut());
        if grouped {
            hir = self.group(keys, hir, &level, &mut all, &mut having_expr).map_err(|e| at_ungrouped(e, s, order_by))?;
            // Of labels of one expression each may be a key of its own.
            for (i, target) in ordered_by.iter().enumerate() {
                if let Some(t) = target {
                    let labelled = all[*t].clone();
                    *all[selected + i] = labelled;
                }
            }
            if let Some(h) = having_expr {
                hir = Hir::Filter { input: Box::new(hir), predicates: conjuncts(h) };
            }
        }
        if let Some(lock) = q.locking.first() {
            let forbidden = [
                (!matches!(s.distinct, Distinct::All), "DISTINCT clause"),
                (!s.group_by.is_empty(), "GROUP BY clause"),
                (s.having.is_some(), "HAVING clause"),
                (grouped, "aggregate functions"),
                (!level.calls.windows.borrow().is_empty(), "window functions"),
            ];
            if let Some((_, what)) = forbidden.iter().find(|f| f.0) {
                return Err(SqlError::new(state::FEATURE_NOT_SUPPORTED, format!("{} is not allowed with {what}", lock.verb)));
            }
        }
        // Of equal rows, and where no order is asked for, the rows come in the order of FROM.
        let mut sort_as_from = !grouped && !q.with_ties && !matches!(s.distinct, Distinct::Distinct);
        sort_as_from &= !order_by.is_empty() || level.calls.windows.borrow().iter().all(|w| w.spec.partition.is_empty() && w.spec.order.is_empty());
        if !grouped {
            self.windows_as_from(&level);
        }
        hir = self.windows(hir, &level, &mut all)?;
        drop(all);
        if sort_as_from {
            sort.extend(level.order.iter().map(|(e, o)| SortItem { expr: e.clone(), order: *o, pos: 0, target: None, written: false }));
        }
        if let Some(q) = qualify {
            hir = Hir::Filter { input: Box::new(hir), predicates: conjuncts(q) };
        }
        let of_sets = |e: &HirScalar| reads(&mut e.clone(), |c| matches!(decode(c), Virtual::Set(_)));
        let mut distinct = &s.distinct;
        let sets_last = !q.with_ties && !level.calls.sets.borrow().is_empty() && !sort.iter().map(|i| &i.expr).chain(&distinct_on).any(of_sets);
        if sets_last && !order_by.is_empty() && matches!(distinct, Distinct::On(_)) {
            // What the order does not need is computed after it, and after DISTINCT ON.
            hir = self.first_rows(hir, &sort, std::mem::take(&mut distinct_on))?;
            distinct = &Distinct::All;
        }
        let of_row: Vec<usize> = (0..targets.len()).filter(|i| !of_sets(&targets[*i].expr)).collect();
        let mut all: Vec<&mut HirScalar> = targets.iter_mut().map(|t| &mut t.expr).collect();
        all.extend(sort.iter_mut().map(|t| &mut t.expr));
        all.extend(distinct_on.iter_mut());
        hir = self.set_returning(hir, &level, &mut all, sets_last)?;
        drop(all);
        if sets_last && matches!(distinct, Distinct::All) {
            // The rows that a row became stay together, in the functions' own order.
            let ascending =
                |expr: HirScalar| SortItem { expr, order: ColumnOrder { column: 0, desc: false, nulls_last: true }, pos: 0, target: None, written: false };
            if level.order.is_empty() && !order_by.is_empty() {
                sort.extend(of_row.into_iter().map(|i| ascending(targets[i].expr.clone())));
            }
            sort.push(ascending(HirScalar::Column(ColumnRef { level: 0, column: hir.arity() - 1 }, SqlType::Int8.not_null())));
        }
        let natural = order_by.is_empty() && from_is_natural;
        Ok(Bound { natural, system, ..self.finish_select(distinct, hir, targets, sort, distinct_on, literals)? })
    }

    /// Window functions that are told no order take that of FROM, where it makes no rows peers of each other that were none.
    fn windows_as_from(&self, level: &Level) {
        if level.order.is_empty() {
            return;
        }
        for w in level.calls.windows.borrow_mut().iter_mut() {
            let rows = w.units == FrameUnits::Rows;
            let whole = w.spec.order.is_empty() && w.exclude == FrameExclude::NoOthers && !rows;
            let by_place = match &w.func {
                HirWindowFunc::RowNumber | HirWindowFunc::Ntile(_) | HirWindowFunc::Lag { .. } | HirWindowFunc::Lead { .. } => true,
                HirWindowFunc::FirstValue(_) | HirWindowFunc::LastValue(_) | HirWindowFunc::NthValue(..) | HirWindowFunc::Aggregate(_) => rows || whole,
                _ => false,
            };
            if !by_place {
                continue;
            }
            if whole {
                // All rows of the partition are peers: the frame, however it is written, is all of them or starts at one of them.
                w.units = FrameUnits::Rows;
                w.start = HirBound::UnboundedPreceding;
                w.end = HirBound::UnboundedFollowing;
            }
            for (e, o) in &level.order {
                if !w.spec.order.iter().any(|k| k.0 == *e) {
                    w.spec.order.push((e.clone(), o.desc, o.nulls_last));
                }
            }
        }
    }

    /// QUALIFY's condition with labels of the select list replaced by what they label, where no input column has the name.
    fn with_labels(&self, e: &Expr, s: &Select, env: &Env) -> Expr {
        let go = |x: &Expr| self.with_labels(x, s, env);
        let kind = match &*e.kind {
            ExprKind::Column(parts) if parts.len() == 1 && self.resolve_column(parts, env).is_err() => {
                let labelled = s.targets.iter().find(|t| t.alias.as_ref().is_some_and(|a| a.name == parts[0].name));
                return labelled.map_or_else(|| e.clone(), |t| t.expr.clone());
            }
            ExprKind::And(xs) => ExprKind::And(xs.iter().map(go).collect()),
            ExprKind::Or(xs) => ExprKind::Or(xs.iter().map(go).collect()),
            ExprKind::Not(x) => ExprKind::Not(go(x)),
            ExprKind::Unary { op, arg } => ExprKind::Unary { op: op.clone(), arg: go(arg) },
            ExprKind::Binary { op, left, right } => ExprKind::Binary { op: op.clone(), left: go(left), right: go(right) },
            ExprKind::IsNull { arg, not } => ExprKind::IsNull { arg: go(arg), not: *not },
            ExprKind::Between { arg, low, high, not, symmetric } => {
                ExprKind::Between { arg: go(arg), low: go(low), high: go(high), not: *not, symmetric: *symmetric }
            }
            ExprKind::InList { arg, list, not } => ExprKind::InList { arg: go(arg), list: list.iter().map(go).collect(), not: *not },
            ExprKind::Cast { arg, ty } => ExprKind::Cast { arg: go(arg), ty: ty.clone() },
            _ => return e.clone(),
        };
        Expr::new(kind, e.pos)
    }

    /// LIMIT sees no column of its query; one that it names is 42P10 rather than unknown.
    fn no_variables(&self, e: &Expr, level: &Level, env: &Env, what: &str) -> Result<(), SqlError> {
        let mut named = None;
        let mut here = None;
        walk::visit(e, &mut |x| {
            if let (ExprKind::Column(parts), None) = (&*x.kind, named) {
                let here = here.get_or_insert_with(|| env.push(Rc::new(Level::new(level.items.clone(), Clause::Limit))));
                named = matches!(self.resolve_column(parts, here), Ok(HirScalar::Column(c, _)) if c.level == 0).then_some(x.pos);
            }
            true
        });
        let message = || format!("argument of {what} must not contain variables");
        named.map_or(Ok(()), |pos| Err(SqlError::new(state::INVALID_COLUMN_REFERENCE, message()).at(pos)))
    }

    /// One item of the select list; `*` gives several.
    pub fn target(&self, t: &Target, env: &Env, out: &mut Vec<TargetItem>) -> Result<(), SqlError> {
        if let ExprKind::Star(parts) = &*t.expr.kind {
            let columns = self.expand_star(parts, env, t.expr.pos, &|n| t.except.iter().any(|e| e.name == n))?;
            if let Some(e) = t.except.iter().find(|e| !columns.iter().any(|c| c.0 == e.name)) {
                return Err(SqlError::new(state::UNDEFINED_COLUMN, format!("column \"{}\" does not exist", e.name)).at(e.pos));
            }
            for (name, expr, pos) in columns {
                if !t.except.iter().any(|e| e.name == name) {
                    out.push(TargetItem { name, expr, pos });
                }
            }
            return Ok(());
        }
        // (row).*
        if let ExprKind::Indirection { arg, path } = &*t.expr.kind {
            if let Some((Indirection::Star, front)) = path.split_last() {
                let row = if front.is_empty() { arg.clone() } else { Expr::new(ExprKind::Indirection { arg: arg.clone(), path: front.to_vec() }, t.expr.pos) };
                let x = self.expr(&row, env)?;
                let x = self.without_domain(x)?;
                let SqlType::Record(r) = x.typ().ty else {
                    return Err(SqlError::new(state::WRONG_OBJECT_TYPE, format!("type {} is not composite", x.typ().ty.sql_name())).at(arg.pos));
                };
                if r.fields.is_empty() {
                    return Err(SqlError::new(state::UNDEFINED_OBJECT, "record type has not been registered").at(arg.pos));
                }
                for (i, f) in r.fields.iter().enumerate() {
                    self.note_field(&r, i, None);
                    out.push(TargetItem { name: f.0.clone(), expr: self.field_select(x.clone(), i)?, pos: t.expr.pos });
                }
                return Ok(());
            }
        }
        let expr = self.expr(&t.expr, env)?;
        let name = match &t.alias {
            Some(a) => a.name.clone(),
            None => {
                let bound = self.subquery_names.borrow();
                figure(&t.expr, &|q| bound.get(&std::ptr::from_ref(q)).cloned().or_else(|| subquery_name(q))).0.unwrap_or_else(|| "?column?".into())
            }
        };
        match (&*t.expr.kind, &t.alias) {
            (ExprKind::Column(parts), None) => self.note_output(parts.last().map_or(t.expr.pos, |p| p.pos), &name),
            (ExprKind::Indirection { path, .. }, None) => {
                if let Some(Indirection::Field(f)) = path.last() {
                    self.note_output(f.pos, &name);
                }
            }
            _ => {}
        }
        out.push(TargetItem { name, expr, pos: t.expr.pos });
        Ok(())
    }

    /// Window nodes over `hir`, calls with one definition together; the virtual columns become real.
    fn windows(&self, mut hir: Hir, level: &Level, all: &mut [&mut HirScalar]) -> Result<Hir, SqlError> {
        let mut calls: Vec<WindowCall> = level.calls.windows.take();
        if calls.is_empty() {
            return Ok(hir);
        }
        // A set-returning function that a window's definition names runs below it.
        let specs = |calls: &mut Vec<WindowCall>| -> Vec<HirScalar> { calls.iter_mut().flat_map(super::calls::spec_exprs).map(|e| e.clone()).collect() };
        let wanted = specs(&mut calls);
        if wanted.iter().any(|e| reads(&mut e.clone(), |c| matches!(decode(c), Virtual::Set(_)))) {
            let mut above: Vec<&mut HirScalar> = all.iter_mut().map(|e| &mut **e).collect();
            above.extend(calls.iter_mut().flat_map(super::calls::spec_exprs));
            hir = self.set_returning_below(hir, level, &wanted, &mut above)?;
        }
        let mut place = vec![0; calls.len()];
        let mut done = vec![false; calls.len()];
        for i in 0..calls.len() {
            if done[i] {
                continue;
            }
            let spec = calls[i].spec.clone();
            let mut extra = Vec::new();
            let arity = hir.arity();
            let mut column = |e: &HirScalar| match e {
                HirScalar::Column(ColumnRef { level: 0, column }, _) => *column,
                _ => match extra.iter().position(|x| x == e) {
                    Some(p) => arity + p,
                    None => {
                        extra.push(e.clone());
                        arity + extra.len() - 1
                    }
                },
            };
            let partition: Vec<usize> = spec.partition.iter().map(&mut column).collect();
            let order_by: Vec<ColumnOrder> =
                spec.order.iter().map(|(e, desc, nulls_last)| ColumnOrder { column: column(e), desc: *desc, nulls_last: *nulls_last }).collect();
            if !extra.is_empty() {
                hir = Hir::Map { input: Box::new(hir), scalars: extra };
            }
            let base = hir.arity();
            let mut exprs = Vec::new();
            for (k, c) in calls.iter().enumerate() {
                if !done[k] && c.spec == spec {
                    done[k] = true;
                    place[k] = base + exprs.len();
                    exprs.push(HirWindow {
                        func: c.func.clone(),
                        units: c.units,
                        start: c.start.clone(),
                        end: c.end.clone(),
                        exclude: c.exclude,
                        ty: c.ty.clone(),
                    });
                }
            }
            hir = Hir::Window { input: Box::new(hir), partition, order_by, exprs };
        }
        let put = |v: Virtual| match v {
            Virtual::Window(i) => Some(place[i]),
            _ => None,
        };
        all.iter_mut().for_each(|e| replace_virtual(e, &put));
        for c in level.calls.sets.borrow_mut().iter_mut() {
            c.args.iter_mut().for_each(|a| replace_virtual(a, &put));
        }
        Ok(hir)
    }

    /// The set-returning calls that `wanted` read, with those that their arguments read; the others wait for a later stage.
    pub fn set_returning_below(&self, hir: Hir, level: &Level, wanted: &[HirScalar], all: &mut [&mut HirScalar]) -> Result<Hir, SqlError> {
        let calls: Vec<SetCall> = level.calls.sets.take();
        let reads_call = |e: &HirScalar, c: &SetCall| {
            let own = c.first..c.first + c.columns.len();
            reads(&mut e.clone(), |col| matches!(decode(col), Virtual::Set(i) if own.contains(&i)))
        };
        let mut needed: Vec<bool> = calls.iter().map(|c| wanted.iter().any(|e| reads_call(e, c))).collect();
        while let Some(i) =
            (0..calls.len()).find(|i| !needed[*i] && (0..calls.len()).any(|k| needed[k] && calls[k].args.iter().any(|a| reads_call(a, &calls[*i]))))
        {
            needed[i] = true;
        }
        let (mut now, mut later) = (Vec::new(), Vec::new());
        for (c, n) in calls.into_iter().zip(needed) {
            if n { &mut now } else { &mut later }.push(c);
        }
        let mut windows = level.calls.windows.take();
        let mut above: Vec<&mut HirScalar> = all.iter_mut().map(|e| &mut **e).collect();
        above.extend(later.iter_mut().flat_map(|c| c.args.iter_mut()));
        above.extend(windows.iter_mut().flat_map(super::calls::spec_exprs));
        level.calls.sets.replace(now);
        let hir = self.set_returning(hir, level, &mut above, false)?;
        drop(above);
        level.calls.sets.replace(later);
        level.calls.windows.replace(windows);
        Ok(hir)
    }

    /// Set-returning calls in expressions: those whose arguments need no other such call go in lockstep, then those on top of them.
    /// `numbered`: the last column is then the number of the row among those that one row of `hir` became.
    pub fn set_returning(&self, mut hir: Hir, level: &Level, all: &mut [&mut HirScalar], numbered: bool) -> Result<Hir, SqlError> {
        let mut calls: Vec<SetCall> = level.calls.sets.take();
        while !calls.is_empty() {
            let (mut now, later): (Vec<SetCall>, Vec<SetCall>) =
                calls.into_iter().partition(|c| !c.args.iter().any(|a| reads(&mut a.clone(), |col| matches!(decode(col), Virtual::Set(_)))));
            if now.is_empty() {
                return Err(SqlError::internal("set-returning calls depend on each other"));
            }
            let base = hir.arity();
            let mut place = Vec::new();
            let mut next = base;
            let mut functions = Vec::new();
            for c in &mut now {
                for i in 0..c.columns.len() {
                    place.push((c.first + i, next));
                    next += 1;
                }
                // The arguments see the query's row as the enclosing one.
                let mut args = std::mem::take(&mut c.args);
                args.iter_mut().for_each(|a| shift(a, 0, 1));
                let n = c.columns.len() - usize::from(c.numbered);
                functions.push(Hir::CallTable { func: c.func, args, columns: c.columns[..n].to_vec(), with_ordinality: c.numbered });
            }
            let numbered = numbered && later.is_empty();
            let right = match &mut functions[..] {
                [Hir::CallTable { with_ordinality, .. }] if !numbered || !*with_ordinality => {
                    *with_ordinality |= numbered;
                    functions.remove(0)
                }
                _ => Hir::RowsFrom { functions, with_ordinality: numbered },
            };
            hir = Hir::Join { left: Box::new(hir), right: Box::new(right), on: super::from::true_(), kind: JoinKind::Inner, lateral: true };
            let put = |v: Virtual| match v {
                Virtual::Set(i) => place.iter().find(|p| p.0 == i).map(|p| p.1),
                _ => None,
            };
            all.iter_mut().for_each(|e| replace_virtual(e, &put));
            calls = later;
            for c in &mut calls {
                c.args.iter_mut().for_each(|a| replace_virtual(a, &put));
            }
        }
        Ok(hir)
    }
}

/// Puts real columns in the place of the virtual ones that `put` knows.
pub fn replace_virtual(e: &mut HirScalar, put: &impl Fn(Virtual) -> Option<usize>) {
    rewrite(e, 0, &mut |s, d| {
        if let HirScalar::Column(c, _) = s {
            if c.level == d {
                if let Some(new) = put(decode(c.column)) {
                    c.column = new;
                }
            }
        }
        true
    });
}

/// The operands of a conjunction.
pub fn conjuncts(e: HirScalar) -> Vec<HirScalar> {
    match e {
        HirScalar::And(xs) => xs.into_iter().flat_map(conjuncts).collect(),
        other => vec![other],
    }
}

/// The name of a result column without alias: Postgres's `FigureColname`.
pub fn figure_name(e: &Expr) -> Option<String> {
    figure(e, &subquery_name).0
}

/// The name and its strength: 2 a real name, 1 a fallback. `of` tells what a subquery's column is called.
fn figure(e: &Expr, of: &dyn Fn(&Query) -> Option<String>) -> (Option<String>, u8) {
    let strong = |s: &str| (Some(s.to_owned()), 2);
    match &*e.kind {
        ExprKind::Column(parts) | ExprKind::Star(parts) => parts.last().map_or((None, 0), |p| strong(&p.name)),
        ExprKind::Indirection { arg, path } => match path.iter().rev().find_map(|p| match p {
            Indirection::Field(f) => Some(f.name.clone()),
            _ => None,
        }) {
            Some(n) => (Some(n), 2),
            None => figure(arg, of),
        },
        ExprKind::Func(c) => c.name.last().map_or((None, 0), |p| strong(&p.name)),
        ExprKind::NullIf(..) => strong("nullif"),
        ExprKind::Cast { arg, ty } => match figure(arg, of) {
            (n, s) if s > 1 => (n, s),
            _ => (ty.names.last().cloned(), 1),
        },
        ExprKind::Collate { arg, .. } => figure(arg, of),
        ExprKind::Grouping(_) => strong("grouping"),
        ExprKind::Exists(_) => strong("exists"),
        ExprKind::ArraySubquery(_) => strong("array"),
        ExprKind::Subquery(q) => match of(q) {
            Some(n) => (Some(n), 2),
            None => (None, 0),
        },
        ExprKind::Case { otherwise, .. } => match otherwise.as_ref().map(|e| figure(e, of)) {
            Some((Some(n), s)) if s > 1 => (Some(n), s),
            _ => (Some("case".into()), 1),
        },
        ExprKind::Array(_) => strong("array"),
        ExprKind::Row { explicit, .. } => strong(if *explicit { "row" } else { "row" }),
        ExprKind::Coalesce(_) => strong("coalesce"),
        ExprKind::MinMax { greatest, .. } => strong(if *greatest { "greatest" } else { "least" }),
        ExprKind::SqlValue(v, _) => strong(match v {
            SqlValue::CurrentDate => "current_date",
            SqlValue::CurrentTime => "current_time",
            SqlValue::CurrentTimestamp => "current_timestamp",
            SqlValue::LocalTime => "localtime",
            SqlValue::LocalTimestamp => "localtimestamp",
            SqlValue::CurrentUser => "current_user",
            SqlValue::CurrentRole => "current_role",
            SqlValue::SessionUser => "session_user",
            SqlValue::User => "user",
            SqlValue::CurrentCatalog => "current_catalog",
            SqlValue::CurrentSchema => "current_schema",
        }),
        _ => (None, 0),
    }
}

/// As far as the text tells it: without what `*` stands for.
fn subquery_name(q: &Query) -> Option<String> {
    match &q.body {
        QueryBody::Select(s) => match s.targets.as_slice() {
            [t] => match &t.alias {
                Some(a) => Some(a.name.clone()),
                None => figure_name(&t.expr),
            },
            _ => None,
        },
        QueryBody::SetOp { left, .. } => subquery_name(left),
        QueryBody::Values(_) => Some("column1".into()),
    }
}
