//! A cluster driven by hand: shards as lists of rows, ticks, peeks and subscriptions whose answers are awaited.
#![allow(dead_code)]

use crossbeam_channel::{unbounded, Receiver};
use dataflow::protocol::{DataflowCtx, PeekRequest};
use dataflow::{Cluster, Command, Response, SnapshotReader};
use expr::agg::AggDef;
use expr::{Aggregate, ColumnOrder, EvalCtx, Scalar};
use plan::lir::{JoinStage, LirKind};
use plan::mir::Id;
use plan::{DataflowDesc, Export, Import, Lir, Mfp};
use repr::{Batch, Col, ColType, Deltas, Diff, GlobalId, SqlError, SqlType, Timestamp, Value};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

pub type Row = Vec<Value>;
/// Rows by their printed form, with counts.
pub type Bag = BTreeMap<String, Diff>;

pub fn i(v: i64) -> Value {
    Value::Int8(v)
}
pub fn int8(n: usize) -> Vec<ColType> {
    (0..n).map(|_| SqlType::Int8.nullable()).collect()
}
pub fn row(vs: &[i64]) -> Row {
    vs.iter().map(|v| i(*v)).collect()
}
pub fn show(r: &Row) -> String {
    let parts: Vec<String> = r.iter().map(|v| if let Value::Int8(x) = v { x.to_string() } else { format!("{v:?}") }).collect();
    parts.join(" ")
}
pub fn bag<'a>(rows: impl IntoIterator<Item = (&'a Row, Diff)>) -> Bag {
    let mut b = Bag::new();
    for (r, d) in rows {
        *b.entry(show(r)).or_default() += d;
    }
    b.retain(|_, d| *d != 0);
    b
}
pub fn ints(rows: &[(&[i64], Diff)]) -> Bag {
    let rows: Vec<(Row, Diff)> = rows.iter().map(|(r, d)| (row(r), *d)).collect();
    bag(rows.iter().map(|(r, d)| (r, *d)))
}

/// A shard's content as a list.
struct Content {
    types: Vec<ColType>,
    rows: Vec<(Row, Diff)>,
}

impl SnapshotReader for Content {
    fn read(&self, part: usize, parts: usize, _: Option<&[bool]>) -> Box<dyn Iterator<Item = Result<Deltas, SqlError>> + Send> {
        let mine: Vec<_> = self.rows.iter().enumerate().filter(|(i, _)| i % parts == part).map(|(_, r)| r.clone()).collect();
        let types = self.types.clone();
        let parts: Vec<_> = mine.chunks(3).map(|c| Ok(deltas(&types, c))).collect();
        Box::new(parts.into_iter())
    }
    fn inserts_only(&self) -> bool {
        self.rows.iter().all(|r| r.1 > 0)
    }
}

pub fn deltas(types: &[ColType], rows: &[(Row, Diff)]) -> Deltas {
    Deltas { rows: Batch::from_rows(types, rows.iter().map(|r| r.0.as_slice())), diffs: Col::from_vec(rows.iter().map(|r| r.1).collect()) }
}

pub struct Shard {
    pub id: GlobalId,
    pub types: Vec<ColType>,
    pub rows: Vec<(Row, Diff)>,
}

/// One subscription's answers so far.
#[derive(Default, Clone)]
pub struct Sub {
    pub updates: Vec<(Row, Timestamp, Diff)>,
    pub upper: Timestamp,
    pub ended: Option<Result<(), SqlError>>,
}

pub struct Db {
    pub cluster: Cluster,
    pub responses: Receiver<Response>,
    pub shards: BTreeMap<GlobalId, Shard>,
    pub now: Timestamp,
    next: u64,
    pub uppers: BTreeMap<GlobalId, Timestamp>,
    pub subs: BTreeMap<GlobalId, Sub>,
    rows: BTreeMap<GlobalId, Vec<(Deltas, Vec<ColType>)>>,
    done: BTreeMap<GlobalId, Result<(), SqlError>>,
}

pub fn ctx() -> Arc<EvalCtx> {
    Arc::new(EvalCtx::default())
}

impl Db {
    pub fn new(workers: usize) -> Db {
        let (tx, responses) = unbounded();
        Db {
            cluster: Cluster::start(workers, tx),
            responses,
            shards: BTreeMap::new(),
            now: 10,
            next: 1000,
            uppers: BTreeMap::new(),
            subs: BTreeMap::new(),
            rows: BTreeMap::new(),
            done: BTreeMap::new(),
        }
    }
    pub fn id(&mut self) -> GlobalId {
        self.next += 1;
        GlobalId(self.next)
    }
    pub fn shard(&mut self, types: Vec<ColType>) -> GlobalId {
        let id = self.id();
        self.shards.insert(id, Shard { id, types, rows: vec![] });
        id
    }
    /// Applies changes at the next time; returns it.
    pub fn tick(&mut self, changes: Vec<(GlobalId, Vec<(Row, Diff)>)>) -> Timestamp {
        self.now += 1;
        let mut parts = vec![];
        for (id, rows) in changes {
            let s = self.shards.get_mut(&id).unwrap();
            parts.push((id, deltas(&s.types, &rows)));
            s.rows.extend(rows);
        }
        self.cluster.send(Command::Tick { t: self.now, shards: Arc::new(parts), parts: vec![] });
        self.now
    }
    pub fn desc(&self, imports: Vec<Import>, builds: Vec<(GlobalId, Lir)>, exports: Vec<Export>) -> DataflowDesc {
        DataflowDesc { name: "test".into(), as_of: self.now, until: None, imports, builds, exports, ctx: ctx(), quarantine: vec![] }
    }
    pub fn create(&mut self, desc: DataflowDesc) -> GlobalId {
        let id = self.id();
        let mut shards: Vec<(GlobalId, Arc<dyn SnapshotReader>)> = vec![];
        for i in &desc.imports {
            if let Import::Shard { id, types } = i {
                shards.push((*id, Arc::new(Content { types: types.clone(), rows: self.shards[id].rows.clone() })));
            }
        }
        for e in &desc.exports {
            if let Export::Subscribe { id, .. } = e {
                self.subs.insert(*id, Sub::default());
            }
        }
        self.cluster.send(Command::CreateDataflow { id, desc: Arc::new(desc), shards, holder: Default::default() });
        id
    }
    pub fn import(&self, id: GlobalId) -> Import {
        Import::Shard { id, types: self.shards[&id].types.clone() }
    }
    /// A view over shards, arranged by `key`: (dataflow, object, index).
    pub fn view(&mut self, lir: Lir, key: Vec<usize>) -> (GlobalId, GlobalId, GlobalId) {
        let (object, index) = (self.id(), self.id());
        let imports = self.imports_of(&lir);
        let export = Export::Arrangement { index, on: object, key: key.into_iter().map(Scalar::Column).collect() };
        let desc = self.desc(imports, vec![(object, lir)], vec![export]);
        (self.create(desc), object, index)
    }
    pub fn imports_of(&self, lir: &Lir) -> Vec<Import> {
        let ids = dataflow::render::reads(lir);
        ids.into_iter()
            .filter_map(|i| match i {
                Id::Global(g) if self.shards.contains_key(&g) => Some(self.import(g)),
                _ => None,
            })
            .collect()
    }
    /// The result of a plan over shards, now.
    pub fn once(&mut self, lir: Lir) -> Result<Bag, SqlError> {
        let (object, id) = (self.id(), self.id());
        let types = lir.types.clone();
        let imports = self.imports_of(&lir);
        let desc = self.desc(imports, vec![(object, lir)], vec![Export::PeekOnce { id, on: object }]);
        self.create(desc);
        self.answer(id, &types)
    }
    pub fn peek(&mut self, index: GlobalId, types: &[ColType], at: Timestamp, keys: Option<Vec<Row>>, mfp: Mfp) -> Result<Bag, SqlError> {
        let (id, out) = self.ask(index, types, at, keys, mfp);
        self.answer(id, &out)
    }
    /// Sends a peek: its id, and the types of its rows.
    pub fn ask(&mut self, index: GlobalId, types: &[ColType], at: Timestamp, keys: Option<Vec<Row>>, mfp: Mfp) -> (GlobalId, Vec<ColType>) {
        let out: Vec<ColType> = {
            let mut all = types.to_vec();
            for m in &mfp.maps {
                let t = m.typ(&all);
                all.push(t);
            }
            mfp.project.iter().map(|c| all[*c].clone()).collect()
        };
        let id = self.id();
        let request = PeekRequest { id, index, at, keys, mfp, types: types.to_vec(), limit: None, ctx: Arc::new(DataflowCtx((*ctx()).clone())) };
        self.cluster.send(Command::Peek(Arc::new(request)));
        (id, out)
    }
    pub fn scan(&mut self, index: GlobalId, arity: usize, at: Timestamp) -> Result<Bag, SqlError> {
        self.peek(index, &int8(arity), at, None, Mfp::identity(arity))
    }
    pub fn answer(&mut self, id: GlobalId, types: &[ColType]) -> Result<Bag, SqlError> {
        while !self.done.contains_key(&id) {
            self.pump();
        }
        let mut b = Bag::new();
        for (d, _) in self.rows.remove(&id).unwrap_or_default() {
            for k in 0..d.len() {
                *b.entry(show(&d.rows.row(types, k))).or_default() += d.diffs.get(k);
            }
        }
        // What does not come summed is added up by its reader.
        b.retain(|_, n| *n != 0);
        self.done.remove(&id).unwrap().map(|_| b)
    }
    /// Takes one response.
    pub fn pump(&mut self) {
        let r = self.responses.recv_timeout(Duration::from_secs(20)).expect("an answer within 20 s");
        match r {
            Response::PeekRows { id, rows, .. } => self.rows.entry(id).or_default().push((rows, vec![])),
            Response::PeekDone { id, result } => {
                self.done.insert(id, result);
            }
            Response::Frontier { index, upper, .. } => {
                self.uppers.insert(index, upper);
            }
            Response::Subscribe { id, lower, upper, updates } => {
                let s = self.subs.entry(id).or_default();
                assert!(s.ended.is_none(), "more after the end");
                assert!(s.upper == 0 || s.upper == lower, "a gap between {} and {lower}", s.upper);
                match updates {
                    Ok(u) => {
                        for x in &u {
                            assert!(x.1 >= lower && upper.is_none_or(|t| x.1 < t), "{x:?} outside [{lower}, {upper:?})");
                        }
                        s.updates.extend(u);
                        match upper {
                            Some(t) => s.upper = t,
                            None => s.ended = Some(Ok(())),
                        }
                    }
                    Err(e) => s.ended = Some(Err(e)),
                }
            }
            Response::WorkerDied { worker, message } => panic!("worker {worker} died: {message}"),
        }
    }
    pub fn wait_sub(&mut self, id: GlobalId, upper: Timestamp) {
        while self.subs[&id].upper < upper && self.subs[&id].ended.is_none() {
            self.pump();
        }
    }
    pub fn wait(&mut self, index: GlobalId, upper: Timestamp) {
        while self.uppers.get(&index).copied().unwrap_or(0) < upper {
            self.pump();
        }
    }
}

// ---- plans ----

pub fn lir(types: Vec<ColType>, kind: LirKind) -> Lir {
    Lir { node: 0, types, kind }
}
pub fn get(id: GlobalId, arity: usize) -> Lir {
    lir(int8(arity), LirKind::Get { id: Id::Global(id) })
}
pub fn project(input: Lir, cols: &[usize]) -> Lir {
    let mfp = Mfp { project: cols.to_vec(), ..Mfp::identity(input.types.len()) };
    lir(cols.iter().map(|c| input.types[*c].clone()).collect(), LirKind::Mfp { input: Box::new(input), mfp })
}
pub fn negate(input: Lir) -> Lir {
    lir(input.types.clone(), LirKind::Negate { input: Box::new(input) })
}
pub fn threshold(input: Lir) -> Lir {
    lir(input.types.clone(), LirKind::Threshold { input: Box::new(input) })
}
pub fn union(inputs: Vec<Lir>) -> Lir {
    lir(inputs[0].types.clone(), LirKind::Union { inputs })
}
pub fn join(a: Lir, ka: &[usize], b: Lir, kb: &[usize]) -> Lir {
    let types: Vec<ColType> = a.types.iter().chain(&b.types).cloned().collect();
    let cols = |k: &[usize]| k.iter().map(|c| Scalar::Column(*c)).collect();
    let stage = JoinStage { lookup: 1, stream_key: cols(ka), lookup_key: cols(kb), null_safe: vec![false; ka.len()], mfp: Mfp::identity(types.len()) };
    lir(types, LirKind::Join { inputs: vec![a, b], start: 0, stages: vec![stage] })
}
pub fn reduce(input: Lir, key: &[usize], kind: plan::lir::ReduceKind, n: usize) -> Lir {
    let mut types: Vec<ColType> = key.iter().map(|c| input.types[*c].clone()).collect();
    types.extend(int8(n));
    lir(types, LirKind::Reduce { input: Box::new(input), group_key: key.iter().map(|c| Scalar::Column(*c)).collect(), kind })
}
pub fn distinct(input: Lir) -> Lir {
    let key: Vec<usize> = (0..input.types.len()).collect();
    reduce(input, &key, plan::lir::ReduceKind::Distinct, 0)
}
pub fn top_k(input: Lir, key: &[usize], order: &[(usize, bool)], limit: Option<i64>, offset: u64, with_ties: bool) -> Lir {
    let order_by = order.iter().map(|(c, desc)| ColumnOrder { column: *c, desc: *desc, nulls_last: !desc }).collect();
    let limit = limit.map(|l| Scalar::literal(Value::Int8(l), SqlType::Int8));
    let kind = LirKind::TopK { group_key: key.to_vec(), order_by, limit, offset, with_ties, input: Box::new(input.clone()) };
    lir(input.types, kind)
}

pub fn def(oid: u32) -> &'static AggDef {
    expr::agg::by_oid(oid).unwrap()
}

pub fn agg(func: &'static AggDef, col: Option<usize>) -> Aggregate {
    Aggregate {
        func,
        args: col.map(Scalar::Column).into_iter().collect(),
        direct: 0,
        distinct: false,
        filter: None,
        order_by: vec![],
        ty: SqlType::Int8.nullable(),
    }
}
