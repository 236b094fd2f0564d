//! Window functions over one partition, against frames taken row by row.

use expr::window::{evaluate, Partition};
use expr::{agg, Aggregate, ColumnOrder, EvalCtx, Frame, FrameBound, FrameExclude, FrameUnits, Scalar, WindowExpr, WindowFunc};
use repr::{SqlType, Value};

fn int(i: i64) -> Scalar {
    Scalar::literal(Value::Int8(i), SqlType::Int8)
}

fn over(func: WindowFunc, frame: Frame, ty: SqlType, keys: &[Option<i64>]) -> Vec<Value> {
    let rows: Vec<Vec<Value>> = keys.iter().map(|k| vec![k.map_or(Value::Null, Value::Int8)]).collect();
    let mut peers = vec![0];
    for w in keys.windows(2) {
        peers.push(peers[peers.len() - 1] + usize::from(w[0] != w[1]));
    }
    let types = [SqlType::Int8.nullable()];
    let order = [ColumnOrder { column: 0, desc: false, nulls_last: true }];
    let p = Partition { rows: &rows, types: &types, peers: &peers, order: &order };
    let out = evaluate(&p, &[WindowExpr { func, frame, ty: ty.nullable() }], &EvalCtx::default()).unwrap();
    out.into_iter().map(|mut r| r.remove(0)).collect()
}

fn aggregate(oid: u32, ty: SqlType) -> WindowFunc {
    let func = agg::by_oid(oid).unwrap();
    let args = vec![Scalar::Column(0)];
    WindowFunc::Aggregate(Aggregate { func, args, direct: 0, distinct: false, filter: None, order_by: vec![], ty: ty.nullable() })
}

fn ints(v: &[Value]) -> Vec<i64> {
    v.iter().map(|v| v.as_i64().unwrap_or(-1)).collect()
}

/// Every frame shape, count by count: what the sliding states give is what the frame's rows give.
#[test]
fn sliding_is_recomputing() {
    let keys = [Some(1), Some(1), Some(2), Some(4), Some(4), Some(4), Some(9), None, None];
    let bounds = [
        (FrameBound::UnboundedPreceding, -100),
        (FrameBound::Preceding(int(2)), -2),
        (FrameBound::CurrentRow, 0),
        (FrameBound::Following(int(1)), 1),
        (FrameBound::UnboundedFollowing, 100),
    ];
    let n = keys.len() as i64;
    for (start, a) in &bounds[..4] {
        for (end, b) in &bounds[1..] {
            for exclude in [FrameExclude::NoOthers, FrameExclude::CurrentRow, FrameExclude::Group, FrameExclude::Ties] {
                let frame = Frame { units: FrameUnits::Rows, start: start.clone(), end: end.clone(), exclude };
                let array = over(aggregate(2335, SqlType::Int8.array_of()), frame.clone(), SqlType::Int8.array_of(), &keys);
                let count = ints(&over(aggregate(2147, SqlType::Int8), frame.clone(), SqlType::Int8, &keys));
                let max = ints(&over(aggregate(2115, SqlType::Int8), frame.clone(), SqlType::Int8, &keys));
                for i in 0..n {
                    let covered: Vec<Option<i64>> = (0..n)
                        .filter(|j| j - i >= *a && j - i <= *b)
                        .filter(|j| match exclude {
                            FrameExclude::NoOthers => true,
                            FrameExclude::CurrentRow => *j != i,
                            FrameExclude::Group => keys[*j as usize] != keys[i as usize],
                            FrameExclude::Ties => *j == i || keys[*j as usize] != keys[i as usize],
                        })
                        .map(|j| keys[j as usize])
                        .collect();
                    let expect = match covered.len() {
                        0 => Value::Null,
                        _ => Value::array(covered.iter().map(|k| k.map_or(Value::Null, Value::Int8)).collect()),
                    };
                    assert_eq!(array[i as usize], expect, "{frame:?} row {i}");
                    assert_eq!(count[i as usize], covered.iter().flatten().count() as i64, "{frame:?} row {i}");
                    assert_eq!(max[i as usize], covered.iter().flatten().max().copied().unwrap_or(-1), "{frame:?} row {i}");
                }
            }
        }
    }
}

#[test]
fn range_and_groups() {
    let keys = [Some(1), Some(1), Some(2), Some(4), Some(9), None];
    let frame = |units, start, end| Frame { units, start, end, exclude: FrameExclude::NoOthers };
    let sum = |f| over(aggregate(2115, SqlType::Int8), f, SqlType::Int8, &keys);
    let count = |f| ints(&over(aggregate(2147, SqlType::Int8), f, SqlType::Int8, &keys));
    assert_eq!(count(frame(FrameUnits::Range, FrameBound::Preceding(int(2)), FrameBound::CurrentRow)), [2, 2, 3, 2, 1, 0]);
    assert_eq!(count(frame(FrameUnits::Groups, FrameBound::Preceding(int(1)), FrameBound::Following(int(1)))), [3, 3, 4, 3, 2, 1]);
    assert_eq!(ints(&sum(frame(FrameUnits::Range, FrameBound::UnboundedPreceding, FrameBound::Following(int(3))))), [4, 4, 4, 4, 9, 9]);
}

#[test]
fn positions() {
    let keys = [Some(1), Some(1), Some(2), Some(3), Some(3)];
    let whole = Frame { units: FrameUnits::Range, start: FrameBound::UnboundedPreceding, end: FrameBound::CurrentRow, exclude: FrameExclude::NoOthers };
    let run = |f| ints(&over(f, whole.clone(), SqlType::Int8, &keys));
    assert_eq!(run(WindowFunc::Rank), [1, 1, 3, 4, 4]);
    assert_eq!(run(WindowFunc::DenseRank), [1, 1, 2, 3, 3]);
    assert_eq!(run(WindowFunc::LastValue(Scalar::Column(0))), [1, 1, 2, 3, 3]);
    assert_eq!(run(WindowFunc::Lag { value: Scalar::Column(0), offset: int(2), default: int(0) }), [0, 0, 1, 1, 2]);
    let tiles = over(WindowFunc::Ntile(int(3)), whole.clone(), SqlType::Int4, &keys);
    assert_eq!(ints(&tiles), [1, 1, 2, 2, 3]);
}
