//! A heap of timed events with a defined order: by (time, phase, sequence number).
//!
//! The medium needs the phase: all events of a lower phase at an instant come before those of a higher phase at
//! the same instant, in whatever order they were added.

use crate::Instant;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Timed events of type `E`, the earliest first.
#[derive(Clone, Debug)]
pub struct EventQueue<E> {
    heap: BinaryHeap<Reverse<Entry<E>>>,
    next_sequence: u64,
}

#[derive(Clone, Debug)]
struct Entry<E> {
    key: (Instant, u8, u64),
    event: E,
}

impl<E> PartialEq for Entry<E> {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}
impl<E> Eq for Entry<E> {}
impl<E> PartialOrd for Entry<E> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl<E> Ord for Entry<E> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key.cmp(&other.key)
    }
}

impl<E> Default for EventQueue<E> {
    fn default() -> Self {
        Self { heap: BinaryHeap::new(), next_sequence: 0 }
    }
}

impl<E> EventQueue<E> {
    /// Adds an event; events of the same instant and phase keep the order in which they were added.
    pub fn push(&mut self, at: Instant, phase: u8, event: E) {
        let key = (at, phase, self.next_sequence);
        self.next_sequence += 1;
        self.heap.push(Reverse(Entry { key, event }));
    }

    /// Instant of the earliest event.
    pub fn next_at(&self) -> Option<Instant> {
        self.heap.peek().map(|Reverse(e)| e.key.0)
    }

    /// The next event due at or before `now`, with its instant.
    pub fn pop_due(&mut self, now: Instant) -> Option<(Instant, E)> {
        if self.next_at()? > now {
            return None;
        }
        self.heap.pop().map(|Reverse(e)| (e.key.0, e.event))
    }

    /// Number of events.
    pub fn len(&self) -> usize {
        self.heap.len()
    }

    /// Whether there are no events.
    pub fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ties_are_ordered_by_phase_then_by_order_of_arrival() {
        let mut q = EventQueue::default();
        let t = Instant::from_nanos(5);
        q.push(t, 1, "late phase, first pushed");
        q.push(t, 0, "early phase, first");
        q.push(t, 0, "early phase, second");
        q.push(Instant::from_nanos(4), 9, "earlier");
        let order: Vec<_> = std::iter::from_fn(|| q.pop_due(t)).map(|(_, e)| e).collect();
        assert_eq!(order, ["earlier", "early phase, first", "early phase, second", "late phase, first pushed"]);
    }

    #[test]
    fn nothing_is_popped_before_its_time() {
        let mut q = EventQueue::default();
        q.push(Instant::from_nanos(5), 0, ());
        assert!(q.pop_due(Instant::from_nanos(4)).is_none());
        assert_eq!(q.len(), 1);
    }
}
