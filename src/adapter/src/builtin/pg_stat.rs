//! Rows of the statistics of tables, indexes and sequences: what there is, with the counts of a server that has just begun to count.
//!
//! Nothing counts scans, rows and blocks of one relation here. Programs look up in these relations which tables and indexes there are.

use super::pg::relkind;
use super::pg_index::index_list;
use super::{defs, int, is_system_schema, oid, text, BuiltinCtx, Rows};
use repr::{SqlType, Value};

/// Fills `pg_stat_*` and `pg_statio_*` of relations; says whether the name is one of them.
pub fn fill(name: &str, out: &mut Rows<'_>, ctx: &BuiltinCtx<'_>) -> bool {
    let Some((_, rest)) = ["pg_stat_xact_", "pg_statio_", "pg_stat_"].iter().find_map(|p| Some((p, name.strip_prefix(p)?))) else { return false };
    let Some((whose, what)) = rest.split_once('_') else { return false };
    let system = match whose {
        "all" => None,
        "sys" => Some(true),
        "user" => Some(false),
        _ => return false,
    };
    let wanted = |schema: &str| system.is_none_or(|s| s == is_system_schema(schema));
    let Some(def) = defs().iter().find(|d| d.schema == "pg_catalog" && d.name == name) else { return false };
    let mut add = |keys: Vec<(&'static str, Value)>, indexed: bool| {
        let counts = def.desc.names.iter().zip(&def.desc.types).filter(|(n, t)| t.ty == SqlType::Int8 && (indexed || !n.starts_with("idx_")));
        let zeros = counts.map(|(n, _)| (n.as_str(), int(0)));
        out.add(keys.into_iter().chain(zeros).collect());
    };
    let indexes = index_list(ctx.catalog);
    let kinds: &[char] = if what == "sequences" { &['S'] } else { &['r', 'm'] };
    if what == "indexes" {
        for x in &indexes {
            let Some(on) = ctx.catalog.item(repr::GlobalId(u64::from(x.on))).filter(|i| wanted(&i.schema)) else { continue };
            let keys = vec![
                ("relid", oid(x.on)),
                ("indexrelid", oid(x.oid)),
                ("schemaname", text(&on.schema)),
                ("relname", text(&on.name)),
                ("indexrelname", text(&x.name)),
            ];
            add(keys, true);
        }
        return true;
    }
    for d in defs().iter().filter(|d| wanted(d.schema) && kinds.contains(&d.kind)) {
        add(vec![("relid", oid(d.oid)), ("schemaname", text(d.schema)), ("relname", text(d.name))], false);
    }
    for i in ctx.catalog.items().filter(|i| wanted(&i.schema) && relkind(i).is_some_and(|k| kinds.contains(&k))) {
        let indexed = indexes.iter().any(|x| x.on == i.oid());
        add(vec![("relid", oid(i.oid())), ("schemaname", text(&i.schema)), ("relname", text(&i.name))], indexed);
    }
    true
}
