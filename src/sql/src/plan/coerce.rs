//! Coercion: which type can become which, in which context, and by what.
//!
//! Follows Postgres's `parse_coerce.c`: pathways over `pg_cast`, elements of arrays, I/O conversion, unknown literals that are read
//! by their target's input function at once, polymorphic types, and the common type of several expressions.

use super::Binder;
use crate::ast::Pos;
use crate::hir::HirScalar;
use expr::catalog::{self, pseudo, CastContext, CastMethod};
use expr::func;
use repr::error::state;
use repr::{ColType, SqlError, SqlType, Value};

/// How a type becomes another.
#[derive(Clone, Debug, PartialEq)]
pub enum Pathway {
    /// Same bytes.
    Relabel,
    Func(u32),
    /// Element by element.
    Array(Box<Pathway>),
    /// Through text.
    Io,
}

impl Binder<'_> {
    /// Postgres's `find_coercion_pathway`; `None`: there is none in this context.
    pub fn pathway(&self, from: &SqlType, to: &SqlType, ctx: CastContext) -> Option<Pathway> {
        let (from, to) = (from.base(), to.base());
        if from == to {
            return Some(Pathway::Relabel);
        }
        if let (SqlType::Enum(a), SqlType::Enum(b)) = (from, to) {
            if a.oid == b.oid {
                return Some(Pathway::Relabel);
            }
        }
        if let Some(c) = catalog::cast(from.oid(), to.oid()) {
            if ctx < c.context {
                return None;
            }
            return Some(match c.method {
                CastMethod::Function => Pathway::Func(c.func),
                CastMethod::InOut => Pathway::Io,
                CastMethod::Binary => Pathway::Relabel,
            });
        }
        if let (SqlType::Array(f), SqlType::Array(t)) = (from, to) {
            return self.pathway(f, t, ctx).map(|p| Pathway::Array(Box::new(p)));
        }
        // A list of lists is cast through text.
        if let (SqlType::List(f), SqlType::List(t)) = (from, to) {
            let plain = !matches!(**f, SqlType::List(_)) && !matches!(**t, SqlType::List(_));
            return if plain { self.pathway(f, t, ctx).map(|p| Pathway::Array(Box::new(p))) } else { (ctx == CastContext::Explicit).then_some(Pathway::Io) };
        }
        // int2vector and oidvector are arrays of their elements.
        if let (SqlType::Int2Vector, SqlType::Array(e)) | (SqlType::OidVector, SqlType::Array(e)) = (from, to) {
            let elem = if *from == SqlType::Int2Vector { SqlType::Int2 } else { SqlType::Oid };
            return match **e == elem {
                true => Some(Pathway::Relabel),
                false => self.pathway(&elem, e, ctx).map(|p| Pathway::Array(Box::new(p))),
            };
        }
        // Assignment to a string and explicit casts from or to one go through the text form.
        if ctx >= CastContext::Assignment && self.category(to) == 'S' && !matches!(to, SqlType::Unknown) {
            return Some(Pathway::Io);
        }
        if ctx >= CastContext::Explicit && (self.category(from) == 'S' || self.category(to) == 'S') {
            return Some(Pathway::Io);
        }
        if let (SqlType::Record(a), SqlType::Record(b)) = (from, to) {
            // Any named row type is a record; a record becomes a named type if its fields do.
            // A named row type becomes no other.
            if a.name.is_some() && b.oid != pseudo::RECORD && a.oid != b.oid {
                return None;
            }
            let same = a.fields.iter().zip(&b.fields).all(|(x, y)| x.1.ty == y.1.ty);
            if b.oid == pseudo::RECORD || a.fields.len() == b.fields.len() && same {
                return Some(Pathway::Relabel);
            }
            // What has other fields is read from its text, where it is not taken apart (see `coerce_record`).
            if a.fields.len() == b.fields.len() {
                return Some(Pathway::Io);
            }
        }
        None
    }

    /// Can `from` become `to` (not polymorphic) in this context?
    pub fn can_coerce(&self, from: &SqlType, to: u32, ctx: CastContext) -> bool {
        if from.oid() == to || to == pseudo::ANY || *from == SqlType::Unknown {
            return true;
        }
        if is_polymorphic(to) {
            // The arguments are checked together by `check_polymorphic`.
            return true;
        }
        match from.base() {
            SqlType::Record(_) if to == pseudo::RECORD => return true,
            SqlType::Array(e) if to == pseudo::RECORD_ARRAY && matches!(**e, SqlType::Record(_)) => return true,
            _ => {}
        }
        match self.type_by_oid(to) {
            Some(t) => self.pathway(from, &t, ctx).is_some(),
            None => false,
        }
    }

    /// Coerces or raises 42804/42846 in the words of the context.
    pub fn coerce(&self, e: HirScalar, to: &ColType, ctx: CastContext, pos: Pos) -> Result<HirScalar, SqlError> {
        let from = e.typ();
        match self.try_coerce(e, to, ctx, pos)? {
            Some(e) => Ok(e),
            None => Err(self.cannot_cast(&from.ty, &to.ty, pos)),
        }
    }

    pub fn cannot_cast(&self, from: &SqlType, to: &SqlType, pos: Pos) -> SqlError {
        SqlError::new(state::CANNOT_COERCE, format!("cannot cast type {} to {}", from.sql_name(), to.sql_name())).at(pos)
    }

    /// Implicit coercion to a type that resolution has already found reachable.
    pub fn coerce_implicit(&self, e: HirScalar, to: &SqlType, pos: Pos) -> Result<HirScalar, SqlError> {
        self.coerce(e, &to.clone().nullable(), CastContext::Implicit, pos)
    }

    /// Postgres's `coerce_to_target_type`. `None`: there is no way. A type modifier is applied; nullability is the input's.
    pub fn try_coerce(&self, e: HirScalar, to: &ColType, ctx: CastContext, pos: Pos) -> Result<Option<HirScalar>, SqlError> {
        let from = e.typ();
        if from.ty == SqlType::Unknown && to.ty == SqlType::Unknown {
            return Ok(Some(e));
        }
        if to.ty.has_domain() && from.ty != to.ty {
            return self.coerce_to_domain(e, to, ctx, pos);
        }
        if let HirScalar::Literal(v, t) = &e {
            if t.ty == SqlType::Unknown {
                return self.coerce_literal(v, to, ctx, pos).map(Some);
            }
        }
        if let HirScalar::Parameter(n, t) = &e {
            if t.ty == SqlType::Unknown {
                self.set_parameter(*n, &to.ty, pos)?;
                return self.apply_typmod(HirScalar::Parameter(*n, to.ty.clone().nullable()), to, ctx, false).map(Some);
            }
        }
        if from.ty == to.ty {
            return self.apply_typmod(e, to, ctx, false).map(Some);
        }
        if let SqlType::Domain(_) = &from.ty {
            let e = self.without_domain(e)?;
            return self.try_coerce(e, to, ctx, pos);
        }
        // A range as the multirange of its type; the built-in ones have rows in pg_cast.
        if ctx == CastContext::Explicit && matches!(from.ty, SqlType::UserRange(_)) && from.ty.range_partner() == to.ty {
            return self.internal("multirange_construct", vec![e], ColType { nullable: from.nullable, ..to.clone() }).map(Some);
        }
        if from.ty == SqlType::Unknown {
            // A column of type unknown (a literal deep in a subquery): read as text.
            return match self.pathway(&SqlType::Text, &to.ty, CastContext::Explicit) {
                Some(_) => Ok(Some(self.cast_io(e, &to.ty)?)),
                None => Ok(None),
            };
        }
        if let (SqlType::Record(_), SqlType::Record(_)) = (&from.ty, &to.ty) {
            return self.coerce_record(e, to, ctx, pos);
        }
        let Some(path) = self.pathway(&from.ty, &to.ty, ctx) else { return Ok(None) };
        let e = self.apply_pathway(e, &path, to, ctx)?;
        self.apply_typmod(e, to, ctx, false).map(Some)
    }

    fn apply_pathway(&self, e: HirScalar, path: &Pathway, to: &ColType, ctx: CastContext) -> Result<HirScalar, SqlError> {
        let ty = ColType { ty: to.ty.clone(), typmod: -1, nullable: e.typ().nullable };
        match path {
            Pathway::Relabel => {
                if let HirScalar::Literal(v, t) = &e {
                    if v.is_null() {
                        return Ok(HirScalar::Literal(Value::Null, ColType { nullable: true, typmod: -1, ..to.clone() }));
                    }
                    // Strings share one physical form.
                    if t.ty.is_string() && matches!(to.ty, SqlType::Text | SqlType::Varchar) {
                        return Ok(HirScalar::Literal(v.clone(), ty));
                    }
                }
                self.internal("relabel", vec![e], ty)
            }
            Pathway::Func(oid) => {
                let mut args = vec![e];
                let nargs = catalog::proc_by_oid(*oid).map_or(1, |p| p.args.len());
                if nargs >= 2 {
                    args.push(HirScalar::Literal(Value::Int4(to.typmod), SqlType::Int4.not_null()));
                }
                if nargs >= 3 {
                    args.push(HirScalar::Literal(Value::Bool(ctx == CastContext::Explicit), SqlType::Bool.not_null()));
                }
                let typmod = if nargs >= 2 { to.typmod } else { -1 };
                // int2 becomes oid, or a reg* type, by way of the cast to int4.
                let made = catalog::proc_by_oid(*oid).map(|p| p.ret);
                if made == Some(SqlType::Int4.oid()) && to.ty != SqlType::Int4 {
                    let int4 = ColType { ty: SqlType::Int4, ..ty.clone() };
                    return self.apply_pathway(self.call_oid(*oid, args, int4)?, &Pathway::Relabel, to, ctx);
                }
                self.call_oid(*oid, args, ty.with_typmod(typmod))
            }
            Pathway::Io => self.cast_io(e, &to.ty),
            Pathway::Array(inner) => {
                let op = match &**inner {
                    Pathway::Relabel => 1,
                    Pathway::Io | Pathway::Array(_) => 0,
                    Pathway::Func(oid) => *oid,
                };
                let oid = HirScalar::Literal(Value::UInt4(op), SqlType::Oid.not_null());
                let mut args = vec![oid, e];
                if let Some(p) = catalog::proc_by_oid(op).filter(|p| op > 1 && p.args.len() > 1) {
                    args.push(HirScalar::Literal(Value::Int4(to.typmod), SqlType::Int4.not_null()));
                    if p.args.len() > 2 {
                        args.push(HirScalar::Literal(Value::Bool(ctx == CastContext::Explicit), SqlType::Bool.not_null()));
                    }
                }
                self.internal("cast_array", args, ty)
            }
        }
    }

    fn cast_io(&self, e: HirScalar, to: &SqlType) -> Result<HirScalar, SqlError> {
        let ty = to.clone().nullable().with_nullable(e.typ().nullable);
        let name = if to.is_string() && !matches!(to, SqlType::Char | SqlType::Name) { "cast_to_text" } else { "cast_io" };
        self.internal(name, vec![e], ty)
    }

    /// Length coercion: `numeric(10,2)`, `varchar(5)`, `timestamp(3)` and arrays of them.
    /// `now`: of an untyped literal, whose errors are the statement's.
    fn apply_typmod(&self, e: HirScalar, to: &ColType, ctx: CastContext, now: bool) -> Result<HirScalar, SqlError> {
        let from = e.typ();
        if to.typmod < 0 || from.typmod == to.typmod {
            return Ok(e);
        }
        let (elem, is_array) = match &to.ty {
            SqlType::Array(e) => (&**e, true),
            t => (t, false),
        };
        let Some(cast) = catalog::cast(elem.oid(), elem.oid()) else { return Ok(e) };
        let nargs = catalog::proc_by_oid(cast.func).map_or(2, |p| p.args.len());
        let ty = ColType { ty: to.ty.clone(), typmod: to.typmod, nullable: from.nullable };
        let mut args = vec![e, HirScalar::Literal(Value::Int4(to.typmod), SqlType::Int4.not_null())];
        if nargs >= 3 {
            args.push(HirScalar::Literal(Value::Bool(ctx == CastContext::Explicit), SqlType::Bool.not_null()));
        }
        if is_array {
            args.insert(0, HirScalar::Literal(Value::UInt4(cast.func), SqlType::Oid.not_null()));
            return self.internal("cast_array", args, ty);
        }
        let literal = matches!(&args[0], HirScalar::Literal(..));
        let call = self.call_oid(cast.func, args, ty)?;
        if literal && now {
            return self.fold(call);
        }
        if literal {
            return Ok(self.fold(call.clone()).unwrap_or(call));
        }
        Ok(call)
    }

    /// An unknown literal read by its target's input function, now: its errors are errors of the statement.
    fn coerce_literal(&self, v: &Value, to: &ColType, ctx: CastContext, pos: Pos) -> Result<HirScalar, SqlError> {
        let ty = ColType { ty: to.ty.clone(), typmod: -1, nullable: v.is_null() };
        if v.is_null() {
            return Ok(HirScalar::Literal(Value::Null, ColType { typmod: to.typmod, ..ty }));
        }
        let literal = |v: Value| HirScalar::Literal(v, ty.clone());
        let e = match &to.ty {
            SqlType::Unknown => return Ok(HirScalar::Literal(v.clone(), ty)),
            SqlType::Text | SqlType::Varchar | SqlType::Bpchar => literal(v.clone()),
            SqlType::Record(r) if r.oid == pseudo::RECORD => {
                return Err(SqlError::new(state::FEATURE_NOT_SUPPORTED, "input of anonymous composite types is not implemented").at(pos))
            }
            SqlType::Interval if to.typmod >= 0 => {
                // The fields say what a bare number counts, and that `1:02` may be minutes and seconds.
                let text = HirScalar::Literal(v.clone(), SqlType::Text.not_null());
                let read = self.internal("cast_io", vec![text], ColType { typmod: to.typmod, ..ty.clone() })?;
                self.fold(read).map_err(|e| e.at(pos))?
            }
            other => {
                let text = HirScalar::Literal(v.clone(), SqlType::Text.not_null());
                self.fold(self.cast_io(text, other)?).map_err(|e| e.at(pos))?
            }
        };
        self.apply_typmod(e, to, ctx, true).map_err(|e| e.at(pos))
    }

    /// Field by field.
    pub fn coerce_record(&self, e: HirScalar, to: &ColType, ctx: CastContext, pos: Pos) -> Result<Option<HirScalar>, SqlError> {
        let from = e.typ();
        let (SqlType::Record(a), SqlType::Record(b)) = (&from.ty, &to.ty) else { return Ok(None) };
        if b.oid == pseudo::RECORD && b.fields.is_empty() {
            return Ok(Some(e));
        }
        if a.fields.len() != b.fields.len() || a.name.is_some() && b.oid != pseudo::RECORD && a.oid != b.oid {
            return Ok(None);
        }
        if let HirScalar::Call { func, args, .. } = &e {
            if func.name == "row_construct" {
                let mut out = Vec::with_capacity(args.len());
                for (x, (_, t)) in args.iter().zip(&b.fields) {
                    if let (true, HirScalar::Parameter(n, _)) = (x.typ().ty == SqlType::Unknown, x) {
                        // It stood in a row without a type, and gets the one of its field.
                        let untyped = &mut self.params.borrow_mut().untyped;
                        untyped.iter().rposition(|u| u.0 == *n).map(|i| untyped.remove(i));
                    }
                    match self.try_coerce(x.clone(), t, ctx, pos)? {
                        Some(x) => out.push(x),
                        None => return Ok(None),
                    }
                }
                return self.internal("row_construct", out, to.clone().with_nullable(false)).map(Some);
            }
        }
        if a.fields.iter().zip(&b.fields).all(|(x, y)| x.1.ty == y.1.ty) {
            return self.internal("relabel", vec![e], ColType { nullable: from.nullable, ..to.clone() }).map(Some);
        }
        let mut out = Vec::with_capacity(b.fields.len());
        for (i, (_, t)) in b.fields.iter().enumerate() {
            let field = self.field_select(e.clone(), i)?;
            match self.try_coerce(field, t, ctx, pos)? {
                Some(x) => out.push(x),
                None => return Ok(None),
            }
        }
        let row = self.internal("row_construct", out, to.clone().with_nullable(false))?;
        if !from.nullable {
            return Ok(Some(row));
        }
        let null = HirScalar::Literal(Value::Null, to.clone().with_nullable(true));
        let ty = to.clone().with_nullable(true);
        Ok(Some(HirScalar::Case { branches: vec![(HirScalar::IsNull(Box::new(e)), null)], otherwise: Box::new(row), ty }))
    }

    pub fn field_select(&self, e: HirScalar, i: usize) -> Result<HirScalar, SqlError> {
        let ty = match &e.typ().ty {
            SqlType::Record(r) => r.fields.get(i).map(|f| f.1.clone().with_nullable(true)),
            _ => None,
        };
        let ty = ty.ok_or_else(|| SqlError::internal("field of a value that is no row"))?;
        if let HirScalar::Call { func, args, .. } = &e {
            if func.name == "row_construct" {
                return args.get(i).cloned().ok_or_else(|| SqlError::internal("field beyond the row"));
            }
        }
        let index = HirScalar::Literal(Value::Int4(i32::try_from(i).unwrap_or(i32::MAX)), SqlType::Int4.not_null());
        self.internal("field_select", vec![e, index], ty)
    }

    /// Evaluates an expression of literals. Errors: those of the evaluation.
    pub fn fold(&self, e: HirScalar) -> Result<HirScalar, SqlError> {
        let ty = e.typ();
        let Some(s) = to_scalar(&e) else { return Ok(e) };
        let v = expr::eval_const(&s, self.catalog.eval_ctx())?;
        let nullable = v.is_null();
        Ok(HirScalar::Literal(v, ty.with_nullable(nullable)))
    }

    pub fn internal(&self, name: &str, args: Vec<HirScalar>, ty: ColType) -> Result<HirScalar, SqlError> {
        match func::internal(name) {
            Some(func) => Ok(HirScalar::Call { func, args, ty }),
            None => Err(SqlError::unsupported(format!("expression {name}"), "it is not implemented")),
        }
    }

    /// An entry of ours whose first argument names the function inside.
    pub fn internal_with(&self, name: &str, inner: u32, args: Vec<HirScalar>, ty: ColType) -> Result<HirScalar, SqlError> {
        let f = self.func_by_oid(inner)?;
        let mut all = vec![HirScalar::Literal(Value::UInt4(inner), SqlType::Oid.not_null())];
        all.extend(args);
        match func::internal_with(name, f) {
            Some(func) => Ok(HirScalar::Call { func, args: all, ty }),
            None => Err(SqlError::unsupported(format!("expression {name}"), "it is not implemented")),
        }
    }

    pub fn func_by_oid(&self, oid: u32) -> Result<&'static func::FuncDef, SqlError> {
        func::by_oid(oid).ok_or_else(|| {
            let name = catalog::proc_by_oid(oid).map_or_else(|| oid.to_string(), |p| self.proc_signature(p));
            SqlError::unsupported(format!("function {name}"), "docs/sql/README.md says what there is")
        })
    }

    pub fn call_oid(&self, oid: u32, args: Vec<HirScalar>, ty: ColType) -> Result<HirScalar, SqlError> {
        Ok(HirScalar::Call { func: self.func_by_oid(oid)?, args, ty })
    }

    pub fn proc_signature(&self, p: &catalog::PgProc) -> String {
        let args: Vec<String> = p.args.iter().map(|a| type_name_of(*a)).collect();
        format!("{}({})", p.name, args.join(", "))
    }

    /// Postgres's `select_common_type`: the type that UNION, CASE, ARRAY, VALUES and their like give to several expressions.
    /// `what` names the construct in the error (42804).
    pub fn common_type(&self, types: &[(SqlType, Pos)], what: &str) -> Result<SqlType, SqlError> {
        let mut it = types.iter();
        let Some((first, _)) = it.next() else { return Ok(SqlType::Text) };
        if *first != SqlType::Unknown && types.iter().all(|t| t.0 == *first) {
            return Ok(first.clone());
        }
        let mut best = first.base().clone();
        for (t, pos) in it {
            let t = t.base();
            if *t == SqlType::Unknown || *t == best {
                continue;
            }
            if best == SqlType::Unknown {
                best = t.clone();
                continue;
            }
            let (bc, tc) = (self.category(&best), self.category(t));
            if bc != tc {
                return Err(
                    SqlError::new(state::DATATYPE_MISMATCH, format!("{what} types {} and {} cannot be matched", best.sql_name(), t.sql_name())).at(*pos)
                );
            }
            if !self.is_preferred(best.oid())
                && self.can_coerce(&best, t.oid(), CastContext::Implicit)
                && !self.can_coerce(t, best.oid(), CastContext::Implicit)
            {
                best = t.clone();
            }
        }
        Ok(if best == SqlType::Unknown { SqlType::Text } else { best })
    }

    /// Coerces to the common type; 42846 if that is not possible after all.
    pub fn coerce_common(&self, e: HirScalar, to: &SqlType, what: &str, pos: Pos) -> Result<HirScalar, SqlError> {
        let from = e.typ();
        if from.ty == *to {
            return Ok(e);
        }
        self.try_coerce(e, &to.clone().nullable(), CastContext::Implicit, pos)?
            .ok_or_else(|| SqlError::new(state::CANNOT_COERCE, format!("{what} could not convert type {} to {}", from.ty.sql_name(), to.sql_name())).at(pos))
    }

    /// A condition: WHERE, HAVING, ON, WHEN, AND.
    pub fn coerce_bool(&self, e: HirScalar, what: &str, pos: Pos) -> Result<HirScalar, SqlError> {
        let from = e.typ();
        if from.ty == SqlType::Bool {
            return Ok(e);
        }
        self.try_coerce(e, &SqlType::Bool.nullable(), CastContext::Assignment, pos)?
            .ok_or_else(|| SqlError::new(state::DATATYPE_MISMATCH, format!("argument of {what} must be type boolean, not type {}", from.ty.sql_name())).at(pos))
    }
}

/// The name of a type OID in a signature, pseudo-types included.
pub fn type_name_of(oid: u32) -> String {
    if let Some(t) = SqlType::from_oid(oid).filter(|_| oid != pseudo::RECORD_ARRAY) {
        return t.sql_name();
    }
    match oid {
        pseudo::ANY => "\"any\"".into(),
        other => catalog::type_by_oid(other).map_or_else(|| other.to_string(), |t| t.name.to_owned()),
    }
}

pub fn is_polymorphic(oid: u32) -> bool {
    matches!(
        oid,
        pseudo::ANYARRAY
            | pseudo::ANYELEMENT
            | pseudo::ANYNONARRAY
            | pseudo::ANYENUM
            | pseudo::ANYRANGE
            | pseudo::ANYMULTIRANGE
            | pseudo::ANYCOMPATIBLE
            | pseudo::ANYCOMPATIBLEARRAY
            | pseudo::ANYCOMPATIBLENONARRAY
            | pseudo::ANYCOMPATIBLERANGE
            | pseudo::ANYCOMPATIBLEMULTIRANGE
    )
}

/// A scalar without columns, parameters or subqueries as an evaluable expression.
pub fn to_scalar(e: &HirScalar) -> Option<expr::Scalar> {
    use expr::Scalar;
    let all = |xs: &[HirScalar]| xs.iter().map(to_scalar).collect::<Option<Vec<_>>>();
    Some(match e {
        HirScalar::Literal(v, t) => Scalar::Literal(v.clone(), t.without_domains()),
        HirScalar::Error(err, t) => Scalar::Error(err.clone(), t.without_domains()),
        HirScalar::Call { func, args, ty } => Scalar::Call { func, args: all(args)?, ty: ty.without_domains() },
        HirScalar::And(xs) => Scalar::And(all(xs)?),
        HirScalar::Or(xs) => Scalar::Or(all(xs)?),
        HirScalar::Case { branches, otherwise, ty } => Scalar::Case {
            branches: branches.iter().map(|(c, r)| Some((to_scalar(c)?, to_scalar(r)?))).collect::<Option<_>>()?,
            otherwise: Box::new(to_scalar(otherwise)?),
            ty: ty.without_domains(),
        },
        HirScalar::Coalesce(xs, t) => Scalar::Coalesce(all(xs)?, t.without_domains()),
        HirScalar::IsNull(x) => Scalar::IsNull(Box::new(to_scalar(x)?)),
        HirScalar::Not(x) => Scalar::Not(Box::new(to_scalar(x)?)),
        _ => return None,
    })
}
