//! jsonpath: queries inside a JSON document.
//!
//! ```text
//!   lax     arrays unwrap under member accessors, items wrap under array accessors, what is missing is nothing
//!   strict  each of these is an error
//! ```
//!
//! Predicates are three-valued: an error or an incomparable pair inside one makes it unknown. `silent` makes what errors are left give
//! nothing. Not here: the language (`repr::jsonpath`), `.datetime()`.

use super::cmp::Op;
use super::regex::{self, Flags};
use super::Entry;
use crate::val;
use repr::error::state;
use repr::jsonb::Jsonb;
use repr::jsonpath::{Expr, Method, Op as PathOp, Path, Step};
use repr::{Numeric, SqlError, SqlState, Value};
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

fn not_found(m: impl Into<String>) -> SqlError {
    SqlError::new(state::SQL_JSON_MEMBER_NOT_FOUND, m)
}

/// What an evaluation runs in.
struct Run<'a> {
    strict: bool,
    root: &'a Jsonb,
    vars: &'a Jsonb,
}

/// Where an expression stands: `@`, and the length of the innermost subscripted array.
#[derive(Clone, Copy)]
struct At<'a> {
    current: &'a Jsonb,
    last: Option<i64>,
}

type Items = Vec<Jsonb>;

impl Run<'_> {
    /// The items of an expression.
    fn items(&self, n: &Expr, at: At<'_>) -> Result<Items, SqlError> {
        Ok(match n {
            Expr::Root => vec![self.root.clone()],
            Expr::Current => vec![at.current.clone()],
            Expr::Variable(v) => match self.vars {
                Jsonb::Object(o) => match o.iter().find(|e| e.0 == *v) {
                    Some((_, j)) => vec![j.clone()],
                    None => return Err(SqlError::new(state::UNDEFINED_OBJECT, format!("could not find jsonpath variable \"{v}\""))),
                },
                _ => return Err(SqlError::new(state::INVALID_PARAMETER_VALUE, "\"vars\" argument is not an object")),
            },
            Expr::Last => match at.last {
                Some(n) => vec![Jsonb::Number(Numeric::from(n - 1))],
                None => return Err(SqlError::new(state::SYNTAX_ERROR, "LAST is allowed only in array subscripts")),
            },
            Expr::Null => vec![Jsonb::Null],
            Expr::Bool(b) => vec![Jsonb::Bool(*b)],
            Expr::Number(n) => vec![Jsonb::Number(n.clone())],
            Expr::String(s) => vec![Jsonb::String(s.clone())],
            Expr::Chain(base, steps) => {
                let mut items = self.items(base, at)?;
                for s in steps {
                    items = self.step(s, items, at)?;
                }
                items
            }
            Expr::Neg(x) | Expr::Pos(x) => {
                let minus = matches!(n, Expr::Neg(_));
                let mut out = Vec::new();
                for i in self.unwrapped(x, at)? {
                    match i {
                        Jsonb::Number(v) => out.push(Jsonb::Number(if minus { v.neg() } else { v })),
                        _ => {
                            let op = if minus { '-' } else { '+' };
                            return Err(SqlError::new(SqlState::new("2203B"), format!("operand of unary jsonpath operator {op} is not a numeric value")));
                        }
                    }
                }
                out
            }
            Expr::Binary(op @ (PathOp::Add | PathOp::Sub | PathOp::Mul | PathOp::Div | PathOp::Mod), a, b) => {
                let sign = match op {
                    PathOp::Add => '+',
                    PathOp::Sub => '-',
                    PathOp::Mul => '*',
                    PathOp::Div => '/',
                    _ => '%',
                };
                let (x, y) = (self.number(a, at, "left", sign)?, self.number(b, at, "right", sign)?);
                let r = match op {
                    PathOp::Add => x.add(&y),
                    PathOp::Sub => x.sub(&y),
                    PathOp::Mul => x.mul(&y),
                    PathOp::Div => x.div(&y),
                    _ => x.rem(&y),
                };
                vec![Jsonb::Number(r?)]
            }
            predicate => vec![match self.truth(predicate, at)? {
                Some(b) => Jsonb::Bool(b),
                None => Jsonb::Null,
            }],
        })
    }

    /// Items with arrays taken apart, in lax mode.
    fn unwrapped(&self, n: &Expr, at: At<'_>) -> Result<Items, SqlError> {
        Ok(self.unwrap(self.items(n, at)?))
    }

    fn unwrap(&self, items: Items) -> Items {
        if self.strict {
            return items;
        }
        let mut out = Vec::with_capacity(items.len());
        for i in items {
            match i {
                Jsonb::Array(a) => out.extend(a),
                other => out.push(other),
            }
        }
        out
    }

    fn number(&self, n: &Expr, at: At<'_>, side: &str, op: char) -> Result<Numeric, SqlError> {
        match self.unwrapped(n, at)?.as_slice() {
            [Jsonb::Number(v)] => Ok(v.clone()),
            _ => Err(SqlError::new(state::SINGLETON_SQL_JSON_ITEM_REQUIRED, format!("{side} operand of jsonpath operator {op} is not a single numeric value"))),
        }
    }

    fn step(&self, s: &Step, items: Items, at: At<'_>) -> Result<Items, SqlError> {
        let mut out = Vec::new();
        match s {
            Step::Key(k) => {
                for i in self.unwrap(items) {
                    match i {
                        Jsonb::Object(o) => match o.into_iter().find(|e| e.0 == *k) {
                            Some((_, v)) => out.push(v),
                            None if self.strict => return Err(not_found(format!("JSON object does not contain key \"{k}\""))),
                            None => {}
                        },
                        _ if self.strict => return Err(not_found("jsonpath member accessor can only be applied to an object")),
                        _ => {}
                    }
                }
            }
            Step::AnyKey => {
                for i in self.unwrap(items) {
                    match i {
                        Jsonb::Object(o) => out.extend(o.into_iter().map(|e| e.1)),
                        _ if self.strict => {
                            let m = "jsonpath wildcard member accessor can only be applied to an object";
                            return Err(SqlError::new(state::SQL_JSON_OBJECT_NOT_FOUND, m));
                        }
                        _ => {}
                    }
                }
            }
            Step::Descend(from, to) => {
                for i in &items {
                    descend(i, 0, *from, *to, &mut out);
                }
            }
            Step::AnyElement => {
                for i in items {
                    match i {
                        Jsonb::Array(a) => out.extend(a),
                        _ if self.strict => {
                            let m = "jsonpath wildcard array accessor can only be applied to an array";
                            return Err(SqlError::new(state::SQL_JSON_ARRAY_NOT_FOUND, m));
                        }
                        other => out.push(other),
                    }
                }
            }
            Step::Elements(subscripts) => {
                for i in items {
                    let array = match i {
                        Jsonb::Array(a) => a,
                        _ if self.strict => {
                            return Err(SqlError::new(state::SQL_JSON_ARRAY_NOT_FOUND, "jsonpath array accessor can only be applied to an array"))
                        }
                        other => vec![other],
                    };
                    let inner = At { last: Some(array.len() as i64), ..at };
                    for (from, to) in subscripts {
                        let lo = self.subscript(from, inner)?;
                        let hi = to.as_ref().map_or(Ok(lo), |t| self.subscript(t, inner))?;
                        let outside = lo < 0 || lo > hi || hi >= array.len() as i64;
                        if outside && self.strict {
                            return Err(SqlError::new(state::INVALID_SQL_JSON_SUBSCRIPT, "jsonpath array subscript is out of bounds"));
                        }
                        for k in lo.max(0)..=hi.min(array.len() as i64 - 1) {
                            out.extend(array.get(k as usize).cloned());
                        }
                    }
                }
            }
            Step::Filter(p) => {
                for i in self.unwrap(items) {
                    if self.truth(p, At { current: &i, ..at })? == Some(true) {
                        out.push(i);
                    }
                }
            }
            Step::Method(m) => {
                // size() and type() look at arrays as they are.
                let items = if matches!(m, Method::Size | Method::Type) { items } else { self.unwrap(items) };
                for i in items {
                    self.method(*m, i, &mut out)?;
                }
            }
            Step::Datetime(_) => return Err(SqlError::unsupported("jsonpath item method .datetime()", "take the text out and cast it")),
        }
        Ok(out)
    }

    fn subscript(&self, n: &Expr, at: At<'_>) -> Result<i64, SqlError> {
        let bad = || SqlError::new(state::INVALID_SQL_JSON_SUBSCRIPT, "jsonpath array subscript is not a single numeric value");
        match self.items(n, at)?.as_slice() {
            [Jsonb::Number(v)] => v
                .trunc(0)
                .to_i64_exact()
                .filter(|i| i32::try_from(*i).is_ok())
                .ok_or_else(|| SqlError::new(state::INVALID_SQL_JSON_SUBSCRIPT, "jsonpath array subscript is out of integer range")),
            _ => Err(bad()),
        }
    }

    fn method(&self, method: Method, item: Jsonb, out: &mut Items) -> Result<(), SqlError> {
        let numeric_only = || {
            let name = match method {
                Method::Abs => "abs",
                Method::Floor => "floor",
                _ => "ceiling",
            };
            let m = format!("jsonpath item method .{name}() can only be applied to a numeric value");
            Err(SqlError::new(state::NON_NUMERIC_SQL_JSON_ITEM, m))
        };
        match (method, item) {
            (Method::Type, i) => out.push(Jsonb::String(i.type_name().to_owned())),
            (Method::Size, Jsonb::Array(a)) => out.push(Jsonb::Number(Numeric::from(a.len() as i64))),
            (Method::Size, _) if self.strict => {
                return Err(SqlError::new(state::SQL_JSON_ARRAY_NOT_FOUND, "jsonpath item method .size() can only be applied to an array"))
            }
            (Method::Size, _) => out.push(Jsonb::Number(Numeric::from(1))),
            (Method::Double, Jsonb::Number(n)) if n.to_f64().is_infinite() => {
                let m = "numeric argument of jsonpath item method .double() is out of range for type double precision";
                return Err(SqlError::new(state::NON_NUMERIC_SQL_JSON_ITEM, m));
            }
            (Method::Double, Jsonb::Number(n)) => out.push(Jsonb::Number(n)),
            (Method::Double, Jsonb::String(s)) => match repr::text::parse_f64(&s) {
                Ok(f) if f.is_finite() => out.push(Jsonb::Number(Numeric::from_f64(f))),
                _ => {
                    let m = "string argument of jsonpath item method .double() is not a valid representation of a double precision number";
                    return Err(SqlError::new(state::NON_NUMERIC_SQL_JSON_ITEM, m));
                }
            },
            (Method::Double, _) => {
                let m = "jsonpath item method .double() can only be applied to a string or numeric value";
                return Err(SqlError::new(state::NON_NUMERIC_SQL_JSON_ITEM, m));
            }
            (Method::Ceiling, Jsonb::Number(n)) => out.push(Jsonb::Number(n.ceil())),
            (Method::Floor, Jsonb::Number(n)) => out.push(Jsonb::Number(n.floor())),
            (Method::Abs, Jsonb::Number(n)) => out.push(Jsonb::Number(n.abs())),
            (Method::KeyValue, Jsonb::Object(o)) => out.extend(o.into_iter().map(|(k, v)| {
                let entries = vec![("key".into(), Jsonb::String(k)), ("value".into(), v), ("id".into(), Jsonb::Number(Numeric::from(0)))];
                Jsonb::object(entries)
            })),
            (Method::KeyValue, _) => {
                let m = "jsonpath item method .keyvalue() can only be applied to an object";
                return Err(SqlError::new(state::SQL_JSON_OBJECT_NOT_FOUND, m));
            }
            _ => return numeric_only(),
        }
        Ok(())
    }

    /// A predicate's value; `None` is unknown.
    fn truth(&self, n: &Expr, at: At<'_>) -> Result<Option<bool>, SqlError> {
        Ok(match n {
            Expr::Binary(PathOp::And, a, b) => match (self.truth(a, at)?, self.truth(b, at)?) {
                (Some(false), _) | (_, Some(false)) => Some(false),
                (Some(true), Some(true)) => Some(true),
                _ => None,
            },
            Expr::Binary(PathOp::Or, a, b) => match (self.truth(a, at)?, self.truth(b, at)?) {
                (Some(true), _) | (_, Some(true)) => Some(true),
                (Some(false), Some(false)) => Some(false),
                _ => None,
            },
            Expr::Not(x) => self.truth(x, at)?.map(|b| !b),
            Expr::IsUnknown(x) => Some(self.truth(x, at)?.is_none()),
            Expr::Exists(x) => unless_unknown(self.items(x, at))?.map(|i| !i.is_empty()),
            Expr::Binary(op @ (PathOp::Eq | PathOp::Ne | PathOp::Lt | PathOp::Le | PathOp::Gt | PathOp::Ge), a, b) => {
                let (x, y) = (unless_unknown(self.unwrapped(a, at))?, unless_unknown(self.unwrapped(b, at))?);
                let (Some(x), Some(y)) = (x, y) else { return Ok(None) };
                self.some_pair(&x, &y, |l, r| compare(*op, l, r))
            }
            Expr::Binary(PathOp::StartsWith, a, b) => {
                let (x, y) = (unless_unknown(self.unwrapped(a, at))?, unless_unknown(self.items(b, at))?);
                let (Some(x), Some(y)) = (x, y) else { return Ok(None) };
                self.some_pair(&x, &y, |l, r| match (l, r) {
                    (Jsonb::String(l), Jsonb::String(r)) => Some(l.starts_with(r.as_str())),
                    _ => None,
                })
            }
            Expr::LikeRegex { value: a, pattern, flags } => {
                let re = regex::compile(pattern, regex_flags(flags)?)?;
                let Some(x) = unless_unknown(self.unwrapped(a, at))? else { return Ok(None) };
                self.some_pair(&x, &[Jsonb::Null], |l, _| match l {
                    Jsonb::String(s) => re.is_match(s).ok(),
                    _ => None,
                })
            }
            // A path in place of a predicate.
            other => match self.items(other, at)?.as_slice() {
                [Jsonb::Bool(b)] => Some(*b),
                _ => None,
            },
        })
    }

    /// Whether the test holds for some pair; an unknown pair counts in strict mode wherever it is, in lax mode if none holds.
    fn some_pair(&self, left: &[Jsonb], right: &[Jsonb], test: impl Fn(&Jsonb, &Jsonb) -> Option<bool>) -> Option<bool> {
        let (mut found, mut unknown) = (false, false);
        for l in left {
            for r in right {
                match test(l, r) {
                    None if self.strict => return None,
                    None => unknown = true,
                    Some(true) if !self.strict => return Some(true),
                    Some(true) => found = true,
                    Some(false) => {}
                }
            }
        }
        match (found, unknown) {
            (true, _) => Some(true),
            (_, true) => None,
            _ => Some(false),
        }
    }
}

fn regex_flags(flags: &str) -> Result<Flags, SqlError> {
    let mut f = Flags { dot_stops: true, ..Flags::default() };
    for c in flags.chars() {
        match c {
            'i' => f.ignore_case = true,
            's' => f.dot_stops = false,
            'm' => f.lines = true,
            'q' => f.literal = true,
            'x' => return Err(SqlError::new(state::FEATURE_NOT_SUPPORTED, "XQuery \"x\" flag (expanded regular expressions) is not implemented")),
            c => {
                return Err(SqlError::new(state::SYNTAX_ERROR, "invalid input syntax for type jsonpath")
                    .with_detail(format!("Unrecognized flag character \"{c}\" in LIKE_REGEX predicate.")))
            }
        }
    }
    Ok(f)
}

/// The item and all below it whose level lies within the bounds; leaves count as the last level.
fn descend(j: &Jsonb, level: u32, from: Option<u32>, to: Option<u32>, out: &mut Items) {
    let children: Vec<&Jsonb> = match j {
        Jsonb::Array(a) => a.iter().collect(),
        Jsonb::Object(o) => o.iter().map(|e| &e.1).collect(),
        _ => Vec::new(),
    };
    let after_start = match from {
        Some(f) => level >= f,
        None => children.is_empty(),
    };
    if after_start && to.is_none_or(|t| level <= t) {
        out.push(j.clone());
    }
    if to.is_none_or(|t| level < t) {
        children.into_iter().for_each(|c| descend(c, level + 1, from, to, out));
    }
}

fn compare(op: PathOp, a: &Jsonb, b: &Jsonb) -> Option<bool> {
    let op = match op {
        PathOp::Eq => Op::Eq,
        PathOp::Ne => Op::Ne,
        PathOp::Lt => Op::Lt,
        PathOp::Le => Op::Le,
        PathOp::Gt => Op::Gt,
        _ => Op::Ge,
    };
    let order = match (a, b) {
        (Jsonb::Null, Jsonb::Null) => std::cmp::Ordering::Equal,
        // Null differs from all else, and has no order with it.
        (Jsonb::Null, _) | (_, Jsonb::Null) => return Some(op == Op::Ne),
        (Jsonb::Bool(x), Jsonb::Bool(y)) => x.cmp(y),
        (Jsonb::String(x), Jsonb::String(y)) => x.cmp(y),
        (Jsonb::Number(x), Jsonb::Number(y)) => Value::Numeric(x.clone()).sql_cmp(&Value::Numeric(y.clone()), &repr::SqlType::Numeric),
        _ => return None,
    };
    Some(op.holds(order))
}

/// The parsed form of a path, kept for the next rows.
fn parsed(text: &str) -> Result<Rc<Path>, SqlError> {
    thread_local! {
        static CACHE: RefCell<HashMap<String, Rc<Path>>> = RefCell::new(HashMap::new());
    }
    CACHE.with_borrow_mut(|cache| {
        if let Some(p) = cache.get(text) {
            return Ok(p.clone());
        }
        let p = Rc::new(repr::jsonpath::parse(text)?);
        if cache.len() >= 64 {
            cache.clear();
        }
        cache.insert(text.to_owned(), p.clone());
        Ok(p)
    })
}

/// All items of `jsonb_path_*(target, path [, vars [, silent]])`; `None` if an error was silenced.
pub fn query(args: &[Value], silent: bool) -> Result<Option<Vec<Jsonb>>, SqlError> {
    let (Value::Jsonb(root), Value::Text(path)) = (&args[0], &args[1]) else { return Ok(Some(Vec::new())) };
    let silent = silent || args.get(3) == Some(&Value::Bool(true));
    let none = Jsonb::Object(Vec::new());
    let vars = match args.get(2) {
        Some(Value::Jsonb(v)) => v,
        _ => &none,
    };
    if !matches!(vars, Jsonb::Object(_)) {
        return Err(SqlError::new(state::INVALID_PARAMETER_VALUE, "\"vars\" argument is not an object")
            .with_detail("Jsonpath parameters should be encoded as key-value pairs of \"vars\" object."));
    }
    let path = parsed(path)?;
    let run = Run { strict: path.strict, root, vars };
    match run.items(&path.expr, At { current: root, last: None }) {
        Ok(items) => Ok(Some(items)),
        Err(e) if silent && suppressible(&e) => Ok(None),
        Err(e) => Err(e),
    }
}

/// What a predicate compares; `None` if the data made it unknown. Errors of the path remain errors.
fn unless_unknown(items: Result<Items, SqlError>) -> Result<Option<Items>, SqlError> {
    match items {
        Ok(i) => Ok(Some(i)),
        Err(e) if suppressible(&e) => Ok(None),
        Err(e) => Err(e),
    }
}

/// Errors of the data may be silenced, those of the path not.
fn suppressible(e: &SqlError) -> bool {
    e.code.as_str().starts_with("22") && e.code != state::INVALID_PARAMETER_VALUE
}

fn exists(args: &[Value], silent: bool) -> Result<Value, SqlError> {
    Ok(query(args, silent)?.map_or(Value::Null, |i| Value::Bool(!i.is_empty())))
}

fn matches(args: &[Value], silent: bool) -> Result<Value, SqlError> {
    match query(args, silent)?.as_deref() {
        Some([Jsonb::Bool(b)]) => Ok(Value::Bool(*b)),
        Some([Jsonb::Null]) | None => Ok(Value::Null),
        _ if silent || args.get(3) == Some(&Value::Bool(true)) => Ok(Value::Null),
        _ => Err(SqlError::new(state::SINGLETON_SQL_JSON_ITEM_REQUIRED, "single boolean result is expected")),
    }
}

pub const FUNCS: &[Entry] = &[
    val!(? ["jsonb_path_exists", "jsonb_path_exists_tz"], |a, _| exists(a, false)),
    val!(? ["jsonb_path_exists_opr"], |a, _| exists(a, true)),
    val!(? ["jsonb_path_match", "jsonb_path_match_tz"], |a, _| matches(a, false)),
    val!(? ["jsonb_path_match_opr"], |a, _| matches(a, true)),
    val!(? ["jsonb_path_query_array", "jsonb_path_query_array_tz"], |a, _| {
        Ok(Value::Jsonb(Box::new(Jsonb::Array(query(a, false)?.unwrap_or_default()))))
    }),
    val!(? ["jsonb_path_query_first", "jsonb_path_query_first_tz"], |a, _| {
        Ok(query(a, false)?.unwrap_or_default().into_iter().next().map_or(Value::Null, |j| Value::Jsonb(Box::new(j))))
    }),
];
