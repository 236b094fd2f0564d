//! MIR to LIR: fused nodes, join order, reduce kinds, imports.
//!
//! Node numbers count up from the leaves in the order of the plan text, so the same plan has the same numbers.

/// Linear joins.
mod join;
/// One-off queries.
pub(crate) mod peek;
/// How groups are maintained.
mod reduce;

pub use peek::{plan_peek, Peek};

use crate::chain::Chain;
use crate::keys::{unique_keys, LocalKeys};
use crate::monotonic::only_grows;
use crate::temporal::{check_maintained, into_bounds};
use crate::{Indexes, OptimizeCtx};
use plan::{Id, Import, Lir, LirKind, LocalId, Mfp, Mir};
use repr::{ColType, GlobalId, SqlError};
use std::collections::{BTreeMap, BTreeSet};

/// A plan that can be rendered.
#[derive(Clone, Debug, PartialEq)]
pub struct Dataflow {
    pub lir: Lir,
    pub imports: Vec<Import>,
    /// What the user should know: cross joins.
    pub notices: Vec<String>,
}

impl Dataflow {
    /// A relation of which nothing is known but why it has no rows.
    pub fn failed(types: Vec<ColType>, why: SqlError) -> Dataflow {
        Dataflow { lir: Lir { node: 0, types, kind: LirKind::Constant { rows: Err(why) } }, imports: vec![], notices: vec![] }
    }
}

/// Plans a relation that is to be maintained, or read once by a dataflow.
pub fn plan_dataflow(mir: &Mir, ctx: &OptimizeCtx, indexes: Indexes) -> Result<Dataflow, SqlError> {
    if !ctx.one_off {
        check_maintained(mir)?;
    }
    let mut p = Planner::new(ctx, indexes);
    let lir = p.node(mir)?;
    Ok(Dataflow { imports: p.imports(), lir, notices: p.notices })
}

struct Planner<'a> {
    ctx: &'a OptimizeCtx<'a>,
    indexes: Indexes<'a>,
    next: u32,
    /// Catalog relations read, and their types.
    read: BTreeMap<GlobalId, Vec<ColType>>,
    /// Arrangements that a join looks up in.
    used: BTreeSet<(GlobalId, GlobalId)>,
    keys: LocalKeys,
    /// Bindings that never take a row back.
    growing: BTreeSet<LocalId>,
    notices: Vec<String>,
}

impl<'a> Planner<'a> {
    fn new(ctx: &'a OptimizeCtx<'a>, indexes: Indexes<'a>) -> Planner<'a> {
        Planner { ctx, indexes, next: 0, read: BTreeMap::new(), used: BTreeSet::new(), keys: LocalKeys::new(), growing: BTreeSet::new(), notices: vec![] }
    }

    fn lir(&mut self, types: Vec<ColType>, kind: LirKind) -> Lir {
        self.next += 1;
        Lir { node: self.next - 1, types, kind }
    }

    /// A relation with an arrangement is read from it, in the form that a join looks up where there is one.
    fn imports(&self) -> Vec<Import> {
        let mut out = Vec::new();
        for (object, types) in &self.read {
            let all = (self.indexes)(*object);
            let chosen: Vec<_> = all.iter().filter(|(index, _)| self.used.contains(&(*object, *index))).collect();
            let chosen = if chosen.is_empty() { all.first().into_iter().collect() } else { chosen };
            if chosen.is_empty() {
                out.push(Import::Shard { id: *object, types: types.clone() });
            }
            for (index, key) in chosen {
                out.push(Import::Arrangement { object: *object, index: *index, key: key.clone(), types: types.clone() });
            }
        }
        out
    }

    fn node(&mut self, mir: &Mir) -> Result<Lir, SqlError> {
        let (base, chain) = Chain::peel(mir);
        if let Mir::Join { inputs, equivalences } = base {
            return self.join(inputs, equivalences, chain);
        }
        let below = self.base(base)?;
        self.mfp(below, chain.finish())
    }

    /// Whether a dataflow that goes on never sees a row of the plan taken back. What is read once is not read in order of time.
    fn grows(&self, mir: &Mir) -> bool {
        !self.ctx.one_off && only_grows(mir, &self.growing, self.ctx.grows)
    }

    fn mfp(&mut self, input: Lir, mfp: Mfp) -> Result<Lir, SqlError> {
        if mfp.is_identity() {
            return Ok(input);
        }
        let mfp = if self.ctx.one_off { mfp } else { into_bounds(mfp, &input.types)? };
        let types = mfp.output_types(&input.types);
        Ok(self.lir(types, LirKind::Mfp { input: Box::new(input), mfp }))
    }

    fn base(&mut self, mir: &Mir) -> Result<Lir, SqlError> {
        let types = mir.types();
        let kind = match mir {
            Mir::Constant { rows, .. } => LirKind::Constant { rows: rows.clone() },
            Mir::Get { id, .. } => {
                if let Id::Global(g) = id {
                    self.read.insert(*g, types.clone());
                }
                LirKind::Get { id: *id }
            }
            Mir::Let { id, value, body } => {
                let lir = self.node(value)?;
                let keys = unique_keys(value, &self.keys);
                self.keys.insert(*id, keys);
                if self.grows(value) {
                    self.growing.insert(*id);
                }
                LirKind::Let { id: *id, value: Box::new(lir), body: Box::new(self.node(body)?) }
            }
            Mir::LetRec { bindings, limit, return_at_limit, body } => {
                let mut lowered = Vec::new();
                for b in bindings {
                    lowered.push((b.id, self.node(&b.value)?));
                }
                LirKind::LetRec { bindings: lowered, limit: *limit, return_at_limit: *return_at_limit, body: Box::new(self.node(body)?) }
            }
            Mir::FlatMap { input, func } => LirKind::FlatMap { input: Box::new(self.node(input)?), func: func.clone() },
            Mir::Reduce { input, group_key, aggregates } => {
                let kind = reduce::kind(aggregates, self.grows(input));
                LirKind::Reduce { input: Box::new(self.node(input)?), group_key: group_key.clone(), kind }
            }
            Mir::TopK { input, group_key, order_by, limit, offset, with_ties } => LirKind::TopK {
                input: Box::new(self.node(input)?),
                group_key: group_key.clone(),
                order_by: order_by.clone(),
                limit: limit.clone(),
                offset: *offset,
                with_ties: *with_ties,
            },
            Mir::Window { input, partition, order_by, exprs } => {
                LirKind::Window { input: Box::new(self.node(input)?), partition: partition.clone(), order_by: order_by.clone(), exprs: exprs.clone() }
            }
            Mir::Negate { input } => LirKind::Negate { input: Box::new(self.node(input)?) },
            Mir::Threshold { input } => LirKind::Threshold { input: Box::new(self.node(input)?) },
            Mir::Union { inputs } => {
                let mut lowered = Vec::new();
                for i in inputs {
                    lowered.push(self.node(i)?);
                }
                LirKind::Union { inputs: lowered }
            }
            Mir::Project { .. } | Mir::Map { .. } | Mir::Filter { .. } | Mir::Join { .. } => return self.node(mir),
        };
        Ok(self.lir(types, kind))
    }

    /// The catalog relations below, by name, for notices.
    fn names(&self, mir: &Mir) -> String {
        let names: Vec<String> = mir.global_ids().into_iter().map(|g| (self.ctx.names)(g)).collect();
        if names.is_empty() {
            "a constant or a subquery".into()
        } else {
            names.join(", ")
        }
    }
}
