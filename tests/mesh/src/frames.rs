//! The bytes on the air: IPv4 in Ethernet II, UDP (RFC 768) for control datagrams and data.
//!
//! The UDP checksum is 0 (none, RFC 768): nothing here corrupts bytes.

use manet_medium::wire::ethernet;
use manet_routing::packet::ipv4;
use manet_routing::{Carrier, Mac};
use std::net::Ipv4Addr;

/// Length of a UDP header, bytes.
pub const UDP_HEADER_LEN: usize = 8;
/// UDP port of the data; the only listeners are the sinks.
pub const DATA_PORT: u16 = 9000;
/// RFC 4728, section 6.1: nothing follows the options.
const NO_NEXT_HEADER: u8 = 59;

/// A UDP datagram.
pub struct Datagram<'a> {
    /// Destination port.
    pub port: u16,
    /// Bytes after the UDP header.
    pub payload: &'a [u8],
}

/// The UDP datagram in a packet; `None`: not UDP, a later fragment, or truncated.
pub fn datagram<'a>(packet: &ipv4::Packet<'a>) -> Option<Datagram<'a>> {
    let udp = packet.payload();
    if packet.protocol() != ipv4::protocol::UDP || packet.fragment_offset() != 0 || udp.len() < UDP_HEADER_LEN {
        return None;
    }
    let length = usize::from(u16::from_be_bytes([udp[4], udp[5]]));
    let payload = udp.get(UDP_HEADER_LEN..length)?;
    Some(Datagram { port: u16::from_be_bytes([udp[2], udp[3]]), payload })
}

/// The bytes of an IPv4 packet with the header `header` and a UDP datagram from and to `port`.
pub fn udp(header: ipv4::Repr, port: u16, payload: &[u8]) -> Vec<u8> {
    let mut datagram = Vec::with_capacity(UDP_HEADER_LEN + payload.len());
    datagram.extend(port.to_be_bytes());
    datagram.extend(port.to_be_bytes());
    datagram.extend(((UDP_HEADER_LEN + payload.len()) as u16).to_be_bytes());
    datagram.extend([0, 0]);
    datagram.extend(payload);
    header.packet(&datagram)
}

/// The bytes of an Ethernet frame with an IPv4 packet.
pub fn ethernet(from: Mac, to: Mac, packet: &[u8]) -> Vec<u8> {
    frame(from, to, ethernet::TYPE_IPV4, packet)
}

/// The bytes of an Ethernet frame with an ARP message.
pub fn arp(from: Mac, to: Mac, message: &[u8]) -> Vec<u8> {
    frame(from, to, ethernet::TYPE_ARP, message)
}

fn frame(from: Mac, to: Mac, ethertype: u16, packet: &[u8]) -> Vec<u8> {
    let mut frame = vec![0; ethernet::HEADER_LEN];
    ethernet::Repr { destination: to, source: from, ethertype }.emit(&mut frame);
    frame.extend(packet);
    frame
}

/// Source, destination and the IPv4 packet of a frame, without padding. `None`: something else.
pub fn open(frame: &[u8]) -> Option<(Mac, Mac, ipv4::Packet<'_>)> {
    let header = ethernet::Repr::parse(frame).ok().filter(|h| h.ethertype == ethernet::TYPE_IPV4)?;
    Some((header.source, header.destination, ipv4::Packet::parse(&frame[ethernet::HEADER_LEN..])?))
}

/// Source and ARP message of a frame, with padding. `None`: something else.
pub fn open_arp(frame: &[u8]) -> Option<(Mac, &[u8])> {
    let header = ethernet::Repr::parse(frame).ok().filter(|h| h.ethertype == ethernet::TYPE_ARP)?;
    Some((header.source, &frame[ethernet::HEADER_LEN..]))
}

/// Class of a packet on the air in the tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A packet of the routing protocol.
    Control,
    /// A data packet.
    Data {
        /// Bytes that the routing protocol added (DSR's header).
        added: usize,
    },
    /// An ICMP message.
    Icmp,
}

/// Class of a packet of a protocol with this carrier.
pub fn kind(packet: &ipv4::Packet, carrier: Carrier) -> Kind {
    match (carrier, packet.protocol()) {
        (_, ipv4::protocol::ICMP) => Kind::Icmp,
        (Carrier::Udp(port), ipv4::protocol::UDP) if datagram(packet).is_some_and(|d| d.port == port) => Kind::Control,
        (Carrier::Frames, ipv4::protocol::DSR) => match packet.payload() {
            [NO_NEXT_HEADER, ..] => Kind::Control,
            // RFC 4728, section 6.1: four fixed bytes, then as many as the length says
            [_, _, a, b, ..] => Kind::Data { added: 4 + usize::from(u16::from_be_bytes([*a, *b])) },
            _ => Kind::Control,
        },
        _ => Kind::Data { added: 0 },
    }
}

/// The nodes that the source route of a DSR packet names, in order, the destination last; the source first unless the
/// route was replaced on the way (RFC 4728, 6.7 and 8.3.6: salvage above 0). `None`: no source route.
pub fn source_route(packet: &ipv4::Packet) -> Option<Vec<Ipv4Addr>> {
    const SOURCE_ROUTE: u8 = 96;
    const PAD_1: u8 = 224;
    if packet.protocol() != ipv4::protocol::DSR {
        return None;
    }
    let payload = packet.payload();
    let length = usize::from(u16::from_be_bytes([*payload.get(2)?, *payload.get(3)?]));
    let mut options = payload.get(4..4 + length)?;
    while let [kind, rest @ ..] = options {
        if *kind == PAD_1 {
            options = rest;
            continue;
        }
        let (length, rest) = rest.split_first()?;
        let data = rest.get(..usize::from(*length))?;
        if *kind == SOURCE_ROUTE {
            let flags = u16::from_be_bytes([*data.first()?, *data.get(1)?]);
            let salvaged = flags >> 6 & 0xf > 0;
            let through = data[2..].chunks_exact(4).map(|a| Ipv4Addr::new(a[0], a[1], a[2], a[3]));
            let mut path: Vec<Ipv4Addr> = if salvaged { vec![] } else { vec![packet.source()] };
            path.extend(through);
            path.push(packet.destination());
            return Some(path);
        }
        options = &rest[usize::from(*length)..];
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
    const B: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);

    fn header(protocol: u8) -> ipv4::Repr {
        ipv4::Repr { tos: 0, identification: 0, dont_fragment: true, ttl: 9, protocol, source: A, destination: B }
    }

    #[test]
    fn a_datagram_is_read_back_from_its_frame() {
        let packet = udp(header(ipv4::protocol::UDP), 654, b"abc");
        let mut frame = ethernet([2; 6], [4; 6], &packet);
        frame.extend([0; 9]); // padding
        let (from, to, packet) = open(&frame).unwrap();
        assert_eq!((from, to), ([2; 6], [4; 6]));
        let udp = datagram(&packet).unwrap();
        assert_eq!((udp.port, udp.payload), (654, b"abc".as_slice()));
        assert_eq!(kind(&packet, Carrier::Udp(654)), Kind::Control);
        assert_eq!(kind(&packet, Carrier::Udp(269)), Kind::Data { added: 0 });
    }

    /// RFC 4728, 6.7: type 96, length 2 + 4n, F L reserved(4) salvage(4) segments left(6), addresses.
    fn dsr(salvage: u8) -> Vec<u8> {
        let flags = (u16::from(salvage) << 6 | 1).to_be_bytes();
        let option = [96, 6, flags[0], flags[1], 10, 0, 0, 7];
        let mut payload = vec![17, 0, 0, 9, 224];
        payload.extend(option);
        payload.extend(b"data");
        header(ipv4::protocol::DSR).packet(&payload)
    }

    #[test]
    fn a_source_route_is_read_with_its_ends() {
        let seven = Ipv4Addr::new(10, 0, 0, 7);
        let fresh = dsr(0);
        let fresh = ipv4::Packet::parse(&fresh).unwrap();
        assert_eq!(source_route(&fresh), Some(vec![A, seven, B]));
        assert_eq!(kind(&fresh, Carrier::Frames), Kind::Data { added: 13 });
        let salvaged = dsr(1);
        assert_eq!(source_route(&ipv4::Packet::parse(&salvaged).unwrap()), Some(vec![seven, B]));
    }
}
