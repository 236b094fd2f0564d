//! Physical plans: one node, one operator. `dataflow/render/` has one file a node kind.

use crate::mfp::Mfp;
use crate::mir::{Id, LocalId};
use expr::{Aggregate, ColumnOrder, EvalCtx, Scalar, TableFunc, WindowExpr};
use repr::{ColType, Diff, GlobalId, SqlError, Timestamp, Value};
use std::sync::Arc;

/// A node with its output columns. `node` numbers are stable for a given plan text: checkpoints name arrangements by them.
#[derive(Clone, Debug, PartialEq)]
pub struct Lir {
    pub node: u32,
    pub types: Vec<ColType>,
    pub kind: LirKind,
}

#[derive(Clone, Debug, PartialEq)]
pub enum LirKind {
    Constant {
        rows: Result<Vec<(Vec<Value>, Diff)>, SqlError>,
    },
    /// An import or a local binding, as a stream of batches. If only an arrangement of the import exists, its rows are read from that.
    Get {
        id: Id,
    },
    Let {
        id: LocalId,
        value: Box<Lir>,
        body: Box<Lir>,
    },
    LetRec {
        bindings: Vec<(LocalId, Lir)>,
        limit: Option<u64>,
        return_at_limit: bool,
        body: Box<Lir>,
    },
    Mfp {
        input: Box<Lir>,
        mfp: Mfp,
    },
    FlatMap {
        input: Box<Lir>,
        func: TableFunc,
    },
    /// Left-deep: `inputs[start]`'s rows flow through `stages`.
    Join {
        inputs: Vec<Lir>,
        start: usize,
        stages: Vec<JoinStage>,
    },
    Reduce {
        input: Box<Lir>,
        group_key: Vec<Scalar>,
        kind: ReduceKind,
    },
    TopK {
        input: Box<Lir>,
        group_key: Vec<usize>,
        order_by: Vec<ColumnOrder>,
        limit: Option<Scalar>,
        offset: u64,
        with_ties: bool,
    },
    Window {
        input: Box<Lir>,
        partition: Vec<usize>,
        order_by: Vec<ColumnOrder>,
        exprs: Vec<WindowExpr>,
    },
    Negate {
        input: Box<Lir>,
    },
    Threshold {
        input: Box<Lir>,
    },
    Union {
        inputs: Vec<Lir>,
    },
}

/// One step of a linear join: the rows so far meet `inputs[lookup]`.
#[derive(Clone, Debug, PartialEq)]
pub struct JoinStage {
    pub lookup: usize,
    /// Key of the rows so far, over their columns. Empty for a cross join.
    pub stream_key: Vec<Scalar>,
    /// Key of the looked-up input, over its columns. An import that has an arrangement with exactly this key is used as it is.
    pub lookup_key: Vec<Scalar>,
    /// For each key expression, whether NULL matches NULL. Where false, rows with a NULL there match nothing.
    pub null_safe: Vec<bool>,
    /// Applied to (columns so far ++ lookup columns).
    pub mfp: Mfp,
}

/// How a group's result is maintained. Output columns: group key, then one an aggregate.
#[derive(Clone, Debug, PartialEq)]
pub enum ReduceKind {
    Distinct,
    /// All aggregates accumulable; with DISTINCT over the distinct arguments of a group.
    Accumulable(Vec<Aggregate>),
    /// All aggregates min or max, without DISTINCT.
    Hierarchical(Vec<Aggregate>),
    /// As `Hierarchical`, over an input that never takes a row back: the extrema are all that is kept.
    Monotonic(Vec<Aggregate>),
    /// Any one aggregate, re-aggregated from the group's rows.
    Basic(Vec<Aggregate>),
    /// A mixture: position in the output and kind of each part; parts are rendered apart and joined by key.
    Collated(Vec<(Vec<usize>, ReduceKind)>),
}

/// What a dataflow reads.
#[derive(Clone, Debug, PartialEq)]
pub enum Import {
    /// The shard of a source or table: its content at `as_of`, then the ticks.
    Shard { id: GlobalId, types: Vec<ColType> },
    /// An arrangement that another dataflow exports.
    Arrangement { object: GlobalId, index: GlobalId, key: Vec<Scalar>, types: Vec<ColType> },
}

/// What a dataflow leaves for others.
#[derive(Clone, Debug, PartialEq)]
pub enum Export {
    /// An arrangement of object `on` (built here or imported), by `key`, under the id `index`.
    Arrangement { index: GlobalId, on: GlobalId, key: Vec<Scalar> },
    /// A stream of changes of object `on` to the coordinator.
    Subscribe { id: GlobalId, on: GlobalId, with_snapshot: bool, up_to: Option<Timestamp> },
    /// The content of object `on` at `as_of`, once, then the dataflow ends.
    PeekOnce { id: GlobalId, on: GlobalId },
}

/// A dataflow to build. Every import is read at `as_of` and followed until `until` (not included).
#[derive(Clone)]
pub struct DataflowDesc {
    pub name: String,
    pub as_of: Timestamp,
    pub until: Option<Timestamp>,
    pub imports: Vec<Import>,
    /// Objects computed here, in dependency order.
    pub builds: Vec<(GlobalId, Lir)>,
    pub exports: Vec<Export>,
    pub ctx: Arc<EvalCtx>,
    /// QUARANTINE views: (object, id under which its errors are a relation). Errors that rows cause do not reach the readers of the object, but are
    /// rows of that relation: code, message, detail, hint. Errors of the system (damage, a full disk) stay errors of the object.
    pub quarantine: Vec<(GlobalId, GlobalId)>,
}

/// How a one-off query is answered.
#[derive(Clone, Debug, PartialEq)]
pub enum PeekPlan {
    /// No relation is read.
    Constant { rows: Result<Vec<(Vec<Value>, Diff)>, SqlError>, types: Vec<ColType> },
    /// A look-up or scan of an existing arrangement, then `mfp`. `keys`: the bound key values; `None` scans.
    Arrangement { object: GlobalId, index: GlobalId, keys: Option<Vec<Vec<Value>>>, mfp: Mfp, types: Vec<ColType> },
    /// Anything else: a dataflow at one time.
    Dataflow(Lir),
}
