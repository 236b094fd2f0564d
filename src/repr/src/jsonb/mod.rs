//! JSON documents as Postgres's `jsonb` orders and prints them.

/// Reading and changing documents.
mod ops;
/// JSON text to documents.
mod parse;

use crate::numeric::Numeric;
pub use ops::{key_order, Change};
pub use parse::{check, parse};
use serde::{Deserialize, Serialize};

/// A `jsonb` document. Object entries are unique and sorted as Postgres stores them: shorter keys first, then by bytes.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum Jsonb {
    Null,
    Bool(bool),
    Number(Numeric),
    String(String),
    Array(Vec<Jsonb>),
    Object(Vec<(String, Jsonb)>),
}

impl Jsonb {
    /// Calls `f` with each number, in the order of printing.
    pub fn for_numbers(&self, f: &mut dyn FnMut(&Numeric)) {
        match self {
            Jsonb::Number(n) => f(n),
            Jsonb::Array(a) => a.iter().for_each(|j| j.for_numbers(f)),
            Jsonb::Object(o) => o.iter().for_each(|(_, j)| j.for_numbers(f)),
            _ => {}
        }
    }

    /// As [`Jsonb::for_numbers`], to change them.
    pub fn for_numbers_mut(&mut self, f: &mut dyn FnMut(&mut Numeric)) {
        match self {
            Jsonb::Number(n) => f(n),
            Jsonb::Array(a) => a.iter_mut().for_each(|j| j.for_numbers_mut(f)),
            Jsonb::Object(o) => o.iter_mut().for_each(|(_, j)| j.for_numbers_mut(f)),
            _ => {}
        }
    }

    /// An object of these entries: sorted, of equal keys the last.
    pub fn object(mut entries: Vec<(String, Jsonb)>) -> Jsonb {
        entries.sort_by(|a, b| ops::key_order(&a.0, &b.0));
        // The sort is stable, so the last of equal keys is the last that was given.
        let mut out: Vec<(String, Jsonb)> = Vec::with_capacity(entries.len());
        for e in entries {
            match out.last_mut() {
                Some(last) if last.0 == e.0 => *last = e,
                _ => out.push(e),
            }
        }
        Jsonb::Object(out)
    }

    /// Appends the document's text as Postgres prints it: `{"a": 1, "b": [1, 2]}`.
    pub fn print(&self, out: &mut String) {
        match self {
            Jsonb::Null => out.push_str("null"),
            Jsonb::Bool(b) => out.push_str(if *b { "true" } else { "false" }),
            Jsonb::Number(n) => n.print(out),
            Jsonb::String(s) => escape_into(s, out),
            Jsonb::Array(a) => {
                out.push('[');
                for (i, v) in a.iter().enumerate() {
                    if i > 0 {
                        out.push_str(", ");
                    }
                    v.print(out);
                }
                out.push(']');
            }
            Jsonb::Object(o) => {
                out.push('{');
                for (i, (k, v)) in o.iter().enumerate() {
                    if i > 0 {
                        out.push_str(", ");
                    }
                    escape_into(k, out);
                    out.push_str(": ");
                    v.print(out);
                }
                out.push('}');
            }
        }
    }
}

/// Appends a JSON string literal.
pub fn escape_into(s: &str, out: &mut String) {
    out.push('"');
    for c in s.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\x08' => out.push_str("\\b"),
            '\x0c' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c < ' ' => {
                use std::fmt::Write;
                let _ = write!(out, "\\u{:04x}", c as u32);
            }
            c => out.push(c),
        }
    }
    out.push('"');
}

impl std::fmt::Display for Jsonb {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut s = String::new();
        self.print(&mut s);
        f.write_str(&s)
    }
}
