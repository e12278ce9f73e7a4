//! Received packets: packet processing and the default forwarding algorithm (RFC 3626, section 3.4), and the effect of
//! each message on the sets (7.1.1, 8.2.1, 8.4.1, 9.5, 5.4, 12.5).

use crate::links::Heard;
use crate::machine::{Olsr, Timer};
use crate::topology::Stale;
use crate::wire::hello::{LinkType, NeighbourType};
use crate::wire::{hna, message, Hello, Hna, Malformed, Message, Mid, Packet, Tc};
use manet_engine::{Duration, Instant};
use std::net::Ipv4Addr;

/// The reason for which a message was not processed, as the name of its counter.
type Reason = &'static str;

impl From<Malformed> for DropReason {
    fn from(_: Malformed) -> Self {
        Self("malformed-message")
    }
}

pub(crate) struct DropReason(Reason);

impl Olsr {
    pub(crate) fn receive(&mut self, now: Instant, from: Ipv4Addr, bytes: &[u8]) {
        if !self.is_station(from) {
            return self.counters.count("bad-sender");
        }
        let Ok((packet, cut)) = Packet::parse(bytes) else { return self.counters.count("malformed-packet") };
        if cut {
            self.counters.count("malformed-message");
        }
        self.counters.count("packets-received");
        self.dirty.links |= self.links.packet(now, from, packet.sequence);
        for message in packet.messages {
            if let Err(DropReason(reason)) = self.receive_message(now, from, packet.sequence, message) {
                self.counters.count(reason);
            }
        }
    }

    fn receive_message(
        &mut self,
        now: Instant,
        from: Ipv4Addr,
        packet: u16,
        message: Message,
    ) -> Result<(), DropReason> {
        // 3.4, step 2
        if message.ttl == 0 {
            return Err(DropReason("ttl-zero"));
        }
        if self.own.contains(&message.originator) {
            return Err(DropReason("own-message"));
        }
        if !self.is_station(message.originator) {
            return Err(DropReason("bad-originator"));
        }
        if message.kind == message::HELLO {
            return self.receive_hello(now, from, packet, &message);
        }
        // 3.4, steps 3 and 4; both 3.4.1 and the rules of each message require a symmetric sender
        if !self.links.is_symmetric(now, from) {
            return Err(DropReason("asymmetric-sender"));
        }
        if !self.duplicates.remember(now, (message.originator, message.sequence)) {
            return Err(DropReason("duplicate"));
        }
        let processed = match message.kind {
            message::TC => self.receive_tc(now, &message),
            message::MID => self.receive_mid(now, &message),
            message::HNA => self.receive_hna(now, &message),
            _ => {
                self.counters.count("unknown-received");
                Ok(())
            }
        };
        // a malformed message is not forwarded
        if !matches!(processed, Err(DropReason("malformed-message"))) {
            self.forward(now, from, message);
        }
        processed
    }

    /// Forwards a message of a selector after a jitter (3.4.1, steps 4 to 8).
    fn forward(&mut self, now: Instant, from: Ipv4Addr, mut message: Message) {
        let selected = self.links.get(from).is_some_and(|link| self.selectors.contains(link.main));
        if !selected || message.ttl <= 1 {
            return;
        }
        message.ttl -= 1;
        message.hops = message.hops.saturating_add(1);
        if !self.outgoing.push(message) {
            return self.counters.count("queue-full");
        }
        self.counters.count("forwarded");
        if self.timers.get(Timer::Flush).is_none() {
            let wait = self.jitter();
            self.timers.set(Timer::Flush, now + wait + Duration::from_nanos(1));
        }
    }

    fn receive_hello(
        &mut self,
        now: Instant,
        from: Ipv4Addr,
        packet: u16,
        message: &Message,
    ) -> Result<(), DropReason> {
        let hello = Hello::parse(&message.body)?;
        // HELLOs are never forwarded (6.2), and willingness has the values 0 to 7 (18.8)
        if message.hops != 0 || hello.willingness > 7 {
            return Err(DropReason("malformed-message"));
        }
        self.counters.count("hello-received");
        let listed = hello.blocks.iter().filter(|b| b.addresses.contains(&self.node.address));
        let us: Vec<(LinkType, NeighbourType)> = listed.filter_map(|b| b.types()).collect();
        let (main, validity) = (message.originator, message.validity.duration());
        let heard = Heard { main, us: us.first().map(|(link, _)| *link), validity, htime: hello.interval, packet };
        self.dirty.links = true;
        if !self.links.hello(now, from, heard) {
            return Err(DropReason("links-full"));
        }
        if self.neighbours.willing(main, hello.willingness) {
            self.dirty.mprs = true;
            self.dirty.routes = true;
        }
        if !self.links.is_symmetric(now, from) {
            return Ok(());
        }
        // 8.4.1
        if us.iter().any(|(_, neighbour)| *neighbour == NeighbourType::Mpr) {
            self.selectors.chose_us(main, now + validity);
        }
        self.watch(now + validity);
        self.receive_neighbours(now, main, &hello, validity)
    }

    /// Updates the 2-hop neighbours from a HELLO of a symmetric neighbour (8.2.1).
    fn receive_neighbours(
        &mut self,
        now: Instant,
        main: Ipv4Addr,
        hello: &Hello,
        validity: Duration,
    ) -> Result<(), DropReason> {
        let mut refused = Ok(());
        for block in &hello.blocks {
            let Some((_, neighbour)) = block.types() else {
                refused = Err(DropReason("bad-link-code"));
                continue;
            };
            for address in &block.addresses {
                let far = self.aliases.main(*address);
                if self.own.contains(address) || far == main || !self.is_station(far) {
                    continue;
                }
                let changed = if neighbour == NeighbourType::Not {
                    self.neighbours.remove_two_hop(main, far)
                } else {
                    self.neighbours.add_two_hop(main, far, now + validity).unwrap_or_else(|_| {
                        refused = Err(DropReason("two-hop-full"));
                        false
                    })
                };
                self.dirty.mprs |= changed;
                self.dirty.routes |= changed;
            }
        }
        refused
    }

    /// Updates the topology set (9.5).
    fn receive_tc(&mut self, now: Instant, message: &Message) -> Result<(), DropReason> {
        let tc = Tc::parse(&message.body)?;
        self.counters.count("tc-received");
        let (last, until) = (message.originator, now + message.validity.duration());
        self.dirty.routes |= self.topology.begin(last, tc.ansn).map_err(|Stale| DropReason("stale-tc"))?;
        self.watch(until);
        for destination in tc.neighbours {
            if destination == last || !(self.is_station(destination) || self.own.contains(&destination)) {
                continue;
            }
            let added = self.topology.reach(last, tc.ansn, destination, until);
            self.dirty.routes |= added.map_err(|_| DropReason("topology-full"))?;
        }
        Ok(())
    }

    /// Updates the interface associations (5.4).
    fn receive_mid(&mut self, now: Instant, message: &Message) -> Result<(), DropReason> {
        let mid = Mid::parse(&message.body)?;
        self.counters.count("mid-received");
        let (main, until) = (message.originator, now + message.validity.duration());
        self.watch(until);
        for interface in mid.interfaces {
            if interface == main || !self.is_station(interface) {
                continue;
            }
            let added = self.aliases.add(interface, main, until).map_err(|_| DropReason("aliases-full"))?;
            self.dirty.routes |= added;
            self.dirty.mprs |= added;
        }
        Ok(())
    }

    /// Updates the network associations (12.5).
    fn receive_hna(&mut self, now: Instant, message: &Message) -> Result<(), DropReason> {
        let networks = Hna::parse(&message.body)?.networks;
        self.counters.count("hna-received");
        let (gateway, until) = (message.originator, now + message.validity.duration());
        self.watch(until);
        for (network, mask) in networks {
            let Some(prefix) =
                hna::prefix(mask).filter(|p| self.is_station(network) || network.is_unspecified() && *p < 8)
            else {
                self.counters.count("bad-network");
                continue;
            };
            let added = self.networks.add(network, prefix, gateway, until);
            self.dirty.routes |= added.map_err(|_| DropReason("networks-full"))?;
        }
        Ok(())
    }

    /// Whether another node can have this address.
    pub(crate) fn is_station(&self, address: Ipv4Addr) -> bool {
        let reserved = address.octets()[0] == 0 || address.octets()[0] >= 224 || address.is_loopback();
        !reserved && !self.own.contains(&address) && address != self.subnet_broadcast
    }
}
