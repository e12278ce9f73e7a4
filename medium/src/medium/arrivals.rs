//! Starts of frames at the other stations: all of one instant together, at each station in the order of its radio.

use super::{Event, Medium, HEAR_END, OVER};
use crate::air::{self, Began, Cause, FrameId, Signal};
use crate::fate::Fate;
use crate::phy::propagation::distance_m;
use manet_engine::{Duration, Instant};

const LIGHT_MPS: f64 = 299_792_458.0;

/// The start of a frame at a station.
pub(super) struct Arrival {
    station: u16,
    signal: Signal,
}

impl Medium {
    pub(super) fn frames_begin(&mut self, now: Instant) {
        let begun = std::mem::take(&mut self.begun);
        if self.radio.propagation_delay {
            begun.iter().for_each(|id| self.set_out(now, *id));
            return;
        }
        let mut arrivals = std::mem::take(&mut self.arrivals);
        let several = begun.len() > 1;
        for id in &begun {
            self.arrivals_of(now, *id, several, &mut arrivals);
        }
        if several {
            let rule = self.stations[0].receiver.rule();
            arrivals.sort_by(|a, b| a.station.cmp(&b.station).then_with(|| air::order(rule, &a.signal, &b.signal)));
        }
        self.arrivals = arrivals;
        self.arrive(now);
    }

    /// The only caller of `frame_begins_at`, so that the compiler inlines what happens at each station.
    fn arrive(&mut self, now: Instant) {
        let mut arrivals = std::mem::take(&mut self.arrivals);
        for Arrival { station, signal } in arrivals.drain(..) {
            self.frame_begins_at(now, station, signal);
        }
        self.arrivals = arrivals;
    }

    /// Plans the start and the end of a frame at each station, by its distance now.
    fn set_out(&mut self, now: Instant, id: FrameId) {
        let airborne = self.airborne[id as usize].as_ref().expect("a frame ends after it begins");
        let place = self.stations[airborne.frame.from as usize].trajectory.at(now);
        let airtime = airborne.frame.airtime;
        let mut last = now;
        for (number, &(station, _)) in (0..).zip(airborne.heard.iter()) {
            let there = self.stations[station as usize].trajectory.at(now);
            let at = now + Duration::from_secs_f64(distance_m(place, there) / LIGHT_MPS);
            last = last.max(at);
            self.arriving.push(at, 0, (id, number));
            self.events.push(at + airtime, HEAR_END, Event::EndArrives(id, number));
        }
        self.events.push(last + airtime, OVER, Event::Over(id));
    }

    /// The start of a frame at the station of this number in its neighbourhood.
    pub(super) fn frame_arrives(&mut self, now: Instant, id: FrameId, number: u16) {
        let airborne = self.airborne[id as usize].as_ref().expect("a frame is over after its last start");
        let ((station, power_w), frame) = (airborne.heard[usize::from(number)], &airborne.frame);
        let (begin_ns, end_ns) = (now.as_nanos(), (now + frame.airtime).as_nanos());
        let signal = Signal { frame: id, from: frame.from, distance_m: 0.0, power_w, begin_ns, end_ns };
        // it may have been switched off since the frame began at its sender
        if self.stations[usize::from(station)].on {
            self.arrivals.push(Arrival { station, signal });
            self.arrive(now);
        }
    }

    /// `several`: frames begin at once, so that the distance decides about their order.
    fn arrivals_of(&self, now: Instant, id: FrameId, several: bool, into: &mut Vec<Arrival>) {
        let airborne = self.airborne[id as usize].as_ref().expect("a frame ends after it begins");
        let from = airborne.frame.from;
        let begin_ns = now.as_nanos();
        let end_ns = (now + airborne.frame.airtime).as_nanos();
        let place = several.then(|| self.stations[from as usize].trajectory.at(now));
        into.extend(airborne.heard.iter().map(|&(station, power_w)| {
            let there = || self.stations[station as usize].trajectory.at(now);
            let distance_m = place.map_or(0.0, |place| distance_m(place, there()));
            Arrival { station, signal: Signal { frame: id, from, distance_m, power_w, begin_ns, end_ns } }
        }));
    }

    fn frame_begins_at(&mut self, now: Instant, s: u16, signal: Signal) {
        let station = &mut self.stations[s as usize];
        let airborne = self.airborne[signal.frame as usize].as_ref().expect("a frame ends after it begins");
        if airborne.freq_mhz != station.freq_mhz && self.spectrum.is_some() {
            self.interfere(now, s, signal.frame, signal.from, signal.power_w);
            return;
        }
        let began = station.receiver.frame_begins(signal, &airborne.demands);
        let mut touched = began.captured;
        if began.captured {
            station.dcf.captured(now, Instant::from_nanos(signal.end_ns).since(now));
        }
        if station.receiver.senses() {
            touched |= station.dcf.medium_busy(now);
        }
        self.note_state(now, s);
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
