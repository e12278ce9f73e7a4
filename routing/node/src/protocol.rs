//! What a routing protocol must be, to be driven by the host or by a simulation.

use crate::packet::filter::Step;
use crate::{Held, Input, Mac, Output, Status};
use manet_engine::keys::Declared;
use manet_engine::{Instant, Machine};
use serde::{de::DeserializeOwned, Deserialize, Serialize};
use std::fmt;
use std::net::Ipv4Addr;

/// How a protocol's control packets travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carrier {
    /// Design A: UDP datagrams from and to this port; the kernel forwards data.
    Udp(u16),
    /// Design B: IPv4 packets in frames of our own making; the kernel forwards nothing.
    Frames,
}

/// The smallest MTU of a radio: every host must be able to receive datagrams of 576 bytes (RFC 791, section 3.1).
pub const MIN_MTU: u16 = 576;

/// Who a machine is; the same for every protocol.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Node {
    /// Counted from 1; with `seed` it chooses the node's random stream.
    pub number: u64,
    pub address: Ipv4Addr,
    /// The ad hoc network: addresses outside it are the Internet.
    pub network: (Ipv4Addr, u8),
    #[serde(with = "crate::status::mac")]
    pub mac: Mac,
    /// Wired networks that this node reaches by other interfaces: it is a gateway if there are any.
    #[serde(default)]
    pub wires: Vec<(Ipv4Addr, u8)>,
    /// The radio's MTU in bytes, [`MIN_MTU`] at least.
    #[serde(default = "ethernet_mtu")]
    pub mtu: u16,
    pub seed: u64,
    /// Whether the radio tells of failed links ([`Input::LinkFailed`], [`Input::FrameFailed`]).
    pub feedback: bool,
    /// Whether an earlier daemon of this node ended without cleaning up (its sequence numbers are lost).
    #[serde(default)]
    pub restarted: bool,
    /// Whether TCP packets of others whose route breaks here wait for a new one, and their sources are told
    /// ([`crate::notices`]). Key "notices" of CONFIG.
    #[serde(default)]
    pub notices: bool,
}

fn ethernet_mtu() -> u16 {
    1500
}

impl Node {
    pub fn in_network(&self, address: Ipv4Addr) -> bool {
        crate::routes::network(address, self.network.1) == crate::routes::network(self.network.0, self.network.1)
    }
}

/// With these options, or as this node, a protocol cannot run: one line that names the option or key and the remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OptionError(pub String);

impl fmt::Display for OptionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
impl std::error::Error for OptionError {}

impl From<String> for OptionError {
    fn from(line: String) -> Self {
        Self(line)
    }
}

/// A routing protocol as a machine. Its `Machine` part never panics, whatever arrives.
pub trait Protocol: Machine<Input = Input, Output = Output> + Sized {
    const NAME: &'static str;
    const CARRIER: Carrier;
    /// IP protocols whose packets for us are the machine's ([`Input::Tunnelled`]).
    const TUNNELS: &'static [u8] = &[];
    /// Documented with units in `formats/routing.md`; unknown keys are refused.
    type Options: Declared + Default + Serialize + DeserializeOwned + Clone + std::fmt::Debug;

    /// Deadlines count from instant 0: the first may be armed here.
    fn new(node: Node, options: Self::Options) -> Result<Self, OptionError>;

    /// The MTU of the TUN device: less than the radio's where the protocol adds to each packet (DSR's source route).
    fn tun_mtu(node: &Node, _options: &Self::Options) -> u16 {
        node.mtu
    }

    /// Design B: whether the machine has a use for [`Input::FrameDelivered`].
    fn wants_deliveries(_options: &Self::Options) -> bool {
        true
    }

    /// Design B: a number that changes with [`Self::overheard_filter`].
    fn overheard_version(&self) -> u64 {
        0
    }

    /// Design B: drops [`Input::Overheard`] that would change nothing in the machine and let it say nothing, as it is now, so
    /// that the kernel need not wake the daemon for them. Offsets are those of the Ethernet frame. Empty: all of them matter.
    fn overheard_filter(&self) -> Vec<Step> {
        Vec::new()
    }

    /// The packets that wait for a route, where the machine holds any.
    fn held(&mut self) -> Option<&mut Held> {
        None
    }

    fn status(&self, now: Instant) -> Status;
}
