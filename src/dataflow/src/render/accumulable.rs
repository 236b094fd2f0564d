//! Aggregates whose states add up: kept as the weights of an arrangement, at O(1) a change.
//!
//! ```text
//!   rows ──exchange by key──► one Sums for each (key, display form, time) of a block ──arrange──► totals ──► rows
//! ```
//!
//! Top level only; inside recursion the general form serves.

use super::arranged::{encode, STEP};
use super::collection::Updates;
use super::group::{least_form, AggInput};
use super::Env;
use crate::arrange::{arrange, exchange, reduce_totals, ArrangeCtl, Block, Body, Changes, Layout, Upd, NOTHING};
use crate::errors;
use arrow_array::cast::AsArray;
use arrow_array::Array;
use differential_dataflow::difference::{IsZero, Semigroup};
use expr::agg::{Accum, ArgReader};
use repr::{Batch, ColType, ColumnBuilder, Diff, RowCodec, SqlError, Timestamp, Value};
use std::collections::HashMap;
use std::rc::Rc;
use timely::container::NoopBuilder;
use timely::dataflow::channels::pact::Pipeline;
use timely::dataflow::operators::generic::Operator;

/// The weight of some rows of a group: their number, and one state an aggregate.
#[derive(Clone, PartialEq, Debug)]
pub struct Sums {
    rows: Diff,
    states: Box<[Accum]>,
}

impl IsZero for Sums {
    fn is_zero(&self) -> bool {
        self.rows == 0 && self.states.iter().all(Accum::is_zero)
    }
}

impl Semigroup for Sums {
    fn plus_equals(&mut self, other: &Sums) {
        self.rows = self.rows.wrapping_add(other.rows);
        self.states.iter_mut().zip(&other.states).for_each(|(a, b)| a.plus_equals(b));
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
    let (blocks, _) = encode(rows, layout.clone(), vec![true; arity], env);
    let key_types: Vec<ColType> = layout.types[..arity].to_vec();
    let forms = Rc::new(Layout::new(key_types.clone(), layout.key.clone()));
    let inputs = Rc::new(inputs);
    let (to_sums, summed) = (forms.clone(), inputs.clone());
    let sums = blocks.unary::<NoopBuilder<Block<Timestamp, Sums>>, _, _, _>(exchange(), "Sum", move |_, _| {
        move |input, output| {
            input.for_each(|cap, data| {
                let body = sum_block(&std::mem::take(&mut data.0), &layout, &to_sums, &summed);
                output.session_with_builder(&cap).give_container(&mut Block(body));
            })
        }
    });
    let arranged = arrange::<_, Sums>(sums, Pipeline, "ArrangeSums", None, ArrangeCtl::new(env.stopped.clone()));
    let form_codec = RowCodec::new(key_types);
    let (row_forms, out_forms) = (forms.clone(), forms);
    let row = move |key: &[u8], sums: &[(&[u8], Sums)]| group_row(key, sums, &row_forms, &form_codec, arity, &inputs).transpose();
    let agg_types: Vec<ColType> = out_types[arity..].to_vec();
    let emit = move |c: Changes<'_, Timestamp, GroupRow>| emit(c, &out_forms, &agg_types);
    reduce_totals(arranged, "Accumulate", STEP, env.stopped.clone(), None, row, emit)
}

/// The chosen display form of the key (val bytes of the forms layout), and the aggregates' values.
type GroupRow = Result<(Vec<u8>, Vec<Value>), SqlError>;

fn sum_block(body: &Body<Timestamp, Diff>, layout: &Layout, forms: &Layout, inputs: &[AggInput]) -> Body<Timestamp, Sums> {
    let n = body.len();
    let of_key: Vec<usize> = (0..body.lanes.len()).flat_map(|k| std::iter::repeat_n(k, body.key_ends[k] as usize - body.key_start(k))).collect();
    let keys: Vec<&[u8]> = of_key.iter().map(|k| body.keys.get(*k)).collect();
    let vals: Vec<&[u8]> = (0..n).map(|u| body.val(u)).collect();
    let wide = layout.decode(&keys, &vals, |_| true);
    let readers: Vec<ArgReader<'_>> = inputs.iter().map(|i| ArgReader::open(&wide.cols[i.args.clone()], &i.types)).collect();
    let filters: Vec<Option<&arrow_array::BooleanArray>> = inputs.iter().map(|i| i.filter.map(|f| wide.cols[f].as_boolean())).collect();
    let form_vals = forms.vals_of(&Batch { len: n, cols: wide.cols[..forms.types.len()].to_vec() });
    let form = |u: usize| form_vals.as_ref().map_or(NOTHING, |f| f.get(u));
    let mut slots: HashMap<(&[u8], &[u8], Timestamp), usize, foldhash::fast::FixedState> = HashMap::default();
    let mut sums: Vec<(usize, Sums)> = Vec::new();
    for (u, key) in keys.iter().enumerate() {
        let (t, d) = (*body.time_at(u), *body.diffs.get(u));
        let slot = *slots.entry((key, form(u), t)).or_insert_with(|| {
            let states = inputs.iter().map(|i| Accum::new(i.agg.func)).collect();
            sums.push((u, Sums { rows: 0, states }));
            sums.len() - 1
        });
        let s = &mut sums[slot].1;
        s.rows = s.rows.wrapping_add(d);
        for ((state, reader), filter) in s.states.iter_mut().zip(&readers).zip(&filters) {
            if filter.is_none_or(|f| f.is_valid(u) && f.value(u)) {
                state.update(reader, u, d);
            }
        }
    }
    let mut out = Body::default();
    for (u, s) in sums {
        if !s.is_zero() {
            out.push(body.lanes[of_key[u]], keys[u], form(u), *body.time_at(u), s);
        }
    }
    out
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
    if total.rows <= 0 {
        return Err(errors::negative_count("an aggregation"));
    }
    let form = if rest.is_empty() {
        first.0.to_vec()
    } else {
        let rows: Vec<Vec<Value>> = sums.iter().filter(|s| s.1.rows > 0).map(|s| forms.decode_row(key, s.0)).collect();
        let least = least_form(form_codec, arity, rows.iter().map(Vec::as_slice));
        let mut bytes = Vec::new();
        forms.encode_val(&least, &mut bytes);
        bytes
    };
    let values = inputs.iter().zip(&total.states).map(|(i, s)| s.finalize(&i.agg)).collect::<Result<Vec<_>, _>>()?;
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
