//! Starts of frames at the other stations: all of one instant together, at each station in the order of its radio.

use super::Medium;
use crate::air::{self, Began, Cause, FrameId, Signal};
use crate::fate::Fate;
use crate::phy::propagation::distance_m;
use manet_engine::Instant;

/// The start of a frame at a station.
pub(super) struct Arrival {
    station: u16,
    signal: Signal,
}

impl Medium {
    pub(super) fn frames_begin(&mut self, now: Instant) {
        let mut arrivals = std::mem::take(&mut self.arrivals);
        let begun = std::mem::take(&mut self.begun);
        let several = begun.len() > 1;
        for id in &begun {
            self.arrivals_of(now, *id, several, &mut arrivals);
        }
        if several {
            let rule = self.stations[0].receiver.rule();
            arrivals.sort_by(|a, b| a.station.cmp(&b.station).then_with(|| air::order(rule, &a.signal, &b.signal)));
        }
        for Arrival { station, signal } in arrivals.drain(..) {
            self.frame_begins_at(now, station, signal);
        }
        self.arrivals = arrivals;
    }

    /// `several`: frames begin at once, so that the distance decides about their order.
    fn arrivals_of(&self, now: Instant, id: FrameId, several: bool, into: &mut Vec<Arrival>) {
        let airborne = self.airborne[id as usize].as_ref().expect("a frame ends after it begins");
        let from = airborne.frame.from;
        let needs_w = self.needed_w(&airborne.frame);
        let end_ns = (now + airborne.frame.airtime).as_nanos();
        let place = self.stations[from as usize].trajectory.at(now);
        into.extend(airborne.heard.iter().map(|&(station, power_w)| {
            let there = || self.stations[station as usize].trajectory.at(now);
            let distance_m = if several { distance_m(place, there()) } else { 0.0 };
            Arrival { station, signal: Signal { frame: id, from, distance_m, power_w, needs_w, end_ns } }
        }));
    }

    fn frame_begins_at(&mut self, now: Instant, s: u16, signal: Signal) {
        let station = &mut self.stations[s as usize];
        let began = station.receiver.frame_begins(signal);
        let mut touched = began.captured;
        if began.captured {
            station.dcf.captured(now, Instant::from_nanos(signal.end_ns).since(now));
        }
        if station.receiver.senses() {
            touched |= station.dcf.medium_busy(now);
        }
        self.settle(signal.frame, s, began);
        // most of the stations that are reached by interference alone notice nothing
        if touched {
            self.after(now, s);
        }
    }

    /// Fates that the start of frame `id` decides at station `s`.
    fn settle(&mut self, id: FrameId, s: u16, began: Began) {
        if let Some(spoilt) = began.spoils {
            self.spoil_by(spoilt, s, |medium| medium.interference_fate(spoilt, id));
        }
        if let Some(cause) = began.lost {
            self.spoil_by(id, s, |medium| match cause {
                Cause::Weak => Fate::Weak,
                Cause::Sending => Fate::Busy,
                Cause::Interferer(other) => medium.interference_fate(id, other),
            });
        }
    }
}
