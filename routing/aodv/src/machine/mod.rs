//! The machine: its state, and the dispatch of inputs and deadlines to its parts.

mod data;
mod discovery;
mod error;
mod hello;
mod internet;
mod link;
mod repair;
mod reply;
mod request;
mod status;

use crate::discovery::{Discoveries, ExpandingRing};
use crate::gateway::Internet;
use crate::limit::Limit;
use crate::neighbours::{Neighbours, Until};
use crate::options::{Broadcast, Derived, Options, Timing};
use crate::returned::Returned;
use crate::table::{Change, Offer, State, Table};
use crate::wire::Message;
use manet_engine::random::{Purpose, Stream};
use manet_engine::{Duration, EventQueue, Instant, Machine};
use manet_routing::packet::ipv4;
use manet_routing::{
    Bytes, Carrier, Counters, Duplicates, Held, Input, Node, Notices, OptionError, Output, Protocol, Route, Status,
    BROADCAST,
};
use std::collections::VecDeque;
use std::net::Ipv4Addr;

/// TTL of messages that are forwarded hop by hop, as in AODV-UU.
const FULL_TTL: u8 = 255;
/// Maximum number of remembered requests; RREQ_RATELIMIT 10/s x 5.6 s x 73 originators.
const MAX_DUPLICATES: usize = 4096;
/// Maximum number of requests that wait for their jitter.
const MAX_JITTERED: usize = 256;

/// An AODV node as a machine.
pub struct Aodv {
    node: Node,
    options: Options,
    /// The options that are derived from others if not given.
    derived: Derived,
    timing: Timing,
    ring: ExpandingRing,
    rng: Stream,
    /// This node's sequence number (6.1).
    sequence: u32,
    /// RREQ ID of this node's last request.
    request_id: u32,
    table: Table,
    /// The processed requests by originator and RREQ ID, kept for PATH_DISCOVERY_TIME (6.5).
    duplicates: Duplicates<(Ipv4Addr, u32)>,
    discoveries: Discoveries,
    held: Held,
    notices: Notices,
    neighbours: Neighbours,
    internet: Internet,
    returned: Returned,
    /// Destinations of route errors about data without a route, for one second each.
    reported: Until,
    rreq_limit: Limit,
    rerr_limit: Limit,
    /// Requests to be forwarded: TTL and bytes.
    jittered: EventQueue<(u8, Vec<u8>)>,
    hello_at: Option<Instant>,
    last_broadcast: Option<Instant>,
    /// After a crash the node sends no request, reply or forwarded message before this time (6.13).
    silent_until: Instant,
    counters: Counters,
    out: VecDeque<Output>,
}

impl Protocol for Aodv {
    const NAME: &'static str = "aodv";
    const CARRIER: Carrier = Carrier::Udp(crate::PORT);
    const TUNNELS: &'static [u8] = &[ipv4::protocol::MINIMAL];
    type Options = Options;

    fn new(node: Node, options: Options) -> Result<Self, OptionError> {
        options.check()?;
        let derived = options.derived()?;
        let timing = options.timing(&derived);
        let mut rng = Stream::new(node.seed, node.number, Purpose::Routing);
        let mut silent_until = Instant::ZERO;
        if node.restarted && options.reboot_wait {
            silent_until += timing.delete_period;
        }
        let first_hello = || Instant::from_nanos(rng.below(timing.hello_interval.as_nanos()));
        Ok(Self {
            hello_at: options.hellos().then(first_hello),
            ring: ExpandingRing::new(&options, derived.ttl_start),
            sequence: 1,
            request_id: 0,
            table: Table::default(),
            duplicates: Duplicates::new(timing.path_discovery, MAX_DUPLICATES),
            discoveries: Discoveries::default(),
            held: Held::new(options.held_packets, options.held_packets, options.held_seconds),
            notices: Notices::new(&node, options.held_packets).or_unreachable(options.unreachable_during_repair),
            neighbours: Neighbours::default(),
            internet: Internet::default(),
            returned: Returned::default(),
            reported: Until::default(),
            rreq_limit: Limit::new(options.rreq_ratelimit),
            rerr_limit: Limit::new(options.rerr_ratelimit),
            jittered: EventQueue::default(),
            last_broadcast: None,
            silent_until,
            counters: Counters::default(),
            out: VecDeque::new(),
            rng,
            node,
            options,
            derived,
            timing,
        })
    }

    fn held(&mut self) -> Option<&mut Held> {
        Some(&mut self.held)
    }

    fn status(&self, now: Instant) -> Status {
        self.report(now)
    }
}

impl Machine for Aodv {
    type Input = Input;
    type Output = Output;

    fn handle(&mut self, now: Instant, input: Input) {
        match input {
            Input::Control { from, to, ttl, bytes } => self.receive(now, from, to, ttl, &bytes),
            Input::Packet { bytes } => self.route(now, bytes),
            Input::Tunnelled { bytes } => self.receive_tunnelled(now, &bytes),
            Input::Used { flows } => flows.iter().for_each(|f| self.used(now, f.source, f.destination)),
            Input::LinkFailed { neighbour, bytes } => self.link_failed(now, neighbour, bytes),
            Input::Purged { packets, .. } => packets.into_iter().for_each(|p| self.returned(now, p)),
            Input::Stop => self.stop(now),
            Input::Frame { .. }
            | Input::Arp { .. }
            | Input::Overheard { .. }
            | Input::FrameFailed { .. }
            | Input::FrameDelivered { .. }
            | Input::FramesPurged { .. } => self.counters.count("not-ours"),
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.expire_routes(now);
        self.expire_held(now);
        while let Some(neighbour) = self.neighbours.hello.pop_due(now) {
            self.silence(now, neighbour);
        }
        while let Some(neighbour) = self.neighbours.acks.pop_due(now) {
            self.counters.count("rrep-ack-missing");
            self.neighbours.blacklist.set(neighbour, now + self.timing.blacklist);
        }
        while self.neighbours.blacklist.pop_due(now).is_some() {}
        while self.reported.pop_due(now).is_some() {}
        while let Some((destination, discovery)) = self.discoveries.due(now) {
            self.step(now, destination, discovery);
        }
        while let Some((_, (ttl, bytes))) = self.jittered.pop_due(now) {
            self.counters.count("rreq-forwarded");
            self.broadcast(now, ttl, bytes);
        }
        self.send_hello(now);
    }

    fn poll_output(&mut self) -> Option<Output> {
        self.out.pop_front()
    }

    fn next_timeout(&self) -> Option<Instant> {
        let all = [
            self.table.next_timeout(),
            self.held.next_timeout(),
            self.neighbours.next_timeout(),
            self.reported.next_timeout(),
            self.discoveries.next_timeout(),
            self.jittered.next_at(),
            self.hello_at,
        ];
        all.into_iter().flatten().min()
    }
}

impl Aodv {
    fn receive(&mut self, now: Instant, from: Ipv4Addr, to: Ipv4Addr, ttl: u8, bytes: &[u8]) {
        if from == self.node.address || !self.is_station(from) {
            return self.counters.count("forged-sender");
        }
        let message = match Message::parse(bytes) {
            Ok(message) => message,
            Err(malformed) => return self.counters.count(malformed.0),
        };
        // any packet shows that the neighbour is in range (6.10)
        self.neighbours.hello.renew(from, now + self.timing.hello_loss);
        match message {
            Message::Rreq(rreq) => self.receive_request(now, from, ttl, rreq),
            Message::Rrep(rrep) if ttl == 1 && self.is_broadcast(to) => self.receive_hello(now, from, &rrep),
            Message::Rrep(rrep) => self.receive_reply(now, from, ttl, rrep),
            Message::Rerr(rerr) => self.receive_error(now, from, &rerr),
            Message::RrepAck(_) => self.receive_reply_ack(from),
        }
    }

    fn is_silent(&self, now: Instant) -> bool {
        now < self.silent_until
    }

    fn is_gateway(&self) -> bool {
        self.options.gateway && !self.node.wires.is_empty()
    }

    /// Whether this node finds routes for packets of `source`: the node itself, or a host behind its wires.
    fn is_own(&self, source: Ipv4Addr) -> bool {
        is_own(&self.node, self.is_gateway(), source)
    }

    fn is_broadcast(&self, address: Ipv4Addr) -> bool {
        address == BROADCAST || address == self.node.broadcast()
    }

    /// Whether one node, or one host of the Internet, can have this address.
    fn is_station(&self, address: Ipv4Addr) -> bool {
        crate::is_host(address) && !self.is_broadcast(address)
    }

    fn send(&mut self, to: Ipv4Addr, ttl: u8, bytes: Vec<u8>) {
        self.out.push_back(Output::Control { to, ttl, bytes: Bytes(bytes) });
    }

    fn broadcast(&mut self, now: Instant, ttl: u8, bytes: Vec<u8>) {
        self.last_broadcast = Some(now);
        let to = match self.options.broadcast {
            Broadcast::Limited => BROADCAST,
            Broadcast::Subnet => self.node.broadcast(),
        };
        self.send(to, ttl, bytes);
    }

    fn note(&mut self, event: &str, about: Ipv4Addr, value: u64) {
        self.out.push_back(Output::note(event, about, value));
    }

    fn give_up(&mut self, why: &'static str, bytes: Bytes) {
        self.counters.count(why);
        self.out.push_back(Output::Unreachable { bytes });
    }

    /// Learns that a neighbour is one hop away, without its sequence number (6.5, 6.7).
    fn heard(&mut self, now: Instant, neighbour: Ipv4Addr) {
        let expires = now + self.timing.active_route;
        self.learn(now, Offer { destination: neighbour, sequence: None, hops: 1, next_hop: neighbour, expires });
    }

    /// Offers a route to the table, updates the kernel's route and sends the packets that waited for it.
    fn learn(&mut self, now: Instant, offer: Offer) -> Change {
        let destination = offer.destination;
        let before = self.table.get(destination).map(|e| (e.next_hop, e.hops));
        let full = self.table.full;
        let change = self.table.offer(offer);
        if self.table.full > full {
            self.counters.count("table-full");
        }
        for gone in std::mem::take(&mut self.table.evicted) {
            self.counters.count("route-evicted");
            self.out.push_back(Output::ClearRoute { destination: gone, prefix: 32 });
        }
        if change == Change::Updated {
            if before != Some((offer.next_hop, offer.hops)) {
                if let Some(true) = self.table.change(destination, |e| std::mem::take(&mut e.installed)) {
                    self.install(destination);
                }
            }
            if before.is_some_and(|before| before != (offer.next_hop, offer.hops)) {
                self.follow_gateway(destination);
            }
            self.route_found(now, destination);
        }
        change
    }

    /// Sets a valid route in the kernel unless it is there.
    fn install(&mut self, destination: Ipv4Addr) {
        let route = self.table.change(destination, |e| {
            let new = e.valid() && !e.installed;
            e.installed |= new;
            new.then(|| Route::host(e.destination, e.next_hop, e.hops))
        });
        self.out.extend(route.flatten().map(Output::SetRoute));
    }

    fn invalidate(&mut self, now: Instant, destination: Ipv4Addr, reported: Option<u32>) {
        if self.table.invalidate(destination, reported, now + self.timing.delete_period) {
            self.out.push_back(Output::ClearRoute { destination, prefix: 32 });
        }
    }

    /// Invalidates expired routes and removes invalid ones after DELETE_PERIOD (6.11).
    fn expire_routes(&mut self, now: Instant) {
        let mut expired = false;
        while let Some(entry) = self.table.due(now) {
            let (destination, state) = (entry.destination, entry.state);
            match state {
                State::Valid => self.invalidate(now, destination, None),
                State::Invalid => drop(self.table.remove(destination)),
                State::Repair => self.repair_failed(now, destination),
            }
            expired |= state != State::Invalid;
        }
        if expired {
            self.check_gateways(now);
        }
    }

    /// Prolongs the routes in both directions that data used (6.2). With hellos only routes over a monitored neighbour are
    /// prolonged: our own packets would keep a dead route without end (AODV-UU is similar).
    fn used(&mut self, now: Instant, source: Ipv4Addr, destination: Ipv4Addr) {
        for end in [source, destination].map(|end| self.routed_to(end)) {
            let Some(next_hop) = self.table.valid(end).map(|e| e.next_hop) else { continue };
            let watched = !self.options.hellos() || self.neighbours.hello.contains(next_hop);
            let lifetime = if watched { self.timing.active_route } else { Duration::ZERO };
            self.table.touch(now, end, lifetime);
            self.table.touch(now, next_hop, lifetime);
        }
    }
}

fn is_own(node: &Node, gateway: bool, source: Ipv4Addr) -> bool {
    source == node.address || gateway && !node.in_network(source)
}
