//! The DSR Options header of RFC 4728, section 6: bytes to structures and back. No state, no clock.
//!
//! Strict when writing (total length a multiple of 4, each option at its natural alignment), lenient when reading:
//! padding is dropped wherever it stands, trailing bytes of an option that has room for extensions are ignored, options
//! without a meaning here are kept as they are ([`Opt::Unknown`]) and judged by the first three bits of their type
//! (section 8.1.6).

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

/// Why bytes are no DSR header. Also the name under which it is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Malformed {
    /// Fewer bytes than a length field says.
    Truncated,
    /// An option whose length does not fit its type.
    Length,
    /// The header of the flow-state extension (section 7), which is not spoken here.
    FlowState,
}

impl Malformed {
    pub fn reason(self) -> &'static str {
        match self {
            Malformed::Truncated => "truncated",
            Malformed::Length => "bad-length",
            Malformed::FlowState => "flow-state",
        }
    }
}

/// One option of a DSR header, padding aside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Opt {
    Request(Request),
    Reply(Reply),
    Error(RouteError),
    AckRequest(AckRequest),
    Ack(Ack),
    SourceRoute(SourceRoute),
    Unknown(Unknown),
}

impl Opt {
    /// `data` is what follows type and length.
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

    /// What follows type and length.
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

/// The addresses that fill `bytes`; their number must be whole.
fn addresses(bytes: &[u8]) -> Result<Vec<Ipv4Addr>, Malformed> {
    if bytes.len() % 4 != 0 {
        return Err(Malformed::Length);
    }
    Ok(bytes.chunks_exact(4).map(address).collect())
}

/// `bytes` has at least 4.
fn address(bytes: &[u8]) -> Ipv4Addr {
    Ipv4Addr::new(bytes[0], bytes[1], bytes[2], bytes[3])
}

fn put_addresses(to: &mut Vec<u8>, addresses: &[Ipv4Addr]) {
    to.extend(addresses.iter().flat_map(Ipv4Addr::octets));
}

fn be16(bytes: &[u8]) -> u16 {
    u16::from_be_bytes([bytes[0], bytes[1]])
}

/// What every option's tests ask: these bytes mean this, this is written as these bytes, and no shorter data of fewer
/// than `least` bytes means anything.
#[cfg(test)]
pub(crate) fn check_golden(bytes: &[u8], option: &Opt, least: usize) {
    assert_eq!((bytes[0], usize::from(bytes[1])), (option.kind(), bytes.len() - 2));
    assert_eq!(Opt::parse(bytes[0], &bytes[2..]).as_ref(), Ok(option));
    assert_eq!(option.data(), &bytes[2..]);
    for len in 0..least {
        assert_eq!(Opt::parse(bytes[0], &bytes[2..2 + len]), Err(Malformed::Length), "{len} bytes of data");
    }
}
