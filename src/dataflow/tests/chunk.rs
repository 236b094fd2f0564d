//! Chunks against the plainest model: sort, merge, extract, advance, settle, seek, and the bytes between processes.
//!
//! Lanes collide and groups straddle chunks on purpose: what one dataflow test would meet once a year.

#![allow(clippy::type_complexity)]

use dataflow::arrange::{find_key, gallop_key, lane_of, sort_blocks, Block, Body, Budget, RowBatcher, RowChunk, Time};
use differential_dataflow::batcher::Extract;
use differential_dataflow::consolidation::consolidate_updates;
use differential_dataflow::lattice::Lattice;
use differential_dataflow::trace::chunk::{is_graded, merge_chains, settle_all, Chunk};
use std::collections::VecDeque;
use std::time::Duration;
use timely::bytes::arc::BytesMut;
use timely::dataflow::channels::ContainerBytes;
use timely::order::Product;
use timely::progress::Antichain;

type Round = Product<u64, u64>;
type Flat<T> = Vec<((u64, Vec<u8>, Vec<u8>), T, i64)>;

struct Rng(u64);
impl Rng {
    fn n(&mut self, m: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % m
    }
}

/// A weak lane, so that lanes collide.
fn lane(key: &[u8]) -> u64 {
    lane_of(key) % 97
}

fn key_bytes(k: u64) -> Vec<u8> {
    k.to_be_bytes()[5..].to_vec()
}

fn updates(r: &mut Rng, n: usize, keys: u64, vals: u64) -> Flat<Round> {
    (0..n)
        .map(|_| {
            let k = key_bytes(r.n(keys));
            let v = vec![r.n(vals) as u8; r.n(3) as usize];
            let t = Product::new(r.n(4), r.n(4));
            ((lane(&k), k, v), t, if r.n(2) == 0 { 1 } else { -1 })
        })
        .collect()
}

fn norm<T: Ord + Clone>(mut f: Flat<T>) -> Flat<T> {
    consolidate_updates(&mut f);
    f
}

fn body_flat<T: Clone + PartialEq>(b: &Body<T, i64>) -> Flat<T> {
    (0..b.lanes.len())
        .flat_map(|k| (b.key_start(k)..b.key_ends[k] as usize).map(move |u| (k, u)))
        .map(|(k, u)| ((b.lanes[k], b.keys.get(k).to_vec(), b.val(u).to_vec()), b.time_at(u).clone(), *b.diffs.get(u)))
        .collect()
}

fn flat<T: Clone + PartialEq>(chunks: &[RowChunk<T, i64>]) -> Flat<T> {
    chunks.iter().flat_map(|c| body_flat(c.body())).collect()
}

fn body<T: Clone + PartialEq>(f: &[((u64, Vec<u8>, Vec<u8>), T, i64)]) -> Body<T, i64> {
    let mut b = Body::default();
    for ((l, k, v), t, d) in f {
        b.push(*l, k, v, t.clone(), *d);
    }
    b
}

/// Random cuts, so that groups straddle chunks.
fn cut<T: Time>(r: &mut Rng, f: &Flat<T>, max: u64) -> Vec<RowChunk<T, i64>> {
    let (mut out, mut i) = (vec![], 0);
    while i < f.len() {
        let end = (i + 1 + r.n(max) as usize).min(f.len());
        out.push(RowChunk::new(body(&f[i..end])));
        i = end;
    }
    out
}

#[test]
fn chunk_operations_equal_the_model() {
    let mut r = Rng(0x0123_4567);
    for round in 0..48 {
        let n = [10, 100, 1500, 6000][round % 4];
        let (keys, vals) = ([3, 50, 5000][round % 3], [1, 4][round % 2]);
        let (fa, fb) = (norm(updates(&mut r, n, keys, vals)), norm(updates(&mut r, n / 2 + 1, keys, vals)));
        let max = [2, 30, 8000][round % 3];
        let (a, b) = (cut(&mut r, &fa, max), cut(&mut r, &fb, max));
        let all = norm(fa.iter().chain(&fb).cloned().collect());

        let mut shuffled: Flat<Round> = fa.iter().chain(&fb).cloned().collect();
        for i in (1..shuffled.len()).rev() {
            shuffled.swap(i, r.n(i as u64 + 1) as usize);
        }
        let blocks: Vec<Body<Round, i64>> = cut(&mut r, &shuffled, 1000).iter().map(|c| c.body().clone()).collect();
        assert_eq!(flat(&sort_blocks(&blocks)), all, "sort {round}");

        // Bursts of chunks at a time, as the spine merges.
        let (mut from_a, mut from_b) = (a.clone().into_iter(), b.clone().into_iter());
        let (mut qa, mut qb, mut out) = (VecDeque::new(), VecDeque::new(), VecDeque::new());
        loop {
            qa.extend(from_a.by_ref().take(8 - qa.len().min(8)));
            qb.extend(from_b.by_ref().take(8 - qb.len().min(8)));
            if qa.is_empty() || qb.is_empty() {
                out.extend(qa.drain(..).chain(&mut from_a));
                out.extend(qb.drain(..).chain(&mut from_b));
                break;
            }
            Chunk::merge(&mut qa, &mut qb, &mut out);
        }
        assert_eq!(flat(&out.into_iter().collect::<Vec<_>>()), all, "merge in bursts {round}");
        let mut whole = VecDeque::new();
        merge_chains(a, b, &mut whole);
        let merged = settle_all(whole);
        assert!(is_graded(&merged));
        assert_eq!(flat(&merged), all, "merge {round}");

        for c in &merged {
            let mut start = 0;
            for _ in 0..20 {
                let k = key_bytes(r.n(keys + 2));
                let found = find_key(c.body(), start, lane(&k), &k);
                assert_eq!(found, gallop_key(c.body(), start, lane(&k), &k), "seek {round}");
                start = if r.n(3) > 0 { found } else { 0 };
            }
        }

        let frontier = Antichain::from_iter([Product::new(2, 1), Product::new(1, 3)]);
        let (mut input, mut keep, mut ship, mut residual) =
            (merged.iter().cloned().collect::<VecDeque<_>>(), VecDeque::new(), VecDeque::new(), Antichain::new());
        while !input.is_empty() {
            RowChunk::extract(&mut input, frontier.borrow(), &mut residual, &mut keep, &mut ship);
        }
        let (kept, shipped): (Flat<Round>, Flat<Round>) = all.iter().cloned().partition(|u| frontier.less_equal(&u.1));
        assert_eq!((flat(&settle_all(keep)), flat(&settle_all(ship))), (kept.clone(), shipped), "extract {round}");
        let mut least = Antichain::new();
        kept.iter().for_each(|u| {
            least.insert_ref(&u.1);
        });
        assert_eq!(residual, least, "residual {round}");

        // Streamed in random bursts of randomly cut chunks.
        let (mut input, mut out) = (VecDeque::new(), VecDeque::new());
        for c in cut(&mut r, &all, max) {
            input.push_back(c);
            if r.n(3) == 0 {
                RowChunk::advance(&mut input, frontier.borrow(), false, &mut out);
            }
        }
        RowChunk::advance(&mut input, frontier.borrow(), true, &mut out);
        let mut advanced = all.clone();
        advanced.iter_mut().for_each(|u| u.1.advance_by(frontier.borrow()));
        assert_eq!(flat(&settle_all(out)), norm(advanced), "advance {round}");
    }
}

fn through_bytes<T, R>(block: &Block<T, R>) -> Block<T, R>
where
    Block<T, R>: ContainerBytes,
{
    let mut bytes = Vec::new();
    block.into_bytes(&mut bytes);
    assert_eq!(bytes.len(), block.length_in_bytes());
    assert_eq!(bytes.len() % 8, 0);
    Block::from_bytes(BytesMut::from(bytes).freeze())
}

#[test]
fn blocks_survive_the_way_between_processes() {
    let mut r = Rng(0xBEEF);
    for n in [0, 1, 7, 1000] {
        for vals in [1, 5] {
            let f = updates(&mut r, n, 40, vals);
            let block = Block(body(&f));
            assert_eq!(body_flat(&through_bytes(&block).0), body_flat(&block.0));
            // Constant times and diffs, no vals.
            let plain: Flat<u64> = f.iter().map(|u| ((u.0 .0, u.0 .1.clone(), vec![]), 7, 1)).collect();
            let block = Block(body(&plain));
            assert_eq!(body_flat(&through_bytes(&block).0), body_flat(&block.0));
        }
    }
}

#[test]
fn a_batcher_worked_in_small_steps_gives_what_was_put_in() {
    let mut r = Rng(0xCAFE);
    let mut steps = 0;
    for round in 0..12 {
        let mut all: Flat<Round> = vec![];
        let mut batchers: Vec<RowBatcher<Round, i64>> = (0..3).map(|_| RowBatcher::default()).collect();
        for _ in 0..8 {
            let n = [5, 900, 5000][r.n(3) as usize];
            let f = updates(&mut r, n, [4, 3000][round % 2], 3);
            let which = r.n(3) as usize;
            batchers[which].insert_body(body(&f));
            all.extend(f);
            for _ in 0..r.n(4) {
                batchers[which].work(&mut Budget::new(Duration::ZERO));
            }
        }
        let mut last = batchers.pop().unwrap();
        batchers.into_iter().for_each(|b| last.absorb(b));
        while !last.work(&mut Budget::new(Duration::ZERO)) {
            steps += 1;
        }
        let (early, late): (Flat<Round>, Flat<Round>) = norm(all).into_iter().partition(|u| u.1.outer < 2);
        for (upper, want) in [(Antichain::from_elem(Product::new(2, 0)), early), (Antichain::new(), late)] {
            let got = last.extract(upper.borrow()).0.map(|b| flat(&b.chunks)).unwrap_or_default();
            assert_eq!(got, want, "round {round}");
        }
    }
    assert!(steps > 10, "hardly anything was done in steps");
}

/// Wide updates fill a chunk by their bytes; no chunk holds more than about the bound, whatever made it.
#[test]
fn chunks_are_bounded_in_bytes() {
    let wide = |n: u64, of: u64| {
        let mut b: Body<u64, i64> = Body::default();
        for i in 0..n {
            b.push(lane_of(&key_bytes(i)), &key_bytes(i), &vec![(i % 251) as u8; 100_000], of, 1);
        }
        b
    };
    let bound = repr::batch::PIECE_BYTES + 200_000;
    let (a, b) = (sort_blocks(&[wide(400, 0)]), sort_blocks(&[wide(400, 1)]));
    let mut merged = VecDeque::new();
    merge_chains(a.clone(), b, &mut merged);
    let merged = settle_all(merged);
    let compacted = {
        let mut out = VecDeque::new();
        let mut input: VecDeque<_> = merged.clone().into();
        RowChunk::advance(&mut input, Antichain::from_elem(1).borrow(), true, &mut out);
        settle_all(out)
    };
    for (chunks, rows) in [(a, 400), (merged, 800), (compacted, 400)] {
        assert_eq!(chunks.iter().map(|c| c.body().len()).sum::<usize>(), rows);
        assert!(chunks.iter().all(|c| c.body().bytes() <= bound), "{:?}", chunks.iter().map(|c| c.body().bytes()).collect::<Vec<_>>());
        assert!(chunks.len() > 1 && chunks.windows(2).all(|w| w[0].body().bytes() + w[1].body().bytes() > bound / 4));
    }
}
