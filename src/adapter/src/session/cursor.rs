//! DECLARE, FETCH, CLOSE.
//!
//! A cursor holds a running query or subscription. FETCH of a query waits for its rows; of a subscription it waits for at
//! least one row (or the timeout) and then takes what is there.

use super::{guarded, query::rows_response, Response, Session};
use crate::client::RowStream;
use repr::error::state;
use repr::{RelDesc, SqlError};
use sql::ast::FetchDirection;
use sql::plan::Plan;
use std::collections::VecDeque;
use std::time::Duration;
use tokio::time::Instant;

pub(super) struct Cursor {
    desc: RelDesc,
    stream: RowStream,
    ready: VecDeque<super::query::Row>,
    ended: bool,
    subscription: bool,
    held: bool,
}

impl Cursor {
    pub(super) fn desc(&self) -> &RelDesc {
        &self.desc
    }
    pub(super) fn is_held(&self) -> bool {
        self.held
    }

    async fn more(&mut self) -> Result<(), SqlError> {
        match self.stream.next().await {
            Some(rows) => self.ready.extend(rows?),
            None => self.ended = true,
        }
        Ok(())
    }

    /// At most `count` rows. `until`: when to stop waiting.
    async fn fetch(&mut self, count: usize, until: Option<Instant>) -> Result<Vec<super::query::Row>, SqlError> {
        let timer = async move {
            match until {
                Some(t) => tokio::time::sleep_until(t).await,
                None => std::future::pending().await,
            }
        };
        tokio::pin!(timer);
        while !self.ended && self.ready.len() < count {
            if self.subscription && !self.ready.is_empty() {
                // What has arrived already is taken without waiting.
                match self.stream.receiver.try_recv() {
                    Ok(rows) => self.ready.extend(rows?),
                    Err(_) => break,
                }
                continue;
            }
            tokio::select! {
                r = self.more() => r?,
                () = &mut timer => break,
            }
        }
        let n = count.min(self.ready.len());
        Ok(self.ready.drain(..n).collect())
    }
}

impl Session {
    pub(super) async fn declare(&mut self, name: String, hold: bool, scroll: bool, plan: Plan) -> Result<Response, SqlError> {
        if scroll {
            return Err(SqlError::unsupported("SCROLL", "declare the cursor without SCROLL and read forward"));
        }
        if !hold && !self.txn.in_block() {
            return Err(SqlError::new(state::NO_ACTIVE_SQL_TRANSACTION, "DECLARE CURSOR can only be used in transaction blocks"));
        }
        if self.cursors.contains_key(&name) {
            return Err(SqlError::new(state::DUPLICATE_CURSOR, format!("cursor \"{name}\" already exists")));
        }
        // The cursor outlives the statement, and with it the statement's time limit.
        let deadline = self.deadline.take();
        let (desc, stream, subscription) = match plan {
            Plan::Select(p) => (p.desc.clone(), self.start_select(*p).await.map(|r| r.into_stream()), false),
            Plan::Subscribe(p) => (p.result.clone(), self.start_subscribe(*p).await, true),
            _ => return Err(SqlError::new(state::INVALID_CURSOR_STATE, "a cursor needs a query or a subscription")),
        };
        self.deadline = deadline;
        self.cursors.insert(name, Cursor { desc, stream: stream?, ready: VecDeque::new(), ended: false, subscription, held: hold });
        Ok(Response::Tag("DECLARE CURSOR".into()))
    }

    pub(super) async fn fetch(&mut self, name: &str, direction: FetchDirection, is_move: bool, timeout_micros: Option<i64>) -> Result<Response, SqlError> {
        let count = match direction {
            FetchDirection::Forward(n) => usize::try_from(n).unwrap_or(usize::MAX),
            FetchDirection::ForwardAll => usize::MAX,
            FetchDirection::Relative(n) if n >= 0 => usize::try_from(n).unwrap_or(usize::MAX),
            _ => {
                return Err(SqlError::new(state::OBJECT_NOT_IN_PREREQUISITE_STATE, "cursor can only scan forward")
                    .with_hint("Declare it with SCROLL option to enable backward scan."))
            }
        };
        let (cancel, deadline) = (self.cancel.clone(), self.deadline);
        let cursor = self.cursors.get_mut(name).ok_or_else(|| missing(name))?;
        let until = timeout_micros.map(|us| Instant::now() + Duration::from_micros(u64::try_from(us).unwrap_or(0)));
        let rows = guarded(&cancel, deadline, cursor.fetch(count, until)).await??;
        if is_move {
            return Ok(Response::Tag(format!("MOVE {}", rows.len())));
        }
        Ok(rows_response(cursor.desc.clone(), rows, "FETCH"))
    }

    pub(super) fn close(&mut self, name: Option<&str>) -> Result<Response, SqlError> {
        match name {
            None => {
                self.cursors.clear();
                Ok(Response::Tag("CLOSE CURSOR ALL".into()))
            }
            Some(n) => {
                self.cursors.remove(n).ok_or_else(|| missing(n))?;
                Ok(Response::Tag("CLOSE CURSOR".into()))
            }
        }
    }
}

fn missing(name: &str) -> SqlError {
    SqlError::new(state::INVALID_CURSOR_NAME, format!("cursor \"{name}\" does not exist"))
}
