//! The code of a DO statement.
//!
//! Statements and expressions in it are SQL of their own, an expression as the query `SELECT expression`: variables are put in when they are
//! planned, and only then are their names looked up.

use super::*;
use crate::parse::ParsedStatement;

/// Each with the line of the code on which it begins.
pub type Steps = Vec<(u32, Step)>;

#[derive(Clone, Debug, PartialEq, Default)]
pub struct Block {
    pub label: Option<String>,
    pub line: u32,
    pub variables: Vec<Variable>,
    pub steps: Steps,
    /// EXCEPTION: conditions, and what is done then. With any, an error undoes what the block has done.
    pub handlers: Vec<(Vec<Condition>, Steps)>,
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
    /// `variable%TYPE`.
    OfVariable(Ident),
    Cursor(Box<BoundCursor>),
}

/// A cursor that is declared with its query.
#[derive(Clone, Debug, PartialEq)]
pub struct BoundCursor {
    pub scroll: Option<bool>,
    pub params: Vec<(Ident, TypeName)>,
    pub query: ParsedStatement,
}

/// What OPEN opens a cursor for.
#[derive(Clone, Debug, PartialEq)]
pub enum Opened {
    /// Its own query; the values of its parameters, some by name.
    Bound(CursorArgs),
    Query(ParsedStatement),
    Execute {
        text: ParsedStatement,
        using: Vec<ParsedStatement>,
    },
}

pub type CursorArgs = Vec<(Option<Ident>, ParsedStatement)>;

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
    /// `a[1] := x`, `r.f := x`.
    AssignPart(AssignTarget, ParsedStatement),
    Block(Block),
    /// Conditions with their steps, and ELSE.
    If(Vec<(ParsedStatement, Steps)>, Steps),
    /// With a subject, the conditions ask whether [`SUBJECT`] is in their lists. Without ELSE, one of them must hold.
    Case {
        subject: Option<ParsedStatement>,
        arms: Vec<(ParsedStatement, Steps)>,
        other: Option<Steps>,
    },
    Loop {
        label: Option<String>,
        rows: Loop,
        steps: Steps,
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
    Open {
        cursor: Ident,
        scroll: Option<bool>,
        what: Opened,
    },
    /// FETCH into variables; MOVE without any.
    Fetch {
        cursor: Ident,
        direction: FetchDirection,
        into: Option<Vec<Ident>>,
    },
    Close(Ident),
    /// GET DIAGNOSTICS: variables and the items that they get.
    Diagnostics {
        stacked: bool,
        items: Vec<(Ident, String)>,
    },
}

/// The variable that CASE keeps its subject in.
pub const SUBJECT: &str = "__Case__Variable__";

#[derive(Clone, Debug, PartialEq)]
pub enum Loop {
    Forever,
    While(ParsedStatement),
    Integers {
        variable: Ident,
        from: ParsedStatement,
        to: ParsedStatement,
        by: Option<ParsedStatement>,
        reverse: bool,
    },
    Query {
        targets: Vec<Ident>,
        query: ParsedStatement,
    },
    Execute {
        targets: Vec<Ident>,
        text: ParsedStatement,
        using: Vec<ParsedStatement>,
    },
    /// `slice`: of how many dimensions the parts are that the loop goes over.
    Array {
        variable: Ident,
        slice: i64,
        array: ParsedStatement,
    },
    Cursor {
        variable: Ident,
        cursor: Ident,
        args: CursorArgs,
    },
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
