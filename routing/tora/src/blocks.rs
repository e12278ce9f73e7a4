//! Our own messages on their way to the neighbours: they wait for company, travel in numbered blocks, and each block is sent
//! again to the neighbours that have not acknowledged it (IMEP's reliable broadcast).

use crate::wire::{Body, Message};
use manet_engine::{Duration, Instant};
use std::collections::{BTreeSet, VecDeque};
use std::net::Ipv4Addr;

/// Blocks from the oldest without all its acknowledgements on; further messages wait. Receivers accept 64 blocks ahead.
const WINDOW: u16 = 32;

/// Doublings of the timeout of a block.
const MAX_DOUBLINGS: u32 = 5;

/// A block that neighbours have not acknowledged.
#[derive(Clone, Debug)]
pub struct Outstanding {
    /// Its number.
    pub sequence: u16,
    /// Its messages.
    pub messages: Vec<Message>,
    /// The neighbours without acknowledgement.
    pub waiting: BTreeSet<Ipv4Addr>,
    /// Retransmissions so far.
    pub retransmissions: u32,
    /// Time of the next retransmission.
    pub at: Instant,
}

/// Messages that wait and blocks that are outstanding.
#[derive(Clone, Debug, Default)]
pub struct Blocks {
    queue: Vec<Message>,
    outstanding: VecDeque<Outstanding>,
    next: u16,
}

impl Blocks {
    /// Number of the next block.
    pub fn next_sequence(&self) -> u16 {
        self.next
    }

    /// Adds a message. An UPD or QRY replaces the last message about its destination if that is of the same kind.
    pub fn push(&mut self, message: Message) {
        let last = self.queue.iter_mut().rev().find(|m| m.destination == message.destination);
        match last {
            Some(last) if same_kind(&last.body, &message.body) => *last = message,
            _ => self.queue.push(message),
        }
    }

    /// Whether a message waits and may be sent.
    pub fn is_ready(&self) -> bool {
        let open = self.outstanding.front().is_none_or(|oldest| self.next.wrapping_sub(oldest.sequence) < WINDOW);
        !self.queue.is_empty() && open
    }

    /// Drops the messages that wait: nobody hears them.
    pub fn clear(&mut self) {
        self.queue.clear();
    }

    /// Makes a block of at most `room` messages for the neighbours `to`. `None`: no message may be sent.
    pub fn next_block(
        &mut self,
        now: Instant,
        timeout: Duration,
        room: usize,
        to: BTreeSet<Ipv4Addr>,
    ) -> Option<&Outstanding> {
        if !self.is_ready() {
            return None;
        }
        let messages = self.queue.drain(..room.clamp(1, self.queue.len())).collect();
        let sequence = self.next;
        self.next = self.next.wrapping_add(1);
        self.outstanding.push_back(Outstanding {
            sequence,
            messages,
            waiting: to,
            retransmissions: 0,
            at: now + timeout,
        });
        self.outstanding.back()
    }

    /// The acknowledgement of block `sequence` by `from`. Returns the destinations of the block; `None`: it was not waited for.
    pub fn acknowledge(&mut self, from: Ipv4Addr, sequence: u16) -> Option<Vec<Ipv4Addr>> {
        let block =
            self.outstanding.iter_mut().find(|b| b.sequence == sequence).filter(|b| b.waiting.contains(&from))?;
        block.waiting.remove(&from);
        let destinations = block.messages.iter().map(|m| m.destination).collect();
        self.outstanding.retain(|b| !b.waiting.is_empty());
        Some(destinations)
    }

    /// Whether `neighbour` has not acknowledged the last UPD about `destination`.
    pub fn awaits(&self, neighbour: Ipv4Addr, destination: Ipv4Addr) -> bool {
        let update = |m: &Message| m.destination == destination && matches!(m.body, Body::Update(_));
        let outstanding = |b: &Outstanding| b.waiting.contains(&neighbour) && b.messages.iter().any(update);
        self.queue.iter().any(update) || self.outstanding.iter().any(outstanding)
    }

    /// The link to `neighbour` is down: no block waits for it.
    pub fn lost(&mut self, neighbour: Ipv4Addr) {
        for block in &mut self.outstanding {
            block.waiting.remove(&neighbour);
        }
        self.outstanding.retain(|b| !b.waiting.is_empty());
    }

    /// A block that is due at `now`; it is due again after twice the time. `Err`: the neighbours that did not acknowledge it after
    /// `limit` retransmissions.
    pub fn due(&mut self, now: Instant, timeout: Duration, limit: u32) -> Option<Result<Outstanding, Vec<Ipv4Addr>>> {
        let block = self.outstanding.iter_mut().find(|b| b.at <= now)?;
        if block.retransmissions == limit {
            return Some(Err(block.waiting.iter().copied().collect()));
        }
        block.retransmissions += 1;
        // exponential backoff: the channel may be congested
        block.at = now + timeout * (1 << block.retransmissions.min(MAX_DOUBLINGS));
        Some(Ok(block.clone()))
    }

    /// The earliest retransmission.
    pub fn next_timeout(&self) -> Option<Instant> {
        self.outstanding.iter().map(|b| b.at).min()
    }

    /// Number of messages that wait for a block.
    pub fn queued(&self) -> usize {
        self.queue.len()
    }

    /// Number of blocks without all their acknowledgements.
    pub fn outstanding(&self) -> usize {
        self.outstanding.len()
    }
}

fn same_kind(a: &Body, b: &Body) -> bool {
    matches!((a, b), (Body::Query, Body::Query) | (Body::Update(_), Body::Update(_)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::height::{Height, Level};
    use manet_routing::trial::{ip, ms as at};

    fn message(last: usize, body: Body) -> Message {
        Message { destination: ip(last), body }
    }

    const TIMEOUT: Duration = Duration::from_millis(500);

    #[test]
    fn a_later_update_replaces_the_one_that_waits_but_not_across_a_clear() {
        let mut blocks = Blocks::default();
        let update = |id| Body::Update(Some(Height::zero(ip(id))));
        let clear = Body::Clear(Level { tau: 1, oid: ip(1), reflected: true });
        let sent = [(9, update(1)), (8, Body::Query), (9, update(2)), (9, clear), (9, update(3)), (8, Body::Query)];
        sent.into_iter().for_each(|(last, body)| blocks.push(message(last, body)));
        let block = blocks.next_block(at(0), TIMEOUT, 10, [ip(2)].into()).unwrap();
        let expected = [(9, update(2)), (8, Body::Query), (9, clear), (9, update(3))];
        assert_eq!(block.messages, expected.map(|(last, body)| message(last, body)));
    }

    #[test]
    fn a_block_is_repeated_until_all_have_acknowledged_it_or_the_limit() {
        let mut blocks = Blocks::default();
        blocks.push(message(9, Body::Query));
        assert_eq!(blocks.next_block(at(0), TIMEOUT, 10, [ip(2), ip(3)].into()).unwrap().sequence, 0);
        assert!(blocks.due(at(499), TIMEOUT, 1).is_none());
        assert_eq!(blocks.acknowledge(ip(2), 0), Some(vec![ip(9)]));
        assert_eq!((blocks.acknowledge(ip(2), 0), blocks.acknowledge(ip(3), 1)), (None, None));
        assert_eq!(blocks.due(at(500), TIMEOUT, 1).unwrap().unwrap().waiting, [ip(3)].into());
        assert!(blocks.due(at(1499), TIMEOUT, 1).is_none());
        assert_eq!(blocks.due(at(1500), TIMEOUT, 1).unwrap().unwrap_err(), [ip(3)]);
        blocks.lost(ip(3));
        assert_eq!((blocks.outstanding(), blocks.next_timeout()), (0, None));
    }

    #[test]
    fn an_update_is_awaited_from_the_queue_to_the_acknowledgement() {
        let mut blocks = Blocks::default();
        blocks.push(message(9, Body::Update(None)));
        assert!(blocks.awaits(ip(2), ip(9)) && !blocks.awaits(ip(2), ip(8)));
        blocks.next_block(at(0), TIMEOUT, 10, [ip(2), ip(3)].into());
        blocks.acknowledge(ip(2), 0);
        assert!(blocks.awaits(ip(3), ip(9)) && !blocks.awaits(ip(2), ip(9)));
    }

    #[test]
    fn the_window_keeps_further_messages_back() {
        let mut blocks = Blocks::default();
        for _ in 0..WINDOW {
            blocks.push(message(9, Body::Query));
            assert!(blocks.next_block(at(0), TIMEOUT, 1, [ip(2)].into()).is_some());
        }
        blocks.push(message(9, Body::Query));
        assert!(blocks.next_block(at(0), TIMEOUT, 1, [ip(2)].into()).is_none());
        blocks.acknowledge(ip(2), 7);
        assert!(!blocks.is_ready());
        blocks.acknowledge(ip(2), 0);
        assert_eq!(blocks.next_block(at(0), TIMEOUT, 1, [ip(2)].into()).unwrap().sequence, WINDOW);
    }
}
