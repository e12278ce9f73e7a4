//! The deadline of each station's MAC, one per station, and the earliest of them.
//!
//! A frame stops the backoff of every station that senses it, and the end of the frame starts it again. So a deadline is replaced
//! far more often than it is reached. An event queue would keep each replaced deadline until its time. A tournament over the
//! stations (a complete binary tree, each node the earlier of its two children) keeps only the current ones.
//!
//! Order at one instant: stations wake in the order in which they first set this instant. A station that sets another
//! deadline and then the same one again keeps its place.

use manet_engine::Instant;

/// Instant, then order in which it was first set.
type Key = (Instant, u64);
const NEVER: Key = (Instant::MAX, u64::MAX);

pub(super) struct Wakes {
    keys: Vec<Key>,
    /// `winners[1]` is the station that is first of all; the children of node i are 2 i and 2 i + 1, the leaves the stations.
    winners: Vec<u16>,
    /// By station: replaced deadlines whose time is still to come.
    replaced: Vec<Vec<Key>>,
    /// Keys up to and including this one are in the past.
    reached: Key,
    set_so_far: u64,
}

impl Wakes {
    pub(super) fn new(stations: usize) -> Self {
        let leaves = stations.next_power_of_two();
        let mut wakes = Self {
            keys: vec![NEVER; leaves],
            winners: vec![0; 2 * leaves],
            replaced: vec![Vec::new(); stations],
            reached: (Instant::ZERO, 0),
            set_so_far: 1,
        };
        for (node, station) in (leaves..2 * leaves).zip(0..) {
            wakes.winners[node] = station;
        }
        for node in (1..leaves).rev() {
            wakes.winners[node] = wakes.winners[2 * node];
        }
        wakes
    }

    /// `Instant::MAX`: no station has a deadline.
    pub(super) fn next_at(&self) -> Instant {
        self.keys[usize::from(self.winners[1])].0
    }

    /// Replaces the deadline of `station`; `None`: it has none.
    pub(super) fn set(&mut self, station: u16, at: Option<Instant>) {
        let i = usize::from(station);
        let before = self.keys[i];
        if before.0 == at.unwrap_or(Instant::MAX) {
            return;
        }
        self.replaced[i].retain(|key| *key > self.reached);
        self.keys[i] = at.map_or(NEVER, |at| self.place(i, at));
        if before != NEVER && before > self.reached {
            self.replaced[i].push(before);
        }
        self.replay(station);
    }

    /// The key that the station had for this instant before, or a new one.
    fn place(&mut self, i: usize, at: Instant) -> Key {
        match self.replaced[i].iter().position(|key| key.0 == at) {
            Some(had) => self.replaced[i].swap_remove(had),
            None => {
                self.set_so_far += 1;
                (at, self.set_so_far)
            }
        }
    }

    /// The first station due at or before `now`; its deadline is cleared.
    pub(super) fn pop_due(&mut self, now: Instant) -> Option<u16> {
        let first = self.winners[1];
        if self.next_at() > now {
            // a deadline set later for this same instant is not past: it has a larger number
            self.reached = self.reached.max((now, self.set_so_far));
            return None;
        }
        self.reached = self.keys[usize::from(first)];
        self.set(first, None);
        Some(first)
    }

    /// Recomputes the winners above `station`, as far up as they can change.
    fn replay(&mut self, station: u16) {
        let mut node = self.keys.len() + usize::from(station);
        while node > 1 {
            node /= 2;
            let (a, b) = (self.winners[2 * node], self.winners[2 * node + 1]);
            let winner = if self.keys[usize::from(b)] < self.keys[usize::from(a)] { b } else { a };
            let before = std::mem::replace(&mut self.winners[node], winner);
            if winner != station && before != station {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(ns: u64) -> Option<Instant> {
        Some(Instant::from_nanos(ns))
    }

    fn all(wakes: &mut Wakes) -> Vec<u16> {
        std::iter::from_fn(|| wakes.pop_due(Instant::from_nanos(1000))).collect()
    }

    #[test]
    fn at_one_instant_those_that_first_wanted_it_are_first() {
        let mut wakes = Wakes::new(5);
        wakes.set(4, at(7));
        wakes.set(0, at(7));
        wakes.set(2, at(6));
        wakes.set(4, at(9));
        wakes.set(4, None);
        wakes.set(4, at(7));
        assert_eq!(Some(wakes.next_at()), at(6));
        assert_eq!(all(&mut wakes), [2, 4, 0]);
        assert_eq!(wakes.next_at(), Instant::MAX);
    }

    #[test]
    fn one_station_alone_is_woken_once_and_not_before_its_time() {
        let mut wakes = Wakes::new(1);
        wakes.set(0, at(9));
        assert_eq!(wakes.pop_due(Instant::from_nanos(8)), None);
        assert_eq!(all(&mut wakes), [0]);
        assert_eq!(wakes.next_at(), Instant::MAX);
    }

    #[test]
    fn an_instant_wanted_again_when_it_has_come_gives_the_place_back() {
        let mut wakes = Wakes::new(3);
        assert_eq!(wakes.pop_due(Instant::from_nanos(7)), None);
        wakes.set(1, at(7));
        wakes.set(1, None);
        wakes.set(2, at(7));
        wakes.set(1, at(7));
        assert_eq!(all(&mut wakes), [1, 2]);
    }

    #[test]
    fn an_instant_that_has_passed_gives_no_place() {
        let mut wakes = Wakes::new(2);
        wakes.set(1, at(7));
        wakes.set(1, at(9));
        assert_eq!(wakes.pop_due(Instant::from_nanos(7)), None);
        wakes.set(0, at(7));
        wakes.set(1, at(7));
        assert_eq!(all(&mut wakes), [0, 1]);
    }

    /// An event queue that keeps replaced deadlines; one that is set again by the time it comes up counts.
    #[derive(Default)]
    struct Queue {
        wanted: Vec<Option<u64>>,
        pushed: Vec<(u64, usize, u16)>,
    }

    impl Queue {
        fn set(&mut self, station: u16, ns: Option<u64>, order: usize) {
            let wanted = &mut self.wanted[usize::from(station)];
            if *wanted != ns {
                *wanted = ns;
                self.pushed.extend(ns.map(|ns| (ns, order, station)));
            }
        }

        fn pop_due(&mut self, now: u64) -> Option<u16> {
            loop {
                self.pushed.sort();
                let (ns, _, station) = self.pushed.first().copied().filter(|first| first.0 <= now)?;
                self.pushed.remove(0);
                let wanted = &mut self.wanted[usize::from(station)];
                if *wanted == Some(ns) {
                    *wanted = None;
                    return Some(station);
                }
            }
        }
    }

    proptest! {
        #[test]
        fn the_order_is_that_of_an_event_queue(
            stations in 1_u16..70,
            steps in prop::collection::vec((0_u16..70, prop::option::of(0_u64..9), 0_u64..3), 0..300),
        ) {
            let mut wakes = Wakes::new(stations.into());
            let mut queue = Queue { wanted: vec![None; stations.into()], ..Queue::default() };
            let mut now = 0;
            for (order, (station, after, pass)) in steps.into_iter().enumerate() {
                let station = station % stations;
                let ns = after.map(|after| now + after);
                wakes.set(station, ns.and_then(at));
                queue.set(station, ns, order);
                if pass == 0 {
                    now += 1;
                    loop {
                        let due = wakes.pop_due(Instant::from_nanos(now));
                        prop_assert_eq!(due, queue.pop_due(now));
                        if due.is_none() {
                            break;
                        }
                    }
                }
            }
        }
    }
}
