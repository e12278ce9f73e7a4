//! Jammers and noise sources: stations of a kind of their own, that only put power on the air.
//!
//! A jammer has no MAC, no queue and no interface. Its power raises the interference at every receiver, and where it is above the energy
//! detection threshold, carrier sense too; no station ever decodes it. Three kinds: **constant**, **periodic** (on and off in turn) and
//! **reactive** (a burst some time after it senses a frame on its channel; while it sends it senses nothing, and a frame that is still on
//! the air after the burst is jammed again): W. Xu, W. Trappe, Y. Zhang and T. Wood, "The feasibility of launching and detecting
//! jamming attacks in wireless networks" (MobiHoc 2005), without their deceptive jammer, which sends frames.
//!
//! The power at a station follows positions, antennas and channels at the start of a burst and every [`RENEWAL`] within it. Propagation
//! delay and fading are those of frames alone. A burst counts from the phase in which frames begin: stations that begin to send at its
//! first instant have not sensed it.

use super::{Event, Medium, HEAR_END};
use crate::air::FrameId;
use crate::air_log::AirRow;
use crate::config::{JammerConfig, JammerKind, Loaded};
use crate::message::Output;
use crate::trace::Position;
use manet_engine::{Duration, EventQueue, Instant};
use serde::Serialize;

/// Longest time between two computations of a burst's power.
const RENEWAL: Duration = Duration::from_millis(100);
/// A longer burst has several rows in the air log.
const ROW: Duration = Duration::from_secs(1);
/// The bit by which a burst of a jammer differs from a frame.
const BURST: FrameId = 1 << 31;

/// The jammer of a burst.
pub(super) fn jammer_of(id: FrameId) -> Option<usize> {
    (id & BURST != 0).then_some((id & !BURST) as usize)
}

/// What a jammer has sent (`counters.json`, formats/air.md).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct JammerCounters {
    /// Bursts begun.
    pub bursts: u64,
    /// Total time on the air, ns.
    pub airtime_tx_ns: u64,
}

enum Place {
    At(Position),
    /// With this station.
    Of(usize),
}

struct Burst {
    ends: Instant,
    /// Start of the part without a row in the air log yet.
    row_from: Instant,
}

struct Jammer {
    kind: JammerKind,
    place: Place,
    freq_mhz: u32,
    /// Length of a burst; none: until `stop`.
    on_for: Option<Duration>,
    pause: Duration,
    delay: Duration,
    start: Instant,
    stop: Instant,
    active: bool,
    /// The next planned start or renewal; others in the queue are void.
    due: Instant,
    burst: Option<Burst>,
    counters: JammerCounters,
    /// Power at each station now, W; 0 where it counts for nothing.
    levels_w: Vec<f64>,
}

/// All jammers of a run.
pub(super) struct Jammers {
    list: Vec<Jammer>,
    /// Starts and renewals of bursts, by the jammer's number.
    planned: EventQueue<usize>,
    /// Power from which a reactive jammer senses a frame, W.
    sense_w: f64,
}

impl Jammers {
    pub(super) fn new(loaded: &Loaded) -> Self {
        let index = loaded.station_index();
        let stations = loaded.config.stations.len();
        let seconds = |s: f64| Duration::from_secs_f64(s);
        let jammer = |config: &JammerConfig| Jammer {
            kind: config.kind,
            place: match (&config.follows, config.position) {
                (Some(station), _) => Place::Of(index[station.as_str()]),
                (None, position) => Place::At(position.unwrap_or_default()),
            },
            freq_mhz: config.freq_mhz,
            on_for: config.on_s.map(seconds),
            pause: seconds(config.off_s.unwrap_or_default()),
            delay: Duration::from_secs_f64(config.delay_us / 1e6),
            start: Instant::ZERO + seconds(config.start_s),
            stop: config.stop_s.map_or(Instant::MAX, |s| Instant::ZERO + seconds(s)),
            active: config.active,
            due: Instant::MAX,
            burst: None,
            counters: JammerCounters::default(),
            levels_w: vec![0.0; stations],
        };
        let mut jammers = Self {
            list: loaded.config.jammers.iter().map(jammer).collect(),
            planned: EventQueue::default(),
            sense_w: loaded.radio.carrier_sense_threshold_w,
        };
        for jammer in 0..jammers.list.len() {
            let start = jammers.list[jammer].start;
            jammers.begin_to_jam(jammer, start);
        }
        jammers
    }

    pub(super) fn next_at(&self) -> Instant {
        self.planned.next_at().unwrap_or(Instant::MAX)
    }

    /// The run is over.
    pub(super) fn stop(&mut self) {
        self.planned = EventQueue::default();
        self.list.iter_mut().for_each(|j| (j.burst, j.due) = (None, Instant::MAX));
    }

    fn plan(&mut self, jammer: usize, at: Instant) {
        self.list[jammer].due = at;
        self.planned.push(at, 0, jammer);
    }

    /// A jammer that does not wait for frames begins at `at`.
    fn begin_to_jam(&mut self, jammer: usize, at: Instant) {
        let j = &self.list[jammer];
        if j.active && j.kind != JammerKind::Reactive && at < j.stop {
            self.plan(jammer, at);
        }
    }

    /// Power of the burst of this number at a station, W.
    pub(super) fn level_w(&self, jammer: usize, station: u16) -> f64 {
        self.list[jammer].levels_w[usize::from(station)]
    }

    /// Nothing of any burst arrives at a station any more.
    pub(super) fn forget(&mut self, station: u16) {
        self.list.iter_mut().for_each(|j| j.levels_w[usize::from(station)] = 0.0);
    }
}

impl Medium {
    /// Whether a jammer is switched on, and its counters up to `now`.
    pub fn jammer(&self, jammer: usize, now: Instant) -> (bool, JammerCounters) {
        let j = &self.jammers.list[jammer];
        let under_way_ns = j.burst.as_ref().map_or(0, |burst| now.since(burst.row_from).as_nanos());
        let airtime_tx_ns = j.counters.airtime_tx_ns + under_way_ns;
        (j.active, JammerCounters { airtime_tx_ns, ..j.counters.clone() })
    }

    /// Position of a jammer, m.
    pub fn jammer_position(&self, jammer: usize, now: Instant) -> Position {
        match self.jammers.list[jammer].place {
            Place::At(position) => position,
            Place::Of(station) => self.stations[station].trajectory.at(now),
        }
    }

    /// Starts and renews what is due at `now`; `false`: nothing is.
    pub(super) fn jam(&mut self, now: Instant) -> bool {
        let Some((_, jammer)) = self.jammers.planned.pop_due(now) else { return false };
        let j = &mut self.jammers.list[jammer];
        if j.due != now {
            return true;
        }
        j.due = Instant::MAX;
        if j.burst.is_none() {
            let ends = j.on_for.map_or(j.stop, |on| (now + on).min(j.stop));
            j.burst = Some(Burst { ends, row_from: now });
            j.counters.bursts += 1;
            if ends != Instant::MAX {
                self.events.push(ends, HEAR_END, Event::BurstEnds(jammer as u16));
            }
        } else {
            self.log_burst(now, jammer, ROW);
        }
        if self.jammers.list[jammer].burst.as_ref().is_some_and(|burst| burst.ends > now + RENEWAL) {
            self.jammers.plan(jammer, now + RENEWAL);
        }
        self.set_levels(now, jammer);
        true
    }

    pub(super) fn burst_ends(&mut self, now: Instant, jammer: usize) {
        // one that was cut short by the loss of power has left its end in the queue
        if self.jammers.list[jammer].burst.as_ref().is_some_and(|burst| burst.ends == now) {
            self.end_burst(now, jammer);
            let Jammer { kind, pause, .. } = self.jammers.list[jammer];
            match kind {
                JammerKind::Constant => {}
                JammerKind::Periodic => self.jammers.begin_to_jam(jammer, now + pause),
                JammerKind::Reactive => self.sense_again(now, jammer),
            }
        }
    }

    fn end_burst(&mut self, now: Instant, jammer: usize) {
        self.log_burst(now, jammer, Duration::ZERO);
        let j = &mut self.jammers.list[jammer];
        (j.burst, j.due) = (None, Instant::MAX);
        self.set_levels(now, jammer);
    }

    /// Reactive jammers that sense the frame that `from` begins plan a burst.
    pub(super) fn jammers_sense(&mut self, now: Instant, from: u16) {
        (0..self.jammers.list.len()).for_each(|jammer| self.jammer_senses(now, jammer, from));
    }

    fn jammer_senses(&mut self, now: Instant, jammer: usize, from: u16) {
        let j = &self.jammers.list[jammer];
        let at = now + j.delay;
        let waits = j.active && j.burst.is_none() && j.due == Instant::MAX && now >= j.start && at < j.stop;
        if waits && j.kind == JammerKind::Reactive && self.at_jammer_w(now, jammer, from) >= self.jammers.sense_w {
            self.jammers.plan(jammer, at);
        }
    }

    /// After a burst: the same for the frames that are still on the air.
    fn sense_again(&mut self, now: Instant, jammer: usize) {
        let on_air = |a: &&super::Airborne| !a.cut && a.began + a.frame.airtime > now;
        let senders: Vec<u16> = self.airborne.iter().flatten().filter(on_air).map(|a| a.frame.from).collect();
        senders.into_iter().for_each(|from| self.jammer_senses(now, jammer, from));
    }

    /// Power of a station's frames at a jammer, W.
    fn at_jammer_w(&self, now: Instant, jammer: usize, from: u16) -> f64 {
        let number = self.stations.len() + jammer;
        let sender = &self.stations[usize::from(from)];
        let share = self.share(self.jammers.list[jammer].freq_mhz, sender.freq_mhz);
        let (a, b) = (sender.trajectory.at(now), self.jammer_position(jammer, now));
        share * self.propagation.power_w(from.into(), number, a, b)
    }

    /// Power of a jammer at a station, W; 0 if it counts for nothing.
    fn of_jammer_w(&self, now: Instant, jammer: usize, station: u16) -> f64 {
        let (j, s) = (&self.jammers.list[jammer], &self.stations[usize::from(station)]);
        let share = self.share(j.freq_mhz, s.freq_mhz);
        if j.burst.is_none() || !s.on || share == 0.0 {
            return 0.0;
        }
        let (a, b) = (self.jammer_position(jammer, now), s.trajectory.at(now));
        let power_w = share * self.propagation.power_w(self.stations.len() + jammer, station.into(), a, b);
        if power_w >= self.floor_w() {
            power_w
        } else {
            0.0
        }
    }

    /// Brings the power of a jammer's burst at each station up to date.
    fn set_levels(&mut self, now: Instant, jammer: usize) {
        let (id, number) = (BURST | jammer as FrameId, (self.stations.len() + jammer) as u16);
        for s in 0..self.stations.len() as u16 {
            let power_w = self.of_jammer_w(now, jammer, s);
            if power_w != self.jammers.level_w(jammer, s) {
                self.jammers.list[jammer].levels_w[usize::from(s)] = power_w;
                self.interfere(now, s, id, number, power_w);
            }
        }
    }

    /// The bursts under way at a station whose receiver has been emptied: it was switched on or has left its channel.
    pub(super) fn jam_anew(&mut self, now: Instant, station: u16) {
        self.jammers.forget(station);
        for jammer in 0..self.jammers.list.len() {
            let power_w = self.of_jammer_w(now, jammer, station);
            if power_w > 0.0 {
                self.jammers.list[jammer].levels_w[usize::from(station)] = power_w;
                let number = (self.stations.len() + jammer) as u16;
                let receiver = &mut self.stations[usize::from(station)].receiver;
                receiver.interfere(now.as_nanos(), BURST | jammer as FrameId, number, power_w);
            }
        }
    }

    /// Switches a jammer off or on.
    pub(super) fn set_power_of_jammer(&mut self, now: Instant, jammer: usize, on: bool) {
        let Some(j) = self.jammers.list.get_mut(jammer).filter(|j| j.active != on) else { return };
        (j.active, j.due) = (on, Instant::MAX);
        if on {
            let start = j.start.max(now);
            self.jammers.begin_to_jam(jammer, start);
        } else if j.burst.is_some() {
            self.end_burst(now, jammer);
        }
    }

    /// Ends the rows of the bursts under way: the run ends.
    pub(super) fn log_bursts(&mut self, now: Instant) {
        (0..self.jammers.list.len()).for_each(|jammer| self.log_burst(now, jammer, Duration::ZERO));
    }

    /// A row for the part of a burst without one, if it is at least as long as `least`.
    fn log_burst(&mut self, now: Instant, jammer: usize, least: Duration) {
        let j = &mut self.jammers.list[jammer];
        let Some(burst) = &mut j.burst else { return };
        let airtime = now.since(burst.row_from);
        if airtime == Duration::ZERO || airtime < least {
            return;
        }
        let at = std::mem::replace(&mut burst.row_from, now);
        j.counters.airtime_tx_ns += airtime.as_nanos();
        if self.recording {
            let station = (self.stations.len() + jammer) as u16;
            self.outputs.push_back(Output::Air(AirRow::Jam { at, station, airtime }));
        }
    }
}
