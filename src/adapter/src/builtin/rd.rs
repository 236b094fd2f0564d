//! Rows of rd_catalog: what runs, how far it is, what it holds.

use super::{int, text, BuiltinCtx, Def, Rows};
use repr::{RelDesc, SqlType, Value};
use SqlType::{Bool, Int8, Text};

const TABLES: &[(&str, u32, &[(&str, SqlType)])] = &[
    ("objects", 15_001, &[("id", Text), ("schema", Text), ("name", Text), ("type", Text), ("create_sql", Text)]),
    (
        "arrangements",
        15_002,
        &[
            ("id", Text),
            ("name", Text),
            ("on", Text),
            ("since", Int8),
            ("upper", Int8),
            ("records", Int8),
            ("bytes", Int8),
            ("hydrated", Bool),
            ("hydration_ms", Int8),
            ("lag_ms", Int8),
            ("stopped", Text),
        ],
    ),
    ("sources", 15_003, &[("id", Text), ("name", Text), ("status", Text), ("detail", Text), ("position", Text), ("rows", Int8)]),
    ("source_statistics", 15_004, &[("id", Text), ("name", Text), ("statistic", Text), ("value", Text)]),
    ("timeline", 15_005, &[("closed", Int8)]),
];

pub fn defs() -> Vec<Def> {
    TABLES
        .iter()
        .map(|(name, oid, columns)| {
            let desc = RelDesc {
                names: columns.iter().map(|c| c.0.to_string()).collect(),
                types: columns.iter().map(|c| c.1.clone().nullable()).collect(),
                keys: vec![],
            };
            Def { schema: "rd_catalog", name, oid: *oid, kind: 'v', desc }
        })
        .collect()
}

pub fn fill(name: &str, out: &mut Rows<'_>, ctx: &BuiltinCtx<'_>) {
    let object = |id: repr::GlobalId| ctx.catalog.item(id).map_or(Value::Null, |i| text(&i.name));
    let ms = |t: u64| int(i64::try_from(t).unwrap_or(i64::MAX));
    match name {
        "objects" => {
            for i in ctx.catalog.items() {
                out.add(vec![
                    ("id", Value::Text(i.id.to_string())),
                    ("schema", text(&i.schema)),
                    ("name", text(&i.name)),
                    ("type", text(i.noun())),
                    ("create_sql", text(&i.sql)),
                ]);
            }
        }
        "arrangements" => {
            for x in &ctx.introspection.indexes {
                out.add(vec![
                    ("id", Value::Text(x.id.to_string())),
                    ("name", object(x.id)),
                    ("on", object(x.on)),
                    ("since", ms(x.since)),
                    ("upper", ms(x.upper)),
                    ("records", ms(x.records)),
                    ("bytes", ms(x.bytes)),
                    ("hydrated", Value::Bool(x.hydrated_ms.is_some())),
                    ("hydration_ms", x.hydrated_ms.map_or(Value::Null, ms)),
                    ("lag_ms", ms((ctx.introspection.closed + 1).saturating_sub(x.upper))),
                    ("stopped", x.stopped.as_deref().map_or(Value::Null, text)),
                ]);
            }
        }
        "sources" => {
            for s in &ctx.introspection.sources {
                let optional = |t: &Option<String>| t.as_deref().map_or(Value::Null, text);
                out.add(vec![
                    ("id", Value::Text(s.id.to_string())),
                    ("name", object(s.id)),
                    ("status", text(&s.status)),
                    ("detail", optional(&s.detail)),
                    ("position", optional(&s.position)),
                    ("rows", ms(s.rows)),
                ]);
            }
        }
        "source_statistics" => {
            for s in &ctx.introspection.sources {
                for (statistic, value) in &s.statistics {
                    let value = match value {
                        Value::Text(t) => text(t),
                        v => v.as_i64().map_or_else(|| Value::Text(format!("{v:?}")), |n| Value::Text(n.to_string())),
                    };
                    out.add(vec![("id", Value::Text(s.id.to_string())), ("name", object(s.id)), ("statistic", text(statistic)), ("value", value)]);
                }
            }
        }
        "timeline" => out.add(vec![("closed", ms(ctx.introspection.closed))]),
        _ => {}
    }
}
