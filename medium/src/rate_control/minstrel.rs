//! Minstrel for rates without aggregation: Derek Smithies' description of MadWifi's rate control (2005, `minstrel.txt` of MadWifi) and
//! its port to mac80211 by Felix Fietkau (2008).
//!
//! Every 100 ms the share of acknowledged frames at each rate is smoothed (75 % old). One frame in ten looks around: it tries another
//! rate, each once in a random order. The chain:
//!
//! | stage | no look-around | look around at a faster rate | at a slower rate |
//! |---|---|---|---|
//! | 1 | best throughput | the other rate | best throughput |
//! | 2 | second throughput | best throughput | the other rate |
//! | 3 | most reliable | most reliable | most reliable |
//! | 4 | lowest | lowest | lowest |
//!
//! A slower rate is thus tried only when the best one fails. With A-MPDUs it would not be tried at all while one MPDU of each arrives, and
//! the profile refuses it. Departures: a look-around is one transmission; stages are not lengthened or
//! shortened by contention (see [`super::statistics`]); look-arounds are a tenth of the frames also at start.

use super::statistics::Estimates;
use super::{of_each_peer, Attempts, Chain, ForPeer, PacketView, RateControl, Row, Setup};
use manet_engine::{Duration, Instant, Stream};

const UPDATE_INTERVAL: Duration = Duration::from_millis(100);
const LOOKAROUND_PERCENT: u64 = 10;
/// Success from which throughput decides among the most reliable.
const RELIABLE: f64 = 0.95;

struct Minstrel {
    setup: Setup,
    lowest: usize,
}

struct State {
    estimates: Estimates,
    best: [usize; 2],
    reliable: usize,
    updated: Instant,
    frames: u64,
    samples: u64,
    /// Rates still to be sampled in this round.
    order: Vec<usize>,
}

pub(super) fn new(setup: Setup) -> Box<dyn RateControl> {
    let lowest = setup.ladder()[0];
    of_each_peer(Minstrel { setup, lowest })
}

impl State {
    fn new(now: Instant, rates: usize, lowest: usize) -> Self {
        Self {
            estimates: Estimates::new(rates),
            best: [lowest; 2],
            reliable: lowest,
            updated: now,
            frames: 0,
            samples: 0,
            order: Vec::new(),
        }
    }

    /// The rate at which this frame looks around.
    fn sample(&mut self, random: &mut Stream) -> Option<usize> {
        let rates = self.estimates.of.len();
        self.frames += 1;
        if rates < 2 || self.samples * 100 >= self.frames * LOOKAROUND_PERCENT {
            return None;
        }
        self.samples += 1;
        loop {
            if self.order.is_empty() {
                self.order = shuffled(rates, random);
            }
            let rate = self.order.pop().filter(|rate| *rate != self.best[0]);
            if rate.is_some() {
                return rate;
            }
        }
    }

    fn update(&mut self, now: Instant, setup: &Setup) {
        self.updated = now;
        self.estimates.update();
        let ranking = self.estimates.ranking(&setup.rates, setup.overhead);
        self.reliable = self.estimates.most_reliable(&ranking, RELIABLE);
        self.best = [ranking[0], *ranking.get(1).unwrap_or(&ranking[0])];
    }
}

/// The numbers below `count` in random order (Fisher and Yates).
fn shuffled(count: usize, random: &mut Stream) -> Vec<usize> {
    let mut order: Vec<usize> = (0..count).collect();
    for last in (1..count).rev() {
        order.swap(last, random.below(last as u64 + 1) as usize);
    }
    order
}

impl ForPeer for Minstrel {
    type State = State;

    fn begin(&self, now: Instant) -> State {
        State::new(now, self.setup.rates.len(), self.lowest)
    }

    fn choose(&mut self, _: Instant, state: &mut State, _: &PacketView) -> Chain {
        let Setup { rates, overhead, random, .. } = &mut self.setup;
        let sample = state.sample(random);
        let tries = |rate: usize| state.estimates.tries(&rates[rate], *overhead);
        let [first, second] = state.best;
        let start = match sample {
            None => Chain::new(first, tries(first)).then(second, tries(second)),
            Some(other) if rates[other].rate_bps > rates[first].rate_bps => {
                Chain { is_sample: true, ..Chain::new(other, 1) }.then(first, tries(first))
            }
            Some(other) => Chain::new(first, tries(first)).then(other, 1),
        };
        start.then(state.reliable, tries(state.reliable)).then(self.lowest, tries(self.lowest))
    }

    fn report(&mut self, now: Instant, state: &mut State, attempts: &Attempts) {
        state.estimates.add(attempts);
        if now.since(state.updated) >= UPDATE_INTERVAL {
            state.update(now, &self.setup);
        }
    }

    fn table(&self, state: &State) -> Vec<Row> {
        let roles = [('A', state.best[0]), ('B', state.best[1]), ('P', state.reliable)];
        state.estimates.rows(&self.setup.rates, self.setup.overhead, &roles)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rate_control::channel::{setup, Link, OFDM};

    /// 24 Mbit/s best, 18 second and the most reliable.
    const GRADUAL: [f64; 8] = [1.0, 1.0, 1.0, 1.0, 0.9, 0.3, 0.05, 0.0];

    fn roles(link: &Link) -> Vec<String> {
        link.control.table(1).into_iter().map(|row| row.roles).collect()
    }

    #[test]
    fn it_starts_at_the_lowest_rate_and_finds_the_best() {
        let mut link = Link::new("minstrel", setup(&OFDM));
        let chain = link.choose();
        assert_eq!((chain.rate(2), chain.rate(99)), (0, 0), "before any estimate, besides a sample");
        link.run(3.0, &GRADUAL);
        assert_eq!(roles(&link), ["", "", "", "BP", "A", "", "", ""]);
    }

    #[test]
    fn one_frame_in_ten_looks_around() {
        let mut link = Link::new("minstrel", setup(&OFDM));
        link.run(3.0, &GRADUAL);
        let chains: Vec<Chain> = (0..1000).map(|_| link.exchange(&GRADUAL)).collect();
        // a sample of 18 Mbit/s prolongs its stage by one try
        let equal_to = |chain: &Chain| chains.iter().filter(|other| *other == chain).count();
        let normal = chains.iter().map(equal_to).max().unwrap();
        assert!((899..=901).contains(&normal), "{normal}");
    }

    #[test]
    fn a_faster_sample_comes_first_and_a_slower_one_second() {
        let mut link = Link::new("minstrel", setup(&OFDM));
        link.run(3.0, &GRADUAL);
        let mut seen = [false; 8];
        for _ in 0..200 {
            let chain = link.exchange(&GRADUAL);
            let stages: Vec<usize> = chain.stages().iter().map(|stage| stage.rate).collect();
            match stages[..] {
                [4, 3, 0] => assert!(!chain.is_sample),
                [sample @ 5..=7, 4, 3, 0] => {
                    assert!(chain.is_sample && chain.stages()[0].tries == 1);
                    seen[sample] = true;
                }
                [4, sample @ ..=3, 3, 0] | [4, sample @ ..=3, 0] => {
                    assert!(!chain.is_sample);
                    seen[sample] = true;
                }
                _ => panic!("{stages:?}"),
            }
        }
        // 20 samples are nearly three rounds of the 7 other rates; 18 Mbit/s joins stage 3
        assert!((0..8).all(|rate| seen[rate] || rate == 3 || rate == 4), "{seen:?}");
    }

    #[test]
    fn a_single_rate_needs_no_samples() {
        let mut link = Link::new("minstrel", setup(&OFDM[..1]));
        (0..50).for_each(|_| assert_eq!(link.exchange(&[0.9]).stages().len(), 1));
    }
}
