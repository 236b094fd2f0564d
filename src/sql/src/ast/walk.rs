//! Looking through a tree for the relations that it names.

use super::*;

/// Does the query name the relation `name`, unqualified, where no inner WITH hides it?
pub fn query_mentions(q: &Query, name: &str) -> bool {
    if let Some(w) = &q.with {
        for c in &w.ctes {
            if let CteBody::Query(inner) = &c.query {
                if query_mentions(inner, name) {
                    return true;
                }
            }
            if c.name.name == name {
                return false;
            }
        }
    }
    let body = match &q.body {
        QueryBody::Select(s) => select_mentions(s, name),
        QueryBody::Values(rows) => rows.iter().flatten().any(|e| expr_mentions(e, name)),
        QueryBody::SetOp { left, right, .. } => query_mentions(left, name) || query_mentions(right, name),
    };
    body || q.order_by.iter().any(|o| expr_mentions(&o.expr, name)) || q.limit.iter().chain(&q.offset).any(|e| expr_mentions(e, name))
}

/// As [`query_mentions`], of a statement that may stand in WITH.
pub fn statement_mentions(s: &Statement, name: &str) -> bool {
    let targets = |ts: &[Target]| ts.iter().any(|t| expr_mentions(&t.expr, name));
    let sets = |a: &[Assignment]| a.iter().any(|a| expr_mentions(&a.value, name));
    match s {
        Statement::Select(q) => query_mentions(q, name),
        Statement::Insert(i) => {
            let conflict = i.on_conflict.as_ref().is_some_and(|c| match &c.action {
                ConflictAction::Nothing => false,
                ConflictAction::Update { set, filter } => sets(set) || filter.iter().any(|e| expr_mentions(e, name)),
            });
            matches!(&i.source, InsertSource::Query(q) if query_mentions(q, name)) || conflict || targets(&i.returning)
        }
        Statement::Update(u) => {
            u.from.iter().any(|t| table_mentions(t, name)) || sets(&u.set) || u.filter.iter().any(|e| expr_mentions(e, name)) || targets(&u.returning)
        }
        Statement::Delete(d) => d.using.iter().any(|t| table_mentions(t, name)) || d.filter.iter().any(|e| expr_mentions(e, name)) || targets(&d.returning),
        _ => false,
    }
}

fn select_mentions(s: &Select, name: &str) -> bool {
    s.from.iter().any(|t| table_mentions(t, name))
        || s.targets.iter().any(|t| expr_mentions(&t.expr, name))
        || s.filter.iter().chain(&s.having).chain(&s.qualify).any(|e| expr_mentions(e, name))
        || s.group_by.iter().any(|g| group_mentions(g, name))
        || matches!(&s.distinct, Distinct::On(es) if es.iter().any(|e| expr_mentions(e, name)))
        || s.windows.iter().any(|(_, w)| window_mentions(w, name))
}

fn group_mentions(g: &GroupItem, name: &str) -> bool {
    match g {
        GroupItem::Expr(e) => expr_mentions(e, name),
        GroupItem::Empty => false,
        GroupItem::List(es) => es.iter().any(|e| expr_mentions(e, name)),
        GroupItem::Rollup(gs) | GroupItem::Cube(gs) | GroupItem::Sets(gs) => gs.iter().any(|g| group_mentions(g, name)),
    }
}

fn window_mentions(w: &WindowSpec, name: &str) -> bool {
    w.partition_by.iter().any(|e| expr_mentions(e, name)) || w.order_by.iter().any(|o| expr_mentions(&o.expr, name))
}

fn table_mentions(t: &TableRef, name: &str) -> bool {
    match t {
        TableRef::Relation { name: n, .. } => n.parts.len() == 1 && n.parts[0] == name,
        TableRef::Subquery { query, .. } => query_mentions(query, name),
        TableRef::Function { functions, .. } => functions.iter().any(|f| expr_mentions(&f.0, name)),
        TableRef::Join { left, right, cond, .. } => {
            table_mentions(left, name) || table_mentions(right, name) || matches!(cond, JoinCond::On(e) if expr_mentions(e, name))
        }
    }
}

/// Does the expression hold a subquery that names the relation?
pub fn expr_mentions(e: &Expr, name: &str) -> bool {
    let mut found = false;
    visit(e, &mut |x| {
        found = found
            || match &*x.kind {
                ExprKind::Exists(q) | ExprKind::Subquery(q) | ExprKind::ArraySubquery(q) | ExprKind::InSubquery { query: q, .. } => query_mentions(q, name),
                ExprKind::Quantified { rhs: QuantifiedRhs::Query(q), .. } => query_mentions(q, name),
                _ => false,
            };
        !found
    });
    found
}

/// Calls `f` on the expression and those in it, not on those of subqueries, as long as it says to go on.
pub fn visit(e: &Expr, f: &mut dyn FnMut(&Expr) -> bool) {
    if !f(e) {
        return;
    }
    stacker::maybe_grow(64 * 1024, 1024 * 1024, || {
        let mut all = |es: &[Expr]| es.iter().for_each(|e| visit(e, f));
        match &*e.kind {
            ExprKind::InSubquery { arg, .. }
            | ExprKind::Unary { arg, .. }
            | ExprKind::Not(arg)
            | ExprKind::IsNull { arg, .. }
            | ExprKind::IsBool { arg, .. }
            | ExprKind::Cast { arg, .. }
            | ExprKind::Collate { arg, .. } => visit(arg, f),
            ExprKind::Quantified { arg, rhs, .. } => {
                visit(arg, f);
                if let QuantifiedRhs::Array(a) = rhs {
                    visit(a, f);
                }
            }
            ExprKind::Indirection { arg, path } => {
                visit(arg, f);
                for p in path {
                    match p {
                        Indirection::Index(e) => visit(e, f),
                        Indirection::Slice(a, b) => a.iter().chain(b).for_each(|e| visit(e, f)),
                        _ => {}
                    }
                }
            }
            ExprKind::Binary { left, right, .. } | ExprKind::IsDistinct { left, right, .. } | ExprKind::NullIf(left, right) => {
                visit(left, f);
                visit(right, f);
            }
            ExprKind::Like { arg, pattern, .. } => {
                visit(arg, f);
                visit(pattern, f);
            }
            ExprKind::Between { arg, low, high, .. } => [arg, low, high].into_iter().for_each(|e| visit(e, f)),
            ExprKind::InList { arg, list, .. } => {
                visit(arg, f);
                list.iter().for_each(|e| visit(e, f));
            }
            ExprKind::And(es) | ExprKind::Or(es) | ExprKind::Array(es) | ExprKind::Coalesce(es) | ExprKind::Grouping(es) => all(es),
            ExprKind::Row { fields, .. } => all(fields),
            ExprKind::MinMax { args, .. } => all(args),
            ExprKind::Case { operand, branches, otherwise } => {
                operand.iter().chain(otherwise).for_each(|e| visit(e, f));
                for (c, r) in branches {
                    visit(c, f);
                    visit(r, f);
                }
            }
            ExprKind::Func(c) => {
                c.args.iter().for_each(|a| visit(&a.expr, f));
                c.filter.iter().for_each(|e| visit(e, f));
                c.order_by.iter().for_each(|o| visit(&o.expr, f));
                if let Some(Over::Spec(w)) = &c.over {
                    w.partition_by.iter().for_each(|e| visit(e, f));
                    w.order_by.iter().for_each(|o| visit(&o.expr, f));
                }
            }
            ExprKind::Exists(_)
            | ExprKind::Subquery(_)
            | ExprKind::ArraySubquery(_)
            | ExprKind::Column(_)
            | ExprKind::Param(_)
            | ExprKind::Null
            | ExprKind::Bool(_)
            | ExprKind::Number(_)
            | ExprKind::String(_)
            | ExprKind::BitString(_)
            | ExprKind::SqlValue(..)
            | ExprKind::Star(_)
            | ExprKind::Default => {}
        }
    })
}
