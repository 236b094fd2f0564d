//! Geometric operators and functions.
//!
//! Comparisons allow coordinates to differ by a millionth, as Postgres's do, so `~=` is no equivalence and no equality of keys: no type here
//! has a btree class. Computations follow Postgres's formulas, since other ones would differ in last digits.
//!
//! Not here: text and bytes of the values (`repr::geo`).

use super::lift::{Arg, Ret};
use super::{CallArgs, Entry};
use crate::{f1, f2, val};
use arrow_array::builder::BinaryBuilder;
use arrow_array::cast::AsArray;
use arrow_array::{ArrayRef, BinaryArray};
use repr::error::state;
use repr::geo::{Circle, Line, Lseg, Path, Point, Polygon, Rect, Shape};
use repr::types::GeoKind;
use repr::{column, SqlError, SqlType, Value};
use std::sync::Arc;

/// Boxes, paths, polygons, circles.
mod areas;
/// Points, segments, lines.
mod lines;
/// Numbers.
mod num;

use areas::*;
use lines::*;
use num::{add, div, eq, ge, gt, hypot, le, lt, mul, ne, sub, zero};

macro_rules! shapes {
    ($($t:ty),*) => { $(
        impl Arg for $t {
            type Col<'a> = &'a BinaryArray;
            type In<'a> = $t;
            fn open<'a>(col: &'a ArrayRef, _: &'a SqlType) -> Self::Col<'a> {
                col.as_binary::<i32>()
            }
            fn get<'a>(col: &Self::Col<'a>, i: usize) -> Self::In<'a> {
                <$t>::read(col.value(i))
            }
        }
        impl Ret for $t {
            type Builder = BinaryBuilder;
            fn builder(_: &SqlType, capacity: usize) -> BinaryBuilder {
                BinaryBuilder::with_capacity(capacity, capacity * 16)
            }
            fn push(self, b: &mut BinaryBuilder) -> bool {
                let bytes = self.to_bytes();
                let fits = column::has_room(b.values_slice().len(), bytes.len());
                if fits {
                    b.append_value(bytes);
                }
                fits
            }
            fn push_null(b: &mut BinaryBuilder) {
                b.append_null();
            }
            fn finish(mut b: BinaryBuilder) -> ArrayRef {
                Arc::new(b.finish())
            }
        }
    )* };
}
shapes!(Point, Lseg, Line, Rect, Path, Polygon, Circle);

/// What a subscript of a geometric value gives: its type.
pub fn part_type(kind: GeoKind) -> Option<SqlType> {
    match kind {
        GeoKind::Point | GeoKind::Line => Some(SqlType::Float8),
        GeoKind::Lseg | GeoKind::Box => Some(SqlType::Geo(GeoKind::Point)),
        GeoKind::Path | GeoKind::Polygon | GeoKind::Circle => None,
    }
}

/// Bytes of one part of a value whose parts have type `part`.
fn part_len(part: &SqlType) -> usize {
    if *part == SqlType::Float8 {
        8
    } else {
        16
    }
}

/// The part of a value that a subscript names, counted from 0; NULL outside.
pub fn part(bytes: &[u8], subscripts: &[Value], part: &SqlType) -> Value {
    let (n, [i]) = (part_len(part), subscripts) else { return Value::Null };
    let found = i.as_i64().and_then(|i| usize::try_from(i).ok()).and_then(|i| bytes.chunks_exact(n).nth(i));
    match (found, part) {
        (None, _) => Value::Null,
        (Some(b), SqlType::Float8) => Value::Float8(f64::from_be_bytes(b.try_into().unwrap_or_default())),
        (Some(b), _) => Value::Bytea(b.to_vec()),
    }
}

/// A value with a part replaced. Errors: 2202E for a subscript outside, 22004 for NULL.
pub fn with_part(bytes: &[u8], new: &Value, subscripts: &[Value]) -> Result<Value, SqlError> {
    let new = match new {
        Value::Float8(v) => v.to_be_bytes().to_vec(),
        Value::Bytea(b) => b.clone(),
        // NULL changes nothing.
        _ => return Ok(Value::Bytea(bytes.to_vec())),
    };
    let [i] = subscripts else { return Err(SqlError::new(state::ARRAY_SUBSCRIPT_ERROR, "wrong number of array subscripts")) };
    let i = i.as_i64().ok_or_else(|| SqlError::new(state::NULL_VALUE_NOT_ALLOWED, "array subscript in assignment must not be null"))?;
    let mut out = bytes.to_vec();
    let slot = usize::try_from(i).ok().and_then(|i| out.chunks_exact_mut(new.len()).nth(i));
    slot.ok_or_else(|| SqlError::new(state::ARRAY_SUBSCRIPT_ERROR, "array subscript out of range"))?.copy_from_slice(&new);
    Ok(Value::Bytea(out))
}

/// A place unless it is not one.
fn place((p, d): Near) -> Option<Point> {
    (!d.is_nan()).then_some(p)
}

/// The points of a path after those of another; `None` if one is closed.
fn append(mut p: Path, q: Path) -> Option<Path> {
    if p.closed || q.closed {
        return None;
    }
    p.points.extend(q.points);
    Some(p)
}

fn map_box(b: Rect, by: Point, f: fn(Point, Point) -> Result<Point, SqlError>) -> Result<Rect, SqlError> {
    Ok(Rect::of_corners(f(b.high, by)?, f(b.low, by)?))
}

/// A value's bytes are those that it is sent as.
fn sends(c: &mut CallArgs<'_>) -> ArrayRef {
    super::lift::map1::<super::lift::Bytes, Vec<u8>>(c, |b| b.to_vec())
}

/// Where a circle ends on an axis.
fn ends(c: &Circle, axis: fn(&Point) -> f64, sign: f64) -> Result<f64, SqlError> {
    add(axis(&c.center), sign * c.radius)
}

fn x(p: &Point) -> f64 {
    p.x
}

fn y(p: &Point) -> f64 {
    p.y
}

/// The distance of two circles' centres, and their radii.
fn apart(a: &Circle, b: &Circle) -> Result<f64, SqlError> {
    distance(a.center, b.center)
}

type Op = fn(f64, f64) -> bool;

fn circles(a: &Circle, b: &Circle, axis: fn(&Point) -> f64, signs: (f64, f64), op: Op) -> Result<bool, SqlError> {
    Ok(op(ends(a, axis, signs.0)?, ends(b, axis, signs.1)?))
}

fn circle_areas(a: &Circle, b: &Circle, op: Op) -> Result<bool, SqlError> {
    Ok(op(circle_area(a)?, circle_area(b)?))
}

fn box_areas(a: &Rect, b: &Rect, op: Op) -> Result<bool, SqlError> {
    Ok(op(box_area(a)?, box_area(b)?))
}

fn lengths(a: &Lseg, b: &Lseg, op: Op) -> Result<bool, SqlError> {
    Ok(op(seg_length(a)?, seg_length(b)?))
}

fn segs_same(a: &Lseg, b: &Lseg) -> bool {
    same(a.0[0], b.0[0]) && same(a.0[1], b.0[1])
}

/// The boxes around two polygons.
fn bounds(p: &Polygon, q: &Polygon) -> (Rect, Rect) {
    (around(&p.0), around(&q.0))
}

pub const POINTS: &[Entry] = &[
    f2!(["point_above"], Point, Point => bool, |p, q| gt(p.y, q.y)),
    f2!(["point_below"], Point, Point => bool, |p, q| lt(p.y, q.y)),
    f2!(["point_left"], Point, Point => bool, |p, q| lt(p.x, q.x)),
    f2!(["point_right"], Point, Point => bool, |p, q| gt(p.x, q.x)),
    f2!(["point_vert"], Point, Point => bool, |p, q| eq(p.x, q.x)),
    f2!(["point_horiz"], Point, Point => bool, |p, q| eq(p.y, q.y)),
    f2!(["point_eq"], Point, Point => bool, same),
    f2!(["point_ne"], Point, Point => bool, |p, q| !same(p, q)),
    f2!(? ["point_distance"], Point, Point => f64, distance),
    f2!(? ["point_slope"], Point, Point => f64, slope),
    f2!(["construct_point"], f64, f64 => Point, |x, y| Point { x, y }),
    f2!(? ["point_add"], Point, Point => Point, plus),
    f2!(? ["point_sub"], Point, Point => Point, minus),
    f2!(? ["point_mul"], Point, Point => Point, times),
    f2!(? ["point_div"], Point, Point => Point, over),
    f2!(["points_box"], Point, Point => Rect, Rect::of_corners),
    f1!(["point_box"], Point => Rect, |p| Rect { high: p, low: p }),
    f2!(["lseg_construct"], Point, Point => Lseg, |p, q| Lseg([p, q])),
    f2!(? ["line_construct_pp"], Point, Point => Line, line_through),
    f2!(["cr_circle"], Point, f64 => Circle, |center, radius| Circle { center, radius }),
    // Distances from a point, and to one.
    f2!(? ["dist_pl"], Point, Line => f64, |p, l| Ok(on_line(&l, p)?.1)),
    f2!(? ["dist_lp"], Line, Point => f64, |l, p| Ok(on_line(&l, p)?.1)),
    f2!(? ["dist_ps"], Point, Lseg => f64, |p, s| Ok(on_seg(&s, p)?.1)),
    f2!(? ["dist_sp"], Lseg, Point => f64, |s, p| Ok(on_seg(&s, p)?.1)),
    f2!(? ["dist_ppath"], Point, Path => f64, |p, path| point_to_path(p, &path)),
    f2!(? ["dist_pathp"], Path, Point => f64, |path, p| point_to_path(p, &path)),
    f2!(? ["dist_pb"], Point, Rect => f64, |p, b| Ok(on_box(&b, p)?.1)),
    f2!(? ["dist_bp"], Rect, Point => f64, |b, p| Ok(on_box(&b, p)?.1)),
    f2!(? ["dist_ppoly"], Point, Polygon => f64, |p, q| point_to_polygon(p, &q)),
    f2!(? ["dist_polyp"], Polygon, Point => f64, |q, p| point_to_polygon(p, &q)),
    f2!(? ["dist_pc"], Point, Circle => f64, |p, c| beyond(distance(p, c.center)?, c.radius)),
    f2!(? ["dist_cpoint"], Circle, Point => f64, |c, p| beyond(distance(p, c.center)?, c.radius)),
    // The nearest place.
    f2!(? ["close_pl"], Point, Line => Option<Point>, |p, l| on_line(&l, p).map(place)),
    f2!(? ["close_ps"], Point, Lseg => Option<Point>, |p, s| on_seg(&s, p).map(place)),
    f2!(? ["close_pb"], Point, Rect => Option<Point>, |p, b| on_box(&b, p).map(place)),
    // On and in.
    f2!(? ["on_pl"], Point, Line => bool, |p, l| line_has(&l, p)),
    f2!(? ["on_ps"], Point, Lseg => bool, |p, s| seg_has(&s, p)),
    f2!(["on_pb"], Point, Rect => bool, |p, b| box_has(&b, p)),
    f2!(["box_contain_pt"], Rect, Point => bool, |b, p| box_has(&b, p)),
    f2!(? ["on_ppath"], Point, Path => bool, |p, path| path_has(p, &path)),
    f2!(? ["1426"], Path, Point => bool, |path, p| path_has(p, &path)),
    f2!(? ["pt_contained_poly"], Point, Polygon => bool, |p, q| inside(p, &q.0)),
    f2!(? ["poly_contain_pt"], Polygon, Point => bool, |q, p| inside(p, &q.0)),
    f2!(? ["pt_contained_circle"], Point, Circle => bool, |p, c| Ok(distance(c.center, p)? <= c.radius)),
    f2!(? ["circle_contain_pt"], Circle, Point => bool, |c, p| Ok(distance(c.center, p)? <= c.radius)),
];

pub const LINES: &[Entry] = &[
    f1!(? ["lseg_center"], Lseg => Point, |s| middle(s.0[0], s.0[1])),
    f1!(? ["lseg_length"], Lseg => f64, |s| seg_length(&s)),
    f1!(["lseg_vertical"], Lseg => bool, |s| eq(s.0[0].x, s.0[1].x)),
    f1!(["lseg_horizontal"], Lseg => bool, |s| eq(s.0[0].y, s.0[1].y)),
    f2!(? ["lseg_parallel"], Lseg, Lseg => bool, |s, t| Ok(eq(seg_slope(&s)?, seg_slope(&t)?))),
    f2!(? ["lseg_perp"], Lseg, Lseg => bool, |s, t| Ok(eq(seg_slope(&s)?, seg_cross_slope(&t)?))),
    f2!(? ["lseg_intersect"], Lseg, Lseg => bool, |s, t| Ok(segs_meet(&s, &t)?.is_some())),
    f2!(? ["lseg_interpt"], Lseg, Lseg => Option<Point>, |s, t| segs_meet(&s, &t)),
    f2!(["lseg_eq"], Lseg, Lseg => bool, |s, t| segs_same(&s, &t)),
    f2!(["lseg_ne"], Lseg, Lseg => bool, |s, t| !segs_same(&s, &t)),
    f2!(? ["lseg_lt"], Lseg, Lseg => bool, |s, t| lengths(&s, &t, lt)),
    f2!(? ["lseg_le"], Lseg, Lseg => bool, |s, t| lengths(&s, &t, le)),
    f2!(? ["lseg_gt"], Lseg, Lseg => bool, |s, t| lengths(&s, &t, gt)),
    f2!(? ["lseg_ge"], Lseg, Lseg => bool, |s, t| lengths(&s, &t, ge)),
    f2!(? ["lseg_distance"], Lseg, Lseg => f64, |s, t| Ok(on_seg_to_seg(&s, &t)?.1)),
    f2!(? ["dist_sl"], Lseg, Line => f64, |s, l| Ok(on_seg_to_line(&s, &l)?.1)),
    f2!(? ["dist_ls"], Line, Lseg => f64, |l, s| Ok(on_seg_to_line(&s, &l)?.1)),
    f2!(? ["dist_sb"], Lseg, Rect => f64, |s, b| Ok(on_box_to_seg(&b, &s)?.1)),
    f2!(? ["dist_bs"], Rect, Lseg => f64, |b, s| Ok(on_box_to_seg(&b, &s)?.1)),
    f2!(? ["close_lseg"], Lseg, Lseg => Option<Point>, |s, t| {
        if seg_slope(&s)? == seg_slope(&t)? {
            return Ok(None);
        }
        on_seg_to_seg(&t, &s).map(place)
    }),
    f2!(? ["close_ls"], Line, Lseg => Option<Point>, |l, s| {
        if seg_slope(&s)? == line_slope(&l)? {
            return Ok(None);
        }
        on_seg_to_line(&s, &l).map(place)
    }),
    f2!(? ["close_sb"], Lseg, Rect => Option<Point>, |s, b| on_box_to_seg(&b, &s).map(place)),
    f2!(? ["inter_sl"], Lseg, Line => bool, |s, l| Ok(seg_meets_line(&s, &l)?.is_some())),
    f2!(? ["inter_sb"], Lseg, Rect => bool, |s, b| Ok(box_meets_seg(&b, &s)?.is_some())),
    f2!(? ["inter_lb"], Line, Rect => bool, |l, b| box_meets_line(&l, &b)),
    f2!(? ["on_sl"], Lseg, Line => bool, |s, l| Ok(line_has(&l, s.0[0])? && line_has(&l, s.0[1])?)),
    f2!(["on_sb"], Lseg, Rect => bool, |s, b| s.0.iter().all(|p| box_has(&b, *p))),
    f1!(["line_vertical"], Line => bool, |l| zero(l.b)),
    f1!(["line_horizontal"], Line => bool, |l| zero(l.a)),
    f2!(? ["line_parallel"], Line, Line => bool, |k, l| Ok(lines_meet(&k, &l)?.is_none())),
    f2!(? ["line_intersect"], Line, Line => bool, |k, l| Ok(lines_meet(&k, &l)?.is_some())),
    f2!(? ["line_interpt"], Line, Line => Option<Point>, |k, l| lines_meet(&k, &l)),
    f2!(? ["line_perp"], Line, Line => bool, |k, l| upright(&k, &l)),
    f2!(? ["line_eq"], Line, Line => bool, |k, l| same_line(&k, &l)),
    f2!(? ["line_distance"], Line, Line => f64, |k, l| line_distance(&k, &l)),
];

pub const BOXES: &[Entry] = &[
    f2!(["box_left"], Rect, Rect => bool, |a, b| lt(a.high.x, b.low.x)),
    f2!(["box_overleft"], Rect, Rect => bool, |a, b| le(a.high.x, b.high.x)),
    f2!(["box_right"], Rect, Rect => bool, |a, b| gt(a.low.x, b.high.x)),
    f2!(["box_overright"], Rect, Rect => bool, |a, b| ge(a.low.x, b.low.x)),
    f2!(["box_below"], Rect, Rect => bool, |a, b| lt(a.high.y, b.low.y)),
    f2!(["box_overbelow"], Rect, Rect => bool, |a, b| le(a.high.y, b.high.y)),
    f2!(["box_above"], Rect, Rect => bool, |a, b| gt(a.low.y, b.high.y)),
    f2!(["box_overabove"], Rect, Rect => bool, |a, b| ge(a.low.y, b.low.y)),
    f2!(["box_below_eq"], Rect, Rect => bool, |a, b| le(a.high.y, b.low.y)),
    f2!(["box_above_eq"], Rect, Rect => bool, |a, b| ge(a.low.y, b.high.y)),
    f2!(["box_contain"], Rect, Rect => bool, |a, b| box_has_box(&a, &b)),
    f2!(["box_contained"], Rect, Rect => bool, |a, b| box_has_box(&b, &a)),
    f2!(["box_overlap"], Rect, Rect => bool, |a, b| boxes_overlap(&a, &b)),
    f2!(["box_same"], Rect, Rect => bool, |a, b| same(a.high, b.high) && same(a.low, b.low)),
    f2!(? ["box_eq"], Rect, Rect => bool, |a, b| box_areas(&a, &b, eq)),
    f2!(? ["box_lt"], Rect, Rect => bool, |a, b| box_areas(&a, &b, lt)),
    f2!(? ["box_le"], Rect, Rect => bool, |a, b| box_areas(&a, &b, le)),
    f2!(? ["box_gt"], Rect, Rect => bool, |a, b| box_areas(&a, &b, gt)),
    f2!(? ["box_ge"], Rect, Rect => bool, |a, b| box_areas(&a, &b, ge)),
    f1!(? ["box_area"], Rect => f64, |b| box_area(&b)),
    f1!(? ["box_width"], Rect => f64, |b| width(&b)),
    f1!(? ["box_height"], Rect => f64, |b| height(&b)),
    f1!(? ["box_center"], Rect => Point, |b| box_center(&b)),
    f2!(? ["box_distance"], Rect, Rect => f64, |a, b| distance(box_center(&a)?, box_center(&b)?)),
    f2!(["box_intersect"], Rect, Rect => Option<Rect>, |a, b| common_box(&a, &b)),
    f2!(["boxes_bound_box"], Rect, Rect => Rect, |a, b| around_both(&a, &b)),
    f1!(["box_diagonal"], Rect => Lseg, |b| Lseg([b.high, b.low])),
    f2!(? ["box_add"], Rect, Point => Rect, |b, p| Ok(Rect { high: plus(b.high, p)?, low: plus(b.low, p)? })),
    f2!(? ["box_sub"], Rect, Point => Rect, |b, p| Ok(Rect { high: minus(b.high, p)?, low: minus(b.low, p)? })),
    f2!(? ["box_mul"], Rect, Point => Rect, |b, p| map_box(b, p, times)),
    f2!(? ["box_div"], Rect, Point => Rect, |b, p| map_box(b, p, over)),
    f1!(["box_poly"], Rect => Polygon, box_polygon),
    f1!(? ["box_circle"], Rect => Circle, box_circle),
];

pub const PATHS: &[Entry] = &[
    f1!(["path_isclosed"], Path => bool, |p| p.closed),
    f1!(["path_isopen"], Path => bool, |p| !p.closed),
    f1!(["path_npoints"], Path => i32, |p| p.points.len() as i32),
    f1!(["path_close"], Path => Path, |p| Path { closed: true, ..p }),
    f1!(["path_open"], Path => Path, |p| Path { closed: false, ..p }),
    f1!(? ["path_length"], Path => f64, |p| path_length(&p)),
    f1!(? ["path_area"], Path => Option<f64>, |p| path_area(&p)),
    f2!(["path_n_lt"], Path, Path => bool, |p, q| p.points.len() < q.points.len()),
    f2!(["path_n_le"], Path, Path => bool, |p, q| p.points.len() <= q.points.len()),
    f2!(["path_n_eq"], Path, Path => bool, |p, q| p.points.len() == q.points.len()),
    f2!(["path_n_gt"], Path, Path => bool, |p, q| p.points.len() > q.points.len()),
    f2!(["path_n_ge"], Path, Path => bool, |p, q| p.points.len() >= q.points.len()),
    f2!(? ["path_inter"], Path, Path => bool, |p, q| paths_meet(&p, &q)),
    f2!(? ["path_distance"], Path, Path => Option<f64>, |p, q| path_distance(&p, &q)),
    f2!(["path_add"], Path, Path => Option<Path>, append),
    f2!(? ["path_add_pt"], Path, Point => Path, |p, q| map_path(p, q, plus)),
    f2!(? ["path_sub_pt"], Path, Point => Path, |p, q| map_path(p, q, minus)),
    f2!(? ["path_mul_pt"], Path, Point => Path, |p, q| map_path(p, q, times)),
    f2!(? ["path_div_pt"], Path, Point => Path, |p, q| map_path(p, q, over)),
    f1!(? ["path_poly"], Path => Polygon, path_polygon),
    f1!(["poly_path"], Polygon => Path, |p| Path { closed: true, points: p.0 }),
];

pub const POLYGONS: &[Entry] = &[
    f2!(["poly_left"], Polygon, Polygon => bool, |p, q| { let (a, b) = bounds(&p, &q); a.high.x < b.low.x }),
    f2!(["poly_overleft"], Polygon, Polygon => bool, |p, q| { let (a, b) = bounds(&p, &q); a.high.x <= b.high.x }),
    f2!(["poly_right"], Polygon, Polygon => bool, |p, q| { let (a, b) = bounds(&p, &q); a.low.x > b.high.x }),
    f2!(["poly_overright"], Polygon, Polygon => bool, |p, q| { let (a, b) = bounds(&p, &q); a.low.x >= b.low.x }),
    f2!(["poly_below"], Polygon, Polygon => bool, |p, q| { let (a, b) = bounds(&p, &q); a.high.y < b.low.y }),
    f2!(["poly_overbelow"], Polygon, Polygon => bool, |p, q| { let (a, b) = bounds(&p, &q); a.high.y <= b.high.y }),
    f2!(["poly_above"], Polygon, Polygon => bool, |p, q| { let (a, b) = bounds(&p, &q); a.low.y > b.high.y }),
    f2!(["poly_overabove"], Polygon, Polygon => bool, |p, q| { let (a, b) = bounds(&p, &q); a.low.y >= b.low.y }),
    f2!(["poly_same"], Polygon, Polygon => bool, |p, q| same_polygon(&p, &q)),
    f2!(? ["poly_contain"], Polygon, Polygon => bool, |p, q| polygon_has(&p, &q)),
    f2!(? ["poly_contained"], Polygon, Polygon => bool, |p, q| polygon_has(&q, &p)),
    f2!(? ["poly_overlap"], Polygon, Polygon => bool, |p, q| polygons_overlap(&p, &q)),
    f2!(? ["poly_distance"], Polygon, Polygon => Option<f64>, |p, q| polygon_distance(&p, &q)),
    f1!(["poly_npoints"], Polygon => i32, |p| p.0.len() as i32),
    f1!(? ["poly_center"], Polygon => Point, |p| Ok(polygon_circle(&p)?.center)),
    f1!(["poly_box"], Polygon => Rect, |p| around(&p.0)),
    f1!(? ["poly_circle"], Polygon => Circle, |p| polygon_circle(&p)),
    f2!(? ["circle_poly"], i32, Circle => Polygon, circle_polygon),
    f1!(? ["1544"], Circle => Polygon, |c| circle_polygon(12, c)),
    f2!(? ["dist_cpoly"], Circle, Polygon => f64, |c, p| beyond(point_to_polygon(c.center, &p)?, c.radius)),
    f2!(? ["dist_polyc"], Polygon, Circle => f64, |p, c| beyond(point_to_polygon(c.center, &p)?, c.radius)),
];

pub const CIRCLES: &[Entry] = &[
    f2!(["circle_same"], Circle, Circle => bool, |a, b| ((a.radius.is_nan() && b.radius.is_nan()) || eq(a.radius, b.radius)) && same(a.center, b.center)),
    f2!(? ["circle_overlap"], Circle, Circle => bool, |a, b| Ok(le(apart(&a, &b)?, add(a.radius, b.radius)?))),
    f2!(? ["circle_contained"], Circle, Circle => bool, |a, b| Ok(le(apart(&a, &b)?, sub(b.radius, a.radius)?))),
    f2!(? ["circle_contain"], Circle, Circle => bool, |a, b| Ok(le(apart(&a, &b)?, sub(a.radius, b.radius)?))),
    f2!(? ["circle_left"], Circle, Circle => bool, |a, b| circles(&a, &b, x, (1.0, -1.0), lt)),
    f2!(? ["circle_overleft"], Circle, Circle => bool, |a, b| circles(&a, &b, x, (1.0, 1.0), le)),
    f2!(? ["circle_right"], Circle, Circle => bool, |a, b| circles(&a, &b, x, (-1.0, 1.0), gt)),
    f2!(? ["circle_overright"], Circle, Circle => bool, |a, b| circles(&a, &b, x, (-1.0, -1.0), ge)),
    f2!(? ["circle_below"], Circle, Circle => bool, |a, b| circles(&a, &b, y, (1.0, -1.0), lt)),
    f2!(? ["circle_overbelow"], Circle, Circle => bool, |a, b| circles(&a, &b, y, (1.0, 1.0), le)),
    f2!(? ["circle_above"], Circle, Circle => bool, |a, b| circles(&a, &b, y, (-1.0, 1.0), gt)),
    f2!(? ["circle_overabove"], Circle, Circle => bool, |a, b| circles(&a, &b, y, (-1.0, -1.0), ge)),
    f2!(? ["circle_eq"], Circle, Circle => bool, |a, b| circle_areas(&a, &b, eq)),
    f2!(? ["circle_ne"], Circle, Circle => bool, |a, b| circle_areas(&a, &b, ne)),
    f2!(? ["circle_lt"], Circle, Circle => bool, |a, b| circle_areas(&a, &b, lt)),
    f2!(? ["circle_le"], Circle, Circle => bool, |a, b| circle_areas(&a, &b, le)),
    f2!(? ["circle_gt"], Circle, Circle => bool, |a, b| circle_areas(&a, &b, gt)),
    f2!(? ["circle_ge"], Circle, Circle => bool, |a, b| circle_areas(&a, &b, ge)),
    f2!(? ["circle_add_pt"], Circle, Point => Circle, |c, p| Ok(Circle { center: plus(c.center, p)?, ..c })),
    f2!(? ["circle_sub_pt"], Circle, Point => Circle, |c, p| Ok(Circle { center: minus(c.center, p)?, ..c })),
    f2!(? ["circle_mul_pt"], Circle, Point => Circle, |c, p| Ok(Circle { center: times(c.center, p)?, radius: mul(c.radius, hypot(p.x, p.y)?)? })),
    f2!(? ["circle_div_pt"], Circle, Point => Circle, |c, p| Ok(Circle { center: over(c.center, p)?, radius: div(c.radius, hypot(p.x, p.y)?)? })),
    f1!(? ["circle_area"], Circle => f64, |c| circle_area(&c)),
    f1!(? ["circle_diameter"], Circle => f64, |c| mul(c.radius, 2.0)),
    f1!(["circle_radius"], Circle => f64, |c| c.radius),
    f1!(["circle_center"], Circle => Point, |c| c.center),
    f2!(? ["circle_distance"], Circle, Circle => f64, |a, b| beyond(apart(&a, &b)?, add(a.radius, b.radius)?)),
    f1!(? ["circle_box"], Circle => Rect, circle_box),
    crate::kernel!(["point_send", "lseg_send", "line_send", "box_send", "path_send", "poly_send", "circle_send"], sends),
    val!(? ["point_in", "lseg_in", "line_in", "box_in", "path_in", "poly_in", "circle_in"], |a, call| {
        super::cast::io_cast(&a[0], &call.arg_types[0].ty, call.ret, call.ctx)
    }),
    val!(["point_out", "lseg_out", "line_out", "box_out", "path_out", "poly_out", "circle_out"], |a, call| {
        Ok(Value::Text(super::cast::text_out(&a[0], &call.arg_types[0].ty, call.ctx)))
    }),
];
