//! HIR to MIR: decorrelation. Every subquery and LATERAL becomes joins and reduces; no shape is refused.
//!
//! A relation is never lowered alone but *against an outer relation*: the rows of the enclosing query that its
//! references can reach. The result carries the outer columns in front:
//!
//! ```text
//!   lower(rel, outer) = { (o, r) : o in outer, r in rel evaluated at o }        at the top, outer = one row without columns
//!
//!   select a, (select sum(v) from u where u.k = t.k) from t
//!
//!     X = t                                the enclosing rows
//!     Y = distinct X.k                     what the subquery refers to: its outer relation
//!     R = reduce (Y cross u, filter u.k = Y.k) by Y.k: sum(v)
//!         union (Y minus the keys of R, NULL)                 a scalar aggregate of no rows is a row
//!     X join R on X.k is Y.k               NULL finds NULL: the class is null-safe
//! ```
//!
//! Operators that work row by row (Map, Filter, a table function, an inner join) need no distinct outer rows: a LATERAL
//! item made of such is lowered straight against the rows themselves (`is_linear`). Everything else needs the outer
//! relation to be a set.
//!
//! Errors: a subquery is evaluated only for rows that reach it. CASE, COALESCE, AND, OR split their rows where a guarded
//! subquery could fail; conjuncts with subqueries are evaluated after those without.
//!
//! Not here: making the result cheap (`optimize`); a distinct or a join that is not needed is removed there.

/// Outer relations, and which columns of the enclosing queries an expression refers to.
mod env;
/// Domains in types.
mod erase;
/// Joins of every kind.
mod join;
/// Relational operators.
mod relation;
/// Scalars, and the subqueries in them.
mod scalar;
/// INTERSECT, EXCEPT.
mod set_ops;
/// Conditions that are asked before a join whose ON has a subquery.
mod sooner;
/// Columns that nothing reads.
mod unread;

use crate::hir::Hir;
pub use env::has_subquery;
use env::Env;
pub(crate) use env::{children, children_mut, constant};
use plan::{Equivalence, Id, LocalId, Mir};
use repr::{ColType, SqlError};
use std::collections::BTreeMap;

/// Lowers a complete query: one without references to enclosing rows and without parameters.
pub fn lower(mut hir: Hir) -> Result<Mir, SqlError> {
    erase::erase(&mut hir);
    unread::drop_unread(&mut hir);
    sooner::filter_sooner(&mut hir);
    let mut l = Lowerer { next_id: env::max_local(&hir) + 1, next_env: 1, ctes: BTreeMap::new() };
    l.relation(hir, &Env::unit(0))
}

struct Lowerer {
    next_id: u64,
    next_env: u64,
    ctes: BTreeMap<LocalId, Cte>,
}

/// A binding in scope. Its relation was lowered against the outer relation whose columns are `prefix`.
#[derive(Clone)]
struct Cte {
    id: LocalId,
    env: u64,
    prefix: Vec<env::AbsRef>,
    /// Of the outer columns and the binding's own.
    types: Vec<ColType>,
}

impl Lowerer {
    fn fresh(&mut self) -> LocalId {
        self.next_id += 1;
        LocalId(self.next_id - 1)
    }

    /// Binds `value` so that it can be read several times: the reading expression, and what wraps the result.
    fn bind(&mut self, value: Mir) -> (Mir, Binding) {
        let id = self.fresh();
        let get = Mir::Get { id: Id::Local(id), types: value.types(), keys: vec![] };
        (get, Binding { id, value })
    }
}

/// A value that waits for its body.
struct Binding {
    id: LocalId,
    value: Mir,
}

impl Binding {
    fn around(self, body: Mir) -> Mir {
        Mir::Let { id: self.id, value: self.value.boxed(), body: body.boxed() }
    }
}

/// Joins on equal columns, given as positions in `a` and `b`; NULL finds NULL. Keeps all columns of both.
fn join_on(a: Mir, b: Mir, on: impl IntoIterator<Item = (usize, usize)>) -> Mir {
    let (ta, tb) = (a.types(), b.types());
    let equivalences = on
        .into_iter()
        .map(|(i, j)| Equivalence { exprs: vec![expr::Scalar::Column(i), expr::Scalar::Column(ta.len() + j)], null_safe: ta[i].nullable && tb[j].nullable })
        .collect();
    Mir::Join { inputs: vec![a, b], equivalences }
}

/// All combinations. The relation of one empty row is left out.
fn cross(a: Mir, b: Mir) -> Mir {
    if a == Mir::unit() {
        return b;
    }
    Mir::Join { inputs: vec![a, b], equivalences: vec![] }
}

/// A function that lowering itself needs.
pub(crate) fn function(oid: u32) -> Result<&'static expr::FuncDef, SqlError> {
    expr::func::by_oid(oid).ok_or_else(|| SqlError::internal(format!("function {oid} is missing")))
}

/// An aggregate that lowering itself needs.
fn aggregate(oid: u32) -> Result<&'static expr::AggDef, SqlError> {
    expr::agg::by_oid(oid).ok_or_else(|| SqlError::internal(format!("aggregate {oid} is missing")))
}
