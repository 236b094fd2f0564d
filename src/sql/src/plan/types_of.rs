//! SQL types by OID: categories, names, resolving written type names and their modifiers.

use super::Binder;
use crate::ast::{Expr, ExprKind, Pos, TypeName};
use expr::catalog::{self, pseudo};
use expr::func;
use repr::error::state;
use repr::{ColType, SqlError, SqlType};

/// The OID of the schema `pg_catalog`.
const PG_CATALOG: u32 = 11;

/// `pg_type.typcategory`.
pub fn category(oid: u32) -> char {
    match catalog::type_by_oid(oid) {
        Some(t) => t.category,
        // Enums and composites of the user; arrays are told apart by the caller.
        None => 'E',
    }
}

impl Binder<'_> {
    /// Category of a type, user-defined ones included.
    pub fn category(&self, ty: &SqlType) -> char {
        match ty.base() {
            SqlType::Enum(_) => 'E',
            SqlType::Record(r) if r.oid == pseudo::RECORD => 'P',
            SqlType::Record(_) => 'C',
            SqlType::Array(_) => 'A',
            SqlType::Range(_) | SqlType::Multirange(_) | SqlType::UserRange(_) | SqlType::UserMultirange(_) => 'R',
            SqlType::List(_) | SqlType::Map(_) => 'U',
            ty => category(ty.oid()),
        }
    }

    pub fn is_preferred(&self, oid: u32) -> bool {
        catalog::type_by_oid(oid).is_some_and(|t| t.is_preferred)
    }

    pub fn type_by_oid(&self, oid: u32) -> Option<SqlType> {
        SqlType::from_oid(oid).or_else(|| self.catalog.type_by_oid(oid))
    }

    /// The type a written name means, with its modifier.
    pub fn resolve_type(&self, t: &TypeName) -> Result<ColType, SqlError> {
        if t.setof {
            return Err(SqlError::new(state::INVALID_TABLE_DEFINITION, "a column cannot be declared SETOF").at(t.pos));
        }
        if let Some(value) = &t.map_of {
            return Ok(SqlType::Map(Box::new(self.resolve_type(value)?.ty)).nullable());
        }
        let mut ty = self.resolve_type_name(t)?;
        let typmod = self.typmod(t, &ty)?;
        if t.dims > 0 {
            ty = match ty {
                // An array of any dimension is one type.
                SqlType::Array(e) => SqlType::Array(e),
                e if e.array_oid() == 0 => {
                    return Err(SqlError::new(state::UNDEFINED_OBJECT, format!("could not find array type for data type {}", e.sql_name())).at(t.pos))
                }
                e => e.array_of(),
            };
        }
        for _ in 0..t.lists {
            ty = SqlType::List(Box::new(ty));
        }
        if let Some(c) = &t.collation {
            self.check_collation(&ty, &c.parts, c.pos)?;
        }
        Ok(ColType { ty, typmod, nullable: true })
    }

    /// Errors: 42804 for a type that has no collation, 42704 for a collation that there is not.
    pub fn check_collation(&self, ty: &SqlType, parts: &[String], pos: Pos) -> Result<(), SqlError> {
        let elem = match ty.base() {
            SqlType::Array(e) => e.base(),
            other => other,
        };
        if !matches!(elem, SqlType::Text | SqlType::Varchar | SqlType::Bpchar | SqlType::Name) {
            let message = format!("collations are not supported by type {}", ty.sql_name());
            return Err(SqlError::new(state::DATATYPE_MISMATCH, message).at(pos));
        }
        if let [.., schema, _] = parts {
            if schema != "pg_catalog" && !self.catalog.schema_exists(schema) {
                return Err(SqlError::new(state::INVALID_SCHEMA_NAME, format!("schema \"{schema}\" does not exist")).at(pos));
            }
        }
        let of_catalog = parts.len() == 1 || parts.iter().rev().nth(1).is_some_and(|s| s == "pg_catalog");
        let name = parts.last().map_or("", String::as_str);
        if of_catalog && (is_own_order(name) || matches!(name, "C" | "POSIX" | "default" | "ucs_basic" | "C.utf8" | "C.UTF-8")) {
            return Ok(());
        }
        let message = format!("collation \"{}\" for encoding \"UTF8\" does not exist", parts.join("."));
        Err(SqlError::new(state::UNDEFINED_OBJECT, message).at(pos))
    }

    fn resolve_type_name(&self, t: &TypeName) -> Result<SqlType, SqlError> {
        let (schema, name) = match t.names.as_slice() {
            [n] => (None, n.as_str()),
            [s, n] => (Some(s.as_str()), n.as_str()),
            [_, s, n] => (Some(s.as_str()), n.as_str()),
            _ => return Err(undefined_type(t)),
        };
        if let [database, ..] = t.names.as_slice() {
            if t.names.len() == 3 && database != self.catalog.database() {
                let m = format!("cross-database references are not implemented: {}", t.names.join("."));
                return Err(SqlError::new(state::FEATURE_NOT_SUPPORTED, m));
            }
        }
        // `int4` and its kind are found in pg_catalog before the search path; a quoted "char" is the one-byte type.
        if schema.is_none() || schema == Some("pg_catalog") {
            if let Some(ty) = builtin(name) {
                return Ok(ty);
            }
            if let Some(known) = catalog::type_by_name(name).filter(|t| t.namespace == PG_CATALOG) {
                return SqlType::from_oid(known.oid).ok_or_else(|| SqlError::unsupported(format!("type {}", name), "use text or jsonb instead").at(t.pos));
            }
        }
        if schema == Some("information_schema") {
            let ty = match name {
                "cardinal_number" => Some(SqlType::Int4),
                "character_data" | "sql_identifier" | "yes_or_no" => Some(SqlType::Text),
                "time_stamp" => Some(SqlType::TimestampTz),
                _ => None,
            };
            if let Some(ty) = ty {
                return Ok(ty);
            }
        }
        if let Some((id, domain)) = self.catalog.resolve_domain(&t.names) {
            self.depends_on.borrow_mut().insert(id);
            return Ok(domain.as_type());
        }
        if let Some(ty) = self.catalog.resolve_type(&t.names) {
            let id = match &ty {
                SqlType::UserMultirange(r) => r.oid,
                SqlType::Array(element) => match &**element {
                    SqlType::UserMultirange(r) => r.oid,
                    element => element.oid(),
                },
                ty => ty.oid(),
            };
            // Objects that name it go with it. A row type's number is not its relation's, which is found below.
            let relation = matches!(ty, SqlType::Record(_)).then(|| self.catalog.resolve_relation(&t.names).ok().flatten()).flatten();
            self.depends_on.borrow_mut().insert(relation.map_or(repr::GlobalId(id.into()), |r| r.id));
            self.note_rows(&ty);
            return Ok(ty);
        }
        // A relation's row type.
        if let Ok(Some(rel)) = self.catalog.resolve_relation(&t.names) {
            let ty = super::scope::row_type_of(&rel);
            self.note_rows(&ty);
            return Ok(ty);
        }
        match schema {
            Some(s) if !self.catalog.schema_exists(s) => Err(SqlError::new(state::INVALID_SCHEMA_NAME, format!("schema \"{s}\" does not exist")).at(t.pos)),
            _ => Err(undefined_type(t)),
        }
    }

    /// `typmodin`: the modifier that the written ones mean.
    fn typmod(&self, t: &TypeName, ty: &SqlType) -> Result<i32, SqlError> {
        if t.modifiers.is_empty() {
            return Ok(-1);
        }
        let takes = matches!(
            ty,
            SqlType::Varchar
                | SqlType::Bpchar
                | SqlType::Bit
                | SqlType::VarBit
                | SqlType::Numeric
                | SqlType::Time
                | SqlType::TimeTz
                | SqlType::Timestamp
                | SqlType::TimestampTz
                | SqlType::Interval
        );
        if !takes {
            return Err(SqlError::new(state::SYNTAX_ERROR, format!("type modifier is not allowed for type \"{}\"", ty.pg_name())).at(t.pos));
        }
        let mods: Vec<i64> = t.modifiers.iter().map(|e| modifier(e).map_err(|m| m.at(t.pos))).collect::<Result<_, _>>()?;
        let bad = |m: String| Err(SqlError::new(state::INVALID_PARAMETER_VALUE, m).at(t.pos));
        match ty {
            SqlType::Varchar | SqlType::Bpchar => {
                let name = if *ty == SqlType::Varchar { "varchar" } else { "char" };
                match mods.as_slice() {
                    [n] if *n < 1 => bad(format!("length for type {name} must be at least 1")),
                    [n] if *n > 10_485_760 => bad(format!("length for type {name} cannot exceed 10485760")),
                    [n] => Ok(i32::try_from(*n).unwrap_or(0) + 4),
                    _ => bad("invalid type modifier".into()),
                }
            }
            SqlType::Bit | SqlType::VarBit => {
                let name = if *ty == SqlType::Bit { "bit" } else { "varbit" };
                match mods.as_slice() {
                    [n] if *n < 1 => bad(format!("length for type {name} must be at least 1")),
                    [n] if *n > 83_886_080 => bad(format!("length for type {name} cannot exceed 83886080")),
                    [n] => Ok(i32::try_from(*n).unwrap_or(0)),
                    _ => bad("invalid type modifier".into()),
                }
            }
            SqlType::Numeric => {
                let (p, s) = match mods.as_slice() {
                    [p] => (*p, 0),
                    [p, s] => (*p, *s),
                    _ => return bad("invalid NUMERIC type modifier".into()),
                };
                if !(1..=1000).contains(&p) {
                    return bad(format!("NUMERIC precision {p} must be between 1 and 1000"));
                }
                if !(-1000..=1000).contains(&s) {
                    return bad(format!("NUMERIC scale {s} must be between -1000 and 1000"));
                }
                let packed = (p << 16) | (s & 0x7ff);
                Ok(i32::try_from(packed).unwrap_or(-1).saturating_add(4))
            }
            SqlType::Time | SqlType::TimeTz | SqlType::Timestamp | SqlType::TimestampTz => match mods.as_slice() {
                [n] if *n < 0 => {
                    let zone = if matches!(ty, SqlType::TimeTz | SqlType::TimestampTz) { " WITH TIME ZONE" } else { "" };
                    let name = if matches!(ty, SqlType::Time | SqlType::TimeTz) { "TIME" } else { "TIMESTAMP" };
                    bad(format!("{name}({n}){zone} precision must not be negative"))
                }
                [n] => Ok(i32::try_from((*n).min(6)).unwrap_or(6)),
                _ => bad("invalid type modifier".into()),
            },
            SqlType::Interval => {
                let (range, precision) = match mods.as_slice() {
                    [r] => (*r, 0xffff),
                    [r, p] => (*r, (*p).clamp(0, 6)),
                    _ => return bad("invalid INTERVAL type modifier".into()),
                };
                if range == 0x7fff && precision == 0xffff {
                    return Ok(-1);
                }
                let packed = ((range & 0x7fff) << 16) | (precision & 0xffff);
                Ok(i32::try_from(packed).unwrap_or(-1))
            }
            _ => Err(SqlError::internal("a type without modifiers")),
        }
    }
}

/// A written modifier, which may be any word or constant that reads as an int4.
fn modifier(e: &Expr) -> Result<i64, SqlError> {
    let text = match &*e.kind {
        ExprKind::Number(s) | ExprKind::String(s) => s.as_str(),
        ExprKind::Column(c) if c.len() == 1 => c[0].name.as_str(),
        _ => return Err(SqlError::new(state::SYNTAX_ERROR, "type modifiers must be simple constants or identifiers")),
    };
    let digits = text.trim().trim_start_matches(['-', '+']);
    let (code, m) = match text.trim().parse::<i32>() {
        Ok(n) => return Ok(n.into()),
        Err(_) if !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()) => {
            (state::NUMERIC_VALUE_OUT_OF_RANGE, format!("value \"{text}\" is out of range for type integer"))
        }
        Err(_) => (state::INVALID_TEXT_REPRESENTATION, format!("invalid input syntax for type integer: \"{text}\"")),
    };
    Err(SqlError::new(code, m))
}

fn builtin(name: &str) -> Option<SqlType> {
    if name == "unknown" {
        return Some(SqlType::Unknown);
    }
    SqlType::from_pg_name(name)
}

fn undefined_type(t: &TypeName) -> SqlError {
    let brackets = "[]".repeat(t.dims);
    SqlError::new(state::UNDEFINED_OBJECT, format!("type \"{}{brackets}\" does not exist", t.names.join("."))).at(t.pos)
}

/// A type with its modifier, as error messages print a column's type.
pub fn display(ty: &ColType) -> String {
    func::system::with_typmod(&ty.ty, ty.typmod)
}

/// The collation that a column is declared with, if it is one that is known by its name and not the default.
pub(super) fn kept_collation(t: &TypeName) -> Option<String> {
    let name = t.collation.as_ref()?.last();
    (name != "default" && catalog::collations().iter().any(|c| c.name == name)).then(|| name.to_owned())
}

/// Whether a collation is one of PostgreSQL's that do not order by code point.
pub(super) fn is_own_order(collation: &str) -> bool {
    matches!(collation, "en_US" | "en_US.utf8" | "unicode") || collation.ends_with("-x-icu")
}
