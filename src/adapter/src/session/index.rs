//! Indexes of tables: what they say, and the keys that come and go with them.

use super::alter::Draft;
use super::{Response, Session};
use crate::catalog::{ComputedKey, Constraint, ItemKind, Table};
use crate::coordinator::request::Op;
use repr::{GlobalId, SqlError};

impl Session {
    /// What an index on `table` says beyond its keys.
    pub(super) fn index_def(&self, table: GlobalId, index: &str) -> Option<crate::catalog::IndexDef> {
        self.catalog().dependants(table).find_map(|d| match &d.kind {
            ItemKind::Index { on, def, .. } if *on == table && d.name == index => Some(def.clone()),
            _ => None,
        })
    }

    /// The columns that an index on `table` holds beside its keys.
    pub(super) fn included(&self, table: GlobalId, index: &str) -> Vec<String> {
        self.index_def(table, index).map_or_else(Vec::new, |d| d.include).iter().map(|n| n.trim_matches('"').replace("\"\"", "\"")).collect()
    }

    /// CREATE UNIQUE INDEX: the table demands the key from now on. Answers with the table as it is then.
    pub(super) async fn add_unique(&mut self, p: &sql::plan::CreateIndexPlan, name: &str) -> Result<GlobalId, SqlError> {
        let old = self.catalog().item(p.on).cloned().ok_or_else(|| crate::vanished("the table"))?;
        if !matches!(old.kind, ItemKind::Table(_)) {
            return Err(SqlError::unsupported("CREATE UNIQUE INDEX on what is not a table", "create the index without UNIQUE"));
        }
        let mut draft = Draft::of(&old)?;
        let columns = p.keys.iter().map(|k| if let expr::Scalar::Column(c) = k { Some(*c) } else { None }).collect::<Option<Vec<usize>>>();
        match (columns, &p.filter_sql) {
            (Some(columns), None) => draft.table.unique.push(Constraint {
                name: name.to_owned(),
                columns,
                include: vec![],
                index: true,
                equal_nulls: p.equal_nulls,
                deferrable: false,
                deferred: false,
            }),
            (_, filter) => draft.table.computed_keys.push(ComputedKey {
                name: name.to_owned(),
                keys: p.key_sql.clone(),
                filter: filter.clone(),
                equal_nulls: p.equal_nulls,
            }),
        }
        draft.anew = true;
        self.finish_alter(&old, draft).await
    }

    /// Drops indexes; of a unique one the table's key goes too.
    pub(super) async fn drop_indexes(&mut self, ids: &[GlobalId]) -> Result<Response, SqlError> {
        let catalog = self.catalog();
        // What goes from which relation.
        let mut dropped: Vec<(GlobalId, Vec<String>)> = Vec::new();
        for item in ids.iter().filter_map(|id| catalog.item(*id)) {
            let ItemKind::Index { on, .. } = &item.kind else { continue };
            match dropped.iter_mut().find(|d| d.0 == *on) {
                Some((_, names)) => names.push(item.name.clone()),
                None => dropped.push((*on, vec![item.name.clone()])),
            }
        }
        self.apply(vec![Op::Drop { ids: ids.to_vec() }])?;
        // A table is made anew at most once, when none of the indexes is there any more: those that stay get other ids by it.
        for (on, names) in dropped {
            let Some(table) = self.catalog().item(on).cloned() else { continue };
            let Ok(mut draft) = Draft::of(&table) else { continue };
            let keys = |t: &Table| t.unique.len() + t.computed_keys.len();
            let n = keys(&draft.table);
            draft.table.unique.retain(|u| !(u.index && names.contains(&u.name)));
            draft.table.computed_keys.retain(|k| !names.contains(&k.name));
            if keys(&draft.table) < n {
                draft.anew = true;
                self.finish_alter(&table, draft).await?;
            }
        }
        Ok(Response::Tag("DROP INDEX".into()))
    }
}
