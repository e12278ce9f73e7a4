//! Auto Rate Fallback: Kamerman and Monteban, "WaveLAN-II: a high-performance wireless LAN for the unlicensed band", Bell Labs
//! Technical Journal 2(3), 1997.
//!
//! Ten successive answers raise the rate; the first frame at the higher rate is a probe: if it fails, the rate falls back at once.
//! Otherwise two successive failures lower it. Departure: the paper also raises the rate when a timer of unstated length ends; here
//! there is none, as a rate without traffic has no use.
//!
//! An aggregate with a Block Ack is a success. The chain of an exchange is what ARF would do if each transmission failed.

use super::statistics::Totals;
use super::{of_each_peer, Attempts, Chain, ForPeer, PacketView, RateControl, Row, Setup, MAX_STAGES};
use manet_engine::Instant;

/// Successes that raise the rate.
pub(super) const SUCCESSES: u32 = 10;
/// Failures that lower it.
const FAILURES: u32 = 2;

/// Successes required after a failed probe that so many had preceded.
pub(super) type AfterProbe = fn(u32) -> u32;

struct Arf {
    rates: usize,
    /// Slowest first.
    ladder: Vec<usize>,
    after_probe: AfterProbe,
}

/// Position of a peer on the ladder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Position {
    step: usize,
    successes: u32,
    failures: u32,
    required: u32,
    is_probe: bool,
}

impl Position {
    const START: Self = Self { step: 0, successes: 0, failures: 0, required: SUCCESSES, is_probe: false };

    fn succeed(&mut self, top: usize) {
        (self.failures, self.is_probe) = (0, false);
        self.successes += 1;
        if self.successes >= self.required && self.step < top {
            *self = Self { step: self.step + 1, successes: 0, is_probe: true, ..*self };
        }
    }

    fn fail(&mut self, after_probe: AfterProbe) {
        (self.successes, self.failures) = (0, self.failures + 1);
        if self.is_probe {
            *self = Self { step: self.step - 1, required: after_probe(self.required), ..Self::START };
        } else if self.failures >= FAILURES {
            *self = Self { step: self.step.saturating_sub(1), ..Self::START };
        }
    }
}

pub(super) fn new(setup: Setup) -> Box<dyn RateControl> {
    with(setup, |required| required)
}

/// ARF with a rule for failed probes.
pub(super) fn with(setup: Setup, after_probe: AfterProbe) -> Box<dyn RateControl> {
    of_each_peer(Arf { rates: setup.rates.len(), ladder: setup.ladder(), after_probe })
}

impl Arf {
    fn chain(&self, mut position: Position) -> Chain {
        let mut chain = Chain::new(self.ladder[position.step], 1);
        let tries = MAX_STAGES as u32 * FAILURES;
        for _ in 1..tries {
            position.fail(self.after_probe);
            chain = chain.then(self.ladder[position.step], 1);
        }
        chain
    }
}

impl ForPeer for Arf {
    type State = (Position, Totals);

    fn begin(&self, _: Instant) -> Self::State {
        (Position::START, Totals::new(self.rates))
    }

    fn choose(&mut self, _: Instant, (position, _): &mut Self::State, _: &PacketView) -> Chain {
        self.chain(*position)
    }

    fn report(&mut self, _: Instant, (position, totals): &mut Self::State, attempts: &Attempts) {
        let top = self.ladder.len() - 1;
        totals.add(attempts);
        for tried in attempts.tried {
            let failures = tried.transmissions.saturating_sub(tried.answered.into());
            (0..failures).for_each(|_| position.fail(self.after_probe));
            if tried.answered {
                position.succeed(top);
            }
        }
    }

    fn table(&self, (position, totals): &Self::State) -> Vec<Row> {
        totals.rows(self.ladder[position.step])
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::rate_control::channel::{setup, Link, OFDM};
    use crate::rate_control::Tried;

    /// Plays one transmission a character, `+` answered and `-` not; returns the rate (Mbit/s) of the transmission after each.
    pub fn rates(control: &mut dyn RateControl, events: &str) -> Vec<u32> {
        let packet = PacketView { mpdu_bytes: 1536 };
        let (peer, now) = (1, Instant::ZERO);
        let mut out = vec![];
        for event in events.chars() {
            let rate = control.choose(now, peer, &packet).rate(1);
            let tried = [Tried::singles(rate, 1, event == '+')];
            control.report(now, peer, &Attempts { tried: &tried, snr_db: None });
            out.push(OFDM[control.choose(now, peer, &packet).rate(1)].0);
        }
        out
    }

    pub fn last(control: &mut dyn RateControl, events: &str) -> u32 {
        *rates(control, events).last().unwrap()
    }

    //  + x 10 | up: 9 | + | + x 10 | 12
    #[test]
    fn ten_successes_raise_the_rate() {
        let mut control = new(setup(&OFDM));
        assert_eq!(rates(&mut *control, "++++++++++"), [6, 6, 6, 6, 6, 6, 6, 6, 6, 9]);
        assert_eq!(last(&mut *control, "+++++++++"), 9);
        assert_eq!(last(&mut *control, "+"), 12);
    }

    //  + x 10 | 9, probe | - | 6 | ten more
    #[test]
    fn a_failed_probe_falls_back_at_once_and_is_repeated_after_ten_successes() {
        let mut control = new(setup(&OFDM));
        last(&mut *control, "++++++++++");
        assert_eq!(rates(&mut *control, "-"), [6]);
        assert_eq!(last(&mut *control, "+++++++++"), 6);
        assert_eq!(last(&mut *control, "+"), 9);
    }

    //  9 after its probe | - 9 | - 6
    #[test]
    fn after_the_probe_two_failures_in_a_row_lower_the_rate() {
        let mut control = new(setup(&OFDM));
        last(&mut *control, "++++++++++ +".replace(' ', "").as_str());
        assert_eq!(rates(&mut *control, "-+--"), [9, 9, 9, 6]);
        assert_eq!(rates(&mut *control, "------"), [6; 6], "the lowest rate stays");
    }

    #[test]
    fn a_failure_starts_the_count_of_successes_again() {
        let mut control = new(setup(&OFDM));
        assert_eq!(last(&mut *control, "+++++++++-+++++++++"), 6);
        assert_eq!(last(&mut *control, "+"), 9);
    }

    #[test]
    fn the_chain_is_what_failures_would_do() {
        let mut control = new(setup(&OFDM));
        last(&mut *control, &"+".repeat(30)); // at 18 Mbit/s, a probe
        let chain = |control: &mut Box<dyn RateControl>| {
            let chain = control.choose(Instant::ZERO, 1, &PacketView { mpdu_bytes: 1536 });
            chain.stages().iter().map(|stage| (OFDM[stage.rate].0, stage.tries)).collect::<Vec<_>>()
        };
        assert_eq!(chain(&mut control), [(18, 1), (12, 2), (9, 2), (6, 3)]);
        last(&mut *control, "+");
        assert_eq!(chain(&mut control), [(18, 2), (12, 2), (9, 2), (6, 2)]);
        // an exchange that needed the third stage leaves it at 9 Mbit/s with one success
        let tried = [Tried::singles(3, 2, false), Tried::singles(2, 2, false), Tried::singles(1, 1, true)];
        control.report(Instant::ZERO, 1, &Attempts { tried: &tried, snr_db: None });
        assert_eq!(last(&mut *control, "++++++++"), 9);
        assert_eq!(last(&mut *control, "+"), 12);
    }

    #[test]
    fn a_block_ack_of_a_part_is_a_success() {
        let mut control = new(setup(&OFDM));
        for _ in 0..10 {
            let tried = [Tried { rate: 0, transmissions: 1, answered: true, mpdus: 32, acknowledged: 1 }];
            control.report(Instant::ZERO, 1, &Attempts { tried: &tried, snr_db: None });
        }
        assert_eq!(last(&mut *control, "+"), 9);
    }

    #[test]
    fn it_stays_at_the_fastest_rate_that_always_succeeds_except_for_probes() {
        let mut link = Link::new("arf", setup(&OFDM));
        let shares = link.run(5.0, &[1.0, 1.0, 1.0, 1.0, 1.0, 0.0, 0.0, 0.0]);
        // each 11th transmission is a probe of 36 Mbit/s that fails; the start takes 40 of thousands
        assert!((shares[5] - 1.0 / 11.0).abs() < 0.01 && shares[4] > 0.88, "{shares:?}");
    }
}
