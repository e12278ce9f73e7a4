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

/// IEEE 802 addresses as text.
pub mod mac {
    use crate::Mac;
    use serde::{de::Error, Deserialize, Deserializer, Serializer};

    /// Six pairs of lower-case hexadecimal digits, separated by colons.
    pub fn format(mac: &Mac) -> String {
        mac.iter().map(|b| format!("{b:02x}")).collect::<Vec<_>>().join(":")
    }

    /// Reads the form of [`format`](fn@format), digits of either case. `None`: the text has another form.
    pub fn parse(text: &str) -> Option<Mac> {
        manet_engine::mac_text::parse(text)
    }

    /// Writes the address as text, for `#[serde(with = "manet_routing::status::mac")]`.
    pub fn serialize<S: Serializer>(mac: &Mac, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_str(&format(mac))
    }

    /// Reads the address as text. Fails if it has another form than six pairs of digits.
    pub fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Mac, D::Error> {
        let text = String::deserialize(d)?;
        parse(&text).ok_or_else(|| D::Error::custom(format!("\"{text}\" is no MAC address")))
    }
}
