//! The fastest rate whose success at the last reported SNR reaches a bound. It is not the one with the greatest throughput: where a
//! faster rate loses a part of the MPDUs of an A-MPDU, the others carry more.
//!
//! The bound is that of ns-3's `IdealWifiManager`: a bit error rate of 10^-6, for 12,000 bits a success of 0.988. Departure: an exchange
//! that nobody answered makes the SNR unknown, and the last stage of each chain is the most robust rate. ns-3 keeps the old SNR, so that a
//! station that has moved away is lost without RTS.

use super::statistics::Totals;
use super::{of_each_peer, Attempts, Chain, ForPeer, PacketView, RateControl, Row, Setup};
use manet_engine::Instant;

const MIN_SUCCESS: f64 = 0.988;
/// Transmissions at the chosen rate before the most robust one.
const TRIES: u8 = 3;

struct Ideal {
    setup: Setup,
    /// Slowest first.
    ladder: Vec<usize>,
}

struct State {
    snr_db: Option<f64>,
    rate: usize,
    totals: Totals,
}

pub(super) fn new(setup: Setup) -> Box<dyn RateControl> {
    of_each_peer(Ideal { ladder: setup.ladder(), setup })
}

impl ForPeer for Ideal {
    type State = State;

    fn begin(&self, _: Instant) -> State {
        State { snr_db: None, rate: self.ladder[0], totals: Totals::new(self.setup.rates.len()) }
    }

    fn choose(&mut self, _: Instant, state: &mut State, packet: &PacketView) -> Chain {
        let Setup { rates, success, .. } = &self.setup;
        let robust = self.ladder[0];
        state.rate = state.snr_db.map_or(robust, |snr_db| {
            let suffices = |rate: &&usize| success(&rates[**rate], snr_db, packet.mpdu_bytes) >= MIN_SUCCESS;
            self.ladder.iter().rev().find(suffices).copied().unwrap_or(robust)
        });
        Chain::new(state.rate, TRIES).then(robust, 1)
    }

    fn report(&mut self, _: Instant, state: &mut State, attempts: &Attempts) {
        state.totals.add(attempts);
        if attempts.snr_db.is_some() || !attempts.answered() {
            state.snr_db = attempts.snr_db;
        }
    }

    fn table(&self, state: &State) -> Vec<Row> {
        state.totals.rows(state.rate)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rate_control::channel::{setup, OFDM};
    use crate::rate_control::Tried;

    const PACKET: PacketView = PacketView { mpdu_bytes: 1536 };

    /// `setup`'s model: success is 1 from the SNR on that a rate needs, and 0 below.
    fn after(control: &mut dyn RateControl, answered: bool, snr_db: Option<f64>) -> Vec<usize> {
        let rate = control.choose(Instant::ZERO, 1, &PACKET).rate(1);
        let tried = [Tried::singles(rate, 1, answered)];
        control.report(Instant::ZERO, 1, &Attempts { tried: &tried, snr_db });
        control.choose(Instant::ZERO, 1, &PACKET).stages().iter().map(|stage| stage.rate).collect()
    }

    #[test]
    fn it_begins_at_the_most_robust_rate_and_follows_the_snr_at_once() {
        let mut control = new(setup(&OFDM));
        assert_eq!(control.choose(Instant::ZERO, 1, &PACKET), Chain::new(0, TRIES + 1));
        // 54 Mbit/s needs 22 dB, 24 Mbit/s 13, 36 Mbit/s 17
        assert_eq!(after(&mut *control, true, Some(22.0)), [7, 0]);
        assert_eq!(after(&mut *control, true, Some(16.9)), [4, 0]);
        assert_eq!(after(&mut *control, true, None), [4, 0], "an answer without SNR changes nothing");
        assert_eq!(after(&mut *control, true, Some(-3.0)), [0]);
    }

    #[test]
    fn an_unanswered_exchange_makes_the_snr_unknown() {
        let mut control = new(setup(&OFDM));
        after(&mut *control, true, Some(22.0));
        assert_eq!(after(&mut *control, false, None), [0]);
    }
}
