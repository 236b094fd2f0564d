//! Expressions and queries as PostgreSQL prints them: what `pg_get_viewdef`, `pg_get_expr` and `pg_get_constraintdef` show, and what is stored of
//! defaults and checks.
//!
//! ```text
//!   a>0 and b<>'x'   ──►   ((a > 0) AND (b <> 'x'::text))      pretty: a > 0 AND b <> 'x'::text
//! ```
//!
//! Operators stand in brackets, constants tell their type, casts that nobody wrote are shown. What has no form here gives `None`, and so does what
//! would not be bound to the same plan again: its own text stays.
//!
//! A text is built with marks where a line breaks ([`BREAK`]), since blanks before a break go, and with two forms of a part where what is shown
//! would be bound otherwise than what was written ([`SHOWN`]).

/// Queries.
mod query;

use super::scope::Env;
use super::*;
use crate::ast::{BoolTest, Expr, ExprKind, FuncCall, Indirection, OpName, QuantifiedRhs, SqlValue};
use crate::hir::HirScalar;
use crate::parse::quote_ident;
use expr::catalog::{pseudo, CastContext, ProcKind};
use expr::CatalogView;
use repr::text::to_text;
use repr::types::RegKind;
use repr::{ColType, RelDesc, TextStyle};
use std::rc::Rc;

pub use query::query_text;

/// How it is to be written.
pub struct Style<'v> {
    /// Without the brackets that precedence makes needless.
    pub pretty: bool,
    /// What has its names under the reader's search path.
    pub view: &'v dyn CatalogView,
    /// Relations in constants are called as the view calls them; else as they were written.
    pub by_oid: bool,
}

/// What an expression is to the brackets around it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Var,
    Const,
    /// A call, or a cast that is one.
    Func,
    /// Of an aggregate or window function.
    Aggregate,
    /// Other things that hold themselves together: COALESCE, CASE, ARRAY, ROW.
    Closed,
    Field,
    /// A cast that calls nothing, and whether what is cast needs no brackets.
    Relabel(bool),
    /// An operator, and its sign if it is one of `+ - * / %` between two arguments.
    Operator(Option<char>),
    /// IS NULL, a subquery and the like.
    Test,
    And,
    Or,
    Not,
    Other,
}

/// Where an expression stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Parent {
    Operator { sign: Option<char>, first: bool },
    And,
    Or,
    Not,
    Other,
}

impl Kind {
    /// Whether it needs no brackets of its own there.
    fn is_simple(self, parent: Parent) -> bool {
        match self {
            Kind::Var | Kind::Const | Kind::Func | Kind::Aggregate | Kind::Closed | Kind::Field => true,
            Kind::Relabel(simple) => simple,
            Kind::Other => false,
            Kind::Operator(own) => match parent {
                Parent::Operator { sign, first } => match (own, sign) {
                    (Some(own), Some(sign)) => {
                        let (own, sign) = ("+-".contains(own), "+-".contains(sign));
                        !own && sign || own == sign && first
                    }
                    _ => false,
                },
                Parent::And | Parent::Or | Parent::Not => true,
                Parent::Other => false,
            },
            Kind::Test => matches!(parent, Parent::And | Parent::Or | Parent::Not),
            Kind::And | Kind::Not => matches!(parent, Parent::And | Parent::Or),
            Kind::Or => parent == Parent::Or,
        }
    }
}

/// An expression's text and type. A literal that nothing has given a type yet is its value.
struct Shown {
    text: String,
    ty: ColType,
    untyped: Option<Value>,
    kind: Kind,
}

impl Shown {
    fn new(text: String, ty: SqlType, kind: Kind) -> Option<Shown> {
        Some(Shown { text, ty: ty.nullable(), untyped: None, kind })
    }
    fn literal(v: Value) -> Option<Shown> {
        Some(Shown { text: String::new(), ty: SqlType::Unknown.nullable(), untyped: Some(v), kind: Kind::Const })
    }
}

/// Around two forms of one part: what is shown, and what is bound again to test it.
const SHOWN: char = '\u{1}';
const BOUND: char = '\u{2}';
const END: char = '\u{3}';
/// A new line; blanks before it go.
const BREAK: char = '\u{4}';

/// One of the two forms of a text.
fn form(text: &str, shown: bool) -> String {
    let (mut out, mut inside) = (String::with_capacity(text.len()), Vec::new());
    for c in text.chars() {
        match c {
            SHOWN => inside.push(true),
            BOUND => inside.iter_mut().last().into_iter().for_each(|last| *last = false),
            END => drop(inside.pop()),
            c if inside.iter().all(|form| *form == shown) => out.push(c),
            _ => {}
        }
    }
    broken(&out)
}

/// A part that is shown in one form and bound in another.
fn two_forms(shown: &str, bound: &str) -> String {
    format!("{SHOWN}{shown}{BOUND}{bound}{END}")
}

/// With its lines broken.
fn broken(text: &str) -> String {
    let mut lines = text.split(BREAK);
    let mut out = lines.next().unwrap_or_default().to_owned();
    for line in lines {
        out.truncate(out.trim_end_matches(' ').len());
        out.push('\n');
        out.push_str(line);
    }
    out
}

fn quoted(s: &str) -> String {
    format!("'{}'", s.replace('\'', "''"))
}

/// The names of relations in one query.
struct Scope {
    /// By item of the level.
    names: Vec<String>,
}

pub(super) struct Deparser<'b, 'c> {
    binder: &'b Binder<'c>,
    style: &'b Style<'b>,
    env: Env,
    /// Of a domain: the one column is VALUE.
    of_domain: bool,
    /// By level of `env`; none over one row, whose columns stand alone.
    scopes: Option<Vec<Rc<Scope>>>,
    /// Names of relations in the queries around.
    taken: Rc<Vec<String>>,
    indent: Cell<isize>,
    /// A column of the query's own FROM has been named.
    sibling: Cell<bool>,
    /// How many queries may still be bound: each is bound again for each one that it stands in.
    budget: Rc<Cell<usize>>,
}

/// Queries beyond this are shown as they are stored.
const QUERIES_MAX: usize = 500;

impl<'b, 'c> Deparser<'b, 'c> {
    fn over_row(binder: &'b Binder<'c>, style: &'b Style<'b>, env: &Env) -> Deparser<'b, 'c> {
        let of_domain = env.clause() == Some(super::scope::Clause::Check) && env.level().is_some_and(|l| l.items.iter().all(|i| i.name.is_empty()));
        let (indent, sibling, budget) = (Cell::new(0), Cell::new(false), Rc::default());
        Deparser { binder, style, env: env.clone(), of_domain, scopes: None, taken: Rc::default(), indent, sibling, budget }
    }

    /// Begins a line with `text`, indented by `before` more than the one above and `plus`, and those that follow by `after` more.
    fn line(&self, text: &str, before: isize, after: isize, plus: isize) -> String {
        let at = self.indent.get() + before;
        // Deep ones begin at the left again.
        let blanks = if at < 40 { at.max(0) } else { (40 + (at - 40) / 4) % 40 } + plus;
        self.indent.set((at + after).max(0));
        format!("{BREAK}{}{text}", " ".repeat(usize::try_from(blanks).unwrap_or(0)))
    }

    /// The name of a type behind `::`.
    fn type_name(&self, ty: &SqlType, typmod: i32) -> String {
        match ty {
            SqlType::Bpchar if typmod < 0 => "bpchar".into(),
            SqlType::List(_) | SqlType::Map(_) => ty.sql_name(),
            _ => expr::func::system::format_type(ty.oid(), Some(typmod), self.style.view),
        }
    }

    /// A constant.
    fn constant(&self, v: &Value, ty: &SqlType) -> String {
        let label = |s: &str| format!("{}::{}", quoted(s), self.type_name(ty, -1));
        let text = to_text(v, ty, &TextStyle::default());
        match v {
            Value::Null => format!("NULL::{}", self.type_name(ty, -1)),
            Value::Bool(b) => b.to_string(),
            Value::Int4(n) if *n >= 0 && *ty == SqlType::Int4 => text,
            Value::Numeric(_) if text.starts_with(|c: char| c.is_ascii_digit()) => text,
            Value::UInt4(oid) if *ty == SqlType::Reg(RegKind::Class) => label(&self.style.view.relation_name(*oid).unwrap_or(text)),
            _ => label(&text),
        }
    }

    /// In the brackets that stand around it whatever is around them.
    fn own(&self, text: String) -> String {
        if self.style.pretty {
            text
        } else {
            format!("({text})")
        }
    }

    /// With the brackets that it needs there.
    fn inside(&self, s: &Shown, parent: Parent) -> String {
        if self.style.pretty && !s.kind.is_simple(parent) {
            format!("({})", s.text)
        } else {
            s.text.clone()
        }
    }

    /// The expression as a value of `to`, if that is given; casts to it that nobody wrote are left out.
    fn text(&self, e: &Expr, to: Option<&ColType>) -> Option<String> {
        let shown = self.show(e)?;
        match (&shown.untyped, to) {
            (Some(_), Some(to)) => Some(self.typed(shown, &to.ty.base().clone().nullable())?.text),
            (Some(_), None) => Some(self.typed_as(shown, &SqlType::Text)?.text),
            (None, _) => Some(shown.text),
        }
    }

    /// Of a type.
    fn known(&self, s: Shown) -> Option<Shown> {
        match s.untyped {
            Some(_) => self.typed_as(s, &SqlType::Text),
            None => Some(s),
        }
    }

    /// What a cast is as an expression.
    fn cast_kind(&self, s: &Shown, to: &ColType) -> Kind {
        let (from, oid) = (s.ty.ty.base().oid(), to.ty.oid());
        let by_function = to.typmod >= 0 || expr::catalog::casts().iter().any(|c| c.source == from && c.target == oid && c.func != 0);
        if by_function {
            Kind::Func
        } else {
            Kind::Relabel(s.kind.is_simple(Parent::Other))
        }
    }

    /// As a value of another type, by a cast if need be.
    fn typed(&self, s: Shown, to: &ColType) -> Option<Shown> {
        let text = match &s.untyped {
            // By its name, not by its number.
            Some(Value::Text(name)) if matches!(to.ty, SqlType::Reg(_)) && !self.style.by_oid => format!("{}::{}", quoted(name), self.type_name(&to.ty, -1)),
            Some(v) => {
                let ty = SqlType::Unknown.nullable().with_nullable(v.is_null());
                let made = self.binder.coerce(HirScalar::Literal(v.clone(), ty), &to.clone().with_typmod(-1), CastContext::Explicit, 0).ok()?;
                match made {
                    HirScalar::Literal(v, _) => self.constant(&v, &to.ty),
                    _ => return None,
                }
            }
            None if s.ty.ty == to.ty => return Some(s),
            None => {
                let kind = self.cast_kind(&s, to);
                let text = format!("{}::{}", self.own(self.inside(&s, Parent::Other)), self.type_name(&to.ty, to.typmod));
                return Some(Shown { text, ty: to.clone(), untyped: None, kind });
            }
        };
        Some(Shown { text, ty: to.clone(), untyped: None, kind: Kind::Const })
    }

    fn typed_as(&self, s: Shown, to: &SqlType) -> Option<Shown> {
        self.typed(s, &to.clone().nullable())
    }

    fn boolean(&self, e: &Expr) -> Option<Shown> {
        self.typed_as(self.show(e)?, &SqlType::Bool)
    }

    /// Several as one type.
    fn common(&self, all: Vec<Shown>) -> Option<(Vec<String>, SqlType)> {
        let types: Vec<(SqlType, Pos)> = all.iter().map(|s| (s.ty.ty.clone(), 0)).collect();
        let ty = self.binder.common_type(&types, "").ok()?;
        let texts = all.into_iter().map(|s| Some(self.typed_as(s, &ty)?.text)).collect::<Option<Vec<_>>>()?;
        Some((texts, ty))
    }

    fn all(&self, es: &[Expr]) -> Option<Vec<Shown>> {
        es.iter().map(|e| self.show(e)).collect()
    }

    /// The operator and its two sides, each with the cast and the brackets that it needs.
    fn sides(&self, op: &OpName, left: Shown, right: Shown, parent: impl Fn(&str, bool) -> Parent) -> Option<(String, &'static str, String, SqlType)> {
        if op.schema.as_deref().is_some_and(|s| s != "pg_catalog") {
            return None;
        }
        let (o, l, r, ret) = self.binder.operator(op, Some(&left.ty.ty), &right.ty.ty).ok()?;
        if [o.left, o.right].contains(&pseudo::RECORD) {
            return None;
        }
        let (left, right) = (self.typed_as(left, &l?)?, self.typed_as(right, &r)?);
        Some((self.inside(&left, parent(o.name, true)), o.name, self.inside(&right, parent(o.name, false)), ret))
    }

    fn operator(&self, op: &OpName, left: Shown, right: Shown) -> Option<Shown> {
        let (left, name, right, ret) = self.sides(op, left, right, |name, first| Parent::Operator { sign: sign(name), first })?;
        Shown::new(self.own(format!("{left} {name} {right}")), ret, Kind::Operator(sign(name)))
    }

    /// Joined by AND or OR.
    fn joined(&self, parts: &[Shown], and: bool) -> Option<Shown> {
        let (word, parent, kind) = if and { (" AND ", Parent::And, Kind::And) } else { (" OR ", Parent::Or, Kind::Or) };
        let texts: Vec<String> = parts.iter().map(|p| self.inside(p, parent)).collect();
        Shown::new(self.own(texts.join(word)), SqlType::Bool, kind)
    }

    fn negated(&self, s: &Shown) -> Option<Shown> {
        Shown::new(self.own(format!("NOT {}", self.inside(s, Parent::Not))), SqlType::Bool, Kind::Not)
    }

    fn show(&self, e: &Expr) -> Option<Shown> {
        stacker::maybe_grow(128 * 1024, 2 * 1024 * 1024, || self.show_inner(e))
    }

    fn show_inner(&self, e: &Expr) -> Option<Shown> {
        let op = |name: &str| super::scalar::op_at(name, 0);
        match &*e.kind {
            ExprKind::Null => Shown::literal(Value::Null),
            ExprKind::String(s) => Shown::literal(Value::text(s.clone())),
            ExprKind::Bool(b) => Shown::new(b.to_string(), SqlType::Bool, Kind::Const),
            ExprKind::BitString(bits) => Shown::new(format!("'{bits}'::\"bit\""), SqlType::Bit, Kind::Const),
            ExprKind::Number(_) => match self.binder.expr(e, &self.env).ok()? {
                HirScalar::Literal(v, t) => Shown::new(self.constant(&v, &t.ty), t.ty, Kind::Const),
                _ => None,
            },
            ExprKind::Unary { op: o, arg } if o.name == "-" && matches!(&*arg.kind, ExprKind::Number(_)) => {
                let ExprKind::Number(n) = &*arg.kind else { return None };
                match self.binder.expr(arg, &self.env).ok()? {
                    HirScalar::Literal(_, t) => Shown::new(format!("'-{n}'::{}", self.type_name(&t.ty, -1)), t.ty, Kind::Const),
                    _ => None,
                }
            }
            ExprKind::Unary { op: o, arg } if o.schema.as_deref().is_none_or(|s| s == "pg_catalog") => {
                let arg = self.show(arg)?;
                let (o, _, r, ret) = self.binder.operator(o, None, &arg.ty.ty).ok()?;
                let arg = self.typed_as(arg, &r)?;
                Shown::new(self.own(format!("{} {}", o.name, self.inside(&arg, Parent::Operator { sign: None, first: true }))), ret, Kind::Operator(None))
            }
            ExprKind::Column(parts) => match &self.scopes {
                Some(scopes) => self.column(parts, scopes),
                None => {
                    let ty = self.binder.expr(e, &self.env).ok()?.typ();
                    let text = if self.of_domain { "VALUE".to_owned() } else { quote_ident(&parts.last()?.name) };
                    Some(Shown { text, ty, untyped: None, kind: Kind::Var })
                }
            },
            ExprKind::Binary { op, left, right } => match (&*left.kind, &*right.kind) {
                (ExprKind::Row { fields: a, .. }, ExprKind::Row { fields: b, .. }) => self.rows(op, a, b),
                (ExprKind::Row { .. }, _) | (_, ExprKind::Row { .. }) => None,
                _ => self.operator(op, self.show(left)?, self.show(right)?),
            },
            ExprKind::Like { op: o, arg, pattern } => self.operator(&op(o), self.show(arg)?, self.show(pattern)?),
            ExprKind::And(xs) | ExprKind::Or(xs) => {
                let parts = xs.iter().map(|x| self.boolean(x)).collect::<Option<Vec<_>>>()?;
                self.joined(&parts, matches!(&*e.kind, ExprKind::And(_)))
            }
            ExprKind::Not(x) => self.negated(&self.boolean(x)?),
            ExprKind::IsNull { arg, not } => {
                let arg = self.known(self.show(arg)?)?;
                let text = format!("{} IS {}NULL", self.inside(&arg, Parent::Other), if *not { "NOT " } else { "" });
                Shown::new(self.own(text), SqlType::Bool, Kind::Test)
            }
            ExprKind::IsBool { arg, test, not } => {
                let word = match test {
                    BoolTest::True => "TRUE",
                    BoolTest::False => "FALSE",
                    BoolTest::Unknown => "UNKNOWN",
                };
                let text = format!("{} IS {}{word}", self.inside(&self.boolean(arg)?, Parent::Other), if *not { "NOT " } else { "" });
                Shown::new(self.own(text), SqlType::Bool, Kind::Test)
            }
            ExprKind::IsDistinct { left, right, not } => {
                let is_null = |e: &Expr| matches!(&*e.kind, ExprKind::Null);
                if let Some(other) = [(left, right), (right, left)].into_iter().find(|s| is_null(s.0)).map(|s| s.1) {
                    return self.show(&Expr::new(ExprKind::IsNull { arg: other.clone(), not: !*not }, e.pos));
                }
                let (left, _, right, _) = self.sides(&op("="), self.show(left)?, self.show(right)?, |_, _| Parent::Other)?;
                let distinct = Shown::new(self.own(format!("{left} IS DISTINCT FROM {right}")), SqlType::Bool, Kind::Test)?;
                if !*not {
                    return Some(distinct);
                }
                // There it is the negation of the other, here it has a function of its own.
                let shown = self.negated(&distinct)?;
                Some(Shown { text: two_forms(&shown.text, &format!("({left} IS NOT DISTINCT FROM {right})")), ..shown })
            }
            ExprKind::Between { arg, low, high, not, symmetric } => {
                let (a, b) = if *not { ("<", ">") } else { (">=", "<=") };
                let within = |low: &Expr, high: &Expr| {
                    let first = self.operator(&op(a), self.show(arg)?, self.show(low)?)?;
                    let second = self.operator(&op(b), self.show(arg)?, self.show(high)?)?;
                    self.joined(&[first, second], !*not)
                };
                match symmetric {
                    false => within(low, high),
                    true => self.joined(&[within(low, high)?, within(high, low)?], *not),
                }
            }
            ExprKind::InList { arg, list, not } => self.in_list(arg, list, *not),
            ExprKind::Quantified { arg, op, all, rhs } => match rhs {
                QuantifiedRhs::Array(a) => {
                    let (arg, array) = (self.show(arg)?, self.show(a)?);
                    let elem = match &array.ty.ty {
                        SqlType::Array(elem) => (**elem).clone(),
                        SqlType::Unknown => SqlType::Unknown,
                        _ => return None,
                    };
                    let (o, l, r, _) = self.binder.operator(op, Some(&arg.ty.ty), &elem).ok()?;
                    let (arg, array) = (self.typed_as(arg, &l?)?, self.typed_as(array, &r.array_of())?);
                    let text = format!("{} {} {} ({})", self.inside(&arg, Parent::Other), o.name, all_or_any(*all), self.inside(&array, Parent::Other));
                    Shown::new(self.own(text), SqlType::Bool, Kind::Other)
                }
                QuantifiedRhs::Query(q) => self.quantified(arg, op, *all, q),
            },
            ExprKind::InSubquery { arg, query, not } => {
                let found = self.quantified(arg, &op("="), false, query)?;
                if *not {
                    self.negated(&found)
                } else {
                    Some(found)
                }
            }
            ExprKind::Exists(q) => Shown::new(format!("(EXISTS ({}))", self.subquery(q, None)?), SqlType::Bool, Kind::Test),
            ExprKind::Subquery(q) => {
                let ty = self.query_types(q)?.into_iter().next()?;
                Shown::new(format!("({})", self.subquery(q, None)?), ty.ty, Kind::Test)
            }
            ExprKind::ArraySubquery(q) => {
                let ty = self.query_types(q)?.into_iter().next()?;
                Shown::new(format!("ARRAY({})", self.subquery(q, None)?), ty.ty.array_of(), Kind::Test)
            }
            ExprKind::Array(xs) => self.array(xs, None),
            ExprKind::Row { fields, .. } => {
                let fields = fields.iter().map(|f| self.known(self.show(f)?)).collect::<Option<Vec<_>>>()?;
                let ty = self.binder.expr(e, &self.env).ok()?.typ();
                let texts: Vec<&str> = fields.iter().map(|f| f.text.as_str()).collect();
                Shown::new(format!("ROW({})", texts.join(", ")), ty.ty, Kind::Closed)
            }
            ExprKind::Coalesce(xs) => {
                let (texts, ty) = self.common(self.all(xs)?)?;
                Shown::new(format!("COALESCE({})", texts.join(", ")), ty, Kind::Closed)
            }
            ExprKind::MinMax { greatest, args } => {
                let (texts, ty) = self.common(self.all(args)?)?;
                Shown::new(format!("{}({})", if *greatest { "GREATEST" } else { "LEAST" }, texts.join(", ")), ty, Kind::Closed)
            }
            ExprKind::NullIf(a, b) => {
                let (left, right) = (self.show(a)?, self.show(b)?);
                let (_, l, r, _) = self.binder.operator(&op("="), Some(&left.ty.ty), &right.ty.ty).ok()?;
                let l = l?;
                Shown::new(format!("NULLIF({}, {})", self.typed_as(left, &l)?.text, self.typed_as(right, &r)?.text), l, Kind::Closed)
            }
            ExprKind::Case { operand, branches, otherwise } => self.case(operand.as_ref(), branches, otherwise.as_ref()),
            ExprKind::Cast { arg, ty } => self.cast(arg, &self.binder.resolve_type(ty).ok()?),
            ExprKind::Collate { arg, collation } => {
                let arg = self.known(self.show(arg)?)?;
                let text = format!("{} COLLATE {}", self.inside(&arg, Parent::Other), quote_collation(collation.last()?));
                Shown::new(self.own(text), arg.ty.ty, Kind::Other)
            }
            ExprKind::Indirection { arg, path } => self.indirection(e, arg, path),
            ExprKind::Grouping(args) => {
                let texts = self.all(args)?.into_iter().map(|a| a.text).collect::<Vec<_>>();
                Shown::new(format!("GROUPING({})", texts.join(", ")), SqlType::Int4, Kind::Closed)
            }
            ExprKind::SqlValue(what, precision) => {
                let (word, ty) = match what {
                    SqlValue::CurrentDate => ("CURRENT_DATE", SqlType::Date),
                    SqlValue::CurrentTime => ("CURRENT_TIME", SqlType::TimeTz),
                    SqlValue::CurrentTimestamp => ("CURRENT_TIMESTAMP", SqlType::TimestampTz),
                    SqlValue::LocalTime => ("LOCALTIME", SqlType::Time),
                    SqlValue::LocalTimestamp => ("LOCALTIMESTAMP", SqlType::Timestamp),
                    SqlValue::CurrentUser => ("CURRENT_USER", SqlType::Name),
                    SqlValue::SessionUser => ("SESSION_USER", SqlType::Name),
                    _ => return None,
                };
                Shown::new(precision.map_or_else(|| word.to_owned(), |p| format!("{word}({p})")), ty, Kind::Closed)
            }
            ExprKind::Func(call) => self.call(call),
            ExprKind::Unary { .. } | ExprKind::Param(_) | ExprKind::Star(_) | ExprKind::Default => None,
        }
    }

    fn array(&self, xs: &[Expr], elem: Option<&SqlType>) -> Option<Shown> {
        let shown = self.all(xs)?;
        let (texts, ty) = match elem {
            Some(t) => (shown.into_iter().map(|s| Some(self.typed_as(s, t)?.text)).collect::<Option<Vec<_>>>()?, t.clone()),
            None if xs.is_empty() => return None,
            None => self.common(shown)?,
        };
        let ty = if matches!(ty, SqlType::Array(_)) { ty } else { ty.array_of() };
        let label = if texts.is_empty() { format!("::{}", self.type_name(&ty, -1)) } else { String::new() };
        Shown::new(format!("ARRAY[{}]{label}", texts.join(", ")), ty, Kind::Closed)
    }

    fn cast(&self, arg: &Expr, to: &ColType) -> Option<Shown> {
        if let (ExprKind::Array(xs), SqlType::Array(elem)) = (&*arg.kind, &to.ty) {
            // In a text that was written here it stands around the list of IN, and stays there.
            let stored = self.style.by_oid && self.scopes.is_none() && !xs.is_empty();
            if to.typmod < 0 && !stored && !xs.iter().any(|x| matches!(&*x.kind, ExprKind::Array(_))) {
                return self.array(xs, Some(elem));
            }
        }
        let arg = self.show(arg)?;
        let (text, kind) = match &arg.untyped {
            Some(_) if matches!(to.ty, SqlType::Domain(_)) => {
                let base = self.typed(arg, &to.ty.base().clone().nullable())?;
                (format!("{}::{}", self.own(base.text), self.type_name(&to.ty, -1)), Kind::Relabel(true))
            }
            Some(_) => {
                let constant = self.typed(arg, to)?.text;
                match to.typmod {
                    -1 => (constant, Kind::Const),
                    m => (format!("{}::{}", constant.strip_suffix(&format!("::{}", self.type_name(&to.ty, -1)))?, self.type_name(&to.ty, m)), Kind::Func),
                }
            }
            None if arg.ty.ty == to.ty && to.typmod < 0 => (arg.text, arg.kind),
            None => {
                let kind = self.cast_kind(&arg, to);
                (format!("{}::{}", self.own(self.inside(&arg, Parent::Other)), self.type_name(&to.ty, to.typmod)), kind)
            }
        };
        Some(Shown { text, ty: to.clone(), untyped: None, kind })
    }

    fn case(&self, operand: Option<&Expr>, branches: &[(Expr, Expr)], otherwise: Option<&Expr>) -> Option<Shown> {
        let type_of = |e: &Expr| Some((self.binder.expr(e, &self.env).ok()?.typ().ty, 0));
        // Postgres asks the last one first.
        let mut types = vec![otherwise.map_or(Some((SqlType::Unknown, 0)), type_of)?];
        for b in branches {
            types.push(type_of(&b.1)?);
        }
        let ty = self.binder.common_type(&types, "").ok()?;
        let result = |e: &Expr| Some(self.typed_as(self.show(e)?, &ty)?.text);
        let mut out = self.line("CASE", 0, 4, 0);
        let operand = match operand {
            Some(e) => Some(self.known(self.show(e)?)?),
            None => None,
        };
        if let Some(o) = &operand {
            out += &format!(" {}", o.text);
        }
        for (condition, value) in branches {
            out += &self.line("WHEN ", 0, 0, 0);
            out += &match &operand {
                Some(o) => {
                    let value = self.show(condition)?;
                    let (_, _, r, _) = self.binder.operator(&super::scalar::op_at("=", 0), Some(&o.ty.ty), &value.ty.ty).ok()?;
                    self.typed_as(value, &r)?.text
                }
                None => self.boolean(condition)?.text,
            };
            out += &format!(" THEN {}", result(value)?);
        }
        out += &self.line("ELSE ", 0, 0, 0);
        out += &match otherwise {
            Some(e) => result(e)?,
            None => format!("NULL::{}", self.type_name(&ty, -1)),
        };
        out += &self.line("END", -4, 0, 0);
        Shown::new(out, ty, Kind::Closed)
    }

    /// For its type alone.
    fn show_quietly(&self, e: &Expr) -> Option<Shown> {
        let indent = self.indent.get();
        let s = self.show(e);
        self.indent.set(indent);
        s
    }

    /// `(a, b) < (c, d)`, field by field where it is = or <>.
    fn rows(&self, op: &OpName, a: &[Expr], b: &[Expr]) -> Option<Shown> {
        if a.len() != b.len() {
            return None;
        }
        if matches!(op.name.as_str(), "=" | "<>" | "!=") {
            let parts = a.iter().zip(b).map(|(x, y)| self.operator(op, self.show(x)?, self.show(y)?)).collect::<Option<Vec<_>>>()?;
            return match parts.len() {
                1 => parts.into_iter().next(),
                _ => self.joined(&parts, op.name == "="),
            };
        }
        let sides = a.iter().zip(b).map(|(x, y)| self.sides(op, self.show(x)?, self.show(y)?, |_, _| Parent::Other));
        let sides = sides.collect::<Option<Vec<_>>>()?;
        let row = |texts: Vec<&str>| format!("ROW({})", texts.join(", "));
        let (left, right) = (row(sides.iter().map(|s| s.0.as_str()).collect()), row(sides.iter().map(|s| s.2.as_str()).collect()));
        Shown::new(format!("({left} {} {right})", op.name), SqlType::Bool, Kind::Other)
    }

    fn indirection(&self, whole: &Expr, arg: &Expr, path: &[Indirection]) -> Option<Shown> {
        let (last, front) = path.split_last()?;
        let ty = self.binder.expr(whole, &self.env).ok()?.typ();
        // Subscripts in a row are one.
        let subscripts = path.iter().rev().take_while(|p| matches!(p, Indirection::Index(_) | Indirection::Slice(..))).count();
        let base = |n: usize| {
            let front = &path[..path.len() - n];
            match front.is_empty() {
                true => self.show(arg),
                false => self.show(&Expr::new(ExprKind::Indirection { arg: arg.clone(), path: front.to_vec() }, arg.pos)),
            }
        };
        if let Indirection::Field(name) = last {
            let _ = front;
            let row = base(1)?;
            let text = match row.kind {
                Kind::Field => row.text,
                _ => format!("({})", row.text),
            };
            return Some(Shown { text: format!("{text}.{}", quote_ident(&name.name)), ty, untyped: None, kind: Kind::Field });
        }
        let value = base(subscripts)?;
        let is_array = matches!(value.ty.ty.base(), SqlType::Array(_));
        let key = |e: &Expr| {
            let k = self.show(e)?;
            Some(if is_array { self.typed_as(k, &SqlType::Int4)?.text } else { self.known(k)?.text })
        };
        let mut text = if matches!(value.kind, Kind::Var | Kind::Field) { value.text } else { format!("({})", value.text) };
        // One slice makes all of them slices.
        let slices = path[path.len() - subscripts..].iter().any(|p| matches!(p, Indirection::Slice(..)));
        for p in &path[path.len() - subscripts..] {
            text += &match p {
                Indirection::Index(e) if slices => format!("[1:{}]", key(e)?),
                Indirection::Index(e) => format!("[{}]", key(e)?),
                Indirection::Slice(a, b) => {
                    let side = |e: &Option<Expr>| e.as_ref().map_or(Some(String::new()), &key);
                    format!("[{}:{}]", side(a)?, side(b)?)
                }
                _ => return None,
            };
        }
        Some(Shown { text, ty, untyped: None, kind: Kind::Closed })
    }

    fn call(&self, call: &FuncCall) -> Option<Shown> {
        let call = &call.clone().aggregate_by_array();
        let path: Vec<&str> = call.name.iter().map(|n| n.name.as_str()).collect();
        let name = *path.last()?;
        let kind = self.binder.kind_of(&path, call.within_group)?;
        if call.args.iter().any(|a| a.name.is_some()) {
            return None;
        }
        let args = call.args.iter().map(|a| self.show(&a.expr)).collect::<Option<Vec<_>>>()?;
        let within = if call.within_group { call.order_by.iter().map(|o| self.show_quietly(&o.expr)).collect::<Option<Vec<_>>>()? } else { Vec::new() };
        let types: Vec<SqlType> = args.iter().chain(&within).map(|a| a.ty.ty.clone()).collect();
        let spread = call.args.last().is_some_and(|a| a.variadic);
        let r = self.binder.function(&path, &types, &vec![None; types.len()], spread, 0).ok()?;
        let ty = self.binder.return_type(r.proc, &r.ret, &types);
        // What a parameter of any type is given has none.
        let any =
            |i: usize| r.proc.args.get(i).copied().unwrap_or(r.proc.variadic) == pseudo::ANY || r.proc.variadic == pseudo::ANY && i + 1 >= r.proc.args.len();
        let gathered = r.variadic.as_ref().filter(|v| r.proc.variadic != pseudo::ANY && v.0 <= args.len()).map(|v| (args.len() - v.0, v.1.clone()));
        let n = args.len();
        let mut texts = Vec::with_capacity(n);
        for (i, a) in args.into_iter().enumerate() {
            let to = match &gathered {
                Some((first, elem)) if i >= *first => elem.clone(),
                _ => r.args.get(i).cloned().unwrap_or_else(|| a.ty.ty.clone()),
            };
            texts.push(match &a.untyped {
                Some(Value::Text(s)) if any(i) => Shown { text: quoted(s), ..a },
                Some(Value::Null) if any(i) => Shown { text: "NULL".into(), ..a },
                None if any(i) || to.oid() == pseudo::RECORD => a,
                _ => self.typed_as(a, &to)?,
            });
        }
        if let Some((first, _)) = gathered.filter(|g| g.0 < n) {
            let rest: Vec<String> = texts.drain(first..).map(|t| t.text).collect();
            texts.push(Shown { text: format!("VARIADIC ARRAY[{}]", rest.join(", ")), ty: ty.clone().nullable(), untyped: None, kind: Kind::Closed });
        } else if let (true, Some(last)) = (spread, texts.last_mut()) {
            last.text.insert_str(0, "VARIADIC ");
        }
        if kind == ProcKind::Function {
            if call.star || call.distinct || !call.order_by.is_empty() || call.filter.is_some() || call.over.is_some() {
                return None;
            }
            let text = match call.system.then(|| self.special(name, &texts, &call.args)).flatten() {
                Some(text) => text,
                None => format!("{}({})", quote_ident(name), list(&texts)),
            };
            return Shown::new(text, ty, Kind::Func);
        }
        let mut out = format!("{}({}", quote_ident(name), if call.distinct { "DISTINCT " } else { "" });
        out += if call.star { "*" } else { "" };
        out += &list(&texts);
        if call.within_group {
            let kinds: Vec<SqlType> = r.args.iter().skip(n).cloned().collect();
            out += &format!(") WITHIN GROUP (ORDER BY {}", self.order_list(&call.order_by, &kinds)?);
        } else if !call.order_by.is_empty() {
            out += &format!(" ORDER BY {}", self.order_list(&call.order_by, &[])?);
        }
        if let Some(f) = &call.filter {
            out += &format!(") FILTER (WHERE {}", self.boolean(f)?.text);
        }
        out.push(')');
        if let Some(over) = &call.over {
            out += &match over {
                crate::ast::Over::Name(n) => format!(" OVER {}", quote_ident(&n.name)),
                crate::ast::Over::Spec(s) => format!(" OVER {}", self.window(s)?),
            };
        }
        Shown::new(out, ty, Kind::Aggregate)
    }

    /// Functions that SQL gives a syntax of their own.
    fn special(&self, name: &str, args: &[Shown], written: &[crate::ast::FuncArg]) -> Option<String> {
        let t = |i: usize| args.get(i).map(|a: &Shown| a.text.as_str());
        let p = |i: usize| args.get(i).map(|a| self.inside(a, Parent::Other));
        let word = |i: usize| match written.get(i).map(|a| &*a.expr.kind) {
            Some(ExprKind::String(s)) => Some(s.as_str()),
            _ => None,
        };
        Some(match (name, args.len()) {
            ("timezone", 2) => format!("({} AT TIME ZONE {})", p(1)?, p(0)?),
            ("overlaps", 4) => format!("(({}, {}) OVERLAPS ({}, {}))", t(0)?, t(1)?, t(2)?, t(3)?),
            ("extract", 2) => format!("EXTRACT({} FROM {})", word(0)?, t(1)?),
            ("is_normalized", 1) => format!("({} IS NORMALIZED)", p(0)?),
            ("is_normalized", 2) => format!("({} IS {} NORMALIZED)", p(0)?, word(1)?),
            ("pg_collation_for", 1) => format!("COLLATION FOR ({})", t(0)?),
            ("normalize", 1) => format!("NORMALIZE({})", t(0)?),
            ("normalize", 2) => format!("NORMALIZE({}, {})", t(0)?, word(1)?),
            ("overlay", 3) => format!("OVERLAY({} PLACING {} FROM {})", t(0)?, t(1)?, t(2)?),
            ("overlay", 4) => format!("OVERLAY({} PLACING {} FROM {} FOR {})", t(0)?, t(1)?, t(2)?, t(3)?),
            ("position", 2) => format!("POSITION(({}) IN ({}))", t(1)?, t(0)?),
            ("substring", 2) if args[1].ty.ty.base() == &SqlType::Int4 => format!("SUBSTRING({} FROM {})", t(0)?, t(1)?),
            ("substring", 2) => format!("SUBSTRING({} FROM {})", t(0)?, t(1)?),
            ("substring", 3) if args[1].ty.ty.base() == &SqlType::Int4 => format!("SUBSTRING({} FROM {} FOR {})", t(0)?, t(1)?, t(2)?),
            ("substring", 3) => format!("SUBSTRING({} SIMILAR {} ESCAPE {})", t(0)?, t(1)?, t(2)?),
            ("btrim" | "ltrim" | "rtrim", 1 | 2) => {
                let side = match name {
                    "btrim" => "BOTH",
                    "ltrim" => "LEADING",
                    _ => "TRAILING",
                };
                format!("TRIM({side}{} FROM {})", t(1).map_or(String::new(), |c| format!(" {c}")), t(0)?)
            }
            _ => return None,
        })
    }

    fn in_list(&self, arg: &Expr, list: &[Expr], not: bool) -> Option<Shown> {
        let eq = super::scalar::op_at(if not { "<>" } else { "=" }, 0);
        let pair = |e: &Expr| match (&*arg.kind, &*e.kind) {
            (ExprKind::Row { fields: a, .. }, ExprKind::Row { fields: b, .. }) => self.rows(&eq, a, b),
            _ => self.operator(&eq, self.show(arg)?, self.show(e)?),
        };
        let one_by_one = |parts: Vec<Shown>| {
            let mut parts = parts.into_iter();
            let first = parts.next()?;
            parts.try_fold(first, |all, next| self.joined(&[all, next], not))
        };
        // NOT IN is bound to a negation: that is written for the test, the pairs are what is shown.
        let pairs = || {
            let parts = list.iter().map(pair).collect::<Option<Vec<_>>>()?;
            let shown = one_by_one(parts)?;
            if !not {
                return Some(shown);
            }
            let arg = self.show(arg)?;
            let item = |e: &Expr| match &*e.kind {
                ExprKind::String(_) => self.typed_as(self.show(e)?, &arg.ty.ty),
                _ => self.show(e),
            };
            let items = list.iter().map(|e| Some(item(e)?.text)).collect::<Option<Vec<_>>>()?;
            let again = format!("({} NOT IN ({}))", arg.text, items.join(", "));
            Shown::new(two_forms(&shown.text, &again), SqlType::Bool, shown.kind)
        };
        if list.len() == 1 {
            return pairs();
        }
        // Only what is of the query itself goes into an array; rows and columns are compared one by one.
        let plain = |e: &&Expr| {
            let mut constant = true;
            crate::ast::walk::visit(e, &mut |x| {
                constant &= !matches!(&*x.kind, ExprKind::Column(_) | ExprKind::Row { .. } | ExprKind::Subquery(_));
                constant
            });
            constant
        };
        let (constants, others): (Vec<&Expr>, Vec<&Expr>) = list.iter().partition(plain);
        if matches!(&*arg.kind, ExprKind::Row { .. }) || constants.len() < 2 {
            return pairs();
        }
        let shown = self.show(arg)?;
        let items = constants.iter().map(|e| self.show(e)).collect::<Option<Vec<_>>>()?;
        let mut types: Vec<(SqlType, Pos)> = vec![(shown.ty.ty.clone(), 0)];
        types.extend(items.iter().map(|i| (i.ty.ty.clone(), 0)));
        let common = self.binder.common_type(&types, "").ok()?;
        if matches!(common, SqlType::Array(_)) {
            // There are no arrays of arrays.
            return pairs();
        }
        let (o, l, r, _) = self.binder.operator(&eq, Some(&shown.ty.ty), &common).ok()?;
        let texts = items.into_iter().map(|i| Some(self.typed_as(i, &common)?.text)).collect::<Option<Vec<_>>>()?;
        let mut array = format!("ARRAY[{}]", texts.join(", "));
        if r != common {
            array = format!("{}::{}", self.own(array), self.type_name(&r.array_of(), -1));
        }
        // IN is bound to a comparison with each: that is written for the test, the array is what is shown.
        let mut typed = texts.into_iter();
        let all = list.iter().map(|e| if plain(&e) { typed.next() } else { Some(self.show(e)?.text) }).collect::<Option<Vec<_>>>()?;
        let again = format!("({} {}IN ({}))", shown.text, if not { "NOT " } else { "" }, all.join(", "));
        let side = self.typed_as(shown, &l?)?;
        let text = self.own(format!("{} {} {} ({array})", self.inside(&side, Parent::Other), o.name, all_or_any(not)));
        let mut parts = vec![Shown::new(text, SqlType::Bool, Kind::Other)?];
        for e in others {
            parts.push(pair(e)?);
        }
        let whole = one_by_one(parts)?;
        Shown::new(two_forms(&whole.text, &again), SqlType::Bool, whole.kind)
    }
}

fn all_or_any(all: bool) -> &'static str {
    if all {
        "ALL"
    } else {
        "ANY"
    }
}

/// The operators whose precedence is told.
fn sign(name: &str) -> Option<char> {
    let mut chars = name.chars();
    match (chars.next(), chars.next()) {
        (Some(c), None) if "+-*/%".contains(c) => Some(c),
        _ => None,
    }
}

fn list(parts: &[Shown]) -> String {
    parts.iter().map(|p| p.text.as_str()).collect::<Vec<_>>().join(", ")
}

fn quote_collation(name: &str) -> String {
    if name.starts_with(|c: char| c.is_ascii_lowercase()) {
        quote_ident(name)
    } else {
        format!("\"{name}\"")
    }
}

impl Binder<'_> {
    /// An expression's text in PostgreSQL's form, if `bind` makes of it what it has made of the expression itself.
    pub(super) fn deparsed(
        &self,
        e: &Expr,
        env: &Env,
        to: Option<&ColType>,
        bound: &HirScalar,
        bind: &dyn Fn(&Expr) -> Result<HirScalar, SqlError>,
    ) -> Option<String> {
        let style = Style { pretty: false, view: &*self.catalog.eval_ctx().catalog, by_oid: false };
        self.deparsed_as(&style, e, env, to, bound, bind)
    }

    fn deparsed_as(
        &self,
        style: &Style<'_>,
        e: &Expr,
        env: &Env,
        to: Option<&ColType>,
        bound: &HirScalar,
        bind: &dyn Fn(&Expr) -> Result<HirScalar, SqlError>,
    ) -> Option<String> {
        // Names are noted by their places in the statement, which this text does not have.
        let names = self.names.take();
        let both = Deparser::over_row(self, style, env).text(e, to);
        let found = both.filter(|t| crate::parse::parse_expr(&form(t, false)).and_then(|e| bind(&e)).is_ok_and(|again| again == *bound));
        self.names.replace(names);
        found.map(|t| form(&t, true))
    }
}

/// A stored expression over a row of `desc` as it is shown in `style`. `reader`: the catalog under the search path for which it is written, `of`:
/// under the one for which the text was. The text itself where it has no such form.
pub fn expr_text(text: &str, desc: &RelDesc, of: &dyn SqlCatalog, reader: &dyn SqlCatalog, style: &Style<'_>) -> String {
    let shown = || {
        let e = crate::parse::parse_expr(text).ok()?;
        let binder = Binder::new(of);
        let env = binder.row_env("", desc, super::scope::Clause::Default);
        let bound = binder.expr(&e, &env).ok()?;
        binder.deparsed_as(style, &e, &env, None, &bound, &|e| {
            let again = Binder::new(reader);
            again.expr(e, &again.row_env("", desc, super::scope::Clause::Default))
        })
    };
    shown().unwrap_or_else(|| text.to_owned())
}

/// What a column of a stored expression over a row of `desc` is called, as PostgreSQL calls that of an index, and its type.
pub fn named_type(text: &str, desc: &RelDesc, of: &dyn SqlCatalog) -> Option<(String, ColType)> {
    let e = crate::parse::parse_expr(text).ok()?;
    let binder = Binder::new(of);
    let bound = binder.expr(&e, &binder.row_env("", desc, super::scope::Clause::Default)).ok()?;
    Some((super::query::figure_name(&e).unwrap_or_else(|| "expr".into()), bound.typ()))
}

/// As [`expr_text`], of a condition of a domain over `base`.
pub fn domain_text(text: &str, base: &ColType, of: &dyn SqlCatalog, reader: &dyn SqlCatalog, style: &Style<'_>) -> String {
    let shown = || {
        let e = crate::parse::parse_expr(text).ok()?;
        let binder = Binder::new(of);
        let bound = binder.domain_check(&e, base, None).ok()?;
        binder.deparsed_as(style, &e, &binder.value_env(base), None, &bound, &|e| Binder::new(reader).domain_check(e, base, None))
    };
    shown().unwrap_or_else(|| text.to_owned())
}
