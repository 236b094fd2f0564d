//! Expressions over one row as PostgreSQL prints them: what `pg_get_expr` and `pg_get_constraintdef` show, and what is stored of defaults and checks.
//!
//! ```text
//!   a>0 and b<>'x'   ──►   ((a > 0) AND (b <> 'x'::text))
//! ```
//!
//! Operators stand in parentheses, constants tell their type, casts that nobody wrote are shown. What has no form here (subqueries, special
//! syntax of functions) gives `None`, and so does what would not be bound to the same expression again: its own text stays. Not here: queries.

use super::scope::Env;
use super::*;
use crate::ast::{BoolTest, Expr, ExprKind, OpName, QuantifiedRhs, SqlValue};
use crate::hir::HirScalar;
use crate::parse::quote_ident;
use expr::catalog::{pseudo, CastContext, ProcKind};
use repr::text::to_text;
use repr::{ColType, TextStyle};

/// An expression's text and type. A literal that nothing has given a type yet is its value.
struct Shown {
    text: String,
    ty: ColType,
    untyped: Option<Value>,
}

impl Shown {
    fn new(text: String, ty: SqlType) -> Option<Shown> {
        Some(Shown { text, ty: ty.nullable(), untyped: None })
    }
}

/// Around two forms of one part: what is shown, and what is bound again to test it.
const SHOWN: char = '\u{1}';
const BOUND: char = '\u{2}';
const END: char = '\u{3}';

/// The two forms of a text. `None`: it has such parts inside others.
fn forms(text: &str) -> Option<(String, String)> {
    let (mut shown, mut bound, mut rest) = (String::new(), String::new(), text);
    while let Some(at) = rest.find(SHOWN) {
        let (first, tail) = rest[at + 1..].split_once(BOUND)?;
        let (second, tail) = tail.split_once(END)?;
        if first.contains(SHOWN) || second.contains(SHOWN) {
            return None;
        }
        for (out, part) in [(&mut shown, first), (&mut bound, second)] {
            out.push_str(&rest[..at]);
            out.push_str(part);
        }
        rest = tail;
    }
    shown.push_str(rest);
    bound.push_str(rest);
    Some((shown, bound))
}

/// The name of a type behind `::`.
fn type_name(ty: &SqlType, typmod: i32) -> String {
    match ty {
        SqlType::Bpchar if typmod < 0 => "bpchar".into(),
        _ => expr::func::system::with_typmod(ty, typmod),
    }
}

fn quoted(s: &str) -> String {
    format!("'{}'", s.replace('\'', "''"))
}

/// A constant.
fn constant(v: &Value, ty: &SqlType) -> String {
    let label = |s: &str| format!("{}::{}", quoted(s), type_name(ty, -1));
    let text = to_text(v, ty, &TextStyle::default());
    match v {
        Value::Null => format!("NULL::{}", type_name(ty, -1)),
        Value::Bool(b) => b.to_string(),
        Value::Int4(n) if *n >= 0 && *ty == SqlType::Int4 => text,
        Value::Numeric(_) if text.starts_with(|c: char| c.is_ascii_digit()) => text,
        _ => label(&text),
    }
}

pub(super) struct Deparser<'b, 'c> {
    pub binder: &'b Binder<'c>,
    pub env: &'b Env,
    /// Of a domain: the one column is VALUE.
    pub of_domain: bool,
}

impl Deparser<'_, '_> {
    /// The expression as a value of `to`, if that is given; casts to it that nobody wrote are left out.
    pub fn text(&self, e: &Expr, to: Option<&ColType>) -> Option<String> {
        let shown = self.show(e)?;
        match (&shown.untyped, to) {
            (Some(_), Some(to)) => self.typed(shown, &to.ty.base().clone().nullable()),
            (Some(_), None) => self.typed(shown, &SqlType::Text.nullable()),
            (None, _) => Some(shown.text),
        }
    }

    /// As a value of another type, by a cast if need be.
    fn typed(&self, s: Shown, to: &ColType) -> Option<String> {
        match &s.untyped {
            // By its name, not by its number.
            Some(Value::Text(name)) if matches!(to.ty, SqlType::Reg(_)) => Some(format!("{}::{}", quoted(name), type_name(&to.ty, -1))),
            Some(v) => {
                let ty = SqlType::Unknown.nullable().with_nullable(v.is_null());
                let made = self.binder.coerce(HirScalar::Literal(v.clone(), ty), &to.clone().with_typmod(-1), CastContext::Explicit, 0).ok()?;
                match made {
                    HirScalar::Literal(v, _) => Some(constant(&v, &to.ty)),
                    _ => None,
                }
            }
            None if s.ty.ty == to.ty => Some(s.text),
            None => Some(format!("({})::{}", s.text, type_name(&to.ty, to.typmod))),
        }
    }

    fn typed_as(&self, s: Shown, to: &SqlType) -> Option<String> {
        self.typed(s, &to.clone().nullable())
    }

    fn boolean(&self, e: &Expr) -> Option<String> {
        self.typed_as(self.show(e)?, &SqlType::Bool)
    }

    /// Several as one type.
    fn common(&self, all: Vec<Shown>) -> Option<(Vec<String>, SqlType)> {
        let types: Vec<(SqlType, Pos)> = all.iter().map(|s| (s.ty.ty.clone(), 0)).collect();
        let ty = self.binder.common_type(&types, "").ok()?;
        let texts = all.into_iter().map(|s| self.typed_as(s, &ty)).collect::<Option<Vec<_>>>()?;
        Some((texts, ty))
    }

    fn operator(&self, op: &OpName, left: Shown, right: Shown) -> Option<Shown> {
        if op.schema.is_some() {
            return None;
        }
        let (o, l, r, ret) = self.binder.operator(op, Some(&left.ty.ty), &right.ty.ty).ok()?;
        if [o.left, o.right].iter().any(|t| super::coerce::is_polymorphic(*t) || *t == pseudo::RECORD) {
            return None;
        }
        let text = format!("({} {} {})", self.typed_as(left, &l?)?, o.name, self.typed_as(right, &r)?);
        Shown::new(text, ret)
    }

    fn show(&self, e: &Expr) -> Option<Shown> {
        let op = |name: &str| super::scalar::op_at(name, 0);
        match &*e.kind {
            ExprKind::Null => Some(Shown { text: String::new(), ty: SqlType::Unknown.nullable(), untyped: Some(Value::Null) }),
            ExprKind::String(s) => Some(Shown { text: String::new(), ty: SqlType::Unknown.nullable(), untyped: Some(Value::text(s.clone())) }),
            ExprKind::Bool(b) => Shown::new(b.to_string(), SqlType::Bool),
            ExprKind::Number(_) => match self.binder.expr(e, self.env).ok()? {
                HirScalar::Literal(v, t) => Shown::new(constant(&v, &t.ty), t.ty),
                _ => None,
            },
            ExprKind::Unary { op: o, arg } if o.name == "-" && matches!(&*arg.kind, ExprKind::Number(_)) => {
                let ExprKind::Number(n) = &*arg.kind else { return None };
                match self.binder.expr(arg, self.env).ok()? {
                    HirScalar::Literal(_, t) => Shown::new(format!("'-{n}'::{}", type_name(&t.ty, -1)), t.ty),
                    _ => None,
                }
            }
            ExprKind::Unary { op: o, arg } if o.schema.is_none() => {
                let arg = self.show(arg)?;
                let (o, _, r, ret) = self.binder.operator(o, None, &arg.ty.ty).ok()?;
                Shown::new(format!("({} {})", o.name, self.typed_as(arg, &r)?), ret)
            }
            ExprKind::Column(parts) => {
                let ty = self.binder.expr(e, self.env).ok()?.typ();
                let text = if self.of_domain { "VALUE".to_owned() } else { quote_ident(&parts.last()?.name) };
                Some(Shown { text, ty, untyped: None })
            }
            ExprKind::Binary { op, left, right } => self.operator(op, self.show(left)?, self.show(right)?),
            ExprKind::Like { op: o, arg, pattern } => self.operator(&op(o), self.show(arg)?, self.show(pattern)?),
            ExprKind::And(xs) | ExprKind::Or(xs) => {
                let word = if matches!(&*e.kind, ExprKind::And(_)) { " AND " } else { " OR " };
                let parts = xs.iter().map(|x| self.boolean(x)).collect::<Option<Vec<_>>>()?;
                Shown::new(format!("({})", parts.join(word)), SqlType::Bool)
            }
            ExprKind::Not(x) => Shown::new(format!("(NOT {})", self.boolean(x)?), SqlType::Bool),
            ExprKind::IsNull { arg, not } => {
                let arg = self.show(arg)?;
                if arg.untyped.is_some() {
                    return None;
                }
                Shown::new(format!("({} IS {}NULL)", arg.text, if *not { "NOT " } else { "" }), SqlType::Bool)
            }
            ExprKind::IsBool { arg, test, not } => {
                let word = match test {
                    BoolTest::True => "TRUE",
                    BoolTest::False => "FALSE",
                    BoolTest::Unknown => "UNKNOWN",
                };
                Shown::new(format!("({} IS {}{word})", self.boolean(arg)?, if *not { "NOT " } else { "" }), SqlType::Bool)
            }
            ExprKind::IsDistinct { left, right, not } => {
                let whole = self.operator(&op("="), self.show(left)?, self.show(right)?)?;
                let (left, right) = whole.text.strip_prefix('(')?.strip_suffix(')')?.split_once(" = ").filter(|(_, r)| !r.contains(" = "))?;
                Shown::new(format!("({left} IS {}DISTINCT FROM {right})", if *not { "NOT " } else { "" }), SqlType::Bool)
            }
            ExprKind::Between { arg, low, high, not, symmetric: false } => {
                let (a, b, word) = if *not { ("<", ">", "OR") } else { (">=", "<=", "AND") };
                let first = self.operator(&op(a), self.show(arg)?, self.show(low)?)?;
                let second = self.operator(&op(b), self.show(arg)?, self.show(high)?)?;
                Shown::new(format!("({} {word} {})", first.text, second.text), SqlType::Bool)
            }
            ExprKind::InList { arg, list, not } => self.in_list(arg, list, *not),
            ExprKind::Quantified { arg, op, all, rhs: QuantifiedRhs::Array(a) } => {
                let (arg, array) = (self.show(arg)?, self.show(a)?);
                let SqlType::Array(elem) = &array.ty.ty else { return None };
                let (o, l, r, _) = self.binder.operator(op, Some(&arg.ty.ty), elem).ok()?;
                let array = self.typed_as(array, &r.array_of())?;
                Shown::new(format!("({} {} {} ({array}))", self.typed_as(arg, &l?)?, o.name, if *all { "ALL" } else { "ANY" }), SqlType::Bool)
            }
            ExprKind::Array(xs) if !xs.is_empty() => {
                let (texts, ty) = self.common(xs.iter().map(|x| self.show(x)).collect::<Option<Vec<_>>>()?)?;
                match ty {
                    SqlType::Array(_) => None,
                    ty => Shown::new(format!("ARRAY[{}]", texts.join(", ")), ty.array_of()),
                }
            }
            ExprKind::Coalesce(xs) => {
                let (texts, ty) = self.common(xs.iter().map(|x| self.show(x)).collect::<Option<Vec<_>>>()?)?;
                Shown::new(format!("COALESCE({})", texts.join(", ")), ty)
            }
            ExprKind::MinMax { greatest, args } => {
                let (texts, ty) = self.common(args.iter().map(|x| self.show(x)).collect::<Option<Vec<_>>>()?)?;
                Shown::new(format!("{}({})", if *greatest { "GREATEST" } else { "LEAST" }, texts.join(", ")), ty)
            }
            ExprKind::Case { operand: None, branches, otherwise } => {
                let mut results = branches.iter().map(|b| self.show(&b.1)).collect::<Option<Vec<_>>>()?;
                results.push(match otherwise {
                    Some(e) => self.show(e)?,
                    None => Shown { text: String::new(), ty: SqlType::Unknown.nullable(), untyped: Some(Value::Null) },
                });
                let (mut texts, ty) = self.common(results)?;
                let last = texts.pop()?;
                let mut out = String::from("\nCASE");
                for ((condition, _), result) in branches.iter().zip(texts) {
                    out += &format!("\n    WHEN {} THEN {result}", self.boolean(condition)?);
                }
                out += &format!("\n    ELSE {last}\nEND");
                // One inside another is indented.
                (out.matches("\nCASE").count() == 1).then_some(())?;
                Shown::new(out, ty)
            }
            ExprKind::Cast { arg, ty } => {
                let to = self.binder.resolve_type(ty).ok()?;
                let arg = self.show(arg)?;
                let text = match &arg.untyped {
                    Some(_) => {
                        let constant = self.typed(arg, &to)?;
                        match to.typmod {
                            -1 => constant,
                            m => format!("{}::{}", constant.strip_suffix(&format!("::{}", type_name(&to.ty, -1)))?, type_name(&to.ty, m)),
                        }
                    }
                    None if arg.ty.ty == to.ty && to.typmod < 0 => arg.text,
                    None => format!("({})::{}", arg.text, type_name(&to.ty, to.typmod)),
                };
                Some(Shown { text, ty: to, untyped: None })
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
                Shown::new(precision.map_or_else(|| word.to_owned(), |p| format!("{word}({p})")), ty)
            }
            ExprKind::Func(call) => {
                let plain = !call.star && !call.distinct && call.order_by.is_empty() && call.filter.is_none() && call.over.is_none();
                let [name] = call.name.as_slice() else { return None };
                let positional = call.args.iter().all(|a| a.name.is_none() && !a.variadic);
                if !plain || !positional || call.system || self.binder.kind_of(&[&name.name], false) != Some(ProcKind::Function) {
                    return None;
                }
                let args = call.args.iter().map(|a| self.show(&a.expr)).collect::<Option<Vec<_>>>()?;
                let types: Vec<SqlType> = args.iter().map(|a| a.ty.ty.clone()).collect();
                let r = self.binder.function(&[&name.name], &types, &vec![None; types.len()], false, 0).ok()?;
                if r.variadic.is_some() || r.spread || r.args.len() != args.len() || r.proc.returns_set {
                    return None;
                }
                let ty = self.binder.return_type(r.proc, &r.ret, &types);
                // What a parameter of any type is given has none.
                let any = |i: usize| r.proc.args.get(i).copied().unwrap_or(r.proc.variadic) == pseudo::ANY || r.proc.variadic == pseudo::ANY;
                let text = |(i, (a, t)): (usize, (Shown, &SqlType))| match &a.untyped {
                    Some(Value::Text(s)) if any(i) => Some(quoted(s)),
                    _ => self.typed_as(a, t),
                };
                let texts = args.into_iter().zip(&r.args).enumerate().map(text).collect::<Option<Vec<_>>>()?;
                Shown::new(format!("{}({})", quote_ident(&name.name), texts.join(", ")), ty)
            }
            _ => None,
        }
    }

    fn in_list(&self, arg: &Expr, list: &[Expr], not: bool) -> Option<Shown> {
        let eq = super::scalar::op_at(if not { "<>" } else { "=" }, 0);
        if let [one] = list {
            return self.operator(&eq, self.show(arg)?, self.show(one)?);
        }
        let arg = self.show(arg)?;
        let items = list.iter().map(|e| self.show(e)).collect::<Option<Vec<_>>>()?;
        let mut types: Vec<(SqlType, Pos)> = vec![(arg.ty.ty.clone(), 0)];
        types.extend(items.iter().map(|i| (i.ty.ty.clone(), 0)));
        let common = self.binder.common_type(&types, "").ok()?;
        let (o, l, r, _) = self.binder.operator(&eq, Some(&arg.ty.ty), &common).ok()?;
        let texts = items.into_iter().map(|i| self.typed_as(i, &common)).collect::<Option<Vec<_>>>()?;
        let list = texts.join(", ");
        let mut array = format!("ARRAY[{list}]");
        if r != common {
            array = format!("({array})::{}", type_name(&r.array_of(), -1));
        }
        // IN is bound to a comparison with each: that is written for the test, the array is what is shown.
        let again = format!("({} {}IN ({list}))", arg.text, if not { "NOT " } else { "" });
        let text = format!("({} {} {} ({array}))", self.typed_as(arg, &l?)?, o.name, if not { "ALL" } else { "ANY" });
        Shown::new(format!("{SHOWN}{text}{BOUND}{again}{END}"), SqlType::Bool)
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
        let of_domain = env.clause() == Some(super::scope::Clause::Check) && env.level().is_some_and(|l| l.items.iter().all(|i| i.name.is_empty()));
        // Names are noted by their places in the statement, which this text does not have.
        let names = self.names.take();
        let both = Deparser { binder: self, env, of_domain }.text(e, to).and_then(|t| forms(&t));
        let found = both.filter(|(_, again)| crate::parse::parse_expr(again).and_then(|e| bind(&e)).is_ok_and(|again| again == *bound));
        self.names.replace(names);
        found.map(|f| f.0)
    }
}
