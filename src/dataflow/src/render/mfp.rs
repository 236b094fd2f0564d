//! Map, filter, project; with temporal bounds the scheduling of insertions and retractions.
//!
//! A row with bounds `[from, to)` that arrives at `t` is inserted at `max(t, from)` and retracted at `max(t, to)`. Updates
//! at later times are held here, bucketed by time, and sent when the input frontier passes them; nothing is sent at or
//! beyond `until`. Holding them takes a capability for the least such time, so the output frontier waits for it, and no
//! more: between expiries the frontier follows the input.

use super::collection::{map_fallible, Collection, Updates};
use super::{Env, RenderTime};
use crate::arrange::Upd;
use crate::errors::to_updates;
use crate::eval::{in_pieces, note_errors, Full};
use crate::mfp_eval::MfpEval;
use repr::{Batch, Col, Diff, SqlError};
use std::collections::BTreeMap;
use std::rc::Rc;
use timely::container::NoopBuilder;
use timely::dataflow::channels::pact::Pipeline;
use timely::dataflow::operators::generic::builder_rc::OperatorBuilder;
use timely::dataflow::operators::generic::OutputBuilder;
use timely::dataflow::operators::Capability;

pub fn render<'s, T: RenderTime>(input: Collection<'s, T>, eval: MfpEval, env: &Rc<Env>) -> Collection<'s, T> {
    if eval.is_identity() {
        return input;
    }
    let (oks, errs) = if eval.mfp().is_temporal() {
        temporal(input.oks, eval, env.clone())
    } else {
        map_fallible(input.oks, "Mfp", move |upd: Upd<T>, out| {
            in_pieces(upd, |upd| {
                let applied = eval.apply(upd.batch.clone());
                note_errors(upd, applied.errors, &mut out.errs)?;
                let made = upd.with_batch(eval.project(&applied.full));
                let made = match applied.rows {
                    None => made,
                    Some(rows) => Upd { times: made.times.take(&rows), diffs: made.diffs.take(&rows), ..made },
                };
                if !made.is_empty() {
                    out.oks.push(made);
                }
                Ok(())
            })
        })
    };
    Collection::new(oks, input.errs).with_errs(errs)
}

/// Updates for later times.
struct Scheduled<T> {
    /// By system time: the parts that become due then.
    queue: BTreeMap<u64, Vec<Upd<T>>>,
}

impl<T: Clone + PartialEq> Scheduled<T> {
    fn add(&mut self, at: u64, batch: &Batch, rows: Vec<u32>, time: T, diffs: Col<Diff>) {
        let n = rows.len();
        let part = Upd { batch: batch.take(&rows.into()), times: Col::same(time, n), diffs };
        self.queue.entry(at).or_default().push(part);
    }
}

fn temporal<'s, T: RenderTime>(stream: Updates<'s, T>, eval: MfpEval, env: Rc<Env>) -> (Updates<'s, T>, Updates<'s, T>) {
    let mut builder = OperatorBuilder::new("TemporalMfp".to_owned(), stream.scope());
    let mut input = builder.new_input(stream, Pipeline);
    let (oks, oks_stream) = builder.new_output();
    let (errs, errs_stream) = builder.new_output();
    let (mut oks, mut errs) = (OutputBuilder::<T, NoopBuilder<Upd<T>>>::from(oks), OutputBuilder::<T, NoopBuilder<Upd<T>>>::from(errs));
    builder.build(move |_| {
        let mut scheduled = Scheduled { queue: BTreeMap::new() };
        let mut held: Option<Capability<T>> = None;
        move |frontiers| {
            let (mut oks, mut errs) = (oks.activate(), errs.activate());
            input.for_each(|cap, data| {
                let mut failed = Vec::new();
                in_pieces(std::mem::take(data), |upd| {
                    let (now, parts) = split(&eval, upd, &env, &mut failed)?;
                    if !now.is_empty() {
                        oks.session_with_builder(&cap).give_container(&mut { now });
                    }
                    for (at, batch, rows, time, diffs) in parts {
                        if held.as_ref().is_none_or(|h| at < h.time().system()) {
                            held = Some(cap.delayed(&T::at(at), 0));
                        }
                        scheduled.add(at, &batch, rows, time, diffs);
                    }
                    Ok(())
                });
                if !failed.is_empty() {
                    errs.session_with_builder(&cap).give_containers(to_updates(failed).iter_mut());
                }
            });
            if env.stopped.get() {
                held = None;
                scheduled.queue.clear();
                return;
            }
            if let Some(cap) = held.take() {
                let mut cap = cap;
                let frontier = frontiers[0].frontier();
                while let Some(entry) = scheduled.queue.first_entry() {
                    let at = *entry.key();
                    if frontier.less_equal(&T::at(at)) {
                        break;
                    }
                    cap.downgrade(&T::at(at));
                    let mut parts = entry.remove();
                    oks.session_with_builder(&cap).give_containers(parts.iter_mut());
                }
                if let Some(at) = scheduled.queue.keys().next() {
                    cap.downgrade(&T::at(*at));
                    held = Some(cap);
                }
            }
        }
    });
    (oks_stream, errs_stream)
}

type Later<T> = (u64, Batch, Vec<u32>, T, Col<Diff>);

/// The updates due at their own times, and those due later by time.
fn split<T: RenderTime>(eval: &MfpEval, upd: &Upd<T>, env: &Env, failed: &mut Vec<(SqlError, T, Diff)>) -> Result<(Upd<T>, Vec<Later<T>>), Full> {
    let applied = eval.apply(upd.batch.clone());
    let original = |i: u32| applied.rows.as_ref().map_or(i, |r| r[i as usize]) as usize;
    let mut bound_errors = Vec::new();
    let bounds = eval.bounds(&applied.full, &mut bound_errors);
    let bad: std::collections::BTreeSet<u32> = bound_errors.iter().map(|e| e.0).collect();
    let all = applied.errors.iter().cloned().chain(bound_errors.into_iter().map(|(i, e)| (original(i) as u32, e)));
    note_errors(upd, all.collect(), failed)?;
    let out = eval.project(&applied.full);
    let mut now = (Vec::new(), Col::default(), Col::default());
    let mut later: BTreeMap<u64, (Vec<u32>, Vec<Diff>)> = BTreeMap::new();
    let until = env.until.unwrap_or(u64::MAX);
    for (i, bound) in bounds.into_iter().enumerate() {
        let Some((from, to)) = bound.filter(|_| !bad.contains(&(i as u32))) else { continue };
        let o = original(i as u32);
        let (time, diff) = (upd.times.get(o), *upd.diffs.get(o));
        let t = time.system();
        let (from, to) = (u64::try_from(from).unwrap_or(0).max(t), to.map(|x| u64::try_from(x).unwrap_or(0)));
        if from >= until || to.is_some_and(|x| x <= from) {
            continue;
        }
        if from == t {
            now.0.push(i as u32);
            now.1.push(time.clone());
            now.2.push(diff);
        } else {
            let e = later.entry(from).or_default();
            e.0.push(i as u32);
            e.1.push(diff);
        }
        if let Some(to) = to.filter(|x| *x < until) {
            let e = later.entry(to).or_default();
            e.0.push(i as u32);
            e.1.push(-diff);
        }
    }
    let later = later.into_iter().map(|(at, (rows, diffs))| (at, out.clone(), rows, T::at(at), Col::from_vec(diffs))).collect();
    Ok((Upd { batch: out.take(&now.0.into()), times: now.1, diffs: now.2 }, later))
}
