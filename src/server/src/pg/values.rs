//! Values in the two formats of the wire, with the session's styles.

use bytes::{BufMut, BytesMut};
use expr::{CatalogView, EvalCtx};
use repr::error::state;
use repr::style::{RegNames, TextStyle};
use repr::types::RegKind;
use repr::{ColType, SqlError, SqlType, Value};
use std::sync::Arc;

/// The session's styles, with the catalog's names for the `reg*` types.
pub fn style(ctx: &EvalCtx) -> TextStyle {
    let mut style = ctx.text_style();
    style.reg_names.get_or_insert_with(|| Arc::new(Names(ctx.catalog.clone())));
    style
}

/// Appends the value's text form. The value is not NULL; `scratch` is reused between values.
pub fn write_text(value: &Value, ty: &ColType, style: &TextStyle, scratch: &mut String, out: &mut BytesMut) {
    scratch.clear();
    repr::text::write_text(value, &ty.ty, style, scratch);
    out.put_slice(scratch.as_bytes());
}

/// Appends the value's binary form. The value is not NULL; `scratch` is reused between values.
pub fn write_binary(value: &Value, ty: &ColType, scratch: &mut Vec<u8>, out: &mut BytesMut) {
    scratch.clear();
    repr::binary::write_binary(value, &ty.ty, scratch);
    out.put_slice(scratch);
}

/// A parameter in text form.
pub fn read_text(bytes: &[u8], ty: &SqlType, style: &TextStyle) -> Result<Value, SqlError> {
    let text = std::str::from_utf8(bytes).map_err(|e| bad_utf8(bytes, &e))?;
    if let Some(at) = bytes.iter().position(|b| *b == 0) {
        return Err(bad_bytes(&bytes[at..=at]));
    }
    repr::text::from_text(text, ty, -1, style)
}

/// Parameter number `number` (from 1) in binary form.
pub fn read_binary(bytes: &[u8], ty: &SqlType, number: usize) -> Result<Value, SqlError> {
    repr::binary::from_binary(bytes, ty).map_err(|mut e| {
        if e.message == "incorrect binary data format" {
            e.message.push_str(&format!(" in bind parameter {number}"));
        }
        e
    })
}

/// 22021, with the first bytes that are wrong.
pub fn bad_utf8(bytes: &[u8], e: &std::str::Utf8Error) -> SqlError {
    let bad = &bytes[e.valid_up_to()..];
    bad_bytes(&bad[..e.error_len().unwrap_or(bad.len())])
}

fn bad_bytes(bad: &[u8]) -> SqlError {
    let bad: Vec<String> = bad.iter().map(|b| format!("0x{b:02x}")).collect();
    SqlError::new(state::CHARACTER_NOT_IN_REPERTOIRE, format!("invalid byte sequence for encoding \"UTF8\": {}", bad.join(" ")))
}

/// What the `reg*` types print as, from the catalog.
struct Names(Arc<dyn CatalogView>);

impl RegNames for Names {
    fn reg_name(&self, kind: RegKind, oid: u32) -> Option<String> {
        match kind {
            RegKind::Class => self.0.relation_name(oid),
            RegKind::Type => self.0.type_by_oid(oid).map(|t| t.sql_name()),
            RegKind::Namespace => self.0.namespace_name(oid),
            RegKind::Role => self.0.role_name(oid),
            _ => None,
        }
    }

    fn reg_oid(&self, kind: RegKind, name: &str) -> Result<u32, SqlError> {
        let parts: Vec<String> = name.split('.').map(|p| p.trim_matches('"').to_owned()).collect();
        let found = match kind {
            RegKind::Class => self.0.relation_oid(&parts),
            RegKind::Type => parts.last().and_then(|p| SqlType::from_pg_name(p)).or_else(|| self.0.type_by_name(&parts)).map(|t| t.oid()),
            RegKind::Namespace => self.0.namespace_oid(name),
            RegKind::Role => self.0.role_oid(name),
            _ => None,
        };
        found.ok_or_else(|| match kind {
            RegKind::Class => SqlError::new(state::UNDEFINED_TABLE, format!("relation \"{name}\" does not exist")),
            _ => SqlError::new(state::UNDEFINED_OBJECT, format!("\"{name}\" does not exist")),
        })
    }
}
