//! CREATE INDEX, and indexes that become keys.

use super::ddl::row_scalar;
use super::naming::{distinct_words, object_name};
use super::scope::{Clause, Env, Level};
use super::statement::{plain_options, quote_ident};
use super::*;
use crate::ast::{self, ObjectKind, Span};
use crate::catalog::RelationKind;
use crate::hir::HirScalar;
use crate::parse::ParsedStatement;
use std::rc::Rc;

impl Binder<'_> {
    pub fn create_index(&self, p: &ParsedStatement, i: &ast::CreateIndex) -> Result<Plan, SqlError> {
        let rel = self.named_relation(&i.on)?;
        match rel.kind {
            RelationKind::Builtin => {
                return Err(SqlError::new(state::INSUFFICIENT_PRIVILEGE, format!("permission denied: \"{}\" is a system catalog", rel.name.name)).at(i.on.pos))
            }
            RelationKind::Other | RelationKind::Sequence => {
                return Err(SqlError::new(state::WRONG_OBJECT_TYPE, format!("cannot create index on relation \"{}\"", rel.name.name)).at(i.on.pos))
            }
            _ => {}
        }
        if let Some(m @ ("gin" | "gist" | "spgist" | "brin")) = i.method.as_deref() {
            let hint = "an index finds rows by the value of its key; queries that such an index would serve run without one";
            return Err(SqlError::unsupported(format!("an index USING {m}"), hint));
        }
        if let Some(m) = i.method.as_deref().filter(|m| !matches!(*m, "btree" | "arrangement" | "hash")) {
            return Err(SqlError::new(state::UNDEFINED_OBJECT, format!("access method \"{m}\" does not exist")));
        }
        if let Some(o) = i.opclasses.iter().map(|o| &o.1).find(|o| !::expr::catalog::opclasses().iter().any(|k| k.name == o.last())) {
            let m = format!("operator class \"{o}\" does not exist for access method \"btree\"");
            return Err(SqlError::new(state::UNDEFINED_OBJECT, m).at(o.pos));
        }
        super::statement::storage_parameters(&i.options, true)?;
        let (mut keys, mut key_sql, mut words) = (Vec::new(), Vec::new(), Vec::new());
        if i.keys.is_empty() {
            // The default key: the relation's key, else all columns.
            let cols: Vec<usize> = rel.desc.keys.first().cloned().unwrap_or_else(|| (0..rel.desc.arity()).collect());
            for c in cols {
                keys.push(::expr::Scalar::Column(c));
                key_sql.push(quote_ident(&rel.desc.names[c]));
            }
            words.push("primary".to_owned());
        }
        let item = super::scope::NsItem { schema: Some(rel.name.schema.clone()), ..super::dml::item(&rel.name.name, &rel.desc, 0) };
        let env = Env::default().push(Rc::new(Level::new(vec![item], Clause::Index)));
        let text = |span: Span| super::text::bare_columns(p.slice(span), &rel.name.name);
        let mut order_sql = vec![String::new(); keys.len()];
        let hash = i.method.as_deref() == Some("hash");
        if hash && i.keys.iter().any(|k| k.0.desc || k.0.nulls_first.is_some()) {
            return Err(SqlError::new(state::FEATURE_NOT_SUPPORTED, "access method \"hash\" does not support ASC/DESC options"));
        }
        if hash && i.unique {
            return Err(SqlError::new(state::FEATURE_NOT_SUPPORTED, "access method \"hash\" does not support unique indexes"));
        }
        if hash && i.keys.len() > 1 {
            return Err(SqlError::new(state::FEATURE_NOT_SUPPORTED, "access method \"hash\" does not support multicolumn indexes"));
        }
        for (n, (o, span)) in i.keys.iter().enumerate() {
            let x = self.expr(&o.expr, &env)?;
            let x = self.text_if_unknown(x, o.expr.pos)?;
            if x.typ().ty.oid() == ::expr::catalog::pseudo::RECORD {
                let name = query::figure_name(&o.expr).unwrap_or_else(|| "expr".into());
                return Err(SqlError::new(state::INVALID_TABLE_DEFINITION, format!("column \"{name}\" has pseudo-type record")));
            }
            self.require_index_class(&x.typ().ty, o.expr.pos)?;
            let s = self.row_scalar(&x, o.expr.pos)?;
            if !s.is_immutable(&rel.desc.types) {
                return Err(SqlError::new(state::INVALID_OBJECT_DEFINITION, "functions in index expression must be marked IMMUTABLE"));
            }
            words.push(query::figure_name(&o.expr).unwrap_or_else(|| "expr".into()));
            keys.push(s);
            // A column's collation is the index's word about it, not an expression.
            let mut collated = String::new();
            key_sql.push(match &*o.expr.kind {
                ast::ExprKind::Collate { arg, collation } => match &*arg.kind {
                    ast::ExprKind::Column(parts) if !parts.is_empty() => {
                        let column = rel.desc.names.iter().position(|n| *n == parts[parts.len() - 1].name);
                        let of_column = rel.def.collations.iter().find(|c| Some(c.0) == column).map_or("default", |c| c.1.as_str());
                        if let Some(c) = collation.last().filter(|c| *c != of_column) {
                            collated = format!(" COLLATE \"{c}\"");
                        }
                        quote_ident(&parts[parts.len() - 1].name)
                    }
                    _ => text(*span),
                },
                ast::ExprKind::Column(parts) if !parts.is_empty() => quote_ident(&parts[parts.len() - 1].name),
                _ => text(*span),
            });
            // As PostgreSQL shows it: what is not the default.
            let class = i.opclasses.iter().find(|c| c.0 == n && c.1.last().ends_with("_pattern_ops")).map(|c| format!(" {}", c.1.last()));
            let order = match (o.desc, o.nulls_first.unwrap_or(o.desc)) {
                (false, false) => "",
                (false, true) => " NULLS FIRST",
                (true, true) => " DESC",
                (true, false) => " DESC NULLS LAST",
            };
            order_sql.push(format!("{collated}{}{order}", class.unwrap_or_default()));
        }
        let mut filter_sql = None;
        if let Some((e, span)) = &i.filter {
            let x = self.condition(e, &env, "WHERE")?;
            let Some(s) = row_scalar(&x) else {
                return Err(SqlError::new(state::FEATURE_NOT_SUPPORTED, "cannot use subquery in index predicate").at(e.pos));
            };
            if !s.is_immutable(&rel.desc.types) {
                return Err(SqlError::new(state::INVALID_OBJECT_DEFINITION, "functions in index predicate must be marked IMMUTABLE"));
            }
            filter_sql = Some(text(*span));
        }
        for c in &i.include {
            self.column_of(&rel, c).map_err(|_| SqlError::new(state::UNDEFINED_COLUMN, format!("column \"{}\" does not exist", c.name)).at(c.pos))?;
        }
        let include: Vec<String> = i.include.iter().map(|c| quote_ident(&c.name)).collect();
        let shown: Vec<String> = key_sql.iter().zip(&order_sql).map(|(k, o)| format!("{k}{o}")).collect();
        let covers = if include.is_empty() { String::new() } else { format!(" INCLUDE ({})", include.join(", ")) };
        let partial = filter_sql.as_ref().map_or_else(String::new, |f| format!(" WHERE {f}"));
        words.extend(i.include.iter().map(|c| c.name.clone()));
        let words = distinct_words(words).join("_");
        let default_name = object_name(&rel.name.name, Some(&words), "idx", &|_| false);
        let create_sql = format!(
            "CREATE {}INDEX {} ON {}.{} ({}){covers}{partial}",
            if i.unique { "UNIQUE " } else { "" },
            quote_ident(i.name.as_ref().map_or(&default_name, |n| &n.name)),
            quote_ident(&rel.name.schema),
            quote_ident(&rel.name.name),
            shown.join(", ")
        );
        Ok(Plan::CreateIndex(Box::new(CreateIndexPlan {
            name: i.name.as_ref().map(|n| n.name.clone()),
            words,
            if_not_exists: i.if_not_exists,
            on: rel.id,
            on_name: rel.name.clone(),
            keys,
            key_sql,
            order_sql,
            include,
            filter_sql,
            hash,
            equal_nulls: i.equal_nulls,
            unique: i.unique,
            options: plain_options(&i.options),
            create_sql,
        })))
    }

    /// An expression over one row, without subqueries.
    pub fn row_scalar(&self, e: &HirScalar, pos: Pos) -> Result<::expr::Scalar, SqlError> {
        row_scalar(e).ok_or_else(|| SqlError::new(state::FEATURE_NOT_SUPPORTED, "cannot use subquery in index expression").at(pos))
    }

    /// The columns of an index that becomes a key: unique, of this table, on its columns and all rows.
    pub fn key_of_index(&self, base: Option<&crate::catalog::Relation>, index: &ast::Ident, pos: Pos) -> Result<Vec<usize>, SqlError> {
        let Some(base) = base else {
            return Err(SqlError::new(state::SYNTAX_ERROR, "cannot use an existing index in CREATE TABLE").at(pos));
        };
        let wrong = |code, m: String| {
            let e = SqlError::new(code, m).at(pos);
            e.with_detail("Cannot create a primary key or unique constraint using such an index.")
        };
        let name = &index.name;
        match base.unique.iter().find(|u| u.0 == *name) {
            Some((_, columns)) if base.def.unique_indexes.contains(name) => return Ok(columns.clone()),
            Some(_) => {
                let m = format!("index \"{name}\" is already associated with a constraint");
                return Err(SqlError::new(state::OBJECT_NOT_IN_PREREQUISITE_STATE, m).at(pos));
            }
            None => {}
        }
        let parts = [base.name.schema.clone(), name.clone()];
        let Some(found) = self.catalog.resolve_object(ObjectKind::Index, &parts) else {
            return Err(SqlError::new(state::UNDEFINED_OBJECT, format!("index \"{name}\" does not exist")).at(pos));
        };
        match base.def.computed_indexes.iter().find(|k| k.0 == *name) {
            Some((_, true)) => return Err(wrong(state::WRONG_OBJECT_TYPE, format!("\"{name}\" is a partial index"))),
            Some((_, false)) => return Err(wrong(state::WRONG_OBJECT_TYPE, format!("index \"{name}\" contains expressions"))),
            None => {}
        }
        if !base.def.indexes.contains(&found.id) {
            let m = format!("index \"{name}\" does not belong to table \"{}\"", base.name.name);
            return Err(SqlError::new(state::OBJECT_NOT_IN_PREREQUISITE_STATE, m).at(pos));
        }
        Err(wrong(state::WRONG_OBJECT_TYPE, format!("\"{name}\" is not a unique index")))
    }
}
