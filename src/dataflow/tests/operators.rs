//! Operators and the cluster's manners, one claim a test: temporal filters, functions, windows, recursion limits, errors,
//! cancelling, idling, dying.

mod common;
use common::*;
use dataflow::protocol::{DataflowCtx, PeekRequest};
use dataflow::{Cluster, Command, Response, SnapshotReader};
use expr::{Frame, FrameBound, FrameExclude, FrameUnits, Scalar, TableFunc, WindowExpr, WindowFunc};
use plan::lir::LirKind;
use plan::mir::{Id, LocalId};
use plan::{DataflowDesc, Export, Import, Lir, Mfp};
use repr::{Deltas, Diff, GlobalId, SqlError, SqlType, Value};
use std::sync::Arc;
use std::time::{Duration, Instant};

fn ups(rows: &[(&[i64], Diff)]) -> Vec<(Row, Diff)> {
    rows.iter().map(|(r, d)| (row(r), *d)).collect()
}

fn col(c: usize) -> Scalar {
    Scalar::Column(c)
}

#[test]
fn temporal_rows_come_and_go_by_themselves() {
    for workers in [1, 2] {
        let mut db = Db::new(workers);
        // (id, from, to): present at times in [from, to), each rounded up to the next even time.
        let a = db.shard(int8(3));
        db.tick(vec![(a, ups(&[(&[1, 0, 13], 1), (&[2, 12, 14], 1), (&[3, 0, 5], 1), (&[4, 50, 60], 1)]))]);
        let mfp = Mfp { lower: vec![col(1)], upper: vec![col(2)], project: vec![0], ..Mfp::identity(3) };
        let plan = lir(int8(1), LirKind::Mfp { input: Box::new(get(a, 3)), mfp });
        let (_, object, index) = db.view(plan.clone(), vec![0]);
        let id = db.id();
        let imports = db.imports_of(&plan);
        let export = Export::Subscribe { id, on: object, with_snapshot: true, up_to: Some(20) };
        let desc = db.desc(imports, vec![(object, plan)], vec![export]);
        db.create(desc);
        let mut seen = vec![(db.now, db.now)];
        for k in 0..4 {
            let t = db.tick(if k == 1 { vec![(a, ups(&[(&[2, 12, 14], -1), (&[5, 0, 100], 1)]))] } else { vec![] });
            seen.push((t, t));
        }
        let want = |t: u64| match t {
            11 => ints(&[(&[1], 1)]),
            12 => ints(&[(&[1], 1), (&[2], 1)]),
            13 => ints(&[(&[1], 1), (&[5], 1)]),
            _ => ints(&[(&[5], 1)]),
        };
        for (t, _) in &seen {
            assert_eq!(db.scan(index, 1, *t).unwrap(), want(*t), "at {t}");
        }
        while db.now < 25 {
            db.tick(vec![]);
        }
        while db.subs[&id].ended.is_none() {
            db.pump();
        }
        let sub = db.subs[&id].clone();
        assert!(sub.updates.iter().all(|u| u.1 < 20));
        for (t, _) in &seen {
            assert_eq!(bag(sub.updates.iter().filter(|u| u.1 <= *t).map(|u| (&u.0, u.2))), want(*t), "at {t}");
        }
    }
}

#[test]
fn functions_that_return_sets() {
    let mut db = Db::new(2);
    let a = db.shard(int8(2));
    db.tick(vec![(a, ups(&[(&[1, 3], 2), (&[5, 4], 1)]))]);
    // generate_series(int8, int8)
    let Some(func) = expr::table::by_oid(1069) else { return };
    let call = TableFunc { func, args: vec![col(0), col(1)], columns: int8(1), with_ordinality: true };
    let plan = lir(int8(4), LirKind::FlatMap { input: Box::new(get(a, 2)), func: call });
    assert_eq!(db.once(plan).unwrap(), ints(&[(&[1, 3, 1, 1], 2), (&[1, 3, 2, 2], 2), (&[1, 3, 3, 3], 2)]));
}

#[test]
fn windows_follow_changes() {
    for workers in [1, 2] {
        let mut db = Db::new(workers);
        let a = db.shard(int8(2));
        db.tick(vec![(a, ups(&[(&[1, 10], 1), (&[1, 20], 2), (&[2, 5], 1)]))]);
        let frame = Frame { units: FrameUnits::Range, start: FrameBound::UnboundedPreceding, end: FrameBound::CurrentRow, exclude: FrameExclude::NoOthers };
        let ty = SqlType::Int8.nullable();
        let exprs = [WindowFunc::RowNumber, WindowFunc::Rank].map(|func| WindowExpr { func, frame: frame.clone(), ty: ty.clone() }).to_vec();
        let order_by = vec![expr::ColumnOrder { column: 1, desc: false, nulls_last: true }];
        let plan = lir(int8(4), LirKind::Window { input: Box::new(get(a, 2)), partition: vec![0], order_by, exprs });
        let (_, _, index) = db.view(plan, vec![0]);
        let t0 = db.now;
        let t1 = db.tick(vec![(a, ups(&[(&[1, 10], -1), (&[1, 30], 1)]))]);
        assert_eq!(db.scan(index, 4, t0).unwrap(), ints(&[(&[1, 10, 1, 1], 1), (&[1, 20, 2, 2], 1), (&[1, 20, 3, 2], 1), (&[2, 5, 1, 1], 1)]));
        assert_eq!(db.scan(index, 4, t1).unwrap(), ints(&[(&[1, 20, 1, 1], 1), (&[1, 20, 2, 1], 1), (&[1, 30, 3, 3], 1), (&[2, 5, 1, 1], 1)]));
    }
}

/// Pairs that are connected, with a limit of rounds.
fn reach(edges: GlobalId, limit: Option<u64>, return_at_limit: bool) -> Lir {
    let id = LocalId(1);
    let local = lir(int8(2), LirKind::Get { id: Id::Local(id) });
    let step = project(join(local.clone(), &[1], get(edges, 2), &[0]), &[0, 3]);
    let value = distinct(union(vec![get(edges, 2), step]));
    lir(int8(2), LirKind::LetRec { bindings: vec![(id, value)], limit, return_at_limit, body: Box::new(local) })
}

#[test]
fn recursion_limits() {
    let mut db = Db::new(2);
    let e = db.shard(int8(2));
    db.tick(vec![(e, ups(&[(&[1, 2], 1), (&[2, 3], 1), (&[3, 4], 1), (&[4, 5], 1)]))]);
    let two = &[(&[1i64, 2][..], 1), (&[2, 3], 1), (&[3, 4], 1), (&[4, 5], 1), (&[1, 3], 1), (&[2, 4], 1), (&[3, 5], 1)];
    assert_eq!(db.once(reach(e, Some(2), true)).unwrap(), ints(two));
    assert_eq!(db.once(reach(e, Some(2), false)).unwrap_err().code.as_str(), "54000");
    assert_eq!(db.once(reach(e, Some(100), false)).unwrap().len(), 10);
}

/// Two and three recursions one in another, where the inner ones read what the outer make: each round of the outer takes the pairs that are
/// connected by the edges and by its own pairs, the other way round too.
#[test]
fn recursion_in_recursion() {
    let ids = [LocalId(7), LocalId(8), LocalId(9)];
    let local = |n: usize| lir(int8(2), LirKind::Get { id: Id::Local(ids[n]) });
    let rec = |n: usize, value: Lir, body: Lir| {
        lir(int8(2), LirKind::LetRec { bindings: vec![(ids[n], value)], limit: None, return_at_limit: false, body: Box::new(body) })
    };
    // outer = edges ∪ (inner, turned);  inner = outer ∪ inner ∘ outer
    let both = |e: GlobalId| {
        let step = project(join(local(1), &[1], local(0), &[0]), &[0, 3]);
        let inner = rec(1, distinct(union(vec![local(0), step])), local(1));
        rec(0, distinct(union(vec![get(e, 2), project(inner, &[1, 0])])), local(0))
    };
    for workers in [1, 2] {
        let mut db = Db::new(workers);
        let e = db.shard(int8(2));
        let (_, _, index) = db.view(both(e), vec![0]);
        // All of these are reachable from all of them.
        let pairs = |nodes: &[i64]| -> Vec<(Row, Diff)> { nodes.iter().flat_map(|a| nodes.iter().map(move |b| (row(&[*a, *b]), 1))).collect() };
        let expect = |db: &mut Db, want: Vec<(Row, Diff)>| {
            let want = bag(want.iter().map(|(r, d)| (r, *d)));
            assert_eq!(db.scan(index, 2, db.now).unwrap(), want);
            assert_eq!(db.once(both(e)).unwrap(), want);
        };
        db.tick(vec![(e, ups(&[(&[1, 2], 1), (&[2, 3], 1), (&[3, 4], 1)]))]);
        expect(&mut db, pairs(&[1, 2, 3, 4]));
        db.tick(vec![(e, ups(&[(&[2, 3], -1)]))]);
        expect(&mut db, [pairs(&[1, 2]), pairs(&[3, 4])].concat());
        db.tick(vec![(e, ups(&[(&[4, 1], 1)]))]);
        expect(&mut db, pairs(&[1, 2, 3, 4]));
        db.tick(vec![(e, ups(&[(&[1, 2], -1), (&[3, 4], -1), (&[4, 1], -1)]))]);
        expect(&mut db, vec![]);
        let three = rec(2, rec(0, rec(1, union(vec![local(0), local(1), local(2)]), local(1)), local(0)), local(2));
        assert_eq!(db.once(three).unwrap_err().code.as_str(), "0A000");
    }
}

/// `filter` fails on rows whose column 1 is 0.
fn failing(a: GlobalId) -> Lir {
    let error = SqlError::new(repr::error::state::DIVISION_BY_ZERO, "division by zero");
    let is_zero = Scalar::IsNull(Box::new(col(1)));
    let boom = Scalar::Error(Box::new(error), SqlType::Int8.nullable());
    let map = Scalar::Case { branches: vec![(is_zero, boom)], otherwise: Box::new(col(0)), ty: SqlType::Int8.nullable() };
    let mfp = Mfp { maps: vec![map], project: vec![2], ..Mfp::identity(2) };
    lir(int8(1), LirKind::Mfp { input: Box::new(get(a, 2)), mfp })
}

#[test]
fn errors_stand_while_their_rows_do() {
    for workers in [1, 2] {
        let mut db = Db::new(workers);
        let a = db.shard(int8(2));
        let bad = || vec![i(7), Value::Null];
        db.tick(vec![(a, ups(&[(&[1, 1], 1)]))]);
        let (_, object, index) = db.view(failing(a), vec![0]);
        let id = db.id();
        let plan = failing(a);
        let imports = db.imports_of(&plan);
        let desc = db.desc(imports, vec![(object, plan)], vec![Export::Subscribe { id, on: object, with_snapshot: true, up_to: None }]);
        db.create(desc);
        let t0 = db.now;
        let t1 = db.tick(vec![(a, vec![(row(&[2, 2]), 1)])]);
        let t2 = db.tick(vec![(a, vec![(bad(), 1)])]);
        let t3 = db.tick(vec![(a, vec![(bad(), -1), (row(&[3, 3]), 1)])]);
        assert_eq!(db.scan(index, 1, t0).unwrap(), ints(&[(&[1], 1)]));
        assert_eq!(db.scan(index, 1, t2).unwrap_err().code.as_str(), "22012");
        assert_eq!(db.scan(index, 1, t3).unwrap(), ints(&[(&[1], 1), (&[2], 1), (&[3], 1)]));
        while db.subs[&id].ended.is_none() {
            db.pump();
        }
        // Everything up to the last clean time, then the error.
        let sub = db.subs[&id].clone();
        assert_eq!(sub.upper, t2);
        assert_eq!(bag(sub.updates.iter().map(|u| (&u.0, u.2))), ints(&[(&[1], 1), (&[2], 1)]));
        assert!(sub.updates.iter().all(|u| u.1 <= t1));
        assert_eq!(sub.ended.unwrap().unwrap_err().code.as_str(), "22012");
    }
}

#[test]
fn a_cross_product_is_cancelled_at_once() {
    for workers in [1, 2] {
        let mut db = Db::new(workers);
        let a = db.shard(int8(1));
        db.tick(vec![(a, (0..6000).map(|x| (row(&[x]), 1)).collect())]);
        let (object, id) = (db.id(), db.id());
        let pairs = join(get(a, 1), &[], get(a, 1), &[]);
        let plan = project(join(pairs, &[], get(a, 1), &[]), &[0, 1, 2]);
        let imports = db.imports_of(&plan);
        let desc = db.desc(imports, vec![(object, plan)], vec![Export::PeekOnce { id, on: object }]);
        db.create(desc);
        std::thread::sleep(Duration::from_millis(300));
        let began = Instant::now();
        db.cluster.send(Command::CancelPeek { id });
        loop {
            if let Response::PeekDone { id: done, result } = db.responses.recv_timeout(Duration::from_secs(10)).unwrap() {
                assert_eq!((done, result.unwrap_err().code.as_str()), (id, "57014"));
                break;
            }
        }
        assert!(began.elapsed() < Duration::from_millis(if cfg!(debug_assertions) { 1000 } else { 200 }), "{:?}", began.elapsed());
        // The workers are free again.
        assert_eq!(db.once(lir(vec![], LirKind::Constant { rows: Ok(vec![(vec![], 1)]) })).unwrap(), ints(&[(&[], 1)]));
    }
}

/// Takes rows until none come for a while: those that a reader who keeps all of them is sent.
fn taken(db: &Db, id: GlobalId) -> (usize, Vec<dataflow::flow::Credit>) {
    let (mut rows, mut credits) = (0, vec![]);
    while let Ok(r) = db.responses.recv_timeout(Duration::from_millis(500)) {
        match r {
            Response::PeekRows { id: of, rows: part, credit, .. } => {
                assert_eq!(of, id);
                rows += part.len();
                credits.push(credit);
            }
            Response::PeekDone { result, .. } => panic!("it ended with {result:?}"),
            _ => {}
        }
    }
    (rows, credits)
}

/// The rest, to a reader that keeps nothing.
fn rest(db: &Db) -> (usize, Result<(), SqlError>) {
    let mut rows = 0;
    loop {
        match db.responses.recv_timeout(Duration::from_secs(20)).unwrap() {
            Response::PeekRows { rows: part, .. } => rows += part.len(),
            Response::PeekDone { result, .. } => return (rows, result),
            _ => {}
        }
    }
}

#[test]
fn a_result_waits_for_its_reader_and_nothing_else_does() {
    const N: i64 = 500;
    const WIDE: usize = 16;
    for workers in [1, 2] {
        let mut db = Db::new(workers);
        let a = db.shard(int8(1));
        db.tick(vec![(a, (0..N).map(|x| (row(&[x]), 1)).collect())]);
        // A shard's rows squared: a join makes them, then an arrangement of them is scanned.
        let pairs = project(join(get(a, 1), &[], get(a, 1), &[]), &(0..WIDE).map(|c| c % 2).collect::<Vec<_>>());
        let (_, _, index) = db.view(pairs.clone(), vec![0]);
        db.wait(index, db.now + 1);
        for scan in [false, true] {
            for cancel in [false, true] {
                let (object, id) = (db.id(), db.id());
                if scan {
                    let (mfp, at) = (Mfp::identity(WIDE), db.now);
                    let request = PeekRequest { id, index, at, keys: None, mfp, types: int8(WIDE), limit: None, ctx: Arc::new(DataflowCtx((*ctx()).clone())) };
                    db.cluster.send(Command::Peek(Arc::new(request)));
                } else {
                    let imports = db.imports_of(&pairs);
                    let desc = db.desc(imports, vec![(object, pairs.clone())], vec![Export::PeekOnce { id, on: object }]);
                    db.create(desc);
                }
                let (rows, credits) = taken(&db, id);
                let bytes = 8 * WIDE * rows;
                assert!(bytes < 2 * dataflow::flow::QUEUED_BYTES_MAX, "{workers} workers, scan {scan}: {bytes} bytes at once");
                assert!(bytes > dataflow::flow::QUEUED_BYTES_MAX / 2, "{workers} workers, scan {scan}: {bytes} bytes at once");
                // Others go on meanwhile.
                assert_eq!(db.once(project(get(a, 1), &[])).unwrap(), ints(&[(&[], N as Diff)]));
                if cancel {
                    db.cluster.send(Command::CancelPeek { id });
                    assert_eq!(rest(&db).1.unwrap_err().code.as_str(), "57014");
                } else {
                    drop(credits);
                    let (more, result) = rest(&db);
                    assert_eq!((rows + more, result), ((N * N) as usize, Ok(())));
                }
            }
        }
    }
}

#[test]
fn a_peek_that_waits_is_cancelled() {
    let mut db = Db::new(2);
    let a = db.shard(int8(1));
    db.tick(vec![(a, ups(&[(&[1], 1)]))]);
    let (_, _, index) = db.view(get(a, 1), vec![0]);
    let id = db.id();
    let at = db.now + 1000;
    let request = PeekRequest { id, index, at, keys: None, mfp: Mfp::identity(1), types: int8(1), limit: None, ctx: Arc::new(DataflowCtx((*ctx()).clone())) };
    db.cluster.send(Command::Peek(Arc::new(request)));
    db.cluster.send(Command::CancelPeek { id });
    loop {
        if let Response::PeekDone { result, .. } = db.responses.recv_timeout(Duration::from_secs(5)).unwrap() {
            assert_eq!(result.unwrap_err().code.as_str(), "57014");
            break;
        }
    }
}

fn cpu_time() -> Duration {
    let text = std::fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<&str> = text[text.rfind(')').unwrap() + 2..].split(' ').collect();
    let ticks: u64 = fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap();
    Duration::from_millis(ticks * 10)
}

#[test]
#[ignore = "measures this process alone: cargo test --test operators -- --ignored --test-threads 1"]
fn idle_workers_use_no_cpu_and_answer_quickly() {
    let mut db = Db::new(2);
    let a = db.shard(int8(2));
    db.tick(vec![(a, ups(&[(&[1, 1], 1)]))]);
    let (_, _, index) = db.view(get(a, 2), vec![0]);
    db.scan(index, 2, db.now).unwrap();
    let before = cpu_time();
    std::thread::sleep(Duration::from_secs(2));
    assert!(cpu_time() - before < Duration::from_millis(50), "idle: {:?}", cpu_time() - before);
    let mut took: Vec<Duration> = (0..100)
        .map(|k| {
            let began = Instant::now();
            let t = db.tick(vec![(a, ups(&[(&[k, k], 1)]))]);
            db.wait(index, t + 1);
            began.elapsed()
        })
        .collect();
    took.sort();
    println!("tick to frontier: median {:?}, p99 {:?}", took[50], took[98]);
    assert!(took[50] < Duration::from_millis(5));
}

#[test]
fn dataflows_without_changes_are_brought_up_when_asked_and_in_time() {
    let mut db = Db::new(2);
    let (a, b) = (db.shard(int8(1)), db.shard(int8(1)));
    db.tick(vec![(a, ups(&[(&[1], 1)])), (b, ups(&[(&[2], 1)]))]);
    let (_, _, quiet) = db.view(get(a, 1), vec![0]);
    let (_, _, busy) = db.view(get(b, 1), vec![0]);
    let t = db.tick(vec![(b, ups(&[(&[3], 1)]))]);
    assert_eq!(db.scan(busy, 1, t).unwrap(), ints(&[(&[2], 1), (&[3], 1)]));
    assert_eq!(db.scan(quiet, 1, t).unwrap(), ints(&[(&[1], 1)]));
    let t = db.tick(vec![(b, ups(&[(&[4], 1)]))]);
    db.wait(quiet, t + 1);
}

struct Bomb;
impl SnapshotReader for Bomb {
    fn read(&self, _: usize, _: usize, _: Option<&[bool]>) -> Box<dyn Iterator<Item = Result<Deltas, SqlError>> + Send> {
        panic!("a reader that fails hard")
    }
}

#[test]
fn a_worker_that_panics_is_reported() {
    let (tx, rx) = crossbeam_channel::unbounded();
    let cluster = Cluster::start(1, tx);
    let shard = GlobalId(1);
    let desc = DataflowDesc {
        name: "bomb".into(),
        as_of: 1,
        until: None,
        imports: vec![Import::Shard { id: shard, types: int8(1) }],
        builds: vec![],
        exports: vec![Export::PeekOnce { id: GlobalId(2), on: shard }],
        ctx: ctx(),
        quarantine: vec![],
    };
    cluster.send(Command::CreateDataflow { id: GlobalId(3), desc: Arc::new(desc), shards: vec![(shard, Arc::new(Bomb))], holder: Default::default() });
    match rx.recv_timeout(Duration::from_secs(5)).unwrap() {
        Response::WorkerDied { worker: 0, message } => assert!(message.contains("fails hard"), "{message}"),
        other => panic!("{other:?}"),
    }
}

fn resident_kb() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap();
    text.split(' ').nth(1).unwrap().parse::<u64>().unwrap() * 4
}

#[test]
#[ignore = "measures this process alone: cargo test --test operators -- --ignored --test-threads 1"]
fn one_off_queries_leave_nothing_behind() {
    let mut db = Db::new(2);
    let a = db.shard(int8(2));
    db.tick(vec![(a, ups(&[(&[1, 1], 1)]))]);
    let (_, _, index) = db.view(get(a, 2), vec![0]);
    let run = |db: &mut Db, n: usize| {
        let began = Instant::now();
        for k in 0..n {
            let plan = join(distinct(get(a, 2)), &[0], get(a, 2), &[0]);
            db.once(plan).unwrap();
            if k % 10 == 0 {
                db.tick(vec![]);
            }
        }
        began.elapsed() / n as u32
    };
    run(&mut db, 300);
    let before = resident_kb();
    let each = run(&mut db, 1000);
    let grown = resident_kb().saturating_sub(before);
    println!("one-off join: {each:?} each, {grown} kB more after 1000");
    let began = Instant::now();
    for _ in 0..1000 {
        db.scan(index, 2, db.now).unwrap();
    }
    println!("peek of an index: {:?} each", began.elapsed() / 1000);
    assert!(grown < 20_000, "{grown} kB left behind");
}

/// Ticks that arrive while an interval of many groups is being reduced are not lost.
#[test]
fn ticks_that_come_while_a_reduce_works() {
    const GROUPS: i64 = 20_000;
    for workers in [1, 2] {
        let mut db = Db::new(workers);
        let a = db.shard(int8(2));
        let (_, _, index) = db.view(top_k(get(a, 2), &[0], &[(1, true)], Some(1), 0, false), vec![0]);
        db.tick(vec![(a, (0..GROUPS).map(|g| (row(&[g, 0]), 1)).collect())]);
        for k in 1..=300 {
            let g = k % 7;
            db.tick(vec![(a, ups(&[(&[g, k], 1)]))]);
            if k % 10 == 0 {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        let t = db.now;
        let mut want: Vec<(Row, Diff)> = (7..GROUPS).map(|g| (row(&[g, 0]), 1)).collect();
        want.extend((294..=300).map(|k| (row(&[k % 7, k]), 1)));
        let found = db.scan(index, 2, t).unwrap();
        let want = bag(want.iter().map(|(r, d)| (r, *d)));
        assert_eq!(found.iter().find(|(r, d)| want.get(*r) != Some(*d)), None);
        assert_eq!(found.len(), want.len());
    }
}
