//! Chains of Map, Filter and Project as one `Mfp`.
//!
//! Steps are added in the order in which they happen, from the input upwards. Columns are looked through: a step names
//! the columns of the step before it, the chain keeps expressions over the input and the maps.

use expr::Scalar;
use plan::{Mfp, Mir};
use repr::ColType;
use std::collections::BTreeSet;

/// A chain under construction.
#[derive(Clone, Debug)]
pub struct Chain {
    input_arity: usize,
    maps: Vec<Scalar>,
    predicates: Vec<(usize, Scalar)>,
    /// The present output: positions among input columns and maps.
    pub project: Vec<usize>,
}

impl Chain {
    pub fn new(input_arity: usize) -> Chain {
        Chain { input_arity, maps: vec![], predicates: vec![], project: (0..input_arity).collect() }
    }

    /// Strips the Maps, Filters and Projects from the top of `mir`: what is below them, and they as a chain over it.
    pub fn peel(mir: &Mir) -> (&Mir, Chain) {
        match mir {
            Mir::Map { input, scalars } => {
                let (base, mut chain) = Chain::peel(input);
                chain.map(scalars);
                (base, chain)
            }
            Mir::Filter { input, predicates } => {
                let (base, mut chain) = Chain::peel(input);
                chain.filter(predicates);
                (base, chain)
            }
            Mir::Project { input, outputs } => {
                let (base, mut chain) = Chain::peel(input);
                chain.project(outputs);
                (base, chain)
            }
            other => (other, Chain::new(other.arity())),
        }
    }

    pub fn map(&mut self, scalars: &[Scalar]) {
        for s in scalars {
            let s = self.rebased(s);
            match s {
                Scalar::Column(c) => self.project.push(c),
                s => {
                    self.project.push(self.input_arity + self.maps.len());
                    self.maps.push(s);
                }
            }
        }
    }

    pub fn filter(&mut self, predicates: &[Scalar]) {
        for p in predicates {
            let p = self.rebased(p);
            self.conjunct(p);
        }
    }

    fn conjunct(&mut self, p: Scalar) {
        match p {
            Scalar::And(xs) => xs.into_iter().for_each(|x| self.conjunct(x)),
            Scalar::Literal(repr::Value::Bool(true), _) => {}
            p => {
                // A predicate that cannot fail is evaluated as soon as its columns are there.
                let all = self.input_arity + self.maps.len();
                let at = if p.can_fail() { all } else { p.support().last().map_or(0, |c| c + 1).max(self.input_arity) };
                if !self.predicates.contains(&(at, p.clone())) {
                    self.predicates.push((at, p));
                }
            }
        }
    }

    pub fn project(&mut self, outputs: &[usize]) {
        self.project = outputs.iter().map(|o| self.project[*o]).collect();
    }

    fn rebased(&self, s: &Scalar) -> Scalar {
        let mut s = s.clone();
        s.permute(&|c| self.project[c]);
        s
    }

    /// Adds all steps of another chain, which is over this one's output.
    pub fn then(&mut self, other: &Chain) {
        let at = |c: usize, own: &Chain, base: usize| if c < other.input_arity { own.project[c] } else { base + c - other.input_arity };
        let base = self.input_arity + self.maps.len();
        for m in &other.maps {
            let mut m = m.clone();
            m.permute(&|c| at(c, self, base));
            self.maps.push(m);
        }
        for (n, p) in &other.predicates {
            let mut p = p.clone();
            p.permute(&|c| at(c, self, base));
            self.predicates.push((base + n - other.input_arity, p));
        }
        self.project = other.project.iter().map(|c| at(*c, self, base)).collect();
    }

    /// Whether a map or predicate reads the input column; merely passing it on does not count.
    pub fn reads(&self, column: usize) -> bool {
        self.maps.iter().chain(self.predicates.iter().map(|(_, p)| p)).any(|s| s.support().contains(&column))
    }

    /// The same steps on an input that has `n` columns more in front, which they pass on.
    pub fn beside(&self, n: usize) -> Chain {
        let mut moved = self.clone();
        moved.reinput(self.input_arity + n, |c| c + n);
        moved.project = (0..n).chain(moved.project).collect();
        moved
    }

    /// Whether the steps may be done on other rows than they are: nothing in them fails or asks for the time.
    pub fn is_movable(&self) -> bool {
        self.is_timeless() && self.maps.iter().chain(self.predicates.iter().map(|(_, p)| p)).all(crate::transform::is_movable)
    }

    pub fn has_predicates(&self) -> bool {
        !self.predicates.is_empty()
    }

    /// The chain as relational steps over `input`.
    pub fn apply(&self, input: Mir) -> Mir {
        let mfp = self.finish();
        let mut mir = input;
        let mut done = mfp.input_arity;
        for (at, p) in mfp.predicates {
            if at > done {
                mir = mir.map(mfp.maps[done - mfp.input_arity..at - mfp.input_arity].to_vec());
                done = at;
            }
            mir = match mir {
                Mir::Filter { input, mut predicates } => {
                    predicates.push(p);
                    Mir::Filter { input, predicates }
                }
                other => other.filter(vec![p]),
            };
        }
        mir.map(mfp.maps[done - mfp.input_arity..].to_vec()).project(mfp.project)
    }

    /// Whether no predicate depends on the time.
    pub fn is_timeless(&self) -> bool {
        !self.predicates.iter().any(|(_, p)| crate::temporal::reads_time(p))
    }

    /// Removes and returns the predicates over input columns alone that cannot fail and satisfy `take`.
    pub fn take_predicates(&mut self, take: impl Fn(&BTreeSet<usize>) -> bool) -> Vec<Scalar> {
        let n = self.input_arity;
        let (taken, kept) = std::mem::take(&mut self.predicates).into_iter().partition(|(_, p)| {
            let s = p.support();
            !p.can_fail() && !crate::temporal::reads_time(p) && s.iter().all(|c| *c < n) && take(&s)
        });
        self.predicates = kept;
        taken.into_iter().map(|(_, p): (usize, Scalar)| p).collect()
    }

    /// The input columns that anything in the chain reads.
    pub fn input_support(&self) -> BTreeSet<usize> {
        let used = self.used_maps();
        let mut s: BTreeSet<usize> = self.project.iter().copied().collect();
        s.extend(self.predicates.iter().flat_map(|(_, p)| p.support()));
        s.extend(used.iter().flat_map(|m| self.maps[*m].support()));
        s.retain(|c| *c < self.input_arity);
        s
    }

    /// Moves the chain to an input of other arity, whose column `place(c)` is the old column `c`.
    pub fn reinput(&mut self, arity: usize, place: impl Fn(usize) -> usize) {
        let old = self.input_arity;
        let moved = |c: usize| if c < old { place(c) } else { c - old + arity };
        self.maps.iter_mut().for_each(|m| m.permute(&moved));
        for (n, p) in &mut self.predicates {
            p.permute(&moved);
            *n = *n - old + arity;
        }
        self.project.iter_mut().for_each(|c| *c = moved(*c));
        self.input_arity = arity;
    }

    /// Maps that the output, a predicate or a used map reads.
    fn used_maps(&self) -> BTreeSet<usize> {
        let n = self.input_arity;
        let mut used: BTreeSet<usize> = self.project.iter().filter(|c| **c >= n).map(|c| c - n).collect();
        used.extend(self.predicates.iter().flat_map(|(_, p)| p.support()).filter(|c| *c >= n).map(|c| c - n));
        for m in (0..self.maps.len()).rev() {
            if used.contains(&m) {
                used.extend(self.maps[m].support().into_iter().filter(|c| *c >= n).map(|c| c - n));
            }
        }
        used
    }

    /// The finished chain. Maps that nobody reads are gone.
    pub fn finish(&self) -> Mfp {
        let n = self.input_arity;
        let used: Vec<usize> = self.used_maps().into_iter().collect();
        // The number of used maps before map `m`.
        let rank = |m: usize| used.partition_point(|u| *u < m);
        let moved = |c: usize| if c < n { c } else { n + rank(c - n) };
        let mut maps: Vec<Scalar> = used.iter().map(|m| self.maps[*m].clone()).collect();
        maps.iter_mut().for_each(|m| m.permute(&moved));
        let mut predicates = self.predicates.clone();
        for (at, p) in &mut predicates {
            p.permute(&moved);
            *at = n + rank(*at - n);
        }
        predicates.sort_by_key(|(at, _)| *at);
        Mfp { input_arity: n, maps, predicates, lower: vec![], upper: vec![], project: self.project.iter().map(|c| moved(*c)).collect() }
    }

    /// The output types.
    pub fn types(&self, input: &[ColType]) -> Vec<ColType> {
        self.finish().output_types(input)
    }
}
