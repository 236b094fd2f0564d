//! Other names for relations, columns, constraints and schemas: texts that name them follow.
//!
//! Not here: types (see `type_ddl`), how a text is rewritten (`sql::plan::text`).

use super::alter::{nextval, Draft};
use super::ddl::{drop_word, table_sql};
use super::{Response, Session};
use crate::catalog::{Item, ItemKind, Namespace};
use crate::coordinator::request::Op;
use crate::planner::{full_name, qualified};
use repr::error::state;
use repr::{GlobalId, SqlError};
use sql::ast::ObjectKind;
use sql::plan::check_column_name;
use sql::plan::text::{renamed, Rename};
use std::collections::BTreeSet;

impl Session {
    pub(super) fn rename_constraint(&mut self, table: GlobalId, from: &str, to: String) -> Result<Response, SqlError> {
        let item = self.table(table)?;
        let mut draft = Draft::of(&item)?;
        let t = &mut draft.table;
        if t.primary_key.iter().chain(&t.unique).any(|k| k.name == to) || t.checks.iter().any(|c| c.0 == to) || t.foreign.iter().any(|f| f.name == to) {
            return Err(SqlError::new(state::DUPLICATE_OBJECT, format!("constraint \"{to}\" for relation \"{}\" already exists", item.name)));
        }
        t.primary_key.iter_mut().chain(&mut t.unique).filter(|k| k.name == from).for_each(|k| k.name.clone_from(&to));
        t.checks.iter_mut().filter(|c| c.0 == from).for_each(|c| c.0.clone_from(&to));
        t.foreign.iter_mut().filter(|f| f.name == from).for_each(|f| f.name.clone_from(&to));
        t.unchecked.iter_mut().filter(|n| *n == from).for_each(|n| n.clone_from(&to));
        let mut item = draft.item;
        item.constraint_comments.iter_mut().filter(|c| c.name == from).for_each(|c| c.name.clone_from(&to));
        item.sql = table_sql(&full_name(&item), &item.desc, &draft.table);
        item.kind = ItemKind::Table(draft.table);
        self.apply(vec![Op::Update { item: Box::new(item) }])?;
        self.shared.planner.forget_text(table);
        Ok(Response::Tag("ALTER TABLE".into()))
    }

    /// Texts of other objects that name a relation or its column, rewritten.
    fn rewritten(&self, item: &Item, rename: &Rename<'_>) -> Result<Vec<Op>, SqlError> {
        let names = self.names();
        let catalog = self.catalog();
        let mut ops = Vec::new();
        for d in catalog.dependants(item.id) {
            let mut new = (**d).clone();
            match &mut new.kind {
                ItemKind::View { query, .. } | ItemKind::MaterializedView { query, .. } => {
                    let text = renamed(("", ""), query, rename, &names)?;
                    new.set_query(text);
                }
                ItemKind::Index { on, key, def } if *on == item.id => {
                    let from = format!(" FROM {}", qualified(&item.schema, &item.name));
                    for k in key.iter_mut().chain(&mut def.filter) {
                        *k = renamed(("SELECT ", &from), k, rename, &names)?;
                    }
                    let base = match rename {
                        Rename::Relation { schema, name, .. } => qualified(schema, name),
                        Rename::Column { .. } => qualified(&item.schema, &item.name),
                    };
                    new.sql = format!("CREATE INDEX {} ON {base} ({})", sql::plan::quote_ident(&new.name), key.join(", "));
                }
                _ => continue,
            }
            ops.push(Op::Update { item: Box::new(new) });
        }
        Ok(ops)
    }

    pub(super) async fn rename_column(&mut self, kind: ObjectKind, relation: GlobalId, column: usize, to: String) -> Result<Response, SqlError> {
        let mut item = (*self.table(relation)?).clone();
        if item.desc.names.contains(&to) {
            return Err(SqlError::new(state::DUPLICATE_COLUMN, format!("column \"{to}\" of relation \"{}\" already exists", item.name)));
        }
        if matches!(item.kind, ItemKind::Table(_)) {
            check_column_name(&to)?;
        }
        let rename = Rename::Column { rel: relation, column, to: &to };
        let mut ops = self.rewritten(&item, &rename)?;
        if let ItemKind::Table(t) = &mut item.kind {
            let from = format!(" FROM {}", qualified(&item.schema, &item.name));
            let names = self.names();
            let keys = t.computed_keys.iter_mut().flat_map(|k| k.keys.iter_mut().chain(&mut k.filter));
            let texts = t.checks.iter_mut().map(|c| &mut c.1).chain(t.generated.iter_mut().flatten()).chain(keys);
            for text in texts {
                *text = renamed(("SELECT ", &from), text, &rename, &names)?;
            }
        }
        item.desc.names[column] = to.clone();
        if let ItemKind::Table(t) = &item.kind {
            item.sql = table_sql(&full_name(&item), &item.desc, t);
        }
        let touched: Vec<GlobalId> = ops.iter().filter_map(|op| if let Op::Update { item } = op { Some(item.id) } else { None }).collect();
        ops.insert(0, Op::Update { item: Box::new(item) });
        self.apply(ops)?;
        touched.into_iter().chain([relation]).for_each(|id| self.shared.planner.forget_text(id));
        Ok(Response::Tag(format!("ALTER {}", drop_word(kind))))
    }

    /// Gives a relation, an index or a sequence another name or schema.
    pub(super) fn rename_relation(&mut self, mut item: Item, schema: String, name: String) -> Result<(), SqlError> {
        let rename = Rename::Relation { rel: item.id, schema: &schema, name: &name };
        let mut ops = self.rewritten(&item, &rename)?;
        let catalog = self.catalog();
        if matches!(item.kind, ItemKind::Sequence(_)) {
            // Defaults name it.
            let (was, is) = (nextval(&item.schema, &item.name), nextval(&schema, &name));
            for d in catalog.dependants(item.id) {
                let mut table = (**d).clone();
                if let ItemKind::Table(t) = &mut table.kind {
                    t.defaults.iter_mut().flatten().filter(|d| **d == was).for_each(|d| d.clone_from(&is));
                    ops.push(Op::Update { item: Box::new(table) });
                }
            }
        }
        if let ItemKind::Index { on, .. } = &item.kind {
            if let Some(table) = catalog.item(*on) {
                let mut table = (**table).clone();
                if let ItemKind::Table(t) = &mut table.kind {
                    t.unique.iter_mut().filter(|u| u.index && u.name == item.name).for_each(|u| u.name.clone_from(&name));
                    t.computed_keys.iter_mut().filter(|k| k.name == item.name).for_each(|k| k.name.clone_from(&name));
                    ops.push(Op::Update { item: Box::new(table) });
                }
            }
        }
        if matches!(item.kind, ItemKind::Type(_) | ItemKind::Domain(_)) {
            item.sql = item.sql.replacen(&qualified(&item.schema, &item.name), &qualified(&schema, &name), 1);
        }
        item.schema = schema;
        item.name = name;
        if let ItemKind::Table(t) = &item.kind {
            item.sql = table_sql(&full_name(&item), &item.desc, t);
        }
        let touched: Vec<GlobalId> = ops.iter().filter_map(|op| if let Op::Update { item } = op { Some(item.id) } else { None }).collect();
        let id = item.id;
        ops.insert(0, Op::Update { item: Box::new(item) });
        self.apply(ops)?;
        touched.into_iter().chain([id]).for_each(|id| self.shared.planner.forget_text(id));
        Ok(())
    }

    /// All that is in a schema goes to one of another name, which has its number. Errors: 42P06, 42939, 42501.
    pub(super) fn rename_schema(&mut self, from: &str, to: String) -> Result<Response, SqlError> {
        let catalog = self.catalog();
        let Some(schema) = catalog.schema(from).cloned() else {
            return Err(SqlError::new(state::INSUFFICIENT_PRIVILEGE, format!("permission denied: \"{from}\" is a system schema")));
        };
        if to.starts_with("pg_") {
            let e = SqlError::new(state::RESERVED_NAME, format!("unacceptable schema name \"{to}\""));
            return Err(e.with_detail("The prefix \"pg_\" is reserved for system schemas."));
        }
        if crate::builtin::namespace_oid(&catalog, &to).is_some() {
            return Err(SqlError::new(state::DUPLICATE_SCHEMA, format!("schema \"{to}\" already exists")));
        }
        let inside = catalog.items_in(from);
        let types: BTreeSet<&str> = inside.iter().filter(|i| i.namespace() == Namespace::Type).flat_map(|i| i.names()).collect();
        self.apply(vec![Op::CreateSchema { name: to.clone(), oid: schema.oid }, Op::CommentSchema { name: to.clone(), text: schema.comment }])?;
        let (of_types, others): (Vec<_>, Vec<_>) = inside.iter().partition(|i| i.namespace() == Namespace::Type);
        for ty in of_types {
            self.rename_relation((**ty).clone(), to.clone(), ty.name.clone())?;
        }
        let mut ops = Vec::new();
        for i in self.catalog().items() {
            let mut item = (**i).clone();
            // What was made with the schema in its search path finds there what it found.
            let mut changed = item.captured.search_path.iter().any(|s| s == from);
            item.captured.search_path.iter_mut().filter(|s| *s == from).for_each(|s| s.clone_from(&to));
            // Names of types; those of relations are looked up, and follow.
            for text in item.texts_mut() {
                match sql::parse::requalified(text, from, &to, |name| types.contains(name.strip_prefix('_').unwrap_or(name)) || types.contains(name)) {
                    Some(new) => {
                        changed |= new != *text;
                        *text = new;
                    }
                    None => {
                        let what = format!("ALTER SCHEMA {from} RENAME while {} has an alias of that name", i.told());
                        return Err(SqlError::unsupported(what, "drop it and make it again after the change"));
                    }
                }
            }
            if changed {
                self.shared.planner.forget_text(item.id);
                match &item.kind {
                    ItemKind::Table(t) => item.sql = table_sql(&full_name(&item), &item.desc, t),
                    ItemKind::View { query, .. } | ItemKind::MaterializedView { query, .. } => {
                        let old = i.texts().next().unwrap_or_default();
                        item.sql = item.sql.strip_suffix(old).map_or_else(|| item.sql.clone(), |head| format!("{head}{query}"));
                    }
                    _ => {}
                }
                ops.push(Op::Update { item: Box::new(item) });
            }
        }
        self.apply(ops)?;
        for id in others.iter().map(|i| i.id) {
            let Some(item) = self.catalog().item(id).cloned() else { continue };
            self.rename_relation((*item).clone(), to.clone(), item.name.clone())?;
        }
        self.apply(vec![Op::DropSchema { name: from.to_owned() }])?;
        Ok(Response::Tag("ALTER SCHEMA".into()))
    }
}
