//! Sorting staged updates into batches, in bounded steps.
//!
//! ```text
//!   blocks ──staged──► sorted runs (chains of chunks) ──the two smallest merged, a few chunks a step──► one chain ──► batch
//! ```
//!
//! Blocks are sorted in large runs, first split by the lanes' top bits, so that each part sorts and gathers within the
//! cache and the sorted parts concatenate without merging. Merging goes on while input still arrives, and stops when an
//! activation's time is up.

use super::{Block, Body, Budget, RowChunk, Time, Weight};
use differential_dataflow::batcher::{Batcher, Extract};
use differential_dataflow::logging::Logger;
use differential_dataflow::trace::chunk::{settle_all, Chunk, ChunkBatch};
use std::collections::VecDeque;
use timely::progress::frontier::{Antichain, AntichainRef};

/// Rows that are staged before they are sorted: the longest single step, and a memory knob.
const STAGE: usize = 1 << 16;
/// As [`STAGE`], for wide rows: they may all fall into one part of a split sort.
const STAGE_BYTES: usize = 256 << 20;
/// Rows above which a sort is split by lane.
const SPLIT: usize = 16_384;
/// Chunks of each side that one step of a merge takes.
const BURST: usize = 4;

type Chain<T, R> = VecDeque<RowChunk<T, R>>;

/// Two chains on their way to one.
struct Merging<T: Time, R: Weight> {
    left: Chain<T, R>,
    right: Chain<T, R>,
    /// What of each side is before the merge.
    heads: [Chain<T, R>; 2],
    out: Chain<T, R>,
}

impl<T: Time, R: Weight> Merging<T, R> {
    /// One burst; true when the merge is over.
    fn step(&mut self, budget: &mut Budget) -> bool {
        for (chain, head) in [&mut self.left, &mut self.right].into_iter().zip(&mut self.heads) {
            while head.len() < BURST {
                let Some(c) = chain.pop_front() else { break };
                head.push_back(c);
            }
        }
        let [a, b] = &mut self.heads;
        if a.is_empty() || b.is_empty() {
            self.out.extend(a.drain(..).chain(self.left.drain(..)));
            self.out.extend(b.drain(..).chain(self.right.drain(..)));
            return true;
        }
        budget.charge(a.iter().chain(b.iter()).map(|c| c.body().len()).sum());
        RowChunk::merge(a, b, &mut self.out);
        false
    }
}

pub struct RowBatcher<T: Time, R: Weight> {
    staged: Vec<Body<T, R>>,
    staged_len: usize,
    staged_bytes: usize,
    chains: Vec<Chain<T, R>>,
    merging: Option<Merging<T, R>>,
    frontier: Antichain<T>,
}

impl<T: Time, R: Weight> Default for RowBatcher<T, R> {
    fn default() -> Self {
        RowBatcher { staged: vec![], staged_len: 0, staged_bytes: 0, chains: vec![], merging: None, frontier: Antichain::new() }
    }
}

impl<T: Time, R: Weight> RowBatcher<T, R> {
    /// As differential's arrange makes it.
    pub fn new(_: Option<Logger>, _: usize) -> Self {
        RowBatcher::default()
    }

    fn sort(&mut self) {
        if self.staged_len > 0 {
            let chain = sort_blocks(&self.staged);
            self.staged.clear();
            (self.staged_len, self.staged_bytes) = (0, 0);
            self.restore(chain);
        }
    }

    pub fn insert_body(&mut self, body: Body<T, R>) {
        self.staged_len += body.len();
        self.staged_bytes += body.bytes();
        self.staged.push(body);
        if self.staged_len >= STAGE || self.staged_bytes >= STAGE_BYTES {
            self.sort();
        }
    }

    /// Takes in all that another batcher holds.
    pub fn absorb(&mut self, mut other: RowBatcher<T, R>) {
        other.staged.drain(..).for_each(|b| self.insert_body(b));
        if let Some(Merging { left, right, heads: [a, b], mut out }) = other.merging.take() {
            // What was merged lies below what was not.
            out.extend(a.into_iter().chain(left));
            self.chains.push(out);
            self.chains.push(b.into_iter().chain(right).collect());
        }
        self.chains.append(&mut other.chains);
        self.chains.retain(|c| !c.is_empty());
    }

    /// Sorts and merges until the budget is spent; true when one chain is left at most.
    pub fn work(&mut self, budget: &mut Budget) -> bool {
        if self.staged_len > 0 {
            budget.charge(self.staged_len);
            self.sort();
        }
        while !budget.spent {
            if let Some(m) = &mut self.merging {
                if m.step(budget) {
                    self.chains.extend(self.merging.take().map(|m| m.out).filter(|c| !c.is_empty()));
                }
                continue;
            }
            if self.chains.len() < 2 {
                return true;
            }
            // The smallest are last.
            self.chains.sort_by_key(|c| std::cmp::Reverse(c.len()));
            if let (Some(left), Some(right)) = (self.chains.pop(), self.chains.pop()) {
                self.merging = Some(Merging { left, right, heads: Default::default(), out: VecDeque::new() });
            }
        }
        self.merging.is_none() && self.chains.len() < 2
    }

    fn merge_all(&mut self) -> Chain<T, R> {
        while !self.work(&mut Budget::endless()) {}
        self.chains.pop().unwrap_or_default()
    }

    /// Everything retained, as one sorted chain; shares the chunks.
    pub fn snapshot(&mut self) -> Vec<RowChunk<T, R>> {
        let chain: Vec<_> = self.merge_all().into();
        self.restore(chain.clone());
        chain
    }

    /// Takes back what `snapshot` gave.
    pub fn restore(&mut self, chain: Vec<RowChunk<T, R>>) {
        if !chain.is_empty() {
            self.chains.push(chain.into());
        }
    }
}

impl<T: Time, R: Weight> Extract for RowBatcher<T, R> {
    type Time = T;
    type Output = ChunkBatch<RowChunk<T, R>>;
    fn extract<'a>(&'a mut self, upper: AntichainRef<'_, T>) -> (Option<Self::Output>, AntichainRef<'a, T>) {
        let mut merged = self.merge_all();
        let (mut keep, mut ship) = (VecDeque::new(), VecDeque::new());
        self.frontier.clear();
        while !merged.is_empty() {
            RowChunk::extract(&mut merged, upper, &mut self.frontier, &mut keep, &mut ship);
        }
        self.restore(keep.into());
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
        if open.is_full() {
            let next = Body::with_room_of(open);
            let mut full = std::mem::replace(open, next);
            full.compact();
            out.push(RowChunk::new(full));
        }
        i = j;
    }
}
