//! The machine that joins the stations' MACs and radios through the air.
//!
//! Order at one instant: first the senders of the frames that end leave the sending state (phase 0), then the other stations receive
//! these ends (phase 1), then all timers fire (phase 2), then the other stations receive the starts of the frames that began
//! (phase 3, `arrivals`). So two stations whose backoff ends at the same instant both send and collide: neither could have
//! sensed the other. When two frames end together, each sender receives the end of the other frame after the end of its own, as
//! in reality, where that end arrives with the propagation delay. With `propagation_delay` each station receives starts and ends at their own
//! instants, in the same order of phases.
use crate::air::{Demands, FrameId, Receiver, Rule};
use crate::air_log::AirRow;
use crate::config::{HwsimRates, Loaded};
use crate::counters::Counters;
use crate::error_rate::ErrorRates;
use crate::fate::{DropReason, Fate};
use crate::mac::{Action, Category, Dcf, Dest, FailReason, Frame, InterfaceQueue, Mpdu, Packet};
use crate::message::{Input, Leg, LinkState, Output, Reception, StationId};
use crate::phy::fading::Fader;
use crate::phy::spectrum::Spectrum;
use crate::phy::{Measured, Mode, Propagation, Radio};
use crate::radio_time::{RadioState, RadioTimes};
use crate::rate_control::Row;
use crate::trace::Trajectory;
use crate::wire::mac80211::Kind;
use crate::wire::{ethernet, is_group, MacAddress};
use arrivals::Arrival;
pub use jammers::JammerCounters;
use jammers::Jammers;
use links::links_over_time;
use manet_engine::random::Purpose;
use manet_engine::{Duration, EventQueue, Instant, Machine, Stream};
use neighbours::{Neighbourhood, Neighbours};
use receptions::Needs;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use visible::Engaged;
use wakes::Wakes;

mod antennas;
mod arrivals;
mod channels;
mod jammers;
mod links;
mod moves;
mod mpdu;
mod neighbours;
mod power;
mod receptions;
mod visible;
mod wakes;

/// The end of a frame, phase 0 or 1.
enum Event {
    SendEnds(FrameId),
    FrameEnds(FrameId),
    /// With propagation delay: its end at the station of this number in its neighbourhood.
    EndArrives(FrameId, u16),
    /// The last of them.
    Over(FrameId),
    /// The burst of the jammer of this number.
    BurstEnds(u16),
}

const SEND_END: u8 = 0;
const HEAR_END: u8 = 1;
const OVER: u8 = 2;

/// A frame on the air and the stations that sense it.
struct Airborne {
    frame: Frame,
    /// Its channel, MHz.
    freq_mhz: u32,
    demands: Demands,
    began: Instant,
    heard: Neighbourhood,
    /// Power at the station that it is for; `None` if there is none or its radio is off.
    power_w: Option<f64>,
    /// Fate at the station that it is for, once decided.
    fate: Option<Fate>,
    /// Boxed, as most frames have nothing there and each is moved several times.
    mpdus: Option<Box<Mpdus>>,
    receivers: u32,
    /// The stations that decoded it, with the power at each and the MPDUs, a bit each; only if it is recorded.
    decoded_w: Vec<(u16, f64, u64)>,
    /// Its sender was switched off before its end.
    cut: bool,
}

/// What is known of each MPDU of a frame at the station that it is for.
#[derive(Default)]
struct Mpdus {
    /// Of an A-MPDU that the station decoded in part, the fate of each.
    fates: Vec<Fate>,
    /// Lowest SINR over each, dB; only if it is recorded, and empty as of [`Receiver::worst_db`].
    sinr_db: Vec<f64>,
}

impl Mpdus {
    fn sinr_db(&self, n: usize) -> Option<f64> {
        self.sinr_db.get(n).copied().filter(|db| db.is_finite())
    }
}

struct Station {
    dcf: Dcf,
    receiver: Receiver,
    trajectory: Trajectory,
    errors: Stream,
    /// Draws of receptions by SINR.
    reception: Stream,
    fading: Stream,
    overhear: bool,
    on: bool,
    /// Centre frequency of its channel in the configuration, MHz.
    configured_mhz: u32,
    /// That of the channel that its radio is on.
    freq_mhz: u32,
    /// The channel of the last frame from its kernel.
    last_freq_mhz: u32,
    counters: Counters,
}

/// The machine: all stations with their MACs and radios, and the air.
pub struct Medium {
    radio: Arc<Radio>,
    /// Power from which on two stations are neighbours, W.
    neighbour_w: f64,
    propagation: Propagation,
    /// Links of the propagation model trace.
    measured: Option<Arc<Measured>>,
    fader: Fader,
    /// Standard deviation of the draw on each frame's power at each station, dB.
    fading_db: f64,
    /// Of the frame that begins: the factor on its power at each station; empty without fading.
    fades: Vec<f64>,
    stations: Vec<Station>,
    by_mac: HashMap<MacAddress, u16>,
    /// By EDCA, of the packets of each synthetic source.
    source_categories: Vec<Category>,
    /// The further radios of each station.
    further: Vec<Vec<u16>>,
    error_rates: ErrorRates,
    /// Phases 0 and 1.
    events: EventQueue<Event>,
    /// Phase 2.
    wakes: Wakes,
    engaged: Engaged,
    airborne: Vec<Option<Airborne>>,
    free: Vec<FrameId>,
    /// Frames that begin at `begun_at` and have not reached the other stations yet: phase 3.
    begun: Vec<FrameId>,
    begun_at: Instant,
    arrivals: Vec<Arrival>,
    /// Of the modes used so far.
    needs: Vec<Needs>,
    /// With propagation delay: starts of frames at stations, by their number in the frame's neighbourhood; phase 3.
    arriving: EventQueue<(FrameId, u16)>,
    neighbours: Neighbours,
    jammers: Jammers,
    /// Whether radios change their channels (mac80211_hwsim): then links are those that the same channel would give.
    tunes: bool,
    /// The shares of power between channels; `None`: radios of different channels do not interfere.
    spectrum: Option<Spectrum>,
    moved: bool,
    outputs: VecDeque<Output>,
    recording: bool,
    records_receptions: bool,
    /// Only if `outputs.radio_time` asks for them.
    radio_times: Option<RadioTimes>,
    /// The last reported NAV of each station; empty: NAV is not reported.
    reported_nav: Vec<Instant>,
    next_packet: u64,
    receptions: u64,
    handled: u64,
    scratch: Vec<Action>,
}

impl Medium {
    /// `trajectories`: one for each station, from the trace or standing at its position.
    pub fn new(loaded: &Loaded, trajectories: Vec<Trajectory>) -> Self {
        let config = &loaded.config;
        let radio = Arc::new(loaded.radio.clone());
        let n = config.stations.len();
        let index = loaded.station_index();
        let number = |name: &str| {
            let jammer = || config.jammers.iter().position(|j| j.name == name).expect("checked: it exists");
            index.get(name).copied().unwrap_or_else(|| n + jammer())
        };
        let jammers = config.jammers.len();
        let mut propagation = Propagation::with_jammers(&config.propagation, &radio, n, jammers, config.seed, number);
        propagation.set_walls(config.walls.iter().map(|wall| wall.wall()).collect());
        let of_stations = config.stations.iter().map(|s| (s.antenna(), &s.antenna));
        let of_jammers = config.jammers.iter().map(|j| (j.antenna(), &j.antenna));
        for (i, (change, pattern)) in of_stations.chain(of_jammers).enumerate() {
            propagation.set_antenna(i, propagation.antenna(i).with(&change));
            pattern.iter().for_each(|pattern| propagation.set_pattern(i, pattern));
        }
        let station = |i: usize, trajectory| {
            let perturbation = Stream::new(config.seed, i as u64, Purpose::FlowHash).next_u64();
            let queue = InterfaceQueue::new(&config.queue, &radio, perturbation);
            let backoff = Stream::new(config.seed, i as u64, Purpose::Backoff);
            let samples = Stream::new(config.seed, i as u64, Purpose::RateControl);
            Station {
                dcf: Dcf::new(i as u16, radio.clone(), queue, backoff, samples),
                receiver: Receiver::new(Rule::of(config.interference, &radio), &radio),
                trajectory,
                errors: Stream::new(config.seed, i as u64, Purpose::Error),
                reception: Stream::new(config.seed, i as u64, Purpose::Reception),
                fading: Stream::new(config.seed, i as u64, Purpose::Fading),
                overhear: false,
                on: true,
                configured_mhz: config.stations[i].freq_mhz,
                freq_mhz: config.stations[i].freq_mhz,
                last_freq_mhz: config.stations[i].freq_mhz,
                counters: Counters::default(),
            }
        };
        let still_from = trajectories.iter().map(|t| t.moving_until()).max().unwrap_or(Instant::ZERO);
        let by_kernel = config.hwsim.as_ref().is_some_and(|hwsim| hwsim.rates == HwsimRates::Kernel);
        Self {
            neighbour_w: radio.neighbour_threshold_w(by_kernel),
            propagation,
            measured: links_over_time(loaded),
            fader: Fader::new(&config.fading, config.seed, &radio),
            fading_db: config.fading_db,
            fades: Vec::new(),
            stations: trajectories.into_iter().enumerate().map(|(i, t)| station(i, t)).collect(),
            by_mac: config.stations.iter().enumerate().map(|(i, s)| (s.mac, i as u16)).collect(),
            source_categories: match loaded.radio.is_edca() {
                true => config.traffic.iter().map(|source| Category::of_dscp(source.dscp)).collect(),
                false => Vec::new(),
            },
            further: channels::further_radios(loaded),
            error_rates: ErrorRates::new(loaded),
            events: EventQueue::default(),
            wakes: Wakes::new(n),
            engaged: Engaged::new(n),
            airborne: Vec::new(),
            free: Vec::new(),
            begun: Vec::new(),
            begun_at: Instant::ZERO,
            arrivals: Vec::new(),
            needs: Vec::new(),
            arriving: EventQueue::default(),
            neighbours: Neighbours::new(n, still_from),
            jammers: Jammers::new(loaded),
            tunes: config.hwsim.is_some(),
            spectrum: config.adjacent_channels.then(|| Spectrum::of(&radio)),
            moved: false,
            outputs: VecDeque::new(),
            recording: false,
            records_receptions: config.outputs.monitor.is_some(),
            radio_times: config.outputs.radio_time.as_ref().map(|_| RadioTimes::new(n)),
            reported_nav: Vec::new(),
            next_packet: 1,
            receptions: 0,
            handled: 0,
            scratch: Vec::new(),
            radio,
        }
    }

    /// Selects whether the outputs include rows of the air log; by default they do not.
    pub fn set_recording(&mut self, on: bool) {
        self.recording = on;
    }

    /// Makes the outputs include each change of a station's NAV ([`Output::Nav`]); by default they do not.
    pub fn set_reporting_nav(&mut self) {
        self.reported_nav = self.stations.iter().map(|s| s.dcf.nav_until()).collect();
    }

    /// End of the NAV of a station (9.3.2.4); in the past: the medium is not reserved.
    pub fn nav_until(&self, station: StationId) -> Instant {
        self.stations[station.0 as usize].dcf.nav_until()
    }

    /// Whether the station reports decoded frames for other stations ([`Input::Overhear`]).
    pub fn overhears(&self, station: StationId) -> bool {
        self.stations[station.0 as usize].overhear
    }

    /// Position x, y, z of a station at `now`, m.
    pub fn position(&self, station: StationId, now: Instant) -> [f64; 3] {
        self.stations[station.0 as usize].trajectory.at(now)
    }

    /// Number of packets of a station that wait, the one in service included.
    pub fn backlog(&self, station: StationId) -> usize {
        self.stations[station.0 as usize].dcf.backlog()
    }

    /// The same of the packets of a synthetic source, and of those that wait with them.
    pub fn backlog_of_source(&self, station: StationId, source: usize) -> usize {
        let category = self.source_categories.get(source).copied().unwrap_or_default();
        self.stations[station.0 as usize].dcf.backlog_of(category)
    }

    /// What the rate control of a station knows of each peer; empty if all its data are sent at the profile's rate.
    pub fn rate_tables(&self, station: StationId) -> Vec<(u16, Vec<(Mode, Row)>)> {
        self.stations[station.0 as usize].dcf.rate_tables()
    }

    /// The station with this MAC address.
    pub fn station_of_mac(&self, mac: MacAddress) -> Option<StationId> {
        self.by_mac.get(&mac).copied().map(StationId)
    }

    /// Number of frame ends handled so far, each counted at every station that sensed the frame.
    pub fn receptions(&self) -> u64 {
        self.receptions
    }

    /// Number of events handled so far.
    pub fn events(&self) -> u64 {
        self.handled
    }

    /// The counters of a station.
    pub fn counters(&self, station: StationId) -> Counters {
        let s = &self.stations[station.0 as usize];
        let dcf = s.dcf.counters;
        Counters {
            rx_data: dcf.rx_data,
            ce_marked: s.dcf.marked(),
            rx_duplicate: dcf.rx_duplicate,
            ack_timeout: dcf.ack_timeout,
            cts_timeout: dcf.cts_timeout,
            internal_collision: dcf.internal_collision,
            ..s.counters.clone()
        }
    }

    /// The text of `radio-time.csv` up to `end`; `None`: `outputs.radio_time` does not ask for it.
    pub fn radio_time_csv(&self, end: Instant, names: &[&str]) -> Option<String> {
        self.radio_times.clone().map(|times| times.csv(end, names))
    }

    /// The state of the link of every ordered pair of stations at `now`.
    pub fn links(&self, now: Instant) -> Vec<LinkState> {
        let n = self.stations.len() as u16;
        let places: Vec<_> = self.stations.iter().map(|s| s.trajectory.at(now)).collect();
        let pairs = (0..n).flat_map(|a| (0..n).filter(move |b| *b != a).map(move |b| (a, b)));
        pairs
            .map(|(a, b)| {
                let on = self.is_on(StationId(a)) && self.is_on(StationId(b));
                let (at_a, at_b) = (places[usize::from(a)], places[usize::from(b)]);
                let power_w = if on { self.power_between_w((a, at_a), (b, at_b), now) } else { 0.0 };
                let [from_mhz, to_mhz] = [a, b].map(|s| self.stations[usize::from(s)].freq_mhz);
                let same = self.tunes || from_mhz == to_mhz;
                let (share, sense_w) = if same {
                    (1.0, self.radio.carrier_sense_threshold_w)
                } else {
                    (self.share(from_mhz, to_mhz), self.energy_w())
                };
                LinkState {
                    from: StationId(a),
                    to: StationId(b),
                    power_w,
                    in_range: same && power_w >= self.neighbour_w,
                    sensed: power_w * share >= sense_w && power_w * share > 0.0,
                    error_rate: self.error_rate(a, b, now),
                }
            })
            .collect()
    }

    fn power_w(&self, from: u16, to: u16, now: Instant) -> f64 {
        let (a, b) = (&self.stations[from as usize], &self.stations[to as usize]);
        self.power_between_w((from, a.trajectory.at(now)), (to, b.trajectory.at(now)), now)
    }

    /// Power from which a radio senses what it cannot decode, W.
    fn energy_w(&self) -> f64 {
        self.radio.energy_detect_w.unwrap_or(self.radio.carrier_sense_threshold_w)
    }

    /// The earliest instant at which anything of any phase is due; `Instant::MAX`: nothing is.
    fn next_at(&self) -> Instant {
        let begun = if self.begun.is_empty() { Instant::MAX } else { self.begun_at };
        let arriving = self.arriving.next_at().unwrap_or(Instant::MAX);
        let frames = self.events.next_at().unwrap_or(Instant::MAX).min(begun).min(arriving);
        frames.min(self.wakes.next_at()).min(self.jammers.next_at())
    }

    fn advance(&mut self, now: Instant) {
        loop {
            let at = self.next_at();
            if at > now || at == Instant::MAX {
                return;
            }
            self.handled += 1;
            if let Some((_, event)) = self.events.pop_due(at) {
                match event {
                    Event::SendEnds(id) => self.send_ends(at, id),
                    Event::FrameEnds(id) => self.frame_ends(at, id),
                    Event::EndArrives(id, number) => self.end_arrives(at, id, number),
                    Event::Over(id) => self.frame_is_over(id),
                    Event::BurstEnds(jammer) => self.burst_ends(at, jammer.into()),
                }
            } else if let Some(station) = self.wakes.pop_due(at) {
                self.stations[station as usize].dcf.handle_timeout(at);
                self.after(at, station);
            } else if let Some((_, (id, number))) = self.arriving.pop_due(at) {
                self.frame_arrives(at, id, number);
            } else if !self.begun.is_empty() || !self.jam(at) {
                // a frame of this instant is there before a burst
                self.frames_begin(at);
            }
        }
    }

    /// Carries out the actions of a station's MAC and plans its next wake-up.
    fn after(&mut self, now: Instant, station: u16) {
        // most calls follow carrier sense, which leads to none
        if self.stations[station as usize].dcf.has_actions() {
            let mut actions = std::mem::take(&mut self.scratch);
            self.stations[station as usize].dcf.take_actions(&mut actions);
            for action in actions.drain(..) {
                self.act(now, station, action);
            }
            self.scratch = actions;
        }
        let dcf = &self.stations[station as usize].dcf;
        self.wakes.set(station, dcf.next_timeout());
        self.engaged.set(station, dcf.is_engaged());
        self.report_nav(now, station);
    }

    /// The radio of a station may have changed its state.
    fn note_state(&mut self, now: Instant, station: u16) {
        if let Some(times) = &mut self.radio_times {
            let s = &self.stations[usize::from(station)];
            times.enter(now, station, if s.on { s.receiver.state() } else { RadioState::Off });
        }
    }

    fn report_nav(&mut self, now: Instant, station: u16) {
        let until = self.stations[station as usize].dcf.nav_until();
        if let Some(reported) = self.reported_nav.get_mut(station as usize) {
            if std::mem::replace(reported, until) != until {
                self.outputs.push_back(Output::Nav { at: now, station: StationId(station), until });
            }
        }
    }

    fn act(&mut self, now: Instant, station: u16, action: Action) {
        let id = StationId(station);
        match action {
            Action::Transmit(frame) => self.transmit(now, frame),
            Action::Deliver { packet, rate_bps } => {
                let reception = |m: &Mpdu| Reception { power_w: self.power_w(m.from, station, now), rate_bps };
                let heard = packet.mpdu.as_deref().map(reception);
                self.outputs.push_back(Output::Deliver { station: id, packet, heard });
            }
            Action::Sent { packet, retries, tries } => {
                let neighbour = packet.dest_mac;
                self.outputs.push_back(match packet.dest {
                    Dest::Broadcast => Output::Broadcast { station: id, packet },
                    _ => Output::Acked { station: id, neighbour, retries, packet, tries },
                });
            }
            Action::Dropped { packet, reason } => self.drop_packet(now, station, &packet, reason),
            Action::Failed { packet, reason, tries } => {
                let why = match (packet.dest, reason) {
                    (Dest::Unknown, _) => DropReason::NoPeer,
                    (_, FailReason::ShortRetryLimit) => DropReason::RetryShort,
                    (_, FailReason::LongRetryLimit) => DropReason::RetryLong,
                };
                self.log_drop(now, station, packet.dest, &packet, why);
                let neighbour = packet.dest_mac;
                self.outputs.push_back(Output::Failed { station: id, neighbour, reason, packet, tries });
            }
        }
    }

    /// Drops a packet that was never sent.
    fn drop_packet(&mut self, at: Instant, station: u16, packet: &Arc<Packet>, reason: DropReason) {
        self.log_drop(at, station, packet.dest, packet, reason);
        if packet.mpdu.is_some() {
            self.outputs.push_back(Output::Dropped { station: StationId(station), packet: packet.clone() });
        }
    }

    /// The end of the MPDUs that a recipient has stored and will not deliver: their sender, whom it has acknowledged them, has no
    /// copy any more. Those that the sender still holds have their end there.
    fn drop_stored(&mut self, at: Instant, station: u16, reason: DropReason) {
        for (from, packet) in self.stations[usize::from(station)].dcf.take_stored() {
            if !self.stations[usize::from(from)].dcf.holds(station, packet.id) {
                self.log_drop(at, station, Dest::Station(from), &packet, reason);
            }
        }
    }

    fn log_drop(&mut self, at: Instant, station: u16, peer: Dest, packet: &Packet, reason: DropReason) {
        self.stations[station as usize].counters.count_drop(reason);
        if self.recording {
            let (bytes, category) = (packet.ip_bytes, packet.category);
            let row = AirRow::Drop { at, station, peer, packet: packet.id, bytes, reason, category };
            self.outputs.push_back(Output::Air(row));
        }
    }

    fn transmit(&mut self, now: Instant, frame: Frame) {
        let from = frame.from;
        if let Some(mpdu) = frame.packet.as_ref().and_then(|p| p.mpdu.as_ref()) {
            self.tune(now, from, mpdu.freq_mhz);
        }
        let sender = &mut self.stations[from as usize];
        sender.counters.count_tx(frame.kind, frame.aggregate().len().max(1) as u64, frame.airtime);
        if let Some(lost) = sender.receiver.send_begins() {
            self.spoil(lost, from, Fate::Busy);
        }
        self.note_state(now, from);
        let heard = self.neighbourhood(from, now);
        let freq_mhz = self.stations[from as usize].freq_mhz;
        // a station that does not even sense the frame, or is on another channel, cannot decode it
        let heard_w = |to: u16| heard.iter().find(|(s, _)| *s == to).map(|(_, power_w)| *power_w);
        let sensed_w = |to: u16| heard_w(to).filter(|_| self.stations[to as usize].freq_mhz == freq_mhz);
        let fate = match frame.dest {
            Dest::Station(to) if sensed_w(to).is_none() => Some(Fate::Weak),
            Dest::Unknown => Some(Fate::Weak),
            _ => None,
        };
        let end = now + frame.airtime;
        let power_w = match frame.dest {
            Dest::Station(to) if self.is_on(StationId(to)) => {
                Some(sensed_w(to).unwrap_or_else(|| self.power_w(from, to, now) * self.faded(from, to, now)))
            }
            _ => None,
        };
        let demands = self.demands_of(&frame);
        let airborne = Airborne {
            frame,
            freq_mhz,
            demands,
            began: now,
            heard,
            power_w,
            fate,
            mpdus: None,
            receivers: 0,
            decoded_w: Vec::new(),
            cut: false,
        };
        let id = match self.free.pop() {
            Some(id) => {
                self.airborne[id as usize] = Some(airborne);
                id
            }
            None => {
                self.airborne.push(Some(airborne));
                (self.airborne.len() - 1) as FrameId
            }
        };
        self.begun_at = now;
        self.begun.push(id);
        self.jammers_sense(now, from);
        self.events.push(end, SEND_END, Event::SendEnds(id));
        if !self.radio.propagation_delay {
            self.events.push(end, HEAR_END, Event::FrameEnds(id));
        }
    }

    fn send_ends(&mut self, now: Instant, id: FrameId) {
        let airborne = self.airborne[id as usize].as_ref().expect("a frame ends once");
        if airborne.cut {
            return;
        }
        let from = airborne.frame.from;
        let sender = &mut self.stations[from as usize];
        sender.receiver.send_ends();
        sender.dcf.transmit_end(now, &airborne.frame);
        self.note_state(now, from);
        self.after(now, from);
    }

    fn log_tx(&mut self, airborne: Airborne) {
        let Airborne { frame, began, power_w, fate, mpdus, receivers, decoded_w: mut heard, .. } = airborne;
        heard.sort_by_key(|(station, ..)| *station);
        if !frame.aggregate().is_empty() {
            self.log_aggregate(began, &frame, fate, &mpdus.unwrap_or_default(), power_w, &heard);
            return;
        }
        if let Some(fate) = fate {
            self.stations[frame.from as usize].counters.count_fate(fate);
        }
        if self.recording {
            let sinr_db = mpdus.and_then(|mpdus| mpdus.sinr_db(0));
            let heard = heard.into_iter().map(|(station, power_w, _)| (station, power_w)).collect();
            let row = AirRow::Tx { at: began, frame, fate, receivers, power_w, heard, place: None, sinr_db };
            self.outputs.push_back(Output::Air(row));
        }
    }

    /// One row for each MPDU: the time of a row is its stretch, of the first with the preamble.
    fn log_aggregate(
        &mut self,
        began: Instant,
        whole: &Frame,
        fate: Option<Fate>,
        mpdus: &Mpdus,
        power_w: Option<f64>,
        heard: &[(u16, f64, u64)],
    ) {
        let parts = whole.aggregate();
        let fate_of = |n: usize| mpdus.fates.get(n).copied().or(fate);
        for fate in (0..parts.len()).filter_map(fate_of) {
            self.stations[whole.from as usize].counters.count_fate(fate);
        }
        if !self.recording {
            return;
        }
        let of = parts.len() as u8;
        for (n, (part, stretch)) in parts.iter().zip(whole.stretches(&self.radio, true)).enumerate() {
            let frame = Frame {
                bytes: part.bytes,
                airtime: Duration::from_nanos(stretch.to_ns - stretch.from_ns),
                sequence: part.sequence,
                retry: part.attempt > 1,
                attempt: part.attempt,
                backoff_slots: if n == 0 { whole.backoff_slots } else { 0 },
                packet: Some(part.packet.clone()),
                block: None,
                ..whole.clone()
            };
            let row = AirRow::Tx {
                at: began + Duration::from_nanos(stretch.from_ns),
                frame,
                fate: fate_of(n),
                receivers: 0,
                power_w,
                heard: heard.iter().filter(|(.., mpdus)| mpdus >> n & 1 == 1).map(|&(s, w, _)| (s, w)).collect(),
                place: Some((n as u8 + 1, of)),
                sinr_db: mpdus.sinr_db(n),
            };
            self.outputs.push_back(Output::Air(row));
        }
    }

    // ----- inputs

    fn packet_from_host(&mut self, now: Instant, station: StationId, frame: Vec<u8>) {
        let Ok(header) = ethernet::Frame::new_checked(frame.as_slice()) else { return };
        let dest_mac = header.destination();
        let dest = self.dest_of(dest_mac);
        let (ip_bytes, control) = (header.payload().len() as u32, header.is_network_control());
        let category = self.category_of(&header);
        self.enqueue(
            now,
            station.0,
            Packet { id: 0, dest, dest_mac, ip_bytes, control, category, ethernet: frame.into(), tag: 0, mpdu: None },
        );
    }

    /// The access category of a packet: by EDCA that of its DSCP, best effort of what has none (ARP, other protocols).
    fn category_of(&self, header: &ethernet::Frame<&[u8]>) -> Category {
        match header.dscp() {
            Some(dscp) if self.radio.is_edca() => Category::of_dscp(dscp),
            _ => Category::default(),
        }
    }

    fn dest_of(&self, mac: MacAddress) -> Dest {
        if is_group(&mac) {
            Dest::Broadcast
        } else {
            self.by_mac.get(&mac).map_or(Dest::Unknown, |s| Dest::Station(*s))
        }
    }

    fn enqueue(&mut self, now: Instant, station: u16, mut packet: Packet) {
        packet.id = self.next_packet;
        self.next_packet += 1;
        let (peer, id, bytes, category) = (packet.dest, packet.id, packet.ip_bytes, packet.category);
        let s = &mut self.stations[station as usize];
        s.counters.enqueued += 1;
        if self.recording {
            self.outputs.push_back(Output::Air(AirRow::Enqueue {
                at: now,
                station,
                peer,
                packet: id,
                bytes,
                category,
            }));
        }
        let packet = Arc::new(packet);
        if !s.on {
            self.drop_packet(now, station, &packet, DropReason::Off);
            return;
        }
        if packet.is_too_long() {
            self.drop_packet(now, station, &packet, DropReason::TooLong);
            return;
        }
        s.dcf.enqueue(now, packet);
        self.after(now, station);
    }

    fn purge(&mut self, now: Instant, station: StationId, neighbour: MacAddress, token: u32) {
        let peer = self.by_mac.get(&neighbour).copied();
        let packets = self.stations[station.0 as usize].dcf.purge(neighbour, peer);
        for packet in &packets {
            self.drop_packet(now, station.0, packet, DropReason::Purged);
        }
        self.outputs.push_back(Output::Purged { station, neighbour, token, packets });
    }

    fn stop(&mut self, now: Instant) {
        // frames on the air have been counted; they have no fate unless it is decided already
        for airborne in std::mem::take(&mut self.airborne).into_iter().flatten() {
            self.log_tx(airborne);
        }
        self.free.clear();
        self.begun.clear();
        self.log_bursts(now);
        // before the senders give up what they hold: drop_stored asks them
        for station in 0..self.stations.len() as u16 {
            self.drop_stored(now, station, DropReason::Stopped);
        }
        for station in 0..self.stations.len() as u16 {
            for packet in self.stations[station as usize].dcf.remaining() {
                self.drop_packet(now, station, &packet, DropReason::Stopped);
            }
        }
        self.events = EventQueue::default();
        self.arriving = EventQueue::default();
        self.jammers.stop();
        self.wakes = Wakes::new(self.stations.len());
    }
}

impl Machine for Medium {
    type Input = Input;
    type Output = Output;

    fn handle(&mut self, now: Instant, input: Input) {
        self.advance(now);
        match input {
            Input::Packet { station, frame } => self.packet_from_host(now, station, frame),
            Input::Mpdu { station, frame, cookie, rates, freq_mhz } => {
                let freq_mhz = freq_mhz.unwrap_or(self.stations[usize::from(station.0)].configured_mhz);
                let (bytes, rates) = (frame.into(), rates.into());
                let mpdu = Mpdu { from: station.0, cookie, bytes, rates, kind: Kind::Data, freq_mhz };
                self.mpdu_from_host(now, station, mpdu);
            }
            Input::Synthetic { station, to, ip_bytes, tag } => {
                let dest = to.map_or(Dest::Broadcast, |s| Dest::Station(s.0));
                let mut packet = Packet {
                    id: 0,
                    dest,
                    dest_mac: [0xff; 6],
                    ip_bytes,
                    control: false,
                    category: Category::default(),
                    ethernet: [].into(),
                    tag,
                    mpdu: None,
                };
                if let Some(category) = self.source_categories.get(usize::from(packet.synthetic_flow())) {
                    packet.category = *category;
                }
                self.enqueue(now, station.0, packet);
            }
            Input::Move { station, to, speed_mps } => self.follow(now, &[Leg { at: now, station, to, speed_mps }]),
            Input::Follow { legs } => self.follow(now, &legs),
            Input::Halt { at } => self.halt(now, at),
            Input::SetErrorRate { from, to, rate } => self.error_rates.set(from.0, to.0, rate),
            Input::Power { station, on } => match usize::from(station.0).checked_sub(self.stations.len()) {
                Some(jammer) => self.set_power_of_jammer(now, jammer, on),
                None => self.set_power_of_node(now, station, on),
            },
            Input::Antenna { station, change } => self.change_antenna(station, &change),
            Input::Overhear { station, on } => self.stations[station.0 as usize].overhear = on,
            Input::Purge { station, neighbour, token } => self.purge(now, station, neighbour, token),
            Input::Stop => self.stop(now),
        }
        self.advance(now);
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.advance(now);
    }

    fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    fn next_timeout(&self) -> Option<Instant> {
        Some(self.next_at()).filter(|at| *at != Instant::MAX)
    }

    fn next_visible(&self) -> Option<Instant> {
        self.visible_from(self.next_timeout()?)
    }
}
