//! Function entries and their lifting over columns.
//!
//! A function is written once, as a plain Rust function on native values; [`lift`] turns it into a kernel over Arrow columns
//! that handles NULLs (strict functions) and gathers errors per row.
//!
//! ```text
//!   file's FUNCS: &[Entry]     Entry { names, fallible, kernel }
//!     names: the C names of pg_proc.prosrc ("int4pl": all rows of pg_proc that share it; "has_*": all that begin so), or a decimal
//!            pg_proc OID ("879": for functions that Postgres writes in SQL)
//!   + catalog (name, strictness, volatility)  ──►  FuncDef by OID, built on first use
//! ```
//!
//! How to write entries: see [`lift`] (macros `f1!`, `f2!`, ..., `val!`, `vals!`).
//!
//! # Our own entries (`internal(name)`, oid 0)
//!
//! Argument conventions; `op` is a literal of type oid holding the pg_proc OID of the operator's or cast's function. Where an entry takes
//! `op`, use [`internal_with`], which picks the infallible twin if the inner function cannot fail.
//!
//! | name | arguments | result |
//! |---|---|---|
//! | `cast_io` | `(x)` | `x` through its text form to the call's type (text to anything, anything to anything); of the call's typmod only an interval's is applied (what a bare number means) |
//! | `cast_to_text` | `(x)` | the text form of `x`, any string type; cannot fail |
//! | `relabel` | `(x)` | the same value as another type (`pg_cast` method `b`; int4 to oid; record to record; enum value kept) |
//! | `cast_array` | `(op, array)` or `(op, array, typmod int4, explicit bool)` | each element through the cast function `op`; 0: through text; 1: relabel |
//! | `array_construct` | `(e1, .., en)` | `ARRAY[..]`; if the arguments have the call's own array type, an array of one more dimension |
//! | `variadic_any` | `(op, a.., array)` | the function `op` called with `a..` and the array's elements |
//! | `range_construct`, `multirange_construct` | `(lower, upper[, flags text])`, `(range or array of them ..)` | a value of a user-defined range type |
//! | `row_construct` | `(f1, .., fn)` | a record |
//! | `field_select` | `(record, i int4 literal)` | field `i`, from 0 |
//! | `array_subscript` | `(array or geometric value, i1 int4, .., in)` | an element, NULL outside |
//! | `array_slice` | `(array, mask int4 literal, lo1, hi1, .., lon, hin)` | bit `2k` of the mask: bound `lo(k+1)` was omitted, bit `2k+1`: `hi(k+1)`; a plain subscript `i` among slices is `1:i` |
//! | `array_assign` | `(array, value, mask int4, ..)`, the rest as for `array_slice`; a mask of NULL: as for `array_subscript` | the array with an element or a slice replaced |
//! | `jsonb_assign` | `(jsonb, value jsonb, s1, .., sn)` | the document with the part replaced or added |
//! | `jsonb_subscript` | `(jsonb, s1, .., sn)` | each subscript text or int4 |
//! | `any_op`, `all_op` | `(op, x, array)` | `x op ANY (array)` |
//! | `is_distinct`, `is_not_distinct` | `(op, a, b)` | `op` is the `=` of the types of `a` and `b` |
//! | `nullif` | `(op, a, b)` | `a` unless `a op b` is true |
//! | `greatest`, `least` | `(x1, .., xn)` | all of one type, NULLs ignored |
//! | `is_true`, `is_not_true`, `is_false`, `is_not_false` | `(bool)` | never NULL (IS UNKNOWN is `IsNull`) |
//! | `domain_not_null`, `domain_check` | `(x, domain text)`, `(x, ok bool, domain text, check text)` | `x`, or 23502 if it is NULL, 23514 if `ok` is false |
//! | `record_error` | `(position text, reason text, source text)` | of any type: 22000, the record of a source that cannot be decoded |
//! | `single_row_guard` | `(count int8)` | true, or 21000 if `count` > 1: "more than one row returned by a subquery used as an expression" |
//! | `limit_guard`, `offset_guard` | `(n int8)` | `n`, or 2201W / 2201X if it is negative |
//! | `current_date`, `current_time`, `current_timestamp`, `localtime`, `localtimestamp` | `()` or `(precision int4 literal)` | |
//! | `millis_at_or_after`, `millis_after` | `(timestamptz)` | the first millisecond since 1970 not before, resp. after it; `int8_after (int8)`: the next number |
//! | `record_is_null`, `record_is_not_null` | `(record)` | `IS NULL` / `IS NOT NULL` on a row value: all fields are, resp. none is |

use crate::catalog;
use crate::ctx::EvalCtx;
use arrow_array::ArrayRef;
use repr::{ColType, SqlError};
use std::collections::HashMap;
use std::sync::OnceLock;

/// Who may do what, as a value.
pub(crate) mod acl;
/// Arithmetic and comparison of integers and floats, and bit operations.
pub mod arith;
/// Array functions, and those of enumerations.
pub mod array;
/// Values with a part replaced.
pub mod assign;
/// Bit strings.
pub mod bits;
/// bytea, encodings and digests, uuid.
pub mod bytes;
/// Casts through text, between names for the same bytes, over arrays.
pub mod cast;
/// Comparison of every type.
pub mod cmp;
/// Lists and maps.
pub mod collection;
/// Constructors, accessors, quantified comparison, guards: our own entries.
pub mod construct;
/// Dates, times, intervals.
pub mod datetime;
/// Encodings by number, and text in ASCII.
mod encoding;
/// Floating-point arithmetic and mathematics.
pub mod float;
/// `to_char`, `to_date`, `to_timestamp`, `to_number`.
pub mod formatting;
/// Geometric operators and functions.
pub mod geo;
/// Hashes of values.
pub mod hash;
/// Addresses and networks.
pub mod inet;
/// What information_schema is made with.
mod information;
/// `json` and `jsonb`: access, change, construction.
pub mod json;
/// JSON text as slices.
pub mod json_text;
/// jsonpath: queries inside a JSON document.
pub mod jsonpath;
/// The lifting of plain functions over columns.
pub mod lift;
/// LIKE, ILIKE, and the patterns of SIMILAR TO.
pub mod like;
/// Places in a log.
pub mod lsn;
/// Hardware addresses.
pub mod mac;
/// Amounts of money.
pub mod money;
/// Exact numbers.
pub mod numeric;
/// What objects are called.
mod object;
/// Functions over the session and the catalog.
pub mod privilege;
/// Ranges and multiranges.
pub mod range;
/// Regular expressions in Postgres's flavour.
pub mod regex;
pub mod system;
/// Times in the engine's milliseconds.
pub mod temporal;
/// Text functions.
pub mod text;
/// SQL values as JSON, and JSON as SQL rows.
pub mod to_json;
/// Numbers of transactions.
pub(crate) mod transaction;
/// Text search.
pub mod tsearch;

/// Whether a call depends on nothing but its arguments, as Postgres finds for indexes and generated columns: what casts through
/// text, and the functions over any type that do, is as immutable as the text forms of the types.
pub fn call_is_immutable(func: &FuncDef, args: &[crate::Scalar], ret: &repr::SqlType, input: &[repr::ColType]) -> bool {
    let ty = |i: usize| args.get(i).map(|a: &crate::Scalar| a.typ(input).ty);
    let shown = |i| ty(i).is_none_or(|t| cast::output_is_immutable(&t));
    match func.name {
        "cast_to_text" => shown(0),
        "cast_io" => shown(0) && cast::input_is_immutable(ret),
        "cast_array" | "cast_array_total" => match args.first() {
            Some(crate::Scalar::Literal(repr::Value::UInt4(0), _)) => {
                let from = ty(1).is_none_or(|t| cast::output_is_immutable(construct::element_type(&t)));
                from && cast::input_is_immutable(construct::element_type(ret))
            }
            Some(crate::Scalar::Literal(repr::Value::UInt4(oid), _)) => by_oid(*oid).is_none_or(|f| f.volatility == Volatility::Immutable),
            _ => true,
        },
        // Postgres inlines these: they are SQL over a cast to text.
        "textanycat" => shown(1),
        "anytextcat" => shown(0),
        "quote_literal" | "quote_nullable" => shown(0),
        _ => func.volatility == Volatility::Immutable,
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Volatility {
    Immutable,
    Stable,
    Volatile,
}

/// One function, operator implementation or cast. Compared by identity of `name` and `oid`.
pub struct FuncDef {
    /// pg_proc.proname; casts and constructs without one have a name of ours (`cast_io`, `array_construct`).
    pub name: &'static str,
    /// pg_proc.oid; 0 for ours.
    pub oid: u32,
    pub strict: bool,
    pub volatility: Volatility,
    /// Whether it can raise an error.
    pub fallible: bool,
    pub kernel: Kernel,
}

/// Evaluates a function over `len` rows: one column in, one out. A row that fails is NULL in the result and noted in `errors`.
///
/// An argument column has `len` rows, or one row that stands for all (literals). The result has `len` rows.
pub type Kernel = fn(&mut CallArgs<'_>) -> ArrayRef;

/// A kernel's arguments.
pub struct CallArgs<'a> {
    pub args: &'a [ArrayRef],
    pub arg_types: &'a [ColType],
    pub ret: &'a ColType,
    pub len: usize,
    pub ctx: &'a EvalCtx,
    pub errors: &'a mut Vec<(u32, SqlError)>,
}

/// One line of a file's function table. Strictness, volatility and name come from the catalog.
pub struct Entry {
    /// C names (`pg_proc.prosrc`) or decimal OIDs.
    pub names: &'static [&'static str],
    pub fallible: bool,
    /// Whether the kernel returns NULL for NULL arguments by itself; checked against the catalog by a test.
    pub strict: bool,
    pub kernel: Kernel,
}

impl std::fmt::Debug for FuncDef {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

impl PartialEq for FuncDef {
    fn eq(&self, other: &FuncDef) -> bool {
        std::ptr::eq(self, other) || (self.oid == other.oid && self.name == other.name)
    }
}

/// The files' tables.
const TABLES: &[&[Entry]] = &[
    arith::INT2,
    arith::INT4,
    arith::INT8,
    arith::UINT2,
    arith::UINT4,
    arith::UINT8,
    arith::INT24,
    arith::INT42,
    arith::INT28,
    arith::INT82,
    arith::INT48,
    arith::INT84,
    arith::FUNCS,
    float::FUNCS,
    cmp::BOOL,
    cmp::INT2,
    cmp::INT4,
    cmp::INT8,
    cmp::OID,
    cmp::INT24,
    cmp::INT42,
    cmp::INT28,
    cmp::INT82,
    cmp::INT48,
    cmp::INT84,
    cmp::FLOAT4,
    cmp::FLOAT8,
    cmp::FLOAT48,
    cmp::FLOAT84,
    cmp::UINT2,
    cmp::UINT8,
    cmp::TEXT,
    cmp::BPCHAR,
    cmp::BYTEA,
    cmp::ANY,
    cmp::RECORD,
    cmp::IMAGE,
    cmp::FUNCS,
    numeric::FUNCS,
    datetime::MIXED,
    datetime::FUNCS,
    json::FUNCS,
    formatting::FUNCS,
    text::FUNCS,
    like::FUNCS,
    regex::FUNCS,
    bytes::FUNCS,
    cast::FUNCS,
    array::FUNCS,
    system::FUNCS,
    transaction::FUNCS,
    encoding::FUNCS,
    information::FUNCS,
    object::FUNCS,
    acl::FUNCS,
    privilege::FUNCS,
    range::FUNCS,
    inet::FUNCS,
    mac::FUNCS,
    bits::FUNCS,
    money::FUNCS,
    hash::FUNCS,
    lsn::FUNCS,
    jsonpath::FUNCS,
    geo::POINTS,
    geo::LINES,
    geo::BOXES,
    geo::PATHS,
    geo::POLYGONS,
    geo::CIRCLES,
    tsearch::FUNCS,
];

/// The files' tables of our own entries.
const INTERNAL: &[&[FuncDef]] = &[construct::INTERNAL, range::INTERNAL, collection::INTERNAL, cast::INTERNAL, system::INTERNAL, temporal::INTERNAL];

/// The function with this pg_proc OID, if it is implemented.
pub fn by_oid(oid: u32) -> Option<&'static FuncDef> {
    registry().by_oid.get(&oid)
}

/// One of our own entries (oid 0) by name.
pub fn internal(name: &str) -> Option<&'static FuncDef> {
    registry().internal.get(name).copied()
}

/// The entry `name` whose first argument is the OID of `inner`: the infallible twin (`name_total`) if `inner` cannot fail.
pub fn internal_with(name: &str, inner: &FuncDef) -> Option<&'static FuncDef> {
    if !inner.fallible {
        if let Some(total) = internal(&format!("{name}_total")) {
            return Some(total);
        }
    }
    internal(name)
}

/// Whether a call can raise an error, given its arguments: a literal divisor, pattern or the like may exclude what `fallible` allows.
pub fn call_can_fail(func: &FuncDef, args: &[crate::Scalar]) -> bool {
    use crate::Scalar::Literal;
    use repr::Value;
    if !func.fallible {
        return false;
    }
    let literal = |i: usize| match args.get(i) {
        Some(Literal(v, _)) => Some(v),
        _ => None,
    };
    if func.strict && args.iter().any(|a| matches!(a, Literal(Value::Null, _))) {
        return false;
    }
    let Some(p) = catalog::proc_by_oid(func.oid) else { return true };
    match (p.src, literal(1)) {
        ("int2div" | "int4div" | "int8div" | "int24div" | "int42div" | "int48div" | "int84div" | "int28div" | "int82div", Some(v)) => {
            matches!(v.as_i64(), None | Some(0 | -1))
        }
        ("int2mod" | "int4mod" | "int8mod", Some(v)) => matches!(v.as_i64(), None | Some(0)),
        ("textlike" | "textnlike" | "texticlike" | "texticnlike" | "namelike" | "namenlike", Some(Value::Text(p))) => !like::is_valid(p),
        ("textregexeq" | "textregexne" | "texticregexeq" | "texticregexne" | "nameregexeq" | "textregexsubstr", Some(Value::Text(p))) => !regex::is_valid(p),
        ("numeric_round", Some(v)) => v.as_i64().is_none_or(|s| s < 0),
        ("text_substr", _) => literal(2).and_then(Value::as_i64).is_none_or(|n| n < 0),
        ("split_part", _) => matches!(literal(2).and_then(Value::as_i64), None | Some(0)),
        _ => true,
    }
}

/// All functions with a pg_proc OID that are implemented.
pub fn implemented() -> impl Iterator<Item = &'static FuncDef> {
    registry().by_oid.values()
}

struct Registry {
    by_oid: HashMap<u32, FuncDef>,
    internal: HashMap<&'static str, &'static FuncDef>,
}

fn registry() -> &'static Registry {
    static REGISTRY: OnceLock<Registry> = OnceLock::new();
    REGISTRY.get_or_init(|| {
        let mut by_src: HashMap<&str, &Entry> = HashMap::new();
        for e in TABLES.iter().flat_map(|t| t.iter()) {
            for n in e.names {
                by_src.insert(n, e);
            }
        }
        let mut by_oid = HashMap::new();
        for p in catalog::procs() {
            if p.kind != catalog::ProcKind::Function || p.returns_set {
                continue;
            }
            let prefix = || by_src.iter().find(|(n, _)| n.strip_suffix('*').is_some_and(|n| p.src.starts_with(n))).map(|(_, e)| e);
            let entry = by_src.get(p.oid.to_string().as_str()).or_else(|| by_src.get(p.src)).or_else(prefix);
            if let Some(e) = entry {
                let volatility = match p.volatility {
                    'i' => Volatility::Immutable,
                    's' => Volatility::Stable,
                    _ => Volatility::Volatile,
                };
                by_oid.insert(p.oid, FuncDef { name: p.name, oid: p.oid, strict: p.strict, volatility, fallible: e.fallible, kernel: e.kernel });
            }
        }
        Registry { by_oid, internal: INTERNAL.iter().flat_map(|t| t.iter()).map(|f| (f.name, f)).collect() }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A name that no row of pg_proc has would never be called; a strictness unlike the catalog's would mishandle NULL.
    #[test]
    fn entries_agree_with_the_catalog() {
        let mut differ = Vec::new();
        for e in TABLES.iter().flat_map(|t| t.iter()) {
            for n in e.names {
                let begins = |p: &catalog::PgProc| n.strip_suffix('*').is_some_and(|n| p.src.starts_with(n) && !p.returns_set);
                let rows: Vec<_> = catalog::procs().iter().filter(|p| p.src == *n || p.oid.to_string() == *n || begins(p)).collect();
                assert!(!rows.is_empty(), "{n} is not in pg_proc");
                differ.extend(rows.iter().filter(|p| p.strict != e.strict).map(|p| format!("{n} ({})", p.oid)));
            }
        }
        assert!(differ.is_empty(), "strictness of {}", differ.join(", "));
    }
}
