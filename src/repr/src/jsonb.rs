//! JSON documents as Postgres's `jsonb` orders and prints them.

use crate::numeric::Numeric;
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
}
