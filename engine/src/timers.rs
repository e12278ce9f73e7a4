//! All deadlines of a machine on one screen: a small table indexed by an enum.
//!
//! A timer is armed or stopped; arming it again moves its deadline. Ties fire in the order of the enum.

use crate::Instant;

/// Names of the timers of one machine, usually an enum.
pub trait TimerName: Copy + 'static {
    /// Every timer, in the order in which ties fire.
    const ALL: &'static [Self];
    /// Position in [`Self::ALL`], below the table's `N`.
    fn index(self) -> usize;
}

/// Deadlines of `N` timers with the names `K`.
#[derive(Clone, Debug)]
pub struct Timers<K, const N: usize> {
    deadlines: [Option<Instant>; N],
    name: std::marker::PhantomData<K>,
}

impl<K: TimerName, const N: usize> Default for Timers<K, N> {
    fn default() -> Self {
        debug_assert!(K::ALL.len() == N);
        Self { deadlines: [None; N], name: std::marker::PhantomData }
    }
}

impl<K: TimerName, const N: usize> Timers<K, N> {
    /// Arms `timer` for `at`.
    pub fn set(&mut self, timer: K, at: Instant) {
        self.deadlines[timer.index()] = Some(at);
    }

    /// Disarms `timer`.
    pub fn stop(&mut self, timer: K) {
        self.deadlines[timer.index()] = None;
    }

    /// Arms `timer` for `at`, or disarms it if that is `None`.
    pub fn arm(&mut self, timer: K, at: Option<Instant>) {
        self.deadlines[timer.index()] = at;
    }

    /// Deadline of `timer`; `None`: it is not armed.
    pub fn get(&self, timer: K) -> Option<Instant> {
        self.deadlines[timer.index()]
    }

    /// The earliest deadline.
    pub fn next_timeout(&self) -> Option<Instant> {
        self.deadlines.iter().flatten().min().copied()
    }

    /// Disarms and returns the earliest timer due at or before `now`, with its deadline.
    pub fn expire(&mut self, now: Instant) -> Option<(K, Instant)> {
        let due = |k: &K| self.get(*k).filter(|at| *at <= now).map(|at| (*k, at));
        let (timer, at) = K::ALL.iter().filter_map(due).min_by_key(|(_, at)| *at)?;
        self.stop(timer);
        Some((timer, at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Copy, Debug, PartialEq)]
    enum Timer {
        Hello,
        Ack,
    }
    impl TimerName for Timer {
        const ALL: &'static [Self] = &[Timer::Hello, Timer::Ack];
        fn index(self) -> usize {
            self as usize
        }
    }

    fn at(ns: u64) -> Instant {
        Instant::from_nanos(ns)
    }

    #[test]
    fn timers_fire_in_order_of_time_then_of_the_enum() {
        let mut timers = Timers::<Timer, 2>::default();
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
        let mut timers = Timers::<Timer, 2>::default();
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
