//! Route replies and their acknowledgements (RFC 3561, 6.7 and 6.8).

use super::Aodv;
use crate::sequence;
use crate::table::{Change, Offer};
use crate::wire::{rrep, rrep_ack};
use manet_engine::{Duration, Instant};
use std::net::Ipv4Addr;

impl Aodv {
    pub(super) fn receive_reply(&mut self, now: Instant, from: Ipv4Addr, ttl: u8, mut rrep: rrep::Repr) {
        if !self.is_station(rrep.originator) || !self.is_station(rrep.destination) {
            return self.counters.count("malformed-address");
        }
        self.counters.count("rrep-received");
        if rrep.acknowledge {
            self.counters.count("rrep-ack-sent");
            self.send(from, 1, rrep_ack::Repr.emit());
        }
        self.heard(now, from);
        if rrep.destination == self.node.address {
            // a route to this node is not needed; but after a restart the reply shows which number others have
            // (0 is no number: a forged 0 at the wrap would become ours)
            if rrep.destination_sequence != 0 {
                self.sequence = sequence::newest(self.sequence, rrep.destination_sequence);
            }
            return self.counters.count("rrep-own");
        }
        let Some(hops) = rrep.hops.checked_add(1) else { return self.counters.count("rrep-hops") };
        rrep.hops = hops;
        let offer = Offer {
            destination: rrep.destination,
            sequence: Some(rrep.destination_sequence),
            hops,
            next_hop: from,
            expires: now + Duration::from_millis(rrep.lifetime_ms.into()),
        };
        let change = self.learn(now, offer);
        if rrep.originator == self.node.address {
            self.install(rrep.destination);
            if let Some(wanted) = rrep.internet_destination() {
                self.gateway_answered(now, wanted, rrep.destination);
            }
        } else if self.is_silent(now) {
            self.counters.count("rrep-silent");
        } else if change == Change::Refused && !(self.options.uu() && self.table.valid(rrep.destination).is_some()) {
            // 6.7 forwards a reply that created or changed a route; we also forward one that confirms a route, else a reply
            // to a repeated request with the D flag would end here. AODV-UU forwards all
            self.counters.count("rrep-stale");
        } else {
            self.forward_reply(now, from, ttl, rrep);
        }
    }

    fn forward_reply(&mut self, now: Instant, from: Ipv4Addr, ttl: u8, rrep: rrep::Repr) {
        if ttl <= 1 {
            return self.counters.count("rrep-ttl");
        }
        let Some(back) = self.table.valid(rrep.originator).map(|e| e.next_hop) else {
            return self.counters.count("rrep-no-route");
        };
        self.counters.count("rrep-forwarded");
        // 6.7 names the first two; the third serves the data of the reverse direction (as in AODV-UU)
        for (destination, precursor) in [(rrep.destination, back), (from, back), (rrep.originator, from)] {
            self.table.change(destination, |e| e.add_precursor(precursor));
        }
        self.table.prolong(rrep.originator, now + self.timing.active_route);
        self.install(rrep.destination);
        let originator = rrep.originator;
        self.send_back(now, originator, ttl - 1, rrep);
    }

    /// Sends a reply to the next hop on the route to `towards`.
    pub(super) fn send_back(&mut self, now: Instant, towards: Ipv4Addr, ttl: u8, mut rrep: rrep::Repr) {
        let Some(next_hop) = self.table.valid(towards).map(|e| e.next_hop) else {
            return self.counters.count("rrep-no-route");
        };
        // after the reply data flows in both directions
        self.install(towards);
        rrep.acknowledge = self.options.unidirectional;
        if rrep.acknowledge {
            self.neighbours.acks.set(next_hop, now + self.timing.next_hop_wait);
        }
        self.send(next_hop, ttl, rrep.emit());
    }

    pub(super) fn receive_reply_ack(&mut self, from: Ipv4Addr) {
        self.counters.count("rrep-ack-received");
        self.neighbours.acks.remove(from);
        // the neighbour received our reply: the link works in both directions
        self.neighbours.blacklist.remove(from);
    }
}
