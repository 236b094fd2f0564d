//! Drivers on their own: a dataflow that is cut at a time and goes on elsewhere emits what the uninterrupted one does; a
//! stopped exporter is not taken for a complete one; spans are read on another thread while their trace goes on.
//!
//! ```text
//!   L ─arrange─┐
//!              ├─join─► (outputs compared) ─arrange─► sums by key, greatest val by key (outputs compared)
//!   R ─arrange─┘
//! ```

#![allow(clippy::type_complexity)]

use dataflow::arrange::{
    arrange, exchange, import, join, lane_of, reduce, reduce_totals, tactic, Agent, ArrangeCtl, Block, Body, Changes, JoinCfg, Matches, Outputs, RowB, Saved,
};
use dataflow::flow::Stopped;
use differential_dataflow::consolidation::consolidate;
use differential_dataflow::input::InputSession;
use differential_dataflow::trace::{Span, TraceReader};
use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;
use std::time::Duration;
use timely::container::NoopBuilder;
use timely::dataflow::channels::pact::Pipeline;
use timely::dataflow::operators::generic::Operator;
use timely::dataflow::operators::probe::Handle;
use timely::dataflow::operators::Probe;
use timely::dataflow::{Scope, Stream};
use timely::progress::frontier::{Antichain, AntichainRef};
use timely::worker::Worker;

struct Rng(u64);
impl Rng {
    fn n(&mut self, m: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % m
    }
}

type In = InputSession<u64, (u64, u64), i64>;
type Out = BTreeMap<u64, Vec<((u8, u64, u64), i64)>>;
type Log = Rc<RefCell<Out>>;

fn push(body: &mut Body<u64, i64>, k: u64, v: u64, t: u64, d: i64) {
    let key = k.to_be_bytes();
    body.push(lane_of(&key), &key, &v.to_be_bytes(), t, d);
}

fn number(b: &[u8]) -> u64 {
    u64::from_be_bytes(b.try_into().unwrap())
}

fn blocks<'s>(input: &mut In, scope: Scope<'s, u64>) -> Stream<'s, u64, Block<u64, i64>> {
    input.to_collection(scope).inner.unary::<NoopBuilder<Block<u64, i64>>, _, _, _>(Pipeline, "Blocks", |_, _| {
        |input, output| {
            input.for_each(|cap, data| {
                let mut body = Body::default();
                data.drain(..).for_each(|((k, v), t, d)| push(&mut body, k, v, t, d));
                output.session_with_builder(&cap).give_container(&mut Block(body));
            })
        }
    })
}

fn note<'s>(s: Stream<'s, u64, Block<u64, i64>>, tag: u8, log: &Log) -> Stream<'s, u64, Block<u64, i64>> {
    let log = log.clone();
    s.unary::<NoopBuilder<Block<u64, i64>>, _, _, _>(Pipeline, "Note", move |_, _| {
        move |input, output| {
            input.for_each(|cap, data| {
                let b = &data.0;
                for k in 0..b.lanes.len() {
                    for u in b.key_start(k)..b.key_ends[k] as usize {
                        log.borrow_mut().entry(*b.time_at(u)).or_default().push(((tag, number(b.keys.get(k)), number(b.val(u))), *b.diffs.get(u)));
                    }
                }
                output.session_with_builder(&cap).give_container(data);
            })
        }
    })
}

fn note_spans<'s>(s: Stream<'s, u64, Vec<Span<u64, RowB<u64, i64>>>>, tag: u8, log: &Log) -> Stream<'s, u64, Block<u64, i64>> {
    let made = s.unary::<NoopBuilder<Block<u64, i64>>, _, _, _>(Pipeline, "Spans", |_, _| {
        |input, output| {
            input.for_each(|cap, data| {
                let mut body = Body::default();
                data.drain(..).filter_map(|s| s.inner).for_each(|b| b.for_each(|l, k, v, t, d| body.push(l, k, v, t, *d)));
                output.session_with_builder(&cap).give_container(&mut Block(body));
            })
        }
    });
    note(made, tag, log)
}

/// (val of the left as key, val of the right).
fn matched(m: Matches<'_, u64>) -> Block<u64, i64> {
    let mut body = Body::default();
    for i in 0..m.keys.len() {
        push(&mut body, number(m.left[i]), number(m.right[i]), *m.times.get(i), *m.diffs.get(i));
    }
    Block(body)
}

/// The sum of all counts of a key.
fn total(_: &[u8], sums: &[(&[u8], i64)]) -> Option<i64> {
    Some(sums.iter().map(|s| s.1).sum()).filter(|n| *n != 0)
}

fn totals(c: Changes<'_, u64, i64>) -> (Block<u64, i64>, Vec<Block<u64, i64>>) {
    let mut body = Body::default();
    c.keys.iter().zip(c.rows).for_each(|(k, (n, t, d))| push(&mut body, number(k), n as u64, t, d));
    (Block(body), vec![])
}

fn greatest(_: &[u8], vals: &[(&[u8], i64)], out: &mut Outputs) {
    if let Some(v) = vals.iter().rev().find(|v| v.1 > 0) {
        out.push(1, |b| b.extend_from_slice(v.0));
    }
}

fn cfg(resume: Option<Antichain<u64>>, budget: Duration) -> JoinCfg<u64> {
    JoinCfg { resume, start: 0, ordered: true, budget, cancel: Default::default(), gate: None, unmatched: None }
}

struct Flow {
    l: In,
    r: In,
    late: VecDeque<(u64, Vec<((u64, u64), u64, i64)>)>,
    me: usize,
    probe: Handle<u64>,
    ctls: Vec<ArrangeCtl<u64, i64>>,
    log: Log,
}

fn flow(worker: &mut Worker, saved: Option<Vec<Saved<u64, i64>>>) -> Flow {
    let log: Log = Default::default();
    let noted = log.clone();
    worker.dataflow::<u64, _, _>(|scope| {
        let (mut l, mut r): (In, In) = (InputSession::new(), InputSession::new());
        let upper = saved.as_ref().map(|s| s[0].upper.clone());
        let mut saved = saved.map(Vec::into_iter);
        let mut next = || saved.as_mut().and_then(Iterator::next);
        let ctls: Vec<ArrangeCtl<u64, i64>> = (0..4).map(|_| ArrangeCtl::new(Default::default())).collect();
        let left = arrange(blocks(&mut l, scope), exchange(), "L", next(), ctls[0].clone());
        let right = arrange(blocks(&mut r, scope), exchange(), "R", next(), ctls[1].clone());
        let joined = note(join(left, right, "J", cfg(upper.clone(), Duration::from_micros(1)), matched), 0, &noted);
        let third = arrange(joined, exchange(), "C", next(), ctls[2].clone());
        let stopped = Default::default();
        let (sums, _) = reduce_totals(third.clone(), "Totals", Duration::from_micros(1), stopped, upper, total, totals);
        let max = reduce(third, "Max", tactic(greatest), next(), ctls[3].clone());
        let (sums, max) = (note(sums, 1, &noted), note_spans(max.stream, 2, &noted));
        let probe = Handle::new();
        sums.probe_with(&probe);
        max.probe_with(&probe);
        Flow { l, r, late: Default::default(), me: scope.index(), probe, ctls, log: noted }
    })
}

/// The input of one tick, `R` lagging by `skew` ticks; with `future`, updates ahead of the tick too, as a temporal filter has them.
fn tick(f: &mut Flow, t: u64, future: bool, skew: u64) {
    let mut r = Rng(t * 7919 + 12345);
    let mut right = vec![];
    for _ in 0..40 {
        let (k, v, side) = (r.n(50), r.n(30), r.n(2));
        let ahead = if future && r.n(3) == 0 { r.n(15) } else { 0 };
        let d = if r.n(3) == 0 { -1 } else { 1 };
        if f.me != 0 {
            continue;
        }
        if side == 0 {
            f.l.update_at((k, v), t + ahead, d);
        } else {
            right.push(((k, v), t + ahead, d));
        }
    }
    f.l.advance_to(t + 1);
    f.l.flush();
    f.late.push_back((t, right));
    while f.late.front().is_some_and(|x| x.0 + skew <= t) {
        let (t, updates) = f.late.pop_front().unwrap();
        f.r.advance_to(t);
        updates.into_iter().for_each(|(x, t, d)| f.r.update_at(x, t, d));
        f.r.advance_to(t + 1);
        f.r.flush();
    }
}

fn drive(w: &mut Worker, f: &Flow, to: u64) {
    while f.probe.less_than(&to) {
        w.step();
    }
}

fn merged(parts: Vec<Out>) -> Out {
    let mut all = Out::new();
    for (t, v) in parts.into_iter().flatten() {
        all.entry(t).or_default().extend(v);
    }
    all.values_mut().for_each(consolidate);
    all.retain(|_, v| !v.is_empty());
    all
}

fn on<X: Send + std::fmt::Debug + 'static>(n: usize, f: impl Fn(&mut Worker) -> X + Send + Sync + 'static) -> Vec<X> {
    timely::execute(timely::Config::process(n), f).unwrap().join().into_iter().map(Result::unwrap).collect()
}

fn round_trip(workers: usize, future: bool, midflight: bool, bursts: bool, skew: u64) {
    let full = merged(on(workers, move |w| {
        let mut f = flow(w, None);
        for t in 1..=90 {
            tick(&mut f, t, future, 0);
            drive(w, &f, t + 1);
        }
        let out = f.log.borrow().clone();
        out
    }));
    let cuts = std::sync::Arc::new(std::sync::Mutex::new(BTreeMap::new()));
    let kept = cuts.clone();
    let first = merged(on(workers, move |w| {
        let mut f = flow(w, None);
        f.ctls.iter().for_each(|c| *c.want.borrow_mut() = Some(41));
        for t in 1..=40 {
            tick(&mut f, t, future, skew);
            if !bursts {
                drive(w, &f, (t + 1).saturating_sub(skew));
            } else if t % 3 == 0 {
                w.step();
            }
        }
        if midflight {
            // Later ticks are in the dataflow before the cut is taken.
            for t in 41..=65 {
                tick(&mut f, t, future, skew);
                if t % 4 == 0 {
                    w.step();
                }
            }
            drive(w, &f, 53);
        } else {
            drive(w, &f, 41);
        }
        let got: Vec<Saved<u64, i64>> = f.ctls.iter().map(|c| c.got.borrow_mut().take().expect("a cut")).collect();
        assert!(got.iter().all(|g| g.upper == Antichain::from_elem(41)));
        kept.lock().unwrap().insert(w.index(), got);
        // The rest of the run is lost, as after a crash.
        let out = f.log.borrow().clone();
        out
    }));
    let second = merged(on(workers, move |w| {
        let saved = cuts.lock().unwrap().remove(&w.index());
        let mut f = flow(w, saved);
        f.l.advance_to(41);
        f.r.advance_to(41);
        f.l.flush();
        f.r.flush();
        drive(w, &f, 41);
        for _ in 0..20 {
            w.step();
        }
        assert!(f.log.borrow().is_empty(), "emitted on resume: {:?}", f.log.borrow().keys().next());
        for t in 41..=90 {
            tick(&mut f, t, future, 0);
            drive(w, &f, t + 1);
        }
        let out = f.log.borrow().clone();
        out
    }));
    let part = |m: &Out, from: u64, to: u64| -> Out { m.range(from..to).map(|(k, v)| (*k, v.clone())).collect() };
    assert!(part(&full, 0, 41) == part(&first, 0, 41), "before the cut");
    assert!(second.keys().all(|t| *t > 40));
    assert!(part(&full, 41, 91) == part(&second, 41, 91), "after the cut");
    assert!(part(&second, 41, 91).len() > 40);
}

#[test]
fn a_cut_dataflow_goes_on_elsewhere() {
    round_trip(1, false, false, false, 0);
    round_trip(1, true, false, false, 0);
}

#[test]
fn a_cut_is_taken_while_later_ticks_are_under_way() {
    round_trip(1, true, true, false, 0);
    round_trip(1, true, true, true, 0);
    round_trip(1, true, true, true, 9);
    round_trip(1, false, true, true, 9);
}

#[test]
fn two_workers_are_cut_at_one_time() {
    round_trip(2, true, false, false, 0);
    round_trip(2, true, true, true, 9);
}

struct Exporter {
    input: In,
    probe: Handle<u64>,
    agent: Agent<u64, i64>,
    stopped: Rc<Stopped>,
}

fn exporter(w: &mut Worker) -> Exporter {
    w.dataflow::<u64, _, _>(|scope| {
        let mut input: In = InputSession::new();
        let stopped: Rc<Stopped> = Default::default();
        let a = arrange(blocks(&mut input, scope), Pipeline, "E", None, ArrangeCtl::new(stopped.clone()));
        let probe = Handle::new();
        a.stream.probe_with(&probe);
        Exporter { input, probe, agent: a.trace, stopped }
    })
}

fn importer(w: &mut Worker, agent: &Agent<u64, i64>, as_of: u64, until: Option<u64>) -> Result<(Handle<u64>, Log), Antichain<u64>> {
    let log: Log = Default::default();
    let noted = log.clone();
    w.dataflow::<u64, _, _>(|scope| {
        let (i, _) = import(agent, scope, "I", as_of, until, Default::default(), |_| {})?;
        let joined = join(i.clone(), i, "SelfJoin", JoinCfg { start: as_of, ..cfg(None, Duration::from_millis(1)) }, matched);
        let probe = Handle::new();
        note(joined, 0, &noted).probe_with(&probe);
        Ok((probe, noted))
    })
}

fn rows(t: u64) -> Vec<((u64, u64), i64)> {
    let mut r = Rng(t * 31 + 5);
    (0..30).map(|_| ((r.n(40), r.n(10)), if r.n(3) == 0 { -1 } else { 1 })).collect()
}

fn feed(e: &mut Exporter, from: u64, to: u64) {
    for t in from..to {
        rows(t).into_iter().for_each(|(x, d)| e.input.update_at(x, t, d));
        e.input.advance_to(t + 1);
        e.input.flush();
    }
}

/// The self join at `t`, the plain way.
fn naive(t: u64) -> BTreeMap<(u64, u64), i64> {
    let mut content: BTreeMap<(u64, u64), i64> = BTreeMap::new();
    (1..=t).flat_map(rows).for_each(|(x, d)| *content.entry(x).or_default() += d);
    let mut out = BTreeMap::new();
    for ((k, v), d) in &content {
        for ((_, v2), d2) in content.range((*k, 0)..(*k + 1, 0)) {
            *out.entry((*v, *v2)).or_default() += d * d2;
        }
    }
    out.retain(|_, d| *d != 0);
    out
}

fn at(log: &Log, t: u64) -> BTreeMap<(u64, u64), i64> {
    let mut out = BTreeMap::new();
    for ((_, k, v), d) in log.borrow().range(..=t).flat_map(|x| x.1) {
        *out.entry((*k, *v)).or_default() += d;
    }
    out.retain(|_, d| *d != 0);
    out
}

#[test]
fn imports_are_exact_from_their_time_on() {
    timely::execute_directly(|w| {
        let mut e = exporter(w);
        feed(&mut e, 1, 60);
        while e.probe.less_than(&60) {
            w.step();
        }
        e.agent.set_logical_compaction(AntichainRef::new(&[30]));
        e.agent.set_physical_compaction(AntichainRef::new(&[60]));
        assert_eq!(importer(w, &e.agent, 20, None).err(), Some(Antichain::from_elem(30)));
        let whole = importer(w, &e.agent, 40, None).unwrap();
        let bounded = importer(w, &e.agent, 45, Some(80)).unwrap();
        e.agent.set_logical_compaction(AntichainRef::new(&[60]));
        feed(&mut e, 60, 100);
        while whole.0.less_than(&100) {
            w.step();
        }
        assert!(whole.1.borrow().keys().all(|t| *t >= 40));
        assert!(bounded.0.done() && bounded.1.borrow().keys().all(|t| (45..80).contains(t)));
        (40..100).for_each(|t| assert!(at(&whole.1, t) == naive(t), "at {t}"));
        (45..80).for_each(|t| assert!(at(&bounded.1, t) == naive(t), "bounded, at {t}"));
        // Stopped, not finished: the importer stalls where it is.
        e.stopped.set();
        e.input.close();
        for _ in 0..50 {
            w.step();
        }
        assert!(!whole.0.done(), "a stopped exporter was taken for a complete one");
        for d in w.installed_dataflows() {
            w.drop_dataflow(d);
        }
    });
}

#[test]
fn spans_are_read_on_another_thread_while_their_trace_goes_on() {
    timely::execute_directly(|w| {
        let mut e = exporter(w);
        let mut content: BTreeMap<(u64, u64), i64> = BTreeMap::new();
        let mut readers = vec![];
        for t in 1..=200 {
            feed(&mut e, t, t + 1);
            rows(t).into_iter().for_each(|(x, d)| *content.entry(x).or_default() += d);
            while e.probe.less_than(&(t + 1)) {
                w.step();
            }
            e.agent.set_physical_compaction(AntichainRef::new(&[t + 1]));
            if t % 10 == 0 {
                let spans = e.agent.spans_through(AntichainRef::new(&[t + 1])).unwrap();
                let mut want = content.clone();
                want.retain(|_, d| *d != 0);
                readers.push(std::thread::spawn(move || {
                    std::thread::sleep(Duration::from_millis(5));
                    let mut got: BTreeMap<(u64, u64), i64> = BTreeMap::new();
                    for b in spans.into_iter().filter_map(|s| s.inner) {
                        b.for_each(|_, k, v, at, d| *got.entry((number(k), number(v))).or_default() += if at <= t { *d } else { 0 });
                    }
                    got.retain(|_, d| *d != 0);
                    got == want
                }));
            }
            if t > 40 {
                e.agent.set_logical_compaction(AntichainRef::new(&[t - 30]));
            }
        }
        assert!(readers.into_iter().all(|r| r.join().unwrap()));
        e.input.close();
    });
}
