//! Connections, snapshot and stream of one source.
//!
//! ```text
//!   session: connect, look ─► first copy, or copies of added tables ─► stream until the connection ends
//! ```
//!
//! Everything between two handed-over units is in the engine, so a session can end anywhere and the next goes on.

use super::engine::{Engine, Halt};
use super::inspect::{self, Published, Target, SESSION_OPTIONS};
use super::lsn::{Followed, Lsn, Position};
use super::snapshot::{self, Snapshot, Unspool};
use super::table;
use crate::source::Stats;
use crate::spec::{SourceEvent, SourceStatus, Staged, StartSource, StateReader};
use futures::FutureExt;
use pgwire_replication::{PgWireError, ReplicationClient, ReplicationConfig, ReplicationEvent, TlsConfig};
use repr::{GlobalId, SqlError};
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::atomic::Ordering;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, watch};

/// How soon the server hears what is durable.
const FEEDBACK: Duration = Duration::from_millis(500);
/// Whole transactions are merged into one unit until it has so many rows or is so old.
const UNIT_ROWS: usize = 8192;
const UNIT_AGE: Duration = Duration::from_millis(5);
/// A unit beyond this is handed over in parts.
const PART_ROWS: usize = 32_768;
const PART_BYTES: usize = 16 << 20;

/// Rows of a snapshot that are taken in at a time.
const STEP_ROWS: usize = 256;

/// How often the publication is looked at: nothing in the stream says that a table is not in it any more.
const LOOK: Duration = Duration::from_secs(5);
/// How long upstream may take to answer a look before the connection counts as lost.
const LOOK_MAX: Duration = Duration::from_secs(10);

/// Why a session ended.
pub(super) enum End {
    /// The committer is gone.
    Closed,
    /// An error of the world: try again.
    Retry(String),
    Failed(String),
}

impl From<Halt> for End {
    fn from(halt: Halt) -> End {
        match halt {
            Halt::Fail(why) => End::Failed(why),
            // The driver loads state wherever this can come from.
            Halt::NeedsState(_) | Halt::KeyInDoubt { .. } => End::Failed("internal error: a table was not looked at".into()),
        }
    }
}

impl From<PgWireError> for End {
    fn from(e: PgWireError) -> End {
        let text = e.to_string();
        // The slot does not exist, or its WAL was removed.
        match text.contains("SQLSTATE 42704") || text.contains("SQLSTATE 55000") {
            true => End::Failed(format!("{text}: {NEW_SNAPSHOT}")),
            false => End::Retry(text),
        }
    }
}

const NEW_SNAPSHOT: &str = "changes were lost, so the source needs a new snapshot: drop it and create it again";

/// Errors that only a person upstream can mend end the source; others are tried again.
fn world(e: SqlError) -> End {
    let text = match &e.hint {
        Some(hint) => format!("{e} ({hint})"),
        None => e.to_string(),
    };
    match e.code.as_str() {
        "0A000" | "55000" | "42704" | "42501" => End::Failed(text),
        _ => End::Retry(text),
    }
}

fn silent(_: tokio::time::error::Elapsed) -> End {
    End::Retry(format!("the upstream database has not answered for {} seconds", LOOK_MAX.as_secs()))
}

/// A table was taken out of the publication, or dropped.
fn unpublished(reference: &str, publication: &str) -> End {
    End::Failed(format!(
        "upstream table \"{reference}\" is not in publication {publication}, so its changes are not seen: drop the table here, and create it again once ALTER PUBLICATION ... ADD TABLE has put it back"
    ))
}

/// The connector's way out.
pub(super) struct Feed {
    source: GlobalId,
    events: mpsc::Sender<SourceEvent>,
    stats: Arc<Stats>,
    status: Option<SourceStatus>,
}

impl Feed {
    pub(super) fn new(source: GlobalId, events: mpsc::Sender<SourceEvent>, stats: Arc<Stats>) -> Feed {
        Feed { source, events, stats, status: None }
    }

    pub(super) async fn status(&mut self, status: SourceStatus) -> Result<(), End> {
        if self.status.as_ref() == Some(&status) {
            return Ok(());
        }
        self.status = Some(status.clone());
        self.events.send(SourceEvent::Status { source: self.source, status }).await.map_err(|_| End::Closed)
    }

    async fn stage(&mut self, engine: &mut Engine, position: String, snapshot_of: Vec<GlobalId>, more: bool) -> Result<(), End> {
        let deltas = engine.take(more);
        let rows: usize = deltas.iter().map(|d| d.1.len()).sum();
        self.stats.rows.fetch_add(rows as u64, Ordering::Relaxed);
        self.stats.messages.store(engine.change_count, Ordering::Relaxed);
        self.stats.errors.store(engine.error_count, Ordering::Relaxed);
        let (kept, bytes) = engine.tables.iter().map(table::Table::state_size).fold((0, 0), |a, b| (a.0 + b.0, a.1 + b.1));
        self.stats.state_rows.store(kept as u64, Ordering::Relaxed);
        self.stats.state_bytes.store(bytes as u64, Ordering::Relaxed);
        let staged = Staged { source: self.source, deltas, position, snapshot_of, more };
        self.events.send(SourceEvent::Staged(staged)).await.map_err(|_| End::Closed)
    }
}

pub(super) struct Driver {
    target: Target,
    state: Arc<dyn StateReader>,
    engine: Engine,
    acks: watch::Receiver<Lsn>,
    /// The cluster's identifier; `None` before the first copy.
    system: Option<String>,
    /// Kinds of changes that the publication published when the first copy was made.
    publish: String,
    /// What the tables were when they were copied.
    followed: BTreeMap<String, Followed>,
    /// Position of the last whole unit that was handed over.
    sent: Lsn,
    durable: Lsn,
    /// Parts of the open unit were handed over.
    part_sent: bool,
    /// When the oldest change that waits was taken in.
    waiting_since: Option<Instant>,
    /// All of upstream's log before this was seen.
    seen: Lsn,
}

impl Driver {
    /// Errors: a position or a column source that cannot be.
    pub(super) fn new(source: StartSource, acks: watch::Receiver<Lsn>) -> Result<Driver, String> {
        let resume = source.resume.as_deref().map(Position::from_json).transpose()?;
        let is_first = resume.is_none();
        let Position { lsn, system, publish, tables: followed } = resume.unwrap_or_default();
        Ok(Driver {
            target: Target::of(&source.spec.connector).map_err(|e| e.to_string())?,
            engine: Engine::new(&source.spec, lsn)?,
            state: source.state,
            acks,
            system: (!is_first).then_some(system),
            publish,
            followed,
            sent: lsn,
            durable: lsn,
            part_sent: false,
            waiting_since: None,
            seen: lsn,
        })
    }

    /// Works until the connection or the source ends.
    pub(super) async fn session(&mut self, feed: &mut Feed) -> End {
        match self.try_session(feed).await {
            Err(end) => end,
            Ok(never) => match never {},
        }
    }

    async fn try_session(&mut self, feed: &mut Feed) -> Result<Infallible, End> {
        let client = self.target.connect().await.map_err(world)?;
        let published = inspect::inspect(&client, &self.target).await.map_err(world)?;
        let tables = self.match_tables(&published)?;
        for (table, published) in self.engine.tables.iter_mut().zip(&tables) {
            table.check_key(&published.table.key_names()).map_err(End::Failed)?;
        }
        let now = inspect::published_now(&client, &self.target.publication).await.map_err(|e| world(inspect::query_error(e)))?;
        if self.system.is_none() {
            // What an earlier try was about to follow is copied anew.
            self.followed.clear();
            self.publish.clear();
        }
        self.follow(now)?;
        let added = match &self.system {
            None => {
                self.first_copy(feed, &client, &tables).await?;
                None
            }
            Some(_) => {
                self.check_slot(&client).await?;
                self.copy_added(feed, &client, &tables).await?
            }
        };
        self.stream(feed, added, client).await
    }

    /// Checks that the publication still is what is followed, and notes what tables are that were not known yet.
    fn follow(&mut self, now: Option<(String, BTreeMap<String, Followed>)>) -> Result<(), End> {
        let publication = inspect::quote(&self.target.publication);
        let Some((publish, tables)) = now else {
            return Err(End::Failed(format!("publication {publication} does not exist upstream any more: {NEW_SNAPSHOT}")));
        };
        if let Some(kind) = self.publish.chars().find(|k| !publish.contains(*k)) {
            let kind = match kind {
                'i' => "inserts",
                'u' => "updates",
                'd' => "deletes",
                _ => "truncations",
            };
            return Err(End::Failed(format!("publication {publication} does not publish {kind} any more: {NEW_SNAPSHOT}")));
        }
        self.publish = publish;
        for table in &mut self.engine.tables {
            let reference = &table.reference;
            let Some(now) = tables.get(reference).cloned() else {
                return Err(unpublished(reference, &publication));
            };
            match self.followed.get(reference).filter(|_| table.active) {
                Some(was) if was.oid != now.oid => return Err(End::Failed(table::made_again(reference))),
                Some(was) if was.filter != now.filter => {
                    let why = "its row filter was changed, so rows may have been missed: drop the table and create it again";
                    return Err(End::Failed(format!("upstream table \"{reference}\" in publication {publication}: {why}")));
                }
                Some(_) => {}
                None => drop(self.followed.insert(reference.clone(), now.clone())),
            }
            table.oid = Some(now.oid);
        }
        Ok(())
    }

    /// Opens a replication connection, which has not begun to stream.
    async fn replication(&self) -> Result<ReplicationClient, End> {
        let t = &self.target;
        let mut config = self.config();
        if !t.tls.is_off() {
            let stream = t.tls.connect(&t.host, t.port).await.map_err(|why| world(t.connection_error(&why)))?;
            let dir = super::tls::relay(stream, t.port).await.map_err(|e| End::Retry(format!("could not relay a connection: {e}")))?;
            config.host = dir.to_string_lossy().into_owned();
        }
        Ok(ReplicationClient::connect_gated(config).await?)
    }

    fn config(&self) -> ReplicationConfig {
        let t = &self.target;
        let lsn = |l: Lsn| pgwire_replication::Lsn::from_u64(l.0);
        ReplicationConfig::new(&t.host, &t.user, t.password.as_deref().unwrap_or(""), &t.database, &t.slot, vec![t.publication.clone()])
            .with_port(t.port)
            .with_tls(TlsConfig::disabled())
            .with_options(SESSION_OPTIONS)
            .with_application_name("riverdelta")
            .with_status_interval(FEEDBACK)
            .with_start_lsn(lsn(self.engine.processed))
            .with_ack_lsn(lsn(self.durable))
    }

    /// What the publication says of each of the engine's tables.
    fn match_tables<'a>(&self, published: &'a [Published]) -> Result<Vec<&'a Published>, End> {
        let find = |t: &table::Table| {
            let hit = published.iter().find(|p| format!("{}.{}", p.table.schema, p.table.name) == t.reference);
            let hit = hit.ok_or_else(|| unpublished(&t.reference, &inspect::quote(&self.target.publication)))?;
            match t.names().iter().find(|n| !hit.table.desc.names.contains(n)) {
                Some(gone) if !t.active => Err(End::Failed(format!("upstream table \"{}\" has no column \"{gone}\" that is replicated", t.reference))),
                _ => Ok(hit),
            }
        };
        self.engine.tables.iter().map(find).collect()
    }

    /// The slot is there and its WAL too.
    async fn check_slot(&self, client: &tokio_postgres::Client) -> Result<(), End> {
        let sql = "SELECT coalesce(wal_status, ''), coalesce(plugin::text, '') FROM pg_replication_slots WHERE slot_name = $1";
        let slot = &self.target.slot;
        let row = client.query_opt(sql, &[slot]).await.map_err(|e| world(inspect::query_error(e)))?;
        let Some(row) = row else {
            return Err(End::Failed(format!("replication slot \"{slot}\" does not exist upstream any more: {NEW_SNAPSHOT}")));
        };
        let (wal, plugin): (String, String) = (row.get(0), row.get(1));
        if wal == "lost" {
            return Err(End::Failed(format!("upstream removed WAL that replication slot \"{slot}\" still needed (max_slot_wal_keep_size): {NEW_SNAPSHOT}")));
        }
        // It would be silent until its log has grown to where ours was.
        let reached = self.engine.processed;
        if let Some(end) = inspect::log_end(client).await.filter(|end| *end < reached) {
            return Err(End::Failed(format!(
                "upstream's log ends at {end}, but {reached} was reached: it was restored, or another server took over that had not received all: {NEW_SNAPSHOT}"
            )));
        }
        if plugin != "pgoutput" {
            return Err(End::Failed(format!("replication slot \"{slot}\" uses plugin \"{plugin}\", not pgoutput")));
        }
        Ok(())
    }

    /// Makes a slot and exports its snapshot, which lives as long as the session that is returned.
    async fn make_slot(&self, name: &str, kind: &str) -> Result<(ReplicationClient, String, Lsn, String), End> {
        let mut session = self.replication().await?;
        let system = session.identify_system().await?.system_id;
        let sql = format!("CREATE_REPLICATION_SLOT {} {kind}LOGICAL pgoutput EXPORT_SNAPSHOT", inspect::quote(name));
        let rows = session.simple_query(&sql).await?;
        let field = |i: usize| rows.first().and_then(|r| r.get(i).cloned().flatten()).map(|b| String::from_utf8_lossy(&b).into_owned());
        let (Some(point), Some(exported)) = (field(1), field(2)) else {
            return Err(End::Retry("the upstream database exported no snapshot".into()));
        };
        let lsn = point.parse().map_err(End::Retry)?;
        Ok((session, system, lsn, exported))
    }

    async fn copy(&self, feed: &Feed, client: &tokio_postgres::Client, tables: &[&Published], slot: &str, kind: &str) -> Result<(Snapshot, String), End> {
        let (session, system, lsn, exported) = self.make_slot(slot, kind).await?;
        let wanted: Vec<(usize, &Published, &[String])> =
            self.engine.tables.iter().zip(tables).enumerate().filter(|(_, (t, _))| !t.active).map(|(i, (t, p))| (i, *p, t.names())).collect();
        let stats = feed.stats.clone();
        let progress = move |rows: u64| stats.set("snapshot_rows_read", i64::try_from(rows).unwrap_or(i64::MAX));
        let snapshot = snapshot::copy(client, &exported, lsn, &wanted, progress).await.map_err(world)?;
        drop(session);
        Ok((snapshot, system))
    }

    /// All tables at one position, in one unit. What an earlier try left behind is dropped.
    async fn first_copy(&mut self, feed: &mut Feed, client: &tokio_postgres::Client, tables: &[&Published]) -> Result<(), End> {
        feed.status(SourceStatus::Snapshotting { rows: 0 }).await?;
        super::drop_slot(client, &self.target.slot).await.map_err(world)?;
        self.engine.tables.iter_mut().for_each(|t| t.active = false);
        let (snapshot, system) = self.copy(feed, client, tables, &self.target.slot, "").await?;
        self.system = Some(system);
        self.add_snapshot(feed, snapshot).await
    }

    /// Tables that were added to a source that runs already.
    async fn copy_added(&mut self, feed: &mut Feed, client: &tokio_postgres::Client, tables: &[&Published]) -> Result<Option<Snapshot>, End> {
        if self.engine.tables.iter().all(|t| t.active) {
            return Ok(None);
        }
        feed.status(SourceStatus::Snapshotting { rows: 0 }).await?;
        let slot: String = self.target.slot.chars().take(58).chain("_add".chars()).collect();
        let (snapshot, system) = self.copy(feed, client, tables, &slot, "TEMPORARY ").await?;
        self.check_system(&system)?;
        Ok(Some(snapshot))
    }

    fn check_system(&self, system: &str) -> Result<(), End> {
        match &self.system {
            Some(ours) if !ours.is_empty() && ours != system => {
                Err(End::Failed(format!("the upstream server is another database cluster (system identifier {system}, not {ours}): {NEW_SNAPSHOT}")))
            }
            _ => Ok(()),
        }
    }

    /// Hands a copy over as one unit. Everything that committed before its position must have been handed over.
    async fn add_snapshot(&mut self, feed: &mut Feed, snapshot: Snapshot) -> Result<(), End> {
        let mut ids = Vec::new();
        let mut rows = 0;
        for (number, spool) in snapshot.tables {
            let mut unspool =
                Unspool::new(number, snapshot.lsn, spool).map_err(|e| End::Failed(format!("could not read the temporary file of a snapshot: {e}")))?;
            ids.push((number, self.engine.tables[number].id));
            while unspool.step(&mut self.engine, STEP_ROWS)? {
                if self.is_part() {
                    rows += self.engine.pending() as u64;
                    feed.stage(&mut self.engine, String::new(), Vec::new(), true).await?;
                    feed.status(SourceStatus::Snapshotting { rows }).await?;
                }
            }
        }
        ids.iter().for_each(|(number, _)| self.engine.tables[*number].active = true);
        self.engine.processed = self.engine.processed.max(snapshot.lsn);
        self.hand_over(feed, ids.into_iter().map(|i| i.1).collect()).await
    }

    /// So much waits that it is handed over, whole or not.
    fn is_part(&self) -> bool {
        self.engine.pending() >= PART_ROWS || self.engine.pending_bytes() >= PART_BYTES
    }

    fn position(&self) -> String {
        let system = self.system.clone().unwrap_or_default();
        Position { lsn: self.engine.processed, system, publish: self.publish.clone(), tables: self.followed.clone() }.to_json()
    }

    /// Hands whole transactions over as one unit.
    async fn hand_over(&mut self, feed: &mut Feed, snapshot_of: Vec<GlobalId>) -> Result<(), End> {
        let position = self.position();
        feed.stage(&mut self.engine, position, snapshot_of, false).await?;
        self.sent = self.engine.processed;
        (self.part_sent, self.waiting_since) = (false, None);
        Ok(())
    }

    async fn flush(&mut self, feed: &mut Feed) -> Result<(), End> {
        if self.engine.pending() > 0 || self.part_sent {
            self.hand_over(feed, Vec::new()).await?;
        }
        Ok(())
    }

    /// `looker`: a connection for queries.
    async fn stream(&mut self, feed: &mut Feed, mut added: Option<Snapshot>, mut looker: tokio_postgres::Client) -> Result<Infallible, End> {
        let mut look = tokio::time::interval_at(tokio::time::Instant::now() + LOOK, LOOK);
        look.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut client = self.replication().await?;
        let system = client.identify_system().await?.system_id;
        self.check_system(&system)?;
        client.start().await?;
        client.wait_started().await?;
        self.engine.reconnected();
        if !self.engine.is_cut() {
            self.flush(feed).await?;
        }
        if added.is_none() {
            feed.status(SourceStatus::Running).await?;
        }
        loop {
            if look.tick().now_or_never().is_some() {
                self.look(feed, &mut looker).await?;
            }
            // While upstream has more at once, transactions are merged.
            let ready = client.recv().now_or_never();
            let event = match ready {
                Some(event) => event?,
                None => {
                    if !self.engine.is_in_transaction() && !self.engine.is_cut() {
                        self.flush(feed).await?;
                    }
                    tokio::select! {
                        event = client.recv() => event?,
                        changed = self.acks.changed() => {
                            changed.map_err(|_| End::Closed)?;
                            self.note_durable(&client);
                            continue;
                        }
                        _ = look.tick() => {
                            self.look(feed, &mut looker).await?;
                            continue;
                        }
                    }
                }
            };
            let Some(event) = event else {
                return Err(End::Retry("the upstream database ended the replication stream".into()));
            };
            self.event(feed, &client, &looker, event, &mut added).await?;
        }
    }

    /// Looks at what upstream publishes now, and how far its log is ahead.
    async fn look(&mut self, feed: &Feed, looker: &mut tokio_postgres::Client) -> Result<(), End> {
        match tokio::time::timeout(LOOK_MAX, inspect::published_now(looker, &self.target.publication)).await.map_err(silent)? {
            Ok(now) => self.follow(now)?,
            Err(_) => *looker = self.target.connect().await.map_err(world)?,
        }
        if let Some(end) = tokio::time::timeout(LOOK_MAX, inspect::log_end(looker)).await.map_err(silent)? {
            let lag = end.0.saturating_sub(self.seen.max(self.engine.processed).0);
            feed.stats.set("lag_bytes", i64::try_from(lag).unwrap_or(i64::MAX));
        }
        Ok(())
    }

    async fn event(
        &mut self,
        feed: &mut Feed,
        client: &ReplicationClient,
        looker: &tokio_postgres::Client,
        event: ReplicationEvent,
        added: &mut Option<Snapshot>,
    ) -> Result<(), End> {
        match event {
            ReplicationEvent::Begin { final_lsn, xid, .. } => {
                self.reached(feed, Lsn(final_lsn.as_u64()), added).await?;
                self.engine.begin(Lsn(final_lsn.as_u64()), xid);
            }
            ReplicationEvent::XLogData { wal_start, data, .. } => {
                feed.stats.bytes.fetch_add(data.len() as u64, Ordering::Relaxed);
                self.seen = self.seen.max(Lsn(wal_start.as_u64()));
                self.change(feed, looker, Lsn(wal_start.as_u64()), &data).await?;
            }
            ReplicationEvent::Commit { end_lsn, .. } => {
                self.engine.commit(Lsn(end_lsn.as_u64()));
                feed.stats.set("commit_lsn", i64::try_from(end_lsn.as_u64()).unwrap_or(i64::MAX));
                let is_old = self.waiting_since.is_some_and(|t| t.elapsed() >= UNIT_AGE);
                if is_old || self.engine.pending() >= UNIT_ROWS || self.is_part() {
                    self.flush(feed).await?;
                }
                self.note_durable(client);
            }
            ReplicationEvent::KeepAlive { wal_end, .. } => {
                let at = Lsn(wal_end.as_u64());
                if !self.engine.is_in_transaction() && !self.engine.is_cut() {
                    self.seen = self.seen.max(at);
                    self.reached(feed, at, added).await?;
                    // Nothing that concerns us lies before this: an idle source must not hold upstream's WAL.
                    if self.engine.pending() == 0 && !self.part_sent && self.durable >= self.sent {
                        client.update_applied_lsn(wal_end);
                    }
                }
            }
            ReplicationEvent::Message { .. } | ReplicationEvent::StoppedAt { .. } => {}
        }
        Ok(())
    }

    /// All that committed before `lsn` was taken in: copies at or before it become visible.
    async fn reached(&mut self, feed: &mut Feed, lsn: Lsn, added: &mut Option<Snapshot>) -> Result<(), End> {
        if let Some(snapshot) = added.take_if(|s| s.lsn <= lsn) {
            self.flush(feed).await?;
            self.add_snapshot(feed, snapshot).await?;
            feed.status(SourceStatus::Running).await?;
        }
        Ok(())
    }

    async fn change(&mut self, feed: &mut Feed, looker: &tokio_postgres::Client, at: Lsn, data: &[u8]) -> Result<(), End> {
        loop {
            match self.engine.change(at, data) {
                Ok(()) => break,
                Err(Halt::NeedsState(table)) => self.load(table).await?,
                Err(Halt::KeyInDoubt { table, named_by }) => {
                    let xid = self.engine.xid();
                    let table = &mut self.engine.tables[table];
                    let asked = async {
                        if let Some(xid) = xid {
                            inspect::until_visible(looker, xid).await?;
                        }
                        let oid = table.oid.unwrap_or_default();
                        Ok((inspect::primary_key(looker, oid).await?, inspect::is_unique(looker, oid, &named_by).await?))
                    };
                    let asked = tokio::time::timeout(LOOK_MAX, asked).await.map_err(silent)?;
                    let (primary, is_unique) = asked.map_err(|e| world(inspect::query_error(e)))?;
                    table.check_key(&primary).map_err(End::Failed)?;
                    table.confirm(is_unique);
                }
                Err(Halt::Fail(why)) => return Err(End::Failed(why)),
            }
        }
        if self.waiting_since.is_none() && self.engine.pending() > 0 {
            self.waiting_since = Some(Instant::now());
        }
        if self.is_part() {
            while let Some(table) = self.engine.must_load_before_part() {
                self.load(table).await?;
            }
            feed.stage(&mut self.engine, String::new(), Vec::new(), true).await?;
            self.part_sent = true;
        }
        Ok(())
    }

    /// Reads a table's rows back once all that was handed over is durable.
    async fn load(&mut self, table: usize) -> Result<(), End> {
        let sent = self.sent;
        if self.durable < sent {
            let lsn = *self.acks.wait_for(|lsn| *lsn >= sent).await.map_err(|_| End::Closed)?;
            self.durable = self.durable.max(lsn);
        }
        let table = &mut self.engine.tables[table];
        let state = &self.state;
        let mut read = || state.read(table.id).map_err(|e| e.to_string()).and_then(|parts| table.load(parts));
        let loaded = match tokio::runtime::Handle::current().runtime_flavor() {
            tokio::runtime::RuntimeFlavor::MultiThread => tokio::task::block_in_place(read),
            _ => read(),
        };
        loaded.map_err(End::Failed)
    }

    fn note_durable(&mut self, client: &ReplicationClient) {
        self.durable = self.durable.max(*self.acks.borrow_and_update());
        // Transactions that changed nothing of ours need not be durable.
        let idle = self.durable >= self.sent && self.engine.pending() == 0 && !self.part_sent && !self.engine.is_in_transaction();
        let lsn = if idle { self.engine.processed.max(self.durable) } else { self.durable };
        client.update_applied_lsn(pgwire_replication::Lsn::from_u64(lsn.0));
    }
}
