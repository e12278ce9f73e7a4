//! The machine: RFC 3626 with one interface. It holds the sets, expires their entries, and updates MPRs, advertised
//! neighbours and routes from them.
//!
//! Departures: a link-layer notification (section 13) overrides HELLOs only until the next HELLO; a broken link advances
//! the next HELLO and TC (9.3 and 8.5 allow it), a failed one sends a HELLO at once.

use crate::associations::{Aliases, Networks};
use crate::links::Links;
use crate::mpr::{self, Selectors};
use crate::neighbours::Neighbours;
use crate::options::{Link, Options};
use crate::outgoing::Outgoing;
use crate::routes::{self, Table, View};
use crate::topology::Topology;
use manet_engine::random::Purpose;
use manet_engine::timers::Timers;
use manet_engine::{Duration, Instant, Machine, Stream};
use manet_routing::packet::ipv4;
use manet_routing::routes::network;
use manet_routing::status::{NeighbourStatus, RouteStatus};
use manet_routing::{
    Bytes, Carrier, Counters, Duplicates, Held, Input, Node, Notices, OptionError, Output, Protocol, Routes, Status,
    BROADCAST,
};
use std::collections::{BTreeSet, VecDeque};
use std::net::Ipv4Addr;

/// RFC 3626, 3.1.
const PORT: u16 = 698;
/// TTL of control packets, which are for neighbours only.
const CONTROL_TTL: u8 = 1;
/// Length of the headers of IPv4 and UDP, in bytes.
const IP_UDP_LEN: usize = 28;
/// Smallest MTU in bytes: room for a message header and a few addresses.
const MIN_MTU: u16 = 128;
/// Minimum time between calculations of MPRs and routes; a failed link is followed at once.
const PACE: Duration = Duration::from_millis(50);
/// The minimum time grows by [`PACE`] per this number of routes, because a calculation takes longer and changes come more often the
/// larger the network is: 100 nodes calculate every 100 ms at most, 300 every 250 ms, an eighth of the HELLO interval. A table full of
/// forged routes must not load the processor either.
const ROUTES_PER_PACE: usize = 64;
/// Maximum time that a packet waits for a route: three HELLO intervals by default.
const HELD_FOR: Duration = Duration::from_secs(6);
/// Minimum buffer of a node that sends notices, in packets; the defaults of AODV and DSDV.
const HELD_WITH_NOTICE: usize = 64;
/// Maximum number of remembered messages; a real network of 200 nodes sends 1200 in the 30 s that they are kept.
const MAX_DUPLICATES: usize = 16_384;
/// Step of a restarted node's sequence numbers beyond those that its neighbours may remember.
const RESTART_STEP: u16 = 0x4000;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Timer {
    /// An entry of the sets may have expired.
    Expire,
    Hello,
    Tc,
    Mid,
    Hna,
    /// The jitter of forwarded messages is over.
    Flush,
    /// MPRs or routes may be calculated again.
    Pace,
    Held,
}

/// The state that must be recalculated.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Dirty {
    /// Links or the advertised neighbours.
    pub links: bool,
    /// The MPRs.
    pub mprs: bool,
    /// The routing table.
    pub routes: bool,
}

/// An OLSR node as a machine.
#[derive(Debug)]
pub struct Olsr {
    pub(crate) node: Node,
    pub(crate) options: Options,
    /// This node's addresses.
    pub(crate) own: BTreeSet<Ipv4Addr>,
    /// Networks that we announce and do not route to by OLSR.
    pub(crate) attached: Vec<(Ipv4Addr, u8)>,
    pub(crate) subnet_broadcast: Ipv4Addr,
    pub(crate) rng: Stream,
    pub(crate) timers: Timers<Timer>,
    pub(crate) links: Links,
    pub(crate) neighbours: Neighbours,
    pub(crate) mprs: BTreeSet<Ipv4Addr>,
    pub(crate) selectors: Selectors,
    pub(crate) topology: Topology,
    pub(crate) aliases: Aliases,
    pub(crate) networks: Networks,
    /// Duplicate set (3.4): the received messages by originator and number, so that none is processed or forwarded twice. With
    /// one interface D_iface_list is the same for every entry, and a message is considered for forwarding only once.
    pub(crate) duplicates: Duplicates<(Ipv4Addr, u16)>,
    pub(crate) dirty: Dirty,
    pub(crate) message_sequence: u16,
    pub(crate) ansn: u16,
    pub(crate) advertised: BTreeSet<Ipv4Addr>,
    /// End of the empty TCs after the last selector (9.3).
    pub(crate) silent_from: Instant,
    pub(crate) last_hello: Instant,
    pub(crate) last_tc: Instant,
    pub(crate) outgoing: Outgoing,
    table: Table,
    /// The same routes for lookups like the kernel's.
    kernel: Routes,
    calculated_at: Option<Instant>,
    held: Held,
    notices: Notices,
    /// The link whose failure the radio is reporting.
    failed: Option<Ipv4Addr>,
    stopped: bool,
    pub(crate) counters: Counters,
    out: VecDeque<Output>,
}

impl Protocol for Olsr {
    const NAME: &'static str = "olsr";
    const CARRIER: Carrier = Carrier::Udp(PORT);
    type Options = Options;

    fn new(node: Node, options: Options) -> Result<Self, OptionError> {
        options.check()?;
        if node.mtu < MIN_MTU {
            return Err(format!("node.mtu: {} bytes are too few for OLSR, give {MIN_MTU} or more", node.mtu).into());
        }
        let mut olsr = Self::silent(node, options);
        olsr.begin();
        Ok(olsr)
    }

    fn held(&mut self) -> Option<&mut Held> {
        Some(&mut self.held)
    }

    fn status(&self, now: Instant) -> Status {
        Status {
            sequence: Some(u32::from(self.ansn)),
            routes: self.route_status(),
            neighbours: self.neighbour_status(now),
            held: self.held.len(),
            counters: self.counters.clone(),
            details: self.details(),
        }
    }
}

impl Machine for Olsr {
    type Input = Input;
    type Output = Output;

    fn handle(&mut self, now: Instant, input: Input) {
        if self.stopped {
            return;
        }
        match input {
            Input::Control { from, bytes, .. } => self.receive(now, from, &bytes),
            Input::Packet { bytes } => self.route(now, None, bytes),
            Input::LinkFailed { neighbour, bytes } => self.link_failed(now, neighbour, bytes),
            Input::Purged { neighbour, packets } => {
                for bytes in packets {
                    self.route(now, Some(neighbour), bytes);
                }
            }
            Input::Stop => return self.stop(now),
            Input::Used { .. } => {}
            _ => self.counters.count("unexpected-input"),
        }
        self.settle(now);
    }

    fn handle_timeout(&mut self, now: Instant) {
        while let Some((timer, _)) = self.timers.expire(now) {
            self.fire(now, timer);
        }
        self.settle(now);
    }

    fn poll_output(&mut self) -> Option<Output> {
        self.out.pop_front()
    }

    fn next_timeout(&self) -> Option<Instant> {
        self.timers.next_timeout()
    }
}

impl Olsr {
    /// A machine with empty sets and no planned message.
    fn silent(node: Node, options: Options) -> Self {
        let mut rng = Stream::new(node.seed, node.number, Purpose::Routing);
        let mut sequence = || (rng.below(1 << 16) as u16).wrapping_add(if node.restarted { RESTART_STEP } else { 0 });
        let (message_sequence, ansn, packet_sequence) = (sequence(), sequence(), sequence());
        // a node that sends notices holds packets even if the option is 0
        let held = if node.notices { options.held_packets.max(HELD_WITH_NOTICE) } else { options.held_packets };
        Self {
            own: options.mid.iter().copied().chain([node.address]).collect(),
            attached: announced_networks(&node, &options),
            subnet_broadcast: subnet_broadcast(&node),
            rng,
            timers: Timers::default(),
            links: Links::new(options.neighbour_hold, options.hysteresis),
            neighbours: Neighbours::default(),
            mprs: BTreeSet::new(),
            selectors: Selectors::default(),
            topology: Topology::default(),
            aliases: Aliases::default(),
            networks: Networks::default(),
            duplicates: Duplicates::new(options.duplicate_hold, MAX_DUPLICATES),
            dirty: Dirty::default(),
            message_sequence,
            ansn,
            advertised: BTreeSet::new(),
            silent_from: Instant::ZERO,
            last_hello: Instant::ZERO,
            last_tc: Instant::ZERO,
            outgoing: Outgoing::new(usize::from(node.mtu) - IP_UDP_LEN, packet_sequence),
            table: Table::new(),
            kernel: Routes::default(),
            calculated_at: None,
            held: Held::new(held, held, HELD_FOR),
            notices: Notices::new(&node, held),
            failed: None,
            stopped: false,
            counters: Counters::default(),
            out: VecDeque::new(),
            node,
            options,
        }
    }

    /// Plans the first messages, each after a random jitter, so that nodes started together do not send together.
    fn begin(&mut self) {
        let mut timers = vec![Timer::Hello, Timer::Tc];
        timers.extend(Some(Timer::Mid).filter(|_| !self.options.mid.is_empty()));
        timers.extend(Some(Timer::Hna).filter(|_| !self.attached.is_empty()));
        for timer in timers {
            let first = Instant::ZERO + self.jitter() + Duration::from_nanos(1);
            self.timers.set(timer, first);
        }
    }

    /// Uniform from 0 to MAXJITTER (3.4.1), the same for all messages (18.9).
    pub(crate) fn jitter(&mut self) -> Duration {
        Duration::from_nanos(self.rng.below(self.options.max_jitter().as_nanos() + 1))
    }

    pub(crate) fn fire(&mut self, now: Instant, timer: Timer) {
        let interval = match timer {
            Timer::Expire => return self.expire(now),
            Timer::Flush => return self.flush(),
            // the calculation follows when all due timers have fired
            Timer::Pace => return,
            Timer::Held => return self.expire_held(now),
            Timer::Hello => {
                self.last_hello = now;
                self.send_hello(now);
                self.options.hello_interval
            }
            Timer::Tc => {
                self.last_tc = now;
                self.send_tc(now);
                self.options.tc_interval
            }
            Timer::Mid => {
                self.send_mid();
                self.options.mid_interval
            }
            Timer::Hna => {
                self.send_hna();
                self.options.hna_interval
            }
        };
        let early = self.jitter();
        self.timers.set(timer, now + (interval - early));
        self.flush();
    }

    /// Sends all waiting messages.
    fn flush(&mut self) {
        self.timers.stop(Timer::Flush);
        while let Some(packet) = self.outgoing.next_packet() {
            self.counters.count("packets-sent");
            self.out.push_back(Output::Control { to: BROADCAST, ttl: CONTROL_TTL, bytes: packet.emit().into() });
        }
    }

    /// Arms the expiry timer for an entry that expires at `at`.
    pub(crate) fn watch(&mut self, at: Instant) {
        let at = self.timers.get(Timer::Expire).map_or(at, |earlier| earlier.min(at));
        self.timers.set(Timer::Expire, at);
    }

    fn expire(&mut self, now: Instant) {
        self.links.expire(now);
        self.dirty.links = true;
        self.selectors.expire(now);
        let two_hop = self.neighbours.expire(now);
        let topology = self.topology.expire(now);
        let aliases = self.aliases.expire(now);
        let networks = self.networks.expire(now);
        self.dirty.mprs |= two_hop || aliases;
        self.dirty.routes |= two_hop || topology || aliases || networks;
        let next = [
            self.selectors.next_timeout(),
            self.neighbours.next_timeout(),
            self.topology.next_timeout(),
            self.aliases.next_timeout(),
            self.networks.next_timeout(),
        ];
        if let Some(at) = next.into_iter().flatten().min() {
            self.watch(at);
        }
    }

    /// Updates everything that depends on the sets after an event at `now`.
    fn settle(&mut self, now: Instant) {
        if self.dirty.links {
            self.follow_links(now);
        }
        self.follow_sets(now);
        if std::mem::take(&mut self.dirty.links) {
            self.follow_advertised(now);
            if let Some(at) = self.links.next_timeout(now) {
                self.watch(at);
            }
        }
        self.timers.arm(Timer::Held, self.held.next_timeout());
    }

    fn follow_links(&mut self, now: Instant) {
        let changes = self.neighbours.follow(now, &self.links);
        if changes.gained.is_empty() && changes.lost.is_empty() {
            return;
        }
        self.dirty = Dirty { links: true, mprs: true, routes: true };
        for main in &changes.lost {
            self.selectors.lost(*main);
            let by_radio = self.failed == Some(*main);
            self.out.push_back(Output::note("link-broken", *main, if by_radio { 1 } else { 2 }));
            self.counters.count(if by_radio { "links-failed" } else { "links-lost" });
        }
        if !changes.lost.is_empty() {
            self.advance_message(now, Timer::Hello);
            self.advance_message(now, Timer::Tc);
        }
    }

    /// Chooses MPRs and calculates routes if they may have changed: at once after a failed link, otherwise not before the
    /// minimum time since the last calculation. No change is lost.
    fn follow_sets(&mut self, now: Instant) {
        if !self.dirty.mprs && !self.dirty.routes {
            return;
        }
        let pace = PACE * (1 + (self.table.len() / ROUTES_PER_PACE) as u64);
        let earliest = self.calculated_at.map_or(now, |last| last + pace);
        if earliest > now && self.failed.is_none() {
            return self.timers.set(Timer::Pace, earliest);
        }
        self.calculated_at = Some(now);
        self.timers.stop(Timer::Pace);
        self.choose_mprs();
        if std::mem::take(&mut self.dirty.routes) {
            self.calculate_routes(now);
        }
    }

    pub(crate) fn choose_mprs(&mut self) {
        if std::mem::take(&mut self.dirty.mprs) {
            let (neighbours, coverage) = (&self.neighbours, self.options.mpr_coverage);
            self.dirty.links = true;
            self.mprs = mpr::select(self.node.address, neighbours.symmetric(), neighbours.two_hop(), coverage);
        }
    }

    fn calculate_routes(&mut self, now: Instant) {
        let view = View {
            now,
            own: &self.own,
            attached: &self.attached,
            links: &self.links,
            neighbours: &self.neighbours,
            selectors: &self.selectors,
            topology: &self.topology,
            aliases: &self.aliases,
            networks: &self.networks,
        };
        let table = routes::calculate(&view, &self.table);
        let before = std::mem::replace(&mut self.table, table);
        for ((prefix, destination), _) in before.iter().filter(|(key, _)| !self.table.contains_key(key)) {
            self.kernel.clear(*destination, *prefix);
            self.out.push_back(Output::ClearRoute { destination: *destination, prefix: *prefix });
        }
        for (key, known) in &self.table {
            if before.get(key).map(|old| old.route) != Some(known.route) {
                self.kernel.set(known.route);
                self.out.push_back(Output::SetRoute(known.route));
            }
        }
        self.release_held();
        self.counters.count("routes-calculated");
    }

    fn link_failed(&mut self, now: Instant, neighbour: Ipv4Addr, bytes: Bytes) {
        if !self.node.feedback || self.options.link != Link::Feedback {
            return self.counters.count("feedback-ignored");
        }
        if self.links.fail(now, neighbour) {
            self.failed = self.links.get(neighbour).map(|link| link.main);
            self.dirty.links = true;
            self.settle(now);
            self.failed = None;
            self.hello_now(now);
            self.out.push_back(Output::Purge { neighbour });
        }
        if !bytes.is_empty() {
            self.route(now, Some(neighbour), bytes);
        }
    }

    /// Handles a packet without a route, or one lost on the link to `failed`: it is sent over a route, else held or
    /// dropped.
    fn route(&mut self, now: Instant, failed: Option<Ipv4Addr>, bytes: Bytes) {
        let Some(destination) = ipv4::Packet::parse(&bytes).map(|packet| packet.destination()) else {
            return self.counters.count("malformed-data");
        };
        if self.kernel.lookup(destination).is_some_and(|route| Some(route.via) != failed) {
            self.counters.count("data-resent");
            return self.out.push_back(Output::Send { bytes });
        }
        if self.options.held_packets == 0 && !self.notices.concerns(&bytes) {
            return self.give_up(bytes);
        }
        let notice = self.notices.held(now, &bytes).map(|kind| Notices::output(kind, &bytes));
        if let Some(bytes) = self.held.hold(now, destination, bytes) {
            self.counters.count("held-full");
            self.notices.dropped(&bytes);
            self.give_up(bytes);
        }
        self.out.extend(notice);
    }

    fn give_up(&mut self, bytes: Bytes) {
        self.counters.count("data-unreachable");
        let destination = ipv4::Packet::parse(&bytes).map(|packet| packet.destination());
        self.out.extend(destination.map(|about| Output::note("no-route", about, 1)));
        self.out.push_back(Output::Unreachable { bytes });
    }

    fn release_held(&mut self) {
        for destination in self.held.destinations() {
            if self.kernel.lookup(destination).is_some() {
                for bytes in self.held.take(destination) {
                    let notice = self.notices.released(&bytes).map(|kind| Notices::output(kind, &bytes));
                    self.out.push_back(Output::Send { bytes });
                    self.out.extend(notice);
                }
            }
        }
    }

    fn expire_held(&mut self, now: Instant) {
        for bytes in self.held.expire(now) {
            self.notices.dropped(&bytes);
            self.give_up(bytes);
        }
    }

    fn stop(&mut self, now: Instant) {
        self.stopped = true;
        self.outgoing.clear();
        self.send_farewell();
        self.flush();
        self.timers = Timers::default();
        for bytes in self.held.expire(now + HELD_FOR) {
            self.give_up(bytes);
        }
    }

    fn route_status(&self) -> Vec<RouteStatus> {
        let status = |known: &routes::Known| {
            let route = known.route;
            let host = RouteStatus::host(route.destination, route.via, u32::from(route.hops), known.source);
            RouteStatus { prefix: route.prefix, ..host }
        };
        self.table.values().map(status).collect()
    }

    fn neighbour_status(&self, now: Instant) -> Vec<NeighbourStatus> {
        let status = |(address, link): (Ipv4Addr, &crate::links::Link)| NeighbourStatus {
            address,
            state: match link.kind(now) {
                _ if link.is_symmetric(now) && self.mprs.contains(&link.main) => "mpr",
                Some(kind) => kind.name(),
                None => "pending",
            },
            expires_s: Some((link.until - now).as_secs_f64()),
        };
        self.links.iter().map(status).collect()
    }

    fn details(&self) -> serde_json::Value {
        serde_json::json!({
            "mprs": self.mprs,
            "selectors": self.selectors.iter().collect::<Vec<_>>(),
            "advertised": self.advertised,
            "two_hop": self.neighbours.two_hop().collect::<Vec<_>>(),
            "topology": self.topology.iter().collect::<Vec<_>>(),
            "interfaces": self.aliases.iter().collect::<Vec<_>>(),
            "networks": self.networks.iter().collect::<Vec<_>>(),
            "announced": self.attached,
            "duplicates": self.duplicates.len(),
        })
    }
}

fn announced_networks(node: &Node, options: &Options) -> Vec<(Ipv4Addr, u8)> {
    let all = node.wires.iter().chain(&options.hna);
    let mut networks: Vec<_> = all.map(|(address, prefix)| (network(*address, *prefix), *prefix)).collect();
    networks.sort();
    networks.dedup();
    networks
}

/// The broadcast address of the ad hoc network, which no node has.
fn subnet_broadcast(node: &Node) -> Ipv4Addr {
    Ipv4Addr::from(u32::from(node.network.0) | node.host_mask())
}
