//! Text forms of geometric values.
//!
//! ```text
//!   point (x,y)   lseg [(x,y),(x,y)]   line {A,B,C}   box (x,y),(x,y)   path ((x,y),…) or [(x,y),…]   polygon ((x,y),…)   circle <(x,y),r>
//! ```
//!
//! Reading is as lenient as Postgres's: most brackets may be left out, blanks may stand around numbers and brackets.

use super::{Circle, Line, Lseg, Path, Point, Polygon, Rect, Shape, EPSILON};
use crate::error::{state, SqlError};
use crate::text::{parse_f64, print_f64};
use crate::types::GeoKind;

/// A cursor over the text of a value.
struct Scan<'a> {
    kind: GeoKind,
    all: &'a str,
    rest: &'a str,
}

fn is_blank(b: char) -> bool {
    matches!(b, ' ' | '\t' | '\n' | '\r' | '\u{b}' | '\u{c}')
}

/// Length of the number that `s` begins with; 0 if there is none.
fn number_len(s: &str) -> usize {
    let b = s.as_bytes();
    let sign = usize::from(matches!(b.first(), Some(b'+' | b'-')));
    let lower: String = s[sign..].chars().take(8).map(|c| c.to_ascii_lowercase()).collect();
    for word in ["infinity", "inf", "nan"] {
        if lower.starts_with(word) {
            return sign + word.len();
        }
    }
    let digits = |mut i: usize| {
        let from = i;
        while b.get(i).is_some_and(u8::is_ascii_digit) {
            i += 1;
        }
        (i, i - from)
    };
    let (mut at, whole) = digits(sign);
    let mut frac = 0;
    if b.get(at) == Some(&b'.') {
        let (end, n) = digits(at + 1);
        frac = n;
        if whole + frac > 0 {
            at = end;
        }
    }
    if whole + frac == 0 {
        return 0;
    }
    if matches!(b.get(at), Some(b'e' | b'E')) {
        let exp = at + 1 + usize::from(matches!(b.get(at + 1), Some(b'+' | b'-')));
        let (end, n) = digits(exp);
        if n > 0 {
            at = end;
        }
    }
    at
}

impl<'a> Scan<'a> {
    fn new(kind: GeoKind, all: &'a str) -> Scan<'a> {
        Scan { kind, all, rest: all }
    }
    fn error(&self) -> SqlError {
        SqlError::new(state::INVALID_TEXT_REPRESENTATION, format!("invalid input syntax for type {}: \"{}\"", self.kind.name(), self.all))
    }
    fn blanks(&mut self) {
        self.rest = self.rest.trim_start_matches(is_blank);
    }
    fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }
    /// Whether the next character was `c`; then it is consumed.
    fn eat(&mut self, c: char) -> bool {
        match self.rest.strip_prefix(c) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }
    fn expect(&mut self, c: char) -> Result<(), SqlError> {
        if self.eat(c) {
            Ok(())
        } else {
            Err(self.error())
        }
    }
    fn end(&self) -> Result<(), SqlError> {
        if self.rest.is_empty() {
            Ok(())
        } else {
            Err(self.error())
        }
    }
    /// A number, with the blanks around it.
    fn number(&mut self) -> Result<f64, SqlError> {
        self.blanks();
        let n = number_len(self.rest);
        if n == 0 {
            return Err(self.error());
        }
        let v = parse_f64(&self.rest[..n])?;
        self.rest = &self.rest[n..];
        self.blanks();
        Ok(v)
    }
    /// Two numbers, with or without brackets.
    fn pair(&mut self) -> Result<Point, SqlError> {
        self.blanks();
        let bracket = self.eat('(');
        let x = self.number()?;
        self.expect(',')?;
        let y = self.number()?;
        if bracket {
            self.expect(')')?;
            self.blanks();
        }
        Ok(Point { x, y })
    }
    /// Whether the rest begins with the only opening bracket that is left.
    fn last_bracket(&self) -> bool {
        self.rest.rfind('(') == Some(0)
    }
    /// `n` points, and whether they stood in square brackets, which `open_allowed` permits.
    fn points(&mut self, n: usize, open_allowed: bool) -> Result<(Vec<Point>, bool), SqlError> {
        self.blanks();
        let mut depth = 0;
        let mut open = false;
        if self.peek() == Some('[') {
            if !open_allowed {
                return Err(self.error());
            }
            open = true;
            depth += 1;
            self.rest = &self.rest[1..];
        } else if self.peek() == Some('(') {
            let inner = self.rest[1..].trim_start_matches(is_blank);
            if inner.starts_with('(') || self.last_bracket() {
                depth += 1;
                self.rest = inner;
            }
        }
        let mut points = Vec::new();
        for _ in 0..n {
            points.push(self.pair()?);
            self.eat(',');
        }
        while depth > 0 {
            if self.peek() == Some(')') || (self.peek() == Some(']') && open && depth == 1) {
                depth -= 1;
                self.rest = &self.rest[1..];
                self.blanks();
            } else {
                return Err(self.error());
            }
        }
        Ok((points, open))
    }
    /// How many points the text holds, by its commas.
    fn count(&self) -> Result<usize, SqlError> {
        let commas = self.all.bytes().filter(|b| *b == b',').count();
        if commas % 2 == 1 {
            Ok(commas.div_ceil(2))
        } else {
            Err(self.error())
        }
    }
    fn two(&mut self, open_allowed: bool) -> Result<[Point; 2], SqlError> {
        let (points, _) = self.points(2, open_allowed)?;
        self.end()?;
        Ok([points[0], points[1]])
    }
    fn line(&mut self) -> Result<Line, SqlError> {
        let invalid = |what: &str| SqlError::new(state::INVALID_TEXT_REPRESENTATION, format!("invalid line specification: {what}"));
        self.blanks();
        if !self.eat('{') {
            let [p, q] = self.two(true)?;
            return Line::through(p, q).ok_or_else(|| invalid("must be two distinct points"));
        }
        let a = self.number()?;
        self.expect(',')?;
        let b = self.number()?;
        self.expect(',')?;
        let c = self.number()?;
        self.expect('}')?;
        self.blanks();
        self.end()?;
        if a.abs() <= EPSILON && b.abs() <= EPSILON {
            return Err(invalid("A and B cannot both be zero"));
        }
        Ok(Line { a, b, c })
    }
    fn path(&mut self) -> Result<Path, SqlError> {
        let n = self.count()?;
        self.blanks();
        let bracket = self.last_bracket();
        if bracket {
            self.rest = &self.rest[1..];
        }
        let (points, open) = self.points(n, true)?;
        if bracket {
            self.expect(')')?;
            self.blanks();
        }
        self.end()?;
        Ok(Path { closed: !open, points })
    }
    fn circle(&mut self) -> Result<Circle, SqlError> {
        self.blanks();
        let mut depth = 0;
        if self.eat('<') {
            depth += 1;
        } else if self.peek() == Some('(') {
            let inner = self.rest[1..].trim_start_matches(is_blank);
            if inner.starts_with('(') {
                depth += 1;
                self.rest = inner;
            }
        }
        let center = self.pair()?;
        self.eat(',');
        let radius = self.number()?;
        if radius < 0.0 {
            return Err(self.error());
        }
        while depth > 0 {
            if !(self.eat(')') || self.eat('>')) {
                return Err(self.error());
            }
            depth -= 1;
            self.blanks();
        }
        self.end()?;
        Ok(Circle { center, radius })
    }
}

/// Whether two places are the same, as Postgres sees it.
pub(super) fn same_place(p: Point, q: Point) -> bool {
    let exact = |a: f64, b: f64| a == b || (a.is_nan() && b.is_nan());
    if [p.x, p.y, q.x, q.y].iter().any(|v| v.is_nan()) {
        return exact(p.x, q.x) && exact(p.y, q.y);
    }
    let near = |a: f64, b: f64| a == b || (a - b).abs() <= EPSILON;
    near(p.x, q.x) && near(p.y, q.y)
}

impl Line {
    /// The line through `p` with a slope; an infinite one is upright.
    pub fn with_slope(p: Point, slope: f64) -> Line {
        if slope.is_infinite() {
            return Line { a: -1.0, b: 0.0, c: p.x };
        }
        if slope == 0.0 {
            return Line { a: 0.0, b: -1.0, c: p.y };
        }
        let c = p.y - slope * p.x;
        Line { a: slope, b: -1.0, c: if c == 0.0 { 0.0 } else { c } }
    }
    /// The line through two places; `None` if they are one.
    pub fn through(p: Point, q: Point) -> Option<Line> {
        if same_place(p, q) {
            return None;
        }
        let near = |a: f64, b: f64| a == b || (a - b).abs() <= EPSILON;
        let slope = if near(p.x, q.x) {
            f64::INFINITY
        } else if near(p.y, q.y) {
            0.0
        } else {
            (p.y - q.y) / (p.x - q.x)
        };
        Some(Line::with_slope(p, slope))
    }
}

/// Reads a value's bytes from its text. Errors: 22P02; 22003 for numbers beyond double precision.
pub fn parse(kind: GeoKind, text: &str) -> Result<Vec<u8>, SqlError> {
    let mut s = Scan::new(kind, text);
    Ok(match kind {
        GeoKind::Point => {
            let p = s.pair()?;
            s.end()?;
            p.to_bytes()
        }
        GeoKind::Lseg => Lseg(s.two(true)?).to_bytes(),
        GeoKind::Line => s.line()?.to_bytes(),
        GeoKind::Box => {
            let [p, q] = s.two(false)?;
            Rect::of_corners(p, q).to_bytes()
        }
        GeoKind::Path => s.path()?.to_bytes(),
        GeoKind::Polygon => {
            let n = s.count()?;
            let (points, _) = s.points(n, false)?;
            s.end()?;
            Polygon(points).to_bytes()
        }
        GeoKind::Circle => s.circle()?.to_bytes(),
    })
}

/// Appends a value's text.
pub fn print(kind: GeoKind, bytes: &[u8], extra_float_digits: i32, out: &mut String) {
    let number = |v: f64, out: &mut String| print_f64(v, extra_float_digits, out);
    let point = |p: &Point, out: &mut String| {
        out.push('(');
        number(p.x, out);
        out.push(',');
        number(p.y, out);
        out.push(')');
    };
    let points = |ps: &[Point], out: &mut String| {
        for (i, p) in ps.iter().enumerate() {
            if i > 0 {
                out.push(',');
            }
            point(p, out);
        }
    };
    let within = |open: char, ps: &[Point], close: char, out: &mut String| {
        out.push(open);
        points(ps, out);
        out.push(close);
    };
    match kind {
        GeoKind::Point => point(&Point::read(bytes), out),
        GeoKind::Lseg => within('[', &Lseg::read(bytes).0, ']', out),
        GeoKind::Line => {
            let l = Line::read(bytes);
            for (before, v) in ['{', ',', ','].into_iter().zip([l.a, l.b, l.c]) {
                out.push(before);
                number(v, out);
            }
            out.push('}');
        }
        GeoKind::Box => {
            let b = Rect::read(bytes);
            points(&[b.high, b.low], out);
        }
        GeoKind::Path => match Path::read(bytes) {
            Path { closed: true, points } => within('(', &points, ')', out),
            Path { closed: false, points } => within('[', &points, ']', out),
        },
        GeoKind::Polygon => within('(', &Polygon::read(bytes).0, ')', out),
        GeoKind::Circle => {
            let c = Circle::read(bytes);
            out.push('<');
            point(&c.center, out);
            out.push(',');
            number(c.radius, out);
            out.push('>');
        }
    }
}
