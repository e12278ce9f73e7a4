//! All deadlines of a machine on one screen: a small table by name, usually an enum.
//!
//! A timer is armed or stopped; arming it again moves its deadline. Ties fire in the order of the names.

use crate::Instant;
use std::collections::BTreeMap;

/// Deadlines of timers with the names `K`.
#[derive(Clone, Debug)]
pub struct Timers<K>(BTreeMap<K, Instant>);

impl<K> Default for Timers<K> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<K: Copy + Ord> Timers<K> {
    /// Arms `timer` for `at`.
    pub fn set(&mut self, timer: K, at: Instant) {
        self.0.insert(timer, at);
    }

    /// Disarms `timer`.
    pub fn stop(&mut self, timer: K) {
        self.0.remove(&timer);
    }

    /// Arms `timer` for `at`, or disarms it if that is `None`.
    pub fn arm(&mut self, timer: K, at: Option<Instant>) {
        match at {
            Some(at) => self.set(timer, at),
            None => self.stop(timer),
        }
    }

    /// Deadline of `timer`; `None`: it is not armed.
    pub fn get(&self, timer: K) -> Option<Instant> {
        self.0.get(&timer).copied()
    }

    /// The earliest deadline.
    pub fn next_timeout(&self) -> Option<Instant> {
        self.0.values().min().copied()
    }

    /// Disarms and returns the earliest timer due at or before `now`, with its deadline.
    pub fn expire(&mut self, now: Instant) -> Option<(K, Instant)> {
        let due = self.0.iter().map(|(timer, at)| (*timer, *at)).filter(|(_, at)| *at <= now);
        let (timer, at) = due.min_by_key(|(_, at)| *at)?;
        self.stop(timer);
        Some((timer, at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    enum Timer {
        Hello,
        Ack,
    }

    fn at(ns: u64) -> Instant {
        Instant::from_nanos(ns)
    }

    #[test]
    fn timers_fire_in_order_of_time_then_of_the_enum() {
        let mut timers = Timers::<Timer>::default();
        timers.set(Timer::Ack, at(5));
        timers.set(Timer::Hello, at(9));
        assert_eq!(timers.next_timeout(), Some(at(5)));
        assert_eq!(timers.expire(at(10)), Some((Timer::Ack, at(5))));
        timers.set(Timer::Ack, at(9));
        assert_eq!(timers.expire(at(10)), Some((Timer::Hello, at(9))));
        assert_eq!(timers.expire(at(10)), Some((Timer::Ack, at(9))));
        assert_eq!(timers.expire(at(10)), None);
    }

    #[test]
    fn a_timer_set_again_is_moved_and_a_stopped_one_never_fires() {
        let mut timers = Timers::<Timer>::default();
        timers.set(Timer::Hello, at(1));
        timers.set(Timer::Hello, at(7));
        assert_eq!(timers.expire(at(6)), None);
        timers.stop(Timer::Hello);
        assert_eq!(timers.next_timeout(), None);
        timers.arm(Timer::Hello, Some(at(3)));
        assert_eq!(timers.next_timeout(), Some(at(3)));
        timers.arm(Timer::Hello, None);
        assert_eq!(timers.next_timeout(), None);
    }
}
