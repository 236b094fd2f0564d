//! Scalar expressions as written.

use super::{Ident, OrderBy, Pos, Query, WindowSpec};

#[derive(Clone, Debug, PartialEq)]
pub struct Expr {
    pub kind: Box<ExprKind>,
    /// Where errors about this expression point: Postgres's `exprLocation`.
    pub pos: Pos,
}

#[derive(Clone, Debug, PartialEq)]
pub enum ExprKind {
    /// `a`, `t.a`, `s.t.a`.
    Column(Vec<Ident>),
    /// `$n`, from 1.
    Param(usize),
    Null,
    Bool(bool),
    /// Digits, with or without point and exponent.
    Number(String),
    String(String),
    /// The bits of `B'01'` or `X'1f'`, as 0 and 1.
    BitString(String),
    Unary {
        op: OpName,
        arg: Expr,
    },
    Binary {
        op: OpName,
        left: Expr,
        right: Expr,
    },
    And(Vec<Expr>),
    Or(Vec<Expr>),
    Not(Expr),
    IsNull {
        arg: Expr,
        not: bool,
    },
    IsBool {
        arg: Expr,
        test: BoolTest,
        not: bool,
    },
    IsDistinct {
        left: Expr,
        right: Expr,
        not: bool,
    },
    /// `pattern` is already wrapped in `like_escape` or `similar_to_escape` where Postgres does so; `op` is `~~`, `!~~`, `~~*`, `!~~*`, `~` or `!~`.
    Like {
        op: &'static str,
        arg: Expr,
        pattern: Expr,
    },
    Between {
        arg: Expr,
        low: Expr,
        high: Expr,
        not: bool,
        symmetric: bool,
    },
    InList {
        arg: Expr,
        list: Vec<Expr>,
        not: bool,
    },
    InSubquery {
        arg: Expr,
        query: Box<Query>,
        not: bool,
    },
    /// `arg op ANY|ALL (array or subquery)`.
    Quantified {
        arg: Expr,
        op: OpName,
        all: bool,
        rhs: QuantifiedRhs,
    },
    Exists(Box<Query>),
    Subquery(Box<Query>),
    ArraySubquery(Box<Query>),
    Array(Vec<Expr>),
    Row {
        fields: Vec<Expr>,
        /// `ROW(…)` rather than `(a, b)`.
        explicit: bool,
    },
    Func(FuncCall),
    Case {
        operand: Option<Expr>,
        branches: Vec<(Expr, Expr)>,
        otherwise: Option<Expr>,
    },
    Coalesce(Vec<Expr>),
    /// GREATEST, or LEAST.
    MinMax {
        greatest: bool,
        args: Vec<Expr>,
    },
    NullIf(Expr, Expr),
    Cast {
        arg: Expr,
        ty: TypeName,
    },
    Collate {
        arg: Expr,
        collation: Vec<String>,
    },
    Indirection {
        arg: Expr,
        path: Vec<Indirection>,
    },
    SqlValue(SqlValue, Option<i32>),
    Grouping(Vec<Expr>),
    /// `*` or `t.*`, where a target list or a row takes it.
    Star(Vec<Ident>),
    /// DEFAULT in INSERT and UPDATE.
    Default,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BoolTest {
    True,
    False,
    Unknown,
}

#[derive(Clone, Debug, PartialEq)]
pub enum QuantifiedRhs {
    Query(Box<Query>),
    Array(Expr),
}

#[derive(Clone, Debug, PartialEq)]
pub enum Indirection {
    Field(Ident),
    Star,
    Index(Expr),
    Slice(Option<Expr>, Option<Expr>),
}

/// An operator, possibly written `OPERATOR(schema.op)`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpName {
    pub schema: Option<String>,
    pub name: String,
    pub pos: Pos,
}

/// Niladic functions that SQL writes as keywords.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SqlValue {
    CurrentDate,
    CurrentTime,
    CurrentTimestamp,
    LocalTime,
    LocalTimestamp,
    CurrentUser,
    CurrentRole,
    SessionUser,
    User,
    CurrentCatalog,
    CurrentSchema,
}

#[derive(Clone, Debug, PartialEq)]
pub struct FuncCall {
    pub name: Vec<Ident>,
    pub args: Vec<FuncArg>,
    /// `f(*)`.
    pub star: bool,
    pub distinct: bool,
    pub order_by: Vec<OrderBy>,
    pub within_group: bool,
    pub filter: Option<Expr>,
    pub over: Option<Over>,
    /// Made by the grammar from a special form (EXTRACT, …): the name is Postgres's own whatever the search path says.
    pub system: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub struct FuncArg {
    pub name: Option<String>,
    pub variadic: bool,
    pub expr: Expr,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Over {
    Name(Ident),
    Spec(WindowSpec),
}

/// A type as written: name, modifiers, array dimensions.
#[derive(Clone, Debug, PartialEq)]
pub struct TypeName {
    pub names: Vec<String>,
    pub modifiers: Vec<Expr>,
    /// Number of `[]` after the name.
    pub dims: usize,
    /// `T LIST`.
    pub lists: usize,
    /// `map[text=>T]`: the value type.
    pub map_of: Option<Box<TypeName>>,
    pub setof: bool,
    /// COLLATE behind it.
    pub collation: Option<super::ObjectName>,
    pub pos: Pos,
}

impl Expr {
    /// The parts of a plain, possibly qualified name.
    pub fn name_parts(&self) -> Option<Vec<String>> {
        match &*self.kind {
            ExprKind::Column(parts) => Some(parts.iter().map(|p| p.name.clone()).collect()),
            _ => None,
        }
    }

    pub fn new(kind: ExprKind, pos: Pos) -> Expr {
        Expr { kind: Box::new(kind), pos }
    }
    pub fn string(s: impl Into<String>, pos: Pos) -> Expr {
        Expr::new(ExprKind::String(s.into()), pos)
    }
    pub fn call(name: &str, args: Vec<Expr>, pos: Pos) -> Expr {
        Expr::new(ExprKind::Func(FuncCall::system(name, args, pos)), pos)
    }
}

impl FuncCall {
    /// `list_agg(x ..)` and `map_agg(k, v ..)` as functions of what `array_agg` gathers: `list_agg(array_agg(x ..))`,
    /// `map_agg(array_agg(ROW(k, v) ..))`. Others as they are.
    pub fn aggregate_by_array(mut self) -> FuncCall {
        let [name] = self.name.as_slice() else { return self };
        let (n, pos) = (self.args.len(), name.pos);
        if !(name.name == "list_agg" && n == 1 || name.name == "map_agg" && n == 2) || self.star {
            return self;
        }
        let outer = name.name.clone();
        if n == 2 {
            let fields = std::mem::take(&mut self.args).into_iter().map(|a| a.expr).collect();
            let row = Expr::new(ExprKind::Row { fields, explicit: true }, pos);
            self.args = vec![FuncArg { name: None, variadic: false, expr: row }];
        }
        self.name = vec![Ident { name: "array_agg".into(), pos }];
        FuncCall::system(&outer, vec![Expr::new(ExprKind::Func(self), pos)], pos)
    }

    /// A call of one of Postgres's own functions, made by the grammar.
    pub fn system(name: &str, args: Vec<Expr>, pos: Pos) -> FuncCall {
        FuncCall {
            name: vec![Ident { name: "pg_catalog".into(), pos }, Ident { name: name.into(), pos }],
            args: args.into_iter().map(|expr| FuncArg { name: None, variadic: false, expr }).collect(),
            star: false,
            distinct: false,
            order_by: Vec::new(),
            within_group: false,
            filter: None,
            over: None,
            system: true,
        }
    }
}
