//! rtnetlink by hand (rtnetlink(7), RFC 3549): routes, addresses, neighbours and links of the own network namespace.
//!
//! Every change asks for the kernel's acknowledgement and waits for it: the kernel gives it from inside our `send`.
//! What is removed for the time of the run is kept as the kernel described it, and handed back as it was.

use super::{failed, HostError, Result};
use crate::Mac;
use nix::errno::Errno;
use nix::sys::socket::{
    bind, recv, send, setsockopt, socket, sockopt, AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol,
    SockType,
};
use nix::sys::time::{TimeVal, TimeValLike};
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

/// Marks our routes (rtm_protocol), so that those of a killed daemon are known; not in /etc/iproute2/rt_protos.
pub const PROTOCOL: u8 = 98;
pub const METRIC: u32 = 100;
/// Of the routes into the TUN: any other route of the same prefix comes first.
pub const MISS_METRIC: u32 = 4096;

// linux/netlink.h
const HEADER_LEN: usize = 16;
const REQUEST: u16 = 0x1;
const ACK: u16 = 0x4;
const DUMP: u16 = 0x300;
const REPLACE: u16 = 0x100;
const CREATE: u16 = 0x400;
const ERROR: u16 = 2;
const DONE: u16 = 3;
// linux/rtnetlink.h
const NEWLINK: u16 = 16;
const NEWADDR: u16 = 20;
const DELADDR: u16 = 21;
const GETADDR: u16 = 22;
const NEWROUTE: u16 = 24;
const DELROUTE: u16 = 25;
const GETROUTE: u16 = 26;
const GETNEIGH: u16 = 30;
const RTA_DST: u16 = 1;
const RTA_OIF: u16 = 4;
const RTA_GATEWAY: u16 = 5;
const RTA_PRIORITY: u16 = 6;
const RTA_PREFSRC: u16 = 7;
const RTA_METRICS: u16 = 8;
const RTAX_MTU: u16 = 2;
const RTAX_QUICKACK: u16 = 15;
const TABLE_MAIN: u8 = 254;
const PROTOCOL_KERNEL: u8 = 2;
const SCOPE_UNIVERSE: u8 = 0;
const SCOPE_LINK: u8 = 253;
const SCOPE_NOWHERE: u8 = 255;
const TYPE_UNICAST: u8 = 1;
const ONLINK: u32 = 4;
const RTMSG_LEN: usize = 12;
const IFADDRMSG_LEN: usize = 8;
const NDMSG_LEN: usize = 12;
const IFINFOMSG_LEN: usize = 16;
const IFA_LOCAL: u16 = 2;
const IFA_FLAGS: u16 = 8;
const NOPREFIXROUTE: u32 = 0x200;
const NDA_DST: u16 = 1;
const NDA_LLADDR: u16 = 2;
const IFLA_MTU: u16 = 4;
const UP: u32 = 1;
/// RTNLGRP_LINK as a bit.
const GROUP_LINK: u32 = 1;
const INET: u8 = 2;
/// Longer than any message of a dump (the kernel fills 32 KiB at most).
const BUFFER: usize = 32 * 1024;

/// A unicast route of the main table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelRoute {
    pub destination: Ipv4Addr,
    pub prefix: u8,
    /// `None`: on the link itself.
    pub via: Option<Ipv4Addr>,
    pub interface: u32,
    pub source: Ipv4Addr,
    pub metric: u32,
    pub mtu: Option<u16>,
    pub quickack: bool,
}

/// A route or address as the kernel described it in a dump.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Described(pub Vec<u8>);

pub struct Netlink {
    socket: OwnedFd,
    sequence: u32,
}

impl Netlink {
    pub fn open(protocol: SockProtocol) -> Result<Self> {
        let socket = open_socket(protocol, 0)?;
        // an answer comes at once or never
        let _ = setsockopt(&socket, sockopt::ReceiveTimeout, &TimeVal::seconds(2));
        Ok(Self { socket, sequence: 0 })
    }

    /// Puts the route in, or in the place of the one with the same destination and metric.
    pub fn set_route(&mut self, route: &KernelRoute) -> Result<(), Errno> {
        self.request(NEWROUTE, CREATE | REPLACE, &route_message(route))
    }

    pub fn clear_route(&mut self, destination: Ipv4Addr, prefix: u8, metric: u32) -> Result<(), Errno> {
        let mut m = vec![INET, prefix, 0, 0, TABLE_MAIN, PROTOCOL, SCOPE_NOWHERE, 0, 0, 0, 0, 0];
        attribute(&mut m, RTA_DST, &destination.octets());
        attribute(&mut m, RTA_PRIORITY, &metric.to_ne_bytes());
        self.request(DELROUTE, 0, &m)
    }

    /// Removes the routes of [`PROTOCOL`] over these interfaces (another radio of the station may have a daemon of its
    /// own); how many there were.
    pub fn flush(&mut self, interfaces: &[u32]) -> Result<usize> {
        let mut ours = self.routes()?;
        ours.retain(|r| r.0[5] == PROTOCOL && r.u32(RTMSG_LEN, RTA_OIF).is_some_and(|i| interfaces.contains(&i)));
        for route in &ours {
            match self.request(DELROUTE, 0, &route.0) {
                // it went with its interface meanwhile
                Ok(()) | Err(Errno::ESRCH) => {}
                Err(e) => return Err(failed("an old route cannot be removed", e)),
            }
        }
        Ok(ours.len())
    }

    /// The main table's routes over `interface` that others made; those without a gateway first, as they must be put
    /// back.
    pub fn routes_over(&mut self, interface: u32) -> Result<Vec<Described>> {
        let mut routes = self.routes()?;
        routes.retain(|r| r.u32(RTMSG_LEN, RTA_OIF) == Some(interface) && r.0[5] != PROTOCOL);
        routes.sort_by_key(|r| r.get(RTMSG_LEN, RTA_GATEWAY).is_some());
        Ok(routes)
    }

    fn routes(&mut self) -> Result<Vec<Described>> {
        let mut routes = self.dump(GETROUTE, NEWROUTE, &[&[INET], [0; 11].as_slice()].concat())?;
        routes.retain(|r| r.0.len() >= RTMSG_LEN && r.0[0] == INET && r.0[4] == TABLE_MAIN);
        Ok(routes)
    }

    pub fn put_route_back(&mut self, route: &Described) -> Result<(), Errno> {
        self.request(NEWROUTE, CREATE, &route.0)
    }

    pub fn remove_route(&mut self, route: &Described) -> Result<(), Errno> {
        self.request(DELROUTE, 0, &route.0)
    }

    /// The IPv4 addresses of `interface`.
    pub fn addresses(&mut self, interface: u32) -> Result<Vec<Described>> {
        let mut all = self.dump(GETADDR, NEWADDR, &[&[INET], [0; 7].as_slice()].concat())?;
        all.retain(|a| a.0.len() >= IFADDRMSG_LEN && a.0[0] == INET && a.0[4..8] == interface.to_ne_bytes());
        Ok(all)
    }

    pub fn put_address_back(&mut self, address: &Described) -> Result<(), Errno> {
        self.request(NEWADDR, CREATE | REPLACE, &address.0)
    }

    pub fn remove_address(&mut self, address: &Described) -> Result<(), Errno> {
        self.request(DELADDR, 0, &address.0)
    }

    /// Gives `interface` the address, without a route to the prefix.
    pub fn add_address(&mut self, interface: u32, address: Ipv4Addr, prefix: u8) -> Result<(), Errno> {
        let mut m = vec![INET, prefix, 0, 0];
        m.extend(interface.to_ne_bytes());
        attribute(&mut m, IFA_LOCAL, &address.octets());
        attribute(&mut m, IFA_FLAGS, &NOPREFIXROUTE.to_ne_bytes());
        self.request(NEWADDR, CREATE | REPLACE, &m)
    }

    /// The neighbour table of `interface`: whose IEEE address is known, in the order of the addresses.
    pub fn neighbours(&mut self, interface: u32) -> Result<Vec<(Ipv4Addr, Mac)>> {
        let all = self.dump(GETNEIGH, 28, &[&[INET], [0; 11].as_slice()].concat())?;
        let mut known: Vec<(Ipv4Addr, Mac)> = all.iter().filter_map(|n| neighbour(n, interface)).collect();
        known.sort_unstable();
        Ok(known)
    }

    /// Sets the interface up, with this MTU.
    pub fn set_up(&mut self, interface: u32, mtu: u16) -> Result<(), Errno> {
        let mut m = vec![0; 4];
        m.extend(interface.to_ne_bytes());
        m.extend(UP.to_ne_bytes());
        m.extend(UP.to_ne_bytes());
        attribute(&mut m, IFLA_MTU, &u32::from(mtu).to_ne_bytes());
        self.request(NEWLINK, 0, &m)
    }

    fn request(&mut self, kind: u16, flags: u16, payload: &[u8]) -> Result<(), Errno> {
        self.send(kind, REQUEST | ACK | flags, payload)?;
        let mut buffer = [0; 4096];
        loop {
            let n = recv(self.socket.as_raw_fd(), &mut buffer, MsgFlags::empty())?;
            for message in Messages(&buffer[..n]) {
                if message.sequence == self.sequence && message.kind == ERROR {
                    return acknowledged(message.payload);
                }
            }
        }
    }

    /// All messages of type `answer` that the kernel gives to this question. (Generic netlink asks by it as well.)
    pub fn dump(&mut self, kind: u16, answer: u16, payload: &[u8]) -> Result<Vec<Described>> {
        let fail = |e| failed("the kernel does not tell its tables", e);
        self.send(kind, REQUEST | DUMP, payload).map_err(fail)?;
        let mut buffer = vec![0; BUFFER];
        let mut found = Vec::new();
        loop {
            let n = recv(self.socket.as_raw_fd(), &mut buffer, MsgFlags::empty()).map_err(fail)?;
            for message in Messages(&buffer[..n]).filter(|m| m.sequence == self.sequence) {
                match message.kind {
                    DONE => return Ok(found),
                    ERROR => acknowledged(message.payload).map_err(fail)?,
                    kind if kind == answer => found.push(Described(message.payload.to_vec())),
                    _ => {}
                }
            }
        }
    }

    fn send(&mut self, kind: u16, flags: u16, payload: &[u8]) -> Result<(), Errno> {
        self.sequence = self.sequence.wrapping_add(1);
        let mut m = Vec::with_capacity(HEADER_LEN + payload.len());
        m.extend(((HEADER_LEN + payload.len()) as u32).to_ne_bytes());
        m.extend(kind.to_ne_bytes());
        m.extend(flags.to_ne_bytes());
        m.extend(self.sequence.to_ne_bytes());
        m.extend([0; 4]);
        m.extend(payload);
        send(self.socket.as_raw_fd(), &m, MsgFlags::empty()).map(drop)
    }
}

/// Tells when an interface is set up: the kernel has then forgotten the routes over it.
pub struct LinkEvents {
    socket: OwnedFd,
    interface: u32,
    was_up: bool,
}

impl LinkEvents {
    pub fn of(interface: u32) -> Result<Self> {
        let socket = open_socket(SockProtocol::NetlinkRoute, GROUP_LINK)?;
        let _ = setsockopt(&socket, sockopt::RcvBuf, &16_384);
        Ok(Self { socket, interface, was_up: true })
    }

    /// Reads what has happened. True: the interface was down and is up again.
    pub fn came_up(&mut self) -> bool {
        let mut buffer = [0; 8192];
        let mut came_up = false;
        loop {
            let n = match recv(self.socket.as_raw_fd(), &mut buffer, MsgFlags::MSG_DONTWAIT) {
                Ok(n) => n,
                // some were lost: the routes are put in once too often
                Err(Errno::ENOBUFS) => {
                    came_up = true;
                    continue;
                }
                Err(_) => return came_up,
            };
            for message in Messages(&buffer[..n]).filter(|m| m.kind == NEWLINK) {
                if let Some(up) = is_up(message.payload, self.interface) {
                    came_up |= up && !self.was_up;
                    self.was_up = up;
                }
            }
        }
    }
}

impl AsFd for LinkEvents {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

fn is_up(link: &[u8], interface: u32) -> Option<bool> {
    let fits = link.len() >= IFINFOMSG_LEN && link[4..8] == interface.to_ne_bytes();
    fits.then(|| u32::from_ne_bytes([link[8], link[9], link[10], link[11]]) & UP != 0)
}

fn open_socket(protocol: SockProtocol, groups: u32) -> Result<OwnedFd> {
    let fail = |e| failed("no netlink socket", e);
    let flags = SockFlag::SOCK_CLOEXEC;
    let fd = socket(AddressFamily::Netlink, SockType::Raw, flags, protocol).map_err(fail)?;
    bind(fd.as_raw_fd(), &NetlinkAddr::new(0, groups)).map_err(fail)?;
    Ok(fd)
}

fn route_message(route: &KernelRoute) -> Vec<u8> {
    // a gateway needs no route to it of its own: it is on the link, whatever the tables say
    let (scope, flags) = if route.via.is_some() { (SCOPE_UNIVERSE, ONLINK) } else { (SCOPE_LINK, 0) };
    let mut m = vec![INET, route.prefix, 0, 0, TABLE_MAIN, PROTOCOL, scope, TYPE_UNICAST];
    m.extend(flags.to_ne_bytes());
    attribute(&mut m, RTA_DST, &route.destination.octets());
    attribute(&mut m, RTA_OIF, &route.interface.to_ne_bytes());
    if let Some(via) = route.via {
        attribute(&mut m, RTA_GATEWAY, &via.octets());
    }
    attribute(&mut m, RTA_PREFSRC, &route.source.octets());
    attribute(&mut m, RTA_PRIORITY, &route.metric.to_ne_bytes());
    let mut metrics = Vec::new();
    if let Some(mtu) = route.mtu {
        attribute(&mut metrics, RTAX_MTU, &u32::from(mtu).to_ne_bytes());
    }
    if route.quickack {
        attribute(&mut metrics, RTAX_QUICKACK, &1u32.to_ne_bytes());
    }
    if !metrics.is_empty() {
        attribute(&mut m, RTA_METRICS, &metrics);
    }
    m
}

/// Appends an attribute.
pub fn attribute(to: &mut Vec<u8>, kind: u16, value: &[u8]) {
    to.extend(((4 + value.len()) as u16).to_ne_bytes());
    to.extend(kind.to_ne_bytes());
    to.extend(value);
    to.resize(to.len().next_multiple_of(4), 0);
}

fn neighbour(n: &Described, interface: u32) -> Option<(Ipv4Addr, Mac)> {
    let fits = n.0.len() >= NDMSG_LEN && n.0[0] == INET && n.0[4..8] == interface.to_ne_bytes();
    let address: [u8; 4] = n.get(NDMSG_LEN, NDA_DST).filter(|_| fits)?.try_into().ok()?;
    Some((address.into(), n.get(NDMSG_LEN, NDA_LLADDR)?.try_into().ok()?))
}

fn acknowledged(payload: &[u8]) -> Result<(), Errno> {
    match payload.get(..4).map(|e| i32::from_ne_bytes([e[0], e[1], e[2], e[3]])) {
        Some(0) => Ok(()),
        Some(e) => Err(Errno::from_raw(-e)),
        None => Err(Errno::EPROTO),
    }
}

impl Described {
    /// The value of an attribute; `after`: how long the fixed part is.
    pub fn get(&self, after: usize, kind: u16) -> Option<&[u8]> {
        attributes(self.0.get(after..)?).find(|(k, _)| *k == kind).map(|(_, value)| value)
    }

    fn u32(&self, after: usize, kind: u16) -> Option<u32> {
        Some(u32::from_ne_bytes(self.get(after, kind)?.try_into().ok()?))
    }

    /// Of an address: itself.
    pub fn address(&self) -> Option<Ipv4Addr> {
        let local: [u8; 4] = self.get(IFADDRMSG_LEN, IFA_LOCAL)?.try_into().ok()?;
        Some(local.into())
    }

    /// Of an address: the bits of its network.
    pub fn address_prefix(&self) -> u8 {
        self.0[1]
    }

    /// Of a route: whether the kernel made it, from an address, for more than one host.
    pub fn is_connected(&self) -> bool {
        self.0[5] == PROTOCOL_KERNEL && self.0[1] < 32
    }
}

/// Attributes one after the other; ends at the first that does not fit. (Shared by generic netlink.)
pub fn attributes(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let length = usize::from(u16::from_ne_bytes([*bytes.first()?, *bytes.get(1)?]));
        let kind = u16::from_ne_bytes([*bytes.get(2)?, *bytes.get(3)?]);
        let value = bytes.get(4..length)?;
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or(&[]);
        // NLA_F_NESTED and NLA_F_NET_BYTEORDER are no part of the type
        Some((kind & 0x3fff, value))
    })
}

struct Message<'a> {
    kind: u16,
    sequence: u32,
    payload: &'a [u8],
}

struct Messages<'a>(&'a [u8]);

impl<'a> Iterator for Messages<'a> {
    type Item = Message<'a>;
    fn next(&mut self) -> Option<Message<'a>> {
        let h = self.0.get(..HEADER_LEN)?;
        let length = u32::from_ne_bytes([h[0], h[1], h[2], h[3]]) as usize;
        let payload = self.0.get(HEADER_LEN..length)?;
        self.0 = self.0.get(length.next_multiple_of(4)..).unwrap_or(&[]);
        let (kind, sequence) = (u16::from_ne_bytes([h[4], h[5]]), u32::from_ne_bytes([h[8], h[9], h[10], h[11]]));
        Some(Message { kind, sequence, payload })
    }
}

/// The index of an interface.
pub fn index(name: &str) -> Result<u32> {
    nix::net::if_::if_nametoindex(name)
        .map_err(|_| HostError(format!("key \"interface\": there is no interface {name} in this network namespace")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_route_is_written_as_rtnetlink_has_it() {
        let route = KernelRoute {
            destination: Ipv4Addr::new(10, 0, 0, 3),
            prefix: 32,
            via: Some(Ipv4Addr::new(10, 0, 0, 2)),
            interface: 7,
            source: Ipv4Addr::new(10, 0, 0, 1),
            metric: 100,
            mtu: Some(1492),
            quickack: true,
        };
        // little-endian as the machines this is tested on; attributes: length, type, value (linux/rtnetlink.h)
        let expected: [&[u8]; 7] = [
            &[2, 32, 0, 0, 254, 98, 0, 1, 4, 0, 0, 0],
            &[8, 0, 1, 0, 10, 0, 0, 3],
            &[8, 0, 4, 0, 7, 0, 0, 0],
            &[8, 0, 5, 0, 10, 0, 0, 2],
            &[8, 0, 7, 0, 10, 0, 0, 1],
            &[8, 0, 6, 0, 100, 0, 0, 0],
            // 4 + 8 + 8 bytes: mtu (2) 1492 = 0x5d4, quickack (15) 1
            &[20, 0, 8, 0, 8, 0, 2, 0, 0xd4, 5, 0, 0, 8, 0, 15, 0, 1, 0, 0, 0],
        ];
        assert_eq!(route_message(&route), expected.concat());
        let on_link = route_message(&KernelRoute { via: None, mtu: None, quickack: false, ..route });
        assert_eq!(on_link[..12], [2, 32, 0, 0, 254, 98, 253, 1, 0, 0, 0, 0]);
        assert_eq!(attributes(&on_link[12..]).map(|(k, _)| k).collect::<Vec<_>>(), [1, 4, 7, 6]);
    }

    #[test]
    fn neighbours_without_an_address_or_on_another_interface_are_left_out() {
        let neighbour_on = |interface: u8, mac: &[u8]| {
            let mut m = vec![2, 0, 0, 0, interface, 0, 0, 0, 2, 0, 0, 1];
            attribute(&mut m, NDA_DST, &[10, 0, 0, 2]);
            if !mac.is_empty() {
                attribute(&mut m, NDA_LLADDR, mac);
            }
            Described(m)
        };
        let mac = [2, 0, 0, 0, 0, 2];
        assert_eq!(neighbour(&neighbour_on(3, &mac), 3), Some((Ipv4Addr::new(10, 0, 0, 2), mac)));
        assert_eq!(neighbour(&neighbour_on(4, &mac), 3), None);
        assert_eq!(neighbour(&neighbour_on(3, &[]), 3), None);
        assert_eq!(neighbour(&Described(vec![2]), 3), None);
    }

    #[test]
    fn the_kernels_refusals_come_as_errno() {
        assert_eq!(acknowledged(&0i32.to_ne_bytes()), Ok(()));
        assert_eq!(acknowledged(&(-3i32).to_ne_bytes()), Err(Errno::ESRCH));
        assert_eq!(acknowledged(&[]), Err(Errno::EPROTO));
    }

    proptest::proptest! {
        #[test]
        fn no_bytes_panic(bytes: Vec<u8>) {
            let _ = attributes(&bytes).count();
            let _ = Messages(&bytes).map(|m| m.payload.len()).sum::<usize>();
            let described = Described(bytes);
            let _ = (neighbour(&described, 1), is_up(&described.0, 1), described.address());
        }
    }
}
