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

/// One update: (block, key index, update index).
type Update = (u32, u32, u32);

/// Updates by (lane, key, val, time).
///
/// Keys of one lane are the same but for collisions of the hash: rows of a group are told apart by eight bytes of their vals, read once, and
/// only if a lane turns out to have two keys are they sorted again by keys first.
fn order<T: Time, R: Weight>(blocks: &[Body<T, R>], n: usize) -> Vec<(u64, u64, Update)> {
    let same = shared_prefix(blocks);
    let mut order: Vec<(u64, u64, Update)> = Vec::with_capacity(n);
    for (i, b) in blocks.iter().enumerate() {
        let mut u = 0;
        for k in 0..b.lanes.len() {
            while u < b.key_ends[k] {
                let mut head = [0; 8];
                let val = &b.val(u as usize)[same..];
                head[..val.len().min(8)].copy_from_slice(&val[..val.len().min(8)]);
                order.push((b.lanes[k], u64::from_be_bytes(head), (i as u32, k as u32, u)));
                u += 1;
            }
        }
    }
    let key = |u: Update| blocks[u.0 as usize].keys.get(u.1 as usize);
    let by_bytes = |a: Update, b: Update| {
        let (x, y) = (&blocks[a.0 as usize], &blocks[b.0 as usize]);
        (key(a).cmp(key(b))).then_with(|| x.val(a.2 as usize).cmp(y.val(b.2 as usize))).then_with(|| x.times.get(a.2 as usize).cmp(y.times.get(b.2 as usize)))
    };
    order.sort_unstable_by(|a, b| (a.0, a.1).cmp(&(b.0, b.1)).then_with(|| by_bytes(a.2, b.2)));
    if order.windows(2).any(|w| w[0].0 == w[1].0 && key(w[0].2) != key(w[1].2)) {
        order.sort_unstable_by(|a, b| a.0.cmp(&b.0).then_with(|| by_bytes(a.2, b.2)));
    }
    order
}

/// How many bytes all vals begin with alike.
fn shared_prefix<T, R>(blocks: &[Body<T, R>]) -> usize {
    let mut shared: Option<&[u8]> = None;
    for b in blocks {
        for u in 0..b.len() {
            let val = b.val(u);
            let s = shared.get_or_insert(val);
            if !val.starts_with(s) {
                let n = s.iter().zip(val).take_while(|(a, b)| a == b).count();
                *s = &s[..n];
            }
        }
    }
    shared.map_or(0, <[u8]>::len)
}

fn sort_into<T: Time, R: Weight>(blocks: &[Body<T, R>], open: &mut Body<T, R>, out: &mut Vec<RowChunk<T, R>>) {
    let n: usize = blocks.iter().map(|b| b.len()).sum();
    let order = order(blocks, n);
    let mut i = 0;
    while i < order.len() {
        let (lane, _, (block, k, u)) = order[i];
        let x = &blocks[block as usize];
        let (k, u) = (k as usize, u as usize);
        let (key, val, t) = (x.keys.get(k), x.val(u), x.times.get(u));
        let mut j = i + 1;
        let mut sum: Option<R> = None;
        while j < order.len() && (order[j].0, order[j].1) == (lane, order[i].1) {
            let (block, k, v) = order[j].2;
            let y = &blocks[block as usize];
            if y.keys.get(k as usize) != key || y.val(v as usize) != val || y.times.get(v as usize) != t {
                break;
            }
            sum.get_or_insert_with(|| x.diffs.get(u).clone()).plus_equals(y.diffs.get(v as usize));
            j += 1;
        }
        match sum {
            None => open.append(x, k, u, u + 1),
            Some(r) if !r.is_zero() => open.push(lane, key, val, t.clone(), r),
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
