//! A contention function: the queue, the backoff and the retry counters of an access category. The DCF has one, EDCA four (EDCAF,
//! IEEE Std 802.11-2020 clause 10.23.2.1), which share the rest of the station: carrier sense, the frame exchange, the responses.

use super::{Content, Service};
use crate::mac::blocks::Blocks;
use crate::mac::{Category, InterfaceQueue, Packet};
use crate::phy::radio::{AccessParameters, BackoffDraw};
use crate::phy::Radio;
use manet_engine::{Duration, Instant, Stream};
use std::sync::Arc;

pub(in crate::mac) struct Contention {
    pub(super) category: Category,
    /// DIFS, or the AIFS of the category.
    pub(super) aifs: Duration,
    /// So much is it longer than the shortest of the station.
    pub(super) behind: Duration,
    cw_min: u32,
    cw_max: u32,
    /// TXOP limit; zero: one exchange.
    pub(super) txop: Duration,
    /// End of the TXOP that began last.
    pub(super) txop_until: Instant,
    /// Packets that wait behind the one in service.
    pub(in crate::mac) queue: InterfaceQueue,
    /// Block Ack agreements, if the profile aggregates.
    pub(super) blocks: Option<Box<Blocks>>,
    pub(super) service: Option<Service>,
    cw: u32,
    pub(super) short_retries: u32,
    pub(super) long_retries: u32,
    /// Remaining backoff slots; `None`: no backoff pending.
    pub(super) slots: Option<u32>,
    /// Access without backoff, as the medium was idle (9.3.4.2); if it becomes busy first, a backoff is drawn.
    pub(super) undrawn: bool,
    pub(super) drawn: u32,
    /// Earliest start of the countdown, apart from the state of the medium.
    pub(super) ready_at: Instant,
}

impl Contention {
    pub(super) fn new(category: Category, radio: &Radio, queue: InterfaceQueue) -> Self {
        let AccessParameters { aifsn, cw_min, cw_max, txop } = radio.access_parameters(category);
        let shortest = Category::BY_PRIORITY.map(|category| radio.access_parameters(category).aifsn).into_iter().min();
        Self {
            category,
            aifs: radio.aifs(aifsn),
            behind: radio.slot() * u64::from(aifsn - shortest.unwrap_or(aifsn)),
            cw_min,
            cw_max,
            txop,
            txop_until: Instant::ZERO,
            queue,
            blocks: Blocks::new(radio).map(Box::new),
            service: None,
            cw: cw_min,
            short_retries: 0,
            long_retries: 0,
            slots: None,
            undrawn: false,
            drawn: 0,
            ready_at: Instant::ZERO,
        }
    }

    /// Number of packets that wait, the one in service included.
    pub(super) fn backlog(&self) -> usize {
        let in_service = matches!(&self.service, Some(Service { content: Content::Packet { .. }, .. }));
        self.queue.len() + usize::from(in_service) + self.blocks.as_ref().map_or(0, |blocks| blocks.backlog())
    }

    /// Whether it has a packet or is in an exchange.
    pub(super) fn is_engaged(&self) -> bool {
        self.service.is_some() || self.backlog() > 0
    }

    /// Whether something is in service or waits.
    pub(super) fn is_waiting(&self) -> bool {
        self.service.is_some() || !self.queue.is_empty()
    }

    pub(super) fn serves_block(&self) -> bool {
        matches!(&self.service, Some(Service { content: Content::Block { .. }, .. }))
    }

    /// Draws a backoff.
    pub(super) fn draw(&mut self, radio: &Radio, random: &mut Stream) {
        let values = match radio.rules.backoff_draw {
            BackoffDraw::Cw => self.cw + 1,
            BackoffDraw::CwMinusOne => self.cw,
        };
        self.drawn = random.below(values.into()) as u32;
        self.slots = Some(self.drawn);
        self.undrawn = false;
    }

    /// Stops the countdown, of which so many slots have passed.
    pub(super) fn freeze(&mut self, passed: u64, radio: &Radio, random: &mut Stream) {
        if self.slots.is_none() {
            return;
        }
        if self.undrawn {
            self.draw(radio, random);
            return;
        }
        self.slots = self.slots.map(|slots| slots - slots.min(passed as u32));
    }

    pub(super) fn grow_window(&mut self) {
        self.cw = (self.cw * 2 + 1).min(self.cw_max);
    }

    pub(super) fn reset_window(&mut self) {
        self.cw = self.cw_min;
    }

    /// Removes all packets not yet acknowledged.
    pub(super) fn remaining(&mut self) -> Vec<Arc<Packet>> {
        let service = self.service.take().and_then(|service| match service.content {
            Content::Packet { packet, .. } => Some(packet),
            Content::Block { .. } => None,
        });
        let blocks = self.blocks.as_mut().map_or_else(Vec::new, |blocks| blocks.switch_off());
        service.into_iter().chain(blocks).chain(self.queue.drain()).collect()
    }

    /// Removes the packets for a neighbour that are not in service, in order.
    pub(super) fn purge(&mut self, mac: [u8; 6], neighbour: Option<u16>) -> Vec<Arc<Packet>> {
        let in_service = |peer| match &self.service {
            Some(Service { content: Content::Block { peer: served, offer: Some(_) }, .. }) => *served == peer,
            _ => false,
        };
        let mut out = match (&mut self.blocks, neighbour) {
            (Some(blocks), Some(peer)) if !in_service(peer) => blocks.purge(peer),
            _ => Vec::new(),
        };
        out.extend(self.queue.purge(mac));
        out
    }

    /// The state of a new station, without packets.
    pub(super) fn restart(&mut self, now: Instant) {
        self.reset_window();
        (self.short_retries, self.long_retries) = (0, 0);
        (self.slots, self.undrawn, self.drawn, self.ready_at) = (None, false, 0, now);
    }
}
