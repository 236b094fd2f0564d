//! Window functions are answered from slices of a partition: what they give is what the whole partition gives.

mod common;
use common::*;
use expr::{Aggregate, ColumnOrder, Frame, FrameBound, FrameExclude, FrameUnits, Scalar, WindowExpr, WindowFunc};
use plan::lir::LirKind;
use plan::Mfp;
use repr::{Diff, SqlType, Value};
use std::collections::BTreeMap;

struct Rng(u64);
impl Rng {
    fn n(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % n
    }
}

fn literal(v: i64) -> Scalar {
    Scalar::literal(Value::Int8(v), SqlType::Int8)
}

fn bound(r: &mut Rng, start: bool) -> FrameBound {
    match r.n(6) {
        0 if start => FrameBound::UnboundedPreceding,
        0 => FrameBound::UnboundedFollowing,
        1 | 2 => FrameBound::CurrentRow,
        3 | 4 if start => FrameBound::Preceding(literal(r.n(4) as i64)),
        3 if !start => FrameBound::Preceding(literal(r.n(3) as i64)),
        5 if start => FrameBound::Following(literal(r.n(3) as i64)),
        _ => FrameBound::Following(literal(r.n(4) as i64)),
    }
}

fn frame(r: &mut Rng) -> Frame {
    let (units, exclude) = (
        [FrameUnits::Rows, FrameUnits::Range, FrameUnits::Groups][r.n(3) as usize],
        [FrameExclude::NoOthers, FrameExclude::NoOthers, FrameExclude::NoOthers, FrameExclude::CurrentRow, FrameExclude::Group, FrameExclude::Ties]
            [r.n(6) as usize],
    );
    if r.n(3) == 0 {
        return Frame { units, start: FrameBound::UnboundedPreceding, end: FrameBound::CurrentRow, exclude };
    }
    Frame { units, start: bound(r, true), end: bound(r, false), exclude }
}

fn window(r: &mut Rng) -> WindowExpr {
    let value = Scalar::Column(2);
    let (offset, default) = (literal(r.n(4) as i64 - 1), literal(-7));
    let func = match r.n(18) {
        0 => WindowFunc::RowNumber,
        1 => WindowFunc::Rank,
        2 => WindowFunc::DenseRank,
        3 => WindowFunc::Lag { value, offset, default },
        4 | 5 => WindowFunc::Lead { value, offset, default },
        6 => WindowFunc::FirstValue(value),
        7 => WindowFunc::LastValue(value),
        8 => WindowFunc::NthValue(value, literal(2)),
        9 => WindowFunc::Aggregate(agg(def(2803), None)),
        10 => WindowFunc::Aggregate(agg(def(2131), Some(2))),
        11 => WindowFunc::Aggregate(agg(def(2115), Some(2))),
        12 => WindowFunc::Aggregate(agg(def(2147), Some(2))),
        n => {
            // sum, avg, stddev; of some rows only.
            let (ty, oid) = (SqlType::Numeric.nullable(), [2107, 2107, 2100, 2100, 2154][n as usize - 13]);
            let filter = (r.n(4) == 0).then(|| Scalar::Not(Box::new(Scalar::IsNull(Box::new(Scalar::Column(1))))));
            return WindowExpr { func: WindowFunc::Aggregate(Aggregate { ty: ty.clone(), filter, ..agg(def(oid), Some(2)) }), frame: frame(r), ty };
        }
    };
    WindowExpr { func, frame: frame(r), ty: SqlType::Int8.nullable() }
}

fn run(seed: u64) {
    let mut r = Rng(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
    let mut db = Db::new(1 + (seed % 2) as usize);
    let a = db.shard(int8(3));
    let exprs: Vec<WindowExpr> = (0..1 + r.n(3)).map(|_| window(&mut r)).collect();
    let desc = r.n(2) == 0;
    let order_by = vec![ColumnOrder { column: 1, desc, nulls_last: r.n(2) == 0 }];
    let (domain, partition) = ([4, 30, 1000][r.n(3) as usize], if r.n(2) == 0 { vec![0] } else { vec![] });
    let mut types = int8(3);
    types.extend(exprs.iter().map(|e| e.ty.clone()));
    let all = Mfp::identity(types.len());
    let plan = lir(types.clone(), LirKind::Window { input: Box::new(get(a, 3)), partition, order_by, exprs: exprs.clone() });
    let mut live: BTreeMap<(i64, i64, i64), Diff> = BTreeMap::new();
    let change = |r: &mut Rng, live: &mut BTreeMap<(i64, i64, i64), Diff>, n: u64| -> Vec<(Row, Diff)> {
        let mut out = vec![];
        for _ in 0..n {
            let (x, d) = match live.keys().nth(r.n(live.len().max(1) as u64) as usize) {
                Some(x) if r.n(2) == 0 => (*x, -1),
                _ => ((r.n(2) as i64, r.n(domain) as i64, r.n(5) as i64), 1),
            };
            *live.entry(x).or_default() += d;
            live.retain(|_, d| *d != 0);
            // 0 stands for NULL in the ordering column.
            let order = if x.1 == 0 { Value::Null } else { i(x.1) };
            out.push((vec![i(x.0), order, i(x.2)].into_iter().collect(), d));
        }
        out
    };
    // In a large partition states are marked.
    let size = if seed.is_multiple_of(6) { 3000 } else { 20 + r.n(200) };
    let first = change(&mut r, &mut live, size);
    db.tick(vec![(a, first)]);
    let (_, _, index) = db.view(plan.clone(), vec![0]);
    for round in 0..12 {
        let size = 1 + r.n(3);
        let ups = change(&mut r, &mut live, size);
        let t = db.tick(vec![(a, ups)]);
        // Some ticks meet in one activation, some do not.
        if round % 3 == 0 {
            let got = db.peek(index, &types, t, None, all.clone()).unwrap_or_else(|e| panic!("seed {seed}, {exprs:?}: {e:?}"));
            assert_eq!(got, db.once(plan.clone()).unwrap(), "seed {seed}, {exprs:?}, desc {desc}");
        }
    }
    let (got, want) = (db.peek(index, &types, db.now, None, all).unwrap_or_else(|e| panic!("seed {seed}, {exprs:?}: {e:?}")), db.once(plan.clone()).unwrap());
    let differ: Vec<_> = got.iter().filter(|(r, d)| want.get(*r) != Some(*d)).collect();
    assert_eq!(got, want, "seed {seed}, {exprs:?}, desc {desc}, {differ:?}");
}

#[test]
fn slices_equal_the_whole() {
    let rounds = std::env::var("LAW_ROUNDS").ok().and_then(|x| x.parse().ok()).unwrap_or(150);
    for seed in 1..=rounds {
        run(seed);
    }
}
