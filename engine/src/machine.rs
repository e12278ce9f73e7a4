//! The interface between a machine and its driver.

use crate::Instant;

/// A protocol state machine without I/O.
///
/// The contract, which [`crate::virtual_time`] and [`crate::real_time`] keep and tests check:
/// - `now` never decreases;
/// - after every `handle*` the driver drains [`Machine::poll_output`] to `None`;
/// - an early call of [`Machine::handle_timeout`] has no effect; a late one loses nothing, but is a defect of the driver;
/// - after `handle_timeout(t)` no deadline at or before `t` remains.
pub trait Machine {
    /// An event from outside; serialisable, so that the event log is the replay file.
    type Input;
    /// An action that the driver carries out.
    type Output;

    /// Takes an input at `now`.
    fn handle(&mut self, now: Instant, input: Self::Input);
    /// Does everything that is due at or before `now`.
    fn handle_timeout(&mut self, now: Instant);
    /// The next action; `None`: there is none left at this instant.
    fn poll_output(&mut self) -> Option<Self::Output>;
    /// The instant at which the machine must be called next; `None`: only when an input arrives.
    fn next_timeout(&self) -> Option<Instant>;

    /// The earliest instant of an externally visible output if no input arrives before; `None`: there will be none.
    /// A wall-clock driver may sleep until then and then do all that was due in between, each event at its own
    /// instant. Never before [`Self::next_timeout`].
    fn next_visible(&self) -> Option<Instant> {
        self.next_timeout()
    }
}

/// The machine that does nothing, for a driver that only watches descriptors.
impl Machine for () {
    type Input = ();
    type Output = ();

    fn handle(&mut self, _: Instant, (): ()) {}
    fn handle_timeout(&mut self, _: Instant) {}
    fn poll_output(&mut self) -> Option<()> {
        None
    }
    fn next_timeout(&self) -> Option<Instant> {
        None
    }
}
