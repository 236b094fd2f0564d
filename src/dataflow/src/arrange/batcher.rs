//! Sorting staged updates into batches.
//!
//! Blocks are staged, sorted in large runs (first split by the lanes' top bits, so that each part sorts and gathers
//! within the cache and the sorted parts concatenate without merging), and left to differential's geometric merge ladder.

use super::{Block, Body, RowChunk, Time, Weight, TARGET};
use differential_dataflow::batcher::merge::{Extractor, MergeLadder};
use differential_dataflow::batcher::{Batcher, Extract};
use differential_dataflow::logging::Logger;
use differential_dataflow::trace::chunk::{settle_all, ChunkBatch, ChunkMerger};
use timely::progress::frontier::{Antichain, AntichainRef};

/// Rows that are staged before they are sorted: a memory knob (83 bytes a row at the peak; 1 M rows gave 118 for no gain in time).
const STAGE: usize = 1 << 17;
/// Rows above which a sort is split by lane.
const SPLIT: usize = 16_384;

pub struct RowBatcher<T: Time, R: Weight> {
    staged: Vec<Body<T, R>>,
    staged_len: usize,
    ladder: MergeLadder<ChunkMerger<RowChunk<T, R>>>,
    merger: ChunkMerger<RowChunk<T, R>>,
    frontier: Antichain<T>,
}

impl<T: Time, R: Weight> RowBatcher<T, R> {
    pub fn new(logger: Option<Logger>, operator: usize) -> Self {
        RowBatcher { staged: vec![], staged_len: 0, ladder: MergeLadder::new(logger, operator), merger: Default::default(), frontier: Antichain::new() }
    }
    fn sort(&mut self) {
        if self.staged_len > 0 {
            let chain = sort_blocks(&self.staged);
            self.staged.clear();
            self.staged_len = 0;
            self.ladder.insert_chain(chain);
        }
    }
    /// Everything retained, as one sorted chain; shares the chunks.
    pub fn snapshot(&mut self) -> Vec<RowChunk<T, R>> {
        self.sort();
        let chain = self.ladder.merge_all();
        self.ladder.insert_chain(chain.clone());
        chain
    }
    /// Takes back what `snapshot` gave.
    pub fn restore(&mut self, chain: Vec<RowChunk<T, R>>) {
        if !chain.is_empty() {
            self.ladder.insert_chain(chain);
        }
    }
    pub fn insert_body(&mut self, body: Body<T, R>) {
        self.staged_len += body.len();
        self.staged.push(body);
        if self.staged_len >= STAGE {
            self.sort();
        }
    }
}

impl<T: Time, R: Weight> Extract for RowBatcher<T, R> {
    type Time = T;
    type Output = ChunkBatch<RowChunk<T, R>>;
    fn extract<'a>(&'a mut self, upper: AntichainRef<'_, T>) -> (Option<Self::Output>, AntichainRef<'a, T>) {
        self.sort();
        let merged = self.ladder.merge_all();
        let (mut ship, mut kept) = (vec![], vec![]);
        self.frontier.clear();
        self.merger.extract(merged, upper, &mut self.frontier, &mut ship, &mut kept, &mut vec![]);
        self.ladder.insert_chain(kept);
        let ship = settle_all(ship);
        ((!ship.is_empty()).then(|| ChunkBatch::new(ship)), self.frontier.borrow())
    }
}

impl<T: Time, R: Weight> Batcher<Block<T, R>> for RowBatcher<T, R> {
    fn insert(&mut self, block: &mut Block<T, R>) {
        self.insert_body(std::mem::take(&mut block.0));
    }
}

/// Sorts and consolidates staged updates into a chain of full chunks.
pub fn sort_blocks<T: Time, R: Weight>(blocks: &[Body<T, R>]) -> Vec<RowChunk<T, R>> {
    let n: usize = blocks.iter().map(|b| b.len()).sum();
    let (mut open, mut out) = (Body::default(), vec![]);
    if n > SPLIT {
        let bits = (n / 4096).ilog2();
        let mut parts: Vec<Body<T, R>> = (0..1usize << bits).map(|_| Body::default()).collect();
        for x in blocks {
            for k in 0..x.lanes.len() {
                parts[(x.lanes[k] >> (64 - bits)) as usize].append(x, k, x.key_start(k), x.key_ends[k] as usize);
            }
        }
        for p in parts {
            sort_into(&[p], &mut open, &mut out);
        }
    } else {
        sort_into(blocks, &mut open, &mut out);
    }
    if !open.is_empty() {
        open.compact();
        out.push(RowChunk::new(open));
    }
    out
}

fn sort_into<T: Time, R: Weight>(blocks: &[Body<T, R>], open: &mut Body<T, R>, out: &mut Vec<RowChunk<T, R>>) {
    let n: usize = blocks.iter().map(|b| b.len()).sum();
    // (lane, block, key index, update).
    let mut order: Vec<(u64, u32, u32, u32)> = Vec::with_capacity(n);
    for (i, b) in blocks.iter().enumerate() {
        let mut u = 0;
        for k in 0..b.lanes.len() {
            while u < b.key_ends[k] {
                order.push((b.lanes[k], i as u32, k as u32, u));
                u += 1;
            }
        }
    }
    order.sort_unstable_by(|a, b| {
        a.0.cmp(&b.0).then_with(|| {
            let (x, y) = (&blocks[a.1 as usize], &blocks[b.1 as usize]);
            (x.keys.get(a.2 as usize).cmp(y.keys.get(b.2 as usize)))
                .then_with(|| x.val(a.3 as usize).cmp(y.val(b.3 as usize)))
                .then_with(|| x.times.get(a.3 as usize).cmp(y.times.get(b.3 as usize)))
        })
    });
    let mut i = 0;
    while i < order.len() {
        let p = order[i];
        let x = &blocks[p.1 as usize];
        let (key, val, t) = (x.keys.get(p.2 as usize), x.val(p.3 as usize), x.times.get(p.3 as usize));
        let mut j = i + 1;
        let mut sum: Option<R> = None;
        while j < order.len() && order[j].0 == p.0 {
            let q = order[j];
            let y = &blocks[q.1 as usize];
            if y.keys.get(q.2 as usize) != key || y.val(q.3 as usize) != val || y.times.get(q.3 as usize) != t {
                break;
            }
            sum.get_or_insert_with(|| x.diffs.get(p.3 as usize).clone()).plus_equals(y.diffs.get(q.3 as usize));
            j += 1;
        }
        match sum {
            None => open.append(x, p.2 as usize, p.3 as usize, p.3 as usize + 1),
            Some(r) if !r.is_zero() => open.push(p.0, key, val, t.clone(), r),
            Some(_) => {}
        }
        if open.len() >= TARGET {
            let next = Body::with_room_of(open);
            let mut full = std::mem::replace(open, next);
            full.compact();
            out.push(RowChunk::new(full));
        }
        i = j;
    }
}
