//! Aggregates: results as Postgres gives them, states that cancel.

use expr::agg::{self, Accum};
use expr::{Aggregate, ColumnOrder, EvalCtx, Scalar};
use repr::{Numeric, SqlType, Value};

fn aggregate(oid: u32, args: usize, ty: SqlType) -> Aggregate {
    let func = agg::by_oid(oid).expect("implemented");
    Aggregate { func, args: (0..args).map(Scalar::Column).collect(), direct: 0, distinct: false, filter: None, order_by: vec![], ty: ty.nullable() }
}
fn num(unscaled: i128, scale: u16) -> Value {
    Value::Numeric(Numeric::Small { unscaled, scale })
}
fn over(a: &Aggregate, ty: SqlType, values: &[Value]) -> Value {
    let rows: Vec<_> = values.iter().map(|v| (vec![v.clone()], 1)).collect();
    agg::evaluate(a, &rows, &[ty.nullable()], &EvalCtx::default()).unwrap()
}

#[test]
fn sums_and_averages() {
    let ints = [Value::Int4(1), Value::Null, Value::Int4(2), Value::Int4(4)];
    assert_eq!(over(&aggregate(2108, 1, SqlType::Int8), SqlType::Int4, &ints), Value::Int8(7));
    // 2.3333333333333333: sixteen significant digits, as Postgres
    assert_eq!(over(&aggregate(2101, 1, SqlType::Numeric), SqlType::Int4, &ints), num(23_333_333_333_333_333, 16));
    assert_eq!(over(&aggregate(2147, 1, SqlType::Int8), SqlType::Int4, &ints), Value::Int8(3));
    assert_eq!(over(&aggregate(2101, 1, SqlType::Numeric), SqlType::Int4, &[Value::Null]), Value::Null);
    // variance(1,2,4) = 2.3333333333333333, stddev_pop = 1.2472191289246471
    assert_eq!(over(&aggregate(2149, 1, SqlType::Numeric), SqlType::Int4, &ints), num(23_333_333_333_333_333, 16));
    assert_eq!(over(&aggregate(2725, 1, SqlType::Numeric), SqlType::Int4, &ints), num(12_472_191_289_246_471, 16));
    let ns = [num(10, 1), num(2, 0), num(4, 0)];
    assert_eq!(over(&aggregate(2114, 1, SqlType::Numeric), SqlType::Numeric, &ns), num(70, 1));
}

#[test]
fn states_cancel_and_scales_shrink() {
    let a = aggregate(2114, 1, SqlType::Numeric);
    let mut s = Accum::new(a.func);
    s.update_values(&[num(12345, 3)], 2);
    s.update_values(&[num(5, 0)], 1);
    s.update_values(&[Value::Numeric(Numeric::NaN)], 1);
    assert_eq!(s.finalize(&a).unwrap(), Value::Numeric(Numeric::NaN));
    s.update_values(&[Value::Numeric(Numeric::NaN)], -1);
    assert_eq!(s.finalize(&a).unwrap(), num(29690, 3));
    s.update_values(&[num(12345, 3)], -2);
    assert_eq!(s.finalize(&a).unwrap(), num(5, 0));
    let mut minus = s.clone();
    minus.scale(-1);
    s.plus_equals(&minus);
    assert!(s.is_zero());
}

/// Rows may go and others come with the same number and sum.
#[test]
fn a_variance_that_changes_is_not_zero() {
    let of: [(u32, fn(i32) -> Value); 3] =
        [(2719, Value::Int4), (2722, |v| Value::Float8(f64::from(v))), (2723, |v| Value::Numeric(Numeric::from(i64::from(v))))];
    for (oid, value) in of {
        let mut s = Accum::new(aggregate(oid, 1, SqlType::Numeric).func);
        for (v, diff) in [(1, -1), (3, -1), (0, 1), (4, 1)] {
            s.update_values(&[value(v)], diff);
        }
        assert!(!s.is_zero(), "{oid}");
    }
}

#[test]
fn ordered_and_distinct() {
    let mut a = aggregate(2335, 1, SqlType::Int4.array_of());
    a.distinct = true;
    a.order_by = vec![(Scalar::Column(0), ColumnOrder { column: 0, desc: true, nulls_last: false })];
    let ints: Vec<Value> = [2, 1, 2, 3].into_iter().map(Value::Int4).chain([Value::Null]).collect();
    assert_eq!(over(&a, SqlType::Int4, &ints), Value::array(vec![Value::Null, Value::Int4(3), Value::Int4(2), Value::Int4(1)]));
}
