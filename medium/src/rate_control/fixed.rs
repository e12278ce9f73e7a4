//! One rate for all frames.

use super::statistics::Totals;
use super::{Attempts, Chain, PacketView, Peer, Peers, RateControl, Row, Setup};
use manet_engine::Instant;

struct Fixed {
    rate: usize,
    rates: usize,
    peers: Peers<Totals>,
}

pub(super) fn new(setup: Setup) -> Box<dyn RateControl> {
    Box::new(Fixed { rate: setup.fixed, rates: setup.rates.len(), peers: Peers::new() })
}

impl RateControl for Fixed {
    fn choose(&mut self, _: Instant, _: Peer, _: &PacketView) -> Chain {
        Chain::new(self.rate, 1)
    }

    fn report(&mut self, _: Instant, peer: Peer, attempts: &Attempts) {
        self.peers.get_or_insert(peer, || Totals::new(self.rates)).add(attempts);
    }

    fn table(&self, peer: Peer) -> Vec<Row> {
        self.peers.get(peer).map_or_else(Vec::new, |totals| totals.rows(self.rate))
    }

    fn peers(&self) -> Vec<Peer> {
        self.peers.names()
    }

    fn forget(&mut self) {
        self.peers = Peers::new();
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
