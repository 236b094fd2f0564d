//! json_agg, jsonb_agg, json_object_agg, jsonb_object_agg.

use super::basic::{each, fits, text_bytes};
use super::BasicCall;
use crate::func::to_json::{object_key, to_jsonb, write_json};
use repr::jsonb::{escape_into, Jsonb};
use repr::{SqlError, SqlType, Value};

fn bounded(out: &str) -> Result<(), SqlError> {
    if out.len() > super::basic::TEXT_MAX {
        return Err(super::basic::too_long(out.len()));
    }
    Ok(())
}

pub fn json_agg(c: &BasicCall<'_>) -> Result<Value, SqlError> {
    if c.rows.is_empty() {
        return Ok(Value::Null);
    }
    let ty = &c.types[0].ty;
    // Elements with parts stand on lines of their own.
    let sep = if matches!(ty, SqlType::Array(_) | SqlType::Record(_)) { ", \n " } else { ", " };
    fits(c, |_| 1, |t| text_bytes(&t[..1]))?;
    let mut out = String::from("[");
    each(c, |t| {
        if out.len() > 1 {
            out.push_str(sep);
        }
        write_json(&t[0], ty, c.ctx, &mut out);
        bounded(&out)
    })?;
    out.push(']');
    Ok(Value::Text(out))
}

pub fn jsonb_agg(c: &BasicCall<'_>) -> Result<Value, SqlError> {
    if c.rows.is_empty() {
        return Ok(Value::Null);
    }
    fits(c, |_| 1, |t| text_bytes(&t[..1]))?;
    let mut items = Vec::new();
    each(c, |t| {
        items.push(to_jsonb(&t[0], &c.types[0].ty, c.ctx)?);
        Ok(())
    })?;
    Ok(Value::Jsonb(Box::new(Jsonb::Array(items))))
}

pub fn json_object_agg(c: &BasicCall<'_>) -> Result<Value, SqlError> {
    if c.rows.is_empty() {
        return Ok(Value::Null);
    }
    fits(c, |_| 1, text_bytes)?;
    let mut out = String::from("{ ");
    each(c, |t| {
        if out.len() > 2 {
            out.push_str(", ");
        }
        escape_into(&object_key(&t[0], &c.types[0].ty, c.ctx)?, &mut out);
        out.push_str(" : ");
        write_json(&t[1], &c.types[1].ty, c.ctx, &mut out);
        bounded(&out)
    })?;
    out.push_str(" }");
    Ok(Value::Text(out))
}

pub fn jsonb_object_agg(c: &BasicCall<'_>) -> Result<Value, SqlError> {
    if c.rows.is_empty() {
        return Ok(Value::Null);
    }
    fits(c, |_| 1, text_bytes)?;
    let mut entries = Vec::new();
    each(c, |t| {
        entries.push((object_key(&t[0], &c.types[0].ty, c.ctx)?, to_jsonb(&t[1], &c.types[1].ty, c.ctx)?));
        Ok(())
    })?;
    Ok(Value::Jsonb(Box::new(Jsonb::object(entries))))
}
