//! ORDER BY as bytes: a prefix of vals, so that an arrangement keeps a group's rows in that order.
//!
//! ```text
//!   val    [sort key][row bytes of the columns the key does not give back][u32 length of the sort key]
//!   sort key, per column: 0 NULL first | 1 value | 2 NULL last, then the canonical bytes, inverted for DESC
//! ```
//!
//! Ties are broken by the row's bytes (DECISIONS 11). The length at the end does not disturb the order: it is the same
//! for equal sort keys.

use crate::arrange::{Body, Layout, Slab, Upd};
use expr::agg::write_order_key;
use expr::{ColumnOrder, EvalCtx};
use repr::{column, Diff, SqlError};

/// Encodes updates with the sort key in front of each val.
pub fn encode<T: Clone + PartialEq>(layout: &Layout, order: &[ColumnOrder], upd: &Upd<T>, ctx: &EvalCtx) -> (Body<T, Diff>, Vec<(u32, SqlError)>) {
    let (mut body, errors) = layout.encode(upd, ctx, &vec![true; layout.key.len()]);
    if body.is_empty() {
        return (body, errors);
    }
    let mut failed = errors.iter().map(|e| e.0 as usize).peekable();
    let mut vals = Slab::default();
    let mut u = 0;
    for i in 0..upd.len() {
        if failed.next_if_eq(&i).is_some() {
            continue;
        }
        let start = vals.bytes.len();
        for o in order {
            let ty = &layout.types[o.column].ty;
            write_order_key(&column::get(&upd.batch.cols[o.column], ty, i), ty, o, &mut vals.bytes);
        }
        let len = (vals.bytes.len() - start) as u32;
        vals.bytes.extend_from_slice(body.val(u));
        vals.bytes.extend_from_slice(&len.to_le_bytes());
        vals.ends.push(vals.bytes.len() as u32);
        u += 1;
    }
    body.vals = vals;
    body.no_vals = false;
    (body, errors)
}

/// Sort key and row part of a val that [`encode`] wrote.
pub fn split(val: &[u8]) -> (&[u8], &[u8]) {
    let Some((rest, len)) = val.split_last_chunk::<4>() else { return (&[], val) };
    rest.split_at(u32::from_le_bytes(*len) as usize)
}
