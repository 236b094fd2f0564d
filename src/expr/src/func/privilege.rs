//! `has_table_privilege` and its kin: one role owns all and may do all, so the answer is true of whatever there is.
//!
//! Errors as in Postgres: an unknown role, object, column or privilege by name; an unknown OID is NULL.

use super::lift::Call;
use super::system::{oid_of, type_by_name, CatalogNames};
use super::Entry;
use crate::{catalog, val};
use repr::error::state;
use repr::style::RegNames;
use repr::types::RegKind;
use repr::{SqlError, Value};

/// What the function asks of: how its object is named, and which privileges it has.
#[derive(Clone, Copy, PartialEq)]
enum Of {
    Relation,
    Sequence,
    Column,
    Schema,
    Database,
    Function,
    Type,
    Language,
    Tablespace,
    Role,
    /// Kinds of which there is none; the word for one.
    Foreign(&'static str),
    Parameter,
}

impl Of {
    fn privileges(self) -> &'static [&'static str] {
        match self {
            Of::Relation => &["select", "insert", "update", "delete", "truncate", "references", "trigger"],
            Of::Sequence => &["usage", "select", "update"],
            Of::Column => &["select", "insert", "update", "references"],
            Of::Schema => &["create", "usage"],
            Of::Database => &["create", "temporary", "temp", "connect"],
            Of::Function => &["execute"],
            Of::Type | Of::Language | Of::Foreign(_) => &["usage"],
            Of::Tablespace => &["create"],
            Of::Role => &["usage", "member"],
            Of::Parameter => &["set", "alter system"],
        }
    }

    /// Errors: 22023.
    fn check(self, text: &str) -> Result<(), SqlError> {
        for word in text.split(',') {
            let word = word.trim();
            let lower = word.to_ascii_lowercase();
            let plain =
                lower.strip_suffix(" with grant option").or_else(|| lower.strip_suffix(" with admin option").filter(|_| self == Of::Role)).unwrap_or(&lower);
            if !self.privileges().contains(&plain) {
                return Err(SqlError::new(state::INVALID_PARAMETER_VALUE, format!("unrecognized privilege type: \"{word}\"")));
            }
        }
        Ok(())
    }
}

fn missing(what: &str, name: &str) -> SqlError {
    SqlError::new(state::UNDEFINED_OBJECT, format!("{what} \"{name}\" does not exist"))
}

fn role(v: &Value, call: &Call<'_>, public: bool) -> Result<bool, SqlError> {
    match v.as_str() {
        Some(n) if n == call.ctx.user || (public && n == "public") || call.ctx.catalog.role_oid(n).is_some() => Ok(true),
        Some(n) => Err(missing("role", n)),
        None => Ok(call.ctx.catalog.role_name(oid_of(v)).is_some()),
    }
}

/// The object's OID. `None`: an OID that nothing has.
fn object(of: Of, v: &Value, call: &Call<'_>) -> Result<Option<u32>, SqlError> {
    let view = &call.ctx.catalog;
    let names = CatalogNames(view.clone());
    let Some(name) = v.as_str() else {
        let oid = oid_of(v);
        let known = match of {
            Of::Relation | Of::Column | Of::Sequence => view.relation_name(oid).is_some(),
            Of::Schema => view.namespace_name(oid).is_some(),
            Of::Function => catalog::proc_by_oid(oid).is_some(),
            Of::Type => names.reg_name(RegKind::Type, oid).is_some(),
            Of::Database => oid == DATABASE,
            Of::Language => LANGUAGES.iter().any(|l| l.0 == oid),
            Of::Tablespace => TABLESPACES.iter().any(|t| t.0 == oid),
            Of::Role | Of::Parameter => true,
            Of::Foreign(_) => false,
        };
        return Ok(Some(oid).filter(|_| known));
    };
    let listed = |list: &[(u32, &str)], what: &str| list.iter().find(|x| x.1 == name).map(|x| x.0).ok_or_else(|| missing(what, name));
    Ok(Some(match of {
        Of::Relation | Of::Column | Of::Sequence => names.reg_oid(RegKind::Class, name)?,
        Of::Schema => {
            let code = state::INVALID_SCHEMA_NAME;
            view.namespace_oid(name).ok_or_else(|| SqlError::new(code, format!("schema \"{name}\" does not exist")))?
        }
        Of::Database if name == call.ctx.database => DATABASE,
        Of::Database => return Err(SqlError::new(state::INVALID_CATALOG_NAME, format!("database \"{name}\" does not exist"))),
        Of::Function => names.reg_oid(RegKind::Procedure, name)?,
        Of::Type => type_by_name(name, &**view).ok_or_else(|| missing("type", name))?.oid(),
        Of::Language => listed(&LANGUAGES, "language")?,
        Of::Tablespace => listed(&TABLESPACES, "tablespace")?,
        Of::Role => u32::from(role(v, call, false)?),
        Of::Parameter => 0,
        Of::Foreign(what) => return Err(missing(what, name)),
    }))
}

/// `pg_database.oid` of the one database.
const DATABASE: u32 = 5;
const LANGUAGES: [(u32, &str); 3] = [(12, "internal"), (13, "c"), (14, "sql")];
const TABLESPACES: [(u32, &str); 2] = [(1663, "pg_default"), (1664, "pg_global")];

/// `(user,) object (, column), privileges`.
fn privilege(of: Of, args: &[Value], call: &Call<'_>, column: bool) -> Result<Value, SqlError> {
    let Some((privileges, args)) = args.split_last() else { return Ok(Value::Null) };
    let (args, column) = match args.split_last() {
        Some((c, rest)) if column => (rest, Some(c)),
        _ => (args, None),
    };
    let (user, on) = match args {
        [on] => (None, on),
        [user, on] => (Some(user), on),
        _ => return Ok(Value::Null),
    };
    let may = user.map_or(Ok(true), |u| role(u, call, of != Of::Role))?;
    let oid = object(of, on, call)?;
    let view = &call.ctx.catalog;
    if of == Of::Sequence {
        if let Some(name) = oid.filter(|o| !view.is_sequence(*o)).and_then(|o| view.relation_name(o)) {
            of.check(privileges.as_str().unwrap_or(""))?;
            return Err(SqlError::new(state::WRONG_OBJECT_TYPE, format!("\"{name}\" is not a sequence")));
        }
    }
    let mut known = oid.is_some();
    if let (Some(oid), Some(column)) = (oid, column) {
        let columns = view.columns(oid);
        match column.as_str() {
            Some(c) if !columns.iter().any(|x| x == c) => {
                let relation = view.relation_name(oid).unwrap_or_default();
                let m = format!("column \"{c}\" of relation \"{relation}\" does not exist");
                return Err(SqlError::new(state::UNDEFINED_COLUMN, m));
            }
            Some(_) => {}
            None => known = column.as_i64().and_then(|n| usize::try_from(n).ok()).is_some_and(|n| (1..=columns.len()).contains(&n)),
        }
    }
    of.check(privileges.as_str().unwrap_or(""))?;
    Ok(if known { Value::Bool(may) } else { Value::Null })
}

pub(super) const FUNCS: &[Entry] = &[
    val!(? ["has_table_privilege_*"], |a, c| privilege(Of::Relation, a, c, false)),
    val!(? ["has_sequence_privilege_*"], |a, c| privilege(Of::Sequence, a, c, false)),
    val!(? ["has_any_column_privilege_*"], |a, c| privilege(Of::Column, a, c, false)),
    val!(? ["has_column_privilege_*"], |a, c| privilege(Of::Column, a, c, true)),
    val!(? ["has_schema_privilege_*"], |a, c| privilege(Of::Schema, a, c, false)),
    val!(? ["has_database_privilege_*"], |a, c| privilege(Of::Database, a, c, false)),
    val!(? ["has_function_privilege_*"], |a, c| privilege(Of::Function, a, c, false)),
    val!(? ["has_type_privilege_*"], |a, c| privilege(Of::Type, a, c, false)),
    val!(? ["has_language_privilege_*"], |a, c| privilege(Of::Language, a, c, false)),
    val!(? ["has_tablespace_privilege_*"], |a, c| privilege(Of::Tablespace, a, c, false)),
    val!(? ["has_server_privilege_*"], |a, c| privilege(Of::Foreign("server"), a, c, false)),
    val!(? ["has_foreign_data_wrapper_privilege_*"], |a, c| privilege(Of::Foreign("foreign-data wrapper"), a, c, false)),
    val!(? ["has_parameter_privilege_*"], |a, c| privilege(Of::Parameter, a, c, false)),
    val!(? ["pg_has_role_*"], |a, c| privilege(Of::Role, a, c, false)),
];
