//! Window functions over one ordered partition.
//!
//! ```text
//!   frame    (`frame`)    for each row the rows it covers: at most three ranges of positions (EXCLUDE takes some out)
//!   values   here         ranks by position; values by offset; values at frame ends
//!   reach    (`reach`)    which rows a value depends on, so that a slice of the partition can be evaluated alone
//!   sums     (`sliding`)  aggregates that move with the frame: O(n) for accumulable ones, O(n log n) for min and max
//! ```

use crate::agg::{Accum, Aggregate};
use crate::ctx::EvalCtx;
use crate::eval::eval_whole;
use crate::scalar::Scalar;
use repr::error::state;
use repr::{column, Batch, ColType, Diff, SqlError, Value};

/// Frames as ranges of positions.
mod frame;
/// How far a function looks.
mod reach;
/// Aggregates over moving frames.
mod sliding;

use frame::Frames;
pub use reach::{spans, Reach};

/// A window function call; partition and order belong to the plan node that holds it.
#[derive(Clone, Debug, PartialEq)]
pub struct WindowExpr {
    pub func: WindowFunc,
    pub frame: Frame,
    pub ty: ColType,
}

#[derive(Clone, Debug, PartialEq)]
pub enum WindowFunc {
    RowNumber,
    Rank,
    DenseRank,
    PercentRank,
    CumeDist,
    Ntile(Scalar),
    Lag {
        value: Scalar,
        offset: Scalar,
        default: Scalar,
    },
    Lead {
        value: Scalar,
        offset: Scalar,
        default: Scalar,
    },
    FirstValue(Scalar),
    LastValue(Scalar),
    NthValue(Scalar, Scalar),
    /// Any aggregate over the frame (with its FILTER).
    Aggregate(Aggregate),
}

#[derive(Clone, Debug, PartialEq)]
pub struct Frame {
    pub units: FrameUnits,
    pub start: FrameBound,
    pub end: FrameBound,
    pub exclude: FrameExclude,
}

impl Frame {
    fn has_offsets(&self) -> bool {
        [&self.start, &self.end].iter().any(|b| matches!(b, FrameBound::Preceding(_) | FrameBound::Following(_)))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameUnits {
    Rows,
    Range,
    Groups,
}

#[derive(Clone, Debug, PartialEq)]
pub enum FrameBound {
    UnboundedPreceding,
    Preceding(Scalar),
    CurrentRow,
    Following(Scalar),
    UnboundedFollowing,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameExclude {
    NoOthers,
    CurrentRow,
    Group,
    Ties,
}

/// One partition: its rows in ORDER BY order (ties broken by row bytes; a row occurs as often as its multiplicity), and
/// for each row the index of its peer group. Returns for each row the value of each expression.
pub struct Partition<'a> {
    pub rows: &'a [Vec<Value>],
    pub types: &'a [ColType],
    /// Peer group number of each row, from 0, not decreasing.
    pub peers: &'a [usize],
    /// The ORDER BY columns, for RANGE frames with an offset (exactly one then).
    pub order: &'a [crate::scalar::ColumnOrder],
}

/// Values of `exprs` for every row of the partition: `result[row][expr]`.
///
/// Errors: the first of an argument expression; Postgres's for frame offsets and for the arguments of ntile and nth_value.
pub fn evaluate(partition: &Partition<'_>, exprs: &[WindowExpr], ctx: &EvalCtx) -> Result<Vec<Vec<Value>>, SqlError> {
    evaluate_after(&[], partition, exprs, ctx)
}

/// As [`evaluate`], for rows before which others come: `before` has their states for the expressions with a
/// [state](WindowExpr::prefix_state); none: there are no rows before.
pub fn evaluate_after(before: &[Accum], partition: &Partition<'_>, exprs: &[WindowExpr], ctx: &EvalCtx) -> Result<Vec<Vec<Value>>, SqlError> {
    let n = partition.rows.len();
    let batch = Batch::try_from_rows(partition.types, partition.rows.iter().map(|r| r.as_slice()))?;
    let run = Run { partition, batch, ctx };
    let mut out: Vec<Vec<Value>> = vec![Vec::with_capacity(exprs.len()); n];
    let mut states = before.iter();
    for e in exprs {
        let before = e.prefix_state().and_then(|_| states.next());
        let column = run.column(e, before)?;
        for (row, v) in out.iter_mut().zip(column) {
            row.push(v);
        }
    }
    Ok(out)
}

/// The states of no rows, one for each of the expressions that has one.
pub fn no_states(exprs: &[WindowExpr]) -> Vec<Accum> {
    exprs.iter().filter_map(WindowExpr::prefix_state).map(|a| Accum::new(a.func)).collect()
}

/// Adds rows, each `diffs` times, to the states of the expressions that have one.
///
/// Errors: the first of a FILTER or argument expression.
pub fn add_to_states(
    rows: &[Vec<Value>],
    diffs: &[Diff],
    types: &[ColType],
    exprs: &[WindowExpr],
    states: &mut [Accum],
    ctx: &EvalCtx,
) -> Result<(), SqlError> {
    let batch = Batch::try_from_rows(types, rows.iter().map(|r| r.as_slice()))?;
    for (a, state) in exprs.iter().filter_map(WindowExpr::prefix_state).zip(states) {
        sliding::add(a, &batch, diffs, types, state, ctx)?;
    }
    Ok(())
}

struct Run<'a> {
    partition: &'a Partition<'a>,
    batch: Batch,
    ctx: &'a EvalCtx,
}

impl Run<'_> {
    fn len(&self) -> usize {
        self.partition.rows.len()
    }

    /// The value of a scalar on each row.
    fn values(&self, x: &Scalar) -> Result<Vec<Value>, SqlError> {
        let v = eval_whole(x, &self.batch, self.partition.types, self.ctx);
        if let Some((_, e)) = v.errors.into_iter().next() {
            return Err(e);
        }
        let ty = x.typ(self.partition.types).ty;
        Ok((0..self.len()).map(|i| column::get(&v.column, &ty, i)).collect())
    }

    fn column(&self, e: &WindowExpr, before: Option<&Accum>) -> Result<Vec<Value>, SqlError> {
        let (n, peers) = (self.len(), self.partition.peers);
        let group_starts = frame::group_starts(peers);
        let rank = |i: usize| group_starts[peers[i]];
        let group_end = |i: usize| group_starts.get(peers[i] + 1).copied().unwrap_or(n);
        let framed = matches!(e.func, WindowFunc::FirstValue(_) | WindowFunc::LastValue(_) | WindowFunc::NthValue(..) | WindowFunc::Aggregate(_));
        if !framed && e.frame.has_offsets() {
            // It asks for no frame, whose offsets must be good all the same.
            self.frames(&e.frame)?;
        }
        match &e.func {
            WindowFunc::RowNumber => Ok((0..n).map(|i| Value::Int8(i as i64 + 1)).collect()),
            WindowFunc::Rank => Ok((0..n).map(|i| Value::Int8(rank(i) as i64 + 1)).collect()),
            WindowFunc::DenseRank => Ok((0..n).map(|i| Value::Int8(peers[i] as i64 + 1)).collect()),
            WindowFunc::PercentRank => Ok((0..n).map(|i| Value::Float8(if n < 2 { 0.0 } else { rank(i) as f64 / (n - 1) as f64 })).collect()),
            WindowFunc::CumeDist => Ok((0..n).map(|i| Value::Float8(group_end(i) as f64 / n as f64)).collect()),
            WindowFunc::Ntile(buckets) => self.ntile(buckets),
            WindowFunc::Lag { value, offset, default } => self.shifted(value, offset, default, -1),
            WindowFunc::Lead { value, offset, default } => self.shifted(value, offset, default, 1),
            WindowFunc::FirstValue(x) => {
                let (values, frames) = (self.values(x)?, self.frames(&e.frame)?);
                Ok((0..n).map(|i| frames.of(i).first().map_or(Value::Null, |k| values[k].clone())).collect())
            }
            WindowFunc::LastValue(x) => {
                let (values, frames) = (self.values(x)?, self.frames(&e.frame)?);
                Ok((0..n).map(|i| frames.of(i).last().map_or(Value::Null, |k| values[k].clone())).collect())
            }
            WindowFunc::NthValue(x, which) => {
                let (values, which, frames) = (self.values(x)?, self.values(which)?, self.frames(&e.frame)?);
                (0..n)
                    .map(|i| match which[i].as_i64() {
                        None => Ok(Value::Null),
                        Some(k) if k <= 0 => Err(SqlError::new(state::INVALID_ARGUMENT_FOR_NTH_VALUE, "argument of nth_value must be greater than zero")),
                        Some(k) => Ok(frames.of(i).nth(k as usize - 1).map_or(Value::Null, |k| values[k].clone())),
                    })
                    .collect()
            }
            WindowFunc::Aggregate(agg) => {
                let frames = self.frames(&e.frame)?;
                sliding::aggregate(agg, before, &self.batch, self.partition.types, &frames, self.ctx)
            }
        }
    }

    fn frames(&self, frame: &Frame) -> Result<Frames, SqlError> {
        Frames::new(self.partition, frame, self.ctx)
    }

    /// The number of buckets is that of the first row.
    fn ntile(&self, buckets: &Scalar) -> Result<Vec<Value>, SqlError> {
        let n = self.len();
        let Some(k) = self.values(buckets)?.first().map(Value::as_i64) else { return Ok(Vec::new()) };
        let Some(k) = k else { return Ok(vec![Value::Null; n]) };
        if k <= 0 {
            return Err(SqlError::new(state::INVALID_ARGUMENT_FOR_NTILE, "argument of ntile must be greater than zero"));
        }
        // The first `rest` buckets have one row more.
        let (size, rest) = (n as i64 / k, n as i64 % k);
        let bucket = |i: i64| {
            let long = rest * (size + 1);
            if i < long {
                i / (size + 1)
            } else {
                rest + (i - long) / size.max(1)
            }
        };
        Ok((0..n as i64).map(|i| Value::Int4((bucket(i) + 1) as i32)).collect())
    }

    fn shifted(&self, value: &Scalar, offset: &Scalar, default: &Scalar, sign: i64) -> Result<Vec<Value>, SqlError> {
        let (values, offsets, defaults) = (self.values(value)?, self.values(offset)?, self.values(default)?);
        let at = |i: usize| {
            let Some(k) = offsets[i].as_i64() else { return Value::Null };
            let j = k.checked_mul(sign).and_then(|k| (i as i64).checked_add(k)).and_then(|j| usize::try_from(j).ok());
            j.and_then(|j| values.get(j)).unwrap_or(&defaults[i]).clone()
        };
        Ok((0..self.len()).map(at).collect())
    }
}
