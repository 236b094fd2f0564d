//! CREATE, DROP, ALTER, COMMENT: from plans to catalog changes.

use super::{Response, Session};
use crate::builtin::quote_if_needed;
use crate::catalog::{deferral_words, Catalog, Constraint, ConstraintComment, IndexDef, Item, ItemKind, Namespace, Table, ITEM_VERSION};
use crate::coordinator::ddl::check_and_apply;
use crate::coordinator::request::{Op, Request, WriteTxn};
use crate::planner::{qualified, quote};
use expr::func::system::with_typmod;
use repr::error::state;
use repr::{GlobalId, RelDesc, SqlError, SqlType};
use sql::ast::ObjectKind;
use sql::catalog::{FullName, ObjectRef};
use sql::plan::{Commented, CreateIndexPlan, CreateTableAsPlan, CreateTablePlan, CreateViewPlan, DropPlan, LikePlan, Plan, RowChecks};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

impl Session {
    pub(super) async fn ddl(&mut self, plan: Plan) -> Result<Response, SqlError> {
        match plan {
            Plan::CreateSchema { name, if_not_exists, owner, elements } => {
                owner.map(|o| self.known_owner(&o)).transpose()?;
                let made = self.create_schema(name.clone(), if_not_exists).await?;
                self.within_schema(&name, elements).await?;
                Ok(made)
            }
            Plan::AlterViewOptions { view, check, flags } => {
                let mut item = self.existing(&view)?;
                if let ItemKind::View { check: old, .. } = &mut item.kind {
                    *old = check.map(Into::into);
                }
                for (name, value) in flags {
                    item.options.retain(|o| o.0 != name);
                    item.options.extend(value.map(|v| (name, v)));
                }
                self.apply(vec![Op::Update { item: Box::new(item) }])?;
                Ok(Response::Tag("ALTER VIEW".into()))
            }
            Plan::AlterViewDefaults { view, defaults, tag } => {
                let mut item = self.existing(&view)?;
                let n = item.desc.arity();
                if let ItemKind::View { defaults: all, .. } = &mut item.kind {
                    all.resize(n, None);
                    defaults.into_iter().for_each(|(column, text)| all[column] = text);
                }
                self.apply(vec![Op::Update { item: Box::new(item) }])?;
                Ok(Response::Tag(tag.into()))
            }
            Plan::CreateTable(p) => self.create_table(*p).await,
            Plan::CreateTableAs(p) => {
                let count = self.create_table_as(*p).await?;
                Ok(Response::Tag(count.map_or_else(|| "CREATE TABLE AS".into(), |n| format!("SELECT {n}"))))
            }
            Plan::CreateView(p) => self.create_view(*p, false).await,
            Plan::CreateMaterializedView(p) => self.create_view(*p, true).await,
            Plan::CreateIndex(p) => self.create_index(*p).await,
            Plan::CreateType { name, body } => self.create_type(name, body),
            Plan::AlterType(p) => self.alter_type(*p).await,
            Plan::CreateSecret { name, if_not_exists, value } => self.create_secret(name, if_not_exists, value).await,
            Plan::CreateConnection(p) => self.create_connection(*p).await,
            Plan::CreateSource(p) => self.create_source(*p).await,
            Plan::CreateTableFromSource(p) => self.create_table_from_source(*p).await,
            Plan::ValidateConnection(c) => self.validate_connection(&c).await,
            Plan::Drop(p) => self.drop_objects(*p).await,
            Plan::AlterTable(p) => self.alter_table(*p).await,
            Plan::AlterRenameConstraint { table, from, to } => self.rename_constraint(table, &from, to),
            Plan::CreateSequence(p) => self.create_sequence(*p),
            Plan::AlterSequence(p) => self.alter_sequence(*p),
            Plan::AlterRename { object, to, kind } => self.rename(kind, &object, to).await,
            Plan::AlterRenameColumn { kind, relation, column, to } => self.rename_column(kind, relation, column, to).await,
            Plan::AlterSetSchema { kind, object, schema } => self.set_schema(kind, &object, schema).await,
            Plan::AlterSecret { secret, value } => self.alter_secret(&secret, value).await,
            Plan::AlterOwner { kind, owner } => self.alter_owner(kind, &owner),
            Plan::Comment { on, text } => self.comment(on, text.filter(|t| !t.is_empty())),
            Plan::CreateDatabase { .. } => Err(SqlError::unsupported("CREATE DATABASE", "there is one database; use schemas")),
            Plan::CreateSink(_) => Err(SqlError::unsupported("CREATE SINK", "read changes with SUBSCRIBE")),
            Plan::CreateSubscription { .. } | Plan::Acknowledge { .. } => {
                Err(SqlError::unsupported("durable subscriptions", "SUBSCRIBE ... AS OF the last progress continues where a reader stopped, for a minute"))
            }
            Plan::ReplayErrors { .. } => Err(SqlError::unsupported("REPLAY ERRORS", "the raw records are in the source's _errors relation")),
            Plan::AlterRenameSchema { from, to } => self.rename_schema(&from, to),
            Plan::AlterOptions { .. } => Err(SqlError::unsupported("ALTER ... SET", "drop and create the object with the options wanted")),
            other => Err(SqlError::internal(format!("no way to carry out {other:?}"))),
        }
    }

    /// Makes changes in the transaction's catalog; its commit makes them everybody's.
    pub(super) fn apply(&mut self, ops: Vec<Op>) -> Result<(), SqlError> {
        let seen = self.seen();
        let mut catalog = (*self.laid_over(&seen)).clone();
        for op in &ops {
            check_and_apply(&mut catalog, op, &mut storage::Tick::default())?;
        }
        if let Some(o) = self.txn.open() {
            o.ddl_bases.resize(o.ddl.len() + ops.len(), seen.version);
            o.ddl.extend(ops);
        }
        *self.overlay.lock() = None;
        Ok(())
    }

    /// The catalog with the changes of the open transaction. It is one and the same throughout a statement, but for what the statement itself changes.
    pub(super) fn catalog(&self) -> Arc<Catalog> {
        self.laid_over(&self.seen())
    }

    fn seen(&self) -> Arc<Catalog> {
        self.pinned.clone().unwrap_or_else(|| self.shared.catalog())
    }

    fn laid_over(&self, shared: &Arc<Catalog>) -> Arc<Catalog> {
        let ops = self.txn.ddl();
        if ops.is_empty() {
            return shared.clone();
        }
        let mut overlay = self.overlay.lock();
        if let Some((version, catalog)) = &*overlay {
            if *version == shared.version {
                return catalog.clone();
            }
        }
        let mut catalog = (**shared).clone();
        for op in ops {
            // What does not fit what others have done since is an error at commit.
            let _ = check_and_apply(&mut catalog, op, &mut storage::Tick::default());
        }
        let catalog = Arc::new(catalog);
        *overlay = Some((shared.version, catalog.clone()));
        catalog
    }

    /// The transaction's changes to the catalog are not to be.
    pub(super) fn forget_ddl(&mut self, ops: &[Op]) {
        *self.overlay.lock() = None;
        for op in ops {
            if let Op::Create { item, .. } = op {
                self.shared.planner.forget(item.id);
            }
        }
        let temp = self.temp_schema_name();
        self.temp_schema = self.shared.catalog().has_schema(&temp).then_some(temp);
    }

    fn temp_schema_name(&self) -> String {
        format!("pg_temp_{}", self.backend_key().0)
    }

    /// An entry with what all have in common filled in.
    pub(super) fn item(&self, id: GlobalId, name: &FullName, kind: ItemKind, desc: RelDesc, sql: String, deps: Vec<GlobalId>) -> Item {
        Item {
            version: ITEM_VERSION,
            id,
            schema: name.schema.clone(),
            name: name.name.clone(),
            kind,
            desc,
            sql,
            deps,
            rests_on: vec![],
            captured: self.settings.capture(),
            comments: vec![],
            constraint_comments: vec![],
            options: vec![],
            created_at: 0,
        }
    }

    /// Whether the name is taken, with the notice of IF NOT EXISTS if it is and that was said.
    pub(super) fn exists(&mut self, name: &FullName, namespace: Namespace, if_not_exists: bool) -> Result<bool, SqlError> {
        let catalog = self.catalog();
        match catalog.check_free(&name.schema, namespace, &name.name) {
            Ok(()) => Ok(false),
            Err(e) if if_not_exists => {
                let message = format!("{}, skipping", e.message);
                self.notice("NOTICE", SqlError::new(e.code, message));
                Ok(true)
            }
            Err(e) => Err(e),
        }
    }

    async fn create_schema(&mut self, name: String, if_not_exists: bool) -> Result<Response, SqlError> {
        if self.catalog().has_schema(&name) || crate::builtin::is_system_schema(&name) {
            let message = format!("schema \"{name}\" already exists");
            if !if_not_exists {
                return Err(SqlError::new(state::DUPLICATE_SCHEMA, message));
            }
            self.notice("NOTICE", SqlError::new(state::DUPLICATE_SCHEMA, format!("{message}, skipping")));
            return Ok(Response::Tag("CREATE SCHEMA".into()));
        }
        if name.starts_with("pg_") {
            return Err(SqlError::new(state::RESERVED_NAME, format!("unacceptable schema name \"{name}\""))
                .with_detail("The prefix \"pg_\" is reserved for system schemas."));
        }
        let oid = self.shared.allocate_id().0 as u32;
        self.apply(vec![Op::CreateSchema { name, oid }])?;
        Ok(Response::Tag("CREATE SCHEMA".into()))
    }

    async fn create_table(&mut self, mut p: CreateTablePlan) -> Result<Response, SqlError> {
        let tag = Response::Tag("CREATE TABLE".into());
        let mut ops = Vec::new();
        p.temporary |= p.name.schema == "pg_temp";
        if p.temporary {
            p.name.schema = self.temp_schema(&mut ops);
        }
        if self.exists(&p.name, Namespace::Relation, p.if_not_exists)? {
            return Ok(tag);
        }
        let mut item = self.table_item(&p, &mut ops)?;
        let catalog = self.catalog();
        for l in p.like.iter().filter(|l| l.comments) {
            let of_columns = catalog.item(l.rel).into_iter().flat_map(|i| &i.comments).filter(|c| c.0 > 0);
            item.comments.extend(of_columns.map(|(column, text)| (column + l.at as u32, text.clone())));
        }
        ops.push(Op::Create { item: Box::new(item), plan: None });
        self.apply(ops)?;
        for l in p.like.iter().filter(|l| l.indexes) {
            let indexes: Vec<Arc<Item>> =
                catalog.dependants(l.rel).filter(|d| matches!(&d.kind, ItemKind::Index { on, .. } if *on == l.rel)).cloned().collect();
            for index in indexes {
                self.index_like(&index, &p.name, l).await?;
            }
        }
        Ok(tag)
    }

    /// LIKE … INCLUDING INDEXES: an index that is no constraint's, on the table that is made like its own.
    async fn index_like(&mut self, index: &Item, table: &FullName, like: &LikePlan) -> Result<(), SqlError> {
        let catalog = self.catalog();
        let ItemKind::Index { key, def, .. } = &index.kind else { return Ok(()) };
        let unique = match catalog.item(like.rel).map(|i| &i.kind) {
            Some(ItemKind::Table(t)) => t.unique.iter().any(|u| u.index && u.name == index.name) || t.computed_keys.iter().any(|k| k.name == index.name),
            _ => false,
        };
        let keys = key.iter().enumerate().map(|(i, k)| format!("{k} {}", def.order.get(i).map_or("", String::as_str))).collect::<Vec<_>>();
        let text = format!(
            "CREATE {}INDEX ON {}{} ({}){}{}{}",
            if unique { "UNIQUE " } else { "" },
            qualified(&table.schema, &table.name),
            if def.hash { " USING hash" } else { "" },
            keys.join(", "),
            if def.include.is_empty() { String::new() } else { format!(" INCLUDE ({})", def.include.join(", ")) },
            if def.equal_nulls { " NULLS NOT DISTINCT" } else { "" },
            def.filter.as_ref().map_or_else(String::new, |f| format!(" WHERE {f}")),
        );
        let plan = {
            let parsed = sql::parse::parse(&text)?;
            let statement = parsed.first().ok_or_else(|| SqlError::internal("an index without a text"))?;
            sql::plan::plan(statement, &self.names(), &[])?
        };
        let Plan::CreateIndex(plan) = plan else { return Err(SqlError::internal("an index whose text makes none")) };
        let before: BTreeSet<GlobalId> = catalog.items().map(|i| i.id).collect();
        self.create_index(*plan).await?;
        let comment = index.comments.iter().find(|c| c.0 == 0).filter(|_| like.comments);
        let made = self.catalog().items().find(|i| !before.contains(&i.id) && matches!(i.kind, ItemKind::Index { .. })).cloned();
        if let (Some((_, text)), Some(made)) = (comment, made) {
            self.apply(vec![commented((*made).clone(), 0, Some(text.clone()))])?;
        }
        Ok(())
    }

    fn table_item(&self, p: &CreateTablePlan, ops: &mut Vec<Op>) -> Result<Item, SqlError> {
        let constraint = |c: &(String, Vec<usize>, bool)| {
            let deferral = p.deferral.iter().find(|d| d.0 == c.0);
            Constraint {
                name: c.0.clone(),
                columns: c.1.clone(),
                include: p.include.iter().filter(|k| k.0 == c.0).flat_map(|k| k.1.clone()).collect(),
                index: false,
                equal_nulls: p.equal_nulls.contains(&c.0),
                deferrable: deferral.is_some(),
                deferred: deferral.is_some_and(|d| d.1),
            }
        };
        let id = self.shared.allocate_id();
        let mut table = Table {
            defaults: p.defaults.clone(),
            checks: p.checks.clone(),
            generated: p.generated.clone(),
            sequences: vec![],
            primary_key: p.unique.iter().find(|c| c.2).map(constraint),
            unique: p.unique.iter().filter(|c| !c.2).map(constraint).collect(),
            temporary: p.temporary,
            foreign: p.foreign.iter().map(|f| super::foreign::stored(f, id)).collect(),
            computed_keys: vec![],
            collations: p.collations.clone(),
            unchecked: vec![],
            on_commit: p.on_commit.into(),
        };
        self.check_lasting(&table, p.temporary)?;
        for s in &p.sequences {
            self.add_sequence(&p.name, &p.desc.names, &mut table, s, ops);
        }
        let sql = table_sql(&p.name, &p.desc, &table);
        let mut desc = p.desc.clone();
        // A unique constraint lets NULLs repeat: only keys without NULLs identify rows.
        desc.keys.retain(|k| k.iter().all(|c| !desc.types[*c].nullable));
        let catalog = self.catalog();
        let mut deps = user_types(&catalog, &desc);
        // Types and sequences that expressions name; what a table was made like may go.
        let named = |d: &GlobalId| catalog.item(*d).is_some_and(|i| matches!(i.kind, ItemKind::Type(_) | ItemKind::Domain(_) | ItemKind::Sequence(_)));
        deps.extend(p.domains.iter().copied().filter(named));
        deps.extend(table.sequences.iter().map(|s| s.sequence));
        deps.extend(self.sequences_named(&table.defaults).into_iter().filter(|d| !deps.contains(d)).collect::<Vec<_>>());
        Ok(Item { options: p.options.clone(), ..self.item(id, &p.name, ItemKind::Table(table), desc, sql, deps) })
    }

    /// Answers how many rows went in; `None`: not asked for, or the table was there.
    pub(super) async fn create_table_as(&mut self, mut p: CreateTableAsPlan) -> Result<Option<usize>, SqlError> {
        let mut ops = Vec::new();
        let temporary = p.name.schema == "pg_temp";
        if temporary {
            p.name.schema = self.temp_schema(&mut ops);
        }
        if self.exists(&p.name, Namespace::Relation, p.if_not_exists)? {
            return Ok(None);
        }
        let rows = if p.with_data { Some(self.start_select(p.query).await?) } else { None };
        let n = p.desc.arity();
        let table = Table {
            defaults: vec![None; n],
            checks: vec![],
            primary_key: None,
            unique: vec![],
            temporary,
            generated: vec![],
            sequences: vec![],
            foreign: vec![],
            computed_keys: vec![],
            collations: vec![],
            unchecked: vec![],
            on_commit: p.on_commit.into(),
        };
        let mut desc = p.desc;
        desc.keys.clear();
        desc.types.iter_mut().for_each(|t| t.nullable = true);
        let sql = table_sql(&p.name, &desc, &table);
        let deps = user_types(&self.catalog(), &desc);
        let item = Arc::new(self.item(self.shared.allocate_id(), &p.name, ItemKind::Table(table), desc, sql, deps));
        ops.push(Op::Create { item: Box::new((*item).clone()), plan: None });
        self.apply(ops)?;
        let Some(rows) = rows else { return Ok(None) };
        let (_, ctx) = self.statement_ctx();
        self.insert_pieces(&item, rows, &[], &RowChecks::default(), &ctx).await.map(Some)
    }

    async fn create_view(&mut self, mut p: CreateViewPlan, materialized: bool) -> Result<Response, SqlError> {
        let tag = Response::Tag(if materialized { "CREATE MATERIALIZED VIEW" } else { "CREATE VIEW" }.into());
        let catalog = self.catalog();
        let mut ops = Vec::new();
        let temp = self.temp_schema_name();
        let over_temporary = p.depends_on.iter().filter_map(|id| catalog.item(*id)).any(|i| i.schema == temp);
        if materialized && over_temporary {
            return Err(SqlError::new(state::FEATURE_NOT_SUPPORTED, "materialized views must not use temporary tables or views"));
        }
        p.temporary |= p.name.schema == "pg_temp";
        if over_temporary && !p.temporary {
            p.temporary = true;
            self.notice("NOTICE", SqlError::new(repr::SqlState::new("00000"), format!("view \"{}\" will be a temporary view", p.name.name)));
        }
        if p.temporary {
            p.name.schema = self.temp_schema(&mut ops);
        }
        let old = catalog.find(&p.name.schema, Namespace::Relation, &p.name.name).filter(|_| p.or_replace).cloned();
        let mut kept = Vec::new();
        if let Some(old) = &old {
            let fits = matches!((&old.kind, materialized), (ItemKind::View { .. }, false) | (ItemKind::MaterializedView { .. }, true));
            if !fits {
                return Err(SqlError::new(
                    state::WRONG_OBJECT_TYPE,
                    format!("\"{}\" is not a {}", p.name.name, if materialized { "materialized view" } else { "view" }),
                ));
            }
            if !materialized {
                check_replacement(&old.desc, &p.desc)?;
            }
            kept = self.kept_over_replaced(old, &p.depends_on)?;
            if !materialized {
                let origin: Vec<Option<usize>> = (0..p.desc.arity()).map(|i| Some(i).filter(|i| *i < old.desc.arity())).collect();
                kept = kept.into_iter().map(|d| self.reshaped(old, d, &origin, &p.desc.names)).collect::<Result<_, _>>()?;
            }
            let mut gone: Vec<GlobalId> = self.all_dependants(old.id).iter().map(|d| d.id).rev().collect();
            gone.push(old.id);
            ops.push(Op::Drop { ids: gone });
        } else if self.exists(&p.name, Namespace::Relation, p.if_not_exists)? {
            return Ok(tag);
        }
        let (mut quarantine, mut flags) = (false, Vec::new());
        for (name, value) in &p.options {
            match (name.as_str(), value.to_ascii_lowercase().as_str()) {
                ("on error", "quarantine") => quarantine = true,
                ("on error", "strict") => {}
                ("on error", _) => {
                    let m = format!("ON ERROR must be 'strict' or 'quarantine', not '{value}'");
                    return Err(SqlError::new(state::INVALID_PARAMETER_VALUE, m));
                }
                _ if !materialized => {
                    sql::plan::view_flag(name, Some(value))?;
                    flags.push((name.clone(), value.clone()));
                }
                _ => return Err(SqlError::new(state::INVALID_PARAMETER_VALUE, format!("unrecognized parameter \"{name}\""))),
            }
        }
        if quarantine && !materialized {
            return Err(SqlError::unsupported("ON ERROR = 'quarantine' for a view that is not materialized", "write CREATE MATERIALIZED VIEW"));
        }
        let errors_name = FullName { name: format!("{}_errors", p.name.name), ..p.name.clone() };
        let mut desc = p.desc;
        let (kind, plan) = if materialized {
            let (catalog, mut ctx) = self.statement_ctx();
            ctx.now_micros = None;
            ctx.statement_micros = None;
            let (mir, notices) = tokio::task::block_in_place(|| self.shared.planner.maintained(&catalog, p.hir, &ctx))?;
            for n in notices {
                self.notice("NOTICE", SqlError::new(repr::SqlState::new("00000"), n));
            }
            desc.keys = optimize::keys::unique_keys(&mir, &Default::default());
            (ItemKind::MaterializedView { query: p.query_sql, quarantine }, Some(Arc::new(mir)))
        } else {
            // A view that is replaced keeps what it says of its columns.
            let defaults = match old.as_ref().map(|o| &o.kind) {
                Some(ItemKind::View { defaults, .. }) => defaults.clone(),
                _ => vec![],
            };
            (ItemKind::View { query: p.query_sql, check: p.check.map(Into::into), defaults }, None)
        };
        let mut deps: BTreeSet<GlobalId> = p.depends_on.into_iter().filter(|id| !crate::builtin::is_builtin(*id)).collect();
        deps.extend(user_types(&catalog, &desc));
        let view = self.shared.allocate_id();
        let mut item = self.item(view, &p.name, kind, desc, p.create_sql, deps.into_iter().collect());
        item.rests_on = p.rests_on;
        item.options = flags;
        let mut ids: BTreeMap<GlobalId, GlobalId> = BTreeMap::new();
        if let Some(old) = &old {
            item.comments.clone_from(&old.comments);
            ids.insert(old.id, view);
        }
        ops.push(Op::Create { item: Box::new(item), plan });
        if quarantine {
            let names = ["code", "message", "detail", "hint"].map(str::to_string).to_vec();
            let desc = RelDesc { names, types: dataflow::errors::quarantine_types(), keys: vec![] };
            let listed = self.item(self.shared.allocate_id(), &errors_name, ItemKind::ViewErrors { view }, desc, String::new(), vec![view]);
            if let Some(errors) = old.as_ref().and_then(|old| catalog.errors_of_view(old.id)) {
                ids.insert(errors.id, listed.id);
            }
            ops.push(Op::Create { item: Box::new(listed), plan: None });
        }
        self.apply(ops)?;
        if let Some(old) = &old {
            // Ids grow, so each finds what it is made from made again.
            for d in kept.iter().filter(|d| !ids.contains_key(&d.id)).cloned().collect::<Vec<_>>() {
                self.recreate(old, &d, &mut ids)?;
            }
        }
        if quarantine {
            let m = format!("rows of \"{}\" that raise an error are left out and listed in \"{}\"", p.name.name, errors_name.name);
            self.notice("NOTICE", SqlError::new(repr::SqlState::new("00000"), m));
        }
        Ok(tag)
    }

    /// What depends on a view that is to be replaced, what depends on it after it: it is made again over the new one.
    /// Errors: 42P17 if the new query reads what is made from the view; 0A000 for what cannot be made again.
    fn kept_over_replaced(&self, old: &Item, reads: &[GlobalId]) -> Result<Vec<Arc<Item>>, SqlError> {
        let kept = self.all_dependants(old.id);
        if reads.iter().any(|id| *id == old.id || kept.iter().any(|d| d.id == *id)) {
            let m = format!("infinite recursion detected in rules for relation \"{}\"", old.name);
            return Err(SqlError::new(state::INVALID_OBJECT_DEFINITION, m).with_hint("A view cannot read itself; WITH RECURSIVE inside its query can."));
        }
        for d in &kept {
            let made = matches!(d.kind, ItemKind::View { .. } | ItemKind::MaterializedView { .. } | ItemKind::Index { .. } | ItemKind::ViewErrors { .. });
            if !made {
                let what = format!("replacing {}, whose row type {} has,", old.told(), d.told());
                return Err(SqlError::unsupported(what, "drop it and create it again afterwards"));
            }
        }
        Ok(kept)
    }

    async fn create_index(&mut self, p: CreateIndexPlan) -> Result<Response, SqlError> {
        let tag = Response::Tag("CREATE INDEX".into());
        let catalog = self.catalog();
        let schema = p.on_name.schema.clone();
        let taken = |n: &str| catalog.find(&schema, Namespace::Relation, n).is_some();
        let name = p.name.clone().unwrap_or_else(|| sql::plan::object_name(&p.on_name.name, Some(&p.words), "idx", &taken));
        let name = FullName { database: p.on_name.database.clone(), schema, name };
        if self.exists(&name, Namespace::Relation, p.if_not_exists)? {
            return Ok(tag);
        }
        if crate::builtin::is_builtin(p.on) {
            return Err(SqlError::new(state::INSUFFICIENT_PRIVILEGE, format!("permission denied: \"{}\" is a system catalog", p.on_name.name)));
        }
        self.check_unused(p.on, "CREATE INDEX")?;
        if catalog.item(p.on).is_some_and(|i| matches!(i.kind, ItemKind::View { .. })) {
            // A plain view is planned once for its index; what cannot be maintained is refused here.
            let item = catalog.item(p.on).cloned().ok_or_else(|| SqlError::internal("the view is gone"))?;
            self.shared.planner.view_mir(&catalog, &item)?;
        }
        // The table that takes the key is another one.
        let on = if p.unique { self.add_unique(&p, &name.name).await? } else { p.on };
        let def = IndexDef { order: p.order_sql, include: p.include, filter: p.filter_sql, hash: p.hash, equal_nulls: p.equal_nulls };
        let kind = ItemKind::Index { on, key: p.key_sql, def };
        let item = self.item(self.shared.allocate_id(), &name, kind, RelDesc::default(), p.create_sql, vec![on]);
        self.apply(vec![Op::Create { item: Box::new(item), plan: None }])?;
        Ok(tag)
    }

    /// Errors: 55006 for a table that an open cursor of the session reads, itself or through views, or of whose changed rows a constraint is yet to be asked.
    pub(super) fn check_unused(&self, table: GlobalId, verb: &str) -> Result<(), SqlError> {
        let catalog = self.catalog();
        // The rows of a view are those of what it reads.
        let Some(item) = catalog.item(table).filter(|i| !matches!(i.kind, ItemKind::View { .. } | ItemKind::Index { .. })) else { return Ok(()) };
        let in_use = |why: &str| Err(SqlError::new(state::OBJECT_IN_USE, format!("cannot {verb} \"{}\" because it {why}", item.name)));
        if self.read_by_cursors().any(|id| reads_through(&catalog, id, table)) {
            return in_use("is being used by active queries in this session");
        }
        let changed = || self.txn.writes().iter().filter(|w| w.0 == table && !w.1.is_empty());
        if changed().next().is_none() {
            return Ok(());
        }
        let referring = catalog.referring(table);
        let waiting = self.deferred(referring.iter().map(|r| &**r.0).chain([&**item]));
        let own = matches!(&item.kind, ItemKind::Table(t) if t.foreign.iter().any(|f| waiting.contains(&(table, f.name.clone()))));
        let of_others = changed().any(|w| w.1.removes()) && referring.iter().any(|(child, f)| waiting.contains(&(child.id, f.name.clone())));
        match own || of_others {
            true => in_use("has pending trigger events"),
            false => Ok(()),
        }
    }

    async fn drop_objects(&mut self, p: DropPlan) -> Result<Response, SqlError> {
        for n in p.notices {
            self.notice("NOTICE", n);
        }
        let catalog = self.catalog();
        let word = drop_word(p.kind);
        let tag = Response::Tag(format!("DROP {word}"));
        let mut ops = Vec::new();
        let mut roots: Vec<GlobalId> = Vec::new();
        for o in &p.objects {
            let item = catalog.item(o.id).cloned().ok_or_else(|| SqlError::new(state::UNDEFINED_OBJECT, format!("\"{}\" does not exist", o.name.name)))?;
            check_kind(p.kind, &item)?;
            roots.push(o.id);
        }
        if p.kind == ObjectKind::Schema {
            for name in &p.names {
                if crate::builtin::is_system_schema(name) {
                    let e =
                        SqlError::new(state::DEPENDENT_OBJECTS_STILL_EXIST, format!("cannot drop schema {name} because it is required by the database system"));
                    return Err(e);
                }
                let inside = catalog.items_in(name);
                if !inside.is_empty() && !p.cascade {
                    let e = SqlError::new(state::DEPENDENT_OBJECTS_STILL_EXIST, format!("cannot drop schema {name} because other objects depend on it"));
                    let detail = inside
                        .iter()
                        .map(|i| format!("{} {}.{} depends on schema {name}", i.noun(), quote_if_needed(&i.schema), quote_if_needed(&i.name)))
                        .collect::<Vec<_>>()
                        .join("\n");
                    return Err(e.with_detail(detail).with_hint("Use DROP ... CASCADE to drop the dependent objects too."));
                }
                roots.extend(inside.iter().map(|i| i.id));
            }
        }
        if p.kind == ObjectKind::Database && !p.names.is_empty() {
            let e = SqlError::new(state::OBJECT_IN_USE, "cannot drop the currently open database");
            return Err(e.with_hint("There is one database: stop the server and remove its data directory."));
        }
        if p.kind == ObjectKind::Index {
            return self.drop_indexes(&roots).await;
        }
        let order = catalog.drop_order(&roots, p.cascade)?;
        order.iter().try_for_each(|id| self.check_unused(*id, "DROP TABLE"))?;
        let (unlinked, also) = unlink(&catalog, &order);
        ops.extend(unlinked);
        // What is in a dropped schema was not named itself.
        let named: Vec<GlobalId> = p.objects.iter().map(|o| o.id).collect();
        self.cascade_notices(&catalog, &named, &order, also);
        if !order.is_empty() {
            ops.push(Op::Drop { ids: order });
        }
        if p.kind == ObjectKind::Schema {
            ops.extend(p.names.into_iter().map(|name| Op::DropSchema { name }));
        }
        if !ops.is_empty() {
            self.apply(ops)?;
        }
        Ok(tag)
    }

    /// An object's name as notices and errors show it: with its schema where the search path does not find it.
    fn shown_name(&self, item: &Item) -> String {
        let visible = self.settings.search_path().contains(&item.schema) || self.temp_schema.as_ref() == Some(&item.schema);
        if visible {
            quote_if_needed(&item.name)
        } else {
            format!("{}.{}", quote_if_needed(&item.schema), quote_if_needed(&item.name))
        }
    }

    /// Errors: 42P16 for a foreign key between a temporary and a lasting table.
    pub(super) fn check_lasting(&self, table: &Table, temporary: bool) -> Result<(), SqlError> {
        let catalog = self.catalog();
        let other = |id: &GlobalId| catalog.item(*id).is_some_and(|p| matches!(&p.kind, ItemKind::Table(t) if t.temporary != temporary));
        if !table.foreign.iter().any(|f| other(&f.parent)) {
            return Ok(());
        }
        let (these, those) = if temporary { ("temporary", "temporary") } else { ("permanent", "permanent") };
        Err(SqlError::new(state::INVALID_TABLE_DEFINITION, format!("constraints on {these} tables may reference only {those} tables")))
    }

    fn cascade_notices(&mut self, catalog: &Catalog, roots: &[GlobalId], order: &[GlobalId], foreign: Vec<String>) {
        // Dependants are dropped first and told last.
        let also: Vec<String> = order
            .iter()
            .rev()
            .filter(|id| !roots.contains(id))
            .filter_map(|id| catalog.item(*id))
            .filter(|i| !matches!(i.kind, ItemKind::Index { .. } | ItemKind::Errors { .. } | ItemKind::ViewErrors { .. }))
            .filter(|i| !catalog.owner_of(i.id).is_some_and(|o| order.contains(&o.0.id)))
            .filter(|i| !matches!(i.kind, ItemKind::SourceTable { source, with_source: true, .. } if order.contains(&source)))
            .map(|i| format!("drop cascades to {} {}", i.noun(), self.shown_name(i)))
            .chain(foreign)
            .collect();
        self.tell_cascade(&also);
    }

    /// One notice of all that CASCADE takes along, each told as `drop cascades to …`.
    pub(super) fn tell_cascade(&mut self, also: &[String]) {
        match also {
            [] => {}
            [one] => self.notice("NOTICE", SqlError::new(repr::SqlState::new("00000"), one.clone())),
            many => {
                let e = SqlError::new(repr::SqlState::new("00000"), format!("drop cascades to {} other objects", many.len()));
                self.notice("NOTICE", e.with_detail(many.join("\n")));
            }
        }
    }

    pub(super) fn existing(&self, object: &ObjectRef) -> Result<Item, SqlError> {
        self.catalog()
            .item(object.id)
            .map(|i| (**i).clone())
            .ok_or_else(|| SqlError::new(state::UNDEFINED_OBJECT, format!("\"{}\" does not exist", object.name.name)))
    }

    async fn rename(&mut self, kind: ObjectKind, object: &ObjectRef, to: String) -> Result<Response, SqlError> {
        let item = self.existing(object)?;
        let schema = item.schema.clone();
        if item.name == to {
            return Err(SqlError::new(state::DUPLICATE_TABLE, format!("relation \"{to}\" already exists")));
        }
        self.rename_relation(item, schema, to)?;
        Ok(Response::Tag(format!("ALTER {}", drop_word(kind))))
    }

    /// One role owns all; it and the session's user are the names there are.
    /// One role owns all. Errors: 42704 for another.
    fn known_owner(&self, owner: &str) -> Result<(), SqlError> {
        if ![crate::builtin::OWNER_NAME, &self.user, "current_user", "session_user", "current_role"].contains(&owner) {
            return Err(SqlError::new(state::UNDEFINED_OBJECT, format!("role \"{owner}\" does not exist")));
        }
        Ok(())
    }

    /// Makes what CREATE SCHEMA names, with the schema first in the search path.
    async fn within_schema(&mut self, schema: &str, elements: Vec<sql::parse::ParsedStatement>) -> Result<(), SqlError> {
        if elements.is_empty() {
            return Ok(());
        }
        let settings = self.settings.clone();
        let path = std::iter::once(schema.to_owned()).chain(self.settings.search_path()).map(|s| quote(&s)).collect::<Vec<_>>().join(", ");
        self.settings.set("search_path", Some(&path), false)?;
        let mut made = Ok(());
        for e in &elements {
            let plan = sql::plan::plan(e, &self.names(), &[]);
            made = match plan {
                Ok(plan) => Box::pin(self.run(plan)).await.map(drop),
                Err(e) => Err(e),
            };
            if made.is_err() {
                break;
            }
        }
        self.settings = settings;
        made
    }

    fn alter_owner(&self, kind: ObjectKind, owner: &str) -> Result<Response, SqlError> {
        self.known_owner(owner)?;
        Ok(Response::Tag(format!("ALTER {}", drop_word(kind))))
    }

    async fn set_schema(&mut self, kind: ObjectKind, object: &ObjectRef, schema: String) -> Result<Response, SqlError> {
        let item = self.existing(object)?;
        let (id, name) = (item.id, item.name.clone());
        self.rename_relation(item, schema.clone(), name)?;
        // The sequences of its columns go with a table.
        let catalog = self.catalog();
        if let Some(ItemKind::Table(t)) = catalog.item(id).map(|i| &i.kind) {
            for sequence in t.sequences.iter().filter_map(|s| catalog.item(s.sequence)) {
                self.rename_relation((**sequence).clone(), schema.clone(), sequence.name.clone())?;
            }
        }
        Ok(Response::Tag(format!("ALTER {}", drop_word(kind))))
    }

    async fn alter_secret(&mut self, object: &ObjectRef, value: String) -> Result<Response, SqlError> {
        let mut item = self.existing(object)?;
        item.kind = ItemKind::Secret { value };
        self.apply(vec![Op::Update { item: Box::new(item) }])?;
        Ok(Response::Tag("ALTER SECRET".into()))
    }

    fn comment(&mut self, on: Commented, text: Option<String>) -> Result<Response, SqlError> {
        let op = match on {
            Commented::Database { exists: true, .. } => Op::CommentDatabase { text },
            Commented::Database { name, .. } => {
                self.notice("WARNING", SqlError::new(state::INVALID_CATALOG_NAME, format!("database \"{name}\" does not exist")));
                return Ok(Response::Tag("COMMENT".into()));
            }
            Commented::Schema(name) if self.catalog().has_schema(&name) => Op::CommentSchema { name, text },
            Commented::Schema(name) => {
                return Err(SqlError::new(state::INSUFFICIENT_PRIVILEGE, format!("permission denied: \"{name}\" is a system schema")));
            }
            Commented::Object { kind, object } => {
                let item = self.existing(&object)?;
                let fits = match &item.kind {
                    ItemKind::Table(_) | ItemKind::SourceTable { .. } => kind == ObjectKind::Table,
                    ItemKind::Source(_) | ItemKind::Errors { .. } => matches!(kind, ObjectKind::Source | ObjectKind::Table),
                    ItemKind::View { .. } => kind == ObjectKind::View,
                    ItemKind::MaterializedView { .. } | ItemKind::ViewErrors { .. } => kind == ObjectKind::MaterializedView,
                    ItemKind::Index { .. } => kind == ObjectKind::Index,
                    ItemKind::Sequence(_) => kind == ObjectKind::Sequence,
                    ItemKind::Type(_) => kind == ObjectKind::Type,
                    ItemKind::Domain(_) => matches!(kind, ObjectKind::Type | ObjectKind::Domain),
                    ItemKind::Connection(_) | ItemKind::Secret { .. } => true,
                };
                if !fits {
                    let word = sql::plan::with_article(kind);
                    return Err(SqlError::new(state::WRONG_OBJECT_TYPE, format!("\"{}\" is not {word}", item.name)));
                }
                commented(item, 0, text)
            }
            Commented::Column { object, column } => commented(self.existing(&object)?, column as u32 + 1, text),
            Commented::Constraint { object, name } => {
                let item = self.existing(&object)?;
                if !item.has_constraint(&name) {
                    let of = if matches!(item.kind, ItemKind::Domain(_)) { format!("domain {}", item.name) } else { format!("table \"{}\"", item.name) };
                    return Err(SqlError::new(state::UNDEFINED_OBJECT, format!("constraint \"{name}\" for {of} does not exist")));
                }
                part_commented(item, name, false, text)
            }
            Commented::KeyIndex(oid) => {
                let catalog = self.catalog();
                let (item, name) = crate::builtin::key_of(&catalog, oid)
                    .ok_or_else(|| SqlError::new(state::WRONG_OBJECT_TYPE, "this is the index of no key").with_hint("Name an index or a key of a table."))?;
                part_commented((**item).clone(), name.to_owned(), true, text)
            }
        };
        self.apply(vec![op])?;
        Ok(Response::Tag("COMMENT".into()))
    }

    /// The session's schema for temporary objects, made on demand.
    pub(super) fn temp_schema(&mut self, ops: &mut Vec<Op>) -> String {
        let name = self.temp_schema_name();
        if !self.catalog().has_schema(&name) {
            ops.push(Op::CreateSchema { name: name.clone(), oid: self.shared.allocate_id().0 as u32 });
        }
        self.temp_schema = Some(name.clone());
        name
    }

    fn drop_temp_ops(&mut self) -> Vec<Op> {
        let Some(schema) = self.temp_schema.take() else { return vec![] };
        let catalog = self.catalog();
        let roots: Vec<GlobalId> = catalog.items_in(&schema).iter().map(|i| i.id).collect();
        let ids = catalog.drop_order(&roots, true).unwrap_or_default();
        vec![Op::Drop { ids }, Op::DropSchema { name: schema }]
    }

    pub(super) fn drop_temp(&mut self) -> Result<(), SqlError> {
        let ops = self.drop_temp_ops();
        if ops.is_empty() {
            return Ok(());
        }
        self.apply(ops)
    }

    /// At the session's end nobody waits for the answer.
    pub(super) fn drop_temp_in_background(&mut self) {
        let ops = self.drop_temp_ops();
        if !ops.is_empty() {
            let (answer, _) = tokio::sync::oneshot::channel();
            let _ = self.shared.send(Request::Write(WriteTxn { ddl: ops, ..WriteTxn::default() }, answer));
        }
    }
}

/// CREATE OR REPLACE VIEW keeps the old columns and may add more.
fn check_replacement(old: &RelDesc, new: &RelDesc) -> Result<(), SqlError> {
    if new.arity() < old.arity() {
        return Err(SqlError::new(state::INVALID_TABLE_DEFINITION, "cannot drop columns from view"));
    }
    for i in 0..old.arity() {
        if old.names[i] != new.names[i] {
            let m = format!("cannot change name of view column \"{}\" to \"{}\"", old.names[i], new.names[i]);
            return Err(
                SqlError::new(state::INVALID_TABLE_DEFINITION, m).with_hint("Use ALTER VIEW ... RENAME COLUMN ... to change name of view column instead.")
            );
        }
        let (was, is) = (&old.types[i], &new.types[i]);
        if (&was.ty, was.typmod) != (&is.ty, is.typmod) {
            let (was, is) = (with_typmod(&was.ty, was.typmod), with_typmod(&is.ty, is.typmod));
            let m = format!("cannot change data type of view column \"{}\" from {was} to {is}", old.names[i]);
            return Err(SqlError::new(state::INVALID_TABLE_DEFINITION, m));
        }
    }
    Ok(())
}

pub(super) fn drop_word(kind: ObjectKind) -> &'static str {
    match kind {
        ObjectKind::Table => "TABLE",
        ObjectKind::View => "VIEW",
        ObjectKind::MaterializedView => "MATERIALIZED VIEW",
        ObjectKind::Index => "INDEX",
        ObjectKind::Source => "SOURCE",
        ObjectKind::Sink => "SINK",
        ObjectKind::Connection => "CONNECTION",
        ObjectKind::Secret => "SECRET",
        ObjectKind::Type => "TYPE",
        ObjectKind::Domain => "DOMAIN",
        ObjectKind::Schema => "SCHEMA",
        ObjectKind::Database => "DATABASE",
        ObjectKind::Sequence => "SEQUENCE",
        ObjectKind::Function => "FUNCTION",
        ObjectKind::Procedure => "PROCEDURE",
        ObjectKind::Aggregate => "AGGREGATE",
        ObjectKind::Routine => "ROUTINE",
        ObjectKind::Role => "ROLE",
        _ => "OBJECT",
    }
}

fn check_kind(kind: ObjectKind, item: &Item) -> Result<(), SqlError> {
    let fits = match kind {
        ObjectKind::Table => matches!(item.kind, ItemKind::Table(_) | ItemKind::SourceTable { .. }),
        ObjectKind::View => matches!(item.kind, ItemKind::View { .. }),
        ObjectKind::MaterializedView => matches!(item.kind, ItemKind::MaterializedView { .. }),
        ObjectKind::Index => matches!(item.kind, ItemKind::Index { .. }),
        ObjectKind::Sequence => matches!(item.kind, ItemKind::Sequence(_)),
        ObjectKind::Source => matches!(item.kind, ItemKind::Source(_) | ItemKind::SourceTable { .. }),
        ObjectKind::Domain => matches!(item.kind, ItemKind::Domain(_)),
        _ => true,
    };
    if fits {
        return Ok(());
    }
    let article = if kind == ObjectKind::Index { "an" } else { "a" };
    let hint = match &item.kind {
        ItemKind::Errors { .. } => "It goes with its source.".to_string(),
        ItemKind::ViewErrors { .. } => "It goes with its view.".to_string(),
        _ => format!("Use DROP {} to remove a {}.", item.noun().to_uppercase(), item.noun()),
    };
    Err(SqlError::new(state::WRONG_OBJECT_TYPE, format!("\"{}\" is not {article} {}", item.name, drop_word(kind).to_lowercase())).with_hint(hint))
}

/// The user-defined types and relations whose types are in the columns, also inside others.
pub(crate) fn user_types(catalog: &Catalog, desc: &RelDesc) -> Vec<GlobalId> {
    fn inside(ty: &SqlType, out: &mut BTreeSet<u32>) {
        out.insert(ty.oid());
        match ty {
            SqlType::Array(e) | SqlType::List(e) | SqlType::Map(e) => inside(e, out),
            SqlType::Record(r) => r.fields.iter().for_each(|f| inside(&f.1.ty, out)),
            SqlType::Domain(d) => inside(&d.base.ty, out),
            SqlType::UserRange(r) => inside(&r.subtype, out),
            SqlType::UserMultirange(r) => {
                out.insert(r.oid);
                inside(&r.subtype, out);
            }
            _ => {}
        }
    }
    let mut oids = BTreeSet::new();
    desc.types.iter().for_each(|t| inside(&t.ty, &mut oids));
    let has = |i: &Item| {
        if matches!(i.kind, ItemKind::Type(_) | ItemKind::Domain(_)) {
            oids.contains(&i.oid())
        } else {
            i.is_relation() && oids.contains(&i.row_type_oid())
        }
    };
    catalog.items().filter(|i| has(i)).map(|i| i.id).collect()
}

/// CREATE TABLE as `SHOW CREATE TABLE` prints it.
pub(crate) fn table_sql(name: &FullName, desc: &RelDesc, table: &Table) -> String {
    let mut lines: Vec<String> = Vec::new();
    for (i, (column, ty)) in desc.names.iter().zip(&desc.types).enumerate() {
        let mut line = format!("{} {}", quote(column), with_typmod(&ty.ty, ty.typmod));
        if let Some((_, collation)) = table.collations.iter().find(|c| c.0 == i) {
            line += &format!(" COLLATE {}", quote(collation));
        }
        let identity = table.sequences.iter().find(|s| s.column == i).and_then(|s| s.identity);
        match (identity, table.generated.get(i), table.defaults.get(i)) {
            (Some(true), _, _) => line += " GENERATED ALWAYS AS IDENTITY",
            (Some(false), _, _) => line += " GENERATED BY DEFAULT AS IDENTITY",
            (_, Some(Some(g)), _) => line += &format!(" GENERATED ALWAYS AS ({g}) STORED"),
            (_, _, Some(Some(d))) => line += &format!(" DEFAULT {d}"),
            _ => {}
        }
        if !ty.nullable {
            line += " NOT NULL";
        }
        lines.push(line);
    }
    let list = |c: &Constraint| {
        let names = |columns: &[usize]| columns.iter().map(|i| quote(&desc.names[*i])).collect::<Vec<_>>().join(", ");
        let include = if c.include.is_empty() { String::new() } else { format!(" INCLUDE ({})", names(&c.include)) };
        format!("({}){include}{}", names(&c.columns), deferral_words(c.deferrable, c.deferred))
    };
    lines.extend(table.primary_key.iter().map(|c| format!("CONSTRAINT {} PRIMARY KEY {}", quote(&c.name), list(c))));
    lines.extend(
        table
            .unique
            .iter()
            .filter(|c| !c.index)
            .map(|c| format!("CONSTRAINT {} UNIQUE {}{}", quote(&c.name), if c.equal_nulls { "NULLS NOT DISTINCT " } else { "" }, list(c))),
    );
    lines.extend(table.checks.iter().map(|(n, text)| format!("CONSTRAINT {} CHECK ({text})", quote(n))));
    format!("CREATE TABLE {} ({})", qualified(&name.schema, &name.name), lines.join(", "))
}

fn commented(mut item: Item, column: u32, text: Option<String>) -> Op {
    item.comments.retain(|c| c.0 != column);
    item.comments.extend(text.map(|t| (column, t)));
    Op::Update { item: Box::new(item) }
}

fn part_commented(mut item: Item, name: String, index: bool, text: Option<String>) -> Op {
    item.constraint_comments.retain(|c| (c.name.as_str(), c.index) != (name.as_str(), index));
    item.constraint_comments.extend(text.map(|text| ConstraintComment { name, index, text }));
    Op::Update { item: Box::new(item) }
}

/// Takes foreign keys to the tables that go from those that stay; also what a notice says of them.
fn unlink(catalog: &Catalog, gone: &[GlobalId]) -> (Vec<Op>, Vec<String>) {
    let mut told = Vec::new();
    let mut children: std::collections::BTreeMap<GlobalId, Item> = Default::default();
    for parent in gone {
        for (child, key) in catalog.referring(*parent).into_iter().filter(|c| !gone.contains(&c.0.id)) {
            told.push(format!("drop cascades to constraint {} on {}", quote_if_needed(&key.name), child.told()));
            let item = children.entry(child.id).or_insert_with(|| (**child).clone());
            if let ItemKind::Table(t) = &mut item.kind {
                t.foreign.retain(|f| f.name != key.name);
            }
        }
    }
    (children.into_values().map(|item| Op::Update { item: Box::new(item) }).collect(), told)
}

/// Whether `relation` is `table` or a view that reads it.
fn reads_through(catalog: &Catalog, relation: GlobalId, table: GlobalId) -> bool {
    let view = || catalog.item(relation).filter(|i| matches!(i.kind, ItemKind::View { .. }));
    relation == table || view().is_some_and(|v| v.deps.iter().any(|id| reads_through(catalog, *id, table)))
}
