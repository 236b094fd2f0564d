//! FOREIGN KEY: which columns refer to which key.

use super::naming::object_name;
use super::*;
use crate::ast;
use crate::catalog::{Relation, RelationKind};
use std::sync::Arc;

impl Binder<'_> {
    /// `shape`: the table that refers, with its columns and keys. `base`: the same, if it is there already.
    ///
    /// Errors: 42703, 42P01, 42809, 42704 and 42830 where there is no such key, 42804 where the types cannot be compared.
    pub fn foreign_key(
        &self,
        table: &str,
        shape: &TableShape,
        base: Option<&Relation>,
        name: Option<&str>,
        columns: &[ast::Ident],
        r: &ast::References,
    ) -> Result<ForeignPlan, SqlError> {
        let unknown =
            |c: &ast::Ident| SqlError::new(state::UNDEFINED_COLUMN, format!("column \"{}\" referenced in foreign key constraint does not exist", c.name));
        let own = |c: &ast::Ident| shape.desc.names.iter().position(|n| *n == c.name).ok_or_else(|| unknown(c));
        let referring = columns.iter().map(own).collect::<Result<Vec<_>, _>>()?;
        let mut set_columns = r.set_columns.iter().map(own).collect::<Result<Vec<_>, _>>()?;
        if let Some(c) = r.set_columns.iter().zip(&set_columns).find(|c| !referring.contains(c.1)) {
            let m = format!("column \"{}\" referenced in ON DELETE SET action must be part of foreign key", c.0.name);
            return Err(SqlError::new(state::INVALID_COLUMN_REFERENCE, m));
        }
        let mut seen = Vec::new();
        set_columns.retain(|c| {
            !seen.contains(c) && {
                seen.push(*c);
                true
            }
        });
        let first = shape.desc.names.len() - shape.generated.len();
        let computed = |c: &usize| match c.checked_sub(first) {
            Some(new) => shape.generated[new].is_some(),
            None => base.is_some_and(|b| b.is_generated(*c)),
        };
        if referring.iter().any(computed) {
            use ast::ForeignAction::{Cascade, SetDefault, SetNull};
            let bad =
                |what| Err(SqlError::new(state::SYNTAX_ERROR, format!("invalid ON {what} action for foreign key constraint containing generated column")));
            if matches!(r.on_update, Cascade | SetDefault | SetNull) {
                return bad("UPDATE");
            }
            if matches!(r.on_delete, SetDefault | SetNull) {
                return bad("DELETE");
            }
        }
        let parent = self.parent(table, base, &r.table)?;
        let (parent_desc, keys, primary) = match &parent {
            Some(p) => (&p.desc, p.unique.iter().map(|u| u.1.clone()).collect(), p.def.has_primary_key),
            None => {
                let mut keys: Vec<(Vec<usize>, bool)> =
                    base.map_or_else(Vec::new, |b| b.unique.iter().enumerate().map(|(i, u)| (u.1.clone(), i == 0 && b.def.has_primary_key)).collect());
                keys.extend(shape.unique.iter().map(|u| (u.1.clone(), u.2)));
                keys.sort_by_key(|k| !k.1);
                let primary = keys.first().is_some_and(|k| k.1);
                (&shape.desc, keys.into_iter().map(|k| k.0).collect::<Vec<_>>(), primary)
            }
        };
        let parent_name = parent.as_ref().map_or(table, |p| &p.name.name);
        let parent_columns = match r.columns.as_slice() {
            [] if !primary => return Err(SqlError::new(state::UNDEFINED_OBJECT, format!("there is no primary key for referenced table \"{parent_name}\""))),
            [] => keys[0].clone(),
            named => {
                let find = |c: &ast::Ident| parent_desc.names.iter().position(|n| *n == c.name).ok_or_else(|| unknown(c));
                let found = named.iter().map(find).collect::<Result<Vec<_>, _>>()?;
                let sorted = |k: &[usize]| {
                    let mut k = k.to_vec();
                    k.sort_unstable();
                    k
                };
                if !keys.iter().any(|k| sorted(k) == sorted(&found)) {
                    let m = format!("there is no unique constraint matching given keys for referenced table \"{parent_name}\"");
                    return Err(SqlError::new(INVALID_FOREIGN_KEY, m));
                }
                found
            }
        };
        let deferrable = |name: &str, columns: &[usize], def: &[(String, bool)]| {
            def.iter().any(|d| d.0 == name) && columns.len() == parent_columns.len() && columns.iter().all(|c| parent_columns.contains(c))
        };
        let put_off = match &parent {
            Some(p) => p.unique.iter().any(|u| deferrable(&u.0, &u.1, &p.def.deferral)),
            None => {
                shape.unique.iter().any(|u| deferrable(&u.0, &u.1, &shape.deferral))
                    || base.is_some_and(|b| b.unique.iter().any(|u| deferrable(&u.0, &u.1, &b.def.deferral)))
            }
        };
        if put_off {
            let what = if r.columns.is_empty() { "primary key" } else { "unique constraint" };
            let m = format!("cannot use a deferrable {what} for referenced table \"{parent_name}\"");
            return Err(SqlError::new(state::OBJECT_NOT_IN_PREREQUISITE_STATE, m));
        }
        if parent_columns.len() != referring.len() {
            return Err(SqlError::new(INVALID_FOREIGN_KEY, "number of referencing and referenced columns for foreign key disagree"));
        }
        let taken = |n: &str| {
            let known = |b: &Relation| b.unique.iter().any(|u| u.0 == n) || b.def.checks.iter().any(|c| c.0 == n) || b.def.foreign.iter().any(|f| f == n);
            shape.foreign.iter().any(|f| f.name == n) || shape.checks.iter().any(|c| c.0 == n) || base.is_some_and(known)
        };
        if let Some(n) = name.filter(|n| taken(n)) {
            return Err(SqlError::new(state::DUPLICATE_OBJECT, format!("constraint \"{n}\" for relation \"{table}\" already exists")));
        }
        let words: Vec<&str> = columns.iter().map(|c| c.name.as_str()).collect();
        let name = name.map_or_else(|| object_name(table, Some(&words.join("_")), "fkey", &taken), str::to_owned);
        for (c, p) in referring.iter().zip(&parent_columns) {
            let (a, b) = (&shape.desc.types[*c].ty, &parent_desc.types[*p].ty);
            if !comparable(a, b) {
                let e = SqlError::new(state::DATATYPE_MISMATCH, format!("foreign key constraint \"{name}\" cannot be implemented"));
                return Err(e.with_detail(format!(
                    "Key columns \"{}\" and \"{}\" are of incompatible types: {} and {}.",
                    shape.desc.names[*c],
                    parent_desc.names[*p],
                    a.sql_name(),
                    b.sql_name()
                )));
            }
        }
        Ok(ForeignPlan {
            name,
            columns: referring,
            parent: parent.map(|p| p.id),
            parent_columns,
            full: r.full,
            on_delete: r.on_delete,
            on_update: r.on_update,
            set_columns,
            deferrable: r.when.deferrable,
            deferred: r.when.deferred,
        })
    }

    /// The table referred to; `None`: the one that refers.
    fn parent(&self, table: &str, base: Option<&Relation>, name: &ast::ObjectName) -> Result<Option<Arc<Relation>>, SqlError> {
        // Not a dependency as others are: tables may refer to each other.
        let found = self.catalog.resolve_relation(&name.parts).map_err(|e| e.at(name.pos))?;
        let itself = match (&found, base) {
            (Some(f), Some(b)) => f.id == b.id,
            (_, None) => name.last() == table && (name.parts.len() == 1 || found.is_none()),
            (None, Some(_)) => false,
        };
        match found {
            _ if itself => Ok(None),
            None => Err(SqlError { position: None, ..self.undefined_relation(name) }),
            Some(f) if matches!(f.kind, RelationKind::Table) => Ok(Some(f)),
            Some(f) => Err(SqlError::new(state::WRONG_OBJECT_TYPE, format!("referenced relation \"{}\" is not a table", f.name.name))),
        }
    }
}

const INVALID_FOREIGN_KEY: repr::SqlState = repr::SqlState::new("42830");

/// Whether a value of type `a` can be looked for among keys of type `b`.
fn comparable(a: &SqlType, b: &SqlType) -> bool {
    let (a, b) = (a.base(), b.base());
    let whole = |t: &SqlType| matches!(t, SqlType::Int2 | SqlType::Int4 | SqlType::Int8);
    let wider = |t: &SqlType| whole(t) || matches!(t, SqlType::Numeric | SqlType::Float4 | SqlType::Float8);
    let text = |t: &SqlType| matches!(t, SqlType::Text | SqlType::Varchar | SqlType::Bpchar | SqlType::Name);
    let float = |t: &SqlType| matches!(t, SqlType::Float4 | SqlType::Float8);
    let day = |t: &SqlType| matches!(t, SqlType::Date | SqlType::Timestamp);
    a == b || whole(a) && wider(b) || text(a) && text(b) || float(a) && float(b) || day(a) && day(b)
}
