//! A configuration with its radio, and the checks that the declarations of the keys cannot state: names, pairs of keys.

use super::{
    Config, ConfigError, Discipline, HwsimConfig, HwsimMode, HwsimRadios, JammerConfig, JammerKind, TrafficKind,
    FORMAT, MAX_HWSIM_QUEUE, MAX_JAMMERS, MAX_STATIONS,
};
use crate::mac::fq_codel::LIMIT_PACKETS;
use crate::phy::fading::Fading;
use crate::phy::pattern::Directional;
use crate::phy::propagation::Model;
use crate::phy::radio::Modulation;
use crate::phy::{Measured, Radio};
use crate::run_verdict::Thresholds;
use manet_engine::keys::{self, Declared};
use std::collections::HashMap;
use std::sync::Arc;

/// A checked configuration with its radio: all names exist, all values are in range.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// The configuration with every default filled in.
    pub config: Config,
    /// The radio profile with its overrides.
    pub radio: Radio,
    /// Contents of the file of links of the propagation model trace. Without it that model has no links.
    pub measured: Option<Arc<Measured>>,
}

impl Loaded {
    /// Checks `config`. `radio`: the profile that it names, with its overrides.
    ///
    /// # Errors
    /// [`ConfigError::Limits`] or [`ConfigError::Value`].
    pub fn new(config: Config, radio: Radio) -> Result<Self, ConfigError> {
        let loaded = Self { config, radio, measured: None };
        loaded.check()?;
        Ok(loaded)
    }

    /// Names of the stations in the order of the configuration.
    pub fn station_names(&self) -> Vec<&str> {
        self.config.stations.iter().map(|s| s.name.as_str()).collect()
    }

    /// Names by the numbers of the air log: the stations, then the jammers.
    pub fn sender_names(&self) -> Vec<&str> {
        self.station_names().into_iter().chain(self.config.jammers.iter().map(|j| j.name.as_str())).collect()
    }

    /// Number of each station by name.
    pub fn station_index(&self) -> HashMap<&str, usize> {
        self.config.stations.iter().enumerate().map(|(i, s)| (s.name.as_str(), i)).collect()
    }

    /// The station that each further radio belongs to, by number (`stations[].node`).
    pub fn nodes(&self) -> Vec<Option<usize>> {
        let index = self.station_index();
        self.config.stations.iter().map(|s| s.node.as_deref().and_then(|node| index.get(node).copied())).collect()
    }

    fn check(&self) -> Result<(), ConfigError> {
        let c = &self.config;
        if c.format != FORMAT {
            return Err(format!("key \"format\": \"{}\" is not \"{FORMAT}\"", c.format).into());
        }
        self.check_stations()?;
        self.check_jammers()?;
        keys::check(Config::KEYS, c)?;
        if c.hwsim.is_some() && c.queue.discipline == Discipline::FqCodel {
            return Err(format!(
                "key \"queue.discipline\": \"fq-codel\" may hold {LIMIT_PACKETS} packets, and hwsim throws away what waits beyond \
                 200; use \"drop-tail\", or stations with TAPs"
            )
            .into());
        }
        let max = MAX_HWSIM_QUEUE;
        if c.hwsim.is_some() && c.queue.packets > max {
            return Err(format!(
                "key \"queue.packets\": {} is above {max}, and hwsim throws away what waits beyond 200",
                c.queue.packets
            )
            .into());
        }
        if c.hwsim.is_some() && self.radio.is_edca() {
            return Err(ConfigError::Value(
                "key \"access\": \"edca\" is for stations with TAPs; mac80211 hands the frames of its radios to the medium one queue after \
                 another, with headers of its own; leave it out"
                    .to_owned(),
            ));
        }
        if let Some(hwsim) = &c.hwsim {
            self.check_hwsim_radio(hwsim)?;
        }
        check_model(&c.propagation)?;
        if !c.walls.is_empty() && !c.propagation.has_paths() {
            return Err(format!("key \"walls\": {}", Model::WITHOUT_PATHS).into());
        }
        if c.fading.lacks_speed() {
            return Err(format!("key \"fading.coherence\": {}", Fading::NO_LENGTH).into());
        }
        c.verdict.iter().try_for_each(check_thresholds)?;
        self.check_links()?;
        self.check_traffic()
    }

    fn check_hwsim_radio(&self, hwsim: &HwsimConfig) -> Result<(), ConfigError> {
        let name = &self.radio.name;
        if !matches!(self.radio.modulation, Modulation::Dsss | Modulation::Ofdm | Modulation::Ht) {
            return Err(format!(
                "key \"radio\": the medium does not give the modes of {name} to radios of mac80211_hwsim; use a profile of \
                 802.11b, g, a or n, or stations with TAPs"
            )
            .into());
        }
        let joins_with_ht = hwsim.mode == HwsimMode::Ibss && hwsim.radios == HwsimRadios::Made;
        if self.radio.modulation == Modulation::Ht && !joins_with_ht {
            return Err(format!(
                "key \"radio\": {name} has an MCS, which only the medium's own hwsim radios of an ad hoc network have \
                 (mode \"ibss\"); use a profile of 802.11b, g or a"
            )
            .into());
        }
        if self.radio.aggregation_limits().is_some() {
            return Err(ConfigError::Value(
                "key \"aggregation\": radios of mac80211_hwsim send each frame by itself; set aggregation = false, or take \
                 stations with TAPs"
                    .into(),
            ));
        }
        Ok(())
    }

    fn check_name(&self, key: &str, name: &str) -> Result<(), ConfigError> {
        if self.config.stations.iter().any(|s| s.name == name) {
            return Ok(());
        }
        Err(format!("key \"{key}\": there is no station \"{name}\"").into())
    }

    fn check_name_or_star(&self, key: &str, name: &str) -> Result<(), ConfigError> {
        if name == "*" {
            Ok(())
        } else {
            self.check_name(key, name)
        }
    }

    fn check_links(&self) -> Result<(), ConfigError> {
        if let Model::Matrix { matrix } = &self.config.propagation {
            for (key, name) in matrix.iter().flat_map(|e| [("from", &e.from), ("to", &e.to)]) {
                if self.sender_names().iter().all(|known| known != name) {
                    self.check_name(&format!("propagation.matrix.{key}"), name)?;
                }
            }
        }
        for l in &self.config.links {
            self.check_name_or_star("links.from", &l.from)?;
            self.check_name_or_star("links.to", &l.to)?;
        }
        Ok(())
    }

    fn check_traffic(&self) -> Result<(), ConfigError> {
        for t in &self.config.traffic {
            self.check_name("traffic.from", &t.from)?;
            self.check_name_or_star("traffic.to", &t.to)?;
            t.route.iter().try_for_each(|s| self.check_name("traffic.route", s))?;
            if t.kind == TrafficKind::Cbr && t.rate_bps.is_none() {
                return Err(ConfigError::Value("key \"traffic.rate_bps\": a cbr source needs a rate".to_owned()));
            }
            if !t.route.is_empty() && (t.route.first() != Some(&t.from) || t.route.last() != Some(&t.to)) {
                return Err(
                    format!("key \"traffic.route\": must begin with \"{}\" and end with \"{}\"", t.from, t.to).into()
                );
            }
        }
        Ok(())
    }

    fn check_stations(&self) -> Result<(), ConfigError> {
        let stations = &self.config.stations;
        if stations.is_empty() || stations.len() > MAX_STATIONS {
            return Err(
                format!("key \"stations\": {} stations; 1 to {MAX_STATIONS} are possible", stations.len()).into()
            );
        }
        let (mut names, mut macs) = (HashMap::new(), HashMap::new());
        for (i, s) in stations.iter().enumerate() {
            check_is_name(&format!("stations[{i}].name"), &s.name)?;
            if let Some(first) = names.insert(&s.name, i) {
                return Err(format!("key \"stations[{i}].name\": \"{}\" is already station {first}", s.name).into());
            }
            if let Some(first) = macs.insert(s.mac, i) {
                return Err(format!("key \"stations[{i}].mac\": already the address of station {first}").into());
            }
            if !s.antenna().is_empty() && self.config.propagation.has_own_ranges() {
                return Err(format!("key \"stations[{i}]\": {}", Model::OWN_RANGES).into());
            }
            check_antenna(&format!("stations[{i}]"), s.antenna.as_ref(), s.antenna_gain_db)?;
            if let Some(node) = &s.node {
                if !stations[..i].iter().any(|other| other.name == *node && other.node.is_none()) {
                    return Err(format!("key \"stations[{i}].node\": no station \"{node}\" is above this one").into());
                }
            }
            if s.mac[0] & 1 == 1 {
                return Err(format!("key \"stations[{i}].mac\": a group address cannot be a station's").into());
            }
        }
        Ok(())
    }

    fn check_jammers(&self) -> Result<(), ConfigError> {
        let Config { stations, jammers, propagation, .. } = &self.config;
        if jammers.len() > MAX_JAMMERS {
            return Err(
                format!("key \"jammers\": {} jammers; at most {MAX_JAMMERS} are possible", jammers.len()).into()
            );
        }
        if !jammers.is_empty() && propagation.has_own_ranges() {
            return Err(format!("key \"jammers\": {}", Model::OWN_RANGES).into());
        }
        if !jammers.is_empty() && matches!(propagation, Model::Trace { .. }) {
            let text = "key \"jammers\": the model trace has losses between stations only; use another model, or leave the jammers out";
            return Err(ConfigError::Value(text.to_owned()));
        }
        for (i, jammer) in jammers.iter().enumerate() {
            let key = format!("jammers[{i}]");
            check_is_name(&format!("{key}.name"), &jammer.name)?;
            let taken = stations.iter().map(|s| &s.name).chain(jammers[..i].iter().map(|j| &j.name));
            if taken.into_iter().any(|name| *name == jammer.name) {
                return Err(format!("key \"{key}.name\": \"{}\" is already a station or jammer", jammer.name).into());
            }
            match (&jammer.follows, jammer.position) {
                (Some(station), None) => self.check_name(&format!("{key}.follows"), station)?,
                (None, Some(_)) => {}
                _ => return Err(format!("key \"{key}\": needs either a position or follows; give one of them").into()),
            }
            check_antenna(&key, jammer.antenna.as_ref(), jammer.antenna_gain_db)?;
            check_kind(&key, jammer)?;
        }
        Ok(())
    }
}

fn check_is_name(key: &str, name: &str) -> Result<(), ConfigError> {
    if name.is_empty() || name == "*" || name.contains(|c: char| c == ',' || c.is_whitespace() || c == '/') {
        return Err(format!("key \"{key}\": \"{name}\" is no name (no commas, slashes or blanks)").into());
    }
    Ok(())
}

/// `key`: the table that the antenna is in.
fn check_antenna(key: &str, antenna: Option<&Directional>, gain_db: Option<f64>) -> Result<(), ConfigError> {
    if antenna.is_some() && gain_db.is_some() {
        return Err(format!("key \"{key}.antenna_gain_db\": antenna has a gain; leave one of them out").into());
    }
    match antenna.and_then(Directional::mistake) {
        Some(mistake) => Err(format!("key \"{key}.antenna.{mistake}").into()),
        None => Ok(()),
    }
}

/// The keys of a jammer that its kind needs, and those that it does not have.
fn check_kind(key: &str, jammer: &JammerConfig) -> Result<(), ConfigError> {
    let JammerConfig { kind, on_s, off_s, start_s, stop_s, .. } = jammer;
    let (name, needs_on, needs_off) = match kind {
        JammerKind::Constant => ("constant", false, false),
        JammerKind::Periodic => ("periodic", true, true),
        JammerKind::Reactive => ("reactive", true, false),
    };
    for (part, given, needed) in [("on_s", on_s, needs_on), ("off_s", off_s, needs_off)] {
        match (given, needed) {
            (None, true) => return Err(format!("key \"{key}.{part}\": a {name} jammer needs it; add it").into()),
            (Some(_), false) => {
                return Err(format!("key \"{key}.{part}\": a {name} jammer has none; leave it out").into())
            }
            _ => {}
        }
    }
    match stop_s.filter(|stop_s| stop_s <= start_s) {
        Some(stop_s) => Err(format!("key \"{key}.stop_s\": {stop_s} is not after start_s {start_s}").into()),
        None => Ok(()),
    }
}

/// Checks conditions that involve two keys.
fn check_model(model: &Model) -> Result<(), ConfigError> {
    match model {
        Model::Disc { range_m, sense_m } if sense_m < range_m => {
            Err(format!("key \"propagation.sense_m\": {sense_m} is below range_m {range_m}").into())
        }
        _ => Ok(()),
    }
}

/// Refuses a `suspect` share above the `void` share.
fn check_thresholds(thresholds: &Thresholds) -> Result<(), ConfigError> {
    let shares = [
        ("late", thresholds.suspect_late_share, thresholds.void_late_share),
        ("stalled", thresholds.suspect_stalled_share, thresholds.void_stalled_share),
    ];
    for (kind, suspect, void) in shares {
        if suspect > void {
            return Err(format!(
                "key \"verdict.suspect_{kind}_share\": {suspect} is above void_{kind}_share {void}; lower it"
            )
            .into());
        }
    }
    Ok(())
}
