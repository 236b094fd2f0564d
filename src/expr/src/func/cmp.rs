//! Comparison: the six operators of every type, by value buffers where the physical type allows, else by canonical bytes.
//!
//! The order is the one of the type's btree class, which `repr::row::write_canonical` keeps; so every orderable type has its
//! operators here without code of its own.

use super::lift::{at, pred2, strict_nulls};
use super::{CallArgs, Entry};
use crate::{f2, kernel};
use arrow_array::cast::AsArray;
use arrow_array::types::*;
use arrow_array::{Array, ArrayRef, ArrowPrimitiveType, BooleanArray};
use arrow_buffer::BooleanBuffer;
use repr::{column, SqlType, Value};
use std::cmp::Ordering;
use std::sync::Arc;

/// A comparison operator.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Op {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
}

impl Op {
    /// Whether the operator holds for values in this order.
    #[inline]
    pub fn holds(self, o: Ordering) -> bool {
        match self {
            Op::Eq => o.is_eq(),
            Op::Ne => o.is_ne(),
            Op::Lt => o.is_lt(),
            Op::Le => o.is_le(),
            Op::Gt => o.is_gt(),
            Op::Ge => o.is_ge(),
        }
    }
}

/// Floats in Postgres's order: NaN is equal to itself and greatest, zeros are equal.
#[inline]
pub fn float_cmp(a: f64, b: f64) -> Ordering {
    a.partial_cmp(&b).unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
}

fn ints<A: ArrowPrimitiveType>(c: &mut CallArgs<'_>, op: Op) -> ArrayRef
where
    A::Native: Ord,
{
    match op {
        Op::Eq => pred2::<A, A>(c, |a, b| a == b),
        Op::Ne => pred2::<A, A>(c, |a, b| a != b),
        Op::Lt => pred2::<A, A>(c, |a, b| a < b),
        Op::Le => pred2::<A, A>(c, |a, b| a <= b),
        Op::Gt => pred2::<A, A>(c, |a, b| a > b),
        Op::Ge => pred2::<A, A>(c, |a, b| a >= b),
    }
}

fn mixed<A: ArrowPrimitiveType, B: ArrowPrimitiveType>(c: &mut CallArgs<'_>, op: Op) -> ArrayRef
where
    i64: From<A::Native> + From<B::Native>,
{
    pred2::<A, B>(c, |a, b| op.holds(i64::from(a).cmp(&i64::from(b))))
}

fn floats<A: ArrowPrimitiveType, B: ArrowPrimitiveType>(c: &mut CallArgs<'_>, op: Op) -> ArrayRef
where
    f64: From<A::Native> + From<B::Native>,
{
    pred2::<A, B>(c, |a, b| op.holds(float_cmp(f64::from(a), f64::from(b))))
}

/// Strings under the "C" collation; `bpchar`: trailing blanks do not count.
fn strings(c: &mut CallArgs<'_>, op: Op, bpchar: bool) -> ArrayRef {
    let nulls = strict_nulls(c);
    let (a, b) = (c.args[0].as_string::<i32>(), c.args[1].as_string::<i32>());
    let (sa, sb) = (usize::from(a.len() == c.len), usize::from(b.len() == c.len));
    let blank = |s: &str| s.trim_end_matches(' ').len();
    let bits = BooleanBuffer::collect_bool(c.len, |i| {
        let (mut x, mut y) = (a.value(i * sa), b.value(i * sb));
        if bpchar {
            x = &x[..blank(x)];
            y = &y[..blank(y)];
        }
        op.holds(x.as_bytes().cmp(y.as_bytes()))
    });
    Arc::new(BooleanArray::new(bits, nulls))
}

fn bools(c: &mut CallArgs<'_>, op: Op) -> ArrayRef {
    let nulls = strict_nulls(c);
    let (a, b) = (c.args[0].as_boolean(), c.args[1].as_boolean());
    let (sa, sb) = (usize::from(a.len() == c.len), usize::from(b.len() == c.len));
    let bits = BooleanBuffer::collect_bool(c.len, |i| op.holds(a.value(i * sa).cmp(&b.value(i * sb))));
    Arc::new(BooleanArray::new(bits, nulls))
}

fn bytes(c: &mut CallArgs<'_>, op: Op) -> ArrayRef {
    let nulls = strict_nulls(c);
    let (a, b) = (c.args[0].as_binary::<i32>(), c.args[1].as_binary::<i32>());
    let (sa, sb) = (usize::from(a.len() == c.len), usize::from(b.len() == c.len));
    let bits = BooleanBuffer::collect_bool(c.len, |i| op.holds(a.value(i * sa).cmp(b.value(i * sb))));
    Arc::new(BooleanArray::new(bits, nulls))
}

/// Canonical bytes of each row of an argument.
fn canonical(c: &CallArgs<'_>, arg: usize) -> (Vec<u8>, Vec<usize>) {
    let (col, ty) = (&c.args[arg], &c.arg_types[arg].ty);
    let (mut bytes, mut ends) = (Vec::new(), vec![0]);
    for i in 0..col.len() {
        if !col.is_null(i) {
            repr::row::write_canonical(&column::get(col, ty, i), ty, &mut bytes);
        }
        ends.push(bytes.len());
    }
    (bytes, ends)
}

/// Any two columns of one type.
pub fn any(c: &mut CallArgs<'_>, op: Op) -> ArrayRef {
    let nulls = strict_nulls(c);
    let ((ab, ae), (bb, be)) = (canonical(c, 0), canonical(c, 1));
    let (sa, sb) = (usize::from(c.args[0].len() == c.len), usize::from(c.args[1].len() == c.len));
    let bits = BooleanBuffer::collect_bool(c.len, |i| {
        let (i, j) = (i * sa, i * sb);
        op.holds(ab[ae[i]..ae[i + 1]].cmp(&bb[be[j]..be[j + 1]]))
    });
    Arc::new(BooleanArray::new(bits, nulls))
}

/// Two rows by their bytes, as `*<` compares: 1.0 is not 1.00; numbers of up to eight bytes count as unsigned, text by its bytes, then its
/// length. What else Postgres orders by bytes of its storage is in the type's order here, ties broken by our row bytes.
fn image_cmp(a: &Value, b: &Value, ty: &SqlType) -> Ordering {
    let (Value::Record(x), Value::Record(y)) = (a, b) else { return a.sql_cmp(b, ty) };
    let small = |v: &Value| match v {
        Value::Bool(v) => Some(u64::from(*v)),
        Value::Date(v) => Some(i64::from(*v) as u64),
        Value::Time(v) | Value::Timestamp(v) | Value::TimestampTz(v) => Some(*v as u64),
        Value::Float4(v) => Some(i64::from(v.to_bits() as i32) as u64),
        Value::Float8(v) => Some(v.to_bits()),
        Value::UInt8(v) => Some(*v),
        v => v.as_i64().map(|v| v as u64),
    };
    for (i, (p, q)) in x.iter().zip(y).enumerate() {
        let t = match ty {
            SqlType::Record(r) if i < r.fields.len() => r.fields[i].1.ty.clone(),
            _ => repr::canonical::type_of(p),
        };
        let o = match (p.is_null(), q.is_null(), small(p), small(q)) {
            (true, true, ..) => Ordering::Equal,
            (true, false, ..) => Ordering::Greater,
            (false, true, ..) => Ordering::Less,
            (_, _, Some(m), Some(n)) => m.cmp(&n),
            _ => p.sql_cmp(q, &t).then_with(|| format!("{p:?}").cmp(&format!("{q:?}"))),
        };
        if o.is_ne() {
            return o;
        }
    }
    x.len().cmp(&y.len())
}

fn images(c: &mut CallArgs<'_>, op: Op) -> ArrayRef {
    let nulls = strict_nulls(c);
    let ty = &c.arg_types[0].ty;
    let bits = BooleanBuffer::collect_bool(c.len, |i| {
        let read = |k: usize| column::get(&c.args[k], &c.arg_types[k].ty, at(&c.args[k], c.len, i));
        op.holds(image_cmp(&read(0), &read(1), ty))
    });
    Arc::new(BooleanArray::new(bits, nulls))
}

/// The three-way comparison of any two columns of one type.
fn three_way(c: &mut CallArgs<'_>) -> ArrayRef {
    let nulls = strict_nulls(c);
    let ((ab, ae), (bb, be)) = (canonical(c, 0), canonical(c, 1));
    let out: Vec<i32> = (0..c.len)
        .map(|i| {
            let (i, j) = (at(&c.args[0], c.len, i), at(&c.args[1], c.len, i));
            ab[ae[i]..ae[i + 1]].cmp(&bb[be[j]..be[j + 1]]) as i32
        })
        .collect();
    Arc::new(arrow_array::Int32Array::new(out.into(), nulls))
}

/// The greater (or smaller) of two values of any type, as the min/max transition functions.
fn pick(c: &mut CallArgs<'_>, larger: bool) -> ArrayRef {
    let f: super::lift::ValueFn = if larger {
        |a, call| Ok(if a[0].sql_cmp(&a[1], &call.ret.ty).is_ge() { a[0].clone() } else { a[1].clone() })
    } else {
        |a, call| Ok(if a[0].sql_cmp(&a[1], &call.ret.ty).is_le() { a[0].clone() } else { a[1].clone() })
    };
    super::lift::on_values(c, true, f)
}

/// Compares two values of one type under `op`; NULL is equal to NULL and greatest.
pub fn value_holds(op: Op, a: &Value, b: &Value, ty: &SqlType) -> bool {
    op.holds(a.sql_cmp(b, ty))
}

/// The six operators, names in the order eq, ne, lt, le, gt, ge.
macro_rules! six {
    ($kernel:expr; $([$($eq:literal),*], [$($ne:literal),*], [$($lt:literal),*], [$($le:literal),*], [$($gt:literal),*], [$($ge:literal),*]);*) => {
        &[
            $(kernel!([$($eq),*], |c| $kernel(c, Op::Eq)),
            kernel!([$($ne),*], |c| $kernel(c, Op::Ne)),
            kernel!([$($lt),*], |c| $kernel(c, Op::Lt)),
            kernel!([$($le),*], |c| $kernel(c, Op::Le)),
            kernel!([$($gt),*], |c| $kernel(c, Op::Gt)),
            kernel!([$($ge),*], |c| $kernel(c, Op::Ge)),)*
        ]
    };
}

pub const BOOL: &[Entry] = six!(bools; ["booleq"], ["boolne"], ["boollt"], ["boolle"], ["boolgt"], ["boolge"]);
pub const INT2: &[Entry] = six!(ints::<Int16Type>; ["int2eq"], ["int2ne"], ["int2lt"], ["int2le"], ["int2gt"], ["int2ge"]);
pub const INT4: &[Entry] = six!(ints::<Int32Type>; ["int4eq", "date_eq"], ["int4ne", "date_ne"], ["int4lt", "date_lt"], ["int4le", "date_le"], ["int4gt", "date_gt"], ["int4ge", "date_ge"]);
pub const INT8: &[Entry] = six!(ints::<Int64Type>; ["int8eq", "time_eq", "timestamp_eq", "cash_eq"], ["int8ne", "time_ne", "timestamp_ne", "cash_ne"], ["int8lt", "time_lt", "timestamp_lt", "cash_lt"], ["int8le", "time_le", "timestamp_le", "cash_le"], ["int8gt", "time_gt", "timestamp_gt", "cash_gt"], ["int8ge", "time_ge", "timestamp_ge", "cash_ge"]);
pub const OID: &[Entry] = six!(ints::<UInt32Type>; ["oideq", "xideq", "cideq", "enum_eq", "uint4eq"], ["oidne", "xidneq", "enum_ne", "uint4ne"], ["oidlt", "enum_lt", "uint4lt"], ["oidle", "enum_le", "uint4le"], ["oidgt", "enum_gt", "uint4gt"], ["oidge", "enum_ge", "uint4ge"]);
pub const INT24: &[Entry] = six!(mixed::<Int16Type, Int32Type>; ["int24eq"], ["int24ne"], ["int24lt"], ["int24le"], ["int24gt"], ["int24ge"]);
pub const INT42: &[Entry] = six!(mixed::<Int32Type, Int16Type>; ["int42eq"], ["int42ne"], ["int42lt"], ["int42le"], ["int42gt"], ["int42ge"]);
pub const INT28: &[Entry] = six!(mixed::<Int16Type, Int64Type>; ["int28eq"], ["int28ne"], ["int28lt"], ["int28le"], ["int28gt"], ["int28ge"]);
pub const INT82: &[Entry] = six!(mixed::<Int64Type, Int16Type>; ["int82eq"], ["int82ne"], ["int82lt"], ["int82le"], ["int82gt"], ["int82ge"]);
pub const INT48: &[Entry] = six!(mixed::<Int32Type, Int64Type>; ["int48eq"], ["int48ne"], ["int48lt"], ["int48le"], ["int48gt"], ["int48ge"]);
pub const INT84: &[Entry] = six!(mixed::<Int64Type, Int32Type>; ["int84eq"], ["int84ne"], ["int84lt"], ["int84le"], ["int84gt"], ["int84ge"]);
pub const FLOAT4: &[Entry] = six!(floats::<Float32Type, Float32Type>; ["float4eq"], ["float4ne"], ["float4lt"], ["float4le"], ["float4gt"], ["float4ge"]);
pub const FLOAT8: &[Entry] = six!(floats::<Float64Type, Float64Type>; ["float8eq"], ["float8ne"], ["float8lt"], ["float8le"], ["float8gt"], ["float8ge"]);
pub const FLOAT48: &[Entry] =
    six!(floats::<Float32Type, Float64Type>; ["float48eq"], ["float48ne"], ["float48lt"], ["float48le"], ["float48gt"], ["float48ge"]);
pub const FLOAT84: &[Entry] =
    six!(floats::<Float64Type, Float32Type>; ["float84eq"], ["float84ne"], ["float84lt"], ["float84le"], ["float84gt"], ["float84ge"]);
pub const UINT2: &[Entry] = six!(ints::<UInt16Type>; ["uint2eq"], ["uint2ne"], ["uint2lt"], ["uint2le"], ["uint2gt"], ["uint2ge"]);
pub const UINT8: &[Entry] = six!(ints::<UInt64Type>; ["uint8eq", "xid8eq", "pg_lsn_eq", "tideq"], ["uint8ne", "xid8ne", "pg_lsn_ne", "tidne"], ["uint8lt", "xid8lt", "pg_lsn_lt", "tidlt"], ["uint8le", "xid8le", "pg_lsn_le", "tidle"], ["uint8gt", "xid8gt", "pg_lsn_gt", "tidgt"], ["uint8ge", "xid8ge", "pg_lsn_ge", "tidge"]);
pub const TEXT: &[Entry] = six!(|c: &mut CallArgs<'_>, op| strings(c, op, false);
    ["texteq", "nameeq", "nameeqtext", "texteqname", "chareq", "biteq"], ["textne", "namene", "namenetext", "textnename", "charne", "bitne"],
    ["text_lt", "namelt", "namelttext", "textltname", "charlt", "bitlt", "text_pattern_lt"], ["text_le", "namele", "nameletext", "textlename", "charle", "bitle", "text_pattern_le"],
    ["text_gt", "namegt", "namegttext", "textgtname", "chargt", "bitgt", "text_pattern_gt"], ["text_ge", "namege", "namegetext", "textgename", "charge", "bitge", "text_pattern_ge"]);
pub const BPCHAR: &[Entry] = six!(|c: &mut CallArgs<'_>, op| strings(c, op, true);
    ["bpchareq"], ["bpcharne"], ["bpcharlt", "bpchar_pattern_lt"], ["bpcharle", "bpchar_pattern_le"], ["bpchargt", "bpchar_pattern_gt"], ["bpcharge", "bpchar_pattern_ge"]);
pub const BYTEA: &[Entry] = six!(bytes; ["byteaeq", "macaddr_eq", "macaddr8_eq"], ["byteane", "macaddr_ne", "macaddr8_ne"], ["bytealt", "macaddr_lt", "macaddr8_lt"], ["byteale", "macaddr_le", "macaddr8_le"], ["byteagt", "macaddr_gt", "macaddr8_gt"], ["byteage", "macaddr_ge", "macaddr8_ge"]);
pub const ANY: &[Entry] = six!(any;
    ["numeric_eq", "interval_eq", "timetz_eq", "uuid_eq", "jsonb_eq", "network_eq", "array_eq", "range_eq", "multirange_eq", "oidvectoreq", "tsvector_eq", "tsquery_eq"],
    ["numeric_ne", "interval_ne", "timetz_ne", "uuid_ne", "jsonb_ne", "network_ne", "array_ne", "range_ne", "multirange_ne", "oidvectorne", "tsvector_ne", "tsquery_ne"],
    ["numeric_lt", "interval_lt", "timetz_lt", "uuid_lt", "jsonb_lt", "network_lt", "array_lt", "range_lt", "multirange_lt", "oidvectorlt", "tsvector_lt", "tsquery_lt"],
    ["numeric_le", "interval_le", "timetz_le", "uuid_le", "jsonb_le", "network_le", "array_le", "range_le", "multirange_le", "oidvectorle", "tsvector_le", "tsquery_le"],
    ["numeric_gt", "interval_gt", "timetz_gt", "uuid_gt", "jsonb_gt", "network_gt", "array_gt", "range_gt", "multirange_gt", "oidvectorgt", "tsvector_gt", "tsquery_gt"],
    ["numeric_ge", "interval_ge", "timetz_ge", "uuid_ge", "jsonb_ge", "network_ge", "array_ge", "range_ge", "multirange_ge", "oidvectorge", "tsvector_ge", "tsquery_ge"]);
pub const RECORD: &[Entry] = six!(any; ["record_eq"], ["record_ne"], ["record_lt"], ["record_le"], ["record_gt"], ["record_ge"]);
pub const IMAGE: &[Entry] = six!(images;
    ["record_image_eq"], ["record_image_ne"], ["record_image_lt"], ["record_image_le"], ["record_image_gt"], ["record_image_ge"]);

pub const FUNCS: &[Entry] = &[
    f2!(["1319"], u32, i32 => bool, |a, b| a == b as u32),
    f2!(["3309"], u32, i32 => bool, |a, b| a != b as u32),
    kernel!(
        [
            "btint2cmp",
            "btint4cmp",
            "btint8cmp",
            "btfloat4cmp",
            "btfloat8cmp",
            "btoidcmp",
            "bttextcmp",
            "btnamecmp",
            "bpcharcmp",
            "btboolcmp",
            "btcharcmp",
            "byteacmp",
            "numeric_cmp",
            "interval_cmp",
            "timetz_cmp",
            "time_cmp",
            "timestamp_cmp",
            "date_cmp",
            "uuid_cmp",
            "jsonb_cmp",
            "network_cmp",
            "btarraycmp",
            "range_cmp",
            "multirange_cmp",
            "btrecordcmp",
            "btoidvectorcmp",
            "enum_cmp",
            "bitcmp",
            "cash_cmp",
            "macaddr_cmp",
            "macaddr8_cmp",
            "xid8cmp",
            "pg_lsn_cmp",
            "bttext_pattern_cmp",
            "btbpchar_pattern_cmp",
            "tsvector_cmp",
            "tsquery_cmp"
        ],
        three_way
    ),
    kernel!(
        [
            "text_larger",
            "bpchar_larger",
            "numeric_larger",
            "interval_larger",
            "timestamp_larger",
            "date_larger",
            "time_larger",
            "timetz_larger",
            "array_larger",
            "enum_larger",
            "oidlarger",
            "network_larger",
            "cashlarger",
            "xid8_larger",
            "pg_lsn_larger"
        ],
        |c| pick(c, true)
    ),
    kernel!(
        [
            "text_smaller",
            "bpchar_smaller",
            "numeric_smaller",
            "interval_smaller",
            "timestamp_smaller",
            "date_smaller",
            "time_smaller",
            "timetz_smaller",
            "array_smaller",
            "enum_smaller",
            "oidsmaller",
            "network_smaller",
            "cashsmaller",
            "xid8_smaller",
            "pg_lsn_smaller"
        ],
        |c| pick(c, false)
    ),
];
