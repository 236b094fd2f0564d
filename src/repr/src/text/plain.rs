//! Text forms of money, hardware addresses, bit strings and transaction numbers.
//!
//! Money is shown as the "C" locale's Postgres shows it: `-$1,234.50`. Not here: numbers, text, dates (see the other files).

use crate::error::state;
use crate::SqlError;

/// The most bits of a `bit(n)`.
pub const BITS_MAX: usize = 83_886_080;

fn invalid(ty: &str, text: &str) -> SqlError {
    SqlError::new(state::INVALID_TEXT_REPRESENTATION, format!("invalid input syntax for type {ty}: \"{text}\""))
}

/// A transaction number as C's strtoul reads it: blanks, a sign, digits (hexadecimal, octal by prefix); what follows is ignored.
pub fn parse_xid(text: &str) -> u64 {
    let s = text.trim_start_matches(|c: char| c.is_ascii_whitespace() || c == '\u{b}');
    let (negative, s) = match s.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, s.strip_prefix('+').unwrap_or(s)),
    };
    let hex = s.strip_prefix("0x").or_else(|| s.strip_prefix("0X")).filter(|h| h.starts_with(|c: char| c.is_ascii_hexdigit()));
    let (radix, digits) = match hex {
        Some(h) => (16, h),
        None if s.starts_with('0') => (8, s),
        None => (10, s),
    };
    let value = digits.chars().map_while(|c| c.to_digit(radix)).try_fold(0u64, |v, d| v.checked_mul(radix.into())?.checked_add(d.into()));
    match value {
        Some(v) if negative => v.wrapping_neg(),
        Some(v) => v,
        None => u64::MAX,
    }
}

/// `(block,offset)`. Errors: 22P02.
pub fn parse_tid(text: &str) -> Result<u64, SqlError> {
    let inside = text.trim_ascii_start().strip_prefix('(').and_then(|t| t.split_once(')')).map(|t| t.0);
    let parts = inside.and_then(|t| t.split_once(',')).and_then(|(block, offset)| {
        let block = block.trim_ascii_start();
        // As an unsigned number of C's is read, one below zero counts from the other end.
        let block = block.parse::<u32>().ok().or_else(|| block.parse::<i32>().ok().map(|b| b as u32))?;
        Some((block, offset.trim_ascii_start().parse::<u16>().ok()?))
    });
    parts.map(|(block, offset)| u64::from(block) << 16 | u64::from(offset)).ok_or_else(|| invalid("tid", text))
}

/// `16/B374D848`: the high and the low word, in hexadecimal digits. Errors: 22P02.
pub fn parse_lsn(text: &str) -> Result<u64, SqlError> {
    let word = |s: &str| (s.len() <= 8 && s.bytes().all(|b| b.is_ascii_hexdigit())).then(|| u64::from_str_radix(s, 16).ok()).flatten();
    let parts = text.split_once('/').and_then(|(high, low)| Some((word(high)?, word(low)?)));
    parts.map(|(high, low)| high << 32 | low).ok_or_else(|| invalid("pg_lsn", text))
}

pub fn print_lsn(lsn: u64, out: &mut String) {
    out.push_str(&format!("{:X}/{:X}", lsn >> 32, lsn & 0xffff_ffff));
}

pub fn print_money(cents: i64, out: &mut String) {
    let n = cents.unsigned_abs();
    let whole = (n / 100).to_string();
    out.push_str(if cents < 0 { "-$" } else { "$" });
    for (i, c) in whole.chars().enumerate() {
        if i > 0 && (whole.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(c);
    }
    out.push_str(&format!(".{:02}", n % 100));
}

/// An amount: `$1,234.50`, `-1`, `(5.00)`; rounded to cents. Errors: 22P02, 22003.
pub fn parse_money(text: &str) -> Result<i64, SqlError> {
    let range = || SqlError::new(state::NUMERIC_VALUE_OUT_OF_RANGE, format!("value \"{text}\" is out of range for type money"));
    let blank = |c: char| c.is_ascii_whitespace() || c == '\u{b}';
    let mut s = text.trim_start_matches(blank);
    s = s.strip_prefix('$').unwrap_or(s).trim_start_matches(blank);
    let mut negative = false;
    if let Some(rest) = s.strip_prefix('-').or_else(|| s.strip_prefix('(')) {
        (negative, s) = (true, rest);
    } else {
        s = s.strip_prefix('+').unwrap_or(s);
    }
    s = s.trim_start_matches(blank);
    s = s.strip_prefix('$').unwrap_or(s).trim_start_matches(blank);
    // Kept below zero, where there is one number more.
    let (mut value, mut decimals, mut seen_dot) = (0i64, 0, false);
    let step = |v: i64, d: i64| v.checked_mul(10).and_then(|v| v.checked_sub(d));
    while let Some(c) = s.chars().next() {
        match c.to_digit(10) {
            Some(d) if !seen_dot || decimals < 2 => {
                value = step(value, d.into()).ok_or_else(range)?;
                decimals += i32::from(seen_dot);
            }
            None if c == '.' && !seen_dot => seen_dot = true,
            None if c == ',' => {}
            _ => break,
        }
        s = &s[c.len_utf8()..];
    }
    if s.starts_with(|c: char| ('5'..='9').contains(&c)) {
        value = value.checked_sub(1).ok_or_else(range)?;
    }
    for _ in decimals..2 {
        value = step(value, 0).ok_or_else(range)?;
    }
    s = s.trim_start_matches(|c: char| c.is_ascii_digit());
    for c in s.chars() {
        match c {
            '-' => negative = true,
            '+' | '$' | ')' => {}
            c if blank(c) => {}
            _ => return Err(invalid("money", text)),
        }
    }
    if negative {
        return Ok(value);
    }
    value.checked_neg().ok_or_else(range)
}

pub fn print_mac(bytes: &[u8], out: &mut String) {
    for (i, b) in bytes.iter().enumerate() {
        if i > 0 {
            out.push(':');
        }
        out.push_str(&format!("{b:02x}"));
    }
}

/// `08:00:2b:01:02:03`, `08-00-…`, `08002b:010203`, `08002b-010203`, `0800.2b01.0203`, `0800-2b01-0203`, `08002b010203`. Errors: 22P02.
pub fn parse_mac(text: &str) -> Result<[u8; 6], SqlError> {
    let s = text.trim_matches(|c: char| c.is_ascii_whitespace());
    let err = || invalid("macaddr", text);
    let mut out = [0; 6];
    for sep in [':', '-'] {
        let parts: Vec<&str> = s.split(sep).collect();
        if parts.len() != 6 {
            continue;
        }
        for (o, p) in out.iter_mut().zip(parts) {
            let n = u32::from_str_radix(p, 16).map_err(|_| err())?;
            *o = u8::try_from(n)
                .map_err(|_| SqlError::new(state::NUMERIC_VALUE_OUT_OF_RANGE, format!("invalid octet value in \"macaddr\" value: \"{text}\"")))?;
        }
        return Ok(out);
    }
    let widths: &[usize] = match (s.matches([':', '-']).count(), s.matches('.').count()) {
        (0, 0) => &[12],
        (1, 0) => &[6, 6],
        (2, 0) | (0, 2) => &[4, 4, 4],
        _ => return Err(err()),
    };
    let parts: Vec<&str> = s.split([':', '-', '.']).collect();
    if parts.iter().zip(widths).any(|(p, w)| p.len() != *w || !p.bytes().all(|b| b.is_ascii_hexdigit())) || s.matches(':').count() == 2 {
        return Err(err());
    }
    let digits = parts.concat();
    for (i, o) in out.iter_mut().enumerate() {
        *o = u8::from_str_radix(&digits[2 * i..2 * i + 2], 16).map_err(|_| err())?;
    }
    Ok(out)
}

/// Six or eight pairs of digits, with one kind of separator between some of them; six get `ff:fe` in the middle. Errors: 22P02.
pub fn parse_mac8(text: &str) -> Result<[u8; 8], SqlError> {
    let err = || invalid("macaddr8", text);
    let mut bytes = Vec::new();
    let mut separator = None;
    let mut s = text.trim_matches(|c: char| c.is_ascii_whitespace()).as_bytes();
    while !s.is_empty() {
        let pair = s.get(..2).and_then(|p| std::str::from_utf8(p).ok()).filter(|p| p.bytes().all(|b| b.is_ascii_hexdigit())).ok_or_else(err)?;
        bytes.push(u8::from_str_radix(pair, 16).map_err(|_| err())?);
        s = &s[2..];
        if let Some(c @ (b':' | b'-' | b'.')) = s.first().copied() {
            if *separator.get_or_insert(c) != c || bytes.len() == 8 {
                return Err(err());
            }
            s = &s[1..];
        }
    }
    match bytes[..] {
        [a, b, c, d, e, f] => Ok([a, b, c, 0xff, 0xfe, d, e, f]),
        [a, b, c, d, e, f, g, h] => Ok([a, b, c, d, e, f, g, h]),
        _ => Err(err()),
    }
}

/// The digits of `101`, `b101` or `x1F`. Errors: 22P02.
pub fn parse_bits(text: &str) -> Result<String, SqlError> {
    let bad = |c: char, what: &str| SqlError::new(state::INVALID_TEXT_REPRESENTATION, format!("\"{c}\" is not a valid {what} digit"));
    if let Some(hex) = text.strip_prefix(['x', 'X']) {
        return hex.chars().map(|c| c.to_digit(16).map(|d| format!("{d:04b}")).ok_or_else(|| bad(c, "hexadecimal"))).collect();
    }
    let digits = text.strip_prefix(['b', 'B']).unwrap_or(text);
    match digits.chars().find(|c| !matches!(c, '0' | '1')) {
        Some(c) => Err(bad(c, "binary")),
        None => Ok(digits.to_owned()),
    }
}

/// Applies the length of `bit(n)` (`exact`) or `bit varying(n)`; an explicit cast cuts and pads on the right. Errors: 22026, 22001.
pub fn fit_bits(mut bits: String, n: i32, explicit: bool, exact: bool) -> Result<String, SqlError> {
    let n = usize::try_from(n).unwrap_or(0).min(BITS_MAX);
    if n == 0 || bits.len() == n || (!exact && bits.len() < n) {
        return Ok(bits);
    }
    if explicit {
        bits.truncate(n);
        bits.extend(std::iter::repeat_n('0', n - bits.len()));
        return Ok(bits);
    }
    Err(if exact {
        SqlError::new(state::STRING_DATA_LENGTH_MISMATCH, format!("bit string length {} does not match type bit({n})", bits.len()))
    } else {
        SqlError::new(state::STRING_DATA_RIGHT_TRUNCATION, format!("bit string too long for type bit varying({n})"))
    })
}

/// Bits packed eight to a byte, the first highest: how they stand on the wire.
pub fn pack_bits(bits: &str) -> Vec<u8> {
    bits.as_bytes().chunks(8).map(|c| c.iter().enumerate().fold(0, |byte, (i, b)| byte | (b & 1) << (7 - i))).collect()
}

/// `n` bits from packed bytes.
pub fn unpack_bits(bytes: &[u8], n: usize) -> String {
    (0..n).map(|i| if bytes.get(i / 8).is_some_and(|b| b >> (7 - i % 8) & 1 == 1) { '1' } else { '0' }).collect()
}
