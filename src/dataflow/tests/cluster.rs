//! Plans through a cluster of one and of two workers: peeks at times, subscriptions, dropping and recreating.

mod common;
use common::*;
use dataflow::Command;
use expr::{Aggregate, Scalar};
use plan::lir::{LirKind, ReduceKind};
use plan::mir::{Id, LocalId};
use plan::{Export, Import, Mfp};
use repr::{ColType, Diff, SqlType, Value};

fn each_size(f: impl Fn(Db)) {
    for workers in [1, 2] {
        f(Db::new(workers));
    }
}

fn ups(rows: &[(&[i64], Diff)]) -> Vec<(Row, Diff)> {
    rows.iter().map(|(r, d)| (row(r), *d)).collect()
}

#[test]
fn constant_and_zero_column_relations() {
    each_size(|mut db| {
        let one = lir(vec![], LirKind::Constant { rows: Ok(vec![(vec![], 1)]) });
        assert_eq!(db.once(one.clone()).unwrap(), ints(&[(&[], 1)]));
        assert_eq!(db.once(union(vec![one.clone(), one.clone()])).unwrap(), ints(&[(&[], 2)]));
        assert_eq!(db.once(distinct(union(vec![one.clone(), one]))).unwrap(), ints(&[(&[], 1)]));
        let none = lir(int8(2), LirKind::Constant { rows: Ok(vec![]) });
        assert_eq!(db.once(none).unwrap(), Bag::new());
        let e = repr::SqlError::new(repr::error::state::DIVISION_BY_ZERO, "division by zero");
        assert_eq!(db.once(lir(int8(1), LirKind::Constant { rows: Err(e.clone()) })), Err(e));
    });
}

#[test]
fn join_peeked_at_every_time() {
    each_size(|mut db| {
        let (a, b) = (db.shard(int8(2)), db.shard(int8(2)));
        db.tick(vec![(a, ups(&[(&[1, 10], 1), (&[2, 20], 1)])), (b, ups(&[(&[1, 7], 1)]))]);
        let (_, _, index) = db.view(join(get(a, 2), &[0], get(b, 2), &[0]), vec![0]);
        let t0 = db.now;
        let t1 = db.tick(vec![(b, ups(&[(&[2, 8], 1)]))]);
        let t2 = db.tick(vec![(a, ups(&[(&[1, 10], -1)])), (b, ups(&[(&[2, 8], 1)]))]);
        assert_eq!(db.scan(index, 4, t0).unwrap(), ints(&[(&[1, 10, 1, 7], 1)]));
        assert_eq!(db.scan(index, 4, t1).unwrap(), ints(&[(&[1, 10, 1, 7], 1), (&[2, 20, 2, 8], 1)]));
        assert_eq!(db.scan(index, 4, t2).unwrap(), ints(&[(&[2, 20, 2, 8], 2)]));
        let keyed = db.peek(index, &int8(4), t1, Some(vec![row(&[2]), row(&[9])]), Mfp { project: vec![3], ..Mfp::identity(4) }).unwrap();
        assert_eq!(keyed, ints(&[(&[8], 1)]));
    });
}

#[test]
fn a_read_that_waits_keeps_its_time_readable() {
    each_size(|mut db| {
        let a = db.shard(int8(1));
        db.tick(vec![(a, ups(&[(&[1], 1)]))]);
        let (_, _, index) = db.view(get(a, 1), vec![0]);
        let t1 = db.now + 1;
        let (read, types) = db.ask(index, &int8(1), t1, None, Mfp::identity(1));
        db.cluster.send(Command::AllowCompaction { index, since: t1 + 2 });
        db.tick(vec![(a, ups(&[(&[2], 1)]))]);
        db.tick(vec![(a, ups(&[(&[1], -1)]))]);
        assert_eq!(db.answer(read, &types).unwrap(), ints(&[(&[1], 1), (&[2], 1)]));
        db.cluster.send(Command::AllowCompaction { index, since: t1 + 2 });
        assert!(db.scan(index, 1, t1).is_err());
    });
}

#[test]
fn null_keys_match_nothing() {
    each_size(|mut db| {
        let (a, b) = (db.shard(int8(1)), db.shard(int8(1)));
        let null = || vec![(vec![Value::Null], 1), (row(&[1]), 1)];
        db.tick(vec![(a, null()), (b, null())]);
        assert_eq!(db.once(join(get(a, 1), &[0], get(b, 1), &[0])).unwrap(), ints(&[(&[1, 1], 1)]));
    });
}

#[test]
fn arrangements_are_imported_and_dropped_in_order() {
    each_size(|mut db| {
        let a = db.shard(int8(2));
        db.tick(vec![(a, ups(&[(&[1, 10], 1), (&[2, 20], 2)]))]);
        let (first, object, index) = db.view(get(a, 2), vec![0]);
        db.tick(vec![(a, ups(&[(&[3, 30], 1)]))]);
        db.wait(index, db.now + 1);
        let key = vec![Scalar::Column(0)];
        let import = Import::Arrangement { object, index, key: key.clone(), types: int8(2) };
        let (view, view_index) = (db.id(), db.id());
        let plan = join(get(object, 2), &[0], get(object, 2), &[0]);
        let desc = db.desc(vec![import], vec![(view, plan)], vec![Export::Arrangement { index: view_index, on: view, key }]);
        let second = db.create(desc);
        let t0 = db.now;
        let t1 = db.tick(vec![(a, ups(&[(&[1, 10], -1), (&[1, 11], 1)]))]);
        assert_eq!(db.scan(view_index, 4, t0).unwrap(), ints(&[(&[1, 10, 1, 10], 1), (&[2, 20, 2, 20], 4), (&[3, 30, 3, 30], 1)]));
        assert_eq!(db.scan(view_index, 4, t1).unwrap(), ints(&[(&[1, 11, 1, 11], 1), (&[2, 20, 2, 20], 4), (&[3, 30, 3, 30], 1)]));
        // The exporter is hidden, but lives while it is imported.
        db.cluster.send(Command::DropDataflow { id: first });
        assert!(db.scan(index, 2, t1).is_err());
        let t2 = db.tick(vec![(a, ups(&[(&[2, 20], -2)]))]);
        assert_eq!(db.scan(view_index, 4, t2).unwrap(), ints(&[(&[1, 11, 1, 11], 1), (&[3, 30, 3, 30], 1)]));
        db.cluster.send(Command::DropDataflow { id: second });
        assert!(db.scan(view_index, 4, t2).is_err());
        let (_, _, again) = db.view(get(a, 2), vec![0]);
        assert_eq!(db.scan(again, 2, db.now).unwrap(), ints(&[(&[1, 11], 1), (&[3, 30], 1)]));
    });
}

#[test]
fn groups() {
    each_size(|mut db| {
        let a = db.shard(int8(2));
        db.tick(vec![(a, ups(&[(&[1, 10], 1), (&[1, 5], 2), (&[2, 7], 1)]))]);
        let kind = ReduceKind::Collated(vec![
            (vec![0, 2], ReduceKind::Accumulable(vec![agg(def(2803), None), agg(def(2107), Some(1))])),
            (vec![1, 3], ReduceKind::Hierarchical(vec![agg(def(2131), Some(1)), agg(def(2115), Some(1))])),
        ]);
        let (_, _, index) = db.view(reduce(get(a, 2), &[0], kind, 4), vec![0]);
        let t0 = db.now;
        let t1 = db.tick(vec![(a, ups(&[(&[1, 5], -2), (&[2, 7], -1)]))]);
        let t2 = db.tick(vec![(a, ups(&[(&[1, 10], -1)]))]);
        assert_eq!(db.scan(index, 5, t0).unwrap(), ints(&[(&[1, 3, 5, 20, 10], 1), (&[2, 1, 7, 7, 7], 1)]));
        assert_eq!(db.scan(index, 5, t1).unwrap(), ints(&[(&[1, 1, 10, 10, 10], 1)]));
        assert_eq!(db.scan(index, 5, t2).unwrap(), Bag::new());
        let t3 = db.tick(vec![(a, ups(&[(&[4, 4], -1)]))]);
        let e = db.scan(index, 5, t3).unwrap_err();
        assert_eq!(e.code.as_str(), "XX001", "{e:?}");
        let t4 = db.tick(vec![(a, ups(&[(&[4, 4], 1)]))]);
        assert_eq!(db.scan(index, 5, t4).unwrap(), Bag::new());
    });
}

#[test]
fn top_of_each_group() {
    each_size(|mut db| {
        let a = db.shard(int8(2));
        db.tick(vec![(a, ups(&[(&[1, 1], 1), (&[1, 2], 2), (&[1, 3], 1), (&[2, 9], 1)]))]);
        let (_, _, desc2) = db.view(top_k(get(a, 2), &[0], &[(1, true)], Some(2), 0, false), vec![0]);
        let (_, _, skip) = db.view(top_k(get(a, 2), &[0], &[(1, false)], None, 2, false), vec![0]);
        let (_, _, ties) = db.view(top_k(get(a, 2), &[], &[(0, false)], Some(1), 0, true), vec![0]);
        let t0 = db.now;
        let t1 = db.tick(vec![(a, ups(&[(&[1, 3], -1), (&[2, 9], -1)]))]);
        assert_eq!(db.scan(desc2, 2, t0).unwrap(), ints(&[(&[1, 3], 1), (&[1, 2], 1), (&[2, 9], 1)]));
        assert_eq!(db.scan(desc2, 2, t1).unwrap(), ints(&[(&[1, 2], 2)]));
        assert_eq!(db.scan(skip, 2, t0).unwrap(), ints(&[(&[1, 2], 1), (&[1, 3], 1)]));
        assert_eq!(db.scan(ties, 2, t0).unwrap(), ints(&[(&[1, 1], 1), (&[1, 2], 2), (&[1, 3], 1)]));
    });
}

#[test]
fn left_join_by_negate_and_threshold() {
    each_size(|mut db| {
        let (a, b) = (db.shard(int8(1)), db.shard(int8(1)));
        db.tick(vec![(a, ups(&[(&[1], 2), (&[2], 1)])), (b, ups(&[(&[1], 1)]))]);
        let matched = project(join(get(a, 1), &[0], distinct(get(b, 1)), &[0]), &[0]);
        let lone = threshold(union(vec![get(a, 1), negate(matched)]));
        let (_, _, index) = db.view(lone, vec![0]);
        let t0 = db.now;
        let t1 = db.tick(vec![(b, ups(&[(&[1], -1), (&[2], 3)]))]);
        assert_eq!(db.scan(index, 1, t0).unwrap(), ints(&[(&[2], 1)]));
        assert_eq!(db.scan(index, 1, t1).unwrap(), ints(&[(&[1], 2)]));
    });
}

/// Pairs that are connected, by a recursion that only ever adds.
fn reach(edges: repr::GlobalId) -> plan::Lir {
    let id = LocalId(1);
    let local = lir(int8(2), LirKind::Get { id: Id::Local(id) });
    let step = project(join(local.clone(), &[1], get(edges, 2), &[0]), &[0, 3]);
    let value = distinct(union(vec![get(edges, 2), step]));
    lir(int8(2), LirKind::LetRec { bindings: vec![(id, value)], limit: None, return_at_limit: false, body: Box::new(local) })
}

#[test]
fn recursion_follows_insertions_and_deletions() {
    each_size(|mut db| {
        let e = db.shard(int8(2));
        db.tick(vec![(e, ups(&[(&[1, 2], 1), (&[2, 3], 1), (&[3, 1], 1)]))]);
        let (_, _, index) = db.view(reach(e), vec![0]);
        let t0 = db.now;
        let t1 = db.tick(vec![(e, ups(&[(&[3, 1], -1)]))]);
        let t2 = db.tick(vec![(e, ups(&[(&[3, 4], 1)]))]);
        let all: Vec<Vec<i64>> = (1..4).flat_map(|x| (1..4).map(move |y| vec![x, y])).collect();
        let all: Vec<(&[i64], Diff)> = all.iter().map(|r| (&r[..], 1)).collect();
        assert_eq!(db.scan(index, 2, t0).unwrap(), ints(&all));
        assert_eq!(db.scan(index, 2, t1).unwrap(), ints(&[(&[1, 2], 1), (&[1, 3], 1), (&[2, 3], 1)]));
        assert_eq!(db.scan(index, 2, t2).unwrap(), ints(&[(&[1, 2], 1), (&[1, 3], 1), (&[2, 3], 1), (&[1, 4], 1), (&[2, 4], 1), (&[3, 4], 1)]));
    });
}

#[test]
fn subscription_sums_up_to_the_view() {
    each_size(|mut db| {
        let a = db.shard(int8(2));
        db.tick(vec![(a, ups(&[(&[1, 10], 1), (&[2, 7], 1)]))]);
        let plan = reduce(get(a, 2), &[0], ReduceKind::Accumulable(vec![agg(def(2107), Some(1))]), 1);
        let (_, _, index) = db.view(plan.clone(), vec![0]);
        let (object, id, tail) = (db.id(), db.id(), db.id());
        let imports = db.imports_of(&plan);
        let export = |id, with_snapshot| Export::Subscribe { id, on: object, with_snapshot, up_to: None };
        let desc = db.desc(imports, vec![(object, plan)], vec![export(id, true), export(tail, false)]);
        let flow = db.create(desc);
        let start = db.now;
        for k in 0..20 {
            db.tick(vec![(a, ups(&[(&[k % 3, k], 1), (&[1, 10], if k == 4 { -1 } else { 0 })]))]);
        }
        let end = db.now;
        db.wait_sub(id, end + 1);
        db.wait_sub(tail, end + 1);
        for t in start..=end {
            let sub = db.subs[&id].clone();
            let sum = bag(sub.updates.iter().filter(|u| u.1 <= t).map(|u| (&u.0, u.2)));
            assert_eq!(db.scan(index, 2, t).unwrap(), sum, "at {t}");
        }
        assert!(db.subs[&tail].updates.iter().all(|u| u.1 > start));
        db.cluster.send(Command::DropDataflow { id: flow });
        db.tick(vec![]);
    });
}

#[test]
fn sums_follow_changes_and_report_bad_data() {
    each_size(|mut db| {
        let a = db.shard(int8(2));
        db.tick(vec![(a, ups(&[(&[1, 10], 1), (&[1, 5], 2), (&[2, 7], 1)]))]);
        let kind = ReduceKind::Accumulable(vec![agg(def(2803), None), agg(def(2147), Some(1))]);
        let (_, _, index) = db.view(project(reduce(get(a, 2), &[0], kind, 2), &[0, 2]), vec![0]);
        let t0 = db.now;
        let t1 = db.tick(vec![(a, ups(&[(&[1, 5], -2), (&[2, 7], -1)]))]);
        let t2 = db.tick(vec![(a, ups(&[(&[2, 7], -1)]))]);
        let t3 = db.tick(vec![(a, ups(&[(&[2, 7], 3)]))]);
        assert_eq!(db.scan(index, 2, t0).unwrap(), ints(&[(&[1, 3], 1), (&[2, 1], 1)]));
        assert_eq!(db.scan(index, 2, t1).unwrap(), ints(&[(&[1, 1], 1)]));
        assert_eq!(db.scan(index, 2, t2).unwrap_err().code.as_str(), "XX001");
        assert_eq!(db.scan(index, 2, t3).unwrap(), ints(&[(&[1, 1], 1), (&[2, 2], 1)]));
    });
}

#[test]
fn equal_keys_show_their_least_form() {
    each_size(|mut db| {
        let numeric = vec![repr::SqlType::Numeric.nullable(), repr::SqlType::Int8.nullable()];
        let a = db.shard(numeric.clone());
        let n = |s: &str| Value::Numeric(repr::Numeric::parse(s).unwrap());
        db.tick(vec![(a, vec![(vec![n("1.00"), i(1)], 1), (vec![n("1.0"), i(2)], 1), (vec![n("1.000"), i(3)], 1)])]);
        let source = lir(numeric.clone(), LirKind::Get { id: Id::Global(a) });
        let counted = reduce(source.clone(), &[0], ReduceKind::Accumulable(vec![agg(def(2803), None)]), 1);
        let unique = distinct(project(source, &[0]));
        let (_, _, counts) = db.view(counted.clone(), vec![0]);
        let (_, _, keys) = db.view(unique.clone(), vec![0]);
        let t0 = db.now;
        let t1 = db.tick(vec![(a, vec![(vec![n("1.0"), i(2)], -1)])]);
        let whole = |db: &mut Db, index, types: &[repr::ColType], t| db.peek(index, types, t, None, Mfp::identity(types.len())).unwrap();
        for (t, form, count) in [(t0, "1.0", 3), (t1, "1.00", 2)] {
            let row = vec![n(form), i(count)];
            assert_eq!(whole(&mut db, counts, &counted.types, t), bag([(&row, 1)]), "at {t}");
            assert_eq!(whole(&mut db, keys, &unique.types, t), bag([(&row[..1].to_vec(), 1)]), "at {t}");
        }
    });
}

#[test]
fn large_inputs_are_worked_through_in_slices() {
    each_size(|mut db| {
        let a = db.shard(int8(2));
        let content = |k: i64| row(&[(k * 7919) % 6007, k % 5]);
        let rows = 24_000;
        db.tick(vec![(a, (0..rows).map(|k| (content(k), 1)).collect())]);
        let max = ReduceKind::Hierarchical(vec![agg(def(2115), Some(1))]);
        let (_, _, largest) = db.view(reduce(get(a, 2), &[0], max, 1), vec![0]);
        let (_, _, unique) = db.view(distinct(get(a, 2)), vec![0]);
        let (_, _, pairs) = db.view(join(distinct(get(a, 2)), &[0], get(a, 2), &[0]), vec![0]);
        let t0 = db.now;
        let t1 = db.tick(vec![(a, (0..rows / 2).map(|k| (content(k), -1)).collect())]);
        for (t, from) in [(t0, 0), (t1, rows / 2)] {
            let mut groups: std::collections::BTreeMap<i64, std::collections::BTreeMap<i64, i64>> = Default::default();
            for k in from..rows {
                *groups.entry((k * 7919) % 6007).or_default().entry(k % 5).or_default() += 1;
            }
            let mut want = (Bag::new(), Bag::new());
            for (g, vals) in &groups {
                want.0.insert(format!("{g} {}", vals.keys().max().unwrap()), 1);
                want.1.extend(vals.keys().map(|v| (format!("{g} {v}"), 1)));
            }
            assert!(db.scan(largest, 2, t).unwrap() == want.0, "max at {t}");
            assert!(db.scan(unique, 2, t).unwrap() == want.1, "distinct at {t}");
            let n: i64 = groups.values().map(|g| g.len() as i64 * g.values().sum::<i64>()).sum();
            assert_eq!(db.scan(pairs, 4, t).unwrap().values().sum::<i64>(), n, "join at {t}");
        }
    });
}

#[test]
fn extrema_of_what_only_grows_are_those_of_all_rows() {
    let types = [SqlType::Int8, SqlType::Date, SqlType::Text, SqlType::Numeric].map(SqlType::nullable).to_vec();
    each_size(|mut db| {
        let mut random = 7u64;
        let mut n = move |below: u64| {
            random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (random >> 33) % below
        };
        let a = db.shard(types.clone());
        let mut some = |rows: u64| -> Vec<(Row, Diff)> {
            let numbers = ["1.0", "1.00", "-7", "NaN", "12.5", "12.50"];
            (0..rows)
                .map(|_| {
                    let date = if n(4) == 0 { Value::Null } else { Value::Date(n(40) as i32 - 20) };
                    let text = if n(4) == 0 { Value::Null } else { Value::text(format!("{}", n(30))) };
                    let number = Value::Numeric(repr::Numeric::parse(numbers[n(6) as usize]).unwrap());
                    (vec![i(n(4) as i64), date, text, number], 1 + n(2) as Diff)
                })
                .collect()
        };
        let source = lir(types.clone(), LirKind::Get { id: Id::Global(a) });
        let extrema = |of: fn(Vec<Aggregate>) -> ReduceKind| {
            let mut aggs = vec![];
            for column in 1..4 {
                let oid = [[2138, 2122], [2145, 2129], [2146, 2130]][column - 1];
                aggs.extend(oid.map(|oid| Aggregate { ty: types[column].clone(), ..agg(def(oid), Some(column)) }));
            }
            let kind = ReduceKind::Collated(vec![(vec![0], ReduceKind::Accumulable(vec![agg(def(2803), None)])), ((1..7).collect(), of(aggs.clone()))]);
            let out: Vec<ColType> = [types[0].clone(), SqlType::Int8.nullable()].into_iter().chain(aggs.into_iter().map(|a| a.ty)).collect();
            lir(out, LirKind::Reduce { input: Box::new(source.clone()), group_key: vec![Scalar::Column(0)], kind })
        };
        let (kept, rows) = (extrema(ReduceKind::Monotonic), extrema(ReduceKind::Hierarchical));
        db.tick(vec![(a, some(20))]);
        let ((_, _, left), (_, _, right)) = (db.view(kept.clone(), vec![0]), db.view(rows, vec![0]));
        for _ in 0..20 {
            let t = db.tick(vec![(a, some(3))]);
            let whole = |db: &mut Db, index| db.peek(index, &kept.types, t, None, Mfp::identity(kept.types.len())).unwrap();
            assert_eq!(whole(&mut db, left), whole(&mut db, right), "at {t}");
        }
        // A plan that is wrong about its input does not answer wrongly.
        let t = db.tick(vec![(a, vec![(vec![i(0), Value::Date(99), Value::Null, Value::Null], -1)])]);
        let e = db.peek(left, &kept.types, t, None, Mfp::identity(kept.types.len())).unwrap_err();
        assert_eq!(e.code.as_str(), "XX000", "{e:?}");
    });
}
