//! Command line and environment: where the data is, where to listen, with how many workers.

use clap::{Args, Parser, Subcommand};
use std::net::SocketAddr;
use std::path::PathBuf;

/// Riverdelta, a streaming SQL database.
#[derive(Parser, Debug)]
#[command(name = "riverdelta", version, about, args_conflicts_with_subcommands = true)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Option<Command>,
    #[command(flatten)]
    pub serve: ServeArgs,
}

#[derive(Subcommand, Debug)]
pub enum Command {
    /// Serve until SIGTERM or SIGINT (the default).
    Serve(ServeArgs),
}

#[derive(Args, Debug, Clone)]
pub struct ServeArgs {
    /// Directory that holds everything that is durable; made if it is not there.
    #[arg(long, env = "RIVERDELTA_DATA_DIR", default_value = "./riverdelta-data")]
    pub data_dir: PathBuf,
    /// Address for Postgres clients.
    #[arg(long, env = "RIVERDELTA_PG_LISTEN", default_value = "127.0.0.1:6875")]
    pub pg_listen: SocketAddr,
    /// Address for HTTP: health and metrics.
    #[arg(long, env = "RIVERDELTA_HTTP_LISTEN", default_value = "127.0.0.1:6876")]
    pub http_listen: SocketAddr,
    /// Dataflow worker threads; all cores if not given.
    #[arg(long, env = "RIVERDELTA_WORKERS")]
    pub workers: Option<usize>,
    /// Certificate chain (PEM) for TLS on the Postgres port.
    #[arg(long, env = "RIVERDELTA_TLS_CERT", requires = "tls_key")]
    pub tls_cert: Option<PathBuf>,
    /// Private key (PEM) of the certificate.
    #[arg(long, env = "RIVERDELTA_TLS_KEY", requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,
    /// Serve clients of other machines too. There are no passwords yet: whoever reaches the port may do everything.
    #[arg(long, env = "RIVERDELTA_ALLOW_REMOTE")]
    pub allow_remote: bool,
}

impl ServeArgs {
    pub fn worker_count(&self) -> usize {
        self.workers.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, |n| n.get())).max(1)
    }
}
