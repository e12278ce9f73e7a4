//! What a daemon tells of itself on its status socket (formats/routing.md).

use crate::Counters;
use serde::Serialize;
use std::net::Ipv4Addr;

#[derive(Clone, Debug, Default, Serialize)]
pub struct Status {
    /// The node's own sequence number (AODV, DSDV), ANSN (OLSR) or request id (DSR).
    pub sequence: Option<u32>,
    pub routes: Vec<RouteStatus>,
    pub neighbours: Vec<NeighbourStatus>,
    /// Data packets that wait for a route.
    pub held: usize,
    pub counters: Counters,
    /// What only this protocol has.
    pub details: serde_json::Value,
}

#[derive(Clone, Debug, Serialize)]
pub struct RouteStatus {
    pub destination: Ipv4Addr,
    pub prefix: u8,
    /// The next hop; DSR: the first of `path`.
    pub via: Ipv4Addr,
    pub hops: u32,
    /// `valid`, `invalid`, `repair`, `advertised`, `settling`, `broken`, `internet`, ... (the protocol's README)
    pub state: &'static str,
    pub sequence: Option<u32>,
    /// Seconds from now.
    pub expires_s: Option<f64>,
    /// AODV's precursors.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub precursors: Vec<Ipv4Addr>,
    /// DSR's whole path, the destination last.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub path: Vec<Ipv4Addr>,
}

#[derive(Clone, Debug, Serialize)]
pub struct NeighbourStatus {
    pub address: Ipv4Addr,
    /// `heard`, `symmetric`, `mpr`, `blacklisted`, ...
    pub state: &'static str,
    pub expires_s: Option<f64>,
}

/// IEEE 802 addresses as people write them.
pub mod mac {
    use crate::Mac;
    use serde::{de::Error, Deserialize, Deserializer, Serializer};

    pub fn format(mac: &Mac) -> String {
        mac.iter().map(|b| format!("{b:02x}")).collect::<Vec<_>>().join(":")
    }

    pub fn parse(text: &str) -> Option<Mac> {
        let parts: Vec<&str> = text.split(':').collect();
        let bytes: Option<Vec<u8>> =
            parts.iter().map(|p| (p.len() == 2).then(|| u8::from_str_radix(p, 16).ok()).flatten()).collect();
        bytes?.try_into().ok()
    }

    pub fn serialize<S: Serializer>(mac: &Mac, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_str(&format(mac))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Mac, D::Error> {
        let text = String::deserialize(d)?;
        parse(&text).ok_or_else(|| D::Error::custom(format!("\"{text}\" is no MAC address")))
    }
}
