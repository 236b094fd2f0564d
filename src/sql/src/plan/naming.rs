//! Names that are made for what is given none.

use repr::RelDesc;

/// The name that Postgres gives to what is given none: `first_second_label`, numbered until it is free, the longer of the two words cut
/// where the whole would be more than 63 bytes.
pub fn object_name(first: &str, second: Option<&str>, label: &str, taken: &dyn Fn(&str) -> bool) -> String {
    const BYTES_MAX: usize = 63;
    let made = |label: &str| {
        let room = BYTES_MAX.saturating_sub(label.len() + 1 + usize::from(second.is_some()));
        let (mut a, mut b) = (first.len(), second.map_or(0, str::len));
        while a + b > room {
            if a > b {
                a -= 1
            } else {
                b -= 1
            }
        }
        let cut = |s: &str, n: usize| s[..(0..=n).rev().find(|n| s.is_char_boundary(*n)).unwrap_or(0)].to_owned();
        let words: Vec<String> = [Some(cut(first, a)), second.map(|s| cut(s, b)), Some(label.to_owned())].into_iter().flatten().collect();
        words.join("_")
    };
    let numbered = (1..).map(|n| format!("{label}{n}"));
    std::iter::once(label.to_owned()).chain(numbered).map(|l| made(&l)).find(|n| !taken(n)).unwrap_or_default()
}

/// The name of a key that is given none. `columns`: with those that it includes.
pub fn key_name(table: &str, columns: &[usize], primary: bool, desc: &RelDesc, taken: &dyn Fn(&str) -> bool) -> String {
    if primary {
        return object_name(table, None, "pkey", taken);
    }
    let words = columns.iter().map(|c| desc.names[*c].clone()).collect();
    object_name(table, Some(&distinct_words(words).join("_")), "key", taken)
}

/// What an index calls its columns: a name that comes again is numbered.
pub fn distinct_words(words: Vec<String>) -> Vec<String> {
    let mut out: Vec<String> = Vec::with_capacity(words.len());
    for word in words {
        let free = (1..).map(|k| format!("{word}{k}")).find(|w| !out.contains(w)).filter(|_| out.contains(&word));
        out.push(free.unwrap_or(word));
    }
    out
}
