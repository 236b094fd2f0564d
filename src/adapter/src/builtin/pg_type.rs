//! Rows of `pg_type`: built-in types, row types of relations, domains and the types of CREATE TYPE, each with its array.

use super::pg::{collation, namespace_oid};
use super::{int, oid, text, Rows, OWNER};
use crate::catalog::{Catalog, ItemKind};
use expr::catalog as pgdata;
use repr::{SqlType, Value};

/// How values of a type lie in memory in PostgreSQL.
pub(super) struct Form {
    /// Bytes, -1 for what varies.
    pub len: i16,
    pub by_val: bool,
    /// `c`, `s`, `i` or `d`: 1, 2, 4 or 8 bytes.
    pub align: char,
    /// `p` plain, `m` main, `x` extended.
    pub storage: char,
}

impl Form {
    pub fn of(ty: &SqlType) -> Form {
        // What holds others lies as wide as they do, at least as an int.
        let varies = |of: &SqlType| Form { len: -1, by_val: false, align: if Form::of(of).align == 'd' { 'd' } else { 'i' }, storage: 'x' };
        match ty.base() {
            SqlType::Array(of) => varies(of),
            SqlType::Record(_) => Form { len: -1, by_val: false, align: 'd', storage: 'x' },
            SqlType::UserRange(r) | SqlType::UserMultirange(r) => varies(&r.subtype),
            SqlType::Enum(_) => Form { len: 4, by_val: true, align: 'i', storage: 'p' },
            other => match pgdata::type_by_oid(other.oid()) {
                Some(t) => Form { len: t.len, by_val: t.by_val, align: t.align, storage: t.storage },
                None => Form { len: other.typlen(), by_val: false, align: 'i', storage: 'x' },
            },
        }
    }

    fn columns(&self) -> [(&'static str, Value); 4] {
        let letter = |c: char| Value::Text(c.into());
        [("typlen", int(self.len.into())), ("typbyval", Value::Bool(self.by_val)), ("typalign", letter(self.align)), ("typstorage", letter(self.storage))]
    }
}

/// The functions of a type, by the start of their names: `enum` for `enum_in` and its like.
fn functions(word: &str) -> Vec<(&'static str, Value)> {
    let named = |name: String| oid(pgdata::procs_by_name(&name).next().map_or(0, |p| p.oid));
    let mut out: Vec<_> =
        [("typinput", "in"), ("typoutput", "out"), ("typreceive", "recv"), ("typsend", "send")].map(|(c, f)| (c, named(format!("{word}_{f}")))).into();
    if matches!(word, "array" | "range" | "multirange") {
        out.push(("typanalyze", named(format!("{word}_typanalyze"))));
    }
    if word == "array" {
        out.push(("typsubscript", named("array_subscript_handler".into())));
    }
    out
}

/// Those of a domain: it is read with its checks, and shown as what it is over.
fn domain_functions(base: &SqlType) -> Vec<(&'static str, Value)> {
    let mut out = functions("domain");
    let (output, send) = match (pgdata::type_by_oid(base.oid()), base) {
        (Some(t), _) => (oid(t.output), oid(t.send)),
        (None, other) => {
            let own = functions(word(other));
            (own[1].1.clone(), own[3].1.clone())
        }
    };
    (out[1].1, out[3].1) = (output, send);
    out.extend(functions(word(base)).into_iter().filter(|f| f.0 == "typanalyze"));
    out
}

fn word(ty: &SqlType) -> &'static str {
    match ty {
        SqlType::Array(_) => "array",
        SqlType::Enum(_) => "enum",
        SqlType::UserRange(_) => "range",
        SqlType::UserMultirange(_) => "multirange",
        _ => "record",
    }
}

/// `typcategory`.
fn category(ty: &SqlType) -> char {
    match ty.base() {
        SqlType::Array(_) => 'A',
        SqlType::Enum(_) => 'E',
        SqlType::Record(_) => 'C',
        SqlType::UserRange(_) | SqlType::UserMultirange(_) => 'R',
        other => pgdata::type_by_oid(other.oid()).map_or('U', |t| t.category),
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
            ("typreceive", oid(t.receive)),
            ("typsend", oid(t.send)),
            ("typmodin", oid(t.typmod_in)),
            ("typmodout", oid(t.typmod_out)),
            ("typanalyze", if t.category == 'A' && t.elem != 0 && t.len == -1 { functions("array")[4].1.clone() } else { oid(0) }),
            ("typsubscript", oid(t.subscript)),
            ("typnotnull", Value::Bool(t.not_null)),
            ("typbasetype", oid(t.base_type)),
            ("typtypmod", int(t.typmod.into())),
            ("typndims", int(t.ndims.into())),
            ("typcollation", oid(t.collation)),
            ("typalign", Value::Text(t.align.into())),
            ("typstorage", Value::Text(t.storage.into())),
        ]);
    }
    for i in c.items().filter(|i| i.is_relation()) {
        let mut row = functions("record");
        row.extend([
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
            ("typarray", oid(i.row_array_oid())),
            ("typalign", text("d")),
            ("typstorage", text("x")),
            ("typtypmod", int(-1)),
        ]);
        out.add(row);
        let mut row = functions("array");
        row.extend([
            ("oid", oid(i.row_array_oid())),
            ("typname", Value::Text(format!("_{}", i.name))),
            ("typnamespace", oid(namespace_oid(c, &i.schema).unwrap_or(0))),
            ("typowner", oid(OWNER)),
            ("typlen", int(-1)),
            ("typtype", text("b")),
            ("typcategory", text("A")),
            ("typisdefined", Value::Bool(true)),
            ("typdelim", text(",")),
            ("typelem", oid(i.row_type_oid())),
            ("typalign", text("d")),
            ("typstorage", text("x")),
            ("typtypmod", int(-1)),
        ]);
        out.add(row);
    }
    for i in c.items() {
        if let ItemKind::Domain(d) = &i.kind {
            let mut row = domain_functions(&d.base.ty);
            row.extend(Form::of(&d.base.ty).columns());
            row.extend([
                ("oid", oid(i.oid())),
                ("typname", text(&i.name)),
                ("typnamespace", oid(namespace_oid(c, &i.schema).unwrap_or(0))),
                ("typowner", oid(OWNER)),
                ("typtype", text("d")),
                ("typcategory", Value::Text(category(&d.base.ty).into())),
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
            ]);
            out.add(row);
            if d.array_oid != 0 {
                let mut row = functions("array");
                row.extend(Form::of(&d.base.ty.clone().array_of()).columns());
                row.extend([
                    ("oid", oid(d.array_oid)),
                    ("typname", Value::Text(format!("_{}", i.name))),
                    ("typnamespace", oid(namespace_oid(c, &i.schema).unwrap_or(0))),
                    ("typowner", oid(OWNER)),
                    ("typtype", text("b")),
                    ("typcategory", text("A")),
                    ("typisdefined", Value::Bool(true)),
                    ("typdelim", text(",")),
                    ("typelem", oid(i.oid())),
                    ("typcollation", oid(collation(&d.base.ty))),
                    ("typtypmod", int(-1)),
                ]);
                out.add(row);
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
            let mut row = functions(word(&ty));
            row.extend(Form::of(&ty).columns());
            row.extend([
                ("oid", oid(ty.oid())),
                ("typname", text(name)),
                ("typnamespace", ns.clone()),
                ("typowner", oid(OWNER)),
                ("typtype", text(kind)),
                ("typcategory", text(category)),
                ("typisdefined", Value::Bool(true)),
                ("typdelim", text(",")),
                ("typrelid", oid(if kind == "c" { i.oid() } else { 0 })),
                ("typarray", oid(array)),
                ("typtypmod", int(-1)),
            ]);
            out.add(row);
            if array != 0 {
                let mut row = functions("array");
                row.extend(Form::of(&ty.clone().array_of()).columns());
                row.extend([
                    ("oid", oid(array)),
                    ("typname", Value::Text(format!("_{name}"))),
                    ("typnamespace", ns.clone()),
                    ("typowner", oid(OWNER)),
                    ("typtype", text("b")),
                    ("typcategory", text("A")),
                    ("typisdefined", Value::Bool(true)),
                    ("typdelim", text(",")),
                    ("typelem", oid(ty.oid())),
                    ("typtypmod", int(-1)),
                ]);
                out.add(row);
            }
        }
    }
}
