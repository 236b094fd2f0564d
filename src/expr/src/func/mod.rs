//! Function entries and their lifting over columns.
//!
//! A function is written once, as a plain Rust function on native values, beside its Postgres signature; `lift`
//! turns it into a kernel over Arrow columns that handles NULLs (strict functions) and gathers errors per row.

use crate::ctx::EvalCtx;
use arrow_array::ArrayRef;
use repr::{ColType, SqlError};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Volatility {
    Immutable,
    Stable,
    Volatile,
}

/// One function, operator implementation or cast. Compared by identity of `name` and `oid`.
pub struct FuncDef {
    /// pg_proc.proname; casts and constructs without one have a name of ours (`cast_io`, `array_construct`).
    pub name: &'static str,
    /// pg_proc.oid; 0 for ours.
    pub oid: u32,
    pub strict: bool,
    pub volatility: Volatility,
    /// Whether it can raise an error.
    pub fallible: bool,
    pub kernel: Kernel,
}

/// Evaluates a function over `len` rows: one column in, one out. A row that fails is NULL in the result and noted in `errors`.
pub type Kernel = fn(&mut CallArgs<'_>) -> ArrayRef;

/// A kernel's arguments.
pub struct CallArgs<'a> {
    pub args: &'a [ArrayRef],
    pub arg_types: &'a [ColType],
    pub ret: &'a ColType,
    pub len: usize,
    pub ctx: &'a EvalCtx,
    pub errors: &'a mut Vec<(u32, SqlError)>,
}

impl std::fmt::Debug for FuncDef {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

impl PartialEq for FuncDef {
    fn eq(&self, other: &FuncDef) -> bool {
        std::ptr::eq(self, other) || (self.oid == other.oid && self.name == other.name)
    }
}

/// The function with this pg_proc OID, if it is implemented.
pub fn by_oid(oid: u32) -> Option<&'static FuncDef> {
    let _ = oid;
    None
}

/// One of our own entries (oid 0) by name.
pub fn internal(name: &str) -> Option<&'static FuncDef> {
    let _ = name;
    None
}
