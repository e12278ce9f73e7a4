//! What an observer of the whole mesh counts while it runs.

use crate::fingerprint::Fingerprint;
use crate::graph::Graph;
use manet_engine::{Duration, Instant};
use manet_routing::Counters;
use std::collections::BTreeMap;

/// How many loops are kept in full; the rest is only counted.
const LOOPS_KEPT: usize = 20;
/// No link has come or gone, or was taken for broken, for so long: OLSR's routes are to be right. What was there before is forgotten after
/// NEIGHB_HOLD_TIME, 6 s, and TOP_HOLD_TIME, 15 s, what is new has been told by then, and once more in case it was lost
/// (TC_INTERVAL, 5 s; RFC 3626, section 18).
pub const CONVERGED: Duration = Duration::from_secs(26);

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loop {
    pub at: Instant,
    /// Since the last link came or went, or was taken for broken.
    pub quiet: Duration,
    pub destination: usize,
    pub nodes: Vec<usize>,
}

#[derive(Clone, Debug, Default)]
pub struct FlowSeen {
    /// When each packet was offered.
    pub offered: Vec<Instant>,
    /// When and from which neighbour each was delivered for the first time.
    pub deliveries: Vec<Delivery>,
    delivered: Vec<bool>,
    pub duplicates: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delivery {
    pub at: Instant,
    pub number: u32,
    /// The neighbour that handed it over.
    pub last_hop: Option<usize>,
    pub hops: u8,
}

/// Frames with a packet in them, data frames and broadcasts, each attempt counted; bytes of the MPDU with FCS.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OnAir {
    pub frames: u64,
    pub bytes: u64,
}

#[derive(Clone, Debug, Default)]
pub struct Seen {
    pub fingerprint: Fingerprint,
    pub flows: Vec<FlowSeen>,
    /// Control packets that machines gave to the radio.
    pub control_packets: u64,
    pub control: OnAir,
    pub data: OnAir,
    /// Bytes of data frames that are the protocol's (DSR's headers).
    pub added_bytes: u64,
    /// Packets that a kernel gave up, ICMP errors sent, drops of the interface queues, by name.
    pub events: Counters,
    pub notes: BTreeMap<String, u64>,
    pub loops: Vec<Loop>,
    pub loop_count: u64,
    /// Of these, those that came up although no link had changed for [`CONVERGED`].
    pub late_loops: Vec<Loop>,
    pub late_loop_count: u64,
    pub discoveries: Discoveries,
    pub links: Links,
}

impl Seen {
    pub fn found_loop(&mut self, found: Loop) {
        self.loop_count += 1;
        if found.quiet >= CONVERGED {
            self.late_loop_count += 1;
            if self.late_loops.len() < LOOPS_KEPT {
                self.late_loops.push(found.clone());
            }
        }
        if self.loops.len() < LOOPS_KEPT {
            self.loops.push(found);
        }
    }

    pub fn packets_offered(&self) -> u64 {
        self.flows.iter().map(|f| f.offered.len() as u64).sum()
    }

    pub fn packets_delivered(&self) -> u64 {
        self.flows.iter().map(|f| f.deliveries.len() as u64).sum()
    }

    pub fn offered(&mut self, flow: usize, now: Instant) -> u32 {
        let flow = &mut self.flows[flow];
        flow.offered.push(now);
        flow.delivered.push(false);
        flow.offered.len() as u32 - 1
    }

    pub fn delivered(&mut self, flow: usize, delivery: Delivery) {
        let Some(flow) = self.flows.get_mut(flow) else { return };
        match flow.delivered.get_mut(delivery.number as usize) {
            Some(done) if !*done => {
                *done = true;
                flow.deliveries.push(delivery);
            }
            _ => flow.duplicates += 1,
        }
    }

    pub fn note(&mut self, event: &str) {
        match self.notes.get_mut(event) {
            Some(count) => *count += 1,
            None => {
                self.notes.insert(event.to_owned(), 1);
            }
        }
    }
}

/// From the first request for a destination to the route.
#[derive(Clone, Debug, Default)]
pub struct Discoveries {
    begun: BTreeMap<(usize, usize), Instant>,
    pub latencies: Vec<Duration>,
    pub failed: u64,
}

impl Discoveries {
    pub fn begin(&mut self, now: Instant, node: usize, destination: usize) {
        self.begun.entry((node, destination)).or_insert(now);
    }

    pub fn succeed(&mut self, now: Instant, node: usize, destination: usize) {
        if let Some(begun) = self.begun.remove(&(node, destination)) {
            self.latencies.push(now - begun);
        }
    }

    pub fn fail(&mut self, node: usize, destination: usize) {
        self.failed += u64::from(self.begun.remove(&(node, destination)).is_some());
    }
}

/// Links and how the routes follow them; looked at ten times a second.
#[derive(Clone, Debug, Default)]
pub struct Links {
    pub graph: Graph,
    /// Ordered pairs that are connected now, with the length of the shortest path.
    pub connected_pairs: Vec<(usize, usize, u32)>,
    /// Of these, so many have routes that lead there.
    pub routed_pairs: usize,
    pub last_change: Instant,
    /// When a machine last took a link for broken, rightly or because of lost frames: that is news for all as well.
    pub last_broken: Instant,
    pub changes: u64,
    /// Since when the routes have been wanted to be consistent.
    pub disturbed: Option<Instant>,
    /// From the last link change to all connected pairs having routes that lead there.
    pub convergences: Vec<Duration>,
    pub looks: u64,
    /// Ordered pairs, summed over the looks: all, connected, and with routes that lead there.
    pub pairs: u64,
    pub connected: u64,
    pub routed: u64,
    /// Hops of the shortest paths, summed over the connected pairs.
    pub hops: u64,
    /// Offered while source and destination were connected.
    pub offered_connected: u64,
}
