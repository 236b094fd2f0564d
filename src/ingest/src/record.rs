//! One record as a connector hands it over: bytes and where they stood. Borrowed, nothing is copied.

/// A message of a broker, or a line of a file.
#[derive(Clone, Copy, Debug, Default)]
pub struct Record<'a> {
    pub key: Option<&'a [u8]>,
    /// `None` is a null value: a tombstone.
    pub value: Option<&'a [u8]>,
    pub headers: &'a [(&'a str, Option<&'a [u8]>)],
    pub partition: i32,
    pub offset: i64,
    /// Milliseconds since 1970.
    pub timestamp_ms: Option<i64>,
    /// The file's path; empty for brokers.
    pub path: &'a str,
}

impl Record<'_> {
    /// Bytes that the record brings.
    pub fn bytes(&self) -> usize {
        self.key.map_or(0, <[u8]>::len) + self.value.map_or(0, <[u8]>::len)
    }

    /// `partition:offset`, or `path:offset` for files: how `<source>_errors` names a record.
    pub fn position(&self) -> String {
        if self.path.is_empty() {
            format!("{}:{}", self.partition, self.offset)
        } else {
            format!("{}:{}", self.path, self.offset)
        }
    }

    /// Headers as a JSON array of `{"key": ..., "value": ...}` in their order; values that are not UTF-8 are hex with `\x` in front.
    pub fn headers_json(&self) -> String {
        let list: Vec<serde_json::Value> = self
            .headers
            .iter()
            .map(|(k, v)| {
                let value = v.map_or(serde_json::Value::Null, |v| serde_json::Value::String(header_text(v)));
                serde_json::json!({ "key": k.replace('\0', ""), "value": value })
            })
            .collect();
        serde_json::Value::Array(list).to_string()
    }
}

/// A header's value as text.
pub fn header_text(value: &[u8]) -> String {
    match std::str::from_utf8(value) {
        Ok(s) if !s.contains('\0') => s.to_owned(),
        _ => {
            let mut out = String::with_capacity(2 + 2 * value.len());
            out.push_str("\\x");
            for b in value {
                out.push_str(&format!("{b:02x}"));
            }
            out
        }
    }
}
