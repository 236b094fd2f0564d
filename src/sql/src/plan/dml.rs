//! INSERT, UPDATE, DELETE, COPY.

use super::from::{true_, Part};
use super::query::{conjuncts, project, Bound};
use super::scope::{Clause, Env, Level, NsCol, NsItem};
use super::statement::{option_bool, option_text};
use super::through::{Seen, Verb, WriteTarget};
use super::*;
use crate::ast;
use crate::catalog::{Relation, RelationKind};
use crate::hir::{ColumnRef, Hir, HirScalar, JoinKind};
use ::expr::ColumnOrder;
use repr::encoding::Encoding;
use repr::RelDesc;
use std::rc::Rc;

impl Binder<'_> {
    /// A table that rows may be written to.
    pub fn writable(&self, name: &ast::ObjectName, verb: &str) -> Result<Rc<Relation>, SqlError> {
        // COPY and TRUNCATE are no queries.
        let rel = if verb.starts_with("copy") || verb == "truncate" { self.named_relation(name)? } else { self.resolve_relation(name)? };
        match rel.kind {
            RelationKind::Table => Ok(rel),
            RelationKind::View(_) if verb == "copy to" => {
                let e = SqlError::new(state::WRONG_OBJECT_TYPE, format!("cannot copy to view \"{}\"", rel.name.name));
                Err(e.with_hint("To enable copying to a view, provide an INSTEAD OF INSERT trigger."))
            }
            RelationKind::View(_) => Err(SqlError::new(state::WRONG_OBJECT_TYPE, format!("\"{}\" is not a table", rel.name.name)).at(name.pos)),
            RelationKind::Builtin => Err(SqlError::new(state::INSUFFICIENT_PRIVILEGE, format!("permission denied for table {}", rel.name.name)).at(name.pos)),
            _ => Err(SqlError::new(state::WRONG_OBJECT_TYPE, format!("cannot {verb} {} \"{}\"", rel.kind.word(), rel.name.name)).at(name.pos)),
        }
    }

    /// A row of a relation in scope under `name`, at level 0.
    pub fn row_env(&self, name: &str, desc: &RelDesc, clause: Clause) -> Env {
        let level = Level::new(vec![item(name, desc, 0)], clause);
        Env::default().push(Rc::new(level))
    }

    pub fn insert(&self, i: &ast::Insert, env: &Env) -> Result<Plan, SqlError> {
        let target = self.write_target(&i.table, Verb::Insert)?;
        let rel = target.table.clone();
        let name = i.alias.as_ref().map_or(&target.rel.name.name, |a| &a.name);
        let seen = self.seen(&target, name, i.alias.is_some(), 0, rel.desc.arity())?;
        let width = match &i.source {
            ast::InsertSource::Query(q) => match &q.body {
                ast::QueryBody::Values(rows) => rows.first().map(Vec::len),
                _ => None,
            },
            ast::InsertSource::DefaultValues => Some(0),
        };
        self.check_defaults(&target, &seen, &i.columns)?;
        let targets = self.insert_targets(&rel, &self.base_columns(&target, &seen, &i.columns, width)?)?;
        let bound = match &i.source {
            ast::InsertSource::DefaultValues => {
                let row = (0..rel.desc.arity()).map(|c| self.default_of(&rel, c)).collect();
                Bound::new(setop::rows_to_hir(vec![row]), rel.desc.names.clone())
            }
            ast::InsertSource::Query(q) => self.insert_rows(q, &rel, &targets, i, env)?,
        };
        let source = self.finish_plan(bound)?;
        let late = self.late_defaults(&rel, i, &targets);
        let on_conflict = i.on_conflict.as_ref().map(|c| self.on_conflict(c, i, &target, &seen, env)).transpose()?;
        let after = env.push(Rc::new(Level::new(vec![seen.item.clone()], Clause::Returning)));
        let returning = self.returning(&i.returning, &after, seen.computed())?;
        let source = SelectPlan { depends_on: self.depends_on(), ..source };
        target.allowed(Plan::Insert(Box::new(InsertPlan { table: rel.id, source, late, on_conflict, returning, checks: checks_through(&rel, seen) })))
    }

    /// What the values of an INSERT go to: the columns or parts written, else all columns.
    pub fn insert_targets(&self, rel: &Relation, written: &[ast::AssignTarget]) -> Result<Vec<ast::AssignTarget>, SqlError> {
        if written.is_empty() {
            let whole = |name: &String| ast::AssignTarget { column: ast::Ident { name: name.clone(), pos: 0 }, path: Vec::new() };
            return Ok(rel.desc.names.iter().map(whole).collect());
        }
        for (k, t) in written.iter().enumerate() {
            self.column_of(rel, &t.column)?;
            // A column goes with nothing else, parts of it go with each other.
            if written[..k].iter().any(|o| o.column.name == t.column.name && (o.path.is_empty() || t.path.is_empty())) {
                let message = format!("column \"{}\" specified more than once", t.column.name);
                return Err(SqlError::new(state::DUPLICATE_COLUMN, message).at(t.column.pos));
            }
        }
        Ok(written.to_vec())
    }

    /// The columns that COPY names, all if it names none.
    fn named_columns(&self, rel: &Relation, columns: &[ast::Ident]) -> Result<Vec<usize>, SqlError> {
        if columns.is_empty() {
            return Ok((0..rel.desc.arity()).filter(|c| !rel.is_generated(*c)).collect());
        }
        let mut out: Vec<usize> = Vec::with_capacity(columns.len());
        for c in columns {
            let i = self.column_of(rel, c)?;
            if rel.is_generated(i) {
                let e = SqlError::new(state::INVALID_COLUMN_REFERENCE, format!("column \"{}\" is a generated column", c.name)).at(c.pos);
                return Err(e.with_detail("Generated columns cannot be used in COPY."));
            }
            if out.contains(&i) {
                return Err(SqlError::new(state::DUPLICATE_COLUMN, format!("column \"{}\" specified more than once", c.name)).at(c.pos));
            }
            out.push(i);
        }
        Ok(out)
    }

    pub fn column_of(&self, rel: &Relation, c: &ast::Ident) -> Result<usize, SqlError> {
        rel.desc
            .names
            .iter()
            .position(|n| *n == c.name)
            .ok_or_else(|| SqlError::new(state::UNDEFINED_COLUMN, format!("column \"{}\" of relation \"{}\" does not exist", c.name, rel.name.name)).at(c.pos))
    }

    /// Errors: 428C9 for a value given to a column that has its own, unless OVERRIDING says so.
    pub fn check_insertable(&self, rel: &Relation, column: &ast::Ident, overriding: Option<bool>, pos: Pos) -> Result<(), SqlError> {
        let c = self.column_of(rel, column)?;
        let error = || SqlError::new(repr::SqlState::new("428C9"), format!("cannot insert a non-DEFAULT value into column \"{}\"", column.name)).at(pos);
        if rel.is_generated(c) {
            return Err(error().with_detail(format!("Column \"{}\" is a generated column.", column.name)));
        }
        if rel.identity(c) == Some(true) && overriding.is_none() {
            let e = error().with_detail(format!("Column \"{}\" is an identity column defined as GENERATED ALWAYS.", column.name));
            return Err(e.with_hint("Use OVERRIDING SYSTEM VALUE to override."));
        }
        Ok(())
    }

    /// OVERRIDING USER VALUE: what is given for an identity column does not count.
    pub fn ignores(&self, rel: &Relation, column: &ast::Ident, overriding: Option<bool>) -> bool {
        overriding == Some(false) && rel.desc.names.iter().position(|n| *n == column.name).is_some_and(|c| rel.identity(c).is_some())
    }

    /// Defaults that differ from row to row, of an INSERT of a query: they are made in the order of its rows.
    fn late_defaults(&self, rel: &Relation, i: &ast::Insert, targets: &[ast::AssignTarget]) -> Vec<(usize, HirScalar)> {
        let given = |c: usize| targets.iter().any(|t| t.column.name == rel.desc.names[c]);
        let one_row = match &i.source {
            ast::InsertSource::DefaultValues => true,
            ast::InsertSource::Query(q) => is_plain_values(q),
        };
        if one_row {
            return Vec::new();
        }
        let volatile = |c: &usize| rel.defaults.get(*c).and_then(Option::as_ref).is_some_and(is_volatile);
        let own = |c: &usize| {
            let name = ast::Ident { name: rel.desc.names[*c].clone(), pos: 0 };
            !given(*c) || self.ignores(rel, &name, i.overriding)
        };
        (0..rel.desc.arity()).filter(volatile).filter(own).map(|c| (c, self.default_of(rel, c))).collect()
    }

    /// A column's default, or NULL.
    pub fn default_of(&self, rel: &Relation, column: usize) -> HirScalar {
        match rel.defaults.get(column).cloned().flatten() {
            Some(e) => self.folded(e),
            None => HirScalar::Literal(Value::Null, rel.desc.types[column].clone().with_nullable(true)),
        }
    }

    /// Casts of literals are done now, so that many rows of values stay values; what fails is left to fail when it runs.
    pub fn folded(&self, e: HirScalar) -> HirScalar {
        match e {
            HirScalar::Literal(..) => e,
            other if immutable(&other) => self.fold(other.clone()).unwrap_or(other),
            other => other,
        }
    }

    fn insert_rows(&self, q: &ast::Query, rel: &Relation, targets: &[ast::AssignTarget], i: &ast::Insert, env: &Env) -> Result<Bound, SqlError> {
        if let (ast::QueryBody::Values(rows), true) = (&q.body, is_plain_values(q)) {
            match (self.insert_values(rows, rel, targets, i, env), &rows[..]) {
                // One row is a select list, in which functions may give several rows.
                (Err(e), [row]) if e.message == "set-returning functions are not allowed in VALUES" => {
                    let given = row.iter().zip(targets).filter(|(e, _)| *e.kind != ast::ExprKind::Default);
                    let (row, targets): (Vec<ast::Expr>, Vec<ast::AssignTarget>) = given.map(|(e, t)| (e.clone(), t.clone())).unzip();
                    let select = ast::Query { body: ast::QueryBody::Select(Box::new(ast::Select::of_row(row, q.pos))), ..q.clone() };
                    return self.insert_rows(&select, rel, &targets, i, env);
                }
                (made, _) => return made,
            }
        }
        let b = self.query(q, env, false)?;
        self.check_count(b.visible, targets.len(), &i.columns, q.pos)?;
        let used = &targets[..b.visible];
        for t in used {
            self.check_insertable(rel, &t.column, i.overriding, q.pos)?;
        }
        let types = used.iter().map(|t| Ok((t.column.name.clone(), self.target_type(rel, t)?.1))).collect::<Result<Vec<_>, SqlError>>()?;
        let (order, natural) = (b.order.clone(), b.natural);
        let (hir, assigned) = self.assigned(b, &types, q.pos)?;
        // The table's order, defaults for the rest.
        let mut scalars = Vec::new();
        let n = hir.arity();
        let mut outputs = Vec::with_capacity(rel.desc.arity());
        for (c, name) in rel.desc.names.iter().enumerate() {
            let column = ast::Ident { name: name.clone(), pos: 0 };
            let counts = !self.ignores(rel, &column, i.overriding);
            let mut parts = used.iter().enumerate().filter(|(_, t)| t.column.name == *name && counts).peekable();
            if let Some((p, t)) = parts.peek() {
                if t.path.is_empty() {
                    outputs.push(assigned[*p]);
                    continue;
                }
            }
            let null = HirScalar::Literal(Value::Null, rel.desc.types[c].clone().with_nullable(true));
            // What differs from row to row comes later ([`Binder::late_defaults`]).
            let late = rel.defaults.get(c).and_then(Option::as_ref).is_some_and(is_volatile);
            let mut whole = if parts.peek().is_some() || late { null } else { self.default_of(rel, c) };
            for (p, t) in parts {
                let value = HirScalar::Column(ColumnRef { level: 0, column: assigned[p] }, types[p].1.clone());
                whole = self.with_part(whole, &rel.desc.types[c], t, &t.path, value, env)?;
            }
            scalars.push(whole);
            outputs.push(n + scalars.len() - 1);
        }
        let hir = if scalars.is_empty() { hir } else { Hir::Map { input: Box::new(hir), scalars } };
        // Rows go in as the query orders them: RETURNING and what sequences give follow.
        let arity = outputs.len();
        outputs.extend(order.iter().map(|o| o.column));
        let order = order.iter().enumerate().map(|(i, o)| ColumnOrder { column: arity + i, ..*o }).collect();
        Ok(Bound { order, natural, ..Bound::new(project(hir, outputs), rel.desc.names.clone()) })
    }

    pub fn check_count(&self, have: usize, want: usize, columns: &[ast::AssignTarget], pos: Pos) -> Result<(), SqlError> {
        if have > want {
            return Err(SqlError::new(state::SYNTAX_ERROR, "INSERT has more expressions than target columns").at(pos));
        }
        if have < want && !columns.is_empty() {
            let pos = columns.get(have).map_or(pos, |c| c.column.pos);
            return Err(SqlError::new(state::SYNTAX_ERROR, "INSERT has more target columns than expressions").at(pos));
        }
        Ok(())
    }

    /// VALUES of an INSERT: each value takes its column's type by itself.
    fn insert_values(&self, rows: &[Vec<ast::Expr>], rel: &Relation, targets: &[ast::AssignTarget], i: &ast::Insert, env: &Env) -> Result<Bound, SqlError> {
        let level = Rc::new(Level::new(Vec::new(), Clause::Values));
        let here = env.push(level);
        let width = rows.first().map_or(0, Vec::len);
        let mut out = Vec::with_capacity(rows.len());
        for row in rows {
            if row.len() != width {
                let pos = row.first().map_or(0, |e| e.pos);
                return Err(SqlError::new(state::SYNTAX_ERROR, "VALUES lists must all be the same length").at(pos));
            }
            let pos = row.get(targets.len()).or(row.first()).map_or(0, |e| e.pos);
            self.check_count(row.len(), targets.len(), &i.columns, pos)?;
            let cells = self.insert_cells(row, rel, targets, i.overriding, &here)?;
            out.push(cells.into_iter().enumerate().map(|(c, x)| x.unwrap_or_else(|| self.default_of(rel, c))).collect());
        }
        Ok(Bound::new(setop::rows_to_hir(out), rel.desc.names.clone()))
    }

    fn on_conflict(&self, c: &ast::OnConflict, i: &ast::Insert, target: &WriteTarget, seen: &Seen, env: &Env) -> Result<ConflictPlan, SqlError> {
        let rel = &*target.table;
        let mut unmatched = None;
        let arbiter = if let Some(name) = &c.constraint {
            let u = rel.unique.iter().find(|u| u.0 == name.name).ok_or_else(|| {
                SqlError::new(state::UNDEFINED_OBJECT, format!("constraint \"{}\" for table \"{}\" does not exist", name.name, rel.name.name)).at(name.pos)
            })?;
            Arbiter::Columns(u.1.clone())
        } else if c.target.is_empty() {
            if matches!(c.action, ast::ConflictAction::Update { .. }) {
                return Err(SqlError::new(state::SYNTAX_ERROR, "ON CONFLICT DO UPDATE requires inference specification or constraint name")
                    .with_hint("For example, ON CONFLICT (column_name).")
                    .at(c.pos));
            }
            Arbiter::Any
        } else {
            match self.arbiter(c, rel, seen) {
                // PostgreSQL looks for the index once the whole statement has been read.
                Err(e) if e.code == state::INVALID_COLUMN_REFERENCE && e.position.is_none() => {
                    unmatched = Some(e);
                    Arbiter::Any
                }
                a => a?,
            }
        };
        let action = match &c.action {
            ast::ConflictAction::Nothing => ConflictPlanAction::Nothing,
            ast::ConflictAction::Update { set, filter } => {
                let n = rel.desc.arity();
                let name = i.alias.as_ref().map_or(&target.rel.name.name, |a| &a.name);
                let old = self.seen(target, name, i.alias.is_some(), 0, 2 * n)?;
                let mut computed = old.computed();
                let given = self.seen(target, "excluded", true, n, 2 * n + computed.iter().map(Vec::len).sum::<usize>())?;
                computed.extend(given.computed());
                // A name that both rows have is ambiguous without its row, as always.
                let excluded = NsItem { hidden: None, rel_oid: 0, ..given.item };
                let level = Rc::new(Level::new(vec![old.item.clone(), excluded], Clause::UpdateSet));
                let env = env.push(level.clone());
                let set = self.base_assignments(target, &old, set, Verb::Insert)?;
                let row = self.assignments(&set, rel, &env)?;
                level.calls.clause.set(Clause::Where);
                let filter = filter.as_ref().map(|f| self.condition(f, &env, "WHERE")).transpose()?;
                ConflictPlanAction::Update { computed, row, filter }
            }
        };
        match unmatched {
            Some(e) => Err(e),
            None => Ok(ConflictPlan { arbiter, action }),
        }
    }

    /// The unique key that ON CONFLICT (…) [WHERE …] means. Errors: 42P10 if there is none.
    fn arbiter(&self, c: &ast::OnConflict, rel: &Relation, seen: &Seen) -> Result<Arbiter, SqlError> {
        let env = Env::default().push(Rc::new(Level::new(vec![seen.item.clone()], Clause::Index)));
        let mut keys = Vec::with_capacity(c.target.len());
        for e in &c.target {
            let key = match self.expr(e, &env) {
                Err(e) if e.code == state::UNDEFINED_COLUMN && e.message.ends_with("does not exist") => {
                    return Err(match &*c.target[keys.len()].kind {
                        ast::ExprKind::Column(parts) if parts.len() == 1 => {
                            SqlError::new(state::UNDEFINED_COLUMN, format!("column \"{}\" does not exist", parts[0].name)).at(parts[0].pos)
                        }
                        _ => e,
                    })
                }
                x => self.text_if_unknown(x?, e.pos)?,
            };
            if !keys.contains(&key) {
                keys.push(key);
            }
        }
        let filter = c.filter.as_ref().map(|f| self.condition(f, &env, "WHERE")).transpose()?;
        let column = |k: &HirScalar| match k {
            HirScalar::Column(c, _) if c.level == 0 => Some(c.column),
            _ => None,
        };
        if let Some(mut columns) = keys.iter().map(column).collect::<Option<Vec<usize>>>() {
            columns.sort_unstable();
            let same = |u: &&(String, Vec<usize>)| {
                let mut k = u.1.clone();
                k.sort_unstable();
                k == columns
            };
            if let Some(u) = rel.unique.iter().find(same) {
                return Ok(Arbiter::Columns(u.1.clone()));
            }
        }
        // An index of some rows counts if the statement speaks of such rows only.
        let fits = |k: &&crate::catalog::ComputedKey| {
            let held = k.filter.iter().all(|f| super::implied::all_implied(self, filter.clone(), std::slice::from_ref(f)));
            held && k.keys.len() == keys.len() && k.keys.iter().all(|x| keys.contains(x))
        };
        match rel.computed_keys.iter().find(fits) {
            Some(k) => Ok(Arbiter::Computed(k.name.clone())),
            None => {
                let m = "there is no unique or exclusion constraint matching the ON CONFLICT specification";
                Err(SqlError::new(state::INVALID_COLUMN_REFERENCE, m))
            }
        }
    }

    /// The new row of an UPDATE, column by column, over `env`'s row whose first columns are the old one.
    pub fn assignments(&self, set: &[ast::Assignment], rel: &Relation, env: &Env) -> Result<Vec<HirScalar>, SqlError> {
        let old = |i: usize| HirScalar::Column(ColumnRef { level: 0, column: i }, rel.desc.types[i].clone());
        // A column assigned so far, and whether as a whole.
        let mut row: Vec<Option<(HirScalar, bool)>> = vec![None; rel.desc.arity()];
        let whole = |row: &[Option<(HirScalar, bool)>], t: &ast::AssignTarget| -> Result<HirScalar, SqlError> {
            let i = self.column_of(rel, &t.column)?;
            match &row[i] {
                Some((_, all)) if *all || t.path.is_empty() => {
                    Err(SqlError::new(state::SYNTAX_ERROR, format!("multiple assignments to same column \"{}\"", t.column.name)).at(t.column.pos))
                }
                Some((e, _)) => Ok(e.clone()),
                None => Ok(old(i)),
            }
        };
        let updatable = |t: &ast::AssignTarget| {
            let c = self.column_of(rel, &t.column)?;
            let e = SqlError::new(repr::SqlState::new("428C9"), format!("column \"{}\" can only be updated to DEFAULT", t.column.name)).at(t.column.pos);
            if rel.is_generated(c) {
                return Err(e.with_detail(format!("Column \"{}\" is a generated column.", t.column.name)));
            }
            if rel.identity(c) == Some(true) {
                return Err(e.with_detail(format!("Column \"{}\" is an identity column defined as GENERATED ALWAYS.", t.column.name)));
            }
            Ok(())
        };
        let mut values: Vec<(&ast::AssignTarget, Option<HirScalar>, Pos)> = Vec::with_capacity(set.len());
        for a in set {
            let same_count = |n: usize| match n == a.columns.len() {
                true => Ok(()),
                false => Err(SqlError::new(state::SYNTAX_ERROR, "number of columns does not match number of values").at(a.value.pos)),
            };
            match (a.columns.as_slice(), &*a.value.kind) {
                ([c], _) if !a.multi => values.push((c, self.assigned_value(&a.value, env)?, a.value.pos)),
                // A star gives as many values as its relation has columns.
                (cols, ast::ExprKind::Row { fields, .. }) if fields.iter().any(|f| matches!(&*f.kind, ast::ExprKind::Star(_))) => {
                    let mut given = Vec::new();
                    for f in fields {
                        self.target(&ast::Target { expr: f.clone(), alias: None, except: Vec::new() }, env, &mut given)?;
                    }
                    same_count(given.len())?;
                    values.extend(cols.iter().zip(given).map(|(c, v)| (c, Some(v.expr), v.pos)));
                }
                (cols, ast::ExprKind::Row { fields, .. }) => {
                    same_count(fields.len())?;
                    for (c, f) in cols.iter().zip(fields) {
                        values.push((c, self.assigned_value(f, env)?, f.pos));
                    }
                }
                (cols, ast::ExprKind::Subquery(q)) => {
                    let b = self.query(q, env, true)?;
                    same_count(b.visible)?;
                    let r = self.subquery_row(b)?;
                    for (k, c) in cols.iter().enumerate() {
                        values.push((c, Some(self.field_select(r.clone(), k)?), a.value.pos));
                    }
                }
                ([c], _) => values.push((c, self.assigned_value(&a.value, env)?, a.value.pos)),
                _ => {
                    let message = "source for a multiple-column UPDATE item must be a sub-SELECT or ROW() expression";
                    return Err(SqlError::new(state::FEATURE_NOT_SUPPORTED, message).at(a.value.pos));
                }
            }
        }
        for (t, value, pos) in values {
            let (i, x) = match value {
                Some(value) => {
                    updatable(t)?;
                    self.assign_to(whole(&row, t)?, rel, t, value, pos, env)?
                }
                None => {
                    whole(&row, t)?;
                    self.assign_default(rel, t, pos)?
                }
            };
            row[i] = Some((x, t.path.is_empty()));
        }
        Ok(row.into_iter().enumerate().map(|(i, e)| e.map_or_else(|| old(i), |e| e.0)).collect())
    }

    /// What is wrong (42P10) with an item of FROM that could be bound if it saw the target, as LATERAL items and functions do not.
    fn reads_target(&self, from: &[ast::TableRef], target: &NsItem, env: &Env, position: Option<Pos>) -> Option<SqlError> {
        let seeing = env.push_lateral(Rc::new(Level::new(vec![target.clone()], Clause::FromFunction)));
        let reads = |t: &&ast::TableRef| super::from::may_be_lateral(t) && self.table_ref(t, env).is_err() && self.table_ref(t, &seeing).is_ok();
        from.iter().find(reads).map(|_| {
            let name = &target.name;
            let e = SqlError::new(state::INVALID_COLUMN_REFERENCE, format!("invalid reference to FROM-clause entry for table \"{name}\""));
            let e = e.with_hint(format!("There is an entry for table \"{name}\", but it cannot be referenced from this part of the query."));
            SqlError { position, ..e }
        })
    }

    /// The target's rows joined with FROM or USING, filtered; names in scope.
    fn target_rows(
        &self,
        target: &WriteTarget,
        seen: &Seen,
        from: &[ast::TableRef],
        filter: Option<&ast::Expr>,
        env: &Env,
    ) -> Result<(Hir, Rc<Level>, Env), SqlError> {
        let name = &seen.item.name;
        let mut hir = target.rows(self.relation_hir(&target.table, 0)?, seen);
        let n = hir.arity();
        let mut items = vec![seen.item.clone()];
        if !from.is_empty() {
            let Part { hir: right, items: others, .. } = self
                .from_list(from, env)
                .map_err(|e| self.reads_target(from, &seen.item, env, e.position).unwrap_or_else(|| super::from::beside(e, &items)))?;
            for mut o in others {
                if o.rel_visible && o.name == *name {
                    return Err(SqlError::new(state::DUPLICATE_ALIAS, format!("table name \"{name}\" specified more than once")));
                }
                o.shift(n);
                items.push(o);
            }
            hir = Hir::Join { left: Box::new(hir), right: Box::new(right), on: true_(), kind: JoinKind::Inner, lateral: false };
        }
        let level = Rc::new(Level::new(items, Clause::Where));
        let here = env.push(level.clone());
        if let Some(f) = filter {
            let p = self.condition(f, &here, "WHERE")?;
            hir = Hir::Filter { input: Box::new(hir), predicates: conjuncts(p) };
        }
        Ok((hir, level, here))
    }

    pub fn update(&self, u: &ast::Update, env: &Env) -> Result<Plan, SqlError> {
        let target = self.write_target(&u.table, Verb::Update)?;
        let rel = target.table.clone();
        let name = u.alias.as_ref().map_or(&target.rel.name.name, |a| &a.name);
        let n = rel.desc.arity();
        let seen = self.seen(&target, name, u.alias.is_some(), 0, n)?;
        let (hir, level, here) = self.target_rows(&target, &seen, &u.from, u.filter.as_ref(), env)?;
        let width = hir.arity();
        level.calls.clause.set(Clause::UpdateSet);
        let set = self.base_assignments(&target, &seen, &u.set, Verb::Update).map_err(|e| self.values_first(&u.set, &here, e))?;
        let row = self.assignments(&set, &rel, &here)?;
        // old ++ new ++ others.
        let hir = Hir::Map { input: Box::new(hir), scalars: row };
        let rows = project(hir, (0..n).chain(width..width + n).chain(n..width).collect());
        // RETURNING sees the new row where the old one was.
        let new = self.seen(&target, name, u.alias.is_some(), n, width + n)?;
        let mut items = level.items.clone();
        items.iter_mut().for_each(|i| i.shift(n));
        items[0] = new.item.clone();
        let after = env.push(Rc::new(Level::new(items, Clause::Returning)));
        let returning = self.returning(&u.returning, &after, new.computed())?;
        let checks = checks_through(&rel, seen);
        target.allowed(Plan::Update(Box::new(UpdatePlan { table: rel.id, arity: n, rows, returning, checks, depends_on: self.depends_on() })))
    }

    /// What is wrong with SET: PostgreSQL reads all values before it looks at the columns.
    fn values_first(&self, set: &[ast::Assignment], env: &Env, wrong: SqlError) -> SqlError {
        if wrong.code != state::UNDEFINED_COLUMN {
            return wrong;
        }
        let read = |a: &ast::Assignment| match (&*a.value.kind, a.multi) {
            (ast::ExprKind::Default, _) | (_, true) => None,
            _ => self.expr(&a.value, env).err(),
        };
        set.iter().find_map(read).unwrap_or(wrong)
    }

    pub fn delete(&self, d: &ast::Delete, env: &Env) -> Result<Plan, SqlError> {
        let target = self.write_target(&d.table, Verb::Delete)?;
        let rel = target.table.clone();
        let name = d.alias.as_ref().map_or(&target.rel.name.name, |a| &a.name);
        let seen = self.seen(&target, name, d.alias.is_some(), 0, rel.desc.arity())?;
        let (rows, level, here) = self.target_rows(&target, &seen, &d.using, d.filter.as_ref(), env)?;
        level.calls.clause.set(Clause::Returning);
        let returning = self.returning(&d.returning, &here, Vec::new())?;
        target.allowed(Plan::Delete(Box::new(DeletePlan { table: rel.id, arity: rel.desc.arity(), rows, returning, depends_on: self.depends_on() })))
    }

    fn returning(&self, targets: &[ast::Target], env: &Env, computed: Vec<Vec<HirScalar>>) -> Result<Option<ReturningPlan>, SqlError> {
        if targets.is_empty() {
            return Ok(None);
        }
        let mut out = Vec::new();
        for t in targets {
            self.target(t, env, &mut out)?;
        }
        if out.is_empty() {
            return Err(SqlError::new(state::SYNTAX_ERROR, "RETURNING must have at least one column").at(targets[0].expr.pos));
        }
        let mut exprs = Vec::with_capacity(out.len());
        let mut desc = RelDesc::default();
        for t in out {
            let e = self.text_if_unknown(t.expr, t.pos)?;
            desc.names.push(t.name);
            desc.types.push(e.typ());
            exprs.push(e);
        }
        Ok(Some(ReturningPlan { computed, exprs, desc }))
    }

    pub fn copy(&self, c: &ast::Copy) -> Result<Plan, SqlError> {
        let file = match &c.target {
            ast::CopyTarget::Program => return Err(SqlError::unsupported("COPY … PROGRAM", "pipe through psql's \\copy").at(c.pos)),
            ast::CopyTarget::File(f) => Some(f.clone()),
            _ => None,
        };
        if let (true, Some(f)) = (c.to, &c.filter) {
            return Err(SqlError::new(state::SYNTAX_ERROR, "WHERE clause not allowed with COPY TO").at(f.pos));
        }
        if c.to {
            let source = match &c.from {
                ast::CopyFrom::Subscribe(s) => CopySource::Subscribe(Box::new(self.subscribe(s)?)),
                ast::CopyFrom::Modify(s, _) => CopySource::Modify(Box::new(self.rows_statement(s)?)),
                ast::CopyFrom::Query(q) if q.with.as_ref().is_some_and(super::statement::writes) => {
                    CopySource::Modify(Box::new(self.rows_statement(&ast::Statement::Select(q.clone()))?))
                }
                ast::CopyFrom::Query(q) if matches!(&q.body, ast::QueryBody::Select(s) if s.into.is_some()) => {
                    return Err(SqlError::new(state::FEATURE_NOT_SUPPORTED, "COPY (SELECT INTO) is not supported"));
                }
                ast::CopyFrom::Query(q) => CopySource::Select(Box::new(self.select_plan(q)?)),
                ast::CopyFrom::Table(name, columns) => {
                    let rel = self.named_relation(name)?;
                    if let RelationKind::View(_) = rel.kind {
                        return Err(SqlError::new(state::WRONG_OBJECT_TYPE, format!("cannot copy from view \"{}\"", rel.name.name))
                            .with_hint("Try the COPY (SELECT ...) TO variant."));
                    }
                    let outputs = self.named_columns(&rel, columns)?;
                    let names = outputs.iter().map(|i| rel.desc.names[*i].clone()).collect();
                    let hir = project(self.relation_hir(&rel, name.pos)?, outputs);
                    CopySource::Select(Box::new(self.finish_plan(Bound::new(hir, names))?))
                }
            };
            let names = match &source {
                CopySource::Select(s) => s.desc.names.clone(),
                CopySource::Modify(p) => match result_of(p) {
                    Some(desc) => desc.names,
                    None => return Err(SqlError::new(state::FEATURE_NOT_SUPPORTED, "COPY query must have a RETURNING clause")),
                },
                CopySource::Subscribe(s) => s.result.names.clone(),
            };
            let all: Vec<usize> = (0..names.len()).collect();
            return Ok(Plan::CopyTo(Box::new(CopyToPlan {
                format: copy_format(&c.options, &names, &all, false)?,
                encoding: copy_encoding(&c.options)?,
                source,
                file,
            })));
        }
        let ast::CopyFrom::Table(name, columns) = &c.from else { return Err(SqlError::internal("COPY FROM without a table")) };
        let rel = self.writable(name, "copy to")?;
        let columns = self.named_columns(&rel, columns)?;
        let format = copy_format(&c.options, &rel.desc.names, &columns, true)?;
        let filter = c.filter.as_ref().map(|f| self.condition(f, &self.row_env(&rel.name.name, &rel.desc, Clause::CopyWhere), "WHERE")).transpose()?;
        let columns_written = columns.clone();
        Ok(Plan::CopyFrom(Box::new(CopyFromPlan {
            table: rel.id,
            columns,
            defaults: rel.defaults.clone(),
            desc: rel.desc.clone(),
            checks: RowChecks { domains: self.domain_tests(&rel.desc, &columns_written)?, ..row_checks(&rel) },
            format,
            encoding: copy_encoding(&c.options)?,
            filter,
            file,
        })))
    }
}

impl Binder<'_> {
    /// Values that no expression made, as those of the columns' domains.
    pub(super) fn domain_tests(&self, desc: &RelDesc, columns: &[usize]) -> Result<Vec<HirScalar>, SqlError> {
        let with_domain = columns.iter().filter(|c| desc.types[**c].ty.has_domain());
        let test = |c: &usize| {
            let ty = desc.types[*c].clone().with_nullable(true);
            let mut plain = ty.without_domains();
            if let SqlType::Array(e) = &ty.ty {
                plain.typmod = e.as_ref().clone().nullable().base().typmod;
            }
            let value = HirScalar::Column(ColumnRef { level: 0, column: *c }, plain);
            self.coerce(value, &ty, ::expr::catalog::CastContext::Assignment, 0)
        };
        with_domain.map(test).collect()
    }
}

pub fn row_checks(rel: &Relation) -> RowChecks {
    RowChecks {
        not_null: (0..rel.desc.arity()).filter(|i| !rel.desc.types[*i].nullable).collect(),
        checks: rel.checks.clone(),
        domains: Vec::new(),
        generated: rel.generated.iter().enumerate().filter_map(|(i, g)| Some((i, g.clone()?))).collect(),
        views: Vec::new(),
    }
}

/// As [`row_checks`], of rows that are written through views.
fn checks_through(rel: &Relation, seen: Seen) -> RowChecks {
    let views = if seen.steps.iter().any(|s| s.checked) { seen.steps } else { Vec::new() };
    RowChecks { views, ..row_checks(rel) }
}

/// The encoding of COPY's text, if an option names one. Errors: 22023, 0A000.
fn copy_encoding(options: &[ast::DdlOption]) -> Result<Option<Encoding>, SqlError> {
    let Some(o) = options.iter().find(|o| o.name == "encoding") else { return Ok(None) };
    let known = Encoding::parse(&option_text(&o.value)).map_err(|e| e.at(o.pos))?;
    let unknown = || SqlError::new(state::INVALID_PARAMETER_VALUE, "argument to option \"encoding\" must be a valid encoding name").at(o.pos);
    known.map(Some).ok_or_else(unknown)
}

/// VALUES and nothing else: each row stands by itself.
fn is_plain_values(q: &ast::Query) -> bool {
    let plain = q.order_by.is_empty() && q.limit.is_none() && q.offset.is_none() && q.with.is_none();
    plain && matches!(q.body, ast::QueryBody::Values(_))
}

/// Whether it may give another value each time.
pub fn is_volatile(e: &HirScalar) -> bool {
    let mut found = coerce::to_scalar(e).is_none();
    if let Some(s) = coerce::to_scalar(e) {
        s.visit(&mut |x| found |= matches!(x, ::expr::Scalar::Call { func, .. } if func.volatility == ::expr::func::Volatility::Volatile));
    }
    found
}

/// The row of a table that is written, under its name or an alias.
pub fn target_item(name: &str, rel: &Relation, alias: bool) -> NsItem {
    NsItem {
        schema: (!alias).then(|| rel.name.schema.clone()),
        hidden: (name != rel.name.name).then(|| rel.name.name.clone()),
        rel_oid: rel.oid,
        row_oid: if rel.row_type_oid == 0 { ::expr::catalog::pseudo::RECORD } else { rel.row_type_oid },
        row_names: None,
        aliased: 0,
        ..item(name, &rel.desc, 0)
    }
}

pub(super) fn item(name: &str, desc: &RelDesc, from: usize) -> NsItem {
    let cols = desc.names.iter().zip(&desc.types).enumerate().map(|(i, (n, t))| NsCol { name: n.clone(), pos: from + i, ty: t.clone(), whole: None }).collect();
    NsItem {
        name: name.to_owned(),
        schema: None,
        cols,
        rel_visible: true,
        cols_visible: true,
        row_oid: ::expr::catalog::pseudo::RECORD,
        row_names: None,
        aliased: 0,
        hidden: None,
        rel_oid: 0,
        rel: None,
        scalar: false,
        null_extended: false,
        key: None,
    }
}

/// Nothing in it depends on the time or the session.
fn immutable(e: &HirScalar) -> bool {
    coerce::to_scalar(e).is_some_and(|s| s.is_immutable(&[]))
}

/// The options of COPY. `columns`: those that the data has.
fn copy_format(options: &[ast::DdlOption], names: &[String], columns: &[usize], from: bool) -> Result<CopyFormat, SqlError> {
    let bad = |m: String| SqlError::new(state::SYNTAX_ERROR, m);
    let (mut format, mut delimiter, mut null, mut header) = ("text".to_owned(), None, None, CopyHeader::No);
    let (mut quote, mut escape) = (None, None);
    let (mut force_quote, mut force_not_null, mut force_null) = (None, None, None);
    let one_byte = |o: &ast::DdlOption| -> Result<u8, SqlError> {
        match option_text(&o.value).as_bytes() {
            [b] => Ok(*b),
            _ => Err(SqlError::new(state::FEATURE_NOT_SUPPORTED, format!("COPY {} must be a single one-byte character", o.name))),
        }
    };
    let unsupported = |m: &str| Err(SqlError::new(state::FEATURE_NOT_SUPPORTED, m));
    let invalid = |m: &str| Err(SqlError::new(state::INVALID_PARAMETER_VALUE, m));
    // The lists of columns are looked at last, as errors in the other options come first.
    let list = |o: Option<&ast::DdlOption>| -> Result<Vec<usize>, SqlError> {
        let Some(o) = o else { return Ok(Vec::new()) };
        match &o.value {
            ast::OptionValue::Word(w) if w == "*" => Ok(columns.to_vec()),
            ast::OptionValue::List(items) => items
                .iter()
                .map(|i| {
                    let n = option_text(i);
                    names.iter().position(|x| *x == n).ok_or_else(|| SqlError::new(state::UNDEFINED_COLUMN, format!("column \"{n}\" does not exist")))
                })
                .collect(),
            _ => Err(SqlError::new(state::INVALID_PARAMETER_VALUE, format!("argument to option \"{}\" must be a list of column names", o.name))),
        }
    };
    for (i, o) in options.iter().enumerate() {
        if options[..i].iter().any(|x| x.name == o.name) {
            return Err(bad("conflicting or redundant options".into()).at(o.pos));
        }
        match o.name.as_str() {
            "format" => format = option_text(&o.value).to_ascii_lowercase(),
            "delimiter" => delimiter = Some(one_byte(o)?),
            "null" => null = Some(option_text(&o.value)),
            "header" => {
                header = match option_text(&o.value).eq_ignore_ascii_case("match") {
                    true if !from => return Err(SqlError::new(state::FEATURE_NOT_SUPPORTED, "cannot use \"match\" with HEADER in COPY TO").at(o.pos)),
                    true => CopyHeader::Match,
                    false if option_bool(o)? => CopyHeader::Yes,
                    false => CopyHeader::No,
                }
            }
            "quote" => quote = Some(one_byte(o)?),
            "escape" => escape = Some(one_byte(o)?),
            "force_quote" => force_quote = Some(o),
            "force_not_null" => force_not_null = Some(o),
            "force_null" => force_null = Some(o),
            "freeze" | "oids" | "encoding" => {}
            other => return Err(bad(format!("option \"{other}\" not recognized")).at(o.pos)),
        }
    }
    if delimiter.is_some_and(|d| matches!(d, b'\r' | b'\n')) {
        return invalid("COPY delimiter cannot be newline or carriage return");
    }
    if null.as_ref().is_some_and(|n| n.contains(['\r', '\n'])) {
        return invalid("COPY null representation cannot use newline or carriage return");
    }
    let holds = |null: &Option<String>, c: u8| null.as_ref().is_some_and(|n| n.as_bytes().contains(&c));
    let csv_only = [
        ("quote", quote.is_some()),
        ("escape", escape.is_some()),
        ("force quote", force_quote.is_some()),
        ("force not null", force_not_null.is_some()),
        ("force null", force_null.is_some()),
    ];
    match format.as_str() {
        "csv" => {
            let (delimiter, quote) = (delimiter.unwrap_or(b','), quote.unwrap_or(b'"'));
            if delimiter == quote {
                return invalid("COPY delimiter and quote must be different");
            }
            match (force_quote, force_not_null, force_null) {
                (Some(_), _, _) if from => return unsupported("COPY force quote only available using COPY TO"),
                (_, Some(_), _) if !from => return unsupported("COPY force not null only available using COPY FROM"),
                (_, _, Some(_)) if !from => return unsupported("COPY force null only available using COPY FROM"),
                _ => {}
            }
            if holds(&null, delimiter) {
                return unsupported("COPY delimiter must not appear in the NULL specification");
            }
            if holds(&null, quote) {
                return unsupported("CSV quote character must not appear in the NULL specification");
            }
            let (force_quote, force_not_null, force_null) = (list(force_quote)?, list(force_not_null)?, list(force_null)?);
            Ok(CopyFormat::Csv {
                delimiter,
                null: null.unwrap_or_default(),
                header,
                quote,
                escape: escape.unwrap_or(quote),
                force_quote,
                force_not_null,
                force_null,
            })
        }
        "text" => {
            if let Some((n, _)) = csv_only.iter().find(|c| c.1) {
                return Err(SqlError::new(state::FEATURE_NOT_SUPPORTED, format!("COPY {n} available only in CSV mode")));
            }
            // These could be data or part of an escape.
            if let Some(d) = delimiter.filter(|d| matches!(d, b'\\' | b'.' | b'a'..=b'z' | b'0'..=b'9')) {
                return Err(SqlError::new(state::INVALID_PARAMETER_VALUE, format!("COPY delimiter cannot be \"{}\"", char::from(d))));
            }
            if holds(&null, delimiter.unwrap_or(b'\t')) {
                return unsupported("COPY delimiter must not appear in the NULL specification");
            }
            Ok(CopyFormat::Text { delimiter: delimiter.unwrap_or(b'\t'), null: null.unwrap_or_else(|| "\\N".into()), header })
        }
        "binary" => {
            for (given, what) in [(delimiter.is_some(), "DELIMITER"), (null.is_some(), "NULL")] {
                if given {
                    return Err(bad(format!("cannot specify {what} in BINARY mode")));
                }
            }
            if header != CopyHeader::No {
                return Err(SqlError::new(state::FEATURE_NOT_SUPPORTED, "cannot specify HEADER in BINARY mode"));
            }
            let _ = from;
            Ok(CopyFormat::Binary)
        }
        other => Err(SqlError::new(state::INVALID_PARAMETER_VALUE, format!("COPY format \"{other}\" not recognized"))),
    }
}
