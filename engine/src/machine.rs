//! The interface between a machine and whatever drives it.

use crate::{Duration, Instant};

/// A protocol state machine without I/O.
///
/// The contract, which [`crate::virtual_time`] and [`crate::real_time`] keep and tests check:
/// - `now` never goes back;
/// - after every `handle*` the driver drains [`Machine::poll_output`] to `None`;
/// - calling [`Machine::handle_timeout`] early is harmless, calling it late loses nothing but is a fault of the driver;
/// - after `handle_timeout(t)` no deadline at or before `t` remains.
pub trait Machine {
    /// What reaches the machine; serialisable, so that the event log is the replay file.
    type Input;
    /// What the machine wants done.
    type Output;

    fn handle(&mut self, now: Instant, input: Self::Input);
    fn handle_timeout(&mut self, now: Instant);
    fn poll_output(&mut self) -> Option<Self::Output>;
    /// When the machine must be called next; `None` means only when something arrives.
    fn next_timeout(&self) -> Option<Instant>;
}

/// A place for outputs: what the drivers hand them to.
pub trait Sink<O> {
    fn put(&mut self, now: Instant, output: O);
}

impl<O, F: FnMut(Instant, O)> Sink<O> for F {
    fn put(&mut self, now: Instant, output: O) {
        self(now, output)
    }
}

/// Hands every waiting output to `sink`.
pub fn drain<M: Machine>(machine: &mut M, now: Instant, sink: &mut impl Sink<M::Output>) {
    while let Some(output) = machine.poll_output() {
        sink.put(now, output);
    }
}

/// How far behind its deadline a machine was called.
pub fn lateness(deadline: Instant, called: Instant) -> Duration {
    called.since(deadline)
}
