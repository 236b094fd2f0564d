//! Window functions over one ordered partition.

use crate::agg::Aggregate;
use crate::ctx::EvalCtx;
use crate::scalar::Scalar;
use repr::{ColType, SqlError, Value};

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
pub fn evaluate(partition: &Partition<'_>, exprs: &[WindowExpr], ctx: &EvalCtx) -> Result<Vec<Vec<Value>>, SqlError> {
    let _ = (partition, exprs, ctx);
    unimplemented!("expr::window::evaluate")
}
