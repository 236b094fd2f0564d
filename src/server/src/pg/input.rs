//! The read side of a connection: bytes buffered until they make a message.

use super::frame::{self, BadFrame, Message, Opening};
use bytes::BytesMut;
use repr::SqlError;
use std::future::pending;
use tokio::io::{AsyncRead, AsyncReadExt};

/// While a statement runs, this much of what the client pipelines is read ahead; then TCP holds it back.
const READ_AHEAD_BYTES_MAX: usize = 1 << 20;

pub struct Input<R> {
    from: R,
    buf: BytesMut,
}

/// What a wait for a message came to.
pub enum Received {
    Message(Message),
    Bad(BadFrame),
    /// The client closed the connection, or it broke.
    Gone,
}

impl<R: AsyncRead + Unpin> Input<R> {
    pub fn new(from: R) -> Input<R> {
        Input { from, buf: BytesMut::new() }
    }

    /// Gives the stream back, for the change to TLS. `None`: bytes came before the answer, which must not be trusted.
    pub fn into_inner(self) -> Option<R> {
        self.buf.is_empty().then_some(self.from)
    }

    async fn read(&mut self) -> bool {
        matches!(self.from.read_buf(&mut self.buf).await, Ok(n) if n > 0)
    }

    /// The opening message; `Ok(None)` if the client closed instead.
    pub async fn opening(&mut self) -> Result<Option<Opening>, SqlError> {
        loop {
            if let Some(opening) = frame::opening(&mut self.buf)? {
                return Ok(Some(opening));
            }
            if !self.read().await {
                return Ok(None);
            }
        }
    }

    /// The next message. May be dropped while it waits: no bytes are lost.
    pub async fn next(&mut self) -> Received {
        loop {
            match frame::message(&mut self.buf) {
                Ok(Some(message)) => return Received::Message(message),
                Err(bad) => return Received::Bad(bad),
                Ok(None) => {}
            }
            if self.buf.is_empty() {
                // Idle connections keep no large buffer.
                self.buf = BytesMut::new();
            }
            if !self.read().await {
                return Received::Gone;
            }
        }
    }

    /// Whether the next message is here and is Sync.
    pub fn sync_is_next(&self) -> bool {
        self.buf.starts_with(b"S\0\0\0\x04")
    }

    /// Whether the next message is already here.
    pub fn has_bytes(&self) -> bool {
        !self.buf.is_empty()
    }

    /// Ends when the client is gone; reads ahead meanwhile. May be dropped at any time.
    pub async fn gone(&mut self) {
        loop {
            if self.buf.len() >= READ_AHEAD_BYTES_MAX {
                return pending().await;
            }
            if !self.read().await {
                return;
            }
        }
    }
}
