//! Machines joined by an ideal radio, in virtual time: a control packet reaches the nodes in range a millisecond later, and
//! a data packet to a node out of range is reported as a failed link (if feedback is on). Without collisions: for those see
//! tests/mesh, which has the real medium.

#![allow(dead_code)] // each test file uses its part

use manet_engine::{Duration, EventQueue, Instant, Machine};
use manet_olsr::{wire, Olsr, Options};
use manet_routing::packet::ipv4;
use manet_routing::{Bytes, Input, Node, Output, Protocol, Routes};
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

const DELAY: Duration = Duration::from_millis(1);

pub struct Station {
    pub machine: Olsr,
    pub routes: Routes,
    pub set: u64,
    pub cleared: u64,
    pub notes: Vec<(Instant, String, Ipv4Addr, u64)>,
    pub unreachable: Vec<Bytes>,
    pub received: Vec<Bytes>,
    pub on: bool,
}

pub struct Net {
    pub now: Instant,
    pub stations: BTreeMap<u8, Station>,
    pub links: BTreeSet<(u8, u8)>,
    events: EventQueue<(u8, Input)>,
    /// Every message on the air: time, sender, contents.
    pub air: Vec<(Instant, u8, wire::Message)>,
    pub feedback: bool,
    /// Data packets whose TTL expired.
    pub expired: u64,
}

pub const fn ip(n: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, 0, n)
}

pub fn at(seconds: f64) -> Instant {
    Instant::ZERO + Duration::from_secs_f64(seconds)
}

pub fn node(n: u8) -> Node {
    Node::new(u64::from(n), ip(n), (Ipv4Addr::new(10, 0, 0, 0), 8), [2, 0, 0, 0, 0, n])
}

impl Net {
    pub fn new(count: u8, options: &Options) -> Self {
        let mut net = Self {
            now: Instant::ZERO,
            stations: BTreeMap::new(),
            links: BTreeSet::new(),
            events: EventQueue::default(),
            air: Vec::new(),
            feedback: true,
            expired: 0,
        };
        for n in 1..=count {
            net.add(node(n), options.clone());
        }
        net
    }

    /// 1 - 2 - 3 - ...
    pub fn chain(count: u8, options: &Options) -> Self {
        let mut net = Self::new(count, options);
        (1..count).for_each(|n| net.join(n, n + 1));
        net
    }

    /// Rows of `width`, neighbours at right angles.
    pub fn grid(width: u8, height: u8, options: &Options) -> Self {
        let mut net = Self::new(width * height, options);
        for n in 1..=width * height {
            if n % width != 0 {
                net.join(n, n + 1);
            }
            if n + width <= width * height {
                net.join(n, n + width);
            }
        }
        net
    }

    /// Adds a node; one that is added later has run until now without neighbours.
    pub fn add(&mut self, node: Node, options: Options) {
        let n = node.address.octets()[3];
        let mut machine = Olsr::new(node, options).unwrap();
        while let Some(past) = machine.next_timeout().filter(|t| *t <= self.now) {
            machine.handle_timeout(past);
            while machine.poll_output().is_some() {}
        }
        let station = Station {
            machine,
            routes: Routes::default(),
            set: 0,
            cleared: 0,
            notes: vec![],
            unreachable: vec![],
            received: vec![],
            on: true,
        };
        self.stations.insert(n, station);
    }

    pub fn join(&mut self, a: u8, b: u8) {
        self.links.extend([(a, b), (b, a)]);
    }

    pub fn cut(&mut self, a: u8, b: u8) {
        self.links.remove(&(a, b));
        self.links.remove(&(b, a));
    }

    pub fn input(&mut self, n: u8, input: Input) {
        let now = self.now;
        self.stations.get_mut(&n).unwrap().machine.handle(now, input);
        self.drain(n);
    }

    pub fn run(&mut self, until: f64) {
        let end = at(until);
        loop {
            let timeout = |(n, s): (&u8, &Station)| s.machine.next_timeout().map(|t| (t, *n));
            let timer = self.stations.iter().filter_map(timeout).min();
            let event = self.events.next_at();
            let next = timer.map(|(t, _)| t).into_iter().chain(event).min().filter(|t| *t <= end);
            let Some(next) = next else { break };
            assert!(next >= self.now, "a deadline at {next:?} while it is {:?}", self.now);
            self.now = next;
            if let Some((_, n)) = timer.filter(|(t, _)| *t == next) {
                let machine = &mut self.stations.get_mut(&n).unwrap().machine;
                machine.handle_timeout(next);
                assert!(machine.next_timeout().is_none_or(|t| t > next), "node {n}: a deadline is left at {next:?}");
                self.drain(n);
            } else if let Some((_, (n, input))) = self.events.pop_due(next) {
                self.input(n, input);
            }
        }
        self.now = end;
    }

    fn drain(&mut self, n: u8) {
        while let Some(output) = self.stations.get_mut(&n).unwrap().machine.poll_output() {
            self.execute(n, output);
        }
    }

    fn execute(&mut self, n: u8, output: Output) {
        let now = self.now;
        let station = self.stations.get_mut(&n).unwrap();
        match output {
            Output::Control { to, ttl, bytes } => self.broadcast(n, to, ttl, bytes),
            Output::SetRoute(route) => {
                assert!(station.routes.lookup(route.destination) != Some(&route), "node {n}: {route:?} is set already");
                station.set += 1;
                station.routes.set(route);
            }
            Output::ClearRoute { destination, prefix } => {
                station.cleared += 1;
                station.routes.clear(destination, prefix).expect("a route that is cleared was set");
            }
            Output::Note(note) => station.notes.push((now, note.event, note.about, note.value)),
            Output::Unreachable { bytes } => station.unreachable.push(bytes),
            Output::Send { bytes } => self.send(n, bytes),
            Output::Purge { neighbour } => self.input(n, Input::Purged { neighbour, packets: vec![] }),
            other => panic!("no output of OLSR: {other:?}"),
        }
    }

    fn broadcast(&mut self, n: u8, to: Ipv4Addr, ttl: u8, bytes: Bytes) {
        let (packet, cut) = wire::Packet::parse(&bytes).expect("what a node sends is well-formed");
        assert!(!cut && to == manet_routing::BROADCAST && bytes.len() <= 1472);
        self.air.extend(packet.messages.into_iter().map(|m| (self.now, n, m)));
        for (_, hearer) in self.links.iter().filter(|(a, _)| *a == n) {
            if self.stations[hearer].on && self.stations[&n].on {
                let input = Input::Control { from: ip(n), to, ttl, bytes: bytes.clone() };
                self.events.push(self.now + DELAY, 0, (*hearer, input));
            }
        }
    }

    /// A packet leaves the kernel of `n` by its routes.
    pub fn send(&mut self, n: u8, bytes: Bytes) {
        let packet = ipv4::Packet::parse(&bytes).expect("a packet");
        let destination = packet.destination();
        if destination == ip(n) {
            return self.stations.get_mut(&n).unwrap().received.push(bytes);
        }
        let Some(via) = self.stations[&n].routes.lookup(destination).map(|r| r.via) else {
            return self.input(n, Input::Packet { bytes });
        };
        let next = via.octets()[3];
        if !self.links.contains(&(n, next)) || !self.stations[&next].on {
            if self.feedback {
                self.input(n, Input::LinkFailed { neighbour: via, bytes });
            }
            return;
        }
        let mut onward = bytes.0.clone();
        onward[8] = packet.ttl() - 1;
        if onward[8] == 0 {
            return self.expired += 1;
        }
        self.send(next, Bytes(onward));
    }

    /// The hops from `from` to `to` as the routes are; `None` if they end.
    pub fn path(&self, from: u8, to: Ipv4Addr) -> Option<Vec<u8>> {
        let mut path = vec![from];
        loop {
            let here = path[path.len() - 1];
            if ip(here) == to {
                return Some(path);
            }
            let via = self.stations[&here].routes.lookup(to)?.via.octets()[3];
            assert!(!path.contains(&via), "a loop to {to}: {path:?}, then {via}");
            path.push(via);
        }
    }

    /// Shortest distance in hops from each node to each other.
    pub fn distances(&self) -> BTreeMap<(u8, u8), usize> {
        let mut distance = BTreeMap::new();
        for from in self.stations.keys() {
            let (mut frontier, mut hops) = (BTreeSet::from([*from]), 0);
            while !frontier.is_empty() {
                distance.extend(frontier.iter().map(|n| ((*from, *n), hops)));
                let next: BTreeSet<u8> =
                    self.links.iter().filter(|(a, _)| frontier.contains(a)).map(|(_, b)| *b).collect();
                frontier = next.into_iter().filter(|n| !distance.contains_key(&(*from, *n))).collect();
                hops += 1;
            }
        }
        distance
    }

    /// Asserts that every node has a shortest route to exactly the nodes it can reach, and that following it arrives.
    pub fn check_shortest(&self) {
        let distances = self.distances();
        for from in self.stations.keys() {
            for to in self.stations.keys().filter(|to| *to != from) {
                let route = self.stations[from].routes.lookup(ip(*to));
                let must = distances.get(&(*from, *to)).copied();
                assert_eq!(route.map(|r| usize::from(r.hops)), must, "{from} to {to} at {:?}", self.now);
                if let Some(hops) = must {
                    assert_eq!(self.path(*from, ip(*to)).map(|p| p.len() - 1), Some(hops), "{from} to {to}");
                }
            }
        }
    }

    pub fn status(&self, n: u8) -> serde_json::Value {
        serde_json::to_value(self.stations[&n].machine.status(self.now)).unwrap()
    }

    pub fn counter(&self, n: u8, name: &str) -> u64 {
        self.stations[&n].machine.status(self.now).counters.get(name)
    }
}

pub fn packet(from: Ipv4Addr, to: Ipv4Addr) -> Bytes {
    let header = ipv4::Repr {
        tos: 0,
        identification: 1,
        dont_fragment: true,
        ttl: 64,
        protocol: ipv4::protocol::UDP,
        source: from,
        destination: to,
    };
    Bytes(header.packet(&[0; 40]))
}
