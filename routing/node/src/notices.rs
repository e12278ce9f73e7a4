//! The sources that were notified that their TCP packets wait here: one notice per breakage, not one per packet.
//!
//! Off unless CONFIG has `"notices": true`, or the protocol calls [`Notices::or_unreachable`]. Two layers of
//! kernel-tcp/layers/ use notices: TCP-F for its route failure and re-establishment notifications (Chandran et al., 1998,
//! section 3), TCP-BuS for its pivoting node, which buffers (Kim, Toh, Choi, 2001, section III). Departure: both papers
//! use control packets of the routing protocol; here the notice is an ICMP message ([`Notice`]), which any protocol can
//! send. In TCP-BuS the two ends of the repaired path exchange lists of waiting and of received packets, so that the
//! source retransmits the missing ones; here `restored` lists the packets that waited, and the source learns from the
//! acknowledgements which packets arrived.
//!
//! A machine calls [`Notices::held`] for each packet that it puts into [`crate::Held`], and [`Notices::released`] or
//! [`Notices::dropped`] for each packet that it removes.

use crate::packet::icmp::{Notice, Range, MAX_RANGES};
use crate::packet::ipv4::{self, protocol};
use crate::{Bytes, Node, Output};
use manet_engine::{Duration, Instant};
use std::collections::{BTreeMap, VecDeque};
use std::net::Ipv4Addr;

/// Connections that are remembered at a time: as many as packets are held by default.
const MAX_CONNECTIONS: usize = 64;
/// Notices of waiting packets in any second. A `restored` follows a `held`, so that it needs no limit of its own.
const PER_SECOND: usize = 10;
/// RFC 2004, section 3.1: bit 7 of the second byte shows that the original source follows, four bytes.
const SOURCE_FOLLOWS: u8 = 0x80;
/// RFC 9293, section 3.1.
const FIN: u8 = 1;

/// A TCP connection as its packets name it: source, destination, ports.
type Connection = (Ipv4Addr, Ipv4Addr, [u8; 4]);

#[derive(Clone, Debug, Default)]
struct Waiting {
    /// The sequence numbers of each packet's data; empty if it has none or they are not readable.
    packets: Vec<Range>,
    notified: bool,
}

/// The notices that sources of waiting packets get.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Nothing,
    /// [`Notice::Unreachable`] for the first waiting packet, for TCPs that understand no other notice.
    Unreachable,
    /// [`Notice::Held`], [`Notice::Restored`].
    Holding,
}

/// Bookkeeping of waiting TCP packets: decides for each whether its source gets a notice.
#[derive(Clone, Debug)]
pub struct Notices {
    kind: Kind,
    node: Node,
    waiting: BTreeMap<Connection, Waiting>,
    /// Times of the notices of the last second, oldest first.
    notified: VecDeque<Instant>,
}

impl Notices {
    /// `room`: packets that the node can hold; 0 switches notices off.
    pub fn new(node: &Node, room: usize) -> Self {
        let kind = if node.notices && room > 0 { Kind::Holding } else { Kind::Nothing };
        Self { kind, node: node.clone(), waiting: BTreeMap::new(), notified: VecDeque::new() }
    }

    /// If `wanted` and notices are off, the node sends host unreachable for held packets, once per connection and breakage.
    pub fn or_unreachable(mut self, wanted: bool) -> Self {
        if wanted && self.kind == Kind::Nothing {
            self.kind = Kind::Unreachable;
        }
        self
    }

    /// Whether the node holds packets and sends notices of them.
    pub fn is_on(&self) -> bool {
        self.kind == Kind::Holding
    }

    /// Whether the packet waits here if its route breaks: TCP of another station, with readable ports.
    pub fn concerns(&self, packet: &[u8]) -> bool {
        self.is_on() && self.segment(packet).is_some()
    }

    /// Records that the packet waits here. Returns the notice to send, if one is due.
    pub fn held(&mut self, now: Instant, packet: &Bytes) -> Option<Notice> {
        let (connection, data) = self.segment(packet)?;
        if self.waiting.len() >= MAX_CONNECTIONS && !self.waiting.contains_key(&connection) {
            return None;
        }
        let notified = self.waiting.get(&connection).is_some_and(|w| w.notified);
        let notify = !notified && self.may_notify(now);
        let waiting = self.waiting.entry(connection).or_default();
        waiting.packets.push(data);
        waiting.notified |= notify;
        notify.then_some(if self.is_on() { Notice::Held } else { Notice::Unreachable })
    }

    /// Records that the packet leaves by a new route. The oldest packet of a notified connection returns the notice to
    /// send, which lists all packets of the connection that waited.
    pub fn released(&mut self, packet: &Bytes) -> Option<Notice> {
        let (connection, data) = self.segment(packet)?;
        let waiting = self.waiting.remove(&connection)?;
        (waiting.notified && self.is_on()).then(|| Notice::Restored(joined(data, waiting.packets)))
    }

    /// Records that the waiting packet was dropped.
    pub fn dropped(&mut self, packet: &Bytes) {
        let Some((connection, data)) = self.segment(packet) else { return };
        let Some(waiting) = self.waiting.get_mut(&connection) else { return };
        if let Some(oldest) = waiting.packets.iter().position(|d| *d == data) {
            waiting.packets.remove(oldest);
        }
        if waiting.packets.is_empty() {
            self.waiting.remove(&connection);
        }
    }

    /// The notice `kind` about `packet` as an output of design A.
    pub fn output(kind: Notice, packet: &Bytes) -> Output {
        Output::Notice { kind, bytes: packet.clone() }
    }

    fn may_notify(&mut self, now: Instant) -> bool {
        let second = Duration::from_secs(1);
        while self.notified.front().is_some_and(|at| *at + second <= now) {
            self.notified.pop_front();
        }
        let room = self.notified.len() < PER_SECOND;
        if room {
            self.notified.push_back(now);
        }
        room
    }

    fn segment(&self, bytes: &[u8]) -> Option<(Connection, Range)> {
        let packet = ipv4::Packet::parse(bytes).filter(|p| self.kind != Kind::Nothing && p.fragment_offset() == 0)?;
        let source = packet.source();
        if source == self.node.address || !self.node.in_network(source) {
            return None;
        }
        let tcp = tcp(&packet)?;
        let ports = tcp.get(..4)?.try_into().ok()?;
        Some(((source, packet.destination(), ports), data(tcp).unwrap_or_default()))
    }
}

/// The TCP segment of a packet, also of a half-tunnelled one (minimal encapsulation).
fn tcp<'a>(packet: &ipv4::Packet<'a>) -> Option<&'a [u8]> {
    let payload = packet.payload();
    match packet.protocol() {
        protocol::TCP => Some(payload),
        protocol::MINIMAL => {
            let inner = if payload.get(1)? & SOURCE_FOLLOWS == 0 { 8 } else { 12 };
            payload.get(inner..).filter(|_| payload[0] == protocol::TCP)
        }
        _ => None,
    }
}

/// The sequence numbers of a segment's data and FIN (RFC 9293, section 3.1). A SYN has none: it is not data to retransmit.
fn data(tcp: &[u8]) -> Option<Range> {
    let first = u32::from_be_bytes(tcp.get(4..8)?.try_into().ok()?);
    let header = usize::from(tcp.get(12)? >> 4) * 4;
    let bytes = tcp.len().checked_sub(header.max(20))?;
    let fin = u32::from(tcp[13] & FIN);
    Some((first, first.wrapping_add(u32::try_from(bytes).ok()?).wrapping_add(fin)))
}

/// Sorts the ranges by sequence number (modulo 2^32), merges those that touch, drops empty ones and keeps as many as fit
/// into a notice. `near`: one of the ranges.
fn joined(near: Range, ranges: Vec<Range>) -> Vec<Range> {
    // all of a window is within half the number space of `near` (RFC 9293, section 3.4)
    let place = |number: u32| number.wrapping_sub(near.0) as i32;
    let mut ranges: Vec<Range> = ranges.into_iter().filter(|(first, end)| first != end).collect();
    ranges.sort_by_key(|(first, _)| place(*first));
    let mut joined: Vec<Range> = Vec::new();
    for (first, end) in ranges {
        match joined.last_mut().filter(|last| place(first) <= place(last.1)) {
            Some(last) if place(end) > place(last.1) => last.1 = end,
            Some(_) => {}
            None => joined.push((first, end)),
        }
    }
    joined.truncate(MAX_RANGES);
    joined
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const US: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);

    fn notices(notices: bool) -> Notices {
        let (network, mac) = ((Ipv4Addr::new(10, 0, 0, 0), 8), [2, 0, 0, 0, 0, 2]);
        let (wires, mtu, seed, feedback, restarted) = (Vec::new(), 1500, 1, true, false);
        Notices::new(&Node { wires, mtu, seed, feedback, restarted, notices, ..Node::new(2, US, network, mac) }, 64)
    }

    fn packet(protocol: u8, source: Ipv4Addr, payload: &[u8]) -> Bytes {
        let destination = Ipv4Addr::new(10, 0, 0, 9);
        let header =
            ipv4::Repr { tos: 0, identification: 1, dont_fragment: true, ttl: 9, protocol, source, destination };
        Bytes(header.packet(payload))
    }

    /// The notice about packets that are cut before their data.
    const RESTORED: Notice = Notice::Restored(Vec::new());

    /// From station 1, `bytes` of data from number `first` on.
    fn segment(first: u32, bytes: usize, flags: u8) -> Bytes {
        let mut tcp = vec![0, 1, 0, 80];
        tcp.extend(first.to_be_bytes());
        tcp.extend([0, 0, 0, 0, 5 << 4, flags, 0, 0, 0, 0, 0, 0]);
        tcp.resize(20 + bytes, 0);
        packet(protocol::TCP, Ipv4Addr::new(10, 0, 0, 1), &tcp)
    }

    /// From station 1, port `port`.
    fn tcp(port: u8) -> Bytes {
        packet(protocol::TCP, Ipv4Addr::new(10, 0, 0, 1), &[0, port, 0, 80, 0, 0, 0, 1])
    }

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    #[test]
    fn a_source_gets_one_held_and_one_restored_notice_per_breakage() {
        let mut notices = notices(true);
        assert_eq!((0..3).map(|i| notices.held(at(i), &tcp(1))).collect::<Vec<_>>(), [Some(Notice::Held), None, None]);
        assert_eq!(notices.held(at(3), &tcp(2)), Some(Notice::Held));
        assert_eq!([notices.released(&tcp(1)), notices.released(&tcp(1))], [Some(RESTORED), None]);
        // the next breakage
        assert_eq!(notices.held(at(4), &tcp(1)), Some(Notice::Held));
    }

    #[test]
    fn a_source_with_one_of_two_packets_dropped_still_gets_the_restored_notice() {
        let mut notices = notices(true);
        assert_eq!([0, 1].map(|i| notices.held(at(i), &tcp(1))), [Some(Notice::Held), None]);
        notices.dropped(&tcp(1));
        assert_eq!(notices.released(&tcp(1)), Some(RESTORED));
        notices.held(at(2), &tcp(1));
        notices.dropped(&tcp(1));
        assert_eq!(notices.released(&tcp(1)), None);
    }

    #[test]
    fn restored_lists_the_forwarded_data_without_the_dropped() {
        let mut notices = notices(true);
        let wrapped: u32 = 0xffff_ff00;
        // in the order of arrival: the second before the first, an acknowledgement, one twice, a FIN; one expires
        let packets = [(300, 100), (200, 100), (900, 0), (200, 100), (600, 50), (700, 0)]
            .map(|(at, bytes)| segment(wrapped.wrapping_add(at), bytes, if at == 700 { FIN } else { 0 }));
        packets.iter().for_each(|p| drop(notices.held(at(0), p)));
        let gone = segment(wrapped.wrapping_add(450), 50, 0);
        notices.held(at(0), &gone);
        notices.dropped(&gone);
        let numbers = |first: u32, end: u32| (wrapped.wrapping_add(first), wrapped.wrapping_add(end));
        let goes_on = vec![numbers(200, 400), numbers(600, 650), numbers(700, 701)];
        assert_eq!(notices.released(&packets[0]), Some(Notice::Restored(goes_on)));
    }

    #[test]
    fn no_notice_for_own_packets_internet_sources_other_protocols_or_when_off() {
        let (mut on, station, host) = (notices(true), Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(192, 168, 1, 1));
        let others = [
            packet(protocol::TCP, US, &[0; 20]),
            packet(protocol::TCP, host, &[0; 20]),
            packet(protocol::TCP, station, &[0; 3]),
            packet(protocol::UDP, station, &[0; 20]),
            Bytes(vec![0x45; 30]),
        ];
        for other in others {
            assert_eq!((on.concerns(&other), on.held(at(0), &other)), (false, None), "{other:?}");
        }
        assert_eq!(notices(false).held(at(0), &tcp(1)), None);
    }

    #[test]
    fn host_unreachable_is_sent_once_per_waiting_connection_and_nothing_on_release() {
        let mut notices = notices(false).or_unreachable(true);
        assert!(!notices.is_on() && !notices.concerns(&tcp(1)));
        assert_eq!([0, 1].map(|i| notices.held(at(i), &tcp(1))), [Some(Notice::Unreachable), None]);
        assert_eq!(notices.released(&tcp(1)), None);
        assert_eq!(notices.held(at(2), &tcp(1)), Some(Notice::Unreachable));
        notices.dropped(&tcp(1));
        assert_eq!(notices.held(at(3), &tcp(1)), Some(Notice::Unreachable));
    }

    #[test]
    fn a_half_tunnelled_packet_is_identified_by_its_inner_ports() {
        let tunnelled = |s: u8, payload: &[u8]| {
            let header = [protocol::TCP, s, 0, 0, 192, 168, 1, 1];
            packet(protocol::MINIMAL, Ipv4Addr::new(10, 0, 0, 1), &[header.as_slice(), payload].concat())
        };
        let mut notices = notices(true);
        assert_eq!(notices.held(at(0), &tunnelled(0, &[0, 1, 0, 80])), Some(Notice::Held));
        assert_eq!(notices.held(at(0), &tunnelled(0x80, &[9, 9, 9, 9, 0, 1, 0, 80])), None);
        assert_eq!(notices.held(at(0), &tunnelled(0, &[0, 2, 0, 80])), Some(Notice::Held));
    }

    #[test]
    fn ten_connections_per_second_are_notified_and_sixty_four_remembered() {
        let mut notices = notices(true);
        let notified = (0..200).filter(|port| notices.held(at(0), &tcp(*port)).is_some()).count();
        assert_eq!((notified, notices.waiting.len()), (PER_SECOND, MAX_CONNECTIONS));
        // connections that wait without notice get one with their next packet
        assert_eq!(notices.held(at(1000), &tcp(20)), Some(Notice::Held));
        assert_eq!(notices.released(&tcp(30)), None);
    }

    proptest! {
        #[test]
        fn the_listed_ranges_are_the_waiting_data(near: u32, held in proptest::collection::vec((0u32..5000, 1u32..300), 1..40)) {
            let ranges = held.iter().map(|(at, bytes)| (near.wrapping_add(*at), near.wrapping_add(at + bytes))).collect();
            let listed = joined((near, near), ranges);
            let in_one = |ranges: &[Range], number: u32| {
                ranges.iter().any(|(first, end)| number.wrapping_sub(*first) < end.wrapping_sub(*first))
            };
            prop_assert!(listed.windows(2).all(|pair| pair[1].0.wrapping_sub(near) > pair[0].1.wrapping_sub(near)));
            if listed.len() < MAX_RANGES {
                for number in 0..5300 {
                    let waits = held.iter().any(|(at, bytes)| (*at..at + bytes).contains(&number));
                    prop_assert_eq!(in_one(&listed, near.wrapping_add(number)), waits);
                }
            }
        }

        #[test]
        fn no_bytes_panic(bytes: Vec<u8>, kind in 0u8..60) {
            let mut notices = notices(true);
            for bytes in [Bytes(bytes.clone()), packet(kind, Ipv4Addr::new(10, 0, 0, 1), &bytes)] {
                notices.held(at(0), &bytes);
                notices.released(&bytes);
                notices.dropped(&bytes);
            }
        }
    }
}
