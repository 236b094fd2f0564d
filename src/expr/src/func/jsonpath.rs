//! jsonpath: queries inside a JSON document.
//!
//! ```text
//!   lax     arrays unwrap under member accessors, items wrap under array accessors, what is missing is nothing
//!   strict  each of these is an error
//! ```
//!
//! Items are followed one by one to the end of the path, so that those before an error are found. Predicates are three-valued: an error or an
//! incomparable pair inside one makes it unknown. `silent` ends a query at the first error with what was found. Not here: the language
//! (`repr::jsonpath`).

use super::cmp::Op;
use super::lift::Call;
use super::regex::{self, Flags};
use super::Entry;
use crate::ctx::EvalCtx;
use crate::val;
use moment::Moment;
use place::Place;
use repr::error::state;
use repr::interrupt::Pace;
use repr::jsonb::Jsonb;
use repr::jsonpath::{Expr, Method, Op as PathOp, Path, Step};
use repr::{Numeric, SqlError, SqlState, Value};
use std::cell::{Cell, RefCell};
use std::cmp::Ordering;
use std::collections::HashMap;
use std::rc::Rc;

mod moment;
mod place;

/// What ends an evaluation.
enum Fault {
    /// An error of the data: `silent` and predicates swallow it.
    Soft(SqlError),
    /// An error of the path, or of what surrounds it.
    Hard(SqlError),
}

fn soft(code: impl Into<SqlState>, m: impl Into<String>) -> Fault {
    Fault::Soft(SqlError::new(code.into(), m))
}

/// An item on its way through the path.
#[derive(Clone, Copy)]
enum Item<'a> {
    Json(&'a Jsonb, Place),
    Time(&'a Moment),
}

/// An item kept.
enum Kept {
    Json(Jsonb),
    Time(Moment),
}

impl Item<'_> {
    fn keep(self) -> Kept {
        match self {
            Item::Json(j, _) => Kept::Json(j.clone()),
            Item::Time(t) => Kept::Time(t.clone()),
        }
    }
}

/// Takes an item; tells whether more are wanted, as all that feed one do.
type Sink<'s> = dyn FnMut(Item<'_>) -> Result<bool, Fault> + 's;

/// What an evaluation runs in.
struct Run<'a> {
    strict: bool,
    root: &'a Jsonb,
    vars: &'a Jsonb,
    ctx: &'a EvalCtx,
    /// Whether the session's time zone may be used.
    zoned: bool,
    /// Whether places are asked for.
    placed: bool,
    /// Whether what is missing is nothing: in lax mode, and below `.**`.
    lenient: Cell<bool>,
    /// The number of the next object that `keyvalue()` makes.
    next_base: Cell<i64>,
    pace: Pace,
}

/// Where an expression stands: `@`, and the length of the innermost subscripted array.
#[derive(Clone, Copy)]
struct At<'a> {
    current: Item<'a>,
    last: Option<i64>,
}

impl Run<'_> {
    fn lenient(&self, f: impl FnOnce() -> Result<bool, Fault>) -> Result<bool, Fault> {
        let before = self.lenient.replace(true);
        let out = f();
        self.lenient.set(before);
        out
    }

    /// Sends the items of an expression. `Ok(false)` if no more were wanted.
    fn expr(&self, n: &Expr, at: At<'_>, sink: &mut Sink<'_>) -> Result<bool, Fault> {
        let mut put = |j: &Jsonb| sink(Item::Json(j, Place::ROOT));
        match n {
            Expr::Root => put(self.root),
            Expr::Current => sink(at.current),
            Expr::Variable(v) => {
                let Jsonb::Object(o) = self.vars else { return Ok(true) };
                match o.iter().position(|e| e.0 == *v) {
                    Some(i) => sink(Item::Json(&o[i].1, self.child(self.vars, Place { base: 1, offset: 0 }, i))),
                    None => Err(Fault::Hard(SqlError::new(state::UNDEFINED_OBJECT, format!("could not find jsonpath variable \"{v}\"")))),
                }
            }
            Expr::Last => match at.last {
                Some(n) => put(&Jsonb::Number(Numeric::from(n - 1))),
                None => Err(Fault::Hard(SqlError::new(state::SYNTAX_ERROR, "LAST is allowed only in array subscripts"))),
            },
            Expr::Null => put(&Jsonb::Null),
            Expr::Bool(b) => put(&Jsonb::Bool(*b)),
            Expr::Number(n) => put(&Jsonb::Number(n.clone())),
            Expr::String(s) => put(&Jsonb::String(s.clone())),
            Expr::Chain(head, steps) => self.expr(head, at, &mut |i| self.steps(steps, i, !self.strict, at, sink)),
            Expr::Neg(x) | Expr::Pos(x) => {
                let minus = matches!(n, Expr::Neg(_));
                for i in self.unwrapped(x, at)? {
                    let Kept::Json(Jsonb::Number(v)) = i else {
                        let op = if minus { '-' } else { '+' };
                        return Err(soft(SqlState::new("2203B"), format!("operand of unary jsonpath operator {op} is not a numeric value")));
                    };
                    if !put(&Jsonb::Number(if minus { v.neg() } else { v }))? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            Expr::Binary(op @ (PathOp::Add | PathOp::Sub | PathOp::Mul | PathOp::Div | PathOp::Mod), a, b) => {
                let (left, right) = (self.unwrapped(a, at)?, self.unwrapped(b, at)?);
                let (x, y) = (one_number(&left, "left", *op)?, one_number(&right, "right", *op)?);
                let r = match op {
                    PathOp::Add => x.add(y),
                    PathOp::Sub => x.sub(y),
                    PathOp::Mul => x.mul(y),
                    PathOp::Div => x.div(y),
                    _ => x.rem(y),
                };
                put(&Jsonb::Number(r.map_err(Fault::Soft)?))
            }
            predicate => put(&match self.truth(predicate, at)? {
                Some(b) => Jsonb::Bool(b),
                None => Jsonb::Null,
            }),
        }
    }

    /// The items of an expression, kept.
    fn kept(&self, n: &Expr, at: At<'_>) -> Result<Vec<Kept>, Fault> {
        let mut out = Vec::new();
        self.expr(n, at, &mut |i| {
            out.push(i.keep());
            Ok(true)
        })?;
        Ok(out)
    }

    /// The same, with arrays taken apart in lax mode.
    fn unwrapped(&self, n: &Expr, at: At<'_>) -> Result<Vec<Kept>, Fault> {
        let mut out = Vec::new();
        self.expr(n, at, &mut |i| match i {
            Item::Json(j @ Jsonb::Array(_), p) if !self.strict => self.each(j, p, &mut |i| {
                out.push(i.keep());
                Ok(true)
            }),
            i => {
                out.push(i.keep());
                Ok(true)
            }
        })?;
        Ok(out)
    }

    /// The place of a container's child, if places are asked for.
    fn child(&self, j: &Jsonb, place: Place, i: usize) -> Place {
        if !self.placed {
            return Place::ROOT;
        }
        place::children(j, place).get(i).copied().unwrap_or(Place::ROOT)
    }

    /// The elements of an array, the values of an object.
    fn each(&self, j: &Jsonb, place: Place, sink: &mut Sink<'_>) -> Result<bool, Fault> {
        let places = if self.placed { place::children(j, place) } else { Vec::new() };
        let mut places = places.into_iter();
        let mut one = |j: &Jsonb| sink(Item::Json(j, places.next().unwrap_or(Place::ROOT)));
        let children: Box<dyn Iterator<Item = &Jsonb>> = match j {
            Jsonb::Array(a) => Box::new(a.iter()),
            Jsonb::Object(o) => Box::new(o.iter().map(|e| &e.1)),
            _ => return Ok(true),
        };
        for c in children {
            if !one(c)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Sends an item through the steps. With `unwrap`, the first of them sees the elements of an array in its place, if it is for no array.
    fn steps(&self, steps: &[Step], item: Item<'_>, unwrap: bool, at: At<'_>, sink: &mut Sink<'_>) -> Result<bool, Fault> {
        match steps.split_first() {
            None => sink(item),
            // Each step is a call inside the last.
            Some((s, rest)) => stacker::maybe_grow(STACK_LEFT, STACK_MORE, || self.step(s, rest, steps, item, unwrap, at, sink)),
        }
    }

    #[allow(clippy::too_many_arguments)]
    fn step(&self, s: &Step, rest: &[Step], all: &[Step], item: Item<'_>, unwrap: bool, at: At<'_>, sink: &mut Sink<'_>) -> Result<bool, Fault> {
        if self.pace.stop(32) {
            return Err(Fault::Hard(SqlError::canceled()));
        }
        let for_elements = match s {
            Step::Key(_) | Step::AnyKey | Step::Filter(_) | Step::Datetime(_) => true,
            Step::Method(m) => !matches!(m, Method::Size | Method::Type),
            _ => false,
        };
        if let Item::Json(j @ Jsonb::Array(_), p) = item {
            if unwrap && for_elements {
                return self.each(j, p, &mut |i| self.steps(all, i, false, at, sink));
            }
        }
        let (json, place) = match item {
            Item::Json(j, p) => (Some(j), p),
            Item::Time(_) => (None, Place::ROOT),
        };
        // What is missing: nothing, or an error.
        let missing = |code: SqlState, m: &str| match self.lenient.get() {
            true => Ok(true),
            false => Err(soft(code, m)),
        };
        let mut next = |i: Item<'_>| self.steps(rest, i, !self.strict, at, sink);
        match (s, json) {
            (Step::Key(k), Some(j @ Jsonb::Object(o))) => match o.iter().position(|e| e.0 == *k) {
                Some(i) => next(Item::Json(&o[i].1, self.child(j, place, i))),
                None => missing(state::SQL_JSON_MEMBER_NOT_FOUND, &format!("JSON object does not contain key \"{k}\"")),
            },
            (Step::Key(_), _) => missing(state::SQL_JSON_MEMBER_NOT_FOUND, "jsonpath member accessor can only be applied to an object"),
            (Step::AnyKey, Some(j @ Jsonb::Object(_))) => self.each(j, place, &mut next),
            (Step::AnyKey, _) => missing(state::SQL_JSON_OBJECT_NOT_FOUND, "jsonpath wildcard member accessor can only be applied to an object"),
            (Step::Descend(from, to), _) => {
                if *from == Some(0) && !self.lenient(|| next(item))? {
                    return Ok(false);
                }
                match json {
                    Some(j) => self.lenient(|| self.descend(j, place, 1, (*from, *to), &mut next)),
                    None => Ok(true),
                }
            }
            (Step::AnyElement, Some(j @ Jsonb::Array(_))) => self.each(j, place, &mut next),
            (Step::AnyElement, _) if !self.strict => next(item),
            (Step::AnyElement, _) => missing(state::SQL_JSON_ARRAY_NOT_FOUND, "jsonpath wildcard array accessor can only be applied to an array"),
            (Step::Elements(_), j) if self.strict && !matches!(j, Some(Jsonb::Array(_))) => {
                missing(state::SQL_JSON_ARRAY_NOT_FOUND, "jsonpath array accessor can only be applied to an array")
            }
            (Step::Elements(subscripts), j) => {
                let array = match j {
                    Some(Jsonb::Array(a)) => Some(a),
                    _ => None,
                };
                let places = match (j, array) {
                    (Some(j), Some(_)) if self.placed => place::children(j, place),
                    _ => Vec::new(),
                };
                let len = array.map_or(1, |a| a.len() as i64);
                let inner = At { last: Some(len), ..at };
                for (from, to) in subscripts {
                    let lo = self.subscript(from, inner)?;
                    let hi = to.as_ref().map_or(Ok(lo), |t| self.subscript(t, inner))?;
                    if (lo < 0 || lo > hi || hi >= len) && !self.lenient.get() {
                        return Err(soft(state::INVALID_SQL_JSON_SUBSCRIPT, "jsonpath array subscript is out of bounds"));
                    }
                    for k in lo.max(0)..=hi.min(len - 1) {
                        let k = k as usize;
                        let i = match array {
                            Some(a) => Item::Json(&a[k], places.get(k).copied().unwrap_or(Place::ROOT)),
                            None => item,
                        };
                        if !next(i)? {
                            return Ok(false);
                        }
                    }
                }
                Ok(true)
            }
            (Step::Filter(p), _) => match self.truth(p, At { current: item, ..at })? {
                Some(true) => next(item),
                _ => Ok(true),
            },
            (Step::Method(Method::Type), _) => {
                let name = match item {
                    Item::Json(j, _) => j.type_name(),
                    Item::Time(t) => t.type_name(),
                };
                next(Item::Json(&Jsonb::String(name.to_owned()), Place::ROOT))
            }
            (Step::Method(Method::Size), j) => {
                let size = match j {
                    Some(Jsonb::Array(a)) => a.len() as i64,
                    _ if self.strict => {
                        return missing(state::SQL_JSON_ARRAY_NOT_FOUND, "jsonpath item method .size() can only be applied to an array");
                    }
                    _ => 1,
                };
                next(Item::Json(&Jsonb::Number(Numeric::from(size)), Place::ROOT))
            }
            (Step::Method(Method::KeyValue), Some(Jsonb::Object(o))) => {
                for (k, v) in o {
                    let id = ("id".into(), Jsonb::Number(Numeric::from(place.id())));
                    let made = Jsonb::object(vec![("key".into(), Jsonb::String(k.clone())), ("value".into(), v.clone()), id]);
                    let base = self.next_base.get();
                    self.next_base.set(base + 1);
                    if !next(Item::Json(&made, Place { base, offset: 0 }))? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            (Step::Method(Method::KeyValue), _) => {
                Err(soft(state::SQL_JSON_OBJECT_NOT_FOUND, "jsonpath item method .keyvalue() can only be applied to an object"))
            }
            (Step::Method(m), j) => next(Item::Json(&Jsonb::Number(numeric_method(*m, j)?), Place::ROOT)),
            (Step::Datetime(template), Some(Jsonb::String(text))) => next(Item::Time(&moment::read(text, template.as_deref())?)),
            (Step::Datetime(_), _) => Err(moment::not_text()),
        }
    }

    /// Sends what lies below an item, from one level to another. `(None, None)` are the leaves.
    fn descend(&self, j: &Jsonb, place: Place, level: u32, bounds: (Option<u32>, Option<u32>), sink: &mut Sink<'_>) -> Result<bool, Fault> {
        let (from, to) = bounds;
        if to.is_some_and(|t| level > t) {
            return Ok(true);
        }
        self.each(j, place, &mut |i| {
            let Item::Json(child, p) = i else { return Ok(true) };
            let leaf = !matches!(child, Jsonb::Array(_) | Jsonb::Object(_));
            let wanted = match bounds {
                (Some(f), _) => level >= f,
                (None, to) => to.is_none() && leaf,
            };
            if wanted && !sink(i)? {
                return Ok(false);
            }
            match leaf {
                true => Ok(true),
                false => self.descend(child, p, level + 1, (from, to), sink),
            }
        })
    }

    fn subscript(&self, n: &Expr, at: At<'_>) -> Result<i64, Fault> {
        match self.kept(n, at)?.as_slice() {
            [Kept::Json(Jsonb::Number(v))] => v
                .trunc(0)
                .to_i64_exact()
                .filter(|i| i32::try_from(*i).is_ok())
                .ok_or_else(|| soft(state::INVALID_SQL_JSON_SUBSCRIPT, "jsonpath array subscript is out of integer range")),
            _ => Err(soft(state::INVALID_SQL_JSON_SUBSCRIPT, "jsonpath array subscript is not a single numeric value")),
        }
    }

    /// A predicate's value; `None` is unknown.
    fn truth(&self, n: &Expr, at: At<'_>) -> Result<Option<bool>, Fault> {
        Ok(match n {
            Expr::Binary(PathOp::And, a, b) => match self.truth(a, at)? {
                Some(false) => Some(false),
                left => match (left, self.truth(b, at)?) {
                    (_, Some(false)) => Some(false),
                    (Some(true), Some(true)) => Some(true),
                    _ => None,
                },
            },
            Expr::Binary(PathOp::Or, a, b) => match self.truth(a, at)? {
                Some(true) => Some(true),
                left => match (left, self.truth(b, at)?) {
                    (_, Some(true)) => Some(true),
                    (Some(false), Some(false)) => Some(false),
                    _ => None,
                },
            },
            Expr::Not(x) => self.truth(x, at)?.map(|b| !b),
            Expr::IsUnknown(x) => Some(self.truth(x, at)?.is_none()),
            Expr::Exists(x) => unless_unknown(self.any(x, at))?,
            Expr::Binary(op @ (PathOp::Eq | PathOp::Ne | PathOp::Lt | PathOp::Le | PathOp::Gt | PathOp::Ge), a, b) => {
                let Some(x) = unless_unknown(self.unwrapped(a, at))? else { return Ok(None) };
                let Some(y) = unless_unknown(self.unwrapped(b, at))? else { return Ok(None) };
                self.some_pair(&x, &y, |l, r| self.compare(*op, l, r))?
            }
            Expr::Binary(PathOp::StartsWith, a, b) => {
                let Some(x) = unless_unknown(self.unwrapped(a, at))? else { return Ok(None) };
                let Some(y) = unless_unknown(self.kept(b, at))? else { return Ok(None) };
                self.some_pair(&x, &y, |l, r| match (l, r) {
                    (Kept::Json(Jsonb::String(l)), Kept::Json(Jsonb::String(r))) => Ok(Some(l.starts_with(r.as_str()))),
                    _ => Ok(None),
                })?
            }
            Expr::LikeRegex { value: a, pattern, flags } => {
                let re = regex::compile(pattern, regex_flags(flags)).map_err(Fault::Hard)?;
                let Some(x) = unless_unknown(self.unwrapped(a, at))? else { return Ok(None) };
                self.some_pair(&x, &[Kept::Json(Jsonb::Null)], |l, _| match l {
                    Kept::Json(Jsonb::String(s)) => re.is_match(s).map(Some).map_err(Fault::Hard),
                    _ => Ok(None),
                })?
            }
            // The grammar has no others.
            _ => None,
        })
    }

    /// Whether there is an item. In lax mode the first answers, and a sign passes over what is no number; in strict mode none may fail.
    fn any(&self, n: &Expr, at: At<'_>) -> Result<bool, Fault> {
        if let (Expr::Neg(x) | Expr::Pos(x), false) = (n, self.strict) {
            return Ok(self.unwrapped(x, at)?.iter().any(|i| matches!(i, Kept::Json(Jsonb::Number(_)))));
        }
        let mut found = false;
        self.expr(n, at, &mut |_| {
            found = true;
            Ok(self.strict)
        })?;
        Ok(found)
    }

    /// Whether the test holds for some pair; an unknown pair counts in strict mode wherever it is, in lax mode if none holds.
    fn some_pair(&self, left: &[Kept], right: &[Kept], test: impl Fn(&Kept, &Kept) -> Result<Option<bool>, Fault>) -> Result<Option<bool>, Fault> {
        let (mut found, mut unknown) = (false, false);
        for l in left {
            for r in right {
                if self.pace.stop(8) {
                    return Err(Fault::Hard(SqlError::canceled()));
                }
                match test(l, r)? {
                    None if self.strict => return Ok(None),
                    None => unknown = true,
                    Some(true) if !self.strict => return Ok(Some(true)),
                    Some(true) => found = true,
                    Some(false) => {}
                }
            }
        }
        Ok(match (found, unknown) {
            (true, _) => Some(true),
            (_, true) => None,
            _ => Some(false),
        })
    }

    fn compare(&self, op: PathOp, a: &Kept, b: &Kept) -> Result<Option<bool>, Fault> {
        let op = match op {
            PathOp::Eq => Op::Eq,
            PathOp::Ne => Op::Ne,
            PathOp::Lt => Op::Lt,
            PathOp::Le => Op::Le,
            PathOp::Gt => Op::Gt,
            _ => Op::Ge,
        };
        let order = match (a, b) {
            (Kept::Json(Jsonb::Null), Kept::Json(Jsonb::Null)) => Ordering::Equal,
            // Null differs from all else, and has no order with it.
            (Kept::Json(Jsonb::Null), _) | (_, Kept::Json(Jsonb::Null)) => return Ok(Some(op == Op::Ne)),
            (Kept::Json(x), Kept::Json(y)) => match (x, y) {
                (Jsonb::Bool(x), Jsonb::Bool(y)) => x.cmp(y),
                (Jsonb::String(x), Jsonb::String(y)) => x.cmp(y),
                (Jsonb::Number(x), Jsonb::Number(y)) => Value::Numeric(x.clone()).sql_cmp(&Value::Numeric(y.clone()), &repr::SqlType::Numeric),
                _ => return Ok(None),
            },
            (Kept::Time(x), Kept::Time(y)) => match moment::compare(x, y, self.zoned, self.ctx)? {
                Some(order) => order,
                None => return Ok(None),
            },
            _ => return Ok(None),
        };
        Ok(Some(op.holds(order)))
    }
}

/// Stack that a step needs at most, and what is added when it is not there.
const STACK_LEFT: usize = 128 << 10;
const STACK_MORE: usize = 1 << 20;

fn one_number<'k>(items: &'k [Kept], side: &str, op: PathOp) -> Result<&'k Numeric, Fault> {
    match items {
        [Kept::Json(Jsonb::Number(v))] => Ok(v),
        _ => {
            let m = format!("{side} operand of jsonpath operator {} is not a single numeric value", op.symbol());
            Err(soft(state::SINGLETON_SQL_JSON_ITEM_REQUIRED, m))
        }
    }
}

/// The methods that make a number of one item.
fn numeric_method(method: Method, item: Option<&Jsonb>) -> Result<Numeric, Fault> {
    let bad = |m: String| soft(state::NON_NUMERIC_SQL_JSON_ITEM, m);
    match (method, item) {
        (Method::Double, Some(Jsonb::Number(n))) if n.to_f64().is_infinite() => {
            Err(bad("numeric argument of jsonpath item method .double() is out of range for type double precision".into()))
        }
        (Method::Double, Some(Jsonb::Number(n))) => Ok(n.clone()),
        (Method::Double, Some(Jsonb::String(s))) => match repr::text::parse_f64(s) {
            Ok(f) if f.is_finite() => Ok(Numeric::from_f64(f)),
            _ => Err(bad("string argument of jsonpath item method .double() is not a valid representation of a double precision number".into())),
        },
        (Method::Double, _) => Err(bad("jsonpath item method .double() can only be applied to a string or numeric value".into())),
        (Method::Ceiling, Some(Jsonb::Number(n))) => Ok(n.ceil()),
        (Method::Floor, Some(Jsonb::Number(n))) => Ok(n.floor()),
        (Method::Abs, Some(Jsonb::Number(n))) => Ok(n.abs()),
        (m, _) => Err(bad(format!("jsonpath item method .{}() can only be applied to a numeric value", m.name()))),
    }
}

fn regex_flags(flags: &str) -> Flags {
    // With q, all but i are nothing.
    if flags.contains('q') {
        return Flags { literal: true, ignore_case: flags.contains('i'), ..Flags::default() };
    }
    Flags { dot_stops: !flags.contains('s'), ignore_case: flags.contains('i'), lines: flags.contains('m'), ..Flags::default() }
}

/// Whether all regular expressions of a path can be compiled, as its input demands. Errors: 2201B.
pub fn check_patterns(path: &str) -> Result<(), SqlError> {
    fn step(s: &Step) -> Result<(), SqlError> {
        match s {
            Step::Filter(p) => expr(p),
            Step::Elements(list) => list.iter().try_for_each(|(from, to)| {
                expr(from)?;
                to.as_ref().map_or(Ok(()), expr)
            }),
            _ => Ok(()),
        }
    }
    fn expr(e: &Expr) -> Result<(), SqlError> {
        match e {
            Expr::LikeRegex { value, pattern, flags } => {
                regex::compile(pattern, regex_flags(flags))?;
                expr(value)
            }
            Expr::Chain(head, steps) => {
                expr(head)?;
                steps.iter().try_for_each(step)
            }
            Expr::Neg(x) | Expr::Pos(x) | Expr::Not(x) | Expr::IsUnknown(x) | Expr::Exists(x) => expr(x),
            Expr::Binary(_, a, b) => {
                expr(a)?;
                expr(b)
            }
            _ => Ok(()),
        }
    }
    expr(&parsed(path)?.expr)
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

/// Evaluates `jsonb_path_*(target, path [, vars [, silent]])`; `None` if an error ended it that is silenced.
fn run<T>(args: &[Value], options: Options, ctx: &EvalCtx, f: impl FnOnce(&Run<'_>, &Expr, At<'_>) -> Result<T, Fault>) -> Result<Option<T>, SqlError> {
    let (Value::Jsonb(root), Value::Text(path)) = (&args[0], &args[1]) else { return Ok(None) };
    let none = Jsonb::Object(Vec::new());
    let vars = match args.get(2) {
        Some(Value::Jsonb(v)) => v,
        _ => &none,
    };
    if !matches!(vars, Jsonb::Object(_)) {
        return Err(SqlError::new(state::INVALID_PARAMETER_VALUE, "\"vars\" argument is not an object")
            .with_detail("Jsonpath parameters should be encoded as key-value pairs of \"vars\" object."));
    }
    let placed = path.contains("keyvalue");
    let path = parsed(path)?;
    let lenient = Cell::new(!path.strict);
    let run = Run { strict: path.strict, root, vars, ctx, zoned: options.zoned, placed, lenient, next_base: Cell::new(2), pace: Pace::default() };
    match f(&run, &path.expr, At { current: Item::Json(root, Place::ROOT), last: None }) {
        Ok(v) => Ok(Some(v)),
        Err(Fault::Soft(_)) if silent(args, options) => Ok(None),
        Err(Fault::Soft(e) | Fault::Hard(e)) => Err(e),
    }
}

/// How a function evaluates.
#[derive(Clone, Copy, Default)]
pub struct Options {
    /// Errors of the data are silenced, whatever the arguments say.
    pub silent: bool,
    /// The session's time zone may be used: the `_tz` functions.
    pub zoned: bool,
}

const PLAIN: Options = Options { silent: false, zoned: false };
const ZONED: Options = Options { silent: false, zoned: true };
const OPERATOR: Options = Options { silent: true, zoned: false };

fn silent(args: &[Value], options: Options) -> bool {
    options.silent || args.get(3) == Some(&Value::Bool(true))
}

/// All items; those before the error if one is silenced.
pub fn query(args: &[Value], options: Options, ctx: &EvalCtx) -> Result<Vec<Jsonb>, SqlError> {
    let mut out = Vec::new();
    run(args, options, ctx, |r, path, at| {
        r.expr(path, at, &mut |i| {
            out.push(match i {
                Item::Json(j, _) => j.clone(),
                Item::Time(t) => Jsonb::String(t.text(ctx)),
            });
            Ok(true)
        })
    })?;
    Ok(out)
}

/// What `unknown` is made of; other errors remain errors.
fn unless_unknown<T>(r: Result<T, Fault>) -> Result<Option<T>, Fault> {
    match r {
        Ok(v) => Ok(Some(v)),
        Err(Fault::Soft(_)) => Ok(None),
        Err(hard) => Err(hard),
    }
}

fn exists(args: &[Value], options: Options, call: &Call<'_>) -> Result<Value, SqlError> {
    Ok(run(args, options, call.ctx, |r, path, at| r.any(path, at))?.map_or(Value::Null, Value::Bool))
}

fn matches(args: &[Value], options: Options, call: &Call<'_>) -> Result<Value, SqlError> {
    match query(args, options, call.ctx)?.as_slice() {
        [Jsonb::Bool(b)] => Ok(Value::Bool(*b)),
        [Jsonb::Null] => Ok(Value::Null),
        _ if silent(args, options) => Ok(Value::Null),
        _ => Err(SqlError::new(state::SINGLETON_SQL_JSON_ITEM_REQUIRED, "single boolean result is expected")),
    }
}

fn array(args: &[Value], options: Options, call: &Call<'_>) -> Result<Value, SqlError> {
    Ok(Value::Jsonb(Box::new(Jsonb::Array(query(args, options, call.ctx)?))))
}

fn first(args: &[Value], options: Options, call: &Call<'_>) -> Result<Value, SqlError> {
    Ok(query(args, options, call.ctx)?.into_iter().next().map_or(Value::Null, |j| Value::Jsonb(Box::new(j))))
}

pub const FUNCS: &[Entry] = &[
    val!(? ["jsonb_path_exists"], |a, c| exists(a, PLAIN, c)),
    val!(? ["jsonb_path_exists_tz"], |a, c| exists(a, ZONED, c)),
    val!(? ["jsonb_path_exists_opr"], |a, c| exists(a, OPERATOR, c)),
    val!(? ["jsonb_path_match"], |a, c| matches(a, PLAIN, c)),
    val!(? ["jsonb_path_match_tz"], |a, c| matches(a, ZONED, c)),
    val!(? ["jsonb_path_match_opr"], |a, c| matches(a, OPERATOR, c)),
    val!(? ["jsonb_path_query_array"], |a, c| array(a, PLAIN, c)),
    val!(? ["jsonb_path_query_array_tz"], |a, c| array(a, ZONED, c)),
    val!(? ["jsonb_path_query_first"], |a, c| first(a, PLAIN, c)),
    val!(? ["jsonb_path_query_first_tz"], |a, c| first(a, ZONED, c)),
];
