//! Rows of information_schema.

use super::{defs, int, is_system_schema, pg, text, yes_no, BuiltinCtx, Rows};
use crate::catalog::{Catalog, Item, ItemKind};
use crate::planner::DATABASE;
use repr::{ColType, SqlType, Value};

pub fn fill(name: &str, out: &mut Rows<'_>, ctx: &BuiltinCtx<'_>) {
    let c = ctx.catalog;
    match name {
        "schemata" => {
            for s in c.schemas().map(|s| s.0).chain(super::SYSTEM_SCHEMAS) {
                out.add(vec![("catalog_name", text(DATABASE)), ("schema_name", text(s)), ("schema_owner", text("riverdelta"))]);
            }
        }
        "information_schema_catalog_name" => out.add(vec![("catalog_name", text(DATABASE))]),
        "tables" => {
            for i in c.items().filter(|i| pg::relkind(i).is_some_and(|k| matches!(k, 'r' | 'v'))) {
                let kind = if matches!(i.kind, ItemKind::View { .. }) {
                    "VIEW"
                } else if i.schema.starts_with("pg_temp_") {
                    "LOCAL TEMPORARY"
                } else {
                    "BASE TABLE"
                };
                let insertable = c.written_through(i).is_some_and(|columns| columns.iter().any(Option::is_some));
                out.add(vec![
                    ("table_catalog", text(DATABASE)),
                    ("table_schema", text(&i.schema)),
                    ("table_name", text(&i.name)),
                    ("table_type", text(kind)),
                    ("is_insertable_into", yes_no(insertable)),
                    ("is_typed", yes_no(false)),
                ]);
            }
            for d in defs() {
                let kind = if d.kind == 'v' { "VIEW" } else { "BASE TABLE" };
                out.add(vec![
                    ("table_catalog", text(DATABASE)),
                    ("table_schema", text(d.schema)),
                    ("table_name", text(d.name)),
                    ("table_type", text(kind)),
                    ("is_insertable_into", yes_no(false)),
                    ("is_typed", yes_no(false)),
                ]);
            }
        }
        "columns" => {
            for i in c.items().filter(|i| i.is_relation() && !matches!(i.kind, ItemKind::MaterializedView { .. })) {
                for n in 0..i.desc.arity() {
                    column(c, out, i, n);
                }
            }
            for d in defs().iter().filter(|d| is_system_schema(d.schema)) {
                for (n, (name, ty)) in d.desc.names.iter().zip(&d.desc.types).enumerate() {
                    out.add(column_row(d.schema, d.name, name, n, ty, Value::Null));
                }
            }
        }
        "views" => {
            for i in c.items() {
                if let ItemKind::View { query, check } = &i.kind {
                    let updatable = c.written_through(i).is_some_and(|columns| columns.iter().any(Option::is_some));
                    out.add(vec![
                        ("table_catalog", text(DATABASE)),
                        ("table_schema", text(&i.schema)),
                        ("table_name", text(&i.name)),
                        ("view_definition", text(query)),
                        ("check_option", check.map_or_else(|| text("NONE"), |c| Value::Text(c.word().to_uppercase()))),
                        ("is_updatable", yes_no(updatable)),
                        ("is_insertable_into", yes_no(updatable)),
                        ("is_trigger_updatable", yes_no(false)),
                        ("is_trigger_deletable", yes_no(false)),
                        ("is_trigger_insertable_into", yes_no(false)),
                    ]);
                }
            }
        }
        "table_constraints" => {
            for k in pg::constraints(c) {
                let Some(i) = c.item(repr::GlobalId(u64::from(k.relation))) else { continue };
                let kind = match k.kind() {
                    "p" => "PRIMARY KEY",
                    "u" => "UNIQUE",
                    "f" => "FOREIGN KEY",
                    _ => "CHECK",
                };
                out.add(vec![
                    ("constraint_catalog", text(DATABASE)),
                    ("constraint_schema", text(&i.schema)),
                    ("constraint_name", text(&k.name)),
                    ("table_catalog", text(DATABASE)),
                    ("table_schema", text(&i.schema)),
                    ("table_name", text(&i.name)),
                    ("constraint_type", text(kind)),
                    ("is_deferrable", yes_no(k.foreign().is_some_and(|f| f.deferrable))),
                    ("initially_deferred", yes_no(k.foreign().is_some_and(|f| f.deferred))),
                    ("enforced", yes_no(true)),
                ]);
            }
        }
        "key_column_usage" | "constraint_column_usage" => {
            for k in pg::constraints(c) {
                let Some(i) = c.item(repr::GlobalId(u64::from(k.relation))) else { continue };
                // Of a foreign key, the columns that are referred to are used.
                let (table, columns) = match (k.foreign(), name) {
                    (Some(f), "constraint_column_usage") => match c.item(f.parent) {
                        Some(p) => (p, &f.parent_columns),
                        None => continue,
                    },
                    _ => (i, &k.columns),
                };
                for (n, column) in columns.iter().enumerate() {
                    let mut row = vec![
                        ("constraint_catalog", text(DATABASE)),
                        ("constraint_schema", text(&i.schema)),
                        ("constraint_name", text(&k.name)),
                        ("table_catalog", text(DATABASE)),
                        ("table_schema", text(&table.schema)),
                        ("table_name", text(&table.name)),
                        ("column_name", text(&table.desc.names[*column])),
                    ];
                    if name == "key_column_usage" {
                        row.push(("ordinal_position", int(n as i64 + 1)));
                        if let Some((key, place)) = k.foreign().and_then(|f| Some((pg::parent_key(c, f)?, f.parent_columns.get(n)?))) {
                            let at = key.columns.iter().position(|x| x == place).unwrap_or(n);
                            row.push(("position_in_unique_constraint", int(at as i64 + 1)));
                        }
                    }
                    out.add(row);
                }
            }
        }
        "referential_constraints" => {
            for k in pg::constraints(c) {
                let (Some(f), Some(i)) = (k.foreign(), c.item(repr::GlobalId(u64::from(k.relation)))) else { continue };
                let rule = |a: char| match a {
                    'c' => "CASCADE",
                    'n' => "SET NULL",
                    'd' => "SET DEFAULT",
                    'r' => "RESTRICT",
                    _ => "NO ACTION",
                };
                let mut row = vec![
                    ("constraint_catalog", text(DATABASE)),
                    ("constraint_schema", text(&i.schema)),
                    ("constraint_name", text(&k.name)),
                    ("match_option", text(if f.full { "FULL" } else { "NONE" })),
                    ("update_rule", text(rule(f.on_update))),
                    ("delete_rule", text(rule(f.on_delete))),
                ];
                if let (Some(key), Some(parent)) = (pg::parent_key(c, f), c.item(f.parent)) {
                    row.extend([
                        ("unique_constraint_catalog", text(DATABASE)),
                        ("unique_constraint_schema", text(&parent.schema)),
                        ("unique_constraint_name", text(&key.name)),
                    ]);
                }
                out.add(row);
            }
        }
        "sequences" => {
            for i in c.items() {
                let ItemKind::Sequence(s) = &i.kind else { continue };
                // An identity column's is the column's.
                if c.owner_of(i.id).is_some_and(|o| o.1.identity.is_some()) {
                    continue;
                }
                let precision = s.ty.typlen() * 8;
                out.add(vec![
                    ("sequence_catalog", text(DATABASE)),
                    ("sequence_schema", text(&i.schema)),
                    ("sequence_name", text(&i.name)),
                    ("data_type", Value::Text(s.ty.sql_name())),
                    ("numeric_precision", int(i64::from(precision))),
                    ("numeric_precision_radix", int(2)),
                    ("numeric_scale", int(0)),
                    ("start_value", Value::Text(s.start.to_string())),
                    ("minimum_value", Value::Text(s.min.to_string())),
                    ("maximum_value", Value::Text(s.max.to_string())),
                    ("increment", Value::Text(s.increment.to_string())),
                    ("cycle_option", yes_no(s.cycle)),
                ]);
            }
        }
        "enabled_roles" => out.add(vec![("role_name", text("riverdelta"))]),
        _ => {}
    }
}

fn column(c: &Catalog, out: &mut Rows<'_>, i: &Item, n: usize) {
    let default = match &i.kind {
        ItemKind::Table(t) => t.defaults.get(n).cloned().flatten().map_or(Value::Null, Value::Text),
        _ => Value::Null,
    };
    let declared = matches!(i.kind, ItemKind::Table(_) | ItemKind::SourceTable { .. });
    let ty = i.desc.types[n].clone();
    let ty = if declared { ty } else { ty.with_nullable(true) };
    let (mut identity, mut generated) = (None, None);
    if let ItemKind::Table(t) = &i.kind {
        let owned = t.sequences.iter().find(|s| s.column == n);
        identity = owned.and_then(|o| Some((o.identity?, c.item(o.sequence)?.clone())));
        generated = t.generated.get(n).cloned().flatten();
    }
    let default = if identity.is_some() { Value::Null } else { default };
    let mut row = column_row(&i.schema, &i.name, &i.desc.names[n], n, &ty, default);
    if matches!(i.kind, ItemKind::View { .. }) && c.written_through(i).is_none_or(|columns| columns.get(n).is_none_or(Option::is_none)) {
        row.retain(|r| r.0 != "is_updatable");
        row.push(("is_updatable", yes_no(false)));
    }
    if let Some((always, sequence)) = identity {
        row.retain(|r| !matches!(r.0, "is_identity" | "identity_cycle"));
        row.extend([("is_identity", yes_no(true)), ("identity_generation", text(if always { "ALWAYS" } else { "BY DEFAULT" }))]);
        if let ItemKind::Sequence(s) = &sequence.kind {
            row.extend([
                ("identity_start", Value::Text(s.start.to_string())),
                ("identity_increment", Value::Text(s.increment.to_string())),
                ("identity_maximum", Value::Text(s.max.to_string())),
                ("identity_minimum", Value::Text(s.min.to_string())),
                ("identity_cycle", yes_no(s.cycle)),
            ]);
        }
    }
    if let Some(g) = generated {
        row.retain(|r| r.0 != "is_generated");
        row.extend([("is_generated", text("ALWAYS")), ("generation_expression", Value::Text(g))]);
    }
    out.add(row);
}

fn column_row<'a>(schema: &str, relation: &str, name: &str, n: usize, ty: &ColType, default: Value) -> Vec<(&'a str, Value)> {
    let declared = ty;
    let ty = &declared.base();
    let data_type = match &ty.ty {
        SqlType::Array(_) => "ARRAY".to_string(),
        SqlType::Enum(_) | SqlType::Record(_) | SqlType::UserRange(_) | SqlType::UserMultirange(_) => "USER-DEFINED".to_string(),
        t => t.sql_name(),
    };
    let (mut precision, mut radix, mut scale) = (Value::Null, Value::Null, Value::Null);
    match &ty.ty {
        SqlType::Int2 => (precision, radix, scale) = (int(16), int(2), int(0)),
        SqlType::Int4 => (precision, radix, scale) = (int(32), int(2), int(0)),
        SqlType::Int8 => (precision, radix, scale) = (int(64), int(2), int(0)),
        SqlType::Float4 => (precision, radix) = (int(24), int(2)),
        SqlType::Float8 => (precision, radix) = (int(53), int(2)),
        SqlType::Numeric => {
            radix = int(10);
            if ty.typmod >= 4 {
                precision = int(i64::from(((ty.typmod - 4) >> 16) & 0xffff));
                scale = int(i64::from((ty.typmod - 4) & 0x7ff));
            }
        }
        _ => {}
    }
    let length = match &ty.ty {
        SqlType::Varchar | SqlType::Bpchar if ty.typmod >= 4 => int(i64::from(ty.typmod - 4)),
        _ => Value::Null,
    };
    let octets = match &ty.ty {
        SqlType::Text => int(1_073_741_824),
        SqlType::Varchar | SqlType::Bpchar if ty.typmod >= 4 => int(i64::from(ty.typmod - 4) * 4),
        SqlType::Varchar => int(1_073_741_824),
        _ => Value::Null,
    };
    let datetime = match &ty.ty {
        SqlType::Date => int(0),
        SqlType::Time | SqlType::TimeTz | SqlType::Timestamp | SqlType::TimestampTz | SqlType::Interval => {
            int(if ty.typmod >= 0 { i64::from(ty.typmod & 0xffff).min(6) } else { 6 })
        }
        _ => Value::Null,
    };
    let of_domain = |s: &str| if matches!(declared.ty, SqlType::Domain(_)) { text(s) } else { Value::Null };
    let udt_schema =
        if matches!(ty.ty, SqlType::Enum(_) | SqlType::Record(_) | SqlType::UserRange(_) | SqlType::UserMultirange(_)) { "public" } else { "pg_catalog" };
    vec![
        ("table_catalog", text(DATABASE)),
        ("table_schema", text(schema)),
        ("table_name", text(relation)),
        ("column_name", text(name)),
        ("ordinal_position", int(n as i64 + 1)),
        ("column_default", default),
        ("is_nullable", yes_no(ty.nullable)),
        ("data_type", Value::Text(data_type)),
        ("character_maximum_length", length),
        ("character_octet_length", octets),
        ("numeric_precision", precision),
        ("numeric_precision_radix", radix),
        ("numeric_scale", scale),
        ("datetime_precision", datetime),
        ("udt_catalog", text(DATABASE)),
        ("udt_schema", text(udt_schema)),
        ("udt_name", Value::Text(ty.ty.pg_name())),
        ("dtd_identifier", Value::Text((n + 1).to_string())),
        ("is_self_referencing", yes_no(false)),
        ("is_identity", yes_no(false)),
        ("identity_cycle", yes_no(false)),
        ("is_generated", text("NEVER")),
        ("is_updatable", yes_no(true)),
        ("domain_catalog", of_domain(DATABASE)),
        ("domain_schema", of_domain("public")),
        ("domain_name", of_domain(&declared.ty.pg_name())),
    ]
}
