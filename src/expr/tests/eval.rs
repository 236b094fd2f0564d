//! Evaluation: errors belong to rows, and only rows that reach an expression can fail in it.

use expr::{eval, eval_row, eval_whole, func, EvalCtx, Scalar};
use repr::{column, Batch, ColType, SqlType, Value};

fn call(oid: u32, args: Vec<Scalar>, ty: SqlType) -> Scalar {
    Scalar::Call { func: func::by_oid(oid).expect("implemented"), args, ty: ty.nullable() }
}
fn int(i: i32) -> Scalar {
    Scalar::literal(Value::Int4(i), SqlType::Int4)
}
const DIV: u32 = 154;
const ADD: u32 = 177;
const LT: u32 = 66;
const REPEAT: u32 = 1622;

fn run(expr: &Scalar, values: &[Option<i32>]) -> (Vec<Value>, Vec<u32>) {
    let types: Vec<ColType> = vec![SqlType::Int4.nullable()];
    let rows: Vec<Vec<Value>> = values.iter().map(|v| vec![v.map_or(Value::Null, Value::Int4)]).collect();
    let ctx = EvalCtx::default();
    let batch = Batch::from_rows(&types, rows.iter().map(|r| r.as_slice()));
    let out = eval(expr, &batch, &types, &ctx);
    let ty = expr.typ(&types).ty;
    let got: Vec<Value> = (0..batch.len).map(|i| column::get(&out.column, &ty, i)).collect();
    let failed: Vec<u32> = out.errors.iter().map(|e| e.0).collect();
    for (i, row) in rows.iter().enumerate() {
        match eval_row(expr, row, &types, &ctx) {
            Ok(v) => assert_eq!(v, got[i], "row {i}"),
            Err(e) => assert_eq!(out.errors.iter().find(|(r, _)| *r as usize == i).map(|x| &x.1), Some(&e), "row {i}"),
        }
    }
    (got, failed)
}

#[test]
fn division_fails_by_row() {
    let e = call(ADD, vec![call(DIV, vec![int(10), Scalar::Column(0)], SqlType::Int4), int(1)], SqlType::Int4);
    let (v, f) = run(&e, &[Some(2), Some(0), None, Some(5)]);
    assert_eq!(v, [Value::Int4(6), Value::Null, Value::Null, Value::Int4(3)]);
    assert_eq!(f, [1]);
    let overflow = call(ADD, vec![Scalar::Column(0), int(1)], SqlType::Int4);
    assert_eq!(run(&overflow, &[Some(i32::MAX), None, Some(1)]).1, [0]);
}

#[test]
fn guards_protect() {
    let quotient = call(DIV, vec![int(10), Scalar::Column(0)], SqlType::Int4);
    let small = call(LT, vec![quotient.clone(), int(5)], SqlType::Bool);
    let positive = call(LT, vec![int(0), Scalar::Column(0)], SqlType::Bool);
    let rows = [Some(0), Some(1), Some(5), None, Some(-1)];
    let and = Scalar::And(vec![positive.clone(), small.clone()]);
    assert_eq!(run(&and, &rows), (vec![Value::Bool(false), Value::Bool(false), Value::Bool(true), Value::Null, Value::Bool(false)], vec![]));
    let case = Scalar::Case { branches: vec![(positive, quotient.clone())], otherwise: Box::new(int(-7)), ty: SqlType::Int4.nullable() };
    assert_eq!(run(&case, &rows), (vec![Value::Int4(-7), Value::Int4(10), Value::Int4(2), Value::Int4(-7), Value::Int4(-7)], vec![]));
    let coalesce = Scalar::Coalesce(vec![Scalar::Column(0), call(DIV, vec![int(1), int(0)], SqlType::Int4)], SqlType::Int4.nullable());
    assert_eq!(run(&coalesce, &rows).1, [3]);
    assert_eq!(run(&Scalar::Or(vec![small, Scalar::bool(true)]), &rows).1, [0]);
}

/// Texts of a million bytes: a column has room for 67 of them, and the rows after that are to be evaluated by themselves.
#[test]
fn long_texts_are_computed_in_pieces() {
    let types: Vec<ColType> = vec![SqlType::Int4.not_null()];
    let ctx = EvalCtx::default();
    let rows: Vec<Vec<Value>> = (0..200).map(|i| vec![Value::Int4(i)]).collect();
    let batch = Batch::from_rows(&types, rows.iter().map(|r| r.as_slice()));
    let text = |n: Scalar| call(REPEAT, vec![Scalar::literal(Value::text("x"), SqlType::Text), n], SqlType::Text);
    let computed = text(call(ADD, vec![Scalar::Column(0), int(1_000_000)], SqlType::Int4));
    let odd = Scalar::Case {
        branches: vec![(call(LT, vec![Scalar::Column(0), int(100)], SqlType::Bool), text(int(1_000_000)))],
        otherwise: Box::new(Scalar::literal(Value::text("short"), SqlType::Text)),
        ty: SqlType::Text.nullable(),
    };
    for (expr, whole) in [(computed, 200_019_900), (text(int(1_000_000)), 200_000_000), (odd, 100_000_500)] {
        let part = eval(&expr, &batch, &types, &ctx);
        let first = part.errors.first().map(|e| e.0);
        assert_eq!(first, Some(67), "as many as there is room for");
        assert!(part.errors.iter().all(|e| column::is_too_large(&e.1)));
        let all = eval_whole(&expr, &batch, &types, &ctx);
        assert!(all.errors.is_empty());
        assert_eq!((all.column.len(), column::column_bytes(&all.column)), (200, whole));
    }
    // A value for which nothing has room stays an error.
    let long = eval_whole(&text(int(2_000_000_000)), &batch, &types, &ctx);
    assert_eq!(long.errors.len(), 200);
}
