//! CREATE and ALTER of types and domains.
//!
//! A relation's columns hold copies of their types; a type that is renamed is renamed in them too. Views name types and labels in their
//! texts, so what they name cannot be renamed while they stand.

use super::ddl::user_types;
use super::{Response, Session};
use crate::catalog::{Item, ItemKind, Namespace};
use crate::coordinator::request::Op;
use crate::planner::{qualified, quote};
use expr::func::system::with_typmod;
use repr::error::state;
use repr::types::{Domain, EnumType, RangeType, RecordType};
use repr::{GlobalId, RelDesc, SqlError, SqlType};
use sql::catalog::FullName;
use sql::plan::{AlterTypePlan, AttributeChange, TypeChange, TypePlan};
use std::collections::BTreeSet;
use std::sync::Arc;

impl Session {
    pub(super) fn create_type(&mut self, name: FullName, body: TypePlan) -> Result<Response, SqlError> {
        self.exists(&name, Namespace::Type, false)?;
        let id = self.shared.allocate_id();
        let array_oid = self.shared.allocate_id().0 as u32;
        if let TypePlan::Domain(d) = body {
            return self.create_domain(id, array_oid, name, d);
        }
        let (ty, text) = match body {
            TypePlan::Enum(labels) => {
                let e = EnumType::new(id.0 as u32, array_oid, name.name.clone(), labels);
                (SqlType::Enum(Arc::new(e.clone())), enum_text(&e))
            }
            TypePlan::Composite(fields) => {
                let text = composite_text(&fields);
                let r = repr::types::RecordType { oid: id.0 as u32, array_oid, name: Some(name.name.clone()), fields };
                (SqlType::Record(Arc::new(r)), text)
            }
            TypePlan::Range { subtype, multirange } => {
                let multirange_name = FullName { name: multirange.clone(), ..name.clone() };
                let taken = multirange == name.name || self.catalog().check_free(&name.schema, Namespace::Type, &multirange).is_err();
                if taken {
                    let e = SqlError::new(state::DUPLICATE_OBJECT, format!("type \"{}\" already exists", multirange_name.name));
                    return Err(e
                        .with_detail(format!("Failed while creating a multirange type for type \"{}\".", name.name))
                        .with_hint("You can manually specify a multirange type name using the \"multirange_type_name\" attribute."));
                }
                let (multirange_oid, multirange_array_oid) = (self.shared.allocate_id().0 as u32, self.shared.allocate_id().0 as u32);
                let text = format!("AS RANGE (SUBTYPE = {}, MULTIRANGE_TYPE_NAME = {})", subtype.sql_name(), quote(&multirange));
                let r = RangeType {
                    oid: id.0 as u32,
                    array_oid,
                    multirange_oid,
                    multirange_array_oid,
                    name: name.name.clone(),
                    multirange_name: multirange,
                    subtype,
                };
                (SqlType::UserRange(Arc::new(r)), text)
            }
            TypePlan::Domain(_) => return Err(SqlError::internal("a domain is no type of its own")),
        };
        let sql = format!("CREATE TYPE {} {text}", qualified(&name.schema, &name.name));
        let mut deps = user_types(&self.catalog(), &RelDesc { types: vec![ty.clone().nullable()], ..RelDesc::default() });
        deps.retain(|d| *d != id);
        let item = self.item(id, &name, ItemKind::Type(ty), RelDesc::default(), sql, deps);
        self.apply(vec![Op::Create { item: Box::new(item), plan: None }])?;
        Ok(Response::Tag("CREATE TYPE".into()))
    }

    fn create_domain(&mut self, id: GlobalId, array_oid: u32, name: FullName, d: Domain) -> Result<Response, SqlError> {
        let catalog = self.catalog();
        let mut deps = user_types(&catalog, &RelDesc { types: vec![d.base.clone()], ..RelDesc::default() });
        deps.extend(d.parent.map(|p| GlobalId(p.into())));
        let d = Domain { oid: id.0 as u32, array_oid, ..d };
        let sql = domain_text(&catalog, &name.schema, &d);
        let item = self.item(id, &name, ItemKind::Domain(Arc::new(d)), RelDesc::default(), sql, deps);
        self.apply(vec![Op::Create { item: Box::new(item), plan: None }])?;
        Ok(Response::Tag("CREATE DOMAIN".into()))
    }

    pub(super) async fn alter_type(&mut self, p: AlterTypePlan) -> Result<Response, SqlError> {
        let tag = Response::Tag(if p.kind == sql::ast::ObjectKind::Domain { "ALTER DOMAIN" } else { "ALTER TYPE" }.into());
        let mut item = self.existing(&p.object)?;
        match (p.change, item.kind.clone()) {
            (TypeChange::AddValue { label, if_not_exists, place }, ItemKind::Type(SqlType::Enum(e))) => {
                let labels = e.labels();
                if labels.iter().any(|l| l.1 == label) {
                    let e = SqlError::new(state::DUPLICATE_OBJECT, format!("enum label \"{label}\" already exists"));
                    if !if_not_exists {
                        return Err(e);
                    }
                    self.notice("NOTICE", SqlError::new(e.code, format!("{}, skipping", e.message)));
                    return Ok(tag);
                }
                let at = match &place {
                    None => labels.len(),
                    Some((before, near)) => {
                        let missing = || SqlError::new(state::INVALID_PARAMETER_VALUE, format!("\"{near}\" is not an existing enum label"));
                        labels.iter().position(|l| l.1 == *near).ok_or_else(missing)? + usize::from(!before)
                    }
                };
                let e = e.with_label(at, &label).ok_or_else(|| SqlError::unsupported("another label at this place", "add it at the end"))?;
                item.sql = format!("CREATE TYPE {} {}", qualified(&item.schema, &item.name), enum_text(&e));
                item.kind = ItemKind::Type(SqlType::Enum(Arc::new(e)));
                self.apply(vec![Op::Update { item: Box::new(item) }])?;
            }
            (TypeChange::RenameValue { from, to }, ItemKind::Type(SqlType::Enum(e))) => {
                let labels = e.labels();
                if !labels.iter().any(|l| l.1 == from) {
                    return Err(SqlError::new(state::INVALID_PARAMETER_VALUE, format!("\"{from}\" is not an existing enum label")));
                }
                if labels.iter().any(|l| l.1 == to) {
                    return Err(SqlError::new(state::DUPLICATE_OBJECT, format!("enum label \"{to}\" already exists")));
                }
                self.check_no_text(&item, &from, "rename a label of")?;
                let e = e.with_renamed(&from, &to);
                item.sql = format!("CREATE TYPE {} {}", qualified(&item.schema, &item.name), enum_text(&e));
                item.kind = ItemKind::Type(SqlType::Enum(Arc::new(e)));
                self.apply(vec![Op::Update { item: Box::new(item) }])?;
            }
            (TypeChange::Rename(to), kind) => {
                let old = item.name.clone();
                self.check_no_text(&item, &old, "rename")?;
                item.sql = item.sql.replacen(&qualified(&item.schema, &old), &qualified(&item.schema, &to), 1);
                item.name = to.clone();
                match kind {
                    ItemKind::Domain(d) => {
                        let renamed = Domain { name: to, ..(*d).clone() };
                        let ty = renamed.as_type();
                        item.kind = ItemKind::Domain(Arc::new(renamed));
                        self.replace_type(item, ty)?;
                    }
                    ItemKind::Type(t) => {
                        let renamed = match &t {
                            SqlType::Enum(e) => SqlType::Enum(Arc::new(e.with_name(to))),
                            SqlType::Record(r) => SqlType::Record(Arc::new(RecordType { name: Some(to), ..(**r).clone() })),
                            SqlType::UserRange(r) => SqlType::UserRange(Arc::new(RangeType { name: to, ..(**r).clone() })),
                            other => other.clone(),
                        };
                        self.replace_type(item, renamed)?;
                    }
                    _ => return Err(SqlError::internal("not a type")),
                }
            }
            (TypeChange::RenameAttribute { from, to }, ItemKind::Type(SqlType::Record(r))) => {
                let missing = || SqlError::new(state::UNDEFINED_COLUMN, format!("column \"{from}\" does not exist"));
                let at = r.fields.iter().position(|f| f.0 == from).ok_or_else(missing)?;
                if r.fields.iter().any(|f| f.0 == to) {
                    return Err(SqlError::new(state::DUPLICATE_COLUMN, format!("column \"{to}\" of relation \"{}\" already exists", item.name)));
                }
                self.check_no_text(&item, &from, "rename an attribute of")?;
                let mut fields = r.fields.clone();
                fields[at].0 = to;
                item.sql = format!("CREATE TYPE {} {}", qualified(&item.schema, &item.name), composite_text(&fields));
                let ty = SqlType::Record(Arc::new(RecordType { fields, ..(*r).clone() }));
                self.replace_type(item, ty)?;
            }
            (TypeChange::Attributes(changes), ItemKind::Type(SqlType::Record(r))) => self.alter_attributes(item, &r, changes)?,
            (TypeChange::Attributes(_), _) => {
                return Err(SqlError::new(state::UNDEFINED_TABLE, format!("relation \"{}\" does not exist", item.name)));
            }
            (TypeChange::RenameAttribute { .. }, _) => {
                return Err(SqlError::new(state::UNDEFINED_TABLE, format!("relation \"{}\" does not exist", item.name)));
            }
            (TypeChange::Domain { after, test }, ItemKind::Domain(old)) => {
                self.alter_domain(item, &old, after, test).await?;
            }
            _ => return Err(SqlError::internal("a change that does not fit the type")),
        }
        Ok(tag)
    }

    /// A domain with other constraints or another default. The rows that are there must satisfy what is new. Errors: 23502, 23514; 0A000 if
    /// values of the domain stand inside others, or a maintained view makes such values, as it goes on by the old constraints.
    async fn alter_domain(&mut self, mut item: Item, old: &Domain, d: Domain, test: bool) -> Result<(), SqlError> {
        let catalog = self.catalog();
        let users = self.all_dependants(item.id);
        let same = d.not_null == old.not_null && d.checks == old.checks;
        for user in &users {
            let text = match &user.kind {
                ItemKind::MaterializedView { .. } => user.sql.clone(),
                ItemKind::Index { key, .. } => key.join(" "),
                _ => continue,
            };
            if !same && text.contains(&item.name) {
                let e =
                    SqlError::unsupported(format!("ALTER DOMAIN {} while {} uses it", item.name, user.told()), "drop it and make it again after the change");
                return Err(e);
            }
        }
        item.sql = domain_text(&catalog, &item.schema, &d);
        item.kind = ItemKind::Domain(Arc::new(d.clone()));
        self.apply(vec![Op::Update { item: Box::new(item.clone()) }])?;
        users.iter().for_each(|u| self.shared.planner.forget_text(u.id));
        if !test {
            return Ok(());
        }
        let names = catalog.items().filter(|i| matches!(i.kind, ItemKind::Table(_)));
        for table in names.cloned().collect::<Vec<_>>() {
            for (column, ty) in table.desc.names.iter().zip(&table.desc.types) {
                if !mentions(&catalog, &ty.ty, old.oid) {
                    continue;
                }
                if !matches!(ty.ty, SqlType::Domain(_)) {
                    let m = format!("cannot alter type \"{}\" because column \"{}.{column}\" uses it", item.name, table.name);
                    return Err(SqlError::new(state::FEATURE_NOT_SUPPORTED, m));
                }
                self.rows_satisfy(&table, column, ty).await.map_err(|e| {
                    let m = match e.code {
                        state::NOT_NULL_VIOLATION => format!("column \"{column}\" of table \"{}\" contains null values", table.name),
                        state::CHECK_VIOLATION => format!("column \"{column}\" of table \"{}\" contains values that violate the new constraint", table.name),
                        _ => return e,
                    };
                    SqlError::new(e.code, m).of_table(&table.schema, &table.name).of_column(column)
                })?;
            }
        }
        Ok(())
    }

    /// Makes every value of the column one of its domain again.
    async fn rows_satisfy(&mut self, table: &Item, column: &str, ty: &repr::ColType) -> Result<(), SqlError> {
        let rows = self.collect_relation(super::write::get(table)).await?;
        let (_, ctx) = self.statement_ctx();
        let at = table.desc.names.iter().position(|n| n == column).unwrap_or(0);
        let mut types = table.desc.types.clone();
        types[at] = ty.base();
        let desc = RelDesc { types, ..table.desc.clone() };
        let again = sql::plan::bind_default(&quote(column), &desc, &ty.clone().with_nullable(true), &self.names())?;
        super::write::evaluate_plain(&[again], &rows, &desc.types, &ctx).map(|_| ())
    }

    /// Puts a type in place of its former self, in every relation and type that has it.
    fn replace_type(&mut self, mut item: Item, ty: SqlType) -> Result<(), SqlError> {
        let catalog = self.catalog();
        if !matches!(ty, SqlType::Domain(_)) {
            item.kind = ItemKind::Type(ty.clone());
        }
        let mut ops = vec![Op::Update { item: Box::new(item.clone()) }];
        for other in catalog.items().filter(|i| i.id != item.id) {
            let mut other = (**other).clone();
            let mut changed = false;
            other.desc.types.iter_mut().for_each(|t| changed |= put_type(&mut t.ty, &ty));
            match &mut other.kind {
                ItemKind::Type(t) => changed |= put_type(t, &ty),
                ItemKind::Domain(d) => changed |= put_type(&mut Arc::make_mut(d).base.ty, &ty),
                _ => {}
            }
            if changed {
                ops.push(Op::Update { item: Box::new(other) });
            }
        }
        self.apply(ops)
    }

    /// Errors: 2BP01 if the text of something that depends on the type, at whatever distance, has the word.
    fn check_no_text(&self, item: &Item, word: &str, what: &str) -> Result<(), SqlError> {
        // What a maintained view keeps may be made of labels.
        let has = |d: &Item| matches!(d.kind, ItemKind::MaterializedView { .. }) || d.texts().any(|t| t.contains(word));
        let Some(d) = self.dependant_that(item, has) else { return Ok(()) };
        let e = SqlError::new(state::DEPENDENT_OBJECTS_STILL_EXIST, format!("cannot {what} {} because other objects depend on it", item.told()));
        Err(e.with_detail(format!("{} depends on {}", d.told(), item.told())))
    }

    /// Something that depends on an object, at whatever distance, and of which this holds.
    pub(super) fn dependant_that(&self, item: &Item, holds: impl Fn(&Item) -> bool) -> Option<Arc<Item>> {
        let catalog = self.catalog();
        let mut seen = BTreeSet::from([item.id]);
        let mut queue: Vec<GlobalId> = vec![item.id];
        while let Some(id) = queue.pop() {
            for d in catalog.dependants(id) {
                if !seen.insert(d.id) {
                    continue;
                }
                queue.push(d.id);
                if holds(d) {
                    return Some(d.clone());
                }
            }
        }
        None
    }

    /// A composite type with other attributes. Errors: 0A000 while values of it are kept somewhere, or a text may name what changes.
    fn alter_attributes(&mut self, mut item: Item, old: &RecordType, changes: Vec<AttributeChange>) -> Result<(), SqlError> {
        if let Some(user) = self.all_dependants(item.id).into_iter().next() {
            let of_type = |t: &SqlType| {
                let mut t = t.clone();
                put_type(&mut t, &SqlType::Record(Arc::new(old.clone())))
            };
            let column = user.desc.names.iter().zip(&user.desc.types).find(|c| of_type(&c.1.ty));
            if let (Some((column, _)), true) = (column, user.is_relation()) {
                let m = format!("cannot alter type \"{}\" because column \"{}.{column}\" uses it", item.name, user.name);
                return Err(SqlError::new(state::FEATURE_NOT_SUPPORTED, m).with_hint("Make a new type, or take the column away before."));
            }
            return Err(SqlError::unsupported(format!("ALTER TYPE {} while {} uses it", item.name, user.told()), "drop it and make it again after the change"));
        }
        let mut fields = old.fields.clone();
        let relation = item.name.clone();
        let missing = |name: &str| SqlError::new(state::UNDEFINED_COLUMN, format!("column \"{name}\" of relation \"{relation}\" does not exist"));
        for change in changes {
            match change {
                AttributeChange::Add(name, _) if fields.iter().any(|f| f.0 == name) => {
                    return Err(SqlError::new(state::DUPLICATE_COLUMN, format!("column \"{name}\" of relation \"{relation}\" already exists")));
                }
                AttributeChange::Add(name, ty) => fields.push((name, ty)),
                AttributeChange::Drop { name, if_exists } => match fields.iter().position(|f| f.0 == name) {
                    Some(at) => {
                        fields.remove(at);
                        let number = at as u32 + 1;
                        item.comments.retain(|c| c.0 != number);
                        item.comments = std::mem::take(&mut item.comments).into_iter().map(|(n, c)| (if n > number { n - 1 } else { n }, c)).collect();
                    }
                    None if if_exists => {
                        let e = missing(&name);
                        self.notice("NOTICE", SqlError::new(e.code, format!("{}, skipping", e.message)));
                    }
                    None => return Err(missing(&name)),
                },
                AttributeChange::Type(name, ty) => match fields.iter_mut().find(|f| f.0 == name) {
                    Some(field) => field.1 = ty,
                    None => return Err(missing(&name)),
                },
            }
        }
        item.sql = format!("CREATE TYPE {} {}", qualified(&item.schema, &item.name), composite_text(&fields));
        let ty = SqlType::Record(Arc::new(RecordType { fields, ..old.clone() }));
        item.deps = user_types(&self.catalog(), &RelDesc { types: vec![ty.clone().nullable()], ..RelDesc::default() });
        item.deps.retain(|d| *d != item.id);
        self.replace_type(item, ty)
    }
}

/// Replaces a type by one of the same number, inside others too. Whether there was any.
fn put_type(at: &mut SqlType, ty: &SqlType) -> bool {
    if at.oid() == ty.oid() && std::mem::discriminant(at) == std::mem::discriminant(ty) {
        *at = ty.clone();
        return true;
    }
    match at {
        SqlType::Array(e) | SqlType::List(e) | SqlType::Map(e) => put_type(e, ty),
        SqlType::Record(r) => {
            let mut fields = r.fields.clone();
            let changed = fields.iter_mut().fold(false, |c, f| c | put_type(&mut f.1.ty, ty));
            if changed {
                Arc::make_mut(r).fields = fields;
            }
            changed
        }
        SqlType::Domain(d) => {
            let mut base = d.base.clone();
            let changed = put_type(&mut base.ty, ty);
            if changed {
                Arc::make_mut(d).base = base;
            }
            changed
        }
        SqlType::UserMultirange(r) if r.oid == ty.oid() => {
            *at = ty.range_partner();
            true
        }
        SqlType::UserRange(r) | SqlType::UserMultirange(r) => {
            let mut subtype = r.subtype.clone();
            let changed = put_type(&mut subtype, ty);
            if changed {
                Arc::make_mut(r).subtype = subtype;
            }
            changed
        }
        _ => false,
    }
}

/// Whether a type is the domain, is over it, or has it inside.
fn mentions(catalog: &crate::catalog::Catalog, ty: &SqlType, domain: u32) -> bool {
    match ty {
        SqlType::Domain(d) if d.oid == domain => true,
        SqlType::Domain(d) => {
            let parent = catalog.item(GlobalId(d.oid.into())).and_then(|i| match &i.kind {
                ItemKind::Domain(d) => d.parent,
                _ => None,
            });
            let over = parent.and_then(|p| crate::planner::type_by_oid(catalog, p));
            over.is_some_and(|t| mentions(catalog, &t, domain)) || mentions(catalog, &d.base.ty, domain)
        }
        SqlType::Array(e) | SqlType::List(e) | SqlType::Map(e) => mentions(catalog, e, domain),
        SqlType::Record(r) => r.fields.iter().any(|f| mentions(catalog, &f.1.ty, domain)),
        _ => false,
    }
}

/// The statement that makes a domain.
fn domain_text(catalog: &crate::catalog::Catalog, schema: &str, d: &Domain) -> String {
    let over = match d.parent.and_then(|p| catalog.item(GlobalId(p.into()))) {
        Some(parent) => qualified(&parent.schema, &parent.name),
        None => with_typmod(&d.base.ty, d.base.typmod),
    };
    let mut sql = format!("CREATE DOMAIN {} AS {over}", qualified(schema, &d.name));
    if let Some(default) = &d.default {
        sql.push_str(&format!(" DEFAULT {default}"));
    }
    if d.not_null {
        sql.push_str(" NOT NULL");
    }
    for (check, text) in &d.checks {
        sql.push_str(&format!(" CONSTRAINT {} CHECK ({text})", quote(check)));
    }
    sql
}

fn enum_text(e: &EnumType) -> String {
    let list = e.own_labels().map(|l| format!("'{}'", l.replace('\'', "''"))).collect::<Vec<_>>().join(", ");
    format!("AS ENUM ({list})")
}

fn composite_text(fields: &[(String, repr::ColType)]) -> String {
    let list = fields.iter().map(|(n, t)| format!("{} {}", quote(n), with_typmod(&t.ty, t.typmod))).collect::<Vec<_>>().join(", ");
    format!("AS ({list})")
}
