//! COMMENT ON: what it names.

use super::*;
use crate::ast::{self, ObjectKind, ObjectName};
use crate::catalog::{ObjectRef, RelationKind};
use repr::SqlType;

impl Binder<'_> {
    /// What REINDEX names. Errors: 42P01, 42809, 3F000, 0A000 for another database.
    pub fn reindexed(&self, r: &ast::Reindex) -> Result<(), SqlError> {
        let wrong = |is: &str| Err(SqlError::new(state::WRONG_OBJECT_TYPE, format!("\"{}\" is not {is}", r.name.last())));
        match r.kind {
            Some(ObjectKind::Schema) if !self.catalog.schema_exists(r.name.last()) => {
                Err(SqlError::new(state::INVALID_SCHEMA_NAME, format!("schema \"{}\" does not exist", r.name)))
            }
            Some(ObjectKind::Schema) => Ok(()),
            Some(ObjectKind::Database) | None if r.name.last() != self.catalog.database() => {
                Err(SqlError::new(state::FEATURE_NOT_SUPPORTED, "can only reindex the currently open database"))
            }
            Some(ObjectKind::Database) | None => Ok(()),
            Some(kind) => {
                let index = self.catalog.resolve_object(ObjectKind::Index, &r.name.parts).is_some();
                let relation = self.catalog.resolve_relation(&r.name.parts)?.filter(|r| !matches!(r.kind, RelationKind::Other));
                // The index of a key is no object of its own.
                let known = index || relation.is_some() || self.catalog.eval_ctx().catalog.relation_oid(&r.name.parts).is_some();
                match (kind, relation) {
                    _ if !known => Err(SqlError { position: None, ..self.undefined_relation(&r.name) }),
                    (ObjectKind::Index, None) => Ok(()),
                    (ObjectKind::Index, Some(_)) => wrong("an index"),
                    (_, Some(r)) if matches!(r.kind, RelationKind::Table | RelationKind::MaterializedView | RelationKind::Source) => Ok(()),
                    _ => wrong("a table or materialized view"),
                }
            }
        }
    }

    /// What COMMENT ON names. Errors: 42P01, 42703, 42704, 3F000 for what does not exist.
    pub fn commented(&self, kind: ObjectKind, name: &ObjectName, constraint: Option<&ast::Ident>) -> Result<Commented, SqlError> {
        if let Some(c) = constraint {
            let object = match kind {
                ObjectKind::Domain => self.any_object(kind, name)?,
                _ => {
                    let rel = self.named_relation(name)?;
                    ObjectRef { id: rel.id, name: rel.name.clone() }
                }
            };
            return Ok(Commented::Constraint { object, name: c.name.clone() });
        }
        match kind {
            ObjectKind::Database => match name.parts.as_slice() {
                [database] => Ok(Commented::Database { exists: *database == self.catalog.database(), name: database.clone() }),
                _ => Err(SqlError::new(state::SYNTAX_ERROR, "database name cannot be qualified").at(name.pos)),
            },
            ObjectKind::Schema => match name.parts.as_slice() {
                [schema] if self.catalog.schema_exists(schema) => Ok(Commented::Schema(schema.clone())),
                _ => Err(SqlError::new(state::INVALID_SCHEMA_NAME, format!("schema \"{name}\" does not exist"))),
            },
            ObjectKind::Column => {
                let mut of = name.clone();
                let Some(col) = of.parts.pop().filter(|_| !of.parts.is_empty()) else {
                    return Err(SqlError::new(state::SYNTAX_ERROR, "column name must be qualified").at(name.pos));
                };
                let found = |object: ObjectRef, names: Vec<String>| match names.iter().position(|n| *n == col) {
                    Some(column) => Ok(Commented::Column { object, column }),
                    None => Err(SqlError::new(state::UNDEFINED_COLUMN, format!("column \"{col}\" of relation \"{}\" does not exist", of.last())).at(name.pos)),
                };
                // The fields of a composite type are columns too.
                if let (None, Some(SqlType::Record(r))) = (self.catalog.resolve_relation(&of.parts)?, self.catalog.resolve_type(&of.parts)) {
                    return found(self.any_object(ObjectKind::Type, &of)?, r.fields.iter().map(|f| f.0.clone()).collect());
                }
                let rel = self.named_relation(&of)?;
                if matches!(rel.kind, RelationKind::Other | RelationKind::Sequence) {
                    let message = format!("cannot set comment on relation \"{}\"", rel.name.name);
                    return Err(
                        SqlError::new(state::WRONG_OBJECT_TYPE, message).with_detail(format!("This operation is not supported for {}s.", rel.kind.word()))
                    );
                }
                found(ObjectRef { id: rel.id, name: rel.name.clone() }, rel.desc.names.clone())
            }
            ObjectKind::Index if self.catalog.resolve_object(kind, &name.parts).is_none() => match self.catalog.eval_ctx().catalog.relation_oid(&name.parts) {
                Some(oid) => Ok(Commented::KeyIndex(oid)),
                None => Err(self.undefined_relation(name)),
            },
            _ => Ok(Commented::Object { kind, object: self.any_object(kind, name)? }),
        }
    }
}
