//! Aggregation of a profile, and the modes among which its rate control chooses.

use super::modes::DSSS_RATES_BPS;
use super::{Modulation, Radio, RadioError, RateControl, BA_BYTES};
use crate::mac::block_ack::room::{MAX_HT_BYTES, MAX_VHT_BYTES};
use crate::mac::block_ack::WINDOW as BLOCK_ACK_WINDOW;
use crate::phy::mode::{Family, Mcs, Mode, DELIMITER_BYTES, OFDM_RATES_BPS};
use manet_engine::keys::{of, within, Limits, Takes, Typed};
use manet_engine::{keys, Duration};
use serde::{Deserialize, Serialize};

/// Aggregation of unicast data: A-MPDUs and Block Acks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Aggregation {
    /// `false`: none; `true`: the limits of the standard.
    Switch(bool),
    /// So many MPDUs.
    Mpdus(u32),
    /// A table of limits.
    Limits(AggregationLimits),
}

impl Default for Aggregation {
    fn default() -> Self {
        Self::Switch(false)
    }
}

impl Typed for Aggregation {
    const TAKES: Takes = Takes::AnyOf(&[bool::TAKES, Takes::Whole(MPDUS), AggregationLimits::TAKES]);
}

const MPDUS: Limits = within(1.0, BLOCK_ACK_WINDOW as f64).of("MPDUs");

keys! {
    /// Limits of an A-MPDU.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct AggregationLimits {
        /// MPDUs; by default 64, the window of a Block Ack.
        #[serde(default)]
        pub max_mpdus: Option<u32> => MPDUS;
        /// Length of the PSDU; by default what the PHY allows, 65535 (HT) or 1048575 (VHT, HE).
        #[serde(default)]
        pub max_bytes: Option<u32> => of("bytes");
        /// After an A-MPDU without a Block Ack: a Block Ack Request (as ns-3 does) instead of a retransmission (as ath9k does).
        #[serde(default)]
        pub request_after_silence: bool;
    }
}

/// The time of an MPDU in a PPDU from its start.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stretch {
    /// Start of its delimiter, ns.
    pub from_ns: u64,
    /// End, ns.
    pub to_ns: u64,
    /// Its bits.
    pub bits: f64,
}

impl Radio {
    /// The limits of A-MPDUs with every default filled in; `None`: without aggregation.
    pub fn aggregation_limits(&self) -> Option<(usize, u32)> {
        let AggregationLimits { max_mpdus, max_bytes, .. } = match self.aggregation {
            Aggregation::Switch(false) => return None,
            Aggregation::Switch(true) => AggregationLimits::default(),
            Aggregation::Mpdus(max_mpdus) => AggregationLimits { max_mpdus: Some(max_mpdus), ..Default::default() },
            Aggregation::Limits(limits) => limits,
        };
        let max_mpdus = max_mpdus.map_or(BLOCK_ACK_WINDOW, |mpdus| mpdus as usize);
        Some((max_mpdus, max_bytes.unwrap_or_else(|| self.max_aggregate_bytes())))
    }

    /// Whether an A-MPDU without a Block Ack is followed by a request for one.
    pub fn requests_after_silence(&self) -> bool {
        matches!(self.aggregation, Aggregation::Limits(AggregationLimits { request_after_silence: true, .. }))
    }

    fn always_aggregates(&self) -> bool {
        self.family().is_some_and(Family::always_aggregates)
    }

    fn max_aggregate_bytes(&self) -> u32 {
        if self.always_aggregates() {
            MAX_VHT_BYTES
        } else {
            MAX_HT_BYTES
        }
    }

    pub(super) fn check_aggregation(&self) -> Result<(), RadioError> {
        let Some((_, max_bytes)) = self.aggregation_limits() else { return Ok(()) };
        if self.family().is_none() {
            return Err(RadioError::Value("key \"aggregation\": dsss and ofdm have none; leave it out".into()));
        }
        // its limit of time is that of HT, VHT and HE, which most S1G frames exceed
        if self.modulation == Modulation::S1g {
            return Err(RadioError::Value("key \"aggregation\": that of s1g is not modelled; leave it out".into()));
        }
        if self.rate_control == RateControl::Minstrel {
            return Err(RadioError::Value(
                "key \"rate_control\": \"minstrel\" tries a slower rate only after no answer, but one MPDU that arrives answers for an \
                 A-MPDU; take \"minstrel-ht\", or aggregation = false"
                    .into(),
            ));
        }
        let most = self.max_aggregate_bytes();
        if !(1..=most).contains(&max_bytes) {
            return Err(format!("key \"aggregation.max_bytes\": {max_bytes} is not between 1 and {most} bytes").into());
        }
        Ok(())
    }

    /// The modes of unicast data among which a rate control chooses: those of the PHY with the profile's width and guard interval and
    /// at most its streams. The profile's own is among them.
    pub fn data_modes(&self) -> Vec<Mode> {
        let Mode::Mcs(data) = self.data_mode() else {
            let rates: &[u64] = if self.modulation == Modulation::Dsss { &DSSS_RATES_BPS } else { &OFDM_RATES_BPS };
            return rates.iter().map(|rate_bps| self.mode_of_rate(*rate_bps)).collect();
        };
        let of_streams = |streams| {
            let mode = move |mcs| Mcs::new(data.family, mcs, data.width_mhz, data.guard, streams);
            (0..=data.family.max_mcs()).filter_map(move |mcs| mode(mcs).ok()).map(Mode::Mcs)
        };
        (1..=data.streams).flat_map(of_streams).collect()
    }

    /// Time on the air of the Block Ack that answers a frame in `mode`.
    pub fn block_ack_airtime(&self, mode: Mode) -> Duration {
        self.airtime(BA_BYTES, self.answer_mode(mode))
    }

    /// Bytes that [`Self::airtime`] counts as the MPDU of an A-MPDU of `psdu_bytes`: it adds the first delimiter of VHT and HE by
    /// itself.
    pub fn bytes_of_aggregate(&self, psdu_bytes: u32) -> u32 {
        let counted = if self.always_aggregates() { DELIMITER_BYTES as u32 } else { 0 };
        psdu_bytes.saturating_sub(counted)
    }
}
