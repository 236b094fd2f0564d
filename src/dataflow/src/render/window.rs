//! Window functions: a change is answered from the slice of the partition that it can reach.
//!
//! ```text
//!   partition, in order    . . . . [ c c | r r x r r r | c c ] . . . .
//!                                    x changed   r may differ: evaluated before and after, differences are sent
//!                                    c context: evaluated with them, not sent
//! ```
//!
//! The slice grows until no row outside can differ. What depends on all rows before (`Reach::Prefix`) is carried on from the output of
//! the row before the slice, and the slice grows until what is carried out of it is the same before and after: a row number that
//! shifts makes every later row differ. Partitions with other functions, with an error, or mostly new are evaluated whole.
//!
//! Running aggregates whose value does not say enough (avg, stddev, sums of floats) are carried on by their states. These are not stored with
//! rows: of a large partition that has changed before, the state of all rows up to a val is kept for some vals ([`Marks`]), from the nearest of which
//! on the rows before a slice are added up. Since states add up, a change brings the marks behind it up to date by being added to them.
//!
//! An output val is the input val, then the window values, so that the output of a row is found by the row.

use super::arranged::{flatten_reduced, ERROR_TAG};
use super::collection::{map_fallible, Collection};
use super::reduce::push_error;
use super::{order, Context, RenderTime};
use crate::arrange::{exchange, Block, Changed, Counted, DiffLogic, GroupChanges, Layout, Outputs, Place, Runs, Time, Upd};
use crate::errors;
use crate::eval::{in_pieces, note_errors};
use expr::agg::Accum;
use expr::window::{add_to_states, evaluate, evaluate_after, no_states, spans, Partition, Reach};
use expr::{ColumnOrder, EvalCtx, Scalar, WindowExpr, WindowFunc};
use repr::error::state;
use repr::{Batch, ColType, Diff, RowCodec, SqlError, Value};
use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::rc::Rc;
use std::sync::Arc;
use timely::order::TotalOrder;

/// Entries of context on each side that a slice begins with.
const CONTEXT: usize = 4;
/// Bytes of a slice's rows beyond which none may come more than once.
const COPIES_MAX: usize = 2 << 30;
/// Entries from one mark to the next: what is read again at each change, and how little marks weigh.
const MARK: usize = 256;

pub fn render<'s, T: RenderTime>(
    cx: &Context<'s, T>,
    input: Collection<'s, T>,
    types: &[ColType],
    partition: &[usize],
    order_by: &[ColumnOrder],
    exprs: &[WindowExpr],
) -> Collection<'s, T> {
    let layout = Rc::new(Layout::new(types.to_vec(), partition.iter().map(|c| Scalar::Column(*c)).collect()));
    let (encode_layout, encode_order, ctx) = (layout.clone(), order_by.to_vec(), cx.env.ctx.clone());
    let (blocks, failed) = map_fallible(input.oks, "EncodePartition", move |upd: Upd<T>, out| {
        in_pieces(upd, |upd| {
            let (body, failed) = order::encode(&encode_layout, &encode_order, upd, &ctx);
            note_errors(upd, failed, &mut out.errs)?;
            if !body.is_empty() {
                out.oks.push(Block(body));
            }
            Ok(())
        });
    });
    let arranged = T::arrange(blocks, exchange(), "ArrangePartition", &cx.env);
    let codec = RowCodec::new(exprs.iter().map(|e| e.ty.clone()).collect());
    let windows = Windows {
        layout: layout.clone(),
        order: order_by.to_vec(),
        exprs: exprs.to_vec(),
        codec: codec.clone(),
        ctx: cx.env.ctx.clone(),
        marks: HashMap::new(),
    };
    let reduced = T::reduce_windows(arranged, "Window", windows, &cx.env);
    let (oks, errs) = flatten_reduced(reduced.stream, &cx.env, move |keys, vals| {
        let rows: Vec<&[u8]> = vals.iter().map(|v| order::split(split(v).0).1).collect();
        let mut all = layout.decode(keys, &rows, |_| true);
        all.cols.extend(codec.decode(vals.iter().map(|v| split(v).1)).cols);
        Batch { len: keys.len(), cols: all.cols }
    });
    Collection::new(oks, input.errs).with_errs(failed).with_errs(errs)
}

/// Input val and window values of an output val.
fn split(val: &[u8]) -> (&[u8], &[u8]) {
    let Some((rest, len)) = val.split_last_chunk::<4>() else { return (&[], val) };
    rest.split_at(u32::from_le_bytes(*len) as usize)
}

/// What is computed over the partitions of one plan node.
pub struct Windows {
    layout: Rc<Layout>,
    order: Vec<ColumnOrder>,
    exprs: Vec<WindowExpr>,
    codec: RowCodec,
    ctx: Arc<EvalCtx>,
    /// By partition key.
    marks: HashMap<Vec<u8>, Marks>,
}

/// States of the rows up to a val, by val. What is not here can be added up again.
#[derive(Default)]
struct Marks(Vec<(Vec<u8>, Vec<Accum>)>);

/// Rows of a partition in order, as `evaluate` wants them, each with the position of its entry.
#[derive(Default)]
struct Rows {
    values: Vec<Vec<Value>>,
    peers: Vec<usize>,
    entries: Vec<usize>,
}

/// What comes into a slice from the rows before it: for each expression that is carried on its value before.
type Carried = Vec<Option<Value>>;

impl Windows {
    /// Errors: 54000 if the rows, each as often as it comes, are more than fit; 57014 once the statement is to end.
    fn rows<'a>(&self, key: &[u8], vals: impl Iterator<Item = (&'a [u8], Diff)>) -> Result<Rows, SqlError> {
        let mut rows = Rows::default();
        let (mut last, mut peer) = (None, 0);
        let row_bytes = size_of::<Vec<Value>>() + 2 * size_of::<usize>() + self.layout.types.len() * size_of::<Value>();
        for (entry, (val, n)) in vals.enumerate() {
            if n <= 0 {
                continue;
            }
            let (sort, row) = order::split(val);
            if last.is_some_and(|l| l != sort) {
                peer += 1;
            }
            last = Some(sort);
            let row = self.layout.decode_row(key, row);
            let copies = n as usize;
            self.ctx.interrupt.check()?;
            let bytes = rows.values.len().saturating_add(copies).saturating_mul(row_bytes + row.iter().map(Value::text_bytes).sum::<usize>());
            if copies > 1 && bytes > COPIES_MAX {
                return Err(SqlError::new(state::PROGRAM_LIMIT_EXCEEDED, "a partition of a window function is too large")
                    .with_detail(format!("It has {} rows so far, and one that comes {copies} times.", rows.values.len()))
                    .with_hint("Add PARTITION BY, or make the input smaller."));
            }
            rows.values.extend(std::iter::repeat_n(row, copies));
            rows.peers.extend(std::iter::repeat_n(peer, copies));
            rows.entries.extend(std::iter::repeat_n(entry, copies));
        }
        Ok(rows)
    }

    fn partition<'a>(&'a self, rows: &'a Rows) -> Partition<'a> {
        Partition { rows: &rows.values, types: &self.layout.types, peers: &rows.peers, order: &self.order }
    }

    fn write(&self, val: &[u8], values: &[Value], out: &mut Vec<u8>) {
        out.extend_from_slice(val);
        self.codec.encode_row(values, out);
        out.extend_from_slice(&(val.len() as u32).to_le_bytes());
    }

    /// The whole partition from its vals: rows, or one error.
    pub fn whole(&self, key: &[u8], vals: &[(&[u8], Diff)], out: &mut Outputs) {
        if vals.iter().any(|v| v.1 < 0) {
            return push_error(out, &errors::negative_count("a window function"));
        }
        let rows = match self.rows(key, vals.iter().copied()) {
            Err(e) => return push_error(out, &e),
            Ok(rows) => rows,
        };
        match evaluate(&self.partition(&rows), &self.exprs, &self.ctx) {
            Err(e) => push_error(out, &e),
            Ok(values) => {
                for (entry, values) in rows.entries.iter().zip(values) {
                    out.push(1, |b| self.write(vals[*entry].0, &values, b));
                }
            }
        }
    }

    fn sees_peers(&self) -> bool {
        self.exprs.iter().any(WindowExpr::sees_peers)
    }
    fn prefix(&self) -> bool {
        self.exprs.iter().any(|e| e.reach() == Reach::Prefix)
    }
    /// Whether slices serve at all.
    fn sliced(&self) -> bool {
        self.exprs.iter().all(|e| e.reach() != Reach::Whole) && !(self.order.is_empty() && self.sees_peers())
    }
    /// Whether something is carried on by the value before.
    fn carries_values(&self) -> bool {
        self.exprs.iter().any(carries_value)
    }
    /// Whether what is carried differs between copies of one row.
    fn numbers_copies(&self) -> bool {
        self.exprs.iter().any(|e| carries_value(e) && !e.sees_peers())
    }
    /// Adds what entries count for to states.
    fn add<'a>(&self, key: &[u8], entries: impl Iterator<Item = (&'a [u8], Diff)>, states: &mut [Accum]) -> Result<(), SqlError> {
        let (rows, diffs): (Vec<_>, Vec<_>) = entries.map(|(val, d)| (self.layout.decode_row(key, order::split(val).1), d)).unzip();
        add_to_states(&rows, &diffs, &self.layout.types, &self.exprs, states, &self.ctx)
    }
}

fn carries_value(e: &WindowExpr) -> bool {
    e.reach() == Reach::Prefix && e.prefix_state().is_none()
}

impl<T: Time + TotalOrder> DiffLogic<T> for Windows {
    fn run(&mut self, group: &Changed<'_, T>, changes: &mut GroupChanges<T>) {
        let runs = Runs::new(&group.fresh, &group.source);
        let marks = RefCell::new(self.marks.remove(group.key).unwrap_or_default());
        let mut work = Work { windows: self, key: group.key, runs: &runs, output: Runs::new(&[], &group.output), made: BTreeMap::new(), marks };
        let mut failed = work.fails();
        let updates = group.updates();
        let mut times = updates.chunk_by(|a, b| a.0 == b.0).peekable();
        while let Some(at) = times.next() {
            let t = &at[0].0;
            let mut fresh: Vec<&[u8]> = at.iter().map(|u| u.1).collect();
            fresh.dedup();
            let few = fresh.len() < runs.updates() / 8;
            let mut made = None;
            if few && !failed && self.sliced() {
                made = work.slices(t, &fresh);
            }
            let made = match made {
                Some(some) => some,
                None => {
                    work.marks.take();
                    let all = work.whole(t);
                    failed = all.iter().any(|(v, d)| *d > 0 && v.first() == Some(&ERROR_TAG));
                    all
                }
            };
            if times.peek().is_some() {
                for (val, d) in &made {
                    *work.made.entry(val.clone()).or_default() += d;
                }
            }
            changes.extend(made.into_iter().map(|(val, d)| ((val, t.clone()), d)));
        }
        let marks = work.marks.into_inner();
        if !marks.0.is_empty() {
            self.marks.insert(group.key.to_vec(), marks);
        }
    }
}

/// One group's times being worked through.
struct Work<'w, 'a, T: Time> {
    windows: &'w Windows,
    key: &'a [u8],
    runs: &'w Runs<'a, T>,
    output: Runs<'a, T>,
    /// Output changes of the times done so far.
    made: BTreeMap<Vec<u8>, Diff>,
    /// Right at the times done so far.
    marks: RefCell<Marks>,
}

/// Consecutive vals of a partition, with what lies to both sides.
struct Slice<'a> {
    entries: VecDeque<Counted<'a>>,
    left: Place,
    right: Place,
    at_start: bool,
    at_end: bool,
}

impl<'a> Slice<'a> {
    fn sort(entry: Option<&Counted<'a>>) -> Option<&'a [u8]> {
        entry.map(|e| order::split(e.val).0)
    }
    fn grow_left<T: Time>(&mut self, runs: &Runs<'a, T>, t: &T, n: usize, whole_peers: bool) {
        let mut more = n;
        while !self.at_start {
            let mut place = self.left.clone();
            match runs.prev(&mut place, t) {
                None => self.at_start = true,
                Some(e) if more > 0 || (whole_peers && Self::sort(Some(&e)) == Self::sort(self.entries.front())) => {
                    self.entries.push_front(e);
                    self.left = place;
                    more = more.saturating_sub(1);
                }
                Some(_) => return,
            }
        }
    }
    fn grow_right<T: Time>(&mut self, runs: &Runs<'a, T>, t: &T, n: usize, whole_peers: bool) {
        let mut more = n;
        while !self.at_end {
            let mut place = self.right.clone();
            match runs.next(&mut place, t) {
                None => self.at_end = true,
                Some(e) if more > 0 || (whole_peers && Self::sort(Some(&e)) == Self::sort(self.entries.back())) => {
                    self.entries.push_back(e);
                    self.right = place;
                    more = more.saturating_sub(1);
                }
                Some(_) => return,
            }
        }
    }
}

/// A slice at one of the two times: its rows, what each depends on, its values.
struct Side {
    rows: Rows,
    spans: Vec<(usize, usize)>,
}

impl Side {
    /// The first row of the entries from `entry` on.
    fn row_of(&self, entry: usize) -> usize {
        self.rows.entries.partition_point(|e| *e < entry)
    }
    fn len(&self) -> usize {
        self.spans.len()
    }
    /// The first entry all of whose rows, and all later ones, have their context to the left within the slice.
    fn first_sure(&self) -> usize {
        let row = self.spans.partition_point(|s| s.0 == 0);
        match row {
            0 => 0,
            _ => self.rows.entries[row - 1] + 1,
        }
    }
    /// As `first_sure`, to the right: one past the last.
    fn end_sure(&self, entries: usize) -> usize {
        let row = self.spans.partition_point(|s| s.1 < self.len());
        self.rows.entries.get(row).copied().unwrap_or(entries)
    }
}

impl<'a, T: Time + TotalOrder> Work<'_, 'a, T> {
    /// The output's count of vals that begin with `prefix`, now.
    fn outputs(&self, prefix: &[u8]) -> BTreeMap<Vec<u8>, Diff> {
        let mut found: BTreeMap<Vec<u8>, Diff> = BTreeMap::new();
        let mut place = self.output.seek(prefix);
        // Everything in the output trace lies before the times that are worked on.
        while let Some(e) = self.output.next_untimed(&mut place) {
            if !e.0.starts_with(prefix) {
                break;
            }
            *found.entry(e.0.to_vec()).or_default() += e.1;
        }
        for (val, d) in self.made.range(prefix.to_vec()..).take_while(|(v, _)| v.starts_with(prefix)) {
            *found.entry(val.clone()).or_default() += d;
        }
        found.retain(|_, d| *d != 0);
        found
    }

    /// Whether an error stands for the partition now.
    fn fails(&self) -> bool {
        !self.outputs(&[ERROR_TAG]).is_empty()
    }

    /// Changes at `t` by evaluating the partition.
    fn whole(&self, t: &T) -> Vec<(Vec<u8>, Diff)> {
        let (mut vals, mut place) = (vec![], self.runs.start());
        while let Some(e) = self.runs.next(&mut place, t) {
            if e.at != 0 {
                vals.push((e.val, e.at));
            }
        }
        let mut out = Outputs::default();
        self.windows.whole(self.key, &vals, &mut out);
        let before = self.outputs(&[]).into_iter().map(|(v, d)| (v, -d));
        out.rows().map(|(v, d)| (v.to_vec(), d)).chain(before).collect()
    }

    /// Changes at `t` by evaluating slices around the changed vals; `None` if that does not serve.
    fn slices(&self, t: &T, fresh: &[&'a [u8]]) -> Option<Vec<(Vec<u8>, Diff)>> {
        let mut made = vec![];
        // Vals below were dealt with.
        let mut done: Option<&[u8]> = None;
        for val in fresh {
            if done.is_some_and(|d| *val <= d) {
                continue;
            }
            // A prefix reaches from the first change on, so that one slice takes them all.
            let last = if self.windows.prefix() { fresh.last()? } else { val };
            let end = self.slice(t, val, last, done, &mut made).ok()??;
            done = Some(end.unwrap_or(last));
        }
        Some(made)
    }

    /// Evaluates the slice around the vals from `first` to `last`. Rows up to `done` were sent. Gives the last val that was dealt with
    /// (inner `None`: nothing had changed), or `None` if slices do not serve.
    #[allow(clippy::type_complexity)]
    fn slice(
        &self,
        t: &T,
        first: &'a [u8],
        last: &'a [u8],
        done: Option<&[u8]>,
        made: &mut Vec<(Vec<u8>, Diff)>,
    ) -> Result<Option<Option<&'a [u8]>>, SqlError> {
        let w = self.windows;
        let peers = w.sees_peers();
        let start = self.runs.seek(first);
        let mut s = Slice { entries: VecDeque::new(), left: start.clone(), right: start, at_start: false, at_end: false };
        // Through `last`.
        while s.entries.back().is_none_or(|e| e.val < last) && !s.at_end {
            s.grow_right(self.runs, t, 1, false);
        }
        if !s.entries.iter().any(|e| e.before != e.at && e.val <= last) {
            return Ok(Some(None));
        }
        let (mut left, mut right) = (CONTEXT, CONTEXT);
        s.grow_left(self.runs, t, left, peers);
        s.grow_right(self.runs, t, right, peers);
        loop {
            if w.numbers_copies() {
                // What is carried in must be one row's.
                while !s.at_start {
                    let mut place = s.left.clone();
                    match self.runs.prev(&mut place, t) {
                        Some(e) if e.at != 1 => s.grow_left(self.runs, t, 1, peers),
                        Some(_) => break,
                        None => s.at_start = true,
                    }
                }
            }
            if s.entries.iter().any(|e| e.before < 0 || e.at < 0) {
                return Ok(None);
            }
            let side = |count: fn(&Counted<'a>) -> Diff| -> Result<Side, SqlError> {
                let rows = w.rows(self.key, s.entries.iter().map(|e| (e.val, count(e))))?;
                let spans = spans(&w.partition(&rows), &w.exprs, &w.ctx)?;
                Ok(Side { rows, spans })
            };
            let sides = [side(|e| e.before)?, side(|e| e.at)?];
            let n = s.entries.len();
            let from = if s.at_start { 0 } else { sides.iter().map(Side::first_sure).max().unwrap_or(0) };
            let to = if s.at_end { n } else { sides.iter().map(|x| x.end_sure(n)).min().unwrap_or(n) };
            let changed = |e: &Counted<'a>| e.before != e.at;
            let fresh_from = s.entries.iter().position(|e| changed(e) && done.is_none_or(|d| e.val > d)).unwrap_or(0);
            let fresh_to = s.entries.iter().take(to.max(fresh_from + 1)).rposition(changed).unwrap_or(fresh_from);
            // Nothing left of `from` sees a change, nothing from `to` on does.
            let left_done = done.is_some_and(|d| s.entries.get(from).is_some_and(|e| e.val <= d));
            let left_sure = (from == 0 && s.at_start)
                || left_done
                || (from <= fresh_from && sides.iter().all(|x| x.spans.get(x.row_of(from)).is_some_and(|p| p.1 <= x.row_of(fresh_from))));
            let right_sure = (to == n && s.at_end)
                || (to > fresh_to
                    && s.entries.get(to - 1).is_some_and(|e| e.val >= last)
                    && sides.iter().all(|x| x.row_of(to).checked_sub(1).and_then(|r| x.spans.get(r)).is_some_and(|p| p.0 >= x.row_of(fresh_to + 1))));
            if !left_sure || !right_sure {
                if !left_sure {
                    left *= 2;
                    s.grow_left(self.runs, t, left, peers);
                }
                if !right_sure {
                    right *= 2;
                    s.grow_right(self.runs, t, right, peers);
                }
                continue;
            }
            let carried = if w.carries_values() && !s.at_start {
                match self.carried(&s, t) {
                    Some(c) => c,
                    None => return Ok(None),
                }
            } else {
                vec![None; w.exprs.len()]
            };
            let [before, after] = &sides;
            let states = if s.at_start { no_states(&w.exprs) } else { self.states_before(&s, t)? };
            let (old, new) = (self.values(before, &carried, &states)?, self.values(after, &carried, &states)?);
            if w.prefix() && !(to == n && s.at_end) {
                let mut moved = no_states(&w.exprs);
                w.add(self.key, s.entries.iter().filter(|e| changed(e)).map(|e| (e.val, e.at.wrapping_sub(e.before))), &mut moved)?;
                if !moved.iter().all(Accum::is_zero) {
                    // All later rows differ.
                    s.grow_right(self.runs, t, usize::MAX, peers);
                    continue;
                }
                let leaves = |x: &Side, values: &[Vec<Value>]| -> Option<Vec<u8>> {
                    let row = values.get(x.row_of(to).checked_sub(1)?)?;
                    let mut b = vec![];
                    let kept: Vec<Value> = row.iter().zip(&w.exprs).map(|(v, e)| if carries_value(e) { v.clone() } else { Value::Null }).collect();
                    w.codec.encode_row(&kept, &mut b);
                    Some(b)
                };
                if leaves(before, &old) != leaves(after, &new) {
                    right *= 2;
                    s.grow_right(self.runs, t, right, peers);
                    continue;
                }
            }
            for (x, values, sign) in [(before, &old, -1), (after, &new, 1)] {
                let sent = x.row_of(from)..x.row_of(to);
                for (entry, values) in x.rows.entries[sent.clone()].iter().zip(&values[sent]) {
                    let val = s.entries[*entry].val;
                    if done.is_some_and(|d| val <= d) {
                        continue;
                    }
                    let mut b = vec![];
                    w.write(val, values, &mut b);
                    made.push((b, sign));
                }
            }
            self.move_marks(&s)?;
            return Ok(Some(Some(s.entries[to - 1].val)));
        }
    }

    /// The values of a slice's rows, with what is carried in.
    fn values(&self, side: &Side, carried: &Carried, states: &[Accum]) -> Result<Vec<Vec<Value>>, SqlError> {
        let w = self.windows;
        let mut values = evaluate_after(states, &w.partition(&side.rows), &w.exprs, &w.ctx)?;
        for (i, before) in carried.iter().enumerate() {
            if let Some(before) = before {
                for row in &mut values {
                    let within = std::mem::replace(&mut row[i], Value::Null);
                    row[i] = w.exprs[i].carry(before, within)?;
                }
            }
        }
        Ok(values)
    }

    /// The states of all rows before the slice, which are the same before `t` and at it. Leaves marks where many had to be added up.
    fn states_before(&self, s: &Slice<'a>, t: &T) -> Result<Vec<Accum>, SqlError> {
        let w = self.windows;
        let mut states = no_states(&w.exprs);
        let Some(end) = s.entries.front().map(|e| e.val).filter(|_| !states.is_empty()) else { return Ok(states) };
        let mut marks = self.marks.borrow_mut();
        let mut at = marks.0.partition_point(|m| m.0.as_slice() < end);
        let mut place = match at.checked_sub(1).map(|i| &marks.0[i]) {
            None => self.runs.start(),
            Some((val, known)) => {
                states.clone_from(known);
                self.runs.after(val)
            }
        };
        loop {
            let some: Vec<Counted<'a>> = std::iter::from_fn(|| self.runs.next(&mut place, t).filter(|e| e.val < end)).take(MARK).collect();
            w.add(self.key, some.iter().map(|e| (e.val, e.at)), &mut states)?;
            if some.len() < MARK {
                return Ok(states);
            }
            marks.0.insert(at, (some[MARK - 1].val.to_vec(), states.clone()));
            at += 1;
        }
    }

    /// Adds a slice's changes to the marks that count them.
    fn move_marks(&self, s: &Slice<'a>) -> Result<(), SqlError> {
        let w = self.windows;
        let mut marks = self.marks.borrow_mut();
        let mut changed = s.entries.iter().filter(|e| e.before != e.at).peekable();
        let Some(first) = changed.peek().map(|e| e.val) else { return Ok(()) };
        let from = marks.0.partition_point(|m| m.0.as_slice() < first);
        let mut moved = no_states(&w.exprs);
        for (val, states) in &mut marks.0[from..] {
            let upto = std::iter::from_fn(|| changed.next_if(|e| e.val <= val.as_slice()));
            w.add(self.key, upto.map(|e| (e.val, e.at.wrapping_sub(e.before))), &mut moved)?;
            states.iter_mut().zip(&moved).for_each(|(a, b)| a.plus_equals(b));
        }
        Ok(())
    }

    /// What the row before the slice hands on. It is not changed at `t`, nor is its output.
    fn carried(&self, s: &Slice<'a>, t: &T) -> Option<Carried> {
        let w = self.windows;
        let mut place = s.left.clone();
        let row = self.runs.prev(&mut place, t)?;
        let found = self.outputs(row.val);
        let values = found.iter().filter(|(_, d)| **d > 0).map(|(v, _)| split(v)).find(|(v, _)| *v == row.val)?.1;
        let values = w.codec.decode_row(values);
        let numbered = w.exprs.iter().position(|e| e.func == WindowFunc::RowNumber);
        let rows_before = |rank: &Value| -> Option<Value> {
            if let Some(i) = numbered {
                return Some(values[i].clone());
            }
            // The rank counts the rows before the row's peers.
            let (mut peers, sort) = (row.at, order::split(row.val).0);
            let mut place = place.clone();
            while let Some(e) = self.runs.prev(&mut place, t).filter(|e| order::split(e.val).0 == sort) {
                peers += e.at;
            }
            Some(Value::Int8(rank.as_i64()?.checked_add(peers)? - 1))
        };
        w.exprs
            .iter()
            .zip(&values)
            .map(|(e, v)| match &e.func {
                WindowFunc::Rank => rows_before(v).map(Some),
                _ if carries_value(e) => Some(Some(v.clone())),
                _ => Some(None),
            })
            .collect()
    }
}
