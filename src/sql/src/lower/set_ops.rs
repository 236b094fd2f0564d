//! INTERSECT and EXCEPT.
//!
//! Counting with Negate and Threshold is right where equal rows are the same bytes. Where they need not be (numeric 1.0
//! and 1.00), rows are matched by an equality join instead, numbered first for the ALL forms.

use super::env::Env;
use super::{join_on, Lowerer};
use crate::hir::Hir;
use expr::{Frame, FrameBound, FrameExclude, FrameUnits, WindowExpr, WindowFunc};
use plan::equality::equal_is_identical;
use plan::Mir;
use repr::{SqlError, SqlType};

impl Lowerer {
    /// max(a - b, 0) copies with `all`, else one copy where b has none.
    pub(super) fn except(&mut self, left: Hir, right: Hir, all: bool, env: &Env) -> Result<Mir, SqlError> {
        let (a, b) = (self.relation(left, env)?, self.relation(right, env)?);
        if identical(&a, &b) {
            let (a, b) = if all { (a, b) } else { (a.distinct(), b.distinct()) };
            return Ok(a.union(b.negate()).threshold());
        }
        let n = a.arity();
        let (a, b) = if all { (numbered(a), numbered(b)) } else { (a.distinct(), b.distinct()) };
        let width = a.arity();
        let (get, binding) = self.bind(a);
        let common = join_on(get.clone(), b, (0..width).map(|i| (i, i))).project((0..width).collect());
        Ok(binding.around(get.union(common.negate())).project((0..n).collect()))
    }

    /// min(a, b) copies with `all`, else one copy where both have some.
    pub(super) fn intersect(&mut self, left: Hir, right: Hir, all: bool, env: &Env) -> Result<Mir, SqlError> {
        let (a, b) = (self.relation(left, env)?, self.relation(right, env)?);
        if identical(&a, &b) {
            // a - max(a - b, 0)
            let (a, b) = if all { (a, b) } else { (a.distinct(), b.distinct()) };
            let (get, binding) = self.bind(a);
            let only_left = get.clone().union(b.negate()).threshold();
            return Ok(binding.around(get.union(only_left.negate())));
        }
        let n = a.arity();
        let (a, b) = if all { (numbered(a), numbered(b)) } else { (a.distinct(), b.distinct()) };
        let width = a.arity();
        Ok(join_on(a, b, (0..width).map(|i| (i, i))).project((0..n).collect()))
    }
}

fn identical(a: &Mir, b: &Mir) -> bool {
    a.types().iter().chain(&b.types()).all(|t| equal_is_identical(&t.ty))
}

/// Numbers equal rows 1, 2, 3, ... in a last column, so that all rows differ.
fn numbered(input: Mir) -> Mir {
    let partition = (0..input.arity()).collect();
    let frame = Frame { units: FrameUnits::Rows, start: FrameBound::UnboundedPreceding, end: FrameBound::UnboundedFollowing, exclude: FrameExclude::NoOthers };
    let number = WindowExpr { func: WindowFunc::RowNumber, frame, ty: SqlType::Int8.not_null() };
    Mir::Window { input: input.boxed(), partition, order_by: vec![], exprs: vec![number] }
}
