//! Linear joins: rows flow through stages, each a binary join with an arrangement.
//!
//! A looked-up import that has an arrangement with exactly the stage's key is used as it is; every other side is arranged
//! here. Rows with a NULL in a key column that does not match NULLs never enter an arrangement made here; where both sides are imported, the join passes over them.

use super::arranged::{arrange, Traced, STEP};
use super::collection::{concat, Collection, Updates};
use super::{mfp, Context, RenderTime};
use crate::arrange::{join, JoinCfg, Layout, Matches, Unmatched, Upd};
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
        let left = match stream.take() {
            Some(s) => side(cx, s, types.clone(), &stage.stream_key, keep, &mut errs),
            None => input_side(cx, &inputs[start], &stage.stream_key, keep, &mut errs),
        };
        let right = input_side(cx, &inputs[stage.lookup], &stage.lookup_key, keep, &mut errs);
        types.extend(inputs[stage.lookup].types.iter().cloned());
        let eval = MfpEval::new(stage.mfp.clone(), &types, cx.env.ctx.clone());
        let joined = binary(cx, left, right, keep, &eval, n);
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

/// The keys with a NULL that matches none, where two arrangements may have them.
fn null_keys(left: &Rc<Layout>, right: &Layout, keep: &[bool]) -> Option<Unmatched> {
    let nullable = |l: &Layout, c: usize| l.key_codec().types()[c].nullable;
    let columns: Vec<usize> = (0..keep.len()).filter(|c| !keep[*c] && nullable(left, *c) && nullable(right, *c)).collect();
    let layout = left.clone();
    (!columns.is_empty()).then(|| Rc::new(move |key: &[u8]| layout.key_codec().any_null(key, &columns)) as Unmatched)
}

fn binary<'s, T: RenderTime>(
    cx: &Context<'s, T>,
    (left, left_layout): (Traced<'s, T>, Rc<Layout>),
    (right, right_layout): (Traced<'s, T>, Rc<Layout>),
    keep: &[bool],
    eval: &MfpEval,
    stage: usize,
) -> Stream<'s, T, Upd<T>> {
    let both_imported = matches!((&left, &right), (Traced::Imported(_), Traced::Imported(_)));
    let unmatched = if both_imported { null_keys(&left_layout, &right_layout, keep) } else { None };
    let split = left_layout.types.len();
    let want: Vec<bool> = (0..split + right_layout.types.len()).map(|c| eval.reads(c)).collect();
    let emit = move |m: Matches<'_, T>| {
        let Batch { len, mut cols } = left_layout.decode(&m.keys, &m.left, |c| want[c]);
        cols.extend(right_layout.decode(&m.keys, &m.right, |c| want[split + c]).cols);
        Upd { batch: Batch { len, cols }, times: m.times, diffs: m.diffs }
    };
    let (start, cancel, gate) = (T::at(cx.env.as_of), cx.env.stopped.clone(), cx.env.gate.clone());
    let cfg = || JoinCfg { resume: None, start, ordered: T::TOTAL, budget: STEP, cancel, gate, unmatched };
    let name = format!("Join {stage}");
    match (left, right) {
        (Traced::Local(l), Traced::Local(r)) => join(l, r, &name, cfg(), emit),
        (Traced::Local(l), Traced::Imported(r)) => join(l, r, &name, cfg(), emit),
        (Traced::Imported(l), Traced::Local(r)) => join(l, r, &name, cfg(), emit),
        (Traced::Imported(l), Traced::Imported(r)) => join(l, r, &name, cfg(), emit),
    }
}
