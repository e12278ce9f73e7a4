//! `medium.json` (formats/medium.md): parsed, checked, every default filled in. Unknown keys are errors.
//!
//! Every error is one line: key, what is wrong, what would be right. Whoever reads the file puts its name before it.

use crate::phy::propagation::Model;
use crate::phy::Radio;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::fmt;
use std::path::PathBuf;

pub const FORMAT: &str = "manet-medium/1";
/// Station numbers are 16 bits on the way through the medium; far beyond what one host can run.
pub const MAX_STATIONS: usize = 2000;
/// Packets in the interface queue of a radio of mac80211_hwsim, which throws frames away from 200 on.
pub const MAX_HWSIM_QUEUE: usize = 90;
/// Of a synthetic source.
const MAX_RATE_BPS: f64 = 1e10;
/// Beyond this a time is a mistake (as in a trace).
const LONGEST_S: f64 = 4e6;

/// Why a configuration is refused: one line.
#[derive(Debug)]
pub enum ConfigError {
    /// Not an object with the keys and types of `medium.json`: serde's words.
    Json(serde_json::Error),
    /// A value out of range, or a name that does not exist: the key, what is wrong, what would be right.
    Value(String),
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Json(e) => e.fmt(f),
            Self::Value(what) => f.write_str(what),
        }
    }
}
impl std::error::Error for ConfigError {}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    pub format: String,
    #[serde(default = "one")]
    pub seed: u64,
    pub radio: PathBuf,
    #[serde(default)]
    pub radio_overrides: toml::Table,
    #[serde(default)]
    pub propagation: Model,
    #[serde(default)]
    pub interference: Interference,
    #[serde(default)]
    pub queue: QueueConfig,
    pub stations: Vec<StationConfig>,
    /// The stations' radios are mac80211_hwsim's; absent: TAPs.
    #[serde(default)]
    pub hwsim: Option<HwsimConfig>,
    #[serde(default)]
    pub links: Vec<LinkConfig>,
    #[serde(default)]
    pub trace: Option<PathBuf>,
    #[serde(default)]
    pub wires: Vec<WireConfig>,
    #[serde(default)]
    pub outputs: Outputs,
    #[serde(default)]
    pub control_socket: Option<PathBuf>,
    #[serde(default)]
    pub feedback_dir: Option<PathBuf>,
    #[serde(default)]
    pub traffic: Vec<TrafficConfig>,
    #[serde(default)]
    pub duration_s: Option<f64>,
    #[serde(default)]
    pub warmup_s: f64,
    /// Thresholds of the verdict; see `crate::verdict`.
    #[serde(default)]
    pub verdict: Option<serde_json::Value>,
}

impl Config {
    /// The text of a `medium.json`; its values are checked by [`Loaded::new`].
    pub fn parse(text: &str) -> Result<Self, ConfigError> {
        serde_json::from_str(text).map_err(ConfigError::Json)
    }
}

fn one() -> u64 {
    1
}

/// How a reception fares among others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Interference {
    #[default]
    Ns2,
    Sinr,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QueueConfig {
    #[serde(default = "fifty")]
    pub packets: usize,
    #[serde(default = "yes")]
    pub control_first: bool,
}
fn fifty() -> usize {
    50
}
fn yes() -> bool {
    true
}
impl Default for QueueConfig {
    fn default() -> Self {
        Self { packets: 50, control_first: true }
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StationConfig {
    pub name: String,
    #[serde(with = "mac_text")]
    pub mac: [u8; 6],
    pub position: [f64; 3],
    #[serde(default)]
    pub netns: Option<PathBuf>,
    #[serde(default = "wlan0")]
    pub ifname: String,
}
fn wlan0() -> String {
    "wlan0".into()
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HwsimConfig {
    #[serde(default)]
    pub mode: HwsimMode,
    #[serde(default)]
    pub rates: HwsimRates,
    #[serde(default)]
    pub radios: HwsimRadios,
}

/// What the stations' interfaces are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum HwsimMode {
    #[default]
    Ibss,
    /// 802.11s.
    Mesh,
    /// Outside the context of a BSS: no beacons.
    Ocb,
}

/// Who chooses the rate of a data frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum HwsimRates {
    /// The radio profile has one.
    #[default]
    Profile,
    /// mac80211's rate control, among the rates of the profile's PHY.
    Kernel,
}

/// Where the radios come from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum HwsimRadios {
    /// We make, move and join them, and they go with us.
    #[default]
    Made,
    /// They are in their stations' namespaces, joined; who made them, in our namespace, takes them away.
    Found,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinkConfig {
    pub from: String,
    pub to: String,
    pub error_rate: f64,
    #[serde(default)]
    pub unit: ErrorUnit,
    #[serde(default)]
    pub frames: ErrorFrames,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ErrorUnit {
    #[default]
    Frame,
    Byte,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ErrorFrames {
    /// Data frames, unicast and broadcast.
    #[default]
    Data,
    /// RTS, CTS and ACK too, as ns-2's `IncomingErrProc` does.
    All,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WireConfig {
    pub a: WireEnd,
    pub b: WireEnd,
    pub rate_bps: u64,
    pub delay_us: u64,
    #[serde(default = "fifty")]
    pub queue_packets: usize,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WireEnd {
    pub name: String,
    #[serde(default)]
    pub netns: Option<PathBuf>,
    #[serde(default = "eth0")]
    pub ifname: String,
    #[serde(with = "mac_text")]
    pub mac: [u8; 6],
}
fn eth0() -> String {
    "eth0".into()
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Outputs {
    #[serde(default)]
    pub air_log: Option<PathBuf>,
    #[serde(default)]
    pub air_pcapng: Option<PathBuf>,
    #[serde(default)]
    pub counters: Option<PathBuf>,
    #[serde(default)]
    pub verdict: Option<PathBuf>,
    #[serde(default)]
    pub moved: Option<PathBuf>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrafficConfig {
    pub from: String,
    pub to: String,
    pub kind: TrafficKind,
    pub bytes: u32,
    #[serde(default)]
    pub rate_bps: Option<f64>,
    #[serde(default)]
    pub start_s: f64,
    #[serde(default)]
    pub stop_s: Option<f64>,
    #[serde(default)]
    pub route: Vec<String>,
    #[serde(default)]
    pub jitter: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TrafficKind {
    Saturated,
    Cbr,
}

/// A checked configuration with its radio: all names exist, all values are in range.
#[derive(Clone, Debug)]
pub struct Loaded {
    pub config: Config,
    pub radio: Radio,
}

impl Loaded {
    /// Checks `config`. `radio`: of the profile that it names, with its overrides.
    pub fn new(config: Config, radio: Radio) -> Result<Self, ConfigError> {
        let loaded = Self { config, radio };
        loaded.check().map_err(ConfigError::Value)?;
        Ok(loaded)
    }

    /// In the order of the configuration.
    pub fn station_names(&self) -> Vec<&str> {
        self.config.stations.iter().map(|s| s.name.as_str()).collect()
    }

    pub fn station_index(&self) -> HashMap<&str, usize> {
        self.config.stations.iter().enumerate().map(|(i, s)| (s.name.as_str(), i)).collect()
    }

    fn check(&self) -> Result<(), String> {
        let c = &self.config;
        if c.format != FORMAT {
            return Err(format!("key \"format\": \"{}\" is not \"{FORMAT}\"", c.format));
        }
        self.check_stations()?;
        if !(1..=100_000).contains(&c.queue.packets) {
            return Err(format!("key \"queue.packets\": {} is not between 1 and 100000", c.queue.packets));
        }
        let most = MAX_HWSIM_QUEUE;
        if c.hwsim.is_some() && c.queue.packets > most {
            return Err(format!(
                "key \"queue.packets\": {} is above {most}, and hwsim throws away what waits beyond 200",
                c.queue.packets
            ));
        }
        check_model(&c.propagation)?;
        self.check_links()?;
        for w in &c.wires {
            if w.rate_bps == 0 || w.queue_packets == 0 {
                return Err("keys \"wires.rate_bps\" and \"wires.queue_packets\" must be above 0".into());
            }
        }
        self.check_traffic()?;
        check_time("duration_s", c.duration_s.unwrap_or(1.0))?;
        check_time("warmup_s", c.warmup_s)
    }

    fn check_name(&self, key: &str, name: &str) -> Result<(), String> {
        if self.config.stations.iter().any(|s| s.name == name) {
            return Ok(());
        }
        Err(format!("key \"{key}\": there is no station \"{name}\""))
    }

    fn check_name_or_star(&self, key: &str, name: &str) -> Result<(), String> {
        if name == "*" {
            Ok(())
        } else {
            self.check_name(key, name)
        }
    }

    fn check_links(&self) -> Result<(), String> {
        if let Model::Matrix { matrix } = &self.config.propagation {
            for e in matrix {
                self.check_name("propagation.matrix.from", &e.from)?;
                self.check_name("propagation.matrix.to", &e.to)?;
                if !(0.0..=1000.0).contains(&e.loss_db) {
                    return Err(format!("key \"propagation.matrix.loss_db\": {} is not between 0 and 1000", e.loss_db));
                }
            }
        }
        for l in &self.config.links {
            self.check_name_or_star("links.from", &l.from)?;
            self.check_name_or_star("links.to", &l.to)?;
            if !(0.0..=1.0).contains(&l.error_rate) {
                return Err(format!("key \"links.error_rate\": {} is not between 0 and 1", l.error_rate));
            }
        }
        Ok(())
    }

    fn check_traffic(&self) -> Result<(), String> {
        for t in &self.config.traffic {
            self.check_name("traffic.from", &t.from)?;
            self.check_name_or_star("traffic.to", &t.to)?;
            t.route.iter().try_for_each(|s| self.check_name("traffic.route", s))?;
            if !(28..=2304).contains(&t.bytes) {
                return Err(format!("key \"traffic.bytes\": {} is not between 28 and 2304", t.bytes));
            }
            // faster, and the gap between two packets would round to nothing
            if t.kind == TrafficKind::Cbr && !t.rate_bps.is_some_and(|r| r > 0.0 && r <= MAX_RATE_BPS) {
                return Err(format!(
                    "key \"traffic.rate_bps\": a cbr source needs a rate above 0, at most {MAX_RATE_BPS:e} bit/s"
                ));
            }
            if !t.route.is_empty() && (t.route.first() != Some(&t.from) || t.route.last() != Some(&t.to)) {
                return Err(format!("key \"traffic.route\": must begin with \"{}\" and end with \"{}\"", t.from, t.to));
            }
            check_time("traffic.start_s", t.start_s)?;
            check_time("traffic.stop_s", t.stop_s.unwrap_or(0.0))?;
        }
        Ok(())
    }

    fn check_stations(&self) -> Result<(), String> {
        let stations = &self.config.stations;
        if stations.is_empty() || stations.len() > MAX_STATIONS {
            return Err(format!("key \"stations\": {} stations; 1 to {MAX_STATIONS} are possible", stations.len()));
        }
        let (mut names, mut macs) = (HashMap::new(), HashMap::new());
        for (i, s) in stations.iter().enumerate() {
            if s.name.is_empty()
                || s.name == "*"
                || s.name.contains(|c: char| c == ',' || c.is_whitespace() || c == '/')
            {
                return Err(format!(
                    "key \"stations[{i}].name\": \"{}\" is no name (no commas, slashes or blanks)",
                    s.name
                ));
            }
            if let Some(first) = names.insert(&s.name, i) {
                return Err(format!("key \"stations[{i}].name\": \"{}\" is already station {first}", s.name));
            }
            if let Some(first) = macs.insert(s.mac, i) {
                return Err(format!("key \"stations[{i}].mac\": already the address of station {first}"));
            }
            if s.mac[0] & 1 == 1 {
                return Err(format!("key \"stations[{i}].mac\": a group address cannot be a station's"));
            }
            if s.position.iter().any(|v| !v.is_finite() || v.abs() > 1e7) {
                return Err(format!(
                    "key \"stations[{i}].position\": {:?} is not finite metres within 10,000 km",
                    s.position
                ));
            }
        }
        Ok(())
    }
}

fn check_time(key: &str, seconds: f64) -> Result<(), String> {
    if (0.0..=LONGEST_S).contains(&seconds) {
        return Ok(());
    }
    Err(format!("key \"{key}\": {seconds} is not a time in seconds from 0 to {LONGEST_S:e}"))
}

fn check_model(model: &Model) -> Result<(), String> {
    let positive = |key: &str, v: f64| {
        if v.is_finite() && v > 0.0 {
            Ok(())
        } else {
            Err(format!("key \"propagation.{key}\": {v} is not above 0"))
        }
    };
    match model {
        Model::LogDistance { exponent, reference_m } => {
            positive("exponent", *exponent)?;
            positive("reference_m", *reference_m)
        }
        Model::Shadowing { exponent, reference_m, sigma_db } => {
            positive("exponent", *exponent)?;
            positive("reference_m", *reference_m)?;
            if (0.0..=30.0).contains(sigma_db) {
                Ok(())
            } else {
                Err(format!("key \"propagation.sigma_db\": {sigma_db} is not between 0 and 30"))
            }
        }
        Model::Disc { range_m, sense_m } => {
            positive("range_m", *range_m)?;
            if sense_m >= range_m {
                Ok(())
            } else {
                Err(format!("key \"propagation.sense_m\": {sense_m} is below range_m {range_m}"))
            }
        }
        _ => Ok(()),
    }
}

/// MAC addresses as `02:00:00:00:00:01`.
pub mod mac_text {
    use serde::{de::Error, Deserialize, Deserializer, Serializer};

    pub fn format(mac: [u8; 6]) -> String {
        mac.map(|b| format!("{b:02x}")).join(":")
    }

    pub fn parse(text: &str) -> Option<[u8; 6]> {
        let mut mac = [0; 6];
        let mut parts = text.split(':');
        for byte in &mut mac {
            let part = parts.next().filter(|p| p.len() == 2 && p.bytes().all(|b| b.is_ascii_hexdigit()))?;
            *byte = u8::from_str_radix(part, 16).ok()?;
        }
        parts.next().is_none().then_some(mac)
    }

    pub fn serialize<S: Serializer>(mac: &[u8; 6], s: S) -> Result<S::Ok, S::Error> {
        s.serialize_str(&format(*mac))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<[u8; 6], D::Error> {
        let text = String::deserialize(d)?;
        parse(&text).ok_or_else(|| D::Error::custom(format!("\"{text}\" is no MAC address like 02:00:00:00:00:01")))
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;

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
    fn defaults_are_filled_in() {
        let l = loaded(|_| ()).unwrap();
        assert_eq!(l.config.queue.packets, 50);
        assert_eq!(l.config.interference, Interference::Ns2);
        assert_eq!(l.radio.data_rate_bps, 2_000_000);
    }

    #[test]
    fn radios_are_made_where_nobody_says_that_they_are_there() {
        let of =
            |text: &str| loaded(|j| j["hwsim"] = serde_json::from_str(text).unwrap()).unwrap().config.hwsim.unwrap();
        assert_eq!(of("{}").radios, HwsimRadios::Made);
        assert_eq!(of(r#"{"radios": "found", "rates": "kernel"}"#).radios, HwsimRadios::Found);
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
        assert!(refused.contains("expected u64") && refused.contains("data_rate_bps"), "{refused}");
    }

    #[test]
    fn mistakes_are_named_with_their_key() {
        assert!(refusal(|j| j["quue"] = 1.into()).contains("unknown field `quue`"));
        assert!(refusal(|j| j["stations"] = serde_json::json!([])).contains("key \"stations\": 0 stations"));
        assert!(refusal(|j| j["stations"][1]["name"] = "sta1".into()).contains("\"sta1\" is already station 0"));
        assert!(refusal(|j| j["stations"][0]["mac"] = "02:0".into()).contains("is no MAC address"));
        assert!(refusal(|j| j["stations"][0]["position"][0] = 1e9.into()).contains("stations[0].position"));
        assert!(
            refusal(|j| j["radio_overrides"] = serde_json::json!({"slto_us": 3})).contains("unknown field `slto_us`")
        );
        assert!(refusal(|j| j["links"] = serde_json::json!([{"from": "sta9", "to": "*", "error_rate": 0.1}]))
            .contains("no station \"sta9\""));
        let cbr = |key: &str, value: f64| {
            let mut flow =
                serde_json::json!({"from": "sta1", "to": "sta2", "kind": "cbr", "bytes": 100, "rate_bps": 1e5});
            flow[key] = value.into();
            refusal(|j| j["traffic"] = serde_json::json!([flow]))
        };
        assert!(cbr("rate_bps", 1e18).contains("key \"traffic.rate_bps\""), "it would send for ever at one instant");
        assert!(cbr("start_s", -1.0).contains("key \"traffic.start_s\": -1 is not a time"));
        let loss = serde_json::json!([{"from": "sta1", "to": "sta2", "loss_db": -1e308}]);
        assert!(refusal(|j| j["propagation"] = serde_json::json!({"model": "matrix", "matrix": loss}))
            .contains("propagation.matrix.loss_db"));
        assert!(refusal(|j| j["warmup_s"] = 1e300.into()).contains("key \"warmup_s\""));
        assert!(refusal(|j| j["propagation"] = serde_json::json!({"model": "disc", "range_m": 5.0, "sense_m": 1.0}))
            .contains("propagation.sense_m"));
    }
}
