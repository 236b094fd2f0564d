//! `jsonpath`: paths and predicates over documents, from text and back.
//!
//! ```text
//!   parse    $.a[*] ? (@.b > 2).c   ──►  Path      print   Path ──► Postgres's spelling: $."a"[*]?(@."b" > 2)."c"
//! ```
//!
//! Not here: evaluation (`expr::func::jsonpath`).

mod parse;
mod print;

use crate::numeric::Numeric;
pub use parse::parse;

/// A whole path.
#[derive(Clone, Debug, PartialEq)]
pub struct Path {
    pub strict: bool,
    pub expr: Expr,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    Or,
    And,
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    StartsWith,
    Add,
    Sub,
    Mul,
    Div,
    Mod,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    Abs,
    Size,
    Type,
    Floor,
    Double,
    Ceiling,
    KeyValue,
}

/// A value or predicate.
#[derive(Clone, Debug, PartialEq)]
pub enum Expr {
    Root,
    Current,
    Last,
    Variable(String),
    Null,
    Bool(bool),
    Number(Numeric),
    String(String),
    /// A head and what is applied to it, in order.
    Chain(Box<Expr>, Vec<Step>),
    Neg(Box<Expr>),
    Pos(Box<Expr>),
    Binary(Op, Box<Expr>, Box<Expr>),
    Not(Box<Expr>),
    IsUnknown(Box<Expr>),
    Exists(Box<Expr>),
    LikeRegex {
        value: Box<Expr>,
        pattern: String,
        flags: String,
    },
}

/// An accessor.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    Key(String),
    AnyKey,
    AnyElement,
    /// Indexes and ranges.
    Elements(Vec<(Expr, Option<Expr>)>),
    /// `.**{from to to}`; `None` is `last`.
    Descend(Option<u32>, Option<u32>),
    Method(Method),
    /// `.datetime()`, perhaps with a template.
    Datetime(Option<String>),
    Filter(Expr),
}
