//! The lifting of plain functions over columns.
//!
//! ```text
//!   f2!(["lpad"...], Str, i32 => String, |s, n| ...)          strict, cannot fail: returns R
//!   f2!(? ["int4div"], i32, i32 => i32, |a, b| ...)           strict, can fail:    returns Result<R, SqlError>
//!   kernel!(["int4and"], |c| prim2::<..>(c, |a, b| ..))        tight loops without a call a row, or any kernel by hand
//!   val!(? ["array_cat"], |args, call| ...)                   strict, on `&[Value]`; `call` knows types and settings
//!   vals!(? ["concat"...], |args, call| ...)                  as `val!`, but NULLs are passed in (not strict)
//! ```
//!
//! Argument types ([`Arg`]): `i16 i32 i64 u16 u32 u64 f32 f64 bool`, `Str` (`&str`), `Bytes` (`&[u8]`), `Val` (`Value`, any type), and
//! `Numeric Interval TimeTz Jsonb ArrayValue InetValue [u8; 16]` owned. Dates are `i32`, times and timestamps `i64`, oid-like types `u32`.
//! Result types ([`Ret`]): the same owned, `String`, `Vec<u8>`, `Value`, and `Option` of each for NULL.
//!
//! The function is passed as a function pointer, so that one loop is compiled for each combination of types, not for each function.

use super::CallArgs;
use crate::ctx::EvalCtx;
use arrow_array::builder::*;
use arrow_array::cast::AsArray;
use arrow_array::types::*;
use arrow_array::{Array, ArrayRef, ArrowPrimitiveType, BinaryArray, BooleanArray, PrimitiveArray, StringArray};
use arrow_buffer::{BooleanBuffer, NullBuffer};
use repr::jsonb::Jsonb;
use repr::value::InetValue;
use repr::{column, ArrayValue, ColType, ColumnBuilder, Interval, Numeric, SqlError, SqlType, TimeTz, Value};
use std::sync::Arc;

/// Marker for arguments read as `&str`.
pub struct Str;
/// Marker for arguments read as `&[u8]` (bytea).
pub struct Bytes;
/// Marker for arguments read as [`Value`].
pub struct Val;

/// A native argument type: how to read it from a column.
pub trait Arg {
    type Col<'a>;
    type In<'a>;
    fn open<'a>(col: &'a ArrayRef, ty: &'a SqlType) -> Self::Col<'a>;
    fn get<'a>(col: &Self::Col<'a>, i: usize) -> Self::In<'a>;
}

/// A native result type: how to append it to a column.
pub trait Ret: Sized {
    type Builder;
    fn builder(ty: &SqlType, capacity: usize) -> Self::Builder;
    /// Whether there was room: a column of text or bytes holds 2 GB. If not, nothing was appended.
    fn push(self, b: &mut Self::Builder) -> bool;
    fn push_null(b: &mut Self::Builder);
    fn finish(b: Self::Builder) -> ArrayRef;
}

macro_rules! primitives {
    ($($native:ty, $arrow:ty;)*) => { $(
        impl Arg for $native {
            type Col<'a> = &'a PrimitiveArray<$arrow>;
            type In<'a> = $native;
            fn open<'a>(col: &'a ArrayRef, _: &'a SqlType) -> Self::Col<'a> {
                col.as_primitive::<$arrow>()
            }
            #[inline]
            fn get<'a>(col: &Self::Col<'a>, i: usize) -> Self::In<'a> {
                col.value(i)
            }
        }
        impl Ret for $native {
            type Builder = PrimitiveBuilder<$arrow>;
            fn builder(_: &SqlType, capacity: usize) -> Self::Builder {
                PrimitiveBuilder::with_capacity(capacity)
            }
            #[inline]
            fn push(self, b: &mut Self::Builder) -> bool {
                b.append_value(self);
                true
            }
            #[inline]
            fn push_null(b: &mut Self::Builder) {
                b.append_null();
            }
            fn finish(mut b: Self::Builder) -> ArrayRef {
                Arc::new(b.finish())
            }
        }
    )* };
}
primitives! {
    i16, Int16Type;
    i32, Int32Type;
    i64, Int64Type;
    u16, UInt16Type;
    u32, UInt32Type;
    u64, UInt64Type;
    f32, Float32Type;
    f64, Float64Type;
}

impl Arg for bool {
    type Col<'a> = &'a BooleanArray;
    type In<'a> = bool;
    fn open<'a>(col: &'a ArrayRef, _: &'a SqlType) -> Self::Col<'a> {
        col.as_boolean()
    }
    fn get<'a>(col: &Self::Col<'a>, i: usize) -> Self::In<'a> {
        col.value(i)
    }
}

impl Arg for Str {
    type Col<'a> = &'a StringArray;
    type In<'a> = &'a str;
    fn open<'a>(col: &'a ArrayRef, _: &'a SqlType) -> Self::Col<'a> {
        col.as_string::<i32>()
    }
    #[inline]
    fn get<'a>(col: &Self::Col<'a>, i: usize) -> Self::In<'a> {
        col.value(i)
    }
}

impl Arg for Bytes {
    type Col<'a> = &'a BinaryArray;
    type In<'a> = &'a [u8];
    fn open<'a>(col: &'a ArrayRef, _: &'a SqlType) -> Self::Col<'a> {
        col.as_binary::<i32>()
    }
    #[inline]
    fn get<'a>(col: &Self::Col<'a>, i: usize) -> Self::In<'a> {
        col.value(i)
    }
}

impl Arg for Val {
    type Col<'a> = (&'a ArrayRef, &'a SqlType);
    type In<'a> = Value;
    fn open<'a>(col: &'a ArrayRef, ty: &'a SqlType) -> Self::Col<'a> {
        (col, ty)
    }
    fn get<'a>(col: &Self::Col<'a>, i: usize) -> Self::In<'a> {
        column::get(col.0, col.1, i)
    }
}

/// Types that are read and written through `Value`. `default` stands for a value of another variant, which only a planner bug could bring.
macro_rules! through_value {
    ($($native:ty, $variant:ident, |$v:ident| $unwrap:expr, |$w:ident| $wrap:expr, $default:expr;)*) => { $(
        impl Arg for $native {
            type Col<'a> = (&'a ArrayRef, &'a SqlType);
            type In<'a> = $native;
            fn open<'a>(col: &'a ArrayRef, ty: &'a SqlType) -> Self::Col<'a> {
                (col, ty)
            }
            fn get<'a>(col: &Self::Col<'a>, i: usize) -> Self::In<'a> {
                match column::get(col.0, col.1, i) {
                    Value::$variant($v) => $unwrap,
                    _ => $default,
                }
            }
        }
        impl Ret for $native {
            type Builder = ColumnBuilder;
            fn builder(ty: &SqlType, capacity: usize) -> ColumnBuilder {
                ColumnBuilder::new(ty, capacity)
            }
            fn push(self, b: &mut ColumnBuilder) -> bool {
                let $w = self;
                b.try_push(&Value::$variant($wrap))
            }
            fn push_null(b: &mut ColumnBuilder) {
                b.push_null();
            }
            fn finish(b: ColumnBuilder) -> ArrayRef {
                b.finish()
            }
        }
    )* };
}
through_value! {
    Numeric, Numeric, |v| v, |w| w, Numeric::NaN;
    Interval, Interval, |v| v, |w| w, Interval::default();
    TimeTz, TimeTz, |v| v, |w| w, TimeTz { micros: 0, zone_secs: 0 };
    Jsonb, Jsonb, |v| *v, |w| Box::new(w), Jsonb::Null;
    ArrayValue, Array, |v| *v, |w| Box::new(w), ArrayValue::one_dim(Vec::new());
    InetValue, Inet, |v| v, |w| w, InetValue { addr: std::net::IpAddr::V4(std::net::Ipv4Addr::UNSPECIFIED), bits: 0 };
    [u8; 16], Uuid, |v| v, |w| w, [0; 16];
}

impl Ret for bool {
    type Builder = BooleanBuilder;
    fn builder(_: &SqlType, capacity: usize) -> Self::Builder {
        BooleanBuilder::with_capacity(capacity)
    }
    fn push(self, b: &mut Self::Builder) -> bool {
        b.append_value(self);
        true
    }
    fn push_null(b: &mut Self::Builder) {
        b.append_null();
    }
    fn finish(mut b: Self::Builder) -> ArrayRef {
        Arc::new(b.finish())
    }
}

macro_rules! bytes_like {
    ($($native:ty, $builder:ty;)*) => { $(
        impl Ret for $native {
            type Builder = $builder;
            fn builder(_: &SqlType, capacity: usize) -> Self::Builder {
                <$builder>::with_capacity(capacity, capacity * 8)
            }
            fn push(self, b: &mut Self::Builder) -> bool {
                let fits = column::has_room(b.values_slice().len(), self.len());
                if fits {
                    b.append_value(self);
                }
                fits
            }
            fn push_null(b: &mut Self::Builder) {
                b.append_null();
            }
            fn finish(mut b: Self::Builder) -> ArrayRef {
                Arc::new(b.finish())
            }
        }
    )* };
}
bytes_like! {
    String, StringBuilder;
    &'static str, StringBuilder;
    Vec<u8>, BinaryBuilder;
}

impl Ret for Value {
    type Builder = ColumnBuilder;
    fn builder(ty: &SqlType, capacity: usize) -> ColumnBuilder {
        ColumnBuilder::new(ty, capacity)
    }
    fn push(self, b: &mut ColumnBuilder) -> bool {
        b.try_push(&self)
    }
    fn push_null(b: &mut ColumnBuilder) {
        b.push_null();
    }
    fn finish(b: ColumnBuilder) -> ArrayRef {
        b.finish()
    }
}

impl<R: Ret> Ret for Option<R> {
    type Builder = R::Builder;
    fn builder(ty: &SqlType, capacity: usize) -> R::Builder {
        R::builder(ty, capacity)
    }
    fn push(self, b: &mut R::Builder) -> bool {
        match self {
            Some(r) => r.push(b),
            None => {
                R::push_null(b);
                true
            }
        }
    }
    fn push_null(b: &mut R::Builder) {
        R::push_null(b);
    }
    fn finish(b: R::Builder) -> ArrayRef {
        R::finish(b)
    }
}

/// What a function on values knows beside its arguments.
pub struct Call<'a> {
    pub arg_types: &'a [ColType],
    pub ret: &'a ColType,
    pub ctx: &'a EvalCtx,
}

/// Where row `i` of an argument column lies: 0 for a column of one row that stands for all.
#[inline]
pub fn at(col: &ArrayRef, len: usize, i: usize) -> usize {
    if col.len() == len {
        i
    } else {
        0
    }
}

/// Which rows have no NULL argument; `None`: all.
pub fn strict_nulls(c: &CallArgs<'_>) -> Option<NullBuffer> {
    let mut nulls: Option<NullBuffer> = None;
    for a in c.args {
        match a.nulls() {
            Some(n) if a.len() == c.len => nulls = NullBuffer::union(nulls.as_ref(), Some(n)),
            Some(n) if n.null_count() > 0 => return Some(NullBuffer::new_null(c.len)),
            _ => {}
        }
    }
    nulls.filter(|n| n.null_count() > 0)
}

/// Says that there is no room from row `from` on.
pub fn fill(c: &mut CallArgs<'_>, from: usize) {
    c.errors.extend((from as u32..c.len as u32).map(|i| (i, column::too_large())));
}

/// Argument `n` as a column with all its rows.
pub fn full_length(c: &mut CallArgs<'_>, n: usize) -> ArrayRef {
    if c.args[n].len() == c.len {
        return c.args[n].clone();
    }
    let (col, fit) = column::spread(&c.args[n], c.len);
    fill(c, fit);
    col
}

/// Whether the call is interrupted, asked once row `from` is computed and before its value is looked at: if so, the rows from there on have its error.
pub fn interrupted(c: &mut CallArgs<'_>, from: usize) -> bool {
    let Err(e) = c.ctx.interrupt.check() else { return false };
    c.errors.extend((from as u32..c.len as u32).map(|i| (i, e.clone())));
    true
}

/// Calls `f` on the rows without NULL arguments.
pub fn rows<R: Ret>(c: &mut CallArgs<'_>, mut f: impl FnMut(usize) -> Result<R, SqlError>) -> ArrayRef {
    let nulls = strict_nulls(c);
    let mut b = R::builder(&c.ret.ty, c.len);
    for i in 0..c.len {
        if nulls.as_ref().is_some_and(|n| n.is_null(i)) {
            R::push_null(&mut b);
            continue;
        }
        let value = f(i);
        if interrupted(c, i) {
            (i..c.len).for_each(|_| R::push_null(&mut b));
            break;
        }
        match value.map(|r| r.push(&mut b)) {
            Ok(true) => {}
            Ok(false) => {
                (i..c.len).for_each(|_| R::push_null(&mut b));
                fill(c, i);
                break;
            }
            Err(e) => {
                c.errors.push((i as u32, e));
                R::push_null(&mut b);
            }
        }
    }
    R::finish(b)
}

/// Lifts a strict function of one argument.
pub fn try1<A: Arg, R: Ret>(c: &mut CallArgs<'_>, f: for<'x> fn(A::In<'x>) -> Result<R, SqlError>) -> ArrayRef {
    let (args, types, len) = (c.args, c.arg_types, c.len);
    let a = A::open(&args[0], &types[0].ty);
    rows(c, |i| f(A::get(&a, at(&args[0], len, i))))
}

/// Lifts a strict function of two arguments.
pub fn try2<A: Arg, B: Arg, R: Ret>(c: &mut CallArgs<'_>, f: for<'x, 'y> fn(A::In<'x>, B::In<'y>) -> Result<R, SqlError>) -> ArrayRef {
    let (args, types, len) = (c.args, c.arg_types, c.len);
    let (a, b) = (A::open(&args[0], &types[0].ty), B::open(&args[1], &types[1].ty));
    rows(c, |i| f(A::get(&a, at(&args[0], len, i)), B::get(&b, at(&args[1], len, i))))
}

/// Lifts a strict function of three arguments.
pub fn try3<A: Arg, B: Arg, C: Arg, R: Ret>(c: &mut CallArgs<'_>, f: for<'x, 'y, 'z> fn(A::In<'x>, B::In<'y>, C::In<'z>) -> Result<R, SqlError>) -> ArrayRef {
    let (args, types, len) = (c.args, c.arg_types, c.len);
    let (a, b, d) = (A::open(&args[0], &types[0].ty), B::open(&args[1], &types[1].ty), C::open(&args[2], &types[2].ty));
    rows(c, |i| f(A::get(&a, at(&args[0], len, i)), B::get(&b, at(&args[1], len, i)), C::get(&d, at(&args[2], len, i))))
}

/// As [`try1`], for a function that cannot fail.
pub fn map1<A: Arg, R: Ret>(c: &mut CallArgs<'_>, f: for<'x> fn(A::In<'x>) -> R) -> ArrayRef {
    let (args, types, len) = (c.args, c.arg_types, c.len);
    let a = A::open(&args[0], &types[0].ty);
    rows(c, |i| Ok(f(A::get(&a, at(&args[0], len, i)))))
}

/// As [`try2`], for a function that cannot fail.
pub fn map2<A: Arg, B: Arg, R: Ret>(c: &mut CallArgs<'_>, f: for<'x, 'y> fn(A::In<'x>, B::In<'y>) -> R) -> ArrayRef {
    let (args, types, len) = (c.args, c.arg_types, c.len);
    let (a, b) = (A::open(&args[0], &types[0].ty), B::open(&args[1], &types[1].ty));
    rows(c, |i| Ok(f(A::get(&a, at(&args[0], len, i)), B::get(&b, at(&args[1], len, i)))))
}

/// As [`try3`], for a function that cannot fail.
pub fn map3<A: Arg, B: Arg, C: Arg, R: Ret>(c: &mut CallArgs<'_>, f: for<'x, 'y, 'z> fn(A::In<'x>, B::In<'y>, C::In<'z>) -> R) -> ArrayRef {
    let (args, types, len) = (c.args, c.arg_types, c.len);
    let (a, b, d) = (A::open(&args[0], &types[0].ty), B::open(&args[1], &types[1].ty), C::open(&args[2], &types[2].ty));
    rows(c, |i| Ok(f(A::get(&a, at(&args[0], len, i)), B::get(&b, at(&args[1], len, i)), C::get(&d, at(&args[2], len, i)))))
}

/// A function on values.
pub type ValueFn = fn(&[Value], &Call<'_>) -> Result<Value, SqlError>;

/// Lifts a function on values; with `strict`, rows with a NULL argument are NULL.
pub fn on_values(c: &mut CallArgs<'_>, strict: bool, f: ValueFn) -> ArrayRef {
    let call = Call { arg_types: c.arg_types, ret: c.ret, ctx: c.ctx };
    let (args, len) = (c.args, c.len);
    // Columns of one row are read once.
    let mut row: Vec<Value> = args.iter().zip(c.arg_types).map(|(a, t)| if a.len() == 1 && len > 0 { column::get(a, &t.ty, 0) } else { Value::Null }).collect();
    let mut b = ColumnBuilder::new(&c.ret.ty, len);
    for i in 0..len {
        for ((slot, a), t) in row.iter_mut().zip(args).zip(call.arg_types) {
            if a.len() != 1 {
                *slot = column::get(a, &t.ty, i);
            }
        }
        if strict && row.iter().any(Value::is_null) {
            b.push_null();
            continue;
        }
        let value = f(&row, &call);
        if interrupted(c, i) {
            (i..len).for_each(|_| b.push_null());
            break;
        }
        match value {
            Ok(v) if b.try_push(&v) => {}
            Ok(_) => {
                (i..len).for_each(|_| b.push_null());
                fill(c, i);
                break;
            }
            Err(e) => {
                c.errors.push((i as u32, e));
                b.push_null();
            }
        }
    }
    b.finish()
}

/// A function without arguments: computed once, repeated on all rows.
pub fn constant(c: &mut CallArgs<'_>, f: fn(&EvalCtx) -> Result<Value, SqlError>) -> ArrayRef {
    let value = f(c.ctx).unwrap_or_else(|e| {
        c.errors.extend((0..c.len as u32).map(|i| (i, e.clone())));
        Value::Null
    });
    column::repeat(&value, &c.ret.ty, c.len)
}

/// A primitive argument's values, or its one value.
pub enum Slot<'a, T> {
    One(T),
    Many(&'a [T]),
}

/// Opens a primitive argument column.
pub fn slot<'a, A: ArrowPrimitiveType>(c: &CallArgs<'a>, i: usize) -> Slot<'a, A::Native> {
    let a = c.args[i].as_primitive::<A>();
    if a.len() == c.len {
        Slot::Many(a.values())
    } else {
        Slot::One(a.value(0))
    }
}

/// A strict, infallible function of one primitive, as a loop over the value buffer.
pub fn prim1<A: ArrowPrimitiveType, R: ArrowPrimitiveType>(c: &mut CallArgs<'_>, f: impl Fn(A::Native) -> R::Native) -> ArrayRef {
    let nulls = strict_nulls(c);
    let out: Vec<R::Native> = match slot::<A>(c, 0) {
        Slot::Many(a) => a.iter().map(|x| f(*x)).collect(),
        Slot::One(x) => vec![f(x); c.len],
    };
    Arc::new(PrimitiveArray::<R>::new(out.into(), nulls))
}

/// A strict, infallible function of two primitives, as a loop over the value buffers.
pub fn prim2<A: ArrowPrimitiveType, B: ArrowPrimitiveType, R: ArrowPrimitiveType>(
    c: &mut CallArgs<'_>,
    f: impl Fn(A::Native, B::Native) -> R::Native,
) -> ArrayRef {
    let nulls = strict_nulls(c);
    let out: Vec<R::Native> = match (slot::<A>(c, 0), slot::<B>(c, 1)) {
        (Slot::Many(a), Slot::Many(b)) => a.iter().zip(b).map(|(x, y)| f(*x, *y)).collect(),
        (Slot::Many(a), Slot::One(y)) => a.iter().map(|x| f(*x, y)).collect(),
        (Slot::One(x), Slot::Many(b)) => b.iter().map(|y| f(x, *y)).collect(),
        (Slot::One(x), Slot::One(y)) => vec![f(x, y); c.len],
    };
    Arc::new(PrimitiveArray::<R>::new(out.into(), nulls))
}

/// A strict predicate of two primitives, as a loop over the value buffers.
pub fn pred2<A: ArrowPrimitiveType, B: ArrowPrimitiveType>(c: &mut CallArgs<'_>, f: impl Fn(A::Native, B::Native) -> bool) -> ArrayRef {
    let nulls = strict_nulls(c);
    let bits = match (slot::<A>(c, 0), slot::<B>(c, 1)) {
        (Slot::Many(a), Slot::Many(b)) => BooleanBuffer::collect_bool(c.len, |i| f(a[i], b[i])),
        (Slot::Many(a), Slot::One(y)) => BooleanBuffer::collect_bool(c.len, |i| f(a[i], y)),
        (Slot::One(x), Slot::Many(b)) => BooleanBuffer::collect_bool(c.len, |i| f(x, b[i])),
        (Slot::One(x), Slot::One(y)) => BooleanBuffer::collect_bool(c.len, |_| f(x, y)),
    };
    Arc::new(BooleanArray::new(bits, nulls))
}

/// A strict function of two primitives that can fail: `f` gives `None` where `err` tells why.
pub fn try_prim2<A: ArrowPrimitiveType, B: ArrowPrimitiveType, R: ArrowPrimitiveType>(
    c: &mut CallArgs<'_>,
    f: impl Fn(A::Native, B::Native) -> Option<R::Native>,
    err: fn(B::Native) -> SqlError,
) -> ArrayRef {
    let nulls = strict_nulls(c);
    let (a, b) = (c.args[0].as_primitive::<A>(), c.args[1].as_primitive::<B>());
    let (av, bv) = (a.values(), b.values());
    let (sa, sb) = (usize::from(a.len() == c.len), usize::from(b.len() == c.len));
    let mut failed = false;
    let out: Vec<R::Native> = (0..c.len)
        .map(|i| {
            f(av[i * sa], bv[i * sb]).unwrap_or_else(|| {
                failed = true;
                R::Native::default()
            })
        })
        .collect();
    if !failed {
        return Arc::new(PrimitiveArray::<R>::new(out.into(), nulls));
    }
    // Rare: find the rows again. What lies under a NULL does not count.
    let mut valid = vec![true; c.len];
    for (i, ok) in valid.iter_mut().enumerate() {
        if nulls.as_ref().is_some_and(|n| n.is_null(i)) {
            *ok = false;
        } else if f(av[i * sa], bv[i * sb]).is_none() {
            c.errors.push((i as u32, err(bv[i * sb])));
            *ok = false;
        }
    }
    Arc::new(PrimitiveArray::<R>::new(out.into(), Some(NullBuffer::from(valid))))
}

/// A strict function of one argument: `f1!([names], A => R, |a| r)`; with `?` in front it returns `Result<R, SqlError>`.
#[macro_export]
macro_rules! f1 {
    (? [$($n:literal),+ $(,)?], $a:ty => $r:ty, $f:expr) => {
        $crate::func::Entry { names: &[$($n),+], fallible: true, strict: true, kernel: |c| $crate::func::lift::try1::<$a, $r>(c, $f) }
    };
    ([$($n:literal),+ $(,)?], $a:ty => $r:ty, $f:expr) => {
        $crate::func::Entry { names: &[$($n),+], fallible: false, strict: true, kernel: |c| $crate::func::lift::map1::<$a, $r>(c, $f) }
    };
}

/// A strict function of two arguments; see [`f1!`].
#[macro_export]
macro_rules! f2 {
    (? [$($n:literal),+ $(,)?], $a:ty, $b:ty => $r:ty, $f:expr) => {
        $crate::func::Entry { names: &[$($n),+], fallible: true, strict: true, kernel: |c| $crate::func::lift::try2::<$a, $b, $r>(c, $f) }
    };
    ([$($n:literal),+ $(,)?], $a:ty, $b:ty => $r:ty, $f:expr) => {
        $crate::func::Entry { names: &[$($n),+], fallible: false, strict: true, kernel: |c| $crate::func::lift::map2::<$a, $b, $r>(c, $f) }
    };
}

/// A strict function of three arguments; see [`f1!`].
#[macro_export]
macro_rules! f3 {
    (? [$($n:literal),+ $(,)?], $a:ty, $b:ty, $c:ty => $r:ty, $f:expr) => {
        $crate::func::Entry { names: &[$($n),+], fallible: true, strict: true, kernel: |c| $crate::func::lift::try3::<$a, $b, $c, $r>(c, $f) }
    };
    ([$($n:literal),+ $(,)?], $a:ty, $b:ty, $c:ty => $r:ty, $f:expr) => {
        $crate::func::Entry { names: &[$($n),+], fallible: false, strict: true, kernel: |c| $crate::func::lift::map3::<$a, $b, $c, $r>(c, $f) }
    };
}

/// A strict function on values: `val!([names], |args: &[Value], call: &Call| -> Result<Value, SqlError>)`. Without `?` it never returns `Err`.
#[macro_export]
macro_rules! val {
    (? [$($n:literal),+ $(,)?], $f:expr) => {
        $crate::func::Entry { names: &[$($n),+], fallible: true, strict: true, kernel: |c| $crate::func::lift::on_values(c, true, $f) }
    };
    ([$($n:literal),+ $(,)?], $f:expr) => {
        $crate::func::Entry { names: &[$($n),+], fallible: false, strict: true, kernel: |c| $crate::func::lift::on_values(c, true, $f) }
    };
}

/// A function on values that sees NULL arguments.
#[macro_export]
macro_rules! vals {
    (? [$($n:literal),+ $(,)?], $f:expr) => {
        $crate::func::Entry { names: &[$($n),+], fallible: true, strict: false, kernel: |c| $crate::func::lift::on_values(c, false, $f) }
    };
    ([$($n:literal),+ $(,)?], $f:expr) => {
        $crate::func::Entry { names: &[$($n),+], fallible: false, strict: false, kernel: |c| $crate::func::lift::on_values(c, false, $f) }
    };
}

/// A kernel written by hand over columns.
#[macro_export]
macro_rules! kernel {
    (? [$($n:literal),+ $(,)?], $f:expr) => {
        $crate::func::Entry { names: &[$($n),+], fallible: true, strict: true, kernel: $f }
    };
    ([$($n:literal),+ $(,)?], $f:expr) => {
        $crate::func::Entry { names: &[$($n),+], fallible: false, strict: true, kernel: $f }
    };
}
