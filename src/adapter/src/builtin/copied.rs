//! Rows of system relations that are the same in every database, as exported from PostgreSQL 15: one line a row, columns in their order.
//!
//! Of text search only what is here is in them: the configurations `simple` and `english` with what they are made of.

use super::Rows;
use repr::{ColType, SqlType, Value};
use std::collections::BTreeMap;
use std::sync::OnceLock;

const TABLES: [(&str, &str); 9] = [
    ("pg_opfamily", include_str!("../../data/pg_opfamily.tsv")),
    ("pg_amop", include_str!("../../data/pg_amop.tsv")),
    ("pg_amproc", include_str!("../../data/pg_amproc.tsv")),
    ("pg_conversion", include_str!("../../data/pg_conversion.tsv")),
    ("pg_ts_config", include_str!("../../data/pg_ts_config.tsv")),
    ("pg_ts_config_map", include_str!("../../data/pg_ts_config_map.tsv")),
    ("pg_ts_dict", include_str!("../../data/pg_ts_dict.tsv")),
    ("pg_ts_parser", include_str!("../../data/pg_ts_parser.tsv")),
    ("pg_ts_template", include_str!("../../data/pg_ts_template.tsv")),
];

/// The lines of a relation; none for one that is not here.
pub fn lines(relation: &str) -> impl Iterator<Item = &'static str> {
    TABLES.iter().find(|t| t.0 == relation).map_or("", |t| t.1).lines()
}

/// Adds a relation's rows. False: it is not here.
pub fn fill(relation: &str, out: &mut Rows<'_>) -> bool {
    for line in lines(relation) {
        let row = line.split('\t').zip(&out.desc.types).map(|(field, ty)| value(field, ty)).collect();
        out.rows.push(row);
    }
    TABLES.iter().any(|t| t.0 == relation)
}

fn value(field: &str, ty: &ColType) -> Value {
    let number = || field.parse::<i64>().unwrap_or(0);
    match (field, &ty.ty) {
        ("\\N", _) => Value::Null,
        (_, SqlType::Bool) => Value::Bool(field == "t"),
        (_, SqlType::Oid | SqlType::Reg(_) | SqlType::Int2 | SqlType::Int4) => super::fit(Value::Int8(number()), ty),
        _ => Value::text(field),
    }
}

/// Name, unit, category, more words, context, type, bounds and labels of one of PostgreSQL's settings, as a line.
pub fn setting(name: &str) -> Option<&'static str> {
    include_str!("../../data/settings.tsv").lines().find(|l| l.split('\t').next().is_some_and(|n| n.eq_ignore_ascii_case(name)))
}

/// What PostgreSQL says of its objects, by class and OID.
pub fn descriptions() -> &'static BTreeMap<(u32, u32), &'static str> {
    static ALL: OnceLock<BTreeMap<(u32, u32), &'static str>> = OnceLock::new();
    ALL.get_or_init(|| {
        let line = |l: &'static str| {
            let mut f = l.splitn(3, '\t');
            Some(((f.next()?.parse().ok()?, f.next()?.parse().ok()?), f.next()?))
        };
        include_str!("../../data/pg_description.tsv").lines().filter_map(line).collect()
    })
}

/// The class of a system relation by its name, as `obj_description` takes it.
pub fn class_of(relation: &str) -> Option<u32> {
    super::defs().iter().find(|d| d.schema == "pg_catalog" && d.name == relation).map(|d| d.oid)
}
