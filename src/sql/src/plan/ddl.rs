//! CREATE, ALTER, DROP, COMMENT of tables, views, indexes, types.

use super::scope::Clause;
use super::statement::{plain_options, quote_ident};
use super::walk::reads;
use super::*;
use crate::ast::{self, AlterAction, ConstraintKind, ObjectKind, ObjectName};
use crate::catalog::{ObjectRef, RelationKind};
use crate::hir::HirScalar;
use crate::parse::ParsedStatement;
use ::expr::catalog::CastContext;
use repr::{ColType, RelDesc};

/// Columns, keys and constraints of a table definition.
pub struct TableShape {
    pub desc: RelDesc,
    pub defaults: Vec<Option<(String, HirScalar)>>,
    pub checks: Vec<(String, String, HirScalar)>,
    pub unique: Vec<(String, Vec<usize>, bool)>,
}

impl Binder<'_> {
    pub fn create_table(&self, p: &ParsedStatement, c: &ast::CreateTable) -> Result<Plan, SqlError> {
        let name = self.new_name(&c.name)?;
        let mut columns = c.columns.clone();
        for l in &c.like {
            let rel = self.resolve_relation(l)?;
            for (n, t) in rel.desc.names.iter().zip(&rel.desc.types) {
                columns.push(like_column(n, t, l.pos));
            }
        }
        let mut shape = self.table_shape(p, &name.name, &columns, &c.constraints)?;
        // LIKE copies types exactly, modifiers and all.
        let mut at = c.columns.len();
        for l in &c.like {
            let rel = self.resolve_relation(l)?;
            for t in &rel.desc.types {
                shape.desc.types[at] = t.clone();
                at += 1;
            }
        }
        let TableShape { desc, defaults, checks, unique } = shape;
        Ok(Plan::CreateTable(Box::new(CreateTablePlan {
            name,
            if_not_exists: c.if_not_exists,
            temporary: c.temporary,
            desc,
            defaults,
            checks,
            unique,
            domains: self.depends_on(),
            options: plain_options(&c.options),
        })))
    }

    pub fn table_shape(
        &self,
        p: &ParsedStatement,
        table: &str,
        columns: &[ast::ColumnDef],
        constraints: &[ast::TableConstraint],
    ) -> Result<TableShape, SqlError> {
        let mut desc = RelDesc::default();
        let mut domains = Vec::with_capacity(columns.len());
        for c in columns {
            if desc.names.contains(&c.name.name) {
                return Err(SqlError::new(state::DUPLICATE_COLUMN, format!("column \"{}\" specified more than once", c.name.name)).at(c.name.pos));
            }
            if matches!(c.ty.names.as_slice(), [n] if matches!(n.as_str(), "serial" | "bigserial" | "smallserial" | "serial4" | "serial8")) {
                return Err(SqlError::unsupported("serial", "there are no sequences: use an integer column and give its values").at(c.ty.pos));
            }
            if let Some(pos) = c.identity {
                return Err(SqlError::unsupported("an identity column", "there are no sequences: give the values").at(pos));
            }
            if let Some(pos) = c.generated {
                return Err(SqlError::unsupported("a generated column", "compute it in a view").at(pos));
            }
            if let Some(pos) = c.references {
                return Err(SqlError::unsupported("FOREIGN KEY", "keep a view that lists violations").at(pos));
            }
            if c.null && (c.not_null || c.primary_key) {
                return Err(SqlError::new(
                    state::SYNTAX_ERROR,
                    format!("conflicting NULL/NOT NULL declarations for column \"{}\" of table \"{table}\"", c.name.name),
                )
                .at(c.name.pos));
            }
            let domain = self.domain_of(&c.ty);
            let ty = match &domain {
                Some(d) => d.base.clone(),
                None => self.resolve_type(&c.ty)?,
            };
            let not_null = c.not_null || domain.as_ref().is_some_and(|d| d.not_null);
            domains.push(domain);
            if matches!(ty.ty, SqlType::Unknown | SqlType::Void) || matches!(&ty.ty, SqlType::Record(r) if r.name.is_none()) {
                return Err(
                    SqlError::new(state::INVALID_TABLE_DEFINITION, format!("column \"{}\" has pseudo-type {}", c.name.name, ty.ty.sql_name())).at(c.name.pos)
                );
            }
            desc.names.push(c.name.name.clone());
            desc.types.push(ty.with_nullable(!not_null));
        }
        if desc.names.len() > 1600 {
            return Err(SqlError::new(state::TOO_MANY_COLUMNS, "tables can have at most 1600 columns"));
        }
        let column = |i: &ast::Ident| {
            desc.names
                .iter()
                .position(|n| *n == i.name)
                .ok_or_else(|| SqlError::new(state::UNDEFINED_COLUMN, format!("column \"{}\" named in key does not exist", i.name)).at(i.pos))
        };
        let mut unique: Vec<(String, Vec<usize>, bool)> = Vec::new();
        let mut check_list: Vec<(Option<String>, &ast::Expr, Span)> = Vec::new();
        let mut primary: Option<(Option<String>, Vec<usize>)> = None;
        let mut set_primary = |name: Option<String>, cols: Vec<usize>, pos: Pos| {
            if primary.is_some() {
                return Err(SqlError::new(state::INVALID_TABLE_DEFINITION, format!("multiple primary keys for table \"{table}\" are not allowed")).at(pos));
            }
            primary = Some((name, cols));
            Ok(())
        };
        let mut wanted: Vec<(Option<String>, Vec<usize>)> = Vec::new();
        for (i, c) in columns.iter().enumerate() {
            if c.primary_key {
                set_primary(None, vec![i], c.name.pos)?;
            }
            if c.unique {
                wanted.push((None, vec![i]));
            }
            for (n, e, span) in &c.checks {
                check_list.push((n.clone(), e, *span));
            }
        }
        for t in constraints {
            match &t.kind {
                ConstraintKind::PrimaryKey(cols) => set_primary(t.name.clone(), self.key_columns(cols, &column)?, t.pos)?,
                ConstraintKind::Unique(cols) => wanted.push((t.name.clone(), self.key_columns(cols, &column)?)),
                ConstraintKind::Check(e, span) => check_list.push((t.name.clone(), e, *span)),
                ConstraintKind::ForeignKey => {
                    return Err(SqlError::unsupported("FOREIGN KEY", "keep a view that lists violations").at(t.pos));
                }
                ConstraintKind::Exclude => return Err(SqlError::unsupported("EXCLUDE", "keep a view that counts violations").at(t.pos)),
            }
        }
        if let Some((name, cols)) = primary {
            for c in &cols {
                desc.types[*c].nullable = false;
            }
            unique.push((name.unwrap_or_else(|| format!("{table}_pkey")), cols, true));
        }
        for (name, cols) in wanted {
            if unique.iter().any(|u| u.1 == cols) {
                continue;
            }
            let words: Vec<&str> = cols.iter().map(|c| desc.names[*c].as_str()).collect();
            unique.push((name.unwrap_or_else(|| format!("{table}_{}_key", words.join("_"))), cols, false));
        }
        for (_, cols, _) in &unique {
            for c in cols {
                self.require_index_class(&desc.types[*c].ty, 0)?;
            }
        }
        // A unique key is a key of the relation only if no column of it can be NULL.
        desc.keys = unique.iter().filter(|u| u.1.iter().all(|c| !desc.types[*c].nullable)).map(|u| u.1.clone()).collect();
        let mut defaults = Vec::with_capacity(columns.len());
        for (i, c) in columns.iter().enumerate() {
            defaults.push(match &c.default {
                None => match domains[i].as_ref().and_then(|d| d.default.as_ref()) {
                    None => None,
                    Some(text) => {
                        let e = crate::parse::parse_expr(text)?;
                        let x = self.expr(&e, &self.row_env("", &RelDesc::default(), Clause::Default))?;
                        Some((text.clone(), self.assign(x, &c.name.name, &desc.types[i], c.name.pos)?))
                    }
                },
                Some((e, span)) => {
                    let env = self.row_env("", &RelDesc::default(), Clause::Default);
                    let x = self.expr(e, &env).map_err(|err| {
                        if err.code == state::UNDEFINED_COLUMN {
                            SqlError::new(state::FEATURE_NOT_SUPPORTED, "cannot use column reference in DEFAULT expression").at(e.pos)
                        } else {
                            err
                        }
                    })?;
                    let from = x.typ();
                    let t = desc.types[i].clone();
                    let x = self.try_coerce(x, &t, CastContext::Assignment, e.pos)?.ok_or_else(|| {
                        SqlError::new(
                            state::DATATYPE_MISMATCH,
                            format!("column \"{}\" is of type {} but default expression is of type {}", c.name.name, t.ty.sql_name(), from.ty.sql_name()),
                        )
                        .with_hint("You will need to rewrite or cast the expression.")
                        .at(e.pos)
                    })?;
                    Some((p.slice(*span).to_owned(), x))
                }
            });
        }
        let mut checks: Vec<(String, String, HirScalar)> = Vec::new();
        let env = self.row_env(table, &desc, Clause::Check);
        // Of a column's domain first, as Postgres tests the value before the row.
        for (d, c) in domains.iter().zip(columns) {
            for (name, sql) in d.iter().flat_map(|d| &d.checks) {
                let (e, text) = self.check_of_column(sql, &c.name.name)?;
                let x = self.condition(&e, &env, "CHECK")?;
                checks.push((numbered(name, &|n| checks.iter().any(|c| c.0 == n)), text, x));
            }
        }
        for (name, e, span) in check_list {
            let mut x = self.condition(e, &env, "CHECK")?;
            let mut named: Vec<usize> = Vec::new();
            reads(&mut x, |c| {
                if !named.contains(&c) {
                    named.push(c);
                }
                false
            });
            // As Postgres chooses it: after the one column that the condition names, wherever it is written.
            let base = match named[..] {
                [c] => format!("{table}_{}_check", desc.names[c]),
                _ => format!("{table}_check"),
            };
            let taken = |n: &str| checks.iter().any(|c| c.0 == n);
            if let Some(n) = name.as_ref().filter(|n| taken(n)) {
                return Err(SqlError::new(state::DUPLICATE_OBJECT, format!("check constraint \"{n}\" already exists")));
            }
            let name = name.unwrap_or_else(|| numbered(&base, &taken));
            checks.push((name, p.slice(span).trim().to_owned(), x));
        }
        Ok(TableShape { desc, defaults, checks, unique })
    }

    fn key_columns(&self, cols: &[ast::Ident], column: &dyn Fn(&ast::Ident) -> Result<usize, SqlError>) -> Result<Vec<usize>, SqlError> {
        let mut out: Vec<usize> = Vec::new();
        for c in cols {
            let i = column(c)?;
            if out.contains(&i) {
                return Err(SqlError::new(state::DUPLICATE_COLUMN, format!("column \"{}\" appears twice in unique constraint", c.name)).at(c.pos));
            }
            out.push(i);
        }
        Ok(out)
    }

    pub fn create_table_as(&self, c: &ast::CreateTableAs) -> Result<Plan, SqlError> {
        let name = self.new_name(&c.name)?;
        let query = self.select_plan(&c.query)?;
        let mut desc = query.desc.clone();
        self.rename_columns(&mut desc, &c.columns, "CREATE TABLE AS specifies too many column names")?;
        desc.types.iter_mut().for_each(|t| t.nullable = true);
        self.distinct_names(&desc)?;
        Ok(Plan::CreateTableAs(Box::new(CreateTableAsPlan { name, if_not_exists: c.if_not_exists, desc, query, with_data: c.with_data })))
    }

    fn rename_columns(&self, desc: &mut RelDesc, columns: &[ast::Ident], too_many: &str) -> Result<(), SqlError> {
        if columns.len() > desc.arity() {
            return Err(SqlError::new(state::SYNTAX_ERROR, too_many));
        }
        for (n, c) in desc.names.iter_mut().zip(columns) {
            n.clone_from(&c.name);
        }
        Ok(())
    }

    fn distinct_names(&self, desc: &RelDesc) -> Result<(), SqlError> {
        for (i, n) in desc.names.iter().enumerate() {
            if desc.names[..i].contains(n) {
                return Err(SqlError::new(state::DUPLICATE_COLUMN, format!("column \"{n}\" specified more than once")));
            }
        }
        Ok(())
    }

    pub fn create_view(&self, p: &ParsedStatement, v: &ast::CreateView) -> Result<Plan, SqlError> {
        let name = self.new_name(&v.name)?;
        let plan = self.select_plan(&v.query)?;
        if plan.as_of.is_some() {
            return Err(SqlError::unsupported("AS OF in a view", "give the time in the query that reads it"));
        }
        let mut desc = plan.desc.clone();
        self.rename_columns(&mut desc, &v.columns, "CREATE VIEW specifies more column names than columns")?;
        self.distinct_names(&desc)?;
        let depends_on = plan.depends_on.clone();
        let hir = plan.into_relation();
        if v.materialized && v.temporary {
            return Err(SqlError::new(state::SYNTAX_ERROR, "materialized views may not be temporary"));
        }
        let query_sql = self.qualified_text(p, v.query.span);
        let columns =
            if v.columns.is_empty() { String::new() } else { format!(" ({})", v.columns.iter().map(|c| quote_ident(&c.name)).collect::<Vec<_>>().join(", ")) };
        let kind = if v.materialized { "MATERIALIZED VIEW" } else { "VIEW" };
        let create_sql = format!("CREATE {kind} {}.{}{columns} AS {query_sql}", quote_ident(&name.schema), quote_ident(&name.name));
        let plan = Box::new(CreateViewPlan {
            name,
            or_replace: v.or_replace,
            if_not_exists: v.if_not_exists,
            temporary: v.temporary,
            hir,
            desc,
            query_sql,
            create_sql,
            options: plain_options(&v.options),
            depends_on,
        });
        Ok(if v.materialized { Plan::CreateMaterializedView(plan) } else { Plan::CreateView(plan) })
    }

    pub fn create_index(&self, p: &ParsedStatement, i: &ast::CreateIndex) -> Result<Plan, SqlError> {
        let rel = self.resolve_relation(&i.on)?;
        match rel.kind {
            RelationKind::Builtin => {
                return Err(SqlError::new(state::INSUFFICIENT_PRIVILEGE, format!("permission denied: \"{}\" is a system catalog", rel.name.name)).at(i.on.pos))
            }
            RelationKind::Other => {
                return Err(SqlError::new(state::WRONG_OBJECT_TYPE, format!("cannot create index on relation \"{}\"", rel.name.name)).at(i.on.pos))
            }
            _ => {}
        }
        if i.unique {
            return Err(SqlError::unsupported("CREATE UNIQUE INDEX", "declare PRIMARY KEY or UNIQUE in the table"));
        }
        if let Some(pos) = i.filter {
            return Err(SqlError::unsupported("a partial index", "index a view that filters").at(pos));
        }
        if let Some(m @ ("gin" | "gist" | "spgist" | "brin")) = i.method.as_deref() {
            let hint = "an index finds rows by the value of its key; queries that such an index would serve run without one";
            return Err(SqlError::unsupported(format!("an index USING {m}"), hint));
        }
        if let Some(m) = i.method.as_deref().filter(|m| !matches!(*m, "btree" | "arrangement" | "hash")) {
            return Err(SqlError::new(state::UNDEFINED_OBJECT, format!("access method \"{m}\" does not exist")));
        }
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
        let env = self.row_env(&rel.name.name, &rel.desc, Clause::Index);
        for (o, span) in &i.keys {
            if o.desc || o.nulls_first.is_some() {
                return Err(SqlError::unsupported("an ordered index", "an index finds rows by their key; leave out the order").at(o.expr.pos));
            }
            let x = self.expr(&o.expr, &env)?;
            let x = self.text_if_unknown(x, o.expr.pos)?;
            self.require_index_class(&x.typ().ty, o.expr.pos)?;
            let s = self.row_scalar(&x, o.expr.pos)?;
            if !s.is_immutable() {
                return Err(SqlError::new(state::INVALID_OBJECT_DEFINITION, "functions in index expression must be marked IMMUTABLE").at(o.expr.pos));
            }
            words.push(query::figure_name(&o.expr).unwrap_or_else(|| "expr".into()));
            keys.push(s);
            key_sql.push(p.slice(*span).to_owned());
        }
        let default_name = format!("{}_{}_idx", rel.name.name, words.join("_"));
        let create_sql = format!(
            "CREATE INDEX {} ON {}.{} ({})",
            quote_ident(i.name.as_ref().map_or(&default_name, |n| &n.name)),
            quote_ident(&rel.name.schema),
            quote_ident(&rel.name.name),
            key_sql.join(", ")
        );
        Ok(Plan::CreateIndex(Box::new(CreateIndexPlan {
            name: i.name.as_ref().map(|n| n.name.clone()),
            default_name,
            if_not_exists: i.if_not_exists,
            on: rel.id,
            on_name: rel.name.clone(),
            keys,
            key_sql,
            unique: false,
            options: plain_options(&i.options),
            create_sql,
        })))
    }

    /// An expression over one row, without subqueries.
    pub fn row_scalar(&self, e: &HirScalar, pos: Pos) -> Result<::expr::Scalar, SqlError> {
        row_scalar(e).ok_or_else(|| SqlError::new(state::FEATURE_NOT_SUPPORTED, "cannot use subquery in index expression").at(pos))
    }

    pub fn create_type(&self, t: &ast::CreateType, p: &ParsedStatement) -> Result<Plan, SqlError> {
        let name = self.new_name(&t.name)?;
        let body = match &t.body {
            ast::TypeBody::Enum(labels) => {
                for (i, l) in labels.iter().enumerate() {
                    if labels[..i].contains(l) {
                        return Err(SqlError::new(state::UNIQUE_VIOLATION, "duplicate key value violates unique constraint \"pg_enum_typid_label_index\"")
                            .with_detail(format!("The label \"{l}\" is given twice.")));
                    }
                    if l.len() > 63 {
                        return Err(SqlError::new(state::INVALID_NAME, format!("invalid enum label \"{l}\"")).with_detail("Labels must be 63 bytes or less."));
                    }
                }
                TypePlan::Enum(labels.clone())
            }
            ast::TypeBody::Composite(fields) => {
                for (i, (n, _)) in fields.iter().enumerate() {
                    if fields[..i].iter().any(|f| f.0.name == n.name) {
                        return Err(SqlError::new(state::DUPLICATE_COLUMN, format!("column \"{}\" specified more than once", n.name)).at(n.pos));
                    }
                }
                TypePlan::Composite(fields.iter().map(|(n, t)| Ok((n.name.clone(), self.resolve_type(t)?))).collect::<Result<_, SqlError>>()?)
            }
            ast::TypeBody::Domain { base, not_null, default, checks } => {
                TypePlan::Domain(self.create_domain(p, &name.name, base, *not_null, default.as_ref(), checks)?)
            }
        };
        Ok(Plan::CreateType { name, body })
    }

    /// An existing object that is no relation. Errors: 42704.
    pub fn object(&self, kind: ObjectKind, n: &ObjectName) -> Result<ObjectRef, SqlError> {
        self.catalog
            .resolve_object(kind, &n.parts)
            .ok_or_else(|| SqlError::new(state::UNDEFINED_OBJECT, format!("{} \"{n}\" does not exist", word(kind))).at(n.pos))
    }

    /// An existing object of any kind. Errors: 42P01 for relations, 42704 for others, 42809 for a relation of another kind.
    pub fn any_object(&self, kind: ObjectKind, n: &ObjectName) -> Result<ObjectRef, SqlError> {
        if let Some(o) = self.catalog.resolve_object(kind, &n.parts) {
            return Ok(o);
        }
        let relational = matches!(kind, ObjectKind::Table | ObjectKind::View | ObjectKind::MaterializedView | ObjectKind::Source | ObjectKind::Index);
        if relational {
            if let Some(rel) = self.catalog.resolve_relation(&n.parts)? {
                let fits = match (&rel.kind, kind) {
                    (RelationKind::Table, ObjectKind::Table)
                    | (RelationKind::View(_), ObjectKind::View)
                    | (RelationKind::MaterializedView, ObjectKind::MaterializedView)
                    | (RelationKind::Source | RelationKind::Tables, ObjectKind::Source | ObjectKind::Table) => true,
                    (RelationKind::Other, ObjectKind::Index) => true,
                    (RelationKind::Builtin, _) => {
                        return Err(
                            SqlError::new(state::INSUFFICIENT_PRIVILEGE, format!("permission denied: \"{}\" is a system catalog", rel.name.name)).at(n.pos)
                        )
                    }
                    _ => false,
                };
                if !fits {
                    return Err(SqlError::new(state::WRONG_OBJECT_TYPE, format!("\"{}\" is not {}", rel.name.name, with_article(kind)))
                        .with_hint(format!("Use DROP {} to remove {}.", rel.kind.word().to_uppercase(), a_word(rel.kind.word())))
                        .at(n.pos));
                }
                return Ok(ObjectRef { id: rel.id, name: rel.name.clone() });
            }
        }
        Err(self.missing(kind, n))
    }

    fn missing(&self, kind: ObjectKind, n: &ObjectName) -> SqlError {
        let code = match kind {
            ObjectKind::Table | ObjectKind::View | ObjectKind::MaterializedView => state::UNDEFINED_TABLE,
            ObjectKind::Schema => state::INVALID_SCHEMA_NAME,
            ObjectKind::Database => state::INVALID_CATALOG_NAME,
            _ => state::UNDEFINED_OBJECT,
        };
        SqlError::new(code, format!("{} \"{n}\" does not exist", word(kind))).at(n.pos)
    }

    pub fn drop_plan(&self, d: &ast::Drop) -> Result<Plan, SqlError> {
        let (mut objects, mut names, mut notices) = (Vec::new(), Vec::new(), Vec::new());
        let skip = |n: &ObjectName| SqlError::new(repr::SqlState::new("00000"), format!("{} \"{n}\" does not exist, skipping", word(d.kind)));
        match d.kind {
            ObjectKind::Schema | ObjectKind::Database => {
                for n in &d.names {
                    let known = d.kind == ObjectKind::Database || self.catalog.schema_exists(n.last());
                    if !known && d.if_exists {
                        notices.push(skip(n));
                        continue;
                    }
                    if !known {
                        return Err(self.missing(d.kind, n));
                    }
                    names.push(n.last().to_owned());
                }
            }
            ObjectKind::Role | ObjectKind::Sequence | ObjectKind::Function | ObjectKind::Cluster | ObjectKind::Column => {
                if d.if_exists {
                    notices.extend(d.names.iter().map(skip));
                } else {
                    return match d.names.first() {
                        Some(n) => Err(self.missing(d.kind, n)),
                        None => Err(SqlError::internal("DROP of nothing")),
                    };
                }
            }
            _ => {
                for n in &d.names {
                    match self.any_object(d.kind, n) {
                        Ok(o) => objects.push(o),
                        Err(e) if d.if_exists && matches!(e.code, state::UNDEFINED_TABLE | state::UNDEFINED_OBJECT) => notices.push(skip(n)),
                        Err(e) => return Err(SqlError { position: None, ..e }),
                    }
                }
            }
        }
        Ok(Plan::Drop(Box::new(DropPlan { kind: d.kind, objects, names, cascade: d.cascade, notices })))
    }

    pub fn alter(&self, a: &ast::Alter) -> Result<Plan, SqlError> {
        if a.kind == ObjectKind::Schema {
            if let AlterAction::Rename(to) = &a.action {
                if !self.catalog.schema_exists(a.name.last()) {
                    return Err(self.missing(a.kind, &a.name));
                }
                return Ok(Plan::AlterRenameSchema { from: a.name.last().to_owned(), to: to.name.clone() });
            }
        }
        let object = match self.any_object(a.kind, &a.name) {
            Ok(o) => o,
            Err(e) if a.if_exists && matches!(e.code, state::UNDEFINED_TABLE | state::UNDEFINED_OBJECT) => {
                let notice = SqlError::new(repr::SqlState::new("00000"), format!("relation \"{}\" does not exist, skipping", a.name));
                return Ok(Plan::Nothing { tag: alter_tag(a.kind), notice: Some(notice) });
            }
            // ALTER TABLE renames views and indexes too.
            Err(e) if e.code == state::WRONG_OBJECT_TYPE && a.kind == ObjectKind::Table => match self.catalog.resolve_relation(&a.name.parts)? {
                Some(r) => ObjectRef { id: r.id, name: r.name.clone() },
                None => return Err(e),
            },
            Err(e) => return Err(e),
        };
        let unsupported = |what: &str, hint: &str| Err(SqlError::unsupported(format!("ALTER {} … {what}", word(a.kind).to_uppercase()), hint));
        match &a.action {
            AlterAction::Rename(to) => Ok(Plan::AlterRename { kind: a.kind, object, to: to.name.clone() }),
            AlterAction::RenameColumn(from, to) => {
                let rel = self.resolve_relation(&a.name)?;
                let column = rel
                    .desc
                    .names
                    .iter()
                    .position(|n| *n == from.name)
                    .ok_or_else(|| SqlError::new(state::UNDEFINED_COLUMN, format!("column \"{}\" does not exist", from.name)).at(from.pos))?;
                if rel.desc.names.contains(&to.name) {
                    return Err(SqlError::new(state::DUPLICATE_COLUMN, format!("column \"{}\" of relation \"{}\" already exists", to.name, rel.name.name)));
                }
                Ok(Plan::AlterRenameColumn { relation: rel.id, column, to: to.name.clone() })
            }
            AlterAction::SetSchema(s) => {
                if !self.catalog.schema_exists(&s.name) {
                    return Err(SqlError::new(state::INVALID_SCHEMA_NAME, format!("schema \"{}\" does not exist", s.name)).at(s.pos));
                }
                Ok(Plan::AlterSetSchema { kind: a.kind, object, schema: s.name.clone() })
            }
            AlterAction::SetOptions(o) => {
                Ok(Plan::AlterOptions { kind: a.kind, object, options: plain_options(o).into_iter().map(|(k, v)| (k, Some(v))).collect() })
            }
            AlterAction::ResetOptions(o) => Ok(Plan::AlterOptions { kind: a.kind, object, options: o.iter().map(|k| (k.clone(), None)).collect() }),
            AlterAction::OwnerTo(owner) => Ok(Plan::AlterOwner { kind: a.kind, object, owner: owner.clone() }),
            AlterAction::SetSecret(value) => Ok(Plan::AlterSecret { secret: object, value: value.clone() }),
            AlterAction::AddColumn { .. } => unsupported("ADD COLUMN", "create a new table and copy the rows"),
            AlterAction::DropColumn { .. } => unsupported("DROP COLUMN", "create a new table and copy the rows"),
            AlterAction::AddConstraint(_) => unsupported("ADD CONSTRAINT", "declare constraints when the table is created"),
            AlterAction::Other(_) => unsupported("this form", "RENAME, SET SCHEMA, SET (…) and OWNER TO are known"),
        }
    }

    pub fn comment(&self, kind: ObjectKind, name: &ObjectName, text: Option<String>) -> Result<Plan, SqlError> {
        if kind == ObjectKind::Column {
            let mut rel_name = name.clone();
            let Some(col) = rel_name.parts.pop().filter(|_| !rel_name.parts.is_empty()) else {
                return Err(SqlError::new(state::SYNTAX_ERROR, "column name must be qualified").at(name.pos));
            };
            let rel = self.resolve_relation(&rel_name)?;
            let column = rel.desc.names.iter().position(|n| *n == col).ok_or_else(|| {
                SqlError::new(state::UNDEFINED_COLUMN, format!("column \"{col}\" of relation \"{}\" does not exist", rel.name.name)).at(name.pos)
            })?;
            return Ok(Plan::Comment { kind, object: ObjectRef { id: rel.id, name: rel.name.clone() }, column: Some(column), text });
        }
        Ok(Plan::Comment { kind, object: self.any_object(kind, name)?, column: None, text })
    }
}

/// `ColumnDef` for LIKE; the type is replaced by the original's afterwards.
fn like_column(name: &str, t: &ColType, pos: Pos) -> ast::ColumnDef {
    ast::ColumnDef {
        name: ast::Ident { name: name.to_owned(), pos },
        ty: ast::TypeName::system("text", pos),
        not_null: !t.nullable,
        null: false,
        default: None,
        primary_key: false,
        unique: false,
        checks: Vec::new(),
        identity: None,
        generated: None,
        references: None,
    }
}

pub fn numbered(base: &str, taken: &dyn Fn(&str) -> bool) -> String {
    if !taken(base) {
        return base.to_owned();
    }
    (1..).map(|n| format!("{base}{n}")).find(|n| !taken(n)).unwrap_or_default()
}

/// A scalar over level 0 without subqueries as a plain expression.
pub fn row_scalar(e: &HirScalar) -> Option<::expr::Scalar> {
    use ::expr::Scalar;
    let all = |xs: &[HirScalar]| xs.iter().map(row_scalar).collect::<Option<Vec<_>>>();
    Some(match e {
        HirScalar::Column(c, _) if c.level == 0 => Scalar::Column(c.column),
        HirScalar::Literal(v, t) => Scalar::Literal(v.clone(), t.clone()),
        HirScalar::Error(err, t) => Scalar::Error(err.clone(), t.clone()),
        HirScalar::Call { func, args, ty } => Scalar::Call { func, args: all(args)?, ty: ty.clone() },
        HirScalar::And(xs) => Scalar::And(all(xs)?),
        HirScalar::Or(xs) => Scalar::Or(all(xs)?),
        HirScalar::Case { branches, otherwise, ty } => Scalar::Case {
            branches: branches.iter().map(|(c, r)| Some((row_scalar(c)?, row_scalar(r)?))).collect::<Option<_>>()?,
            otherwise: Box::new(row_scalar(otherwise)?),
            ty: ty.clone(),
        },
        HirScalar::Coalesce(xs, t) => Scalar::Coalesce(all(xs)?, t.clone()),
        HirScalar::IsNull(x) => Scalar::IsNull(Box::new(row_scalar(x)?)),
        HirScalar::Not(x) => Scalar::Not(Box::new(row_scalar(x)?)),
        _ => return None,
    })
}

pub fn word(kind: ObjectKind) -> &'static str {
    match kind {
        ObjectKind::Table => "table",
        ObjectKind::View => "view",
        ObjectKind::MaterializedView => "materialized view",
        ObjectKind::Index => "index",
        ObjectKind::Source => "source",
        ObjectKind::Sink => "sink",
        ObjectKind::Connection => "connection",
        ObjectKind::Secret => "secret",
        ObjectKind::Subscription => "subscription",
        ObjectKind::Schema => "schema",
        ObjectKind::Database => "database",
        ObjectKind::Type => "type",
        ObjectKind::Role => "role",
        ObjectKind::Column => "column",
        ObjectKind::Sequence => "sequence",
        ObjectKind::Function => "function",
        ObjectKind::Cluster => "cluster",
    }
}

fn with_article(kind: ObjectKind) -> String {
    a_word(word(kind))
}

fn a_word(w: &str) -> String {
    let article = if w.starts_with(['a', 'e', 'i', 'o', 'u']) { "an" } else { "a" };
    format!("{article} {w}")
}

fn alter_tag(kind: ObjectKind) -> &'static str {
    match kind {
        ObjectKind::View => "ALTER VIEW",
        ObjectKind::MaterializedView => "ALTER MATERIALIZED VIEW",
        ObjectKind::Index => "ALTER INDEX",
        ObjectKind::Source => "ALTER SOURCE",
        ObjectKind::Sink => "ALTER SINK",
        ObjectKind::Connection => "ALTER CONNECTION",
        ObjectKind::Secret => "ALTER SECRET",
        ObjectKind::Schema => "ALTER SCHEMA",
        _ => "ALTER TABLE",
    }
}
