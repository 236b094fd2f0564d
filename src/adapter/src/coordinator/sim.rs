//! The coordinator, its committer and the store on a simulated disk, with simulated workers, connector, clients and clock, all in one thread and all
//! from one seed: which client does what, when the disk fails or loses power (at any of its calls, also in recovery), what of the unsynced bytes is left.
//!
//! What is checked: acknowledged transactions are there after any crash, others whole or not at all, refused ones never; a read sees exactly what was
//! acknowledged before it; increments that read and write lose no update; each key has one row; each unit of the source is there once and whole, and
//! upstream never hears of a position that is not durable; times increase, also over crashes and when the clock goes back; what the workers were told
//! adds up to what is durable.
//!
//! `SIM_SEED=17 cargo test -p adapter coordinator::sim` runs one seed, `SIM_SEEDS=10000` that many from 0 on.

use super::edges::{Clock, Connectors, Edges, Engine, NewSource};
use super::request::{Event, Op, ReadAt, ReadRequest, ReadStarted, Request, WriteTxn};
use super::{boot, Coordinator};
use crate::catalog::{Constraint, Item, ItemKind, Source, SourceConnector, Table, ITEM_VERSION};
use crate::changes::Changes;
use crate::session::read_set::ReadSet;
use crate::settings::Settings;
use dataflow::{Command, SnapshotReader};
use ingest::{SourceEvent, SourceHandle, SourceStatus, Staged};
use parking_lot::Mutex;
use plan::{Export, Id, Import, Lir, LirKind, PeekPlan};
use repr::{Batch, Col, ColType, Deltas, GlobalId, RelDesc, RowCodec, SqlError, SqlType, Timestamp, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::panic::{catch_unwind, resume_unwind, AssertUnwindSafe};
use std::path::Path;
use std::sync::Arc;
use storage::sim::{Fault, Rng, SimDisk};
use storage::{Store, StoreOptions};
use tokio::sync::oneshot;

const ACCOUNTS: GlobalId = GlobalId(20_001);
const SOURCE: GlobalId = GlobalId(20_002);
const ERRORS: GlobalId = GlobalId(20_003);
const VIEW: GlobalId = GlobalId(20_004);
/// Tables that come and go.
const FIRST_EXTRA: u64 = 21_000;
const STEPS: usize = 120;

/// (id, value, number of the transaction that wrote it).
type Row = [i64; 3];
type Content = BTreeMap<Row, i64>;

fn types() -> Vec<ColType> {
    vec![SqlType::Int8.not_null(), SqlType::Int8.not_null(), SqlType::Int8.not_null()]
}

fn deltas(changes: &[(Row, i64)]) -> Deltas {
    let rows: Vec<Vec<Value>> = changes.iter().map(|(r, _)| r.iter().map(|v| Value::Int8(*v)).collect()).collect();
    Deltas { rows: Batch::from_rows(&types(), rows.iter().map(Vec::as_slice)), diffs: Col::from_vec(changes.iter().map(|c| c.1).collect()) }
}

fn add(content: &mut Content, deltas: &Deltas) {
    for i in 0..deltas.len() {
        let row = deltas.rows.row(&types(), i);
        let row: Row = std::array::from_fn(|c| row[c].as_i64().unwrap());
        let n = content.entry(row).or_insert(0);
        *n += deltas.diffs.get(i);
        if *n == 0 {
            content.remove(&row);
        }
    }
}

fn apply(content: &mut Content, changes: &[(Row, i64)]) {
    add(content, &deltas(changes));
}

/// What the simulated edges share with the test. It outlives processes.
#[derive(Default)]
struct World {
    now: Timestamp,
    /// What one-off dataflows found.
    results: BTreeMap<GlobalId, Content>,
    /// What the workers hold of the view: its content and the last closed time.
    view: Option<Content>,
    view_as_of: Timestamp,
    last_tick: Timestamp,
    /// The connector that runs: its number and the next unit of upstream.
    connector: Option<(u64, u64)>,
    /// Events of the connector that the coordinator has not taken yet.
    events: Vec<(u64, SourceEvent)>,
    /// The greatest position that upstream was told.
    acknowledged: u64,
}

type Shared = Arc<Mutex<World>>;

struct SimClock(Shared);

impl Clock for SimClock {
    fn now_ms(&self) -> Timestamp {
        self.0.lock().now
    }
}

struct SimEngine(Shared);

fn read_all(reader: &Arc<dyn SnapshotReader>) -> Content {
    let mut content = Content::new();
    for part in reader.read(0, 1, None) {
        add(&mut content, &part.expect("what was synced can be read"));
    }
    content
}

impl Engine for SimEngine {
    fn send(&self, command: Command) {
        let mut world = self.0.lock();
        match command {
            Command::CreateDataflow { id, desc, shards, .. } => {
                let mut content = Content::new();
                for (_, reader) in &shards {
                    for (row, n) in read_all(reader) {
                        apply(&mut content, &[(row, n)]);
                    }
                }
                match desc.exports[0] {
                    Export::PeekOnce { .. } => drop(world.results.insert(id, content)),
                    _ => (world.view, world.view_as_of) = (Some(content), desc.as_of),
                }
            }
            Command::Tick { t, shards, parts } => {
                assert!(t >= world.last_tick, "the workers were told of {t} after {}", world.last_tick);
                world.last_tick = t;
                if t > world.view_as_of {
                    for (_, d) in shards.iter().filter(|s| s.0 == ACCOUNTS) {
                        if let Some(view) = &mut world.view {
                            add(view, d);
                        }
                    }
                    for (_, reader) in parts.iter().filter(|p| p.0 == ACCOUNTS) {
                        if let Some(view) = &mut world.view {
                            read_all(reader).into_iter().for_each(|change| apply(view, &[change]));
                        }
                    }
                }
            }
            Command::CatchUp { ticks, .. } => assert!(ticks.is_empty(), "the view is as of the tick that makes it"),
            _ => {}
        }
    }
}

struct SimConnectors(Shared);

struct SimHandle(Shared);

impl SourceHandle for SimHandle {
    fn acknowledge(&self, position: &str) {
        let mut world = self.0.lock();
        world.acknowledged = world.acknowledged.max(position.parse().unwrap());
    }
    fn statistics(&self) -> Vec<(String, Value)> {
        vec![]
    }
}

impl Connectors for SimConnectors {
    fn start(&mut self, instance: u64, source: NewSource) -> Result<Box<dyn SourceHandle>, SqlError> {
        let next: u64 = source.resume.map_or(0, |p| p.parse().unwrap());
        let mut world = self.0.lock();
        assert!(next >= world.acknowledged, "upstream was told {}, but the source goes on at {next}", world.acknowledged);
        world.connector = Some((instance, next));
        world.events.push((instance, SourceEvent::Status { source: SOURCE, status: SourceStatus::Running }));
        Ok(Box::new(SimHandle(self.0.clone())))
    }
}

/// The rows of a unit of upstream, the same whenever they are read.
fn unit(n: u64) -> Vec<Row> {
    (0..1 + n * 7 % 5).map(|i| [n as i64, i as i64, (n * 31 % 17) as i64]).collect()
}

/// The next unit as events: in one piece or in parts.
fn hand_over(world: &mut World, rng: &mut Rng) {
    let Some((instance, next)) = world.connector else { return };
    let rows = unit(next);
    let first = next == 0;
    let cut = if rng.one_in(3) { rng.below(rows.len() as u64 + 1) as usize } else { 0 };
    for (part, more) in [(&rows[..cut], true), (&rows[cut..], false)] {
        if more && part.is_empty() {
            continue;
        }
        let part: Vec<(Row, i64)> = part.iter().map(|r| (*r, 1)).collect();
        let staged = Staged {
            source: SOURCE,
            deltas: vec![(SOURCE, deltas(&part))],
            position: (next + 1).to_string(),
            snapshot_of: if first { vec![SOURCE] } else { vec![] },
            more,
        };
        world.events.push((instance, SourceEvent::Staged(staged)));
    }
    world.connector = Some((instance, next + 1));
}

/// The process ends.
struct Exit;

fn exit(_: &str) -> ! {
    resume_unwind(Box::new(Exit))
}

/// A transaction whose answer is still to come.
struct Sent {
    answer: oneshot::Receiver<Result<Timestamp, SqlError>>,
    changes: Vec<(Row, i64)>,
    /// The table it creates, if it does.
    creates: Option<GlobalId>,
    /// Accounts that it inserts: 23505 is right if another one has them.
    inserts: bool,
    reads: bool,
}

/// A client that has read, and will write what it made of it.
struct Thinking {
    at: Timestamp,
    seen: Content,
    key_only: bool,
}

struct Sim {
    seed: u64,
    rng: Rng,
    disk: SimDisk,
    world: Shared,
    coordinator: Option<Coordinator>,
    shared: Arc<crate::Shared>,
    /// What was acknowledged.
    accounts: Content,
    tables: BTreeSet<GlobalId>,
    sent: Vec<Sent>,
    thinking: Vec<Thinking>,
    /// Increments acknowledged.
    increments: i64,
    /// The greatest time that a client was told.
    told: Timestamp,
    /// Units of the source seen by a read.
    units: u64,
    next_number: i64,
    next_table: u64,
    crashes: u64,
}

fn item(id: GlobalId, name: &str, kind: ItemKind, deps: Vec<GlobalId>) -> Box<Item> {
    let keys = if matches!(kind, ItemKind::Table(_)) { vec![vec![0]] } else { vec![] };
    let desc = match kind {
        ItemKind::Errors { .. } => ingest::errors_desc(),
        _ => RelDesc { names: ["id", "v", "txn"].map(String::from).to_vec(), types: types(), keys },
    };
    let captured = Settings::default().capture();
    Box::new(Item {
        version: ITEM_VERSION,
        id,
        schema: "public".into(),
        name: name.into(),
        kind,
        desc,
        sql: String::new(),
        deps,
        rests_on: vec![],
        captured,
        comments: vec![],
        constraint_comments: vec![],
        options: vec![],
        created_at: 0,
    })
}

fn table() -> ItemKind {
    ItemKind::Table(Table {
        defaults: vec![None; 3],
        primary_key: Some(Constraint {
            name: "pkey".into(),
            columns: vec![0],
            include: vec![],
            index: false,
            equal_nulls: false,
            deferrable: false,
            deferred: false,
        }),
        unique: vec![],
        checks: vec![],
        temporary: false,
        generated: vec![None; 3],
        sequences: vec![],
        foreign: vec![],
        computed_keys: vec![],
        collations: vec![],
        unchecked: vec![],
        on_commit: Default::default(),
    })
}

impl Sim {
    fn new(seed: u64) -> Sim {
        let world: Shared = Arc::default();
        world.lock().now = 1_700_000_000_000;
        let (requests, _) = crossbeam_channel::unbounded();
        Sim {
            seed,
            rng: Rng::new(seed),
            disk: SimDisk::new(),
            world,
            coordinator: None,
            shared: Arc::new(crate::Shared::new(requests, None)),
            accounts: Content::new(),
            tables: BTreeSet::new(),
            sent: vec![],
            thinking: vec![],
            increments: 0,
            told: 0,
            units: 0,
            next_number: 1,
            next_table: FIRST_EXTRA,
            crashes: 0,
        }
    }

    fn c(&mut self) -> &mut Coordinator {
        self.coordinator.as_mut().expect("the process runs")
    }

    /// Starts the process, which may end while it recovers.
    fn start(&mut self) {
        loop {
            if self.rng.one_in(4) {
                self.disk.power_off_after(1 + self.rng.below(12));
            }
            {
                let mut world = self.world.lock();
                (world.view, world.connector, world.last_tick) = (None, None, 0);
                world.events.clear();
            }
            let (requests, _) = crossbeam_channel::unbounded();
            self.shared = Arc::new(crate::Shared::new(requests, None));
            let (disk, world, shared) = (self.disk.clone(), self.world.clone(), self.shared.clone());
            let started = catch_unwind(AssertUnwindSafe(|| {
                let options = StoreOptions { fold_bytes: 4_000, segment_bytes: 1_500, background: false };
                let store = Store::open(Arc::new(disk), Path::new("/data"), options)?;
                let edges = Edges {
                    engine: Box::new(SimEngine(world.clone())),
                    connectors: Box::new(SimConnectors(world.clone())),
                    clock: Box::new(SimClock(world)),
                    fatal: exit,
                };
                let mut c = boot::start(store, edges, shared)?;
                c.start_all_sources();
                Ok::<_, SqlError>(c)
            }));
            match started {
                Ok(Ok(c)) => {
                    self.coordinator = Some(c);
                    return;
                }
                Ok(Err(_)) => {}
                Err(e) if e.is::<Exit>() => {}
                Err(e) => resume_unwind(e),
            }
            self.lose_power();
        }
    }

    fn lose_power(&mut self) {
        self.crashes += 1;
        let seed = self.rng.below(u64::MAX);
        self.disk = self.disk.crash(seed);
    }

    /// Runs a part of the process. Returns whether it still runs.
    fn run(&mut self, f: impl FnOnce(&mut Coordinator)) -> bool {
        let mut c = self.coordinator.take().expect("the process runs");
        let done = catch_unwind(AssertUnwindSafe(|| f(&mut c)));
        match done {
            Ok(()) => {
                self.coordinator = Some(c);
                self.take_answers(false);
                true
            }
            Err(e) if e.is::<Exit>() => {
                // The lock goes with the process; nothing else of it is left.
                drop(c);
                false
            }
            Err(e) => resume_unwind(e),
        }
    }

    /// Ends the process here and now, or after it ended itself; then recovers and looks at what is there.
    fn crash(&mut self) {
        self.coordinator = None;
        self.lose_power();
        self.start();
        self.recovered();
    }

    fn content(&mut self, id: GlobalId) -> Content {
        let c = self.c();
        let mut content = Content::new();
        for part in c.store.snapshot(id, c.closed).expect("the shard is there").read(0, 1) {
            add(&mut content, &part.expect("what was synced can be read"));
        }
        content
    }

    /// Transactions without an answer are whole or absent; all others as they were answered.
    fn recovered(&mut self) {
        self.thinking.clear();
        self.take_answers(true);
        let catalog = self.c().catalog();
        if catalog.item(ACCOUNTS).is_none() {
            assert!(self.accounts.is_empty() && self.told == 0, "the catalog was acknowledged and is lost");
            self.sent.clear();
            return;
        }
        let found = self.content(ACCOUNTS);
        for sent in std::mem::take(&mut self.sent) {
            if let Some(id) = sent.creates {
                if catalog.item(id).is_some() {
                    self.tables.insert(id);
                }
                continue;
            }
            let new: Vec<Row> = sent.changes.iter().filter(|c| c.1 > 0).map(|c| c.0).collect();
            let there = new.iter().filter(|r| found.contains_key(*r)).count();
            assert!(there == 0 || there == new.len(), "a transaction is there in part: {:?}", sent.changes);
            if there > 0 {
                apply(&mut self.accounts, &sent.changes);
                self.increments += i64::from(sent.reads);
            }
        }
        assert_eq!(found, self.accounts, "accounts after a crash");
        for id in &self.tables {
            assert!(catalog.item(*id).is_some(), "table {id} was acknowledged and is lost");
        }
        let closed = self.c().closed;
        assert!(closed >= self.told, "a client was told {}, time goes on at {closed}", self.told);
        self.check_source();
        self.check_view();
    }

    fn check_source(&mut self) {
        if self.c().catalog().item(SOURCE).is_none() {
            return;
        }
        let found = self.content(SOURCE);
        let next: u64 = self.c().sources.info().first().and_then(|i| i.position.clone()).map_or(0, |p| p.parse().unwrap());
        let mut want = Content::new();
        for n in 0..next {
            apply(&mut want, &unit(n).into_iter().map(|r| (r, 1)).collect::<Vec<_>>());
        }
        assert_eq!(found, want, "the source at position {next}");
        assert!(next >= self.units, "units that were read are gone");
        self.units = next;
    }

    fn check_view(&mut self) {
        let c = self.c();
        if c.catalog().item(VIEW).is_none() {
            return;
        }
        let view = self.world.lock().view.clone();
        assert_eq!(view, Some(self.accounts.clone()), "what the workers hold");
    }

    /// Takes the answers that are there. `ended`: those that are not will never come.
    fn take_answers(&mut self, ended: bool) {
        let mut rest = Vec::new();
        for mut sent in std::mem::take(&mut self.sent) {
            match sent.answer.try_recv() {
                Ok(Ok(t)) => {
                    assert!(t >= self.told, "a transaction was told {t} after {}", self.told);
                    self.told = t;
                    apply(&mut self.accounts, &sent.changes);
                    self.increments += i64::from(sent.reads);
                    self.tables.extend(sent.creates);
                }
                Ok(Err(e)) => {
                    let right = match e.code.as_str() {
                        "40001" => sent.reads,
                        "23505" => sent.inserts,
                        "53100" | "58030" => true,
                        _ => false,
                    };
                    assert!(right, "{e}");
                }
                Err(oneshot::error::TryRecvError::Closed) => {
                    assert!(ended, "a transaction got no answer");
                    rest.push(sent);
                }
                Err(oneshot::error::TryRecvError::Empty) => rest.push(sent),
            }
        }
        self.sent = rest;
    }

    fn send(&mut self, txn: WriteTxn, sent: impl FnOnce(oneshot::Receiver<Result<Timestamp, SqlError>>) -> Sent) -> bool {
        let (tx, rx) = oneshot::channel();
        self.sent.push(sent(rx));
        self.run(|c| c.handle(Event::Request(Request::Write(txn, tx))))
    }

    /// Changes as a session hands them over: those of a large transaction in files.
    fn buffered(&mut self, changes: &[(Row, i64)]) -> Changes {
        let mut out = Changes::from(deltas(changes));
        if self.rng.one_in(3) {
            if let Ok(store) = self.shared.store() {
                // On a full disk they stay in memory.
                let _ = out.stage(&store, ACCOUNTS, &types());
            }
        }
        out
    }

    fn number(&mut self) -> i64 {
        self.next_number += 1;
        self.next_number
    }

    /// The objects that all else works on, in one transaction.
    fn create_objects(&mut self) -> bool {
        let source = Source {
            connection: None,
            connector: SourceConnector::Generator { kind: ingest::Generator::Counter, tick_interval_ms: 1, options: vec![] },
            self_output: Some(vec![ingest::ColumnSource::Offset; 3]),
            errors: ERRORS,
            fail_on_error: false,
            watermark: None,
        };
        let view = ItemKind::MaterializedView { query: "SELECT id, v, txn FROM public.accounts".into(), quarantine: false };
        let ddl = [
            item(ACCOUNTS, "accounts", table(), vec![]),
            item(SOURCE, "source", ItemKind::Source(source), vec![]),
            item(ERRORS, "source_errors", ItemKind::Errors { source: SOURCE }, vec![SOURCE]),
            item(VIEW, "view", view, vec![ACCOUNTS]),
        ];
        let ddl = ddl.into_iter().map(|item| Op::Create { item, plan: None }).collect();
        self.send(WriteTxn { ddl, ..WriteTxn::default() }, |answer| Sent { answer, changes: vec![], creates: None, inserts: false, reads: false })
    }

    /// Two new accounts, perhaps under ids that others have or want too.
    fn insert(&mut self) -> bool {
        let n = self.number();
        let id = self.rng.below(40) as i64;
        let changes: Vec<(Row, i64)> = vec![([id, 0, n], 1), ([id + 1_000, 0, n], 1)];
        let writes = vec![(ACCOUNTS, self.buffered(&changes))];
        self.send(WriteTxn { writes, ..WriteTxn::default() }, |answer| Sent { answer, changes, creates: None, inserts: true, reads: false })
    }

    fn create_table(&mut self) -> bool {
        let id = GlobalId(self.next_table);
        self.next_table += 1;
        let ddl = vec![Op::Create { item: item(id, &format!("t{}", id.0), table(), vec![]), plan: None }];
        self.send(WriteTxn { ddl, ..WriteTxn::default() }, |answer| Sent { answer, changes: vec![], creates: Some(id), inserts: false, reads: false })
    }

    /// A read of a relation as of now: exactly what was acknowledged.
    fn read(&mut self, id: GlobalId) -> Option<(Timestamp, Content)> {
        let lir = Lir { node: 0, types: types(), kind: LirKind::Get { id: Id::Global(id) } };
        let request = ReadRequest {
            plan: PeekPlan::Dataflow(lir),
            imports: vec![Import::Shard { id, types: types() }],
            relations: vec![id],
            at: ReadAt::Latest,
            ctx: Arc::default(),
            limit: None,
            own: vec![],
        };
        let (tx, mut rx) = oneshot::channel::<Result<ReadStarted, SqlError>>();
        if !self.run(|c| c.handle(Event::Request(Request::Read(request, tx)))) {
            return None;
        }
        // A source whose snapshot is not there yet is waited for.
        let started = rx.try_recv().ok()?.expect("the relation can be read");
        assert!(started.at >= self.told, "a read at {} after a client was told {}", started.at, self.told);
        self.told = started.at;
        let content = self.world.lock().results.remove(&started.id).expect("the workers were asked");
        self.c().handle(Event::Request(Request::EndRead(started.id)));
        Some((started.at, content))
    }

    /// Reads the accounts in order to change one of them later.
    fn think(&mut self) -> bool {
        let Some((at, seen)) = self.read(ACCOUNTS) else { return self.coordinator.is_some() };
        assert_eq!(seen, self.accounts, "a read at {at}");
        let mut ids = BTreeSet::new();
        assert!(seen.iter().all(|(r, n)| *n == 1 && ids.insert(r[0])), "two rows of one key: {seen:?}");
        assert_eq!(seen.keys().map(|r| r[1]).sum::<i64>(), self.increments, "increments at {at}");
        let key_only = self.rng.one_in(2);
        self.thinking.push(Thinking { at, seen, key_only });
        true
    }

    /// Writes what was thought of: one more on some account, that is, as of what was read.
    fn increment(&mut self) -> bool {
        if self.thinking.is_empty() {
            return true;
        }
        let i = self.rng.below(self.thinking.len() as u64) as usize;
        let t = self.thinking.swap_remove(i);
        if t.seen.is_empty() {
            return true;
        }
        let i = self.rng.below(t.seen.len() as u64) as usize;
        let old = *t.seen.keys().nth(i).expect("an account");
        let n = self.number();
        let changes = vec![(old, -1), ([old[0], old[1] + 1, n], 1)];
        let mut read_set = ReadSet::default();
        if t.key_only {
            let mut key = Vec::new();
            RowCodec::new(vec![types()[0].clone()]).encode_key(&[Value::Int8(old[0])], &mut key);
            read_set.keys.insert((ACCOUNTS, 0), [key].into());
        } else {
            read_set.whole.insert(ACCOUNTS);
        }
        let txn = WriteTxn { writes: vec![(ACCOUNTS, self.buffered(&changes))], read_set, read_at: Some(t.at), ..WriteTxn::default() };
        self.send(txn, |answer| Sent { answer, changes, creates: None, inserts: false, reads: true })
    }

    fn source_events(&mut self) -> bool {
        let n = self.rng.below(4) as usize;
        let events: Vec<_> = {
            let mut world = self.world.lock();
            hand_over(&mut world, &mut self.rng);
            let n = n.min(world.events.len());
            world.events.drain(..n).collect()
        };
        self.run(|c| {
            for (instance, event) in events {
                let (done, _taken) = crossbeam_channel::bounded(1);
                c.handle(Event::Source { instance, event, done });
            }
        })
    }

    fn settle(&mut self) -> bool {
        let on = self.run(Coordinator::settle);
        self.take_answers(!on);
        if on {
            assert!(self.sent.is_empty(), "transactions without an answer");
            self.check_view();
        }
        on
    }

    fn step(&mut self) -> bool {
        if self.c().catalog().item(ACCOUNTS).is_none() {
            return self.create_objects() && self.settle();
        }
        match self.rng.below(20) {
            0..=3 => self.insert(),
            4..=6 => self.think(),
            7..=10 => self.increment(),
            11..=13 => self.source_events(),
            14 => self.create_table(),
            15 => match self.read(SOURCE) {
                Some(_) => {
                    self.check_source();
                    true
                }
                None => self.coordinator.is_some(),
            },
            16 => self.run(|c| drop(c.store.fold())),
            17 => self.run(Coordinator::upkeep),
            18 => {
                let n = 1 + self.rng.below(6);
                let fault = [Fault::Io, Fault::ShortWrite, Fault::DiskFull][self.rng.below(3) as usize];
                self.disk.fail(n, fault, false);
                true
            }
            _ => {
                let mut world = self.world.lock();
                let by = self.rng.below(5_000);
                world.now = if self.rng.one_in(4) { world.now - by } else { world.now + by };
                true
            }
        }
    }

    fn story(&mut self) {
        self.start();
        for _ in 0..STEPS {
            if self.rng.one_in(40) {
                self.disk.power_off_after(1 + self.rng.below(8));
            }
            let on = self.step() && (!self.rng.one_in(2) || self.settle());
            if !on || self.rng.one_in(60) {
                self.crash();
            }
        }
        // Once nothing fails any more, all goes on.
        self.disk.heal();
        self.disk.power_on();
        self.crash();
        self.disk.power_on();
        if self.c().catalog().item(ACCOUNTS).is_some() {
            let units = self.units;
            for _ in 0..20 {
                self.world.lock().now += 200;
                assert!(self.source_events() && self.insert() && self.settle());
            }
            assert!(self.think());
            self.check_source();
            assert!(self.units > units, "the source stands still");
        }
    }
}

fn seeds() -> std::ops::Range<u64> {
    let number = |name: &str| std::env::var(name).ok().and_then(|v| v.parse::<u64>().ok());
    match (number("SIM_SEED"), number("SIM_SEEDS")) {
        (Some(seed), _) => seed..seed + 1,
        (None, n) => 0..n.unwrap_or(60),
    }
}

#[test]
fn stories() {
    let mut crashes = 0;
    for seed in seeds() {
        let mut sim = Sim::new(seed);
        if let Err(e) = catch_unwind(AssertUnwindSafe(|| sim.story())) {
            eprintln!("SIM_SEED={} cargo test -p adapter coordinator::sim", sim.seed);
            resume_unwind(e);
        }
        crashes += sim.crashes;
    }
    assert!(crashes > 0);
}
