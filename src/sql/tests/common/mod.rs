//! A catalog of a few tables for tests.

#![allow(dead_code)]

use repr::{GlobalId, SqlError, SqlType};
use sql::ast::ObjectKind;
use sql::catalog::{FullName, ObjectRef, Relation, RelationKind, SqlCatalog, TableDef};
use sql::Plan;
use std::collections::BTreeMap;
use std::sync::Arc;

pub struct Names {
    relations: BTreeMap<String, Arc<Relation>>,
    ctx: expr::EvalCtx,
}

impl Names {
    /// Runs CREATE TABLE and CREATE VIEW statements.
    pub fn new(ddl: &str) -> Names {
        let mut n = Names { relations: BTreeMap::new(), ctx: expr::EvalCtx::default() };
        for s in sql::parse(ddl).expect("ddl parses") {
            let id = GlobalId(n.relations.len() as u64 + 1);
            let oid = id.0 as u32 + 20_000;
            let mut def = TableDef::default();
            let (name, desc, kind, unique, defaults) = match sql::plan::plan(&s, &n, &[]).expect("ddl is bound") {
                Plan::CreateTable(t) => {
                    def.has_primary_key = t.unique.iter().any(|u| u.2);
                    let unique = t.unique.iter().map(|u| (u.0.clone(), u.1.clone())).collect();
                    let defaults = t
                        .defaults
                        .iter()
                        .zip(&t.desc.types)
                        .map(|(d, ty)| d.as_ref().map(|d| sql::plan::bind_default(d, &Default::default(), ty, &n).unwrap()))
                        .collect();
                    (t.name.clone(), t.desc.clone(), RelationKind::Table, unique, defaults)
                }
                Plan::CreateView(v) => (v.name.clone(), v.desc.clone(), RelationKind::View(Arc::new(v.hir.clone())), vec![], vec![]),
                other => panic!("{other:?}"),
            };
            let rel = Relation {
                id,
                oid,
                row_type_oid: oid + 10_000,
                name: name.clone(),
                kind,
                desc,
                defaults,
                checks: vec![],
                unique,
                generated: vec![],
                def,
                view: None,
                computed_keys: vec![],
            };
            n.relations.insert(name.name, Arc::new(rel));
        }
        n
    }

    pub fn shop() -> Names {
        Names::new(
            "CREATE TABLE emp (id int PRIMARY KEY, name text NOT NULL, dept_id int, salary numeric(10,2), hired date, tags text[]);
             CREATE TABLE dept (id int, name varchar(20), budget bigint DEFAULT 7);
             CREATE VIEW rich AS WITH r AS (SELECT * FROM emp WHERE salary > 10) SELECT id, name FROM r;",
        )
    }

    /// `name type, …` of the result, or `SQLSTATE message`.
    pub fn columns(&self, text: &str) -> String {
        self.try_columns(text).unwrap_or_else(|e| format!("{} {}", e.code.as_str(), e.message))
    }

    pub fn try_columns(&self, text: &str) -> Result<String, SqlError> {
        let s = sql::parse(text)?;
        let d = sql::plan::describe(&s[0], self, &[])?;
        let r = d.result.unwrap_or_default();
        Ok(r.names.iter().zip(&r.types).map(|(n, t)| format!("{n} {}", t.ty.sql_name())).collect::<Vec<_>>().join(", "))
    }

    pub fn plan(&self, text: &str) -> Plan {
        let s = sql::parse(text).expect("parses");
        sql::plan::plan(&s[0], self, &[]).expect("is bound")
    }

    /// Types of the parameters, or `SQLSTATE message`.
    pub fn params(&self, text: &str) -> String {
        let r = sql::parse(text).and_then(|s| sql::plan::describe(&s[0], self, &[]));
        match r {
            Ok(d) => d.params.iter().map(SqlType::sql_name).collect::<Vec<_>>().join(", "),
            Err(e) => format!("{} {}", e.code.as_str(), e.message),
        }
    }
}

impl SqlCatalog for Names {
    fn resolve_relation(&self, parts: &[String]) -> Result<Option<Arc<Relation>>, SqlError> {
        if parts.len() > 1 && parts[parts.len() - 2] != "public" {
            return Ok(None);
        }
        Ok(parts.last().and_then(|n| self.relations.get(n)).cloned())
    }
    fn resolve_object(&self, kind: ObjectKind, parts: &[String]) -> Option<ObjectRef> {
        let name = parts.last()?.clone();
        let known = matches!((kind, name.as_str()), (ObjectKind::Connection, "k" | "pg") | (ObjectKind::Secret, "s") | (ObjectKind::Source, "src"));
        known.then(|| ObjectRef { id: GlobalId(900), name: FullName { database: "riverdelta".into(), schema: "public".into(), name } })
    }
    fn resolve_type(&self, _: &[String]) -> Option<SqlType> {
        None
    }
    fn type_by_oid(&self, _: u32) -> Option<SqlType> {
        None
    }
    fn schema_exists(&self, schema: &str) -> bool {
        schema == "public"
    }
    fn database(&self) -> &str {
        "riverdelta"
    }
    fn creation_schema(&self) -> Result<String, SqlError> {
        Ok("public".into())
    }
    fn eval_ctx(&self) -> &expr::EvalCtx {
        &self.ctx
    }
}
