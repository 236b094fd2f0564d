//! What a connection holds: the seam to `server`.

use repr::{RelDesc, SqlError, SqlType, Value};
use std::sync::Arc;

/// Cloneable handle to the running system.
#[derive(Clone)]
pub struct Client {
    pub(crate) shared: Arc<()>,
}

#[derive(Clone, Debug)]
pub struct Startup {
    pub user: String,
    pub database: String,
    /// The other startup parameters (`application_name`, `options`, `client_encoding`, ...).
    pub params: Vec<(String, String)>,
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
}

impl Client {
    /// Opens the data directory, recovers, starts the coordinator and the workers. Returns when statements are served.
    /// Errors: the directory is locked, damaged, or of an unknown version.
    pub async fn start(config: Config) -> Result<Client, SqlError> {
        let _ = config;
        Err(SqlError::internal("the coordinator is not part of this build"))
    }
    /// Ends the workers and the committer in order; what was acknowledged is durable already. Sessions get 57P01.
    pub async fn shutdown(&self) {}
    /// Opens a session. Errors: unknown database (3D000), bad startup parameter.
    pub fn open_session(&self, startup: Startup) -> Result<Session, SqlError> {
        let _ = startup;
        unimplemented!()
    }
    /// A cancel request from the wire: unknown keys are ignored.
    pub fn cancel(&self, pid: i32, secret: i32) {
        let _ = (pid, secret);
    }
    /// Prometheus text.
    pub fn metrics(&self) -> String {
        unimplemented!()
    }
    /// Whether recovery is done and statements are served.
    pub fn is_ready(&self) -> bool {
        unimplemented!()
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
}

/// A session: one at a time uses it. Dropping it releases everything it holds.
pub struct Session {
    _private: (),
}

impl Session {
    /// (pid, secret) for BackendKeyData.
    pub fn backend_key(&self) -> (i32, i32) {
        unimplemented!()
    }
    /// All reported parameters, for the start; afterwards `take_changed_parameters`.
    pub fn parameters(&self) -> Vec<(String, String)> {
        unimplemented!()
    }
    pub fn take_changed_parameters(&mut self) -> Vec<(String, String)> {
        unimplemented!()
    }
    pub fn take_notices(&mut self) -> Vec<Notice> {
        unimplemented!()
    }
    pub fn transaction_status(&self) -> TransactionStatus {
        unimplemented!()
    }
    /// Settings that value text depends on (TimeZone, DateStyle, IntervalStyle, bytea_output, extra_float_digits).
    pub fn text_context(&self) -> expr::EvalCtx {
        unimplemented!()
    }
    /// Splits and parses a query string. An empty string gives no statement.
    pub fn parse(&self, sql: &str) -> Result<Vec<Statement>, SqlError> {
        let _ = sql;
        unimplemented!()
    }
    /// Resolves a statement's parameter and result types. `params`: types the client fixed (`None`: infer).
    pub async fn prepare(&mut self, statement: Option<Statement>, params: Vec<Option<SqlType>>) -> Result<Prepared, SqlError> {
        let _ = (statement, params);
        unimplemented!()
    }
    /// Protocol-level named statements share the namespace of PREPARE. Errors: 42P05 if a named one exists.
    pub fn set_prepared(&mut self, name: String, prepared: Prepared) -> Result<(), SqlError> {
        let _ = (name, prepared);
        unimplemented!()
    }
    /// Errors: 26000.
    pub fn get_prepared(&self, name: &str) -> Result<Prepared, SqlError> {
        let _ = name;
        unimplemented!()
    }
    pub fn remove_prepared(&mut self, name: &str) {
        let _ = name;
    }
    /// Executes. Statements outside a block run in an implicit transaction that [`Session::sync`] ends: call it at the
    /// end of a simple query string and at Sync.
    /// Errors: any; the transaction, if one is open, is failed then. 25P02 in a failed block.
    pub async fn execute(&mut self, prepared: &Prepared, params: Vec<Value>) -> Result<Response, SqlError> {
        let _ = (prepared, params);
        unimplemented!()
    }
    /// An error arose outside [`Session::execute`] (a parameter that does not decode, a row stream, the protocol): the open
    /// transaction, explicit or implicit, is failed.
    pub fn fail(&mut self) {}
    /// How long the session may idle in its present state before it is ended with 25P03 or 57P05: `None` is for ever.
    pub fn idle_timeout(&self) -> Option<std::time::Duration> {
        None
    }
    /// Ends the implicit transaction, if there is one: commits it, or rolls back if it failed.
    pub async fn sync(&mut self) -> Result<(), SqlError> {
        unimplemented!()
    }
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

/// Rows in parts. Dropping it cancels the query behind it.
pub struct RowStream {
    pub receiver: tokio::sync::mpsc::Receiver<Result<Vec<Vec<Value>>, SqlError>>,
}

impl RowStream {
    pub async fn next(&mut self) -> Option<Result<Vec<Vec<Value>>, SqlError>> {
        self.receiver.recv().await
    }
}

/// COPY data (whole lines or tuples) in parts.
pub struct ByteStream {
    pub receiver: tokio::sync::mpsc::Receiver<Result<Vec<u8>, SqlError>>,
}

impl ByteStream {
    pub async fn next(&mut self) -> Option<Result<Vec<u8>, SqlError>> {
        self.receiver.recv().await
    }
}

/// Takes COPY ... FROM STDIN.
pub struct CopySink {
    pub(crate) _private: (),
}

impl CopySink {
    /// A CopyData message, cut anywhere.
    pub async fn push(&mut self, data: &[u8]) -> Result<(), SqlError> {
        let _ = data;
        unimplemented!()
    }
    /// CopyDone. Returns the tag. Hand it back to the session it came from.
    pub async fn finish(self, session: &mut Session) -> Result<String, SqlError> {
        let _ = session;
        unimplemented!()
    }
    /// CopyFail, or the client vanished.
    pub fn abort(self, session: &mut Session, message: String) -> SqlError {
        let _ = session;
        SqlError::new(repr::error::state::QUERY_CANCELED, format!("COPY from stdin failed: {message}"))
    }
}
