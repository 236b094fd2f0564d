//! Queries as written.

use super::{Expr, FuncCall, Ident, ObjectName, Pos, Span, TypeName};
use expr::{FrameExclude, FrameUnits};

#[derive(Clone, Debug, PartialEq)]
pub struct Query {
    pub with: Option<With>,
    pub body: QueryBody,
    pub order_by: Vec<OrderBy>,
    pub limit: Option<Expr>,
    pub offset: Option<Expr>,
    pub with_ties: bool,
    pub locking: Vec<Locking>,
    pub as_of: Option<AsOf>,
    pub pos: Pos,
    pub span: Span,
}

/// FOR UPDATE and its like.
#[derive(Clone, Debug, PartialEq)]
pub struct Locking {
    /// As error messages say it: `FOR NO KEY UPDATE`.
    pub verb: &'static str,
    /// Empty: all relations.
    pub of: Vec<ObjectName>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum QueryBody {
    Select(Box<Select>),
    Values(Vec<Vec<Expr>>),
    SetOp { op: SetOp, all: bool, left: Box<Query>, right: Box<Query> },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetOp {
    Union,
    Intersect,
    Except,
}

#[derive(Clone, Debug, PartialEq)]
pub struct AsOf {
    pub at_least: bool,
    pub time: Expr,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Select {
    pub distinct: Distinct,
    pub targets: Vec<Target>,
    /// SELECT … INTO.
    pub into: Option<ObjectName>,
    pub from: Vec<TableRef>,
    pub filter: Option<Expr>,
    pub group_by: Vec<GroupItem>,
    pub group_distinct: bool,
    pub having: Option<Expr>,
    /// QUALIFY: a condition on what window functions gave.
    pub qualify: Option<Expr>,
    pub windows: Vec<(Ident, WindowSpec)>,
    pub pos: Pos,
}

impl Select {
    /// SELECT of these expressions alone.
    pub fn of_row(row: Vec<Expr>, pos: Pos) -> Select {
        Select {
            distinct: Distinct::All,
            targets: row.into_iter().map(|expr| Target { expr, alias: None, except: Vec::new() }).collect(),
            into: None,
            from: Vec::new(),
            filter: None,
            group_by: Vec::new(),
            group_distinct: false,
            having: None,
            qualify: None,
            windows: Vec::new(),
            pos,
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub enum Distinct {
    All,
    Distinct,
    On(Vec<Expr>),
}

#[derive(Clone, Debug, PartialEq)]
pub struct Target {
    pub expr: Expr,
    pub alias: Option<Ident>,
    /// Of a star: the columns that EXCEPT takes out.
    pub except: Vec<Ident>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum GroupItem {
    Expr(Expr),
    Empty,
    /// A parenthesised list inside GROUPING SETS, ROLLUP, CUBE.
    List(Vec<Expr>),
    Rollup(Vec<GroupItem>),
    Cube(Vec<GroupItem>),
    Sets(Vec<GroupItem>),
}

#[derive(Clone, Debug, PartialEq)]
pub struct OrderBy {
    pub expr: Expr,
    pub desc: bool,
    pub nulls_first: Option<bool>,
    /// ORDER BY … USING op.
    pub using: Option<String>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct With {
    pub recursive: bool,
    pub ctes: Vec<Cte>,
    /// WITH MUTUALLY RECURSIVE.
    pub mutual: Option<Mutual>,
}

/// The limits of WITH MUTUALLY RECURSIVE (RETURN AT RECURSION LIMIT n | ERROR AT RECURSION LIMIT n).
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Mutual {
    pub limit: Option<u64>,
    pub return_at_limit: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Cte {
    pub name: Ident,
    pub columns: Vec<Ident>,
    /// WITH MUTUALLY RECURSIVE declares each column's type.
    pub types: Vec<TypeName>,
    /// `AS [NOT] MATERIALIZED`: it is for how the item is shown alone.
    pub materialized: Option<bool>,
    pub query: CteBody,
    pub search: Option<Search>,
    pub cycle: Option<Cycle>,
}

/// SEARCH DEPTH | BREADTH FIRST BY … SET column.
#[derive(Clone, Debug, PartialEq)]
pub struct Search {
    pub breadth_first: bool,
    pub by: Vec<Ident>,
    pub set: Ident,
}

/// CYCLE … SET mark TO value DEFAULT value USING path.
#[derive(Clone, Debug, PartialEq)]
pub struct Cycle {
    pub by: Vec<Ident>,
    pub mark: Ident,
    pub to: Expr,
    pub default: Expr,
    pub path: Ident,
}

#[derive(Clone, Debug, PartialEq)]
pub enum CteBody {
    Query(Box<Query>),
    /// INSERT, UPDATE, DELETE inside WITH.
    Modify(Box<super::Statement>),
}

#[derive(Clone, Debug, PartialEq)]
pub enum TableRef {
    Relation {
        name: ObjectName,
        alias: Option<Alias>,
    },
    Subquery {
        lateral: bool,
        query: Box<Query>,
        alias: Option<Alias>,
    },
    Function {
        lateral: bool,
        /// ROWS FROM has several.
        functions: Vec<(Expr, Vec<ColumnDecl>)>,
        rows_from: bool,
        ordinality: bool,
        alias: Option<Alias>,
        /// `AS t(a int, b text)`.
        columns: Vec<ColumnDecl>,
    },
    Join {
        left: Box<TableRef>,
        right: Box<TableRef>,
        kind: JoinType,
        cond: JoinCond,
        /// `(a JOIN b …) AS x`.
        alias: Option<Alias>,
        pos: Pos,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JoinType {
    Inner,
    Left,
    Right,
    Full,
    Cross,
}

#[derive(Clone, Debug, PartialEq)]
pub enum JoinCond {
    None,
    On(Expr),
    Natural,
    Using(Vec<Ident>, Option<Ident>),
}

#[derive(Clone, Debug, PartialEq)]
pub struct Alias {
    pub name: Ident,
    pub columns: Vec<Ident>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct ColumnDecl {
    pub name: Ident,
    pub ty: TypeName,
}

#[derive(Clone, Debug, PartialEq)]
pub struct WindowSpec {
    pub base: Option<Ident>,
    pub partition_by: Vec<Expr>,
    pub order_by: Vec<OrderBy>,
    pub frame: Option<FrameClause>,
    pub pos: Pos,
}

#[derive(Clone, Debug, PartialEq)]
pub struct FrameClause {
    pub units: FrameUnits,
    pub start: FrameEdge,
    pub end: FrameEdge,
    pub exclude: FrameExclude,
    /// Both edges are written.
    pub between: bool,
    pub pos: Pos,
}

#[derive(Clone, Debug, PartialEq)]
pub enum FrameEdge {
    UnboundedPreceding,
    Preceding(Expr),
    CurrentRow,
    Following(Expr),
    UnboundedFollowing,
}

/// `f(…)` in FROM keeps its call here when it is not a keyword form.
pub type TableFunction = FuncCall;
