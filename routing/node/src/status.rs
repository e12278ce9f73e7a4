//! The state that a daemon reports on its status socket (formats/routing.md).

use crate::Counters;
use serde::Serialize;
use std::net::Ipv4Addr;

/// A machine's state at one instant.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Status {
    /// The node's own sequence number (AODV, DSDV), ANSN (OLSR) or request id (DSR).
    pub sequence: Option<u32>,
    /// Routes, in order of destination.
    pub routes: Vec<RouteStatus>,
    /// Neighbours, in order of address.
    pub neighbours: Vec<NeighbourStatus>,
    /// Data packets that wait for a route.
    pub held: usize,
    /// Counters of the machine, by name.
    pub counters: Counters,
    /// Fields that only this protocol has.
    pub details: serde_json::Value,
}

/// An entry of the routing table.
#[derive(Clone, Debug, Serialize)]
pub struct RouteStatus {
    /// Address of the host or network.
    pub destination: Ipv4Addr,
    /// Prefix length in bits, 32 for a host.
    pub prefix: u8,
    /// The next hop; DSR: the first of `path`.
    pub via: Ipv4Addr,
    /// Hop count.
    pub hops: u32,
    /// `valid`, `invalid`, `repair`, `advertised`, `settling`, `broken`, `internet`, ... (the protocol's README)
    pub state: &'static str,
    /// The destination's sequence number, in protocols that have them.
    pub sequence: Option<u32>,
    /// Time to expiry in seconds; `None`: the entry does not expire.
    pub expires_s: Option<f64>,
    /// AODV's precursors.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub precursors: Vec<Ipv4Addr>,
    /// DSR's whole path, the destination last.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub path: Vec<Ipv4Addr>,
}

impl RouteStatus {
    /// A route to a host, with the other fields empty.
    pub fn host(destination: Ipv4Addr, via: Ipv4Addr, hops: u32, state: &'static str) -> Self {
        let (precursors, path) = (Vec::new(), Vec::new());
        Self { destination, prefix: 32, via, hops, state, sequence: None, expires_s: None, precursors, path }
    }
}

/// An entry of the neighbour table.
#[derive(Clone, Debug, Serialize)]
pub struct NeighbourStatus {
    /// The neighbour's address.
    pub address: Ipv4Addr,
    /// `heard`, `symmetric`, `mpr`, `blacklisted`, ...
    pub state: &'static str,
    /// Time to expiry in seconds; `None`: the entry does not expire.
    pub expires_s: Option<f64>,
}
