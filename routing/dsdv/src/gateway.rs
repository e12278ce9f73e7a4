//! Gateways: a node with wires also advertises "the wired network behind this station", and the other nodes route every
//! address outside the ad hoc network to the nearest gateway (ns-2's base stations did so by hierarchical addresses).
//!
//! The wired network behind a gateway is a destination like any other, so that sequence numbers, settling and broken
//! marks hold for it without exception. Its name is the gateway's address with all network bits zero: `{0, host number}`,
//! "host on this network" (RFC 1122, 3.2.1.3 (b)). Such an address belongs to no station and never is a destination of a
//! packet. It has the gateway's own sequence number: both entries have one source, which makes both newer at once.

use crate::entry::Entry;
use crate::machine::Dsdv;
use manet_engine::Instant;
use manet_routing::{Device, Node, Output, Route};
use std::cmp::Reverse;
use std::net::Ipv4Addr;

/// The destination of the default route, under which packets for the Internet wait.
pub const INTERNET: Ipv4Addr = Ipv4Addr::UNSPECIFIED;

/// The gateway in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chosen {
    /// Address of the gateway as a station.
    pub gateway: Ipv4Addr,
    /// The next hop.
    pub via: Ipv4Addr,
}

/// The destination that stands for the wired network behind `station`; none if the network's prefix leaves no room.
pub fn behind(node: &Node, station: Ipv4Addr) -> Option<Ipv4Addr> {
    let alias = Ipv4Addr::from(u32::from(station) & host_mask(node));
    (!node.in_network(alias) && alias != INTERNET).then_some(alias)
}

fn host_mask(node: &Node) -> u32 {
    u32::MAX.checked_shr(u32::from(node.network.1)).unwrap_or(0)
}

impl Dsdv {
    /// Whether this node advertises the network behind its wires.
    pub(crate) fn is_gateway(&self) -> bool {
        self.options.gateway && !self.node.wires.is_empty()
    }

    /// The gateway of which `destination` is the wired network.
    pub(crate) fn gateway_of(&self, destination: Ipv4Addr) -> Option<Ipv4Addr> {
        let network = u32::from(self.node.network.0) & !host_mask(&self.node);
        let station = Ipv4Addr::from(network | u32::from(destination));
        (behind(&self.node, station) == Some(destination) && self.is_station(station)).then_some(station)
    }

    /// Whether `address` is the one of a host of the Internet.
    pub(crate) fn is_outside(&self, address: Ipv4Addr) -> bool {
        !self.node.in_network(address) && u32::from(address) & !host_mask(&self.node) != 0
    }

    /// The gateways of the table with a usable route: their addresses, hop counts and next hops.
    fn usable_gateways(&self) -> impl Iterator<Item = (Ipv4Addr, u8, Ipv4Addr)> + '_ {
        let usable = self.table.iter().filter(|(_, entry)| entry.is_usable());
        usable.filter_map(|(d, entry)| self.gateway_of(d).map(|gateway| (gateway, entry.hops, entry.via)))
    }

    /// Chooses the gateway with the fewest hops, of equals the present one, then the lowest address, and updates the
    /// kernel's default route. Every step towards the nearest gateway reduces the distance to a gateway, so that settled
    /// tables have no loop; while the tables of two neighbours differ, their default routes may point at each other.
    pub(crate) fn follow_gateways(&mut self) {
        if self.is_gateway() {
            return;
        }
        let before = self.chosen;
        let present = |gateway| before.is_some_and(|c| c.gateway == gateway);
        let nearest = self.usable_gateways().min_by_key(|(g, hops, _)| (*hops, Reverse(present(*g)), *g));
        self.chosen = nearest.map(|(gateway, _, via)| Chosen { gateway, via });
        if before.map(|c| c.gateway) != self.chosen.map(|c| c.gateway) {
            let lost = before.map(|c| Output::note("gateway", c.gateway, 0));
            let found = self.chosen.map(|c| Output::note("gateway", c.gateway, 1));
            self.out.extend(lost.into_iter().chain(found));
        }
        match nearest {
            Some((_, hops, via)) => {
                if before.map(|c| c.via) != Some(via) {
                    let route = Route { destination: INTERNET, prefix: 0, via, hops, device: Device::Radio, mtu: None };
                    self.out.push_back(Output::SetRoute(route));
                }
                self.release(INTERNET);
            }
            None if before.is_some() => self.out.push_back(Output::ClearRoute { destination: INTERNET, prefix: 0 }),
            None => {}
        }
    }

    /// The known gateways for the status socket; `None` if there is none.
    pub(crate) fn gateway_status(&self, now: Instant) -> Option<serde_json::Value> {
        let row = |(destination, entry): (Ipv4Addr, &Entry)| {
            let gateway = self.gateway_of(destination)?;
            let chosen = self.chosen.is_some_and(|c| c.gateway == gateway);
            let (via, hops, state, sequence) = (entry.via, entry.hops, entry.state(now), entry.sequence.0);
            let row = serde_json::json!({
                "address": gateway, "via": via, "hops": hops, "state": state, "sequence": sequence, "chosen": chosen,
            });
            Some(row)
        };
        let rows: Vec<_> = self.table.iter().filter_map(row).collect();
        (!rows.is_empty()).then(|| rows.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(network: [u8; 4], prefix: u8) -> Node {
        let (mac, wires) = ([2, 0, 0, 0, 0, 1], Vec::new());
        let (feedback, restarted, notices) = (false, false, false);
        let (address, network) = (network.into(), (network.into(), prefix));
        Node { number: 1, address, network, mac, wires, mtu: 1500, seed: 1, feedback, restarted, notices }
    }

    #[test]
    fn the_network_behind_a_station_has_its_host_number() {
        let of = |node: &Node, station: [u8; 4]| behind(node, station.into());
        assert_eq!(of(&node([10, 0, 0, 0], 8), [10, 1, 2, 3]), Some([0, 1, 2, 3].into()));
        assert_eq!(of(&node([192, 168, 4, 0], 22), [192, 168, 5, 9]), Some([0, 0, 1, 9].into()));
        // no host number, and no network bits that could be zero
        assert_eq!(of(&node([10, 0, 0, 1], 32), [10, 0, 0, 1]), None);
        assert_eq!(of(&node([10, 0, 0, 0], 0), [10, 0, 0, 1]), None);
    }
}
