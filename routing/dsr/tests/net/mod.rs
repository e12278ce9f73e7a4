//! DSR nodes on an ideal channel: a frame takes a millisecond and reaches all nodes in range without collisions. A unicast
//! frame to a node out of range fails after another two (the radio's retries).
#![allow(dead_code)]

use manet_dsr::datagram::Datagram;
use manet_dsr::{Dsr, Options};
use manet_engine::{Duration, EventQueue, Instant, Machine};
use manet_routing::packet::ipv4::{self, protocol};
use manet_routing::{Bytes, Input, Mac, Node, Note, Output, Protocol, BROADCAST_MAC};
use std::collections::{BTreeSet, VecDeque};
use std::net::Ipv4Addr;

const AIRTIME: Duration = Duration::from_millis(1);
const RETRIES: Duration = Duration::from_millis(2);

pub fn ip(n: u64) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, (n >> 8) as u8, n as u8)
}

pub fn mac(n: u64) -> Mac {
    [2, 0, 0, 0, (n >> 8) as u8, n as u8]
}

pub fn node(n: u64) -> Node {
    Node::new(n, ip(n), (Ipv4Addr::new(10, 0, 0, 0), 8), mac(n))
}

pub fn at(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(ms)
}

pub fn udp(from: Ipv4Addr, to: Ipv4Addr, id: u16, payload: &[u8]) -> Bytes {
    let header = ipv4::Repr {
        tos: 0,
        identification: id,
        dont_fragment: true,
        ttl: 64,
        protocol: protocol::UDP,
        source: from,
        destination: to,
    };
    // ports 1000 and 2000, length, no checksum (RFC 768)
    let mut datagram = vec![3, 232, 7, 208];
    datagram.extend(((payload.len() + 8) as u16).to_be_bytes());
    datagram.extend([0, 0]);
    datagram.extend(payload);
    Bytes(header.packet(&datagram))
}

#[derive(Clone, Debug)]
enum Event {
    Arrive { from: usize, to: Mac, bytes: Bytes, arp: bool },
    Failed { at: usize, to: Mac, bytes: Bytes },
}

/// Whether a node's filter drops an overheard frame.
pub fn is_dull(node: &Dsr, from: Mac, to: Mac, bytes: &Bytes) -> bool {
    let frame = [to.as_slice(), &from, &[8, 0], bytes].concat();
    let filter = node.overheard_filter();
    !filter.is_empty() && manet_routing::packet::filter::run(&filter, &frame, 0, 0) == 0
}

/// The outputs of a node with their times.
#[derive(Clone, Debug)]
pub struct Seen {
    pub at: Instant,
    pub node: u64,
    pub output: Output,
}

pub struct Net {
    pub nodes: Vec<Dsr>,
    links: BTreeSet<(usize, usize)>,
    events: EventQueue<Event>,
    pub now: Instant,
    pub seen: Vec<Seen>,
    feedback: bool,
    /// Whether overheard frames pass the machine's filter first, as in the host.
    pub filters: bool,
    pub filtered: u64,
}

impl Net {
    /// Nodes 1 to `count`, without links.
    pub fn new(count: u64, options: &Options) -> Self {
        Self::of((1..=count).map(node).collect(), options)
    }

    pub fn of(nodes: Vec<Node>, options: &Options) -> Self {
        let feedback = nodes.iter().all(|n| n.feedback);
        let nodes = nodes.into_iter().map(|n| Dsr::new(n, options.clone()).unwrap()).collect();
        let events = EventQueue::default();
        Self {
            nodes,
            links: BTreeSet::new(),
            events,
            now: Instant::ZERO,
            seen: Vec::new(),
            feedback,
            filters: false,
            filtered: 0,
        }
    }

    pub fn chain(count: u64, options: &Options) -> Self {
        let mut net = Self::new(count, options);
        (1..count).for_each(|n| net.link(n, n + 1));
        net
    }

    pub fn link(&mut self, a: u64, b: u64) {
        self.links.extend([(a as usize - 1, b as usize - 1), (b as usize - 1, a as usize - 1)]);
    }

    pub fn cut(&mut self, a: u64, b: u64) {
        self.links.remove(&(a as usize - 1, b as usize - 1));
        self.links.remove(&(b as usize - 1, a as usize - 1));
    }

    pub fn handle(&mut self, n: u64, input: Input) {
        let index = n as usize - 1;
        self.nodes[index].handle(self.now, input);
        self.drain(index);
    }

    pub fn send(&mut self, from: u64, to: u64, id: u16) {
        let bytes = udp(ip(from), ip(to), id, b"hello");
        self.handle(from, Input::Packet { bytes });
    }

    fn drain(&mut self, index: usize) {
        let mut outputs = VecDeque::new();
        while let Some(output) = self.nodes[index].poll_output() {
            outputs.push_back(output);
        }
        for output in outputs {
            self.seen.push(Seen { at: self.now, node: index as u64 + 1, output: output.clone() });
            let event = match output {
                Output::Frame { to, bytes, .. } => {
                    assert!(ipv4::Packet::parse(&bytes).is_some() && bytes.len() <= 1500);
                    Event::Arrive { from: index, to, bytes, arp: false }
                }
                Output::Arp { to, bytes } => Event::Arrive { from: index, to, bytes, arp: true },
                _ => continue,
            };
            self.events.push(self.now + AIRTIME, 0, event);
        }
    }

    pub fn run(&mut self, until: Instant) {
        loop {
            let timers = self.nodes.iter().filter_map(Machine::next_timeout).min();
            let Some(next) = timers.into_iter().chain(self.events.next_at()).min().filter(|t| *t <= until) else {
                break;
            };
            self.now = next.max(self.now);
            for index in 0..self.nodes.len() {
                if self.nodes[index].next_timeout().is_some_and(|t| t <= self.now) {
                    self.nodes[index].handle_timeout(self.now);
                    assert!(self.nodes[index].next_timeout().is_none_or(|t| t > self.now));
                    self.drain(index);
                }
            }
            if let Some((_, event)) = self.events.pop_due(self.now) {
                self.happen(event);
            }
        }
        self.now = until;
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Arrive { from, to, bytes, arp } => {
                let mut reached = to == BROADCAST_MAC;
                for index in 0..self.nodes.len() {
                    if !self.links.contains(&(from, index)) {
                        continue;
                    }
                    let (bytes, from) = (bytes.clone(), mac(from as u64 + 1));
                    let own = to == mac(index as u64 + 1);
                    reached |= own;
                    let ours = own || to == BROADCAST_MAC;
                    if arp {
                        if ours {
                            self.handle(index as u64 + 1, Input::Arp { from, bytes });
                        }
                        continue;
                    }
                    if !ours && self.filters && is_dull(&self.nodes[index], from, to, &bytes) {
                        self.filtered += 1;
                        continue;
                    }
                    let input =
                        if ours { Input::Frame { from, to, bytes } } else { Input::Overheard { from, to, bytes } };
                    self.handle(index as u64 + 1, input);
                }
                if !reached && arp {
                    // the radio does not report frames other than IP
                } else if !reached {
                    self.events.push(self.now + RETRIES, 0, Event::Failed { at: from, to, bytes });
                } else if to != BROADCAST_MAC && self.feedback {
                    self.handle(from as u64 + 1, Input::FrameDelivered { to });
                }
            }
            Event::Failed { at, to, bytes } if self.feedback => {
                self.handle(at as u64 + 1, Input::FrameFailed { to, bytes });
            }
            Event::Failed { .. } => {}
        }
    }

    pub fn counter(&self, n: u64, name: &str) -> u64 {
        self.nodes[n as usize - 1].status(self.now).counters.get(name)
    }

    pub fn total(&self, name: &str) -> u64 {
        (1..=self.nodes.len() as u64).map(|n| self.counter(n, name)).sum()
    }

    /// IP identifications of the packets handed to a node's stack.
    pub fn delivered(&self, n: u64) -> Vec<u16> {
        let of = |s: &Seen| match &s.output {
            Output::Deliver { bytes } if s.node == n => ipv4::Packet::parse(bytes).map(|p| p.identification()),
            _ => None,
        };
        self.seen.iter().filter_map(of).collect()
    }

    pub fn outputs(&self, n: u64) -> impl Iterator<Item = &Output> {
        self.seen.iter().filter(move |s| s.node == n).map(|s| &s.output)
    }

    /// The packets of the frames that a node sent.
    pub fn frames(&self, n: u64) -> Vec<(Mac, Datagram)> {
        let frame = |o: &Output| match o {
            Output::Frame { to, bytes, .. } => Some((*to, Datagram::parse(bytes).unwrap())),
            _ => None,
        };
        self.outputs(n).filter_map(frame).collect()
    }

    pub fn notes(&self, n: u64, event: &str) -> Vec<(Ipv4Addr, u64)> {
        let of = |o: &Output| match o {
            Output::Note(Note { event: e, about, value, .. }) if e == event => Some((*about, *value)),
            _ => None,
        };
        self.outputs(n).filter_map(of).collect()
    }

    pub fn path(&self, from: u64, to: u64) -> Option<Vec<Ipv4Addr>> {
        let status = self.nodes[from as usize - 1].status(self.now);
        status.routes.into_iter().find(|r| r.destination == ip(to)).map(|r| r.path)
    }
}
