//! Aggregate functions.
//!
//! ```text
//!   kind         state in the engine                                cost of a change
//!   Accumulable  one `Accum` a group, kept in the diff              O(1)
//!   Extremum     min/max over order-preserving bytes                O(log group)
//!   Basic        the group's rows, re-aggregated                    O(group)
//! ```

use crate::ctx::EvalCtx;
use crate::scalar::{ColumnOrder, Scalar};
use repr::{ColType, Diff, SqlError, SqlType, Value};

/// An aggregate in a query.
#[derive(Clone, Debug, PartialEq)]
pub struct Aggregate {
    pub func: &'static AggDef,
    /// Arguments; for ordered-set aggregates first the direct ones (`direct` of them), then the WITHIN GROUP ones. Empty for `count(*)`.
    pub args: Vec<Scalar>,
    pub direct: usize,
    pub distinct: bool,
    pub filter: Option<Scalar>,
    /// ORDER BY inside the call (or WITHIN GROUP): expressions over the input row, and for each its direction; `column` is the position in the list.
    pub order_by: Vec<(Scalar, ColumnOrder)>,
    pub ty: ColType,
}

pub struct AggDef {
    pub name: &'static str,
    /// pg_proc.oid of the aggregate.
    pub oid: u32,
    pub kind: AggKind,
}

pub enum AggKind {
    /// Invertible: the state adds, subtracts and scales (DECISIONS 10: exact, so order-free).
    Accumulable(AccumKind),
    Extremum {
        max: bool,
    },
    Basic(BasicAgg),
}

/// Computes the aggregate of one group. `rows`: argument tuples with their multiplicities (> 0), in the aggregate's
/// ORDER BY order, ties broken by the tuple's bytes. With DISTINCT each tuple comes once. `types`: the arguments' types.
pub type BasicAgg = fn(rows: &[(Vec<Value>, Diff)], direct: usize, types: &[ColType], ret: &ColType, ctx: &EvalCtx) -> Result<Value, SqlError>;

/// What an accumulator of [`Accum`] keeps and how it ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AccumKind {
    CountStar,
    /// Rows whose argument is not NULL.
    Count,
    /// Result types by Postgres: int2/int4 to int8, int8 to numeric, float4 to float4, float8 to float8, numeric to numeric, interval, (money excepted).
    Sum,
    Avg,
    VarPop,
    VarSamp,
    StddevPop,
    StddevSamp,
    BoolAnd,
    BoolOr,
    /// regr_* and corr, covar_*: two arguments. `Regr(name)` is decided by `AggDef::name`.
    Regr,
}

/// The state of one accumulable aggregate for one group: an abelian group element.
#[derive(Clone, PartialEq, Debug)]
pub struct Accum {
    _private: (),
}

impl std::fmt::Debug for AggDef {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

impl PartialEq for AggDef {
    fn eq(&self, other: &AggDef) -> bool {
        self.oid == other.oid && self.name == other.name
    }
}

/// The aggregate with this pg_proc OID, if it is implemented.
pub fn by_oid(oid: u32) -> Option<&'static AggDef> {
    let _ = oid;
    None
}

/// The value of an aggregate over no rows: 0 for counts, else NULL.
pub fn empty_value(agg: &Aggregate) -> Value {
    match agg.func.name {
        "count" | "regr_count" => Value::Int8(0),
        _ => Value::Null,
    }
}

/// For readers of `SqlType` only in docs.
pub type ArgType = SqlType;
