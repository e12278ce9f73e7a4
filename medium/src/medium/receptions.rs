//! Receptions: the end of a frame at the stations that sense it, and the frame's fate at the station that it is for.

use super::{Airborne, Medium};
use crate::air::{FrameId, Heard};
use crate::air_log::AirRow;
use crate::fate::Fate;
use crate::mac::{Dest, Frame};
use crate::message::{Output, StationId};
use crate::phy::FrameKind;
use manet_engine::Instant;

impl Medium {
    pub(super) fn frame_ends(&mut self, now: Instant, id: FrameId) {
        let airborne = self.airborne[id as usize].as_ref().expect("a frame ends once");
        let (heard, frame) = (airborne.heard.clone(), airborne.frame.clone());
        for &(s, power_w) in heard.iter() {
            self.frame_ends_at(now, id, &frame, s, power_w);
        }
        let airborne = self.airborne[id as usize].take().expect("still there");
        self.free.push(id);
        self.log_tx(airborne);
    }

    fn frame_ends_at(&mut self, now: Instant, id: FrameId, frame: &Frame, s: u16, power_w: f64) {
        self.receptions += 1;
        let station = &mut self.stations[s as usize];
        let for_me = frame.dest == Dest::Station(s);
        if !station.on {
            self.spoil(id, s, Fate::Weak);
            return;
        }
        let cut = self.airborne[id as usize].as_ref().is_some_and(|a| a.cut);
        let heard = match station.receiver.frame_ends(id) {
            Heard::Good if cut => Heard::Spoiled,
            heard => heard,
        };
        let mut touched = true;
        match heard {
            Heard::Good if self.error_rates.strikes(frame, s, &mut station.errors) => {
                station.dcf.receive_failed(now, false);
                self.spoil(id, s, Fate::Error);
            }
            Heard::Good => self.decoded(now, id, frame, s, power_w),
            // ns-2 recv_timer: a frame that ends while the station sends leaves no trace
            Heard::Spoiled | Heard::Sensed if !station.receiver.is_sending() => {
                station.dcf.receive_failed(now, heard == Heard::Sensed);
            }
            _ => touched = false,
        }
        if for_me && heard != Heard::Good {
            self.spoil(id, s, if power_w < self.needed_w(frame) { Fate::Weak } else { Fate::Collision });
        }
        let station = &mut self.stations[s as usize];
        if !station.receiver.senses() {
            touched |= station.dcf.medium_idle(now);
        }
        if touched {
            self.after(now, s);
        }
    }

    fn decoded(&mut self, now: Instant, id: FrameId, frame: &Frame, s: u16, power_w: f64) {
        let station = &mut self.stations[s as usize];
        let before = station.dcf.counters.rx_data;
        let answered = station.dcf.receive(now, frame);
        let delivered = station.dcf.counters.rx_data > before;
        let nav = station.dcf.nav_until() > now;
        if delivered {
            station.counters.delivered_up += 1;
        }
        if frame.dest == Dest::Broadcast {
            self.airborne[id as usize].as_mut().expect("still there").receivers += 1;
        }
        if self.records_receptions {
            self.airborne[id as usize].as_mut().expect("still there").decoded_w.push((s, power_w));
        }
        if !answered {
            self.spoil(id, s, if nav { Fate::Nav } else { Fate::Busy });
        } else {
            self.spoil(id, s, Fate::Delivered);
        }
        if delivered && self.recording {
            let (packet, bytes) = frame.packet.as_ref().map_or((0, 0), |p| (p.id, p.ip_bytes));
            let (from, kind) = (frame.from, frame.kind);
            let row = AirRow::Deliver { at: now, station: s, from, kind, packet, bytes, power_w };
            self.outputs.push_back(Output::Air(row));
        }
        let overhears = self.stations[s as usize].overhear && frame.kind == FrameKind::Data;
        if overhears && frame.dest != Dest::Station(s) {
            if let Some(packet) = frame.packet.clone() {
                let (station, transmitter) = (StationId(s), StationId(frame.from));
                self.outputs.push_back(Output::Overheard { station, transmitter, packet });
            }
        }
    }

    /// Power that a radio needs to decode the frame, W.
    pub(super) fn needed_w(&self, frame: &Frame) -> f64 {
        let chosen = frame.packet.as_ref().is_some_and(|p| p.mpdu.as_ref().is_some_and(|m| !m.rates.is_empty()));
        match frame.kind {
            FrameKind::Data | FrameKind::Bcast if chosen => self.radio.receive_threshold_at_w(frame.rate_bps),
            _ => self.radio.receive_threshold_w,
        }
    }

    /// Decides the fate of frame `id` at `at_station`, if it is for that station and not decided yet.
    pub(super) fn spoil(&mut self, id: FrameId, at_station: u16, fate: Fate) {
        self.spoil_by(id, at_station, |_| fate);
    }

    /// The same, with a fate that is computed only then.
    pub(super) fn spoil_by(&mut self, id: FrameId, at_station: u16, fate: impl FnOnce(&Self) -> Fate) {
        if self.is_undecided(id, at_station) {
            let fate = fate(self);
            if let Some(airborne) = &mut self.airborne[id as usize] {
                airborne.fate = Some(fate);
            }
        }
    }

    /// Whether frame `id` is for this station and its fate is not decided yet.
    fn is_undecided(&self, id: FrameId, at_station: u16) -> bool {
        let for_it = |airborne: &Airborne| airborne.frame.dest == Dest::Station(at_station) && airborne.fate.is_none();
        self.airborne[id as usize].as_ref().is_some_and(for_it)
    }

    /// `Collision` if the sender of `victim` could have sensed that of `other`, else `Hidden`.
    pub(super) fn interference_fate(&self, victim: FrameId, other: FrameId) -> Fate {
        let (Some(victim), Some(other)) = (&self.airborne[victim as usize], &self.airborne[other as usize]) else {
            return Fate::Collision;
        };
        let sense_w = self.radio.carrier_sense_threshold_w;
        let sensed = other.heard.iter().any(|(s, p)| *s == victim.frame.from && *p >= sense_w);
        if sensed {
            Fate::Collision
        } else {
            Fate::Hidden
        }
    }
}
