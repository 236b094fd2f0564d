//! A few relations to plan queries over.

use expr::EvalCtx;
use repr::{ColType, GlobalId, RelDesc, SqlError, SqlType};
use sql::catalog::{FullName, ObjectRef, Relation, RelationKind, SqlCatalog};
use std::sync::Arc;

pub struct Fixed {
    pub relations: Vec<Arc<Relation>>,
    ctx: EvalCtx,
}

/// Name, id, columns with types (`!`: not null), keys.
type Spec = (&'static str, u64, &'static [(&'static str, &'static str)], &'static [&'static [usize]]);

const RELATIONS: &[Spec] = &[
    ("a", 1, &[("k", "int4"), ("v", "int4"), ("w", "int4")], &[]),
    ("b", 2, &[("k", "int4"), ("v", "int4")], &[]),
    ("c", 3, &[("k", "int4"), ("v", "int4")], &[]),
    ("customers", 4, &[("id", "int8!"), ("name", "text"), ("region", "int4")], &[&[0]]),
    ("orders", 5, &[("id", "int8!"), ("customer", "int8"), ("total", "numeric"), ("note", "varchar")], &[&[0]]),
    ("events", 6, &[("at", "timestamptz!"), ("x", "int4"), ("until", "int8")], &[]),
];

fn type_of(name: &str) -> ColType {
    let (name, not_null) = (name.trim_end_matches('!'), name.ends_with('!'));
    let ty = match name {
        "int4" => SqlType::Int4,
        "int8" => SqlType::Int8,
        "numeric" => SqlType::Numeric,
        "varchar" => SqlType::Varchar,
        "timestamptz" => SqlType::TimestampTz,
        _ => SqlType::Text,
    };
    ty.nullable().with_nullable(!not_null)
}

impl Fixed {
    pub fn new() -> Fixed {
        let relation = |(name, id, columns, keys): &Spec| {
            let full = FullName { database: "riverdelta".into(), schema: "public".into(), name: name.to_string() };
            Arc::new(Relation {
                id: GlobalId(*id),
                oid: 20000 + *id as u32,
                row_type_oid: 0,
                name: full,
                kind: RelationKind::Table,
                desc: RelDesc {
                    names: columns.iter().map(|c| c.0.to_string()).collect(),
                    types: columns.iter().map(|c| type_of(c.1)).collect(),
                    keys: keys.iter().map(|k| k.to_vec()).collect(),
                },
                defaults: vec![],
                checks: vec![],
                unique: vec![],
                generated: vec![],
                def: Default::default(),
                view: None,
                computed_keys: vec![],
            })
        };
        Fixed { relations: RELATIONS.iter().map(relation).collect(), ctx: EvalCtx::default() }
    }

    pub fn by_id(&self, id: GlobalId) -> Option<&Relation> {
        self.relations.iter().find(|r| r.id == id).map(|r| &**r)
    }
}

impl SqlCatalog for Fixed {
    fn resolve_relation(&self, parts: &[String]) -> Result<Option<Arc<Relation>>, SqlError> {
        Ok(self.relations.iter().find(|r| Some(&r.name.name) == parts.last()).cloned())
    }
    fn resolve_object(&self, _: sql::ast::ObjectKind, _: &[String]) -> Option<ObjectRef> {
        None
    }
    fn resolve_type(&self, _: &[String]) -> Option<SqlType> {
        None
    }
    fn type_by_oid(&self, _: u32) -> Option<SqlType> {
        None
    }
    fn schema_exists(&self, _: &str) -> bool {
        true
    }
    fn database(&self) -> &str {
        "riverdelta"
    }
    fn creation_schema(&self) -> Result<String, SqlError> {
        Ok("public".into())
    }
    fn eval_ctx(&self) -> &EvalCtx {
        &self.ctx
    }
}
