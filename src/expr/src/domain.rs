//! Tests of domains for values that stand inside arrays: which expression tests one of them is known by the domain's number.
//!
//! A test is an expression over the value itself (column 0) that gives the value back or raises. Whoever binds a coercion to an array of a
//! domain publishes the domain's test as the catalog has it then; the kernel `domain_elements` asks for it. Not here: what a domain demands
//! (`sql`, which also tests values that stand alone without asking here).

use crate::{eval_row, EvalCtx, Scalar};
use repr::{ColType, SqlError, Value};
use std::collections::HashMap;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

struct Test {
    expr: Scalar,
    types: Vec<ColType>,
}

type Tests = RwLock<HashMap<u32, Arc<Test>>>;

fn tests() -> &'static Tests {
    static TESTS: OnceLock<Tests> = OnceLock::new();
    TESTS.get_or_init(Tests::default)
}

/// Makes `expr` the test of the domain `oid`; `ty`: what it is over.
pub fn publish(oid: u32, expr: Scalar, ty: ColType) {
    let test = Arc::new(Test { expr, types: vec![ty] });
    tests().write().unwrap_or_else(PoisonError::into_inner).insert(oid, test);
}

/// The value, if the domain admits it. Errors: 23502, 23514 and what the conditions raise.
pub fn admit(oid: u32, value: Value, ctx: &EvalCtx) -> Result<Value, SqlError> {
    let test = tests().read().unwrap_or_else(PoisonError::into_inner).get(&oid).cloned();
    let test = test.ok_or_else(|| SqlError::internal("a domain without a test"))?;
    eval_row(&test.expr, &[value], &test.types, ctx)
}
