//! Nodes on an ideal channel: a broadcast reaches the nodes in range a millisecond later, unless it is lost at random.

#![allow(dead_code)] // each test file uses its part

use manet_adv::{Adv, Options};
use manet_engine::random::Purpose;
use manet_engine::{Duration, EventQueue, Instant, Machine, Stream};
use manet_routing::{Bytes, Flow, Input, Node, Output, Protocol, Routes};
use std::collections::BTreeSet;
use std::net::Ipv4Addr;

pub fn ip(i: usize) -> Ipv4Addr {
    Ipv4Addr::from(0x0a00_0001 + i as u32)
}

pub fn at(s: f64) -> Instant {
    Instant::ZERO + Duration::from_secs_f64(s)
}

pub fn node(i: usize, seed: u64) -> Node {
    Node { seed, ..Node::new(i as u64 + 1, ip(i), (Ipv4Addr::new(10, 0, 0, 0), 8), [2, 0, 0, 0, 0, i as u8]) }
}

pub const TCP: u8 = 6;
pub const UDP: u8 = 17;

/// An IPv4 packet of UDP.
pub fn packet(source: Ipv4Addr, destination: Ipv4Addr) -> Bytes {
    packet_of(UDP, source, destination)
}

/// An IPv4 packet with four bytes of payload.
pub fn packet_of(protocol: u8, source: Ipv4Addr, destination: Ipv4Addr) -> Bytes {
    let header = manet_routing::packet::ipv4::Repr {
        tos: 0,
        identification: 1,
        dont_fragment: true,
        ttl: 64,
        protocol,
        source,
        destination,
    };
    header.packet(b"data").into()
}

pub struct Air {
    pub machines: Vec<Adv>,
    pub routes: Vec<Routes>,
    pub links: BTreeSet<(usize, usize)>,
    pub loss: f64,
    pub now: Instant,
    /// All outputs except control packets.
    pub log: Vec<(Instant, usize, Output)>,
    pub messages_sent: usize,
    seed: u64,
    options: Options,
    rng: Stream,
    flying: EventQueue<(usize, Ipv4Addr, Bytes)>,
}

impl Air {
    pub fn new(nodes: usize, options: &Options, seed: u64) -> Self {
        let machines = (0..nodes).map(|i| Adv::new(node(i, seed), options.clone()).unwrap()).collect();
        Self {
            machines,
            routes: vec![Routes::default(); nodes],
            links: BTreeSet::new(),
            loss: 0.0,
            now: Instant::ZERO,
            log: Vec::new(),
            messages_sent: 0,
            seed,
            options: options.clone(),
            rng: Stream::new(seed, 0, Purpose::Error),
            flying: EventQueue::default(),
        }
    }

    pub fn chain(nodes: usize, options: &Options, seed: u64) -> Self {
        let mut air = Self::new(nodes, options, seed);
        (1..nodes).for_each(|i| air.link(i - 1, i));
        air
    }

    pub fn link(&mut self, a: usize, b: usize) {
        self.links.extend([(a, b), (b, a)]);
    }

    pub fn unlink(&mut self, a: usize, b: usize) {
        self.links.remove(&(a, b));
        self.links.remove(&(b, a));
    }

    /// Replaces the daemon of `i` by a new one, started now; `crashed`: the old one left its routes behind.
    pub fn restart(&mut self, i: usize, crashed: bool) {
        self.machines[i] = Adv::new(Node { restarted: crashed, ..node(i, self.seed) }, self.options.clone()).unwrap();
        self.routes[i] = Routes::default();
    }

    pub fn input(&mut self, i: usize, input: Input) {
        self.machines[i].handle(self.now, input);
        self.settle(i);
    }

    /// The radio of `a` reports that `b` is out of range.
    pub fn fail(&mut self, a: usize, b: usize) {
        self.input(a, Input::LinkFailed { neighbour: ip(b), bytes: Bytes::default() });
    }

    /// A data packet goes from node to node as far as routes lead. At a broken link the radio reports it; at a node without a
    /// route the machine gets it. True: it arrived.
    pub fn data(&mut self, from: usize, to: usize) -> bool {
        let (bytes, mut here) = (packet(ip(from), ip(to)), from);
        let flows = vec![Flow { source: ip(from), destination: ip(to), packets: 1 }];
        for _ in 0..self.machines.len() {
            let Some(route) = self.routes[here].lookup(ip(to)) else {
                self.input(here, Input::Packet { bytes });
                return false;
            };
            let next = (u32::from(route.via) - u32::from(ip(0))) as usize;
            self.input(here, Input::Used { flows: flows.clone() });
            if !self.links.contains(&(here, next)) {
                self.input(here, Input::LinkFailed { neighbour: ip(next), bytes });
                return false;
            }
            here = next;
            if here == to {
                self.input(to, Input::Used { flows });
                return true;
            }
        }
        panic!("a loop from {from} to {to}")
    }

    /// Data packets from `from` to `to` every `gap_ms` up to `end`; returns how many arrived without waiting for a route.
    pub fn stream(&mut self, from: usize, to: usize, gap_ms: u64, end: Instant) -> usize {
        let mut arrived = 0;
        while self.now < end {
            arrived += usize::from(self.data(from, to));
            let next = (self.now + Duration::from_millis(gap_ms)).min(end);
            self.run(next, |_| false);
        }
        arrived
    }

    /// Runs to `end`, or until `done` is true after an event; returns whether it was.
    pub fn run(&mut self, end: Instant, mut done: impl FnMut(&Self) -> bool) -> bool {
        loop {
            let due = self.machines.iter().enumerate().filter_map(|(i, m)| m.next_timeout().map(|t| (t, i))).min();
            let arrives = self.flying.next_at();
            let next = due.map(|(t, _)| t).into_iter().chain(arrives).min();
            let Some(next) = next.filter(|t| *t <= end) else {
                self.now = end;
                return false;
            };
            self.now = self.now.max(next);
            if let Some((_, i)) = due.filter(|(t, _)| *t == next) {
                self.machines[i].handle_timeout(self.now);
                assert!(self.machines[i].next_timeout().is_none_or(|t| t > self.now), "a deadline is left");
                self.settle(i);
            } else if let Some((_, (to, from, bytes))) = self.flying.pop_due(next) {
                self.input(to, Input::Control { from, to: manet_routing::BROADCAST, ttl: 1, bytes });
            }
            if done(self) {
                return true;
            }
        }
    }

    fn settle(&mut self, i: usize) {
        while let Some(output) = self.machines[i].poll_output() {
            match output {
                Output::Control { bytes, .. } => self.broadcast(i, &bytes),
                Output::SetRoute(route) => {
                    self.routes[i].set(route);
                    self.log.push((self.now, i, Output::SetRoute(route)));
                }
                Output::ClearRoute { destination, prefix } => {
                    self.routes[i].clear(destination, prefix).expect("only a route that is there is cleared");
                    self.log.push((self.now, i, Output::ClearRoute { destination, prefix }));
                }
                other => self.log.push((self.now, i, other)),
            }
        }
    }

    fn broadcast(&mut self, i: usize, bytes: &Bytes) {
        self.messages_sent += 1;
        let hearers: Vec<usize> = self.links.iter().filter(|(a, _)| *a == i).map(|(_, b)| *b).collect();
        for to in hearers {
            if !self.rng.chance(self.loss) {
                self.flying.push(self.now + Duration::from_millis(1), 0, (to, ip(i), bytes.clone()));
            }
        }
    }

    /// The nodes on the path from `from` to `to`, as far as routes and links lead. `None`: a loop.
    pub fn path(&self, from: usize, to: usize) -> Option<Vec<usize>> {
        let mut path = vec![from];
        let mut here = from;
        while here != to {
            let Some(route) = self.routes[here].lookup(ip(to)) else { return Some(path) };
            here = (u32::from(route.via) - u32::from(ip(0))) as usize;
            if path.contains(&here) {
                return None;
            }
            path.push(here);
        }
        Some(path)
    }

    pub fn reaches(&self, from: usize, to: usize) -> bool {
        let linked = |path: &[usize]| path.windows(2).all(|w| self.links.contains(&(w[0], w[1])));
        self.path(from, to).is_some_and(|p| p.last() == Some(&to) && linked(&p))
    }

    /// # Panics
    /// If the routes form a loop.
    pub fn assert_no_loop(&self) {
        let n = self.machines.len();
        for from in 0..n {
            for to in 0..n {
                assert!(
                    self.path(from, to).is_some(),
                    "{:?}: a loop from {from} to {to}, seed {}",
                    self.now,
                    self.seed
                );
            }
        }
    }
}
