//! CREATE TYPE, CREATE DOMAIN, ALTER TYPE and ALTER DOMAIN as plans. Not here: what a domain tests (see `domain`).

use super::scope::Clause;
use super::types::{AlterTypePlan, AttributeChange, TypeChange};
use super::*;
use crate::ast::{self, AlterTypeAction, AttributeAction, Ident, ObjectKind, TypeName};
use crate::hir::HirScalar;
use crate::parse::ParsedStatement;
use expr::catalog::{self as pg, CastContext};
use repr::RelDesc;

impl Binder<'_> {
    pub fn create_type(&self, t: &ast::CreateType, p: &ParsedStatement) -> Result<Plan, SqlError> {
        let name = self.new_name(&t.name)?;
        let body = match &t.body {
            ast::TypeBody::Enum(labels) => {
                for (i, l) in labels.iter().enumerate() {
                    if labels[..i].contains(l) {
                        return Err(SqlError::new(state::UNIQUE_VIOLATION, "duplicate key value violates unique constraint \"pg_enum_typid_label_index\"")
                            .with_detail(format!("The label \"{l}\" is given twice.")));
                    }
                    if l.len() > 63 {
                        return Err(SqlError::new(state::INVALID_NAME, format!("invalid enum label \"{l}\"")).with_detail("Labels must be 63 bytes or less."));
                    }
                }
                TypePlan::Enum(labels.clone())
            }
            ast::TypeBody::Composite(fields) => {
                for (i, (n, _)) in fields.iter().enumerate() {
                    if fields[..i].iter().any(|f| f.0.name == n.name) {
                        return Err(SqlError::new(state::DUPLICATE_COLUMN, format!("column \"{}\" specified more than once", n.name)).at(n.pos));
                    }
                }
                let field = |(n, t): &(Ident, TypeName)| {
                    let ty = self.resolve_type(t)?;
                    self.check_column_type(&n.name, &ty.ty, n.pos)?;
                    Ok((n.name.clone(), ty))
                };
                TypePlan::Composite(fields.iter().map(field).collect::<Result<_, SqlError>>()?)
            }
            ast::TypeBody::Range(options) => self.create_range(&name.name, options)?,
            ast::TypeBody::Domain { base, not_null, default, checks } => {
                TypePlan::Domain(self.create_domain(p, &name.name, base, *not_null, default.as_ref(), checks)?)
            }
        };
        Ok(Plan::CreateType { name, body })
    }

    /// CREATE TYPE … AS RANGE.
    fn create_range(&self, name: &str, options: &[(Ident, TypeName)]) -> Result<TypePlan, SqlError> {
        let (mut subtype, mut multirange, mut diff, mut collation) = (None, None, None, None);
        for (i, (n, value)) in options.iter().enumerate() {
            if options[..i].iter().any(|o| o.0.name == n.name) {
                return Err(SqlError::new(state::SYNTAX_ERROR, "conflicting or redundant options").at(n.pos));
            }
            match n.name.as_str() {
                "subtype" => subtype = Some(value),
                "multirange_type_name" => multirange = value.names.last().cloned(),
                "subtype_diff" => diff = Some(value),
                "collation" => collation = Some(value),
                "subtype_opclass" => {
                    let known = value.names.last().is_some_and(|o| pg::opclasses().iter().any(|c| c.name == *o));
                    if !known {
                        let m = format!("operator class \"{}\" does not exist for access method \"btree\"", value.names.join("."));
                        return Err(SqlError::new(state::UNDEFINED_OBJECT, m).at(value.pos));
                    }
                }
                "canonical" => {
                    let m = "cannot specify a canonical function without a pre-created shell type";
                    return Err(SqlError::new(repr::SqlState::new("42P17"), m).at(value.pos));
                }
                other => return Err(SqlError::new(state::SYNTAX_ERROR, format!("type attribute \"{other}\" not recognized")).at(n.pos)),
            }
        }
        let written = subtype.ok_or_else(|| SqlError::new(state::SYNTAX_ERROR, "type attribute \"subtype\" is required"))?;
        let subtype = self.resolve_type(written)?.ty;
        if matches!(subtype, SqlType::Unknown | SqlType::Void) || matches!(&subtype, SqlType::Record(r) if r.name.is_none()) {
            return Err(SqlError::new(state::DATATYPE_MISMATCH, format!("range subtype cannot be {}", subtype.sql_name())).at(written.pos));
        }
        self.require_order(&subtype, written.pos).map_err(|_| {
            let m = format!("data type {} has no default operator class for access method \"btree\"", subtype.sql_name());
            SqlError::new(state::UNDEFINED_OBJECT, m)
                .with_hint("You must specify an operator class for the range type or define a default operator class for the subtype.")
        })?;
        if let Some(c) = collation.filter(|_| !subtype.is_string()) {
            return Err(SqlError::new(state::WRONG_OBJECT_TYPE, "range collation specified but subtype does not support collation").at(c.pos));
        }
        if let Some(d) = diff {
            let fname = d.names.last().map_or("", String::as_str);
            let oid = subtype.oid();
            let Some(f) = pg::procs_by_name(fname).find(|f| f.args == [oid, oid]) else {
                let m = format!("function {fname}({0}, {0}) does not exist", subtype.sql_name());
                return Err(SqlError::new(state::UNDEFINED_FUNCTION, m).at(d.pos));
            };
            if f.ret != SqlType::Float8.oid() {
                let m = format!("range subtype diff function {fname} must return type double precision");
                return Err(SqlError::new(repr::SqlState::new("42P17"), m).at(d.pos));
            }
        }
        // As Postgres names it: `range` in the name becomes `multirange`.
        let multirange = multirange.unwrap_or_else(|| match name.find("range") {
            Some(_) => name.replacen("range", "multirange", 1),
            None => format!("{name}_multirange"),
        });
        Ok(TypePlan::Range { subtype, multirange })
    }

    /// A call of a user-defined range type's constructor; `None`: the name is none, or the arguments do not fit.
    pub fn range_constructor(&self, name: &[&str], args: &[HirScalar], variadic: bool, positions: &[Pos]) -> Result<Option<HirScalar>, SqlError> {
        let parts: Vec<String> = name.iter().map(|s| (*s).to_owned()).collect();
        let Some(ty) = self.catalog.resolve_type(&parts) else { return Ok(None) };
        let fits = |e: &HirScalar, to: &SqlType| self.try_coerce(e.clone(), &to.clone().nullable(), CastContext::Implicit, 0);
        let coerced = |wanted: &[SqlType]| -> Result<Option<Vec<HirScalar>>, SqlError> {
            let mut out = Vec::with_capacity(args.len());
            for ((a, t), pos) in args.iter().zip(wanted).zip(positions.iter().chain(std::iter::repeat(&0))) {
                match fits(a, t).map_err(|e| e.at(*pos))? {
                    Some(x) => out.push(x),
                    None => return Ok(None),
                }
            }
            Ok(Some(out))
        };
        let (made, entry) = match &ty {
            SqlType::UserRange(r) if matches!(args.len(), 2 | 3) && !variadic => {
                (coerced(&[r.subtype.clone(), r.subtype.clone(), SqlType::Text])?, "range_construct")
            }
            SqlType::UserMultirange(_) => {
                let range = ty.range_partner();
                let wanted = if variadic { vec![range.array_of()] } else { vec![range; args.len()] };
                (if wanted.len() == args.len() { coerced(&wanted)? } else { None }, "multirange_construct")
            }
            _ => return Ok(None),
        };
        match made {
            Some(args) => self.internal(entry, args, ty.nullable()).map(Some),
            None => Ok(None),
        }
    }

    /// ALTER TYPE and ALTER DOMAIN.
    pub fn alter_type(&self, a: &ast::AlterType, p: &ParsedStatement) -> Result<Plan, SqlError> {
        let object = self.object(a.kind, &a.name)?;
        let domain = self.catalog.resolve_domain(&a.name.parts).map(|d| d.1);
        if a.kind == ObjectKind::Domain && domain.is_none() {
            return Err(SqlError::new(state::WRONG_OBJECT_TYPE, format!("\"{}\" is not a domain", a.name.last())).at(a.name.pos));
        }
        let change = match &a.action {
            AlterTypeAction::SetSchema(s) => {
                if !self.catalog.schema_exists(&s.name) {
                    return Err(SqlError::new(state::INVALID_SCHEMA_NAME, format!("schema \"{}\" does not exist", s.name)).at(s.pos));
                }
                return Ok(Plan::AlterSetSchema { kind: a.kind, object, schema: s.name.clone() });
            }
            AlterTypeAction::OwnerTo(owner) => return Ok(Plan::AlterOwner { kind: a.kind, owner: owner.clone() }),
            AlterTypeAction::Rename(to) => TypeChange::Rename(to.name.clone()),
            AlterTypeAction::AddValue { label, if_not_exists, place } => {
                self.enum_named(a)?;
                label_fits(label)?;
                TypeChange::AddValue { label: label.clone(), if_not_exists: *if_not_exists, place: place.clone() }
            }
            AlterTypeAction::RenameValue { from, to } => {
                self.enum_named(a)?;
                label_fits(to)?;
                TypeChange::RenameValue { from: from.clone(), to: to.clone() }
            }
            AlterTypeAction::RenameAttribute { from, to } => TypeChange::RenameAttribute { from: from.name.clone(), to: to.name.clone() },
            AlterTypeAction::Attributes(changes) => {
                let one = |c: &AttributeAction| {
                    Ok(match c {
                        AttributeAction::Add(name, ty) => AttributeChange::Add(name.name.clone(), self.resolve_type(ty)?),
                        AttributeAction::Drop { name, if_exists } => AttributeChange::Drop { name: name.name.clone(), if_exists: *if_exists },
                        AttributeAction::Type(name, ty) => AttributeChange::Type(name.name.clone(), self.resolve_type(ty)?),
                    })
                };
                TypeChange::Attributes(changes.iter().map(one).collect::<Result<_, SqlError>>()?)
            }
            other => {
                let d = domain.ok_or_else(|| SqlError::internal("a domain's change of what is none"))?;
                let test = matches!(other, AlterTypeAction::NotNull(true) | AlterTypeAction::AddCheck { valid: true, .. } | AlterTypeAction::Validate(_));
                TypeChange::Domain { after: self.altered_domain(&d, other, p)?, test }
            }
        };
        Ok(Plan::AlterType(Box::new(AlterTypePlan { kind: a.kind, object, change })))
    }

    fn enum_named(&self, a: &ast::AlterType) -> Result<(), SqlError> {
        match self.catalog.resolve_type(&a.name.parts) {
            Some(SqlType::Enum(_)) => Ok(()),
            _ => Err(SqlError::new(state::WRONG_OBJECT_TYPE, format!("{} is not an enum", a.name.last())).at(a.name.pos)),
        }
    }

    /// The domain as it is after the change.
    fn altered_domain(&self, d: &repr::types::Domain, action: &AlterTypeAction, p: &ParsedStatement) -> Result<repr::types::Domain, SqlError> {
        let mut d = d.clone();
        let missing = |n: &str| SqlError::new(state::UNDEFINED_OBJECT, format!("constraint \"{n}\" of domain \"{}\" does not exist", d.name));
        match action {
            AlterTypeAction::NotNull(n) => d.not_null = *n,
            AlterTypeAction::Default(None) => d.default = None,
            AlterTypeAction::Default(Some((e, span))) => {
                let x = self.expr(e, &self.row_env("", &RelDesc::default(), Clause::Default))?;
                self.assign(x, &d.name, &d.base, e.pos)?;
                d.default = Some(self.default_text(&d.name, &d.base, e, p.slice(*span))?.0);
            }
            AlterTypeAction::AddCheck { name, check, span, .. } => {
                let text = self.domain_check_text(check, &d.base, p.slice(*span))?;
                let taken = |n: &str| d.checks.iter().any(|c| c.0 == n);
                if let Some(n) = name.as_ref().filter(|n| taken(n)) {
                    let m = format!("constraint \"{n}\" for domain \"{}\" already exists", d.name);
                    return Err(SqlError::new(state::DUPLICATE_OBJECT, m));
                }
                let name = name.clone().unwrap_or_else(|| naming::object_name(&d.name, None, "check", &taken));
                d.checks.push((name, text));
            }
            AlterTypeAction::DropCheck { name, if_exists } => match d.checks.iter().position(|c| c.0 == name.name) {
                Some(i) => drop(d.checks.remove(i)),
                None if *if_exists => {}
                None => return Err(missing(&name.name).at(name.pos)),
            },
            AlterTypeAction::RenameCheck { from, to } => {
                if d.checks.iter().any(|c| c.0 == to.name) {
                    let m = format!("constraint \"{}\" for domain \"{}\" already exists", to.name, d.name);
                    return Err(SqlError::new(state::DUPLICATE_OBJECT, m));
                }
                let i = d.checks.iter().position(|c| c.0 == from.name).ok_or_else(|| missing(&from.name).at(from.pos))?;
                d.checks[i].0 = to.name.clone();
            }
            AlterTypeAction::Validate(n) if d.checks.iter().any(|c| c.0 == n.name) => {}
            AlterTypeAction::Validate(n) => return Err(missing(&n.name).at(n.pos)),
            _ => return Err(SqlError::internal("no change of a domain")),
        }
        Ok(d)
    }
}

fn label_fits(label: &str) -> Result<(), SqlError> {
    match label.len() <= 63 {
        true => Ok(()),
        false => Err(SqlError::new(state::INVALID_NAME, format!("invalid enum label \"{label}\"")).with_detail("Labels must be 63 bytes or less.")),
    }
}
