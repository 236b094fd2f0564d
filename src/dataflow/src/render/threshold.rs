//! Rows with positive counts.
//!
//! Counts are taken by SQL equality: 1.0 and 1.00 are one row that retractions of either form diminish. Where forms meet,
//! retractions use up the greatest forms first.

use super::arranged::{arrange, flatten, Traced};
use super::collection::Collection;
use super::{Context, RenderTime};
use crate::arrange::{Layout, Outputs};
use repr::{ColType, Diff};
use std::rc::Rc;

pub fn render<'s, T: RenderTime>(cx: &Context<'s, T>, input: Collection<'s, T>, types: &[ColType]) -> Collection<'s, T> {
    let layout = Rc::new(Layout::whole(types.to_vec()));
    let (arranged, _) = arrange(input.oks, layout.clone(), vec![true; types.len()], "ArrangeThreshold", &cx.env);
    let logic = |_: &[u8], vals: &[(&[u8], Diff)], out: &mut Outputs| {
        let mut debt: Diff = vals.iter().map(|v| v.1.min(0)).sum();
        let mut kept: Vec<(&[u8], Diff)> = Vec::new();
        for (v, n) in vals.iter().rev().filter(|v| v.1 > 0) {
            let used = (*n).min(-debt);
            debt += used;
            if *n > used {
                kept.push((v, n - used));
            }
        }
        for (v, n) in kept {
            out.push(n, |b| b.extend_from_slice(v));
        }
    };
    let reduced = T::reduce(arranged, "Threshold", logic, &cx.env);
    Collection::new(flatten(&Traced::Local(reduced), layout, &cx.env), input.errs)
}
