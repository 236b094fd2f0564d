//! Set-returning functions: generate_series, unnest, json_each and their like.

use crate::ctx::EvalCtx;
use crate::scalar::Scalar;
use repr::{ColType, SqlError, Value};

/// A call of a set-returning function on each input row.
#[derive(Clone, Debug, PartialEq)]
pub struct TableFunc {
    pub func: &'static TableFuncDef,
    pub args: Vec<Scalar>,
    /// Types of the columns it returns (without ordinality).
    pub columns: Vec<ColType>,
    /// Adds a last column of int8: 1, 2, 3, ...
    pub with_ordinality: bool,
}

pub struct TableFuncDef {
    pub name: &'static str,
    pub oid: u32,
    /// NULL arguments give no rows.
    pub strict: bool,
    pub fallible: bool,
    pub rows: TableKernel,
}

/// Calls `emit` with each row; `emit` returns false when no more rows are wanted.
pub type TableKernel =
    fn(args: &[Value], types: &[ColType], columns: &[ColType], ctx: &EvalCtx, emit: &mut dyn FnMut(Vec<Value>) -> bool) -> Result<(), SqlError>;

impl std::fmt::Debug for TableFuncDef {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

impl PartialEq for TableFuncDef {
    fn eq(&self, other: &TableFuncDef) -> bool {
        self.oid == other.oid && self.name == other.name
    }
}

/// The set-returning function with this pg_proc OID, if it is implemented.
pub fn by_oid(oid: u32) -> Option<&'static TableFuncDef> {
    let _ = oid;
    None
}
