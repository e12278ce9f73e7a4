//! The loop: the medium, all machines, the movements and the traffic on one clock.
//!
//! At an instant the medium's deadlines come first, then those of the machines in the order of the nodes, then
//! movements, packets of the flows, reports of use and the sampling of links and routes. All consequences of one of
//! them are completed before the next: outputs are carried out in order, the inputs that they cause are passed on in order.

use crate::addresses;
use crate::frames::{self, Kind, DATA_PORT};
use crate::graph::Graph;
use crate::host::{Host, Verdict};
use crate::next_hops::{NextHops, Path};
use crate::scenario::{Move, Scenario};
use crate::seen::{Delivery, Loop, Seen};
use manet_engine::{Duration, EventQueue, Instant, Machine};
use manet_medium::mac::Packet;
use manet_medium::message::{Input as ToMedium, Output as FromMedium, StationId};
use manet_medium::trace::Trajectory;
use manet_medium::{AirRow, Medium};
use manet_routing::packet::{icmp, ipv4};
use manet_routing::{Bytes, Carrier, Device, Input, Mac, Node, Note, Output, Protocol, BROADCAST_MAC};
use std::collections::VecDeque;
use std::net::Ipv4Addr;

/// Interval at which links and routes are sampled.
pub const SAMPLE_INTERVAL: Duration = Duration::from_millis(100);
/// Maximum number of steps at one instant; more are a livelock.
const LIVELOCK: u32 = 200_000;
/// Linux's default.
const DATA_TTL: u8 = 64;
const MTU: u16 = 1500;

enum Agenda {
    Move(usize),
    Traffic(usize),
    Report(usize),
    Sample,
}

/// A mesh of nodes with the protocol `P`.
pub struct Mesh<P: Protocol> {
    scenario: Scenario,
    medium: Medium,
    hosts: Vec<Host<P>>,
    /// Each machine's next deadline.
    wakes: Vec<Instant>,
    /// The neighbour whose frame each node received last.
    heard_from: Vec<Option<usize>>,
    agenda: EventQueue<Agenda>,
    now: Instant,
    pending: VecDeque<(usize, Input)>,
    next_hops: NextHops,
    /// Whether routes changed since the last sample.
    rerouted: bool,
    /// Observations so far.
    pub seen: Seen,
}

// ----- running

impl<P: Protocol> Mesh<P> {
    /// A mesh at time 0.
    ///
    /// # Panics
    /// If the protocol refuses `options`.
    pub fn new(scenario: Scenario, options: P::Options) -> Self {
        let nodes = scenario.positions.len();
        let loaded = scenario.loaded();
        let trajectories = scenario.positions.iter().map(|p| Trajectory::standing(*p)).collect();
        let mut medium = Medium::new(&loaded, trajectories);
        medium.set_recording(true);
        let host = |i: usize| {
            let machine = P::new(node(i, &scenario), options.clone());
            Host::new(machine.unwrap_or_else(|e| panic!("{}: {e}", P::NAME)), addresses::ip(i))
        };
        let hosts: Vec<Host<P>> = (0..nodes).map(host).collect();
        for i in 0..nodes {
            let (station, on) = (StationId(i as u16), P::CARRIER == Carrier::Frames);
            medium.handle(Instant::ZERO, ToMedium::Overhear { station, on });
        }
        let mut agenda = EventQueue::default();
        scenario.moves.iter().enumerate().for_each(|(i, m)| agenda.push(m.at, 0, Agenda::Move(i)));
        scenario.flows.iter().enumerate().for_each(|(i, f)| agenda.push(f.start, 1, Agenda::Traffic(i)));
        agenda.push(Instant::ZERO, 3, Agenda::Sample);
        let mut seen = Seen { flows: vec![Default::default(); scenario.flows.len()], ..Seen::default() };
        seen.links.disturbed = Some(Instant::ZERO);
        let mut mesh = Self {
            medium,
            wakes: vec![Instant::MAX; nodes],
            heard_from: vec![None; nodes],
            agenda,
            now: Instant::ZERO,
            pending: VecDeque::new(),
            next_hops: NextHops::new(nodes),
            rerouted: true,
            seen,
            hosts,
            scenario,
        };
        (0..nodes).for_each(|i| mesh.drain(i));
        mesh.settle();
        mesh
    }

    /// Model time.
    pub fn now(&self) -> Instant {
        self.now
    }

    /// Number of nodes.
    pub fn nodes(&self) -> usize {
        self.hosts.len()
    }

    /// The scenario.
    pub fn scenario(&self) -> &Scenario {
        &self.scenario
    }

    /// The machine of a node.
    pub fn machine(&self, node: usize) -> &P {
        &self.hosts[node].machine
    }

    /// The next hops of all nodes.
    pub fn next_hops(&self) -> &NextHops {
        &self.next_hops
    }

    /// Runs to the end of the scenario.
    pub fn run(&mut self) {
        self.run_until(Instant::ZERO + self.scenario.length);
    }

    /// Does all that is due at or before `end`, each at its own instant.
    pub fn run_until(&mut self, end: Instant) {
        loop {
            let medium = self.medium.next_timeout().unwrap_or(Instant::MAX);
            let (machine, wake) = self.first_wake();
            let agenda = self.agenda.next_at().unwrap_or(Instant::MAX);
            let next = medium.min(wake).min(agenda);
            if next > end || next == Instant::MAX {
                break;
            }
            self.now = next;
            if medium == next {
                self.medium.handle_timeout(next);
            } else if wake == next {
                self.wake(machine);
            } else if let Some((_, what)) = self.agenda.pop_due(next) {
                self.act(what);
            }
            self.settle();
        }
        self.now = self.now.max(end);
    }

    /// Moves a node to `to` (m) at once.
    pub fn jump(&mut self, node: usize, to: [f64; 3]) {
        self.go(Move { at: self.now, node, to, speed_mps: f64::INFINITY });
        self.settle();
    }

    /// Sends an IPv4 packet from a node, as a program there would.
    pub fn send(&mut self, node: usize, bytes: Vec<u8>) {
        self.send_from(node, bytes);
        self.settle();
    }

    fn first_wake(&self) -> (usize, Instant) {
        let mut first = (0, Instant::MAX);
        for (i, wake) in self.wakes.iter().enumerate() {
            if *wake < first.1 {
                first = (i, *wake);
            }
        }
        first
    }

    fn wake(&mut self, i: usize) {
        let machine = &mut self.hosts[i].machine;
        machine.handle_timeout(self.now);
        let left = machine.next_timeout();
        let (now, name) = (self.now, P::NAME);
        assert!(
            left.is_none_or(|n| n > now),
            "{name} of node {i} leaves a deadline at {left:?} after handling {now:?}"
        );
        self.drain(i);
    }

    /// Handles outputs and inputs until none is left at this instant.
    fn settle(&mut self) {
        for _ in 0..LIVELOCK {
            if let Some(output) = self.medium.poll_output() {
                self.hear_medium(output);
            } else if let Some((i, input)) = self.pending.pop_front() {
                self.hosts[i].machine.handle(self.now, input);
                self.drain(i);
            } else {
                return;
            }
        }
        let next = self.pending.front();
        panic!("{} does not come to rest at {:?}; next: {next:?}", P::NAME, self.now);
    }

    /// Carries out the outputs of a machine.
    fn drain(&mut self, i: usize) {
        while let Some(output) = self.hosts[i].machine.poll_output() {
            self.seen.fingerprint.output(self.now, i, &output);
            self.carry_out(i, output);
        }
        self.wakes[i] = self.hosts[i].machine.next_timeout().unwrap_or(Instant::MAX);
    }

    fn act(&mut self, what: Agenda) {
        match what {
            Agenda::Move(i) => self.go(self.scenario.moves[i]),
            Agenda::Traffic(flow) => self.offer(flow),
            Agenda::Report(i) => {
                let input = self.hosts[i].report();
                self.pending.push_back((i, input));
            }
            Agenda::Sample => {
                self.sample();
                self.agenda.push(self.now + SAMPLE_INTERVAL, 3, Agenda::Sample);
            }
        }
    }

    fn go(&mut self, m: Move) {
        let input = ToMedium::Move { station: StationId(m.node as u16), to: m.to, speed_mps: m.speed_mps };
        self.medium.handle(self.now, input);
    }

    fn offer(&mut self, i: usize) {
        let flow = self.scenario.flows[i];
        if self.now >= flow.stop {
            return;
        }
        let number = self.seen.offered(i, self.now);
        let links = &mut self.seen.links;
        let connected = links.connected_pairs.iter().any(|(a, b, _)| (*a, *b) == (flow.from, flow.to));
        links.offered_connected += u64::from(connected);
        let mut payload = vec![0; usize::from(flow.bytes) - ipv4::HEADER_LEN - frames::UDP_HEADER_LEN];
        payload[..2].copy_from_slice(&(i as u16).to_be_bytes());
        payload[2..6].copy_from_slice(&number.to_be_bytes());
        let packet = self.datagram(flow.from, addresses::ip(flow.to), 0, DATA_TTL, DATA_PORT, &payload);
        self.agenda.push(self.now + flow.gap, 1, Agenda::Traffic(i));
        self.send_from(flow.from, packet);
    }

    fn datagram(&mut self, i: usize, to: Ipv4Addr, tos: u8, ttl: u8, port: u16, payload: &[u8]) -> Vec<u8> {
        let host = &mut self.hosts[i];
        let header = ipv4::Repr {
            tos,
            identification: host.next_identification(),
            dont_fragment: true,
            ttl,
            protocol: ipv4::protocol::UDP,
            source: host.address,
            destination: to,
        };
        frames::udp(header, port, payload)
    }
}

// ----- between machine, kernel and medium

impl<P: Protocol> Mesh<P> {
    fn send_from(&mut self, i: usize, bytes: Vec<u8>) {
        let verdict = match P::CARRIER {
            Carrier::Udp(_) => self.hosts[i].route(bytes),
            Carrier::Frames => Verdict::Machine(Input::Packet { bytes: Bytes(bytes) }),
        };
        self.apply(i, verdict, None);
    }

    fn apply(&mut self, i: usize, verdict: Verdict, from: Option<usize>) {
        match verdict {
            Verdict::Radio { via, bytes } => match addresses::node_of_ip(via).filter(|n| *n < self.hosts.len()) {
                Some(neighbour) => self.transmit(i, addresses::mac(neighbour), &bytes),
                None => self.seen.events.count("no-such-neighbour"),
            },
            Verdict::Machine(input) => self.pending.push_back((i, input)),
            Verdict::Up { bytes } => self.up(i, &bytes, from),
            Verdict::Dropped(reason) => self.seen.events.count(reason),
        }
        if let Some(at) = self.hosts[i].plan_report(self.now) {
            self.agenda.push(at, 2, Agenda::Report(i));
        }
    }

    fn transmit(&mut self, i: usize, to: Mac, packet: &[u8]) {
        self.transmit_frame(i, frames::ethernet(addresses::mac(i), to, packet));
    }

    fn transmit_frame(&mut self, i: usize, frame: Vec<u8>) {
        self.medium.handle(self.now, ToMedium::Packet { station: StationId(i as u16), frame });
    }

    /// A packet for a socket of node `i`.
    fn up(&mut self, i: usize, bytes: &[u8], last_hop: Option<usize>) {
        let Some(packet) = ipv4::Packet::parse(bytes) else { return };
        let data = frames::datagram(&packet).filter(|d| d.port == DATA_PORT && d.payload.len() >= 6);
        let Some(data) = data else {
            let icmp = packet.protocol() == ipv4::protocol::ICMP;
            return self.seen.events.count(if icmp { "icmp-received" } else { "not-listened-to" });
        };
        let flow = usize::from(u16::from_be_bytes([data.payload[0], data.payload[1]]));
        let number = u32::from_be_bytes([data.payload[2], data.payload[3], data.payload[4], data.payload[5]]);
        let meant =
            self.scenario.flows.get(flow).is_some_and(|f| f.to == i && packet.source() == addresses::ip(f.from));
        assert!(meant, "node {i} got packet {number} of flow {flow}, which is not for it");
        // each forwarder has decremented the TTL
        let hops = DATA_TTL.saturating_sub(packet.ttl()) + 1;
        self.seen.delivered(flow, Delivery { at: self.now, number, last_hop, hops });
    }

    fn carry_out(&mut self, i: usize, output: Output) {
        match output {
            Output::Control { to, ttl, bytes } => self.control(i, to, ttl, &bytes),
            Output::SetRoute(route) => {
                self.hosts[i].routes.set(route);
                self.rerouted(i, route.destination, route.prefix);
                if let Some(d) = self.node_of(route.destination) {
                    self.seen.discoveries.succeed(self.now, i, d);
                }
            }
            Output::ClearRoute { destination, prefix } => {
                self.hosts[i].routes.clear(destination, prefix);
                self.rerouted(i, destination, prefix);
            }
            Output::Send { bytes } => {
                let verdict = self.hosts[i].route(bytes.0);
                self.apply(i, verdict, None);
            }
            Output::Unreachable { bytes } => self.unreachable(i, &bytes),
            // for sources that support notices; those here do not
            Output::Notice { .. } => {}
            Output::Purge { neighbour } => match self.node_of(neighbour) {
                Some(n) => self.purge(i, addresses::mac(n)),
                None => self.pending.push_back((i, Input::Purged { neighbour, packets: Vec::new() })),
            },
            Output::Frame { to, bytes, control } => self.frame(i, to, bytes, control),
            Output::Arp { to, bytes } => self.transmit_frame(i, frames::arp(addresses::mac(i), to, &bytes)),
            Output::PurgeFrames { to } => self.purge(i, to),
            Output::Deliver { bytes } => {
                let verdict = self.hosts[i].up(bytes.0);
                self.apply(i, verdict, self.heard_from[i]);
            }
            Output::Note(note) => self.note(i, &note),
        }
    }

    fn control(&mut self, i: usize, to: Ipv4Addr, ttl: u8, bytes: &[u8]) {
        let Carrier::Udp(port) = P::CARRIER else { return self.seen.events.count("control-without-port") };
        self.seen.control_packets += 1;
        let packet = self.datagram(i, to, ipv4::TOS_CS6, ttl, port, bytes);
        // to a neighbour: the socket is bound to the radio, no router is involved
        match self.node_of(to) {
            Some(n) => self.transmit(i, addresses::mac(n), &packet),
            None => self.transmit(i, BROADCAST_MAC, &packet),
        }
    }

    fn frame(&mut self, i: usize, to: Mac, mut bytes: Bytes, control: bool) {
        if control {
            bytes.0[1] = ipv4::TOS_CS6;
            ipv4::repair(&mut bytes.0);
        }
        if let Some(packet) = ipv4::Packet::parse(&bytes) {
            if let Some(path) = frames::source_route(&packet) {
                self.check_path(&path);
            }
            match frames::kind(&packet, P::CARRIER) {
                Kind::Control => self.seen.control_packets += 1,
                _ => {
                    if let Some(d) = self.node_of(packet.destination()) {
                        self.seen.discoveries.succeed(self.now, i, d);
                    }
                }
            }
        }
        self.transmit(i, to, &bytes);
    }

    fn purge(&mut self, i: usize, neighbour: Mac) {
        self.medium.handle(self.now, ToMedium::Purge { station: StationId(i as u16), neighbour, token: 0 });
    }

    fn unreachable(&mut self, i: usize, about: &[u8]) {
        self.seen.events.count("unreachable");
        let host = &self.hosts[i];
        let Some(error) = icmp::host_unreachable(about, host.address) else { return };
        if ipv4::Packet::parse(&error).is_some_and(|e| e.destination() == host.address) {
            return self.up(i, &error, None);
        }
        self.send_from(i, error);
    }

    fn note(&mut self, i: usize, note: &Note) {
        self.seen.note(&note.event);
        if note.event == "link-broken" {
            self.seen.links.last_broken = self.now;
        }
        let Some(about) = self.node_of(note.about) else { return };
        match note.event.as_str() {
            "discovery" => self.seen.discoveries.begin(self.now, i, about),
            "no-route" => self.seen.discoveries.fail(i, about),
            _ => {}
        }
    }

    fn node_of(&self, address: Ipv4Addr) -> Option<usize> {
        addresses::node_of_ip(address).filter(|n| *n < self.hosts.len())
    }

    fn hear_medium(&mut self, output: FromMedium) {
        match output {
            FromMedium::Deliver { station, packet, .. } => self.arrive(station.0.into(), &packet),
            FromMedium::Overheard { station, packet, .. } => {
                if let Some((from, to, ip)) = frames::open(&packet.ethernet) {
                    let input = Input::Overheard { from, to, bytes: Bytes(ip.bytes().to_vec()) };
                    self.pending.push_back((station.0.into(), input));
                }
            }
            // the host does not pass on a failed ARP message
            FromMedium::Failed { packet, .. } if frames::open_arp(&packet.ethernet).is_some() => {}
            FromMedium::Failed { station, neighbour, packet, .. } if self.scenario.feedback => {
                let bytes = ip_of(&packet);
                let input = match (P::CARRIER, addresses::node_of_mac(&neighbour)) {
                    (Carrier::Frames, _) => Input::FrameFailed { to: neighbour, bytes },
                    (Carrier::Udp(_), Some(n)) => Input::LinkFailed { neighbour: addresses::ip(n), bytes },
                    (Carrier::Udp(_), None) => return,
                };
                self.pending.push_back((station.0.into(), input));
            }
            FromMedium::Acked { station, neighbour, .. } if self.scenario.feedback && P::CARRIER == Carrier::Frames => {
                self.pending.push_back((station.0.into(), Input::FrameDelivered { to: neighbour }));
            }
            FromMedium::Purged { station, neighbour, packets, .. } => {
                let packets =
                    packets.iter().filter(|p| frames::open(&p.ethernet).is_some()).map(|p| ip_of(p)).collect();
                let input = match (P::CARRIER, addresses::node_of_mac(&neighbour)) {
                    (Carrier::Frames, _) => Input::FramesPurged { to: neighbour, packets },
                    (Carrier::Udp(_), Some(n)) => Input::Purged { neighbour: addresses::ip(n), packets },
                    (Carrier::Udp(_), None) => return,
                };
                self.pending.push_back((station.0.into(), input));
            }
            FromMedium::Air(record) => self.on_air(&record),
            _ => {}
        }
    }

    fn arrive(&mut self, i: usize, packet: &Packet) {
        if let Some((from, message)) = frames::open_arp(&packet.ethernet) {
            let input = Input::Arp { from, bytes: Bytes(message.to_vec()) };
            return self.pending.push_back((i, input));
        }
        let Some((from, to, ip)) = frames::open(&packet.ethernet) else { return };
        let neighbour = addresses::node_of_mac(&from);
        self.heard_from[i] = neighbour;
        let verdict = match P::CARRIER {
            Carrier::Udp(port) => self.hosts[i].arrive(&ip, port),
            Carrier::Frames => Verdict::Machine(Input::Frame { from, to, bytes: Bytes(ip.bytes().to_vec()) }),
        };
        self.apply(i, verdict, neighbour);
    }
}

// ----- observing

impl<P: Protocol> Mesh<P> {
    fn on_air(&mut self, record: &AirRow) {
        match record {
            AirRow::Tx { frame, .. } if matches!(frame.kind.name(), "data" | "bcast") => {
                let ip = frame.packet.as_ref().and_then(|p| frames::open(&p.ethernet)).map(|(_, _, ip)| ip);
                let on_air = match ip.map(|ip| frames::kind(&ip, P::CARRIER)) {
                    Some(Kind::Data { added }) => {
                        self.seen.added_bytes += added as u64;
                        &mut self.seen.data
                    }
                    Some(Kind::Control) => &mut self.seen.control,
                    None if frame.packet.as_ref().is_some_and(|p| frames::open_arp(&p.ethernet).is_some()) => {
                        &mut self.seen.arp
                    }
                    _ => return,
                };
                on_air.frames += 1;
                on_air.bytes += u64::from(frame.bytes);
            }
            AirRow::Drop { reason, .. } => self.seen.events.count(reason.name()),
            _ => {}
        }
    }

    /// The kernel's routes of node `i` under this prefix may have changed.
    fn rerouted(&mut self, i: usize, destination: Ipv4Addr, prefix: u8) {
        if P::CARRIER == Carrier::Frames {
            return;
        }
        let network = |a| manet_routing::routes::network(a, prefix);
        match self.node_of(destination).filter(|_| prefix == 32) {
            Some(d) => self.rerouted_to(i, d),
            None => (0..self.hosts.len())
                .filter(|d| network(addresses::ip(*d)) == network(destination))
                .for_each(|d| self.rerouted_to(i, d)),
        }
    }

    fn rerouted_to(&mut self, i: usize, d: usize) {
        let route = self.hosts[i].routes.lookup(addresses::ip(d)).filter(|r| r.device == Device::Radio);
        let next = route.and_then(|r| self.node_of(r.via));
        if i == d || !self.next_hops.set(i, d, next) {
            return;
        }
        self.rerouted = true;
        if let Path::Loops(nodes) = self.next_hops.follow(i, d) {
            self.found_loop(d, nodes);
        }
    }

    fn found_loop(&mut self, destination: usize, nodes: Vec<usize>) {
        let quiet = self.now - self.seen.links.last_change.max(self.seen.links.last_broken);
        self.seen.found_loop(Loop { at: self.now, quiet, destination, nodes });
    }

    /// RFC 4728, section 8.1.1: a source route with the same node twice is a loop.
    fn check_path(&mut self, path: &[Ipv4Addr]) {
        let twice = |(i, a): (usize, &Ipv4Addr)| path[..i].contains(a);
        if path.iter().enumerate().any(twice) {
            let nodes: Vec<usize> = path.iter().filter_map(|a| self.node_of(*a)).collect();
            self.found_loop(*nodes.last().unwrap_or(&0), nodes);
        }
    }

    /// Samples the links, and whether the routes follow them.
    fn sample(&mut self) {
        let graph = Graph::of(&self.medium, self.hosts.len(), self.now);
        let links = &mut self.seen.links;
        let changed = graph != links.graph;
        if changed {
            links.changes += 1;
            links.last_change = self.now;
            links.disturbed = Some(self.now);
            links.connected_pairs = graph.connected_pairs();
            links.graph = graph;
        }
        if changed || self.rerouted {
            let leads = |(a, b, _): &&(usize, usize, u32)| self.next_hops.leads(&links.graph, *a, *b);
            links.routed_pairs = links.connected_pairs.iter().filter(leads).count();
            self.rerouted = false;
        }
        let nodes = self.hosts.len() as u64;
        links.samples += 1;
        links.pairs += nodes * (nodes - 1);
        links.connected += links.connected_pairs.len() as u64;
        links.hops += links.connected_pairs.iter().map(|(_, _, h)| u64::from(*h)).sum::<u64>();
        links.routed += links.routed_pairs as u64;
        if links.routed_pairs == links.connected_pairs.len() {
            if let Some(since) = links.disturbed.take() {
                links.convergences.push(self.now - since);
            }
        }
    }

    /// Loops now: destination and the nodes of the loop, one entry for each node from which packets enter it.
    pub fn loops_now(&self) -> Vec<(usize, Vec<usize>)> {
        let nodes = self.hosts.len();
        let pairs = (0..nodes).flat_map(|i| (0..nodes).map(move |d| (i, d)));
        pairs
            .filter_map(|(i, d)| match self.next_hops.follow(i, d) {
                Path::Loops(ring) => Some((d, ring)),
                _ => None,
            })
            .collect()
    }
}

fn node(i: usize, scenario: &Scenario) -> Node {
    Node {
        number: i as u64 + 1,
        address: addresses::ip(i),
        network: addresses::NETWORK,
        mac: addresses::mac(i),
        wires: Vec::new(),
        mtu: MTU,
        seed: scenario.seed,
        feedback: scenario.feedback,
        restarted: false,
        notices: false,
    }
}

fn ip_of(packet: &Packet) -> Bytes {
    frames::open(&packet.ethernet).map_or_else(Bytes::default, |(_, _, ip)| Bytes(ip.bytes().to_vec()))
}
