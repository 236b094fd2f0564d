//! Which calls mean "the same key bytes", and of which types equal values are also the same bytes.
//!
//! A join class and a group key compare canonical key bytes. An equality operator of one type on both sides means exactly
//! that, so a predicate `a = b` may become a join class. The converse of canonical: values that are equal may still print
//! differently (numeric 1.0 and 1.00), so one may stand for the other in output only if the type says so.

use expr::{FuncDef, Scalar};
use repr::{ColType, SqlError, SqlType, Value};

/// pg_proc names of the `=` operators of btree classes whose two sides have one type.
const EQUALITY: &[&str] = &[
    "booleq",
    "int2eq",
    "int4eq",
    "int8eq",
    "float4eq",
    "float8eq",
    "numeric_eq",
    "texteq",
    "bpchareq",
    "chareq",
    "nameeq",
    "byteaeq",
    "date_eq",
    "time_eq",
    "timetz_eq",
    "timestamp_eq",
    "timestamptz_eq",
    "interval_eq",
    "uuid_eq",
    "jsonb_eq",
    "oideq",
    "network_eq",
    "macaddr_eq",
    "macaddr8_eq",
    "cash_eq",
    "biteq",
    "varbiteq",
    "xid8eq",
    "array_eq",
    "record_eq",
    "enum_eq",
    "range_eq",
    "multirange_eq",
    "oidvectoreq",
    "tsvector_eq",
    "tsquery_eq",
    "uint2eq",
    "uint4eq",
    "uint8eq",
];

/// Whether `func` is an equality operator of one type.
pub fn is_equality(func: &FuncDef) -> bool {
    EQUALITY.contains(&func.name)
}

/// The two sides of `a = b` if the call compares key bytes: an equality operator on sides of one type.
pub fn equality_sides<'a>(predicate: &'a Scalar, types: &[ColType]) -> Option<(&'a Scalar, &'a Scalar)> {
    match predicate {
        Scalar::Call { func, args, .. } if args.len() == 2 && is_equality(func) && same_keys(&args[0].typ(types).ty, &args[1].typ(types).ty) => {
            Some((&args[0], &args[1]))
        }
        _ => None,
    }
}

/// The two sides of a predicate that may be a join class, and whether NULLs match in it: `a = b`, `a IS NOT DISTINCT FROM b`.
pub fn class_sides<'a>(predicate: &'a Scalar, types: &[ColType]) -> Option<(&'a Scalar, &'a Scalar, bool)> {
    if let Some((a, b)) = equality_sides(predicate, types) {
        return Some((a, b, false));
    }
    let Scalar::Call { func, args, .. } = predicate else { return None };
    match &args[..] {
        [Scalar::Literal(Value::UInt4(op), _), a, b] if func.name.starts_with("is_not_distinct") => {
            let by_keys = expr::func::by_oid(*op).is_some_and(is_equality) && same_keys(&a.typ(types).ty, &b.typ(types).ty);
            by_keys.then_some((a, b, true))
        }
        _ => None,
    }
}

/// Whether values of the two types have the same key bytes when they are equal.
pub fn same_keys(a: &SqlType, b: &SqlType) -> bool {
    let text = |t: &SqlType| matches!(t, SqlType::Text | SqlType::Varchar);
    a == b || (text(a) && text(b))
}

/// Whether equal values of the type are the same in every respect.
pub fn equal_is_identical(ty: &SqlType) -> bool {
    use SqlType::*;
    match ty {
        Numeric | Float4 | Float8 | Bpchar | Interval | Jsonb | Json | JsonPath | TsQuery | Range(_) | Multirange(_) | UserRange(_) | UserMultirange(_)
        | Map(_) => false,
        Array(t) | List(t) => equal_is_identical(t),
        Record(r) => r.fields.iter().all(|(_, t)| equal_is_identical(&t.ty)),
        _ => true,
    }
}

/// `a = b` for two expressions of type `ty`; with `null_safe`, true also where both are NULL.
pub fn equality(a: Scalar, b: Scalar, ty: &SqlType, null_safe: bool) -> Result<Scalar, SqlError> {
    use SqlType::*;
    let ty = ty.base();
    let oid = match ty {
        Bool => 60,
        Int2 => 63,
        Int4 => 65,
        Int8 => 467,
        Float4 => 287,
        Float8 => 293,
        Numeric => 1718,
        Text | Varchar => 67,
        Bpchar => 1048,
        Char => 61,
        Name => 62,
        Bytea => 1948,
        Date => 1086,
        Time => 1145,
        TimeTz => 1352,
        Timestamp => 2052,
        TimestampTz => 1152,
        Interval => 1162,
        Uuid => 2956,
        Jsonb => 4043,
        Oid | Reg(_) => 184,
        Inet | Cidr => 920,
        MacAddr => 830,
        MacAddr8 => 4113,
        Money => 888,
        Bit => 1581,
        VarBit => 1666,
        TsVector => 3618,
        TsQuery => 3664,
        Xid8 => 5084,
        PgLsn => 3233,
        Array(_) | Int2Vector | List(_) | Map(_) => 744,
        OidVector => 679,
        Record(_) => 2981,
        Enum(_) => 3508,
        Range(_) | UserRange(_) => 3855,
        Multirange(_) | UserMultirange(_) => 4244,
        _ => 0,
    };
    let func = match ty {
        UInt2 => expr::func::internal("uint2eq"),
        UInt4 => expr::func::internal("uint4eq"),
        UInt8 => expr::func::internal("uint8eq"),
        // A join of rows with rows that were made from them compares types that SQL does not.
        _ if oid == 0 => expr::func::internal("same_image"),
        _ => expr::func::by_oid(oid),
    };
    let func = func.ok_or_else(|| SqlError::internal(format!("no equality of type {ty:?}")))?;
    let equal = Scalar::Call { func, args: vec![a.clone(), b.clone()], ty: Bool.nullable() };
    if !null_safe {
        return Ok(equal);
    }
    let both_null = Scalar::And(vec![Scalar::IsNull(Box::new(a)), Scalar::IsNull(Box::new(b))]);
    Ok(Scalar::Coalesce(vec![equal, both_null], Bool.not_null()))
}
