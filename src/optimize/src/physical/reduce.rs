//! How groups are maintained.

use expr::agg::AggKind;
use expr::Aggregate;
use plan::lir::ReduceKind;

/// The cheapest kind that can keep all aggregates; a mixture is taken apart. `grows`: rows are never taken back.
pub(super) fn kind(aggregates: &[Aggregate], grows: bool) -> ReduceKind {
    let (mut accumulable, mut extremum, mut basic) = (vec![], vec![], vec![]);
    for (i, a) in aggregates.iter().enumerate() {
        match a.func.kind {
            AggKind::Accumulable(_) => accumulable.push(i),
            // DISTINCT changes nothing about an extremum.
            AggKind::Extremum { .. } => extremum.push(i),
            _ => basic.push(i),
        }
    }
    let pick = |which: &[usize]| -> Vec<Aggregate> {
        let mut list: Vec<Aggregate> = which.iter().map(|i| aggregates[*i].clone()).collect();
        for a in &mut list {
            if matches!(a.func.kind, AggKind::Extremum { .. }) {
                a.distinct = false;
                a.order_by.clear();
            } else if matches!(a.func.kind, AggKind::Accumulable(_)) {
                // Sums and counts are exact, whatever the order.
                a.order_by.clear();
            }
        }
        list
    };
    let mut parts = Vec::new();
    if !accumulable.is_empty() {
        parts.push((accumulable.clone(), ReduceKind::Accumulable(pick(&accumulable))));
    }
    if !extremum.is_empty() {
        let of = if grows { ReduceKind::Monotonic } else { ReduceKind::Hierarchical };
        parts.push((extremum.clone(), of(pick(&extremum))));
    }
    if !basic.is_empty() {
        parts.push((basic.clone(), ReduceKind::Basic(pick(&basic))));
    }
    match parts.len() {
        0 => ReduceKind::Distinct,
        1 => parts.remove(0).1,
        _ => ReduceKind::Collated(parts),
    }
}
