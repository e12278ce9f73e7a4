//! Model time: a machine, the instant that it has reached, and the rule by which it advances.
//!
//! [`Timeline`] is the virtual driver (it jumps from deadline to deadline) and the core of the real one
//! ([`crate::real_time`] only decides how far it may go), so a machine behaves the same under both.
//!
//! Order at one instant: a deadline at t comes before an input stamped t.

use crate::{Instant, Machine};

/// The surroundings of a machine: they take its outputs and may answer at once.
pub trait Outside<M: Machine> {
    /// Takes an output that the machine produced at `at`.
    fn put(&mut self, at: Instant, output: M::Output);

    /// An immediate answer to the outputs just given. The driver calls it after it has drained the outputs of an
    /// instant, until it returns `None`, and hands each input to the machine at the same instant.
    fn react(&mut self) -> Option<M::Input> {
        None
    }
}

impl<M: Machine, F: FnMut(Instant, M::Output)> Outside<M> for F {
    fn put(&mut self, at: Instant, output: M::Output) {
        self(at, output)
    }
}

/// A machine and the model time it has reached.
pub struct Timeline<M: Machine> {
    machine: M,
    now: Instant,
    calls: u64,
}

impl<M: Machine> Timeline<M> {
    /// At model time 0.
    pub fn new(machine: M) -> Self {
        Self { machine, now: Instant::ZERO, calls: 0 }
    }

    /// The machine, for reading.
    pub fn machine(&self) -> &M {
        &self.machine
    }

    /// The machine, for settings that are no events; anything that changes a deadline must be an input.
    pub fn machine_mut(&mut self) -> &mut M {
        &mut self.machine
    }

    /// The model time reached.
    pub fn now(&self) -> Instant {
        self.now
    }

    /// Number of calls of the machine.
    pub fn calls(&self) -> u64 {
        self.calls
    }

    /// Hands `input` over at `at`, or at the present instant if `at` is in the past, after all that is due until then.
    pub fn input(&mut self, at: Instant, input: M::Input, outside: &mut impl Outside<M>) {
        self.run_until(at, outside);
        self.calls += 1;
        self.machine.handle(self.now, input);
        self.settle(outside);
    }

    /// Does all that is due at or before `end`, each at its own instant, and goes to `end`.
    ///
    /// # Panics
    /// If the machine breaks its contract: a deadline in the past, or one that remains after it was handled.
    pub fn run_until(&mut self, end: Instant, outside: &mut impl Outside<M>) {
        while let Some(deadline) = self.machine.next_timeout().filter(|d| *d <= end) {
            self.fire(deadline, outside);
        }
        self.now = self.now.max(end);
    }

    fn fire(&mut self, deadline: Instant, outside: &mut impl Outside<M>) {
        assert!(deadline >= self.now, "a deadline at {deadline:?} while it is {:?}", self.now);
        self.now = deadline;
        self.calls += 1;
        self.machine.handle_timeout(deadline);
        let next = self.machine.next_timeout();
        assert!(next.is_none_or(|n| n > deadline), "a deadline at {next:?} is left after {deadline:?} was handled");
        self.settle(outside);
    }

    fn settle(&mut self, outside: &mut impl Outside<M>) {
        loop {
            while let Some(output) = self.machine.poll_output() {
                outside.put(self.now, output);
            }
            let Some(input) = outside.react() else { return };
            self.calls += 1;
            self.machine.handle(self.now, input);
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::Duration;
    use serde::{Deserialize, Serialize};

    /// Repeats each number after as many nanoseconds as it says.
    #[derive(Default)]
    pub(crate) struct Echo {
        waiting: crate::EventQueue<u64>,
        out: std::collections::VecDeque<u64>,
    }

    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    pub(crate) struct Say(pub u64);

    impl Machine for Echo {
        type Input = Say;
        type Output = u64;
        fn handle(&mut self, now: Instant, Say(n): Say) {
            self.waiting.push(now + Duration::from_nanos(n), 0, n);
        }
        fn handle_timeout(&mut self, now: Instant) {
            while let Some((_, n)) = self.waiting.pop_due(now) {
                self.out.push_back(n);
            }
        }
        fn poll_output(&mut self) -> Option<u64> {
            self.out.pop_front()
        }
        fn next_timeout(&self) -> Option<Instant> {
            self.waiting.next_at()
        }
    }

    fn at(ns: u64) -> Instant {
        Instant::from_nanos(ns)
    }

    #[test]
    fn each_deadline_is_met_at_its_own_instant() {
        let mut line = Timeline::new(Echo::default());
        let mut heard = Vec::new();
        for n in [7, 3, 100] {
            line.input(at(1), Say(n), &mut |t, o| heard.push((t, o)));
        }
        line.run_until(at(50), &mut |t, o| heard.push((t, o)));
        assert_eq!(heard, [(at(4), 3), (at(8), 7)]);
        assert_eq!(line.now(), at(50));
    }

    #[test]
    fn an_input_stamped_in_the_past_happens_now() {
        let mut line = Timeline::new(Echo::default());
        let mut heard = Vec::new();
        line.run_until(at(50), &mut |_, _| {});
        line.input(at(10), Say(1), &mut |_, _| {});
        line.run_until(at(60), &mut |t, o| heard.push((t, o)));
        assert_eq!(heard, [(at(51), 1)]);
    }

    /// Says 5 back when it hears 10.
    struct Answering(Vec<(Instant, u64)>, Option<Say>);
    impl Outside<Echo> for Answering {
        fn put(&mut self, at: Instant, output: u64) {
            self.0.push((at, output));
            if output == 10 {
                self.1 = Some(Say(5));
            }
        }
        fn react(&mut self) -> Option<Say> {
            self.1.take()
        }
    }

    #[test]
    fn a_reaction_happens_at_the_instant_of_its_cause() {
        let mut line = Timeline::new(Echo::default());
        let mut outside = Answering(Vec::new(), None);
        line.input(at(0), Say(10), &mut outside);
        line.input(at(0), Say(12), &mut outside);
        line.run_until(at(1000), &mut outside);
        assert_eq!(outside.0, [(at(10), 10), (at(12), 12), (at(15), 5)]);
    }

    struct Stuck;
    impl Machine for Stuck {
        type Input = ();
        type Output = ();
        fn handle(&mut self, _: Instant, (): ()) {}
        fn handle_timeout(&mut self, _: Instant) {}
        fn poll_output(&mut self) -> Option<()> {
            None
        }
        fn next_timeout(&self) -> Option<Instant> {
            Some(at(5))
        }
    }

    #[test]
    #[should_panic(expected = "is left after")]
    fn a_deadline_that_stays_is_a_bug_not_a_hang() {
        Timeline::new(Stuck).run_until(at(9), &mut |_, ()| {});
    }
}
