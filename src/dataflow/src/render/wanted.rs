//! Which columns of a shard a dataflow reads: files give these alone.
//!
//! What stands right above an import tells which it reads, if it is a map, a filter, a projection or a reduce; whatever else stands there
//! reads all of them.

use super::children;
use super::reduce::aggregates;
use plan::lir::{DataflowDesc, Export, Lir, LirKind};
use plan::mir::Id;
use repr::GlobalId;

/// For each of the shard's columns whether the dataflow reads it; `None`: it reads all.
pub fn wanted(desc: &DataflowDesc, shard: GlobalId, arity: usize) -> Option<Vec<bool>> {
    let exported = desc.exports.iter().any(|e| {
        let (Export::Arrangement { on, .. } | Export::Subscribe { on, .. } | Export::PeekOnce { on, .. }) = e;
        *on == shard
    });
    let mut wanted = vec![false; arity];
    let some = !exported && desc.builds.iter().all(|(_, l)| note(l, Id::Global(shard), &mut wanted));
    (some && wanted.contains(&false)).then_some(wanted)
}

/// Notes the columns that a plan reads of `id`; false: all.
fn note(l: &Lir, id: Id, wanted: &mut [bool]) -> bool {
    let is_it = |l: &Lir| matches!(&l.kind, LirKind::Get { id: it } if *it == id);
    // Columns from `wanted.len()` on are the plan's own.
    let mut mark = |c: usize| wanted.get_mut(c).into_iter().for_each(|w| *w = true);
    match &l.kind {
        LirKind::Mfp { input, mfp } if is_it(input) => {
            let scalars = mfp.maps.iter().chain(mfp.predicates.iter().map(|p| &p.1)).chain(&mfp.lower).chain(&mfp.upper);
            scalars.flat_map(|s| s.support()).chain(mfp.project.iter().copied()).for_each(mark);
            true
        }
        LirKind::Reduce { input, group_key, kind } if is_it(input) => {
            group_key.iter().flat_map(|s| s.support()).for_each(&mut mark);
            for a in aggregates(kind, l.types.len() - group_key.len()) {
                let scalars = a.args.iter().chain(&a.filter).chain(a.order_by.iter().map(|o| &o.0));
                scalars.flat_map(|s| s.support()).for_each(&mut mark);
            }
            true
        }
        _ if is_it(l) => false,
        _ => children(l).into_iter().all(|c| note(c, id, wanted)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expr::Scalar;
    use plan::lir::ReduceKind;
    use plan::Mfp;
    use repr::{ColType, SqlType};

    fn types(n: usize) -> Vec<ColType> {
        vec![SqlType::Int8.nullable(); n]
    }
    fn get(id: u64) -> Box<Lir> {
        Box::new(Lir { node: 0, types: types(5), kind: LirKind::Get { id: Id::Global(GlobalId(id)) } })
    }
    /// Column 3, and a filter on column 1.
    fn some(id: u64) -> Lir {
        let mfp = Mfp { input_arity: 5, predicates: vec![(5, Scalar::Column(1))], project: vec![3], ..Mfp::default() };
        Lir { node: 1, types: types(1), kind: LirKind::Mfp { input: get(id), mfp } }
    }
    fn desc(builds: Vec<Lir>, exports: Vec<Export>) -> DataflowDesc {
        DataflowDesc {
            name: String::new(),
            as_of: 0,
            until: None,
            imports: vec![],
            builds: builds.into_iter().enumerate().map(|(i, l)| (GlobalId(100 + i as u64), l)).collect(),
            exports,
            ctx: Default::default(),
            quarantine: vec![],
        }
    }
    fn asked(builds: Vec<Lir>, exports: Vec<Export>) -> Option<Vec<bool>> {
        wanted(&desc(builds, exports), GlobalId(1), 5)
    }

    #[test]
    fn maps_and_reduces_read_what_they_name() {
        let few = Some(vec![false, true, false, true, false]);
        assert_eq!(asked(vec![some(1)], vec![]), few);
        // What is asked of another relation does not count.
        assert_eq!(asked(vec![some(1), *get(2)], vec![]), few);
        let distinct = LirKind::Reduce { input: get(1), group_key: vec![Scalar::Column(4)], kind: ReduceKind::Distinct };
        let distinct = Lir { node: 2, types: types(1), kind: distinct };
        assert_eq!(asked(vec![distinct.clone()], vec![]), Some(vec![false, false, false, false, true]));
        let both = Lir { node: 3, types: types(1), kind: LirKind::Union { inputs: vec![some(1), distinct] } };
        assert_eq!(asked(vec![both], vec![]), Some(vec![false, true, false, true, true]));
        assert_eq!(asked(vec![some(2)], vec![]), Some(vec![false; 5]));
    }

    #[test]
    fn whatever_else_reads_all() {
        assert_eq!(asked(vec![some(1), *get(1)], vec![]), None);
        let negated = Lir { node: 2, types: types(5), kind: LirKind::Negate { input: get(1) } };
        assert_eq!(asked(vec![negated], vec![]), None);
        assert_eq!(asked(vec![some(1)], vec![Export::Arrangement { index: GlobalId(9), on: GlobalId(1), key: vec![] }]), None);
        let all = Mfp::identity(5);
        assert_eq!(asked(vec![Lir { node: 1, types: types(5), kind: LirKind::Mfp { input: get(1), mfp: all } }], vec![]), None);
    }
}
