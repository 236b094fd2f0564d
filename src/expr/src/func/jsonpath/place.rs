//! Where an object lies in its document, which is what `keyvalue()` makes ids of.
//!
//! An id is the number of the base document, times 10^10, and the offset that PostgreSQL's binary form of the document has the object at: a header of
//! four bytes, four for each element, key and value, the keys, then the values; numbers and containers begin at multiples of four.

use repr::jsonb::Jsonb;
use repr::Numeric;

/// A base document and an offset in it.
#[derive(Clone, Copy)]
pub struct Place {
    pub base: i64,
    pub offset: i64,
}

impl Place {
    /// The document itself.
    pub const ROOT: Place = Place { base: 0, offset: 0 };

    pub fn id(self) -> i64 {
        self.base.saturating_mul(10_000_000_000).saturating_add(self.offset)
    }
}

fn aligned(n: i64) -> i64 {
    (n + 3) & !3
}

/// Digits to base 10,000 without zeros at either end, in PostgreSQL's short or long form.
fn number_size(n: &Numeric) -> i64 {
    let text = n.to_string();
    let text = text.trim_start_matches('-');
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let pad = (4 - whole.len() % 4) % 4;
    let digits: String = "0".repeat(pad) + whole + fraction + &"0".repeat((4 - fraction.len() % 4) % 4);
    let groups: Vec<&[u8]> = digits.as_bytes().chunks(4).collect();
    let first = groups.iter().position(|g| *g != b"0000");
    let last = groups.iter().rposition(|g| *g != b"0000");
    let (count, weight) = match (first, last) {
        (Some(f), Some(l)) => ((l - f + 1) as i64, ((whole.len() + pad) / 4) as i64 - 1 - f as i64),
        _ => (0, 0),
    };
    let header = if fraction.len() <= 63 && (-64..=63).contains(&weight) { 6 } else { 8 };
    header + 2 * count
}

/// Where what begins at `start` ends.
fn end(j: &Jsonb, start: i64) -> i64 {
    match j {
        Jsonb::Null | Jsonb::Bool(_) => start,
        Jsonb::String(s) => start + s.len() as i64,
        Jsonb::Number(n) => aligned(start) + number_size(n),
        Jsonb::Array(a) => a.iter().fold(first_child(j, aligned(start)), |at, e| end(e, at)),
        Jsonb::Object(o) => o.iter().fold(first_child(j, aligned(start)), |at, e| end(&e.1, at)),
    }
}

/// Where the first element or value of a container at `offset` begins.
fn first_child(j: &Jsonb, offset: i64) -> i64 {
    match j {
        Jsonb::Array(a) => offset + 4 + 4 * a.len() as i64,
        Jsonb::Object(o) => offset + 4 + 8 * o.len() as i64 + o.iter().map(|e| e.0.len() as i64).sum::<i64>(),
        _ => offset,
    }
}

/// The places of a container's elements or values, in order.
pub fn children(j: &Jsonb, place: Place) -> Vec<Place> {
    let mut at = first_child(j, place.offset);
    let mut one = |child: &Jsonb| {
        let found = Place { offset: aligned(at), ..place };
        at = end(child, at);
        found
    };
    match j {
        Jsonb::Array(a) => a.iter().map(&mut one).collect(),
        Jsonb::Object(o) => o.iter().map(|e| one(&e.1)).collect(),
        _ => Vec::new(),
    }
}
