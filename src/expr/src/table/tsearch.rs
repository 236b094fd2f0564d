//! Set-returning functions of text search.

use super::{Emit, TableEntry};
use crate::ctx::EvalCtx;
use crate::func::tsearch::dict::{Config, PARSER};
use crate::func::tsearch::parser::{Parser, KINDS};
use crate::func::tsearch::{current, vector};
use repr::error::state;
use repr::{ColType, SqlError, Value};

fn unnest(args: &[Value], _: &[ColType], _: &[ColType], _: &EvalCtx, emit: Emit<'_>) -> Result<(), SqlError> {
    for l in vector(&args[0]).0 {
        let (positions, weights) = if l.places.is_empty() {
            (Value::Null, Value::Null)
        } else {
            let letters = ["D", "C", "B", "A"];
            (
                Value::array(l.places.iter().map(|p| Value::Int2(p.pos as i16)).collect()),
                Value::array(l.places.iter().map(|p| Value::text(letters[usize::from(p.weight & 3)])).collect()),
            )
        };
        if !emit(vec![Value::Text(l.word), positions, weights]) {
            return Ok(());
        }
    }
    Ok(())
}

/// There is one parser. Errors: 42704 for another name, XX000 for another OID.
fn check_parser(v: &Value) -> Result<(), SqlError> {
    match v {
        Value::Text(name) if matches!(name.as_str(), "default" | "pg_catalog.default") => Ok(()),
        Value::Text(name) => Err(SqlError::new(state::UNDEFINED_OBJECT, format!("text search parser \"{name}\" does not exist"))),
        Value::UInt4(oid) if *oid != PARSER => Err(SqlError::new(state::INTERNAL_ERROR, format!("cache lookup failed for text search parser {oid}"))),
        _ => Ok(()),
    }
}

fn kinds(args: &[Value], _: &[ColType], _: &[ColType], _: &EvalCtx, emit: Emit<'_>) -> Result<(), SqlError> {
    check_parser(&args[0])?;
    for (i, (alias, description)) in KINDS.iter().enumerate() {
        if !emit(vec![Value::Int4(i as i32 + 1), Value::text(*alias), Value::text(*description)]) {
            break;
        }
    }
    Ok(())
}

fn parse(args: &[Value], _: &[ColType], _: &[ColType], _: &EvalCtx, emit: Emit<'_>) -> Result<(), SqlError> {
    check_parser(&args[0])?;
    let mut p = Parser::new(args[1].as_str().unwrap_or(""));
    while let Some((kind, token)) = p.next_token() {
        if !emit(vec![Value::Int4(kind.into()), Value::text(token)]) {
            break;
        }
    }
    Ok(())
}

fn debug(args: &[Value], _: &[ColType], _: &[ColType], ctx: &EvalCtx, emit: Emit<'_>) -> Result<(), SqlError> {
    let (config, text) = match args {
        [Value::UInt4(oid), text, ..] => (Config::of_oid(*oid)?, text),
        [text, ..] => (current(ctx)?, text),
        [] => return Ok(()),
    };
    let mut p = Parser::new(text.as_str().unwrap_or(""));
    while let Some((kind, token)) = p.next_token() {
        let (alias, description) = KINDS[usize::from(kind) - 1];
        let mut row = vec![Value::text(alias), Value::text(description), Value::text(token)];
        match config.dictionary(kind) {
            None => row.extend([Value::array(Vec::new()), Value::Null, Value::Null]),
            Some(d) => row.extend([
                Value::array(vec![Value::UInt4(d.oid())]),
                Value::UInt4(d.oid()),
                Value::array(d.lexeme(token).into_iter().map(Value::Text).collect()),
            ]),
        }
        if !emit(row) {
            break;
        }
    }
    Ok(())
}

pub const ENTRIES: &[TableEntry] = &[
    TableEntry { names: &["tsvector_unnest"], fallible: false, rows: unnest },
    TableEntry { names: &["ts_token_type_byid", "ts_token_type_byname"], fallible: true, rows: kinds },
    TableEntry { names: &["ts_parse_byid", "ts_parse_byname"], fallible: true, rows: parse },
    TableEntry { names: &["6183", "6184"], fallible: true, rows: debug },
];
