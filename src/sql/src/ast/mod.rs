//! The syntax tree: what `parse` makes and `plan` reads.
//!
//! ```text
//!   Statement ─┬─ Query ── Select ── Target, TableRef, Expr          (query)
//!              ├─ CREATE / ALTER / DROP / COMMENT                    (ddl)
//!              └─ session, transaction, cursor, subscribe, copy      (statement)
//! ```
//!
//! The tree is close to Postgres's raw parse tree: forms that Postgres rewrites to function calls in its grammar
//! (EXTRACT, POSITION, TRIM, AT TIME ZONE, LIKE … ESCAPE) are calls here too, so that names and errors agree.
//! A [`Pos`] is the 1-based character in the query string that `parse` was given; a [`Span`] is in its bytes.

/// The code of DO.
pub mod block;
mod ddl;
mod expr;
mod query;
mod statement;
pub mod walk;

pub use ddl::*;
pub use expr::*;
pub use query::*;
pub use statement::*;

use repr::error::state;
use repr::SqlError;

/// 1-based position in characters of the query string, as errors report it.
pub type Pos = u32;

/// Half-open byte range of the query string.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Span {
    pub start: usize,
    pub end: usize,
}

/// An identifier, folded to lower case unless it was quoted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ident {
    pub name: String,
    pub pos: Pos,
}

/// A possibly qualified name of a catalog object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectName {
    pub parts: Vec<String>,
    pub pos: Pos,
    pub span: Span,
}

impl ObjectName {
    /// The name with the schema of temporary objects, if it is to be `temporary` and names none.
    pub fn in_temp(mut self, temporary: bool) -> ObjectName {
        if temporary && self.parts.len() == 1 {
            self.parts.insert(0, "pg_temp".to_owned());
        }
        self
    }

    /// Errors: 42P16 for a temporary relation in a schema of its own.
    pub fn check_temp(&self, temporary: bool) -> Result<(), SqlError> {
        match self.parts.as_slice() {
            [.., schema, _] if temporary && !schema.starts_with("pg_temp") => {
                let m = "cannot create temporary relation in non-temporary schema";
                Err(SqlError::new(state::INVALID_TABLE_DEFINITION, m).at(self.pos))
            }
            _ => Ok(()),
        }
    }

    /// The last part.
    pub fn last(&self) -> &str {
        self.parts.last().map_or("", |p| p.as_str())
    }
}

impl std::fmt::Display for ObjectName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.parts.join("."))
    }
}
