//! The rate control of a station at its MAC: the modes of its radio as a list of rates, and progress along a chain of rates.

use crate::mac::Packet;
use crate::phy::error_model::log_success;
use crate::phy::mode::{self, GuardInterval, Mcs};
use crate::phy::radio::{FrameKind, Reception, Thresholds};
use crate::phy::{Mode, Radio};
use crate::rate_control::{
    by_name, Attempts, Chain, Family, Group, PacketView, Peer, RateControl, RateEntry, Row, Setup, SuccessModel, Tried,
    REFERENCE_BYTES,
};
use manet_engine::{Duration, Instant, Stream};
use std::sync::Arc;

/// RTSs in a row that get no CTS and count as a lost transmission at the rate of their data. A single one may have collided, which says nothing
/// of a rate; Linux gives a rate at least two tries of an RTS (`retry_count_rtscts` of minstrel_ht_calc_retransmit).
const RTS_TRIES: u32 = 3;

/// The rate control of a station and its list of modes.
pub struct Rates {
    control: Box<dyn RateControl>,
    modes: Arc<[Mode]>,
}

/// Progress along a chain.
#[derive(Clone, Debug)]
pub struct Progress {
    chain: Chain,
    /// Transmissions so far.
    transmissions: u32,
    tried: Vec<Tried>,
    /// RTSs without CTS since the last transmission.
    lost_rts: u32,
}

impl Progress {
    /// Whether the next transmission is a sample, which is sent without aggregation.
    pub fn is_sample(&self) -> bool {
        self.chain.is_sample && self.transmissions == 0
    }

    fn rate(&self) -> usize {
        self.chain.rate(self.transmissions + 1)
    }

    /// Counts an RTS without CTS, which was for so many MPDUs: [`RTS_TRIES`] in a row are a lost transmission of these.
    pub fn count_lost_rts(&mut self, mpdus: u32) {
        self.lost_rts += 1;
        if self.lost_rts == RTS_TRIES {
            self.count(mpdus, 0, false);
        }
    }

    /// Counts a transmission of so many MPDUs, of which so many were acknowledged.
    pub fn count(&mut self, mpdus: u32, acknowledged: u32, answered: bool) {
        let rate = self.rate();
        self.transmissions += 1;
        self.lost_rts = 0;
        match self.tried.last_mut().filter(|last| last.rate == rate) {
            Some(last) => {
                last.transmissions += 1;
                last.answered = answered;
                last.mpdus += mpdus;
                last.acknowledged += acknowledged;
            }
            None => self.tried.push(Tried { rate, transmissions: 1, answered, mpdus, acknowledged }),
        }
    }

    /// The answer to a Block Ack Request: so many MPDUs of the last transmission had arrived. It is sent at a rate of its own, and answers for
    /// that transmission only if one of them had.
    pub fn acknowledge(&mut self, mpdus: u32) {
        if let Some(last) = self.tried.last_mut().filter(|_| mpdus > 0) {
            last.answered = true;
            last.acknowledged = (last.acknowledged + mpdus).min(last.mpdus);
        }
    }
}

impl Rates {
    /// The rate control that the profile selects. `random`: stream of its samples.
    pub fn new(radio: &Radio, random: Stream) -> Self {
        let modes: Arc<[Mode]> = radio.data_modes().into();
        let data = radio.data_mode();
        let rates: Arc<[RateEntry]> = modes.iter().enumerate().map(|(i, mode)| entry(radio, i, *mode)).collect();
        let answer = if radio.aggregation_limits().is_some() {
            radio.block_ack_airtime(data)
        } else {
            radio.answer_airtime(data)
        };
        let setup = Setup {
            rates,
            overhead: radio.difs()
                + Duration::from_nanos(radio.slot().as_nanos() * u64::from(radio.cw_min) / 2)
                + radio.sifs()
                + answer,
            fixed: modes.iter().position(|mode| *mode == data).expect("the profile's mode is one of its PHY"),
            success: success(radio, modes.clone()),
            random,
        };
        let name = radio.rate_control.name();
        let control = by_name(name, setup).expect("the names are the same, and the list is made above");
        Self { control, modes }
    }

    /// Begins a chain for a frame whose first MPDU has `mpdu_bytes`.
    pub fn begin(&mut self, now: Instant, peer: Peer, mpdu_bytes: u32) -> Progress {
        let chain = self.control.choose(now, peer, &PacketView { mpdu_bytes });
        Progress { chain, transmissions: 0, tried: Vec::new(), lost_rts: 0 }
    }

    /// The mode of the next transmission.
    pub fn mode(&self, progress: &Progress) -> Mode {
        self.modes[progress.rate()]
    }

    /// Ends a chain. `snr_db`: that of the frame that was answered.
    pub fn end(&mut self, now: Instant, peer: Peer, progress: &Progress, snr_db: Option<f64>) {
        // nothing is tried of a packet that internal collisions alone have ended
        if !progress.tried.is_empty() {
            self.control.report(now, peer, &Attempts { tried: &progress.tried, snr_db });
        }
    }

    /// What it knows of each peer: modes with their rows.
    pub fn tables(&self) -> Vec<(Peer, Vec<(Mode, Row)>)> {
        let rows = |peer| self.control.table(peer).into_iter().map(|row| (self.modes[row.rate], row)).collect();
        self.control.peers().into_iter().map(|peer| (peer, rows(peer))).collect()
    }

    /// The station is switched off.
    pub fn forget(&mut self) {
        self.control.forget();
    }

    /// Time on the air of the packet's data frame at the fastest rate.
    pub fn shortest_airtime(&self, packet: &Packet, radio: &Radio, kind: FrameKind) -> Duration {
        let bytes = packet.mpdu_bytes(radio);
        let own = packet.shortest_airtime(radio, kind);
        self.modes.iter().map(|mode| radio.airtime(bytes, *mode)).min().unwrap_or(own).min(own)
    }
}

fn entry(radio: &Radio, index: usize, mode: Mode) -> RateEntry {
    let group = match mode {
        Mode::Dsss(_) => Group { family: Family::Dsss, streams: 1, width_mhz: 22, short_guard: false },
        Mode::Ofdm(_) => Group { family: Family::Ofdm, streams: 1, width_mhz: 20, short_guard: false },
        Mode::Mcs(Mcs { family, width_mhz, guard, streams, .. }) => {
            let family = match family {
                mode::Family::Ht => Family::Ht,
                mode::Family::Vht => Family::Vht,
                mode::Family::He => Family::He,
                mode::Family::S1g => Family::S1g,
            };
            Group { family, streams, width_mhz, short_guard: guard == GuardInterval::Short }
        }
    };
    // each stream has its share of the power
    let streams_db = 10.0 * f64::from(mode.streams()).log10();
    RateEntry {
        index,
        rate_bps: mode.rate_bps(),
        group,
        airtime: radio.airtime(REFERENCE_BYTES, mode),
        sensitivity_snr_db: mode.min_sensitivity_dbm() + streams_db - noise_dbm(radio),
    }
}

fn noise_dbm(radio: &Radio) -> f64 {
    10.0 * (radio.noise_w * 1e3).log10()
}

/// The model of the radio's own reception: by SINR its error model, by thresholds 1 from the threshold on.
fn success(radio: &Radio, modes: Arc<[Mode]>) -> SuccessModel {
    let by_sinr = radio.reception == Reception::Sinr;
    let needed: Vec<f64> = match radio.rules.thresholds {
        Thresholds::One => vec![radio.receive_threshold_w / radio.noise_w; modes.len()],
        Thresholds::Rate => modes.iter().map(|mode| radio.threshold(*mode).power_w / radio.noise_w).collect(),
    };
    Arc::new(move |entry, snr_db, bytes| {
        let snr = 10f64.powf(snr_db / 10.0);
        if by_sinr {
            log_success(modes[entry.index], snr, f64::from(bytes) * 8.0).exp()
        } else {
            f64::from(u8::from(snr >= needed[entry.index]))
        }
    })
}
