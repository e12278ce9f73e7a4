//! Minstrel-HT of mac80211 (Felix Fietkau 2010) with the sampling of Linux 5.12 (commit 80d55154b2f8, "significantly redesign the rate
//! probing strategy"), as Debian 12 and 13 have it.
//!
//! Every 50 ms the share of acknowledged MPDUs at each rate is smoothed, and the four rates with the best throughput (of an MPDU with
//! its share of the exchange, by the mean aggregate) and the most reliable one are found. The chain is the best, the second and the most
//! reliable. Every 20 ms at most, a frame tries another rate first, by turns of six:
//!
//! - three times the slowest rate of the next group that could be better than the best now (`Inc`);
//! - twice any rate of the next group that could (`Jump`);
//! - once a rate between the most reliable or second best and the best (`Slow`).
//!
//! A turn without a candidate passes to the next. A rate is sampled once in an interval.
//!
//! Departures: success is smoothed by an EWMA with 75 % of the old value, as before Linux 5.5, not by its filter; "better" compares
//! the throughput without losses with the measured one of the best rate, Linux the durations of frames; groups are those of the list of
//! rates, so legacy rates are a group like the others; Linux limits the most reliable rate to a number of streams. After a sample that
//! fails Linux continues with the second best rate (the sample takes the place of the first in mac80211's table), here with the best.
//! Beside Linux 6.12 over hwsim: docs/results/rate-links, docs/results/rate-walk.

use super::statistics::Estimates;
use super::{of_each_peer, Attempts, Chain, ForPeer, Group, PacketView, RateControl, RateEntry, Row, Setup};
use manet_engine::{Duration, Instant, Stream};

/// HZ / 20.
const UPDATE_INTERVAL: Duration = Duration::from_millis(50);
/// MINSTREL_SAMPLE_INTERVAL, HZ / 50.
const SAMPLE_INTERVAL: Duration = Duration::from_millis(20);
/// Success from which throughput decides among the most reliable.
const RELIABLE: f64 = 0.75;
/// MAX_THR_RATES.
const BEST: usize = 4;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Turn {
    Inc,
    Jump,
    Slow,
}
const TURNS: [Turn; 6] = [Turn::Inc, Turn::Jump, Turn::Inc, Turn::Jump, Turn::Inc, Turn::Slow];

struct MinstrelHt {
    setup: Setup,
    groups: Vec<Group>,
    lowest: usize,
}

struct State {
    estimates: Estimates,
    best: [usize; BEST],
    reliable: usize,
    updated: Instant,
    sampled: Instant,
    turn: usize,
    next_group: usize,
    /// Rates sampled in this interval.
    taken: Vec<bool>,
}

pub(super) fn new(setup: Setup) -> Box<dyn RateControl> {
    let lowest = setup.ladder()[0];
    let mut groups: Vec<Group> = setup.rates.iter().map(|entry| entry.group).collect();
    groups.sort();
    groups.dedup();
    of_each_peer(MinstrelHt { setup, groups, lowest })
}

impl State {
    fn new(now: Instant, rates: usize, lowest: usize) -> Self {
        Self {
            estimates: Estimates::new(rates),
            best: [lowest; BEST],
            reliable: lowest,
            updated: now,
            sampled: now,
            turn: 0,
            next_group: 0,
            taken: vec![false; rates],
        }
    }

    fn update(&mut self, now: Instant, setup: &Setup) {
        self.updated = now;
        self.estimates.update();
        let ranking = self.estimates.ranking(&setup.rates, setup.overhead);
        self.reliable = self.estimates.most_reliable(&ranking, RELIABLE);
        self.best = std::array::from_fn(|n| *ranking.get(n).unwrap_or(&ranking[0]));
        self.taken.fill(false);
    }

    /// The rate that this exchange tries first.
    fn sample(&mut self, now: Instant, setup: &mut Setup, groups: &[Group]) -> Option<usize> {
        if now.since(self.sampled) < SAMPLE_INTERVAL {
            return None;
        }
        self.sampled = now; // also without a candidate: the search costs more than the rest
        let rate = (0..TURNS.len()).find_map(|_| {
            self.turn = (self.turn + 1) % TURNS.len();
            self.candidate(TURNS[self.turn], setup, groups)
        })?;
        self.taken[rate] = true;
        Some(rate)
    }

    fn candidate(&mut self, turn: Turn, setup: &mut Setup, groups: &[Group]) -> Option<usize> {
        if turn == Turn::Slow {
            return pick(&self.slower(&setup.rates), &mut setup.random);
        }
        for step in 1..=groups.len() {
            let group = (self.next_group + step) % groups.len();
            let better = self.better(setup, groups[group]);
            let found = match turn {
                Turn::Inc => better.iter().copied().min_by_key(|rate| setup.rates[*rate].rate_bps),
                _ => pick(&better, &mut setup.random),
            };
            if found.is_some() {
                self.next_group = group;
                return found;
            }
        }
        None
    }

    /// Rates of a group that would be better than the best now if they lost nothing.
    fn better(&self, setup: &Setup, group: Group) -> Vec<usize> {
        let best = self.estimates.throughput_bps(&setup.rates[self.best[0]], setup.overhead);
        let is_better = |entry: &&RateEntry| {
            entry.group == group
                && self.is_untried(entry.index)
                && self.estimates.throughput_at(entry, setup.overhead, 1.0) > best
        };
        setup.rates.iter().filter(is_better).map(|entry| entry.index).collect()
    }

    /// Rates between the most reliable or second best and the best.
    fn slower(&self, rates: &[RateEntry]) -> Vec<usize> {
        let below = rates[self.best[0]].rate_bps;
        let above = rates[self.best[1]].rate_bps.min(rates[self.reliable].rate_bps);
        let between =
            |entry: &&RateEntry| entry.rate_bps > above && entry.rate_bps < below && self.is_untried(entry.index);
        rates.iter().filter(between).map(|entry| entry.index).collect()
    }

    /// Neither sampled in this interval nor the first of the chain. The second is sampled: it is not sent at while the first succeeds.
    fn is_untried(&self, rate: usize) -> bool {
        !self.taken[rate] && rate != self.best[0]
    }
}

fn pick(rates: &[usize], random: &mut Stream) -> Option<usize> {
    (!rates.is_empty()).then(|| rates[random.below(rates.len() as u64) as usize])
}

impl ForPeer for MinstrelHt {
    type State = State;

    fn begin(&self, now: Instant) -> State {
        State::new(now, self.setup.rates.len(), self.lowest)
    }

    fn choose(&mut self, now: Instant, state: &mut State, _: &PacketView) -> Chain {
        let sample = state.sample(now, &mut self.setup, &self.groups);
        let tries = |rate: usize| state.estimates.tries(&self.setup.rates[rate], self.setup.overhead);
        let [first, second, ..] = state.best;
        let start = match sample {
            Some(other) => Chain { is_sample: true, ..Chain::new(other, 1) }.then(first, tries(first)),
            None => Chain::new(first, tries(first)).then(second, tries(second)),
        };
        start.then(state.reliable, tries(state.reliable))
    }

    fn report(&mut self, now: Instant, state: &mut State, attempts: &Attempts) {
        state.estimates.add(attempts);
        if now.since(state.updated) >= UPDATE_INTERVAL {
            state.update(now, &self.setup);
        }
    }

    fn table(&self, state: &State) -> Vec<Row> {
        let [a, b, c, d] = state.best;
        let roles = [('A', a), ('B', b), ('C', c), ('D', d), ('P', state.reliable)];
        state.estimates.rows(&self.setup.rates, self.setup.overhead, &roles)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rate_control::channel::{ht, ht_setup, Link};

    /// Success by SNR need: 1 below the knee, falling over 3 dB to 0.
    fn at_snr(snr_db: f64) -> Vec<f64> {
        ht().iter().map(|entry| ((snr_db - entry.sensitivity_snr_db) / 3.0).clamp(0.0, 1.0)).collect()
    }

    #[test]
    fn it_climbs_through_32_rates_in_half_a_second() {
        let mut link = Link::new("minstrel-ht", ht_setup());
        link.mpdus = 32;
        link.run(0.5, &at_snr(60.0));
        let shares = link.run(0.5, &at_snr(60.0));
        assert!(shares[31] > 0.99, "{shares:?}"); // two streams, MCS 7, short guard interval
    }

    #[test]
    fn the_table_has_the_letters_of_rc_stats() {
        let mut link = Link::new("minstrel-ht", ht_setup());
        link.run(2.0, &at_snr(20.0));
        let table = link.control.table(1);
        let with = |letter| table.iter().filter(|row| row.roles.contains(letter)).count();
        assert_eq!("ABCDP".chars().map(with).collect::<Vec<_>>(), [1; 5]);
        let best = table.iter().find(|row| row.roles.contains('A')).unwrap();
        assert!(table.iter().all(|row| row.throughput_bps.unwrap_or(0.0) <= best.throughput_bps.unwrap()));
    }

    #[test]
    fn samples_are_at_least_20_ms_apart_and_stop_at_the_top() {
        let mut link = Link::new("minstrel-ht", ht_setup());
        let samples = |link: &mut Link, success: &[f64]| {
            let end = link.now + Duration::from_millis(1000);
            let mut count = 0;
            while link.now < end {
                count += u32::from(link.exchange(success).is_sample);
            }
            count
        };
        let first = samples(&mut link, &at_snr(20.0));
        assert!((30..=50).contains(&first), "{first}");
        (0..5).for_each(|_| assert!(samples(&mut link, &at_snr(60.0)) <= 50));
        assert_eq!(samples(&mut link, &at_snr(60.0)), 0, "nothing is faster than the fastest");
    }

    #[test]
    fn inc_takes_the_slowest_better_rate_of_each_group_in_turn() {
        let mut state = State::new(Instant::ZERO, 32, 0);
        let mut setup = ht_setup();
        // MCS 3 of the first group loses nothing: 26 Mbit/s
        state.best = [3; BEST];
        state.reliable = 3;
        state.estimates.of[3].success = Some(1.0);
        let groups = [0, 8, 16, 24].map(|rate: usize| setup.rates[rate].group);
        let mut picked: Vec<usize> = (0..4).map(|_| state.candidate(Turn::Inc, &mut setup, &groups).unwrap()).collect();
        // the first faster one of each: 39 Mbit/s as MCS 4 and as MCS 2 of two streams, 28.9 as MCS 3 and as MCS 1 of two streams
        picked.sort_unstable();
        assert_eq!(picked, [4, 8 + 2, 16 + 3, 24 + 1]);
        assert!(state.candidate(Turn::Slow, &mut setup, &groups).is_none(), "nothing is between 26 and 26 Mbit/s");
    }
}
