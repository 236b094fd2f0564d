//! Points, segments and lines: slopes, distances, crossings, the nearest place on something.
//!
//! Where two things do not meet a function returns `None`; a nearest place comes with its distance, which is NaN if a coordinate is.

use super::num::*;
use repr::error::state;
use repr::geo::{Line, Lseg, Point};
use repr::SqlError;

pub fn same(p: Point, q: Point) -> bool {
    if [p.x, p.y, q.x, q.y].iter().any(|v| v.is_nan()) {
        return exact(p.x, q.x) && exact(p.y, q.y);
    }
    eq(p.x, q.x) && eq(p.y, q.y)
}

pub fn distance(p: Point, q: Point) -> Res<f64> {
    hypot(sub(p.x, q.x)?, sub(p.y, q.y)?)
}

pub fn plus(p: Point, q: Point) -> Res<Point> {
    Ok(Point { x: add(p.x, q.x)?, y: add(p.y, q.y)? })
}

pub fn minus(p: Point, q: Point) -> Res<Point> {
    Ok(Point { x: sub(p.x, q.x)?, y: sub(p.y, q.y)? })
}

/// The product of two points as complex numbers: rotation and scaling.
pub fn times(p: Point, q: Point) -> Res<Point> {
    Ok(Point { x: sub(mul(p.x, q.x)?, mul(p.y, q.y)?)?, y: add(mul(p.x, q.y)?, mul(p.y, q.x)?)? })
}

pub fn over(p: Point, q: Point) -> Res<Point> {
    let d = add(mul(q.x, q.x)?, mul(q.y, q.y)?)?;
    Ok(Point { x: div(add(mul(p.x, q.x)?, mul(p.y, q.y)?)?, d)?, y: div(sub(mul(p.y, q.x)?, mul(p.x, q.y)?)?, d)? })
}

pub fn middle(p: Point, q: Point) -> Res<Point> {
    Ok(Point { x: div(add(p.x, q.x)?, 2.0)?, y: div(add(p.y, q.y)?, 2.0)? })
}

pub fn slope(p: Point, q: Point) -> Res<f64> {
    if eq(p.x, q.x) {
        return Ok(f64::INFINITY);
    }
    if eq(p.y, q.y) {
        return Ok(0.0);
    }
    div(sub(p.y, q.y)?, sub(p.x, q.x)?)
}

/// The slope of what stands upright on the way from `p` to `q`.
fn cross_slope(p: Point, q: Point) -> Res<f64> {
    if eq(p.x, q.x) {
        return Ok(0.0);
    }
    if eq(p.y, q.y) {
        return Ok(f64::INFINITY);
    }
    div(sub(p.x, q.x)?, sub(q.y, p.y)?)
}

/// The line through a point with a slope. Errors: 22003.
pub fn line_at(p: Point, slope: f64) -> Res<Line> {
    if !slope.is_infinite() && slope != 0.0 {
        sub(p.y, mul(slope, p.x)?)?;
    }
    Ok(Line::with_slope(p, slope))
}

pub fn line_through(p: Point, q: Point) -> Res<Line> {
    if same(p, q) {
        return Err(SqlError::new(state::INVALID_PARAMETER_VALUE, "invalid line specification: must be two distinct points"));
    }
    line_at(p, slope(p, q)?)
}

pub fn line_slope(l: &Line) -> Res<f64> {
    if zero(l.a) {
        return Ok(0.0);
    }
    if zero(l.b) {
        return Ok(f64::INFINITY);
    }
    div(l.a, -l.b)
}

fn line_cross_slope(l: &Line) -> Res<f64> {
    if zero(l.a) {
        return Ok(f64::INFINITY);
    }
    if zero(l.b) {
        return Ok(0.0);
    }
    div(l.b, l.a)
}

pub fn line_has(l: &Line, p: Point) -> Res<bool> {
    Ok(zero(add(add(mul(l.a, p.x)?, mul(l.b, p.y)?)?, l.c)?))
}

pub fn same_line(k: &Line, l: &Line) -> Res<bool> {
    if [k.a, k.b, k.c, l.a, l.b, l.c].iter().any(|v| v.is_nan()) {
        return Ok(exact(k.a, l.a) && exact(k.b, l.b) && exact(k.c, l.c));
    }
    let ratio = if !zero(l.a) {
        div(k.a, l.a)?
    } else if !zero(l.b) {
        div(k.b, l.b)?
    } else if !zero(l.c) {
        div(k.c, l.c)?
    } else {
        1.0
    };
    Ok(eq(k.a, mul(ratio, l.a)?) && eq(k.b, mul(ratio, l.b)?) && eq(k.c, mul(ratio, l.c)?))
}

pub fn upright(k: &Line, l: &Line) -> Res<bool> {
    Ok(if zero(k.a) {
        zero(l.b)
    } else if zero(l.a) {
        zero(k.b)
    } else if zero(k.b) {
        zero(l.a)
    } else if zero(l.b) {
        zero(k.a)
    } else {
        eq(div(mul(k.a, l.a)?, mul(k.b, l.b)?)?, -1.0)
    })
}

/// Where two lines cross.
pub fn lines_meet(k: &Line, l: &Line) -> Res<Option<Point>> {
    // `f` is the one that is not upright.
    let (f, g) = match (zero(k.b), zero(l.b)) {
        (false, _) => (k, l),
        (true, false) => (l, k),
        (true, true) => return Ok(None),
    };
    if eq(g.a, mul(f.a, div(g.b, f.b)?)?) {
        return Ok(None);
    }
    let x = div(sub(mul(f.b, g.c)?, mul(g.b, f.c)?)?, sub(mul(f.a, g.b)?, mul(g.a, f.b)?)?)?;
    let y = div(-add(mul(f.a, x)?, f.c)?, f.b)?;
    let plain = |v: f64| if v == 0.0 { 0.0 } else { v };
    Ok(Some(Point { x: plain(x), y: plain(y) }))
}

pub fn line_distance(k: &Line, l: &Line) -> Res<f64> {
    if lines_meet(k, l)?.is_some() {
        return Ok(0.0);
    }
    let usable = |a: f64, b: f64| !zero(a) && !a.is_nan() && !zero(b) && !b.is_nan();
    let ratio = if usable(k.a, l.a) {
        div(k.a, l.a)?
    } else if usable(k.b, l.b) {
        div(k.b, l.b)?
    } else {
        1.0
    };
    div(sub(k.c, mul(ratio, l.c)?)?.abs(), hypot(k.a, k.b)?)
}

pub fn seg_slope(s: &Lseg) -> Res<f64> {
    slope(s.0[0], s.0[1])
}

pub fn seg_cross_slope(s: &Lseg) -> Res<f64> {
    cross_slope(s.0[0], s.0[1])
}

pub fn seg_length(s: &Lseg) -> Res<f64> {
    distance(s.0[0], s.0[1])
}

pub fn seg_has(s: &Lseg, p: Point) -> Res<bool> {
    Ok(eq(distance(p, s.0[0])? + distance(p, s.0[1])?, seg_length(s)?))
}

/// Where a segment crosses a line.
pub fn seg_meets_line(s: &Lseg, l: &Line) -> Res<Option<Point>> {
    let Some(p) = lines_meet(&line_at(s.0[0], seg_slope(s)?)?, l)? else { return Ok(None) };
    if !seg_has(s, p)? {
        return Ok(None);
    }
    // An end is given as it is, not as the computation found it.
    Ok(Some(s.0.into_iter().find(|end| same(*end, p)).unwrap_or(p)))
}

pub fn segs_meet(s: &Lseg, t: &Lseg) -> Res<Option<Point>> {
    let Some(p) = seg_meets_line(s, &line_at(t.0[0], seg_slope(t)?)?)? else { return Ok(None) };
    Ok(if seg_has(t, p)? { Some(p) } else { None })
}

/// A place and its distance.
pub type Near = (Point, f64);

/// The nearer of what is known and what was found.
pub fn nearer(best: Near, found: Near) -> Near {
    if float_less(found.1, best.1) {
        found
    } else {
        best
    }
}

/// The place on a line nearest to `p`.
pub fn on_line(l: &Line, p: Point) -> Res<Near> {
    match lines_meet(&line_at(p, line_cross_slope(l)?)?, l)? {
        Some(q) => Ok((q, distance(q, p)?)),
        None => Ok((p, f64::NAN)),
    }
}

/// The place on a segment nearest to a line.
pub fn on_seg_to_line(s: &Lseg, l: &Line) -> Res<Near> {
    if let Some(p) = seg_meets_line(s, l)? {
        return Ok((p, 0.0));
    }
    let (d0, d1) = (on_line(l, s.0[0])?.1, on_line(l, s.0[1])?.1);
    Ok(if d0 < d1 { (s.0[0], d0) } else { (s.0[1], d1) })
}

/// The place on a segment nearest to `p`.
pub fn on_seg(s: &Lseg, p: Point) -> Res<Near> {
    let (q, _) = on_seg_to_line(s, &line_at(p, seg_cross_slope(s)?)?)?;
    Ok((q, distance(q, p)?))
}

/// The place on `s` nearest to the segment `t`.
pub fn on_seg_to_seg(s: &Lseg, t: &Lseg) -> Res<Near> {
    if let Some(p) = segs_meet(s, t)? {
        return Ok((p, 0.0));
    }
    let mut best = on_seg(s, t.0[0])?;
    best = nearer(best, on_seg(s, t.0[1])?);
    for end in s.0 {
        best = nearer(best, (end, on_seg(t, end)?.1));
    }
    Ok(best)
}
