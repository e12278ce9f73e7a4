//! The access to the medium that a profile selects: the DCF, or EDCA with the parameters of four categories.

use super::{BackoffDraw, Modulation, Radio, RadioError, Timeouts, WINDOW};
use crate::mac::Category;
use manet_engine::keys::{up_to, within};
use manet_engine::{choices, keys, Duration};
use serde::{Deserialize, Serialize};

/// Largest TXOP limit: 65535 units of 32 us (IEEE Std 802.11-2020 clause 9.4.2.28), in us.
const MAX_TXOP_US: f64 = 65_535.0 * 32.0;

choices! {
    /// Access to the medium.
    pub enum Access {
        /// One queue and one backoff for all packets of a station (802.11-2012 clause 9.3).
        Dcf = "dcf",
        /// A queue and a backoff for each of four access categories, by the DSCP of a packet (802.11-2020 clause 10.23.2, RFC 8325).
        Edca = "edca",
    }
}

keys! {
    /// Parameters of an access category that replace the standard's.
    #[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct CategoryKeys {
        /// AIFSN: slots between SIFS and the first slot of a backoff.
        #[serde(default)]
        pub aifsn: Option<u32> => within(2.0, 15.0).of("slots");
        /// CWmin: 2^k - 1.
        #[serde(default)]
        pub cw_min: Option<u32> => WINDOW;
        /// CWmax: 2^k - 1.
        #[serde(default)]
        pub cw_max: Option<u32> => WINDOW;
        /// TXOP limit; 0: one exchange.
        #[serde(default)]
        pub txop_us: Option<u32> => up_to(MAX_TXOP_US).of("us");
    }
}

keys! {
    /// Parameters of the access categories of EDCA that replace those of table 9-155 of IEEE Std 802.11-2020.
    #[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct AccessCategories {
        /// AC_BK: CS1 and LE.
        #[serde(default)]
        pub background: CategoryKeys;
        /// AC_BE: what has no other category.
        #[serde(default)]
        pub best_effort: CategoryKeys;
        /// AC_VI: CS3 to CS5, AF31 to AF43.
        #[serde(default)]
        pub video: CategoryKeys;
        /// AC_VO: EF, VOICE-ADMIT, CS6 and CS7.
        #[serde(default)]
        pub voice: CategoryKeys;
    }
}

impl AccessCategories {
    fn of(&self, category: Category) -> (&'static str, &CategoryKeys) {
        match category {
            Category::Background => ("background", &self.background),
            Category::BestEffort => ("best_effort", &self.best_effort),
            Category::Video => ("video", &self.video),
            Category::Voice => ("voice", &self.voice),
        }
    }
}

/// Parameters of a contention function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccessParameters {
    /// Slots between SIFS and the first slot of a backoff.
    pub aifsn: u32,
    /// Smallest contention window.
    pub cw_min: u32,
    /// Largest contention window.
    pub cw_max: u32,
    /// TXOP limit; zero: one exchange.
    pub txop: Duration,
}

impl Radio {
    /// Whether stations contend by EDCA.
    pub fn is_edca(&self) -> bool {
        self.access == Access::Edca
    }

    /// The parameters of a category, by the DCF those of all packets.
    ///
    /// Defaults are those of table 9-155, the windows from the profile's aCWmin and aCWmax; but the TXOP limit of AC_BK and AC_BE is 0,
    /// as of table 8-105 of 802.11-2012, mac80211 (`ieee80211_set_wmm_default`), hostapd and ns-3, where table 9-155 has 2.528 ms (DSSS:
    /// 3.264 ms).
    pub fn access_parameters(&self, category: Category) -> AccessParameters {
        let (cw_min, cw_max) = (self.cw_min, self.cw_max);
        if !self.is_edca() {
            return AccessParameters { aifsn: self.aifsn, cw_min, cw_max, txop: Duration::ZERO };
        }
        let part = |of: u32| ((cw_min + 1) / of).max(2) - 1;
        let is_dsss = self.modulation == Modulation::Dsss;
        let (aifsn, cw_min, cw_max, txop_us) = match category {
            Category::Background => (7, cw_min, cw_max, 0),
            Category::BestEffort => (3, cw_min, cw_max, 0),
            Category::Video => (2, part(2), cw_min, if is_dsss { 6016 } else { 4096 }),
            Category::Voice => (2, part(4), part(2), if is_dsss { 3264 } else { 2080 }),
        };
        let (_, own) = self.access_categories.of(category);
        AccessParameters {
            aifsn: own.aifsn.unwrap_or(aifsn),
            cw_min: own.cw_min.unwrap_or(cw_min),
            cw_max: own.cw_max.unwrap_or(cw_max),
            txop: Duration::from_micros(own.txop_us.unwrap_or(txop_us).into()),
        }
    }

    pub(super) fn check_access(&self) -> Result<(), RadioError> {
        if !self.is_edca() {
            let stated = Category::BY_PRIORITY.map(|category| self.access_categories.of(category));
            return match stated.iter().find(|(_, own)| **own != CategoryKeys::default()) {
                Some((name, _)) => {
                    Err(format!("key \"access_categories.{name}\": the DCF has none; add access = \"edca\"").into())
                }
                None => Ok(()),
            };
        }
        let rules = &self.rules;
        let of_ns2 = [
            ("backoff_draw", rules.backoff_draw != BackoffDraw::Cw),
            ("backoff_when_idle", rules.backoff_when_idle),
            ("eifs_as_nav", rules.eifs_as_nav),
            ("response_needs_idle", rules.response_needs_idle),
            ("cts_holds", rules.cts_holds),
            ("retries_carry_over", rules.retries_carry_over),
            ("timeouts", rules.timeouts != Timeouts::Standard),
        ];
        if let Some((rule, _)) = of_ns2.iter().find(|(_, departs)| *departs) {
            return Err(format!(
                "key \"access\": EDCA has the standard's rules, and rules.{rule} is ns-2's; take a profile of 802.11 or change the rule"
            )
            .into());
        }
        for category in Category::BY_PRIORITY {
            let (name, _) = self.access_categories.of(category);
            let AccessParameters { cw_min, cw_max, .. } = self.access_parameters(category);
            for (key, cw) in [("cw_min", cw_min), ("cw_max", cw_max)] {
                if !(cw + 1).is_power_of_two() {
                    return Err(no_window(&format!("access_categories.{name}.{key}"), cw));
                }
            }
            if cw_min > cw_max {
                return Err(format!(
                    "key \"access_categories.{name}.cw_min\": {cw_min} is above cw_max {cw_max}; give both"
                )
                .into());
            }
        }
        Ok(())
    }
}

/// The refusal of a contention window, with the next ones that exist.
pub(super) fn no_window(key: &str, cw: u32) -> RadioError {
    let above = (cw + 1).next_power_of_two();
    format!("key \"{key}\": {cw} is not 2^k - 1; give {} or {}", above / 2 - 1, above - 1).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::phy::radio::tests::profile;

    fn edca(name: &str, text: &str) -> Result<Radio, String> {
        let path = format!("{}/radios/{name}.toml", env!("CARGO_MANIFEST_DIR"));
        let mut overrides: toml::Table = text.parse().unwrap();
        overrides.insert("access".into(), "edca".into());
        Radio::parse(&std::fs::read_to_string(path).unwrap(), &overrides).map_err(|e| e.to_string())
    }

    fn of(radio: &Radio, category: Category) -> (u32, u32, u32, u64) {
        let AccessParameters { aifsn, cw_min, cw_max, txop } = radio.access_parameters(category);
        (aifsn, cw_min, cw_max, txop.as_nanos() / 1000)
    }

    #[test]
    fn the_defaults_are_those_of_table_9_155() {
        let ht = edca("dot11n-ht20", "").unwrap();
        assert_eq!(of(&ht, Category::Voice), (2, 3, 7, 2080));
        assert_eq!(of(&ht, Category::Video), (2, 7, 15, 4096));
        assert_eq!(of(&ht, Category::BestEffort), (3, 15, 1023, 0));
        assert_eq!(of(&ht, Category::Background), (7, 15, 1023, 0));
        let dsss = edca("dot11b-11m", "").unwrap();
        assert_eq!(of(&dsss, Category::Voice), (2, 7, 15, 3264));
        assert_eq!(of(&dsss, Category::Video), (2, 15, 31, 6016));
    }

    #[test]
    fn the_dcf_has_the_profiles_parameters_for_all() {
        let radio = profile("dot11n-ht20");
        assert!(Category::BY_PRIORITY.iter().all(|category| of(&radio, *category) == (3, 15, 1023, 0)));
    }

    #[test]
    fn a_key_replaces_one_parameter_of_one_category() {
        let radio = edca("dot11n-ht20", "access_categories.voice = { txop_us = 0, cw_max = 15 }").unwrap();
        assert_eq!(of(&radio, Category::Voice), (2, 3, 15, 0));
        assert_eq!(of(&radio, Category::Video), (2, 7, 15, 4096));
    }

    #[test]
    fn mistakes_are_named_with_their_key() {
        let refused = |name, text| edca(name, text).unwrap_err();
        assert!(refused("ns2-dsss-2m", "").starts_with("key \"access\": EDCA has the standard's rules, and rules."));
        let wrong = refused("dot11n-ht20", "access_categories.voice.cw_min = 4");
        assert_eq!(wrong, "key \"access_categories.voice.cw_min\": 4 is not 2^k - 1; give 3 or 7");
        let wrong = refused("dot11n-ht20", "access_categories.voice.cw_min = 15");
        assert_eq!(wrong, "key \"access_categories.voice.cw_min\": 15 is above cw_max 7; give both");
        let wrong = refused("dot11n-ht20", "access_categories.video.aifsn = 1");
        assert_eq!(wrong, "key \"access_categories.video.aifsn\": 1 is not between 2 and 15 slots");
        let mut dcf = profile("dot11n-ht20");
        dcf.access_categories.voice.aifsn = Some(4);
        let wrong = "key \"access_categories.voice\": the DCF has none; add access = \"edca\"";
        assert_eq!(dcf.check().unwrap_err().to_string(), wrong);
    }
}
