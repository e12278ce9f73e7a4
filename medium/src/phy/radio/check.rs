//! Checks of a profile: ranges and combinations of its numbers.

use super::access::no_window;
use super::modes::DSSS_RATES_BPS;
use super::{Modulation, Network, Radio, RadioError, RateControl};
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
        let chosen = self.rate_control != RateControl::Fixed && self.family().is_none();
        if chosen && !self.has_rate(self.data_rate_bps) {
            return Err(format!(
                "key \"data_rate_bps\": {} is no rate of this PHY, among which rate_control chooses; take one, or rate_control = \"fixed\"",
                self.data_rate_bps
            )
            .into());
        }
        if self.family().is_some() {
            self.mcs_mode()?;
        } else if self.mcs.is_some() {
            return Err(RadioError::Value("key \"mcs\": dsss and ofdm have none; leave it out".into()));
        }
        self.check_basic_rates()?;
        self.check_slot()?;
        self.check_access()?;
        if self.modulation == Modulation::Dsss && (self.plcp_bits == 0 || self.plcp_rate_bps == 0) {
            return Err(RadioError::Value(
                "keys \"plcp_bits\" and \"plcp_rate_bps\" are needed for DSSS; add them, as in ns2-dsss-2m".into(),
            ));
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
