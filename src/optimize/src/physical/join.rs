//! Linear joins: which input starts, in which order the others are looked up, by which keys.
//!
//! ```text
//!   classes {a.x, b.x}  {b.y, c.y}          start a;  stage b by a.x = b.x;  stage c by b.y = c.y
//! ```
//!
//! A class becomes a key of every stage at which one of its expressions belongs to the new input alone and another is
//! computable from the rows so far. Expressions over several inputs become residual equalities. Conditions of the chain
//! above are applied at the first stage that has their columns, and columns are dropped when nothing reads them any more.

use super::Planner;
use crate::chain::Chain;
use crate::keys::unique_keys;
use expr::Scalar;
use plan::lir::JoinStage;
use plan::{equality, Equivalence, Id, Lir, LirKind, Mir};
use repr::{ColType, GlobalId, SqlError};
use std::collections::BTreeSet;
use std::ops::Range;

/// An input as the planner sees it. Columns are those of all inputs side by side.
struct Side {
    columns: Range<usize>,
    unique: Vec<Vec<usize>>,
    /// For a catalog relation below steps that may be done after the look-up: the relation and the steps.
    relation: Option<(GlobalId, Mir, Chain)>,
    /// The relation's arrangements whose keys the steps pass on.
    indexes: Vec<Arrangement>,
}

struct Arrangement {
    index: GlobalId,
    /// Over the columns of the join.
    key: Vec<Scalar>,
    /// Over the relation's own.
    own_key: Vec<Scalar>,
}

/// One key expression of a stage.
#[derive(Clone)]
struct KeyPart {
    stream: Scalar,
    lookup: Scalar,
    null_safe: bool,
}

/// How far the classes are established.
struct Progress<'a> {
    classes: &'a [Equivalence],
    /// For each class the expressions known to be equal to each other on the rows so far.
    equal: Vec<BTreeSet<usize>>,
}

impl<'a> Progress<'a> {
    fn new(classes: &'a [Equivalence], start: &Range<usize>) -> Progress<'a> {
        let first = |e: &Equivalence| e.exprs.iter().position(|x| within(x, |c| start.contains(&c)));
        Progress { classes, equal: classes.iter().map(|e| first(e).into_iter().collect()).collect() }
    }

    /// Adds the input `side` to rows with the columns `bound`: the keys of the stage, and equalities to be checked beside them.
    fn add(&mut self, bound: &BTreeSet<usize>, side: &Range<usize>, types: &[ColType]) -> Result<(Vec<KeyPart>, Vec<Scalar>), SqlError> {
        let (mut keys, mut checks) = (Vec::new(), Vec::new());
        for (class, equal) in self.classes.iter().zip(&mut self.equal) {
            let old = equal.first().map(|i| &class.exprs[*i]);
            let mut representative = old;
            for (i, x) in class.exprs.iter().enumerate() {
                if equal.contains(&i) || !within(x, |c| bound.contains(&c) || side.contains(&c)) {
                    continue;
                }
                match (old, representative) {
                    (Some(stream), _) if !x.support().is_empty() && within(x, |c| side.contains(&c)) => {
                        keys.push(KeyPart { stream: stream.clone(), lookup: x.clone(), null_safe: class.null_safe });
                    }
                    (_, Some(r)) => checks.push(equality::equality(r.clone(), x.clone(), &x.typ(types).ty, class.null_safe)?),
                    (_, None) => representative = Some(x),
                }
                equal.insert(i);
            }
        }
        Ok((keys, checks))
    }

    /// Columns that classes will still ask for.
    fn needed(&self) -> BTreeSet<usize> {
        let mut columns = BTreeSet::new();
        for (class, equal) in self.classes.iter().zip(&self.equal) {
            if equal.len() == class.exprs.len() {
                continue;
            }
            for (i, x) in class.exprs.iter().enumerate() {
                if !equal.contains(&i) || equal.first() == Some(&i) {
                    columns.extend(x.support());
                }
            }
        }
        columns
    }
}

fn within(x: &Scalar, has: impl Fn(usize) -> bool) -> bool {
    x.support().into_iter().all(has)
}

impl Planner<'_> {
    /// Plans a join under `chain`, which is over the concatenated columns.
    pub(super) fn join(&mut self, inputs: &[Mir], classes: &[Equivalence], mut chain: Chain) -> Result<Lir, SqlError> {
        let types: Vec<ColType> = inputs.iter().flat_map(Mir::types).collect();
        if inputs.len() < 2 {
            return self.lone(inputs, classes, &types, chain);
        }
        let sides = self.sides(inputs);
        let order = order(&sides, classes);
        // Inputs that are looked up in an arrangement are the bare relation.
        let mut bare: Vec<Option<Mir>> = vec![None; inputs.len()];

        let start = order[0];
        let mut progress = Progress::new(classes, &sides[start].columns);
        let mut have: Vec<usize> = sides[start].columns.clone().collect();
        let mut bound: BTreeSet<usize> = have.iter().copied().collect();
        let mut stages = Vec::new();
        // Conditions on the time have a node of their own.
        let apart = !chain.is_timeless();
        let mut out_types = Vec::new();
        for (step, &next) in order.iter().enumerate().skip(1) {
            let side = &sides[next];
            let (mut parts, mut checks) = progress.add(&bound, &side.columns, &types)?;
            let arranged = self.use_arrangement(side, &mut parts, &mut checks, &types)?;
            if parts.is_empty() {
                self.notice_cross(inputs, &sides, &order[..step], next);
            }
            let stream = Columns(&have);
            let stream_key = parts.iter().map(|p| stream.local(&p.stream)).collect();
            let offset = side.columns.start;
            let lookup_key = match arranged {
                Some(a) => a.own_key.clone(),
                None => parts.iter().map(|p| permuted(&p.lookup, |c| c - offset)).collect(),
            };
            let null_safe = parts.iter().map(|p| p.null_safe).collect();

            let all: Vec<usize> = have.iter().copied().chain(side.columns.clone()).collect();
            bound.extend(side.columns.clone());
            checks.extend(chain.take_predicates(|s| s.is_subset(&bound)));
            let columns = Columns(&all);
            let mut here = Chain::new(all.len());
            let mut stage_types: Vec<ColType> = all.iter().map(|c| types[*c].clone()).collect();
            if let (Some(_), Some((_, relation, steps))) = (arranged, &side.relation) {
                // The side's own steps come first: they make its columns from the relation's.
                let n = have.len();
                here = steps.beside(n);
                stage_types.truncate(n);
                stage_types.extend(relation.types());
                bare[next] = Some(relation.clone());
            }
            here.filter(&checks.iter().map(|p| columns.local(p)).collect::<Vec<_>>());
            let last = step + 1 == order.len();
            let mfp = if last && !apart {
                chain.reinput(all.len(), |c| columns.place(c));
                here.then(&chain);
                here.finish()
            } else {
                let mut needed = progress.needed();
                needed.extend(chain.input_support());
                let kept: Vec<usize> = all.iter().copied().filter(|c| needed.contains(c)).collect();
                here.project(&kept.iter().map(|c| columns.place(*c)).collect::<Vec<_>>());
                have = kept;
                here.finish()
            };
            out_types = mfp.output_types(&stage_types);
            stages.push(JoinStage { lookup: next, stream_key, lookup_key, null_safe, mfp });
        }
        let mut lowered = Vec::new();
        for (i, bare) in inputs.iter().zip(&bare) {
            lowered.push(self.node(bare.as_ref().unwrap_or(i))?);
        }
        let join = self.lir(out_types, LirKind::Join { inputs: lowered, start, stages });
        if !apart {
            return Ok(join);
        }
        let rest = Columns(&have);
        chain.reinput(have.len(), |c| rest.place(c));
        self.mfp(join, chain.finish())
    }

    /// A join of one input is a filter, of none the relation of one empty row.
    fn lone(&mut self, inputs: &[Mir], classes: &[Equivalence], types: &[ColType], chain: Chain) -> Result<Lir, SqlError> {
        let mut own = Chain::new(types.len());
        for class in classes {
            for x in class.exprs.iter().skip(1) {
                own.filter(&[equality::equality(class.exprs[0].clone(), x.clone(), &x.typ(types).ty, class.null_safe)?]);
            }
        }
        own.then(&chain);
        let input = match inputs.first() {
            Some(input) => self.node(input)?,
            None => self.node(&Mir::unit())?,
        };
        self.mfp(input, own.finish())
    }

    fn sides(&self, inputs: &[Mir]) -> Vec<Side> {
        let mut at = 0;
        let mut sides = Vec::new();
        for i in inputs {
            let columns = at..at + i.arity();
            let unique = unique_keys(i, &self.keys).into_iter().map(|k| k.into_iter().map(|c| c + at).collect()).collect();
            let (base, steps) = Chain::peel(i);
            let relation = match base {
                Mir::Get { id: Id::Global(g), .. } if steps.is_movable() => Some((*g, base.clone(), steps)),
                _ => None,
            };
            let mut indexes = Vec::new();
            if let Some((g, _, steps)) = &relation {
                for (index, own_key) in (self.indexes)(*g) {
                    // The column in which the steps show a column of the relation.
                    let shown = |c: usize| steps.project.iter().position(|p| *p == c);
                    if !own_key.is_empty() && own_key.iter().all(|k| within(k, |c| shown(c).is_some())) {
                        let key = own_key.iter().map(|k| permuted(k, |c| at + shown(c).unwrap_or(0))).collect();
                        indexes.push(Arrangement { index, key, own_key });
                    }
                }
            }
            at = columns.end;
            sides.push(Side { columns, unique, relation, indexes });
        }
        sides
    }

    /// Puts the key into the order of an arrangement at hand, the longest one that fits. What it leaves out is checked after the look-up.
    fn use_arrangement<'s>(
        &mut self,
        side: &'s Side,
        parts: &mut Vec<KeyPart>,
        checks: &mut Vec<Scalar>,
        types: &[ColType],
    ) -> Result<Option<&'s Arrangement>, SqlError> {
        let fits = |key: &[Scalar]| key.iter().map(|k| parts.iter().position(|p| p.lookup == *k)).collect::<Option<Vec<usize>>>();
        let fitting = side.indexes.iter().filter_map(|a| Some((a, fits(&a.key)?)));
        let (Some((arrangement, chosen)), Some((object, _, _))) = (fitting.max_by_key(|(_, c)| c.len()), &side.relation) else { return Ok(None) };
        self.used.insert((*object, arrangement.index));
        for (i, p) in parts.iter().enumerate() {
            if !chosen.contains(&i) {
                checks.push(equality::equality(p.stream.clone(), p.lookup.clone(), &p.lookup.typ(types).ty, p.null_safe)?);
            }
        }
        *parts = chosen.into_iter().map(|i| parts[i].clone()).collect();
        Ok(Some(arrangement))
    }

    fn notice_cross(&mut self, inputs: &[Mir], sides: &[Side], before: &[usize], next: usize) {
        let single = |i: &usize| sides[*i].unique.iter().any(Vec::is_empty);
        if self.ctx.one_off || single(&next) || before.iter().all(single) {
            return;
        }
        let mut left: Vec<String> = before.iter().filter(|i| !single(i)).map(|i| self.names(&inputs[*i])).collect();
        left.dedup();
        let right = self.names(&inputs[next]);
        self.notices.push(format!("cross join of {} with {right}: every change is combined with all rows of the other side", left.join(", ")));
    }
}

/// Positions of columns in a row that holds some of them.
struct Columns<'a>(&'a [usize]);

impl Columns<'_> {
    fn place(&self, column: usize) -> usize {
        // A column that was dropped is not asked for: `needed` kept all others.
        self.0.iter().position(|c| *c == column).unwrap_or(0)
    }
    fn local(&self, s: &Scalar) -> Scalar {
        permuted(s, |c| self.place(c))
    }
}

fn permuted(s: &Scalar, place: impl Fn(usize) -> usize) -> Scalar {
    let mut s = s.clone();
    s.permute(&place);
    s
}

/// How good it is to look an input up next; greater is better.
type Merit = (bool, bool, bool, usize);

/// The classes as the search for an order asks for them: a hundred inputs make a million questions.
struct Graph {
    /// Of each class: which inputs each expression reads.
    reads: Vec<Vec<BTreeSet<usize>>>,
    /// Of each input: the expressions over it alone, each with its class.
    own: Vec<Vec<(usize, Scalar)>>,
    /// Of each input: for each unique key, then for each arrangement, which of its own expressions are its parts.
    unique: Vec<Vec<Vec<Vec<usize>>>>,
    arranged: Vec<Vec<Vec<Vec<usize>>>>,
}

impl Graph {
    fn new(sides: &[Side], classes: &[Equivalence]) -> Graph {
        let side_of = |c: usize| sides.iter().position(|s| s.columns.contains(&c));
        let reads: Vec<Vec<BTreeSet<usize>>> =
            classes.iter().map(|e| e.exprs.iter().map(|x| x.support().into_iter().filter_map(side_of).collect()).collect()).collect();
        let mut own: Vec<Vec<(usize, Scalar)>> = vec![Vec::new(); sides.len()];
        for (c, class) in classes.iter().enumerate() {
            for (x, r) in class.exprs.iter().zip(&reads[c]) {
                if let (1, Some(side)) = (r.len(), r.first()) {
                    own[*side].push((c, x.clone()));
                }
            }
        }
        let places = |side: usize, k: &Scalar| -> Vec<usize> { (0..own[side].len()).filter(|i| own[side][*i].1 == *k).collect() };
        let of = |side: usize, key: Vec<Scalar>| -> Vec<Vec<usize>> { key.iter().map(|k| places(side, k)).collect() };
        let unique = |(i, s): (usize, &Side)| s.unique.iter().map(|u| of(i, u.iter().map(|c| Scalar::Column(*c)).collect())).collect();
        let arranged = |(i, s): (usize, &Side)| s.indexes.iter().map(|a| of(i, a.key.clone())).collect();
        Graph { unique: sides.iter().enumerate().map(unique).collect(), arranged: sides.iter().enumerate().map(arranged).collect(), reads, own }
    }

    /// Which classes have an expression over the inputs so far.
    fn active(&self, bound: &[bool]) -> Vec<bool> {
        self.reads.iter().map(|class| class.iter().any(|r| r.iter().all(|s| bound[*s]))).collect()
    }

    fn merit(&self, side: usize, active: &[bool]) -> Merit {
        let is_key = |i: &usize| active[self.own[side][*i].0];
        let bound = |key: &Vec<Vec<usize>>| key.iter().all(|part| part.iter().any(is_key));
        let keys = (0..self.own[side].len()).filter(is_key).count();
        let single = self.unique[side].iter().any(Vec::is_empty);
        (keys > 0 || single, self.unique[side].iter().any(bound), self.arranged[side].iter().any(bound), keys)
    }
}

/// A greedy order from each start; the best of them: fewest cross products, then most unique look-ups, then most arrangements.
fn order(sides: &[Side], classes: &[Equivalence]) -> Vec<usize> {
    let graph = Graph::new(sides, classes);
    let mut best: Option<((usize, usize, usize), Vec<usize>)> = None;
    for start in 0..sides.len() {
        let mut bound = vec![false; sides.len()];
        bound[start] = true;
        let mut order = vec![start];
        let mut score = (0, 0, 0);
        while order.len() < sides.len() {
            let active = graph.active(&bound);
            let rest = (0..sides.len()).filter(|i| !bound[*i]);
            // Of equals the first: `max_by_key` would take the last.
            let Some((next, m)) = rest.map(|i| (i, graph.merit(i, &active))).max_by_key(|(i, m)| (*m, std::cmp::Reverse(*i))) else { break };
            score.0 += usize::from(m.0);
            score.1 += usize::from(m.1);
            score.2 += usize::from(m.2);
            bound[next] = true;
            order.push(next);
        }
        if best.as_ref().is_none_or(|(s, _)| score > *s) {
            best = Some((score, order));
        }
    }
    best.map_or_else(|| (0..sides.len()).collect(), |(_, o)| o)
}
