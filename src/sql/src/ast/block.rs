//! The code of a DO statement.
//!
//! Statements and expressions in it are SQL of their own, an expression as the query `SELECT expression`: variables are put in when they are
//! planned, and only then are their names looked up.

use super::*;
use crate::parse::ParsedStatement;

#[derive(Clone, Debug, PartialEq, Default)]
pub struct Block {
    pub label: Option<String>,
    pub variables: Vec<Variable>,
    pub steps: Vec<Step>,
    /// EXCEPTION: conditions, and what is done then. With any, an error undoes what the block has done.
    pub handlers: Vec<(Vec<Condition>, Vec<Step>)>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Variable {
    pub name: Ident,
    pub ty: VariableType,
    pub constant: bool,
    pub not_null: bool,
    pub value: Option<ParsedStatement>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum VariableType {
    Named(TypeName),
    /// RECORD and `table%ROWTYPE`: whatever is assigned to it.
    Record,
    /// `table.column%TYPE`, as a query with that column.
    Like(ParsedStatement),
}

#[derive(Clone, Debug, PartialEq)]
pub enum Condition {
    Others,
    /// A SQLSTATE; one that ends in 000 means its whole class.
    Code([u8; 5]),
}

/// INTO.
#[derive(Clone, Debug, PartialEq)]
pub struct Destination {
    /// Exactly one row.
    pub strict: bool,
    pub targets: Vec<Ident>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    Null,
    Return,
    Sql(ParsedStatement, Option<Destination>),
    /// The query whose rows nobody wants.
    Perform(ParsedStatement),
    Execute {
        text: ParsedStatement,
        using: Vec<ParsedStatement>,
        into: Option<Destination>,
    },
    Assign(Ident, ParsedStatement),
    Block(Block),
    /// Conditions with their steps, and ELSE.
    If(Vec<(ParsedStatement, Vec<Step>)>, Vec<Step>),
    Loop {
        label: Option<String>,
        rows: Loop,
        steps: Vec<Step>,
    },
    /// EXIT, or CONTINUE where `again`.
    Leave {
        label: Option<String>,
        when: Option<ParsedStatement>,
        again: bool,
    },
    Raise(Box<Raise>),
    Assert {
        holds: ParsedStatement,
        message: Option<ParsedStatement>,
    },
    /// GET DIAGNOSTICS variable = ROW_COUNT.
    RowCount(Ident),
}

#[derive(Clone, Debug, PartialEq)]
pub enum Loop {
    Forever,
    While(ParsedStatement),
    Integers { variable: Ident, from: ParsedStatement, to: ParsedStatement, by: Option<ParsedStatement>, reverse: bool },
    Query { targets: Vec<Ident>, query: ParsedStatement },
    Execute { targets: Vec<Ident>, text: ParsedStatement, using: Vec<ParsedStatement> },
    Array { variable: Ident, array: ParsedStatement },
}

#[derive(Clone, Debug, PartialEq)]
pub struct Raise {
    /// DEBUG, LOG, INFO, NOTICE, WARNING, EXCEPTION.
    pub level: &'static str,
    /// The format, and what its `%` stand for.
    pub message: Option<(String, Vec<ParsedStatement>)>,
    pub code: Option<[u8; 5]>,
    /// USING.
    pub options: Vec<(String, ParsedStatement)>,
    /// RAISE alone: the error that is being handled goes on.
    pub again: bool,
}
