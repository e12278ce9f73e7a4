//! The interface of a routing protocol to its driver: the host or a simulation.

use crate::{Held, Input, Mac, Output, Status};
use manet_engine::keys::{Declared, OutOfLimits};
use manet_engine::packet_filter::Step;
use manet_engine::{Instant, Machine};
use serde::{de::DeserializeOwned, Deserialize, Serialize};
use std::fmt;
use std::net::Ipv4Addr;

/// The transport of a protocol's control packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carrier {
    /// Design A: UDP datagrams from and to this port; the kernel forwards data.
    Udp(u16),
    /// Design B: IPv4 packets in Ethernet frames that the daemon writes; the kernel forwards nothing.
    Frames,
}

/// The smallest MTU of a radio: every host must be able to receive datagrams of 576 bytes (RFC 791, section 3.1).
pub const MIN_MTU: u16 = 576;

/// Identity and surroundings of a machine; the same for every protocol. Key `node` of CONFIG (formats/routing.md).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Node {
    /// Counted from 1; with `seed` it chooses the node's random stream.
    pub number: u64,
    /// The node's address in the ad hoc network.
    pub address: Ipv4Addr,
    /// The ad hoc network, as address and prefix length in bits. Addresses outside it are the Internet.
    pub network: (Ipv4Addr, u8),
    /// The radio's address.
    #[serde(with = "manet_engine::mac_text")]
    pub mac: Mac,
    /// Wired networks that this node reaches by other interfaces, as `network`. A node with any is a gateway.
    #[serde(default)]
    pub wires: Vec<(Ipv4Addr, u8)>,
    /// The radio's MTU in bytes, [`MIN_MTU`] at least.
    #[serde(default = "ethernet_mtu")]
    pub mtu: u16,
    /// Seed of all random streams of the run.
    pub seed: u64,
    /// Whether the radio reports failed links ([`Input::LinkFailed`], [`Input::FrameFailed`]).
    pub feedback: bool,
    /// Whether an earlier daemon of this node ended without cleaning up (its sequence numbers are lost).
    #[serde(default)]
    pub restarted: bool,
    /// Whether TCP packets of other stations wait here when their route breaks, and their sources get notices
    /// ([`crate::notices`]). Key "notices" of CONFIG.
    #[serde(default)]
    pub notices: bool,
}

fn ethernet_mtu() -> u16 {
    1500
}

impl Node {
    /// A node of a run with seed 1, whose radio reports failed links and has Ethernet's MTU; the other keys as CONFIG without
    /// them.
    pub fn new(number: u64, address: Ipv4Addr, network: (Ipv4Addr, u8), mac: Mac) -> Self {
        let (wires, mtu) = (Vec::new(), ethernet_mtu());
        Self { number, address, network, mac, wires, mtu, seed: 1, feedback: true, restarted: false, notices: false }
    }

    /// Whether one station of the ad hoc network can have this address.
    pub fn is_station(&self, address: Ipv4Addr) -> bool {
        let (mask, has_broadcast) = (self.host_mask(), self.network.1 < 31);
        let names_the_network = has_broadcast && [0, mask].contains(&(u32::from(address) & mask));
        let single = !(address.is_unspecified() || address.is_broadcast() || address.is_multicast());
        self.in_network(address) && single && !names_the_network
    }

    /// Ones for the bits that number the hosts of the ad hoc network.
    pub fn host_mask(&self) -> u32 {
        u32::MAX.checked_shr(self.network.1.into()).unwrap_or(0)
    }

    /// The broadcast address of the ad hoc network (RFC 919, section 7); the limited one for prefixes of 31 bits or more
    /// (RFC 3021).
    pub fn broadcast(&self) -> Ipv4Addr {
        if self.network.1 >= 31 {
            return crate::BROADCAST;
        }
        Ipv4Addr::from(u32::from(self.network.0) | self.host_mask())
    }

    /// Whether `address` belongs to the ad hoc network.
    pub fn in_network(&self, address: Ipv4Addr) -> bool {
        crate::routes::network(address, self.network.1) == crate::routes::network(self.network.0, self.network.1)
    }
}

/// A protocol refuses its options or its node: one line that names the option or key and the remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OptionError(pub String);

impl fmt::Display for OptionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
impl std::error::Error for OptionError {}

impl From<OutOfLimits> for OptionError {
    fn from(e: OutOfLimits) -> Self {
        Self(format!("{}: {}; choose {}", e.key, e.value, e.limits.wanted()))
    }
}

impl From<String> for OptionError {
    fn from(line: String) -> Self {
        Self(line)
    }
}

/// A routing protocol as a machine. Its `Machine` part does not panic for any input.
pub trait Protocol: Machine<Input = Input, Output = Output> + Sized {
    /// Lower-case name: `aodv` for the program `manet-aodv`.
    const NAME: &'static str;
    /// Transport of the control packets.
    const CARRIER: Carrier;
    /// IP protocols whose packets for this node go to the machine ([`Input::Tunnelled`]).
    const TUNNELS: &'static [u8] = &[];
    /// Key `options` of CONFIG, documented with units in `formats/routing.md`. Unknown keys are an error.
    type Options: Declared + Default + Serialize + DeserializeOwned + Clone + std::fmt::Debug;

    /// Fails if the protocol refuses an option or the node. Deadlines count from instant 0: the first may be armed here.
    fn new(node: Node, options: Self::Options) -> Result<Self, OptionError>;

    /// The time at instant 0 on the clock that the nodes share (CLOCK_REALTIME), ns. Called before the first input; 0 where time is
    /// virtual. For protocols that compare times of different nodes (TORA).
    fn synchronise(&mut self, _clock_ns: u64) {}

    /// The MTU of the TUN device in bytes: the radio's, less what the protocol adds to each packet (DSR's source route).
    fn tun_mtu(node: &Node, _options: &Self::Options) -> u16 {
        node.mtu
    }

    /// Design B: whether the machine uses [`Input::FrameDelivered`].
    fn wants_deliveries(_options: &Self::Options) -> bool {
        true
    }

    /// Design B: whether the machine exchanges ARP messages ([`Input::Arp`]).
    fn resolves_addresses(_options: &Self::Options) -> bool {
        false
    }

    /// Design B: a number that changes with [`Self::overheard_filter`].
    fn overheard_version(&self) -> u64 {
        0
    }

    /// Design B: a filter that drops overheard frames without effect on the machine's present state and outputs, so that
    /// the medium does not send them. Offsets count from the start of the Ethernet frame. Empty: accepts all.
    fn overheard_filter(&self) -> Vec<Step> {
        Vec::new()
    }

    /// The buffer of packets that wait for a route; `None` if the protocol has none.
    fn held(&mut self) -> Option<&mut Held> {
        None
    }

    /// The answer to a status request at `now`.
    fn status(&self, now: Instant) -> Status;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(address: [u8; 4], prefix: u8) -> Node {
        Node::new(1, address.into(), (address.into(), prefix), [2, 0, 0, 0, 0, 1])
    }

    #[test]
    fn a_network_of_two_addresses_has_no_broadcast_address_of_its_own() {
        assert_eq!(node([10, 0, 0, 1], 8).broadcast(), Ipv4Addr::new(10, 255, 255, 255));
        assert_eq!(node([192, 168, 4, 1], 22).broadcast(), Ipv4Addr::new(192, 168, 7, 255));
        assert_eq!([31, 32].map(|prefix| node([10, 0, 0, 2], prefix).broadcast()), [crate::BROADCAST; 2]);
    }

    #[test]
    fn neither_first_nor_last_address_is_a_stations_unless_the_network_has_two_only() {
        let is_station = |prefix, last| node([10, 0, 0, 2], prefix).is_station(Ipv4Addr::new(10, 0, 0, last));
        assert_eq!([0, 1, 3, 4].map(|last| is_station(30, last)), [false, true, false, false]);
        assert_eq!([1, 2, 3, 4].map(|last| is_station(31, last)), [false, true, true, false]);
    }
}
