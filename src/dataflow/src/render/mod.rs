//! LIR to operators: one file a node kind.
//!
//! ```text
//!   Lir ──render──► Collection { oks, errs }    streams of Upd: Arrow columns, times, diffs
//!   Context         what is bound: imports, objects built here, Let and LetRec bindings
//!   Env             what all operators of a dataflow share
//! ```
//!
//! Everything is generic in the time: `u64` at the top, a product inside recursion.

mod accumulable;
mod arranged;
mod collection;
mod constant;
mod extremum;
mod flat_map;
mod group;
mod join;
mod let_rec;
mod mfp;
mod order;
mod reduce;
mod round;
mod threshold;
mod top_k;
mod wanted;
mod window;

pub use arranged::{arrange, distinct_errors, flatten, quarantine, Traced, STEP};
pub use collection::{concat, map, Collection, Updates};
pub use wanted::wanted;

use crate::arrange::{
    self, Agent, Arr, ArrangeCtl, Block, DiffTactic, GroupLogic, Layout, Ordered, OrderedLogic, Outputs, RowBatcher, RowSpine, Time, WireTime,
};
use crate::errors::error_types;
use crate::flow::{Gate, Stopped};
use crate::mfp_eval::MfpEval;
use differential_dataflow::operators::arrange::arrangement::arrange_core;
use differential_dataflow::operators::reduce::reduce_with_tactic;
use expr::{EvalCtx, Scalar};
use group::AggInput;
use plan::lir::ReduceKind;
use plan::mir::{Id, LocalId};
use plan::{Lir, LirKind};
use repr::{ColType, Diff, SqlError, Timestamp};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;
use timely::dataflow::channels::pact::ParallelizationContract;
use timely::dataflow::{Scope, Stream};
use window::Windows;

/// What all operators of a dataflow share on one worker.
pub struct Env {
    pub ctx: Arc<EvalCtx>,
    pub as_of: Timestamp,
    pub until: Option<Timestamp>,
    /// Set when the dataflow is dropped.
    pub stopped: Rc<Stopped>,
    pub worker: usize,
    /// Of a one-off result: closed while its reader is behind.
    pub gate: Option<Arc<Gate>>,
}

/// A time that operators are rendered for.
pub trait RenderTime: Time + WireTime {
    /// Whether times are totally ordered: what uses our own drivers.
    const TOTAL: bool;
    /// The time of the outer timeline.
    fn system(&self) -> Timestamp;
    /// The first time at `t`.
    fn at(t: Timestamp) -> Self;
    fn arrange<'s>(
        stream: Stream<'s, Self, Block<Self, Diff>>,
        pact: impl ParallelizationContract<Self, Block<Self, Diff>>,
        name: &str,
        env: &Rc<Env>,
    ) -> Arr<'s, Self, Diff>;
    fn reduce<'s>(input: Arr<'s, Self, Diff>, name: &str, logic: impl GroupLogic<Diff>, env: &Rc<Env>) -> Arr<'s, Self, Diff>;
    /// As `reduce`, for what needs only the first vals of a group.
    fn reduce_ordered<'s>(input: Arr<'s, Self, Diff>, name: &str, logic: impl OrderedLogic, env: &Rc<Env>) -> Arr<'s, Self, Diff>;
    /// As `reduce`, for window functions.
    fn reduce_windows<'s>(input: Arr<'s, Self, Diff>, name: &str, windows: Windows, env: &Rc<Env>) -> Arr<'s, Self, Diff>;
    /// Renders aggregates whose states add up.
    fn accumulate<'s>(
        rows: Updates<'s, Self>,
        layout: Rc<Layout>,
        arity: usize,
        inputs: Vec<AggInput>,
        out_types: &[ColType],
        env: &Rc<Env>,
    ) -> (Updates<'s, Self>, Updates<'s, Self>);
    /// Renders the bindings of a recursion and binds them.
    fn render_rec(cx: &mut Context<'_, Self>, bindings: &[(LocalId, Lir)], limit: Option<u64>, return_at_limit: bool);
}

impl RenderTime for Timestamp {
    const TOTAL: bool = true;
    fn system(&self) -> Timestamp {
        *self
    }
    fn at(t: Timestamp) -> Self {
        t
    }
    fn arrange<'s>(
        stream: Stream<'s, Self, Block<Self, Diff>>,
        pact: impl ParallelizationContract<Self, Block<Self, Diff>>,
        name: &str,
        env: &Rc<Env>,
    ) -> Arr<'s, Self, Diff> {
        arrange::arrange(stream, pact, name, None, ArrangeCtl::new(env.stopped.clone()))
    }
    fn reduce<'s>(input: Arr<'s, Self, Diff>, name: &str, logic: impl GroupLogic<Diff>, env: &Rc<Env>) -> Arr<'s, Self, Diff> {
        arrange::reduce(input, name, arrange::tactic(logic), None, ArrangeCtl::new(env.stopped.clone()))
    }
    fn reduce_ordered<'s>(input: Arr<'s, Self, Diff>, name: &str, logic: impl OrderedLogic, env: &Rc<Env>) -> Arr<'s, Self, Diff> {
        arrange::reduce(input, name, DiffTactic(Ordered(logic)), None, ArrangeCtl::new(env.stopped.clone()))
    }
    fn reduce_windows<'s>(input: Arr<'s, Self, Diff>, name: &str, windows: Windows, env: &Rc<Env>) -> Arr<'s, Self, Diff> {
        arrange::reduce(input, name, DiffTactic(windows), None, ArrangeCtl::new(env.stopped.clone()))
    }
    fn accumulate<'s>(
        rows: Updates<'s, Self>,
        layout: Rc<Layout>,
        arity: usize,
        inputs: Vec<AggInput>,
        out_types: &[ColType],
        env: &Rc<Env>,
    ) -> (Updates<'s, Self>, Updates<'s, Self>) {
        accumulable::render(rows, layout, arity, inputs, out_types, env)
    }
    fn render_rec(cx: &mut Context<'_, Self>, bindings: &[(LocalId, Lir)], limit: Option<u64>, return_at_limit: bool) {
        let_rec::render(cx, bindings, limit, return_at_limit)
    }
}

impl RenderTime for round::Round {
    const TOTAL: bool = false;
    fn system(&self) -> Timestamp {
        self.outer
    }
    fn at(t: Timestamp) -> Self {
        timely::order::Product::new(t, round::Rounds::default())
    }
    fn arrange<'s>(
        stream: Stream<'s, Self, Block<Self, Diff>>,
        pact: impl ParallelizationContract<Self, Block<Self, Diff>>,
        name: &str,
        _env: &Rc<Env>,
    ) -> Arr<'s, Self, Diff> {
        arrange_core::<_, _, RowBatcher<Self, Diff>, RowSpine<Self, Diff>>(stream, pact, name, RowBatcher::new)
    }
    fn reduce<'s>(input: Arr<'s, Self, Diff>, name: &str, logic: impl GroupLogic<Diff>, _env: &Rc<Env>) -> Arr<'s, Self, Diff> {
        reduce_with_tactic::<Agent<Self, Diff>, RowSpine<Self, Diff>, _>(input, name, arrange::tactic::<Self, Diff>(logic))
    }
    fn reduce_ordered<'s>(input: Arr<'s, Self, Diff>, name: &str, mut logic: impl OrderedLogic, env: &Rc<Env>) -> Arr<'s, Self, Diff> {
        Self::reduce(input, name, move |key: &[u8], vals: &[(&[u8], Diff)], out: &mut Outputs| logic.run(key, &mut vals.iter().copied(), out), env)
    }
    fn reduce_windows<'s>(input: Arr<'s, Self, Diff>, name: &str, windows: Windows, env: &Rc<Env>) -> Arr<'s, Self, Diff> {
        Self::reduce(input, name, move |key: &[u8], vals: &[(&[u8], Diff)], out: &mut Outputs| windows.whole(key, vals, out), env)
    }
    fn accumulate<'s>(
        rows: Updates<'s, Self>,
        layout: Rc<Layout>,
        arity: usize,
        inputs: Vec<AggInput>,
        out_types: &[ColType],
        env: &Rc<Env>,
    ) -> (Updates<'s, Self>, Updates<'s, Self>) {
        reduce::general(rows, layout, arity, inputs, out_types, env)
    }
    fn render_rec(cx: &mut Context<'_, Self>, bindings: &[(LocalId, Lir)], limit: Option<u64>, return_at_limit: bool) {
        let_rec::render_inner(cx, bindings, limit, return_at_limit)
    }
}

/// An arrangement of something bound.
struct Indexed<'s, T: RenderTime> {
    key: Vec<Scalar>,
    /// For each key column, whether rows with a NULL there are in it.
    keep_null: Vec<bool>,
    traced: Traced<'s, T>,
    layout: Rc<Layout>,
    errs: Updates<'s, T>,
}

struct Bound<'s, T: RenderTime> {
    types: Vec<ColType>,
    collection: Option<Collection<'s, T>>,
    indexes: Vec<Indexed<'s, T>>,
}

/// A scope with what is known in it.
pub struct Context<'s, T: RenderTime> {
    pub scope: Scope<'s, T>,
    pub env: Rc<Env>,
    /// Recursions around within the scope.
    depth: usize,
    bound: BTreeMap<Id, Bound<'s, T>>,
}

impl<'s, T: RenderTime> Context<'s, T> {
    pub fn new(scope: Scope<'s, T>, env: Rc<Env>) -> Self {
        Context { scope, env, depth: 0, bound: BTreeMap::new() }
    }

    /// Makes `collection` known by `id`, replacing what was.
    pub fn bind(&mut self, id: Id, types: Vec<ColType>, collection: Collection<'s, T>) {
        self.bound.insert(id, Bound { types, collection: Some(collection), indexes: vec![] });
    }

    /// Makes an arrangement of `id` known.
    pub fn bind_index(&mut self, id: Id, traced: Traced<'s, T>, layout: Rc<Layout>, errs: Updates<'s, T>) {
        let bound = self.bound.entry(id).or_insert_with(|| Bound { types: layout.types.clone(), collection: None, indexes: vec![] });
        bound.indexes.push(Indexed { key: layout.key.clone(), keep_null: vec![true; layout.key.len()], traced, layout, errs });
    }

    fn remember(&mut self, id: Id, key: &[Scalar], keep_null: &[bool], traced: Traced<'s, T>, layout: Rc<Layout>, errs: Updates<'s, T>) {
        if let Some(bound) = self.bound.get_mut(&id) {
            bound.indexes.push(Indexed { key: key.to_vec(), keep_null: keep_null.to_vec(), traced, layout, errs });
        }
    }

    /// An arrangement of `id` by `key` that holds at least the rows that `keep_null` asks for. That it may hold more is
    /// harmless: the rows it is joined with lack those keys.
    fn arrangement(&self, id: Id, key: &[Scalar], keep_null: &[bool]) -> Option<(Traced<'s, T>, Rc<Layout>, Updates<'s, T>)> {
        let indexes = &self.bound.get(&id)?.indexes;
        let i = indexes.iter().find(|i| i.key == key && i.keep_null.iter().zip(keep_null).all(|(has, wants)| *has || !wants))?;
        Some((i.traced.clone(), i.layout.clone(), i.errs.clone()))
    }

    /// The collection bound to `id`; read from an arrangement if nothing else is there.
    pub fn get(&mut self, id: Id) -> Result<Collection<'s, T>, SqlError> {
        let env = self.env.clone();
        let bound = self.bound.get_mut(&id).ok_or_else(|| SqlError::internal(format!("plan reads {id:?}, which is not bound")))?;
        if let Some(c) = &bound.collection {
            return Ok(c.clone());
        }
        let i = bound.indexes.first().ok_or_else(|| SqlError::internal(format!("{id:?} has no form")))?;
        let c = Collection::new(flatten(&i.traced, i.layout.clone(), &env), i.errs.clone());
        bound.collection = Some(c.clone());
        Ok(c)
    }

    /// The column types of what is bound to `id`.
    pub fn types(&self, id: Id) -> Option<Vec<ColType>> {
        self.bound.get(&id).map(|b| b.types.clone())
    }

    /// A stream that never carries anything.
    pub fn nothing(&self) -> Updates<'s, T> {
        arranged::empty(self.scope)
    }

    /// Those of `ids` that are bound, as collections.
    fn visible(&mut self, ids: BTreeSet<Id>) -> Vec<(Id, Vec<ColType>, Collection<'s, T>)> {
        let known: Vec<Id> = ids.into_iter().filter(|id| self.bound.contains_key(id)).collect();
        known.into_iter().filter_map(|id| Some((id, self.bound[&id].types.clone(), self.get(id).ok()?))).collect()
    }

    /// A collection without rows whose error is `e`.
    pub fn failed(&self, e: SqlError) -> Collection<'s, T> {
        constant::render(self.scope, &Err(e), &[], &self.env)
    }

    pub fn render(&mut self, lir: &Lir) -> Collection<'s, T> {
        match &lir.kind {
            LirKind::Constant { rows } => constant::render(self.scope, rows, &lir.types, &self.env),
            LirKind::Get { id } => self.get(*id).unwrap_or_else(|e| self.failed(e)),
            LirKind::Let { id, value, body } => {
                let made = self.render(value);
                self.bind(Id::Local(*id), value.types.clone(), made);
                self.render(body)
            }
            LirKind::LetRec { bindings, limit, return_at_limit, body } => match let_rec::unsupported(bindings) {
                Some(e) => self.failed(e),
                None => {
                    T::render_rec(self, bindings, *limit, *return_at_limit);
                    self.render(body)
                }
            },
            LirKind::Mfp { input, mfp } => {
                let eval = MfpEval::new(mfp.clone(), &input.types, self.env.ctx.clone());
                let input = self.render(input);
                mfp::render(input, eval, &self.env)
            }
            LirKind::FlatMap { input, func } => {
                let made = self.render(input);
                flat_map::render(made, input.types.clone(), func.clone(), &self.env)
            }
            LirKind::Join { inputs, start, stages } => join::render(self, inputs, *start, stages),
            LirKind::Reduce { input, group_key, kind } => {
                let made = self.render(input);
                reduce::render(self, made, &input.types, group_key, kind, &lir.types)
            }
            LirKind::TopK { input, group_key, order_by, limit, offset, with_ties } => {
                let made = self.render(input);
                let spec = top_k::TopK {
                    group_key: group_key.clone(),
                    order_by: order_by.clone(),
                    limit: limit.clone(),
                    offset: *offset,
                    with_ties: *with_ties,
                    name: "a LIMIT",
                };
                top_k::render(self, made, &input.types, spec)
            }
            LirKind::Window { input, partition, order_by, exprs } => {
                let made = self.render(input);
                window::render(self, made, &input.types, partition, order_by, exprs)
            }
            LirKind::Negate { input } => {
                let made = self.render(input);
                Collection::new(map(made.oks, "Negate", differential_dataflow::collection::containers::Negate::negate), made.errs)
            }
            LirKind::Threshold { input } => {
                let made = self.render(input);
                threshold::render(self, made, &input.types)
            }
            LirKind::Union { inputs } => {
                let made: Vec<_> = inputs.iter().map(|i| self.render(i)).collect();
                let (oks, errs): (Vec<_>, Vec<_>) = made.into_iter().map(|c| (c.oks, c.errs)).unzip();
                Collection::new(concat(oks), concat(errs))
            }
        }
    }
}

/// The direct inputs of a node.
pub fn children(l: &Lir) -> Vec<&Lir> {
    match &l.kind {
        LirKind::Constant { .. } | LirKind::Get { .. } => vec![],
        LirKind::Let { value, body, .. } => vec![value, body],
        LirKind::LetRec { bindings, body, .. } => bindings.iter().map(|b| &b.1).chain([&**body]).collect(),
        LirKind::Mfp { input, .. }
        | LirKind::FlatMap { input, .. }
        | LirKind::Reduce { input, .. }
        | LirKind::TopK { input, .. }
        | LirKind::Window { input, .. }
        | LirKind::Negate { input }
        | LirKind::Threshold { input } => vec![input],
        LirKind::Join { inputs, .. } | LirKind::Union { inputs } => inputs.iter().collect(),
    }
}

/// Whether the node itself has rows that come or go with time alone.
/// What of a plan cannot be rendered, if anything. A maintained object is refused for it before it is made.
pub fn unsupported(l: &Lir) -> Option<SqlError> {
    match &l.kind {
        LirKind::LetRec { bindings, .. } => let_rec::unsupported(bindings),
        _ => children(l).into_iter().find_map(unsupported),
    }
}

pub fn is_temporal(kind: &LirKind) -> bool {
    match kind {
        LirKind::Mfp { mfp, .. } => mfp.is_temporal(),
        LirKind::Join { stages, .. } => stages.iter().any(|s| s.mfp.is_temporal()),
        _ => false,
    }
}

/// Whether all diffs of the node's output at the least time are positive as they come, without being summed up. `sums`: of the ids
/// that it reads, those of which that is known.
pub fn comes_summed(l: &Lir, sums: &mut BTreeSet<Id>) -> bool {
    match &l.kind {
        LirKind::Constant { rows } => rows.iter().flatten().all(|r| r.1 > 0),
        LirKind::Get { id } => sums.contains(id),
        LirKind::Let { id, value, body } => {
            if comes_summed(value, sums) {
                sums.insert(Id::Local(*id));
            }
            comes_summed(body, sums)
        }
        LirKind::Mfp { input, .. } | LirKind::FlatMap { input, .. } => comes_summed(input, sums),
        LirKind::Join { inputs, .. } | LirKind::Union { inputs } => inputs.iter().all(|i| comes_summed(i, sums)),
        // What a reduce puts out at a time is the difference to earlier times, of which there are none.
        LirKind::Reduce { .. } | LirKind::TopK { .. } | LirKind::Window { .. } | LirKind::Threshold { .. } => true,
        LirKind::LetRec { bindings, body, .. } => {
            let rounds: BTreeSet<Id> = bindings.iter().map(|(id, _)| Id::Local(*id)).collect();
            sums.extend(&rounds);
            bindings.iter().all(|(_, value)| only_grows(value, sums, &rounds)) && comes_summed(body, sums)
        }
        LirKind::Negate { .. } => false,
    }
}

/// Whether a recursion's rule only ever adds rows from round to round, if what it reads does. So an endless one gives its first rows.
/// `rounds`: what changes from round to round.
fn only_grows(l: &Lir, sums: &BTreeSet<Id>, rounds: &BTreeSet<Id>) -> bool {
    if reads(l).is_disjoint(rounds) {
        return comes_summed(l, &mut sums.clone());
    }
    match &l.kind {
        LirKind::Let { id, value, body } => {
            let (mut sums, mut rounds) = (sums.clone(), rounds.clone());
            let grows = only_grows(value, &sums, &rounds);
            sums.insert(Id::Local(*id));
            rounds.insert(Id::Local(*id));
            grows && only_grows(body, &sums, &rounds)
        }
        LirKind::Reduce { input, kind: ReduceKind::Distinct, .. } | LirKind::Threshold { input } => only_grows(input, sums, rounds),
        LirKind::Mfp { input, .. } | LirKind::FlatMap { input, .. } => only_grows(input, sums, rounds),
        LirKind::Join { inputs, .. } | LirKind::Union { inputs } => inputs.iter().all(|i| only_grows(i, sums, rounds)),
        LirKind::Get { id } => sums.contains(id),
        _ => false,
    }
}

/// All ids that a plan reads.
pub fn reads(l: &Lir) -> BTreeSet<Id> {
    let mut out: BTreeSet<Id> = children(l).into_iter().flat_map(reads).collect();
    if let LirKind::Get { id } = &l.kind {
        out.insert(*id);
    }
    out
}

/// The layout and key flags of whole error rows.
pub fn error_layout() -> Rc<Layout> {
    Rc::new(Layout::whole(error_types()))
}
