//! Neighbours and adjacencies (the link and connection status sensing of IMEP, draft-ietf-manet-imep-spec-01).
//!
//! A link is up when both ends hear each other. Each end numbers the adjacency; a beacon lists the heard neighbours with the
//! own number and the last number of the neighbour. An end that has lost the link or its memory has a new number, so that the
//! other end also begins anew: both forget heights and sequence numbers together. (Departure: IMEP has no such numbers; a
//! restarted neighbour would be taken for the old one.)

use crate::wire::{Heard, Message};
use manet_engine::{Duration, Instant};
use std::collections::btree_map::Entry;
use std::collections::BTreeMap;
use std::net::Ipv4Addr;

/// Maximum number of neighbours; a radio with a small MTU has fewer. It limits the effect of forged senders.
pub const MAX_NEIGHBOURS: usize = 128;
/// Blocks that may arrive before an earlier one.
const MAX_AHEAD: u16 = 64;

/// A heard node.
#[derive(Clone, Debug)]
pub struct Neighbour {
    /// Time of its last packet.
    pub heard_at: Instant,
    /// Our number of the adjacency.
    pub number: u16,
    /// Its number, 0 as long as it does not list us.
    pub echo: u16,
    /// The state of a link that is up.
    pub up: Option<Up>,
}

/// A link that is up.
#[derive(Clone, Debug)]
pub struct Up {
    /// Since this time.
    pub since: Instant,
    /// Sequence number of our first block for it.
    pub first: u16,
    /// Whether the radio failed to reach it, and no packet of it has arrived since.
    pub suspended: bool,
    /// The next of its blocks; `None` before the first.
    expected: Option<u16>,
    /// Blocks that arrived before it.
    ahead: BTreeMap<u16, Vec<Message>>,
}

/// The effect of a list or response on a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// None.
    Nothing,
    /// The link came up.
    Up,
    /// The link went down; the neighbour has to be told the new number.
    Down,
    /// The link is not up yet; the neighbour has to be told our numbers.
    Waiting,
}

/// The fate of a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// In order, with the blocks that waited for it.
    Messages(Vec<Message>),
    /// Arrived before, or waits for an earlier one; it is acknowledged all the same.
    Known,
    /// Too far ahead, or the link is not up: it is not acknowledged.
    Refused,
}

/// The heard nodes.
#[derive(Clone, Debug)]
pub struct Neighbours {
    all: BTreeMap<Ipv4Addr, Neighbour>,
    room: usize,
    silence: Duration,
    number: u16,
}

impl Neighbours {
    /// At most `room` neighbours, down after `silence`. `number`: of the first adjacency.
    pub fn new(room: usize, silence: Duration, number: u16) -> Self {
        Self { all: BTreeMap::new(), room: room.min(MAX_NEIGHBOURS), silence, number: number.max(1) }
    }

    /// The number of the next adjacency.
    pub fn begin_with(&mut self, number: u16) {
        self.number = number.max(1);
    }

    /// Records a packet of `address`. `None`: there is no room. True: the neighbour is new.
    pub fn heard(&mut self, now: Instant, address: Ipv4Addr) -> Option<bool> {
        let room = self.all.len() < self.room;
        match self.all.entry(address) {
            Entry::Occupied(mut known) => {
                known.get_mut().heard_at = now;
                Some(false)
            }
            Entry::Vacant(place) if room => {
                let number = next(&mut self.number);
                place.insert(Neighbour { heard_at: now, number, echo: 0, up: None });
                Some(true)
            }
            Entry::Vacant(_) => None,
        }
    }

    /// The neighbour `address` lists us as `us`. `sequence`: of our next block.
    pub fn listed(&mut self, now: Instant, address: Ipv4Addr, us: Heard, sequence: u16) -> Change {
        let Some(neighbour) = self.all.get_mut(&address) else { return Change::Nothing };
        let agreed = us.echo == neighbour.number && us.number != 0;
        let same = neighbour.echo == us.number;
        neighbour.echo = us.number;
        match (&neighbour.up, agreed) {
            (Some(_), true) if same => Change::Nothing,
            (Some(_), _) => {
                neighbour.up = None;
                neighbour.number = next(&mut self.number);
                Change::Down
            }
            (None, true) => {
                neighbour.up =
                    Some(Up { since: now, first: sequence, suspended: false, expected: None, ahead: BTreeMap::new() });
                Change::Up
            }
            (None, false) => Change::Waiting,
        }
    }

    /// The beacon of `address` does not list us.
    pub fn unlisted(&mut self, address: Ipv4Addr) -> Change {
        let Some(neighbour) = self.all.get_mut(&address) else { return Change::Nothing };
        if neighbour.up.take().is_none() {
            return Change::Waiting;
        }
        neighbour.number = next(&mut self.number);
        neighbour.echo = 0;
        Change::Down
    }

    /// Suspends the link to `address` until it is heard. True: it was up and in use.
    pub fn suspend(&mut self, address: Ipv4Addr) -> bool {
        let up = self.all.get_mut(&address).and_then(|n| n.up.as_mut());
        up.is_some_and(|up| !std::mem::replace(&mut up.suspended, true))
    }

    /// Uses a suspended link again. True: it was suspended.
    pub fn resume(&mut self, address: Ipv4Addr) -> bool {
        let up = self.all.get_mut(&address).and_then(|n| n.up.as_mut());
        up.is_some_and(|up| std::mem::replace(&mut up.suspended, false))
    }

    /// Removes a neighbour. True: its link was up.
    pub fn forget(&mut self, address: Ipv4Addr) -> bool {
        self.all.remove(&address).is_some_and(|n| n.up.is_some())
    }

    /// Takes a block of `address` whose first block for us is `first`.
    pub fn take(&mut self, address: Ipv4Addr, sequence: u16, first: u16, messages: &[Message]) -> Arrival {
        let Some(up) = self.all.get_mut(&address).and_then(|n| n.up.as_mut()) else { return Arrival::Refused };
        let mut expected = *up.expected.get_or_insert(first);
        let ahead = sequence.wrapping_sub(expected);
        if ahead >= 0x8000 {
            return Arrival::Known;
        }
        if ahead > MAX_AHEAD {
            return Arrival::Refused;
        }
        if ahead > 0 {
            up.ahead.entry(sequence).or_insert_with(|| messages.to_vec());
            return Arrival::Known;
        }
        let mut ordered = messages.to_vec();
        expected = expected.wrapping_add(1);
        while let Some(waited) = up.ahead.remove(&expected) {
            ordered.extend(waited);
            expected = expected.wrapping_add(1);
        }
        up.expected = Some(expected);
        Arrival::Messages(ordered)
    }

    /// Removes the neighbours that were silent for too long; returns them, and whether the link was up.
    pub fn expire(&mut self, now: Instant) -> Vec<(Ipv4Addr, bool)> {
        let silence = self.silence;
        let silent = |n: &Neighbour| n.heard_at + silence <= now;
        let gone = self.iter().filter(|(_, n)| silent(n)).map(|(a, n)| (a, n.up.is_some())).collect();
        self.all.retain(|_, n| !silent(n));
        gone
    }

    /// Time at which the neighbour is lost unless it is heard.
    pub fn expires_at(&self, neighbour: &Neighbour) -> Instant {
        neighbour.heard_at + self.silence
    }

    /// The earliest loss of a neighbour.
    pub fn next_timeout(&self) -> Option<Instant> {
        self.all.values().map(|n| self.expires_at(n)).min()
    }

    /// The neighbour with this address.
    pub fn get(&self, address: Ipv4Addr) -> Option<&Neighbour> {
        self.all.get(&address)
    }

    /// The link to this address, if it is up.
    pub fn up(&self, address: Ipv4Addr) -> Option<&Up> {
        self.get(address)?.up.as_ref()
    }

    /// All neighbours, sorted by address.
    pub fn iter(&self) -> impl Iterator<Item = (Ipv4Addr, &Neighbour)> {
        self.all.iter().map(|(address, n)| (*address, n))
    }

    /// The neighbours whose link is up, sorted by address.
    pub fn linked(&self) -> impl Iterator<Item = Ipv4Addr> + '_ {
        self.iter().filter(|(_, n)| n.up.is_some()).map(|(address, _)| address)
    }

    /// The list of a beacon.
    pub fn list(&self) -> Vec<Heard> {
        self.all.keys().filter_map(|address| self.entry(*address)).collect()
    }

    /// The line of a beacon about one neighbour.
    pub fn entry(&self, address: Ipv4Addr) -> Option<Heard> {
        self.get(address).map(|n| Heard { address, number: n.number, echo: n.echo })
    }
}

/// Takes a number; 0 means none and is left out.
fn next(number: &mut u16) -> u16 {
    let taken = *number;
    *number = number.checked_add(1).unwrap_or(1);
    taken
}

#[cfg(test)]
mod tests {
    use super::*;
    use manet_routing::trial::at;

    const A: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
    const B: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);

    fn neighbours(number: u16) -> Neighbours {
        Neighbours::new(99, Duration::from_secs(3), number)
    }

    /// A beacon of `sender` at `address` arrives at `receiver`, whose address is `us`.
    fn beacon(now: u32, receiver: &mut Neighbours, us: Ipv4Addr, sender: &Neighbours, address: Ipv4Addr) -> Change {
        receiver.heard(at(now), address);
        match sender.list().into_iter().find(|h| h.address == us) {
            Some(heard) => receiver.listed(at(now), address, heard, 0),
            None => receiver.unlisted(address),
        }
    }

    fn linked() -> (Neighbours, Neighbours) {
        let (mut a, mut b) = (neighbours(10), neighbours(20));
        assert_eq!(beacon(0, &mut b, B, &a, A), Change::Waiting);
        assert_eq!(beacon(0, &mut a, A, &b, B), Change::Waiting);
        assert_eq!(beacon(0, &mut b, B, &a, A), Change::Up);
        assert_eq!(beacon(0, &mut a, A, &b, B), Change::Up);
        assert_eq!(beacon(0, &mut b, B, &a, A), Change::Nothing);
        (a, b)
    }

    #[test]
    fn a_link_is_up_when_both_ends_list_each_other() {
        let (a, b) = linked();
        assert_eq!((a.linked().collect::<Vec<_>>(), b.linked().collect::<Vec<_>>()), (vec![B], vec![A]));
    }

    #[test]
    fn an_end_that_forgets_the_link_makes_the_other_begin_anew() {
        let (mut a, mut b) = linked();
        assert!(a.forget(B));
        assert_eq!(beacon(1, &mut a, A, &b, B), Change::Waiting);
        assert_eq!(beacon(1, &mut b, B, &a, A), Change::Down);
        assert_eq!(beacon(2, &mut a, A, &b, B), Change::Up);
        assert_eq!(beacon(2, &mut b, B, &a, A), Change::Up);
    }

    #[test]
    fn a_restarted_neighbour_is_recognised_by_its_number() {
        let (_, mut b) = linked();
        let mut a = neighbours(500);
        assert_eq!(beacon(1, &mut a, A, &b, B), Change::Waiting);
        assert_eq!(beacon(1, &mut b, B, &a, A), Change::Down);
        // and by its first beacon, which lists nobody
        let (_, mut b) = linked();
        assert_eq!(beacon(1, &mut b, B, &neighbours(500), A), Change::Down);
    }

    #[test]
    fn blocks_are_delivered_in_order_and_once() {
        let (mut a, _) = linked();
        let message = |last| Message { destination: Ipv4Addr::new(10, 0, 0, last), body: crate::wire::Body::Query };
        let mut take = |sequence, last| a.take(B, sequence, 65_535, &[message(last)]);
        assert_eq!(take(0, 2), Arrival::Known);
        assert_eq!(take(1, 3), Arrival::Known);
        assert_eq!(take(65_535, 1), Arrival::Messages(vec![message(1), message(2), message(3)]));
        assert_eq!(take(0, 2), Arrival::Known);
        assert_eq!(take(2 + MAX_AHEAD + 1, 9), Arrival::Refused);
        assert_eq!(take(2, 4), Arrival::Messages(vec![message(4)]));
        assert_eq!(a.take(A, 0, 0, &[]), Arrival::Refused);
    }

    #[test]
    fn a_silent_neighbour_is_lost_and_the_table_is_bounded() {
        let (mut a, _) = linked();
        assert_eq!(a.next_timeout(), Some(at(3)));
        assert!(a.expire(at(2)).is_empty());
        assert_eq!(a.expire(at(3)), [(B, true)]);
        for n in 0..1000u32 {
            assert_eq!(a.heard(at(4), n.into()).is_some(), n < 99);
        }
        assert_eq!(a.heard(at(5), 3.into()), Some(false));
    }
}
