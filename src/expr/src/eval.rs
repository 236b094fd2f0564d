//! Evaluation over batches.
//!
//! ```text
//!   AND / OR / CASE / COALESCE   each operand on the rows that the earlier ones left undecided:
//!       operand cannot fail  ──►  evaluated on all rows (a loop is cheaper than a gather)
//!       operand can fail     ──►  its rows gathered, evaluated densely, scattered back
//! ```
//!
//! Inside, a column of one row may stand for all rows (literals and what is computed from literals alone).
//! A row whose argument failed is not passed on: the first error of a row is its only one.

use crate::ctx::EvalCtx;
use crate::func::{CallArgs, FuncDef, Volatility};
use crate::scalar::Scalar;
use arrow_array::cast::AsArray;
use arrow_array::{new_null_array, Array, ArrayRef, BooleanArray, UInt32Array};
use arrow_buffer::{BooleanBuffer, NullBuffer};
use arrow_select::take::take;
use repr::{column, Batch, ColType, SqlError, SqlType, Value};
use std::sync::Arc;

/// A column of results; rows that failed are NULL in it and listed, by position, once each, in order.
///
/// Where results take more than a column has room for, the rows from some row on have the error [`column::too_large`] and are to be
/// evaluated again as a batch of their own.
pub struct Evaluated {
    pub column: ArrayRef,
    pub errors: Vec<(u32, SqlError)>,
}

/// Evaluates `expr` on every row of `batch`, whose columns have `types`.
pub fn eval(expr: &Scalar, batch: &Batch, types: &[ColType], ctx: &EvalCtx) -> Evaluated {
    let _entered = ctx.interrupt.enter();
    let e = Eval { types, ctx };
    e.eval(expr, batch).expand(batch.len)
}

/// As [`eval`], but one column for all rows: [`column::too_large`] is only the error of rows that do not fit into 2 GB.
pub fn eval_whole(expr: &Scalar, batch: &Batch, types: &[ColType], ctx: &EvalCtx) -> Evaluated {
    let (mut parts, mut errors): (Vec<ArrayRef>, Vec<(u32, SqlError)>) = Default::default();
    let (mut from, mut bytes) = (0, 0);
    loop {
        let rest = batch.len - from;
        let piece = if from == 0 { batch.clone() } else { batch.slice(from, rest) };
        let mut made = eval(expr, &piece, types, ctx);
        // The rows before the first that had no room are done.
        let fit = made.errors.iter().position(|e| column::is_too_large(&e.1));
        let rows = fit.map_or(rest, |p| (made.errors[p].0 as usize).max(1));
        if rows >= batch.len {
            return made;
        }
        made.errors.retain(|e| (e.0 as usize) < rows);
        bytes += column::column_bytes(&made.column.slice(0, rows));
        if !column::fits(bytes) {
            parts.push(new_null_array(made.column.data_type(), rest));
            errors.extend(no_room(from, batch.len));
            break;
        }
        parts.push(made.column.slice(0, rows));
        errors.extend(made.errors.into_iter().map(|(i, e)| (i + from as u32, e)));
        from += rows;
        if from >= batch.len {
            break;
        }
    }
    let parts: Vec<&dyn Array> = parts.iter().map(|p| p.as_ref()).collect();
    Evaluated { column: arrow_select::concat::concat(&parts).expect("parts of one type that fit"), errors }
}

/// Evaluates an expression that reads no column.
pub fn eval_const(expr: &Scalar, ctx: &EvalCtx) -> Result<Value, SqlError> {
    eval_row(expr, &[], &[], ctx)
}

/// Evaluates `expr` on one row, whose columns have `types`, by the same kernels.
pub fn eval_row(expr: &Scalar, row: &[Value], types: &[ColType], ctx: &EvalCtx) -> Result<Value, SqlError> {
    let go = |x: &Scalar| eval_row(x, row, types, ctx);
    match expr {
        Scalar::Column(i) => Ok(row[*i].clone()),
        Scalar::Literal(v, _) => Ok(v.clone()),
        Scalar::Error(e, _) => Err((**e).clone()),
        Scalar::And(xs) | Scalar::Or(xs) => {
            let decisive = matches!(expr, Scalar::Or(_));
            let mut unknown = false;
            for x in xs {
                match go(x)? {
                    Value::Bool(b) if b == decisive => return Ok(Value::Bool(b)),
                    Value::Bool(_) => {}
                    _ => unknown = true,
                }
            }
            Ok(if unknown { Value::Null } else { Value::Bool(!decisive) })
        }
        Scalar::Not(x) => Ok(match go(x)? {
            Value::Bool(b) => Value::Bool(!b),
            other => other,
        }),
        Scalar::IsNull(x) => Ok(Value::Bool(go(x)?.is_null())),
        Scalar::Case { branches, otherwise, .. } => {
            for (cond, then) in branches {
                if go(cond)? == Value::Bool(true) {
                    return go(then);
                }
            }
            go(otherwise)
        }
        Scalar::Coalesce(xs, _) => {
            for x in xs {
                let v = go(x)?;
                if !v.is_null() {
                    return Ok(v);
                }
            }
            Ok(Value::Null)
        }
        Scalar::Call { func, args, ty } => {
            let arg_types: Vec<ColType> = args.iter().map(|a| a.typ(types)).collect();
            let values = args.iter().map(go).collect::<Result<Vec<Value>, SqlError>>()?;
            call_values(func, &values, &arg_types, ty, ctx)
        }
    }
}

/// Calls a function on one tuple of values.
pub fn call_values(func: &FuncDef, args: &[Value], arg_types: &[ColType], ret: &ColType, ctx: &EvalCtx) -> Result<Value, SqlError> {
    if func.strict && args.iter().any(Value::is_null) {
        return Ok(Value::Null);
    }
    ctx.interrupt.check()?;
    let _entered = ctx.interrupt.enter();
    let cols: Vec<ArrayRef> = args.iter().zip(arg_types).map(|(v, t)| column::repeat(v, &t.ty, 1)).collect();
    let mut errors = Vec::new();
    let out = (func.kernel)(&mut CallArgs { args: &cols, arg_types, ret, len: 1, ctx, errors: &mut errors });
    match errors.into_iter().next() {
        Some((_, e)) => Err(e),
        None => Ok(column::get(&out, &ret.ty, 0)),
    }
}

struct Eval<'a> {
    types: &'a [ColType],
    ctx: &'a EvalCtx,
}

impl Evaluated {
    /// `len` rows from a column of `len` or 1.
    fn expand(self, len: usize) -> Evaluated {
        if self.column.len() == len {
            return self;
        }
        let (column, fit) = column::spread(&self.column, len);
        Evaluated { column, errors: merge_errors(self.errors, no_room(fit, len)) }
    }
}

/// Rows `[fit, len)` have no room.
fn no_room(fit: usize, len: usize) -> Vec<(u32, SqlError)> {
    (fit as u32..len as u32).map(|i| (i, column::too_large())).collect()
}

/// Merges two lists in order of row; of two errors of a row the first list's stays.
fn merge_errors(first: Vec<(u32, SqlError)>, second: Vec<(u32, SqlError)>) -> Vec<(u32, SqlError)> {
    if second.is_empty() {
        return first;
    }
    if first.is_empty() {
        return second;
    }
    let mut all = first;
    all.extend(second);
    all.sort_by_key(|e| e.0); // stable: the first list's error of a row comes first
    all.dedup_by_key(|e| e.0);
    all
}

/// The column with NULL at `rows`.
fn null_out(col: ArrayRef, errors: &[(u32, SqlError)]) -> ArrayRef {
    if errors.iter().all(|(i, _)| col.is_null(*i as usize)) {
        return col;
    }
    let mut valid: Vec<bool> = (0..col.len()).map(|i| !col.is_null(i)).collect();
    errors.iter().for_each(|(i, _)| valid[*i as usize] = false);
    let data = col.to_data().into_builder().nulls(Some(NullBuffer::from(valid)));
    arrow_array::make_array(data.build().expect("only the validity changed"))
}

/// Truth of a boolean column's row: `None` is NULL.
fn truth(col: &ArrayRef, len: usize, i: usize) -> Option<bool> {
    let b = col.as_boolean();
    let i = if b.len() == len { i } else { 0 };
    b.is_valid(i).then(|| b.value(i))
}

impl Eval<'_> {
    fn eval(&self, expr: &Scalar, batch: &Batch) -> Evaluated {
        let clean = |column| Evaluated { column, errors: Vec::new() };
        match expr {
            Scalar::Column(i) => clean(batch.cols[*i].clone()),
            Scalar::Literal(v, t) => clean(column::repeat(v, &t.ty, 1)),
            Scalar::Error(e, t) => {
                Evaluated { column: new_null_array(&column::physical(&t.ty), batch.len), errors: (0..batch.len as u32).map(|i| (i, (**e).clone())).collect() }
            }
            Scalar::IsNull(x) => {
                let v = self.eval(x, batch);
                let bits = BooleanBuffer::collect_bool(v.column.len(), |i| v.column.is_null(i));
                let column = Arc::new(BooleanArray::new(bits, None));
                self.after(v.errors, column, batch.len)
            }
            Scalar::Not(x) => {
                let v = self.eval(x, batch);
                let b = v.column.as_boolean();
                Evaluated { column: Arc::new(BooleanArray::new(!b.values(), b.nulls().cloned())), errors: v.errors }
            }
            Scalar::And(xs) => self.connective(xs, false, batch),
            Scalar::Or(xs) => self.connective(xs, true, batch),
            Scalar::Case { branches, otherwise, ty } => self.case(branches, otherwise, &ty.ty, batch),
            Scalar::Coalesce(xs, ty) => self.coalesce(xs, &ty.ty, batch),
            Scalar::Call { func, args, ty } => self.call(func, args, ty, batch),
        }
    }

    /// A result computed from columns that had `errors`: those rows become NULL.
    fn after(&self, errors: Vec<(u32, SqlError)>, column: ArrayRef, len: usize) -> Evaluated {
        if errors.is_empty() {
            return Evaluated { column, errors };
        }
        let all = Evaluated { column, errors }.expand(len);
        Evaluated { column: null_out(all.column, &all.errors), errors: all.errors }
    }

    fn call(&self, func: &FuncDef, args: &[Scalar], ty: &ColType, batch: &Batch) -> Evaluated {
        let mut failed = Vec::new();
        let mut cols = Vec::with_capacity(args.len());
        for a in args {
            let v = self.eval(a, batch);
            failed = merge_errors(failed, v.errors);
            cols.push(v.column);
        }
        let arg_types: Vec<ColType> = args.iter().map(|a| a.typ(self.types)).collect();
        let constant = func.volatility != Volatility::Volatile && batch.len > 0 && cols.iter().all(|c| c.len() == 1);
        let len = if constant { 1 } else { batch.len };
        // An empty batch has nothing to compute, and a one-row argument must not look like its row.
        if len == 0 {
            return Evaluated { column: new_null_array(&column::physical(&ty.ty), 0), errors: Vec::new() };
        }
        let mut errors = Vec::new();
        if let Err(e) = self.ctx.interrupt.check() {
            return Evaluated { column: new_null_array(&column::physical(&ty.ty), batch.len), errors: (0..batch.len as u32).map(|i| (i, e.clone())).collect() };
        }
        let mut column = (func.kernel)(&mut CallArgs { args: &cols, arg_types: &arg_types, ret: ty, len, ctx: self.ctx, errors: &mut errors });
        debug_assert_eq!(column.len(), len, "{} returned a column of another length", func.name);
        if constant && batch.len > 1 {
            if let Some((_, e)) = errors.first().cloned() {
                errors = (0..batch.len as u32).map(|i| (i, e.clone())).collect();
                column = new_null_array(&column::physical(&ty.ty), batch.len);
            }
        }
        self.after(merge_errors(failed, errors), column, batch.len)
    }

    /// Evaluates `expr` on the rows `undecided` (in order). The result's column and error positions count those rows alone.
    fn on_rows(&self, expr: &Scalar, batch: &Batch, undecided: &[u32]) -> Evaluated {
        if undecided.len() == batch.len {
            return self.eval(expr, batch).expand(batch.len);
        }
        let indices = UInt32Array::from(undecided.to_vec());
        if !expr.can_fail() {
            let v = self.eval(expr, batch);
            return match v.column.len() {
                n if n == batch.len && v.errors.is_empty() => {
                    Evaluated { column: take(&v.column, &indices, None).expect("rows of the batch"), errors: Vec::new() }
                }
                // What cannot fail can still find no room.
                n if n == batch.len => {
                    let column = take(&v.column, &indices, None).expect("rows of the batch");
                    let failed: std::collections::HashSet<u32> = v.errors.iter().map(|e| e.0).collect();
                    let errors = undecided.iter().enumerate().filter(|(_, row)| failed.contains(row)).map(|(k, _)| (k as u32, column::too_large())).collect();
                    Evaluated { column, errors }
                }
                _ => v.expand(undecided.len()),
            };
        }
        // Only what the expression reads is gathered; the other columns are never looked at.
        let mut cols = batch.cols.clone();
        for i in expr.support() {
            cols[i] = take(&batch.cols[i], &indices, None).expect("rows of the batch");
        }
        self.eval(expr, &Batch { len: undecided.len(), cols }).expand(undecided.len())
    }

    /// AND (`decisive` false) and OR (`decisive` true).
    fn connective(&self, xs: &[Scalar], decisive: bool, batch: &Batch) -> Evaluated {
        let n = batch.len;
        // None: decided or failed; else whether a NULL was seen.
        let mut value: Vec<Option<bool>> = vec![Some(!decisive); n];
        let mut undecided: Vec<u32> = (0..n as u32).collect();
        let mut errors = Vec::new();
        for x in xs {
            if undecided.is_empty() {
                break;
            }
            let v = self.on_rows(x, batch, &undecided);
            let mut failed = v.errors.into_iter().peekable();
            let mut left = Vec::with_capacity(undecided.len());
            let mut found = Vec::new();
            for (k, row) in undecided.iter().enumerate() {
                if let Some((_, e)) = failed.next_if(|(i, _)| *i as usize == k) {
                    found.push((*row, e));
                    value[*row as usize] = None;
                    continue;
                }
                match truth(&v.column, undecided.len(), k) {
                    Some(b) if b == decisive => value[*row as usize] = Some(b),
                    Some(_) => left.push(*row),
                    None => {
                        value[*row as usize] = None;
                        left.push(*row);
                    }
                }
            }
            errors = merge_errors(errors, found);
            undecided = left;
        }
        Evaluated { column: Arc::new(BooleanArray::from(value)), errors }
    }

    /// Puts together parts: `source[row]` is (part, position in it); part 0 is one NULL.
    fn assemble(&self, ty: &SqlType, parts: Vec<ArrayRef>, source: &[(usize, usize)], errors: Vec<(u32, SqlError)>) -> Evaluated {
        let null = new_null_array(&column::physical(ty), 1);
        let all: Vec<&dyn Array> = std::iter::once(null.as_ref()).chain(parts.iter().map(|p| p.as_ref())).collect();
        let (column, fit) = column::interleave(&all, source);
        Evaluated { column, errors: merge_errors(errors, no_room(fit, source.len())) }
    }

    fn case(&self, branches: &[(Scalar, Scalar)], otherwise: &Scalar, ty: &SqlType, batch: &Batch) -> Evaluated {
        let n = batch.len;
        let mut undecided: Vec<u32> = (0..n as u32).collect();
        let mut source = vec![(0, 0); n];
        let mut parts = Vec::new();
        let mut errors = Vec::new();
        let mut place = |me: &Self, then: &Scalar, rows: &[u32], errors: &mut Vec<(u32, SqlError)>| {
            if rows.is_empty() {
                return;
            }
            let v = me.on_rows(then, batch, rows);
            parts.push(v.column);
            for (k, row) in rows.iter().enumerate() {
                source[*row as usize] = (parts.len(), k);
            }
            errors.extend(v.errors.into_iter().map(|(k, e)| (rows[k as usize], e)));
        };
        for (cond, then) in branches {
            if undecided.is_empty() {
                break;
            }
            let v = self.on_rows(cond, batch, &undecided);
            let mut failed = v.errors.into_iter().peekable();
            let (mut yes, mut no) = (Vec::new(), Vec::new());
            for (k, row) in undecided.iter().enumerate() {
                if let Some((_, e)) = failed.next_if(|(i, _)| *i as usize == k) {
                    errors.push((*row, e));
                } else if truth(&v.column, undecided.len(), k) == Some(true) {
                    yes.push(*row);
                } else {
                    no.push(*row);
                }
            }
            place(self, then, &yes, &mut errors);
            undecided = no;
        }
        place(self, otherwise, &undecided, &mut errors);
        errors.sort_by_key(|e| e.0);
        self.assemble(ty, parts, &source, errors)
    }

    fn coalesce(&self, xs: &[Scalar], ty: &SqlType, batch: &Batch) -> Evaluated {
        let n = batch.len;
        let mut undecided: Vec<u32> = (0..n as u32).collect();
        let mut source = vec![(0, 0); n];
        let mut parts = Vec::new();
        let mut errors = Vec::new();
        for x in xs {
            if undecided.is_empty() {
                break;
            }
            let v = self.on_rows(x, batch, &undecided);
            let mut failed = v.errors.into_iter().peekable();
            let mut left = Vec::new();
            for (k, row) in undecided.iter().enumerate() {
                if let Some((_, e)) = failed.next_if(|(i, _)| *i as usize == k) {
                    errors.push((*row, e));
                } else if v.column.is_null(k) {
                    left.push(*row);
                } else {
                    source[*row as usize] = (parts.len() + 1, k);
                }
            }
            parts.push(v.column);
            undecided = left;
        }
        errors.sort_by_key(|e| e.0);
        self.assemble(ty, parts, &source, errors)
    }
}
