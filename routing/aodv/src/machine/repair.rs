//! Local repair (RFC 3561, 6.12): a forwarding node searches for the destination itself, with one request.

use super::link::Pair;
use super::Aodv;
use crate::discovery::{self, Discovery, Purpose};
use crate::sequence;
use crate::table::State;
use manet_engine::Instant;
use manet_routing::Output;
use std::net::Ipv4Addr;

impl Aodv {
    /// Whether a broken route is repaired: for a packet of another station whose destination is near enough. With notices
    /// the distance does not matter, and repair is on in any case: a node that holds packets searches for their route.
    pub(super) fn repairable(&self, now: Instant, neighbour: Ipv4Addr, (source, destination): Pair) -> bool {
        let holds = self.notices.is_on();
        let near = |hops: u8| holds || hops <= self.timing.max_repair_ttl;
        let entry = self.table.valid(destination).filter(|e| e.next_hop == neighbour && near(e.hops));
        let room = self.discoveries.len() < discovery::MAX_DISCOVERIES && self.discoveries.get(destination).is_none();
        (holds || self.derived.local_repair) && !self.is_own(source) && entry.is_some() && room && !self.is_silent(now)
    }

    pub(super) fn start_repair(&mut self, now: Instant, source: Ipv4Addr, destination: Ipv4Addr) {
        let gone_at = now + self.timing.delete_period;
        let was = self.table.change(destination, |e| {
            // 6.12: the request asks for a higher number than the last known one
            e.sequence = e.sequence.map(sequence::next);
            (e.state, e.expires) = (State::Repair, gone_at);
            (e.hops, std::mem::take(&mut e.installed))
        });
        let Some((hops, installed)) = was else { return };
        if installed {
            self.out.push_back(Output::ClearRoute { destination, prefix: 32 });
        }
        self.counters.count("repair-begun");
        self.note("repair", destination, 0);
        // max(MIN_REPAIR_TTL, 0.5 * #hops) + LOCAL_ADD_TTL; #hops: to the packet's source, MIN_REPAIR_TTL: to its
        // destination
        let to_source = self.table.get(source).map_or(0, |e| e.hops);
        let ttl = hops.max(to_source / 2).saturating_add(self.options.local_add_ttl).min(self.options.net_diameter);
        let discovery = Discovery { purpose: Purpose::Repair { hops }, ttl, wide: 1, sent: false, at: now };
        self.discoveries.insert(destination, discovery);
        self.request_route(now, destination, discovery);
    }

    /// A new route was found; if it is longer, the precursors get a route error with the N flag and keep their routes.
    pub(super) fn repaired(&mut self, now: Instant, destination: Ipv4Addr, hops_before: u8) {
        self.counters.count("repair-succeeded");
        self.note("repair", destination, 1);
        self.install(destination);
        let longer = self.table.valid(destination).is_some_and(|e| e.hops > hops_before);
        if longer {
            let broken = self.broken(destination).into_iter().collect();
            self.report_broken(now, true, broken);
        }
    }

    pub(super) fn repair_failed(&mut self, now: Instant, destination: Ipv4Addr) {
        self.discoveries.remove(destination);
        self.counters.count("repair-failed");
        self.note("repair", destination, 2);
        self.invalidate(now, destination, None);
        let broken = self.broken(destination).into_iter().collect();
        self.report_broken(now, false, broken);
        self.discover_or_drop(now, destination);
        self.check_gateways(now);
    }
}
