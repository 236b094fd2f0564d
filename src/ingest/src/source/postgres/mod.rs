//! Change data capture from PostgreSQL: a consistent first copy, then the stream of committed transactions.
//!
//! ```text
//!   slot with exported snapshot ─► copy of all tables at L (one unit) ─► stream from L: whole transactions ─► committer
//!                                                                            ▲ feedback: what is durable
//! ```
//! A table that is added later is copied at L2 through a temporary slot; the stream runs to L2, the copy becomes visible there, and both go on
//! together. A lost connection begins again at the last commit seen; a lost slot is a failure that says so.
//!
//! Not here: what a change means (`engine`, `table`), the wire protocol (the replication client).

/// Connections, snapshot, stream: the engine's hands.
mod driver;
/// From messages to changes of relations; no I/O.
pub mod engine;
/// Looking at the upstream database.
pub mod inspect;
/// Positions.
pub mod lsn;
/// Messages of the replication stream.
pub mod pgoutput;
/// The first copy of tables.
pub mod snapshot;
/// One upstream table.
pub mod table;
/// Plain connections and encrypted ones.
pub mod tls;

use super::Stats;
use crate::spec::{Connector, SourceHandle, SourceStatus, StartSource, UpstreamTable};
use driver::{Driver, End, Feed};
use inspect::Target;
use lsn::{Lsn, Position};
use repr::{SqlError, Value};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::watch;

const BACKOFF_MIN: Duration = Duration::from_millis(100);
const BACKOFF_MAX: Duration = Duration::from_secs(10);
/// How long an upstream that cannot be reached is asked to drop a slot.
const FORGET_FOR: Duration = Duration::from_secs(600);

struct Handle {
    task: tokio::task::JoinHandle<()>,
    runtime: tokio::runtime::Handle,
    connector: Connector,
    acknowledged: watch::Sender<Lsn>,
    stats: Arc<Stats>,
}

impl SourceHandle for Handle {
    fn acknowledge(&self, position: &str) {
        if let Ok(position) = Position::from_json(position) {
            self.acknowledged.send_if_modified(|lsn| {
                let is_news = *lsn < position.lsn;
                *lsn = position.lsn.max(*lsn);
                is_news
            });
        }
    }
    fn statistics(&self) -> Vec<(String, Value)> {
        self.stats.list()
    }
    fn forget(&self) {
        self.task.abort();
        let connector = self.connector.clone();
        self.runtime.spawn(async move {
            let mut wait = BACKOFF_MIN;
            while let Err(e) = forget(&connector).await {
                if wait > FORGET_FOR {
                    tracing::error!(error = %e, "the replication slot of a dropped source is still there and keeps WAL upstream: drop it with pg_drop_replication_slot");
                    return;
                }
                tokio::time::sleep(wait).await;
                wait *= 2;
            }
        });
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Starts the connector.
pub fn start(source: StartSource) -> Box<dyn SourceHandle> {
    let (acknowledged, acks) = watch::channel(Lsn::default());
    let stats = Arc::new(Stats::default());
    let (runtime, feed) = (source.runtime.clone(), Feed::new(source.spec.id, source.events.clone(), stats.clone()));
    let connector = source.spec.connector.clone();
    let task = runtime.spawn(run(source, feed, acks));
    Box::new(Handle { task, runtime, connector, acknowledged, stats })
}

/// What CREATE SOURCE and VALIDATE CONNECTION check; the tables of the publication.
pub async fn inspect(connector: &Connector) -> Result<Vec<UpstreamTable>, SqlError> {
    let target = Target::of(connector)?;
    let client = target.connect().await?;
    Ok(inspect::inspect(&client, &target).await?.into_iter().map(|p| p.table).collect())
}

/// Drops the source's slot upstream, so that it keeps no WAL any more. A slot that is gone is fine.
pub async fn forget(connector: &Connector) -> Result<(), SqlError> {
    let target = Target::of(connector)?;
    let client = target.connect().await?;
    drop_slot(&client, &target.slot).await
}

async fn drop_slot(client: &tokio_postgres::Client, slot: &str) -> Result<(), SqlError> {
    // The walsender of a connection that just ended may hold it for a moment.
    let sql = "SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots WHERE slot_name = $1 AND active_pid IS NOT NULL";
    for _ in 0..50 {
        let found = client.query_opt("SELECT active FROM pg_replication_slots WHERE slot_name = $1", &[&slot]).await.map_err(inspect::query_error)?;
        match found.map(|r| r.get::<_, bool>(0)) {
            None => return Ok(()),
            Some(true) => {
                client.query(sql, &[&slot]).await.map_err(inspect::query_error)?;
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
            Some(false) => {
                client.query("SELECT pg_drop_replication_slot($1)", &[&slot]).await.map_err(inspect::query_error)?;
                return Ok(());
            }
        }
    }
    Err(SqlError::new(repr::SqlState::new("55006"), format!("replication slot \"{slot}\" is still in use upstream")))
}

async fn run(source: StartSource, mut feed: Feed, acks: watch::Receiver<Lsn>) {
    let mut driver = match Driver::new(source, acks) {
        Ok(driver) => driver,
        Err(why) => {
            let _ = feed.status(SourceStatus::Failed(why)).await;
            return;
        }
    };
    let _ = feed.status(SourceStatus::Starting).await;
    let mut backoff = BACKOFF_MIN;
    loop {
        let began = Instant::now();
        let last = match driver.session(&mut feed).await {
            End::Closed => return,
            End::Failed(why) => {
                let _ = feed.status(SourceStatus::Failed(why)).await;
                return;
            }
            End::Retry(why) => SourceStatus::Stalled(why),
        };
        if feed.status(last).await.is_err() {
            return;
        }
        if began.elapsed() > BACKOFF_MAX {
            backoff = BACKOFF_MIN;
        }
        tokio::time::sleep(backoff.mul_f64(0.75 + rand::random::<f64>() / 2.0)).await;
        backoff = (backoff * 2).min(BACKOFF_MAX);
    }
}
