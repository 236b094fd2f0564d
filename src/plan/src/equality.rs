//! Which calls mean "the same key bytes", and of which types equal values are also the same bytes.
//!
//! A join class and a group key compare canonical key bytes. An equality operator of one type on both sides means exactly
//! that, so a predicate `a = b` may become a join class. The converse of canonical: values that are equal may still print
//! differently (numeric 1.0 and 1.00), so one may stand for the other in output only if the type says so.

use expr::{FuncDef, Scalar};
use repr::{ColType, SqlType};

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
    "array_eq",
    "record_eq",
    "enum_eq",
    "range_eq",
    "multirange_eq",
    "oidvectoreq",
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

/// Whether values of the two types have the same key bytes when they are equal.
pub fn same_keys(a: &SqlType, b: &SqlType) -> bool {
    let text = |t: &SqlType| matches!(t, SqlType::Text | SqlType::Varchar);
    a == b || (text(a) && text(b))
}

/// Whether equal values of the type are the same in every respect.
pub fn equal_is_identical(ty: &SqlType) -> bool {
    use SqlType::*;
    match ty {
        Numeric | Float4 | Float8 | Bpchar | Interval | Jsonb | Json | JsonPath | Range(_) | Multirange(_) | Map(_) => false,
        Array(t) | List(t) => equal_is_identical(t),
        Record(r) => r.fields.iter().all(|(_, t)| equal_is_identical(&t.ty)),
        _ => true,
    }
}
