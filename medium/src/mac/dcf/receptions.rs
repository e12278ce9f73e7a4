//! Receptions: reaction of the DCF to the end of a frame of another station, decoded or not.

use super::{Dcf, Decoded, Response, State};
use crate::mac::action::Action;
use crate::mac::block_ack::Bitmap;
use crate::mac::{Block, Dest, Frame, Packet};
use crate::phy::radio::Timeouts;
use crate::phy::FrameKind;
use manet_engine::{Duration, Instant};
use std::sync::Arc;

impl Dcf {
    /// A frame was decoded. Returns false for an RTS that the NAV forbids to answer, and for RTS or data received while the
    /// station is engaged in another exchange.
    pub fn receive(&mut self, now: Instant, frame: &Frame, decoded: Decoded) -> bool {
        self.eifs_until = Instant::ZERO; // a correct frame ends EIFS (9.3.2.3.7)
        self.eifs_due = false;
        if !self.others.is_empty() {
            self.note_holder(now, frame);
        }
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
                    self.own.short_retries = 0;
                    self.state = State::Sifs { at: now + self.radio.sifs(), then: Response::Data };
                }
                true
            }
            FrameKind::Ack | FrameKind::Ba => {
                if matches!(self.state, State::AwaitAck { .. }) {
                    self.answered(now, frame);
                }
                true
            }
            FrameKind::Data | FrameKind::Bcast | FrameKind::Bar => self.receive_data(now, frame, decoded),
        }
    }

    /// By EDCA: the holder of the TXOP that a frame reserves the medium for, whose RTS is answered despite the NAV (802.11-2020
    /// 10.3.2.9), and the NAV of a broadcast within a TXOP.
    fn note_holder(&mut self, now: Instant, frame: &Frame) {
        if frame.dest == Dest::Station(self.station) || frame.reserves == Duration::ZERO {
            return;
        }
        self.nav_until = self.nav_until.max(now + frame.reserves);
        self.txop_holder = match frame.kind {
            FrameKind::Cts | FrameKind::Ack | FrameKind::Ba => frame.dest.station(),
            _ => Some(frame.from),
        };
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
        let is_reserved = self.nav_until > now && self.txop_holder != Some(frame.from);
        if !matches!(self.state, State::Idle) || is_reserved {
            return false;
        }
        let reserves = frame.reserves - self.radio.sifs() - self.cts_airtime(frame.mode);
        let (to, mode) = (Dest::Station(frame.from), frame.mode);
        let then = Response::Cts { to, mode, reserves, ack_airtime: frame.ack_airtime };
        self.state = State::Sifs { at: now + self.radio.sifs(), then };
        true
    }

    fn receive_data(&mut self, now: Instant, frame: &Frame, decoded: Decoded) -> bool {
        self.fail_if_waiting(now);
        if matches!(
            self.state,
            State::Sifs { .. } | State::Transmitting(_) | State::AwaitCts { .. } | State::AwaitAck { .. }
        ) {
            return false; // another exchange: no room for an ACK, so the sender will retry
        }
        let bitmap = self.receive_block(frame, decoded.mpdus);
        let then = Response::Ack {
            to: Dest::Station(frame.from),
            mode: frame.mode,
            bitmap,
            snr_db: decoded.snr_db,
            reserved: frame.reserves,
            category: frame.category,
        };
        self.state = State::Sifs { at: now + self.radio.sifs(), then };
        if frame.block.is_some() {
            return true;
        }
        let last = self.heard.insert((frame.from, frame.category), frame.sequence);
        if frame.retry && last == Some(frame.sequence) {
            self.counters.rx_duplicate += 1;
        } else {
            self.deliver(frame);
        }
        true
    }

    /// Data or a request under a Block Ack agreement; the bitmap answers it if it is not a single MPDU.
    fn receive_block(&mut self, frame: &Frame, mpdus: u64) -> Option<Bitmap> {
        let (block, mut duplicates) = (frame.block.as_deref()?, 0);
        let blocks = self.of_mut(frame.category).blocks.as_mut()?;
        let mut delivered = Vec::new();
        let bitmap = match block {
            Block::Data { window_start, parts } => {
                let (bitmap, repeated) = blocks.receive(frame.from, (*window_start, parts), mpdus, &mut delivered);
                duplicates = repeated;
                (parts.len() > 1).then_some(bitmap)
            }
            Block::Request { start } => Some(blocks.handle_request(frame.from, *start, &mut delivered)),
            Block::Answer(_) => None,
        };
        self.counters.rx_duplicate += duplicates;
        self.deliver_all(delivered, frame.mode.rate_bps());
        bitmap
    }

    pub(super) fn deliver_all(&mut self, packets: Vec<Arc<Packet>>, rate_bps: u64) {
        self.counters.rx_data += packets.len() as u64;
        self.actions.extend(packets.into_iter().map(|packet| Action::Deliver { packet, rate_bps }));
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
