//! The `riverdelta` binary: command line, logging, listeners, signals.
//!
//! ```text
//!   psql ──► pg (one task a connection) ──► adapter::Session
//!   curl ──► http (health, metrics)     ──► adapter::Client
//! ```
//!
//! Promise: the process ends only on a signal, or on an error that makes serving impossible (a locked or damaged data
//! directory, an address in use), which is said on stderr with exit code 1. A panic in a connection ends that connection.
//! Not here: SQL, sessions, transactions (`adapter`).

/// The allocator.
mod alloc;
/// Command line and environment.
mod args;
/// Health and metrics over HTTP.
mod http;
/// The Postgres wire protocol.
mod pg;

use adapter::{Client, Config};
use args::{Cli, Command, ServeArgs};
use clap::Parser;
use std::io::IsTerminal;
use std::process::ExitCode;
use tokio::net::TcpListener;
use tokio::signal::unix::{signal, SignalKind};
use tokio::sync::watch;
use tracing_subscriber::EnvFilter;

#[global_allocator]
static ALLOC: alloc::Noted = alloc::Noted;

/// How long sessions get to end their statements after a signal.
const DRAIN: std::time::Duration = std::time::Duration::from_secs(5);

/// How long views, sources and folding get to end after that.
const STOP: std::time::Duration = std::time::Duration::from_secs(15);

/// Stack of each thread, reserved and not touched until used: expressions may nest 4,000 levels deep (`sql::parse`), and what
/// plans, evaluates or drops them recurses.
const STACK_BYTES: usize = 512 << 20;

fn main() -> ExitCode {
    // Before the first thread: the standard library asks for this once. The engine's and the runtime's threads follow it.
    std::env::set_var("RUST_MIN_STACK", STACK_BYTES.to_string());
    expr::func::system::started();
    repr::memory::collect_by(alloc::collect);
    let cli = Cli::parse();
    let args = match cli.command {
        Some(Command::Serve(args)) => args,
        None => cli.serve,
    };
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).with_ansi(std::io::stderr().is_terminal()).init();
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().thread_name("rd-io").build() {
        Ok(runtime) => runtime,
        Err(e) => return fail(&format!("cannot start the I/O threads: {e}")),
    };
    let code = match runtime.block_on(serve(args)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => fail(&message),
    };
    // A connection that does not end must not hold the process.
    runtime.shutdown_timeout(std::time::Duration::from_secs(1));
    code
}

fn fail(message: &str) -> ExitCode {
    eprintln!("riverdelta: {message}");
    ExitCode::FAILURE
}

/// Serves until a signal. Errors: what kept it from serving, in words for the operator.
async fn serve(args: ServeArgs) -> Result<(), String> {
    let mut terminate = signal(SignalKind::terminate()).map_err(|e| format!("cannot watch for SIGTERM: {e}"))?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(|e| format!("cannot watch for SIGINT: {e}"))?;
    let tls = match (&args.tls_cert, &args.tls_key) {
        (Some(cert), Some(key)) => Some(pg::tls::acceptor(cert, key)?),
        _ => None,
    };

    // Both addresses are bound before recovery, so that an address in use is known at once; clients wait in the backlog.
    let pg = TcpListener::bind(args.pg_listen).await.map_err(|e| format!("cannot listen on {} for Postgres clients: {e}", args.pg_listen))?;
    let http = TcpListener::bind(args.http_listen).await.map_err(|e| format!("cannot listen on {} for HTTP: {e}", args.http_listen))?;
    let pg_addr = pg.local_addr().map_err(|e| e.to_string())?;
    let http_addr = http.local_addr().map_err(|e| e.to_string())?;

    let (stop, stopped) = watch::channel(false);
    let client_slot = http::ClientSlot::default();
    tokio::spawn(http::serve(http, client_slot.clone(), stopped.clone()));

    let config = Config { data_dir: args.data_dir.clone(), workers: args.worker_count(), memory_limit: args.memory_limit() };
    let client = tokio::select! {
        started = Client::start(config) => started.map_err(|e| start_error(&e))?,
        _ = terminate.recv() => return Ok(()),
        _ = interrupt.recv() => return Ok(()),
    };
    client_slot.set(client.clone());
    let options = pg::Options { tls, allow_remote: args.allow_remote };
    let listener = tokio::spawn(pg::serve(pg, client.clone(), options, stopped));
    println!("riverdelta is ready: psql -h {} -p {} -U riverdelta riverdelta", pg_addr.ip(), pg_addr.port());
    println!("data in {}, {} workers, http://{http_addr}/metrics", args.data_dir.display(), args.worker_count());

    let name = tokio::select! {
        _ = terminate.recv() => "SIGTERM",
        _ = interrupt.recv() => "SIGINT",
    };
    tracing::info!("{name}: stopping");
    let _ = stop.send(true);
    if tokio::time::timeout(DRAIN, listener).await.is_err() {
        tracing::warn!("some connections did not end in time");
    }
    if tokio::time::timeout(STOP, client.shutdown()).await.is_err() {
        // What was acknowledged is durable: this loses no more than the statements that were cut.
        tracing::warn!("what still runs did not end in time and is cut off");
        std::process::exit(0);
    }
    tracing::info!("stopped");
    Ok(())
}

fn start_error(e: &repr::SqlError) -> String {
    let mut s = e.message.clone();
    for (label, text) in [("detail", &e.detail), ("hint", &e.hint)] {
        if let Some(text) = text {
            s.push_str(&format!("\n  {label}: {text}"));
        }
    }
    s
}
