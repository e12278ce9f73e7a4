//! AODV (RFC 3561), wire-compatible with AODV-UU 0.9.6, as a machine without clock or socket ([`Aodv`]).
//!
//! Departures and additions, each described where it happens: the RFC's own sequence number 0 is not used; a route enters
//! the kernel when it is needed, not when it is learnt; a route error that is older than our route is not believed; no
//! answer goes back to the neighbour the route leads to; half-tunnelled Internet gateways as AODV-UU has them.
//! Not supported: multicast (section 9 of the drafts; J and R are carried), subnet routes (section 7), several interfaces.

pub mod discovery;
pub mod duplicates;
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

/// What an output's message says, for readers of conformance cases.
pub fn means(output: &Output) -> Option<String> {
    match output {
        Output::Control { bytes, .. } => wire::Message::parse(bytes).ok().map(|m| m.to_string()),
        _ => None,
    }
}

/// An address that one host can have.
fn is_host(address: Ipv4Addr) -> bool {
    !(address.is_broadcast() || address.is_multicast() || address.is_loopback() || address.octets()[0] == 0)
}
