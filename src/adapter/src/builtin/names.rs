//! Names by OID for functions over the catalog: regclass, format_type, pg_get_viewdef and their like.

use super::{defs, is_system_schema, RD_NAMESPACE};
use crate::catalog::{Catalog, Item, ItemKind, Namespace};
use crate::planner::{captured_ctx, type_by_oid, Planner, SessionCatalog};
use expr::{CatalogView, EvalCtx};
use repr::error::state;
use repr::{GlobalId, SqlError, SqlType};
use sql::plan::deparse::{domain_text, expr_text, named_type, query_text, Style};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The catalog as functions see it, under a search path.
pub struct Names {
    pub(super) catalog: Arc<Catalog>,
    pub(super) search_path: Vec<String>,
    settings: BTreeMap<String, String>,
    /// A session's; maintained objects have none.
    sequences: Option<crate::sequences::Access>,
    backends: Option<crate::activity::Access>,
}

impl Names {
    /// `settings`: lower-case name and value, for `current_setting`.
    pub fn new(catalog: Arc<Catalog>, search_path: Vec<String>, settings: Vec<(String, String)>) -> Names {
        Names { catalog, search_path, settings: settings.into_iter().collect(), sequences: None, backends: None }
    }

    /// A session's sequences, the sessions that it sees, and its temporary objects, which are found first.
    pub fn with_session(mut self, session: crate::planner::Handle<'_>) -> Names {
        self.search_path.splice(0..0, session.temp_schema.map(str::to_owned));
        Names { sequences: Some(session.sequences), backends: Some(session.backends), ..self }
    }

    /// The same catalog under another search path.
    pub(super) fn under(&self, search_path: Vec<String>) -> Names {
        Names::new(self.catalog.clone(), search_path, Vec::new())
    }

    fn sequences(&self) -> Result<&crate::sequences::Access, SqlError> {
        self.sequences.as_ref().ok_or_else(|| SqlError::unsupported("a sequence in a maintained object", "call it in the statement that writes"))
    }

    pub(super) fn item(&self, oid: u32) -> Option<&Arc<Item>> {
        self.catalog.item(GlobalId(u64::from(oid)))
    }

    /// What has a row of this name in `pg_class`: a relation, or a composite type.
    fn named(&self, schema: &str, name: &str) -> Option<&Arc<Item>> {
        let composite = || self.catalog.find(schema, Namespace::Type, name).filter(|i| matches!(i.kind, ItemKind::Type(SqlType::Record(_))));
        self.catalog.find(schema, Namespace::Relation, name).or_else(composite)
    }

    /// Whether the name alone finds this relation.
    fn visible(&self, schema: &str, name: &str) -> bool {
        let first = std::iter::once("pg_catalog")
            .chain(self.search_path.iter().map(String::as_str))
            .find(|s| self.named(s, name).is_some() || defs().iter().any(|d| d.schema == *s && d.name == name));
        first == Some(schema)
    }

    /// Schema and name of the user's type of this OID, or of a relation's row.
    fn type_of(&self, oid: u32) -> Option<(&str, &str)> {
        let is_it = |t: &SqlType| t.oid() == oid;
        self.catalog.items().find_map(|i| match &i.kind {
            ItemKind::Type(SqlType::UserRange(r)) if r.multirange_oid == oid => Some((i.schema.as_str(), r.multirange_name.as_str())),
            ItemKind::Type(t) if is_it(t) => Some((i.schema.as_str(), i.name.as_str())),
            ItemKind::Domain(d) if d.oid == oid => Some((i.schema.as_str(), i.name.as_str())),
            _ if i.is_relation() && i.row_type_oid() == oid => Some((i.schema.as_str(), i.name.as_str())),
            _ => None,
        })
    }

    /// Whether the name alone finds this type.
    fn type_visible(&self, schema: &str, name: &str) -> bool {
        let known = |s: &str| match s {
            "pg_catalog" => expr::catalog::types().iter().any(|t| t.name == name),
            s => {
                let relation = || self.catalog.find(s, Namespace::Relation, name).filter(|i| i.is_relation());
                self.catalog.find(s, Namespace::Type, name).or_else(relation).is_some()
            }
        };
        std::iter::once("pg_catalog").chain(self.search_path.iter().map(String::as_str)).find(|s| known(s)) == Some(schema)
    }

    /// The catalog as it is for the texts of an item, under a search path.
    fn session<R>(&self, search_path: Vec<String>, item: &Item, then: impl FnOnce(&SessionCatalog<'_>) -> R) -> R {
        let planner = Planner::default();
        then(&SessionCatalog {
            catalog: self.catalog.clone(),
            planner: &planner,
            ctx: EvalCtx {
                catalog: Arc::new(Names::new(self.catalog.clone(), search_path.clone(), Vec::new())),
                search_path: search_path.clone(),
                ..captured_ctx(&item.captured, &self.catalog)
            },
            search_path,
            temp_schema: None,
            opaque: None,
        })
    }

    /// A stored text of an item, written anew: `write` gets the catalog under the search path of who made the item, and under this one.
    fn deparsed(&self, item: &Item, write: impl FnOnce(&SessionCatalog<'_>, &SessionCatalog<'_>) -> String) -> String {
        self.session(item.captured.search_path.clone(), item, |of| self.session(self.search_path.clone(), item, |reader| write(of, reader)))
    }

    /// A condition of a domain.
    pub(super) fn domain_condition(&self, domain: u32, text: &str, pretty: bool) -> String {
        match self.item(domain).map(|i| (i, &i.kind)) {
            Some((item, ItemKind::Domain(d))) => {
                self.deparsed(item, |of, reader| domain_text(text, &d.base, of, reader, &Style { pretty, view: self, by_oid: true }))
            }
            _ => text.to_owned(),
        }
    }

    /// What a column of an expression over a relation's row is called, and its type.
    pub(super) fn named_type(&self, text: &str, relation: u32) -> Option<(String, repr::ColType)> {
        let item = self.item(relation)?;
        self.session(item.captured.search_path.clone(), item, |of| named_type(text, &item.desc, of))
    }

    /// The columns of relations that a view reads.
    pub(super) fn columns_read(&self, view: &Item) -> std::collections::BTreeSet<(GlobalId, usize)> {
        let (ItemKind::View { query, .. } | ItemKind::MaterializedView { query, .. }) = &view.kind else { return Default::default() };
        self.session(view.captured.search_path.clone(), view, |of| sql::plan::text::columns_read(("", ""), query, of)).unwrap_or_default()
    }

    pub(super) fn shown(&self, schema: &str, name: &str) -> String {
        let unknown = self.named(schema, name).is_none() && !is_system_schema(schema);
        if self.visible(schema, name) || (unknown && self.search_path.iter().any(|s| s == schema)) {
            quote_if_needed(name)
        } else {
            format!("{}.{}", quote_if_needed(schema), quote_if_needed(name))
        }
    }
}

/// An identifier as Postgres prints it: quoted only where it must be.
pub fn quote_if_needed(name: &str) -> String {
    expr::func::text::quote_ident(name)
}

impl CatalogView for Names {
    fn relation_name(&self, oid: u32) -> Option<String> {
        match self.item(oid) {
            Some(i) => Some(self.shown(&i.schema, &i.name)),
            None => match super::pg::key_of(&self.catalog, oid) {
                Some((table, key)) => Some(self.shown(&table.schema, key)),
                None => defs().iter().find(|d| d.oid == oid).map(|d| self.shown(d.schema, d.name)),
            },
        }
    }
    fn relation_oid(&self, parts: &[String]) -> Option<u32> {
        let (schemas, name): (Vec<&str>, &String) = match parts {
            [name] => (std::iter::once("pg_catalog").chain(self.search_path.iter().map(String::as_str)).collect(), name),
            [schema, name] | [_, schema, name] if schema == "pg_temp" => (self.search_path.first().map(String::as_str).into_iter().collect(), name),
            [schema, name] | [_, schema, name] => (vec![schema], name),
            _ => return None,
        };
        schemas.into_iter().find_map(|s| match self.named(s, name) {
            Some(i) => Some(i.oid()),
            None => match defs().iter().find(|d| d.schema == s && d.name == *name) {
                Some(d) => Some(d.oid),
                None => super::pg::key_index(&self.catalog, s, name),
            },
        })
    }
    fn relation_is_visible(&self, oid: u32) -> bool {
        match self.item(oid) {
            Some(i) => self.visible(&i.schema, &i.name),
            None => match super::pg::key_of(&self.catalog, oid) {
                // A key's index is found where its table is.
                Some((table, _)) => self.search_path.contains(&table.schema),
                None => defs().iter().find(|d| d.oid == oid).is_some_and(|d| self.visible(d.schema, d.name)),
            },
        }
    }
    fn columns(&self, oid: u32) -> Vec<String> {
        match self.item(oid).map(|i| (&i.kind, &i.desc)) {
            Some((ItemKind::Type(SqlType::Record(r)), _)) => r.fields.iter().map(|f| f.0.clone()).collect(),
            Some((_, desc)) => desc.names.clone(),
            None => defs().iter().find(|d| d.oid == oid).map(|d| d.desc.names.clone()).unwrap_or_default(),
        }
    }
    fn is_sequence(&self, oid: u32) -> bool {
        self.item(oid).is_some_and(|i| matches!(i.kind, ItemKind::Sequence(_)))
    }
    fn key_table(&self, oid: u32) -> Option<String> {
        super::pg::key_of(&self.catalog, oid).map(|(table, _)| self.shown(&table.schema, &table.name))
    }
    fn is_materialized_view(&self, oid: u32) -> bool {
        self.item(oid).is_some_and(|i| matches!(i.kind, ItemKind::MaterializedView { .. }))
    }
    fn type_by_oid(&self, oid: u32) -> Option<SqlType> {
        SqlType::from_oid(oid).or_else(|| type_by_oid(&self.catalog, oid))
    }
    fn type_by_name(&self, parts: &[String]) -> Option<SqlType> {
        let find = |s: &str, n: &str| match self.catalog.find(s, Namespace::Type, n).map(|i| &i.kind) {
            Some(ItemKind::Type(t)) => Some(crate::planner::type_named(t, n)),
            Some(ItemKind::Domain(d)) => Some(d.as_type()),
            _ => self.catalog.find(s, Namespace::Relation, n)?.row_type(),
        };
        let found = match parts {
            [name] => self.search_path.iter().find_map(|s| find(s, name)),
            [.., schema, name] => find(schema, name),
            [] => None,
        };
        found.or_else(|| crate::planner::array_named(parts, |element| self.type_by_name(element)))
    }
    fn namespace_name(&self, oid: u32) -> Option<String> {
        if oid == RD_NAMESPACE {
            return Some("rd_catalog".into());
        }
        let system = expr::catalog::namespaces().iter().find(|n| n.oid == oid && is_system_schema(n.name)).map(|n| n.name.to_string());
        system.or_else(|| self.catalog.schemas().find(|s| s.1 == oid).map(|s| s.0.to_string()))
    }
    fn namespace_oid(&self, name: &str) -> Option<u32> {
        super::pg::namespace_oid(&self.catalog, name)
    }
    fn type_name(&self, oid: u32) -> Option<String> {
        let (schema, name) = self.type_of(oid)?;
        Some(if self.type_visible(schema, name) { quote_if_needed(name) } else { format!("{}.{}", quote_if_needed(schema), quote_if_needed(name)) })
    }
    fn type_is_visible(&self, oid: u32) -> bool {
        self.type_of(oid).is_some_and(|(schema, name)| self.type_visible(schema, name))
    }
    fn view_definition(&self, oid: u32, pretty: bool) -> Option<String> {
        let item = self.item(oid)?;
        let (ItemKind::View { query, .. } | ItemKind::MaterializedView { query, .. }) = &item.kind else { return None };
        let text = self.deparsed(item, |of, reader| query_text(query, &item.desc.names, of, reader, &Style { pretty, view: self, by_oid: true }));
        Some(format!("{text};"))
    }
    fn rule_definition(&self, rule: u32, pretty: bool) -> Option<String> {
        let view = super::pg::view_of(rule)?;
        let name = self.relation_name(view)?;
        Some(format!("CREATE RULE \"_RETURN\" AS\n    ON SELECT TO {name} DO INSTEAD {}", self.view_definition(view, pretty)?))
    }
    fn index_definition(&self, oid: u32, column: i32, pretty: bool) -> Option<String> {
        super::pg_index::index_definition(&self.catalog, oid, column, pretty, self)
    }
    fn constraint_definition(&self, oid: u32, pretty: bool) -> Option<String> {
        super::pg_constraint::constraint_definition(&self.catalog, oid, pretty, self)
    }
    fn expression(&self, text: &str, relation: u32, pretty: bool) -> String {
        match self.item(relation) {
            Some(item) => self.deparsed(item, |of, reader| expr_text(text, &item.desc, of, reader, &Style { pretty, view: self, by_oid: true })),
            None => text.to_owned(),
        }
    }
    fn role_name(&self, oid: u32) -> Option<String> {
        (oid == super::OWNER).then(|| super::OWNER_NAME.to_string())
    }
    fn role_oid(&self, name: &str) -> Option<u32> {
        (name == super::OWNER_NAME).then_some(super::OWNER)
    }
    fn updatable(&self, relation: u32, column: Option<i64>) -> i32 {
        const ALL: i32 = 4 | 8 | 16;
        let Some(item) = self.item(relation) else { return 0 };
        if matches!(item.kind, crate::catalog::ItemKind::Table(_)) {
            return ALL;
        }
        let Some(columns) = self.catalog.written_through(item) else { return 0 };
        let chosen = |n: usize| column.is_none_or(|c| i64::try_from(n + 1) == Ok(c));
        match columns.iter().enumerate().any(|(n, c)| c.is_some() && chosen(n)) {
            true => ALL,
            // Rows can go all the same.
            false => 16,
        }
    }
    fn comment(&self, class: &str, oid: u32, column: i32) -> Option<String> {
        let of_item = || self.item(oid)?.comments.iter().find(|c| i64::from(c.0) == i64::from(column)).map(|c| c.1.clone());
        let of_part = |index: bool| {
            let k = super::pg_constraint::constraints(&self.catalog).into_iter().find(|k| k.oid == oid)?;
            let item = self.item(k.relation.max(k.domain))?;
            item.constraint_comments.iter().find(|c| c.name == k.name && c.index == index).map(|c| c.text.clone())
        };
        let of_system = || super::copied::descriptions().get(&(super::copied::class_of(class)?, oid)).map(|d| (*d).to_owned());
        if let Some(text) = of_system().filter(|_| column == 0) {
            return Some(text);
        }
        match class {
            "pg_class" => of_item().or_else(|| of_part(true)),
            "pg_type" => of_item(),
            "pg_constraint" => of_part(false),
            "pg_namespace" => self.catalog.schemas().find(|s| s.1 == oid).and_then(|s| self.catalog.schema(s.0)?.comment.clone()),
            "pg_database" if oid == super::pg::DATABASE_OID => self.catalog.database_comment.clone(),
            "" => of_item(),
            _ => None,
        }
    }
    fn backend(&self) -> Option<expr::Backend> {
        let own = &self.backends.as_ref()?.own;
        Some(expr::Backend { pid: own.pid, client: own.peer.client, server: own.peer.server, query: own.seen().query })
    }
    fn signal(&self, pid: i32, end: bool) -> Result<bool, SqlError> {
        let backends = self.backends.as_ref().ok_or_else(|| SqlError::unsupported("a signal in a maintained object", "call the function in a query"))?;
        Ok(backends.all.signal(pid, end))
    }
    fn setting(&self, name: &str) -> Option<String> {
        self.settings.get(&name.to_ascii_lowercase()).cloned()
    }
    fn next_value(&self, sequence: u32) -> Result<i64, SqlError> {
        self.sequences()?.next(&self.catalog, sequence)
    }
    fn current_value(&self, sequence: Option<u32>) -> Result<i64, SqlError> {
        self.sequences()?.current(&self.catalog, sequence)
    }
    fn set_value(&self, sequence: u32, value: i64, called: bool) -> Result<(), SqlError> {
        self.sequences()?.set(&self.catalog, sequence, value, called)
    }
    fn last_value(&self, sequence: u32) -> Option<i64> {
        self.sequences.as_ref()?.last(&self.catalog, sequence)
    }
    fn index_columns(&self, index: u32) -> Vec<i16> {
        let found = super::pg_index::index_list(&self.catalog).into_iter().find(|x| x.oid == index);
        found.map_or_else(Vec::new, |x| x.numbers())
    }
    fn sequence_parameters(&self, sequence: u32) -> Result<Vec<repr::Value>, SqlError> {
        use repr::Value;
        let Some(ItemKind::Sequence(s)) = self.item(sequence).map(|i| &i.kind) else {
            return Err(SqlError::internal(format!("cache lookup failed for sequence {sequence}")));
        };
        let numbers = [s.start, s.min, s.max, s.increment].map(Value::Int8);
        Ok(numbers.into_iter().chain([Value::Bool(s.cycle), Value::Int8(s.cache), Value::UInt4(s.ty.oid())]).collect())
    }
    fn object(&self, class: u32, oid: u32, column: i32) -> Result<(&'static str, Option<expr::ObjectName>), SqlError> {
        self.object_named(class, oid, column)
    }
    fn object_address(&self, kind: &str, names: &[String], args: &[String]) -> Result<(u32, u32, i32), SqlError> {
        self.object_addressed(kind, names, args)
    }
    fn owned_sequence(&self, table: u32, column: &str) -> Result<Option<String>, SqlError> {
        let Some(item) = self.item(table) else { return Ok(None) };
        let i = item
            .desc
            .names
            .iter()
            .position(|n| n == column)
            .ok_or_else(|| SqlError::new(state::UNDEFINED_COLUMN, format!("column \"{column}\" of relation \"{}\" does not exist", item.name)))?;
        let ItemKind::Table(t) = &item.kind else { return Ok(None) };
        let owned = t.sequences.iter().find(|s| s.column == i).and_then(|s| self.catalog.item(s.sequence));
        Ok(owned.map(|s| format!("{}.{}", quote_if_needed(&s.schema), quote_if_needed(&s.name))))
    }
}
