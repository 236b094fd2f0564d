//! One connection: start, then messages until the end.
//!
//! ```text
//!   SSLRequest? GSSENCRequest?  StartupMessage ──► parameters, key, ReadyForQuery
//!   Query            simple: statements of one string in one implicit transaction, ends with ReadyForQuery
//!   Parse .. Sync    extended: after an error everything up to Sync is skipped
//! ```
//!
//! Promise: each message is answered as Postgres answers it; a client that vanishes cancels its statement; a panic below
//! costs this connection only. While anything runs the socket is watched.
//! Not here: what a statement does (`adapter`).

use super::frame::{BadFrame, Message, Opening};
use super::input::{Input, Received};
use super::reply::Out;
use super::Options;
use adapter::{Client, Peer, Response, RowStream, Session, Startup, TransactionStatus};
use futures::FutureExt;
use repr::encoding::Encoding;
use repr::error::state;
use repr::{RelDesc, SqlError, SqlState};
use std::collections::HashMap;
use std::future::Future;
use std::net::SocketAddr;
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{split, AsyncRead, AsyncWrite, ReadHalf, WriteHalf};
use tokio::net::TcpStream;
use tokio::sync::watch;

/// How long a client may take to say who it is (Postgres's authentication_timeout).
const OPENING: Duration = Duration::from_secs(60);
/// How long a cancelled statement may take to end before its future is dropped under it.
const CANCEL_GRACE: Duration = Duration::from_secs(5);

const INVALID_AUTHORIZATION: SqlState = SqlState::new("28000");
const IDLE_SESSION_TIMEOUT: SqlState = SqlState::new("57P05");

/// Why a connection ends before the client says so.
pub enum End {
    /// The client is gone: nobody reads what is sent.
    Gone,
    /// Said as FATAL before the connection is closed.
    Fatal(SqlError),
}

impl From<std::io::Error> for End {
    fn from(_: std::io::Error) -> End {
        End::Gone
    }
}

/// A statement's outcome: the error of the statement, or the end of the connection.
pub enum Failure {
    Statement(SqlError),
    End(End),
}

impl From<SqlError> for Failure {
    fn from(e: SqlError) -> Failure {
        Failure::Statement(e)
    }
}
impl From<End> for Failure {
    fn from(e: End) -> Failure {
        Failure::End(e)
    }
}
impl From<std::io::Error> for Failure {
    fn from(e: std::io::Error) -> Failure {
        Failure::End(e.into())
    }
}

/// Serves a socket until it is closed.
pub async fn run(stream: TcpStream, peer: SocketAddr, client: Client, options: &Options, stopped: watch::Receiver<bool>) {
    let Ok(opened) = tokio::time::timeout(OPENING, open(stream, peer, &client, options)).await else { return };
    match opened {
        Some(Opened::Plain(input, out, startup)) => serve(input, out, startup, client, stopped).await,
        Some(Opened::Tls(input, out, startup)) => serve(input, out, startup, client, stopped).await,
        None => {}
    }
}

type Halves<S> = (Input<ReadHalf<S>>, Out<WriteHalf<S>>);
type Tls = tokio_rustls::server::TlsStream<TcpStream>;

enum Opened {
    Plain(Input<ReadHalf<TcpStream>>, Out<WriteHalf<TcpStream>>, Startup),
    Tls(Input<ReadHalf<Tls>>, Out<WriteHalf<Tls>>, Startup),
}

fn halves<S: AsyncRead + AsyncWrite>(stream: S) -> Halves<S> {
    let (r, w) = split(stream);
    (Input::new(r), Out::new(w))
}

/// Reads openings up to the startup message. `None`: the connection is done (cancelled something, refused, gone).
async fn open(stream: TcpStream, peer: SocketAddr, client: &Client, options: &Options) -> Option<Opened> {
    let ends = Peer { client: Some(peer), server: stream.local_addr().ok() };
    let (mut input, mut out) = halves(stream);
    let allowed = options.allow_remote || peer.ip().to_canonical().is_loopback();
    let mut asked_ssl = false;
    loop {
        match next_opening(&mut input, &mut out, client, ends, allowed).await? {
            Next::Ssl if options.tls.is_some() && !asked_ssl => {
                let acceptor = options.tls.as_ref()?;
                out.byte(b'S');
                out.flush().await.ok()?;
                let stream = input.into_inner()?.unsplit(out.into_inner());
                let tls = acceptor.accept(stream).await.map_err(|e| tracing::debug!("TLS with {peer}: {e}")).ok()?;
                let (mut input, mut out) = halves(tls);
                return match next_opening(&mut input, &mut out, client, ends, allowed).await? {
                    Next::Startup(startup) => Some(Opened::Tls(input, out, startup)),
                    Next::Ssl => None,
                };
            }
            Next::Ssl => {
                asked_ssl = true;
                out.byte(b'N');
                out.flush().await.ok()?;
            }
            Next::Startup(startup) => return Some(Opened::Plain(input, out, startup)),
        }
    }
}

enum Next {
    Ssl,
    Startup(Startup),
}

async fn next_opening<R, W>(input: &mut Input<R>, out: &mut Out<W>, client: &Client, peer: Peer, allowed: bool) -> Option<Next>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    loop {
        let refused = match input.opening().await {
            Ok(None) => return None,
            Ok(Some(Opening::Ssl)) => return Some(Next::Ssl),
            Ok(Some(Opening::GssEnc)) => {
                out.byte(b'N');
                out.flush().await.ok()?;
                continue;
            }
            Ok(Some(Opening::Cancel { pid, secret })) => {
                client.cancel(pid, secret);
                return None;
            }
            Ok(Some(Opening::Startup { .. })) if !allowed => {
                SqlError::new(INVALID_AUTHORIZATION, "connections from other machines are not allowed").with_hint("start riverdelta with --allow-remote")
            }
            Ok(Some(Opening::Startup { minor, params })) => match startup(minor, params, peer, out) {
                Ok(startup) => return Some(Next::Startup(startup)),
                Err(e) => e,
            },
            Err(e) => e,
        };
        out.fatal(&refused);
        let _ = out.flush().await;
        return None;
    }
}

fn startup<W: AsyncWrite + Unpin>(minor: u16, mut params: Vec<(String, String)>, peer: Peer, out: &mut Out<W>) -> Result<Startup, SqlError> {
    let unknown: Vec<String> = params.iter().filter(|p| p.0.starts_with("_pq_.")).map(|p| p.0.clone()).collect();
    if minor > 0 || !unknown.is_empty() {
        out.negotiate_version(&unknown.iter().map(String::as_str).collect::<Vec<_>>());
    }
    let mut take = |name: &str| params.iter().position(|p| p.0 == name).map(|i| params.remove(i).1).filter(|v| !v.is_empty());
    let user = take("user").ok_or_else(|| SqlError::new(INVALID_AUTHORIZATION, "no PostgreSQL user name specified in startup packet"))?;
    let database = take("database").unwrap_or_else(|| user.clone());
    if take("replication").is_some_and(|v| !["false", "off", "no", "0"].contains(&v.as_str())) {
        return Err(SqlError::unsupported("the replication protocol", "use SUBSCRIBE"));
    }
    params.retain(|p| !p.0.starts_with("_pq_."));
    Ok(Startup { user, database, params, peer })
}

async fn serve<S>(input: Input<ReadHalf<S>>, mut out: Out<WriteHalf<S>>, startup: Startup, client: Client, stopped: watch::Receiver<bool>)
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let session = match client.open_session(startup) {
        Ok(session) => session,
        Err(e) => {
            out.fatal(&e);
            let _ = out.flush().await;
            return;
        }
    };
    let key = session.backend_key();
    let backend = session.backend();
    out.authentication_ok();
    let mut encoding = Encoding::Utf8;
    for (name, value) in session.parameters() {
        if let ("client_encoding", Ok(Some(e))) = (name.as_str(), Encoding::parse(&value)) {
            encoding = e;
        }
        out.parameter(name, value);
    }
    out.backend_key(key.0, key.1);
    out.encoding = encoding;
    let mut input = input;
    input.encoding = encoding;
    let mut c = Connection {
        input,
        out,
        session,
        client,
        key,
        stop: Stop { server: stopped, backend },
        unnamed: None,
        portals: HashMap::new(),
        skip_until_sync: false,
    };
    let end = match AssertUnwindSafe(c.serve()).catch_unwind().await {
        Ok(Ok(())) => return,
        Ok(Err(end)) => end,
        // What the session was doing is unknown: its connection ends, nothing else does.
        Err(_) => End::Fatal(SqlError::internal("the session failed").with_detail("The server's log says more. Other sessions go on.")),
    };
    if let End::Fatal(e) = end {
        c.out.fatal(&e);
        let _ = tokio::time::timeout(CANCEL_GRACE, c.out.flush()).await;
    }
}

pub struct Connection<S> {
    pub input: Input<ReadHalf<S>>,
    pub out: Out<WriteHalf<S>>,
    pub session: Session,
    client: Client,
    key: (i32, i32),
    stop: Stop,
    /// The unnamed prepared statement.
    pub unnamed: Option<adapter::Prepared>,
    pub portals: HashMap<String, super::extended::Portal>,
    /// An error in the extended protocol: messages are skipped up to Sync.
    skip_until_sync: bool,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Connection<S> {
    /// Answers messages until the client says goodbye.
    async fn serve(&mut self) -> Result<(), End> {
        self.ready().await?;
        loop {
            if !self.input.has_bytes() {
                self.out.flush().await?;
            }
            let message = match self.next_message().await? {
                Received::Message(m) => m,
                Received::Gone => return Err(End::Gone),
                Received::Bad(BadFrame::Fatal(e)) => return Err(End::Fatal(e)),
                Received::Bad(BadFrame::Body { kind, error }) => {
                    self.session.fail();
                    self.out.error(&error);
                    if kind == b'Q' {
                        self.end_of_query().await?;
                    } else {
                        self.skip_until_sync = true;
                    }
                    continue;
                }
            };
            match message {
                Message::Terminate => return Ok(()),
                Message::Query(sql) => {
                    self.skip_until_sync = false;
                    self.simple_query(&sql).await?;
                }
                Message::Sync => {
                    self.skip_until_sync = false;
                    self.sync().await?;
                }
                // What a client still sends after its COPY failed.
                Message::CopyData(_) | Message::CopyDone | Message::CopyFail(_) => {}
                _ if self.skip_until_sync => {}
                Message::Flush => self.out.flush().await?,
                Message::FunctionCall => {
                    self.out.error(&SqlError::unsupported("the function call protocol", "call the function in a SELECT"));
                    self.end_of_query().await?;
                }
                Message::Password => return Err(End::Fatal(SqlError::new(state::PROTOCOL_VIOLATION, "unexpected password message"))),
                extended => match self.extended(extended).await {
                    Ok(()) => {}
                    Err(Failure::Statement(e)) => {
                        self.failed(&e);
                        self.skip_until_sync = true;
                    }
                    Err(Failure::End(end)) => return Err(end),
                },
            }
        }
    }

    async fn next_message(&mut self) -> Result<Received, End> {
        let idle = self.session.idle_timeout();
        let Connection { input, stop, session, .. } = self;
        let sleep = async {
            match idle {
                Some(d) => tokio::time::sleep(d).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            received = input.next() => Ok(received),
            () = stop.asked() => Err(End::Fatal(admin_shutdown())),
            _ = sleep => Err(End::Fatal(match session.transaction_status() {
                TransactionStatus::Idle => SqlError::new(IDLE_SESSION_TIMEOUT, "terminating connection due to idle-session timeout"),
                _ => SqlError::new(state::IDLE_IN_TRANSACTION_TIMEOUT, "terminating connection due to idle-in-transaction timeout"),
            })),
        }
    }

    /// An error goes out; the transaction is failed.
    pub fn failed(&mut self, error: &SqlError) {
        self.session.fail();
        self.news();
        self.out.error(error);
    }

    /// Notices and changed parameters, as they are before the message that ends a statement.
    pub fn news(&mut self) {
        for notice in self.session.take_notices() {
            self.out.notice(&notice);
        }
        for (name, value) in self.session.take_changed_parameters() {
            if name == "client_encoding" {
                self.speak(&value);
            }
            self.out.parameter(name, value);
        }
    }

    /// What is read and written from here on is in this encoding, which the setting has found to exist.
    fn speak(&mut self, encoding: &str) {
        if let Ok(Some(e)) = Encoding::parse(encoding) {
            (self.input.encoding, self.out.encoding) = (e, e);
        }
    }

    async fn ready(&mut self) -> Result<(), End> {
        self.news();
        self.session.waits();
        self.out.ready(self.session.transaction_status());
        Ok(self.out.flush().await?)
    }

    /// Sync: ends the implicit transaction.
    async fn sync(&mut self) -> Result<(), End> {
        if let Err(e) = self.commit().await? {
            self.out.retract_complete();
            self.out.error(&e);
        }
        self.close_portals();
        self.ready().await
    }

    /// The end of a simple query that failed.
    async fn end_of_query(&mut self) -> Result<(), End> {
        if let Err(e) = self.commit().await? {
            tracing::debug!("rolling back: {e}");
        }
        self.close_portals();
        self.ready().await
    }

    /// Portals live until their transaction ends.
    fn close_portals(&mut self) {
        if self.session.transaction_status() != TransactionStatus::InBlock {
            self.portals.clear();
        }
    }

    async fn commit(&mut self) -> Result<Result<(), SqlError>, End> {
        let Connection { input, session, client, key, stop, .. } = self;
        watched(input, client, *key, stop, session.sync()).await
    }

    /// Runs a statement. A portal that it names (FETCH, MOVE, CLOSE) is lent to the session meanwhile.
    pub async fn execute(&mut self, prepared: &adapter::Prepared, params: Vec<repr::Value>) -> Result<Response, Failure> {
        let lent = match self.session.names_portal(prepared) {
            Some(name) if !self.session.has_cursor(&name) => self.lend(name).await?,
            _ => None,
        };
        let result = self.execute_one(prepared, params).await;
        if let Some((name, portal)) = lent {
            self.take_back(name, portal);
        }
        result
    }

    pub async fn execute_one(&mut self, prepared: &adapter::Prepared, params: Vec<repr::Value>) -> Result<Response, Failure> {
        let Connection { input, session, client, key, stop, .. } = self;
        Ok(watched(input, client, *key, stop, session.execute(prepared, params)).await??)
    }

    pub async fn prepare(&mut self, statement: Option<adapter::Statement>, params: Vec<Option<repr::SqlType>>) -> Result<adapter::Prepared, Failure> {
        let Connection { input, session, client, key, stop, .. } = self;
        let mut prepared = watched(input, client, *key, stop, session.prepare(statement, params)).await??;
        if let (None, Some(name)) = (&prepared.result, self.session.names_portal(&prepared)) {
            prepared.result = self.portal_columns(&prepared, &name);
        }
        Ok(prepared)
    }

    async fn simple_query(&mut self, sql: &str) -> Result<(), End> {
        match self.query_string(sql).await {
            Ok(()) => self.ready().await,
            Err(Failure::Statement(e)) => {
                self.failed(&e);
                self.end_of_query().await
            }
            Err(Failure::End(end)) => Err(end),
        }
    }

    async fn query_string(&mut self, sql: &str) -> Result<(), Failure> {
        // A simple query ends the unnamed statement and the unnamed portal.
        self.unnamed = None;
        self.portals.remove("");
        let statements = self.session.parse(sql)?;
        if statements.is_empty() {
            self.commit().await??;
            self.out.empty_query();
            return Ok(());
        }
        let last = statements.len() - 1;
        for (i, statement) in statements.into_iter().enumerate() {
            let prepared = self.prepare(Some(statement), Vec::new()).await?;
            if !prepared.params.is_empty() {
                return Err(SqlError::new(state::UNDEFINED_PARAMETER, "there is no parameter $1").into());
            }
            if i == last {
                self.session.expect_sync();
            }
            let binary = self.session.names_portal(&prepared).is_some_and(|name| self.session.is_binary_cursor(&name));
            let formats: &[i16] = if binary { &[1] } else { &[] };
            let tag = match self.execute(&prepared, Vec::new()).await? {
                Response::Rows { desc, mut rows, tag } => {
                    self.news();
                    self.out.row_description(&desc, formats, &prepared.origins);
                    let count = self.stream_rows(&desc, formats, &mut rows).await?;
                    Some(row_tag(tag, count))
                }
                Response::Tag(tag) => Some(tag),
                Response::Empty => None,
                Response::CopyOut { columns, binary, data, rows } => Some(self.copy_out(columns, binary, data, rows).await?),
                Response::CopyIn { columns, binary, sink } => Some(self.copy_in(columns, binary, sink).await?),
            };
            if i == last {
                // The commit comes before the word that it is complete.
                self.commit().await??;
            }
            self.news();
            match tag {
                Some(tag) => self.out.complete(tag),
                None => self.out.empty_query(),
            }
        }
        self.close_portals();
        Ok(())
    }

    /// Sends all rows. Returns how many.
    async fn stream_rows(&mut self, desc: &RelDesc, formats: &[i16], rows: &mut RowStream) -> Result<u64, Failure> {
        let style = self.session.text_context().text_style();
        let mut count = 0;
        while let Some(part) = self.next_part(&mut rows.receiver).await? {
            for row in &part {
                self.out.row(row, desc, formats, &style)?;
                if self.out.is_full() {
                    self.out.flush().await?;
                }
            }
            count += part.len() as u64;
        }
        Ok(count)
    }

    /// The next part of a stream. What is buffered is sent before a wait, so a stream that pauses is not held back.
    pub async fn next_part<T>(&mut self, from: &mut tokio::sync::mpsc::Receiver<Result<T, SqlError>>) -> Result<Option<T>, Failure> {
        let part = match from.try_recv() {
            Ok(part) => Some(part),
            Err(_) => {
                let Connection { input, out, client, key, stop, .. } = self;
                // Short queries answer in one packet: what is buffered goes out only if the rows take their time.
                let mut receive = pin!(from.recv());
                tokio::select! {
                    biased;
                    part = &mut receive => part,
                    _ = tokio::time::sleep(Duration::from_millis(1)) => {
                        out.flush().await?;
                        watched(input, client, *key, stop, receive).await?
                    }
                }
            }
        };
        Ok(part.transpose()?)
    }
}

/// Awaits `work` while the socket is watched: if the client vanishes or the server stops, the statement is cancelled, and the end follows.
async fn watched<R: AsyncRead + Unpin, T>(
    input: &mut Input<R>,
    client: &Client,
    key: (i32, i32),
    stop: &mut Stop,
    work: impl Future<Output = T>,
) -> Result<T, End> {
    let mut work = pin!(work);
    let end = tokio::select! {
        biased;
        done = &mut work => return Ok(done),
        _ = input.gone() => End::Gone,
        () = stop.asked() => End::Fatal(admin_shutdown()),
    };
    client.cancel(key.0, key.1);
    // The statement ends by itself, so that what it holds is released in order.
    if tokio::time::timeout(CANCEL_GRACE, work).await.is_err() {
        tracing::warn!("a cancelled statement did not end in {CANCEL_GRACE:?}");
    }
    Err(end)
}

/// Who may end the connection beside its client.
struct Stop {
    server: watch::Receiver<bool>,
    /// Another session may end this one.
    backend: Arc<adapter::activity::Backend>,
}

impl Stop {
    async fn asked(&mut self) {
        tokio::select! {
            () = super::until(&mut self.server) => {}
            _ = self.backend.end.cancelled() => {}
        }
    }
}

fn admin_shutdown() -> SqlError {
    SqlError::new(state::ADMIN_SHUTDOWN, "terminating connection due to administrator command")
}

/// The tag of a statement that returned `count` rows.
pub fn row_tag(verb: &str, count: u64) -> String {
    match verb {
        "SHOW" | "EXPLAIN" => verb.to_owned(),
        verb => format!("{verb} {count}"),
    }
}
