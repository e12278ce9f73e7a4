//! One rate for all frames.

use super::statistics::Totals;
use super::{of_each_peer, Attempts, Chain, ForPeer, PacketView, RateControl, Row, Setup};
use manet_engine::Instant;

struct Fixed {
    rate: usize,
    rates: usize,
}

pub(super) fn new(setup: Setup) -> Box<dyn RateControl> {
    of_each_peer(Fixed { rate: setup.fixed, rates: setup.rates.len() })
}

impl ForPeer for Fixed {
    type State = Totals;

    fn begin(&self, _: Instant) -> Totals {
        Totals::new(self.rates)
    }

    fn choose(&mut self, _: Instant, _: &mut Totals, _: &PacketView) -> Chain {
        Chain::new(self.rate, 1)
    }

    fn report(&mut self, _: Instant, totals: &mut Totals, attempts: &Attempts) {
        totals.add(attempts);
    }

    fn table(&self, totals: &Totals) -> Vec<Row> {
        totals.rows(self.rate)
    }
}

#[cfg(test)]
mod tests {
    use crate::rate_control::channel::{setup, Link, OFDM};
    use crate::rate_control::Setup;

    #[test]
    fn the_rate_stays_whatever_is_lost() {
        let mut link = Link::new("fixed", Setup { fixed: 7, ..setup(&OFDM) });
        let shares = link.run(1.0, &[0.0; 8]);
        assert_eq!(shares[7], 1.0);
        let row = &link.control.table(1)[7];
        assert_eq!((row.roles.as_str(), row.acknowledged), ("A", 0));
        assert!(row.mpdus > 100);
    }
}
