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

fn select_mentions(s: &Select, name: &str) -> bool {
    s.from.iter().any(|t| table_mentions(t, name))
        || s.targets.iter().any(|t| expr_mentions(&t.expr, name))
        || s.filter.iter().chain(&s.having).any(|e| expr_mentions(e, name))
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
    stacker::maybe_grow(64 * 1024, 1024 * 1024, || {
        let any = |es: &[Expr]| es.iter().any(|e| expr_mentions(e, name));
        match &*e.kind {
            ExprKind::Exists(q) | ExprKind::Subquery(q) | ExprKind::ArraySubquery(q) => query_mentions(q, name),
            ExprKind::InSubquery { arg, query, .. } => expr_mentions(arg, name) || query_mentions(query, name),
            ExprKind::Quantified { arg, rhs, .. } => {
                expr_mentions(arg, name)
                    || match rhs {
                        QuantifiedRhs::Query(q) => query_mentions(q, name),
                        QuantifiedRhs::Array(a) => expr_mentions(a, name),
                    }
            }
            ExprKind::Unary { arg, .. }
            | ExprKind::Not(arg)
            | ExprKind::IsNull { arg, .. }
            | ExprKind::IsBool { arg, .. }
            | ExprKind::Cast { arg, .. }
            | ExprKind::Collate { arg, .. } => expr_mentions(arg, name),
            ExprKind::Indirection { arg, path } => {
                expr_mentions(arg, name)
                    || path.iter().any(|p| match p {
                        Indirection::Index(e) => expr_mentions(e, name),
                        Indirection::Slice(a, b) => a.iter().chain(b).any(|e| expr_mentions(e, name)),
                        _ => false,
                    })
            }
            ExprKind::Binary { left, right, .. } | ExprKind::IsDistinct { left, right, .. } | ExprKind::NullIf(left, right) => {
                expr_mentions(left, name) || expr_mentions(right, name)
            }
            ExprKind::Like { arg, pattern, .. } => expr_mentions(arg, name) || expr_mentions(pattern, name),
            ExprKind::Between { arg, low, high, .. } => [arg, low, high].into_iter().any(|e| expr_mentions(e, name)),
            ExprKind::InList { arg, list, .. } => expr_mentions(arg, name) || any(list),
            ExprKind::And(es) | ExprKind::Or(es) | ExprKind::Array(es) | ExprKind::Coalesce(es) | ExprKind::Grouping(es) => any(es),
            ExprKind::Row { fields, .. } => any(fields),
            ExprKind::MinMax { args, .. } => any(args),
            ExprKind::Case { operand, branches, otherwise } => {
                operand.iter().chain(otherwise).any(|e| expr_mentions(e, name))
                    || branches.iter().any(|(c, r)| expr_mentions(c, name) || expr_mentions(r, name))
            }
            ExprKind::Func(c) => {
                c.args.iter().any(|a| expr_mentions(&a.expr, name))
                    || c.filter.iter().any(|e| expr_mentions(e, name))
                    || c.order_by.iter().any(|o| expr_mentions(&o.expr, name))
                    || matches!(&c.over, Some(Over::Spec(w)) if window_mentions(w, name))
            }
            ExprKind::Column(_)
            | ExprKind::Param(_)
            | ExprKind::Null
            | ExprKind::Bool(_)
            | ExprKind::Number(_)
            | ExprKind::String(_)
            | ExprKind::BitString(_)
            | ExprKind::SqlValue(..)
            | ExprKind::Star(_)
            | ExprKind::Default => false,
        }
    })
}
