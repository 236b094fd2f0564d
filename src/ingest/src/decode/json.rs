//! JSON objects into cells, column by column as the members come.
//!
//! ```text
//!   {"id": 7, "note": "a\nb", "extra": [1]}      columns id int8, note text, at timestamptz
//!    └─ Int(7)  └─ Text(scratch)  └─ skipped      at: Missing
//! ```
//! What a JSON value may be in a column is what `jsonb_populate_record` makes of it: a string goes through the type's
//! text input, a number or boolean in a text column is its text, a member that is absent or null is NULL. Beyond that,
//! a number in a timestamp column is milliseconds since 1970 (`Wire`), and what
//! Debezium wrote is read as Kafka Connect's JSON converter writes it: bytes and decimals in base64, documents as strings.

use super::cell::{self, Cell, Place, Wire};
use super::input;
use super::scan::{Scanner, Span};
use repr::jsonb::Jsonb;
use repr::{ColType, SqlType, Value};
use std::collections::HashMap;

/// The members that columns are made from.
#[derive(Debug, Default)]
pub struct Fields {
    list: Vec<Field>,
    /// For wide objects.
    by_name: HashMap<String, usize>,
}

#[derive(Debug)]
pub struct Field {
    pub name: String,
    /// Position of the column.
    pub column: usize,
    pub ty: ColType,
    pub wire: Wire,
}

/// Above this, a member that does not come in the expected order is looked up by hash.
const LINEAR_MAX: usize = 8;

impl Fields {
    pub fn new(fields: impl IntoIterator<Item = (String, usize, ColType)>) -> Fields {
        let list: Vec<Field> = fields.into_iter().map(|(name, column, ty)| Field { name, column, ty, wire: Wire::default() }).collect();
        let by_name = list.iter().enumerate().rev().map(|(i, f)| (f.name.clone(), i)).collect();
        Fields { list, by_name }
    }

    pub fn iter(&self) -> std::slice::Iter<'_, Field> {
        self.list.iter()
    }

    pub fn len(&self) -> usize {
        self.list.len()
    }

    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    pub fn set_wire(&mut self, f: impl Fn(&Field) -> Wire) {
        for field in &mut self.list {
            field.wire = f(field);
        }
    }

    /// The field of a member, looking first where the last record had it.
    #[inline]
    fn find(&self, name: &str, hint: usize) -> Option<usize> {
        if self.list.get(hint).is_some_and(|f| f.name == name) {
            return Some(hint);
        }
        if self.list.len() <= LINEAR_MAX {
            return self.list.iter().position(|f| f.name == name);
        }
        self.by_name.get(name).copied()
    }
}

/// Decodes the object at the scanner's cursor into `cells` (one a column of the relation); members without a column are skipped.
/// Errors: not an object, invalid JSON, a value that its column's type refuses (names the column).
pub fn object(scanner: &mut Scanner<'_>, fields: &Fields, cells: &mut [Cell], scratch: &mut String) -> Result<(), String> {
    if scanner.peek() != Some(b'{') {
        return Err(match scanner.peek() {
            None => "the record is empty where a JSON object is expected".into(),
            Some(_) => scanner.error("an object"),
        });
    }
    let mut hint = 0;
    scanner.object(scratch, |s, name, scratch| match fields.find(s.resolve(name, scratch), hint) {
        Some(i) => {
            hint = i + 1;
            let field = &fields.list[i];
            cells[field.column] = value(s, &field.ty, field.wire, scratch).map_err(|e| in_column(e, &field.name))?;
            Ok(())
        }
        None => s.value().map(|_| ()),
    })
}

fn in_column(error: String, name: &str) -> String {
    if error.starts_with("invalid JSON") {
        error
    } else {
        format!("column \"{name}\": {error}")
    }
}

/// The value at the cursor as a cell of a column.
pub fn value(s: &mut Scanner<'_>, col: &ColType, wire: Wire, scratch: &mut String) -> Result<Cell, String> {
    match s.peek() {
        Some(b'n') => s.literal("null").map(|_| Cell::Null),
        Some(b'"') => {
            let span = s.string(scratch)?;
            let text = s.resolve(span, scratch);
            match &col.ty {
                _ if wire.is_debezium() => debezium(text, span, col, wire),
                SqlType::Jsonb => {
                    cell::no_nul(text)?;
                    Ok(Cell::Other(Box::new(Value::Jsonb(Box::new(Jsonb::String(text.to_owned()))))))
                }
                SqlType::Json => {
                    let quoted = serde_json::Value::String(text.to_owned()).to_string();
                    Ok(Cell::Other(Box::new(Value::Text(quoted))))
                }
                _ => cell::from_text(text, span, col),
            }
        }
        Some(b'-' | b'0'..=b'9') => {
            let start = s.pos;
            let integer = s.number()?;
            number(s, s.span(start, s.pos), integer, col, wire)
        }
        Some(b't') => s.literal("true").and_then(|_| boolean(s, true, col, wire)),
        Some(b'f') => s.literal("false").and_then(|_| boolean(s, false, col, wire)),
        Some(b'{' | b'[') => {
            let span = s.value()?;
            nested(s, span, col, wire)
        }
        _ => Err(s.error("a value")),
    }
}

/// What Debezium writes for a value that it left out, because it is long and did not change.
const UNAVAILABLE: &str = "__debezium_unavailable_value";
/// The same as bytes.
const UNAVAILABLE_BASE64: &str = "X19kZWJleml1bV91bmF2YWlsYWJsZV92YWx1ZQ==";

/// A string as Kafka Connect's JSON converter writes the value of a column: documents, bytes and bits have no JSON form of their own.
fn debezium(text: &str, span: Span, col: &ColType, wire: Wire) -> Result<Cell, String> {
    if text == UNAVAILABLE || (text == UNAVAILABLE_BASE64 && !col.ty.is_string()) {
        return Ok(Cell::Unchanged);
    }
    let typed = |text: &str| input::value(text, col).map(|v| Cell::Other(Box::new(v))).map_err(|e| e.message);
    match (&col.ty, wire) {
        // A document is sent as its text; a string that is none is one.
        (SqlType::Jsonb | SqlType::Json, _) => typed(text).or_else(|_| typed(&serde_json::Value::String(text.to_owned()).to_string())),
        (SqlType::Bytea, _) if text.starts_with("\\x") => typed(text),
        (SqlType::Bytea, _) => Ok(Cell::Other(Box::new(Value::Bytea(base64(text)?)))),
        (SqlType::Bit | SqlType::VarBit, _) => bits(&base64(text)?, col),
        (_, Wire::Decimal(scale)) => typed(&decimal(&base64(text)?, scale)?),
        (ty, Wire::Base64) => Err(format!("bytes are not a value of type {ty}")),
        (SqlType::Numeric, _) => cell::from_text(text, span, col).map_err(|e| match base64(text) {
            Ok(_) => format!("{e}: a decimal written as bytes is read by its schema: send the schema too, or set decimal.handling.mode=string"),
            Err(_) => e,
        }),
        _ => cell::from_text(text, span, col),
    }
}

fn base64(text: &str) -> Result<Vec<u8>, String> {
    use base64::Engine;
    base64::engine::general_purpose::STANDARD.decode(text).map_err(|_| format!("invalid base64 \"{text}\""))
}

/// Bits come as bytes, the last eight first.
fn bits(bytes: &[u8], col: &ColType) -> Result<Cell, String> {
    let all = 8 * bytes.len();
    let declared = usize::try_from(col.typmod).ok().filter(|_| col.ty == SqlType::Bit).unwrap_or(all);
    let bit = |i: usize| bytes.get(i / 8).is_some_and(|b| b >> (i % 8) & 1 == 1);
    if (declared..all).any(bit) {
        return Err(format!("{all} bits do not fit type bit({declared})"));
    }
    let text: String = (0..declared).rev().map(|i| if bit(i) { '1' } else { '0' }).collect();
    input::value(&text, col).map(|v| Cell::Other(Box::new(v))).map_err(|e| e.message)
}

/// Digits of a decimal beyond which its scale is no decimal's but damage.
const SCALE_MAX: i64 = 16_383;

/// The text of a decimal: a big-endian two's complement integer with a point `scale` digits from its right.
fn decimal(bytes: &[u8], scale: i16) -> Result<String, String> {
    let digits = num_bigint::BigInt::from_signed_bytes_be(bytes).to_string();
    let (sign, digits) = match digits.strip_prefix('-') {
        Some(d) => ("-", d),
        None => ("", digits.as_str()),
    };
    if i64::from(scale).abs() > SCALE_MAX {
        return Err(format!("a decimal of scale {scale}"));
    }
    let zeros = usize::from(scale.unsigned_abs());
    if scale <= 0 {
        return Ok(format!("{sign}{digits}{}", "0".repeat(if digits == "0" { 0 } else { zeros })));
    }
    let scale = zeros;
    let digits = format!("{digits:0>width$}", width = scale + 1);
    let (whole, fraction) = digits.split_at(digits.len() - scale);
    Ok(format!("{sign}{whole}.{fraction}"))
}

/// A decimal that brings its own scale, `{"scale": 2, "value": "AQ=="}`; `None` if the object is another one.
fn variable_decimal(text: &str) -> Option<Result<String, String>> {
    let v: serde_json::Value = serde_json::from_str(text).ok()?;
    let scale = v.get("scale")?.as_i64()?;
    let value = v.get("value")?.as_str()?;
    Some(base64(value).and_then(|b| decimal(&b, i16::try_from(scale).map_err(|_| format!("a decimal of scale {scale}"))?)))
}

fn boolean(s: &Scanner<'_>, v: bool, col: &ColType, wire: Wire) -> Result<Cell, String> {
    let span = s.span(s.pos - if v { 4 } else { 5 }, s.pos);
    match &col.ty {
        SqlType::Bool => Ok(Cell::Bool(v)),
        SqlType::Jsonb => Ok(Cell::Other(Box::new(Value::Jsonb(Box::new(Jsonb::Bool(v)))))),
        SqlType::Json => Ok(Cell::Text(span.0, span.1, span.2)),
        // bit(1) is a boolean to Debezium.
        SqlType::Bit | SqlType::VarBit if wire.is_debezium() => {
            input::value(if v { "1" } else { "0" }, col).map(|v| Cell::Other(Box::new(v))).map_err(|e| e.message)
        }
        _ => cell::from_text(&s.text()[span.1 as usize..span.2 as usize], span, col),
    }
}

fn number(s: &Scanner<'_>, span: Span, integer: bool, col: &ColType, wire: Wire) -> Result<Cell, String> {
    let text = &s.text()[span.1 as usize..span.2 as usize];
    match &col.ty {
        SqlType::Timestamp | SqlType::TimestampTz | SqlType::Date | SqlType::Time => {
            let v = if integer { cell::plain_integer(text) } else { None };
            v.and_then(|v| cell::epoch(v, &col.ty, wire)).unwrap_or_else(|| Err(format!("invalid input syntax for type {}: \"{text}\"", col.ty)))
        }
        SqlType::Interval if integer && wire.is_debezium() => {
            let unit = if wire == Wire::Nanos { "nanoseconds" } else { "microseconds" };
            let micros =
                text.parse::<i64>().map(|v| if wire == Wire::Nanos { v.div_euclid(1000) } else { v }).map_err(|_| format!("{text} {unit} are out of range"))?;
            input::value(&format!("{micros} microseconds"), col).map(|v| Cell::Other(Box::new(v))).map_err(|e| e.message)
        }
        SqlType::Json => Ok(Cell::Text(span.0, span.1, span.2)),
        _ => cell::from_text(text, span, col),
    }
}

/// An object or array as a column: JSON as it is, text as its text, arrays and the like element by element.
fn nested(s: &Scanner<'_>, span: Span, col: &ColType, wire: Wire) -> Result<Cell, String> {
    let text = &s.text()[span.1 as usize..span.2 as usize];
    match &col.ty {
        SqlType::Json | SqlType::Text | SqlType::Varchar if col.typmod < 0 => {
            cell::no_nul(text)?;
            Ok(Cell::Text(span.0, span.1, span.2))
        }
        SqlType::Array(_) | SqlType::List(_) | SqlType::Map(_) | SqlType::Record(_) => input::nested(text, col, wire).map(|v| Cell::Other(Box::new(v))),
        SqlType::Numeric if wire.is_debezium() => match variable_decimal(text) {
            Some(digits) => input::value(&digits?, col).map(|v| Cell::Other(Box::new(v))).map_err(|e| e.message),
            None => Err(format!("{text} is not a value of type numeric")),
        },
        SqlType::Jsonb | SqlType::Text | SqlType::Varchar | SqlType::Bpchar => input::value(text, col).map(|v| Cell::Other(Box::new(v))).map_err(|e| e.message),
        ty => Err(format!("a JSON {} is not a value of type {ty}", if text.starts_with('{') { "object" } else { "array" })),
    }
}

/// The whole record as one column.
pub fn whole(text: &str, place: Place, col: &ColType, scratch: &mut String) -> Result<Cell, String> {
    let mut s = Scanner::new(text, place, 0);
    s.space();
    let start = s.pos;
    let cell = match &col.ty {
        SqlType::Json => {
            let span = s.value()?;
            Cell::Text(span.0, span.1, span.2)
        }
        // A JSON null is a document here, not an absent value.
        SqlType::Jsonb => {
            s.value()?;
            input::value(&text[start..s.pos], col).map(|v| Cell::Other(Box::new(v))).map_err(|e| e.message)?
        }
        _ => value(&mut s, col, Wire::default(), scratch)?,
    };
    s.end()?;
    Ok(cell)
}
