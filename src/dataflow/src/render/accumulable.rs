//! Aggregates whose states add up: kept as the weights of an arrangement, at O(1) a change.
//!
//! ```text
//!   rows ──► one Sums for each (key, display form, time) of what came together ──exchange by key, arrange──► totals ──► rows
//! ```
//!
//! Without aggregates it is DISTINCT: what is kept of a row is how often it is there.
//!
//! The extrema of a relation that only grows are states too: they add up, though nothing can be subtracted from them.
//!
//! Summing before the exchange leaves little to send and to sort where groups are few, and costs no more where they are many.
//!
//! Top level only; inside recursion the general form serves.

use super::arranged::STEP;
use super::collection::Updates;
use super::extremum::{self, Best};
use super::group::{least_form, AggInput};
use super::Env;
use crate::arrange::{arrange, exchange, reduce_totals, route, ArrangeCtl, Block, Changes, Layout, Slab, Upd, WireTime};
use crate::errors;
use arrow_array::cast::AsArray;
use arrow_array::Array;
use differential_dataflow::difference::{IsZero, Semigroup};
use expr::agg::{Accum, ArgReader, Pack, Packing};
use expr::EvalCtx;
use hashbrown::HashTable;
use repr::batch::PIECE_BYTES;
use repr::{Batch, ColType, ColumnBuilder, Diff, RowCodec, SqlError, Timestamp, Value};
use std::rc::Rc;
use timely::container::NoopBuilder;
use timely::dataflow::channels::pact::Pipeline;
use timely::dataflow::operators::generic::Operator;
use timely::dataflow::operators::Capability;

/// The weight of some rows of a group: their number, and one state an aggregate, packed. Few and small numbers, as of most groups, lie in
/// the arrangement itself.
#[derive(Clone, PartialEq, Debug)]
pub enum Sums {
    Here(u8, [u8; HERE]),
    Apart(Box<[u8]>),
}

/// Bytes that lie in the arrangement: as many as [`Sums`] of 24 have room for.
const HERE: usize = 22;

impl Sums {
    fn new(rows: Diff, states: impl Iterator<Item = State>) -> Sums {
        let mut bytes = Packing::new();
        rows.pack(&mut bytes);
        states.for_each(|s| s.pack(&mut bytes));
        Sums::of(&bytes)
    }
    fn of(bytes: &[u8]) -> Sums {
        match u8::try_from(bytes.len()) {
            Ok(n) if bytes.len() <= HERE => {
                let mut here = [0; HERE];
                here[..bytes.len()].copy_from_slice(bytes);
                Sums::Here(n, here)
            }
            _ => Sums::Apart(bytes.into()),
        }
    }
    fn bytes(&self) -> &[u8] {
        match self {
            Sums::Here(n, here) => &here[..usize::from(*n)],
            Sums::Apart(bytes) => bytes,
        }
    }
    /// The number of rows, and the states.
    fn parts(&self) -> (Diff, impl Iterator<Item = State> + '_) {
        let mut from = self.bytes();
        let rows = Diff::unpack(&mut from);
        (rows, std::iter::from_fn(move || (!from.is_empty()).then(|| State::unpack(&mut from))))
    }
}

/// The state of one aggregate.
#[derive(Clone, PartialEq, Debug)]
enum State {
    Sum(Accum),
    Best(Best),
}

impl State {
    fn new(input: &AggInput) -> State {
        match input.extremum() {
            None => State::Sum(Accum::new(input.agg.func)),
            Some(_) => State::Best(Best::None),
        }
    }
    fn is_zero(&self) -> bool {
        match self {
            State::Sum(s) => s.is_zero(),
            State::Best(b) => *b == Best::None,
        }
    }
    fn plus_equals(&mut self, other: &State) {
        match (self, other) {
            (State::Sum(a), State::Sum(b)) => a.plus_equals(b),
            (State::Best(a), State::Best(b)) => a.plus_equals(b),
            _ => debug_assert!(false, "states of two aggregates"),
        }
    }
    fn finalize(&self, input: &AggInput) -> Result<Value, SqlError> {
        match self {
            State::Sum(s) => s.finalize(&input.agg),
            State::Best(b) => b.finalize(input),
        }
    }
}

impl Pack for State {
    fn pack(&self, out: &mut Packing) {
        match self {
            State::Sum(s) => s.pack(out),
            State::Best(b) => b.pack(out),
        }
    }
    fn unpack(from: &mut &[u8]) -> State {
        match from[0] < Accum::KINDS {
            true => State::Sum(Pack::unpack(from)),
            false => State::Best(Pack::unpack(from)),
        }
    }
}

impl IsZero for Sums {
    fn is_zero(&self) -> bool {
        let (rows, mut states) = self.parts();
        rows == 0 && states.all(|s| s.is_zero())
    }
}

impl Semigroup for Sums {
    fn plus_equals(&mut self, other: &Sums) {
        let ((rows, states), (more, others)) = (self.parts(), other.parts());
        let added = states.zip(others).map(|(mut a, b)| {
            a.plus_equals(&b);
            a
        });
        *self = Sums::new(rows.wrapping_add(more), added);
    }
}

impl WireTime for Sums {
    fn write(&self, out: &mut Vec<u8>) {
        (self.bytes().len() as u64).write(out);
        out.extend_from_slice(self.bytes());
    }
    fn read(bytes: &mut &[u8]) -> Self {
        let len = u64::read(bytes) as usize;
        let (sums, rest) = bytes.split_at(len);
        *bytes = rest;
        Sums::of(sums)
    }
}

/// Renders over wide rows: `layout` is theirs, keyed by the first `arity` columns. Gives rows and errors.
pub fn render<'s>(
    rows: Updates<'s, Timestamp>,
    layout: Rc<Layout>,
    arity: usize,
    inputs: Vec<AggInput>,
    out_types: &[ColType],
    env: &Rc<Env>,
) -> (Updates<'s, Timestamp>, Updates<'s, Timestamp>) {
    let key_types: Vec<ColType> = layout.types[..arity].to_vec();
    let forms = Rc::new(Layout::new(key_types.clone(), layout.key.clone()));
    let inputs = Rc::new(inputs);
    let (to_sums, summed, ctx) = (forms.clone(), inputs.clone(), env.ctx.clone());
    let peers = rows.scope().peers();
    let sums = rows.unary_frontier::<NoopBuilder<Block<Timestamp, Sums>>, _, _, _>(Pipeline, "Sum", move |_, _| {
        let mut gathered = Gathered { zeros: summed.iter().map(State::new).collect(), ..Gathered::default() };
        let mut held: Option<Capability<Timestamp>> = None;
        move |(input, frontier), output| {
            input.for_each_stamp(|cap, data| {
                let least = cap.retain_least(0);
                // What is gathered can wait for more under its own time or an earlier one only.
                if let Some(h) = held.take_if(|h| least.as_ref().is_none_or(|l| l.time() < h.time())) {
                    output.session_with_builder(&h).give_containers(gathered.blocks(peers).iter_mut());
                }
                for piece in data.flat_map(|upd| std::mem::take(upd).pieces()) {
                    gathered.add(&piece, &to_sums, &summed, &ctx);
                    if gathered.is_full() {
                        let mut blocks = gathered.blocks(peers);
                        match held.take() {
                            Some(h) => output.session_with_builder(&h).give_containers(blocks.iter_mut()),
                            None => output.session_with_builder(&cap).give_containers(blocks.iter_mut()),
                        }
                    }
                }
                match least {
                    Some(l) => held = held.take().or(Some(l)),
                    None => output.session_with_builder(&cap).give_containers(gathered.blocks(peers).iter_mut()),
                }
            });
            // Few rows go at once; among many, more of a group will meet until their time is over.
            if let Some(h) = held.take_if(|h| gathered.rows < HOLD || !frontier.frontier().less_equal(h.time())) {
                output.session_with_builder(&h).give_containers(gathered.blocks(peers).iter_mut());
            }
        }
    });
    let arranged = arrange::<_, Sums>(sums, exchange(), "ArrangeSums", None, ArrangeCtl::new(env.stopped.clone()));
    let form_codec = RowCodec::new(key_types);
    let (row_forms, out_forms) = (forms.clone(), forms);
    let row = move |key: &[u8], sums: &[(&[u8], Sums)]| group_row(key, sums, &row_forms, &form_codec, arity, &inputs).transpose();
    let agg_types: Vec<ColType> = out_types[arity..].to_vec();
    let emit = move |c: Changes<'_, Timestamp, GroupRow>| emit(c, &out_forms, &agg_types);
    reduce_totals(arranged, "Accumulate", STEP, env.stopped.clone(), None, row, emit)
}

/// The chosen display form of the key (val bytes of the forms layout), and the aggregates' values.
type GroupRow = Result<(Vec<u8>, Vec<Value>), SqlError>;

/// Slots above which sums go on their way: what an aggregation holds beside its arrangement while many rows of one time come.
const SLOTS: usize = 1 << 17;
/// Rows from which on it is worth to wait for more of the same time.
const HOLD: usize = 2048;

/// One slot for each (key, display form, time) of some rows.
#[derive(Default)]
struct Gathered {
    lanes: Vec<u64>,
    keys: Slab,
    forms: Slab,
    times: Vec<Timestamp>,
    counts: Vec<Diff>,
    /// Of each slot as many as there are aggregates.
    states: Vec<State>,
    by_lane: HashTable<u32>,
    /// How many were added.
    rows: usize,
    /// The states of no rows.
    zeros: Vec<State>,
}

impl Gathered {
    fn is_full(&self) -> bool {
        self.lanes.len() >= SLOTS || self.keys.bytes.len() + self.forms.bytes.len() >= PIECE_BYTES
    }

    /// Adds a piece of wide rows; `forms` is the layout of their key columns.
    fn add(&mut self, upd: &Upd<Timestamp>, forms: &Layout, inputs: &[AggInput], ctx: &EvalCtx) {
        let (wide, n) = (&upd.batch, upd.len());
        self.rows += n;
        let key_cols = Batch { len: n, cols: wide.cols[..forms.types.len()].to_vec() };
        let (keys, _) = forms.encode(&upd.with_batch(key_cols), ctx, &vec![true; forms.types.len()]);
        let slots: Vec<u32> = (0..n).map(|u| self.slot(keys.lanes[u], keys.keys.get(u), keys.val(u), *keys.time_at(u))).collect();
        for (u, slot) in slots.iter().enumerate() {
            let rows = &mut self.counts[*slot as usize];
            *rows = rows.wrapping_add(*upd.diffs.get(u));
        }
        for (a, input) in inputs.iter().enumerate() {
            let args = &wide.cols[input.args.clone()];
            let filter = input.filter.map(|f| wide.cols[f].as_boolean());
            let admitted = slots.iter().enumerate().filter(|(u, _)| filter.is_none_or(|f| f.is_valid(*u) && f.value(*u)));
            match input.extremum() {
                None => {
                    let reader = ArgReader::open(args, &input.types);
                    for (u, slot) in admitted {
                        if let State::Sum(s) = &mut self.states[*slot as usize * inputs.len() + a] {
                            s.update(&reader, u, *upd.diffs.get(u));
                        }
                    }
                }
                Some(max) => {
                    let reader = extremum::Reader::open(&args[0], input);
                    for (u, slot) in admitted {
                        if let State::Best(b) = &mut self.states[*slot as usize * inputs.len() + a] {
                            reader.add(u, *upd.diffs.get(u), max, b);
                        }
                    }
                }
            }
        }
    }

    fn slot(&mut self, lane: u64, key: &[u8], form: &[u8], time: Timestamp) -> u32 {
        let Gathered { lanes, keys, forms, times, counts, states, by_lane, zeros, .. } = self;
        let is_it = |s: &u32| {
            let s = *s as usize;
            lanes[s] == lane && times[s] == time && keys.get(s) == key && forms.get(s) == form
        };
        if let Some(s) = by_lane.find(lane, is_it) {
            return *s;
        }
        let new = lanes.len() as u32;
        lanes.push(lane);
        keys.push(key);
        forms.push(form);
        times.push(time);
        counts.push(0);
        states.extend_from_slice(zeros);
        by_lane.insert_unique(lane, new, |s| lanes[*s as usize]);
        new
    }

    /// What is gathered, a block for each worker that owns some of it.
    fn blocks(&mut self, peers: usize) -> Vec<Block<Timestamp, Sums>> {
        let Gathered { lanes, keys, forms, times, counts, states, .. } = self;
        let mut out: Vec<Block<Timestamp, Sums>> = (0..peers).map(|_| Block::default()).collect();
        let aggregates = states.len().checked_div(lanes.len()).unwrap_or(0);
        let mut states = states.drain(..);
        for (s, rows) in counts.iter().enumerate() {
            let sum = Sums::new(*rows, states.by_ref().take(aggregates));
            if !sum.is_zero() {
                out[route(lanes[s], peers)].0.push(lanes[s], keys.get(s), forms.get(s), times[s], sum);
            }
        }
        drop(states);
        // After many more are likely to come: they find the room made.
        if lanes.len() < SLOTS / 2 {
            *self = Gathered { zeros: std::mem::take(&mut self.zeros), ..Gathered::default() };
        } else {
            lanes.clear();
            keys.clear();
            forms.clear();
            times.clear();
            counts.clear();
            self.by_lane.clear();
            self.rows = 0;
        }
        out.retain(|b| !b.0.is_empty());
        out
    }
}

fn group_row(
    key: &[u8],
    sums: &[(&[u8], Sums)],
    forms: &Layout,
    form_codec: &RowCodec,
    arity: usize,
    inputs: &[AggInput],
) -> Result<Option<(Vec<u8>, Vec<Value>)>, SqlError> {
    let Some((first, rest)) = sums.split_first() else { return Ok(None) };
    let mut total = first.1.clone();
    rest.iter().for_each(|s| total.plus_equals(&s.1));
    if total.is_zero() {
        return Ok(None);
    }
    let (rows, states) = total.parts();
    if rows <= 0 {
        return Err(errors::negative_count(if inputs.is_empty() { "DISTINCT" } else { "an aggregation" }));
    }
    let form = if rest.is_empty() {
        first.0.to_vec()
    } else {
        let rows: Vec<Vec<Value>> = sums.iter().filter(|s| s.1.parts().0 > 0).map(|s| forms.decode_row(key, s.0)).collect();
        let least = least_form(form_codec, arity, rows.iter().map(Vec::as_slice));
        let mut bytes = Vec::new();
        forms.encode_val(&least, &mut bytes);
        bytes
    };
    let values = inputs.iter().zip(states).map(|(i, s)| s.finalize(i)).collect::<Result<Vec<_>, _>>()?;
    Ok(Some((form, values)))
}

fn emit(changes: Changes<'_, Timestamp, GroupRow>, forms: &Layout, agg_types: &[ColType]) -> (Upd<Timestamp>, Vec<Upd<Timestamp>>) {
    let mut builders: Vec<ColumnBuilder> = agg_types.iter().map(|t| ColumnBuilder::new(&t.ty, changes.rows.len())).collect();
    let (mut keys, mut vals): (Vec<&[u8]>, Vec<&[u8]>) = Default::default();
    let mut upd: Upd<Timestamp> = Upd::default();
    let mut failed = Vec::new();
    for (key, (row, t, d)) in changes.keys.iter().zip(&changes.rows) {
        match row {
            Ok((form, values)) => {
                keys.push(key);
                vals.push(form);
                builders.iter_mut().zip(values).for_each(|(b, v)| b.push(v));
                upd.times.push(*t);
                upd.diffs.push(*d);
            }
            Err(e) => failed.push((e.clone(), *t, *d)),
        }
    }
    let Batch { len, mut cols } = forms.decode(&keys, &vals, |_| true);
    cols.extend(builders.into_iter().map(ColumnBuilder::finish));
    upd.batch = Batch { len, cols };
    (upd, errors::to_updates(failed))
}

#[cfg(test)]
mod tests {
    use super::*;
    use repr::Numeric;

    #[test]
    fn sums_survive_the_way_between_processes() {
        let agg = |name: &str, arg: u32| {
            let found = expr::catalog::procs().iter().find(|p| p.name == name && p.args == [arg]);
            expr::agg::by_oid(found.expect("an aggregate of PostgreSQL").oid).expect("an aggregate of ours")
        };
        let values =
            [Value::Int8(i64::MAX), Value::Float8(0.1), Value::Float8(f64::NEG_INFINITY), Value::Numeric(Numeric::parse("1e40").unwrap()), Value::Null];
        let funcs = [agg("sum", 20), agg("avg", 701), agg("stddev", 701), agg("sum", 1700), agg("count", 2276)];
        let mut states: Vec<Accum> = funcs.iter().map(|f| Accum::new(f)).collect();
        for (s, v) in states.iter_mut().zip(&values) {
            (0..3).for_each(|_| s.update_values(std::slice::from_ref(v), i64::MAX));
        }
        let best = [Best::None, Best::Number(i64::MIN), Best::Bytes(vec![0, 255].into()), Best::TakenBack].map(State::Best);
        let states: Vec<State> = states.into_iter().map(State::Sum).chain(best).collect();
        let sums = Sums::new(-7, states.iter().cloned());
        let (rows, unpacked) = sums.parts();
        assert_eq!((rows, unpacked.collect::<Vec<_>>()), (-7, states));
        let mut bytes = Vec::new();
        sums.write(&mut bytes);
        bytes.extend_from_slice(b"rest");
        let mut left = &bytes[..];
        assert_eq!(Sums::read(&mut left), sums);
        assert_eq!(left, b"rest");
    }

    #[test]
    fn counts_and_sums_lie_in_the_arrangement_itself() {
        let mut sum = Accum::Int { count: 0, sum: Default::default() };
        sum.update_values(&[Value::Int8(1 << 40)], 1_000_000);
        let states = [State::Sum(Accum::Count(1_000_000)), State::Sum(sum)];
        let mut sums = Sums::new(1_000_000, states.iter().cloned());
        assert!(matches!(sums, Sums::Here(..)), "{sums:?}");
        assert_eq!(size_of::<Sums>(), 24);
        let back = Sums::new(-1_000_000, [Accum::Count(-1_000_000), Accum::Int { count: -1_000_000, sum: Default::default() }].map(State::Sum).into_iter());
        sums.plus_equals(&back);
        assert!(!sums.is_zero());
        assert_eq!(sums.parts().0, 0);
    }
}
