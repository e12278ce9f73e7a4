//! One machine, given inputs at chosen times.

use super::follow;
use crate::{Input, Node, Output, Protocol, Routes, Status};
use manet_engine::{Duration, Instant, Timeline};

/// A machine whose deadlines [`Timeline`] checks, and whose outputs are checked here.
pub struct One<P: Protocol> {
    line: Timeline<P>,
    /// The routes that the machine has set.
    pub routes: Routes,
    /// Number of routes that were set although they were there.
    pub set_again: usize,
}

impl<P: Protocol> One<P> {
    /// A machine at instant 0.
    ///
    /// # Panics
    /// If the protocol refuses its node or options.
    pub fn new(node: Node, options: P::Options) -> Self {
        Self { line: Timeline::new(P::new(node, options).unwrap()), routes: Routes::default(), set_again: 0 }
    }

    /// The present instant.
    pub fn now(&self) -> Instant {
        self.line.now()
    }

    /// Runs to `end`; returns the outputs and their times.
    pub fn until(&mut self, end: Instant) -> Vec<(Instant, Output)> {
        let mut out = Vec::new();
        self.line.run_until(end, &mut |t, o| out.push((t, o)));
        self.set_again += out.iter().filter(|(_, output)| follow(&mut self.routes, output)).count();
        out
    }

    /// Runs to `at`; returns the outputs of the input.
    pub fn input(&mut self, at: Instant, input: Input) -> Vec<Output> {
        self.until(at);
        let mut out = Vec::new();
        self.line.input(at, input, &mut |_, o| out.push(o));
        self.set_again += out.iter().filter(|output| follow(&mut self.routes, output)).count();
        out
    }

    /// Runs on for `wait`, then hands over the input; returns all outputs.
    pub fn after(&mut self, wait: Duration, input: Input) -> Vec<Output> {
        let at = self.now() + wait;
        let mut out: Vec<Output> = self.until(at).into_iter().map(|(_, output)| output).collect();
        out.extend(self.input(at, input));
        out
    }

    /// The machine's state now.
    pub fn status(&self) -> Status {
        self.line.machine().status(self.line.now())
    }

    /// A counter of the machine.
    pub fn count(&self, name: &str) -> u64 {
        self.status().counters.get(name)
    }
}
