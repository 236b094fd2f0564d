//! WITH, WITH RECURSIVE, WITH MUTUALLY RECURSIVE.

use super::query::{project, Bound};
use super::scope::{CteEntry, Env};
use super::{Binder, Plan, WithItem, WithPlan};
use crate::ast::*;
use crate::hir::{Hir, HirRec};
use ::plan::LocalId;
use repr::error::state;
use repr::{ColType, SqlError};
use std::cell::Cell;
use std::rc::Rc;

/// A bound item of WITH.
enum Item {
    Plain { id: LocalId, value: Hir, used: Rc<Cell<bool>> },
    Recursive { bindings: Vec<HirRec>, limit: Option<u64>, return_at_limit: bool, used: Vec<Rc<Cell<bool>>> },
    Modify { id: LocalId, plan: Plan },
}

impl Binder<'_> {
    /// Binds the items, then `body` in their sight, and wraps it in them.
    pub fn with(&self, w: &With, env: &Env, body: impl FnOnce(&Self, &Env) -> Result<Bound, SqlError>) -> Result<Bound, SqlError> {
        let (items, env) = self.items(w, env, false)?;
        let mut b = body(self, &env)?;
        // LIMIT may read the items too: it goes inside.
        let reads_items = |e: &Option<crate::hir::HirScalar>| e.as_ref().is_some_and(|e| crate::lower::constant(e).is_none());
        if reads_items(&b.limit) || reads_items(&b.offset) {
            let (limit, offset) = (b.limit.take(), b.offset.take());
            b.hir = Hir::TopK { input: Box::new(b.hir), group_key: Vec::new(), order_by: b.order.clone(), limit, offset, with_ties: b.with_ties };
        }
        b.hir = around(items, b.hir);
        Ok(b)
    }

    /// The WITH of a statement that writes, in itself or in one of the items: they are carried out one by one, before `body`.
    pub fn with_writes(&self, w: Option<&With>, env: &Env, body: impl FnOnce(&Self, &Env) -> Result<Plan, SqlError>) -> Result<Plan, SqlError> {
        let Some(w) = w else { return body(self, env) };
        let (items, env) = self.items(w, env, true)?;
        let body = body(self, &env)?;
        let items = items.into_iter().filter_map(|item| match item {
            Item::Plain { id, value, used } => used.get().then(|| WithItem::Query { id, volatile: super::walk::is_volatile_hir(&value), value }),
            Item::Recursive { bindings, limit, return_at_limit, used } => {
                used.iter().any(|u| u.get()).then_some(WithItem::Recursive { bindings, limit, return_at_limit })
            }
            Item::Modify { id, plan } => Some(WithItem::Modify { id, plan }),
        });
        Ok(Plan::With(Box::new(WithPlan { items: items.collect(), body })))
    }

    /// What those in sight of the items see.
    pub(super) fn env_of_items(&self, w: &With, env: &Env) -> Result<Env, SqlError> {
        Ok(self.items(w, env, false)?.1)
    }

    fn items(&self, w: &With, env: &Env, top: bool) -> Result<(Vec<Item>, Env), SqlError> {
        for (i, c) in w.ctes.iter().enumerate() {
            if w.ctes[..i].iter().any(|x| x.name.name == c.name.name) {
                return Err(SqlError::new(state::DUPLICATE_ALIAS, format!("WITH query name \"{}\" specified more than once", c.name.name)).at(c.name.pos));
            }
        }
        match &w.mutual {
            Some(m) => self.mutual(w, m, env),
            None => self.ctes(w, env, top),
        }
    }

    /// `top`: the WITH of a whole statement, whose items may write.
    fn ctes(&self, w: &With, env: &Env, top: bool) -> Result<(Vec<Item>, Env), SqlError> {
        let mut env = env.clone();
        let mut items = Vec::new();
        for c in self.in_order(w)? {
            let q = match &c.query {
                CteBody::Query(q) => q,
                CteBody::Modify(_) if !top => {
                    let m = "WITH clause containing a data-modifying statement must be at the top level";
                    return Err(SqlError::new(state::FEATURE_NOT_SUPPORTED, m).at(c.name.pos));
                }
                CteBody::Modify(s) => {
                    let (entry, plan) = self.modifying_cte(c, s, w.recursive, &env)?;
                    items.push(Item::Modify { id: entry.id, plan });
                    env = env.with_cte(entry);
                    continue;
                }
            };
            let recursive = w.recursive && mentions(q, &c.name.name);
            let clauses = c.search.is_some() || c.cycle.is_some();
            if clauses && !recursive {
                return Err(SqlError::new(state::SYNTAX_ERROR, "WITH query is not recursive").at(c.name.pos));
            }
            if recursive {
                let (entry, made) = if clauses {
                    let QueryBody::SetOp { left, .. } = &q.body else {
                        return Err(SqlError::new(state::SYNTAX_ERROR, "WITH query is not recursive").at(c.name.pos));
                    };
                    let names = rename(c, self.query(left, &env, true)?.names)?;
                    if let Some(y) = &c.cycle {
                        let none = Env::default();
                        let (to, default) = (self.expr(&y.to, &none)?, self.expr(&y.default, &none)?);
                        self.common_type(&[(to.typ().ty, y.to.pos), (default.typ().ty, y.default.pos)], "CYCLE")?;
                    }
                    let (c, q) = super::search_cycle::expand(c, q, &names)?;
                    self.recursive_cte(&c, &q, &env)?
                } else {
                    self.recursive_cte(c, q, &env)?
                };
                env = env.with_cte(entry);
                items.extend(made);
                continue;
            }
            let b = self.query(q, &env, true)?;
            let names = rename(c, b.names.clone())?;
            let order = (b.order.clone(), b.natural);
            let value = if order.0.is_empty() { b.into_relation() } else { b.limited() };
            let id = self.fresh_local();
            let used = Rc::new(Cell::new(false));
            env = env.with_cte(CteEntry { name: c.name.name.clone(), id, names, types: value.types(), order, forbidden: None, used: used.clone() });
            items.push(Item::Plain { id, value, used });
        }
        Ok((items, env))
    }

    /// An item that writes, and what those who read its RETURNING see.
    fn modifying_cte(&self, c: &Cte, s: &Statement, recursive: bool, env: &Env) -> Result<(CteEntry, Plan), SqlError> {
        if recursive && crate::ast::walk::statement_mentions(s, &c.name.name) {
            let m = format!("recursive query \"{}\" must not contain data-modifying statements", c.name.name);
            return Err(SqlError::new(state::INVALID_RECURSION, m).at(c.name.pos));
        }
        let with = match s {
            Statement::Insert(i) => &i.with,
            Statement::Update(u) => &u.with,
            Statement::Delete(d) => &d.with,
            _ => return Err(SqlError::internal("a WITH item that neither reads nor writes")),
        };
        let reads = |c: &Cte| matches!(c.query, CteBody::Query(_));
        if let Some(inner) = with.iter().flat_map(|w| &w.ctes).find(|c| !reads(c)) {
            let m = "WITH clause containing a data-modifying statement must be at the top level";
            return Err(SqlError::new(state::FEATURE_NOT_SUPPORTED, m).at(inner.name.pos));
        }
        let plan = self.with_writes(with.as_ref(), env, |b, env| match s {
            Statement::Insert(i) => b.insert(i, env),
            Statement::Update(u) => b.update(u, env),
            Statement::Delete(d) => b.delete(d, env),
            _ => Err(SqlError::internal("a WITH item that neither reads nor writes")),
        })?;
        let result = super::result_of(&plan);
        let forbidden = match &result {
            Some(_) => None,
            None => Some((state::FEATURE_NOT_SUPPORTED, format!("WITH query \"{}\" does not have a RETURNING clause", c.name.name))),
        };
        let desc = result.unwrap_or_default();
        let entry = CteEntry {
            name: c.name.name.clone(),
            id: self.fresh_local(),
            names: if forbidden.is_some() { Vec::new() } else { rename(c, desc.names)? },
            types: desc.types,
            order: (Vec::new(), true),
            forbidden,
            used: Rc::new(Cell::new(false)),
        };
        Ok((entry, plan))
    }

    /// WITH RECURSIVE items may refer to later ones: each after those it mentions.
    fn in_order<'w>(&self, w: &'w With) -> Result<Vec<&'w Cte>, SqlError> {
        if !w.recursive {
            return Ok(w.ctes.iter().collect());
        }
        let mut left: Vec<&Cte> = w.ctes.iter().collect();
        let mut done: Vec<&Cte> = Vec::new();
        while !left.is_empty() {
            let ready = left.iter().position(|c| {
                let reads = |name: &str| match &c.query {
                    CteBody::Query(q) => mentions(q, name),
                    CteBody::Modify(s) => crate::ast::walk::statement_mentions(s, name),
                };
                !left.iter().any(|o| o.name.name != c.name.name && reads(&o.name.name))
            });
            match ready {
                Some(i) => done.push(left.remove(i)),
                None => {
                    return Err(SqlError::new(state::FEATURE_NOT_SUPPORTED, "mutual recursion between WITH items is not implemented")
                        .with_hint("Use WITH MUTUALLY RECURSIVE.")
                        .at(left[0].name.pos))
                }
            }
        }
        Ok(done)
    }

    fn recursive_cte(&self, c: &Cte, q: &Query, env: &Env) -> Result<(CteEntry, Vec<Item>), SqlError> {
        let name = &c.name.name;
        let bad = |m: String, pos: Pos| Err(SqlError::new(state::INVALID_RECURSION, m).at(pos));
        let QueryBody::SetOp { op: SetOp::Union, all, left, right } = &q.body else {
            return bad(format!("recursive query \"{name}\" does not have the form non-recursive-term UNION [ALL] recursive-term"), c.name.pos);
        };
        for (clause, given) in [("ORDER BY", !q.order_by.is_empty()), ("OFFSET", q.offset.is_some()), ("LIMIT", q.limit.is_some())] {
            if given {
                return Err(SqlError::new(state::FEATURE_NOT_SUPPORTED, format!("{clause} in a recursive query is not implemented")).at(q.pos));
            }
        }
        if mentions(left, name) {
            return bad(format!("recursive reference to query \"{name}\" must not appear within its non-recursive term"), c.name.pos);
        }
        if !q.locking.is_empty() {
            return Err(SqlError::new(state::FEATURE_NOT_SUPPORTED, "FOR UPDATE/SHARE in a recursive query is not implemented").at(q.pos));
        }
        self.check_recursive_term(name, right, c.name.pos)?;
        // A WITH on the union itself is in sight of both terms.
        let (inner, env) = match &q.with {
            Some(w) if w.mutual.is_some() => {
                return Err(SqlError::unsupported("WITH MUTUALLY RECURSIVE inside WITH RECURSIVE", "put its items into an outer WITH").at(q.pos));
            }
            Some(w) => {
                let reads = |c: &Cte| matches!(&c.query, CteBody::Query(q) if mentions(q, name));
                if w.ctes.iter().any(reads) {
                    return bad(format!("recursive reference to query \"{name}\" must not appear within a subquery"), c.name.pos);
                }
                self.ctes(w, env, false)?
            }
            None => (Vec::new(), env.clone()),
        };
        let env = &env;
        let base = self.query(left, env, true)?;
        let names = rename(c, base.names.clone())?;
        let base = base.into_relation();
        let types: Vec<ColType> = base.types().into_iter().map(|t| t.with_nullable(true)).collect();
        let id = self.fresh_local();
        let used = Rc::new(Cell::new(false));
        let entry =
            CteEntry { name: name.clone(), id, names: names.clone(), types: types.clone(), order: (Vec::new(), true), forbidden: None, used: used.clone() };
        let rec = self.query(right, &env.with_cte(entry.clone()), false)?;
        self.check_recursive_aggregates(name, right, c.name.pos)?;
        if rec.visible != types.len() {
            return Err(SqlError::new(state::SYNTAX_ERROR, "each UNION query must have the same number of columns").at(right.pos));
        }
        let rec_types = rec.types();
        for (i, (b, r)) in types.iter().zip(&rec_types).enumerate() {
            let overall = self.common_type(&[(b.ty.clone(), left.pos), (r.ty.clone(), right.pos)], "UNION")?;
            if overall != b.ty || b.typmod >= 0 && (b.ty != r.ty || b.typmod != r.typmod) {
                return Err(SqlError::new(
                    state::DATATYPE_MISMATCH,
                    format!(
                        "recursive query \"{name}\" column {} has type {} in non-recursive term but type {} overall",
                        i + 1,
                        super::types_of::display(b),
                        overall.sql_name()
                    ),
                )
                .with_hint("Cast the output of the non-recursive term to the correct type.")
                .at(left.pos));
            }
        }
        let rec = self.coerce_columns(rec, &types, "UNION", right.pos)?;
        used.set(false);
        let recursion = |id, types, value| Item::Recursive {
            bindings: vec![HirRec { id, types, value: around(inner, value) }],
            limit: None,
            return_at_limit: false,
            used: vec![used.clone()],
        };
        if super::rounds::goes_row_by_row(&rec, id) {
            let mut value = Hir::Union { inputs: vec![base, rec] };
            if !*all {
                value = Hir::Distinct { input: Box::new(value) };
            }
            return Ok((entry, vec![recursion(id, types, value)]));
        }
        let numbered = self.fresh_local();
        let n = super::rounds::number(base, rec, id, numbered, &types, *all)?;
        let rows = Item::Plain { id, value: n.rows, used: used.clone() };
        Ok((entry, vec![recursion(numbered, n.types, n.value), rows]))
    }

    /// Postgres's limits on the recursive term: one reference, not under an aggregate, the NULL side of an outer join, a subquery
    /// or EXCEPT. (WITH MUTUALLY RECURSIVE has none of them.)
    fn check_recursive_term(&self, name: &str, q: &Query, pos: Pos) -> Result<(), SqlError> {
        let bad = |m: String| Err(SqlError::new(state::INVALID_RECURSION, m).at(pos));
        if !q.locking.is_empty() {
            return Err(SqlError::new(state::FEATURE_NOT_SUPPORTED, "FOR UPDATE/SHARE in a recursive query is not implemented").at(q.pos));
        }
        let within = |what: &str| bad(format!("recursive reference to query \"{name}\" must not appear within {what}"));
        if self_references(q, name) > 1 {
            return more_than_once(name, pos);
        }
        for c in q.with.iter().flat_map(|w| &w.ctes) {
            if let CteBody::Query(inner) = &c.query {
                self.check_recursive_term(name, inner, pos)?;
            }
            if c.name.name == name {
                return Ok(());
            }
        }
        match &q.body {
            QueryBody::SetOp { op, left, right, .. } => match op {
                SetOp::Except if mentions(right, name) => within("EXCEPT"),
                SetOp::Intersect if mentions(left, name) || mentions(right, name) => within("INTERSECT"),
                _ if mentions(left, name) && mentions(right, name) => more_than_once(name, pos),
                _ => {
                    self.check_recursive_term(name, left, pos)?;
                    self.check_recursive_term(name, right, pos)
                }
            },
            QueryBody::Values(_) => Ok(()),
            QueryBody::Select(s) => {
                if let Some(what) = s.from.iter().find_map(|t| references(t, name, false, &mut 0)) {
                    return within(what);
                }
                let exprs = s.targets.iter().map(|t| &t.expr).chain(&s.filter).chain(&s.having).chain(&s.qualify);
                for e in exprs {
                    if crate::ast::walk::expr_mentions(e, name) {
                        return within("a subquery");
                    }
                }
                Ok(())
            }
        }
    }

    /// That a term which reads the query itself has no aggregates; its names are known to be right.
    fn check_recursive_aggregates(&self, name: &str, q: &Query, pos: Pos) -> Result<(), SqlError> {
        for c in q.with.iter().flat_map(|w| &w.ctes) {
            if let CteBody::Query(inner) = &c.query {
                self.check_recursive_aggregates(name, inner, pos)?;
            }
            if c.name.name == name {
                return Ok(());
            }
        }
        match &q.body {
            QueryBody::SetOp { left, right, .. } => {
                self.check_recursive_aggregates(name, left, pos)?;
                self.check_recursive_aggregates(name, right, pos)
            }
            QueryBody::Values(_) => Ok(()),
            QueryBody::Select(s) => {
                let mut count = 0;
                for t in &s.from {
                    let _ = references(t, name, false, &mut count);
                }
                let mut aggregate = false;
                for e in s.targets.iter().map(|t| &t.expr).chain(&s.filter).chain(&s.having).chain(&s.qualify) {
                    crate::ast::walk::visit(e, &mut |x| {
                        if let ExprKind::Func(f) = &*x.kind {
                            let n: Vec<&str> = f.name.iter().map(|i| i.name.as_str()).collect();
                            aggregate |= f.over.is_none() && self.kind_of(&n, f.within_group) == Some(expr::catalog::ProcKind::Aggregate);
                        }
                        !aggregate
                    });
                }
                match aggregate && count > 0 {
                    true => Err(SqlError::new(state::INVALID_RECURSION, "aggregate functions are not allowed in a recursive query's recursive term").at(pos)),
                    false => Ok(()),
                }
            }
        }
    }

    fn mutual(&self, w: &With, m: &Mutual, env: &Env) -> Result<(Vec<Item>, Env), SqlError> {
        let mut env = env.clone();
        let mut entries = Vec::new();
        for c in &w.ctes {
            let types = c.types.iter().map(|t| self.resolve_type(t)).collect::<Result<Vec<_>, _>>()?;
            let entry = CteEntry {
                name: c.name.name.clone(),
                id: self.fresh_local(),
                names: c.columns.iter().map(|i| i.name.clone()).collect(),
                types,
                order: (Vec::new(), true),
                forbidden: None,
                used: Rc::new(Cell::new(false)),
            };
            env = env.with_cte(entry.clone());
            entries.push(entry);
        }
        let mut bindings = Vec::new();
        for (c, e) in w.ctes.iter().zip(&entries) {
            let CteBody::Query(q) = &c.query else {
                return Err(SqlError::unsupported("INSERT, UPDATE or DELETE inside WITH MUTUALLY RECURSIVE", "put them into an outer WITH").at(c.name.pos));
            };
            let b = self.query(q, &env, false)?;
            if b.visible != e.types.len() {
                return Err(SqlError::new(
                    state::INVALID_COLUMN_REFERENCE,
                    format!("WITH MUTUALLY RECURSIVE query \"{}\" has {} columns but {} are declared", e.name, b.visible, e.types.len()),
                )
                .at(c.name.pos));
            }
            let targets: Vec<(String, ColType)> = e.names.iter().cloned().zip(e.types.iter().cloned()).collect();
            let have = b.types();
            for ((n, t), h) in targets.iter().zip(&have) {
                if self.can_coerce(&h.ty, t.ty.oid(), expr::catalog::CastContext::Implicit) || h.ty == t.ty {
                    continue;
                }
                return Err(SqlError::new(
                    state::DATATYPE_MISMATCH,
                    format!("WITH MUTUALLY RECURSIVE query \"{}\" declares column \"{n}\" as {} but it has type {}", e.name, t.ty.sql_name(), h.ty.sql_name()),
                )
                .at(c.name.pos));
            }
            let hir = self.assign_columns(b, &targets, q.pos)?;
            bindings.push(HirRec { id: e.id, types: e.types.clone(), value: project(hir, (0..targets.len()).collect()) });
        }
        let used = entries.iter().map(|e| e.used.clone()).collect::<Vec<_>>();
        used.iter().for_each(|u| u.set(false));
        Ok((vec![Item::Recursive { bindings, limit: m.limit, return_at_limit: m.return_at_limit, used }], env))
    }
}

/// The relation in the sight of WITH items; those that nothing reads are left out.
fn around(items: Vec<Item>, mut hir: Hir) -> Hir {
    for item in items.into_iter().rev() {
        hir = match item {
            Item::Plain { id, value, used } if used.get() => Hir::Let { id, value: Box::new(value), body: Box::new(hir) },
            // Items that write are carried out before.
            Item::Plain { .. } | Item::Modify { .. } => hir,
            Item::Recursive { bindings, limit, return_at_limit, used } => {
                if used.iter().any(|u| u.get()) {
                    Hir::LetRec { bindings, limit, return_at_limit, body: Box::new(hir) }
                } else {
                    hir
                }
            }
        };
    }
    hir
}

fn more_than_once(name: &str, pos: Pos) -> Result<(), SqlError> {
    Err(SqlError::new(state::INVALID_RECURSION, format!("recursive reference to query \"{name}\" must not appear more than once")).at(pos))
}

/// Counts the references to `name`; the construct that forbids one, if it stands there. `nulled`: on the NULL side of an outer join.
fn references(t: &TableRef, name: &str, nulled: bool, count: &mut usize) -> Option<&'static str> {
    match t {
        TableRef::Relation { name: n, .. } => {
            let hit = n.parts.len() == 1 && n.parts[0] == name;
            *count += usize::from(hit);
            (hit && nulled).then_some("an outer join")
        }
        TableRef::Subquery { query, .. } => {
            if mentions(query, name) {
                *count += self_references(query, name).max(1);
                if nulled {
                    return Some("an outer join");
                }
            }
            None
        }
        TableRef::Function { .. } => None,
        TableRef::Join { left, right, kind, .. } => {
            let (l, r) = match kind {
                JoinType::Left => (nulled, true),
                JoinType::Right => (true, nulled),
                JoinType::Full => (true, true),
                _ => (nulled, nulled),
            };
            references(left, name, l, count).or_else(|| references(right, name, r, count))
        }
    }
}

/// How often a query names `name` in FROM, at any depth.
fn self_references(q: &Query, name: &str) -> usize {
    let items: Vec<&Cte> = q.with.iter().flat_map(|w| &w.ctes).collect();
    let of_item = |c: &&Cte| if let CteBody::Query(inner) = &c.query { self_references(inner, name) } else { 0 };
    let inside: usize = items.iter().map(of_item).sum();
    if items.iter().any(|c| c.name.name == name) {
        return inside;
    }
    inside
        + match &q.body {
            QueryBody::SetOp { left, right, .. } => self_references(left, name) + self_references(right, name),
            QueryBody::Values(_) => 0,
            QueryBody::Select(s) => {
                let mut count = 0;
                s.from.iter().for_each(|t| {
                    references(t, name, false, &mut count);
                });
                count
            }
        }
}

/// `c(a, b)`: the first columns get these names.
fn rename(c: &Cte, mut names: Vec<String>) -> Result<Vec<String>, SqlError> {
    if c.columns.len() > names.len() {
        return Err(SqlError::new(
            state::INVALID_COLUMN_REFERENCE,
            format!("WITH query \"{}\" has {} columns available but {} columns specified", c.name.name, names.len(), c.columns.len()),
        )
        .at(c.name.pos));
    }
    for (n, i) in names.iter_mut().zip(&c.columns) {
        n.clone_from(&i.name);
    }
    Ok(names)
}

/// Does the query read a relation of this name anywhere?
fn mentions(q: &Query, name: &str) -> bool {
    crate::ast::walk::query_mentions(q, name)
}
