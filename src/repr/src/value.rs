//! One SQL value, owned.
//!
//! `PartialEq` on [`Value`] is identity (1.0 is not 1.00, NaN is NaN); [`Value::sql_cmp`] is the order of the type's btree class.

use crate::jsonb::Jsonb;
use crate::numeric::Numeric;
use crate::types::SqlType;
use serde::{Deserialize, Serialize};
use std::cmp::Ordering;

/// A span of months, days and microseconds, kept apart as in Postgres.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
pub struct Interval {
    pub months: i32,
    pub days: i32,
    pub micros: i64,
}

impl Interval {
    /// The value that comparison uses: months of 30 days, days of 24 hours, in microseconds.
    pub fn span_micros(&self) -> i128 {
        (i128::from(self.months) * 30 + i128::from(self.days)) * 86_400_000_000 + i128::from(self.micros)
    }
}

/// A time of day with a zone, in seconds **west** of UTC as Postgres stores it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct TimeTz {
    pub micros: i64,
    pub zone_secs: i32,
}

/// An array: elements in row-major order, `dims` as (length, lower bound). An empty array has no dims.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ArrayValue {
    pub elems: Vec<Value>,
    pub dims: Vec<(i32, i32)>,
}

impl ArrayValue {
    pub fn one_dim(elems: Vec<Value>) -> ArrayValue {
        let dims = if elems.is_empty() { Vec::new() } else { vec![(elems.len() as i32, 1)] };
        ArrayValue { elems, dims }
    }
}

/// A range in canonical form: `None` bounds are infinite.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum RangeValue {
    Empty,
    Span { lower: Option<Box<Value>>, upper: Option<Box<Value>>, lower_inc: bool, upper_inc: bool },
}

/// An IPv4 or IPv6 address with a prefix length; used for inet and cidr.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct InetValue {
    pub addr: std::net::IpAddr,
    pub bits: u8,
}

/// One SQL value. The variant is the physical form; several SQL types share one (all string types are `Text`).
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Value {
    Null,
    Bool(bool),
    Int2(i16),
    Int4(i32),
    /// `int8`, `money`.
    Int8(i64),
    UInt2(u16),
    /// `uint4`, `oid`, `xid`, the reg* types, and enums (label index).
    UInt4(u32),
    /// `uint8`, `xid8`, `pg_lsn`.
    UInt8(u64),
    Float4(f32),
    Float8(f64),
    Numeric(Numeric),
    /// `text`, `varchar`, `char(n)` (padded), `name`, `"char"`, `bit`, `varbit`, `json`, `jsonpath`, `unknown`.
    Text(String),
    /// `bytea`, `macaddr`, `macaddr8`; geometric values (`geo`), `tsvector` and `tsquery` (`tsearch`).
    Bytea(Vec<u8>),
    /// Days since 2000-01-01; `i32::MIN`/`MAX` are the infinities.
    Date(i32),
    /// Microseconds since midnight.
    Time(i64),
    TimeTz(TimeTz),
    /// Microseconds since 2000-01-01; `i64::MIN`/`MAX` are the infinities. Also timestamptz (in UTC).
    Timestamp(i64),
    TimestampTz(i64),
    Interval(Interval),
    Uuid([u8; 16]),
    Jsonb(Box<Jsonb>),
    Inet(InetValue),
    /// Arrays, lists, int2vector, oidvector.
    Array(Box<ArrayValue>),
    Record(Vec<Value>),
    Range(Box<RangeValue>),
    Multirange(Vec<RangeValue>),
    /// Entries sorted by key, keys unique.
    Map(Vec<(String, Value)>),
}

/// Identity, so that a value equals itself: floating-point numbers are compared by their bits.
impl PartialEq for Value {
    fn eq(&self, other: &Value) -> bool {
        use Value::*;
        match (self, other) {
            (Null, Null) => true,
            (Float4(a), Float4(b)) => a.to_bits() == b.to_bits(),
            (Float8(a), Float8(b)) => a.to_bits() == b.to_bits(),
            (Bool(a), Bool(b)) => a == b,
            (Int2(a), Int2(b)) => a == b,
            (Int4(a), Int4(b)) => a == b,
            (Int8(a), Int8(b)) => a == b,
            (UInt2(a), UInt2(b)) => a == b,
            (UInt4(a), UInt4(b)) => a == b,
            (UInt8(a), UInt8(b)) => a == b,
            (Numeric(a), Numeric(b)) => a == b,
            (Text(a), Text(b)) => a == b,
            (Bytea(a), Bytea(b)) => a == b,
            (Date(a), Date(b)) => a == b,
            (Time(a), Time(b)) => a == b,
            (TimeTz(a), TimeTz(b)) => a == b,
            (Timestamp(a), Timestamp(b)) => a == b,
            (TimestampTz(a), TimestampTz(b)) => a == b,
            (Interval(a), Interval(b)) => a == b,
            (Uuid(a), Uuid(b)) => a == b,
            (Jsonb(a), Jsonb(b)) => a == b,
            (Inet(a), Inet(b)) => a == b,
            (Array(a), Array(b)) => a == b,
            (Record(a), Record(b)) => a == b,
            (Range(a), Range(b)) => a == b,
            (Multirange(a), Multirange(b)) => a == b,
            (Map(a), Map(b)) => a == b,
            _ => false,
        }
    }
}

impl Value {
    pub fn is_null(&self) -> bool {
        matches!(self, Value::Null)
    }

    /// Bytes of text and bytes in the value, about.
    pub fn text_bytes(&self) -> usize {
        match self {
            Value::Text(s) => s.len(),
            Value::Bytea(b) => b.len(),
            Value::Array(a) => a.elems.iter().map(Value::text_bytes).sum(),
            _ => 0,
        }
    }

    pub fn text(s: impl Into<String>) -> Value {
        Value::Text(s.into())
    }

    pub fn array(elems: Vec<Value>) -> Value {
        Value::Array(Box::new(ArrayValue::one_dim(elems)))
    }

    /// The integer in any of the integer variants.
    pub fn as_i64(&self) -> Option<i64> {
        match self {
            Value::Int2(v) => Some(i64::from(*v)),
            Value::Int4(v) => Some(i64::from(*v)),
            Value::Int8(v) => Some(*v),
            Value::UInt2(v) => Some(i64::from(*v)),
            Value::UInt4(v) => Some(i64::from(*v)),
            Value::UInt8(v) => i64::try_from(*v).ok(),
            _ => None,
        }
    }

    pub fn as_str(&self) -> Option<&str> {
        match self {
            Value::Text(s) => Some(s),
            _ => None,
        }
    }

    /// The order of the type's default btree operator class, NULL greatest. Both values have type `ty`.
    pub fn sql_cmp(&self, other: &Value, ty: &SqlType) -> Ordering {
        let (mut a, mut b) = (Vec::new(), Vec::new());
        match (self, other) {
            (Value::Int4(x), Value::Int4(y)) => x.cmp(y),
            (Value::Int8(x), Value::Int8(y)) => x.cmp(y),
            (Value::Text(x), Value::Text(y)) if *ty.base() != SqlType::Bpchar => x.as_bytes().cmp(y.as_bytes()),
            _ => {
                crate::row::write_canonical(self, ty, &mut a);
                crate::row::write_canonical(other, ty, &mut b);
                a.cmp(&b)
            }
        }
    }
}
