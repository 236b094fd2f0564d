//! What the server sends: backend messages, gathered in a bounded buffer.
//!
//! Messages are encoded by `pgwire`; rows, the only hot ones, and messages with text, which is in the client's encoding, are written straight into
//! the buffer. The buffer is
//! flushed when it passes [`FLUSH_BYTES`], so a slow client holds back whoever produces rows for it and the server's
//! memory stays bounded by the largest row.

use super::values;
use adapter::{Notice, TransactionStatus};
use bytes::{BufMut, BytesMut};
use pgwire::messages::data::{NoData, ParameterDescription};
use pgwire::messages::extendedquery::{BindComplete, CloseComplete, ParseComplete, PortalSuspended};
use pgwire::messages::response::{self, CommandComplete, EmptyQueryResponse, ReadyForQuery};
use pgwire::messages::startup::Authentication;
use pgwire::messages::Message;
use repr::encoding::Encoding;
use repr::error::state;
use repr::style::TextStyle;
use repr::{RelDesc, SqlError, SqlType, Value};
use std::io;
use tokio::io::{AsyncWrite, AsyncWriteExt};

/// Enough that small rows share a system call.
const FLUSH_BYTES: usize = 64 << 10;
/// A row or value beyond this cannot be framed (Postgres's limit on a message).
const ROW_BYTES_MAX: usize = 0x3fff_ffff;

pub struct Out<W> {
    to: W,
    buf: BytesMut,
    /// Of strings for the client.
    pub encoding: Encoding,
    /// Where the CommandComplete begins that ends the buffer: it can still be taken back.
    last_complete: Option<usize>,
    /// One value, reused.
    scratch: String,
    binary_scratch: Vec<u8>,
}

impl<W: AsyncWrite + Unpin> Out<W> {
    pub fn new(to: W) -> Out<W> {
        Out { to, buf: BytesMut::new(), encoding: Encoding::Utf8, last_complete: None, scratch: String::new(), binary_scratch: Vec::new() }
    }

    /// Gives the stream back, for the change to TLS; everything must be flushed.
    pub fn into_inner(self) -> W {
        self.to
    }

    /// Sends what is buffered.
    pub async fn flush(&mut self) -> io::Result<()> {
        self.last_complete = None;
        if !self.buf.is_empty() {
            self.to.write_all(&self.buf).await?;
            self.buf.clear();
            if self.buf.capacity() > 4 * FLUSH_BYTES {
                self.buf = BytesMut::new();
            }
        }
        self.to.flush().await
    }

    pub fn is_full(&self) -> bool {
        self.buf.len() >= FLUSH_BYTES
    }

    fn put(&mut self, message: &impl Message) {
        self.last_complete = None;
        let start = self.buf.len();
        if let Err(e) = message.encode(&mut self.buf) {
            // Only a message beyond the protocol's size limits; half of one must not go out.
            tracing::error!("a reply cannot be encoded: {e}");
            self.buf.truncate(start);
        }
    }

    /// The one-byte answer to SSLRequest and GSSENCRequest.
    pub fn byte(&mut self, byte: u8) {
        self.buf.put_u8(byte);
    }

    pub fn authentication_ok(&mut self) {
        self.put(&Authentication::Ok);
    }

    pub fn negotiate_version(&mut self, unknown: &[&str]) {
        // 'v', newest minor version, the options not known
        let len: usize = 4 + 4 + 4 + unknown.iter().map(|o| o.len() + 1).sum::<usize>();
        self.buf.put_u8(b'v');
        self.buf.put_i32(len as i32);
        self.buf.put_i32(3 << 16);
        self.buf.put_i32(unknown.len() as i32);
        for option in unknown {
            self.buf.put_slice(option.as_bytes());
            self.buf.put_u8(0);
        }
    }

    pub fn parameter(&mut self, name: String, value: String) {
        self.message(b'S', |to, buf| {
            put_string(&name, to, buf);
            put_string(&value, to, buf);
        });
    }

    pub fn backend_key(&mut self, pid: i32, secret: i32) {
        self.buf.put_u8(b'K');
        self.buf.put_i32(12);
        self.buf.put_i32(pid);
        self.buf.put_i32(secret);
    }

    pub fn ready(&mut self, status: TransactionStatus) {
        let status = match status {
            TransactionStatus::Idle => response::TransactionStatus::Idle,
            TransactionStatus::InBlock => response::TransactionStatus::Transaction,
            TransactionStatus::Failed => response::TransactionStatus::Error,
        };
        self.put(&ReadyForQuery::new(status));
    }

    pub fn error(&mut self, error: &SqlError) {
        self.fields(b'E', "ERROR", error);
    }

    pub fn fatal(&mut self, error: &SqlError) {
        self.fields(b'E', "FATAL", error);
    }

    pub fn notice(&mut self, notice: &Notice) {
        self.fields(b'N', notice.severity, &notice.error);
    }

    fn fields(&mut self, kind: u8, severity: &str, error: &SqlError) {
        let fields = fields(severity, error);
        self.message(kind, |to, buf| {
            for (code, text) in &fields {
                buf.put_u8(*code);
                put_string(text, to, buf);
            }
            buf.put_u8(0);
        });
    }

    /// A message whose body `write` appends.
    fn message(&mut self, kind: u8, write: impl FnOnce(Encoding, &mut BytesMut)) {
        self.last_complete = None;
        self.buf.put_u8(kind);
        let start = self.buf.len();
        self.buf.put_i32(0);
        write(self.encoding, &mut self.buf);
        let len = (self.buf.len() - start) as i32;
        self.buf[start..start + 4].copy_from_slice(&len.to_be_bytes());
    }

    pub fn parse_complete(&mut self) {
        self.put(&ParseComplete::new());
    }

    pub fn bind_complete(&mut self) {
        self.put(&BindComplete::new());
    }

    pub fn close_complete(&mut self) {
        self.put(&CloseComplete::new());
    }

    pub fn portal_suspended(&mut self) {
        self.put(&PortalSuspended::new());
    }

    pub fn no_data(&mut self) {
        self.put(&NoData::new());
    }

    pub fn empty_query(&mut self) {
        self.put(&EmptyQueryResponse::new());
    }

    pub fn parameter_description(&mut self, types: &[SqlType]) {
        self.put(&ParameterDescription::new(types.iter().map(SqlType::oid).collect()));
    }

    /// `formats`: one a column, one for all, or none (text). `origins`: relation and attribute of each column, or none.
    pub fn row_description(&mut self, desc: &RelDesc, formats: &[i16], origins: &[(u32, i16)]) {
        self.message(b'T', |to, buf| {
            buf.put_i16(desc.arity() as i16);
            for (i, (name, ty)) in desc.names.iter().zip(&desc.types).enumerate() {
                // A client is told what a domain is over.
                let ty = ty.base();
                let (relation, attribute) = origins.get(i).copied().unwrap_or((0, 0));
                put_string(name, to, buf);
                buf.put_u32(relation);
                buf.put_i16(attribute);
                buf.put_u32(ty.ty.oid());
                buf.put_i16(ty.ty.typlen());
                buf.put_i32(ty.typmod);
                buf.put_i16(format_of(formats, i));
            }
        });
    }

    /// One DataRow. Errors: a row too large for the protocol, a value that the client's encoding does not have; nothing is written then.
    pub fn row(&mut self, row: &[Value], desc: &RelDesc, formats: &[i16], style: &TextStyle) -> Result<(), SqlError> {
        self.last_complete = None;
        let start = self.buf.len();
        self.buf.put_u8(b'D');
        self.buf.put_i32(0);
        self.buf.put_i16(row.len() as i16);
        for (i, (value, ty)) in row.iter().zip(&desc.types).enumerate() {
            if value.is_null() {
                self.buf.put_i32(-1);
                continue;
            }
            let at = self.buf.len();
            self.buf.put_i32(0);
            let written = match format_of(formats, i) {
                0 => values::write_text(value, ty, style, self.encoding, &mut self.scratch, &mut self.buf),
                _ => values::write_binary(value, ty, self.encoding, &mut self.binary_scratch, &mut self.buf),
            };
            if let Err(e) = written {
                self.buf.truncate(start);
                return Err(e);
            }
            let len = (self.buf.len() - at - 4) as u32;
            self.buf[at..at + 4].copy_from_slice(&len.to_be_bytes());
        }
        let len = self.buf.len() - start - 1;
        if len > ROW_BYTES_MAX {
            self.buf.truncate(start);
            return Err(SqlError::new(state::PROGRAM_LIMIT_EXCEEDED, format!("row is too big to send: {len} bytes, maximum {ROW_BYTES_MAX}")));
        }
        self.buf[start + 1..start + 5].copy_from_slice(&(len as u32).to_be_bytes());
        Ok(())
    }

    /// `kind`: 'G' for copy in, 'H' for copy out.
    pub fn copy_response(&mut self, kind: u8, columns: usize, binary: bool) {
        self.last_complete = None;
        let format = i16::from(binary);
        self.buf.put_u8(kind);
        self.buf.put_i32((4 + 1 + 2 + 2 * columns) as i32);
        self.buf.put_i8(i8::from(binary));
        self.buf.put_i16(columns as i16);
        for _ in 0..columns {
            self.buf.put_i16(format);
        }
    }

    pub fn copy_data(&mut self, data: &[u8]) {
        self.last_complete = None;
        self.buf.put_u8(b'd');
        self.buf.put_i32(data.len() as i32 + 4);
        self.buf.put_slice(data);
    }

    pub fn copy_done(&mut self) {
        self.last_complete = None;
        self.buf.put_u8(b'c');
        self.buf.put_i32(4);
    }

    pub fn complete(&mut self, tag: String) {
        let at = self.buf.len();
        self.put(&CommandComplete::new(tag));
        self.last_complete = Some(at);
    }

    /// Takes back the CommandComplete that ends the buffer, for a commit that failed after its statement ended.
    pub fn retract_complete(&mut self) {
        if let Some(at) = self.last_complete.take() {
            self.buf.truncate(at);
        }
    }
}

/// A string and its end; what the client's encoding does not have is a question mark, since there must be an answer.
fn put_string(text: &str, to: Encoding, buf: &mut BytesMut) {
    buf.put_slice(&to.encode_lossy(text));
    buf.put_u8(0);
}

/// The format code of column `i`.
pub fn format_of(formats: &[i16], i: usize) -> i16 {
    match formats {
        [] => 0,
        [one] => *one,
        each => each.get(i).copied().unwrap_or(0),
    }
}

fn fields(severity: &str, error: &SqlError) -> Vec<(u8, String)> {
    // A NUL would end the field early and desynchronise the client.
    let clean = |s: &str| s.replace('\0', "\u{fffd}");
    let mut fields = vec![(b'S', severity.to_owned()), (b'V', severity.to_owned()), (b'C', error.code.as_str().to_owned()), (b'M', clean(&error.message))];
    if let Some(detail) = &error.detail {
        fields.push((b'D', clean(detail)));
    }
    if let Some(hint) = &error.hint {
        fields.push((b'H', clean(hint)));
    }
    // Drivers prepare a statement again when they read in which of Postgres's routines this one arose (asyncpg, pgjdbc).
    if error.code == state::FEATURE_NOT_SUPPORTED && error.message == adapter::PLAN_CHANGED {
        fields.push((b'R', "RevalidateCachedQuery".to_owned()));
    }
    if let Some(position) = error.position {
        fields.push((b'P', position.to_string()));
    }
    if let Some(about) = &error.fields {
        let all =
            [(b'W', &about.context), (b's', &about.schema), (b't', &about.table), (b'c', &about.column), (b'd', &about.datatype), (b'n', &about.constraint)];
        fields.extend(all.into_iter().filter_map(|(code, value)| Some((code, clean(value.as_ref()?)))));
    }
    fields
}
