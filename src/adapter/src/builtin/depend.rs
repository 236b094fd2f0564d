//! Rows of `pg_depend`: what is made from what, as dumps and tools ask it, so that they make and drop things in an order that works.

use super::pg::{default_oid, namespace_oid, rule_oid, CLASS, CONSTRAINT, EXTENSION, EXTENSIONS, NAMESPACE, PLPGSQL_EXTENSION, TYPE};
use super::pg_constraint::{constraints, primary_key_oid, Constrained};
use super::{defs, int, oid, text, Names, Rows, RD_NAMESPACE};
use crate::catalog::{Catalog, Item, ItemKind};
use repr::SqlType;

const DEFAULT: u32 = 2604;
const RULE: u32 = 2618;

/// An object of a catalog, or a column of it.
#[derive(Clone, Copy)]
struct Object(u32, u32, usize);

pub(super) fn fill(c: &Catalog, names: &Names, out: &mut Rows<'_>) {
    let mut add = |object: Object, on: Object, kind: &str| {
        out.add(vec![
            ("classid", oid(object.0)),
            ("objid", oid(object.1)),
            ("objsubid", int(object.2 as i64)),
            ("refclassid", oid(on.0)),
            ("refobjid", oid(on.1)),
            ("refobjsubid", int(on.2 as i64)),
            ("deptype", text(kind)),
        ]);
    };
    let system = Object(EXTENSIONS, EXTENSION, 0);
    add(Object(NAMESPACE, RD_NAMESPACE, 0), system, "e");
    // What its language is made of.
    let own = [(1255, 13_560), (1255, 13_561), (1255, 13_562), (2612, 13_563)];
    own.into_iter().for_each(|(class, o)| add(Object(class, o, 0), Object(EXTENSIONS, PLPGSQL_EXTENSION, 0), "e"));
    for d in defs().iter().filter(|d| d.schema == "rd_catalog") {
        add(Object(CLASS, d.oid, 0), system, "e");
    }
    for i in c.items() {
        // Errors come with what they are of.
        if matches!(i.kind, ItemKind::Errors { .. } | ItemKind::ViewErrors { .. }) {
            add(Object(CLASS, i.oid(), 0), system, "e");
        }
        item(c, names, i, &mut add);
    }
    for k in constraints(c) {
        let own = Object(CONSTRAINT, k.oid, 0);
        if k.domain != 0 {
            add(own, Object(TYPE, k.domain, 0), "a");
            continue;
        }
        let named = k.named_columns(c);
        let columns: Vec<usize> = if named.is_empty() { vec![0] } else { named.iter().map(|c| c + 1).collect() };
        columns.into_iter().for_each(|n| add(own, Object(CLASS, k.relation, n), "a"));
        if let Constrained::Check(_) = &k.what {
            // What its expression reads comes beside.
            named.iter().for_each(|n| add(own, Object(CLASS, k.relation, n + 1), "n"));
        }
        match &k.what {
            Constrained::Key { .. } => add(Object(CLASS, k.index, 0), own, "i"),
            Constrained::Foreign(f) => {
                f.parent_columns.iter().for_each(|n| add(own, Object(CLASS, f.parent.0 as u32, n + 1), "n"));
                add(own, Object(CLASS, k.index, 0), "n");
            }
            Constrained::Check(_) => {}
        }
    }
    for (index, on, columns) in super::pg_index::index_columns(c) {
        columns.into_iter().for_each(|n| add(Object(CLASS, index, 0), Object(CLASS, on, n), "a"));
    }
}

fn item(c: &Catalog, names: &Names, i: &Item, add: &mut dyn FnMut(Object, Object, &str)) {
    let class = match &i.kind {
        ItemKind::Type(_) | ItemKind::Domain(_) => TYPE,
        ItemKind::Connection(_) | ItemKind::Secret { .. } | ItemKind::Index { .. } => return,
        _ => CLASS,
    };
    let own = Object(class, i.oid(), 0);
    if let Some(schema) = namespace_oid(c, &i.schema) {
        add(own, Object(NAMESPACE, schema, 0), "n");
    }
    let of_type = |object: Object, ty: &SqlType, add: &mut dyn FnMut(Object, Object, &str)| {
        let ty = match ty {
            SqlType::Array(e) => e,
            ty => ty,
        };
        if u64::from(ty.oid()) >= crate::catalog::FIRST_USER_ID {
            add(object, Object(TYPE, ty.oid(), 0), "n");
        }
    };
    if i.is_relation() {
        add(Object(TYPE, i.row_type_oid(), 0), own, "i");
        for (n, t) in i.desc.types.iter().enumerate() {
            of_type(Object(CLASS, i.oid(), n + 1), &t.ty, add);
        }
    }
    match &i.kind {
        ItemKind::Table(t) => {
            for s in &t.sequences {
                add(Object(CLASS, s.sequence.0 as u32, 0), Object(CLASS, i.oid(), s.column + 1), if s.identity.is_some() { "i" } else { "a" });
            }
            for n in 0..i.desc.arity() {
                let own = |texts: &[Option<String>]| texts.get(n).cloned().flatten();
                let Some(text) = own(&t.defaults).or(own(&t.generated)) else { continue };
                if t.sequences.iter().any(|s| s.column == n && s.identity.is_some()) {
                    continue;
                }
                let default = Object(DEFAULT, default_oid(i, n as i64 + 1), 0);
                add(default, Object(CLASS, i.oid(), n + 1), "a");
                // The sequences that it names, as far as its text tells: it is made after them.
                let sequences = i.deps.iter().filter_map(|d| c.item(*d)).filter(|d| matches!(d.kind, ItemKind::Sequence(_)));
                for s in sequences.filter(|s| text.contains("nextval(") && text.contains(s.name.as_str())) {
                    add(default, Object(CLASS, s.oid(), 0), "n");
                }
            }
        }
        ItemKind::View { .. } | ItemKind::MaterializedView { .. } => {
            let rule = Object(RULE, rule_oid(i), 0);
            add(rule, own, "i");
            let read = names.columns_read(i);
            for d in i.deps.iter().filter_map(|d| c.item(*d)) {
                let class = if matches!(d.kind, ItemKind::Type(_) | ItemKind::Domain(_)) { TYPE } else { CLASS };
                let columns: Vec<usize> = read.iter().filter(|r| r.0 == d.id).map(|r| r.1 + 1).collect();
                if columns.is_empty() {
                    add(rule, Object(class, d.oid(), 0), "n");
                }
                columns.into_iter().for_each(|n| add(rule, Object(class, d.oid(), n), "n"));
            }
            // Dumps make the view as it is once the key is there.
            for table in i.rests_on.iter().filter_map(|t| c.item(*t)) {
                add(rule, Object(CONSTRAINT, primary_key_oid(table), 0), "n");
            }
        }
        ItemKind::Domain(d) => {
            let base = d.parent.unwrap_or_else(|| d.base.ty.oid());
            if u64::from(base) >= crate::catalog::FIRST_USER_ID {
                add(own, Object(TYPE, base, 0), "n");
            }
        }
        ItemKind::Type(SqlType::Record(r)) => {
            add(Object(CLASS, i.oid(), 0), own, "i");
            for (n, f) in r.fields.iter().enumerate() {
                of_type(Object(CLASS, i.oid(), n + 1), &f.1.ty, add);
            }
        }
        ItemKind::Type(SqlType::UserRange(r)) => of_type(own, &r.subtype, add),
        _ => {}
    }
}
