//! An ideal channel for tests: machines with the route tables that a kernel would have, joined by perfect links. Every
//! frame takes a millisecond and is never lost, unless a test gives the channel a random stream; a unicast to a station out
//! of range is reported as a failed link after five. After each change of a route it asserts that no routes form a loop.

// each test file uses its part
#![allow(dead_code)]

use manet_aodv::{Aodv, Options};
use manet_engine::{Duration, EventQueue, Instant, Machine, Stream};
use manet_routing::packet::ipv4;
use manet_routing::{Bytes, Device, Flow, Input, Node, Output, Protocol, Routes, BROADCAST};
use std::collections::BTreeSet;
use std::net::Ipv4Addr;

pub const INTERNET: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 7);

pub const fn ip(n: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, 0, n as u8)
}

pub fn at(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(ms)
}

enum Event {
    Input(usize, Input),
    /// A data packet reaches a node by the air or a wire.
    Data(usize, Vec<u8>),
}

pub struct Station {
    pub machine: Aodv,
    pub routes: Routes,
    /// Packets for the node itself: time, first byte of the payload.
    pub delivered: Vec<(Instant, u8)>,
    /// Packets that left by the node's wire.
    pub wired: Vec<(Instant, Vec<u8>)>,
    pub unreachable: Vec<Vec<u8>>,
    /// Control messages sent: time, TTL, destination, bytes.
    pub sent: Vec<(Instant, u8, Ipv4Addr, Vec<u8>)>,
    pub notes: Vec<(Instant, String, Ipv4Addr, u64)>,
    gateway: bool,
    alive: bool,
}

pub struct Air {
    pub now: Instant,
    pub stations: Vec<Station>,
    links: BTreeSet<(usize, usize)>,
    events: EventQueue<Event>,
    identification: u16,
    feedback: bool,
    routes_changed: bool,
    /// The random stream of losses and delays; `None`: no losses.
    pub rng: Option<Stream>,
}

pub fn node(n: usize, gateway: bool) -> Node {
    Node {
        wires: if gateway { vec![(Ipv4Addr::new(192, 168, 1, 0), 30)] } else { Vec::new() },
        ..Node::new(n as u64, ip(n), (Ipv4Addr::new(10, 0, 0, 0), 8), [2, 0, 0, 0, 0, n as u8])
    }
}

impl Station {
    /// Entries of the machine's table.
    pub fn machine_routes(&self, now: Instant) -> usize {
        self.machine.status(now).routes.len()
    }
}

impl Air {
    /// Stations 1 to `n`, those in `gateways` with a wire.
    pub fn new(n: usize, options: &Options, gateways: &[usize]) -> Self {
        let station = |n: usize| Station {
            machine: Aodv::new(node(n, gateways.contains(&n)), options.clone()).unwrap(),
            routes: Routes::default(),
            delivered: Vec::new(),
            wired: Vec::new(),
            unreachable: Vec::new(),
            sent: Vec::new(),
            notes: Vec::new(),
            gateway: gateways.contains(&n),
            alive: true,
        };
        Self {
            now: Instant::ZERO,
            stations: (0..=n).map(station).collect(),
            links: BTreeSet::new(),
            events: EventQueue::default(),
            identification: 0,
            feedback: !options.hellos(),
            routes_changed: false,
            rng: None,
        }
    }

    /// Station k hears k - 1 and k + 1.
    pub fn chain(n: usize, options: &Options) -> Self {
        let mut air = Self::new(n, options, &[]);
        (1..n).for_each(|k| air.link(k, k + 1));
        air
    }

    pub fn link(&mut self, a: usize, b: usize) {
        self.links.extend([(a, b), (b, a)]);
    }
    pub fn cut(&mut self, a: usize, b: usize) {
        self.links.retain(|l| *l != (a, b) && *l != (b, a));
    }
    /// `to` no longer hears `from`, but is heard.
    pub fn cut_one_way(&mut self, from: usize, to: usize) {
        self.links.remove(&(from, to));
    }
    pub fn kill(&mut self, n: usize) {
        self.stations[n].alive = false;
        self.links.retain(|(a, b)| *a != n && *b != n);
    }

    /// A UDP-like packet, identified by the payload's first byte.
    pub fn packet(&mut self, source: Ipv4Addr, destination: Ipv4Addr, tag: u8, len: usize) -> Vec<u8> {
        self.identification += 1;
        let mut payload = vec![0; len];
        payload[0] = tag;
        let identification = self.identification;
        ipv4::Repr { tos: 0, identification, dont_fragment: false, ttl: 64, protocol: 200, source, destination }
            .packet(&payload)
    }

    /// The local stack of `from` sends a packet.
    pub fn data(&mut self, from: usize, destination: Ipv4Addr, tag: u8) {
        let bytes = self.packet(ip(from), destination, tag, 30);
        self.route(from, bytes);
    }

    /// A packet arrives over the wire of gateway `n`.
    pub fn data_from_wire(&mut self, n: usize, destination: Ipv4Addr, tag: u8) {
        let bytes = self.packet(INTERNET, destination, tag, 30);
        self.route(n, bytes);
    }

    pub fn input(&mut self, n: usize, input: Input) {
        self.stations[n].machine.handle(self.now, input);
        self.drain(n);
    }

    pub fn run_until(&mut self, end: Instant) {
        loop {
            let machine = |n: usize| self.stations[n].machine.next_timeout().filter(|_| self.stations[n].alive);
            let timer = (1..self.stations.len()).filter_map(|n| machine(n).map(|t| (t, n))).min();
            let event = self.events.next_at();
            match (timer, event) {
                (Some((t, n)), e) if t <= end && e.is_none_or(|e| t <= e) => {
                    self.now = t.max(self.now);
                    self.stations[n].machine.handle_timeout(t);
                    assert!(self.stations[n].machine.next_timeout().is_none_or(|next| next > t), "a stale deadline");
                    self.drain(n);
                }
                (_, Some(e)) if e <= end => {
                    self.now = e.max(self.now);
                    let (_, event) = self.events.pop_due(e).unwrap();
                    self.happen(event);
                }
                _ => break,
            }
            if std::mem::take(&mut self.routes_changed) {
                self.assert_no_loop();
            }
        }
        self.now = end.max(self.now);
    }

    pub fn tags(&self, n: usize) -> Vec<u8> {
        self.stations[n].delivered.iter().map(|(_, tag)| *tag).collect()
    }
    pub fn counter(&self, n: usize, name: &str) -> u64 {
        self.stations[n].machine.status(self.now).counters.get(name)
    }
    pub fn has_route(&self, n: usize, destination: Ipv4Addr) -> bool {
        self.stations[n].routes.lookup(destination).is_some()
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Input(n, input) if self.stations[n].alive => self.input(n, input),
            Event::Data(n, bytes) if self.stations[n].alive => self.receive(n, bytes),
            _ => (),
        }
    }

    fn receive(&mut self, n: usize, mut bytes: Vec<u8>) {
        let packet = ipv4::Packet::parse(&bytes).unwrap();
        let (source, destination, protocol) = (packet.source(), packet.destination(), packet.protocol());
        let tag = packet.payload()[0];
        self.input(n, Input::Used { flows: vec![Flow { source, destination, packets: 1 }] });
        if destination == ip(n) && protocol == ipv4::protocol::MINIMAL {
            self.input(n, Input::Tunnelled { bytes: Bytes(bytes) });
        } else if destination == ip(n) {
            self.stations[n].delivered.push((self.now, tag));
        } else if bytes[8] > 1 {
            bytes[8] -= 1;
            ipv4::repair(&mut bytes);
            self.route(n, bytes);
        }
    }

    /// Routes a packet like the kernel of `n`.
    fn route(&mut self, n: usize, bytes: Vec<u8>) {
        let packet = ipv4::Packet::parse(&bytes).unwrap();
        let (source, destination) = (packet.source(), packet.destination());
        if destination == ip(n) {
            let tag = packet.payload()[0];
            return self.stations[n].delivered.push((self.now, tag));
        }
        if self.stations[n].gateway && destination.octets()[0] != 10 {
            let now = self.now;
            return self.stations[n].wired.push((now, bytes));
        }
        match self.stations[n].routes.lookup(destination).copied().filter(|r| r.device == Device::Radio) {
            // the input follows after all pending outputs of the machine
            None => self.events.push(self.now, 0, Event::Input(n, Input::Packet { bytes: Bytes(bytes) })),
            Some(route) => {
                let used = Input::Used { flows: vec![Flow { source, destination, packets: 1 }] };
                self.events.push(self.now, 0, Event::Input(n, used));
                self.unicast(n, route.via, bytes, None);
            }
        }
    }

    /// `control`: the datagram's payload and TTL, if the frame carries one.
    fn unicast(&mut self, n: usize, via: Ipv4Addr, bytes: Vec<u8>, control: Option<(Vec<u8>, u8)>) {
        let to = usize::from(via.octets()[3]);
        let linked = self.links.contains(&(n, to)) && self.links.contains(&(to, n));
        if let Some(delay) = linked.then(|| self.delay()).flatten() {
            let event = match control {
                None => Event::Data(to, bytes),
                Some((payload, ttl)) => {
                    Event::Input(to, Input::Control { from: ip(n), to: via, ttl, bytes: Bytes(payload) })
                }
            };
            self.events.push(self.now + delay, 0, event);
        } else if self.feedback {
            let input = Input::LinkFailed { neighbour: via, bytes: Bytes(bytes) };
            self.events.push(self.now + Duration::from_millis(5), 0, Event::Input(n, input));
        }
    }

    /// Duration of a frame; `None`: it is lost.
    fn delay(&mut self) -> Option<Duration> {
        let Some(rng) = &mut self.rng else { return Some(Duration::from_millis(1)) };
        (!rng.chance(0.15)).then(|| Duration::from_micros(1000 + rng.below(60_000)))
    }

    fn drain(&mut self, n: usize) {
        while let Some(output) = self.stations[n].machine.poll_output() {
            let now = self.now;
            match output {
                Output::Control { to, ttl, bytes } => self.control(n, to, ttl, bytes.0),
                Output::SetRoute(route) => {
                    self.stations[n].routes.set(route);
                    self.routes_changed = true;
                }
                Output::ClearRoute { destination, prefix } => {
                    self.stations[n].routes.clear(destination, prefix).expect("cleared what was set");
                }
                Output::Send { bytes } => self.route(n, bytes.0),
                Output::Unreachable { bytes } => self.stations[n].unreachable.push(bytes.0),
                Output::Purge { neighbour } => {
                    let input = Input::Purged { neighbour, packets: Vec::new() };
                    self.events.push(now, 0, Event::Input(n, input));
                }
                Output::Note(note) => self.stations[n].notes.push((now, note.event, note.about, note.value)),
                other => panic!("no output of design A: {other:?}"),
            }
        }
    }

    fn control(&mut self, n: usize, to: Ipv4Addr, ttl: u8, payload: Vec<u8>) {
        self.stations[n].sent.push((self.now, ttl, to, payload.clone()));
        if to == BROADCAST {
            let hears = (1..self.stations.len()).filter(|m| self.links.contains(&(n, *m)));
            for m in hears.collect::<Vec<_>>() {
                let input = Input::Control { from: ip(n), to, ttl, bytes: Bytes(payload.clone()) };
                if let Some(delay) = self.delay() {
                    self.events.push(self.now + delay, 0, Event::Input(m, input));
                }
            }
            return;
        }
        let mut udp = vec![0x02, 0x8e, 0x02, 0x8e, 0, 0, 0, 0];
        udp.extend(&payload);
        let header = ipv4::Repr {
            tos: ipv4::TOS_CS6,
            identification: 0,
            dont_fragment: false,
            ttl,
            protocol: ipv4::protocol::UDP,
            source: ip(n),
            destination: to,
        };
        self.unicast(n, to, header.packet(&udp), Some((payload, ttl)));
    }

    /// Follows the kernels' routes to each destination from each station, and to the Internet if there is one gateway.
    fn assert_no_loop(&self) {
        let gateways: Vec<usize> = (1..self.stations.len()).filter(|n| self.stations[*n].gateway).collect();
        for destination in 1..self.stations.len() {
            self.assert_no_loop_to(destination, ip(destination));
        }
        if let [gateway] = gateways[..] {
            self.assert_no_loop_to(gateway, INTERNET);
        }
    }

    fn assert_no_loop_to(&self, end: usize, address: Ipv4Addr) {
        for start in (1..self.stations.len()).filter(|start| *start != end) {
            let (mut here, mut steps) = (start, 0);
            while let Some(route) = self.stations[here].routes.lookup(address) {
                here = usize::from(route.via.octets()[3]);
                steps += 1;
                assert!(steps <= self.stations.len(), "at {:?}: a loop to {address}", self.now);
                if here == end {
                    break;
                }
            }
        }
    }
}
