//! Cells: decoded values on their way into columns, without an allocation for each.
//!
//! A record is decoded into one [`Cell`] a column first and pushed into the builders only when all of it is known to
//! be right, since a builder cannot take back what was pushed. Text stays where it is (in the record) or, where it had
//! escapes, in a scratch string that is used again for every record.
//!
//! Not here: finding the members or fields (`json`, `csv`).

use repr::{ColType, ColumnBuilder, Numeric, SqlType, Value};

/// Which buffer a piece of text lies in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    Value,
    Key,
    Scratch,
}

/// A value of a column's type.
#[derive(Clone, Debug, Default)]
pub enum Cell {
    /// Nothing brought this column.
    #[default]
    Missing,
    Null,
    /// The column holds what it held: the value was too long for upstream to send it again. Only an envelope that knows the old row can take it.
    Unchanged,
    Bool(bool),
    /// Integers, dates, times, timestamps: what the physical column holds.
    Int(i64),
    Float(f64),
    Numeric(i128, u16),
    /// UTF-8 without U+0000, of a column that is physically text.
    Text(Place, u32, u32),
    Bytes(Place, u32, u32),
    Other(Box<Value>),
}

/// The buffers that cells refer to.
#[derive(Clone, Copy)]
pub struct Buffers<'a> {
    pub value: &'a [u8],
    pub key: &'a [u8],
    pub scratch: &'a str,
}

impl<'a> Buffers<'a> {
    fn bytes(&self, place: Place, start: u32, end: u32) -> &'a [u8] {
        let range = start as usize..end as usize;
        match place {
            Place::Value => &self.value[range],
            Place::Key => &self.key[range],
            Place::Scratch => &self.scratch.as_bytes()[range],
        }
    }

    /// The text of a span that was cut from checked UTF-8.
    pub fn text(&self, span: (Place, u32, u32)) -> &'a str {
        std::str::from_utf8(self.bytes(span.0, span.1, span.2)).unwrap_or_default()
    }
}

/// Microseconds from 1970 to 2000.
pub const EPOCH_SHIFT_MICROS: i64 = 946_684_800_000_000;
const EPOCH_SHIFT_DAYS: i64 = 10_957;

/// Appends `cell` to the builder of the column it was decoded for.
pub fn push(builder: &mut ColumnBuilder, cell: &Cell, buffers: Buffers<'_>) {
    match (builder, cell) {
        (b, Cell::Missing | Cell::Null | Cell::Unchanged) => b.push_null(),
        (ColumnBuilder::Bool(b), Cell::Bool(v)) => b.append_value(*v),
        (ColumnBuilder::Int2(b), Cell::Int(v)) => b.append_value(*v as i16),
        (ColumnBuilder::Int4(b), Cell::Int(v)) => b.append_value(*v as i32),
        (ColumnBuilder::Int8(b), Cell::Int(v)) => b.append_value(*v),
        (ColumnBuilder::UInt2(b), Cell::Int(v)) => b.append_value(*v as u16),
        (ColumnBuilder::UInt4(b), Cell::Int(v)) => b.append_value(*v as u32),
        (ColumnBuilder::UInt8(b), Cell::Int(v)) => b.append_value(*v as u64),
        (ColumnBuilder::Float4(b), Cell::Float(v)) => b.append_value(*v as f32),
        (ColumnBuilder::Float8(b), Cell::Float(v)) => b.append_value(*v),
        (ColumnBuilder::Text(b), Cell::Text(place, s, e)) => {
            // The range was cut from checked UTF-8 at character boundaries.
            b.append_value(buffers.text((*place, *s, *e)))
        }
        (ColumnBuilder::Binary(b, _, _), Cell::Bytes(place, s, e)) => b.append_value(buffers.bytes(*place, *s, *e)),
        (b, Cell::Numeric(unscaled, scale)) => b.push(&Value::Numeric(Numeric::Small { unscaled: *unscaled, scale: *scale })),
        (b, Cell::Other(v)) => b.push(v),
        (b, other) => {
            debug_assert!(false, "cell {other:?} in a column of another type");
            b.push_null()
        }
    }
}

/// The cell of an integer for a column of type `ty`; `None` if the type holds no integers.
pub fn integer(v: i64, ty: &SqlType) -> Option<Result<Cell, String>> {
    let range = |lo: i64, hi: i64| {
        if (lo..=hi).contains(&v) {
            Ok(Cell::Int(v))
        } else {
            Err(format!("value \"{v}\" is out of range for type {ty}"))
        }
    };
    Some(match ty {
        SqlType::Int8 => Ok(Cell::Int(v)),
        SqlType::Int4 => range(i64::from(i32::MIN), i64::from(i32::MAX)),
        SqlType::Int2 => range(i64::from(i16::MIN), i64::from(i16::MAX)),
        SqlType::UInt2 => range(0, i64::from(u16::MAX)),
        SqlType::UInt4 | SqlType::Oid | SqlType::Xid | SqlType::Cid => range(0, i64::from(u32::MAX)),
        SqlType::UInt8 => range(0, i64::MAX),
        SqlType::Float8 => Ok(Cell::Float(v as f64)),
        SqlType::Float4 => Ok(Cell::Float(v as f32 as f64)),
        SqlType::Numeric => Ok(Cell::Numeric(i128::from(v), 0)),
        _ => return None,
    })
}

/// How a JSON member writes a value that JSON has no form for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Wire {
    /// Plain JSON: a number is milliseconds since 1970, a string is in the type's own syntax.
    #[default]
    Plain,
    /// Milliseconds since 1970.
    Millis,
    /// Microseconds since 1970 (since midnight for times of day).
    Micros,
    Nanos,
    /// Days since 1970: only for dates.
    Days,
    /// Base64 of the bytes (Kafka Connect's `bytes`).
    Base64,
    /// Base64 of a big-endian two's complement integer, with this scale (Kafka Connect's `Decimal`).
    Decimal(i16),
    /// Debezium without its schema: told by the size of the number, which is years apart (10^14 ms is the year 5138).
    Guess,
}

impl Wire {
    /// Whether Debezium wrote the value: anything but the default is its.
    pub fn is_debezium(self) -> bool {
        self != Wire::Plain
    }
}

/// A number in a date or time column.
pub fn epoch(v: i64, ty: &SqlType, unit: Wire) -> Option<Result<Cell, String>> {
    let micros = |unit: Wire| -> Option<i64> {
        match unit {
            Wire::Plain | Wire::Millis | Wire::Base64 | Wire::Decimal(_) => v.checked_mul(1000),
            Wire::Micros => Some(v),
            Wire::Nanos => Some(v.div_euclid(1000)),
            Wire::Days => v.checked_mul(86_400_000_000),
            Wire::Guess => match v.unsigned_abs() {
                0..=99_999_999_999_999 => v.checked_mul(1000),
                100_000_000_000_000..=99_999_999_999_999_999 => Some(v),
                _ => Some(v.div_euclid(1000)),
            },
        }
    };
    let out = || format!("{v} is out of range for type {ty}");
    match ty {
        SqlType::Timestamp | SqlType::TimestampTz => {
            // Postgres's range: 4713 BC to 294276 AD.
            let at = micros(unit).and_then(|m| m.checked_sub(EPOCH_SHIFT_MICROS)).filter(|m| (-211_813_488_000_000_000..9_223_371_331_200_000_000).contains(m));
            Some(at.map(Cell::Int).ok_or_else(out))
        }
        SqlType::Date => {
            let days = match unit {
                Wire::Days | Wire::Guess | Wire::Plain | Wire::Millis if v.unsigned_abs() < 10_000_000 => Some(v),
                _ => micros(unit).map(|m| m.div_euclid(86_400_000_000)),
            };
            let at = days.map(|d| d - EPOCH_SHIFT_DAYS).filter(|d| (-2_451_545..2_145_031_949).contains(d));
            Some(at.map(Cell::Int).ok_or_else(out))
        }
        SqlType::Time => {
            let at = match unit {
                Wire::Guess if v.unsigned_abs() <= 86_400_000 => v.checked_mul(1000),
                Wire::Guess if v.unsigned_abs() > 86_400_000_000 => Some(v.div_euclid(1000)),
                Wire::Guess => Some(v),
                unit => micros(unit),
            };
            Some(at.filter(|m| (0..=86_400_000_000).contains(m)).map(Cell::Int).ok_or_else(out))
        }
        _ => None,
    }
}

/// The cell of a text in Postgres's input syntax of the column's type. `at` is where the text lies, for columns that keep it as it is.
/// Errors: what Postgres says of that text.
pub fn from_text(text: &str, at: (Place, u32, u32), col: &ColType) -> Result<Cell, String> {
    let plain = col.typmod < 0;
    match &col.ty {
        SqlType::Text | SqlType::Varchar | SqlType::Unknown if plain => {
            no_nul(text)?;
            return Ok(Cell::Text(at.0, at.1, at.2));
        }
        SqlType::Bool => match text {
            "true" | "t" => return Ok(Cell::Bool(true)),
            "false" | "f" => return Ok(Cell::Bool(false)),
            _ => {}
        },
        ty @ (SqlType::Int2 | SqlType::Int4 | SqlType::Int8 | SqlType::UInt2 | SqlType::UInt4 | SqlType::UInt8) => {
            if let Some(v) = plain_integer(text) {
                if let Some(cell) = integer(v, ty) {
                    return cell;
                }
            }
        }
        SqlType::Numeric if plain => {
            if let Some((u, s)) = plain_decimal(text) {
                return Ok(Cell::Numeric(u, s));
            }
        }
        SqlType::Float8 => {
            if let Some(v) = plain_float(text) {
                return Ok(Cell::Float(v));
            }
        }
        ty @ (SqlType::Timestamp | SqlType::TimestampTz) if plain => {
            if let Some(v) = iso_timestamp(text, *ty == SqlType::TimestampTz) {
                return Ok(Cell::Int(v));
            }
        }
        SqlType::Date => {
            if let Some(days) = iso_date(text.as_bytes()).filter(|_| text.len() == 10) {
                return Ok(Cell::Int(days));
            }
        }
        _ => {}
    }
    no_nul(text)?;
    super::input::value(text, col).map(|v| Cell::Other(Box::new(v))).map_err(|e| e.message)
}

/// U+0000 cannot be stored (22021).
pub fn no_nul(text: &str) -> Result<(), String> {
    if memchr(0, text.as_bytes()) {
        return Err("the character U+0000 cannot be stored as text".into());
    }
    Ok(())
}

fn memchr(byte: u8, bytes: &[u8]) -> bool {
    bytes.contains(&byte)
}

/// Digits with an optional minus that fit an int8.
pub fn plain_integer(text: &str) -> Option<i64> {
    let b = text.as_bytes();
    let (negative, digits) = match b.first()? {
        b'-' => (true, &b[1..]),
        _ => (false, b),
    };
    if digits.is_empty() || digits.len() > 19 || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let mut v: i64 = 0;
    for d in digits {
        let d = i64::from(d - b'0');
        v = v.checked_mul(10)?.checked_sub(d)?;
    }
    if negative {
        Some(v)
    } else {
        v.checked_neg()
    }
}

/// Digits with an optional minus and point, as (unscaled, scale), where they surely fit.
pub fn plain_decimal(text: &str) -> Option<(i128, u16)> {
    let b = text.as_bytes();
    let (negative, body) = match b.first()? {
        b'-' => (true, &b[1..]),
        _ => (false, b),
    };
    if body.is_empty() || body.len() > 38 {
        return None;
    }
    let (mut unscaled, mut scale, mut point, mut digits) = (0i128, 0u16, false, 0);
    for c in body {
        match c {
            b'0'..=b'9' => {
                unscaled = unscaled * 10 + i128::from(c - b'0');
                digits += 1;
                scale += u16::from(point);
            }
            b'.' if !point => point = true,
            _ => return None,
        }
    }
    (digits > 0).then_some((if negative { -unscaled } else { unscaled }, scale))
}

/// A float of digits, point and exponent only; infinities and the like are left to the type's input.
pub fn plain_float(text: &str) -> Option<f64> {
    let b = text.as_bytes();
    if !b.iter().all(|c| matches!(c, b'0'..=b'9' | b'.' | b'e' | b'E' | b'+' | b'-')) {
        return None;
    }
    // An overflow (or an underflow to zero) is Postgres's error, which the type's input gives.
    text.parse::<f64>().ok().filter(|v| v.is_finite() && (*v != 0.0 || !b.iter().take_while(|c| !matches!(c, b'e' | b'E')).any(|c| (b'1'..=b'9').contains(c))))
}

fn two(b: &[u8]) -> Option<i64> {
    match b {
        [a @ b'0'..=b'9', c @ b'0'..=b'9'] => Some(i64::from(a - b'0') * 10 + i64::from(c - b'0')),
        _ => None,
    }
}

/// `YYYY-MM-DD` at the front, as days since 2000-01-01.
fn iso_date(b: &[u8]) -> Option<i64> {
    if b.len() < 10 || b[4] != b'-' || b[7] != b'-' {
        return None;
    }
    let (y, m, d) = (two(&b[0..2])? * 100 + two(&b[2..4])?, two(&b[5..7])?, two(&b[8..10])?);
    let leap = y % 4 == 0 && (y % 100 != 0 || y % 400 == 0);
    let last = match m {
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        4 | 6 | 9 | 11 => 30,
        2 => 28 + i64::from(leap),
        _ => return None,
    };
    if y == 0 || d < 1 || d > last {
        return None;
    }
    // Days from civil, with years that begin in March.
    let (y, m) = if m <= 2 { (y - 1, m + 9) } else { (y, m - 3) };
    let era = y.div_euclid(400);
    let yoe = y - era * 400;
    let doy = (153 * m + 2) / 5 + d - 1;
    let doe = yoe * 365 + yoe / 4 - yoe / 100 + doy;
    Some(era * 146_097 + doe - 719_468 - EPOCH_SHIFT_DAYS)
}

/// `YYYY-MM-DD[T| ]HH:MM[:SS[.ffffff]][Z|±HH[[:]MM]]` as microseconds since 2000; anything else is left to the type's input.
/// Without a zone it is UTC, the session zone of sources; `timestamp` ignores a zone, as Postgres does.
pub fn iso_timestamp(text: &str, tz: bool) -> Option<i64> {
    let b = text.as_bytes();
    let days = iso_date(b)?;
    let mut micros = 0i64;
    let mut rest: &[u8] = &b[10..];
    let mut zone = 0i64;
    if !rest.is_empty() {
        if !matches!(rest[0], b'T' | b' ') || rest.len() < 6 || rest[3] != b':' {
            return None;
        }
        let (h, m) = (two(&rest[1..3])?, two(&rest[4..6])?);
        if h > 23 || m > 59 {
            return None;
        }
        micros = (h * 60 + m) * 60_000_000;
        rest = &rest[6..];
        if rest.first() == Some(&b':') {
            let s = two(rest.get(1..3)?)?;
            if s > 59 {
                return None;
            }
            micros += s * 1_000_000;
            rest = &rest[3..];
            if rest.first() == Some(&b'.') {
                let digits = rest[1..].iter().take_while(|c| c.is_ascii_digit()).count();
                if digits == 0 || digits > 6 {
                    return None;
                }
                let mut fraction = 0i64;
                for i in 0..6 {
                    fraction = fraction * 10 + if i < digits { i64::from(rest[1 + i] - b'0') } else { 0 };
                }
                micros += fraction;
                rest = &rest[1 + digits..];
            }
        }
        match rest {
            [] | [b'Z'] => {}
            [sign @ (b'+' | b'-'), z @ ..] => {
                let (h, m) = match z.len() {
                    2 => (two(z)?, 0),
                    4 => (two(&z[0..2])?, two(&z[2..4])?),
                    5 if z[2] == b':' => (two(&z[0..2])?, two(&z[3..5])?),
                    _ => return None,
                };
                if h > 15 || m > 59 {
                    return None;
                }
                zone = (h * 60 + m) * 60_000_000 * if *sign == b'-' { -1 } else { 1 };
            }
            _ => return None,
        }
    }
    Some(days * 86_400_000_000 + micros - if tz { zone } else { 0 })
}
