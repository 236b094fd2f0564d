//! Aggregates over moving frames.
//!
//! ```text
//!   accumulable   a state follows the frame: rows that enter are added, rows that leave are subtracted; a second state
//!                 follows the excluded rows. Each end moves forward only, so all rows together cost O(n).
//!   min, max      a tree of ranges over the values: O(log n) a frame
//!   others        computed anew, unless the frame is that of the row before
//! ```

use super::frame::{Covered, Frames};
use crate::agg::{self, Accum, AggKind, Aggregate, ArgReader};
use crate::ctx::EvalCtx;
use crate::eval::eval_whole;
use crate::scalar::Scalar;
use arrow_array::ArrayRef;
use repr::{column, Batch, ColType, Diff, SqlError, SqlType, Value};
use std::cmp::Ordering;

/// A scalar on each row; the first error if there is one.
fn column_of(x: &Scalar, batch: &Batch, types: &[ColType], ctx: &EvalCtx) -> Result<ArrayRef, SqlError> {
    let v = eval_whole(x, batch, types, ctx);
    match v.errors.into_iter().next() {
        Some((_, e)) => Err(e),
        None => Ok(v.column),
    }
}

/// Adds rows, each `diffs` times, to a state.
pub fn add(agg: &Aggregate, batch: &Batch, diffs: &[Diff], types: &[ColType], state: &mut Accum, ctx: &EvalCtx) -> Result<(), SqlError> {
    let args = Args::new(agg, batch, types, ctx)?;
    let reader = ArgReader::open(&args.columns, &args.types);
    args.kept.iter().enumerate().for_each(|(at, row)| state.update(&reader, at, diffs[*row as usize]));
    Ok(())
}

/// The arguments of an aggregate.
struct Args {
    /// Rows that pass the filter: only on these arguments are evaluated.
    kept: Vec<u32>,
    columns: Vec<ArrayRef>,
    types: Vec<ColType>,
}

impl Args {
    fn new(agg: &Aggregate, batch: &Batch, types: &[ColType], ctx: &EvalCtx) -> Result<Args, SqlError> {
        let pass = agg.filter.as_ref().map(|f| column_of(f, batch, types, ctx)).transpose()?;
        let passes = |i: u32| pass.as_ref().is_none_or(|c| column::get(c, &SqlType::Bool, i as usize) == Value::Bool(true));
        let kept: Vec<u32> = (0..batch.len as u32).filter(|i| passes(*i)).collect();
        let dense = if kept.len() == batch.len { batch.clone() } else { batch.take(&kept.clone().into()) };
        let columns = agg.args.iter().map(|a| column_of(a, &dense, types, ctx)).collect::<Result<_, _>>()?;
        Ok(Args { kept, columns, types: agg.args.iter().map(|a| a.typ(types)).collect() })
    }
}

/// The value of `agg` over the frame of each row. `base`: the state of what comes before the rows, for frames that begin with the partition.
pub fn aggregate(agg: &Aggregate, base: Option<&Accum>, batch: &Batch, types: &[ColType], frames: &Frames, ctx: &EvalCtx) -> Result<Vec<Value>, SqlError> {
    let Args { kept, columns: args, types: arg_types } = Args::new(agg, batch, types, ctx)?;
    // Position of each row among those kept: how many kept rows come before it.
    let mut before = Vec::with_capacity(batch.len + 1);
    let mut count = 0;
    for i in 0..batch.len as u32 {
        before.push(count);
        count += usize::from(kept.get(count) == Some(&i));
    }
    before.push(count);
    match &agg.func.kind {
        AggKind::Accumulable(_) if !agg.distinct => accumulable(agg, base, &ArgReader::open(&args, &arg_types), frames, &before),
        AggKind::Extremum { max } => {
            let values: Vec<Value> = (0..kept.len()).map(|i| column::get(&args[0], &arg_types[0].ty, i)).collect();
            let tree = Tree::new(&values, &arg_types[0].ty, *max);
            Ok((0..frames.len())
                .map(|i| {
                    let best = frames.of(i).ranges().filter_map(|(a, b)| tree.best(before[a], before[b])).reduce(|x, y| tree.better(x, y));
                    best.map_or(Value::Null, |k| values[k].clone())
                })
                .collect())
        }
        _ => {
            let tuples: Vec<(Vec<Value>, i64)> = {
                let b = Batch { len: kept.len(), cols: args };
                (0..kept.len()).map(|i| (b.row(&arg_types, i), 1)).collect()
            };
            by_frame(frames, |_, covered| {
                let rows: Vec<_> = covered.ranges().flat_map(|(a, b)| tuples[before[a]..before[b]].iter().cloned()).collect();
                if rows.is_empty() {
                    return Ok(agg::empty_value(agg));
                }
                if agg.distinct {
                    let mut seen = std::collections::HashSet::new();
                    let codec = repr::RowCodec::new(arg_types.clone());
                    let fresh = rows.into_iter().filter(|(t, _)| {
                        let mut key = Vec::new();
                        codec.encode_key(t, &mut key);
                        seen.insert(key)
                    });
                    return agg::of_tuples(agg, &fresh.collect::<Vec<_>>(), &arg_types, ctx);
                }
                agg::of_tuples(agg, &rows, &arg_types, ctx)
            })
        }
    }
}

/// Calls `f` for each frame that differs from the one before.
fn by_frame(frames: &Frames, mut f: impl FnMut(usize, &Covered) -> Result<Value, SqlError>) -> Result<Vec<Value>, SqlError> {
    let mut out: Vec<Value> = Vec::with_capacity(frames.len());
    let mut last: Option<Covered> = None;
    for i in 0..frames.len() {
        let covered = frames.of(i);
        let v = match (&last, out.last()) {
            (Some(l), Some(v)) if *l == covered => v.clone(),
            _ => f(i, &covered)?,
        };
        last = Some(covered);
        out.push(v);
    }
    Ok(out)
}

/// A state that covers a range of rows and follows it.
struct Slider<'a> {
    state: Accum,
    /// The state of an empty range.
    base: Accum,
    args: &'a ArgReader<'a>,
    range: (usize, usize),
}

impl Slider<'_> {
    fn to(&mut self, a: usize, b: usize) {
        let b = b.max(a);
        let (mut s, mut e) = self.range;
        if a >= e || b <= s || a.abs_diff(s) + b.abs_diff(e) > b - a {
            // Cheaper from nothing.
            self.state.clone_from(&self.base);
            (s, e) = (a, a);
        }
        while e < b {
            self.state.update(self.args, e, 1);
            e += 1;
        }
        while e > b {
            e -= 1;
            self.state.update(self.args, e, -1);
        }
        while s > a {
            s -= 1;
            self.state.update(self.args, s, 1);
        }
        while s < a {
            self.state.update(self.args, s, -1);
            s += 1;
        }
        self.range = (a, b);
    }
}

fn accumulable(agg: &Aggregate, base: Option<&Accum>, args: &ArgReader<'_>, frames: &Frames, before: &[usize]) -> Result<Vec<Value>, SqlError> {
    let zero = Accum::new(agg.func);
    let slider = |base: &Accum| Slider { state: base.clone(), base: base.clone(), args, range: (0, 0) };
    let (mut all, mut out) = (slider(base.unwrap_or(&zero)), slider(&zero));
    by_frame(frames, |i, _| {
        let (s, e) = frames.bounds[i];
        all.to(before[s], before[e]);
        let Some(excluded) = &frames.excluded else { return all.state.finalize(agg) };
        let (a, b) = (excluded[i].0.max(s), excluded[i].1.min(e));
        let mut state = all.state.clone();
        if a < b {
            out.to(before[a], before[b]);
            let mut minus = out.state.clone();
            minus.scale(-1);
            state.plus_equals(&minus);
        }
        if frames.keep_self && s <= i && i < e && before[i] < before[i + 1] {
            state.update(args, before[i], 1);
        }
        state.finalize(agg)
    })
}

/// The position of the best value of any range, NULLs aside; of equal ones the first.
struct Tree<'a> {
    values: &'a [Value],
    ty: &'a SqlType,
    max: bool,
    /// A complete binary tree in an array; leaves from `size` on.
    nodes: Vec<Option<usize>>,
    size: usize,
}

impl<'a> Tree<'a> {
    fn new(values: &'a [Value], ty: &'a SqlType, max: bool) -> Tree<'a> {
        let size = values.len().next_power_of_two().max(1);
        let mut t = Tree { values, ty, max, nodes: vec![None; 2 * size], size };
        for (i, v) in values.iter().enumerate() {
            if !v.is_null() {
                t.nodes[size + i] = Some(i);
            }
        }
        for k in (1..size).rev() {
            t.nodes[k] = match (t.nodes[2 * k], t.nodes[2 * k + 1]) {
                (Some(a), Some(b)) => Some(t.better(a, b)),
                (a, b) => a.or(b),
            };
        }
        t
    }

    fn better(&self, a: usize, b: usize) -> usize {
        let o = self.values[a].sql_cmp(&self.values[b], self.ty);
        let a_wins = match o {
            Ordering::Equal => a < b,
            Ordering::Greater => self.max,
            Ordering::Less => !self.max,
        };
        if a_wins {
            a
        } else {
            b
        }
    }

    /// Over positions `[a, b)`.
    fn best(&self, a: usize, b: usize) -> Option<usize> {
        let (mut lo, mut hi) = (a + self.size, b + self.size);
        let mut best: Option<usize> = None;
        let mut take = |n: Option<usize>| {
            if let Some(x) = n {
                best = Some(best.map_or(x, |y| self.better(x, y)));
            }
        };
        while lo < hi {
            if lo & 1 == 1 {
                take(self.nodes[lo]);
                lo += 1;
            }
            if hi & 1 == 1 {
                hi -= 1;
                take(self.nodes[hi]);
            }
            lo /= 2;
            hi /= 2;
        }
        best
    }
}
