//! The catalog: objects by id and by name, as one immutable value that DDL replaces.
//!
//! Sessions plan on a snapshot (`Arc<Catalog>`); the coordinator alone makes the next one, together with the tick that
//! makes it durable. Only [`Item`]s and schemas are stored; plans of views are derived when they are first needed.

/// Catalog entries as they are stored.
pub mod item;

pub use item::*;

use crate::builtin::quote_if_needed;
use repr::error::state;
use repr::{GlobalId, SqlError};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Ids below belong to Postgres's own objects (their OIDs appear in pg_catalog).
pub const FIRST_USER_ID: u64 = 20_000;

/// Metadata keys: `catalog/item/<id>`, `catalog/schema/<name>`, `catalog/next_id`, `catalog/database`, `source/<id>`, `sequence/<id>`.
pub mod key {
    use repr::GlobalId;
    pub const ITEM: &[u8] = b"catalog/item/";
    pub const SCHEMA: &[u8] = b"catalog/schema/";
    pub const NEXT_ID: &[u8] = b"catalog/next_id";
    /// What COMMENT ON DATABASE says.
    pub const DATABASE: &[u8] = b"catalog/database";
    pub const SOURCE: &[u8] = b"source/";
    pub const SEQUENCE: &[u8] = b"sequence/";
    pub fn sequence(id: GlobalId) -> Vec<u8> {
        [SEQUENCE, format!("{:020}", id.0).as_bytes()].concat()
    }
    pub fn item(id: GlobalId) -> Vec<u8> {
        [ITEM, format!("{:020}", id.0).as_bytes()].concat()
    }
    pub fn schema(name: &str) -> Vec<u8> {
        [SCHEMA, name.as_bytes()].concat()
    }
    pub fn source(id: GlobalId) -> Vec<u8> {
        [SOURCE, format!("{:020}", id.0).as_bytes()].concat()
    }
}

/// Objects and schemas at one moment.
#[derive(Clone, Default)]
pub struct Catalog {
    /// Grows by one with each change.
    pub version: u64,
    pub next_id: u64,
    pub database_comment: Option<String>,
    items: BTreeMap<GlobalId, Arc<Item>>,
    names: BTreeMap<(String, Namespace, String), GlobalId>,
    schemas: BTreeMap<String, Schema>,
    dependants: BTreeMap<GlobalId, BTreeSet<GlobalId>>,
}

/// A user schema: the id that pg_namespace shows, and what COMMENT ON says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schema {
    pub oid: u32,
    pub comment: Option<String>,
}

impl Schema {
    /// Its entry in the metadata: the id, and behind a line break the comment.
    pub fn entry(&self) -> Vec<u8> {
        let comment = self.comment.as_ref().map_or_else(String::new, |c| format!("\n{c}"));
        format!("{}{comment}", self.oid).into_bytes()
    }
    pub fn of_entry(entry: &[u8]) -> Schema {
        let text = String::from_utf8_lossy(entry);
        let (oid, comment) = text.split_once('\n').map_or((&*text, None), |(oid, comment)| (oid, Some(comment.to_owned())));
        Schema { oid: oid.parse().unwrap_or(0), comment }
    }
}

impl Catalog {
    pub fn item(&self, id: GlobalId) -> Option<&Arc<Item>> {
        self.items.get(&id)
    }
    /// All objects in order of creation: what an object is made from comes before it.
    pub fn items(&self) -> impl Iterator<Item = &Arc<Item>> {
        self.items.values()
    }
    /// Whether its rows are made when it is read: a system relation, or a sequence.
    pub fn is_builtin(&self, id: GlobalId) -> bool {
        crate::builtin::is_builtin(id) || self.item(id).is_some_and(|i| matches!(i.kind, ItemKind::Sequence(_)))
    }
    pub fn find(&self, schema: &str, namespace: Namespace, name: &str) -> Option<&Arc<Item>> {
        let id = self.names.get(&(schema.to_string(), namespace, name.to_string()))?;
        self.items.get(id)
    }
    pub fn schemas(&self) -> impl Iterator<Item = (&str, u32)> {
        self.schemas.iter().map(|(n, s)| (n.as_str(), s.oid))
    }
    pub fn has_schema(&self, name: &str) -> bool {
        self.schemas.contains_key(name)
    }
    pub fn schema_oid(&self, name: &str) -> Option<u32> {
        self.schemas.get(name).map(|s| s.oid)
    }
    pub fn schema(&self, name: &str) -> Option<&Schema> {
        self.schemas.get(name)
    }
    pub fn items_in(&self, schema: &str) -> Vec<Arc<Item>> {
        self.items.values().filter(|i| i.schema == schema).cloned().collect()
    }

    pub fn put_schema(&mut self, name: String, schema: Schema) {
        self.schemas.insert(name, schema);
    }
    pub fn remove_schema(&mut self, name: &str) {
        self.schemas.remove(name);
    }

    /// Adds or replaces an object.
    pub fn put(&mut self, item: Item) {
        self.remove(item.id);
        for name in item.names() {
            self.names.insert((item.schema.clone(), item.namespace(), name.to_owned()), item.id);
        }
        for d in &item.deps {
            self.dependants.entry(*d).or_default().insert(item.id);
        }
        self.items.insert(item.id, Arc::new(item));
    }

    pub fn remove(&mut self, id: GlobalId) {
        let Some(old) = self.items.remove(&id) else { return };
        for name in old.names() {
            self.names.remove(&(old.schema.clone(), old.namespace(), name.to_owned()));
        }
        for d in &old.deps {
            if let Some(set) = self.dependants.get_mut(d) {
                set.remove(&id);
            }
        }
    }

    pub fn dependants(&self, id: GlobalId) -> impl Iterator<Item = &Arc<Item>> {
        self.dependants.get(&id).into_iter().flatten().filter_map(|d| self.items.get(d))
    }

    /// Errors: 42P07 or 42710 if the name is taken.
    pub fn check_free(&self, schema: &str, namespace: Namespace, name: &str) -> Result<(), SqlError> {
        let Some(existing) = self.find(schema, namespace, name) else { return Ok(()) };
        Err(match namespace {
            Namespace::Relation => SqlError::new(state::DUPLICATE_TABLE, format!("relation \"{name}\" already exists")),
            _ => SqlError::new(state::DUPLICATE_OBJECT, format!("{} \"{name}\" already exists", existing.noun())),
        })
    }

    /// The objects that go when `ids` are dropped, dependants first.
    /// Errors: 2BP01 without `cascade`, if something else depends on one of them. Indexes and what a source's own statement made go silently.
    pub fn drop_order(&self, ids: &[GlobalId], cascade: bool) -> Result<Vec<GlobalId>, SqlError> {
        let mut order = Vec::new();
        let mut seen = BTreeSet::new();
        let mut blockers = Vec::new();
        for id in ids {
            self.collect_drop(*id, ids, cascade, &mut order, &mut seen, &mut blockers);
        }
        if !blockers.is_empty() {
            let what = match ids {
                [one] => format!("cannot drop {} because other objects depend on it", self.items.get(one).map(|i| i.told()).unwrap_or_default()),
                _ => "cannot drop desired object(s) because other objects depend on them".into(),
            };
            let e = SqlError::new(state::DEPENDENT_OBJECTS_STILL_EXIST, what);
            return Err(e.with_detail(blockers.join("\n")).with_hint("Use DROP ... CASCADE to drop the dependent objects too."));
        }
        Ok(order)
    }

    fn collect_drop(
        &self,
        id: GlobalId,
        roots: &[GlobalId],
        cascade: bool,
        order: &mut Vec<GlobalId>,
        seen: &mut BTreeSet<GlobalId>,
        blockers: &mut Vec<String>,
    ) {
        if !seen.insert(id) {
            return;
        }
        let Some(item) = self.items.get(&id) else { return };
        for d in self.dependants(id).cloned().collect::<Vec<_>>() {
            let part_of = match &d.kind {
                ItemKind::Index { .. } | ItemKind::Errors { .. } | ItemKind::ViewErrors { .. } => true,
                ItemKind::SourceTable { source, with_source, .. } => *with_source && *source == id,
                _ => false,
            };
            if !cascade && !part_of && !roots.contains(&d.id) && !seen.contains(&d.id) {
                blockers.push(format!("{} depends on {}", d.told(), item.told()));
            }
            self.collect_drop(d.id, roots, cascade, order, seen, blockers);
        }
        if !cascade {
            let others = self.referring(id).into_iter().filter(|(child, _)| !roots.contains(&child.id) && !seen.contains(&child.id));
            blockers.extend(others.map(|(child, key)| format!("constraint {} on {} depends on {}", quote_if_needed(&key.name), child.told(), item.told())));
        }
        order.push(id);
        // A column's own sequences go with it.
        if let ItemKind::Table(t) = &item.kind {
            for owned in &t.sequences {
                self.collect_drop(owned.sequence, roots, true, order, seen, blockers);
            }
        }
    }

    /// The foreign keys that refer to a table, each with the table that has it.
    pub fn referring(&self, parent: GlobalId) -> Vec<(&Arc<Item>, &ForeignKey)> {
        let mut out = Vec::new();
        for i in self.items.values() {
            if let ItemKind::Table(t) = &i.kind {
                out.extend(t.foreign.iter().filter(|f| f.parent == parent).map(|f| (i, f)));
            }
        }
        out
    }

    /// `<view>_errors` of a view that has one.
    pub fn errors_of_view(&self, id: GlobalId) -> Option<&Arc<Item>> {
        self.dependants(id).find(|d| matches!(d.kind, ItemKind::ViewErrors { view } if view == id))
    }

    /// The table and column that own a sequence.
    pub fn owner_of(&self, sequence: GlobalId) -> Option<(&Arc<Item>, &OwnedSequence)> {
        self.items.values().find_map(|i| match &i.kind {
            ItemKind::Table(t) => Some((i, t.sequences.iter().find(|s| s.sequence == sequence)?)),
            _ => None,
        })
    }

    /// Of a table, or a view that rows can be written through: for each column, the name of the table's column that it is. `None` for others.
    pub fn written_through(&self, item: &Item) -> Option<Vec<Option<String>>> {
        match &item.kind {
            ItemKind::Table(_) => Some(item.desc.names.iter().cloned().map(Some).collect()),
            ItemKind::View { query, .. } => {
                let shape = sql::plan::through::view_shape(query)?;
                let [schema, name] = shape.relation.as_slice() else { return None };
                let below = self.find(schema, Namespace::Relation, name)?;
                let columns = self.written_through(below)?;
                let place = |name: &String| match shape.renamed.iter().position(|r| r == name) {
                    Some(i) => Some(i),
                    None => below.desc.names.iter().position(|n| n == name),
                };
                Some(shape.columns.iter().map(|c| columns.get(place(c.as_ref()?)?).cloned().flatten()).collect())
            }
            _ => None,
        }
    }

    /// The shards that a relation's rows come from, through views, each once.
    pub fn input_shards(&self, ids: impl IntoIterator<Item = GlobalId>) -> BTreeSet<GlobalId> {
        let mut out = BTreeSet::new();
        let mut todo: Vec<GlobalId> = ids.into_iter().collect();
        let mut seen = BTreeSet::new();
        while let Some(id) = todo.pop() {
            if !seen.insert(id) {
                continue;
            }
            let Some(item) = self.items.get(&id) else { continue };
            if item.has_shard() {
                out.insert(id);
            } else {
                todo.extend(item.deps.iter().copied());
            }
        }
        out
    }
}
