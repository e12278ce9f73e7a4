//! Options as text, for tests, logs and replays.

use super::{Opt, What};
use std::fmt;
use std::net::Ipv4Addr;

impl fmt::Display for Opt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Opt::Request(o) => {
                write!(f, "request {} for {} by [{}]", o.identification, o.target, list(&o.addresses))
            }
            Opt::Reply(o) => write!(f, "reply [{}]{}", list(&o.addresses), if o.last_external { " L" } else { "" }),
            Opt::Error(o) => {
                write!(f, "error of {} to {} salvage {}: ", o.source, o.destination, o.salvage)?;
                match &o.what {
                    What::NodeUnreachable(node) => write!(f, "{node} unreachable"),
                    What::FlowState => write!(f, "flow state not supported"),
                    What::OptionNotSupported(kind) => write!(f, "option {kind} not supported"),
                    What::Other(kind, _) => write!(f, "type {kind}"),
                }
            }
            Opt::AckRequest(o) => write!(f, "ack request {}", o.identification),
            Opt::Ack(o) => write!(f, "ack {} of {} to {}", o.identification, o.source, o.destination),
            Opt::SourceRoute(o) => {
                let (first, last) = (if o.first_external { " F" } else { "" }, if o.last_external { " L" } else { "" });
                write!(f, "route [{}] left {} salvage {}{first}{last}", list(&o.addresses), o.segments_left, o.salvage)
            }
            Opt::Unknown(o) => write!(f, "option {} of {} bytes", o.kind, o.data.len()),
        }
    }
}

fn list(addresses: &[Ipv4Addr]) -> String {
    addresses.iter().map(Ipv4Addr::to_string).collect::<Vec<_>>().join(" ")
}
