//! How far a window function looks, so that a change is answered by evaluating a slice of the partition.
//!
//! ```text
//!   Bounded   lag, lead, frames with two bounded ends      depends on rows near by
//!   Prefix    row_number, rank, running count and sum      depends on all rows before, through one value that can be carried on
//!             running avg, float sum, stddev ...           through a state of the rows before: see [`WindowExpr::prefix_state`]
//!   Whole     ntile, percent_rank, unbounded otherwise     the partition is evaluated again
//! ```

use super::frame::{group_starts, Frames};
use super::{FrameBound, FrameExclude, FrameUnits, Partition, WindowExpr, WindowFunc};
use crate::agg::{AggKind, Aggregate};
use crate::ctx::EvalCtx;
use crate::scalar::Scalar;
use repr::error::state;
use repr::{SqlError, SqlType, Value};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    Bounded,
    Prefix,
    Whole,
}

impl WindowExpr {
    /// On which rows of the partition a row's value depends.
    pub fn reach(&self) -> Reach {
        let running =
            self.frame.start == FrameBound::UnboundedPreceding && self.frame.end == FrameBound::CurrentRow && self.frame.exclude == FrameExclude::NoOthers;
        let (from_start, to_end) = (self.frame.start == FrameBound::UnboundedPreceding, self.frame.end == FrameBound::UnboundedFollowing);
        let plain = self.frame.exclude == FrameExclude::NoOthers;
        match &self.func {
            WindowFunc::RowNumber | WindowFunc::Rank | WindowFunc::DenseRank => Reach::Prefix,
            WindowFunc::PercentRank | WindowFunc::CumeDist | WindowFunc::Ntile(_) => Reach::Whole,
            WindowFunc::Lag { offset, .. } | WindowFunc::Lead { offset, .. } => match offset {
                Scalar::Literal(v, _) if v.is_null() || v.as_i64().is_some() => Reach::Bounded,
                _ => Reach::Whole,
            },
            WindowFunc::FirstValue(_) if running => Reach::Prefix,
            WindowFunc::FirstValue(_) if plain && !from_start => Reach::Bounded,
            WindowFunc::LastValue(_) if plain && !to_end => Reach::Bounded,
            WindowFunc::Aggregate(a) if running && carries(a) => Reach::Prefix,
            WindowFunc::Aggregate(_) if self.prefix_state().is_some() => Reach::Prefix,
            WindowFunc::FirstValue(_) | WindowFunc::LastValue(_) | WindowFunc::NthValue(..) | WindowFunc::Aggregate(_) => {
                if from_start || to_end {
                    Reach::Whole
                } else {
                    Reach::Bounded
                }
            }
        }
    }

    /// The aggregate, if its frame begins with the partition and its states add up: then the state of all rows before a slice stands for them.
    /// `None` where the value before is enough.
    pub fn prefix_state(&self) -> Option<&Aggregate> {
        let FrameBound::UnboundedPreceding = self.frame.start else { return None };
        match &self.func {
            WindowFunc::Aggregate(a) if self.frame.end == FrameBound::CurrentRow && self.frame.exclude == FrameExclude::NoOthers && carries(a) => None,
            WindowFunc::Aggregate(a) if matches!(a.func.kind, AggKind::Accumulable(_)) && !a.distinct => {
                (self.frame.end != FrameBound::UnboundedFollowing && self.frame.exclude == FrameExclude::NoOthers).then_some(a)
            }
            _ => None,
        }
    }

    /// Whether a row's value depends on which rows are its peers.
    pub fn sees_peers(&self) -> bool {
        match &self.func {
            WindowFunc::RowNumber | WindowFunc::Lag { .. } | WindowFunc::Lead { .. } => false,
            WindowFunc::Rank | WindowFunc::DenseRank | WindowFunc::PercentRank | WindowFunc::CumeDist | WindowFunc::Ntile(_) => true,
            _ => self.frame.units != FrameUnits::Rows || matches!(self.frame.exclude, FrameExclude::Group | FrameExclude::Ties),
        }
    }

    /// For `Prefix`: the value of a row, from the value at the row before the slice and the value within the slice. For row_number
    /// and rank `before` is the number of rows before the slice.
    ///
    /// Errors: 22003 where a sum leaves its type.
    pub fn carry(&self, before: &Value, within: Value) -> Result<Value, SqlError> {
        let sum = |a: i64, b: i64| a.checked_add(b).map(Value::Int8).ok_or_else(|| SqlError::new(state::NUMERIC_VALUE_OUT_OF_RANGE, "bigint out of range"));
        match (&self.func, before, &within) {
            (WindowFunc::RowNumber | WindowFunc::Rank | WindowFunc::DenseRank, Value::Int8(a), Value::Int8(b)) => sum(*a, *b),
            (WindowFunc::FirstValue(_), ..) => Ok(before.clone()),
            (_, Value::Null, _) => Ok(within),
            (_, _, Value::Null) => Ok(before.clone()),
            (WindowFunc::Aggregate(a), _, _) => match (&a.func.kind, before, &within) {
                (AggKind::Extremum { max }, ..) => {
                    // Of equal ones the first is shown.
                    let o = before.sql_cmp(&within, &self.ty.ty);
                    Ok(if o.is_eq() || o.is_lt() != *max { before.clone() } else { within })
                }
                (_, Value::Int8(a), Value::Int8(b)) => sum(*a, *b),
                (_, Value::Numeric(a), Value::Numeric(b)) => a.add(b).map(Value::Numeric),
                _ => Err(SqlError::internal("a running aggregate that cannot be carried on")),
            },
            _ => Err(SqlError::internal("a window function that cannot be carried on")),
        }
    }
}

/// Whether a running aggregate's value is all that the next row needs.
fn carries(a: &Aggregate) -> bool {
    let exact = |ty: &SqlType| matches!(ty, SqlType::Int2 | SqlType::Int4 | SqlType::Int8 | SqlType::Numeric);
    match &a.func.kind {
        _ if a.distinct || !a.order_by.is_empty() => false,
        AggKind::Extremum { .. } => true,
        AggKind::Accumulable(_) => match a.func.name {
            "count" => true,
            "sum" => exact(&a.ty.ty),
            _ => false,
        },
        _ => false,
    }
}

/// For each row the positions `[from, to)` that its values depend on, its own among them; what lies before the partition's slice
/// and reaches a row through [`WindowExpr::carry`] or a state is not counted. Both ends never decrease from row to row.
///
/// Errors: those of frame offsets.
pub fn spans(p: &Partition<'_>, exprs: &[WindowExpr], ctx: &EvalCtx) -> Result<Vec<(usize, usize)>, SqlError> {
    let n = p.rows.len();
    let mut out: Vec<(usize, usize)> = (0..n).map(|i| (i, i + 1)).collect();
    let starts = group_starts(p.peers);
    let peers = |i: usize| (starts[p.peers[i]], starts.get(p.peers[i] + 1).copied().unwrap_or(n));
    let mut widen = |of: &dyn Fn(usize) -> (usize, usize)| {
        for (i, o) in out.iter_mut().enumerate() {
            let (a, b) = of(i);
            *o = (o.0.min(a), o.1.max(b));
        }
    };
    for e in exprs {
        match &e.func {
            WindowFunc::RowNumber => {}
            WindowFunc::Rank | WindowFunc::DenseRank => widen(&peers),
            WindowFunc::Lag { offset: Scalar::Literal(v, _), .. } => {
                let k = v.as_i64().unwrap_or(0);
                widen(&|i| shifted(i, k.saturating_neg(), n));
            }
            WindowFunc::Lead { offset: Scalar::Literal(v, _), .. } => {
                let k = v.as_i64().unwrap_or(0);
                widen(&|i| shifted(i, k, n));
            }
            _ if e.reach() == Reach::Whole => widen(&|_| (0, n)),
            _ if e.prefix_state().is_some() => {
                let frames = Frames::new(p, &e.frame, ctx)?;
                // A frame that ends at the first position may have ended before the slice.
                widen(&|i| (frames.bounds[i].1.saturating_sub(1), frames.bounds[i].1));
            }
            _ if e.reach() == Reach::Prefix => {
                if e.frame.units != FrameUnits::Rows {
                    widen(&peers);
                }
            }
            func => {
                let frames = Frames::new(p, &e.frame, ctx)?;
                widen(&|i| {
                    let (s, t) = frames.bounds[i];
                    match func {
                        WindowFunc::FirstValue(_) if e.frame.exclude == FrameExclude::NoOthers => (s, (s + 1).min(n)),
                        WindowFunc::LastValue(_) if e.frame.exclude == FrameExclude::NoOthers => (t.saturating_sub(1), t),
                        _ => (s, t),
                    }
                });
            }
        }
        if e.sees_peers() {
            widen(&peers);
        }
    }
    Ok(out)
}

/// The row `k` from row `i`, or the partition's end on that side.
fn shifted(i: usize, k: i64, n: usize) -> (usize, usize) {
    let j = (i as i64).saturating_add(k);
    if j < 0 {
        (0, 0)
    } else if j >= n as i64 {
        (n, n)
    } else {
        (j as usize, j as usize + 1)
    }
}
