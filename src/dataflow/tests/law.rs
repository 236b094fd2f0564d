//! The law: a maintained view, at every time, is the plan evaluated from scratch on the inputs at that time.
//!
//! Random plans over two shards of small integers, random histories with retractions that end in undoing everything.
//! Evaluated by the slowest means that can be checked by eye.

mod common;
use common::*;
use dataflow::Command;
use expr::Scalar;
use plan::lir::{LirKind, ReduceKind};
use plan::mir::{Id, LocalId};
use plan::{Export, Import, Lir, Mfp};
use repr::{Diff, GlobalId};
use std::collections::BTreeMap;

struct Rng(u64);
impl Rng {
    fn n(&mut self, m: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % m
    }
}

type Rows = BTreeMap<Vec<i64>, Diff>;

/// A plan of two columns, with its meaning.
enum P {
    Get(usize),
    Project(Box<P>, [usize; 2]),
    Union(Box<P>, Box<P>),
    /// The rows of the first whose first column is not in the second's.
    Anti(Box<P>, Box<P>),
    /// (a.0, b.1) where a.1 = b.0.
    Join(Box<P>, Box<P>),
    Distinct(Box<P>),
    /// (key, aggregate): count(*), count(x), min, max.
    Agg(Box<P>, u32),
    /// (key, chosen one of: count, min, max, count of distinct), all computed together.
    Mixed(Box<P>, usize),
    TopK {
        input: Box<P>,
        by_key: bool,
        desc: bool,
        limit: i64,
        offset: u64,
        ties: bool,
    },
    Reach(Box<P>),
}

fn any(r: &mut Rng, depth: u64) -> P {
    let sub = |r: &mut Rng| Box::new(any(r, depth - 1));
    if depth == 0 {
        return P::Get(r.n(2) as usize);
    }
    match r.n(12) {
        0 => P::Get(r.n(2) as usize),
        1 => P::Project(sub(r), [r.n(2) as usize, r.n(2) as usize]),
        2 => P::Union(sub(r), sub(r)),
        3 => P::Anti(sub(r), sub(r)),
        4 | 5 => P::Join(sub(r), sub(r)),
        6 => P::Distinct(sub(r)),
        7 | 8 => P::Agg(sub(r), [2803, 2147, 2131, 2115][r.n(4) as usize]),
        11 => P::Mixed(sub(r), r.n(4) as usize),
        9 => {
            let (by_key, desc, ties) = (r.n(2) == 0, r.n(2) == 0, r.n(3) == 0);
            P::TopK { input: sub(r), by_key, desc, limit: r.n(3) as i64 + 1, offset: r.n(3).saturating_sub(1), ties }
        }
        _ => P::Reach(Box::new(any(r, 0))),
    }
}

/// A plan in the making: parts of it may be views of their own, imported by an arrangement.
struct Build<'a> {
    db: &'a mut Db,
    rng: &'a mut Rng,
    shards: [GlobalId; 2],
    next: u64,
    imports: Vec<Import>,
    indexes: Vec<GlobalId>,
}

impl Build<'_> {
    /// The part as it is, or as a view of its own with ticks between its creation and the reader's.
    fn part(&mut self, p: &P) -> Lir {
        if self.rng.n(4) > 0 {
            return plan(p, self);
        }
        let outer = std::mem::take(&mut self.imports);
        let made = plan(p, self);
        let key = self.rng.n(2) as usize;
        let (object, index) = (self.db.id(), self.db.id());
        let export = Export::Arrangement { index, on: object, key: vec![Scalar::Column(key)] };
        let mut imports = std::mem::replace(&mut self.imports, outer);
        imports.extend(self.db.imports_of(&made).into_iter().filter(|i| matches!(i, Import::Shard { .. })));
        let desc = self.db.desc(imports, vec![(object, made.clone())], vec![export]);
        self.db.create(desc);
        let import = Import::Arrangement { object, index, key: vec![Scalar::Column(key)], types: made.types.clone() };
        self.imports.push(import);
        self.indexes.push(index);
        lir(made.types, LirKind::Get { id: Id::Global(object) })
    }
}

fn plan(p: &P, b: &mut Build<'_>) -> Lir {
    let shards = b.shards;
    if let P::Reach(_) = p {
        b.next += 1;
    }
    let next = b.next;
    let mut go = |p: &P| b.part(p);
    match p {
        P::Get(i) => get(shards[*i], 2),
        P::Project(a, cols) => project(go(a), cols),
        P::Union(a, b) => {
            let (a, b) = (go(a), go(b));
            union(vec![a, b])
        }
        P::Anti(a, b) => {
            let (a, b) = (go(a), go(b));
            let matched = project(join(a.clone(), &[0], distinct(project(b, &[0])), &[0]), &[0, 1]);
            threshold(union(vec![a, negate(matched)]))
        }
        P::Join(a, b) => {
            let (a, b) = (go(a), go(b));
            project(join(a, &[1], b, &[0]), &[0, 3])
        }
        P::Distinct(a) => distinct(go(a)),
        P::Agg(a, f) => {
            let kind = match f {
                2131 | 2115 => ReduceKind::Hierarchical(vec![agg(def(*f), Some(1))]),
                2803 => ReduceKind::Accumulable(vec![agg(def(*f), None)]),
                _ => ReduceKind::Collated(vec![(vec![0], ReduceKind::Accumulable(vec![agg(def(*f), Some(1))]))]),
            };
            reduce(go(a), &[0], kind, 1)
        }
        P::Mixed(a, column) => {
            let mut distinct = agg(def(2147), Some(1));
            distinct.distinct = true;
            let kind = ReduceKind::Collated(vec![
                (vec![0], ReduceKind::Accumulable(vec![agg(def(2803), None)])),
                (vec![1, 2], ReduceKind::Hierarchical(vec![agg(def(2131), Some(1)), agg(def(2115), Some(1))])),
                (vec![3], ReduceKind::Basic(vec![distinct])),
            ]);
            project(reduce(go(a), &[0], kind, 4), &[0, column + 1])
        }
        P::TopK { input, by_key, desc, limit, offset, ties } => {
            let key: &[usize] = if *by_key { &[0] } else { &[] };
            top_k(go(input), key, &[(1, *desc)], Some(*limit), *offset, *ties)
        }
        P::Reach(a) => {
            let edges = go(a);
            let id = LocalId(next);
            let local = lir(int8(2), LirKind::Get { id: Id::Local(id) });
            let step = project(join(local.clone(), &[1], edges.clone(), &[0]), &[0, 3]);
            let value = distinct(union(vec![edges, step]));
            lir(int8(2), LirKind::LetRec { bindings: vec![(id, value)], limit: None, return_at_limit: false, body: Box::new(local) })
        }
    }
}

fn add(m: &mut Rows, r: Vec<i64>, d: Diff) {
    *m.entry(r).or_default() += d;
}

fn clean(mut m: Rows) -> Rows {
    m.retain(|_, d| *d != 0);
    m
}

fn eval(p: &P, shards: &[Rows]) -> Rows {
    let mut out = Rows::new();
    match p {
        P::Get(i) => return shards[*i].clone(),
        P::Project(a, c) => eval(a, shards).into_iter().for_each(|(r, d)| add(&mut out, vec![r[c[0]], r[c[1]]], d)),
        P::Union(a, b) => {
            for x in [a, b] {
                eval(x, shards).into_iter().for_each(|(r, d)| add(&mut out, r, d));
            }
        }
        P::Anti(a, b) => {
            let b = eval(b, shards);
            return eval(a, shards).into_iter().filter(|(r, _)| !b.keys().any(|x| x[0] == r[0])).collect();
        }
        P::Join(a, b) => {
            let b = eval(b, shards);
            for (x, d) in eval(a, shards) {
                for (y, e) in &b {
                    if x[1] == y[0] {
                        add(&mut out, vec![x[0], y[1]], d * e);
                    }
                }
            }
        }
        P::Distinct(a) => return eval(a, shards).into_keys().map(|r| (r, 1)).collect(),
        P::Agg(a, f) => {
            let mut groups: BTreeMap<i64, Vec<(i64, Diff)>> = BTreeMap::new();
            eval(a, shards).into_iter().for_each(|(r, d)| groups.entry(r[0]).or_default().push((r[1], d)));
            for (k, rows) in groups {
                let v = match f {
                    2803 => rows.iter().map(|r| r.1).sum(),
                    2147 => rows.iter().map(|r| r.1).sum(),
                    2131 => rows.iter().map(|r| r.0).min().unwrap(),
                    _ => rows.iter().map(|r| r.0).max().unwrap(),
                };
                add(&mut out, vec![k, v], 1);
            }
        }
        P::Mixed(a, column) => {
            let mut groups: BTreeMap<i64, Vec<(i64, Diff)>> = BTreeMap::new();
            eval(a, shards).into_iter().for_each(|(r, d)| groups.entry(r[0]).or_default().push((r[1], d)));
            for (k, rows) in groups {
                let xs = || rows.iter().map(|r| r.0);
                let v = [rows.iter().map(|r| r.1).sum(), xs().min().unwrap_or(0), xs().max().unwrap_or(0), rows.len() as i64][*column];
                add(&mut out, vec![k, v], 1);
            }
        }
        P::TopK { input, by_key, desc, limit, offset, ties } => {
            let mut groups: BTreeMap<i64, Vec<Vec<i64>>> = BTreeMap::new();
            for (r, d) in eval(input, shards) {
                for _ in 0..d {
                    groups.entry(if *by_key { r[0] } else { 0 }).or_default().push(r.clone());
                }
            }
            for mut rows in groups.into_values() {
                rows.sort_by_key(|r| (if *desc { -r[1] } else { r[1] }, r.clone()));
                let rows: Vec<_> = rows.into_iter().skip(*offset as usize).collect();
                let end = (*limit as usize).min(rows.len());
                let tail = rows[..end].last().map(|l| rows[end..].iter().take_while(|r| *ties && r[1] == l[1]).count()).unwrap_or(0);
                rows[..end + tail].iter().for_each(|r| add(&mut out, r.clone(), 1));
            }
        }
        P::Reach(a) => {
            let edges: Vec<Vec<i64>> = eval(a, shards).into_keys().collect();
            let mut set: std::collections::BTreeSet<Vec<i64>> = edges.iter().cloned().collect();
            loop {
                let new: Vec<Vec<i64>> = set.iter().flat_map(|x| edges.iter().filter(|e| e[0] == x[1]).map(|e| vec![x[0], e[1]])).collect();
                let before = set.len();
                set.extend(new);
                if set.len() == before {
                    break;
                }
            }
            return set.into_iter().map(|r| (r, 1)).collect();
        }
    }
    clean(out)
}

fn run(seed: u64, workers: usize) {
    let mut r = Rng(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
    let p = any(&mut r, 3);
    let mut db = Db::new(workers);
    let shards = [db.shard(int8(2)), db.shard(int8(2))];
    let mut state = [Rows::new(), Rows::new()];
    let change = |r: &mut Rng, state: &mut [Rows; 2], drain: bool| -> Vec<(GlobalId, Vec<(Row, Diff)>)> {
        let mut out = vec![];
        for (s, rows) in state.iter_mut().enumerate() {
            let mut ups: Vec<(Vec<i64>, Diff)> = vec![];
            if drain {
                ups.extend(rows.iter().map(|(x, d)| (x.clone(), -d)));
            } else {
                for _ in 0..r.n(5) {
                    let live: Vec<Vec<i64>> = rows.keys().cloned().collect();
                    if r.n(3) == 0 && !live.is_empty() {
                        let x = live[r.n(live.len() as u64) as usize].clone();
                        ups.push((x.clone(), -1));
                        add(rows, x, -1);
                    } else {
                        let x = vec![r.n(5) as i64, r.n(5) as i64];
                        ups.push((x.clone(), 1));
                        add(rows, x, 1);
                    }
                    rows.retain(|_, d| *d != 0);
                }
            }
            if drain {
                rows.clear();
            }
            out.push((shards[s], ups.into_iter().map(|(x, d)| (row(&x), d)).collect()));
        }
        out
    };
    let first = change(&mut r, &mut state, false);
    db.tick(first);
    let mut rng = Rng(seed | 1 << 40);
    let mut b = Build { db: &mut db, rng: &mut rng, shards, next: 0, imports: vec![], indexes: vec![] };
    let lir = plan(&p, &mut b);
    let (mut imports, indexes) = (b.imports, b.indexes);
    // The views below have moved on when this one imports them.
    for _ in 0..r.n(3) {
        let c = change(&mut r, &mut state, false);
        db.tick(c);
    }
    let types = lir.types.clone();
    let (object, index) = (db.id(), db.id());
    imports.extend(db.imports_of(&lir).into_iter().filter(|i| matches!(i, Import::Shard { .. })));
    let desc = db.desc(imports, vec![(object, lir)], vec![Export::Arrangement { index, on: object, key: vec![Scalar::Column(0)] }]);
    db.create(desc);
    let mut history = vec![(db.now, state.clone())];
    for round in 0..12 {
        let c = change(&mut r, &mut state, round == 11);
        let t = db.tick(c);
        history.push((t, state.clone()));
        // Nobody but the reader above needs the past of the views below; the last view's is asked for from the fourth tick on.
        for index in &indexes {
            db.cluster.send(Command::AllowCompaction { index: *index, since: t });
        }
        if round > 3 && seed.is_multiple_of(3) {
            db.cluster.send(Command::AllowCompaction { index, since: history[round - 3].0 });
        }
    }
    let since = if seed.is_multiple_of(3) { history[8].0 } else { 0 };
    for (t, state) in history.into_iter().filter(|h| h.0 >= since) {
        let got = db.peek(index, &types, t, None, Mfp::identity(2)).unwrap_or_else(|e| panic!("seed {seed}: {e:?}"));
        let want: Bag = eval(&p, &state).into_iter().map(|(x, d)| (show(&row(&x)), d)).collect();
        assert_eq!(got, want, "seed {seed}, {workers} workers, at {t}");
    }
    let empty = db.peek(index, &types, db.now, None, Mfp { project: vec![0], ..Mfp::identity(2) }).unwrap();
    assert!(empty.is_empty(), "seed {seed}: not drained: {empty:?}");
}

#[test]
fn incremental_equals_recompute() {
    let rounds = std::env::var("LAW_ROUNDS").ok().and_then(|x| x.parse().ok()).unwrap_or(120);
    for seed in 1..=rounds {
        run(seed, 1 + (seed % 2) as usize);
    }
}
