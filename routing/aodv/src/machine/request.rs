//! Route requests of other nodes (RFC 3561, 6.5 and 6.6).

use super::{Aodv, FULL_TTL, MAX_JITTERED};
use crate::sequence;
use crate::table::{Entry, Offer};
use crate::wire::{rrep, rreq, Extension};
use manet_engine::{Duration, Instant};
use std::net::Ipv4Addr;

impl Aodv {
    pub(super) fn receive_request(&mut self, now: Instant, from: Ipv4Addr, ttl: u8, mut rreq: rreq::Repr) {
        if self.neighbours.blacklist.contains(from) {
            return self.counters.count("rreq-blacklisted");
        }
        if !self.is_station(rreq.originator) || !self.is_station(rreq.destination) {
            return self.counters.count("malformed-address");
        }
        self.heard(now, from);
        if rreq.originator == self.node.address {
            return self.counters.count("rreq-own");
        }
        if !self.duplicates.remember(now, (rreq.originator, rreq.id)) {
            return self.counters.count("rreq-duplicate");
        }
        let Some(hops) = rreq.hops.checked_add(1) else { return self.counters.count("rreq-hops") };
        self.counters.count("rreq-received");
        rreq.hops = hops;
        self.learn_reverse(now, from, &rreq);
        if self.is_silent(now) {
            return self.counters.count("rreq-silent");
        }
        self.send_newer_sequence(now, from, &rreq);
        if rreq.destination == self.node.address {
            self.answer_as_destination(now, &rreq);
        } else if self.is_gateway() && !self.node.in_network(rreq.destination) {
            self.answer_as_gateway(now, &rreq);
        } else if let Some(entry) = self.answer_for(from, &rreq).cloned() {
            self.answer_from_table(now, &rreq, &entry);
        } else {
            self.forward_request(now, ttl, rreq);
        }
    }

    /// Learns the reverse route to the originator. 6.5 would also take next hop and hop count of an older request;
    /// following
    /// 6.2 we do not, since a route with an older number may lead back to this node.
    fn learn_reverse(&mut self, now: Instant, from: Ipv4Addr, rreq: &rreq::Repr) {
        // MinimalLifetime = now + 2 * NET_TRAVERSAL_TIME - 2 * HopCount * NODE_TRAVERSAL_TIME
        let expires = now + (self.timing.path_discovery - self.timing.node_traversal * 2 * u64::from(rreq.hops));
        self.learn(
            now,
            Offer {
                destination: rreq.originator,
                sequence: Some(rreq.originator_sequence),
                hops: rreq.hops,
                next_hop: from,
                expires,
            },
        );
        self.table.prolong(rreq.originator, expires);
    }

    /// A neighbour whose request has an older sequence number than the known one has lost it, for example by a restart; all
    /// nodes would ignore it as stale for DELETE_PERIOD. We send it a reply about itself (not in the RFC; AODV-UU ignores
    /// it).
    fn send_newer_sequence(&mut self, now: Instant, from: Ipv4Addr, rreq: &rreq::Repr) {
        let known = self.table.get(from).and_then(|e| e.sequence).filter(|_| rreq.originator == from);
        let Some(known) = known.filter(|known| sequence::newer(*known, rreq.originator_sequence)) else { return };
        if self.options.uu() || self.rerr_limit.take(now).is_err() {
            return;
        }
        self.counters.count("number-told");
        let mut rrep = self.reply(rreq, from, known, 0, Duration::ZERO);
        rrep.originator = self.node.address;
        self.send(from, 1, rrep.emit());
    }

    fn answer_as_destination(&mut self, now: Instant, rreq: &rreq::Repr) {
        // 6.1 takes the maximum; 6.6.1 agrees for a number that is ours plus one
        if let Some(wanted) = rreq.wanted_sequence() {
            self.sequence = sequence::newest(self.sequence, wanted);
        }
        self.counters.count("rrep-sent");
        let rrep = self.reply(rreq, self.node.address, self.sequence, 0, self.timing.my_route);
        self.send_back(now, rreq.originator, FULL_TTL, rrep);
    }

    /// As in AODV-UU: the reply is about the gateway itself, with a fresh number; extension 4 has the requested address.
    fn answer_as_gateway(&mut self, now: Instant, rreq: &rreq::Repr) {
        self.sequence = sequence::next(self.sequence);
        self.counters.count("rrep-gateway");
        let mut rrep = self.reply(rreq, self.node.address, self.sequence, 0, self.timing.active_route);
        rrep.extensions.push(Extension::internet_destination(rreq.destination));
        self.send_back(now, rreq.originator, FULL_TTL, rrep);
    }

    /// The route for an intermediate node's reply (6.6 ii), unless it leads back to the requesting node (not in the RFC).
    fn answer_for(&self, from: Ipv4Addr, rreq: &rreq::Repr) -> Option<&Entry> {
        let entry = self.table.valid(rreq.destination)?;
        let fresh = match (entry.sequence, rreq.wanted_sequence()) {
            (None | Some(0), _) => false,
            (Some(_), None) => true,
            (Some(ours), Some(wanted)) => !sequence::newer(wanted, ours),
        };
        let outward = entry.next_hop != from && entry.next_hop != rreq.originator;
        let may = !rreq.destination_only && self.node.in_network(rreq.destination);
        Some(entry).filter(|_| fresh && outward && may)
    }

    /// Replies from the table (6.6.2), and sends the destination a gratuitous reply on request (6.6.3).
    fn answer_from_table(&mut self, now: Instant, rreq: &rreq::Repr, entry: &Entry) {
        let Some(back) = self.table.valid(rreq.originator).cloned() else {
            return self.counters.count("rrep-no-route");
        };
        self.counters.count("rrep-from-table");
        self.table.change(entry.destination, |e| e.add_precursor(back.next_hop));
        self.table.change(rreq.originator, |e| e.add_precursor(entry.next_hop));
        let sequence = entry.sequence.unwrap_or(0);
        let rrep = self.reply(rreq, entry.destination, sequence, entry.hops, entry.expires - now);
        self.install(entry.destination);
        self.send_back(now, rreq.originator, FULL_TTL, rrep);
        if rreq.gratuitous {
            self.counters.count("rrep-gratuitous");
            let lifetime = back.expires - now;
            let mut rrep = self.reply(rreq, rreq.originator, rreq.originator_sequence, rreq.hops, lifetime);
            rrep.originator = rreq.destination;
            self.send_back(now, rreq.destination, FULL_TTL, rrep);
        }
    }

    fn reply(
        &self,
        rreq: &rreq::Repr,
        destination: Ipv4Addr,
        sequence: u32,
        hops: u8,
        lifetime: Duration,
    ) -> rrep::Repr {
        let lifetime_ms = u32::try_from(lifetime.as_nanos() / 1_000_000).unwrap_or(u32::MAX);
        rrep::Repr { hops, ..rrep::Repr::new(destination, sequence, rreq.originator, lifetime_ms) }
    }

    /// Forwards a request after a jitter, so that neighbours that received it together do not send together.
    fn forward_request(&mut self, now: Instant, ttl: u8, mut rreq: rreq::Repr) {
        if ttl <= 1 {
            return self.counters.count("rreq-ttl");
        }
        let known = self.table.get(rreq.destination).and_then(|e| e.sequence).filter(|s| *s != 0);
        let wanted = match (known, rreq.wanted_sequence()) {
            (Some(a), Some(b)) => Some(sequence::newest(a, b)),
            (a, b) => a.or(b),
        };
        if let Some(wanted) = wanted {
            (rreq.destination_sequence, rreq.unknown) = (wanted, false);
        }
        let jitter = match self.timing.forward_jitter.as_nanos() {
            0 => {
                self.counters.count("rreq-forwarded");
                return self.broadcast(now, ttl - 1, rreq.emit());
            }
            max => Duration::from_nanos(1 + self.rng.below(max)),
        };
        if self.jittered.len() >= MAX_JITTERED {
            return self.counters.count("rreq-queue-full");
        }
        self.jittered.push(now + jitter, 0, (ttl - 1, rreq.emit()));
    }
}
