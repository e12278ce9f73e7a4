//! The modes in which a profile sends its frames, the answers to them, and the power and the ratio that their reception needs.

use super::{
    FrameKind, GuardInterval, Modulation, Radio, RadioError, RateControl, Reception, Thresholds, Timeouts, ACK_BYTES,
    BA_BYTES, RTS_BYTES,
};
use crate::phy::error_model::log_success;
use crate::phy::mode::{Family, Mcs, Mode, OFDM_RATES_BPS, REPEATED};
use crate::wire::dot11::QOS_CONTROL_LEN;
use manet_engine::Duration;
use serde::Serialize;

/// Clauses 16.2.3.4 and 17.2.3.4.
pub(super) const DSSS_RATES_BPS: [u64; 4] = [1_000_000, 2_000_000, 5_500_000, 11_000_000];

/// Mandatory rates of an OFDM PHY (clause 18.2.2.3).
const MANDATORY_OFDM_RATES_BPS: [u64; 3] = [6_000_000, 12_000_000, 24_000_000];

/// Longest IP packet, bytes.
const MTU_BYTES: u32 = 1500;

/// Share of frames that survive at the sensitivity of a data sheet.
const SENSITIVITY_SUCCESS: f64 = 0.9;

/// Bounds of a sensitivity's SINR, dB, and the steps of its bisection.
const SINR_RANGE_DB: (f64, f64) = (-30.0, 100.0);
const SINR_STEPS: usize = 40;

/// The highest MCS of any family: that of HT with two streams.
pub(super) const HIGHEST_MCS: u8 = 15;

/// Ascending numbers for people: `0 to 7 and 10`.
pub(super) fn spans(numbers: &[u8]) -> String {
    let of = |span: &[u8]| match span {
        [one] => one.to_string(),
        [first, .., last] => format!("{first} to {last}"),
        [] => unreachable!("a chunk has an element"),
    };
    numbers.chunk_by(|a, b| a + 1 == *b).map(of).collect::<Vec<_>>().join(" and ")
}

/// The parts of a frame that a receiver decodes, in time from its start.
#[derive(Clone, Copy, Debug)]
pub struct Layout {
    /// The mode of the MPDU.
    pub mode: Mode,
    /// That of the header.
    pub header_mode: Mode,
    /// Start and end of the header's bits.
    pub header_ns: (u64, u64),
    /// Their number.
    pub header_bits: f64,
    /// Start and end of the MPDU.
    pub body_ns: (u64, u64),
    /// Its bits.
    pub body_bits: f64,
}

/// Conditions of a reception by threshold.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Threshold {
    /// Power, W.
    pub power_w: f64,
    /// Ratio to everything else.
    pub ratio: f64,
}

impl Radio {
    /// The parts of a frame that a receiver decodes.
    pub fn layout(&self, bytes: u32, mode: Mode) -> Layout {
        let (from_us, to_us, header_bits) = match mode {
            // long PLCP header: the last 48 of 192 bits (17.2.3)
            Mode::Dsss(_) => {
                let to_us = self.plcp_airtime().as_nanos() / 1000;
                (to_us * 3 / 4, to_us, 48.0)
            }
            // SIGNAL of 24 bits after 16 us; then HT-SIG or VHT-SIG-A of 48 (18.3.4, 20.3.9.4.3), or RL-SIG, its repetition, and HE-SIG-A
            // of 52 (802.11ax 27.3.11.7)
            Mode::Ofdm(_) => (16, 20, 24.0),
            Mode::Mcs(Mcs { family: Family::S1g, width_mhz: 1, .. }) => (320, 560, 36.0),
            Mode::Mcs(Mcs { family: Family::S1g, .. }) => (160, 240, 48.0),
            Mode::Mcs(Mcs { family: Family::He, .. }) => (16, 32, 76.0),
            Mode::Mcs(_) => (16, 28, 72.0),
        };
        let body_from_ns = match mode {
            Mode::Mcs(mcs) => mcs.preamble_ns(),
            _ => to_us * 1000,
        };
        let body_to_ns = self.airtime(bytes, mode).as_nanos() - u64::from(self.signal_extension_us) * 1000;
        Layout {
            mode,
            header_mode: self.header_mode(mode),
            header_ns: (from_us * 1000, to_us * 1000),
            header_bits,
            body_ns: (body_from_ns, body_to_ns),
            body_bits: f64::from(bytes) * 8.0,
        }
    }

    /// The mode of preamble and header.
    fn header_mode(&self, mode: Mode) -> Mode {
        match mode {
            Mode::Dsss(_) => Mode::Dsss(self.plcp_rate_bps),
            // SIG of S1G_1M is sent as MCS 10 (802.11ah 23.3.8.3.4)
            Mode::Mcs(Mcs { family: Family::S1g, width_mhz: 1, .. }) => {
                Mode::Mcs(Mcs { mcs: REPEATED, ..self.lowest_mcs() })
            }
            Mode::Mcs(Mcs { family: Family::S1g, .. }) => Mode::Mcs(self.lowest_mcs()),
            _ => Mode::Ofdm(OFDM_RATES_BPS[0]),
        }
    }

    /// Power and ratio that the reception of a frame in `mode` needs. With [`Thresholds::Rate`] both are those of the profile, shifted by the
    /// difference of the standard's minimum sensitivities from the mode that they are for.
    pub fn threshold(&self, mode: Mode) -> Threshold {
        let ratio = 10f64.powf(self.capture_db / 10.0);
        match self.rules.thresholds {
            Thresholds::One => Threshold { power_w: self.receive_threshold_w, ratio },
            Thresholds::Rate => {
                let apart = self.less_than_stated(mode);
                Threshold { power_w: self.receive_threshold_w * apart, ratio: ratio * apart }
            }
        }
    }

    /// Power and ratio that the reception of the header of a frame in `mode` needs.
    pub fn header_threshold(&self, mode: Mode) -> Threshold {
        match self.rules.thresholds {
            Thresholds::One => self.threshold(mode),
            Thresholds::Rate => self.threshold(self.header_mode(mode)),
        }
    }

    /// Power in W needed to decode a frame whose mode the sender chose, whatever `thresholds` says: the profile's threshold, shifted
    /// by the difference of the standard's minimum sensitivities.
    pub fn receive_threshold_at_w(&self, mode: Mode) -> f64 {
        self.receive_threshold_w * self.less_than_stated(mode)
    }

    /// Power from which on two stations are neighbours, W: that of unicast data at the profile's rate. If that is not the one that the
    /// profile's threshold is for (`receive_threshold_mcs`, `receive_threshold_rate_bps`) the power at which a frame of it, with RTS and answer, and a
    /// broadcast are received, and the start of a frame is sensed; if the sender chooses the rate (`rate_control`, or `by_kernel`: the kernel of a
    /// station with mac80211, which chooses that of broadcasts, too) that of the least demanding of its rates.
    pub fn neighbour_threshold_w(&self, by_kernel: bool) -> f64 {
        let is_fixed = !by_kernel && self.rate_control == RateControl::Fixed;
        if is_fixed && self.threshold_mode() == self.data_mode() {
            return self.receive_threshold_w;
        }
        let own_w = |mode, bytes| match self.reception {
            Reception::Sinr => self.sensitivity_w(mode, bytes),
            Reception::Threshold => self.threshold(mode).power_w,
        };
        let data_w = |mode| match self.reception {
            Reception::Threshold if by_kernel => self.receive_threshold_at_w(mode),
            _ => own_w(mode, self.longest_mpdu_bytes()),
        };
        let rts_w = |mode| match self.aggregation_limits().map_or(self.longest_mpdu_bytes(), |(_, bytes)| bytes) {
            longest if longest <= self.rts_threshold_bytes => 0.0,
            _ if is_fixed => own_w(self.control_mode(), RTS_BYTES),
            _ => own_w(self.rts_mode(mode), RTS_BYTES),
        };
        let exchange_w = |mode| data_w(mode).max(own_w(self.answer_mode(mode), BA_BYTES)).max(rts_w(mode));
        let modes = if is_fixed { vec![self.data_mode()] } else { self.data_modes() };
        let least_w = modes.into_iter().map(exchange_w).fold(f64::INFINITY, f64::min);
        // routing protocols and ARP find a neighbour by broadcasts
        let broadcast_w =
            if by_kernel { 0.0 } else { own_w(self.mode_of(FrameKind::Bcast), self.longest_mpdu_bytes()) };
        least_w.max(broadcast_w).max(self.carrier_sense_threshold_w)
    }

    fn longest_mpdu_bytes(&self) -> u32 {
        MTU_BYTES + self.overhead_bytes + if self.is_qos() { QOS_CONTROL_LEN as u32 } else { 0 }
    }

    /// Power in W from which on a frame of `bytes` in `mode` survives by its SINR as often as the longest packet does at the profile's threshold in
    /// the mode that this is for, or as often as a sensitivity demands.
    fn sensitivity_w(&self, mode: Mode, bytes: u32) -> f64 {
        let log_of = |mode, bytes: u32, power_w| log_success(mode, power_w / self.noise_w, f64::from(8 * bytes));
        let stated = log_of(self.threshold_mode(), self.longest_mpdu_bytes(), self.receive_threshold_w);
        let wanted = stated.max(SENSITIVITY_SUCCESS.ln());
        let (mut low_db, mut high_db) = SINR_RANGE_DB;
        for _ in 0..SINR_STEPS {
            let middle_db = (low_db + high_db) / 2.0;
            if log_of(mode, bytes, self.noise_w * 10f64.powf(middle_db / 10.0)) >= wanted {
                high_db = middle_db;
            } else {
                low_db = middle_db;
            }
        }
        self.noise_w * 10f64.powf(high_db / 10.0)
    }

    /// The ratio of the minimum sensitivities in `mode` and in the mode that the profile's thresholds are for; each stream has its share of the
    /// power.
    fn less_than_stated(&self, mode: Mode) -> f64 {
        let stated = self.threshold_mode();
        let apart = 10f64.powf((mode.min_sensitivity_dbm() - stated.min_sensitivity_dbm()) / 10.0);
        apart * f64::from(mode.streams()) / f64::from(stated.streams())
    }

    /// The mode that `receive_threshold_w` and `capture_db` are for.
    fn threshold_mode(&self) -> Mode {
        match (self.data_mode(), self.receive_threshold_mcs, self.receive_threshold_rate_bps) {
            (Mode::Mcs(data), Some(mcs), _) => Mode::Mcs(Mcs { mcs, streams: 1, ..data }),
            (Mode::Dsss(_) | Mode::Ofdm(_), _, Some(rate_bps)) => self.mode_of_rate(rate_bps),
            (data, ..) => data,
        }
    }

    /// Whether this PHY has the rate `rate_bps`.
    pub fn has_rate(&self, rate_bps: u64) -> bool {
        match self.modulation {
            Modulation::Dsss => DSSS_RATES_BPS.contains(&rate_bps),
            Modulation::S1g => self.s1g_of_rate(rate_bps).is_some(),
            _ => OFDM_RATES_BPS.contains(&rate_bps),
        }
    }

    /// The mode of unicast data.
    pub fn data_mode(&self) -> Mode {
        match self.family() {
            Some(_) => Mode::Mcs(self.mcs_mode().expect("checked: the standard has the mode")),
            None => self.mode_of_rate(self.data_rate_bps),
        }
    }

    /// The mode of a rate other than that of an MCS of HT, VHT or HE.
    pub fn mode_of_rate(&self, rate_bps: u64) -> Mode {
        match self.modulation {
            Modulation::Dsss => Mode::Dsss(rate_bps),
            Modulation::S1g => Mode::Mcs(self.s1g_of_rate(rate_bps).unwrap_or_else(|| self.lowest_mcs())),
            _ if DSSS_RATES_BPS.contains(&rate_bps) => Mode::Dsss(rate_bps),
            _ => Mode::Ofdm(rate_bps),
        }
    }

    /// Whether unicast data are QoS data frames: those of HT and later are (802.11-2016 10.2.4.1), and those of EDCA, with two bytes more.
    pub fn is_qos(&self) -> bool {
        self.has_mcs() || self.is_edca()
    }

    /// Whether unicast data are sent at an MCS.
    pub fn has_mcs(&self) -> bool {
        self.family().is_some()
    }

    pub(super) fn family(&self) -> Option<Family> {
        match self.modulation {
            Modulation::Dsss | Modulation::Ofdm => None,
            Modulation::Ht => Some(Family::Ht),
            Modulation::Vht => Some(Family::Vht),
            Modulation::He => Some(Family::He),
            Modulation::S1g => Some(Family::S1g),
        }
    }

    pub(super) fn mcs_mode(&self) -> Result<Mcs, RadioError> {
        let family = self.family().expect("callers ask only PHYs with an MCS");
        let mcs =
            self.mcs.ok_or_else(|| RadioError::Value(format!("key \"mcs\": {} needs one; add it", family.name())))?;
        let guards = family.guards();
        if !guards.contains(&self.guard_interval) {
            return Err(self.none_of(family, "guard_interval", self.guard_interval, guards));
        }
        let widths = family.widths_mhz();
        if !widths.contains(&self.width_mhz) {
            return Err(self.none_of(family, "width_mhz", self.width_mhz, widths));
        }
        let of = |mcs| Mcs::new(family, mcs, self.width_mhz, self.guard_interval, self.streams);
        let refused = |wrong| {
            let those: Vec<_> =
                (0..=HIGHEST_MCS).filter(|mcs| of(*mcs).is_ok_and(|mode| self.has_streams(mode))).collect();
            let streams = if self.streams == 1 { "one stream" } else { "two streams" };
            let of_what = format!("{} has {} in {} MHz with {streams}", family.name(), spans(&those), self.width_mhz);
            RadioError::Value(format!(
                "key \"mcs\": {wrong}; {of_what}: give one of those, or change width_mhz or streams"
            ))
        };
        let mode = of(mcs).map_err(refused)?;
        if !self.has_streams(mode) {
            return Err(refused(format!("MCS {mcs} of ht has two streams, and streams is {}", self.streams)));
        }
        Ok(mode)
    }

    /// HT's MCS 8 to 15 have two streams, whatever `streams` says.
    fn has_streams(&self, mode: Mcs) -> bool {
        mode.streams <= self.streams
    }

    /// The refusal of a value that this PHY has not, with those that it has.
    fn none_of<T: Serialize>(&self, family: Family, key: &str, value: T, all: &[T]) -> RadioError {
        let written = |value: &T| serde_json::json!(value).to_string();
        let all = all.iter().map(written).collect::<Vec<_>>().join(", ");
        format!("key \"{key}\": {} is none of {}; give one of {all}", written(&value), family.name()).into()
    }

    /// MCS 0 of S1G, which all of its stations receive. Its frames other than unicast data have the long guard interval: not all have the short one.
    fn lowest_mcs(&self) -> Mcs {
        Mcs { family: Family::S1g, mcs: 0, width_mhz: self.width_mhz, guard: GuardInterval::Long, streams: 1 }
    }

    fn s1g_of_rate(&self, rate_bps: u64) -> Option<Mcs> {
        let of = |mcs| Mcs::new(Family::S1g, mcs, self.width_mhz, GuardInterval::Long, 1).ok();
        (0..=REPEATED).filter_map(of).find(|mcs| Mode::Mcs(*mcs).rate_bps() == rate_bps)
    }

    /// The mode of frames of this kind without a choice of the kernel.
    pub fn mode_of(&self, kind: FrameKind) -> Mode {
        match kind {
            FrameKind::Data => self.data_mode(),
            FrameKind::Bcast => self.mode_of_rate(self.broadcast_rate_bps),
            _ => self.control_mode(),
        }
    }

    /// The mode of an RTS.
    pub fn control_mode(&self) -> Mode {
        self.mode_of_rate(self.control_rate_bps)
    }

    /// The mode of an RTS before data in `data`, a rate that its sender has chosen: the fastest basic rate not above that of the data, at
    /// most the profile's rate of RTS (802.11-2016 10.6.6.2 requires a basic rate; mac80211's `rate_fixup_ratelist` takes this one).
    pub fn rts_mode(&self, data: Mode) -> Mode {
        self.mode_of_rate(self.control_rate_bps.min(self.answer_rate_bps(data.reference_rate_bps())))
    }

    /// The mode of a Block Ack Request for data in `data`, of which `failures` were not answered since the last answer. A first one is sent as an RTS
    /// before such data would be (802.11-2020 10.6.6.2 requires a basic rate and 10.6.6.4, within a TXOP, one not above that of the frame
    /// before it; ns-3 takes that of the Block Ack), a repetition at the slowest basic rate, as all of mac80211's: the rate of the data, which the
    /// request delays, may be out of date.
    pub fn request_mode(&self, data: Mode, failures: u32) -> Mode {
        match failures {
            0 => self.rts_mode(data),
            _ => self.mode_of_rate(self.basic_rates_bps[0]),
        }
    }

    /// Time on the air of an RTS at the profile's rate.
    pub fn rts_airtime(&self) -> Duration {
        self.airtime(RTS_BYTES, self.control_mode())
    }

    /// Rate in bit/s of the CTS or ACK that answers a frame of `rate_bps`: the fastest basic rate not above it, or without such a
    /// rate the fastest mandatory one (802.11-2016 10.6.6.5.2). ns-2 has one basic rate.
    pub fn answer_rate_bps(&self, rate_bps: u64) -> u64 {
        let mandatory: &[u64] = match self.modulation {
            Modulation::Dsss => &DSSS_RATES_BPS,
            _ => &MANDATORY_OFDM_RATES_BPS,
        };
        // both ascend
        let fastest = |rates: &[u64]| rates.iter().copied().rfind(|rate| *rate <= rate_bps);
        fastest(&self.basic_rates_bps).or_else(|| fastest(mandatory)).unwrap_or(rate_bps)
    }

    /// The mode of the CTS or ACK that answers a frame in `mode`: a basic rate not above its reference rate.
    pub fn answer_mode(&self, mode: Mode) -> Mode {
        self.mode_of_rate(self.answer_rate_bps(mode.reference_rate_bps()))
    }

    /// Time on the air of the CTS or ACK that answers a frame in `mode`; both have the same length.
    pub fn answer_airtime(&self, mode: Mode) -> Duration {
        self.airtime(ACK_BYTES, self.answer_mode(mode))
    }

    /// Time on the air of the CTS that answers an RTS at the profile's rate.
    pub fn cts_airtime(&self) -> Duration {
        self.answer_airtime(self.control_mode())
    }

    /// CTSTimeout or ACKTimeout: wait for the answer after the end of the station's own frame in `mode`.
    pub fn answer_timeout(&self, mode: Mode) -> Duration {
        match self.rules.timeouts {
            // 4 us: ns-2 adds twice DSSS_MaxPropagationDelay
            Timeouts::Full => self.sifs() + self.answer_airtime(mode) + Duration::from_micros(4),
            Timeouts::Standard => self.sifs() + self.slot() + Duration::from_micros(self.rx_start_delay_us.into()),
        }
    }
}
