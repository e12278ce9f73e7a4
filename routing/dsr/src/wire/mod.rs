//! The DSR Options header of RFC 4728, section 6: bytes to structures and back. No state, no clock.
//!
//! Strict when writing (total length a multiple of 4, each option at its natural alignment), lenient when reading:
//! padding is dropped at any position, trailing bytes of an option that allows extensions are ignored, options of unknown
//! types are kept unchanged ([`Opt::Unknown`]) and treated by the first three bits of their type (section 8.1.6).

pub mod ack;
pub mod ack_request;
mod display;
pub mod error;
pub mod header;
pub mod padding;
pub mod reply;
pub mod request;
pub mod source_route;
pub mod unknown;

pub use ack::Ack;
pub use ack_request::AckRequest;
pub use error::{RouteError, What};
pub use header::Header;
pub use reply::Reply;
pub use request::Request;
pub use source_route::SourceRoute;
pub use unknown::{Treatment, Unknown};

use std::net::Ipv4Addr;

/// The reason for which bytes are no DSR header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Malformed {
    /// Fewer bytes than a length field states.
    Truncated,
    /// The length of an option does not fit its type.
    Length,
    /// The header of the flow-state extension (section 7), which is not supported.
    FlowState,
}

impl Malformed {
    /// The name of the counter.
    pub fn reason(self) -> &'static str {
        match self {
            Malformed::Truncated => "truncated",
            Malformed::Length => "bad-length",
            Malformed::FlowState => "flow-state",
        }
    }
}

/// An option of a DSR header other than padding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Opt {
    /// Route Request.
    Request(Request),
    /// Route Reply.
    Reply(Reply),
    /// Route Error.
    Error(RouteError),
    /// Acknowledgement Request.
    AckRequest(AckRequest),
    /// Acknowledgement.
    Ack(Ack),
    /// Source Route.
    SourceRoute(SourceRoute),
    /// An option of an unknown type.
    Unknown(Unknown),
}

impl Opt {
    /// Parses an option. `data`: the bytes after type and length. Fails if they do not fit the type.
    pub fn parse(kind: u8, data: &[u8]) -> Result<Self, Malformed> {
        Ok(match kind {
            request::KIND => Opt::Request(Request::parse(data)?),
            reply::KIND => Opt::Reply(Reply::parse(data)?),
            error::KIND => Opt::Error(RouteError::parse(data)?),
            ack_request::KIND => Opt::AckRequest(AckRequest::parse(data)?),
            ack::KIND => Opt::Ack(Ack::parse(data)?),
            source_route::KIND => Opt::SourceRoute(SourceRoute::parse(data)?),
            _ => Opt::Unknown(Unknown { kind, data: data.to_vec() }),
        })
    }

    /// Option type.
    pub fn kind(&self) -> u8 {
        match self {
            Opt::Request(_) => request::KIND,
            Opt::Reply(_) => reply::KIND,
            Opt::Error(_) => error::KIND,
            Opt::AckRequest(_) => ack_request::KIND,
            Opt::Ack(_) => ack::KIND,
            Opt::SourceRoute(_) => source_route::KIND,
            Opt::Unknown(unknown) => unknown.kind,
        }
    }

    /// The bytes after type and length.
    pub fn data(&self) -> Vec<u8> {
        match self {
            Opt::Request(o) => o.data(),
            Opt::Reply(o) => o.data(),
            Opt::Error(o) => o.data(),
            Opt::AckRequest(o) => o.data(),
            Opt::Ack(o) => o.data(),
            Opt::SourceRoute(o) => o.data(),
            Opt::Unknown(o) => o.data.clone(),
        }
    }
}

/// The addresses that fill `bytes` exactly.
fn addresses(bytes: &[u8]) -> Result<Vec<Ipv4Addr>, Malformed> {
    if bytes.len() % 4 != 0 {
        return Err(Malformed::Length);
    }
    Ok(bytes.chunks_exact(4).map(address).collect())
}

/// `bytes` has at least 4 bytes.
fn address(bytes: &[u8]) -> Ipv4Addr {
    Ipv4Addr::new(bytes[0], bytes[1], bytes[2], bytes[3])
}

fn put_addresses(to: &mut Vec<u8>, addresses: &[Ipv4Addr]) {
    to.extend(addresses.iter().flat_map(Ipv4Addr::octets));
}

fn be16(bytes: &[u8]) -> u16 {
    u16::from_be_bytes([bytes[0], bytes[1]])
}

/// Asserts for a test of an option that `bytes` parse to it, that it is written as `bytes`, and that data of fewer than
/// `min_len` bytes is refused.
#[cfg(test)]
pub(crate) fn check_golden(bytes: &[u8], option: &Opt, min_len: usize) {
    assert_eq!((bytes[0], usize::from(bytes[1])), (option.kind(), bytes.len() - 2));
    assert_eq!(Opt::parse(bytes[0], &bytes[2..]).as_ref(), Ok(option));
    assert_eq!(option.data(), &bytes[2..]);
    for len in 0..min_len {
        assert_eq!(Opt::parse(bytes[0], &bytes[2..2 + len]), Err(Malformed::Length), "{len} bytes of data");
    }
}
