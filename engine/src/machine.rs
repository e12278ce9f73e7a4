//! The interface between a machine and whatever drives it.

use crate::Instant;

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

    /// Before this instant nothing comes out that the outside could see, as long as nothing arrives; `None`: nothing at all will.
    /// A driver whose clock is the wall's may sleep until then and do all that was due in between at once, each at its own
    /// instant. Never before [`Self::next_timeout`].
    fn next_visible(&self) -> Option<Instant> {
        self.next_timeout()
    }
}
