//! Boxes, paths, polygons and circles: where they lie, what they hold, how far they are.

use super::lines::*;
use super::num::*;
use repr::error::state;
use repr::geo::{Circle, Line, Lseg, Path, Point, Polygon, Rect};
use repr::interrupt::Pace;
use repr::SqlError;

pub fn width(b: &Rect) -> Res<f64> {
    sub(b.high.x, b.low.x)
}

pub fn height(b: &Rect) -> Res<f64> {
    sub(b.high.y, b.low.y)
}

pub fn box_area(b: &Rect) -> Res<f64> {
    mul(width(b)?, height(b)?)
}

pub fn box_center(b: &Rect) -> Res<Point> {
    middle(b.high, b.low)
}

pub fn boxes_overlap(a: &Rect, b: &Rect) -> bool {
    le(a.low.x, b.high.x) && le(b.low.x, a.high.x) && le(a.low.y, b.high.y) && le(b.low.y, a.high.y)
}

pub fn box_has_box(a: &Rect, b: &Rect) -> bool {
    ge(a.high.x, b.high.x) && le(a.low.x, b.low.x) && ge(a.high.y, b.high.y) && le(a.low.y, b.low.y)
}

pub fn box_has(b: &Rect, p: Point) -> bool {
    b.high.x >= p.x && b.low.x <= p.x && b.high.y >= p.y && b.low.y <= p.y
}

pub fn common_box(a: &Rect, b: &Rect) -> Option<Rect> {
    boxes_overlap(a, b).then(|| Rect {
        high: Point { x: min(a.high.x, b.high.x), y: min(a.high.y, b.high.y) },
        low: Point { x: max(a.low.x, b.low.x), y: max(a.low.y, b.low.y) },
    })
}

/// The smallest box that holds two boxes.
pub fn around_both(a: &Rect, b: &Rect) -> Rect {
    Rect { high: Point { x: max(a.high.x, b.high.x), y: max(a.high.y, b.high.y) }, low: Point { x: min(a.low.x, b.low.x), y: min(a.low.y, b.low.y) } }
}

/// The smallest box that holds points; all zeros for none.
pub fn around(points: &[Point]) -> Rect {
    let Some(first) = points.first() else { return Rect::default() };
    points.iter().fold(Rect { high: *first, low: *first }, |b, p| around_both(&b, &Rect { high: *p, low: *p }))
}

/// The sides: left, top, bottom, right, each from the corner that both share.
fn sides(b: &Rect) -> [Lseg; 4] {
    let (upper_left, lower_right) = (Point { x: b.low.x, y: b.high.y }, Point { x: b.high.x, y: b.low.y });
    [Lseg([b.low, upper_left]), Lseg([b.high, upper_left]), Lseg([b.low, lower_right]), Lseg([b.high, lower_right])]
}

/// The place of a box nearest to `p`.
pub fn on_box(b: &Rect, p: Point) -> Res<Near> {
    if box_has(b, p) {
        return Ok((p, 0.0));
    }
    let [first, rest @ ..] = sides(b);
    let mut best = on_seg(&first, p)?;
    for side in rest {
        best = nearer(best, on_seg(&side, p)?);
    }
    Ok(best)
}

/// Whether a segment and a box share a place, and then the place of the segment nearest to the box's centre.
pub fn box_meets_seg(b: &Rect, s: &Lseg) -> Res<Option<Point>> {
    if !boxes_overlap(&around(&s.0), b) {
        return Ok(None);
    }
    let place = on_seg(s, box_center(b)?)?.0;
    if s.0.iter().any(|end| box_has(b, *end)) {
        return Ok(Some(place));
    }
    for side in sides(b) {
        if segs_meet(&side, s)?.is_some() {
            return Ok(Some(place));
        }
    }
    Ok(None)
}

/// The place of a box nearest to a segment.
pub fn on_box_to_seg(b: &Rect, s: &Lseg) -> Res<Near> {
    if let Some(p) = box_meets_seg(b, s)? {
        return Ok((p, 0.0));
    }
    let [first, rest @ ..] = sides(b);
    let mut best = on_seg_to_seg(&first, s)?;
    for side in rest {
        best = nearer(best, on_seg_to_seg(&side, s)?);
    }
    Ok(best)
}

pub fn box_meets_line(l: &Line, b: &Rect) -> Res<bool> {
    let corners = [b.low, Point { x: b.low.x, y: b.high.y }, b.high, Point { x: b.high.x, y: b.low.y }];
    for i in 0..4 {
        if seg_meets_line(&Lseg([corners[i], corners[(i + 1) % 4]]), l)?.is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The segments of a path, the closing one first.
pub fn segments(p: &Path) -> impl Iterator<Item = Lseg> + '_ {
    let closing = p.points.last().filter(|_| p.closed).map(|last| Lseg([*last, p.points[0]]));
    closing.into_iter().chain(p.points.windows(2).map(|w| Lseg([w[0], w[1]])))
}

pub fn path_length(p: &Path) -> Res<f64> {
    segments(p).try_fold(0.0, |sum, s| add(sum, seg_length(&s)?))
}

pub fn path_area(p: &Path) -> Res<Option<f64>> {
    if !p.closed {
        return Ok(None);
    }
    let n = p.points.len();
    let mut area = 0.0;
    for i in 0..n {
        let (a, b) = (p.points[i], p.points[(i + 1) % n]);
        area = add(area, mul(a.x, b.y)?)?;
        area = sub(area, mul(a.y, b.x)?)?;
    }
    Ok(Some(div(area.abs(), 2.0)?))
}

pub fn paths_meet(p: &Path, q: &Path) -> Res<bool> {
    if p.points.is_empty() || q.points.is_empty() || !boxes_overlap(&around(&p.points), &around(&q.points)) {
        return Ok(false);
    }
    let pace = Pace::default();
    for s in segments(p) {
        for t in segments(q).take_while(|_| !pace.stop(32)) {
            if segs_meet(&s, &t)?.is_some() {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

/// The least of distances; `None` of none.
fn least(distances: impl Iterator<Item = Res<f64>>) -> Res<Option<f64>> {
    let (mut best, pace): (Option<f64>, _) = (None, Pace::default());
    for d in distances.take_while(|_| !pace.stop(32)) {
        let d = d?;
        best = Some(best.map_or(d, |b| if float_less(d, b) { d } else { b }));
    }
    Ok(best)
}

pub fn path_distance(p: &Path, q: &Path) -> Res<Option<f64>> {
    least(segments(p).flat_map(|s| segments(q).map(move |t| Ok(on_seg_to_seg(&s, &t)?.1))))
}

pub fn point_to_path(at: Point, p: &Path) -> Res<f64> {
    Ok(least(segments(p).map(|s| Ok(on_seg(&s, at)?.1)))?.unwrap_or(0.0))
}

pub fn path_has(at: Point, p: &Path) -> Res<bool> {
    if p.closed {
        return inside(at, &p.points);
    }
    for w in p.points.windows(2) {
        if eq(add(distance(at, w[0])?, distance(at, w[1])?)?, distance(w[0], w[1])?) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Each point of a path moved.
pub fn map_path(mut p: Path, by: Point, f: fn(Point, Point) -> Res<Point>) -> Res<Path> {
    for at in &mut p.points {
        *at = f(*at, by)?;
    }
    Ok(p)
}

pub fn path_polygon(p: Path) -> Res<Polygon> {
    if !p.closed {
        return Err(SqlError::new(state::INVALID_PARAMETER_VALUE, "open path cannot be converted to polygon"));
    }
    Ok(Polygon(p.points))
}

/// How the way from `from` to `to` crosses the positive x axis, twice the count; `None`: it goes through the origin.
fn crossing(to: Point, from: Point) -> Res<Option<i32>> {
    if zero(to.y) {
        if zero(to.x) {
            return Ok(None);
        }
        let right = gt(to.x, 0.0);
        if zero(from.y) {
            let same_side = if right { gt(from.x, 0.0) } else { lt(from.x, 0.0) };
            return Ok(same_side.then_some(0));
        }
        return Ok(Some(match right {
            false => 0,
            true if lt(from.y, 0.0) => 1,
            true => -1,
        }));
    }
    let up = if gt(to.y, 0.0) { 1 } else { -1 };
    if zero(from.y) {
        return Ok(Some(if lt(from.x, 0.0) { 0 } else { up }));
    }
    if (up < 0 && lt(from.y, 0.0)) || (up > 0 && gt(from.y, 0.0)) {
        return Ok(Some(0));
    }
    if ge(to.x, 0.0) && gt(from.x, 0.0) {
        return Ok(Some(2 * up));
    }
    if lt(to.x, 0.0) && le(from.x, 0.0) {
        return Ok(Some(0));
    }
    let z = sub(mul(sub(to.x, from.x)?, to.y)?, mul(sub(to.y, from.y)?, to.x)?)?;
    if zero(z) {
        return Ok(None);
    }
    Ok(Some(if (up < 0 && lt(z, 0.0)) || (up > 0 && gt(z, 0.0)) { 0 } else { 2 * up }))
}

/// Whether a point lies in a polygon or on its edge: by how often the edge winds around it.
pub fn inside(p: Point, polygon: &[Point]) -> Res<bool> {
    let (Some(first), Some(last)) = (polygon.first(), polygon.last()) else { return Ok(false) };
    let relative = |q: &Point| -> Res<Point> { minus(*q, p) };
    let mut winding = 0;
    for w in polygon.windows(2) {
        match crossing(relative(&w[1])?, relative(&w[0])?)? {
            Some(n) => winding += n,
            None => return Ok(true),
        }
    }
    match crossing(relative(first)?, relative(last)?)? {
        Some(n) => Ok(winding + n != 0),
        None => Ok(true),
    }
}

/// The edges of a polygon, the closing one first.
fn edges(points: &[Point]) -> impl Iterator<Item = Lseg> + '_ {
    let closing = points.last().map(|last| Lseg([*last, points[0]]));
    closing.into_iter().chain(points.windows(2).map(|w| Lseg([w[0], w[1]])))
}

pub fn polygons_overlap(p: &Polygon, q: &Polygon) -> Res<bool> {
    let (p, q) = (&p.0, &q.0);
    if p.is_empty() || q.is_empty() || !boxes_overlap(&around(p), &around(q)) {
        return Ok(false);
    }
    let pace = Pace::default();
    for s in edges(p) {
        for t in edges(q).take_while(|_| !pace.stop(32)) {
            if segs_meet(&s, &t)?.is_some() {
                return Ok(true);
            }
        }
    }
    Ok(inside(p[0], q)? || inside(q[0], p)?)
}

pub fn polygon_distance(p: &Polygon, q: &Polygon) -> Res<Option<f64>> {
    if polygons_overlap(p, q)? {
        return Ok(Some(0.0));
    }
    least(edges(&p.0).flat_map(|s| edges(&q.0).map(move |t| Ok(on_seg_to_seg(&s, &t)?.1))))
}

pub fn point_to_polygon(p: Point, polygon: &Polygon) -> Res<f64> {
    if inside(p, &polygon.0)? {
        return Ok(0.0);
    }
    Ok(least(edges(&polygon.0).map(|s| Ok(on_seg(&s, p)?.1)))?.unwrap_or(0.0))
}

/// Whether one polygon holds another: no edge of the inner one leaves it.
pub fn polygon_has(outer: &Polygon, inner: &Polygon) -> Res<bool> {
    if !box_has_box(&around(&outer.0), &around(&inner.0)) {
        return Ok(false);
    }
    let pace = Pace::default();
    for s in edges(&inner.0) {
        if pace.stop(32 * outer.0.len()) || !seg_inside(s.0[0], s.0[1], &outer.0, 0, &pace)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Whether the segment from `a` to `b` lies in the polygon, as far as its edges from `start` on tell.
fn seg_inside(a: Point, b: Point, polygon: &[Point], start: usize, pace: &Pace) -> Res<bool> {
    let t = Lseg([a, b]);
    let mut from = polygon[if start == 0 { polygon.len() - 1 } else { start - 1 }];
    let (mut ok, mut crossed) = (true, false);
    for (i, to) in polygon.iter().enumerate().skip(start) {
        if !ok || pace.stop(32) {
            break;
        }
        let edge = Lseg([from, *to]);
        if seg_has(&edge, a)? {
            if seg_has(&edge, b)? {
                return Ok(true);
            }
            ok = touching_inside(a, b, &edge, polygon, i + 1, pace)?;
        } else if seg_has(&edge, b)? {
            ok = touching_inside(b, a, &edge, polygon, i + 1, pace)?;
        } else if let Some(p) = segs_meet(&t, &edge)? {
            // The parts on both sides of the crossing.
            crossed = true;
            ok = seg_inside(a, p, polygon, i + 1, pace)? && seg_inside(b, p, polygon, i + 1, pace)?;
        }
        from = *to;
    }
    if ok && !crossed {
        return inside(middle(a, b)?, polygon);
    }
    Ok(ok)
}

/// As [`seg_inside`] where `a` lies on an edge and `b` does not: what lies along the edge is passed over.
fn touching_inside(a: Point, b: Point, edge: &Lseg, polygon: &[Point], start: usize, pace: &Pace) -> Res<bool> {
    let t = Lseg([a, b]);
    let [p, q] = edge.0;
    let ends: &[Point] = if same(a, p) {
        &[q]
    } else if same(a, q) {
        &[p]
    } else {
        &[p, q]
    };
    for end in ends {
        if seg_has(&t, *end)? {
            return seg_inside(b, *end, polygon, start, pace);
        }
    }
    Ok(true)
}

/// The same points in the same circular order, in either direction.
pub fn same_polygon(p: &Polygon, q: &Polygon) -> bool {
    let (p, q) = (&p.0, &q.0);
    let n = p.len();
    if n != q.len() {
        return false;
    }
    let pace = Pace::default();
    (0..n).filter(|i| same(q[*i], p[0])).any(|i| {
        let forward = (1..n).all(|k| same(p[k], q[(i + k) % n]) && !pace.stop(8));
        forward || (1..n).all(|k| same(p[k], q[(i + n - k) % n]) && !pace.stop(8))
    })
}

pub fn box_polygon(b: Rect) -> Polygon {
    Polygon(vec![b.low, Point { x: b.low.x, y: b.high.y }, b.high, Point { x: b.high.x, y: b.low.y }])
}

/// The circle about the mean of the points, its radius their mean distance.
pub fn polygon_circle(p: &Polygon) -> Res<Circle> {
    let n = p.0.len() as f64;
    let sum = p.0.iter().try_fold(Point::default(), |sum, p| plus(sum, *p))?;
    let center = Point { x: div(sum.x, n)?, y: div(sum.y, n)? };
    let total = p.0.iter().try_fold(0.0, |sum, p| add(sum, distance(*p, center)?))?;
    Ok(Circle { center, radius: div(total, n)? })
}

pub fn circle_polygon(n: i32, c: Circle) -> Res<Polygon> {
    if zero(c.radius) {
        return Err(SqlError::new(state::FEATURE_NOT_SUPPORTED, "cannot convert circle with radius zero to polygon"));
    }
    if n < 2 {
        return Err(SqlError::new(state::INVALID_PARAMETER_VALUE, "must request at least 2 points"));
    }
    if n > POINTS_MAX {
        return Err(SqlError::new(state::PROGRAM_LIMIT_EXCEEDED, "too many points requested"));
    }
    let step = div(2.0 * std::f64::consts::PI, f64::from(n))?;
    let at = |i: i32| -> Res<Point> {
        let angle = mul(step, f64::from(i))?;
        Ok(Point { x: sub(c.center.x, mul(c.radius, angle.cos())?)?, y: add(c.center.y, mul(c.radius, angle.sin())?)? })
    };
    Ok(Polygon((0..n).map(at).collect::<Res<_>>()?))
}

/// A polygon of so many points has 64 MB.
const POINTS_MAX: i32 = 4_000_000;

pub fn circle_area(c: &Circle) -> Res<f64> {
    mul(mul(c.radius, c.radius)?, std::f64::consts::PI)
}

pub fn circle_box(c: Circle) -> Res<Rect> {
    let d = div(c.radius, std::f64::consts::SQRT_2)?;
    Ok(Rect { high: Point { x: add(c.center.x, d)?, y: add(c.center.y, d)? }, low: Point { x: sub(c.center.x, d)?, y: sub(c.center.y, d)? } })
}

pub fn box_circle(b: Rect) -> Res<Circle> {
    let center = box_center(&b)?;
    Ok(Circle { center, radius: distance(center, b.high)? })
}

/// A distance less the radius, never below zero.
pub fn beyond(d: f64, radius: f64) -> Res<f64> {
    let d = sub(d, radius)?;
    Ok(if d < 0.0 { 0.0 } else { d })
}
