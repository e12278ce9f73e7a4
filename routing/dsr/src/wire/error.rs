//! Route Error option (RFC 4728, section 6.4).
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |    type = 3   |    length     |  error type   |reservd|salvage|
//! |                      error source address                     |
//! |                   error destination address                   |
//! |            unreachable node address (error type 1)            |
//! ```

use super::{address, put_addresses, Malformed};
use std::net::Ipv4Addr;

/// Option type.
pub const KIND: u8 = 3;
const NODE_UNREACHABLE: u8 = 1;
const FLOW_STATE_NOT_SUPPORTED: u8 = 2;
const OPTION_NOT_SUPPORTED: u8 = 3;

/// The reported error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// The error's source cannot reach this neighbour (6.4.1).
    NodeUnreachable(Ipv4Addr),
    /// The flow-state extension is not supported (6.4.2).
    FlowState,
    /// An option of this type is not supported (6.4.3).
    OptionNotSupported(u8),
    /// An unknown error type, with the type-specific information.
    Other(u8, Vec<u8>),
}

/// A route error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RouteError {
    /// Salvage count of the lost packet; 4 bits.
    pub salvage: u8,
    /// The node that detected the error.
    pub source: Ipv4Addr,
    /// The node that gave the lost packet its route.
    pub destination: Ipv4Addr,
    /// The error.
    pub what: What,
}

impl RouteError {
    /// Parses the option data. Fails if it is too short for its error type.
    pub fn parse(data: &[u8]) -> Result<Self, Malformed> {
        let fixed = data.get(..10).ok_or(Malformed::Length)?;
        let info = &data[10..];
        let what = match fixed[0] {
            NODE_UNREACHABLE if info.len() >= 4 => What::NodeUnreachable(address(info)),
            OPTION_NOT_SUPPORTED if !info.is_empty() => What::OptionNotSupported(info[0]),
            NODE_UNREACHABLE | OPTION_NOT_SUPPORTED => return Err(Malformed::Length),
            FLOW_STATE_NOT_SUPPORTED => What::FlowState,
            other => What::Other(other, info.to_vec()),
        };
        Ok(Self { salvage: fixed[1] & 0xf, source: address(&fixed[2..]), destination: address(&fixed[6..]), what })
    }

    /// The option data; of `salvage` the low 4 bits.
    pub fn data(&self) -> Vec<u8> {
        let (kind, info) = match &self.what {
            What::NodeUnreachable(node) => (NODE_UNREACHABLE, node.octets().to_vec()),
            What::FlowState => (FLOW_STATE_NOT_SUPPORTED, Vec::new()),
            What::OptionNotSupported(option) => (OPTION_NOT_SUPPORTED, vec![*option]),
            What::Other(kind, info) => (*kind, info.clone()),
        };
        let mut data = vec![kind, self.salvage & 0xf];
        put_addresses(&mut data, &[self.source, self.destination]);
        data.extend(info);
        data
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{check_golden, Opt};

    const SOURCE: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
    const DESTINATION: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);

    fn error(salvage: u8, what: What) -> Opt {
        Opt::Error(RouteError { salvage, source: SOURCE, destination: DESTINATION, what })
    }

    #[test]
    fn golden_bytes_of_node_unreachable() {
        // RFC 4728, section 6.4.1: type 3, length 14, error type 1, salvage 5
        let bytes = [3, 14, 1, 5, 10, 0, 0, 2, 10, 0, 0, 1, 10, 0, 0, 3];
        check_golden(&bytes, &error(5, What::NodeUnreachable(Ipv4Addr::new(10, 0, 0, 3))), 14);
    }

    #[test]
    fn golden_bytes_of_flow_state_and_of_option_not_supported() {
        // sections 6.4.2 (length 10) and 6.4.3 (length 11: the option's type)
        check_golden(&[3, 10, 2, 0, 10, 0, 0, 2, 10, 0, 0, 1], &error(0, What::FlowState), 10);
        check_golden(&[3, 11, 3, 0, 10, 0, 0, 2, 10, 0, 0, 1, 128], &error(0, What::OptionNotSupported(128)), 11);
    }

    #[test]
    fn extensions_after_the_unreachable_node_are_ignored() {
        // section 6.4: bytes after the type-specific information are an extension; none is defined
        let data = [1, 0, 10, 0, 0, 2, 10, 0, 0, 1, 10, 0, 0, 3, 7, 7];
        assert_eq!(RouteError::parse(&data).unwrap().what, What::NodeUnreachable(Ipv4Addr::new(10, 0, 0, 3)));
    }
}
