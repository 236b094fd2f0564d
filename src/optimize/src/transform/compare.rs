//! Comparisons of two types as comparisons of one, so that an equality is a join class or an index look-up.
//!
//! `int8col = 5` compares int8 with int4: the literal becomes int8. `int4col = int8col` widens the narrow side. What stands
//! for the same bytes under another name (varchar as text) is compared without the renaming.

use expr::{FuncDef, Scalar};
use plan::equality::same_keys;
use repr::{ColType, SqlType, Value};

/// The comparison and its operands in the simplest types.
pub(super) fn of_one_type(func: &'static FuncDef, args: Vec<Scalar>, types: &[ColType]) -> (&'static FuncDef, Vec<Scalar>) {
    if args.len() != 2 {
        return (func, args);
    }
    if super::is_comparison(func.name) && func.name.starts_with("text") {
        return (func, args.into_iter().map(|a| without_relabel(a, types)).collect());
    }
    let (narrow, wide) = match func.name {
        "int24eq" | "int42eq" => (SqlType::Int2, SqlType::Int4),
        "int28eq" | "int82eq" => (SqlType::Int2, SqlType::Int8),
        "int48eq" | "int84eq" => (SqlType::Int4, SqlType::Int8),
        "float48eq" | "float84eq" => (SqlType::Float4, SqlType::Float8),
        _ => return (func, args),
    };
    // A wide literal that fits makes the comparison narrow, which an index on the column can answer.
    if let Some(args) = all(&args, |a| narrowed(a, &narrow, types)) {
        if let Some(func) = equality(&narrow) {
            return (func, args);
        }
    }
    match (equality(&wide), all(&args, |a| widened(a, &narrow, &wide, types))) {
        (Some(func), Some(args)) => (func, args),
        _ => (func, args),
    }
}

fn all(args: &[Scalar], f: impl Fn(&Scalar) -> Option<Scalar>) -> Option<Vec<Scalar>> {
    args.iter().map(f).collect()
}

fn equality(ty: &SqlType) -> Option<&'static FuncDef> {
    expr::func::by_oid(match ty {
        SqlType::Int2 => 63,
        SqlType::Int4 => 65,
        SqlType::Int8 => 467,
        SqlType::Float4 => 287,
        _ => 293,
    })
}

fn narrowed(s: &Scalar, narrow: &SqlType, types: &[ColType]) -> Option<Scalar> {
    if s.typ(types).ty == *narrow {
        return Some(s.clone());
    }
    let Scalar::Literal(v, t) = s else { return None };
    let n = v.as_i64()?;
    let value = match narrow {
        SqlType::Int2 => Value::Int2(i16::try_from(n).ok()?),
        SqlType::Int4 => Value::Int4(i32::try_from(n).ok()?),
        _ => return None,
    };
    Some(Scalar::Literal(value, ColType { ty: narrow.clone(), ..t.clone() }))
}

fn widened(s: &Scalar, narrow: &SqlType, wide: &SqlType, types: &[ColType]) -> Option<Scalar> {
    let t = s.typ(types);
    if t.ty != *narrow {
        return Some(s.clone());
    }
    let oid = match (narrow, wide) {
        (SqlType::Int2, SqlType::Int4) => 313,
        (SqlType::Int2, SqlType::Int8) => 754,
        (SqlType::Int4, SqlType::Int8) => 481,
        _ => 311,
    };
    if let Scalar::Literal(v, t) = s {
        let value = match (v, wide) {
            (Value::Null, _) => Value::Null,
            (v, SqlType::Int4) => Value::Int4(i32::try_from(v.as_i64()?).ok()?),
            (v, SqlType::Int8) => Value::Int8(v.as_i64()?),
            (Value::Float4(f), _) => Value::Float8(f64::from(*f)),
            _ => return None,
        };
        return Some(Scalar::Literal(value, ColType { ty: wide.clone(), ..t.clone() }));
    }
    let func = expr::func::by_oid(oid).filter(|f| !f.fallible)?;
    Some(Scalar::Call { func, args: vec![s.clone()], ty: ColType { ty: wide.clone(), ..t } })
}

fn without_relabel(s: Scalar, types: &[ColType]) -> Scalar {
    match s {
        Scalar::Call { func, mut args, ty } if func.name == "relabel" && args.len() == 1 && same_keys(&args[0].typ(types).ty, &ty.ty) => {
            without_relabel(args.swap_remove(0), types)
        }
        s => s,
    }
}
