//! Frames as ranges of positions.
//!
//! A frame is `[start, end)` less what EXCLUDE names. A RANGE offset is compared with the ordering value (as the type's `in_range` does);
//! rows whose ordering value is NULL see only each other there.

use super::{Frame, FrameBound, FrameExclude, FrameUnits, Partition};
use crate::ctx::EvalCtx;
use crate::eval::{call_values, eval_row};
use crate::func;
use crate::scalar::Scalar;
use repr::error::state;
use repr::{ColType, SqlError, SqlType, TimeTz, Value};
use std::cmp::Ordering;

/// The first position of each peer group.
pub fn group_starts(peers: &[usize]) -> Vec<usize> {
    let mut starts = Vec::new();
    for (i, p) in peers.iter().enumerate() {
        if starts.len() <= *p {
            starts.push(i);
        }
    }
    starts
}

/// The frame of every row.
pub struct Frames {
    /// `[start, end)` before exclusion.
    pub bounds: Vec<(usize, usize)>,
    /// What is taken out of it, as a range (for TIES the row itself goes back in).
    pub excluded: Option<Vec<(usize, usize)>>,
    /// EXCLUDE TIES.
    pub keep_self: bool,
}

/// The rows of one frame, in order.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Covered {
    ranges: [(usize, usize); 3],
}

impl Covered {
    pub fn ranges(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        self.ranges.iter().copied().filter(|(a, b)| a < b)
    }
    pub fn first(&self) -> Option<usize> {
        self.ranges().next().map(|r| r.0)
    }
    pub fn last(&self) -> Option<usize> {
        self.ranges().last().map(|r| r.1 - 1)
    }
    /// Row number `k` of the frame, from 0.
    pub fn nth(&self, mut k: usize) -> Option<usize> {
        for (a, b) in self.ranges() {
            if k < b - a {
                return Some(a + k);
            }
            k -= b - a;
        }
        None
    }
}

impl Frames {
    pub fn new(p: &Partition<'_>, frame: &Frame, ctx: &EvalCtx) -> Result<Frames, SqlError> {
        let n = p.rows.len();
        let starts = group_starts(p.peers);
        let groups = starts.len();
        let start_of = |g: usize| starts.get(g).copied().unwrap_or(n);
        let b = Bounds { p, ctx, units: frame.units };
        let (lo, hi) = (b.side(&frame.start, true)?, b.side(&frame.end, false)?);
        let place = |side: &Side, i: usize, is_start: bool| -> Result<usize, SqlError> {
            let g = p.peers[i];
            Ok(match (side, frame.units) {
                (Side::First, _) => 0,
                (Side::Last, _) => n,
                (Side::Current, FrameUnits::Rows) => i + usize::from(!is_start),
                (Side::Current, _) => start_of(g + usize::from(!is_start)),
                (Side::Rows(k), FrameUnits::Rows) => {
                    let at = (i as i64).saturating_add(*k).saturating_add(i64::from(!is_start));
                    at.clamp(0, n as i64) as usize
                }
                (Side::Rows(k), _) => {
                    let at = (g as i64).saturating_add(*k).saturating_add(i64::from(!is_start));
                    start_of(at.clamp(0, groups as i64) as usize)
                }
                (Side::Value(offset), _) => b.by_value(offset, i, is_start, (start_of(g), start_of(g + 1)))?,
            })
        };
        let mut bounds = Vec::with_capacity(n);
        for i in 0..n {
            let (s, e) = (place(&lo, i, true)?, place(&hi, i, false)?);
            bounds.push((s, e.max(s)));
        }
        let out = |i: usize| match frame.exclude {
            FrameExclude::CurrentRow => (i, i + 1),
            _ => (start_of(p.peers[i]), start_of(p.peers[i] + 1)),
        };
        let excluded = match frame.exclude {
            FrameExclude::NoOthers => None,
            _ => Some((0..n).map(out).collect()),
        };
        Ok(Frames { bounds, excluded, keep_self: frame.exclude == FrameExclude::Ties })
    }

    pub fn len(&self) -> usize {
        self.bounds.len()
    }

    /// The frame of row `i`.
    pub fn of(&self, i: usize) -> Covered {
        let (s, e) = self.bounds[i];
        let Some((a, b)) = self.excluded.as_ref().map(|x| x[i]) else { return Covered { ranges: [(s, e), (0, 0), (0, 0)] } };
        let own = if self.keep_self && s <= i && i < e { (i, i + 1) } else { (0, 0) };
        Covered { ranges: [(s, e.min(a)), own, (s.max(b), e)] }
    }
}

/// One end of the frame, its offset evaluated.
enum Side {
    First,
    Last,
    Current,
    /// Rows or groups, negative backwards.
    Rows(i64),
    Value(Offset),
}

/// A RANGE offset: `value` is subtracted from the ordering value if `preceding`, else added (the order's direction put aside).
struct Offset {
    value: Value,
    ty: ColType,
    preceding: bool,
}

struct Bounds<'a> {
    p: &'a Partition<'a>,
    ctx: &'a EvalCtx,
    units: FrameUnits,
}

impl Bounds<'_> {
    /// The offset is that of the partition's first row.
    fn side(&self, bound: &FrameBound, is_start: bool) -> Result<Side, SqlError> {
        let (x, preceding) = match bound {
            FrameBound::UnboundedPreceding => return Ok(Side::First),
            FrameBound::UnboundedFollowing => return Ok(Side::Last),
            FrameBound::CurrentRow => return Ok(Side::Current),
            FrameBound::Preceding(x) => (x, true),
            FrameBound::Following(x) => (x, false),
        };
        let which = if is_start { "starting" } else { "ending" };
        let value = match self.p.rows.first() {
            Some(row) => eval_row(x, row, self.p.types, self.ctx)?,
            None => return Ok(Side::Current),
        };
        if value.is_null() {
            return Err(SqlError::new(state::NULL_VALUE_NOT_ALLOWED, format!("frame {which} offset must not be null")));
        }
        if self.units != FrameUnits::Range {
            let k = value.as_i64().unwrap_or(0);
            if k < 0 {
                return Err(SqlError::new(state::INVALID_PRECEDING_OR_FOLLOWING_SIZE, format!("frame {which} offset must not be negative")));
            }
            return Ok(Side::Rows(if preceding { -k } else { k }));
        }
        let negative = match &value {
            Value::Float8(f) => *f < 0.0 || f.is_nan(),
            Value::Float4(f) => *f < 0.0 || f.is_nan(),
            Value::Numeric(n) => n.is_negative() || *n == repr::Numeric::NaN,
            // A time of day knows no days.
            Value::Interval(i) if self.is_time() => i.micros < 0,
            Value::Interval(i) => i.span_micros() < 0,
            v => v.as_i64().is_some_and(|v| v < 0),
        };
        if negative {
            return Err(SqlError::new(state::INVALID_PRECEDING_OR_FOLLOWING_SIZE, "invalid preceding or following size in window function"));
        }
        Ok(Side::Value(Offset { value, ty: self.offset_type(x), preceding }))
    }

    fn is_time(&self) -> bool {
        let ty = self.p.order.first().map(|o| &self.p.types[o.column].ty);
        matches!(ty, Some(SqlType::Time | SqlType::TimeTz))
    }

    fn offset_type(&self, x: &Scalar) -> ColType {
        x.typ(self.p.types)
    }

    /// Where the frame of row `i` begins or ends; `peers` is the row's peer group.
    fn by_value(&self, offset: &Offset, i: usize, is_start: bool, peers: (usize, usize)) -> Result<usize, SqlError> {
        let Some(order) = self.p.order.first() else { return Ok(if is_start { peers.0 } else { peers.1 }) };
        let (rows, ty) = (self.p.rows, &self.p.types[order.column].ty);
        let base = &rows[i][order.column];
        if base.is_null() {
            return Ok(if is_start { peers.0 } else { peers.1 });
        }
        let subtract = offset.preceding != order.desc;
        let limit = match infinity_less_infinity(base, &offset.value, subtract) {
            // Not defined; taken to reach every value, so the limit is at the end that lets all in.
            true if is_start != order.desc => Limit::Below,
            true => Limit::Above,
            false => self.limit(base, ty, offset, subtract)?,
        };
        // Rows with NULL lie at one end.
        let first = if order.nulls_last { 0 } else { rows.partition_point(|r| r[order.column].is_null()) };
        let last = if order.nulls_last { rows.partition_point(|r| !r[order.column].is_null()) } else { rows.len() };
        let cmp = |r: &[Value]| {
            let o = limit.compare(&r[order.column], ty);
            if order.desc {
                o.reverse()
            } else {
                o
            }
        };
        let within = &rows[first..last];
        Ok(first + if is_start { within.partition_point(|r| cmp(r).is_lt()) } else { within.partition_point(|r| cmp(r).is_le()) })
    }

    /// `base - offset` or `base + offset`.
    fn limit(&self, base: &Value, ty: &SqlType, offset: &Offset, subtract: bool) -> Result<Limit, SqlError> {
        let call = |sub: u32, add: u32, ret: SqlType| -> Result<Limit, SqlError> {
            let oid = if subtract { sub } else { add };
            let f = func::by_oid(oid).ok_or_else(|| SqlError::unsupported(format!("a RANGE offset over {ty}"), "use ROWS or GROUPS"))?;
            let ret = ret.nullable();
            let v = call_values(f, &[base.clone(), offset.value.clone()], &[ty.clone().nullable(), offset.ty.clone()], &ret, self.ctx)?;
            Ok(Limit::Value(v))
        };
        match (base, &offset.value) {
            (Value::Float4(_) | Value::Float8(_), by) => {
                let f = |v: &Value| match v {
                    Value::Float4(f) => f64::from(*f),
                    Value::Float8(f) => *f,
                    v => v.as_i64().unwrap_or(0) as f64,
                };
                let (b, o) = (f(base), f(by));
                Ok(Limit::Float(if subtract { b - o } else { b + o }))
            }
            (Value::Numeric(_), Value::Numeric(_)) => call(1725, 1724, SqlType::Numeric),
            (Value::Date(_), Value::Interval(_)) => call(2072, 2071, SqlType::Timestamp),
            (Value::Timestamp(_), Value::Interval(_)) => call(2033, 2032, SqlType::Timestamp),
            (Value::TimestampTz(_), Value::Interval(_)) => call(1190, 1189, SqlType::TimestampTz),
            (Value::Interval(_), Value::Interval(_)) => call(1170, 1169, SqlType::Interval),
            (Value::TimeTz(t), Value::Interval(by)) => {
                let (utc, by) = (utc_micros(t), i128::from(by.micros));
                Ok(Limit::TimeTz(if subtract { utc - by } else { utc + by }, t.zone_secs))
            }
            (Value::Time(t), Value::Interval(by)) => {
                let (t, by) = (i128::from(*t), i128::from(by.micros));
                Ok(Limit::Int(if subtract { t - by } else { t + by }))
            }
            (b, by) => match (b.as_i64(), by.as_i64()) {
                (Some(b), Some(by)) => Ok(Limit::Int(if subtract { i128::from(b) - i128::from(by) } else { i128::from(b) + i128::from(by) })),
                _ => Err(SqlError::unsupported(format!("a RANGE offset over {ty}"), "use ROWS or GROUPS")),
            },
        }
    }
}

fn utc_micros(t: &TimeTz) -> i128 {
    i128::from(t.micros) + i128::from(t.zone_secs) * 1_000_000
}

/// Whether the limit would be the difference of infinities of one sign.
fn infinity_less_infinity(base: &Value, offset: &Value, subtract: bool) -> bool {
    let sign = |v: &Value| match v {
        Value::Float4(f) if f.is_infinite() => f.signum() as i32,
        Value::Float8(f) if f.is_infinite() => f.signum() as i32,
        Value::Numeric(repr::Numeric::PosInf) => 1,
        Value::Numeric(repr::Numeric::NegInf) => -1,
        _ => 0,
    };
    sign(offset) == 1 && sign(base) == if subtract { 1 } else { -1 }
}

/// The value at which a frame ends.
enum Limit {
    /// At the least or the greatest value that is a number.
    Below,
    Above,
    /// Microseconds of the day in UTC, which may lie beyond the day, then the zone.
    TimeTz(i128, i32),
    Int(i128),
    Float(f64),
    Value(Value),
}

impl Limit {
    /// How a row's ordering value lies to the limit.
    fn compare(&self, v: &Value, ty: &SqlType) -> Ordering {
        match self {
            Limit::Below => Ordering::Greater,
            Limit::Above => match v {
                Value::Float4(f) if f.is_nan() => Ordering::Greater,
                Value::Float8(f) if f.is_nan() => Ordering::Greater,
                Value::Numeric(repr::Numeric::NaN) => Ordering::Greater,
                _ => Ordering::Less,
            },
            Limit::TimeTz(utc, zone) => match v {
                // Of equal instants the one further east comes first.
                Value::TimeTz(t) => utc_micros(t).cmp(utc).then(t.zone_secs.cmp(zone)),
                _ => Ordering::Equal,
            },
            Limit::Int(l) => match v {
                Value::Time(t) => i128::from(*t).cmp(l),
                v => i128::from(v.as_i64().unwrap_or(0)).cmp(l),
            },
            Limit::Float(l) => match v {
                Value::Float4(f) => func::cmp::float_cmp(f64::from(*f), *l),
                Value::Float8(f) => func::cmp::float_cmp(*f, *l),
                _ => Ordering::Equal,
            },
            Limit::Value(Value::Timestamp(l)) => match v {
                // Days to microseconds; the infinities stay.
                Value::Date(i32::MIN) => i64::MIN.cmp(l),
                Value::Date(i32::MAX) => i64::MAX.cmp(l),
                Value::Date(d) => (i128::from(*d) * 86_400_000_000).cmp(&i128::from(*l)),
                Value::Timestamp(t) => t.cmp(l),
                _ => Ordering::Equal,
            },
            Limit::Value(l) => v.sql_cmp(l, ty),
        }
    }
}
