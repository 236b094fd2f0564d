//! Rows of information_schema.

use super::pg;
use super::pg_constraint::{self, Constrained};
use super::{defs, int, is_system_schema, text, yes_no, BuiltinCtx, Rows, OWNER_NAME};
use crate::catalog::{Catalog, Item, ItemKind, Table};
use crate::planner::DATABASE;
use expr::catalog as pgdata;
use expr::func::system::format_type;
use expr::CatalogView;
use repr::{ColType, SqlType, Value};
use std::sync::Arc;

pub fn fill(name_of_view: &str, out: &mut Rows<'_>, ctx: &BuiltinCtx<'_>) {
    let c = ctx.catalog;
    match name_of_view {
        "schemata" => {
            for s in c.schemas().map(|s| s.0).chain(super::SYSTEM_SCHEMAS) {
                out.add(vec![("catalog_name", text(DATABASE)), ("schema_name", text(s)), ("schema_owner", text("riverdelta"))]);
            }
        }
        "information_schema_catalog_name" => out.add(vec![("catalog_name", text(DATABASE))]),
        "tables" => {
            for i in c.items().filter(|i| listed(i)) {
                let kind = if matches!(i.kind, ItemKind::View { .. }) {
                    "VIEW"
                } else if i.schema.starts_with("pg_temp_") {
                    "LOCAL TEMPORARY"
                } else {
                    "BASE TABLE"
                };
                let insertable = matches!(i.kind, ItemKind::Table(_)) || c.written_through(i).is_some_and(|columns| columns.iter().any(Option::is_some));
                let mut row = of_table(i).to_vec();
                row.extend([("table_type", text(kind)), ("is_insertable_into", yes_no(insertable)), ("is_typed", yes_no(false))]);
                out.add(row);
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
            for i in c.items().filter(|i| listed(i)) {
                for n in 0..i.desc.arity() {
                    column(ctx, out, i, n);
                }
            }
            for d in defs().iter().filter(|d| is_system_schema(d.schema)) {
                for (n, (name, ty)) in d.desc.names.iter().zip(&d.desc.types).enumerate() {
                    out.add(column_row(ctx, d.schema, d.name, name, n, ty, Value::Null));
                }
            }
        }
        "column_column_usage" => {
            for i in c.items() {
                let ItemKind::Table(t) = &i.kind else { continue };
                for (n, generated) in t.generated.iter().enumerate() {
                    for used in generated.iter().flat_map(|g| pg::columns_in(g, &i.desc)) {
                        let mut row = of_table(i).to_vec();
                        row.extend([("column_name", text(&i.desc.names[used])), ("dependent_column", text(&i.desc.names[n]))]);
                        out.add(row);
                    }
                }
            }
        }
        "column_domain_usage" | "column_udt_usage" => {
            for i in c.items().filter(|i| listed(i)) {
                for (name, ty) in i.desc.names.iter().zip(&i.desc.types) {
                    let mut row = match (&ty.ty, name_of_view) {
                        (SqlType::Domain(_), "column_domain_usage") => of_type(c, "domain", ty.ty.oid()).to_vec(),
                        (_, "column_domain_usage") => continue,
                        (ty, _) => of_type(c, "udt", over(c, ty)).to_vec(),
                    };
                    row.extend(of_table(i));
                    row.push(("column_name", text(name)));
                    out.add(row);
                }
            }
        }
        "domains" => {
            for i in c.items() {
                let ItemKind::Domain(d) = &i.kind else { continue };
                let base = over(c, &d.as_type());
                let mut row = described(ctx, &domain_column(d));
                row.retain(|r| r.0 != "data_type" && r.0 != "maximum_cardinality");
                row.extend(of_type(c, "domain", i.oid()));
                row.extend([
                    ("data_type", Value::Text(sql_name(ctx, base))),
                    ("domain_default", d.default.as_deref().map_or(Value::Null, text)),
                    ("dtd_identifier", text("1")),
                ]);
                out.add(row);
            }
        }
        "domain_udt_usage" => {
            for i in c.items() {
                let ItemKind::Domain(d) = &i.kind else { continue };
                out.add([of_type(c, "udt", over(c, &d.as_type())), of_type(c, "domain", i.oid())].concat());
            }
        }
        "domain_constraints" => {
            for k in pg_constraint::constraints(c).iter().filter(|k| k.domain != 0) {
                let mut row = of_constraint(c, k).to_vec();
                row.extend(of_type(c, "domain", k.domain));
                row.extend([("is_deferrable", yes_no(false)), ("initially_deferred", yes_no(false))]);
                out.add(row);
            }
        }
        "attributes" => {
            for (i, n, name, ty) in fields(c) {
                let mut row = described(ctx, ty);
                row.iter_mut().for_each(|r| {
                    r.0 = match r.0 {
                        "udt_catalog" => "attribute_udt_catalog",
                        "udt_schema" => "attribute_udt_schema",
                        "udt_name" => "attribute_udt_name",
                        other => other,
                    }
                });
                row.extend(of_type(c, "udt", i.oid()));
                row.extend([
                    ("attribute_name", text(name)),
                    ("ordinal_position", int(n as i64 + 1)),
                    ("is_nullable", yes_no(true)),
                    ("dtd_identifier", Value::Text((n + 1).to_string())),
                    ("is_derived_reference_attribute", yes_no(false)),
                ]);
                out.add(row);
            }
        }
        "user_defined_types" => {
            for i in c.items().filter(|i| matches!(i.kind, ItemKind::Type(SqlType::Record(_)))) {
                let mut row = of_type(c, "user_defined_type", i.oid()).to_vec();
                row.extend([("user_defined_type_category", text("STRUCTURED")), ("is_instantiable", yes_no(true))]);
                out.add(row);
            }
        }
        "element_types" => {
            for o in described_objects(c) {
                let SqlType::Array(of) = &o.ty.ty else { continue };
                let mut row = o.columns().to_vec();
                row.extend([
                    ("collection_type_identifier", Value::Text(o.number.to_string())),
                    ("data_type", Value::Text(sql_name(ctx, of.oid()))),
                    ("dtd_identifier", Value::Text(format!("a{}", o.number))),
                ]);
                row.extend(of_type(c, "udt", of.oid()));
                out.add(row);
            }
        }
        "data_type_privileges" => {
            for o in described_objects(c) {
                let mut row = o.columns().to_vec();
                row.push(("dtd_identifier", Value::Text(o.number.to_string())));
                out.add(row);
            }
        }
        // The owner has every privilege there is.
        "table_privileges" | "role_table_grants" => {
            for i in c.items().filter(|i| listed(i)) {
                for word in ["INSERT", "SELECT", "UPDATE", "DELETE", "TRUNCATE", "REFERENCES", "TRIGGER"] {
                    let mut row = granted(OWNER_NAME, word).to_vec();
                    row.extend(of_table(i));
                    row.push(("with_hierarchy", yes_no(word == "SELECT")));
                    out.add(row);
                }
            }
        }
        "column_privileges" | "role_column_grants" => {
            for i in c.items().filter(|i| listed(i)) {
                for name in &i.desc.names {
                    for word in ["INSERT", "SELECT", "UPDATE", "REFERENCES"] {
                        let mut row = granted(OWNER_NAME, word).to_vec();
                        row.extend(of_table(i));
                        row.push(("column_name", text(name)));
                        out.add(row);
                    }
                }
            }
        }
        "udt_privileges" | "role_udt_grants" => {
            let composite = c.items().filter(|i| i.is_relation() || matches!(i.kind, ItemKind::Type(SqlType::Record(_))));
            for (i, grantee) in composite.flat_map(|i| [(i, "PUBLIC"), (i, OWNER_NAME)]) {
                let mut row = granted(grantee, "TYPE USAGE").to_vec();
                row.extend([("udt_catalog", text(DATABASE)), ("udt_schema", text(&i.schema)), ("udt_name", text(&i.name))]);
                out.add(row);
            }
        }
        "usage_privileges" | "role_usage_grants" => {
            let domains = c.items().filter(|i| matches!(i.kind, ItemKind::Domain(_)));
            for (i, grantee) in domains.flat_map(|i| [(i, "PUBLIC"), (i, OWNER_NAME)]) {
                let mut row = granted(grantee, "USAGE").to_vec();
                let place = [("object_catalog", text(DATABASE)), ("object_schema", text(&i.schema)), ("object_name", text(&i.name))];
                row.extend(place.into_iter().chain([("object_type", text("DOMAIN"))]));
                out.add(row);
            }
        }
        "view_table_usage" => {
            for (i, used) in views(c).flat_map(|i| i.deps.iter().filter_map(move |d| Some((i, c.item(*d).filter(|d| d.is_relation())?)))) {
                out.add([of_view(i), of_table(used)].concat());
            }
        }
        "view_column_usage" => {
            for i in views(c) {
                for (used, n) in ctx.names.columns_read(i) {
                    let Some(used) = c.item(used) else { continue };
                    let Some(name) = used.desc.names.get(n) else { continue };
                    let mut row = [of_view(i), of_table(used)].concat();
                    row.push(("column_name", text(name)));
                    out.add(row);
                }
            }
        }
        "views" => {
            for i in views(c) {
                let ItemKind::View { check, .. } = &i.kind else { continue };
                let updatable = c.written_through(i).is_some_and(|columns| columns.iter().any(Option::is_some));
                let mut row = of_table(i).to_vec();
                row.extend([
                    ("view_definition", ctx.names.view_definition(i.oid(), false).map_or(Value::Null, Value::Text)),
                    ("check_option", check.map_or_else(|| text("NONE"), |c| Value::Text(c.word().to_uppercase()))),
                    ("is_updatable", yes_no(updatable)),
                    ("is_insertable_into", yes_no(updatable)),
                    ("is_trigger_updatable", yes_no(false)),
                    ("is_trigger_deletable", yes_no(false)),
                    ("is_trigger_insertable_into", yes_no(false)),
                ]);
                out.add(row);
            }
        }
        "check_constraints" => {
            for k in pg_constraint::constraints(c).iter().filter(|k| k.kind() == "c") {
                let mut row = of_constraint(c, k).to_vec();
                let definition = pg_constraint::constraint_definition(c, k.oid, false, ctx.names);
                row.push(("check_clause", definition.and_then(|d| Some(text(d.strip_prefix("CHECK ")?))).unwrap_or(Value::Null)));
                out.add(row);
            }
            for (i, n) in not_null(c) {
                let mut row = of_not_null(c, i, n).to_vec();
                row.push(("check_clause", Value::Text(format!("{} IS NOT NULL", i.desc.names[n]))));
                out.add(row);
            }
        }
        "constraint_table_usage" => {
            for k in pg_constraint::constraints(c).iter().filter(|k| k.kind() != "c") {
                let of = k.foreign().map_or(repr::GlobalId(u64::from(k.relation)), |f| f.parent);
                out.add(c.item(of).into_iter().flat_map(|i| of_table(i)).chain(of_constraint(c, k)).collect());
            }
        }
        "table_constraints" => {
            for k in pg_constraint::constraints(c) {
                let Some(i) = c.item(repr::GlobalId(u64::from(k.relation))) else { continue };
                let kind = match k.kind() {
                    "p" => "PRIMARY KEY",
                    "u" => "UNIQUE",
                    "f" => "FOREIGN KEY",
                    _ => "CHECK",
                };
                let mut row = [of_constraint(c, &k), of_table(i)].concat();
                row.extend([
                    ("constraint_type", text(kind)),
                    ("is_deferrable", yes_no(k.deferral().0)),
                    ("initially_deferred", yes_no(k.deferral().1)),
                    ("enforced", yes_no(true)),
                    ("nulls_distinct", if let Constrained::Key { primary: false, key } = &k.what { yes_no(!key.equal_nulls) } else { Value::Null }),
                ]);
                out.add(row);
            }
            for (i, n) in not_null(c) {
                let mut row = [of_not_null(c, i, n), of_table(i)].concat();
                row.extend([
                    ("constraint_type", text("CHECK")),
                    ("is_deferrable", yes_no(false)),
                    ("initially_deferred", yes_no(false)),
                    ("enforced", yes_no(true)),
                ]);
                out.add(row);
            }
        }
        "key_column_usage" | "constraint_column_usage" => {
            for k in pg_constraint::constraints(c) {
                let Some(i) = c.item(repr::GlobalId(u64::from(k.relation))) else { continue };
                // Of a foreign key, the columns that are referred to are used.
                let (table, columns) = match (k.foreign(), name_of_view) {
                    (Some(f), "constraint_column_usage") => match c.item(f.parent) {
                        Some(p) => (p, f.parent_columns.clone()),
                        None => continue,
                    },
                    (_, "constraint_column_usage") => (i, k.named_columns(c)),
                    _ => (i, k.columns.clone()),
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
                    if name_of_view == "key_column_usage" {
                        row.push(("ordinal_position", int(n as i64 + 1)));
                        if let Some((key, place)) = k.foreign().and_then(|f| Some((pg_constraint::parent_key(c, f)?, f.parent_columns.get(n)?))) {
                            let at = key.columns.iter().position(|x| x == place).unwrap_or(n);
                            row.push(("position_in_unique_constraint", int(at as i64 + 1)));
                        }
                    }
                    out.add(row);
                }
            }
        }
        "referential_constraints" => {
            for k in pg_constraint::constraints(c) {
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
                if let (Some(key), Some(parent)) = (pg_constraint::parent_key(c, f), c.item(f.parent)) {
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
        "character_sets" => out.add(vec![
            ("character_set_name", text("UTF8")),
            ("character_repertoire", text("UCS")),
            ("form_of_use", text("UTF8")),
            ("default_collate_catalog", text(DATABASE)),
            ("default_collate_schema", text("pg_catalog")),
            ("default_collate_name", text("C")),
        ]),
        "collations" | "collation_character_set_applicability" => {
            for k in pgdata::collations() {
                let place = [("collation_catalog", text(DATABASE)), ("collation_schema", text("pg_catalog")), ("collation_name", text(k.name))];
                let rest = if name_of_view == "collations" { ("pad_attribute", text("NO PAD")) } else { ("character_set_name", text("UTF8")) };
                out.add(place.into_iter().chain([rest]).collect());
            }
        }
        "enabled_roles" => out.add(vec![("role_name", text("riverdelta"))]),
        _ => {}
    }
}

const USER_DEFINED: &str = "USER-DEFINED";

/// A row in the making, or a part of it.
type Columns<const N: usize> = [(&'static str, Value); N];

/// What information_schema has as a table: a materialized view is none.
fn listed(i: &Item) -> bool {
    pg::relkind(i).is_some_and(|k| matches!(k, 'r' | 'v'))
}

fn views(c: &Catalog) -> impl Iterator<Item = &Arc<Item>> {
    c.items().filter(|i| matches!(i.kind, ItemKind::View { .. }))
}

fn of_table(i: &Item) -> Columns<3> {
    [("table_catalog", text(DATABASE)), ("table_schema", text(&i.schema)), ("table_name", text(&i.name))]
}

fn of_view(i: &Item) -> Columns<3> {
    [("view_catalog", text(DATABASE)), ("view_schema", text(&i.schema)), ("view_name", text(&i.name))]
}

fn of_constraint(c: &Catalog, k: &pg_constraint::ConstraintRow) -> Columns<3> {
    let schema = c.item(repr::GlobalId(u64::from(k.relation.max(k.domain)))).map_or(Value::Null, |i| text(&i.schema));
    [("constraint_catalog", text(DATABASE)), ("constraint_schema", schema), ("constraint_name", text(&k.name))]
}

/// Columns of tables that are NOT NULL, which is a constraint with a name made for it.
fn not_null(c: &Catalog) -> impl Iterator<Item = (&Arc<Item>, usize)> {
    let tables = c.items().filter(|i| matches!(i.kind, ItemKind::Table(_) | ItemKind::SourceTable { .. }));
    tables.flat_map(|i| i.desc.types.iter().enumerate().filter(|(_, t)| !t.nullable).map(move |(n, _)| (i, n)))
}

fn of_not_null(c: &Catalog, i: &Item, n: usize) -> Columns<3> {
    let name = format!("{}_{}_{}_not_null", pg::namespace_oid(c, &i.schema).unwrap_or(0), i.oid(), n + 1);
    [("constraint_catalog", text(DATABASE)), ("constraint_schema", text(&i.schema)), ("constraint_name", Value::Text(name))]
}

fn granted(grantee: &str, word: &str) -> Columns<4> {
    [("grantor", text(OWNER_NAME)), ("grantee", text(grantee)), ("privilege_type", text(word)), ("is_grantable", yes_no(grantee == OWNER_NAME))]
}

/// The names of a type, as `udt`, `domain` or `user_defined_type` has them.
fn of_type(c: &Catalog, what: &str, oid: u32) -> Columns<3> {
    let columns = match what {
        "domain" => ["domain_catalog", "domain_schema", "domain_name"],
        "user_defined_type" => ["user_defined_type_catalog", "user_defined_type_schema", "user_defined_type_name"],
        _ => ["udt_catalog", "udt_schema", "udt_name"],
    };
    let (schema, name) = pg::type_place(c, oid).unwrap_or_default();
    let [a, b, d] = columns;
    [(a, text(DATABASE)), (b, Value::Text(schema)), (d, Value::Text(name))]
}

/// The type of values: of a domain, what it is made from.
fn over(c: &Catalog, ty: &SqlType) -> u32 {
    let SqlType::Domain(d) = ty else { return ty.oid() };
    match c.item(repr::GlobalId(u64::from(ty.oid()))).map(|i| &i.kind) {
        Some(ItemKind::Domain(own)) => own.parent.unwrap_or_else(|| own.base.ty.oid()),
        _ => d.base.ty.oid(),
    }
}

/// A column of what a domain is made from; of a domain's domain nothing but that is told.
fn domain_column(d: &repr::types::Domain) -> ColType {
    ColType { ty: d.as_type(), typmod: if d.parent.is_some() { -1 } else { d.base.typmod }, nullable: true }
}

/// A type by its SQL name if it is the system's.
fn sql_name(ctx: &BuiltinCtx<'_>, oid: u32) -> String {
    match pgdata::type_by_oid(oid) {
        Some(_) => format_type(oid, None, ctx.names),
        None => USER_DEFINED.into(),
    }
}

fn data_type(ctx: &BuiltinCtx<'_>, ty: &SqlType) -> String {
    let base = over(ctx.catalog, ty);
    match ty {
        SqlType::Array(_) => "ARRAY".into(),
        SqlType::Domain(d) if matches!(d.base.ty, SqlType::Array(_)) && base == d.base.ty.oid() => "ARRAY".into(),
        _ => sql_name(ctx, base),
    }
}

/// Fields of composite types.
fn fields(c: &Catalog) -> impl Iterator<Item = (&Arc<Item>, usize, &String, &ColType)> {
    c.items().flat_map(|i| {
        let fields = if let ItemKind::Type(SqlType::Record(r)) = &i.kind { r.fields.as_slice() } else { &[] };
        fields.iter().enumerate().map(move |(n, f)| (i, n, &f.0, &f.1))
    })
}

/// Something that has a type: a column, a field, a domain.
struct Described<'c> {
    of: &'c Item,
    kind: &'static str,
    number: usize,
    ty: ColType,
}

impl Described<'_> {
    fn columns(&self) -> Columns<4> {
        let place = [text(DATABASE), text(&self.of.schema), text(&self.of.name), text(self.kind)];
        let [a, b, c, d] = place;
        [("object_catalog", a), ("object_schema", b), ("object_name", c), ("object_type", d)]
    }
}

fn described_objects(c: &Catalog) -> Vec<Described<'_>> {
    let mut out: Vec<Described<'_>> = fields(c).map(|(of, n, _, ty)| Described { of, kind: "USER-DEFINED TYPE", number: n + 1, ty: ty.clone() }).collect();
    for of in c.items() {
        match &of.kind {
            ItemKind::Domain(d) => out.push(Described { of, kind: "DOMAIN", number: 1, ty: d.base.clone() }),
            _ if listed(of) => out.extend(of.desc.types.iter().enumerate().map(|(n, ty)| Described { of, kind: "TABLE", number: n + 1, ty: ty.clone() })),
            _ => {}
        }
    }
    out
}

fn column(ctx: &BuiltinCtx<'_>, out: &mut Rows<'_>, i: &Item, n: usize) {
    let c = ctx.catalog;
    let default = match &i.kind {
        ItemKind::Table(Table { defaults, .. }) | ItemKind::View { defaults, .. } => {
            defaults.get(n).cloned().flatten().map_or(Value::Null, |d| Value::Text(ctx.names.expression(&d, i.oid(), false)))
        }
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
    let mut row = column_row(ctx, &i.schema, &i.name, &i.desc.names[n], n, &ty, default);
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
    let collations = if let ItemKind::Table(t) = &i.kind { &t.collations[..] } else { &[] };
    if let Some((_, name)) = collations.iter().find(|k| k.0 == n) {
        row.retain(|r| !r.0.starts_with("collation_"));
        row.extend([("collation_catalog", text(DATABASE)), ("collation_schema", text("pg_catalog")), ("collation_name", text(name))]);
    }
    if let Some(g) = generated {
        row.retain(|r| r.0 != "is_generated");
        row.extend([("is_generated", text("ALWAYS")), ("generation_expression", Value::Text(ctx.names.expression(&g, i.oid(), false)))]);
    }
    out.add(row);
}

/// What is told of a column's type.
fn described(ctx: &BuiltinCtx<'_>, declared: &ColType) -> Vec<(&'static str, Value)> {
    let c = ctx.catalog;
    // A domain is told as what it is made from, and if that is a domain again, as no more than that.
    let whole = |t: &ColType| match &t.ty {
        SqlType::Domain(d) if over(c, &t.ty) == d.base.ty.oid() => d.base.clone(),
        _ => t.clone(),
    };
    let ty = whole(declared);
    let limit = (ty.typmod >= 0).then_some(ty.typmod);
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
    let length = match (&ty.ty, limit) {
        (SqlType::Varchar | SqlType::Bpchar, Some(n)) => int(i64::from(n - 4)),
        (SqlType::Bit | SqlType::VarBit, Some(n)) => int(n.into()),
        _ => Value::Null,
    };
    let octets = match (&ty.ty, limit) {
        (SqlType::Varchar | SqlType::Bpchar, Some(n)) => int(i64::from(n - 4) * 4),
        (SqlType::Text | SqlType::Varchar | SqlType::Bpchar, None) => int(1_073_741_824),
        _ => Value::Null,
    };
    let datetime = match (&ty.ty, limit) {
        (SqlType::Date, _) => int(0),
        (SqlType::Time | SqlType::TimeTz | SqlType::Timestamp | SqlType::TimestampTz | SqlType::Interval, n) => {
            int(n.map_or(6, |n| i64::from(n & 0xffff).min(6)))
        }
        _ => Value::Null,
    };
    // `interval(2)` names no fields, `interval day to second(2)` does.
    let interval = match &ty.ty {
        SqlType::Interval => match format_type(ty.ty.oid(), Some(ty.typmod), ctx.names).strip_prefix("interval ") {
            Some(fields) => Value::Text(fields.to_uppercase()),
            None => Value::Null,
        },
        _ => Value::Null,
    };
    let collation = pg::collation(&ty.ty) == C_COLLATION;
    let collation = |value: &str| if collation { text(value) } else { Value::Null };
    let mut out = vec![
        ("data_type", Value::Text(data_type(ctx, &declared.ty))),
        ("character_maximum_length", length),
        ("character_octet_length", octets),
        ("collation_catalog", collation(DATABASE)),
        ("collation_schema", collation("pg_catalog")),
        ("collation_name", collation("C")),
        ("numeric_precision", precision),
        ("numeric_precision_radix", radix),
        ("numeric_scale", scale),
        ("datetime_precision", datetime),
        ("interval_type", interval),
    ];
    out.extend(of_type(c, "udt", over(c, &declared.ty)));
    out
}

/// `pg_collation.oid` of `C`, the one that columns tell of: others have the database's.
const C_COLLATION: u32 = 950;

fn column_row(ctx: &BuiltinCtx<'_>, schema: &str, relation: &str, name: &str, n: usize, ty: &ColType, default: Value) -> Vec<(&'static str, Value)> {
    let c = ctx.catalog;
    let mut out = described(ctx, ty);
    let not_null = matches!(&ty.ty, SqlType::Domain(_))
        && matches!(c.item(repr::GlobalId(u64::from(ty.ty.oid()))).map(|i| &i.kind), Some(ItemKind::Domain(d)) if d.not_null);
    out.extend([
        ("table_catalog", text(DATABASE)),
        ("table_schema", text(schema)),
        ("table_name", text(relation)),
        ("column_name", text(name)),
        ("ordinal_position", int(n as i64 + 1)),
        ("column_default", default),
        ("is_nullable", yes_no(ty.nullable && !not_null)),
        ("dtd_identifier", Value::Text((n + 1).to_string())),
        ("is_self_referencing", yes_no(false)),
        ("is_identity", yes_no(false)),
        ("identity_cycle", yes_no(false)),
        ("is_generated", text("NEVER")),
        ("is_updatable", yes_no(true)),
    ]);
    if matches!(ty.ty, SqlType::Domain(_)) {
        out.extend(of_type(c, "domain", ty.ty.oid()));
    }
    out
}
