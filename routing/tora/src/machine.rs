//! A TORA node: deadlines, the dispatch of inputs, and the effects of the rules in [`crate::destination`]. Links are in `link.rs`,
//! packets of neighbours in `receive.rs`, our own in `send.rs`, data packets in `data.rs`.

use crate::blocks::Blocks;
use crate::destination::{Case, Destination, Here, Reply};
use crate::height::Height;
use crate::neighbours::Neighbours;
use crate::options::Options;
use crate::wire::{self, Ack, Body, Message};
use manet_engine::random::Purpose;
use manet_engine::timers::Timers;
use manet_engine::{Duration, Instant, Machine, Stream};
use manet_routing::status::{NeighbourStatus, RouteStatus};
use manet_routing::{Base, Carrier, Held, Input, Node, Notices, OptionError, Output, Protocol, Status};
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

/// Maximum number of destinations. It limits the effect of forged messages.
pub const MAX_DESTINATIONS: usize = 1024;
/// Smallest MTU in bytes: room for a beacon of a few neighbours and a message.
const MIN_MTU: u16 = 128;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Timer {
    /// A neighbour was silent for too long.
    Silence,
    /// The beacon is due.
    Beacon,
    /// New or changed neighbours are told our numbers, before the next beacon.
    Greet,
    /// Waiting messages are sent.
    Urgent,
    /// Acknowledgements are sent.
    Acks,
    /// A block is sent again.
    Retransmit,
    /// A query was delayed, or has had no answer.
    Request,
    /// A held packet has waited too long.
    Held,
}

/// A TORA node as a machine.
#[derive(Debug)]
pub struct Tora {
    pub(crate) node: Node,
    pub(crate) options: Options,
    pub(crate) rng: Stream,
    pub(crate) timers: Timers<Timer>,
    /// The clock that all nodes share, ns, at instant 0.
    clock_ns: u64,
    pub(crate) neighbours: Neighbours,
    pub(crate) blocks: Blocks,
    pub(crate) acks: Vec<Ack>,
    /// Stations to which a route was required here or by a neighbour.
    pub(crate) destinations: BTreeMap<Ipv4Addr, Destination>,
    /// Times of the queries of the last [`Options::query_interval`].
    queried: BTreeMap<Ipv4Addr, Instant>,
    /// When the delayed query for a destination is due.
    pub(crate) queries: BTreeMap<Ipv4Addr, Instant>,
    /// Time of the last UPD about this node itself.
    pub(crate) own_updated_at: Option<Instant>,
    pub(crate) base: Base,
    /// Neighbours that have to be told our numbers.
    pub(crate) greet: BTreeSet<Ipv4Addr>,
    /// Time of the last greetings.
    pub(crate) greeted_at: Instant,
    pub(crate) stopped: bool,
}

impl Protocol for Tora {
    const NAME: &'static str = "tora";
    const CARRIER: Carrier = Carrier::Udp(wire::PORT);
    type Options = Options;

    fn new(node: Node, options: Options) -> Result<Self, OptionError> {
        options.check()?;
        if node.mtu < MIN_MTU {
            return Err(format!("node.mtu: {} bytes are too few for TORA, give {MIN_MTU} or more", node.mtu).into());
        }
        let mut tora = Self {
            rng: Stream::new(node.seed, node.number, Purpose::Routing),
            timers: Timers::default(),
            clock_ns: 0,
            neighbours: Neighbours::new(neighbours_per_packet(node.mtu), options.silence, 1),
            blocks: Blocks::default(),
            acks: Vec::new(),
            destinations: BTreeMap::new(),
            queried: BTreeMap::new(),
            queries: BTreeMap::new(),
            own_updated_at: None,
            base: Base::new(
                Held::new(options.held_packets, options.held_per_destination, options.held_seconds),
                Notices::new(&node, options.held_packets.min(options.held_per_destination)),
            ),
            greet: BTreeSet::new(),
            greeted_at: Instant::ZERO,
            stopped: false,
            node,
            options,
        };
        let first = tora.rng.between(Duration::ZERO, tora.options.beacon_interval);
        tora.timers.set(Timer::Beacon, Instant::ZERO + first);
        Ok(tora)
    }

    fn synchronise(&mut self, clock_ns: u64) {
        self.clock_ns = clock_ns;
        // milliseconds: a restarted daemon has another number with near certainty
        self.neighbours.begin_with((clock_ns / 1_000_000) as u16);
    }

    fn held(&mut self) -> Option<&mut Held> {
        Some(&mut self.base.held)
    }

    fn status(&self, now: Instant) -> Status {
        let heights = |d: &Destination| d.heights.values().map(Height::to_string).collect::<Vec<_>>();
        let destination = |(address, d): (&Ipv4Addr, &Destination)| {
            let state = serde_json::json!({
                "height": d.height.map(|h| h.to_string()),
                "required": d.required.is_some(),
                "neighbours": heights(d),
            });
            (address.to_string(), state)
        };
        let destinations: serde_json::Map<_, _> = self.destinations.iter().map(destination).collect();
        Status {
            sequence: Some(u32::from(self.blocks.next_sequence())),
            routes: self.route_status(),
            neighbours: self.neighbour_status(now),
            held: self.base.held.len(),
            counters: self.base.counters.clone(),
            details: serde_json::json!({"destinations": destinations, "outstanding": self.blocks.outstanding(), "queued": self.blocks.queued()}),
        }
    }
}

impl Machine for Tora {
    type Input = Input;
    type Output = Output;

    fn handle(&mut self, now: Instant, input: Input) {
        if self.stopped {
            return;
        }
        match input {
            Input::Control { from, bytes, .. } => self.receive(now, from, &bytes),
            Input::Packet { bytes } => self.route(now, bytes),
            Input::LinkFailed { neighbour, bytes } => self.link_failed(now, neighbour, bytes),
            Input::Purged { packets, .. } => packets.into_iter().for_each(|bytes| self.returned(now, bytes)),
            Input::Used { .. } => {}
            Input::Stop => return self.stop(),
            _ => self.base.counters.count("unexpected-input"),
        }
        self.rearm(now);
    }

    fn handle_timeout(&mut self, now: Instant) {
        while let Some((timer, _)) = self.timers.expire(now) {
            match timer {
                Timer::Silence => self.silence(now),
                Timer::Beacon => self.beacon(now),
                Timer::Greet => self.greetings(now),
                Timer::Urgent | Timer::Acks => self.send(now, false),
                Timer::Retransmit => self.retransmit(now),
                Timer::Request => self.requests_due(now),
                Timer::Held => self.base.expire_held(now),
            }
            self.rearm(now);
        }
    }

    fn poll_output(&mut self) -> Option<Output> {
        self.base.out.pop_front()
    }

    fn next_timeout(&self) -> Option<Instant> {
        self.timers.next_timeout()
    }
}

impl Tora {
    /// Deadlines that follow from the state.
    fn rearm(&mut self, now: Instant) {
        self.timers.arm(Timer::Silence, self.neighbours.next_timeout());
        self.timers.arm(Timer::Retransmit, self.blocks.next_timeout());
        self.timers.arm(Timer::Held, self.base.held.next_timeout());
        let hold = self.options.request_hold;
        let unanswered = self.destinations.values().filter_map(|d| Some(d.required? + hold));
        self.timers.arm(Timer::Request, unanswered.chain(self.queries.values().copied()).min());
        if self.blocks.is_ready() && self.timers.get(Timer::Urgent).is_none() {
            let delay = self.rng.between(Duration::ZERO, self.options.high_priority_max);
            self.timers.set(Timer::Urgent, now + delay);
        }
        if !self.acks.is_empty() && self.timers.get(Timer::Acks).is_none() {
            let delay = self.rng.between(self.options.low_priority_min, self.options.low_priority_max);
            self.timers.set(Timer::Acks, now + delay);
        }
    }

    pub(crate) fn here(&self, now: Instant) -> Here {
        let tau = self.clock_ns.saturating_add((now - Instant::ZERO).as_nanos());
        Here { id: self.node.address, now, tau }
    }

    /// Applies a rule to a destination and does what follows from it.
    pub(crate) fn apply(
        &mut self,
        now: Instant,
        destination: Ipv4Addr,
        rule: impl FnOnce(&mut Destination, Here) -> Reply,
    ) {
        if self.destinations.len() >= MAX_DESTINATIONS && !self.destinations.contains_key(&destination) {
            return self.base.counters.count("destinations-full");
        }
        let here = self.here(now);
        let state = self.destinations.entry(destination).or_default();
        let reply = rule(state, here);
        if let Some(case) = state.case.take() {
            self.base.counters.count(counter(case));
        }
        match reply {
            Reply::Nothing => {}
            Reply::Query => self.plan_query(now, destination),
            Reply::Update => self.say_height(destination),
            Reply::Clear(level) => self.say(destination, Body::Clear(level)),
        }
        self.follow(now, destination);
    }

    /// Plans a QRY, [`Options::query_interval`] after the last one.
    fn plan_query(&mut self, now: Instant, destination: Ipv4Addr) {
        let interval = self.options.query_interval;
        self.queried.retain(|_, at| *at + interval > now);
        match self.queried.get(&destination) {
            Some(last) => {
                self.queries.insert(destination, *last + interval);
            }
            None => self.query(now, destination),
        }
    }

    fn query(&mut self, now: Instant, destination: Ipv4Addr) {
        self.queries.remove(&destination);
        if self.destinations.get(&destination).is_none_or(|d| d.required.is_none()) {
            return;
        }
        self.queried.insert(destination, now);
        self.say(destination, Body::Query);
        if self.base.held.count(destination) > 0 {
            self.base.out.push_back(Output::note("discovery", destination, u64::from(u8::MAX)));
        }
    }

    /// Sends delayed queries; repeats those without answer for which packets wait, forgets the others.
    fn requests_due(&mut self, now: Instant) {
        let delayed: Vec<Ipv4Addr> = self.queries.iter().filter(|(_, at)| **at <= now).map(|(d, _)| *d).collect();
        delayed.into_iter().for_each(|destination| self.query(now, destination));
        let hold = self.options.request_hold;
        let late = |d: &Destination| d.required.is_some_and(|since| since + hold <= now);
        let late: Vec<Ipv4Addr> = self.destinations.iter().filter(|(_, d)| late(d)).map(|(a, _)| *a).collect();
        for destination in late {
            self.base.counters.count("requests-unanswered");
            let waits = self.base.held.count(destination) > 0;
            self.apply(now, destination, |state, here| {
                state.required = None;
                if waits {
                    state.require(here)
                } else {
                    Reply::Nothing
                }
            });
        }
    }

    /// Queues a message for all neighbours.
    pub(crate) fn say(&mut self, destination: Ipv4Addr, body: Body) {
        self.base.counters.count(match body {
            Body::Query => "qry-sent",
            Body::Update(_) => "upd-sent",
            Body::Clear(_) => "clr-sent",
        });
        self.blocks.push(Message { destination, body });
    }

    pub(crate) fn say_height(&mut self, destination: Ipv4Addr) {
        let height = self.destinations.get(&destination).and_then(|d| d.height);
        self.say(destination, Body::Update(height));
    }

    /// Updates the kernel's route from the heights; sends the held packets if there is one, asks for one if there is none.
    pub(crate) fn follow(&mut self, now: Instant, destination: Ipv4Addr) {
        let Some(state) = self.destinations.get(&destination) else { return };
        let careful = state.raised && self.options.await_acknowledgement;
        let next = state.next_hop_of(|neighbour| !(careful && self.blocks.awaits(neighbour, destination)));
        match (next, state.height) {
            (Some(via), Some(height)) => {
                let hops = if via == destination { 1 } else { u8::try_from(height.delta).unwrap_or(0).max(2) };
                self.base.set_route(destination, via, hops);
                self.release(destination, via);
            }
            _ => {
                let required = state.required.is_some() || state.height.is_some();
                self.base.clear_route(destination);
                if !required && self.base.held.count(destination) > 0 {
                    return self.apply(now, destination, Destination::require);
                }
            }
        }
        if self.destinations.get(&destination).is_some_and(Destination::is_blank) {
            self.destinations.remove(&destination);
            self.queries.remove(&destination);
        }
    }

    /// Routes and requests; the hop count is delta, which counts hops only in the level of the destination.
    fn route_status(&self) -> Vec<RouteStatus> {
        let route = |(destination, d): (&Ipv4Addr, &Destination)| {
            let via = d.next_hop();
            let state = match (via, d.height, d.required) {
                (Some(_), Some(h), _) if h.level.reflected => "reflected",
                (Some(_), ..) => "downstream",
                (None, _, Some(_)) => "required",
                (None, ..) => return None,
            };
            let hops = d.height.map_or(0, |h| u32::try_from(h.delta).unwrap_or(0));
            Some(RouteStatus::host(*destination, via.unwrap_or(Ipv4Addr::UNSPECIFIED), hops, state))
        };
        self.destinations.iter().filter_map(route).collect()
    }

    fn neighbour_status(&self, now: Instant) -> Vec<NeighbourStatus> {
        let all = self.neighbours.iter();
        all.map(|(address, n)| NeighbourStatus {
            address,
            state: if n.up.is_some() { "symmetric" } else { "heard" },
            expires_s: Some(self.neighbours.expires_at(n).since(now).as_secs_f64()),
        })
        .collect()
    }
}

fn counter(case: Case) -> &'static str {
    match case {
        Case::Failure => "case-1-failure",
        Case::Propagate => "case-2-propagate",
        Case::Reflect => "case-3-reflect",
        Case::Partition => "case-4-partition",
        Case::Generate => "case-5-generate",
    }
}

/// Neighbours that a beacon, and a block with one message, can list in one packet.
fn neighbours_per_packet(mtu: u16) -> usize {
    let room = usize::from(mtu).saturating_sub(wire::HEADERS_LEN + wire::HEADS_LEN + wire::MAX_MESSAGE_LEN);
    room / wire::RESPONSE_LEN
}
