//! `to_char` and `to_number` of numbers.
//!
//! A template is described first ([`Shape`]: digits before and after the point, where the sign goes), then walked once: each field takes
//! the next character of the number's text, or a blank where the number is shorter. A number that does not fit shows `#`.

use repr::error::state;
use repr::{Numeric, SqlError};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Key {
    Comma,
    Dot,
    Zero,
    Nine,
    Group,
    Point,
    Exponent,
    Fill,
    Currency,
    Minus,
    Plus,
    Bracket,
    Roman(bool),
    SignBoth,
    Sign,
    Ordinal(bool),
    Multiply,
    Blank,
}

enum Node {
    Field(Key),
    Char(char),
}

const KEYS: &[(&str, Key)] = &[
    ("EEEE", Key::Exponent),
    ("PR", Key::Bracket),
    ("PL", Key::Plus),
    ("MI", Key::Minus),
    ("FM", Key::Fill),
    ("RN", Key::Roman(true)),
    ("SG", Key::SignBoth),
    ("TH", Key::Ordinal(true)),
    (",", Key::Comma),
    (".", Key::Dot),
    ("0", Key::Zero),
    ("9", Key::Nine),
    ("B", Key::Blank),
    ("C", Key::Blank),
    ("D", Key::Point),
    ("G", Key::Group),
    ("L", Key::Currency),
    ("S", Key::Sign),
    ("V", Key::Multiply),
];

fn split(template: &str) -> Vec<Node> {
    let mut out = Vec::new();
    let mut rest = template;
    while let Some(c) = rest.chars().next() {
        if c == '"' {
            let mut chars = rest[1..].char_indices();
            let mut end = rest.len();
            while let Some((i, c)) = chars.next() {
                match c {
                    '"' => {
                        end = i + 2;
                        break;
                    }
                    '\\' => out.extend(chars.next().map(|(_, c)| Node::Char(c))),
                    c => out.push(Node::Char(c)),
                }
            }
            rest = &rest[end..];
            continue;
        }
        let hit = KEYS.iter().find(|(k, _)| rest.starts_with(k) || rest.starts_with(k.to_ascii_lowercase().as_str()));
        match hit {
            Some((k, key)) => {
                // The spelling decides the case of Roman numerals and suffixes.
                let upper = rest.starts_with(k);
                out.push(Node::Field(match key {
                    Key::Roman(_) => Key::Roman(upper),
                    Key::Ordinal(_) => Key::Ordinal(upper),
                    k => *k,
                }));
                rest = &rest[k.len()..];
            }
            None if c == '\\' && rest[1..].starts_with('"') => {
                out.push(Node::Char('"'));
                rest = &rest[2..];
            }
            None => {
                out.push(Node::Char(c));
                rest = &rest[c.len_utf8()..];
            }
        }
    }
    out
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum SignPlace {
    Before,
    After,
}

#[derive(Clone, Debug, Default)]
struct Shape {
    before: i32,
    after: i32,
    sign: Option<SignPlace>,
    /// Digits that stand before `S`.
    sign_at: i32,
    multiply: i32,
    zero_start: i32,
    zero_end: i32,
    zero: bool,
    decimal: bool,
    fill: bool,
    minus: bool,
    plus: bool,
    bracket: bool,
    roman: bool,
    is_multiply: bool,
    exponent: bool,
    blank: bool,
}

fn syntax(m: &str) -> SqlError {
    SqlError::new(state::SYNTAX_ERROR, m)
}

fn shape(nodes: &[Node]) -> Result<Shape, SqlError> {
    let mut s = Shape::default();
    for n in nodes {
        let Node::Field(key) = n else { continue };
        if s.exponent && *key != Key::Exponent {
            return Err(syntax("\"EEEE\" must be the last pattern used"));
        }
        let sign_clash = || syntax("cannot use \"S\" and \"PL\"/\"MI\"/\"SG\"/\"PR\" together");
        match key {
            Key::Nine => {
                if s.bracket {
                    return Err(syntax("\"9\" must be ahead of \"PR\""));
                }
                if s.is_multiply {
                    s.multiply += 1;
                } else if s.decimal {
                    s.after += 1;
                } else {
                    s.before += 1;
                }
            }
            Key::Zero => {
                if s.bracket {
                    return Err(syntax("\"0\" must be ahead of \"PR\""));
                }
                if !s.zero && !s.decimal {
                    s.zero = true;
                    s.zero_start = s.before;
                }
                if s.decimal {
                    s.after += 1;
                } else {
                    s.before += 1;
                }
                s.zero_end = s.before + s.after;
            }
            Key::Blank => {
                if s.before == 0 && s.after == 0 && !s.zero {
                    s.blank = true;
                }
            }
            Key::Point | Key::Dot => {
                if s.decimal {
                    return Err(syntax("multiple decimal points"));
                }
                if s.is_multiply {
                    return Err(syntax("cannot use \"V\" and decimal point together"));
                }
                s.decimal = true;
            }
            Key::Fill => s.fill = true,
            Key::Sign => {
                if s.sign.is_some() {
                    return Err(syntax("cannot use \"S\" twice"));
                }
                if s.plus || s.minus || s.bracket {
                    return Err(sign_clash());
                }
                if s.decimal {
                    s.sign = Some(SignPlace::After);
                } else {
                    s.sign = Some(SignPlace::Before);
                    s.sign_at = s.before;
                }
            }
            Key::Minus | Key::Plus | Key::SignBoth => {
                if s.sign.is_some() {
                    return Err(match key {
                        Key::Minus => syntax("cannot use \"S\" and \"MI\" together"),
                        Key::Plus => syntax("cannot use \"S\" and \"PL\" together"),
                        _ => syntax("cannot use \"S\" and \"SG\" together"),
                    });
                }
                s.minus |= *key != Key::Plus;
                s.plus |= *key != Key::Minus;
            }
            Key::Bracket => {
                if s.sign.is_some() || s.plus || s.minus {
                    return Err(syntax("cannot use \"PR\" and \"S\"/\"PL\"/\"MI\"/\"SG\" together"));
                }
                s.bracket = true;
            }
            Key::Roman(_) => s.roman = true,
            Key::Multiply => {
                if s.decimal {
                    return Err(syntax("cannot use \"V\" and decimal point together"));
                }
                s.is_multiply = true;
            }
            Key::Exponent => {
                if s.exponent {
                    return Err(syntax("cannot use \"EEEE\" twice"));
                }
                if s.blank || s.fill || s.sign.is_some() || s.bracket || s.minus || s.plus || s.roman || s.is_multiply {
                    return Err(syntax("\"EEEE\" is incompatible with other formats")
                        .with_detail("\"EEEE\" may only be used together with digit and decimal point patterns."));
                }
                s.exponent = true;
            }
            Key::Comma | Key::Group | Key::Currency | Key::Ordinal(_) => {}
        }
    }
    Ok(s)
}

fn hashes(n: i32) -> String {
    "#".repeat(n.max(0) as usize)
}

fn roman(n: Option<i64>) -> String {
    const PARTS: &[(i64, &str)] = &[
        (1000, "M"),
        (900, "CM"),
        (500, "D"),
        (400, "CD"),
        (100, "C"),
        (90, "XC"),
        (50, "L"),
        (40, "XL"),
        (10, "X"),
        (9, "IX"),
        (5, "V"),
        (4, "IV"),
        (1, "I"),
    ];
    match n {
        Some(mut n) if (1..=3999).contains(&n) => {
            let mut out = String::new();
            for (v, s) in PARTS {
                while n >= *v {
                    out.push_str(s);
                    n -= v;
                }
            }
            out
        }
        _ => hashes(15),
    }
}

/// The number's digits without sign, fitted to the shape: how many blanks go in front.
fn fit(text: &str, s: &Shape) -> (char, String, i32) {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(d) => ('-', d),
        None => ('+', text),
    };
    let whole = digits.find('.').unwrap_or(digits.len()) as i32;
    if whole > s.before {
        let mut h = hashes(s.before + s.after + 1);
        let at = s.before as usize;
        h.replace_range(at..=at, ".");
        return (sign, h, 0);
    }
    (sign, digits.to_owned(), s.before - whole)
}

/// `1.5e+03` with a blank for the plus sign; special values are filled with `#`.
fn scientific(n: &Numeric, s: &Shape) -> String {
    if !n.is_finite() {
        let mut out = String::from(" ");
        out.push_str(&hashes(s.before));
        out.push('.');
        out.push_str(&hashes(s.after + 4));
        return out;
    }
    let digits = n.unscaled().magnitude().to_string();
    let zero = n.is_zero();
    let exponent = if zero { 0 } else { digits.len() as i32 - 1 - i32::from(n.scale()) };
    // One digit before the point, the others rounded away. What is rounded up to ten stays so, as in PostgreSQL: 9.99 is 10e+00.
    let shown = &digits[..digits.len().min(s.after.max(0) as usize + 2)];
    let leading = Numeric::parse(&format!("{}.{}", &shown[..1], &shown[1..])).unwrap_or(Numeric::NaN);
    let text = leading.round(s.after).to_string();
    let sign = if n.is_negative() { '-' } else { ' ' };
    format!("{sign}{text}e{}{:02}", if exponent < 0 { '-' } else { '+' }, exponent.abs())
}

pub fn numeric(n: &Numeric, template: &str) -> Result<String, SqlError> {
    let nodes = split(template);
    let mut s = shape(&nodes)?;
    if s.roman {
        return walk(&nodes, s, roman(Some(n.to_int::<i32>("integer")?.into())), '+', 0);
    }
    if s.exponent {
        return Ok(scientific(n, &s));
    }
    let mut v = n.clone();
    if s.is_multiply {
        v = n.mul(&power10(s.multiply))?;
        s.before += s.multiply;
    }
    let (sign, digits, blanks) = fit(&v.round(s.after).to_string(), &s);
    walk(&nodes, s, digits, sign, blanks)
}

fn power10(n: i32) -> Numeric {
    Numeric::parse(&format!("1e{n}")).unwrap_or(Numeric::NaN)
}

pub fn integer(n: i64, template: &str) -> Result<String, SqlError> {
    numeric(&Numeric::from(n), template)
}

/// As [`integer`]; with an exponent Postgres goes through a double, which rounds ties to even.
pub fn int4(n: i32, template: &str) -> Result<String, SqlError> {
    match shape(&split(template))?.exponent {
        true => float(n.into(), 15, template),
        false => integer(n.into(), template),
    }
}

/// `digits`: those a float of this width has.
pub fn float(v: f64, digits: i32, template: &str) -> Result<String, SqlError> {
    let nodes = split(template);
    let mut s = shape(&nodes)?;
    if s.roman {
        return walk(&nodes, s, roman(Some(v.round_ties_even() as i64)), '+', 0);
    }
    if s.exponent {
        if !v.is_finite() {
            return Ok(scientific(&Numeric::NaN, &s));
        }
        let text = format!("{:.*e}", s.after.max(0) as usize, v.abs());
        let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let exponent: i32 = exponent.parse().unwrap_or(0);
        let sign = if v.is_sign_negative() { '-' } else { ' ' };
        return Ok(format!("{sign}{mantissa}e{}{:02}", if exponent < 0 { '-' } else { '+' }, exponent.abs()));
    }
    let mut v = v;
    if s.is_multiply {
        v *= 10f64.powi(s.multiply);
        s.before += s.multiply;
    }
    let mut special = String::new();
    if !v.is_finite() {
        repr::text::print_f64(v, 1, &mut special);
    }
    // No more digits than the float has; the letters of `Infinity` count as such.
    let whole = if special.is_empty() { format!("{:.0}", v.abs()).len() } else { special.trim_start_matches('-').len() } as i32;
    if whole >= digits {
        s.after = 0;
    } else if whole + s.after > digits {
        s.after = digits - whole;
    }
    let text = if special.is_empty() { format!("{v:.*}", s.after.max(0) as usize) } else { special };
    let text = if text.trim_start_matches('-').bytes().all(|b| matches!(b, b'0' | b'.')) && v == 0.0 { text.trim_start_matches('-').to_owned() } else { text };
    let (sign, shown, blanks) = fit(&text, &s);
    walk(&nodes, s, shown, sign, blanks)
}

/// The state of one walk over a template.
struct Walk {
    s: Shape,
    number: Vec<u8>,
    /// The next character of the number.
    at: usize,
    sign: char,
    blanks: i32,
    sign_wrote: bool,
    /// Digits have begun, so that grouping shows.
    digits_begun: bool,
    field: i32,
    fields: i32,
    /// With `FM`: the last character of the fraction that counts (the point itself if none).
    last: Option<usize>,
    out: String,
}

impl Walk {
    fn byte(&self) -> u8 {
        self.number.get(self.at).copied().unwrap_or(0)
    }

    /// A lone 0 before the point that is not asked for.
    fn leading_zero(&self) -> bool {
        !self.s.zero && self.at == 0 && self.number.first() == Some(&b'0') && self.s.after != 0
    }

    fn last_is_point(&self) -> bool {
        self.last.is_some_and(|l| self.number[l] == b'.')
    }

    fn put_sign(&mut self) {
        let fill = self.s.fill;
        match self.s.sign {
            Some(SignPlace::Before) => {
                self.out.push(if self.sign == '-' { '-' } else { '+' });
                self.sign_wrote = true;
            }
            Some(SignPlace::After) => {}
            None if self.s.bracket => {
                self.out.push(if self.sign == '+' { ' ' } else { '<' });
                self.sign_wrote = true;
            }
            None if self.sign == '+' => {
                if !fill {
                    self.out.push(' ');
                }
                self.sign_wrote = true;
            }
            None => {
                self.out.push('-');
                self.sign_wrote = true;
            }
        }
    }

    /// A digit or the point.
    fn digit(&mut self, key: Key) {
        if self.s.roman {
            return;
        }
        self.digits_begun = false;
        let in_number = self.field >= self.blanks || (self.s.zero && self.s.zero_start == self.field);
        if !self.sign_wrote && in_number && (!self.leading_zero() || self.last_is_point()) {
            self.put_sign();
        }
        let fill = self.s.fill;
        if self.field < self.blanks && (self.s.zero_start > self.field || !self.s.zero) {
            if !fill {
                self.out.push(' ');
            }
        } else if self.s.zero && self.field < self.blanks && self.s.zero_start <= self.field {
            self.out.push('0');
            self.digits_begun = true;
        } else {
            let c = self.byte();
            if c == b'.' {
                if !self.last_is_point() || fill {
                    self.out.push('.');
                }
            } else if self.last.is_some_and(|l| self.at > l) && key != Key::Zero {
                // A zero at the end that FM cuts.
            } else if self.leading_zero() {
                if !fill {
                    self.out.push(' ');
                } else if self.last_is_point() {
                    self.out.push('0');
                }
            } else if c != 0 {
                self.out.push(c as char);
                self.digits_begun = true;
            } else {
                self.digits_begun = true;
            }
            if c != 0 {
                self.at += 1;
            }
        }
        let mut end = self.fields + i32::from(self.blanks > 0) + i32::from(self.s.decimal);
        if self.last == Some(self.at) {
            end = self.field;
        }
        if self.field + 1 == end {
            if self.sign_wrote && self.s.bracket {
                self.out.push(if self.sign == '+' { ' ' } else { '>' });
            } else if self.s.sign == Some(SignPlace::After) {
                self.out.push(if self.sign == '-' { '-' } else { '+' });
            }
        }
        self.field += 1;
    }
}

/// Errors: 22P02 for an ordinal of no digits.
fn walk(nodes: &[Node], mut s: Shape, number: String, sign: char, blanks: i32) -> Result<String, SqlError> {
    if s.roman {
        s = Shape { roman: true, fill: s.fill, ..Shape::default() };
    }
    let mut w = Walk {
        number: number.into_bytes(),
        at: 0,
        sign,
        blanks,
        sign_wrote: false,
        digits_begun: false,
        field: 0,
        fields: 0,
        last: None,
        out: String::new(),
        s,
    };
    if w.s.plus || w.s.minus {
        // The sign has a field of its own.
        w.sign_wrote = !w.s.plus || w.s.minus;
    } else {
        if w.sign != '-' && w.s.fill && w.s.bracket {
            w.s.bracket = false;
        }
        w.sign_wrote = w.sign == '+' && w.s.fill && w.s.sign.is_none();
        if w.s.sign == Some(SignPlace::Before) && w.s.before == w.s.sign_at {
            w.s.sign = Some(SignPlace::After);
        }
    }
    w.fields = w.s.after + w.s.before - 1;
    if w.s.fill && w.s.decimal {
        if let Some(p) = w.number.iter().position(|b| *b == b'.') {
            let mut last = w.number.iter().rposition(|b| *b != b'0').unwrap_or(p).max(p);
            // Digits that a 0 asks for stay.
            if w.s.zero_end > w.blanks {
                let zero = (w.number.len() as i32 - 1).min(w.s.zero_end - w.blanks);
                last = last.max(zero.max(0) as usize);
            }
            w.last = Some(last);
        }
    }
    if !w.sign_wrote && w.blanks == 0 {
        w.fields += 1;
    }
    for n in nodes {
        match n {
            Node::Char(c) => w.out.push(*c),
            Node::Field(key) => match key {
                Key::Nine | Key::Zero | Key::Dot | Key::Point => w.digit(*key),
                Key::Comma | Key::Group => match (w.digits_begun, w.s.fill) {
                    (true, _) => w.out.push(','),
                    (false, true) => {}
                    (false, false) => w.out.push(' '),
                },
                Key::Currency => w.out.push(' '),
                Key::Roman(upper) => {
                    let text = String::from_utf8_lossy(&w.number).into_owned();
                    let text = if *upper { text } else { text.to_lowercase() };
                    w.out.push_str(&if w.s.fill { text } else { format!("{text:>15}") });
                }
                Key::Ordinal(upper) => {
                    if !(w.s.roman || w.number.first() == Some(&b'#') || w.sign == '-' || w.s.decimal) {
                        let digits = String::from_utf8_lossy(&w.number).into_owned();
                        if !digits.ends_with(|c: char| c.is_ascii_digit()) {
                            return Err(SqlError::new(state::INVALID_TEXT_REPRESENTATION, format!("\"{digits}\" is not a number")));
                        }
                        w.out.push_str(super::template::ordinal(&digits, *upper));
                    }
                }
                Key::Minus => match (w.sign, w.s.fill) {
                    ('-', _) => w.out.push('-'),
                    (_, true) => {}
                    _ => w.out.push(' '),
                },
                Key::Plus => match (w.sign, w.s.fill) {
                    ('+', _) => w.out.push('+'),
                    (_, true) => {}
                    _ => w.out.push(' '),
                },
                Key::SignBoth => w.out.push(w.sign),
                Key::Fill | Key::Sign | Key::Bracket | Key::Multiply | Key::Blank | Key::Exponent => {}
            },
        }
    }
    Ok(w.out)
}

/// `to_number`; NULL for an empty template. Errors: 22P02 if no number comes of it.
pub fn parse(text: &str, template: &str) -> Result<Option<Numeric>, SqlError> {
    if template.is_empty() {
        return Ok(None);
    }
    let nodes = split(template);
    let s = shape(&nodes)?;
    if s.roman {
        return Err(SqlError::new(state::FEATURE_NOT_SUPPORTED, "\"RN\" not supported for input"));
    }
    if s.exponent {
        return Err(SqlError::new(state::FEATURE_NOT_SUPPORTED, "\"EEEE\" not supported for input"));
    }
    let mut rest = text;
    let mut negative = false;
    let (mut whole, mut fraction) = (String::new(), String::new());
    let mut point = false;
    let take = |rest: &mut &str| {
        let mut c = rest.chars();
        c.next();
        *rest = c.as_str();
    };
    let sign = |rest: &mut &str, negative: &mut bool| match rest.chars().next() {
        Some('-') => {
            *negative = true;
            *rest = &rest[1..];
        }
        Some('+') => *rest = &rest[1..],
        Some('<') => {
            *negative = true;
            *rest = &rest[1..];
        }
        _ => {}
    };
    for n in &nodes {
        if rest.is_empty() {
            break;
        }
        match n {
            Node::Field(Key::Nine | Key::Zero | Key::Dot | Key::Point) => {
                rest = rest.trim_start_matches(' ');
                if whole.is_empty() && fraction.is_empty() {
                    sign(&mut rest, &mut negative);
                }
                match rest.chars().next() {
                    Some(c) if c.is_ascii_digit() => {
                        let enough = if point { fraction.len() as i32 >= s.after } else { whole.len() as i32 >= s.before + s.multiply };
                        if !enough {
                            if point { &mut fraction } else { &mut whole }.push(c);
                        }
                        take(&mut rest);
                    }
                    Some('.') if s.decimal && !point => {
                        point = true;
                        take(&mut rest);
                    }
                    _ => {}
                }
            }
            Node::Field(Key::Comma | Key::Group) => {
                if rest.starts_with(',') {
                    take(&mut rest);
                }
            }
            Node::Field(Key::Currency) => {
                if rest.starts_with(|c: char| !c.is_ascii_digit() && !"+-.,".contains(c)) {
                    take(&mut rest);
                }
            }
            Node::Field(Key::Minus | Key::Plus | Key::SignBoth | Key::Sign | Key::Bracket) => {
                sign(&mut rest, &mut negative);
                if rest.starts_with('>') {
                    take(&mut rest);
                }
            }
            Node::Field(Key::Ordinal(_)) => {
                take(&mut rest);
                take(&mut rest);
            }
            Node::Char(_) => {
                if rest.starts_with(|c: char| !c.is_ascii_digit() && !"+-".contains(c)) {
                    take(&mut rest);
                }
            }
            Node::Field(_) => {}
        }
    }
    // A sign may follow the digits.
    let tail = rest.trim_start();
    if tail.starts_with('-') && s.sign.is_some() {
        negative = true;
    }
    let number = format!("{}{whole}{}{fraction}", if negative { "-" } else { "" }, if fraction.is_empty() { "" } else { "." });
    let n = Numeric::parse(if whole.is_empty() && fraction.is_empty() { " " } else { &number })?;
    Ok(Some(if s.is_multiply { n.div(&power10(s.multiply))? } else { n }))
}
