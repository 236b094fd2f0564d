//! Values of types without a fast path: text through the type's own input, nested JSON element by element.

use super::scan::Scanner;
use super::{cell, json};
use crate::decode::cell::{Cell, Place, Wire};
use repr::style::TextStyle;
use repr::{ColType, SqlError, SqlType, Value};
use std::sync::LazyLock;

/// Sources read text in UTC and ISO dates, whatever the session that made them had set.
static STYLE: LazyLock<TextStyle> = LazyLock::new(TextStyle::default);

/// The value that `text` is in the input syntax of the column's type, its modifier applied.
/// Errors: Postgres's, for that text.
pub fn value(text: &str, col: &ColType) -> Result<Value, SqlError> {
    repr::text::from_text(text, &col.ty, col.typmod, &STYLE)
}

/// An array, list, map or record from JSON.
/// Errors: a member or element that its type refuses.
pub fn nested(text: &str, col: &ColType, wire: Wire) -> Result<Value, String> {
    let mut scanner = Scanner::new(text, Place::Value, 0);
    let v = build(&mut scanner, col, wire)?;
    scanner.end()?;
    Ok(v)
}

fn build(s: &mut Scanner<'_>, col: &ColType, wire: Wire) -> Result<Value, String> {
    match (&col.ty, s.peek()) {
        (_, Some(b'n')) => s.literal("null").map(|_| Value::Null),
        (SqlType::Array(_), Some(b'[')) => array(s, col, wire),
        (SqlType::List(elem), Some(b'[')) => {
            let elem = (**elem).clone().nullable();
            let mut elems = Vec::new();
            elements(s, |s| {
                elems.push(build(s, &elem, wire)?);
                Ok(())
            })?;
            Ok(Value::array(elems))
        }
        (SqlType::Map(elem), Some(b'{')) => {
            let elem = (**elem).clone().nullable();
            let mut entries: Vec<(String, Value)> = Vec::new();
            s.object(&mut String::new(), |s, name, scratch| {
                let name = s.resolve(name, scratch).to_owned();
                cell::no_nul(&name)?;
                let v = build(s, &elem, wire)?;
                match entries.binary_search_by(|e| e.0.as_str().cmp(&name)) {
                    Ok(i) => entries[i].1 = v,
                    Err(i) => entries.insert(i, (name, v)),
                }
                Ok(())
            })?;
            Ok(Value::Map(entries))
        }
        (SqlType::Record(r), Some(b'{')) => {
            let mut fields = vec![Value::Null; r.fields.len()];
            s.object(&mut String::new(), |s, name, scratch| {
                match r.fields.iter().position(|f| f.0 == s.resolve(name, scratch)) {
                    Some(i) => fields[i] = build(s, &r.fields[i].1, wire)?,
                    None => {
                        s.value()?;
                    }
                }
                Ok(())
            })?;
            Ok(Value::Record(fields))
        }
        (SqlType::Array(_) | SqlType::List(_) | SqlType::Map(_) | SqlType::Record(_), Some(b'{' | b'[')) => {
            Err(format!("a JSON {} is not a value of type {}", if s.peek() == Some(b'{') { "object" } else { "array" }, col.ty))
        }
        _ => {
            let mut scratch = String::new();
            let c = json::value(s, col, wire, &mut scratch)?;
            if matches!(c, Cell::Unchanged) {
                return Err("an element was left out because it did not change".into());
            }
            Ok(owned(c, s.text(), &scratch, &col.ty))
        }
    }
}

fn elements(s: &mut Scanner<'_>, mut each: impl FnMut(&mut Scanner<'_>) -> Result<(), String>) -> Result<(), String> {
    s.expect(b'[', "an array")?;
    if s.eat(b']') {
        return Ok(());
    }
    loop {
        each(s)?;
        if !s.another(b']')? {
            return Ok(());
        }
    }
}

/// A Postgres array: JSON arrays in arrays are its dimensions, which must be even.
fn array(s: &mut Scanner<'_>, col: &ColType, wire: Wire) -> Result<Value, String> {
    let SqlType::Array(elem) = &col.ty else { return Err("not an array type".into()) };
    let inner = ColType { ty: (**elem).clone(), typmod: col.typmod, nullable: true };
    let mut elems = Vec::new();
    let mut dims: Vec<i32> = Vec::new();
    dimension(s, &inner, wire, 0, &mut dims, &mut elems)?;
    if elems.is_empty() {
        return Ok(Value::array(Vec::new()));
    }
    Ok(Value::Array(Box::new(repr::ArrayValue { elems, dims: dims.into_iter().map(|n| (n, 1)).collect() })))
}

fn dimension(s: &mut Scanner<'_>, elem: &ColType, wire: Wire, level: usize, dims: &mut Vec<i32>, elems: &mut Vec<Value>) -> Result<(), String> {
    const UNEVEN: &str = "malformed JSON array: its arrays are not of equal length and depth";
    if level >= 6 {
        return Err("a JSON array has more than 6 dimensions".into());
    }
    // Depth is known once the first leaf was met.
    let leaf_seen = !elems.is_empty();
    let mut n = 0i32;
    s.expect(b'[', "an array")?;
    if !s.eat(b']') {
        loop {
            let nests = s.peek() == Some(b'[') && !matches!(elem.ty, SqlType::Json | SqlType::Jsonb);
            if nests {
                if !elems.is_empty() && dims.len() <= level + 1 {
                    return Err(UNEVEN.into());
                }
                dimension(s, elem, wire, level + 1, dims, elems)?;
            } else {
                if dims.len() > level + 1 {
                    return Err(UNEVEN.into());
                }
                elems.push(build(s, elem, wire)?);
                if dims.len() <= level {
                    dims.resize(level + 1, -1);
                }
            }
            n += 1;
            if !s.another(b']')? {
                break;
            }
        }
    }
    if dims.len() <= level {
        if leaf_seen {
            return Err(UNEVEN.into());
        }
        dims.resize(level + 1, -1);
    }
    match dims[level] {
        -1 => dims[level] = n,
        m if m != n => return Err(UNEVEN.into()),
        _ => {}
    }
    Ok(())
}

/// A cell as a value of its own.
pub fn owned(cell: Cell, text: &str, scratch: &str, ty: &SqlType) -> Value {
    let buffers = cell::Buffers { value: text.as_bytes(), key: &[], scratch };
    match cell {
        Cell::Other(v) => *v,
        cell => {
            let mut builder = repr::ColumnBuilder::new(ty, 1);
            cell::push(&mut builder, &cell, buffers);
            repr::column::get(&builder.finish(), ty, 0)
        }
    }
}
