//! The invertible states: sums and counts from which count, sum, avg, variances, bool_and and the regressions are read.
//!
//! Every state is an element of an abelian group: states add, take any multiplicity and cancel exactly; the order of updates never shows.
//!
//! ```text
//!   integers   128-bit sums (wider if needed)            numeric  integer at the largest scale seen, rows counted by scale
//!   floats     exact sums, rounded once when read        NaN and infinities are counted apart
//! ```

use super::decimal;
use super::exact::{Exact, Wide};
use super::{AccumKind, AggDef, AggKind, Aggregate};
use crate::catalog;
use arrow_array::cast::AsArray;
use arrow_array::types::*;
use arrow_array::{Array, ArrayRef, BooleanArray, PrimitiveArray};
use num_bigint::BigInt;
use num_traits::{Signed, ToPrimitive};
use repr::error::state;
use repr::{column, ColType, Diff, Interval, Numeric, SqlError, SqlType, Value};

/// States as bytes.
mod pack;

pub use pack::{Pack, Packing};

/// The state of one accumulable aggregate for one group: an abelian group element.
#[derive(Clone, PartialEq, Debug)]
pub enum Accum {
    Count(i64),
    Bool { trues: i64, falses: i64 },
    Int { count: i64, sum: Wide },
    IntSquares(Box<IntSquares>),
    Float(Box<FloatSums>),
    Numeric(Box<NumericSums>),
    Interval(Box<IntervalSums>),
    Regr(Box<RegrSums>),
}

#[derive(Clone, PartialEq, Debug, Default)]
pub struct IntSquares {
    count: i64,
    sum: Wide,
    squares: Wide,
}

/// How many values were not finite.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Specials {
    nan: i64,
    pos: i64,
    neg: i64,
}

#[derive(Clone, PartialEq, Debug, Default)]
pub struct FloatSums {
    count: i64,
    specials: Specials,
    sum: Exact,
    /// Only kept for variances.
    squares: Option<Exact>,
}

#[derive(Clone, PartialEq, Debug, Default)]
pub struct NumericSums {
    count: i64,
    specials: Specials,
    /// The scale of `sum`: the largest ever seen. `squares` has twice this scale.
    scale: u16,
    sum: Wide,
    /// Only kept for variances.
    squares: Option<Wide>,
    /// Finite values by display scale, so that the result's scale shrinks again when values are retracted. Sorted, no zero counts.
    scales: Vec<(u16, i64)>,
}

#[derive(Clone, PartialEq, Debug, Default)]
pub struct IntervalSums {
    count: i64,
    months: i128,
    days: i128,
    micros: i128,
}

#[derive(Clone, PartialEq, Debug, Default)]
pub struct RegrSums {
    count: i64,
    /// What is not finite on either side. The sums of one side are over all pairs in which that side is.
    x_specials: Specials,
    y_specials: Specials,
    x: Exact,
    y: Exact,
    xx: Exact,
    yy: Exact,
    xy: Exact,
}

/// Argument columns opened for [`Accum::update`].
pub struct ArgReader<'a> {
    cols: Vec<Col<'a>>,
}

enum Col<'a> {
    Bool(&'a BooleanArray),
    Int2(&'a PrimitiveArray<Int16Type>),
    Int4(&'a PrimitiveArray<Int32Type>),
    Int8(&'a PrimitiveArray<Int64Type>),
    Float4(&'a PrimitiveArray<Float32Type>),
    Float8(&'a PrimitiveArray<Float64Type>),
    Other(&'a ArrayRef, &'a SqlType),
}

impl<'a> ArgReader<'a> {
    /// Columns of the aggregate's arguments.
    pub fn open(cols: &'a [ArrayRef], types: &'a [ColType]) -> ArgReader<'a> {
        let open = |(c, t): (&'a ArrayRef, &'a ColType)| match t.ty {
            SqlType::Bool => Col::Bool(c.as_boolean()),
            SqlType::Int2 => Col::Int2(c.as_primitive()),
            SqlType::Int4 => Col::Int4(c.as_primitive()),
            SqlType::Int8 => Col::Int8(c.as_primitive()),
            SqlType::Float4 => Col::Float4(c.as_primitive()),
            SqlType::Float8 => Col::Float8(c.as_primitive()),
            _ => Col::Other(c, &t.ty),
        };
        ArgReader { cols: cols.iter().zip(types).map(open).collect() }
    }
}

impl Col<'_> {
    fn is_null(&self, i: usize) -> bool {
        match self {
            Col::Bool(c) => c.is_null(i),
            Col::Int2(c) => c.is_null(i),
            Col::Int4(c) => c.is_null(i),
            Col::Int8(c) => c.is_null(i),
            Col::Float4(c) => c.is_null(i),
            Col::Float8(c) => c.is_null(i),
            Col::Other(c, _) => c.is_null(i),
        }
    }
    fn get(&self, i: usize) -> Value {
        match self {
            c if c.is_null(i) => Value::Null,
            Col::Bool(c) => Value::Bool(c.value(i)),
            Col::Int2(c) => Value::Int2(c.value(i)),
            Col::Int4(c) => Value::Int4(c.value(i)),
            Col::Int8(c) => Value::Int8(c.value(i)),
            Col::Float4(c) => Value::Float4(c.value(i)),
            Col::Float8(c) => Value::Float8(c.value(i)),
            Col::Other(c, ty) => column::get(c, ty, i),
        }
    }
}

fn float(v: &Value) -> f64 {
    match v {
        Value::Float8(x) => *x,
        Value::Float4(x) => f64::from(*x),
        _ => f64::NAN,
    }
}

impl Specials {
    fn is_zero(&self) -> bool {
        *self == Specials::default()
    }
    /// Counts a value that is not finite.
    fn count(&mut self, x: f64, diff: i64) {
        if x.is_nan() {
            self.nan = self.nan.wrapping_add(diff);
        } else if x > 0.0 {
            self.pos = self.pos.wrapping_add(diff);
        } else {
            self.neg = self.neg.wrapping_add(diff);
        }
    }
    fn add(&mut self, o: &Specials, times: i64) {
        self.nan = self.nan.wrapping_add(o.nan.wrapping_mul(times));
        self.pos = self.pos.wrapping_add(o.pos.wrapping_mul(times));
        self.neg = self.neg.wrapping_add(o.neg.wrapping_mul(times));
    }
    /// What a sum is if some values are not finite.
    fn sum(&self) -> Option<f64> {
        match (self.nan != 0, self.pos != 0, self.neg != 0) {
            (true, _, _) | (_, true, true) => Some(f64::NAN),
            (_, true, _) => Some(f64::INFINITY),
            (_, _, true) => Some(f64::NEG_INFINITY),
            _ => None,
        }
    }
}

impl FloatSums {
    fn add(&mut self, x: f64, diff: i64) {
        self.count = self.count.wrapping_add(diff);
        if x.is_finite() {
            self.sum.add_float(x, diff);
            if let Some(s) = &mut self.squares {
                s.add_product(x, x, diff);
            }
        } else {
            self.specials.count(x, diff);
        }
    }
}

impl NumericSums {
    fn count_scale(&mut self, scale: u16, diff: i64) {
        match self.scales.binary_search_by_key(&scale, |e| e.0) {
            Ok(i) => {
                self.scales[i].1 = self.scales[i].1.wrapping_add(diff);
                if self.scales[i].1 == 0 {
                    self.scales.remove(i);
                }
            }
            Err(i) if diff != 0 => self.scales.insert(i, (scale, diff)),
            Err(_) => {}
        }
    }
    /// Raises the scale of the sums.
    fn raise(&mut self, scale: u16) {
        if scale > self.scale {
            let by = num_traits::pow(BigInt::from(10), usize::from(scale - self.scale));
            if !self.sum.is_zero() {
                self.sum = Wide::from(self.sum.to_big() * &by);
            }
            if let Some(s) = self.squares.as_mut().filter(|s| !s.is_zero()) {
                *s = Wide::from(s.to_big() * &by * &by);
            }
            self.scale = scale;
        }
    }
    fn add(&mut self, n: &Numeric, diff: i64) {
        self.count = self.count.wrapping_add(diff);
        let scale = match n {
            Numeric::NaN => return self.specials.count(f64::NAN, diff),
            Numeric::PosInf => return self.specials.count(f64::INFINITY, diff),
            Numeric::NegInf => return self.specials.count(f64::NEG_INFINITY, diff),
            n => n.scale(),
        };
        self.count_scale(scale, diff);
        self.raise(scale);
        let up = u32::from(self.scale - scale);
        if let Numeric::Small { unscaled, .. } = n {
            if let Some(u) = 10i128.checked_pow(up).and_then(|p| unscaled.checked_mul(p)) {
                self.sum.add_product(u, i128::from(diff));
                if let Some(s) = &mut self.squares {
                    match u.checked_mul(u) {
                        Some(q) => s.add_product(q, i128::from(diff)),
                        None => s.add(&Wide::from(BigInt::from(u) * u * diff)),
                    }
                }
                return;
            }
        }
        let u = n.unscaled() * num_traits::pow(BigInt::from(10), up as usize);
        if let Some(s) = &mut self.squares {
            s.add(&Wide::from(&u * &u * diff));
        }
        self.sum.add(&Wide::from(u * diff));
    }
    /// The display scale of the result.
    fn live_scale(&self) -> u16 {
        self.scales.last().map_or(0, |s| s.0)
    }
    /// The sum at the live scale: the digits beyond are zero.
    fn live_sum(&self) -> BigInt {
        self.sum.to_big() / num_traits::pow(BigInt::from(10), usize::from(self.scale - self.live_scale()))
    }
    fn live_squares(&self) -> BigInt {
        let drop = 2 * usize::from(self.scale - self.live_scale());
        self.squares.as_ref().map(Wide::to_big).unwrap_or_default() / num_traits::pow(BigInt::from(10), drop)
    }
    fn special(&self) -> Option<Numeric> {
        self.specials.sum().map(|s| match s {
            s if s.is_nan() => Numeric::NaN,
            s if s > 0.0 => Numeric::PosInf,
            _ => Numeric::NegInf,
        })
    }
}

fn overflow() -> SqlError {
    SqlError::new(state::NUMERIC_VALUE_OUT_OF_RANGE, "value out of range: overflow")
}

fn interval_overflow() -> SqlError {
    SqlError::new(state::DATETIME_FIELD_OVERFLOW, "interval out of range")
}

/// Population or sample variance, or its root, of numerics: `n`, sum and sum of squares at `scale` and twice `scale`.
fn numeric_variance(n: i64, sum: &BigInt, squares: &BigInt, scale: u16, sample: bool, root: bool) -> Value {
    let scale2 = 2 * u32::from(scale);
    let spread = squares * n - sum * sum;
    if !spread.is_positive() {
        return Value::Numeric(Numeric::from(0));
    }
    let by = BigInt::from(n) * (if sample { n - 1 } else { n });
    let out = decimal::div_scale(&spread, scale2, &by, 0);
    let variance = decimal::div_at(&spread, scale2, &by, 0, out);
    let result = if root { decimal::sqrt(&variance, out) } else { variance };
    Value::Numeric(decimal::number(result, out))
}

impl Accum {
    /// The zero of this aggregate's group.
    pub fn new(def: &AggDef) -> Accum {
        let AggKind::Accumulable(kind) = &def.kind else { return Accum::Count(0) };
        let arg = catalog::proc_by_oid(def.oid).and_then(|p| p.args.first().copied()).unwrap_or(0);
        let squares = matches!(kind, AccumKind::VarPop | AccumKind::VarSamp | AccumKind::StddevPop | AccumKind::StddevSamp);
        match kind {
            AccumKind::CountStar | AccumKind::Count => Accum::Count(0),
            AccumKind::BoolAnd | AccumKind::BoolOr => Accum::Bool { trues: 0, falses: 0 },
            AccumKind::Regr => Accum::Regr(Box::default()),
            _ => match arg {
                700 | 701 => Accum::Float(Box::new(FloatSums { squares: squares.then(Exact::default), ..FloatSums::default() })),
                1700 => Accum::Numeric(Box::new(NumericSums { squares: squares.then(Wide::default), ..NumericSums::default() })),
                1186 => Accum::Interval(Box::default()),
                _ if squares => Accum::IntSquares(Box::default()),
                _ => Accum::Int { count: 0, sum: Wide::default() },
            },
        }
    }

    /// Adds row `i` of the arguments `diff` times. The aggregate's FILTER is the caller's.
    pub fn update(&mut self, args: &ArgReader<'_>, i: usize, diff: Diff) {
        match (&mut *self, args.cols.as_slice()) {
            (Accum::Count(n), []) => *n = n.wrapping_add(diff),
            (_, [c, ..]) if c.is_null(i) => {}
            (Accum::Count(n), _) => *n = n.wrapping_add(diff),
            (Accum::Int { count, sum }, [c]) => {
                let v = match c {
                    Col::Int2(c) => i128::from(c.value(i)),
                    Col::Int4(c) => i128::from(c.value(i)),
                    Col::Int8(c) => i128::from(c.value(i)),
                    other => i128::from(other.get(i).as_i64().unwrap_or(0)),
                };
                *count = count.wrapping_add(diff);
                sum.add_product(v, i128::from(diff));
            }
            (Accum::Bool { trues, falses }, [Col::Bool(c)]) => {
                let n = if c.value(i) { trues } else { falses };
                *n = n.wrapping_add(diff);
            }
            (Accum::Float(s), [Col::Float8(c)]) => s.add(c.value(i), diff),
            (Accum::Float(s), [Col::Float4(c)]) => s.add(f64::from(c.value(i)), diff),
            (_, cols) => {
                let values: Vec<Value> = cols.iter().map(|c| c.get(i)).collect();
                self.update_values(&values, diff);
            }
        }
    }

    /// Adds a tuple of arguments `diff` times.
    pub fn update_values(&mut self, args: &[Value], diff: Diff) {
        match (self, args) {
            (Accum::Count(n), []) => *n = n.wrapping_add(diff),
            (_, args) if args.iter().any(Value::is_null) => {}
            (Accum::Count(n), _) => *n = n.wrapping_add(diff),
            (Accum::Bool { trues, falses }, [Value::Bool(b)]) => {
                let n = if *b { trues } else { falses };
                *n = n.wrapping_add(diff);
            }
            (Accum::Int { count, sum }, [v]) => {
                *count = count.wrapping_add(diff);
                sum.add_product(i128::from(v.as_i64().unwrap_or(0)), i128::from(diff));
            }
            (Accum::IntSquares(s), [v]) => {
                let v = i128::from(v.as_i64().unwrap_or(0));
                s.count = s.count.wrapping_add(diff);
                s.sum.add_product(v, i128::from(diff));
                s.squares.add_product(v * v, i128::from(diff));
            }
            (Accum::Float(s), [v]) => s.add(float(v), diff),
            (Accum::Numeric(s), [Value::Numeric(n)]) => s.add(n, diff),
            (Accum::Interval(s), [Value::Interval(v)]) => {
                s.count = s.count.wrapping_add(diff);
                s.months += i128::from(v.months) * i128::from(diff);
                s.days += i128::from(v.days) * i128::from(diff);
                s.micros += i128::from(v.micros) * i128::from(diff);
            }
            (Accum::Regr(s), [y, x]) => {
                let (y, x) = (float(y), float(x));
                s.count = s.count.wrapping_add(diff);
                match x.is_finite() {
                    true => {
                        s.x.add_float(x, diff);
                        s.xx.add_product(x, x, diff);
                    }
                    false => s.x_specials.count(x, diff),
                }
                match y.is_finite() {
                    true => {
                        s.y.add_float(y, diff);
                        s.yy.add_product(y, y, diff);
                    }
                    false => s.y_specials.count(y, diff),
                }
                if x.is_finite() && y.is_finite() {
                    s.xy.add_product(x, y, diff);
                }
            }
            _ => {}
        }
    }

    /// Adds `other`, a state of the same aggregate.
    pub fn plus_equals(&mut self, other: &Accum) {
        match (self, other) {
            (Accum::Count(a), Accum::Count(b)) => *a = a.wrapping_add(*b),
            (Accum::Bool { trues: t, falses: f }, Accum::Bool { trues, falses }) => {
                *t = t.wrapping_add(*trues);
                *f = f.wrapping_add(*falses);
            }
            (Accum::Int { count: c, sum: s }, Accum::Int { count, sum }) => {
                *c = c.wrapping_add(*count);
                s.add(sum);
            }
            (Accum::IntSquares(a), Accum::IntSquares(b)) => {
                a.count = a.count.wrapping_add(b.count);
                a.sum.add(&b.sum);
                a.squares.add(&b.squares);
            }
            (Accum::Float(a), Accum::Float(b)) => {
                a.count = a.count.wrapping_add(b.count);
                a.specials.add(&b.specials, 1);
                a.sum.add(&b.sum);
                if let (Some(x), Some(y)) = (&mut a.squares, &b.squares) {
                    x.add(y);
                }
            }
            (Accum::Numeric(a), Accum::Numeric(b)) => {
                a.count = a.count.wrapping_add(b.count);
                a.specials.add(&b.specials, 1);
                b.scales.iter().for_each(|(scale, n)| a.count_scale(*scale, *n));
                a.raise(b.scale);
                if a.scale == b.scale {
                    a.sum.add(&b.sum);
                    if let (Some(x), Some(y)) = (&mut a.squares, &b.squares) {
                        x.add(y);
                    }
                } else {
                    let mut b = (**b).clone();
                    b.raise(a.scale);
                    a.sum.add(&b.sum);
                    if let (Some(x), Some(y)) = (&mut a.squares, &b.squares) {
                        x.add(y);
                    }
                }
            }
            (Accum::Interval(a), Accum::Interval(b)) => {
                a.count = a.count.wrapping_add(b.count);
                a.months += b.months;
                a.days += b.days;
                a.micros += b.micros;
            }
            (Accum::Regr(a), Accum::Regr(b)) => {
                a.count = a.count.wrapping_add(b.count);
                a.x_specials.add(&b.x_specials, 1);
                a.y_specials.add(&b.y_specials, 1);
                a.x.add(&b.x);
                a.y.add(&b.y);
                a.xx.add(&b.xx);
                a.yy.add(&b.yy);
                a.xy.add(&b.xy);
            }
            _ => debug_assert!(false, "states of two aggregates"),
        }
    }

    /// Multiplies by `by`, which may be negative.
    pub fn scale(&mut self, by: Diff) {
        match self {
            Accum::Count(n) => *n = n.wrapping_mul(by),
            Accum::Bool { trues, falses } => {
                *trues = trues.wrapping_mul(by);
                *falses = falses.wrapping_mul(by);
            }
            Accum::Int { count, sum } => {
                *count = count.wrapping_mul(by);
                sum.scale(i128::from(by));
            }
            Accum::IntSquares(s) => {
                s.count = s.count.wrapping_mul(by);
                s.sum.scale(i128::from(by));
                s.squares.scale(i128::from(by));
            }
            Accum::Float(s) => {
                s.count = s.count.wrapping_mul(by);
                let old = std::mem::take(&mut s.specials);
                s.specials.add(&old, by);
                s.sum.scale(by);
                if let Some(q) = &mut s.squares {
                    q.scale(by);
                }
            }
            Accum::Numeric(s) => {
                s.count = s.count.wrapping_mul(by);
                let old = std::mem::take(&mut s.specials);
                s.specials.add(&old, by);
                s.sum.scale(i128::from(by));
                if let Some(q) = &mut s.squares {
                    q.scale(i128::from(by));
                }
                s.scales.iter_mut().for_each(|e| e.1 = e.1.wrapping_mul(by));
                s.scales.retain(|e| e.1 != 0);
            }
            Accum::Interval(s) => {
                s.count = s.count.wrapping_mul(by);
                s.months *= i128::from(by);
                s.days *= i128::from(by);
                s.micros *= i128::from(by);
            }
            Accum::Regr(s) => {
                s.count = s.count.wrapping_mul(by);
                for side in [&mut s.x_specials, &mut s.y_specials] {
                    let had = std::mem::take(side);
                    side.add(&had, by);
                }
                for e in [&mut s.x, &mut s.y, &mut s.xx, &mut s.yy, &mut s.xy] {
                    e.scale(by);
                }
            }
        }
    }

    /// Whether nothing is left. A state whose count is zero but whose sums are not (bad upstream data) is not zero.
    pub fn is_zero(&self) -> bool {
        match self {
            Accum::Count(n) => *n == 0,
            Accum::Bool { trues, falses } => *trues == 0 && *falses == 0,
            Accum::Int { count, sum } => *count == 0 && sum.is_zero(),
            Accum::IntSquares(s) => s.count == 0 && s.sum.is_zero() && s.squares.is_zero(),
            Accum::Float(s) => s.count == 0 && s.specials.is_zero() && s.sum.is_zero() && s.squares.as_ref().is_none_or(Exact::is_zero),
            Accum::Numeric(s) => s.count == 0 && s.specials.is_zero() && s.scales.is_empty() && s.sum.is_zero() && s.squares.as_ref().is_none_or(Wide::is_zero),
            Accum::Interval(s) => s.count == 0 && s.months == 0 && s.days == 0 && s.micros == 0,
            Accum::Regr(s) => s.count == 0 && s.x_specials.is_zero() && s.y_specials.is_zero() && [&s.x, &s.y, &s.xx, &s.yy, &s.xy].iter().all(|e| e.is_zero()),
        }
    }

    /// Bytes on the heap, about.
    pub fn heap_bytes(&self) -> usize {
        match self {
            Accum::Count(_) | Accum::Bool { .. } | Accum::Int { .. } => 0,
            Accum::IntSquares(_) => std::mem::size_of::<IntSquares>(),
            Accum::Float(_) => std::mem::size_of::<FloatSums>(),
            Accum::Numeric(s) => std::mem::size_of::<NumericSums>() + s.scales.len() * 16,
            Accum::Interval(_) => std::mem::size_of::<IntervalSums>(),
            Accum::Regr(_) => std::mem::size_of::<RegrSums>(),
        }
    }

    /// The aggregate's value. Errors: 22003 or 22008 if it does not fit the result type.
    pub fn finalize(&self, agg: &Aggregate) -> Result<Value, SqlError> {
        let AggKind::Accumulable(kind) = &agg.func.kind else { return Err(SqlError::internal("not an accumulable aggregate")) };
        let sample = matches!(kind, AccumKind::VarSamp | AccumKind::StddevSamp);
        let root = matches!(kind, AccumKind::StddevPop | AccumKind::StddevSamp);
        let too_few = |n: i64| n <= i64::from(sample);
        match self {
            Accum::Count(n) => Ok(Value::Int8(*n)),
            Accum::Bool { trues: 0, falses: 0 } => Ok(Value::Null),
            Accum::Bool { trues, falses } => Ok(Value::Bool(if *kind == AccumKind::BoolAnd { *falses == 0 } else { *trues != 0 })),
            Accum::Int { count: 0, .. } => Ok(Value::Null),
            Accum::Int { count, sum } if *kind == AccumKind::Avg => Ok(Value::Numeric(decimal::div(&sum.to_big(), 0, &BigInt::from(*count), 0))),
            Accum::Int { sum, .. } if agg.ty.ty == SqlType::Numeric => Ok(Value::Numeric(decimal::number(sum.to_big(), 0))),
            Accum::Int { sum, .. } => sum.to_big().to_i64().map(Value::Int8).ok_or_else(|| crate::func::arith::out_of_range("bigint")),
            Accum::IntSquares(s) if too_few(s.count) => Ok(Value::Null),
            Accum::IntSquares(s) => Ok(numeric_variance(s.count, &s.sum.to_big(), &s.squares.to_big(), 0, sample, root)),
            Accum::Float(s) if too_few(s.count) => Ok(Value::Null),
            Accum::Float(s) => finish_float(s, *kind, sample, root, &agg.ty.ty),
            Accum::Numeric(s) if too_few(s.count) => Ok(Value::Null),
            Accum::Numeric(s) => Ok(match (s.special(), kind) {
                (Some(n), AccumKind::Sum | AccumKind::Avg) => Value::Numeric(n),
                (Some(_), _) => Value::Numeric(Numeric::NaN),
                (None, AccumKind::Sum) => Value::Numeric(decimal::number(s.live_sum(), s.live_scale().into())),
                (None, AccumKind::Avg) => Value::Numeric(decimal::div(&s.live_sum(), s.live_scale().into(), &BigInt::from(s.count), 0)),
                (None, _) => numeric_variance(s.count, &s.live_sum(), &s.live_squares(), s.live_scale(), sample, root),
            }),
            Accum::Interval(s) if s.count == 0 => Ok(Value::Null),
            Accum::Interval(s) => finish_interval(s, *kind == AccumKind::Avg),
            Accum::Regr(s) => finish_regr(s, agg.func.name),
        }
    }
}

fn finish_float(s: &FloatSums, kind: AccumKind, sample: bool, root: bool, ty: &SqlType) -> Result<Value, SqlError> {
    let n = s.count as f64;
    let special = s.specials.sum();
    match kind {
        AccumKind::Sum if *ty == SqlType::Float4 => match special {
            Some(x) => Ok(Value::Float4(x as f32)),
            None => Some(s.sum.to_f32()).filter(|x| x.is_finite()).map(Value::Float4).ok_or_else(overflow),
        },
        AccumKind::Sum | AccumKind::Avg => {
            let sum = match special {
                Some(x) => x,
                None => Some(s.sum.to_f64()).filter(|x| x.is_finite()).ok_or_else(overflow)?,
            };
            Ok(Value::Float8(if kind == AccumKind::Avg { sum / n } else { sum }))
        }
        _ if special.is_some() => Ok(Value::Float8(f64::NAN)),
        _ => {
            let spread = s.squares.as_ref().map(|q| q.times_minus(s.count, &s.sum, &s.sum).to_f64()).unwrap_or(0.0);
            if spread.is_infinite() {
                return Err(overflow());
            }
            let variance = spread.max(0.0) / n / (if sample { n - 1.0 } else { n });
            Ok(Value::Float8(if root { variance.sqrt() } else { variance }))
        }
    }
}

fn finish_interval(s: &IntervalSums, avg: bool) -> Result<Value, SqlError> {
    let months = i32::try_from(s.months).map_err(|_| interval_overflow())?;
    let days = i32::try_from(s.days).map_err(|_| interval_overflow())?;
    let micros = i64::try_from(s.micros).map_err(|_| interval_overflow())?;
    let sum = Interval { months, days, micros };
    Ok(Value::Interval(if avg { interval_div(sum, s.count as f64) } else { sum }))
}

/// Postgres's division of an interval: the rests of months go to days (of 30), those of days to the time.
fn interval_div(span: Interval, by: f64) -> Interval {
    let round = |x: f64| (x * 1e6).round_ties_even() / 1e6;
    let (months, days) = (f64::from(span.months) / by, f64::from(span.days) / by);
    let mut out = Interval { months: months as i32, days: days as i32, micros: 0 };
    let rest_days = round((months - f64::from(out.months)) * 30.0);
    let mut rest_secs = round((days - f64::from(out.days) + rest_days - rest_days.trunc()) * 86400.0);
    if rest_secs.abs() >= 86400.0 {
        let whole = (rest_secs / 86400.0).trunc();
        out.days += whole as i32;
        rest_secs -= whole * 86400.0;
    }
    out.days += rest_days as i32;
    out.micros = (span.micros as f64 / by + rest_secs * 1e6).round_ties_even() as i64;
    out
}

fn finish_regr(s: &RegrSums, name: &str) -> Result<Value, SqlError> {
    if name == "regr_count" {
        return Ok(Value::Int8(s.count));
    }
    let n = s.count as f64;
    if s.count < 1 || (name == "covar_samp" && s.count < 2) {
        return Ok(Value::Null);
    }
    // As in PostgreSQL what is not finite on one side says nothing of the sums of the other.
    let centred = |q: &Exact, a: &Exact, b: &Exact, finite: bool| match finite {
        true => match q.times_minus(s.count, a, b).to_f64() / n {
            v if v.is_infinite() => Err(overflow()),
            v => Ok(v),
        },
        false => Ok(f64::NAN),
    };
    let (x_finite, y_finite) = (s.x_specials.is_zero(), s.y_specials.is_zero());
    let square = |v: f64| if v < 0.0 { 0.0 } else { v };
    let sxx = square(centred(&s.xx, &s.x, &s.x, x_finite)?);
    let syy = square(centred(&s.yy, &s.y, &s.y, y_finite)?);
    let sxy = centred(&s.xy, &s.x, &s.y, x_finite && y_finite)?;
    let (sx, sy) = (s.x_specials.sum().unwrap_or_else(|| s.x.to_f64()), s.y_specials.sum().unwrap_or_else(|| s.y.to_f64()));
    let r = match name {
        "regr_sxx" => sxx,
        "regr_syy" => syy,
        "regr_sxy" => sxy,
        "regr_avgx" => sx / n,
        "regr_avgy" => sy / n,
        "covar_pop" => sxy / n,
        "covar_samp" => sxy / (n - 1.0),
        "corr" if sxx == 0.0 || syy == 0.0 => return Ok(Value::Null),
        "corr" => sxy / (sxx * syy).sqrt(),
        _ if sxx == 0.0 => return Ok(Value::Null),
        "regr_r2" if syy == 0.0 => 1.0,
        "regr_r2" => (sxy * sxy) / (sxx * syy),
        "regr_slope" => sxy / sxx,
        "regr_intercept" => (sy - sx * sxy / sxx) / n,
        other => return Err(SqlError::internal(format!("aggregate {other}"))),
    };
    if r.is_infinite() && x_finite && y_finite {
        return Err(overflow());
    }
    Ok(Value::Float8(r))
}
