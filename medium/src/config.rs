//! `medium.json` (formats/medium.md): parsed, checked, every default filled in. Unknown keys are errors.
//!
//! Every error is one line: key, mistake, remedy. The reader of the file puts its name before it.

use crate::phy::antenna::Change;
use crate::phy::fading::Fading;
use crate::phy::pattern::Directional;
use crate::phy::propagation::Model;
use crate::phy::radio::{Radio, ANTENNA_HEIGHT, GAIN, TX_POWER};
use crate::phy::walls;
use crate::run_verdict::Thresholds;
use crate::wire::dot11::{MAX_MSDU_BYTES, SNAP_LEN};
use manet_engine::keys::{above, from, up_to, within, Declared, Key, Limits, OutOfLimits};
use manet_engine::misfit::{self, Misfit};
use manet_engine::{choices, keys, mac_text};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::PathBuf;

mod loaded;

pub use loaded::Loaded;

/// Value of the key `format`.
pub const FORMAT: &str = "manet-medium/1";
/// Maximum number of stations, below the 16 bits of a station number. Memory: formats/medium.md.
pub const MAX_STATIONS: usize = 10_000;
/// Maximum of `queue.packets` with mac80211_hwsim, in packets: hwsim drops frames when 200 wait for their status.
pub const MAX_HWSIM_QUEUE: usize = 90;
/// Maximum rate of a synthetic source, bit/s: above it the gap between two packets would round to 0 ns.
const MAX_RATE_BPS: f64 = 1e10;
const QUEUE_PACKETS: usize = 50;
/// Maximum of a time here and in a trace, s. Above it `f64` seconds no longer resolve nanoseconds.
pub const MAX_TIME_S: f64 = 4e6;
const TIME: Limits = within(0.0, MAX_TIME_S).of("s");
/// Of a burst and a pause; a shorter one would be millions of events a second.
const SHORT_TIME: Limits = within(1e-5, MAX_TIME_S).of("s");
/// The time that clear channel assessment takes: aCCATime of DSSS is 15 us at most (clause 16.3.3).
const JAM_DELAY: Limits = within(0.0, 1e6).of("us").by_default(15.0);
/// Maximum number of jammers: with the stations it is below the 16 bits of a number of the air log.
pub const MAX_JAMMERS: usize = 1000;
/// Centre frequency of channel 1 of the 2.4 GHz band, MHz (IEEE Std 802.11-2012 clause 17.4.6.3).
pub const FREQ_MHZ: u32 = 2412;
/// From that band to the 6 GHz band.
const FREQUENCY: Limits = within(2000.0, 7200.0).of("MHz");
const QUEUE: Limits = within(1.0, 100_000.0).of("packets");
/// Maximum magnitude of a coordinate here, in a trace and in a request to move, m. Light covers it in 33 ms: a larger one is a mistake.
pub const MAX_COORDINATE_M: f64 = 1e7;
const COORDINATE: Limits = within(-MAX_COORDINATE_M, MAX_COORDINATE_M).of("m");
const FADING: Limits = within(0.0, 30.0).of("dB").by_default(0.0);
/// Range of the error rate of a link, here and in a request of the control socket.
pub const ERROR_RATE: Limits = within(0.0, 1.0);

/// Reason for refusing a configuration: one line.
#[derive(Debug)]
pub enum ConfigError {
    /// The text is not JSON; the message is serde's.
    Json(serde_json::Error),
    /// A key is unknown or missing, or its value is not of its type.
    Misfit(Misfit),
    /// A number is outside its limits.
    Limits(OutOfLimits),
    /// A name does not exist, or values contradict each other: key, mistake, remedy.
    Value(String),
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Json(e) => e.fmt(f),
            Self::Misfit(e) => e.fmt(f),
            Self::Limits(e) => e.fmt(f),
            Self::Value(mistake) => f.write_str(mistake),
        }
    }
}
impl std::error::Error for ConfigError {}

impl From<String> for ConfigError {
    fn from(mistake: String) -> Self {
        Self::Value(mistake)
    }
}

impl From<OutOfLimits> for ConfigError {
    fn from(error: OutOfLimits) -> Self {
        Self::Limits(error)
    }
}

/// The keys of `medium.json`; formats/medium.md describes each.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Must be [`FORMAT`].
    pub format: String,
    /// Seed of all random streams; by default 1.
    #[serde(default = "one")]
    pub seed: u64,
    /// File of the radio profile, relative to `medium.json`.
    pub radio: PathBuf,
    /// Keys that replace those of the profile.
    #[serde(default)]
    pub radio_overrides: toml::Table,
    /// Path loss model; by default two-ray ground.
    #[serde(default)]
    pub propagation: Model,
    /// Treatment of overlapping receptions.
    #[serde(default)]
    pub interference: Interference,
    /// Standard deviation of a normal draw on each frame's power at each station, dB; by default 0.
    #[serde(default)]
    pub fading_db: f64,
    /// Whether frames of other channels of the band interfere, by the spectral masks of the PHY; by default they do not.
    #[serde(default)]
    pub adjacent_channels: bool,
    /// Small-scale fading of each link; by default none.
    #[serde(default)]
    pub fading: Fading,
    /// Walls, which the propagation adds to its losses.
    #[serde(default)]
    pub walls: Vec<WallConfig>,
    /// Interface queue of each station.
    #[serde(default)]
    pub queue: QueueConfig,
    /// Jammers and noise sources.
    #[serde(default)]
    pub jammers: Vec<JammerConfig>,
    /// The stations, 1 to [`MAX_STATIONS`], in the order of their numbers.
    pub stations: Vec<StationConfig>,
    /// Present: the stations have radios of mac80211_hwsim; absent: TAPs.
    #[serde(default)]
    pub hwsim: Option<HwsimConfig>,
    /// Error rates of links; a later entry overrides an earlier one.
    #[serde(default)]
    pub links: Vec<LinkConfig>,
    /// File of the movement (formats/trace.md), relative to `medium.json`.
    #[serde(default)]
    pub trace: Option<PathBuf>,
    /// Wired links.
    #[serde(default)]
    pub wires: Vec<WireConfig>,
    /// Files that the run writes.
    #[serde(default)]
    pub outputs: Outputs,
    /// Path of the control socket (formats/sockets.md).
    #[serde(default)]
    pub control_socket: Option<PathBuf>,
    /// Folder of the stations' link-feedback sockets (formats/sockets.md).
    #[serde(default)]
    pub feedback_dir: Option<PathBuf>,
    /// Synthetic sources of `sim`.
    #[serde(default)]
    pub traffic: Vec<TrafficConfig>,
    /// Measured time of `sim` and length of `run`, s.
    #[serde(default)]
    pub duration_s: Option<f64>,
    /// Time of `sim` before the measurement, s.
    #[serde(default)]
    pub warmup_s: f64,
    /// Thresholds of the verdict.
    #[serde(default)]
    pub verdict: Option<Thresholds>,
}

impl Config {
    /// Parses the text of a `medium.json`; [`Loaded::new`] checks its values.
    ///
    /// # Errors
    /// [`ConfigError::Json`] or [`ConfigError::Misfit`].
    pub fn parse(text: &str) -> Result<Self, ConfigError> {
        let values: serde_json::Value = serde_json::from_str(text).map_err(ConfigError::Json)?;
        misfit::fit(Self::KEYS, &values).map_err(|wrong| ConfigError::Misfit(of_the_radio(wrong)))?;
        check_overrides("radio_overrides", values.get("radio_overrides")).map_err(ConfigError::Misfit)?;
        // the text again: it may have a key twice
        serde_json::from_str(text).map_err(ConfigError::Json)
    }
}

/// A key of a profile that stands beside `radio_overrides` and not in it, with the remedy.
fn of_the_radio(wrong: Misfit) -> Misfit {
    if wrong.mistake.starts_with("unknown key") && Radio::KEYS.iter().any(|key| key.name == wrong.key) {
        return Misfit { mistake: "is a key of the radio; give it in radio_overrides".to_owned(), ..wrong };
    }
    wrong
}

/// Refuses what no table of a profile can be: another type, and null, which TOML does not have. The profile's reader checks the rest.
fn check_overrides(path: &str, overrides: Option<&serde_json::Value>) -> Result<(), Misfit> {
    let wrong = |path: &str, mistake: String| Err(Misfit { key: path.to_owned(), mistake });
    let object = match overrides {
        None => return Ok(()),
        Some(serde_json::Value::Object(object)) => object,
        Some(other) => {
            return wrong(path, format!("{other} is of the wrong type; give a table with keys of the profile"))
        }
    };
    for (key, value) in object {
        let path = format!("{path}.{key}");
        if value.is_null() {
            return wrong(&path, "null is no value; leave the key out".to_owned());
        }
        if value.is_object() {
            check_overrides(&path, Some(value))?;
        }
    }
    Ok(())
}

fn one() -> u64 {
    1
}

impl Declared for Config {
    const KEYS: &'static [Key] = &[
        Key::new::<String>("format", "Format of this file: \"manet-medium/1\".").required(true),
        Key::new::<u64>("seed", "Seed of all random streams.").limited(from(0.0).by_default(1.0)),
        Key::new::<PathBuf>("radio", "File of the radio profile, relative to this file.").required(true),
        Key::new::<serde_json::Value>("radio_overrides", "Keys that replace those of the profile."),
        Key::new::<Model>("propagation", "Path loss model; by default two-ray ground."),
        Key::new::<Interference>("interference", "Treatment of overlapping receptions."),
        Key::new::<f64>("fading_db", "Standard deviation of a normal draw on each frame's power at each station.")
            .limited(FADING),
        Key::new::<bool>(
            "adjacent_channels",
            "Whether frames of other channels of the band interfere, by the spectral masks of the PHY.",
        ),
        Key::new::<Fading>("fading", "Small-scale fading of each link over time; by default none."),
        Key::new::<Vec<WallConfig>>("walls", "Walls, which add their losses to the paths that cross them."),
        Key::new::<QueueConfig>("queue", "Interface queue of each station."),
        Key::new::<Vec<JammerConfig>>("jammers", "Jammers and noise sources."),
        Key::new::<Vec<StationConfig>>("stations", "The stations, in the order of their numbers.").required(true),
        Key::new::<Option<HwsimConfig>>("hwsim", "Present: the stations have radios of mac80211_hwsim; absent: TAPs."),
        Key::new::<Vec<LinkConfig>>("links", "Error rates of links; a later entry overrides an earlier one."),
        Key::new::<Option<PathBuf>>("trace", "File of the movement, relative to this file."),
        Key::new::<Vec<WireConfig>>("wires", "Wired links."),
        Key::new::<Outputs>("outputs", "Files that the run writes, relative to this file."),
        Key::new::<Option<PathBuf>>("control_socket", "Path of the control socket."),
        Key::new::<Option<PathBuf>>("feedback_dir", "Folder of the stations' link feedback sockets."),
        Key::new::<Vec<TrafficConfig>>("traffic", "Synthetic sources of `sim`."),
        Key::new::<Option<f64>>("duration_s", "Measured time of `sim`, length of `run`.").limited(TIME),
        Key::new::<f64>("warmup_s", "Time of `sim` before the measurement.").limited(TIME),
        Key::new::<Option<Thresholds>>("verdict", "Thresholds of the verdict."),
    ];
}

choices! {
    /// Treatment of overlapping receptions ([`crate::air`]).
    pub enum Interference {
        /// ns-2's capture of the first frame; interference is not summed.
        Ns2 = "ns2",
        /// Signal to interference and noise: all power present is summed.
        Sinr = "sinr",
    }
}

keys! {
    /// The interface queue of a station.
    #[derive(Clone, Debug, Serialize, Deserialize)]
    #[serde(default, deny_unknown_fields)]
    pub struct QueueConfig {
        /// Queueing discipline.
        pub discipline: Discipline = Discipline::DropTail;
        /// Maximum number of packets in a drop-tail queue.
        pub packets: usize = QUEUE_PACKETS => QUEUE;
        /// Whether network-control packets (CS6) and ARP are sent first.
        pub control_first: bool = true;
    }
}

choices! {
    /// The packet that is served next, and the one that is dropped ([`crate::mac::queue`]).
    pub enum Discipline {
        /// In the order of arrival; a full queue drops the newcomer.
        DropTail = "drop-tail",
        /// FQ-CoDel (RFC 8290) for each receiver and airtime fairness among them, as mac80211 has it; `packets` has no effect.
        FqCodel = "fq-codel",
    }
}

keys! {
    /// One station.
    #[derive(Clone, Debug, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct StationConfig {
        /// Name of the station: unique, without commas, slashes and blanks.
        pub name: String;
        /// MAC address: unique, not a group address.
        #[serde(with = "mac_text")]
        pub mac: [u8; 6];
        /// Position at the start: x, y, z.
        pub position: [f64; 3] => COORDINATE;
        /// Network namespace of the interface.
        #[serde(default)]
        pub netns: Option<PathBuf>;
        /// Name of the interface; by default wlan0.
        #[serde(default = "wlan0")]
        pub ifname: String;
        /// Transmit power of this station; by default the radio's.
        #[serde(default)]
        pub tx_power_w: Option<f64> => TX_POWER;
        /// Antenna gain of this station; by default the radio's.
        #[serde(default)]
        pub antenna_gain_db: Option<f64> => GAIN;
        /// Height of this station's antenna above its position; by default the radio's.
        #[serde(default)]
        pub antenna_height_m: Option<f64> => ANTENNA_HEIGHT;
        /// Antenna with a pattern, in place of `antenna_gain_db`.
        #[serde(default)]
        pub antenna: Option<Directional>;
        /// Centre frequency of the radio's channel at the start. Radios of different channels neither receive nor sense each other.
        #[serde(default = "freq_mhz")]
        pub freq_mhz: u32 => FREQUENCY.by_default(FREQ_MHZ as f64);
        /// Station above whose further radio this is: it moves with the station, and both lose power together.
        #[serde(default)]
        pub node: Option<String>;
    }
}

impl StationConfig {
    /// The settings that differ from the radio's.
    pub fn antenna(&self) -> Change {
        Change {
            tx_power_w: self.tx_power_w,
            antenna_gain_db: main_lobe_db(&self.antenna, self.antenna_gain_db),
            antenna_height_m: self.antenna_height_m,
        }
    }
}

keys! {
    /// A jammer or noise source: it puts power on the air, and no frames.
    #[derive(Clone, Debug, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct JammerConfig {
        /// Name of the jammer: unique among stations and jammers, as a station's.
        pub name: String;
        /// Position: x, y, z.
        #[serde(default)]
        pub position: Option<[f64; 3]> => COORDINATE;
        /// Station with which it moves, in place of a position.
        #[serde(default)]
        pub follows: Option<String>;
        /// When it sends.
        #[serde(default)]
        pub kind: JammerKind;
        /// Transmit power at the antenna.
        pub tx_power_w: f64 => TX_POWER;
        /// Antenna gain; by default the radio's.
        #[serde(default)]
        pub antenna_gain_db: Option<f64> => GAIN;
        /// Height of its antenna above its position; by default the radio's.
        #[serde(default)]
        pub antenna_height_m: Option<f64> => ANTENNA_HEIGHT;
        /// Antenna with a pattern, in place of `antenna_gain_db`.
        #[serde(default)]
        pub antenna: Option<Directional>;
        /// Centre frequency of its channel, as wide as a station's.
        #[serde(default = "freq_mhz")]
        pub freq_mhz: u32 => FREQUENCY.by_default(FREQ_MHZ as f64);
        /// Whether it is switched on at the start; requests switch it.
        #[serde(default = "active")]
        pub active: bool;
        /// Model time before which it sends nothing.
        #[serde(default)]
        pub start_s: f64 => TIME;
        /// Model time from which on it sends nothing; by default the end of the run.
        #[serde(default)]
        pub stop_s: Option<f64> => TIME;
        /// Length of a burst of a "periodic" or "reactive" jammer.
        #[serde(default)]
        pub on_s: Option<f64> => SHORT_TIME;
        /// Pause between two bursts of a "periodic" jammer.
        #[serde(default)]
        pub off_s: Option<f64> => SHORT_TIME;
        /// Time from the start of a frame to the burst of a "reactive" jammer that senses it.
        #[serde(default = "jam_delay_us")]
        pub delay_us: f64 => JAM_DELAY;
    }
}

choices! {
    /// When a jammer sends ([`crate::medium`]).
    pub enum JammerKind {
        /// Always.
        Constant = "constant",
        /// In turn for `on_s` and not for `off_s`.
        Periodic = "periodic",
        /// For `on_s`, `delay_us` after it has sensed a frame.
        Reactive = "reactive",
    }
}

impl JammerConfig {
    /// Its power and antenna.
    pub fn antenna(&self) -> Change {
        Change {
            tx_power_w: Some(self.tx_power_w),
            antenna_gain_db: main_lobe_db(&self.antenna, self.antenna_gain_db),
            antenna_height_m: self.antenna_height_m,
        }
    }
}

/// Gain of an antenna with a pattern in its main lobe, else the one given, dB.
fn main_lobe_db(antenna: &Option<Directional>, given_db: Option<f64>) -> Option<f64> {
    antenna.as_ref().map(Directional::gain_db).or(given_db)
}

fn active() -> bool {
    true
}

fn jam_delay_us() -> f64 {
    JAM_DELAY.default.unwrap_or_default()
}

fn wlan0() -> String {
    "wlan0".into()
}

fn freq_mhz() -> u32 {
    FREQ_MHZ
}

keys! {
    /// A wall: a line on the ground plan, as high as any station.
    #[derive(Clone, Debug, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct WallConfig {
        /// One end: x, y.
        pub from: [f64; 2] => COORDINATE;
        /// The other end: x, y.
        pub to: [f64; 2] => COORDINATE;
        /// Loss of each path that crosses or touches the wall.
        pub loss_db: f64 => within(0.0, 300.0).of("dB");
    }
}

impl WallConfig {
    /// The wall as the propagation takes it.
    pub fn wall(&self) -> walls::Wall {
        walls::Wall { from: self.from, to: self.to, loss_db: self.loss_db }
    }
}

keys! {
    /// Radios of mac80211_hwsim.
    #[derive(Clone, Debug, Default, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct HwsimConfig {
        /// Mode of the stations' interfaces.
        #[serde(default)]
        pub mode: HwsimMode;
        /// Source of the rate of a data frame.
        #[serde(default)]
        pub rates: HwsimRates;
        /// Origin of the radios.
        #[serde(default)]
        pub radios: HwsimRadios;
    }
}

choices! {
    /// Kind of the stations' interfaces (NL80211_IFTYPE_*).
    pub enum HwsimMode {
        /// Independent BSS, the 802.11 ad hoc mode.
        Ibss = "ibss",
        /// Mesh BSS (802.11s).
        Mesh = "mesh",
        /// Outside the context of a BSS (802.11p): no beacons.
        Ocb = "ocb",
        /// None yet: hostapd, wpa_supplicant or iw in the station's namespace configure the interface.
        Managed = "managed",
    }
}

choices! {
    /// Source of the rate of a data frame.
    pub enum HwsimRates {
        /// `data_rate_bps` of the radio profile.
        Profile = "profile",
        /// mac80211's rate control, among the rates of the profile's PHY.
        Kernel = "kernel",
    }
}

choices! {
    /// Origin of the radios.
    pub enum HwsimRadios {
        /// The daemon creates the radios, moves them into their stations' namespaces and joins the network; they end with it.
        Made = "made",
        /// Another program created the radios in the daemon's namespace, moved and joined them; it also removes them.
        Found = "found",
    }
}

keys! {
    /// The error rate of a directed link, or of several by "*".
    #[derive(Clone, Debug, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct LinkConfig {
        /// Sending station, or "*" for any.
        pub from: String;
        /// Receiving station, or "*" for any.
        pub to: String;
        /// Probability of an error in a frame or byte.
        pub error_rate: f64 => ERROR_RATE;
        /// Unit of the error rate.
        #[serde(default)]
        pub unit: ErrorUnit;
        /// Frames that the error rate applies to.
        #[serde(default)]
        pub frames: ErrorFrames;
    }
}

choices! {
    /// Unit of an error rate.
    pub enum ErrorUnit {
        /// Probability of the loss of a frame.
        Frame = "frame",
        /// Probability of an error in each byte: a frame of n bytes is lost with 1 - (1 - rate)^n.
        Byte = "byte",
    }
}

choices! {
    /// The frames that an error rate applies to.
    pub enum ErrorFrames {
        /// Data frames, unicast and broadcast.
        Data = "data",
        /// RTS, CTS and ACK too, as ns-2's `IncomingErrProc` does.
        All = "all",
    }
}

keys! {
    /// A wired link, full duplex.
    #[derive(Clone, Debug, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct WireConfig {
        /// First end.
        pub a: WireEnd;
        /// Second end.
        pub b: WireEnd;
        /// Rate of each direction.
        pub rate_bps: u64 => within(1000.0, 1e11).of("bit/s");
        /// Delay of each direction.
        pub delay_us: u64 => within(0.0, 1e7).of("us");
        /// Maximum number of packets in the queue of each direction.
        #[serde(default = "queue_packets")]
        pub queue_packets: usize => QUEUE.by_default(QUEUE_PACKETS as f64);
    }
}
fn queue_packets() -> usize {
    QUEUE_PACKETS
}

keys! {
    /// One end of a wired link.
    #[derive(Clone, Debug, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct WireEnd {
        /// Name of the station or host.
        pub name: String;
        /// Network namespace of the interface.
        #[serde(default)]
        pub netns: Option<PathBuf>;
        /// Name of the interface; by default eth0.
        #[serde(default = "eth0")]
        pub ifname: String;
        /// MAC address of the interface.
        #[serde(with = "mac_text")]
        pub mac: [u8; 6];
    }
}
fn eth0() -> String {
    "eth0".into()
}

keys! {
    /// Files that the run writes, relative to `medium.json`; absent: not written.
    #[derive(Clone, Debug, Default, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct Outputs {
        /// The air log (`air.csv`, formats/air.md).
        #[serde(default)]
        pub air_log: Option<PathBuf>;
        /// The capture of the air (`air.pcapng`, formats/air.md).
        #[serde(default)]
        pub air_pcapng: Option<PathBuf>;
        /// The frames that each station decoded, each with its power there (`monitor.pcapng`, formats/air.md); with it, the air log
        /// has the column `heard_dbm`.
        #[serde(default)]
        pub monitor: Option<PathBuf>;
        /// The counters (`counters.json`, formats/air.md).
        #[serde(default)]
        pub counters: Option<PathBuf>;
        /// The tables of the rate controls, if any station sent by one (`rates.json`, formats/air.md).
        #[serde(default)]
        pub rates: Option<PathBuf>;
        /// The verdict (`verdict.json`, formats/air.md).
        #[serde(default)]
        pub verdict: Option<PathBuf>;
        /// Lateness and verdict of each second (`lateness.csv`, formats/air.md).
        #[serde(default)]
        pub lateness: Option<PathBuf>;
        /// The time of each radio in its states, by seconds (`radio-time.csv`, formats/air.md).
        #[serde(default)]
        pub radio_time: Option<PathBuf>;
        /// The paths of the stations, if requests moved them (`moved.csv`, formats/results.md).
        #[serde(default)]
        pub moved: Option<PathBuf>;
    }
}

keys! {
    /// A synthetic source of `sim`.
    #[derive(Clone, Debug, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct TrafficConfig {
        /// Sending station.
        pub from: String;
        /// Receiving station, or "*" for a broadcast.
        pub to: String;
        /// Timing of the packets.
        pub kind: TrafficKind;
        /// Length of each packet, with the headers of IP and UDP.
        pub bytes: u32 => within(28.0, (MAX_MSDU_BYTES - SNAP_LEN) as f64).of("bytes");
        /// Rate of a "cbr" source.
        #[serde(default)]
        pub rate_bps: Option<f64> => above(0.0).up_to(MAX_RATE_BPS).of("bit/s");
        /// Start of the source.
        #[serde(default)]
        pub start_s: f64 => TIME;
        /// End of the source; by default the end of the run.
        #[serde(default)]
        pub stop_s: Option<f64> => TIME;
        /// Stations of the path, both ends included; by default there is one hop.
        #[serde(default)]
        pub route: Vec<String>;
        /// Whether the gaps of a "cbr" source are random, uniform within +-50 %.
        #[serde(default)]
        pub jitter: bool;
        /// DSCP of its packets, which selects their access category with EDCA.
        #[serde(default)]
        pub dscp: u8 => up_to(63.0);
    }
}

choices! {
    /// Timing of the packets of a source.
    pub enum TrafficKind {
        /// A packet is always waiting.
        Saturated = "saturated",
        /// Constant bit rate: one packet every bytes * 8 / rate seconds.
        Cbr = "cbr",
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::phy::Radio;

    const PROFILE: &str = include_str!("../radios/ns2-dsss-2m.toml");

    /// A small valid configuration with `change` applied to its JSON.
    pub fn loaded(change: impl FnOnce(&mut serde_json::Value)) -> Result<Loaded, String> {
        let mut json = serde_json::json!({
            "format": FORMAT,
            "radio": "ns2-dsss-2m.toml",
            "stations": [
                {"name": "sta1", "mac": "02:00:00:00:00:01", "position": [0.0, 0.0, 0.0]},
                {"name": "sta2", "mac": "02:00:00:00:00:02", "position": [200.0, 0.0, 0.0]},
            ],
        });
        change(&mut json);
        let config = Config::parse(&json.to_string()).map_err(|e| e.to_string())?;
        let radio = Radio::parse(PROFILE, &config.radio_overrides).map_err(|e| e.to_string())?;
        Loaded::new(config, radio).map_err(|e| e.to_string())
    }

    fn refusal(change: impl FnOnce(&mut serde_json::Value)) -> String {
        loaded(change).unwrap_err()
    }

    #[test]
    fn the_keys_are_those_that_serde_reads() {
        let refused = serde_json::from_str::<Config>(r#"{"?": 1}"#).unwrap_err().to_string();
        let named: Vec<&str> = refused.split('`').skip(3).step_by(2).collect();
        assert_eq!(named, Config::KEYS.iter().map(|key| key.name).collect::<Vec<_>>());
    }

    #[test]
    fn thresholds_are_configuration_and_checked() {
        let read = |value| loaded(|j| j["verdict"] = value).map(|loaded| loaded.config.verdict);
        let refusal = |value| read(value).unwrap_err();
        assert_eq!(read(serde_json::json!({"late_us": 7})).unwrap().unwrap().late_us, 7);
        assert_eq!(read(serde_json::json!({})).unwrap(), Some(Thresholds::default()));
        assert_eq!(read(serde_json::json!(null)).unwrap(), None);
        assert_eq!(
            refusal(serde_json::json!({"late_ms": 7})),
            "key \"verdict.late_ms\": unknown key; did you mean late_us?"
        );
        assert_eq!(
            refusal(serde_json::json!({"late_us": "7"})),
            "key \"verdict.late_us\": \"7\" is of the wrong type; give a whole number in us"
        );
        assert_eq!(
            refusal(serde_json::json!({"void_late_share": 1.5})),
            "key \"verdict.void_late_share\": 1.5 is not between 0 and 1"
        );
        assert_eq!(
            refusal(serde_json::json!({"suspect_late_share": 0.5})),
            "key \"verdict.suspect_late_share\": 0.5 is above void_late_share 0.2; lower it"
        );
    }

    #[test]
    fn defaults_are_filled_in() {
        let l = loaded(|_| ()).unwrap();
        assert_eq!(l.config.queue.packets, 50);
        assert_eq!(l.config.interference, Interference::Ns2);
        assert_eq!(l.radio.data_rate_bps, 2_000_000);
    }

    #[test]
    fn radios_are_made_unless_the_configuration_declares_them_found() {
        let of =
            |text: &str| loaded(|j| j["hwsim"] = serde_json::from_str(text).unwrap()).unwrap().config.hwsim.unwrap();
        assert_eq!(of("{}").radios, HwsimRadios::Made);
        assert_eq!(of(r#"{"radios": "found", "rates": "kernel"}"#).radios, HwsimRadios::Found);
    }

    #[test]
    fn radios_of_the_kernel_have_the_mcs_of_ht_in_an_ad_hoc_network_and_no_aggregates() {
        let config = |profile: &str, overrides: &str, hwsim: &str| {
            let mac = "02:00:00:00:00:01";
            let stations = serde_json::json!([{"name": "sta1", "mac": mac, "position": [0.0, 0.0, 0.0]}]);
            let json = serde_json::json!({"format": FORMAT, "radio": "a.toml", "stations": stations});
            let mut config = Config::parse(&json.to_string()).unwrap();
            config.hwsim = serde_json::from_str(hwsim).unwrap();
            let mut radio = crate::phy::radio::tests::profile(profile);
            radio.aggregation = serde_json::from_str(overrides).unwrap();
            Loaded::new(config, radio).map(|_| ()).map_err(|e| e.to_string())
        };
        let ht = |hwsim| config("dot11n-ht20", "false", hwsim);
        assert_eq!((ht("null"), ht("{}")), (Ok(()), Ok(())));
        for without_ht in [r#"{"mode": "mesh"}"#, r#"{"mode": "managed"}"#, r#"{"radios": "found"}"#] {
            assert!(
                ht(without_ht).unwrap_err().starts_with("key \"radio\": dot11n-ht20 has an MCS, which"),
                "{without_ht}"
            );
        }
        let vht = config("dot11ac-vht80", "false", "{}").unwrap_err();
        assert!(vht.starts_with("key \"radio\": the medium does not give the modes of dot11ac-vht80"), "{vht}");
        let he = config("dot11ax-he20", "false", "{}").unwrap_err();
        assert!(he.starts_with("key \"radio\": the medium does not give the modes of dot11ax-he20"), "{he}");
        let aggregates = config("dot11n-ht20", "true", "{}").unwrap_err();
        assert!(aggregates.starts_with("key \"aggregation\": radios of mac80211_hwsim"), "{aggregates}");
    }

    #[test]
    fn an_override_replaces_one_key_of_the_profile() {
        let l = loaded(|j| j["radio_overrides"] = serde_json::json!({"rts_threshold_bytes": 3000})).unwrap();
        assert_eq!((l.radio.rts_threshold_bytes, l.radio.slot_us), (3000, 20));
        let l = loaded(|j| j["radio_overrides"] = serde_json::json!({"rules": {"cts_holds": false}})).unwrap();
        assert!(!l.radio.rules.cts_holds && l.radio.rules.eifs_as_nav);
    }

    #[test]
    fn an_integer_key_of_the_radio_takes_a_float_of_integral_value() {
        let l = loaded(|j| j["radio_overrides"] = serde_json::json!({"data_rate_bps": 1e6, "frequency_hz": 2.4e9}))
            .unwrap();
        assert_eq!((l.radio.data_rate_bps, l.radio.frequency_hz), (1_000_000, 2.4e9));
        let refused = refusal(|j| j["radio_overrides"] = serde_json::json!({"data_rate_bps": 1e6 + 0.5}));
        assert_eq!(refused, "key \"data_rate_bps\": 1000000.5 is of the wrong type; give a whole number in bit/s");
    }

    /// A value that no key takes, in the place of each key: the refusal names the key, and no type of Rust.
    #[test]
    fn no_refusal_has_words_of_the_parser() {
        let values =
            [serde_json::json!("?"), serde_json::json!(-0.5), serde_json::json!([[]]), serde_json::json!({"?": 1})];
        for (key, value) in Config::KEYS.iter().flat_map(|key| values.iter().map(move |value| (key.name, value))) {
            let refused =
                loaded(|j| j[key] = value.clone()).map(|_| ()).err().unwrap_or_else(|| format!("key \"{key}"));
            assert!(
                refused.starts_with(&format!("key \"{key}")) || key == "radio_overrides",
                "{key} = {value}: {refused}"
            );
            let of_the_parser = ["expected", "invalid", "field", "variant", "struct", "enum", "line 1", "\n"];
            assert!(of_the_parser.iter().all(|word| !refused.contains(word)), "{key} = {value}: {refused}");
        }
    }

    #[test]
    fn overrides_are_a_table_without_null() {
        let refused = |value| refusal(|j| j["radio_overrides"] = value);
        assert_eq!(
            refused(serde_json::json!(3)),
            "key \"radio_overrides\": 3 is of the wrong type; give a table with keys of the profile"
        );
        assert_eq!(
            refused(serde_json::json!({"rules": {"cts_holds": null}})),
            "key \"radio_overrides.rules.cts_holds\": null is no value; leave the key out"
        );
    }

    #[test]
    fn mistakes_are_named_with_their_key() {
        assert_eq!(refusal(|j| j["quue"] = 1.into()), "key \"quue\": unknown key; did you mean queue?");
        assert_eq!(refusal(|j| j["mcs"] = 3.into()), "key \"mcs\": is a key of the radio; give it in radio_overrides");
        assert!(refusal(|j| j["stations"] = serde_json::json!([])).contains("key \"stations\": 0 stations"));
        assert!(refusal(|j| j["stations"][1]["name"] = "sta1".into()).contains("\"sta1\" is already station 0"));
        assert_eq!(
            refusal(|j| j["stations"][0]["mac"] = "02:0".into()),
            "key \"stations[0].mac\": \"02:0\" is of the wrong type; give a MAC address like \"02:00:00:00:00:01\""
        );
        assert!(refusal(|j| j["stations"][0]["position"][0] = 1e9.into()).contains("stations[0].position"));
        assert_eq!(
            refusal(|j| j["radio_overrides"] = serde_json::json!({"slto_us": 3})),
            "key \"slto_us\": unknown key; did you mean slot_us?"
        );
        assert!(refusal(|j| j["links"] = serde_json::json!([{"from": "sta9", "to": "*", "error_rate": 0.1}]))
            .contains("no station \"sta9\""));
        let cbr = |key: &str, value: f64| {
            let mut flow =
                serde_json::json!({"from": "sta1", "to": "sta2", "kind": "cbr", "bytes": 100, "rate_bps": 1e5});
            flow[key] = value.into();
            refusal(|j| j["traffic"] = serde_json::json!([flow]))
        };
        assert!(cbr("rate_bps", 1e18).contains("key \"traffic[0].rate_bps\""), "it would send for ever at one instant");
        assert!(cbr("start_s", -1.0).contains("key \"traffic[0].start_s\": -1 is not between"));
        let loss = serde_json::json!([{"from": "sta1", "to": "sta2", "loss_db": -1e308}]);
        assert!(refusal(|j| j["propagation"] = serde_json::json!({"model": "matrix", "matrix": loss}))
            .contains("propagation.matrix[0].loss_db"));
        assert!(refusal(|j| j["warmup_s"] = 1e300.into()).contains("key \"warmup_s\""));
        assert!(refusal(|j| j["propagation"] = serde_json::json!({"model": "disc", "range_m": 5.0, "sense_m": 1.0}))
            .contains("propagation.sense_m"));
        let wall = serde_json::json!([{"from": [0.0, 0.0], "to": [0.0, 9.0], "loss_db": 6.0}]);
        let walled = |propagation| loaded(|j| (j["walls"], j["propagation"]) = (wall.clone(), propagation)).map(|_| ());
        assert_eq!(walled(serde_json::json!({"model": "itu-indoor"})), Ok(()));
        assert!(walled(serde_json::json!({"model": "disc", "range_m": 5.0, "sense_m": 9.0}))
            .unwrap_err()
            .starts_with("key \"walls\": walls have no effect under disc"));
        assert!(refusal(|j| j["walls"] = serde_json::json!([{"from": [0.0, 0.0], "to": [0.0, 1e9], "loss_db": 6.0}]))
            .contains("walls[0].to[1]"));
        let block = |speed| serde_json::json!({"model": "rayleigh", "coherence": "block", "speed_mps": speed});
        assert_eq!(loaded(|j| j["fading"] = block(Some(1.0))).map(|_| ()), Ok(()));
        assert_eq!(
            refusal(|j| j["fading"] = block(None)),
            "key \"fading.coherence\": \"block\" needs speed_mps, from which its length follows; add it"
        );
        assert_eq!(
            refusal(|j| j["propagation"] = serde_json::json!({"model": "trace"})),
            "key \"propagation.file\": is missing; add it"
        );
        let no_rate = serde_json::json!({"data_rate_bps": 6e6, "rate_control": "arf"});
        assert!(refusal(|j| j["radio_overrides"] = no_rate).contains("is no rate of this PHY"));
    }
}
