//! Checks of a profile: ranges and combinations of its numbers.

use super::access::no_window;
use super::modes::{spans, DSSS_RATES_BPS, HIGHEST_MCS};
use super::{one_stream, width_20_mhz, GuardInterval, Modulation, Network, Radio, RadioError, RateControl, Reception};
use manet_engine::keys::{self, Declared};

/// Slot of an ERP PHY without the short slot time (clause 19.4.5).
const LONG_SLOT_US: u32 = 20;

impl Radio {
    /// Checks ranges and combinations. The error names the key and the range.
    pub(in crate::phy) fn check(&self) -> Result<(), RadioError> {
        keys::check(Self::KEYS, self)?;
        for (key, rate) in [
            ("data_rate_bps", self.data_rate_bps),
            ("control_rate_bps", self.control_rate_bps),
            ("broadcast_rate_bps", self.broadcast_rate_bps),
            ("eifs_ack_rate_bps", self.eifs_ack_rate_bps),
        ]
        .into_iter()
        .chain(self.basic_rates_bps.iter().map(|rate| ("basic_rates_bps", *rate)))
        {
            let of_mcs = key == "data_rate_bps" && self.family().is_some();
            if self.modulation == Modulation::S1g && !of_mcs && !self.has_rate(rate) {
                return Err(format!(
                    "key \"{key}\": {rate} is the rate of no MCS of {} MHz; give one, as the profiles of 802.11ah have",
                    self.width_mhz
                )
                .into());
            }
            let ofdm = !matches!(self.modulation, Modulation::Dsss | Modulation::S1g);
            let of_erp = key == "eifs_ack_rate_bps" && self.plcp_bits > 0 && DSSS_RATES_BPS.contains(&rate);
            if of_erp && self.plcp_rate_bps == 0 {
                return Err(RadioError::Value(
                    "key \"plcp_rate_bps\": 0 for an ACK of DSSS; give the rate of its preamble, 1000000".into(),
                ));
            }
            if ofdm && !of_mcs && !of_erp && !self.has_rate(rate) {
                return Err(format!(
                    "key \"{key}\": {rate} is no OFDM rate; give 6, 9, 12, 18, 24, 36, 48 or 54 Mbit/s"
                )
                .into());
            }
        }
        self.check_aggregation()?;
        self.check_data_rate()?;
        if let Some(family) = self.family() {
            self.mcs_mode()?;
            if let Some(mcs) = self.receive_threshold_mcs.filter(|mcs| !family.has_mcs(*mcs)) {
                let those: Vec<_> = (0..=HIGHEST_MCS).filter(|mcs| family.has_mcs(*mcs)).collect();
                let (name, those) = (family.name(), spans(&those));
                return Err(format!(
                    "key \"receive_threshold_mcs\": {mcs} is no MCS of one stream of {name}; give one of {those}"
                )
                .into());
            }
            if self.receive_threshold_rate_bps.is_some() {
                let text =
                    "key \"receive_threshold_rate_bps\": is of dsss and ofdm; give receive_threshold_mcs in its place";
                return Err(RadioError::Value(text.into()));
            }
        } else if let Some(key) = self.stated_of_mcs() {
            return Err(
                format!("key \"{key}\": is of ht, vht, he and s1g; leave it out, or take a profile of those").into()
            );
        }
        self.check_basic_rates()?;
        self.check_slot()?;
        self.check_access()?;
        for (key, value) in [("plcp_bits", self.plcp_bits.into()), ("plcp_rate_bps", self.plcp_rate_bps)] {
            if self.modulation == Modulation::Dsss && value == 0 {
                return Err(format!(
                    "key \"{key}\": 0, and each frame of DSSS has a preamble; give that of ns2-dsss-2m"
                )
                .into());
            }
        }
        for (key, cw) in [("cw_min", self.cw_min), ("cw_max", self.cw_max)] {
            if !(cw + 1).is_power_of_two() {
                return Err(no_window(key, cw));
            }
        }
        if self.cw_min > self.cw_max {
            return Err(format!("key \"cw_min\": {} is above cw_max {}; give both", self.cw_min, self.cw_max).into());
        }
        Ok(())
    }

    /// A rate of DSSS may be any, as in ns-2, unless something must know how it is modulated.
    fn check_data_rate(&self) -> Result<(), RadioError> {
        if self.family().is_some() || self.has_rate(self.data_rate_bps) {
            return self.check_threshold_rate();
        }
        let (needed_by, else_) = if self.rate_control != RateControl::Fixed {
            ("among which rate_control chooses", "rate_control = \"fixed\"")
        } else if self.reception == Reception::Sinr {
            ("whose errors reception = \"sinr\" knows", "reception = \"threshold\"")
        } else {
            return Ok(());
        };
        let rate = self.data_rate_bps;
        Err(format!("key \"data_rate_bps\": {rate} is no rate of this PHY, {needed_by}; take one, or {else_}").into())
    }

    fn check_threshold_rate(&self) -> Result<(), RadioError> {
        match self.receive_threshold_rate_bps.filter(|rate| self.family().is_none() && !self.has_rate(*rate)) {
            Some(rate) => {
                Err(format!("key \"receive_threshold_rate_bps\": {rate} is no rate of this PHY; give one of its rates")
                    .into())
            }
            None => Ok(()),
        }
    }

    /// A key of the modes of HT, VHT, HE and S1G that has a value, while this PHY has none of these modes.
    fn stated_of_mcs(&self) -> Option<&'static str> {
        let stated = [
            ("mcs", self.mcs.is_some()),
            ("receive_threshold_mcs", self.receive_threshold_mcs.is_some()),
            ("width_mhz", self.width_mhz != width_20_mhz()),
            ("guard_interval", self.guard_interval != GuardInterval::default()),
            ("streams", self.streams != one_stream()),
        ];
        stated.into_iter().find(|(_, is_stated)| *is_stated).map(|(key, _)| key)
    }

    /// The short slot of an ERP PHY, whose sign is the signal extension, needs an access point that announces it.
    fn check_slot(&self) -> Result<(), RadioError> {
        if self.network == Network::AdHoc && self.signal_extension_us > 0 && self.slot_us < LONG_SLOT_US {
            return Err(format!(
                "key \"slot_us\": {} us is the slot of an access point's network; an ad hoc one has {LONG_SLOT_US} us \
                 (802.11-2012 19.4.5), or set network = \"infrastructure\"",
                self.slot_us
            )
            .into());
        }
        Ok(())
    }

    fn check_basic_rates(&self) -> Result<(), RadioError> {
        let basic = &self.basic_rates_bps;
        if basic.is_empty() || !basic.is_sorted_by(|a, b| a < b) {
            return Err(format!(
                "key \"basic_rates_bps\": {basic:?} is not a list of one or more rates, the slowest first; sort it"
            )
            .into());
        }
        // 802.11-2016 10.6.6.2 and 10.6.5: RTS and group addressed frames go out at a basic rate
        let own = [("control_rate_bps", self.control_rate_bps), ("broadcast_rate_bps", self.broadcast_rate_bps)];
        match own.into_iter().find(|(_, rate)| !basic.contains(rate)) {
            Some((key, rate)) => {
                Err(format!("key \"{key}\": {rate} is none of basic_rates_bps {basic:?}; add it there").into())
            }
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Radio;

    fn refusal(profile: &str, overrides: &str) -> String {
        let path = format!("{}/radios/{profile}.toml", env!("CARGO_MANIFEST_DIR"));
        let text = std::fs::read_to_string(path).unwrap();
        Radio::parse(&text, &overrides.parse().unwrap()).expect_err(overrides).to_string()
    }

    /// Every key whose allowed values depend on another.
    #[test]
    fn a_value_that_another_key_excludes_is_refused_with_its_key_and_the_remedy() {
        for (profile, overrides, wanted) in [
            // the modes of a PHY
            ("dot11n-ht20", "width_mhz = 30", "\"width_mhz\": 30 is none of ht; give one of 20, 40"),
            ("dot11n-ht40", "width_mhz = 80", "\"width_mhz\": 80 is none of ht; give one of 20, 40"),
            (
                "dot11n-ht20",
                "guard_interval = \"double\"",
                "\"guard_interval\": \"double\" is none of ht; give one of \"long\", \"short\"",
            ),
            (
                "dot11ax-he20",
                "guard_interval = \"short\"",
                "\"guard_interval\": \"short\" is none of he; give one of \"long\", \"double\", \"quadruple\"",
            ),
            (
                "dot11ac-vht80",
                "mcs = 11",
                "\"mcs\": MCS 11 is above 9 of vht; vht has 0 to 9 in 80 MHz with one stream: give one of those, or change \
                 width_mhz or streams",
            ),
            (
                "dot11ac-vht80",
                "mcs = 9\nwidth_mhz = 20",
                "\"mcs\": vht-mcs9-20: the standard has no such mode; vht has 0 to 8 in 20 MHz with one stream: give ",
            ),
            (
                "dot11ah-1m",
                "mcs = 10\nstreams = 2",
                "\"mcs\": MCS 10 of s1g has one stream in 1 MHz; s1g has 0 to 9 in 1 MHz with two streams: give ",
            ),
            (
                "dot11ah-1m",
                "mcs = 11",
                "\"mcs\": MCS 11 is above 9 of s1g; s1g has 0 to 10 in 1 MHz with one stream: give ",
            ),
            (
                "dot11ah-2m",
                "mcs = 9",
                "\"mcs\": s1g-mcs9-2: the standard has no such mode; s1g has 0 to 8 in 2 MHz with one stream: give ",
            ),
            (
                "dot11ah-2m",
                "mcs = 10",
                "\"mcs\": MCS 10 of s1g has one stream in 1 MHz; s1g has 0 to 8 in 2 MHz with one stream: give ",
            ),
            (
                "dot11n-ht20",
                "mcs = 8",
                "\"mcs\": MCS 8 of ht has two streams, and streams is 1; ht has 0 to 7 in 20 MHz with one stream: give ",
            ),
            (
                "mikrotik-hap-lite",
                "mcs = 15",
                "\"mcs\": MCS 15 of ht has two streams, and streams is 1; ht has 0 to 7 in 20 MHz with one stream: give ",
            ),
            (
                "dot11n-ht20",
                "receive_threshold_mcs = 8",
                "\"receive_threshold_mcs\": 8 is no MCS of one stream of ht; give one of 0 to 7",
            ),
            (
                "dot11g-54m",
                "receive_threshold_mcs = 7",
                "\"receive_threshold_mcs\": is of ht, vht, he and s1g; leave it out, ",
            ),
            (
                "dot11g-54m",
                "receive_threshold_rate_bps = 11e6",
                "\"receive_threshold_rate_bps\": 11000000 is no rate of this PHY; give one of its rates",
            ),
            (
                "dot11n-ht20",
                "receive_threshold_rate_bps = 54e6",
                "\"receive_threshold_rate_bps\": is of dsss and ofdm; give receive_threshold_mcs in its place",
            ),
            ("dot11ah-1m", "width_mhz = 2", "\"control_rate_bps\": 900000 is the rate of no MCS of 2 MHz; give one, "),
            ("dot11n-ht20", "data_rate_bps = 54e6", "\"data_rate_bps\": 54000000 is not that of mcs; leave it out"),
            ("dot11g-54m", "modulation = \"ht\"", "\"mcs\": ht needs one; add it"),
            ("dot11g-54m", "mcs = 3", "\"mcs\": is of ht, vht, he and s1g; leave it out, or take a profile of those"),
            ("dot11g-54m", "width_mhz = 40", "\"width_mhz\": is of ht, vht, he and s1g; leave it out, "),
            (
                "dot11b-11m",
                "guard_interval = \"short\"",
                "\"guard_interval\": is of ht, vht, he and s1g; leave it out, ",
            ),
            ("dot11a-54m", "streams = 2", "\"streams\": is of ht, vht, he and s1g; leave it out, "),
            // rates
            ("dot11a-54m", "data_rate_bps = 7e6", "\"data_rate_bps\": 7000000 is no OFDM rate; give 6, 9, "),
            ("dot11n-ht20", "eifs_ack_rate_bps = 1e6", "\"eifs_ack_rate_bps\": 1000000 is no OFDM rate; give 6, 9, "),
            (
                "dot11b-11m",
                "control_rate_bps = 11e6",
                "\"control_rate_bps\": 11000000 is none of basic_rates_bps [1000000, 2000000]; add it there",
            ),
            (
                "dot11b-11m",
                "data_rate_bps = 6e6\nreception = \"sinr\"",
                "\"data_rate_bps\": 6000000 is no rate of this PHY, whose errors reception",
            ),
            (
                "dot11b-11m",
                "data_rate_bps = 6e6\nrate_control = \"arf\"",
                "\"data_rate_bps\": 6000000 is no rate of this PHY, among which rate_control",
            ),
            (
                "dot11b-11m",
                "plcp_bits = 0",
                "\"plcp_bits\": 0, and each frame of DSSS has a preamble; give that of ns2-dsss-2m",
            ),
            (
                "dot11g-54m",
                "plcp_rate_bps = 0",
                "\"plcp_rate_bps\": 0 for an ACK of DSSS; give the rate of its preamble, 1000000",
            ),
            // aggregation and rate control
            ("dot11a-54m", "aggregation = true", "\"aggregation\": dsss and ofdm have none; leave it out"),
            ("dot11ah-2m", "aggregation = 8", "\"aggregation\": that of s1g is not modelled; leave it out"),
            (
                "dot11n-ht20",
                "aggregation = { max_bytes = 65536 }",
                "\"aggregation.max_bytes\": 65536 is not between 1 and 65535 bytes",
            ),
            (
                "dot11n-ht20",
                "rate_control = \"minstrel\"",
                "\"rate_control\": \"minstrel\" tries a slower rate only after no answer, ",
            ),
            // access
            (
                "dot11g-54m",
                "slot_us = 9",
                "\"slot_us\": 9 us is the slot of an access point's network; an ad hoc one has 20 us",
            ),
            ("dot11n-ht20", "cw_min = 2047", "\"cw_min\": 2047 is above cw_max 1023; give both"),
            (
                "dot11n-ht20",
                "access_categories.voice.cw_min = 3",
                "\"access_categories.voice\": the DCF has none; add access = \"edca\"",
            ),
            (
                "dot11n-ht20",
                "access = \"edca\"\naccess_categories.voice.cw_min = 15",
                "\"access_categories.voice.cw_min\": 15 is above cw_max 7; give both",
            ),
            (
                "ns2-dsss-2m",
                "access = \"edca\"",
                "\"access\": EDCA has the standard's rules, and rules.backoff_draw is ns-2's; take ",
            ),
        ] {
            let refused = refusal(profile, overrides);
            assert!(refused.starts_with(&format!("key {wanted}")), "{profile}, {overrides}: {refused}");
            assert!(!refused.contains('\n'));
        }
    }

    #[test]
    fn a_number_that_is_infinite_or_none_is_refused_with_its_key() {
        for number in ["inf", "-inf", "nan"] {
            let refused = refusal("ns2-dsss-2m", &format!("capture_db = {number}"));
            assert!(refused.starts_with("key \"capture_db\": \""), "{refused}");
            assert!(refused.contains("is of the wrong type; give a number"), "{refused}");
        }
    }

    #[test]
    fn a_card_of_two_streams_has_the_mcs_of_both() {
        let text = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/radios/dot11n-ht20.toml")).unwrap();
        let radio = |overrides: &str| Radio::parse(&text, &overrides.parse().unwrap()).unwrap();
        let both = radio("mcs = 15\nstreams = 2");
        assert_eq!(both.data_rate_bps, 130_000_000);
        assert_eq!(both.data_mode(), radio("mcs = 7\nstreams = 2").data_mode());
    }

    #[test]
    fn a_rate_of_dsss_that_the_standard_lacks_is_one_of_ns2() {
        let text = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/radios/ns2-dsss-2m.toml")).unwrap();
        let radio = Radio::parse(&text, &"data_rate_bps = 6e6".parse().unwrap()).unwrap();
        assert_eq!(radio.data_rate_bps, 6_000_000);
    }
}
