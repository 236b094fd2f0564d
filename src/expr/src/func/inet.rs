//! Addresses and networks (inet, cidr).
//!
//! An address is handled as an integer of its family's width. Not here: comparison (`cmp`), text forms (`repr`).

use super::Entry;
use crate::{f1, f2};
use repr::error::state;
use repr::value::InetValue;
use repr::SqlError;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

fn width(i: &InetValue) -> u8 {
    if i.addr.is_ipv4() {
        32
    } else {
        128
    }
}

fn number(i: &InetValue) -> u128 {
    match i.addr {
        IpAddr::V4(a) => u32::from(a).into(),
        IpAddr::V6(a) => a.into(),
    }
}

/// An address of the family of `like`.
fn address(like: &InetValue, n: u128, bits: u8) -> InetValue {
    let addr = match like.addr {
        IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::from(n as u32)),
        IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::from(n)),
    };
    InetValue { addr, bits }
}

/// The bits of the host part, set.
fn host_bits(i: &InetValue) -> u128 {
    let rest = width(i) - i.bits;
    if rest >= 128 {
        u128::MAX
    } else {
        (1u128 << rest) - 1
    }
}

fn all_bits(i: &InetValue) -> u128 {
    if width(i) == 32 {
        u32::MAX.into()
    } else {
        u128::MAX
    }
}

fn network(i: InetValue) -> InetValue {
    address(&i, number(&i) & !host_bits(&i), i.bits)
}

/// Whether `a`'s network holds `b`'s; strictly: is larger.
fn holds(a: &InetValue, b: &InetValue, strictly: bool) -> bool {
    a.addr.is_ipv4() == b.addr.is_ipv4() && (if strictly { a.bits < b.bits } else { a.bits <= b.bits }) && {
        let mask = !host_bits(a);
        number(a) & mask == number(b) & mask
    }
}

fn same_family(a: &InetValue, b: &InetValue, what: &str) -> Result<(), SqlError> {
    if a.addr.is_ipv4() == b.addr.is_ipv4() {
        return Ok(());
    }
    Err(SqlError::new(state::INVALID_PARAMETER_VALUE, format!("cannot {what} inet values of different sizes")))
}

fn out_of_range() -> SqlError {
    SqlError::new(state::NUMERIC_VALUE_OUT_OF_RANGE, "result is out of range")
}

fn shift(i: InetValue, by: i64) -> Result<InetValue, SqlError> {
    let n = number(&i);
    let r = if by >= 0 { n.checked_add(by.unsigned_abs().into()) } else { n.checked_sub(by.unsigned_abs().into()) };
    r.filter(|r| *r <= all_bits(&i)).map(|r| address(&i, r, i.bits)).ok_or_else(out_of_range)
}

fn set_masklen(i: InetValue, bits: i32) -> Result<InetValue, SqlError> {
    let bits = if bits == -1 { i32::from(width(&i)) } else { bits };
    if bits < 0 || bits > i32::from(width(&i)) {
        return Err(SqlError::new(state::INVALID_PARAMETER_VALUE, format!("invalid mask length: {bits}")));
    }
    Ok(InetValue { bits: bits as u8, ..i })
}

fn merge(a: InetValue, b: InetValue) -> Result<InetValue, SqlError> {
    if a.addr.is_ipv4() != b.addr.is_ipv4() {
        return Err(SqlError::new(state::INVALID_PARAMETER_VALUE, "cannot merge addresses from different families"));
    }
    let diff = number(&a) ^ number(&b);
    let common = (diff.leading_zeros() as u8).saturating_sub(128 - width(&a)).min(width(&a));
    Ok(network(InetValue { bits: common.min(a.bits).min(b.bits), ..a }))
}

fn host(i: InetValue) -> String {
    let mut out = String::new();
    repr::text::print_inet(&InetValue { bits: width(&i), ..i }, false, &mut out);
    out
}

/// An address with its prefix length, always.
pub fn show(i: InetValue) -> String {
    let mut out = String::new();
    repr::text::print_inet(&i, true, &mut out);
    out
}

fn abbrev_cidr(i: InetValue) -> String {
    match i.addr {
        // Whole bytes of the host part are left out.
        IpAddr::V4(a) => {
            let bytes = usize::from(i.bits).div_ceil(8);
            let shown: Vec<String> = a.octets()[..bytes.max(1)].iter().map(u8::to_string).collect();
            format!("{}/{}", shown.join("."), i.bits)
        }
        IpAddr::V6(_) => show(i),
    }
}

type I = InetValue;

pub const FUNCS: &[Entry] = &[
    f1!(["network_host"], I => String, host),
    f1!(["network_show"], I => String, show),
    f1!(["network_masklen"], I => i32, |i| i.bits.into()),
    f1!(["network_family"], I => i32, |i| if i.addr.is_ipv4() { 4 } else { 6 }),
    f1!(["network_network", "inet_to_cidr"], I => I, network),
    f1!(["network_broadcast"], I => I, |i| address(&i, number(&i) | host_bits(&i), i.bits)),
    f1!(["network_netmask"], I => I, |i| address(&i, all_bits(&i) & !host_bits(&i), width(&i))),
    f1!(["network_hostmask"], I => I, |i| address(&i, host_bits(&i), width(&i))),
    f1!(["inet_abbrev"], I => String, |i| if i.bits == width(&i) { host(i) } else { show(i) }),
    f1!(["cidr_abbrev"], I => String, abbrev_cidr),
    f2!(["network_sub"], I, I => bool, |a, b| holds(&b, &a, true)),
    f2!(["network_subeq"], I, I => bool, |a, b| holds(&b, &a, false)),
    f2!(["network_sup"], I, I => bool, |a, b| holds(&a, &b, true)),
    f2!(["network_supeq"], I, I => bool, |a, b| holds(&a, &b, false)),
    f2!(["network_overlap"], I, I => bool, |a, b| holds(&a, &b, false) || holds(&b, &a, false)),
    f2!(["inet_same_family"], I, I => bool, |a, b| a.addr.is_ipv4() == b.addr.is_ipv4()),
    f2!(? ["inet_merge"], I, I => I, merge),
    f2!(? ["inet_set_masklen"], I, i32 => I, set_masklen),
    f2!(? ["cidr_set_masklen"], I, i32 => I, |i, n| set_masklen(i, n).map(network)),
    f1!(["inetnot"], I => I, |i| address(&i, number(&i) ^ all_bits(&i), i.bits)),
    f2!(? ["inetand"], I, I => I, |a, b| same_family(&a, &b, "AND").map(|()| address(&a, number(&a) & number(&b), a.bits.max(b.bits)))),
    f2!(? ["inetor"], I, I => I, |a, b| same_family(&a, &b, "OR").map(|()| address(&a, number(&a) | number(&b), a.bits.max(b.bits)))),
    f2!(? ["inetpl"], I, i64 => I, shift),
    f2!(? ["2631"], i64, I => I, |n, i| shift(i, n)),
    f2!(? ["inetmi_int8"], I, i64 => I, |i, n| n.checked_neg().ok_or_else(out_of_range).and_then(|n| shift(i, n))),
    f2!(? ["inetmi"], I, I => i64, |a, b| {
        same_family(&a, &b, "subtract")?;
        let (x, y) = (number(&a), number(&b));
        let (d, negative) = if x >= y { (x - y, false) } else { (y - x, true) };
        let d = i64::try_from(d).map_err(|_| out_of_range())?;
        Ok(if negative { -d } else { d })
    }),
];
