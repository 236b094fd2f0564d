//! Columns that nobody reads are dropped as early as may be: sources are wide.
//!
//! From the top down each relation is asked for a sorted list of its columns and made to give exactly these. The inputs of
//! TopK and Window keep all theirs, since whole rows break ties; so do sets (Threshold, and the keys of a Reduce).

use super::lets;
use expr::Scalar;
use plan::{Id, LocalId, Mir};
use std::collections::{BTreeMap, BTreeSet};

/// Columns that are read of each binding.
type Wanted = BTreeMap<LocalId, BTreeSet<usize>>;

pub(super) fn columns(mir: Mir) -> Mir {
    let n = mir.arity();
    let mut wanted = Wanted::new();
    prune(mir, &(0..n).collect(), &mut wanted)
}

fn project(mir: Mir, outputs: Vec<usize>) -> Mir {
    if outputs.iter().copied().eq(0..mir.arity()) {
        return mir;
    }
    mir.project(outputs)
}

/// Positions of columns among those kept.
fn place(kept: &BTreeSet<usize>) -> impl Fn(usize) -> usize + '_ {
    move |c| kept.range(..c).count()
}

fn moved(scalars: &mut [Scalar], at: &impl Fn(usize) -> usize) {
    scalars.iter_mut().for_each(|s| s.permute(at));
}

/// The relation with the columns `want` alone, in order.
fn prune(mir: Mir, want: &BTreeSet<usize>, wanted: &mut Wanted) -> Mir {
    let all = |m: &Mir| -> BTreeSet<usize> { (0..m.arity()).collect() };
    match mir {
        Mir::Constant { .. } => project(mir, want.iter().copied().collect()),
        Mir::Get { id, .. } => {
            if let Id::Local(l) = id {
                wanted.entry(l).or_default().extend(want.iter().copied());
            }
            project(mir, want.iter().copied().collect())
        }
        Mir::Let { id, value, body } => {
            let body = prune(*body, want, wanted);
            let Some(read) = wanted.remove(&id) else { return body };
            let value = prune(*value, &read, wanted);
            let mut body = body;
            lets::narrow(&mut body, id, &read, &value.types());
            Mir::Let { id, value: value.boxed(), body: body.boxed() }
        }
        Mir::LetRec { mut bindings, limit, return_at_limit, body } => {
            let body = prune(*body, want, wanted);
            for b in &mut bindings {
                let value = super::take(&mut b.value);
                let every = all(&value);
                b.value = prune(value, &every, wanted);
            }
            // Recursive bindings keep their columns; what was asked of them is a projection where they are read.
            bindings.iter().for_each(|b| {
                wanted.remove(&b.id);
            });
            Mir::LetRec { bindings, limit, return_at_limit, body: body.boxed() }
        }
        Mir::Project { input, outputs } => {
            let outputs: Vec<usize> = want.iter().map(|w| outputs[*w]).collect();
            let need: BTreeSet<usize> = outputs.iter().copied().collect();
            let input = prune(*input, &need, wanted);
            let at = place(&need);
            let outputs = outputs.into_iter().map(&at).collect();
            project(input, outputs)
        }
        Mir::Map { input, scalars } => {
            let n = input.arity();
            let mut need = want.clone();
            for (i, s) in scalars.iter().enumerate().rev() {
                if need.contains(&(n + i)) {
                    need.extend(s.support());
                }
            }
            let mut kept: Vec<Scalar> = scalars.into_iter().enumerate().filter(|(i, _)| need.contains(&(n + i))).map(|(_, s)| s).collect();
            let at = place(&need);
            moved(&mut kept, &at);
            let below: BTreeSet<usize> = need.iter().copied().filter(|c| *c < n).collect();
            let mapped = prune(*input, &below, wanted).map(kept);
            project(mapped, want.iter().map(|c| at(*c)).collect())
        }
        Mir::Filter { input, mut predicates } => {
            let mut need = want.clone();
            need.extend(predicates.iter().flat_map(Scalar::support));
            let at = place(&need);
            moved(&mut predicates, &at);
            let filtered = prune(*input, &need, wanted).filter(predicates);
            project(filtered, want.iter().map(|c| at(*c)).collect())
        }
        Mir::FlatMap { input, mut func } => {
            let n = input.arity();
            func.with_ordinality &= want.contains(&(n + func.columns.len()));
            let total = n + func.columns.len() + usize::from(func.with_ordinality);
            let mut need: BTreeSet<usize> = want.iter().copied().filter(|c| *c < n).collect();
            need.extend(func.args.iter().flat_map(Scalar::support));
            let below = need.clone();
            need.extend(n..total);
            let at = place(&need);
            moved(&mut func.args, &at);
            let called = Mir::FlatMap { input: prune(*input, &below, wanted).boxed(), func };
            project(called, want.iter().map(|c| at(*c)).collect())
        }
        Mir::Join { inputs, mut equivalences } => {
            let mut need = want.clone();
            need.extend(equivalences.iter().flat_map(|e| &e.exprs).flat_map(Scalar::support));
            let at = place(&need);
            equivalences.iter_mut().for_each(|e| moved(&mut e.exprs, &at));
            let mut start = 0;
            let mut pruned = Vec::new();
            for i in inputs {
                let end = start + i.arity();
                let own = need.range(start..end).map(|c| c - start).collect();
                pruned.push(prune(i, &own, wanted));
                start = end;
            }
            let joined = Mir::Join { inputs: pruned, equivalences };
            project(joined, want.iter().map(|c| at(*c)).collect())
        }
        Mir::Reduce { input, mut group_key, aggregates } => {
            let k = group_key.len();
            let mut kept: Vec<_> = aggregates.into_iter().enumerate().filter(|(i, _)| want.contains(&(k + i))).map(|(_, a)| a).collect();
            let mut need: BTreeSet<usize> = group_key.iter().flat_map(Scalar::support).collect();
            for a in &kept {
                need.extend(a.args.iter().chain(&a.filter).chain(a.order_by.iter().map(|(s, _)| s)).flat_map(Scalar::support));
            }
            let at = place(&need);
            moved(&mut group_key, &at);
            for a in &mut kept {
                moved(&mut a.args, &at);
                a.filter.iter_mut().for_each(|f| f.permute(&at));
                a.order_by.iter_mut().for_each(|(s, _)| s.permute(&at));
            }
            let reduced = Mir::Reduce { input: prune(*input, &need, wanted).boxed(), group_key, aggregates: kept };
            let mut output: BTreeSet<usize> = (0..k).collect();
            output.extend(want.iter().copied());
            let at = place(&output);
            project(reduced, want.iter().map(|c| at(*c)).collect())
        }
        Mir::TopK { input, group_key, order_by, limit, offset, with_ties } => {
            let every = all(&input);
            let top = Mir::TopK { input: prune(*input, &every, wanted).boxed(), group_key, order_by, limit, offset, with_ties };
            project(top, want.iter().copied().collect())
        }
        Mir::Window { input, partition, order_by, exprs } => {
            let n = input.arity();
            let kept: Vec<_> = exprs.into_iter().enumerate().filter(|(i, _)| want.contains(&(n + i))).map(|(_, e)| e).collect();
            if kept.is_empty() {
                return prune(*input, want, wanted);
            }
            let every = all(&input);
            let window = Mir::Window { input: prune(*input, &every, wanted).boxed(), partition, order_by, exprs: kept };
            let mut output = every;
            output.extend(want.iter().copied());
            let at = place(&output);
            project(window, want.iter().map(|c| at(*c)).collect())
        }
        Mir::Negate { input } => prune(*input, want, wanted).negate(),
        Mir::Threshold { input } => {
            let every = all(&input);
            project(prune(*input, &every, wanted).threshold(), want.iter().copied().collect())
        }
        Mir::Union { inputs } => Mir::Union { inputs: inputs.into_iter().map(|i| prune(i, want, wanted)).collect() },
    }
}
