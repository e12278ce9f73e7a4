//! Our own packets: beacons, blocks of messages, acknowledgements. All that waits shares the next packet (IMEP's aggregation).

use crate::blocks::Outstanding;
use crate::machine::{Timer, Tora};
use crate::wire::{self, Block, Heard, Packet, Response};
use manet_engine::Instant;
use manet_routing::{Output, BROADCAST};
use std::collections::BTreeSet;
use std::net::Ipv4Addr;

const NEIGHBOURS_ONLY: u8 = 1;
/// Neighbours that are greeted each for itself, by frames that the radio repeats; more share a beacon.
const MAX_GREETED: usize = 2;

impl Tora {
    pub(crate) fn beacon(&mut self, now: Instant) {
        let jitter = self.rng.between(Default::default(), self.options.beacon_jitter);
        self.timers.set(Timer::Beacon, now + self.options.beacon_interval + jitter);
        self.send(now, true);
    }

    /// Tells our numbers to one neighbour by unicast, to several by a beacon.
    pub(crate) fn greetings(&mut self, now: Instant) {
        self.greeted_at = now;
        let greet = std::mem::take(&mut self.greet);
        if greet.len() > MAX_GREETED {
            return self.send(now, true);
        }
        for neighbour in greet {
            if let Some(us) = self.neighbours.entry(neighbour) {
                self.base.counters.count("greetings-sent");
                self.transmit(neighbour, Packet { hello: Some(vec![us]), ..Packet::default() });
            }
        }
    }

    /// Sends all that waits, with a list of the heard nodes if `beacon`.
    pub(crate) fn send(&mut self, now: Instant, beacon: bool) {
        self.timers.stop(Timer::Urgent);
        self.timers.stop(Timer::Acks);
        let linked: BTreeSet<Ipv4Addr> = self.neighbours.linked().collect();
        if linked.is_empty() {
            // a later neighbour asks for the heights, or gets them when its link comes up
            self.blocks.clear();
        }
        if beacon {
            self.timers.stop(Timer::Greet);
            self.greet.clear();
            self.base.counters.count("beacons-sent");
            let hello = Some(self.neighbours.list());
            self.transmit(BROADCAST, Packet { hello, ..Packet::default() });
        }
        let room = self.room_for_messages(linked.len());
        let timeout = self.options.retransmit_timeout;
        while let Some(block) = self.blocks.next_block(now, timeout, room, linked.clone()) {
            let block = block.clone();
            self.transmit_block(BROADCAST, &block);
        }
        if !self.acks.is_empty() {
            self.transmit(BROADCAST, Packet::default());
        }
    }

    /// Repeats the blocks that are due. A neighbour that has not acknowledged the last repetition is lost.
    pub(crate) fn retransmit(&mut self, now: Instant) {
        let (timeout, limit) = (self.options.retransmit_timeout, self.options.retransmissions);
        while let Some(due) = self.blocks.due(now, timeout, limit) {
            match due {
                Ok(block) => {
                    self.base.counters.count("blocks-repeated");
                    let single = block.waiting.first().filter(|_| block.waiting.len() == 1);
                    self.transmit_block(single.copied().unwrap_or(BROADCAST), &block);
                }
                Err(silent) => silent.into_iter().for_each(|neighbour| self.unacknowledged(now, neighbour)),
            }
        }
    }

    fn transmit_block(&mut self, to: Ipv4Addr, block: &Outstanding) {
        let response = |address: &Ipv4Addr| {
            let neighbour = self.neighbours.get(*address)?;
            let first = neighbour.up.as_ref()?.first;
            Some(Response { peer: Heard { address: *address, number: neighbour.number, echo: neighbour.echo }, first })
        };
        let responses = block.waiting.iter().filter_map(response).collect();
        let block = Block { sequence: block.sequence, responses, messages: block.messages.clone() };
        self.base.counters.count("blocks-sent");
        self.transmit(to, Packet { block: Some(block), ..Packet::default() });
    }

    /// Adds as many acknowledgements as fit, and sends the packet.
    fn transmit(&mut self, to: Ipv4Addr, mut packet: Packet) {
        let heard = packet.hello.as_ref().map_or(0, |h| h.len() * wire::ENTRY_LEN);
        let block = packet
            .block
            .as_ref()
            .map_or(0, |b| b.responses.len() * wire::RESPONSE_LEN + b.messages.len() * wire::MAX_MESSAGE_LEN);
        let room = self.payload().saturating_sub(wire::HEADS_LEN + heard + block) / wire::ENTRY_LEN;
        let fits = |ack: &wire::Ack| to == BROADCAST || to == ack.address;
        if self.acks.iter().all(fits) {
            packet.acks = self.acks.drain(..room.min(self.acks.len())).collect();
        }
        self.base.counters.count("packets-sent");
        self.base.out.push_back(Output::Control { to, ttl: NEIGHBOURS_ONLY, bytes: packet.emit().into() });
    }

    /// Messages of a block with `responses` responses, at least 1.
    fn room_for_messages(&self, responses: usize) -> usize {
        let taken = wire::HEADS_LEN + responses * wire::RESPONSE_LEN;
        (self.payload().saturating_sub(taken) / wire::MAX_MESSAGE_LEN).max(1)
    }

    fn payload(&self) -> usize {
        usize::from(self.node.mtu) - wire::HEADERS_LEN
    }

    /// A beacon that lists nobody: the neighbours lose their links at once.
    pub(crate) fn stop(&mut self) {
        self.acks.clear();
        self.transmit(BROADCAST, Packet { hello: Some(Vec::new()), ..Packet::default() });
        self.timers = Default::default();
        self.stopped = true;
    }
}
