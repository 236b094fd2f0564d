//! Bytes of blocks: what goes between processes.
//!
//! ```text
//!   block   u64 updates | u8 no_vals | lanes u64.. | keys slab | key_ends | [vals slab] | col times | col diffs | padding to 8
//!   slab    u64 bytes | bytes | u64 ends | u32..
//!   col     u8 0 then one value, or u8 1 then one value an update (nothing if there are no updates)
//! ```

use super::{Block, Body, Slab};
use repr::Col;
use std::io::Write;
use timely::dataflow::channels::ContainerBytes;
use timely::order::Product;

/// A time or diff with a byte form of its own.
pub trait WireTime: Clone + PartialEq {
    fn write(&self, out: &mut Vec<u8>);
    fn read(bytes: &mut &[u8]) -> Self;
}

fn take<'a>(bytes: &mut &'a [u8], n: usize) -> &'a [u8] {
    let (head, rest) = bytes.split_at(n);
    *bytes = rest;
    head
}

fn read_u64(bytes: &mut &[u8]) -> u64 {
    let mut b = [0; 8];
    b.copy_from_slice(take(bytes, 8));
    u64::from_le_bytes(b)
}

impl WireTime for u64 {
    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.to_le_bytes());
    }
    fn read(bytes: &mut &[u8]) -> Self {
        read_u64(bytes)
    }
}

impl WireTime for i64 {
    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.to_le_bytes());
    }
    fn read(bytes: &mut &[u8]) -> Self {
        read_u64(bytes) as i64
    }
}

impl<A: WireTime, B: WireTime> WireTime for Product<A, B> {
    fn write(&self, out: &mut Vec<u8>) {
        self.outer.write(out);
        self.inner.write(out);
    }
    fn read(bytes: &mut &[u8]) -> Self {
        let outer = A::read(bytes);
        Product::new(outer, B::read(bytes))
    }
}

fn write_slab(slab: &Slab, out: &mut Vec<u8>) {
    (slab.bytes.len() as u64).write(out);
    out.extend_from_slice(&slab.bytes);
    write_u32s(&slab.ends, out);
}

fn read_slab(bytes: &mut &[u8]) -> Slab {
    let n = read_u64(bytes) as usize;
    let data = take(bytes, n).to_vec();
    Slab { bytes: data, ends: read_u32s(bytes) }
}

fn write_u32s(values: &[u32], out: &mut Vec<u8>) {
    (values.len() as u64).write(out);
    values.iter().for_each(|v| out.extend_from_slice(&v.to_le_bytes()));
}

fn read_u32s(bytes: &mut &[u8]) -> Vec<u32> {
    let n = read_u64(bytes) as usize;
    take(bytes, n * 4).chunks_exact(4).map(|c| u32::from_le_bytes([c[0], c[1], c[2], c[3]])).collect()
}

fn write_col<T: WireTime>(col: &Col<T>, out: &mut Vec<u8>) {
    match col {
        Col::Same(v, _) => {
            out.push(0);
            v.iter().for_each(|v| v.write(out));
        }
        Col::Many(v) => {
            out.push(1);
            v.iter().for_each(|v| v.write(out));
        }
    }
}

fn read_col<T: WireTime>(bytes: &mut &[u8], n: usize) -> Col<T> {
    match take(bytes, 1)[0] {
        0 if n == 0 => Col::default(),
        0 => Col::same(T::read(bytes), n),
        _ => Col::Many((0..n).map(|_| T::read(bytes)).collect()),
    }
}

impl<T: WireTime, R: WireTime> Body<T, R> {
    pub fn write(&self, out: &mut Vec<u8>) {
        (self.len() as u64).write(out);
        out.push(u8::from(self.no_vals));
        (self.lanes.len() as u64).write(out);
        self.lanes.iter().for_each(|l| l.write(out));
        write_slab(&self.keys, out);
        write_u32s(&self.key_ends, out);
        if !self.no_vals {
            write_slab(&self.vals, out);
        }
        write_col(&self.times, out);
        write_col(&self.diffs, out);
    }
    pub fn read(bytes: &mut &[u8]) -> Body<T, R> {
        let n = read_u64(bytes) as usize;
        let no_vals = take(bytes, 1)[0] != 0;
        let keys = read_u64(bytes) as usize;
        let lanes = (0..keys).map(|_| read_u64(bytes)).collect();
        let keys = read_slab(bytes);
        let key_ends = read_u32s(bytes);
        let vals = if no_vals { Slab::default() } else { read_slab(bytes) };
        let times = read_col(bytes, n);
        let diffs = read_col(bytes, n);
        Body { lanes, keys, key_ends, vals, no_vals, times, diffs }
    }
}

impl<T: WireTime, R: WireTime> ContainerBytes for Block<T, R> {
    fn from_bytes(bytes: timely::bytes::arc::Bytes) -> Self {
        Block(Body::read(&mut &bytes[..]))
    }
    fn length_in_bytes(&self) -> usize {
        let mut out = Vec::new();
        self.0.write(&mut out);
        out.len().next_multiple_of(8)
    }
    fn into_bytes<W: Write>(&self, writer: &mut W) {
        let mut out = Vec::new();
        self.0.write(&mut out);
        out.resize(out.len().next_multiple_of(8), 0);
        writer.write_all(&out).expect("the channel's buffer was sized by length_in_bytes");
    }
}
