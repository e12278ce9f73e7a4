//! Receptions: the end of a frame at the stations that sense it, and the frame's fate at the station that it is for.

use super::links::{delivered, delivers};
use super::{jammers, Airborne, Medium};
use crate::air::{Demands, FrameId, Heard, Rule};
use crate::air_log::AirRow;
use crate::fate::Fate;
use crate::mac::dcf::Decoded;
use crate::mac::{Dest, Frame, Part};
use crate::message::{Output, StationId};
use crate::phy::radio::{RateControl, Reception, Threshold};
use crate::phy::{FrameKind, Mode};
use manet_engine::Instant;

/// Power and ratio that the reception of frames in a mode needs.
#[derive(Clone, Copy)]
pub(super) struct Needs {
    mode: Mode,
    header: Threshold,
    body: Threshold,
    /// Power for a frame whose mode its sender's kernel chose, W.
    chosen_w: f64,
}

impl Medium {
    pub(super) fn frame_ends(&mut self, now: Instant, id: FrameId) {
        let heard = self.airborne[id as usize].as_ref().expect("a frame ends once").heard.clone();
        self.ends_at_each(now, id, &heard);
        self.frame_is_over(id);
    }

    /// The end of a frame at the station of this number in its neighbourhood.
    pub(super) fn end_arrives(&mut self, now: Instant, id: FrameId, number: u16) {
        let airborne = self.airborne[id as usize].as_ref().expect("a frame is over after its last end");
        let one = [airborne.heard[usize::from(number)]];
        self.ends_at_each(now, id, &one);
    }

    /// The only caller of `frame_ends_at`, so that the compiler inlines what happens at each station.
    fn ends_at_each(&mut self, now: Instant, id: FrameId, heard: &[(u16, f64)]) {
        let frame = self.airborne[id as usize].as_ref().expect("a frame ends once").frame.clone();
        for &(s, power_w) in heard {
            self.frame_ends_at(now, id, &frame, s, power_w);
        }
    }

    /// No station receives anything of the frame any more.
    #[inline] // so that the frame is moved once
    pub(super) fn frame_is_over(&mut self, id: FrameId) {
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
        let airborne = self.airborne[id as usize].as_ref().expect("a frame ends once");
        if airborne.freq_mhz != station.freq_mhz && self.spectrum.is_some() {
            self.interfere(now, s, id, frame.from, 0.0);
            return;
        }
        let cut = airborne.cut;
        let draws = &mut station.reception;
        let heard = match station.receiver.frame_ends(id, || draws.unit()) {
            Heard::Good if cut => Heard::Spoiled,
            heard => heard,
        };
        self.note_state(now, s);
        let station = &self.stations[s as usize];
        if for_me && self.recording && station.receiver.rule() == Rule::Probability {
            let worst_db = station.receiver.worst_db();
            if let Some(airborne) = &mut self.airborne[id as usize] {
                airborne.mpdus.get_or_insert_default().sinr_db = worst_db;
            }
        }
        let station = &mut self.stations[s as usize];
        let mut touched = true;
        match heard {
            Heard::Good if !frame.aggregate().is_empty() => self.decoded_aggregate(now, id, frame, s, power_w),
            Heard::Good
                if self.error_rates.strikes(frame, s, &mut station.errors)
                    || !delivers(&self.measured, frame, s, now, &mut station.errors) =>
            {
                station.dcf.receive_failed(now, false);
                self.spoil(id, s, Fate::Error);
            }
            Heard::Good => self.decoded(now, id, frame, s, power_w, u64::MAX),
            // ns-2 recv_timer: a frame that ends while the station sends leaves no trace
            Heard::Spoiled | Heard::Sensed if !station.receiver.is_sending() => {
                station.dcf.receive_failed(now, heard == Heard::Sensed);
            }
            _ => touched = false,
        }
        if for_me && heard != Heard::Good {
            self.spoil_by(id, s, |medium| medium.fate_unheard(id, s, power_w, now));
        }
        let station = &mut self.stations[s as usize];
        if !station.receiver.senses() {
            touched |= station.dcf.medium_idle(now);
        }
        if touched {
            self.after(now, s);
        }
    }

    /// Fate of a frame that its station did not decode and that no other frame's start decided.
    fn fate_unheard(&self, id: FrameId, at_station: u16, power_w: f64, now: Instant) -> Fate {
        let airborne = self.airborne[id as usize].as_ref().expect("a frame ends once");
        let receiver = &self.stations[usize::from(at_station)].receiver;
        if receiver.rule() != Rule::Probability {
            return if power_w < airborne.demands.body.power_w { Fate::Weak } else { Fate::Collision };
        }
        let Some(other) = receiver.interferer() else { return Fate::Weak };
        let sender = airborne.frame.from;
        let sensed = match usize::from(other).checked_sub(self.stations.len()) {
            Some(jammer) => self.jammers.level_w(jammer, sender) >= self.energy_w(),
            None => {
                let [other_mhz, own_mhz] = [other, sender].map(|s| self.stations[usize::from(s)].freq_mhz);
                let power_w = self.power_w(other, sender, now) * self.share(other_mhz, own_mhz);
                power_w >= if other_mhz == own_mhz { self.radio.carrier_sense_threshold_w } else { self.energy_w() }
            }
        };
        if sensed {
            Fate::Collision
        } else {
            Fate::Hidden
        }
    }

    /// An A-MPDU of which at least one MPDU was received without an error.
    fn decoded_aggregate(&mut self, now: Instant, id: FrameId, frame: &Frame, s: u16, power_w: f64) {
        let station = &mut self.stations[s as usize];
        let received = station.receiver.survivors();
        let spared = self.error_rates.spared(frame, received, s, &mut station.errors);
        let left = delivered(&self.measured, frame, spared, s, now, &mut station.errors);
        if frame.dest == Dest::Station(s) && self.is_undecided(id, s) {
            let lost = self.fate_unheard(id, s, power_w, now);
            let fate = |n: usize| match (left >> n & 1, received >> n & 1) {
                (1, _) => Fate::Delivered,
                (_, 1) => Fate::Error,
                _ => lost,
            };
            let fates = (0..frame.aggregate().len()).map(fate).collect();
            self.airborne[id as usize].as_mut().expect("still there").mpdus.get_or_insert_default().fates = fates;
        }
        if left == 0 {
            self.stations[s as usize].dcf.receive_failed(now, false);
            self.spoil(id, s, Fate::Error);
        } else {
            self.decoded(now, id, frame, s, power_w, left);
        }
    }

    /// A frame was decoded, of an A-MPDU the MPDUs in `mpdus`, one bit each.
    fn decoded(&mut self, now: Instant, id: FrameId, frame: &Frame, s: u16, power_w: f64, mpdus: u64) {
        let is_read = self.radio.rate_control != RateControl::Fixed;
        let snr_db = is_read.then(|| 10.0 * (power_w / self.radio.noise_w).log10());
        let station = &mut self.stations[s as usize];
        let answered = station.dcf.receive(now, frame, Decoded { mpdus, snr_db });
        let nav = station.dcf.nav_until() > now;
        if frame.dest == Dest::Broadcast {
            self.airborne[id as usize].as_mut().expect("still there").receivers += 1;
        }
        if self.records_receptions {
            self.airborne[id as usize].as_mut().expect("still there").decoded_w.push((s, power_w, mpdus));
        }
        if !answered {
            if let Some(mpdus) = &mut self.airborne[id as usize].as_mut().expect("still there").mpdus {
                mpdus.fates.clear();
            }
            self.spoil(id, s, if nav { Fate::Nav } else { Fate::Busy });
        } else {
            self.spoil(id, s, Fate::Delivered);
        }
        // a request delivers data
        let kind = if frame.kind == FrameKind::Bcast { FrameKind::Bcast } else { FrameKind::Data };
        self.log_deliveries(now, s, frame.from, kind, power_w);
        let overhears = self.stations[s as usize].overhear && frame.kind == FrameKind::Data;
        if overhears && frame.dest != Dest::Station(s) {
            let arrived = |(n, _): &(usize, &Part)| mpdus >> n & 1 == 1;
            let of_aggregate = frame.aggregate().iter().enumerate().filter(arrived).map(|(_, part)| &part.packet);
            let single = frame.packet.iter().filter(|_| frame.aggregate().is_empty());
            for packet in of_aggregate.chain(single) {
                let (station, transmitter, packet) = (StationId(s), StationId(frame.from), packet.clone());
                self.outputs.push_back(Output::Overheard { station, transmitter, packet });
            }
        }
    }

    /// Counts and records what the MAC of station `s` is about to hand to its host.
    pub(super) fn log_deliveries(&mut self, now: Instant, s: u16, from: u16, kind: FrameKind, power_w: f64) {
        let station = &mut self.stations[s as usize];
        for packet in station.dcf.deliveries() {
            station.counters.delivered_up += 1;
            if self.recording {
                let (packet, bytes) = (packet.id, packet.ip_bytes);
                let row = AirRow::Deliver { at: now, station: s, from, kind, packet, bytes, power_w };
                self.outputs.push_back(Output::Air(row));
            }
        }
    }

    /// The conditions of the reception of a frame. A rate that the kernel chose has its own power under every profile.
    pub(super) fn demands_of(&mut self, frame: &Frame) -> Demands {
        let Needs { mut header, mut body, chosen_w, .. } = self.needs_of(frame.mode);
        let data = matches!(frame.kind, FrameKind::Data | FrameKind::Bcast);
        if data && frame.packet.as_ref().is_some_and(|packet| packet.has_own_rates()) {
            body.power_w = chosen_w;
            header.power_w = header.power_w.min(body.power_w);
        }
        let by_sinr = self.radio.reception == Reception::Sinr;
        let stretches = if by_sinr { frame.stretches(&self.radio, false) } else { Vec::new() };
        let layout = by_sinr.then(|| Box::new(self.radio.layout(frame.bytes, frame.mode)));
        Demands { header, body, layout, stretches: stretches.into() }
    }

    /// Computed once for each mode: powers of ten take longer than all else that a frame's start computes.
    fn needs_of(&mut self, mode: Mode) -> Needs {
        let known = self.needs.iter().find(|needs| needs.mode == mode).copied();
        known.unwrap_or_else(|| {
            let (header, body) = (self.radio.header_threshold(mode), self.radio.threshold(mode));
            let needs = Needs { mode, header, body, chosen_w: self.radio.receive_threshold_at_w(mode) };
            self.needs.push(needs);
            needs
        })
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
        let Some(victim) = &self.airborne[victim as usize] else { return Fate::Collision };
        let sender = victim.frame.from;
        let sensed = if let Some(jammer) = jammers::jammer_of(other) {
            self.jammers.level_w(jammer, sender) >= self.energy_w()
        } else {
            let Some(other) = &self.airborne[other as usize] else { return Fate::Collision };
            let same = other.freq_mhz == victim.freq_mhz;
            let sense_w = if same { self.radio.carrier_sense_threshold_w } else { self.energy_w() };
            other.heard.iter().any(|(s, p)| *s == sender && *p >= sense_w)
        };
        if sensed {
            Fate::Collision
        } else {
            Fate::Hidden
        }
    }
}
