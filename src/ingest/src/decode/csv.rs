//! CSV as Postgres's COPY reads it: fields, quotes, and where a record ends.
//!
//! ```text
//!   7,"a ""b""",,""⏎     7 │ a "b" (scratch) │ NULL (empty, unquoted) │ empty text (quoted)
//! ```
//! A quoted newline belongs to its field, so a record may be several lines. An unquoted empty field is NULL.

use super::cell::{Buffers, Place};
use super::scan::Span;

/// One field: its text, or NULL.
pub type Field = Option<Span>;

/// Splits one record (without its line end) into `fields`.
/// Errors: a quote that is never closed; more than one record.
pub fn split(record: &str, place: Place, delimiter: u8, scratch: &mut String, fields: &mut Vec<Field>) -> Result<(), String> {
    fields.clear();
    let b = record.as_bytes();
    let mut pos = 0;
    loop {
        pos = field(record, pos, place, delimiter, scratch, fields)?;
        match b.get(pos) {
            None => return Ok(()),
            Some(c) if *c == delimiter => pos += 1,
            Some(_) if b[pos..].iter().all(|c| matches!(c, b'\r' | b'\n')) => return Ok(()),
            Some(_) => return Err("the record holds more than one line of CSV".into()),
        }
    }
}

fn field(record: &str, start: usize, place: Place, delimiter: u8, scratch: &mut String, fields: &mut Vec<Field>) -> Result<usize, String> {
    let b = record.as_bytes();
    let stop = |c: u8| c == delimiter || c == b'\n' || c == b'\r';
    let mut pos = start;
    while pos < b.len() && b[pos] != b'"' && !stop(b[pos]) {
        pos += 1;
    }
    if b.get(pos) != Some(&b'"') {
        fields.push((pos > start).then_some((place, start as u32, pos as u32)));
        return Ok(pos);
    }
    // A field that is one quoted run without doubled quotes stays in place.
    if pos == start {
        let mut close = pos + 1;
        while close < b.len() && b[close] != b'"' {
            close += 1;
        }
        if close < b.len() && b.get(close + 1).is_none_or(|c| stop(*c)) {
            fields.push(Some((place, start as u32 + 1, close as u32)));
            return Ok(close + 1);
        }
    }
    let at = scratch.len();
    let mut run = start;
    let mut quoted = false;
    pos = start;
    loop {
        match b.get(pos) {
            None if quoted => return Err("unterminated CSV quoted field".into()),
            Some(b'"') => {
                scratch.push_str(&record[run..pos]);
                if quoted && b.get(pos + 1) == Some(&b'"') {
                    run = pos + 1;
                    pos += 2;
                } else {
                    quoted = !quoted;
                    pos += 1;
                    run = pos;
                }
            }
            Some(c) if quoted || !stop(*c) => pos += 1,
            _ => {
                scratch.push_str(&record[run..pos]);
                fields.push(Some((Place::Scratch, at as u32, scratch.len() as u32)));
                return Ok(pos);
            }
        }
    }
}

/// The end of the first record in `data` from `pos` (past its newline), if it is complete.
pub fn record_end(data: &[u8], pos: usize) -> Option<usize> {
    let mut quoted = false;
    for (i, c) in data[pos..].iter().enumerate() {
        match c {
            b'"' => quoted = !quoted,
            b'\n' if !quoted => return Some(pos + i + 1),
            _ => {}
        }
    }
    None
}

/// The fields' texts, for a header.
pub fn texts(record: &str, delimiter: u8) -> Result<Vec<String>, String> {
    let (mut scratch, mut fields) = (String::new(), Vec::new());
    split(record, Place::Value, delimiter, &mut scratch, &mut fields)?;
    let buffers = Buffers { value: record.as_bytes(), key: &[], scratch: &scratch };
    Ok(fields.iter().map(|f| f.map_or_else(String::new, |s| buffers.text(s).to_owned())).collect())
}
