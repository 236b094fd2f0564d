//! `random()` after `setseed`: the same numbers as PostgreSQL 15 gives (xoroshiro128**, seeded through splitmix64).

use std::sync::Mutex;

/// A session's generator. Whoever draws next gets the next number, so only one that draws alone gets a known sequence.
pub struct Random(Mutex<[u64; 2]>);

impl Random {
    /// `setseed(seed)`, with a seed from -1 to 1.
    pub fn seeded(seed: f64) -> Random {
        let mut state = (((1u64 << 52) - 1) as f64 * seed) as i64 as u64;
        let mut next = || {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let z = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            z ^ (z >> 31)
        };
        Random(Mutex::new([next(), next()]))
    }

    /// The next number, at least 0 and below 1.
    pub fn draw(&self) -> f64 {
        let mut s = self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let [s0, s1] = *s;
        let drawn = s0.wrapping_mul(5).rotate_left(7).wrapping_mul(9);
        let x = s1 ^ s0;
        *s = [s0.rotate_left(24) ^ x ^ (x << 16), x.rotate_left(37)];
        (drawn >> 12) as f64 / (1u64 << 52) as f64
    }
}
