//! Rows of `pg_type`: built-in types, row types of relations, domains and the types of CREATE TYPE, each with its array.

use super::pg::{collation, namespace_oid, storage};
use super::{int, oid, text, Rows, OWNER};
use crate::catalog::{Catalog, ItemKind};
use expr::catalog as pgdata;
use repr::{SqlType, Value};

/// `typalign` of a type of this length.
fn align(len: i16) -> &'static str {
    match len {
        1 | 16 | 64 => "c",
        2 => "s",
        8 => "d",
        _ => "i",
    }
}

pub(super) fn types(c: &Catalog, out: &mut Rows<'_>) {
    for t in pgdata::types() {
        out.add(vec![
            ("oid", oid(t.oid)),
            ("typname", text(t.name)),
            ("typnamespace", oid(t.namespace)),
            ("typowner", oid(OWNER)),
            ("typlen", int(i64::from(t.len))),
            ("typbyval", Value::Bool(t.by_val)),
            ("typtype", Value::Text(t.kind.to_string())),
            ("typcategory", Value::Text(t.category.to_string())),
            ("typispreferred", Value::Bool(t.is_preferred)),
            ("typisdefined", Value::Bool(t.is_defined)),
            ("typdelim", Value::Text(t.delim.to_string())),
            ("typrelid", oid(t.relid)),
            ("typelem", oid(t.elem)),
            ("typarray", oid(t.array)),
            ("typinput", oid(t.input)),
            ("typoutput", oid(t.output)),
            ("typbasetype", oid(t.base_type)),
            ("typtypmod", int(-1)),
            ("typcollation", oid(t.collation)),
            ("typalign", text(align(t.len))),
            ("typstorage", text(SqlType::from_oid(t.oid).map_or(if t.len < 0 { "x" } else { "p" }, |t| storage(&t)))),
        ]);
    }
    for i in c.items().filter(|i| i.is_relation()) {
        out.add(vec![
            ("oid", oid(i.row_type_oid())),
            ("typname", text(&i.name)),
            ("typnamespace", oid(namespace_oid(c, &i.schema).unwrap_or(0))),
            ("typowner", oid(OWNER)),
            ("typlen", int(-1)),
            ("typtype", text("c")),
            ("typcategory", text("C")),
            ("typisdefined", Value::Bool(true)),
            ("typdelim", text(",")),
            ("typrelid", oid(i.oid())),
            ("typalign", text("d")),
            ("typstorage", text("x")),
            ("typtypmod", int(-1)),
        ]);
    }
    for i in c.items() {
        if let ItemKind::Domain(d) = &i.kind {
            out.add(vec![
                ("oid", oid(i.oid())),
                ("typname", text(&i.name)),
                ("typnamespace", oid(namespace_oid(c, &i.schema).unwrap_or(0))),
                ("typowner", oid(OWNER)),
                ("typlen", int(d.base.ty.typlen().into())),
                ("typtype", text("d")),
                ("typcategory", text(&pgdata::type_by_oid(d.base.ty.oid()).map_or_else(|| "U".to_owned(), |t| t.category.to_string()))),
                ("typisdefined", Value::Bool(true)),
                ("typdelim", text(",")),
                ("typnotnull", Value::Bool(d.not_null)),
                ("typbasetype", oid(d.parent.unwrap_or_else(|| d.base.ty.oid()))),
                ("typtypmod", int(if d.parent.is_some() { -1 } else { d.base.typmod.into() })),
                ("typndims", int(if d.parent.is_none() && matches!(d.base.ty, SqlType::Array(_)) { 1 } else { 0 })),
                ("typarray", oid(d.array_oid)),
                ("typdefault", d.default.as_deref().map_or(Value::Null, text)),
                ("typdefaultbin", d.default.as_deref().map_or(Value::Null, text)),
                ("typcollation", oid(collation(&d.base.ty))),
                ("typalign", text(align(d.base.ty.typlen()))),
                ("typstorage", text(storage(&d.base.ty))),
            ]);
            if d.array_oid != 0 {
                out.add(vec![
                    ("oid", oid(d.array_oid)),
                    ("typname", Value::Text(format!("_{}", i.name))),
                    ("typnamespace", oid(namespace_oid(c, &i.schema).unwrap_or(0))),
                    ("typowner", oid(OWNER)),
                    ("typlen", int(-1)),
                    ("typtype", text("b")),
                    ("typcategory", text("A")),
                    ("typisdefined", Value::Bool(true)),
                    ("typdelim", text(",")),
                    ("typelem", oid(i.oid())),
                    ("typalign", text("i")),
                    ("typstorage", text("x")),
                    ("typcollation", oid(collation(&d.base.ty))),
                    ("typtypmod", int(-1)),
                ]);
            }
        }
        let ItemKind::Type(ty) = &i.kind else { continue };
        let kinds = match ty {
            SqlType::Enum(_) => vec![(ty.clone(), "e", "E", i.name.as_str())],
            SqlType::Record(_) => vec![(ty.clone(), "c", "C", i.name.as_str())],
            SqlType::UserRange(r) => vec![(ty.clone(), "r", "R", i.name.as_str()), (ty.range_partner(), "m", "R", r.multirange_name.as_str())],
            _ => continue,
        };
        let ns = oid(namespace_oid(c, &i.schema).unwrap_or(0));
        for (ty, kind, category, name) in kinds {
            let array = match &ty {
                // Of an anonymous row.
                SqlType::Record(r) => r.array_oid,
                ty => ty.array_oid(),
            };
            out.add(vec![
                ("oid", oid(ty.oid())),
                ("typname", text(name)),
                ("typnamespace", ns.clone()),
                ("typowner", oid(OWNER)),
                ("typlen", int(if kind == "e" { 4 } else { -1 })),
                ("typtype", text(kind)),
                ("typcategory", text(category)),
                ("typisdefined", Value::Bool(true)),
                ("typdelim", text(",")),
                ("typrelid", oid(if kind == "c" { i.oid() } else { 0 })),
                ("typarray", oid(array)),
                ("typtypmod", int(-1)),
                ("typalign", text(if kind == "e" { "i" } else { "d" })),
                ("typstorage", text(storage(&ty))),
            ]);
            if array != 0 {
                out.add(vec![
                    ("oid", oid(array)),
                    ("typname", Value::Text(format!("_{name}"))),
                    ("typnamespace", ns.clone()),
                    ("typowner", oid(OWNER)),
                    ("typlen", int(-1)),
                    ("typtype", text("b")),
                    ("typcategory", text("A")),
                    ("typisdefined", Value::Bool(true)),
                    ("typdelim", text(",")),
                    ("typelem", oid(ty.oid())),
                    ("typalign", text("i")),
                    ("typstorage", text("x")),
                    ("typtypmod", int(-1)),
                ]);
            }
        }
    }
}
