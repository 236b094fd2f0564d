//! System relations in a query: constants, as of the catalog that the statement is planned on.
//!
//! A tool that looks up one type or one function asks so for one row of thousands. So what the query asks of a system relation is moved to it
//! first, and only the rows and columns that are asked for become part of the plan.

use super::query::Row;
use super::Session;
use crate::builtin::{rows, BuiltinCtx};
use crate::catalog::Catalog;
use crate::coordinator::request::Introspection;
use expr::{EvalCtx, Scalar};
use optimize::OptimizeCtx;
use plan::{Id, Mir};
use repr::{Batch, ColType, GlobalId, SqlError, Value};
use std::collections::BTreeSet;
use std::sync::Arc;

impl Session {
    /// System relations become constants.
    pub(super) async fn fill_in(&mut self, catalog: &Arc<Catalog>, mut mir: Mir, eval: &EvalCtx) -> Result<Mir, SqlError> {
        let (builtin, others): (Vec<GlobalId>, Vec<GlobalId>) = mir.global_ids().into_iter().partition(|id| catalog.is_builtin(*id));
        if builtin.is_empty() {
            return Ok(mir);
        }
        let introspection = if builtin.iter().any(|id| crate::builtin::needs_introspection(*id)) { self.introspect().await? } else { Introspection::default() };
        let prepared: Vec<_> = self.prepared.iter().filter(|(n, _)| !n.is_empty()).map(|(n, p)| (n.clone(), p.clone())).collect();
        let cursors: Vec<_> = self.cursors.iter().filter_map(|(n, c)| c.seen(n)).collect();
        let locks = self.shared.locks.held();
        let names = crate::builtin::Names::new(catalog.clone(), self.settings.search_path(), Vec::new());
        let ctx = BuiltinCtx {
            catalog,
            introspection: &introspection,
            settings: &self.settings,
            user: &self.user,
            pid: self.pid,
            prepared: &prepared,
            cursors: &cursors,
            sequences: &self.shared.sequences,
            names: &names,
            backends: &self.shared.backends,
            locks: &locks,
        };
        // What the transaction has changed is laid over its tables later, and then the keys that the optimizer goes by may not hold.
        let plain = others.is_empty() || self.txn.writes().is_empty() && self.made_here().is_empty() && self.young().is_empty();
        tokio::task::block_in_place(|| {
            if plain && self.settings.optimizer_enabled() {
                let names = |id: GlobalId| catalog.item(id).map_or_else(|| id.to_string(), |i| i.name.clone());
                mir = optimize::optimize(mir, &OptimizeCtx { one_off: true, ctx: eval, disable: false, names: &names, grows: &|_| false })?;
            }
            replace(&mut mir, &ctx, eval);
            Ok(mir)
        })
    }
}

/// Puts rows in the place of system relations, filtered and projected where a filter or a projection stands right on one.
fn replace(mir: &mut Mir, ctx: &BuiltinCtx<'_>, eval: &EvalCtx) {
    let made = match mir {
        Mir::Project { input, outputs } => asked(input, ctx, eval).map(|(rows, types)| {
            let project = |r: Row| outputs.iter().map(|o| r[*o].clone()).collect();
            Mir::constant(rows.into_iter().map(project).collect(), outputs.iter().map(|o| types[*o].clone()).collect())
        }),
        _ => asked(mir, ctx, eval).map(|(rows, types)| Mir::constant(rows, types)),
    };
    match made {
        Some(made) => *mir = made,
        None => mir.children_mut().into_iter().for_each(|c| replace(c, ctx, eval)),
    }
}

/// The rows of a system relation, or of a filter on one that fails on none of them.
fn asked(mir: &Mir, ctx: &BuiltinCtx<'_>, eval: &EvalCtx) -> Option<(Vec<Row>, Vec<ColType>)> {
    let builtin = |m: &Mir| match m {
        Mir::Get { id: Id::Global(id), types, .. } if ctx.catalog.is_builtin(*id) => Some((*id, types.clone())),
        _ => None,
    };
    if let Mir::Filter { input, predicates } = mir {
        let (id, types) = builtin(input)?;
        let all = rows(id, ctx);
        let kept = filter(&all, predicates, &types, eval)?;
        return Some((kept.into_iter().map(|i| all[i].clone()).collect(), types));
    }
    let (id, types) = builtin(mir)?;
    Some((rows(id, ctx).to_vec(), types))
}

/// Which rows all predicates are true on; none if one fails.
fn filter(rows: &[Row], predicates: &[Scalar], types: &[ColType], eval: &EvalCtx) -> Option<Vec<usize>> {
    let read: BTreeSet<usize> = predicates.iter().flat_map(Scalar::support).collect();
    let read: Vec<usize> = read.into_iter().collect();
    let narrow: Vec<ColType> = read.iter().map(|c| types[*c].clone()).collect();
    let cells: Vec<Row> = rows.iter().map(|r| read.iter().map(|c| r[*c].clone()).collect()).collect();
    let batch = Batch::try_from_rows(&narrow, cells.iter().map(Vec::as_slice)).ok()?;
    let mut all = Scalar::And(predicates.to_vec());
    all.permute(&|c| read.binary_search(&c).unwrap_or(0));
    let boolean = [all.typ(&narrow)];
    let made = expr::eval(&all, &batch, &narrow, eval);
    if !made.errors.is_empty() {
        return None;
    }
    let verdicts = Batch::new(rows.len(), vec![made.column]);
    Some((0..rows.len()).filter(|i| verdicts.row(&boolean, *i) == [Value::Bool(true)]).collect())
}
