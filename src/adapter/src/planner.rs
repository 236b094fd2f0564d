//! Plans of catalog objects, and what planning asks of the catalog.
//!
//! ```text
//!   text ─parse─► statement ─plan (SessionCatalog)─► HIR ─lower─► MIR ─optimize─► MIR ─physical─► LIR + imports
//! ```
//!
//! Plans of views are derived from their text and kept by id; they are never stored (DECISIONS 24).

use crate::catalog::{Catalog, Item, ItemKind, Namespace};
use crate::settings::{CapturedSettings, Settings};
use crate::Shared;
use expr::{EvalCtx, Scalar};
use optimize::OptimizeCtx;
use parking_lot::Mutex;
use plan::{Id, Mir};
use repr::error::state;
use repr::{GlobalId, SqlError, SqlType};
use sql::ast::ObjectKind;
use sql::catalog::{FullName, ObjectRef, Relation, RelationKind, SqlCatalog, TableDef};
use sql::hir::{Hir, HirScalar};
use sql::plan::Plan;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

pub const DATABASE: &str = "riverdelta";

/// Plans by object. Entries of dropped objects are forgotten; ids are never reused.
#[derive(Default)]
pub struct Planner {
    views: Mutex<HashMap<GlobalId, Arc<Hir>>>,
    mirs: Mutex<HashMap<GlobalId, Arc<Mir>>>,
    /// Materialized views that never take a row back.
    growing: Mutex<HashMap<GlobalId, bool>>,
    keys: Mutex<HashMap<GlobalId, Arc<Vec<Scalar>>>>,
    tables: Mutex<HashMap<GlobalId, Arc<TableExprs>>>,
    /// Indexes that do not run.
    withdrawn: Mutex<BTreeSet<GlobalId>>,
}

/// Bound expressions of a table.
#[derive(Debug, Default)]
pub struct TableExprs {
    pub defaults: Vec<Option<HirScalar>>,
    pub generated: Vec<Option<HirScalar>>,
    pub checks: Vec<(String, HirScalar)>,
    pub computed_keys: Vec<sql::catalog::ComputedKey>,
}

impl Planner {
    /// The plan that a session has made of a new object.
    pub fn remember(&self, id: GlobalId, mir: Arc<Mir>) {
        self.mirs.lock().insert(id, mir);
    }

    pub fn forget(&self, id: GlobalId) {
        self.forget_text(id);
        self.mirs.lock().remove(&id);
        self.growing.lock().remove(&id);
        self.withdrawn.lock().remove(&id);
    }

    /// An index is not to be read any more.
    pub fn withdraw(&self, id: GlobalId) {
        self.withdrawn.lock().insert(id);
    }

    /// The object's text or names have changed; what runs goes on.
    pub fn forget_text(&self, id: GlobalId) {
        self.views.lock().remove(&id);
        self.keys.lock().remove(&id);
        self.tables.lock().remove(&id);
    }

    /// Whether some maintained plan has a temporal filter: time must advance for it.
    pub fn any_temporal(&self) -> bool {
        self.mirs.lock().values().any(|m| reads_time(m))
    }

    /// What a plain view stands for.
    pub fn view_hir(&self, catalog: &Arc<Catalog>, item: &Item) -> Result<Arc<Hir>, SqlError> {
        if let Some(h) = self.views.lock().get(&item.id) {
            return Ok(h.clone());
        }
        let (ItemKind::View { query, .. } | ItemKind::MaterializedView { query, .. }) = &item.kind else {
            return Err(SqlError::internal(format!("{} is not a view", item.name)));
        };
        let hir = Arc::new(self.bind_query(catalog, query, &item.captured, None)?);
        self.views.lock().insert(item.id, hir.clone());
        Ok(hir)
    }

    /// Binds a stored query. `opaque`: a relation that is taken as it is, even if it is a view.
    fn bind_query(&self, catalog: &Arc<Catalog>, query: &str, captured: &CapturedSettings, opaque: Option<GlobalId>) -> Result<Hir, SqlError> {
        let ctx = captured_ctx(captured, catalog);
        let names = SessionCatalog { catalog: catalog.clone(), planner: self, search_path: captured.search_path.clone(), temp_schema: None, opaque, ctx };
        match plan_one(query, &names)? {
            Plan::Select(s) => Ok(s.into_relation()),
            _ => Err(SqlError::internal("a view's text is not a query")),
        }
    }

    /// The optimized plan of a materialized view.
    pub fn view_mir(&self, catalog: &Arc<Catalog>, item: &Item) -> Result<Arc<Mir>, SqlError> {
        if let Some(m) = self.mirs.lock().get(&item.id) {
            return Ok(m.clone());
        }
        let hir = self.view_hir(catalog, item)?;
        let ctx = captured_ctx(&item.captured, catalog);
        let (mir, _) = self.maintained(catalog, (*hir).clone(), &ctx)?;
        let mir = Arc::new(mir);
        self.mirs.lock().insert(item.id, mir.clone());
        Ok(mir)
    }

    /// Lowers and optimizes what is to be maintained. Returns notices too.
    /// Errors: 0A000 if it reads system relations.
    pub fn maintained(&self, catalog: &Catalog, hir: Hir, ctx: &EvalCtx) -> Result<(Mir, Vec<String>), SqlError> {
        let mut mir = sql::lower(hir)?;
        with_source_errors(catalog, &mut mir)?;
        if let Some(id) = mir.global_ids().into_iter().find(|id| catalog.is_builtin(*id)) {
            let name = crate::builtin::name_of(id).or_else(|| catalog.item(id).map(|i| i.name.clone())).unwrap_or_default();
            return Err(SqlError::unsupported(format!("reading \"{name}\" in a maintained object"), "read system relations and sequences with SELECT"));
        }
        let names = |id: GlobalId| catalog.item(id).map_or_else(|| id.to_string(), |i| i.name.clone());
        // What a plan may be does not depend on it.
        let octx = OptimizeCtx { one_off: false, ctx, disable: false, names: &names, grows: &|_| false };
        let mir = optimize::optimize(mir, &octx)?;
        // Planned here too: what cannot be maintained is refused before anything is durable.
        let planned = optimize::plan_dataflow(&mir, &octx, &|_| vec![])?;
        if let Some(e) = dataflow::render::unsupported(&planned.lir) {
            return Err(e);
        }
        Ok((mir, planned.notices))
    }

    /// Whether a relation never takes a row back: what a source appends, and the views that only pass rows on.
    pub fn grows(&self, catalog: &Arc<Catalog>, id: GlobalId) -> bool {
        let Some(item) = catalog.item(id) else { return false };
        match &item.kind {
            ItemKind::Source(s) => s.connector.only_appends(),
            ItemKind::SourceTable { source, .. } | ItemKind::Errors { source } => self.grows(catalog, *source),
            ItemKind::MaterializedView { .. } => {
                if let Some(known) = self.growing.lock().get(&id) {
                    return *known;
                }
                let grows = self.view_mir(catalog, item).is_ok_and(|mir| optimize::only_grows(&mir, &Default::default(), &|g| self.grows(catalog, g)));
                self.growing.lock().insert(id, grows);
                grows
            }
            _ => false,
        }
    }

    /// A relation as a plan: a plain view's query, else a read of the object.
    pub fn relation_mir(&self, catalog: &Arc<Catalog>, id: GlobalId) -> Result<Mir, SqlError> {
        let item = catalog.item(id).ok_or_else(|| crate::vanished("the relation"))?;
        if matches!(item.kind, ItemKind::View { .. }) {
            return Ok((*self.view_mir(catalog, item)?).clone());
        }
        let mut mir = Mir::Get { id: Id::Global(id), types: item.desc.types.clone(), keys: item.desc.keys.clone() };
        with_source_errors(catalog, &mut mir)?;
        Ok(mir)
    }

    /// The key expressions of an index, bound again from its statement.
    pub fn index_key(&self, catalog: &Arc<Catalog>, item: &Item) -> Result<Arc<Vec<Scalar>>, SqlError> {
        if let Some(k) = self.keys.lock().get(&item.id) {
            return Ok(k.clone());
        }
        let ItemKind::Index { on, key, .. } = &item.kind else {
            return Err(SqlError::internal(format!("{} is not an index", item.name)));
        };
        let keys = Arc::new(self.bind_over(catalog, *on, key, &item.captured)?);
        self.keys.lock().insert(item.id, keys.clone());
        Ok(keys)
    }

    /// The keys of a unique index over its table's row, and its condition.
    pub fn computed_key(
        &self,
        catalog: &Arc<Catalog>,
        item: &Item,
        key: &crate::catalog::ComputedKey,
    ) -> Result<(Vec<Scalar>, Option<Scalar>, EvalCtx), SqlError> {
        let texts: Vec<String> = key.keys.iter().chain(&key.filter).cloned().collect();
        let mut keys = self.bind_over(catalog, item.id, &texts, &item.captured)?;
        let filter = if key.filter.is_some() { keys.pop() } else { None };
        Ok((keys, filter, captured_ctx(&item.captured, catalog)))
    }

    /// Expressions over a relation's row.
    fn bind_over(&self, catalog: &Arc<Catalog>, on: GlobalId, texts: &[String], captured: &CapturedSettings) -> Result<Vec<Scalar>, SqlError> {
        let base = catalog.item(on).ok_or_else(|| SqlError::internal("the relation is gone"))?;
        let query = format!("SELECT {} FROM {}", texts.join(", "), qualified(&base.schema, &base.name));
        let mir = sql::lower(self.bind_query(catalog, &query, captured, Some(on))?)?;
        row_exprs(&mir).ok_or_else(|| SqlError::unsupported("this key expression", "use expressions over the relation's columns"))
    }

    /// Defaults and checks of a table, bound.
    pub fn table_exprs(&self, catalog: &Arc<Catalog>, item: &Item) -> Result<Arc<TableExprs>, SqlError> {
        if let Some(t) = self.tables.lock().get(&item.id) {
            return Ok(t.clone());
        }
        let ItemKind::Table(table) = &item.kind else { return Ok(Arc::default()) };
        let ctx = captured_ctx(&item.captured, catalog);
        let names = SessionCatalog {
            catalog: catalog.clone(),
            planner: self,
            search_path: item.captured.search_path.clone(),
            temp_schema: None,
            opaque: Some(item.id),
            ctx,
        };
        let (mut defaults, mut generated) = (Vec::new(), Vec::new());
        for (text, ty) in table.defaults.iter().zip(&item.desc.types) {
            defaults.push(match text {
                Some(t) => Some(sql::plan::bind_default(t, &repr::RelDesc::default(), ty, &names)?),
                None => sql::plan::implied_default(ty, &names)?,
            });
        }
        for (text, ty) in table.generated.iter().zip(&item.desc.types) {
            generated.push(text.as_ref().map(|t| sql::plan::bind_default(t, &item.desc, ty, &names)).transpose()?);
        }
        let mut checks = Vec::new();
        for (name, text) in &table.checks {
            checks.push((name.clone(), sql::plan::bind_scalar(text, &item.desc, &names)?));
        }
        let mut computed_keys = Vec::new();
        for k in &table.computed_keys {
            let bind = |text: &String| sql::plan::bind_scalar(text, &item.desc, &names);
            let keys = k.keys.iter().map(bind).collect::<Result<_, _>>()?;
            computed_keys.push(sql::catalog::ComputedKey {
                name: k.name.clone(),
                keys,
                filter: k.filter.as_ref().map(bind).transpose()?,
                equal_nulls: k.equal_nulls,
            });
        }
        let exprs = Arc::new(TableExprs { defaults, generated, checks, computed_keys });
        self.tables.lock().insert(item.id, exprs.clone());
        Ok(exprs)
    }

    /// Arrangements of a relation: (index, key over its row). The default one of a materialized view comes first.
    pub fn indexes_on(&self, catalog: &Arc<Catalog>, on: GlobalId) -> Vec<(GlobalId, Vec<Scalar>)> {
        let mut out = Vec::new();
        let Some(item) = catalog.item(on) else { return out };
        if matches!(item.kind, ItemKind::MaterializedView { .. } | ItemKind::ViewErrors { .. }) {
            out.push((on, default_key(item)));
        }
        for d in catalog.dependants(on) {
            if matches!(&d.kind, ItemKind::Index { on: base, .. } if *base == on) && !self.withdrawn.lock().contains(&d.id) {
                if let Ok(key) = self.index_key(catalog, d) {
                    out.push((d.id, (*key).clone()));
                }
            }
        }
        out
    }

    /// The physical plan of a maintained dataflow and what it imports, given the arrangements that run.
    pub fn physical(&self, catalog: &Arc<Catalog>, mir: &Mir, ctx: &EvalCtx, indexes: optimize::Indexes<'_>) -> Result<optimize::Dataflow, SqlError> {
        let octx = OptimizeCtx { one_off: false, ctx, disable: false, names: &|id| id.to_string(), grows: &|id| self.grows(catalog, id) };
        optimize::plan_dataflow(mir, &octx, indexes)
    }

    /// Replaces materialized views by their queries wherever they are `written` or a shard below is, so that a transaction sees its own writes through them.
    pub fn expand(&self, catalog: &Arc<Catalog>, mir: &mut Mir, written: &dyn Fn(GlobalId) -> bool) -> Result<(), SqlError> {
        let mut locals = mir.max_local();
        self.expand_with(catalog, mir, written, &mut locals)
    }

    /// `locals`: the largest number of a binding in the whole plan.
    fn expand_with(&self, catalog: &Arc<Catalog>, mir: &mut Mir, written: &dyn Fn(GlobalId) -> bool, locals: &mut u64) -> Result<(), SqlError> {
        if let Mir::Get { id: Id::Global(id), .. } = mir {
            let id = *id;
            if let Some(item) = catalog.item(id) {
                let touched = || written(id) || catalog.input_shards([id]).into_iter().any(written);
                if matches!(item.kind, ItemKind::MaterializedView { quarantine: true, .. } | ItemKind::ViewErrors { .. }) && touched() {
                    let what =
                        format!("reading \"{}\", a view with ON ERROR = 'quarantine', in a transaction that has changed what it is made from", item.name);
                    return Err(SqlError::unsupported(what, "read it after COMMIT"));
                }
                if matches!(item.kind, ItemKind::MaterializedView { .. }) && touched() {
                    *mir = (*self.view_mir(catalog, item)?).clone();
                    let by = *locals;
                    *locals += mir.max_local();
                    mir.shift_locals(by);
                    return self.expand_with(catalog, mir, written, locals);
                }
            }
        }
        for c in mir.children_mut() {
            self.expand_with(catalog, c, written, locals)?;
        }
        Ok(())
    }
}

/// Where a plan reads a source that is declared `ON ERROR = 'fail'`, makes each record that is listed as undecodable an error of the relation:
/// rows of the errors relation go through an expression that raises. So errors come, and heal, as rows do.
pub fn with_source_errors(catalog: &Catalog, mir: &mut Mir) -> Result<(), SqlError> {
    if let Mir::Get { id: Id::Global(id), types, .. } = mir {
        let Some(item) = catalog.item(*id) else { return Ok(()) };
        let ItemKind::Source(source) = &item.kind else { return Ok(()) };
        if !source.fail_on_error {
            return Ok(());
        }
        let func = expr::func::internal("record_error").ok_or_else(|| SqlError::internal("record_error is missing"))?;
        let listed = ingest::errors_desc();
        let column = |name: &str| {
            listed.names.iter().position(|n| n == name).map(Scalar::Column).ok_or_else(|| SqlError::internal("an errors relation without columns"))
        };
        let args = vec![column("position")?, column("reason")?, Scalar::literal(repr::Value::text(&item.name), SqlType::Text)];
        let raise = |ty: repr::ColType| Scalar::Call { func, args: args.clone(), ty };
        let n = listed.arity();
        let failing = Mir::Get { id: Id::Global(source.errors), types: listed.types.clone(), keys: vec![] }
            .filter(vec![raise(SqlType::Bool.not_null())])
            .map(types.iter().cloned().map(raise).collect())
            .project((n..n + types.len()).collect());
        let rows = std::mem::replace(mir, Mir::unit());
        *mir = rows.union(failing);
        return Ok(());
    }
    for c in mir.children_mut() {
        with_source_errors(catalog, c)?;
    }
    Ok(())
}

/// The key of a materialized view's own arrangement: a known unique key, else the whole row.
pub fn default_key(item: &Item) -> Vec<Scalar> {
    let columns = match item.desc.keys.iter().min_by_key(|k| k.len()) {
        Some(k) => k.clone(),
        None => (0..item.desc.arity()).collect(),
    };
    columns.into_iter().map(Scalar::Column).collect()
}

/// Whether a plan's result changes as time goes by.
fn reads_time(mir: &Mir) -> bool {
    let scalars: Vec<&Scalar> = match mir {
        Mir::Map { scalars, .. } | Mir::Filter { predicates: scalars, .. } => scalars.iter().collect(),
        _ => vec![],
    };
    let mut found = false;
    for s in scalars {
        s.visit(&mut |x| {
            if let Scalar::Call { func, .. } = x {
                found |= matches!(func.name, "now" | "mz_now" | "transaction_timestamp" | "statement_timestamp");
            }
        });
    }
    found || mir.children().into_iter().any(reads_time)
}

/// The output columns of a chain of maps and projections, as expressions over what lies below it.
pub fn row_exprs(mir: &Mir) -> Option<Vec<Scalar>> {
    match mir {
        Mir::Get { types, .. } | Mir::Constant { types, .. } => Some((0..types.len()).map(Scalar::Column).collect()),
        Mir::Map { input, scalars } => {
            let mut columns = row_exprs(input)?;
            for s in scalars {
                let mut s = s.clone();
                s.substitute(&columns);
                columns.push(s);
            }
            Some(columns)
        }
        Mir::Project { input, outputs } => {
            let columns = row_exprs(input)?;
            Some(outputs.iter().map(|o| columns[*o].clone()).collect())
        }
        _ => None,
    }
}

/// Parses and plans a text that holds one statement without parameters.
pub fn plan_one(text: &str, names: &dyn SqlCatalog) -> Result<Plan, SqlError> {
    let mut statements = sql::parse(text)?;
    match statements.len() {
        1 => sql::plan::plan(&statements.remove(0), names, &[]),
        _ => Err(SqlError::internal("stored text holds more than one statement")),
    }
}

/// `"schema"."name"`, quoted where it must be.
pub fn qualified(schema: &str, name: &str) -> String {
    format!("{}.{}", quote(schema), quote(name))
}

pub fn quote(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// The evaluation context of a maintained object.
pub fn captured_ctx(captured: &CapturedSettings, catalog: &Arc<Catalog>) -> EvalCtx {
    let text_search = Some(captured.text_search.clone()).filter(|t| !t.is_empty()).map(|t| ("default_text_search_config".to_owned(), t));
    EvalCtx {
        timezone: captured.timezone.clone(),
        date_style: captured.date_style(),
        interval_style: captured.interval_style(),
        extra_float_digits: captured.extra_float_digits,
        bytea_escape: captured.bytea_escape,
        user: captured.user.clone(),
        database: DATABASE.into(),
        search_path: captured.search_path.clone(),
        catalog: Arc::new(crate::builtin::Names::new(catalog.clone(), captured.search_path.clone(), text_search.into_iter().collect())),
        ..EvalCtx::default()
    }
}

/// What functions of a session's statements reach beside the catalog.
pub struct Handle<'a> {
    pub user: &'a str,
    pub sequences: crate::sequences::Access,
    pub temp_schema: Option<&'a str>,
    pub backends: crate::activity::Access,
}

/// The evaluation context of a session's statement at `now_micros` (since 2000).
pub fn session_ctx(settings: &Settings, catalog: &Arc<Catalog>, session: Handle<'_>, now_micros: i64, statement_micros: i64) -> EvalCtx {
    let search_path = settings.search_path();
    let shown = settings.all().into_iter().map(|(n, v, _)| (n.to_ascii_lowercase(), v)).collect();
    EvalCtx {
        now_micros: Some(now_micros),
        statement_micros: Some(statement_micros),
        timezone: settings.timezone(),
        date_style: settings.date_style(),
        interval_style: settings.interval_style(),
        extra_float_digits: settings.extra_float_digits(),
        bytea_escape: settings.bytea_escape(),
        user: session.user.into(),
        database: DATABASE.into(),
        search_path: search_path.clone(),
        catalog: Arc::new(crate::builtin::Names::new(catalog.clone(), search_path, shown).with_session(session)),
        ..EvalCtx::default()
    }
}

/// The catalog as one session's statement sees it.
pub struct SessionCatalog<'a> {
    pub catalog: Arc<Catalog>,
    pub planner: &'a Planner,
    pub search_path: Vec<String>,
    /// Schema of the session's temporary tables, if it has any: searched first.
    pub temp_schema: Option<String>,
    /// A relation that is taken as it is: its view is not inlined, its table expressions are not looked at.
    pub opaque: Option<GlobalId>,
    pub ctx: EvalCtx,
}

impl SessionCatalog<'_> {
    /// Schemas in which an unqualified name is looked for, in order.
    fn schemas(&self) -> Vec<&str> {
        let named = self.search_path.iter().any(|s| s == "pg_catalog");
        let implicit = if named { None } else { Some("pg_catalog") };
        self.temp_schema.as_deref().into_iter().chain(implicit).chain(self.search_path.iter().map(String::as_str)).collect()
    }

    /// `pg_temp` is the session's own schema.
    fn known_as<'s>(&'s self, schema: &'s str) -> &'s str {
        self.temp_schema.as_deref().filter(|_| schema == "pg_temp").unwrap_or(schema)
    }

    fn find(&self, namespace: Namespace, parts: &[String]) -> Result<Option<Arc<Item>>, SqlError> {
        let (schema, name) = split(parts)?;
        Ok(match schema {
            Some(s) => self.catalog.find(self.known_as(s), namespace, name).cloned(),
            None => self.schemas().into_iter().find_map(|s| self.catalog.find(s, namespace, name).cloned()),
        })
    }

    fn relation(&self, item: &Arc<Item>) -> Result<Relation, SqlError> {
        let kind = match &item.kind {
            ItemKind::Table(_) if self.opaque != Some(item.id) => RelationKind::Table,
            ItemKind::Source(s) if s.self_output.is_none() => RelationKind::Tables,
            ItemKind::SourceTable { .. } | ItemKind::Source(_) | ItemKind::Errors { .. } => RelationKind::Source,
            _ if self.opaque == Some(item.id) => RelationKind::MaterializedView,
            ItemKind::View { .. } => RelationKind::View(self.planner.view_hir(&self.catalog, item)?),
            ItemKind::MaterializedView { .. } | ItemKind::ViewErrors { .. } => RelationKind::MaterializedView,
            ItemKind::Sequence(_) => RelationKind::Sequence,
            _ => RelationKind::Other,
        };
        let exprs = if self.opaque == Some(item.id) { Arc::default() } else { self.planner.table_exprs(&self.catalog, item)? };
        let (unique, def) = match &item.kind {
            ItemKind::Table(t) => (unique(t), table_def(&self.catalog, item, t)),
            _ => (vec![], TableDef::default()),
        };
        Ok(Relation {
            id: item.id,
            oid: item.oid(),
            row_type_oid: if item.is_relation() { item.row_type_oid() } else { 0 },
            name: full_name(item),
            desc: if matches!(kind, RelationKind::Sequence) { crate::builtin::sequence_desc() } else { item.desc.clone() },
            kind,
            defaults: exprs.defaults.clone(),
            checks: exprs.checks.clone(),
            unique,
            computed_keys: exprs.computed_keys.clone(),
            generated: exprs.generated.clone(),
            def,
            view: match &item.kind {
                ItemKind::View { query, check, defaults } => {
                    Some(sql::catalog::ViewDef { query: query.clone(), check: check.map(Into::into), defaults: defaults.clone() })
                }
                _ => None,
            },
        })
    }
}

/// A table whose definition is not the catalog's yet: names and texts, no bound expressions.
pub fn draft_relation(catalog: &Catalog, item: &Item, table: &crate::catalog::Table) -> Relation {
    Relation {
        id: item.id,
        oid: item.oid(),
        row_type_oid: item.row_type_oid(),
        name: full_name(item),
        kind: RelationKind::Table,
        desc: item.desc.clone(),
        defaults: vec![],
        checks: vec![],
        unique: unique(table),
        computed_keys: vec![],
        generated: vec![],
        def: table_def(catalog, item, table),
        view: None,
    }
}

fn unique(t: &crate::catalog::Table) -> Vec<(String, Vec<usize>)> {
    t.primary_key.iter().chain(&t.unique).map(|c| (c.name.clone(), c.columns.clone())).collect()
}

fn table_def(catalog: &Catalog, item: &Item, t: &crate::catalog::Table) -> TableDef {
    let mut identity = vec![None; item.desc.arity()];
    for owned in &t.sequences {
        if let (Some(always), Some(ItemKind::Sequence(s))) = (owned.identity, catalog.item(owned.sequence).map(|i| &i.kind)) {
            identity[owned.column] = Some((always, s.spec()));
        }
    }
    TableDef {
        defaults: t.defaults.clone(),
        generated: t.generated.clone(),
        collations: t.collations.clone(),
        checks: t.checks.clone(),
        identity,
        foreign: t.foreign.iter().map(|f| f.name.clone()).collect(),
        has_primary_key: t.primary_key.is_some(),
        deferral: t.constraints().filter(|k| k.deferrable).map(|k| (k.name.clone(), k.deferred)).collect(),
        include: t.constraints().filter(|k| !k.include.is_empty()).map(|k| (k.name.clone(), k.include.clone())).collect(),
        unique_indexes: t.unique.iter().filter(|k| k.index).map(|k| k.name.clone()).collect(),
        computed_indexes: t.computed_keys.iter().map(|k| (k.name.clone(), k.filter.is_some())).collect(),
        indexes: catalog.dependants(item.id).filter(|d| matches!(d.kind, ItemKind::Index { .. })).map(|d| d.id).collect(),
        comments: item.comments.clone(),
    }
}

pub fn full_name(item: &Item) -> FullName {
    FullName { database: DATABASE.into(), schema: item.schema.clone(), name: item.name.clone() }
}

/// (schema, name) of `[[database.]schema.]name`.
fn split(parts: &[String]) -> Result<(Option<&str>, &str), SqlError> {
    match parts {
        [name] => Ok((None, name)),
        [schema, name] => Ok((Some(schema), name)),
        [database, schema, name] if database == DATABASE => Ok((Some(schema), name)),
        [_, _, _] => Err(SqlError::unsupported(format!("the cross-database reference \"{}\"", parts.join(".")), format!("there is one database, {DATABASE}"))),
        _ => Err(SqlError::new(state::SYNTAX_ERROR, format!("improper qualified name (too many dotted names): {}", parts.join(".")))),
    }
}

impl SqlCatalog for SessionCatalog<'_> {
    fn resolve_relation(&self, parts: &[String]) -> Result<Option<Arc<Relation>>, SqlError> {
        let (schema, name) = split(parts)?;
        let schemas = match schema {
            Some(s) => vec![self.known_as(s)],
            None => self.schemas(),
        };
        for s in schemas {
            if let Some(r) = crate::builtin::relation(s, name, self)? {
                return Ok(Some(r));
            }
            if let Some(item) = self.catalog.find(s, Namespace::Relation, name) {
                return Ok(Some(Arc::new(self.relation(item)?)));
            }
        }
        Ok(None)
    }

    fn resolve_object(&self, kind: ObjectKind, parts: &[String]) -> Option<ObjectRef> {
        let namespace = match kind {
            ObjectKind::Connection => Namespace::Connection,
            ObjectKind::Secret => Namespace::Secret,
            ObjectKind::Type | ObjectKind::Domain => Namespace::Type,
            _ => Namespace::Relation,
        };
        let item = self.find(namespace, parts).ok()??;
        Some(ObjectRef { id: item.id, name: full_name(&item) })
    }

    fn resolve_type(&self, parts: &[String]) -> Option<SqlType> {
        if let Some(ItemKind::Type(t)) = self.find(Namespace::Type, parts).ok()?.as_deref().map(|i| &i.kind) {
            return parts.last().map(|n| type_named(t, n));
        }
        if let Some(row) = self.find(Namespace::Relation, parts).ok()?.and_then(|i| i.row_type()) {
            return Some(row);
        }
        array_named(parts, |element| self.resolve_domain(element).map(|d| d.1.as_type()).or_else(|| self.resolve_type(element)))
    }

    fn resolve_domain(&self, parts: &[String]) -> Option<(GlobalId, Arc<repr::types::Domain>)> {
        match self.find(Namespace::Type, parts).ok()?.as_deref() {
            Some(Item { id, kind: ItemKind::Domain(d), .. }) => Some((*id, d.clone())),
            _ => None,
        }
    }

    fn domain_by_oid(&self, oid: u32) -> Option<(GlobalId, Arc<repr::types::Domain>)> {
        match self.catalog.item(GlobalId(oid.into()))? {
            item if item.oid() == oid => match &item.kind {
                ItemKind::Domain(d) => Some((item.id, d.clone())),
                _ => None,
            },
            _ => None,
        }
    }

    fn type_by_oid(&self, oid: u32) -> Option<SqlType> {
        type_by_oid(&self.catalog, oid)
    }

    fn schema_exists(&self, schema: &str) -> bool {
        crate::builtin::is_system_schema(schema) || self.catalog.has_schema(schema)
    }

    fn database(&self) -> &str {
        DATABASE
    }

    fn creation_schema(&self) -> Result<String, SqlError> {
        let found = self.search_path.iter().find(|s| self.catalog.has_schema(s));
        found.cloned().ok_or_else(|| SqlError::new(state::INVALID_SCHEMA_NAME, "no schema has been selected to create in"))
    }

    fn eval_ctx(&self) -> &EvalCtx {
        &self.ctx
    }
}

/// Which type of an item is meant by a name: a range type is found by its multirange's name too.
pub(crate) fn type_named(t: &SqlType, name: &str) -> SqlType {
    match t {
        SqlType::UserRange(r) if name == r.multirange_name => t.range_partner(),
        t => t.clone(),
    }
}

/// The type of arrays that is called as its element type is, with a `_` before it.
pub(crate) fn array_named(parts: &[String], find: impl FnOnce(&[String]) -> Option<SqlType>) -> Option<SqlType> {
    let (name, schema) = parts.split_last()?;
    let element: Vec<String> = schema.iter().cloned().chain([name.strip_prefix('_').filter(|n| !n.is_empty())?.to_owned()]).collect();
    find(&element).filter(|t| t.array_oid() != 0 && !matches!(t, SqlType::Array(_))).map(SqlType::array_of)
}

/// A user-defined type by its OID or its array's, or the row type of a relation.
pub fn type_by_oid(catalog: &Catalog, oid: u32) -> Option<SqlType> {
    catalog.items().find_map(|i| match &i.kind {
        ItemKind::Type(t) if t.oid() == oid => Some(t.clone()),
        ItemKind::Type(t) if t.array_oid() == oid => Some(t.clone().array_of()),
        ItemKind::Domain(d) if d.oid == oid => Some(d.as_type()),
        ItemKind::Domain(d) if d.array_oid == oid => Some(d.as_type().array_of()),
        ItemKind::Type(t @ SqlType::UserRange(r)) if r.multirange_oid == oid => Some(t.range_partner()),
        ItemKind::Type(t @ SqlType::UserRange(r)) if r.multirange_array_oid == oid => Some(t.range_partner().array_of()),
        _ if i.row_type_oid() == oid => i.row_type(),
        _ if i.row_array_oid() == oid => i.row_type().map(SqlType::array_of),
        _ => None,
    })
}

impl Shared {
    /// A new id, unique for ever once the object that gets it is durable.
    pub(crate) fn allocate_id(&self) -> GlobalId {
        GlobalId(self.next_id.fetch_add(1, std::sync::atomic::Ordering::SeqCst))
    }
}
