//! An IPv4 packet taken apart: IP header, DSR options, payload; and where its source route stands.

use crate::wire::{header::NO_NEXT, Header, Malformed, Opt, Reply, Request, SourceRoute};
use manet_routing::packet::ipv4::{self, protocol};
use manet_routing::Bytes;
use std::fmt;
use std::net::Ipv4Addr;

/// Hops of our own packets without payload; those of others keep theirs.
const CONTROL_TTL: u8 = 64;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Datagram {
    /// The IP header with its own options. Protocol, length and checksum are recomputed by [`Self::to_bytes`].
    ip: Vec<u8>,
    pub options: Vec<Opt>,
    /// IP protocol of the payload.
    next: u8,
    payload: Vec<u8>,
}

/// The nodes that a packet visits, in order, as far as they are neighbours of each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Walk {
    pub nodes: Vec<Ipv4Addr>,
    /// The first (last) node is outside the DSR network.
    pub first_external: bool,
    pub last_external: bool,
    /// Index of the node that sent the present frame, if the route shows it.
    pub transmitter: usize,
}

impl Datagram {
    /// The error is the reason under which the packet is counted.
    pub fn parse(bytes: &[u8]) -> Result<Self, &'static str> {
        let packet = ipv4::Packet::parse(bytes).ok_or("not-ip")?;
        let ip = packet.bytes()[..packet.header_len()].to_vec();
        if packet.protocol() != protocol::DSR {
            return Ok(Self { ip, options: Vec::new(), next: packet.protocol(), payload: packet.payload().to_vec() });
        }
        if packet.fragment_offset() != 0 || packet.more_fragments() {
            // RFC 4728, 8.5: a packet with a DSR header is not fragmented; its pieces would be in IP-in-IP
            return Err("fragment");
        }
        let (header, payload) = Header::parse(packet.payload()).map_err(Malformed::reason)?;
        if header.next == protocol::DSR {
            return Err("nested"); // one header a packet: without its options it would be read as another packet
        }
        let payload = payload.to_vec();
        let options = header.options;
        let routes = options.iter().filter(|o| matches!(o, Opt::SourceRoute(_))).count();
        let requests = options.iter().filter(|o| matches!(o, Opt::Request(_))).count();
        if routes + requests > 1 {
            // RFC 4728, 6.2 and 6.7: not more than once in a header; a request has no route
            return Err("repeated-option");
        }
        Ok(Self { ip, options, next: header.next, payload })
    }

    /// A packet of DSR options only.
    pub fn control(source: Ipv4Addr, destination: Ipv4Addr, identification: u16, options: Vec<Opt>) -> Self {
        let protocol = protocol::DSR;
        let header = ipv4::Repr {
            tos: 0,
            identification,
            dont_fragment: false,
            ttl: CONTROL_TTL,
            protocol,
            source,
            destination,
        };
        Self { ip: header.packet(&[]), options, next: NO_NEXT, payload: Vec::new() }
    }

    /// The packet as it travels: without options it needs no DSR header (RFC 4728, 8.1.1).
    pub fn to_bytes(&self) -> Bytes {
        let mut bytes = self.ip.clone();
        bytes[9] = self.next;
        if !self.options.is_empty() {
            bytes[9] = protocol::DSR;
            bytes.extend(Header { next: self.next, options: self.options.clone() }.to_vec());
        }
        bytes.extend(&self.payload);
        ipv4::repair(&mut bytes);
        Bytes(bytes)
    }

    /// The packet as its source's stack made it.
    pub fn plain(&self) -> Bytes {
        Self { options: Vec::new(), ..self.clone() }.to_bytes()
    }

    /// Carries nothing but DSR options.
    pub fn is_control(&self) -> bool {
        self.next == NO_NEXT && !self.options.is_empty()
    }

    pub fn source(&self) -> Ipv4Addr {
        Ipv4Addr::new(self.ip[12], self.ip[13], self.ip[14], self.ip[15])
    }
    pub fn destination(&self) -> Ipv4Addr {
        Ipv4Addr::new(self.ip[16], self.ip[17], self.ip[18], self.ip[19])
    }
    pub fn ttl(&self) -> u8 {
        self.ip[8]
    }
    pub fn set_ttl(&mut self, ttl: u8) {
        self.ip[8] = ttl;
    }
    /// IP protocol of the payload.
    pub fn next(&self) -> u8 {
        self.next
    }
    pub fn payload(&self) -> &[u8] {
        &self.payload
    }

    /// What tells a packet from another while it is forwarded (RFC 4728, 8.3.2): source, destination, identification,
    /// fragment offset and protocol.
    pub fn fingerprint(&self) -> (Ipv4Addr, Ipv4Addr, u16, u16, u8) {
        let be16 = |at: usize| u16::from_be_bytes([self.ip[at], self.ip[at + 1]]);
        (self.source(), self.destination(), be16(4), be16(6) & 0x1fff, self.next)
    }

    pub fn source_route(&self) -> Option<&SourceRoute> {
        self.options.iter().find_map(|o| if let Opt::SourceRoute(route) = o { Some(route) } else { None })
    }
    pub fn source_route_mut(&mut self) -> Option<&mut SourceRoute> {
        self.options.iter_mut().find_map(|o| if let Opt::SourceRoute(route) = o { Some(route) } else { None })
    }
    pub fn request(&self) -> Option<&Request> {
        self.options.iter().find_map(|o| if let Opt::Request(request) = o { Some(request) } else { None })
    }
    pub fn replies(&self) -> impl Iterator<Item = &Reply> {
        self.options.iter().filter_map(|o| if let Opt::Reply(reply) = o { Some(reply) } else { None })
    }

    /// Takes out what belongs to one way through the network: source route and acknowledgement request.
    pub fn unroute(&mut self) {
        self.options.retain(|o| !matches!(o, Opt::SourceRoute(_) | Opt::AckRequest(_)));
    }

    pub fn salvage(&self) -> u8 {
        self.source_route().map_or(0, |route| route.salvage)
    }

    /// Who gave the packet its route (RFC 4728, 8.3.4): a Route Error goes there.
    pub fn origin(&self) -> Ipv4Addr {
        match self.source_route() {
            Some(route) if route.salvage > 0 || route.first_external => {
                route.addresses.first().copied().unwrap_or(self.source())
            }
            _ => self.source(),
        }
    }

    /// Who is to receive the frame with the packet as it stands; `None`: the source route contradicts itself.
    pub fn next_hop(&self) -> Option<Ipv4Addr> {
        let Some(route) = self.source_route() else { return Some(self.destination()) };
        Some(route.addresses.get(route.visited()?).copied().unwrap_or(self.destination()))
    }

    /// The hops between the packet's origin and `own`, who sends it on, backwards: from our predecessor to the origin.
    pub fn way_back(&self, own: Ipv4Addr) -> Vec<Ipv4Addr> {
        let Some(walk) = self.walk() else { return Vec::new() };
        let Some(at) = walk.nodes.iter().position(|n| *n == own) else { return Vec::new() };
        walk.nodes[..at].iter().rev().copied().collect()
    }

    /// Whether the source route, if there is one, can be: it does not contradict itself and visits nobody twice (3.1).
    pub fn is_sound(&self) -> bool {
        let repeats = |nodes: &[Ipv4Addr]| (1..nodes.len()).any(|i| nodes[..i].contains(&nodes[i]));
        self.request().is_some() || self.walk().is_some_and(|walk| !repeats(&walk.nodes))
    }

    /// `None` if the route contradicts itself, for a request, and for a route that starts nowhere.
    pub fn walk(&self) -> Option<Walk> {
        if self.request().is_some() {
            return None;
        }
        let Some(route) = self.source_route() else {
            let nodes = vec![self.source(), self.destination()];
            return Some(Walk { nodes, first_external: false, last_external: false, transmitter: 0 });
        };
        let visited = route.visited()?;
        let mut nodes = Vec::with_capacity(route.addresses.len() + 2);
        // after a salvage address 1 is the salvaging node, and no neighbour of the source
        if route.salvage == 0 {
            nodes.push(self.source());
        }
        nodes.extend(&route.addresses);
        nodes.push(self.destination());
        let transmitter = if route.salvage == 0 { visited } else { visited.checked_sub(1)? };
        let first_external = route.salvage == 0 && route.first_external;
        if first_external && visited == 0 {
            return None;
        }
        Some(Walk { nodes, first_external, last_external: route.last_external, transmitter })
    }
}

/// As tcpdump would say it.
impl fmt::Display for Datagram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} > {} ttl {}", self.source(), self.destination(), self.ttl())?;
        for option in &self.options {
            write!(f, ", {option}")?;
        }
        if self.next != NO_NEXT {
            write!(f, ", protocol {} of {} bytes", self.next, self.payload.len())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use manet_routing::packet::checksum;

    const fn ip(d: u8) -> Ipv4Addr {
        Ipv4Addr::new(10, 0, 0, d)
    }

    fn udp(source: u8, destination: u8) -> Vec<u8> {
        let (source, destination) = (ip(source), ip(destination));
        let header = ipv4::Repr {
            tos: 0,
            identification: 9,
            dont_fragment: true,
            ttl: 64,
            protocol: protocol::UDP,
            source,
            destination,
        };
        header.packet(b"payload")
    }

    fn route(salvage: u8, segments_left: u8, hops: &[u8]) -> Opt {
        let addresses = hops.iter().map(|d| ip(*d)).collect();
        Opt::SourceRoute(SourceRoute { first_external: false, last_external: false, salvage, segments_left, addresses })
    }

    #[test]
    fn a_source_route_comes_between_header_and_payload_and_goes_again() {
        let plain = udp(1, 4);
        let mut packet = Datagram::parse(&plain).unwrap();
        packet.options.push(route(0, 2, &[2, 3]));
        let bytes = packet.to_bytes();
        // 20 of IP, 4 of DSR, 4 + 4 x 2 of source route, 7 of payload
        assert_eq!((bytes.len(), bytes[9], checksum(&bytes[..20])), (20 + 4 + 12 + 7, 48, 0));
        let again = Datagram::parse(&bytes).unwrap();
        assert_eq!((again.next(), again.plain().0), (protocol::UDP, plain));
    }

    #[test]
    fn the_walk_names_who_sends_and_who_receives() {
        let mut packet = Datagram::parse(&udp(1, 4)).unwrap();
        packet.options.push(route(0, 1, &[2, 3]));
        let walk = packet.walk().unwrap();
        assert_eq!((walk.nodes, walk.transmitter), (vec![ip(1), ip(2), ip(3), ip(4)], 1));
        assert_eq!((packet.next_hop(), packet.way_back(ip(3))), (Some(ip(3)), vec![ip(2), ip(1)]));
    }

    #[test]
    fn a_salvaged_packet_walks_from_who_salvaged_it() {
        // RFC 4728, 8.3.6: address 1 is the salvaging node 7; it sends to 8, two of three hops listed, one left
        let mut packet = Datagram::parse(&udp(1, 4)).unwrap();
        packet.options.push(route(1, 1, &[7, 8]));
        let walk = packet.walk().unwrap();
        assert_eq!((walk.nodes, walk.transmitter), (vec![ip(7), ip(8), ip(4)], 0));
        assert_eq!((packet.origin(), packet.next_hop()), (ip(7), Some(ip(8))));
    }

    #[test]
    fn a_route_with_more_segments_left_than_hops_leads_nowhere() {
        let mut packet = Datagram::parse(&udp(1, 4)).unwrap();
        packet.options.push(route(0, 3, &[2, 3]));
        assert_eq!((packet.walk(), packet.next_hop()), (None, None));
    }

    #[test]
    fn a_header_behind_a_header_is_refused() {
        // found by the fuzz target dsr_header: 48 behind 48, no options
        let (source, destination) = (ip(1), ip(2));
        let header = ipv4::Repr {
            tos: 0,
            identification: 1,
            dont_fragment: false,
            ttl: 9,
            protocol: protocol::DSR,
            source,
            destination,
        };
        assert_eq!(Datagram::parse(&header.packet(&[48, 0, 0, 0, 17, 0, 0, 0])), Err("nested"));
    }

    #[test]
    fn two_source_routes_are_refused() {
        let mut packet = Datagram::parse(&udp(1, 4)).unwrap();
        packet.options.extend([route(0, 1, &[2]), route(0, 1, &[3])]);
        assert_eq!(Datagram::parse(&packet.to_bytes()), Err("repeated-option"));
    }
}
