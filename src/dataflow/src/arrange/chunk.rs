//! Row chunks: differential's `Chunk` over hash-laned, memcmp-comparable bytes.
//!
//! Order is (lane, key bytes, val bytes, time). One `u64` comparison decides nearly every key comparison; the lane is
//! also what data is exchanged by. Range scans over keys do not exist; inside a key vals are in byte order.
//!
//! Chunks are immutable and shared; the batcher, builder and spine of differential work on them as they are.

use super::{gallop_key, Body, Time, Weight};
use differential_dataflow::consolidation::consolidate;
use differential_dataflow::trace::chunk::Chunk;
use repr::batch::PIECE_BYTES;
use repr::Col;
use std::cmp::Ordering;
use std::collections::VecDeque;
use std::ops::Deref;
use std::sync::Arc;
use timely::progress::frontier::{Antichain, AntichainRef};

/// Updates in a full chunk. Spine merges do up to 16 chunks in one step, so this bounds the tail latency
/// (8192 had a p99 three times that of 1024, at 0.6 to 0.9 of the cost).
pub const TARGET: usize = 2048;

/// An immutable run of sorted, consolidated updates.
pub struct RowChunk<T, R> {
    body: Arc<Body<T, R>>,
    /// Beside the body, so that seeks across chunks never touch bodies.
    lane_bounds: (u64, u64),
}

impl<T, R> RowChunk<T, R> {
    pub fn new(body: Body<T, R>) -> Self {
        let lane_bounds = (body.lanes.first().copied().unwrap_or(0), body.lanes.last().copied().unwrap_or(0));
        RowChunk { body: Arc::new(body), lane_bounds }
    }
    #[inline]
    pub fn body(&self) -> &Body<T, R> {
        &self.body
    }
    #[inline]
    pub fn last_lane(&self) -> u64 {
        self.lane_bounds.1
    }
}

impl<T, R> Deref for RowChunk<T, R> {
    type Target = Body<T, R>;
    #[inline]
    fn deref(&self) -> &Body<T, R> {
        &self.body
    }
}

impl<T, R> Clone for RowChunk<T, R> {
    fn clone(&self) -> Self {
        RowChunk { body: Arc::clone(&self.body), lane_bounds: self.lane_bounds }
    }
}

impl<T, R> Default for RowChunk<T, R> {
    fn default() -> Self {
        RowChunk::new(Body::default())
    }
}

/// A read position: key index, update index.
struct Pos<T, R> {
    chunk: RowChunk<T, R>,
    key: usize,
    update: usize,
}

impl<T: Clone + PartialEq, R: Clone + PartialEq> Pos<T, R> {
    fn new(chunk: Option<RowChunk<T, R>>) -> Self {
        Pos { chunk: chunk.unwrap_or_default(), key: 0, update: 0 }
    }
    #[inline]
    fn done(&self) -> bool {
        self.key >= self.chunk.lanes.len()
    }
    /// Steps to the next key if the current one's updates are used up.
    #[inline]
    fn settle(&mut self) {
        if self.update >= self.chunk.key_ends[self.key] as usize {
            self.key += 1;
        }
    }
    /// Copies the run of keys strictly below `other`'s head into `out`, cut at [`TARGET`].
    fn copy_below(&mut self, other: &Pos<T, R>, open: &mut Body<T, R>, out: &mut VecDeque<RowChunk<T, R>>) {
        let (lane, key) = other.chunk.body().key(other.key);
        let end_key = gallop_key(self.chunk.body(), self.key + 1, lane, key);
        let end = self.chunk.key_start(end_key);
        while self.update < end {
            let e = end.min(self.update + TARGET - open.len());
            open.append(&self.chunk, self.key, self.update, e);
            self.update = e;
            if e < end {
                self.key = self.chunk.key_of(e);
            }
            flush_full(open, out);
        }
        self.key = end_key;
    }
    /// Puts back what was not read.
    fn give_back(self, queue: &mut VecDeque<RowChunk<T, R>>) {
        if self.done() {
            return;
        }
        if self.update == 0 {
            queue.push_front(self.chunk);
        } else {
            let mut rest = Body::with_room_of(&self.chunk);
            rest.append(&self.chunk, self.key, self.update, self.chunk.body().len());
            queue.push_front(RowChunk::new(rest));
        }
    }
}

fn flush_full<T: Clone + PartialEq, R: Clone + PartialEq>(open: &mut Body<T, R>, out: &mut VecDeque<RowChunk<T, R>>) {
    if open.is_full() {
        let next = Body::with_room_of(open);
        out.push_back(RowChunk::new(std::mem::replace(open, next)));
    }
}

/// The (lane, key, val) group that `advance` holds open, with its advanced times.
struct Group<T, R> {
    id: Option<(u64, Vec<u8>, Vec<u8>)>,
    updates: Vec<(T, R)>,
}

impl<T: Ord + Clone, R: Weight> Group<T, R> {
    fn is(&self, lane: u64, key: &[u8], val: &[u8]) -> bool {
        self.id.as_ref().is_some_and(|(l, k, v)| *l == lane && k[..] == *key && v[..] == *val)
    }
    fn close(&mut self, open: &mut Body<T, R>) {
        if let Some((lane, key, val)) = self.id.take() {
            if self.updates.len() > 1 {
                consolidate(&mut self.updates);
            }
            for (t, r) in self.updates.drain(..) {
                if !r.is_zero() {
                    open.push(lane, &key, &val, t, r);
                }
            }
        }
    }
}

impl<T: Time, R: Weight> Chunk for RowChunk<T, R> {
    type Time = T;
    const TARGET: usize = TARGET;

    fn len(&self) -> usize {
        self.body.len()
    }

    fn merge(in1: &mut VecDeque<Self>, in2: &mut VecDeque<Self>, out: &mut VecDeque<Self>) {
        let mut p1 = Pos::new(in1.pop_front());
        let mut p2 = Pos::new(in2.pop_front());
        let mut open: Body<T, R> = Body::with_room_of(&p1.chunk);
        loop {
            if p1.done() {
                match in1.pop_front() {
                    Some(c) => p1 = Pos::new(Some(c)),
                    None => break,
                }
            }
            if p2.done() {
                match in2.pop_front() {
                    Some(c) => p2 = Pos::new(Some(c)),
                    None => break,
                }
            }
            match p1.chunk.body().key(p1.key).cmp(&p2.chunk.body().key(p2.key)) {
                Ordering::Less => p1.copy_below(&p2, &mut open, out),
                Ordering::Greater => p2.copy_below(&p1, &mut open, out),
                Ordering::Equal => {
                    merge_group(&mut p1, &mut p2, &mut open, out);
                    // The rest of the longer group is then less than the other's next key and is copied as a run. A group
                    // at its chunk's end may go on in the next chunk, so nothing of the other may be emitted yet.
                    p1.settle();
                    p2.settle();
                }
            }
        }
        if !open.is_empty() {
            out.push_back(RowChunk::new(open));
        }
        p1.give_back(in1);
        p2.give_back(in2);
    }

    fn extract(input: &mut VecDeque<Self>, frontier: AntichainRef<T>, residual: &mut Antichain<T>, keep: &mut VecDeque<Self>, ship: &mut VecDeque<Self>) {
        let Some(chunk) = input.pop_front() else { return };
        if let Col::Same(Some(t), _) = &chunk.times {
            if frontier.less_equal(t) {
                residual.insert_ref(t);
                keep.push_back(chunk);
            } else {
                ship.push_back(chunk);
            }
            return;
        }
        let n = chunk.body().len();
        let flags: Vec<bool> = chunk
            .times
            .iter()
            .map(|t| {
                let later = frontier.less_equal(t);
                if later {
                    residual.insert_ref(t);
                }
                later
            })
            .collect();
        match flags.iter().filter(|x| **x).count() {
            0 => return ship.push_back(chunk),
            k if k == n => return keep.push_back(chunk),
            _ => {}
        }
        let (mut kept, mut shipped): (Body<T, R>, Body<T, R>) = Default::default();
        let (mut u, mut k) = (0, 0);
        while u < n {
            let mut e = u + 1;
            while e < n && flags[e] == flags[u] {
                e += 1;
            }
            while chunk.key_ends[k] as usize <= u {
                k += 1;
            }
            if flags[u] {
                kept.append(&chunk, k, u, e)
            } else {
                shipped.append(&chunk, k, u, e)
            }
            u = e;
        }
        keep.push_back(RowChunk::new(kept));
        ship.push_back(RowChunk::new(shipped));
    }

    fn advance(input: &mut VecDeque<Self>, frontier: AntichainRef<T>, done: bool, out: &mut VecDeque<Self>) {
        let advanced = |t: &T| {
            let mut t = t.clone();
            t.advance_by(frontier);
            t
        };
        let inert = |t: &T| frontier.less_equal(t) || frontier.is_empty();
        let mut group = Group { id: None, updates: Vec::new() };
        let mut open: Body<T, R> = Body::default();
        while let Some(chunk) = input.pop_front() {
            let c = chunk.body();
            let n = c.len();
            if n == 0 {
                continue;
            }
            // A chunk without times to advance, whose first group does not continue the open one, and whose last group
            // is seen to end, passes through untouched.
            let all_inert = match &c.times {
                Col::Same(Some(t), _) => inert(t),
                Col::Many(v) => v.iter().all(inert),
                Col::Same(None, _) => true,
            };
            let continues = group.is(c.lanes[0], c.keys.get(0), c.val(0));
            let ended = input.front().map_or(done, |x| (x.body().key(0), x.val(0)) != (c.key(c.lanes.len() - 1), c.val(n - 1)));
            if all_inert && !continues && ended {
                group.close(&mut open);
                if !open.is_empty() {
                    out.push_back(RowChunk::new(std::mem::take(&mut open)));
                }
                out.push_back(chunk);
                continue;
            }
            let (mut u, mut k) = (0, 0);
            while u < n {
                while c.key_ends[k] as usize <= u {
                    k += 1;
                }
                if group.is(c.lanes[k], c.keys.get(k), c.val(u)) {
                    group.updates.push((advanced(c.times.get(u)), c.diffs.get(u).clone()));
                    u += 1;
                    continue;
                }
                group.close(&mut open);
                if open.is_full() {
                    out.push_back(RowChunk::new(std::mem::take(&mut open)));
                }
                // The longest run of groups of one update is copied in bulk, up to the chunk's last update.
                let (mut e, mut ke) = (u, k);
                let cap = (u + TARGET - open.len().min(TARGET - 1)).min(n - 1);
                while e < cap {
                    while c.key_ends[ke] as usize <= e {
                        ke += 1;
                    }
                    if (e + 1) < c.key_ends[ke] as usize && c.val(e) == c.val(e + 1) {
                        break;
                    }
                    e += 1;
                }
                if e > u {
                    open.append_untimed(c, k, u, e);
                    match &c.times {
                        Col::Same(Some(t), _) => open.times.extend(&Col::same(advanced(t), e - u), 0, e - u),
                        times => (u..e).for_each(|i| open.times.push(advanced(times.get(i)))),
                    }
                    u = e;
                    if open.is_full() {
                        out.push_back(RowChunk::new(std::mem::take(&mut open)));
                    }
                    if e == cap && e < n - 1 {
                        continue;
                    }
                    while c.key_ends[k] as usize <= u {
                        k += 1;
                    }
                }
                group.id = Some((c.lanes[k], c.keys.get(k).to_vec(), c.val(u).to_vec()));
                group.updates.push((advanced(c.times.get(u)), c.diffs.get(u).clone()));
                u += 1;
            }
        }
        if done {
            group.close(&mut open);
        } else {
            // The open group is withheld, consolidated so that it stays small.
            let mut carry = Body::default();
            group.close(&mut carry);
            if !carry.is_empty() {
                input.push_front(RowChunk::new(carry));
            }
        }
        if !open.is_empty() {
            out.push_back(RowChunk::new(open));
        }
    }

    fn settle(input: &mut VecDeque<Self>, done: bool, out: &mut VecDeque<Self>) {
        let mut seal = |run: &mut Vec<Self>| {
            let mut c = match run.len() {
                0 => return,
                1 => run.remove(0),
                _ => {
                    let mut b = Body::default();
                    run.drain(..).for_each(|c| b.append(&c, 0, 0, c.body().len()));
                    RowChunk::new(b)
                }
            };
            if let Some(b) = Arc::get_mut(&mut c.body) {
                b.compact();
            }
            out.push_back(c);
        };
        // What goes into the next chunk, its updates and bytes.
        let (mut run, mut rows, mut bytes) = (Vec::new(), 0, 0);
        while let Some(c) = input.pop_front() {
            let (n, b) = (c.body().len(), c.bytes());
            if n > TARGET {
                let (mut head, mut tail) = (Body::with_room_of(&c), Body::default());
                head.append(&c, 0, 0, TARGET);
                tail.append(&c, c.key_of(TARGET), TARGET, n);
                input.push_front(RowChunk::new(tail));
                input.push_front(RowChunk::new(head));
                continue;
            }
            if rows > 0 && (rows + n > TARGET || bytes + b > PIECE_BYTES) {
                seal(&mut run);
                (rows, bytes) = (0, 0);
            }
            run.push(c);
            (rows, bytes) = (rows + n, bytes + b);
        }
        if done || rows >= TARGET || bytes >= PIECE_BYTES {
            seal(&mut run);
        } else {
            // Handed back as it is, to be made one chunk once.
            run.into_iter().rev().for_each(|c| input.push_front(c));
        }
    }
}

/// Merges two groups' (val, time) sequences until one runs out.
fn merge_group<T: Time, R: Weight>(p1: &mut Pos<T, R>, p2: &mut Pos<T, R>, open: &mut Body<T, R>, out: &mut VecDeque<RowChunk<T, R>>) {
    let (k1, k2) = (p1.key, p2.key);
    let (c1, c2) = (p1.chunk.clone(), p2.chunk.clone());
    let (e1, e2) = (c1.key_ends[k1] as usize, c2.key_ends[k2] as usize);
    while p1.update < e1 && p2.update < e2 {
        let (u1, u2) = (p1.update, p2.update);
        match c1.val(u1).cmp(c2.val(u2)).then_with(|| c1.times.get(u1).cmp(c2.times.get(u2))) {
            Ordering::Less => {
                open.append(&c1, k1, u1, u1 + 1);
                p1.update += 1;
            }
            Ordering::Greater => {
                open.append(&c2, k2, u2, u2 + 1);
                p2.update += 1;
            }
            Ordering::Equal => {
                let mut diff = c1.diffs.get(u1).clone();
                diff.plus_equals(c2.diffs.get(u2));
                if !diff.is_zero() {
                    open.push(c1.lanes[k1], c1.keys.get(k1), c1.val(u1), c1.times.get(u1).clone(), diff);
                }
                p1.update += 1;
                p2.update += 1;
            }
        }
        flush_full(open, out);
    }
}
