//! Rate control: at which rates a station sends its next unicast frame to a peer.
//!
//! A rate control is a machine without clock or radio. It knows a list of [`RateEntry`]s and what became of earlier frames; it does
//! not know the PHY that made the list nor the MAC that asks. For each new frame exchange the MAC calls
//! [`RateControl::choose`], goes through the [`Chain`] until the exchange is answered or given up, and calls
//! [`RateControl::report`] once. Some RTSs in a row without CTS are a lost transmission at the rate of the data that they were for: the rate of an RTS
//! follows that rate, so that a slower one is the cure (Linux: a stage that is passed has used up its tries, as ath9k reports; ns-3's Minstrels
//! learn of the frame that is given up, its ARF of none). A single one is not: it may have collided. Group-addressed, management and control frames are sent at the profile's rates and are not asked for.
//!
//! To add one: a file here with an `impl ForPeer` and a function `new`, its `mod` line, its row in [`ALGORITHMS`], and its name in
//! [`crate::phy::radio::RateControl`].
//!
//! | name | source |
//! |---|---|
//! | `fixed` | one rate, set by the user |
//! | `ideal` | ns-3's: the fastest rate with a bit error rate of 1e-6 at the last SNR; others gain by a faster one with losses |
//! | `arf` | Kamerman and Monteban 1997 |
//! | `aarf` | Lacage, Manshaei and Turletti 2004 |
//! | `minstrel` | MadWifi's and mac80211's Minstrel for legacy rates (Smithies 2005, Fietkau 2008) |
//! | `minstrel-ht` | mac80211's Minstrel-HT as redesigned for Linux 5.12 (Fietkau 2021) |

use manet_engine::{Duration, Instant, Stream};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

mod aarf;
mod arf;
mod fixed;
mod ideal;
mod minstrel;
mod minstrel_ht;
mod statistics;

#[cfg(test)]
mod channel;
#[cfg(test)]
mod properties;

/// Number of a peer.
pub type Peer = u16;
/// Length of the MPDU whose [`RateEntry::airtime`] is given, bytes: mac80211's AVG_PKT_SIZE.
pub const REFERENCE_BYTES: u32 = 1200;

/// Family of a modulation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Family {
    /// DSSS and CCK.
    Dsss,
    /// OFDM of 802.11a and g.
    Ofdm,
    /// 802.11n.
    Ht,
    /// 802.11ac.
    Vht,
    /// 802.11ax.
    He,
    /// 802.11ah.
    S1g,
}

/// Rates that differ in modulation and code only; Minstrel-HT samples by group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Group {
    /// The family.
    pub family: Family,
    /// Spatial streams.
    pub streams: u8,
    /// Width of the channel.
    pub width_mhz: u16,
    /// Whether the guard interval is the short one.
    pub short_guard: bool,
}

/// A rate at which the station can send.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RateEntry {
    /// Position in the list.
    pub index: usize,
    /// Data rate.
    pub rate_bps: u64,
    /// Its group.
    pub group: Group,
    /// Time on the air of a PPDU with one MPDU of [`REFERENCE_BYTES`], preamble included.
    pub airtime: Duration,
    /// SNR that it needs: the order of robustness.
    pub sensitivity_snr_db: f64,
}

/// The frame to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketView {
    /// Length of its (first) MPDU.
    pub mpdu_bytes: u32,
}

/// A number of transmissions at one rate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stage {
    /// Position of the rate in the list.
    pub rate: usize,
    /// Transmissions, 1 or more.
    pub tries: u8,
}

/// Stages of a chain: as many as mac80211's IEEE80211_TX_MAX_RATES.
pub const MAX_STAGES: usize = 4;

/// The rates of an exchange and its repetitions, in order. After the last stage its rate continues to the MAC's retry limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chain {
    stages: [Stage; MAX_STAGES],
    len: usize,
    /// Whether the first stage is a sample: Linux sends such a frame without aggregation (IEEE80211_TX_CTL_RATE_CTRL_PROBE).
    pub is_sample: bool,
}

impl Chain {
    /// One rate.
    pub fn new(rate: usize, tries: u8) -> Self {
        let mut stages = [Stage::default(); MAX_STAGES];
        stages[0] = Stage { rate, tries: tries.max(1) };
        Self { stages, len: 1, is_sample: false }
    }

    /// With a further rate. One equal to the last prolongs that stage; one beyond [`MAX_STAGES`] is left out.
    #[must_use]
    pub fn then(mut self, rate: usize, tries: u8) -> Self {
        let last = &mut self.stages[self.len - 1];
        if last.rate == rate {
            last.tries = last.tries.saturating_add(tries);
        } else if self.len < MAX_STAGES {
            self.stages[self.len] = Stage { rate, tries: tries.max(1) };
            self.len += 1;
        }
        self
    }

    /// The stages, at least one.
    pub fn stages(&self) -> &[Stage] {
        &self.stages[..self.len]
    }

    /// The rate of the `attempt`th transmission (from 1).
    pub fn rate(&self, attempt: u32) -> usize {
        let mut tries = 0;
        let stage = self.stages().iter().find(|stage| {
            tries += u32::from(stage.tries);
            attempt <= tries
        });
        stage.unwrap_or(&self.stages[self.len - 1]).rate
    }
}

/// What became of the transmissions at one rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tried {
    /// Position of the rate in the list.
    pub rate: usize,
    /// PPDUs sent, and lost ones of which only the RTSs were.
    pub transmissions: u32,
    /// Whether the last of them was answered by an ACK or Block Ack.
    pub answered: bool,
    /// MPDUs in all these PPDUs.
    pub mpdus: u32,
    /// MPDUs acknowledged.
    pub acknowledged: u32,
}

impl Tried {
    /// PPDUs of one MPDU.
    pub fn singles(rate: usize, transmissions: u32, answered: bool) -> Self {
        Self { rate, transmissions, answered, mpdus: transmissions, acknowledged: answered.into() }
    }
}

/// What became of an exchange, in the order of the chain.
#[derive(Clone, Copy, Debug)]
pub struct Attempts<'a> {
    /// The rates used.
    pub tried: &'a [Tried],
    /// SNR at which the peer received the last frame that it answered.
    pub snr_db: Option<f64>,
}

impl Attempts<'_> {
    /// Whether the exchange was answered.
    pub fn answered(&self) -> bool {
        self.tried.last().is_some_and(|tried| tried.answered)
    }
}

/// A rate in the table of a peer.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Position of the rate in the list.
    pub rate: usize,
    /// Its part now: `A` for the first choice; Minstrel `A` to `D` for the best by throughput and `P` for the most reliable, as in
    /// mac80211's `rc_stats`.
    pub roles: String,
    /// Estimated success of an MPDU, 0 to 1; `None`: no estimate.
    pub success: Option<f64>,
    /// Estimated throughput.
    pub throughput_bps: Option<f64>,
    /// MPDUs sent, and those of lost transmissions of which only the RTSs were.
    pub mpdus: u64,
    /// MPDUs acknowledged.
    pub acknowledged: u64,
}

/// The rate control of one station.
pub trait RateControl: Send {
    /// The rates of the next exchange with `peer`.
    fn choose(&mut self, now: Instant, peer: Peer, packet: &PacketView) -> Chain;
    /// What became of it.
    fn report(&mut self, now: Instant, peer: Peer, attempts: &Attempts);
    /// What it knows of a peer, one row for each rate in the order of the list; empty: an unknown peer.
    fn table(&self, peer: Peer) -> Vec<Row>;
    /// The peers that it knows, in order.
    fn peers(&self) -> Vec<Peer>;
    /// The station is switched off: it knows nobody.
    fn forget(&mut self);
}

/// Success of an MPDU of so many bytes at a rate and SNR (dB), 0 to 1.
pub type SuccessModel = Arc<dyn Fn(&RateEntry, f64, u32) -> f64 + Send + Sync>;

/// What an algorithm is made of.
#[derive(Clone)]
pub struct Setup {
    /// Rates, the first at position 0; at least one.
    pub rates: Arc<[RateEntry]>,
    /// Time that an exchange takes beside its PPDU: DIFS or AIFS, mean first backoff, SIFS, answer.
    pub overhead: Duration,
    /// `fixed`: position of its rate.
    pub fixed: usize,
    /// `ideal`: the error model of the radio.
    pub success: SuccessModel,
    /// Stream of the samples.
    pub random: Stream,
}

impl Setup {
    fn check(&self) -> Result<(), SetupError> {
        if self.rates.is_empty() {
            return Err(SetupError::NoRates);
        }
        if let Some((position, entry)) = self.rates.iter().enumerate().find(|(at, entry)| entry.index != *at) {
            return Err(SetupError::WrongIndex { position, index: entry.index });
        }
        if self.fixed >= self.rates.len() {
            return Err(SetupError::NotInList { fixed: self.fixed, rates: self.rates.len() });
        }
        Ok(())
    }

    /// Positions of the rates that are worth trying by SNR alone, slowest first: each needs a higher SNR than those before it.
    fn ladder(&self) -> Vec<usize> {
        let mut by_rate: Vec<&RateEntry> = self.rates.iter().collect();
        by_rate.sort_by(|a, b| a.rate_bps.cmp(&b.rate_bps).then(b.sensitivity_snr_db.total_cmp(&a.sensitivity_snr_db)));
        let mut ladder: Vec<&RateEntry> = Vec::new();
        for entry in by_rate {
            while ladder.last().is_some_and(|below| below.sensitivity_snr_db >= entry.sensitivity_snr_db) {
                ladder.pop();
            }
            ladder.push(entry);
        }
        ladder.iter().map(|entry| entry.index).collect()
    }
}

/// The reason why there is no such rate control.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SetupError {
    /// No row of [`ALGORITHMS`] has this name.
    UnknownName(String),
    /// The list of rates is empty.
    NoRates,
    /// The index of an entry is not its position in the list.
    WrongIndex {
        /// Position in the list.
        position: usize,
        /// Its index.
        index: usize,
    },
    /// The fixed rate is not in the list.
    NotInList {
        /// Position requested.
        fixed: usize,
        /// Length of the list.
        rates: usize,
    },
}

impl fmt::Display for SetupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownName(name) => {
                let names = ALGORITHMS.map(|algorithm| algorithm.name).join(", ");
                write!(f, "rate control {name:?}: one of {names}")
            }
            Self::NoRates => f.write_str("a rate control needs at least one rate"),
            Self::WrongIndex { position, index } => {
                write!(f, "the rate at position {position} of the list has index {index}")
            }
            Self::NotInList { fixed, rates } => write!(f, "fixed rate {fixed}: the list ends at {}", rates - 1),
        }
    }
}
impl std::error::Error for SetupError {}

/// A rate control by name.
pub struct Algorithm {
    /// Value of the key `rate_control`.
    pub name: &'static str,
    /// One line for users.
    pub summary: &'static str,
    new: fn(Setup) -> Box<dyn RateControl>,
}

impl fmt::Debug for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// All rate controls.
pub const ALGORITHMS: [Algorithm; 6] = [
    Algorithm { name: "fixed", summary: "one rate for all frames", new: fixed::new },
    Algorithm { name: "ideal", summary: "the fastest rate that the last SNR allows", new: ideal::new },
    Algorithm { name: "arf", summary: "up after 10 successes, down after 2 failures", new: arf::new },
    Algorithm { name: "aarf", summary: "ARF that probes less after each failed probe", new: aarf::new },
    Algorithm { name: "minstrel", summary: "best measured throughput, 10 % of frames look around", new: minstrel::new },
    Algorithm { name: "minstrel-ht", summary: "Minstrel for groups of rates and aggregates", new: minstrel_ht::new },
];

/// The rate control `name`.
///
/// # Errors
/// An unknown name, or a list of rates that is none.
pub fn by_name(name: &str, setup: Setup) -> Result<Box<dyn RateControl>, SetupError> {
    setup.check()?;
    let found = ALGORITHMS.iter().find(|algorithm| algorithm.name == name);
    found.map(|algorithm| (algorithm.new)(setup)).ok_or_else(|| SetupError::UnknownName(name.into()))
}

/// What an algorithm does for one peer, whose state it is handed.
trait ForPeer: Send {
    /// What it knows of a peer.
    type State: Send;
    /// The state of a peer before its first frame.
    fn begin(&self, now: Instant) -> Self::State;
    /// [`RateControl::choose`].
    fn choose(&mut self, now: Instant, state: &mut Self::State, packet: &PacketView) -> Chain;
    /// [`RateControl::report`].
    fn report(&mut self, now: Instant, state: &mut Self::State, attempts: &Attempts);
    /// [`RateControl::table`].
    fn table(&self, state: &Self::State) -> Vec<Row>;
}

/// An algorithm with the state of each peer, made at its first frame.
struct Peers<A: ForPeer> {
    algorithm: A,
    states: BTreeMap<Peer, A::State>,
}

fn of_each_peer<A: ForPeer + 'static>(algorithm: A) -> Box<dyn RateControl> {
    Box::new(Peers { algorithm, states: BTreeMap::new() })
}

impl<A: ForPeer> RateControl for Peers<A> {
    fn choose(&mut self, now: Instant, peer: Peer, packet: &PacketView) -> Chain {
        let state = self.states.entry(peer).or_insert_with(|| self.algorithm.begin(now));
        self.algorithm.choose(now, state, packet)
    }

    fn report(&mut self, now: Instant, peer: Peer, attempts: &Attempts) {
        let state = self.states.entry(peer).or_insert_with(|| self.algorithm.begin(now));
        self.algorithm.report(now, state, attempts);
    }

    fn table(&self, peer: Peer) -> Vec<Row> {
        self.states.get(&peer).map_or_else(Vec::new, |state| self.algorithm.table(state))
    }

    fn peers(&self) -> Vec<Peer> {
        self.states.keys().copied().collect()
    }

    fn forget(&mut self) {
        self.states.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::channel::{list, setup, OFDM};
    use super::*;

    #[test]
    fn a_chain_continues_at_its_last_rate() {
        let chain = Chain::new(7, 2).then(5, 1).then(5, 1).then(0, 3);
        let tries = |stage: &Stage| (stage.rate, stage.tries);
        assert_eq!(chain.stages().iter().map(tries).collect::<Vec<_>>(), [(7, 2), (5, 2), (0, 3)]);
        assert_eq!((1..=9).map(|n| chain.rate(n)).collect::<Vec<_>>(), [7, 7, 5, 5, 0, 0, 0, 0, 0]);
        assert_eq!(chain.then(1, 1).then(2, 1).stages().len(), MAX_STAGES);
        assert_eq!(Chain::new(0, 0).stages()[0].tries, 1);
    }

    #[test]
    fn mistakes_are_named() {
        let error = |name, setup| by_name(name, setup).err().unwrap().to_string();
        let unknown = error("minstrel_ht", setup(&OFDM));
        assert_eq!(unknown, "rate control \"minstrel_ht\": one of fixed, ideal, arf, aarf, minstrel, minstrel-ht");
        assert_eq!(error("fixed", Setup { fixed: 8, ..setup(&OFDM) }), "fixed rate 8: the list ends at 7");
        let empty = Setup { rates: [].into(), ..setup(&OFDM) };
        assert_eq!(error("arf", empty), "a rate control needs at least one rate");
        let mut rates = list(&OFDM);
        rates.swap(0, 1);
        let swapped = Setup { rates: rates.into(), ..setup(&OFDM) };
        assert_eq!(error("arf", swapped), "the rate at position 0 of the list has index 1");
    }

    #[test]
    fn the_ladder_leaves_out_rates_that_a_faster_one_makes_useless() {
        // 9 Mbit/s needs what 12 Mbit/s needs (table 17-18: -81 and -79 dBm is its sensitivity, but some models have it above)
        let setup = setup(&[(6, 5.0), (9, 8.0), (12, 8.0), (18, 7.5), (24, 12.0)]);
        assert_eq!(setup.ladder(), [0, 3, 4]);
    }
}
