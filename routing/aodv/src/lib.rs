//! AODV (RFC 3561), wire-compatible with AODV-UU 0.9.6, as a machine without clock or socket ([`Aodv`]).
//!
//! Departures and additions, each described at its place in the code: sequence number 0 is not used; a route enters the
//! kernel when it is needed, not when it is learnt; a route error that is older than our route is ignored; no reply is
//! sent to the neighbour that is the route's next hop; half-tunnelled Internet gateways as in AODV-UU.
//! Not supported: multicast (section 9 of the drafts; J and R are carried), subnet routes (section 7), several interfaces.

#![warn(missing_docs)]

pub mod discovery;
pub mod gateway;
pub mod limit;
pub mod machine;
pub mod neighbours;
pub mod options;
pub mod returned;
pub mod sequence;
pub mod table;
pub mod wire;

pub use machine::Aodv;
pub use options::Options;

use manet_routing::Output;
use std::net::Ipv4Addr;

/// UDP port (RFC 3561, section 5).
pub const PORT: u16 = 654;

/// The control message of an output as text, for readers of conformance cases. `None`: another output.
pub fn means(output: &Output) -> Option<String> {
    match output {
        Output::Control { bytes, .. } => wire::Message::parse(bytes).ok().map(|m| m.to_string()),
        _ => None,
    }
}

/// Whether one host can have this address.
fn is_host(address: Ipv4Addr) -> bool {
    !(address.is_broadcast() || address.is_multicast() || address.is_loopback() || address.octets()[0] == 0)
}
