//! From workers to sessions: peek rows and subscribe updates go straight to whom they are for.
//!
//! The rows of a peek carry credits: a reader that is slow slows its query. A subscription that lags is bounded: past `ROWS_QUEUED_MAX` rows its stream ends with 53400 and what is behind it is dropped.

use crate::coordinator::request::Event;
use dataflow::flow::Credit;
use dataflow::{Response, RowUpdate};
use parking_lot::Mutex;
use repr::error::state;
use repr::{Deltas, GlobalId, SqlError, Timestamp};
use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::Arc;
use tokio::sync::mpsc;

/// Rows that may wait for one slow reader of a subscription.
const ROWS_QUEUED_MAX: i64 = 5_000_000;

pub enum PeekMessage {
    /// More rows are made once the credit is dropped. `summed`: all diffs of the peek are positive.
    Rows {
        rows: Deltas,
        summed: bool,
        credit: Credit,
    },
    Done(Result<(), SqlError>),
}

pub struct SubscribeMessage {
    pub lower: Timestamp,
    pub upper: Option<Timestamp>,
    pub updates: Result<Vec<RowUpdate>, SqlError>,
}

pub type PeekReceiver = mpsc::UnboundedReceiver<PeekMessage>;

pub struct SubscribeReceiver {
    receiver: mpsc::UnboundedReceiver<SubscribeMessage>,
    queued: Arc<AtomicI64>,
}

impl SubscribeReceiver {
    pub async fn recv(&mut self) -> Option<SubscribeMessage> {
        let m = self.receiver.recv().await?;
        if let Ok(u) = &m.updates {
            self.queued.fetch_sub(u.len() as i64, Ordering::Relaxed);
        }
        Some(m)
    }
}

struct Subscriber {
    sender: mpsc::UnboundedSender<SubscribeMessage>,
    queued: Arc<AtomicI64>,
}

#[derive(Default)]
pub struct Router {
    peeks: Mutex<HashMap<GlobalId, mpsc::UnboundedSender<PeekMessage>>>,
    subscribers: Mutex<HashMap<GlobalId, Subscriber>>,
}

impl Router {
    pub fn add_peek(&self, id: GlobalId) -> PeekReceiver {
        let (tx, rx) = mpsc::unbounded_channel();
        self.peeks.lock().insert(id, tx);
        rx
    }

    pub fn add_subscriber(&self, id: GlobalId) -> SubscribeReceiver {
        let (sender, receiver) = mpsc::unbounded_channel();
        let queued = Arc::new(AtomicI64::new(0));
        self.subscribers.lock().insert(id, Subscriber { sender, queued: queued.clone() });
        SubscribeReceiver { receiver, queued }
    }

    /// Forgets a peek or subscriber.
    pub fn remove(&self, id: GlobalId) {
        self.peeks.lock().remove(&id);
        self.subscribers.lock().remove(&id);
    }

    /// Ends a subscription with an error, for example since its object was dropped.
    pub fn end_subscriber(&self, id: GlobalId, error: SqlError) {
        if let Some(s) = self.subscribers.lock().remove(&id) {
            let _ = s.sender.send(SubscribeMessage { lower: 0, upper: None, updates: Err(error) });
        }
    }

    /// Ends a peek with an error.
    pub fn end_peek(&self, id: GlobalId, error: SqlError) {
        if let Some(tx) = self.peeks.lock().remove(&id) {
            let _ = tx.send(PeekMessage::Done(Err(error)));
        }
    }

    /// Whether the session behind a peek or subscription has gone.
    pub fn is_abandoned(&self, id: GlobalId) -> bool {
        self.peeks.lock().get(&id).is_some_and(|tx| tx.is_closed()) || self.subscribers.lock().get(&id).is_some_and(|s| s.sender.is_closed())
    }

    /// Runs until the workers are gone.
    pub fn run(&self, responses: crossbeam_channel::Receiver<Response>, events: crossbeam_channel::Sender<Event>) {
        for response in responses {
            match response {
                Response::PeekRows { id, rows, summed, credit } => {
                    if let Some(tx) = self.peeks.lock().get(&id) {
                        let _ = tx.send(PeekMessage::Rows { rows, summed, credit });
                    }
                }
                Response::PeekDone { id, result } => {
                    if let Some(tx) = self.peeks.lock().remove(&id) {
                        let _ = tx.send(PeekMessage::Done(result));
                    }
                }
                Response::Subscribe { id, lower, upper, updates } => self.subscribe(id, lower, upper, updates),
                Response::Frontier { index, upper, records, bytes } => {
                    let _ = events.send(Event::Frontier { index, upper, records, bytes });
                }
                Response::WorkerDied { worker, message } => {
                    let _ = events.send(Event::WorkerDied { worker, message });
                }
            }
        }
    }

    fn subscribe(&self, id: GlobalId, lower: Timestamp, upper: Option<Timestamp>, updates: Result<Vec<RowUpdate>, SqlError>) {
        let mut subscribers = self.subscribers.lock();
        let Some(s) = subscribers.get(&id) else { return };
        let rows = updates.as_ref().map_or(0, |u| u.len() as i64);
        let ended = upper.is_none() || updates.is_err();
        if s.queued.fetch_add(rows, Ordering::Relaxed) + rows > ROWS_QUEUED_MAX {
            let error = SqlError::new(state::CONFIGURATION_LIMIT_EXCEEDED, format!("the subscription lags by more than {ROWS_QUEUED_MAX} rows"))
                .with_hint("read faster, or subscribe to fewer rows");
            let _ = s.sender.send(SubscribeMessage { lower, upper: None, updates: Err(error) });
            subscribers.remove(&id);
            return;
        }
        let gone = s.sender.send(SubscribeMessage { lower, upper, updates }).is_err();
        if ended || gone {
            subscribers.remove(&id);
        }
    }
}
