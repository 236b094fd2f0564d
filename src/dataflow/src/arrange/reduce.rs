//! The general reduce: a group's rows in, its output rows out, at any kind of time.
//!
//! Differential's `ProxyReduceTactic` carries the time logic; the backend here speaks for the bytes: key proxy = lane
//! (stable across retires; keys that share a lane are kept apart inside), value proxies = positions in pools.
//!
//! Driven by `retire` in totally ordered time, by differential's own driver inside recursion.

use super::{At, Body, RowB, RowChunk, Slab, Time, Weight};
use differential_dataflow::consolidation::consolidate;
use differential_dataflow::operators::int_proxy::{KeyPosition, ProxyReduceBackend, ProxyReduceTactic, ReduceInstance, ReduceWindow};
use differential_dataflow::operators::reduce::ReduceTactic;
use differential_dataflow::trace::chunk::{settle_all, ChunkBatch};
use differential_dataflow::trace::Description;
use repr::Diff;
use std::marker::PhantomData;

/// Output rows of one group, as val bytes with diffs.
#[derive(Default)]
pub struct Outputs {
    bytes: Vec<u8>,
    rows: Vec<(usize, usize, Diff)>,
}

impl Outputs {
    /// Adds a row whose val bytes `write` appends.
    pub fn push(&mut self, diff: Diff, write: impl FnOnce(&mut Vec<u8>)) {
        let start = self.bytes.len();
        write(&mut self.bytes);
        self.rows.push((start, self.bytes.len(), diff));
    }
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.rows.clear();
    }
    pub fn rows(&self) -> impl Iterator<Item = (&[u8], Diff)> + '_ {
        self.rows.iter().map(|(s, e, d)| (&self.bytes[*s..*e], *d))
    }
}

/// What a reduce computes: from a key and its vals (in byte order, with non-zero weights) the output vals.
pub trait GroupLogic<R>: FnMut(&[u8], &[(&[u8], R)], &mut Outputs) + 'static {}
impl<R, F: FnMut(&[u8], &[(&[u8], R)], &mut Outputs) + 'static> GroupLogic<R> for F {}

/// Updates presented in one window.
const WINDOW: usize = 16_384;
/// Bytes of keys and values after which a window ends early.
const WINDOW_BYTES: usize = 256 << 20;
const NONE: u32 = u32::MAX;

/// One value of a pool: its key, its bytes, and for outputs the next value of the same key.
struct Pooled {
    key: u32,
    start: usize,
    end: usize,
    next: u32,
}

#[derive(Default)]
struct Pool {
    items: Vec<Pooled>,
    bytes: Vec<u8>,
}

impl Pool {
    fn push(&mut self, key: u32, bytes: &[u8], next: u32) -> u32 {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(bytes);
        self.items.push(Pooled { key, start, end: self.bytes.len(), next });
        self.items.len() as u32 - 1
    }
    fn get(&self, id: u32) -> &[u8] {
        let p = &self.items[id as usize];
        &self.bytes[p.start..p.end]
    }
    fn key(&self, id: u32) -> u32 {
        self.items[id as usize].key
    }
    fn clear(&mut self) {
        self.items.clear();
        self.bytes.clear();
    }
}

/// The bytes behind the proxies.
pub struct ReduceBackend<T: Time, R: Weight, L> {
    logic: L,
    keys: Slab,
    inputs: Pool,
    outputs: Pool,
    /// For each key the head of the list of its output values.
    output_heads: Vec<u32>,
    made: Outputs,
    body: Body<T, Diff>,
    chunks: Vec<RowChunk<T, Diff>>,
    weight: PhantomData<R>,
}

impl<T: Time, R: Weight, L: GroupLogic<R>> ReduceBackend<T, R, L> {
    pub fn new(logic: L) -> Self {
        ReduceBackend {
            logic,
            keys: Slab::default(),
            inputs: Pool::default(),
            outputs: Pool::default(),
            output_heads: vec![],
            made: Outputs::default(),
            body: Body::default(),
            chunks: vec![],
            weight: PhantomData,
        }
    }
    /// Numbers the keys of one lane, in byte order; returns the first number.
    fn mint_keys<'a>(&mut self, keys: impl Iterator<Item = &'a [u8]>) -> usize {
        let first = self.keys.len();
        let mut all: Vec<&[u8]> = keys.collect();
        all.dedup();
        all.sort();
        all.dedup();
        for k in all {
            self.keys.push(k);
            self.output_heads.push(NONE);
        }
        first
    }
    fn output_id(&mut self, key: u32, bytes: &[u8]) -> u32 {
        let mut id = self.output_heads[key as usize];
        while id != NONE && self.outputs.get(id) != bytes {
            id = self.outputs.items[id as usize].next;
        }
        if id == NONE {
            id = self.outputs.push(key, bytes, self.output_heads[key as usize]);
            self.output_heads[key as usize] = id;
        }
        id
    }
    fn flush(&mut self) {
        if !self.body.is_empty() {
            let mut body = std::mem::take(&mut self.body);
            body.compact();
            self.chunks.push(RowChunk::new(body));
        }
    }
}

type Drawn<'a, T, R> = Vec<(((&'a [u8], &'a [u8]), T), R)>;

impl<T: Time, R: Weight, L: GroupLogic<R>> ProxyReduceBackend<T, RowB<T, R>, RowB<T, Diff>> for ReduceBackend<T, R, L> {
    type Key = u64;
    type VIn = u32;
    type VOut = u32;
    type RIn = R;
    type ROut = Diff;

    fn begin(&mut self, _: Description<T>) {
        self.chunks.clear();
        self.body = Body::default();
    }

    fn next_window(
        &mut self,
        inst: &ReduceInstance<'_, T, RowB<T, R>, RowB<T, Diff>>,
        changed: &[u64],
        from: &mut KeyPosition<u64>,
        window: &mut ReduceWindow<T, R, Diff, u64, u32, u32>,
    ) {
        let start = match *from {
            KeyPosition::Start => 0,
            KeyPosition::At(k) => k,
            KeyPosition::End => return,
        };
        self.keys = Slab::default();
        self.inputs.clear();
        self.outputs.clear();
        self.output_heads.clear();
        let (novel, prior, output) = (inst.input_batches, inst.source_batches, inst.output_batches);
        let (mut at_novel, mut at_prior, mut at_output) =
            (vec![At::default(); novel.len()], vec![At::default(); prior.len()], vec![At::default(); output.len()]);
        for (at, b) in at_novel.iter_mut().zip(novel) {
            at.seek_lane(b, start);
        }
        let mut next_changed = changed.partition_point(|k| *k < start);
        let mut drawn: Drawn<'_, T, R> = vec![];
        let mut drawn_out: Drawn<'_, T, Diff> = vec![];
        let mut seeds: Vec<T> = vec![];
        loop {
            let heads = at_novel.iter().zip(novel).filter_map(|(a, b)| b.chunks.get(a.chunk).map(|c| c.lanes[a.key]));
            let Some(lane) = heads.chain(changed.get(next_changed).copied()).min() else {
                *from = KeyPosition::End;
                break;
            };
            if window.input.len() + window.output.len() >= WINDOW || self.keys.bytes.len() + self.inputs.bytes.len() + self.outputs.bytes.len() >= WINDOW_BYTES
            {
                *from = KeyPosition::At(lane);
                break;
            }
            if changed.get(next_changed) == Some(&lane) {
                next_changed += 1;
            }
            for (at, b) in at_novel.iter_mut().zip(novel) {
                if b.chunks.get(at.chunk).is_some_and(|c| c.lanes[at.key] == lane) {
                    *at = at.each_lane(b, lane, |key, u, x| {
                        if let Some(t) = b.time(x, u) {
                            seeds.push(t.clone());
                            drawn.push((((key, x.val(u)), t), x.diffs.get(u).clone()));
                        }
                    });
                }
            }
            let advanced = |mut t: T| {
                t.advance_by(inst.lower);
                t
            };
            for (at, b) in at_prior.iter_mut().zip(prior) {
                if at.seek_lane(b, lane) {
                    at.each_lane(b, lane, |key, u, x| {
                        if let Some(t) = b.time(x, u) {
                            drawn.push((((key, x.val(u)), advanced(t)), x.diffs.get(u).clone()));
                        }
                    });
                }
            }
            for (at, b) in at_output.iter_mut().zip(output) {
                if at.seek_lane(b, lane) {
                    at.each_lane(b, lane, |key, u, x| {
                        if let Some(t) = b.time(x, u) {
                            drawn_out.push((((key, x.val(u)), advanced(t)), *x.diffs.get(u)));
                        }
                    });
                }
            }
            consolidate(&mut drawn);
            consolidate(&mut drawn_out);
            seeds.sort();
            seeds.dedup();
            let first = self.mint_keys(drawn.iter().map(|d| d.0 .0 .0).chain(drawn_out.iter().map(|d| d.0 .0 .0)));
            let (mut last, mut k) = (None, first);
            for ((kv, t), r) in drawn.drain(..) {
                if last != Some(kv) {
                    while self.keys.get(k) != kv.0 {
                        k += 1;
                    }
                    self.inputs.push(k as u32, kv.1, NONE);
                    last = Some(kv);
                }
                window.input.push(((lane, self.inputs.items.len() as u32 - 1), t, r));
            }
            (last, k) = (None, first);
            for ((kv, t), r) in drawn_out.drain(..) {
                if last != Some(kv) {
                    while self.keys.get(k) != kv.0 {
                        k += 1;
                    }
                    let id = self.outputs.push(k as u32, kv.1, self.output_heads[k]);
                    self.output_heads[k] = id;
                    last = Some(kv);
                }
                window.output.push(((lane, self.outputs.items.len() as u32 - 1), t, r));
            }
            window.seeds.extend(seeds.drain(..).map(|t| (lane, t)));
        }
    }

    fn reduce_corrections(
        &mut self,
        keys: &[u64],
        in_ends: &[usize],
        input: &[(u32, R)],
        out_ends: &[usize],
        output: &[(u32, Diff)],
    ) -> (Vec<(u32, Diff)>, Vec<usize>) {
        let (mut corrections, mut ends) = (Vec::with_capacity(keys.len() * 2), Vec::with_capacity(keys.len()));
        let (mut i, mut o) = (0, 0);
        let mut made = std::mem::take(&mut self.made);
        for x in 0..keys.len() {
            let (in_end, out_end) = (in_ends[x], out_ends[x]);
            let base = corrections.len();
            corrections.extend(output[o..out_end].iter().map(|(id, d)| (*id, -*d)));
            o = out_end;
            // Inputs of one lane are ordered by key: one run a key.
            while i < in_end {
                let key = self.inputs.key(input[i].0);
                let run = i + input[i..in_end].partition_point(|e| self.inputs.key(e.0) <= key);
                let vals: Vec<(&[u8], R)> = input[i..run].iter().map(|(id, r)| (self.inputs.get(*id), r.clone())).collect();
                i = run;
                made.clear();
                (self.logic)(self.keys.get(key as usize), &vals, &mut made);
                for (bytes, diff) in made.rows() {
                    let id = self.output_id(key, bytes);
                    corrections.push((id, diff));
                }
            }
            if corrections.len() - base > 1 {
                let mut tail = corrections.split_off(base);
                consolidate(&mut tail);
                corrections.extend(tail);
            }
            ends.push(corrections.len());
        }
        self.made = made;
        (corrections, ends)
    }

    fn emit(&mut self, records: &[((u64, u32), T, Diff)]) {
        let mut i = 0;
        while i < records.len() {
            let lane = records[i].0 .0;
            let run = i + records[i..].partition_point(|r| r.0 .0 <= lane);
            let mut order: Vec<usize> = (i..run).collect();
            let by = |x: usize| {
                let id = records[x].0 .1;
                (self.outputs.key(id), self.outputs.get(id), &records[x].1)
            };
            order.sort_by(|a, b| by(*a).cmp(&by(*b)));
            for x in order {
                let ((_, id), t, d) = &records[x];
                self.body.push(lane, self.keys.get(self.outputs.key(*id) as usize), self.outputs.get(*id), t.clone(), *d);
            }
            if self.body.is_full() {
                self.flush();
            }
            i = run;
        }
    }

    fn finish(&mut self) -> Option<RowB<T, Diff>> {
        self.flush();
        let chunks = settle_all(std::mem::take(&mut self.chunks));
        (!chunks.is_empty()).then(|| RowB::new(ChunkBatch::new(chunks)))
    }
}

/// The tactic for differential's driver and ours.
pub fn tactic<T: Time, R: Weight>(logic: impl GroupLogic<R>) -> impl ReduceTactic<T, RowB<T, R>, RowB<T, Diff>> {
    ProxyReduceTactic::new(ReduceBackend::new(logic))
}
