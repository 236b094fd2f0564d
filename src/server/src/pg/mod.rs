//! The Postgres wire protocol: one task a connection, each with one `adapter::Session`.
//!
//! ```text
//!   input (frames) ──► connection (state machine) ──► Session
//!                           │                            │ rows, bounded channel
//!                           ▼                            ▼
//!                      reply (bounded buffer) ◄──────────┘
//! ```
//!
//! The loop is ours and not `pgwire`'s handlers: portals that suspend, streams that never end, COPY and a client that
//! vanishes in the middle of a statement need the socket and the session at the same time.

/// The connection: start, then messages until the end.
mod connection;
/// COPY in both directions.
mod copy;
/// Parse, Bind, Describe, Execute, Close.
mod extended;
/// Frames and the bodies of frontend messages.
mod frame;
/// The read side.
mod input;
/// The write side.
mod reply;
/// TLS.
pub mod tls;
/// Values in the two formats of the wire.
mod values;

use adapter::Client;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

/// How the port is served.
pub struct Options {
    pub tls: Option<TlsAcceptor>,
    /// Clients from other than loopback addresses are served.
    pub allow_remote: bool,
}

/// Accepts connections until `stopped`, then waits for those that are left.
pub async fn serve(listener: TcpListener, client: Client, options: Options, stopped: watch::Receiver<bool>) {
    let options = Arc::new(options);
    let mut connections = JoinSet::new();
    let mut stop = stopped.clone();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, peer)) => {
                    connections.spawn(serve_one(stream, peer, client.clone(), options.clone(), stopped.clone()));
                }
                Err(e) => {
                    // Most often no file descriptors are left: connections that end give some back.
                    tracing::warn!("cannot accept a connection: {e}");
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
            },
            Some(ended) = connections.join_next(), if !connections.is_empty() => {
                if let Err(e) = ended {
                    tracing::error!("a connection task failed: {e}");
                }
            }
            () = until(&mut stop) => break,
        }
    }
    drop(listener);
    while connections.join_next().await.is_some() {}
}

/// Waits for the server to stop.
async fn until(stopped: &mut watch::Receiver<bool>) {
    let _ = stopped.wait_for(|s| *s).await;
}

async fn serve_one(stream: TcpStream, peer: SocketAddr, client: Client, options: Arc<Options>, stopped: watch::Receiver<bool>) {
    // Replies are whole when they are flushed: waiting for more to fill a packet only costs time.
    let _ = stream.set_nodelay(true);
    connection::run(stream, peer, client, &options, stopped).await;
}
