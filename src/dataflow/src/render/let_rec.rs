//! WITH RECURSIVE: bindings iterated in a nested scope until nothing changes.
//!
//! ```text
//!   outer ──enter──► values of the bindings, in order ──consolidate──► leave ──► body
//!                        ▲ later bindings see this round's values │
//!                        └──────────── one round later ◄──────────┘
//! ```
//!
//! At most `limit` rounds: what would go round once more is an error row, or with `return_at_limit` is dropped.
//! Not here: a recursion inside a recursion (0A000), temporal filters inside (0A000).

use super::arranged::{consolidate, empty};
use super::collection::{concat, map_fallible, Collection, Updates};
use super::{Context, Env};
use crate::arrange::Upd;
use crate::errors::error_types;
use differential_dataflow::collection::containers::{Enter as EnterC, Leave as LeaveC, ResultsIn};
use plan::mir::{Id, LocalId};
use plan::{Lir, LirKind};
use repr::SqlError;
use std::rc::Rc;
use timely::dataflow::operators::{ConnectLoop, Enter, Feedback, Leave};
use timely::dataflow::Scope;
use timely::order::Product;

/// The time of an iteration.
pub type Round = Product<u64, u64>;

/// What of a recursion is not supported, if anything.
pub fn unsupported(bindings: &[(LocalId, Lir)]) -> Option<SqlError> {
    fn walk(l: &Lir) -> Option<SqlError> {
        match &l.kind {
            LirKind::LetRec { .. } => {
                Some(SqlError::unsupported("WITH RECURSIVE inside WITH RECURSIVE", "make the inner query a materialized view of its own"))
            }
            k if super::is_temporal(k) => {
                Some(SqlError::unsupported("a temporal filter inside WITH RECURSIVE", "filter in a view that the recursive query reads"))
            }
            _ => super::children(l).into_iter().find_map(walk),
        }
    }
    bindings.iter().find_map(|(_, l)| walk(l))
}

pub fn enter<'s>(stream: Updates<'_, u64>, scope: Scope<'s, Round>) -> Updates<'s, Round> {
    super::collection::map(stream.enter(scope), "Enter", |upd: Upd<u64>| EnterC::<u64, Round>::enter(upd))
}

fn leave<'s>(stream: Updates<'_, Round>, scope: Scope<'s, u64>) -> Updates<'s, u64> {
    super::collection::map(stream.leave(scope), "Leave", |upd: Upd<Round>| LeaveC::<Round, u64>::leave(upd))
}

/// Renders the bindings; they are then known to `cx` by their ids.
pub fn render<'s>(cx: &mut Context<'s, u64>, bindings: &[(LocalId, Lir)], limit: Option<u64>, return_at_limit: bool) {
    let outer = cx.scope;
    let env = cx.env.clone();
    let visible = cx.visible(bindings.iter().flat_map(|(_, l)| super::reads(l)).collect());
    let results: Vec<Collection<'s, u64>> = outer.iterative::<u64, _, _>(|scope| {
        let mut inner = Context::new(scope, env.clone());
        for (id, types, c) in visible {
            inner.bind(id, types, Collection::new(enter(c.oks, scope), enter(c.errs, scope)));
        }
        let step = Product::new(0, 1);
        let mut handles = Vec::new();
        for (id, value) in bindings {
            let (ok_handle, oks) = scope.feedback(step);
            let (err_handle, errs) = scope.feedback(step);
            inner.bind(Id::Local(*id), value.types.clone(), Collection::new(oks, errs));
            handles.push((ok_handle, err_handle));
        }
        let mut results = Vec::new();
        for ((id, value), (ok_handle, err_handle)) in bindings.iter().zip(handles) {
            let made = inner.render(value);
            let oks = consolidate(made.oks, value.types.clone(), &env);
            // Errors go round as a set, or a loop that fails would never end.
            let errs = distinct(made.errs, &env);
            let (back, over) = limited(oks.clone(), limit, return_at_limit, &env);
            next_round(back, &env).connect_loop(ok_handle);
            let (errs_back, _) = limited(errs.clone(), limit, true, &env);
            next_round(errs_back, &env).connect_loop(err_handle);
            let result = Collection::new(oks, concat(vec![errs, over]));
            inner.bind(Id::Local(*id), value.types.clone(), result.clone());
            results.push(Collection::new(leave(result.oks, outer), leave(result.errs, outer)));
        }
        results
    });
    for ((id, value), result) in bindings.iter().zip(results) {
        cx.bind(Id::Local(*id), value.types.clone(), result);
    }
}

fn distinct<'s>(errs: Updates<'s, Round>, env: &Rc<Env>) -> Updates<'s, Round> {
    let reduced = super::arranged::distinct_errors(errs, env);
    let layout = Rc::new(crate::arrange::Layout::whole(error_types()));
    super::arranged::flatten(&super::arranged::Traced::Local(reduced), layout, env)
}

/// One round later; nothing once the dataflow is stopped, or a loop without end would never leave.
fn next_round<'s>(stream: Updates<'s, Round>, env: &Rc<Env>) -> Updates<'s, Round> {
    let stopped = env.stopped.clone();
    super::collection::map(stream, "NextRound", move |upd: Upd<Round>| match stopped.get() {
        true => Upd::default(),
        false => upd.results_in(&Product::new(0, 1)),
    })
}

/// What may go round again, and the error of what may not.
fn limited<'s>(stream: Updates<'s, Round>, limit: Option<u64>, silent: bool, _env: &Rc<Env>) -> (Updates<'s, Round>, Updates<'s, Round>) {
    let Some(limit) = limit else {
        let none = empty(stream.scope());
        return (stream, none);
    };
    map_fallible(stream, "Limit", move |upd: Upd<Round>, out| {
        let last = limit.saturating_sub(1);
        let (kept, over): (Vec<u32>, Vec<u32>) = (0..upd.len() as u32).partition(|i| upd.times.get(*i as usize).inner < last);
        if !silent {
            let e = SqlError::new(repr::error::state::PROGRAM_LIMIT_EXCEEDED, format!("recursive query exceeded the recursion limit {limit}"))
                .with_hint("use RETURN AT RECURSION LIMIT to get the state reached, or raise the limit");
            out.errs.extend(over.iter().map(|i| (e.clone(), *upd.times.get(*i as usize), *upd.diffs.get(*i as usize))));
        }
        if !kept.is_empty() {
            out.oks.push(upd.take(kept));
        }
    })
}
