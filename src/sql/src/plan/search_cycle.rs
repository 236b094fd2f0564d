//! SEARCH and CYCLE of a recursive query, as columns that the query keeps itself.
//!
//! ```text
//!   r(c..) AS (left UNION ALL right) SEARCH DEPTH FIRST BY b SET s CYCLE k SET m USING p
//!
//!   =>  r(c.., s, m, p) AS (SELECT l.c.., ARRAY[ROW(l.b)], false, ARRAY[ROW(l.k)] FROM (left) l(c..)
//!               UNION ALL   SELECT r.c.., r.s || ROW(r.b), ROW(r.k) = ANY (r.p), r.p || ROW(r.k) FROM (right', NOT m) r(c.., s, m, p))
//! ```
//!
//! `right'` shows the last round's `s`, `m` and `p` too. Breadth first is `ROW(round, b)` instead of a path.

use crate::ast::*;
use crate::parse::parse_query;
use repr::error::state;
use repr::SqlError;

/// The item without its clauses. `names`: of the left side's columns.
pub fn expand(c: &Cte, q: &Query, names: &[String]) -> Result<(Cte, Query), SqlError> {
    let bad = |m: String| SqlError::new(state::SYNTAX_ERROR, m).at(c.name.pos);
    let refused = |m: String| SqlError::new(state::FEATURE_NOT_SUPPORTED, m).at(c.name.pos);
    let QueryBody::SetOp { op, all, left, right } = &q.body else { return Err(bad("WITH query is not recursive".into())) };
    if !matches!(left.body, QueryBody::Select(_) | QueryBody::Values(_)) {
        return Err(refused("with a SEARCH or CYCLE clause, the left side of the UNION must be a SELECT".into()));
    }
    let mut right = (**right).clone();
    let QueryBody::Select(term) = &mut right.body else {
        return Err(bad("with a SEARCH or CYCLE clause, the right side of the UNION must be a SELECT".into()));
    };
    let shadowed = right.with.as_ref().is_some_and(|w| w.ctes.iter().any(|x| x.name.name == c.name.name));
    let Some(alias) = term.from.iter().find_map(|t| alias_of(t, &c.name.name)).filter(|_| !shadowed) else {
        let m = format!(
            "with a SEARCH or CYCLE clause, the recursive reference to WITH query \"{}\" must be at the top level of its right-hand SELECT",
            c.name.name
        );
        return Err(refused(m));
    };
    let mut added: Vec<(&str, &Ident)> = Vec::new();
    // What the two sides select besides the columns, as text over the aliases l and r.
    let (mut first, mut later) = (Vec::new(), Vec::new());
    let row = |side: &str, by: &[Ident], what: &str| -> Result<String, SqlError> {
        let mut fields = Vec::new();
        for (i, b) in by.iter().enumerate() {
            if by[..i].iter().any(|x| x.name == b.name) {
                return Err(SqlError::new(state::DUPLICATE_COLUMN, format!("{what} column \"{}\" specified more than once", b.name)).at(b.pos));
            }
            if !names.contains(&b.name) {
                return Err(bad(format!("{what} column \"{}\" not in WITH query column list", b.name)));
            }
            fields.push(format!("{side}.{}", quoted(&b.name)));
        }
        Ok(fields.join(", "))
    };
    if let Some(s) = &c.search {
        let (l, r, set) = (row("l", &s.by, "search")?, row("r", &s.by, "search")?, quoted(&s.set.name));
        if s.breadth_first {
            first.push(format!("ROW(0::int8, {l})"));
            later.push(format!("ROW((r.{set}).f1 + 1, {r})"));
        } else {
            first.push(format!("ARRAY[ROW({l})]"));
            later.push(format!("r.{set} || ROW({r})"));
        }
        added.push(("search sequence", &s.set));
    }
    if let Some(y) = &c.cycle {
        let (l, r, path) = (row("l", &y.by, "cycle")?, row("r", &y.by, "cycle")?, quoted(&y.path.name));
        first.extend(["false".to_owned(), format!("ARRAY[ROW({l})]")]);
        later.extend([format!("CASE WHEN ROW({r}) = ANY (r.{path}) THEN true ELSE false END"), format!("r.{path} || ROW({r})")]);
        added.extend([("cycle mark", &y.mark), ("cycle path", &y.path)]);
    }
    // `*` of the recursive relation does not show what the clauses add to it.
    for t in &mut term.targets {
        if let ExprKind::Star(parts) = &*t.expr.kind {
            if parts.last().is_none_or(|p| p.name == alias) {
                t.except.extend(added.iter().map(|a| a.1.clone()));
            }
        }
    }
    if let Some((what, a)) = added.iter().find(|a| names.contains(&a.1.name)) {
        return Err(bad(format!("{what} column name \"{}\" already used in WITH query column list", a.name)));
    }
    // Of the two of CYCLE first.
    let pairs = [(added.len().saturating_sub(2), added.len().saturating_sub(1)), (0, 1), (0, 2)];
    let twice = |&(i, j): &(usize, usize)| i < j && j < added.len() && added[i].1.name == added[j].1.name;
    if let Some((i, j)) = pairs.into_iter().find(twice) {
        return Err(bad(format!("{} column name and {} column name are the same", added[i].0, added[j].0)));
    }
    for (_, a) in &added {
        let shown = ExprKind::Column(vec![Ident { name: alias.clone(), ..(*a).clone() }, (*a).clone()]);
        term.targets.push(Target { expr: Expr::new(shown, a.pos), alias: None, except: Vec::new() });
    }
    if let Some(y) = &c.cycle {
        let mark = Expr::new(ExprKind::Column(vec![Ident { name: alias, ..y.mark.clone() }, y.mark.clone()]), y.mark.pos);
        let going_on = Expr::new(ExprKind::IsDistinct { left: mark, right: y.to.clone(), not: false }, y.mark.pos);
        term.filter = Some(match term.filter.take() {
            Some(f) => Expr::new(ExprKind::And(vec![f, going_on]), y.mark.pos),
            None => going_on,
        });
    }
    let all_names: Vec<String> = names.iter().cloned().chain(added.iter().map(|a| a.1.name.clone())).collect();
    let marks = c.cycle.as_ref().map(|y| (names.len() + usize::from(c.search.is_some()), y));
    let left = around("l", names, &first, (**left).clone(), names, marks)?;
    let right = around("r", &all_names, &later, right, names, marks)?;
    let columns = all_names.into_iter().map(|name| Ident { name, ..c.name.clone() }).collect();
    let item = Cte { columns, search: None, cycle: None, ..c.clone() };
    let body = QueryBody::SetOp { op: *op, all: *all, left: Box::new(left), right: Box::new(right) };
    Ok((item, Query { body, ..q.clone() }))
}

/// `SELECT side.columns, extra FROM (query) AS side(names)`, with the marks' own values.
fn around(side: &str, names: &[String], extra: &[String], query: Query, columns: &[String], marks: Option<(usize, &Cycle)>) -> Result<Query, SqlError> {
    let list = |names: &[String], prefix: &str| names.iter().map(|n| format!("{prefix}{}", quoted(n))).collect::<Vec<_>>().join(", ");
    let (shown, named) = (list(columns, &format!("{side}.")), list(names, ""));
    let mut made = parse_query(&format!("SELECT {shown}, {} FROM (VALUES (1)) AS {side}({named})", extra.join(", ")))?;
    let QueryBody::Select(s) = &mut made.body else { return Err(SqlError::internal("not a SELECT")) };
    if let [TableRef::Subquery { query: inner, .. }] = &mut s.from[..] {
        **inner = query;
    }
    if let Some((at, cycle)) = marks {
        match &mut *s.targets[at].expr.kind {
            ExprKind::Case { branches, otherwise, .. } => {
                branches[0].1 = cycle.to.clone();
                *otherwise = Some(cycle.default.clone());
            }
            plain => *plain = (*cycle.default.kind).clone(),
        }
    }
    Ok(made)
}

/// The name under which a FROM item shows the relation `name`.
fn alias_of(t: &TableRef, name: &str) -> Option<String> {
    match t {
        TableRef::Relation { name: n, alias } if n.parts.len() == 1 && n.parts[0] == name => {
            Some(alias.as_ref().map_or_else(|| name.to_owned(), |a| a.name.name.clone()))
        }
        TableRef::Join { left, right, alias: None, .. } => alias_of(left, name).or_else(|| alias_of(right, name)),
        _ => None,
    }
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}
