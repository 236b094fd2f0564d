//! Linear joins: rows flow through stages, each a binary join with an arrangement.
//!
//! A looked-up import that has an arrangement with exactly the stage's key is used as it is; every other side is arranged
//! here. Rows with a NULL in a key column that does not match NULLs never enter an arrangement made here.

use super::arranged::{arrange, Traced, STEP};
use super::collection::{concat, Collection, Updates};
use super::{mfp, Context, RenderTime};
use crate::arrange::{join, JoinCfg, Layout, Matches, Upd};
use crate::mfp_eval::MfpEval;
use plan::lir::JoinStage;
use plan::{Lir, LirKind};
use repr::{Batch, ColType};
use std::rc::Rc;
use timely::dataflow::Stream;

pub fn render<'s, T: RenderTime>(cx: &mut Context<'s, T>, inputs: &[Lir], start: usize, stages: &[JoinStage]) -> Collection<'s, T> {
    let mut errs: Vec<Updates<'s, T>> = Vec::new();
    let mut types = inputs[start].types.clone();
    let mut stream: Option<Updates<'s, T>> = None;
    for (n, stage) in stages.iter().enumerate() {
        let keep = &stage.null_safe;
        let (left, left_layout) = match stream.take() {
            Some(s) => side(cx, s, types.clone(), &stage.stream_key, keep, &mut errs),
            None => input_side(cx, &inputs[start], &stage.stream_key, keep, &mut errs),
        };
        let (right, right_layout) = input_side(cx, &inputs[stage.lookup], &stage.lookup_key, keep, &mut errs);
        types.extend(inputs[stage.lookup].types.iter().cloned());
        let eval = MfpEval::new(stage.mfp.clone(), &types, cx.env.ctx.clone());
        let joined = binary(cx, left, left_layout, right, right_layout, &eval, n);
        let out_types: Vec<ColType> = {
            let mut all = types.clone();
            for m in &stage.mfp.maps {
                let t = m.typ(&all);
                all.push(t);
            }
            stage.mfp.project.iter().map(|c| all[*c].clone()).collect()
        };
        let none = super::arranged::empty(cx.scope);
        let applied = mfp::render(Collection::new(joined, none), eval, &cx.env);
        errs.push(applied.errs);
        stream = Some(applied.oks);
        types = out_types;
    }
    let oks = match stream {
        Some(s) => s,
        None => {
            let only = cx.render(&inputs[start]);
            errs.push(only.errs);
            only.oks
        }
    };
    Collection::new(oks, concat(errs))
}

/// A stream arranged by `key`.
fn side<'s, T: RenderTime>(
    cx: &Context<'s, T>,
    stream: Updates<'s, T>,
    types: Vec<ColType>,
    key: &[expr::Scalar],
    keep: &[bool],
    errs: &mut Vec<Updates<'s, T>>,
) -> (Traced<'s, T>, Rc<Layout>) {
    let layout = Rc::new(Layout::new(types, key.to_vec()));
    let (arranged, failed) = arrange(stream, layout.clone(), keep.to_vec(), "ArrangeJoin", &cx.env);
    errs.extend(failed);
    (Traced::Local(arranged), layout)
}

/// An input arranged by `key`: as imported, as another stage arranged it, or anew.
fn input_side<'s, T: RenderTime>(
    cx: &mut Context<'s, T>,
    input: &Lir,
    key: &[expr::Scalar],
    keep: &[bool],
    errs: &mut Vec<Updates<'s, T>>,
) -> (Traced<'s, T>, Rc<Layout>) {
    if let LirKind::Get { id } = &input.kind {
        if let Some((traced, layout, failed)) = cx.arrangement(*id, key, keep) {
            errs.push(failed);
            return (traced, layout);
        }
    }
    let collection = cx.render(input);
    let (traced, layout) = if let LirKind::Get { id } = &input.kind {
        let mut failed = Vec::new();
        let made = side(cx, collection.oks, input.types.clone(), key, keep, &mut failed);
        let mut all = vec![collection.errs];
        all.extend(failed);
        let all = concat(all);
        cx.remember(*id, key, keep, made.0.clone(), made.1.clone(), all.clone());
        errs.push(all);
        made
    } else {
        errs.push(collection.errs);
        side(cx, collection.oks, input.types.clone(), key, keep, errs)
    };
    (traced, layout)
}

fn binary<'s, T: RenderTime>(
    cx: &Context<'s, T>,
    left: Traced<'s, T>,
    left_layout: Rc<Layout>,
    right: Traced<'s, T>,
    right_layout: Rc<Layout>,
    eval: &MfpEval,
    stage: usize,
) -> Stream<'s, T, Upd<T>> {
    let split = left_layout.types.len();
    let want: Vec<bool> = (0..split + right_layout.types.len()).map(|c| eval.reads(c)).collect();
    let emit = move |m: Matches<'_, T>| {
        let Batch { len, mut cols } = left_layout.decode(&m.keys, &m.left, |c| want[c]);
        cols.extend(right_layout.decode(&m.keys, &m.right, |c| want[split + c]).cols);
        Upd { batch: Batch { len, cols }, times: m.times, diffs: m.diffs }
    };
    let cfg =
        || JoinCfg { resume: None, start: T::at(cx.env.as_of), ordered: T::TOTAL, budget: STEP, cancel: cx.env.stopped.clone(), gate: cx.env.gate.clone() };
    let name = format!("Join {stage}");
    match (left, right) {
        (Traced::Local(l), Traced::Local(r)) => join(l, r, &name, cfg(), emit),
        (Traced::Local(l), Traced::Imported(r)) => join(l, r, &name, cfg(), emit),
        (Traced::Imported(l), Traced::Local(r)) => join(l, r, &name, cfg(), emit),
        (Traced::Imported(l), Traced::Imported(r)) => join(l, r, &name, cfg(), emit),
    }
}
