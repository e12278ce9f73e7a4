//! A DSDV node: deadlines and the dispatch of inputs. The rules are in [`crate::table`], the handling of updates in
//! `receive.rs`, that of data packets in `data.rs`, our own updates in `updates.rs`.
//!
//! It follows ns-2.35's DSDV agent with `use_mac_`, and SIGCOMM 1994 for features that the agent omits; the README lists
//! the differences.

use crate::entry::Entry;
use crate::gateway::Chosen;
use crate::neighbours::Neighbours;
use crate::options::{Link, Options};
use crate::sequence::Sequence;
use crate::table::{Settling, Table};
use crate::wire;
use manet_engine::random::Purpose;
use manet_engine::timers::Timers;
use manet_engine::{Duration, Instant, Machine, Stream};
use manet_routing::status::{NeighbourStatus, RouteStatus};
use manet_routing::{Base, Carrier, Held, Input, Node, Notices, OptionError, Output, Protocol, Status};
use std::net::Ipv4Addr;

/// Counter of packets that waited and are sent.
pub(crate) const HELD_SENT: &str = "held-sent";
/// The first full update is sent within this time, so that nodes started together do not stay synchronised (ns-2.35).
const STARTUP_JITTER: Duration = Duration::from_secs(2);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Timer {
    /// A neighbour was silent for too long.
    Silence,
    /// A full update is due.
    Full,
    /// An incremental update may be due.
    Trigger,
    /// The planned update is sent.
    Send,
    /// A held packet has waited too long.
    Held,
}

/// A DSDV node as a machine.
pub struct Dsdv {
    pub(crate) node: Node,
    pub(crate) options: Options,
    pub(crate) rng: Stream,
    pub(crate) timers: Timers<Timer>,
    pub(crate) table: Table,
    pub(crate) neighbours: Neighbours,
    pub(crate) base: Base,
    /// The gateway of our default route.
    pub(crate) chosen: Option<Chosen>,
    /// Our own sequence number.
    pub(crate) sequence: Sequence,
    pub(crate) last_update_at: Option<Instant>,
    /// Whether the planned update is a full one.
    pub(crate) full_wanted: bool,
    /// Whether an unconfirmed neighbour was heard and is to be informed (`bidirectional_check`).
    pub(crate) greeting_wanted: bool,
    pub(crate) stopped: bool,
}

impl Protocol for Dsdv {
    const NAME: &'static str = "dsdv";
    const CARRIER: Carrier = Carrier::Udp(wire::PORT);
    type Options = Options;

    fn new(node: Node, options: Options) -> Result<Self, OptionError> {
        options.check()?;
        let least = if options.gateway && !node.wires.is_empty() { 3 } else { 2 };
        if wire::entries_per_datagram(node.mtu) < least {
            let bytes = wire::HEADERS_LEN + least * wire::ENTRY_LEN;
            return Err(format!("node.mtu: {} holds no update of {least} entries; at least {bytes}", node.mtu).into());
        }
        let settling = Settling {
            first: options.settling,
            weight: options.settling_weight,
            trigger_on_fresh: options.trigger_on_fresh,
        };
        let mut dsdv = Self {
            rng: Stream::new(node.seed, node.number, Purpose::Routing),
            timers: Timers::default(),
            table: Table::new(settling),
            neighbours: Neighbours::new(options.silence()),
            base: Base::new(
                Held::new(options.held_packets, options.held_per_destination, options.held_seconds),
                Notices::new(&node, options.held_packets.min(options.held_per_destination)),
            ),
            chosen: None,
            sequence: Sequence(0),
            last_update_at: None,
            full_wanted: false,
            greeting_wanted: false,
            stopped: false,
            node,
            options,
        };
        // a restarted node sends its update before it receives its old routes from neighbours that still use them
        let within = if dsdv.node.restarted { Duration::ZERO } else { STARTUP_JITTER };
        let start = Instant::ZERO + dsdv.rng.between(Duration::ZERO, within);
        dsdv.timers.set(Timer::Full, start);
        Ok(dsdv)
    }

    fn held(&mut self) -> Option<&mut Held> {
        Some(&mut self.base.held)
    }

    fn status(&self, now: Instant) -> Status {
        let stations = self.table.iter().filter(|(d, _)| self.gateway_of(*d).is_none());
        let mut details = serde_json::json!({
            "next_full_s": self.timers.get(Timer::Full).map(|at| at.since(now).as_secs_f64()),
            "next_triggered_s": self.timers.get(Timer::Trigger).map(|at| at.since(now).as_secs_f64()),
        });
        if let Some(gateways) = self.gateway_status(now) {
            details["gateways"] = gateways;
        }
        Status {
            sequence: Some(self.sequence.0),
            routes: self
                .default_route(now)
                .into_iter()
                .chain(stations.map(|(d, e)| self.route_status(now, d, e)))
                .collect(),
            neighbours: self.neighbour_status(now),
            held: self.base.held.len(),
            counters: self.base.counters.clone(),
            details,
        }
    }
}

impl Machine for Dsdv {
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
            Input::Stop => self.stop(),
            _ => self.base.counters.count("unexpected-input"),
        }
        self.rearm(now);
    }

    fn handle_timeout(&mut self, now: Instant) {
        while let Some((timer, _)) = self.timers.expire(now) {
            match timer {
                Timer::Silence => self.silence(now),
                Timer::Full => self.full_due(now),
                Timer::Trigger => self.send_soon(now),
                Timer::Send => self.send(now),
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

impl Dsdv {
    /// Deadlines that follow from the state.
    fn rearm(&mut self, now: Instant) {
        if self.stopped {
            return;
        }
        self.timers.arm(Timer::Silence, self.neighbours.next_timeout());
        self.timers.arm(Timer::Held, self.base.held.next_timeout());
        let trigger = if self.greeting_wanted { Some(now) } else { self.table.next_trigger() };
        let sending = self.timers.get(Timer::Send).is_some();
        self.timers.arm(Timer::Trigger, trigger.filter(|_| !sending).map(|at| at.max(self.next_update_at(now))));
    }

    fn silence(&mut self, now: Instant) {
        for neighbour in self.neighbours.expire(now) {
            self.base.counters.count("link-silent");
            self.lose_link(now, neighbour, 2);
        }
    }

    fn link_failed(&mut self, now: Instant, neighbour: Ipv4Addr, bytes: manet_routing::Bytes) {
        if !self.node.feedback || self.options.link == Link::Hello {
            self.base.counters.count("feedback-ignored");
            return;
        }
        self.base.counters.count("link-failed");
        let known = self.neighbours.forget(neighbour);
        if self.lose_link(now, neighbour, 1) || known {
            self.base.out.push_back(Output::Purge { neighbour });
        }
        if !bytes.is_empty() {
            self.returned(now, bytes);
        }
    }

    /// Loses the routes over `neighbour`. True: there was at least one.
    fn lose_link(&mut self, now: Instant, neighbour: Ipv4Addr, cause: u64) -> bool {
        let lost = self.lose_routes(now, neighbour);
        if lost {
            self.base.out.push_back(Output::note("link-broken", neighbour, cause));
        }
        lost
    }

    pub(crate) fn lose_routes(&mut self, now: Instant, neighbour: Ipv4Addr) -> bool {
        let lost = self.table.lose_via(now, neighbour);
        for destination in &lost {
            self.follow(*destination);
        }
        !lost.is_empty()
    }

    /// Updates the kernel's route from the table; sends the held packets if there is one.
    pub(crate) fn follow(&mut self, destination: Ipv4Addr) {
        if self.gateway_of(destination).is_some() {
            return self.follow_gateways();
        }
        let usable = self.table.get(destination).filter(|e| e.is_usable());
        match usable.map(|e| (e.via, e.hops)) {
            Some((via, hops)) => {
                self.base.set_route(destination, via, hops);
                self.base.release(destination, HELD_SENT);
            }
            None => self.base.clear_route(destination),
        }
    }

    pub(crate) fn route_status(&self, now: Instant, destination: Ipv4Addr, entry: &Entry) -> RouteStatus {
        let neighbour = self.neighbours.get(entry.via).filter(|_| entry.is_usable());
        RouteStatus {
            sequence: Some(entry.sequence.0),
            expires_s: neighbour.map(|n| self.neighbours.expires_at(n).since(now).as_secs_f64()),
            ..RouteStatus::host(destination, entry.via, u32::from(entry.hops), entry.state(now))
        }
    }

    fn neighbour_status(&self, now: Instant) -> Vec<NeighbourStatus> {
        let state = |confirmed: bool| if confirmed { "symmetric" } else { "heard" };
        let all = self.neighbours.iter();
        all.map(|(address, n)| NeighbourStatus {
            address,
            state: state(n.hears_us_at.is_some()),
            expires_s: Some(self.neighbours.expires_at(n).since(now).as_secs_f64()),
        })
        .collect()
    }
}
