//! An IPv4 packet in parts: IP header, DSR options, payload; and its progress on its source route.

use crate::wire::{header::NO_NEXT, Header, Malformed, Opt, Reply, Request, SourceRoute};
use manet_routing::packet::ipv4::{self, protocol};
use manet_routing::Bytes;
use std::fmt;
use std::net::Ipv4Addr;

/// TTL of our own packets without payload.
const CONTROL_TTL: u8 = 64;

/// An IPv4 packet with or without a DSR header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Datagram {
    /// The IP header with its own options. Protocol, length and checksum are recomputed by [`Self::to_bytes`].
    ip: Vec<u8>,
    /// DSR options in their order; empty: no DSR header.
    pub options: Vec<Opt>,
    /// IP protocol of the payload.
    next: u8,
    payload: Vec<u8>,
}

/// The nodes of a packet's path, in order; consecutive nodes are neighbours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Walk {
    /// Addresses from the source, or the salvaging node, to the destination.
    pub nodes: Vec<Ipv4Addr>,
    /// Whether the first node is outside the DSR network.
    pub first_external: bool,
    /// Whether the last node is outside the DSR network.
    pub last_external: bool,
    /// Index of the node that sent the present frame.
    pub transmitter: usize,
}

impl Datagram {
    /// Parses a packet, from its IPv4 header on. The error is the name of its counter.
    pub fn parse(bytes: &[u8]) -> Result<Self, &'static str> {
        let packet = ipv4::Packet::parse(bytes).ok_or("not-ip")?;
        let ip = packet.bytes()[..packet.header_len()].to_vec();
        if packet.protocol() != protocol::DSR {
            return Ok(Self { ip, options: Vec::new(), next: packet.protocol(), payload: packet.payload().to_vec() });
        }
        if packet.fragment_offset() != 0 || packet.more_fragments() {
            // RFC 4728, 8.5: a packet with a DSR header is not fragmented; its fragments travel in IP-in-IP
            return Err("fragment");
        }
        let (header, payload) = Header::parse(packet.payload()).map_err(Malformed::reason)?;
        if header.next == protocol::DSR {
            return Err("nested"); // one header per packet: without its options the packet would parse differently
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

    /// A packet with DSR options and without payload.
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

    /// The bytes on the air: without options there is no DSR header (RFC 4728, 8.1.1).
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

    /// The bytes without DSR header, as the source's stack sent them.
    pub fn plain(&self) -> Bytes {
        Self { options: Vec::new(), ..self.clone() }.to_bytes()
    }

    /// Whether the packet has more than DSR options.
    pub fn has_payload(&self) -> bool {
        self.next != NO_NEXT || self.options.is_empty()
    }

    /// Whether the packet is DSR's own: only options, or a Route Error with its notice ([`Self::put_notice`]).
    pub fn is_control(&self) -> bool {
        let is_error = |o: &Opt| matches!(o, Opt::Error(_));
        !self.has_payload() || self.next == protocol::ICMP && self.options.iter().any(is_error)
    }

    /// Takes the payload of an ICMP message (RFC 4728, section 6.1: the header may precede any).
    pub fn put_notice(&mut self, message: &ipv4::Packet) {
        self.next = message.protocol();
        self.payload = message.payload().to_vec();
    }

    /// IP source.
    pub fn source(&self) -> Ipv4Addr {
        Ipv4Addr::new(self.ip[12], self.ip[13], self.ip[14], self.ip[15])
    }
    /// IP destination.
    pub fn destination(&self) -> Ipv4Addr {
        Ipv4Addr::new(self.ip[16], self.ip[17], self.ip[18], self.ip[19])
    }
    /// IP TTL.
    pub fn ttl(&self) -> u8 {
        self.ip[8]
    }
    /// Sets the IP TTL.
    pub fn set_ttl(&mut self, ttl: u8) {
        self.ip[8] = ttl;
    }
    /// IP protocol of the payload.
    pub fn next(&self) -> u8 {
        self.next
    }
    /// Bytes after IP header and DSR header.
    pub fn payload(&self) -> &[u8] {
        &self.payload
    }

    /// The fields that identify a packet while it is forwarded (RFC 4728, 8.3.2): source, destination, identification,
    /// fragment offset in units of 8 bytes, and protocol.
    pub fn fingerprint(&self) -> (Ipv4Addr, Ipv4Addr, u16, u16, u8) {
        let be16 = |at: usize| u16::from_be_bytes([self.ip[at], self.ip[at + 1]]);
        (self.source(), self.destination(), be16(4), be16(6) & 0x1fff, self.next)
    }

    /// The source route option.
    pub fn source_route(&self) -> Option<&SourceRoute> {
        self.options.iter().find_map(|o| if let Opt::SourceRoute(route) = o { Some(route) } else { None })
    }
    /// The source route option, for changes.
    pub fn source_route_mut(&mut self) -> Option<&mut SourceRoute> {
        self.options.iter_mut().find_map(|o| if let Opt::SourceRoute(route) = o { Some(route) } else { None })
    }
    /// The route request option.
    pub fn request(&self) -> Option<&Request> {
        self.options.iter().find_map(|o| if let Opt::Request(request) = o { Some(request) } else { None })
    }
    /// All route reply options.
    pub fn replies(&self) -> impl Iterator<Item = &Reply> {
        self.options.iter().filter_map(|o| if let Opt::Reply(reply) = o { Some(reply) } else { None })
    }

    /// Removes the options that belong to one path: source route and acknowledgement request.
    pub fn unroute(&mut self) {
        self.options.retain(|o| !matches!(o, Opt::SourceRoute(_) | Opt::AckRequest(_)));
    }

    /// Salvage count of the source route; 0 without one.
    pub fn salvage(&self) -> u8 {
        self.source_route().map_or(0, |route| route.salvage)
    }

    /// The node that gave the packet its route, to which Route Errors are sent (RFC 4728, 8.3.4).
    pub fn origin(&self) -> Ipv4Addr {
        match self.source_route() {
            Some(route) if route.salvage > 0 || route.first_external => {
                route.addresses.first().copied().unwrap_or(self.source())
            }
            _ => self.source(),
        }
    }

    /// Receiver of the next frame with the packet; `None`: the source route is inconsistent.
    pub fn next_hop(&self) -> Option<Ipv4Addr> {
        let Some(route) = self.source_route() else { return Some(self.destination()) };
        Some(route.addresses.get(route.visited()?).copied().unwrap_or(self.destination()))
    }

    /// The hops from `own`, a node on the route, back to the packet's origin: the predecessor first, the origin last.
    pub fn return_path(&self, own: Ipv4Addr) -> Vec<Ipv4Addr> {
        let Some(walk) = self.walk() else { return Vec::new() };
        let Some(at) = walk.nodes.iter().position(|n| *n == own) else { return Vec::new() };
        walk.nodes[..at].iter().rev().copied().collect()
    }

    /// Whether the source route, if there is one, is consistent and visits no node twice (RFC 4728, 3.1).
    pub fn is_sound(&self) -> bool {
        let repeats = |nodes: &[Ipv4Addr]| (1..nodes.len()).any(|i| nodes[..i].contains(&nodes[i]));
        self.request().is_some() || self.walk().is_some_and(|walk| !repeats(&walk.nodes))
    }

    /// The packet's path. `None` for a request and for an inconsistent route.
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
        // after a salvage address 1 is the salvaging node, which need not be a neighbour of the source
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

/// In the style of tcpdump.
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
    use manet_routing::trial::{ip, packet_of};

    fn udp(source: usize, destination: usize) -> Vec<u8> {
        packet_of(protocol::UDP, ip(source), ip(destination), 9, b"payload").0
    }

    fn route(salvage: u8, segments_left: u8, hops: &[usize]) -> Opt {
        Opt::SourceRoute(SourceRoute::internal(salvage, segments_left, hops.iter().map(|n| ip(*n)).collect()))
    }

    #[test]
    fn a_source_route_is_inserted_after_the_ip_header_and_removed() {
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
    fn the_walk_has_transmitter_and_receiver() {
        let mut packet = Datagram::parse(&udp(1, 4)).unwrap();
        packet.options.push(route(0, 1, &[2, 3]));
        let walk = packet.walk().unwrap();
        assert_eq!((walk.nodes, walk.transmitter), (vec![ip(1), ip(2), ip(3), ip(4)], 1));
        assert_eq!((packet.next_hop(), packet.return_path(ip(3))), (Some(ip(3)), vec![ip(2), ip(1)]));
    }

    #[test]
    fn the_walk_of_a_salvaged_packet_begins_at_the_salvaging_node() {
        // RFC 4728, 8.3.6: address 1 is the salvaging node 7; it sends to 8, two of three hops listed, one left
        let mut packet = Datagram::parse(&udp(1, 4)).unwrap();
        packet.options.push(route(1, 1, &[7, 8]));
        let walk = packet.walk().unwrap();
        assert_eq!((walk.nodes, walk.transmitter), (vec![ip(7), ip(8), ip(4)], 0));
        assert_eq!((packet.origin(), packet.next_hop()), (ip(7), Some(ip(8))));
    }

    #[test]
    fn a_route_with_more_segments_left_than_hops_has_no_next_hop() {
        let mut packet = Datagram::parse(&udp(1, 4)).unwrap();
        packet.options.push(route(0, 3, &[2, 3]));
        assert_eq!((packet.walk(), packet.next_hop()), (None, None));
    }

    #[test]
    fn a_header_behind_a_header_is_refused() {
        // found by the fuzz target dsr_header: 48 behind 48, no options
        let packet = packet_of(protocol::DSR, ip(1), ip(2), 1, &[48, 0, 0, 0, 17, 0, 0, 0]);
        assert_eq!(Datagram::parse(&packet), Err("nested"));
    }

    #[test]
    fn two_source_routes_are_refused() {
        let mut packet = Datagram::parse(&udp(1, 4)).unwrap();
        packet.options.extend([route(0, 1, &[2]), route(0, 1, &[3])]);
        assert_eq!(Datagram::parse(&packet.to_bytes()), Err("repeated-option"));
    }
}
