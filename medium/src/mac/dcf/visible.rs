//! Lower bounds on the next externally visible event of a station: the end of a frame with data, the end of an ACK, or the end
//! of the attempts for a packet.
//!
//! A driver sleeps until then ([`crate::medium::Medium`]'s `next_visible`). The bounds hold as long as no packet comes from
//! a host. Actions that *another* station's frame on the air will cause are covered by the bound of that frame.

use super::{needs_rts, Dcf, Packet, Response, State};
use crate::mac::Dest;
use crate::phy::radio::{FrameKind, Radio, Timeouts};
use manet_engine::{Duration, Instant};

/// Time from the end of an RTS to the end of its data frame, which lasts `data`.
pub fn after_rts(radio: &Radio, data: Duration) -> Duration {
    radio.sifs() * 2 + radio.cts_airtime() + data
}

/// Time from the end of a CTS that reserves `reserves`, of which `ack` is the ACK's airtime, to the end of its data frame.
pub fn after_cts(radio: &Radio, reserves: Duration, ack: Duration) -> Duration {
    reserves - radio.sifs() - ack
}

impl Dcf {
    /// Earliest visible event of this station. `event`: the next instant at which anything happens on the air. `None`: none
    /// before another station or the host addresses it.
    pub fn visible_from(&self, event: Instant) -> Option<Instant> {
        let radio = &self.radio;
        match &self.state {
            State::Idle if self.counts_down() => {
                let service = self.service.as_ref()?;
                Some(self.next_timeout()? + self.exchange(&service.packet, 0))
            }
            State::Idle => Some(event + self.next_exchange()?),
            State::AwaitCts { until } | State::AwaitAck { until } => {
                // by the standard, any frame heard may end the wait
                let over = if radio.rules.timeouts == Timeouts::Standard { event } else { *until };
                self.visible_if_unanswered(over)
            }
            State::AwaitData { until } => Some(*until + self.next_exchange()?),
            State::Sifs { at, then: Response::Ack { mode, .. } } => Some(*at + radio.answer_airtime(*mode)),
            State::Sifs { at, then: Response::Data } => {
                let packet = &self.service.as_ref()?.packet;
                Some(*at + packet.shortest_airtime(radio, FrameKind::Data))
            }
            State::Sifs { at, then: Response::Cts { reserves, ack_airtime, .. } } => {
                let answered = radio.cts_airtime() + after_cts(radio, *reserves, *ack_airtime);
                // a CTS held back leaves the station to its own packets
                Some(*at + self.next_exchange().map_or(answered, |own| own.min(answered)))
            }
            State::Transmitting(_) => None,
        }
    }

    /// Earliest visible event of a station that sends until `end`, apart from the effects of that frame; `None`: none.
    pub fn visible_after_sending(&self, end: Instant) -> Option<Instant> {
        match self.state {
            State::Transmitting(FrameKind::Rts | FrameKind::Data) => self.visible_if_unanswered(end),
            State::Transmitting(_) => Some(end + self.next_exchange()?),
            _ => None,
        }
    }

    /// Earliest visible event if the wait for an answer ends without one at `over` or later.
    fn visible_if_unanswered(&self, over: Instant) -> Option<Instant> {
        let last = self.short_retries + 1 >= self.radio.short_retry_limit
            || self.long_retries + 1 >= self.radio.long_retry_limit;
        let again = self.exchange(&self.service.as_ref()?.packet, 1);
        Some(if last { over } else { over + again })
    }

    /// [`Self::exchange`] of the packet in service, or else of the next one.
    fn next_exchange(&self) -> Option<Duration> {
        let service = self.service.as_ref().map(|s| &s.packet);
        service.or_else(|| self.queue.front()).map(|packet| self.exchange(packet, 0))
    }

    /// Time from the start of the first frame for `packet` to the end of its data frame, or to the last failed RTS if that is
    /// earlier; `failures` are still to be counted.
    fn exchange(&self, packet: &Packet, failures: u32) -> Duration {
        let radio = &self.radio;
        let kind = if packet.dest == Dest::Broadcast { FrameKind::Bcast } else { FrameKind::Data };
        let data = packet.shortest_airtime(radio, kind);
        if !needs_rts(radio, packet) {
            return data;
        }
        let rts = radio.rts_airtime();
        let full = radio.rules.timeouts == Timeouts::Full;
        let wait = if full { radio.answer_timeout(radio.control_mode()) } else { Duration::ZERO };
        let attempts = radio.short_retry_limit.saturating_sub(self.short_retries + failures).max(1);
        (rts + after_rts(radio, data)).min((rts + wait) * u64::from(attempts))
    }
}
