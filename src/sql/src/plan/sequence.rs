//! CREATE and ALTER SEQUENCE, and the sequences of serial and identity columns: what they may give out.

use super::*;
use crate::ast::{ObjectKind, ObjectName, SequenceOptions};
use crate::catalog::{RelationKind, SequenceSpec};

/// Least and greatest value of an integer type. `None`: it is not one.
pub fn bounds(ty: &SqlType) -> Option<(i64, i64)> {
    match ty {
        SqlType::Int2 => Some((i16::MIN.into(), i16::MAX.into())),
        SqlType::Int4 => Some((i32::MIN.into(), i32::MAX.into())),
        SqlType::Int8 => Some((i64::MIN, i64::MAX)),
        _ => None,
    }
}

/// The specification that options make of an older one. Errors: 22023 for what does not fit together.
pub fn altered(old: Option<&SequenceSpec>, o: &SequenceOptions, ty: SqlType) -> Result<SequenceSpec, SqlError> {
    let bad = |m: String| Err(SqlError::new(state::INVALID_PARAMETER_VALUE, m));
    let Some((least, most)) = bounds(&ty) else { return bad("sequence type must be smallint, integer, or bigint".into()) };
    let increment = o.increment.or(old.map(|s| s.increment)).unwrap_or(1);
    if increment == 0 {
        return bad("INCREMENT must not be zero".into());
    }
    if let Some(cache) = o.cache.filter(|n| *n < 1) {
        return bad(format!("CACHE ({cache}) must be greater than zero"));
    }
    let up = increment > 0;
    // A bound that is the old type's own becomes the new type's.
    let kept = |value: i64, own: Option<i64>, new: i64| if Some(value) == own { new } else { value };
    let old_bounds = old.and_then(|s| bounds(&s.ty));
    let max = match o.max {
        Some(m) => m,
        None => old.map(|s| if s.ty == ty { s.max } else { kept(s.max, old_bounds.map(|b| b.1), most) }),
    };
    let min = match o.min {
        Some(m) => m,
        None => old.map(|s| if s.ty == ty { s.min } else { kept(s.min, old_bounds.map(|b| b.0), least) }),
    };
    let max = max.unwrap_or(if up { most } else { -1 });
    let min = min.unwrap_or(if up { 1 } else { least });
    if max < least || max > most {
        return bad(format!("MAXVALUE ({max}) is out of range for sequence data type {}", ty.sql_name()));
    }
    if min < least || min > most {
        return bad(format!("MINVALUE ({min}) is out of range for sequence data type {}", ty.sql_name()));
    }
    if min >= max {
        return bad(format!("MINVALUE ({min}) must be less than MAXVALUE ({max})"));
    }
    let start = o.start.or(old.map(|s| s.start)).unwrap_or(if up { min } else { max });
    if start < min {
        return bad(format!("START value ({start}) cannot be less than MINVALUE ({min})"));
    }
    if start > max {
        return bad(format!("START value ({start}) cannot be greater than MAXVALUE ({max})"));
    }
    let cycle = o.cycle.or(old.map(|s| s.cycle)).unwrap_or(false);
    Ok(SequenceSpec { ty, start, increment, min, max, cycle, cache: o.cache.or(old.map(|s| s.cache)).unwrap_or(1) })
}

/// Errors: 22023 for a column that cannot be an identity.
pub(super) fn check_identity_type(ty: &SqlType) -> Result<(), SqlError> {
    match bounds(ty) {
        Some(_) => Ok(()),
        None => Err(SqlError::new(state::INVALID_PARAMETER_VALUE, "identity column type must be smallint, integer, or bigint")),
    }
}

impl Binder<'_> {
    /// `ty`: of the column. Errors: 22023.
    pub fn sequence_spec(&self, o: &SequenceOptions, ty: &SqlType, identity: bool) -> Result<SequenceSpec, SqlError> {
        if identity {
            check_identity_type(ty)?;
        }
        let ty = match &o.ty {
            Some(t) => self.resolve_type(t)?.ty,
            None => ty.clone(),
        };
        altered(None, o, ty)
    }

    pub fn create_sequence(&self, name: &ObjectName, if_not_exists: bool, temporary: bool, o: &SequenceOptions) -> Result<Plan, SqlError> {
        if o.restart.is_some() || o.name.is_some() {
            return Err(SqlError::new(state::SYNTAX_ERROR, "this option is not one of CREATE SEQUENCE").at(name.pos));
        }
        let spec = self.sequence_spec(o, &SqlType::Int8, false)?;
        let owner = self.owner(o)?.flatten();
        Ok(Plan::CreateSequence(Box::new(CreateSequencePlan { name: self.new_name(name)?, if_not_exists, temporary, spec, owner })))
    }

    pub fn alter_sequence(&self, name: &ObjectName, if_exists: bool, o: &SequenceOptions) -> Result<Plan, SqlError> {
        let sequence = match self.any_object(ObjectKind::Sequence, name) {
            Ok(s) => s,
            Err(e) if if_exists && super::ddl::is_missing(&e) => {
                let notice = SqlError::new(repr::SqlState::new("00000"), format!("relation \"{name}\" does not exist, skipping"));
                return Ok(Plan::Nothing { tag: "ALTER SEQUENCE", notice: Some(notice) });
            }
            Err(e) => return Err(e),
        };
        let mut options = o.clone();
        // Names are resolved here and not again.
        let owner = self.owner(o)?;
        options.owned_by = None;
        if let Some(t) = &o.ty {
            if bounds(&self.resolve_type(t)?.ty).is_none() {
                return Err(SqlError::new(state::INVALID_PARAMETER_VALUE, "sequence type must be smallint, integer, or bigint"));
            }
        }
        let ty = o.ty.as_ref().map(|t| self.resolve_type(t)).transpose()?.map(|t| t.ty);
        Ok(Plan::AlterSequence(Box::new(AlterSequencePlan { sequence, options, ty, owner })))
    }

    /// OWNED BY: the table and the column.
    fn owner(&self, o: &SequenceOptions) -> Result<Option<Option<(GlobalId, usize)>>, SqlError> {
        let Some(owned) = &o.owned_by else { return Ok(None) };
        let Some(name) = owned else { return Ok(Some(None)) };
        let mut table = name.clone();
        let column = table
            .parts
            .pop()
            .filter(|_| !table.parts.is_empty())
            .ok_or_else(|| SqlError::new(state::SYNTAX_ERROR, "invalid OWNED BY option").with_hint("Specify OWNED BY table.column or OWNED BY NONE."))?;
        let rel = self.resolve_relation(&table)?;
        if !matches!(rel.kind, RelationKind::Table) {
            return Err(SqlError::new(state::WRONG_OBJECT_TYPE, format!("sequence cannot be owned by relation \"{}\"", rel.name.name)));
        }
        let found = rel.desc.names.iter().position(|n| *n == column);
        let i = found.ok_or_else(|| {
            SqlError::new(state::UNDEFINED_COLUMN, format!("column \"{column}\" of relation \"{}\" does not exist", rel.name.name)).at(name.pos)
        })?;
        Ok(Some(Some((rel.id, i))))
    }
}
