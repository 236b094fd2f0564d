//! COPY in both directions, the same in the simple and the extended protocol.

use super::connection::{Connection, End, Failure};
use super::frame::{BadFrame, Message};
use super::input::Received;
use adapter::{ByteStream, CopySink};
use repr::error::state;
use repr::SqlError;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncWrite};

impl<S: AsyncRead + AsyncWrite + Unpin> Connection<S> {
    /// COPY .. TO STDOUT. Returns the tag.
    pub async fn copy_out(&mut self, columns: usize, binary: bool, mut data: ByteStream, rows: Arc<AtomicU64>) -> Result<String, Failure> {
        self.news();
        self.out.copy_response(b'H', columns, binary);
        while let Some(part) = self.next_part(&mut data.receiver).await? {
            for message in &part {
                self.out.copy_data(message);
                if self.out.is_full() {
                    self.out.flush().await?;
                }
            }
        }
        self.out.copy_done();
        Ok(format!("COPY {}", rows.load(Ordering::Relaxed)))
    }

    /// COPY .. FROM STDIN. Returns the tag.
    pub async fn copy_in(&mut self, columns: usize, binary: bool, mut sink: CopySink) -> Result<String, Failure> {
        self.news();
        self.out.copy_response(b'G', columns, binary);
        self.out.flush().await?;
        loop {
            let error = match self.input.next().await {
                Received::Message(Message::CopyData(data)) => match sink.push(&data, &mut self.session).await {
                    Ok(()) => continue,
                    Err(e) => {
                        let _ = sink.abort(&mut self.session, e.message.clone());
                        e
                    }
                },
                Received::Message(Message::CopyDone) => return Ok(sink.finish(&mut self.session).await?),
                Received::Message(Message::CopyFail(reason)) => sink.abort(&mut self.session, reason),
                Received::Message(Message::Flush | Message::Sync) => continue,
                Received::Message(Message::Terminate) | Received::Gone => {
                    let _ = sink.abort(&mut self.session, "the client closed the connection".into());
                    return Err(End::Gone.into());
                }
                Received::Message(_) => {
                    let message = "unexpected message type during COPY from stdin";
                    let _ = sink.abort(&mut self.session, message.into());
                    SqlError::new(state::PROTOCOL_VIOLATION, message)
                }
                Received::Bad(BadFrame::Fatal(e)) => {
                    let _ = sink.abort(&mut self.session, e.message.clone());
                    return Err(End::Fatal(e).into());
                }
                Received::Bad(BadFrame::Body { error, .. }) => {
                    let _ = sink.abort(&mut self.session, error.message.clone());
                    error
                }
            };
            return Err(error.into());
        }
    }
}
