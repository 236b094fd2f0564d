//! Values in the two formats of the wire, with the session's styles.

use bytes::{BufMut, BytesMut};
use repr::encoding::Encoding;
use repr::style::TextStyle;
use repr::{ColType, SqlError, SqlType, Value};

/// Appends the value's text form. The value is not NULL; `scratch` is reused between values. Errors: 22P05.
pub fn write_text(value: &Value, ty: &ColType, style: &TextStyle, to: Encoding, scratch: &mut String, out: &mut BytesMut) -> Result<(), SqlError> {
    scratch.clear();
    repr::text::write_text(value, &ty.ty, style, scratch);
    out.put_slice(&to.encode(scratch)?);
    Ok(())
}

/// Appends the value's binary form. The value is not NULL; `scratch` is reused between values. Errors: 22P05; 0A000 for text inside other values
/// that is not ASCII, under another encoding than UTF-8.
pub fn write_binary(value: &Value, ty: &ColType, to: Encoding, scratch: &mut Vec<u8>, out: &mut BytesMut) -> Result<(), SqlError> {
    scratch.clear();
    repr::binary::write_binary(value, &ty.ty, scratch);
    if to.is_utf8() || scratch.is_ascii() || !repr::binary::has_text(&ty.ty) {
        out.put_slice(scratch);
        return Ok(());
    }
    match std::str::from_utf8(scratch) {
        Ok(text) if !repr::binary::has_parts(&ty.ty) => out.put_slice(&to.encode(text)?),
        _ => {
            let what = format!("the binary form of type {} in client encoding {}", ty.ty.sql_name(), to.name());
            return Err(SqlError::unsupported(what, "ask for text, or use UTF8"));
        }
    }
    Ok(())
}

/// A parameter in text form.
pub fn read_text(bytes: &[u8], ty: &SqlType, style: &TextStyle, from: Encoding) -> Result<Value, SqlError> {
    repr::text::from_text(&from.decode(bytes)?, ty, -1, style)
}

/// Parameter number `number` (from 1) in binary form.
pub fn read_binary(bytes: &[u8], ty: &SqlType, number: usize, from: Encoding) -> Result<Value, SqlError> {
    let plain = !from.is_utf8() && repr::binary::has_text(ty) && !repr::binary::has_parts(ty);
    let text = if plain { Some(from.decode(bytes)?) } else { None };
    let bytes = text.as_ref().map_or(bytes, |t| t.as_bytes());
    repr::binary::from_binary(bytes, ty).map_err(|mut e| {
        if e.message == "incorrect binary data format" {
            e.message.push_str(&format!(" in bind parameter {number}"));
        }
        e
    })
}
