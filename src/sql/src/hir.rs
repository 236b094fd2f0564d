//! HIR: relational expressions with correlation. What the binder makes and `lower` decorrelates.
//!
//! A scalar refers to a column by (level, column): level 0 is the row the scalar is evaluated on, level 1 the row of the
//! next enclosing query, and so on. Inside a subquery (EXISTS, scalar, quantified) or the right side of a LATERAL join,
//! the enclosing row is one level up.

use expr::{AggDef, ColumnOrder, FrameExclude, FrameUnits, FuncDef, TableFuncDef};
use plan::LocalId;
use repr::{ColType, Diff, GlobalId, SqlError, Value};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ColumnRef {
    pub level: usize,
    pub column: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JoinKind {
    Inner,
    Left,
    Right,
    Full,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Hir {
    Constant {
        rows: Vec<(Vec<Value>, Diff)>,
        types: Vec<ColType>,
    },
    /// A catalog relation (table, source, view's own body is inlined by the binder, materialized view).
    Get {
        id: GlobalId,
        types: Vec<ColType>,
        keys: Vec<Vec<usize>>,
    },
    /// A CTE or recursive binding in scope.
    GetLocal {
        id: LocalId,
        types: Vec<ColType>,
    },
    /// A non-recursive CTE.
    Let {
        id: LocalId,
        value: Box<Hir>,
        body: Box<Hir>,
    },
    /// WITH RECURSIVE / WITH MUTUALLY RECURSIVE: bindings see each other; least fixed point from empty.
    LetRec {
        bindings: Vec<HirRec>,
        limit: Option<u64>,
        return_at_limit: bool,
        body: Box<Hir>,
    },
    Project {
        input: Box<Hir>,
        outputs: Vec<usize>,
    },
    Map {
        input: Box<Hir>,
        scalars: Vec<HirScalar>,
    },
    Filter {
        input: Box<Hir>,
        predicates: Vec<HirScalar>,
    },
    /// A set-returning function as a relation; `args` see only outer levels (level 1 = the enclosing row, as in a LATERAL right side; level 0 does not exist).
    /// Columns: the function's, then ordinality.
    CallTable {
        func: &'static TableFuncDef,
        args: Vec<HirScalar>,
        columns: Vec<ColType>,
        with_ordinality: bool,
    },
    /// Functions in lockstep, shorter ones padded with NULL: ROWS FROM, and several set-returning functions in one select list. Each input is a `CallTable`.
    RowsFrom {
        functions: Vec<Hir>,
        with_ordinality: bool,
    },
    /// `on` is over left ++ right columns at level 0. With `lateral`, `right` sees a row of `left` as its level-1 columns
    /// (and everything outside shifted by one); without, `right` still counts the join as no level.
    Join {
        left: Box<Hir>,
        right: Box<Hir>,
        on: HirScalar,
        kind: JoinKind,
        lateral: bool,
    },
    /// Group key columns, then aggregates. With an empty key and `scalar`: exactly one row even for an empty input.
    Reduce {
        input: Box<Hir>,
        group_key: Vec<usize>,
        aggregates: Vec<HirAggregate>,
        scalar: bool,
    },
    Distinct {
        input: Box<Hir>,
    },
    /// LIMIT/OFFSET/DISTINCT ON (group key, limit 1): order is by columns of the input. `limit` and `offset` see only outer levels
    /// (level 1 = the enclosing row) and are int8; NULL limit: all.
    TopK {
        input: Box<Hir>,
        group_key: Vec<usize>,
        order_by: Vec<ColumnOrder>,
        limit: Option<HirScalar>,
        offset: Option<HirScalar>,
        with_ties: bool,
    },
    /// Appends one column a window function; scalars inside are over the input at level 0.
    Window {
        input: Box<Hir>,
        partition: Vec<usize>,
        order_by: Vec<ColumnOrder>,
        exprs: Vec<HirWindow>,
    },
    /// UNION ALL.
    Union {
        inputs: Vec<Hir>,
    },
    /// INTERSECT / EXCEPT [ALL].
    Intersect {
        left: Box<Hir>,
        right: Box<Hir>,
        all: bool,
    },
    Except {
        left: Box<Hir>,
        right: Box<Hir>,
        all: bool,
    },
}

#[derive(Clone, Debug, PartialEq)]
pub struct HirRec {
    pub id: LocalId,
    pub types: Vec<ColType>,
    pub value: Hir,
}

#[derive(Clone, Debug, PartialEq)]
pub struct HirAggregate {
    pub func: &'static AggDef,
    pub args: Vec<HirScalar>,
    /// The first `direct` arguments are direct ones of an ordered- or hypothetical-set aggregate.
    pub direct: usize,
    pub distinct: bool,
    pub filter: Option<HirScalar>,
    pub order_by: Vec<(HirScalar, ColumnOrder)>,
    pub ty: ColType,
}

#[derive(Clone, Debug, PartialEq)]
pub struct HirWindow {
    pub func: HirWindowFunc,
    pub units: FrameUnits,
    pub start: HirBound,
    pub end: HirBound,
    pub exclude: FrameExclude,
    pub ty: ColType,
}

#[derive(Clone, Debug, PartialEq)]
pub enum HirWindowFunc {
    RowNumber,
    Rank,
    DenseRank,
    PercentRank,
    CumeDist,
    Ntile(HirScalar),
    Lag { value: HirScalar, offset: HirScalar, default: HirScalar },
    Lead { value: HirScalar, offset: HirScalar, default: HirScalar },
    FirstValue(HirScalar),
    LastValue(HirScalar),
    NthValue(HirScalar, HirScalar),
    Aggregate(HirAggregate),
}

#[derive(Clone, Debug, PartialEq)]
pub enum HirBound {
    UnboundedPreceding,
    Preceding(HirScalar),
    CurrentRow,
    Following(HirScalar),
    UnboundedFollowing,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantifier {
    Any,
    All,
}

#[derive(Clone, Debug, PartialEq)]
pub enum HirScalar {
    Column(ColumnRef, ColType),
    /// `$n`, n from 0. Replaced by literals before lowering.
    Parameter(usize, ColType),
    Literal(Value, ColType),
    Error(Box<SqlError>, ColType),
    Call {
        func: &'static FuncDef,
        args: Vec<HirScalar>,
        ty: ColType,
    },
    And(Vec<HirScalar>),
    Or(Vec<HirScalar>),
    Case {
        branches: Vec<(HirScalar, HirScalar)>,
        otherwise: Box<HirScalar>,
        ty: ColType,
    },
    Coalesce(Vec<HirScalar>, ColType),
    IsNull(Box<HirScalar>),
    Not(Box<HirScalar>),
    Exists(Box<Hir>),
    /// The one column of the at most one row; NULL if there is none; 21000 if there are more.
    Subquery(Box<Hir>, ColType),
    /// `ARRAY(subquery)`, in the subquery's order.
    ArraySubquery {
        input: Box<Hir>,
        order_by: Vec<ColumnOrder>,
        column: usize,
        ty: ColType,
    },
    /// `x op ANY/ALL (subquery)`, `x IN (subquery)`: `comparison` has the subquery's row at level 0 and the enclosing row
    /// at level 1, and is three-valued.
    Quantified {
        quantifier: Quantifier,
        comparison: Box<HirScalar>,
        input: Box<Hir>,
    },
}

impl Hir {
    pub fn arity(&self) -> usize {
        self.types().len()
    }

    pub fn types(&self) -> Vec<ColType> {
        match self {
            Hir::Constant { types, .. } | Hir::Get { types, .. } | Hir::GetLocal { types, .. } => types.clone(),
            Hir::Let { body, .. } | Hir::LetRec { body, .. } => body.types(),
            Hir::Project { input, outputs } => {
                let t = input.types();
                outputs.iter().map(|i| t[*i].clone()).collect()
            }
            Hir::Map { input, scalars } => {
                let mut t = input.types();
                for s in scalars {
                    t.push(s.typ());
                }
                t
            }
            Hir::Filter { input, .. } | Hir::Distinct { input } | Hir::TopK { input, .. } => input.types(),
            Hir::CallTable { columns, with_ordinality, .. } => {
                let mut t = columns.clone();
                if *with_ordinality {
                    t.push(repr::SqlType::Int8.not_null());
                }
                t
            }
            Hir::RowsFrom { functions, with_ordinality } => {
                let mut t: Vec<ColType> = functions.iter().flat_map(|f| f.types()).map(|t| t.with_nullable(true)).collect();
                if *with_ordinality {
                    t.push(repr::SqlType::Int8.not_null());
                }
                t
            }
            Hir::Join { left, right, kind, .. } => {
                let (mut l, mut r) = (left.types(), right.types());
                if matches!(kind, JoinKind::Right | JoinKind::Full) {
                    l.iter_mut().for_each(|t| t.nullable = true);
                }
                if matches!(kind, JoinKind::Left | JoinKind::Full) {
                    r.iter_mut().for_each(|t| t.nullable = true);
                }
                l.extend(r);
                l
            }
            Hir::Reduce { input, group_key, aggregates, .. } => {
                let t = input.types();
                group_key.iter().map(|k| t[*k].clone()).chain(aggregates.iter().map(|a| a.ty.clone())).collect()
            }
            Hir::Window { input, exprs, .. } => {
                let mut t = input.types();
                t.extend(exprs.iter().map(|e| e.ty.clone()));
                t
            }
            Hir::Union { inputs } => {
                let mut t = inputs[0].types();
                for other in &inputs[1..] {
                    for (a, b) in t.iter_mut().zip(other.types()) {
                        a.nullable |= b.nullable;
                        if a.typmod != b.typmod {
                            a.typmod = -1;
                        }
                    }
                }
                t
            }
            Hir::Intersect { left, .. } | Hir::Except { left, .. } => left.types(),
        }
    }
}

impl HirScalar {
    /// The scalar's type; it stands in every node that could need it, so no input types are asked for.
    pub fn typ(&self) -> ColType {
        use repr::SqlType::Bool;
        match self {
            HirScalar::Column(_, t)
            | HirScalar::Parameter(_, t)
            | HirScalar::Literal(_, t)
            | HirScalar::Error(_, t)
            | HirScalar::Coalesce(_, t)
            | HirScalar::Subquery(_, t) => t.clone(),
            HirScalar::Call { ty, .. } | HirScalar::Case { ty, .. } | HirScalar::ArraySubquery { ty, .. } => ty.clone(),
            HirScalar::And(xs) | HirScalar::Or(xs) => Bool.nullable().with_nullable(xs.iter().any(|x| x.typ().nullable)),
            HirScalar::Not(x) => Bool.nullable().with_nullable(x.typ().nullable),
            HirScalar::IsNull(_) | HirScalar::Exists(_) => Bool.not_null(),
            HirScalar::Quantified { .. } => Bool.nullable(),
        }
    }
}
