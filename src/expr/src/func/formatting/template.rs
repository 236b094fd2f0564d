//! Date templates, cut into fields and text.

/// What a template consists of.
#[derive(Clone, Debug, PartialEq)]
pub enum Node {
    Field {
        key: &'static str,
        /// `FM`: no padding.
        fill: bool,
        /// `TM`: names as they are, without padding.
        translate: bool,
        /// `TH` or `th` behind a number: `Some(true)` in capitals.
        ordinal: Option<bool>,
    },
    /// A blank.
    Space(char),
    /// Punctuation.
    Separator(char),
    Char(char),
}

/// Fields in the order in which they are tried: longer ones first. Capitals count, since names are printed as the field is spelled.
const KEYS: &[&str] = &[
    "A.D.", "A.M.", "AD", "AM", "B.C.", "BC", "CC", "DAY", "DDD", "DD", "DY", "Day", "Dy", "D", "FF1", "FF2", "FF3", "FF4", "FF5", "FF6", "FX", "HH24", "HH12",
    "HH", "IDDD", "ID", "IW", "IYYY", "IYY", "IY", "I", "J", "MI", "MM", "MONTH", "MON", "MS", "Month", "Mon", "OF", "P.M.", "PM", "Q", "RM", "SSSSS", "SSSS",
    "SS", "TZH", "TZM", "TZ", "US", "WW", "W", "Y,YYY", "YYYY", "YYY", "YY", "Y", "a.d.", "a.m.", "ad", "am", "b.c.", "bc", "cc", "day", "ddd", "dd", "dy",
    "d", "ff1", "ff2", "ff3", "ff4", "ff5", "ff6", "fx", "hh24", "hh12", "hh", "iddd", "id", "iw", "iyyy", "iyy", "iy", "i", "j", "mi", "mm", "month", "mon",
    "ms", "of", "p.m.", "pm", "q", "rm", "sssss", "ssss", "ss", "tzh", "tzm", "tz", "us", "ww", "w", "y,yyy", "yyyy", "yyy", "yy", "y",
];

pub fn split(template: &str) -> Vec<Node> {
    split_with(template, |_| ())
}

/// [`split`], with each character that is neither in a field nor in quotes told to `loose`.
pub fn split_with(template: &str, mut loose: impl FnMut(char)) -> Vec<Node> {
    let mut out = Vec::new();
    let mut rest = template;
    while !rest.is_empty() {
        let (mut fill, mut translate) = (false, false);
        if rest.starts_with("FM") || rest.starts_with("fm") {
            fill = true;
            rest = &rest[2..];
        } else if rest.starts_with("TM") || rest.starts_with("tm") {
            translate = true;
            rest = &rest[2..];
        }
        if let Some(key) = KEYS.iter().find(|k| rest.starts_with(**k)) {
            rest = &rest[key.len()..];
            let mut ordinal = None;
            if let Some(r) = rest.strip_prefix("TH") {
                (ordinal, rest) = (Some(true), r);
            } else if let Some(r) = rest.strip_prefix("th") {
                (ordinal, rest) = (Some(false), r);
            } else if let Some(r) = rest.strip_prefix("SP") {
                rest = r;
            }
            out.push(Node::Field { key, fill, translate, ordinal });
            continue;
        }
        let Some(c) = rest.chars().next() else { break };
        if c == '"' {
            // Quoted text, in which a backslash takes the next character as it is.
            let mut chars = rest[1..].char_indices();
            let mut end = rest.len();
            while let Some((i, c)) = chars.next() {
                match c {
                    '"' => {
                        end = 1 + i + 1;
                        break;
                    }
                    '\\' => out.extend(chars.next().map(|(_, c)| Node::Char(c))),
                    c => out.push(Node::Char(c)),
                }
            }
            rest = &rest[end..];
            continue;
        }
        loose(c);
        let c = if c == '\\' && rest[1..].starts_with('"') { '"' } else { c };
        rest = &rest[if c == '"' { 2 } else { c.len_utf8() }..];
        out.push(match c {
            c if c.is_ascii_whitespace() => Node::Space(c),
            c if c.is_ascii_punctuation() => Node::Separator(c),
            c => Node::Char(c),
        });
    }
    out
}

/// `st`, `nd`, `rd` or `th` for a number's digits.
pub fn ordinal(digits: &str, upper: bool) -> &'static str {
    let d = digits.as_bytes();
    let last = d.last().copied().unwrap_or(b'0');
    let teen = d.len() > 1 && d[d.len() - 2] == b'1';
    match (last, teen, upper) {
        (b'1', false, true) => "ST",
        (b'1', false, false) => "st",
        (b'2', false, true) => "ND",
        (b'2', false, false) => "nd",
        (b'3', false, true) => "RD",
        (b'3', false, false) => "rd",
        (_, _, true) => "TH",
        (_, _, false) => "th",
    }
}

pub const MONTHS: [&str; 12] = ["January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December"];
pub const DAYS: [&str; 7] = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
/// Months in Roman numerals.
pub const ROMAN: [&str; 12] = ["I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX", "X", "XI", "XII"];
