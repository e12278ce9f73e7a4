//! Nodes on an ideal channel in virtual time, for the tests of the protocols: no collisions, any links, and for each node the
//! route table that a kernel would have. The real medium is in tests/mesh.
//!
//! A frame takes [`Air::airtime`]. A unicast frame to a node out of range is reported after another [`Air::retries`]; it needs
//! the link in both directions, for its acknowledgement. Numbers of nodes are the tests'; addresses are those of [`Node`].

use super::{fits, follow, packet_of, udp, INTERNET};
use crate::packet::ipv4;
use crate::{
    Bytes, Carrier, Device, Flow, Input, Mac, Node, Output, Protocol, Routes, Status, BROADCAST, BROADCAST_MAC,
};
use manet_engine::packet_filter::accepts;
use manet_engine::random::Purpose;
use manet_engine::{Duration, EventQueue, Instant, Stream};
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

/// A node of the channel.
pub struct Station<P> {
    /// The machine.
    pub machine: P,
    /// The routes that the machine has set.
    pub routes: Routes,
    /// Packets for the node itself, and (design B) for a gateway's kernel.
    pub delivered: Vec<(Instant, Bytes)>,
    /// Packets that left by the node's wires.
    pub wired: Vec<(Instant, Bytes)>,
    node: Node,
    on: bool,
}

enum Event {
    Input(Input),
    /// A data packet from the air (design A).
    Data(Bytes),
}

/// The end of a path that routes form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The destination, or a gateway for an address outside the network.
    Arrived,
    /// A node without a route.
    NoRoute,
    /// A node that is on the path already.
    Loop,
}

/// The channel and its nodes.
pub struct Air<P: Protocol> {
    /// The present instant.
    pub now: Instant,
    /// The nodes, by number.
    pub stations: BTreeMap<usize, Station<P>>,
    /// The second of each pair hears the first.
    pub links: BTreeSet<(usize, usize)>,
    /// All outputs, with the node's number.
    pub log: Vec<(Instant, usize, Output)>,
    /// Duration of a frame.
    pub airtime: Duration,
    /// Time after the frame at which its loss is reported.
    pub retries: Duration,
    /// Maximum random addition to `airtime`.
    pub jitter: Duration,
    /// Probability that a hearer loses a frame.
    pub loss: f64,
    /// Whether the radios of nodes with feedback report failed links and delivered frames.
    pub feedback: bool,
    /// Whether the run panics as soon as routes form a loop.
    pub loop_free: bool,
    /// Whether overheard frames pass the machine's filter first, as in the host.
    pub filters: bool,
    /// Overheard frames that a filter dropped.
    pub filtered: u64,
    /// Number of routes that were set although they were there.
    pub set_again: usize,
    /// Data packets whose TTL expired.
    pub expired: u64,
    identification: u16,
    routes_changed: bool,
    rng: Stream,
    events: EventQueue<(usize, Event)>,
}

impl<P: Protocol> Air<P> {
    /// These nodes, without links. `seed`: of the losses.
    ///
    /// # Panics
    /// If the protocol refuses a node or the options.
    pub fn new(nodes: impl IntoIterator<Item = (usize, Node)>, options: &P::Options, seed: u64) -> Self {
        let mut air = Self {
            now: Instant::ZERO,
            stations: BTreeMap::new(),
            links: BTreeSet::new(),
            log: Vec::new(),
            airtime: Duration::from_millis(1),
            retries: Duration::from_millis(2),
            jitter: Duration::ZERO,
            loss: 0.0,
            feedback: true,
            loop_free: false,
            filters: false,
            filtered: 0,
            set_again: 0,
            expired: 0,
            identification: 0,
            routes_changed: false,
            rng: Stream::new(seed, 0, Purpose::Error),
            events: EventQueue::default(),
        };
        nodes.into_iter().for_each(|(n, node)| air.start(n, node, options.clone()));
        air
    }

    /// Links each node to the next one.
    pub fn chained(mut self) -> Self {
        let numbers: Vec<usize> = self.stations.keys().copied().collect();
        numbers.windows(2).for_each(|w| self.link(w[0], w[1]));
        self
    }

    /// Starts a daemon now. One that runs on the node ends without a farewell, and its routes are removed.
    ///
    /// # Panics
    /// If the protocol refuses the node or the options.
    pub fn start(&mut self, n: usize, node: Node, options: P::Options) {
        let machine = P::new(node.clone(), options).unwrap();
        let (routes, delivered, wired) = (Routes::default(), Vec::new(), Vec::new());
        self.stations.insert(n, Station { machine, routes, delivered, wired, node, on: true });
    }

    /// `a` and `b` hear each other.
    pub fn link(&mut self, a: usize, b: usize) {
        self.links.extend([(a, b), (b, a)]);
    }

    /// `a` and `b` no longer hear each other.
    pub fn cut(&mut self, a: usize, b: usize) {
        self.links.remove(&(a, b));
        self.links.remove(&(b, a));
    }

    /// Switches a node off.
    pub fn kill(&mut self, n: usize) {
        self.stations.get_mut(&n).unwrap().on = false;
        self.links.retain(|(a, b)| *a != n && *b != n);
    }

    /// The machine of `n` gets an input now.
    pub fn input(&mut self, n: usize, input: Input) {
        self.stations.get_mut(&n).unwrap().machine.handle(self.now, input);
        self.drain(n);
    }

    /// The radio of `a` reports that `b` is out of range.
    pub fn fail(&mut self, a: usize, b: usize) {
        let neighbour = self.stations[&b].node.address;
        self.input(a, Input::LinkFailed { neighbour, bytes: Bytes::default() });
    }

    /// Node `n` sends or forwards a packet as its kernel does (design A), or hands it to the machine (design B).
    pub fn send(&mut self, n: usize, bytes: Bytes) {
        match P::CARRIER {
            Carrier::Udp(_) => self.route(n, bytes),
            Carrier::Frames => self.input(n, Input::Packet { bytes }),
        }
    }

    /// Node `from` sends a UDP packet ([`Self::send`]), of an identification of its own.
    pub fn data(&mut self, from: usize, destination: Ipv4Addr, payload: &[u8]) {
        self.identification = self.identification.wrapping_add(1);
        let source = self.stations[&from].node.address;
        self.send(from, udp(source, destination, self.identification, payload));
    }

    /// Runs to `end`.
    pub fn run(&mut self, end: Instant) {
        self.run_until(end, |_| false);
    }

    /// Runs to `end`, or until `done` is true after an event; returns whether it was.
    ///
    /// # Panics
    /// If a machine leaves a deadline behind.
    pub fn run_until(&mut self, end: Instant, mut done: impl FnMut(&Self) -> bool) -> bool {
        loop {
            if std::mem::take(&mut self.routes_changed) && self.loop_free {
                self.assert_no_loop();
            }
            let on = self.stations.iter().filter(|(_, s)| s.on);
            let timer = on.filter_map(|(n, s)| Some((s.machine.next_timeout()?, *n))).min();
            let due = timer.map(|(t, _)| t).into_iter().chain(self.events.next_at()).min();
            let Some(due) = due.filter(|t| *t <= end) else {
                self.now = self.now.max(end);
                return false;
            };
            self.now = self.now.max(due);
            if let Some((_, n)) = timer.filter(|(t, _)| *t == due) {
                let machine = &mut self.stations.get_mut(&n).unwrap().machine;
                machine.handle_timeout(self.now);
                assert!(machine.next_timeout().is_none_or(|t| t > self.now), "node {n}: a deadline is left at {due:?}");
                self.drain(n);
            } else if let Some((_, (n, event))) = self.events.pop_due(due) {
                self.happen(n, event);
            }
            if done(self) {
                return true;
            }
        }
    }

    /// The machine's state now.
    pub fn status(&self, n: usize) -> Status {
        self.stations[&n].machine.status(self.now)
    }

    /// A counter of the machine.
    pub fn counter(&self, n: usize, name: &str) -> u64 {
        self.status(n).counters.get(name)
    }

    /// A counter, summed over all machines.
    pub fn total(&self, name: &str) -> u64 {
        self.stations.keys().map(|n| self.counter(*n, name)).sum()
    }

    /// The outputs of a node.
    pub fn outputs(&self, n: usize) -> impl Iterator<Item = &Output> {
        self.log.iter().filter(move |(_, by, _)| *by == n).map(|(.., output)| output)
    }

    /// The notes of this event: time, address, value.
    pub fn notes_at(&self, n: usize, event: &str) -> Vec<(Instant, Ipv4Addr, u64)> {
        let note = |(t, by, output): &(Instant, usize, Output)| match output {
            Output::Note(note) if *by == n && note.event == event => Some((*t, note.about, note.value)),
            _ => None,
        };
        self.log.iter().filter_map(note).collect()
    }

    /// The notes of this event: address, value.
    pub fn notes(&self, n: usize, event: &str) -> Vec<(Ipv4Addr, u64)> {
        self.notes_at(n, event).into_iter().map(|(_, about, value)| (about, value)).collect()
    }

    /// Number of packets that a machine declared unreachable.
    pub fn unreachable(&self, n: usize) -> usize {
        self.outputs(n).filter(|output| matches!(output, Output::Unreachable { .. })).count()
    }

    /// Number of control datagrams on the air.
    pub fn messages(&self) -> usize {
        self.log.iter().filter(|(.., output)| matches!(output, Output::Control { .. })).count()
    }

    /// The nodes that a packet visits as routes lead, links or not.
    pub fn walk(&self, from: usize, to: Ipv4Addr) -> (Vec<usize>, End) {
        let mut path = vec![from];
        loop {
            let station = &self.stations[&path[path.len() - 1]];
            if station.node.address == to || station.reaches_by_wire(to) {
                return (path, End::Arrived);
            }
            let next = station.routes.lookup(to).and_then(|route| self.number(route.via));
            let Some(next) = next else { return (path, End::NoRoute) };
            if path.contains(&next) {
                return (path, End::Loop);
            }
            path.push(next);
        }
    }

    /// The nodes on the path from `from` to an address. `None`: a node on it has no route.
    ///
    /// # Panics
    /// If the routes form a loop.
    pub fn path(&self, from: usize, to: Ipv4Addr) -> Option<Vec<usize>> {
        let (path, end) = self.walk(from, to);
        assert!(end != End::Loop, "{:?}: a loop to {to}: {path:?}", self.now);
        (end == End::Arrived).then_some(path)
    }

    /// Whether routes lead from `from` to an address, over links.
    pub fn reaches(&self, from: usize, to: Ipv4Addr) -> bool {
        let (path, end) = self.walk(from, to);
        end == End::Arrived && path.windows(2).all(|w| self.links.contains(&(w[0], w[1])))
    }

    /// Whether routes lead from each node to each other, over links.
    pub fn all_reach_all(&self) -> bool {
        let all = || self.stations.values().map(|s| s.node.address);
        self.stations.keys().all(|from| all().all(|to| self.reaches(*from, to)))
    }

    /// # Panics
    /// If the routes to a node, or to the Internet with one gateway, form a loop.
    pub fn assert_no_loop(&self) {
        let gateways = self.stations.values().filter(|s| !s.node.wires.is_empty()).count();
        let internet = Some(INTERNET).filter(|_| gateways == 1);
        for to in self.stations.values().map(|s| s.node.address).chain(internet) {
            self.stations.keys().for_each(|from| drop(self.path(*from, to)));
        }
    }

    fn number(&self, address: Ipv4Addr) -> Option<usize> {
        self.stations.iter().find(|(_, s)| s.node.address == address).map(|(n, _)| *n)
    }

    fn happen(&mut self, n: usize, event: Event) {
        if !self.stations[&n].on {
            return;
        }
        match event {
            Event::Input(Input::Overheard { from, to, bytes })
                if self.filters && is_dull(&self.stations[&n].machine, from, to, &bytes) =>
            {
                self.filtered += 1;
            }
            Event::Input(input) => self.input(n, input),
            Event::Data(bytes) => self.receive(n, bytes),
        }
    }

    fn receive(&mut self, n: usize, mut bytes: Bytes) {
        let packet = ipv4::Packet::parse(&bytes).unwrap();
        self.input(n, used(&packet));
        let station = self.stations.get_mut(&n).unwrap();
        if packet.destination() != station.node.address {
            if packet.ttl() <= 1 {
                self.expired += 1;
                return;
            }
            bytes.0[8] -= 1;
            ipv4::repair(&mut bytes.0);
            self.route(n, bytes);
        } else if P::TUNNELS.contains(&packet.protocol()) {
            self.input(n, Input::Tunnelled { bytes });
        } else {
            station.delivered.push((self.now, bytes));
        }
    }

    /// Routes a packet like the kernel of `n`.
    fn route(&mut self, n: usize, bytes: Bytes) {
        let packet = ipv4::Packet::parse(&bytes).unwrap();
        let destination = packet.destination();
        let station = self.stations.get_mut(&n).unwrap();
        if destination == station.node.address {
            return station.delivered.push((self.now, bytes));
        }
        if station.reaches_by_wire(destination) {
            return station.wired.push((self.now, bytes));
        }
        match station.routes.lookup(destination).copied().filter(|route| route.device == Device::Radio) {
            // the input follows after all pending outputs of the machine
            None => self.plan(Duration::ZERO, n, Input::Packet { bytes }),
            Some(route) => {
                self.plan(Duration::ZERO, n, used(&packet));
                self.unicast(n, route.via, bytes, None);
            }
        }
    }

    fn plan(&mut self, delay: Duration, n: usize, input: Input) {
        self.events.push(self.now + delay, 0, (n, Event::Input(input)));
    }

    /// `control`: the input that the frame carries, if it is no data packet.
    fn unicast(&mut self, n: usize, via: Ipv4Addr, bytes: Bytes, control: Option<Input>) {
        let to = self.number(via).filter(|to| self.links.contains(&(n, *to)) && self.links.contains(&(*to, n)));
        match to.and_then(|to| Some((to, self.flight()?))) {
            Some((to, delay)) => {
                let event = control.map_or(Event::Data(bytes), Event::Input);
                self.events.push(self.now + delay, 0, (to, event));
            }
            None if self.reports(n) => {
                self.plan(self.airtime + self.retries, n, Input::LinkFailed { neighbour: via, bytes });
            }
            None => {}
        }
    }

    fn reports(&self, n: usize) -> bool {
        self.feedback && self.stations[&n].node.feedback
    }

    /// Duration of a frame; `None`: it is lost.
    fn flight(&mut self) -> Option<Duration> {
        let jitter = Duration::from_nanos(self.rng.below(self.jitter.as_nanos() + 1));
        (!self.rng.chance(self.loss)).then_some(self.airtime + jitter)
    }

    fn drain(&mut self, n: usize) {
        while let Some(output) = self.stations.get_mut(&n).unwrap().machine.poll_output() {
            self.log.push((self.now, n, output.clone()));
            let station = self.stations.get_mut(&n).unwrap();
            self.set_again += usize::from(follow(&mut station.routes, &output));
            assert!(fits(&output, station.node.mtu), "node {n}: too long for the radio: {output:?}");
            match output {
                Output::Control { to, ttl, bytes } => self.control(n, to, ttl, bytes),
                Output::SetRoute(_) => self.routes_changed = true,
                Output::Send { bytes } => self.route(n, bytes),
                Output::Deliver { bytes } => station.delivered.push((self.now, bytes)),
                Output::Purge { neighbour } => {
                    self.plan(Duration::ZERO, n, Input::Purged { neighbour, packets: Vec::new() });
                }
                Output::Frame { to, bytes, .. } => {
                    assert!(ipv4::Packet::parse(&bytes).is_some(), "node {n}: a frame without a packet");
                    self.frame(n, to, &bytes, false);
                }
                Output::Arp { to, bytes } => self.frame(n, to, &bytes, true),
                Output::ClearRoute { .. }
                | Output::Unreachable { .. }
                | Output::Notice { .. }
                | Output::PurgeFrames { .. }
                | Output::Note(_) => {}
            }
        }
    }

    fn control(&mut self, n: usize, to: Ipv4Addr, ttl: u8, bytes: Bytes) {
        let node = &self.stations[&n].node;
        let (from, port) = match P::CARRIER {
            Carrier::Udp(port) => (node.address, port.to_be_bytes()),
            Carrier::Frames => unreachable!("design B sends frames"),
        };
        if to == BROADCAST {
            for hearer in self.hearers(n) {
                if let Some(delay) = self.flight() {
                    self.plan(delay, hearer, Input::Control { from, to, ttl, bytes: bytes.clone() });
                }
            }
            return;
        }
        let datagram = [port.as_slice(), &port, &[0; 4], &bytes].concat();
        let mut frame = packet_of(ipv4::protocol::UDP, from, to, 0, &datagram);
        frame.0[8] = ttl;
        ipv4::repair(&mut frame.0);
        self.unicast(n, to, frame, Some(Input::Control { from, to, ttl, bytes }));
    }

    fn hearers(&self, n: usize) -> Vec<usize> {
        self.links.range((n, 0)..=(n, usize::MAX)).map(|(_, hearer)| *hearer).collect()
    }

    fn frame(&mut self, n: usize, to: Mac, bytes: &Bytes, arp: bool) {
        let from = self.stations[&n].node.mac;
        let mut reached = false;
        for hearer in self.hearers(n) {
            let bytes = bytes.clone();
            let own = to == self.stations[&hearer].node.mac;
            let input = match (arp, own || to == BROADCAST_MAC) {
                (false, true) => Input::Frame { from, to, bytes },
                (false, false) => Input::Overheard { from, to, bytes },
                (true, true) => Input::Arp { from, bytes },
                (true, false) => continue,
            };
            self.plan(self.airtime, hearer, input);
            reached |= own;
        }
        // the radio does not report that a frame other than IP failed
        if reached && self.reports(n) {
            self.plan(self.airtime, n, Input::FrameDelivered { to });
        } else if !arp && to != BROADCAST_MAC && self.reports(n) {
            self.plan(self.airtime + self.retries, n, Input::FrameFailed { to, bytes: bytes.clone() });
        }
    }
}

impl<P> Station<P> {
    fn reaches_by_wire(&self, destination: Ipv4Addr) -> bool {
        !self.node.wires.is_empty() && !self.node.in_network(destination)
    }
}

/// Whether a machine's filter drops an overheard frame.
pub fn is_dull<P: Protocol>(machine: &P, from: Mac, to: Mac, bytes: &Bytes) -> bool {
    let frame = [to.as_slice(), &from, &[8, 0], bytes].concat();
    let filter = machine.overheard_filter();
    !filter.is_empty() && !accepts(&filter, &frame)
}

fn used(packet: &ipv4::Packet) -> Input {
    Input::Used { flows: vec![Flow { source: packet.source(), destination: packet.destination(), packets: 1 }] }
}
