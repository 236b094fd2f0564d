//! Lists and maps of the Materialize dialect: constructors, functions, operators and subscripts, resolved here since pg_proc has no rows
//! of theirs. Not here: what they compute (`expr::func::collection`).

use super::*;
use crate::ast::{Expr, ExprKind, FuncCall, Ident, Indirection, OpName};
use crate::hir::HirScalar;
use expr::catalog::CastContext;

impl Binder<'_> {
    /// A call of a list or map function; `None`: it is none, for these arguments.
    pub fn collection_call(&self, call: &FuncCall, args: &[HirScalar], pos: Pos, env: &scope::Env) -> Result<Option<HirScalar>, SqlError> {
        let name = match call.name.as_slice() {
            [n] => n,
            // Made by the grammar.
            [_, n] if call.system => n,
            _ => return Ok(None),
        };
        let types: Vec<SqlType> = args.iter().map(|a| a.typ().ty).collect();
        let list = |t: &SqlType| SqlType::List(Box::new(t.clone()));
        let like = |e: &HirScalar, t: &SqlType| self.coerce_implicit(e.clone(), t, pos);
        let int8 = SqlType::Int8;
        let (entry, args, ret) = match (name.name.as_str(), types.as_slice()) {
            ("list", _) if call.system => return self.list_literal(call, args, pos, env).map(Some),
            ("map", _) if call.system => return self.map_literal(call, args, pos).map(Some),
            ("list_agg", [SqlType::Array(e)]) => ("relabel", args.to_vec(), list(e)),
            ("map_agg" | "map_build", [SqlType::Array(e) | SqlType::List(e)]) => match &**e {
                SqlType::Record(r) if r.fields.len() == 2 && r.fields[0].1.ty.is_string() => {
                    let value = r.fields[1].1.ty.clone();
                    ("map_build", args.to_vec(), SqlType::Map(Box::new(value)))
                }
                _ => return Ok(None),
            },
            ("list_append", [t @ SqlType::List(e), _]) => ("list_append", vec![args[0].clone(), like(&args[1], e)?], t.clone()),
            ("list_prepend", [_, t @ SqlType::List(e)]) => ("list_prepend", vec![like(&args[0], e)?, args[1].clone()], t.clone()),
            ("list_remove", [t @ SqlType::List(e), _]) => ("list_remove", vec![args[0].clone(), like(&args[1], e)?], t.clone()),
            ("list_cat", [t @ SqlType::List(_), _] | [_, t @ SqlType::List(_)]) => ("list_cat", vec![like(&args[0], t)?, like(&args[1], t)?], t.clone()),
            ("list_length", [SqlType::List(_)]) => ("list_length", args.to_vec(), SqlType::Int4),
            ("list_length_max", [SqlType::List(_), _]) => ("list_length_max", vec![args[0].clone(), like(&args[1], &int8)?], int8),
            ("list_n_layers", [t @ SqlType::List(_)]) => {
                let mut layers = 0;
                let mut at = t;
                while let SqlType::List(e) = at {
                    layers += 1;
                    at = e;
                }
                return Ok(Some(HirScalar::Literal(Value::Int4(layers), SqlType::Int4.not_null())));
            }
            ("map_length", [SqlType::Map(_)]) => ("map_length", args.to_vec(), SqlType::Int4),
            _ => return Ok(None),
        };
        self.internal(entry, args, ret.nullable()).map(Some)
    }

    fn list_literal(&self, call: &FuncCall, args: &[HirScalar], pos: Pos, env: &scope::Env) -> Result<HirScalar, SqlError> {
        // A column of this name with one subscript.
        if let [only] = call.args.as_slice() {
            let column = Expr::new(ExprKind::Column(vec![Ident { name: "list".into(), pos }]), pos);
            if let Ok(x) = self.expr(&column, env) {
                return self.subscript(x, &[Indirection::Index(only.expr.clone())], pos, env);
            }
        }
        if args.is_empty() {
            return Err(SqlError::new(state::INDETERMINATE_DATATYPE, "cannot determine type of empty list")
                .with_hint("Explicitly cast to the desired type, for example LIST[]::int list.")
                .at(pos));
        }
        let elem = self.common_of(args, pos, "LIST")?;
        let args = args.iter().map(|a| self.coerce_common(a.clone(), &elem, "LIST", pos)).collect::<Result<Vec<_>, _>>()?;
        self.internal("list_construct", args, SqlType::List(Box::new(elem)).not_null())
    }

    fn map_literal(&self, _: &FuncCall, args: &[HirScalar], pos: Pos) -> Result<HirScalar, SqlError> {
        if args.is_empty() {
            return Err(SqlError::new(state::INDETERMINATE_DATATYPE, "cannot determine type of empty map")
                .with_hint("Explicitly cast to the desired type, for example MAP[]::map[text=>int].")
                .at(pos));
        }
        let values: Vec<HirScalar> = args.iter().skip(1).step_by(2).cloned().collect();
        let elem = self.common_of(&values, pos, "MAP")?;
        let mut out = Vec::with_capacity(args.len());
        for (i, a) in args.iter().enumerate() {
            out.push(if i % 2 == 0 { self.coerce_implicit(a.clone(), &SqlType::Text, pos)? } else { self.coerce_common(a.clone(), &elem, "MAP", pos)? });
        }
        self.internal("map_construct", out, SqlType::Map(Box::new(elem)).not_null())
    }

    fn common_of(&self, args: &[HirScalar], pos: Pos, what: &str) -> Result<SqlType, SqlError> {
        let types: Vec<(SqlType, Pos)> = args.iter().map(|a| (a.typ().ty, pos)).collect();
        self.common_type(&types, what)
    }

    /// `LIST[]` and `MAP[]`, which have the type that they are cast to.
    pub fn empty_collection(&self, e: &Expr, to: &SqlType) -> Result<Option<HirScalar>, SqlError> {
        let ExprKind::Func(call) = &*e.kind else { return Ok(None) };
        let [_, name] = call.name.as_slice() else { return Ok(None) };
        let entry = match (name.name.as_str(), to) {
            ("list", SqlType::List(_)) => "list_construct",
            ("map", SqlType::Map(_)) => "map_construct",
            _ => return Ok(None),
        };
        if !call.system || !call.args.is_empty() {
            return Ok(None);
        }
        self.internal(entry, Vec::new(), to.clone().not_null()).map(Some)
    }

    /// An operator on a list or map; `None`: it has none of this name.
    pub fn collection_operator(&self, op: &OpName, x: &HirScalar, lpos: Pos, y: &HirScalar, rpos: Pos) -> Result<Option<HirScalar>, SqlError> {
        let (tx, ty) = (x.typ().ty, y.typ().ty);
        if !matches!(tx, SqlType::List(_) | SqlType::Map(_)) && !matches!(ty, SqlType::List(_) | SqlType::Map(_)) {
            return Ok(None);
        }
        let to = |e: &HirScalar, t: &SqlType, pos: Pos| self.coerce_implicit(e.clone(), t, pos);
        let texts = SqlType::Text.array_of();
        let bool = SqlType::Bool;
        let same = |a: &SqlType, b: &SqlType| a == b || *b == SqlType::Unknown;
        let (entry, args, ret) = match (op.name.as_str(), &tx, &ty) {
            ("||", SqlType::List(_), _) if same(&tx, &ty) => ("list_cat", vec![x.clone(), to(y, &tx, rpos)?], tx.clone()),
            ("||", _, SqlType::List(_)) if same(&ty, &tx) => ("list_cat", vec![to(x, &ty, lpos)?, y.clone()], ty.clone()),
            ("||", SqlType::List(e), _) => ("list_append", vec![x.clone(), to(y, e, rpos)?], tx.clone()),
            ("||", _, SqlType::List(e)) => ("list_prepend", vec![to(x, e, lpos)?, y.clone()], ty.clone()),
            ("@>", SqlType::List(_), _) if same(&tx, &ty) => ("list_contains", vec![x.clone(), to(y, &tx, rpos)?], bool),
            ("<@", _, SqlType::List(_)) if same(&ty, &tx) => ("list_contains", vec![y.clone(), to(x, &ty, lpos)?], bool),
            ("->", SqlType::Map(v), _) => ("map_get", vec![x.clone(), to(y, &SqlType::Text, rpos)?], (**v).clone()),
            ("?", SqlType::Map(_), _) => ("map_has", vec![x.clone(), to(y, &SqlType::Text, rpos)?], bool),
            ("?&", SqlType::Map(_), _) => ("map_has_all", vec![x.clone(), to(y, &texts, rpos)?], bool),
            ("?|", SqlType::Map(_), _) => ("map_has_any", vec![x.clone(), to(y, &texts, rpos)?], bool),
            ("@>", SqlType::Map(_), _) if same(&tx, &ty) => ("map_contains", vec![x.clone(), to(y, &tx, rpos)?], bool),
            ("<@", _, SqlType::Map(_)) if same(&ty, &tx) => ("map_contains", vec![y.clone(), to(x, &ty, lpos)?], bool),
            (name, _, _) if same(&tx, &ty) || same(&ty, &tx) => {
                // The comparisons of arrays take any type's values.
                let f = match name {
                    "=" => "array_eq",
                    "<>" | "!=" => "array_ne",
                    "<" => "array_lt",
                    "<=" => "array_le",
                    ">" => "array_gt",
                    ">=" => "array_ge",
                    _ => return Ok(None),
                };
                let t = if tx == SqlType::Unknown { &ty } else { &tx };
                let oid = expr::catalog::procs_by_name(f).next().map_or(0, |p| p.oid);
                return self.call_oid(oid, vec![to(x, t, lpos)?, to(y, t, rpos)?], SqlType::Bool.nullable()).map(Some);
            }
            _ => return Ok(None),
        };
        self.internal(entry, args, ret.nullable()).map(Some)
    }

    /// `l[i]`, through layers; `l[a:b]` of the first layer; `m['key']`.
    pub fn collection_subscript(&self, x: HirScalar, path: &[Indirection], pos: Pos, env: &scope::Env) -> Result<HirScalar, SqlError> {
        let index = |e: &Expr, to: SqlType| -> Result<HirScalar, SqlError> {
            let i = self.expr(e, env)?;
            self.coerce(i, &to.nullable(), CastContext::Assignment, e.pos)
        };
        let mut x = x;
        for p in path {
            let ty = x.typ().ty;
            x = match (&ty, p) {
                (SqlType::List(e), Indirection::Index(i)) => self.internal("list_subscript", vec![x, index(i, SqlType::Int8)?], (**e).clone().nullable())?,
                (SqlType::List(_), Indirection::Slice(lo, hi)) => {
                    let mask = i32::from(lo.is_none()) | i32::from(hi.is_none()) << 1;
                    let mut args = vec![x, HirScalar::Literal(Value::Int4(mask), SqlType::Int4.not_null())];
                    for b in [lo, hi] {
                        args.push(match b {
                            Some(e) => index(e, SqlType::Int8)?,
                            None => HirScalar::Literal(Value::Int8(0), SqlType::Int8.not_null()),
                        });
                    }
                    self.internal("list_slice", args, ty.clone().nullable())?
                }
                (SqlType::Map(v), Indirection::Index(k)) => self.internal("map_get", vec![x, index(k, SqlType::Text)?], (**v).clone().nullable())?,
                // An element that has subscripts of another kind.
                (SqlType::List(_) | SqlType::Map(_), _) => {
                    let m = format!("cannot subscript type {} because it does not support subscripting", ty.sql_name());
                    return Err(SqlError::new(state::DATATYPE_MISMATCH, m).at(pos));
                }
                _ => self.subscript(x, std::slice::from_ref(p), pos, env)?,
            };
        }
        Ok(x)
    }
}
