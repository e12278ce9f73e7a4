//! Wireless interfaces over nl80211 (linux/nl80211.h): moves a radio into a network namespace, creates its interface there and
//! joins a network without scanning: channel and, for an IBSS, BSSID are given.

use crate::tap::{set_interface_up, Namespace};
use crate::DaemonError;
use manet_medium::config::HwsimMode;
use manet_medium::wire::MacAddress;
use manet_netlink::{Builder, Message, Socket};
use nix::errno::Errno;
use nix::net::if_::if_nametoindex;
use nix::sys::socket::SockProtocol;
use std::collections::HashMap;
use std::os::fd::AsRawFd;

const FAMILY: &str = "nl80211";

mod command {
    pub const GET_WIPHY: u8 = 1;
    pub const NEW_INTERFACE: u8 = 7;
    pub const JOIN_IBSS: u8 = 43;
    pub const SET_WIPHY_NETNS: u8 = 49;
    pub const SET_TX_BITRATE_MASK: u8 = 57;
    pub const JOIN_MESH: u8 = 68;
    pub const JOIN_OCB: u8 = 108;
}

mod attribute {
    pub const WIPHY: u16 = 1;
    pub const WIPHY_NAME: u16 = 2;
    pub const IFINDEX: u16 = 3;
    pub const IFNAME: u16 = 4;
    pub const IFTYPE: u16 = 5;
    pub const MAC: u16 = 6;
    pub const BEACON_INTERVAL: u16 = 12;
    pub const MESH_ID: u16 = 24;
    pub const HT_CAPABILITY: u16 = 31;
    pub const BSS_BASIC_RATES: u16 = 36;
    pub const WIPHY_FREQ: u16 = 38;
    pub const WIPHY_CHANNEL_TYPE: u16 = 39;
    pub const SSID: u16 = 52;
    pub const FREQ_FIXED: u16 = 60;
    pub const TX_RATES: u16 = 90;
    pub const MCAST_RATE: u16 = 107;
    pub const HT_CAPABILITY_MASK: u16 = 148;
    pub const SPLIT_WIPHY_DUMP: u16 = 174;
    pub const NETNS_FD: u16 = 219;
}
const BAND_2GHZ: u16 = 0;
const BAND_5GHZ: u16 = 1;
/// Above the 2.4 GHz band.
const ABOVE_2GHZ_MHZ: u32 = 3000;
const TXRATE_LEGACY: u16 = 1;
const TXRATE_HT: u16 = 2;
/// NL80211_CHAN_HT20, NL80211_CHAN_HT40PLUS
const CHANNEL_HT20: u32 = 1;
const CHANNEL_HT40: u32 = 3;

/// The element HT Capabilities (IEEE 802.11-2016 clause 9.4.2.56): capability information, A-MPDU parameters, supported MCS set.
const HT_CAPABILITY_LEN: usize = 26;
const MCS_SET_AT: usize = 3;
/// Of the capability information: 40 MHz, and the short guard interval at 20 and at 40 MHz.
const SUPPORTED_WIDTH: u8 = 1 << 1;
const SHORT_GUARD: u8 = 1 << 5 | 1 << 6;

/// NL80211_IFTYPE_*
const fn interface_type(mode: HwsimMode) -> u32 {
    match mode {
        HwsimMode::Ibss => 1,
        HwsimMode::Mesh => 7,
        HwsimMode::Ocb => 11,
        HwsimMode::Managed => 2,
    }
}

/// The network that all stations join.
#[derive(Clone, Debug)]
pub struct Network {
    /// Kind of the interfaces.
    pub mode: HwsimMode,
    /// SSID or mesh ID.
    pub name: &'static str,
    /// BSSID of an IBSS.
    pub bssid: MacAddress,
    /// Centre frequency, MHz.
    pub freq_mhz: u32,
    /// Beacon interval in time units of 1024 us.
    pub beacon_interval: u32,
    /// Rate of broadcast and management frames, bit/s.
    pub basic_rate_bps: u64,
    /// Rates permitted for data frames, bit/s.
    pub rates_bps: Vec<u64>,
    /// What an ad hoc network uses of HT; `None`: nothing.
    pub ht: Option<HtNetwork>,
}

/// What the stations of a network use of HT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HtNetwork {
    /// 20 or 40 MHz.
    pub width_mhz: u16,
    /// Whether they use the short guard interval.
    pub short_guard: bool,
    /// Highest MCS: 7 or 15.
    pub max_mcs: u8,
}

impl HtNetwork {
    /// The element HT Capabilities of a station that has no more than this, and the mask of the bits that it changes in mac80211's own:
    /// what a peer does not announce, mac80211's rate control does not try.
    fn capability(self) -> ([u8; HT_CAPABILITY_LEN], [u8; HT_CAPABILITY_LEN]) {
        let (mut capability, mut mask) = ([0; HT_CAPABILITY_LEN], [0; HT_CAPABILITY_LEN]);
        mask[0] = SUPPORTED_WIDTH | SHORT_GUARD;
        capability[0] = if self.width_mhz == 40 { SUPPORTED_WIDTH } else { 0 };
        capability[0] |= if self.short_guard { SHORT_GUARD } else { 0 };
        for mcs in 0..32 {
            let bit = 1 << (mcs % 8);
            mask[MCS_SET_AT + mcs / 8] |= bit;
            capability[MCS_SET_AT + mcs / 8] |= if mcs <= self.max_mcs.into() { bit } else { 0 };
        }
        (capability, mask)
    }
}

/// Legacy rates in nl80211's unit.
fn of_500_kbps(rates_bps: &[u64]) -> Vec<u8> {
    rates_bps.iter().map(|r| (r / 500_000) as u8).collect()
}

/// nl80211 in the namespace in which the radios were created.
pub struct Wiphys {
    netlink: Socket,
    family: u16,
    by_name: HashMap<String, u32>,
}

impl Wiphys {
    /// Lists the radios that exist now.
    ///
    /// # Errors
    /// No nl80211, or no permission.
    pub fn list() -> Result<Self, DaemonError> {
        let (mut netlink, family) = open()?;
        let mut by_name = HashMap::new();
        let request = Builder::generic(family, command::GET_WIPHY, 0).put(attribute::SPLIT_WIPHY_DUMP, &[]);
        netlink
            .dump(request, |message| by_name.extend(wiphy(&message)))
            .map_err(|e| failed("the radios cannot be listed", e))?;
        Ok(Self { netlink, family, by_name })
    }

    /// Moves the radio `name` into `namespace`, creates the interface `ifname` with address `mac` there and joins the network.
    ///
    /// # Errors
    /// The step that the kernel refused.
    pub fn settle(
        &mut self,
        name: &str,
        namespace: &Namespace,
        ifname: &str,
        mac: MacAddress,
        network: &Network,
    ) -> Result<(), DaemonError> {
        let index = *self.by_name.get(name).ok_or_else(|| DaemonError(format!("radio {name} is not there")))?;
        let fd = namespace.file().as_raw_fd() as u32;
        let family = self.family;
        let request = Builder::generic(family, command::SET_WIPHY_NETNS, 0);
        self.netlink
            .request(request.put_u32(attribute::WIPHY, index).put_u32(attribute::NETNS_FD, fd))
            .map_err(|e| failed(&format!("radio {name} cannot be moved into its station"), e))?;
        namespace.inside(|| {
            let mut netlink = socket()?;
            make_interface(&mut netlink, family, index, ifname, mac, network.mode)?;
            join(&mut netlink, family, ifname, network)
        })
    }
}

/// Name and number of a radio.
fn wiphy(message: &Message) -> Option<(String, u32)> {
    let (_, attributes) = message.generic()?;
    Some((text(attributes.get(attribute::WIPHY_NAME)?), attributes.u32(attribute::WIPHY)?))
}

fn open() -> Result<(Socket, u16), DaemonError> {
    let mut netlink = socket()?;
    let family = netlink.family(FAMILY).map_err(|e| failed("not there; modprobe cfg80211", e))?;
    Ok((netlink, family))
}

/// A socket in the thread's current network namespace.
fn socket() -> Result<Socket, DaemonError> {
    Socket::open(SockProtocol::NetlinkGeneric).map_err(no_socket)
}

fn make_interface(
    netlink: &mut Socket,
    family: u16,
    wiphy: u32,
    ifname: &str,
    mac: MacAddress,
    mode: HwsimMode,
) -> Result<(), DaemonError> {
    let request = Builder::generic(family, command::NEW_INTERFACE, 0)
        .put_u32(attribute::WIPHY, wiphy)
        .put_text(attribute::IFNAME, ifname)
        .put_u32(attribute::IFTYPE, interface_type(mode))
        .put(attribute::MAC, &mac);
    netlink.request(request).map_err(|e| failed(&format!("interface {ifname} cannot be made"), e))?;
    set_interface_up(ifname)
}

fn join(netlink: &mut Socket, family: u16, ifname: &str, network: &Network) -> Result<(), DaemonError> {
    let (what, command) = match network.mode {
        HwsimMode::Ibss => ("IBSS", command::JOIN_IBSS),
        HwsimMode::Mesh => ("mesh", command::JOIN_MESH),
        HwsimMode::Ocb => ("OCB", command::JOIN_OCB),
        HwsimMode::Managed => return Ok(()),
    };
    let index = if_nametoindex(ifname).map_err(|e| failed(&format!("interface {ifname} is not there"), e))?;
    let rates = Builder::generic(family, command::SET_TX_BITRATE_MASK, 0)
        .put_u32(attribute::IFINDEX, index)
        .open(attribute::TX_RATES)
        .open(if network.freq_mhz < ABOVE_2GHZ_MHZ { BAND_2GHZ } else { BAND_5GHZ })
        .put(TXRATE_LEGACY, &of_500_kbps(&network.rates_bps));
    let all_mcs: Vec<u8> = network.ht.iter().flat_map(|ht| 0..=ht.max_mcs).collect();
    let rates = if all_mcs.is_empty() { rates } else { rates.put(TXRATE_HT, &all_mcs) }.close().close();
    netlink.request(rates).map_err(|e| failed(&format!("the rates of {ifname} cannot be set"), e))?;
    let request = join_request(Builder::generic(family, command, 0).put_u32(attribute::IFINDEX, index), network);
    netlink.request(request).map_err(|e| failed(&format!("{ifname} cannot join the {what}"), e))?;
    Ok(())
}

fn join_request(to: Builder, network: &Network) -> Builder {
    let m = to.put_u32(attribute::WIPHY_FREQ, network.freq_mhz);
    let beacons = |m: Builder| {
        m.put_u32(attribute::BEACON_INTERVAL, network.beacon_interval)
            .put(attribute::BSS_BASIC_RATES, &of_500_kbps(&[network.basic_rate_bps]))
            .put_u32(attribute::MCAST_RATE, (network.basic_rate_bps / 100_000) as u32)
    };
    let name = network.name.as_bytes();
    match network.mode {
        HwsimMode::Ibss => {
            let m = beacons(m).put(attribute::SSID, name).put(attribute::MAC, &network.bssid);
            let m = m.put(attribute::FREQ_FIXED, &[]);
            let Some(ht) = network.ht else { return m };
            let (own, mask) = ht.capability();
            let channel = if ht.width_mhz == 40 { CHANNEL_HT40 } else { CHANNEL_HT20 };
            m.put_u32(attribute::WIPHY_CHANNEL_TYPE, channel)
                .put(attribute::HT_CAPABILITY, &own)
                .put(attribute::HT_CAPABILITY_MASK, &mask)
        }
        HwsimMode::Mesh => beacons(m).put(attribute::MESH_ID, name),
        HwsimMode::Ocb | HwsimMode::Managed => m,
    }
}

fn text(value: &[u8]) -> String {
    String::from_utf8_lossy(value).trim_end_matches('\0').to_owned()
}

/// The error of a generic netlink socket that cannot be opened.
pub fn no_socket(errno: Errno) -> DaemonError {
    let what = if errno == Errno::EADDRINUSE { "no port" } else { "no socket" };
    DaemonError(format!("generic netlink: {what}: {}", errno.desc()))
}

fn failed(what: &str, errno: Errno) -> DaemonError {
    let remedy = if errno == Errno::EPERM { "; run as root" } else { "" };
    DaemonError(format!("nl80211: {what}: {}{remedy}", errno.desc()))
}
