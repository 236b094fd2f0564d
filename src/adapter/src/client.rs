//! What a connection holds: the seam to `server`.

use crate::coordinator::request::{Event, Request};
use crate::coordinator::{boot, SystemClock};
use crate::Shared;
use repr::{RelDesc, SqlError, SqlType, Value};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

pub use crate::coordinator::guard::memory;
pub use crate::session::copy::CopySink;
pub use crate::session::Session;

/// Cloneable handle to the running system.
#[derive(Clone)]
pub struct Client {
    pub(crate) shared: Arc<Shared>,
    ready: Arc<AtomicBool>,
}

#[derive(Clone, Debug)]
pub struct Startup {
    pub user: String,
    pub database: String,
    /// The other startup parameters (`application_name`, `options`, `client_encoding`, ...).
    pub params: Vec<(String, String)>,
    pub peer: Peer,
}

/// The two ends of a client's connection.
#[derive(Clone, Copy, Debug, Default)]
pub struct Peer {
    pub client: Option<std::net::SocketAddr>,
    pub server: Option<std::net::SocketAddr>,
}

#[derive(Clone, Debug)]
pub struct Notice {
    /// NOTICE, WARNING, INFO, ...
    pub severity: &'static str,
    pub error: SqlError,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransactionStatus {
    Idle,
    InBlock,
    Failed,
}

/// What `server` starts the system with.
#[derive(Clone, Debug)]
pub struct Config {
    pub data_dir: std::path::PathBuf,
    /// Dataflow worker threads, at least 1.
    pub workers: usize,
    /// Resident bytes beyond which the statement or view that fills the memory is ended.
    pub memory_limit: Option<u64>,
}

impl Client {
    /// Opens the data directory, recovers, starts the coordinator and the workers. Returns when statements are served.
    /// Errors: the directory is locked, damaged, or of an unknown version.
    pub async fn start(config: Config) -> Result<Client, SqlError> {
        let (tx, rx) = crossbeam_channel::unbounded::<Event>();
        let shared = Arc::new(Shared::new(tx.clone(), config.memory_limit));
        let runtime = tokio::runtime::Handle::current();
        let for_boot = shared.clone();
        let coordinator = tokio::task::spawn_blocking(move || boot::boot(&config.data_dir, config.workers, Box::new(SystemClock), runtime, for_boot, tx))
            .await
            .map_err(SqlError::internal)??;
        std::thread::Builder::new()
            .name("coordinator".into())
            .spawn(move || {
                // The coordinator's state is wrong after a panic: the durable state decides at the next start.
                if std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| coordinator.run(rx))).is_err() {
                    crate::coordinator::fatal("the coordinator stopped unexpectedly");
                }
            })
            .map_err(SqlError::internal)?;
        Ok(Client { shared, ready: Arc::new(AtomicBool::new(true)) })
    }

    /// Ends the workers and the committer in order; what was acknowledged is durable already. Sessions get 57P01.
    pub async fn shutdown(&self) {
        self.ready.store(false, Ordering::SeqCst);
        let (tx, rx) = tokio::sync::oneshot::channel();
        if self.shared.send(Request::Shutdown(tx)).is_ok() {
            let _ = rx.await;
        }
    }

    /// Opens a session. Errors: unknown database (3D000), bad startup parameter.
    pub fn open_session(&self, startup: Startup) -> Result<Session, SqlError> {
        Session::open(self.shared.clone(), startup)
    }

    /// A cancel request from the wire: unknown keys are ignored.
    pub fn cancel(&self, pid: i32, secret: i32) {
        self.shared.backends.cancel((pid, secret));
    }

    /// Prometheus text.
    pub fn metrics(&self) -> String {
        self.shared.metrics.text()
    }

    /// Whether recovery is done and statements are served.
    pub fn is_ready(&self) -> bool {
        self.ready.load(Ordering::SeqCst)
    }
}

/// One parsed statement with the text it came from.
#[derive(Clone, Debug)]
pub struct Statement {
    pub text: String,
    pub ast: Arc<dyn std::any::Any + Send + Sync>,
}

/// A statement with its types resolved.
#[derive(Clone, Debug)]
pub struct Prepared {
    /// `None`: the empty statement.
    pub statement: Option<Statement>,
    pub params: Vec<SqlType>,
    /// Columns of the result; `None` for statements that return no rows.
    pub result: Option<RelDesc>,
    /// How pg_prepared_statements tells of it.
    pub seen: PreparedSeen,
    /// For each column of the result, `pg_class.oid` and `attnum` of the relation's column that it is; zeros where it is none. Empty: none is.
    pub origins: Vec<(u32, i16)>,
    /// The objects of the catalog that it was made for: one that is altered gets another id.
    pub made_for: Vec<repr::GlobalId>,
}

/// What is known of a prepared statement beside its plan.
#[derive(Clone, Debug, Default)]
pub struct PreparedSeen {
    /// The text of PREPARE, if that made it; else its own is meant.
    pub from_sql: Option<String>,
    /// Microseconds since 2000.
    pub at: i64,
    /// How often it was executed; each execution is planned with its values.
    pub runs: Arc<std::sync::atomic::AtomicI64>,
}

/// What a statement answers.
pub enum Response {
    /// Rows with the tag's verb (`SELECT`, `FETCH`, `SHOW`, `INSERT 0`, ...): the count follows it in CommandComplete, unless the tag is `SHOW` or `EXPLAIN`.
    Rows {
        desc: RelDesc,
        rows: RowStream,
        tag: &'static str,
    },
    /// CommandComplete as it stands: `CREATE TABLE`, `INSERT 0 1`.
    Tag(String),
    Empty,
    CopyOut {
        columns: usize,
        binary: bool,
        data: ByteStream,
        /// Rows put into `data` so far: the count in the tag `COPY n`.
        rows: Arc<std::sync::atomic::AtomicU64>,
    },
    CopyIn {
        columns: usize,
        binary: bool,
        sink: CopySink,
    },
}

/// What a client is told (0A000) when a prepared statement would return other columns than it was told of.
pub const PLAN_CHANGED: &str = "cached plan must not change result type";

/// Rows in parts. Dropping it cancels the query behind it.
pub struct RowStream {
    pub receiver: tokio::sync::mpsc::Receiver<Result<Vec<Vec<Value>>, SqlError>>,
}

impl RowStream {
    pub async fn next(&mut self) -> Option<Result<Vec<Vec<Value>>, SqlError>> {
        self.receiver.recv().await
    }
}

/// A query that the protocol has begun and not ended: what it will still bring.
pub struct Portal {
    pub desc: RelDesc,
    pub rows: RowStream,
    /// Rows received, before those of `rows`.
    pub pending: std::collections::VecDeque<Vec<Value>>,
    /// Nothing more comes from `rows`.
    pub ended: bool,
}

/// COPY data in parts: a message a row, as Postgres sends it (header and trailer of the binary form are messages of their own).
pub struct ByteStream {
    pub receiver: tokio::sync::mpsc::Receiver<Result<Vec<Vec<u8>>, SqlError>>,
}

impl ByteStream {
    pub async fn next(&mut self) -> Option<Result<Vec<Vec<u8>>, SqlError>> {
        self.receiver.recv().await
    }
}
