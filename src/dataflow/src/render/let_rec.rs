//! WITH RECURSIVE: bindings iterated in a nested scope until nothing changes.
//!
//! ```text
//!   outer ──enter──► values of the bindings, in order ──consolidate──► leave ──► body
//!                        ▲ later bindings see this round's values │
//!                        └──────────── one round later ◄──────────┘
//! ```
//!
//! At most `limit` rounds: what would go round once more is an error row, or with `return_at_limit` is dropped.
//! A recursion inside a recursion, that reads what the outer one makes, goes its rounds in each round of the outer (`round`).
//! Not here: more than [`DEPTH`] of them one in another (0A000), temporal filters inside (0A000).

use super::arranged::consolidate;
use super::collection::{concat, map_fallible, Collection, Updates};
use super::round::{self, Round, Rounds, Step, DEPTH};
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

/// What of a recursion is not supported, if anything.
pub fn unsupported(bindings: &[(LocalId, Lir)]) -> Option<SqlError> {
    fn inside(bindings: &[(LocalId, Lir)], depth: usize) -> Option<SqlError> {
        bindings.iter().find_map(|(_, l)| walk(l, depth))
    }
    fn walk(l: &Lir, depth: usize) -> Option<SqlError> {
        match &l.kind {
            LirKind::LetRec { .. } if depth == DEPTH => Some(SqlError::unsupported(
                format!("WITH RECURSIVE that reads {DEPTH} others around it"),
                "make the innermost query a materialized view of its own",
            )),
            LirKind::LetRec { bindings, body, .. } => inside(bindings, depth + 1).or_else(|| walk(body, depth)),
            k if super::is_temporal(k) => {
                Some(SqlError::unsupported("a temporal filter inside WITH RECURSIVE", "filter in a view that the recursive query reads"))
            }
            _ => super::children(l).into_iter().find_map(|c| walk(c, depth)),
        }
    }
    inside(bindings, 1)
}

pub fn enter<'s>(stream: Updates<'_, u64>, scope: Scope<'s, Round>) -> Updates<'s, Round> {
    super::collection::map(stream.enter(scope), "Enter", |upd: Upd<u64>| EnterC::<u64, Round>::enter(upd))
}

fn leave<'s>(stream: Updates<'_, Round>, scope: Scope<'s, u64>) -> Updates<'s, u64> {
    super::collection::map(stream.leave(scope), "Leave", |upd: Upd<Round>| LeaveC::<Round, u64>::leave(upd))
}

/// Renders the bindings in a scope of their own; they are then known to `cx` by their ids.
pub fn render<'s>(cx: &mut Context<'s, u64>, bindings: &[(LocalId, Lir)], limit: Option<u64>, return_at_limit: bool) {
    let outer = cx.scope;
    let env = cx.env.clone();
    let visible = cx.visible(bindings.iter().flat_map(|(_, l)| super::reads(l)).collect());
    let results: Vec<Collection<'s, u64>> = outer.iterative::<Rounds, _, _>(|scope| {
        let mut inner = Context::new(scope, env);
        for (id, types, c) in visible {
            inner.bind(id, types, Collection::new(enter(c.oks, scope), enter(c.errs, scope)));
        }
        let results = iterate(&mut inner, bindings, limit, return_at_limit);
        results.into_iter().map(|r| Collection::new(leave(r.oks, outer), leave(r.errs, outer))).collect()
    });
    for ((id, value), result) in bindings.iter().zip(results) {
        cx.bind(Id::Local(*id), value.types.clone(), result);
    }
}

/// The same for bindings that stand in others.
pub fn render_inner(cx: &mut Context<'_, Round>, bindings: &[(LocalId, Lir)], limit: Option<u64>, return_at_limit: bool) {
    let results = iterate(cx, bindings, limit, return_at_limit);
    let level = cx.depth;
    for ((id, value), r) in bindings.iter().zip(results) {
        cx.bind(Id::Local(*id), value.types.clone(), Collection::new(round::leave(r.oks, level), round::leave(r.errs, level)));
    }
}

/// Lets the bindings go round, one recursion deeper than `cx` is: their values, with the rounds.
fn iterate<'s>(cx: &mut Context<'s, Round>, bindings: &[(LocalId, Lir)], limit: Option<u64>, return_at_limit: bool) -> Vec<Collection<'s, Round>> {
    let (level, scope, env) = (cx.depth, cx.scope, cx.env.clone());
    cx.depth += 1;
    let mut handles = Vec::new();
    for (id, value) in bindings {
        let (ok_handle, oks) = scope.feedback(Product::new(0, Step::next(level)));
        let (err_handle, errs) = scope.feedback(Product::new(0, Step::next(level)));
        cx.bind(Id::Local(*id), value.types.clone(), Collection::new(oks, errs));
        handles.push((ok_handle, err_handle));
    }
    let mut results = Vec::new();
    for ((id, value), (ok_handle, err_handle)) in bindings.iter().zip(handles) {
        let made = cx.render(value);
        let oks = consolidate(made.oks, value.types.clone(), &env);
        // Errors go round as a set, or a loop that fails would never end.
        let errs = distinct(made.errs, &env);
        let (back, over) = next_round(oks.clone(), level, limit, return_at_limit, &env);
        back.connect_loop(ok_handle);
        let (errs_back, _) = next_round(errs.clone(), level, limit, true, &env);
        errs_back.connect_loop(err_handle);
        let result = Collection::new(oks, concat(vec![errs, over]));
        cx.bind(Id::Local(*id), value.types.clone(), result.clone());
        results.push(result);
    }
    cx.depth = level;
    results
}

fn distinct<'s>(errs: Updates<'s, Round>, env: &Rc<Env>) -> Updates<'s, Round> {
    let reduced = super::arranged::distinct_errors(errs, env);
    let layout = Rc::new(crate::arrange::Layout::whole(error_types()));
    super::arranged::flatten(&super::arranged::Traced::Local(reduced), layout, env)
}

/// What goes round once more, and the error of what may not. Nothing goes once the dataflow is stopped, or a loop without end would never leave.
/// Without a limit 2^32 rounds are one: more than anybody waits for.
fn next_round<'s>(stream: Updates<'s, Round>, level: usize, limit: Option<u64>, silent: bool, env: &Rc<Env>) -> (Updates<'s, Round>, Updates<'s, Round>) {
    let stopped = env.stopped.clone();
    let limit = limit.unwrap_or(1 << 32);
    let last = u32::try_from(limit.saturating_sub(1)).unwrap_or(u32::MAX);
    let step = Product::new(0, Step::next(level));
    map_fallible(stream, "NextRound", move |upd: Upd<Round>, out| {
        if stopped.get() {
            return;
        }
        let beyond = |i: &u32| upd.times.get(*i as usize).inner.0[level] >= last;
        let over: Vec<u32> = (0..upd.len() as u32).filter(beyond).collect();
        if over.is_empty() {
            return out.oks.push(upd.results_in(&step));
        }
        if !silent {
            let e = SqlError::new(repr::error::state::PROGRAM_LIMIT_EXCEEDED, format!("recursive query exceeded the recursion limit {limit}"))
                .with_hint("use RETURN AT RECURSION LIMIT to get the state reached, or raise the limit");
            out.errs.extend(over.iter().map(|i| (e.clone(), *upd.times.get(*i as usize), *upd.diffs.get(*i as usize))));
        }
        let kept: Vec<u32> = (0..upd.len() as u32).filter(|i| !beyond(i)).collect();
        if !kept.is_empty() {
            out.oks.push(upd.take(kept).results_in(&step));
        }
    })
}
