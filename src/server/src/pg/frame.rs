//! What clients send: frames cut from the byte stream, and their bodies.
//!
//! ```text
//!   startup   len i32 (with itself) | code i32 | ...          SSLRequest, GSSENCRequest, CancelRequest, StartupMessage
//!   then      kind u8 | len i32 (with itself) | body
//! ```
//!
//! Promise: any bytes give a message, a wait for more, or an error; nothing panics, nothing is allocated because a length
//! field claims it. A bad frame (unknown kind, impossible length) is fatal, since the place of the next frame is lost; a
//! bad body costs that message only. Strings that are none of the client's encoding are 22021.
//! The bodies are taken apart here and not by `pgwire`, whose decoders read past a body that is too short.

use bytes::{Buf, Bytes, BytesMut};
use repr::encoding::Encoding;
use repr::error::state;
use repr::SqlError;

/// Postgres's limits are 1 GiB and 10,000 bytes. Ours is lower for the large: a statement or a row of COPY beyond it is refused.
pub const LARGE_BYTES_MAX: usize = 256 << 20;
pub const SMALL_BYTES_MAX: usize = 10_000;

const SSL_REQUEST: i32 = 80_877_103;
const GSSENC_REQUEST: i32 = 80_877_104;
const CANCEL_REQUEST: i32 = 80_877_102;

/// The first message of a connection.
#[derive(Debug, PartialEq)]
pub enum Opening {
    Ssl,
    GssEnc,
    Cancel { pid: i32, secret: i32 },
    Startup { minor: u16, params: Vec<(String, String)> },
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Target {
    Statement,
    Portal,
}

/// A message after the start.
#[derive(Debug, PartialEq)]
pub enum Message {
    Query(String),
    Parse { name: String, sql: String, types: Vec<u32> },
    Bind(Bind),
    Describe { target: Target, name: String },
    Execute { portal: String, row_count_max: i32 },
    Close { target: Target, name: String },
    Flush,
    Sync,
    Terminate,
    CopyData(Bytes),
    CopyDone,
    CopyFail(String),
    FunctionCall,
    Password,
}

#[derive(Debug, PartialEq)]
pub struct Bind {
    pub portal: String,
    pub statement: String,
    pub param_formats: Vec<i16>,
    pub params: Vec<Option<Bytes>>,
    pub result_formats: Vec<i16>,
}

/// Why bytes gave no message.
#[derive(Debug, PartialEq)]
pub enum BadFrame {
    /// The place of the next frame is unknown.
    Fatal(SqlError),
    /// This message is lost, the next one begins where it should. The kind says if it belongs to the extended protocol.
    Body { kind: u8, error: SqlError },
}

fn violation(message: impl Into<String>) -> SqlError {
    SqlError::new(state::PROTOCOL_VIOLATION, message)
}

/// Cuts the opening message off `buf`; `None`: more bytes are needed.
pub fn opening(buf: &mut BytesMut) -> Result<Option<Opening>, SqlError> {
    if buf.len() < 4 {
        return Ok(None);
    }
    let len = i32::from_be_bytes([buf[0], buf[1], buf[2], buf[3]]);
    let len = usize::try_from(len).ok().filter(|l| (8..=SMALL_BYTES_MAX).contains(l)).ok_or_else(|| violation("invalid length of startup packet"))?;
    if buf.len() < len {
        return Ok(None);
    }
    let mut body = Body(buf.split_to(len).freeze().slice(4..), Encoding::Utf8);
    let code = body.i32()?;
    let opening = match code {
        SSL_REQUEST => Opening::Ssl,
        GSSENC_REQUEST => Opening::GssEnc,
        CANCEL_REQUEST => Opening::Cancel { pid: body.i32()?, secret: body.i32()? },
        _ => {
            let (major, minor) = ((code >> 16) & 0xffff, (code & 0xffff) as u16);
            if major != 3 {
                let message = format!("unsupported frontend protocol {major}.{minor}: server supports 3.0 to 3.0");
                return Err(SqlError::new(state::FEATURE_NOT_SUPPORTED, message));
            }
            let mut params = Vec::new();
            loop {
                let key = body.string().map_err(|_| violation("invalid startup packet layout: expected terminator as last byte"))?;
                if key.is_empty() {
                    break;
                }
                params.push((key, body.string()?));
            }
            Opening::Startup { minor, params }
        }
    };
    Ok(Some(opening))
}

/// Cuts one message off `buf`; `None`: more bytes are needed.
pub fn message(buf: &mut BytesMut, encoding: Encoding) -> Result<Option<Message>, BadFrame> {
    if buf.len() < 5 {
        return Ok(None);
    }
    let kind = buf[0];
    let limit = match kind {
        b'Q' | b'P' | b'B' | b'd' | b'F' => LARGE_BYTES_MAX,
        b'D' | b'E' | b'C' | b'H' | b'S' | b'X' | b'c' | b'f' | b'p' => SMALL_BYTES_MAX,
        _ => return Err(BadFrame::Fatal(violation(format!("invalid frontend message type {kind}")))),
    };
    let len = i32::from_be_bytes([buf[1], buf[2], buf[3], buf[4]]);
    let len = match usize::try_from(len) {
        Ok(l) if l < 4 => return Err(BadFrame::Fatal(violation("invalid message length"))),
        Ok(l) if l > limit => return Err(BadFrame::Fatal(violation(format!("invalid message length: {l} bytes are more than the limit of {limit}")))),
        Ok(l) => l,
        Err(_) => return Err(BadFrame::Fatal(violation("invalid message length"))),
    };
    if buf.len() < 1 + len {
        return Ok(None);
    }
    let frame = buf.split_to(1 + len).freeze();
    body(kind, Body(frame.slice(5..), encoding)).map(Some).map_err(|error| BadFrame::Body { kind, error })
}

fn body(kind: u8, mut b: Body) -> Result<Message, SqlError> {
    let message = match kind {
        b'Q' => Message::Query(b.string()?),
        b'P' => {
            let (name, sql) = (b.string()?, b.string()?);
            let count = b.u16()?;
            Message::Parse { name, sql, types: (0..count).map(|_| b.i32().map(|v| v as u32)).collect::<Result<_, _>>()? }
        }
        b'B' => Message::Bind(bind(&mut b)?),
        b'D' => Message::Describe { target: b.target("DESCRIBE")?, name: b.string()? },
        b'E' => Message::Execute { portal: b.string()?, row_count_max: b.i32()? },
        b'C' => Message::Close { target: b.target("CLOSE")?, name: b.string()? },
        b'H' => Message::Flush,
        b'S' => Message::Sync,
        b'X' => return Ok(Message::Terminate),
        b'd' => return Ok(Message::CopyData(b.0)),
        b'c' => Message::CopyDone,
        b'f' => Message::CopyFail(b.string()?),
        b'F' => return Ok(Message::FunctionCall),
        _ => return Ok(Message::Password),
    };
    if !b.0.is_empty() {
        return Err(violation("invalid message format"));
    }
    Ok(message)
}

fn bind(b: &mut Body) -> Result<Bind, SqlError> {
    let (portal, statement) = (b.string()?, b.string()?);
    let param_formats = b.formats()?;
    let count = b.u16()?;
    let mut params = Vec::new();
    for _ in 0..count {
        params.push(match b.i32()? {
            -1 => None,
            len => Some(b.take(usize::try_from(len).map_err(|_| violation("invalid message format"))?)?),
        });
    }
    Ok(Bind { portal, statement, param_formats, params, result_formats: b.formats()? })
}

/// A body's bytes not yet read, and the encoding of its strings.
struct Body(Bytes, Encoding);

impl Body {
    fn take(&mut self, len: usize) -> Result<Bytes, SqlError> {
        if self.0.len() < len {
            return Err(violation("insufficient data left in message"));
        }
        Ok(self.0.split_to(len))
    }
    fn i32(&mut self) -> Result<i32, SqlError> {
        Ok(self.take(4)?.get_i32())
    }
    fn u16(&mut self) -> Result<u16, SqlError> {
        Ok(self.take(2)?.get_u16())
    }
    fn formats(&mut self) -> Result<Vec<i16>, SqlError> {
        let count = self.u16()?;
        (0..count)
            .map(|_| match self.u16()? as i16 {
                code @ (0 | 1) => Ok(code),
                code => Err(SqlError::new(state::INVALID_PARAMETER_VALUE, format!("unsupported format code: {code}"))),
            })
            .collect()
    }
    fn string(&mut self) -> Result<String, SqlError> {
        let end = self.0.iter().position(|b| *b == 0).ok_or_else(|| violation("invalid string in message"))?;
        let bytes = self.0.split_to(end);
        self.0.advance(1);
        Ok(self.1.decode(&bytes)?.into_owned())
    }
    fn target(&mut self, what: &str) -> Result<Target, SqlError> {
        match self.take(1)?[0] {
            b'S' => Ok(Target::Statement),
            b'P' => Ok(Target::Portal),
            other => Err(violation(format!("invalid {what} message subtype {other}"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(kind: u8, body: &[u8]) -> BytesMut {
        let mut b = BytesMut::from(&[kind][..]);
        b.extend_from_slice(&(body.len() as i32 + 4).to_be_bytes());
        b.extend_from_slice(body);
        b
    }

    #[test]
    fn a_message_cut_anywhere_waits_for_the_rest() {
        let whole = frame(b'P', b"s\0select $1\0\0\x01\0\0\0\x17");
        for cut in 0..whole.len() {
            let mut part = BytesMut::from(&whole[..cut]);
            assert_eq!(message(&mut part, Encoding::Utf8), Ok(None), "cut at {cut}");
            assert_eq!(part.len(), cut);
        }
        let mut buf = whole.clone();
        buf.extend_from_slice(&frame(b'S', b""));
        assert_eq!(message(&mut buf, Encoding::Utf8), Ok(Some(Message::Parse { name: "s".into(), sql: "select $1".into(), types: vec![23] })));
        assert_eq!(message(&mut buf, Encoding::Utf8), Ok(Some(Message::Sync)));
        assert!(buf.is_empty());
    }

    #[test]
    fn a_short_body_costs_that_message_only() {
        // A parameter that claims more bytes than the body has must not read into the next message.
        let mut buf = frame(b'B', b"\0\0\0\0\0\x01\0\0\0\x63x");
        buf.extend_from_slice(&frame(b'S', b""));
        match message(&mut buf, Encoding::Utf8) {
            Err(BadFrame::Body { kind: b'B', error }) => assert_eq!(error.code, state::PROTOCOL_VIOLATION),
            other => panic!("{other:?}"),
        }
        assert_eq!(message(&mut buf, Encoding::Utf8), Ok(Some(Message::Sync)));
    }

    #[test]
    fn impossible_frames_are_fatal() {
        for bytes in [&b"Q\xff\xff\xff\xff"[..], b"Q\0\0\0\x03", b"S\x7f\xff\xff\xff", b"z\0\0\0\x04"] {
            assert!(matches!(message(&mut BytesMut::from(bytes), Encoding::Utf8), Err(BadFrame::Fatal(_))), "{bytes:?}");
        }
        assert!(opening(&mut BytesMut::from(&b"\0\0\0\x07"[..])).is_err());
        assert!(opening(&mut BytesMut::from(&b"GET / HTTP/1.1"[..])).is_err());
    }

    #[test]
    fn text_that_is_not_utf8_is_refused() {
        match message(&mut frame(b'Q', b"select '\xff'\0"), Encoding::Utf8) {
            Err(BadFrame::Body { error, .. }) => assert_eq!(error.code, state::CHARACTER_NOT_IN_REPERTOIRE),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn openings() {
        let mut b = BytesMut::from(&b"\0\0\0\x08\x04\xd2\x16\x2f"[..]);
        assert_eq!(opening(&mut b), Ok(Some(Opening::Ssl)));
        let mut b = BytesMut::from(&b"\0\0\0\x10\0\x03\0\0user\0a\0\0"[..]);
        assert_eq!(opening(&mut b), Ok(Some(Opening::Startup { minor: 0, params: vec![("user".into(), "a".into())] })));
    }
}
