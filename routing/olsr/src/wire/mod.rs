//! OLSR on the wire (RFC 3626, sections 3.3, 5.1, 6.1, 9.1, 12.1), one file per message. IPv4 only.
//!
//! Strict when sending, lenient when receiving: reserved bits and bytes beyond the packet's length are ignored; a length
//! that does not fit is [`Malformed`]. `parse` does not panic for any bytes.

mod display;
pub mod hello;
pub mod hna;
pub mod message;
pub mod mid;
pub mod packet;
pub mod span;
pub mod tc;

pub use hello::Hello;
pub use hna::Hna;
pub use message::Message;
pub use mid::Mid;
pub use packet::Packet;
pub use span::Span;
pub use tc::Tc;

use std::net::Ipv4Addr;

/// A length does not fit the bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed;

fn be16(bytes: &[u8]) -> u16 {
    u16::from_be_bytes([bytes[0], bytes[1]])
}

fn address(bytes: &[u8]) -> Ipv4Addr {
    Ipv4Addr::new(bytes[0], bytes[1], bytes[2], bytes[3])
}

/// A list of addresses that fills the bytes exactly.
fn addresses(bytes: &[u8]) -> Result<Vec<Ipv4Addr>, Malformed> {
    if bytes.len() % 4 != 0 {
        return Err(Malformed);
    }
    Ok(bytes.chunks_exact(4).map(address).collect())
}
