//! Interpreters that are slow and plain, to judge what the planner makes.
#![allow(dead_code)] // each test uses its part

/// Relations with names.
pub mod catalog;
/// HIR by nested loops.
pub mod hir_eval;
/// LIR, node by node.
pub mod lir_eval;
/// MIR, node by node.
pub mod mir_eval;
/// Random queries.
pub mod random;

use expr::{ColumnOrder, EvalCtx};
use repr::{ColType, GlobalId, RowCodec, SqlError, Value};
use std::collections::BTreeMap;

pub type Rows = Vec<(Vec<Value>, i64)>;
pub type Tables = BTreeMap<GlobalId, Rows>;
pub type Outcome = Result<Rows, SqlError>;

pub fn row_bytes(row: &[Value], types: &[ColType]) -> Vec<u8> {
    let mut out = Vec::new();
    RowCodec::new(types.to_vec()).encode_row(row, &mut out);
    out
}

pub fn key_bytes(row: &[Value], types: &[ColType]) -> Vec<u8> {
    let mut out = Vec::new();
    RowCodec::new(types.to_vec()).encode_key(row, &mut out);
    out
}

/// Equal rows added up, zeros gone, in order of bytes.
pub fn consolidate(rows: Rows, types: &[ColType]) -> Rows {
    let mut sums: BTreeMap<Vec<u8>, (Vec<Value>, i64)> = BTreeMap::new();
    for (row, diff) in rows {
        sums.entry(row_bytes(&row, types)).or_insert((row, 0)).1 += diff;
    }
    sums.into_values().filter(|(_, d)| *d != 0).collect()
}

/// Order of rows: the keys, then the bytes.
pub fn order(a: &[Value], b: &[Value], order_by: &[ColumnOrder], types: &[ColType]) -> std::cmp::Ordering {
    peers(a, b, order_by, types).then_with(|| row_bytes(a, types).cmp(&row_bytes(b, types)))
}

pub fn peers(a: &[Value], b: &[Value], order_by: &[ColumnOrder], types: &[ColType]) -> std::cmp::Ordering {
    let mut ord = std::cmp::Ordering::Equal;
    for o in order_by {
        let (mut x, mut y) = (Vec::new(), Vec::new());
        expr::agg::write_order_key(&a[o.column], &types[o.column].ty, o, &mut x);
        expr::agg::write_order_key(&b[o.column], &types[o.column].ty, o, &mut y);
        ord = ord.then(x.cmp(&y));
    }
    ord
}

/// Rows `offset..offset + limit` of each group, in order, with ties of the last if asked for.
pub fn top_k(rows: Rows, types: &[ColType], group: &[usize], order_by: &[ColumnOrder], limit: Option<i64>, offset: i64, ties: bool) -> Rows {
    let mut groups: BTreeMap<Vec<u8>, Vec<Vec<Value>>> = BTreeMap::new();
    let group_types: Vec<ColType> = group.iter().map(|g| types[*g].clone()).collect();
    for (row, diff) in rows {
        let key: Vec<Value> = group.iter().map(|g| row[*g].clone()).collect();
        let list = groups.entry(key_bytes(&key, &group_types)).or_default();
        (0..diff).for_each(|_| list.push(row.clone()));
    }
    let mut out = Vec::new();
    for mut list in groups.into_values() {
        list.sort_by(|a, b| order(a, b, order_by, types));
        let rest: Vec<_> = list.into_iter().skip(offset as usize).collect();
        let n = limit.map_or(rest.len(), |l| rest.len().min(l as usize));
        let mut end = n;
        while ties && n > 0 && end < rest.len() && peers(&rest[n - 1], &rest[end], order_by, types).is_eq() {
            end += 1;
        }
        out.extend(rest.into_iter().take(end).map(|r| (r, 1)));
    }
    out
}

pub fn ctx() -> EvalCtx {
    EvalCtx::default()
}
