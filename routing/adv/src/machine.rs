//! An ADV node: deadlines and the dispatch of inputs. The rules of routes are in [`crate::table`], those of updates in
//! [`crate::meter`] and `updates.rs`, the floods in `flood.rs`, received messages in `receive.rs`, data packets in `data.rs`.

use crate::connections::Connections;
use crate::meter::Meter;
use crate::neighbours::Neighbours;
use crate::options::{Link, Options};
use crate::pending::Flood;
use crate::sequence::Sequence;
use crate::table::Table;
use crate::wire;
use manet_engine::random::Purpose;
use manet_engine::timers::Timers;
use manet_engine::{Duration, EventQueue, Instant, Machine, Stream};
use manet_routing::{Base, Carrier, Duplicates, Held, Input, Node, Notices, OptionError, Output, Protocol, Status};
use std::collections::VecDeque;
use std::net::Ipv4Addr;

/// Maximum number of remembered floods.
const MAX_DUPLICATES: usize = 4096;
/// A flood crosses the widest network in this time.
const FLOOD_KNOWN: Duration = Duration::from_secs(10);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Timer {
    /// A neighbour was silent for too long (`link = "hello"`).
    Silence,
    /// A connection or an unused route ends.
    Idle,
    /// An init-connection is due.
    Search,
    /// An update is sent.
    Update,
    /// A receiver has sent no update for `keep_alive`.
    KeepAlive,
    /// A flooded message is sent.
    Flood,
    /// The own entry is due (`link = "hello"`).
    Hello,
    /// A held packet has waited too long.
    Held,
}

/// An ADV node as a machine.
pub struct Adv {
    pub(crate) node: Node,
    pub(crate) options: Options,
    pub(crate) rng: Stream,
    pub(crate) timers: Timers<Timer>,
    pub(crate) table: Table,
    pub(crate) neighbours: Neighbours,
    pub(crate) connections: Connections,
    /// The floods that were handled, by source and id.
    pub(crate) duplicates: Duplicates<(Ipv4Addr, u32)>,
    pub(crate) meter: Meter,
    pub(crate) base: Base,
    /// Our own sequence number.
    pub(crate) sequence: Sequence,
    /// Number of our last flood.
    pub(crate) flood_id: u32,
    /// Flooded messages that wait for their jitter.
    pub(crate) floods: EventQueue<Flood>,
    /// Times of the floods of the last second, oldest first.
    pub(crate) flooded: VecDeque<Instant>,
    pub(crate) last_update_at: Option<Instant>,
    /// Whether the next update is a full one, whatever the meter.
    pub(crate) full_wanted: bool,
    /// Whether this node is known to others as a receiver.
    pub(crate) receiver: bool,
    pub(crate) stopped: bool,
}

impl Protocol for Adv {
    const NAME: &'static str = "adv";
    const CARRIER: Carrier = Carrier::Udp(wire::PORT);
    type Options = Options;

    fn new(node: Node, options: Options) -> Result<Self, OptionError> {
        options.check()?;
        if wire::entries_per_datagram(node.mtu) < 2 {
            return Err(format!("node.mtu: {} holds no update of two entries; at least 72", node.mtu).into());
        }
        let mut rng = Stream::new(node.seed, node.number, Purpose::Routing);
        let longest = options.buffer_tcp.max(options.buffer_udp);
        let mut adv = Self {
            timers: Timers::default(),
            table: Table::default(),
            neighbours: Neighbours::new(options.hellos().then(|| options.silence())),
            connections: Connections::new(options.connection_idle, options.init_interval),
            duplicates: Duplicates::new(FLOOD_KNOWN, MAX_DUPLICATES),
            meter: Meter::new(&options),
            base: Base::new(
                Held::new(options.held_packets, options.held_packets, longest),
                Notices::new(&node, options.held_packets),
            ),
            sequence: Sequence(0),
            // others may remember the floods of an earlier daemon of this node
            flood_id: rng.below(1 << 32) as u32,
            floods: EventQueue::default(),
            flooded: VecDeque::new(),
            last_update_at: None,
            full_wanted: node.restarted,
            receiver: false,
            stopped: false,
            rng,
            node,
            options,
        };
        if adv.node.restarted {
            // neighbours that still use old routes over this node lose them before it learns routes from them
            adv.timers.set(Timer::Update, Instant::ZERO);
        }
        if adv.options.hellos() {
            let first = adv.rng.between(Duration::ZERO, adv.options.hello_interval);
            adv.timers.set(Timer::Hello, Instant::ZERO + first);
        }
        Ok(adv)
    }

    fn held(&mut self) -> Option<&mut Held> {
        Some(&mut self.base.held)
    }

    fn status(&self, now: Instant) -> Status {
        self.report(now)
    }
}

impl Machine for Adv {
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
            Input::Used { flows } => flows.iter().for_each(|flow| self.used(now, flow)),
            Input::Stop => self.stop(),
            _ => self.base.counters.count("unexpected-input"),
        }
        self.rearm(now);
    }

    fn handle_timeout(&mut self, now: Instant) {
        while let Some((timer, _)) = self.timers.expire(now) {
            match timer {
                Timer::Silence => self.silence(now),
                Timer::Idle => self.expire_idle(now),
                Timer::Search => self.search(now),
                Timer::Update => self.send_update(now),
                Timer::KeepAlive => self.keep_alive(),
                Timer::Flood => self.send_floods(now),
                Timer::Hello => self.send_hello(now),
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

impl Adv {
    /// Deadlines that follow from the state.
    fn rearm(&mut self, now: Instant) {
        if self.stopped {
            return;
        }
        self.timers.arm(Timer::Silence, self.neighbours.next_timeout());
        let ends =
            self.connections.next_end().into_iter().chain(self.table.next_timeout(self.options.route_idle)).min();
        self.timers.arm(Timer::Idle, ends);
        self.timers.arm(Timer::Search, self.connections.next_flood());
        self.timers.arm(Timer::Flood, self.floods.next_at());
        self.timers.arm(Timer::Held, self.base.held.next_timeout());
        self.plan_update(now);
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
        let lost = self.table.lose_via(now, self.node.address, neighbour);
        lost.iter().for_each(|destination| self.follow(*destination));
        !lost.is_empty()
    }

    /// Ends idle connections and removes unused routes.
    fn expire_idle(&mut self, now: Instant) {
        for destination in self.table.expire(now, self.node.address, self.options.route_idle) {
            self.base.counters.count("route-unused");
            self.follow(destination);
        }
        for (peer, connection) in self.connections.expire(now) {
            if self.base.held.count(peer) > 0 {
                // its packets still wait for a route
                self.connections.renew(now, peer, connection);
                continue;
            }
            self.base.counters.count("connection-ended");
            if connection.outgoing {
                self.flood_end(now, peer);
            }
        }
        self.check_receiver(now);
    }

    /// Updates the kernel's route from the table; sends the held packets if there is one.
    pub(crate) fn follow(&mut self, destination: Ipv4Addr) {
        let usable = self.table.get(destination).filter(|e| e.is_usable());
        match usable.map(|e| (e.via, e.hops, e.receiver)) {
            Some((via, hops, receiver)) => {
                self.base.set_route(destination, via, hops);
                if receiver {
                    self.connections.answered(destination);
                }
                self.base.release(destination, "held-released");
            }
            None => self.base.clear_route(destination),
        }
    }
}
