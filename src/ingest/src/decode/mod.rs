//! Decoding: the bytes of records into typed columns.
//!
//! ```text
//!   Record ─► Decoder (cells, one a column) ─► Rows (Arrow builders) ─► Batch
//! ```
//! A record either becomes one row or a reason why not; never half a row. A column that no member or field brings is
//! NULL, which is an error if the column is NOT NULL.

/// Decoded values on their way into columns.
pub mod cell;
/// Fields and records of CSV.
pub mod csv;
/// Values through their type's own input.
pub mod input;
/// JSON objects.
pub mod json;
/// The JSON scanner.
pub mod scan;

use crate::record::{header_text, Record};
use crate::spec::{ColumnSource, Format, OutputSpec};
use cell::{Buffers, Cell, Place, Wire};
use json::Fields;
use repr::error::state;
use repr::{Batch, ColType, ColumnBuilder, SqlError, SqlType, Value};
use scan::Scanner;

/// Turns records into rows of one relation.
pub struct Decoder {
    types: Vec<ColType>,
    names: Vec<String>,
    value: Part,
    key: Option<Part>,
    /// Columns that come from where the record stood.
    meta: Vec<(usize, ColumnSource)>,
    cells: Vec<Cell>,
    scratch: String,
    csv: Vec<csv::Field>,
}

/// How the key or the value becomes columns.
struct Part {
    format: Format,
    fields: Fields,
    /// The column that holds the whole of it.
    whole: Option<usize>,
    /// For CSV, the field of each of `fields`.
    positions: Vec<usize>,
    /// Fields that each CSV record must have.
    width: usize,
    /// A JSON key whose format nobody wrote down: what is no JSON is the one key column's text, as most producers write keys.
    lenient: bool,
}

impl Decoder {
    /// A decoder for an output. `key_columns`: columns that the message key brings although they are columns of the
    /// value (upsert by primary key).
    /// Errors: columns that the format cannot bring.
    pub fn new(output: &OutputSpec, key_format: Option<&Format>, value_format: &Format, key_columns: &[usize]) -> Result<Decoder, SqlError> {
        let types = output.desc.types.clone();
        let named = |pick: &dyn Fn(&ColumnSource) -> Option<&String>| -> Vec<(String, usize, ColType)> {
            output.columns.iter().enumerate().filter_map(|(i, c)| pick(c).map(|n| (n.clone(), i, types[i].clone()))).collect()
        };
        let values = named(&|c| if let ColumnSource::Value(n) = c { Some(n) } else { None });
        let mut keys = named(&|c| if let ColumnSource::Key(n) = c { Some(n) } else { None });
        keys.extend(values.iter().filter(|v| key_columns.contains(&v.1)).cloned());
        let key = match keys.first() {
            None => None,
            Some((_, _, first)) => {
                let format = key_format.cloned().unwrap_or_else(|| default_key_format(value_format, &first.ty));
                let lenient = key_format.is_none() && format == Format::Json && keys.len() == 1 && !matches!(first.ty, SqlType::Json | SqlType::Jsonb);
                Some(Part { lenient, ..Part::new(format, keys)? })
            }
        };
        let meta = output
            .columns
            .iter()
            .enumerate()
            .filter(|(_, c)| !matches!(c, ColumnSource::Value(_) | ColumnSource::Key(_)))
            .map(|(i, c)| (i, c.clone()))
            .collect();
        Ok(Decoder {
            cells: vec![Cell::Missing; types.len()],
            names: output.desc.names.clone(),
            value: Part::new(value_format.clone(), values)?,
            key,
            meta,
            types,
            scratch: String::new(),
            csv: Vec::new(),
        })
    }

    pub fn types(&self) -> &[ColType] {
        &self.types
    }

    /// Finds the columns in a CSV header.
    /// Errors: a column that the header does not name.
    pub fn set_header(&mut self, header: &[String]) -> Result<(), String> {
        self.value.positions = self
            .value
            .fields
            .iter()
            .map(|f| {
                header.iter().position(|h| *h == f.name).ok_or_else(|| format!("the CSV header has no column \"{}\": it has {}", f.name, header.join(", ")))
            })
            .collect::<Result<_, _>>()?;
        self.value.width = header.len();
        Ok(())
    }

    /// How members of the value (and key) write dates, decimals and bytes.
    pub fn set_wire(&mut self, f: impl Fn(&str) -> Wire) {
        self.value.fields.set_wire(|field| f(&field.name));
        if let Some(k) = &mut self.key {
            k.fields.set_wire(|field| f(&field.name));
        }
    }

    /// Decodes a whole record into the current cells.
    pub fn record(&mut self, record: &Record<'_>) -> Result<(), String> {
        self.begin();
        if let Some(value) = record.value {
            self.value(value, None)?;
        }
        if let Some(key) = record.key {
            self.key(key, None)?;
        }
        self.meta(record);
        Ok(())
    }

    /// Forgets the last record.
    pub fn begin(&mut self) {
        self.cells.iter_mut().for_each(|c| *c = Cell::Missing);
        self.scratch.clear();
    }

    /// Decodes the value, or for JSON the part of it at `range`.
    pub fn value(&mut self, bytes: &[u8], range: Option<(u32, u32)>) -> Result<(), String> {
        self.value.decode(bytes, range, Place::Value, &mut self.cells, &mut self.scratch, &mut self.csv)
    }

    /// Decodes the key, or for JSON the part of it at `range`.
    pub fn key(&mut self, bytes: &[u8], range: Option<(u32, u32)>) -> Result<(), String> {
        match &self.key {
            Some(k) => {
                let decoded = k.decode(bytes, range, Place::Key, &mut self.cells, &mut self.scratch, &mut self.csv);
                let decoded = match (decoded, k.fields.iter().next()) {
                    (Err(e), Some(f)) if k.lenient && e.starts_with("invalid JSON") => {
                        let text = utf8(bytes)?;
                        cell::from_text(text, (Place::Key, 0, bytes.len() as u32), &f.ty).map(|c| self.cells[f.column] = c)
                    }
                    (decoded, _) => decoded,
                };
                decoded.map_err(|e| format!("key: {e}"))
            }
            None => Ok(()),
        }
    }

    /// Fills the columns that say where the record stood.
    pub fn meta(&mut self, record: &Record<'_>) {
        for (i, source) in &self.meta {
            let ty = &self.types[*i].ty;
            let number = |v: i64| cell::integer(v, ty).and_then(Result::ok).unwrap_or_else(|| text_value(v.to_string(), ty));
            self.cells[*i] = match source {
                ColumnSource::Partition => number(i64::from(record.partition)),
                ColumnSource::Offset => number(record.offset),
                ColumnSource::Timestamp => match record.timestamp_ms {
                    Some(ms) => {
                        cell::epoch(ms, ty, Wire::Millis).and_then(Result::ok).or_else(|| cell::integer(ms, ty).and_then(Result::ok)).unwrap_or(Cell::Null)
                    }
                    None => Cell::Null,
                },
                ColumnSource::Headers => headers(record, ty),
                ColumnSource::Header(name) => match record.headers.iter().rev().find(|h| h.0 == name).and_then(|h| h.1) {
                    Some(v) if *ty == SqlType::Bytea => Cell::Other(Box::new(Value::Bytea(v.to_vec()))),
                    Some(v) => text_value(header_text(v), ty),
                    None => Cell::Null,
                },
                ColumnSource::Path if ty.is_string() => text_value(record.path.to_owned(), ty),
                ColumnSource::Path => number(record.offset),
                ColumnSource::Value(_) | ColumnSource::Key(_) => Cell::Missing,
            };
        }
    }

    /// Appends the current cells as a row.
    /// Errors: NULL in a column that is NOT NULL; nothing is appended then.
    pub fn push(&self, record: &Record<'_>, rows: &mut Rows) -> Result<(), String> {
        for (i, c) in self.cells.iter().enumerate() {
            if !self.types[i].nullable && matches!(c, Cell::Missing | Cell::Null) {
                return Err(format!("null value in column \"{}\" violates not-null constraint", self.names[i]));
            }
        }
        self.append(record, rows);
        Ok(())
    }

    /// Appends the current cells of `columns`, and NULL in all others.
    /// Errors: NULL in one of `columns`; nothing is appended then.
    pub fn push_key(&mut self, record: &Record<'_>, columns: &[usize], rows: &mut Rows) -> Result<(), String> {
        self.check_key(columns)?;
        for i in (0..self.cells.len()).filter(|i| !columns.contains(i)) {
            self.cells[i] = Cell::Null;
        }
        self.append(record, rows);
        Ok(())
    }

    /// Errors: NULL in one of `columns`.
    pub fn check_key(&self, columns: &[usize]) -> Result<(), String> {
        match columns.iter().find(|i| matches!(self.cells[**i], Cell::Missing | Cell::Null)) {
            Some(i) => Err(format!("the key column \"{}\" is null", self.names[*i])),
            None => Ok(()),
        }
    }

    /// The first column that the current record left as it was.
    pub fn unchanged(&self) -> Option<&str> {
        self.cells.iter().position(|c| matches!(c, Cell::Unchanged)).map(|i| self.names[i].as_str())
    }

    /// Columns that the current record left as they were get what the row held before.
    pub fn fill_unchanged(&mut self, old: Vec<Value>) {
        for (cell, old) in self.cells.iter_mut().zip(old) {
            if matches!(cell, Cell::Unchanged) {
                *cell = if old.is_null() { Cell::Null } else { Cell::Other(Box::new(old)) };
            }
        }
    }

    /// Appends the current cells, whatever they are.
    pub fn append(&self, record: &Record<'_>, rows: &mut Rows) {
        let buffers = Buffers { value: record.value.unwrap_or_default(), key: record.key.unwrap_or_default(), scratch: &self.scratch };
        for (b, c) in rows.builders.iter_mut().zip(&self.cells) {
            cell::push(b, c, buffers);
        }
        rows.len += 1;
        rows.bytes += record.bytes();
    }
}

/// A value of any type from text, NULL if its type refuses it: only for metadata, which has no NOT NULL columns of odd types.
fn text_value(text: String, ty: &SqlType) -> Cell {
    input::value(&text, &ty.clone().nullable()).map_or(Cell::Null, |v| Cell::Other(Box::new(v)))
}

fn headers(record: &Record<'_>, ty: &SqlType) -> Cell {
    match ty {
        SqlType::Map(elem) => {
            let mut entries: Vec<(String, Value)> = Vec::new();
            for (k, v) in record.headers {
                let v = match (v, &**elem) {
                    (None, _) => Value::Null,
                    (Some(v), SqlType::Bytea) => Value::Bytea(v.to_vec()),
                    (Some(v), _) => Value::Text(header_text(v)),
                };
                match entries.binary_search_by(|e| e.0.as_str().cmp(k)) {
                    Ok(i) => entries[i].1 = v,
                    Err(i) => entries.insert(i, ((*k).to_owned(), v)),
                }
            }
            Cell::Other(Box::new(Value::Map(entries)))
        }
        ty => text_value(record.headers_json(), ty),
    }
}

fn default_key_format(value: &Format, ty: &SqlType) -> Format {
    match value {
        Format::Json => Format::Json,
        _ if *ty == SqlType::Bytea => Format::Bytes,
        _ => Format::Text,
    }
}

impl Part {
    fn new(format: Format, list: Vec<(String, usize, ColType)>) -> Result<Part, SqlError> {
        let whole = match (&format, &list[..]) {
            (Format::Json, [(name, i, ty)]) if name.is_empty() || (name == "data" && matches!(ty.ty, SqlType::Jsonb | SqlType::Json)) => Some(*i),
            (Format::Text | Format::Bytes, [(_, i, _)]) => Some(*i),
            (Format::Text | Format::Bytes, [_, _, ..]) => {
                return Err(SqlError::new(state::INVALID_TABLE_DEFINITION, "FORMAT TEXT and FORMAT BYTES bring one column"));
            }
            _ => None,
        };
        let width = match format {
            Format::Csv { columns, .. } if columns > 0 => columns,
            _ => list.len(),
        };
        if let Format::Csv { header: false, .. } = format {
            if width < list.len() {
                let m = format!("CSV WITH {width} COLUMNS cannot bring {} columns", list.len());
                return Err(SqlError::new(state::INVALID_TABLE_DEFINITION, m));
            }
        }
        Ok(Part { whole, positions: (0..list.len()).collect(), fields: Fields::new(list), width, format, lenient: false })
    }

    fn decode(
        &self,
        bytes: &[u8],
        range: Option<(u32, u32)>,
        place: Place,
        cells: &mut [Cell],
        scratch: &mut String,
        fields: &mut Vec<csv::Field>,
    ) -> Result<(), String> {
        let single = self.whole.map(|i| (i, self.fields.iter().find(|f| f.column == i)));
        if let (Format::Bytes, Some((i, Some(field)))) = (&self.format, single) {
            let all = (place, 0, bytes.len() as u32);
            cells[i] = match field.ty.ty {
                SqlType::Bytea => Cell::Bytes(all.0, all.1, all.2),
                _ => cell::from_text(utf8(bytes)?, all, &field.ty)?,
            };
            return Ok(());
        }
        let text = utf8(bytes)?;
        match (&self.format, single) {
            (_, None) if self.fields.is_empty() => {}
            (Format::Text, Some((i, Some(field)))) => cells[i] = cell::from_text(text, (place, 0, bytes.len() as u32), &field.ty)?,
            (Format::Json, Some((i, Some(field)))) if range.is_none() => cells[i] = json::whole(text, place, &field.ty, scratch)?,
            (Format::Json, single) => {
                let (start, end) = range.map_or((0, text.len()), |r| (r.0 as usize, r.1 as usize));
                let mut s = Scanner::new(&text[..end], place, start);
                match single {
                    Some((i, Some(field))) => cells[i] = json::value(&mut s, &field.ty, field.wire, scratch)?,
                    // A key that is one scalar is the one key column.
                    _ if place == Place::Key && self.fields.len() == 1 && s.peek() != Some(b'{') => {
                        if let Some(f) = self.fields.iter().next() {
                            cells[f.column] = json::value(&mut s, &f.ty, f.wire, scratch)?;
                        }
                    }
                    _ => json::object(&mut s, &self.fields, cells, scratch)?,
                }
                s.end()?;
            }
            (Format::Csv { delimiter, .. }, _) => {
                csv::split(text, place, *delimiter, scratch, fields)?;
                if fields.len() != self.width {
                    return Err(format!("the CSV record has {} fields, {} are expected", fields.len(), self.width));
                }
                for (f, at) in self.fields.iter().zip(&self.positions) {
                    cells[f.column] = match fields[*at] {
                        None => Cell::Null,
                        Some(span) => {
                            let field =
                                if span.0 == Place::Scratch { &scratch[span.1 as usize..span.2 as usize] } else { &text[span.1 as usize..span.2 as usize] };
                            cell::from_text(field, span, &f.ty).map_err(|e| format!("column \"{}\": {e}", f.name))?
                        }
                    };
                }
            }
            _ => {}
        }
        Ok(())
    }
}

fn utf8(bytes: &[u8]) -> Result<&str, String> {
    std::str::from_utf8(bytes).map_err(|e| {
        let bad: Vec<String> = bytes[e.valid_up_to()..].iter().take(e.error_len().unwrap_or(4).min(4)).map(|b| format!("0x{b:02x}")).collect();
        format!("invalid byte sequence for encoding \"UTF8\": {}", bad.join(" "))
    })
}

/// Rows in the making.
pub struct Rows {
    types: Vec<ColType>,
    builders: Vec<ColumnBuilder>,
    len: usize,
    bytes: usize,
}

impl Rows {
    pub fn new(types: &[ColType]) -> Rows {
        Rows { types: types.to_vec(), builders: types.iter().map(|t| ColumnBuilder::new(&t.ty, 0)).collect(), len: 0, bytes: 0 }
    }
    pub fn len(&self) -> usize {
        self.len
    }
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
    /// Bytes of the records that were decoded, about what the rows hold.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
    pub fn push_row(&mut self, row: &[Value]) {
        for (b, v) in self.builders.iter_mut().zip(row) {
            b.push(v);
        }
        self.len += 1;
        self.bytes = self.bytes.max(self.builders.iter().map(ColumnBuilder::bytes).sum());
    }
    /// The rows so far; begins again.
    pub fn take(&mut self) -> Batch {
        let fresh = self.types.iter().map(|t| ColumnBuilder::new(&t.ty, 0)).collect();
        let cols = std::mem::replace(&mut self.builders, fresh).into_iter().map(ColumnBuilder::finish).collect();
        self.bytes = 0;
        Batch::new(std::mem::take(&mut self.len), cols)
    }
}
