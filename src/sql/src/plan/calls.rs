//! Calls that a query's row does not have yet when its expressions are bound: aggregates, window functions, set-returning
//! functions, GROUPING.
//!
//! Binding replaces each by a column beyond any real one (its base plus its number in the registry of its level); the query
//! then computes them, stage by stage, and puts the real columns in their place.

use super::scope::Clause;
use crate::hir::{HirAggregate, HirBound, HirScalar, HirWindowFunc};
use expr::{FrameExclude, FrameUnits, TableFuncDef};
use repr::ColType;
use std::cell::{Cell, RefCell};

pub const AGGREGATES: usize = 1 << 40;
pub const WINDOWS: usize = 2 << 40;
pub const SETS: usize = 3 << 40;
pub const GROUPINGS: usize = 4 << 40;
const MASK: usize = (1 << 40) - 1;

/// What a virtual column stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Virtual {
    Real(usize),
    Aggregate(usize),
    Window(usize),
    /// Column number among all columns of the registered set-returning calls.
    Set(usize),
    Grouping(usize),
}

pub fn decode(column: usize) -> Virtual {
    let n = column & MASK;
    match column & !MASK {
        AGGREGATES => Virtual::Aggregate(n),
        WINDOWS => Virtual::Window(n),
        SETS => Virtual::Set(n),
        GROUPINGS => Virtual::Grouping(n),
        _ => Virtual::Real(column),
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct WindowSpecBound {
    pub partition: Vec<HirScalar>,
    pub order: Vec<(HirScalar, bool, bool)>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct WindowCall {
    pub func: HirWindowFunc,
    pub spec: WindowSpecBound,
    pub units: FrameUnits,
    pub start: HirBound,
    pub end: HirBound,
    pub exclude: FrameExclude,
    pub ty: ColType,
}

#[derive(Clone, Debug)]
pub struct SetCall {
    pub func: &'static TableFuncDef,
    pub args: Vec<HirScalar>,
    pub columns: Vec<ColType>,
    /// Number of its first column.
    pub first: usize,
    /// The last column is the number of the row in the function's own result: NULL where only a longer neighbour has a row.
    pub numbered: bool,
}

/// What a window is defined by.
pub fn spec_exprs(w: &mut WindowCall) -> impl Iterator<Item = &mut HirScalar> {
    w.spec.partition.iter_mut().chain(w.spec.order.iter_mut().map(|o| &mut o.0))
}

/// The registries of one level.
pub struct Calls {
    pub clause: Cell<Clause>,
    pub aggregates: RefCell<Vec<HirAggregate>>,
    pub windows: RefCell<Vec<WindowCall>>,
    pub sets: RefCell<Vec<SetCall>>,
    /// Arguments of each GROUPING call.
    pub groupings: RefCell<Vec<Vec<HirScalar>>>,
    /// Inside the arguments of an aggregate of this level.
    pub in_aggregate: Cell<bool>,
    /// Inside a window function's arguments or definition.
    pub in_window: Cell<bool>,
    /// Named windows of the query.
    pub named: RefCell<Vec<(String, crate::ast::WindowSpec)>>,
    /// A set-returning function may not stand here although the clause allows them: inside CASE or COALESCE.
    pub no_sets: Cell<Option<&'static str>>,
}

impl Calls {
    pub fn new(clause: Clause) -> Calls {
        Calls {
            clause: Cell::new(clause),
            aggregates: RefCell::default(),
            windows: RefCell::default(),
            sets: RefCell::default(),
            groupings: RefCell::default(),
            in_aggregate: Cell::new(false),
            in_window: Cell::new(false),
            named: RefCell::default(),
            no_sets: Cell::new(None),
        }
    }
}
