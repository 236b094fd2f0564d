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
use repr::types::{EnumType, RangeType, RecordType};
use repr::{GlobalId, RelDesc, SqlError, SqlType};
use sql::catalog::FullName;
use sql::plan::{AlterTypePlan, TypeChange, TypePlan};
use std::collections::BTreeSet;
use std::sync::Arc;

impl Session {
    pub(super) fn create_type(&mut self, name: FullName, body: TypePlan) -> Result<Response, SqlError> {
        self.exists(&name, Namespace::Type, false)?;
        let id = self.shared.allocate_id();
        if let TypePlan::Domain(d) = body {
            return self.create_domain(id, name, d);
        }
        let array_oid = self.shared.allocate_id().0 as u32;
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

    fn create_domain(&mut self, id: GlobalId, name: FullName, d: repr::types::Domain) -> Result<Response, SqlError> {
        let mut sql = format!("CREATE DOMAIN {} AS {}", qualified(&name.schema, &name.name), with_typmod(&d.base.ty, d.base.typmod));
        if let Some(default) = &d.default {
            sql.push_str(&format!(" DEFAULT {default}"));
        }
        if d.not_null {
            sql.push_str(" NOT NULL");
        }
        for (check, text) in &d.checks {
            sql.push_str(&format!(" CONSTRAINT {} CHECK ({text})", quote(check)));
        }
        let deps = user_types(&self.catalog(), &RelDesc { types: vec![d.base.clone()], ..RelDesc::default() });
        let d = repr::types::Domain { oid: id.0 as u32, ..d };
        let item = self.item(id, &name, ItemKind::Domain(Arc::new(d)), RelDesc::default(), sql, deps);
        self.apply(vec![Op::Create { item: Box::new(item), plan: None }])?;
        Ok(Response::Tag("CREATE DOMAIN".into()))
    }

    pub(super) fn alter_type(&mut self, p: AlterTypePlan) -> Result<Response, SqlError> {
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
                        item.kind = ItemKind::Domain(Arc::new(repr::types::Domain { name: to, ..(*d).clone() }));
                        self.apply(vec![Op::Update { item: Box::new(item) }])?;
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
            (TypeChange::RenameAttribute { .. }, _) => {
                return Err(SqlError::new(state::UNDEFINED_TABLE, format!("relation \"{}\" does not exist", item.name)));
            }
            (TypeChange::Domain(d), ItemKind::Domain(_)) => {
                let users = self.catalog().dependants(item.id).count();
                if users > 0 {
                    return Err(SqlError::unsupported("ALTER DOMAIN of a domain that is in use", "its tables took its constraints over: drop them first"));
                }
                item.kind = ItemKind::Domain(Arc::new(d));
                self.apply(vec![Op::Update { item: Box::new(item) }])?;
            }
            _ => return Err(SqlError::internal("a change that does not fit the type")),
        }
        Ok(tag)
    }

    /// Puts a type in place of its former self, in every relation and type that has it.
    fn replace_type(&mut self, mut item: Item, ty: SqlType) -> Result<(), SqlError> {
        let catalog = self.catalog();
        item.kind = ItemKind::Type(ty.clone());
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
        let catalog = self.catalog();
        let mut seen = BTreeSet::from([item.id]);
        let mut queue: Vec<GlobalId> = vec![item.id];
        while let Some(id) = queue.pop() {
            for d in catalog.dependants(id) {
                if !seen.insert(d.id) {
                    continue;
                }
                queue.push(d.id);
                let in_text = match &d.kind {
                    ItemKind::View { query, .. } => query.contains(word),
                    // What it keeps may be made of labels.
                    ItemKind::MaterializedView { .. } => true,
                    ItemKind::Index { key, .. } => key.iter().any(|k| k.contains(word)),
                    ItemKind::Table(t) => t.defaults.iter().flatten().chain(t.checks.iter().map(|c| &c.1)).any(|x| x.contains(word)),
                    _ => false,
                };
                if in_text {
                    let e = SqlError::new(state::DEPENDENT_OBJECTS_STILL_EXIST, format!("cannot {what} {} because other objects depend on it", item.told()));
                    return Err(e.with_detail(format!("{} depends on {}", d.told(), item.told())));
                }
            }
        }
        Ok(())
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

fn enum_text(e: &EnumType) -> String {
    let list = e.own_labels().map(|l| format!("'{}'", l.replace('\'', "''"))).collect::<Vec<_>>().join(", ");
    format!("AS ENUM ({list})")
}

fn composite_text(fields: &[(String, repr::ColType)]) -> String {
    let list = fields.iter().map(|(n, t)| format!("{} {}", quote(n), with_typmod(&t.ty, t.typmod))).collect::<Vec<_>>().join(", ");
    format!("AS ({list})")
}
