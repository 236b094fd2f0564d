//! Command line and environment: where the data is, where to listen, with how many workers.

use clap::{Args, Parser, Subcommand};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;

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
    /// Memory (`6GB`, `800MB`, `50%` of what the machine or its control group has, `off`) beyond which the statement or view that fills it is ended.
    #[arg(long, env = "RIVERDELTA_MEMORY_LIMIT", default_value = "80%")]
    pub memory_limit: MemoryLimit,
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

    /// Bytes; `None`: there is no limit.
    pub fn memory_limit(&self) -> Option<u64> {
        match self.memory_limit {
            MemoryLimit::Off => None,
            MemoryLimit::Bytes(n) => Some(n),
            MemoryLimit::Percent(n) => adapter::memory::total().map(|all| all / 100 * n),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum MemoryLimit {
    Off,
    Bytes(u64),
    Percent(u64),
}

/// The least limit: below it the server could not work.
const LIMIT_MIN: u64 = 64 << 20;

impl FromStr for MemoryLimit {
    type Err = String;

    /// A number with a unit of Postgres's settings (kB, MB, GB, TB: powers of 1024), a percentage, or `off`.
    fn from_str(s: &str) -> Result<MemoryLimit, String> {
        const UNITS: [(&str, u32); 5] = [("TB", 40), ("GB", 30), ("MB", 20), ("kB", 10), ("B", 0)];
        let s = s.trim();
        if s.eq_ignore_ascii_case("off") {
            return Ok(MemoryLimit::Off);
        }
        let number = |n: &str| n.trim().parse::<u64>().ok();
        if let Some(percent) = s.strip_suffix('%') {
            return number(percent).filter(|n| (1..=100).contains(n)).map(MemoryLimit::Percent).ok_or_else(|| "a percentage is from 1% to 100%".to_owned());
        }
        let bytes = UNITS.iter().find_map(|(unit, shift)| Some((number(s.strip_suffix(unit)?)?, *shift)));
        match bytes.and_then(|(n, shift)| n.checked_mul(1 << shift)) {
            Some(n) if n >= LIMIT_MIN => Ok(MemoryLimit::Bytes(n)),
            Some(_) => Err("the least limit is 64MB".to_owned()),
            None => Err("write a size such as 6GB or 800MB, a percentage such as 80%, or off".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_limits() {
        assert_eq!("6GB".parse(), Ok(MemoryLimit::Bytes(6 << 30)));
        assert_eq!(" 800 MB".parse(), Ok(MemoryLimit::Bytes(800 << 20)));
        assert_eq!("100000000B".parse(), Ok(MemoryLimit::Bytes(100_000_000)));
        assert_eq!("50%".parse(), Ok(MemoryLimit::Percent(50)));
        assert_eq!("OFF".parse(), Ok(MemoryLimit::Off));
        for bad in ["", "6", "6 gallons", "-1GB", "0%", "101%", "1MB", "99999999999TB"] {
            assert!(bad.parse::<MemoryLimit>().is_err(), "{bad}");
        }
    }
}
