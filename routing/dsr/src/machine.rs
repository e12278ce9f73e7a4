//! The machine: its state, and the dispatch of inputs to its parts.
//!
//! `send` originates packets and discovers routes, `receive` parses frames and forwards packets, `request` handles
//! requests and replies of other nodes, `salvage` broken links, `waiting` packets of other nodes that wait here for a new
//! route, `shortening` overheard shorter routes.

use crate::cache::Cache;
use crate::datagram::Datagram;
use crate::delayed::Queue;
use crate::discovery::{self, Discoveries};
use crate::duplicates::Duplicates;
use crate::gratuitous::Gratuitous;
use crate::lifetime::Lifetime;
use crate::maintenance::{self, Maintenance};
use crate::neighbours::Neighbours;
use crate::options::{self, Link, Options};
use crate::overheard_filter;
use crate::reported::Reported;
use crate::salvaged::Salvaged;
use crate::wire::RouteError;
use manet_engine::packet_filter::Step;
use manet_engine::random::Purpose;
use manet_engine::{Instant, Machine, Stream};
use manet_routing::arp::{Resolution, Resolver};
use manet_routing::status::{NeighbourStatus, RouteStatus};
use manet_routing::{Carrier, Counters, Held, Input, Node, Notices, OptionError, Output, Protocol, Status};
use std::collections::{BTreeMap, VecDeque};
use std::net::Ipv4Addr;

/// A DSR node as a machine.
pub struct Dsr {
    pub(crate) node: Node,
    pub(crate) options: Options,
    pub(crate) rng: Stream,
    pub(crate) counters: Counters,
    pub(crate) cache: Cache,
    pub(crate) neighbours: Neighbours,
    /// Of packets and their next hops. `None`: link addresses are those of `neighbours`.
    pub(crate) arp: Option<Resolver<(Ipv4Addr, Datagram)>>,
    /// The send buffer (RFC 4728, 4.2); with notices also unchanged packets of other nodes whose route broke here.
    pub(crate) held: Held,
    pub(crate) notices: Notices,
    pub(crate) duplicates: Duplicates,
    pub(crate) discoveries: Discoveries,
    pub(crate) delayed: Queue,
    pub(crate) gratuitous: Gratuitous,
    /// `None`: the radio reports failed frames.
    pub(crate) maintenance: Option<Maintenance>,
    /// Identification of our last request.
    pub(crate) request_id: u16,
    /// IP identification of our last control packet.
    pub(crate) ip_id: u16,
    /// A received Route Error for this node, to be sent with its next request (3.4.4).
    pub(crate) pending_error: Option<(RouteError, Instant)>,
    /// The nodes that were informed of the last broken link, so that packets purged for it cause no second report.
    pub(crate) reported: Reported,
    pub(crate) salvaged: Salvaged,
    /// Packets for next hops whose link address is unknown, or was not answered by ARP: handled as failed ones before the
    /// input is complete.
    pub(crate) unsendable: VecDeque<(Ipv4Addr, Vec<Datagram>)>,
    /// The path in the last note about each destination of our own packets; empty: lost.
    pub(crate) noted: BTreeMap<Ipv4Addr, Vec<Ipv4Addr>>,
    out: VecDeque<Output>,
}

impl Dsr {
    pub(crate) fn own(&self) -> Ipv4Addr {
        self.node.address
    }

    pub(crate) fn is_gateway(&self) -> bool {
        !self.node.wires.is_empty()
    }

    pub(crate) fn put(&mut self, output: Output) {
        self.out.push_back(output);
    }

    pub(crate) fn note(&mut self, event: &str, about: Ipv4Addr, value: u64) {
        self.put(Output::note(event, about, value));
    }

    pub(crate) fn count(&mut self, what: &'static str) {
        self.counters.count(what);
    }

    pub(crate) fn next_ip_id(&mut self) -> u16 {
        self.ip_id = self.ip_id.wrapping_add(1);
        self.ip_id
    }

    /// Handles queued failures. Each one removes a link from the cache, so the loop ends.
    fn settle(&mut self, now: Instant) {
        loop {
            if let Some((next, packets)) = self.unsendable.pop_front() {
                self.without_address(now, next, packets);
            } else if let Some((next, packet)) = self.maintenance.as_mut().and_then(Maintenance::release) {
                self.frame(packet, next);
            } else {
                break;
            }
        }
        if self.cache.take_changed() {
            self.follow_cache(now);
        }
    }

    fn timeouts(&self) -> Option<Instant> {
        let maintenance = self.maintenance.as_ref().and_then(Maintenance::next_timeout);
        let all = [self.held.next_timeout(), self.discoveries.next_timeout(), self.delayed.next_timeout(), maintenance];
        all.into_iter().flatten().min()
    }
}

impl Machine for Dsr {
    type Input = Input;
    type Output = Output;

    fn handle(&mut self, now: Instant, input: Input) {
        match input {
            Input::Packet { bytes } => self.originate(now, &bytes),
            Input::Frame { from, bytes, .. } => {
                self.receive(now, from, &bytes);
                self.presume(now, from);
            }
            Input::Overheard { from, bytes, .. } => {
                self.overhear(now, from, &bytes);
                self.presume(now, from);
            }
            Input::Arp { from, bytes } => {
                self.receive_arp(now, &bytes);
                self.presume(now, from);
            }
            Input::FrameFailed { to, bytes } => self.frame_failed(now, to, &bytes),
            Input::FrameDelivered { to } => self.frame_delivered(now, to),
            Input::FramesPurged { to, packets } => self.frames_purged(now, to, &packets),
            // inputs of design A; and DSR has no farewell message
            Input::Control { .. }
            | Input::Tunnelled { .. }
            | Input::Used { .. }
            | Input::LinkFailed { .. }
            | Input::Purged { .. }
            | Input::Stop => {}
        }
        self.settle(now);
    }

    fn handle_timeout(&mut self, now: Instant) {
        while self.timeouts().is_some_and(|at| at <= now) {
            self.expire_held(now);
            self.continue_discoveries(now);
            self.send_delayed(now);
            self.continue_maintenance(now);
            self.settle(now);
        }
    }

    fn poll_output(&mut self) -> Option<Output> {
        self.out.pop_front()
    }

    fn next_timeout(&self) -> Option<Instant> {
        self.timeouts()
    }
}

impl Protocol for Dsr {
    const NAME: &'static str = "dsr";
    const CARRIER: Carrier = Carrier::Frames;
    type Options = Options;

    fn tun_mtu(node: &Node, options: &Options) -> u16 {
        node.mtu.saturating_sub(options::overhead(options))
    }

    fn new(node: Node, options: Options) -> Result<Self, OptionError> {
        options::check(&node, &options)?;
        let mut rng = Stream::new(node.seed, node.number, Purpose::Routing);
        // other nodes remember ids (RFC 4728, 4.3): a restarted daemon must not begin with those used before
        let request_id = (rng.next_u64() as u16).wrapping_add(if node.restarted { 0x8000 } else { 0 });
        let by_acks = options.link == Link::Ack || !node.feedback;
        Ok(Self {
            cache: Cache::new(node.clone(), options.cache_paths, options.max_hops, lifetime(&options)),
            neighbours: Neighbours::default(),
            arp: Resolver::new(&node, options.arp),
            held: Held::new(options.send_buffer, options.send_buffer, options.send_buffer_timeout),
            notices: Notices::new(&node, options.send_buffer),
            duplicates: Duplicates::default(),
            discoveries: Discoveries::new(discovery_pace(&options)),
            delayed: Queue::default(),
            gratuitous: Gratuitous::new(options.grat_reply_holdoff),
            maintenance: by_acks.then(|| Maintenance::new(maintenance_pace(&options))),
            request_id,
            ip_id: rng.next_u64() as u16,
            pending_error: None,
            reported: Reported::default(),
            salvaged: Salvaged::default(),
            unsendable: VecDeque::new(),
            noted: BTreeMap::new(),
            out: VecDeque::new(),
            counters: Counters::default(),
            rng,
            node,
            options,
        })
    }

    fn wants_deliveries(options: &Options) -> bool {
        options.link == Link::Ack
    }

    fn resolves_addresses(options: &Options) -> bool {
        options.arp != Resolution::None
    }

    fn overheard_version(&self) -> u64 {
        // a host begins with version 0, without filter
        if self.needs_all_overheard() {
            0
        } else {
            1 + self.neighbours.version()
        }
    }

    fn overheard_filter(&self) -> Vec<Step> {
        if self.needs_all_overheard() {
            return Vec::new();
        }
        overheard_filter::program(
            self.own(),
            self.neighbours.iter().filter_map(|(address, _)| self.neighbours.mac(address)),
        )
    }

    fn held(&mut self) -> Option<&mut Held> {
        Some(&mut self.held)
    }

    fn status(&self, now: Instant) -> Status {
        let mut destinations: Vec<Ipv4Addr> = self.cache.paths(now).flat_map(|(r, _)| r.hops.clone()).collect();
        destinations.sort();
        destinations.dedup();
        let neighbours = self.neighbours.iter();
        let mut status = Status {
            sequence: Some(u32::from(self.request_id)),
            routes: destinations.into_iter().filter_map(|d| self.route_status(now, d)).collect(),
            neighbours: neighbours
                .map(|(address, _)| NeighbourStatus { address, state: "heard", expires_s: None })
                .collect(),
            held: self.held.len(),
            counters: self.counters.clone(),
            details: serde_json::json!({
                "paths": self.cache.paths(now).map(|(r, left)| serde_json::json!({
                    "hops": r.hops, "external": r.external, "expires_s": left.as_secs_f64(),
                })).collect::<Vec<_>>(),
                "discoveries": self.discoveries.len(),
                "initiators": self.duplicates.len(),
                "delayed": self.delayed.len(),
                "unconfirmed": self.maintenance.as_ref().map_or(0, Maintenance::len),
            }),
        };
        if let Some(table) = &self.arp {
            status.details["arp"] = serde_json::json!({"known": table.known(), "waiting": table.waiting()});
        }
        status
    }
}

impl Dsr {
    /// Whether any overheard packet may matter now: it may confirm a next hop, teach a route, or cancel a reply.
    fn needs_all_overheard(&self) -> bool {
        let learns = self.options.snoop && self.options.learn_from_data;
        self.maintenance.is_some() || learns || self.delayed.has_replies()
    }

    fn route_status(&self, now: Instant, destination: Ipv4Addr) -> Option<RouteStatus> {
        let route = self.cache.peek(now, destination)?;
        let state = if route.external { "internet" } else { "cached" };
        let host = RouteStatus::host(destination, route.hops[0], route.hops.len() as u32, state);
        Some(RouteStatus { path: route.hops, ..host })
    }
}

fn lifetime(options: &Options) -> Lifetime {
    Lifetime::new(options.cache_timeout, options.adaptive_timeout)
}

fn discovery_pace(options: &Options) -> discovery::Pace {
    discovery::Pace {
        nonpropagating: options.nonpropagating,
        nonprop_timeout: options.nonprop_timeout,
        period: options.request_period,
        backoff: options.request_backoff,
        max_period: options.max_request_period,
        retries: options.max_request_rexmt,
    }
}

fn maintenance_pace(options: &Options) -> maintenance::Pace {
    maintenance::Pace {
        passive: options.passive_ack_timeout,
        holdoff: options.maint_holdoff,
        retries: options.max_maint_rexmt,
    }
}
