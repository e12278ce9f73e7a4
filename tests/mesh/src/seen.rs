//! Observations of the whole mesh during a run.

use crate::fingerprint::Fingerprint;
use crate::graph::Graph;
use manet_engine::{Duration, Instant};
use manet_routing::Counters;
use std::collections::BTreeMap;

/// Number of loops that are kept in full; the rest is only counted.
const MAX_LOOPS: usize = 20;
/// Time without a change of a link, or a link reported broken, after which OLSR's routes must be correct. Old state expires after
/// NEIGHB_HOLD_TIME, 6 s, and TOP_HOLD_TIME, 15 s; new state is announced by then, and once more in case it was lost
pub const CONVERGED: Duration = Duration::from_secs(26);

/// A loop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loop {
    /// Instant of the change of a route that closed it.
    pub at: Instant,
    /// Time since a link last changed or was reported broken.
    pub quiet: Duration,
    /// Destination of the route.
    pub destination: usize,
    /// The nodes, each forwarding to the next, the last to the first.
    pub nodes: Vec<usize>,
}

/// Observations of a flow.
#[derive(Clone, Debug, Default)]
pub struct FlowSeen {
    /// Instant at which each packet was sent.
    pub offered: Vec<Instant>,
    /// First delivery of each packet delivered.
    pub deliveries: Vec<Delivery>,
    delivered: Vec<bool>,
    /// Further deliveries.
    pub duplicates: u64,
}

/// A packet at its destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// Instant of the delivery.
    pub at: Instant,
    /// Number of the packet in its flow.
    pub number: u32,
    /// The neighbour that sent it.
    pub last_hop: Option<usize>,
    /// Hops of its path.
    pub hops: u8,
}

/// Data and broadcast frames on the air; each attempt counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OnAir {
    /// Number of frames.
    pub frames: u64,
    /// Bytes of the MPDUs with FCS.
    pub bytes: u64,
}

/// All observations of a run.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// Hash of all outputs of the machines.
    pub fingerprint: Fingerprint,
    /// One for each flow of the scenario.
    pub flows: Vec<FlowSeen>,
    /// Control packets that the machines sent.
    pub control_packets: u64,
    /// Frames with control packets.
    pub control: OnAir,
    /// Frames with ARP messages.
    pub arp: OnAir,
    /// Frames with data packets.
    pub data: OnAir,
    /// Bytes that the protocol added to data frames (DSR's headers).
    pub added_bytes: u64,
    /// Packets dropped by kernels, ICMP errors sent, packets dropped by the medium, by name.
    pub events: Counters,
    /// Notes of the machines, by event.
    pub notes: BTreeMap<String, u64>,
    /// The first loops.
    pub loops: Vec<Loop>,
    /// Number of all loops.
    pub loop_count: u64,
    /// The first loops that appeared although no link had changed for [`CONVERGED`].
    pub late_loops: Vec<Loop>,
    /// Number of all such loops.
    pub late_loop_count: u64,
    /// Searches for routes.
    pub discoveries: Discoveries,
    /// Links and convergence.
    pub links: Links,
}

impl Seen {
    /// Counts a loop.
    pub fn found_loop(&mut self, found: Loop) {
        self.loop_count += 1;
        if found.quiet >= CONVERGED {
            self.late_loop_count += 1;
            if self.late_loops.len() < MAX_LOOPS {
                self.late_loops.push(found.clone());
            }
        }
        if self.loops.len() < MAX_LOOPS {
            self.loops.push(found);
        }
    }

    /// Packets sent in all flows.
    pub fn packets_offered(&self) -> u64 {
        self.flows.iter().map(|f| f.offered.len() as u64).sum()
    }

    /// Packets delivered in all flows, without duplicates.
    pub fn packets_delivered(&self) -> u64 {
        self.flows.iter().map(|f| f.deliveries.len() as u64).sum()
    }

    /// Counts a packet sent in a flow; returns its number.
    pub fn offered(&mut self, flow: usize, now: Instant) -> u32 {
        let flow = &mut self.flows[flow];
        flow.offered.push(now);
        flow.delivered.push(false);
        flow.offered.len() as u32 - 1
    }

    /// Counts a delivery in a flow.
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

    /// Counts a note of a machine.
    pub fn note(&mut self, event: &str) {
        match self.notes.get_mut(event) {
            Some(count) => *count += 1,
            None => {
                self.notes.insert(event.to_owned(), 1);
            }
        }
    }
}

/// Searches for routes, from the first request for a destination to the route.
#[derive(Clone, Debug, Default)]
pub struct Discoveries {
    begun: BTreeMap<(usize, usize), Instant>,
    /// Duration of each search that found a route.
    pub latencies: Vec<Duration>,
    /// Searches without a route.
    pub failed: u64,
}

impl Discoveries {
    /// `node` requests a route to `destination`; a search that runs continues.
    pub fn begin(&mut self, now: Instant, node: usize, destination: usize) {
        self.begun.entry((node, destination)).or_insert(now);
    }

    /// `node` has a route to `destination`.
    pub fn succeed(&mut self, now: Instant, node: usize, destination: usize) {
        if let Some(begun) = self.begun.remove(&(node, destination)) {
            self.latencies.push(now - begun);
        }
    }

    /// `node` gives up the search for `destination`.
    pub fn fail(&mut self, node: usize, destination: usize) {
        self.failed += u64::from(self.begun.remove(&(node, destination)).is_some());
    }
}

/// Links, and how the routes follow them; sampled ten times a second.
#[derive(Clone, Debug, Default)]
pub struct Links {
    /// The links at the last sample.
    pub graph: Graph,
    /// Ordered pairs that are connected now, with the length of the shortest path.
    pub connected_pairs: Vec<(usize, usize, u32)>,
    /// Number of connected pairs with routes that reach the destination.
    pub routed_pairs: usize,
    /// Last change of a link.
    pub last_change: Instant,
    /// Last report of a machine that a link is broken, correct or because of lost frames: such a report also changes routes.
    pub last_broken: Instant,
    /// Samples at which a link had changed.
    pub changes: u64,
    /// Last link change to which not all routes have adapted yet.
    pub disturbed: Option<Instant>,
    /// Times from the last link change until all connected pairs had routes that reach the destination.
    pub convergences: Vec<Duration>,
    /// Number of samples.
    pub samples: u64,
    /// Ordered pairs, summed over the samples.
    pub pairs: u64,
    /// Connected pairs, summed over the samples.
    pub connected: u64,
    /// Pairs with routes that reach the destination, summed over the samples.
    pub routed: u64,
    /// Hops of the shortest paths, summed over the connected pairs.
    pub hops: u64,
    /// Packets sent while source and destination were connected.
    pub offered_connected: u64,
}
