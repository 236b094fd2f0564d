//! Other names for relations, columns, constraints and schemas: texts that name them follow.
//!
//! Not here: types (see `type_ddl`), how a text is rewritten (`sql::plan::text`).

use super::alter::{nextval, Draft};
use super::ddl::{drop_word, table_sql, user_types};
use super::{Response, Session};
use crate::catalog::{Item, ItemKind, Namespace};
use crate::coordinator::request::Op;
use crate::planner::{full_name, qualified};
use repr::error::state;
use repr::{GlobalId, SqlError};
use sql::ast::ObjectKind;
use sql::plan::check_column_name;
use sql::plan::text::{has_rows, renamed, Rename};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

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

    /// Texts of other objects that name a relation or its column, rewritten. Columns are named also by what has rows of the relation from others.
    fn rewritten(&self, item: &Item, rename: &Rename<'_>) -> Result<Vec<Op>, SqlError> {
        let names = self.names();
        let catalog = self.catalog();
        let dependants = match rename {
            Rename::Column { .. } => self.all_dependants(item.id),
            Rename::Relation { .. } => catalog.dependants(item.id).cloned().collect(),
        };
        let mut ops = Vec::new();
        for d in dependants {
            let mut new = (*d).clone();
            match &mut new.kind {
                ItemKind::View { query, .. } | ItemKind::MaterializedView { query, .. } => {
                    let text = renamed(("", ""), query, rename, &names)?;
                    new.set_query(text);
                }
                ItemKind::Index { on, key, def } => {
                    let Some(over) = catalog.item(*on) else { continue };
                    let from = format!(" FROM {}", qualified(&over.schema, &over.name));
                    for k in key.iter_mut().chain(&mut def.filter) {
                        *k = renamed(("SELECT ", &from), k, rename, &names)?;
                    }
                    let base = match rename {
                        Rename::Relation { rel, schema, name } if rel == on => qualified(schema, name),
                        _ => qualified(&over.schema, &over.name),
                    };
                    new.sql = format!("CREATE INDEX {} ON {base} ({})", sql::plan::quote_ident(&new.name), key.join(", "));
                }
                _ => continue,
            }
            ops.push(Op::Update { item: Box::new(new) });
        }
        Ok(ops)
    }

    /// What has rows of the relation as values, and all that is made of that, in order: their fields are called as its columns are.
    /// Errors: 0A000 for a table with a column of that type.
    fn with_rows_of(&self, item: &Item) -> Result<Vec<Arc<Item>>, SqlError> {
        let names = self.names();
        let catalog = self.catalog();
        let mut found: Vec<Arc<Item>> = Vec::new();
        for d in self.all_dependants(item.id) {
            let has = match &d.kind {
                _ if d.deps.iter().any(|x| found.iter().any(|f| f.id == *x)) => true,
                _ if !d.deps.contains(&item.id) => false,
                ItemKind::View { query, .. } | ItemKind::MaterializedView { query, .. } => has_rows(("", ""), query, item.id, &names)?,
                ItemKind::Index { on, key, def } if *on == item.id => {
                    let from = format!(" FROM {}", qualified(&item.schema, &item.name));
                    let all: Vec<&str> = key.iter().chain(&def.filter).map(String::as_str).collect();
                    has_rows(("SELECT ", &from), &all.join(", "), item.id, &names)?
                }
                ItemKind::Table(_) if user_types(&catalog, &d.desc).contains(&item.id) => {
                    let what = format!("renaming a column of \"{}\" while {} \"{}\" has a column of its row type", item.name, d.noun(), d.name);
                    return Err(SqlError::unsupported(what, "drop that column, and add it again afterwards"));
                }
                _ => false,
            };
            if has {
                found.push(d);
            }
        }
        Ok(found)
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
        let anew = self.with_rows_of(&item)?;
        let ops = self.rewritten(&item, &rename)?;
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
        // What has the names in its dataflow is made again.
        let (again, mut ops): (Vec<Op>, Vec<Op>) = ops.into_iter().partition(|op| matches!(op, Op::Update { item } if anew.iter().any(|a| a.id == item.id)));
        let again: BTreeMap<GlobalId, Item> =
            again.into_iter().filter_map(|op| if let Op::Update { item } = op { Some((item.id, *item)) } else { None }).collect();
        let touched: Vec<GlobalId> = ops.iter().filter_map(|op| if let Op::Update { item } = op { Some(item.id) } else { None }).collect();
        ops.insert(0, Op::Update { item: Box::new(item.clone()) });
        if !anew.is_empty() {
            ops.insert(0, Op::Drop { ids: anew.iter().rev().map(|a| a.id).collect() });
        }
        self.apply(ops)?;
        touched.into_iter().chain([relation]).for_each(|id| self.shared.planner.forget_text(id));
        let mut ids = BTreeMap::new();
        for a in &anew {
            self.recreate(&item, again.get(&a.id).unwrap_or(a), &mut ids)?;
        }
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
