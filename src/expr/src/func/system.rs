//! Functions over the session and the catalog, as psql and drivers ask them.
//!
//! Not here: `set_config`, `pg_sleep`: the session carries them out (`adapter`).

use super::cast::{text_in, text_out};
use super::lift::{constant, Call, Str};
use super::text::{parse_ident, quote_ident};
use super::tsearch::dict as tsearch;
use super::Entry;
use crate::catalog;
use crate::ctx::EvalCtx;
use crate::{f1, f2, kernel, val, vals};
use repr::error::state;
use repr::style::RegNames;
use repr::types::RegKind;
use repr::{Numeric, SqlError, SqlType, Value};
use std::sync::OnceLock;

/// `pg_namespace.oid` of pg_catalog.
const PG_CATALOG: u32 = 11;

/// The parts of a possibly qualified name as reg* input takes it: an unquoted part is anything up to a dot or blank.
/// Errors: 42602.
pub fn name_parts(name: &str) -> Result<Vec<String>, SqlError> {
    let bad = || SqlError::new(state::INVALID_NAME, "invalid name syntax");
    let mut parts = Vec::new();
    let mut rest = name.trim();
    loop {
        if let Some(quoted) = rest.strip_prefix('"') {
            let mut part = String::new();
            let mut tail = quoted;
            loop {
                let i = tail.find('"').ok_or_else(bad)?;
                part.push_str(&tail[..i]);
                tail = &tail[i + 1..];
                match tail.strip_prefix('"') {
                    Some(t) => {
                        part.push('"');
                        tail = t;
                    }
                    None => break,
                }
            }
            parts.push(part);
            rest = tail;
        } else {
            let end = rest.find(|c: char| c == '.' || c.is_ascii_whitespace()).unwrap_or(rest.len());
            if end == 0 {
                return Err(bad());
            }
            parts.push(rest[..end].to_ascii_lowercase());
            rest = &rest[end..];
        }
        rest = rest.trim_start();
        match rest.strip_prefix('.') {
            Some(t) => rest = t.trim_start(),
            None if rest.is_empty() => return Ok(parts),
            None => return Err(bad()),
        }
    }
}

/// What `version()` says; drivers read the number.
pub fn version() -> String {
    format!("PostgreSQL 15.0 (Riverdelta {}) on {}-{}", env!("CARGO_PKG_VERSION"), std::env::consts::ARCH, std::env::consts::OS)
}

/// The names of the reg* types, from the session's catalog.
pub struct CatalogNames(pub std::sync::Arc<dyn crate::CatalogView>);

impl RegNames for CatalogNames {
    fn reg_name(&self, kind: RegKind, oid: u32) -> Option<String> {
        let proc_name = |p: &catalog::PgProc| quote_ident(p.name);
        let arg_names = |args: &[u32]| args.iter().map(|a| type_name(*a, &*self.0)).collect::<Vec<_>>().join(",");
        match kind {
            RegKind::Class => self.0.relation_name(oid),
            RegKind::Type => (self.0.type_by_oid(oid).is_some() || catalog::type_by_oid(oid).is_some()).then(|| type_name(oid, &*self.0)),
            // With its schema where the name alone does not tell which.
            RegKind::Proc => catalog::proc_by_oid(oid).map(|p| match catalog::procs_by_name(p.name).nth(1) {
                Some(_) => format!("pg_catalog.{}", proc_name(p)),
                None => proc_name(p),
            }),
            RegKind::Procedure => catalog::proc_by_oid(oid).map(|p| format!("{}({})", proc_name(p), arg_names(&p.args))),
            RegKind::Oper => catalog::operator_by_oid(oid).map(|o| match catalog::operators_by_name(o.name).nth(1) {
                Some(_) => format!("pg_catalog.{}", o.name),
                None => o.name.to_owned(),
            }),
            RegKind::Operator => catalog::operator_by_oid(oid).map(|o| {
                let side = |t: u32| if t == 0 { "NONE".to_owned() } else { type_name(t, &*self.0) };
                format!("{}({},{})", o.name, side(o.left), side(o.right))
            }),
            RegKind::Namespace => self.0.namespace_name(oid).map(|n| quote_ident(&n)),
            RegKind::Role => self.0.role_name(oid).map(|n| quote_ident(&n)),
            RegKind::Collation => catalog::collations().iter().find(|c| c.oid == oid).map(|c| quote_ident(c.name)),
            RegKind::Config => tsearch::Config::of_oid(oid).ok().map(|c| c.name().to_owned()),
            RegKind::Dictionary => tsearch::Dictionary::ALL.into_iter().find(|d| d.oid() == oid).map(|d| d.name().to_owned()),
        }
    }

    fn reg_oid(&self, kind: RegKind, name: &str) -> Result<u32, SqlError> {
        let missing = |code, what: &str| SqlError::new(code, format!("{what} \"{name}\" does not exist"));
        match kind {
            RegKind::Class => {
                let parts = name_parts(name)?;
                self.check_schema(&parts, name)?;
                self.0.relation_oid(&parts).ok_or_else(|| missing(state::UNDEFINED_TABLE, "relation"))
            }
            RegKind::Type => match type_by_name(name, &*self.0).map(|t| t.oid()).or_else(|| bare_type(name)) {
                Some(oid) => Ok(oid),
                None => {
                    self.check_schema(&parse_ident(name, true).unwrap_or_default(), name)?;
                    Err(missing(state::UNDEFINED_OBJECT, "type"))
                }
            },
            RegKind::Proc => {
                let last = self.system_name(name)?.ok_or_else(|| missing(state::UNDEFINED_FUNCTION, "function"))?;
                let mut all = catalog::procs_by_name(&last);
                match (all.next(), all.next()) {
                    (Some(p), None) => Ok(p.oid),
                    (Some(_), Some(_)) => Err(SqlError::new(state::AMBIGUOUS_FUNCTION, format!("more than one function named \"{name}\""))),
                    _ => Err(missing(state::UNDEFINED_FUNCTION, "function")),
                }
            }
            RegKind::Procedure => {
                let (head, args) = self.signature(name)?;
                let last = self.system_name(head)?.ok_or_else(|| missing(state::UNDEFINED_FUNCTION, "function"))?;
                let hit = catalog::procs_by_name(&last).find(|p| p.args == args);
                hit.map(|p| p.oid).ok_or_else(|| missing(state::UNDEFINED_FUNCTION, "function"))
            }
            RegKind::Oper => {
                let unknown = || SqlError::new(state::UNDEFINED_FUNCTION, format!("operator does not exist: {name}"));
                let last = self.system_name(name)?.ok_or_else(unknown)?;
                let mut all = catalog::operators_by_name(&last);
                match (all.next(), all.next()) {
                    (Some(o), None) => Ok(o.oid),
                    (Some(_), Some(_)) => Err(SqlError::new(state::AMBIGUOUS_FUNCTION, format!("more than one operator named {name}"))),
                    _ => Err(unknown()),
                }
            }
            RegKind::Operator => {
                let (head, args) = self.signature(name)?;
                let [left, right] = args[..] else {
                    let e = match args.len() {
                        1 => SqlError::new(state::UNDEFINED_PARAMETER, "missing argument")
                            .with_hint("Use NONE to denote the missing argument of a unary operator."),
                        _ => SqlError::new(state::TOO_MANY_ARGUMENTS, "too many arguments").with_hint("Provide two argument types for operator."),
                    };
                    return Err(e);
                };
                // Of a schema that is not there too: no operator.
                let last = self.system_name(head).ok().flatten();
                let hit = last.and_then(|n| catalog::operators_by_name(&n).find(|o| o.left == left && o.right == right));
                hit.map(|o| o.oid).ok_or_else(|| SqlError::new(state::UNDEFINED_FUNCTION, format!("operator does not exist: {name}")))
            }
            RegKind::Namespace => self.0.namespace_oid(&single_name(name)?).ok_or_else(|| missing(state::INVALID_SCHEMA_NAME, "schema")),
            RegKind::Role => self.0.role_oid(&single_name(name)?).ok_or_else(|| missing(state::UNDEFINED_OBJECT, "role")),
            RegKind::Collation => {
                let last = self.system_name(name)?;
                let hit = last.and_then(|n| catalog::collations().iter().find(|c| c.name == n));
                hit.map(|c| c.oid).ok_or_else(|| SqlError::new(state::UNDEFINED_OBJECT, format!("collation \"{name}\" for encoding \"UTF8\" does not exist")))
            }
            RegKind::Config => tsearch::Config::of_name(name).map(tsearch::Config::oid),
            RegKind::Dictionary => tsearch::Dictionary::of_name(name).map(tsearch::Dictionary::oid),
        }
    }
}

impl CatalogNames {
    /// Errors: 3F000 for a schema that is not there, 42601 for too many parts.
    fn check_schema(&self, parts: &[String], written: &str) -> Result<(), SqlError> {
        match parts {
            [_] | [] => Ok(()),
            [.., schema, _] if parts.len() <= 3 => match self.0.namespace_oid(schema) {
                Some(_) => Ok(()),
                None => Err(SqlError::new(state::INVALID_SCHEMA_NAME, format!("schema \"{schema}\" does not exist"))),
            },
            _ => Err(SqlError::new(state::SYNTAX_ERROR, format!("improper relation name (too many dotted names): {written}"))),
        }
    }

    /// The last part of a name; nothing if it is of a schema other than `pg_catalog`, where all functions and operators are.
    fn system_name(&self, name: &str) -> Result<Option<String>, SqlError> {
        let mut parts = name_parts(name)?;
        self.check_schema(&parts, name)?;
        let last = parts.pop().unwrap_or_default();
        Ok(parts.last().is_none_or(|s| s == "pg_catalog").then_some(last))
    }

    /// `name(type, …)`: the name, and the types' OIDs, 0 for NONE.
    fn signature<'n>(&self, text: &'n str) -> Result<(&'n str, Vec<u32>), SqlError> {
        let bad = |m: &str| SqlError::new(state::INVALID_TEXT_REPRESENTATION, m);
        let (head, args) = text.split_once('(').ok_or_else(|| bad("expected a left parenthesis"))?;
        let args = args.trim_end().strip_suffix(')').ok_or_else(|| bad("expected a right parenthesis"))?;
        let args: Vec<&str> = if args.trim().is_empty() { Vec::new() } else { args.split(',').map(str::trim).collect() };
        let oid = |a: &&str| match a.eq_ignore_ascii_case("none") {
            true => Ok(0),
            false => self.reg_oid(RegKind::Type, a),
        };
        Ok((head, args.iter().map(oid).collect::<Result<_, _>>()?))
    }
}

/// A name of one part. Errors: 42602.
fn single_name(name: &str) -> Result<String, SqlError> {
    match <[String; 1]>::try_from(name_parts(name)?) {
        Ok([n]) => Ok(n),
        Err(_) => Err(SqlError::new(state::INVALID_NAME, "invalid name syntax")),
    }
}

/// A type's name as `format_type(oid, NULL)` prints it.
fn type_name(oid: u32, view: &dyn crate::CatalogView) -> String {
    match view.type_by_oid(oid).or_else(|| SqlType::from_oid(oid)) {
        Some(SqlType::Array(e)) => format!("{}[]", type_name(e.oid(), view)),
        Some(t) => view.type_name(oid).unwrap_or_else(|| match &t {
            SqlType::Enum(e) => quote_ident(&e.name),
            SqlType::UserRange(r) => quote_ident(&r.name),
            SqlType::UserMultirange(r) => quote_ident(&r.multirange_name),
            t => t.sql_name(),
        }),
        None => match catalog::type_by_oid(oid) {
            Some(t) if t.elem != 0 && t.name.starts_with('_') => format!("{}[]", type_name(t.elem, view)),
            Some(t) => match t.name {
                "bit" => "bit".into(),
                "varbit" => "bit varying".into(),
                n => quote_ident(n),
            },
            None => "???".into(),
        },
    }
}

const INTERVAL_FIELDS: [&str; 13] = [
    "year",
    "month",
    "day",
    "hour",
    "minute",
    "second",
    "year to month",
    "day to hour",
    "day to minute",
    "day to second",
    "hour to minute",
    "hour to second",
    "minute to second",
];

/// A type by its SQL or catalog name, array brackets and modifiers allowed.
pub fn type_by_name(name: &str, view: &dyn crate::CatalogView) -> Option<SqlType> {
    let name = name.trim();
    if let Some(elem) = name.strip_suffix("[]") {
        return type_by_name(elem, view).map(SqlType::array_of);
    }
    let plain = match (name.find('('), name.find(')')) {
        (Some(a), Some(b)) if a < b => format!("{}{}", name[..a].trim_end(), &name[b + 1..]),
        _ => name.to_owned(),
    };
    let words: Vec<&str> = plain.split_ascii_whitespace().collect();
    let alias = match words.join(" ").to_ascii_lowercase().as_str() {
        "int" | "integer" => "int4",
        "smallint" => "int2",
        "bigint" => "int8",
        "real" => "float4",
        "double precision" | "float" => "float8",
        "boolean" => "bool",
        "decimal" | "dec" => "numeric",
        "character varying" | "char varying" | "national character varying" | "national char varying" | "nchar varying" => "varchar",
        "character" | "char" | "national character" | "national char" | "nchar" => "bpchar",
        "bit varying" => "varbit",
        "timestamp without time zone" => "timestamp",
        "timestamp with time zone" => "timestamptz",
        "time without time zone" => "time",
        "time with time zone" => "timetz",
        // INTERVAL with the fields that it may be limited to.
        w if w.strip_prefix("interval ").is_some_and(|f| INTERVAL_FIELDS.contains(&f)) => "interval",
        _ => "",
    };
    if !alias.is_empty() {
        return SqlType::from_pg_name(alias);
    }
    let parts = parse_ident(&plain, true).ok()?;
    match parts.as_slice() {
        [n] => SqlType::from_pg_name(n).or_else(|| view.type_by_name(&parts)),
        [s, n] if s == "pg_catalog" => SqlType::from_pg_name(n),
        _ => view.type_by_name(&parts),
    }
}

/// A type of PostgreSQL's that has no values here, such as `internal` and `anyelement`.
fn bare_type(name: &str) -> Option<u32> {
    if let Some(elem) = name.trim().strip_suffix("[]") {
        return catalog::type_by_oid(bare_type(elem)?).map(|t| t.array).filter(|a| *a != 0);
    }
    let parts = parse_ident(name, true).ok()?;
    match parts.as_slice() {
        [n] => catalog::type_by_name(n),
        [s, n] if s == "pg_catalog" => catalog::type_by_name(n),
        _ => None,
    }
    .map(|t| t.oid)
}

/// `format_type(oid, typmod)`.
pub fn format_type(oid: u32, typmod: Option<i32>, view: &dyn crate::CatalogView) -> String {
    if oid == 0 {
        return "-".into();
    }
    let Some(typmod) = typmod else { return type_name(oid, view) };
    let ty = view.type_by_oid(oid).or_else(|| SqlType::from_oid(oid));
    match ty {
        Some(SqlType::Array(e)) => format!("{}[]", format_type(e.oid(), Some(typmod), view)),
        Some(SqlType::Bpchar) if typmod < 0 => "bpchar".into(),
        // Without a length it would be read as bit(1).
        Some(SqlType::Bit) if typmod < 0 => "\"bit\"".into(),
        Some(t) if typmod >= 0 => with_typmod(&t, typmod),
        _ => type_name(oid, view),
    }
}

/// A type's name with its modifier; -1: none.
pub fn with_typmod(ty: &SqlType, typmod: i32) -> String {
    match ty {
        SqlType::Array(e) => format!("{}[]", with_typmod(e, typmod)),
        _ if typmod < 0 => ty.sql_name(),
        SqlType::Varchar | SqlType::Bpchar if typmod >= 4 => format!("{}({})", ty.sql_name(), typmod - 4),
        SqlType::Bit | SqlType::VarBit => format!("{}({typmod})", ty.sql_name()),
        SqlType::Numeric if typmod >= 4 => {
            let m = typmod - 4;
            let scale = ((m & 0x7ff) ^ 1024) - 1024;
            format!("numeric({},{scale})", m >> 16 & 0xffff)
        }
        SqlType::Timestamp => format!("timestamp({typmod}) without time zone"),
        SqlType::TimestampTz => format!("timestamp({typmod}) with time zone"),
        SqlType::Time => format!("time({typmod}) without time zone"),
        SqlType::TimeTz => format!("time({typmod}) with time zone"),
        SqlType::Interval => {
            let (fields, precision) = (typmod >> 16 & 0x7fff, typmod & 0xffff);
            let name = match fields {
                4 => " year",
                2 => " month",
                8 => " day",
                1024 => " hour",
                2048 => " minute",
                4096 => " second",
                6 => " year to month",
                1032 => " day to hour",
                3080 => " day to minute",
                7176 => " day to second",
                3072 => " hour to minute",
                7168 => " hour to second",
                6144 => " minute to second",
                _ => "",
            };
            if precision == 0xffff {
                format!("interval{name}")
            } else {
                format!("interval{name}({precision})")
            }
        }
        t => t.sql_name(),
    }
}

/// The schemas of the search path that exist.
fn path(ctx: &EvalCtx) -> Vec<String> {
    let own = |s: &String| if s == "$user" { ctx.user.clone() } else { s.clone() };
    ctx.search_path.iter().map(own).filter(|s| ctx.catalog.namespace_oid(s).is_some()).collect()
}

fn current_schemas(implicit: bool, ctx: &EvalCtx) -> Value {
    let mut schemas = path(ctx);
    if implicit && !schemas.iter().any(|s| s == "pg_catalog") {
        schemas.insert(0, "pg_catalog".into());
    }
    Value::array(schemas.into_iter().map(Value::Text).collect())
}

/// Microseconds since 2000-01-01 by the machine's clock.
fn clock() -> i64 {
    chrono::Utc::now().timestamp_micros() - 946_684_800_000_000
}

/// The schema of the session's temporary tables; 0 while there is none.
fn own_temp_schema(ctx: &EvalCtx) -> u32 {
    ctx.catalog.backend().and_then(|b| ctx.catalog.namespace_oid(&format!("pg_temp_{}", b.pid))).unwrap_or(0)
}

fn setting(name: &str, ctx: &EvalCtx) -> Option<String> {
    ctx.catalog.setting(name).or_else(|| match name.to_ascii_lowercase().as_str() {
        "timezone" => Some(ctx.timezone.clone()),
        "search_path" => Some(ctx.search_path.iter().map(|s| quote_ident(s)).collect::<Vec<_>>().join(", ")),
        "server_version" => Some("15.0".into()),
        "server_version_num" => Some("150000".into()),
        "server_encoding" | "client_encoding" => Some("UTF8".into()),
        _ => None,
    })
}

pub(super) fn oid_of(v: &Value) -> u32 {
    v.as_i64().and_then(|o| u32::try_from(o).ok()).unwrap_or(0)
}

/// Visibility of a built-in object: true, or NULL if there is none.
fn known(exists: bool) -> Value {
    if exists {
        Value::Bool(true)
    } else {
        Value::Null
    }
}

fn text_or_null(s: Option<String>) -> Value {
    s.map_or(Value::Null, Value::Text)
}

/// A relation's OID from its name, or the error that it does not exist.
fn relation(name: &str, ctx: &EvalCtx) -> Result<u32, SqlError> {
    let parts = name_parts(name)?;
    ctx.catalog.relation_oid(&parts).ok_or_else(|| SqlError::new(state::UNDEFINED_TABLE, format!("relation \"{}\" does not exist", parts.join("."))))
}

fn view_definition(a: &[Value], call: &Call<'_>) -> Result<Value, SqlError> {
    let oid = match &a[0] {
        Value::Text(name) => relation(name, call.ctx)?,
        v => oid_of(v),
    };
    // The column at which lines wrap asks for the pretty form too.
    Ok(text_or_null(call.ctx.catalog.view_definition(oid, a.get(1).is_some_and(|p| *p != Value::Bool(false)))))
}

/// `to_reg*`: NULL for what does not exist; a name that is none is an error.
fn to_reg(a: &[Value], call: &Call<'_>) -> Result<Value, SqlError> {
    match text_in(a[0].as_str().unwrap_or(""), call.ret, call.ctx) {
        Err(e) if matches!(e.code, state::INVALID_NAME | state::INVALID_TEXT_REPRESENTATION) => Err(e),
        other => Ok(other.unwrap_or(Value::Null)),
    }
}

/// Arguments of a function as `pg_get_function_arguments` lists them.
fn function_arguments(oid: u32, ctx: &EvalCtx) -> Option<String> {
    let p = catalog::proc_by_oid(oid)?;
    let types = p.all_args.as_ref().unwrap_or(&p.args);
    let first_default = p.args.len() - p.defaults.len().min(p.args.len());
    let mut parts = Vec::new();
    let mut input = 0;
    for (i, t) in types.iter().enumerate() {
        let mode = match p.modes.as_ref().and_then(|m| m.get(i)) {
            Some('o') => "OUT ",
            Some('b') => "INOUT ",
            Some('v') => "VARIADIC ",
            Some('t') => continue,
            _ => "",
        };
        let name = p.arg_names.get(i).filter(|n| !n.is_empty()).map(|n| format!("{} ", quote_ident(n))).unwrap_or_default();
        let default = match mode {
            "OUT " => String::new(),
            _ => {
                input += 1;
                p.defaults.get((input - 1usize).wrapping_sub(first_default)).map(|d| format!(" DEFAULT {d}")).unwrap_or_default()
            }
        };
        parts.push(format!("{mode}{name}{}{default}", type_name(*t, &*ctx.catalog)));
    }
    // The arguments of WITHIN GROUP come behind ORDER BY; VARIADIC ones are both.
    let Some(aggregate) = catalog::aggregate_by_oid(oid).filter(|a| a.kind != 'n') else { return Some(parts.join(", ")) };
    let direct = usize::from(aggregate.direct_args).min(parts.len());
    let ordered = if direct == parts.len() { &parts[direct - 1..] } else { &parts[direct..] };
    let before = if direct == 0 { String::new() } else { format!("{} ", parts[..direct].join(", ")) };
    Some(format!("{before}ORDER BY {}", ordered.join(", ")))
}

const SIZE_UNITS: [&str; 6] = ["bytes", "kB", "MB", "GB", "TB", "PB"];

/// Rounds to half, away from zero, what was divided by one bit less than its unit asks for.
fn size_pretty(n: &Numeric) -> Result<String, SqlError> {
    let (mut size, mut unit) = (n.clone(), 0);
    while unit + 1 < SIZE_UNITS.len() {
        let limit = Numeric::from_i128(if unit == 0 { 10 * 1024 } else { 20 * 1024 - 1 });
        if size.abs().sub(&limit)?.is_negative() {
            break;
        }
        // Each step keeps one more bit, so that the last division can round.
        size = size.div_trunc(&Numeric::from_i128(if unit == 0 { 1 << 9 } else { 1 << 10 }))?;
        unit += 1;
    }
    if unit > 0 {
        let away = Numeric::from_i128(if size.is_negative() { -1 } else { 1 });
        size = size.add(&away)?.div_trunc(&Numeric::from_i128(2))?;
    }
    let mut out = String::new();
    size.print(&mut out);
    Ok(format!("{out} {}", SIZE_UNITS[unit]))
}

fn size_bytes(s: &str) -> Result<i64, SqlError> {
    let t = s.trim();
    let bad = || SqlError::new(state::INVALID_PARAMETER_VALUE, format!("invalid size: \"{s}\""));
    let digits = |at: usize| t[at..].bytes().take_while(u8::is_ascii_digit).count();
    let mut at = usize::from(t.starts_with(['+', '-']));
    let whole = digits(at);
    at += whole;
    let mut any = whole > 0;
    if t[at..].starts_with('.') {
        let fraction = digits(at + 1);
        any |= fraction > 0;
        at += 1 + fraction;
    }
    if !any {
        return Err(bad());
    }
    // An exponent only if it has digits: else the letter begins the unit.
    if t[at..].starts_with(['e', 'E']) {
        let sign = usize::from(t[at + 1..].starts_with(['+', '-']));
        let exponent = digits(at + 1 + sign);
        if exponent > 0 {
            at += 1 + sign + exponent;
        }
    }
    let (number, unit) = (&t[..at], t[at..].trim());
    let power = match unit.to_ascii_lowercase().as_str() {
        "" => 0,
        lower => SIZE_UNITS.iter().position(|u| u.eq_ignore_ascii_case(lower)).ok_or_else(|| {
            bad()
                .with_detail(format!("Invalid size unit: \"{unit}\"."))
                .with_hint("Valid units are \"bytes\", \"B\", \"kB\", \"MB\", \"GB\", \"TB\", and \"PB\".")
        })?,
    };
    Numeric::parse(number)?.mul(&Numeric::from_i128(1 << (10 * power)))?.to_int("bigint")
}

fn comment(class: &str, a: &[Value], column: i32, ctx: &EvalCtx) -> Value {
    text_or_null(ctx.catalog.comment(class, oid_of(&a[0]), column))
}

fn column_size(v: &Value, ty: &SqlType) -> i32 {
    match (ty.typlen(), v) {
        (n, _) if n > 0 => n.into(),
        (_, Value::Text(s)) => s.len() as i32 + if s.len() < 127 { 1 } else { 4 },
        (_, Value::Bytea(b)) => b.len() as i32 + if b.len() < 127 { 1 } else { 4 },
        (_, v) => {
            let mut out = Vec::new();
            repr::column::encode_value(v, ty, &mut out);
            out.len() as i32 + 4
        }
    }
}

fn address(of: Option<std::net::SocketAddr>) -> Value {
    let Some(addr) = of.map(|a| a.ip().to_canonical()) else { return Value::Null };
    Value::Inet(repr::InetValue { addr, bits: if addr.is_ipv4() { 32 } else { 128 } })
}

fn port(of: Option<std::net::SocketAddr>) -> Value {
    of.map_or(Value::Null, |a| Value::Int4(i32::from(a.port())))
}

fn signal(pid: &Value, end: bool, ctx: &crate::EvalCtx) -> Result<Value, SqlError> {
    let Value::Int4(pid) = pid else { return Ok(Value::Null) };
    Ok(Value::Bool(ctx.catalog.signal(*pid, end)?))
}

/// When this process started: the first call tells.
pub fn started() -> i64 {
    static STARTED: OnceLock<i64> = OnceLock::new();
    *STARTED.get_or_init(clock)
}

pub const FUNCS: &[Entry] = &[
    kernel!(["pgsql_version", "mz_version"], |c| constant(c, |_| Ok(Value::Text(version())))),
    kernel!(["mz_environment_id"], |c| constant(c, |ctx| Ok(Value::Text(ctx.database.clone())))),
    kernel!(["current_database"], |c| constant(c, |ctx| Ok(Value::Text(ctx.database.clone())))),
    kernel!(["current_user", "session_user"], |c| constant(c, |ctx| Ok(Value::Text(ctx.user.clone())))),
    kernel!(["current_schema"], |c| constant(c, |ctx| Ok(text_or_null(path(ctx).into_iter().next())))),
    val!(["current_schemas"], |a, call| Ok(current_schemas(a[0] == Value::Bool(true), call.ctx))),
    kernel!(? ["now"], |c| constant(c, |ctx| ctx.now().map(Value::TimestampTz))),
    kernel!(? ["statement_timestamp"], |c| constant(c, |ctx| match ctx.statement_micros {
        Some(t) => Ok(Value::TimestampTz(t)),
        None => ctx.now().map(Value::TimestampTz),
    })),
    kernel!(["clock_timestamp"], |c| constant(c, |_| Ok(Value::TimestampTz(clock())))),
    kernel!(? ["mz_now"], |c| constant(c, |ctx| match ctx.logical_now {
        Some(t) => Ok(Value::Int8(i64::try_from(t).unwrap_or(i64::MAX))),
        None => Err(SqlError::unsupported("mz_now() here", "in a maintained view, compare mz_now() with an expression over columns in WHERE: a temporal filter")),
    })),
    kernel!(["pg_postmaster_start_time", "pg_conf_load_time"], |c| constant(c, |_| Ok(Value::TimestampTz(started())))),
    kernel!(["drandom"], |c| {
        let values: Vec<f64> = (0..c.len).map(|_| c.ctx.random.as_ref().map_or_else(rand::random, |r| r.draw())).collect();
        std::sync::Arc::new(arrow_array::Float64Array::from(values))
    }),
    kernel!(["timeofday"], |c| constant(c, |ctx| {
        let (now, zone) = (clock(), repr::datetime::TimeZone::parse(&ctx.timezone).unwrap_or(repr::datetime::TimeZone::UTC));
        let local = repr::datetime::calendar::Civil::from_micros(zone.to_local(now));
        let zone = super::formatting::print::Zone { east_secs: zone.offset_at(now), name: zone.abbreviation_at(now).unwrap_or_default() };
        Ok(Value::Text(super::formatting::print::timestamp(&local, Some(zone), "Dy Mon DD HH24:MI:SS.US YYYY TZ")))
    })),
    // The session sets the seed (`adapter`).
    val!(? ["setseed"], |_, _| Err(SqlError::unsupported("setseed() of values from rows", "call it with a constant"))),
    kernel!(["pg_backend_pid"], |c| constant(c, |ctx| { Ok(Value::Int4(ctx.catalog.backend().map_or(std::process::id() as i32, |b| b.pid))) })),
    kernel!(["pg_is_in_recovery", "pg_is_wal_replay_paused"], |c| constant(c, |_| Ok(Value::Bool(false)))),
    kernel!(["pg_jit_available"], |c| constant(c, |_| Ok(Value::Bool(false)))),
    kernel!(["pg_trigger_depth"], |c| constant(c, |_| Ok(Value::Int4(0)))),
    // The session takes and gives them back (`adapter`).
    val!(
        ? [
            "pg_advisory_lock_int8", "pg_advisory_lock_int4", "pg_advisory_lock_shared_int8", "pg_advisory_lock_shared_int4", "pg_try_advisory_lock_int8",
            "pg_try_advisory_lock_int4", "pg_try_advisory_lock_shared_int8", "pg_try_advisory_lock_shared_int4", "pg_advisory_unlock_int8",
            "pg_advisory_unlock_int4", "pg_advisory_unlock_shared_int8", "pg_advisory_unlock_shared_int4", "pg_advisory_unlock_all",
            "pg_advisory_xact_lock_int8", "pg_advisory_xact_lock_int4", "pg_advisory_xact_lock_shared_int8", "pg_advisory_xact_lock_shared_int4",
            "pg_try_advisory_xact_lock_int8", "pg_try_advisory_xact_lock_int4", "pg_try_advisory_xact_lock_shared_int8",
            "pg_try_advisory_xact_lock_shared_int4",
        ],
        |_, _| Err(SqlError::unsupported("advisory locks of values from rows", "call the function with constants"))
    ),
    val!(["pg_blocking_pids", "pg_safe_snapshot_blocking_pids"], |_, _| Ok(Value::array(Vec::new()))),
    kernel!(["pg_my_temp_schema"], |c| constant(c, |ctx| Ok(Value::UInt4(own_temp_schema(ctx))))),
    val!(["pg_is_other_temp_schema"], |a, call| {
        let is_temp = call.ctx.catalog.namespace_name(oid_of(&a[0])).is_some_and(|n| n.starts_with("pg_temp_"));
        Ok(Value::Bool(is_temp && oid_of(&a[0]) != own_temp_schema(call.ctx)))
    }),
    val!(["row_security_active", "row_security_active_name"], |_, _| Ok(Value::Bool(false))),
    vals!(["inet_client_addr"], |_, call| Ok(address(call.ctx.catalog.backend().and_then(|b| b.client)))),
    vals!(["inet_client_port"], |_, call| Ok(port(call.ctx.catalog.backend().and_then(|b| b.client)))),
    vals!(["inet_server_addr"], |_, call| Ok(address(call.ctx.catalog.backend().and_then(|b| b.server)))),
    vals!(["inet_server_port"], |_, call| Ok(port(call.ctx.catalog.backend().and_then(|b| b.server)))),
    vals!(["current_query"], |_, call| Ok(text_or_null(call.ctx.catalog.backend().map(|b| b.query)))),
    val!(? ["pg_cancel_backend"], |a, call| signal(&a[0], false, call.ctx)),
    // With a timeout, Postgres waits for the session to end; here it ends at once.
    val!(? ["pg_terminate_backend"], |a, call| signal(&a[0], true, call.ctx)),
    vals!(["pg_current_logfile"], |_, _| Ok(Value::Null)),
    val!(? ["show_config_by_name", "show_config_by_name_missing_ok"], |a, call| {
        let name = a[0].as_str().unwrap_or("");
        match setting(name, call.ctx) {
            Some(v) => Ok(Value::Text(v)),
            None if a.get(1) == Some(&Value::Bool(true)) => Ok(Value::Null),
            None => Err(SqlError::new(state::UNDEFINED_OBJECT, format!("unrecognized configuration parameter \"{name}\""))),
        }
    }),
    vals!(? ["set_config_by_name"], |a, call| {
        let (name, value) = (a[0].as_str().unwrap_or(""), a[1].as_str().unwrap_or(""));
        if setting(name, call.ctx).as_deref() == Some(value) || name == "jit" {
            return Ok(a[1].clone());
        }
        Err(SqlError::unsupported("set_config() of values from rows", "call it with constants, or use SET"))
    }),
    // The session sleeps; what is left depends on rows.
    val!(? ["pg_sleep", "3935", "3936"], |_, _| Err(SqlError::unsupported("sleeping for times from rows", "call pg_sleep() with a constant"))),
    val!(["pg_table_is_visible"], |a, call| {
        let oid = oid_of(&a[0]);
        let c = &call.ctx.catalog;
        Ok(if c.relation_name(oid).is_some() { Value::Bool(c.relation_is_visible(oid)) } else { Value::Null })
    }),
    val!(["pg_type_is_visible"], |a, call| {
        let oid = oid_of(&a[0]);
        Ok(match catalog::type_by_oid(oid) {
            None if call.ctx.catalog.type_by_oid(oid).is_some() => Value::Bool(call.ctx.catalog.type_is_visible(oid)),
            Some(t) => Value::Bool(t.namespace == PG_CATALOG),
            None => Value::Null,
        })
    }),
    val!(["pg_function_is_visible"], |a, _| Ok(known(catalog::proc_by_oid(oid_of(&a[0])).is_some()))),
    val!(["pg_operator_is_visible"], |a, _| Ok(known(catalog::operator_by_oid(oid_of(&a[0])).is_some()))),
    val!(["pg_opclass_is_visible"], |a, _| Ok(known(catalog::opclasses().iter().any(|o| o.oid == oid_of(&a[0]))))),
    val!(
        [
            "pg_opfamily_is_visible",
            "pg_collation_is_visible",
            "pg_conversion_is_visible",
            "pg_statistics_obj_is_visible",
            "pg_ts_config_is_visible",
            "pg_ts_dict_is_visible",
            "pg_ts_parser_is_visible",
            "pg_ts_template_is_visible",
            "pg_relation_is_publishable"
        ],
        |_, _| Ok(Value::Bool(true))
    ),
    vals!(["format_type"], |a, call| Ok(match (&a[0], &a[1]) {
        (Value::Null, _) => Value::Null,
        (oid, typmod) => Value::Text(format_type(oid_of(oid), typmod.as_i64().map(|t| t as i32), &*call.ctx.catalog)),
    })),
    vals!(["pg_typeof"], |_, call| Ok(Value::UInt4(call.arg_types[0].ty.oid()))),
    vals!(? ["pg_collation_for"], |_, call| match &call.arg_types[0].ty {
        SqlType::Text | SqlType::Varchar | SqlType::Bpchar => Ok(Value::text("\"default\"")),
        SqlType::Name => Ok(Value::text("\"C\"")),
        SqlType::Unknown => Ok(Value::Null),
        t => match catalog::type_by_oid(t.oid()) {
            Some(p) if p.collation == 0 => Err(SqlError::new(state::DATATYPE_MISMATCH, format!("collations are not supported by type {}", t.sql_name()))),
            _ => Ok(Value::Null),
        },
    }),
    val!(["pg_column_size"], |a, call| Ok(Value::Int4(column_size(&a[0], &call.arg_types[0].ty)))),
    val!(["pg_get_userbyid"], |a, call| {
        let oid = oid_of(&a[0]);
        Ok(Value::Text(call.ctx.catalog.role_name(oid).unwrap_or_else(|| format!("unknown (OID={oid})"))))
    }),
    val!(? ["pg_get_viewdef", "pg_get_viewdef_ext", "pg_get_viewdef_name", "pg_get_viewdef_name_ext", "pg_get_viewdef_wrap"], view_definition),
    val!(["pg_get_indexdef"], |a, call| Ok(text_or_null(call.ctx.catalog.index_definition(oid_of(&a[0]), 0, false)))),
    val!(["pg_get_indexdef_ext"], |a, call| {
        let column = a[1].as_i64().and_then(|c| i32::try_from(c).ok()).unwrap_or(0);
        Ok(text_or_null(call.ctx.catalog.index_definition(oid_of(&a[0]), column, a[2] == Value::Bool(true))))
    }),
    val!(["pg_get_constraintdef", "pg_get_constraintdef_ext"], |a, call| {
        Ok(text_or_null(call.ctx.catalog.constraint_definition(oid_of(&a[0]), a.get(1) == Some(&Value::Bool(true)))))
    }),
    // Expressions are kept as text.
    val!(["pg_get_expr", "pg_get_expr_ext"], |a, call| {
        let text = text_out(&a[0], &call.arg_types[0].ty, call.ctx);
        Ok(Value::Text(call.ctx.catalog.expression(&text, oid_of(&a[1]), a.get(2) == Some(&Value::Bool(true)))))
    }),
    val!(["pg_get_ruledef", "pg_get_ruledef_ext"], |a, call| {
        Ok(text_or_null(call.ctx.catalog.rule_definition(oid_of(&a[0]), a.get(1) == Some(&Value::Bool(true)))))
    }),
    val!(
        [
            "pg_get_triggerdef",
            "pg_get_triggerdef_ext",
            "pg_get_statisticsobjdef",
            "pg_get_statisticsobjdef_columns",
            "pg_get_statisticsobjdef_expressions",
            "pg_get_partkeydef",
            "pg_get_partition_constraintdef",
            "pg_get_function_sqlbody",
            "pg_get_functiondef",
            "pg_get_function_arg_default",
            "pg_get_replica_identity_index",
            "pg_relation_filenode",
            "pg_relation_filepath",
            "pg_index_column_has_property",
            "pg_index_has_property",
            "pg_indexam_has_property",
            "pg_indexam_progress_phasename",
            "pg_collation_actual_version",
            "pg_database_collation_actual_version",
            "pg_partition_root",
            "pg_column_compression"
        ],
        |_, _| Ok(Value::Null)
    ),
    val!(["nextval_oid"], |a, call| Ok(Value::Int8(call.ctx.catalog.next_value(oid_of(&a[0]))?))),
    val!(["currval_oid"], |a, call| Ok(Value::Int8(call.ctx.catalog.current_value(Some(oid_of(&a[0])))?))),
    val!(["lastval"], |_, call| Ok(Value::Int8(call.ctx.catalog.current_value(None)?))),
    val!(["setval_oid", "setval3_oid"], |a, call| {
        let value = a[1].as_i64().unwrap_or(0);
        call.ctx.catalog.set_value(oid_of(&a[0]), value, a.get(2) != Some(&Value::Bool(false)))?;
        Ok(Value::Int8(value))
    }),
    val!(["pg_sequence_last_value"], |a, call| Ok(call.ctx.catalog.last_value(oid_of(&a[0])).map_or(Value::Null, Value::Int8))),
    val!(["pg_get_serial_sequence"], |a, call| {
        let table = relation(a[0].as_str().unwrap_or(""), call.ctx)?;
        Ok(text_or_null(call.ctx.catalog.owned_sequence(table, a[1].as_str().unwrap_or(""))?))
    }),
    val!(["pg_get_function_result"], |a, call| Ok(match catalog::proc_by_oid(oid_of(&a[0])) {
        Some(p) => {
            let set = if p.returns_set { "SETOF " } else { "" };
            Value::Text(format!("{set}{}", type_name(p.ret, &*call.ctx.catalog)))
        }
        None => Value::Null,
    })),
    val!(["oidvectortypes"], |a, call| {
        let Value::Array(types) = &a[0] else { return Ok(Value::Null) };
        let names: Vec<String> = types.elems.iter().map(|t| type_name(oid_of(t), &*call.ctx.catalog)).collect();
        Ok(Value::Text(names.join(", ")))
    }),
    val!(["pg_settings_get_flags"], |a, call| {
        let name = a[0].as_str().unwrap_or("");
        if setting(name, call.ctx).is_none() {
            return Ok(Value::Null);
        }
        let line = include_str!("../data/setting_flags.tsv").lines().find_map(|l| l.split_once('\t').filter(|(n, _)| n.eq_ignore_ascii_case(name)));
        Ok(Value::array(line.map_or_else(Vec::new, |(_, flags)| flags.split(' ').map(Value::text).collect())))
    }),
    kernel!(["pg_notification_queue_usage"], |c| constant(c, |_| Ok(Value::Float8(0.0)))),
    vals!(? ["pg_notify"], |_, _| Err(SqlError::unsupported("pg_notify()", "SUBSCRIBE tells of changes"))),
    vals!(["pg_stat_clear_snapshot", "pg_stat_force_next_flush", "pg_stat_reset"], |_, _| Ok(Value::text(""))),
    val!(["pg_stat_reset_single_table_counters"], |_, _| Ok(Value::text(""))),
    val!(["pg_get_function_arguments", "pg_get_function_identity_arguments"], |a, call| Ok(text_or_null(function_arguments(oid_of(&a[0]), call.ctx)))),
    val!(?
        ["to_regclass", "to_regtype", "to_regproc", "to_regprocedure", "to_regoper", "to_regoperator", "to_regnamespace", "to_regrole", "to_regcollation"],
        to_reg
    ),
    val!(["1215", "1993"], |a, call| Ok(comment(a[1].as_str().unwrap_or("pg_class"), a, 0, call.ctx))),
    val!(["1348"], |a, call| Ok(comment("pg_class", a, 0, call.ctx))),
    val!(["1216"], |a, call| Ok(comment("pg_class", a, a[1].as_i64().and_then(|c| i32::try_from(c).ok()).unwrap_or(0), call.ctx))),
    val!(
        [
            "pg_relation_size",
            "2325",
            "pg_total_relation_size",
            "pg_table_size",
            "pg_indexes_size",
            "pg_database_size_oid",
            "pg_database_size_name",
            "pg_tablespace_size_oid",
            "pg_tablespace_size_name"
        ],
        |_, _| Ok(Value::Int8(0))
    ),
    val!(
        [
            "pg_stat_get_numscans",
            "pg_stat_get_tuples_returned",
            "pg_stat_get_tuples_fetched",
            "pg_stat_get_tuples_inserted",
            "pg_stat_get_tuples_updated",
            "pg_stat_get_tuples_deleted",
            "pg_stat_get_live_tuples",
            "pg_stat_get_dead_tuples",
            "pg_stat_get_blocks_fetched",
            "pg_stat_get_blocks_hit",
            "pg_stat_get_tuples_hot_updated",
            "pg_stat_get_mod_since_analyze",
            "pg_stat_get_ins_since_vacuum",
            "pg_stat_get_vacuum_count",
            "pg_stat_get_autovacuum_count",
            "pg_stat_get_analyze_count",
            "pg_stat_get_autoanalyze_count",
            "pg_stat_get_last_vacuum_time",
            "pg_stat_get_last_autovacuum_time",
            "pg_stat_get_last_analyze_time",
            "pg_stat_get_last_autoanalyze_time",
            "pg_stat_get_xact_numscans",
            "pg_stat_get_xact_tuples_returned",
            "pg_stat_get_xact_tuples_fetched",
            "pg_stat_get_xact_tuples_inserted",
            "pg_stat_get_xact_tuples_updated",
            "pg_stat_get_xact_tuples_deleted",
            "pg_stat_get_xact_tuples_hot_updated",
            "pg_stat_get_xact_blocks_fetched",
            "pg_stat_get_xact_blocks_hit",
            "pg_stat_get_db_xact_commit",
            "pg_stat_get_db_xact_rollback",
            "pg_stat_get_db_blocks_fetched",
            "pg_stat_get_db_blocks_hit",
            "pg_stat_get_db_tuples_returned",
            "pg_stat_get_db_tuples_fetched",
            "pg_stat_get_db_tuples_inserted",
            "pg_stat_get_db_tuples_updated",
            "pg_stat_get_db_tuples_deleted",
            "pg_stat_get_db_deadlocks",
            "pg_stat_get_db_temp_files",
            "pg_stat_get_db_temp_bytes",
            "pg_stat_get_db_stat_reset_time"
        ],
        |_, call| Ok(match call.ret.ty {
            SqlType::Int8 => Value::Int8(0),
            SqlType::Float8 => Value::Float8(0.0),
            _ => Value::Null,
        })
    ),
    val!(["pg_relation_is_updatable"], |a, call| Ok(Value::Int4(call.ctx.catalog.updatable(oid_of(&a[0]), None)))),
    val!(["pg_column_is_updatable"], |a, call| {
        // UPDATE and DELETE, as the standard defines it.
        let column = a[1].as_i64().filter(|c| *c > 0);
        Ok(Value::Bool(column.is_some() && call.ctx.catalog.updatable(oid_of(&a[0]), column) & 20 == 20))
    }),
    val!(["pg_tablespace_location"], |_, _| Ok(Value::text(""))),
    f1!(? ["pg_size_pretty"], i64 => String, |n| size_pretty(&Numeric::from_i128(n.into()))),
    f1!(? ["pg_size_pretty_numeric"], repr::Numeric => String, |n| size_pretty(&n)),
    f1!(? ["pg_size_bytes"], Str => i64, size_bytes),
    f2!(["nameconcatoid"], Str, u32 => String, |n, o| repr::text::truncate_name(&format!("{n}_{o}")).to_owned()),
];

/// `current_timestamp` and its like, at an optional precision.
fn local_now(c: &mut super::CallArgs<'_>) -> arrow_array::ArrayRef {
    super::lift::on_values(c, false, |a, call| {
        let utc = call.ctx.now()?;
        let (local, east) = super::cast::with_style(call.ctx, |s| (s.timezone.to_local(utc), s.timezone.offset_at(utc)));
        let round = |t: i64| match a.first().and_then(Value::as_i64) {
            Some(p) => repr::datetime::round_micros(t, p.clamp(0, 6) as u32),
            None => t,
        };
        let day = 86_400_000_000;
        Ok(match call.ret.ty {
            SqlType::Date => Value::Date(local.div_euclid(day) as i32),
            SqlType::Time => Value::Time(round(local.rem_euclid(day))),
            SqlType::TimeTz => Value::TimeTz(repr::TimeTz { micros: round(local.rem_euclid(day)), zone_secs: -east }),
            SqlType::Timestamp => Value::Timestamp(round(local)),
            _ => Value::TimestampTz(round(utc)),
        })
    })
}

const fn stable(name: &'static str) -> super::FuncDef {
    super::FuncDef { name, oid: 0, strict: false, volatility: super::Volatility::Stable, fallible: true, kernel: local_now }
}

pub const INTERNAL: &[super::FuncDef] =
    &[stable("current_date"), stable("current_time"), stable("current_timestamp"), stable("localtime"), stable("localtimestamp")];
