//! Statements with every name and type resolved.
//!
//! ```text
//!   Statement + SqlCatalog ──describe──► parameter types, result columns
//!   Statement + SqlCatalog + parameter values ──plan──► Plan
//! ```
//!
//! A [`Plan`] is data: what is to be done, in ids and HIR. Not here: doing it, and everything that depends on a session's state
//! (open cursors, prepared statements, the transaction).

/// Aggregates in expressions.
mod agg;
/// ALTER TABLE, change by change.
pub mod alter;
/// Assignment to columns and their parts.
mod assign;
/// Aggregates, windows, set-returning functions met in expressions.
mod calls;
/// Which type becomes which, and how.
mod coerce;
/// Lists and maps.
mod collection;
/// COMMENT ON.
mod comment;
/// WITH.
mod cte;
/// CREATE, ALTER, DROP.
mod ddl;
/// Expressions and queries as PostgreSQL prints them.
pub mod deparse;
/// INSERT, UPDATE, DELETE, COPY.
mod dml;
/// Domains: values that must satisfy something.
mod domain;
/// Foreign keys.
mod foreign;
/// FROM.
mod from;
/// Overload resolution.
mod func;
/// GROUP BY and its sets.
mod group;
/// Conditions that follow from others.
mod implied;
/// Indexes.
mod index;
/// Expressions that a table keeps.
mod kept;
/// MERGE.
mod merge;
/// Names that are made.
mod naming;
/// ORDER BY, DISTINCT, LIMIT.
mod order;
/// Queries.
mod query;
/// Recursive terms that look at several rows at once.
mod rounds;
/// Scalar expressions.
mod scalar;
/// Names in scope.
mod scope;
/// SEARCH and CYCLE.
mod search_cycle;
/// CREATE and ALTER SEQUENCE.
pub mod sequence;
/// UNION, INTERSECT, EXCEPT, VALUES.
mod setop;
/// Sources as data.
pub mod source;
/// Statements.
mod statement;
/// Connections, sources, sinks.
mod stream;
/// Subqueries, rows, IN, ANY.
mod subquery;
/// Stored texts: names in full, and what becomes of them when objects change.
pub mod text;
/// Writes through views.
pub mod through;
/// Plans as data.
/// CREATE and ALTER of types and domains.
mod type_ddl;
mod types;
/// SQL types by name and OID.
mod types_of;
/// CREATE VIEW and the options of views.
mod view;
/// Walking HIR.
pub(crate) mod walk;
/// Window functions.
mod window;

pub use ddl::{with_article, TableShape};
pub use naming::object_name;
pub use scope::check_column_name;
pub use statement::{
    assigned, bind_default, bind_scalar, coerce_argument, describe, domain_tests, implied_default, part_assigned, plan, plan_in_block, quote_ident, result_of,
    variable_type, Variable,
};
pub use types::*;
pub use view::view_flag;
pub use walk::shift_columns;

use crate::ast::{Pos, Query};
use crate::catalog::{FullName, SqlCatalog};
use ::plan::LocalId;
use repr::error::state;
use repr::{GlobalId, SqlError, SqlType, Value};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeSet, HashMap};

/// Binds one statement.
pub(crate) struct Binder<'a> {
    pub catalog: &'a dyn SqlCatalog,
    params: RefCell<Params>,
    next_local: Cell<u64>,
    /// Relations that were resolved.
    depends_on: RefCell<BTreeSet<GlobalId>>,
    /// Tables by whose primary key columns were grouped that GROUP BY does not name.
    rests_on: RefCell<BTreeSet<GlobalId>>,
    /// What the text names, and where.
    names: RefCell<Vec<text::Named>>,
    /// Of the block that the statement stands in, the innermost last.
    variables: &'a [Variable],
    /// What the column of each subquery in an expression is called, by the subquery's place in the tree.
    subquery_names: RefCell<HashMap<*const Query, String>>,
}

/// Parameter types, given or inferred, and their values when they are known.
#[derive(Default)]
struct Params {
    types: Vec<Option<SqlType>>,
    values: Option<Vec<(Value, SqlType)>>,
    /// Where parameters stand that had no type there and got none.
    untyped: Vec<(usize, Pos)>,
    /// The statement's text is kept: whoever reads it again has no values for them, so that not even those given exist.
    none: bool,
}

impl<'a> Binder<'a> {
    pub fn new(catalog: &'a dyn SqlCatalog) -> Binder<'a> {
        Binder {
            catalog,
            params: RefCell::default(),
            next_local: Cell::new(1),
            depends_on: RefCell::default(),
            rests_on: RefCell::default(),
            names: RefCell::default(),
            variables: &[],
            subquery_names: RefCell::default(),
        }
    }

    fn fresh_local(&self) -> LocalId {
        let n = self.next_local.get();
        self.next_local.set(n + 1);
        LocalId(n)
    }

    /// A parameter that had no type where it stands becomes one of `ty`. Errors: 42P08 if another place has made it of another type since.
    fn set_parameter(&self, n: usize, ty: &SqlType, pos: Pos) -> Result<(), SqlError> {
        let mut p = self.params.borrow_mut();
        match p.types.get_mut(n) {
            Some(Some(known)) if known == ty => Ok(()),
            Some(Some(known)) => {
                let e = SqlError::new(state::AMBIGUOUS_PARAMETER, format!("inconsistent types deduced for parameter ${}", n + 1));
                Err(e.with_detail(format!("{} versus {}", known.sql_name(), ty.sql_name())).at(pos))
            }
            Some(slot) => {
                *slot = Some(ty.clone());
                Ok(())
            }
            None => Err(SqlError::new(state::UNDEFINED_PARAMETER, format!("there is no parameter ${}", n + 1)).at(pos)),
        }
    }
}
