//! Debezium's change events in JSON, with or without the schema wrapper: an upsert of `after` by the message key.
//!
//! ```text
//!   {"before": …, "after": {"id": 1, …}, "op": "c"}                      c, r, u: `after` is the key's row
//!   {"schema": …, "payload": {"before": …, "after": null, "op": "d"}}    d: the key has no row
//!   null                                                                 tombstone: ignored, its d came before
//! ```
//! `before` is never trusted, so duplicates and a connector that starts over are harmless. With the schema wrapper the
//! schema's semantic types say how dates, decimals and bytes are written; without it a number in a timestamp column is
//! milliseconds, microseconds or nanoseconds by its size.
//! Not here: truncation (`op` t), which names no key: it is listed as an error.

use super::upsert::Upsert;
use crate::decode::cell::{Place, Wire};
use crate::decode::scan::{members, Scanner, Span};
use crate::decode::Decoder;
use crate::record::Record;
use std::collections::HashMap;

/// The last schema that was seen, so that an equal one is not read again.
#[derive(Default)]
pub struct Schema {
    /// The raw schema; `None` before the first message, empty without schema.
    text: Option<String>,
}

impl Schema {
    /// Makes the decoder read values as `schema` says they are written.
    fn apply(&mut self, schema: Option<&str>, decoder: &mut Decoder) {
        let text = schema.unwrap_or("");
        if self.text.as_deref() == Some(text) {
            return;
        }
        self.text = Some(text.to_owned());
        if text.is_empty() || text == "null" {
            decoder.set_wire(|_| Wire::Guess);
            return;
        }
        let wires = serde_json::from_str::<serde_json::Value>(text).map(|s| wires(&s)).unwrap_or_default();
        decoder.set_wire(|name| wires.get(name).copied().unwrap_or(Wire::Guess));
    }
}

/// How each field of `after` is written.
fn wires(schema: &serde_json::Value) -> HashMap<String, Wire> {
    let fields = |s: &serde_json::Value| s.get("fields").and_then(|f| f.as_array().cloned()).unwrap_or_default();
    let after = fields(schema).into_iter().find(|f| f.get("field").and_then(|n| n.as_str()) == Some("after"));
    let mut out = HashMap::new();
    for f in after.iter().flat_map(fields) {
        let Some(name) = f.get("field").and_then(|n| n.as_str()) else { continue };
        // An array is written as its elements are.
        let f = if f.get("type").and_then(|t| t.as_str()) == Some("array") { f.get("items").cloned().unwrap_or_default() } else { f.clone() };
        let semantic = f.get("name").and_then(|n| n.as_str()).unwrap_or("");
        let wire = match semantic {
            "io.debezium.time.Date" | "org.apache.kafka.connect.data.Date" => Wire::Days,
            "io.debezium.time.Timestamp" | "io.debezium.time.Time" | "org.apache.kafka.connect.data.Timestamp" | "org.apache.kafka.connect.data.Time" => {
                Wire::Millis
            }
            "io.debezium.time.MicroTimestamp" | "io.debezium.time.MicroTime" | "io.debezium.time.MicroDuration" => Wire::Micros,
            "io.debezium.time.NanoTimestamp" | "io.debezium.time.NanoTime" | "io.debezium.time.NanoDuration" => Wire::Nanos,
            "org.apache.kafka.connect.data.Decimal" => {
                let scale = f.get("parameters").and_then(|p| p.get("scale")).and_then(|s| s.as_str().map(str::to_owned).or_else(|| Some(s.to_string())));
                Wire::Decimal(scale.and_then(|s| s.parse().ok()).unwrap_or(0))
            }
            _ if f.get("type").and_then(|t| t.as_str()) == Some("bytes") => Wire::Base64,
            _ => Wire::Guess,
        };
        out.insert(name.to_owned(), wire);
    }
    out
}

/// Takes in a change event. Errors: why it cannot be; nothing is taken in then.
pub fn push(upsert: &mut Upsert, schema: &mut Schema, decoder: &mut Decoder, record: &Record<'_>) -> Result<(), String> {
    let Some(value) = record.value else { return Ok(()) };
    let text = std::str::from_utf8(value).map_err(|_| "the message is not UTF-8")?;
    let mut scratch = String::new();
    let mut s = Scanner::new(text, Place::Value, 0);
    let Some([wrapper, payload, mut after, mut op]) = members(&mut s, &mut scratch, ["schema", "payload", "after", "op"])? else { return Ok(()) };
    s.end()?;
    let cut = |span: Span| &text[span.1 as usize..span.2 as usize];
    if let (Some(p), None) = (payload, op) {
        let mut s = Scanner::new(&text[..p.2 as usize], Place::Value, p.1 as usize);
        match members(&mut s, &mut scratch, ["after", "op"])? {
            Some(inner) => [after, op] = inner,
            // A tombstone in its wrapper.
            None => return Ok(()),
        }
    }
    schema.apply(wrapper.map(cut), decoder);
    let op = op.map(cut).unwrap_or("null");
    if op == "\"m\"" {
        return Ok(());
    }
    if !matches!(op, "\"c\"" | "\"r\"" | "\"u\"" | "\"d\"") {
        return Err(match op {
            "\"t\"" => "the table was truncated upstream: a truncation names no key and cannot be followed".into(),
            "null" => "not a Debezium change event: it has no \"op\"".into(),
            op => format!("unknown operation {op} of a Debezium change event"),
        });
    }
    let key = record.key.ok_or("the message has no key")?;
    decoder.begin();
    if op != "\"d\"" {
        let after = after.filter(|a| cut(*a) != "null").ok_or("the change event has no \"after\"")?;
        decoder.value(value, Some((after.1, after.2)))?;
    }
    decoder.key(key, key_payload(key)?)?;
    if op == "\"d\"" {
        upsert.delete(decoder, record)
    } else {
        upsert.put(decoder, record)
    }
}

/// Where the payload lies in a key with schema wrapper.
pub(super) fn key_payload(key: &[u8]) -> Result<Option<(u32, u32)>, String> {
    let Ok(text) = std::str::from_utf8(key) else { return Ok(None) };
    let mut s = Scanner::new(text, Place::Key, 0);
    if s.peek() != Some(b'{') {
        return Ok(None);
    }
    let found = members(&mut s, &mut String::new(), ["schema", "payload"]).map_err(|e| format!("key: {e}"))?;
    Ok(match found {
        Some([Some(_), Some(payload)]) => Some((payload.1, payload.2)),
        _ => None,
    })
}
