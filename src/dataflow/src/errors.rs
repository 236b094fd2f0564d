//! Errors as rows: an `errs` collection is a relation of five columns, so it is arranged, joined to nothing, negated and
//! imported like any other.

use crate::arrange::Upd;
use repr::{Batch, Col, ColType, Diff, RowCodec, SqlError, SqlState, SqlType, Value};

/// code, message, detail, hint, position.
pub fn error_types() -> Vec<ColType> {
    vec![SqlType::Text.not_null(), SqlType::Text.not_null(), SqlType::Text.nullable(), SqlType::Text.nullable(), SqlType::Int8.nullable()]
}

fn to_row(e: &SqlError) -> Vec<Value> {
    let text = |s: &Option<String>| s.as_ref().map_or(Value::Null, Value::text);
    let position = e.position.map_or(Value::Null, |p| Value::Int8(i64::from(p)));
    vec![Value::text(e.code.as_str()), Value::text(&e.message), text(&e.detail), text(&e.hint), position]
}

/// The error that a row of an errs collection stands for.
pub fn from_row(row: &[Value]) -> SqlError {
    let text = |v: Option<&Value>| v.and_then(Value::as_str).map(str::to_owned);
    let code = text(row.first()).filter(|c| c.len() == 5).map_or(repr::error::state::INTERNAL_ERROR, |c| SqlState::new(&c));
    let mut e = SqlError::new(code, text(row.get(1)).unwrap_or_default());
    e.detail = text(row.get(2));
    e.hint = text(row.get(3));
    e.position = row.get(4).and_then(Value::as_i64).and_then(|p| u32::try_from(p).ok());
    e
}

/// The error behind row bytes of [`error_types`].
pub fn from_bytes(bytes: &[u8]) -> SqlError {
    from_row(&RowCodec::new(error_types()).decode_row(bytes))
}

/// Columns of a relation of quarantined errors: code, message, detail, hint.
pub fn quarantine_types() -> Vec<ColType> {
    error_types()[..QUARANTINE_COLUMNS].to_vec()
}

/// The row of [`error_types`] without its position, which no row of data has.
pub const QUARANTINE_COLUMNS: usize = 4;

/// Whether an error came from a row, not from the system: those of classes 53 (resources), 57, 58 (the world) and XX (damage, bugs) did not.
pub fn is_of_data(code: &str) -> bool {
    !["53", "57", "58", "XX"].iter().any(|class| code.starts_with(class))
}

/// Appends the row bytes of an error.
pub fn write_bytes(e: &SqlError, out: &mut Vec<u8>) {
    RowCodec::new(error_types()).encode_row(&to_row(e), out);
}

/// Updates of an errs collection: a message may hold the whole of a long value.
pub fn to_updates<T: Clone + PartialEq>(errors: Vec<(SqlError, T, Diff)>) -> Vec<Upd<T>> {
    let rows: Vec<Vec<Value>> = errors.iter().map(|e| to_row(&e.0)).collect();
    let mut of_rows = errors.into_iter();
    let pieces = Batch::pieces_from_rows(&error_types(), rows.iter().map(Vec::as_slice)).into_iter();
    pieces
        .map(|batch| {
            let (mut times, mut diffs) = (Col::default(), Col::default());
            for (_, t, d) in of_rows.by_ref().take(batch.len) {
                times.push(t);
                diffs.push(d);
            }
            Upd { batch, times, diffs }
        })
        .collect()
}

/// More retractions than insertions: bad upstream data, or a bug of ours.
pub fn negative_count(what: &str) -> SqlError {
    SqlError::new(repr::error::state::DATA_CORRUPTED, format!("{what} met a row with a negative count"))
        .with_detail("a source retracted a row that it had not inserted")
}
