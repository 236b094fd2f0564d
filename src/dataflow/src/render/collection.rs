//! Collections as pairs, and the operator shapes that the renderers share.

use crate::arrange::{Time, Upd};
use crate::errors::to_updates;
use repr::{Diff, SqlError};
use timely::container::NoopBuilder;
use timely::dataflow::channels::pact::Pipeline;
use timely::dataflow::operators::generic::builder_rc::OperatorBuilder;
use timely::dataflow::operators::generic::{Operator, OutputBuilder};
use timely::dataflow::operators::Concatenate;
use timely::dataflow::Stream;
use timely::progress::operate::FrontierInterest;
use timely::Container;

pub type Updates<'s, T> = Stream<'s, T, Upd<T>>;

/// If `errs` is empty at a time, `oks` at that time is right.
pub struct Collection<'s, T: Time> {
    pub oks: Updates<'s, T>,
    pub errs: Updates<'s, T>,
}

impl<T: Time> Clone for Collection<'_, T> {
    fn clone(&self) -> Self {
        Collection { oks: self.oks.clone(), errs: self.errs.clone() }
    }
}

impl<'s, T: Time> Collection<'s, T> {
    pub fn new(oks: Updates<'s, T>, errs: Updates<'s, T>) -> Self {
        Collection { oks, errs }
    }
    pub fn with_errs(self, more: Updates<'s, T>) -> Self {
        let errs = concat(vec![self.errs, more]);
        Collection { oks: self.oks, errs }
    }
}

/// All streams of a non-empty list as one.
pub fn concat<'s, T: Time, C: Container>(mut streams: Vec<Stream<'s, T, C>>) -> Stream<'s, T, C> {
    if streams.len() == 1 {
        return streams.remove(0);
    }
    let scope = streams[0].scope();
    scope.concatenate(streams)
}

/// One container in, one out.
pub fn map<'s, T: Time, C: Container, D: Container>(stream: Stream<'s, T, C>, name: &str, mut logic: impl FnMut(C) -> D + 'static) -> Stream<'s, T, D> {
    map_many(stream, name, move |c| Some(logic(c)))
}

/// One container in, some out.
pub fn map_many<'s, T: Time, C: Container, D: Container, I: IntoIterator<Item = D>>(
    stream: Stream<'s, T, C>,
    name: &str,
    mut logic: impl FnMut(C) -> I + 'static,
) -> Stream<'s, T, D> {
    stream.unary::<NoopBuilder<D>, _, _, _>(Pipeline, name, move |_, _| {
        move |input, output| {
            input.for_each(|cap, data| {
                let mut session = output.session_with_builder(&cap);
                logic(std::mem::take(data)).into_iter().for_each(|mut out| session.give_container(&mut out));
            })
        }
    })
}

/// Where a stateless operator's results go.
pub struct Sinks<T, D> {
    pub oks: Vec<D>,
    pub errs: Vec<(SqlError, T, Diff)>,
}

/// A stateless operator that can fail by row.
pub fn map_fallible<'s, T: Time, C: Container, D: Container>(
    stream: Stream<'s, T, C>,
    name: &str,
    mut logic: impl FnMut(C, &mut Sinks<T, D>) + 'static,
) -> (Stream<'s, T, D>, Updates<'s, T>) {
    let mut builder = OperatorBuilder::new(name.to_owned(), stream.scope());
    let mut input = builder.new_input(stream, Pipeline);
    builder.set_notify_for(0, FrontierInterest::Never);
    let (oks, oks_stream) = builder.new_output();
    let (errs, errs_stream) = builder.new_output();
    let (mut oks, mut errs) = (OutputBuilder::<T, NoopBuilder<D>>::from(oks), OutputBuilder::<T, NoopBuilder<Upd<T>>>::from(errs));
    builder.build(move |_| {
        let mut sinks = Sinks { oks: Vec::new(), errs: Vec::new() };
        move |_| {
            let (mut oks, mut errs) = (oks.activate(), errs.activate());
            input.for_each(|cap, data| {
                logic(std::mem::take(data), &mut sinks);
                if !sinks.oks.is_empty() {
                    oks.session_with_builder(&cap).give_containers(sinks.oks.iter_mut());
                    sinks.oks.clear();
                }
                if !sinks.errs.is_empty() {
                    errs.session_with_builder(&cap).give_containers(to_updates(std::mem::take(&mut sinks.errs)).iter_mut());
                }
            });
        }
    });
    (oks_stream, errs_stream)
}
