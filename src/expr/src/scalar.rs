//! The expression tree: what the binder makes, the optimizer rewrites and `eval` computes.
//!
//! Columns are positions in the input row. Subqueries do not occur here: `sql` keeps them in HIR and lowers them to joins.

use crate::func::FuncDef;
use repr::{ColType, SqlError, SqlType, Value};

/// A scalar expression over the columns of one row.
#[derive(Clone, Debug, PartialEq)]
pub enum Scalar {
    Column(usize),
    Literal(Value, ColType),
    /// Raises when it is evaluated on a row.
    Error(Box<SqlError>, ColType),
    /// A function, operator or cast. NULL arguments give NULL if the function is strict.
    Call {
        func: &'static FuncDef,
        args: Vec<Scalar>,
        ty: ColType,
    },
    /// Three-valued; an operand is evaluated only on rows the ones before it leave undecided.
    And(Vec<Scalar>),
    Or(Vec<Scalar>),
    /// Searched CASE: (condition, result) pairs and ELSE; each evaluated only on the rows that reach it.
    Case {
        branches: Vec<(Scalar, Scalar)>,
        otherwise: Box<Scalar>,
        ty: ColType,
    },
    /// The first argument that is not NULL; later ones are evaluated only where the earlier are NULL.
    Coalesce(Vec<Scalar>, ColType),
    IsNull(Box<Scalar>),
    Not(Box<Scalar>),
}

/// One ORDER BY column: position, direction, where NULLs go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ColumnOrder {
    pub column: usize,
    pub desc: bool,
    pub nulls_last: bool,
}

impl Scalar {
    pub fn literal(value: Value, ty: SqlType) -> Scalar {
        let nullable = value.is_null();
        Scalar::Literal(value, ColType { ty, typmod: -1, nullable })
    }
    pub fn bool(b: bool) -> Scalar {
        Scalar::literal(Value::Bool(b), SqlType::Bool)
    }
    pub fn null(ty: SqlType) -> Scalar {
        Scalar::literal(Value::Null, ty)
    }

    /// The expression's type, given its input's column types.
    pub fn typ(&self, input: &[ColType]) -> ColType {
        match self {
            Scalar::Column(i) => input[*i].clone(),
            Scalar::Literal(_, t) | Scalar::Error(_, t) | Scalar::Coalesce(_, t) => t.clone(),
            Scalar::Call { ty, .. } | Scalar::Case { ty, .. } => ty.clone(),
            Scalar::And(xs) | Scalar::Or(xs) => ColType { ty: SqlType::Bool, typmod: -1, nullable: xs.iter().any(|x| x.typ(input).nullable) },
            Scalar::IsNull(_) => SqlType::Bool.not_null(),
            Scalar::Not(x) => ColType { ty: SqlType::Bool, typmod: -1, nullable: x.typ(input).nullable },
        }
    }

    pub fn children(&self) -> Vec<&Scalar> {
        match self {
            Scalar::Column(_) | Scalar::Literal(..) | Scalar::Error(..) => vec![],
            Scalar::Call { args, .. } => args.iter().collect(),
            Scalar::And(xs) | Scalar::Or(xs) | Scalar::Coalesce(xs, _) => xs.iter().collect(),
            Scalar::Case { branches, otherwise, .. } => branches.iter().flat_map(|(c, r)| [c, r]).chain([&**otherwise]).collect(),
            Scalar::IsNull(x) | Scalar::Not(x) => vec![x],
        }
    }

    pub fn children_mut(&mut self) -> Vec<&mut Scalar> {
        match self {
            Scalar::Column(_) | Scalar::Literal(..) | Scalar::Error(..) => vec![],
            Scalar::Call { args, .. } => args.iter_mut().collect(),
            Scalar::And(xs) | Scalar::Or(xs) | Scalar::Coalesce(xs, _) => xs.iter_mut().collect(),
            Scalar::Case { branches, otherwise, .. } => branches.iter_mut().flat_map(|(c, r)| [c, r]).chain([&mut **otherwise]).collect(),
            Scalar::IsNull(x) | Scalar::Not(x) => vec![x],
        }
    }

    /// Calls `f` on every node, parents first.
    pub fn visit(&self, f: &mut impl FnMut(&Scalar)) {
        f(self);
        for c in self.children() {
            c.visit(f);
        }
    }

    /// Calls `f` on every node, children first.
    pub fn visit_mut(&mut self, f: &mut impl FnMut(&mut Scalar)) {
        for c in self.children_mut() {
            c.visit_mut(f);
        }
        f(self);
    }

    /// The input columns that the expression reads.
    pub fn support(&self) -> std::collections::BTreeSet<usize> {
        let mut s = std::collections::BTreeSet::new();
        self.visit(&mut |x| {
            if let Scalar::Column(i) = x {
                s.insert(*i);
            }
        });
        s
    }

    /// Renumbers columns.
    pub fn permute(&mut self, map: &impl Fn(usize) -> usize) {
        self.visit_mut(&mut |x| {
            if let Scalar::Column(i) = x {
                *i = map(*i);
            }
        });
    }

    /// Replaces column `i` by `with[i]`.
    pub fn substitute(&mut self, with: &[Scalar]) {
        match self {
            Scalar::Column(i) => *self = with[*i].clone(),
            other => other.children_mut().into_iter().for_each(|c| c.substitute(with)),
        }
    }

    /// Whether evaluation can raise an error on some row.
    pub fn can_fail(&self) -> bool {
        let mut fails = false;
        self.visit(&mut |x| match x {
            Scalar::Error(..) => fails = true,
            Scalar::Call { func, args, .. } => fails |= crate::func::call_can_fail(func, args),
            _ => {}
        });
        fails
    }

    /// Whether the value depends on nothing but the columns, whose types are `input`: neither on the session's settings nor on the time.
    pub fn is_immutable(&self, input: &[ColType]) -> bool {
        let mut pure = true;
        self.visit(&mut |x| {
            if let Scalar::Call { func, args, ty } = x {
                pure &= crate::func::call_is_immutable(func, args, &ty.ty, input);
            }
        });
        pure
    }
}
