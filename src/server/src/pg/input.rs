//! The read side of a connection: bytes buffered until they make a message.

use super::frame::{self, BadFrame, Message, Opening};
use bytes::BytesMut;
use repr::encoding::Encoding;
use repr::SqlError;
use std::future::pending;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt};

/// While a statement runs, this much of what the client pipelines is read ahead; then TCP holds it back.
const READ_AHEAD_BYTES_MAX: usize = 1 << 20;

const READ_BYTES: usize = 8 << 10;
/// Clients send Execute with what follows it; how long the network may take to bring the rest.
const NEXT_MESSAGE: Duration = Duration::from_millis(5);

pub struct Input<R> {
    from: R,
    buf: BytesMut,
    /// Of the client's strings.
    pub encoding: Encoding,
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
        Input { from, buf: BytesMut::new(), encoding: Encoding::Utf8 }
    }

    /// Gives the stream back, for the change to TLS. `None`: bytes came before the answer, which must not be trusted.
    pub fn into_inner(self) -> Option<R> {
        self.buf.is_empty().then_some(self.from)
    }

    async fn read(&mut self) -> bool {
        // Else a read takes what happens to be free in the buffer, and cuts messages that came in one piece.
        self.buf.reserve(READ_BYTES);
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
            match frame::message(&mut self.buf, self.encoding) {
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

    /// Whether the next message is Sync. Waits a moment for one that is on its way: a statement that is followed by Sync commits by itself, and
    /// only such a one can be run again on a conflict.
    pub async fn sync_is_next(&mut self) -> bool {
        const SYNC: &[u8] = b"S\0\0\0\x04";
        let deadline = tokio::time::Instant::now() + NEXT_MESSAGE;
        while self.buf.len() < SYNC.len() && SYNC.starts_with(&self.buf) {
            if !matches!(tokio::time::timeout_at(deadline, self.read()).await, Ok(true)) {
                return false;
            }
        }
        self.buf.starts_with(SYNC)
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
