//! Writes through views: what PostgreSQL calls automatically updatable.
//!
//! A view that selects from one table, or from one such view, with nothing but WHERE, ORDER BY and expressions, stands for rows of that
//! table. A statement on it is bound over the table's row, at whose end the view's computed columns are:
//!
//! ```text
//!   v2(a, d)  = SELECT a, b + 1 AS d FROM v1 WHERE b > 0        row: a b c │ s    │ d
//!   v1(a, b, s) = SELECT a, b, b + c AS s FROM t WHERE c > 0         table │ of v1 │ of v2      read only where c > 0 AND b > 0
//! ```

use super::dml::target_item;
use super::scope::{Clause, Env, Level, NsCol, NsItem};
use super::*;
use crate::ast::{self, AssignTarget, Assignment, Distinct, ExprKind, Query, QueryBody, TableRef};
use crate::catalog::{CheckOption, Relation, RelationKind};
use crate::hir::{Hir, HirScalar};
use ::expr::catalog::ProcKind;
use std::rc::Rc;

/// What is done to a view, as errors say it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    Insert,
    Update,
    Delete,
}

/// What a statement writes to: a table, named itself or through views.
pub struct WriteTarget {
    /// What the statement names.
    pub rel: Rc<Relation>,
    pub table: Rc<Relation>,
    /// From the table outwards.
    views: Vec<Through>,
    /// Why rows cannot be written after all: told when all else about the statement is right, as if the view were a table.
    refused: Option<SqlError>,
}

#[derive(Clone)]
struct Through {
    rel: Rc<Relation>,
    query: Query,
}

/// A view's columns over the row of its table.
pub struct Seen {
    pub item: NsItem,
    /// For each view, from the table outwards: its conditions, and its computed columns, which follow the row.
    pub steps: Vec<ViewStep>,
    /// For each column, the table's column that it is, or the view and column that make something else of it.
    base: Vec<Result<usize, Computed>>,
}

/// A column that is no column of the table: the view that makes it, and its name there.
#[derive(Clone)]
struct Computed {
    view: String,
    column: String,
    why: &'static str,
}

const NOT_A_COLUMN: &str = "View columns that are not columns of their base relation are not updatable.";
const SYSTEM_COLUMN: &str = "View columns that refer to system columns are not updatable.";
const WHOLE_ROW: &str = "View columns that return whole-row references are not updatable.";
const NOT_SINGLE: &str = "Views that do not select from a single table or view are not automatically updatable.";
const NO_COLUMN: &str = "Views that have no updatable columns are not automatically updatable.";

impl WriteTarget {
    /// The plan of a statement on it. Errors: 55000 for a view that stands for no table's rows.
    pub fn allowed(self, plan: Plan) -> Result<Plan, SqlError> {
        self.refused.map_or(Ok(plan), Err)
    }
}

impl Verb {
    fn words(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Verb::Insert => ("insert into", "inserting into", "INSERT"),
            Verb::Update => ("update", "updating", "UPDATE"),
            Verb::Delete => ("delete from", "deleting from", "DELETE"),
        }
    }
}

/// Why rows cannot be written through a view of this query, as far as its text tells.
fn not_updatable(q: &Query, kind_of: &dyn Fn(&[&str], bool) -> Option<ProcKind>) -> Option<&'static str> {
    let s = match &q.body {
        QueryBody::SetOp { .. } => return Some("Views containing UNION, INTERSECT, or EXCEPT are not automatically updatable."),
        QueryBody::Values(_) => return Some(NOT_SINGLE),
        QueryBody::Select(s) => s,
    };
    let (mut aggregate, mut window, mut set) = (false, false, false);
    for e in s.targets.iter().map(|t| &t.expr).chain(s.having.as_ref()) {
        ast::walk::visit(e, &mut |x| {
            if let ExprKind::Func(f) = &*x.kind {
                let name: Vec<&str> = f.name.iter().map(|i| i.name.as_str()).collect();
                window |= f.over.is_some();
                aggregate |= f.over.is_none() && kind_of(&name, f.within_group) == Some(ProcKind::Aggregate);
                set |= name.last().is_some_and(|n| ::expr::catalog::procs_by_name(n).any(|p| p.returns_set));
            }
            true
        });
    }
    let all = [
        (s.distinct != Distinct::All, "Views containing DISTINCT are not automatically updatable."),
        (!s.group_by.is_empty(), "Views containing GROUP BY are not automatically updatable."),
        (s.having.is_some(), "Views containing HAVING are not automatically updatable."),
        (q.with.is_some(), "Views containing WITH are not automatically updatable."),
        (q.limit.is_some() || q.offset.is_some(), "Views containing LIMIT or OFFSET are not automatically updatable."),
        (aggregate, "Views that return aggregate functions are not automatically updatable."),
        (window || s.qualify.is_some(), "Views that return window functions are not automatically updatable."),
        (set, "Views that return set-returning functions are not automatically updatable."),
        (!matches!(s.from.as_slice(), [TableRef::Relation { .. }]), NOT_SINGLE),
    ];
    all.into_iter().find(|a| a.0).map(|a| a.1)
}

/// What the text of a view's query says of writing through it.
pub struct ViewShape {
    /// The relation that it selects from, and names that an alias gives its first columns.
    pub relation: Vec<String>,
    pub renamed: Vec<String>,
    /// For each column, the relation's column that it is.
    pub columns: Vec<Option<String>>,
}

/// The shape of a stored query whose view can be written through, if the relation below it can.
pub fn view_shape(query: &str) -> Option<ViewShape> {
    let q = crate::parse::parse_query(query).ok()?;
    if not_updatable(&q, &super::scalar::kind_of).is_some() {
        return None;
    }
    let QueryBody::Select(s) = &q.body else { return None };
    let column = |t: &ast::Target| match &*t.expr.kind {
        ExprKind::Column(parts) => parts.last().map(|p| p.name.clone()),
        _ => None,
    };
    let renamed = single_alias(&q)?.map_or_else(Vec::new, |a| a.columns.iter().map(|c| c.name.clone()).collect());
    Some(ViewShape { relation: single_relation(&q)?.parts.clone(), renamed, columns: s.targets.iter().map(column).collect() })
}

impl Binder<'_> {
    /// What `name` lets rows be written to; [`WriteTarget::allowed`] has the last word. Errors: those of [`Binder::writable`].
    pub fn write_target(&self, name: &ast::ObjectName, verb: Verb) -> Result<WriteTarget, SqlError> {
        let rel = self.resolve_relation(name)?;
        if !matches!(rel.kind, RelationKind::View(_)) {
            let table = self.writable(name, verb.words().0)?;
            return Ok(WriteTarget { rel: table.clone(), table, views: Vec::new(), refused: None });
        }
        let refused = |e: SqlError| {
            let table = Rc::new(Relation { kind: RelationKind::Table, ..(*rel).clone() });
            WriteTarget { rel: table.clone(), table, views: Vec::new(), refused: Some(e) }
        };
        let found = match self.through(rel.clone()) {
            Ok(found) => found,
            Err((view, why)) => return Ok(refused(cannot_write(&view, verb, why))),
        };
        let target = self.with_defaults(WriteTarget { rel: rel.clone(), table: found.0, views: found.1, refused: None })?;
        if verb != Verb::Delete && self.seen(&target, &rel.name.name, true, 0, target.table.desc.arity())?.base.iter().all(Result::is_err) {
            return Ok(refused(cannot_write(&rel, verb, NO_COLUMN)));
        }
        Ok(target)
    }

    /// The target with a table that has the defaults of the views: the outermost that gives one counts.
    fn with_defaults(&self, target: WriteTarget) -> Result<WriteTarget, SqlError> {
        let mut table = (*target.table).clone();
        for (k, v) in target.views.iter().enumerate() {
            let said = v.rel.view.as_ref().map_or(&[][..], |d| &d.defaults);
            if said.iter().all(Option::is_none) {
                continue;
            }
            let below = WriteTarget { rel: v.rel.clone(), table: target.table.clone(), views: target.views[..=k].to_vec(), refused: None };
            let seen = self.seen(&below, &v.rel.name.name, true, 0, table.desc.arity())?;
            for (column, text) in said.iter().enumerate().filter_map(|(c, t)| Some((c, t.as_ref()?))) {
                let Ok(base) = seen.base[column] else { continue };
                let x = self.column_default(&v.rel.desc.names[column], &table.desc.types[base], &crate::parse::parse_expr(text)?)?;
                table.defaults.resize(table.desc.arity(), None);
                table.defaults[base] = Some(x);
            }
        }
        Ok(WriteTarget { table: Rc::new(table), ..target })
    }

    /// Errors: 0A000 for a row that is inserted without a value for a column which has a default and is none of the table.
    pub fn check_defaults(&self, target: &WriteTarget, seen: &Seen, written: &[AssignTarget]) -> Result<(), SqlError> {
        let Some(def) = &target.rel.view else { return Ok(()) };
        let named = |c: usize| written.iter().any(|t| t.column.name == target.rel.desc.names[c]);
        let given = def.defaults.iter().enumerate().filter(|(c, d)| d.is_some() && !named(*c));
        for (c, _) in given.filter(|(c, _)| seen.base[*c].is_err()) {
            let column = ast::Ident { name: target.rel.desc.names[c].clone(), pos: 0 };
            self.base_target(target, seen, &AssignTarget { column, path: Vec::new() }, Verb::Insert)?;
        }
        Ok(())
    }

    /// Why a query could not be that of an updatable view; `None` if it could.
    pub fn why_not_updatable(&self, q: &Query) -> Option<&'static str> {
        if let Some(why) = not_updatable(q, &super::scalar::kind_of) {
            return Some(why);
        }
        let Ok(Some(below)) = self.catalog.resolve_relation(&single_relation(q)?.parts) else { return Some(NOT_SINGLE) };
        match below.kind {
            RelationKind::Table => None,
            RelationKind::View(_) => self.through(Rc::new((*below).clone())).err().map(|e| e.1),
            _ => Some(NOT_SINGLE),
        }
    }

    /// The table below a view and the views up to it, or the view that cannot be written through, and why.
    #[allow(clippy::type_complexity)]
    fn through(&self, view: Rc<Relation>) -> Result<(Rc<Relation>, Vec<Through>), (Rc<Relation>, &'static str)> {
        let fail = |why| (view.clone(), why);
        let def = view.view.as_ref().ok_or_else(|| fail(NOT_SINGLE))?;
        let query = crate::parse::parse_query(&def.query).map_err(|_| fail(NOT_SINGLE))?;
        if let Some(why) = not_updatable(&query, &super::scalar::kind_of) {
            return Err(fail(why));
        }
        let name = single_relation(&query).ok_or_else(|| fail(NOT_SINGLE))?;
        let below = self.catalog.resolve_relation(&name.parts).ok().flatten().ok_or_else(|| fail(NOT_SINGLE))?;
        let below = Rc::new((*below).clone());
        let (table, mut views) = match below.kind {
            RelationKind::Table => (below, Vec::new()),
            RelationKind::View(_) => self.through(below)?,
            _ => return Err(fail(NOT_SINGLE)),
        };
        views.push(Through { rel: view, query });
        Ok((table, views))
    }

    /// The target's columns, under `name`, over a row that has the table's columns from `at` on; what views compute stands at `next` and after it.
    pub fn seen(&self, target: &WriteTarget, name: &str, alias: bool, at: usize, next: usize) -> Result<Seen, SqlError> {
        let mut item = target_item(&target.table.name.name, &target.table, false);
        item.shift(at);
        let mut base: Vec<Result<usize, Computed>> = (0..target.table.desc.arity()).map(Ok).collect();
        let mut steps = Vec::new();
        let mut next = next;
        for v in &target.views {
            let (Some(written), QueryBody::Select(select)) = (single_alias(&v.query), &v.query.body) else {
                return Err(SqlError::internal("a view that was found updatable is not"));
            };
            if let Some(a) = written {
                item.name = a.name.name.clone();
                item.schema = None;
                for (c, n) in item.cols.iter_mut().zip(&a.columns) {
                    c.name = n.name.clone();
                }
            }
            let level = Rc::new(Level::new(vec![item.clone()], Clause::Where));
            let env = Env::default().push(level.clone());
            let filter = select.filter.as_ref().map(|f| self.condition(f, &env, "WHERE")).transpose()?;
            level.calls.clause.set(Clause::Select);
            let mut made = Vec::new();
            for t in &select.targets {
                self.target(t, &env, &mut made)?;
            }
            let (mut cols, mut columns, mut computed) = (Vec::new(), Vec::new(), Vec::new());
            for (t, name) in made.into_iter().zip(&v.rel.desc.names) {
                let why = reason(&select.targets, &t);
                let e = self.text_if_unknown(t.expr, t.pos)?;
                let ty = e.typ();
                let known = match &e {
                    HirScalar::Column(c, _) if c.level == 0 => item.cols.iter().position(|x| x.pos == c.column).map(|i| (c.column, base[i].clone())),
                    _ => None,
                };
                let (pos, column) = known.unwrap_or_else(|| {
                    computed.push(e);
                    (next + computed.len() - 1, Err(Computed { view: v.rel.name.name.clone(), column: name.clone(), why }))
                });
                cols.push(NsCol { name: name.clone(), pos, ty, whole: None });
                columns.push(column);
            }
            next += computed.len();
            steps.push(ViewStep { view: v.rel.name.name.clone(), filter, computed, checked: false });
            item = NsItem { cols, ..target_item(&v.rel.name.name, &v.rel, false) };
            base = columns;
        }
        // A check of a view counts for those below it, unless it is LOCAL.
        let mut cascaded = false;
        for (v, step) in target.views.iter().zip(&mut steps).rev() {
            let check = v.rel.view.as_ref().and_then(|d| d.check);
            step.checked = cascaded || check.is_some();
            cascaded |= check == Some(CheckOption::Cascaded);
        }
        if alias || name != item.name {
            (item.hidden, item.schema) = ((name != target.rel.name.name).then(|| target.rel.name.name.clone()), None);
            item.name = name.to_owned();
        }
        Ok(Seen { item, steps, base })
    }

    /// The columns of the table that the targets of an assignment mean. Errors: 42703, 0A000 for what the view computes.
    fn base_target(&self, target: &WriteTarget, seen: &Seen, t: &AssignTarget, verb: Verb) -> Result<AssignTarget, SqlError> {
        if target.views.is_empty() {
            return Ok(t.clone());
        }
        let i = self.column_of(&target.rel, &t.column)?;
        match &seen.base[i] {
            Ok(c) => Ok(AssignTarget { column: ast::Ident { name: target.table.desc.names[*c].clone(), pos: t.column.pos }, path: t.path.clone() }),
            Err(c) => {
                let m = format!("cannot {} column \"{}\" of view \"{}\"", verb.words().0, c.column, c.view);
                Err(SqlError::new(state::FEATURE_NOT_SUPPORTED, m).with_detail(c.why))
            }
        }
    }

    pub fn base_assignments(&self, target: &WriteTarget, seen: &Seen, set: &[Assignment], verb: Verb) -> Result<Vec<Assignment>, SqlError> {
        set.iter()
            .map(|a| {
                Ok(Assignment { columns: a.columns.iter().map(|t| self.base_target(target, seen, t, verb)).collect::<Result<_, SqlError>>()?, ..a.clone() })
            })
            .collect()
    }

    /// What an INSERT writes to, in the order of its values: the columns named, else all of the target's. `width`: how many values there are.
    pub fn base_columns(&self, target: &WriteTarget, seen: &Seen, written: &[AssignTarget], width: Option<usize>) -> Result<Vec<AssignTarget>, SqlError> {
        if target.views.is_empty() {
            return Ok(written.to_vec());
        }
        let named = self.insert_targets(&target.rel, written)?;
        let n = if written.is_empty() { width.unwrap_or(named.len()).min(named.len()) } else { named.len() };
        let base = named[..n].iter().map(|t| self.base_target(target, seen, t, Verb::Insert)).collect::<Result<Vec<_>, _>>()?;
        // Columns of the view may be one of the table.
        let twice = |(k, t): &(usize, &AssignTarget)| t.path.is_empty() && base[..*k].iter().any(|o| o.column.name == t.column.name);
        match base.iter().enumerate().find(twice) {
            Some((_, t)) => Err(SqlError::new(state::SYNTAX_ERROR, format!("multiple assignments to same column \"{}\"", t.column.name))),
            None => Ok(base),
        }
    }
}

impl WriteTarget {
    /// The table's rows that the target shows, each with what views compute.
    pub fn rows(&self, table: Hir, seen: &Seen) -> Hir {
        seen.steps.iter().fold(table, |hir, step| {
            let hir = match &step.filter {
                Some(f) => Hir::Filter { input: Box::new(hir), predicates: super::query::conjuncts(f.clone()) },
                None => hir,
            };
            match step.computed.is_empty() {
                true => hir,
                false => Hir::Map { input: Box::new(hir), scalars: step.computed.clone() },
            }
        })
    }
}

impl Seen {
    /// What views compute, step by step.
    pub fn computed(&self) -> Vec<Vec<HirScalar>> {
        self.steps.iter().map(|s| s.computed.clone()).filter(|c| !c.is_empty()).collect()
    }
}

/// The one relation that a query selects from.
fn single_relation(q: &Query) -> Option<&ast::ObjectName> {
    match &q.body {
        QueryBody::Select(s) => match s.from.as_slice() {
            [TableRef::Relation { name, .. }] => Some(name),
            _ => None,
        },
        _ => None,
    }
}

fn single_alias(q: &Query) -> Option<Option<&ast::Alias>> {
    match &q.body {
        QueryBody::Select(s) => match s.from.as_slice() {
            [TableRef::Relation { alias, .. }] => Some(alias.as_ref()),
            _ => None,
        },
        _ => None,
    }
}

/// Why a column that is computed cannot be written.
fn reason(targets: &[ast::Target], made: &super::query::TargetItem) -> &'static str {
    let written = targets.iter().find(|t| t.expr.pos == made.pos).map(|t| &*t.expr.kind);
    match (&made.expr.typ().ty, written) {
        (_, Some(ExprKind::Column(parts))) if parts.last().is_some_and(|p| p.name == "tableoid") => SYSTEM_COLUMN,
        (SqlType::Record(_), Some(ExprKind::Column(_))) => WHOLE_ROW,
        _ => NOT_A_COLUMN,
    }
}

fn cannot_write(view: &Relation, verb: Verb, why: &str) -> SqlError {
    let (to, doing, rule) = verb.words();
    let e = SqlError::new(state::OBJECT_NOT_IN_PREREQUISITE_STATE, format!("cannot {to} view \"{}\"", view.name.name)).with_detail(why);
    e.with_hint(format!("To enable {doing} the view, provide an INSTEAD OF {rule} trigger or an unconditional ON {rule} DO INSTEAD rule."))
}
