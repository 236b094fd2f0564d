//! Which rows of a relation a plan's result depends on, where they can be told by their keys.
//!
//! ```text
//!   Join on o.customer = c.id                 o: id 7                 (o.id = 7 binds it)
//!     Filter o.id = 7, o.customer = 3         c: id 3                 (the class hands the 3 over)
//!       Get o
//!     Get c
//! ```
//!
//! Two passes. Upwards: the values that a column can have, whatever the relations hold (from literals only). Downwards: the values that
//! matter to who reads the node. At a relation whose unique key is bound in all its columns, only rows under these keys matter, present or
//! not: while none of them comes, goes or changes, the plan's result does not change.
//!
//! The answer may name too many rows, never too few. Not here: keys as bytes, conflicts (`adapter`).

use crate::physical::peek::literals_of;
use expr::eval::eval_row;
use expr::{EvalCtx, Scalar};
use plan::{Equivalence, Id, LocalId, Mir};
use repr::{ColType, GlobalId, Value};
use std::collections::{BTreeMap, HashMap};

/// Per relation, by the columns of a key, the keys that are read; `None` where rows matter that no key tells.
pub type Reads = BTreeMap<GlobalId, Option<BTreeMap<Vec<usize>, Vec<Vec<Value>>>>>;

/// Values of one column, and keys of one read, beyond which the relation counts as read whole.
const VALUES_MAX: usize = 10_000;

/// By column the values it can have or that matter; `None`: any.
type Domain = Vec<Option<Vec<Value>>>;

/// What `mir` reads. `keys`: the unique keys of a relation, whose rows with a NULL in one are not under it.
pub fn reads(mir: &Mir, ctx: &EvalCtx, keys: &dyn Fn(GlobalId) -> Vec<Vec<usize>>) -> Reads {
    let mut walk = Walk { ctx, keys, domains: HashMap::new(), needs: HashMap::new(), reads: BTreeMap::new() };
    walk.visit(mir, vec![None; mir.arity()]);
    walk.reads
}

struct Walk<'a> {
    ctx: &'a EvalCtx,
    keys: &'a dyn Fn(GlobalId) -> Vec<Vec<usize>>,
    /// Of bindings in scope.
    domains: HashMap<LocalId, Domain>,
    /// Of bindings, over all uses seen.
    needs: HashMap<LocalId, Domain>,
    reads: Reads,
}

impl Walk<'_> {
    /// The values that the columns of a node can have.
    fn domain(&mut self, mir: &Mir) -> Domain {
        match mir {
            Mir::Constant { rows: Ok(rows), types } if rows.len() <= VALUES_MAX => {
                (0..types.len()).map(|c| Some(rows.iter().map(|r| r.0[c].clone()).collect())).collect()
            }
            Mir::Get { id: Id::Local(id), types, .. } => self.domains.get(id).cloned().unwrap_or_else(|| vec![None; types.len()]),
            Mir::Constant { types, .. } | Mir::Get { types, .. } => vec![None; types.len()],
            Mir::Let { id, value, body } => {
                let domain = self.domain(value);
                self.domains.insert(*id, domain);
                self.domain(body)
            }
            Mir::LetRec { body, .. } => self.domain(body),
            Mir::Project { input, outputs } => {
                let domain = self.domain(input);
                outputs.iter().map(|c| domain[*c].clone()).collect()
            }
            Mir::Map { input, scalars } => {
                let mut domain = self.domain(input);
                let types = mir.types();
                for s in scalars {
                    let of = self.of_scalar(s, &domain, &types);
                    domain.push(of);
                }
                domain
            }
            Mir::Filter { input, predicates } => {
                let mut domain = self.domain(input);
                bind(&mut domain, predicates, &input.types());
                domain
            }
            Mir::Join { inputs, equivalences } => {
                let mut domain: Domain = inputs.iter().flat_map(|i| self.domain(i)).collect();
                self.equate(&mut domain, equivalences, &mir.types());
                domain
            }
            Mir::Reduce { input, group_key, aggregates } => {
                let (domain, types) = (self.domain(input), input.types());
                let keys: Domain = group_key.iter().map(|k| self.of_scalar(k, &domain, &types)).collect();
                keys.into_iter().chain(aggregates.iter().map(|_| None)).collect()
            }
            Mir::Union { inputs } => {
                let mut all = self.domain(&inputs[0]);
                for i in &inputs[1..] {
                    let more = self.domain(i);
                    all = either(all, more);
                }
                all
            }
            Mir::TopK { input, .. } | Mir::Negate { input } | Mir::Threshold { input } => self.domain(input),
            Mir::FlatMap { input, .. } | Mir::Window { input, .. } => {
                let mut domain = self.domain(input);
                domain.resize(mir.arity(), None);
                domain
            }
        }
    }

    /// Notes what is read below a node of which only rows with values in `need` matter.
    fn visit(&mut self, mir: &Mir, mut need: Domain) {
        match mir {
            Mir::Constant { .. } => {}
            Mir::Get { id: Id::Global(id), .. } => self.read(*id, &need),
            Mir::Get { id: Id::Local(id), .. } => {
                let all = match self.needs.remove(id) {
                    Some(before) => either(before, need),
                    None => need,
                };
                self.needs.insert(*id, all);
            }
            Mir::Let { id, value, body } => {
                let domain = self.domain(value);
                self.domains.insert(*id, domain);
                self.visit(body, need);
                // One that nobody reads is computed all the same, perhaps.
                let need = self.needs.remove(id).unwrap_or_else(|| vec![None; value.arity()]);
                self.visit(value, need);
            }
            Mir::LetRec { bindings, body, .. } => {
                self.visit(body, need);
                for b in bindings {
                    self.visit(&b.value, vec![None; b.types.len()]);
                }
            }
            Mir::Project { input, outputs } => {
                let mut below = vec![None; input.arity()];
                for (values, c) in need.into_iter().zip(outputs) {
                    meet(&mut below[*c], values);
                }
                self.visit(input, below);
            }
            Mir::Map { input, scalars } => {
                let arity = input.arity();
                // From the last on, since one may read the ones before it.
                for (n, s) in scalars.iter().enumerate().rev() {
                    if let (Scalar::Column(c), Some(values)) = (s, need[arity + n].take()) {
                        meet(&mut need[*c], Some(values));
                    }
                }
                need.truncate(arity);
                self.visit(input, need);
            }
            Mir::Filter { input, predicates } => {
                bind(&mut need, predicates, &input.types());
                self.visit(input, need);
            }
            Mir::Join { inputs, equivalences } => {
                let domain: Domain = inputs.iter().flat_map(|i| self.domain(i)).collect();
                need.iter_mut().zip(domain).for_each(|(n, d)| meet(n, d));
                self.equate(&mut need, equivalences, &mir.types());
                for i in inputs {
                    let rest = need.split_off(i.arity());
                    self.visit(i, std::mem::replace(&mut need, rest));
                }
            }
            Mir::Reduce { input, group_key, .. } => {
                let mut below = vec![None; input.arity()];
                for (k, values) in group_key.iter().zip(need) {
                    if let Scalar::Column(c) = k {
                        meet(&mut below[*c], values);
                    }
                }
                self.visit(input, below);
            }
            // Groups and partitions stand or fall together.
            Mir::TopK { input, group_key: columns, .. } | Mir::Window { input, partition: columns, .. } => {
                need.truncate(input.arity());
                for (c, values) in need.iter_mut().enumerate() {
                    if !columns.contains(&c) {
                        *values = None;
                    }
                }
                self.visit(input, need);
            }
            Mir::FlatMap { input, .. } => {
                need.truncate(input.arity());
                self.visit(input, need);
            }
            Mir::Negate { input } | Mir::Threshold { input } => self.visit(input, need),
            Mir::Union { inputs } => inputs.iter().for_each(|i| self.visit(i, need.clone())),
        }
    }

    fn read(&mut self, id: GlobalId, need: &Domain) {
        let bound = (self.keys)(id).into_iter().find_map(|key| Some((combinations(&key, need)?, key)));
        let entry = self.reads.entry(id).or_insert_with(|| Some(BTreeMap::new()));
        match (bound, entry) {
            (Some((rows, key)), Some(keys)) => keys.entry(key).or_default().extend(rows),
            (None, entry) => *entry = None,
            (Some(_), None) => {}
        }
    }

    /// The values of an expression over columns of which some are bound.
    fn of_scalar(&self, s: &Scalar, domain: &Domain, types: &[ColType]) -> Option<Vec<Value>> {
        match s {
            Scalar::Column(c) => domain[*c].clone(),
            Scalar::Literal(v, _) => Some(vec![v.clone()]),
            s if crate::transform::is_movable(s) => {
                let support = s.support();
                let (column, more) = (support.iter().next()?, support.len() > 1);
                if more {
                    return None;
                }
                let mut row = vec![Value::Null; types.len()];
                let values = domain[*column].as_ref()?;
                values
                    .iter()
                    .map(|v| {
                        row[*column] = v.clone();
                        eval_row(s, &row, types, self.ctx).ok()
                    })
                    .collect()
            }
            _ => None,
        }
    }

    /// Members of a class have the values of the one with the fewest; where one is a column, so has it.
    fn equate(&self, domain: &mut Domain, classes: &[Equivalence], types: &[ColType]) {
        // What one class tells may be what another needs.
        for _ in 0..2 {
            for class in classes {
                let known = class.exprs.iter().filter_map(|e| self.of_scalar(e, domain, types)).min_by_key(Vec::len);
                // Rows with a NULL have no key, but match one another here.
                let known = known.filter(|values| !class.null_safe || !values.iter().any(Value::is_null));
                for e in &class.exprs {
                    if let (Scalar::Column(c), Some(_)) = (e, &known) {
                        meet(&mut domain[*c], known.clone());
                    }
                }
            }
        }
    }
}

/// Narrows columns by what predicates bind them to.
fn bind(domain: &mut Domain, predicates: &[Scalar], types: &[ColType]) {
    for (c, values) in domain.iter_mut().enumerate() {
        for p in predicates {
            meet(values, literals_of(p, &Scalar::Column(c), types).filter(|v| v.len() <= VALUES_MAX));
        }
    }
}

/// Both hold: the shorter list is the narrower one, and either is right.
fn meet(a: &mut Option<Vec<Value>>, b: Option<Vec<Value>>) {
    if b.as_ref().is_some_and(|b| a.as_ref().is_none_or(|a| b.len() < a.len())) {
        *a = b;
    }
}

fn either(a: Domain, b: Domain) -> Domain {
    let both = |(a, b): (Option<Vec<Value>>, Option<Vec<Value>>)| match (a, b) {
        (Some(mut a), Some(b)) if a.len() + b.len() <= VALUES_MAX => {
            a.extend(b);
            Some(a)
        }
        _ => None,
    };
    a.into_iter().zip(b).map(both).collect()
}

/// All keys of the values, if all columns have some and they are not too many. A key with NULL is no key.
fn combinations(key: &[usize], values: &Domain) -> Option<Vec<Vec<Value>>> {
    let mut rows: Vec<Vec<Value>> = vec![vec![]];
    for c in key {
        let values: Vec<&Value> = values[*c].as_ref()?.iter().filter(|v| !v.is_null()).collect();
        if rows.len() * values.len() > VALUES_MAX {
            return None;
        }
        rows = rows.iter().flat_map(|r| values.iter().map(|v| r.iter().cloned().chain([(*v).clone()]).collect())).collect();
    }
    Some(rows)
}
