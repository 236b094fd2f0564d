//! Keys with a sum each, in the order in which they first came.
//!
//! ```text
//!   add k1 +1, k2 +1, k1 -1      bytes  k1 k2      entries  (k1, 0) (k2, +1)      index  hash ──► number of the entry
//! ```
//!
//! A key costs its bytes and some 25 more. Keys are never taken out: a sum may come to be 0.

use crate::ids::Diff;
use hashbrown::HashTable;
use std::hash::BuildHasher;

struct Entry {
    /// Where its key ends; it begins where the one before ends.
    end: usize,
    sum: Diff,
}

/// See the module.
#[derive(Default)]
pub struct Tally {
    hasher: foldhash::fast::RandomState,
    index: HashTable<u32>,
    bytes: Vec<u8>,
    entries: Vec<Entry>,
}

fn key<'a>(bytes: &'a [u8], entries: &[Entry], number: usize) -> &'a [u8] {
    let start = number.checked_sub(1).map_or(0, |before| entries[before].end);
    &bytes[start..entries[number].end]
}

impl Tally {
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Makes room for as many keys more.
    pub fn reserve(&mut self, keys: usize) {
        let Tally { hasher, index, bytes, entries } = self;
        entries.reserve(keys);
        index.reserve(keys, |n| hasher.hash_one(key(bytes, entries, *n as usize)));
    }

    /// Adds to the sum of a key. Answers with the number of its entry.
    ///
    /// Panics: beyond 2^32 keys, which take 128 GB.
    pub fn add(&mut self, k: &[u8], diff: Diff) -> usize {
        let Tally { hasher, index, bytes, entries } = self;
        let same = |n: &u32| key(bytes, entries, *n as usize) == k;
        match index.entry(hasher.hash_one(k), same, |n| hasher.hash_one(key(bytes, entries, *n as usize))) {
            hashbrown::hash_table::Entry::Occupied(found) => {
                let number = *found.get() as usize;
                entries[number].sum += diff;
                number
            }
            hashbrown::hash_table::Entry::Vacant(free) => {
                let number = entries.len();
                free.insert(u32::try_from(number).expect("fewer keys than 2^32"));
                bytes.extend_from_slice(k);
                entries.push(Entry { end: bytes.len(), sum: diff });
                number
            }
        }
    }

    /// The key and the sum of an entry.
    pub fn entry(&self, number: usize) -> (&[u8], Diff) {
        (key(&self.bytes, &self.entries, number), self.entries[number].sum)
    }

    /// The sum of a key; 0 for one that never came.
    pub fn sum(&self, k: &[u8]) -> Diff {
        let found = self.index.find(self.hasher.hash_one(k), |n| key(&self.bytes, &self.entries, *n as usize) == k);
        found.map_or(0, |n| self.entries[*n as usize].sum)
    }

    pub fn iter(&self) -> impl Iterator<Item = (&[u8], Diff)> {
        (0..self.len()).map(|n| self.entry(n))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_by_key_in_the_order_of_first_coming() {
        let mut t = Tally::default();
        t.reserve(10);
        assert!(t.is_empty() && t.sum(b"") == 0);
        // Many, so that the index grows; with an empty key and keys that begin alike.
        let keys: Vec<Vec<u8>> = (0..1000u32).map(|i| i.to_be_bytes()[4 - (i % 5) as usize..].to_vec()).collect();
        let mut want: Vec<(Vec<u8>, i64)> = Vec::new();
        for (i, k) in keys.iter().chain(&keys).enumerate() {
            let diff = i as i64 % 7 - 3;
            let number = t.add(k, diff);
            match want.iter_mut().position(|w| w.0 == *k) {
                Some(at) => {
                    assert_eq!(number, at);
                    want[at].1 += diff;
                }
                None => want.push((k.clone(), diff)),
            }
        }
        assert_eq!(t.iter().map(|(k, n)| (k.to_vec(), n)).collect::<Vec<_>>(), want);
        assert!(want.iter().all(|(k, n)| t.sum(k) == *n));
        assert_eq!(t.sum(b"another"), 0);
    }
}
