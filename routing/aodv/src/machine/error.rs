//! Route errors (RFC 3561, 6.11).

use super::Aodv;
use crate::sequence;
use crate::wire::rerr;
use manet_engine::Instant;
use std::collections::BTreeSet;
use std::net::Ipv4Addr;

/// A destination that this node no longer reaches.
pub(super) struct Broken {
    /// Address of the destination.
    pub destination: Ipv4Addr,
    /// Its sequence number for the error; 0: unknown.
    pub sequence: u32,
    /// The neighbours that route to it over this node.
    pub precursors: BTreeSet<Ipv4Addr>,
}

impl Aodv {
    /// Handles an error: `from` no longer reaches these destinations (6.11 iii).
    pub(super) fn receive_error(&mut self, now: Instant, from: Ipv4Addr, rerr: &rerr::Repr) {
        self.counters.count("rerr-received");
        let mut broken = Vec::new();
        for (destination, reported) in &rerr.unreachable {
            self.internet_lost(from, *destination);
            let Some(entry) = self.table.valid(*destination).filter(|e| e.next_hop == from) else { continue };
            // AODV-UU sends 0 for an unknown number. With an older number than the route's, the error is stale
            let reported = Some(*reported).filter(|s| *s != 0);
            if reported.zip(entry.sequence).is_some_and(|(reported, own)| sequence::newer(own, reported)) {
                self.counters.count("rerr-stale");
                continue;
            }
            if !rerr.no_delete {
                self.invalidate(now, *destination, reported);
            }
            broken.extend(self.broken(*destination));
        }
        if rerr.no_delete {
            self.counters.count("rerr-no-delete");
        } else if !broken.is_empty() {
            self.check_gateways(now);
        }
        self.report_broken(now, rerr.no_delete, broken);
    }

    pub(super) fn broken(&self, destination: Ipv4Addr) -> Option<Broken> {
        let e = self.table.get(destination)?;
        Some(Broken { destination, sequence: e.error_sequence(), precursors: e.precursors.clone() })
    }

    /// Sends a route error to the precursors: unicast to a single one, broadcast to more, none without any.
    pub(super) fn report_broken(&mut self, now: Instant, no_delete: bool, mut broken: Vec<Broken>) {
        broken.retain(|b| !b.precursors.is_empty());
        let all: BTreeSet<Ipv4Addr> = broken.iter().flat_map(|b| &b.precursors).copied().collect();
        if all.is_empty() || self.is_silent(now) {
            return;
        }
        let mut only = all.first().copied().filter(|_| all.len() == 1);
        if self.options.uu() && broken.len() > 1 {
            // AODV-UU: unicast only for one precursor and one destination
            only = None;
        }
        let errors: Vec<(Ipv4Addr, u32)> = broken.iter().map(|b| (b.destination, b.sequence)).collect();
        errors.chunks(rerr::MAX_DESTINATIONS).for_each(|errors| self.send_error(now, only, no_delete, errors));
    }

    /// Sends a route error. `to`: a neighbour; `None` for all. At most `rerr::MAX_DESTINATIONS` errors.
    pub(super) fn send_error(
        &mut self,
        now: Instant,
        to: Option<Ipv4Addr>,
        no_delete: bool,
        errors: &[(Ipv4Addr, u32)],
    ) {
        if self.rerr_limit.take(now).is_err() {
            return self.counters.count("rerr-limited");
        }
        self.counters.count("rerr-sent");
        let bytes = rerr::Repr { no_delete, unreachable: errors.to_vec() }.emit();
        match to {
            Some(neighbour) => self.send(neighbour, 1, bytes),
            None => self.broadcast(now, 1, bytes),
        }
    }

    /// The daemon ends. The RFC has no farewell message; a route error about this node and its forwarded destinations takes
    /// its place, so that other nodes need not wait for a failure.
    pub(super) fn stop(&mut self, now: Instant) {
        let forwarded = self.table.iter().filter(|e| e.valid() && !e.precursors.is_empty());
        let mut errors = vec![(self.node.address, sequence::next(self.sequence))];
        errors.extend(forwarded.map(|e| (e.destination, e.sequence.map_or(0, sequence::next))));
        errors.chunks(rerr::MAX_DESTINATIONS).for_each(|errors| self.send_error(now, None, false, errors));
    }
}
