//! Packets as text, one message after the other:
//! `#9; HELLO of 10.0.0.1 #7 ttl 1 hops 0 for 6 s: next 2 s, willingness 3, symmetric mpr 10.0.0.2`

use super::hello::NeighbourType;
use super::{hna, message, Hello, Hna, Message, Mid, Packet, Tc};
use std::fmt::{self, Display, Formatter};
use std::net::Ipv4Addr;

impl Display for Packet {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "#{}", self.sequence)?;
        self.messages.iter().try_for_each(|message| write!(f, "; {message}"))
    }
}

impl Display for Message {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let name = match self.kind {
            message::HELLO => "HELLO".to_owned(),
            message::TC => "TC".to_owned(),
            message::MID => "MID".to_owned(),
            message::HNA => "HNA".to_owned(),
            other => format!("type {other}"),
        };
        let (of, sequence, ttl, hops) = (self.originator, self.sequence, self.ttl, self.hops);
        let validity = self.validity.seconds();
        write!(f, "{name} of {of} #{sequence} ttl {ttl} hops {hops} for {validity} s: {}", self.body_text())
    }
}

impl Message {
    fn body_text(&self) -> String {
        let text = match self.kind {
            message::HELLO => Hello::parse(&self.body).map(|m| m.to_string()),
            message::TC => Tc::parse(&self.body).map(|m| m.to_string()),
            message::MID => Mid::parse(&self.body).map(|m| list(&m.interfaces)),
            message::HNA => Hna::parse(&self.body).map(|m| m.to_string()),
            _ => Ok(format!("{} bytes", self.body.len())),
        };
        text.unwrap_or_else(|_| "malformed".to_owned())
    }
}

impl Display for Hello {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "next {} s, willingness {}", self.interval.seconds(), self.willingness)?;
        for block in &self.blocks {
            let Some((link, neighbour)) = block.types() else {
                write!(f, ", code {} {}", block.code, list(&block.addresses))?;
                continue;
            };
            let neighbour = match neighbour {
                NeighbourType::Not => "",
                NeighbourType::Symmetric => " neighbour",
                NeighbourType::Mpr => " mpr",
            };
            write!(f, ", {}{neighbour} {}", link.name(), list(&block.addresses))?;
        }
        Ok(())
    }
}

impl Display for Tc {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "ansn {}, {}", self.ansn, list(&self.neighbours))
    }
}

impl Display for Hna {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let text = |(network, mask): &(Ipv4Addr, Ipv4Addr)| match hna::prefix(*mask) {
            Some(prefix) => format!("{network}/{prefix}"),
            None => format!("{network} mask {mask}"),
        };
        f.write_str(&self.networks.iter().map(text).collect::<Vec<_>>().join(" "))
    }
}

fn list(addresses: &[Ipv4Addr]) -> String {
    if addresses.is_empty() {
        return "nobody".to_owned();
    }
    addresses.iter().map(Ipv4Addr::to_string).collect::<Vec<_>>().join(" ")
}
