//! Receptions: reaction of the DCF to the end of a frame of another station, decoded or not.

use super::{Dcf, Response, State};
use crate::mac::action::Action;
use crate::mac::{Dest, Frame};
use crate::phy::radio::Timeouts;
use crate::phy::FrameKind;
use manet_engine::Instant;

impl Dcf {
    /// A frame was decoded. Returns false for an RTS that the NAV forbids to answer, and for RTS or data received while the
    /// station is engaged in another exchange.
    pub fn receive(&mut self, now: Instant, frame: &Frame) -> bool {
        self.eifs_until = Instant::ZERO; // a correct frame ends EIFS (9.3.2.3.7)
        self.eifs_due = false;
        if frame.dest == Dest::Broadcast {
            self.fail_if_waiting(now);
            self.deliver(frame);
            return true;
        }
        if frame.dest != Dest::Station(self.station) {
            self.nav_until = self.nav_until.max(now + frame.reserves);
            self.fail_if_waiting(now);
            return true;
        }
        match frame.kind {
            FrameKind::Rts => self.receive_rts(now, frame),
            FrameKind::Cts => {
                if matches!(self.state, State::AwaitCts { .. }) {
                    self.short_retries = 0;
                    self.state = State::Sifs { at: now + self.radio.sifs(), then: Response::Data };
                }
                true
            }
            FrameKind::Ack => {
                if matches!(self.state, State::AwaitAck { .. }) {
                    self.sent(now);
                }
                true
            }
            FrameKind::Data | FrameKind::Bcast => self.receive_data(now, frame),
        }
    }

    /// A frame ended that was not decoded; `weak`: it was sensed, but the radio never locked on to it.
    pub fn receive_failed(&mut self, now: Instant, weak: bool) {
        if self.radio.rules.eifs_as_nav {
            self.nav_until = self.nav_until.max(now + self.eifs);
        } else if !weak {
            self.eifs_due = true; // the frame that spoiled it may still be on the air
        }
        self.fail_if_overdue(now);
    }

    fn receive_rts(&mut self, now: Instant, frame: &Frame) -> bool {
        self.fail_if_waiting(now);
        if !matches!(self.state, State::Idle) || self.nav_until > now {
            return false;
        }
        let reserves = frame.reserves - self.radio.sifs() - self.cts_airtime;
        let then = Response::Cts { to: Dest::Station(frame.from), reserves, ack_airtime: frame.ack_airtime };
        self.state = State::Sifs { at: now + self.radio.sifs(), then };
        true
    }

    fn receive_data(&mut self, now: Instant, frame: &Frame) -> bool {
        self.fail_if_waiting(now);
        if matches!(
            self.state,
            State::Sifs { .. } | State::Transmitting(_) | State::AwaitCts { .. } | State::AwaitAck { .. }
        ) {
            return false; // another exchange: no room for an ACK, so the sender will retry
        }
        let then = Response::Ack { to: Dest::Station(frame.from), mode: frame.mode };
        self.state = State::Sifs { at: now + self.radio.sifs(), then };
        let last = self.heard.insert(frame.from, frame.sequence);
        if frame.retry && last == Some(frame.sequence) {
            self.counters.rx_duplicate += 1;
        } else {
            self.deliver(frame);
        }
        true
    }

    fn deliver(&mut self, frame: &Frame) {
        if let Some(packet) = &frame.packet {
            self.counters.rx_data += 1;
            self.actions.push(Action::Deliver { packet: packet.clone(), rate_bps: frame.mode.rate_bps() });
        }
    }

    /// 9.3.2.8: any frame other than the awaited one ends the wait; ns-2 continues to wait.
    fn fail_if_waiting(&mut self, now: Instant) {
        if self.radio.rules.timeouts != Timeouts::Standard {
            return;
        }
        match self.state {
            State::AwaitCts { .. } => self.attempt_failed(now, FrameKind::Rts),
            State::AwaitAck { .. } => self.attempt_failed(now, FrameKind::Data),
            _ => {}
        }
    }

    /// Ends a wait that a reception extended.
    pub(super) fn fail_if_overdue(&mut self, now: Instant) {
        match self.state {
            State::AwaitCts { until: Instant::MAX } => self.attempt_failed(now, FrameKind::Rts),
            State::AwaitAck { until: Instant::MAX } => self.attempt_failed(now, FrameKind::Data),
            _ => {}
        }
    }
}
