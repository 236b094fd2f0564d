//! Rows of pg_catalog.

use super::pg_constraint::{constraints, Constrained};
use super::pg_index::{index_list, indexes};
use super::pg_type::Form;
use super::{defs, int, oid, text, vector, BuiltinCtx, Names, Rows, OWNER, OWNER_NAME, RD_NAMESPACE};
use crate::catalog::{Catalog, Item, ItemKind};
use crate::planner::DATABASE;
use expr::catalog as pgdata;
use expr::CatalogView;
use repr::{ColType, SqlType, Value};

/// `pg_database.oid` of the one database.
pub const DATABASE_OID: u32 = 5;
const HEAP_AM: u32 = 2;
pub(super) const BTREE_AM: u32 = 403;
pub(super) const HASH_AM: u32 = 405;
/// OIDs of the catalogs, as `classid` has them.
pub const CLASS: u32 = 1259;
const DATABASES: u32 = 1262;
pub const TYPE: u32 = 1247;
pub const CONSTRAINT: u32 = 2606;
pub const NAMESPACE: u32 = 2615;
pub const EXTENSIONS: u32 = 3079;

pub fn fill(name: &str, out: &mut Rows<'_>, ctx: &BuiltinCtx<'_>) {
    let c = ctx.catalog;
    match name {
        "pg_namespace" => {
            for (n, o) in namespaces(c) {
                // What everybody may do in `public` is granted, as it is in a database of PostgreSQL's that is new.
                let granted = || vec![Value::Text(format!("{OWNER_NAME}=UC/{OWNER_NAME}")), Value::Text(format!("=U/{OWNER_NAME}"))];
                let acl = if n == "public" { Value::array(granted()) } else { Value::Null };
                out.add(vec![("oid", oid(o)), ("nspname", Value::Text(n)), ("nspowner", oid(OWNER)), ("nspacl", acl)]);
            }
        }
        "pg_class" => classes(c, out),
        "pg_attribute" => attributes(c, ctx.names, out),
        "pg_attrdef" => {
            for (item, n, d) in defaults(c) {
                out.add(vec![("oid", oid(default_oid(&item, n))), ("adrelid", oid(item.oid())), ("adnum", int(n)), ("adbin", Value::Text(d))]);
            }
        }
        "pg_type" => super::pg_type::types(c, out),
        "pg_index" => indexes(c, ctx.names, out),
        "pg_constraint" => {
            for k in constraints(c) {
                out.add(vec![
                    ("oid", oid(k.oid)),
                    ("conname", text(&k.name)),
                    ("connamespace", oid(k.namespace)),
                    ("contype", text(k.kind())),
                    ("convalidated", Value::Bool(k.valid)),
                    ("conrelid", oid(k.relation)),
                    ("contypid", oid(k.domain)),
                    ("conindid", oid(k.index)),
                    ("conislocal", Value::Bool(true)),
                    ("connoinherit", Value::Bool(!matches!(k.what, Constrained::Check(_)))),
                    ("conkey", if k.domain != 0 { Value::Null } else { numbers(&k.named_columns(c)) }),
                    ("conbin", if let Constrained::Check(check) = &k.what { text(check) } else { Value::Null }),
                    ("conpfeqop", k.equalities(c, equality)),
                    ("conppeqop", k.equalities(c, |parent, _| equality(parent, parent))),
                    ("conffeqop", k.equalities(c, |_, child| equality(child, child))),
                    ("condeferrable", Value::Bool(k.deferral().0)),
                    ("condeferred", Value::Bool(k.deferral().1)),
                    ("confrelid", oid(k.foreign().map_or(0, |f| f.parent.0 as u32))),
                    ("confupdtype", k.foreign().map_or_else(|| text(" "), |f| Value::Text(f.on_update.to_string()))),
                    ("confdeltype", k.foreign().map_or_else(|| text(" "), |f| Value::Text(f.on_delete.to_string()))),
                    ("confmatchtype", text(k.foreign().map_or(" ", |f| if f.full { "f" } else { "s" }))),
                    ("confkey", k.foreign().map_or(Value::Null, |f| numbers(&f.parent_columns))),
                    ("confdelsetcols", k.foreign().filter(|f| !f.set_columns.is_empty()).map_or(Value::Null, |f| numbers(&f.set_columns))),
                ]);
            }
        }
        "pg_description" => {
            let mut add = |object: u32, class: u32, column: u32, comment: &str| {
                let place = [("objoid", oid(object)), ("classoid", oid(class)), ("objsubid", int(i64::from(column)))];
                out.add(place.into_iter().chain([("description", text(comment))]).collect());
            };
            for ((class, object), comment) in super::copied::descriptions() {
                add(*object, *class, 0, comment);
            }
            for i in c.items() {
                for (column, comment) in &i.comments {
                    // The fields of a composite type are those of its relation.
                    let of_type = matches!(i.kind, ItemKind::Type(_) | ItemKind::Domain(_)) && *column == 0;
                    add(i.oid(), if of_type { TYPE } else { CLASS }, *column, comment);
                }
            }
            for k in constraints(c) {
                let of = c.item(repr::GlobalId(u64::from(k.relation.max(k.domain))));
                for comment in of.iter().flat_map(|i| &i.constraint_comments).filter(|x| x.name == k.name) {
                    add(k.oid, if comment.index { CLASS } else { CONSTRAINT }, 0, &comment.text);
                }
            }
            for (name, _) in c.schemas() {
                let Some(schema) = c.schema(name) else { continue };
                schema.comment.iter().for_each(|comment| add(schema.oid, NAMESPACE, 0, comment));
            }
        }
        "pg_shdescription" => {
            if let Some(comment) = &c.database_comment {
                out.add(vec![("objoid", oid(DATABASE_OID)), ("classoid", oid(DATABASES)), ("description", text(comment))]);
            }
        }
        "pg_sequence" => {
            for (i, s) in sequences(c) {
                out.add(vec![
                    ("seqrelid", oid(i.oid())),
                    ("seqtypid", oid(s.ty.oid())),
                    ("seqstart", int(s.start)),
                    ("seqincrement", int(s.increment)),
                    ("seqmax", int(s.max)),
                    ("seqmin", int(s.min)),
                    ("seqcache", int(s.cache)),
                    ("seqcycle", Value::Bool(s.cycle)),
                ]);
            }
        }
        "pg_sequences" => {
            for (i, s) in sequences(c) {
                let at = ctx.sequences.position(i.id, s);
                out.add(vec![
                    ("schemaname", text(&i.schema)),
                    ("sequencename", text(&i.name)),
                    ("sequenceowner", text("riverdelta")),
                    ("data_type", Value::UInt4(s.ty.oid())),
                    ("start_value", int(s.start)),
                    ("min_value", int(s.min)),
                    ("max_value", int(s.max)),
                    ("increment_by", int(s.increment)),
                    ("cycle", Value::Bool(s.cycle)),
                    ("cache_size", int(s.cache)),
                    ("last_value", if at.called { int(at.value) } else { Value::Null }),
                ]);
            }
        }
        "pg_depend" => super::depend::fill(c, ctx.names, out),
        // That each view is what its query gives.
        "pg_rewrite" => {
            for i in c.items().filter(|i| matches!(i.kind, ItemKind::View { .. } | ItemKind::MaterializedView { .. })) {
                out.add(vec![
                    ("oid", oid(rule_oid(i))),
                    ("rulename", text("_RETURN")),
                    ("ev_class", oid(i.oid())),
                    ("ev_type", text("1")),
                    ("ev_enabled", text("O")),
                    ("is_instead", Value::Bool(true)),
                ]);
            }
        }
        "pg_extension" => {
            for (o, name, schema, version) in EXTENSION_VERSIONS {
                out.add(vec![
                    ("oid", oid(o)),
                    ("extname", text(name)),
                    ("extowner", oid(OWNER)),
                    ("extnamespace", oid(schema)),
                    ("extrelocatable", Value::Bool(false)),
                    ("extversion", text(version)),
                ]);
            }
        }
        "pg_am" => {
            for a in pgdata::access_methods() {
                out.add(vec![("oid", oid(a.oid)), ("amname", text(a.name)), ("amhandler", oid(a.handler)), ("amtype", Value::Text(a.kind.to_string()))]);
            }
        }
        "pg_proc" => procs(out),
        "pg_operator" => {
            for o in pgdata::operators() {
                out.add(vec![
                    ("oid", oid(o.oid)),
                    ("oprname", text(o.name)),
                    ("oprnamespace", oid(o.namespace)),
                    ("oprowner", oid(OWNER)),
                    ("oprkind", Value::Text(o.kind.to_string())),
                    ("oprcanmerge", Value::Bool(o.can_merge)),
                    ("oprcanhash", Value::Bool(o.can_hash)),
                    ("oprleft", oid(o.left)),
                    ("oprright", oid(o.right)),
                    ("oprresult", oid(o.result)),
                    ("oprcom", oid(o.commutator)),
                    ("oprnegate", oid(o.negator)),
                    ("oprcode", oid(o.func)),
                    ("oprrest", oid(o.rest)),
                    ("oprjoin", oid(o.join)),
                ]);
            }
        }
        "pg_cast" => {
            for k in pgdata::casts() {
                let context = match k.context {
                    pgdata::CastContext::Implicit => "i",
                    pgdata::CastContext::Assignment => "a",
                    pgdata::CastContext::Explicit => "e",
                };
                let method = match k.method {
                    pgdata::CastMethod::Function => "f",
                    pgdata::CastMethod::InOut => "i",
                    pgdata::CastMethod::Binary => "b",
                };
                out.add(vec![
                    ("oid", oid(k.oid)),
                    ("castsource", oid(k.source)),
                    ("casttarget", oid(k.target)),
                    ("castfunc", oid(k.func)),
                    ("castcontext", text(context)),
                    ("castmethod", text(method)),
                ]);
            }
        }
        "pg_aggregate" => {
            for a in pgdata::aggregates() {
                out.add(vec![
                    ("aggfnoid", oid(a.oid)),
                    ("aggkind", Value::Text(a.kind.to_string())),
                    ("aggnumdirectargs", int(i64::from(a.direct_args))),
                    ("aggtransfn", oid(a.trans_func)),
                    ("aggfinalfn", oid(a.final_func)),
                    ("aggfinalmodify", text("r")),
                    ("aggmfinalmodify", text("r")),
                    ("aggsortop", oid(a.sort_op)),
                    ("aggtranstype", oid(a.trans_type)),
                    ("agginitval", a.init.map_or(Value::Null, text)),
                ]);
            }
        }
        "pg_collation" => {
            for k in pgdata::collations() {
                out.add(vec![
                    ("oid", oid(k.oid)),
                    ("collname", text(k.name)),
                    ("collnamespace", oid(k.namespace)),
                    ("collowner", oid(OWNER)),
                    ("collprovider", Value::Text(k.provider.to_string())),
                    ("collisdeterministic", Value::Bool(k.is_deterministic)),
                    ("collencoding", int(i64::from(k.encoding))),
                    ("collcollate", k.collate.map_or(Value::Null, text)),
                    ("collctype", k.ctype.map_or(Value::Null, text)),
                ]);
            }
        }
        "pg_opclass" => {
            for k in pgdata::opclasses() {
                out.add(vec![
                    ("oid", oid(k.oid)),
                    ("opcmethod", oid(k.method)),
                    ("opcname", text(k.name)),
                    ("opcnamespace", oid(k.namespace)),
                    ("opcowner", oid(OWNER)),
                    ("opcfamily", oid(k.family)),
                    ("opcintype", oid(k.in_type)),
                    ("opcdefault", Value::Bool(k.is_default)),
                    ("opckeytype", oid(k.key_type)),
                ]);
            }
        }
        "pg_range" => {
            for r in pgdata::ranges() {
                out.add(vec![
                    ("rngtypid", oid(r.range)),
                    ("rngsubtype", oid(r.subtype)),
                    ("rngmultitypid", oid(r.multirange)),
                    ("rngcollation", oid(r.collation)),
                    ("rngsubopc", oid(r.subopc)),
                    ("rngcanonical", oid(r.canonical)),
                    ("rngsubdiff", oid(r.subdiff)),
                ]);
            }
            for i in c.items() {
                let ItemKind::Type(SqlType::UserRange(r)) = &i.kind else { continue };
                let class = pgdata::opclasses().iter().find(|c| c.method == 403 && c.is_default && c.in_type == r.subtype.oid());
                out.add(vec![
                    ("rngtypid", oid(r.oid)),
                    ("rngsubtype", oid(r.subtype.oid())),
                    ("rngmultitypid", oid(r.multirange_oid)),
                    ("rngcollation", oid(collation(&r.subtype))),
                    ("rngsubopc", oid(class.map_or(0, |c| c.oid))),
                    ("rngcanonical", oid(0)),
                    ("rngsubdiff", oid(0)),
                ]);
            }
        }
        "pg_enum" => {
            for i in c.items() {
                let ItemKind::Type(SqlType::Enum(e)) = &i.kind else { continue };
                let orders = e.orders();
                for (n, label) in e.own_labels().enumerate() {
                    out.add(vec![
                        ("oid", oid(e.oid * 1000 + n as u32)),
                        ("enumtypid", oid(e.oid)),
                        ("enumsortorder", Value::Float4(orders[n])),
                        ("enumlabel", text(label)),
                    ]);
                }
            }
        }
        "pg_database" => out.add(vec![
            ("oid", oid(DATABASE_OID)),
            ("datname", text(DATABASE)),
            ("datdba", oid(OWNER)),
            ("encoding", int(6)),
            ("datlocprovider", text("c")),
            ("datallowconn", Value::Bool(true)),
            ("datconnlimit", int(-1)),
            ("dattablespace", oid(1663)),
            ("datcollate", text("C")),
            ("datctype", text("C.UTF-8")),
        ]),
        "pg_roles" | "pg_authid" => out.add(vec![
            ("oid", oid(OWNER)),
            ("rolname", text("riverdelta")),
            ("rolsuper", Value::Bool(true)),
            ("rolinherit", Value::Bool(true)),
            ("rolcreaterole", Value::Bool(true)),
            ("rolcreatedb", Value::Bool(true)),
            ("rolcanlogin", Value::Bool(true)),
            ("rolreplication", Value::Bool(true)),
            ("rolbypassrls", Value::Bool(true)),
            ("rolconnlimit", int(-1)),
        ]),
        "pg_user" | "pg_shadow" => {
            out.add(vec![
                ("usename", text("riverdelta")),
                ("usesysid", oid(OWNER)),
                ("usecreatedb", Value::Bool(true)),
                ("usesuper", Value::Bool(true)),
                ("userepl", Value::Bool(true)),
                ("usebypassrls", Value::Bool(true)),
            ]);
        }
        "pg_tablespace" => {
            for (o, n) in TABLESPACES {
                out.add(vec![("oid", oid(o)), ("spcname", text(n)), ("spcowner", oid(OWNER))]);
            }
        }
        "pg_language" => {
            for (o, n) in LANGUAGES {
                // What DO is written in has functions of its own, numbered before it.
                let of_block = |back: u32| oid(if n == "plpgsql" { o - back } else { 0 });
                out.add(vec![
                    ("oid", oid(o)),
                    ("lanname", text(n)),
                    ("lanowner", oid(OWNER)),
                    ("lanispl", Value::Bool(n == "plpgsql")),
                    ("lanpltrusted", Value::Bool(n == "sql" || n == "plpgsql")),
                    ("lanplcallfoid", of_block(3)),
                    ("laninline", of_block(2)),
                    ("lanvalidator", of_block(1)),
                ]);
            }
        }
        "pg_settings" => {
            for (n, v, d) in &ctx.settings.all() {
                let known: Vec<&str> = super::copied::setting(n).map_or_else(Vec::new, |l| l.split('\t').collect());
                let field = |i: usize| known.get(i).filter(|f| **f != "\\N").map_or(Value::Null, |f| text(f));
                let or = |value: Value, other: &str| if value.is_null() { text(other) } else { value };
                let labels = |list: &str| Value::array(list.trim_matches(['{', '}']).split(',').map(|l| text(l.trim_matches('"'))).collect());
                let boot = crate::settings::default_of(n).unwrap_or(v);
                // A value that is shown with its unit needs none beside it.
                let unit = if v.parse::<f64>().is_ok() { field(1) } else { Value::Null };
                out.add(vec![
                    ("name", text(n)),
                    ("setting", text(v)),
                    ("unit", unit),
                    ("category", or(field(2), "Customized Options")),
                    ("short_desc", text(d)),
                    ("extra_desc", field(3)),
                    ("context", or(field(4), "user")),
                    ("vartype", or(field(5), "string")),
                    ("source", text("default")),
                    ("min_val", field(6)),
                    ("max_val", field(7)),
                    ("enumvals", field(8).as_str().map_or(Value::Null, labels)),
                    ("boot_val", text(boot)),
                    ("reset_val", text(boot)),
                    ("pending_restart", Value::Bool(false)),
                ]);
            }
        }
        "pg_tables" => {
            for i in c.items().filter(|i| matches!(relkind(i), Some('r'))) {
                out.add(vec![
                    ("schemaname", text(&i.schema)),
                    ("tablename", text(&i.name)),
                    ("tableowner", text("riverdelta")),
                    ("hasindexes", Value::Bool(has_index(c, i))),
                    ("hasrules", Value::Bool(false)),
                    ("hastriggers", Value::Bool(has_triggers(c, i))),
                    ("rowsecurity", Value::Bool(false)),
                ]);
            }
            for d in defs().iter().filter(|d| d.kind == 'r') {
                let flags = ["hasindexes", "hasrules", "hastriggers", "rowsecurity"].map(|f| (f, Value::Bool(false)));
                let place = [("schemaname", text(d.schema)), ("tablename", text(d.name)), ("tableowner", text("riverdelta"))];
                out.add(place.into_iter().chain(flags).collect());
            }
        }
        "pg_views" => {
            for i in c.items() {
                if let ItemKind::View { .. } = &i.kind {
                    let definition = ctx.names.view_definition(i.oid(), false).map_or(Value::Null, Value::Text);
                    out.add(vec![("schemaname", text(&i.schema)), ("viewname", text(&i.name)), ("viewowner", text("riverdelta")), ("definition", definition)]);
                }
            }
        }
        "pg_matviews" => {
            for i in c.items() {
                if let ItemKind::MaterializedView { .. } = &i.kind {
                    let definition = ctx.names.view_definition(i.oid(), false).map_or(Value::Null, Value::Text);
                    let row = vec![
                        ("schemaname", text(&i.schema)),
                        ("matviewname", text(&i.name)),
                        ("matviewowner", text("riverdelta")),
                        ("hasindexes", Value::Bool(has_index(c, i))),
                        ("ispopulated", Value::Bool(true)),
                        ("definition", definition),
                    ];
                    out.add(row);
                }
            }
        }
        "pg_indexes" => {
            for x in index_list(c) {
                let Some(base) = c.item(repr::GlobalId(u64::from(x.on))) else { continue };
                out.add(vec![
                    ("schemaname", text(&base.schema)),
                    ("tablename", text(&base.name)),
                    ("indexname", text(&x.name)),
                    ("indexdef", Value::Text(x.definition(c, ctx.names, false))),
                ]);
            }
        }
        "pg_timezone_abbrevs" => {
            for [abbrev, offset, is_dst] in expr::table::zone_abbreviations(crate::session::now_micros()) {
                out.add(vec![("abbrev", abbrev), ("utc_offset", offset), ("is_dst", is_dst)]);
            }
        }
        "pg_config" => {
            for [name, setting] in expr::table::build_settings() {
                out.add(vec![("name", name), ("setting", setting)]);
            }
        }
        "pg_timezone_names" => {
            for [name, abbrev, offset, is_dst] in expr::table::time_zones(crate::session::now_micros()) {
                out.add(vec![("name", name), ("abbrev", abbrev), ("utc_offset", offset), ("is_dst", is_dst)]);
            }
        }
        "pg_prepared_statements" | "pg_cursors" | "pg_stat_activity" | "pg_locks" => super::pg_session::fill(name, out, ctx),
        _ if super::copied::fill(name, out) => {}
        _ => {
            super::pg_stat::fill(name, out, ctx);
        }
    }
}

/// All schemas with their OIDs.
fn namespaces(c: &Catalog) -> Vec<(String, u32)> {
    let system = pgdata::namespaces().iter().filter(|n| super::is_system_schema(n.name)).map(|n| (n.name.to_string(), n.oid));
    let user = c.schemas().map(|(n, o)| (n.to_string(), o));
    system.chain([("rd_catalog".to_string(), RD_NAMESPACE)]).chain(user).collect()
}

pub fn namespace_oid(c: &Catalog, name: &str) -> Option<u32> {
    namespaces(c).into_iter().find(|n| n.0 == name).map(|n| n.1)
}

/// `pg_class.relkind` of an object that has a row there.
pub fn relkind(i: &Item) -> Option<char> {
    Some(match &i.kind {
        // A source that only feeds tables is none itself: SHOW SOURCES has it.
        ItemKind::Source(s) if s.self_output.is_none() => return None,
        ItemKind::Table(_) | ItemKind::SourceTable { .. } | ItemKind::Source(_) | ItemKind::Errors { .. } => 'r',
        ItemKind::View { .. } => 'v',
        ItemKind::MaterializedView { .. } | ItemKind::ViewErrors { .. } => 'm',
        ItemKind::Index { .. } => 'i',
        ItemKind::Sequence(_) => 'S',
        ItemKind::Type(SqlType::Record(_)) => 'c',
        ItemKind::Connection(_) | ItemKind::Secret { .. } | ItemKind::Type(_) | ItemKind::Domain(_) => return None,
    })
}

/// `pg_class.reloptions`.
fn options(i: &Item) -> Value {
    let mut options: Vec<Value> = i.options.iter().map(|(name, value)| Value::Text(format!("{name}={value}"))).collect();
    if let ItemKind::View { check: Some(check), .. } = &i.kind {
        options.push(Value::Text(format!("check_option={}", check.word())));
    }
    if options.is_empty() {
        Value::Null
    } else {
        Value::array(options)
    }
}

fn has_index(c: &Catalog, i: &Item) -> bool {
    index_list(c).iter().any(|x| x.on == i.oid())
}

/// A foreign key is a trigger in PostgreSQL, on both tables.
fn has_triggers(c: &Catalog, i: &Item) -> bool {
    matches!(&i.kind, ItemKind::Table(t) if !t.foreign.is_empty()) || !c.referring(i.id).is_empty()
}

fn classes(c: &Catalog, out: &mut Rows<'_>) {
    let ns = |name: &str| oid(namespace_oid(c, name).unwrap_or(0));
    for i in c.items() {
        let Some(kind) = relkind(i) else { continue };
        if kind == 'i' {
            continue;
        }
        let persistence = if i.schema.starts_with("pg_temp_") { "t" } else { "p" };
        let (reltype, natts) = match &i.kind {
            ItemKind::Type(SqlType::Record(r)) => (r.oid, r.fields.len()),
            _ if kind == 'S' => (0, 3),
            _ => (i.row_type_oid(), i.desc.arity()),
        };
        let checks = if let ItemKind::Table(t) = &i.kind { t.checks.len() } else { 0 };
        out.add(vec![
            ("oid", oid(i.oid())),
            ("relname", text(&i.name)),
            ("relnamespace", ns(&i.schema)),
            ("relowner", oid(OWNER)),
            ("reltype", oid(reltype)),
            ("relam", oid(if matches!(kind, 'v' | 'S' | 'c') { 0 } else { HEAP_AM })),
            ("relkind", Value::Text(kind.to_string())),
            ("relpersistence", text(persistence)),
            ("relnatts", int(natts as i64)),
            ("relchecks", int(checks as i64)),
            ("reltuples", int(-1)),
            ("relhasindex", Value::Bool(has_index(c, i))),
            ("relhastriggers", Value::Bool(has_triggers(c, i))),
            ("relhasrules", Value::Bool(matches!(i.kind, ItemKind::View { .. } | ItemKind::MaterializedView { .. }))),
            ("relispopulated", Value::Bool(true)),
            ("reloptions", options(i)),
            ("relreplident", text(if matches!(kind, 'r' | 'm') { "d" } else { "n" })),
        ]);
    }
    for x in index_list(c) {
        let schema = c.item(repr::GlobalId(u64::from(x.on))).map(|b| b.schema.clone()).unwrap_or_default();
        out.add(vec![
            ("oid", oid(x.oid)),
            ("relname", text(&x.name)),
            ("relnamespace", ns(&schema)),
            ("relowner", oid(OWNER)),
            ("relam", oid(x.method())),
            ("relkind", text("i")),
            ("relpersistence", text(if schema.starts_with("pg_temp_") { "t" } else { "p" })),
            ("relnatts", int((x.columns.len() + x.include.len()) as i64)),
            ("relispopulated", Value::Bool(true)),
            ("relreplident", text("n")),
        ]);
    }
    for d in defs() {
        out.add(vec![
            ("oid", oid(d.oid)),
            ("relname", text(d.name)),
            ("relnamespace", ns(d.schema)),
            ("relowner", oid(OWNER)),
            ("relkind", Value::Text(d.kind.to_string())),
            ("relpersistence", text("p")),
            ("relnatts", int(d.desc.arity() as i64)),
            ("reltuples", int(-1)),
            ("relispopulated", Value::Bool(true)),
            ("relreplident", text("n")),
        ]);
    }
}

fn attributes(c: &Catalog, names: &Names, out: &mut Rows<'_>) {
    let mut add = |relation: u32, n: usize, name: &str, ty: &ColType, collation: u32, has_default: bool, (identity, generated): (&str, &str)| {
        let form = Form::of(&ty.ty);
        out.add(vec![
            ("attrelid", oid(relation)),
            ("attname", text(name)),
            ("atttypid", oid(ty.ty.oid())),
            ("attstattarget", int(-1)),
            ("attlen", int(i64::from(form.len))),
            ("attnum", int(n as i64)),
            ("attndims", int(i64::from(matches!(ty.ty, SqlType::Array(_))))),
            ("attcacheoff", int(-1)),
            ("atttypmod", int(i64::from(ty.typmod))),
            ("attbyval", Value::Bool(form.by_val)),
            ("attalign", Value::Text(form.align.into())),
            ("attstorage", Value::Text(form.storage.into())),
            ("attnotnull", Value::Bool(!ty.nullable)),
            ("atthasdef", Value::Bool(has_default)),
            ("attidentity", text(identity)),
            ("attgenerated", text(generated)),
            ("attislocal", Value::Bool(true)),
            ("attcollation", oid(collation)),
        ]);
    };
    for i in c.items() {
        let table = if let ItemKind::Table(t) = &i.kind { Some(t) } else { None };
        let identity = |n: usize| table.and_then(|t| t.sequences.iter().find(|s| s.column == n)?.identity);
        let generated = |n: usize| table.is_some_and(|t| t.generated.get(n).is_some_and(Option::is_some));
        let of_view = |n: usize| matches!(&i.kind, ItemKind::View { defaults, .. } if defaults.get(n).is_some_and(Option::is_some));
        let of_table = |t: &crate::catalog::Table, n: usize| generated(n) || identity(n).is_none() && t.defaults.get(n).is_some_and(Option::is_some);
        let has_default = |n: usize| of_view(n) || table.is_some_and(|t| of_table(t, n));
        let marks = |n: usize| {
            let identity = identity(n).map_or("", |always| if always { "a" } else { "d" });
            (identity, if generated(n) { "s" } else { "" })
        };
        // The columns of a materialized view are nullable in Postgres, whatever is known of them.
        let declared = matches!(i.kind, ItemKind::Table(_) | ItemKind::SourceTable { .. });
        for (n, (name, ty)) in i.desc.names.iter().zip(&i.desc.types).enumerate() {
            let ty = if declared { ty.clone() } else { ty.clone().with_nullable(true) };
            let own = table.and_then(|t| t.collations.iter().find(|c| c.0 == n)).and_then(|c| pgdata::collations().iter().find(|k| k.name == c.1));
            add(i.oid(), n + 1, name, &ty, own.map_or_else(|| collation(&ty.ty), |k| k.oid), has_default(n), marks(n));
        }
        if let ItemKind::Sequence(_) = &i.kind {
            let desc = super::sequence_desc();
            for (n, (name, ty)) in desc.names.iter().zip(&desc.types).enumerate() {
                add(i.oid(), n + 1, name, ty, collation(&ty.ty), false, ("", ""));
            }
        }
        if let ItemKind::Type(SqlType::Record(r)) = &i.kind {
            for (n, (name, ty)) in r.fields.iter().enumerate() {
                add(i.oid(), n + 1, name, ty, collation(&ty.ty), false, ("", ""));
            }
        }
    }
    for x in index_list(c) {
        for (n, (name, ty)) in x.attributes(c, names).into_iter().enumerate() {
            let order = collation(&ty.ty);
            // A hash index keeps hashes.
            let ty = if x.def.hash { SqlType::Int4.nullable() } else { ty.with_nullable(true) };
            add(x.oid, n + 1, &name, &ty, order, false, ("", ""));
        }
    }
    for d in defs() {
        for (n, (name, ty)) in d.desc.names.iter().zip(&d.desc.types).enumerate() {
            add(d.oid, n + 1, name, ty, collation(&ty.ty), false, ("", ""));
        }
    }
}

/// The collation of a type's values: `typcollation`.
pub fn collation(ty: &SqlType) -> u32 {
    match ty.base() {
        SqlType::Array(e) => collation(e),
        SqlType::UserRange(_) | SqlType::Enum(_) => 0,
        t => pgdata::type_by_oid(t.oid()).map_or(0, |t| t.collation),
    }
}

fn defaults(c: &Catalog) -> Vec<(std::sync::Arc<Item>, i64, String)> {
    let mut out = Vec::new();
    for i in c.items() {
        if let ItemKind::Table(t) = &i.kind {
            // An identity column's is no default in the catalog.
            let identity = |n: usize| t.sequences.iter().any(|s| s.column == n && s.identity.is_some());
            out.extend(t.defaults.iter().enumerate().filter(|(n, _)| !identity(*n)).filter_map(|(n, d)| Some((i.clone(), n as i64 + 1, d.clone()?))));
            out.extend(t.generated.iter().enumerate().filter_map(|(n, g)| Some((i.clone(), n as i64 + 1, g.clone()?))));
        }
        if let ItemKind::View { defaults, .. } = &i.kind {
            out.extend(defaults.iter().enumerate().filter_map(|(n, d)| Some((i.clone(), n as i64 + 1, d.clone()?))));
        }
    }
    out
}

fn sequences(c: &Catalog) -> impl Iterator<Item = (&std::sync::Arc<Item>, &crate::catalog::Sequence)> {
    c.items().filter_map(|i| if let ItemKind::Sequence(s) = &i.kind { Some((i, s)) } else { None })
}
fn procs(out: &mut Rows<'_>) {
    for p in pgdata::procs() {
        let kind = match p.kind {
            pgdata::ProcKind::Function => "f",
            pgdata::ProcKind::Aggregate => "a",
            pgdata::ProcKind::Window => "w",
            pgdata::ProcKind::Procedure => "p",
        };
        out.add(vec![
            ("oid", oid(p.oid)),
            ("proname", text(p.name)),
            ("pronamespace", oid(p.namespace)),
            ("proowner", oid(OWNER)),
            ("prolang", oid(p.lang)),
            ("prokind", text(kind)),
            ("proisstrict", Value::Bool(p.strict)),
            ("proretset", Value::Bool(p.returns_set)),
            ("provolatile", Value::Text(p.volatility.to_string())),
            ("proparallel", Value::Text(p.parallel.to_string())),
            ("proleakproof", Value::Bool(p.leakproof)),
            ("procost", Value::Float4(p.cost)),
            ("prorows", Value::Float4(p.rows)),
            ("provariadic", oid(p.variadic)),
            ("pronargs", int(p.args.len() as i64)),
            ("pronargdefaults", int(p.defaults.len() as i64)),
            ("proargdefaults", if p.defaults.is_empty() { Value::Null } else { Value::Text(p.defaults.join(", ")) }),
            ("proallargtypes", p.all_args.as_ref().map_or(Value::Null, |a| Value::array(a.iter().map(|a| Value::UInt4(*a)).collect()))),
            ("proargmodes", p.modes.as_ref().map_or(Value::Null, |m| Value::array(m.iter().map(|m| Value::Text(m.to_string())).collect()))),
            ("proargnames", if p.arg_names.is_empty() { Value::Null } else { Value::array(p.arg_names.iter().map(|n| text(n)).collect()) }),
            ("prorettype", oid(p.ret)),
            ("proargtypes", vector(p.args.iter().map(|a| Value::UInt4(*a)).collect())),
            ("prosrc", text(p.src)),
        ]);
    }
}

/// An expression over a relation's row as a key of an index is shown: in brackets, unless it is a call.
pub fn shown_expression(text: &str, on: u32, names: &Names, pretty: bool) -> String {
    let text = names.expression(text, on, pretty);
    let name = text.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == '.')).unwrap_or(0);
    if name > 0 && bracketed(&text[name..]) {
        text
    } else {
        format!("({text})")
    }
}

/// The type for which operators and operator classes of a type are declared, where it has none of its own.
pub(super) fn class_type(ty: &SqlType) -> u32 {
    match ty.base() {
        SqlType::Array(_) => pgdata::pseudo::ANYARRAY,
        SqlType::Enum(_) => pgdata::pseudo::ANYENUM,
        SqlType::Record(_) => pgdata::pseudo::RECORD,
        SqlType::UserRange(_) => pgdata::pseudo::ANYRANGE,
        SqlType::UserMultirange(_) => pgdata::pseudo::ANYMULTIRANGE,
        SqlType::Varchar => SqlType::Text.oid(),
        SqlType::Cidr => SqlType::Inet.oid(),
        SqlType::Reg(_) => SqlType::Oid.oid(),
        ty => match pgdata::type_by_oid(ty.oid()).map(|t| t.kind) {
            Some('r') => pgdata::pseudo::ANYRANGE,
            Some('m') => pgdata::pseudo::ANYMULTIRANGE,
            _ => ty.oid(),
        },
    }
}

/// The operator `=` between two types; 0 for none.
fn equality(a: &SqlType, b: &SqlType) -> u32 {
    let of = |a: u32, b: u32| pgdata::operators_by_name("=").find(|o| o.left == a && o.right == b).map(|o| o.oid);
    of(a.base().oid(), b.base().oid()).or_else(|| of(class_type(a), class_type(b))).unwrap_or(0)
}

/// Schema and name of a type, arrays and row types of relations too.
pub fn type_place(c: &Catalog, oid: u32) -> Option<(String, String)> {
    if let Some(t) = pgdata::type_by_oid(oid) {
        let schema = pgdata::namespaces().iter().find(|n| n.oid == t.namespace).map_or("pg_catalog", |n| n.name);
        return Some((schema.into(), t.name.into()));
    }
    c.items().find_map(|i| {
        let (own, array, name) = match &i.kind {
            ItemKind::Type(SqlType::UserRange(r)) if [r.multirange_oid, r.multirange_array_oid].contains(&oid) => {
                (r.multirange_oid, r.multirange_array_oid, &r.multirange_name)
            }
            ItemKind::Type(SqlType::Record(r)) => (r.oid, r.array_oid, &i.name),
            ItemKind::Type(t) => (t.oid(), t.array_oid(), &i.name),
            ItemKind::Domain(d) => (d.oid, d.array_oid, &i.name),
            _ if i.is_relation() => (i.row_type_oid(), i.row_array_oid(), &i.name),
            _ => return None,
        };
        match oid {
            _ if oid == own => Some((i.schema.clone(), name.clone())),
            _ if oid == array => Some((i.schema.clone(), format!("_{name}"))),
            _ => None,
        }
    })
}

/// The columns of a row that an expression without subqueries names, each once.
pub fn columns_in(text: &str, desc: &repr::RelDesc) -> Vec<usize> {
    let mut out = Vec::new();
    if let Ok(e) = sql::parse::parse_expr(text) {
        sql::ast::walk::visit(&e, &mut |e| {
            if let sql::ast::ExprKind::Column(parts) = &*e.kind {
                out.extend(parts.last().and_then(|p| desc.names.iter().position(|n| *n == p.name)).filter(|n| !out.contains(n)));
            }
            true
        });
    }
    out
}

/// Whether one pair of brackets holds all of the text.
fn bracketed(text: &str) -> bool {
    let (mut depth, mut quote) = (0, None);
    for (i, c) in text.char_indices() {
        match (quote, c) {
            (Some(q), c) if c == q => quote = None,
            (Some(_), _) => {}
            (None, '\'' | '"') => quote = Some(c),
            (None, '(') => depth += 1,
            (None, ')') => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return i > 0 && i + c.len_utf8() == text.len();
        }
    }
    false
}

/// Constraints have no id of their own: theirs lie above all objects' ids.
pub(super) fn constraint_oid(i: &Item, n: usize) -> u32 {
    CONSTRAINTS | (i.oid() << 8) | n as u32
}

const DEFAULTS: u32 = 0x8000_0000;
const RULES: u32 = 0x3000_0000;
/// `pg_extension.oid` of what PostgreSQL does not have.
pub const EXTENSION: u32 = 15_001;
pub const PLPGSQL_EXTENSION: u32 = 13_559;
/// OID, name, schema and version of each. What is part of the system and in no schema that PostgreSQL's has is one: dumps leave it out.
const EXTENSION_VERSIONS: [(u32, &str, u32, &str); 2] =
    [(PLPGSQL_EXTENSION, "plpgsql", 11, "1.0"), (EXTENSION, OWNER_NAME, RD_NAMESPACE, env!("CARGO_PKG_VERSION"))];
pub const EXTENSION_ROWS: [(u32, &str); 2] = [(PLPGSQL_EXTENSION, "plpgsql"), (EXTENSION, OWNER_NAME)];
pub const LANGUAGES: [(u32, &str); 4] = [(12, "internal"), (13, "c"), (14, "sql"), (13_563, "plpgsql")];
pub const TABLESPACES: [(u32, &str); 2] = [(1663, "pg_default"), (1664, "pg_global")];

/// `pg_attrdef.oid` of a column's default, the column counted from 1.
pub fn default_oid(i: &Item, column: i64) -> u32 {
    DEFAULTS | i.oid().wrapping_mul(2048).wrapping_add(u32::try_from(column).unwrap_or(0)) & 0x7fff_ffff
}

/// `pg_rewrite.oid` of the rule that a view is.
pub fn rule_oid(i: &Item) -> u32 {
    RULES + i.oid()
}

/// The view that is this rule.
pub fn view_of(rule: u32) -> Option<u32> {
    rule.checked_sub(RULES).filter(|o| *o < CONSTRAINTS - RULES)
}

/// Columns as their numbers.
fn numbers(columns: &[usize]) -> Value {
    Value::array(columns.iter().map(|n| Value::Int2(*n as i16 + 1)).collect())
}

pub(super) const CONSTRAINTS: u32 = 0x4000_0000;

/// The table and the name of the key behind a constraint's OID, which is its index's too.
pub fn key_of(c: &Catalog, constraint: u32) -> Option<(&std::sync::Arc<Item>, &str)> {
    let (table, n) = ((constraint.checked_sub(CONSTRAINTS)?) >> 8, (constraint & 255) as usize);
    let item = c.item(repr::GlobalId(u64::from(table)))?;
    let ItemKind::Table(t) = &item.kind else { return None };
    let key = t.primary_key.iter().chain(&t.unique).nth(n)?;
    Some((item, &key.name))
}

/// The OID of the index of a key, by its name.
pub fn key_index(c: &Catalog, schema: &str, name: &str) -> Option<u32> {
    c.items().filter(|i| i.schema == schema).find_map(|i| {
        let ItemKind::Table(t) = &i.kind else { return None };
        let n = t.primary_key.iter().chain(&t.unique).position(|k| k.name == name)?;
        Some(constraint_oid(i, n))
    })
}
