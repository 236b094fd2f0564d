//! One worker thread: commands in, dataflow steps, answers to the hub.
//!
//! Every worker sees the same commands in the same order and holds its slice of everything. A worker parks when nothing is
//! to be done; a command wakes it.
//!
//! ```text
//!   commands ──► State { dataflows, indexes, waiting peeks } ──► timely step ──► frontiers, finished dataflows, ready peeks
//! ```
//!
//! Dropping (DECISIONS 3): a dropped dataflow's exports are hidden at once; it is stopped when no dataflow that lives
//! imports from it: its sources close, its operators let go, and timely removes it once it has drained on all workers.

mod advance;
mod export;
mod hub;
mod input;
mod peek;

pub use hub::Hub;
pub use peek::Readers;

use crate::arrange::{import, Agent, Layout, RowB};
use crate::flow::{Gate, Stopped};
use crate::protocol::{Command, PeekRequest, SnapshotReader};
use crate::render::{self, Collection, Context, Env, Traced};
use crossbeam_channel::{Receiver, TryRecvError};
use differential_dataflow::trace::TraceReader;
use hub::{Cancel, Size};
use input::ShardInput;
use peek::Job;
use plan::mir::Id;
use plan::{DataflowDesc, Export, Import, Lir};
use repr::error::state;
use repr::memory::{self, Holder};
use repr::{ColType, Deltas, Diff, GlobalId, SqlError, Timestamp};
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::atomic::Ordering;
use std::sync::Arc;
use std::time::{Duration, Instant};
use timely::progress::frontier::{Antichain, AntichainRef};
use timely::worker::Worker;

/// How often sizes of arrangements are counted.
const SIZE_EVERY: Duration = Duration::from_secs(1);

struct Dataflow {
    /// Inputs by the shard that they read.
    inputs: Vec<(GlobalId, ShardInput)>,
    /// Woken so that they see `stopped`.
    imports: Vec<GlobalId>,
    wake: Vec<timely::scheduling::Activator>,
    exports: Vec<GlobalId>,
    subscribes: Vec<GlobalId>,
    /// One-off results, and whether this worker's part of each is over.
    peeks: Vec<(GlobalId, Rc<Cell<bool>>)>,
    stopped: Rc<Stopped>,
    dropped: bool,
    /// Has rows that come or go with time alone.
    temporal: bool,
    /// The inputs know the shards to be complete below this time.
    told: Timestamp,
    /// Of a one-off result.
    gate: Option<Arc<Gate>>,
    /// Of a one-off result whose reader does not know yet whether it comes summed.
    verdict: Option<Verdict>,
}

/// What is asked before it is known whether a one-off result comes summed on this worker.
struct Verdict {
    desc: Arc<DataflowDesc>,
    /// What is read from shards that have rows added only.
    summed: BTreeSet<Id>,
    /// What is read from arrangements.
    imports: Vec<(GlobalId, Rc<Seen>)>,
}

/// What an import has seen of its arrangement.
#[derive(Default)]
struct Seen {
    /// An update that takes rows back.
    retraction: Cell<bool>,
    /// All of it.
    whole: Cell<bool>,
}

impl Verdict {
    /// The one-off results, and whether they come summed; `None` while that is open.
    fn tell(&self) -> Option<Vec<(GlobalId, bool)>> {
        if !self.imports.iter().all(|(_, seen)| seen.whole.get() || seen.retraction.get()) {
            return None;
        }
        let mut summed = self.summed.clone();
        summed.extend(self.imports.iter().filter(|(_, seen)| !seen.retraction.get()).map(|i| Id::Global(i.0)));
        for (id, lir) in &self.desc.builds {
            if render::comes_summed(lir, &mut summed) {
                summed.insert(Id::Global(*id));
            }
        }
        let exports = self.desc.exports.iter();
        Some(exports.filter_map(|e| if let Export::PeekOnce { id, on } = e { Some((*id, summed.contains(&Id::Global(*on)))) } else { None }).collect())
    }
}

/// An exported arrangement.
struct Index {
    oks: Agent<Timestamp, Diff>,
    errs: Agent<Timestamp, Diff>,
    layout: Arc<Layout>,
    since: Timestamp,
    upper: Timestamp,
    size: Size,
    counted: Option<Instant>,
}

struct Waiting {
    request: Arc<PeekRequest>,
    cancel: Cancel,
    gate: Arc<Gate>,
}

/// What a worker keeps.
pub struct State<'w> {
    worker: &'w mut Worker,
    index: usize,
    peers: usize,
    hub: Arc<Hub>,
    readers: Readers,
    dataflows: BTreeMap<GlobalId, Dataflow>,
    indexes: BTreeMap<GlobalId, Index>,
    /// The dataflow behind each index, hidden ones included.
    owners: BTreeMap<GlobalId, GlobalId>,
    waiting: Vec<Waiting>,
    /// Changes that dataflows to come start with.
    past: BTreeMap<GlobalId, crate::protocol::Ticks>,
    /// All shards are complete below this time.
    closed: Timestamp,
    /// When dataflows that lag are brought up.
    sweep_at: Option<Instant>,
    /// When the next report may be made.
    report_at: Instant,
}

/// Runs a worker until it is told to stop.
pub fn run(worker: &mut Worker, commands: &Receiver<Command>, hub: Arc<Hub>, readers: Readers) {
    let (index, peers) = (worker.index(), worker.peers());
    let mut s = State {
        worker,
        index,
        peers,
        hub,
        readers,
        dataflows: BTreeMap::new(),
        indexes: BTreeMap::new(),
        owners: BTreeMap::new(),
        waiting: vec![],
        past: BTreeMap::new(),
        closed: 0,
        sweep_at: None,
        report_at: Instant::now(),
    };
    loop {
        loop {
            match commands.try_recv() {
                Ok(Command::Shutdown) | Err(TryRecvError::Disconnected) => return,
                Ok(c) => s.command(c),
                Err(TryRecvError::Empty) => break,
            }
        }
        // A command that arrives after the look above leaves an unpark token, so this returns at once.
        let park = if s.report_if_due() { s.sweep() } else { Some(Duration::ZERO) };
        s.worker.step_or_park(park);
        memory::rest();
    }
}

/// This worker's rows of a batch.
fn slice(deltas: &Deltas, index: usize, peers: usize) -> Deltas {
    let (from, to) = (deltas.len() * index / peers, deltas.len() * (index + 1) / peers);
    Deltas { rows: deltas.rows.slice(from, to - from), diffs: deltas.diffs.slice(from, to - from) }
}

impl State<'_> {
    fn command(&mut self, c: Command) {
        match c {
            Command::CreateDataflow { id, desc, shards, holder } => self.create(id, desc, shards, holder),
            Command::DropDataflow { id } => self.drop_dataflow(id),
            Command::CatchUp { id, ticks } => {
                self.past.insert(id, ticks);
            }
            Command::Tick { t, shards, parts } => self.tick(t, &shards, &parts),
            Command::AllowCompaction { index, since } => self.compact(index, since),
            Command::Peek(request) => self.peek(request),
            Command::CancelPeek { id } => self.cancel(id),
            Command::GiveBack => memory::give_back(),
            Command::Shutdown => {}
        }
    }

    /// Lets times before `since` go, but for those that a read still waits for; the next command takes these along.
    fn compact(&mut self, index: GlobalId, since: Timestamp) {
        let awaited = self.waiting.iter().filter(|w| w.request.index == index).map(|w| w.request.at).min();
        let since = since.min(awaited.unwrap_or(since));
        if let Some(i) = self.indexes.get_mut(&index) {
            if since > i.since {
                i.since = since;
                for agent in [&mut i.oks, &mut i.errs] {
                    agent.set_logical_compaction(AntichainRef::new(&[since]));
                }
            }
        }
    }

    fn create(&mut self, id: GlobalId, desc: Arc<DataflowDesc>, shards: Vec<(GlobalId, Arc<dyn SnapshotReader>)>, holder: Holder) {
        holder.works();
        let stopped = Rc::new(Stopped::new(holder));
        let one_off = !desc.exports.is_empty() && desc.exports.iter().all(|e| matches!(e, Export::PeekOnce { .. }));
        let up_to = desc.exports.iter().filter_map(|e| if let Export::Subscribe { up_to, .. } = e { *up_to } else { None });
        let until = up_to.chain(desc.until).chain(one_off.then_some(desc.as_of + 1)).min();
        let gate = desc.exports.iter().find_map(|e| if let Export::PeekOnce { id, .. } = e { Some(self.hub.open_result(*id)) } else { None });
        let env = Rc::new(Env { ctx: desc.ctx.clone(), as_of: desc.as_of, until, stopped: stopped.clone(), worker: self.index, gate: gate.clone() });
        let mut seen_of: Vec<(GlobalId, Rc<Seen>)> = Vec::new();
        let mut made = Dataflow {
            inputs: vec![],
            imports: vec![],
            wake: vec![],
            exports: vec![],
            subscribes: vec![],
            peeks: vec![],
            stopped,
            dropped: false,
            temporal: desc.builds.iter().any(|b| is_temporal(&b.1)),
            told: 0,
            gate,
            verdict: None,
        };
        let (hub, indexes, peers) = (&self.hub, &mut self.indexes, self.peers);
        let mut exported: Vec<(GlobalId, Index)> = Vec::new();
        self.worker.dataflow_named::<Timestamp, _, _>(&desc.name, |scope| {
            let mut cx = Context::new(scope, env.clone());
            for i in &desc.imports {
                match i {
                    Import::Shard { id, types } => {
                        let wanted = render::wanted(&desc, *id, types.len());
                        let reader = shards.iter().find(|s| s.0 == *id).map(|s| s.1.read(env.worker, peers, wanted.as_deref()));
                        let (input, oks, errs) = input::render(scope, &format!("Shard {id}"), reader, wanted, &env);
                        cx.bind(Id::Global(*id), types.clone(), Collection::new(oks, errs));
                        made.inputs.push((*id, input));
                    }
                    Import::Arrangement { object, index, types, .. } => {
                        made.imports.push(*index);
                        let seen = bind_import(&mut cx, &mut made, indexes.get_mut(index), *object, *index, types);
                        seen_of.push((*object, seen));
                    }
                }
            }
            for (id, lir) in &desc.builds {
                let mut collection = cx.render(lir);
                for (_, listed) in desc.quarantine.iter().filter(|q| q.0 == *id) {
                    let (rest, rows) = render::quarantine(collection.errs, &env);
                    collection.errs = rest;
                    let nothing = cx.nothing();
                    cx.bind(Id::Global(*listed), crate::errors::quarantine_types(), Collection::new(rows, nothing));
                }
                cx.bind(Id::Global(*id), lir.types.clone(), collection);
            }
            for e in &desc.exports {
                let (Export::Arrangement { on, .. } | Export::Subscribe { on, .. } | Export::PeekOnce { on, .. }) = e;
                let (types, collection) = match (cx.types(Id::Global(*on)), cx.get(Id::Global(*on))) {
                    (Some(types), Ok(c)) => (types, c),
                    (_, Err(e)) => (vec![], cx.failed(e)),
                    (None, Ok(c)) => (vec![], c),
                };
                match e {
                    Export::Arrangement { index, key, .. } => {
                        exported.push((*index, export_index(&env, collection, types, key)));
                    }
                    Export::Subscribe { id, with_snapshot, .. } => {
                        made.subscribes.push(*id);
                        export::subscribe(collection, &types, *id, *with_snapshot, hub.clone(), &env, Default::default());
                    }
                    Export::PeekOnce { id, .. } => {
                        let done: Rc<Cell<bool>> = Default::default();
                        made.peeks.push((*id, done.clone()));
                        export::peek_once(collection, *id, hub.clone(), &env, done);
                    }
                }
            }
        });
        if one_off {
            let summed = shards.iter().filter(|s| s.1.inserts_only()).map(|s| Id::Global(s.0)).collect();
            made.verdict = Some(Verdict { desc: desc.clone(), summed, imports: seen_of });
        }
        for (index, i) in exported {
            made.exports.push(index);
            self.owners.insert(index, id);
            self.indexes.insert(index, i);
        }
        for (t, shard, deltas) in self.past.remove(&id).iter().flat_map(|ticks| ticks.iter()) {
            for (_, input) in made.inputs.iter().filter(|i| i.0 == *shard) {
                input.push(*t, slice(deltas, self.index, self.peers));
            }
        }
        self.dataflows.insert(id, made);
        memory::rest();
        self.catch_up(id);
    }

    fn drop_dataflow(&mut self, id: GlobalId) {
        let Some(d) = self.dataflows.get_mut(&id) else { return };
        d.dropped = true;
        for index in &d.exports {
            self.indexes.remove(index);
            self.hub.drop_frontier(*index, self.index);
        }
        for s in &d.subscribes {
            self.hub.drop_subscribe(*s);
        }
        let exports = d.exports.clone();
        let (gone, waiting): (Vec<_>, Vec<_>) = std::mem::take(&mut self.waiting).into_iter().partition(|w| exports.contains(&w.request.index));
        self.waiting = waiting;
        for w in gone {
            self.hub.peek_done(w.request.id, Err(dropped()));
        }
        self.stop_unused();
    }

    /// Stops dropped dataflows from which no living dataflow imports; stopping one may free others.
    fn stop_unused(&mut self) {
        loop {
            let used: Vec<GlobalId> = self.dataflows.values().flat_map(|d| d.imports.iter().copied()).collect();
            let Some(id) = self.dataflows.iter().find(|(_, d)| d.dropped && !d.exports.iter().any(|e| used.contains(e))).map(|d| *d.0) else { return };
            if let Some(d) = self.dataflows.remove(&id) {
                d.stopped.set();
                self.owners.retain(|_, owner| *owner != id);
                d.inputs.iter().for_each(|i| i.1.wake());
                d.wake.iter().for_each(|a| a.activate());
                // Who waits for the reader sees that it is stopped.
                d.gate.iter().for_each(|g| g.free());
                for (peek, done) in &d.peeks {
                    if d.verdict.is_some() {
                        self.hub.comes_summed(*peek, false);
                    }
                    if !done.replace(true) {
                        self.hub.peek_done(*peek, Err(SqlError::canceled()));
                    }
                }
            }
        }
    }

    fn peek(&mut self, request: Arc<PeekRequest>) {
        let (cancel, gate) = self.hub.open_peek(request.id, request.limit);
        if let Some(owner) = self.owners.get(&request.index).copied() {
            self.catch_up(owner);
        }
        self.waiting.push(Waiting { request, cancel, gate });
    }

    fn cancel(&mut self, id: GlobalId) {
        self.hub.cancel_peek(id);
        if let Some(dataflow) = self.dataflows.iter().find(|(_, d)| d.peeks.iter().any(|p| p.0 == id)).map(|d| *d.0) {
            self.drop_dataflow(dataflow);
        }
    }

    /// Reports unless the last one is too recent: it looks at every index, and a loop of many small steps beside many views would do
    /// little else. At most a fifth of the time goes to it.
    fn report_if_due(&mut self) -> bool {
        let start = Instant::now();
        if start < self.report_at {
            return false;
        }
        self.report();
        let end = Instant::now();
        self.report_at = end + 4 * (end - start);
        true
    }

    /// Everything that may have changed with a step: frontiers, sizes, ready peeks, finished dataflows.
    fn report(&mut self) {
        for (id, i) in &mut self.indexes {
            let mut upper = Antichain::new();
            i.oks.read_upper(&mut upper);
            let mut errs_upper = Antichain::new();
            i.errs.read_upper(&mut errs_upper);
            let both = [upper.elements().first(), errs_upper.elements().first()].into_iter().flatten().min().copied();
            let now = both.unwrap_or(Timestamp::MAX);
            if now > i.upper {
                i.upper = now;
                i.oks.set_physical_compaction(upper.borrow());
                i.errs.set_physical_compaction(errs_upper.borrow());
                if i.counted.is_none_or(|at| at.elapsed() >= SIZE_EVERY) {
                    i.counted = Some(Instant::now());
                    i.size = size(&i.oks);
                }
                self.hub.frontier(*id, self.index, now, i.size);
            }
        }
        let (indexes, readers, hub) = (&mut self.indexes, &self.readers, &self.hub);
        let (worker, peers) = (self.index, self.peers);
        self.waiting.retain(|w| {
            if w.cancel.load(Ordering::Relaxed) {
                hub.peek_done(w.request.id, Err(SqlError::canceled()));
                return false;
            }
            let Some(i) = indexes.get_mut(&w.request.index) else {
                hub.peek_done(w.request.id, Err(dropped()));
                return false;
            };
            if i.upper <= w.request.at {
                return true;
            }
            if i.since > w.request.at {
                let e = SqlError::internal(format!("a read at {} of an arrangement compacted to {}", w.request.at, i.since));
                hub.peek_done(w.request.id, Err(e));
                return false;
            }
            readers.give(Job {
                request: w.request.clone(),
                oks: batches(&i.oks),
                errs: batches(&i.errs),
                layout: i.layout.clone(),
                worker,
                peers,
                cancel: w.cancel.clone(),
                gate: w.gate.clone(),
            });
            false
        });
        for d in self.dataflows.values_mut() {
            if let Some(told) = d.verdict.as_ref().and_then(Verdict::tell) {
                d.verdict = None;
                told.into_iter().for_each(|(peek, summed)| self.hub.comes_summed(peek, summed));
            }
        }
        // A one-off dataflow is over when all its parts are.
        let over: Vec<GlobalId> = self
            .dataflows
            .iter()
            .filter(|(_, d)| !d.peeks.is_empty() && d.exports.is_empty() && d.subscribes.is_empty() && d.peeks.iter().all(|p| p.1.get()))
            .map(|d| *d.0)
            .collect();
        if !over.is_empty() {
            for id in over {
                if let Some(d) = self.dataflows.get_mut(&id) {
                    d.dropped = true;
                }
            }
            self.stop_unused();
        }
    }
}

fn is_temporal(lir: &Lir) -> bool {
    render::is_temporal(&lir.kind) || render::children(lir).into_iter().any(is_temporal)
}

fn dropped() -> SqlError {
    SqlError::new(state::UNDEFINED_OBJECT, "the object was dropped while it was read")
}

fn batches(agent: &Agent<Timestamp, Diff>) -> peek::Batches {
    let mut out = vec![];
    agent.map_spans(|s| out.extend(s.inner.clone()));
    out
}

fn size(agent: &Agent<Timestamp, Diff>) -> Size {
    let mut size = Size::default();
    agent.map_spans(|s| {
        if let Some(b) = &s.inner {
            size.records += b.updates() as u64;
            size.bytes += b.heap_bytes() as u64;
        }
    });
    size
}

/// Binds an imported arrangement, or, where that cannot be, the error that says why. Answers with what the import sees.
fn bind_import(cx: &mut Context<'_, Timestamp>, made: &mut Dataflow, index: Option<&mut Index>, object: GlobalId, id: GlobalId, types: &[ColType]) -> Rc<Seen> {
    let (as_of, until) = (cx.env.as_of, cx.env.until);
    let seen: Rc<Seen> = Default::default();
    let note = seen.clone();
    let watch = move |batch: Option<&RowB<Timestamp, Diff>>| match batch {
        None => note.whole.set(true),
        Some(b) if !note.retraction.get() => note.retraction.set(b.retracts()),
        Some(_) => {}
    };
    let imported = match index {
        None => Err(SqlError::internal(format!("no arrangement {id} to import"))),
        Some(i) => {
            let oks = import(&i.oks, cx.scope, &format!("Import {id}"), as_of, until, made.stopped.clone(), watch);
            let errs = import(&i.errs, cx.scope, &format!("ImportErrors {id}"), as_of, until, made.stopped.clone(), |_| {});
            match (oks, errs) {
                (Ok((oks, a)), Ok((errs, b))) => {
                    made.wake.extend([a, b]);
                    Ok((oks, errs, Rc::new((*i.layout).clone())))
                }
                (Err(since), _) | (_, Err(since)) => Err(SqlError::internal(format!("arrangement {id} was compacted to {since:?}, beyond {as_of}"))),
            }
        }
    };
    match imported {
        Ok((oks, errs, layout)) => {
            let errs = render::flatten(&Traced::Imported(errs), render::error_layout(), &cx.env);
            cx.bind_index(Id::Global(object), Traced::Imported(oks), layout, errs);
        }
        Err(e) => {
            seen.whole.set(true);
            let failed = cx.failed(e);
            cx.bind(Id::Global(object), types.to_vec(), failed);
        }
    }
    seen
}

/// Arranges a collection for others.
fn export_index(env: &Rc<Env>, c: Collection<'_, Timestamp>, types: Vec<ColType>, key: &[expr::Scalar]) -> Index {
    let layout = Layout::new(types, key.to_vec());
    let keep = vec![true; key.len()];
    let (oks, failed) = render::arrange(c.oks, Rc::new(layout.clone()), keep, "Export", env);
    let errs = render::distinct_errors(render::concat([c.errs].into_iter().chain(failed).collect()), env);
    let (mut oks, mut errs) = (oks.trace, errs.trace);
    for agent in [&mut oks, &mut errs] {
        agent.set_logical_compaction(AntichainRef::new(&[env.as_of]));
    }
    Index { oks, errs, layout: Arc::new(layout), since: env.as_of, upper: 0, size: Size::default(), counted: None }
}
