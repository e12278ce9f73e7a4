//! Synthetic traffic in virtual time: many stations in one process, no I/O, for tests, validation and planning.
//!
//! The sources are those of ns-2: `saturated` keeps the sender's queue filled; `cbr` sends every bytes * 8 / rate seconds, with
//! `jitter` each gap drawn uniformly within +-50 % (Application/Traffic/CBR, `random_ 1`). The stations forward a flow with a
//! `route` hop by hop, without a routing protocol.

use crate::air_log::AirRow;
use crate::config::{Discipline, Loaded, TrafficConfig, TrafficKind};
use crate::counters::Counters;
use crate::mac::fq_codel::LIMIT_PACKETS;
use crate::medium::{JammerCounters, Medium};
use crate::message::{Input, Output, StationId};
use crate::rate_tables::{rate_tables, RateTables};
use crate::trace::Trajectory;
use manet_engine::random::Purpose;
use manet_engine::{Duration, EventQueue, Instant, Machine, Stream};
use serde::Serialize;
use std::collections::BTreeMap;

/// A saturated source keeps this many packets at its station, so that the MAC never waits for it; with aggregation, so many more than an
/// A-MPDU holds, within the limit of the queue.
const SATURATED_BACKLOG: usize = 3;

/// Result of one source, over the measured time.
#[derive(Clone, Debug, Serialize)]
pub struct FlowResult {
    /// The sender.
    pub from: String,
    /// The receiver, or "*".
    pub to: String,
    /// Packets sent.
    pub offered_packets: u64,
    /// Packets received, for a broadcast at all stations together.
    pub delivered_packets: u64,
    /// IP bytes received.
    pub delivered_bytes: u64,
    /// Received IP bits per second.
    pub throughput_bps: f64,
    /// Mean delay from source to destination, us; 0 without a delivery.
    pub mean_delay_us: f64,
}

/// Result of a simulation.
#[derive(Clone, Debug, Serialize)]
pub struct SimResult {
    /// Warm-up and measured time, s.
    pub simulated_s: f64,
    /// Measured time, s.
    pub measured_s: f64,
    /// Events handled by the medium over the whole simulation.
    pub events: u64,
    /// Frame ends handled at stations that sensed the frame, over the whole simulation.
    pub receptions: u64,
    /// One result for each source, in the order of the configuration.
    pub flows: Vec<FlowResult>,
    /// Counters of each station after the warm-up.
    pub stations: BTreeMap<String, Counters>,
    /// The tables of the rate controls at the end, warm-up included.
    #[serde(skip_serializing_if = "RateTables::is_empty")]
    pub rates: RateTables,
    /// What each jammer has sent from time 0.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub jammers: BTreeMap<String, JammerCounters>,
    /// The text of `radio-time.csv`, from time 0.
    #[serde(skip)]
    pub radio_time: Option<String>,
}

struct Flow {
    /// Stations passed, source first; a broadcast has one.
    route: Vec<u16>,
    bytes: u32,
    kind: TrafficKind,
    gap: Duration,
    jitter: bool,
    stop: Instant,
    rng: Stream,
    broadcast: bool,
    offered: u64,
    delivered: u64,
    delay_ns: u128,
    created: Vec<Instant>,
}

/// A simulation that runs; see [`run`].
pub struct Sim<'a> {
    medium: Medium,
    flows: Vec<Flow>,
    sources: EventQueue<usize>,
    warmup: Instant,
    /// Packets that a saturated source keeps at its station.
    saturated: usize,
    on_air: &'a mut dyn FnMut(&AirRow),
    names: Vec<String>,
    jammers: Vec<String>,
}

/// Runs the traffic of `loaded` over `duration_s` (by default 10 s) after `warmup_s`. `trajectories`: one for each station.
/// `on_air` gets every row of the air log; `None` saves the cost of recording.
pub fn run(loaded: &Loaded, trajectories: Vec<Trajectory>, on_air: Option<&mut dyn FnMut(&AirRow)>) -> SimResult {
    let mut medium = Medium::new(loaded, trajectories);
    medium.set_recording(on_air.is_some());
    let mut nowhere = |_: &AirRow| ();
    let warmup = Instant::ZERO + Duration::from_secs_f64(loaded.config.warmup_s);
    let measured = Duration::from_secs_f64(loaded.config.duration_s.unwrap_or(10.0));
    let queue = &loaded.config.queue;
    let room = if queue.discipline == Discipline::FqCodel { LIMIT_PACKETS } else { queue.packets };
    let mut sim = Sim {
        medium,
        flows: flows(loaded),
        sources: EventQueue::default(),
        warmup,
        saturated: loaded
            .radio
            .aggregation_limits()
            .map_or(SATURATED_BACKLOG, |(max_mpdus, _)| (max_mpdus + SATURATED_BACKLOG).min(room)),
        on_air: match on_air {
            Some(f) => f,
            None => &mut nowhere,
        },
        names: loaded.config.stations.iter().map(|s| s.name.clone()).collect(),
        jammers: loaded.config.jammers.iter().map(|j| j.name.clone()).collect(),
    };
    for (i, t) in loaded.config.traffic.iter().enumerate() {
        sim.sources.push(Instant::ZERO + Duration::from_secs_f64(t.start_s), 0, i);
    }
    // events at the very end of the warm-up are measured, like `offered` and `delivered`
    sim.run_while(|next| next < warmup);
    let before = sim.counters();
    sim.run_while(|next| next <= warmup + measured);
    let after = sim.counters();
    sim.result(measured, &before, &after)
}

fn flows(loaded: &Loaded) -> Vec<Flow> {
    let index = loaded.station_index();
    let flow = |(i, t): (usize, &TrafficConfig)| {
        let broadcast = t.to == "*";
        let route: Vec<u16> = match (t.route.is_empty(), broadcast) {
            (false, _) => t.route.iter().map(|s| index[s.as_str()] as u16).collect(),
            (true, true) => vec![index[t.from.as_str()] as u16],
            (true, false) => vec![index[t.from.as_str()] as u16, index[t.to.as_str()] as u16],
        };
        Flow {
            route,
            bytes: t.bytes,
            kind: t.kind,
            gap: Duration::from_secs_f64(f64::from(t.bytes) * 8.0 / t.rate_bps.unwrap_or(f64::INFINITY)),
            jitter: t.jitter,
            stop: t.stop_s.map_or(Instant::MAX, |s| Instant::ZERO + Duration::from_secs_f64(s)),
            rng: Stream::new(loaded.config.seed, i as u64, Purpose::Traffic),
            broadcast,
            offered: 0,
            delivered: 0,
            delay_ns: 0,
            created: Vec::new(),
        }
    };
    loaded.config.traffic.iter().enumerate().map(flow).collect()
}

/// Tag of a synthetic packet: flow, hop, number of the packet.
#[derive(Clone, Copy)]
struct Tag {
    flow: u16,
    hop: u16,
    number: u32,
}

impl Tag {
    fn pack(self) -> u64 {
        u64::from(self.flow) << 48 | u64::from(self.hop) << 32 | u64::from(self.number)
    }
    fn unpack(tag: u64) -> Self {
        Self { flow: (tag >> 48) as u16, hop: (tag >> 32) as u16, number: tag as u32 }
    }
}

impl Sim<'_> {
    /// Does everything that is due, as long as its instant is `within`.
    fn run_while(&mut self, within: impl Fn(Instant) -> bool) {
        loop {
            let source = self.sources.next_at().unwrap_or(Instant::MAX);
            let medium = self.medium.next_timeout().unwrap_or(Instant::MAX);
            let next = source.min(medium);
            if next == Instant::MAX || !within(next) {
                return;
            }
            if medium <= source {
                self.medium.handle_timeout(medium);
                self.drain(medium);
            } else if let Some((now, flow)) = self.sources.pop_due(source) {
                self.source_fires(now, flow);
            }
        }
    }

    fn source_fires(&mut self, now: Instant, i: usize) {
        if now >= self.flows[i].stop {
            return;
        }
        match self.flows[i].kind {
            TrafficKind::Saturated => self.refill(now, i),
            TrafficKind::Cbr => {
                self.send(now, i);
                let flow = &mut self.flows[i];
                let factor = if flow.jitter { 0.5 + flow.rng.unit() } else { 1.0 };
                let gap = Duration::from_secs_f64(flow.gap.as_secs_f64() * factor);
                self.sources.push(now + gap, 0, i);
            }
        }
    }

    fn refill(&mut self, now: Instant, i: usize) {
        let source = StationId(self.flows[i].route[0]);
        while now < self.flows[i].stop && self.medium.backlog_of_source(source, i) < self.saturated {
            self.send(now, i);
        }
    }

    fn send(&mut self, now: Instant, i: usize) {
        let flow = &mut self.flows[i];
        let number = flow.created.len() as u32;
        flow.created.push(now);
        flow.offered += u64::from(now >= self.warmup);
        let to = (!flow.broadcast).then(|| StationId(flow.route[1]));
        let tag = Tag { flow: i as u16, hop: 1, number }.pack();
        let input = Input::Synthetic { station: StationId(flow.route[0]), to, ip_bytes: flow.bytes, tag };
        self.medium.handle(now, input);
        self.drain(now);
    }

    fn drain(&mut self, now: Instant) {
        while let Some(output) = self.medium.poll_output() {
            match output {
                Output::Deliver { packet, .. } => self.delivered(now, Tag::unpack(packet.tag)),
                Output::Acked { packet, .. } | Output::Failed { packet, .. } | Output::Broadcast { packet, .. } => {
                    self.sender_free(now, Tag::unpack(packet.tag));
                }
                Output::Air(record) => (self.on_air)(&record),
                _ => {}
            }
        }
    }

    fn sender_free(&mut self, now: Instant, tag: Tag) {
        let flow = &self.flows[tag.flow as usize];
        if flow.kind == TrafficKind::Saturated && tag.hop == 1 {
            self.sources.push(now, 0, tag.flow.into());
        }
    }

    fn delivered(&mut self, now: Instant, tag: Tag) {
        let flow = &mut self.flows[tag.flow as usize];
        let hops = flow.route.len() as u16 - 1;
        if flow.broadcast || tag.hop == hops {
            let created = flow.created[tag.number as usize];
            if now >= self.warmup {
                flow.delivered += 1;
                flow.delay_ns += u128::from((now - created).as_nanos());
            }
            return;
        }
        let station = StationId(flow.route[tag.hop as usize]);
        let to = Some(StationId(flow.route[tag.hop as usize + 1]));
        let tag = Tag { hop: tag.hop + 1, ..tag }.pack();
        let ip_bytes = flow.bytes;
        self.medium.handle(now, Input::Synthetic { station, to, ip_bytes, tag });
    }

    fn counters(&self) -> Vec<Counters> {
        (0..self.names.len() as u16).map(|s| self.medium.counters(StationId(s))).collect()
    }

    fn result(&self, measured: Duration, before: &[Counters], after: &[Counters]) -> SimResult {
        let flow = |f: &Flow| {
            let bytes = f.delivered * u64::from(f.bytes);
            FlowResult {
                from: self.names[f.route[0] as usize].clone(),
                to: if f.broadcast { "*".into() } else { self.names[*f.route.last().unwrap_or(&0) as usize].clone() },
                offered_packets: f.offered,
                delivered_packets: f.delivered,
                delivered_bytes: bytes,
                throughput_bps: bytes as f64 * 8.0 / measured.as_secs_f64(),
                mean_delay_us: f.delay_ns as f64 / 1e3 / f.delivered.max(1) as f64,
            }
        };
        let names: Vec<&str> = self.names.iter().map(String::as_str).collect();
        let stations = self.names.iter().cloned().zip(before.iter().zip(after).map(|(b, a)| a.since(b)));
        SimResult {
            simulated_s: (self.warmup + measured).as_secs_f64(),
            measured_s: measured.as_secs_f64(),
            events: self.medium.events(),
            receptions: self.medium.receptions(),
            flows: self.flows.iter().map(flow).collect(),
            stations: stations.collect(),
            rates: rate_tables(&self.medium, &self.names),
            jammers: (0..)
                .zip(&self.jammers)
                .map(|(i, name)| (name.clone(), self.medium.jammer(i, self.warmup + measured).1))
                .collect(),
            radio_time: self.medium.radio_time_csv(self.warmup + measured, &names),
        }
    }
}
