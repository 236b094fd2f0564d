//! Hardware addresses (`macaddr`, `macaddr8`): six or eight bytes.
//!
//! Not here: text form (`repr`), comparison (`cmp`: byte by byte).

use super::lift::Bytes;
use super::Entry;
use crate::{f1, f2};
use repr::error::state;
use repr::SqlError;

fn zip(a: &[u8], b: &[u8], f: fn(u8, u8) -> u8) -> Vec<u8> {
    a.iter().zip(b).map(|(x, y)| f(*x, *y)).collect()
}

/// The manufacturer's part, the rest zero.
fn trunc(a: &[u8]) -> Vec<u8> {
    a.iter().enumerate().map(|(i, b)| if i < 3 { *b } else { 0 }).collect()
}

fn shorten(a: &[u8]) -> Result<Vec<u8>, SqlError> {
    if a.get(3..5) != Some(&[0xff, 0xfe]) {
        let hint = "Only addresses that have FF and FE as values in the 4th and 5th bytes from the left, for example xx:xx:xx:ff:fe:xx:xx:xx, are eligible to be converted from macaddr8 to macaddr.";
        return Err(SqlError::new(state::NUMERIC_VALUE_OUT_OF_RANGE, "macaddr8 data out of range to convert to macaddr").with_hint(hint));
    }
    Ok([&a[..3], &a[5..]].concat())
}

pub const FUNCS: &[Entry] = &[
    f1!(["macaddr_not", "macaddr8_not"], Bytes => Vec<u8>, |a| a.iter().map(|b| !b).collect()),
    f2!(["macaddr_and", "macaddr8_and"], Bytes, Bytes => Vec<u8>, |a, b| zip(a, b, |x, y| x & y)),
    f2!(["macaddr_or", "macaddr8_or"], Bytes, Bytes => Vec<u8>, |a, b| zip(a, b, |x, y| x | y)),
    f1!(["macaddr_trunc", "macaddr8_trunc"], Bytes => Vec<u8>, trunc),
    f1!(["macaddrtomacaddr8"], Bytes => Vec<u8>, |a| [&a[..a.len().min(3)], &[0xff, 0xfe], &a[a.len().min(3)..]].concat()),
    f1!(? ["macaddr8tomacaddr"], Bytes => Vec<u8>, shorten),
    f1!(["macaddr8_set7bit"], Bytes => Vec<u8>, |a| a.iter().enumerate().map(|(i, b)| if i == 0 { b | 2 } else { *b }).collect()),
];
