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
