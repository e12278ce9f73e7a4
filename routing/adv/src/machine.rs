//! An ADV node: deadlines and the dispatch of inputs. The rules of routes are in [`crate::table`], those of updates in
//! [`crate::meter`] and `updates.rs`, the floods in `flood.rs`, received messages in `receive.rs`, data packets in `data.rs`.

use crate::connections::Connections;
use crate::duplicates::Duplicates;
use crate::meter::Meter;
use crate::neighbours::Neighbours;
use crate::options::{Link, Options};
use crate::pending::Flood;
use crate::sequence::Sequence;
use crate::table::Table;
use crate::wire;
use manet_engine::random::Purpose;
use manet_engine::timers::{TimerName, Timers};
use manet_engine::{Duration, EventQueue, Instant, Machine, Stream};
use manet_routing::{Carrier, Counters, Held, Input, Node, Notices, OptionError, Output, Protocol, Route, Status};
use std::collections::{BTreeMap, VecDeque};
use std::net::Ipv4Addr;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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

impl TimerName for Timer {
    const ALL: &'static [Self] = &[
        Timer::Silence,
        Timer::Idle,
        Timer::Search,
        Timer::Update,
        Timer::KeepAlive,
        Timer::Flood,
        Timer::Hello,
        Timer::Held,
    ];
    fn index(self) -> usize {
        self as usize
    }
}

/// An ADV node as a machine.
pub struct Adv {
    pub(crate) node: Node,
    pub(crate) options: Options,
    pub(crate) rng: Stream,
    pub(crate) timers: Timers<Timer, 8>,
    pub(crate) table: Table,
    pub(crate) neighbours: Neighbours,
    pub(crate) connections: Connections,
    pub(crate) duplicates: Duplicates,
    pub(crate) meter: Meter,
    pub(crate) held: Held,
    pub(crate) notices: Notices,
    /// Next hops that we set in the kernel's table.
    pub(crate) kernel: BTreeMap<Ipv4Addr, Ipv4Addr>,
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
    pub(crate) counters: Counters,
    pub(crate) out: VecDeque<Output>,
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
            duplicates: Duplicates::default(),
            meter: Meter::new(&options),
            held: Held::new(options.held_packets, options.held_packets, longest),
            notices: Notices::new(&node, options.held_packets),
            kernel: BTreeMap::new(),
            sequence: Sequence(0),
            // others may remember the floods of an earlier daemon of this node
            flood_id: rng.below(1 << 32) as u32,
            floods: EventQueue::default(),
            flooded: VecDeque::new(),
            last_update_at: None,
            full_wanted: node.restarted,
            receiver: false,
            stopped: false,
            counters: Counters::default(),
            out: VecDeque::new(),
            rng,
            node,
            options,
        };
        if adv.node.restarted {
            // neighbours that still use old routes over this node lose them before it learns routes from them
            adv.timers.set(Timer::Update, Instant::ZERO);
        }
        if adv.options.hellos() {
            let first = adv.up_to(adv.options.hello_interval);
            adv.timers.set(Timer::Hello, Instant::ZERO + first);
        }
        Ok(adv)
    }

    fn held(&mut self) -> Option<&mut Held> {
        Some(&mut self.held)
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
            _ => self.counters.count("unexpected-input"),
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
                Timer::Held => self.expire_held(now),
            }
            self.rearm(now);
        }
    }

    fn poll_output(&mut self) -> Option<Output> {
        self.out.pop_front()
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
        self.timers.arm(Timer::Held, self.held.next_timeout());
        self.plan_update(now);
    }

    /// A random duration, uniform from 0 to `max`.
    pub(crate) fn up_to(&mut self, max: Duration) -> Duration {
        Duration::from_secs_f64(max.as_secs_f64() * self.rng.unit())
    }

    /// Whether one station of the ad hoc network can have this address.
    pub(crate) fn is_station(&self, address: Ipv4Addr) -> bool {
        let bits = u32::from(self.node.network.1);
        let host_bits = u32::MAX.checked_shr(bits).unwrap_or(0);
        let host = u32::from(address) & host_bits;
        let names_the_network = bits < 31 && (host == 0 || host == host_bits);
        let single = !(address.is_unspecified() || address.is_broadcast() || address.is_multicast());
        self.node.in_network(address) && single && !names_the_network
    }

    fn silence(&mut self, now: Instant) {
        for neighbour in self.neighbours.expire(now) {
            self.counters.count("link-silent");
            self.lose_link(now, neighbour, 2);
        }
    }

    fn link_failed(&mut self, now: Instant, neighbour: Ipv4Addr, bytes: manet_routing::Bytes) {
        if !self.node.feedback || self.options.link == Link::Hello {
            self.counters.count("feedback-ignored");
            return;
        }
        self.counters.count("link-failed");
        let known = self.neighbours.forget(neighbour);
        if self.lose_link(now, neighbour, 1) || known {
            self.out.push_back(Output::Purge { neighbour });
        }
        if !bytes.is_empty() {
            self.returned(now, bytes);
        }
    }

    /// Loses the routes over `neighbour`. True: there was at least one.
    fn lose_link(&mut self, now: Instant, neighbour: Ipv4Addr, cause: u64) -> bool {
        let lost = self.lose_routes(now, neighbour);
        if lost {
            self.out.push_back(Output::note("link-broken", neighbour, cause));
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
            self.counters.count("route-unused");
            self.follow(destination);
        }
        for (peer, connection) in self.connections.expire(now) {
            if self.held.count(peer) > 0 {
                // its packets still wait for a route
                self.connections.renew(now, peer, connection);
                continue;
            }
            self.counters.count("connection-ended");
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
                if self.kernel.insert(destination, via) != Some(via) {
                    self.out.push_back(Output::SetRoute(Route::host(destination, via, hops)));
                }
                if receiver {
                    self.connections.answered(destination);
                }
                if self.held.is_empty() {
                    return;
                }
                for bytes in self.held.take(destination) {
                    self.counters.count("held-released");
                    let notice = self.notices.released(&bytes).map(|kind| Notices::output(kind, &bytes));
                    self.out.push_back(Output::Send { bytes });
                    self.out.extend(notice);
                }
            }
            None => {
                if self.kernel.remove(&destination).is_some() {
                    self.out.push_back(Output::ClearRoute { destination, prefix: 32 });
                }
            }
        }
    }
}
