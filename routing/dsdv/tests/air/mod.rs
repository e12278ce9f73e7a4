//! Nodes on an ideal channel: a broadcast reaches the nodes in range a millisecond later, unless it is lost at random.

#![allow(dead_code)] // each test file uses its part

use manet_dsdv::{Dsdv, Options};
use manet_engine::random::Purpose;
use manet_engine::{Duration, EventQueue, Instant, Machine, Stream};
use manet_routing::{Bytes, Input, Node, Output, Protocol, Routes};
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

/// As [`node`], with a wire.
pub fn gateway(i: usize, seed: u64) -> Node {
    Node { wires: vec![(Ipv4Addr::new(192, 168, 1, 0), 30)], ..node(i, seed) }
}

/// The host at the other end of the wires.
pub const HOST: Ipv4Addr = Ipv4Addr::new(192, 168, 1, 2);

/// An IPv4 packet without payload.
pub fn packet(source: Ipv4Addr, destination: Ipv4Addr) -> Bytes {
    let header = manet_routing::packet::ipv4::Repr {
        tos: 0,
        identification: 1,
        dont_fragment: true,
        ttl: 64,
        protocol: 17,
        source,
        destination,
    };
    header.packet(b"data").into()
}

pub struct Air {
    pub machines: Vec<Dsdv>,
    pub routes: Vec<Routes>,
    pub links: BTreeSet<(usize, usize)>,
    pub loss: f64,
    pub now: Instant,
    /// All outputs except control packets.
    pub log: Vec<(Instant, usize, Output)>,
    pub updates_sent: usize,
    gateways: BTreeSet<usize>,
    seed: u64,
    options: Options,
    rng: Stream,
    flying: EventQueue<(usize, Ipv4Addr, Bytes)>,
}

impl Air {
    pub fn new(nodes: usize, options: &Options, seed: u64) -> Self {
        Self::with_gateways(nodes, &[], options, seed)
    }

    pub fn with_gateways(nodes: usize, gateways: &[usize], options: &Options, seed: u64) -> Self {
        let gateways = BTreeSet::from_iter(gateways.iter().copied());
        let of = |i| if gateways.contains(&i) { gateway(i, seed) } else { node(i, seed) };
        let machines = (0..nodes).map(|i| Dsdv::new(of(i), options.clone()).unwrap()).collect();
        Self {
            machines,
            gateways,
            routes: vec![Routes::default(); nodes],
            links: BTreeSet::new(),
            loss: 0.0,
            now: Instant::ZERO,
            log: Vec::new(),
            updates_sent: 0,
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
        let node = if self.gateways.contains(&i) { gateway(i, self.seed) } else { node(i, self.seed) };
        self.machines[i] = Dsdv::new(Node { restarted: crashed, ..node }, self.options.clone()).unwrap();
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
        self.updates_sent += 1;
        let hearers: Vec<usize> = self.links.iter().filter(|(a, _)| *a == i).map(|(_, b)| *b).collect();
        for to in hearers {
            if !self.rng.chance(self.loss) {
                self.flying.push(self.now + Duration::from_millis(1), 0, (to, ip(i), bytes.clone()));
            }
        }
    }

    /// The nodes on the path from `from` to `to`, as far as routes and links lead. `None`: a loop.
    pub fn path(&self, from: usize, to: usize) -> Option<Vec<usize>> {
        self.trace(from, ip(to), |here| here == to)
    }

    /// The nodes on the path from `from` to a gateway, as [`Self::path`].
    pub fn path_out(&self, from: usize) -> Option<Vec<usize>> {
        self.trace(from, HOST, |here| self.gateways.contains(&here))
    }

    fn trace(&self, from: usize, destination: Ipv4Addr, end: impl Fn(usize) -> bool) -> Option<Vec<usize>> {
        let mut path = vec![from];
        let mut here = from;
        while !end(here) {
            let Some(route) = self.routes[here].lookup(destination) else { return Some(path) };
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

    /// The gateway that packets of `from` reach.
    pub fn gateway_of(&self, from: usize) -> Option<usize> {
        let path = self.path_out(from)?;
        let linked = path.windows(2).all(|w| self.links.contains(&(w[0], w[1])));
        path.last().copied().filter(|last| linked && self.gateways.contains(last))
    }

    pub fn all_reach_all(&self) -> bool {
        let n = self.machines.len();
        (0..n).all(|a| (0..n).all(|b| self.reaches(a, b)))
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

    /// # Panics
    /// If the default routes form a loop.
    pub fn assert_no_default_loop(&self) {
        for from in 0..self.machines.len() {
            assert!(self.path_out(from).is_some(), "{:?}: a loop from {from}, seed {}", self.now, self.seed);
        }
    }
}
