//! Lower bounds on the next externally visible event of a station: the end of a frame with data, the end of an ACK, or the end
//! of the attempts for a packet.
//!
//! A driver sleeps until then ([`crate::medium::Medium`]'s `next_visible`). The bounds hold as long as no packet comes from
//! a host. Actions that *another* station's frame on the air will cause are covered by the bound of that frame.

use super::{needs_rts, Content, Contention, Dcf, Packet, Response, Service, State};
use crate::mac::{Dest, Frame};
use crate::phy::radio::{FrameKind, Radio, Timeouts};
use manet_engine::{Duration, Instant};

/// Time from the end of an RTS to the end of its data frame, which lasts `data`.
pub fn after_rts(radio: &Radio, data: Duration) -> Duration {
    radio.sifs() * 2 + radio.cts_airtime() + data
}

/// Time from the end of an RTS to the end of its data frame, by what it reserves.
pub fn after_reservation(radio: &Radio, rts: &Frame) -> Duration {
    rts.reserves - radio.sifs() - rts.ack_airtime
}

/// Time from the end of a CTS that reserves `reserves`, of which `ack` is the ACK's airtime, to the end of its data frame.
pub fn after_cts(radio: &Radio, reserves: Duration, ack: Duration) -> Duration {
    reserves - radio.sifs() - ack
}

impl Dcf {
    /// Whether it chooses modes or aggregates.
    pub fn adapts(&self) -> bool {
        self.rates.is_some()
    }

    /// Earliest visible event of this station. `event`: the next instant at which anything happens on the air. `None`: none
    /// before another station or the host addresses it.
    pub fn visible_from(&self, event: Instant) -> Option<Instant> {
        let radio = &self.radio;
        match &self.state {
            State::Idle if !self.busy => self.all().filter_map(|each| self.visible_access(each, event)).min(),
            State::Idle => Some(event + self.next_exchange()?),
            State::AwaitCts { until } | State::AwaitAck { until } => {
                // by the standard, any frame heard may end the wait
                let over = if radio.rules.timeouts == Timeouts::Standard { event } else { *until };
                self.visible_if_unanswered(over)
            }
            State::AwaitData { until } => Some(*until + self.next_exchange()?),
            State::Sifs { at, then: Response::Ack { mode, .. } } => Some(*at + radio.answer_airtime(*mode)), // a Block Ack is longer
            State::Sifs { at, then: Response::Data } => Some(*at + self.shortest_frame(self.own.service.as_ref()?)),
            State::Sifs { at, then: Response::NextOfTxop } => Some(*at + self.next_exchange()?),
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
            State::Transmitting(FrameKind::Rts | FrameKind::Data | FrameKind::Bar) => self.visible_if_unanswered(end),
            State::Transmitting(_) => Some(end + self.next_exchange()?),
            _ => None,
        }
    }

    /// Earliest visible event of a function that contends while the medium is idle.
    fn visible_access(&self, contention: &Contention, event: Instant) -> Option<Instant> {
        match self.access_at(contention) {
            Some(at) => Some(at + self.own_exchange(contention, contention.service.as_ref()?)),
            None => Some(event + self.exchange_of_next(contention)?),
        }
    }

    /// Earliest visible event if the wait for an answer ends without one at `over` or later.
    fn visible_if_unanswered(&self, over: Instant) -> Option<Instant> {
        let own = &self.own;
        // by EDCA an internal collision may follow
        let counted = if self.others.is_empty() { 1 } else { 2 };
        let last = own.short_retries + counted >= self.radio.short_retry_limit
            || own.long_retries + 1 >= self.radio.long_retry_limit;
        let service = own.service.as_ref()?;
        // of a block, each packet has a limit of its own
        let last = last || own.serves_block();
        let again = self.exchange(own, service, 1);
        let others = self.others.iter().filter_map(|other| self.exchange_of_next(other));
        Some(if last { over } else { over + others.fold(again, Duration::min) })
    }

    /// The shortest of what the functions have in service or else wait with.
    fn next_exchange(&self) -> Option<Duration> {
        self.all().filter_map(|each| self.exchange_of_next(each)).min()
    }

    /// [`Self::exchange`] of what a function has in service, or else of its next packet.
    fn exchange_of_next(&self, contention: &Contention) -> Option<Duration> {
        let in_service = contention.service.as_ref().map(|service| self.own_exchange(contention, service));
        let next = || contention.queue.shortest_next().map(|packet| self.exchange_of(contention, packet, 0));
        in_service.or_else(next)
    }

    /// [`Self::exchange`] of a function without a failure still to be counted. By EDCA a packet may reach its limit by an internal
    /// collision, at the start of another's exchange.
    fn own_exchange(&self, contention: &Contention, service: &Service) -> Duration {
        if !self.others.is_empty() && contention.short_retries + 1 >= self.radio.short_retry_limit {
            return Duration::ZERO;
        }
        self.exchange(contention, service, 0)
    }

    /// Time from the start of the first frame in service to the end of its data frame, or to the last failed RTS if that is
    /// earlier; `failures` are still to be counted.
    fn exchange(&self, contention: &Contention, service: &Service, failures: u32) -> Duration {
        match &service.content {
            Content::Packet { packet, .. } => self.exchange_of(contention, packet, failures),
            // its limits are those of its packets
            Content::Block { .. } => self.shortest_frame(service).min(self.radio.rts_airtime()),
        }
    }

    /// The least time on the air of the data frame in service. Of a block whose frame is not made yet, it may be a request.
    fn shortest_frame(&self, service: &Service) -> Duration {
        let radio = &self.radio;
        match &service.content {
            Content::Packet { packet, .. } => self.shortest_airtime(packet),
            Content::Block { offer: Some(offer), .. } => radio.airtime(offer.bytes, offer.mode),
            Content::Block { offer: None, .. } => radio.rts_airtime().min(radio.cts_airtime()),
        }
    }

    fn shortest_airtime(&self, packet: &Packet) -> Duration {
        let kind = if packet.dest == Dest::Broadcast { FrameKind::Bcast } else { FrameKind::Data };
        match &self.rates {
            Some(rates) if packet.dest != Dest::Broadcast => rates.shortest_airtime(packet, &self.radio, kind),
            _ => packet.shortest_airtime(&self.radio, kind),
        }
    }

    fn exchange_of(&self, contention: &Contention, packet: &Packet, failures: u32) -> Duration {
        let radio = &self.radio;
        let data = self.shortest_airtime(packet);
        if !needs_rts(radio, packet) {
            return data;
        }
        let rts = radio.rts_airtime();
        let full = radio.rules.timeouts == Timeouts::Full;
        let wait = if full { radio.answer_timeout(radio.control_mode()) } else { Duration::ZERO };
        let attempts = radio.short_retry_limit.saturating_sub(contention.short_retries + failures).max(1);
        (rts + after_rts(radio, data)).min((rts + wait) * u64::from(attempts))
    }
}
