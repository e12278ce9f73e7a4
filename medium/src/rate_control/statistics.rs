//! What became of frames, by rate: totals for the table, and Minstrel's estimates.

use super::{Attempts, RateEntry, Row, REFERENCE_BYTES};
use manet_engine::Duration;

/// MPDUs sent and acknowledged at each rate.
#[derive(Clone, Debug)]
pub struct Totals(Vec<(u64, u64)>);

impl Totals {
    pub fn new(rates: usize) -> Self {
        Self(vec![(0, 0); rates])
    }

    pub fn add(&mut self, attempts: &Attempts) {
        for tried in attempts.tried {
            if let Some((mpdus, acknowledged)) = self.0.get_mut(tried.rate) {
                *mpdus += u64::from(tried.mpdus);
                *acknowledged += u64::from(tried.acknowledged);
            }
        }
    }

    /// The table of an algorithm without estimates.
    pub fn rows(&self, first_choice: usize) -> Vec<Row> {
        let row = |(rate, &(mpdus, acknowledged)): (usize, &(u64, u64))| Row {
            rate,
            roles: if rate == first_choice { "A".into() } else { String::new() },
            success: None,
            throughput_bps: None,
            mpdus,
            acknowledged,
        };
        self.0.iter().enumerate().map(row).collect()
    }
}

/// Share of the old estimate in the new one: EWMA_LEVEL of Minstrel, 75 %.
const OLD_SHARE: f64 = 0.75;
/// Below that success a rate has no throughput; above the other, more success adds none: retries of a frame that is lost now and
/// then cost less than a slower rate (mac80211: minstrel_get_tp_avg).
const MIN_SUCCESS: f64 = 0.1;
const MAX_SUCCESS: f64 = 0.9;
/// Time that the transmissions of a stage may take, and their number whatever they take (mac80211: segment_size, max_retry; a rate
/// that fails nearly always has one). The contention window counts as that of the first transmission, which mac80211 doubles.
const STAGE_TIME: Duration = Duration::from_micros(6000);
const MIN_TRIES: u64 = 2;
const MAX_TRIES: u64 = 7;

/// Minstrel's estimate of one rate.
#[derive(Clone, Copy, Debug, Default)]
pub struct Estimate {
    /// Smoothed share of acknowledged MPDUs; `None`: never tried.
    pub success: Option<f64>,
    mpdus: u32,
    acknowledged: u32,
}

impl Estimate {
    fn fold(&mut self) {
        if self.mpdus > 0 {
            let now = f64::from(self.acknowledged) / f64::from(self.mpdus);
            self.success = Some(self.success.map_or(now, |old| OLD_SHARE * old + (1.0 - OLD_SHARE) * now));
        }
        (self.mpdus, self.acknowledged) = (0, 0);
    }
}

/// Minstrel's estimates of all rates to a peer.
#[derive(Clone, Debug)]
pub struct Estimates {
    pub of: Vec<Estimate>,
    totals: Totals,
    /// Smoothed number of MPDUs in an answered aggregate.
    pub mpdus_per_ppdu: f64,
    window: (u32, u32),
}

impl Estimates {
    pub fn new(rates: usize) -> Self {
        Self { of: vec![Estimate::default(); rates], totals: Totals::new(rates), mpdus_per_ppdu: 1.0, window: (0, 0) }
    }

    pub fn add(&mut self, attempts: &Attempts) {
        self.totals.add(attempts);
        for tried in attempts.tried {
            let Some(estimate) = self.of.get_mut(tried.rate) else { continue };
            estimate.mpdus += tried.mpdus;
            estimate.acknowledged += tried.acknowledged;
            self.window.0 += tried.mpdus;
            self.window.1 += tried.transmissions;
        }
    }

    /// Ends an interval.
    pub fn update(&mut self) {
        self.of.iter_mut().for_each(Estimate::fold);
        let (mpdus, ppdus) = std::mem::take(&mut self.window);
        if ppdus > 0 {
            let now = f64::from(mpdus) / f64::from(ppdus);
            self.mpdus_per_ppdu = OLD_SHARE * self.mpdus_per_ppdu + (1.0 - OLD_SHARE) * now;
        }
    }

    /// Time of an MPDU of reference length with its share of the exchange.
    fn seconds(&self, entry: &RateEntry, overhead: Duration) -> f64 {
        let payload = f64::from(REFERENCE_BYTES * 8) / entry.rate_bps as f64;
        let shared = overhead.as_secs_f64() + (entry.airtime.as_secs_f64() - payload).max(0.0);
        payload + shared / self.mpdus_per_ppdu.max(1.0)
    }

    /// Throughput at a success, bit/s.
    pub fn throughput_at(&self, entry: &RateEntry, overhead: Duration, success: f64) -> f64 {
        if success < MIN_SUCCESS {
            return 0.0;
        }
        f64::from(REFERENCE_BYTES * 8) * success.min(MAX_SUCCESS) / self.seconds(entry, overhead)
    }

    /// Estimated throughput, bit/s.
    pub fn throughput_bps(&self, entry: &RateEntry, overhead: Duration) -> f64 {
        self.throughput_at(entry, overhead, self.of[entry.index].success.unwrap_or(0.0))
    }

    /// Positions by throughput, the best first; of equals the most robust first.
    pub fn ranking(&self, rates: &[RateEntry], overhead: Duration) -> Vec<usize> {
        let mut order: Vec<(f64, &RateEntry)> = rates.iter().map(|e| (self.throughput_bps(e, overhead), e)).collect();
        order.sort_by(|(a, x), (b, y)| b.total_cmp(a).then(x.sensitivity_snr_db.total_cmp(&y.sensitivity_snr_db)));
        order.iter().map(|(_, entry)| entry.index).collect()
    }

    /// The rate with the greatest success; if some reach `reliable`, the one of them with the greatest throughput; if all fail, the most
    /// robust. `ranking`: by throughput, not empty.
    pub fn most_reliable(&self, ranking: &[usize], reliable: f64) -> usize {
        let success = |rate: &usize| self.of[*rate].success.filter(|success| *success >= MIN_SUCCESS).unwrap_or(0.0);
        let most = ranking.iter().map(success).fold(0.0, f64::max).min(reliable);
        *ranking.iter().find(|rate| success(rate) >= most).expect("one has the greatest success")
    }

    /// Transmissions of a stage at a rate.
    pub fn tries(&self, entry: &RateEntry, overhead: Duration) -> u8 {
        let ppdu = Duration::from_secs_f64(self.seconds(entry, overhead) * self.mpdus_per_ppdu.max(1.0));
        let fit = STAGE_TIME.as_nanos() / ppdu.as_nanos().max(1);
        let fails = self.of[entry.index].success.is_some_and(|success| success < MIN_SUCCESS);
        if fails {
            1
        } else {
            fit.clamp(MIN_TRIES, MAX_TRIES) as u8
        }
    }

    /// The table of a peer. `roles`: letters and the rates that have them.
    pub fn rows(&self, rates: &[RateEntry], overhead: Duration, roles: &[(char, usize)]) -> Vec<Row> {
        let mut rows = self.totals.rows(usize::MAX);
        for (row, entry) in rows.iter_mut().zip(rates) {
            row.roles = roles.iter().filter(|(_, rate)| *rate == entry.index).map(|(letter, _)| *letter).collect();
            row.success = self.of[entry.index].success;
            row.throughput_bps = row.success.map(|_| self.throughput_bps(entry, overhead));
        }
        rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rate_control::channel::{list, setup, OFDM};
    use crate::rate_control::Tried;

    fn add(estimates: &mut Estimates, rate: usize, mpdus: u32, acknowledged: u32) {
        let tried = [Tried { rate, transmissions: 1, answered: acknowledged > 0, mpdus, acknowledged }];
        estimates.add(&Attempts { tried: &tried, snr_db: None });
    }

    #[test]
    fn the_first_interval_counts_in_full_and_each_later_one_a_quarter() {
        let mut e = Estimates::new(8);
        let mut success = vec![];
        for acknowledged in [8, 0, 10] {
            add(&mut e, 3, 10, acknowledged);
            e.update();
            success.push(e.of[3].success.unwrap());
        }
        e.update(); // nothing was sent: nothing is known better
        success.push(e.of[3].success.unwrap());
        let expected = [0.8, 0.75 * 0.8, 0.75 * 0.6 + 0.25, 0.7];
        assert!(success.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-12), "{success:?}");
        assert_eq!(e.of[4].success, None);
    }

    #[test]
    fn throughput_is_success_over_time_and_aggregates_share_the_overhead() {
        let (rates, overhead) = (list(&OFDM), Duration::from_micros(100));
        let mut e = Estimates::new(8);
        // 54 Mbit/s: 9600 bits take 177.8 us and 20 us preamble; with 100 us and success 0.5 that is 16.1 Mbit/s
        let mbps = |e: &Estimates, success| e.throughput_at(&rates[7], overhead, success) / 1e6;
        assert!((mbps(&e, 0.5) - 4800.0 / 297.8).abs() < 0.01, "{}", mbps(&e, 0.5));
        assert_eq!((mbps(&e, 0.09), mbps(&e, 0.95)), (0.0, mbps(&e, 1.0)));
        e.mpdus_per_ppdu = 10.0;
        assert!((mbps(&e, 0.5) - 4800.0 / 189.8).abs() < 0.01, "{}", mbps(&e, 0.5));
    }

    #[test]
    fn aggregates_make_fast_rates_worth_more() {
        // 54 Mbit/s at 0.45 against 24 at 0.9, which counts as no loss: alone 9600 bits x 0.45 / 297.8 us = 14.5 against 8640 / 520 us
        // = 16.6 Mbit/s, of 32 in an aggregate 4320 / 181.5 us = 23.8 against 8640 / 403.8 us = 21.4
        let mut e = Estimates::new(8);
        e.of[4].success = Some(0.9);
        e.of[7].success = Some(0.45);
        let best = |e: &Estimates| e.ranking(&list(&OFDM), Duration::from_micros(100))[0];
        assert_eq!(best(&e), 4);
        e.mpdus_per_ppdu = 32.0;
        assert_eq!(best(&e), 7);
    }

    #[test]
    fn of_reliable_rates_the_fastest_is_the_most_reliable() {
        let setup = setup(&OFDM);
        let most_reliable = |success: &[f64]| {
            let mut e = Estimates::new(8);
            (0..).zip(success).for_each(|(rate, p)| add(&mut e, rate, 100, (p * 100.0) as u32));
            e.update();
            e.most_reliable(&e.ranking(&setup.rates, setup.overhead), 0.95)
        };
        assert_eq!(most_reliable(&[1.0, 1.0, 0.96, 0.9, 0.5]), 2);
        assert_eq!(most_reliable(&[0.5, 0.7, 0.7, 0.6, 0.5]), 2);
        assert_eq!(most_reliable(&[0.0, 0.0, 0.0, 0.09, 0.05]), 0, "below a tenth all fail alike");
    }

    #[test]
    fn a_stage_lasts_6_ms_and_a_failing_rate_has_one_try() {
        let (rates, overhead) = (list(&OFDM), Duration::from_micros(100));
        let mut e = Estimates::new(8);
        // 6 Mbit/s: 1600 + 20 + 100 us: 3 fit; 54 Mbit/s: 297.8 us: 20 fit
        assert_eq!((e.tries(&rates[0], overhead), e.tries(&rates[7], overhead)), (3, 7));
        add(&mut e, 7, 100, 9);
        e.update();
        assert_eq!(e.tries(&rates[7], overhead), 1);
    }
}
