//! What objects are called, and which object is called so: `pg_describe_object`, `pg_identify_object`, `pg_get_object_address`.
//!
//! Not here: constraints and their like as SQL (`pg_get_constraintdef`).

use super::copied;
use super::names::quote_if_needed;
use super::pg::{default_oid, namespace_oid, relkind, rule_oid, view_of, CLASS, CONSTRAINT, DATABASE_OID, EXTENSIONS, NAMESPACE, TYPE};
use super::pg_constraint::constraints;
use super::{defs, Names, OWNER, OWNER_NAME};
use crate::catalog::{Item, ItemKind};
use crate::planner::DATABASE;
use expr::catalog as pgdata;
use expr::{CatalogView, ObjectName};
use repr::error::state;
use repr::style::RegNames;
use repr::types::RegKind;
use repr::SqlError;
use std::sync::Arc;

const DEFAULT: u32 = 2604;
const REWRITE: u32 = 2618;
const PROC: u32 = 1255;
const OPERATOR: u32 = 2617;
const CAST: u32 = 2605;
const COLLATION: u32 = 3456;
const OPCLASS: u32 = 2616;
const OPFAMILY: u32 = 2753;
const AM: u32 = 2601;
const LANGUAGE: u32 = 2612;
const ROLE: u32 = 1260;
const DATABASES: u32 = 1262;
const TABLESPACE: u32 = 1213;

/// Classes of objects that have a name, perhaps in a schema, and nothing else: the class, the kind, its relation, and the column of the name.
const PLAIN: [(u32, &str, &str); 5] = [
    (3602, "text search configuration", "pg_ts_config"),
    (3600, "text search dictionary", "pg_ts_dict"),
    (3601, "text search parser", "pg_ts_parser"),
    (3764, "text search template", "pg_ts_template"),
    (2607, "conversion", "pg_conversion"),
];

/// A relation of any kind, or an index of a key.
struct Relation {
    schema: String,
    name: String,
    kind: &'static str,
    columns: Vec<String>,
}

impl Relation {
    fn identity(&self) -> String {
        qualified(&self.schema, &self.name)
    }

    fn address(&self, part: &str) -> Vec<String> {
        vec![self.schema.clone(), self.name.clone(), part.to_owned()]
    }
}

fn qualified(schema: &str, name: &str) -> String {
    format!("{}.{}", quote_if_needed(schema), quote_if_needed(name))
}

fn word(kind: char) -> &'static str {
    match kind {
        'i' => "index",
        'S' => "sequence",
        'v' => "view",
        'm' => "materialized view",
        'c' => "composite type",
        _ => "table",
    }
}

/// An object without a schema.
fn single(kind: &str, name: &str) -> ObjectName {
    let shown = quote_if_needed(name);
    ObjectName {
        description: format!("{kind} {name}"),
        schema: None,
        name: Some(shown.clone()),
        identity: shown,
        names: vec![name.to_owned()],
        args: Vec::new(),
    }
}

/// A type as texts have it that must be read under any search path.
fn type_identity(oid: u32, view: &Names) -> String {
    let anywhere = view.under(Vec::new());
    let shown = expr::func::system::format_type(oid, None, &anywhere);
    let bare = shown.trim_end_matches("[]");
    let element = pgdata::type_by_oid(oid).map(|t| if t.elem != 0 && t.name.starts_with('_') { t.elem } else { oid });
    match element.and_then(pgdata::type_by_oid) {
        // What SQL has words for stands alone.
        Some(t) if bare == quote_if_needed(t.name) && !matches!(t.name, "numeric" | "interval" | "bit") => format!("pg_catalog.{shown}"),
        _ => shown,
    }
}

impl Names {
    fn relation_of(&self, oid: u32) -> Option<Relation> {
        let of = |schema: &str, name: &str, kind, columns| Some(Relation { schema: schema.into(), name: name.into(), kind, columns });
        if let Some(x) = super::pg_index::index_list(&self.catalog).into_iter().find(|x| x.oid == oid) {
            let schema = self.item(x.on)?.schema.clone();
            let columns = x.attributes(&self.catalog, self).into_iter().map(|a| a.0).collect();
            return of(&schema, &x.name, "index", columns);
        }
        match self.item(oid) {
            Some(i) => of(&i.schema, &i.name, word(relkind(i)?), self.columns(oid)),
            None => defs().iter().find(|d| d.oid == oid).and_then(|d| of(d.schema, d.name, word(d.kind), d.desc.names.clone())),
        }
    }

    /// `table customers`, with the schema where the name alone does not find it.
    fn described(&self, r: &Relation) -> String {
        format!("{} {}", r.kind, self.shown(&r.schema, &r.name))
    }

    fn of_relation(&self, oid: u32, column: i32) -> (&'static str, Option<ObjectName>) {
        let Some(r) = self.relation_of(oid) else { return (if column == 0 { "relation" } else { "table column" }, None) };
        let identity = r.identity();
        let place = (Some(quote_if_needed(&r.schema)), Some(quote_if_needed(&r.name)));
        if column == 0 {
            let description = self.described(&r);
            let names = vec![r.schema, r.name];
            return (r.kind, Some(ObjectName { description, schema: place.0, name: place.1, identity, names, args: Vec::new() }));
        }
        let kind = match r.kind {
            "index" => "index column",
            "sequence" => "sequence column",
            "view" => "view column",
            "materialized view" => "materialized view column",
            "composite type" => "composite type column",
            _ => "table column",
        };
        let Some(name) = usize::try_from(column - 1).ok().and_then(|n| r.columns.get(n)) else { return (kind, None) };
        let found = ObjectName {
            description: format!("column {name} of {}", self.described(&r)),
            schema: place.0,
            name: place.1,
            identity: format!("{identity}.{}", quote_if_needed(name)),
            names: r.address(name),
            args: Vec::new(),
        };
        (kind, Some(found))
    }

    fn of_type(&self, oid: u32) -> Option<ObjectName> {
        let (schema, name) = super::pg::type_place(&self.catalog, oid)?;
        let identity = type_identity(oid, self);
        Some(ObjectName {
            description: format!("type {}", expr::func::system::format_type(oid, None, self)),
            schema: Some(quote_if_needed(&schema)),
            name: Some(quote_if_needed(&name)),
            names: vec![identity.clone()],
            identity,
            args: Vec::new(),
        })
    }

    fn of_constraint(&self, oid: u32) -> (&'static str, Option<ObjectName>) {
        let Some(k) = constraints(&self.catalog).into_iter().find(|k| k.oid == oid) else { return ("constraint", None) };
        let shown = quote_if_needed(&k.name);
        if k.domain != 0 {
            let of = type_identity(k.domain, self);
            let schema = self.item(k.domain).map(|i| quote_if_needed(&i.schema));
            let identity = format!("{shown} on {of}");
            let o = ObjectName { description: format!("constraint {}", k.name), schema, name: None, identity, names: vec![of], args: vec![k.name] };
            return ("domain constraint", Some(o));
        }
        let found = self.relation_of(k.relation).map(|r| ObjectName {
            description: format!("constraint {} on {}", k.name, self.described(&r)),
            schema: Some(quote_if_needed(&r.schema)),
            name: None,
            identity: format!("{shown} on {}", r.identity()),
            names: r.address(&k.name),
            args: Vec::new(),
        });
        ("table constraint", found)
    }

    /// The table and the column, from 0, of a default.
    fn default_of(&self, oid: u32) -> Option<(&Arc<Item>, usize)> {
        self.catalog.items().filter(|i| i.is_relation()).find_map(|i| (1..=i.desc.arity()).find(|n| default_oid(i, *n as i64) == oid).map(|n| (i, n - 1)))
    }

    fn of_default(&self, oid: u32) -> Option<ObjectName> {
        let (item, n) = self.default_of(oid)?;
        let (r, column) = (self.relation_of(item.oid())?, item.desc.names.get(n)?);
        Some(ObjectName {
            description: format!("default value for column {column} of {}", self.described(&r)),
            identity: format!("for {}.{}", r.identity(), quote_if_needed(column)),
            names: r.address(column),
            ..ObjectName::default()
        })
    }

    fn of_rule(&self, oid: u32) -> Option<ObjectName> {
        let r = self.relation_of(view_of(oid)?)?;
        Some(ObjectName {
            description: format!("rule _RETURN on {}", self.described(&r)),
            identity: format!("\"_RETURN\" on {}", r.identity()),
            names: r.address("_RETURN"),
            ..ObjectName::default()
        })
    }

    fn of_function(&self, oid: u32) -> (&'static str, Option<ObjectName>) {
        let Some(p) = pgdata::proc_by_oid(oid) else { return ("routine", None) };
        let kind = match p.kind {
            pgdata::ProcKind::Aggregate => "aggregate",
            pgdata::ProcKind::Procedure => "procedure",
            _ => "function",
        };
        let args: Vec<String> = p.args.iter().map(|a| type_identity(*a, self)).collect();
        let seen: Vec<String> = p.args.iter().map(|a| expr::func::system::format_type(*a, None, self)).collect();
        let found = ObjectName {
            description: format!("function {}({})", quote_if_needed(p.name), seen.join(",")),
            schema: Some("pg_catalog".into()),
            name: None,
            identity: format!("pg_catalog.{}({})", quote_if_needed(p.name), args.join(",")),
            names: vec!["pg_catalog".into(), p.name.into()],
            args,
        };
        (kind, Some(found))
    }

    fn of_operator(&self, oid: u32) -> Option<ObjectName> {
        let o = pgdata::operator_by_oid(oid)?;
        let side = |t: u32, write: &dyn Fn(u32) -> String| if t == 0 { "NONE".to_owned() } else { write(t) };
        let seen = |t: u32| side(t, &|t| expr::func::system::format_type(t, None, self));
        let whole = |t: u32| side(t, &|t| type_identity(t, self));
        Some(ObjectName {
            description: format!("operator {}({},{})", o.name, seen(o.left), seen(o.right)),
            schema: Some("pg_catalog".into()),
            name: None,
            identity: format!("pg_catalog.{}({},{})", o.name, whole(o.left), whole(o.right)),
            names: vec!["pg_catalog".into(), o.name.into()],
            args: [o.left, o.right].into_iter().filter(|t| *t != 0).map(whole).collect(),
        })
    }

    fn of_cast(&self, oid: u32) -> Option<ObjectName> {
        let k = pgdata::casts().iter().find(|k| k.oid == oid)?;
        let seen = |t: u32| expr::func::system::format_type(t, None, self);
        let (from, to) = (type_identity(k.source, self), type_identity(k.target, self));
        Some(ObjectName {
            description: format!("cast from {} to {}", seen(k.source), seen(k.target)),
            identity: format!("({from} AS {to})"),
            names: vec![from],
            args: vec![to],
            ..ObjectName::default()
        })
    }

    /// An operator class or family, of an access method.
    fn of_method(&self, kind: &str, name: &str, method: u32) -> Option<ObjectName> {
        let method = pgdata::access_methods().iter().find(|a| a.oid == method)?.name;
        Some(ObjectName {
            description: format!("{kind} {} for access method {method}", quote_if_needed(name)),
            schema: Some("pg_catalog".into()),
            name: Some(quote_if_needed(name)),
            identity: format!("{} USING {method}", qualified("pg_catalog", name)),
            names: vec![method.into(), "pg_catalog".into(), name.into()],
            args: Vec::new(),
        })
    }

    /// An object of `pg_catalog` that is called by its name.
    fn of_system(&self, kind: &str, name: &str) -> ObjectName {
        ObjectName {
            description: format!("{kind} {}", quote_if_needed(name)),
            schema: Some("pg_catalog".into()),
            name: Some(quote_if_needed(name)),
            identity: qualified("pg_catalog", name),
            names: vec!["pg_catalog".into(), name.into()],
            args: Vec::new(),
        }
    }

    pub(super) fn object_named(&self, class: u32, oid: u32, column: i32) -> Result<(&'static str, Option<ObjectName>), SqlError> {
        if let Some((_, kind, relation)) = PLAIN.iter().find(|p| p.0 == class) {
            let row = copied::lines(relation).map(|l| l.split('\t').collect::<Vec<_>>()).find(|f| f[0].parse() == Ok(oid));
            return Ok((*kind, row.map(|f| self.of_system(kind, f[1]))));
        }
        Ok(match class {
            CLASS => self.of_relation(oid, column),
            TYPE => ("type", self.of_type(oid)),
            NAMESPACE => ("schema", self.namespace_name(oid).map(|n| single("schema", &n))),
            CONSTRAINT => self.of_constraint(oid),
            DEFAULT => ("default value", self.of_default(oid)),
            REWRITE => ("rule", self.of_rule(oid)),
            PROC => self.of_function(oid),
            OPERATOR => ("operator", self.of_operator(oid)),
            CAST => ("cast", self.of_cast(oid)),
            COLLATION => {
                let found = pgdata::collations().iter().find(|c| c.oid == oid);
                ("collation", found.map(|c| self.of_system("collation", c.name)))
            }
            OPCLASS => {
                let found = pgdata::opclasses().iter().find(|k| k.oid == oid);
                ("operator class", found.and_then(|k| self.of_method("operator class", k.name, k.method)))
            }
            OPFAMILY => {
                let row = copied::lines("pg_opfamily").map(|l| l.split('\t').collect::<Vec<_>>()).find(|f| f[0].parse() == Ok(oid));
                ("operator family", row.and_then(|f| self.of_method("operator family", f[2], f[1].parse().ok()?)))
            }
            AM => ("access method", pgdata::access_methods().iter().find(|a| a.oid == oid).map(|a| single("access method", a.name))),
            LANGUAGE => ("language", super::pg::LANGUAGES.iter().find(|l| l.0 == oid).map(|l| single("language", l.1))),
            ROLE => ("role", (oid == OWNER).then(|| single("role", OWNER_NAME))),
            DATABASES => ("database", (oid == DATABASE_OID).then(|| single("database", DATABASE))),
            TABLESPACE => ("tablespace", super::pg::TABLESPACES.iter().find(|t| t.0 == oid).map(|t| single("tablespace", t.1))),
            EXTENSIONS => ("extension", super::pg::EXTENSION_ROWS.iter().find(|e| e.0 == oid).map(|e| single("extension", e.1))),
            other => return Err(SqlError::internal(format!("unrecognized object class: {other}"))),
        })
    }

    pub(super) fn object_addressed(&self, kind: &str, names: &[String], args: &[String]) -> Result<(u32, u32, i32), SqlError> {
        let invalid = |m: String| SqlError::new(state::INVALID_PARAMETER_VALUE, m);
        let wrong = |m: &str| SqlError::new(state::SYNTAX_ERROR, m);
        let exactly = |n: usize, list: &[String], what: &str| match list.len() == n {
            true => Ok(()),
            false => Err(invalid(format!("{what} list length must be exactly {n}"))),
        };
        let missing = |kind: &str, name: &str| SqlError::new(state::UNDEFINED_OBJECT, format!("{kind} \"{name}\" does not exist"));
        if names.is_empty() {
            return Err(invalid("name list length must be at least 1".into()));
        }
        let type_of = |name: &String| {
            let names: Arc<dyn CatalogView> = Arc::new(self.under(self.search_path.clone()));
            expr::func::system::CatalogNames(names).reg_oid(RegKind::Type, name)
        };
        let relation = |parts: &[String]| {
            let shown = parts.join(".");
            self.relation_oid(parts).ok_or_else(|| SqlError::new(state::UNDEFINED_TABLE, format!("relation \"{shown}\" does not exist")))
        };
        let of_kind = |oid: u32, wanted: &str| match self.relation_of(oid) {
            Some(r) if r.kind == wanted => Ok(r),
            Some(r) => {
                let article = if wanted.starts_with('i') { "an" } else { "a" };
                Err(SqlError::new(state::WRONG_OBJECT_TYPE, format!("\"{}\" is not {article} {wanted}", r.name)))
            }
            None => Err(missing("relation", &names.join("."))),
        };
        let system = |list: &[String]| match list {
            [name] => Ok(name.clone()),
            [schema, name] if schema == "pg_catalog" => Ok(name.clone()),
            [_, name] => Ok(format!(".{name}")),
            _ => Err(wrong(&format!("improper qualified name (too many dotted names): {}", list.join(".")))),
        };
        if let Some(parent) = kind.strip_suffix(" column").filter(|k| ["table", "view", "materialized view", "composite type", "index"].contains(k)) {
            let Some((column, of)) = names.split_last().filter(|s| !s.1.is_empty()) else { return Err(wrong("column name must be qualified")) };
            let oid = relation(of)?;
            let r = of_kind(oid, parent)?;
            let n = r.columns.iter().position(|c| c == column);
            let unknown = || SqlError::new(state::UNDEFINED_COLUMN, format!("column \"{column}\" of relation \"{}\" does not exist", of.join(".")));
            return Ok((CLASS, oid, n.ok_or_else(unknown)? as i32 + 1));
        }
        if let Some((class, _, table)) = PLAIN.iter().find(|p| p.1 == kind) {
            let name = system(names)?;
            let row = copied::lines(table).map(|l| l.split('\t').collect::<Vec<_>>()).find(|f| f[1] == name);
            return row.and_then(|f| Some((*class, f[0].parse().ok()?, 0))).ok_or_else(|| missing(kind, &names.join(".")));
        }
        let place = match kind {
            "table" | "view" | "materialized view" | "sequence" | "index" => {
                let oid = relation(names)?;
                of_kind(oid, kind)?;
                (CLASS, oid)
            }
            "composite type" | "type" => {
                exactly(1, names, "name")?;
                (TYPE, type_of(&names[0])?)
            }
            "schema" | "role" | "language" | "extension" | "access method" | "database" | "tablespace" => {
                exactly(1, names, "name")?;
                let name = names[0].as_str();
                let no_schema = || SqlError::new(state::INVALID_SCHEMA_NAME, format!("schema \"{name}\" does not exist"));
                let find = |list: &[(u32, &str)]| list.iter().find(|l| l.1 == name).map(|l| l.0).ok_or_else(|| missing(kind, name));
                match kind {
                    "schema" => (NAMESPACE, namespace_oid(&self.catalog, name).ok_or_else(no_schema)?),
                    "role" => (ROLE, find(&[(OWNER, OWNER_NAME)])?),
                    "language" => (LANGUAGE, find(&super::pg::LANGUAGES)?),
                    "extension" => (EXTENSIONS, find(&super::pg::EXTENSION_ROWS)?),
                    "database" => (DATABASES, find(&[(DATABASE_OID, DATABASE)])?),
                    "tablespace" => (TABLESPACE, find(&super::pg::TABLESPACES)?),
                    _ => (AM, pgdata::access_methods().iter().find(|a| a.name == name).map(|a| a.oid).ok_or_else(|| missing(kind, name))?),
                }
            }
            "function" | "aggregate" | "procedure" | "routine" => {
                let types = args.iter().map(type_of).collect::<Result<Vec<_>, _>>()?;
                let name = system(names)?;
                let shown: Vec<String> = types.iter().map(|t| expr::func::system::format_type(*t, None, self)).collect();
                let unknown = || SqlError::new(state::UNDEFINED_FUNCTION, format!("{kind} {}({}) does not exist", names.join("."), shown.join(", ")));
                (PROC, pgdata::procs_by_name(&name).find(|p| p.args == types).map(|p| p.oid).ok_or_else(unknown)?)
            }
            "operator" => {
                exactly(2, args, "argument")?;
                let side = |a: &String| if a.eq_ignore_ascii_case("none") { Ok(0) } else { type_of(a) };
                let (left, right) = (side(&args[0])?, side(&args[1])?);
                let name = system(names)?;
                let unknown = || SqlError::new(state::UNDEFINED_FUNCTION, format!("operator does not exist: {}", names.join(".")));
                (OPERATOR, pgdata::operators_by_name(&name).find(|o| o.left == left && o.right == right).map(|o| o.oid).ok_or_else(unknown)?)
            }
            "cast" => {
                exactly(1, names, "name")?;
                exactly(1, args, "argument")?;
                let (from, to) = (type_of(&names[0])?, type_of(&args[0])?);
                let unknown = || SqlError::new(state::UNDEFINED_OBJECT, format!("cast from type {} to type {} does not exist", names[0], args[0]));
                (CAST, pgdata::cast(from, to).map(|k| k.oid).ok_or_else(unknown)?)
            }
            "collation" => {
                let name = system(names)?;
                let found = pgdata::collations().iter().find(|c| c.name == name).map(|c| c.oid);
                let unknown = || missing("collation", &format!("{}\" for encoding \"UTF8", names.join(".")));
                (COLLATION, found.ok_or_else(unknown)?)
            }
            "domain constraint" => {
                exactly(1, names, "name")?;
                exactly(1, args, "argument")?;
                let domain = type_of(&names[0])?;
                let found = constraints(&self.catalog).into_iter().find(|k| k.domain == domain && k.name == args[0]);
                let unknown = || SqlError::new(state::UNDEFINED_OBJECT, format!("constraint \"{}\" for domain {} does not exist", args[0], names[0]));
                (CONSTRAINT, found.ok_or_else(unknown)?.oid)
            }
            "table constraint" | "default value" | "rule" | "trigger" | "policy" => {
                let Some((part, of)) = names.split_last().filter(|s| !s.1.is_empty()) else {
                    return Err(wrong("must specify relation and object name"));
                };
                let oid = relation(of)?;
                let table = of.last().map_or("", String::as_str);
                let unknown = |what: &str| SqlError::new(state::UNDEFINED_OBJECT, format!("{what} \"{part}\" for table \"{table}\" does not exist"));
                match kind {
                    "table constraint" => {
                        let found = constraints(&self.catalog).into_iter().find(|k| k.relation == oid && k.name == *part);
                        (CONSTRAINT, found.ok_or_else(|| unknown("constraint"))?.oid)
                    }
                    "rule" => {
                        let view = self.item(oid).filter(|i| part == "_RETURN" && matches!(i.kind, ItemKind::View { .. } | ItemKind::MaterializedView { .. }));
                        let none = || SqlError::new(state::UNDEFINED_OBJECT, format!("rule \"{part}\" for relation \"{table}\" does not exist"));
                        (REWRITE, rule_oid(view.ok_or_else(none)?))
                    }
                    "default value" => {
                        let n = self.columns(oid).iter().position(|c| c == part);
                        let no_column = || SqlError::new(state::UNDEFINED_COLUMN, format!("column \"{part}\" of relation \"{}\" does not exist", of.join(".")));
                        let n = n.ok_or_else(no_column)?;
                        let item = self.item(oid).filter(|i| has_default(i, n));
                        let none = || {
                            SqlError::new(
                                state::UNDEFINED_OBJECT,
                                format!("default value for column \"{part}\" of relation \"{}\" does not exist", of.join(".")),
                            )
                        };
                        (DEFAULT, default_oid(item.ok_or_else(none)?, n as i64 + 1))
                    }
                    other => return Err(unknown(other)),
                }
            }
            other => return Err(invalid(format!("unrecognized object type \"{other}\""))),
        };
        Ok((place.0, place.1, 0))
    }
}

fn has_default(i: &Item, n: usize) -> bool {
    let has = |list: &[Option<String>]| list.get(n).is_some_and(Option::is_some);
    match &i.kind {
        ItemKind::Table(t) => has(&t.defaults) || has(&t.generated),
        ItemKind::View { defaults, .. } => has(defaults),
        _ => false,
    }
}
