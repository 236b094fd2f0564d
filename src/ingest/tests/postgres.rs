//! PostgreSQL sources against a real server: the one that `RIVERDELTA_TEST_POSTGRES` names (`host:port`, user postgres, trust,
//! `wal_level = logical`), else one that the tests start.
//!
//! The judge is the upstream table itself: when everything was taken in, the sum of all changes is its content.

use ingest::*;
use parking_lot::Mutex;
use repr::style::TextStyle;
use repr::text::to_text;
use repr::{ColType, Deltas, GlobalId, SqlError};
use std::collections::BTreeMap;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};
use tokio_postgres::NoTls;

/// An upstream server.
struct Server {
    address: String,
    /// Holds its standard input.
    _child: Option<Child>,
}

fn server() -> &'static str {
    static SERVER: OnceLock<Server> = OnceLock::new();
    &SERVER
        .get_or_init(|| match std::env::var("RIVERDELTA_TEST_POSTGRES") {
            Ok(address) => Server { address, _child: None },
            Err(_) => start_server(),
        })
        .address
}

fn start_server() -> Server {
    let bin = std::env::var("RIVERDELTA_PG_BIN").unwrap_or_else(|_| "/usr/lib/postgresql/15/bin".into());
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    // The server refuses to run as root.
    let is_root = std::os::unix::fs::MetadataExt::uid(&std::fs::metadata("/proc/self").unwrap()) == 0;
    let run = |program: &str| {
        let mut command = match is_root {
            true => {
                let mut c = Command::new("runuser");
                c.args(["-u", "postgres", "--"]).arg(format!("{bin}/{program}"));
                c
            }
            false => Command::new(format!("{bin}/{program}")),
        };
        command.current_dir("/").stdout(Stdio::null()).stderr(Stdio::null());
        command
    };
    if is_root {
        let owned = Command::new("chown").arg("postgres").arg(dir.path()).status().unwrap();
        assert!(owned.success());
    }
    let made = run("initdb").arg("-D").arg(&data).args(["-U", "postgres", "--auth=trust", "--encoding=UTF8", "--locale=C.UTF-8", "--no-sync"]).status();
    assert!(made.expect("PostgreSQL's server programs are needed").success());
    // Its standard input ends with this process, and then it does: nothing is left behind.
    let script = format!(
        "{bin}/postgres -D {} -p {port} -c wal_level=logical -c fsync=off -c unix_socket_directories= & server=$!; cat; kill -INT $server; wait $server; rm -rf {}",
        data.display(),
        dir.path().display()
    );
    let mut shell = match is_root {
        true => {
            let mut c = Command::new("runuser");
            c.args(["-u", "postgres", "--", "sh", "-c", &script]);
            c
        }
        false => {
            let mut c = Command::new("sh");
            c.args(["-c", &script]);
            c
        }
    };
    let child = shell.current_dir("/").stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let _ = dir.keep();
    let deadline = Instant::now() + Duration::from_secs(30);
    while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
        assert!(Instant::now() < deadline, "the server does not start");
        std::thread::sleep(Duration::from_millis(50));
    }
    std::thread::sleep(Duration::from_millis(300));
    Server { address: format!("127.0.0.1:{port}"), _child: Some(child) }
}

fn runtime() -> &'static tokio::runtime::Runtime {
    static RUNTIME: OnceLock<tokio::runtime::Runtime> = OnceLock::new();
    RUNTIME.get_or_init(|| tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap())
}

/// An upstream database of its own with a publication `p` for all tables.
struct Upstream {
    name: String,
    client: tokio_postgres::Client,
}

fn connect(database: &str) -> tokio_postgres::Client {
    let (host, port) = server().split_once(':').unwrap();
    let config = format!("host={host} port={port} user=postgres dbname={database}");
    runtime().block_on(async {
        let (client, connection) = tokio_postgres::connect(&config, NoTls).await.unwrap();
        tokio::spawn(connection);
        client
    })
}

impl Upstream {
    fn new(name: &str, sql: &str) -> Upstream {
        let name = format!("rd_{name}");
        let admin = connect("postgres");
        runtime().block_on(async {
            let slots = "SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots WHERE database = $1 AND active_pid IS NOT NULL";
            admin.query(slots, &[&name]).await.unwrap();
            for _ in 0..50 {
                if admin.query("SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE database = $1", &[&name]).await.is_ok() {
                    break;
                }
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
            admin.batch_execute(&format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)")).await.unwrap();
            admin.batch_execute(&format!("CREATE DATABASE {name}")).await.unwrap();
        });
        let up = Upstream { client: connect(&name), name };
        up.sql(sql);
        up.sql("CREATE PUBLICATION p FOR ALL TABLES");
        up
    }

    fn sql(&self, sql: &str) {
        runtime().block_on(self.client.batch_execute(sql)).unwrap_or_else(|e| panic!("{sql}: {e:?}"));
    }

    fn scalar(&self, sql: &str) -> String {
        runtime().block_on(self.client.query_one_scalar(sql, &[])).unwrap_or_else(|e| panic!("{sql}: {e:?}"))
    }

    fn connector(&self) -> Connector {
        let (host, port) = server().split_once(':').unwrap();
        Connector::Postgres {
            host: host.into(),
            port: port.parse().unwrap(),
            user: "postgres".into(),
            password: None,
            database: self.name.clone(),
            ssl_mode: "disable".into(),
            certificates: Default::default(),
            publication: "p".into(),
            slot: format!("slot_{}", self.name),
        }
    }

    /// A source of these tables, ids from 10 on, with all their columns.
    fn spec(&self, tables: &[&str]) -> SourceSpec {
        let found = runtime().block_on(inspect(&self.connector())).unwrap();
        let outputs = tables.iter().enumerate().map(|(i, name)| {
            let t = found.iter().find(|t| t.name == *name).unwrap();
            let columns = t.desc.names.iter().map(|n| ColumnSource::Value(n.clone())).collect();
            OutputSpec { id: GlobalId(10 + i as u64), reference: format!("{}.{}", t.schema, t.name), desc: t.desc.clone(), columns, snapshot_done: false }
        });
        SourceSpec {
            id: GlobalId(1),
            name: "s".into(),
            connector: self.connector(),
            outputs: outputs.collect(),
            errors: GlobalId(2),
            on_error: OnError::Quarantine,
        }
    }

    /// The table's rows as text, with their counts.
    fn rows(&self, table: &str) -> BTreeMap<Vec<Option<String>>, i64> {
        let query = format!("SELECT * FROM {table}");
        let messages = runtime().block_on(self.client.simple_query(&query)).unwrap();
        let mut out = BTreeMap::new();
        for m in messages {
            if let tokio_postgres::SimpleQueryMessage::Row(r) = m {
                *out.entry((0..r.len()).map(|i| r.get(i).map(str::to_owned)).collect()).or_insert(0) += 1;
            }
        }
        out
    }
}

/// What is durable.
#[derive(Clone, Default)]
struct Durable {
    position: Option<String>,
    rows: BTreeMap<GlobalId, BTreeMap<Vec<Option<String>>, i64>>,
    deltas: BTreeMap<GlobalId, Vec<Deltas>>,
    snapshots: Vec<GlobalId>,
    units: u64,
}

type Shared = Arc<Mutex<Durable>>;

struct State(Shared);

impl StateReader for State {
    fn read(&self, output: GlobalId) -> Result<Box<dyn Iterator<Item = Result<Deltas, SqlError>> + Send>, SqlError> {
        let parts = self.0.lock().deltas.get(&output).cloned().unwrap_or_default();
        Ok(Box::new(parts.into_iter().map(Ok)))
    }
}

/// A running source with its committer, which makes each unit durable at once and acknowledges it.
struct Run {
    spec: SourceSpec,
    durable: Shared,
    receiver: tokio::sync::mpsc::Receiver<SourceEvent>,
    handle: Box<dyn SourceHandle>,
    parts: Vec<(GlobalId, Deltas)>,
    status: SourceStatus,
    part_count: usize,
    /// Looked at after each unit.
    check: fn(&Durable),
}

impl Run {
    fn start(mut spec: SourceSpec, durable: Durable) -> Run {
        for o in &mut spec.outputs {
            o.snapshot_done = durable.snapshots.contains(&o.id);
        }
        let (events, receiver) = tokio::sync::mpsc::channel(4);
        let resume = durable.position.clone();
        let durable = Arc::new(Mutex::new(durable));
        let start = StartSource { spec: spec.clone(), resume, state: Arc::new(State(durable.clone())), events, runtime: runtime().handle().clone() };
        let handle = runtime().block_on(async { ingest::start(start) });
        Run { spec, durable, receiver, handle, parts: Vec::new(), status: SourceStatus::Starting, part_count: 0, check: |_| {} }
    }

    fn step(&mut self, wait: Duration) {
        let event = runtime().block_on(async { tokio::time::timeout(wait, self.receiver.recv()).await });
        match event {
            Ok(Some(SourceEvent::Status { status, .. })) => self.status = status,
            Ok(Some(SourceEvent::Staged(s))) => {
                self.part_count += usize::from(s.more);
                self.parts.extend(s.deltas);
                if !s.more {
                    self.commit(s.position, s.snapshot_of);
                }
            }
            _ => {}
        }
    }

    fn types(&self, id: GlobalId) -> Vec<ColType> {
        let output = self.spec.outputs.iter().find(|o| o.id == id);
        output.map_or_else(|| errors_desc().types, |o| o.desc.types.clone())
    }

    fn commit(&mut self, position: String, snapshot_of: Vec<GlobalId>) {
        let parts = std::mem::take(&mut self.parts);
        let mut durable = self.durable.lock();
        for (id, d) in parts {
            let types = self.types(id);
            let rows = durable.rows.entry(id).or_default();
            for i in 0..d.len() {
                let row = d.rows.row(&types, i);
                let text = row.iter().zip(&types).map(|(v, t)| (!v.is_null()).then(|| to_text(v, &t.ty, &TextStyle::default()))).collect();
                *rows.entry(text).or_insert(0) += d.diffs.get(i);
            }
            rows.retain(|_, n| *n != 0);
            durable.deltas.entry(id).or_default().push(d);
        }
        durable.position = Some(position.clone());
        durable.snapshots.extend(snapshot_of);
        durable.units += 1;
        (self.check)(&durable);
        drop(durable);
        self.handle.acknowledge(&position);
    }

    fn until(&mut self, what: &str, mut done: impl FnMut(&mut Run) -> bool) -> &mut Run {
        let deadline = Instant::now() + Duration::from_secs(30);
        while !done(self) {
            assert!(Instant::now() < deadline, "waited for {what} in vain: {:?}", self.status);
            self.step(Duration::from_millis(50));
        }
        self
    }

    fn content(&self, table: usize) -> BTreeMap<Vec<Option<String>>, i64> {
        self.durable.lock().rows.get(&GlobalId(10 + table as u64)).cloned().unwrap_or_default()
    }

    fn errors(&self) -> usize {
        self.durable.lock().rows.get(&GlobalId(2)).map_or(0, BTreeMap::len)
    }

    /// Waits until our tables are the upstream ones.
    fn equals(&mut self, up: &Upstream, tables: &[&str]) -> &mut Run {
        for (i, table) in tables.iter().enumerate() {
            let want = up.rows(table);
            let deadline = Instant::now() + Duration::from_secs(30);
            while self.content(i) != want {
                assert!(Instant::now() < deadline, "{table}: {:?} instead of {want:?}; {:?}", self.content(i), self.status);
                self.step(Duration::from_millis(50));
            }
        }
        self
    }

    /// Ends the connector as a crash would: what it had not handed over whole is lost.
    fn crash(self) -> Durable {
        drop(self.handle);
        let durable = self.durable.lock().clone();
        durable
    }
}

const TABLES: &str = "
    CREATE TABLE keyed (id int PRIMARY KEY, n numeric(10,2), t text, big text, at timestamptz DEFAULT '2024-01-02 03:04:05.6+00');
    CREATE TABLE fully (a int, b text[], c jsonb, d float8); ALTER TABLE fully REPLICA IDENTITY FULL;
    CREATE TABLE nokey (x int8, y bytea);
    INSERT INTO keyed SELECT i, i / 3.0, 'row ' || i, repeat(md5(i::text), 300) FROM generate_series(1, 50) i;
    INSERT INTO fully VALUES (1, '{a,\"b c\",NULL}', '{\"k\": [1, 2.50]}', 'NaN'), (1, NULL, 'null', -0.0), (NULL, '{}', NULL, 1e300);
    INSERT INTO nokey VALUES (1, '\\x00ff'), (1, '\\x00ff'), (2, E'\\\\x5c');";
const NAMES: [&str; 3] = ["keyed", "fully", "nokey"];

#[test]
fn changes_of_all_kinds_arrive() {
    let up = Upstream::new("kinds", TABLES);
    let mut run = Run::start(up.spec(&NAMES), Durable::default());
    run.equals(&up, &NAMES);
    run.until("running", |r| r.status == SourceStatus::Running);
    assert_eq!(run.durable.lock().units, 1, "the first copy is one unit");
    for sql in [
        "INSERT INTO keyed VALUES (100, 1.5, E'tab\\there \\\\ newline\\n', NULL)",
        // The long value is stored apart and not sent again.
        "UPDATE keyed SET t = 'changed' WHERE id <= 10",
        "UPDATE keyed SET id = id + 1000 WHERE id BETWEEN 5 AND 15",
        "UPDATE keyed SET id = 51 - id WHERE id BETWEEN 20 AND 21 AND false; DELETE FROM keyed WHERE id BETWEEN 30 AND 35",
        "BEGIN; INSERT INTO keyed VALUES (7, 0, 'back', 'x'); UPDATE keyed SET n = 8 WHERE id = 7; DELETE FROM keyed WHERE id = 7; INSERT INTO keyed VALUES (7, 1, '', ''); COMMIT",
        "UPDATE fully SET a = 2 WHERE a = 1; DELETE FROM fully WHERE a IS NULL",
        "INSERT INTO nokey SELECT i, NULL FROM generate_series(1, 100) i",
        "TRUNCATE nokey",
        "BEGIN; INSERT INTO nokey VALUES (9, '\\x01'); TRUNCATE nokey, keyed; INSERT INTO nokey VALUES (3, NULL); INSERT INTO keyed VALUES (1, NULL, NULL, NULL, 'infinity'); COMMIT",
        "UPDATE keyed SET big = repeat('long ', 9000)",
        "UPDATE keyed SET t = 'x'; TRUNCATE fully; INSERT INTO fully VALUES (1, '{{1,2},{3,4}}', '\"s\"', 'Infinity')",
    ] {
        up.sql(sql);
        run.equals(&up, &NAMES);
    }
    // Upstream forgets what is durable.
    let slot = format!("SELECT (confirmed_flush_lsn > restart_lsn)::text FROM pg_replication_slots WHERE slot_name = 'slot_{}'", up.name);
    run.until("feedback", |_| up.scalar(&slot) == "true");
    assert_eq!(run.errors(), 0);
}

#[test]
fn a_large_transaction_is_one_unit_and_survives_lost_connections() {
    let up = Upstream::new("large", TABLES);
    let mut run = Run::start(up.spec(&NAMES), Durable::default());
    run.equals(&up, &NAMES);
    let (units, parts) = (run.durable.lock().units, run.part_count);
    up.sql("BEGIN; INSERT INTO keyed SELECT i, i, 'r', NULL FROM generate_series(1000, 101000) i; UPDATE keyed SET n = n + 1 WHERE id % 2 = 0; INSERT INTO fully SELECT i FROM generate_series(1, 50000) i; COMMIT");
    let mut killed = 0;
    run.until("many parts", |r| {
        if r.part_count > parts + killed && killed < 2 {
            killed += 1;
            up.sql("SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots WHERE active_pid IS NOT NULL AND database = current_database()");
        }
        r.durable.lock().units > units
    });
    assert_eq!(killed, 2);
    run.equals(&up, &NAMES);
    assert_eq!(run.durable.lock().units, units + 1, "a transaction is never split");
    assert!(run.part_count > parts + 2);
    up.sql("DELETE FROM keyed WHERE id % 3 = 0; TRUNCATE fully");
    run.equals(&up, &NAMES);
    assert_eq!(run.errors(), 0);
}

/// Transfers between tables keep their sum: so it must be in every unit.
fn sum_is_constant(d: &Durable) {
    let sum = |id: u64| -> i64 { d.rows.get(&GlobalId(id)).into_iter().flatten().map(|(r, n)| r[1].as_deref().unwrap().parse::<i64>().unwrap() * n).sum() };
    if d.snapshots.contains(&GlobalId(11)) {
        assert_eq!(sum(10) + sum(11), 20_000);
    }
}

/// Moves money in a thread until told to stop.
fn transfers(up: &Upstream, stop: Arc<std::sync::atomic::AtomicBool>) -> std::thread::JoinHandle<()> {
    let client = connect(&up.name);
    std::thread::spawn(move || {
        let mut i: u64 = 1;
        while !stop.load(std::sync::atomic::Ordering::Relaxed) {
            i = i.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let (a, b, n) = ((i >> 33) % 100, (i >> 40) % 100, (i >> 50) % 10);
            let sql = format!("BEGIN; UPDATE a SET v = v - {n} WHERE k = {a}; UPDATE b SET v = v + {n} WHERE k = {b}; COMMIT");
            runtime().block_on(client.batch_execute(&sql)).unwrap();
        }
    })
}

const ACCOUNTS: &str = "CREATE TABLE a (k int PRIMARY KEY, v int8); CREATE TABLE b (k int PRIMARY KEY, v int8);
    INSERT INTO a SELECT i, 100 FROM generate_series(0, 99) i; INSERT INTO b SELECT * FROM a;";

#[test]
fn crashes_under_load_lose_and_double_nothing_and_split_no_transaction() {
    let up = Upstream::new("crash", ACCOUNTS);
    let stop = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let load = transfers(&up, stop.clone());
    let mut durable = Durable::default();
    for round in 0..6 {
        let mut run = Run::start(up.spec(&["a", "b"]), durable);
        run.check = sum_is_constant;
        if round > 0 {
            let target = run.durable.lock().units + 20;
            run.until("units", |r| r.durable.lock().units > target);
        } else {
            // Sometimes inside the first copy.
            run.step(Duration::from_millis(30));
        }
        durable = run.crash();
    }
    stop.store(true, std::sync::atomic::Ordering::Relaxed);
    load.join().unwrap();
    let mut run = Run::start(up.spec(&["a", "b"]), durable);
    run.check = sum_is_constant;
    run.equals(&up, &["a", "b"]);
    assert_eq!(run.errors(), 0);
}

#[test]
fn a_table_added_later_becomes_visible_at_one_position_with_the_others() {
    let up = Upstream::new("added", ACCOUNTS);
    let stop = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let load = transfers(&up, stop.clone());
    let mut run = Run::start(up.spec(&["a"]), Durable::default());
    run.until("units", |r| r.durable.lock().units > 20);
    let mut run = Run::start(up.spec(&["a", "b"]), run.crash());
    run.check = sum_is_constant;
    run.until("the copy", |r| r.durable.lock().snapshots.contains(&GlobalId(11)));
    let target = run.durable.lock().units + 20;
    run.until("units", |r| r.durable.lock().units > target);
    stop.store(true, std::sync::atomic::Ordering::Relaxed);
    load.join().unwrap();
    run.equals(&up, &["a", "b"]);
    // Without any traffic too.
    up.sql("CREATE TABLE c (x int); INSERT INTO c VALUES (1)");
    let mut run = Run::start(up.spec(&["a", "b", "c"]), run.crash());
    run.until("the copy", |r| r.durable.lock().snapshots.contains(&GlobalId(12)));
    run.equals(&up, &["a", "b", "c"]);
    assert_eq!(run.errors(), 0);
}

#[test]
fn an_idle_source_holds_no_wal() {
    let up = Upstream::new("idle", "CREATE TABLE t (x int PRIMARY KEY)");
    let mut run = Run::start(up.spec(&["t"]), Durable::default());
    run.until("running", |r| r.status == SourceStatus::Running);
    let units = run.durable.lock().units;
    let other = connect("postgres");
    runtime()
        .block_on(other.batch_execute(
            "CREATE TABLE IF NOT EXISTS rd_noise (t text); INSERT INTO rd_noise SELECT repeat('x', 100) FROM generate_series(1, 2000); DROP TABLE rd_noise",
        ))
        .unwrap();
    let end = up.scalar("SELECT pg_current_wal_insert_lsn()::text");
    let slot = format!("SELECT (confirmed_flush_lsn >= '{end}')::text FROM pg_replication_slots WHERE slot_name = 'slot_{}'", up.name);
    run.until("feedback beyond other databases' WAL", |_| up.scalar(&slot) == "true");
    assert_eq!(run.durable.lock().units, units);
    up.sql("INSERT INTO t VALUES (1)");
    run.equals(&up, &["t"]);
    let mut run = Run::start(up.spec(&["t"]), run.crash());
    up.sql("INSERT INTO t VALUES (2)");
    run.equals(&up, &["t"]);
    // A dropped source takes its slot along.
    run.handle.forget();
    run.until("the slot is gone", |_| up.scalar("SELECT count(*)::text FROM pg_replication_slots WHERE database = current_database()") == "0");
}

#[test]
fn schema_changes_and_lost_slots_are_told_clearly() {
    let up = Upstream::new("schema", "CREATE TABLE t (k int PRIMARY KEY, v text, w int)");
    let mut run = Run::start(up.spec(&["t"]), Durable::default());
    run.until("running", |r| r.status == SourceStatus::Running);
    let failed = |r: &Run| match &r.status {
        SourceStatus::Failed(why) => Some(why.clone()),
        _ => None,
    };
    up.sql("INSERT INTO t VALUES (1, 'a', 1); ALTER TABLE t ADD COLUMN extra int; INSERT INTO t VALUES (2, 'b', 2, 2); UPDATE t SET v = 'c'");
    let want: BTreeMap<_, _> = [(1, "1"), (2, "2")].map(|(k, w)| (vec![Some(format!("{k}")), Some("c".to_owned()), Some(w.to_owned())], 1)).into();
    run.until("an added column is ignored", |r| r.content(0) == want);
    let spec = run.spec.clone();
    let durable = {
        up.sql("ALTER TABLE t DROP COLUMN w; INSERT INTO t VALUES (3, 'd')");
        run.until("failure", |r| failed(r).is_some_and(|why| why.contains("column \"w\" of upstream table \"public.t\" was dropped")));
        run.crash()
    };
    up.sql(&format!("SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots WHERE slot_name = 'slot_{}' AND active_pid IS NOT NULL", up.name));
    std::thread::sleep(Duration::from_millis(300));
    runtime().block_on(forget(&up.connector())).unwrap();
    let mut run = Run::start(spec, durable);
    run.until("failure", |r| failed(r).is_some_and(|why| why.contains("does not exist") && why.contains("new snapshot")));
}

#[test]
fn pgbench_is_followed() {
    let up = Upstream::new("pgbench", "");
    let (host, port) = server().split_once(':').unwrap();
    let bin = std::env::var("RIVERDELTA_PG_BIN").unwrap_or_else(|_| "/usr/lib/postgresql/15/bin".into());
    let pgbench = |args: &[&str]| {
        let mut c = Command::new(format!("{bin}/pgbench"));
        c.args(["-h", host, "-p", port, "-U", "postgres"]).args(args).arg(&up.name).stdout(Stdio::null()).stderr(Stdio::null());
        c
    };
    assert!(pgbench(&["-i", "-q", "-s", "1"]).status().unwrap().success());
    let tables = ["pgbench_accounts", "pgbench_branches", "pgbench_tellers", "pgbench_history"];
    let mut load = pgbench(&["-n", "-c", "4", "-T", "4"]).spawn().unwrap();
    let mut run = Run::start(up.spec(&tables), Durable::default());
    // Every transaction adds one delta to an account, a teller, a branch and the history.
    run.check = |d| {
        let sum = |id: u64, column: usize| -> i64 {
            d.rows.get(&GlobalId(id)).into_iter().flatten().map(|(r, n)| r[column].as_deref().unwrap().parse::<i64>().unwrap() * n).sum()
        };
        let history = sum(13, 3);
        assert_eq!((sum(11, 1), sum(12, 2)), (history, history));
    };
    while load.try_wait().unwrap().is_none() {
        run.step(Duration::from_millis(20));
    }
    run.equals(&up, &tables);
    assert!(run.durable.lock().units > 10);
    assert_eq!(run.errors(), 0);
}

#[test]
fn inspection_says_what_is_wrong() {
    let up = Upstream::new(
        "inspect",
        "CREATE TYPE mood AS ENUM ('sad', 'ok'); CREATE DOMAIN pos AS int CHECK (VALUE > 0);
        CREATE SCHEMA s; CREATE TABLE s.\"T.x\" (b mood, a pos NOT NULL, p point, c xml, g int GENERATED ALWAYS AS (1) STORED, PRIMARY KEY (a));",
    );
    let tables = runtime().block_on(inspect(&up.connector())).unwrap();
    let names: Vec<_> = tables[0].desc.names.iter().zip(&tables[0].desc.types).map(|(n, t)| format!("{n} {}", t.ty)).collect();
    assert_eq!((names.join(", ").as_str(), &tables[0].desc.keys), ("b text, a integer, p point, c text", &vec![vec![1]]));
    let with = |change: fn(&mut Connector)| {
        let mut c = up.connector();
        change(&mut c);
        runtime().block_on(inspect(&c)).unwrap_err()
    };
    let e = with(|c| {
        if let Connector::Postgres { publication, .. } = c {
            *publication = "q".into()
        }
    });
    assert_eq!((e.code.as_str(), e.message.as_str()), ("42704", "publication \"q\" does not exist in upstream database \"rd_inspect\""));
    let e = with(|c| {
        if let Connector::Postgres { database, .. } = c {
            *database = "nowhere".into()
        }
    });
    assert!(e.message.contains("database \"nowhere\" does not exist"), "{e}");
    let e = with(|c| {
        if let Connector::Postgres { port, .. } = c {
            *port = 1
        }
    });
    assert_eq!(e.code.as_str(), "08006");
    let e = with(|c| {
        if let Connector::Postgres { ssl_mode, .. } = c {
            *ssl_mode = "require".into()
        }
    });
    assert!(e.message.contains("does not support TLS"), "{e}");
}
