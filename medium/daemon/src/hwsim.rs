//! The medium of radios of the kernel's mac80211_hwsim, in the place of wmediumd (wire/hwsim.rs).
//!
//! `radios = "made"`: the daemon creates the radios in its own network namespace, and they are removed with its socket: if the process
//! dies, the stations have no radio. `radios = "found"`: another program (Mininet-WiFi) created them in the daemon's namespace. If the
//! process dies, those fall back to the kernel's own medium without loss and delay; the other program must discard such results.
//!
//! hwsim holds no frame back: it passes each on at once, and keeps it in a list of at most 200 until its status is reported.
//! mac80211's rate control learns from these statuses. hwsim has no status of an A-MPDU, and Minstrel-HT ignores frames of an agreement
//! without one (`minstrel_ht_tx_status`): an ADDBA Request is therefore answered here, by declining it.
//!
//! So the interface queue is ours, as for TAPs, and every frame is answered exactly once; [`MAX_HWSIM_QUEUE`](manet_medium::config::MAX_HWSIM_QUEUE) limits the queue.

use crate::tap::{no_netns, Namespace};
use crate::wiphy::{no_socket, HtNetwork, Network, Wiphys};
use crate::DaemonError;
use manet_medium::config::{HwsimConfig, HwsimMode, HwsimRadios, HwsimRates, Loaded, StationConfig, FREQ_MHZ};
use manet_medium::mac::{Dest, HtRate, Packet, Stage};
use manet_medium::message::{self, Reception, StationId};
use manet_medium::phy::mode::GuardInterval;
use manet_medium::phy::{Mode, Radio};
use manet_medium::wire::ethernet::Mac;
use manet_medium::wire::hwsim::{self, command, rate_flag, Step, Transmit, NO_STEP, STAGES};
use manet_medium::wire::mac80211::{declined_block_ack, Kind};
use manet_medium::wire::MacAddress;
use manet_netlink::message::ERROR;
use manet_netlink::{Messages, Socket};
use nix::errno::Errno;
use nix::sys::socket::{setsockopt, sockopt, SockProtocol};
use std::collections::{HashMap, VecDeque};
use std::io::Read;
use std::os::fd::{AsFd, BorrowedFd};

/// Legacy rates of the 2.4 GHz band in hwsim's order, in 100 kbit/s. Its other bands lack the first four, those of DSSS.
const RATES: [u64; 12] = [10, 20, 55, 110, 60, 90, 120, 180, 240, 360, 480, 540];
const DSSS_RATES: usize = 4;
/// Above the 2.4 GHz band.
const BAND_5GHZ_MHZ: u32 = 3000;
/// Beacon interval in time units: about one second, ten times the kernel's default. No membership expires within a minute.
const BEACON_INTERVAL: u32 = 1000;
const NETWORK: &str = "manet";
/// Signal reported for an acknowledgement: ACK frames have no power of their own here.
const ACK_SIGNAL_DBM: i32 = -50;
const DATAGRAM: usize = 65_536;
/// Receive buffer, bytes: frames of many radios wait here while the daemon is not scheduled.
const RECEIVE_BUFFER: usize = 16 << 20;
/// Bit that distinguishes a radio's second address from its first.
const SECOND_ADDRESS: u8 = 0x40;

/// The legacy rates of a channel. The frequency does not affect the propagation, which uses the profile's.
fn rates_at(freq_mhz: u32) -> &'static [u64] {
    if freq_mhz < BAND_5GHZ_MHZ {
        &RATES
    } else {
        &RATES[DSSS_RATES..]
    }
}

fn rate_bps(freq_mhz: u32, index: i8) -> Option<u64> {
    rates_at(freq_mhz).get(usize::try_from(index).ok()?).map(|r| r * 100_000)
}

/// hwsim's messages have no received rate of HT: it is reported as the fastest legacy rate not above it.
fn rate_index(freq_mhz: u32, bps: u64) -> i8 {
    let rates = rates_at(freq_mhz);
    let exact = rates.iter().position(|r| r * 100_000 == bps);
    exact.or_else(|| rates.iter().rposition(|r| r * 100_000 <= bps)).map_or(0, |i| i as i8)
}

/// A frame whose status the kernel awaits.
struct Pending {
    flags: u32,
    steps: [Step; STAGES],
}

/// The hwsim medium: one netlink socket for the radios of all stations.
pub struct Hwsim {
    netlink: Socket,
    /// Port of `netlink`; part of the names of our radios.
    port: u32,
    family: u16,
    /// Address that identifies each radio in messages; frames carry the address of its interface.
    addresses: Vec<MacAddress>,
    by_address: HashMap<MacAddress, StationId>,
    /// Channel of each radio in the configuration, MHz.
    freqs_mhz: Vec<u32>,
    rates: HwsimRates,
    radio: Radio,
    pending: HashMap<(u16, u64), Pending>,
    ready: VecDeque<message::Input>,
    buffer: Vec<u8>,
    /// Lower bound on the datagrams from the kernel that the full socket lost.
    pub lost: u64,
}

/// The wireless interface of a station.
pub struct RadioInterface {
    /// Its network namespace.
    pub namespace: Namespace,
    /// Its name.
    pub ifname: String,
}

impl RadioInterface {
    /// Number of frames that hwsim removed from its list without a status, or could not pass on; `None`: no such interface.
    pub fn dropped(&self) -> Option<u64> {
        let read = || crate::ethtool::statistics(&self.ifname);
        let statistics = self.namespace.inside(read).ok()?;
        let wanted = |name: &str| name == "d_tx_dropped" || name == "d_tx_failed";
        Some(statistics.into_iter().filter(|(name, _)| wanted(name)).map(|(_, n)| n).sum())
    }
}

impl Hwsim {
    /// Becomes the medium of one radio for each station; the radios are created and joined, or found in the stations' namespaces.
    ///
    /// # Errors
    /// No hwsim, another medium in the namespace, no permission, or a station whose interface is missing.
    pub fn start(loaded: &Loaded, config: &HwsimConfig) -> Result<(Self, Vec<RadioInterface>), DaemonError> {
        // hwsim takes *any* netlink socket that closes with our port, in any namespace and protocol, for ours, and removes our
        // radios (mac80211_hwsim_netlink_notify). A process's sockets usually have its process number, again in each namespace.
        let port = unassigned_port()?;
        let mut netlink = Socket::bound(SockProtocol::NetlinkGeneric, port, 0).map_err(no_socket)?;
        // may fail: without CAP_NET_ADMIN in the first user namespace the buffer is smaller, and losses are counted
        let _ = setsockopt(&netlink, sockopt::RcvBufForce, &RECEIVE_BUFFER);
        let family = netlink.family(hwsim::FAMILY).map_err(no_family)?;
        let stations = &loaded.config.stations;
        let mut hwsim = Self {
            netlink,
            port,
            family,
            addresses: stations.iter().map(|s| s.mac).collect(),
            by_address: (0..).zip(stations).map(|(i, s)| (s.mac, StationId(i))).collect(),
            freqs_mhz: stations.iter().map(|s| s.freq_mhz).collect(),
            rates: config.rates,
            radio: loaded.radio.clone(),
            pending: HashMap::new(),
            ready: VecDeque::new(),
            buffer: vec![0; DATAGRAM],
            lost: 0,
        };
        let interfaces = match config.radios {
            HwsimRadios::Made => {
                hwsim.make_radios()?;
                hwsim.register()?;
                hwsim.settle(loaded, &network(&loaded.radio, config))?
            }
            HwsimRadios::Found => {
                let interfaces = hwsim.find_radios(stations)?;
                hwsim.register()?;
                interfaces
            }
        };
        Ok((hwsim, interfaces))
    }

    fn make_radios(&mut self) -> Result<(), DaemonError> {
        for (i, mac) in self.addresses.clone().iter().enumerate() {
            let name = radio_name(self.port, i);
            let in_5_ghz = self.freqs_mhz[i] >= BAND_5GHZ_MHZ;
            self.netlink.request(hwsim::new_radio(self.family, &name, mac, in_5_ghz)).map_err(|e| {
                let remedy = match e {
                    Errno::EPERM => "; run as root",
                    Errno::EEXIST | Errno::ENFILE => "; is another medium running in this network namespace?",
                    _ => "",
                };
                DaemonError(format!("mac80211_hwsim: radio {name} cannot be made: {}{remedy}", e.desc()))
            })?;
        }
        Ok(())
    }

    fn find_radios(&mut self, stations: &[StationConfig]) -> Result<Vec<RadioInterface>, DaemonError> {
        self.by_address.clear();
        let mut interfaces = Vec::new();
        for (i, station) in stations.iter().enumerate() {
            let namespace = namespace_of(i, station)?;
            let known = namespace.inside(|| permanent_address_of(station));
            let permanent = known.map_err(|e| DaemonError(format!("{}: {e}", station.name)))?;
            // hwsim identifies a radio created without an address by a second one, which differs by this bit, and a radio created
            // with an address by that address. The first frame shows which (`take_frame`); each station soon sends a beacon.
            let mut second = permanent;
            second[0] |= SECOND_ADDRESS;
            self.addresses[i] = second;
            self.by_address.extend([permanent, second].map(|address| (address, StationId(i as u16))));
            interfaces.push(RadioInterface { namespace, ifname: station.ifname.clone() });
        }
        Ok(interfaces)
    }

    fn register(&mut self) -> Result<(), DaemonError> {
        self.netlink.request(hwsim::register(self.family)).map(drop).map_err(|e| {
            let why = match e {
                Errno::EBUSY => {
                    "another medium (wmediumd?) is registered in this network namespace; end it first".to_owned()
                }
                Errno::EOPNOTSUPP => {
                    "a radio of this kernel has several channels; reload mac80211_hwsim with channels=1".to_owned()
                }
                Errno::EPERM => "not allowed; run as root".to_owned(),
                e => e.desc().to_owned(),
            };
            DaemonError(format!("mac80211_hwsim: cannot become its medium: {why}"))
        })
    }

    fn settle(&self, loaded: &Loaded, network: &Network) -> Result<Vec<RadioInterface>, DaemonError> {
        let mut wiphys = Wiphys::list()?;
        let stations = loaded.config.stations.iter().enumerate();
        let settle = |(i, station): (usize, &StationConfig)| {
            let namespace = namespace_of(i, station)?;
            let network = Network { freq_mhz: station.freq_mhz, ..network.clone() };
            wiphys
                .settle(&radio_name(self.port, i), &namespace, &station.ifname, station.mac, &network)
                .map_err(|e| DaemonError(format!("{}: {e}", station.name)))?;
            Ok(RadioInterface { namespace, ifname: station.ifname.clone() })
        };
        stations.map(settle).collect()
    }

    /// The next frame from the kernel.
    pub fn read(&mut self) -> Option<message::Input> {
        while self.ready.is_empty() {
            let mut buffer = std::mem::take(&mut self.buffer);
            let more = match self.netlink.receive(&mut buffer) {
                Ok(Some(bytes)) => {
                    self.take(bytes);
                    true
                }
                Ok(None) => false,
                Err(Errno::ENOBUFS) => {
                    self.lost += 1;
                    true
                }
                Err(_) => false,
            };
            self.buffer = buffer;
            if !more {
                return None;
            }
        }
        self.ready.pop_front()
    }

    fn take(&mut self, bytes: &[u8]) {
        // a refusal is normal while an interface is down; its frames are not answered then
        for message in Messages(bytes).filter(|m| m.kind != ERROR) {
            if let Some((command::FRAME, attributes)) = message.generic() {
                if let Ok(transmit) = Transmit::parse(attributes) {
                    self.take_frame(&transmit);
                }
            }
        }
    }

    fn take_frame(&mut self, transmit: &Transmit) {
        let Some(station) = self.by_address.get(&transmit.transmitter).copied() else { return };
        self.addresses[usize::from(station.0)] = transmit.transmitter;
        let Transmit { flags, steps, cookie, freq_mhz, .. } = *transmit;
        if let Some(response) = declined_block_ack(transmit.frame) {
            self.decline(transmit, &response);
            return;
        }
        self.pending.insert((station.0, cookie), Pending { flags, steps });
        let rates = match self.rates {
            HwsimRates::Profile => Vec::new(),
            HwsimRates::Kernel => stages(&self.radio, freq_mhz, &steps),
        };
        let freq_mhz = Some(freq_mhz).filter(|f| *f != self.freqs_mhz[usize::from(station.0)]);
        self.ready.push_back(message::Input::Mpdu { station, frame: transmit.frame.to_vec(), cookie, rates, freq_mhz });
    }

    /// Ends a request for a Block Ack agreement: acknowledged, and declined by its recipient. Neither frame takes time on the air.
    fn decline(&self, request: &Transmit, response: &[u8]) {
        let Transmit { flags, steps, cookie, freq_mhz, .. } = *request;
        let (radio, flags) = (&request.transmitter, flags | hwsim::ACKED);
        let status = hwsim::status(self.family, radio, flags, ACK_SIGNAL_DBM, &tried(&steps, 1), cookie);
        let index = rate_index(freq_mhz, self.radio.broadcast_rate_bps) as u32;
        let response = hwsim::receive(self.family, radio, response, index, ACK_SIGNAL_DBM, freq_mhz);
        // refused while the interface is down
        let _ = self.netlink.send(&status).and_then(|()| self.netlink.send(&response));
    }

    /// Passes a received frame to a radio. Returns false if the kernel refused it.
    pub fn deliver(&self, station: StationId, packet: &Packet, heard: Option<Reception>) -> bool {
        let (Some(mpdu), Some(heard)) = (&packet.mpdu, heard) else { return true };
        let (to, freq_mhz) = (&self.addresses[usize::from(station.0)], mpdu.freq_mhz);
        let index = rate_index(freq_mhz, heard.rate_bps) as u32;
        let message = hwsim::receive(self.family, to, &mpdu.bytes, index, dbm(heard.power_w), freq_mhz);
        self.netlink.send(&message).is_ok()
    }

    /// Reports the status of a frame to the kernel: number of tries, acknowledged or not.
    pub fn report(&mut self, station: StationId, packet: &Packet, tries: u32, acked: bool) {
        let Some(mpdu) = &packet.mpdu else { return };
        let Some(pending) = self.pending.remove(&(station.0, mpdu.cookie)) else { return };
        let flags = pending.flags | if acked { hwsim::ACKED } else { 0 };
        let steps = match self.rates {
            HwsimRates::Profile => tried(&[self.profile_step(packet)], tries),
            HwsimRates::Kernel => tried(&pending.steps, tries),
        };
        let mac = &self.addresses[usize::from(station.0)];
        let message = hwsim::status(self.family, mac, flags, ACK_SIGNAL_DBM, &steps, mpdu.cookie);
        // refused while the interface is down: the kernel no longer awaits it
        let _ = self.netlink.send(&message);
    }

    fn profile_step(&self, packet: &Packet) -> Step {
        let basic = packet.dest == Dest::Broadcast || packet.mpdu.as_ref().is_some_and(|m| m.kind != Kind::Data);
        let bps = if basic { self.radio.broadcast_rate_bps } else { self.radio.data_rate_bps };
        let freq_mhz = packet.mpdu.as_ref().map_or(FREQ_MHZ, |m| m.freq_mhz);
        Step { index: rate_index(freq_mhz, bps), tries: u8::MAX, flags: 0 }
    }
}

impl AsFd for Hwsim {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.netlink.as_fd()
    }
}

fn namespace_of(i: usize, station: &StationConfig) -> Result<Namespace, DaemonError> {
    let netns = station.netns.as_deref().ok_or_else(|| no_netns(&format!("stations[{i}]")))?;
    Namespace::open(netns)
}

/// Permanent address of the station's interface in the current namespace; an error if its address is not the station's.
fn permanent_address_of(station: &StationConfig) -> Result<MacAddress, DaemonError> {
    let ifname = &station.ifname;
    let mac = crate::tap::hardware_address(ifname)?;
    if mac != station.mac {
        let (there, wanted) = (Mac(mac), Mac(station.mac));
        return Err(DaemonError(format!(
            "interface {ifname}: its address is {there}, not {wanted}; set it before the medium starts"
        )));
    }
    crate::ethtool::permanent_address(ifname)
}

fn network(radio: &Radio, config: &HwsimConfig) -> Network {
    let of_phy = || -> Vec<u64> { RATES.iter().map(|r| r * 100_000).filter(|r| radio.has_rate(*r)).collect() };
    let (rates_bps, ht) = match config.rates {
        HwsimRates::Profile if radio.has_rate(radio.data_rate_bps) => (vec![radio.data_rate_bps], None),
        HwsimRates::Profile => (of_phy(), None),
        HwsimRates::Kernel => (of_phy(), ht_network(radio)),
    };
    Network {
        mode: config.mode,
        name: NETWORK,
        bssid: crate::captured_frame::BSSID,
        freq_mhz: FREQ_MHZ,
        beacon_interval: if config.mode == HwsimMode::Ocb { 0 } else { BEACON_INTERVAL },
        basic_rate_bps: radio.broadcast_rate_bps,
        rates_bps,
        ht,
    }
}

/// What the stations may use of HT; `None`: the profile has another PHY.
fn ht_network(radio: &Radio) -> Option<HtNetwork> {
    match radio.data_mode() {
        Mode::Mcs(mode) => Some(HtNetwork {
            width_mhz: mode.width_mhz,
            short_guard: mode.guard == GuardInterval::Short,
            // those of one stream are 0 to 7, those of two 8 to 15
            max_mcs: 8 * radio.data_modes().iter().map(|mode| mode.streams()).max().unwrap_or(1) - 1,
        }),
        _ => None,
    }
}

/// The rates that the kernel requests, without those that this PHY lacks; if none is left, the profile's rate is used.
fn stages(radio: &Radio, freq_mhz: u32, steps: &[Step]) -> Vec<Stage> {
    let modes = radio.data_modes();
    let legacy = |s: &Step| Some((rate_bps(freq_mhz, s.index).filter(|rate_bps| radio.has_rate(*rate_bps))?, None));
    let of_ht = |s: &Step| {
        let ht = ht_rate(s)?;
        let mode = ht.mode().filter(|mode| modes.contains(mode))?;
        Some((mode.rate_bps(), Some(ht)))
    };
    let stage = |s: &Step| {
        let (rate_bps, ht) = if s.flags & rate_flag::MCS == 0 { legacy(s) } else { of_ht(s) }?;
        Some(Stage { rate_bps, tries: s.tries.max(1), ht })
    };
    steps.iter().filter(|s| s.flags & rate_flag::VHT_MCS == 0).filter_map(stage).collect()
}

fn ht_rate(step: &Step) -> Option<HtRate> {
    Some(HtRate {
        mcs: u8::try_from(step.index).ok()?,
        width_mhz: if step.flags & rate_flag::WIDTH_40_MHZ == 0 { 20 } else { 40 },
        short_guard: step.flags & rate_flag::SHORT_GUARD != 0,
    })
}

/// `steps` cut to a total of `tries`; the last step takes any further tries.
fn tried(steps: &[Step], tries: u32) -> [Step; STAGES] {
    let mut out = [NO_STEP; STAGES];
    let mut left = tries;
    let requested = steps.iter().filter(|s| s.index >= 0).count();
    for (at, (to, step)) in out.iter_mut().zip(steps.iter().filter(|s| s.index >= 0)).enumerate() {
        if left == 0 {
            // a frame without a try still names its first rate
            if at == 0 {
                *to = Step { tries: 0, ..*step };
            }
            break;
        }
        let here = if at + 1 == requested { left } else { left.min(step.tries.max(1).into()) };
        *to = Step { tries: here.min(u8::MAX.into()) as u8, ..*step };
        left -= here;
    }
    out
}

/// A power in W as dBm, limited to the range that mac80211 reports.
fn dbm(power_w: f64) -> i32 {
    (10.0 * power_w.log10() + 30.0).round().clamp(-120.0, 20.0) as i32
}

/// Name of a radio. These names are global in the kernel, not per namespace; the port keeps several runs apart.
fn radio_name(port: u32, station: usize) -> String {
    format!("m{port:x}-{}", station + 1)
}

/// A netlink port that the kernel never assigns itself (it uses process numbers, and numbers from 2^31 on).
fn unassigned_port() -> Result<u32, DaemonError> {
    let mut random = [0; 4];
    let drawn = std::fs::File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut random));
    drawn.map_err(|e| DaemonError(format!("/dev/urandom: {e}; is /dev mounted?")))?;
    Ok(u32::from_ne_bytes(random) & 0x3fff_ffff | 0x4000_0000)
}

fn no_family(errno: Errno) -> DaemonError {
    let why = match errno {
        Errno::ENOENT => "not there; modprobe mac80211_hwsim radios=0, or run it in a guest: ./manet vm",
        e => e.desc(),
    };
    DaemonError(format!("mac80211_hwsim: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn step(index: i8, tries: u8) -> Step {
        Step { index, tries, flags: 0 }
    }

    #[test]
    fn tries_are_reported_in_the_order_of_the_request() {
        let requested = [step(3, 2), step(1, 2), NO_STEP, NO_STEP];
        assert_eq!(tried(&requested, 1), [step(3, 1), NO_STEP, NO_STEP, NO_STEP]);
        assert_eq!(tried(&requested, 3), [step(3, 2), step(1, 1), NO_STEP, NO_STEP]);
        assert_eq!(tried(&requested, 7), [step(3, 2), step(1, 5), NO_STEP, NO_STEP], "the last rate takes the rest");
        assert_eq!(tried(&requested, 0), [step(3, 0), NO_STEP, NO_STEP, NO_STEP]);
    }

    #[test]
    fn rates_of_another_phy_are_left_out() {
        let radio = Radio::parse(include_str!("../../radios/ns2-dsss-2m.toml"), &Default::default()).unwrap();
        // 54 Mbit/s of OFDM, 11 and 2 Mbit/s of DSSS
        let requested = [step(11, 2), step(3, 2), step(1, 1), NO_STEP];
        let rates: Vec<u64> = stages(&radio, FREQ_MHZ, &requested).iter().map(|s| s.rate_bps).collect();
        assert_eq!(rates, [11_000_000, 2_000_000]);
    }

    #[test]
    fn rates_of_ht_are_those_of_the_profiles_width_and_streams() {
        let radio = Radio::parse(include_str!("../../radios/dot11n-ht20.toml"), &Default::default()).unwrap();
        let mcs = |index, more| Step { index, tries: 3, flags: rate_flag::MCS | more };
        let vht = Step { index: 3, tries: 1, flags: rate_flag::VHT_MCS };
        // legacy 24 Mbit/s (index 4 at 5 GHz); two streams, short guard interval and 40 MHz are not the profile's
        let requested = [mcs(7, 0), mcs(0, 0), step(4, 1), NO_STEP];
        let rates: Vec<u64> = stages(&radio, 5180, &requested).iter().map(|s| s.rate_bps).collect();
        assert_eq!(rates, [65_000_000, 6_500_000, 24_000_000]);
        let others = [mcs(8, 0), mcs(7, rate_flag::SHORT_GUARD), mcs(7, rate_flag::WIDTH_40_MHZ), vht];
        assert_eq!(stages(&radio, 5180, &others), []);
        assert_eq!(ht_network(&radio), Some(HtNetwork { width_mhz: 20, short_guard: false, max_mcs: 7 }));
        assert_eq!(rate_index(5180, 65_000_000), 7, "received at 65, reported as 54 Mbit/s");
        assert_eq!(rate_index(5180, 6_500_000), 0);
    }

    #[test]
    fn powers_become_signals() {
        assert_eq!(dbm(3.652e-10), -64);
        assert_eq!(dbm(0.0), -120);
    }

    #[test]
    fn rates_and_indices_are_inverse() {
        for (i, r) in RATES.iter().enumerate() {
            let (bps, index) = (r * 100_000, i as i8);
            assert_eq!((rate_bps(FREQ_MHZ, index), rate_index(FREQ_MHZ, bps)), (Some(bps), index));
        }
        assert_eq!(rate_bps(FREQ_MHZ, -1), None);
        assert_eq!((rate_bps(5180, 0), rate_index(5180, 54_000_000)), (Some(6_000_000), 7), "no DSSS at 5 GHz");
    }
}
