//! The default route to the nearest gateway.

use crate::entry::Entry;
use crate::gateway::{behind, is_outside, station_before, Chosen, INTERNET};
use crate::machine::{Dsdv, HELD_SENT};
use manet_engine::Instant;
use manet_routing::status::RouteStatus;
use manet_routing::{Device, Output, Route};
use serde_json::{json, Value};
use std::cmp::Reverse;
use std::net::Ipv4Addr;

impl Dsdv {
    /// Whether this node advertises the network behind its wires.
    pub(crate) fn is_gateway(&self) -> bool {
        self.options.gateway && !self.node.wires.is_empty()
    }

    /// The destination that this node advertises as a gateway.
    pub(crate) fn own_wires(&self) -> Option<Ipv4Addr> {
        behind(&self.node, self.node.address).filter(|_| self.is_gateway())
    }

    /// The gateway of which `destination` is the wired network.
    pub(crate) fn gateway_of(&self, destination: Ipv4Addr) -> Option<Ipv4Addr> {
        station_before(&self.node, destination).filter(|station| self.node.is_station(*station))
    }

    pub(crate) fn is_outside(&self, address: Ipv4Addr) -> bool {
        is_outside(&self.node, address)
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
        let usable = self.gateways().filter(|(_, entry)| entry.is_usable());
        let nearest = usable.min_by_key(|(g, entry)| (entry.hops, Reverse(present(*g)), *g));
        let nearest = nearest.map(|(gateway, entry)| (Chosen { gateway, via: entry.via }, entry.hops));
        self.chosen = nearest.map(|(chosen, _)| chosen);
        if before.map(|c| c.gateway) != self.chosen.map(|c| c.gateway) {
            let lost = before.map(|c| Output::note("gateway", c.gateway, 0));
            let found = self.chosen.map(|c| Output::note("gateway", c.gateway, 1));
            self.base.out.extend(lost.into_iter().chain(found));
        }
        match nearest {
            Some((Chosen { via, .. }, hops)) => {
                if before.map(|c| c.via) != Some(via) {
                    let route = Route { destination: INTERNET, prefix: 0, via, hops, device: Device::Radio, mtu: None };
                    self.base.out.push_back(Output::SetRoute(route));
                }
                self.base.release(INTERNET, HELD_SENT);
            }
            None if before.is_some() => {
                self.base.out.push_back(Output::ClearRoute { destination: INTERNET, prefix: 0 })
            }
            None => {}
        }
    }

    /// The known gateways, other than this node, with the entries of the networks behind them.
    fn gateways(&self) -> impl Iterator<Item = (Ipv4Addr, &Entry)> {
        self.table.iter().filter_map(|(destination, entry)| self.gateway_of(destination).map(|g| (g, entry)))
    }

    /// The known gateways for the status socket; `None` if there is none.
    pub(crate) fn gateway_status(&self, now: Instant) -> Option<Value> {
        let row = |(gateway, entry): (Ipv4Addr, &Entry)| {
            let chosen = self.chosen.is_some_and(|c| c.gateway == gateway);
            let (via, hops, state, sequence) = (entry.via, entry.hops, entry.state(now), entry.sequence.0);
            json!({"address": gateway, "via": via, "hops": hops, "state": state, "sequence": sequence, "chosen": chosen})
        };
        let rows: Vec<_> = self.gateways().map(row).collect();
        (!rows.is_empty()).then(|| rows.into())
    }

    /// The default route for the status socket, with the state of the chosen gateway's entry.
    pub(crate) fn default_route(&self, now: Instant) -> Option<RouteStatus> {
        let wires = behind(&self.node, self.chosen?.gateway)?;
        Some(RouteStatus { prefix: 0, ..self.route_status(now, INTERNET, self.table.get(wires)?) })
    }
}
