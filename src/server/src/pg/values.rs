//! Values in the two formats of the wire, with the session's styles.

use bytes::{BufMut, BytesMut};
use expr::EvalCtx;
use repr::error::state;
use repr::{ColType, SqlError, SqlType, Value};

/// Appends the value's text form. The value is not NULL.
pub fn write_text(value: &Value, ty: &ColType, ctx: &EvalCtx, out: &mut BytesMut) -> Result<(), SqlError> {
    let _ = (ty, ctx);
    out.put_slice(format!("{value:?}").as_bytes());
    Ok(())
}

/// Appends the value's binary form. The value is not NULL.
pub fn write_binary(value: &Value, ty: &ColType, out: &mut BytesMut) -> Result<(), SqlError> {
    let _ = (value, out);
    Err(SqlError::unsupported(format!("binary output of {}", ty.ty), "ask for text"))
}

/// A parameter in text form.
pub fn read_text(bytes: &[u8], ty: &SqlType, ctx: &EvalCtx) -> Result<Value, SqlError> {
    let text = std::str::from_utf8(bytes).map_err(|e| bad_utf8(bytes, &e))?;
    let _ = (ty, ctx);
    Ok(Value::text(text))
}

/// Parameter number `number` (from 1) in binary form.
pub fn read_binary(bytes: &[u8], ty: &SqlType, number: usize) -> Result<Value, SqlError> {
    let _ = (bytes, number);
    Err(SqlError::unsupported(format!("binary input of {ty}"), "send text"))
}

/// 22021, with the first bytes that are wrong.
pub fn bad_utf8(bytes: &[u8], e: &std::str::Utf8Error) -> SqlError {
    let bad = &bytes[e.valid_up_to()..];
    let bad: Vec<String> = bad.iter().take(e.error_len().unwrap_or(bad.len())).map(|b| format!("0x{b:02x}")).collect();
    SqlError::new(state::CHARACTER_NOT_IN_REPERTOIRE, format!("invalid byte sequence for encoding \"UTF8\": {}", bad.join(" ")))
}
