//! Catalog changes and what they start and stop.
//!
//! All of a transaction's changes go into one tick, with what it wrote; what runs (dataflows, sources) follows the durable catalog, so a crash
//! in between is mended by the next start.

use super::foreign::{Constraints, Replaced};
use super::keys::Undo;
use super::request::{CheckWrites, Op, WriteTxn};
use super::touched::Touched;
use super::{Coordinator, IndexState, LEASE_MS};
use crate::catalog::{key, Catalog, Item, ItemKind, Schema};
use crate::changes::Changes;
use crate::planner::{captured_ctx, default_key};
use expr::{Interrupt, Why};
use plan::{DataflowDesc, Export};
use repr::error::state;
use repr::{Deltas, GlobalId, SqlError, Timestamp};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Instant;

impl Coordinator {
    /// Applies a transaction that changes the catalog, all or nothing. Returns its time.
    pub(super) fn ddl(&mut self, txn: WriteTxn) -> Result<Timestamp, SqlError> {
        let before = self.catalog();
        let mut after = (*before).clone();
        after.version += 1;
        let t = self.next_time();
        let mut tick = storage::Tick { t, lease: t + LEASE_MS, ..Default::default() };
        for (i, op) in txn.ddl.iter().enumerate() {
            if let Some(base) = txn.ddl_bases.get(i) {
                self.changes.check(&after, op, *base)?;
            }
            check_and_apply(&mut after, op, &mut tick)?;
        }
        self.validate(&txn, &BTreeMap::new(), &Touched::default())?;
        let WriteTxn { ddl: ops, writes, acted, .. } = txn;
        let writes: Vec<(GlobalId, Changes)> = writes.into_iter().filter(|w| after.item(w.0).is_some()).collect();
        let after = Arc::new(after);
        let new_tables: Vec<GlobalId> = ops.iter().filter_map(|op| if let Op::Create { item, .. } = op { Some(item.id) } else { None }).collect();
        for item in new_tables.iter().filter_map(|id| after.item(*id)) {
            if let Err(e) = self.keys.add(&self.planner, &after, item) {
                new_tables.iter().for_each(|id| self.keys.remove(*id));
                return Err(e);
            }
        }
        let altered: Vec<GlobalId> = ops.iter().filter_map(|op| if let Op::Update { item } = op { Some(item.id) } else { None }).collect();
        let replaced = match self.replace_foreign(&after, &altered) {
            Ok(replaced) => replaced,
            Err(e) => {
                new_tables.iter().for_each(|id| self.keys.remove(*id));
                return Err(e);
            }
        };
        let sequences = self.shared.sequences.take_changed();
        tick.meta.splice(0..0, sequences.meta());
        let mut undo = Undo::default();
        let written = writes.iter().try_for_each(|(table, changes)| self.keys.apply(&after, *table, changes, &Default::default(), &mut undo));
        let written = written.and_then(|()| self.check_foreign(&after, &writes, &replaced, &Default::default(), &acted));
        let appended = written.and_then(|()| self.append_ddl(tick, &before, &after, &writes));
        let shards = match appended {
            Ok(shards) => shards,
            Err(e) => {
                self.keys.undo_tick(undo);
                replaced.into_iter().for_each(|r| self.keys.foreign.restore(r));
                self.shared.sequences.put_back(sequences);
                new_tables.iter().for_each(|id| self.keys.remove(*id));
                return Err(e);
            }
        };
        let mut touched = Touched::default();
        writes.iter().for_each(|(table, changes)| touched.add(*table, changes, &self.keys));
        self.touched.note(touched, t);
        let parts = self.read_back(&writes.iter().flat_map(|w| w.1.staged()).collect::<Vec<_>>());
        self.distribute(t, shards, parts);
        self.changes.note(&ops, after.version);
        *self.catalog.write() = after.clone();
        self.follow(&before, &after, ops, t)?;
        Ok(t)
    }

    /// Watches the foreign keys of tables whose entries have changed; returns how to go back.
    /// Errors: the disk's, with nothing changed.
    fn replace_foreign(&mut self, after: &Catalog, altered: &[GlobalId]) -> Result<Vec<Replaced>, SqlError> {
        let mut all: Vec<Replaced> = Vec::new();
        let before = self.catalog();
        for item in altered.iter().filter_map(|id| after.item(*id)) {
            if before.item(item.id).is_none() || all.iter().any(|r| r.table() == item.id) {
                continue;
            }
            let (replaced, fresh) = self.keys.foreign.replace(after, item);
            all.push(replaced);
            if fresh.is_empty() {
                continue;
            }
            let loaded = self.store.snapshot(item.id, self.closed).and_then(|s| {
                s.read(0, 1).try_for_each(|part| {
                    self.keys.foreign.load(item.id, Some(&fresh), &part?);
                    Ok(())
                })
            });
            if let Err(e) = loaded {
                all.into_iter().for_each(|r| self.keys.foreign.restore(r));
                return Err(e);
            }
        }
        Ok(all)
    }

    /// Errors: 23503 for what was written, or for any row of a table whose foreign keys were replaced.
    fn check_foreign(
        &self,
        catalog: &Catalog,
        writes: &[(GlobalId, Changes)],
        replaced: &[Replaced],
        deferred: &Constraints,
        acted: &Constraints,
    ) -> Result<(), SqlError> {
        self.keys.foreign.check((&self.catalog(), catalog), &self.keys, writes, deferred, acted)?;
        replaced.iter().try_for_each(|r| self.keys.foreign.check_all(catalog, &self.keys, r.table()))
    }

    /// Looks at a transaction's changes as if they were committed now, and changes nothing.
    pub(super) fn check_writes(&mut self, c: CheckWrites) -> Result<(), SqlError> {
        let new: Vec<GlobalId> = c.writes.iter().map(|w| w.0).chain(c.altered.iter().copied()).filter(|id| !self.keys.watches(*id)).collect();
        let before = self.catalog();
        for item in new.iter().filter(|id| before.item(**id).is_none()).filter_map(|id| c.catalog.item(*id)) {
            self.keys.add(&self.planner, &c.catalog, item)?;
        }
        let mut undo = Undo::default();
        let result = self.replace_foreign(&c.catalog, &c.altered).and_then(|replaced| {
            let applied = c.writes.iter().try_for_each(|(table, changes)| self.keys.apply(&c.catalog, *table, changes, &c.deferred, &mut undo));
            let result = applied.and_then(|()| self.check_foreign(&c.catalog, &c.writes, &replaced, &c.deferred, &c.acted));
            self.keys.undo_txn(&mut undo);
            replaced.into_iter().for_each(|r| self.keys.foreign.restore(r));
            result
        });
        new.iter().filter(|id| before.item(**id).is_none()).for_each(|id| self.keys.remove(*id));
        result
    }

    /// Makes the tick durable. Returns the writes by shard.
    fn append_ddl(
        &mut self,
        mut tick: storage::Tick,
        before: &Catalog,
        after: &Catalog,
        writes: &[(GlobalId, Changes)],
    ) -> Result<Vec<(GlobalId, Deltas)>, SqlError> {
        let changes = writes.iter().flat_map(|(id, c)| c.rows().iter().filter(|d| !d.is_empty()).map(|d| (*id, d.clone()))).collect();
        tick.staged.extend(writes.iter().flat_map(|w| w.1.staged()));
        if after.next_id != before.next_id {
            tick.meta.push((key::NEXT_ID.to_vec(), Some(after.next_id.to_string().into_bytes())));
        }
        storage::kill_point("ddl-before-append");
        let shards = self.append_changes(tick, changes)?;
        storage::kill_point("ddl-after-append");
        Ok(shards)
    }

    /// Starts and stops what runs as the catalog now says.
    fn follow(&mut self, before: &Catalog, after: &Arc<Catalog>, ops: Vec<Op>, t: Timestamp) -> Result<(), SqlError> {
        let mut restart = Vec::new();
        for op in ops {
            match op {
                Op::Create { item, plan } => {
                    if let Some(plan) = plan {
                        self.planner.remember(item.id, plan);
                    }
                    // What a later change of the transaction dropped again never ran.
                    let Some(item) = after.item(item.id) else { continue };
                    let replaces = |old: &Arc<Item>| matches!(old.kind, ItemKind::Table(_)) && old.id != item.id;
                    if matches!(item.kind, ItemKind::Table(_)) && before.find(&item.schema, item.namespace(), &item.name).is_some_and(replaces) {
                        self.shared.born.lock().insert(item.id, t);
                    }
                    publish_labels(item);
                    self.created(after, item, t)?;
                    if let ItemKind::SourceTable { source, .. } = &item.kind {
                        restart.push(*source);
                    }
                    if matches!(item.kind, ItemKind::Source(_)) {
                        restart.push(item.id);
                    }
                }
                Op::Drop { ids } => self.dropped(before, after, &ids),
                Op::Update { item } => {
                    self.planner.forget_text(item.id);
                    publish_labels(&item);
                    self.keys.rename(&item);
                    // A new password reaches the sources that use it.
                    if matches!(item.kind, ItemKind::Secret { .. }) {
                        let connections = after.dependants(item.id);
                        restart.extend(connections.flat_map(|c| after.dependants(c.id)).filter(|i| matches!(i.kind, ItemKind::Source(_))).map(|i| i.id));
                    }
                }
                Op::CreateSchema { .. } | Op::CommentSchema { .. } | Op::CommentDatabase { .. } | Op::DropSchema { .. } => {}
            }
        }
        restart.sort();
        restart.dedup();
        for id in restart.into_iter().filter(|id| after.item(*id).is_some()) {
            self.start_source(id);
        }
        Ok(())
    }

    /// Starts what a new object needs.
    pub(super) fn created(&mut self, catalog: &Arc<Catalog>, item: &Item, as_of: Timestamp) -> Result<(), SqlError> {
        match &item.kind {
            // Of a transaction that has filled it already, its keys are known.
            ItemKind::Table(_) if self.keys.watches(item.id) => {}
            ItemKind::Table(_) => self.keys.add(&self.planner, catalog, item)?,
            ItemKind::MaterializedView { .. } => {
                let ctx = Arc::new(captured_ctx(&item.captured, catalog));
                let interrupt = ctx.interrupt.clone();
                let key = default_key(item);
                let mut exports = vec![Export::Arrangement { index: item.id, on: item.id, key: key.clone() }];
                let listed: Vec<Arc<Item>> =
                    catalog.dependants(item.id).filter(|d| matches!(d.kind, ItemKind::ViewErrors { view } if view == item.id)).cloned().collect();
                exports.extend(listed.iter().map(|e| Export::Arrangement { index: e.id, on: e.id, key: default_key(e) }));
                let (builds, imports, quarantine) = match self.stopped.get(&item.id) {
                    // Its error is no row's, to be listed.
                    Some(why) => {
                        let failed = |i: &Item| (i.id, optimize::Dataflow::failed(i.desc.types.clone(), why.clone()).lir);
                        (std::iter::once(item).chain(listed.iter().map(|e| &**e)).map(failed).collect(), vec![], vec![])
                    }
                    None => {
                        let mir = self.planner.view_mir(catalog, item)?;
                        let optimize::Dataflow { lir, imports, .. } = self.planner.physical(catalog, &mir, &ctx, &|id| self.indexes_on(id))?;
                        (vec![(item.id, lir)], imports, listed.iter().map(|e| (item.id, e.id)).collect())
                    }
                };
                let desc = DataflowDesc { name: format!("{}.{}", item.schema, item.name), as_of, until: None, imports, builds, exports, ctx, quarantine };
                self.create_dataflow(item.id, desc)?;
                self.add_index(item.id, item.id, key, as_of, Some(interrupt));
                for e in listed {
                    self.add_index(e.id, e.id, default_key(&e), as_of, None);
                }
            }
            ItemKind::Index { .. } if self.stopped.contains_key(&item.id) => {}
            ItemKind::Index { on, .. } => {
                let ctx = Arc::new(captured_ctx(&item.captured, catalog));
                let key = (*self.planner.index_key(catalog, item)?).clone();
                let mir = self.planner.relation_mir(catalog, *on)?;
                let optimize::Dataflow { lir, imports, .. } = self.planner.physical(catalog, &mir, &ctx, &|id| self.indexes_on(id))?;
                let desc = DataflowDesc {
                    name: format!("{}.{}", item.schema, item.name),
                    as_of,
                    until: None,
                    imports,
                    builds: vec![(item.id, lir)],
                    exports: vec![Export::Arrangement { index: item.id, on: item.id, key: key.clone() }],
                    ctx,
                    quarantine: vec![],
                };
                self.create_dataflow(item.id, desc)?;
                self.add_index(item.id, *on, key, as_of, None);
            }
            _ => {}
        }
        Ok(())
    }

    fn add_index(&mut self, index: GlobalId, on: GlobalId, key: Vec<expr::Scalar>, as_of: Timestamp, interrupt: Option<Interrupt>) {
        let state = IndexState { on, key, since: as_of, upper: 0, records: 0, bytes: 0, as_of, created: Instant::now(), hydrated: None, interrupt };
        self.indexes.insert(index, state);
        self.shared.born.lock().insert(index, as_of);
    }

    /// Ends the dataflow behind an arrangement, if it is its first.
    pub(super) fn remove_index(&mut self, id: GlobalId) {
        if let Some(state) = self.indexes.remove(&id) {
            if let Some(interrupt) = state.interrupt {
                interrupt.set(Why::Asked);
            }
            self.end_dataflow(id);
        }
    }

    fn dropped(&mut self, before: &Catalog, after: &Catalog, ids: &[GlobalId]) {
        self.end_reads_of(ids, before, after);
        for id in ids {
            let Some(item) = before.item(*id) else { continue };
            self.remove_index(*id);
            self.stopped.remove(id);
            self.keys.remove(*id);
            self.planner.forget(*id);
            self.last_write.remove(id);
            self.touched.forget(*id);
            self.shared.born.lock().remove(id);
            self.shared.sequences.forget(*id);
            match &item.kind {
                ItemKind::Source(_) => self.sources.stop(*id),
                ItemKind::SourceTable { source, .. } if !ids.contains(source) => self.start_source(*source),
                _ => {}
            }
        }
    }
}

/// When objects were last changed, in versions of the catalog.
#[derive(Default)]
pub(super) struct LastChanged {
    last: HashMap<GlobalId, u64>,
    /// Changes up to this version are forgotten: what was planned before it conflicts.
    floor: u64,
}

/// Objects remembered before the older half is forgotten.
const CHANGES_MAX: usize = 100_000;

impl LastChanged {
    fn note(&mut self, ops: &[Op], version: u64) {
        for op in ops {
            match op {
                Op::Create { item, .. } | Op::Update { item } => drop(self.last.insert(item.id, version)),
                Op::Drop { ids } => self.last.extend(ids.iter().map(|id| (*id, version))),
                Op::CreateSchema { .. } | Op::CommentSchema { .. } | Op::CommentDatabase { .. } | Op::DropSchema { .. } => {}
            }
        }
        if self.last.len() > CHANGES_MAX {
            let mut versions: Vec<u64> = self.last.values().copied().collect();
            self.floor = *versions.select_nth_unstable(CHANGES_MAX / 2).1;
            self.last.retain(|_, v| *v > self.floor);
        }
    }

    /// Errors: 40001 if another transaction has since `base` changed what `op` changes or refers to, or made something that refers to it.
    fn check(&self, catalog: &Catalog, op: &Op, base: u64) -> Result<(), SqlError> {
        let changed = |id: &GlobalId| base < self.floor || self.last.get(id).is_some_and(|v| *v > base);
        let with_dependants = |id: &GlobalId| changed(id) || catalog.dependants(*id).any(|d| changed(&d.id));
        let (conflict, what) = match op {
            Op::Create { item, .. } => (item.deps.iter().any(changed), item.told()),
            Op::Update { item } => (with_dependants(&item.id), item.told()),
            Op::Drop { ids } => {
                let id = ids.iter().find(|id| with_dependants(id));
                (id.is_some(), id.and_then(|id| catalog.item(*id)).map_or_else(|| "an object".to_owned(), |i| i.told()))
            }
            Op::DropSchema { name } => (catalog.items_in(name).iter().any(|i| changed(&i.id)), format!("schema {name}")),
            Op::CreateSchema { .. } | Op::CommentSchema { .. } | Op::CommentDatabase { .. } => (false, String::new()),
        };
        if !conflict {
            return Ok(());
        }
        let m = format!("could not serialize access: {what} or what belongs to it was changed meanwhile");
        Err(SqlError::new(state::SERIALIZATION_FAILURE, m).with_hint("The transaction might succeed if retried."))
    }
}

/// What running plans know of an enumeration: its labels as they now are.
pub(super) fn publish_labels(item: &Item) {
    if let ItemKind::Type(repr::SqlType::Enum(e)) = &item.kind {
        e.publish();
    }
}

/// Makes one change to the catalog, and notes what becomes durable. Errors: what the change needs is not as it was planned.
pub(crate) fn check_and_apply(catalog: &mut Catalog, op: &Op, tick: &mut storage::Tick) -> Result<(), SqlError> {
    match op {
        Op::CreateSchema { name, oid } => {
            if catalog.has_schema(name) {
                return Err(SqlError::new(state::DUPLICATE_SCHEMA, format!("schema \"{name}\" already exists")));
            }
            catalog.next_id = catalog.next_id.max(u64::from(*oid) + 1);
            let schema = Schema { oid: *oid, comment: None };
            tick.meta.push((key::schema(name), Some(schema.entry())));
            catalog.put_schema(name.clone(), schema);
        }
        Op::CommentSchema { name, text } => {
            let old = catalog.schema(name).ok_or_else(|| crate::vanished(&format!("schema {name}")))?;
            let schema = Schema { oid: old.oid, comment: text.clone() };
            tick.meta.push((key::schema(name), Some(schema.entry())));
            catalog.put_schema(name.clone(), schema);
        }
        Op::CommentDatabase { text } => {
            tick.meta.push((key::DATABASE.to_vec(), text.as_ref().map(|t| t.clone().into_bytes())));
            catalog.database_comment.clone_from(text);
        }
        Op::DropSchema { name } => {
            catalog.remove_schema(name);
            tick.meta.push((key::schema(name), None));
        }
        Op::Create { item, .. } => {
            if !catalog.has_schema(&item.schema) {
                return Err(SqlError::new(state::INVALID_SCHEMA_NAME, format!("schema \"{}\" does not exist", item.schema)));
            }
            catalog.check_free(&item.schema, item.namespace(), &item.name)?;
            for d in &item.deps {
                if catalog.item(*d).is_none() {
                    return Err(crate::vanished(&format!("what {} refers to", item.told())));
                }
            }
            if item.has_shard() {
                tick.create.push((item.id, item.desc.types.clone()));
            }
            catalog.next_id = catalog.next_id.max(item.id.0 + 1);
            put(catalog, Item { created_at: tick.t, ..(**item).clone() }, tick)?;
        }
        Op::Drop { ids } => {
            for id in ids {
                let Some(item) = catalog.item(*id).cloned() else { continue };
                if let Some(d) = catalog.dependants(*id).find(|d| !ids.contains(&d.id)) {
                    let m = format!("cannot drop {} because other objects depend on it", item.told());
                    return Err(SqlError::new(state::DEPENDENT_OBJECTS_STILL_EXIST, m).with_detail(format!("{} depends on it", d.told())));
                }
                if item.has_shard() {
                    tick.drop.push(*id);
                }
                tick.meta.push((key::item(*id), None));
                if matches!(item.kind, ItemKind::Source(_)) {
                    tick.meta.push((key::source(*id), None));
                }
                if matches!(item.kind, ItemKind::Sequence(_)) {
                    tick.meta.push((key::sequence(*id), None));
                }
                catalog.remove(*id);
            }
        }
        Op::Update { item } => {
            let old = catalog.item(item.id).cloned().ok_or_else(|| crate::vanished(&item.told()))?;
            if (old.schema.as_str(), old.name.as_str()) != (item.schema.as_str(), item.name.as_str()) {
                catalog.check_free(&item.schema, item.namespace(), &item.name)?;
            }
            put(catalog, Item { created_at: old.created_at, ..(**item).clone() }, tick)?;
        }
    }
    Ok(())
}

fn put(catalog: &mut Catalog, item: Item, tick: &mut storage::Tick) -> Result<(), SqlError> {
    tick.meta.push((key::item(item.id), Some(serde_json::to_vec(&item).map_err(SqlError::internal)?)));
    catalog.put(item);
    Ok(())
}
