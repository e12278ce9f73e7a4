//! A link for tests: lists of rates, and a channel that is a success for each of them.

use super::{
    by_name, Attempts, Chain, Family, Group, PacketView, RateControl, RateEntry, Setup, Tried, REFERENCE_BYTES,
};
use manet_engine::random::Purpose;
use manet_engine::{Duration, Instant, Stream};
use std::sync::Arc;

/// Mbit/s and SNR needed (dB).
pub const OFDM: [(u32, f64); 8] =
    [(6, 5.0), (9, 6.0), (12, 8.0), (18, 10.0), (24, 13.0), (36, 17.0), (48, 21.0), (54, 22.0)];

const PREAMBLE_US: u64 = 20;
const RETRY_LIMIT: u32 = 7;

fn entry(index: usize, rate_bps: u64, sensitivity_snr_db: f64, group: Group) -> RateEntry {
    let payload = Duration::of_bits(u64::from(REFERENCE_BYTES) * 8, rate_bps);
    RateEntry { index, rate_bps, group, airtime: payload + Duration::from_micros(PREAMBLE_US), sensitivity_snr_db }
}

pub fn list(rates: &[(u32, f64)]) -> Vec<RateEntry> {
    let group = Group { family: Family::Ofdm, streams: 1, width_mhz: 20, short_guard: false };
    let each =
        |(index, (mbps, snr_db)): (usize, &(u32, f64))| entry(index, u64::from(*mbps) * 1_000_000, *snr_db, group);
    rates.iter().enumerate().map(each).collect()
}

/// HT in 20 MHz: MCS 0 to 7 with one and two streams, long and short guard interval. Two streams need 3 dB more, short guard 1 dB.
pub fn ht() -> Vec<RateEntry> {
    const KBPS: [u64; 8] = [6500, 13_000, 19_500, 26_000, 39_000, 52_000, 58_500, 65_000];
    const SNR_DB: [f64; 8] = [5.0, 8.0, 10.0, 13.0, 17.0, 21.0, 22.0, 24.0];
    let mut rates = vec![];
    for (streams, short_guard) in [(1, false), (2, false), (1, true), (2, true)] {
        let group = Group { family: Family::Ht, streams, width_mhz: 20, short_guard };
        for (kbps, snr_db) in KBPS.iter().zip(SNR_DB) {
            let rate_bps = kbps * 1000 * u64::from(streams) * if short_guard { 10 } else { 9 } / 9;
            let more_db = 3.0 * f64::from(streams - 1) + f64::from(u8::from(short_guard));
            rates.push(entry(rates.len(), rate_bps, snr_db + more_db, group));
        }
    }
    rates
}

fn of(rates: Vec<RateEntry>) -> Setup {
    Setup {
        rates: rates.into(),
        overhead: Duration::from_micros(100),
        fixed: 0,
        success: Arc::new(|entry, snr_db, _| if snr_db >= entry.sensitivity_snr_db { 1.0 } else { 0.0 }),
        random: Stream::new(3, 0, Purpose::Traffic),
    }
}

pub fn setup(rates: &[(u32, f64)]) -> Setup {
    of(list(rates))
}

pub fn ht_setup() -> Setup {
    of(ht())
}

/// A saturated sender to peer 1.
pub struct Link {
    pub control: Box<dyn RateControl>,
    pub now: Instant,
    /// MPDUs of each PPDU.
    pub mpdus: u32,
    /// Reported if an exchange is answered.
    pub snr_db: Option<f64>,
    /// MPDUs acknowledged.
    pub acknowledged: u64,
    setup: Setup,
    random: Stream,
    sent: Vec<u32>,
}

impl Link {
    pub fn new(name: &str, setup: Setup) -> Self {
        Self {
            control: by_name(name, setup.clone()).unwrap(),
            now: Instant::ZERO,
            mpdus: 1,
            snr_db: None,
            acknowledged: 0,
            sent: vec![0; setup.rates.len()],
            setup,
            random: Stream::new(8, 0, Purpose::Error),
        }
    }

    pub fn choose(&mut self) -> Chain {
        self.control.choose(self.now, 1, &PacketView { mpdu_bytes: REFERENCE_BYTES })
    }

    /// Goes through a chain until it is answered; `success`: of an MPDU at each rate.
    pub fn exchange(&mut self, success: &[f64]) -> Chain {
        let chain = self.choose();
        let mut tried: Vec<Tried> = vec![];
        for attempt in 1..=RETRY_LIMIT {
            let rate = chain.rate(attempt);
            let acknowledged = (0..self.mpdus).filter(|_| self.random.chance(success[rate])).count() as u32;
            self.sent[rate] += 1;
            self.acknowledged += u64::from(acknowledged);
            let payload = Duration::of_bits(u64::from(REFERENCE_BYTES) * 8, self.setup.rates[rate].rate_bps);
            self.now += self.setup.overhead + Duration::from_micros(PREAMBLE_US) + payload * u64::from(self.mpdus);
            if tried.last().is_none_or(|last| last.rate != rate) {
                tried.push(Tried { rate, transmissions: 0, answered: false, mpdus: 0, acknowledged: 0 });
            }
            let last = tried.last_mut().expect("pushed above");
            last.transmissions += 1;
            last.mpdus += self.mpdus;
            last.acknowledged += acknowledged;
            last.answered = acknowledged > 0;
            if last.answered {
                break;
            }
        }
        let answered = tried.last().is_some_and(|last| last.answered);
        let attempts = Attempts { tried: &tried, snr_db: self.snr_db.filter(|_| answered) };
        self.control.report(self.now, 1, &attempts);
        chain
    }

    /// Exchanges for so many seconds. Returns the share of transmissions at each rate.
    pub fn run(&mut self, seconds: f64, success: &[f64]) -> Vec<f64> {
        let end = self.now + Duration::from_secs_f64(seconds);
        self.sent.fill(0);
        self.acknowledged = 0;
        while self.now < end {
            self.exchange(success);
        }
        let all: u32 = self.sent.iter().sum();
        self.sent.iter().map(|sent| f64::from(*sent) / f64::from(all)).collect()
    }
}
