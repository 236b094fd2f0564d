//! Health and metrics over HTTP.
//!
//! `/health/live` answers as soon as the process listens, `/health/ready` once statements are served (503 until then),
//! `/metrics` is Prometheus text.

use adapter::Client;
use axum::extract::State;
use axum::http::{header, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::Router;
use std::sync::{Arc, OnceLock};
use tokio::net::TcpListener;
use tokio::sync::watch;

/// The client, once recovery is done.
#[derive(Clone, Default)]
pub struct ClientSlot(Arc<OnceLock<Client>>);

impl ClientSlot {
    pub fn set(&self, client: Client) {
        let _ = self.0.set(client);
    }
    fn ready(&self) -> Option<&Client> {
        self.0.get().filter(|c| c.is_ready())
    }
}

/// Serves until `stopped`.
pub async fn serve(listener: TcpListener, slot: ClientSlot, mut stopped: watch::Receiver<bool>) {
    let app =
        Router::new().route("/health/live", get(|| async { "live\n" })).route("/health/ready", get(ready)).route("/metrics", get(metrics)).with_state(slot);
    let until = async move {
        let _ = stopped.wait_for(|s| *s).await;
    };
    if let Err(e) = axum::serve(listener, app).with_graceful_shutdown(until).await {
        tracing::error!("the HTTP listener ended: {e}");
    }
}

async fn ready(State(slot): State<ClientSlot>) -> Response {
    match slot.ready() {
        Some(_) => "ready\n".into_response(),
        None => (StatusCode::SERVICE_UNAVAILABLE, "starting\n").into_response(),
    }
}

async fn metrics(State(slot): State<ClientSlot>) -> Response {
    match slot.ready() {
        Some(client) => ([(header::CONTENT_TYPE, "text/plain; version=0.0.4")], client.metrics()).into_response(),
        None => (StatusCode::SERVICE_UNAVAILABLE, "starting\n").into_response(),
    }
}
