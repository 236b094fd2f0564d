//! Geometric values: points, segments, lines, boxes, paths, polygons, circles.
//!
//! A value's bytes are those of Postgres's wire protocol, big endian, so that binary output is a copy:
//!
//! ```text
//!   point   x, y             lseg, box   two points (a box: upper right, lower left)       circle   centre, radius
//!   line    A, B, C of Ax + By + C = 0       path   closed u8, count i32, points          polygon  count i32, points
//! ```
//!
//! Promise: reading what [`Shape::write`] wrote gives the same value bit by bit; reading damaged bytes gives some value.
//! Not here: what is computed of them (`expr`).

mod text;

pub use text::{parse, print};

use crate::canonical::Bytes;
use crate::error::{state, SqlError};
use crate::types::GeoKind;

/// What Postgres allows two numbers to differ by and still be the same place.
pub const EPSILON: f64 = 1.0e-06;

#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Point {
    pub x: f64,
    pub y: f64,
}

#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Lseg(pub [Point; 2]);

/// `ax + by + c = 0`.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Line {
    pub a: f64,
    pub b: f64,
    pub c: f64,
}

#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Rect {
    pub high: Point,
    pub low: Point,
}

#[derive(Clone, PartialEq, Debug, Default)]
pub struct Path {
    pub closed: bool,
    pub points: Vec<Point>,
}

#[derive(Clone, PartialEq, Debug, Default)]
pub struct Polygon(pub Vec<Point>);

#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Circle {
    pub center: Point,
    pub radius: f64,
}

/// Floats in Postgres's order: NaN is greatest and equal to itself.
pub fn float_less(a: f64, b: f64) -> bool {
    if a.is_nan() {
        return false;
    }
    b.is_nan() || a < b
}

impl Rect {
    /// The box with these two corners, in any order.
    pub fn of_corners(p: Point, q: Point) -> Rect {
        let order = |a: f64, b: f64| if float_less(b, a) { (a, b) } else { (b, a) };
        let ((hx, lx), (hy, ly)) = (order(p.x, q.x), order(p.y, q.y));
        Rect { high: Point { x: hx, y: hy }, low: Point { x: lx, y: ly } }
    }
}

impl Bytes<'_> {
    fn f64(&mut self) -> f64 {
        f64::from_be_bytes(self.fixed())
    }
    fn point(&mut self) -> Point {
        Point { x: self.f64(), y: self.f64() }
    }
    fn points(&mut self) -> Vec<Point> {
        let n = usize::try_from(i32::from_be_bytes(self.fixed())).unwrap_or(0).min(self.0.len() / 16);
        (0..n).map(|_| self.point()).collect()
    }
}

fn put(numbers: &[f64], out: &mut Vec<u8>) {
    numbers.iter().for_each(|v| out.extend_from_slice(&v.to_be_bytes()));
}

fn put_points(points: &[Point], out: &mut Vec<u8>) {
    out.extend_from_slice(&(points.len() as i32).to_be_bytes());
    points.iter().for_each(|p| put(&[p.x, p.y], out));
}

/// A geometric type's byte form.
pub trait Shape: Sized {
    fn read(bytes: &[u8]) -> Self;
    fn write(&self, out: &mut Vec<u8>);
    fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.write(&mut out);
        out
    }
}

impl Shape for Point {
    fn read(bytes: &[u8]) -> Point {
        Bytes(bytes).point()
    }
    fn write(&self, out: &mut Vec<u8>) {
        put(&[self.x, self.y], out);
    }
}

impl Shape for Lseg {
    fn read(bytes: &[u8]) -> Lseg {
        let mut f = Bytes(bytes);
        Lseg([f.point(), f.point()])
    }
    fn write(&self, out: &mut Vec<u8>) {
        self.0.iter().for_each(|p| p.write(out));
    }
}

impl Shape for Line {
    fn read(bytes: &[u8]) -> Line {
        let mut f = Bytes(bytes);
        Line { a: f.f64(), b: f.f64(), c: f.f64() }
    }
    fn write(&self, out: &mut Vec<u8>) {
        put(&[self.a, self.b, self.c], out);
    }
}

impl Shape for Rect {
    fn read(bytes: &[u8]) -> Rect {
        let mut f = Bytes(bytes);
        Rect { high: f.point(), low: f.point() }
    }
    fn write(&self, out: &mut Vec<u8>) {
        self.high.write(out);
        self.low.write(out);
    }
}

impl Shape for Path {
    fn read(bytes: &[u8]) -> Path {
        let mut f = Bytes(bytes);
        Path { closed: f.u8() != 0, points: f.points() }
    }
    fn write(&self, out: &mut Vec<u8>) {
        out.push(u8::from(self.closed));
        put_points(&self.points, out);
    }
}

impl Shape for Polygon {
    fn read(bytes: &[u8]) -> Polygon {
        Polygon(Bytes(bytes).points())
    }
    fn write(&self, out: &mut Vec<u8>) {
        put_points(&self.0, out);
    }
}

impl Shape for Circle {
    fn read(bytes: &[u8]) -> Circle {
        let mut f = Bytes(bytes);
        Circle { center: f.point(), radius: f.f64() }
    }
    fn write(&self, out: &mut Vec<u8>) {
        put(&[self.center.x, self.center.y, self.radius], out);
    }
}

/// How many bytes of `bytes` are one value of this kind, as a client sends it. `None`: more are needed than there are.
fn wire_len(kind: GeoKind, bytes: &[u8]) -> Result<Option<usize>, SqlError> {
    let counted = |at: usize| -> Result<Option<usize>, SqlError> {
        let Some(n) = bytes.get(at..at + 4) else { return Ok(None) };
        let n = i32::from_be_bytes([n[0], n[1], n[2], n[3]]);
        // So many points that their bytes could not be counted are refused as none are.
        match usize::try_from(n).ok().filter(|n| *n > 0 && *n < (i32::MAX as usize) / 16) {
            Some(n) => Ok(Some(at + 4 + 16 * n)),
            None => Err(bad(format!("invalid number of points in external \"{}\" value", kind.name()))),
        }
    };
    match kind {
        GeoKind::Point => Ok(Some(16)),
        GeoKind::Lseg | GeoKind::Box => Ok(Some(32)),
        GeoKind::Line | GeoKind::Circle => Ok(Some(24)),
        GeoKind::Path => counted(1),
        GeoKind::Polygon => counted(0),
    }
}

fn bad(what: String) -> SqlError {
    SqlError::new(state::INVALID_BINARY_REPRESENTATION, what)
}

/// A value's bytes from a client's, checked; and what is left of them. Errors: 22P03, 08P01 if there are too few.
pub fn from_wire(kind: GeoKind, bytes: &[u8]) -> Result<(Vec<u8>, &[u8]), SqlError> {
    let n = wire_len(kind, bytes)?.filter(|n| *n <= bytes.len());
    let n = n.ok_or_else(|| SqlError::new(state::PROTOCOL_VIOLATION, "insufficient data left in message"))?;
    let (value, rest) = bytes.split_at(n);
    let zero = |v: f64| v.abs() <= EPSILON;
    let value = match kind {
        GeoKind::Box => {
            let b = Rect::read(value);
            Rect::of_corners(b.high, b.low).to_bytes()
        }
        GeoKind::Line => {
            let l = Line::read(value);
            if zero(l.a) && zero(l.b) {
                return Err(bad("invalid line specification: A and B cannot both be zero".into()));
            }
            value.to_vec()
        }
        GeoKind::Circle if Circle::read(value).radius < 0.0 => return Err(bad("invalid radius in external \"circle\" value".into())),
        GeoKind::Path => Path::read(value).to_bytes(),
        _ => value.to_vec(),
    };
    Ok((value, rest))
}
