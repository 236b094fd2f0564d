//! Statements: which plan each becomes.

use super::query::Bound;
use super::scope::Env;
use super::*;
use crate::ast::{self, ExplainTarget, ObjectKind, ObjectName, SetValue, Statement, SubscribeFrom};
use crate::hir::{ColumnRef, Hir, HirScalar};
use crate::parse::ParsedStatement;
use ::expr::catalog::CastContext;
use ::expr::ColumnOrder;
use ::plan::Finishing;
use repr::{ColType, GlobalId, RelDesc};

/// Parameter and result types of a statement. `params`: types the client fixed; `None`, unknown or missing ones are inferred.
pub fn describe(stmt: &ParsedStatement, catalog: &dyn SqlCatalog, params: &[Option<SqlType>]) -> Result<Described, SqlError> {
    on_large_stack(|| describe_inner(stmt, catalog, params))
}

/// Walking deep trees takes stack; a thread of the server has it, one of a test may not.
fn on_large_stack<T>(f: impl FnOnce() -> T) -> T {
    stacker::maybe_grow(160 << 20, 512 << 20, f)
}

fn describe_inner(stmt: &ParsedStatement, catalog: &dyn SqlCatalog, params: &[Option<SqlType>]) -> Result<Described, SqlError> {
    let b = Binder::new(catalog);
    b.params.borrow_mut().types = params.iter().map(|t| t.clone().filter(|t| *t != SqlType::Unknown)).collect();
    let plan = b.statement(stmt, &stmt.statement)?;
    let mut types = Vec::new();
    let unknown = |i: usize| format!("could not determine data type of parameter ${}", i + 1);
    for (i, t) in b.params.borrow().types.iter().enumerate() {
        match t {
            Some(t) => types.push(t.clone()),
            None => return Err(SqlError::new(state::INDETERMINATE_DATATYPE, unknown(i))),
        }
    }
    if let Some((n, pos)) = b.params.borrow().untyped.first() {
        return Err(SqlError::new(state::AMBIGUOUS_PARAMETER, unknown(*n)).at(*pos));
    }
    let origins = match &plan {
        Plan::Select(s) => origins(s),
        _ => vec![],
    };
    Ok(Described { params: types, result: result_of(&plan), origins, depends_on: b.depends_on() })
}

/// What is made from expressions as they are written.
fn keeps_text(s: &Statement) -> bool {
    use Statement::{Alter, AlterTable, AlterType, CreateIndex, CreateSchema, CreateSource, CreateTable, CreateTableFromSource, CreateType, CreateView};
    matches!(
        s,
        Alter(_)
            | AlterTable(_)
            | AlterType(_)
            | CreateIndex(_)
            | CreateSchema { .. }
            | CreateSource(_)
            | CreateTable(_)
            | CreateTableFromSource(_)
            | CreateType(_)
            | CreateView(_)
    )
}

/// For each column of the result, the relation's column that it is.
fn origins(s: &SelectPlan) -> Vec<Option<(GlobalId, usize)>> {
    s.finishing.project.iter().map(|c| origin(&s.hir, *c)).collect()
}

/// The relation's column that column `c` of `hir` hands on as it is.
fn origin(hir: &Hir, c: usize) -> Option<(GlobalId, usize)> {
    match hir {
        Hir::Get { id, .. } => Some((*id, c)),
        Hir::Project { input, outputs } => origin(input, *outputs.get(c)?),
        Hir::Map { input, scalars } => match c.checked_sub(input.arity()) {
            None => origin(input, c),
            Some(n) => match scalars.get(n)? {
                HirScalar::Column(ColumnRef { level: 0, column }, _) if *column < input.arity() => origin(input, *column),
                _ => None,
            },
        },
        Hir::Filter { input, .. } | Hir::TopK { input, .. } | Hir::Distinct { input } => origin(input, c),
        Hir::Join { left, right, .. } => match c.checked_sub(left.arity()) {
            None => origin(left, c),
            Some(n) => origin(right, n),
        },
        Hir::Reduce { input, group_key, .. } => origin(input, *group_key.get(c)?),
        Hir::Window { input, .. } if c < input.arity() => origin(input, c),
        Hir::Let { body, .. } => origin(body, c),
        _ => None,
    }
}

/// The plan of a statement with its parameters' values put in.
pub fn plan(stmt: &ParsedStatement, catalog: &dyn SqlCatalog, params: &[(Value, SqlType)]) -> Result<Plan, SqlError> {
    on_large_stack(|| {
        let b = Binder::new(catalog);
        b.params.borrow_mut().values = Some(params.to_vec());
        b.statement(stmt, &stmt.statement)
    })
}

/// A variable of a block, as its statements see it.
#[derive(Clone, Debug)]
pub struct Variable {
    pub name: String,
    pub value: Value,
    pub ty: SqlType,
}

/// The plan of a statement in the code of DO: its parameters, and the variables that it may name where it reads or writes rows.
pub fn plan_in_block(stmt: &ParsedStatement, catalog: &dyn SqlCatalog, params: &[(Value, SqlType)], variables: &[Variable]) -> Result<Plan, SqlError> {
    on_large_stack(|| {
        let mut b = Binder::new(catalog);
        b.params.borrow_mut().values = Some(params.to_vec());
        // What is kept as text, as that of a view, can name none.
        let rows = matches!(
            stmt.statement,
            Statement::Select(_) | Statement::Insert(_) | Statement::Update(_) | Statement::Delete(_) | Statement::Merge(_) | Statement::CreateTableAs(_)
        );
        b.variables = if rows { variables } else { &[] };
        b.statement(stmt, &stmt.statement)
    })
}

/// The type that a name in a declaration means.
pub fn variable_type(t: &ast::TypeName, catalog: &dyn SqlCatalog) -> Result<ColType, SqlError> {
    Binder::new(catalog).resolve_type(t)
}

/// A value on its way into a variable: cast as assignment does, or else through its text.
pub fn assigned(value: Value, from: &SqlType, to: &ColType, catalog: &dyn SqlCatalog) -> Result<HirScalar, SqlError> {
    let b = Binder::new(catalog);
    let e = HirScalar::Literal(value.clone(), from.clone().nullable().with_nullable(value.is_null()));
    match b.try_coerce(e.clone(), to, CastContext::Assignment, 0)? {
        Some(x) => Ok(x),
        None => b.coerce(e, to, CastContext::Explicit, 0),
    }
}

/// A variable's value with a new value for the part that `to` names.
pub fn part_assigned(
    to: &ast::AssignTarget,
    (whole, ty): (Value, &ColType),
    (value, from): (Value, &SqlType),
    catalog: &dyn SqlCatalog,
    variables: &[Variable],
) -> Result<HirScalar, SqlError> {
    let mut b = Binder::new(catalog);
    b.variables = variables;
    let part = b.part_type(ty.clone(), to)?;
    let value = HirScalar::Literal(value.clone(), from.clone().nullable().with_nullable(value.is_null()));
    let value = match b.try_coerce(value.clone(), &part, CastContext::Assignment, 0)? {
        Some(x) => x,
        None => b.coerce(value, &part, CastContext::Explicit, 0)?,
    };
    let whole = HirScalar::Literal(whole, ty.clone().with_nullable(true));
    b.with_part(whole, ty, to, &to.path, value, &b.row_env("", &RelDesc::default(), scope::Clause::Default))
}

/// Binds a scalar over a relation's row: stored defaults (no columns) and checks.
pub fn bind_scalar(text: &str, desc: &RelDesc, catalog: &dyn SqlCatalog) -> Result<HirScalar, SqlError> {
    let e = crate::parse::parse_expr(text)?;
    let b = Binder::new(catalog);
    let env = b.row_env("", desc, scope::Clause::Check);
    let x = b.expr(&e, &env)?;
    b.text_if_unknown(x, e.pos)
}

/// Binds a column's stored default, or over the row (`desc`) what it is generated from, cast to its type as assignment does.
pub fn bind_default(text: &str, desc: &RelDesc, to: &ColType, catalog: &dyn SqlCatalog) -> Result<HirScalar, SqlError> {
    let e = crate::parse::parse_expr(text)?;
    let b = Binder::new(catalog);
    let x = b.expr(&e, &b.row_env("", desc, scope::Clause::Default))?;
    match b.coerce_stored(x.clone(), to, e.pos)? {
        Some(x) => Ok(x),
        None => b.coerce(x, to, CastContext::Assignment, e.pos),
    }
}

/// What a column without a default gets from its domain: the domain's default, or the NULL that the domain has to admit.
pub fn implied_default(to: &ColType, catalog: &dyn SqlCatalog) -> Result<Option<HirScalar>, SqlError> {
    let SqlType::Domain(d) = &to.ty else { return Ok(None) };
    let Some((_, domain)) = catalog.domain_by_oid(d.oid) else { return Ok(None) };
    let text = domain.default.as_deref().unwrap_or("NULL");
    bind_default(text, &RelDesc::default(), to, catalog).map(Some)
}

/// What raises if one of these columns has a value that its domain does not admit, of rows that no expression of a statement made.
pub fn domain_tests(desc: &RelDesc, columns: &[usize], catalog: &dyn SqlCatalog) -> Result<Vec<HirScalar>, SqlError> {
    Binder::new(catalog).domain_tests(desc, columns)
}

/// A constant argument of EXECUTE cast to the prepared statement's parameter type, as assignment does.
pub fn coerce_argument(e: HirScalar, to: &SqlType, number: usize, catalog: &dyn SqlCatalog) -> Result<HirScalar, SqlError> {
    let b = Binder::new(catalog);
    let from = e.typ();
    b.try_coerce(e, &to.clone().nullable(), CastContext::Assignment, 0)?.ok_or_else(|| {
        SqlError::new(
            state::DATATYPE_MISMATCH,
            format!("parameter ${number} of type {} cannot be coerced to the expected type {}", from.ty.sql_name(), to.sql_name()),
        )
        .with_hint("You will need to rewrite or cast the expression.")
    })
}

/// Columns of a plan's result.
pub fn result_of(plan: &Plan) -> Option<RelDesc> {
    match plan {
        Plan::Select(p) => Some(p.desc.clone()),
        Plan::Subscribe(p) => Some(p.result.clone()),
        Plan::Insert(p) => p.returning.as_ref().map(|r| r.desc.clone()),
        Plan::Update(p) => p.returning.as_ref().map(|r| r.desc.clone()),
        Plan::Delete(p) => p.returning.as_ref().map(|r| r.desc.clone()),
        Plan::With(p) => result_of(&p.body),
        Plan::ShowVariable(name) => Some(text_columns(&[shown_name(name)])),
        Plan::ShowAll => Some(text_columns(&["name", "setting", "description"])),
        Plan::Show(s) => Some(s.desc.clone()),
        Plan::ShowCreate { .. } => Some(text_columns(&["name", "create_sql"])),
        Plan::Explain(e) => {
            let mut desc = text_columns(&["QUERY PLAN"]);
            if e.options.iter().rev().find(|o| o.0 == "format").is_some_and(|o| o.1.eq_ignore_ascii_case("json")) {
                desc.types[0].ty = SqlType::Json;
            }
            Some(desc)
        }
        _ => None,
    }
}

/// Postgres names the column of SHOW as the setting is spelled.
fn shown_name(name: &str) -> &str {
    match name {
        "timezone" => "TimeZone",
        "datestyle" => "DateStyle",
        "intervalstyle" => "IntervalStyle",
        other => other,
    }
}

pub fn text_columns(names: &[&str]) -> RelDesc {
    RelDesc { names: names.iter().map(|n| (*n).to_owned()).collect(), types: names.iter().map(|_| SqlType::Text.nullable()).collect(), keys: vec![] }
}

impl Binder<'_> {
    pub(super) fn statement(&self, p: &ParsedStatement, s: &Statement) -> Result<Plan, SqlError> {
        self.params.borrow_mut().none = keeps_text(s);
        match s {
            Statement::Select(_) | Statement::Insert(_) | Statement::Update(_) | Statement::Delete(_) | Statement::Merge(_) => self.rows_statement(s),
            Statement::Truncate { names, restart_identity, cascade } => {
                let tables = names.iter().map(|n| Ok(self.writable(n, "truncate")?.id)).collect::<Result<_, SqlError>>()?;
                Ok(Plan::Truncate { tables, restart_identity: *restart_identity, cascade: *cascade })
            }
            // It is up to date: dumps and schedules of PostgreSQL's say it all the same.
            Statement::Refresh(name) => match self.named_relation(name)? {
                rel if matches!(rel.kind, crate::catalog::RelationKind::MaterializedView) => {
                    Ok(Plan::Nothing { tag: "REFRESH MATERIALIZED VIEW", notice: None })
                }
                rel => Err(SqlError::new(state::FEATURE_NOT_SUPPORTED, format!("\"{}\" is not a materialized view", rel.name.name))),
            },
            Statement::Lock(names) => {
                for name in names {
                    let rel = self.named_relation(name)?;
                    // Sources are tables to those who read the catalogs, pg_dump among them.
                    use crate::RelationKind::{Builtin, Source, Table, Tables, View};
                    if !matches!(rel.kind, Table | Source | Tables | View(_) | Builtin) {
                        return Err(SqlError::new(state::WRONG_OBJECT_TYPE, format!("\"{}\" is not a table or view", rel.name.name)).at(name.pos));
                    }
                }
                Ok(Plan::Lock)
            }
            Statement::Subscribe(s) => Ok(Plan::Subscribe(Box::new(self.subscribe(s)?))),
            Statement::Copy(c) => self.copy(c),
            Statement::CreateTable(c) => self.create_table(p, c),
            Statement::CreateTableAs(c) => self.created_from_query(c),
            Statement::CreateTableExecute(c) => {
                let args = c.query.1.iter().map(|a| self.constant(a)).collect::<Result<_, _>>()?;
                let ast::CreateTableAs { name, if_not_exists, columns, query, with_data, on_commit } = (**c).clone();
                let create = ast::CreateTableAs { name, if_not_exists, columns, query: query.0.name, with_data, on_commit };
                Ok(Plan::CreateTableExecute { create: Box::new(create), args })
            }
            Statement::CreateView(v) => self.create_view(p, v),
            Statement::CreateIndex(i) => self.create_index(p, i),
            Statement::CreateSchema { name, if_not_exists, owner, elements } => {
                let elements = self.schema_elements(p, &name.name, elements)?;
                Ok(Plan::CreateSchema { name: name.name.clone(), if_not_exists: *if_not_exists, owner: owner.clone(), elements })
            }
            Statement::CreateDatabase { name, if_not_exists } => Ok(Plan::CreateDatabase { name: name.name.clone(), if_not_exists: *if_not_exists }),
            Statement::CreateExtension { name, if_not_exists } => {
                // The language of DO is there, as in every database of PostgreSQL's; no other extension is.
                if name.name != "plpgsql" {
                    return Err(SqlError::unsupported("CREATE EXTENSION", instead_of("CREATE EXTENSION")));
                }
                let e = SqlError::new(state::DUPLICATE_OBJECT, "extension \"plpgsql\" already exists");
                match if_not_exists {
                    true => Ok(Plan::Nothing { tag: "CREATE EXTENSION", notice: Some(SqlError::new(e.code, format!("{}, skipping", e.message))) }),
                    false => Err(e),
                }
            }
            Statement::CreateType(t) => self.create_type(t, p),
            Statement::CreateSecret { name, if_not_exists, value } => {
                let x = self.constant(value)?;
                let value = match x.typ().ty {
                    SqlType::Bytea => x,
                    _ => self.coerce(x, &SqlType::Text.nullable(), CastContext::Assignment, value.pos)?,
                };
                Ok(Plan::CreateSecret { name: self.new_name(name)?, if_not_exists: *if_not_exists, value })
            }
            Statement::CreateConnection(c) => self.create_connection(p, c),
            Statement::CreateSource(c) => self.create_source(p, c),
            Statement::CreateTableFromSource(c) => self.table_from_source(p, c),
            Statement::CreateSink(c) => self.create_sink(p, c),
            Statement::CreateSubscription { name, if_not_exists, relation, options } => Ok(Plan::CreateSubscription {
                name: self.new_name(name)?,
                if_not_exists: *if_not_exists,
                relation: self.resolve_relation(relation)?.id,
                options: plain_options(options),
            }),
            Statement::ValidateConnection(n) => Ok(Plan::ValidateConnection(self.object(ObjectKind::Connection, n)?)),
            Statement::ReplayErrors(n) => {
                let source = match self.catalog.resolve_object(ObjectKind::Source, &n.parts) {
                    Some(o) => o.id,
                    None => self.resolve_relation(n)?.id,
                };
                Ok(Plan::ReplayErrors { source })
            }
            Statement::Acknowledge { name, at } => Ok(Plan::Acknowledge { subscription: self.object(ObjectKind::Subscription, name)?, at: self.time(at)? }),
            Statement::Drop(d) => self.drop_plan(d),
            Statement::Alter(a) => self.alter(a),
            Statement::AlterTable(a) => self.alter_table(p, a),
            Statement::CreateSequence { name, if_not_exists, temporary, options } => self.create_sequence(name, *if_not_exists, *temporary, options),
            Statement::AlterSequence { name, if_exists, options } => self.alter_sequence(name, *if_exists, options),
            Statement::AlterType(a) => self.alter_type(a, p),
            Statement::Comment { kind, name, constraint, text } => {
                Ok(Plan::Comment { on: self.commented(*kind, name, constraint.as_ref())?, text: text.clone() })
            }
            Statement::Begin(tag, m) => Ok(Plan::Begin(tag, m.clone())),
            Statement::SetTransaction { session, modes } => Ok(Plan::SetTransaction { session: *session, modes: modes.clone() }),
            Statement::SetConstraints { names, deferred } => {
                Ok(Plan::SetConstraints { names: names.as_ref().map(|n| n.iter().map(|n| n.last().to_owned()).collect()), deferred: *deferred })
            }
            Statement::Commit { chain } => Ok(Plan::Commit { chain: *chain }),
            Statement::Rollback { chain } => Ok(Plan::Rollback { chain: *chain }),
            Statement::PrepareTransaction => Ok(Plan::PrepareTransaction),
            Statement::FinishPrepared { name, .. } => {
                Err(SqlError::new(state::UNDEFINED_OBJECT, format!("prepared transaction with identifier \"{name}\" does not exist")))
            }
            // What was acknowledged is durable, and an index holds what its relation does: there is nothing left to do.
            Statement::Checkpoint => Ok(Plan::Nothing { tag: "CHECKPOINT", notice: None }),
            Statement::Reindex(r) => self.reindexed(r).map(|()| Plan::Nothing { tag: "REINDEX", notice: None }),
            Statement::Savepoint(n) => Ok(Plan::Savepoint(n.name.clone())),
            Statement::ReleaseSavepoint(n) => Ok(Plan::ReleaseSavepoint(n.name.clone())),
            Statement::RollbackTo(n) => Ok(Plan::RollbackTo(n.name.clone())),
            Statement::Set { local, name, value } => Ok(Plan::SetVariable {
                local: *local,
                name: name.to_lowercase(),
                value: match value {
                    SetValue::Default => None,
                    SetValue::List(items) if items.len() == 1 => Some(items[0].clone()),
                    SetValue::List(items) => Some(items.iter().map(|i| quote_ident(i)).collect::<Vec<_>>().join(", ")),
                },
            }),
            Statement::ShowVariable(n) if n == "all" => Ok(Plan::ShowAll),
            Statement::ShowVariable(n) => Ok(Plan::ShowVariable(n.to_lowercase())),
            Statement::ShowObjects(s) => self.show(s),
            Statement::ShowCreate { kind, name } => Ok(Plan::ShowCreate { kind: *kind, object: self.any_object(*kind, name)? }),
            Statement::Reset(None) => Ok(Plan::ResetAll),
            Statement::Reset(Some(n)) => Ok(Plan::ResetVariable(n.to_lowercase())),
            Statement::Discard(k) => Ok(Plan::Discard(*k)),
            Statement::Prepare(x) => Ok(Plan::Prepare {
                text: p.text.clone(),
                name: x.name.name.clone(),
                types: x.types.iter().map(|t| self.resolve_type(t).map(|c| Some(c.ty).filter(|t| *t != SqlType::Unknown))).collect::<Result<_, _>>()?,
                statement: ParsedStatement { text: p.slice(x.span).to_owned(), offset: x.span.start, statement: (*x.statement).clone(), notices: Vec::new() },
            }),
            Statement::Execute { name, args } => {
                Ok(Plan::Execute { name: name.name.clone(), args: args.iter().map(|a| self.constant(a)).collect::<Result<_, _>>()? })
            }
            Statement::Deallocate(n) => Ok(Plan::Deallocate(n.as_ref().map(|n| n.name.clone()))),
            Statement::Declare(d) => {
                if let Statement::Select(q) = &*d.statement {
                    read_only(q, "DECLARE CURSOR must not contain data-modifying statements in WITH")?;
                }
                Ok(Plan::Declare {
                    text: p.text.clone(),
                    name: d.name.name.clone(),
                    hold: d.hold,
                    scroll: d.scroll,
                    binary: d.binary,
                    query: Box::new(self.statement(p, &d.statement)?),
                })
            }
            Statement::Fetch(f) => self.fetch(f),
            Statement::Close(n) => Ok(Plan::Close(n.as_ref().map(|n| n.name.clone()))),
            Statement::Explain(e) => {
                let target = match &e.target {
                    ExplainTarget::Statement(s) => ExplainPlanTarget::Plan(Box::new(self.statement(p, s)?)),
                    ExplainTarget::View(n) => ExplainPlanTarget::Object(self.any_object(ObjectKind::View, n)?),
                    ExplainTarget::MaterializedView(n) => ExplainPlanTarget::Object(self.any_object(ObjectKind::MaterializedView, n)?),
                    ExplainTarget::Index(n) => ExplainPlanTarget::Object(self.any_object(ObjectKind::Index, n)?),
                };
                Ok(Plan::Explain(Box::new(ExplainPlan { stage: e.stage, analyze: e.analyze, options: plain_options(&e.options), target })))
            }
            Statement::Do { code, language } => match language.as_ref().map_or("plpgsql", |l| l.name.as_str()) {
                "plpgsql" => Ok(Plan::Do(Box::new(crate::parse::parse_block(code)?))),
                l @ ("sql" | "c" | "internal") => {
                    let e = SqlError::new(state::FEATURE_NOT_SUPPORTED, format!("language \"{l}\" does not support inline code execution"));
                    Err(e.with_hint("write the code in plpgsql"))
                }
                l => Err(SqlError::new(state::UNDEFINED_OBJECT, format!("language \"{l}\" does not exist"))),
            },
            // LISTEN is refused, so there is nothing to stop: drivers say it when they reset a connection.
            Statement::Unsupported(what) if what == "UNLISTEN" => Ok(Plan::Nothing { tag: "UNLISTEN", notice: None }),
            // Space is reclaimed in the background and plans use no statistics: there is nothing left to do.
            Statement::Unsupported(what) if what == "VACUUM" => Ok(Plan::Nothing { tag: "VACUUM", notice: None }),
            Statement::Unsupported(what) if what == "ANALYZE" => Ok(Plan::Nothing { tag: "ANALYZE", notice: None }),
            Statement::Unsupported(what) if what == "LISTEN" || what == "NOTIFY" => {
                Err(SqlError::unsupported(what, "SUBSCRIBE to a table or view tells of its changes as they are committed"))
            }
            Statement::Unsupported(what) => Err(SqlError::unsupported(what, instead_of(what))),
        }
    }

    /// A statement that reads or writes rows.
    pub(super) fn rows_statement(&self, s: &Statement) -> Result<Plan, SqlError> {
        let env = Env::default();
        match s {
            Statement::Select(q) => self.select_statement(q),
            Statement::Insert(i) => self.with_writes(i.with.as_ref(), &env, |b, env| b.insert(i, env)),
            Statement::Update(u) => self.with_writes(u.with.as_ref(), &env, |b, env| b.update(u, env)),
            Statement::Delete(d) => self.with_writes(d.with.as_ref(), &env, |b, env| b.delete(d, env)),
            Statement::Merge(m) => self.with_writes(m.with.as_ref(), &env, |b, env| b.merge(m, env)),
            _ => Err(SqlError::internal("a statement without rows")),
        }
    }

    fn select_statement(&self, q: &ast::Query) -> Result<Plan, SqlError> {
        if let ast::QueryBody::Select(s) = &q.body {
            if let Some(into) = &s.into {
                let mut plain = q.clone();
                if let ast::QueryBody::Select(s) = &mut plain.body {
                    s.into = None;
                }
                return self.created_from_query(&ast::CreateTableAs {
                    name: into.clone(),
                    if_not_exists: false,
                    columns: Vec::new(),
                    query: Box::new(plain),
                    with_data: true,
                    on_commit: ast::OnCommit::Preserve,
                });
            }
        }
        match &q.with {
            Some(w) if writes(w) => self.with_writes(Some(w), &Env::default(), |b, env| {
                let bound = b.query_body(q, env, true)?;
                Ok(Plan::Select(Box::new(b.finished(q, bound)?)))
            }),
            _ => Ok(Plan::Select(Box::new(self.select_plan(q)?))),
        }
    }

    fn created_from_query(&self, c: &ast::CreateTableAs) -> Result<Plan, SqlError> {
        match &c.query.with {
            Some(w) if writes(w) => self.with_writes(Some(w), &Env::default(), |b, env| {
                let bound = b.query_body(&c.query, env, true)?;
                b.create_table_as(c, b.finished(&c.query, bound)?)
            }),
            _ => self.create_table_as(c, self.select_plan(&c.query)?),
        }
    }

    /// A query at the top of a statement.
    pub(super) fn select_plan(&self, q: &ast::Query) -> Result<SelectPlan, SqlError> {
        let env = Env::default();
        let bound = match &q.with {
            Some(w) => self.with(w, &env, |b, env| b.query_body(q, env, true))?,
            None => self.query_body(q, &env, true)?,
        };
        self.finished(q, bound)
    }

    fn finished(&self, q: &ast::Query, bound: Bound) -> Result<SelectPlan, SqlError> {
        let as_of = match &q.as_of {
            Some(a) => Some(self.as_of(a)?),
            None => None,
        };
        let mut plan = self.finish_plan(bound)?;
        plan.as_of = as_of;
        plan.locking = q.locking.first().map(|l| l.verb);
        Ok(plan)
    }

    pub(super) fn as_of(&self, a: &ast::AsOf) -> Result<AsOfPlan, SqlError> {
        Ok(AsOfPlan { at_least: a.at_least, time: self.time(&a.time)? })
    }

    /// A point in time: numeric (milliseconds since 1970), timestamp or timestamptz.
    pub(super) fn time(&self, e: &ast::Expr) -> Result<HirScalar, SqlError> {
        let x = self.constant_untyped(e)?;
        let from = x.typ().ty;
        let target = match &from {
            SqlType::Timestamp | SqlType::TimestampTz | SqlType::Numeric => return Ok(x),
            SqlType::Unknown => {
                // A string of digits is milliseconds, any other a timestamp with time zone.
                let digits = matches!(&x, HirScalar::Literal(Value::Text(s), _) if s.trim().chars().all(|c| c.is_ascii_digit()));
                if digits {
                    SqlType::Numeric
                } else {
                    SqlType::TimestampTz
                }
            }
            SqlType::Date => SqlType::Timestamp,
            _ => SqlType::Numeric,
        };
        self.try_coerce(x, &target.nullable(), CastContext::Assignment, e.pos)?.ok_or_else(|| {
            SqlError::new(state::DATATYPE_MISMATCH, format!("a time must be a number of milliseconds or a timestamp, not {}", from.sql_name())).at(e.pos)
        })
    }

    fn constant_untyped(&self, e: &ast::Expr) -> Result<HirScalar, SqlError> {
        self.expr(e, &Env::default())
    }

    /// A constant expression: no column, no subquery.
    pub(super) fn constant(&self, e: &ast::Expr) -> Result<HirScalar, SqlError> {
        self.constant_untyped(e)
    }

    /// LIMIT and OFFSET go into the finishing where they are known numbers, else into the relation. Without an order the least rows are
    /// kept, as in a view; of a recursion the first that come, since it may have no end.
    pub(super) fn finish_plan(&self, b: Bound) -> Result<SelectPlan, SqlError> {
        let visible = b.visible;
        let names = b.names.clone();
        let mut order_by = b.order.clone();
        let natural = if b.natural { b.order.clone() } else { Vec::new() };
        // An order that nobody asked for is not worth holding a large result: relations come as they come, a function in its order anyway.
        if b.natural && (is_one_call(&b.hir) || b.limit.is_none() && b.offset.is_none() && !b.system && reads_relation(&b.hir)) {
            order_by.clear();
        }
        let known = |e: &Option<HirScalar>| match e {
            None => Some(None),
            Some(e) => crate::lower::constant(e).and_then(|v| v.as_i64()).map(Some),
        };
        let recursive = matches!(b.hir, Hir::LetRec { .. });
        let streamed = is_one_call(&b.hir);
        if order_by.is_empty() && (b.limit.is_some() || b.offset.is_some()) && !b.with_ties && !recursive && !streamed && b.hir.arity() > 0 {
            // Ties are broken by whole rows. What a sequence gives is no order: it is asked for the rows that are sent.
            let column = (0..b.hir.arity()).find(|c| !is_asked(&b.hir, *c));
            order_by.extend(column.map(|column| ColumnOrder { column, desc: false, nulls_last: true }));
        }
        let (limit, offset, hir) = match (known(&b.limit), known(&b.offset)) {
            // Of no rows nothing is evaluated: LIMIT 0 empties the relation.
            (Some(l), Some(o)) if !b.with_ties && l != Some(0) => {
                if l.is_some_and(|n| n < 0) {
                    return Err(SqlError::new(state::INVALID_ROW_COUNT_IN_LIMIT, "LIMIT must not be negative"));
                }
                if o.is_some_and(|n| n < 0) {
                    return Err(SqlError::new(state::INVALID_ROW_COUNT_IN_OFFSET, "OFFSET must not be negative"));
                }
                (l.map(i64::unsigned_abs), o.map_or(0, i64::unsigned_abs), b.hir)
            }
            _ => (None, 0, b.limited()),
        };
        let mut types = hir.types();
        types.truncate(visible);
        let desc = RelDesc { names, types, keys: Vec::new() };
        Ok(SelectPlan {
            locking: None,
            hir,
            finishing: Finishing { order_by, limit, offset, project: (0..visible).collect() },
            natural,
            desc,
            as_of: None,
            depends_on: self.depends_on(),
        })
    }

    pub(super) fn depends_on(&self) -> Vec<GlobalId> {
        self.depends_on.borrow().iter().copied().collect()
    }

    /// The full name of an object to be created. Errors: 3F000, 0A000 for another database.
    pub(super) fn new_name(&self, n: &ObjectName) -> Result<FullName, SqlError> {
        let database = self.catalog.database().to_owned();
        match n.parts.as_slice() {
            [name] => Ok(FullName { database, schema: self.catalog.creation_schema()?, name: name.clone() }),
            [schema, name] | [_, schema, name] => {
                if n.parts.len() == 3 && n.parts[0] != database {
                    return Err(SqlError::new(state::FEATURE_NOT_SUPPORTED, format!("cross-database references are not implemented: \"{n}\"")).at(n.pos));
                }
                // The session's own schema is made when it is needed.
                if schema != "pg_temp" && !self.catalog.schema_exists(schema) {
                    return Err(SqlError::new(state::INVALID_SCHEMA_NAME, format!("schema \"{schema}\" does not exist")).at(n.pos));
                }
                Ok(FullName { database, schema: schema.clone(), name: name.clone() })
            }
            _ => Err(SqlError::new(state::SYNTAX_ERROR, format!("improper relation name (too many dotted names): {n}")).at(n.pos)),
        }
    }

    fn subscribe_relation(&self, s: &ast::Subscribe) -> Result<(Option<GlobalId>, Hir, RelDesc), SqlError> {
        match &s.from {
            SubscribeFrom::Relation(n) => {
                let rel = self.resolve_relation(n)?;
                let hir = self.relation_hir(&rel, n.pos)?;
                let kept = matches!(hir, Hir::Get { .. }).then_some(rel.id);
                Ok((kept, hir, rel.desc.clone()))
            }
            SubscribeFrom::Query(q) => {
                let p = self.select_plan(q)?;
                if p.as_of.is_some() {
                    return Err(SqlError::new(state::SYNTAX_ERROR, "AS OF belongs behind the query").at(q.pos));
                }
                let desc = p.desc.clone();
                Ok((None, p.into_relation(), desc))
            }
        }
    }

    pub(super) fn subscribe(&self, s: &ast::Subscribe) -> Result<SubscribePlan, SqlError> {
        let (relation, query, desc) = self.subscribe_relation(s)?;
        let (mut snapshot, mut progress) = (true, false);
        for o in &s.options {
            let on = option_bool(o)?;
            match o.name.as_str() {
                "snapshot" => snapshot = on,
                "progress" => progress = on,
                other => return Err(SqlError::new(state::INVALID_PARAMETER_VALUE, format!("unknown SUBSCRIBE option \"{other}\"")).at(o.pos)),
            }
        }
        once("option", &s.options)?;
        let as_of = s.as_of.as_ref().map(|a| self.as_of(a)).transpose()?;
        let up_to = s.up_to.as_ref().map(|e| self.time(e)).transpose()?;
        let column = |i: &ast::Ident| {
            desc.names
                .iter()
                .position(|n| *n == i.name)
                .ok_or_else(|| SqlError::new(state::UNDEFINED_COLUMN, format!("column \"{}\" does not exist", i.name)).at(i.pos))
        };
        let mut result = RelDesc::default();
        let mut add = |n: &str, t: ColType| {
            result.names.push(n.to_owned());
            result.types.push(t);
        };
        add("mz_timestamp", SqlType::Numeric.not_null());
        if progress {
            add("mz_progressed", SqlType::Bool.not_null());
        }
        let all = || desc.names.iter().zip(&desc.types).enumerate();
        let output = match &s.output {
            ast::SubscribeOutput::Diffs | ast::SubscribeOutput::WithinTimestampOrderBy(_) => {
                add("mz_diff", SqlType::Int8.nullable());
                for (_, (n, t)) in all() {
                    add(n, t.clone().with_nullable(true));
                }
                match &s.output {
                    ast::SubscribeOutput::WithinTimestampOrderBy(items) => {
                        let mut order = Vec::new();
                        for o in items {
                            let c = match &*o.expr.kind {
                                ast::ExprKind::Column(parts) if parts.len() == 1 && parts[0].name == "mz_diff" => 0,
                                ast::ExprKind::Column(parts) if parts.len() == 1 => column(&parts[0])? + 1,
                                _ => match order::position_of(&o.expr, desc.names.len(), "ORDER BY")? {
                                    Some(i) => i + 1,
                                    None => return Err(SqlError::unsupported("ORDER BY an expression in SUBSCRIBE", "order by columns").at(o.expr.pos)),
                                },
                            };
                            order.push(agg::order_of(o, c, o.expr.pos)?);
                        }
                        SubscribeForm::WithinTimestampOrderBy(order)
                    }
                    _ => SubscribeForm::Diffs,
                }
            }
            ast::SubscribeOutput::EnvelopeUpsert(key) => {
                let key = self.key_columns(key, "the key", &column)?;
                add("mz_state", SqlType::Text.nullable());
                for k in &key {
                    add(&desc.names[*k], desc.types[*k].clone().with_nullable(true));
                }
                for (i, (n, t)) in all() {
                    if !key.contains(&i) {
                        add(n, t.clone().with_nullable(true));
                    }
                }
                SubscribeForm::Upsert { key }
            }
            ast::SubscribeOutput::EnvelopeDebezium(key) => {
                let key = self.key_columns(key, "the key", &column)?;
                add("mz_state", SqlType::Text.nullable());
                for k in &key {
                    add(&desc.names[*k], desc.types[*k].clone().with_nullable(true));
                }
                for side in ["before", "after"] {
                    for (i, (n, t)) in all() {
                        if !key.contains(&i) {
                            add(&format!("{side}_{n}"), t.clone().with_nullable(true));
                        }
                    }
                }
                SubscribeForm::Debezium { key }
            }
        };
        Ok(SubscribePlan { relation, query, desc, result, as_of, up_to, snapshot, progress, output, depends_on: self.depends_on() })
    }

    fn fetch(&self, f: &ast::Fetch) -> Result<Plan, SqlError> {
        let mut timeout_micros = None;
        for o in &f.options {
            match (o.name.as_str(), &o.value) {
                ("timeout", ast::OptionValue::String(s) | ast::OptionValue::Interval(s) | ast::OptionValue::Word(s)) => {
                    let text = HirScalar::Literal(Value::Text(s.clone()), SqlType::Unknown.not_null());
                    match self.coerce(text, &SqlType::Interval.nullable(), CastContext::Explicit, o.pos)? {
                        HirScalar::Literal(Value::Interval(i), _) => {
                            let micros = i.span_micros();
                            timeout_micros = Some(i64::try_from(micros.max(0)).unwrap_or(i64::MAX));
                        }
                        _ => return Err(SqlError::new(state::INVALID_PARAMETER_VALUE, "timeout must be an interval").at(o.pos)),
                    }
                }
                ("timeout", _) => return Err(SqlError::new(state::INVALID_PARAMETER_VALUE, "timeout must be an interval").at(o.pos)),
                (other, _) => return Err(SqlError::new(state::INVALID_PARAMETER_VALUE, format!("unknown FETCH option \"{other}\"")).at(o.pos)),
            }
        }
        Ok(Plan::Fetch { name: f.name.name.clone(), direction: f.direction, is_move: f.is_move, timeout_micros })
    }

    fn show(&self, s: &ast::ShowObjects) -> Result<Plan, SqlError> {
        use ast::ShowKind::*;
        if let Some(pos) = s.filter {
            return Err(SqlError::unsupported("SHOW … WHERE", "use LIKE, or select from the catalog").at(pos));
        }
        let (mut schema, mut relation) = (None, None);
        if let Some(from) = &s.from {
            match s.kind {
                Columns | Indexes => {
                    let r = self.resolve_relation(from);
                    match (r, s.kind) {
                        (Ok(r), _) => relation = Some(crate::catalog::ObjectRef { id: r.id, name: r.name.clone() }),
                        (Err(_), Indexes) if from.parts.len() == 1 && self.catalog.schema_exists(from.last()) => schema = Some(from.last().to_owned()),
                        (Err(e), _) => return Err(e),
                    }
                }
                _ => {
                    if !self.catalog.schema_exists(from.last()) {
                        return Err(SqlError::new(state::INVALID_SCHEMA_NAME, format!("schema \"{}\" does not exist", from.last())).at(from.pos));
                    }
                    schema = Some(from.last().to_owned());
                }
            }
        }
        let desc = match s.kind {
            Columns if relation.is_none() => return Err(SqlError::new(state::SYNTAX_ERROR, "SHOW COLUMNS requires FROM")),
            Columns => {
                let mut d = text_columns(&["name", "nullable", "type", "comment"]);
                d.types[1] = SqlType::Bool.not_null();
                d
            }
            Indexes => {
                let mut d = text_columns(&["name", "on", "cluster", "key", "comment"]);
                d.types[3] = SqlType::Text.array_of().not_null();
                d
            }
            Sources => text_columns(&["name", "type", "cluster", "comment", "status", "detail"]),
            Sinks => text_columns(&["name", "type", "cluster", "comment"]),
            MaterializedViews => text_columns(&["name", "cluster", "comment"]),
            Connections | Objects => text_columns(&["name", "type", "comment"]),
            _ => text_columns(&["name", "comment"]),
        };
        Ok(Plan::Show(ShowPlan { kind: s.kind, schema, relation, like: s.like.clone(), desc }))
    }
}

/// Whether an item writes.
pub fn writes(w: &ast::With) -> bool {
    w.ctes.iter().any(|c| matches!(c.query, ast::CteBody::Modify(_)))
}

/// Errors: 0A000 if an item of the query's WITH writes.
pub fn read_only(q: &ast::Query, message: &str) -> Result<(), SqlError> {
    match q.with.as_ref().is_some_and(writes) {
        true => Err(SqlError::new(state::FEATURE_NOT_SUPPORTED, message)),
        false => Ok(()),
    }
}

/// Options as text, for those that the executor reads itself.
pub fn plain_options(options: &[ast::DdlOption]) -> Vec<(String, String)> {
    options.iter().map(|o| (o.name.clone(), option_text(&o.value))).collect()
}

/// Errors: an option (`what`, the word for it) that is written twice, 22023.
pub fn once(what: &str, options: &[ast::DdlOption]) -> Result<(), SqlError> {
    match options.iter().enumerate().find(|(i, o)| options[..*i].iter().any(|before| before.name == o.name)) {
        Some((_, o)) => Err(SqlError::new(state::INVALID_PARAMETER_VALUE, format!("{what} \"{}\" specified more than once", o.name)).at(o.pos)),
        None => Ok(()),
    }
}

/// What a parameter of PostgreSQL's storage takes.
enum StorageValue {
    Bool,
    Integer(i64, i64),
    Real(f64, f64),
    Words(&'static [&'static str]),
}

/// Tests parameters of PostgreSQL's storage, which have no effect here. Errors: 22023 for a name that it does not know or that is given twice, or a value that the parameter does not take.
pub fn storage_parameters(options: &[ast::DdlOption], of_index: bool) -> Result<(), SqlError> {
    const MAX: i64 = i32::MAX as i64;
    let invalid = |m: String| SqlError::new(state::INVALID_PARAMETER_VALUE, m);
    for o in options {
        let name = o.name.as_str();
        let takes = match (name.strip_prefix("toast.").filter(|_| !of_index).unwrap_or(name), of_index) {
            ("fillfactor", _) => StorageValue::Integer(10, 100),
            ("deduplicate_items" | "fastupdate" | "autosummarize", true) => StorageValue::Bool,
            ("buffering", true) => StorageValue::Words(&["auto", "on", "off"]),
            ("gin_pending_list_limit", true) => StorageValue::Integer(64, MAX),
            ("pages_per_range", true) => StorageValue::Integer(1, 131_072),
            ("toast_tuple_target", false) => StorageValue::Integer(128, 8_160),
            ("parallel_workers", false) => StorageValue::Integer(0, 1_024),
            ("user_catalog_table" | "vacuum_truncate" | "oids" | "autovacuum_enabled", false) => StorageValue::Bool,
            ("vacuum_index_cleanup", false) => StorageValue::Words(&["auto", "on", "off", "true", "false", "yes", "no", "1", "0"]),
            ("autovacuum_vacuum_threshold" | "autovacuum_analyze_threshold", false) => StorageValue::Integer(0, MAX),
            ("log_autovacuum_min_duration" | "autovacuum_vacuum_insert_threshold", false) => StorageValue::Integer(-1, MAX),
            ("autovacuum_vacuum_scale_factor" | "autovacuum_vacuum_insert_scale_factor" | "autovacuum_analyze_scale_factor", false) => {
                StorageValue::Real(0.0, 100.0)
            }
            ("autovacuum_vacuum_cost_delay", false) => StorageValue::Real(-1.0, 100.0),
            ("autovacuum_vacuum_cost_limit", false) => StorageValue::Integer(1, 10_000),
            ("autovacuum_freeze_min_age" | "autovacuum_multixact_freeze_min_age", false) => StorageValue::Integer(0, 1_000_000_000),
            ("autovacuum_freeze_max_age", false) => StorageValue::Integer(100_000, 2_000_000_000),
            ("autovacuum_multixact_freeze_max_age", false) => StorageValue::Integer(10_000, 2_000_000_000),
            ("autovacuum_freeze_table_age" | "autovacuum_multixact_freeze_table_age", false) => StorageValue::Integer(0, 2_000_000_000),
            _ => return Err(invalid(format!("unrecognized parameter \"{name}\""))),
        };
        let text = option_text(&o.value);
        let outside = |low: String, high: String| {
            let e = invalid(format!("value {text} out of bounds for option \"{name}\""));
            Err(e.with_detail(format!("Valid values are between \"{low}\" and \"{high}\".")))
        };
        match takes {
            StorageValue::Bool => drop(option_bool(o).map_err(|e| SqlError { position: None, ..e })?),
            StorageValue::Integer(low, high) => match text.parse::<i64>() {
                Err(_) => return Err(invalid(format!("invalid value for integer option \"{name}\": {text}"))),
                Ok(v) if !(low..=high).contains(&v) => return outside(low.to_string(), high.to_string()),
                Ok(_) => {}
            },
            StorageValue::Real(low, high) => match text.parse::<f64>() {
                Err(_) => return Err(invalid(format!("invalid value for floating point option \"{name}\": {text}"))),
                Ok(v) if !(low..=high).contains(&v) => return outside(format!("{low:.6}"), format!("{high:.6}")),
                Ok(_) => {}
            },
            StorageValue::Words(words) if !words.contains(&text.to_ascii_lowercase().as_str()) => {
                let e = invalid(format!("invalid value for enum option \"{name}\": {text}"));
                return Err(e.with_detail("Valid values are \"on\", \"off\", and \"auto\"."));
            }
            StorageValue::Words(_) => {}
        }
    }
    once("parameter", options).map_err(|e| SqlError { position: None, ..e })
}

/// Those parameters that a table shows: OIDs are none, and what is said of its values that stand elsewhere is shown of these.
pub fn kept_parameters(options: &[ast::DdlOption]) -> Vec<(String, String)> {
    plain_options(options).into_iter().filter(|o| o.0 != "oids" && !o.0.starts_with("toast.")).collect()
}

pub fn option_text(v: &ast::OptionValue) -> String {
    match v {
        ast::OptionValue::None => "true".into(),
        ast::OptionValue::String(s) | ast::OptionValue::Number(s) | ast::OptionValue::Word(s) | ast::OptionValue::Interval(s) => s.clone(),
        ast::OptionValue::Bool(b) => b.to_string(),
        ast::OptionValue::Secret(n) | ast::OptionValue::Name(n) => n.to_string(),
        ast::OptionValue::List(l) => l.iter().map(option_text).collect::<Vec<_>>().join(","),
    }
}

/// A boolean option; its bare name means true.
pub fn option_bool(o: &ast::DdlOption) -> Result<bool, SqlError> {
    match option_text(&o.value).to_ascii_lowercase().as_str() {
        "true" | "on" | "1" | "yes" | "t" => Ok(true),
        "false" | "off" | "0" | "no" | "f" => Ok(false),
        other => Err(SqlError::new(state::INVALID_PARAMETER_VALUE, format!("invalid value for boolean option \"{}\": {other}", o.name)).at(o.pos)),
    }
}

/// The identifier, quoted where it has to be.
pub fn quote_ident(s: &str) -> String {
    crate::parse::quote_ident(s)
}

fn reads_relation(h: &Hir) -> bool {
    matches!(h, Hir::Get { .. }) || crate::lower::children(h).into_iter().any(reads_relation)
}

/// Whether the rows are those of one call of a function, each taken by itself: they come in the function's order.
fn is_one_call(h: &Hir) -> bool {
    let alone = |es: &[HirScalar]| !es.iter().any(crate::lower::has_subquery);
    match h {
        Hir::CallTable { .. } => true,
        Hir::Join { left, right, .. } => **left == super::from::unit() && is_one_call(right),
        Hir::Project { input, .. } => is_one_call(input),
        Hir::Map { input, scalars } => alone(scalars) && is_one_call(input),
        Hir::Filter { input, predicates } => alone(predicates) && is_one_call(input),
        _ => false,
    }
}

/// What to do instead of a statement that there is not.
fn instead_of(what: &str) -> &'static str {
    match what.rsplit(' ').next().unwrap_or_default() {
        "FUNCTION" | "PROCEDURE" | "AGGREGATE" | "CALL" => "write the expression in a view, or the steps in a DO block",
        "TRIGGER" | "RULE" => "a materialized view keeps what follows from a table, SUBSCRIBE tells of its changes",
        "ROLE" | "USER" | "GROUP" | "POLICY" | "GRANT" | "REVOKE" => "every user that is let in may do everything: leave it out",
        "EXTENSION" => "leave it out: what is built in stands in docs/sql/README.md",
        "PUBLICATION" => "SUBSCRIBE, also through COPY, tells of changes",
        "SERVER" | "FOREIGN" => "CREATE SOURCE reads from Kafka, PostgreSQL and files",
        _ => "docs/sql/README.md lists the statements that there are",
    }
}
