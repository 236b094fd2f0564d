//! CREATE, ALTER, DROP of tables, indexes, types; views are in `view`.

use super::kept::is_no_default;
use super::naming::{key_name, object_name};
use super::scope::Clause;
use super::statement::{once, plain_options};
use super::walk::reads;
use super::*;
use crate::ast::{self, AlterAction, ConstraintKind, ObjectKind, ObjectName, Span};
use crate::catalog::{ObjectRef, RelationKind};
use crate::hir::HirScalar;
use crate::parse::ParsedStatement;
use repr::{ColType, RelDesc, SqlType};

/// Columns, keys and constraints of a table definition.
#[derive(Debug)]
pub struct TableShape {
    /// All columns, those of the table that it is added to first.
    pub desc: RelDesc,
    /// Of the new columns.
    pub defaults: Vec<Option<(String, HirScalar)>>,
    pub generated: Vec<Option<(String, HirScalar)>>,
    /// The new columns that have a COLLATE of their own, and its name.
    pub collations: Vec<(usize, String)>,
    pub checks: Vec<(String, String, HirScalar)>,
    pub unique: Vec<(String, Vec<usize>, bool)>,
    pub foreign: Vec<ForeignPlan>,
    /// Names of those in `unique` with NULLS NOT DISTINCT.
    pub equal_nulls: Vec<String>,
    /// Those in `unique` that INCLUDE columns, and which.
    pub include: Vec<(String, Vec<usize>)>,
    /// Those in `unique` that are DEFERRABLE, and whether INITIALLY DEFERRED.
    pub deferral: Vec<(String, bool)>,
    /// Names of checks and foreign keys that are NOT VALID.
    pub unchecked: Vec<String>,
    /// USING INDEX: the index that becomes the one key in `unique`.
    pub from_index: Option<String>,
    pub sequences: Vec<ColumnSequence>,
}

/// A key that a table definition asks for.
#[derive(Default)]
struct Wanted {
    name: Option<String>,
    columns: Vec<usize>,
    include: Vec<usize>,
    primary: bool,
    equal_nulls: bool,
    when: ast::ConstraintTime,
}

impl Binder<'_> {
    pub fn create_table(&self, p: &ParsedStatement, c: &ast::CreateTable) -> Result<Plan, SqlError> {
        let name = self.new_name(&c.name)?;
        // What is not made is not looked at.
        let there = |n: &FullName| self.catalog.eval_ctx().catalog.relation_oid(&[n.schema.clone(), n.name.clone()]).is_some();
        if c.if_not_exists && there(&name) {
            let notice = SqlError::new(state::DUPLICATE_TABLE, format!("relation \"{}\" already exists, skipping", name.name));
            return Ok(Plan::Nothing { tag: "CREATE TABLE", notice: Some(notice) });
        }
        let mut columns = c.columns.clone();
        // Each with the place of its first column.
        let mut likes: Vec<(usize, &ast::Like, std::rc::Rc<crate::catalog::Relation>)> = Vec::new();
        let mut added = 0;
        for l in &c.like {
            // What is copied depends on nothing.
            let rel = match self.catalog.resolve_relation(&l.name.parts).map_err(|e| e.at(l.name.pos))? {
                Some(rel) if matches!(rel.kind, RelationKind::Other | RelationKind::Sequence) => {
                    return Err(SqlError::new(state::WRONG_OBJECT_TYPE, format!("relation \"{}\" is invalid in LIKE clause", rel.name.name)).at(l.name.pos));
                }
                Some(rel) => std::rc::Rc::new((*rel).clone()),
                None => return Err(self.undefined_relation(&l.name)),
            };
            let at = l.after + added;
            columns.splice(at..at, rel.desc.names.iter().zip(&rel.desc.types).map(|(n, t)| like_column(n, t, l.name.pos)));
            added += rel.desc.arity();
            likes.push((at, l, rel));
        }
        super::statement::storage_parameters(&c.options, false)?;
        let mut shape = self.table_shape(p, &name.name, &columns, &c.constraints, None).map_err(|e| {
            // What checks and foreign keys name is looked up when the table is made.
            let later = [state::UNDEFINED_TABLE, state::INVALID_FOREIGN_KEY].contains(&e.code)
                || e.code == state::UNDEFINED_COLUMN && !e.message.contains("named in key");
            match later && there(&name) {
                true => SqlError::new(state::DUPLICATE_TABLE, format!("relation \"{}\" already exists", name.name)),
                false => e,
            }
        })?;
        let mut like = Vec::new();
        for (at, l, rel) in likes {
            self.take_from(&mut shape, &name.name, at, l, &rel)?;
            like.push(LikePlan { rel: rel.id, at, indexes: l.indexes, comments: l.comments });
        }
        // What is NOT VALID is valid: there are no rows.
        let TableShape { desc, defaults, generated, collations, checks, unique, foreign, equal_nulls, include, deferral, sequences, .. } = shape;
        Ok(Plan::CreateTable(Box::new(CreateTablePlan {
            name,
            if_not_exists: c.if_not_exists,
            temporary: c.temporary,
            desc,
            defaults: defaults.into_iter().map(|d| d.map(|d| d.0)).collect(),
            generated: generated.into_iter().map(|d| d.map(|d| d.0)).collect(),
            collations,
            checks: checks.into_iter().map(|c| (c.0, c.1)).collect(),
            unique,
            foreign,
            equal_nulls,
            include,
            deferral,
            on_commit: c.on_commit,
            sequences,
            domains: self.depends_on(),
            options: super::statement::kept_parameters(&c.options),
            like,
        })))
    }

    /// LIKE: types are copied exactly, modifiers and all, the rest as INCLUDING says.
    fn take_from(&self, shape: &mut TableShape, table: &str, at: usize, l: &ast::Like, rel: &crate::catalog::Relation) -> Result<(), SqlError> {
        for (i, t) in rel.desc.types.iter().enumerate() {
            let primary = shape.unique.iter().any(|u| u.2 && u.1.contains(&(at + i)));
            shape.collations.extend(rel.def.collations.iter().filter(|c| c.0 == i).map(|c| (at + i, c.1.clone())));
            shape.desc.types[at + i] = if primary { t.clone().with_nullable(false) } else { t.clone() };
            let text = |texts: &[Option<String>], exprs: &[Option<HirScalar>]| texts.get(i).cloned().flatten().zip(exprs.get(i).cloned().flatten());
            if l.defaults && rel.identity(i).is_none() {
                shape.defaults[at + i] = text(&rel.def.defaults, &rel.defaults);
            }
            if l.generated {
                shape.generated[at + i] = text(&rel.def.generated, &rel.generated);
            }
            if let (true, Some(Some((always, spec)))) = (l.identity, rel.def.identity.get(i)) {
                shape.sequences.push(ColumnSequence { column: at + i, identity: Some(*always), spec: spec.clone(), name: None });
            }
        }
        if l.constraints {
            for (name, text) in &rel.def.checks {
                let x = self.condition(&crate::parse::parse_expr(text)?, &self.row_env(table, &shape.desc, Clause::Check), "CHECK")?;
                shape.checks.push((name.clone(), text.clone(), x));
            }
        }
        if l.indexes {
            for (n, (key, columns)) in rel.unique.iter().enumerate().filter(|(_, u)| !rel.def.unique_indexes.contains(&u.0)) {
                let columns: Vec<usize> = columns.iter().map(|c| at + c).collect();
                let primary = n == 0 && rel.def.has_primary_key;
                if primary && shape.unique.iter().any(|u| u.2) {
                    let m = format!("multiple primary keys for table \"{table}\" are not allowed");
                    return Err(SqlError::new(state::INVALID_TABLE_DEFINITION, m).at(l.name.pos));
                }
                let held: Vec<usize> = rel.def.include.iter().filter(|k| k.0 == *key).flat_map(|k| &k.1).map(|c| at + c).collect();
                let all = [&columns[..], &held].concat();
                let name = key_name(table, &all, primary, &shape.desc, &|n| shape.unique.iter().any(|u| u.0 == n));
                if !held.is_empty() {
                    shape.include.push((name.clone(), held));
                }
                if primary {
                    columns.iter().for_each(|c| shape.desc.types[*c].nullable = false);
                }
                match rel.def.deferral.iter().find(|d| d.0 == *key) {
                    Some((_, deferred)) => shape.deferral.push((name.clone(), *deferred)),
                    None if columns.iter().all(|c| !shape.desc.types[*c].nullable) => shape.desc.keys.push(columns.clone()),
                    None => {}
                }
                shape.unique.push((name, columns, primary));
            }
        }
        Ok(())
    }

    /// Errors: 42601, 42P16, 42701, 42703, 42804 and what expressions bring. `base`: the table that the columns and constraints are added to.
    pub fn table_shape(
        &self,
        p: &ParsedStatement,
        table: &str,
        columns: &[ast::ColumnDef],
        constraints: &[ast::TableConstraint],
        base: Option<&crate::catalog::Relation>,
    ) -> Result<TableShape, SqlError> {
        let mut desc = base.map_or_else(RelDesc::default, |b| RelDesc { names: b.desc.names.clone(), types: b.desc.types.clone(), keys: Vec::new() });
        let first = desc.arity();
        let mut sequences: Vec<ColumnSequence> = Vec::new();
        let mut collations = Vec::new();
        for (i, c) in columns.iter().enumerate() {
            if desc.names.contains(&c.name.name) {
                let message = match base {
                    Some(b) if b.desc.names.contains(&c.name.name) => format!("column \"{}\" of relation \"{table}\" already exists", c.name.name),
                    _ => format!("column \"{}\" specified more than once", c.name.name),
                };
                return Err(SqlError::new(state::DUPLICATE_COLUMN, message).at(c.name.pos));
            }
            super::scope::check_column_name(&c.name.name)?;
            let conflict = |what: &str| SqlError::new(state::SYNTAX_ERROR, format!("{what} for column \"{}\" of table \"{table}\"", c.name.name));
            if c.null && c.primary_key {
                return Err(conflict("conflicting NULL/NOT NULL declarations").at(c.name.pos));
            }
            if let Some((what, pos)) = c.conflict {
                return Err(conflict(what).at(pos));
            }
            let serial = match c.ty.names.as_slice() {
                [n] if c.ty.dims == 0 => serial_type(n),
                _ => None,
            };
            // Postgres counts the default of a serial as one behind all others, and points at nothing.
            let implied = |what| Err(conflict(what));
            if serial.is_some() && c.default.is_some() {
                return implied("multiple default values specified");
            }
            if serial.is_some() && c.identity.is_some() {
                return implied("both default and identity specified");
            }
            if serial.is_some() && c.generated.is_some() {
                return implied("both default and generation expression specified");
            }
            let ty = match &serial {
                Some(t) => t.clone().not_null(),
                None => self.resolve_type(&c.ty)?,
            };
            if let Some(identity) = &c.identity {
                let spec = self.sequence_spec(&identity.options, &ty.ty, true)?;
                let name = identity.options.name.as_ref().map(|n| self.new_name(n)).transpose()?;
                sequences.push(ColumnSequence { column: first + i, identity: Some(identity.always), spec, name });
            } else if serial.is_some() {
                let spec = self.sequence_spec(&ast::SequenceOptions::default(), &ty.ty, false)?;
                sequences.push(ColumnSequence { column: first + i, identity: None, spec, name: None });
            }
            collations.extend(super::types_of::kept_collation(&c.ty).map(|name| (first + i, name)));
            let not_null = c.not_null || c.identity.is_some() || serial.is_some();
            self.check_column_type(&c.name.name, &ty.ty, c.name.pos)?;
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
        let mut check_list: Vec<(Option<String>, &ast::Expr, Span, bool)> = Vec::new();
        let mut primary: Option<Wanted> = None;
        let (mut deferral, mut unchecked, mut from_index) = (Vec::new(), Vec::new(), None);
        let has_primary = base.is_some_and(|b| b.def.has_primary_key);
        let mut set_primary = |key: Wanted, pos: Pos| {
            if primary.is_some() || has_primary {
                return Err(SqlError::new(state::INVALID_TABLE_DEFINITION, format!("multiple primary keys for table \"{table}\" are not allowed")).at(pos));
            }
            primary = Some(key);
            Ok(())
        };
        let mut wanted: Vec<Wanted> = Vec::new();
        let (mut equal_nulls, mut include): (Vec<String>, Vec<(String, Vec<usize>)>) = (Vec::new(), Vec::new());
        for (i, c) in columns.iter().enumerate() {
            if c.primary_key {
                let key = Wanted { name: c.primary_name.clone(), columns: vec![first + i], primary: true, when: c.primary_when, ..Default::default() };
                set_primary(key, c.name.pos)?;
                c.second_primary.map_or(Ok(()), |pos| set_primary(Wanted::default(), pos))?;
            }
            if c.unique {
                let (name, columns) = (c.unique_name.clone(), vec![first + i]);
                wanted.push(Wanted { name, columns, equal_nulls: c.equal_nulls, when: c.unique_when, ..Default::default() });
            }
            for (n, e, span) in &c.checks {
                check_list.push((n.clone(), e, *span, false));
            }
        }
        for t in constraints {
            match &t.kind {
                ConstraintKind::PrimaryKey(key) | ConstraintKind::Unique(key, _) => {
                    let of = if matches!(t.kind, ConstraintKind::PrimaryKey(_)) { "primary key constraint" } else { "unique constraint" };
                    let columns = self.key_columns(&key.columns, of, &column)?;
                    let include = key.include.iter().map(&column).collect::<Result<_, _>>()?;
                    let equal_nulls = matches!(t.kind, ConstraintKind::Unique(_, true));
                    match matches!(t.kind, ConstraintKind::PrimaryKey(_)) {
                        true => set_primary(Wanted { name: t.name.clone(), columns, include, equal_nulls, primary: true, when: t.when }, t.pos)?,
                        false => wanted.push(Wanted { name: t.name.clone(), columns, include, equal_nulls, primary: false, when: t.when }),
                    }
                }
                ConstraintKind::UsingIndex(is_primary, index) => {
                    let columns = self.key_of_index(base, index, t.pos)?;
                    let name = Some(t.name.clone().unwrap_or_else(|| index.name.clone()));
                    from_index = Some(index.name.clone());
                    let key = Wanted { name, columns, primary: *is_primary, when: t.when, ..Default::default() };
                    match is_primary {
                        true => set_primary(key, t.pos)?,
                        false => wanted.push(key),
                    }
                }
                ConstraintKind::Check(e, span) => check_list.push((t.name.clone(), e, *span, t.not_valid)),
                ConstraintKind::ForeignKey(..) => {}
                ConstraintKind::Exclude => return Err(SqlError::unsupported("EXCLUDE", "keep a view that counts violations").at(t.pos)),
            }
        }
        let taken = |n: &str, unique: &[(String, Vec<usize>, bool)]| {
            unique.iter().any(|u| u.0 == n) || base.is_some_and(|b| b.unique.iter().any(|u| u.0 == n) || b.def.checks.iter().any(|c| c.0 == n))
        };
        for Wanted { name, columns: cols, include: held, primary: is_primary, equal_nulls: equal, when } in primary.into_iter().chain(wanted) {
            if is_primary {
                cols.iter().for_each(|c| desc.types[*c].nullable = false);
            } else if unique.iter().any(|u| u.1 == cols && include.iter().find(|k| k.0 == u.0).map_or(&[][..], |k| &k.1) == held) {
                continue;
            }
            if let Some(n) = name.as_ref().filter(|n| taken(n, &unique) && from_index.as_ref() != Some(*n)) {
                return Err(SqlError::new(state::DUPLICATE_TABLE, format!("relation \"{n}\" already exists")));
            }
            let name = name.unwrap_or_else(|| key_name(table, &[&cols[..], &held].concat(), is_primary, &desc, &|n| taken(n, &unique)));
            if !held.is_empty() {
                include.push((name.clone(), held));
            }
            if equal {
                equal_nulls.push(name.clone());
            }
            if when.deferrable {
                deferral.push((name.clone(), when.deferred));
            }
            unique.push((name, cols, is_primary));
        }
        for (_, cols, _) in &unique {
            for c in cols {
                self.require_index_class(&desc.types[*c].ty, 0)?;
            }
        }
        // A unique key is a key of the relation only if no column of it can be NULL.
        let firm = unique.iter().filter(|u| !deferral.iter().any(|d| d.0 == u.0)).map(|u| &u.1);
        let all_keys = base.into_iter().flat_map(|b| b.unique.iter().filter(|u| !b.is_deferrable(&u.0)).map(|u| &u.1)).chain(firm);
        desc.keys = all_keys.filter(|u| u.iter().all(|c| !desc.types[*c].nullable)).cloned().collect();
        let mut defaults = Vec::with_capacity(columns.len());
        for (i, c) in columns.iter().enumerate() {
            let ty = &desc.types[first + i];
            defaults.push(match &c.default {
                None => None,
                Some((e, _)) if is_no_default(e, ty) => None,
                Some((e, span)) => Some(self.default_text(&c.name.name, ty, e, p.slice(*span))?),
            });
        }
        let mut generated = Vec::with_capacity(columns.len());
        for (i, c) in columns.iter().enumerate() {
            let of_column = |g: &(ast::Expr, Span)| {
                let others = |k: usize| columns.get(k.wrapping_sub(first)).is_some_and(|c| c.generated.is_some()) || base.is_some_and(|b| b.is_generated(k));
                let x = self.generation(table, &desc, first + i, &g.0, &others)?;
                let env = self.row_env(table, &desc, Clause::Generated);
                let again = |e: &ast::Expr| self.generation(table, &desc, first + i, e, &others);
                let text = self.deparsed(&g.0, &env, Some(&desc.types[first + i]), &x, &again);
                Ok::<_, SqlError>((text.unwrap_or_else(|| p.slice(g.1).trim().to_owned()), x))
            };
            generated.push(c.generated.as_ref().map(of_column).transpose()?);
        }
        let mut checks: Vec<(String, String, HirScalar)> = Vec::new();
        let env = self.row_env(table, &desc, Clause::Check);
        for (name, e, span, not_valid) in check_list {
            let mut x = self.condition(e, &env, "CHECK")?;
            let mut named: Vec<usize> = Vec::new();
            reads(&mut x, |c| {
                if !named.contains(&c) {
                    named.push(c);
                }
                false
            });
            // As Postgres chooses it: after the one column that the condition names, wherever it is written.
            let after = match named[..] {
                [c] => Some(desc.names[c].as_str()),
                _ => None,
            };
            let taken =
                |n: &str| checks.iter().any(|c| c.0 == n) || base.is_some_and(|b| b.def.checks.iter().any(|c| c.0 == n) || b.unique.iter().any(|u| u.0 == n));
            if let Some(n) = name.as_ref().filter(|n| taken(n)) {
                let message = match base {
                    Some(_) => format!("constraint \"{n}\" for relation \"{table}\" already exists"),
                    None => format!("check constraint \"{n}\" already exists"),
                };
                return Err(SqlError::new(state::DUPLICATE_OBJECT, message));
            }
            let name = name.unwrap_or_else(|| object_name(table, after, "check", &taken));
            unchecked.extend(not_valid.then(|| name.clone()));
            checks.push((name, self.check_text(e, &env, p.slice(span), &x), x));
        }
        let mut shape = TableShape {
            desc,
            defaults,
            generated,
            collations,
            checks,
            unique,
            foreign: Vec::new(),
            equal_nulls,
            include,
            deferral,
            unchecked,
            from_index,
            sequences,
        };
        for (i, c) in columns.iter().enumerate() {
            for (name, r) in &c.references {
                let key = self.foreign_key(table, &shape, base, name.as_deref(), &[ast::Ident { name: c.name.name.clone(), pos: r.pos }], r)?;
                debug_assert_eq!(key.columns, [first + i]);
                shape.foreign.push(key);
            }
        }
        for t in constraints {
            if let ConstraintKind::ForeignKey(columns, r) = &t.kind {
                let key = self.foreign_key(table, &shape, base, t.name.as_deref(), columns, r)?;
                shape.unchecked.extend(t.not_valid.then(|| key.name.clone()));
                shape.foreign.push(key);
            }
        }
        Ok(shape)
    }

    /// The columns of a key, of what `of` calls it. Errors: 42701 for one that is named twice.
    pub(super) fn key_columns(&self, cols: &[ast::Ident], of: &str, column: &dyn Fn(&ast::Ident) -> Result<usize, SqlError>) -> Result<Vec<usize>, SqlError> {
        let mut out: Vec<usize> = Vec::new();
        for c in cols {
            let i = column(c)?;
            if out.contains(&i) {
                return Err(SqlError::new(state::DUPLICATE_COLUMN, format!("column \"{}\" appears twice in {of}", c.name)).at(c.pos));
            }
            out.push(i);
        }
        Ok(out)
    }

    /// Errors: 42P16 for a column or field of a type that has no values of its own.
    pub fn check_column_type(&self, column: &str, ty: &SqlType, pos: Pos) -> Result<(), SqlError> {
        match has_no_columns(column, ty) {
            Some(e) => Err(e.at(pos)),
            None => Ok(()),
        }
    }

    /// As [`Binder::check_column_type`], of what a query gives.
    pub(super) fn check_column_types(&self, desc: &RelDesc) -> Result<(), SqlError> {
        match desc.names.iter().zip(&desc.types).find_map(|(name, t)| has_no_columns(name, &t.ty)) {
            Some(e) => Err(e),
            None => Ok(()),
        }
    }

    pub fn create_table_as(&self, c: &ast::CreateTableAs, query: SelectPlan) -> Result<Plan, SqlError> {
        let name = self.new_name(&c.name)?;
        let mut desc = query.desc.clone();
        self.rename_columns(&mut desc, &c.columns, "CREATE TABLE AS specifies too many column names")?;
        desc.types.iter_mut().for_each(|t| t.nullable = true);
        self.distinct_names(&desc)?;
        desc.names.iter().try_for_each(|n| super::scope::check_column_name(n))?;
        self.check_column_types(&desc)?;
        Ok(Plan::CreateTableAs(Box::new(CreateTableAsPlan {
            name,
            if_not_exists: c.if_not_exists,
            desc,
            query,
            with_data: c.with_data,
            on_commit: c.on_commit,
        })))
    }

    /// What CREATE SCHEMA makes in it: sequences, tables, views, indexes. Errors: 42P15 for what names another schema.
    pub fn schema_elements(&self, p: &ParsedStatement, schema: &str, elements: &[(ast::Statement, Span)]) -> Result<Vec<ParsedStatement>, SqlError> {
        let mut out = Vec::with_capacity(elements.len());
        for (statement, span) in elements {
            let (pass, name) = match statement {
                ast::Statement::CreateSequence { name, .. } => (0, name),
                ast::Statement::CreateTable(t) => (1, &t.name),
                ast::Statement::CreateView(v) => (2, &v.name),
                ast::Statement::CreateIndex(i) => (3, &i.on),
                ast::Statement::Unsupported(what) => return Err(SqlError::unsupported(what.clone(), "leave it out")),
                _ => return Err(SqlError::internal("an element that is of no schema")),
            };
            if let [.., other, _] = name.parts.as_slice() {
                if other != schema {
                    let m = format!("CREATE specifies a schema ({other}) different from the one being created ({schema})");
                    return Err(SqlError::new(repr::SqlState::new("42P15"), m));
                }
            }
            let text = ParsedStatement { text: p.slice(*span).to_owned(), offset: span.start, statement: statement.clone(), notices: Vec::new() };
            out.push((pass, text));
        }
        out.sort_by_key(|e| e.0);
        Ok(out.into_iter().map(|e| e.1).collect())
    }

    pub(super) fn rename_columns(&self, desc: &mut RelDesc, columns: &[ast::Ident], too_many: &str) -> Result<(), SqlError> {
        if columns.len() > desc.arity() {
            return Err(SqlError::new(state::SYNTAX_ERROR, too_many));
        }
        for (n, c) in desc.names.iter_mut().zip(columns) {
            n.clone_from(&c.name);
        }
        Ok(())
    }

    pub(super) fn distinct_names(&self, desc: &RelDesc) -> Result<(), SqlError> {
        for (i, n) in desc.names.iter().enumerate() {
            if desc.names[..i].contains(n) {
                return Err(SqlError::new(state::DUPLICATE_COLUMN, format!("column \"{n}\" specified more than once")));
            }
        }
        Ok(())
    }

    /// An existing object that is no relation. Errors: 42704.
    pub fn object(&self, kind: ObjectKind, n: &ObjectName) -> Result<ObjectRef, SqlError> {
        self.catalog
            .resolve_object(kind, &n.parts)
            .ok_or_else(|| SqlError::new(state::UNDEFINED_OBJECT, format!("{} \"{n}\" does not exist", missing_word(kind))).at(n.pos))
    }

    /// An existing object of any kind. Errors: 42P01 for relations, 42704 for others, 42809 for a relation of another kind.
    pub fn any_object(&self, kind: ObjectKind, n: &ObjectName) -> Result<ObjectRef, SqlError> {
        if let Some(o) = self.catalog.resolve_object(kind, &n.parts) {
            return Ok(o);
        }
        let relational =
            matches!(kind, ObjectKind::Table | ObjectKind::View | ObjectKind::MaterializedView | ObjectKind::Source | ObjectKind::Index | ObjectKind::Sequence);
        if relational {
            if let Some(rel) = self.catalog.resolve_relation(&n.parts)? {
                let fits = match (&rel.kind, kind) {
                    (RelationKind::Table, ObjectKind::Table)
                    | (RelationKind::View(_), ObjectKind::View)
                    | (RelationKind::MaterializedView, ObjectKind::MaterializedView)
                    | (RelationKind::Source | RelationKind::Tables, ObjectKind::Source | ObjectKind::Table) => true,
                    (RelationKind::Other, ObjectKind::Index) | (RelationKind::Sequence, ObjectKind::Sequence) => true,
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
            ObjectKind::Table | ObjectKind::View | ObjectKind::MaterializedView | ObjectKind::Sequence => state::UNDEFINED_TABLE,
            ObjectKind::Schema => state::INVALID_SCHEMA_NAME,
            ObjectKind::Database => state::INVALID_CATALOG_NAME,
            _ => state::UNDEFINED_OBJECT,
        };
        self.unpointed(SqlError::new(code, format!("{} \"{n}\" does not exist", missing_word(kind))), n)
    }

    /// A relation that a statement names which is no query: Postgres tells no place then. Errors: 3F000, 42P01.
    pub fn named_relation(&self, n: &ObjectName) -> Result<std::rc::Rc<crate::catalog::Relation>, SqlError> {
        self.resolve_relation(n).map_err(|e| self.unpointed(e, n))
    }

    /// The error that an object does not exist, as such a statement has it; 3F000 if its schema does not.
    pub fn unpointed(&self, e: SqlError, n: &ObjectName) -> SqlError {
        if !is_missing(&e) {
            return e;
        }
        match n.parts.iter().rev().nth(1) {
            Some(schema) if !self.catalog.schema_exists(schema) => SqlError::new(state::INVALID_SCHEMA_NAME, format!("schema \"{schema}\" does not exist")),
            _ => SqlError { position: None, ..e },
        }
    }

    /// Why a function, procedure or aggregate cannot be dropped: there is none, or it is one of the system's, which are all that there are.
    fn no_drop_of_routine(&self, kind: ObjectKind, n: &ObjectName, arguments: Option<&[ast::TypeName]>) -> SqlError {
        let schema = n.parts.iter().rev().nth(1);
        if let Some(s) = schema.filter(|s| !self.catalog.schema_exists(s)) {
            return SqlError::new(state::INVALID_SCHEMA_NAME, format!("schema \"{s}\" does not exist"));
        }
        let found = if schema.is_none_or(|s| s == "pg_catalog") { ::expr::catalog::procs_by_name(n.last()).collect::<Vec<_>>() } else { Vec::new() };
        let what = word(if kind == ObjectKind::Routine { ObjectKind::Function } else { kind });
        let (proc, written) = match arguments {
            None => match found[..] {
                [] => return SqlError::new(state::UNDEFINED_FUNCTION, format!("could not find a {what} named \"{n}\"")),
                [only] => (only, n.last().to_owned()),
                _ => {
                    return SqlError::new(state::AMBIGUOUS_FUNCTION, format!("{what} name \"{n}\" is not unique"))
                        .with_hint(format!("Specify the argument list to select the {what} unambiguously."))
                }
            },
            Some(arguments) => {
                let types = match arguments.iter().map(|t| self.resolve_type(t)).collect::<Result<Vec<_>, _>>() {
                    Ok(types) => types,
                    Err(e) => return e,
                };
                let oids: Vec<u32> = types.iter().map(|t| t.ty.oid()).collect();
                let spelled = types.iter().map(|t| t.ty.sql_name()).collect::<Vec<_>>().join(", ");
                let spelled = if spelled.is_empty() && kind == ObjectKind::Aggregate { "*".to_owned() } else { spelled };
                match found.iter().find(|p| p.args == oids) {
                    None => return SqlError::new(state::UNDEFINED_FUNCTION, format!("{what} {n}({spelled}) does not exist")),
                    Some(p) => (*p, format!("{n}({spelled})")),
                }
            }
        };
        let is_aggregate = proc.kind == ::expr::catalog::ProcKind::Aggregate;
        let wrong = match kind {
            ObjectKind::Function => is_aggregate.then(|| format!("\"{n}\" is an aggregate function")),
            ObjectKind::Aggregate => (!is_aggregate).then(|| format!("function {written} is not an aggregate")),
            ObjectKind::Procedure => Some(format!("{written} is not a procedure")),
            _ => None,
        };
        if let Some(m) = wrong {
            return SqlError::new(state::WRONG_OBJECT_TYPE, m);
        }
        SqlError::new(state::DEPENDENT_OBJECTS_STILL_EXIST, format!("cannot drop function {written} because it is required by the database system"))
    }

    pub fn drop_plan(&self, d: &ast::Drop) -> Result<Plan, SqlError> {
        let (mut objects, mut names, mut notices) = (Vec::new(), Vec::new(), Vec::new());
        let skip = |n: &ObjectName| SqlError::new(repr::SqlState::new("00000"), format!("{} \"{n}\" does not exist, skipping", missing_word(d.kind)));
        if d.concurrently && d.names.len() > 1 {
            return Err(SqlError::new(state::FEATURE_NOT_SUPPORTED, "DROP INDEX CONCURRENTLY does not support dropping multiple objects"));
        }
        if d.concurrently && d.cascade {
            return Err(SqlError::new(state::FEATURE_NOT_SUPPORTED, "DROP INDEX CONCURRENTLY does not support CASCADE"));
        }
        match d.kind {
            ObjectKind::Schema | ObjectKind::Database => {
                for n in &d.names {
                    let known = match d.kind {
                        ObjectKind::Database => n.last() == self.catalog.database(),
                        _ => self.catalog.schema_exists(n.last()),
                    };
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
            ObjectKind::Function | ObjectKind::Procedure | ObjectKind::Aggregate | ObjectKind::Routine => {
                for (n, arguments) in d.names.iter().zip(&d.arguments) {
                    let e = self.no_drop_of_routine(d.kind, n, arguments.as_deref());
                    match e.code == state::UNDEFINED_FUNCTION || is_missing(&e) {
                        true if d.if_exists => notices.push(skipping(&e)),
                        _ => return Err(SqlError { position: None, ..e }),
                    }
                }
            }
            ObjectKind::Role | ObjectKind::Cluster | ObjectKind::Column => {
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
                        // The index of a key is no object of its own.
                        Err(e)
                            if d.kind == ObjectKind::Index
                                && e.code == state::UNDEFINED_OBJECT
                                && self.catalog.eval_ctx().catalog.relation_oid(&n.parts).is_some() =>
                        {
                            let view = &self.catalog.eval_ctx().catalog;
                            let of = match view.relation_oid(&n.parts).and_then(|oid| view.key_table(oid)) {
                                Some(table) => format!("constraint {n} on table {table}"),
                                None => format!("constraint {n}"),
                            };
                            let m = format!("cannot drop index {n} because {of} requires it");
                            return Err(SqlError::new(state::DEPENDENT_OBJECTS_STILL_EXIST, m).with_hint(format!("You can drop {of} instead.")));
                        }
                        Err(e) if d.if_exists && e.code == state::INVALID_SCHEMA_NAME => notices.push(skipping(&e)),
                        Err(e) if d.if_exists && is_missing(&e) => notices.push(skip(n)),
                        Err(e) => return Err(SqlError { position: None, ..e }),
                    }
                }
            }
        }
        Ok(Plan::Drop(Box::new(DropPlan { kind: d.kind, objects, names, cascade: d.cascade, notices })))
    }

    pub fn alter(&self, a: &ast::Alter) -> Result<Plan, SqlError> {
        if a.kind == ObjectKind::Schema {
            if !self.catalog.schema_exists(a.name.last()) {
                return Err(self.missing(a.kind, &a.name));
            }
            match &a.action {
                AlterAction::Rename(to) => return Ok(Plan::AlterRenameSchema { from: a.name.last().to_owned(), to: to.name.clone() }),
                AlterAction::OwnerTo(owner) => return Ok(Plan::AlterOwner { kind: a.kind, owner: owner.clone() }),
                _ => {}
            }
        }
        let object = match self.any_object(a.kind, &a.name) {
            Ok(o) => o,
            Err(e) if a.if_exists && is_missing(&e) => {
                let notice = SqlError::new(repr::SqlState::new("00000"), format!("relation \"{}\" does not exist, skipping", a.name));
                return Ok(Plan::Nothing { tag: alter_tag(a.kind), notice: Some(notice) });
            }
            // Postgres looks for a relation of any kind first.
            Err(e) if e.code == state::UNDEFINED_TABLE || e.code == state::UNDEFINED_OBJECT && a.kind == ObjectKind::Index => {
                return Err(self.unpointed(self.undefined_relation(&a.name), &a.name));
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
                let rel = self.named_relation(&a.name)?;
                let column = rel
                    .desc
                    .names
                    .iter()
                    .position(|n| *n == from.name)
                    .ok_or_else(|| SqlError::new(state::UNDEFINED_COLUMN, format!("column \"{}\" does not exist", from.name)).at(from.pos))?;
                if rel.desc.names.contains(&to.name) {
                    return Err(SqlError::new(state::DUPLICATE_COLUMN, format!("column \"{}\" of relation \"{}\" already exists", to.name, rel.name.name)));
                }
                Ok(Plan::AlterRenameColumn { kind: a.kind, relation: rel.id, column, to: to.name.clone() })
            }
            AlterAction::SetSchema(s) => {
                if !self.catalog.schema_exists(&s.name) {
                    return Err(SqlError::new(state::INVALID_SCHEMA_NAME, format!("schema \"{}\" does not exist", s.name)).at(s.pos));
                }
                Ok(Plan::AlterSetSchema { kind: a.kind, object, schema: s.name.clone() })
            }
            AlterAction::SetOptions(o) if a.kind == ObjectKind::Index => {
                super::statement::storage_parameters(o, true)?;
                Ok(Plan::Nothing { tag: alter_tag(a.kind), notice: None })
            }
            AlterAction::ResetOptions(_) if a.kind == ObjectKind::Index => Ok(Plan::Nothing { tag: alter_tag(a.kind), notice: None }),
            AlterAction::SetOptions(o) if a.kind == ObjectKind::View => {
                once("parameter", o)?;
                self.alter_view_options(&a.name, object, plain_options(o).into_iter().map(|(k, v)| (k, Some(v))).collect())
            }
            AlterAction::ResetOptions(o) if a.kind == ObjectKind::View => {
                self.alter_view_options(&a.name, object, o.iter().map(|k| (k.clone(), None)).collect())
            }
            AlterAction::SetOptions(o) => {
                once("option", o)?;
                Ok(Plan::AlterOptions { kind: a.kind, object, options: plain_options(o).into_iter().map(|(k, v)| (k, Some(v))).collect() })
            }
            AlterAction::ResetOptions(o) => Ok(Plan::AlterOptions { kind: a.kind, object, options: o.iter().map(|k| (k.clone(), None)).collect() }),
            AlterAction::OwnerTo(owner) => Ok(Plan::AlterOwner { kind: a.kind, owner: owner.clone() }),
            AlterAction::SetSecret(value) => Ok(Plan::AlterSecret { secret: object, value: value.clone() }),
            AlterAction::RenameConstraint(from, to) => {
                let rel = self.named_relation(&a.name)?;
                let known = rel.unique.iter().any(|u| u.0 == from.name) || rel.checks.iter().any(|c| c.0 == from.name) || rel.def.foreign.contains(&from.name);
                if !known {
                    let m = format!("constraint \"{}\" for table \"{}\" does not exist", from.name, rel.name.name);
                    return Err(SqlError::new(state::UNDEFINED_OBJECT, m));
                }
                Ok(Plan::AlterRenameConstraint { table: rel.id, from: from.name.clone(), to: to.name.clone() })
            }
            AlterAction::Other(_) => unsupported("this form", "RENAME, SET SCHEMA, SET (…) and OWNER TO are known"),
        }
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
        conflict: None,
        primary_key: false,
        unique: false,
        checks: Vec::new(),
        identity: None,
        generated: None,
        references: Vec::new(),
        primary_name: None,
        second_primary: None,
        unique_name: None,
        primary_when: ast::ConstraintTime::default(),
        unique_when: ast::ConstraintTime::default(),
        equal_nulls: false,
    }
}

fn serial_type(name: &str) -> Option<SqlType> {
    match name {
        "smallserial" | "serial2" => Some(SqlType::Int2),
        "serial" | "serial4" => Some(SqlType::Int4),
        "bigserial" | "serial8" => Some(SqlType::Int8),
        _ => None,
    }
}

/// A scalar over level 0 without subqueries as a plain expression.
pub fn row_scalar(e: &HirScalar) -> Option<::expr::Scalar> {
    use ::expr::Scalar;
    let all = |xs: &[HirScalar]| xs.iter().map(row_scalar).collect::<Option<Vec<_>>>();
    Some(match e {
        HirScalar::Column(c, _) if c.level == 0 => Scalar::Column(c.column),
        HirScalar::Literal(v, t) => Scalar::Literal(v.clone(), t.without_domains()),
        HirScalar::Error(err, t) => Scalar::Error(err.clone(), t.without_domains()),
        HirScalar::Call { func, args, ty } => Scalar::Call { func, args: all(args)?, ty: ty.without_domains() },
        HirScalar::And(xs) => Scalar::And(all(xs)?),
        HirScalar::Or(xs) => Scalar::Or(all(xs)?),
        HirScalar::Case { branches, otherwise, ty } => Scalar::Case {
            branches: branches.iter().map(|(c, r)| Some((row_scalar(c)?, row_scalar(r)?))).collect::<Option<_>>()?,
            otherwise: Box::new(row_scalar(otherwise)?),
            ty: ty.without_domains(),
        },
        HirScalar::Coalesce(xs, t) => Scalar::Coalesce(all(xs)?, t.without_domains()),
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
        ObjectKind::Domain => "domain",
        ObjectKind::Role => "role",
        ObjectKind::Column => "column",
        ObjectKind::Sequence => "sequence",
        ObjectKind::Function => "function",
        ObjectKind::Procedure => "procedure",
        ObjectKind::Aggregate => "aggregate",
        ObjectKind::Routine => "routine",
        ObjectKind::Cluster => "cluster",
    }
}

/// A domain that is not there is a type that is not there.
/// Whether an error says that an object, or its schema, does not exist.
pub fn is_missing(e: &SqlError) -> bool {
    matches!(e.code, state::UNDEFINED_TABLE | state::UNDEFINED_OBJECT | state::INVALID_SCHEMA_NAME)
}

fn skipping(e: &SqlError) -> SqlError {
    SqlError::new(repr::SqlState::new("00000"), format!("{}, skipping", e.message))
}

fn missing_word(kind: ObjectKind) -> &'static str {
    word(if kind == ObjectKind::Domain { ObjectKind::Type } else { kind })
}

/// `a table`, `an index`.
pub fn with_article(kind: ObjectKind) -> String {
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
        ObjectKind::Sequence => "ALTER SEQUENCE",
        _ => "ALTER TABLE",
    }
}

/// What is wrong (42P16) with a column of a pseudo-type.
fn has_no_columns(column: &str, ty: &SqlType) -> Option<SqlError> {
    let pseudo = match ty {
        SqlType::Unknown | SqlType::Void => true,
        SqlType::Record(r) => r.name.is_none(),
        SqlType::Array(elem) => matches!(&**elem, SqlType::Record(r) if r.name.is_none()),
        _ => false,
    };
    pseudo.then(|| SqlError::new(state::INVALID_TABLE_DEFINITION, format!("column \"{column}\" has pseudo-type {}", ty.sql_name())))
}
