//! Handling of neighbours' packets.

use crate::height::{Height, Level};
use crate::machine::Tora;
use crate::neighbours::Arrival;
use crate::wire::{Ack, Block, Body, Message, Packet};
use manet_engine::Instant;
use std::net::Ipv4Addr;

impl Tora {
    pub(crate) fn receive(&mut self, now: Instant, from: Ipv4Addr, bytes: &[u8]) {
        if from == self.node.address {
            return self.base.counters.count("own-address");
        }
        if !self.node.is_station(from) {
            return self.base.counters.count("foreign-source");
        }
        let Ok(packet) = Packet::parse(bytes) else { return self.base.counters.count("malformed") };
        match self.neighbours.heard(now, from) {
            None => return self.base.counters.count("neighbours-full"),
            Some(true) => self.greet(now, from),
            Some(false) => self.resume(now, from),
        }
        self.base.counters.count("packets-received");
        if let Some(heard) = &packet.hello {
            match heard.iter().find(|h| h.address == self.node.address) {
                Some(us) => self.listed(now, from, *us),
                None => self.unlisted(now, from),
            }
        }
        if let Some(block) = packet.block {
            self.receive_block(now, from, &block);
        }
        // after the block: an answer to our height comes with its acknowledgement
        packet.acks.iter().for_each(|ack| self.receive_ack(now, from, *ack));
    }

    fn receive_ack(&mut self, now: Instant, from: Ipv4Addr, ack: Ack) {
        if ack.address != self.node.address {
            return;
        }
        let number = self.neighbours.get(from).map(|n| n.number);
        let acknowledged = if number == Some(ack.number) { self.blocks.acknowledge(from, ack.sequence) } else { None };
        self.base.counters.count(if acknowledged.is_some() { "acks-received" } else { "acks-unexpected" });
        for destination in acknowledged.into_iter().flatten() {
            if self.destinations.get(&destination).is_some_and(|d| d.raised) {
                self.follow(now, destination);
            }
        }
    }

    fn receive_block(&mut self, now: Instant, from: Ipv4Addr, block: &Block) {
        let Some(response) = block.responses.iter().find(|r| r.peer.address == self.node.address) else {
            return self.base.counters.count("blocks-for-others");
        };
        self.listed(now, from, response.peer);
        match self.neighbours.take(from, block.sequence, response.first, &block.messages) {
            Arrival::Refused => return self.base.counters.count("blocks-refused"),
            Arrival::Known => self.base.counters.count("blocks-known"),
            Arrival::Messages(messages) => {
                messages.into_iter().for_each(|message| self.receive_message(now, from, message));
            }
        }
        let ack = Ack { address: from, number: response.peer.number, sequence: block.sequence };
        if !self.acks.contains(&ack) {
            self.acks.push(ack);
        }
    }

    fn receive_message(&mut self, now: Instant, from: Ipv4Addr, message: Message) {
        let Message { destination, body } = message;
        if !self.node.is_station(destination) {
            return self.base.counters.count("bad-destination");
        }
        match body {
            Body::Query => {
                self.base.counters.count("qry-received");
                self.receive_query(now, from, destination);
            }
            Body::Update(height) => {
                self.base.counters.count("upd-received");
                self.receive_update(now, from, destination, height);
            }
            Body::Clear(level) => {
                self.base.counters.count("clr-received");
                self.receive_clear(now, from, destination, level);
            }
        }
    }

    fn receive_query(&mut self, now: Instant, from: Ipv4Addr, destination: Ipv4Addr) {
        let Some(since) = self.neighbours.up(from).map(|up| up.since) else { return };
        if destination == self.node.address {
            // a neighbour knows the height of the destination by the link itself, unless the link is one-way for a moment
            if self.own_updated_at.is_none_or(|at| at <= since) {
                self.own_updated_at = Some(now);
                self.say(destination, Body::Update(Some(Height::zero(destination))));
            }
            return;
        }
        let alone = self.neighbours.linked().nth(1).is_none();
        self.apply(now, destination, |state, here| {
            let reply = state.query(here, since);
            // draft, 4.1: with no other link there is nobody to ask
            if alone && reply == crate::destination::Reply::Query {
                crate::destination::Reply::Nothing
            } else {
                reply
            }
        });
    }

    fn receive_update(&mut self, now: Instant, from: Ipv4Addr, destination: Ipv4Addr, height: Option<Height>) {
        if destination == self.node.address {
            return self.base.counters.count("about-this-node");
        }
        let zero = Some(Height::zero(destination));
        let right = height.is_none_or(|h| h.id == from) && (destination == from) == (height == zero);
        if !right {
            return self.base.counters.count("bad-height");
        }
        self.apply(now, destination, |state, here| state.update(here, from, height));
    }

    fn receive_clear(&mut self, now: Instant, from: Ipv4Addr, destination: Ipv4Addr, level: Level) {
        if destination == self.node.address {
            return self.base.counters.count("about-this-node");
        }
        if destination == from {
            return self.base.counters.count("bad-height");
        }
        if self.destinations.contains_key(&destination) {
            self.apply(now, destination, |state, here| state.clear(here, from, level));
        }
    }
}
