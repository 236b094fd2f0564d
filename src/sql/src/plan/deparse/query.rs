//! Queries as PostgreSQL prints them: line by line, every column with its relation, every relation with its alias.

use super::*;
use crate::ast::*;
use crate::plan::from::Part;
use crate::plan::order::position_of;
use crate::plan::query::figure_name;
use crate::plan::scope::{Clause, Level, NsItem};
use ::expr::{FrameExclude, FrameUnits};

/// Blanks that a clause of a query is indented by.
const STEP: isize = 8;

/// A stored query as it is shown in `style`, its columns called `names`. `reader`: the catalog under the search path for which it is written, `of`:
/// under the one for which the text was. The text itself where it has no such form.
pub fn query_text(text: &str, names: &[String], of: &dyn SqlCatalog, reader: &dyn SqlCatalog, style: &Style<'_>) -> String {
    deparsed(text, names, of, reader, style).unwrap_or_else(|| {
        let text = text.trim().trim_end_matches(';');
        let own = crate::parse::parse_query(text).and_then(|q| Ok(Binder::new(of).query(&q, &Env::default(), true)?.names));
        if own.is_ok_and(|own| own == names) {
            return format!(" {text}");
        }
        let list: Vec<String> = names.iter().map(|n| quote_ident(n)).collect();
        format!(" SELECT * FROM ({text}) _({})", list.join(", "))
    })
}

fn deparsed(text: &str, names: &[String], of: &dyn SqlCatalog, reader: &dyn SqlCatalog, style: &Style<'_>) -> Option<String> {
    let bound = |text: &str, catalog: &dyn SqlCatalog| {
        let q = crate::parse::parse_query(text)?;
        let binder = Binder::new(catalog);
        let b = binder.query(&q, &Env::default(), true)?;
        Ok::<_, SqlError>((b.names.clone(), b.into_relation()))
    };
    let q = crate::parse::parse_query(text).ok()?;
    let binder = Binder::new(of);
    // A view has two more relations in it, the row before and after.
    let taken = Rc::new(vec!["old".to_owned(), "new".to_owned()]);
    let (indent, sibling, budget) = (Cell::new(0), Cell::new(false), Rc::new(Cell::new(QUERIES_MAX)));
    let top = Deparser { binder: &binder, style, env: Env::default(), of_domain: false, scopes: Some(Vec::new()), taken, indent, sibling, budget };
    let both = top.query(&q, Some(names), None, true)?;
    let (before, after) = (bound(text, of).ok()?, bound(&form(&both, false), reader).ok()?);
    (before.1 == after.1 && after.0 == names).then(|| form(&both, true))
}

/// What the clauses of one SELECT are written with.
struct Parts<'q> {
    select: &'q Select,
    /// Of the result.
    names: Vec<String>,
}

impl<'b, 'c> Deparser<'b, 'c> {
    /// The same in another query: `env`, names of relations by level, and those that are taken.
    fn with(&self, env: Env, scopes: Vec<Rc<Scope>>, taken: Rc<Vec<String>>) -> Deparser<'b, 'c> {
        let (indent, sibling) = (Cell::new(self.indent.get()), Cell::new(false));
        Deparser { binder: self.binder, style: self.style, env, of_domain: false, scopes: Some(scopes), taken, indent, sibling, budget: self.budget.clone() }
    }

    /// Before a query is bound.
    fn spend(&self) -> Option<()> {
        self.budget.set(self.budget.get().checked_sub(1)?);
        Some(())
    }

    /// A query inside an expression.
    pub(super) fn subquery(&self, q: &Query, names: Option<&[String]>) -> Option<String> {
        let inner = self.with(self.env.clone(), self.scopes.clone()?, self.taken.clone());
        inner.query(q, names, None, false)
    }

    pub(super) fn query_types(&self, q: &Query) -> Option<Vec<ColType>> {
        self.spend()?;
        Some(self.binder.query(q, &self.env, true).ok()?.types())
    }

    /// `x op ANY (query)`.
    pub(super) fn quantified(&self, arg: &Expr, op: &OpName, all: bool, q: &Query) -> Option<Shown> {
        let types = self.query_types(q)?;
        let args: Vec<&Expr> = match &*arg.kind {
            ExprKind::Row { fields, .. } => fields.iter().collect(),
            _ => vec![arg],
        };
        if args.len() != types.len() {
            return None;
        }
        let mut texts = Vec::new();
        for (a, t) in args.into_iter().zip(&types) {
            let left = self.show(a)?;
            let (_, l, r, _) = self.binder.operator(op, Some(&left.ty.ty), &t.ty).ok()?;
            if r != *t.ty.base() {
                return None;
            }
            texts.push(self.typed_as(left, &l?)?.text);
        }
        let left = if texts.len() == 1 { texts.remove(0) } else { format!("({})", texts.join(", ")) };
        let word = match (op.name.as_str(), all) {
            ("=", false) => "IN".to_owned(),
            (name, all) => format!("{} {}", if name == "!=" { "<>" } else { name }, all_or_any(all)),
        };
        Shown::new(format!("({left} {word} ({}))", self.subquery(q, None)?), SqlType::Bool, Kind::Test)
    }

    /// A query. `names`: of its columns, if they are not its own; `types`: of those that are literals without one; `visible`: somebody reads the names.
    fn query(&self, q: &Query, names: Option<&[String]>, types: Option<&[ColType]>, visible: bool) -> Option<String> {
        stacker::maybe_grow(128 * 1024, 2 * 1024 * 1024, || self.query_inner(q, names, types, visible))
    }

    fn query_inner(&self, q: &Query, names: Option<&[String]>, types: Option<&[ColType]>, visible: bool) -> Option<String> {
        if q.as_of.is_some() || !q.locking.is_empty() {
            return None;
        }
        self.spend()?;
        let env = match &q.with {
            Some(w) if w.mutual.is_none() => self.binder.env_of_items(w, &self.env).ok()?,
            Some(_) => return None,
            None => self.env.clone(),
        };
        let outer = self.with(env.clone(), self.scopes.clone()?, self.taken.clone());
        let mut out = String::new();
        match &q.body {
            QueryBody::Select(s) => {
                let part = self.binder.from_list(&s.from, &env).ok()?;
                let Part { items, .. } = part;
                let (scope, taken) = self.scope(&items);
                let level = Level::new(items, Clause::Select);
                for (name, spec) in &s.windows {
                    level.calls.named.borrow_mut().push((name.name.clone(), spec.clone()));
                }
                let mut scopes = vec![scope];
                scopes.extend(self.scopes.clone()?);
                let own = self.with(env.push(Rc::new(level)), scopes, taken.clone());
                let inner = self.with(env, self.scopes.clone()?, taken);
                out += &own.items(q.with.as_ref(), &inner)?;
                let names = match names {
                    Some(n) => n.to_vec(),
                    None => s.targets.iter().map(name_of).collect(),
                };
                let parts = Parts { select: s, names };
                own.indent.set(own.indent.get() + STEP);
                out += &own.select(&parts, types, visible, &inner)?;
                if !q.order_by.is_empty() {
                    out += &own.line(" ORDER BY ", -STEP, STEP, 1);
                    let order = q.order_by.iter().map(|o| own.sorted(&own.target_or(&o.expr, &parts, true)?.clone(), o, None));
                    out += &order.collect::<Option<Vec<_>>>()?.join(", ");
                }
                out += &own.limits(q)?;
            }
            QueryBody::Values(rows) => {
                out += &outer.items(q.with.as_ref(), &outer)?;
                outer.indent.set(outer.indent.get() + STEP);
                let own = outer.query_types(q)?;
                let types = types.unwrap_or(&own);
                let renamed = names.filter(|n| n.iter().enumerate().any(|(i, n)| *n != format!("column{}", i + 1)));
                let values = outer.values(rows, types)?;
                out += &match renamed {
                    Some(names) => {
                        let columns = names.iter().enumerate().map(|(i, n)| match format!("column{}", i + 1) {
                            own if own == *n => format!("\"*VALUES*\".{own}"),
                            own => format!("\"*VALUES*\".{own} AS {}", quote_ident(n)),
                        });
                        let breaks = outer.line("", -STEP, STEP, 4);
                        format!(
                            " SELECT {}{}({values}) \"*VALUES*\"",
                            columns.collect::<Vec<_>>().join(&format!(",{breaks}")),
                            outer.line(" FROM ", -STEP, STEP, 2)
                        )
                    }
                    None => format!(" {values}"),
                };
                let mut sorted = Vec::new();
                for o in &q.order_by {
                    let at = position_of(&o.expr, own.len(), "").ok()??;
                    sorted.push(format!("\"*VALUES*\".column{}{}", at + 1, direction(o)?));
                }
                if !sorted.is_empty() {
                    // Postgres makes it a SELECT then.
                    return None;
                }
                out += &outer.limits(q)?;
            }
            QueryBody::SetOp { .. } => {
                out += &outer.items(q.with.as_ref(), &outer)?;
                let of = self.binder.query(&Query { order_by: Vec::new(), limit: None, offset: None, ..q.clone() }, &self.env, true).ok()?;
                out += &outer.set_operation(&q.body, names, types, visible)?;
                if !q.order_by.is_empty() {
                    out += &outer.line(" ORDER BY ", -STEP, STEP, 1);
                    let place = |e: &Expr| match &*e.kind {
                        ExprKind::Column(parts) => of.names.iter().position(|n| parts.len() == 1 && *n == parts[0].name),
                        _ => position_of(e, of.names.len(), "").ok().flatten(),
                    };
                    let order = q.order_by.iter().map(|o| Some(format!("{}{}", place(&o.expr)? + 1, direction(o)?)));
                    out += &order.collect::<Option<Vec<_>>>()?.join(", ");
                }
                out += &outer.limits(q)?;
            }
        }
        Some(out)
    }

    /// The names of a query's relations, and those that are taken inside it.
    fn scope(&self, items: &[NsItem]) -> (Rc<Scope>, Rc<Vec<String>>) {
        let mut taken = (*self.taken).clone();
        let mut names = Vec::with_capacity(items.len());
        for i in items {
            let mut name = i.name.clone();
            let mut n = 0;
            while !name.is_empty() && taken.contains(&name) {
                n += 1;
                name = format!("{}_{n}", i.name);
            }
            if !name.is_empty() {
                taken.push(name.clone());
            }
            names.push(name);
        }
        (Rc::new(Scope { names }), Rc::new(taken))
    }

    /// WITH. `inner`: in whose sight the items stand.
    fn items(&self, with: Option<&With>, inner: &Deparser<'b, 'c>) -> Option<String> {
        let Some(w) = with else { return Some(String::new()) };
        self.indent.set(self.indent.get() + STEP);
        let mut out = String::from(" ");
        for (i, c) in w.ctes.iter().enumerate() {
            let CteBody::Query(q) = &c.query else { return None };
            if c.search.is_some() || c.cycle.is_some() {
                return None;
            }
            out += match i {
                0 if w.recursive => "WITH RECURSIVE ",
                0 => "WITH ",
                _ => ", ",
            };
            let columns: Vec<String> = c.columns.iter().map(|c| quote_ident(&c.name)).collect();
            let columns = if columns.is_empty() { String::new() } else { format!("({})", columns.join(", ")) };
            let materialized = match c.materialized {
                Some(true) => "MATERIALIZED ",
                Some(false) => "NOT MATERIALIZED ",
                None => "",
            };
            out += &format!("{}{columns} AS {materialized}({}", quote_ident(&c.name.name), self.line("", 0, 0, 0));
            inner.indent.set(self.indent.get());
            out += &inner.query(q, None, None, true)?;
            out += &self.line(")", 0, 0, 0);
        }
        self.indent.set(self.indent.get() - STEP);
        out += &self.line("", 0, 0, 0);
        Some(out)
    }

    fn select(&self, p: &Parts<'_>, types: Option<&[ColType]>, visible: bool, inner: &Deparser<'b, 'c>) -> Option<String> {
        let s = p.select;
        if s.into.is_some() || s.qualify.is_some() {
            return None;
        }
        let mut out = String::from(" SELECT");
        match &s.distinct {
            Distinct::All => {}
            Distinct::Distinct => out += " DISTINCT",
            Distinct::On(es) => {
                let keys = es.iter().map(|e| self.sort_key(self.target_or(e, p, true)?)).collect::<Option<Vec<_>>>()?;
                out += &format!(" DISTINCT ON ({})", keys.join(", "));
            }
        }
        self.targets(p, types, visible, &mut out)?;
        self.from(&s.from, inner, &mut out)?;
        if let Some(f) = &s.filter {
            out += &self.line(" WHERE ", -STEP, STEP, 1);
            out += &self.boolean(f)?.text;
        }
        if !s.group_by.is_empty() {
            out += &self.line(" GROUP BY ", -STEP, STEP, 1);
            out += if s.group_distinct { "DISTINCT " } else { "" };
            let keys = s.group_by.iter().map(|g| self.group(g, p, true)).collect::<Option<Vec<_>>>()?;
            out += &keys.join(", ");
        }
        if let Some(h) = &s.having {
            out += &self.line(" HAVING ", -STEP, STEP, 0);
            out += &self.boolean(h)?.text;
        }
        for (i, (name, spec)) in s.windows.iter().enumerate() {
            out += &if i == 0 { self.line(" WINDOW ", -STEP, STEP, 1) } else { ", ".to_owned() };
            out += &format!("{} AS {}", quote_ident(&name.name), self.window(spec)?);
        }
        Some(out)
    }

    fn targets(&self, p: &Parts<'_>, types: Option<&[ColType]>, visible: bool, out: &mut String) -> Option<()> {
        for (i, t) in p.select.targets.iter().enumerate() {
            out.push_str(if i == 0 { " " } else { ", " });
            let shown = self.show(&t.expr)?;
            let name = p.names.get(i)?;
            let called = match (shown.kind, &*t.expr.kind) {
                (Kind::Var, ExprKind::Column(parts)) if shown.text.ends_with(".*") => return parts.last().and(None),
                (Kind::Var, _) => shown.text.rsplit_once('.').map_or(shown.text.clone(), |x| x.1.to_owned()),
                _ if visible => String::new(),
                _ => quote_ident("?column?"),
            };
            let to = types.and_then(|t| t.get(i));
            let shown = match (&shown.untyped, to) {
                // A set operation gives the literal its type: that is shown, and not written.
                (Some(v), Some(t)) => {
                    let written = v.as_str().map_or_else(|| "NULL".to_owned(), quoted);
                    let typed = self.typed_as(shown, t.ty.base())?;
                    Shown { text: two_forms(&typed.text, &written), ..typed }
                }
                _ => self.known(shown)?,
            };
            let mut text = shown.text;
            let name = quote_ident(name);
            if called != name {
                text += &format!(" AS {name}");
            }
            if i > 0 && !text.starts_with(BREAK) {
                out.push_str(&self.line("", -STEP, STEP, 4));
            }
            out.push_str(&text);
        }
        Some(())
    }

    /// The expression of the select list that an expression of ORDER BY or GROUP BY means, by number or name, or itself.
    fn target_or<'q>(&self, e: &'q Expr, p: &Parts<'q>, names_first: bool) -> Option<&'q Expr> {
        if let Some(i) = position_of(e, p.select.targets.len(), "").ok()? {
            return Some(&p.select.targets[i].expr);
        }
        if let ExprKind::Column(parts) = &*e.kind {
            let by_name = || p.select.targets.iter().find(|t| parts.len() == 1 && name_of(t) == parts[0].name).map(|t| &t.expr);
            let is_column = || self.column(parts, self.scopes.as_ref()?);
            return match (names_first, by_name()) {
                (true, Some(t)) => Some(t),
                (false, Some(t)) if is_column().is_none() => Some(t),
                _ => Some(e),
            };
        }
        Some(e)
    }

    /// A key of a sort or a group.
    fn sort_key(&self, e: &Expr) -> Option<String> {
        let shown = self.known(self.show(e)?)?;
        self.bracketed_key(shown)
    }

    fn bracketed_key(&self, shown: Shown) -> Option<String> {
        Some(match shown.kind {
            Kind::Const if !shown.text.contains("::") => format!("{}::{}", shown.text, self.type_name(&shown.ty.ty, -1)),
            Kind::Const | Kind::Var => shown.text,
            Kind::Func | Kind::Aggregate => format!("({})", shown.text),
            _ if self.style.pretty => format!("({})", shown.text),
            _ => shown.text,
        })
    }

    fn sorted(&self, e: &Expr, o: &OrderBy, ty: Option<&SqlType>) -> Option<String> {
        let mut shown = self.known(self.show(e)?)?;
        if let Some(t) = ty {
            shown = self.typed_as(shown, t)?;
        }
        Some(format!("{}{}", self.bracketed_key(shown)?, direction(o)?))
    }

    /// ORDER BY inside an aggregate or a window.
    pub(super) fn order_list(&self, order: &[OrderBy], types: &[SqlType]) -> Option<String> {
        let all = order.iter().enumerate().map(|(i, o)| self.sorted(&o.expr, o, types.get(i))).collect::<Option<Vec<_>>>()?;
        Some(all.join(", "))
    }

    fn group(&self, g: &GroupItem, p: &Parts<'_>, bare: bool) -> Option<String> {
        let keys = |es: &[Expr]| Some(es.iter().map(|e| self.sort_key(self.target_or(e, p, false)?)).collect::<Option<Vec<_>>>()?.join(", "));
        let nested = |gs: &[GroupItem], bare: bool| Some(gs.iter().map(|g| self.group(g, p, bare)).collect::<Option<Vec<_>>>()?.join(", "));
        let sets = p.select.group_by.iter().any(|g| !matches!(g, GroupItem::Expr(_)));
        Some(match g {
            GroupItem::Expr(e) if !sets || bare => keys(std::slice::from_ref(e))?,
            GroupItem::Expr(e) => format!("({})", keys(std::slice::from_ref(e))?),
            GroupItem::Empty => "()".to_owned(),
            GroupItem::List(es) if es.len() == 1 && bare => keys(es)?,
            GroupItem::List(es) => format!("({})", keys(es)?),
            GroupItem::Rollup(gs) => format!("ROLLUP({})", nested(gs, true)?),
            GroupItem::Cube(gs) => format!("CUBE({})", nested(gs, true)?),
            GroupItem::Sets(gs) => format!("GROUPING SETS ({})", nested(gs, false)?),
        })
    }

    pub(super) fn window(&self, w: &WindowSpec) -> Option<String> {
        let mut parts = Vec::new();
        if let Some(b) = &w.base {
            parts.push(quote_ident(&b.name));
        }
        if !w.partition_by.is_empty() {
            let keys = w.partition_by.iter().map(|e| self.sort_key(e)).collect::<Option<Vec<_>>>()?;
            parts.push(format!("PARTITION BY {}", keys.join(", ")));
        }
        if !w.order_by.is_empty() {
            parts.push(format!("ORDER BY {}", self.order_list(&w.order_by, &[])?));
        }
        let default = |f: &FrameClause| {
            f.units == FrameUnits::Range
                && matches!((&f.start, &f.end), (FrameEdge::UnboundedPreceding, FrameEdge::CurrentRow))
                && f.exclude == FrameExclude::NoOthers
        };
        if let Some(f) = w.frame.as_ref().filter(|f| !default(f)) {
            let units = match f.units {
                FrameUnits::Rows => "ROWS",
                FrameUnits::Range => "RANGE",
                FrameUnits::Groups => "GROUPS",
            };
            // What is counted has the type of what is ordered; a literal takes it.
            let key = match w.order_by.first() {
                Some(o) if f.units == FrameUnits::Range => Some(self.show(&o.expr)?.ty.ty),
                _ => None,
            };
            let offset = |e: &Expr| {
                let shown = self.show(e)?;
                let ty = match &key {
                    Some(SqlType::Date | SqlType::Timestamp | SqlType::TimestampTz | SqlType::Time | SqlType::TimeTz) => SqlType::Interval,
                    Some(other) => other.clone(),
                    None => SqlType::Int8,
                };
                Some(if shown.untyped.is_some() { self.typed_as(shown, &ty)?.text } else { shown.text })
            };
            let edge = |e: &FrameEdge| {
                Some(match e {
                    FrameEdge::UnboundedPreceding => "UNBOUNDED PRECEDING".to_owned(),
                    FrameEdge::UnboundedFollowing => "UNBOUNDED FOLLOWING".to_owned(),
                    FrameEdge::CurrentRow => "CURRENT ROW".to_owned(),
                    FrameEdge::Preceding(x) => format!("{} PRECEDING", offset(x)?),
                    FrameEdge::Following(x) => format!("{} FOLLOWING", offset(x)?),
                })
            };
            parts.push(match f.between {
                true => format!("{units} BETWEEN {} AND {}", edge(&f.start)?, edge(&f.end)?),
                false => format!("{units} {}", edge(&f.start)?),
            });
            match f.exclude {
                FrameExclude::NoOthers => {}
                FrameExclude::CurrentRow => parts.push("EXCLUDE CURRENT ROW".into()),
                FrameExclude::Group => parts.push("EXCLUDE GROUP".into()),
                FrameExclude::Ties => parts.push("EXCLUDE TIES".into()),
            }
        }
        Some(format!("({})", parts.join(" ")))
    }

    fn limits(&self, q: &Query) -> Option<String> {
        let number = |e: &Expr| {
            let shown = self.show(e)?;
            Some(if shown.untyped.is_some() { self.typed_as(shown, &SqlType::Int8)?.text } else { shown.text })
        };
        let mut out = String::new();
        if let Some(e) = &q.offset {
            out += &self.line(" OFFSET ", -STEP, STEP, 0);
            out += &number(e)?;
        }
        match &q.limit {
            Some(e) if q.with_ties => {
                out += &self.line(" FETCH FIRST ", -STEP, STEP, 0);
                out += &format!("({}) ROWS WITH TIES", number(e)?);
            }
            Some(e) if !matches!(&*e.kind, ExprKind::Null) => {
                out += &self.line(" LIMIT ", -STEP, STEP, 0);
                out += &number(e)?;
            }
            _ => {}
        }
        Some(out)
    }

    fn values(&self, rows: &[Vec<Expr>], types: &[ColType]) -> Option<String> {
        let mut out = Vec::with_capacity(rows.len());
        for row in rows {
            let texts = row.iter().zip(types).map(|(e, t)| Some(self.typed_as(self.show(e)?, t.ty.base())?.text)).collect::<Option<Vec<_>>>()?;
            if texts.len() != types.len() {
                return None;
            }
            out.push(format!("({})", texts.join(",")));
        }
        Some(format!("VALUES {}", out.join(", ")))
    }

    /// One side of a set operation.
    fn operand(&self, q: &Query, names: Option<&[String]>, types: &[ColType], visible: bool) -> Option<String> {
        if is_operation(q) {
            return self.set_operation(&q.body, names, Some(types), visible);
        }
        let brackets = q.with.is_some() || !q.order_by.is_empty() || q.limit.is_some() || q.offset.is_some();
        let inner = self.with(self.env.clone(), self.scopes.clone()?, self.taken.clone());
        let text = inner.query(q, names, Some(types), visible)?;
        Some(if brackets { format!("({text})") } else { text })
    }

    fn set_operation(&self, body: &QueryBody, names: Option<&[String]>, types: Option<&[ColType]>, visible: bool) -> Option<String> {
        let QueryBody::SetOp { op, all, left, right } = body else { return None };
        self.spend()?;
        let (l, r) = (self.binder.query(left, &self.env, false).ok()?, self.binder.query(right, &self.env, false).ok()?);
        let pairs: Vec<(SqlType, SqlType)> = l.types().into_iter().zip(r.types()).map(|(a, b)| (a.ty, b.ty)).collect();
        let mut common = Vec::new();
        for (i, (a, b)) in pairs.into_iter().enumerate() {
            let mut both = vec![(a, 0), (b, 0)];
            if both.iter().all(|t| t.0 == SqlType::Unknown) {
                both.extend(types.and_then(|t| t.get(i)).map(|t| (t.ty.clone(), 0)));
            }
            common.push(self.binder.common_type(&both, "").ok()?.nullable());
        }
        let mut out = String::new();
        let same = matches!(&left.body, QueryBody::SetOp { op: o, all: a, .. } if o == op && a == all);
        let brackets = is_operation(left) && !same;
        if brackets {
            out += &format!("({}", self.line("", STEP, 0, 0));
        }
        out += &self.operand(left, names, &common, visible)?;
        out += &if brackets { self.line(") ", -STEP, 0, 0) } else { self.line("", 0, 0, 0) };
        out += match op {
            SetOp::Union => "UNION ",
            SetOp::Intersect => "INTERSECT ",
            SetOp::Except => "EXCEPT ",
        };
        out += if *all { "ALL " } else { "" };
        let brackets = is_operation(right);
        let step = if brackets { STEP } else { 0 };
        out += if brackets { "(" } else { "" };
        out += &self.line("", step, 0, 0);
        out += &self.operand(right, names, &common, false)?;
        self.indent.set(self.indent.get() - step);
        if brackets {
            out += &self.line(")", 0, 0, 0);
        }
        Some(out)
    }

    fn from(&self, from: &[TableRef], inner: &Deparser<'b, 'c>, out: &mut String) -> Option<()> {
        let mut at = 0;
        for (i, t) in from.iter().enumerate() {
            if i == 0 {
                out.push_str(&self.line(" FROM ", -STEP, STEP, 2));
                out.push_str(&self.from_item(t, &mut at, inner)?);
                continue;
            }
            out.push_str(", ");
            let text = self.from_item(t, &mut at, inner)?;
            if !text.starts_with(BREAK) {
                out.push_str(&self.line("", -STEP, STEP, 4));
            }
            out.push_str(&text);
        }
        Some(())
    }

    /// An item of FROM. `at`: the next item of the level; `inner`: in whose sight subqueries stand that are not lateral.
    fn from_item(&self, t: &TableRef, at: &mut usize, inner: &Deparser<'b, 'c>) -> Option<String> {
        let level = self.env.level()?;
        let scopes = self.scopes.as_ref()?;
        let mut next = || {
            let i = *at;
            *at += 1;
            Some((level.items.get(i)?, scopes.first()?.names.get(i)?.clone()))
        };
        let columns = |item: &NsItem| item.cols.iter().map(|c| quote_ident(&c.name)).collect::<Vec<_>>().join(", ");
        match t {
            TableRef::Relation { name, alias } => {
                let (item, shown) = next()?;
                let is_item = name.parts.len() == 1 && self.env.ctes.find(&name.parts[0]).is_some();
                let (text, plain, real) = if is_item {
                    (quote_ident(name.last()), name.last().to_owned(), None)
                } else {
                    let own = item.hidden.clone().unwrap_or_else(|| item.name.clone());
                    let text = self.style.view.relation_name(item.rel_oid)?;
                    // An item of WITH hides it.
                    let text = if self.env.ctes.find(&text).is_some() { qualified(&self.binder.resolve_relation(name).ok()?.name) } else { text };
                    (text, own, Some(self.style.view.columns(item.rel_oid)))
                };
                let list = match (alias, real) {
                    (Some(a), Some(real)) if !a.columns.is_empty() => item.cols.iter().zip(&real).any(|(c, r)| c.name != *r),
                    (Some(a), None) => !a.columns.is_empty(),
                    _ => false,
                };
                let mut out = text;
                if alias.is_some() || shown != plain {
                    out += &format!(" {}", quote_ident(&shown));
                }
                if list {
                    out += &format!("({})", columns(item));
                }
                Some(out)
            }
            TableRef::Subquery { lateral, query, alias } => {
                let (item, shown) = next()?;
                let around = if *lateral { self } else { inner };
                let sub = around.with(around.env.clone(), around.scopes.clone()?, self.taken.clone());
                sub.indent.set(self.indent.get());
                let text = sub.query(query, None, None, true)?;
                let list = alias.as_ref().filter(|a| !a.columns.is_empty()).map_or(String::new(), |_| format!("({})", columns(item)));
                Some(format!("{}({text}) {}{list}", if *lateral { "LATERAL " } else { "" }, quote_ident(&shown)))
            }
            TableRef::Function { functions, ordinality, columns: decls, rows_from, .. } => {
                let (item, shown) = next()?;
                self.sibling.set(false);
                let mut calls = Vec::new();
                for (f, own) in functions {
                    if !own.is_empty() {
                        return None;
                    }
                    calls.push(self.show(f)?);
                }
                let single = matches!(&*functions[0].0.kind, ExprKind::Func(c) if c.args.len() > 1 && c.name.last().is_some_and(|n| n.name == "unnest"));
                let mut text = match &calls[..] {
                    [_] if single => return None,
                    [one] if !*rows_from || decls.is_empty() => one.text.clone(),
                    _ if !decls.is_empty() => return None,
                    _ => format!("ROWS FROM({})", list(&calls)),
                };
                if self.sibling.get() {
                    text.insert_str(0, "LATERAL ");
                }
                if *ordinality {
                    text += " WITH ORDINALITY";
                }
                let list = if decls.is_empty() {
                    columns(item)
                } else {
                    let typed = item.cols.iter().map(|c| format!("{} {}", quote_ident(&c.name), self.type_name(&c.ty.ty, c.ty.typmod)));
                    typed.collect::<Vec<_>>().join(", ")
                };
                Some(format!("{text} {}({list})", quote_ident(&shown)))
            }
            TableRef::Join { left, right, kind, cond, alias, .. } => {
                let named = matches!(cond, JoinCond::Using(_, Some(_)));
                if alias.is_some() || named {
                    return None;
                }
                let pretty = self.style.pretty;
                let first = *at;
                let mut out = self.from_item(left, at, inner)?;
                let middle = *at;
                let natural = matches!(cond, JoinCond::Natural | JoinCond::Using(..));
                let word = match kind {
                    JoinType::Inner | JoinType::Cross if matches!(cond, JoinCond::None) => " CROSS JOIN ",
                    JoinType::Inner | JoinType::Cross => " JOIN ",
                    JoinType::Left => " LEFT JOIN ",
                    JoinType::Right => " RIGHT JOIN ",
                    JoinType::Full => " FULL JOIN ",
                };
                out += &self.line(word, -STEP, STEP, 4);
                let right_text = self.from_item(right, at, inner)?;
                out += &if pretty && matches!(**right, TableRef::Join { .. }) { format!("({right_text})") } else { right_text };
                if natural {
                    // Its merged columns are an item.
                    let merged = level.items.get(*at)?;
                    let of = |from: usize, to: usize, name: &str| level.items[from..to].iter().any(|i| i.cols.iter().any(|c| c.name == name));
                    let names: Vec<String> = match cond {
                        JoinCond::Using(names, _) => names.iter().map(|n| quote_ident(&n.name)).collect(),
                        _ => {
                            let both = merged.cols.iter().take_while(|c| of(first, middle, &c.name) && of(middle, *at, &c.name));
                            both.map(|c| quote_ident(&c.name)).collect()
                        }
                    };
                    *at += 1;
                    if names.is_empty() {
                        return None;
                    }
                    out += &format!(" USING ({})", names.join(", "));
                } else if let JoinCond::On(e) = cond {
                    out += &format!(" ON {}", self.own(self.boolean(e)?.text));
                }
                Some(self.own(out))
            }
        }
    }

    /// A column with its relation.
    pub(super) fn column(&self, parts: &[Ident], scopes: &[Rc<Scope>]) -> Option<Shown> {
        let (name, qualifier) = (&parts.last()?.name, parts.len().checked_sub(2).map(|i| parts[i].name.as_str()));
        for (depth, node) in self.env.nodes().enumerate().filter(|n| n.1.visible) {
            let scope = scopes.get(depth)?;
            let items = &node.level.items;
            let seen = |i: &NsItem| match qualifier {
                None => i.cols_visible,
                Some(q) => i.rel_visible && i.name == q,
            };
            let hit = items.iter().enumerate().filter(|i| seen(i.1)).find_map(|(i, item)| Some((i, item.cols.iter().find(|c| c.name == *name)?)));
            let Some((i, col)) = hit else {
                // The row of a relation.
                let whole = items.iter().position(|i| qualifier.is_none() && i.rel_visible && i.name == *name);
                match whole {
                    Some(i) if !items[i].scalar => {
                        let ty = self.binder.resolve_column(parts, &self.env).ok()?.typ();
                        return Some(Shown { text: format!("{}.*", quote_ident(&scope.names[i])), ty, untyped: None, kind: Kind::Var });
                    }
                    Some(_) => return None,
                    None => continue,
                }
            };
            self.sibling.set(self.sibling.get() || depth == 0);
            let (owner, column) = match items[i].name.is_empty() {
                false => (Some(i), &col.name),
                // Merged by USING: the side that it is, if it is one.
                true if col.whole.is_some() => (None, &col.name),
                true => {
                    let of = items.iter().enumerate().filter(|i| !i.1.name.is_empty());
                    let found = of.into_iter().find_map(|(i, item)| Some((i, item.cols.iter().find(|c| c.pos == col.pos)?)))?;
                    (Some(found.0), &found.1.name)
                }
            };
            let text = match owner {
                Some(i) => format!("{}.{}", quote_ident(&scope.names[i]), quote_ident(column)),
                None => quote_ident(column),
            };
            return Some(Shown { text, ty: col.ty.clone(), untyped: None, kind: Kind::Var });
        }
        None
    }
}

/// Whether it is a set operation and nothing more.
fn is_operation(q: &Query) -> bool {
    matches!(q.body, QueryBody::SetOp { .. }) && q.with.is_none() && q.order_by.is_empty() && q.limit.is_none() && q.offset.is_none()
}

fn qualified(name: &crate::catalog::FullName) -> String {
    format!("{}.{}", quote_ident(&name.schema), quote_ident(&name.name))
}

/// The name of a column of the result.
fn name_of(t: &Target) -> String {
    t.alias.as_ref().map_or_else(|| figure_name(&t.expr).unwrap_or_else(|| "?column?".into()), |a| a.name.clone())
}

/// What stands behind a sort key.
fn direction(o: &OrderBy) -> Option<&'static str> {
    let desc = match o.using.as_deref() {
        None => o.desc,
        Some("<") => false,
        Some(">") => true,
        Some(_) => return None,
    };
    Some(match (desc, o.nulls_first) {
        (false, Some(true)) => " NULLS FIRST",
        (false, _) => "",
        (true, Some(false)) => " DESC NULLS LAST",
        (true, _) => " DESC",
    })
}
